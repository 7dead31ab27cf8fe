"""The request of a command line of `cat`, checked: options that go together, and their meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import click

from binlane.binlogs.cat.event_selection import EventSelection, IdList
from binlane.cli.filter_options import has_filter
from binlane.log.codec.format import MAGIC
from binlane.positions import GtidPosition

if TYPE_CHECKING:
    from binlane.binlogs.cat.text.text_options import TextOptions
    from binlane.binlogs.filters.filter_state import FilterState
    from binlane.binlogs.filters.terms import FilterTerms

# Of each pair, one says the opposite of the other, or leaves nothing for it to do.
_EXCLUDE_EACH_OTHER: Final = (
    ("do_server_ids", "ignore_server_ids"),
    ("do_domain_ids", "ignore_domain_ids"),
    ("summary", "flashback"),
    ("raw", "summary"),
    ("raw", "flashback"),
    ("raw", "force"),
    ("raw", "html_file"),
    ("summary", "result_file"),
    ("idempotent", "flashback"),
)
_NEED_A_SERVER: Final = ("raw", "to_last_log", "stop_never", "connection_server_id", "bind_address")
_SERVER_REFUSES: Final = ("force", "encryption_keys")
_ID_LISTS: Final = frozenset(
    {"do_server_ids", "ignore_server_ids", "do_domain_ids", "ignore_domain_ids"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatRequest:
    """A command line of `cat`.

    Attributes:
        files: Names of files as typed.
        given: Every option's value by its name.
        selection: The events to print by position, time, id and GTID.
        event_types: Upper-case names of the types to print; empty for all.
        statement_kinds: Kinds of statements to print, as typed; empty for all.
        rewrites: The new names of databases, by old ones.
    """

    files: tuple[str, ...]
    given: Mapping[str, Any]
    selection: EventSelection
    event_types: frozenset[str]
    statement_kinds: tuple[str, ...]
    rewrites: Mapping[str, str]

    @classmethod
    def of(cls, files: tuple[str, ...], given: Mapping[str, Any]) -> CatRequest:
        """Check options and put them in order.

        Raises:
            click.UsageError: If they contradict each other.
        """
        _check(given)
        event_types, kinds = _event_types(given["do_event"])
        request = cls(
            files=files,
            given=given,
            selection=_selection(given),
            event_types=event_types,
            statement_kinds=kinds,
            rewrites=MappingProxyType(dict(given["rewrites"])),
        )
        if (
            given["raw"]
            and not replace(
                request, selection=replace(request.selection, start_position=0)
            ).prints_all
        ):
            raise click.UsageError("--raw writes files as they are; it leaves nothing out")
        if not request.is_remote:
            _check_outputs(files, given)
        return request

    @property
    def is_remote(self) -> bool:
        """True if the log is read from a server."""
        return self.given["read_from_remote_server"] or self.given["remote_kind"] is not None

    @property
    def start_position(self) -> int:
        """The position of the first file where printing starts, 0 for its beginning."""
        return self.selection.start_position

    @property
    def is_filtered_by_name(self) -> bool:
        """True if `--database` or `--table` is given."""
        return self.given["database"] is not None or self.given["table"] is not None

    @property
    def prints_all(self) -> bool:
        """True if every event is printed."""
        return (
            self.selection.is_everything
            and not self.event_types
            and not self.is_filtered_by_name
            and not self.statement_kinds
            and not has_filter(self.given)
        )

    @property
    def is_filtered_only(self) -> bool:
        """True if only the filter by tables and kinds of statements leaves events out.

        Positions in the files may, beside it.
        """
        return (
            replace(self.selection, start_position=0, stop_position=None).is_everything
            and not self.event_types
            and not self.is_filtered_by_name
            and not self.given["keep_empty_groups"]
            and self.given["schema"] is None
        )

    def filter_terms(self) -> FilterTerms:
        """Return the filter by the tables that events concern, and by kinds of statements.

        Raises:
            click.UsageError: If a name is none.
        """
        from binlane.cli.filter_options import filter_terms  # noqa: PLC0415  # needs the SQL layer

        return filter_terms(self.given, kinds=self.statement_kinds)

    def filter_state(self) -> FilterState | None:
        """Return the filter's state before the first event; None where everything is printed.

        Raises:
            click.UsageError: If a name is none.
        """
        terms = None if self.prints_all else self.filter_terms()
        if terms is None or terms.is_everything:
            return None
        from binlane.binlogs.filters.filter_state import FilterState  # noqa: PLC0415  # as above

        return FilterState(terms)

    def text_options(self) -> TextOptions:
        """Return the options of the text that is printed."""
        from binlane.binlogs.cat.text.text_options import Base64Output, TextOptions  # noqa: PLC0415  # as above

        given, selection = self.given, self.selection
        return TextOptions(
            verbose=given["verbose"],
            base64_output=Base64Output(given["base64_output"].lower()),
            short_form=given["short_form"],
            hexdump=given["hexdump"],
            print_table_metadata=given["print_table_metadata"],
            print_row_count=given["print_row_count"],
            print_row_event_positions=given["print_row_event_positions"],
            skip_annotate=given["skip_annotate_row_events"],
            skip_gtids=given["skip_gtids"],
            disable_log_bin=given["disable_log_bin"],
            idempotent=given["idempotent"],
            require_row_format=given["require_row_format"],
            set_charset=given["set_charset"],
            rewrite_databases=self.rewrites,
            load_directory=given["load_directory"],
            starts_inside=selection.start_position > len(MAGIC) and not self.is_remote,
            restores_ids=selection.is_by_id,
        )


def _check_outputs(files: tuple[str, ...], given: Mapping[str, Any]) -> None:
    """Check that no output file is one of the input files."""
    for option in ("result_file", "html_file"):
        path = given[option]
        if path is not None and any(_are_same(path, file) for file in files):
            raise click.UsageError(f"{_shown(option)} would overwrite {path}, which is to be read")


def _are_same(path: str, other: str) -> bool:
    try:
        return Path(path).is_file() and Path(path).samefile(other)
    except (OSError, ValueError):
        return False


def _check(given: Mapping[str, Any]) -> None:
    for one, other in _EXCLUDE_EACH_OTHER:
        if given[one] and given[other]:
            raise click.UsageError(f"{_shown(one)} and {_shown(other)} exclude each other")
    is_remote = given["read_from_remote_server"] or given["remote_kind"] is not None
    for name in _NEED_A_SERVER if not is_remote else ():
        if given[name]:
            raise click.UsageError(f"{_shown(name)} needs --read-from-remote-server")
    for name in _SERVER_REFUSES if is_remote else ():
        if given[name]:
            raise click.UsageError(
                f"{_shown(name)} is for files; a server sends its log whole and decrypted"
            )
    if given["html_file"] and not given["summary"]:
        raise click.UsageError("--html needs --summary")
    if given["flashback"] and given["format_"] == "json":
        raise click.UsageError("--flashback gives SQL; it has no --format=json")
    if given["summary"] and given["format_"] == "sql":
        raise click.UsageError("--summary is text or --format=json")


def _selection(given: Mapping[str, Any]) -> EventSelection:
    positions: dict[str, Any] = {}
    for which in ("start", "stop"):
        position = given[f"{which}_position"]
        if isinstance(position, GtidPosition):
            positions[f"{which}_gtids"] = position
        elif position is not None:
            positions[f"{which}_position"] = position
    _check_window(positions, is_strict=given["gtid_strict_mode"])
    empty = frozenset[int]()
    return EventSelection(
        **positions,
        start_time=given["start_datetime"],
        stop_time=given["stop_datetime"],
        offset=given["offset"],
        server_ids=IdList(
            do=given["do_server_ids"] or empty, ignore=given["ignore_server_ids"] or empty
        ),
        server_id_mask=(1 << given["server_id_bits"]) - 1,
        domain_ids=IdList(
            do=given["do_domain_ids"] or empty, ignore=given["ignore_domain_ids"] or empty
        ),
        is_gtid_strict=given["gtid_strict_mode"],
        include_gtids=given["include_gtids"],
        exclude_gtids=given["exclude_gtids"],
        # The text says itself what it leaves out.
        skips_gtids=given["skip_gtids"] and given["format_"] != "text",
    )


def _check_window(positions: Mapping[str, Any], *, is_strict: bool) -> None:
    start: GtidPosition = positions.get("start_gtids", GtidPosition())
    stop: GtidPosition = positions.get("stop_gtids", GtidPosition())
    for gtid in stop if is_strict else ():
        done = start.last(gtid.domain_id)
        if done is not None and done.sequence > gtid.sequence:
            raise click.UsageError(f"--stop-position {gtid} comes before --start-position {done}")


def _event_types(texts: tuple[str, ...]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Names of types of events, and of kinds of statements."""
    from binlane.log.codec.types import EventType  # noqa: PLC0415  # as above

    names = sorted({name.strip() for text in texts for name in text.split(",") if name.strip()})
    known = {*EventType.__members__, "UNKNOWN"}
    kinds = tuple(name for name in names if name.upper() not in known)
    if kinds:
        from binlane.binlogs.filters.kinds import is_kind  # noqa: PLC0415  # needs the SQL layer

        for name in kinds:
            if not is_kind(name):
                raise click.UsageError(
                    f"--do-event: there is no event type {name.upper()}; such are QUERY, TABLE_MAP, "
                    "WRITE_ROWS_V1; nor is it a kind of statements, as insert, create-table or ddl"
                )
    return frozenset(name.upper() for name in names) & known, kinds


def _shown(name: str) -> str:
    return {"html_file": "--html"}.get(name) or "--" + name.replace("_", "-")
