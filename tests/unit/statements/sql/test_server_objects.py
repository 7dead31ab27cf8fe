"""The catalog as the objects of a server: what a schema's script and a session's DDL make."""

from __future__ import annotations

import pytest

from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.statements.policy.used_objects import BodyUse, body_use
from binlane.statements.sql.accounts import ROOT, AccountName
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.schema import (
    CreationContext,
    ForeignKey,
    Routine,
    Table,
    Trigger,
    TriggerTime,
)


def server(*statements: str, flavor: Flavor = Flavor.MARIADB) -> SchemaCatalog:
    made = SchemaCatalog(flavor)
    made.apply("CREATE DATABASE d", database="")
    run(made, *statements)
    return made


def run(made: SchemaCatalog, *statements: str) -> None:
    for statement in statements:
        made.apply(statement, database="d")


def name(table: str) -> TableName:
    return TableName("d", table)


def table(made: SchemaCatalog, of: str) -> Table:
    found = made.table(name(of))
    assert found is not None
    return found


def keys(made: SchemaCatalog, of: str = "t") -> list[tuple[str, tuple[str, ...], bool]]:
    return [(key.name, key.columns, key.is_unique) for key in table(made, of).keys]


def test_a_script_with_everything() -> None:
    made = SchemaCatalog(Flavor.MARIADB)
    made.load(
        """
        CREATE DATABASE shop; USE shop;
        CREATE TABLE t (a INT PRIMARY KEY) ENGINE=MyISAM;
        INSERT INTO t VALUES (1);
        SET GLOBAL gtid_mode=ON, @@GLOBAL.binlog_format = 'ROW', SESSION x = 1;
        DELIMITER $$
        CREATE PROCEDURE p(IN x INT, OUT y VARCHAR(10)) NO SQL BEGIN SELECT 1; END $$
        CREATE FUNCTION f() RETURNS INT UNSIGNED DETERMINISTIC RETURN 1 $$
        CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET @a = 1 $$
        DELIMITER ;
        CREATE FUNCTION udf RETURNS STRING SONAME 'udf.so';
        CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 1;
        CREATE USER u@localhost IDENTIFIED BY 'x', 'v';
        CREATE VIEW w AS SELECT a FROM t;
        """
    )
    assert made.problems == []
    assert made.default_database == "shop"
    assert made.settings() == {"gtid_mode": "ON", "binlog_format": "ROW"}
    procedure = made.procedure(TableName("shop", "P"))
    assert procedure is not None
    assert [(each.name, each.type_text, each.direction) for each in procedure.parameters] == [
        ("x", "INT", "IN"),
        ("y", "VARCHAR(10)", "OUT"),
    ]
    assert procedure.body == "BEGIN SELECT 1; END"
    function = made.function(TableName("shop", "f"))
    assert function is not None
    assert function.returns == "INT UNSIGNED"
    (trigger,) = made.triggers(TableName("shop", "t"))
    assert (trigger.time, trigger.events, trigger.body) == (
        TriggerTime.BEFORE,
        frozenset({"INSERT"}),
        "SET @a = 1",
    )
    assert made.trigger(TableName("shop", "g")) == trigger
    assert made.is_loadable_function("UDF")
    assert made.event(TableName("shop", "E"))
    assert AccountName("u", "localhost") in made.accounts
    assert AccountName("v", "%") in made.accounts
    view = made.view(TableName("shop", "w"))
    assert view is not None
    assert view.facts.text == "SELECT a FROM t"
    assert view.facts.effects.reads == (TableName("shop", "t"),)


def test_problems_say_their_line() -> None:
    made = SchemaCatalog(Flavor.MARIADB)
    script = "CREATE TABLE t (a INT);\nCREATE TABLE u (a INT);\n\nALTER TABLE u\nADD b INT AFTER c;"
    made.load(script, database="d")
    (problem,) = made.problems
    assert (problem.line, problem.statement) == (4, "ALTER TABLE u\nADD b INT AFTER c")
    assert made.is_unknown(name("u"))
    assert not made.is_unknown(name("t"))
    made.load("CREATE TABLE v (a INT", database="d")
    assert len(made.problems) == 2


