"""The source as queries use it: filters, shapes, columns that change, a live server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from binlane.live.provision.private_server import PrivateServer
from binlane.tables.spark.restarting import restarted
from tests.servers import execute
from tests.shop_log import ShopLog, Table

ORDERS = Table("orders", ("id", "state"))
WIDER = Table("orders", ("id", "state", "note"))
ITEMS = Table("items", ("id", "state"))
ALTER = "ALTER TABLE orders ADD COLUMN note VARCHAR(50)"
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture
def pushdown(spark: SparkSession) -> Iterator[None]:
    """Let Spark hand filters to sources."""
    spark.conf.set(PUSHDOWN, "true")
    yield
    spark.conf.set(PUSHDOWN, "false")


def write(log: Path, made: ShopLog) -> None:
    name, data = made.file()
    (log / name).write_bytes(data)


def test_filters_reach_the_source(spark: SparkSession, tmp_path: Path, pushdown: None) -> None:
    made = ShopLog()
    for table in (ORDERS, ITEMS):
        for number in range(40):
            made.insert(table, (number, "new"))
    made.delete(ITEMS, (3, "new"))
    write(tmp_path, made)
    reader = spark.read.format("binlog").option("maxPartitionBytes", 500)
    whole = reader.load(str(tmp_path))
    wanted = "_table = 'items' AND _op = 'delete'"
    assert whole.where(wanted).count() == 1
    assert whole.count() == 81, "one query's filters are not another's"
    few = reader.option("useFilters", "true").load(str(tmp_path)).where(wanted)
    assert [(row["_table"], row["_op"]) for row in few.collect()] == [("items", "delete")]
    assert few.rdd.getNumPartitions() < whole.rdd.getNumPartitions()


def test_both_images_in_one_row(spark: SparkSession, tmp_path: Path) -> None:
    made = ShopLog()
    made.insert(ORDERS, (1, "new"))
    made.update(ORDERS, ((1, "new"), (1, "paid")))
    made.delete(ORDERS, (1, "paid"))
    write(tmp_path, made)
    frame = (
        spark.read.format("binlog")
        .options(table="shop.orders", shape="changes")
        .load(str(tmp_path))
        .selectExpr("_op", "before.state AS old", "after.state AS new", "after IS NULL AS gone")
    )
    assert sorted(map(tuple, frame.collect()), key=str) == [
        ("delete", "paid", None, True),
        ("insert", None, "new", False),
        ("update", "new", "paid", False),
    ]


def test_events(spark: SparkSession, tmp_path: Path) -> None:
    made = ShopLog()
    made.insert(ORDERS, (1, "new"))
    write(tmp_path, made)
    frame = spark.read.format("binlog").option("layout", "events").load(str(tmp_path))
    rows = frame.orderBy("_pos").collect()
    assert [row["_type"] for row in rows][-4:] == ["GTID", "TABLE_MAP", "WRITE_ROWS_V1", "XID"]
    assert rows[-2]["_table"] == "orders"


def test_a_stream_follows_its_table(spark: SparkSession, tmp_path: Path) -> None:
    log, out = tmp_path / "log", tmp_path / "out"
    log.mkdir()
    made = ShopLog()
    made.insert(ORDERS, (1, "new"))
    write(log, made)
    steps = iter((ALTER,))

    def start(policy: str) -> StreamingQuery:
        source = (
            spark.readStream.format("binlog")
            .options(table="shop.orders", schemaChange=policy)
            .load(str(log))
        )
        for statement in steps:  # once, behind the first look at the table
            made.insert(ORDERS, (2, "new"))
            made.statement(statement)
            made.insert(WIDER, (3, "new", "mine"))
            write(log, made)
        return (
            source.writeStream.format("parquet")
            .option("path", str(out))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )

    with pytest.raises(StreamingQueryException) as caught:
        start("fail").awaitTermination()
    text = str(caught.value)
    assert "SchemaChangedError: the columns of shop.orders change by" in text
    assert ALTER in text
    assert "hint: all rows before are delivered" in text
    assert sorted(row["id"] for row in spark.read.parquet(str(out)).collect()) == [1, 2]
    assert restarted(lambda: start("evolve")) == 0
    rows = spark.read.option("mergeSchema", "true").parquet(str(out)).collect()
    assert sorted((row["id"], row["note"] or "") for row in rows) == [(1, ""), (2, ""), (3, "mine")]


def test_a_live_server(spark: SparkSession, mariadb_server: PrivateServer, tmp_path: Path) -> None:
    execute(
        mariadb_server,
        "CREATE DATABASE live",
        "CREATE TABLE live.orders (id INT PRIMARY KEY, state ENUM('new', 'paid'))",
        "INSERT INTO live.orders VALUES (1, 'new'), (2, 'paid')",
        "UPDATE live.orders SET state = 'paid' WHERE id = 1",
    )
    password = tmp_path / "password"
    password.write_text("")
    frame = (
        spark.read.format("binlog")
        .options(
            server=f"mariadb://{mariadb_server.host}:{mariadb_server.port}",
            user="root",
            passwordFile=str(password),
            table="live.orders",
            ops="insert,update_after",
        )
        .load()
    )
    found = sorted((row["_op"], row["id"], row["state"]) for row in frame.collect())
    assert found == [("insert", 1, "new"), ("insert", 2, "paid"), ("update_after", 1, "paid")]
