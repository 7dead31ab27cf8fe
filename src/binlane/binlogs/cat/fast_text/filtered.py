"""A log's bytes with the events that a filter leaves out marked, so that the kernel skips them.

A first reader finds the groups and judges them, by arrays where they are rows and their brackets
(`filters.runs`), else event by event; a second one gives the same bytes again, up to where the first
one is, with other types for events that are not printed. Events that are printed otherwise than
they stand in the file are given to whoever prints the rest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from binlane.binlogs.filters.events import EventFilter
from binlane.binlogs.filters.filtered_runs import RunFilter, end_statement
from binlane.errors import BinlaneError, CodecError
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event, EventHeader, decode_event
from binlane.log.codec.format import HEADER_LENGTH, Format
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import GTID_TYPES, EventGroup, whole_group
from binlane.log.grouping.first_event import description_in, format_of
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.raw import LargeGroup, RawRun, raw_groups
from binlane.log.grouping.walk import Walker
from binlane.log.grouping.window import PIECE_BYTES, ByteSource, Window
from binlane.log.kernels import layout
from binlane.log.kernels import text_layout as lay

_TYPE_AT: Final = 4
_FLAGS_AT: Final = 25
_GTID_BYTES_MAX: Final = 512
_CHECKSUM: Final = 4
_ASKED: Final = 254
"""A type that the kernel does not know, so that it asks."""
# The kernel would take them for marks, or leave the rest of the file to the reference.
_OWN: Final = frozenset({lay.SKIPPED, _ASKED, EventType.PARTIAL_ROW_DATA})

_Places = npt.NDArray[np.int64]
_Values = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPart:
    """The part of a file whose groups are printed.

    Attributes:
        start: Position of the first printed group; 0 for the beginning of the file.
        stop: Position of the first group that is not printed any more; None for the end of the
            file.
        head: The file's bytes up to and with its FORMAT_DESCRIPTION, which is printed always.
        format: Format of that FORMAT_DESCRIPTION; None where `head` is empty.
    """

    start: int = 0
    stop: int | None = None
    head: bytes = b""
    format: Format | None = None

    @classmethod
    def of(cls, source: ByteSource, start: int, stop: int | None) -> Self | None:
        """Take the groups between two positions; None if no group begins at one of them.

        The beginning of a group is only seen where groups begin with a GTID.

        Args:
            source: Bytes of the whole file.
            start: Start position, as of `--start-position`.
            stop: Stop position, as of `--stop-position`.
        """
        window = Window(source, size_bytes=PIECE_BYTES)
        first = description_in(window)
        if first is None:
            return None
        format_, start = format_of(first), 0 if start <= first.next_position else start
        places = [place for place in (start, stop) if place]
        if not all(_begins_group(source, place, format_) for place in places):
            return None
        head = window.bytes(0, first.next_position)
        return cls(start=start, stop=stop, head=head, format=format_)


def _begins_group(source: ByteSource, position: int, format_: Format) -> bool:
    """True if a GTID event stands at a position."""
    window = Window(source.reread(position), size_bytes=HEADER_LENGTH, base=position)
    while window.end < _GTID_BYTES_MAX and window.fill():
        pass
    try:
        length = EventHeader.decode(window.bytes(0, min(HEADER_LENGTH, window.end))).length
        event = decode_event(window.bytes(0, min(length, window.end)), format_, position=position)
    except CodecError:
        return False
    return event.header.type_code in GTID_TYPES


class FilteredBytes:
    """The bytes of one file, to be read once.

    Args:
        sources: Bytes of the file, for the reader that judges; the same bytes, for the reader that
            gives them.
        filters: Filter that judges events; filter that judges groups of rows, with the same state.
        path: Path of the file as the user named it, for errors.
        name: Base name of the file.
        part: The groups that are printed; None for all.

    Attributes:
        others: Events that are printed in the place of another, by position.
    """

    def __init__(
        self,
        sources: tuple[ByteSource, ByteSource],
        filters: tuple[EventFilter, RunFilter],
        *,
        path: str,
        name: str,
        part: LogPart | None = None,
    ) -> None:
        self.others: dict[int, list[Event]] = {}
        self._part = part or LogPart()
        start = self._part.start
        source, again = (each.reread(start) if start else each for each in sources)
        self._again = again
        self._events, self._runs = filters
        self._path = path
        self._name = name
        self._format = self._part.format
        self._judged = self._judge(source)
        self._given = self._known = start
        self._end: int | None = None
        self._error: BinlaneError | None = None
        self._changes: deque[tuple[_Places, _Values]] = deque()

    def read_into(self, view: memoryview) -> int:
        """Read at most as many bytes as fit, and as are judged; 0 at the end.

        Raises:
            BinlaneError: As the log's reader, behind all bytes before the group with the fault.
        """
        while self._given >= self._known and self._end is None:
            self._advance()
        if self._given >= self._known and self._error is not None:
            raise self._error
        room = len(view)
        if self._end is None or self._error is not None:
            room = min(room, self._known - self._given)
        elif self._part.stop is not None:
            room = min(room, self._part.stop - self._given)
        length = self._again.read_into(view[:room])
        self._change(np.frombuffer(view[:length], np.uint8))
        self._given += length
        return length

    def _advance(self) -> None:
        """Judge some more of the file."""
        try:
            known = next(self._judged, None)
        except BinlaneError as error:
            self._error, self._end = error, self._known
            return
        if known is None:
            self._end = self._known
        else:
            self._known = known

    def _change(self, data: _Values) -> None:
        """Make the changes that lie within the bytes that are given next."""
        begin, end = self._given, self._given + data.shape[0]
        while self._changes and self._changes[0][0].shape[0]:
            places, values = self._changes[0]
            count = int(np.searchsorted(places, end))
            data[places[:count] - begin] = values[:count]
            if count < places.shape[0]:
                self._changes[0] = places[count:], values[count:]
                return
            self._changes.popleft()

    def _judge(self, source: ByteSource) -> Iterator[int]:
        """Judge the file; give the position up to which that is done, again and again.

        The groups before damage are judged, too, though the last of them has no end.
        """
        try:
            yield from self._judge_groups(source)
        except CodecError:
            if self._format is not None:
                chunks = Window(source.reread(self._known), size_bytes=PIECE_BYTES).rest(0)
                walker = Walker(chunks, file=self._path, position=self._known, format_=self._format)
                yield self._judge_events(_until_damage(walker.events()), is_cut=True)
            raise

    def _judge_groups(self, source: ByteSource) -> Iterator[int]:
        start, stop = self._part.start, self._part.stop
        for item in raw_groups(
            source,
            file=self._path,
            name=self._name,
            position=start,
            format_=self._part.format if start else None,
        ):
            if isinstance(item, RawRun):
                if stop is not None and item.next_position > stop:
                    firsts = item.events[layout.EVENT_OFFSET, item.groups[layout.GROUP_FIRST]]
                    item = item.head(int(np.searchsorted(firsts, stop - item.base)))  # noqa: PLW2901
                if not item.count:
                    return
                yield from self._judge_run(item)
            elif stop is not None and item.position >= stop:
                return
            elif isinstance(item, LargeGroup):
                yield self._judge_large(item)
            else:
                yield self._judge_group(item)

    def _judge_run(self, run: RawRun) -> Iterator[int]:
        for first, stop, is_odd in self._runs.pieces(run):
            if is_odd:
                self._judge_group(run.group(first))
            else:
                self._judge_rows(run, first, stop)
            last = run.groups.item(layout.GROUP_END, stop - 1) - 1
            end = run.events.item(layout.EVENT_END, last)
            yield run.base + end + run.format.checksum_length

    def _judge_rows(self, run: RawRun, first: int, stop: int) -> None:
        """Mark filtered-out events in groups of rows; end statements that lose their last event."""
        marks = self._runs.marks(run, first, stop)
        begin = int(run.groups[layout.GROUP_FIRST, first])
        offsets = run.events[layout.EVENT_OFFSET, begin : begin + marks.events.shape[0]]
        left = offsets[~marks.events].astype(np.int64) + run.base + _TYPE_AT
        places, values = left, np.full(left.shape[0], lay.SKIPPED, np.uint8)
        for number in (int(number) + begin for number in marks.ends):
            end_statement(run, number)
            start, end = (
                run.events.item(row, number) for row in (layout.EVENT_OFFSET, layout.EVENT_END)
            )
            changed = [start + _FLAGS_AT]
            if run.format.checksum_length:
                changed += range(end, end + _CHECKSUM)
            places = np.append(places, np.array(changed) + run.base)
            values = np.append(values, run.data[changed])
        self._note(places, values)

    def _judge_group(self, group: EventGroup) -> int:
        """Mark the filtered-out events of a decoded group; return the group's end."""
        first = group.events[0].body
        if isinstance(first, FormatDescriptionEvent):
            self._format = first.format
        return self._judge_events(group.events)

    def _judge_large(self, large: LargeGroup) -> int:
        """A group that is not held."""
        large.end = self._judge_events(whole_group(large.events()))
        return large.end

    def _judge_events(self, events: Iterable[Event], *, is_cut: bool = False) -> int:
        """Mark the events of a group that are left out; give the position behind the group.

        Args:
            events: Events of the group, in order.
            is_cut: True if damage stands behind them: then nobody knows the filter's judgement on
                held events.
        """
        waiting: dict[int, Event] = {}
        carriers: dict[int, int] = {}
        printed: dict[int, list[Event]] = {}
        end = self._known
        for event in expanded_all(events, file=self._path, format_=self._format):
            if event.inner:
                carriers[event.position] = carriers.get(event.position, 0) + 1
            else:
                waiting[event.position] = event
                end = event.next_position
            for kept in self._events.feed(event, file=self._name):
                printed.setdefault(kept.position, []).append(kept)
        for kept in () if is_cut else self._events.finish():
            printed.setdefault(kept.position, []).append(kept)
        for position, found in printed.items():
            original = waiting.pop(position)
            is_whole = len(found) == 1 + carriers.get(position, 0)
            if is_whole and found[0] is original and original.header.type_code not in _OWN:
                continue
            self.others[position] = found
        asked = [position for position in printed if position in self.others]
        places = np.array([*waiting, *asked], np.int64) + _TYPE_AT
        values = np.array([lay.SKIPPED] * len(waiting) + [_ASKED] * len(asked), np.uint8)
        self._note(places, values)
        return end

    def _note(self, places: _Places, values: _Values) -> None:
        """Have bytes changed before they are given."""
        if places.shape[0]:
            order = np.argsort(places, kind="stable")
            self._changes.append((places[order], values[order]))


def _until_damage(events: Iterator[Event]) -> Iterator[Event]:
    with suppress(CodecError):
        yield from events
