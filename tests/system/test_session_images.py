"""`binlog_row_image` of a session through the port: binlogs get its rows so, the source's log does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Final

import pymysql
import pytest
from pymysql.connections import Connection
from pymysql.constants import CLIENT
from pymysql.cursors import Cursor

from binlane.binlogs.store.stored_groups import StoreReader, read_groups
from binlane.log.codec.rows import DeleteRowsEvent, UpdateRowsEvent
from binlane.log.codec.types import Flavor
from binlane.log.grouping.table_maps import rows_with_tables
from tests.judged_port import judged_source
from tests.port_replicas import FollowedBinlogs
from tests.row_image_load import statements, tables
from tests.serve_process import ServeProcess
from tests.servers import execute

_FULL: Final = "full"
_MINIMAL: Final = "minimal"
_NOBLOB: Final = "noblob"
_IMAGES: Final = {"abcd": _FULL, "a": _MINIMAL, "abd": _NOBLOB}
"""By the columns of before images: `c` is a BLOB, `a` the key."""


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def serve(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServeProcess]:
    objects = [
        "CREATE DATABASE d",
        "CREATE TABLE d.t (a INT PRIMARY KEY, b INT, c LONGTEXT, d INT)",
        "CREATE PROCEDURE d.twice() BEGIN UPDATE d.t SET b = b + 1; UPDATE d.t SET b = b + 1; END",
        "CREATE USER plain@'127.0.0.1'",
        "GRANT ALL ON d.* TO plain@'127.0.0.1'",
    ]
    binlogs = [
        "CREATE BINLOG full",
        "CREATE BINLOG slim ROW_IMAGE='NOBLOB'",
        "CREATE BINLOG scoped LOG(d.t)",
        "CREATE BINLOG mixed FORMAT='MIXED'",
    ]
    directory = tmp_path_factory.mktemp("images")
    with judged_source(directory, request.param, objects, binlogs) as process:
        yield process


class _Client:
    def __init__(
        self,
        serve: ServeProcess,
        user: str = "root",
        connection: Connection[Cursor] | None = None,
    ) -> None:
        self._serve = serve
        self._connection = connection or serve.connect(user, "")

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements; the rows of the last one."""
        rows: Sequence[tuple[Any, ...]] = ()
        with self._connection.cursor() as cursor:
            for text in statements:
                cursor.execute(text)
                rows = cursor.fetchall()
                while cursor.nextset():
                    pass
        return list(rows)

    def error(self, text: str) -> tuple[Any, ...] | None:
        try:
            self.run(text)
        except pymysql.MySQLError as error:
            return error.args
        return None

    def images(self, *statements: str, binlog: str = "full") -> list[str]:
        """Run statements, and name the before images that they add to a binlog."""
        before = len(_images(self._serve, binlog))
        self.run(*statements)
        return _images(self._serve, binlog)[before:]

    def close(self) -> None:
        self._connection.close()


def _images(serve: ServeProcess, name: str) -> list[str]:
    serve.wait_until_complete(name)
    reader = StoreReader(serve.data_dir)
    paths = [file.path for file in reader.files(name)]
    events = [event for group in read_groups(paths) for event in group.events]
    found = []
    for _, body, table in rows_with_tables(events, file=name):
        if isinstance(body, UpdateRowsEvent | DeleteRowsEvent) and table.database == "d":
            bits = body.columns_present[0]
            found.append(_IMAGES["".join(c for n, c in enumerate("abcd") if bits >> n & 1)])
    return found


@pytest.fixture
def client(serve: ServeProcess) -> Iterator[_Client]:
    execute(
        serve.source,
        "DELETE FROM d.t",
        "INSERT INTO d.t VALUES (1, 1, 'x', 1), (2, 2, 'x', 2)",
    )
    with closing(_Client(serve)) as one:
        yield one


_UPDATE: Final = "UPDATE d.t SET b = b + 1 WHERE a = 1"


