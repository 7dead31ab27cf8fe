"""What a filter leaves out of tables that it names is logged where Spark runs the source."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from binlane.binlogs.filters.events import EventFilter
from binlane.binlogs.filters.filter_state import FilterState
from binlane.binlogs.filters.terms import parse_terms
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.walk import walk
from binlane.tables.spark.change_log import change_log_schema
from binlane.tables.spark.event_rows import EVENTS
from binlane.tables.spark.source import BinlogReader
from binlane.tables.spark.source_options import SourceOptions
from binlane.tables.spark.stream import BinlogStreamReader
from tests.fixture_sets import fixture_set
from tests.routed_files import written
from tests.shop_log import ShopLog

NAME = "md1011_ddl"
NOTE = "binlane: binlog.000001:2481: a change of shop.t1 is left out"


def lost(table: str) -> Counter[str]:
    """What a filter that names a table leaves out of it."""
    found = EventFilter(FilterState(parse_terms({"do_table": [table]})), lambda _: None)
    for file, data in fixture_set(NAME).binlogs:
        for event in expanded_all(walk([data], file=file), file=file):
            list(found.feed(event, file=file))
    left_out = found.state.left_out
    return Counter(statement=left_out.statements.total(), image=left_out.images.total())


def told(texts: list[str]) -> Counter[str]:
    """What all warnings together say is left out."""
    found: Counter[str] = Counter()
    for text in texts:
        for count, what in re.findall(r"(\d+) (?:row )?(statement|image)s?\b", text):
            found[what] += int(count)
    return found


def reader(path: Path, **given: str) -> BinlogReader:
    options = SourceOptions.parse({"path": str(path), "maxPartitionBytes": "400", **given})
    schema = EVENTS if given.get("layout") == "events" else change_log_schema(options)
    return BinlogReader(options, from_arrow_schema(schema))


@pytest.mark.parametrize("layout", ["changes", "events"])
def test_a_batch_logs_what_it_leaves_out(
    layout: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    written(NAME, tmp_path)
    expected = lost("shop.t1")
    assert min(expected.values()) > 1
    batch = reader(tmp_path, layout=layout, doTable="shop.t1")
    partitions = batch.partitions()
    assert len(partitions) > 2
    assert [text.startswith(NOTE) for text in caplog.messages].count(True) == 1
    for partition in partitions:
        list(batch.read(partition))
    assert told(caplog.messages) == expected


def test_a_batch_logs_that_the_log_has_nothing_of_what_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    written(NAME, tmp_path)
    reader(tmp_path, doTable="shop.t11").partitions()
    text = "binlane: the log has nothing of what the filter names; did you mean shop.t1?"
    assert caplog.messages == [text]
    reader(tmp_path, doTable="shop.t2").partitions()
    reader(tmp_path).partitions()
    assert text not in caplog.messages[1:]


def test_a_stream_logs_what_each_batch_leaves_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    written(NAME, tmp_path)
    options = SourceOptions.parse(
        {"path": str(tmp_path), "doTable": "shop.t1", "maxGroupsPerTrigger": "5"}
    )
    stream = BinlogStreamReader(options, from_arrow_schema(change_log_schema(options)))
    start, batches = stream.initialOffset(), 0
    while (end := stream.latestOffset(start, stream.getDefaultReadLimit())) != start:
        for partition in stream.partitions(start, end):
            list(stream.read(partition))
        start, batches = end, batches + 1
        if batches == 2:  # it is started again from its checkpoint
            stream = BinlogStreamReader(options, from_arrow_schema(change_log_schema(options)))
    assert batches > 4
    assert told(caplog.messages) == lost("shop.t1")
    assert [text.startswith(NOTE) for text in caplog.messages].count(True) == 1


def test_ddl_that_drops_a_wanted_table_with_its_database_is_told(tmp_path: Path) -> None:
    log = ShopLog()
    made = ("CREATE TABLE orders (id INT)", "CREATE DATABASE IF NOT EXISTS shop")
    drops = ("DROP DATABASE other", "DROP DATABASE shop", "CREATE OR REPLACE DATABASE shop")
    for statement in (*made, *drops):
        log.statement(statement)
    name, data = log.file()
    (tmp_path / name).write_bytes(data)
    batch = reader(tmp_path, tables="shop.orders")
    found = [table for part in batch.partitions() for table in batch.read(part)]
    told = [row["statement"] for table in found for row in table.to_pylist()]
    assert told == [made[0], *drops[1:]]
