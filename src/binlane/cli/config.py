"""`binlane config check`: the effective settings."""

from __future__ import annotations

import json
from pathlib import Path

import click

from binlane.cli.talk import verbose_option


@click.group("config")
def command() -> None:
    """Look at the configuration."""


@command.command("check")
@click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path),
    default=Path("binlane.toml"),
    show_default=True,
    help="The configuration file.",
)
@verbose_option
@click.option("--quiet", is_flag=True, help="Only check; print nothing.")
def check(*, config_path: Path, quiet: bool) -> int:
    """Read the configuration file and print the value that each setting has, as TOML."""
    from binlane.service.config import effective, load  # noqa: PLC0415  # after --help

    settings = load(config_path)
    for section, values in () if quiet else effective(settings).items():
        if section:
            click.echo(f"\n[{section}]")
        for key, value in values.items():
            # JSON's texts and numbers are TOML's too.
            click.echo(f"{key} = {json.dumps(value, ensure_ascii=False)}")
    return 0
