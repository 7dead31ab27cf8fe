"""How many tasks read a log if nobody says so, and that they read all of it in order."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import from_arrow_schema

from binlane.tables.spark.change_log import change_log_schema
from binlane.tables.spark.pruning import Pruning
from binlane.tables.spark.range_reader import cuts_of
from binlane.tables.spark.source import BinlogReader
from binlane.tables.spark.source_options import SourceOptions
from binlane.tables.spark.spark_versions import read_everything
from binlane.tables.spark.stream import BinlogStreamReader
from tests.shop_log import ShopLog, Table

ORDERS = Table("orders", ("id", "state"))
ITEMS = Table("items", ("id", "what"))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Thirty files, as restarts of a server make them; every third has no row of orders."""
    for number in range(1, 31):
        made = ShopLog()
        made.insert(ORDERS if number % 3 else ITEMS, (number, "new"))
        made.insert(ITEMS, (number, "thing"))
        name, data = made.file(f"shop.{number:06}")
        (tmp_path / name).write_bytes(data)
    return tmp_path


def ids(reader: BinlogReader | BinlogStreamReader, partitions: list[InputPartition]) -> list[int]:
    """Numbers of the files, as the rows of the partitions have them."""
    rows = (row for each in partitions for batch in reader.read(each) for row in batch.to_pylist())
    return [int(row["_file"].rpartition(".")[2]) for row in rows]


def test_a_task_is_of_256_mib_or_what_the_options_say() -> None:
    for given, size_bytes in (({}, 256 << 20), ({"maxPartitionBytes": "1000"}, 1000)):
        options = SourceOptions.parse({"path": "x", "minPartitions": "3", **given})
        cuts = cuts_of(options, Pruning(options))
        assert (cuts.size_bytes, cuts.cores) == (size_bytes, 3)


@pytest.mark.parametrize("cores", ["1", "2", "8"])
def test_one_task_reads_many_small_files(cores: str, log: Path) -> None:
    options = SourceOptions.parse({"path": str(log), "minPartitions": cores})
    schema = from_arrow_schema(change_log_schema(options))
    everything = sorted([*range(1, 31)] * 2)
    reader = BinlogReader(options, schema)
    (partition,) = reader.partitions()
    assert ids(reader, [partition]) == everything
    stream = BinlogStreamReader(options, schema)
    start = stream.initialOffset()
    (partition,) = stream.partitions(start, stream.latestOffset(start, read_everything()))
    assert ids(stream, [partition]) == everything


def test_one_task_reads_what_lies_between_files_that_are_left_out(log: Path) -> None:
    options = SourceOptions.parse({"path": str(log), "tables": "shop.orders"})
    reader = BinlogReader(options, from_arrow_schema(change_log_schema(options)))
    (partition,) = reader.partitions()
    numbers = [number for number in range(1, 31) if number % 3]
    assert [piece.number for piece in partition.value] == numbers
    assert ids(reader, [partition]) == numbers
    fewer = SourceOptions.parse(
        {"path": str(log), "tables": "shop.orders", "maxPartitionBytes": "2000"}
    )
    reader = BinlogReader(fewer, from_arrow_schema(change_log_schema(fewer)))
    partitions = reader.partitions()
    assert 1 < len(partitions) < len(numbers)
    assert ids(reader, partitions) == numbers
