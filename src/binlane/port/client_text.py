"""A client's texts: bytes in its character set, read as characters and logged as the same bytes.

The protocol's packets hold bytes, which the gateway hands on as `codec.packets.framing.text_of` reads
them: UTF-8, any other byte a lone surrogate. In the character sets of the Far East a byte of a character
may be a backslash or a quote in ASCII; so a text is read in the character set that the session says it
is in. What does not become the same bytes again is not read.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from functools import cache
from typing import Final

from binlane.codec.charsets import python_codec, text_decoder, text_table
from binlane.codec.packets.framing import bytes_of

_AS_IT_IS: Final = frozenset(("utf8mb4", "utf8mb3", "utf8", "ascii"))
"""Character sets whose texts the gateway reads rightly."""
_Encode = Callable[[str], bytes]


def is_as_it_came(charset: str) -> bool:
    """Whether texts in a character set are what the gateway reads."""
    return charset in _AS_IT_IS


def read_text(text: str, charset: str) -> str | None:
    """A client's text in its own character set; None where that cannot be read and written back.

    Args:
        text: As the gateway has it.
        charset: character_set_client.
    """
    if charset in _AS_IT_IS or text.isascii():
        return text
    data = bytes_of(text)
    decode, encode = text_decoder(charset), _encoder(charset)
    if decode is None or encode is None:
        return text if charset == "binary" else None
    try:
        found = decode(data)
        return found if encode(found) == data else None
    except (UnicodeDecodeError, UnicodeEncodeError):
        return None


def written_text(text: str, charset: str) -> bytes | None:
    """The bytes of a text that `read_text` gave, or that was made of one; None if there are none."""
    if charset in _AS_IT_IS or text.isascii() or charset == "binary":
        return bytes_of(text)
    encode = _encoder(charset)
    try:
        return None if encode is None else encode(text)
    except UnicodeEncodeError:
        return None


@cache
def _encoder(charset: str) -> _Encode | None:
    """How to write text; None for `binary`, for what is no character set, or has no way back."""
    decode = text_decoder(charset)
    if decode is None:
        return None
    table = text_table(charset)
    if table is not None:
        characters = codecs.charmap_build(table)
        return lambda text: codecs.charmap_encode(text, "strict", characters)[0]
    name = python_codec(charset)
    return None if name is None else lambda text: text.encode(name)
