"""`./run` tells what it can do, and says no to what it cannot."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
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
        "wheels",
    }


def test_an_unknown_command_is_wrong_usage() -> None:
    done = _run("nonsense")
    assert done.returncode == 2
    assert "unknown command: nonsense" in done.stderr


def test_ci_does_the_same_as_a_person_of_a_bare_machine(tmp_path: Path) -> None:
    script = tmp_path / ".ci/run"
    script.parent.mkdir()
    shutil.copy(ROOT / ".ci/run", script)
    (tmp_path / "run").write_text('#!/bin/sh\necho "$@" "$(command -v python3)"\n')
    (tmp_path / "run").chmod(0o755)
    others = tmp_path / "bin"
    others.mkdir()
    (others / "python3").write_text("#!/bin/sh\n")
    (others / "python3").chmod(0o755)
    done = subprocess.run(
        ["bash", str(script), "tests/tidy"],
        cwd=others,
        env={"PATH": f"{others}:{os.environ['PATH']}", "CI": "true"},
        capture_output=True,
        text=True,
        check=True,
    )
    bare = shutil.which("python3", path="/usr/bin:/bin:/usr/sbin:/sbin") or ""
    assert done.stdout == f"test tests/tidy {bare}\n"


# Stands for Python: notes what it is asked for, and ends as it is told for that part. System tests
# last until the others are done with what is behind.
_PYTHON = """#!/bin/sh
case "$*" in
*--ignore=*) part=others ;;
*tests/system*) part=system ;;
*tests/rows*) part=rows ;;
*tests/faults*) part=faults ;;
*tests/spark*) part=spark ;;
*) part=land ;;
esac
echo "$@" >>"$part.asked"
echo "$part are done"
[ $part != system ] || until [ -e land.asked ]; do sleep 0.01; done
exit "$(cat "$part.status")"
"""


@pytest.mark.parametrize("failing", [None, "system", "others", "rows", "faults", "spark", "land"])
def test_all_tests_are_run_in_parts_that_leave_nothing_out(
    failing: str | None, tmp_path: Path
) -> None:
    shutil.copy(ROOT / "run", tmp_path)
    python = tmp_path / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(_PYTHON)
    python.chmod(0o755)
    (tmp_path / ".run").mkdir()
    parts = ("system", "others", "rows", "faults", "spark", "land")
    for part in parts:
        (tmp_path / f"{part}.status").write_text("1" if part == failing else "0")
    script = 'source ./run help >/dev/null; run_tests -m ""'
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == (0 if failing is None else 1)
    assert done.stdout == "".join(f"{part} are done\n" for part in parts)
    asked = {
        part: (tmp_path / f"{part}.asked").read_text().removeprefix("-m pytest -m  ").split()
        for part in parts
    }
    folders = [f"tests/{part}" for part in parts if part != "others"]
    assert all((ROOT / folder).is_dir() for folder in folders)
    assert asked["others"][: len(folders) + 1] == [
        "tests",
        *(f"--ignore={each}" for each in folders),
    ]
    # Each by one of both, once.
    assert all(asked[each.removeprefix("tests/")].count(each) == 1 for each in folders)


def test_who_is_done_first_takes_what_is_behind(tmp_path: Path) -> None:
    """The same where system tests are done first."""
    shutil.copy(ROOT / "run", tmp_path)
    python = tmp_path / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(
        '#!/bin/sh\necho "$*"\n'
        'case "$*" in *--ignore=*) until [ -e landed ]; do sleep 0.01; done ;;\n'
        "*tests/land*) : >landed ;; esac\n"
    )
    python.chmod(0o755)
    (tmp_path / ".run").mkdir()
    script = "source ./run help >/dev/null; run_tests"
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
    )
    places = [
        next(word for word in line.split() if word.startswith("tests"))
        for line in done.stdout.splitlines()
    ]
    assert places == [
        *("tests/system", "tests/rows", "tests/faults", "tests/spark", "tests/land"),
        "tests",
    ]


@pytest.mark.parametrize("is_kept", [False, True])
def test_setup_compiles_modules_where_python_keeps_none(tmp_path: Path, *, is_kept: bool) -> None:
    package = tmp_path / "binlane"
    (package / "cli").mkdir(parents=True)
    for name in ("__init__.py", "cli/__init__.py", "cli/cat.py"):
        (package / name).write_text("")
    (package / "broken.py").write_text("import a_package_that_is_not_there\n")
    (package / "__main__.py").write_text("raise SystemExit(1)\n")
    (tmp_path / ".run").mkdir()
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/python").symlink_to(sys.executable)
    kept = {"PYTHONDONTWRITEBYTECODE": "" if is_kept else "1"}
    script = (ROOT / "run").read_text().removesuffix('main "$@"\n')
    (tmp_path / "run").write_text(script + "compile_modules\n")
    subprocess.run(
        ["bash", str(tmp_path / "run")],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path), **kept},
        check=True,
        stderr=subprocess.DEVNULL,
    )
    compiled = {path.name.partition(".")[0] for path in tmp_path.rglob("*.pyc")}
    assert compiled == (set() if is_kept else {"__init__", "cat", "broken"})
