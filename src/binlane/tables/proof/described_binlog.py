"""One binlog of a store, followed up to its marks, with the digests that a restart keeps.

Whoever follows a binlog here is a reader like any other: the store's owner goes on writing. Only
what a mark covers is read, since a crash may take back what lies behind it.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np

from binlane.binlogs.store.catalog import Mark, ScopeChange
from binlane.binlogs.store.disk import LocalDisk, unusable, write_whole
from binlane.binlogs.store.files import BinlogFile
from binlane.binlogs.store.stored_groups import StoreReader
from binlane.errors import StoreError
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.format import MAGIC, Format
from binlane.log.grouping.event_group import EventGroup
from binlane.names import TableName
from binlane.positions import (
    FilePosition,
    Position,
    file_number,
    nothing_done,
    parse_position,
)
from binlane.statements.scope.definition import Definition
from binlane.tables.proof.described_tables import DescribedTable, DescribedTables, DigestGap
from binlane.tables.proof.table_digest import TableDigest
from binlane.tables.proof.watched_changes import WatchedChanges
from binlane.tables.ranges.log_range import LogRange
from binlane.tables.ranges.stored_files import read_groups_of

STATE_FILE: Final = "digests.npz"
_VERSION: Final = 1
_SAVE_S: Final = 30.0


class DescribedBinlog:
    """A binlog of a store, and its tables up to a place in it.

    Args:
        store: Reader of the binlog's store.
        name: Name of the binlog there.
        directory: Directory in which its digests are kept.

    Attributes:
        described: The tables as the binlog describes them.
        position: The source's position up to which the binlog was followed.
        logged: The last GTIDs of the groups that were followed; groups out of scope are not in it.

    Raises:
        StoreError: If there is no such binlog, or the kept digests cannot be read.
    """

    def __init__(self, store: StoreReader, name: str, directory: Path) -> None:
        self._store = store
        self._name = name
        self._path = directory / STATE_FILE
        self.described = DescribedTables()
        mark = store.mark(name)
        self.logged: Position = nothing_done(mark.position.flavor)
        self.position: Position = nothing_done(mark.position.flavor)
        self._scope_changes = 0
        self._load()
        self._take_scope_changes()

    @property
    def name(self) -> str:
        """Name of the binlog."""
        return self._name

    @property
    def definition(self) -> Definition:
        """The binlog's definition as it is now."""
        return self._store.definitions()[self._name]

    @property
    def mark(self) -> Mark:
        """The mark that the store saved last."""
        return self._store.mark(self._name)

    @property
    def end(self) -> FilePosition:
        """End of what any reader can have of the binlog now, which a mark may not cover yet."""
        last = self._store.files(self._name)[-1]
        return FilePosition(last.name, last.size_bytes)

    def advance(self, mark: Mark) -> None:
        """Follow the binlog up to a mark.

        Raises:
            CodecError: With file and position, if a file is damaged.
            StoreError: If a file cannot be read.
        """
        self._take_scope_changes()
        saved_s = time.monotonic()
        for group in self._follow(self.described, mark.end):
            if group.gtid is not None:
                self.logged = self.logged.advance(group.gtid)
            if not group.is_control and time.monotonic() - saved_s > _SAVE_S:
                self.described.place = FilePosition(group.file, group.next_position)
                self.save()
                saved_s = time.monotonic()
        self.described.place = mark.end
        self.position = mark.position

    def replay(self, watch: WatchedChanges, start: FilePosition | None) -> None:
        """Follow the binlog once more up to where it was followed, for the changes of one table.

        Args:
            watch: Takes the changes of the table.
            start: Where to begin; None for the first file.

        Raises:
            CodecError: With file and position, if a file is damaged.
            StoreError: If a file cannot be read, or is no longer there.
        """
        end = self.described.place
        described = DescribedTables(place=start, watches={watch.table: watch})
        if end is not None:
            for _ in self._follow(described, end):
                pass

    def _follow(self, described: DescribedTables, end: FilePosition) -> Iterator[EventGroup]:
        for group, format_ in self._groups(described, end):
            finished = described.follow(group, format_)
            if finished is not None:
                self._commit(described, finished, group)
            yield group

    def _groups(
        self, described: DescribedTables, end: FilePosition
    ) -> Iterator[tuple[EventGroup, Format]]:
        files, start = self._store.files(self._name), described.place
        if start is not None and file_number(start.file) < files[0].number:
            described.distrust_all(DigestGap.PURGED, "")
            described.prepared.clear()
            start = None
        for file in files:
            if start is not None and file.number < file_number(start.file):
                continue
            if file.number > file_number(end.file):
                return
            stop = end.position if file.name == end.file else file.size_bytes
            begin = start.position if start is not None and file.name == start.file else len(MAGIC)
            yield from _groups_of(file, begin, stop)

    def _commit(self, described: DescribedTables, xid: str, commit: EventGroup) -> None:
        """Take the rows of an XA transaction that a group finishes."""
        place = described.prepared.pop(xid, None)
        gtid = "" if commit.gtid is None else str(commit.gtid)
        if not _is_committed(commit):
            return
        known = {file.name: file for file in self._store.files(self._name)}
        if place is None or place.file not in known:
            described.distrust_all(DigestGap.PREPARED, gtid)
            return
        for group, own_format in _groups_of(known[place.file], place.position, None):
            if not group.is_control:
                described.take_rows(group, own_format, gtid)
                return
        described.distrust_all(DigestGap.PREPARED, gtid)

    def _take_scope_changes(self) -> None:
        """Trust no table that was out of the scope for a time, and forget those that are out of it."""
        definition = self.definition
        changes = self._store.history(self._name)
        new = changes[self._scope_changes :] if self._scope_changes else []
        for change in new:
            out = [name for name in self.described.tables if not _included(change, name)]
            self.described.distrust(out, DigestGap.SCOPE, change.gtids)
        self._scope_changes = len(changes)
        for name in list(self.described.tables):
            if not definition.scope.includes(name):
                del self.described.tables[name]

    # Kept over restarts ---------------------------------------------------------------------------

    def save(self) -> None:
        """Keep the digests, at once or not at all.

        Raises:
            StoreError: If the disk fails.
        """
        tables = self.described.tables
        meta = {
            "version": _VERSION,
            "log_id": self.definition.log_id,
            "flavor": self.position.flavor,
            "position": str(self.position),
            "logged": str(self.logged),
            "place": _place_json(self.described.place),
            "prepared": {xid: _place_json(at) for xid, at in self.described.prepared.items()},
            "scope_changes": self._scope_changes,
            "tables": [_table_json(name, table) for name, table in tables.items()],
        }
        stream = io.BytesIO()
        np.savez(
            stream,
            counts=np.array([table.digest.counts for table in tables.values()], np.int64),
            sums=np.array([table.digest.sums for table in tables.values()], np.uint64),
            meta=np.frombuffer(json.dumps(meta).encode(), np.uint8),
        )
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(LocalDisk(), self._path, stream.getvalue())
        except OSError as error:
            raise unusable(error, self._path) from error

    def _load(self) -> None:
        if not self._path.exists():
            return
        try:
            with np.load(self._path) as kept:
                meta = json.loads(kept["meta"].tobytes())
                counts, sums = kept["counts"], kept["sums"]
        except (OSError, ValueError, KeyError) as error:
            raise StoreError(
                f"the digests of the binlog cannot be read: {error}",
                path=str(self._path),
                hint="remove the file: they are then made again from the binlog's files",
            ) from error
        if meta["log_id"] != self.definition.log_id or meta["version"] != _VERSION:
            return  # of a binlog before that had the name, or of another version of binlane
        flavor = meta["flavor"]
        self.position = parse_position(meta["position"], flavor)
        self.logged = parse_position(meta["logged"], flavor)
        self._scope_changes = meta["scope_changes"]
        described = self.described
        described.place = _place(meta["place"])
        for xid, at in meta["prepared"].items():
            if (place := _place(at)) is not None:
                described.prepared[xid] = place
        for number, table in enumerate(meta["tables"]):
            name, known = _table(table)
            known.digest = TableDigest(counts[number].copy(), sums[number].copy())
            described.tables[name] = known

    def forget(self) -> None:
        """Forget all digests, so that they are made again from the binlog's first file on.

        Raises:
            StoreError: If the disk fails.
        """
        with suppress(FileNotFoundError):
            try:
                self._path.unlink()
            except OSError as error:
                raise unusable(error, self._path) from error
        self.described = DescribedTables()
        self.position = self.logged = nothing_done(self.position.flavor)


