"""What the port asks and sets in a client's session for texts: not to be seen there, and enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pymysql
import pytest

from tests.context_scripts import (
    CHARSETS,
    CONTEXTS,
    MARIADB_CONTEXTS,
    MYSQL_CONTEXTS,
    PLAIN,
    TABLES,
    VARIABLES,
)
from tests.judged_port import judged
from tests.port_replicas import FollowedBinlogs
from tests.servers import ServerFactory, connect, execute, mysql_program

_KEY: Final = "id INT AUTO_INCREMENT PRIMARY KEY"
SCHEMA: Final = (
    "CREATE DATABASE asked",
    f"CREATE TABLE asked.now6 ({_KEY}, a TINYINT, c DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6))",
    f"CREATE TABLE asked.seen ({_KEY}, n INT, t VARCHAR(40))",
)
SESSION: Final = (
    "USE asked",
    "SET sql_mode = ''",
    "INSERT INTO now6 (a) VALUES (1), (2000), (3)",
    "SHOW WARNINGS",
    "INSERT INTO now6 (a) VALUES (1), (2), (3)",
    "SELECT ROW_COUNT()",
    "SELECT ROW_COUNT(), LAST_INSERT_ID(), @@warning_count",
    "INSERT INTO now6 (a) VALUES (2000)",
    "SELECT @@warning_count",
    "SHOW WARNINGS",
    "UPDATE now6 SET a = 7 WHERE id < 3",
    "INSERT INTO seen (n) VALUES (ROW_COUNT())",
    "SELECT n FROM seen ORDER BY id",
    "SET @x = 5, sql_mode = DEFAULT",
    "INSERT INTO seen (n, t) VALUES (LAST_INSERT_ID(), @x)",
    "SELECT n, t FROM seen ORDER BY id",
    "SELECT 1 UNION SELECT 2 UNION SELECT 3",
    "SELECT FOUND_ROWS()",
    "SET timestamp = 1000000000.5",
    "INSERT INTO now6 (a) VALUES (9)",
    "SELECT UNIX_TIMESTAMP(), MICROSECOND(NOW(6))",
    "SELECT MICROSECOND(c) FROM now6 WHERE a = 9",
    "SET timestamp = DEFAULT",
    "INSERT INTO now6 (a) VALUES (10)",
    "SELECT SLEEP(0.01)",
    "SELECT ABS(TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6))) < 5000",
    "SELECT c BETWEEN NOW(6) - INTERVAL 10 SECOND AND NOW(6) FROM now6 WHERE a = 10",
    "SET rand_seed1 = 5, rand_seed2 = 7",
    "INSERT INTO seen (t) VALUES (RAND())",
    "SELECT t, RAND() FROM seen ORDER BY id DESC LIMIT 1",
    "SET sql_select_limit = 0",
    "INSERT INTO seen (t) VALUES (@x)",
    "SET sql_select_limit = DEFAULT",
    "SELECT t FROM seen ORDER BY id DESC LIMIT 1",
    "BEGIN",
    "INSERT INTO now6 (a) VALUES (11)",
    "SELECT ROW_COUNT()",
    "ROLLBACK",
    "SELECT COUNT(*) FROM now6",
)


OWN: Final = (
    "SHOW MASTER STATUS",
    "SHOW GRANTS ON BINLOG",
    "SHOW SLAVE HOSTS",
    "SHOW BINLOG EVENTS IN 'statements.000001' LIMIT 3",
    "EXPLAIN BINLOG INSERT INTO seen (t) VALUES (UUID())",
    "SET SESSION binlog_format = (SELECT 'STATEMENT')",
    "PURGE BINARY LOGS FOR 'statements' BEFORE '2020-01-01'",
)
"""Statements of binlane's own, for which it asks the source in the client's session."""


def rows_of(connection: Any, statement: str) -> object:
    """The rows that a statement gives."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


