from __future__ import annotations

import pytest

from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.reading import read
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.table_definitions import TableColumn
from binlane.tables.landing.column_changes import (
    AddColumn,
    ChangeRows,
    ColumnChange,
    DropColumn,
    ModifyColumn,
    RenameColumn,
    column_changes,
    created_columns,
)


def facts_of(statement: str, *, ansi_quotes: bool = False) -> StatementFacts:
    facts = read(statement, database="", dialect=Dialect(ansi_quotes=ansi_quotes))
    assert facts.error is None, facts.error
    return facts


def changes_of(statement: str) -> tuple[ColumnChange, ...]:
    return column_changes(facts_of(statement))


def modified(name: str, *, is_first: bool = False, after: str | None = None) -> ModifyColumn:
    """A change whose new definition is not compared."""
    column = TableColumn(name=name, type_name="INT")
    return ModifyColumn(column=column, old_name=name, is_first=is_first, after=after)


def named(changes: tuple[ColumnChange, ...]) -> list[object]:
    """Changes without the definitions of new columns."""
    return [change.name if isinstance(change, AddColumn) else change for change in changes]


@pytest.mark.parametrize(
    "actions, expected",
    [
        ("ADD COLUMN a INT", ["a"]),
        ("ADD a INT, ADD `b c` TEXT", ["a", "b c"]),
        ("ADD COLUMN IF NOT EXISTS (a INT, b INT, KEY (a))", ["a", "b"]),
        ("ADD `key` INT", ["key"]),
        ("DROP COLUMN a, DROP IF EXISTS b", [DropColumn(name="a"), DropColumn(name="b")]),
        ("DROP `index`", [DropColumn(name="index")]),
        ("RENAME COLUMN a TO b", [RenameColumn(old="a", new="b")]),
        ("CHANGE a b INT", [RenameColumn(old="a", new="b"), modified("a")]),
        ("CHANGE a a BIGINT FIRST", [modified("a", is_first=True)]),
        ("MODIFY a INT AFTER `b c`", [modified("a", after="b c")]),
        ("TRUNCATE PARTITION p0", [ChangeRows(action="TRUNCATE PARTITION")]),
        ("DROP PARTITION p0, p1", [ChangeRows(action="DROP PARTITION")]),
        ("EXCHANGE PARTITION p WITH TABLE u", [ChangeRows(action="EXCHANGE PARTITION")]),
        ("ADD INDEX (a), ADD UNIQUE u (a), ADD CONSTRAINT c CHECK (a > 0)", []),
        ("ADD PRIMARY KEY (a), DROP PRIMARY KEY, DROP FOREIGN KEY f, DROP INDEX i", []),
        ("RENAME TO u, RENAME INDEX a TO b, RENAME x.y", []),
        ("ENGINE=InnoDB, COMMENT 'ADD a, DROP b'", []),
        ("ALTER COLUMN a SET DEFAULT 'x', ALTER b DROP DEFAULT", []),
        ("CONVERT TO CHARACTER SET utf8mb4, ORDER BY a, b", []),
        ("PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (1))", []),
        ("ADD PARTITION (PARTITION p1 VALUES LESS THAN (2))", []),
    ],
)
def test_actions(actions: str, expected: list[object]) -> None:
    assert named(changes_of(f"ALTER TABLE t {actions}")) == expected


@pytest.mark.parametrize(
    "head",
    [
        "ALTER TABLE t",
        "ALTER ONLINE IGNORE TABLE IF EXISTS `shop`.`t` WAIT 10",
        "SET STATEMENT lock_wait_timeout=5 FOR ALTER TABLE t NOWAIT",
        "/* why */ alter /*!50100 table */ t",
    ],
)
def test_heads(head: str) -> None:
    assert named(changes_of(f"{head} ADD a INT;")) == ["a"]


def test_a_definition() -> None:
    (change,) = changes_of(
        "ALTER TABLE t ADD a DECIMAL(10,2) UNSIGNED NOT NULL DEFAULT -1.5 COMMENT 'x' AFTER b"
    )
    assert isinstance(change, AddColumn)
    definition = change.column
    assert (definition.type_name, definition.arguments) == ("DECIMAL", ("10", "2"))
    assert definition.is_unsigned
    assert not definition.is_nullable
    assert change.value == "-1.5"
    assert (change.is_first, change.after) == (False, "b")


@pytest.mark.parametrize(
    "default, expected",
    [
        ("5", "5"),
        ("+ 5", "5"),
        ("'it''s'", "it's"),
        ("NULL", None),
        ("TRUE", "1"),
    ],
)
def test_constants(default: str, expected: str | None) -> None:
    (change,) = changes_of(f"ALTER TABLE t ADD a INT DEFAULT {default} NOT NULL")
    assert isinstance(change, AddColumn)
    assert change.has_value
    assert change.value == expected


@pytest.mark.parametrize("default", ["(1 + 1)", "now()", "uuid()", "x'41'", "b'1'", "0x41"])
def test_what_is_no_constant(default: str) -> None:
    (change,) = changes_of(f"ALTER TABLE t ADD a INT DEFAULT {default}")
    assert isinstance(change, AddColumn)
    assert not change.has_value


@pytest.mark.parametrize("definition", ["INT AS (b + 1)", "INT AUTO_INCREMENT", "SERIAL"])
def test_values_that_the_text_does_not_tell(definition: str) -> None:
    (change,) = changes_of(f"ALTER TABLE t ADD a {definition}")
    assert isinstance(change, AddColumn)
    assert change.is_numbered or change.column.is_generated


def test_names_in_ansi_quotes() -> None:
    facts = facts_of('ALTER TABLE "t" ADD "a""b" INT', ansi_quotes=True)
    assert named(column_changes(facts)) == ['a"b']


def test_created_columns() -> None:
    facts = facts_of(
        "CREATE OR REPLACE TABLE IF NOT EXISTS shop.t (id INT PRIMARY KEY, `a b` ENUM('x,y','z'),"
        " PRIMARY KEY (id), KEY k (`a b`), CONSTRAINT f FOREIGN KEY (id) REFERENCES u (id),"
        " CHECK (id > 0)) ENGINE=InnoDB"
    )
    found = created_columns(facts)
    assert [column.name for column in found] == ["id", "a b"]
    assert found[1].arguments == ("x,y", "z")
    assert not found[0].is_nullable
    assert created_columns(facts_of("CREATE TABLE t LIKE u")) == ()
    assert created_columns(facts_of("CREATE TABLE t (LIKE u)")) == ()
