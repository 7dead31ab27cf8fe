from __future__ import annotations

import pytest

from binlane.log.codec.charsets import charset_of, collation_of, text_decoder


@pytest.mark.parametrize(
    "collation_id, charset",
    [
        (8, "latin1"),
        (33, "utf8mb3"),
        (45, "utf8mb4"),
        (63, "binary"),
        # MySQL: utf8mb4_0900_ai_ci and the last of its kin, gb18030.
        (255, "utf8mb4"),
        (323, "utf8mb4"),
        (248, "gb18030"),
        # MariaDB: croatian, NOPAD, uca1400.
        (608, "utf8mb4"),
        (1032, "latin1"),
        (1270, "utf8mb4"),
        (2048, "utf8mb3"),
        (2304, "utf8mb4"),
        (3271, "utf32"),
        (0, None),
        (400, None),
        (9999, None),
    ],
)
def test_a_collation_tells_its_character_set(collation_id: int, charset: str | None) -> None:
    assert charset_of(collation_id) == charset


@pytest.mark.parametrize(
    "charset, data, text",
    [
        ("latin1", "80 81 8d e9", "€\x81\x8dé"),
        ("utf8mb4", "f09f9880", "😀"),
        ("ucs2", "041f", "П"),
        ("utf16", "d83dde00", "😀"),
        ("utf16le", "3dd800de", "😀"),
        ("utf32", "0001f600", "😀"),
        ("cp1251", "ff", "я"),
        ("koi8u", "95 a4", "•є"),
        ("cp866", "fc fd", "ⁿ²"),
        ("greek", "a1 c1", "\u02bd\u0391"),
        ("hebrew", "af e0", "‾א"),
        ("swe7", "5b 7d", "Äå"),
        ("armscii8", "b2", "Ա"),
        ("dec8", "a8", "¤"),
        ("hp8", "a1", "À"),
        ("keybcs2", "80", "Č"),
        ("geostd8", "c0", "ა"),
        ("sjis", "93fa 815f 5c", "日\\\\"),
        ("cp932", "8740 815f", "①\uff3c"),
        ("ujis", "c6fc a1c0", "日\\"),
        ("eucjpms", "a1dd", "\uff0d"),
        ("gbk", "d6d0", "中"),
        ("gb2312", "d6d0", "中"),
        ("gb18030", "81308130", "\x80"),
        ("big5", "a4a4", "中"),
        ("euckr", "b0a1 8141", "가갂"),
        ("tis620", "a1", "ก"),
    ],
)
def test_text_is_decoded_as_the_servers_map_it(charset: str, data: str, text: str) -> None:
    decode = text_decoder(charset)
    assert decode is not None
    assert decode(bytes.fromhex(data)) == text


@pytest.mark.parametrize(
    "charset, data",
    [("utf8mb4", "ff"), ("ascii", "80"), ("ucs2", "04"), ("swe7", "80"), ("dec8", "a4")],
)
def test_bytes_that_mean_nothing_are_not_guessed(charset: str, data: str) -> None:
    decode = text_decoder(charset)
    assert decode is not None
    with pytest.raises(UnicodeDecodeError):
        decode(bytes.fromhex(data))


@pytest.mark.parametrize("charset", ["binary", "nonsense"])
def test_what_is_no_text_has_no_decoder(charset: str) -> None:
    assert text_decoder(charset) is None


def test_every_character_set_has_a_collation() -> None:
    for collation_id in range(1, 255):
        charset = charset_of(collation_id)
        if charset is not None:
            found = collation_of(charset)
            assert found is not None
            assert charset_of(found) == charset
    assert collation_of("utf8") == collation_of("utf8mb3")
    assert collation_of("klingon") is None
