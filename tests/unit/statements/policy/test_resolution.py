"""The tables that statements open, and what their texts raise, over a small schema."""

from __future__ import annotations

from typing import Any

import pytest

from binlane.log.codec.types import Flavor
from binlane.statements.policy.reasons import Reason
from binlane.statements.policy.resolution import Opening, ResolvedStatement, resolve
from binlane.statements.policy.server import Server
from binlane.statements.sql.catalog import SchemaCatalog
from tests.reading import read

MARIADB = Server.parse("mariadb")
MYSQL = Server.parse("mysql")
OLD_MYSQL = Server.parse("mysql:8.0.36")
SERVERS = [pytest.param(server, id=server.flavor) for server in (MARIADB, MYSQL)]
SCHEMA = """
CREATE DATABASE d;
USE d;
CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(100)) ENGINE=InnoDB;
CREATE TABLE s (a INT PRIMARY KEY, c VARCHAR(100)) ENGINE=InnoDB;
CREATE TABLE m (a INT PRIMARY KEY, b VARCHAR(100)) ENGINE=MyISAM;
CREATE TABLE log (k INT AUTO_INCREMENT PRIMARY KEY, b VARCHAR(100)) ENGINE=InnoDB;
CREATE TABLE fired (a INT PRIMARY KEY) ENGINE=InnoDB;
CREATE TABLE parent (a INT PRIMARY KEY) ENGINE=InnoDB;
CREATE TABLE child (a INT PRIMARY KEY, p INT,
    FOREIGN KEY (p) REFERENCES parent(a) ON DELETE CASCADE) ENGINE=InnoDB;
CREATE TABLE grandchild (a INT PRIMARY KEY, p INT,
    FOREIGN KEY (p) REFERENCES child(a) ON DELETE SET NULL) ENGINE=InnoDB;
CREATE TABLE restricting (a INT PRIMARY KEY, p INT,
    FOREIGN KEY (p) REFERENCES grandchild(a)) ENGINE=InnoDB;
CREATE TABLE made (a INT PRIMARY KEY, b VARCHAR(40) DEFAULT (uuid())) ENGINE=InnoDB;
CREATE TABLE two (a INT PRIMARY KEY, b INT UNIQUE, c INT) ENGINE=InnoDB;
CREATE VIEW v AS SELECT * FROM t;
CREATE VIEW vv AS SELECT * FROM v;
CREATE VIEW joined AS SELECT t.a x, t.b y, s.c z FROM t JOIN s ON t.a = s.a;
CREATE VIEW varied AS SELECT a, uuid() u FROM s;
CREATE VIEW gone AS SELECT * FROM t;
DELIMITER //
CREATE TRIGGER fires BEFORE INSERT ON fired FOR EACH ROW INSERT INTO log (b) VALUES (uuid())//
CREATE FUNCTION writes(x INT) RETURNS INT BEGIN INSERT INTO m VALUES (x, 1); RETURN x; END//
CREATE FUNCTION calls(x INT) RETURNS INT RETURN writes(x) + (SELECT MAX(a) FROM s)//
CREATE PROCEDURE p() INSERT INTO t VALUES (1, uuid())//
DELIMITER ;
"""


def catalog(server: Server) -> SchemaCatalog:
    objects = SchemaCatalog(Flavor(server.flavor))
    objects.load(SCHEMA)
    assert not objects.problems
    return objects


CATALOGS = {server: catalog(server) for server in (MARIADB, MYSQL, OLD_MYSQL)}


def resolved(statement: str, server: Server = MARIADB, **how: Any) -> ResolvedStatement:
    facts = read(statement, database="d")
    return resolve(facts, Opening(CATALOGS[server], server, "d", **how))


def tables(statement: str, server: Server = MARIADB) -> list[str]:
    """The lock list: `+` stands for a lock for writing, `*` for prelocked tables."""
    return [
        "+" * each.is_locked_for_write + "*" * each.is_prelocked + each.name.table
        for each in resolved(statement, server).accesses
    ]


