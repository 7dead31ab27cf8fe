"""The layout `changes`: one row a row change of any table, its images as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from binlane.codec.columns import Column, RowChange, decode_rows
from binlane.codec.control import FormatDescriptionEvent
from binlane.codec.event import Event
from binlane.codec.format import Format
from binlane.codec.json_values import json_row
from binlane.codec.rows import RowsEvent, TableMapEvent
from binlane.codec.table_metadata import table_columns
from binlane.codec.types import Flavor
from binlane.errors import CodecError
from binlane.grouping.event_group import EventGroup
from binlane.grouping.table_maps import rows_with_tables
from binlane.names import TableName
from binlane.ranges.statements import Statement, statements
from binlane.spark.change_columns import change_fields
from binlane.spark.options import Include, SourceOptions
from binlane.sql.effects import StatementKind

_MICROSECONDS: Final = 1_000_000


def change_log_schema(options: SourceOptions) -> pa.Schema:
    """The columns of the layout; `statement` only where DDL is included."""
    names = [f"{options.prefix}{name}" for name in ("database", "table")]
    fields: list[pa.Field[Any]] = [pa.field(name, pa.string()) for name in names]
    fields += change_fields(options.prefix, options.change_columns)
    fields += [pa.field(name, pa.string()) for name in ("before", "after")]
    if Include.DDL in options.include:
        fields.append(pa.field("statement", pa.string()))
    return pa.schema(fields)


class ChangeLog:
    """Renders event groups in the layout `changes`."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._schema = change_log_schema(options)
        self._columns: list[list[object]] = [[] for _ in self._schema]
        self._flavor = Flavor.MARIADB
        self._format: Format | None = None

    def feed(self, group: EventGroup) -> Iterator[pa.RecordBatch]:
        """Take the next group; give the batches that it fills.

        Raises:
            CodecError: With file and position, if a row cannot be decoded.
        """
        for event in group.events:
            if isinstance(event.body, FormatDescriptionEvent):
                self._format = event.body.format
                self._flavor = self._format.flavor
        if group.is_control or not group.is_complete or not self._options.selection.includes(group):
            return
        if Include.ROWS in self._options.include:
            for event, body, table_map in rows_with_tables(
                group.events, file=group.file, format_=self._format
            ):
                self._add_rows(event, body, table_map, group)
        if Include.DDL in self._options.include:
            for statement in statements(group):
                self._add_statement(statement)
        if len(self._columns[0]) >= self._options.rows_per_batch:
            yield from self.finish()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The rows that no batch has held yet."""
        if self._columns[0]:
            arrays = [
                pa.array(values, field.type)
                for values, field in zip(self._columns, self._schema, strict=True)
            ]
            self._columns = [[] for _ in self._schema]
            yield pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _add_rows(
        self, event: Event, body: RowsEvent, table_map: TableMapEvent, group: EventGroup
    ) -> None:
        name = TableName(table_map.database, table_map.table)
        if not self._options.selection.scope.includes(name):
            return
        try:
            columns = table_columns(table_map, flavor=self._flavor)
            for number, change in enumerate(decode_rows(body, columns)):
                self._add(
                    name.database,
                    name.table,
                    _kind(change),
                    None if group.gtid is None else str(group.gtid),
                    event.header.timestamp * _MICROSECONDS,
                    group.file,
                    event.position,
                    number,
                    *(_json(columns, image) for image in change),
                )
        except CodecError as error:
            raise error.at(group.file, event.position) from None

    def _add_statement(self, statement: Statement) -> None:
        effects = statement.effects()
        scope = self._options.selection.scope
        if not effects.kind.is_ddl or not (
            scope.is_unscoped
            or any(scope.includes(table) for table in effects.writes)
            or any(scope.includes_database(database) for database in effects.databases)
        ):
            return
        (table,) = effects.writes if len(effects.writes) == 1 else (None,)
        self._add(
            table.database if table else statement.database,
            table.table if table else None,
            "truncate" if effects.kind is StatementKind.TRUNCATE_TABLE else "ddl",
            statement.gtid,
            statement.timestamp * _MICROSECONDS,
            statement.file,
            statement.position,
            0,
            None,
            None,
            statement.text,
        )

    def _add(self, *values: object) -> None:
        for index, column in enumerate(self._columns):
            column.append(values[index] if index < len(values) else None)


def _kind(change: RowChange) -> str:
    before, after = change
    if before is None:
        return "insert"
    return "delete" if after is None else "update"


def _json(columns: tuple[Column, ...], image: tuple[object, ...] | None) -> str | None:
    if image is None:
        return None
    return json.dumps(json_row(columns, image), ensure_ascii=False, default=str)
