"""Row images → commented pseudo-SQL, as `-v` and `-vv` print it, for both flavors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from binlane.binlogs.cat.text.value_text import ValuePrinter, column_text
from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.columns import Column, whole_or_unsupported
from binlane.log.codec.row_count import count_rows
from binlane.log.codec.rows import (
    DeleteRowsEvent,
    PartialUpdateRowsEvent,
    RowsEvent,
    TableMapEvent,
    WriteRowsEvent,
)
from binlane.log.codec.table_metadata import table_columns
from binlane.log.codec.types import ColumnType, Flavor

_PARTIAL_JSON: Final = 1
_EXTRA_NDB: Final = 0
_NDB_HEADER_LENGTH: Final = 3
_COMMANDS: Final = (("INSERT INTO", "SET"), ("DELETE FROM", "WHERE"))

ImagePrinter = Callable[[Reader], str]


@dataclass(frozen=True, slots=True)
class _ColumnLine:
    """The parts of a column's line around its value."""

    head: str
    print_value: ValuePrinter
    tail: str
    null_line: str


def row_lines(
    body: RowsEvent, table_map: TableMapEvent, *, flavor: Flavor, with_types: bool
) -> Iterator[str]:
    """Comments for each row of an event, several lines in each text.

    Args:
        body: The rows event to print.
        table_map: Table map of the rows' table.
        flavor: Flavor of the file's server.
        with_types: True if each value is followed by its column's type.

    Raises:
        CodecError: If a row cannot be printed.
    """
    columns = table_columns(table_map, flavor=flavor)
    lines = _column_lines(columns, flavor, with_types=with_types)
    # A line end in a name would end the comment.
    name = str(table_map.name).replace("\n", "\\n")
    yield from extra_lines(body)
    yield from whole_or_unsupported(_row_texts(body, columns, lines, name), columns)


def _row_texts(
    body: RowsEvent, columns: Sequence[Column], lines: Sequence[_ColumnLine], name: str
) -> Iterator[str]:
    reader = Reader(body.plain_images)
    if isinstance(body, WriteRowsEvent) and not reader.remaining:
        yield f"### INSERT INTO {name} VALUES ()"  # noqa: S608  # a comment, not run
        return
    if isinstance(body, WriteRowsEvent | DeleteRowsEvent):
        command, clause = _COMMANDS[isinstance(body, DeleteRowsEvent)]
        image = _image_printer(lines, body.columns_present)
        head = f"### {command} {name}\n### {clause}\n"
        yield from _texts(reader, lambda: head + image(reader))
        return
    before = _image_printer(lines, body.columns_present)
    after = _after_printer(body, lines, columns)
    update = f"### UPDATE {name}\n### WHERE\n"
    yield from _texts(reader, lambda: f"{update}{before(reader)}\n### SET\n{after(reader)}")


def _texts(reader: Reader, text: Callable[[], str]) -> Iterator[str]:
    while reader.remaining:
        start = reader.offset
        yield text().removesuffix("\n")
        if reader.offset == start:
            raise CodecError("bytes follow where row images have no columns", offset=start)


@lru_cache(maxsize=256)
def _column_lines(
    columns: Sequence[Column], flavor: Flavor, *, with_types: bool
) -> tuple[_ColumnLine, ...]:
    return tuple(_column_line(column, flavor, with_types=with_types) for column in columns)


def _column_line(column: Column, flavor: Flavor, *, with_types: bool) -> _ColumnLine:
    text = column_text(column, flavor)
    head = f"###   @{column.index + 1}="
    if not with_types:
        return _ColumnLine(head, text.value, "", f"{head}NULL")
    facts = f" /* {text.type_name} meta={column.metadata} nullable={int(column.is_nullable)}"
    return _ColumnLine(head, text.value, f"{facts} is_null=0 */", f"{head}NULL{facts} is_null=1 */")


def _image_printer(lines: Sequence[_ColumnLine], columns_present: bytes) -> ImagePrinter:
    """Printer of one row image: a bitmap of NULLs over the present columns, then their values."""
    bits = int.from_bytes(columns_present, "little")
    present = [line for index, line in enumerate(lines) if bits >> index & 1]
    bitmap_length = (len(present) + 7) // 8

    def image(reader: Reader) -> str:
        nulls = int.from_bytes(reader.take(bitmap_length), "little")
        parts = []
        for line in present:
            if nulls & 1:
                parts.append(line.null_line)
            else:
                parts.append(f"{line.head}{line.print_value(reader)}{line.tail}")
            nulls >>= 1
        return "\n".join(parts)

    return image


def _after_printer(
    body: RowsEvent, lines: Sequence[_ColumnLine], columns: Sequence[Column]
) -> ImagePrinter:
    present = body.columns_present_after or b""
    whole = _image_printer(lines, present)
    if not isinstance(body, PartialUpdateRowsEvent):
        return whole
    json_columns = [column.index for column in columns if column.type is ColumnType.JSON]
    bitmap_length = (len(json_columns) + 7) // 8

    def image(reader: Reader) -> str:
        if not reader.packed_int() & _PARTIAL_JSON:
            return whole(reader)
        bits = int.from_bytes(reader.take(bitmap_length), "little")
        partial = list(lines)
        for number, index in enumerate(json_columns):
            if bits >> number & 1:
                partial[index] = _diff_line(lines[index], index)
        return _image_printer(partial, present)(reader)

    return image


def _diff_line(line: _ColumnLine, index: int) -> _ColumnLine:
    from binlane.binlogs.cat.text.json_as_text import diffs_text  # noqa: PLC0415  # few tables have JSON
    from binlane.log.codec.json_diff import decode_diffs  # noqa: PLC0415

    def print_diffs(reader: Reader) -> str:
        return diffs_text(decode_diffs(reader.take(reader.u32())).diffs, f"@{index + 1}")

    return _ColumnLine(line.head, print_diffs, line.tail, line.null_line)


def extra_lines(body: RowsEvent) -> Iterator[str]:
    """Return MySQL's extra data of all rows of an event: their partitions, or NDB's."""
    if not body.extra:
        return
    if body.extra[0] == _EXTRA_NDB and len(body.extra) > _NDB_HEADER_LENGTH:
        data = body.extra[_NDB_HEADER_LENGTH:]
        facts = f"data_format: {body.extra[2]}, len: {len(data)}"
        yield f"### Extra row ndb info: {facts} :0x{data.hex().upper()}"
    partitions = body.partition_ids
    if partitions:
        label = "### Extra row info for partitioning:"
        target, *source = partitions
        if source:
            yield f"{label} source_partition: {source[0]} target_partition: {target}"
        else:
            yield f"{label} partition: {target}"


def row_count(body: RowsEvent, table_map: TableMapEvent, *, flavor: Flavor) -> int:
    """Return the number of changes in an event; 0 if they cannot be separated."""
    columns = table_columns(table_map, flavor=flavor)
    try:
        return count_rows(body, columns)
    except CodecError:
        return 0
