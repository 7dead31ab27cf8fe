"""A workout of mysql2, whose package has no tests: what its documentation shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from tests.suites.packages import npm_package
from tests.suites.places import Place
from tests.suites.programs import needed, printed
from tests.suites.suites import Suite

_VERSION: Final = "3.24.6"
_SCOPE: Final = "mysql2"
_WORKOUT: Final = Path(__file__).with_name("mysql2_workout.cjs")


def _prepare(where: Place) -> None:
    """Make its database."""
    where.execute(f"CREATE DATABASE {_SCOPE} CHARSET utf8mb4", "SET GLOBAL local_infile = 1")


def _run(where: Place, directory: Path) -> dict[str, str]:
    """Run the workout at a place; what came of each part."""
    folder = npm_package("mysql2", _VERSION)
    status, text = printed(
        [needed("node"), str(_WORKOUT), str(where.port), _SCOPE],
        directory,
        {"NODE_PATH": str(folder / "node_modules"), "TZ": "UTC"},
        timeout_s=120,
    )
    lines = [line for line in text.splitlines() if line.startswith("{")]
    told = {str(one["name"]): json.dumps(one["outcome"]) for one in map(json.loads, lines)}
    told["the end"] = f"exit status {status}"
    return told


MYSQL2: Final = Suite(
    name="mysql2",
    version=_VERSION,
    scope=_SCOPE,
    prepare=_prepare,
    run=_run,
)
