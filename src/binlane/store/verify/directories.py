"""Directories: of one binlog, of many side by side, and data directories with a catalog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from binlane.errors import CorruptStoreError, StoreError
from binlane.store.catalog import BinlogRecord, Catalog, Mark
from binlane.store.files import BINLOGS_DIRECTORY, file_number, index_path, read_index
from binlane.store.verify.faults import Fault
from binlane.store.verify.log import EVERYWHERE, LogFiles, Options


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
    is_binlog = not Catalog.path_in(directory).exists() and index_path(directory).exists()
    return list(map(_binlog_files, [directory] if is_binlog else _binlogs_in(directory)))


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
    path = Catalog.path_in(data_dir)
    try:
        with Catalog.open_read_only(path) as catalog:
            records = [record for record in catalog.binlogs() if record.is_live]
    except StoreError as error:
        yield Fault(str(path), 0, error.message)
        return
    for record in records:
        directory = data_dir / BINLOGS_DIRECTORY / record.definition.name
        yield from _verify_binlog(directory, record, options)
    known = {record.definition.name for record in records}
    for directory in sorted((data_dir / BINLOGS_DIRECTORY).iterdir()):
        if directory.name not in known:
            yield Fault(str(directory), 0, "no definition is stored for this binlog")


def _verify_binlog(
    directory: Path, record: BinlogRecord | None, options: Options
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
    log = options.log(mark.position if mark else None)
    for name in names:
        if name not in missing:
            path = directory / name
            marked = _marked_up_to(path, mark)
            yield from log.file(str(path), may_be_cut=name == names[-1], marked_up_to=marked)
    if mark is None:
        return
    path = directory / mark.end.file
    size = path.stat().st_size if path.exists() else 0
    if size < mark.end.position:
        what = f"the file ends at {size}; it was on disk up to {mark.end.position}"
        yield Fault(str(path), size, what)


def _marked_up_to(path: Path, mark: Mark | None) -> int:
    """Up to which position of a file a watermark holds: files come in the order of numbers."""
    if mark is None:
        return EVERYWHERE
    binlog = path.parent.name
    number, last = file_number(path.name, binlog=binlog), file_number(mark.end.file, binlog=binlog)
    if number == last or number is None or last is None:
        return mark.end.position
    return EVERYWHERE if number < last else 0
