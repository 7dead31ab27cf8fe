"""Recovery: a binlog's files on disk are made whole after any kind of end.

The order in which `binlog` writes leaves few cases: a torn tail in the last file, a file that a
rotation made and the index does not name yet, files that a purge took out of the index and did not
delete yet, a draft of the index. Anything else is no crash but damage, and is an error.

Bytes behind the mark may have been written by a process that died, or whose disk failed: they are
forced to disk, and read back from there and not from memory, before anybody is told of them.

Closed files are not looked at, but for their names: there may be tens of thousands.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import NamedTuple

from binlane.binlogs.store.catalog import Mark
from binlane.binlogs.store.disk import DRAFT_SUFFIX, Disk
from binlane.binlogs.store.files import (
    IN_USE,
    IN_USE_POSITION,
    FileHead,
    file_number,
    index_path,
    read_head,
    read_index,
    write_index,
)
from binlane.binlogs.store.incidents import StoredIncident, incident_of, there, with_another
from binlane.binlogs.store.stored_groups import whole_groups
from binlane.errors import CodecError, CorruptStoreError
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.mysql_transaction import MysqlGtidEvent
from binlane.log.grouping.event_group import gtid_of
from binlane.log.grouping.inner import expanded
from binlane.log.grouping.xa import prepared_after
from binlane.positions import FilePosition, Position

_LOG = logging.getLogger(__name__)
_RESTORE_HINT = "`binlane verify` lists every fault; restore the file from a copy"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveredBinlog:
    """A binlog that is whole.

    Attributes:
        directory: Directory of the binlog's files.
        files: Names of its files, oldest first.
        head: Head of the last file.
        end: Size of the last file: where its last event group ends.
        position: Position of the source up to which the files are complete.
        clock: The last logical timestamp in the files, where the source is MySQL.
        clock_base: The number that is added to the source's logical timestamps from here on; None
            for `clock`.
        prepared: The XA transactions that the files prepare and do not finish.
        memory: Routing's memory of the groups in the files.
        incidents: INCIDENT events in the files that nobody has dealt with.
        unsearched: Before this place the files may hold further INCIDENT events; None if they hold
            none.
        source_created: Time of creation in the source's last FORMAT_DESCRIPTION; None for that of
            `head`.
    """

    directory: Path
    files: tuple[str, ...]
    head: FileHead
    end: int
    position: Position
    clock: int = 0
    clock_base: int | None = None
    prepared: frozenset[str] = frozenset()
    memory: str = ""
    incidents: tuple[StoredIncident, ...] = ()
    unsearched: FilePosition | None = None
    source_created: int | None = None


class _Reached(NamedTuple):
    """The end of the whole groups of a file, with the state there."""

    end: int
    position: Position
    clock: int
    prepared: frozenset[str]
    incidents: tuple[StoredIncident, ...]
    gtid: str = ""

    def behind(self, event: Event, format_: Format, path: Path, *, is_whole: bool) -> _Reached:
        """Add an event of the last group, which may be whole with it."""
        gtid, clock = gtid_of(event), self.clock
        if isinstance(event.body, MysqlGtidEvent):
            clock = max(clock, event.body.sequence_number or 0)
        position = self.position
        if gtid is not None:
            position = position.advance(gtid)
        prepared = reduce(prepared_after, expanded(event, format_), self.prepared)
        of_group = self.gtid if gtid is None else str(gtid)
        incident = incident_of(event, of_group, path.name, binlog=path.parent.name)
        return _Reached(
            event.next_position,
            position,
            clock,
            prepared,
            self.incidents if incident is None else with_another(self.incidents, incident),
            "" if is_whole else of_group,
        )


def recover(directory: Path, mark: Mark, disk: Disk) -> RecoveredBinlog:
    """Make a binlog's directory whole, and mark its last file as in use.

    Args:
        directory: Directory of the binlog, with the binlog's name.
        mark: The state that was on disk for sure; all of it must still be there.
        disk: The disk by which files are changed.

    Raises:
        CorruptStoreError: If anything is missing or damaged that was on disk for sure.
        OSError: If the disk fails.
    """
    if mark.is_cut:
        return cut_to(directory, mark, disk)
    # A rename that was never forced would let power take the index back, behind what we add now.
    disk.sync_directory(directory)
    names = read_index(directory)
    present = _present(directory)
    _tidy(directory, names, present, disk)
    _check_mark(directory, names, present, mark)
    path = directory / names[-1]
    _settle(path, disk)
    head = read_head(path)
    incidents = there(mark.incidents, names)
    reached = _Reached(mark.end.position, mark.position, mark.clock, mark.prepared, incidents)
    if mark.end.file != names[-1]:
        position = head.begin.union(mark.position)
        before = _behind_mark(directory, names[names.index(mark.end.file) : -1], reached)
        reached = before._replace(end=head.size_bytes, position=position)
    if path.stat().st_size > reached.end:
        reached = _recover_tail(path, head.format_description.format, reached, disk)
    file = disk.open(path)
    try:
        file.write_at(IN_USE, IN_USE_POSITION)
    finally:
        file.close()
    return RecoveredBinlog(
        directory=directory,
        files=tuple(names),
        head=head,
        end=reached.end,
        position=reached.position,
        clock=reached.clock,
        prepared=reached.prepared,
        memory=mark.memory,
        incidents=reached.incidents,
        unsearched=mark.unsearched,
    )


def cut_to(directory: Path, mark: Mark, disk: Disk) -> RecoveredBinlog:
    """Make a binlog's directory what it was at a mark, and mark its last file as in use.

    Args:
        directory: Directory of the binlog to mend.
        mark: The mark; everything behind it goes, everything before it must still be there.
        disk: The disk by which files are changed.

    Raises:
        CorruptStoreError: If anything is missing that was on disk for sure.
        OSError: If the disk fails.
    """
    names = read_index(directory)
    _check_mark(directory, names, _present(directory), mark)
    names = names[: names.index(mark.end.file) + 1]
    write_index(disk, directory, names)
    _tidy_behind(directory, names, disk)
    path = directory / names[-1]
    file = disk.open(path)
    try:
        file.truncate(mark.end.position)
        file.write_at(IN_USE, IN_USE_POSITION)
        file.sync()
    finally:
        file.close()
    return RecoveredBinlog(
        directory=directory,
        files=tuple(names),
        head=read_head(path),
        end=mark.end.position,
        position=mark.position,
        clock=mark.clock,
        clock_base=mark.clock_base,
        prepared=mark.prepared,
        memory=mark.memory,
        incidents=there(mark.incidents, names),
        unsearched=mark.unsearched,
    )


def remove_directory(directory: Path, disk: Disk) -> None:
    """Delete a binlog's directory and what is in it, if it is there."""
    if not directory.exists():
        return
    for path in sorted(directory.iterdir(), reverse=True):
        disk.remove(path)
    disk.remove_directory(directory)
    disk.sync_directory(directory.parent)


