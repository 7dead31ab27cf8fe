"""Full row images → those that a binlog with another ROW_IMAGE holds, as servers make them.

A before image keeps the columns of the primary key equivalent, or all but BLOB and TEXT ones beside
it; an after image those that changed in any row of its event. Inserts stay as they are: a full
image does not say which columns its statement gave values to.

The key is what TABLE_MAPs say with `binlog_row_metadata=FULL`: both servers name the primary key
equivalent there, also where it is a unique key. Rows that cannot be cut for sure stay full, are
counted, and are right for replicas all the same.

Source: seed 004, "row image"; measured on MariaDB 10.11 and 11.8 and MySQL 9.7.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from enum import Enum
from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple

import numpy as np

from binlane.binlogs.routing.payload_selection import select_inside
from binlane.errors import CodecError, UnsupportedError
from binlane.log.codec.event import Event, decode_event
from binlane.log.codec.format import HEADER_LENGTH, Format
from binlane.log.codec.fragments import PartialRowDataEvent
from binlane.log.codec.mysql_transaction import MysqlGtidEvent
from binlane.log.codec.payload import TransactionPayloadEvent
from binlane.log.codec.row_count import value_widths
from binlane.log.codec.row_cutting import Widths, changed_columns, cut_images
from binlane.log.codec.rows import (
    DeleteRowsEvent,
    PartialUpdateRowsEvent,
    RowsEvent,
    TableMapEvent,
    UpdateRowsEvent,
    compressed_rows,
    uncompressed,
)
from binlane.log.codec.table_metadata import table_columns
from binlane.log.codec.types import ROWS_TYPES, ColumnType, EventType, Flavor, RowsFlag
from binlane.log.grouping.event_group import GTID_TYPES
from binlane.log.grouping.placing import fitted, place, shifted
from binlane.log.grouping.window import PADDING, Bytes
from binlane.log.kernels.load import is_compiled, kernels
from binlane.statements.sql.servers import RowImage

_BLOBS: Final = frozenset(
    {
        ColumnType.TINY_BLOB,
        ColumnType.BLOB,
        ColumnType.MEDIUM_BLOB,
        ColumnType.LONG_BLOB,
        ColumnType.BLOB_COMPRESSED,
    }
)
"""Types that NOBLOB leaves out: no GEOMETRY, and of JSON only MariaDB's, which is a LONGTEXT."""
_KNOWN_MAX: Final = 4096
"""Shapes that are kept by the bytes of their TABLE_MAP: sources have tables that come and go."""
_TYPE_AND_LENGTH: Final = Struct("<4xB4xI")
_SHORT_ID: Final = 6
_INSERTS: Final = frozenset(
    {
        *(EventType.WRITE_ROWS, EventType.WRITE_ROWS_V1),
        *(EventType.WRITE_ROWS_COMPRESSED, EventType.WRITE_ROWS_COMPRESSED_V1),
    }
)
_CUT: Final = (ROWS_TYPES - _INSERTS) | {
    EventType.PARTIAL_UPDATE_ROWS,
    EventType.PARTIAL_ROW_DATA,
    EventType.TRANSACTION_PAYLOAD,
}


class Uncut(Enum):
    """Why rows stay full."""

    NO_METADATA = "the source does not say what the key of their table is"
    LACKING = "they are not full"
    PARTIAL = "they hold changes of JSON documents, or are in pieces"
    UNKNOWN = "how long their values are is not known"
    DAMAGED = "their bytes are no rows"
    TOO_LARGE = "they are too many in one compressed transaction"


class _Shape(NamedTuple):
    """Facts of a table that cutting needs; columns are bits.

    Attributes:
        widths: Widths of the values of its columns.
        columns: Bits of all its columns.
        key: Columns of the primary key equivalent; 0 where it has none.
        blobs: Columns that NOBLOB leaves out.
    """

    widths: Widths
    columns: int
    key: int
    blobs: int


