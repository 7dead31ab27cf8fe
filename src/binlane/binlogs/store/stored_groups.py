"""Reading binlog files: any path, compressed or not, and a store that another process may write.

Needs no lock. A live file is read up to its last whole event group; what a writer has begun
behind that is not there yet.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from binlane.binlogs.store.catalog import BinlogRecord, Catalog, Mark, ScopeChange
from binlane.binlogs.store.chunks import base_name, open_chunks
from binlane.binlogs.store.file_facts import FileFacts, closed_file
from binlane.binlogs.store.files import (
    BINLOGS_DIRECTORY,
    BinlogFile,
    file_number,
    read_head,
    read_index,
)
from binlane.binlogs.store.incidents import StoredIncident, incident_of, merged
from binlane.errors import CodecError, StoreError, TruncatedError
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.encryption import KeyRing
from binlane.log.codec.event import Event, checksum, encode_event
from binlane.log.codec.format import CHECKSUM_LENGTH, HEADER_LENGTH, MAGIC, Format
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import (
    GTID_TYPES,
    EventGroup,
    GroupTracker,
    group_events,
    gtid_of,
)
from binlane.log.grouping.first_event import format_of
from binlane.log.grouping.walk import Walker, walk
from binlane.positions import Position, nothing_done
from binlane.statements.scope.definition import Definition, is_internal

# These events close a file and belong to no group: a writer may still take them back.
_CLOSING: Final = frozenset({EventType.ROTATE, EventType.STOP})

_READ_BYTES: Final = 1 << 20
_REST_S: Final = 0.005
_LENGTH_AT: Final = slice(9, 13)
_TYPE_AT: Final = 4


def read_groups(
    paths: Iterable[str | Path], *, keys: KeyRing | None = None
) -> Iterator[EventGroup]:
    """The event groups of several files, in the order given.

    Args:
        paths: Paths, or `-`, as `open_chunks` takes them.
        keys: Keys for files that a server encrypted.

    Raises:
        CodecError: At the first fault, with the path as given and the position.
        StoreError: If a file cannot be read.
    """
    for path in paths:
        events = walk(open_chunks(path), file=str(path), keys=keys)
        yield from group_events(events, file=base_name(path))


def first_event(path: str | Path) -> Event:
    """The FORMAT_DESCRIPTION of a file.

    Raises:
        CodecError: With path and position, if the file does not begin with one.
    """
    event = next(Walker(open_chunks(path), file=str(path)).events(), None)
    if event is None or not isinstance(event.body, FormatDescriptionEvent):
        found = "nothing" if event is None else event.header.type_name
        raise CodecError(
            f"FORMAT_DESCRIPTION is expected, {found} is there",
            hint="name a binlog file from its beginning",
        ).at(str(path), len(MAGIC))
    return event


def fingerprint(first: Event) -> str:
    """Tells a file from another one that later gets its name: the checksum of its first event."""
    data = encode_event(first, None)
    return f"{checksum(data[:-CHECKSUM_LENGTH]):08x}"


def whole_groups(path: Path, *, position: int, format_: Format) -> Iterator[tuple[Event, bool]]:
    """Give the events from a position on, each with True if an event group is complete behind it.

    Args:
        path: Path of a plain file, neither compressed nor encrypted.
        position: Position at which an event group starts.
        format_: Format of the file's events.

    Raises:
        CodecError: Where the file ends inside an event, or is damaged.
    """
    tracker = GroupTracker()
    chunks = open_chunks(path, position=position)
    for event in Walker(chunks, file=str(path), position=position, format_=format_).events():
        ends = tracker.feed(event).ends
        yield event, ends and event.header.type_code not in _CLOSING


def complete_end(path: Path, *, after: int = 0) -> int:
    """Give the end of the last whole event group of a file that may still be written.

    Args:
        path: A plain file of any server.
        after: A position that is known to be such an end; the walk begins there.

    Raises:
        CodecError: If the file is damaged; an event that is not complete yet is no damage.
    """
    try:
        head = first_event(path)
    except TruncatedError:
        return len(MAGIC)
    end = max(after, head.next_position)
    with suppress(TruncatedError):
        for event, is_whole in whole_groups(path, position=end, format_=format_of(head)):
            if is_whole:
                end = event.next_position
    return end


class StoreReader:
    """A store as other processes see it: names, definitions, files up to their last whole group.

    Remembers what it knows of files, so that asking again is cheap.
    """

    def __init__(self, data_dir: Path) -> None:
        """Look at a data directory.

        Raises:
            StoreError: If there is no store in it.
        """
        self._binlogs = data_dir / BINLOGS_DIRECTORY
        self._catalog_path = Catalog.path_in(data_dir)
        # The key is id, not name: a binlog may be dropped and another take its name.
        self._known: dict[tuple[int, str], BinlogFile] = {}
        if not self._catalog_path.exists():
            raise StoreError(
                "no binlane store is here",
                path=str(data_dir),
                hint="name the data_dir of `binlane serve`",
            )

    def names(self) -> tuple[str, ...]:
        """The binlogs, by name."""
        return tuple(sorted(self._records()))

    def definitions(self) -> dict[str, Definition]:
        """The definitions, by name."""
        return {name: record.definition for name, record in self._records().items()}

    def watermark(self, name: str) -> Position:
        """The last stored position that a binlog is complete up to; its files may hold more.

        Raises:
            StoreError: If there is no such binlog.
        """
        record = self._record(name)
        return record.mark.position if record.mark else nothing_done(record.begin.flavor)

    def mark(self, name: str) -> Mark:
        """The last stored mark of a binlog: up to where its files will stay, and its position there.

        Raises:
            StoreError: If there is no such binlog, or it is only being made.
        """
        mark = self._record(name).mark
        if mark is None:
            raise StoreError(f"binlog {name} is being made", path=str(self._binlogs / name))
        return mark

    def history(self, name: str) -> list[ScopeChange]:
        """The changes of a binlog's definition, oldest first.

        Raises:
            StoreError: If there is no such binlog.
        """
        log_id = self._record(name).definition.log_id
        with Catalog.open_read_only(self._catalog_path) as catalog:
            return [change for change in catalog.history() if change.log_id == log_id]

    def files(self, name: str) -> tuple[BinlogFile, ...]:
        """The files of a binlog, oldest first, with the sizes up to which they may be read.

        Raises:
            StoreError: If there is no such binlog.
            CorruptStoreError: If its index or a file's first events are damaged.
            CodecError: If the last file is damaged.
        """
        record = self._record(name)
        log_id, mark = record.definition.log_id, record.mark
        directory = self._binlogs / name
        *closed, last = read_index(directory)
        self._learn(record, directory, closed)
        return (
            *(self._known[log_id, file] for file in closed),
            self._live_file(
                log_id,
                directory / last,
                whole_up_to=mark.end.position if mark and mark.end.file == last else 0,
            ),
        )

    def _learn(self, record: BinlogRecord, directory: Path, closed: list[str]) -> None:
        """Come to know the closed files, from the catalog as far as it has them."""
        log_id = record.definition.log_id
        # A live file that is known has no end yet.
        new = [
            name
            for name in closed
            if (known := self._known.get((log_id, name))) is None or known.ended is None
        ]
        if not new:
            return
        before = (file_number(new[0], binlog=directory.name) or 1) - 1
        with Catalog.open_read_only(self._catalog_path) as catalog:
            noted = FileFacts(catalog, log_id, record.begin.flavor).known(directory, after=before)
        for name in new:
            self._known[log_id, name] = noted.get(name) or closed_file(directory / name)

    def _records(self) -> dict[str, BinlogRecord]:
        with Catalog.open_read_only(self._catalog_path) as catalog:
            records = {each.definition.name: each for each in catalog.binlogs() if each.is_live}
        return {name: each for name, each in records.items() if not is_internal(name)}

    def _record(self, name: str) -> BinlogRecord:
        records = self._records()
        if name not in records:
            names = ", ".join(sorted(records)) or "none"
            raise StoreError(
                f"unknown binlog {name}; the binlogs are: {names}", path=str(self._binlogs)
            )
        return records[name]

    def _live_file(self, log_id: int, path: Path, *, whole_up_to: int) -> BinlogFile:
        known = self._known.get((log_id, path.name))
        begin = known.begin if known else read_head(path).begin
        end = complete_end(path, after=max(whole_up_to, known.size_bytes if known else 0))
        known = BinlogFile(
            directory=path.parent,
            name=path.name,
            size_bytes=end,
            begin_gtids=str(begin),
            flavor=begin.flavor,
        )
        self._known[log_id, path.name] = known
        return known


def incidents_in(path: Path, size_bytes: int) -> tuple[StoredIncident, ...]:
    """The INCIDENTs of a file of a binlog, up to a position.

    The search reads the file from event to event, and rests in between: others need the processor
    more.

    Raises:
        CodecError: If the file is damaged.
        StoreError: If it is no file of a store.
        OSError: If it cannot be read.
    """
    head = read_head(path)
    format_, found = head.format_description.format, []
    for begin, place in _incident_places(path, size_bytes):
        gtid = ""
        for event, is_whole in whole_groups(path, position=begin, format_=format_):
            gtid = str(gtid_of(event) or gtid)
            if event.position == place:
                incident = incident_of(event, gtid, path.name, binlog=path.parent.name)
                found += [] if incident is None else [incident]
                break
            gtid = "" if is_whole else gtid
    return merged([found])


def _incident_places(path: Path, size_bytes: int) -> Iterator[tuple[int, int]]:
    """Give for each INCIDENT the position of the last GTID before it, else its own, and its own."""
    position, last_gtid = len(MAGIC), 0
    window, base = b"", 0
    with path.open("rb") as stream:
        while position + HEADER_LENGTH <= size_bytes:
            if not base <= position <= base + len(window) - HEADER_LENGTH:
                time.sleep(_REST_S)
                stream.seek(position)
                window, base = stream.read(_READ_BYTES), position
            header = window[position - base : position - base + HEADER_LENGTH]
            if len(header) < HEADER_LENGTH:
                return
            kind = header[_TYPE_AT]
            if kind in GTID_TYPES:
                last_gtid = position
            elif kind == EventType.INCIDENT:
                yield last_gtid or position, position
            # A length that cannot be is damage, which is told by whoever reads the file.
            position += max(int.from_bytes(header[_LENGTH_AT], "little"), HEADER_LENGTH)
