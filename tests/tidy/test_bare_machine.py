"""`./run demo` on a Debian that has nothing but git and python3."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from tests.bare_root import NoRootError, make_root, run_in, settings_of_pip

_TEST: Final = "./run test tests/unit/log/codec"
_PASSED: Final = re.compile(r" passed(, [0-9]+ skipped)? in ")
_FORGET_KERNELS: Final = "rm -f .venv/kernels.stamp src/binlane/log/kernels/_compiled_*"


@pytest.fixture
def bare_root(tmp_path: Path) -> Path:
    """The root, with this repository in it."""
    root = tmp_path / "root"
    try:
        make_root(root)
    except NoRootError as error:
        pytest.skip(str(error))
    return root


@pytest.mark.slow
def test_the_demo_on_a_bare_machine(bare_root: Path) -> None:
    settings = settings_of_pip(bare_root)
    shown = run_in(bare_root, "cd ~/binlane && ./run demo", settings, 1200)
    assert "  Installing python3-venv" in shown
    assert "  Compiling the kernels, which make large logs fast, beside" in shown
    last = shown.strip().splitlines()[-1]
    assert "checks held" in last
    # Nothing but the rest of the kernels is waited for from now on.
    shown = run_in(bare_root, f"cd ~/binlane && {_TEST}", settings, 1200)
    assert _PASSED.search(shown.strip().splitlines()[-1])
    assert "without kernels" not in shown
    # Though python3-venv came with an update of Python itself.
    assert "Making .venv" not in shown
    hidden = f"cd ~/binlane && {_FORGET_KERNELS}; chmod a-x /usr/bin/*gcc*; {_TEST} && {_TEST}"
    shown = run_in(bare_root, hidden, settings, 1200)
    assert len(_PASSED.findall(shown)) == 2
    assert shown.count("run: all works without kernels, large logs take longer") == 1
