"""The text of a client in its character set, as the servers' lexer has it, and the same bytes again.

A reader of SQL must see a quote, backslash or operator where the server's sees one, and nowhere else:
in gbk, sjis and big5 the second byte of a character may look like one, in armscii8 a byte above 127
means an apostrophe, and in swe7 a bracket is a letter. So ASCII characters of a text stand for their own
bytes alone; what the server makes of names and strings in it says `told`. And what is put in the place
of a text must be bytes of the same character set.

Source: CONVERT(… USING utf8mb4) of every byte and pair of bytes, and statements with every byte in
each place, on MariaDB 10.11 and MySQL 9.7.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Final, NamedTuple

from binlane.log.codec.charsets import codec_differences, python_codec, text_table

SWE7: Final = "swe7"
"""The one character set of clients in which bytes below 128 are not those of ASCII."""
AS_IT_IS: Final = frozenset(("utf8mb4", "utf8mb3", "utf8", "ascii", "binary"))
"""Read as UTF-8; any other byte is a lone surrogate."""
_NOT_OF_CLIENTS: Final = frozenset(("ucs2", "utf16", "utf16le", "utf32"))
_HIDDEN: Final = 0x10FF00
"""Before the code of an ASCII character that a text has not got by its own byte: private ones."""
_UTF8: Final = "utf-8"
_ERRORS: Final = "surrogateescape"
_UNREADABLE: Final = "\ud800"
"""A character that no character set can encode."""
_EUC: Final = rb"[\xa1-\xfe]{2}|\x8e[\xa0-\xdf]|\x8f[\xa1-\xfe]{2}"
_SJIS: Final = rb"[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]"
_MULTIBYTE: Final[Mapping[str, bytes]] = MappingProxyType(
    {
        "big5": rb"[\xa1-\xf9][\x40-\x7e\xa1-\xfe]",
        "cp932": _SJIS,
        "eucjpms": _EUC,
        "euckr": rb"[\x81-\xfe][\x41-\x5a\x61-\x7a\x81-\xfe]",
        "gb18030": rb"[\x81-\xfe](?:[\x40-\x7e\x80-\xfe]|[\x30-\x39][\x81-\xfe][\x30-\x39])",
        "gb2312": rb"[\xa1-\xf7][\xa1-\xfe]",
        "gbk": rb"[\x81-\xfe][\x40-\x7e\x80-\xfe]",
        "sjis": _SJIS,
        "ujis": _EUC,
    }
)
"""Bytes that the servers' lexers skip as one character, whether there is such a character or not."""
_ASCII: Final = "".join(map(chr, range(128)))
_OTHER_IN_SWE7: Final = re.compile(
    "[" + re.escape("".join(map(chr, codec_differences(SWE7)))) + "]"
)

_NAME_IN_SWE7: Final = re.compile(r"[A-Za-z_$\[\]{}^~][0-9A-Za-z_$\[\]{}^~]*")
_LETTER_OF_SWE7: Final = re.compile(r"[][{}^~\\]")


class ClientCodec(NamedTuple):
    """Both ways between a text's bytes and its characters.

    Attributes:
        decode: Bytes that mean nothing become lone surrogates.
        encode: Raises UnicodeEncodeError for what the character set lacks.
        told: Code points that mean other ones in quoted names and strings.
    """

    decode: Callable[[bytes], str]
    encode: Callable[[str], bytes]
    told: Mapping[int, int]


def is_alike(text: str) -> bool:
    """True if a text has the same bytes in every character set that a client may have."""
    return text.isascii() and _OTHER_IN_SWE7.search(text) is None


def is_lexed_alike(text: str) -> bool:
    """True if a text has the same tokens in every character set that a client may have."""
    return text.isascii() and _LETTER_OF_SWE7.search(text) is None


