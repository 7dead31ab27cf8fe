"""aiomysql's tests, but for those of its layer over an old SQLAlchemy."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.suites.packages import pypi_source
from tests.suites.places import Place
from tests.suites.pythons import environment, run_pytest
from tests.suites.suites import Suite

_VERSION: Final = "0.2.0"
_SCOPE: Final = "test_pymysql"
_LEFT_OUT: Final = ("tests/sa", "tests/test_async_iter.py", "tests/test_async_with.py")


def _prepare(where: Place) -> None:
    """Its tests make what they need."""
    where.execute("SET GLOBAL local_infile = 1")


def _run(where: Place, directory: Path) -> dict[str, str]:
    """Run its tests at a place; what came of each."""
    (source,) = pypi_source("aiomysql", _VERSION).glob("aiomysql-*")
    python = environment(
        "aiomysql",
        "pytest==8.4.2",
        f"aiomysql=={_VERSION}",
        "PyMySQL==1.1.2",
        "cryptography==46.0.3",
        "uvloop==0.22.1",
    )
    outcomes = run_pytest(
        python,
        source,
        [
            *("tests", f"--mysql-address=tcp=127.0.0.1:{where.port}", "-W", "ignore"),
            *("-k", "not uvloop", *(f"--ignore={each}" for each in _LEFT_OUT)),
        ],
        variables={"PYTHONDONTWRITEBYTECODE": "1"},
        report=directory / "report.xml",
    )
    return {name: told.replace(str(where.port), "PORT") for name, told in outcomes.items()}


AIOMYSQL: Final = Suite(
    name="aiomysql",
    version=_VERSION,
    scope=_SCOPE,
    prepare=_prepare,
    run=_run,
    # It does not know MySQL 9.
    flavors=("mariadb",),
    has_tls=True,
)