def _present(directory: Path) -> set[str]:
    return set(os.listdir(directory))  # noqa: PTH208 a Path for each of many files costs


def _settle(path: Path, disk: Disk) -> None:
    """Let all that is left of a file be on disk, and be read from there."""
    file = disk.open(path)
    try:
        file.sync()
    finally:
        file.close()
    disk.drop_cache(path)


def _tidy(directory: Path, names: list[str], present: set[str], disk: Disk) -> None:
    """Remove what a crash left behind; nothing that anybody was told of."""
    oldest, newest = (file_number(name, binlog=directory.name) for name in (names[0], names[-1]))
    assert oldest is not None
    assert newest is not None
    for name in sorted(present - {*names, index_path(directory).name}):
        path, number = directory / name, file_number(name, binlog=directory.name)
        is_purged = number is not None and number < oldest
        is_unborn = number == newest + 1 and not _holds_group(path)
        if not (is_purged or is_unborn or name.endswith(DRAFT_SUFFIX)):
            raise CorruptStoreError(
                f"the index of binlog {directory.name} does not name this file",
                path=str(path),
                hint=f"move it away, or add it to {directory.name}.index in its place",
            )
        _LOG.info("%s: removing this leftover", path)
        disk.remove(path)


def _tidy_behind(directory: Path, names: list[str], disk: Disk) -> None:
    """Remove the binlog's own files that the index does not name any more, and drafts."""
    for path in sorted(directory.iterdir()):
        number = file_number(path.name, binlog=directory.name)
        is_own = number is not None or path.name.endswith(DRAFT_SUFFIX)
        if is_own and path.name not in names:
            disk.remove(path)
    disk.sync_directory(directory)


