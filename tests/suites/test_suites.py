"""Suites of other projects come out at the port as they do at the server itself.

They are fetched while the tests run, so these are slow ones.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.suites.registry import SUITES
from tests.suites.suites import Suite, run_suite


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suite", "flavor"),
    [
        pytest.param(suite, flavor, id=f"{suite.name}-{flavor}")
        for suite in SUITES
        for flavor in suite.flavors
    ],
)
def test_comes_out_as_at_the_server(suite: Suite, flavor: str, tmp_path: Path) -> None:
    for kind, compared in run_suite(suite, flavor, tmp_path).items():
        assert compared.comparison.shown == "", kind
        assert "Traceback" not in compared.log
