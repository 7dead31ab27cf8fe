"""A client's texts become characters and the same bytes again."""

from __future__ import annotations

import pytest

from binlane.codec.packets.framing import text_of
from binlane.port.client_text import read_text, written_text


@pytest.mark.parametrize(
    "charset, data, text",
    [
        ("utf8mb4", "ü😀".encode(), "ü😀"),
        ("utf8mb4", b"\xff", "\udcff"),
        ("latin1", b"\xe9", "é"),
        ("latin1", b"\xc3\xa9", "Ã©"),
        ("latin1", b"\x81\x80", "\x81€"),
        ("gbk", b"\x81\x5c'", "乗'"),
        ("sjis", b"\x83\x5c", "ソ"),
        ("big5", b"\xa5\x5c", "功"),
        ("cp1251", b"\xcf", "П"),
        ("binary", b"\xff\xfe", "\udcff\udcfe"),
    ],
)
def test_there_and_back(charset: str, data: bytes, text: str) -> None:
    assert read_text(text_of(data), charset) == text
    assert written_text(text, charset) == data


def test_ascii_is_the_same_in_all() -> None:
    text = "INSERT INTO t VALUES ('x\\'')"
    assert read_text(text, "sjis") is text
    assert written_text(text, "sjis") == text.encode()


@pytest.mark.parametrize(
    "charset, data", [("gbk", b"\x81"), ("gbk", b"\xff\xff"), ("klingon", b"\xe9")]
)
def test_what_has_no_way_back_is_not_read(charset: str, data: bytes) -> None:
    assert read_text(text_of(data), charset) is None


def test_what_a_character_set_lacks_is_not_written() -> None:
    assert written_text("😀", "latin1") is None
    assert written_text("é", "klingon") is None
