"""What cannot be known is told, with its place, and never taken for safe."""

from __future__ import annotations

import time

import pytest

from binlane.statements.check.checker import Checker
from binlane.statements.check.findings import CheckedStatement, Kind, findings, main_why, place_of
from binlane.statements.policy.server import Server
from tests.checked import check

SCHEMA = """
CREATE DATABASE d;
USE d;
CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(99)) ENGINE=InnoDB;
CREATE TABLE m (a INT) ENGINE=MyISAM;
CREATE TABLE u (a INT) ENGINE=InnoDB;
CREATE VIEW broken AS SELECT * FROM nowhere;
CREATE VIEW calls AS SELECT nofunction(a) FROM t;
CREATE TRIGGER mt BEFORE INSERT ON m FOR EACH ROW INSERT INTO nowhere VALUES (1);
CREATE TRIGGER ut AFTER INSERT ON u FOR EACH ROW INSERT INTO u VALUES (1);
CREATE FUNCTION rows_of() RETURNS INT DETERMINISTIC RETURN (SELECT MAX(a) FROM nowhere);
CREATE FUNCTION itself() RETURNS INT DETERMINISTIC RETURN itself();
CREATE PROCEDURE p(x INT) INSERT INTO t VALUES (x, 'x');
CREATE PROCEDURE writes() INSERT INTO nowhere VALUES (1);
CREATE PROCEDURE again() CALL again();
DELIMITER //
CREATE FUNCTION caught() RETURNS INT DETERMINISTIC BEGIN
  DECLARE CONTINUE HANDLER FOR 1146 BEGIN END;
  INSERT INTO nowhere VALUES (1);
  RETURN 1;
END//
CREATE FUNCTION maybe(x INT) RETURNS INT DETERMINISTIC BEGIN
  IF x > 5 THEN SIGNAL SQLSTATE '45000'; END IF;
  RETURN 1;
END//
CREATE FUNCTION own() RETURNS INT DETERMINISTIC BEGIN
  CREATE TEMPORARY TABLE made (a INT);
  INSERT INTO made VALUES (1);
  RETURN 1;
END//
CREATE PROCEDURE endless() BEGIN WHILE 1 DO INSERT INTO t VALUES (1, 'a'); END WHILE; END//
CREATE PROCEDURE long_one() BEGIN
  DECLARE i INT DEFAULT 0;
  l: LOOP SET i = i + 1; END LOOP;
END//
CREATE PROCEDURE ends() BEGIN
  DECLARE i INT DEFAULT 0;
  WHILE i < 20 DO INSERT INTO t VALUES (i, 'a'); SET i = i + 1; END WHILE;
END//
DELIMITER ;
"""
SERVERS = pytest.mark.parametrize("server", ["mariadb", "mysql"])


def last(script: str, server: str = "mariadb") -> CheckedStatement:
    *_, found = check(script, schema=SCHEMA, server=server)
    return found


def kinds(found: CheckedStatement) -> list[Kind]:
    return [finding.kind for finding in findings(found) if finding.kind is not Kind.ALLOWED_UNSAFE]


@SERVERS
@pytest.mark.parametrize(
    ("sql", "errno"),
    [
        ("INSERT INTO nowhere VALUES (1)", 1146),
        ("INSERT INTO m VALUES (1)", 1146),
        ("INSERT INTO t VALUES (rows_of(), 'a')", 1146),
        ("SELECT rows_of()", 1146),
        ("CALL writes()", 1146),
        ("ALTER TABLE nowhere ADD x INT", 1146),
        ("TRUNCATE nowhere", 1146),
        ("RENAME TABLE t TO x, x TO y, t TO z", 1146),
        ("LOCK TABLES nowhere WRITE", 1146),
        ("CREATE TABLE x LIKE nowhere", 1146),
        ("CREATE VIEW x AS SELECT * FROM nowhere", 1146),
        ("CREATE TRIGGER x BEFORE INSERT ON nowhere FOR EACH ROW SET @a = 1", 1146),
        ("HANDLER nowhere OPEN", 1146),
        ("SELECT * FROM broken", 1356),
        ("INSERT INTO t SELECT 1, a.* FROM calls a", 1356),
        ("INSERT INTO t VALUES (nofunction(1), 'a')", 1305),
        ("INSERT INTO t VALUES (d.nofunction(1), 'a')", 1305),
        ("CALL nowhere()", 1305),
        ("DROP PROCEDURE nowhere", 1305),
        ("DROP FUNCTION nowhere", 1305),
        ("USE nowhere", 1049),
        ("CREATE TABLE nowhere.x (a INT)", 1049),
        ("DROP TABLE t, nowhere", 1051),
        ("DROP TRIGGER nowhere", 1360),
        ("DROP EVENT nowhere", 1539),
        ("DROP DATABASE nowhere", 1008),
    ],
)
def test_what_is_not_there_is_not_known(sql: str, errno: int, server: str) -> None:
    found = last(sql, server)
    assert found.result.error is not None
    assert found.result.error.errno == errno
    assert kinds(found) == [Kind.UNANALYSED]


