"""`binlane watch`: the changes of a log as they come."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import click

from binlane.cli.change_output import ChangePrinter, opened_output, takes_output
from binlane.cli.filter_options import filter_terms, has_filter, takes_tables
from binlane.cli.log_input import catalog_of, takes_log_input
from binlane.cli.password_input import server_with_password
from binlane.cli.talk import say, verbose_option
from binlane.errors import ConfigError

if TYPE_CHECKING:
    from binlane.binlogs.filters.filter_state import FilterState
    from binlane.tables.changes.logged_changes import Change, ChangedRow, ChangeOperation
    from binlane.tables.changes.watched_log import Since, WatchRequest

_AGO: Final = re.compile(r"(\d+)\s*([smhd])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_OPS: Final = "insert, update, delete, ddl, statement"


@click.command("watch")
@click.argument("sources", metavar="LOG...", nargs=-1, required=True)
@click.option(
    "--tables",
    default="",
    metavar="LISTS",
    help="Tables and databases by their names, as shop.orders,crm, or LOG(…), IGNORE(…); else all.",
)
@takes_tables
@click.option(
    "--columns",
    default="",
    metavar="NAMES",
    help="Only these columns and the key, with commas between; updates of others are left out.",
)
@click.option(
    "--op",
    "operations",
    default="",
    metavar="OPS",
    help=f"Only these operations, with commas between: {_OPS}. An INCIDENT is always told.",
)
@click.option(
    "--since",
    "--start-datetime",
    "--start-gtid",
    "since",
    metavar="PLACE",
    help="Begin there and not now: 10m or 2h ago, a time ('2026-11-20 15:00:00' is local time), "
    "FILE:POSITION, or behind these GTIDs.",
)
@click.option("--from-beginning", is_flag=True, help="Begin with the oldest change of the log.")
@click.option(
    "--follow/--no-follow",
    default=True,
    help="Wait for more at the log's end, or end there. [--follow]",
)
@click.option(
    "--count",
    type=click.IntRange(min=1),
    metavar="N",
    help="End after N changes.",
)
@click.option(
    "--statements", is_flag=True, help="Also the statements that made rows, where the log has them."
)
@takes_output
@takes_log_input
@verbose_option
@click.option("--quiet", is_flag=True, help="No remarks, only changes and errors.")
def command(sources: tuple[str, ...], *, quiet: bool, **options: Any) -> int:
    """Show the changes of LOG as they come, a line a row.

    LOG is a server's URL (also of binlane's port: URL#NAME is one of its binlogs), DATA#NAME for a
    binlog of `binlane serve`, a binlog file, an index or a directory of binlog files. Changes are
    shown from now on until Ctrl-C; later files of the log are followed.
    """
    notes = _Notes(is_quiet=quiet)
    wish = _Wish(options)
    request = _request(sources, options)
    from binlane.tables.changes.watched_log import WatchedLog  # noqa: PLC0415 - after --help

    log = WatchedLog(request, notes)
    if not quiet and request.goes_on and sys.stderr.isatty():
        say(f"binlane: watching from {log.start} on; Ctrl-C ends", err=True)
    out = opened_output(is_json=options["format_"] == "json")
    printer = ChangePrinter(options, out, has_statements=options["statements"])
    left: int | None = options["count"]
    for change in log.changes():
        shown = wish.of(change)
        if shown is None:
            continue
        printer.print_change(shown)
        if left is not None:
            left -= 1
            if not left:
                break
    if request.filtering is not None and not quiet and not request.goes_on:
        for text in request.filtering.summary(is_whole=request.since is None):
            say(f"binlane: {text}", err=True)
    return 0


class _Wish:
    """The changes that the options ask for, beyond the filter by tables."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._columns = frozenset(_names(options["columns"]))
        self._kinds = _kinds(options["operations"])

    def of(self, change: Change) -> Change | None:
        """The change as it is to be shown; None if it is left out."""
        from binlane.tables.changes.logged_changes import (  # noqa: PLC0415 - after --help
            ChangedRow,
            ChangeOperation,
        )

        if change.kind is ChangeOperation.INCIDENT:
            return change
        if self._kinds and change.kind not in self._kinds:
            return None
        if self._columns and isinstance(change, ChangedRow):
            return self._narrowed(change)
        return change

    def _narrowed(self, change: ChangedRow) -> ChangedRow | None:
        from binlane.tables.changes.logged_changes import (  # noqa: PLC0415 - after --help
            ChangeOperation,
            name_of,
        )

        names = {name_of(change.columns[index]).lower() for index in change.changed}
        if change.kind is ChangeOperation.UPDATE and not names & self._columns:
            return None
        return change.narrowed(lambda name: name.lower() in self._columns)


