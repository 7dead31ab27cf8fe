"""mtr's tests print at the port what they print at the server itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.suites.mtr import MAIN, SAMPLE, compare_mtr

_ENOUGH = 160


def _check(tests: Sequence[str], directory: Path, at_least: int) -> None:
    for kind, compared in compare_mtr(tests, directory).items():
        assert compared.comparison.run >= at_least
        assert compared.comparison.shown == "", kind
        assert "Traceback" not in compared.log


def test_a_few(tmp_path: Path) -> None:
    _check(SAMPLE, tmp_path, len(SAMPLE))


@pytest.mark.slow
def test_main(tmp_path: Path) -> None:
    _check(MAIN, tmp_path, _ENOUGH)