class ImageCutter:
    """Cuts the row images of one binlog; it knows the TABLE_MAPs that it was given.

    Args:
        image: Smaller images that the rows get; not FULL.
        uses_kernels: True if kernels may be used; by default where they are compiled.

    Attributes:
        image: Smaller images that the rows get; not FULL.
        uncut: Number of events that stayed full although their rows could be smaller, by reason.
    """

    def __init__(self, image: RowImage, *, uses_kernels: bool | None = None) -> None:
        self.image = image
        self.uncut: Counter[Uncut] = Counter()
        self._uses_kernels = is_compiled(("images",)) if uses_kernels is None else uses_kernels
        self._shapes: dict[int, _Shape | Uncut] = {}
        self._known: dict[bytes, _Shape | Uncut] = {}

    def events(self, events: Iterable[Event], format_: Format) -> tuple[Event, ...]:
        """Cut the rows of events in the order of the log; an event that stays as it is is itself.

        Args:
            events: Events in any form, also TRANSACTION_PAYLOAD.
            format_: Format of the FORMAT_DESCRIPTION before them.

        Raises:
            CodecError: If a payload is broken.
        """
        return tuple(self.event(event, format_) for event in events)

    def event(self, event: Event, format_: Format) -> Event:
        """One event, as `events`."""
        body = event.body
        if isinstance(body, TableMapEvent):
            self._shapes[body.table_id] = _shape(body, format_.flavor)
        elif isinstance(body, RowsEvent):
            cut = self.cut(body, self._shapes.get(body.table_id), format_.flavor)
            if body.ends_statement:
                self._shapes.clear()
            return event if cut is None else replace(event, body=cut)
        elif isinstance(body, PartialRowDataEvent):
            self.uncut[Uncut.PARTIAL] += event.joined is not None
        elif isinstance(body, TransactionPayloadEvent):
            return self._payload(event, body, format_)
        return event

    def placed(
        self, data: bytes | bytearray | memoryview, position: int, format_: Format
    ) -> bytes | bytearray | memoryview:
        """Whole groups as they stand in a file, with their rows cut.

        Args:
            data: The events as they stand at `position`.
            position: Position of the events in their file, before and after the cut.
            format_: Format of the file's events.

        Returns:
            The events; `data` itself where nothing is cut.
        """
        view = memoryview(data)
        out: bytearray | None = None
        for group in _groups(view):
            found = [self._placed(view[start:end], code, format_) for code, start, end in group]
            begin = group[0][1]
            if any(event is not None for event in found):
                out = bytearray(view[:begin]) if out is None else out
                self._put(out, view, group, found, position, format_)
            elif out is not None:
                for _, start, end in group:
                    out += shifted(view[start:end], position + len(out), format_)
        return data if out is None else out

    def _placed(self, data: memoryview, code: int, format_: Format) -> Event | None:
        """An event with its rows cut; None where it stays as it is."""
        is_short = format_.post_header_length(EventType.TABLE_MAP) == _SHORT_ID
        flags = HEADER_LENGTH + (4 if is_short else 6)
        if code == EventType.TABLE_MAP:
            number = int.from_bytes(data[HEADER_LENGTH:flags], "little")
            key = bytes(data[flags : len(data) - format_.checksum_length])
            shape = self._known.get(key)
            if shape is None:
                body = decode_event(data, format_).body
                assert isinstance(body, TableMapEvent), "its type says so"
                if len(self._known) >= _KNOWN_MAX:
                    self._known.clear()
                shape = self._known[key] = _shape(body, format_.flavor)
            self._shapes[number] = shape
        elif code in _CUT:
            event = decode_event(data, format_)
            cut = self.event(event, format_)
            return None if cut is event else cut
        elif code in _INSERTS and data[flags] & RowsFlag.STMT_END.value:
            self._shapes.clear()
        return None

    @staticmethod
    def _put(
        out: bytearray,
        data: memoryview,
        group: Sequence[tuple[int, int, int]],
        found: Sequence[Event | None],
        position: int,
        format_: Format,
    ) -> None:
        """Append a group; MySQL's first event says how long all of it is."""
        overhead = HEADER_LENGTH + format_.checksum_length
        bodies = [None if event is None else event.body.encode(format_) for event in found]
        placed = list(found)
        first = group[0]
        if first[0] in GTID_TYPES and format_.flavor is Flavor.MYSQL:
            gtid = decode_event(data[first[1] : first[2]], format_)
            assert isinstance(gtid.body, MysqlGtidEvent), "its type says so"
            others = overhead + sum(
                end - start if body is None else len(body) + overhead
                for (_, start, end), body in zip(group[1:], bodies[1:], strict=True)
            )
            # The GTID event's logical timestamps are those of this file already.
            placed[0] = replace(gtid, body=fitted(gtid.body, others, format_, clock=0))
        for (_, start, end), event in zip(group, placed, strict=True):
            at = position + len(out)
            out += (
                shifted(data[start:end], at, format_)
                if event is None
                else place(event, at, format_)
            )

    def _payload(self, event: Event, body: TransactionPayloadEvent, format_: Format) -> Event:
        inside = ImageCutter(self.image, uses_kernels=self._uses_kernels)
        try:
            cut = select_inside(
                event, body, lambda events: inside.events(events, format_), format_=format_, file=""
            )
        except UnsupportedError:
            self.uncut[Uncut.TOO_LARGE] += 1
            return event
        self.uncut += inside.uncut
        assert cut is not None, "each event stays"
        return cut

    def cut(
        self, body: RowsEvent, shape: _Shape | Uncut | None, flavor: Flavor
    ) -> RowsEvent | None:
        """Cut rows; None where they stay as they are.

        Args:
            body: The rows event to cut.
            shape: Shape of the rows' table; None where it has no TABLE_MAP.
            flavor: Flavor of the rows' server.
        """
        if not isinstance(body, UpdateRowsEvent | DeleteRowsEvent):
            return None
        if shape is None:
            return None  # only the end of a statement
        if isinstance(shape, Uncut):
            self.uncut[shape] += 1
            return None
        if isinstance(body, PartialUpdateRowsEvent):
            self.uncut[Uncut.PARTIAL] += 1
            return None
        try:
            return self._with_less(body, shape, flavor)
        except CodecError:
            self.uncut[Uncut.DAMAGED] += 1  # who reads it says so, as of that of a full image
            return None

    def _with_less(self, body: RowsEvent, shape: _Shape, flavor: Flavor) -> RowsEvent | None:
        if not shape.key and flavor is Flavor.MARIADB:
            return None
        before = _bits(body.columns_present) & shape.columns
        if shape.key & ~before and self.image is not RowImage.FULL_NODUP:
            self.uncut[Uncut.LACKING] += 1
            return None
        kept = [before & _before(self.image, shape)]
        present = [before]
        plain = uncompressed(body)
        if body.columns_present_after is not None:
            after = _bits(body.columns_present_after) & shape.columns
            changed = self._changed(plain.images, shape, before, after)
            if not changed:
                return None
            present.append(after)
            kept.append(after & (changed | _after(self.image, shape, flavor)))
        if kept == present:
            return None
        cut = replace(
            plain,
            columns_present=_bitmap(kept[0], body.columns_present, shape),
            columns_present_after=None
            if body.columns_present_after is None
            else _bitmap(kept[1], body.columns_present_after, shape),
            images=self._images(plain.images, shape, present, kept, flavor),
        )
        return compressed_rows(cut) if body.is_compressed else cut

    def _changed(self, images: bytes, shape: _Shape, before: int, after: int) -> int:
        if not self._uses_kernels:
            return changed_columns(images, shape.widths, before, after)
        old, new = _bitmaps(shape, before, after)
        changed, room = np.zeros_like(old), np.empty((4, len(shape.widths)), np.int64)
        status = kernels().find_changed(
            _padded(images), len(images), _widths(shape.widths), old, new, room, changed
        )
        if status < 0:
            raise CodecError("the bytes are no row images")
        return _bits(changed.tobytes())

    def _images(
        self,
        images: bytes,
        shape: _Shape,
        present: Sequence[int],
        kept: Sequence[int],
        flavor: Flavor,
    ) -> bytes:
        if not self._uses_kernels:
            return cut_images(images, shape.widths, present, kept, flavor=flavor)
        data = _padded(images)
        out, room = np.empty_like(data), np.empty((4, len(shape.widths)), np.int64)
        there, stays = _bitmaps(shape, *present), _bitmaps(shape, *kept)
        widths, fill = _widths(shape.widths), 0xFF if flavor is Flavor.MARIADB else 0
        length = kernels().cut(data, len(images), widths, there, stays, fill, room, out)
        if length < 0:
            raise CodecError("the bytes are no row images")
        return out[:length].tobytes()


