"""What routing remembers of a binlog, as a text and on disk."""

from __future__ import annotations

import pytest

from binlane.binlogs.routing.routing_memory import (
    NOTHING,
    CreatedTable,
    Memory,
    PassedXa,
    StoredObject,
    StoredObjectKind,
    TableBirth,
)
from binlane.binlogs.routing.table_links import TableLinks
from binlane.names import TableName
from binlane.statements.sql.schema import ForeignKey

VIEW = StoredObject(StoredObjectKind.VIEW, TableName("shop", 'a "view"'))
BROKEN_NAME = StoredObject(StoredObjectKind.EVENT, TableName("shop", "e\udcff"))


def test_a_text_gives_it_back() -> None:
    memory = NOTHING.with_left_out(VIEW, BROKEN_NAME).with_unsure(BROKEN_NAME)
    trigger = TableName("shop", "tr"), TableName("shop", "orders")
    key = ForeignKey(
        table=TableName("shop", "c"),
        columns=("p",),
        parent=TableName("crm", "p"),
        on_delete="CASCADE",
        parent_columns=("id",),
    )
    made = CreatedTable(
        name=TableName("crm", "new"),
        query=b"CREATE TABLE \xff",
        database=b"crm",
        status_vars=b"\0",
        is_empty=True,
    )
    memory = Memory(
        left_out=memory.left_out,
        unsure=memory.unsure,
        triggers=frozenset({trigger}),
        passed=frozenset({PassedXa("X'61',X'',1", frozenset({TableName("crm", "t")}))}),
        links=TableLinks(keys=frozenset({key}), known=frozenset({key.table})),
        created=(made,),
        births=(TableBirth(name=made.name, gtid="0-1-7", since="0-1-6,1-1-3"),),
    )
    text = memory.encode()
    assert text.isascii()
    assert Memory.decode(text) == memory
    assert Memory.decode(text).encode() == text


def test_what_may_be_lost_stops_replicas_at_worst() -> None:
    made = CreatedTable(
        name=TableName("crm", "new"), query=b"", database=b"", status_vars=b"", is_empty=True
    )
    with_table = Memory(created=(made,))
    filled = with_table.with_rows({made.name})
    xid = Memory(passed=frozenset({PassedXa("X'61',X'',1", frozenset())}))
    known = Memory(links=TableLinks(known=frozenset({made.name})))
    for before, later in ((NOTHING, with_table), (xid, NOTHING), (NOTHING, known)):
        assert before.may_be_lost_for(later)
    for before, later in (
        *((with_table, filled), (with_table, NOTHING), (known, NOTHING), (NOTHING, xid)),
    ):
        assert not before.may_be_lost_for(later)
    assert not NOTHING.may_be_lost_for(NOTHING.with_left_out(VIEW))
    for memory in (with_table, xid, known):
        assert memory.behind_gap() == NOTHING
    assert NOTHING.with_left_out(VIEW).behind_gap() == NOTHING.with_left_out(VIEW)
    assert filled.empty_tables == frozenset()
    assert filled.with_rows({made.name}) is filled


def test_nothing_is_no_text() -> None:
    assert NOTHING.encode() == ""
    assert Memory.decode("") == NOTHING
    assert NOTHING.with_left_out(VIEW).without(VIEW).encode() == ""


@pytest.mark.parametrize("text", ['{"v":2}', "{}", "[]", "nothing", '{"v":1,"left_out":[["x"]]}'])
def test_another_text_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"memory|left|valid|value|unpack"):
        Memory.decode(text)
