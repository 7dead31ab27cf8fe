"""A wheel that this repository builds, in an environment of its own (`tests/wheel.py`)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from binlane.log.kernels.build import missing_tools
from tests.rules import ROOT


@pytest.mark.slow
@pytest.mark.skipif(bool(missing_tools()), reason="kernels cannot be compiled here")
def test_a_wheel_brings_kernels() -> None:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("just")), "wheel"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "the wheel's kernels are used" in done.stdout
