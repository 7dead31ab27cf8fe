"""Character sets of the servers: collation id → character set → how to decode its bytes.

A character set decodes exactly as the servers map it, or not at all: NEC's extensions in eucjpms,
user-defined characters in ujis and seven characters of big5 have no Python codec, so that values
with them stay bytes.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping
from functools import cache, partial
from types import MappingProxyType
from typing import Final

from binlane.log.codec.charset_tables import UPPER_HALVES

BINARY: Final = "binary"
BINARY_COLLATION: Final = 63
TextDecoder = Callable[[bytes], str]
"""Raises UnicodeDecodeError for bytes that mean nothing in the character set."""

# Inclusive ranges of collation ids. The flavors agree up to 254; above, MySQL uses 255 to 323 and
# MariaDB what it does not. MariaDB's NOPAD collations are those of the same name plus 1024.
_NOPAD: Final = 1024
_COLLATIONS: Final[Mapping[str, tuple[tuple[int, int], ...]]] = MappingProxyType(
    {
        "armscii8": ((32, 32), (64, 64)),
        "ascii": ((11, 11), (65, 65)),
        "big5": ((1, 1), (84, 84)),
        BINARY: ((63, 63),),
        "cp1250": ((26, 26), (34, 34), (44, 44), (66, 66), (99, 99)),
        "cp1251": ((14, 14), (23, 23), (50, 52)),
        "cp1256": ((57, 57), (67, 67)),
        "cp1257": ((29, 29), (58, 59)),
        "cp850": ((4, 4), (80, 80)),
        "cp852": ((40, 40), (81, 81)),
        "cp866": ((36, 36), (68, 68)),
        "cp932": ((95, 96),),
        "dec8": ((3, 3), (69, 69)),
        "eucjpms": ((97, 98),),
        "euckr": ((19, 19), (85, 85)),
        "gb18030": ((248, 250),),
        "gb2312": ((24, 24), (86, 86)),
        "gbk": ((28, 28), (87, 87)),
        "geostd8": ((92, 93),),
        "greek": ((25, 25), (70, 70)),
        "hebrew": ((16, 16), (71, 71)),
        "hp8": ((6, 6), (72, 72)),
        "keybcs2": ((37, 37), (73, 73)),
        "koi8r": ((7, 7), (74, 74)),
        "koi8u": ((22, 22), (75, 75)),
        "latin1": ((5, 5), (8, 8), (15, 15), (31, 31), (47, 49), (94, 94)),
        "latin2": ((2, 2), (9, 9), (21, 21), (27, 27), (77, 77)),
        "latin5": ((30, 30), (78, 78)),
        "latin7": ((20, 20), (41, 42), (79, 79)),
        "macce": ((38, 38), (43, 43)),
        "macroman": ((39, 39), (53, 53)),
        "sjis": ((13, 13), (88, 88)),
        "swe7": ((10, 10), (82, 82)),
        "tis620": ((18, 18), (89, 89)),
        "ucs2": ((35, 35), (90, 90), (128, 151), (159, 159), (640, 642), (2560, 2815)),
        "ujis": ((12, 12), (91, 91)),
        "utf16": ((54, 55), (101, 124), (672, 674), (2816, 3071)),
        "utf16le": ((56, 56), (62, 62)),
        "utf32": ((60, 61), (160, 183), (736, 738), (3072, 3327)),
        "utf8mb3": ((33, 33), (76, 76), (83, 83), (192, 215), (223, 223), (576, 579), (2048, 2303)),
        "utf8mb4": ((45, 46), (224, 247), (255, 323), (608, 611), (2304, 2559)),
    }
)
_ALIASES: Final[Mapping[str, str]] = MappingProxyType({"utf8": "utf8mb3"})
_PYTHON_CODECS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ascii": "ascii",
        "big5": "big5",
        "cp1250": "cp1250",
        "cp1251": "cp1251",
        "cp1256": "cp1256",
        "cp1257": "cp1257",
        "cp850": "cp850",
        "cp852": "cp852",
        "cp866": "cp866",
        "cp932": "cp932",
        "eucjpms": "euc_jp",
        "euckr": "cp949",
        "gb18030": "gb18030",
        "gb2312": "gb2312",
        "gbk": "gbk",
        "greek": "iso8859-7",
        "hebrew": "iso8859-8",
        "koi8r": "koi8-r",
        "koi8u": "koi8-u",
        "latin2": "iso8859-2",
        "latin5": "iso8859-9",
        "latin7": "iso8859-13",
        "macce": "mac_latin2",
        "macroman": "mac_roman",
        "sjis": "shift_jis",
        "swe7": "ascii",
        "tis620": "tis-620",
        "ucs2": "utf-16-be",
        "ujis": "euc_jp",
        "utf16": "utf-16-be",
        "utf16le": "utf-16-le",
        "utf32": "utf-32-be",
        "utf8mb3": "utf-8",
        "utf8mb4": "utf-8",
    }
)
# Characters to which the servers map a byte sequence otherwise than Python's codec: Python's code
# point → the servers'. Measured on MariaDB 10.11 over every byte and pair of bytes.
_DIFFERENCES: Final[Mapping[str, Mapping[int, int]]] = MappingProxyType(
    {
        "cp866": {0x2116: 0x207F, 0xA4: 0xB2},
        "eucjpms": {
            0x301C: 0xFF5E,
            0x2016: 0x2225,
            0x2212: 0xFF0D,
            0xA2: 0xFFE0,
            0xA3: 0xFFE1,
            0xAC: 0xFFE2,
        },
        "greek": {0x2018: 0x2BD, 0x2019: 0x2BC},
        "hebrew": {0xAF: 0x203E},
        "koi8u": {0x2219: 0x2022},
        "sjis": {0xFF3C: 0x5C},
        "swe7": {
            0x40: 0xC9,
            0x5B: 0xC4,
            0x5C: 0xD6,
            0x5D: 0xC5,
            0x5E: 0xDC,
            0x60: 0xE9,
            0x7B: 0xE4,
            0x7C: 0xF6,
            0x7D: 0xE5,
            0x7E: 0xFC,
        },
        "ujis": {0xFF3C: 0x5C},
    }
)
_NO_DIFFERENCES: Final[Mapping[int, int]] = MappingProxyType({})
_ASCII: Final = "".join(map(chr, range(128)))
# latin1 is cp1252 whose five unassigned bytes are C1 controls.
_LATIN1: Final = "".join(
    chr(byte) if byte in {0x81, 0x8D, 0x8F, 0x90, 0x9D} else bytes((byte,)).decode("cp1252")
    for byte in range(256)
)
_TABLES: Final[Mapping[str, str]] = MappingProxyType(
    {"latin1": _LATIN1, **{name: _ASCII + upper for name, upper in UPPER_HALVES.items()}}
)


@cache
def charset_of(collation_id: int) -> str | None:
    """The character set that a collation belongs to; None if the id is unknown."""
    ids = {collation_id}
    if _NOPAD < collation_id < 2 * _NOPAD:
        ids.add(collation_id - _NOPAD)
    for charset, ranges in _COLLATIONS.items():
        if any(first <= number <= last for first, last in ranges for number in ids):
            return charset
    return None


@cache
def collation_of(charset: str) -> int | None:
    """One of the collations of a character set, the one with the lowest id; None if unknown."""
    ranges = _COLLATIONS.get(_ALIASES.get(charset, charset))
    return None if ranges is None else ranges[0][0]


def text_table(charset: str) -> str | None:
    """The 256 characters of a character set of one byte that Python has no codec for."""
    return _TABLES.get(charset)


def python_codec(charset: str) -> str | None:
    """The name of Python's codec, which differs from the servers in a few characters."""
    return _PYTHON_CODECS.get(charset)


