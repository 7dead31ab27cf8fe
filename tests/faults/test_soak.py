"""An hour of everything at once with kills of all that can be killed; `tests.soak` tells what it is.

`BINLANE_SOAK_S` says for how many seconds each server is soaked, 3600 by default.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.soak import soaked

pytestmark = pytest.mark.system

SOAK_S = float(os.environ.get("BINLANE_SOAK_S", "3600"))


@pytest.mark.slow
@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_soak(tmp_path: Path, flavor: str) -> None:
    soak, found = soaked(tmp_path, flavor=flavor, seconds=SOAK_S, seed=int(time.time()))
    print(soak.counts, soak.loads)  # noqa: T201 for docs/reliability.md
    assert found == []
