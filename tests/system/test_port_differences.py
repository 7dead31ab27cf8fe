"""What clients are told through the port is what the server tells: rows, errors, warnings.

Each case runs at the server itself and through its port, in a session and a database of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pymysql
import pytest
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from tests.suites.places import BINLOGS, PLAIN, Place, place

_DATABASE: Final = "told"
_BROKEN_BODY: Final = "UPDATE mysql.proc SET body = 'bogus' WHERE db = DATABASE() AND name = '{}'"
_DEFINER: Final = "ALTER TABLE mysql.proc MODIFY definer {} COLLATE utf8mb3_bin NOT NULL DEFAULT ''"
_TRIGGER: Final = "CREATE TRIGGER {} BEFORE INSERT ON t FOR EACH ROW SET @a = 1"

CASES: Final = {
    "an empty name for an empty string": (
        "SET sql_mode = ansi",
        "PREPARE p FROM 'SELECT 1'",
        'SELECT ""',
        'SET sql_mode = ""',
        "EXECUTE p",
        "SELECT @@sql_mode",
    ),
    "warnings of what is not understood": (
        "CREATE TABLE t (a INT)",
        "INSERT INTO t VALUES (1 + '2x')",
        "SELECT 1 + '2x'",
        "SHOW WARNINGS",
        "SELECT @@warning_count",
    ),
    "warnings of a rollback": (
        "CREATE TABLE t (a INT) ENGINE = MyISAM",
        "BEGIN",
        "INSERT INTO t VALUES (1)",
        "ROLLBACK",
        "SELECT @@warning_count",
        "SHOW WARNINGS",
    ),
    "warnings of a procedure": (
        "CREATE PROCEDURE made() CREATE TABLE IF NOT EXISTS t (a INT)",
        "CREATE TABLE t (a INT)",
        "CALL made()",
        "SHOW WARNINGS",
        "CALL made()",
        "SELECT @@warning_count",
    ),
    "the trace of the optimizer": (
        "CREATE TABLE t (a INT, KEY (a))",
        "INSERT INTO t VALUES (1)",
        "SET optimizer_trace = 'enabled=on'",
        "SELECT a FROM t",
        "SELECT query FROM information_schema.optimizer_trace",
        "SET NAMES latin1",
        "SELECT a FROM t WHERE a = 3",
        "SELECT query FROM INFORMATION_SCHEMA.OPTIMIZER_TRACE",
    ),
    "an empty alias": (
        "CREATE PROCEDURE named(t INT) BEGIN SELECT t AS ``; SELECT t ``; END",
        "CALL named(1)",
        "DROP PROCEDURE named",
    ),
    "a procedure with the wrong number of arguments": (
        "CREATE PROCEDURE one(t INT) SELECT t",
        "CALL one()",
        "CALL one(1, 2)",
    ),
}
MARIADB_CASES: Final = {
    "DEFAULT and IGNORE for parameters": (
        "CREATE TABLE t (a INT PRIMARY KEY DEFAULT 0, b INT DEFAULT 3)",
        "PREPARE p FROM 'REPLACE INTO t VALUES (?, ?)'",
        "EXECUTE p USING 1, DEFAULT",
        "EXECUTE p USING 2, IGNORE",
        "EXECUTE p USING DEFAULT, 4",
        "EXECUTE IMMEDIATE 'INSERT INTO t VALUES (? + 1, 1)' USING IGNORE",
        "SELECT * FROM t",
    ),
    "a stored function that aggregates": (
        (
            "CREATE AGGREGATE FUNCTION total(x INT) RETURNS INT DETERMINISTIC BEGIN"
            " DECLARE s INT DEFAULT 0; DECLARE CONTINUE HANDLER FOR NOT FOUND RETURN s;"
            " LOOP FETCH GROUP NEXT ROW; SET s = s + x; END LOOP; END"
        ),
        "CREATE TABLE t (a INT)",
        "INSERT INTO t VALUES (1), (2)",
        "PREPARE p FROM 'SELECT total(a) FROM t WHERE a > ?'",
        "EXECUTE p USING 0",
        "EXECUTE p USING 5",
        "EXECUTE p USING 1",
        (
            "CREATE AGGREGATE FUNCTION endless(x INT) RETURNS INT DETERMINISTIC BEGIN"
            " DECLARE CONTINUE HANDLER FOR NOT FOUND SET @a = 1;"
            " LOOP FETCH GROUP NEXT ROW; END LOOP; RETURN 0; END"
        ),
        "SELECT endless(a) FROM t",
        "INSERT INTO t SELECT total(a) FROM t",
        "SELECT a FROM t ORDER BY a",
    ),
    "a view that a temporary table hides": (
        "CREATE TABLE t (a INT)",
        "CREATE VIEW v AS SELECT * FROM t",
        "CREATE TEMPORARY TABLE v (b INT)",
        "PREPARE p FROM 'SELECT 1'",
        "DROP VIEW v",
        "EXECUTE p",
        "DROP TABLE v",
        "DROP VIEW v",
        "EXECUTE p",
    ),
    "a temporary table that hides one in use": (
        "CREATE TABLE t (a INT)",
        "CREATE PROCEDURE makes() CREATE TEMPORARY TABLE t AS SELECT 'abc' AS a",
        "CREATE FUNCTION calls() RETURNS INT DETERMINISTIC BEGIN CALL makes(); RETURN 1; END",
        "PREPARE p FROM 'SELECT COUNT(*), calls() FROM t'",
        "PREPARE q FROM 'SELECT 1'",
        "EXECUTE p",
        "EXECUTE q",
    ),
    "what prepared DDL has changed": (
        "PREPARE c FROM 'CREATE EVENT e ON SCHEDULE EVERY 1 DAY DISABLE DO SET @a = 1'",
        "PREPARE a FROM 'ALTER EVENT e COMMENT \"x\"'",
        "DROP EVENT IF EXISTS e",
        "EXECUTE c",
        "EXECUTE c",
        "EXECUTE a",
        "EXECUTE a",
        "DROP EVENT e",
    ),
    "a table that a trigger writes and that changed": (
        "CREATE TABLE t (a INT)",
        "CREATE TRIGGER fires AFTER INSERT ON t FOR EACH ROW INSERT INTO u (a) VALUES (NEW.a)",
        "CREATE TABLE u (a INT)",
        "PREPARE p FROM 'INSERT INTO t VALUES (?)'",
        "SET @a = 1",
        "EXECUTE p USING @a",
        "ALTER TABLE u ADD b INT",
        "EXECUTE p USING @a",
        "SELECT * FROM u",
    ),
    "the trace of what is prepared": (
        "CREATE TABLE t (a INT, KEY (a))",
        "SET optimizer_trace = 'enabled=on'",
        "SET @text = 'EXPLAIN SELECT a FROM t'",
        "PREPARE p FROM @text",
        "EXECUTE p",
        "SET @trace = (SELECT query FROM information_schema.optimizer_trace)",
        "SELECT @trace",
    ),
    "a procedure in swe7": (
        "CREATE TABLE t (a INT)",
        "SET NAMES swe7",
        "CREATE PROCEDURE inserts(a INT) BEGIN SET @a = a; INSERT INTO t VALUES (@a); END",
        "CALL inserts(3)",
        "SELECT a FROM t",
        "DROP PROCEDURE inserts",
    ),
    "parameters of LIMIT that are no numbers": (
        "PREPARE p FROM 'SELECT seq FROM seq_1_to_9 LIMIT ?'",
        "SET @n = 'qwe', @m = -1, @o = '2x'",
        "EXECUTE p USING @n",
        "EXECUTE p USING @m",
        "EXECUTE p USING @o",
    ),
    "a broken table of routines": (
        "CREATE TABLE t (a INT)",
        _DEFINER.format("CHAR(77)"),
        "FLUSH PRIVILEGES",
        "SELECT USER()",
        "INSERT INTO t VALUES (1)",
        "CALL one()",
        _DEFINER.format("VARCHAR(384)"),
        "DROP TABLE t",
    ),
    "views whose collations do not go with those of who asks": (
        "SET collation_connection = ucs2_general_ci",
        "CREATE VIEW v AS SELECT LPAD(HEX(seq), 4, '0') AS a FROM seq_1_to_3",
        "SELECT * FROM v",
        "DROP VIEW v",
    ),
    "a parameter in GROUP_CONCAT": (
        "PREPARE p FROM 'SELECT GROUP_CONCAT(seq LIMIT ?) FROM seq_1_to_9'",
        "SET @n = 4",
        "EXECUTE p USING @n",
        "EXECUTE p USING @n",
    ),
    "texts that expressions give": (
        "CREATE TABLE t (a INT, b TEXT)",
        "SET @v = 3, @@sql_mode = ''",
        "EXECUTE IMMEDIATE SFORMAT('INSERT INTO t VALUES ({}, ''a\\\\é'')', @v)",
        "EXECUTE IMMEDIATE CONCAT('INSERT INTO t VALUES (', @v, ', ?)') USING 'c'",
        """PREPARE p FROM CONCAT('INSERT INTO t VALUES (0, "', HEX(REPEAT('ab', 2)), '")')""",
        "EXECUTE p",
        "EXECUTE IMMEDIATE _binary 'SELECT 1'",
        "EXECUTE IMMEDIATE CONCAT(@v, NULL)",
        "EXECUTE IMMEDIATE CONCAT('')",
        "EXECUTE IMMEDIATE CONCAT('SELEC', 'T')",
        "EXECUTE IMMEDIATE 1 + 1",
        "EXECUTE IMMEDIATE (SELECT 1)",
        "PREPARE p FROM (SELECT a FROM t)",
        "EXECUTE IMMEDIATE nonesuch()",
        "EXECUTE IMMEDIATE SFORMAT('{} {}', 1)",
        "SELECT * FROM t",
        "DROP TABLE t",
    ),
    "bytes that belong to no character": (
        "SET NAMES big5",
        "CREATE TABLE t (a TEXT CHARACTER SET big5)",
        "INSERT INTO t VALUES ('\udcf9\udcd8')",
        "INSERT INTO t VALUES ('\udcf9')",
        "SELECT `\udcff` FROM t",
        "SELEC '\udcff'",
        "SELECT HEX(a) FROM t",
        "EXECUTE IMMEDIATE CONCAT('SET STATEMENT ', _big5 0xF9D8, '=1 FOR SELECT 1')",
        "DROP TABLE t",
    ),
    "what PROCEDURE ANALYSE says, prepared": (
        "CREATE TABLE t (a INT)",
        "PREPARE p FROM 'SELECT * FROM t PROCEDURE ANALYSE()'",
        "EXECUTE p",
        "EXECUTE p",
        "DROP TABLE t",
    ),
    "temporary tables under new names": (
        "CREATE TEMPORARY TABLE t (a INT)",
        "ALTER TABLE t RENAME u",
        "INSERT INTO u VALUES (1)",
        "RENAME TABLE u TO t",
        "SELECT * FROM t",
        "DROP TABLE t",
    ),
    "warnings of an EXPLAIN": (
        "EXPLAIN VALUES ((VALUES (2))) UNION VALUES ((SELECT 3))",
        "SHOW WARNINGS",
        "EXPLAIN VALUES ((VALUES (2))) UNION VALUES ((SELECT 3))",
        "SELECT @@warning_count",
    ),
    "predicates within BETWEEN": (
        "CREATE VIEW v AS SELECT 1 BETWEEN (2 BETWEEN 3 AND 4) AND 5",
        "CREATE OR REPLACE VIEW v AS SELECT 2 BETWEEN (1 BETWEEN 3 AND 4) AND 5",
        "SELECT * FROM v",
        "DROP VIEW v",
    ),
    "a compressed column of a character set": (
        "CREATE TABLE t (a TEXT COMPRESSED CHARSET ucs2, b VARCHAR(9) COMPRESSED BINARY)",
        "INSERT INTO t VALUES ('x', 'y')",
        "ALTER TABLE t ADD c INT",
        "SELECT * FROM t",
        "DROP TABLE t",
    ),
    "a procedure whose body is broken": (
        "CREATE TABLE t (a INT)",
        "CREATE PROCEDURE broken(a INT) SELECT 1",
        "CREATE FUNCTION lost() RETURNS INT RETURN 1",
        _BROKEN_BODY.format("broken"),
        _BROKEN_BODY.format("lost"),
        "CREATE TRIGGER fires BEFORE INSERT ON t FOR EACH ROW CALL broken()",
        "DROP TRIGGER fires",
        "DROP PROCEDURE broken",
        "DROP FUNCTION IF EXISTS lost",
        "CREATE PROCEDURE broken() SELECT 2",
        "CALL broken()",
    ),
    "no table of events": (
        "RENAME TABLE mysql.event TO mysql.event_away",
        "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 1",
        "ALTER EVENT e DISABLE",
        "DROP EVENT e",
        "DROP EVENT IF EXISTS e",
        "SHOW WARNINGS",
        "RENAME TABLE mysql.event_away TO mysql.event",
        "DROP EVENT e",
    ),
    "a purge before what is asked of tables": (
        "PURGE BINARY LOGS BEFORE (SELECT NOW())",
        "PURGE BINARY LOGS BEFORE (SELECT 1 FROM nonesuch)",
        "PURGE BINARY LOGS BEFORE ADDDATE('2000-01-01', INTERVAL (SELECT 1) DAY)",
        "PURGE BINARY LOGS BEFORE EXISTS (SELECT 1)",
        "PURGE BINARY LOGS BEFORE '2000-01-01'",
    ),
    "no table of accounts": (
        "CREATE TABLE t (a INT)",
        "CREATE PROCEDURE one() SELECT 1",
        "RENAME TABLE mysql.global_priv TO mysql.global_priv_away",
        "CREATE USER nobody",
        "INSERT INTO t VALUES (1)",
        "CALL one()",
        "RENAME TABLE mysql.global_priv_away TO mysql.global_priv",
        "FLUSH PRIVILEGES",
        "CREATE USER nobody",
        "DROP USER nobody",
    ),
}


@pytest.fixture(
    scope="module",
    params=[(flavor, kind) for flavor in ("mariadb", "mysql") for kind in (PLAIN, BINLOGS)],
    ids="-".join,
)
def port(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Place, dict[str, tuple[str, ...]]]]:
    """A port, and the cases of its flavor."""
    flavor, kind = request.param
    directory = tmp_path_factory.mktemp("differences")
    with place(kind, directory, flavor=flavor, scope=_DATABASE) as found:
        yield found, CASES if flavor == "mysql" else {**CASES, **MARIADB_CASES}


def _make_database(port: int) -> None:
    with _connected(port) as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {_DATABASE}")
        cursor.execute(f"CREATE DATABASE {_DATABASE}")


def _told(port: int, statements: Sequence[str]) -> list[object]:
    """What a session is told of each statement: results with their warnings' number, or an error."""
    told: list[object] = []
    with _connected(port, _DATABASE) as connection, connection.cursor() as cursor:
        for statement in statements:
            try:
                # Bytes are sent as they are.
                cursor.execute(statement.encode(errors="surrogateescape"))  # type: ignore[call-overload]
                told.append((statement, *_result(cursor)))
                while cursor.nextset():
                    told.append(_result(cursor))
            except pymysql.Error as error:
                told.append((statement, error.args, getattr(error, "sqlstate", None)))
    return told


