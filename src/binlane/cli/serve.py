"""`binlane serve`: capture, routing, store and listeners, until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import click

from binlane.cli.talk import log_to_stderr


@click.command("serve")
@click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path),
    default=Path("binlane.toml"),
    show_default=True,
    help="The configuration file.",
)
@click.option(
    "--port-file",
    type=click.Path(path_type=Path),
    help="Write the MySQL port to this file once logins are taken.",
)
@click.option("--verbose", is_flag=True, help="Log more.")
@click.option("--quiet", is_flag=True, help="Log warnings and errors only.")
def command(*, config_path: Path, port_file: Path | None, verbose: bool, quiet: bool) -> int:
    """Capture a server's log, keep scoped binlogs of it, and serve them to replicas.

    Ends cleanly at SIGTERM or Ctrl-C.
    """
    from binlane.service.config import load  # noqa: PLC0415  # after --help
    from binlane.service.serve import serve  # noqa: PLC0415  # as above

    log_to_stderr(verbose=verbose, quiet=quiet, usual=logging.INFO)
    asyncio.run(serve(load(config_path), port_file=port_file))
    return 0
