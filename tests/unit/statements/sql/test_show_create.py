"""The texts of tables, against those that both servers wrote (`vectors`)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.reading import read
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.show_create import create_table_text

VECTORS = json.loads(
    (Path(__file__).parents[3] / "vectors" / "create_texts.json").read_text(encoding="utf-8")
)


def cases(kind: str) -> list[tuple[Flavor, str, str]]:
    return [
        (flavor, case["statement"], case[flavor.value])
        for case in VECTORS[kind]
        for flavor in Flavor
        if flavor.value in case
    ]


def server(flavor: Flavor, *statements: str) -> SchemaCatalog:
    made = SchemaCatalog(flavor)
    for statement in ("CREATE DATABASE m2", *statements):
        made.apply(statement, database="m2")
    assert made.problems == []
    return made


@pytest.mark.parametrize("flavor, statement, expected", cases("select"))
def test_the_table_of_a_select(flavor: Flavor, statement: str, expected: str) -> None:
    (name,) = read(statement, database="m2", dialect=Dialect()).effects.writes
    table = server(flavor, *VECTORS["schema"], statement).table(name)
    assert table is not None
    assert table.is_complete
    text = create_table_text(
        table,
        flavor=flavor,
        if_not_exists="if not exists" in statement,
        is_transaction=table.engine == "INNODB",
    )
    assert text == expected


@pytest.mark.parametrize("flavor, statement, expected", cases("show"))
def test_show_create_table(flavor: Flavor, statement: str, expected: str) -> None:
    made = server(flavor, "create table par (id int primary key) engine=innodb", statement)
    table = made.table(TableName("m2", "x"))
    assert table is not None
    assert create_table_text(table, flavor=flavor, only_given_options=False) == expected


def test_how_the_statement_begins() -> None:
    made = server(Flavor.MARIADB, "CREATE TEMPORARY TABLE `a``b` (`x``y` INT)")
    (table,) = made.temporary_tables()
    text = create_table_text(table, flavor=Flavor.MARIADB, is_or_replace=True)
    assert text.startswith("CREATE OR REPLACE TEMPORARY TABLE `a``b` (\n  `x``y` int(11)")