def test_each_way_of_setting_it(serve: ServeProcess, client: _Client) -> None:
    assert client.images(_UPDATE) == [_FULL]
    for text, image in (
        ("SET binlog_row_image = MINIMAL", _MINIMAL),
        ("SET SESSION binlog_row_image = 'noblob'", _NOBLOB),
        ("SET @@session.binlog_row_image := 0", _MINIMAL),
        ("SET @x = 1, @@binlog_row_image = NOBLOB, autocommit = 1", _NOBLOB),
        ("SET binlog_row_image = FULL", _FULL),
        ("SET LOCAL binlog_row_image = CONCAT('mini', 'mal')", _MINIMAL),
        ("SET binlog_row_image = DEFAULT", _FULL),
    ):
        client.run(text)
        wanted = {_FULL: "FULL", _MINIMAL: "MINIMAL", _NOBLOB: "NOBLOB"}[image]
        assert client.run("SELECT @@binlog_row_image, @@GLOBAL.binlog_row_image") == [
            (wanted, "FULL")
        ]
        assert client.run("SHOW VARIABLES LIKE 'binlog_row_image'") == [
            ("binlog_row_image", wanted)
        ]
        # Twice: what is known of a statement holds for the image with which it was run.
        for _ in range(3):
            assert client.images(_UPDATE) == [image], text
        assert client.images("DELETE FROM d.t WHERE a = 2") == [image]
        client.run("INSERT INTO d.t VALUES (2, 2, 'x', 2)")
    assert list(execute(serve.source, "SELECT @@GLOBAL.binlog_row_image")) == [("FULL",)]


def test_the_smaller_image_wins(client: _Client) -> None:
    client.run("SET binlog_row_image = MINIMAL")
    assert client.images(_UPDATE, binlog="slim") == [_MINIMAL]
    assert client.images(_UPDATE, binlog="scoped") == [_MINIMAL]
    client.run("SET binlog_row_image = NOBLOB")
    assert client.images(_UPDATE, binlog="slim") == [_NOBLOB]
    client.run("SET binlog_row_image = FULL")
    assert client.images(_UPDATE, binlog="slim") == [_NOBLOB]
    assert client.images(_UPDATE, binlog="scoped") == [_FULL]


def test_rows_in_a_binlog_that_also_holds_texts(client: _Client) -> None:
    client.run("SET binlog_row_image = MINIMAL")
    assert client.images(_UPDATE, binlog="mixed") == []
    unsafe = "UPDATE d.t SET c = UUID() WHERE a = 1"
    assert client.images(unsafe, binlog="mixed") == [_MINIMAL]
    assert client.images("BEGIN", _UPDATE, unsafe, "COMMIT", binlog="mixed") == [_MINIMAL]


def test_transactions_and_programs(client: _Client) -> None:
    client.run("SET binlog_row_image = MINIMAL")
    assert client.images("BEGIN", _UPDATE, "DELETE FROM d.t", "COMMIT") == [_MINIMAL] * 2
    client.run("INSERT INTO d.t VALUES (1, 1, 'x', 1)")
    assert client.images("BEGIN", "CALL d.twice()", "COMMIT") == [_MINIMAL] * 2
    assert client.images("XA START 'x'", _UPDATE, "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'")
    # A transaction has the largest image that one of its statements was run with.
    assert (
        client.images("BEGIN", _UPDATE, "SET binlog_row_image = NOBLOB", _UPDATE, "COMMIT")
        == [_NOBLOB] * 2
    )
    assert (
        client.images("BEGIN", _UPDATE, "SET binlog_row_image = FULL", _UPDATE, "COMMIT")
        == [_FULL] * 2
    )
    assert client.images(_UPDATE) == [_FULL]


def test_of_one_statement_alone(serve: ServeProcess, client: _Client) -> None:
    if serve.source.program.scheme == "mysql":
        pytest.skip("MySQL has no SET STATEMENT")
    assert client.images(f"SET STATEMENT binlog_row_image = MINIMAL FOR {_UPDATE}") == [_MINIMAL]
    assert client.images(_UPDATE) == [_FULL]


def test_a_long_statement(client: _Client) -> None:
    client.run("SET binlog_row_image = MINIMAL")
    assert client.images(f"UPDATE d.t SET c = '{'y' * 400_000}' WHERE a = 1") == [_MINIMAL]
    assert client.images(f"{_UPDATE} /* {'y' * 400_000} */") == [_MINIMAL]


def test_a_group_that_is_not_held(client: _Client) -> None:
    client.run("SET binlog_row_image = MINIMAL", "DELETE FROM d.t")
    client.run("SET @a = 0")
    rows = ", ".join(f"({number}, 1, REPEAT('z', 9000), 1)" for number in range(2000))
    client.run(f"INSERT INTO d.t VALUES {rows}")
    assert set(client.images("UPDATE d.t SET b = b + 1")) == {_MINIMAL}
    assert set(client.images("DELETE FROM d.t")) == {_MINIMAL}


