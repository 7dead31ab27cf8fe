"""`binlane query`: SQL over logs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from binlane.cli.cat_values import Time
from binlane.cli.log_input import takes_log_input
from binlane.cli.password_input import server_with_password
from binlane.cli.query_output import FORMATS
from binlane.cli.query_runner import SqlRunner
from binlane.cli.talk import say, verbose_option
from binlane.errors import StoreError

if TYPE_CHECKING:
    from binlane.tables.query.log_tables import LogOptions

_STDIN: Final = "-"


@click.command("query")
@click.argument("arguments", metavar="[SQL] LOG...", nargs=-1, required=True)
@click.option(
    "-f",
    "--file",
    "sql_file",
    metavar="FILE",
    help="Read the SQL from this file, - for standard input.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="Form of the results; jsonl is one JSON object a line.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write the results there instead of to standard output.",
)
@click.option(
    "--tables",
    metavar="LISTS",
    help="Only these tables and databases are there: shop.orders,crm, or LOG(…), IGNORE(…).",
)
@click.option(
    "--start-position",
    metavar="PLACE",
    help="Start at FILE:POSITION, or behind a GTID position of MariaDB.",
)
@click.option(
    "--stop-position",
    metavar="PLACE",
    help="Stop before FILE:POSITION, or behind a GTID position of MariaDB.",
)
@click.option(
    "--start-datetime",
    type=Time(),
    metavar="TIME",
    help="Start with event groups that are not older; local time, or ISO 8601 with a zone.",
)
@click.option(
    "--stop-datetime",
    type=Time(),
    metavar="TIME",
    help="Leave out event groups that are not older.",
)
@takes_log_input
@click.option(
    "--allow-files",
    is_flag=True,
    help="Let the SQL read and write files and use the network, as COPY and read_csv do.",
)
@verbose_option
@click.option("--quiet", is_flag=True, help="Print results and errors only.")
def command(arguments: tuple[str, ...], **options: Any) -> int:
    """Ask LOG by SQL: its tables' changes, its events, groups and statements.

    SQL is one statement or several. Without it, and without -f, statements come from standard
    input: at a terminal with a prompt. LOG is binlog files, a directory of them, DATA#name for a
    binlog of `binlane serve`, a URI, or the URL of a server.
    """
    sql, places = _sql_and_places(arguments, options["sql_file"])
    from binlane.tables.query.log_connection import connect_log  # noqa: PLC0415 - after --help
    from binlane.tables.query.log_tables import LogTables  # noqa: PLC0415 - as above

    config = {"python_enable_replacements": "false", "autoinstall_known_extensions": "false"}
    if not options["allow_files"]:
        config["enable_external_access"] = "false"
    sources = [server_with_password(place, options["password_file"]) for place in places]
    connected = connect_log(LogTables(sources, log_options(options)), config=config)
    if not options["quiet"]:
        for note in connected.notes:
            say(f"note: {note}", err=True)
    if sql is None and sys.stdin.isatty():
        from binlane.cli.query_prompt import converse  # noqa: PLC0415 - for this only

        return converse(connected, SqlRunner(connected, options))
    text = sys.stdin.read() if sql is None else sql
    SqlRunner(connected, options).run_all(text)
    return 0


def _sql_and_places(
    arguments: tuple[str, ...], sql_file: str | None
) -> tuple[str | None, tuple[str, ...]]:
    """Return the SQL, None if it comes from standard input, and the logs.

    Raises:
        click.UsageError: If there is no log.
        StoreError: If the file with the SQL cannot be read.
    """
    if sql_file is not None:
        if sql_file == _STDIN:
            return None if not sys.stdin.isatty() else sys.stdin.read(), arguments
        try:
            return Path(sql_file).read_text(encoding="utf-8"), arguments
        except (OSError, UnicodeDecodeError) as error:
            told = error.strerror if isinstance(error, OSError) else error
            raise StoreError(
                f"the SQL cannot be read: {told}", path=sql_file, hint="name a file of UTF-8"
            ) from None
    first = arguments[0]
    if not _is_sql(first):
        return None, arguments
    if len(arguments) == 1:
        raise click.UsageError("name a log behind the SQL: files, a directory, a server …")
    return first, arguments[1:]


def _is_sql(text: str) -> bool:
    """True if an argument is SQL: it has a blank or a semicolon, and is no file."""
    return any(character.isspace() or character == ";" for character in text) and not (
        Path(text).exists()
    )


def log_options(options: Mapping[str, Any]) -> LogOptions:
    """Return the options of reading that a command line gives.

    Raises:
        ConfigError: If one cannot be used.
        StoreError: If the schema file cannot be read.
    """
    from binlane.cli.log_input import catalog_of  # noqa: PLC0415 - after --help
    from binlane.statements.scope.scope import Scope  # noqa: PLC0415 - as above
    from binlane.tables.columnar.selection import Selection  # noqa: PLC0415 - as above
    from binlane.tables.query.log_tables import LogOptions  # noqa: PLC0415 - as above
    from binlane.tables.ranges.scopes import read_scope  # noqa: PLC0415 - as above

    schema, tables = options["schema"], options["tables"]
    return LogOptions(
        selection=Selection(
            scope=Scope.everything() if tables is None else read_scope(tables),
            start=_bound(options, "start"),
            stop=_bound(options, "stop"),
        ),
        keys=options["encryption_keys"],
        schema=None if schema is None else catalog_of(schema, options["password_file"]),
    )


def _bound(options: Mapping[str, Any], which: str) -> Any:
    """Return the place where reading starts or stops; None if it is not limited.

    Raises:
        click.UsageError: If both a position and a time are given.
        ConfigError: If the position is none.
    """
    from binlane.tables.columnar.selection import parse_bound  # noqa: PLC0415 - after --help

    position, time = options[f"{which}_position"], options[f"{which}_datetime"]
    if position is not None and time is not None:
        raise click.UsageError(f"give --{which}-position or --{which}-datetime, not both")
    if position is not None:
        return parse_bound(position, key=f"{which}-position")
    return None if time is None else datetime.fromtimestamp(time, UTC)
