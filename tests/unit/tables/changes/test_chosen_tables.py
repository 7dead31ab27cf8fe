"""Scopes as filters: both let the same tables through, and statements that change any of them."""

from __future__ import annotations

import pytest

from binlane.binlogs.filters.filter_state import FilterState
from binlane.binlogs.filters.statement_concern import concern_of_statement
from binlane.binlogs.filters.terms import parse_terms
from binlane.errors import ConfigError
from binlane.names import TableName
from binlane.statements.sql.logged_statements import LoggedStatement
from binlane.tables.changes.chosen_tables import ChosenTables, lists_of
from binlane.tables.ranges.scopes import read_scope

_TABLES = [
    TableName(database, table)
    for database in ("shop", "crm", "sh_p", "a.b", "100%")
    for table in ("orders", "items", "o_ders", "x.y")
]


@pytest.mark.parametrize(
    "text",
    [
        "shop.orders",
        "shop",
        "sh_p",
        "shop.orders, crm",
        "`a.b`.`x.y`, `100%`",
        "LOG(shop), IGNORE(shop.items)",
        "LOG(shop, crm.items), IGNORE(crm)",
        "LOG(shop.orders, shop.items), IGNORE(shop.items)",
        "IGNORE(shop, crm.orders)",
    ],
)
def test_lists_let_the_same_tables_through(text: str) -> None:
    scope = read_scope(text)
    state = FilterState(parse_terms(lists_of(scope)))
    assert [state.includes(table) for table in _TABLES] == [*map(scope.includes, _TABLES)]


def test_a_scope_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="no table is left"):
        lists_of(read_scope("LOG(shop.orders), IGNORE(shop)"))


@pytest.mark.parametrize(
    ("statement", "is_shown"),
    [
        ("RENAME TABLE shop.orders TO shop._orders_old, shop._orders_new TO shop.orders", True),
        ("RENAME TABLE shop._orders_new TO shop.orders", True),
        ("ALTER TABLE shop.orders RENAME TO archive.orders", True),
        ("RENAME TABLE shop.a TO shop.b", False),
        ("CREATE TABLE shop.orders LIKE shop.other", True),
        ("CREATE TABLE shop.orders SELECT * FROM shop.other", True),
        ("CREATE TABLE shop.copies LIKE shop.orders", False),
        ("DROP TABLE shop.items, shop.orders", True),
        ("DROP TABLE shop.items", False),
        ("UPDATE shop.items, shop.orders SET orders.n = 1", True),
        ("INSERT INTO shop.items SELECT * FROM shop.orders", False),
        ("CREATE TRIGGER shop.t AFTER INSERT ON shop.orders FOR EACH ROW SET @a = 1", True),
        ("CREATE INDEX i ON shop.orders (id)", True),
        ("DROP DATABASE shop", True),
        ("DROP DATABASE crm", True),
        ("DROP DATABASE other", False),
        ("CREATE DATABASE crm", True),
        ("CREATE VIEW crm.v AS SELECT 1", True),
        ("FLUSH TABLES", False),
    ],
)
def test_statements_that_change_a_chosen_table_are_shown(statement: str, *, is_shown: bool) -> None:
    state = ChosenTables(read_scope("shop.orders, crm"))
    concern = concern_of_statement(LoggedStatement(text=statement, database="shop", sql_mode=0))
    assert state.take(concern, "binlog.000001:4").passes == is_shown
    # The name stays chosen, whatever happened to a table.
    assert state.includes(TableName("shop", "orders"))
    assert not state.includes(TableName("shop", "_orders_old"))
    assert not state.left_out.texts
