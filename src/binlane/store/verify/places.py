"""Where logs are: files, directories of one binlog or of many, and data directories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from binlane.codec.encryption import KeyRing
from binlane.codec.mysql_transaction import PreviousGtidsEvent
from binlane.codec.transaction import GtidListEvent
from binlane.errors import CodecError, CorruptStoreError, StoreError
from binlane.grouping.event_group import CONTROL_TYPES
from binlane.grouping.walk import walk
from binlane.positions import Position
from binlane.store.catalog import BinlogRecord, Catalog, Mark
from binlane.store.chunks import base_name, open_chunks
from binlane.store.files import BINLOGS_DIRECTORY, file_number, index_path, read_index
from binlane.store.verify.faults import Fault, Tally
from binlane.store.verify.log import EVERYWHERE, Log, LogFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How files are looked at.

    Attributes:
        keys: For files that a server encrypted.
        tally: Counts what was looked at.
        by_kernels: As `Log` has it.
    """

    keys: KeyRing | None = None
    tally: Tally = field(default_factory=Tally)
    by_kernels: bool | None = None

    def log(self, mark: Mark | None = None) -> Log:
        """A log to be looked at."""
        return Log(
            keys=self.keys,
            tally=self.tally,
            watermark=None if mark is None else mark.position,
            by_kernels=self.by_kernels,
        )


def verify(
    paths: Iterable[str | Path],
    *,
    keys: KeyRing | None = None,
    tally: Tally | None = None,
    by_kernels: bool | None = None,
) -> Iterator[Fault]:
    """Check data directories, binlogs and files.

    Args:
        paths: Data directories, directories of one binlog or of many, and files. Files that stand
            next to each other are taken as one log, in the order given.
        keys: For files that a server encrypted.
        tally: Counts what was looked at.
        by_kernels: Whether kernels look; None where they are compiled, or worth it.

    Yields:
        Faults in the order of the log.
    """
    options = Options(keys=keys, tally=tally or Tally(), by_kernels=by_kernels)
    files: list[str | Path] = []
    for path in paths:
        if not Path(path).is_dir():
            files.append(path)
            continue
        yield from _verify_files(files, options)
        files = []
        yield from _verify_directory(Path(path), options)
    yield from _verify_files(files, options)


def verify_against(
    paths: Sequence[str | Path],
    full: Sequence[str | Path],
    *,
    keys: KeyRing | None = None,
    tally: Tally | None = None,
) -> Iterator[Fault]:
    """Check scoped binlogs and the full log, and that those together are this.

    Args:
        paths: As `verify` takes them; files that stand next to each other are one binlog.
        full: The files of the full log, oldest first, or a binlog's directory.
        keys: For files that a server encrypted.
        tally: Counts what was looked at.

    Yields:
        Faults of the binlogs, faults of the full log, then the differences.
    """
    from binlane.store.verify.against import differences  # noqa: PLC0415  # needs all of SQL

    options = Options(keys=keys, tally=tally or Tally())
    yield from verify(paths, keys=keys, tally=options.tally)
    whole = LogFiles("full log", tuple(file for log in log_files(full) for file in log.paths))
    log = options.log()
    for path in whole.paths:
        yield from log.file(path, may_be_cut=False)
    begin = _begin_of(whole.paths[0], keys) if whole.paths else None
    yield from differences(log_files(paths), whole, span=(begin, log.position), keys=keys)


def verify_files(
    paths: Iterable[str | Path], *, is_live: bool = False, keys: KeyRing | None = None
) -> Iterator[Fault]:
    """Check files that are one log, oldest first.

    Args:
        paths: The files.
        is_live: Whether the last one may still be written, so that a cut at its end is no fault.
        keys: For files that a server encrypted.
    """
    yield from _verify_files(list(paths), Options(keys=keys), is_live=is_live)


def verify_store(data_dir: Path, options: Options | None = None) -> Iterator[Fault]:
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
        yield from _verify_binlog(directory, record, options or Options())
    known = {record.definition.name for record in records}
    for directory in sorted((data_dir / BINLOGS_DIRECTORY).iterdir()):
        if directory.name not in known:
            yield Fault(str(directory), 0, "no definition is stored for this binlog")


def binlogs_in(directory: Path) -> list[Path]:
    """The directories of the binlogs in a data directory, or in one that holds them side by side."""
    if Catalog.path_in(directory).exists():
        directory = directory / BINLOGS_DIRECTORY
    return sorted(path for path in directory.iterdir() if index_path(path).exists())


def log_files(paths: Iterable[str | Path]) -> list[LogFiles]:
    """The logs that paths name, as `verify` takes them."""
    found: list[LogFiles] = []
    files: list[str] = []

    def finish() -> None:
        if files:
            found.append(LogFiles(base_name(files[0]), tuple(files)))
            files.clear()

    for path in map(Path, paths):
        if not path.is_dir():
            files.append(str(path))
            continue
        finish()
        is_binlog = not Catalog.path_in(path).exists() and index_path(path).exists()
        found += map(_binlog_files, [path] if is_binlog else binlogs_in(path))
    finish()
    return found


def _binlog_files(directory: Path) -> LogFiles:
    try:
        paths = [directory / name for name in read_index(directory)]
    except CorruptStoreError:
        paths = []
    there = tuple(str(path) for path in paths if path.exists())
    return LogFiles(directory.name, there, is_live=True)


def _begin_of(path: str, keys: KeyRing | None) -> Position | None:
    """What a file says was done before it; None if it does not say."""
    try:
        for event in walk(open_chunks(path), file=path, keys=keys):
            if isinstance(event.body, GtidListEvent | PreviousGtidsEvent):
                return event.body.position
            if event.header.type_code not in CONTROL_TYPES:
                return None
    except (CodecError, StoreError):
        return None  # it was told before
    return None


def _verify_files(
    paths: Sequence[str | Path], options: Options, *, is_live: bool = False
) -> Iterator[Fault]:
    log = options.log()
    for number, path in enumerate(paths, start=1):
        yield from log.file(str(path), may_be_cut=is_live and number == len(paths))


def _verify_directory(directory: Path, options: Options) -> Iterator[Fault]:
    if Catalog.path_in(directory).exists():
        yield from verify_store(directory, options)
    elif index_path(directory).exists():
        yield from _verify_binlog(directory, None, options)
    elif found := binlogs_in(directory):
        for binlog in found:
            yield from _verify_binlog(binlog, None, options)
    else:
        yield Fault(str(directory), 0, "neither a data directory nor a binlog's directory")


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
    log = options.log(mark)
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
