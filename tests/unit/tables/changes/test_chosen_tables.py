"""Scopes as lists of filters: both let the same tables through."""

from __future__ import annotations

import pytest

from binlane.binlogs.filters.filter_state import FilterState
from binlane.binlogs.filters.terms import parse_terms
from binlane.errors import ConfigError
from binlane.names import TableName
from binlane.tables.changes.chosen_tables import lists_of
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
