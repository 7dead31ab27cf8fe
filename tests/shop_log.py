"""A log of a server with full metadata, made event by event: tables of INT and VARCHAR columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from binlane.log.codec.body import Body
from binlane.log.codec.buffer import encode_packed_int
from binlane.log.codec.event import Event
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import (
    DeleteRowsV1Event,
    RowsEvent,
    TableMapEvent,
    UpdateRowsV1Event,
    WriteRowsV1Event,
)
from binlane.log.codec.transaction import GtidEvent, XidEvent
from binlane.log.codec.types import ColumnType, GtidFlag
from tests import build

Row = tuple[int | str | None, ...]
_UTF8MB4 = 45
_VARCHAR_BYTES = 200


@dataclass(frozen=True, slots=True)
class Table:
    """A table as one statement sees it.

    Attributes:
        name: In database `shop`.
        columns: Names; those that end with `_id` or are `id` are INT, others VARCHAR(50).
        key: Names of the primary key's columns.
        has_names: Whether the log has names and key, as with `binlog_row_metadata=FULL`.
    """

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...] = ("id",)
    has_names: bool = True

    def unnamed(self) -> Table:
        """The same table of a server that logs neither names nor key."""
        return replace(self, has_names=False)

    @property
    def types(self) -> list[ColumnType]:
        """Types of the columns."""
        return [
            ColumnType.LONG if name.endswith("id") else ColumnType.VARCHAR for name in self.columns
        ]

    def table_map(self) -> TableMapEvent:
        """What the server writes before the rows."""
        texts = sum(kind is ColumnType.VARCHAR for kind in self.types)
        names = b"".join(_counted(name.encode()) for name in self.columns)
        key = b"".join(encode_packed_int(self.columns.index(name)) for name in self.key)
        optional = [(1, b"\0")]
        optional += [(4, names)] if self.has_names else []
        optional += [(2, encode_packed_int(_UTF8MB4))] if texts else []
        optional += [(8, key)] if key and self.has_names else []
        return build.table_map(
            *self.types,
            metadata=_VARCHAR_BYTES.to_bytes(2, "little") * texts,
            optional_metadata=b"".join(bytes((code,)) + _counted(data) for code, data in optional),
            table=self.name,
        )

    def image(self, row: Row) -> bytes:
        """One row image."""
        nulls = sum(1 << index for index, value in enumerate(row) if value is None)
        parts = [
            value.to_bytes(4, "little", signed=True)
            if isinstance(value, int)
            else _counted(value.encode())
            for value in row
            if value is not None
        ]
        return nulls.to_bytes((len(row) + 7) // 8, "little") + b"".join(parts)


@dataclass(slots=True)
class ShopLog:
    """A binlog file in the making; each method adds one event group."""

    bodies: list[Event | Body] = field(default_factory=list)
    groups: int = 0

    def file(self, name: str = "shop.000001") -> tuple[str, bytes]:
        """The file, as fixtures have them."""
        return name, build.log(*self.bodies)

    def statement(self, text: str) -> None:
        """A DDL statement in database `shop`."""
        self._begin(GtidFlag.STANDALONE | GtidFlag.DDL)
        self.bodies.append(
            QueryEvent(
                thread_id=1,
                execution_time=0,
                error_code=0,
                status_vars=b"",
                database=b"shop",
                query=text.encode(),
            )
        )

    def insert(self, table: Table, *rows: Row) -> None:
        """One INSERT."""
        self.transaction((table, WriteRowsV1Event, rows))

    def delete(self, table: Table, *rows: Row) -> None:
        """One DELETE."""
        self.transaction((table, DeleteRowsV1Event, rows))

    def update(self, table: Table, *changes: tuple[Row, Row]) -> None:
        """One UPDATE: rows before and after."""
        flat = tuple(row for change in changes for row in change)
        self.transaction((table, UpdateRowsV1Event, flat))

    def transaction(self, *changes: tuple[Table, type[RowsEvent], Sequence[Row]]) -> None:
        """Several statements, committed together."""
        self._begin(GtidFlag.TRANSACTIONAL)
        for table, kind, rows in changes:
            images = b"".join(map(table.image, rows))
            self.bodies += [table.table_map(), build.rows(len(table.columns), images, kind=kind)]
        self.bodies.append(XidEvent(xid=self.groups))

    def _begin(self, flags: int) -> None:
        self.groups += 1
        self.bodies.append(GtidEvent(sequence=self.groups, domain_id=0, flags=flags))


def _counted(data: bytes) -> bytes:
    return encode_packed_int(len(data)) + data
