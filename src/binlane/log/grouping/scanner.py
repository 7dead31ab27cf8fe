"""A window's bytes → their events by event group: the driver of the kernel `scan`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from binlane.log.codec.event import Event, decode_event
from binlane.log.codec.format import EVENT_LENGTH_MAX, HEADER_LENGTH, Format
from binlane.log.codec.mysql_transaction import MysqlGtidEvent
from binlane.log.codec.query import POST_HEADER_LENGTH, QueryEvent, compressed_text
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.transaction import GtidEvent
from binlane.log.codec.types import EventType, Flavor, HeaderFlag
from binlane.log.grouping.event_group import (
    CONTEXT_TYPES,
    CONTROL_TYPES,
    END_QUERIES,
    END_TYPES,
    GTID_TYPES,
    LONE_NAMES,
    is_begin,
)
from binlane.log.grouping.flavors import NEVER_IN, check_flavor
from binlane.log.grouping.native import crc32_address
from binlane.log.grouping.unexpected import UnexpectedError
from binlane.log.grouping.window import PADDING, Bytes
from binlane.log.kernels import layout
from binlane.log.kernels.load import kernels

Numbers = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]

_LENGTH_AT: Final = 9
_ID_HEADER: Final = HEADER_LENGTH + 8
_IDS: Final = 1024
_GROUPS: Final = 16384
_EVENTS: Final = 16384
_ROWS: Final[Mapping[EventType, int]] = {
    EventType.WRITE_ROWS_V1: 0,
    EventType.DELETE_ROWS_V1: 0,
    EventType.UPDATE_ROWS_V1: layout.HAS_AFTER,
    EventType.WRITE_ROWS: layout.HAS_EXTRA,
    EventType.DELETE_ROWS: layout.HAS_EXTRA,
    EventType.UPDATE_ROWS: layout.HAS_EXTRA | layout.HAS_AFTER,
    EventType.WRITE_ROWS_COMPRESSED_V1: 0,
    EventType.DELETE_ROWS_COMPRESSED_V1: 0,
    EventType.UPDATE_ROWS_COMPRESSED_V1: layout.HAS_AFTER,
    EventType.WRITE_ROWS_COMPRESSED: layout.HAS_EXTRA,
    EventType.DELETE_ROWS_COMPRESSED: layout.HAS_EXTRA,
    EventType.UPDATE_ROWS_COMPRESSED: layout.HAS_EXTRA | layout.HAS_AFTER,
    EventType.PARTIAL_UPDATE_ROWS: layout.HAS_EXTRA | layout.HAS_AFTER,
}
_NOTED: Final = frozenset({EventType.TRANSACTION_PAYLOAD})
_TOLD_TYPES: Final[Mapping[int, int]] = {
    EventType.XA_PREPARE_LOG: layout.ENDS_XA,
    EventType.INCIDENT: layout.STATES,
    EventType.EXECUTE_LOAD_QUERY: layout.STATES,
}
_UNTOLD_QUERIES: Final = frozenset({b"BEGIN", b"COMMIT"})
_NEVER_INSIDE: Final = frozenset({EventType.FORMAT_DESCRIPTION, EventType.TRANSACTION_PAYLOAD})
_CHECKS: Final[Mapping[EventType, int]] = {
    EventType.FORMAT_DESCRIPTION: layout.IS_FORMAT,
    EventType.ANNOTATE_ROWS: layout.IS_ANY,
    EventType.XID: layout.IS_XID,
    EventType.GTID: layout.IS_GTID,
    EventType.GTID_LOG: layout.IS_MYSQL_GTID,
    EventType.ANONYMOUS_GTID_LOG: layout.IS_MYSQL_GTID | layout.IS_ANONYMOUS,
    EventType.GTID_TAGGED_LOG: layout.IS_TAGGED_GTID,
    EventType.TABLE_MAP: layout.IS_TABLE_MAP,
}
# Readers that need only rows look into these events themselves.
_NOTED_CHECKS: Final[Mapping[int, int]] = {
    EventType.TRANSACTION_PAYLOAD: layout.IS_PAYLOAD,
    EventType.XA_PREPARE_LOG: layout.IS_XA_PREPARE,
    EventType.GTID: layout.MAY_BE_XA,
    EventType.INTVAR: layout.IS_VARIABLE,
    EventType.RAND: layout.IS_VARIABLE,
    EventType.USER_VAR: layout.IS_VARIABLE,
}


@cache
def _kinds(flavor: Flavor, *, has_plain_queries: bool, is_inner: bool, notes_all: bool) -> Small:
    """Return the kernel's facts of each event type, as bits by type code."""
    kinds = np.zeros(256, np.int32)
    for code in range(256):
        name = _name(code)
        kind = 0
        if not is_inner:
            kind |= layout.CONTROL if code in CONTROL_TYPES else 0
            kind |= layout.STARTS_GROUP if code in GTID_TYPES else 0
            kind |= layout.ENDS_GROUP if code in END_TYPES else 0
            kind |= layout.STANDS_ALONE if name in LONE_NAMES else 0
        kind |= layout.CONTEXT if is_inner or code in CONTEXT_TYPES else 0
        kind |= layout.IS_NOTED if notes_all or code in _NOTED else 0
        if code in _ROWS:
            kind |= layout.IS_ROWS | _ROWS[EventType(code)]
        if code in _CHECKS and code not in NEVER_IN[flavor]:
            kind |= _CHECKS[EventType(code)]
        if code == EventType.QUERY and has_plain_queries:
            kind |= layout.IS_QUERY
        if notes_all and code not in NEVER_IN[flavor]:
            kind |= _NOTED_CHECKS.get(code, 0)
        kinds[code] = kind
    return kinds