@pytest.mark.parametrize(
    "definition, expected",
    [
        ("a INT PRIMARY KEY, b INT UNIQUE", [("PRIMARY", "a", True), ("b", "b", True)]),
        ("a INT, KEY (a), KEY (a)", [("a", "a", False), ("a_2", "a", False)]),
        (
            "a INT, b INT, KEY k (b, a), PRIMARY KEY (a)",
            [("PRIMARY", "a", True), ("k", "ba", False)],
        ),
        ("a INT KEY, b INT NOT NULL, KEY (b), UNIQUE u (b)", None),
        ("a INT, CONSTRAINT c UNIQUE (a)", [("c", "a", True)]),
        ("a INT, UNIQUE KEY (a) USING BTREE COMMENT 'x'", [("a", "a", True)]),
        ("a TEXT, FULLTEXT KEY f (a) WITH PARSER ngram", [("f", "a", False)]),
        ("a TEXT, KEY (a(10) DESC)", [("a", "a", False)]),
    ],
)
def test_keys(definition: str, expected: list[tuple[str, str, bool]] | None) -> None:
    made = server(f"CREATE TABLE t ({definition})")
    if expected is None:
        expected = [("PRIMARY", "a", True), ("u", "b", True), ("b", "b", False)]
    assert keys(made) == [(key, tuple(columns), unique) for key, columns, unique in expected]


def test_keys_follow_alter_table() -> None:
    made = server(
        "CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY, b INT, c INT, KEY k (b, c))",
        "ALTER TABLE t ADD UNIQUE c (d), DROP COLUMN b, CHANGE c d INT",
    )
    assert keys(made) == [("PRIMARY", ("a",), True), ("c", ("d",), True), ("k", ("d",), False)]
    run(made, "ALTER TABLE t MODIFY a INT, DROP PRIMARY KEY, RENAME KEY c TO e, DROP KEY k")
    assert keys(made) == [("e", ("d",), True)]
    assert table(made, "t").auto_increment is None
    run(made, "CREATE UNIQUE INDEX i ON t (a, d)", "DROP INDEX e ON t")
    assert keys(made) == [("i", ("a", "d"), True)]
    run(made, "CREATE INDEX IF NOT EXISTS i ON t (d)", "ALTER TABLE t ADD PRIMARY KEY (a)")
    assert keys(made) == [("PRIMARY", ("a",), True), ("i", ("a", "d"), True)]


def test_engines_and_options() -> None:
    made = server(
        "SET GLOBAL default_storage_engine = myisam",
        "CREATE TABLE plain (a INT)",
        "CREATE TABLE t (a INT) ENGINE=InnoDB PARTITION BY HASH (a) PARTITIONS 2",
        "CREATE TABLE aria (a INT) ENGINE=Aria TRANSACTIONAL=0",
        "CREATE TABLE m (a INT) ENGINE=MERGE UNION=(plain, other.x)",
        "CREATE TABLE alike LIKE aria",
        "CREATE SEQUENCE s ENGINE=Aria",
    )
    made.apply("CREATE TABLE session (a INT)", database="d", engine="heap")
    assert table(made, "plain").engine == "MYISAM"
    assert table(made, "session").engine == "MEMORY"
    assert table(made, "t").partitioning
    assert not table(made, "alike").is_transactional_option
    assert table(made, "m").engine == "MRG_MYISAM"
    assert table(made, "m").union == (name("plain"), TableName("other", "x"))
    assert (table(made, "s").engine, table(made, "s").is_sequence) == ("ARIA", True)
    run(made, "ALTER TABLE t ENGINE = aria, TRANSACTIONAL = 1 REMOVE PARTITIONING")
    altered = table(made, "t")
    assert (altered.engine, altered.partitioning, altered.is_transactional_option) == (
        "ARIA",
        "",
        True,
    )