def _connected(port: int, database: str | None = None) -> Connection[Cursor]:
    # It sets nothing of its own, so that what a case has is the first that the session does.
    return pymysql.connect(
        host="127.0.0.1",
        port=port,
        user="root",
        database=database,
        autocommit=None,
        ssl_disabled=True,
    )


def _result(cursor: Cursor) -> tuple[object, ...]:
    return cursor.warning_count, cursor.rowcount, cursor.fetchall()


def test_what_is_told_through_the_port_is_what_the_server_tells(
    port: tuple[Place, dict[str, tuple[str, ...]]],
) -> None:
    at, cases = port
    for name, statements in cases.items():
        told = []
        for each in (at.server.port, at.port):
            _make_database(each)
            told.append(_told(each, statements))
        direct, through = told
        assert through == direct, name


def test_a_table_that_nobody_can_open_is_checked_and_dropped(
    port: tuple[Place, dict[str, tuple[str, ...]]],
) -> None:
    at, cases = port
    if cases is CASES:
        pytest.skip("MySQL's tables have no such file")
    told = []
    for each in (at.server.port, at.port):
        _make_database(each)
        _told(
            each, ["CREATE TABLE t (a INT) ENGINE = MyISAM PARTITION BY HASH (a)", "FLUSH TABLES"]
        )
        (at.server.data_directory / _DATABASE / "t.par").unlink()
        told.append(_told(each, ["CHECK TABLE t", "SELECT * FROM t", "DROP TABLE t"]))
        for left in (at.server.data_directory / _DATABASE).glob("t#P#*"):
            left.unlink()
    direct, through = told
    assert through == direct


def test_broken_triggers_are_dropped(port: tuple[Place, dict[str, tuple[str, ...]]]) -> None:
    at, cases = port
    if cases is CASES:
        pytest.skip("MySQL's triggers have no such file")
    told = []
    for each in (at.server.port, at.port):
        _make_database(each)
        _told(each, ["CREATE TABLE t (a INT)", _TRIGGER.format("one"), _TRIGGER.format("two")])
        path = at.server.data_directory / _DATABASE / "t.TRG"
        path.write_text(path.read_text().replace("SET @a = 1", "SET @a = ="))
        drops = ["DROP TRIGGER two", "DROP TRIGGER one"]
        told.append(_told(each, ["FLUSH TABLE t", *drops, "INSERT INTO t VALUES (1)"]))
    direct, through = told
    assert through == direct
