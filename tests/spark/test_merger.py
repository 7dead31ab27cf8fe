"""Spark's own MERGE into Delta tables, which needs Delta's jars."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from binlane.errors import ConfigError
from binlane.tables.spark.merger import merge_settings
from tests.feeds import by_kind, check_replay, feed_of
from tests.landed import current_rows
from tests.servers import ServerFactory, execute

STAGES = (
    (
        "CREATE DATABASE shop",
        (
            "CREATE TABLE shop.orders (id INT UNSIGNED, `part``s` VARCHAR(9), at DATETIME(6),"
            " seen TIMESTAMP NULL, total DECIMAL(10,2), raw BLOB, PRIMARY KEY (id, `part``s`))"
        ),
        "CREATE TABLE shop.plain (n INT, what TEXT)",
        (
            "INSERT INTO shop.orders SELECT seq, 'a', '2026-01-01 10:00:00.000001', '2026-01-01',"
            " seq / 4, UNHEX('00ff') FROM shop.seq_1_to_500"
        ),
        "INSERT INTO shop.plain SELECT seq % 5, 'x' FROM shop.seq_1_to_50",
        "FLUSH BINARY LOGS",
        "UPDATE shop.orders SET total = total + 1 WHERE id % 3 = 0",
        "UPDATE shop.orders SET id = id + 1000 WHERE id % 50 = 0",
        "DELETE FROM shop.orders WHERE id % 7 = 0",
        "FLUSH BINARY LOGS",
        "INSERT INTO shop.orders VALUES (7, 'back', NULL, NULL, NULL, NULL)",
    ),
    (
        "ALTER TABLE shop.orders ADD COLUMN note VARCHAR(20) DEFAULT 'none'",
        "UPDATE shop.orders SET note = 'old' WHERE id < 20",
        "DELETE FROM shop.plain WHERE n = 3",
        "DELETE FROM shop.orders WHERE id > 400",
        "FLUSH BINARY LOGS",
        "INSERT INTO shop.orders (id, `part``s`) VALUES (401, 'new')",
    ),
)


@pytest.fixture
def packages() -> None:
    """Skips the test unless this machine is said to have jars, or to reach where they come from."""
    if not os.environ.get("BINLANE_SPARK_PACKAGES"):
        pytest.skip("needs Delta's jars: set BINLANE_SPARK_PACKAGES=1 where Spark can fetch them")


@pytest.mark.slow
def test_spark_merges_what_the_server_has(
    packages: None, servers: ServerFactory, tmp_path: Path
) -> None:
    source = servers.start("source")
    log, lake = tmp_path / "log", tmp_path / "lake"
    log.mkdir()
    for stage in STAGES:
        execute(source, *stage)
        for file in source.data_directory.glob("binlog.0*"):
            shutil.copyfile(file, log / file.name)
        land(log, lake)
        for name in ("orders", "plain"):
            rows = execute(source, f"SELECT * FROM shop.{name}")
            assert rows
            found = current_rows(lake / "current/shop" / name)
            assert found == Counter(tuple(map(in_utc, row)) for row in rows)
    history = DeltaTable(str(lake / "current/shop/orders")).history()
    merges = [commit for commit in history if commit["operation"] == "MERGE"]
    assert len(merges) >= 2
    assert all("spark" in commit["engineInfo"].lower() for commit in merges)
    before = DeltaTable(str(lake / "current/shop/orders")).version()
    land(log, lake)
    assert DeltaTable(str(lake / "current/shop/orders")).version() == before


def in_utc(value: Any) -> Any:
    """`seen` is a moment; the only other times have microseconds."""
    is_moment = isinstance(value, datetime) and not value.microsecond
    return value.replace(tzinfo=UTC) if is_moment else value


def land(log: Path, lake: Path, *options: str, merge: str = "spark") -> None:
    """One landing by Spark, which merges."""
    command = [sys.executable, "-m", "binlane", "land", str(log), "--into", str(lake), *options]
    command += [
        "--engine",
        "spark",
        "--master",
        "local[2]",
        "--conf",
        f"spark.binlane.merge={merge}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stderr


def test_settings_name_what_is_needed_and_keep_what_was_given() -> None:
    assert merge_settings({"spark.a": "1"}) == {"spark.a": "1"}
    found = merge_settings({"spark.binlane.merge": "spark", "spark.jars.packages": "a:b:1"})
    assert found["spark.jars.packages"].startswith("a:b:1,io.delta:delta-spark_")
    mine = {
        "spark.binlane.merge": "spark",
        "spark.jars.packages": "io.delta:delta-spark_4.1_2.13:1",
    }
    assert merge_settings(mine)["spark.jars.packages"] == mine["spark.jars.packages"]
    with pytest.raises(ConfigError, match="nothing merges by magic"):
        merge_settings({"spark.binlane.merge": "magic"})


READ_FEED = """
import json, sys
from binlane.tables.spark.merger import merge_settings
from binlane.tables.spark.spark_session import build_session
spark = build_session("local[2]", settings=merge_settings({"spark.binlane.merge": "spark"}))
for name in sys.argv[2:]:
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    rows = reader.option("startingVersion", 1).load(f"{sys.argv[1]}/{name}")
    for row in rows.drop("_commit_timestamp").toJSON().collect():
        print("row", name, row)
    history = spark.sql(f"DESCRIBE HISTORY delta.`{sys.argv[1]}/{name}`")
    for row in history.drop("timestamp").toJSON().collect():
        print("commit", name, row)