def test_foreign_keys() -> None:
    made = server(
        "CREATE TABLE p (id INT PRIMARY KEY)",
        """CREATE TABLE c (a INT, b INT REFERENCES p (id), CONSTRAINT x FOREIGN KEY y (a)
        REFERENCES p (id) ON DELETE SET NULL ON UPDATE CASCADE)""",
        "CREATE TABLE none (a INT, FOREIGN KEY (a) REFERENCES p (id)) ENGINE=MyISAM",
    )
    first, second = made.children(name("p"))
    assert (first.columns, first.on_delete, first.on_update) == (("b",), "RESTRICT", "RESTRICT")
    assert second == ForeignKey(
        table=name("c"),
        columns=("a",),
        parent=name("p"),
        on_delete="SET NULL",
        on_update="CASCADE",
        name="x",
        parent_columns=("id",),
    )
    assert {key for key, _, _ in keys(made, "c")} == {"x", "b"}
    run(made, "ALTER TABLE c DROP FOREIGN KEY x", "RENAME TABLE p TO q")
    assert [key.columns for key in made.children(name("q"))] == [("b",)]


def test_columns_know_their_defaults() -> None:
    made = server(
        """CREATE TABLE t (a INT DEFAULT -1, b VARCHAR(40) DEFAULT uuid() NOT NULL,
        c DATETIME DEFAULT now() ON UPDATE current_timestamp(), g INT AS (a + 1) STORED,
        h BINARY(2) DEFAULT x'4142', i INT)"""
    )
    columns = {column.name: column for column in table(made, "t").definition.columns}
    assert [(each.default, each.has_default_expression) for each in columns.values()] == [
        ("-1", False),
        ("uuid()", True),
        ("CURRENT_TIMESTAMP", True),
        (None, False),
        ("x'4142'", False),
        (None, False),
    ]
    assert columns["c"].on_update == "CURRENT_TIMESTAMP"
    assert (columns["g"].generated, columns["g"].is_stored) == ("a + 1", True)
    assert [columns[each].is_nullable for each in ("a", "b")] == [True, False]
    run(made, "ALTER TABLE t ALTER i SET DEFAULT (uuid()), ALTER COLUMN a DROP DEFAULT")
    columns = {column.name: column for column in table(made, "t").definition.columns}
    assert (columns["i"].default, columns["i"].has_default_expression) == ("(uuid())", True)
    assert columns["a"].default is None


def test_temporary_tables_hide_others() -> None:
    made = server(
        "CREATE TABLE t (a INT)",
        "CREATE TRIGGER g AFTER INSERT ON t FOR EACH ROW SET @a = 1",
        "CREATE TEMPORARY TABLE t (b INT) ENGINE=MyISAM",
        "CREATE TEMPORARY TABLE u LIKE t",
    )
    assert table(made, "t").is_temporary
    assert table(made, "u").engine == "MYISAM"
    assert made.triggers(name("t")) == ()
    base = made.base_table(name("t"))
    assert base is not None
    assert not base.is_temporary
    assert [each.name.table for each in made.temporary_tables()] == ["t", "u"]
    run(made, "ALTER TABLE t ADD c INT", "DROP TABLE t")
    assert [column.name for column in table(made, "t").definition.columns] == ["a"]
    run(made, "DROP TEMPORARY TABLE t")
    assert not table(made, "t").is_temporary
    run(made, "ALTER TABLE u RENAME TO v")
    assert table(made, "v").is_temporary
    made.drop_temporary_tables()
    assert made.table(name("v")) is None


def test_copies_change_by_themselves() -> None:
    made = server("CREATE TABLE t (a INT)")
    other = made.copy()
    run(other, "DROP TABLE t", "CREATE TABLE u (a INT)", "SET GLOBAL x = 1")
    assert made.table(name("t")) is not None
    assert made.table(name("u")) is None
    assert made.settings() == {}


def test_triggers_have_an_order_and_follow_their_table() -> None:
    create = "CREATE TRIGGER {} BEFORE INSERT ON t FOR EACH ROW {} SET @a = 1"
    made = server(
        "CREATE TABLE t (a INT)",
        create.format("one", ""),
        create.format("two", ""),
        create.format("zero", "PRECEDES one"),
        create.format("half", "FOLLOWS one"),
    )
    assert [each.name.table for each in made.triggers(name("t"))] == ["zero", "one", "half", "two"]
    run(made, "RENAME TABLE t TO u", "DROP TRIGGER half")
    assert [each.name.table for each in made.triggers(name("u"))] == ["zero", "one", "two"]
    assert all(each.table == name("u") for each in made.triggers(name("u")))
    run(made, "DROP TABLE u")
    assert made.trigger(name("one")) is None


