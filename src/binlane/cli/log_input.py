"""Options of commands that read logs, and the definitions that they read beside one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from binlane.cli.filter_options import load_schema
from binlane.cli.password_input import server_with_password

if TYPE_CHECKING:
    from binlane.statements.sql.logged_objects import LoggedObjects


_Command = TypeVar("_Command", bound=Callable[..., Any])


def takes_log_input(command: _Command) -> _Command:
    """Have a command take what a log may need beside its files: definitions, keys, a password."""
    options = (
        click.option(
            "--schema",
            metavar="FILE|SERVER",
            help="Names and types of columns that the log does not tell: SQL, or a server's URL.",
        ),
        click.option(
            "--encryption-keys",
            metavar="FILE",
            help="Keys of encrypted files: MariaDB's file_key_management or MySQL's keyring file.",
        ),
        click.option(
            "--password-file",
            type=click.Path(path_type=Path, dir_okay=False),
            help="File with the password for servers; else MYSQL_PWD, or a prompt.",
        ),
    )
    # click takes them in the order in which decorators come to it, the last one first.
    for option in reversed(options):
        command = option(command)
    return command


def catalog_of(schema: str, password_file: Path | None) -> LoggedObjects:
    """The objects of `--schema`: of a file, or of a server.

    Raises:
        StoreError: If the file cannot be read.
        PeerError: If the server cannot be asked.
    """
    from binlane.client.schema import read_schema  # noqa: PLC0415 - after --help
    from binlane.statements.sql.logged_objects import LoggedObjects  # noqa: PLC0415 - likewise
    from binlane.tables.ranges.filesystems import is_server  # noqa: PLC0415 - likewise
    from binlane.tables.ranges.served_logs import ServerPlace  # noqa: PLC0415 - likewise

    found = LoggedObjects()
    if is_server(schema):
        place = ServerPlace.parse(server_with_password(schema, password_file))
        found.load_statements(read_schema(place.url, place.password()))
    else:
        load_schema(schema, found)
    return found
