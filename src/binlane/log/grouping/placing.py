"""Event groups → the bytes with which they stand at a position of another file.

Lengths, ends and checksums are computed. MySQL's GTID events tell two more things that hold in one
file only: how long the transaction is, and a clock that says which transactions a replica may apply
at once. All else stays as it is.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from struct import Struct
from typing import Final

from binlane.log.codec.event import Event, encode_event
from binlane.log.codec.format import CHECKSUM_LENGTH, HEADER_LENGTH, Format
from binlane.log.codec.mysql_transaction import MysqlGtidEvent
from binlane.log.codec.registry import OpaqueEvent
from binlane.log.codec.types import EventType

_POSITION_MASK: Final = (1 << 32) - 1
_LENGTH_AND_END: Final = Struct("<II")
_LENGTH_AT: Final = 9


def place(event: Event, position: int, format_: Format) -> bytes:
    """The bytes of an event that is to stand at a position of a file."""
    body = event.body.encode(format_)
    tail = CHECKSUM_LENGTH if event.header.type_code == EventType.FORMAT_DESCRIPTION else 0
    length = HEADER_LENGTH + len(body) + (tail or format_.checksum_length)
    # 32 bits: it wraps where one event group made the file larger than 4 GiB, as the servers' does.
    header = replace(event.header, next_position=(position + length) & _POSITION_MASK)
    return encode_event(Event(header, OpaqueEvent(data=body)), format_)


def moved(event: Event, position: int, before: Format) -> bytes:
    """The bytes of an event as it was read, with CRC32, at a position of another file.

    Args:
        event: An event that was read, and stays as it is but for its place.
        position: The place where it shall stand, in bytes.
        before: The format of the file that the event comes from.
    """
    assert event.raw is not None, "it was read"
    data = bytearray(event.raw[: len(event.raw) - before.checksum_length])
    data += bytes(CHECKSUM_LENGTH)
    return _at(data, position, CHECKSUM_LENGTH)


def shifted(event: bytes | memoryview, position: int, format_: Format) -> bytes:
    """The bytes of an event at another position of its file.

    Args:
        event: The whole event with its header.
        position: The place where it shall stand, in bytes.
        format_: The format of the file.
    """
    return _at(bytearray(event), position, format_.checksum_length)


def _at(data: bytearray, position: int, checksum_length: int) -> bytes:
    """An event with its length, its end and its checksum, for which there is room."""
    length = len(data)
    _LENGTH_AND_END.pack_into(data, _LENGTH_AT, length, (position + length) & _POSITION_MASK)
    if checksum_length:
        checksum = zlib.crc32(memoryview(data)[:-checksum_length])
        data[-checksum_length:] = checksum.to_bytes(checksum_length, "little")
    return bytes(data)


def place_group(
    events: Sequence[Event],
    position: int,
    format_: Format,
    *,
    clock: int = 0,
    is_alone: bool = False,
) -> bytes:
    """The bytes of a group that is to stand at a position of a file.

    Args:
        events: The events from the GTID event, if there is one, to the end of the group.
        position: The place where the group shall begin, in bytes.
        format_: The format of the file.
        clock: The number that is added to MySQL's logical timestamps.
        is_alone: True if these are to say that all before it must be applied first.
    """
    first = events[0]
    if not isinstance(first.body, MysqlGtidEvent):
        return _joined(events, position, format_)
    gtid = first.body
    if is_alone and gtid.sequence_number:
        gtid = replace(gtid, last_committed=gtid.sequence_number - 1)
    rest = [event.body.encode(format_) for event in events[1:]]
    overhead = HEADER_LENGTH + format_.checksum_length
    size = sum(len(body) + overhead for body in rest)
    body = fitted(gtid, size + overhead, format_, clock=clock)
    return _joined((replace(first, body=body), *events[1:]), position, format_)


def fitted(body: MysqlGtidEvent, others: int, format_: Format, *, clock: int) -> MysqlGtidEvent:
    """Return a GTID event that fits before so many bytes.

    Args:
        body: The event's body from the source.
        others: Bytes of the transaction but for this body.
        format_: The format of the file.
        clock: The number that is added to the logical timestamps.
    """
    # 0 is the clock of what was never committed in order.
    if body.sequence_number and clock:
        body = replace(
            body,
            last_committed=(body.last_committed or 0) + clock,
            sequence_number=body.sequence_number + clock,
        )
    if body.transaction_length is None:
        return body
    # The length counts its own bytes, of which a larger number has more.
    while (length := others + len(body.encode(format_))) != body.transaction_length:
        body = replace(body, transaction_length=length)
    return body


def _joined(events: Iterable[Event], position: int, format_: Format) -> bytes:
    data = bytearray()
    for event in events:
        data += place(event, position + len(data), format_)
    return bytes(data)
