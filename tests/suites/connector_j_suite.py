"""A workout of Connector/J, whose artifacts have no tests: what applications do with JDBC."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from tests.suites.packages import maven_jar
from tests.suites.places import Place
from tests.suites.programs import matched, needed, printed
from tests.suites.suites import Suite

_VERSION: Final = "9.5.0"
_SCOPE: Final = "jdbc"
_WORKOUT: Final = Path(__file__).with_name("JdbcWorkout.java")
_OUTCOME: Final = re.compile(r"^>> (?P<name>[^:]+): (?P<outcome>.*)$", re.MULTILINE)


def _prepare(where: Place) -> None:
    """Make its database."""
    where.execute(
        f"CREATE DATABASE {_SCOPE} CHARSET utf8mb4",
        "SET GLOBAL local_infile = 1",
        "SET GLOBAL log_bin_trust_function_creators = 1",
    )


def _run(where: Place, directory: Path) -> dict[str, str]:
    """Run the workout at a place; what came of each part."""
    jar = maven_jar("com.mysql", "mysql-connector-j", _VERSION)
    # A JRE alone cannot run a source file.
    needed("javac")
    status, text = printed(
        [needed("java"), "-Xmx256m", "-cp", str(jar), str(_WORKOUT), str(where.port), _SCOPE],
        directory,
        {"TZ": "UTC"},
        timeout_s=300,
    )
    outcomes = matched(_OUTCOME, text)
    assert outcomes, text[-3000:]
    return {**outcomes, "the end": f"exit status {status}"}


CONNECTOR_J: Final = Suite(
    name="Connector/J",
    version=_VERSION,
    scope=_SCOPE,
    prepare=_prepare,
    run=_run,
)
