"""The part of the journal that the routing thread writes: how far it read, and whose groups are whose.

A group's plan is found again by its GTID: the journal knows of which groups each file tells.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from binlane.binlogs.store.disk import Disk
from binlane.errors import BinlaneError, CodecError, StoreError
from binlane.live.port.group_numbers import GroupNumber, Stream
from binlane.live.port.journal import journal_records as records
from binlane.live.port.journal.journal_records import FoundGroup, FoundRun, ReadProgress
from binlane.live.port.journal.record_log import RecordLog

_SUFFIX: Final = "groups"
_LOADED_MOST: Final = 4
_HEAD_BYTES: Final = 16 << 20

logger = logging.getLogger(__name__)


class GroupJournal:
    """Files `*.groups`; the routing thread writes and reads them.

    Attributes:
        failure: Why they cannot be written; empty while they can.
    """

    def __init__(self, folder: Path, disk: Disk, file_bytes: int) -> None:
        """Find the files that are there.

        Args:
            folder: Folder of the journal's files.
            disk: Disk that holds the folder.
            file_bytes: Size at which a file is followed by another.

        Raises:
            StoreError: If the folder cannot be used.
        """
        self.failure = ""
        self._log = RecordLog(folder, _SUFFIX, file_bytes, disk)
        self._has_holes = False
        self._ranges: dict[int, dict[Stream, tuple[int, int]]] = {}
        self._loaded: dict[int, dict[GroupNumber, FoundGroup]] = {}

    @property
    def is_file_due(self) -> bool:
        """True if the next record begins a file: it is to tell how far all streams were read."""
        return self._log.is_file_due

    def write(self, progress: ReadProgress) -> None:
        """Write a record; `failure` tells if that fails, and the record is lost then."""
        log = self._log
        try:
            if log.is_file_due:
                log.begin_file()
                log.drop_stale()
                older = {file: each for file, each in self._ranges.items() if file in log.sizes}
                log.append(records.FIRST_READ, records.progress_body(progress, older))
            else:
                log.append(records.READ, records.progress_body(progress, None))
        except StoreError as error:
            if self.failure != str(error):
                logger.error("the port's journal cannot be written: %s", error)  # noqa: TRY400
            self.failure, self._has_holes = str(error), True
            log.renew()
            return
        self.failure = ""
        self._note(log.number, progress.found)

    @property
    def are_any(self) -> bool:
        """True if a group that was found out is told of."""
        return any(self._ranges.values())

    def numbers(self, first: int, last: int) -> set[int]:
        """Give the numbers of groups that were found out, of any stream.

        Args:
            first: The least number that is of interest.
            last: The greatest number that is of interest.
        """
        numbers: set[int] = set()
        for file, streams in self._ranges.items():
            if any(begin <= last and first <= end for begin, end in streams.values()):
                numbers |= {
                    point.number for point in self._load(file) if first <= point.number <= last
                }
        return numbers

    def tells_of(self, point: GroupNumber) -> bool:
        """True if a group that was found out would still be known."""
        if self._has_holes:
            return False
        firsts = [each[point.stream][0] for each in self._ranges.values() if point.stream in each]
        is_first_there = min(self._log.sizes, default=1) == 1
        return is_first_there or not firsts or min(firsts) <= point.number

    def find(self, point: GroupNumber) -> FoundGroup | None:
        """Give the recorded finding on a group; None if nothing was found out, or that is gone."""
        for file, streams in self._ranges.items():
            first, last = streams.get(point.stream, (1, 0))
            if first <= point.number <= last:
                found = self._load(file).get(point)
                if found is not None:
                    return found
        return None

    def passed(self, ends: Mapping[Stream, int]) -> None:
        """Delete files whose groups nobody asks for any more."""
        for number in self._log.older:
            streams = self._ranges.get(number, {})
            if any(ends.get(stream, 0) < last for stream, (_, last) in streams.items()):
                return
            self._remove(number)

    def shrink(self, max_bytes: int) -> None:
        """Let the oldest files go until there are no more bytes, whoever may ask for their groups."""
        for number in self._log.older:
            if self._log.size_bytes > max_bytes:
                self._remove(number)

    def forget(self) -> None:
        """Have all files deleted when the next record begins one."""
        self._ranges.clear()
        self._loaded.clear()
        self._log.renew(is_stale=True)

    def progress(self) -> Iterator[ReadProgress]:
        """Give the records from the last file on that begins with all that older ones tell.

        Raises:
            StoreError: If a file cannot be read.
        """
        log = self._log
        numbers = tuple(log.sizes)
        first = max(filter(self._has_head, numbers), default=0)
        for number in numbers:
            if number >= first:
                yield from self._progress_in(number)
        for text in log.damage.values():
            self._has_holes = True
            logger.warning("the port's journal: %s", text)

    def _has_head(self, number: int) -> bool:
        """True if a file says which groups older ones tell of, and how far was read."""
        head = next(self._log.records(number, max_bytes=_HEAD_BYTES), None)
        return head is not None and head.kind == records.FIRST_READ

    def _progress_in(self, number: int) -> Iterator[ReadProgress]:
        try:
            for record in self._log.records(number):
                progress, older = records.read_progress(record.body)
                if older is not None:
                    there = self._log.sizes
                    self._ranges = {
                        file: {stream: (first, last) for stream, (first, last) in each.items()}
                        for file, each in older.items()
                        if file in there
                    }
                self._note(number, progress.found)
                yield progress
        except CodecError as error:
            self._has_holes = True
            logger.warning("the port's journal: %s: %s", self._log.path(number), error)

    def _remove(self, number: int) -> None:
        if self._log.remove(number):
            self._ranges.pop(number, None)
            self._loaded.pop(number, None)

    def _note(self, file: int, found: Iterable[FoundRun]) -> None:
        streams = self._ranges.setdefault(file, {})
        loaded = self._loaded.get(file)
        for stream, first, last, _ in found:
            span = streams.get(stream, (first, last))
            streams[stream] = min(span[0], first), max(span[1], last)
        if loaded is not None:
            loaded.update((group.point, group) for run in found for group in run.groups())

    def _load(self, file: int) -> dict[GroupNumber, FoundGroup]:
        """Read the findings on groups that a file holds."""
        loaded = self._loaded.get(file)
        if loaded is None:
            loaded = {}
            try:
                for record in self._log.records(file):
                    progress, _ = records.read_progress(record.body)
                    loaded.update(
                        (group.point, group) for run in progress.found for group in run.groups()
                    )
            except BinlaneError as error:
                logger.warning("the port's journal: %s", error)
            while len(self._loaded) >= _LOADED_MOST:
                del self._loaded[next(iter(self._loaded))]
            self._loaded[file] = loaded
        return loaded
