"""`binlane blame`: the life of one row of a table, as a log has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from binlane.cli.change_output import ChangePrinter, opened_output, takes_output
from binlane.cli.log_input import catalog_of, takes_log_input
from binlane.cli.password_input import server_with_password
from binlane.cli.talk import say, verbose_option

if TYPE_CHECKING:
    from binlane.tables.changes.logged_changes import Change
    from binlane.tables.changes.row_changes import TableLog
    from binlane.tables.changes.row_life import RowHistory, RowLife

_EXIT_NOTHING: Final = 1
_NOTES_MAX: Final = 10


@click.command("blame")
@click.argument("table", metavar="DB.TABLE")
@click.argument("sources", metavar="LOG...", nargs=-1, required=True)
@click.option(
    "--key",
    "keys",
    multiple=True,
    required=True,
    metavar="KEY",
    help="Key of the row: 42, or 42,'a' for the primary key's columns in order, or COLUMN=VALUE;"
    " repeatable.",
)
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="NAME",
    help="Only changes of this column; repeatable.",
)
@takes_output
@takes_log_input
@verbose_option
@click.option("--quiet", is_flag=True, help="No remarks, only changes and errors.")
def command(
    table: str, sources: tuple[str, ...], *, keys: tuple[str, ...], quiet: bool, **options: Any
) -> int:
    """Show the life of a row of DB.TABLE: who changed what, and when.

    LOG is binlog files, a directory, DATA#NAME for a binlog of `binlane serve`, or a server's URL.
    The row is followed through changes of its key and through renames of its table. The last line
    is its present state, or that it is deleted. The exit status is 1 if the log does not have it.
    """
    from binlane.tables.changes.row_changes import TableLog  # noqa: PLC0415 - after --help
    from binlane.tables.changes.row_key import read_key  # noqa: PLC0415 - likewise
    from binlane.tables.changes.row_life import row_history  # noqa: PLC0415 - likewise
    from binlane.tables.changes.table_names import table_name  # noqa: PLC0415 - likewise

    key = read_key(keys)
    name = table_name(table)
    schema = options["schema"]
    log = TableLog(
        [server_with_password(source, options["password_file"]) for source in sources],
        name,
        keys_file=options["encryption_keys"],
        schema=None if schema is None else catalog_of(schema, options["password_file"]),
    )
    if not log.is_known:
        return _tell_nothing(log, "the log has no rows of", "")
    notes = _Notes(is_quiet=quiet)
    history = row_history(log, key, notes)
    notes.finish()
    out = opened_output(is_json=options["format_"] == "json")
    _Life(log, history, options, ChangePrinter(options, out, has_statements=True)).print_all()
    if history.texts and not quiet:
        say(
            f"binlane: {history.texts} statements on the table are in the log as text alone; "
            "it does not tell whether they changed this row",
            err=True,
        )
    if not history.lives:
        values = ", ".join(key.values)
        return _tell_nothing(log, "the log has no change of a row of", f" with the key {values}")
    return 0


class _Life:
    """The printing of a row's life."""

    def __init__(
        self,
        log: TableLog,
        history: RowHistory,
        options: Mapping[str, Any],
        printer: ChangePrinter,
    ) -> None:
        self._log = log
        self._history = history
        self._columns = frozenset(
            name for column in options["columns"] for name in log.names.aliases(column)
        )
        self._printer = printer

    def print_all(self) -> None:
        """Print the changes, and each row's state at the end."""
        for event in self._history.events:
            change = self._chosen(event.change)
            if change is not None:
                self._printer.print_change(change)
        lives = self._history.lives
        # Other rows that had the key ended with a line of their own.
        alive = [life for life in lives if life.is_alive]
        for life in alive or lives[-1:]:
            self._print_end(life)

    def _chosen(self, change: Change) -> Change | None:
        from binlane.tables.changes.logged_changes import ChangedRow  # noqa: PLC0415 - after --help
        from binlane.tables.changes.row_life import changes_column  # noqa: PLC0415 - likewise

        if not self._columns or not isinstance(change, ChangedRow):
            return change
        if not changes_column(change, self._columns):
            return None
        return change.narrowed(lambda name: name.lower() in self._columns)

    def _print_end(self, life: RowLife) -> None:
        state, last = life.state, life.last
        assert last is not None, "each life has a change"
        if state is not None and self._columns:
            state = state.narrowed(lambda name: name.lower() in self._columns)
        self._printer.print_end(state, self._log.names.name_at_end(life.table), last)


class _Notes:
    """Remarks on standard error, the first few of them."""

    def __init__(self, *, is_quiet: bool) -> None:
        self._is_quiet = is_quiet
        self._count = 0

    def __call__(self, text: str) -> None:
        self._count += 1
        if not self._is_quiet and self._count <= _NOTES_MAX:
            say(f"binlane: {text}", err=True)

    def finish(self) -> None:
        """Say how many remarks were not printed."""
        if not self._is_quiet and self._count > _NOTES_MAX:
            say(f"binlane: and {self._count - _NOTES_MAX} more such remarks", err=True)


def _tell_nothing(log: TableLog, what: str, which: str) -> int:
    """Say that the log does not have the row; return the exit status."""
    from binlane.names import nearest  # noqa: PLC0415 - after --help

    asked = log.names.asked
    say(f"binlane: {what} {asked.plain}{which}", err=True)
    meant = None if log.is_known else nearest(asked, log.tables)
    if meant is not None:
        say(f"hint: it has rows of {meant.plain}", err=True)
    return _EXIT_NOTHING
