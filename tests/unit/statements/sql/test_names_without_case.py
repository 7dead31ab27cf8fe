"""`lower_case_table_names`: names of databases and tables that are read in lower case."""

from __future__ import annotations

import pytest

from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.reading import read
from binlane.statements.sql.servers import Dialect

FOLDING = Dialect(lower_case_names=True)


def server(*statements: str, setting: str = "1") -> SchemaCatalog:
    made = SchemaCatalog(Flavor.MARIADB)
    for statement in (f"SET GLOBAL lower_case_table_names = {setting}", *statements):
        made.apply(statement, database="Shop")
    assert made.problems == []
    return made


@pytest.mark.parametrize("setting", ["1", "2"])
def test_a_catalog_finds_a_table_by_any_case_of_its_name(setting: str) -> None:
    made = server(
        "CREATE TABLE Parent (id INT PRIMARY KEY)",
        "CREATE TABLE Child (id INT, FOREIGN KEY (id) REFERENCES PARENT (id))",
        "CREATE TRIGGER g AFTER INSERT ON CHILD FOR EACH ROW SET @a = 1",
        "RENAME TABLE cHILD TO Kid",
        setting=setting,
    )
    assert set(made.tables) == {TableName("shop", "parent"), TableName("shop", "kid")}
    assert [key.table for key in made.children(TableName("shop", "parent"))] == [
        TableName("shop", "kid")
    ]
    assert made.triggers(TableName("shop", "kid"))


def test_with_case_two_names_are_two_tables() -> None:
    made = server("CREATE TABLE T (a INT)", "CREATE TABLE t (a INT)", setting="0")
    assert set(made.tables) == {TableName("Shop", "T"), TableName("Shop", "t")}


@pytest.mark.parametrize(
    ("statement", "written"),
    [
        ("INSERT INTO Orders VALUES (1)", "orders"),
        ("UPDATE Orders AS O, Items SET o.a = 1", "orders"),
        ("DELETE O FROM `Orders` AS o", "orders"),
        ("ALTER TABLE Orders ADD a INT", "orders"),
        ("DROP TABLE SHOP.ORDERS", "orders"),
    ],
)
def test_statements_name_tables_in_lower_case(statement: str, written: str) -> None:
    facts = read(statement, database="Shop", dialect=FOLDING)
    assert facts.error is None
    assert facts.effects.writes == (TableName("shop", written),)


def test_databases_are_named_in_lower_case() -> None:
    for statement in ("CREATE DATABASE Crm", "ALTER DATABASE CRM COLLATE x", "DROP DATABASE crm"):
        assert read(statement, database="", dialect=FOLDING).effects.databases == ("crm",)


def test_columns_keep_their_case() -> None:
    facts = read("INSERT INTO T (Id) VALUES (1)", database="d", dialect=FOLDING)
    assert facts.columns == ("Id",)
