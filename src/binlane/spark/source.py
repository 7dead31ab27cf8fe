"""The `binlog` data source: `spark.read.format("binlog")` and `spark.readStream.format("binlog")`.

Workers open the files themselves; what travels to them is a path and a range. Spark's classes ask
for names in camel case.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from binlane.errors import BinlaneError
from binlane.grouping.event_group import EventGroup
from binlane.ranges.facts import PIECE_BYTES
from binlane.ranges.files import read_groups_of
from binlane.ranges.limits import Limits
from binlane.ranges.log_range import LogRange
from binlane.ranges.offset import Offset
from binlane.ranges.plan import Planner, PlanOptions
from binlane.spark.change_batches import CHANGE_BATCHES, read_change_batches
from binlane.spark.change_log import ChangeLog, change_log_schema
from binlane.spark.options import Layout, SourceOptions
from binlane.spark.typed_table import TypedTable, typed_schema
from binlane.spark.versions import (
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
    arrow_schema_of,
    read_everything,
)

FORMAT_NAME = "binlog"


@contextmanager
def hints_shown() -> Iterator[None]:
    """Add the hint of an error to its traceback, which is all of it that Spark passes on."""
    try:
        yield
    except BinlaneError as error:
        if error.hint:
            error.add_note(f"hint: {error.hint}")
        raise


class Renderer(Protocol):
    """What turns event groups into the batches of a layout."""

    def feed(self, group: EventGroup) -> Iterator[pa.RecordBatch]:
        """Take the next group; give the batches that it completes."""

    def finish(self) -> Iterator[pa.RecordBatch]:
        """What no batch has held yet."""


class BinlogDataSource(DataSource):
    """Binlog files, a directory of them, or a binlog of a store."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        with hints_shown():
            self._options = SourceOptions.parse(dict(options))

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT_NAME

    @hints_shown()
    def schema(self) -> StructType:
        """The columns of the layout that the options ask for."""
        if self._options.layout is Layout.TABLE:
            schema = typed_schema(self._options, _planner(self._options))
        elif self._options.layout is Layout.BATCHES:
            schema = CHANGE_BATCHES
        else:
            schema = change_log_schema(self._options)
        return from_arrow_schema(schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of all that there is."""
        return BinlogReader(self._options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """A reader of what there is and of what comes."""
        return BinlogStreamReader(self._options, schema)


class BinlogReader(DataSourceReader):
    """Reads a log once."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    @hints_shown()
    def partitions(self) -> list[InputPartition]:
        """Ranges of all files."""
        size_bytes = self._options.max_partition_bytes
        pieces = _planner(self._options).all_ranges(size_bytes=size_bytes)
        return [InputPartition(piece) for piece in pieces]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The batches of one range."""
        return read_partition(self._options, self._schema, partition)


class BinlogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a log as it grows; offsets are those of `ranges.plan`."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._planner = _planner(options)
        self._target: Offset | None = None

    @hints_shown()
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """The beginning of the oldest file."""
        return self._planner.begin().json()

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """What the options say of a micro-batch."""
        if self._options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(self._options.max_bytes_per_trigger)
        if self._options.max_rows_per_trigger is not None:
            return ReadMaxRows(self._options.max_rows_per_trigger)
        return read_everything()

    @hints_shown()
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember what there is now; the query ends there."""
        self._target = self._planner.end()

    @hints_shown()
    def latestOffset(  # noqa: N802
        self, start: dict[str, Any] | None = None, limit: Any = None
    ) -> dict[str, Any]:
        """The end of the next micro-batch: always of a whole event group.

        Spark 4.1 passes nothing and gets all that there is.
        """
        if start is None:
            return (self._target or self._planner.end()).json()
        limits = Limits()
        if isinstance(limit, ReadMaxBytes):
            limits = Limits(size_bytes=limit.max_bytes)
        elif isinstance(limit, ReadMaxRows):
            limits = Limits(rows=limit.max_rows, scope=self._options.selection.scope)
        return self._planner.next(Offset.parse(start), limits, end=self._target).json()

    @hints_shown()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Ranges of what lies between two offsets."""
        pieces = self._planner.ranges(
            Offset.parse(start),
            Offset.parse(end),
            size_bytes=self._options.max_partition_bytes,
        )
        return [InputPartition(piece) for piece in pieces]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The batches of one range."""
        return read_partition(self._options, self._schema, partition)


def _planner(options: SourceOptions) -> Planner:
    piece_bytes = min(PIECE_BYTES, options.max_partition_bytes)
    return Planner(options.paths, PlanOptions(piece_bytes=piece_bytes))


def read_partition(
    options: SourceOptions, schema: StructType, partition: InputPartition
) -> Iterator[pa.RecordBatch]:
    """The batches of one slice, in exactly the schema that Spark was told.

    Raises:
        CodecError: With file and position, if the file is damaged.
    """
    piece: LogRange | None = getattr(partition, "value", None)
    if piece is None:  # what Spark makes of no partitions at all
        return
    with hints_shown():
        if options.layout is Layout.BATCHES:
            yield from read_change_batches(piece, options)
            return
        renderer = _renderer(options, schema)
        for group in read_groups_of(piece):
            yield from renderer.feed(group)
        yield from renderer.finish()


def _renderer(options: SourceOptions, schema: StructType) -> Renderer:
    if options.layout is Layout.CHANGES:
        return ChangeLog(options)
    return TypedTable(options, arrow_schema_of(schema))
