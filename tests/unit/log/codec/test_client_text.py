"""A client's texts become characters as its server's lexer has them, and the same bytes again."""

from __future__ import annotations

import pytest

from binlane.log.codec.client_text import (
    client_codec,
    is_alike,
    is_lexed_alike,
    read_text,
    text_telling,
    told_text,
    written_text,
)

CHARSETS = (
    *(
        "armscii8",
        "ascii",
        "big5",
        "binary",
        "cp1250",
        "cp1251",
        "cp1256",
        "cp1257",
        "cp850",
        "cp852",
    ),
    *("cp866", "cp932", "dec8", "eucjpms", "euckr", "gb18030", "gb2312", "gbk", "geostd8", "greek"),
    *(
        "hebrew",
        "hp8",
        "keybcs2",
        "koi8r",
        "koi8u",
        "latin1",
        "latin2",
        "latin5",
        "latin7",
        "macce",
    ),
    *("macroman", "sjis", "swe7", "tis620", "ujis", "utf8mb3", "utf8mb4"),
)


@pytest.mark.parametrize(
    ("charset", "data", "text"),
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
        ("big5", b"\xf9\xd6\xa5\x5c", "\udcf9\udcd6功"),
        ("big5", b"\xf9'\xff\xa1", "\udcf9'\udcff\udca1"),
        ("gbk", b"\x81", "\udc81"),
        ("gbk", b"\xff\xff", "\udcff\udcff"),
        ("swe7", b"\x80", "\udc80"),
        ("ujis", b"\x8f\xa9\xf4\xb0\xa1", "\udc8f\udca9\udcf4亜"),
        ("greek", b"\xa1\xc1", "\u02bd\u0391"),
        ("binary", b"\xff\xfe", "\udcff\udcfe"),
        ("swe7", b"SELECT `[`, '@' || 1", "SELECT `[`, '@' || 1"),
    ],
)
def test_there_and_back(charset: str, data: bytes, text: str) -> None:
    assert read_text(data, charset) == text
    assert written_text(text, charset) == data


@pytest.mark.parametrize("charset", CHARSETS)
def test_ascii_stands_for_its_own_bytes_alone(charset: str) -> None:
    codec = client_codec(charset)
    assert codec is not None
    for byte in range(256):
        data = bytes((byte,))
        text = codec.decode(data)
        assert codec.encode(text) == data
        assert (text == chr(byte)) if byte < 128 else not text.isascii()


@pytest.mark.parametrize(
    ("charset", "data", "told"),
    [
        ("swe7", b"[]{}|\\^~@`", "ÄÅäåöÖÜüÉé"),
        ("armscii8", b"\xa4\xa5\xa9\xab\xac\xff\xb2", ")(.,-'Ա"),
        ("sjis", b"\x81\x5f", "\\"),
        ("ujis", b"\xa1\xc0", "\\"),
        ("latin1", b"[\xa0]", "[\xa0]"),
    ],
)
def test_names_and_strings_are_what_the_server_makes_of_them(
    charset: str, data: bytes, told: str
) -> None:
    text = read_text(data, charset)
    assert text is not None
    assert told_text(text, charset) == told
    assert text_telling(told, charset) == text


def test_what_swe7_has_not_cannot_be_told_in_it() -> None:
    assert text_telling("[t]", "swe7") is None
    assert text_telling("[t]", "") == "[t]"
    assert written_text("Ä", "swe7") is None


@pytest.mark.parametrize(
    ("charset", "data"),
    [
        ("big5", b"\xc8\x40"),
        ("gbk", b"\xa1\x5c"),
        ("klingon", b"\xe9"),
        ("ucs2", b"a"),
    ],
)
def test_what_has_no_way_back_is_not_read(charset: str, data: bytes) -> None:
    assert read_text(data, charset) is None


def test_what_a_character_set_lacks_is_not_written() -> None:
    assert written_text("😀", "latin1") is None
    assert written_text("\u2018", "greek") is None
    assert written_text("é", "klingon") is None


def test_some_texts_say_the_same_in_all_character_sets() -> None:
    assert is_alike("INSERT INTO t VALUES ('x', 1)")
    assert not is_alike("SELECT 'a@b'")
    assert is_lexed_alike("SELECT 'a@b' || `c`")
    for text in ("é", "a^b", "~1", "{x}", "[t]", "'\\n'"):
        assert not is_lexed_alike(text)
        assert not is_alike(text)