def test_if_exists_and_or_replace() -> None:
    made = server(
        "CREATE TABLE t (a INT)",
        "CREATE TABLE IF NOT EXISTS t (b INT)",
        "CREATE VIEW v AS SELECT 1",
        "CREATE VIEW IF NOT EXISTS v AS SELECT 2",
        "CREATE PROCEDURE p() SELECT 1",
        "CREATE PROCEDURE IF NOT EXISTS p() SELECT 2",
    )
    assert [column.name for column in table(made, "t").definition.columns] == ["a"]
    view, procedure = made.view(name("v")), made.procedure(name("p"))
    assert view is not None
    assert procedure is not None
    assert (view.facts.text, procedure.body) == ("SELECT 1", "SELECT 1")
    run(
        made,
        "CREATE OR REPLACE TABLE t (b INT)",
        "ALTER VIEW v AS SELECT 3",
        "CREATE OR REPLACE PROCEDURE p() SELECT 2",
    )
    assert [column.name for column in table(made, "t").definition.columns] == ["b"]
    view, procedure = made.view(name("v")), made.procedure(name("p"))
    assert view is not None
    assert procedure is not None
    assert (view.facts.text, procedure.body) == ("SELECT 3", "SELECT 2")
    run(made, "DROP VIEW v", "DROP PROCEDURE p")
    assert made.view(name("v")) is None
    assert made.procedure(name("p")) is None


def test_a_database_takes_everything_with_it() -> None:
    made = server(
        "CREATE TABLE t (a INT)",
        "CREATE VIEW v AS SELECT 1",
        "CREATE FUNCTION f() RETURNS INT RETURN 1",
        "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 1",
        "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET @a = 1",
        "DROP DATABASE d",
    )
    assert not made.has_database("d")
    assert made.table(name("t")) is None
    assert made.view(name("v")) is None
    assert made.function(name("f")) is None
    assert made.trigger(name("g")) is None
    assert not made.event(name("e"))


def test_accounts_and_events_have_names() -> None:
    made = server(
        "CREATE USER a, b@'h'",
        "RENAME USER a TO c@localhost",
        "DROP USER b@'h'",
        "CREATE ROLE r",
        "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 1",
        "ALTER EVENT e RENAME TO f",
    )
    role = AccountName("r", "" if made.flavor is Flavor.MARIADB else "%")
    assert {*made.accounts} - {ROOT} == {AccountName("c", "localhost"), role}
    assert [made.event(name(each)) for each in ("e", "f")] == [False, True]
    run(made, "DROP EVENT f")
    assert not made.event(name("f"))


@pytest.mark.parametrize(
    "flavor, database, of, engine",
    [
        (Flavor.MARIADB, "mysql", "general_log", "CSV"),
        (Flavor.MARIADB, "mysql", "proc", "ARIA"),
        (Flavor.MARIADB, "mysql", "gtid_slave_pos", "INNODB"),
        (Flavor.MARIADB, "d", "seq_1_to_10", "SEQUENCE"),
        (Flavor.MYSQL, "mysql", "user", "INNODB"),
        (Flavor.MYSQL, "mysql", "proc", None),
        (Flavor.MYSQL, "d", "seq_1_to_10", None),
        (Flavor.MYSQL, "INFORMATION_SCHEMA", "TABLES", "INFORMATION_SCHEMA"),
        (Flavor.MYSQL, "performance_schema", "threads", "PERFORMANCE_SCHEMA"),
        (Flavor.MYSQL, "sys", "sys_config", "INNODB"),
        (Flavor.MARIADB, "d", "none", None),
    ],
)
def test_tables_that_every_server_has(
    flavor: Flavor, database: str, of: str, engine: str | None
) -> None:
    found = server(flavor=flavor).table(TableName(database, of))
    assert (None if found is None else found.engine) == engine


def test_a_select_gives_a_table_its_columns() -> None:
    made = server(
        "CREATE TABLE s (a INT AUTO_INCREMENT PRIMARY KEY, b VARCHAR(5) NOT NULL)",
        "CREATE TABLE t (z INT KEY, b TEXT) ENGINE=MyISAM SELECT b, a FROM s",
        "CREATE TABLE u SELECT @x AS a",
        "CREATE TABLE IF NOT EXISTS t SELECT 1",
    )
    assert [column.name for column in table(made, "t").definition.columns] == ["z", "b", "a"]
    assert table(made, "t").auto_increment is None
    assert table(made, "t").is_complete
    assert not table(made, "u").is_complete


