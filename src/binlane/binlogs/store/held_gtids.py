"""GTIDs of MySQL in those files of a binlog that are written no more.

Nothing else tells the GTIDs: between two GTIDs of a scoped binlog stand those of groups out of
scope, which the heads of files count as done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Final

from binlane.binlogs.store.byte_source import FileBytes
from binlane.binlogs.store.files import BinlogFile
from binlane.errors import CodecError, StoreError
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import EventGroup
from binlane.log.grouping.raw import LargeGroup, RawRun, raw_groups
from binlane.log.kernels import layout
from binlane.log.kernels.load import is_compiled
from binlane.positions import GtidSet, MysqlGtid

_KERNELS: Final = ("scan",)
_FILES_MAX: Final = 64
_INTERVALS_MAX: Final = 1 << 14
"""Intervals of a set that is remembered, some 2 MB."""


def first_lacking(files: Sequence[BinlogFile], done: GtidSet) -> int:
    """Find the first file that holds a group that is not done; the last file is not looked into.

    Args:
        files: Files of a binlog, oldest first; the last is the one being written.
        done: The GTIDs that a replica has.

    Returns:
        The index of the file; 0 where kernels are missing, without which it would take too long.
    """
    if not is_compiled(_KERNELS):
        return 0
    for index, (file, following) in enumerate(pairwise(files)):
        begin = following.begin
        # A replica that has all that the next file counts as done has all of this one.
        has_all = isinstance(begin, GtidSet) and done.includes(begin)
        try:
            if not has_all and not _holds_only(file, done):
                return index
        except (CodecError, StoreError):
            # Whoever reads the file from here on tells of it.
            return index
    return len(files) - 1


def _holds_only(file: BinlogFile, done: GtidSet) -> bool:
    """True if all groups of a file are done."""
    held = _gtids_of(file.path, file.size_bytes)
    if held is not None:
        return done.includes(held)
    return all(part is not None and done.includes(part) for part in _parts(file.path))


@lru_cache(_FILES_MAX)
def _gtids_of(path: Path, size_bytes: int) -> GtidSet | None:
    """GTIDs of a file of this size; None if they are in too many pieces, or cannot be told."""
    del size_bytes  # the file of another binlog of this name has another one
    held = GtidSet()
    for part in _parts(path):
        if part is None:
            return None
        held = held.union(part)
        if sum(len(run.intervals) for run in held.runs) > _INTERVALS_MAX:
            return None
    return held


def _parts(path: Path) -> Iterator[GtidSet | None]:
    """The GTIDs of a file, piece by piece; None, and nothing behind it, where they cannot be told."""
    with closing(FileBytes(path)) as source:
        for item in raw_groups(source, file=str(path), name=path.name):
            if isinstance(item, RawRun) and not _has_incident(item):
                part = item.position_after(GtidSet())
                assert isinstance(part, GtidSet), "the binlog is one of MySQL"
                yield part
            elif isinstance(item, RawRun | LargeGroup) or _is_untold(item):
                # A large one would have to be read to its end for nothing but its GTID.
                yield None
                return
            elif isinstance(item.gtid, MysqlGtid):
                yield GtidSet.of([item.gtid])


def _has_incident(run: RawRun) -> bool:
    """True if an INCIDENT stands alone in a run: its changes are in no file."""
    types = run.events[layout.EVENT_TYPE, run.groups[layout.GROUP_FIRST]]
    return bool((types == EventType.INCIDENT).any())


def _is_untold(group: EventGroup) -> bool:
    """True if a group is none that a set can hold."""
    if group.is_control:
        return group.events[0].header.type_code == EventType.INCIDENT
    return group.gtid is None
