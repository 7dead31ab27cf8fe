"""A log that is watched: where it begins, its events as they come, and their changes.

Not here: how changes look, and which of them are printed beyond the filter by tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from glob import escape
from pathlib import Path

from binlane.binlogs.cat.event_selection import EventSelection, Selector
from binlane.binlogs.filters.events import EventFilter
from binlane.binlogs.filters.filter_state import FilterState
from binlane.binlogs.store.catalog import CATALOG_FILE
from binlane.client.schema import logs_names, read_schema
from binlane.errors import CodecError, ConfigError, PeerError, StoreError
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.format import MAGIC, Format
from binlane.log.grouping.inner import expanded
from binlane.positions import FilePosition, GtidPosition, GtidSet
from binlane.statements.sql.logged_objects import LoggedObjects
from binlane.tables.changes.growing_files import FilesEvent, FollowOptions, growing_events
from binlane.tables.changes.logged_changes import Change, ChangeReader
from binlane.tables.changes.served_events import ServedLog
from binlane.tables.columnar.selection import Bound
from binlane.tables.ranges.filesystems import is_server, local_path
from binlane.tables.ranges.log_sources import INDEX_SUFFIX, Sources, log_name
from binlane.tables.ranges.planner import Planner, PlanOptions
from binlane.tables.ranges.served_logs import ServerPlace
from binlane.tables.ranges.storage import head_event, named
from binlane.tables.ranges.stored_files import StoredLogFile

Since = Bound | GtidSet | None
"""The place behind which changes are wanted: a place, a time or GTIDs; None is the beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRequest:
    """A request to watch a log.

    Attributes:
        sources: The log as users name it.
        since: Place from which changes are wanted.
        is_from_now: True to begin at the log's present end, whatever `since` says.
        goes_on: True to wait for more at the log's end.
        filtering: State of the filter before the first event; None without a filter.
        keys: Path of a key file, for encrypted files.
        catalog: The objects before the first event, where a schema tells them; None otherwise.
    """

    sources: Sequence[str]
    since: Since = None
    is_from_now: bool = True
    goes_on: bool = True
    filtering: FilterState | None = None
    keys: str | None = None
    catalog: LoggedObjects | None = None


