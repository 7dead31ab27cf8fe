"""Default collations of character sets, as both servers have them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from binlane.codec.types import Flavor
from binlane.sql.versions import ASSUMED, Fact, Version, has

_DEFAULTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "binary": "binary",
        "latin1": "latin1_swedish_ci",
        "latin5": "latin5_turkish_ci",
        "big5": "big5_chinese_ci",
        "gbk": "gbk_chinese_ci",
        "gb2312": "gb2312_chinese_ci",
        "gb18030": "gb18030_chinese_ci",
        "sjis": "sjis_japanese_ci",
        "cp932": "cp932_japanese_ci",
        "ujis": "ujis_japanese_ci",
        "eucjpms": "eucjpms_japanese_ci",
        "euckr": "euckr_korean_ci",
        "dec8": "dec8_swedish_ci",
        "swe7": "swe7_swedish_ci",
        "hp8": "hp8_english_ci",
        "tis620": "tis620_thai_ci",
    }
)


_UNICODE: Final = frozenset(("utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32"))
"""What MariaDB's character_set_collations names."""


def default_collation(charset: str, flavor: Flavor, version: Version | None = None) -> str:
    """The collation that text has whose character set alone is named.

    Args:
        charset: The character set.
        flavor: Of the server.
        version: Of the server; None for the one that is assumed where none is named.
    """
    charset = charset.lower()
    if charset == "utf8":
        charset = "utf8mb3"
    if charset == "utf8mb4" and flavor is Flavor.MYSQL:
        return "utf8mb4_0900_ai_ci"
    version = version or ASSUMED[flavor.value]
    if charset in _UNICODE and has(Fact.UNICODE_COLLATION_14, flavor.value, version):
        return f"{charset}_uca1400_ai_ci"
    return _DEFAULTS.get(charset, f"{charset}_general_ci")


def charset_of_collation(collation: str) -> str:
    """The character set that a collation's name begins with."""
    charset = collation.partition("_")[0]
    return {"utf8": "utf8mb3", "uca1400": "utf8mb4"}.get(charset, charset)


def bytes_per_character(charset: str) -> int:
    """How many bytes a character may have."""
    return _WIDTHS.get(charset, 1)


_WIDTHS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "utf8mb4": 4,
        "utf8mb3": 3,
        "utf16": 4,
        "utf16le": 4,
        "utf32": 4,
        "ucs2": 2,
        "big5": 2,
        "gbk": 2,
        "gb2312": 2,
        "sjis": 2,
        "cp932": 2,
        "euckr": 2,
        "ujis": 3,
        "eucjpms": 3,
        "gb18030": 4,
    }
)
