"""Compressed transactions of which a binlog gets a part: the cut of one, made of all of its shape.

The reference cuts one payload. What it keeps is found again by the numbers of the events inside, and
made of others of the same shape without decoding them: events are left out, BEGIN may have another
context, and rows may end their statement. A cut that is anything else has no template.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import numpy as np

from binlane.binlogs.routing.payload_shapes import PayloadReader
from binlane.binlogs.routing.run_groups import RunGroups
from binlane.log.codec.event import Event
from binlane.log.codec.format import HEADER_LENGTH, Format
from binlane.log.codec.payload import PayloadCompression, TransactionPayloadEvent, payload_head
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import RowsEvent
from binlane.log.codec.types import EventType
from binlane.log.grouping.inner import expanded
from binlane.log.grouping.scanner import Numbers
from binlane.log.grouping.window import PADDING, Bytes
from binlane.log.kernels import layout
from binlane.log.kernels import route_layout as lay

if TYPE_CHECKING:
    import zstandard

_LENGTH: Final = Struct("<I")
_LENGTH_AND_END: Final = Struct("<9xII")
_LENGTH_AT: Final = 9
_END_AT: Final = 13
_THREAD_AND_TIME: Final = 8
_FLAGS_AT: Final = HEADER_LENGTH + 6
_PAYLOAD: Final = int(EventType.TRANSACTION_PAYLOAD)


class _Kept(NamedTuple):
    """An event inside of a payload that stays.

    Attributes:
        number: Its number among those inside, from 0.
        context: The context of a statement that has another one now; None where it stays.
        flags: The flags of rows that have others now; None where they stay.
    """

    number: int
    context: bytes | None
    flags: int | None


class PayloadCut:
    """The cut of all payloads of a shape.

    Attributes:
        texts_left: Number of the texts in each that are left out since they may name others.
    """

    def __init__(self, kept: Sequence[_Kept], texts_left: int) -> None:
        self._kept = tuple(kept)
        self.texts_left = texts_left
        self._runs = _runs(self._kept)
        self._compressor: zstandard.ZstdCompressor | None = None

    @classmethod
    def of(cls, event: Event, cut: Event, format_: Format, *, texts_left: int) -> Self | None:
        """The cut of one payload, as the reference made it; None if others cannot be cut by it.

        Args:
            event: The first payload of the shape.
            cut: The reference's part of it.
            format_: Format of the FORMAT_DESCRIPTION before it.
            texts_left: Number of the texts that the reference left out.
        """
        assert isinstance(event.body, TransactionPayloadEvent), "it is a payload"
        assert isinstance(cut.body, TransactionPayloadEvent), "it is a part of one"
        before, after = (tuple(expanded(one, format_))[1:] for one in (event, cut))
        numbers = _placed(after, before)
        backwards = _placed(after[::-1], before[::-1])
        if numbers is None or backwards is None:
            return None
        if numbers != [len(before) - 1 - number for number in reversed(backwards)]:
            return None  # of two that are alike, one stays, and the bytes do not tell which
        kept = [
            _kept(number, before[number], one, format_)
            for number, one in zip(numbers, after, strict=True)
        ]
        read = PayloadReader().unpacked(event.body.encode(format_))
        assert read is not None, "it has a shape"
        found = cls(kept, texts_left)
        return found if found.body(*read) == cut.body.encode(format_) else None

    def body(self, compression: int, plain: bytes) -> bytes:
        """The body of a TRANSACTION_PAYLOAD with what stays of one of the shape.

        Args:
            compression: The compression that the payload has.
            plain: The events inside of it.
        """
        starts, at, ends = [0], 0, 0
        while at < len(plain):
            length, end = _LENGTH_AND_END.unpack_from(plain, at)
            at += length
            ends |= end
            starts.append(at)
        if ends or self._runs is None:
            data = self._changed(plain, starts)
        else:
            data = b"".join([plain[starts[first] : starts[end]] for first, end in self._runs])
        packed = self._compressed(data) if compression == PayloadCompression.ZSTD else data
        return payload_head(compression, len(data), len(packed)) + packed

    def _changed(self, plain: bytes, at: Sequence[int]) -> bytes:
        """The events that stay, with contexts, flags and ends of their own."""
        parts, size = [], 0
        for number, context, flags in self._kept:
            event = bytearray(plain[at[number] : at[number + 1]])
            if context is not None:
                event[HEADER_LENGTH + _THREAD_AND_TIME :] = context
                _LENGTH.pack_into(event, _LENGTH_AT, len(event))
            if flags is not None:
                event[_FLAGS_AT] = flags & 255
            size += len(event)
            if any(event[_END_AT : _END_AT + 4]):
                _LENGTH.pack_into(event, _END_AT, size)
            parts.append(event)
        return b"".join(parts)

    def _compressed(self, data: bytes) -> bytes:
        if self._compressor is None:
            import zstandard  # noqa: PLC0415  # few logs need it

            self._compressor = zstandard.ZstdCompressor()
        return self._compressor.compress(data)


class MadeBodies:
    """The payloads and statements of a run of which one binlog has another form, as they are there.

    Attributes:
        places: The body of each payload of the run, by its number: start and length, which is 0
            where nobody has made it. Behind the payloads are statements on objects, each with the
            action on it.
        data: The bytes of the bodies.
    """

    def __init__(self) -> None:
        self.forget(0, 0)

    def forget(self, payloads: int, statements: int) -> None:
        """Begin anew with so many payloads and statements on objects."""
        self.data: Bytes = np.zeros(1 << 10, np.uint8)
        self._end = 0
        self._payloads = payloads
        self.places: Numbers = np.zeros((lay.MADE_SIZE, payloads + statements), np.int64)
        self.leave_statements()

    def leave_statements(self) -> None:
        """Have the reference look at all statements on objects."""
        self.places[lay.MADE_ACTION, self._payloads :] = lay.BY_REFERENCE

    def forget_payloads(self) -> None:
        """Forget the bodies of payloads, of which another part may stay now."""
        self.places[:, : self._payloads] = 0

    def make(self, of: RunGroups, groups: range, shape: int, cut: PayloadCut) -> None:
        """Make the bodies of all payloads of a shape in some groups of a run."""
        run = of.run
        first = run.groups.item(layout.GROUP_FIRST, groups[0])
        last = run.groups.item(layout.GROUP_END, groups[-1])
        events = run.events[:, first:last]
        is_meant = (events[layout.EVENT_TYPE] == _PAYLOAD) & (events[layout.EVENT_MAP] == shape)
        for event in (np.flatnonzero(is_meant) + first).tolist():
            self.keep(run.events.item(layout.EVENT_BITMAP, event), cut.body(*of.unpacked(event)))

    def decide(self, first: int, actions: Sequence[int], *, ends: bool) -> None:
        """Note the actions on statements.

        Args:
            first: Number of the first of them in `places`.
            actions: The actions, as kernels take them.
            ends: True if a part ends behind the last of them.
        """
        behind = first + len(actions)
        self.places[lay.MADE_ACTION, first:behind] = actions
        self.places[lay.MADE_ENDS, first:behind] = 0
        if actions:
            self.places[lay.MADE_ENDS, behind - 1] = ends

    def keep(self, number: int, body: bytes) -> None:
        """Keep the body of a payload or statement, by its number."""
        start, end = self._end, self._end + len(body)
        if end + PADDING > self.data.shape[0]:
            more = max(self.data.shape[0], len(body) + PADDING)
            self.data = np.concatenate([self.data, np.zeros(more, np.uint8)])
        self.data[start:end] = np.frombuffer(body, np.uint8)
        self._end = end
        self.places[lay.MADE_START, number], self.places[lay.MADE_LENGTH, number] = start, len(body)


def _runs(kept: Sequence[_Kept]) -> list[tuple[int, int]] | None:
    """The numbers of the first and behind the last of neighbours that stay; None if any changes."""
    runs: list[tuple[int, int]] = []
    for number, context, flags in kept:
        if context is not None or flags is not None:
            return None
        if runs and runs[-1][1] == number:
            runs[-1] = runs[-1][0], number + 1
        else:
            runs.append((number, number + 1))
    return runs


def _placed(after: Sequence[Event], before: Sequence[Event]) -> list[int] | None:
    """The first places of some events among others, in order; None if they are not there."""
    found, following = list[int](), 0
    for one in after:
        while following < len(before) and not _is_of(one, before[following]):
            following += 1
        if following == len(before):
            return None
        found.append(following)
        following += 1
    return found


def _kept(number: int, before: Event, after: Event, format_: Format) -> _Kept:
    body, context, flags = after.body, None, None
    if body != before.body and isinstance(body, QueryEvent):
        context = body.encode(format_)[_THREAD_AND_TIME:]
    elif body != before.body and isinstance(body, RowsEvent):
        flags = body.flags
    return _Kept(number, context, flags)


def _is_of(one: Event, before: Event) -> bool:
    """True if an event inside of a cut payload may be one of the payload before."""
    if one.header.type_code != before.header.type_code:
        return False
    body, other = one.body, before.body
    if isinstance(body, QueryEvent) and isinstance(other, QueryEvent):
        return body.query == other.query
    if isinstance(body, RowsEvent) and isinstance(other, RowsEvent):
        return body.table_id == other.table_id and body.images == other.images
    return body == other
