"""What a statement uses of its session's context."""

from __future__ import annotations

import pytest

from binlane.live.port.context_use import ContextUse, KnownUses
from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.statements.policy.server import Server
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.reading import read

SCHEMA = """
CREATE DATABASE d; USE d;
CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(20));
CREATE TABLE now6 (id INT PRIMARY KEY, c TIMESTAMP(6) NULL DEFAULT CURRENT_TIMESTAMP(6));
CREATE TABLE now0 (id INT PRIMARY KEY, c TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE upd6 (id INT PRIMARY KEY, a INT,
    c TIMESTAMP(6) NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP(6));
CREATE TABLE dates (id INT PRIMARY KEY, dd DATETIME);
CREATE TABLE parent (id INT PRIMARY KEY);
CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id));
CREATE TABLE noted (id INT PRIMARY KEY);
CREATE TABLE notes (n TIMESTAMP(6) NULL);
CREATE TRIGGER noting BEFORE INSERT ON noted FOR EACH ROW INSERT INTO notes VALUES (NOW(6));
CREATE TABLE setting (id INT PRIMARY KEY);
CREATE TRIGGER sets BEFORE INSERT ON setting FOR EACH ROW SET @@sql_mode = '';
CREATE PROCEDURE p1() INSERT INTO t (a) VALUES (NOW(6));
CREATE PROCEDURE p2() CALL p1();
CREATE PROCEDURE p3() SET time_zone = '+00:00';
CREATE PROCEDURE p4() SET @x = 1;
CREATE PROCEDURE p5() CREATE TEMPORARY TABLE made (a INT);
CREATE VIEW v AS SELECT id, NOW(6) AS n FROM t;
CREATE DATABASE e;
CREATE TABLE e.t (id INT PRIMARY KEY);
"""


def use_of(statement: str, flavor: str = "mariadb:10.11", *before: str) -> ContextUse:
    server = Server.parse(flavor)
    objects = SchemaCatalog(Flavor(server.flavor))
    objects.load(SCHEMA)
    session = Session(server=server, objects=objects, database="d")
    for one in before:
        session.execute(one)
    facts = read(statement, database="d", dialect=session.dialect)
    return KnownUses().of(facts, session, None)


@pytest.mark.parametrize(
    "statement, mariadb, mysql",
    [
        # zone, has microseconds, needs them
        ("INSERT INTO t (a) VALUES ('x')", "---", "---"),
        ("INSERT INTO t (a) VALUES (NOW())", "zh-", "z--"),
        ("INSERT INTO t (a) VALUES (NOW(0))", "zh-", "z--"),
        ("INSERT INTO t (a) VALUES (NOW(3))", "zhn", "zhn"),
        ("INSERT INTO t (a) VALUES (CURRENT_TIMESTAMP)", "zh-", "z--"),
        ("INSERT INTO t (a) VALUES (UTC_TIMESTAMP(2))", "-hn", "-hn"),
        ("INSERT INTO t (a) VALUES (UNIX_TIMESTAMP())", "---", "---"),
        ("INSERT INTO t (a) VALUES (UNIX_TIMESTAMP('2020-01-01'))", "z--", "z--"),
        ("INSERT INTO t (a) VALUES (@@time_zone)", "z--", "z--"),
        ("INSERT INTO t (a) VALUES (@@timestamp)", "-hn", "-hn"),
        ("INSERT INTO now6 (id) VALUES (1)", "-hn", "-hn"),
        ("INSERT INTO now6 (id, c) VALUES (1, '2020-01-01')", "z--", "z--"),
        ("INSERT INTO now0 (id) VALUES (1)", "---", "---"),
        ("UPDATE upd6 SET a = 1", "-hn", "-hn"),
        ("UPDATE now6 SET id = 2", "---", "---"),
        ("DELETE FROM now6 WHERE c < '2020-01-01'", "z--", "z--"),
        ("INSERT INTO dates (id, dd) VALUES (1, '2020-01-01')", "---", "z--"),
        ("INSERT INTO noted VALUES (1)", "zhn", "zhn"),
        ("INSERT INTO t (a) SELECT n FROM v", "zhn", "zhn"),
    ],
)
def test_time(statement: str, mariadb: str, mysql: str) -> None:
    for flavor, wanted in (("mariadb:10.11", mariadb), ("mysql:9.7", mysql)):
        use = use_of(statement, flavor)
        found = (
            ("z" if use.time_zone else "-")
            + ("h" if use.has_microseconds else "-")
            + ("n" if use.needs_microseconds else "-")
        )
        assert found == wanted, flavor


def test_newer_mariadb_logs_the_microseconds_of_every_default_that_is_the_time() -> None:
    assert not use_of("INSERT INTO now0 (id) VALUES (1)").has_microseconds
    assert use_of("INSERT INTO now0 (id) VALUES (1)", "mariadb:11.8").has_microseconds


def test_a_temporary_table_has_no_rows_that_tell_the_second() -> None:
    create = "CREATE TEMPORARY TABLE tt (a INT)"

    assert use_of("INSERT INTO tt VALUES (NOW())", "mariadb:10.11", create).needs_microseconds
    assert not use_of("INSERT INTO tt VALUES (1)", "mariadb:10.11", create).needs_microseconds


