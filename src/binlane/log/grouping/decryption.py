"""The bytes of a binlog file, encrypted or not → the bytes of the plain file, in pieces.

Positions in the plain bytes are those that the servers count: MySQL's header of 512 bytes is gone,
MariaDB's START_ENCRYPTION event stays where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from binlane.errors import CodecError, TruncatedError, UnsupportedError
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import decode_event
from binlane.log.codec.format import (
    EVENT_LENGTH_MAX,
    HEADER_LENGTH,
    MAGIC,
    MAGIC_ENCRYPTED,
    Format,
)
from binlane.log.codec.types import EventType
from binlane.log.grouping.pieces import Pieces

if TYPE_CHECKING:
    from binlane.log.codec.encryption import KeyRing, StartEncryptionEvent

# A FORMAT_DESCRIPTION has at most one byte for each event type; what is longer is damage, which
# whoever reads the plain bytes will tell.
_DESCRIPTION_LENGTH_MAX: Final = 1024
_TYPE_OFFSET: Final = 4
_LENGTH_OFFSET: Final = 9
_POSITION_MASK: Final = (1 << 32) - 1

EventDecryptor = Callable[[bytes, int], bytes]


def plain_chunks(
    chunks: Iterable[bytes], *, file: str, keys: KeyRing | None = None
) -> Iterator[bytes]:
    """Yield the bytes of the plain file; a file that is not encrypted passes unchanged.

    Args:
        chunks: The file's bytes from its beginning, in pieces of any size.
        file: The file's name, as messages shall give it.
        keys: None if the user gave none.

    Yields:
        Pieces of any size. Bytes that are no events are given as they are, for their reader to
        tell of.

    Raises:
        UnsupportedError: If the file is encrypted and its key is not there or another one; what
            stands before the encrypted part was given before.
        CodecError: If MySQL's header is damaged.
    """
    source = Pieces(chunks)
    if source.peek(len(MAGIC_ENCRYPTED)) == MAGIC_ENCRYPTED:
        yield from _mysql_chunks(source, file, keys)
        return
    head = _encrypted_head(source)
    if head is None:
        yield from source.rest()
        return
    yield head.data
    yield from _mariadb_chunks(source, head, file, keys)


def is_encrypted(head: bytes) -> bool:
    """True if a file that begins with these bytes, 4 KiB or more if it has them, is encrypted."""
    if head.startswith(MAGIC_ENCRYPTED):
        return True
    source = Pieces((head,))
    found = _encrypted_head(source)
    if found is None:
        return False
    first = _event(source)
    return not (first and _is_event(first, found.format, len(found.data)))


class _Head(NamedTuple):
    """The plain beginning of a file that MariaDB encrypted."""

    data: bytes
    format: Format
    start: StartEncryptionEvent


def _mysql_chunks(source: Pieces, file: str, keys: KeyRing | None) -> Iterator[bytes]:
    # Here and below: what few files need is imported when one does.
    from binlane.log.codec.encryption import (  # noqa: PLC0415
        MYSQL_HEADER_LENGTH,
        OPTION,
        mysql_decryptor,
    )

    header = source.take(MYSQL_HEADER_LENGTH)
    try:
        if len(header) < MYSQL_HEADER_LENGTH:
            raise TruncatedError(
                f"the file ends inside MySQL's encryption header: {len(header)} bytes are there",
                hint="the file was cut",
            )
        decrypt = mysql_decryptor(header, keys)
        magic = decrypt(source.take(len(MAGIC)))
        if magic != MAGIC:
            raise UnsupportedError(
                "the file does not open with the key given: no binlog comes out",
                hint=f"give the keyring of the server that wrote the log: {OPTION} FILE",
            )
    except CodecError as error:
        raise error.at(file, 0) from None
    yield magic
    for chunk in source.rest():
        yield decrypt(chunk)


def _encrypted_head(source: Pieces) -> _Head | None:
    """The plain beginning of a file that MariaDB encrypted; None if it does not begin so."""
    with suppress(CodecError):
        first = len(MAGIC)
        description_end = first + _length_at(source, first, EventType.FORMAT_DESCRIPTION)
        end = description_end + _length_at(source, description_end, EventType.START_ENCRYPTION)
        from binlane.log.codec.encryption import StartEncryptionEvent  # noqa: PLC0415

        data = source.peek(end)
        description = decode_event(data[first:description_end], None, position=first).body
        if isinstance(description, FormatDescriptionEvent):
            format_ = description.format
            start = decode_event(data[description_end:], format_, position=description_end).body
            if isinstance(start, StartEncryptionEvent):
                return _Head(source.take(end), format_, start)
    return None


def _length_at(source: Pieces, position: int, event_type: EventType) -> int:
    header = source.peek(HEADER_LENGTH, position)
    if len(header) < HEADER_LENGTH or header[_TYPE_OFFSET] != event_type:
        raise TruncatedError(f"no {event_type.name} stands here")
    length = _event_length(header)
    if not HEADER_LENGTH <= length <= _DESCRIPTION_LENGTH_MAX:
        raise CodecError(f"{event_type.name} cannot have {length} bytes")
    return length


def _event_length(header: bytes) -> int:
    """The length of an event, which MariaDB leaves readable."""
    return int.from_bytes(header[_LENGTH_OFFSET : _LENGTH_OFFSET + 4], "little")


def _mariadb_chunks(
    source: Pieces, head: _Head, file: str, keys: KeyRing | None
) -> Iterator[bytes]:
    position = len(head.data)
    first = _event(source)
    # A file that a server sends to a replica keeps the START_ENCRYPTION, but is plain.
    if first and not _is_event(first, head.format, position):
        try:
            decrypt = _fitting(first, head, keys)
        except CodecError as error:
            raise error.at(file, position) from None
        while event := _event(source):
            yield decrypt(source.take(len(event)), position)
            position += len(event)
    yield from source.rest()


def _fitting(first: bytes, head: _Head, keys: KeyRing | None) -> EventDecryptor:
    """The decryptor that makes an event of the first encrypted bytes."""
    from binlane.log.codec.encryption import (  # noqa: PLC0415
        BINLOG_KEY_ID,
        OPTION,
        EventCipher,
        mariadb_decryptor,
    )

    position = len(head.data)
    for cipher in EventCipher:
        decrypt = mariadb_decryptor(head.start, keys, cipher)
        if _is_event(decrypt(first, position), head.format, position):
            return decrypt
    raise UnsupportedError(
        f"the file does not open with key {BINLOG_KEY_ID} (version {head.start.key_version}) of "
        "the key file: no event comes out",
        hint=f"give the key file of the server that wrote the log: {OPTION} FILE; "
        "if it is the right one, the file is damaged here",
    )


def _event(source: Pieces) -> bytes:
    """Return the next event's encrypted bytes; none if they are not complete."""
    header = source.peek(HEADER_LENGTH)
    length = _event_length(header)
    if len(header) < HEADER_LENGTH or not HEADER_LENGTH <= length <= EVENT_LENGTH_MAX:
        return b""
    data = source.peek(length)
    return data if len(data) == length else b""


def _is_event(data: bytes, format_: Format, position: int) -> bool:
    """True if these bytes are the event that a server writes first behind START_ENCRYPTION."""
    try:
        event = decode_event(data, format_, position=position)
    except CodecError:
        return False
    if format_.checksum_length:
        return True
    return event.header.next_position == event.next_position & _POSITION_MASK
