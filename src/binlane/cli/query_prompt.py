"""The prompt of `binlane query`: statements typed at a terminal."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from binlane.cli.talk import say
from binlane.errors import BinlaneError

if TYPE_CHECKING:
    from binlane.cli.query_runner import SqlRunner
    from binlane.tables.query.log_connection import LogConnection

_PROMPT: Final = "binlane> "
_MORE: Final = "      -> "
_HISTORY_MAX: Final = 1000
_TABLES: Final = (
    "SELECT schema_name AS schema, view_name AS table, column_count AS columns "
    "FROM duckdb_views() WHERE NOT internal AND NOT temporary "
    "ORDER BY schema_name <> 'main', schema_name, view_name;"
)
_DESCRIBE: Final = re.compile(r"\\d\s+(\S+)\s*;?")
_HELP: Final = """\
Statements are SQL of DuckDB, over one or several lines, and end with ;
  \\d              the tables of the log
  \\d TABLE        the columns of a table, such as shop.orders
  \\?, \\h, help    this text
  \\q, quit, exit  leave, as Ctrl-D does
The log's changes are tables such as shop.orders: one row is one change, the
row behind it, and in the struct _before the row before it. Beside them there
are events, groups and statements. Each statement sees what is new in the log.
"""


def converse(connected: LogConnection, runner: SqlRunner) -> int:
    """Run the statements that somebody types, until they leave.

    Args:
        connected: The connection with the log's tables.
        runner: Runs what is typed, and prints the results.

    Returns:
        The exit status: 0.
    """
    history = _take_history()
    _complete(connected)
    count = len(connected.log.tables)
    tables = f"{count:,} {'table' if count == 1 else 'tables'}"
    click.echo(f"{tables} with changes. \\d lists them, \\? helps, \\q leaves.")
    try:
        # An interrupt may come at any step, also while another one is told of: none ends the prompt.
        while True:
            with suppress(KeyboardInterrupt):
                while not _take_statements(connected, runner):
                    pass
                return 0
    finally:
        _keep_history(history)


def _take_statements(connected: LogConnection, runner: SqlRunner) -> bool:
    """Take statements until somebody leaves or interrupts; True if they leave."""
    held = ""
    try:
        while True:
            try:
                line = input(_MORE if held else _PROMPT)
            except EOFError:
                click.echo()
                return True
            if not held:
                if line.strip().rstrip(";").strip().lower() in {"\\q", "quit", "exit"}:
                    return True
                line = _command(line)
            held = f"{held}\n{line}" if held else line
            if not held.strip():
                held = ""
            elif held.rstrip().endswith(";"):
                _run(connected, runner, held)
                held = ""
    except KeyboardInterrupt:
        click.echo()
        return False


def _command(line: str) -> str:
    """Return the SQL that a line asks for; nothing if it was carried out."""
    text = line.strip()
    if text.rstrip(";").strip().lower() in {"\\?", "\\h", "help", "?"}:
        click.echo(_HELP, nl=False)
        return ""
    if text.rstrip(";").strip() in {"\\d", "\\dt"}:
        return _TABLES
    described = _DESCRIBE.fullmatch(text)
    if described is not None:
        return f"DESCRIBE {described[1]};"
    if text.startswith("\\"):
        say(f"there is no command {text}; \\? lists them", err=True)
        return ""
    return line


def _run(connected: LogConnection, runner: SqlRunner, text: str) -> None:
    from binlane.cli.main import report  # noqa: PLC0415 - it imports this module's caller

    try:
        connected.refresh()
        runner.run_all(text)
    except click.ClickException as error:
        error.show()
    except BinlaneError as error:
        report(error)
    except KeyboardInterrupt:
        say("interrupted", err=True)


# History and completion ---------------------------------------------------------------------------


def _take_history() -> Path | None:
    """Have lines edited, and those of earlier times at hand; return the file that keeps them."""
    with suppress(ImportError):
        import readline  # noqa: PLC0415 - not every Python has it

        state = os.environ.get("XDG_STATE_HOME")
        with suppress(OSError, RuntimeError):
            path = (
                Path(state) if state else Path.home() / ".local/state"
            ) / "binlane/query_history"
            readline.set_history_length(_HISTORY_MAX)
            if path.exists():
                readline.read_history_file(path)
            return path
    return None


def _keep_history(path: Path | None) -> None:
    if path is None:
        return
    import readline  # noqa: PLC0415 - it is there: it was read

    # A history that cannot be kept is no error of the session.
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        readline.write_history_file(path)


def _complete(connected: LogConnection) -> None:
    """Complete names of tables and columns."""
    with suppress(ImportError):
        import readline  # noqa: PLC0415 - not every Python has it

        found: list[str] = []

        def complete(text: str, number: int) -> str | None:
            if number == 0:
                found[:] = sorted(name for name in _names(connected) if name.startswith(text))
            return found[number] if number < len(found) else None

        readline.set_completer(complete)
        readline.set_completer_delims(" \t\n,;()=<>+-*/'")
        readline.parse_and_bind("tab: complete")


def _names(connected: LogConnection) -> set[str]:
    rows = connected.connection.execute(
        "SELECT schema_name, table_name, column_name FROM duckdb_columns() WHERE NOT internal"
    ).fetchall()
    names = {name for row in rows for name in row if not name.startswith("binlane log ")}
    return names | {f"{schema}.{table}" for schema, table, _ in rows if schema != "main"}
