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


def server_with_password(place: str, file: Path | None) -> str:
    """The URL of a server, saying where its password is: in a file, or the environment."""
    from binlane.tables.ranges.filesystems import is_server  # noqa: PLC0415 - for this alone
    from binlane.tables.ranges.served_logs import (  # noqa: PLC0415 - for this alone
        PASSWORD_FILE,
        PASSWORD_OPTIONS,
        server_uri,
    )

    address, _, query = place.partition("?")
    if not is_server(place) or any(f"{option}=" in query for option in PASSWORD_OPTIONS):
        return place
    if file is not None:
        return server_uri(place, {PASSWORD_FILE: str(file.absolute())})
    if from_environment() is None and sys.stdin.isatty():
        os.environ["MYSQL_PWD"] = asked_for(f"Password for {address}")
    return place
