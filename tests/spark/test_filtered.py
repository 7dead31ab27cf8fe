"""The filter's options in a real session: tables are followed over files and ranges."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.routed_files import written

# t2 is renamed to t1 and on, over databases and back; another one takes its name.
FOLLOWED = {"t1", "t2"}


@pytest.mark.parametrize("layout", ["changes", "events"])
def test_a_table_is_followed(layout: str, spark: SparkSession, tmp_path: Path) -> None:
    written("md1011_ddl", tmp_path)
    source = spark.read.format("binlog").option("path", str(tmp_path)).option("layout", layout)
    source = source.option("doTable", "shop.t2").option("maxPartitionBytes", "400")
    found = source.load().where("_table is not null").select("_database", "_table", "_pos")
    rows = found.collect()
    assert {row["_table"] for row in rows} >= FOLLOWED
    by_name = source.option("rename", "name").load().where("_table is not null")
    assert 0 < by_name.count() < len(rows)


def test_what_is_left_out_of_named_tables_is_in_spark_s_log(
    spark: SparkSession, tmp_path: Path
) -> None:
    written("md1011_ddl", tmp_path)
    spark.conf.set("spark.sql.pyspark.worker.logging.enabled", "true")
    source = spark.read.format("binlog").option("path", str(tmp_path))
    source.option("doTable", "shop.t1").load().collect()
    texts = [row["msg"] for row in spark.tvf.python_worker_logs().select("msg").collect()]
    driver, worker = (
        "a change of shop.t1 is left out",
        "left out of shop.t1, which the filter names",
    )
    assert any(driver in text for text in texts)
    assert any(worker in text for text in texts)
