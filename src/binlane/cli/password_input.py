"""The password of a command: from a file, the environment, or a prompt."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click


def from_file(path: Path, *, option: str = "--password-file") -> str:
    """The first line of a file.

    Raises:
        click.UsageError: If it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8").partition("\n")[0].removesuffix("\r")
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{option}: {error}") from None


def from_environment() -> str | None:
    """Return the password that the servers' own clients take; None if it is not set."""
    return os.environ.get("MYSQL_PWD")


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def asked_for(prompt: str = "Enter password") -> str:
    """Prompt for a password without showing it.

    Raises:
        click.UsageError: If nobody can: there is no terminal.
    """
    if not (_has_terminal() or sys.stdin.isatty()):
        raise click.UsageError(
            "there is no terminal at which a password could be typed: give it in a file "
            "(--password-file), or in MYSQL_PWD"
        )
    typed: str = click.prompt(prompt, hide_input=True, default="", show_default=False, err=True)
    return typed


def password_of(path: Path | None, user: str) -> str:
    """Return the password from a file, else from the environment, else from a prompt.

    Raises:
        click.UsageError: If the file cannot be read.
    """
    if path is not None:
        return from_file(path)
    given = from_environment()
    if given is None and sys.stdin.isatty():
        given = asked_for(f"Password of {user}")
    return given or ""
