"""What servers answer to columns, databases and variables that are not there, told from the text."""

from __future__ import annotations

import pytest

from binlane.statements.session.report import StatementResult
from tests.checked import results

SCHEMA = """
    SET GLOBAL binlog_format = STATEMENT; CREATE DATABASE d; USE d;
    CREATE TABLE t (a INT PRIMARY KEY, b INT); CREATE TABLE u (c INT, d INT);
    CREATE VIEW v AS SELECT a FROM t; CREATE TABLE h (a INT, b INT INVISIBLE);
"""
FLAVORS = ["mariadb", "mysql"]


def only(script: str, server: str = "mariadb", schema: str = SCHEMA) -> StatementResult:
    *_, last = results(script, schema=schema, server=server)
    return last


def errno(script: str, server: str = "mariadb", schema: str = SCHEMA) -> int | None:
    error = only(script, server, schema).error
    return None if error is None else error.errno


_MARIADB_CLAUSES = {
    "field list": "SELECT",
    "where clause": "WHERE",
    "order clause": "ORDER BY",
    "on clause": "ON",
    "group statement": "GROUP BY",
}


@pytest.mark.parametrize("server", FLAVORS)
@pytest.mark.parametrize(
    ("statement", "name", "clause"),
    [
        ("UPDATE t AS y SET y.a = 1 WHERE t.b = 1", "t.b", "where clause"),
        ("UPDATE t SET a = 1 ORDER BY x", "x", "order clause"),
        ("DELETE FROM t WHERE x = 1", "x", "where clause"),
        ("DELETE t FROM t JOIN u ON t.a = u.x", "u.x", "on clause"),
        ("INSERT INTO t SELECT c, x FROM u", "x", "field list"),
        ("INSERT INTO t SELECT c, (SELECT max(x) FROM t) FROM u", "x", "field list"),
        ("INSERT INTO t SELECT x.c, 1 FROM u", "x.c", "field list"),
        ("INSERT INTO t SELECT c AS z, d FROM u WHERE z = 1", "z", "where clause"),
        ("INSERT INTO t SELECT y, 1 FROM (SELECT c AS z FROM u) AS q", "y", "field list"),
        ("INSERT INTO t SELECT c, d FROM u GROUP BY x", "x", "group statement"),
        ("SELECT x", "x", "field list"),
    ],
)
def test_unknown_columns(statement: str, name: str, clause: str, server: str) -> None:
    result = only(statement, server)
    assert result.error is not None
    assert (result.error.errno, result.error.sqlstate) == (1054, "42S22")
    shown = _MARIADB_CLAUSES[clause] if server == "mariadb" else clause
    assert result.error.message == f"Unknown column '{name}' in '{shown}'"
    assert not any(binlog.events for binlog in result.binlogs.values())


@pytest.mark.parametrize("server", FLAVORS)
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE t SET A = B + 1 WHERE t.a IN (SELECT c FROM u WHERE d = t.b AND c = B)",
        "INSERT INTO t SELECT c AS z, d FROM u GROUP BY z HAVING z > 1 ORDER BY z",
        "INSERT INTO t SELECT z, (SELECT max(z)) FROM (SELECT c AS z FROM u) AS q",
        "INSERT INTO t WITH q (z, y) AS (SELECT * FROM u) SELECT z, y FROM q",
        "INSERT INTO t VALUES (1, a + 1) ON DUPLICATE KEY UPDATE b = VALUES(b) + t.a",
        "INSERT INTO t SELECT c, d FROM u ON DUPLICATE KEY UPDATE b = u.d",
        "UPDATE t JOIN u ON a = c SET b = d WHERE d.t.a = 1",
        "UPDATE t JOIN (u JOIN h USING (b)) SET t.b = 1 WHERE c = 1 AND h.a = 2".replace(
            "USING (b)", "ON u.c = h.a"
        ),
        "DELETE FROM t WHERE 'x' = CAST(a AS CHAR) COLLATE utf8mb4_bin",
        "UPDATE t SET a = EXTRACT(YEAR FROM now()) + TIMESTAMPDIFF(SECOND, 1, 2)",
        "DELETE FROM t WHERE _rowid = 1",
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'x'",
    ],
)
def test_known_columns(statement: str, server: str) -> None:
    assert errno(statement, server) is None