def _groups_of(
    file: BinlogFile, start: int, stop: int | None
) -> Iterator[tuple[EventGroup, Format]]:
    yield from groups_with_format(
        LogRange(uri=str(file.path), name=file.name, number=file.number, start=start, stop=stop)
    )


def groups_with_format(piece: LogRange) -> Iterator[tuple[EventGroup, Format]]:
    """The event groups of a range of a file, each with the format of the file.

    Raises:
        CodecError: With file and position, if the file is damaged.
        StoreError: If the file cannot be read.
        PeerError: If it is a server's, and the server goes away.
    """
    format_: Format | None = None
    for group in read_groups_of(piece):
        first = group.events[0].body
        if isinstance(first, FormatDescriptionEvent):
            format_ = first.format
        assert format_ is not None, "a file begins with its format"
        yield group, format_


def _is_committed(group: EventGroup) -> bool:
    from binlane.tables.columnar.prepared_transactions import is_commit  # noqa: PLC0415 - XA is rare

    return any(is_commit(event) for event in group.events)


def _included(change: ScopeChange, name: TableName) -> bool:
    """True if a table was in a binlog's scope behind a change of its definition."""
    logged, ignored = change.log_list.split(", "), change.ignore_list.split(", ")
    names = {name.database, name.plain, name.database.lower(), name.plain.lower()}
    return names.isdisjoint(ignored) and (bool(change.log_all_dbs) or not names.isdisjoint(logged))


def _place_json(place: FilePosition | None) -> list[Any] | None:
    return None if place is None else [place.file, place.position]


def _place(values: list[Any] | None) -> FilePosition | None:
    return None if values is None else FilePosition(values[0], values[1])


def _table_json(name: TableName, table: DescribedTable) -> dict[str, Any]:
    return {
        "database": name.database,
        "table": name.table,
        "layout": table.layout.hex(),
        "since": table.since,
        "is_whole": table.is_whole,
        "doubt": None if table.doubt is None else table.doubt.name,
        "doubt_gtid": table.doubt_gtid,
        "changes": table.changes,
        "base": table.base,
        "base_place": _place_json(table.base_place),
    }


def _table(values: dict[str, Any]) -> tuple[TableName, DescribedTable]:
    doubt = values["doubt"]
    table = DescribedTable(
        layout=bytes.fromhex(values["layout"]),
        since=values["since"],
        is_whole=values["is_whole"],
        doubt=None if doubt is None else DigestGap[doubt],
        doubt_gtid=values["doubt_gtid"],
        changes=values["changes"],
        base=values["base"],
        base_place=_place(values["base_place"]),
    )
    return TableName(values["database"], values["table"]), table
