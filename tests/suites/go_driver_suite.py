"""The tests of go-sql-driver/mysql, as its module has them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from tests.suites.packages import go_module
from tests.suites.places import Place
from tests.suites.programs import matched, printed
from tests.suites.suites import Suite

_VERSION: Final = "v1.9.3"
_SCOPE: Final = "gotest"
_OUTCOME: Final = re.compile(r"^\s*--- (?P<outcome>PASS|FAIL|SKIP): (?P<name>\S+)", re.MULTILINE)


def _prepare(where: Place) -> None:
    """Make its database."""
    where.execute(f"CREATE DATABASE {_SCOPE} CHARSET utf8mb4", "SET GLOBAL local_infile = 1")


def _run(where: Place, directory: Path) -> dict[str, str]:
    """Run its tests at a place; what came of each."""
    folder = go_module("github.com/go-sql-driver/mysql", _VERSION)
    # One of them asks an address outside of this machine.
    _, text = printed(
        [str(folder / "mysql.test"), "-test.v", "-test.skip=TestConnectorReturnsTimeout"],
        folder,
        {
            "MYSQL_TEST_USER": "root",
            "MYSQL_TEST_PASS": "",
            "MYSQL_TEST_PROT": "tcp",
            "MYSQL_TEST_ADDR": f"127.0.0.1:{where.port}",
            "MYSQL_TEST_DBNAME": _SCOPE,
            "MYSQL_TEST_CONCURRENT": "1",
        },
    )
    outcomes = matched(_OUTCOME, text)
    assert outcomes, text[-3000:]
    (directory / "printed").write_text(text)
    return outcomes


GO_DRIVER: Final = Suite(
    name="go-sql-driver",
    version=_VERSION,
    scope=_SCOPE,
    prepare=_prepare,
    run=_run,
    # Larger values than the server takes are not what it is to show.
    options=dict.fromkeys(("mariadb", "mysql"), ("--max-allowed-packet=48M",)),
    has_tls=True,
)