def codec_differences(charset: str) -> Mapping[int, int]:
    """Return code points where the servers' character is another than Python's codec's → theirs."""
    return _DIFFERENCES.get(charset, _NO_DIFFERENCES)


@cache
def text_decoder(charset: str) -> TextDecoder | None:
    """Return a decoder of text; None for `binary` and for unknown character sets."""
    if charset in _TABLES:
        return partial(_decode_by_table, _TABLES[charset])
    codec = _PYTHON_CODECS.get(charset)
    if codec is None:
        return None
    differences = _DIFFERENCES.get(charset)
    if differences is not None:
        return partial(_decode_with_differences, codec, differences)
    return partial(str, encoding=codec)


def _decode_by_table(table: str, data: bytes) -> str:
    return codecs.charmap_decode(data, "strict", table)[0]


def _decode_with_differences(codec: str, differences: Mapping[int, int], data: bytes) -> str:
    return data.decode(codec).translate(differences)


def encoded_text(text: str, charset: str) -> bytes | None:
    """The bytes of a text in a character set; None if it has not all characters, or is unknown."""
    table, codec = _TABLES.get(charset), _PYTHON_CODECS.get(charset)
    try:
        if table is not None:
            return bytes(map(table.index, text))
        if codec is None:
            return None
        theirs = {there: ours for ours, there in codec_differences(charset).items()}
        return text.translate(theirs).encode(codec)
    except ValueError:
        return None
