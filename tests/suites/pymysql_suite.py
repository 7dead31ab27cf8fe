"""PyMySQL's own tests, as its source on PyPI has them (no later one does)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Final

from tests.suites.packages import pypi_source
from tests.suites.places import Place
from tests.suites.pythons import environment, run_pytest
from tests.suites.suites import Suite

_VERSION: Final = "0.10.1"
_DATABASES: Final = ("test1", "test2")


def _prepare(where: Place) -> None:
    """Make its databases."""
    where.execute(*(f"CREATE DATABASE {name} CHARSET utf8mb4" for name in _DATABASES))


def _run(where: Place, directory: Path) -> dict[str, str]:
    """Run its tests at a place; what came of each."""
    (source,) = pypi_source("PyMySQL", _VERSION).glob("PyMySQL-*")
    folder = directory / "PyMySQL"
    shutil.copytree(source, folder)
    common = {"host": "127.0.0.1", "port": where.port, "user": "root", "passwd": ""}
    databases = [
        {**common, "db": "test1", "use_unicode": True, "local_infile": True},
        {**common, "db": "test2"},
    ]
    (folder / "pymysql/tests/databases.json").write_text(json.dumps(databases))
    return run_pytest(
        environment("pymysql", "pytest==8.4.2"),
        folder,
        ["pymysql/tests"],
        variables={"USER": "root"},
        report=directory / "report.xml",
    )


PYMYSQL: Final = Suite(
    name="PyMySQL",
    version=_VERSION,
    scope=_DATABASES[0],
    prepare=_prepare,
    run=_run,
)