def cut_rows(
    body: RowsEvent,
    table_map: TableMapEvent,
    image: RowImage,
    flavor: Flavor,
    *,
    uses_kernels: bool | None = None,
) -> RowsEvent:
    """The rows of one event as a binlog with a smaller ROW_IMAGE has them; as they are where it cannot.

    Args:
        body: The rows event to cut.
        table_map: Table map of the rows' table.
        image: Smaller images that the rows get; not FULL.
        flavor: Flavor of the rows' server.
        uses_kernels: True if kernels may be used; by default where they are compiled.
    """
    cutter = ImageCutter(image, uses_kernels=uses_kernels)
    return cutter.cut(body, _shape(table_map, flavor), flavor) or body


def _groups(data: memoryview) -> Iterator[list[tuple[int, int, int]]]:
    """Type, start and end of the events of each group."""
    group: list[tuple[int, int, int]] = []
    at = 0
    while at < len(data):
        code, length = _TYPE_AND_LENGTH.unpack_from(data, at)
        if code in GTID_TYPES and group:
            yield group
            group = []
        group.append((code, at, at + length))
        at += length
    if group:
        yield group


def _before(image: RowImage, shape: _Shape) -> int:
    """The columns of before images."""
    if image is RowImage.FULL_NODUP or not shape.key:
        return shape.columns
    return shape.key if image is RowImage.MINIMAL else shape.key | shape.columns & ~shape.blobs


