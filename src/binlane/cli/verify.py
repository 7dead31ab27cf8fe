"""`binlane verify`: every checksum, position, GTID order, index and watermark."""

from __future__ import annotations

from pathlib import Path

import click

from binlane.cli.main import EXIT_WRONG
from binlane.cli.talk import verbose_option


@click.command("verify")
@click.argument("paths", metavar="DIR|FILE...", nargs=-1, required=True)
@click.option(
    "--encryption-keys",
    "key_file",
    metavar="FILE",
    help="Keys of encrypted files: MariaDB's file_key_management or MySQL's keyring file.",
)
@verbose_option
@click.option("--quiet", is_flag=True, help="Print faults only.")
def command(*, paths: tuple[str, ...], key_file: str | None, quiet: bool) -> int:
    """Check binlog files, or a whole data directory; print each fault as file:position: what."""
    from binlane.store.chunks import read_keys  # noqa: PLC0415  # after --help
    from binlane.store.verify import verify  # noqa: PLC0415  # as above

    keys = None if key_file is None else read_keys(key_file)
    faults = 0
    for fault in verify([Path(path) for path in paths], keys=keys):
        click.echo(str(fault))
        faults += 1
    if faults:
        click.echo(f"{faults} fault{'s' if faults > 1 else ''} found", err=True)
        return EXIT_WRONG
    if not quiet:
        click.echo("no faults", err=True)
    return 0