def answers(connection: Any, statements: Sequence[str]) -> list[tuple[str, object, int]]:
    """What a client sees of each statement: its rows or how many it changed, and the warnings."""
    found = []
    for statement in statements:
        connection.query(statement)
        result = connection._result
        found.append((statement, result.rows or result.affected_rows, result.warning_count))
    return found


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_client_sees_what_it_sees_without_the_port(
    servers: ServerFactory, tmp_path: Path, flavor: str
) -> None:
    if flavor == "mysql":
        mysql_program()
        source = servers.start_mysql("source")
    else:
        source = servers.start("source")
    with connect(source) as direct, connect(source, database="mysql") as own:
        for statement in SCHEMA:
            direct.query(statement)
        wanted = answers(own, SESSION)
        for statement in ("DROP DATABASE asked", *SCHEMA):
            direct.query(statement)
    with judged(tmp_path / "serve", source) as serve:
        serve.execute_as_root("CREATE BINLOG 'statements' FORMAT='STATEMENT'")
        client = pymysql.connect(
            host="127.0.0.1", port=serve.port, user="root", autocommit=True, ssl_disabled=True
        )
        with client:
            found = answers(client, SESSION)
            serve.wait_until_complete("statements")
            # What binlane asks in a client's session comes whatever the client has limited.
            told = [rows_of(client, statement) for statement in OWN]
            client.query("SET sql_select_limit = 0")
            assert [rows_of(client, statement) for statement in OWN] == told
            client.query("CREATE BINLOG 'another'")
        serve.wait_until_complete("statements")
        logged = serve.execute_as_root("SHOW BINLOG EVENTS IN 'statements.000001'")

    # Notes that a statement is unsafe are binlane's own.
    unsafe = {"SELECT @@warning_count", "INSERT INTO seen (n) VALUES (ROW_COUNT())"}
    for one, other in zip(found, wanted, strict=True):
        if one[0] not in unsafe:
            assert one[:2] == other[:2]
    texts = {info for _, _, kind, _, _, info in logged if kind == "Query"}
    for text in (
        "INSERT INTO now6 (a) VALUES (10)",
        "INSERT INTO seen (n, t) VALUES (LAST_INSERT_ID(), @x)",
        "INSERT INTO seen (t) VALUES (@x)",
    ):
        assert f"use `asked`; {text}" in texts


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_replicas_of_texts_with_many_contexts_are_equal(tmp_path: Path, flavor: str) -> None:
    own = MARIADB_CONTEXTS if flavor == "mariadb" else MYSQL_CONTEXTS
    with ExitStack() as stack:
        binlogs = FollowedBinlogs(stack, tmp_path, ["STATEMENT", "MIXED"], flavor=flavor)
        client: Any = stack.enter_context(
            pymysql.connect(
                host="127.0.0.1",
                port=binlogs.serve.port,
                user="root",
                autocommit=True,
                ssl_disabled=True,
            )
        )
        client.encoding = "latin1"  # of names of columns in other character sets
        for statement in ("CREATE DATABASE context", "USE context", *TABLES):
            client.query(statement.encode())
        for statement in (*PLAIN, *VARIABLES, *CONTEXTS, *own, "SET sql_mode = DEFAULT"):
            if "sql_require_primary_key" not in statement:
                client.query(statement.encode())
        for charset, data in CHARSETS:
            client.query(f"SET NAMES {charset}")
            client.query(data)

        assert binlogs.problems() == []
        shown = execute(
            binlogs.source, "SHOW FULL TABLES FROM context WHERE Table_type = 'BASE TABLE'"
        )
        for name, _ in shown:
            wanted = execute(binlogs.source, f"SELECT * FROM context.{name}")
            for replica in binlogs.replicas.values():
                assert execute(replica, f"SELECT * FROM context.{name}") == wanted
        events = binlogs.serve.execute_as_root("SHOW BINLOG EVENTS IN 'statement.000001'")
        kinds = Counter(kind for _, _, kind, *_ in events)
        assert kinds["User var"] > 25
        assert kinds["RAND"] == 1
        assert kinds["Annotate_rows"] + kinds["Table_map"] < 12
