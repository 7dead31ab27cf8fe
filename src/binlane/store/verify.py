"""Everything that can be wrong with binlog files and a store, as a list; the core of `verify`.

Reads only, needs no lock. A store's live file is looked at up to its last whole event group. That
an event group is missing cannot be told in a scoped binlog; that events are missing can, since
each says where it ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from binlane.codec.control import RotateEvent
from binlane.codec.encryption import KeyRing
from binlane.codec.event import Event
from binlane.codec.mysql_transaction import PreviousGtidsEvent
from binlane.codec.transaction import GtidListEvent
from binlane.errors import CodecError, CorruptStoreError, StoreError, TruncatedError
from binlane.grouping.event_group import EventGroup, Grouper
from binlane.grouping.table_maps import TableMaps
from binlane.grouping.walk import walk
from binlane.positions import FilePosition, Gtid, GtidPosition, Position, nothing_done
from binlane.store.catalog import BinlogRecord, Catalog, Mark
from binlane.store.chunks import base_name, open_chunks
from binlane.store.files import BINLOGS_DIRECTORY, index_path, read_index

_CUT: Final = "the file ends inside an event group"


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is wrong.

    Attributes:
        file: Path of the file, as the caller named it or below the data directory.
        position: Of the first byte of the faulty event; 0 where the file as a whole is at fault.
        what: What is wrong there.
    """

    file: str
    position: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.position}: {self.what}"


def verify(paths: Iterable[str | Path], *, keys: KeyRing | None = None) -> Iterator[Fault]:
    """Check data directories and binlog files.

    Args:
        paths: Data directories, directories of one binlog, and files. Files that stand next to
            each other are taken as one log, in the order given.
        keys: For files that a server encrypted.

    Yields:
        Faults in the order of the log.
    """
    files: list[str | Path] = []
    for path in paths:
        if not Path(path).is_dir():
            files.append(path)
            continue
        yield from verify_files(files, keys=keys)
        files = []
        yield from _verify_directory(Path(path), keys)
    yield from verify_files(files, keys=keys)


def verify_files(
    paths: Iterable[str | Path], *, is_live: bool = False, keys: KeyRing | None = None
) -> Iterator[Fault]:
    """Check files that are one log, oldest first.

    Args:
        paths: The files.
        is_live: Whether the last one may still be written, so that a cut at its end is no fault.
        keys: For files that a server encrypted.
    """
    log = _Log(keys=keys)
    remaining = list(paths)
    while remaining:
        path, *remaining = remaining
        yield from log.file(str(path), may_be_cut=is_live and not remaining)


def verify_store(data_dir: Path) -> Iterator[Fault]:
    """Check all binlogs of a store, their indexes and their watermarks."""
    path = Catalog.path_in(data_dir)
    try:
        with Catalog.open_read_only(path) as catalog:
            records = [record for record in catalog.binlogs() if record.is_live]
    except StoreError as error:
        yield Fault(str(path), 0, error.message)
        return
    for record in records:
        yield from _verify_binlog(data_dir / BINLOGS_DIRECTORY / record.definition.name, record)
    known = {record.definition.name for record in records}
    for directory in sorted((data_dir / BINLOGS_DIRECTORY).iterdir()):
        if directory.name not in known:
            yield Fault(str(directory), 0, "no definition is stored for this binlog")


