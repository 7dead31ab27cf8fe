"""The grammar of definitions against what real servers take: tests/vectors/definitions.tsv."""

from __future__ import annotations

import pytest

from binlane.statements.sql.parser import Stopped, parse
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.tree.definitions import (
    AlterTable,
    CreateTable,
    DefinedColumn,
    KeyDefinition,
)
from tests.rules import ROOT

SERVERS = (
    Dialect(flavor="mariadb", version=(10, 11, 14)),
    Dialect(flavor="mariadb", version=(11, 8, 6)),
    Dialect(flavor="mysql", version=(9, 7, 0)),
)


def is_refused(text: str, dialect: Dialect) -> bool:
    try:
        parse(text, dialect)
    except Stopped:
        return True
    return False


def measured() -> list[tuple[str, str]]:
    lines = (ROOT / "tests/vectors/definitions.tsv").read_text().splitlines()
    cases = (line.split("\t", 1) for line in lines if not line.startswith("#"))
    return [(marks, text) for marks, text in cases]


def test_each_servers_grammar_takes_what_that_server_takes() -> None:
    cases = measured()
    wrong = [
        (text, mark, dialect.flavor, dialect.version)
        for marks, text in cases
        for mark, dialect in zip(marks, SERVERS, strict=True)
        if is_refused(text, dialect) is not (mark == "x")
    ]
    assert not wrong
    assert len(cases) > 700


def test_without_a_flavor_whatever_one_of_them_takes_is_taken() -> None:
    wrong = [text for marks, text in measured() if marks != "xxx" and is_refused(text, Dialect())]
    assert not wrong


@pytest.mark.parametrize(
    ("text", "version", "is_taken"),
    [
        ("ALTER TABLE t RENAME COLUMN a TO b", (5, 7, 44), False),
        ("ALTER TABLE t RENAME COLUMN a TO b", (8, 0, 11), True),
        ("CREATE TABLE t (a INT DEFAULT (1 + 1))", (8, 0, 12), False),
        ("CREATE TABLE t (a INT DEFAULT (1 + 1))", (8, 0, 13), True),
        ("CREATE TABLE t (a VECTOR(3))", (8, 4, 0), False),
        ("CREATE VIEW IF NOT EXISTS v AS SELECT 1", (9, 0, 0), False),
        ("CREATE USER u IDENTIFIED BY PASSWORD '*AA'", (5, 7, 44), True),
        ("GRANT USAGE ON *.* TO u IDENTIFIED BY 'x'", (5, 7, 44), True),
    ],
)
def test_what_a_version_of_mysql_brought(
    text: str, version: tuple[int, int, int], *, is_taken: bool
) -> None:
    assert is_refused(text, Dialect(flavor="mysql", version=version)) is not is_taken


@pytest.mark.parametrize(
    ("text", "version", "is_taken"),
    [
        ("CREATE TABLE t (a UUID)", (10, 6, 0), False),
        ("CREATE TABLE t (a UUID)", (10, 7, 0), True),
        ("CREATE TABLE t (a INET4)", (10, 6, 0), False),
        ("CREATE TABLE t (a VECTOR(3) NOT NULL, VECTOR KEY (a))", (11, 4, 0), False),
        ("CREATE SEQUENCE s AS INT", (11, 4, 0), False),
    ],
)
def test_what_a_version_of_mariadb_brought(
    text: str, version: tuple[int, int, int], *, is_taken: bool
) -> None:
    assert is_refused(text, Dialect(flavor="mariadb", version=version)) is not is_taken


@pytest.mark.parametrize(
    ("default", "flavor", "is_taken"),
    [
        ("interval(5,1,10,20)", "mariadb", True),
        ("INTERVAL 1 DAY + NOW()", "mariadb", False),
        ("interval(5,1,10,20)", "mysql", False),
        ("(interval(5,1,10,20))", "mysql", True),
    ],
)
def test_interval_as_a_default(default: str, flavor: str, *, is_taken: bool) -> None:
    text = f"CREATE TABLE t (a INT DEFAULT {default})"
    assert is_refused(text, Dialect(flavor=flavor)) is not is_taken


def test_a_column_says_all_that_its_text_says() -> None:
    text = (
        "CREATE TABLE t (`a b` VARCHAR(10) CHARACTER SET latin1 NOT NULL DEFAULT 'x' COMMENT 'y',"
        " g INT GENERATED ALWAYS AS (1 + 1) STORED UNIQUE, PRIMARY KEY USING BTREE (`a b`(3) DESC))"
    )
    found = parse(text, Dialect())
    assert isinstance(found, CreateTable)
    first, second, key = found.elements
    assert isinstance(first, DefinedColumn)
    assert isinstance(second, DefinedColumn)
    assert isinstance(key, KeyDefinition)
    assert (first.name, first.is_nullable) == ("a b", False)
    assert first.type is not None
    assert (first.type.name, first.type.arguments, first.type.charset) == (
        *("VARCHAR", ("10",)),
        "latin1",
    )
    assert first.default is not None
    assert text[first.default.at : first.default.end] == "'x'"
    assert second.generated is not None
    assert text[second.generated.at : second.generated.end] == "1 + 1"
    assert (second.storage, second.key) == ("STORED", "UNIQUE")
    (part,) = key.parts
    assert (key.kind, key.algorithm) == ("PRIMARY", "BTREE")
    assert (part.column, part.length, part.is_descending) == ("a b", 3, True)
    assert text[found.elements_at : found.elements_end].startswith("(`a b`")
    assert text[found.elements_at : found.elements_end].endswith("DESC))")


def test_actions_stand_in_the_order_of_the_text() -> None:
    text = (
        "ALTER TABLE t ADD COLUMN (a INT, KEY k (a)), DROP b, CHANGE c d INT AFTER a, ENGINE=Aria"
    )
    found = parse(text, Dialect())
    assert isinstance(found, AlterTable)
    assert [action.kind for action in found.actions] == [
        *("ADD COLUMN", "DROP COLUMN", "CHANGE COLUMN", "OPTION")
    ]
    added, _, changed, option = found.actions
    assert [key.name for key in added.keys] == ["k"]
    assert (changed.name, changed.columns[0].name, changed.after) == ("c", "d", "a")
    assert option.option is not None
    assert option.option.value == "Aria"
