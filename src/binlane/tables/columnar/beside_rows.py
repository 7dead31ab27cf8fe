"""Noted events that are no rows, for the fast path: statements, incidents, ends of XA transactions."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from binlane.errors import CodecError
from binlane.log.codec.control import IncidentEvent
from binlane.log.codec.event import Event, EventHeader, decode_event
from binlane.log.codec.format import HEADER_LENGTH, Format
from binlane.log.codec.transaction import GtidEvent
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import EventGroup
from binlane.log.grouping.scanner import KnownTable, Scanner
from binlane.log.grouping.window import Bytes, Window
from binlane.log.grouping.xa import finished_by, prepared_by, prepared_in
from binlane.log.kernels import layout
from binlane.names import TableName
from binlane.tables.columnar.batches import STATEMENT_TYPES, ChangeBatcher
from binlane.tables.columnar.builder import RowsSource
from binlane.tables.columnar.log_notes import (
    GroupOrigin,
    LogNote,
    LogNoteKind,
    RowItem,
    is_rollback,
)
from binlane.tables.columnar.noted_events import NotedEvents, Small
from binlane.tables.columnar.noted_rows import NotedRows
from binlane.tables.columnar.prepared_transactions import PreparedGroup, is_commit


@dataclass(slots=True)
class UnheldGroup:
    """Facts about a large group that is looked through before its rows are read.

    Attributes:
        position: Byte in the file at which the group begins.
        events: The group's events that are no rows events.
        tables: The table maps that the group's rows have, by number.
    """

    position: int
    events: list[Event] = field(default_factory=list)
    tables: dict[int, KnownTable] = field(default_factory=dict)


class BesideRows:
    """Takes noted events that are no rows.

    Args:
        reference: The batcher with the reader's wishes, the catalog and the prepared transactions.
        rows: Gives the rows before something that is told.
        is_prepared: Whether a group is read whose XA transaction commits elsewhere.

    Attributes:
        told: The types of events that `scan` shall note for it.
    """

    def __init__(self, reference: ChangeBatcher, rows: NotedRows, *, is_prepared: bool) -> None:
        self._reference = reference
        self._rows = rows
        self._is_prepared = is_prepared
        knows_ddl = reference.tells or reference.log.is_needed
        self.told = layout.ENDS_XA | (layout.STATES if knows_ddl else 0)

    def pick(self, noted: NotedEvents, wanted: Bytes, is_beside: npt.NDArray[np.bool_]) -> Small:
        """Choose the events that are taken, in log order.

        Of a group that is prepared, or whose rows are uncertain, only the event that makes it so is
        taken.

        Args:
            noted: The events to choose from.
            wanted: A flag for each group: whether it is selected.
            is_beside: A flag for each event: whether it is no row.
        """
        has_rows = wanted.astype(bool)
        is_taken = is_beside.copy()
        for index in np.flatnonzero(is_beside).tolist():
            group = int(noted.groups[index])
            holds_back = self._holds_back(noted, index)
            is_taken[index] = holds_back is not False
            if holds_back or (has_rows[group] and self._is_uncertain(noted, index)):
                is_taken[noted.groups == group] = False
                is_taken[index] = True
                has_rows[group] = False
        return np.flatnonzero(is_taken | (has_rows[noted.groups] & ~is_beside)).astype(np.int32)

    def _holds_back(self, noted: NotedEvents, index: int) -> bool | None:
        """True if an event prepares its group; None if the event is no XA PREPARE at all."""
        if noted.events[layout.EVENT_TYPE, index] != EventType.XA_PREPARE_LOG:
            return None
        return not self._is_prepared and prepared_by(noted.event(index)) is not None

    def _is_uncertain(self, noted: NotedEvents, index: int) -> bool:
        """True if an event makes the rows of its group uncertain."""
        kind = int(noted.events[layout.EVENT_TYPE, index])
        if kind == EventType.INCIDENT or not self._reference.tells:
            return self._reference.tells
        if kind not in STATEMENT_TYPES:
            return False
        with suppress(CodecError):  # raised when it is its turn
            return is_rollback(noted.event(index)) and bool(_tables(noted, index))
        return False

    def take(
        self, noted: NotedEvents, index: int, window: Window | None, *, is_wanted: bool
    ) -> Generator[RowItem, None, PreparedGroup | EventGroup | None]:
        """Take an event in its turn.

        Args:
            noted: The noted events, of which one is taken.
            index: The number of that event in `noted`.
            window: The bytes in which the event's group stands; None inside of a
                TRANSACTION_PAYLOAD.
            is_wanted: Whether the event's group is selected.

        Returns:
            The group that the event brings into effect, whose rows are to be given now.

        Raises:
            CodecError: If the event cannot be decoded.
        """
        event, reference = noted.event(index), self._reference
        place = noted.source(index, event)
        tells = reference.tells and is_wanted
        xid = None if self._is_prepared else prepared_in(event, noted.format_)
        if xid is not None:
            self.hold(noted, index, xid)
        elif isinstance(event.body, IncidentEvent):
            if tells:
                yield from self._tell(LogNoteKind.INCIDENT, event, place)
        elif window is None or not _is_undone(noted, index, window):
            if reference.learn(event, place, is_wanted=is_wanted):
                self._rows.forget_tables()
            xid = finished_by(event)
            tables = _tables(noted, index) if tells and window and is_rollback(event) else ()
            if xid is not None:
                group = reference.finished(xid, event, is_wanted=is_wanted)
                if group is None and is_wanted and is_commit(event):
                    yield from self._rows.finish()
                    yield from reference.unknown_xa(event, place)
                return group
            if tables:
                yield from self._tell(LogNoteKind.ROLLED_BACK, event, place, tables)
            elif tells and reference.is_told(event):
                yield from self._tell(LogNoteKind.STATEMENT, event, place)
        return None

    def hold(self, noted: NotedEvents, index: int, xid: str) -> None:
        """Remember where a group stands that prepares a transaction, and ends with an event."""
        start, end = noted.events[[layout.EVENT_OFFSET, layout.EVENT_END], index].tolist()
        stop = int(noted.positions[index]) + end - start + noted.format_.checksum_length
        begin = int(noted.starts[noted.groups[index]])
        self._reference.prepared.prepare(xid, begin, stop, noted.format_)

    def note(self, large: UnheldGroup, scanner: Scanner, window: Window) -> None:
        """Take the newly noted events of a large group."""
        is_open = scanner.is_in(large.position)
        if not is_open and not scanner.group_count:
            return
        state = scanner.state
        first = state[layout.FIRST_EVENT] if is_open else scanner.groups[layout.GROUP_FIRST, 0]
        for index in range(int(first), int(state[layout.EVENTS])):
            number = int(scanner.events[layout.EVENT_MAP, index])
            if number >= 0:
                large.tables[number] = scanner.tables[number]
            else:
                start = int(scanner.events[layout.EVENT_OFFSET, index])
                end = int(scanner.events[layout.EVENT_END, index])
                data = window.bytes(start, end + scanner.format.checksum_length)
                event = decode_event(data, scanner.format, position=window.base + start)
                large.events.append(event)

    def decide_large(
        self, large: UnheldGroup, place: GroupOrigin, end: int, format_: Format, *, is_wanted: bool
    ) -> Generator[RowItem, None, bool]:
        """Take what was seen of a large group, if its rows are not to be given now.

        Args:
            large: The facts that were found when the group was looked through.
            place: The place at which the group counts.
            end: Byte in the file at which the group ends.
            format_: The format of the group's events.
            is_wanted: Whether the group passes the selection.

        Returns:
            True if the group's rows are to be given now.
        """
        reference = self._reference
        xid = prepared_in(large.events[-1], format_) if large.events else None
        if xid is not None and not self._is_prepared:
            reference.prepared.prepare(xid, large.position, end, format_)
            return False
        tables = tuple(dict.fromkeys(one.table_map.name for one in large.tables.values()))
        for event in large.events:
            source = place.source(event)
            if not is_wanted:
                reference.learn(event, source, is_wanted=False)
            elif reference.tells and isinstance(event.body, IncidentEvent):
                yield from self._tell(LogNoteKind.INCIDENT, event, source)
                return False
            elif reference.tells and tables and is_rollback(event):
                yield from self._tell(LogNoteKind.ROLLED_BACK, event, source, tables)
                return False
        if not is_wanted and reference.log.is_needed:
            self._rows.forget_tables()
        return is_wanted

    def _tell(
        self,
        kind: LogNoteKind,
        event: Event,
        place: RowsSource,
        tables: tuple[TableName, ...] = (),
    ) -> Iterator[RowItem]:
        yield from self._rows.finish()
        yield LogNote(
            kind=kind,
            event=event,
            place=place,
            tables=tables,
            is_wanted=self._reference.log.is_wanted,
        )


def _is_undone(noted: NotedEvents, index: int, window: Window) -> bool:
    """True if the statements of an event's group have no effect, which only MariaDB's GTIDs tell."""
    start = int(noted.starts[noted.groups[index]]) - window.base
    if start < 0 or window.data[start + 4] != EventType.GTID:
        return False
    header = EventHeader.decode(window.bytes(start, start + HEADER_LENGTH))
    event = decode_event(window.bytes(start, start + header.length), noted.format_)
    return isinstance(event.body, GtidEvent) and event.body.is_undone


def _tables(noted: NotedEvents, index: int) -> tuple[TableName, ...]:
    """The tables that the group of an event has rows of."""
    maps = noted.events[layout.EVENT_MAP, : noted.groups.shape[0]]
    numbers = maps[(noted.groups == noted.groups[index]) & (maps >= 0)].tolist()
    return tuple(dict.fromkeys(noted.tables[number].table_map.name for number in numbers))
