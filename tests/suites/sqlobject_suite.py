"""SQLObject's tests, by PyMySQL."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.suites.packages import pypi_source
from tests.suites.places import Place
from tests.suites.pythons import environment, run_pytest
from tests.suites.suites import Suite

_VERSION: Final = "3.13.0"
_SCOPE: Final = "sqlobject"


def _prepare(where: Place) -> None:
    """Make its database."""
    where.execute(f"CREATE DATABASE {_SCOPE} CHARSET utf8mb4")


def _run(where: Place, directory: Path) -> dict[str, str]:
    """Run its tests at a place; what came of each."""
    (source,) = pypi_source("sqlobject", _VERSION).glob("SQLObject-*")
    python = environment(
        "sqlobject",
        "pytest==8.4.2",
        f"sqlobject=={_VERSION}",
        "PyMySQL==1.1.2",
        "setuptools==75.8.0",
    )
    url = f"mysql://root@127.0.0.1:{where.port}/{_SCOPE}?driver=pymysql"
    return run_pytest(
        python,
        source,
        ["sqlobject/tests", f"--Database={url}", "-W", "ignore"],
        variables={"PYTHONDONTWRITEBYTECODE": "1"},
        report=directory / "report.xml",
    )


SQLOBJECT: Final = Suite(
    name="SQLObject",
    version=_VERSION,
    scope=_SCOPE,
    prepare=_prepare,
    run=_run,
)
