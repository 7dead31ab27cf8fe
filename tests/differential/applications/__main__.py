"""Prints the table of applications, and on standard error what differs from the server.

python -m tests.differential.applications [mariadb|mysql] [NAME...]
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from tests.differential.applications.comparing import compare
from tests.differential.applications.running import rules, server_of
from tests.differential.applications.scripts import applications

flavor, *names = sys.argv[1:] or ["mariadb"]
with TemporaryDirectory() as folder, server_of(flavor, Path(folder)) as server:
    click.echo("| application | package | statements | understood | refused | unsafe | ms |")
    click.echo("|---|---|---|---|---|---|---|")
    for application in applications():
        if (names and application.name not in names) or not (
            flavor == "mariadb" or application.for_mysql
        ):
            continue
        result = compare(application, server, rules(flavor, server))
        click.echo(
            f"| {application.name} | {application.package} | {result.statements}"
            f" | {result.understood} | {result.refused} | {result.unsafe}"
            f" | {result.check_s * 1000:.0f} |",
        )
        for difference in result.differences:
            grave = "GRAVE " if difference.is_grave else ""
            click.echo(f"{grave}{application.name}: {difference}", err=True)