def test_history_is_ordered_by_the_clock_of_the_source() -> None:
    create = "CREATE TABLE sv (a INT) WITH SYSTEM VERSIONING"

    assert use_of("INSERT INTO sv VALUES (1)", "mariadb:10.11", create).needs_server_time


@pytest.mark.parametrize(
    "statement, databases",
    [
        ("INSERT INTO t (a) VALUES (1)", ("d",)),
        ("INSERT INTO e.t VALUES (1)", ("e",)),
        ("UPDATE t, e.t AS o SET t.a = 1, o.id = 2", ("d", "e")),
        ("INSERT INTO parent VALUES (1)", None),
        ("INSERT INTO child VALUES (1, 1)", None),
        ("DELETE FROM child", ("d",)),
        ("DELETE FROM parent", None),
    ],
)
def test_databases(statement: str, databases: tuple[str, ...] | None) -> None:
    assert use_of(statement, "mysql:9.7").databases == databases


def test_tables_that_an_update_sets_columns_of() -> None:
    assert use_of("UPDATE t SET a = 1", "mysql:9.7").updated_tables == 1
    assert use_of("UPDATE t SET a = 1").updated_tables == 0
    joined = "UPDATE parent, t SET t.a = 1 WHERE t.id = parent.id"
    assert use_of(joined).updated_tables == 2


@pytest.mark.parametrize(
    "statement, is_specific",
    [
        ("INSERT INTO t (a) VALUES (1)", False),
        ("INSERT INTO t (a) VALUES (CONNECTION_ID())", True),
        ("INSERT INTO t (a) SELECT a FROM tt", True),
        ("CREATE TEMPORARY TABLE other (a INT)", True),
        ("DROP TEMPORARY TABLE tt", True),
        ("CALL p4()", False),
        ("CALL p5()", True),
        ("DELETE t FROM t, parent WHERE t.id = parent.id", True),
    ],
)
def test_what_belongs_to_the_connection(statement: str, *, is_specific: bool) -> None:
    use = use_of(statement, "mariadb:10.11", "CREATE TEMPORARY TABLE tt (a INT)")

    assert use.is_thread_specific is is_specific


def test_programs() -> None:
    assert use_of("CALL p2()").routines == (TableName("d", "p2"), TableName("d", "p1"))
    assert use_of("CALL p2()").is_program
    assert use_of("CALL p2()").needs_microseconds
    assert use_of("CALL p3()").changes_session
    assert not use_of("CALL p4()").changes_session
    assert use_of("CALL p4()").sets_user_variables == {"x"}
    assert not use_of("CALL nobody_knows_it()").is_known
    assert use_of("INSERT INTO setting VALUES (1)").changes_session
    assert not use_of("INSERT INTO noted VALUES (1)").changes_session


def test_a_prepared_statement_uses_what_its_text_uses() -> None:
    prepare = "PREPARE s FROM 'INSERT INTO t (a) VALUES (NOW(6))'"

    assert use_of("EXECUTE s", "mariadb:10.11", prepare).needs_microseconds
    assert not use_of("EXECUTE s", "mariadb:10.11", prepare).is_program
    assert not use_of("EXECUTE other", "mariadb:10.11", prepare).is_known
    assert not use_of("EXECUTE IMMEDIATE CONCAT('DO ', 1)").is_known


@pytest.mark.parametrize(
    "statement, may_skip",
    [
        ("INSERT INTO t (a) VALUES (1)", False),
        ("REPLACE INTO t (a) VALUES (1)", False),
        ("INSERT IGNORE INTO t (a) VALUES (1)", True),
        ("INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 2", True),
        ("LOAD DATA LOCAL INFILE 'f' INTO TABLE t", True),
    ],
)
def test_rows_that_may_be_left_out(statement: str, *, may_skip: bool) -> None:
    assert use_of(statement).may_skip_rows is may_skip


def test_values_for_one_statement() -> None:
    assert use_of("SET STATEMENT sql_mode = '' FOR INSERT INTO t (a) VALUES (1)").sets_context
    harmless = "SET STATEMENT max_statement_time = 1 FOR INSERT INTO t (a) VALUES (1)"
    assert not use_of(harmless).sets_context


def test_what_the_last_statement_left() -> None:
    assert use_of("INSERT INTO t (a) VALUES (ROW_COUNT())").reads_diagnostics
    assert use_of("INSERT INTO t (a) VALUES (@@warning_count)").reads_diagnostics
    assert not use_of("INSERT INTO t (a) VALUES (1)").reads_diagnostics


def test_known_uses_hold_for_one_version_of_the_objects() -> None:
    server = Server.parse("mariadb:10.11")
    objects = SchemaCatalog(Flavor.MARIADB)
    objects.load(SCHEMA)
    session = Session(server=server, objects=objects, database="d")
    uses, first, second = KnownUses(), object(), object()
    facts = read("INSERT INTO t (id) VALUES (1)", database="d", dialect=session.dialect)
    assert not uses.of(facts, session, first).needs_microseconds
    change = "ALTER TABLE t ADD c TIMESTAMP(6) NULL DEFAULT CURRENT_TIMESTAMP(6)"
    assert session.execute(change).error is None

    assert not uses.of(facts, session, first).needs_microseconds
    assert uses.of(facts, session, second).needs_microseconds
