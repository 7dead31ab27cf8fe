"""Event groups → record batches, one table a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from binlane.codec.control import FormatDescriptionEvent
from binlane.codec.event import Event
from binlane.codec.format import Format
from binlane.codec.rows import RowsEvent, TableMapEvent
from binlane.codec.types import Flavor
from binlane.columnar.builder import (
    BatchBuilder,
    BuilderFactory,
    RowsSource,
    ScalarBatchBuilder,
)
from binlane.columnar.selection import Selection
from binlane.columnar.table_schema import INVALID_DATES, TableSchema, table_schema
from binlane.errors import CodecError
from binlane.grouping.event_group import EventGroup
from binlane.grouping.inner import expanded_all
from binlane.grouping.table_maps import TableMaps
from binlane.names import TableName

if TYPE_CHECKING:
    from binlane.sql.catalog import SchemaCatalog

ROWS_MAX_DEFAULT: Final = 8192

BATCH_BYTES_MAX: Final = 16 << 20
"""Bytes of row images behind which a batch ends however few rows it has."""


class ChangeBatcher:
    """Collects the row changes of event groups, a batch for each table.

    The images of a table stay in log order; batches of several tables come as they fill up. A
    table whose schema changes gets a new batch.

    Args:
        selection: Which groups and tables.
        columns: Names of the tables' columns to keep, all if None.
        rows_max: Images a batch.
        new_builder: Makes the builder of one table's batches.
        catalog: Knows of columns what the log does not tell; logged DDL keeps it up to date.
    """

    def __init__(
        self,
        *,
        selection: Selection | None = None,
        columns: Collection[str] | None = None,
        rows_max: int = ROWS_MAX_DEFAULT,
        new_builder: BuilderFactory = ScalarBatchBuilder,
        catalog: SchemaCatalog | None = None,
    ) -> None:
        self._catalog = catalog
        self._selection = selection or Selection()
        self._columns = columns
        self._rows_max = rows_max
        self._new_builder = new_builder
        self._flavor = Flavor.MARIADB
        self._format: Format | None = None
        self._size_bytes: Counter[TableName] = Counter()
        self._schemas: dict[tuple[object, ...], TableSchema] = {}
        self._open: dict[TableName, tuple[TableSchema, BatchBuilder]] = {}

    def feed(self, group: EventGroup) -> Iterator[pa.RecordBatch]:
        """Take the next group; give the batches that it completes.

        A group that its log ends or begins anew within was rolled back: it gives nothing.

        Raises:
            CodecError: With file and position, if a row cannot be decoded.
        """
        if group.is_control:
            self._take_control(group.events[0])
            return
        if not group.is_complete or not self._selection.includes(group):
            self._learn(group)
            return
        maps = TableMaps()
        gtid = None if group.gtid is None else str(group.gtid)
        for event in expanded_all(group.events, file=group.file, format_=self._format):
            if self._catalog is not None:
                self._catalog.feed(event)
            table_map = maps.feed(event, file=group.file)
            if table_map is not None and isinstance(event.body, RowsEvent):
                source = RowsSource(
                    gtid=gtid,
                    timestamp=event.header.timestamp,
                    file=group.file,
                    position=event.position,
                )
                yield from self.add(table_map, event.body, source)

    def _learn(self, group: EventGroup) -> None:
        """Follow the DDL of a group that gives no rows."""
        if self._catalog is not None and group.is_complete:
            for event in group.events:
                self._catalog.feed(event)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The batches that are not full, so that what is fed next stands in later ones."""
        for _, builder in self._open.values():
            yield from self._cut(builder)
        self._open.clear()
        self._size_bytes.clear()

    def _take_control(self, event: Event) -> None:
        if isinstance(event.body, FormatDescriptionEvent):
            self.take_format(event.body.format)

    def take_format(self, format_: Format) -> None:
        """Go on in a file of this format."""
        self._format = format_
        self._flavor = format_.flavor
        self._schemas.clear()

    def add(
        self, table_map: TableMapEvent, body: RowsEvent, source: RowsSource
    ) -> Iterator[pa.RecordBatch]:
        """Take one rows event of a group that is wanted; give the batch that it completes.

        Raises:
            CodecError: With file and position, if a row cannot be decoded.
        """
        name = TableName(table_map.database, table_map.table)
        if not self._selection.scope.includes(name):
            return
        try:
            schema = self.schema(table_map)
            current = self._open.get(name)
            if current is not None and not current[0].arrow.equals(
                schema.arrow, check_metadata=True
            ):
                yield from self._cut(current[1])
                current = None
                self._size_bytes[name] = 0
            if current is None:
                current = self._open[name] = (schema, self._new_builder(schema))
            current[1].append(body, source)
        except CodecError as error:
            raise error.at(source.file, source.position) from None
        self._size_bytes[name] += len(body.images)
        if current[1].rows >= self._rows_max or self._size_bytes[name] >= BATCH_BYTES_MAX:
            self._size_bytes[name] = 0
            yield from self._cut(current[1])

    def schema(self, table_map: TableMapEvent) -> TableSchema:
        """The schema of a table map, computed once for all maps that differ only in their id.

        Raises:
            CodecError: If the table map is malformed.
            ConfigError: If a column has the name of a change column.
        """
        columns = None
        if self._catalog is not None:
            columns = self._catalog.columns(table_map, flavor=self._flavor)
        key = (
            table_map.database,
            table_map.table,
            table_map.column_types,
            table_map.metadata,
            table_map.null_bits,
            table_map.optional_metadata,
            columns,
        )
        if key not in self._schemas:
            self._schemas[key] = table_schema(
                table_map, flavor=self._flavor, wanted=self._columns, columns=columns
            )
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
    catalog: SchemaCatalog | None = None,
) -> Iterator[pa.RecordBatch]:
    """The row changes of event groups as record batches, one table a batch.

    Args:
        groups: In log order, control groups included.
        selection: Which groups and tables, all if None.
        columns: Names of the tables' columns to keep, all if None.
        rows_max: Images a batch.
        catalog: Knows of columns what the log does not tell.

    Yields:
        Batches of `CHANGE_COLUMNS` and the table's columns; an update gives two rows, first
        `update_before`, then `update_after`. Columns that an image lacks are NULL.

    Raises:
        CodecError: With file and position, if a row cannot be decoded; behind all rows before it.
    """
    batcher = ChangeBatcher(
        selection=selection, columns=columns, rows_max=rows_max, catalog=catalog
    )
    try:
        for group in groups:
            yield from batcher.feed(group)
    except CodecError:
        yield from batcher.finish()
        raise
    yield from batcher.finish()
