"""mtr's tests print at the port what they print at the server itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.suites.mtr import MAIN, SAMPLE, compare_mtr

_PIECES = 16
_PASS_AT_LEAST = 0.9
"""Such a part of the tests that they are known to pass at the server, whatever the machine."""


def _check(tests: Sequence[str], directory: Path) -> None:
    for kind, compared in compare_mtr(tests, directory).items():
        assert compared.comparison.run >= _PASS_AT_LEAST * len(tests)
        assert compared.comparison.shown == "", kind
        assert "Traceback" not in compared.log


def test_a_few(tmp_path: Path) -> None:
    _check(SAMPLE, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("piece", range(_PIECES))
def test_main(piece: int, tmp_path: Path) -> None:
    _check(MAIN[piece::_PIECES], tmp_path)
