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
*) part=waiting ;;
esac
echo "$@" >"$part.asked"
echo "$part are done"
exit "$(cat "$part.status")"
"""


@pytest.mark.parametrize("waiting", [0, 1])
@pytest.mark.parametrize("others", [0, 1])
def test_all_tests_are_run_in_two_parts_that_leave_nothing_out(
    waiting: int, others: int, tmp_path: Path
) -> None:
    shutil.copy(ROOT / "run", tmp_path)
    python = tmp_path / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(_PYTHON)
    python.chmod(0o755)
    (tmp_path / ".run").mkdir()
    (tmp_path / "waiting.status").write_text(str(waiting))
    (tmp_path / "others.status").write_text(str(others))
    script = 'source ./run help >/dev/null; run_tests -m ""'
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == max(waiting, others)
    assert done.stdout == "waiting are done\nothers are done\n"
    head = "-m pytest -m  "
    asked = (tmp_path / "waiting.asked").read_text()
    assert asked.startswith(head)
    folders = asked.removeprefix(head).split()
    assert all((ROOT / folder).is_dir() for folder in folders)
    ignored = " ".join(f"--ignore={folder}" for folder in folders)
    assert (tmp_path / "others.asked").read_text().startswith(f"{head}tests {ignored} ")
