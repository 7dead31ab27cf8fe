"""MySQL's TRANSACTION_PAYLOAD → the part of it that is in a scope.

A payload all of which stays is passed on as it was compressed; one of which a part goes is
compressed anew, and one of which nothing stays goes whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import zstandard

from binlane.errors import UnsupportedError
from binlane.log.codec.event import Event, encode_event
from binlane.log.codec.format import EVENT_LENGTH_MAX, Format
from binlane.log.codec.payload import PayloadCompression, TransactionPayloadEvent
from binlane.log.codec.types import ChecksumAlgorithm
from binlane.log.grouping.inner import expanded

Select = Callable[[Iterable[Event]], Iterable[Event]]
"""Gives the in-scope part of a transaction's events."""


def select_inside(
    carrier: Event, payload: TransactionPayloadEvent, select: Select, *, format_: Format, file: str
) -> Event | None:
    """The carrier with what `select` leaves of the events inside of it; None if that is nothing.

    Raises:
        CodecError: If the payload is broken.
        UnsupportedError: If its events are together larger than one of them may be, so that they
            are not held.
    """
    if payload.uncompressed_size > EVENT_LENGTH_MAX:
        raise UnsupportedError(
            f"a compressed transaction has {payload.uncompressed_size} bytes, and no more than "
            f"{EVENT_LENGTH_MAX} are taken apart"
        )
    plain = replace(format_, checksum=ChecksumAlgorithm.NONE)
    before = tuple(expanded(carrier, format_, file=file))[1:]
    after = tuple(select(before))
    if after == before:
        return carrier
    if not after:
        return None
    data = _joined(after, plain)
    compressed = zstandard.compress(data)
    is_compressed = payload.compression == PayloadCompression.ZSTD
    body = TransactionPayloadEvent(
        compression=payload.compression,
        uncompressed_size=len(data),
        payload=compressed if is_compressed else data,
    )
    return replace(carrier, body=body)


def _joined(events: Iterable[Event], format_: Format) -> bytes:
    """Inner events, one after the other; where they say where they end, it is among themselves."""
    parts: list[bytes] = []
    size = 0
    for event in events:
        encoded = encode_event(event, format_)
        if event.header.next_position:
            header = replace(event.header, next_position=size + len(encoded))
            encoded = encode_event(replace(event, header=header), format_)
        parts.append(encoded)
        size += len(encoded)
    return b"".join(parts)
