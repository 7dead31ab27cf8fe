"""The groups of a run, each decoded once at most, and the facts that one look at their events tells."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from binlane.binlogs.routing.cut_group import MARKS
from binlane.binlogs.routing.payload_shapes import PayloadReader, ReadPayload, Shape
from binlane.binlogs.routing.row_selection import table_name
from binlane.binlogs.routing.texts import TEXT_MAX, shape_of
from binlane.log.codec.format import HEADER_LENGTH
from binlane.log.codec.query import POST_HEADER_LENGTH
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import EventGroup
from binlane.log.grouping.raw import RawRun
from binlane.log.kernels import layout
from binlane.log.kernels import route_layout as lay
from binlane.log.kernels.load import kernels
from binlane.names import TableName

_MARK: Final = np.frombuffer(
    b"".join(bytes((len(name),)) + name.encode() + b"\0" for name in (MARKS.database, MARKS.table)),
    np.uint8,
).copy()
_MAP: Final = int(EventType.TABLE_MAP)
_PAYLOAD: Final = int(EventType.TRANSACTION_PAYLOAD)
_PLAIN_BYTES_MAX: Final = 8 << 20
"""Bytes of all payloads of a run that are kept unpacked."""
_THREAD_AND_TIME: Final = 8
"""Bytes of a statement's body before its context."""
_CHANGES_ROWS: Final = re.compile(rb"INSERT|UPDATE|DELETE|REPLACE", re.IGNORECASE)


class RawPiece(NamedTuple):
    """The events of a group up to a STMT_END.

    Attributes:
        first: Number of the first of them in the run.
        end: Number behind the last of them.
        mapped: The tables of the TABLE_MAPs.
        table: Number of the one table that has maps; -1 if there are several.
        text_at: Offset of the text that MariaDB wrote before the rows; 0 without one.
        text_end: Offset behind the end of that text.
    """

    first: int
    end: int
    mapped: frozenset[TableName]
    table: int
    text_at: int
    text_end: int


class RunGroups:
    """The groups of a run.

    Attributes:
        run: The run as it was read.
    """

    def __init__(self, run: RawRun) -> None:
        self.run = run
        self._groups: dict[int, EventGroup] = {}
        self._kept: tuple[RunGroups, int] | None = None
        self._mapped: dict[int, frozenset[TableName]] = {}
        self._payloads: dict[int, ReadPayload | None] = {}
        self._payload_reader = PayloadReader()
        self._plain_bytes = 0

    def kept(self, first: int) -> tuple[RunGroups, int]:
        """The groups from one on, or more of them, to be kept; the number of the first of them."""
        if self._kept is None or self._kept[1] > first:
            self._kept = RunGroups(self.run.kept(first)), first
        return self._kept

    def group(self, number: int) -> EventGroup:
        """A group, decoded.

        Raises:
            CodecError: If an event of the group cannot be decoded.
        """
        if number not in self._groups:
            self._groups[number] = self.run.group(number)
        return self._groups[number]

    @cached_property
    def facts(self) -> npt.NDArray[np.int64]:
        """Facts of each group, a column each, as `kernels.group_facts` tells them."""
        return self.looked_at[0]

    @cached_property
    def looked_at(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Facts of each group, and the pieces of all groups, as `kernels.look` tells them."""
        run = self.run
        facts = np.empty((lay.FACT_SIZE, run.count), np.int64)
        pieces = np.empty((lay.PIECE_SIZE, run.groups.item(layout.GROUP_END, -1)), np.int64)
        name_at = run.format.post_header_length(EventType.TABLE_MAP)
        arrays = run.data, run.events, run.groups
        count = kernels().look(arrays, _MARK, name_at, facts, pieces)
        return facts, np.ascontiguousarray(pieces[:, :count])

    def is_any(self, bits: int) -> bool:
        """True if any group has one of some bits among its facts."""
        return bool(self._all_bits & bits)

    @cached_property
    def _all_bits(self) -> int:
        return int(np.bitwise_or.reduce(self.facts[lay.FACT_BITS]))

    def has(self, number: int, bits: int) -> bool:
        """True if a group has one of some bits among its facts."""
        return bool(self.facts.item(lay.FACT_BITS, number) & bits)

    def pieces(self, number: int) -> list[RawPiece]:
        """The pieces of a group of MariaDB's rows and their brackets; none if it is for the reference."""
        facts, found = self.looked_at
        start, end = (facts.item(row, number) for row in (lay.FACT_PIECES, lay.FACT_PIECES_END))
        return [
            RawPiece(first, stop, self._tables(first, stop, table), table, text, text_end)
            for first, stop, table, text, text_end in found[:, start:end].T.tolist()
        ]

    def _tables(self, first: int, end: int, table: int) -> frozenset[TableName]:
        """The tables that have maps among some events."""
        if table < 0:
            run = self.run
            is_map = run.events[layout.EVENT_TYPE, first:end] == _MAP
            numbers = run.events[layout.EVENT_MAP, first:end][is_map].tolist()
            return frozenset(table_name(run.tables[number].table_map) for number in numbers)
        known = self._mapped.get(table)
        if known is None:
            known = frozenset((table_name(self.run.tables[table].table_map),))
            self._mapped[table] = known
        return known

    def payload(self, event: int) -> ReadPayload | None:
        """The contents of a TRANSACTION_PAYLOAD by its event's number; None if it has no shape."""
        if self.run.events.item(layout.EVENT_TYPE, event) != _PAYLOAD:
            return None
        if event not in self._payloads:
            read = self._payload_reader.read(self._body(event))
            if read is not None:
                self._plain_bytes += len(read.plain)
                if self._plain_bytes > _PLAIN_BYTES_MAX:
                    read = read._replace(plain=b"")
            self._payloads[event] = read
        return self._payloads[event]

    def unpacked(self, event: int) -> tuple[int, bytes]:
        """The compression and the plain events of a TRANSACTION_PAYLOAD that has a shape."""
        read = self.payload(event)
        if read is not None and read.plain:
            return read.compression, read.plain
        found = self._payload_reader.unpacked(self._body(event))
        assert found is not None, "it has a shape"
        return found

    def _body(self, event: int) -> bytes:
        events = self.run.events
        start = events.item(layout.EVENT_OFFSET, event) + HEADER_LENGTH
        return self.run.data[start : events.item(layout.EVENT_END, event)].tobytes()

    def payload_shape(self, event: int) -> Shape | None:
        """The shape of a TRANSACTION_PAYLOAD by its event's number; None if it has none."""
        read = self.payload(event)
        return None if read is None else read.shape

    def statement_shape(self, event: int) -> Shape | None:
        """Context and shape of a QUERY_COMPRESSED that changes rows; None of other statements."""
        run = self.run
        text = run.compressed_text(event)
        if len(text) > TEXT_MAX or not _CHANGES_ROWS.match(text):
            return None
        start = run.events.item(layout.EVENT_OFFSET, event) + HEADER_LENGTH
        context_at = start + _THREAD_AND_TIME
        end = start + POST_HEADER_LENGTH + 1 + run.data.item(start + 8)
        end += run.data.item(start + 11) | run.data.item(start + 12) << 8
        return run.data[context_at:end].tobytes(), shape_of(text)

    def annotated(self, piece: RawPiece) -> bytes | None:
        """The text that MariaDB wrote before the rows of a statement; None without one."""
        if not piece.text_at:
            return None
        return self.run.data[piece.text_at : piece.text_end].tobytes()
