"""Table maps → how the text kernel prints their rows: pieces of text and numbers in arrays.

`kernels.text_layout` explains the numbers. Rows without a layout, or with one that is not covered,
are printed from the decoded event by `text_rows`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from binlane.binlogs.cat.text.event_text import one_line
from binlane.binlogs.cat.text.table_text import generated_key_line
from binlane.binlogs.cat.text.value_text import column_text
from binlane.errors import CodecError
from binlane.log.codec.columns import Column
from binlane.log.codec.numbers import decimal_length
from binlane.log.codec.rows import TableMapEvent
from binlane.log.codec.table_metadata import table_columns
from binlane.log.codec.types import COUNTED_BLOBS, COUNTED_STRINGS, ColumnType, Flavor
from binlane.log.kernels import text_layout as lay

_Number = TypeVar("_Number", bound=np.generic)
Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

_DIGITS_MAX: Final = 6
_ONE_BYTE_LENGTH_MAX: Final = 255
_IS_NULL: Final = "is_null="
_TABLES: Final = 1 << 12
_TEXTS_BYTES_MAX: Final = 8 << 20
_HAS_TRIGGERS: Final = 1 << 14
_HEADINGS: Final[Mapping[int, str]] = MappingProxyType(
    {
        lay.INSERTED: "### INSERT INTO {}\n### SET\n",
        lay.DELETED: "### DELETE FROM {}\n### WHERE\n",
        lay.BEFORE: "### UPDATE {}\n### WHERE\n",
        lay.AFTER: "### SET\n",
    }
)
# Type, bytes that it has or that its length has, and a detail.
_Shape = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class _Table:
    """The last table map of a table, and its columns; None where they are not known."""

    table_map: TableMapEvent
    body: bytes
    columns: tuple[Column, ...] | None


class Layouts:
    """The tables of a log, the layouts of their images, and the texts of both.

    Attributes:
        tables: Tables by the hash of their ids; a row each.
        layouts: Layouts of images, one behind the other.
        texts: Bodies of table maps, pieces and other bytes that the kernel compares or copies.

    Args:
        with_types: True if each value is followed by its column's type.
    """

    def __init__(self, *, with_types: bool) -> None:
        self._with_types = with_types
        self._clear(_TABLES)

    def _clear(self, tables: int) -> None:
        self.tables: Longs = np.full((tables, lay.TABLE_SIZE), lay.NO_TABLE, np.int64)
        self.layouts: Longs = np.zeros(1 << 12, np.int64)
        self.texts: Bytes = np.zeros(1 << 16, np.uint8)
        self._by_slot: dict[int, _Table] = {}
        self._layouts_end = 0
        self._texts_end = lay.FIXED_BYTES

    @property
    def is_full(self) -> bool:
        """True if tables and texts have to be forgotten before more are added."""
        return 4 * len(self._by_slot) > len(self.tables) or self._texts_end > _TEXTS_BYTES_MAX

    def keep(self, statement: int, flavor: Flavor) -> None:
        """Forget all texts, and all tables except those of the present statement."""
        kept = [
            table
            for slot, table in self._by_slot.items()
            if self.tables[slot, lay.TABLE_STATEMENT] == statement
        ]
        self._clear(max(_TABLES, 1 << (8 * len(kept)).bit_length()))
        for table in kept:
            slot = self.add_table(table.table_map, table.body, flavor)
            self.tables[slot, lay.TABLE_STATEMENT] = statement

    def forget(self) -> None:
        """Forget all texts and all tables, as another flavor prints them otherwise."""
        self._clear(_TABLES)

    def add_text(self, text: bytes) -> tuple[int, int]:
        """Keep some bytes; where they stand and how many they are."""
        start, end = self._texts_end, self._texts_end + len(text)
        if end + lay.PADDING > len(self.texts):
            self.texts = _grown(self.texts, end + lay.PADDING)
        self.texts[start:end] = np.frombuffer(text, np.uint8)
        self._texts_end = end
        return start, len(text)

    def add_table(self, table_map: TableMapEvent, body: bytes, flavor: Flavor) -> int:
        """Set the table that an id means from here on; give its slot in `tables`.

        Args:
            table_map: The TABLE_MAP event as decoded.
            body: Bytes of the event behind the id.
            flavor: Flavor of the file's server.
        """
        slot = self._slot(table_map.table_id)
        text = f"Table_map: {_name(table_map)} mapped to number {table_map.table_id}"
        if flavor is Flavor.MARIADB and table_map.flags & _HAS_TRIGGERS:
            text += " (has triggers)"
        facts = f"{generated_key_line(table_map)}\n" if flavor is Flavor.MYSQL else ""
        row = self.tables[slot]
        row[lay.TABLE_ID] = table_map.table_id
        row[lay.TABLE_BODY], row[lay.TABLE_BODY_LENGTH] = self.add_text(body)
        row[lay.TABLE_NAME], length = self._piece(f"{text}\n{facts}")
        row[lay.TABLE_FACTS_LENGTH], row[lay.TABLE_NAME_LENGTH] = length, length - len(facts)
        row[lay.TABLE_STATEMENT] = -1
        row[lay.TABLE_COLUMNS] = len(table_map.column_types)
        row[lay.TABLE_LAYOUT] = lay.NO_LAYOUT
        self._by_slot[slot] = _Table(table_map, body, _columns(table_map, flavor))
        return slot

    def _slot(self, table_id: int) -> int:
        """Do as `find_table` of the kernel does."""
        mask = len(self.tables) - 1
        at = ((table_id * 0x9E3779B1) >> 8) & mask
        while self.tables[at, lay.TABLE_ID] not in {lay.NO_TABLE, table_id}:
            at = (at + 1) & mask
        return at

    def mapped(self, statement: int) -> Iterator[TableMapEvent]:
        """The tables that a statement has mapped."""
        for slot, table in self._by_slot.items():
            if self.tables[slot, lay.TABLE_STATEMENT] == statement:
                yield table.table_map

    def table_map(self, slot: int) -> TableMapEvent:
        """The table at a slot."""
        return self._by_slot[slot].table_map

    def add_layout(self, slot: int, kind: int, bitmap: bytes, flavor: Flavor) -> None:
        """Make the layout of a table's images of a kind that have the columns of a bitmap."""
        table = self._by_slot[slot]
        present = int.from_bytes(bitmap, "little")
        shapes = {column: _shape(column, flavor) for column in table.columns or ()}
        columns = [column for column in shapes if present >> column.index & 1]
        # A column that is not here, but cannot be read, is an error all the same.
        is_covered = bool(columns) and None not in shapes.values()
        start, length = self.add_text(bitmap)
        head = [
            int(self.tables[slot, lay.TABLE_LAYOUT]),
            kind,
            start,
            length,
            len(columns),
            int(is_covered),
        ]
        if is_covered:
            heading = _HEADINGS[kind].format(_name(table.table_map))
            head += self._column_numbers(
                columns, [shape for column in columns if (shape := shapes[column])], heading, flavor
            )
        end = self._layouts_end + len(head)
        if end > len(self.layouts):
            self.layouts = _grown(self.layouts, end)
        self.layouts[self._layouts_end : end] = head
        self.tables[slot, lay.TABLE_LAYOUT] = self._layouts_end
        self._layouts_end = end

    def _column_numbers(
        self, columns: list[Column], shapes: list[_Shape], heading: str, flavor: Flavor
    ) -> list[int]:
        """The columns of a layout, and the piece behind the last one."""
        numbers: list[int] = []
        piece = heading
        for column, shape in zip(columns, shapes, strict=True):
            numbers += [*shape, *self._piece(f"{piece}###   @{column.index + 1}=")]
            piece = self._tail(column, flavor)
            mark = piece.find(_IS_NULL)
            numbers.append(mark + len(_IS_NULL) if mark >= 0 else -1)
        return [*numbers, 0, 0, 0, *self._piece(piece), -1]

    def _piece(self, text: str) -> tuple[int, int]:
        return self.add_text(text.encode("utf-8", "surrogateescape"))

    def _tail(self, column: Column, flavor: Flavor) -> str:
        if not self._with_types:
            return "\n"
        name = column_text(column, flavor).type_name
        facts = f"meta={column.metadata} nullable={int(column.is_nullable)}"
        return f" /* {name} {facts} {_IS_NULL}0 */\n"


