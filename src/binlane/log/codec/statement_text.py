"""The text of a logged statement in its client's character set: read, and written back."""

from __future__ import annotations

from typing import Final

from binlane.errors import UnsupportedError
from binlane.log.codec.charsets import charset_of
from binlane.log.codec.client_text import ClientCodec, client_codec
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.status_vars import client_collation

_UTF8: Final = "utf8mb4"


def statement_text(event: QueryEvent) -> str:
    """The statement, as its server's lexer has it; bytes that are no text are lone surrogates."""
    return event.query.decode() if event.query.isascii() else _codec_of(event).decode(event.query)


def statement_charset(event: QueryEvent) -> str:
    """Return the character set of a statement; UTF-8's if the event does not name one."""
    collation = client_collation(event)
    charset = None if collation is None else charset_of(collation)
    return _UTF8 if charset is None or client_codec(charset) is None else charset


def statement_bytes(event: QueryEvent, text: str) -> bytes:
    """The bytes of another text in the place of an event's.

    Raises:
        UnsupportedError: If the character set has not all of its characters.
    """
    codec = _codec_of(event)
    try:
        data = encoded(event, text)
        if codec.decode(data) == text:
            return data
    except UnicodeError:
        pass
    raise UnsupportedError("a statement cannot be written in the character set of its client")


def encoded(event: QueryEvent, text: str) -> bytes:
    """The bytes of a part of an event's text.

    Raises:
        UnicodeError: If the character set has not all of its characters.
    """
    return _codec_of(event).encode(text)


def _codec_of(event: QueryEvent) -> ClientCodec:
    codec = client_codec(statement_charset(event))
    assert codec is not None, "it is one of those that have one"
    return codec