def _name(code: int) -> str:
    try:
        return EventType(code).name
    except ValueError:
        return "UNKNOWN"


def is_fast(format_: Format) -> bool:
    """True if the kernels know the layout of a format's headers and rows events."""
    return (
        format_.header_length == HEADER_LENGTH
        and not format_.foreign_lengths
        and all(format_.post_header_length(code) != 6 for code in (EventType.TABLE_MAP, *_ROWS))
    )


def _told(query: bytes) -> int:
    """Return the bit of TOLD that has a statement noted, as the kernel says it; 0 if none has."""
    if query in _UNTOLD_QUERIES or query.startswith((b"SAVEPOIN", b"XA S", b"XA B", b"XA E")):
        return 0
    return layout.ENDS_XA if query.startswith((b"XA C", b"XA R")) else layout.STATES


@dataclass(slots=True)
class KnownTable:
    """A table map of the log, under any of its table ids.

    Attributes:
        table_map: The first that said so.
        key: The table map's bytes behind id and flags.
    """

    table_map: TableMapEvent
    key: bytes


class Scanner:
    """Finds the events of complete event groups in a buffer, mostly those of rows.

    Args:
        format_: The format of the events.
        is_inner: True if they stand in a TRANSACTION_PAYLOAD: without checksums, in one group.
        notes_all: True if all events of a group are noted, and not only those that carry rows.
        told: Bits of verdicts (STATES, ENDS_XA) whose events are noted too.
        is_decrypted: True if the bytes are plain behind a START_ENCRYPTION.

    Attributes:
        tables: The table maps so far, by number.
        events: The events found, a column each.
        groups: The complete groups, a column each.
        texts: The texts of the groups' GTIDs.
    """

    def __init__(
        self,
        format_: Format,
        *,
        is_inner: bool = False,
        notes_all: bool = False,
        told: int = 0,
        is_decrypted: bool = False,
    ) -> None:
        self.tables: list[KnownTable] = []
        self._numbers: dict[bytes, int] = {}
        self._known = np.zeros(1 << 16, np.uint8)
        self._known_end = 0
        self._maps = np.zeros((3, 64), np.int64)
        self._ids = np.full((3, _IDS), -1, np.int64)
        self._ids_used = 0
        self.state = np.zeros(layout.STATE_SIZE, np.int64)
        self.state[layout.LENGTH_MAX] = EVENT_LENGTH_MAX
        self.state[layout.STATEMENT] = 1
        self.state[layout.TOLD] = told
        self.events: Small = np.zeros((layout.EVENT_SIZE, _EVENTS), np.int32)
        self.groups: Numbers = np.zeros((layout.GROUP_SIZE, 2 if is_inner else _GROUPS), np.int64)
        self.texts: Bytes = np.zeros(
            layout.GTID_TEXT_MAX * self.groups.shape[1] + PADDING, np.uint8
        )
        self._is_inner = is_inner
        self._notes_all = notes_all
        self._is_decrypted = is_decrypted
        self.take_format(format_)

    def take_format(self, format_: Format) -> None:
        """Go on with another format, and forget all table maps."""
        self.format = format_
        has_plain_queries = format_.post_header_length(EventType.QUERY) == 13
        self._kinds = _kinds(
            format_.flavor,
            has_plain_queries=has_plain_queries,
            is_inner=self._is_inner,
            notes_all=self._notes_all,
        )
        self.state[layout.CHECKSUM_LENGTH] = 0 if self._is_inner else format_.checksum_length
        self.state[layout.CRC32] = crc32_address() if format_.checksum_length else 0
        self.state[layout.IS_INNER] = self._is_inner
        self._forget_ids()

    def _forget_ids(self) -> None:
        self._ids = np.full((3, _IDS), -1, np.int64)
        self._ids_used = 0

    @property
    def offset(self) -> int:
        """The place of the next event in the buffer."""
        return int(self.state[layout.OFFSET])

    @property
    def group_count(self) -> int:
        """The number of complete groups that were found."""
        return int(self.state[layout.GROUPS])

    @property
    def is_open(self) -> bool:
        """True if a group has begun that has not ended."""
        return bool(self.state[layout.IS_OPEN])

    @property
    def group_position(self) -> int:
        """Start of the open group, else of the next event: positions in the file."""
        if self.is_open:
            return int(self.state[layout.GROUP_POSITION])
        return int(self.state[layout.BASE]) + self.offset

    def is_in(self, position: int) -> bool:
        """True if the open group is the one that began at `position`."""
        return self.is_open and self.group_position == position

    @property
    def events_done(self) -> int:
        """The number of events that belong to complete groups."""
        return int(self.state[layout.FIRST_EVENT])

    def scan(self, data: Bytes, end: int) -> int:
        """Scan on in a buffer; see the kernel."""
        run = kernels().scan
        return int(
            run(
                data,
                end,
                self._kinds,
                self.state,
                self._ids,
                self._maps,
                self._known,
                self.events,
                self.groups,
                self.texts,
            )
        )

    def length_in(self, data: Bytes) -> int:
        """The length in bytes of the event in a buffer that the kernel asks about, as it says."""
        return int(data[self.offset + _LENGTH_AT :][:4].view("<u4")[0])

    def passes(self, data: bytes) -> bool:
        """Answer the kernel without decoding the event that it asks about, if that can be done.

        Args:
            data: The bytes of the event, whose checksum is right.

        Returns:
            True for a compressed statement of MariaDB that is whole and bears on no transaction.
        """
        if data[4] != EventType.QUERY_COMPRESSED or self.format.flavor is not Flavor.MARIADB:
            return False
        if self.format.post_header_length(EventType.QUERY) != POST_HEADER_LENGTH:
            return False
        query = compressed_text(data, HEADER_LENGTH, len(data) - self.format.checksum_length)
        if query is None or query in END_QUERIES or query.startswith((b"BEGIN", b"XA ")):
            return False
        self.state[layout.VERDICT] = layout.CHECKED | _told(query)
        return True

    def look_at(self, data: bytes, position: int) -> Event:
        """Decode the event that the kernel asks about, and give it the answer.

        Args:
            data: The bytes of the event.
            position: The place of the event in the file.

        Raises:
            CodecError: If it is damaged.
            UnexpectedError: If the kernels cannot go on behind it.
        """
        event = decode_event(data, self.format, position=position)
        check_flavor(event.header.type_code, self.format)
        body = event.body
        if isinstance(body, TableMapEvent):
            self._learn(body, data)
            return event
        code = event.header.type_code
        if isinstance(body, RowsEvent) or code == EventType.PARTIAL_ROW_DATA:
            raise UnexpectedError
        if code == EventType.START_ENCRYPTION and not self._is_decrypted:
            raise UnexpectedError
        if self._is_inner and code in _NEVER_INSIDE:
            raise UnexpectedError
        verdict = layout.CHECKED | _TOLD_TYPES.get(code, 0)
        if isinstance(body, QueryEvent):
            verdict |= layout.BEGINS if is_begin(event) else 0
            verdict |= layout.ENDS if body.query in END_QUERIES else 0
            verdict |= _told(body.query)
        elif isinstance(body, GtidEvent):
            verdict |= 0 if body.is_standalone else layout.BEGINS
            self._tell_gtid(str(body.gtid(event.header.server_id)))
        elif isinstance(body, MysqlGtidEvent):
            self._tell_gtid("" if body.gtid is None else str(body.gtid))
            self.state[layout.GTID_MICROS] = body.commit_micros or 0
        elif event.header.flags & HeaderFlag.IGNORABLE and event.header.type_name == "UNKNOWN":
            verdict |= layout.KEEPS
        self.state[layout.VERDICT] = verdict
        return event

    def _tell_gtid(self, text: str) -> None:
        data = text.encode()
        if len(data) > layout.GTID_TEXT_MAX:
            raise UnexpectedError
        start = self.group_count * layout.GTID_TEXT_MAX
        self.texts[start : start + len(data)] = np.frombuffer(data, np.uint8)
        self.state[layout.GTID_LENGTH] = len(data)

    def _learn(self, table_map: TableMapEvent, data: bytes) -> None:
        """Remember a table map, and its present id."""
        checksum = int(self.state[layout.CHECKSUM_LENGTH])
        key = data[_ID_HEADER : len(data) - checksum]
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.tables)
            self.tables.append(KnownTable(table_map, key))
            self._keep(number, key, len(table_map.column_types))
        slot = self._slot(table_map.table_id)
        if self._ids[0, slot] < 0:
            self._ids_used += 1
        self._ids[:, slot] = table_map.table_id, number, self.state[layout.STATEMENT]
        if 2 * self._ids_used > self._ids.shape[1]:
            self._renew_ids()

    def _keep(self, number: int, key: bytes, columns: int) -> None:
        end = self._known_end + len(key)
        if end + PADDING > self._known.shape[0]:
            self._known = np.concatenate([self._known, np.zeros(2 * end + PADDING, np.uint8)])
        if number == self._maps.shape[1]:
            self._maps = np.ascontiguousarray(np.hstack([self._maps, np.zeros_like(self._maps)]))
        self._known[self._known_end : end] = np.frombuffer(key, np.uint8)
        self._maps[:, number] = self._known_end, len(key), columns
        self._known_end = end

    def open_table_maps(self) -> Iterator[tuple[int, TableMapEvent]]:
        """The ids that mean a table now, and which."""
        current = self._ids[layout.ID_STATEMENT] == self.state[layout.STATEMENT]
        for slot in np.flatnonzero(current & (self._ids[layout.ID] != layout.NO_ID)):
            number = int(self._ids[layout.ID_MAP, slot])
            yield int(self._ids[layout.ID, slot]), self.tables[number].table_map

    def _slot(self, table_id: int) -> int:
        mask = self._ids.shape[1] - 1
        slot = (table_id * 0x9E3779B1 >> 8) & mask
        while self._ids[0, slot] not in {-1, table_id}:
            slot = (slot + 1) & mask
        return slot

    def _renew_ids(self) -> None:
        """Drop the ids of statements before; make room if that does not."""
        current = self._ids[:, self._ids[2] == self.state[layout.STATEMENT]]
        size = self._ids.shape[1] * (2 if 4 * current.shape[1] > self._ids.shape[1] else 1)
        self._ids = np.full((3, size), -1, np.int64)
        self._ids_used = current.shape[1]
        for column in range(current.shape[1]):
            self._ids[:, self._slot(int(current[0, column]))] = current[:, column]

    def make_room(self) -> None:
        """Make the table of events larger if it is full."""
        if self.state[layout.EVENTS] >= self.events.shape[1]:
            self.events = np.ascontiguousarray(np.hstack([self.events, np.zeros_like(self.events)]))

    def forget(self, count: int) -> None:
        """Forget the complete groups, and the first bytes of the buffer.

        Args:
            count: The number of bytes; the open group's events stand behind them.
        """
        state = self.state
        done, events = self.events_done, int(state[layout.EVENTS])
        left = events - done
        if left and done:
            self.events[:, :left] = self.events[:, done:events].copy()
        if left and count:
            for row in (
                layout.EVENT_OFFSET,
                layout.EVENT_END,
                layout.EVENT_BITMAP,
                layout.EVENT_IMAGES,
            ):
                self.events[row, :left] -= count
        groups = self.group_count
        if groups:
            start, length = groups * layout.GTID_TEXT_MAX, layout.GTID_TEXT_MAX
            self.texts[:length] = self.texts[start : start + length]
        state[layout.EVENTS] = left
        state[layout.FIRST_EVENT] = 0
        state[layout.GROUPS] = 0
        state[layout.OFFSET] -= count
        state[layout.BASE] += count

    @property
    def is_full(self) -> bool:
        """True if a table of the kernel is full, so that it cannot go on."""
        state = self.state
        return bool(
            state[layout.EVENTS] >= self.events.shape[1]
            or state[layout.GROUPS] >= self.groups.shape[1] - 1
        )

    def drop_noted(self) -> None:
        """Forget the events of the open group."""
        self.state[layout.EVENTS] = self.state[layout.FIRST_EVENT]

    def close(self) -> None:
        """Forget the open group."""
        self.drop_noted()
        self.state[
            [layout.IS_OPEN, layout.IS_TRANSACTION, layout.GTID_LENGTH, layout.GTID_MICROS]
        ] = 0

    def rewind(self, position: int) -> None:
        """Go back to where a group begins, which is then the start of the buffer."""
        self.close()
        self.state[[layout.EVENTS, layout.FIRST_EVENT, layout.GROUPS, layout.OFFSET]] = 0
        self.state[layout.VERDICT] = 0
        self.state[layout.STATEMENT] += 1
        self.state[layout.BASE] = position

    @contextmanager
    def one_group(self) -> Iterator[None]:
        """Let the kernel stop behind the next complete group."""
        groups, self.groups = self.groups, np.zeros((layout.GROUP_SIZE, 2), np.int64)
        try:
            yield
        finally:
            groups[:, :2] = self.groups
            self.groups = groups
