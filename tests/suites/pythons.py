"""Environments of Python that suites have to themselves, and suites that pytest runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from tests.suites.packages import fetched, run

_TIMEOUT_S: Final = 1800
_VARYING: Final = re.compile(r"0x[0-9a-f]+|\b\d{4,}\b|\d\.\d+(?=s\b)")


def environment(name: str, *requirements: str) -> Path:
    """The interpreter of an environment with packages of PyPI; their versions are pinned."""

    def make(folder: Path) -> None:
        run([sys.executable, "-m", "venv", str(folder / "venv")], folder)
        install = ["-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        run([str(folder / "venv/bin/python"), *install, *requirements], folder)

    return fetched(f"python-{name}", make) / "venv/bin/python"


def run_pytest(
    python: Path,
    folder: Path,
    arguments: Sequence[str],
    *,
    variables: Mapping[str, str],
    report: Path,
) -> dict[str, str]:
    """Run tests in a folder; what came of each, by its name.

    Args:
        python: The interpreter.
        folder: Where pytest is run.
        arguments: Of pytest.
        variables: Of the environment.
        report: The file that pytest writes.

    Raises:
        AssertionError: If no test was run.
    """
    command = ["nice", "-n", "10", str(python), "-m", "pytest", "-q", f"--junitxml={report}"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **variables},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    assert report.exists(), done.stdout[-3000:] + done.stderr[-3000:]
    outcomes = {}
    for case in ET.parse(report).iter("testcase"):
        outcome = "passed"
        for child in case:
            if child.tag == "skipped":
                outcome = "skipped"
            elif child.tag in {"failure", "error"}:
                message = (child.get("message") or "").replace(str(report.parent), "DIRECTORY")
                outcome = told(child.tag, message)
        outcomes[f"{case.get('classname')}.{case.get('name')}"] = outcome
    assert outcomes, done.stdout[-3000:]
    return outcomes


def told(outcome: str, message: str) -> str:
    """An outcome with its message, without what differs from run to run."""
    return f"{outcome}: {_VARYING.sub('N', ' '.join(message.split()))[:300]}"
