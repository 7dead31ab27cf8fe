"""Keys as users write them, and the rows that have them."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from binlane.errors import ConfigError
from binlane.tables.changes.row_key import is_same, read_key, rows_with


@pytest.mark.parametrize(
    ("texts", "names", "values"),
    [
        (["42"], (), ("42",)),
        (["42,'a'"], (), ("42", "a")),
        (["'it''s, so'", "7"], (), ("it's, so", "7")),
        (["id=42"], ("id",), ("42",)),
        (["`Id`=42, name='a,b'"], ("id", "name"), ("42", "a,b")),
        (["name='x=y'"], ("name",), ("x=y",)),
        (["'x=y'"], (), ("x=y",)),
        (['"x"'], (), ("x",)),
        (["-5"], (), ("-5",)),
        (["name="], ("name",), ("",)),
    ],
)
def test_a_key_is_read(texts: list[str], names: tuple[str, ...], values: tuple[str, ...]) -> None:
    key = read_key(texts)
    assert (key.names, key.values) == (names, values)


@pytest.mark.parametrize("texts", [["id=1", "2"], ["'open"], ["id=1,2"]])
def test_what_is_no_key_is_refused(texts: list[str]) -> None:
    with pytest.raises(ConfigError):
        read_key(texts)


@pytest.mark.parametrize(
    ("value", "text", "expected"),
    [
        (42, "42", True),
        (42, "042", True),
        (42, "43", False),
        (42, "x", False),
        (Decimal("9.90"), "9.9", True),
        ("a", "a", True),
        ("a", "A", False),
        (b"ab\0\0", "ab", True),
        (b"\xff", "0xFF", True),
        (None, "None", False),
        ("2026-01-02", "2026-01-02", True),
    ],
)
def test_values_are_compared_by_their_kind(value: object, text: str, *, expected: bool) -> None:
    assert is_same(value, text) is expected


@pytest.mark.parametrize(
    ("kind", "values", "text", "expected"),
    [
        (pa.int32(), [1, 42, None], "42", [False, True, False]),
        (pa.uint64(), [1, 2**63], str(2**63), [False, True]),
        (pa.int8(), [1, 2], "1000", [False, False]),
        (pa.int32(), [1, 2], "x", [False, False]),
        (pa.int32(), [1, 2], "1.5", [False, False]),
        (pa.string(), ["a", "A", None], "a", [True, False, False]),
        (pa.date32(), [date(2026, 1, 2), None], "2026-01-02", [True, False]),
        # Types whose values have several texts are left to what is decoded.
        (pa.date32(), [date(2026, 1, 2)], "0000-00-00", [True]),
        (pa.binary(), [b"a", b"b"], "a", [True, True]),
        (pa.float64(), [1.0, 2.0], "1", [True, True]),
    ],
)
def test_no_row_is_left_out_that_may_have_the_key(
    kind: pa.DataType, values: list[Any], text: str, expected: list[bool]
) -> None:
    batch = pa.record_batch({"Id": pa.array(values, kind)})
    assert rows_with(batch, [("id",)], frozenset({(text,)})).to_pylist() == expected


def test_all_columns_of_one_of_the_keys_must_fit() -> None:
    batch = pa.record_batch({"a": pa.array([1, 1, 2, 2]), "b": pa.array(["x", "y", "x", "y"])})
    wanted = frozenset({("1", "y"), ("2", "x")})
    assert rows_with(batch, [("a", "b")], wanted).to_pylist() == [False, True, True, False]
    # Names that the table had elsewhere in the log.
    assert rows_with(batch, [("a", "c"), ("a", "b")], wanted).to_pylist() == [
        *(False, True, True, False),
    ]
    assert rows_with(batch, [("c",)], frozenset({("1",)})).to_pylist() == [False] * 4