"""


@pytest.mark.slow
@pytest.mark.parametrize("merge", ["tasks", "spark"])
def test_spark_reads_the_feed_that_was_written_and_writes_one(
    merge: str, packages: None, servers: ServerFactory, tmp_path: Path
) -> None:
    source = servers.start("source")
    log, lake = tmp_path / "log", tmp_path / "lake"
    log.mkdir()
    statements = [statement.replace("`part``s`", "part") for statement in STAGES[0]]
    # Delta on Spark cannot tell changes of a table with such a name.
    odd = "CREATE TABLE shop.odd (id INT PRIMARY KEY, `a``b` INT)"
    statements[3:3] = [odd, "INSERT INTO shop.odd VALUES (1, 1), (2, 1)"]
    statements.insert(-3, "UPDATE shop.odd SET `a``b` = 2 WHERE id = 1")
    for statement in statements:
        execute(source, statement)
        if statement.startswith("FLUSH"):
            for file in source.data_directory.glob("binlog.0*"):
                shutil.copyfile(file, log / file.name)
            land(log, lake, "--cdf", merge=merge)
    tables = lake / "current/shop"
    command = [sys.executable, "-c", READ_FEED, str(tables), "orders", "plain", "odd"]
    read = subprocess.run(command, capture_output=True, text=True, check=True, timeout=500)
    lines = [line.split(" ", 2) for line in read.stdout.splitlines()]
    for name, key in (("orders", ["id", "part"]), ("plain", []), ("odd", ["id"])):
        uri = str(tables / name)
        kinds = check_replay(uri, key)
        assert kinds["update_preimage"] == {"orders": 140, "plain": 0, "odd": 1}[name]
        rows = [json.loads(text) for kind, of, text in lines if (kind, of) == ("row", name)]
        for version in range(1, DeltaTable(uri).version() + 1):
            ours = feed_of(uri, version)
            spark = by_kind([row for row in rows if row["_commit_version"] == version])
            assert {kind: len(found) for kind, found in spark.items()} == {
                kind: len(found) for kind, found in ours.items()
            }
            for kind, found in ours.items():
                names = [name for name in found[0] if name in {"id", "part", "n", "what", "_seq"}]
                assert Counter(tuple(row.get(name) for name in names) for row in found) == Counter(
                    tuple(row.get(name) for name in names) for row in spark[kind]
                )
    commits = [json.loads(text) for kind, of, text in lines if (kind, of) == ("commit", "orders")]
    operation = "MERGE" if merge == "spark" else "WRITE"
    newest = next(each for each in commits if each["operation"] == operation)
    assert json.loads(newest["userMetadata"])["file"].startswith("binlog.")
    assert newest["operationMetrics"]["numTargetRowsDeleted"]
