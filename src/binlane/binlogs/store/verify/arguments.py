"""Arguments of `verify`: files and directories, alone or against a full log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from binlane.binlogs.store.chunks import base_name, open_chunks
from binlane.binlogs.store.verify.faults import CheckCounts, Fault
from binlane.binlogs.store.verify.log import LogFiles, Options
from binlane.errors import CodecError, ConfigError, StoreError
from binlane.log.codec.encryption import KeyRing
from binlane.log.codec.mysql_transaction import PreviousGtidsEvent
from binlane.log.codec.transaction import GtidListEvent
from binlane.log.grouping.event_group import CONTROL_TYPES
from binlane.log.grouping.walk import walk
from binlane.positions import AnyGtid, Position
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.scope import Scope


def verify(
    paths: Iterable[str | Path],
    *,
    keys: KeyRing | None = None,
    tally: CheckCounts | None = None,
    by_kernels: bool | None = None,
) -> Iterator[Fault]:
    """Check data directories, binlogs and files.

    Args:
        paths: Data directories, directories of one binlog or of many, and files. Files that stand
            next to each other are taken as one log, in the order given.
        keys: Keys for files that a server encrypted.
        tally: Counter of the files and events looked at.
        by_kernels: True if kernels look; None where they are compiled, or worth it.

    Yields:
        Faults in the order of the log.
    """
    options = Options(keys=keys, tally=tally or CheckCounts(), by_kernels=by_kernels)
    files: list[str | Path] = []
    for path in paths:
        if not Path(path).is_dir():
            files.append(path)
            continue
        yield from _verify_files(files, options)
        files = []
        from binlane.binlogs.store.verify.directories import (  # noqa: PLC0415  # loads definitions
            verify_directory,
        )

        yield from verify_directory(Path(path), options)
    yield from _verify_files(files, options)


def verify_against(
    paths: Sequence[str | Path],
    full: Sequence[str | Path],
    *,
    definitions: Iterable[Definition] | None = None,
    changes: Sequence[tuple[AnyGtid, Iterable[Definition]]] = (),
    keys: KeyRing | None = None,
    tally: CheckCounts | None = None,
) -> Iterator[Fault]:
    """Check scoped binlogs and the full log, and that those together are this.

    Args:
        paths: Paths as `verify` takes them; files that stand next to each other are one binlog.
        full: The files of the full log, oldest first, or a binlog's directory.
        definitions: Definitions of the binlogs, by which they have all that their scopes hold and
            nothing else; None for such as are the full log together.
        changes: Definitions that hold instead of them behind an event group, in the order of the
            log.
        keys: Keys for files that a server encrypted.
        tally: Counter of the files and events looked at.

    Raises:
        ConfigError: If one of the binlogs is not defined.

    Yields:
        Faults of the binlogs, faults of the full log, then the differences.
    """
    from binlane.binlogs.store.verify.against import differences  # noqa: PLC0415  # needs all of SQL

    options = Options(keys=keys, tally=tally or CheckCounts())
    logs = log_files(paths)
    scopes = None if definitions is None else _scopes(logs, definitions)
    later = [(after, _scopes(logs, those)) for after, those in changes]
    if scopes is not None:
        _check_defined(logs, [scopes, *(found for _, found in later)])
    yield from verify(paths, keys=keys, tally=options.tally)
    whole = LogFiles("full log", tuple(file for log in log_files(full) for file in log.paths))
    log = options.log()
    for path in whole.paths:
        yield from log.file(path, may_be_cut=False)
    begin = _begin_of(whole.paths[0], keys) if whole.paths else None
    span = begin, log.position
    yield from differences(
        logs,
        whole,
        span=span,
        scopes=scopes,
        changes=later,
        options=options,
    )


def _scopes(logs: Iterable[LogFiles], definitions: Iterable[Definition]) -> dict[str, Scope]:
    """The scope of each binlog that is defined, by what it is called here."""
    known = {one.name: one.scope for one in definitions}
    names = ((log.name, name) for log in logs for name in (log.name, log.name.rpartition(".")[0]))
    scopes: dict[str, Scope] = {}
    for called, name in names:
        if name in known:
            scopes.setdefault(called, known[name])
    return scopes


def _check_defined(logs: Iterable[LogFiles], scopes: Iterable[Mapping[str, Scope]]) -> None:
    defined = sorted({name for each in scopes for name in each})
    for log in logs:
        if log.name not in defined:
            raise ConfigError(
                f"there is no definition of the binlog {log.name}",
                key="--binlogs",
                hint=f"defined are {', '.join(defined) or 'none of them'}",
            )


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
        from binlane.binlogs.store.verify.directories import logs_in  # noqa: PLC0415  # loads definitions

        found += logs_in(path)
    finish()
    return found


def _begin_of(path: str, keys: KeyRing | None) -> Position | None:
    """Give the position that a file's head says was done before it; None if it does not say."""
    try:
        for event in walk(open_chunks(path), file=path, keys=keys):
            if isinstance(event.body, GtidListEvent | PreviousGtidsEvent):
                return event.body.position
            if event.header.type_code not in CONTROL_TYPES:
                return None
    except (CodecError, StoreError):
        return None  # it was told before
    return None


def _verify_files(paths: Iterable[str | Path], options: Options) -> Iterator[Fault]:
    log = options.log()
    for path in paths:
        yield from log.file(str(path), may_be_cut=False)
