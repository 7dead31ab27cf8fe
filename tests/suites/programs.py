"""Suites whose own programs run them: what came of each test is read from what they print."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

_TIMEOUT_S: Final = 900


def needed(program: str) -> str:
    """The path of a program of this machine; skips the test where there is none."""
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"there is no {program} here")
    return path


def printed(
    command: Sequence[str],
    folder: Path,
    variables: Mapping[str, str],
    *,
    timeout_s: float = _TIMEOUT_S,
) -> tuple[int | None, str]:
    """Run a program in a folder.

    Returns:
        Its exit status, None if it did not end in time, and all that it printed.
    """
    try:
        done = subprocess.run(
            ["nice", "-n", "10", *command],
            cwd=folder,
            env={"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8", **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        return None, (error.stdout or b"").decode("utf-8", "replace")
    return done.returncode, done.stdout.decode("utf-8", "replace")


def matched(pattern: re.Pattern[str], text: str) -> dict[str, str]:
    """Outcomes by name, of a pattern with groups `name` and `outcome`."""
    return {found["name"]: found["outcome"] for found in pattern.finditer(text)}
