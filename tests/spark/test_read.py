"""`spark.read.format("binlog")` on real logs."""

from __future__ import annotations

import gzip
import json
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.store import Store
from binlane.errors import BinlaneError, CodecError
from binlane.tables.spark.failures import plain_errors
from tests.fixture_sets import fixture_set
from tests.groups import add, create, real_groups
from tests.shop_log import ShopLog, Table


def read(spark: SparkSession, path: Path | str, **options: str | int) -> DataFrame:
    return spark.read.format("binlog").options(**options).load(str(path))


def changes(frame: DataFrame) -> list[tuple[Any, ...]]:
    """All rows in log order."""
    return sorted(map(tuple, frame.collect()), key=lambda row: (row[5], row[6], row[7]))


@pytest.mark.parametrize("name", ["md1011_rotation", "md1011_format_row", "md1011_types_numeric"])
def test_every_change_is_one_row(name: str, spark: SparkSession, fixture_logs: Path) -> None:
    rows = read(spark, fixture_logs / name, include="rows").collect()
    found = Counter((f"{row['_database']}.{row['_table']}", row["_op"]) for row in rows)
    expected = {
        (table, op): count
        for table, counts in fixture_set(name).meta["rows_by_table"].items()
        for op, count in zip(("insert", "update", "delete"), counts.values(), strict=True)
        if count
    }
    assert found == expected
    assert [type(json.loads(row["after"] or row["before"])) for row in rows] == [dict] * len(rows)


def test_images_are_json_with_names(spark: SparkSession, fixture_logs: Path) -> None:
    frame = read(spark, fixture_logs / "md1011_metadata_full", tables="shop.m4", include="rows")
    rows = [(row["_op"], row["before"], row["after"]) for row in frame.collect()]
    old = {"we ird `name": 1, "имя": 2, "c" * 64: 3}
    new = {**old, "имя": 0}
    found = [(op, *(image and json.loads(image) for image in images)) for op, *images in rows]
    assert len(found) == 3
    assert ("insert", None, old) in found
    assert ("update", old, new) in found


def test_many_tasks_read_one_file_exactly_once(spark: SparkSession, fixture_logs: Path) -> None:
    path = fixture_logs / "md118_txn"
    whole = read(spark, path)
    split = read(spark, path, maxPartitionBytes=400)
    assert whole.rdd.getNumPartitions() == 1
    assert split.rdd.getNumPartitions() > 5
    assert changes(split) == changes(whole)


def test_ddl_is_in_the_change_log(spark: SparkSession, fixture_logs: Path) -> None:
    frame = read(spark, fixture_logs / "md1011_metadata_full")
    found = [row["statement"] for row in frame.collect() if row["_op"] == "ddl"]
    assert len(found) == 6
    assert found[0] == "CREATE DATABASE `shop`"


def test_a_typed_table(spark: SparkSession, fixture_logs: Path) -> None:
    frame = read(spark, fixture_logs / "md1011_metadata_full", table="shop.m1")
    types = dict(frame.dtypes)
    assert types["id"] == "bigint"
    assert (types["sn"], types["u8"], types["d"]) == ("smallint", "smallint", "decimal(10,2)")
    assert (types["vb"], types["e"], types["y"]) == ("binary", "string", "bigint")
    rows = frame.where("id = 1").orderBy("_pos", "_op").collect()
    assert [row["_op"] for row in rows] == ["insert", "update_after", "update_before"]
    assert (rows[0]["sn"], rows[0]["vu"], rows[0]["s"], rows[0]["b"]) == (-1, "😀", "x,z", 5)
    assert rows[1]["sn"] == 5


