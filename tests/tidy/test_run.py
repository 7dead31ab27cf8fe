"""`./run` tells what it can do, and says no to what it cannot."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.rules import ROOT


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(ROOT / "run"), *arguments], capture_output=True, text=True, check=False
    )


def test_alone_it_lists_its_commands() -> None:
    done = _run()
    assert done.returncode == 0
    assert set(re.findall(r"^  ([a-z]+) ", done.stdout, re.MULTILINE)) == {
        "setup",
        "demo",
        "test",
        "lint",
        "docs",
        "bench",
        "wheel",
    }


def test_an_unknown_command_is_wrong_usage() -> None:
    done = _run("nonsense")
    assert done.returncode == 2
    assert "unknown command: nonsense" in done.stderr


def test_ci_does_the_same_as_a_person() -> None:
    assert '/../run" test' in (ROOT / ".ci/run").read_text()


# Stands for Python: notes what it is asked for, and ends as it is told for that part.
_PYTHON = """#!/bin/sh
case "$*" in
*--ignore=*) part=others ;;
*tests/system*) part=waiting ;;
*) part=working ;;
esac
echo "$@" >"$part.asked"
echo "$part are done"
exit "$(cat "$part.status")"
"""


@pytest.mark.parametrize("failing", [None, "waiting", "working", "others"])
def test_all_tests_are_run_in_parts_that_leave_nothing_out(
    failing: str | None, tmp_path: Path
) -> None:
    shutil.copy(ROOT / "run", tmp_path)
    python = tmp_path / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(_PYTHON)
    python.chmod(0o755)
    (tmp_path / ".run").mkdir()
    parts = ("waiting", "others", "working")
    for part in parts:
        (tmp_path / f"{part}.status").write_text("1" if part == failing else "0")
    script = 'source ./run help >/dev/null; run_tests -m ""'
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == (0 if failing is None else 1)
    assert done.stdout == "".join(f"{part} are done\n" for part in parts)
    waiting, others, working = (
        (tmp_path / f"{part}.asked").read_text().removeprefix("-m pytest -m  ").split()
        for part in parts
    )
    folders = [*waiting, *(each for each in working if each.startswith("tests/"))]
    assert all((ROOT / folder).is_dir() for folder in folders)
    assert others[: len(folders) + 1] == ["tests", *(f"--ignore={each}" for each in folders)]