@SERVERS
@pytest.mark.parametrize(
    ("sql", "errno"),
    [
        ("CALL p()", 1318),
        ("CALL p(1, 2)", 1318),
        ("CALL again()", 1456),
        ("INSERT INTO t VALUES (itself(), 'a')", 1424),
        ("INSERT INTO u VALUES (1)", 1442),
        ("EXECUTE nothing", 1243),
        ("DEALLOCATE PREPARE nothing", 1243),
        ("PREPARE s FROM 'DELETE FROM t WHERE a = ?'; EXECUTE s", 1210),
        ("ROLLBACK TO nowhere", 1305),
    ],
)
def test_errors_of_a_statement_itself(sql: str, errno: int, server: str) -> None:
    found = last(sql, server)
    assert found.result.error is not None
    assert found.result.error.errno == errno
    assert kinds(found) == [Kind.REFUSED]


@SERVERS
@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t VALUES (caught(), 'a')",
        "INSERT INTO t VALUES (maybe(b), 'a')",
        "INSERT INTO t VALUES (own(), 'a')",
        "INSERT INTO t VALUES (area(b) + left('a', 1), 'a')",
        "DROP TABLE IF EXISTS nowhere",
        "RENAME TABLE t TO x, u TO t, x TO u",
        "USE information_schema",
        "CALL ends()",
        "PREPARE s FROM 'DELETE FROM t WHERE a = ? LIMIT 1'; EXECUTE s USING @a",
        "ALTER TABLE t ORDER BY a, b",
        "ALTER TABLE t FORCE, AUTO_INCREMENT = 3, COMMENT 'x'",
        "ALTER EVENT e RENAME TO f; DROP EVENT f",
    ],
)
def test_what_runs_is_no_error(sql: str, server: str) -> None:
    event = "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 1; SET binlog_format = ROW; "
    assert [kinds(found) for found in check(event + sql, schema=SCHEMA, server=server)] == [
        [] for _ in range(2 + len(sql.split("; ")))
    ]


def test_a_stated_error_is_none_of_ours() -> None:
    assert kinds(last("-- @error 1051\nDROP TABLE nowhere;")) == []


@pytest.mark.parametrize(
    ("sql", "errno"),
    [
        ("-- @error 1062\nCREATE TABLE d.t (a INT);", 1050),
        ("-- @error 1062\nALTER TABLE d.nowhere ADD b INT;", 1146),
        ("CREATE VIEW d.w AS SELECT nofn(1);", 1305),
        ("-- @error 1062\nCREATE TABLE d.w (a INT DEFAULT (nofn(1)));", 1901),
        ("START TRANSACTION READ ONLY;\n-- @error 1062\nINSERT INTO d.t VALUES (1);", 1792),
    ],
)
def test_a_stated_error_does_not_hide_another_one(sql: str, errno: int) -> None:
    error = last(sql).result.error
    assert error is not None
    assert (error.errno, error.is_stated) == (errno, False)


def test_assumed_tables_are_there() -> None:
    checker = Checker(Server.parse("mariadb"), SCHEMA, assume_engine="InnoDB")
    assert [kinds(found) for found in checker.check("TRUNCATE nowhere")] == [[]]


@SERVERS
@pytest.mark.parametrize(
    "sql",
    [
        "CALL endless()",
        "CALL long_one()",
        "EXECUTE IMMEDIATE @unknown",
        "PREPARE s FROM @unknown; EXECUTE s",
    ],
)
def test_what_is_not_followed_is_not_known(sql: str, server: str) -> None:
    if sql.startswith("EXECUTE IMMEDIATE") and server == "mysql":
        pytest.skip("MySQL has no EXECUTE IMMEDIATE")
    found = last(sql, server)
    assert found.result.unanalysed is not None
    assert kinds(found) == [Kind.UNANALYSED]
    assert not any(binlog.events for binlog in found.result.binlogs.values())


@pytest.mark.parametrize(
    ("sql", "server"),
    [
        ("PREPARE s FROM 'frobnicate'", "mariadb"),
        ("SET @s = 'INSERT frob nicate'; PREPARE s FROM @s", "mysql"),
        ("EXECUTE IMMEDIATE 'frobnicate'", "mariadb"),
        ("ALTER TABLE t FROBNICATE b", "mariadb"),
        ("ALTER TABLE t FROBNICATE b", "mysql"),
        ("CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW FROBNICATE", "mysql"),
        ("EXECUTE IMMEDIATE @unknown", "mysql"),
        ("INSERT INTO t VALUES (1, 'a') RETURNING a", "mysql"),
        ("INSERT INTO t VALUES (1, 'a') AS new ON DUPLICATE KEY UPDATE a = new.a", "mariadb"),
        ("CREATE OR REPLACE TABLE x (a INT)", "mysql"),
        ("CREATE SEQUENCE s", "mysql"),
        ("WITH c AS (SELECT 1) UPDATE t SET a = 1", "mariadb"),
        ("BEGIN NOT ATOMIC DO 1; END", "mysql"),
        ("COMMIT AND CHAIN RELEASE", "mariadb"),
        ("START TRANSACTION READ ONLY, READ WRITE", "mysql"),
        ("SET @a = DEFAULT", "mysql"),
        ("LOCK TABLES t WRITE CONCURRENT", "mysql"),
        ("XA START 1", "mariadb"),
    ],
)
def test_what_a_server_refuses(sql: str, server: str) -> None:
    found = last(sql, server)
    assert found.result.unanalysed is None
    assert found.result.error is not None
    assert found.result.error.errno == 1064
    assert not any(binlog.events for binlog in found.result.binlogs.values())


