"""The tests of MariaDB's client library, `mysql_client_test`, of Debian's `mariadb-test`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from tests.suites.mtr import Mtr
from tests.suites.places import Place
from tests.suites.programs import printed
from tests.suites.suites import Suite

_SCOPE: Final = "client_test_db"
_OPTIONS: Final = {"mariadb": ("--character-set-server=latin1", "--default-storage-engine=myisam")}
_VARYING: Final = re.compile(r"0x[0-9a-f]+|\d{4,}|\b\d+ms|\.\d+")


def _prepare(where: Place) -> None:
    """Its tests make what they need."""
    where.execute("CREATE DATABASE test CHARSET latin1")


def _run(where: Place, directory: Path) -> dict[str, str]:
    """Run its tests at a place, one by one; what came of each."""
    mtr = Mtr()
    program = [mtr.program("mysql_client_test"), "--no-defaults"]
    environment = mtr.environment
    _, names = printed([*program, "--show-tests"], mtr.home, environment)
    tests = re.findall(r"^\w+$", names, re.MULTILINE)
    login = ["--host=127.0.0.1", f"--port={where.port}", "--user=root", "--testcase"]
    outcomes = {}
    for test in tests:
        # One that failed leaves its tables.
        where.execute(f"DROP DATABASE IF EXISTS {_SCOPE}")
        status, text = printed(
            [*program, *login, f"--vardir={directory}", "--silent", test],
            mtr.home,
            environment | {"MYSQL_TEST_DIR": str(mtr.home)},
            timeout_s=60,
        )
        outcome = "passed" if status == 0 else f"ends with {status}"
        text = text.replace(str(directory), "DIRECTORY")
        outcomes[test] = outcome if status == 0 else f"{outcome}: {_VARYING.sub('N', text)[-400:]}"
    assert len(outcomes) > 200, names
    return outcomes


C_CLIENT: Final = Suite(
    name="mysql_client_test",
    version="10.11",
    scope=_SCOPE,
    prepare=_prepare,
    run=_run,
    flavors=("mariadb",),
    options=_OPTIONS,
)