def reasons(statement: str, server: Server = MARIADB) -> list[str]:
    return [found.reason.name for found in resolved(statement, server).reasons]


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize(
    "statement, expected",
    [
        ("INSERT INTO t VALUES (1, 2)", ["+t"]),
        ("INSERT INTO t SELECT * FROM s", ["+t", "s"]),
        ("REPLACE INTO t SELECT * FROM m WHERE a IN (SELECT a FROM s)", ["+t", "m", "s"]),
        ("UPDATE t SET b = (SELECT MAX(c) FROM s)", ["+t", "s"]),
        ("DELETE t FROM t JOIN s ON t.a = s.a", ["+t", "s"]),
        ("DELETE t, m FROM t JOIN m ON t.a = m.a", ["+t", "+m"]),
        ("UPDATE t, s SET t.b = s.c", ["+t", "s"]),
        ("UPDATE t x, s SET x.b = 1, s.c = 2", ["+t", "+s"]),
        ("UPDATE t, s SET c = 1 WHERE t.a = s.a", ["t", "+s"]),
        ("INSERT INTO v VALUES (1, 2)", ["+t"]),
        ("UPDATE vv SET b = 1", ["+t"]),
        ("UPDATE joined SET y = 1", ["+t", "s"]),
        ("UPDATE joined SET z = 1", ["t", "+s"]),
        ("INSERT INTO fired VALUES (1)", ["+fired", "+*log"]),
        ("DELETE FROM fired", ["+fired"]),
        ("SELECT writes(1)", ["+*m"]),
        ("INSERT INTO t VALUES (calls(1), 2)", ["+t", "*s", "+*m"]),
        ("SELECT * FROM t FOR UPDATE", ["+t"]),
        ("SELECT * FROM t LOCK IN SHARE MODE", ["t"]),
        ("WITH c AS (SELECT * FROM s) SELECT * FROM c", ["s"]),
        ("CALL p()", []),
        ("CREATE TABLE n SELECT * FROM s", ["+n", "s"]),
        ("TRUNCATE t", []),
        ("SELECT * FROM information_schema.tables", []),
    ],
)
def test_lock_lists(statement: str, expected: list[str], server: Server) -> None:
    assert tables(statement, server) == expected


def test_foreign_keys() -> None:
    assert tables("DELETE FROM parent", MARIADB) == ["+parent", "+*child", "+*grandchild"]
    # MySQL's server looks after them itself, and reads what may refuse the change.
    assert tables("DELETE FROM parent", MYSQL) == [
        "+parent",
        "+*child",
        "+*grandchild",
        "*restricting",
        "*child",
    ]
    assert tables("INSERT INTO child VALUES (1, 1)", MYSQL) == ["+child", "*parent"]
    assert tables("INSERT INTO child VALUES (1, 1)", MARIADB) == ["+child"]
    assert len(resolved("DELETE FROM parent", MYSQL, checks_foreign_keys=False).accesses) == 1


def test_mysql_opens_the_triggers_of_all_tables_that_an_update_joins() -> None:
    objects = catalog(MYSQL)
    objects.apply(
        "CREATE TRIGGER changed AFTER UPDATE ON s FOR EACH ROW INSERT INTO m VALUES (1, 2)",
        database="d",
    )
    facts = read("UPDATE t, s SET t.b = 1", database="d")
    found = resolve(facts, Opening(objects, MYSQL, "d")).accesses
    assert [each.name.table for each in found if each.is_locked_for_write] == ["t", "m"]


def test_how_a_statement_comes_to_a_table() -> None:
    statement = "INSERT INTO t VALUES (1, calls(5))"
    access = resolved(statement).accesses[-1]
    assert [(via.kind, via.name.plain) for via in access.via] == [
        ("function", "d.calls"),
        ("function", "d.writes"),
    ]
    assert statement[access.offset : access.offset + access.length] == "calls(5)"
    own = resolved(statement).accesses[0]
    assert statement[own.offset : own.offset + own.length] == "t"


# -- Reasons

BOTH_UNSAFE = [
    "FOUND_ROWS",
    "ROW_COUNT",
    "SLEEP",
    "SYSDATE",
    "LOAD_FILE",
    "GET_LOCK",
    "IS_FREE_LOCK",
    "IS_USED_LOCK",
    "RELEASE_LOCK",
    "USER",
    "SESSION_USER",
    "SYSTEM_USER",
    "UUID",
    "UUID_SHORT",
    "VERSION",
    "MASTER_POS_WAIT",
]
BOTH_SAFE = [
    "CONNECTION_ID",
    "CURDATE",
    "CURRENT_DATE",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "CURTIME",
    "LOCALTIME",
    "LOCALTIMESTAMP",
    "NOW",
    "UNIX_TIMESTAMP",
    "UTC_DATE",
    "UTC_TIME",
    "UTC_TIMESTAMP",
    "LAST_INSERT_ID",
]


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.rule(f"004:unsafe-function-{name}"), id=name)
        if name != "VERSION"
        else name
        for name in BOTH_UNSAFE
    ],
)
def test_unsafe_functions(name: str, server: Server) -> None:
    assert reasons(f"INSERT INTO t VALUES (1, {name}())", server) == ["SYSTEM_FUNCTION"]


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.rule(f"004:safe-function-{name}"), id=name)
        for name in BOTH_SAFE
    ],
)
def test_safe_functions(name: str, server: Server) -> None:
    assert reasons(f"INSERT INTO t VALUES (1, {name}())", server) == []


