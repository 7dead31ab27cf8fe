"""Faults of the model, and what it does not know: a session goes on behind each.

What is not known of a statement makes it rows, or has it refused where a binlog can have none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pymysql
import pytest
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from binlane.live.port import followed, unread
from binlane.live.provision.private_server import PrivateServer
from binlane.statements.scope.scope import Scope
from binlane.statements.session.planning_session import PlanningSession
from binlane.statements.sql.servers import LoggingMode
from tests.judged_port import judged
from tests.judged_statements import judging, logging_everything
from tests.lent_servers import LENT
from tests.serve_process import ServeProcess
from tests.servers import ServerFactory, execute

_UNSAFE: Final = 1
_NESTED: Final = 330
_SIGNAL: Final = "SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 30001, MESSAGE_TEXT = "
_DEEP: Final = "CALL deep(60)"
_ROUTINES: Final = (
    "CREATE PROCEDURE d.runs(q TEXT) BEGIN SET @r = q; PREPARE s FROM @r; EXECUTE s; END",
    f"CREATE PROCEDURE d.raises(m VARCHAR(64)) {_SIGNAL}m",
    "CREATE PROCEDURE d.anew() BEGIN PREPARE s FROM 'CALL d.anew()'; EXECUTE s; END",
    "CREATE PROCEDURE d.deep(n INT) BEGIN IF n > 0 THEN CALL d.deep(n - 1); END IF; DO n; END",
    "CREATE PROCEDURE d.nested() "
    + "BEGIN " * _NESTED
    + "INSERT INTO d.t (v) VALUES ('nested');"
    + "END;" * _NESTED,
)


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def source(server_directory: Path, request: pytest.FixtureRequest) -> Iterator[PrivateServer]:
    """A prepared server with a database `d`."""
    with ExitStack() as stack:
        servers = ServerFactory(LENT, server_directory, f"faults-{request.param}", stack)
        start = servers.start if request.param == "mariadb" else servers.start_mysql
        server = start("source")
        execute(
            server,
            "SET GLOBAL local_infile = 1",
            "CREATE DATABASE d",
            "CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(64))",
            *_ROUTINES,
        )
        yield server


@pytest.fixture(scope="module")
def serve(
    source: PrivateServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServeProcess]:
    """A port before it."""
    with judged(tmp_path_factory.mktemp("faults") / "serve", source) as serving:
        yield serving


@contextmanager
def _client(port: int) -> Iterator[Connection[Cursor]]:
    with pymysql.connect(
        host="127.0.0.1",
        port=port,
        user="root",
        database="d",
        autocommit=True,
        local_infile=True,
        read_timeout=60,
    ) as connection:
        yield connection


def _answers(connection: Connection[Cursor], statements: Sequence[str]) -> list[object]:
    found: list[object] = []
    with connection.cursor() as cursor:
        for statement in statements:
            try:
                cursor.execute(statement)
                while cursor.nextset():
                    pass
            except pymysql.MySQLError as error:
                found.append(error.args)
            else:
                found.append(cursor.rowcount)
    return found


def _inputs(file: Path, flavor: str) -> list[str]:
    """What ended sessions, or made the model go down as deep as it could."""
    found = [
        "SELECT v INTO @m FROM t LIMIT 1",
        "CALL raises(@m)",
        "SET SESSION max_sp_recursion_depth = 255",
        "CALL anew()",
        "CALL nested()",
    ]
    if flavor == "mysql":
        # A thread of MariaDB has the stack for fewer calls than the model.
        return [*found, _DEEP]
    return [
        *found,
        f"SET STATEMENT sql_mode = '' FOR LOAD DATA LOCAL INFILE '{file}' INTO TABLE t (v)",
        "BEGIN NOT ATOMIC " * _NESTED + "SELECT 1;" + "END;" * _NESTED,
    ]


@pytest.mark.parametrize("format_", ["MIXED", "STATEMENT"])
def test_what_ended_sessions(serve: ServeProcess, tmp_path: Path, format_: str) -> None:
    file = tmp_path / "rows.txt"
    file.write_text("from a file\n")
    statements = [
        "INSERT INTO t (v) VALUES ('a')",
        *_inputs(file, serve.source.program.scheme),
        "INSERT INTO t (v) VALUES ('b')",
    ]
    with _client(serve.source.port) as connection:
        expected = _answers(connection, statements)
    serve.execute_as_root(f"CREATE BINLOG 'b' FORMAT='{format_}'")
    try:
        with _client(serve.port) as connection:
            found = _answers(connection, statements)
    finally:
        serve.execute_as_root("DROP BINLOG 'b'")
    refused = [
        text
        for text, here, there in zip(statements, found, expected, strict=True)
        if here != there and isinstance(here, tuple) and here[0] == _UNSAFE
    ]
    if format_ == "STATEMENT":
        for text in refused:
            assert "nested too deep" in str(found[statements.index(text)])
            expected[statements.index(text)] = found[statements.index(text)]
    assert found == expected
    assert "a session failed" not in serve.log
    assert "Traceback" not in serve.log


_PREPARED: Final = (
    "CREATE TABLE texts (id INT PRIMARY KEY, q TEXT)",
    "INSERT INTO texts VALUES (1, 'INSERT INTO t (v) VALUES (7)'), (2, 'SELECT * FRM x')",
    # From what a query found, which is not known without it.
    "SELECT q INTO @q FROM texts WHERE id = 1",
    "PREPARE x FROM @q",
    "EXECUTE x",
    "EXECUTE x",
    "CALL runs(@q)",
    "SET @q = (SELECT q FROM texts WHERE id = 2)",
    "PREPARE x FROM @q",
    "EXECUTE x",
    "DEALLOCATE PREPARE x",
    # The source's own errors.
    "PREPARE x FROM 'SELECT * FRM x'",
    "PREPARE x FROM 'INSERT INTO nowhere VALUES (1)'",
    "PREPARE x FROM 'INSERT INTO t (nothing) VALUES (1)'",
    "PREPARE x FROM ''",
    "PREPARE x FROM 'PREPARE y FROM 1'",
    "PREPARE x FROM 'SELECT 1; SELECT 2'",
    "PREPARE x FROM @nothing",
    "EXECUTE x",
    "CALL runs('SELECT * FRM x')",
    "DROP TABLE texts",
)
_DYNAMIC: Final = "CALL runs((SELECT q FROM texts WHERE id = 1))"


@pytest.mark.parametrize("how", ["FORMAT='MIXED'", "FORMAT='STATEMENT'", "LOG(d)"])
def test_texts_that_are_not_known_beforehand(serve: ServeProcess, how: str) -> None:
    statements = list(_PREPARED)
    with _client(serve.source.port) as connection:
        expected = _answers(connection, statements)
    serve.execute_as_root(f"CREATE BINLOG 'b' {how}")
    try:
        with _client(serve.port) as connection:
            # So that somebody follows the session.
            assert _answers(connection, ["SET timestamp = 1000000000"]) == [0]
            assert _answers(connection, statements) == expected
            _answers(connection, statements[:2])
            (answer,) = _answers(connection, [_DYNAMIC])
            _answers(connection, statements[-1:])
        events = _queries(serve, "b")
    finally:
        serve.execute_as_root("DROP BINLOG 'b'")
    # Of what only the query in the middle of a statement gives, nobody is to be asked beforehand.
    assert isinstance(answer, tuple) is (how != "FORMAT='MIXED'")
    assert sum(text.endswith("INSERT INTO t (v) VALUES (7)") for text in events) == (
        3 if how == "FORMAT='STATEMENT'" else 0
    )


def test_statements_that_were_prepared_before_anybody_looked(serve: ServeProcess) -> None:
    with _client(serve.port) as connection:
        given = ["PREPARE x FROM 'INSERT INTO t (v) VALUES (''early'')'", "EXECUTE x"]
        assert _answers(connection, given) == [0, 1]
        serve.execute_as_root("CREATE BINLOG 'b' LOG(d)")
        try:
            ((errno, _),) = _errors(_answers(connection, ["EXECUTE x"]))
            assert errno == _UNSAFE
            again = ["DEALLOCATE PREPARE x", *given]
            assert _answers(connection, again) == [0, 0, 1]
        finally:
            serve.execute_as_root("DROP BINLOG 'b'")


def _errors(answers: Sequence[object]) -> list[tuple[int, str]]:
    assert all(isinstance(each, tuple) for each in answers), answers
    return [each for each in answers if isinstance(each, tuple)]


def _queries(serve: ServeProcess, name: str) -> list[str]:
    """The statements of a binlog's first file."""
    with serve.connect("root", "") as connection, connection.cursor() as cursor:
        cursor.execute(f"SHOW BINLOG EVENTS IN '{name}.000001'")
        return [str(row[5]) for row in cursor.fetchall() if row[2] == "Query"]


