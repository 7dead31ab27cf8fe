"""One part of a log → the batches of a data frame: the work of Spark's tasks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from binlane.binlogs.filters.filter_state import FilterState
from binlane.tables.columnar.counters import ReadCounters
from binlane.tables.ranges.cutting import Cuts, Part, Wish
from binlane.tables.ranges.log_file_facts import PIECE_BYTES
from binlane.tables.ranges.log_history import FilterAt
from binlane.tables.ranges.log_range import LogRange
from binlane.tables.ranges.planner import Planner, PlanOptions
from binlane.tables.spark.change_log import read_change_log
from binlane.tables.spark.event_rows import read_events
from binlane.tables.spark.filters import PushedCondition
from binlane.tables.spark.option_hints import hints_shown
from binlane.tables.spark.source_options import Layout, SourceOptions
from binlane.tables.spark.spark_versions import arrow_schema_of
from binlane.tables.spark.typed_table import read_typed

_logger: Final = logging.getLogger(__name__)


def new_planner(options: SourceOptions) -> Planner:
    """Return the planner of the log that the options name."""
    piece_bytes = min(PIECE_BYTES, options.max_partition_bytes)
    terms = options.selection.filter_terms
    return Planner(
        options.paths,
        PlanOptions(
            keys=options.keys,
            piece_bytes=piece_bytes,
            filter_at=None if terms is None else FilterAt(FilterState(terms)),
        ),
    )


def cuts_of(options: SourceOptions, wish: Wish) -> Cuts:
    """Return the terms by which the log is cut into the parts that tasks read."""
    return Cuts(size_bytes=options.max_partition_bytes, cores=options.min_partitions, wish=wish)


def read_partition(
    options: SourceOptions,
    schema: StructType,
    partition: InputPartition,
    conditions: Sequence[PushedCondition] = (),
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of one part of a log, in exactly the schema that Spark was given.

    Losses that a filter made in tables that it names are a warning in the worker's log, and so are
    columns that row images lack, which are NULL.

    Raises:
        CodecError: With file and position, if the file is damaged.
        StoreError: If it cannot be read.
    """
    part: Part = getattr(partition, "value", None) or ()  # Spark makes one of no partitions at all
    arrow_schema = arrow_schema_of(schema)
    with hints_shown():
        counters = ReadCounters()
        for piece in part:
            batches = _readers[options.layout](piece, options, arrow_schema, counters)
            yield from _kept(batches, conditions, options.prefix) if conditions else batches
        tell(counters.left_out.texts)
        if counters.absent:
            names = ", ".join(sorted(counters.absent))
            table = "" if options.table is None else options.table.plain
            tell([f"{table}: row images lack columns, which are NULL there: {names}"])


_Reader = Callable[[LogRange, SourceOptions, pa.Schema, ReadCounters], Iterator[pa.RecordBatch]]
_readers: Final[Mapping[Layout, _Reader]] = MappingProxyType(
    {
        Layout.TABLE: read_typed,
        Layout.CHANGES: read_change_log,
        Layout.EVENTS: read_events,
    }
)


def tell(notes: Iterable[str]) -> None:
    """Warn in the log of the process that Spark runs this in."""
    for note in notes:
        _logger.warning("binlane: %s", note)


def _kept(
    batches: Iterable[pa.RecordBatch], conditions: Sequence[PushedCondition], prefix: str
) -> Iterator[pa.RecordBatch]:
    """The rows that a query asks for."""
    for batch in batches:
        masks: list[Any] = [
            condition.mask(batch.column(prefix + condition.column))
            for condition in conditions
            if prefix + condition.column in batch.schema.names
        ]
        kept = batch.filter(reduce(pc.and_, masks)) if masks else batch
        if kept.num_rows:
            yield kept