def test_a_typed_table_has_all_columns_that_it_ever_had(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = ShopLog()
    log.insert(Table("orders", ("id", "state")), (1, "a"))
    log.statement("ALTER TABLE orders DROP COLUMN state, ADD COLUMN note VARCHAR(50)")
    log.insert(Table("orders", ("id", "note")), (2, "b"))
    name, data = log.file()
    (tmp_path / name).write_bytes(data)
    frame = read(spark, tmp_path / name, table="shop.orders")
    assert frame.columns[-3:] == ["id", "note", "state"]
    found = {tuple(row) for row in frame.select("id", "note", "state").collect()}
    assert found == {(1, None, "a"), (2, "b", None)}


def test_start_and_stop(spark: SparkSession, fixture_logs: Path) -> None:
    path = fixture_logs / "md1011_rotation"
    everything = {row["_gtid"] for row in read(spark, path).collect()}
    head = {row["_gtid"] for row in read(spark, path, stop="0-1-20").collect()}
    tail = {row["_gtid"] for row in read(spark, path, start="0-1-20").collect()}
    assert head | tail == everything
    assert head
    assert tail
    assert not head & tail
    assert "0-1-20" in head


def test_a_compressed_file_reads_as_it_is(
    spark: SparkSession, fixture_logs: Path, tmp_path: Path
) -> None:
    plain = fixture_logs / "md118_txn/binlog.000001"
    packed = tmp_path / "binlog.000001.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert changes(read(spark, packed)) == changes(read(spark, plain))


def test_a_binlog_of_a_store(spark: SparkSession, tmp_path: Path) -> None:
    settings = StoreSettings(max_binlog_size_bytes=4096)
    with Store.open(tmp_path / "data", settings) as store:
        binlog = create(store)
        add(binlog, real_groups("md1011_rotation"))
        assert len(binlog.files()) > 1
        path = f"{tmp_path / 'data'}#orders"
        assert read(spark, path, include="rows").count() == 61
    assert read(spark, tmp_path / "data/binlogs/orders", include="rows").count() == 61
    with pytest.raises(PySparkException, match=r"a store of several binlogs(?s:.*)data#orders"):
        read(spark, tmp_path / "data").count()
    with pytest.raises(PySparkException, match="unknown binlog stock; the binlogs are: orders"):
        read(spark, f"{tmp_path / 'data'}#stock").count()


@pytest.mark.parametrize("name", ["flip_body.bin", "cut_in_event.bin", "no_table_map.bin"])
def test_damage_says_file_and_position(name: str, spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(fixture_set("corrupt_mariadb1011").files[name])
    message = rf"binlane\.errors\.\w+: .*{name}:\d+\)\n\s*hint: [^\n]+\n?$"
    with pytest.raises(PySparkException, match=message) as caught:
        read(spark, path).collect()
    assert len(last_lines(caught.value)) <= 6, "nobody asked where in binlane that was found"
    with pytest.raises(CodecError, match=rf"{name}:\d+\)\nhint: ") as plain, plain_errors():
        read(spark, path).write.format("noop").mode("overwrite").save()
    assert last_lines(plain.value)[-1] == f"hint: {plain.value.hint}"
    assert isinstance(plain.value.__context__, PySparkException)


def last_lines(error: BaseException) -> list[str]:
    """The lines in which Python ends when nobody catches an error."""
    return "".join(traceback.format_exception_only(error)).splitlines()


@pytest.mark.parametrize(
    "options, message",
    [
        ({"tabel": "shop.t"}, "has no option tabel(?s:.*)hint: did you mean table?"),
        ({"table": "shop"}, "'shop' names no table(?s:.*)hint: write DATABASE.TABLE"),
        ({"table": "shop.none"}, "has no rows of shop.none(?s:.*)hint: it has rows of: shop.a"),
        ({"start": "soon"}, "'soon' is no place in a log"),
        ({"rowsPerBatch": "0"}, "'0' is no whole number"),
        ({"layout": "sideways"}, "there is no layout sideways"),
        ({"include": "rows,dml"}, "'dml' cannot be included"),
        ({"user": "me"}, "user is of a server, and none is given"),
        ({"shape": "changes"}, "shape is of one table's changes"),
    ],
)
def test_wrong_options_are_refused(
    options: dict[str, str], message: str, spark: SparkSession, fixture_logs: Path
) -> None:
    with pytest.raises(PySparkException, match=message):
        read(spark, fixture_logs / "md118_txn", **options).count()


def test_a_missing_file_says_so(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match="no such file or directory") as caught:
        read(spark, tmp_path / "none").count()
    assert len(last_lines(caught.value)) <= 12
    with pytest.raises(BinlaneError, match="no such file or directory") as plain, plain_errors():
        read(spark, tmp_path / "none").count()
    assert (
        last_lines(plain.value)[-1] == "hint: name a binlog file, a directory of them, or DATA#name"
    )


def test_a_stream_may_end_in_one_line(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "log.000001").write_bytes(fixture_set("corrupt_mariadb1011").files["flip_body.bin"])
    query = (
        spark.readStream.format("binlog")
        .load(str(tmp_path / "log.000001"))
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    with pytest.raises(CodecError, match=r"log.000001:\d+\)\nhint: ") as plain, plain_errors():
        query.awaitTermination()
    assert len(last_lines(plain.value)) == 2
