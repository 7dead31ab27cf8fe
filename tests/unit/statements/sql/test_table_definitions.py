from __future__ import annotations

import pytest

from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.reading import read
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.table_definitions import (
    TableColumn,
    TableDefinition,
    alter_table,
    create_table,
)
from binlane.statements.sql.tokens import SqlSyntaxError
from binlane.statements.sql.tree.definitions import AlterTable, CreateTable


def facts_of(statement: str, *, ansi_quotes: bool = False) -> StatementFacts:
    facts = read(statement, database="", dialect=Dialect(ansi_quotes=ansi_quotes))
    if facts.error is not None:
        raise facts.error
    return facts


def created(
    columns: str, options: str = "", *, charset: str | None = None, ansi_quotes: bool = False
) -> TableDefinition:
    facts = facts_of(f"CREATE TABLE t ({columns}) {options}", ansi_quotes=ansi_quotes)
    assert isinstance(facts.tree, CreateTable)
    return create_table(facts.tree, facts, charset=charset)


def changed(table: TableDefinition, actions: str, *, charset: str | None = None) -> TableDefinition:
    facts = facts_of(f"ALTER TABLE t {actions}")
    assert isinstance(facts.tree, AlterTable)
    return alter_table(table, facts.tree, facts, charset=charset)


def altered(columns: str, actions: str) -> list[str]:
    """Names after an ALTER TABLE."""
    return [column.name for column in changed(created(columns), actions).columns]


def column(definition: str, options: str = "") -> TableColumn:
    (found,) = created(f"c {definition}", options).columns
    return found


@pytest.mark.parametrize(
    ("definition", "charset"),
    [
        ("VARCHAR(3)", "cp850"),
        ("VARCHAR(3) CHARACTER SET latin2", "latin2"),
        ("VARCHAR(3) CHARSET 'latin2'", "latin2"),
        ("VARCHAR(3) COLLATE greek_bin", "greek"),
        ("VARCHAR(3) DEFAULT 'a' COMMENT 'CHARACTER SET greek'", "cp850"),
        ("VARCHAR(3) DEFAULT (CONVERT('a' USING greek) COLLATE greek_bin)", "cp850"),
        ("VARCHAR(3) CHARACTER SET utf8", "utf8mb3"),
        ("VARCHAR(3) CHARACTER SET binary", "binary"),
        ("VARCHAR(3) COLLATE uca1400_ai_ci", "cp850"),
        ("NATIONAL CHARACTER VARYING(3)", "utf8mb3"),
        ("CHAR(3) ASCII", "latin1"),
        ("CHAR BYTE", "binary"),
        ("ENUM('a')", "cp850"),
        ("JSON", "utf8mb4"),
        ("UUID", "binary"),
        ("BLOB", "binary"),
        ("INT", None),
    ],
)
def test_character_sets(definition: str, charset: str | None) -> None:
    assert column(definition, "DEFAULT CHARSET=cp850 COMMENT='CHARSET=greek'").charset == charset


def test_the_character_set_of_the_database_is_the_default() -> None:
    assert created("a TEXT", charset="greek").charset == "greek"
    assert created("a TEXT", "COLLATE=latin1_bin", charset="greek").charset == "latin1"
    assert created("a TEXT", "CHARSET=DEFAULT", charset="greek").charset == "greek"


@pytest.mark.parametrize(
    ("definition", "type_name", "arguments"),
    [
        ("DOUBLE PRECISION(7,2)", "DOUBLE", ("7", "2")),
        ("LONG", "MEDIUMTEXT", ()),
        ("CHARACTER(3)", "CHAR", ("3",)),
        ("mariadb_schema.date", "DATE", ()),
        ("ENUM('a,b', 'c''d', \"e\")", "ENUM", ("a,b", "c'd", "e")),
    ],
)
def test_types(definition: str, type_name: str, arguments: tuple[str, ...]) -> None:
    found = column(definition)
    assert (found.type_name, found.arguments) == (type_name, arguments)


