"""Text of others, as logs and terminals get it."""

from __future__ import annotations

import pytest

from binlane.visible import visible


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("orders.000001", "orders.000001"),
        ("Müller, 表 and 🦭", "Müller, 表 and 🦭"),
        ("C:\\new", "C:\\new"),
        ("a\n<0>b\r\nc\td", "a\\n<0>b\\r\\nc\\td"),
        ("\x1b[2J\x07\x00\x7f\x9b", "\\x1b[2J\\x07\\x00\\x7f\\x9b"),
        ("a\u2028b\u2029c\x85d", "a\\u2028b\\u2029c\\x85d"),
        ("evil\u202etxt.exe\u2066", "evil\\u202etxt.exe\\u2066"),
        (b"M\xfcller\xff".decode("utf-8", "surrogateescape"), "M\\xfcller\\xff"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_what_is_not_printed_stands_as_its_escape(text: str, expected: str) -> None:
    assert visible(text) == expected
    assert visible(text).isprintable()
    assert visible(text).encode()