class _Notes:
    """Remarks on standard error."""

    def __init__(self, *, is_quiet: bool) -> None:
        self._is_quiet = is_quiet

    def __call__(self, text: str) -> None:
        if self._is_quiet:
            return
        say(f"binlane: {text}", err=True)


def _request(sources: tuple[str, ...], options: Mapping[str, Any]) -> WatchRequest:
    from binlane.tables.changes.watched_log import WatchRequest  # noqa: PLC0415 - after --help

    since = options["since"]
    if since is not None and options["from_beginning"]:
        raise click.UsageError("--since and --from-beginning exclude each other")
    schema = options["schema"]
    return WatchRequest(
        sources=[server_with_password(source, options["password_file"]) for source in sources],
        since=None if since is None else read_since(since),
        is_from_now=since is None and not options["from_beginning"] and options["follow"],
        goes_on=options["follow"],
        filtering=_filtering(options),
        keys=options["encryption_keys"],
        catalog=None if schema is None else catalog_of(schema, options["password_file"]),
    )


def _filtering(options: Mapping[str, Any]) -> FilterState | None:
    if options["tables"] and has_filter(options):
        raise click.UsageError(
            "--tables and --do-table or its like both choose tables; give one of them"
        )
    state = _chosen(options["tables"]) if options["tables"] else _filtered(options)
    return None if state.terms.is_everything else state


def _chosen(tables: str) -> FilterState:
    source = click.get_current_context().get_parameter_source("rename")
    if source is click.core.ParameterSource.COMMANDLINE:
        raise click.UsageError("--tables goes by names, and --rename is of --do-table and its like")
    from binlane.tables.changes.chosen_tables import ChosenTables  # noqa: PLC0415 - after --help
    from binlane.tables.ranges.scopes import read_scope  # noqa: PLC0415 - likewise

    return ChosenTables(read_scope(tables))


def _filtered(options: Mapping[str, Any]) -> FilterState:
    from binlane.binlogs.filters.filter_state import FilterState  # noqa: PLC0415 - after --help

    return FilterState(filter_terms(options))


def read_since(text: str) -> Since:
    """Read where to begin: `10m`, a time, FILE:POSITION, or GTIDs of MariaDB or MySQL.

    Raises:
        ConfigError: If it is none of these.
    """
    from binlane.cli.cat_values import Time  # noqa: PLC0415 - after --help
    from binlane.positions import GtidSet  # noqa: PLC0415 - likewise
    from binlane.tables.columnar.selection import parse_bound  # noqa: PLC0415 - likewise

    text = text.strip()
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    for read in (
        lambda: datetime.fromtimestamp(Time().read(text), UTC),
        lambda: GtidSet.parse(text),
    ):
        try:
            return read()
        except ValueError:
            continue
    try:
        return parse_bound(text, key="since")
    except ConfigError:
        raise ConfigError(
            f"{text!r} is no place in a log",
            key="since",
            hint="write 10m, '2026-11-20 15:00:00', FILE:POSITION, 0-1-5 or a MySQL GTID set",
        ) from None


def _names(text: str) -> list[str]:
    return [name.strip().lower() for name in text.split(",") if name.strip()]


def _kinds(text: str) -> frozenset[ChangeOperation]:
    from binlane.tables.changes.logged_changes import ChangeOperation  # noqa: PLC0415 - after --help

    known = {kind.value: kind for kind in ChangeOperation}
    for name in _names(text):
        if name not in known:
            raise click.UsageError(f"--op: there is no operation {name!r}; there are {_OPS}")
    return frozenset(known[name] for name in _names(text))
