"""How much commands say: `--quiet` and `--verbose`, the same everywhere."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Final

import click

_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def log_to_stderr(*, verbose: bool, quiet: bool, usual: int = logging.WARNING) -> None:
    """Send the parts' logging to standard error.

    Args:
        verbose: Everything.
        quiet: Warnings and errors only.
        usual: Level where neither is said.
    """
    level = logging.DEBUG if verbose else logging.WARNING if quiet else usual
    logging.basicConfig(stream=sys.stderr, level=level, format=_FORMAT)


def verbose_option(command: Callable[..., int]) -> Callable[..., int]:
    """Add `--verbose`, which the command itself need not know of."""

    def begin(_context: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001  # click's own signature
        if value:
            log_to_stderr(verbose=True, quiet=False)

    return click.option(
        "--verbose",
        is_flag=True,
        expose_value=False,
        callback=begin,
        help="Log what goes on to standard error.",
    )(command)