class _Log:
    """The files of one log, one after the other."""

    def __init__(self, mark: Mark | None = None, keys: KeyRing | None = None) -> None:
        self._mark = mark
        self._keys = keys
        self._position: Position | None = None
        self._following: tuple[str, str, int] | None = None

    def file(self, path: str, *, may_be_cut: bool) -> Iterator[Fault]:
        """Check the next file; the checks inside a file end at its first damage."""
        self._path = path
        yield from self._check_name(path)
        grouper, maps = Grouper(file=base_name(path)), TableMaps()
        end = 0
        try:
            for event in walk(open_chunks(path), file=path, keys=self._keys):
                end = event.next_position
                yield from self._check_control(event)
                maps.feed(event, file=path)
                for group in grouper.feed(event):
                    yield from self._check_group(group)
        except CodecError as error:
            is_cut = isinstance(error, TruncatedError) and bool(end)
            if not (is_cut and may_be_cut):
                yield Fault(error.file or path, error.position or 0, error.message)
        except StoreError as error:
            yield Fault(path, 0, error.message)
        else:
            if end == 0:
                yield Fault(path, 0, "the file holds no event")
            for group in () if may_be_cut else grouper.finish():
                yield Fault(path, group.position, f"{_CUT} that begins here")

    def _check_name(self, path: str) -> Iterator[Fault]:
        if self._following is not None:
            named, before, position = self._following
            if named != base_name(path):
                yield Fault(before, position, f"ROTATE names {named}; {base_name(path)} follows")
        self._following = None

    def _check_control(self, event: Event) -> Iterator[Fault]:
        if isinstance(event.body, RotateEvent):
            self._following = (event.body.file, self._path, event.position)
        if isinstance(event.body, GtidListEvent | PreviousGtidsEvent):
            listed: Position = event.body.position
            if self._position is not None and not listed.includes(self._position):
                yield Fault(
                    self._path,
                    event.position,
                    f"{event.header.type_name} says {listed or 'nothing'} was done before this file; "
                    f"the files before it go up to {self._position}",
                )
            self._position = listed if self._position is None else self._position.union(listed)

    def _check_group(self, group: EventGroup) -> Iterator[Fault]:
        if not group.is_complete:
            yield Fault(self._path, group.position, "an event group begins here that does not end")
        gtid = group.gtid
        if gtid is None:
            return
        position = self._position
        if position is None:
            position = nothing_done("mariadb" if isinstance(gtid, Gtid) else "mysql")
        if not position.covers(gtid):
            self._position = position.advance(gtid)
        elif isinstance(gtid, Gtid) and isinstance(position, GtidPosition):
            last = position.last(gtid.domain_id)
            what = f"GTID {gtid} is not after {last}, done before it"
            yield Fault(self._path, group.position, what)
        else:
            yield Fault(self._path, group.position, f"GTID {gtid} was done before it")
        end = FilePosition(group.file, group.next_position)
        if self._mark and end <= self._mark.end and not self._mark.position.covers(gtid):
            yield Fault(
                self._path,
                group.position,
                f"GTID {gtid} is here, but the watermark {self._mark.position} is before it",
            )


def _verify_directory(directory: Path, keys: KeyRing | None) -> Iterator[Fault]:
    if Catalog.path_in(directory).exists():
        yield from verify_store(directory)
    elif index_path(directory).exists():
        yield from _verify_binlog(directory, None, keys)
    else:
        yield Fault(str(directory), 0, "neither a data directory nor a binlog's directory")


def _verify_binlog(
    directory: Path, record: BinlogRecord | None, keys: KeyRing | None = None
) -> Iterator[Fault]:
    """Check a directory with an index and its files, and what the catalog says of them."""
    index = str(index_path(directory))
    try:
        names = read_index(directory)
    except CorruptStoreError as error:
        yield Fault(index, 0, error.message)
        return
    for path in sorted(directory.iterdir()):
        if path.name not in names and path != index_path(directory):
            yield Fault(str(path), 0, "the index does not name this file")
    missing = [name for name in names if not (directory / name).exists()]
    yield from (Fault(index, 0, f"the index names {name}, which is missing") for name in missing)
    mark = record.mark if record else None
    log = _Log(mark, keys)
    for name in names:
        if name not in missing:
            yield from log.file(str(directory / name), may_be_cut=name == names[-1])
    if mark is None:
        return
    path = directory / mark.end.file
    size = path.stat().st_size if path.exists() else 0
    if size < mark.end.position:
        what = f"the file ends at {size}; it was on disk up to {mark.end.position}"
        yield Fault(str(path), size, what)