def test_partitions_that_become_tables() -> None:
    made = server(
        """CREATE TABLE t (a INT) PARTITION BY RANGE (a)
        (PARTITION p VALUES LESS THAN (5), PARTITION q VALUES LESS THAN MAXVALUE)""",
        "ALTER TABLE t CONVERT PARTITION p TO TABLE apart",
    )
    assert not table(made, "apart").partitioning
    assert table(made, "t").partitioning


@pytest.mark.parametrize(
    "text",
    [
        "CHARACTER VARYING(10) CHARSET utf8mb4",
        "DOUBLE PRECISION(10,2) UNSIGNED",
        "NATIONAL CHAR(3)",
        "ENUM('a','b') CHARACTER SET latin1 COLLATE latin1_bin",
    ],
)
def test_the_type_that_a_function_returns(text: str) -> None:
    made = server(f"CREATE FUNCTION f() RETURNS {text} DETERMINISTIC RETURN 1")
    found = made.function(name("f"))
    assert found is not None
    assert found.returns == text


@pytest.mark.parametrize(
    ("flavor", "permanent", "temporary"),
    # Measured on MariaDB 10.11 and 11.8, and on MySQL 9.7.
    [(Flavor.MARIADB, "t", "u"), (Flavor.MYSQL, "u", "t")],
)
def test_a_rename_of_a_name_that_a_temporary_table_hides(
    flavor: Flavor, permanent: str, temporary: str
) -> None:
    made = SchemaCatalog(flavor)
    for statement in (
        "CREATE TABLE t (permanent INT)",
        "CREATE TEMPORARY TABLE t (temporary INT)",
        "RENAME TABLE t TO u",
    ):
        made.apply(statement, database="d")
    assert made.tables == (name(permanent),)
    assert [each.name for each in made.temporary_tables()] == [name(temporary)]


def test_alter_table_renames_the_temporary_table_on_every_server() -> None:
    for flavor in Flavor:
        made = SchemaCatalog(flavor)
        for statement in (
            "CREATE TABLE t (permanent INT)",
            "CREATE TEMPORARY TABLE t (temporary INT)",
            "ALTER TABLE t RENAME TO u",
        ):
            made.apply(statement, database="d")
        assert made.tables == (name("t"),)
        assert [each.name for each in made.temporary_tables()] == [name("u")]


def test_a_reference_without_a_database_is_to_the_tables_own() -> None:
    made = server(
        "CREATE TABLE other.p (id INT PRIMARY KEY)",
        "CREATE TABLE other.c (id INT REFERENCES p (id), b INT, FOREIGN KEY (b) REFERENCES p (id))",
        "ALTER TABLE other.c ADD COLUMN d INT, ADD CONSTRAINT k FOREIGN KEY (d) REFERENCES p (id)",
    )
    assert {key.parent for key in made.children(TableName("other", "p"))} == {
        TableName("other", "p")
    }
    assert made.children(name("p")) == []


def test_names_in_ansi_quotes_are_dropped() -> None:
    made = server("CREATE TABLE t (a INT)")
    made.apply('DROP TABLE "t"', database="d", sql_mode=4)
    assert made.tables == ()


def test_white_space_in_the_head_of_a_routine() -> None:
    made = server(
        "CREATE  FUNCTION\n`f`\t( a  INT ,b VARCHAR( 3 ) )\n RETURNS  CHAR( 5 )  "
        "NOT\nDETERMINISTIC READS /* all */ SQL\tDATA\n RETURN 1 ;"
    )
    found = made.function(name("f"))
    assert found is not None
    assert [(each.name, each.type_text) for each in found.parameters] == [
        ("a", "INT"),
        ("b", "VARCHAR( 3 )"),
    ]
    assert found.returns == "CHAR( 5 )"
    assert found.body == "RETURN 1"


