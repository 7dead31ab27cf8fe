"""Row images with the bytes of each value beside it; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from binlane.binlogs.cat.sql.sql_literals import literal
from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.columns import ABSENT, Column, ValueDecoder, decode_rows, value_decoder
from binlane.log.codec.json_diff import JsonDiffs
from binlane.log.codec.rows import DeleteRowsEvent, PartialUpdateRowsEvent, RowsEvent, TableMapEvent
from binlane.log.codec.table_metadata import table_columns
from binlane.log.codec.types import Flavor

if TYPE_CHECKING:
    from binlane.statements.sql.logged_objects import LoggedObjects


class RowPart(NamedTuple):
    """One value of a row, or its bitmap of NULLs.

    Attributes:
        title: Row and image that the value is of.
        name: Name of the value's column.
        text: The value as a text, for people.
        offset: Offset of the value's bytes in the images; None where no bytes are its own.
    """

    title: str
    name: str
    text: str
    offset: int | None = None
    data: bytes = b""


def row_parts(
    event: RowsEvent, table_map: TableMapEvent, *, flavor: Flavor, catalog: LoggedObjects | None
) -> Iterator[RowPart]:
    """All rows, value by value.

    Raises:
        CodecError: Where one does not decode; what is before it was given.
    """
    columns = (
        table_columns(table_map, flavor=flavor)
        if catalog is None
        else catalog.columns(table_map, flavor=flavor)
    )
    if event.column_count != len(columns):
        raise CodecError(
            f"the rows have {event.column_count} columns, their TABLE_MAP has {len(columns)}"
        )
    if isinstance(event, PartialUpdateRowsEvent):
        yield from _partial_parts(event, columns, flavor)
        return
    table = _Table(columns, [value_decoder(column) for column in columns], flavor)
    images = event.plain_images
    reader = Reader(images)
    row = 0
    while reader.remaining:
        start = reader.offset
        for what, present in _images(event):
            yield from table.image_parts(reader, images, present, f"row {row}, {what}")
        if reader.offset == start:
            raise CodecError("bytes follow where row images have no columns", offset=start)
        row += 1


def _images(event: RowsEvent) -> Sequence[tuple[str, bytes]]:
    if event.columns_present_after is not None:
        return (
            ("before image", event.columns_present),
            ("after image", event.columns_present_after),
        )
    is_delete = isinstance(event, DeleteRowsEvent)
    return (("before image" if is_delete else "after image", event.columns_present),)


class _Table(NamedTuple):
    """The columns, decoders and flavor for decoding the images of one table."""

    columns: Sequence[Column]
    decoders: Sequence[ValueDecoder]
    flavor: Flavor

    def image_parts(
        self, reader: Reader, data: bytes, present: bytes, title: str
    ) -> Iterator[RowPart]:
        """One image, which begins where `reader` stands in `data`."""
        bits = int.from_bytes(present, "little")
        there = [column for column in self.columns if bits >> column.index & 1]
        start = reader.offset
        bitmap = reader.take((len(there) + 7) // 8)
        nulls = int.from_bytes(bitmap, "little")
        names = [_name(column) for number, column in enumerate(there) if nulls >> number & 1]
        yield RowPart(title, "(NULL bits)", ", ".join(names) or "none is NULL", start, bitmap)
        for number, column in enumerate(there):
            if nulls >> number & 1:
                yield RowPart(title, _name(column), "NULL")
                continue
            start = reader.offset
            text = literal(self.decoders[column.index](reader), column, flavor=self.flavor)
            yield RowPart(title, _name(column), text, start, data[start : reader.offset])


def _partial_parts(
    event: RowsEvent, columns: Sequence[Column], flavor: Flavor
) -> Iterator[RowPart]:
    """Rows with JSON diffs; their values have no bytes of their own beside them."""
    for row, change in enumerate(decode_rows(event, columns, applies_diffs=False)):
        for what, image in zip(("before image", "after image"), change, strict=True):
            for column, value in zip(columns, image or (), strict=True):
                if value is ABSENT:
                    continue
                text = (
                    _diffs(value)
                    if isinstance(value, JsonDiffs)
                    else literal(value, column, flavor=flavor)
                )
                yield RowPart(f"row {row}, {what}", _name(column), text)


def _diffs(value: JsonDiffs) -> str:
    texts = (
        f"{diff.operation.name} {diff.path}" + ("" if diff.value is None else f" {diff.value}")
        for diff in value.diffs
    )
    return "; ".join(texts) or "unchanged"


def _name(column: Column) -> str:
    return f"@{column.index + 1}" + (f" {column.name}" if column.name is not None else "")
