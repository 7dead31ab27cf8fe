"""Row images → commented pseudo-SQL, as `-v` prints it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from binlane.codec.columns import ABSENT, Column, decode_rows
from binlane.codec.json_values import json_value, shortest_float
from binlane.codec.rows import RowsEvent, TableMapEvent
from binlane.codec.table_metadata import table_columns
from binlane.codec.types import ColumnType, Flavor
from binlane.errors import CodecError
from binlane.names import TableName

_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\0": "\\0"})


def pseudo_sql(
    body: RowsEvent,
    table_map: TableMapEvent,
    *,
    flavor: Flavor,
    with_types: bool,
    place: tuple[str, int],
) -> Iterator[str]:
    """Comment lines for each row of an event.

    Args:
        body: The rows.
        table_map: Their table.
        flavor: Of the file.
        with_types: Whether each value is followed by its column's type.
        place: File and position of the event, for errors.

    Raises:
        CodecError: If a row cannot be decoded.
    """
    name = TableName(table_map.database, table_map.table)
    try:
        columns = table_columns(table_map, flavor=flavor)
        for before, after in decode_rows(body, columns):
            if before is None:
                yield f"### INSERT INTO {name}"
            elif after is None:
                yield f"### DELETE FROM {name}"  # noqa: S608  # a comment, not run
            else:
                yield f"### UPDATE {name}"
            for keyword, image in (("WHERE", before), ("SET", after)):
                if image is not None:
                    yield f"### {keyword}"
                    yield from _assignments(columns, image, with_types=with_types)
    except CodecError as error:
        raise error.at(*place) from None


def _assignments(
    columns: Sequence[Column], image: Sequence[object], *, with_types: bool
) -> Iterator[str]:
    for column, value in zip(columns, image, strict=True):
        if value is ABSENT:
            continue
        name = f" {column.name}" if column.name else ""
        kind = f" /* {column.type.name}{name} */" if with_types else ""
        yield f"###   @{column.index + 1}={literal(value, column.type)}{kind}"


def literal(value: object, column_type: ColumnType) -> str:
    """A column value as a SQL literal."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if column_type is ColumnType.BIT:
        return f"b'{value:b}'"
    if isinstance(value, float):
        return repr(shortest_float(value) if column_type is ColumnType.FLOAT else value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, int):
        return str(value)
    text = ",".join(map(str, value)) if isinstance(value, tuple) else value
    if not isinstance(text, str):
        text = str(json_value(value, column_type))
    return f"'{text.translate(_ESCAPES)}'"