def test_programs_have_names_of_their_own() -> None:
    script = """
        DELIMITER //
        CREATE PROCEDURE p(n INT) BEGIN DECLARE m INT; UPDATE t SET a = n WHERE b = m; END//
        CREATE TRIGGER g BEFORE INSERT ON u FOR EACH ROW UPDATE t SET a = NEW.c; //
        CALL p(1)// INSERT INTO u VALUES (1, 2)
    """
    assert errno(script) is None


@pytest.mark.parametrize("server", FLAVORS)
@pytest.mark.parametrize(
    ("statement", "row"),
    [
        ("INSERT INTO t VALUES (1)", 1),
        ("INSERT INTO t VALUES (1, 2), (3)", 2),
        ("INSERT INTO t (a) VALUES (1), (2), (3, 4)", 3),
        ("INSERT INTO t (a, b) VALUES ()", 1),
        ("INSERT INTO t SELECT 1", 1),
        ("INSERT INTO t (a) SELECT c, d FROM u UNION SELECT 1, 2", 1),
        ("REPLACE INTO h VALUES (1, 2)", 1),
    ],
)
def test_rows_of_the_wrong_length(statement: str, row: int, server: str) -> None:
    result = only(statement, server)
    assert result.error is not None
    assert (result.error.errno, result.error.sqlstate) == (1136, "21S01")
    assert result.error.message.endswith(f"row {row}")


@pytest.mark.parametrize("server", FLAVORS)
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t VALUES ()",
        "INSERT INTO t () VALUES (), ()",
        "INSERT INTO t SELECT * FROM u",
        "INSERT INTO t SELECT u.* FROM u",
        "INSERT INTO h VALUES (1)",
        "INSERT INTO h (a, b) VALUES (1, 2)",
    ],
)
def test_rows_of_the_right_length(statement: str, server: str) -> None:
    assert errno(statement, server) != 1136


@pytest.mark.parametrize("server", FLAVORS)
@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM t",
        "CREATE TABLE x (a INT)",
        "DROP VIEW v",
        "INSERT INTO d.t SELECT 1, c FROM u",
        "LOCK TABLES d.t WRITE, u READ",
        "ALTER DATABASE CHARACTER SET utf8mb4",
        "GRANT SELECT ON t TO CURRENT_USER",
    ],
)
def test_no_database(statement: str, server: str) -> None:
    schema = (
        SCHEMA.replace("USE d;", "").replace("TABLE ", "TABLE d.").replace("VIEW v", "VIEW d.v")
    )
    schema = schema.replace("FROM t", "FROM d.t")
    result = only(f"SELECT 1; {statement}", server, schema)
    assert result.error is not None
    assert (result.error.errno, result.error.sqlstate) == (1046, "3D000")
    assert errno(f"USE d; {statement}", server, schema) is None
    assert errno("CREATE USER a; GRANT SELECT ON *.* TO a", server, schema) is None
    assert errno("CALL p()", server, schema) == 1046
    assert errno("CALL d.p()", server, schema) == 1305


@pytest.mark.parametrize("server", FLAVORS)
@pytest.mark.parametrize(
    ("statement", "meant"),
    [
        ("SET binlog_fromat = ROW", "binlog_format"),
        ("SET SESSION sql_logbin = 0", "sql_log_bin"),
        ("SET @@foreign_keys_checks = 0", "foreign_key_checks"),
    ],
)
def test_misspelt_variables(statement: str, meant: str, server: str) -> None:
    result = only(statement, server)
    assert result.error is not None
    assert result.error.errno == 1193
    assert meant in result.error.message


@pytest.mark.parametrize(
    "name", ["read_only", "max_allowed_packet", "sort_buffer_size", "sql_log_bin"]
)
def test_other_variables(name: str) -> None:
    assert errno(f"SET GLOBAL {name} = 1" if name == "read_only" else f"SET {name} = 1") is None


def test_a_function_that_mysql_has_no_more() -> None:
    statement = "SET PASSWORD FOR 'u'@'h' = PASSWORD('x')"
    schema = "CREATE USER 'u'@'h'"
    assert errno(statement, "mysql", schema) == 1064
    assert errno(statement, "mysql:5.7", schema) is None
    assert errno(statement, "mariadb", schema) is None
