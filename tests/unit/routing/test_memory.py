"""What routing remembers of a binlog, as a text and on disk."""

from __future__ import annotations

import pytest

from binlane.names import TableName
from binlane.routing.memory import NOTHING, Memory, ObjectKind, StoredObject

VIEW = StoredObject(ObjectKind.VIEW, TableName("shop", 'a "view"'))
BROKEN_NAME = StoredObject(ObjectKind.EVENT, TableName("shop", "e\udcff"))


def test_a_text_gives_it_back() -> None:
    memory = NOTHING.with_left_out(VIEW, BROKEN_NAME)
    trigger = TableName("shop", "tr"), TableName("shop", "orders")
    memory = Memory(left_out=memory.left_out, triggers=frozenset({trigger}))
    text = memory.encode()
    assert text.isascii()
    assert Memory.decode(text) == memory
    assert Memory.decode(text).encode() == text


def test_nothing_is_no_text() -> None:
    assert NOTHING.encode() == ""
    assert Memory.decode("") == NOTHING
    assert NOTHING.with_left_out(VIEW).without(VIEW).encode() == ""


@pytest.mark.parametrize("text", ['{"v":2}', "{}", "[]", "nothing", '{"v":1,"left_out":[["x"]]}'])
def test_another_text_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"memory|left|valid|value|unpack"):
        Memory.decode(text)
