"""Offsets of the streaming source, asked of it as Spark asks."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql.types import StructType

from binlane.errors import ConfigError, StoreError
from binlane.tables.ranges.log_range import LogRange
from binlane.tables.ranges.stored_files import read_groups_of
from binlane.tables.spark.source_options import SourceOptions
from binlane.tables.spark.spark_versions import ReadMaxBytes, ReadMaxRows, read_everything
from binlane.tables.spark.stream import BinlogStreamReader
from tests.fixture_sets import fixture_set
from tests.shop_log import ShopLog, Table

ORDERS = Table("orders", ("id", "state"))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "log"
    folder.mkdir()
    return folder


def write(log: Path, number: int, groups: int) -> int:
    """Write a file of so many transactions; give its size."""
    made = ShopLog()
    for group in range(groups):
        made.insert(ORDERS, (group, "new"), (group + 1000, "new"))
    name, data = made.file(f"shop.{number:06}")
    return (log / name).write_bytes(data)


def reader(log: Path, **options: str) -> BinlogStreamReader:
    """A reader of the log, as a restarted query has it."""
    return BinlogStreamReader(SourceOptions.parse({"path": str(log), **options}), StructType())


def groups_between(
    stream: BinlogStreamReader, start: dict[str, object], end: dict[str, object]
) -> int:
    """How many event groups the partitions of a micro-batch hold together."""
    found = 0
    for partition in stream.partitions(start, end):
        for piece in partition.value:
            assert isinstance(piece, LogRange)
            found += sum(not group.is_control for group in read_groups_of(piece))
    return found


def test_a_batch_goes_from_the_first_byte_to_the_last_group(log: Path) -> None:
    write(log, 1, 3)
    size = write(log, 2, 2)
    stream = reader(log)
    start = stream.initialOffset()
    end = stream.latestOffset(start, read_everything())
    assert (start["file"], start["position"]) == ("shop.000001", 4)
    assert (end["file"], end["position"]) == ("shop.000002", size)
    assert stream.latestOffset() == end, "Spark 4.1 asks without arguments"
    assert groups_between(stream, start, end) == 5
    assert stream.partitions(end, end) == []


@pytest.mark.parametrize("cut", [1, 10, 18, 19, 60, 100])
def test_what_is_not_whole_is_not_there_yet(cut: int, log: Path) -> None:
    whole = write(log, 1, 2)
    write(log, 1, 3)
    path = log / "shop.000001"
    path.write_bytes(path.read_bytes()[: whole + cut])
    stream = reader(log)
    end = stream.latestOffset(stream.initialOffset(), read_everything())
    assert end["position"] == whole
    assert groups_between(stream, stream.initialOffset(), end) == 2


def test_bytes_are_limited_over_files_and_groups_stay_whole(log: Path) -> None:
    for number, groups in ((1, 5), (2, 1), (3, 4)):
        write(log, number, groups)
    stream = reader(log)
    for limit in (1, 200, 500, 700, 10**6):
        offset, groups, batches = stream.initialOffset(), 0, 0
        while True:
            end = stream.latestOffset(offset, ReadMaxBytes(limit))
            if end == offset:
                break
            groups += groups_between(stream, offset, end)
            batches += 1
            offset = end
        assert groups == 10, limit
        assert batches == 1 if limit == 10**6 else batches > 1


def test_rows_are_limited(log: Path) -> None:
    write(log, 1, 3)
    write(log, 2, 1)
    stream = reader(log)
    offset, sizes = stream.initialOffset(), []
    for _ in range(2):
        end = stream.latestOffset(offset, ReadMaxRows(3))
        sizes.append(groups_between(stream, offset, end))
        offset = end
    assert sizes == [2, 2], "groups of two rows: the one that reaches the limit is taken whole"


def test_available_now_ends_with_what_there_was(log: Path) -> None:
    size = write(log, 1, 2)
    stream = reader(log)
    stream.prepareForTriggerAvailableNow()
    write(log, 1, 5)
    write(log, 2, 5)
    end = stream.latestOffset(stream.initialOffset(), read_everything())
    assert (end["file"], end["position"]) == ("shop.000001", size)


def test_the_options_decide_the_limit(log: Path) -> None:
    write(log, 1, 1)
    assert isinstance(reader(log).getDefaultReadLimit(), type(read_everything()))
    assert reader(log, maxBytesPerTrigger="5").getDefaultReadLimit() == ReadMaxBytes(5)
    assert reader(log, maxRowsPerTrigger="5").getDefaultReadLimit() == ReadMaxRows(5)


def test_a_large_batch_is_cut_into_slices_that_lose_and_double_nothing(log: Path) -> None:
    write(log, 1, 40)
    for size in ("300", "1000", "5000"):
        stream = reader(log, maxPartitionBytes=size)
        start = stream.initialOffset()
        end = stream.latestOffset(start, read_everything())
        assert len(stream.partitions(start, end)) > 1
        assert groups_between(stream, start, end) == 40


def test_a_log_that_was_reset_is_noticed(log: Path) -> None:
    write(log, 1, 3)
    offset = reader(log).latestOffset()
    # RESET MASTER: another file of that name, with another first event.
    (log / "shop.000001").write_bytes(fixture_set("md118_txn").binlogs[0][1])
    with pytest.raises(StoreError, match="is not the file any more") as caught:
        reader(log).latestOffset(offset, read_everything())
    assert "the log was reset" in caught.value.hint


def test_a_file_that_became_shorter_is_noticed(log: Path) -> None:
    write(log, 1, 3)
    offset = reader(log).latestOffset()
    write(log, 1, 2)
    with pytest.raises(StoreError, match=r"shop\.000001 ends at 636; this reader stands at 826"):
        reader(log).latestOffset(offset, read_everything())


def test_a_purged_file_is_noticed(log: Path) -> None:
    write(log, 1, 1)
    offset = reader(log).latestOffset()
    write(log, 2, 1)
    (log / "shop.000001").unlink()
    with pytest.raises(StoreError, match=r"no longer holds shop\.000001:\d+.*begins with shop"):
        reader(log).partitions(offset, offset)


def test_a_gap_is_noticed(log: Path) -> None:
    write(log, 1, 1)
    offset = reader(log).latestOffset()
    write(log, 3, 1)
    with pytest.raises(StoreError, match=r"missing between shop\.000001 and shop\.000003"):
        reader(log).latestOffset(offset, read_everything())


def test_two_logs_are_no_stream(log: Path) -> None:
    write(log, 1, 1)
    (log / "other.000001").write_bytes((log / "shop.000001").read_bytes())
    with pytest.raises(
        ConfigError, match="does not hold the files of one log; there are: other, sh"
    ):
        reader(log).initialOffset()
