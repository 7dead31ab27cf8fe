"""Children that are known to be empty: from when, and until when."""

from __future__ import annotations

import pytest

from binlane.binlogs.routing.routing_memory import NOTHING, Memory
from binlane.binlogs.routing.table_links import NO_LINKS
from binlane.binlogs.routing.vacant_children import links_of_rows, with_vacant
from binlane.names import TableName
from binlane.statements.sql.reading import read
from binlane.statements.sql.servers import Dialect
from tests.routed_files import definitions

C, N = TableName("shop", "c"), TableName("shop", "n")
CREATE = "CREATE TABLE shop.c (p INT, FOREIGN KEY (p) REFERENCES crm.p (id) ON DELETE CASCADE)"


def after(*statements: str) -> Memory:
    """The memory behind some statements of LOG(shop)."""
    (shop,) = definitions("LOG(shop)")
    memory = NOTHING
    for statement in statements:
        facts = read(statement, database="", dialect=Dialect())
        links = memory.links.after(facts, facts.effects)
        memory = Memory(links=links, vacant=memory.vacant)
        memory = with_vacant(memory, facts.effects, shop.scope)
    return memory


def test_a_child_is_empty_when_it_is_made() -> None:
    memory = after(CREATE)
    assert memory.vacant == {C}
    assert Memory.decode(memory.encode()) == memory
    assert not links_of_rows(memory).keys
    assert memory.with_rows([C]).vacant == set()
    assert links_of_rows(memory.with_rows([C])) == memory.links


@pytest.mark.parametrize(
    ("statement", "is_empty"),
    [
        ("CREATE TABLE shop.other (id INT)", True),
        ("DROP TABLE crm.p", True),
        ("BEGIN", True),
        ("TRUNCATE TABLE shop.c", True),
        ("CREATE INDEX i ON shop.c (p)", True),
        ("ALTER TABLE shop.c IMPORT TABLESPACE", False),
        ("RENAME TABLE shop.n TO shop.c", False),
        ("DROP TABLE shop.c", False),
        ("DROP DATABASE shop", False),
        # Triggers and functions write what no text says.
        ("INSERT INTO crm.other VALUES (1)", False),
        ("SELECT f()", False),
        ("CALL q()", False),
        ("CREATE TABLE shop.z SELECT f()", False),
    ],
)
def test_what_may_fill_it(statement: str, *, is_empty: bool) -> None:
    assert (C in after(CREATE, statement).vacant) is is_empty


def test_a_table_that_may_have_been_there_is_not_known() -> None:
    assert after(CREATE.replace("TABLE", "TABLE IF NOT EXISTS")).vacant == set()
    assert after("CREATE TABLE shop.n (id INT)").vacant == set()
    assert after(CREATE, "INSERT INTO crm.z VALUES (1)", "TRUNCATE TABLE shop.c").vacant == {C}


def test_a_memory_is_not_lost_once_rows_have_come() -> None:
    empty = after(CREATE)
    filled = empty.with_rows([C])
    assert filled.may_be_lost_for(empty)
    assert not empty.may_be_lost_for(filled)
    assert empty.behind_gap().vacant == set()
    assert empty.behind_gap().links == NO_LINKS
