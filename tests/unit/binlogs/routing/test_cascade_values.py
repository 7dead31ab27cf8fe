"""Values of foreign keys: when two are equal, and how a parent's value is set in a child."""

from __future__ import annotations

import pytest

from binlane.binlogs.routing.cascade_values import ODD, KeyShape
from binlane.log.codec.columns import Column
from binlane.log.codec.types import ColumnType

_COLLATIONS = {"binary": 63, "utf8mb4_bin": 46, "utf8mb4_general_ci": 45, "utf8mb4_0900_ai_ci": 255}


def _column(kind: ColumnType, metadata: int, collation: str, index: int = 0) -> Column:
    return Column(
        index=index,
        type=kind,
        metadata=metadata,
        is_nullable=True,
        name="k",
        is_unsigned=None,
        collation_id=_COLLATIONS.get(collation),
    )


def _text(collation: str, length: int = 20) -> KeyShape:
    column = _column(ColumnType.VARCHAR, length, collation)
    return KeyShape((column,), ("" if collation == "binary" else collation,))


def _value(text: str, prefix: int = 1) -> bytes:
    data = text.encode()
    return len(data).to_bytes(prefix, "little") + data


@pytest.mark.parametrize(
    ("collation", "one", "other", "is_equal"),
    [
        ("utf8mb4_general_ci", "abc", "ABC  ", True),
        ("utf8mb4_general_ci", "abc", "abd", False),
        ("utf8mb4_0900_ai_ci", "abc", "ABC", True),
        ("utf8mb4_bin", "abc", "abc ", True),
        ("utf8mb4_bin", "abc", "ABC", False),
        ("utf8mb4_bin", "ä", "ä", True),
        ("binary", "abc", "abc ", False),
        ("binary", "abc", "abc", True),
    ],
)
def test_texts_that_are_equal(collation: str, one: str, other: str, *, is_equal: bool) -> None:
    shape = _text(collation)
    found, wanted = shape.key([_value(one)]), shape.key([_value(other)])
    assert found is not None
    assert wanted is not None
    assert not found.is_odd
    assert (found == wanted) is is_equal


@pytest.mark.parametrize(
    ("collation", "text"),
    [
        ("utf8mb4_general_ci", "ä"),
        ("utf8mb4_general_ci", "a\x01"),
        ("utf8mb4_general_ci", "a-b"),
        # Without padding a space at the end counts, and who knows what else is like it.
        ("utf8mb4_0900_ai_ci", "a "),
    ],
)
def test_texts_of_which_nobody_here_says_what_equals_them(collation: str, text: str) -> None:
    assert _text(collation).key([_value(text)]) == ODD


def test_a_key_with_null_refers_to_nothing() -> None:
    pair = KeyShape(
        (_column(ColumnType.LONG, 0, ""), _column(ColumnType.LONG, 0, "", index=1)), ("", "")
    )
    assert pair.key([b"\1\0\0\0", None]) is None
    assert pair.key([b"\1\0\0\0", b"\2\0\0\0"]) != pair.key([b"\2\0\0\0", b"\1\0\0\0"])


def test_a_value_of_a_parent_is_set_with_the_length_of_the_child() -> None:
    child, parent = _text("utf8mb4_bin"), _text("utf8mb4_bin", 300)
    assert child.is_like(parent)
    row: list[bytes | None] = [_value("a")]
    child.set_in(row, ([_value("a", 2)], [_value("abc", 2)]), parent)
    assert row == [_value("abc")]
    child.set_in(row, ([_value("x", 2)], [_value("x", 2)]), parent)
    assert row == [_value("abc")]
    child.set_in(row, ([_value("x", 2)], [None]), parent)
    assert row == [None]


def test_keys_that_are_not_compared() -> None:
    whole, short = (
        KeyShape((_column(kind, 0, ""),), ("",)) for kind in (ColumnType.LONG, ColumnType.SHORT)
    )
    assert not whole.is_like(short)
    assert not _text("utf8mb4_bin").is_like(_text("utf8mb4_general_ci"))
    assert not _text("binary").is_like(_text("binary", 30))
