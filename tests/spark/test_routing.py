"""`route` on Spark's executors makes the binlogs of one process."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from binlane.binlogs.route.job import route_files
from binlane.binlogs.store.settings import StoreSettings
from binlane.tables.spark.spark_engine import SparkEngine
from tests.routed_files import outputs, request, written


def test_files_are_routed_by_tasks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = written("md1011_rotation", tmp_path / "in")
    scopes = ("LOG ALL", "LOG(shop)")
    settings = StoreSettings(max_binlog_size_bytes=4096)
    one = route_files(request(paths, tmp_path / "one", *scopes, settings=settings))
    engine = SparkEngine(spark)
    monkeypatch.setattr(engine, "_small_bytes", 0)
    asked = request(paths, tmp_path / "spark", *scopes, settings=settings)
    report = route_files(asked, engine=engine)
    assert len(paths) > 1
    assert outputs(tmp_path / "spark") == outputs(tmp_path / "one")
    assert (report.counts, report.notes) == (one.counts, one.notes)
