"""The text of a statement in its client's character set, so that it can be read and written back.

A reader of SQL must see a quote or backslash where the server's sees one, and nowhere else: in gbk,
sjis and big5 the second byte of a character may look like either. And what it puts in the place of
the text must be bytes of the same character set.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final

from binlane.codec.charsets import charset_of, python_codec, text_decoder, text_table
from binlane.codec.query import QueryEvent
from binlane.codec.status_vars import client_collation
from binlane.errors import UnsupportedError

_UTF8: Final = "utf-8"
_ERRORS: Final = "surrogateescape"
# Their second bytes may be ASCII; of all others any byte below 128 is a character of its own.
_WITH_ASCII_INSIDE: Final = frozenset({"big5", "gbk", "gb18030", "sjis", "cp932"})


@dataclass(frozen=True, slots=True)
class _Codec:
    """Both ways between bytes and text."""

    decode: Callable[[bytes], str]
    encode: Callable[[str], bytes]


def statement_text(event: QueryEvent) -> str:
    """The statement, decoded so that `statement_bytes` gives its bytes.

    What is no text in its character set is read as UTF-8 or, bytes that are none, as lone
    surrogates.
    """
    return _codec_of(event).decode(event.query)


def statement_bytes(event: QueryEvent, text: str) -> bytes:
    """The bytes of another text in the place of an event's.

    Raises:
        UnsupportedError: If the character set has not all of its characters.
    """
    codec = _codec_of(event)
    try:
        data = codec.encode(text)
        if codec.decode(data) == text:
            return data
    except UnicodeError:
        pass
    raise UnsupportedError("a statement cannot be written in the character set of its client")


def _codec_of(event: QueryEvent) -> _Codec:
    collation = client_collation(event)
    charset = None if collation is None else charset_of(collation)
    codec = None if charset is None else _codec(charset)
    if codec is None or event.query.isascii():
        return _PLAIN if charset not in _WITH_ASCII_INSIDE else codec or _PLAIN
    try:
        if codec.encode(codec.decode(event.query)) == event.query:
            return codec
    except UnicodeError:
        pass
    return _escaping(charset) if charset in _WITH_ASCII_INSIDE and charset else _PLAIN


@cache
def _codec(charset: str) -> _Codec | None:
    table = text_table(charset)
    if table is not None:
        inverse = codecs.charmap_build(table)
        return _Codec(
            lambda data: codecs.charmap_decode(data, "strict", table)[0],
            lambda text: codecs.charmap_encode(text, "strict", inverse)[0],
        )
    name = python_codec(charset)
    if name is None or text_decoder(charset) is None:
        return None
    return _Codec(lambda data: data.decode(name), lambda text: text.encode(name))


@cache
def _escaping(charset: str) -> _Codec:
    name = python_codec(charset) or _UTF8
    return _Codec(lambda data: data.decode(name, _ERRORS), lambda text: text.encode(name, _ERRORS))


_PLAIN: Final = _Codec(
    lambda data: data.decode(_UTF8, _ERRORS), lambda text: text.encode(_UTF8, _ERRORS)
)