def test_others_are_not_concerned(serve: ServeProcess, client: _Client) -> None:
    with closing(_Client(serve)) as other:
        client.run("SET binlog_row_image = MINIMAL")
        assert other.images(_UPDATE) == [_FULL]
        assert client.images(_UPDATE) == [_MINIMAL]
    before = len(_images(serve, "full"))
    execute(serve.source, _UPDATE)
    assert _images(serve, "full")[before:] == [_FULL]


def test_in_one_packet_and_within_a_transaction(serve: ServeProcess, client: _Client) -> None:
    multi = pymysql.connect(
        host="127.0.0.1",
        port=serve.port,
        user="root",
        autocommit=True,
        client_flag=CLIENT.MULTI_STATEMENTS,
    )
    with closing(_Client(serve, connection=multi)) as other:
        assert other.images(f"{_UPDATE}; SET binlog_row_image = MINIMAL; {_UPDATE}; {_UPDATE}") == [
            _FULL,
            _MINIMAL,
            _MINIMAL,
        ]
        assert other.images(_UPDATE) == [_MINIMAL]
        for _ in range(5):
            assert other.images(f"{_UPDATE}; {_UPDATE}") == [_MINIMAL] * 2
        other.run("SET sql_log_bin = 0")
        for _ in range(5):
            assert other.images(f"{_UPDATE}; {_UPDATE}") == []
    with closing(_Client(serve)) as other:
        assert other.images("BEGIN", "SET binlog_row_image = MINIMAL", _UPDATE, "COMMIT") == [
            _MINIMAL
        ]
    with closing(_Client(serve)) as other:
        images = other.images("SET autocommit = 0, binlog_row_image = MINIMAL", _UPDATE, "COMMIT")
        assert images == [_MINIMAL]


def test_values_of_later_sessions(serve: ServeProcess, client: _Client) -> None:
    client.run("SET GLOBAL binlog_row_image = MINIMAL")
    try:
        assert client.images(_UPDATE) == [_FULL]
        with closing(_Client(serve)) as other:
            assert other.run("SELECT @@binlog_row_image") == [("MINIMAL",)]
            assert other.images(_UPDATE) == [_MINIMAL]
    finally:
        client.run("SET GLOBAL binlog_row_image = DEFAULT")
    with closing(_Client(serve)) as other:
        assert other.images(_UPDATE) == [_FULL]


def test_what_is_refused(serve: ServeProcess, client: _Client) -> None:
    with closing(pymysql.connect(host="127.0.0.1", port=serve.source.port, user="root")) as source:
        for text in (
            "SET binlog_row_image = 'bogus'",
            "SET binlog_row_image = 4",
            "SET binlog_row_image = NULL",
            "SET binlog_row_image = FULL_NODUP",
        ):
            with pytest.raises(pymysql.MySQLError) as caught, source.cursor() as cursor:
                cursor.execute(text)
            assert client.error(text) == caught.value.args
    execute(serve.source, "SET @@SESSION.autocommit = 1")
    with closing(_Client(serve, "plain")) as plain:
        told = plain.error("SET binlog_row_image = MINIMAL")
        assert told is not None
        assert told[0] == 1227
    assert client.error("EXECUTE IMMEDIATE 'SET binlog_row_image = MINIMAL'") is not None


@pytest.mark.parametrize("flavor", list(Flavor))
def test_replicas_are_equal(tmp_path: Path, flavor: Flavor) -> None:
    with ExitStack() as stack:
        binlogs = FollowedBinlogs(stack, tmp_path, ("ROW", "MIXED", "NOBLOB"), flavor=flavor.value)
        with closing(_Client(binlogs.serve)) as client:
            client.run("CREATE DATABASE d", "USE d", *tables(flavor))
            for number, text in enumerate(statements(flavor)):
                if number % 7 == 0:
                    image = ("MINIMAL", "NOBLOB", "FULL")[number // 7 % 3]
                    client.run(f"SET binlog_row_image = {image}")
                client.run(text)
        assert binlogs.problems() == []
        assert "Traceback" not in binlogs.serve.log
        reader = StoreReader(binlogs.serve.data_dir)
        paths = [file.path for file in reader.files("row")]
        events = [event for group in read_groups(paths) for event in group.events]
        present = {
            (table.table, body.columns_present)
            for _, body, table in rows_with_tables(events, file="row")
            if isinstance(body, UpdateRowsEvent | DeleteRowsEvent)
        }
        assert len(present) > len(dict(present))