def _grown(array: npt.NDArray[_Number], size: int) -> npt.NDArray[_Number]:
    grown = np.zeros(max(2 * len(array), size), array.dtype)
    grown[: len(array)] = array
    return grown


def _name(table_map: TableMapEvent) -> str:
    return one_line(str(table_map.name))


def _columns(table_map: TableMapEvent, flavor: Flavor) -> tuple[Column, ...] | None:
    """Return the columns of a table; None if its bytes contradict each other."""
    try:
        return table_columns(table_map, flavor=flavor)
    except CodecError:
        return None


def _shape(column: Column, flavor: Flavor) -> _Shape | None:
    """Give the kernel's way to read a column; None if it does not read it."""
    measure = _SHAPES.get(column.type)
    shape = None if measure is None else measure(column)
    if flavor is Flavor.MARIADB or shape is None:
        return shape
    kind, size, detail = shape
    if kind == lay.OLD_DATETIME:
        # mysqlbinlog gives it no quotes.
        return None
    return (lay.ESCAPED if kind == lay.STRING else kind), size, detail


def _integer(size: int) -> Callable[[Column], _Shape]:
    return lambda _: (lay.INTEGER, size, 0)


def _fixed(kind: int, size: int) -> Callable[[Column], _Shape]:
    return lambda _: (kind, size, 0)


