"""The Arrow schema of a batch of one table's row images."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple

import pyarrow as pa

from binlane.errors import ConfigError
from binlane.log.codec.columns import Column
from binlane.log.codec.rows import TableMapEvent
from binlane.log.codec.table_metadata import primary_key, table_columns
from binlane.log.codec.types import ColumnType, Flavor
from binlane.names import TableName
from binlane.tables.columnar.arrow_types import arrow_type
from binlane.tables.columnar.selection import Selection

_ROW_HASH: Final = re.compile(r"DB_ROW_HASH_\d+\Z")
_MOMENT: Final = pa.timestamp("us", tz="UTC")
CHANGE_TYPES: Final[Mapping[str, pa.DataType]] = MappingProxyType(
    {
        "_op": pa.string(),
        "_gtid": pa.string(),
        "_timestamp": _MOMENT,
        "_ts": _MOMENT,
        "_file": pa.string(),
        "_position": pa.int64(),
        "_pos": pa.int64(),
        "_row": pa.int32(),
        "_txn_order": pa.int64(),
        "_server_id": pa.int64(),
        "_seq": pa.int64(),
    }
)
"""Columns that can stand before a table's own columns, and their types.

`_op` is one row image's operation (`insert`, `update_before`, `update_after`, `delete`), `_gtid`
that of its transaction. `_timestamp` is the time of its event, in whole seconds, `_ts` that of the
commit in microseconds where the log has it, else the same. `_file` and `_position` (short: `_pos`)
are the event's place, `_row` is the number of the change within the event, from 0; both images of
an update have the same number. `_txn_order` is the number of the image among those of its
transaction, from 0; tables that are not wanted do not count. `_server_id` is that of the event,
`_seq` a number that grows with the log.

Rows of an XA transaction have GTID, time and place of its XA COMMIT, and are numbered through.
"""

CHANGE_NAMES: Final = ("_op", "_gtid", "_timestamp", "_file", "_position", "_row")
"""Columns that a batch begins with by default."""

SEQUENCE_COLUMN: Final = "_seq"
SEQUENCE_FILE_BITS: Final = 40
"""`_seq` is the number of the file, shifted by so many bits, and the position in it."""


def change_schema(names: Iterable[str]) -> pa.Schema:
    """The fields of change columns."""
    return pa.schema([(name, CHANGE_TYPES[name]) for name in names])


CHANGE_COLUMNS: Final = change_schema(CHANGE_NAMES)

JSON_COLUMN: Final = "image"
"""Name of the column behind the change columns where images are JSON."""

TABLE: Final = b"table"
DATABASE: Final = b"database"
PRIMARY_KEY: Final = b"primary_key"
ABSENT: Final = b"absent"
INVALID_DATES: Final = b"invalid_dates"
CLASH: Final = b"clash"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """The options of a reader of rows.

    Attributes:
        selection: The tables and event groups that are wanted.
        columns: Names of the tables' columns to keep, all if None.
        rows_max: Row images of a batch at most; None for as many as serve well.
        has_statements: Whether statements and troubles come too, in log order: a batch ends before
            each. Only statements that may concern tables come. Columns with the names of change
            columns, which are an error else, are then left out, see `table_schema`.
        change_columns: The change columns that batches begin with, of `CHANGE_TYPES`.
        as_json: Whether images are JSON objects, in the one column `JSON_COLUMN`.
        may_clash: Whether tables may have columns of those names: the reader goes by the columns'
            places.
    """

    selection: Selection = field(default_factory=Selection)
    columns: frozenset[str] | None = None
    rows_max: int | None = None
    has_statements: bool = False
    change_columns: tuple[str, ...] = CHANGE_NAMES
    as_json: bool = False
    may_clash: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSchema:
    """The columns of a table as one or more table maps describe them.

    Attributes:
        columns: All of the table's columns, in table order.
        chosen: Indexes of the columns that batches hold.
        change_names: The change columns that batches begin with.
        as_json: Whether images are JSON objects, in one column.
        arrow: Schema of the batches, change columns first; its metadata has `table` (such as
            `shop.orders`), `database`, and `primary_key` (JSON, the names in key order) where the
            log tells it.
    """

    name: TableName
    columns: tuple[Column, ...]
    chosen: tuple[int, ...]
    change_names: tuple[str, ...]
    arrow: pa.Schema
    as_json: bool = False

    @property
    def own(self) -> list[pa.Field[pa.DataType]]:
        """The fields of the table's own columns."""
        return list(self.arrow)[len(self.change_names) :]


def column_name(column: Column) -> str:
    """The name of a column, or `@1`, `@2` … where the log has none."""
    return f"@{column.index + 1}" if column.name is None else _text(column.name)


def _text(name: str) -> str:
    r"""A name in valid Unicode: bytes that are none, which only damage makes, as `\xNN`."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def arrow_schema(columns: Sequence[Column]) -> pa.Schema:
    """Names and types of a table's own columns; every one can be NULL, since images may lack it."""
    return pa.schema([pa.field(column_name(column), arrow_type(column)) for column in columns])


_ALL: Final = ReadOptions()


