"""`binlane verify`: every checksum, position, GTID order, index and watermark."""

from __future__ import annotations

from pathlib import Path

import click

from binlane.cli.main import EXIT_WRONG
from binlane.cli.talk import verbose_option


@click.command("verify")
@click.argument("paths", metavar="DIR|FILE...", nargs=-1, required=True)
@verbose_option
@click.option("--quiet", is_flag=True, help="Print faults only.")
def command(*, paths: tuple[str, ...], quiet: bool) -> int:
    """Check binlog files, or a whole data directory; print each fault as file:position: what."""
    from binlane.store.verify import verify  # noqa: PLC0415  # after --help

    faults = 0
    for fault in verify([Path(path) for path in paths]):
        click.echo(str(fault))
        faults += 1
    if faults:
        click.echo(f"{faults} fault{'s' if faults > 1 else ''} found", err=True)
        return EXIT_WRONG
    if not quiet:
        click.echo("no faults", err=True)
    return 0
