"""One Spark session for all tests here: a JVM takes longer to start than all of them to run."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from binlane.tables.spark.spark_session import build_session
from tests.fixture_sets import fixture_set


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session on two cores, whose log goes into a file."""
    log_file = tmp_path_factory.mktemp("spark") / "spark.log"
    session = build_session("local[2]", log_file=log_file)
    yield session
    session.stop()


@pytest.fixture(scope="module", autouse=True)
def _no_sockets_of_threads_that_ended() -> Iterator[None]:
    """Collect what PySpark leaves of ended threads here: it would be an error of some later test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="session")
def fixture_logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directories with the binlog files of some fixtures, by name."""
    folder = tmp_path_factory.mktemp("logs")
    for name in (
        "md1011_rotation",
        "md1011_format_row",
        "md1011_metadata_full",
        "md1011_types_numeric",
        "md118_txn",
    ):
        (folder / name).mkdir()
        for file, data in fixture_set(name).binlogs:
            (folder / name / file).write_bytes(data)
    return folder