_BROKEN: Final = (
    "CREATE TABLE m1 (id INT) ENGINE=MyISAM",
    "CREATE TABLE mg (id INT) ENGINE=MERGE UNION=(m1)",
    "DROP TABLE m1",
    "CREATE TABLE iv (id INT PRIMARY KEY, a INT DEFAULT (INTERVAL(5, 1, 10, 20)))",
    "SET NAMES latin1",
    "CREATE VIEW vv AS SELECT 'x' COLLATE latin1_swedish_ci AS c FROM t",
    "SET NAMES utf8mb4",
)
_ON_BROKEN: Final = (
    "SET timestamp = 1000000000",
    "INSERT INTO iv (id) VALUES (1)",
    "UPDATE iv SET a = 2",
    "ALTER TABLE iv COMMENT 'x'",
    "SELECT * FROM vv",
    "ALTER TABLE mg COMMENT 'x'",
    "DROP VIEW vv",
    "DROP TABLE mg",
    "DROP TABLE iv",
)
_ON_MERGED: Final = "INSERT INTO mg VALUES (1)"


@pytest.mark.parametrize("how", ["FORMAT='MIXED'", "FORMAT='STATEMENT'", "LOG(d)", "LOG(d.t)"])
def test_objects_that_cannot_be_read(serve: ServeProcess, how: str) -> None:
    found: list[list[object]] = []
    serve.execute_as_root(f"CREATE BINLOG 'b' {how}")
    try:
        for port in (serve.source.port, serve.port):
            with _client(serve.source.port) as connection:
                assert not any(isinstance(one, tuple) for one in _answers(connection, _BROKEN))
            with _client(port) as connection:
                (merged,) = _answers(connection, [_ON_MERGED])
                assert isinstance(merged, tuple)
                assert merged[0] == 1168
                found.append(_answers(connection, _ON_BROKEN))
    finally:
        serve.execute_as_root("DROP BINLOG 'b'")
    assert found[0] == found[1]


