"""Printing what `cat --summary` has counted: a table, JSON, or a page with plots."""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import TYPE_CHECKING

import click

from binlane.cli.output import open_output

if TYPE_CHECKING:
    from binlane.cat.summary import Summary
    from binlane.cli.cat_request import CatRequest


def print_summary(summary: Summary, request: CatRequest) -> None:
    """Print it to standard output; with `--html` write the page as well.

    Raises:
        StoreError: If the page cannot be written.
    """
    if request.given["html_file"] is not None:
        with open_output(str(request.given["html_file"]), errors="backslashreplace") as page:
            page.write(summary.html())
    with open_output(None, errors="backslashreplace") as output:
        if request.given["format_"] == "json":
            click.echo(json.dumps(summary.json(), ensure_ascii=False), file=output)
            return
        has_color = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 80
        click.echo(summary.text(width, color=has_color), file=output, color=has_color)
