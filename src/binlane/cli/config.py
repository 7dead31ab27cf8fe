"""`binlane config check`: the effective settings."""

from __future__ import annotations

import json
from pathlib import Path

import click


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
def check(*, config_path: Path) -> int:
    """Read the configuration file and print the value that each setting has, as TOML."""
    from binlane.service.config import effective, load  # noqa: PLC0415  # after --help

    for section, values in effective(load(config_path)).items():
        if section:
            click.echo(f"\n[{section}]")
        for key, value in values.items():
            # JSON's texts and numbers are TOML's too.
            click.echo(f"{key} = {json.dumps(value, ensure_ascii=False)}")
    return 0
