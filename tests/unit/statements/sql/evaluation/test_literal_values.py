"""Literals of bytes, as XA statements and expressions have them."""

from __future__ import annotations

import pytest

from binlane.statements.sql.evaluation.literal_values import bytes_value


@pytest.mark.parametrize(
    ("text", "is_hexadecimal", "value"),
    [
        ("x'41'", True, "A"),
        ("_utf8 x'4142'", True, "AB"),
        ("0x4", True, "\x04"),
        # The branch of an XA transaction that has none, as servers write it.
        ("X''", True, ""),
        ("b'1000001'", False, "A"),
        ("0b1", False, "\x01"),
        ("b''", False, ""),
    ],
)
def test_bytes_of_a_literal(text: str, value: str, *, is_hexadecimal: bool) -> None:
    assert bytes_value(text, is_hexadecimal=is_hexadecimal) == value
