"""Events inside of other events.

Those of a TRANSACTION_PAYLOAD are decompressed one after the other as they are read; the last piece
of a rows event that was cut up holds all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from binlane.errors import CodecError, TruncatedError
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event, EventHeader, decode_event
from binlane.log.codec.format import EVENT_LENGTH_MAX, HEADER_LENGTH, Format
from binlane.log.codec.types import ChecksumAlgorithm, EventType
from binlane.log.grouping.fragment_joining import joined_event

if TYPE_CHECKING:
    from binlane.log.codec.payload import TransactionPayloadEvent

_CHUNK_LENGTH: Final = 1 << 17
_HINT: Final = "the file is damaged here: fetch it again from its source"
NEVER_INSIDE: Final = frozenset({EventType.FORMAT_DESCRIPTION, EventType.TRANSACTION_PAYLOAD})


def expanded(event: Event, format_: Format, *, file: str = "") -> Iterator[Event]:
    """Yield the event itself, then the events inside it.

    Args:
        event: An event of any type.
        format_: The format of the FORMAT_DESCRIPTION before it.
        file: The file it stands in, for the error.

    Yields:
        Inner events have `inner` set, and `position` and `next_position` of their carrier. No
        more than one of them is in memory.

    Raises:
        CodecError: If the payload is broken, or is not as long as it says; at the carrier.
    """
    yield event
    if not has_inner(event):
        return
    from binlane.log.codec.payload import TransactionPayloadEvent  # noqa: PLC0415  # few logs have it

    try:
        if isinstance(event.body, TransactionPayloadEvent):
            yield from _inner_events(event, event.body, format_)
        elif event.joined is not None:
            yield joined_event(event, event.joined, format_)
    except CodecError as error:
        error.hint = error.hint or _HINT
        raise (error.at(file, event.position) if file else error) from None


def expanded_all(
    events: Iterable[Event], *, file: str, format_: Format | None = None
) -> Iterator[Event]:
    """Yield a run of events, each followed by the events inside it.

    Args:
        events: The events in log order.
        file: The file they stand in.
        format_: The format of the FORMAT_DESCRIPTION before them, if it is not among them.

    Raises:
        CodecError: As `expanded`; and if a TRANSACTION_PAYLOAD comes before any format is known.
    """
    for event in events:
        if isinstance(event.body, FormatDescriptionEvent):
            format_ = event.body.format
        if not has_inner(event):
            yield event
            continue
        if format_ is None:
            raise CodecError(
                f"{event.header.type_name} stands before any FORMAT_DESCRIPTION event",
                hint="read the file from its beginning",
            ).at(file, event.position)
        yield from expanded(event, format_, file=file)


def has_inner(event: Event) -> bool:
    """True if there are events inside of an event."""
    is_payload = event.header.type_code == EventType.TRANSACTION_PAYLOAD
    return is_payload or event.joined is not None


def _inner_events(
    carrier: Event, payload: TransactionPayloadEvent, format_: Format
) -> Iterator[Event]:
    plain_format = replace(format_, checksum=ChecksumAlgorithm.NONE)
    source = _Source(payload_chunks(payload))
    number, left = 0, payload.uncompressed_size
    while left:
        number += 1
        head = source.take(HEADER_LENGTH)
        header = EventHeader.decode(head)
        most = min(left, EVENT_LENGTH_MAX)
        if not HEADER_LENGTH <= header.length <= most or header.type_code in NEVER_INSIDE:
            raise CodecError(
                f"event {number} of the payload is a {header.type_name} of {header.length} bytes; "
                f"{left} of its {payload.uncompressed_size} bytes are left, and an event has "
                f"{EVENT_LENGTH_MAX} bytes at most"
            )
        left -= header.length
        data = head + source.take(header.length - HEADER_LENGTH)
        inner = decode_event(data, plain_format, position=carrier.position)
        yield replace(inner, inner=number, carrier_length=carrier.header.length)
    if not source.is_empty():
        raise CodecError(
            f"the payload holds more than the {payload.uncompressed_size} bytes that it announces"
        )


def payload_chunks(payload: TransactionPayloadEvent) -> Iterator[bytes]:
    """Yield the bytes of a payload's events, decompressed in pieces on demand.

    Raises:
        CodecError: Where they are broken.
    """
    from binlane.log.codec.payload import PayloadCompression  # noqa: PLC0415  # as above

    if payload.compression == PayloadCompression.NONE:
        yield payload.payload
        return
    import zstandard  # noqa: PLC0415  # few files need it

    try:
        yield from zstandard.ZstdDecompressor().read_to_iter(
            payload.payload, write_size=_CHUNK_LENGTH
        )
    except zstandard.ZstdError as error:
        raise CodecError(f"the payload is broken: {error}") from None


class _Source:
    """Takes bytes from pieces, no more pieces than it must: a length that lies makes no room."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._chunk = b""
        self._start = 0

    def take(self, length: int) -> bytes:
        """The next `length` bytes."""
        parts: list[bytes] = []
        missing = length
        while missing:
            if self.is_empty():
                raise TruncatedError(f"the payload ends {missing} bytes before its last event does")
            part = self._chunk[self._start : self._start + missing]
            self._start += len(part)
            missing -= len(part)
            parts.append(part)
        return b"".join(parts)

    def is_empty(self) -> bool:
        """True if no bytes are left."""
        while self._start == len(self._chunk):
            chunk = next(self._chunks, None)
            if chunk is None:
                return True
            self._chunk, self._start = chunk, 0
        return False
