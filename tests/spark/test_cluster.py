"""A standalone cluster: a master and two workers as processes, whose Python has no binlane."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import binlane
from tests.fixture_sets import fixture_set
from tests.standalone import Cluster, bare_python, cluster

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
    (next(site.glob("lib/*/site-packages")) / "sitecustomize.py").write_text(_OTHER_VERSION)
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
    expected = {
        (batch.column("_file")[i].as_py(), batch.column("_position")[i].as_py())
        for batch in binlane.scan(sorted(map(str, log.iterdir())), columns=[])
        for i in range(batch.num_rows)
    }
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
