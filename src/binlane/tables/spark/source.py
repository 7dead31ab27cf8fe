"""The `binlog` data source: `spark.read.format("binlog")` and `spark.readStream.format("binlog")`.

Workers open the files themselves; what travels to them is a range. Spark's classes ask for names in
camel case.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, MutableMapping
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    Filter,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from binlane.tables.spark.change_log import change_log_schema
from binlane.tables.spark.event_rows import EVENTS
from binlane.tables.spark.filters import PushedCondition, conditions
from binlane.tables.spark.option_hints import hints_shown
from binlane.tables.spark.pruning import Pruning
from binlane.tables.spark.range_reader import cuts_of, new_planner, read_partition, tell
from binlane.tables.spark.source_options import Layout, SourceOptions
from binlane.tables.spark.stream import BinlogStreamReader
from binlane.tables.spark.typed_table import typed_schema

FORMAT_NAME: Final = "binlog"
# Spark runs this module, and no other that asks for a reader, where filters are pushed down.
_PUSHDOWN_WORKER: Final = "pyspark.sql.worker.data_source_pushdown_filters"


class BinlogDataSource(DataSource):
    """Binlog files, a directory of them, a binlog of a store, or a server's log."""

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
        match self._options.layout:
            case Layout.TABLE:
                schema = typed_schema(self._options, new_planner(self._options))
            case Layout.CHANGES:
                schema = change_log_schema(self._options)
            case Layout.EVENTS:
                schema = EVENTS
        return from_arrow_schema(schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of the log as it is now."""
        # A reader that takes filters is refused where Spark is told not to push any down.
        is_filtering = self._options.takes_filters and _PUSHDOWN_WORKER in sys.modules
        return (FilteringReader if is_filtering else BinlogReader)(self._options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return a reader of the log as it is now and of what is added."""
        return BinlogStreamReader(self._options, schema)


class BinlogReader(DataSourceReader):
    """Reads a log once."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._conditions: list[PushedCondition] = []

    @hints_shown()
    def partitions(self) -> list[InputPartition]:
        """Return parts of all files that may hold rows of the query."""
        planner = new_planner(self._options)
        parts = planner.all_parts(cuts_of(self._options, Pruning(self._options, self._conditions)))
        tell(planner.notes_of_all())
        return [InputPartition(part) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The batches of one part."""
        return read_partition(self._options, self._schema, partition, self._conditions)


class FilteringReader(BinlogReader):
    """Uses a query's filters, and leaves all of them to Spark too.

    Spark 4.2 keeps what it planned with one query's filters for all queries of a data frame, so
    that a second one would miss rows: hence only where the options say that there is one query.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Take the filters that can be used; return the others."""
        self._conditions = conditions(filters, self._options.prefix)
        return filters
