"""Whatever can run a stored function is judged: a function that writes, in every statement that takes one.

The function writes into a table, so where a binlog's scope holds half of what it writes, each statement
that runs it must be refused; where all of it is in scope, replicas must have its effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import pymysql
import pytest

from tests.port_replicas import FollowedBinlogs
from tests.serve_process import ServeProcess
from tests.servers import execute, mysql_program

_FUNCTION: Final = "CREATE FUNCTION d.{}() RETURNS INT DETERMINISTIC"
_BOTH_TABLES: Final = "INSERT INTO d.calls VALUES (); INSERT INTO e1.calls VALUES ();"
_SETUP: Final = (
    "CREATE DATABASE d",
    "CREATE DATABASE e1",
    "CREATE TABLE d.t (id INT PRIMARY KEY, a INT)",
    "INSERT INTO d.t VALUES (1, 1), (2, 2)",
    "CREATE TABLE d.calls (n INT AUTO_INCREMENT PRIMARY KEY)",
    "CREATE TABLE e1.calls (n INT AUTO_INCREMENT PRIMARY KEY)",
    f"{_FUNCTION.format('f')} BEGIN INSERT INTO d.calls VALUES (); RETURN 1; END",
    f"{_FUNCTION.format('g')} BEGIN {_BOTH_TABLES} RETURN 1; END",
    "CREATE VIEW d.vf AS SELECT d.f() AS x",
    "CREATE VIEW d.vg AS SELECT d.g() AS x",
    "CREATE PROCEDURE d.p(a INT) BEGIN END",
    *(
        f"CREATE PROCEDURE d.c{name}() IF (SELECT x FROM v{name}) THEN SELECT 1; END IF"
        for name in ("f", "g")
    ),
    *(
        f"CREATE PROCEDURE d.h{name}() BEGIN DECLARE a INT;"
        " DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SET a = 1;"
        f" WHILE a IS NULL DO SET a = {name}(); END WHILE; END"
        for name in ("f", "g")
    ),
)
_SHOWN: Final = (
    *("TABLES", "FULL TABLES", "DATABASES", "COLUMNS FROM t", "INDEX FROM t", "TABLE STATUS"),
    *("OPEN TABLES", "EVENTS", "PROCEDURE STATUS", "FUNCTION STATUS", "VARIABLES", "STATUS"),
    *("GLOBAL VARIABLES", "COLLATION", "CHARACTER SET"),
)
_BOTH: Final = (
    *(f"SHOW {one} WHERE {{}}() > 0" for one in _SHOWN),
    "SHOW VARIABLES WHERE Variable_name = (SELECT x FROM v{})",
    "SELECT {}()",
    "SELECT x FROM v{}",
    "SELECT * FROM t ORDER BY id + {}()",
    "WITH c AS (SELECT {}()) SELECT * FROM c",
    "DO {}()",
    "SET @a = {}()",
    "SET @a = (SELECT x FROM v{})",
    "SET SESSION sort_buffer_size = 100000 + {}()",
    "CALL p({}())",
    "CALL p((SELECT x FROM v{}))",
    "CALL c{}()",
    "CALL h{}()",
    "INSERT INTO t VALUES (5 + {}(), 1)",
    "UPDATE t SET a = {}()",
    "DELETE FROM t WHERE id = 9 + {}()",
    "SELECT {}() INTO @z",
)
_OWN: Final = {
    "mariadb": (
        "SHOW TRIGGERS WHERE {}() > 0",
        "EXPLAIN SELECT * FROM (SELECT {}()) x",
        "EXPLAIN SELECT * FROM t WHERE id = {}()",
        "EXPLAIN FORMAT=JSON SELECT * FROM v{}",
        "EXPLAIN EXTENDED SELECT * FROM (SELECT {}()) x",
        "DESCRIBE SELECT * FROM (SELECT {}()) x",
        "EXPLAIN UPDATE t SET a = 1 WHERE id = {}()",
        "EXPLAIN DELETE FROM t WHERE id IN (SELECT x FROM v{})",
        "EXPLAIN INSERT INTO t SELECT x, 1 FROM (SELECT {}() AS x) y",
        "ANALYZE SELECT {}()",
        "ANALYZE FORMAT=JSON SELECT * FROM v{}",
        "ANALYZE UPDATE t SET a = {}()",
        "VALUES ({}())",
        "EXECUTE IMMEDIATE 'SELECT {}()'",
        "BEGIN NOT ATOMIC IF {}() THEN SELECT 1; END IF; END",
    ),
    "mysql": (
        "EXPLAIN ANALYZE SELECT {}()",
        "EXPLAIN ANALYZE SELECT * FROM v{}",
        "EXPLAIN ANALYZE FORMAT=TREE SELECT {}()",
        "TABLE v{}",
        "VALUES ROW({}())",
    ),
}
_COUNT: Final = "SELECT COUNT(*) FROM {}.calls"


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def binlogs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FollowedBinlogs]:
    """A port with a binlog of all statements, and one in the scope of one database."""
    if request.param == "mysql":
        mysql_program()
    with ExitStack() as stack:
        directory = tmp_path_factory.mktemp("stored")
        found = FollowedBinlogs(stack, directory, ["STATEMENT"], flavor=request.param, begins=False)
        execute(found.source, "SET GLOBAL log_bin_trust_function_creators = 1", *_SETUP)
        found.serve.execute_as_root("CREATE BINLOG s LOG (d), FORMAT='STATEMENT'")
        yield found


def _run(serve: ServeProcess, statement: str) -> str:
    """Run a statement as the first one of a session; the error's text, empty without."""
    connection = pymysql.connect(
        host="127.0.0.1",
        port=serve.port,
        user="root",
        database="d",
        autocommit=None,
        ssl_disabled=True,
    )
    with connection:
        try:
            connection.query(statement)
        except pymysql.MySQLError as error:
            return str(error.args[-1])
    return ""


def _counts(serve: ServeProcess) -> tuple[int, int]:
    (inside,), (outside,) = (execute(serve.source, _COUNT.format(name))[0] for name in ("d", "e1"))
    return inside, outside


def test_what_runs_a_function_out_of_scope_is_refused(binlogs: FollowedBinlogs) -> None:
    serve = binlogs.serve
    found = {}
    for form in (*_BOTH, *_OWN[binlogs.flavor]):
        before = _counts(serve)
        error = _run(serve, form.format("g"))
        if _counts(serve) != before or "cannot be replicated safely" not in error:
            found[form] = error
    assert found == {}


def test_binlanes_own_statements_take_no_stored_functions(binlogs: FollowedBinlogs) -> None:
    before = _counts(binlogs.serve)
    for text in (
        "PURGE BINARY LOGS BEFORE f()",
        "PURGE BINARY LOGS FOR 's' BEFORE (SELECT x FROM vf)",
        "SET binlog_format = f()",
        "SET binlog_format = (SELECT x FROM vf)",
        "SET binlog_format = f(",
    ):
        assert _run(binlogs.serve, text), text
    assert _counts(binlogs.serve) == before


def test_what_a_function_does_in_scope_is_on_replicas(binlogs: FollowedBinlogs) -> None:
    serve = binlogs.serve
    for form in (*_BOTH, *_OWN[binlogs.flavor]):
        before = _counts(serve)
        assert _run(serve, form.format("f")) == "", form
        assert _counts(serve)[0] > before[0], form
    assert binlogs.problems() == []
