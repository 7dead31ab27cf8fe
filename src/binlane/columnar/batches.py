"""Event groups → record batches, one table a batch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

import pyarrow as pa

from binlane.codec.control import FormatDescriptionEvent
from binlane.codec.event import Event
from binlane.codec.registry import OpaqueEvent
from binlane.codec.rows import RowsEvent, TableMapEvent
from binlane.codec.types import EventType, Flavor
from binlane.columnar.builder import (
    BatchBuilder,
    BuilderFactory,
    RowsSource,
    ScalarBatchBuilder,
)
from binlane.columnar.selection import Selection
from binlane.columnar.table_schema import INVALID_DATES, TableSchema, table_schema
from binlane.errors import CodecError, UnsupportedError
from binlane.grouping.event_group import EventGroup
from binlane.grouping.table_maps import TableMaps
from binlane.names import TableName

ROWS_MAX_DEFAULT: Final = 8192

# Rows that are there and cannot be read yet are an error, never left out.
_CARRIES_ROWS: Final = frozenset(
    {
        EventType.PRE_GA_WRITE_ROWS,
        EventType.PRE_GA_UPDATE_ROWS,
        EventType.PRE_GA_DELETE_ROWS,
        EventType.PARTIAL_UPDATE_ROWS,
        EventType.TRANSACTION_PAYLOAD,
        EventType.PARTIAL_ROW_DATA,
    }
)


class ChangeBatcher:
    """Collects the row changes of event groups, a batch for each table.

    The images of a table stay in log order; batches of several tables come as they fill up. A
    table whose schema changes gets a new batch.

    Args:
        selection: Which groups and tables.
        columns: Names of the tables' columns to keep, all if None.
        rows_max: Images a batch.
        new_builder: Makes the builder of one table's batches.
    """

    def __init__(
        self,
        *,
        selection: Selection | None = None,
        columns: Collection[str] | None = None,
        rows_max: int = ROWS_MAX_DEFAULT,
        new_builder: BuilderFactory = ScalarBatchBuilder,
    ) -> None:
        self._selection = selection or Selection()
        self._columns = columns
        self._rows_max = rows_max
        self._new_builder = new_builder
        self._flavor = Flavor.MARIADB
        self._schemas: dict[tuple[object, ...], TableSchema] = {}
        self._open: dict[TableName, tuple[TableSchema, BatchBuilder]] = {}

    def feed(self, group: EventGroup) -> Iterator[pa.RecordBatch]:
        """Take the next group; give the batches that it completes.

        A group that its log ends or begins anew within was rolled back: it gives nothing.

        Raises:
            CodecError: With file and position, if a row cannot be decoded.
        """
        if group.is_control:
            self._take_control(group.events[0], group.file)
            return
        if not group.is_complete or not self._selection.includes(group):
            return
        maps = TableMaps()
        gtid = None if group.gtid is None else str(group.gtid)
        for event in group.events:
            check_readable(event, group.file)
            table_map = maps.feed(event, file=group.file)
            if table_map is not None and isinstance(event.body, RowsEvent):
                source = RowsSource(
                    gtid=gtid,
                    timestamp=event.header.timestamp,
                    file=group.file,
                    position=event.position,
                )
                yield from self._add(table_map, event.body, source)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The batches that are not full, so that what is fed next stands in later ones."""
        for _, builder in self._open.values():
            yield from self._cut(builder)
        self._open.clear()

    def _take_control(self, event: Event, file: str) -> None:
        check_readable(event, file)
        if isinstance(event.body, FormatDescriptionEvent):
            self._flavor = event.body.format.flavor
            self._schemas.clear()

    def _add(
        self, table_map: TableMapEvent, body: RowsEvent, source: RowsSource
    ) -> Iterator[pa.RecordBatch]:
        name = TableName(table_map.database, table_map.table)
        if not self._selection.scope.includes(name):
            return
        try:
            schema = self._schema(table_map)
            current = self._open.get(name)
            if current is not None and not current[0].arrow.equals(
                schema.arrow, check_metadata=True
            ):
                yield from self._cut(current[1])
                current = None
            if current is None:
                current = self._open[name] = (schema, self._new_builder(schema))
            current[1].append(body, source)
        except CodecError as error:
            raise error.at(source.file, source.position) from None
        if current[1].rows >= self._rows_max:
            yield from self._cut(current[1])

    def _schema(self, table_map: TableMapEvent) -> TableSchema:
        """The schema of a table map, computed once for all maps that differ only in their id."""
        key = (
            table_map.database,
            table_map.table,
            table_map.column_types,
            table_map.metadata,
            table_map.null_bits,
            table_map.optional_metadata,
        )
        if key not in self._schemas:
            self._schemas[key] = table_schema(table_map, flavor=self._flavor, wanted=self._columns)
        return self._schemas[key]

    def _cut(self, builder: BatchBuilder) -> Iterator[pa.RecordBatch]:
        if builder.rows:
            batch = builder.finish()
            yield batch.slice(0, self._rows_max)
            metadata = {
                key: value for key, value in batch.schema.metadata.items() if key != INVALID_DATES
            }
            rest = batch.replace_schema_metadata(metadata)
            for offset in range(self._rows_max, batch.num_rows, self._rows_max):
                yield rest.slice(offset, self._rows_max)


def batches(
    groups: Iterable[EventGroup],
    *,
    selection: Selection | None = None,
    columns: Collection[str] | None = None,
    rows_max: int = ROWS_MAX_DEFAULT,
) -> Iterator[pa.RecordBatch]:
    """The row changes of event groups as record batches, one table a batch.

    Args:
        groups: In log order, control groups included.
        selection: Which groups and tables, all if None.
        columns: Names of the tables' columns to keep, all if None.
        rows_max: Images a batch.

    Yields:
        Batches of `CHANGE_COLUMNS` and the table's columns; an update gives two rows, first
        `update_before`, then `update_after`. Columns that an image lacks are NULL.

    Raises:
        CodecError: With file and position, if a row cannot be decoded.
    """
    batcher = ChangeBatcher(selection=selection, columns=columns, rows_max=rows_max)
    for group in groups:
        yield from batcher.feed(group)
    yield from batcher.finish()


def check_readable(event: Event, file: str) -> None:
    """Refuse an event whose rows cannot be read yet.

    Raises:
        UnsupportedError: With file and position.
    """
    if isinstance(event.body, OpaqueEvent) and event.header.type_code in _CARRIES_ROWS:
        raise UnsupportedError(
            f"{event.header.type_name} carries rows that this version cannot read",
            hint="turn off binlog_transaction_compression and PARTIAL_JSON on the source",
        ).at(file, event.position)