@pytest.mark.rule("004:unsafe-function-RAND")
@pytest.mark.parametrize(
    "statement, in_mariadb",
    [
        ("INSERT INTO t VALUES (1, RAND())", []),
        ("INSERT INTO t SELECT a, RAND() FROM s", []),
        ("REPLACE INTO t VALUES (1, RAND())", ["SYSTEM_FUNCTION"]),
        ("UPDATE t SET b = RAND()", ["SYSTEM_FUNCTION"]),
        (
            "INSERT INTO t SELECT a, c FROM s ON DUPLICATE KEY UPDATE b = RAND()",
            ["SYSTEM_FUNCTION", "INSERT_SELECT_UPDATE"],
        ),
    ],
)
def test_rand_in_insert_is_safe_in_mariadb(statement: str, in_mariadb: list[str]) -> None:
    assert reasons(statement, MARIADB) == in_mariadb
    assert "SYSTEM_FUNCTION" in reasons(statement, MYSQL)


@pytest.mark.rule("004:unsafe-system-variable")
@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize(
    "variable, is_unsafe",
    [
        ("@@hostname", True),
        ("@@sql_mode", True),
        ("@@time_zone", False),
        ("@@session.timestamp", False),
        ("@@global.time_zone", True),
        ("@@auto_increment_increment", False),
        ("@mine", False),
    ],
)
def test_system_variables(variable: str, is_unsafe: bool, server: Server) -> None:  # noqa: FBT001
    expected = ["SYSTEM_VARIABLE"] if is_unsafe else []
    assert reasons(f"INSERT INTO t VALUES (1, {variable})", server) == expected


@pytest.mark.rule("004:unsafe-limit")
def test_limit() -> None:
    for server in (MARIADB, MYSQL):
        assert reasons("DELETE FROM t LIMIT 1", server) == ["LIMIT"]
        assert reasons("INSERT INTO t SELECT * FROM s ORDER BY a LIMIT 1", server) == ["LIMIT"]
    assert reasons("INSERT INTO t SELECT * FROM s LIMIT 0", MARIADB) == []
    assert reasons("INSERT INTO t SELECT * FROM s LIMIT 0", MYSQL) == ["LIMIT"]


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize(
    "statement, expected",
    [
        ("INSERT IGNORE INTO t SELECT * FROM s", ["INSERT_IGNORE_SELECT"]),
        ("INSERT IGNORE INTO t VALUES (1, 2)", []),
        ("REPLACE INTO t SELECT * FROM s", ["REPLACE_SELECT"]),
        ("REPLACE INTO t VALUES (1, 2)", []),
        (
            "INSERT INTO t SELECT * FROM s ON DUPLICATE KEY UPDATE b = 1",
            ["INSERT_SELECT_UPDATE"],
        ),
        ("UPDATE IGNORE t SET b = 1", ["UPDATE_IGNORE"]),
        ("UPDATE IGNORE t, s SET t.b = 1", []),
        ("CREATE TABLE n (a INT PRIMARY KEY) IGNORE SELECT * FROM s", ["CREATE_IGNORE_SELECT"]),
        ("CREATE TABLE n (a INT PRIMARY KEY) REPLACE SELECT * FROM s", ["CREATE_REPLACE_SELECT"]),
        ("INSERT INTO t SELECT a, u FROM varied", ["SYSTEM_FUNCTION"]),
        ("INSERT INTO fired VALUES (1)", ["SYSTEM_FUNCTION"]),
        ("CREATE VIEW w AS SELECT uuid()", []),
    ],
)
def test_reasons_of_commands(statement: str, expected: list[str], server: Server) -> None:
    assert reasons(statement, server) == expected