def _holds_group(path: Path) -> bool:
    """True if a file that no index names holds a whole event group."""
    try:
        head = read_head(path)
    except CorruptStoreError:
        return False
    format_ = head.format_description.format
    try:
        groups = whole_groups(path, position=head.size_bytes, format_=format_)
        return any(is_whole for _, is_whole in groups)
    except CodecError:
        return False


def _check_mark(directory: Path, names: list[str], present: set[str], mark: Mark) -> None:
    """Everything that was on disk for sure is still there."""
    missing = [name for name in names if name not in present]
    if missing:
        raise CorruptStoreError(
            "the file is missing",
            path=str(directory / missing[0]),
            hint="restore it from a copy; to do without it, take it and all files before it out of "
            f"{directory.name}.index",
        )
    if mark.end.file not in names:
        raise CorruptStoreError(
            f"the index does not name {mark.end.file}, which was written up to {mark.end.position}",
            path=str(index_path(directory)),
            hint="restore the index and the file from a copy",
        )
    path = directory / mark.end.file
    if (size := path.stat().st_size) < mark.end.position:
        raise CorruptStoreError(
            f"the file ends at {size}; it was on disk up to {mark.end.position}",
            path=str(path),
            hint=_RESTORE_HINT,
        )


def _behind_mark(directory: Path, names: list[str], reached: _Reached) -> _Reached:
    """Follow the closed files that were written behind a mark.

    No other file tells the XA transactions that these files prepare: forgotten, their XA COMMIT
    would be left out.

    Args:
        directory: Directory of the binlog to mend.
        names: The file of the mark and those behind it, but for the last.
        reached: The end and state at the mark.

    Raises:
        CorruptStoreError: If a file is damaged; each was forced to disk before the next began.
    """
    for number, name in enumerate(names):
        path = directory / name
        head = read_head(path)
        position = head.size_bytes if number else reached.end
        format_ = head.format_description.format
        try:
            for event, is_whole in whole_groups(path, position=position, format_=format_):
                reached = reached.behind(event, format_, path, is_whole=is_whole)
        except CodecError as error:
            raise CorruptStoreError(
                f"an event of a file that is closed is damaged: {error}",
                path=str(path),
                hint=_RESTORE_HINT,
            ) from error
    return reached


def _recover_tail(path: Path, format_: Format, whole: _Reached, disk: Disk) -> _Reached:
    """Cut what is behind the last whole event group of the last file; how far it then is."""
    reason = "event group that is not complete"
    reached = whole
    try:
        for event, is_whole in whole_groups(path, position=whole.end, format_=format_):
            reached = reached.behind(event, format_, path, is_whole=is_whole)
            if is_whole:
                whole = reached
    except CodecError as error:
        reason = error.message
    size, end = path.stat().st_size, whole.end
    if size > end:
        _LOG.warning("%s: cutting %d bytes behind %d: %s", path, size - end, end, reason)
        file = disk.open(path)
        try:
            file.truncate(end)
            file.sync()
        finally:
            file.close()
    return whole
