"""Works as Spark jobs, on a local master; `test_cluster.py` has the rest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from binlane.errors import BinlaneError, PeerError, StoreError, TruncatedError
from binlane.tables.spark.spark_engine import SparkEngine


def squared(work: int) -> tuple[int, int]:
    return work * work, os.getpid()


def failing(work: int) -> int:
    if work == 3:
        raise TruncatedError("the file ends early").at("shop.000001", 256)
    if work == 5:
        raise StoreError("no room", path="/data", hint="make some")
    return work


def broken(work: int) -> int:
    raise ZeroDivisionError(f"work {work}")


def test_results_come_in_the_order_of_works_from_other_processes(spark: SparkSession) -> None:
    results = list(SparkEngine(spark).run(squared, range(7)))
    assert [value for value, _process in results] == [0, 1, 4, 9, 16, 25, 36]
    assert os.getpid() not in {process for _value, process in results}


def test_nothing_to_do_starts_no_job(spark: SparkSession) -> None:
    engine = SparkEngine(spark)
    context = spark.sparkContext
    context.setJobGroup("nothing", "no works")
    try:
        assert list(engine.run(squared, [])) == []
        assert not context.statusTracker().getJobIdsForGroup("nothing")
        assert len(list(engine.run(squared, [1]))) == 1
        assert len(context.statusTracker().getJobIdsForGroup("nothing")) == 1
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # takes it away


def test_the_first_error_of_binlane_is_raised_as_it_was(spark: SparkSession) -> None:
    with pytest.raises(TruncatedError) as caught:
        list(SparkEngine(spark).run(failing, [1, 2, 3, 4, 5]))
    assert (caught.value.file, caught.value.position) == ("shop.000001", 256)
    with pytest.raises(StoreError) as other:
        list(SparkEngine(spark).run(failing, [5]))
    assert (other.value.path, other.value.hint) == ("/data", "make some")


def test_another_error_is_one_line_and_where_to_look(spark: SparkSession) -> None:
    with pytest.raises(BinlaneError) as caught:
        list(SparkEngine(spark).run(broken, [8]))
    assert str(caught.value) == "a Spark job failed: ZeroDivisionError: work 8"
    assert caught.value.hint
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def passing_once(work: str) -> str:
    """Fails the first time."""
    if not Path(work).exists():
        Path(work).touch()
        raise PeerError("gone", peer="mariadb://h:3306", phase="dump")
    return "again"


def test_a_local_master_tries_once(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PeerError):
        list(SparkEngine(spark).run(passing_once, [str(tmp_path / "tried")]))
