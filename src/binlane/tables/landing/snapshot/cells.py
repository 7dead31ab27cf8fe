"""Values that a server sends for a column → an Arrow array of the type that the log's rows have.

Results come in each column's own character set (`character_set_results=NULL`), so that text is
decoded as the log's is. Arrow converts a column at a time; values that Arrow refuses go one by one
the reference's way.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from binlane.client.text_results import Cells
from binlane.log.codec.charsets import BINARY, TextDecoder, charset_of, text_decoder
from binlane.log.codec.columns import Column
from binlane.log.codec.types import ColumnType
from binlane.statements.sql.table_definitions import TableColumn
from binlane.tables.columnar.arrow_types import arrow_type, converter

Converted = tuple["pa.Array[Any]", int]
"""The values, and how many of them were dates that are none."""
CellConverter = Callable[[Cells], Converted]

_EXACT_TEXT: Final = frozenset({"utf8mb4", "utf8mb3", "ascii"})
_EXACTLY_CAST: Final = {
    # Servers print a FLOAT with six digits, and FLOAT(7,2) with two behind the point.
    ColumnType.FLOAT: "CAST({} AS DOUBLE)",
    ColumnType.DOUBLE: "CAST({} AS DOUBLE)",
    # A BIT would come as bytes.
    ColumnType.BIT: "CAST({} AS UNSIGNED)",
}
_YEAR_ZERO: Final = b"0000"


def expression(column: Column, own: TableColumn, name: str) -> str:
    """Return the SELECT expression that gives a column's values whole.

    Args:
        column: The column as the log has it.
        own: The column as its table defines it.
        name: The column's name as a quoted identifier.
    """
    if column.type is ColumnType.NEWDECIMAL and own.is_zerofill:
        return f"CAST({name} AS DECIMAL({column.precision},{column.scale}))"
    return _EXACTLY_CAST.get(column.type, "{}").format(name)


def cell_converter(column: Column) -> CellConverter:
    """Return the function from a column's cells to an array of the type that the log's rows have."""
    data_type = arrow_type(column)
    if pa.types.is_date(data_type) or pa.types.is_timestamp(data_type):
        return _moments(data_type)
    if pa.types.is_binary(data_type):
        return lambda cells: (pa.array(cells, data_type), 0)
    if pa.types.is_string(data_type):
        return _texts(_charset(column))
    return lambda cells: (pa.array(cells, pa.string()).cast(data_type), 0)


def _charset(column: Column) -> str:
    """The character set of a column's cells: of what is no text, ASCII will do."""
    if column.collation_id is None or column.logical is not None:
        return "utf8mb4"
    charset = charset_of(column.collation_id) or BINARY
    return "utf8mb4" if charset == BINARY else charset


def _texts(charset: str) -> CellConverter:
    decode = text_decoder(charset)
    finish = converter(pa.string())
    assert decode is not None, "only `binary` has none"
    assert finish is not None, "strings have one"

    def one(cell: bytes | None) -> object:
        if cell is None:
            return None
        try:
            return decode(cell)
        except UnicodeDecodeError:
            return finish(cell)

    is_exact = charset in _EXACT_TEXT
    has_ascii = is_exact or _has_ascii(decode)

    def convert(cells: Cells) -> Converted:
        if has_ascii:
            with suppress(pa.ArrowInvalid):  # bytes that are no text in UTF-8
                texts = pa.array(cells, pa.binary()).cast(pa.string())
                if is_exact or pc.all(pc.string_is_ascii(texts)).as_py() is not False:
                    return texts, 0
        return pa.array(map(one, cells), pa.string(), size=len(cells)), 0

    return convert


def _has_ascii(decode: TextDecoder) -> bool:
    """True if bytes below 128 are ASCII's characters, wherever they stand alone."""
    data = bytes(range(128))
    try:
        return decode(data) == data.decode("ascii")
    except UnicodeDecodeError:
        return False


def _moments(data_type: pa.DataType) -> CellConverter:
    """Dates, and dates with times: what is none, zero or partial, becomes NULL."""
    read = converter(data_type)
    naive = pa.timestamp("us") if pa.types.is_timestamp(data_type) else data_type
    assert read is not None, "dates have one"

    def convert(cells: Cells) -> Converted:
        texts = pa.array(cells, pa.string())
        # Arrow knows a year 0, which is none of the log's either.
        is_zero = pc.starts_with(texts, _YEAR_ZERO.decode())
        invalid = pc.sum(is_zero.cast(pa.int32())).as_py() or 0
        if invalid:
            texts = pc.if_else(is_zero, pa.scalar(None, pa.string()), texts)
        try:
            return texts.cast(naive).cast(data_type), invalid
        except pa.ArrowInvalid:
            values = [None if cell is None else read(cell.decode()) for cell in cells]
            return pa.array(values, data_type), values.count(None) - cells.count(None)

    return convert