@cache
def client_codec(charset: str) -> ClientCodec | None:
    """Return the reading and writing of a character set's texts; None if a client cannot have it."""
    if charset in _NOT_OF_CLIENTS:
        return None
    if charset in AS_IT_IS:
        return _of_python(_UTF8, {}, {})
    if charset == SWE7:
        return _of_python("ascii", {}, codec_differences(charset))
    table = text_table(charset)
    if table is not None:
        upper = table[len(_ASCII) :]
        hidden = {ord(one): _HIDDEN + ord(one) for one in upper if one.isascii()}
        return _of_table(_ASCII + upper.translate(hidden), _inverse(hidden))
    name = python_codec(charset)
    if name is None:
        return None
    others = codec_differences(charset)
    differences = {
        code: _HIDDEN + other if other < len(_ASCII) else other for code, other in others.items()
    }
    told = {one: one - _HIDDEN for one in differences.values() if one >= _HIDDEN}
    return _of_python(name, differences, told, errors=_errors(charset))


def _errors(charset: str) -> str:
    """Return the name of an error handler that skips as many bytes at a time as the servers' lexers."""
    pattern = _MULTIBYTE.get(charset)
    if pattern is None:
        return _ERRORS
    multibyte, name = re.compile(pattern), f"binlane-{charset}"

    def handle(error: UnicodeError) -> tuple[str, int]:
        assert isinstance(error, UnicodeDecodeError), "to encode is strict about it"
        found = multibyte.match(error.object, error.start)
        skipped = error.object[error.start : found.end() if found else error.start + 1]
        # A later byte that looks like ASCII would be read as that.
        is_cut = any(byte < len(_ASCII) for byte in skipped)
        text = _UNREADABLE if is_cut else skipped.decode("ascii", _ERRORS)
        return text, error.start + len(skipped)

    codecs.register_error(name, handle)
    return name


def _inverse(codes: Mapping[int, int]) -> Mapping[int, int]:
    return MappingProxyType({other: code for code, other in codes.items()})


def _of_table(table: str, told: Mapping[int, int]) -> ClientCodec:
    characters = codecs.charmap_build(table)
    return ClientCodec(
        lambda data: codecs.charmap_decode(data, _ERRORS, table)[0],
        lambda text: codecs.charmap_encode(text, _ERRORS, characters)[0],
        told,
    )


def _of_python(
    name: str, differences: Mapping[int, int], told: Mapping[int, int], *, errors: str = _ERRORS
) -> ClientCodec:
    if not differences:
        return ClientCodec(
            lambda data: data.decode(name, errors), lambda text: text.encode(name, _ERRORS), told
        )
    back = _inverse(differences)
    return ClientCodec(
        lambda data: data.decode(name, errors).translate(differences),
        lambda text: text.translate(back).encode(name, _ERRORS),
        told,
    )


def read_text(data: bytes, charset: str) -> str | None:
    """A client's text; None where it cannot be read and written back.

    A byte that belongs to no character is a lone surrogate.

    Args:
        data: The text as the client sent it.
        charset: The session's value of character_set_client.
    """
    codec = client_codec(charset)
    if codec is None:
        return None
    text = codec.decode(data)
    if charset in AS_IT_IS:
        return text
    return text if written_text(text, charset) == data else None


def written_text(text: str, charset: str) -> bytes | None:
    """Return the bytes of a text that `read_text` gave, or of one made from it; None if none."""
    codec = client_codec(charset)
    if codec is None:
        return None
    try:
        data = codec.encode(text)
    except UnicodeEncodeError:
        return None
    return data if codec.decode(data) == text else None


def told_text(text: str, charset: str) -> str:
    """Return the server's reading of a name in quotes, or of a string, in a text."""
    codec = client_codec(charset)
    return text if codec is None or not codec.told else text.translate(codec.told)


def text_telling(content: str, charset: str) -> str | None:
    """Return the text for the content of a quoted name or string; None if there is none.

    What `told_text` makes of it is the content.
    """
    codec = client_codec(charset) if charset else None
    if codec is None or not codec.told:
        return content
    text = content.translate(_inverse(codec.told))
    return text if told_text(text, charset) == content else None


def text_of_name(name: str, charset: str, mark: str = "`") -> str | None:
    """Return the text for a name; None if there is none.

    Args:
        name: The name as the server has it.
        charset: The character set of the text; empty for that of UTF-8.
        mark: The mark that the text has around names.
    """
    text = text_telling(name, charset)
    if text is not None:
        return mark + text.replace(mark, mark + mark) + mark
    # A name of ASCII alone means itself without quotes.
    return name if charset == SWE7 and _NAME_IN_SWE7.fullmatch(name) else None
