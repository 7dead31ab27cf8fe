"""The order in which routines open their tables, as measured on real servers."""

from __future__ import annotations

import pytest

from binlane.names import TableName
from binlane.statements.policy.server import Server
from binlane.statements.policy.used_objects import in_server_order
from binlane.statements.sql.facts import TableUse

MARIADB = [
    ("x9 b tuk t1", "x9 t1 b tuk"),
    ("t3 t4 c", "t3 c t4"),
    ("t2 b t3", "t2 t3 b"),
    ("x9 t4", "x9 t4"),
    ("a t3 c orders t2 lg x9 b", "t2 x9 a t3 orders b c lg"),
    ("tuk t3 x9 orders t4", "tuk t4 t3 orders x9"),
    (
        "t4 orders t1 t3 t2 tuk x9 lg b c zz a",
        "t4 c orders t3 t2 a x9 lg tuk zz t1 b",
    ),
    (
        "zz orders t3 t4 x9 b c t1 tuk a lg t2",
        "zz c tuk t3 t4 a x9 t2 b t1 orders lg",
    ),
]


def uses(names: str) -> tuple[TableUse, ...]:
    return tuple(
        TableUse(name=TableName("pe", name), alias=name, offset=0, length=1)
        for name in names.split()
    )


@pytest.mark.parametrize("text, opened", MARIADB)
def test_order(text: str, opened: str) -> None:
    assert in_server_order(uses(text), Server.parse("mariadb")) == uses(opened)
    assert in_server_order(uses(text), Server.parse("mysql")) == uses(
        " ".join(sorted(text.split()))
    )


def test_a_table_that_a_statement_names_twice_stays_together() -> None:
    found = in_server_order(uses("b a b"), Server.parse("mysql"))
    assert [use.name.table for use in found] == ["a", "b", "b"]
