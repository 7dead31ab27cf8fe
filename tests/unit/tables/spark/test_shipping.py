"""The archive that workers get, in a Python that has no binlane."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pyspark
import pytest

import binlane
from binlane.log.kernels.load import FOLDER, is_compiled
from binlane.tables.spark.spark_engine import write_archive
from tests.fixture_sets import fixture_set
from tests.standalone import bare_python

_SCAN = """
import sys
import binlane
from binlane.log.kernels import load
from binlane.binlogs.store import byte_source

byte_source.FAST_BYTES_MIN = 0
rows = sum(batch.num_rows for batch in binlane.scan(sys.argv[1], columns=[]))
used = {name for name in vars(load.kernels()) if not name.startswith("_")}
print(rows, load.is_compiled(["scan", "rows"]), "scan" in used, load.FOLDER)
"""


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "brought" / "binlane.zip"
    path.parent.mkdir()
    write_archive(path)
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (name, data), *_ = fixture_set("md1011_engines_row").files.items()
    path = tmp_path / name
    path.write_bytes(data)
    return path


def run_bare(python: Path, archive: Path, log: Path) -> list[str]:
    """Rows, whether kernels are compiled, whether one was loaded, where they lie."""
    done = subprocess.run(
        [str(python), "-c", _SCAN, str(log)],
        env={"PYTHONPATH": str(archive), "PATH": os.environ["PATH"], "HOME": str(archive.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_an_archive_brings_kernels_which_are_unpacked_once(
    tmp_path: Path, archive: Path, log: Path
) -> None:
    python = bare_python(tmp_path / "python")
    rows = sum(batch.num_rows for batch in binlane.scan(str(log), columns=[]))
    compiled = is_compiled(["scan", "rows"])
    first = run_bare(python, archive, log)
    assert first[:3] == [str(rows), str(compiled), "True"]
    folder = Path(first[3])
    assert folder.parents[3] == archive.parent
    made = folder.stat().st_ino
    assert run_bare(python, archive, log) == first
    assert folder.stat().st_ino == made
    assert sorted(path.name for path in archive.parent.iterdir()) == [
        "binlane.zip",
        folder.parents[2].name,
    ]


def test_an_archive_that_changed_is_unpacked_anew(tmp_path: Path, archive: Path, log: Path) -> None:
    python = bare_python(tmp_path / "python")
    first = run_bare(python, archive, log)[3]
    os.utime(archive, ns=(1, 1))
    assert run_bare(python, archive, log)[3] != first


def test_workers_need_no_more_packages_than_the_guide_names(tmp_path: Path, archive: Path) -> None:
    python = bare_python(tmp_path / "python")
    packed = sorted((Path(pyspark.__file__).parent / "python" / "lib").glob("*.zip"))
    path = os.pathsep.join(map(str, [archive, *packed]))
    modules = (
        *(
            "pyspark_binlane",
            "binlane.tables.landing.tasks",
            "binlane.tables.landing.tables.merging",
        ),
        *("binlane.tables.landing.snapshot.snapshot_reader", "binlane.tables.spark.spark_engine"),
    )
    done = subprocess.run(
        [str(python), "-c", f"import {', '.join(modules)}"],
        env={"PYTHONPATH": path, "PATH": os.environ["PATH"], "HOME": str(archive.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_files_are_used_where_they_are() -> None:
    assert Path(binlane.__file__).parent / "log/kernels" == FOLDER