def table_schema(
    table_map: TableMapEvent,
    *,
    flavor: Flavor,
    columns: tuple[Column, ...] | None = None,
    options: ReadOptions = _ALL,
) -> TableSchema:
    """The schema that a table map tells.

    Columns with the name of a change column are an error, but where statements come between rows:
    there they are left out, and named in the metadata (`clash`). Columns that no SELECT can name
    come only where they are asked for.

    Args:
        table_map: The table map of the table.
        flavor: The server that wrote the table map.
        columns: All of the table's columns, if somebody knows more of them than the table map.
        options: The reader's options; columns to keep that the table lacks are ignored.

    Raises:
        CodecError: If the table map is malformed.
        ConfigError: If a column has the name of a change column.
    """
    wanted, change_names = options.columns, options.change_columns
    name = table_map.name
    if columns is None:
        columns = table_columns(table_map, flavor=flavor)
    hidden = _row_hashes(columns, flavor)
    chosen = tuple(
        index
        for index, column in enumerate(columns)
        if (index not in hidden if wanted is None else column_name(column) in wanted)
    )
    reserved = {*change_names, SEQUENCE_COLUMN}
    names = [column_name(columns[index]) for index in chosen]
    clashes = [column for column in names if column in reserved]
    if options.has_statements:
        chosen = tuple(index for index in chosen if column_name(columns[index]) not in reserved)
    own = arrow_schema([columns[index] for index in chosen])
    if options.as_json:
        own = pa.schema([pa.field(JSON_COLUMN, pa.string())])
    is_allowed = options.has_statements or options.may_clash or options.as_json
    for clash in () if is_allowed else clashes:
        raise ConfigError(
            f"{name} has a column {clash}, which is the name of one that binlane adds",
            key="columns",
            hint=f"choose the columns of {name.plain} without it",
        )
    metadata = {TABLE: _text(name.plain).encode(), DATABASE: _text(name.database).encode()}
    if clashes:
        metadata[CLASH] = clashes[0].encode()
    key = [column_name(columns[part.index]) for part in primary_key(table_map)]
    if key:
        metadata[PRIMARY_KEY] = json.dumps(key, ensure_ascii=False).encode()
    return TableSchema(
        name=name,
        columns=columns,
        chosen=chosen,
        change_names=change_names,
        as_json=options.as_json,
        arrow=pa.schema([*change_schema(change_names), *own]).with_metadata(metadata),
    )


def _row_hashes(columns: Sequence[Column], flavor: Flavor) -> range:
    """Indexes of the columns that MariaDB adds behind all others for unique keys over long ones."""
    count = 0
    if flavor is Flavor.MARIADB:
        for column in reversed(columns):
            if column.type is not ColumnType.LONGLONG or not _ROW_HASH.match(column_name(column)):
                break
            count += 1
    return range(len(columns) - count, len(columns))


def clash_of(schema: pa.Schema) -> str | None:
    """The column that was left out since it has the name of a change column; None if none was."""
    found = schema.metadata.get(CLASH)
    return None if found is None else found.decode()


def table_of(schema: pa.Schema) -> TableName:
    """The table that a batch is of."""
    database = schema.metadata[DATABASE].decode()
    return TableName(database, schema.metadata[TABLE].decode()[len(database) + 1 :])


def primary_key_of(schema: pa.Schema) -> list[str]:
    """Names of the primary key's columns in key order; empty if the log does not tell it."""
    return list(json.loads(schema.metadata.get(PRIMARY_KEY, b"[]")))


class AbsentColumns(NamedTuple):
    """Names of the columns that some images of a batch lack; they are NULL there.

    Attributes:
        before: Names of the columns that before images lack.
        after: Names of the columns that after images lack, those of inserts too.
    """

    before: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()

    def __or__(self, other: AbsentColumns) -> AbsentColumns:
        return AbsentColumns(self.before | other.before, self.after | other.after)

    def without(self, names: Collection[str]) -> AbsentColumns:
        """The absent columns without those that are named."""
        return AbsentColumns(self.before.difference(names), self.after.difference(names))

    def metadata(self) -> dict[bytes, bytes]:
        """The absent columns as a schema's metadata has them; empty if there are none."""
        if not (self.before or self.after):
            return {}
        return {ABSENT: json.dumps(list(map(sorted, self)), ensure_ascii=False).encode()}


def absent_columns(schema: pa.Schema) -> AbsentColumns:
    """The columns that images of a batch lack."""
    before, after = json.loads((schema.metadata or {}).get(ABSENT, b"[[], []]"))
    return AbsentColumns(frozenset(before), frozenset(after))


def lacking_columns(schema: pa.Schema) -> frozenset[str]:
    """The columns without which images cannot be applied; a before image serves with its key alone."""
    absent, key = absent_columns(schema), primary_key_of(schema)
    return absent.after | (absent.before.intersection(key) if key else absent.before)


def has_full_images(schema: pa.Schema) -> bool:
    """True if images suffice to apply them: after images are whole, before images have at least the key."""
    return not lacking_columns(schema)


def invalid_dates_of(schema: pa.Schema) -> int:
    """Return how many zero or partial dates of a batch became NULL."""
    return int(schema.metadata.get(INVALID_DATES, b"0"))
