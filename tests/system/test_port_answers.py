"""What the source answers itself, it answers through the port too, whatever binlogs there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

import pymysql
import pytest

from binlane.live.provision.server_programs import MARIADB
from binlane.log.codec.packets.framing import bytes_of
from tests.judged_port import judged
from tests.lent_servers import LENT
from tests.raw_client import RawClient
from tests.serve_process import ServeProcess

_UNSAFE: Final = 1592
_BOTH: Final = ("mariadb", "mysql")
_MARIADB: Final = ("mariadb",)

_LONG: Final = "x" * (17 << 20)
_UNREAD: Final = "x" * (33 << 20)

_SESSIONS: Final[Mapping[str, tuple[Sequence[str], Sequence[str]]]] = {
    "default database of wide characters": (
        _BOTH,
        (
            "CREATE DATABASE wide CHARACTER SET utf32",
            "USE wide",
            "SELECT @@character_set_database, DATABASE()",
            "CREATE TABLE t (a INT)",
            "INSERT INTO t VALUES (1)",
            "USE d",
            "DROP DATABASE wide",
        ),
    ),
    "renamed into a database that is not there": (
        _BOTH,
        (
            "CREATE TABLE t (a INT) ENGINE = InnoDB",
            "RENAME TABLE t TO nowhere.t",
            "ALTER TABLE t RENAME nowhere.t",
            "RENAME TABLE t TO d.u, u TO nowhere.t",
        ),
    ),
    "bytes that are no UTF-8": (
        _BOTH,
        (
            "SET NAMES utf8mb3",
            "CREATE TABLE `\udce9\udcff` (a INT)",
            "SELECT * FROM `\udce9\udcff`",
            "INSERT INTO `é\udcff` VALUES (1)",
        ),
    ),
    "texts that are made up and are no SQL": (
        _MARIADB,
        (
            "PREPARE s FROM ' ? a FROM t '",
            "SET @name = CONCAT(UUID(), '')",
            "EXECUTE IMMEDIATE CONCAT('nothing', IF(LENGTH(@name), '', '-'))",
            "EXECUTE IMMEDIATE SFORMAT('{} of it', 'nothing')",
        ),
    ),
    "statements of more than 16 MiB": (
        _BOTH,
        (
            f"SELECT LENGTH('{_LONG}')",
            "CREATE TABLE t (a LONGTEXT)",
            f"INSERT INTO t VALUES ('{_LONG}')",
            "SELECT LENGTH(a) FROM t",
            f"SELECT LENGTH('{_LONG}) -- the quotes do not end",
        ),
    ),
    "temporary table filled from MyISAM": (
        _MARIADB,
        (
            "CREATE TABLE t3 (a INT) ENGINE = MyISAM",
            "INSERT INTO t3 VALUES (1), (2)",
            "CREATE TEMPORARY TABLE t4 SELECT * FROM t3",
            "INSERT INTO t3 SELECT * FROM t4",
            "INSERT INTO t4 SELECT * FROM t3",
            "INSERT INTO t3 SELECT * FROM t4",
            "SELECT COUNT(*) FROM t3",
        ),
    ),
}


@pytest.fixture(scope="module", params=_BOTH)
def serve(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServeProcess]:
    directory = tmp_path_factory.mktemp("answers")
    with (
        LENT.lend_source(request.param, "--max-allowed-packet=64M") as source,
        judged(directory / "serve", source) as process,
    ):
        process.execute_as_root(
            "CREATE BINLOG 'all' FORMAT='STATEMENT'", "CREATE BINLOG 'some' LOG(d), FORMAT='MIXED'"
        )
        yield process


@pytest.mark.parametrize("name", _SESSIONS)
def test_answers_are_the_sources(serve: ServeProcess, name: str) -> None:
    flavors, statements = _SESSIONS[name]
    if serve.source.program.scheme not in flavors:
        pytest.skip("the other flavor has nothing of it")
    direct = _answers(serve.source.port, statements)
    assert _answers(serve.port, statements) == direct


def test_what_a_text_of_more_than_16_mib_adds_is_in_binlogs(serve: ServeProcess) -> None:
    with _session(serve.port) as client:
        client.query("CREATE TABLE t (a LONGTEXT)")
        client.query(f"INSERT INTO t VALUES ('{_LONG}')")
        for name in ("all", "some"):
            serve.wait_until_complete(name)
            assert _LONG.encode() in serve.binlog_bytes(name)  # as its text, or as a row


def test_what_is_not_read_is_rows_in_a_binlog_of_statements(serve: ServeProcess) -> None:
    before = len(_events(serve))
    with _session(serve.port) as client, serve.connect("root", "") as other:
        for statement in (
            "CREATE TABLE t (a LONGTEXT)",
            "CREATE TEMPORARY TABLE u (a LONGTEXT)",
            "INSERT INTO u VALUES ('text')",
        ):
            client.query(statement)
        for table in ("t", "u"):
            client.query(f"INSERT INTO {table} VALUES ('{_UNREAD}')")
        # What was not read has left more there than the binlog has.
        client.query("INSERT INTO t SELECT LEFT(a, 4) FROM u")
        with other.cursor() as cursor:
            cursor.execute("SELECT LEFT(a, 4) FROM d.t ORDER BY 1")
            assert cursor.fetchall() == (("text",), ("xxxx",), ("xxxx",))
        serve.wait_until_complete("all")
        events = _events(serve)[before:]
        assert not [row for row in events if row[2] == "Query" and "INTO t" in str(row[5])]
        assert len([row for row in events if "rite_rows" in str(row[2])]) >= 2


def _events(serve: ServeProcess) -> Sequence[Sequence[str | None]]:
    with RawClient(serve.port) as client:
        return client.rows("SHOW BINLOG EVENTS IN 'all.000001'")


def test_rows_found_while_a_table_is_made(serve: ServeProcess) -> None:
    with _session(serve.port) as client, serve.connect("root", "") as other:
        client.query("CREATE TABLE d.t (a INT)")
        client.query("INSERT INTO d.t VALUES (1), (2), (3)")
        with other.cursor() as cursor, ThreadPoolExecutor(1) as threads:
            cursor.execute("SELECT GET_LOCK('made', 0)")
            found = "SELECT SQL_CALC_FOUND_ROWS a, GET_LOCK('made', 20) FROM t LIMIT 1"
            running = threads.submit(client.query, found)
            while not cursor.execute(
                "SELECT 1 FROM information_schema.processlist WHERE info = %s", (found,)
            ):
                pass
            cursor.execute("CREATE TABLE d.u (a INT)")
            cursor.execute("SELECT RELEASE_LOCK('made')")
            running.result()
        assert _answer(client, "SELECT FOUND_ROWS()")[1] == [((3,),)]


@pytest.mark.parametrize("mending", ["REPAIR TABLE t USE_FRM", "TRUNCATE TABLE t"])
def test_tables_that_cannot_be_opened(serve: ServeProcess, mending: str) -> None:
    if serve.source.program is not MARIADB:
        pytest.skip("MySQL does not open such tables at all")
    statements: Sequence[str] = (
        "SELECT * FROM t",
        "REPAIR TABLE t",
        mending,
        "INSERT INTO t VALUES (2)",
    )

    def damaged(port: int) -> list[Any]:
        with _session(port) as client:
            client.query("CREATE TABLE t (a INT) ENGINE = MyISAM")
            client.query("INSERT INTO t VALUES (1)")
            client.query("FLUSH TABLES")
            (serve.source.directory / "data" / "d" / "t.MYI").write_bytes(b"damaged")
            return [_answer(client, statement) for statement in statements]

    assert damaged(serve.port) == damaged(serve.source.port)


def _answers(port: int, statements: Sequence[str]) -> list[Any]:
    """Of each statement its text, its error or its rows, and its warnings but for those of logging."""
    with _session(port) as client:
        return [_answer(client, statement) for statement in statements]


@contextmanager
def _session(port: int) -> Iterator[Any]:
    """A session in an empty database."""
    with pymysql.connect(
        host="127.0.0.1", port=port, user="root", autocommit=True, ssl_disabled=True
    ) as client:
        client.query("CREATE DATABASE d")
        client.query("USE d")
        yield client
        client.query("DROP DATABASE d")


def _answer(client: Any, statement: str) -> tuple[Any, ...]:
    answer: Any = []
    try:
        client.query(bytes_of(statement))
        answer.append(client._result.rows)
        while client._result.has_next:
            client.next_result()
            answer.append(client._result.rows)
    except pymysql.MySQLError as error:
        answer = error.args
    client.query("SHOW WARNINGS")
    told = [one for one in client._result.rows if one[1] != _UNSAFE]
    return statement, answer, told