def _after(image: RowImage, shape: _Shape, flavor: Flavor) -> int:
    """The columns of after images beside those that change."""
    if image is not RowImage.NOBLOB:
        return 0
    return shape.columns & ~shape.blobs | (shape.key if flavor is Flavor.MARIADB else 0)


@lru_cache(maxsize=1024)
def _shape(table_map: TableMapEvent, flavor: Flavor) -> _Shape | Uncut:
    """Read the shape of a table, or the reason why it is not known."""
    try:
        columns = table_columns(table_map, flavor=flavor)
    except CodecError:
        return Uncut.UNKNOWN
    widths = value_widths(columns)
    if widths is None:
        return Uncut.UNKNOWN
    if any(column.name is None for column in columns):
        return Uncut.NO_METADATA
    return _Shape(
        widths=widths,
        columns=(1 << len(columns)) - 1,
        key=sum(1 << column.index for column in columns if column.in_primary_key),
        blobs=sum(1 << column.index for column in columns if column.type in _BLOBS),
    )


def _bits(bitmap: bytes) -> int:
    return int.from_bytes(bitmap, "little")


def _bitmap(bits: int, written: bytes, shape: _Shape) -> bytes:
    """Columns as an event has them; bits behind the last one stay as they were."""
    behind = _bits(written) & ~shape.columns
    return (bits | behind).to_bytes(len(written), "little")


def _bitmaps(shape: _Shape, *columns: int) -> Bytes:
    length = (len(shape.widths) + 7) // 8
    data = b"".join(bits.to_bytes(length, "little") for bits in columns)
    return np.frombuffer(data, np.uint8).reshape(len(columns), length).copy()


@lru_cache(maxsize=1024)
def _widths(widths: Widths) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array(widths, np.int32)


def _padded(images: bytes) -> Bytes:
    data = np.empty(len(images) + PADDING, np.uint8)
    data[: len(images)] = np.frombuffer(images, np.uint8)
    data[len(images) :] = 0
    return data
