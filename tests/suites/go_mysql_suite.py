"""The tests of go-mysql's client, as its module has them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from tests.suites.packages import go_module
from tests.suites.places import Place
from tests.suites.programs import matched, printed
from tests.suites.suites import Suite

_VERSION: Final = "v1.13.0"
_SCOPE: Final = "test"
_OUTCOME: Final = re.compile(r"^\s*--- (?P<outcome>PASS|FAIL|SKIP): (?P<name>\S+)", re.MULTILINE)


def _prepare(where: Place) -> None:
    """Make its database."""
    where.execute(f"CREATE DATABASE {_SCOPE} CHARSET utf8mb4")


def _run(where: Place, directory: Path) -> dict[str, str]:
    """Run its tests at a place; what came of each."""
    folder = go_module("github.com/go-mysql-org/go-mysql", _VERSION, "client")
    _, text = printed(
        [
            *(str(folder / "client.test"), "-test.v", "-test.run=^Test"),
            *("-host=127.0.0.1", f"-port={where.port}"),
        ],
        folder / "client",
        {},
    )
    outcomes = matched(_OUTCOME, text)
    assert outcomes, text[-3000:]
    (directory / "printed").write_text(text)
    return outcomes


GO_MYSQL: Final = Suite(
    name="go-mysql",
    version=_VERSION,
    scope=_SCOPE,
    prepare=_prepare,
    run=_run,
    has_tls=True,
)