_FAULTY: Final = "faulty"
_INSERT: Final = f"INSERT INTO t (v) VALUES ('{_FAULTY}')"
_BEHIND: Final = (
    "BEGIN",
    "INSERT INTO t (v) VALUES ('in one')",
    "COMMIT",
    "INSERT INTO t (v) VALUES ('behind')",
)


@pytest.fixture
def prepared(serve: ServeProcess) -> PrivateServer:
    """The source, which somebody has prepared."""
    return serve.source


def _fail(patch: pytest.MonkeyPatch, owner: object, name: str, error: Exception) -> None:
    """Have a function of the model fail for what names `_FAULTY`."""
    function = getattr(owner, name)

    def failing(*given: Any) -> Any:
        if any(_FAULTY in str(getattr(each, "text", each)) for each in given):
            raise error
        return function(*given)

    patch.setattr(owner, name, failing)


def _told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if "a fault of binlane" in one.getMessage()]


@pytest.mark.parametrize(
    ("mode", "name", "error"),
    [
        (LoggingMode.ROW, "preview", RecursionError()),
        (LoggingMode.MIXED, "preview_known", MemoryError()),
        (LoggingMode.STATEMENT, "preview_known", KeyError("x")),
    ],
)
def test_a_fault_in_judging(
    prepared: PrivateServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    mode: LoggingMode,
    name: str,
    error: Exception,
) -> None:
    with judging(prepared, (logging_everything(mode),)) as (port, _):
        _fail(monkeypatch, PlanningSession, name, error)
        with port.connect(database="d") as connection:
            # The model goes along from here on.
            assert _answers(connection, ["SET timestamp = 1000000000"]) == [0]
            (answer,) = _answers(connection, [_INSERT])
            assert _answers(connection, _BEHIND) == [0, 1, 0, 1]
    if mode is LoggingMode.STATEMENT:
        assert isinstance(answer, tuple)
        assert answer[0] == _UNSAFE
        assert answer[1].startswith("[11314]")
        assert "SET SESSION binlog_format = 'ROW'" in answer[1]
    else:
        assert answer == 1
    (line,) = _told(caplog)
    assert f"{type(error).__name__} in binlane." in line
    assert line.endswith("while judging INSERT")


@pytest.mark.parametrize("mode", [LoggingMode.ROW, LoggingMode.STATEMENT])
def test_a_fault_in_following(
    prepared: PrivateServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    mode: LoggingMode,
) -> None:
    with judging(prepared, (logging_everything(mode),)) as (port, _):
        _fail(monkeypatch, followed, "_carried_out", KeyError("x"))
        with port.connect(database="d") as connection:
            given = ["SET timestamp = 1000000000", _INSERT, *_BEHIND]
            assert _answers(connection, given) == [0, 1, 0, 1, 0, 1]
    (line,) = _told(caplog)
    assert "KeyError in binlane.live.port.followed:" in line
    assert line.endswith("while following a statement")


def test_a_fault_in_a_scope(prepared: PrivateServer, monkeypatch: pytest.MonkeyPatch) -> None:
    scoped = replace(logging_everything(LoggingMode.ROW), scope=Scope.nothing())
    with judging(prepared, (scoped,)) as (port, _):
        _fail(monkeypatch, PlanningSession, "preview", KeyError("x"))
        with port.connect(database="d") as connection:
            (answer,) = _answers(connection, [_INSERT])
            assert isinstance(answer, tuple)
            assert answer[0] == _UNSAFE
            assert "one here has a scope" in answer[1]
            assert _answers(connection, _BEHIND) == [0, 1, 0, 1]


def test_a_fault_before_the_model_begins(
    prepared: PrivateServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _fail(monkeypatch, unread, "concerns", KeyError("x"))
    with (
        judging(prepared, (logging_everything(LoggingMode.ROW),)) as (port, _),
        port.connect(database="d") as connection,
    ):
        assert _answers(connection, [_INSERT, *_BEHIND]) == [1, 0, 1, 0, 1]
    assert _told(caplog)
