from __future__ import annotations

import pytest

from binlane.names import TableName, quote


@pytest.mark.parametrize(
    "name, quoted", [("orders", "`orders`"), ("we ird `x`", "`we ird ``x```"), ("", "``")]
)
def test_identifiers_are_quoted_as_the_servers_print_them(name: str, quoted: str) -> None:
    assert quote(name) == quoted


def test_a_table_has_a_quoted_and_a_plain_name() -> None:
    name = TableName("shop", "or`ders")
    assert str(name) == "`shop`.`or``ders`"
    assert name.plain == "shop.or`ders"
    assert name < TableName("shop", "z")
