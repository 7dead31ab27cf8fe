"""What a statement leaves for the next one to read is at the port what it is at the server.

Where binlane asks the source in a client's session, before a statement or behind it, that must not be
seen. What statements leave is read in a session of its own each, at the server and at the port.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pymysql
import pytest

from tests.judged_port import judged
from tests.lent_servers import LENT
from tests.serve_process import ServeProcess

WARNS: Final = "SELECT 1/0"
FINDS: Final = "SELECT 1/0 UNION SELECT 2 UNION SELECT 3"
BEGINS: Final = "UPDATE w SET b = b WHERE a < 0"
SESSIONS: Final = (
    # The first statements of a session: binlane begins to go along with it.
    (WARNS,),
    (WARNS, "BEGIN"),
    (WARNS, "SET SESSION binlog_format = 'ROW'"),
    (WARNS, "SELECT @@binlog_format"),
    ("SELECT 1", "INSERT INTO w (b) VALUES (1), (2)"),
    ("SELECT 1", "INSERT INTO nowhere VALUES (1)"),
    # Later ones.
    (BEGINS, FINDS),
    (BEGINS, FINDS, "SELEC 1"),
    (BEGINS, FINDS, "INSERT INTO w (a, b) VALUES (1, 1), (1, 1)"),
    (BEGINS, FINDS, "INSERT INTO nowhere VALUES (1)"),
    (BEGINS, FINDS, "UPDATE w SET a = (SELECT a FROM nowhere)"),
    (BEGINS, FINDS, "DROP TABLE IF EXISTS nowhere"),
    (BEGINS, FINDS, "CREATE TEMPORARY TABLE tt (a INT)", "INSERT INTO tt VALUES (1), (2)"),
    (BEGINS, FINDS, "SET SESSION binlog_format = 'ROW'"),
    (BEGINS, "BEGIN", "INSERT INTO w (b) VALUES (1)", FINDS),
    (BEGINS, "SET rand_seed1 = 5, rand_seed2 = 6", "DO RAND()"),
    (BEGINS, "SET insert_id = 100000", WARNS),
    (BEGINS, "SET @s = 'SELECT 1/0'", "PREPARE s FROM @s", "EXECUTE s"),
    (BEGINS, "CALL p()"),
    (BEGINS, FINDS, "USE d"),
)
PROBES: Final = (
    "SHOW WARNINGS",
    "SELECT @@warning_count, @@error_count",
    "SELECT ROW_COUNT()",
    "SELECT FOUND_ROWS()",
    "SELECT LAST_INSERT_ID() > 0, @@insert_id",
    "GET DIAGNOSTICS @number = NUMBER, @count = ROW_COUNT",
)
OF_MARIADB: Final = ("SELECT @@last_gtid <> ''", "SELECT @@rand_seed1 = 5, @@rand_seed1 < 100")


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def serve(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServeProcess]:
    place = tmp_path_factory.mktemp("left")
    own = ("--log-bin-trust-function-creators=1",)
    with (
        LENT.lend_source(request.param, *own) as source,
        judged(place / "serve", source) as serve,
    ):
        serve.execute_as_root(
            "CREATE BINLOG 'b' FORMAT='STATEMENT'",
            "CREATE DATABASE d",
            "CREATE TABLE d.w (a INT PRIMARY KEY AUTO_INCREMENT, b INT)",
            "CREATE PROCEDURE d.p() BEGIN INSERT INTO d.w (b) VALUES (1); SELECT 1/0; END",
        )
        yield serve


def _left(port: int, statements: tuple[str, ...], probe: str) -> list[object]:
    """What a probe reads behind some statements, and those behind it of what it has set."""
    with (
        pymysql.connect(
            host="127.0.0.1",
            port=port,
            user="root",
            database="d",
            autocommit=True,
            ssl_disabled=True,
        ) as session,
        session.cursor() as cursor,
    ):
        told: list[object] = []
        for statement in (*statements, probe, "SELECT @number, @count"):
            try:
                cursor.execute(statement)
                told = told if statement.startswith("SELECT @n") else []
                told += cursor.fetchall()
                while cursor.nextset():
                    told += cursor.fetchall()
            except pymysql.MySQLError as error:
                told = [error.args]
        return told


@pytest.mark.parametrize("statements", SESSIONS, ids="; ".join)
def test_what_is_left_is_the_servers(serve: ServeProcess, statements: tuple[str, ...]) -> None:
    is_mariadb = serve.source.program.scheme == "mariadb"
    differing = {}
    for probe in (*PROBES, *(OF_MARIADB if is_mariadb else ())):
        wanted = _left(serve.source.port, statements, probe)
        found = _left(serve.port, statements, probe)
        if found != wanted:
            differing[probe] = wanted, found
    assert differing == {}