@pytest.mark.parametrize(
    ("text", "is_made"),
    # Measured on MySQL 9.7.
    [
        ("CREATE TABLE t (a INT)", True),
        ("CREATE TABLE t SELECT 1 AS a", True),
        ("CREATE TEMPORARY TABLE t (a INT, UNIQUE (a))", True),
        ("CREATE TABLE t (a INT NOT NULL UNIQUE)", False),
        ("CREATE TABLE t (a INT PRIMARY KEY)", False),
        ("CREATE TABLE t (a INT) ENGINE=MyISAM", False),
        ("CREATE TABLE t LIKE old", False),
    ],
)
def test_a_primary_key_that_mysql_generates(text: str, *, is_made: bool) -> None:
    made = SchemaCatalog(Flavor.MYSQL)
    made.apply("CREATE TABLE old (a INT)", database="d")
    made.apply(text, database="d", generates_primary_key=True)
    found = table(made, "t")
    columns = [column.name for column in found.definition.columns]
    assert columns == ["my_row_id", "a"] if is_made else columns == ["a"]
    assert (found.auto_increment == "my_row_id") is is_made
    assert any(key.columns == ("my_row_id",) for key in found.keys) is is_made


def test_a_server_that_generates_primary_keys_says_so_in_its_settings() -> None:
    made = SchemaCatalog(Flavor.MYSQL)
    made.apply("SET GLOBAL sql_generate_invisible_primary_key = ON", database="")
    made.apply("CREATE TABLE t (a INT)", database="d")
    assert table(made, "t").auto_increment == "my_row_id"


_SET_AS_DUMPS_DO = """
/*!50003 SET @saved_sql_mode = @@sql_mode */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET collation_connection = latin1_german1_ci */ ;
/*!50003 SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES' */ ;
"""
_SET_BACK_AS_DUMPS_DO = """
/*!50003 SET sql_mode = @saved_sql_mode */ ;
/*!50003 SET collation_connection = @saved_col_connection */ ;
"""
_SET_BY_HAND = """
SET @old = @@SESSION.sql_mode, SESSION sql_mode = 'ansi_quotes';
SET SESSION sql_mode = CONCAT(@@sql_mode, ',NO_BACKSLASH_ESCAPES'),
    NAMES 'latin1' COLLATE 'latin1_german1_ci';
"""
_SET_BACK_BY_HAND = "SET SQL_MODE = @old, NAMES latin1;"


@pytest.mark.parametrize(
    ("begin", "end"),
    [(_SET_AS_DUMPS_DO, _SET_BACK_AS_DUMPS_DO), (_SET_BY_HAND, _SET_BACK_BY_HAND)],
)
def test_programs_of_a_script_are_read_in_the_sql_mode_that_it_sets(begin: str, end: str) -> None:
    made = SchemaCatalog(Flavor.MYSQL)
    made.load(
        f"""
        CREATE DATABASE d; USE d; SET NAMES latin1; SET sql_mode = 'STRICT_ALL_TABLES';
        CREATE TABLE t (a TEXT);
        {begin}
        DELIMITER ;;
        CREATE PROCEDURE "p"() INSERT INTO "t" VALUES ('\\') ;;
        /*!50003 CREATE*/ /*!50017 DEFINER="u"@"h"*/ /*!50003 TRIGGER "g" BEFORE INSERT ON "t"
        FOR EACH ROW SET NEW."a" = 'x\\' */;;
        DELIMITER ;
        {end}
        CREATE PROCEDURE q() INSERT INTO t VALUES ("\\"");
        """,
        version=(9, 7, 0),
    )
    assert made.problems == []
    p, q = made.procedure(name("p")), made.procedure(name("q"))
    (g,) = made.triggers(name("t"))
    assert p is not None
    assert q is not None
    assert p.context is not None
    assert set(p.context.sql_mode.split(",")) == {"ANSI_QUOTES", "NO_BACKSLASH_ESCAPES"}
    assert p.context.collation == "latin1_german1_ci"
    assert g.context == p.context
    assert q.context == CreationContext(sql_mode="STRICT_ALL_TABLES", collation="latin1_swedish_ci")
    assert all(use_of(one).is_understood for one in (p, q, g))
    assert [use.name for use in use_of(p).tables] == [name("t")]


def use_of(program: Routine | Trigger) -> BodyUse:
    return body_use(program.body, "d", program.dialect)