class WatchedLog:
    """A log while it is watched.

    Attributes:
        start: Place where the reading begins.

    Args:
        request: The request of the user.
        note: Called with remarks for the user.

    Raises:
        ConfigError: If the sources are not one log, or begin nowhere.
        StoreError: If a file cannot be read, or the place is not in the log any more.
        PeerError: If a server cannot be asked.
    """

    def __init__(self, request: WatchRequest, note: Callable[[str], None]) -> None:
        names, first = _followed(request.sources) if request.goes_on else (request.sources, "")
        self._request = request
        self._note = note
        self._names = list(names)
        self._sources = Sources(names)
        self._place = ServerPlace.parse(names[0]) if is_server(names[0]) else None
        if self._place is not None and len(names) > 1:
            raise ConfigError(
                "a server stands beside other logs", key="log", hint="name the server alone"
            )
        # Before the log's end is asked for: DDL behind it must find the tables as they were.
        self._catalog = request.catalog or self._catalog_of_now()
        self._files = self._sources.one_log()
        self._selection = EventSelection()
        self.start = self._start(first)

    def changes(self) -> Iterator[Change]:
        """Give the log's changes, and wait for more if that is asked for.

        Raises:
            CodecError: If the log is damaged.
            StoreError: If a file cannot be read, or the log was reset.
            PeerError: If a server refuses something.
        """
        request = self._request
        reader = ChangeReader(self._objects_before, self._catalog)
        chosen = None
        if request.filtering is not None:
            chosen = EventFilter(request.filtering, self._note)
        selector = Selector(self._selection)
        format_: Format | None = None
        for file, event in self._events():
            if isinstance(event.body, FormatDescriptionEvent):
                format_ = event.body.format
                selector.begin_file(file, is_first=False, is_last=False)
            assert format_ is not None, "a file's FORMAT_DESCRIPTION comes first"
            is_taken = selector.takes(event)
            for inner in expanded(event, format_, file=file):
                yield from self._changes_of(reader, chosen, inner, file, is_taken=is_taken)
                reader.follow(inner)

    def _changes_of(
        self,
        reader: ChangeReader,
        chosen: EventFilter | None,
        event: Event,
        file: str,
        *,
        is_taken: bool,
    ) -> Iterator[Change]:
        if not is_taken:
            return
        try:
            for kept in (event,) if chosen is None else chosen.feed(event, file=file):
                yield from reader.feed(kept, file=file)
        except CodecError as error:
            raise error.at(file, event.position) from None

    # The log and its place ------------------------------------------------------------------------

    def _events(self) -> Iterator[FilesEvent]:
        request = self._request
        if self._place is None:
            options = FollowOptions(goes_on=request.goes_on, keys=request.keys, note=self._note)
            yield from growing_events(self._sources, self.start, options)
            return
        if self.start.position > len(MAGIC):
            # A dump from the middle of a file has no FORMAT_DESCRIPTION of its own.
            yield self.start.file, head_event(self._file(self.start.file).uri, is_plain=True)
        served = ServedLog(self._place, self._note, goes_on=request.goes_on)
        yield from served.events(self.start)

    def _file(self, name: str) -> StoredLogFile:
        return next(file for file in self._files if file.name == name)

    def _start(self, first: str) -> FilePosition:
        since = self._request.since
        if not self._files:
            raise StoreError(
                "there is no file of a log", path=named(self._names[0]), hint="name a binlog file"
            )
        if self._request.is_from_now:
            return self._end()
        if since is None:
            return FilePosition(first or self._files[0].name, len(MAGIC))
        if isinstance(since, datetime):
            self._selection = EventSelection(start_time=int(since.timestamp()))
            return FilePosition(self._file_at(since), len(MAGIC))
        if isinstance(since, FilePosition):
            self._check_file(since.file)
            place = self._planner().offset_at(since.file, since.position)
            return FilePosition(place.file, place.position)
        if isinstance(since, GtidPosition):
            self._selection = EventSelection(start_gtids=since, is_gtid_strict=False)
        else:
            self._selection = EventSelection(exclude_gtids=since)
        found = self._planner().begin(since)
        return FilePosition(found.file, found.position)

    def _check_file(self, name: str) -> None:
        """Refuse a file that the log has not.

        Raises:
            StoreError: If the log has no such file.
        """
        names = [file.name for file in self._files]
        if name not in names:
            raise StoreError(
                f"the log has no file {name}: it has {names[0]} to {names[-1]}",
                path=named(self._names[0]),
                hint="begin with one of these, or with --from-beginning",
            )

    def _end(self) -> FilePosition:
        last = self._files[-1]
        if self._place is not None:
            return FilePosition(last.name, max(last.size_bytes, len(MAGIC)))
        end = self._planner().end()
        return FilePosition(end.file, end.position)

    def _file_at(self, when: datetime) -> str:
        """Name of the last file that its server began before a time."""
        for file in reversed(self._files):
            try:
                head = head_event(file.uri, is_plain=file.is_plain, keys=self._request.keys)
            except CodecError:
                continue  # its server is making it
            if head.header.timestamp <= when.timestamp():
                return file.name
        return self._files[0].name

    def _planner(self) -> Planner:
        return self._planner_of(self._names)

    def _planner_of(self, names: Sequence[str]) -> Planner:
        return Planner(names, PlanOptions(keys=self._request.keys))

    # Names of columns -----------------------------------------------------------------------------

    def _objects_before(self, file: str, event: Event) -> LoggedObjects | None:
        """The objects of the log's server where the log first leaves names of columns out."""
        request = self._request
        if self._place is not None and request.is_from_now:
            return self._objects_of_server()
        planner = self._planner()
        if self._place is not None and request.since is not None:
            # The log before may be large, and comes through the network: its last file is looked at.
            planner = self._planner_of([self._file(self.start.file).uri])
            if file != self.start.file:
                return self._objects_of_server()
        found = planner.catalog_at(planner.offset_at(file, event.position))
        if self._place is not None and (others := self._objects_of_server()) is not None:
            # The log's own statements come first: the server's tables are those of now.
            told = [found.store.tables[name] for name in found.store.tables]
            found = LoggedObjects.of_tables([*others.store.tables.values(), *told])
        self._tell_unknown(found)
        return found

    def _catalog_of_now(self) -> LoggedObjects | None:
        """The server's tables, if its log tells no names of columns and is read from now on."""
        place = self._place
        if place is None or not self._request.is_from_now:
            return None
        return None if logs_names(place.url, place.password()) else self._objects_of_server()

    def _objects_of_server(self) -> LoggedObjects | None:
        assert self._place is not None, "only servers are asked"
        found = LoggedObjects()
        try:
            found.load_statements(read_schema(self._place.url, self._place.password()))
        except PeerError as error:
            self._note(f"names of columns are unknown, since the server does not tell: {error}")
            return None
        return found

    def _tell_unknown(self, found: LoggedObjects) -> None:
        if not found.store.tables:
            self._note(
                "the log tells no names of columns, nor has it the tables' CREATE TABLE: columns "
                "are @1, @2 …; --schema gives names (a file, or mariadb://USER@HOST)"
            )


def _followed(sources: Sequence[str]) -> tuple[Sequence[str], str]:
    """The names of a log whose later files are followed too, and the file to begin with.

    One file of a log, or its index, means all files of that log beside it.
    """
    if len(sources) != 1 or is_server(sources[0]) or "://" in sources[0]:
        return sources, ""
    path = Path(local_path(sources[0]))
    if not path.is_file():
        return sources, ""
    is_index = path.suffix == INDEX_SUFFIX
    name = path.stem if is_index else log_name(path.name)
    if name is None:
        return sources, ""
    first = "" if is_index else path.name
    if (path.absolute().parent.parent.parent / CATALOG_FILE).exists():
        return [str(path.absolute().parent)], first
    return [f"{escape(str(path.parent / name))}.[0-9]*"], first
