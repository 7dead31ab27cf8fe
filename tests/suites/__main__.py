"""Runs suites at a server and at ports before it, and prints what differs.

python -m tests.suites NAME [mariadb|mysql] [port|binlogs]
python -m tests.suites mtr mariadb [port|binlogs] [TEST ...]
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from tests.suites.comparing import Comparison
from tests.suites.mtr import MAIN, compare_mtr
from tests.suites.places import PORTS
from tests.suites.registry import SUITES
from tests.suites.suites import run_suite


def _tell(kind: str, comparison: Comparison, log: str) -> None:
    click.echo(f"{kind}: {comparison}; {log.count('Traceback')} tracebacks")
    for title, tests in (("design", comparison.designed), ("fault", comparison.faults)):
        for test, why in tests.items():
            click.echo(f"  {title}: {test}: {why}")
    click.echo(comparison.shown)


name, flavor, *chosen = [*sys.argv[1:], "mariadb"][: max(2, len(sys.argv) - 1)]
kinds = tuple(one for one in chosen if one in PORTS) or PORTS
tests = tuple(one for one in chosen if one not in PORTS) or MAIN
with TemporaryDirectory() as folder:
    if name == "mtr":
        results = compare_mtr(tests, Path(folder), kinds)
    else:
        (suite,) = (one for one in SUITES if one.name == name)
        results = run_suite(suite, flavor, Path(folder), kinds)
    for kind, result in results.items():
        _tell(kind, result.comparison, result.log)
