"""The rows of children on the disk: found by image and key, with the state that belongs to them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from binlane.binlogs.routing.cascade_values import ODD, KeyBytes
from binlane.binlogs.routing.table_links import NO_LINKS, TableLinks
from binlane.binlogs.store.child_rows import ChildRowsFile, FilePlace, KeptChildren, KeptState
from binlane.log.codec.types import ColumnType
from binlane.names import TableName
from binlane.statements.sql.reading import read
from binlane.statements.sql.servers import Dialect
from tests import build
from tests.groups import source_format
from tests.routed_files import definitions

C, D, G = (TableName("shop", name) for name in "cdg")


def _links() -> TableLinks:
    links = NO_LINKS
    for child, parent in (("shop.c", "crm.p"), ("shop.g", "shop.c"), ("shop.z", "shop.y")):
        key = f"FOREIGN KEY (K) REFERENCES {parent} (id) ON DELETE CASCADE"
        facts = read(f"CREATE TABLE {child} (K INT, {key})", database="", dialect=Dialect())
        links = links.after(facts, facts.effects)
    return links


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[KeptChildren]:
    rows = ChildRowsFile(tmp_path / "children" / "1.sqlite")
    rows.clear()
    found = KeptChildren(rows, KeptState())
    (shop,) = definitions("LOG(shop)")
    found.follow(found.needed(_links(), shop.scope))
    rows.begin()
    yield found
    rows.close()


def test_children_and_theirs_are_kept(kept: KeptChildren) -> None:
    (shop,) = definitions("LOG(shop)")
    assert set(kept.state.tables) == {C, G}
    assert set(kept.state.tables[C].indexes) == {("k",)}
    assert kept.has(kept.needed(_links(), shop.scope))
    assert not kept.has([(D, ("k",))])


def test_rows_are_found_by_key_and_go_by_image(kept: KeptChildren) -> None:
    rows, number = kept.rows, kept.state.tables[C].indexes["k",]
    key = KeyBytes(b"\1\0\0\0key1")
    for image in (b"one", b"two", b"one"):
        rows.add(C, image, [(number, key)])
    rows.add(C, b"null", [])
    assert [row.image for row in rows.find(number, key.data)] == [b"one", b"two", b"one"]
    assert rows.remove(C, b"one")
    assert [row.image for row in rows.find(number, key.data)] == [b"two", b"one"]
    assert not rows.remove(C, b"three")
    assert not rows.remove(G, b"two")
    assert not rows.has_odd(number)
    rows.add(C, b"odd", [(number, ODD)])
    assert rows.has_odd(number)
    rows.forget(C)
    assert not rows.has_rows(C)
    assert not rows.has_odd(number)


def test_what_is_undone_was_never_there(kept: KeptChildren) -> None:
    format_ = source_format().format
    kept.rows.add(C, b"one", [])
    kept.rows.commit(kept.state.encode(format_))
    kept.rows.begin()
    assert kept.rows.remove(C, b"one")
    kept.rows.roll_back()
    assert kept.rows.has_rows(C)
    assert kept.rows.count() == 1
    assert kept.rows.size_bytes() > 0


def test_the_state_is_read_as_it_was_written(kept: KeptChildren) -> None:
    format_, state = source_format().format, kept.state
    state.place = FilePlace("orders.000002", 4711, "abc")
    state.links = _links()
    table = state.tables[C]
    table.reason, table.is_plain, table.table_map = "", True, build.table_map(ColumnType.LONG)
    again = KeptState.decode(state.encode(format_), format_)
    assert again == state


def test_a_table_that_is_not_known_takes_its_children_along(kept: KeptChildren) -> None:
    kept.state.links = _links()
    for name in (C, G):
        kept.state.tables[name].is_plain = True
        kept.know_empty(name)
        assert not kept.state.tables[name].reason
    kept.lose_with_children(C, "why")
    assert [table.reason for table in kept.state.tables.values()] == ["why", "why"]


def test_renamed_tables_keep_their_rows(kept: KeptChildren) -> None:
    for name in (C, G):
        kept.state.tables[name].is_plain = True
        kept.know_empty(name)
    kept.rows.add(C, b"one", [])
    kept.rename({C: D})
    assert kept.rows.has_rows(D)
    assert not kept.state.tables[D].reason
    # The name is still one of a child; nothing is known of a table that may get it.
    assert kept.state.tables[C].reason
    kept.rename({D: G})
    assert kept.rows.has_rows(G)
