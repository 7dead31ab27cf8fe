"""`tools/unpack-mysql` leaves nothing half done, and says what it lacks."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.rules import ROOT

TOOL = str(ROOT / "tools/unpack-mysql")


def _unpack(*arguments: str, alone: bool = False) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*(("unshare", "--net") if alone else ()), TOOL, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["--help"], [""]])
def test_wrong_usage(arguments: list[str]) -> None:
    done = _unpack(*arguments)
    assert done.returncode == 2
    assert "usage: unpack-mysql FOLDER" in done.stderr


def test_a_folder_that_is_complete_is_left_as_it_is(tmp_path: Path) -> None:
    programs = [tmp_path / name for name in ("exec", "usr/bin/mysqldump")]
    for program in programs:
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    assert _unpack(str(tmp_path)).returncode == 0
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == programs


def test_without_a_network_it_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "apt-get"))):
        pytest.skip("needs root, unshare and apt")
    done = _unpack(str(tmp_path / "mysql"), alone=True)
    assert done.returncode == 3
    assert "unpack-mysql: " in done.stderr
    assert "\nhint: " in done.stderr
    assert list(tmp_path.iterdir()) == []
