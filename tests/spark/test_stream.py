"""`spark.readStream.format("binlog")`: restarts, growing logs, limits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.shop_log import ShopLog, Table

ORDERS = Table("orders", ("id", "state"))


class Stream:
    """A query that keeps what each of its micro-batches held."""

    def __init__(self, spark: SparkSession, log: Path, checkpoint: Path) -> None:
        self._spark = spark
        self._log = log
        self._checkpoint = checkpoint

    def run(self, **options: str | int) -> list[list[int]]:
        """Read what there is; ids of the rows of each micro-batch."""
        batches: list[list[int]] = []

        def collect(frame: DataFrame, _batch_id: int) -> None:
            rows = sorted(frame.collect(), key=lambda row: (row["_file"], row["_pos"]))
            batches.append([json.loads(row["after"])["id"] for row in rows])

        source = self._spark.readStream.format("binlog").options(**options).load(str(self._log))
        query = (
            source.writeStream.foreachBatch(collect)
            .option("checkpointLocation", str(self._checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return batches


def log_of(*ids: int) -> ShopLog:
    """One transaction for each id."""
    log = ShopLog()
    for number in ids:
        log.insert(ORDERS, (number, "new"))
    return log


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "log"
    folder.mkdir()
    return folder


@pytest.fixture
def stream(spark: SparkSession, log: Path, tmp_path: Path) -> Stream:
    return Stream(spark, log, tmp_path / "checkpoint")


def write(log: Path, made: ShopLog, number: int = 1, size: int | None = None) -> bytes:
    """Write a file of the log, or its first bytes; give all its bytes."""
    name, data = made.file(f"shop.{number:06}")
    (log / name).write_bytes(data if size is None else data[:size])
    return data


def test_a_restart_reads_exactly_what_is_new(stream: Stream, log: Path) -> None:
    write(log, log_of(1, 2, 3))
    assert stream.run() == [[1, 2, 3]]
    assert stream.run() == []
    write(log, log_of(1, 2, 3, 4))
    assert stream.run() == [[4]]
    write(log, log_of(5, 6), number=2)
    write(log, log_of(7), number=3)
    assert stream.run() == [[5, 6, 7]]


def test_what_is_not_whole_is_not_there_yet(stream: Stream, log: Path) -> None:
    write(log, log_of(1, 2, 3), size=len(write(log, log_of(1, 2))) + 50)
    assert stream.run() == [[1, 2]]
    write(log, log_of(1, 2, 3))
    assert stream.run() == [[3]]


def test_a_micro_batch_ends_with_a_whole_group(stream: Stream, log: Path) -> None:
    write(log, log_of(*range(1, 8)))
    write(log, log_of(8, 9), number=2)
    batches = stream.run(maxBytesPerTrigger=500, maxPartitionBytes=300)
    assert [number for batch in batches for number in batch] == list(range(1, 10))
    assert len(batches) > 2
