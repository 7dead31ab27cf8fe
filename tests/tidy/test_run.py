"""`./run` tells what it can do, and says no to what it cannot."""

from __future__ import annotations

import re
import subprocess

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
