"""A table as its server's log describes it: the TABLE_MAP, and what is selected for each column."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, Self

from binlane.client.rows.source_table import SourceTable, source_table, without_counter
from binlane.client.session import ServerSession
from binlane.errors import BinlaneError, PeerError, UnsupportedError
from binlane.log.codec.charsets import BINARY_COLLATION
from binlane.log.codec.columns import Column
from binlane.log.codec.format import flavor_of
from binlane.log.codec.json_making import json_expression
from binlane.log.codec.logical_types import LENGTHS
from binlane.log.codec.optional_metadata import PrimaryKeyPart
from binlane.log.codec.packets.results import ColumnDefinition
from binlane.log.codec.row_count import value_widths
from binlane.log.codec.row_making import Cell, CellForm
from binlane.log.codec.rows import TableMapEvent
from binlane.log.codec.table_map_making import GENERATED_KEY, make_table_map, string_metadata
from binlane.log.codec.types import ColumnType, Flavor
from binlane.names import TableName, quote

GONE: Final = frozenset({1146, 1049, 1054, 1412})
"""Errors of a server whose table is gone, or another since a transaction began."""
DENIED: Final = frozenset({1142, 1143, 1044})
_UNKNOWN_VARIABLE: Final = 1193
_OLD: Final = re.compile(
    r"^\s+`((?:[^`]|``)+)` (?:time|datetime|timestamp)(\(\d\))?"
    r" /\* (?:mariadb-5\.3|5\.5 binary format) \*/",
    re.MULTILINE,
)
_PREFIX: Final = re.compile(r"\((\d+)\)")
_GENERATED_KEY_MARK: Final = (
    "`my_row_id` bigint unsigned NOT NULL AUTO_INCREMENT /*!80023 INVISIBLE"
)
_NOT_NULL: Final = 1
_UNSIGNED: Final = 0x20
_PACKED_LENGTHS: Final = ((0xFF, 1), (0xFFFF, 2), (0xFFFFFF, 3))
_ONE_BYTE_LENGTH_MAX: Final = 255
_OLD_TYPES: Final[Mapping[ColumnType, ColumnType]] = MappingProxyType(
    {
        ColumnType.TIME2: ColumnType.TIME,
        ColumnType.DATETIME2: ColumnType.DATETIME,
        ColumnType.TIMESTAMP2: ColumnType.TIMESTAMP,
    }
)
_SAME_WIDTH: Final[Mapping[ColumnType, ColumnType]] = MappingProxyType(
    {
        ColumnType.TIME: ColumnType.INT24,
        ColumnType.DATETIME: ColumnType.LONGLONG,
        ColumnType.TIMESTAMP: ColumnType.LONG,
    }
)
_COMPRESSED: Final[Mapping[ColumnType, ColumnType]] = MappingProxyType(
    {
        ColumnType.VARCHAR: ColumnType.VARCHAR_COMPRESSED,
        ColumnType.BLOB: ColumnType.BLOB_COMPRESSED,
    }
)
_COMPRESSED_MARK: Final = re.compile(
    r"^\s+`((?:[^`]|``)+)` [^\n]*?/\*M?!\d+ COMPRESSED(?:=\w+)?\*/", re.MULTILINE
)
_FIXED: Final[Mapping[ColumnType, int]] = MappingProxyType(
    {
        ColumnType.TINY: 1,
        ColumnType.SHORT: 2,
        ColumnType.INT24: 3,
        ColumnType.LONG: 4,
        ColumnType.LONGLONG: 8,
        ColumnType.FLOAT: 4,
        ColumnType.DOUBLE: 8,
    }
)
_SENT_WIDTHS: Final[Mapping[int, int]] = MappingProxyType(
    {
        ColumnType.TINY: 1,
        ColumnType.SHORT: 2,
        ColumnType.YEAR: 2,
        ColumnType.INT24: 4,
        ColumnType.LONG: 4,
        ColumnType.LONGLONG: 8,
        ColumnType.FLOAT: 4,
        ColumnType.DOUBLE: 8,
    }
)
"""Bytes of a number in the result of a prepared statement, by the type of its head."""
_TIMES: Final[Mapping[ColumnType, CellForm]] = MappingProxyType(
    {
        ColumnType.DATE: CellForm.DATE,
        ColumnType.TIME2: CellForm.TIME,
        ColumnType.DATETIME2: CellForm.DATETIME,
        ColumnType.TIMESTAMP2: CellForm.TIMESTAMP,
        ColumnType.TIME: CellForm.OLD_TIME,
        ColumnType.DATETIME: CellForm.OLD_DATETIME,
        ColumnType.TIMESTAMP: CellForm.OLD_TIMESTAMP,
    }
)
_MEMBERS: Final = frozenset({ColumnType.ENUM, ColumnType.SET})
_GEOMETRIES: Final = (
    *("GEOMETRY", "POINT", "LINESTRING", "POLYGON"),
    *("MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION"),
)
_GEOMETRY_ALIAS: Final = {"GEOMCOLLECTION": "GEOMETRYCOLLECTION"}


class TableChangedError(BinlaneError):
    """A table is no longer what it was when its reading began."""


Head = tuple[int, int, int, int, int]
"""Type, collation, length, flags and decimals of a column in a result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedTable:
    """A table of a server whose rows can be had as its log has them.

    Attributes:
        source: Its definition as the server prints it.
        flavor: The kind of the server.
        heads: The columns as the server describes them in a result.
        row_metadata: `NO_LOG`, `MINIMAL` or `FULL`: what a TABLE_MAP tells beside the types.
        columns: The columns as the log has them, with their lengths and collations.
        expressions: The expression to select for each column.
    """

    source: SourceTable
    flavor: Flavor
    heads: tuple[Head, ...]
    row_metadata: str
    columns: tuple[Column, ...]
    expressions: tuple[str, ...]

    @property
    def name(self) -> TableName:
        """The table's name."""
        return self.source.name

    @property
    def select(self) -> str:
        """The statement that gives all rows, without conditions."""
        return f"SELECT {', '.join(self.expressions)} FROM {self.name}"  # noqa: S608  # quoted

    @property
    def key_indexes(self) -> tuple[int, ...]:
        """Numbers of the key's columns, in the order of the key; empty without a key."""
        places = {(column.name or "").lower(): column.index for column in self.columns}
        return tuple(places[part.name.lower()] for part in self.source.key)

    @property
    def widths(self) -> tuple[int, ...]:
        """The size of each column's values in images; negative: the size of their length field."""
        found = value_widths(
            [
                replace(column, type=_SAME_WIDTH.get(column.type, column.type))
                for column in self.columns
            ]
        )
        assert found is not None, "all types of such a table have widths"
        return found

    def table_map(self, table_id: int) -> TableMapEvent:
        """The TABLE_MAP that the server's log has before rows of the table."""
        made = make_table_map(
            self.name,
            self.columns,
            self._key_parts(),
            table_id=table_id,
            flavor=self.flavor,
            row_metadata=self.row_metadata,
        )
        if _GENERATED_KEY_MARK in self.source.create:
            return replace(made, flags=made.flags | GENERATED_KEY)
        return made

    def cells(self, heads: Sequence[ColumnDefinition]) -> tuple[Cell, ...]:
        """The forms of the values in a result of `select`.

        Raises:
            TableChangedError: If the columns of the result are not those of the table.
        """
        if len(heads) != len(self.columns):
            raise TableChangedError("it has another number of columns than when its reading began")
        return tuple(_cell(column, head) for column, head in zip(self.columns, heads, strict=True))

    def encode(self) -> dict[str, Any]:
        """The table as JSON holds it."""
        return {
            "name": [self.name.database, self.name.table],
            "create": self.source.create,
            "flavor": self.flavor.value,
            "heads": [list(head) for head in self.heads],
            "row_metadata": self.row_metadata,
        }

    @classmethod
    def decode(cls, value: dict[str, Any]) -> Self:
        """Return the table that `encode` wrote.

        Raises:
            UnsupportedError: If its definition is not understood any more.
        """
        flavor = Flavor(value["flavor"])
        source = source_table(TableName(*value["name"]), value["create"], flavor=flavor)
        heads: tuple[Head, ...] = tuple(tuple(head) for head in value["heads"])
        return cls.of(source, heads, flavor=flavor, row_metadata=value["row_metadata"])

    @classmethod
    def of(
        cls, source: SourceTable, heads: tuple[Head, ...], *, flavor: Flavor, row_metadata: str
    ) -> Self:
        """A table of its definition, and the heads of its columns.

        Raises:
            UnsupportedError: If the rows cannot be had as the log has them.
        """
        old = {
            name.replace("``", "`"): bool(digits) for name, digits in _OLD.findall(source.create)
        }
        packed = {name.replace("``", "`") for name in _COMPRESSED_MARK.findall(source.create)}
        columns, expressions = [], []
        for column, own, head in zip(source.columns, source.defined, heads, strict=True):
            name = column.name or ""
            if old.get(name):
                raise UnsupportedError(
                    f"column {quote(name)} has fractions in the format of MariaDB 5.3, which cannot"
                    " be written",
                    hint=f"ALTER TABLE {source.name} FORCE with mysql56_temporal_format=ON",
                )
            kind = column.type
            if name in old:
                kind = _OLD_TYPES.get(kind, kind)
            if name in packed:
                kind = _COMPRESSED.get(kind, kind)
            found = _described(replace(column, type=kind), head)
            if kind is ColumnType.GEOMETRY:
                number = _GEOMETRIES.index(_GEOMETRY_ALIAS.get(own.type_name, own.type_name))
                found = replace(found, geometry_type=number)
            if kind is ColumnType.VECTOR:
                found = replace(found, dimensions=head[2] // 4)
            columns.append(found)
            expressions.append(_expression(found, quote(name)))
        return cls(
            source=source,
            flavor=flavor,
            heads=heads,
            row_metadata=row_metadata,
            columns=tuple(columns),
            expressions=tuple(expressions),
        )

    def _key_parts(self) -> tuple[PrimaryKeyPart, ...]:
        indexes = self.key_indexes
        prefixes = (_PREFIX.search(part) for part in self.source.key_parts)
        lengths = [int(match[1]) if match else 0 for match in prefixes]
        return tuple(
            PrimaryKeyPart(index=index, prefix_length=length)
            for index, length in zip(indexes, lengths, strict=True)
        )


def read_logged_table(session: ServerSession, name: TableName) -> LoggedTable:
    """Ask a server for a table's definition.

    Args:
        session: A session that `set_up` made ready.
        name: The name of a base table.

    Raises:
        UnsupportedError: If the table's rows cannot be had as the log has them; the message names
            the column, the hint says what to do.
        TableChangedError: If there is no such table, or it changes just now.
        PeerError: If the server goes away.
    """
    flavor = flavor_of(session.version)
    try:
        create = shown_definition(session, name)
        source = source_table(name, create, flavor=flavor)
        columns = ", ".join(quote(column.name or "") for column in source.columns)
        statement = f"SELECT {columns} FROM {name} LIMIT 0"  # noqa: S608  # quoted names
        heads: tuple[Head, ...] = ()
        for found, _ in session.stream_binary(statement):
            heads = tuple(
                (head.type_code, head.character_set, head.length, head.flags, head.decimals)
                for head in found
            )
        table = LoggedTable.of(source, heads, flavor=flavor, row_metadata=_row_metadata(session))
        check_definition(session, name, source.create)
    except PeerError as error:
        raise trouble_with(name, error) from None
    return table


def shown_definition(session: ServerSession, name: TableName) -> str:
    """SHOW CREATE TABLE of a table.

    Raises:
        PeerError: If the server refuses it, or goes away.
        UnsupportedError: If it is a view.
    """
    shown = session.ask(f"SHOW CREATE TABLE {name}")
    if len(shown[0]) != 2:
        raise UnsupportedError("it is a view", hint="name the tables that it reads")
    return shown[0][1] or ""


def check_definition(session: ServerSession, name: TableName, create: str) -> None:
    """See that a table is what it was.

    Args:
        session: A session that `set_up` made ready.
        name: The name of the table.
        create: Its definition then, without the counter.

    Raises:
        TableChangedError: If it is not.
        PeerError: If the server refuses to tell, or goes away.
    """
    try:
        shown = shown_definition(session, name)
    except UnsupportedError:
        shown = ""
    if without_counter(shown) != create:
        raise TableChangedError("its definition changed while it was read")


def trouble_with(name: TableName, error: PeerError) -> BinlaneError:
    """The error of a table that a server's refusal means; itself if it concerns not the table alone."""
    if error.errno in GONE:
        return TableChangedError(error.message)
    if error.errno in DENIED:
        return UnsupportedError(
            "the account may not read it", hint=f"GRANT SELECT ON {name} TO the account"
        )
    return error


def _row_metadata(session: ServerSession) -> str:
    try:
        ((value,),) = session.ask("SELECT @@GLOBAL.binlog_row_metadata")
    except PeerError as error:
        if error.errno != _UNKNOWN_VARIABLE:
            raise
        return "NO_LOG"
    return value or "NO_LOG"


def _described(column: Column, head: Head) -> Column:
    """A column with what the head of a result says of it."""
    _, collation_id, length, flags, _ = head
    metadata = column.metadata
    if column.logical is not None and column.logical in LENGTHS:
        metadata, collation_id = string_metadata(LENGTHS[column.logical]), BINARY_COLLATION
    elif column.type is ColumnType.STRING:
        metadata = string_metadata(length)
    elif column.type in {ColumnType.VARCHAR, ColumnType.VARCHAR_COMPRESSED}:
        metadata = length
    elif column.type in {ColumnType.BLOB, ColumnType.BLOB_COMPRESSED}:
        metadata = next((size for room, size in _PACKED_LENGTHS if length <= room), 4)
    elif column.type in {ColumnType.GEOMETRY, ColumnType.JSON, ColumnType.VECTOR, ColumnType.FLOAT}:
        metadata = 4
    elif column.type is ColumnType.DOUBLE:
        metadata = 8
    elif column.type is ColumnType.ENUM:
        metadata = column.type << 8 | (1 if len(column.members or ()) <= 255 else 2)
    elif column.type is ColumnType.SET:
        size = (len(column.members or ()) + 7) // 8
        metadata = column.type << 8 | (8 if size > 4 else size)
    elif column.type in _OLD_TYPES.values():
        metadata = 0
    return replace(
        column,
        metadata=metadata,
        collation_id=collation_id,
        is_nullable=not flags & _NOT_NULL,
        is_unsigned=bool(flags & _UNSIGNED),
    )


def _expression(column: Column, name: str) -> str:
    """The expression whose value is the column's, and no text for people."""
    if column.type in _MEMBERS:
        return f"CAST({name} AS UNSIGNED)"
    if column.logical is not None and column.logical in LENGTHS:
        return f"CAST({name} AS BINARY({LENGTHS[column.logical]}))"
    if column.type is ColumnType.JSON:
        return json_expression(name)
    return name


def _cell(column: Column, head: ColumnDefinition) -> Cell:
    kind = column.type
    if kind in _FIXED:
        return Cell(CellForm.WHOLE, _width(column, head), _FIXED[kind])
    if kind in _MEMBERS:
        return Cell(CellForm.WHOLE, _width(column, head), column.pack_length)
    if kind is ColumnType.YEAR:
        return Cell(CellForm.YEAR, _width(column, head))
    if kind in _TIMES:
        return Cell(_TIMES[kind], 0, 0, column.fraction_digits)
    make = _CELLS.get(kind)
    if make is None:
        raise UnsupportedError(f"column {quote(column.name or '')} is of type {kind.name}")
    return make(column)


def _counted(form: CellForm) -> Callable[[Column], Cell]:
    return lambda column: Cell(form, 0, column.metadata)


def _text(form: CellForm) -> Callable[[Column], Cell]:
    return lambda column: Cell(form, 0, 1 if column.length_max <= _ONE_BYTE_LENGTH_MAX else 2)


def _char(column: Column) -> Cell:
    is_bytes = column.collation_id == BINARY_COLLATION
    return _text(CellForm.PADDED if is_bytes else CellForm.COUNTED)(column)


_CELLS: Final[Mapping[ColumnType, Callable[[Column], Cell]]] = MappingProxyType(
    {
        ColumnType.NEWDECIMAL: lambda column: Cell(
            CellForm.DECIMAL, 0, column.precision, column.scale
        ),
        ColumnType.BIT: lambda column: Cell(CellForm.BITS, 0, (column.bits + 7) // 8),
        ColumnType.STRING: _char,
        ColumnType.VARCHAR: _text(CellForm.COUNTED),
        ColumnType.VARCHAR_COMPRESSED: _text(CellForm.COMPRESSED),
        ColumnType.BLOB_COMPRESSED: _counted(CellForm.COMPRESSED),
        ColumnType.JSON: _counted(CellForm.JSON),
        ColumnType.BLOB: _counted(CellForm.COUNTED),
        ColumnType.GEOMETRY: _counted(CellForm.COUNTED),
        ColumnType.VECTOR: _counted(CellForm.COUNTED),
    }
)


def _width(column: Column, head: ColumnDefinition) -> int:
    width = _SENT_WIDTHS.get(head.type_code)
    if width is None:
        raise TableChangedError(f"column {quote(column.name or '')} is of another type than it was")
    return width
