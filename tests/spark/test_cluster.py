"""A standalone cluster: a master and two workers as processes, whose Python has no binlane."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import binlane
from tests.fixture_sets import fixture_set
from tests.landed import current_rows, delta_rows
from tests.servers import ServerFactory, execute
from tests.standalone import Cluster, bare_python, cluster

_PLACE = ("_file", "_pos", "_row", "_op")
_OTHER_VERSION = """
import collections, sys
Version = collections.namedtuple("Version", "major minor micro releaselevel serial")
sys.version_info = Version(3, 99, *sys.version_info[2:])
"""
"""A machine has one Python at most that binlane's tests may count on; so it says that it is another."""


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shared") / "log"
    folder.mkdir()
    for name, data in fixture_set("md1011_rotation").binlogs:
        (folder / name).write_bytes(data)
    return folder


@pytest.fixture(scope="module")
def driven(standalone: Cluster, log: Path) -> dict[str, Any]:
    """What `tests.cluster_driver` found."""
    site = bare_python(log.parent / "other").parents[1]
    packages = next(site.glob("lib/*/site-packages"))
    # Not as sitecustomize: Debian's Python has one before those of environments.
    (packages / "other_version.py").write_text(_OTHER_VERSION)
    (packages / "other_version.pth").write_text("import other_version\n")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.cluster_driver"),
            *(standalone.url, json.dumps(standalone.settings), str(log)),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr + standalone.logs()
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_workers_get_binlane_with_its_kernels(driven: dict[str, Any], standalone: Cluster) -> None:
    here = str(Path(binlane.__file__).parents[1])
    for worker in driven["where"]:
        assert worker["python"] == str(standalone.python)
        assert Path(worker["package"]).is_relative_to(standalone.directory)
        assert Path(worker["kernels"]).is_relative_to(standalone.directory)
        assert here not in worker["path"]
    # Each of both workers unpacked kernels for itself.
    assert len({worker["kernels"] for worker in driven["where"]}) == 2


def test_the_source_reads_on_workers(driven: dict[str, Any], log: Path) -> None:
    expected = {place[:2] for place in images(log)}
    assert {(file, position) for _table, file, position, _row in driven["rows"]} == expected


def test_works_of_lost_executors_are_run_again(driven: dict[str, Any], log: Path) -> None:
    assert driven["dying"] == [len(str(log.parent / "dying"))] * 4


def test_what_may_pass_is_tried_again(driven: dict[str, Any]) -> None:
    assert driven["passing"] == ["came again"]


def test_another_python_is_told(driven: dict[str, Any]) -> None:
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    message, hint = driven["other"]
    assert message.startswith(f"the workers run Python 3.99, this is Python {version}")
    assert "spark.pyspark.python" in hint


def landing(standalone: Cluster, log: Path, lake: Path) -> subprocess.Popen[str]:
    """`binlane land` on the cluster, every work as a task of a job."""
    settings = {**standalone.settings, "spark.binlane.smallBytes": "0"}
    confs = [part for each in settings.items() for part in ("--conf", "=".join(each))]
    command = [sys.executable, "-m", "binlane", "land", str(log), "--into", str(lake)]
    return subprocess.Popen(
        [*command, "--engine", "spark", "--master", standalone.url, *confs],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_landing_survives_the_death_of_an_executor(
    standalone: Cluster, servers: ServerFactory, tmp_path: Path
) -> None:
    source = servers.start("source")
    log, lake = tmp_path / "log", tmp_path / "lake"
    log.mkdir()
    execute(
        source,
        "CREATE DATABASE shop",
        "CREATE TABLE shop.orders (id INT PRIMARY KEY, note VARCHAR(60), n INT)",
    )
    for start in range(0, 80_000, 20_000):
        execute(
            source,
            "INSERT INTO shop.orders SELECT seq, MD5(seq), 0 FROM "
            f"shop.seq_{start + 1}_to_{start + 20_000}",
            f"UPDATE shop.orders SET n = n + 1 WHERE id % 7 = {start % 7}",
            f"DELETE FROM shop.orders WHERE id % 1000 = {start // 20_000}",
            "FLUSH BINARY LOGS",
        )
    for file in source.data_directory.glob("binlog.0*"):
        shutil.copyfile(file, log / file.name)
    driver = landing(standalone, log, lake)
    while driver.poll() is None and not list(lake.glob("changes/*/*/*.parquet")):
        time.sleep(0.02)
    (victim, *_others) = standalone.executors()
    os.kill(victim, signal.SIGKILL)
    _output, said = driver.communicate(timeout=300)
    assert driver.returncode == 0, said + standalone.logs()
    # Both workers had an executor; a third one took the place of the one that died.
    assert len(list(standalone.directory.glob(f"worker-*/{newest_app(standalone)}/*"))) == 3
    expected = execute(source, "SELECT id, note, n FROM shop.orders")
    assert current_rows(lake / "current/shop/orders") == dict.fromkeys(expected, 1)
    changes = delta_rows(lake / "changes/shop/orders")
    landed = zip(*(changes[name].to_pylist() for name in _PLACE), strict=True)
    assert Counter(landed) == images(log)


def images(log: Path) -> Counter[tuple[Any, ...]]:
    """Where each row image of a log stands."""
    names = ("_file", "_position", "_row", "_op")
    return Counter(
        place
        for batch in binlane.scan(sorted(map(str, log.iterdir())), columns=[])
        for place in zip(*(batch.column(name).to_pylist() for name in names), strict=True)
    )


def newest_app(standalone: Cluster) -> str:
    """The last application that ran."""
    return max(path.name for path in standalone.directory.glob("worker-*/app-*"))