@pytest.mark.rule("004:sub-statement-unsafe")
def test_what_raises_a_reason_is_named() -> None:
    statement = "INSERT INTO fired VALUES (1)"
    (found,) = resolved(statement).reasons
    assert found.reason is Reason.SYSTEM_FUNCTION
    assert found.what == "uuid()"
    assert [(via.kind, via.name.plain) for via in found.via] == [("trigger", "d.fires")]
    assert statement[found.offset : found.offset + found.length] == "fired"


@pytest.mark.rule("004:unsafe-udf")
@pytest.mark.parametrize("server", SERVERS)
def test_loadable_functions(server: Server) -> None:
    objects = catalog(server)
    objects.apply("CREATE FUNCTION loaded RETURNS INTEGER SONAME 'l.so'", database="d")
    facts = read("INSERT INTO t VALUES (1, loaded(2))", database="d")
    found = resolve(facts, Opening(objects, server, "d")).reasons
    assert [each.reason for each in found] == [Reason.UDF]


def test_locking_clauses() -> None:
    statement = "INSERT INTO t SELECT * FROM s FOR UPDATE SKIP LOCKED"
    assert reasons(statement, MARIADB) == ["SKIP_LOCKED"]
    assert reasons(statement, MYSQL) == ["SKIP_LOCKED"]
    statement = "INSERT INTO t SELECT * FROM s FOR UPDATE NOWAIT"
    assert reasons(statement, MARIADB) == []
    assert reasons(statement, MYSQL) == ["NOWAIT"]


@pytest.mark.parametrize(
    "statement, in_mysql",
    [
        ("INSERT INTO made (a) VALUES (1)", ["SYSTEM_FUNCTION"]),
        ("INSERT INTO made VALUES (1, 'x')", []),
        ("INSERT INTO made VALUES (1, DEFAULT)", ["SYSTEM_FUNCTION"]),
        ("UPDATE made SET b = DEFAULT", ["SYSTEM_FUNCTION"]),
        ("UPDATE made SET b = 'x'", []),
    ],
)
def test_defaults_that_vary(statement: str, in_mysql: list[str]) -> None:
    assert reasons(statement, MYSQL) == in_mysql
    # MariaDB asks it of the table when it decides.
    assert reasons(statement, MARIADB) == []
    assert resolved(statement, MARIADB).accesses[0].has_unsafe_default


@pytest.mark.parametrize(
    "statement, in_mariadb",
    [
        ("INSERT INTO two VALUES (1, 1, 1) ON DUPLICATE KEY UPDATE c = 2", True),
        ("INSERT INTO two (a, c) VALUES (1, 1) ON DUPLICATE KEY UPDATE c = 2", False),
        ("INSERT INTO two (a, c) VALUES (1, 1) ON DUPLICATE KEY UPDATE b = 2", True),
    ],
)
def test_several_unique_keys(statement: str, in_mariadb: bool) -> None:  # noqa: FBT001
    assert resolved(statement, MARIADB).accesses[0].has_several_unique_keys == in_mariadb
    assert resolved(statement, MYSQL).accesses[0].has_several_unique_keys


# -- What cannot be opened


def test_unknown_tables() -> None:
    found = resolved("INSERT INTO t SELECT * FROM nowhere")
    assert [(name.plain, offset) for name, offset in found.unknown_tables] == [("d.nowhere", 28)]
    (error,) = found.errors
    assert (error.errno, error.sqlstate) == (1146, "42S02")
    assert error.message == "Table 'd.nowhere' doesn't exist"
    assumed = resolved("SELECT * FROM nowhere", assume_engine="InnoDB")
    assert [each.name.plain for each in assumed.accesses] == ["d.nowhere"]
    assert not assumed.errors


def test_unknown_databases() -> None:
    assert resolved("SELECT * FROM x.y", MARIADB).errors[0].errno == 1146
    assert resolved("SELECT * FROM x.y", MYSQL).errors[0].errno == 1049


def test_views_that_cannot_be_opened() -> None:
    objects = catalog(MARIADB)
    objects.apply("DROP TABLE t", database="d")
    facts = read("SELECT * FROM gone", database="d")
    (error,) = resolve(facts, Opening(objects, MARIADB, "d")).errors
    assert error.errno == 1356
    assert error.message.startswith("View 'd.gone' references invalid table(s)")


def test_mysql_refuses_create_select_that_writes() -> None:
    (error,) = resolved("CREATE TABLE n SELECT writes(1)", MYSQL).errors
    assert error.message == "Can't update table 'm' while 'n' is being created."
    assert not resolved("CREATE TABLE n SELECT writes(1)", MARIADB).errors
