"""The tests of xorm, an ORM of Go, on MySQL's dialect, as its module has them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from tests.suites.packages import go_module
from tests.suites.places import Place
from tests.suites.programs import matched, printed
from tests.suites.suites import Suite

_VERSION: Final = "v1.4.3"
_SCOPE: Final = "xorm_test"
_OTHER_DRIVERS: Final = r'\t_ "(?!github\.com/go-sql-driver/)'
_OUTCOME: Final = re.compile(r"^\s*--- (?P<outcome>PASS|FAIL|SKIP): (?P<name>\S+)", re.MULTILINE)


def _prepare(where: Place) -> None:
    """Make its database, and another one that it uses."""
    where.execute(f"CREATE DATABASE {_SCOPE} CHARSET utf8mb4")


def _run(where: Place, directory: Path) -> dict[str, str]:
    """Run its tests at a place; what came of each."""
    folder = go_module("xorm.io/xorm", _VERSION, "tests", without=_OTHER_DRIVERS)
    _, text = printed(
        [
            *(str(folder / "tests.test"), "-test.v", "-db=mysql", "-show_sql=false"),
            f"-conn_str=root:@tcp(127.0.0.1:{where.port})/{_SCOPE}?charset=utf8mb4",
        ],
        folder / "tests",
        {"TZ": "UTC"},
    )
    outcomes = matched(_OUTCOME, text)
    assert len(outcomes) > 100, text[-3000:]
    (directory / "printed").write_text(text)
    return outcomes


XORM: Final = Suite(
    name="xorm",
    version=_VERSION,
    scope=_SCOPE,
    prepare=_prepare,
    run=_run,
)
