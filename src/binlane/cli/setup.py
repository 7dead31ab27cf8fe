"""`binlane setup`: makes a server a source, or lists what it lacks."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from binlane.cli import password_input
from binlane.cli.talk import say, verbose_option

_PASSWORD_BYTES: Final = 18
_LACKING: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupOptions:
    """Options of `binlane setup`, by the names of its parameters."""

    server: str
    is_check: bool
    password_file: Path | None
    create_user: str | None
    create_password_file: Path | None
    has_no_marks: bool
    rows_only: bool
    quiet: bool


@click.command("setup")
@click.argument("server")
@click.option(
    "--check",
    "is_check",
    is_flag=True,
    help="Change nothing; print the statements that would be run.",
)
@click.option(
    "--password-file",
    type=click.Path(path_type=Path),
    help="File with the password of SERVER's account; else MYSQL_PWD, else the command asks for it.",
)
@click.option(
    "--create-user",
    metavar="NAME[@HOST]",
    help="Make an account for `serve`, if it is missing, and grant it privileges; HOST is % by "
    "default.",
)
@click.option(
    "--create-password-file",
    type=click.Path(path_type=Path),
    help="File with that account's password; a missing file is made with a random password.",
)
@click.option(
    "--no-marks",
    "has_no_marks",
    is_flag=True,
    help="Make no table binlane.marks: binlogs of statements then lack temporary tables.",
)
@click.option(
    "--rows-only",
    is_flag=True,
    help="Prepare only for binlogs of rows: the account gets REPLICATION SLAVE and nothing else.",
)
@verbose_option
@click.option("--quiet", is_flag=True, help="Print nothing; only the exit code shows the result.")
def command(**given: Any) -> int:
    """Prepare SERVER as a source: settings of its log, and privileges of the account.

    SERVER is mariadb://user@host:port or mysql://user@host:port, ?socket=PATH for a socket. Its
    account becomes the one that `serve` uses, unless --create-user names another. The output is a
    SQL script: the statements that are run, with --check those that would be.
    Exit code 0: nothing is missing; 1: something is, and the script says what; 3: the server
    cannot be reached.
    """
    options = SetupOptions(**given)
    from binlane.client.settings import ServerUrl  # noqa: PLC0415  # after --help
    from binlane.live.provision.setup import NewAccount, Purpose, set_up  # noqa: PLC0415  # as above

    url = ServerUrl.parse(options.server, key="SERVER")
    new = None
    if options.create_user is not None:
        user, _, host = options.create_user.partition("@")
        if not user:
            raise click.UsageError("--create-user: an account has a name")
        if options.create_password_file is None:
            raise click.UsageError("--create-user: name a --create-password-file")
        secret = _password_in(options.create_password_file, is_check=options.is_check)
        new = NewAccount(user, host or "%", secret)
    elif options.create_password_file is not None:
        raise click.UsageError("--create-password-file: goes with --create-user")
    password = password_input.password_of(options.password_file, url.user)
    tell = _silent if options.quiet else say
    purpose = Purpose.JUDGED if options.has_no_marks else Purpose.ALL
    if options.rows_only:
        purpose = Purpose.ROWS
    done = set_up(url, password, tell, is_check=options.is_check, new=new, purpose=purpose)
    return _LACKING if done.lacking else 0


def _silent(_line: str) -> None:
    """Print nothing."""


def _password_in(path: Path, *, is_check: bool) -> str:
    """The password in a file, which is made where it is missing."""
    if path.exists() or is_check:
        option = "--create-password-file"
        return password_input.from_file(path, option=option) if path.exists() else ""
    made = secrets.token_urlsafe(_PASSWORD_BYTES)
    try:
        path.touch(mode=0o600, exist_ok=False)
        path.write_text(f"{made}\n", encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"--create-password-file: {error}") from None
    return made
