"""`spark.readStream.format("binlog")`: a log as it grows, in micro-batches of whole event groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from binlane.tables.ranges.log_range import Limits, Offset
from binlane.tables.spark.option_hints import hints_shown
from binlane.tables.spark.pruning import Pruning
from binlane.tables.spark.range_reader import cuts_of, new_planner, read_partition, tell
from binlane.tables.spark.schema_watch import SchemaWatch
from binlane.tables.spark.shapes import rendering
from binlane.tables.spark.source_options import Layout, OnSchemaChange, SourceOptions
from binlane.tables.spark.spark_versions import (
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
    arrow_schema_of,
    read_everything,
)


class BinlogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches; offsets are those of `ranges.plan`.

    A micro-batch of one table ends in front of a statement behind which the table's rows no longer
    fit the stream's columns; the next one is refused.
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._planner = new_planner(options)
        self._target: Offset | None = None
        self._watch: SchemaWatch | None = None
        if options.layout is Layout.TABLE and options.schema_change is not OnSchemaChange.IGNORE:
            assert options.table is not None, "the layout table comes with its name"
            own = rendering(options).own(arrow_schema_of(schema))
            self._watch = SchemaWatch(options.table, pa.schema(own), options.columns)

    @hints_shown()
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return the offset at which a query without a checkpoint begins."""
        return self._planner.begin(self._options.selection.start).json()

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """Return the options' limit of a micro-batch, as far as Spark has a word for it."""
        if self._options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(self._options.max_bytes_per_trigger)
        if self._options.max_rows_per_trigger is not None:
            return ReadMaxRows(self._options.max_rows_per_trigger)
        return read_everything()

    @hints_shown()
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember the present end of the log; the query ends there."""
        self._target = self._planner.end()

    @hints_shown()
    def latestOffset(  # noqa: N802
        self, start: dict[str, Any] | None = None, limit: Any = None
    ) -> dict[str, Any]:
        """The end of the next micro-batch: always of a whole event group.

        Spark 4.1 passes nothing and gets all that there is; there tasks find rows that do not fit.

        Raises:
            SchemaChangedError: If the rows there do not fit the stream's columns.
        """
        if start is None:
            return (self._target or self._planner.end()).json()
        begin = Offset.parse(start)
        end = self._planner.next(begin, self._limits(limit), end=self._target)
        return self._fitting(begin, end).json()

    def _limits(self, limit: Any) -> Limits:
        """Return all limits of the options; Spark knows one limit only."""
        size_bytes, rows = self._options.max_bytes_per_trigger, self._options.max_rows_per_trigger
        if isinstance(limit, ReadMaxBytes):
            size_bytes = limit.max_bytes
        elif isinstance(limit, ReadMaxRows):
            rows = limit.max_rows
        return Limits(
            size_bytes=size_bytes,
            rows=rows,
            groups=self._options.max_groups_per_trigger,
            scope=self._options.selection.scope,
        )

    def _fitting(self, begin: Offset, end: Offset) -> Offset:
        """Return the end of the planned part as far as it fits the stream's columns.

        Raises:
            SchemaChangedError: If nothing of the part fits.
        """
        if self._watch is None or begin.place == end.place:
            return end
        change = self._watch.first_change(self._planner, begin, end)
        if change is None:
            return end
        stop = self._planner.offset_at(change.file, change.position)
        if stop.place <= begin.place:
            assert self._options.table is not None, "only its rows are watched"
            raise change.error(self._options.table)
        return stop

    @hints_shown()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the parts of the log between two offsets."""
        begin, stop = Offset.parse(start), Offset.parse(end)
        parts = self._planner.parts(begin, stop, cuts_of(self._options, Pruning(self._options)))
        tell(self._planner.notes_between(begin, stop))
        return [InputPartition(part) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The batches of one part."""
        return read_partition(self._options, self._schema, partition)