def _string(column: Column) -> _Shape:
    return lay.STRING, 1 if column.length_max <= _ONE_BYTE_LENGTH_MAX else 2, 0


def _blob(column: Column) -> _Shape | None:
    return (lay.STRING, column.metadata, 0) if 1 <= column.metadata <= 4 else None


def _decimal(column: Column) -> _Shape | None:
    precision, scale = column.precision, column.scale
    if not 0 < precision <= 65 or scale > min(precision, 30):
        return None
    return lay.DECIMAL, decimal_length(precision, scale), precision << 8 | scale


def _with_fraction(kind: int, whole: int) -> Callable[[Column], _Shape | None]:
    def shape(column: Column) -> _Shape | None:
        digits = column.fraction_digits
        return (kind, whole + (digits + 1) // 2, digits) if digits <= _DIGITS_MAX else None

    return shape


def _bit(column: Column) -> _Shape | None:
    return (lay.BITS, (column.bits + 7) // 8, column.bits) if 1 <= column.bits <= 64 else None


def _set(column: Column) -> _Shape | None:
    size = column.pack_length
    return (lay.BITS, size, 8 * size) if 1 <= size <= 8 else None


def _enum(column: Column) -> _Shape | None:
    size = column.pack_length
    return (lay.CHOICE, size, 0) if 1 <= size <= 2 else None


_SHAPES: Final[Mapping[ColumnType, Callable[[Column], _Shape | None]]] = MappingProxyType(
    {
        ColumnType.TINY: _integer(1),
        ColumnType.SHORT: _integer(2),
        ColumnType.INT24: _integer(3),
        ColumnType.LONG: _integer(4),
        ColumnType.LONGLONG: _integer(8),
        ColumnType.FLOAT: _fixed(lay.FLOAT, 4),
        ColumnType.DOUBLE: _fixed(lay.DOUBLE, 8),
        ColumnType.NEWDECIMAL: _decimal,
        ColumnType.BIT: _bit,
        ColumnType.YEAR: _fixed(lay.YEAR, 1),
        ColumnType.DATE: _fixed(lay.DATE, 3),
        ColumnType.NEWDATE: _fixed(lay.DATE, 3),
        ColumnType.TIME: _fixed(lay.OLD_TIME, 3),
        ColumnType.DATETIME: _fixed(lay.OLD_DATETIME, 8),
        ColumnType.TIMESTAMP: _fixed(lay.OLD_TIMESTAMP, 4),
        ColumnType.TIME2: _with_fraction(lay.TIME_OF_DAY, 3),
        ColumnType.DATETIME2: _with_fraction(lay.DATETIME, 5),
        ColumnType.TIMESTAMP2: _with_fraction(lay.TIMESTAMP, 4),
        ColumnType.ENUM: _enum,
        ColumnType.SET: _set,
        **dict.fromkeys(
            COUNTED_STRINGS,
            _string,
        ),
        **dict.fromkeys(
            COUNTED_BLOBS - {ColumnType.VECTOR, ColumnType.JSON},
            _blob,
        ),
    }
)
