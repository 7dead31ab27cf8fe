"""`binlane config check`: the effective settings."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
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
    """Read the configuration file and print the value that each setting has."""
    from binlane.service.config import load  # noqa: PLC0415  # after --help

    _print("", load(config_path))
    return 0


def _print(prefix: str, settings: object) -> None:
    assert is_dataclass(settings), "settings are dataclasses"
    for field in fields(settings):
        value, name = getattr(settings, field.name), f"{prefix}{field.name}"
        if is_dataclass(value):
            _print(f"{name}.", value)
        else:
            click.echo(f"{name} = {value}")
