"""The change data feed and the history of tables that are landed from a real server's log."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable

from binlane.errors import ConfigError
from binlane.live.provision.private_server import PrivateServer
from binlane.tables.landing.landing import land
from binlane.tables.landing.landing_settings import LandingSettings
from binlane.tables.landing.range_work import FormatName, Mode
from binlane.tables.landing.tables.iceberg import open_catalog
from binlane.version import __version__
from tests.feeds import check_replay
from tests.servers import execute

STAGES = (
    (
        "CREATE DATABASE fed",
        (
            "CREATE TABLE fed.orders (id INT UNSIGNED, part VARCHAR(9), at DATETIME(6),"
            " total DECIMAL(10,2), PRIMARY KEY (id, part))"
        ),
        "CREATE TABLE fed.plain (n INT, what TEXT)",
        "CREATE TABLE fed.parent (id INT PRIMARY KEY)",
        (
            "CREATE TABLE fed.child (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent)"
            " REFERENCES fed.parent (id) ON DELETE SET NULL)"
        ),
        "INSERT INTO fed.orders SELECT seq, 'a', '2026-01-01 10:00:00.000001', seq / 4 FROM fed.seq_1_to_500",
        "INSERT INTO fed.plain SELECT seq % 5, 'x' FROM fed.seq_1_to_50",
        "INSERT INTO fed.parent VALUES (1), (2)",
        "INSERT INTO fed.child VALUES (1, 1), (2, 2), (3, NULL)",
        "FLUSH BINARY LOGS",
    ),
    (
        "UPDATE fed.orders SET total = total + 1 WHERE id % 3 = 0",
        "UPDATE fed.orders SET id = id + 1000 WHERE id % 50 = 0",
        "DELETE FROM fed.orders WHERE id % 7 = 0",
        "UPDATE fed.plain SET what = 'y' WHERE n = 1 LIMIT 3",
        "DELETE FROM fed.parent WHERE id = 1",
        "FLUSH BINARY LOGS",
    ),
    (
        "INSERT INTO fed.orders VALUES (7, 'back', NULL, NULL)",
        "ALTER TABLE fed.orders ADD COLUMN note VARCHAR(20) DEFAULT 'none'",
        "UPDATE fed.orders SET note = 'old' WHERE id < 20",
        "DELETE FROM fed.plain WHERE n = 3",
        "FLUSH BINARY LOGS",
    ),
    (
        "ALTER TABLE fed.orders DROP COLUMN total, MODIFY id BIGINT UNSIGNED",
        "DELETE FROM fed.orders WHERE id > 400",
        "TRUNCATE TABLE fed.plain",
        "INSERT INTO fed.plain VALUES (1, 'new')",
        "FLUSH BINARY LOGS",
    ),
)


@pytest.fixture(scope="module")
def logs(mariadb_server: PrivateServer, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """What the log was after each stage."""
    found = []
    execute(mariadb_server, "FLUSH BINARY LOGS")
    before = {path.name for path in mariadb_server.data_directory.glob("binlog.0*")}
    first = max(before)
    for stage in STAGES:
        execute(mariadb_server, *stage)
        log = tmp_path_factory.mktemp("log")
        for file in sorted(mariadb_server.data_directory.glob("binlog.0*")):
            if file.name >= first:
                shutil.copyfile(file, log / file.name)
        found.append(log)
    return found


def test_each_version_comes_of_the_one_before(logs: list[Path], tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    for number, log in enumerate(logs):
        # Who asked for it once need not ask again.
        cdf = True if number == 0 else None
        land(str(log), str(lake), LandingSettings(cdf=cdf, batch_bytes=4000))
    tables = lake / "current/fed"
    kinds = check_replay(str(tables / "orders"), ["id", "part"])
    assert kinds["update_preimage"] >= 150
    assert kinds["delete"] >= 500, "columns changed, rows went"
    assert check_replay(str(tables / "plain"), [])["delete"] == 3 + 10 + 40
    assert check_replay(str(tables / "child"), ["id"])["update_postimage"] == 1
    assert not (lake / "changes/fed/orders/_change_data").exists()


def test_history_tells_what_a_commit_did_and_where_it_comes_from(
    logs: list[Path], mariadb_server: PrivateServer, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    for number, log in enumerate(logs):
        land(str(log), str(lake), LandingSettings(cdf=number > 0))
    history = DeltaTable(str(lake / "current/fed/orders")).history()
    told = [each["operationParameters"].get("binlane") for each in reversed(history)]
    assert told[0] is None, "it was made"
    assert [each for each in told if each] == [
        *("merge", "merge", "merge", "reshape", "merge", "reshape", "merge")
    ]
    newest = history[0]
    assert newest["operation"] == "WRITE"
    assert int(newest["operationMetrics"]["numTargetRowsDeleted"]) > 50
    assert newest["operationMetrics"]["numTargetRowsInserted"] == "0"
    note = json.loads(newest["userMetadata"])
    rows = execute(mariadb_server, f"SHOW BINLOG EVENTS IN '{note['file']}'")
    at = [str(row[5]) for row in rows if str(row[1]) == note["position"]]
    assert len(at) == 1
    assert note["binlane"] == __version__
    groups = [str(row[5]) for row in rows if str(row[2]) == "Gtid"]
    assert any(note["gtid"] in group for group in groups)
    plain = DeltaTable(str(lake / "current/fed/plain")).history()
    emptied = next(
        each for each in plain if each["operationParameters"].get("binlane") == "truncate"
    )
    assert emptied["operationMetrics"]["numDeletedRows"] == "40"
    changes = DeltaTable(str(lake / "changes/fed/orders")).history()
    assert {json.loads(each["userMetadata"])["file"] for each in changes if "userMetadata" in each}
    assert {each["operationParameters"].get("binlane") for each in changes} >= {"append"}


@pytest.mark.parametrize("table_format", [FormatName.ICEBERG, FormatName.PARQUET])
def test_other_formats_tell_the_place_too(
    table_format: FormatName, logs: list[Path], tmp_path: Path
) -> None:
    settings = LandingSettings(modes=frozenset({Mode.CURRENT}), format=table_format)
    land(str(logs[1]), str(tmp_path), settings)
    if table_format is FormatName.PARQUET:
        manifest = json.loads((tmp_path / "current/fed/orders/_manifest.json").read_text())
        told = {f"binlane.{name}": value for name, value in manifest["last"].items()}
    else:
        catalog = open_catalog(str(tmp_path), {})
        found = catalog.load_table(("fed", "orders")).current_snapshot()
        catalog.close()
        assert found is not None
        assert found.summary is not None
        told = dict(found.summary.additional_properties)
    assert told["binlane.operation"] == "merge"
    assert told["binlane.file"].startswith("binlog.")
    assert int(told["binlane.position"]) > 4
    assert told["binlane.gtid"].count("-") == 2
    assert int(told["binlane.rows-inserted"]) >= 400


def test_a_feed_is_of_current_tables_in_delta(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="current tables in Delta"):
        LandingSettings(cdf=True, format=FormatName.ICEBERG)
    with pytest.raises(ConfigError, match="current tables in Delta"):
        LandingSettings(cdf=True, modes=frozenset({Mode.CHANGES}))
    command = [sys.executable, "-m", "binlane", "land", "x", "--into", str(tmp_path), "--cdf"]
    command += ["--format", "parquet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "current tables in Delta (cdf)" in done.stderr