def test_what_is_told_of_a_column() -> None:
    assert column("SERIAL").is_unsigned
    assert column("INT ZEROFILL").is_unsigned
    assert not column("INT INVISIBLE").is_visible
    assert not column("INT /*!80023 INVISIBLE */").is_visible
    assert column("INT AS (1) PERSISTENT").is_generated
    assert column("INT GENERATED ALWAYS AS (1)").is_generated
    assert not column("INT DEFAULT (1) COMMENT 'AS (1)'").is_generated


def test_keys_and_periods_are_no_columns_but_columns_may_be_called_so() -> None:
    table = created(
        "period INT, vector INT, system INT, `key` INT, s TIMESTAMP(6) AS ROW START,"
        " PERIOD FOR SYSTEM_TIME (s, e), VECTOR INDEX (vector), KEY (`key`), PRIMARY KEY (a),"
        " CONSTRAINT c CHECK (a > 0), CHECK (b), UNIQUE (a), FOREIGN KEY (a) REFERENCES p (a)",
        "WITH SYSTEM VERSIONING",
    )
    assert [each.name for each in table.columns] == ["period", "vector", "system", "key", "s"]
    assert not table.is_versioned
    assert table.has_unique_key


def test_system_versioning_without_columns_of_its_own() -> None:
    assert created("a INT", "WITH SYSTEM VERSIONING").is_versioned
    assert created("a INT, b INT WITH SYSTEM VERSIONING").is_versioned
    assert not created("a INT WITHOUT SYSTEM VERSIONING").is_versioned
    table = changed(created("a INT"), "ADD SYSTEM VERSIONING")
    assert table.is_versioned
    assert not changed(table, "DROP SYSTEM VERSIONING").is_versioned


@pytest.mark.parametrize(
    ("actions", "names"),
    [
        ("ADD d INT, ADD e INT FIRST, ADD f INT AFTER e", "e f a b c d"),
        ("DROP a, ADD a INT", "b c a"),
        ("MODIFY a INT AFTER B, ADD z INT AFTER a", "b a z c"),
        ("CHANGE a b INT, CHANGE b a INT", "b a c"),
        ("RENAME COLUMN a TO b, RENAME COLUMN b TO a", "b a c"),
        ("CHANGE a x INT, ADD y INT AFTER x", "x y b c"),
        ("CHANGE c x INT FIRST, DROP a", "x b"),
        ("MODIFY A BIGINT", "A b c"),
        ("ADD (d INT, KEY (d), e INT)", "a b c d e"),
        # Of a definition that is of a later time.
        ("ADD b INT FIRST", "a b c"),
        ("DROP COLUMN x, CHANGE y z INT, MODIFY w INT FIRST, RENAME COLUMN v TO u", "a b c"),
    ],
)
def test_one_alter_table_renames_moves_and_adds(actions: str, names: str) -> None:
    assert altered("a INT, b INT, c INT", actions) == names.split()


@pytest.mark.parametrize("actions", ["ADD d INT AFTER x", "ADD", "CHANGE a"])
def test_what_cannot_be_is_an_error(actions: str) -> None:
    with pytest.raises(SqlSyntaxError):
        altered("a INT", actions)


def test_conversion_and_new_defaults() -> None:
    table = created("a TEXT, b TEXT CHARACTER SET greek, c BLOB, d INT", charset="latin1")
    for actions, expected in (
        ("CONVERT TO CHARACTER SET utf8mb4, ADD e TEXT", "utf8mb4 utf8mb4 binary None utf8mb4"),
        ("DEFAULT CHARACTER SET koi8r, ADD e TEXT", "latin1 greek binary None koi8r"),
        ("ENGINE=InnoDB COLLATE=koi8u_bin, MODIFY a TEXT", "koi8u greek binary None"),
        ("CONVERT TO CHARACTER SET DEFAULT", "hebrew hebrew binary None"),
        ("MODIFY a TEXT CHARACTER SET hebrew", "hebrew greek binary None"),
    ):
        after = changed(table, actions, charset="hebrew")
        assert [str(each.charset) for each in after.columns] == expected.split(), actions


def test_quotes_follow_the_sql_mode() -> None:
    table = created('"a""b" INT', ansi_quotes=True)
    assert [each.name for each in table.columns] == ['a"b']
