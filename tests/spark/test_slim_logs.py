"""Spark reads binlogs with COMPRESS='ON', and says which columns ROW_IMAGE='MINIMAL' leaves out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.routed_files import routed, written

_SETS = ["md1011_metadata_full", "my97_metadata_full"]


def _binlog(name: str, folder: Path, clauses: str) -> str:
    routed(written(name, folder / "log"), folder / "data", clauses)
    return str(folder / "data" / "b1")


def _rows(spark: SparkSession, path: str) -> list[tuple[object, ...]]:
    frame = spark.read.format("binlog").option("table", "shop.m1").load(path)
    return sorted(map(tuple, frame.drop("_file", "_pos").collect()), key=str)


@pytest.mark.parametrize("name", _SETS)
def test_a_compressed_binlog_has_the_rows_of_its_source(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    plain = _rows(spark, _binlog(name, tmp_path / "plain", "LOG ALL"))
    assert plain
    assert _rows(spark, _binlog(name, tmp_path / "packed", "LOG ALL, COMPRESS='ON'")) == plain


@pytest.mark.parametrize("name", _SETS)
def test_columns_that_images_lack_are_null_and_told(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    path = _binlog(name, tmp_path, "LOG ALL, ROW_IMAGE='MINIMAL', COMPRESS='ON'")
    spark.conf.set("spark.sql.pyspark.worker.logging.enabled", "true")
    source = spark.read.format("binlog").option("path", path)
    frame = source.option("table", "shop.m1").load()
    (key, *others) = [column for column in frame.columns if not column.startswith("_")]
    before = frame.where("_op = 'update_before'").collect()
    assert before
    assert all(row[key] is not None for row in before)
    assert all(row[other] is None for row in before for other in others)
    texts = [row["msg"] for row in spark.tvf.python_worker_logs().select("msg").collect()]
    (told,) = {text for text in texts if "row images lack columns" in text}
    assert told == (
        "binlane: shop.m1: row images lack columns, which are NULL there: "
        # After images lack the key that they do not change.
        + ", ".join(sorted((key, *others)))
    )
    # As JSON they are not there.
    rows = spark.read.format("binlog").option("path", path).option("tables", "shop.m1").load()
    images = [json.loads(row["before"]) for row in rows.where("_op = 'update'").collect()]
    assert images
    assert all(set(image) == {key} for image in images)
