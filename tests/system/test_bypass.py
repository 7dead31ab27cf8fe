"""A binlog that is to stop where something comes past the port does so there, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pymysql
import pytest
from pymysql.constants import CLIENT

from binlane.log.codec.packets.framing import bytes_of
from tests.judged_port import judged
from tests.lent_servers import LENT
from tests.serve_process import ServeProcess, wait_until
from tests.servers import execute

INSERT = "INSERT INTO t (b) VALUES (1)"
ROW = "SET SESSION binlog_format = 'ROW'"
SESSIONS = (
    (ROW, "BEGIN", INSERT, "COMMIT", INSERT),
    (f"{INSERT}; DO SLEEP(0.3); {INSERT}",),
    (f"BEGIN; {INSERT}; {INSERT}; COMMIT; DO SLEEP(0.3)", INSERT),
    (f"{INSERT}; CALL p()", INSERT),
    (f"{INSERT}; INSERT INTO nowhere VALUES (1); {INSERT}", INSERT),
    ("CALL p()",),
    (ROW, "CALL p()", "SELECT f(), SLEEP(0.3)"),
    (ROW, f"EXECUTE IMMEDIATE '{INSERT}'"),
    (ROW, "INSERT INTO t (b) VALUES (SLEEP(0.3)) RETURNING a"),
    (ROW, "INSERT INTO t (b) VALUES (LENGTH('\udcff') + SLEEP(0.3))", INSERT),
)
"""What each of them makes is read by routing before its reply has come, or was not foreseen."""


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    place = tmp_path_factory.mktemp("bypass")
    options = ("--log-bin-trust-function-creators=1", "--sql-mode=")
    extra = '[gateway]\nbypass = "stop"\n'
    with (
        LENT.lend_source("mariadb", *options) as source,
        judged(place / "serve", source, extra=extra) as serve,
    ):
        serve.execute_as_root(
            "CREATE BINLOG 'b' FORMAT='STATEMENT'",
            "CREATE DATABASE d",
            "CREATE TABLE d.t (a INT PRIMARY KEY AUTO_INCREMENT, b INT) ENGINE=InnoDB",
            f"CREATE PROCEDURE d.p() BEGIN {INSERT}; DO SLEEP(0.3); {INSERT}; END",
            f"CREATE FUNCTION d.f() RETURNS INT BEGIN {INSERT}; RETURN 1; END",
        )
        yield serve


def _reached(serve: ServeProcess) -> str:
    return str(serve.execute_as_root("SHOW BINLOGS")[0][3])


def _state(serve: ServeProcess) -> str:
    ((*_, state),) = serve.execute_as_root("SHOW BINLOGS")
    return str(state)


@pytest.mark.parametrize("statements", SESSIONS)
def test_no_session_of_the_port_stops_it(serve: ServeProcess, statements: tuple[str, ...]) -> None:
    with pymysql.connect(
        host="127.0.0.1",
        port=serve.port,
        user="root",
        database="d",
        autocommit=True,
        ssl_disabled=True,
        client_flag=CLIENT.MULTI_STATEMENTS,
    ) as session:
        for statement in statements:
            with session.cursor() as cursor, suppress(pymysql.ProgrammingError):
                cursor.execute(bytes_of(statement))  # type: ignore[call-overload]  # bytes go, too
                while cursor.nextset():
                    pass
        logged = execute(serve.source, "SELECT @@gtid_binlog_pos")[0][0]
        wait_until(lambda: _reached(serve) == logged or _state(serve) != "OPEN")
    assert _state(serve) == "OPEN"


def test_what_comes_past_it_does(serve: ServeProcess) -> None:
    execute(serve.source, "INSERT INTO d.t (b) VALUES (2)")
    wait_until(lambda: "did not come through the port" in _state(serve))
    serve.execute_as_root("START BINLOG 'b'")
    wait_until(lambda: _state(serve) == "OPEN")