@pytest.mark.parametrize(
    ("script", "line", "column"),
    [
        ("\nINSERT INTO t VALUES (1, 'a);\n\nSELECT 1", 2, 26),
        ("SELECT 1;\n/* open; SELECT 2", 2, 1),
        ("INSERT INTO `t VALUES (1)", 1, 13),
        ("INSERT INTO t /*!50000 VALUES (1)", 1, 15),
        ("SELECT 1;\n  INSERT\0 INTO t VALUES (1)", 2, 9),
        ("INSERT INTO t VALUES ((1)", 1, 26),
        ("INSERT INTO t VALUES (1) frob nicate", 1, 26),
    ],
)
def test_where_a_text_is_not_understood(script: str, line: int, column: int) -> None:
    found = last(script)
    assert found.result.error is not None
    assert found.result.error.errno == 1064
    (finding,) = findings(found)
    place = place_of(found.statement, main_why(finding))
    assert (place.line, place.column) == (line, column)


DEEP = 10_000


@SERVERS
@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE t SET a = " + "(" * DEEP + "1" + ")" * DEEP,
        "UPDATE t SET a = " + "(SELECT " * DEEP + "1" + ")" * DEEP,
        "INSERT INTO t " + "SELECT * FROM (" * DEEP + "SELECT 1, 2" + ") x" * DEEP,
        "UPDATE t SET a = " + "CASE WHEN 1 THEN " * DEEP + "1" + " END" * DEEP,
        "UPDATE t SET b = " + "CONCAT(" * DEEP + "1" + ")" * DEEP,
        "UPDATE t SET a = " + "NOT " * DEEP + "1",
    ],
)
def test_deep_nesting_does_not_stop_the_check(sql: str, server: str) -> None:
    deep, after = check(f"{sql}; INSERT INTO nowhere VALUES (1)", schema=SCHEMA, server=server)
    assert "fault" not in (deep.result.unanalysed.reason if deep.result.unanalysed else "")
    assert kinds(after) == [Kind.UNANALYSED]


def test_deep_blocks_are_not_followed() -> None:
    body = "BEGIN " * DEEP + "INSERT INTO t VALUES (1, 'a'); " + "END; " * (DEEP - 1) + "END"
    script = f"DELIMITER //\nCREATE PROCEDURE deep() {body}//\nCALL deep()//\n"
    assert Kind.UNANALYSED in kinds(last(script))


def test_views_of_views_are_opened_up_to_a_limit() -> None:
    views = "".join(
        f"CREATE VIEW v{one} AS SELECT x.a FROM v{one - 1} x JOIN v{one - 1} y;"
        for one in range(1, 40)
    )
    script = f"CREATE VIEW v0 AS SELECT a FROM t; {views} INSERT INTO t SELECT a, 'b' FROM v39;"
    assert kinds(last(script)) == [Kind.UNANALYSED]


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t VALUES (1, '" + "x" * 5_000_000 + "')",
        "INSERT INTO t /*" + "x" * 5_000_000 + "*/ VALUES (1, 'a')",
        "INSERT INTO t /*! " + " " * 5_000_000 + "*/ VALUES (1, 'a')",
        "INSERT INTO t VALUES " + ",".join(f"({one},'row')" for one in range(200_000)),
        ";" * 100_000 + "SELECT 1",
    ],
)
def test_long_scripts_take_no_long_time(sql: str) -> None:
    start = time.process_time()
    assert kinds(last(sql)) == []
    assert time.process_time() - start < 10


@SERVERS
@pytest.mark.parametrize(
    "script",
    [
        b"XA START 'a\xb7'; INSERT INTO t VALUES (1, '\xff'); XA END 'a\xb7'; XA COMMIT 'a\xb7' ONE PHASE",
        b"UPDATE t SET b = '\xc3\x28' WHERE a = 1",
        b"\0\0",
        b"SELECT '\0'",
    ],
)
def test_any_bytes_are_taken(script: bytes, server: str) -> None:
    checker = Checker(Server.parse(server), SCHEMA)
    assert all(kinds(found) == [] for found in checker.check(script))
