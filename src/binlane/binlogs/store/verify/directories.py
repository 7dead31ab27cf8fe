"""Directories: of one binlog, of many side by side, and data directories with a catalog.

All of them may be written while they are looked at: files begin and are purged, binlogs are made
and dropped. A fault in names is therefore told only if it is still there a moment later, and a file
that has gone is none once the index names it no more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from binlane.binlogs.store.catalog import BinlogRecord, Catalog, Mark
from binlane.binlogs.store.files import BINLOGS_DIRECTORY, file_number, index_path, read_index
from binlane.binlogs.store.verify.faults import Fault
from binlane.binlogs.store.verify.log import EVERYWHERE, LogFiles, Options
from binlane.errors import CorruptStoreError, StoreError

_PAUSES_S: Final = (0.02, 0.1, 0.5)
"""Longer than any step of a writer takes, of which the longest forces a file to disk."""


def verify_directory(directory: Path, options: Options) -> Iterator[Fault]:
    """Check the binlogs in a directory, their indexes and, where there is a catalog, their watermarks."""
    if Catalog.path_in(directory).exists():
        yield from _verify_store(directory, options)
    elif index_path(directory).exists():
        yield from _verify_binlog(directory, None, options)
    elif found := _binlogs_in(directory):
        for binlog in found:
            yield from _verify_binlog(binlog, None, options)
    else:
        yield Fault(str(directory), 0, "neither a data directory nor a binlog's directory")


def logs_in(directory: Path) -> list[LogFiles]:
    """The binlogs that `verify_directory` checks."""
    if Catalog.path_in(directory).exists():
        return _logs_of_store(directory)
    is_binlog = index_path(directory).exists()
    return list(map(_binlog_files, [directory] if is_binlog else _binlogs_in(directory)))


def _logs_of_store(data_dir: Path) -> list[LogFiles]:
    """The binlogs of a store, with what its catalog says of how they begin."""
    with Catalog.open_read_only(Catalog.path_in(data_dir)) as catalog:
        records = {each.definition.name: each for each in catalog.binlogs() if each.is_live}
        seedings = catalog.fills.seedings()
    found = []
    for files in map(_binlog_files, _binlogs_in(data_dir)):
        record = records.get(files.name)
        if record is None:
            found.append(files)
            continue
        log_id, begin = record.definition.log_id, record.begin
        own = tuple(each for each in seedings if each.log_id == log_id)
        for seeding in own:
            begin = begin.union(seeding.place) if seeding.is_beginning else begin
        found.append(replace(files, begin=begin, seedings=own))
    return found


def _binlogs_in(directory: Path) -> list[Path]:
    """The directories of the binlogs in a data directory, or in one that holds them side by side."""
    if Catalog.path_in(directory).exists():
        directory = directory / BINLOGS_DIRECTORY
    return sorted(path for path in directory.iterdir() if index_path(path).exists())


def _binlog_files(directory: Path) -> LogFiles:
    try:
        paths = [directory / name for name in read_index(directory)]
    except CorruptStoreError:
        paths = []
    there = tuple(str(path) for path in paths if path.exists())
    return LogFiles(directory.name, there, is_live=True)


def _verify_store(data_dir: Path, options: Options) -> Iterator[Fault]:
    """Check all binlogs of a store, their indexes and their watermarks."""
    try:
        records = _records(data_dir)
    except StoreError as error:
        yield Fault(str(Catalog.path_in(data_dir)), 0, error.message)
        return
    for record in records.values():
        directory = data_dir / BINLOGS_DIRECTORY / record.definition.name
        yield from _verify_binlog(directory, record, options)

    def undefined() -> list[Fault]:
        known = _records(data_dir)
        return [
            Fault(str(directory), 0, "no definition is stored for this binlog")
            for directory in sorted((data_dir / BINLOGS_DIRECTORY).iterdir())
            if directory.name not in known
        ]

    yield from _lasting(undefined)


def _records(data_dir: Path) -> dict[str, BinlogRecord]:
    """The binlogs that a store has now, by name."""
    with Catalog.open_read_only(Catalog.path_in(data_dir)) as catalog:
        return {record.definition.name: record for record in catalog.binlogs() if record.is_live}


def _lasting(look: Callable[[], list[Fault]]) -> list[Fault]:
    """The faults that are still there a moment later: a writer may be between two steps."""
    faults = look()
    for pause_s in _PAUSES_S:
        if not faults:
            break
        time.sleep(pause_s)
        still = look()
        faults = [fault for fault in faults if fault in still]
    return faults


def _verify_binlog(
    directory: Path, record: BinlogRecord | None, options: Options
) -> Iterator[Fault]:
    """Check a directory with an index and its files, and what the catalog says of them."""
    is_there = _still_there(directory, record)
    if (faults := _lasting(lambda: _misnamed(directory))) and is_there():
        yield from faults
    try:
        names = read_index(directory)
    except CorruptStoreError:
        return  # it was told, or the binlog has gone
    mark = record.mark if record else None
    log = options.log(mark.position if mark else None)
    for name in names:
        path = directory / name
        if not path.exists():
            if not _names(directory, name):
                log.pass_over()
            continue
        marked = _marked_up_to(path, mark)
        for fault in log.file(str(path), may_be_cut=name == names[-1], marked_up_to=marked):
            if (path.exists() or _names(directory, name)) and is_there():
                yield fault
    if mark is None:
        return
    path = directory / mark.end.file
    size = _size_bytes(path)
    if size < mark.end.position and _names(directory, mark.end.file) and is_there():
        what = f"the file ends at {size}; it was on disk up to {mark.end.position}"
        yield Fault(str(path), size, what)


def _still_there(directory: Path, record: BinlogRecord | None) -> Callable[[], bool]:
    """Tells whether a binlog has not been dropped since it was found."""
    if record is None:
        return directory.exists
    name, log_id = record.definition.name, record.definition.log_id

    def is_there() -> bool:
        now = _records(directory.parent.parent).get(name)
        return now is not None and now.definition.log_id == log_id

    return is_there


def _misnamed(directory: Path) -> list[Fault]:
    """Faults in the names in an index and in its directory."""
    index = str(index_path(directory))
    try:
        names = read_index(directory)
        there = {path.name for path in directory.iterdir()}
    except CorruptStoreError as error:
        return [Fault(index, 0, error.message)]
    except FileNotFoundError as error:
        return [Fault(str(directory), 0, f"cannot be read: {error.strerror}")]
    return [
        *(
            Fault(str(directory / name), 0, "the index does not name this file")
            for name in sorted(there - {*names, index_path(directory).name})
        ),
        *(
            Fault(index, 0, f"the index names {name}, which is missing")
            for name in names
            if name not in there
        ),
    ]


def _names(directory: Path, name: str) -> bool:
    """True if an index names a file now."""
    try:
        return name in read_index(directory)
    except CorruptStoreError:
        return False


def _size_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _marked_up_to(path: Path, mark: Mark | None) -> int:
    """Up to which position of a file a watermark holds: files come in the order of numbers."""
    if mark is None:
        return EVERYWHERE
    binlog = path.parent.name
    number, last = file_number(path.name, binlog=binlog), file_number(mark.end.file, binlog=binlog)
    if number == last or number is None or last is None:
        return mark.end.position
    return EVERYWHERE if number < last else 0
