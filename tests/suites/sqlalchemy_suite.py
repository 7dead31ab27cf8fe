"""SQLAlchemy's tests of its dialects, by PyMySQL."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.suites.packages import pypi_source
from tests.suites.places import Place
from tests.suites.pythons import environment, run_pytest
from tests.suites.suites import Suite

_VERSION: Final = "2.0.44"
_DATABASES: Final = ("sqlalchemy", "test_schema", "test_schema_2")


def _prepare(where: Place) -> None:
    """Make its databases."""
    where.execute(*(f"CREATE DATABASE {name} CHARSET utf8mb4" for name in _DATABASES))


def _run(where: Place, directory: Path) -> dict[str, str]:
    """Run its tests at a place; what came of each."""
    (source,) = pypi_source("sqlalchemy", _VERSION).glob("sqlalchemy-*")
    python = environment(
        "sqlalchemy",
        "pytest==8.4.2",
        f"sqlalchemy=={_VERSION}",
        "PyMySQL==1.1.2",
        "cryptography==46.0.3",
    )
    url = f"mariadb+pymysql://root@127.0.0.1:{where.port}/{_DATABASES[0]}?charset=utf8mb4"
    return run_pytest(
        python,
        source,
        ["test/dialect/mysql", "test/dialect/test_suite.py", f"--dburi={url}", "-p", "no:warnings"],
        variables={"PYTHONDONTWRITEBYTECODE": "1"},
        report=directory / "report.xml",
    )


SQLALCHEMY: Final = Suite(
    name="SQLAlchemy",
    version=_VERSION,
    scope=", ".join(_DATABASES),
    # On MySQL its fixtures fail at the server itself, and make temporary tables in transactions (3748).
    flavors=("mariadb",),
    prepare=_prepare,
    run=_run,
)
