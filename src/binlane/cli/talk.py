"""The number of messages that commands give: `--quiet` and `--verbose`, the same everywhere."""

from __future__ import annotations

import sys
from collections.abc import Callable

import click

from binlane.visible import visible


def log_to_stderr() -> None:
    """Send the parts' logging of every level to standard error."""
    import logging  # noqa: PLC0415  # for this alone, as it takes long

    from binlane.live.service.logs import TEXT, TextFormatter  # noqa: PLC0415  # after --help

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(TextFormatter(TEXT))
    logging.basicConfig(level=logging.DEBUG, handlers=[handler])


def say(text: object, *, err: bool = False) -> None:
    """Print a line for people; foreign texts in it are made `visible`."""
    click.echo(visible(str(text)), err=err)


def verbose_option(command: Callable[..., int]) -> Callable[..., int]:
    """Add `--verbose`, which the command itself need not know of."""

    def begin(_context: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001  # click's own signature
        if value:
            log_to_stderr()

    return click.option(
        "--verbose",
        is_flag=True,
        expose_value=False,
        callback=begin,
        help="Log progress to standard error.",
    )(command)
