"""`binlane config check`: the effective settings."""

from __future__ import annotations

import json
from pathlib import Path

import click

from binlane.cli.talk import say, verbose_option


@click.group("config")
def command() -> None:
    """Look at the configuration."""


@command.command("check")
@click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path),
    default=None,
    help="The configuration file; binlane.toml by default, if there is one.",
)
@click.option("--embedded", is_flag=True, help="Check the settings of `serve --embedded`.")
@verbose_option
@click.option("--quiet", is_flag=True, help="Only check; print errors only.")
def check(*, config_path: Path | None, embedded: bool, quiet: bool) -> int:
    """Print the value of each setting as TOML, and its origin.

    That is the file, an environment variable (BINLANE_LISTEN_PORT for port of [listen]) or the
    default. Passwords are in files of their own, and are not shown.
    """
    from binlane.cli.settings_option import config_source  # noqa: PLC0415  # after --help
    from binlane.live.service.config import check_files, effective  # noqa: PLC0415  # as above

    configuration = config_source(config_path, is_embedded=embedded).read()
    for warning in () if quiet else configuration.warnings:
        say(f"binlane: {warning}", err=True)
    check_files(configuration.settings)
    for section, values in () if quiet else effective(configuration.settings).items():
        if section:
            click.echo(f"\n[{section}]")
        for key, value in values.items():
            # JSON's texts, numbers and lists of them are TOML's too.
            written = f"{key} = {json.dumps(value, ensure_ascii=False)}"
            click.echo(f"{written}  # {configuration.origin(section, key)}")
    return 0
