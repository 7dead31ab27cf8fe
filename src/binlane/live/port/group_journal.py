"""The part of the journal that the routing thread writes: how far it read, and whose groups are whose.

Where the plan of a group stands is found again by its GTID: files know which they tell of.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

from binlane.binlogs.store.disk import Disk
from binlane.binlogs.store.record_log import RecordLog
from binlane.errors import BinlaneError, CodecError, StoreError
from binlane.live.port import journal_records as records
from binlane.live.port.session_groups import Point, Stream

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
        self._log = RecordLog(folder, _SUFFIX, disk)
        self._file_bytes = file_bytes
        self._is_file_due = True
        self._is_stale = self._has_holes = False
        self._ranges: dict[int, dict[Stream, tuple[int, int]]] = {}
        self._loaded: dict[int, dict[Point, records.FoundGroup]] = {}

    @property
    def is_file_due(self) -> bool:
        """True if the next record begins a file: it is to tell how far all streams were read."""
        return self._is_file_due or self._log.current_bytes >= self._file_bytes

    def write(self, reading: records.Reading) -> None:
        """Write a record; `failure` tells if that fails, and the record is lost then."""
        try:
            if self.is_file_due:
                self._log.begin_file()
                self._is_file_due = False
                if self._is_stale:
                    self._drop_older()
                self._log.append(records.OLDER, records.older_body(self._ranges))
            self._log.append(records.READ, records.reading_body(reading))
        except StoreError as error:
            if self.failure != str(error):
                logger.error("the port's journal cannot be written: %s", error)  # noqa: TRY400
            self.failure, self._is_file_due, self._has_holes = str(error), True, True
            return
        self.failure = ""
        self._note(self._log.number, reading.found)

    def numbers(self, first: int, last: int) -> set[int]:
        """Give the numbers of groups that were found out, of any stream.

        Args:
            first: The least number that is of interest.
            last: The greatest number that is of interest.
        """
        found: set[int] = set()
        for file, streams in tuple(self._ranges.items()):
            if any(begin <= last and first <= end for begin, end in streams.values()):
                found |= {each.number for each in self._load(file) if first <= each.number <= last}
        return found

    def tells_of(self, point: Point) -> bool:
        """True if a group that was found out would still be known."""
        if self._has_holes:
            return False
        firsts = [each[point.stream][0] for each in self._ranges.values() if point.stream in each]
        is_first_there = min(self._log.sizes, default=1) == 1
        return is_first_there or not firsts or min(firsts) <= point.number

    def find(self, point: Point) -> records.FoundGroup | None:
        """Give the recorded finding on a group; None if nothing was found out, or that is gone."""
        for file, streams in self._ranges.items():
            first, last = streams.get(point.stream, (1, 0))
            if first <= point.number <= last:
                found = self._load(file).get(point)
                if found is not None:
                    return found
        return None

    def passed(self, ends: Mapping[Stream, int]) -> None:
        """Let files go of which no group is asked for any more."""
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
        """Delete all files; the next record begins a file."""
        self._ranges.clear()
        self._loaded.clear()
        self._is_file_due = self._is_stale = True

    def files(self) -> Iterator[records.Reading]:
        """Give the records of the last file that begins with all that older ones tell.

        Raises:
            StoreError: If a file cannot be read.
        """
        numbers = tuple(self._log.sizes)
        heads = [number for number in numbers if self._has_head(number)]
        for number in numbers:
            if not heads or number < heads[-1]:
                continue
            for reading in self._readings(number):
                self._note(number, reading.found)
                yield reading
        for text in self._log.damage.values():
            self._has_holes = True
            logger.warning("the port's journal: %s", text)

    def _has_head(self, number: int) -> bool:
        """True if a file says which groups older ones tell of, and how far was read."""
        kinds = [
            record.kind for record in islice(self._log.records(number, max_bytes=_HEAD_BYTES), 2)
        ]
        return kinds == [records.OLDER, records.READ]

    def _readings(self, number: int) -> Iterator[records.Reading]:
        try:
            for record in self._log.records(number):
                if record.kind == records.OLDER:
                    there = self._log.sizes
                    older = records.read_older(record.body)
                    self._ranges = {file: each for file, each in older.items() if file in there}
                else:
                    yield records.read_reading(record.body)
        except CodecError as error:
            self._has_holes = True
            logger.warning("the port's journal: %s: %s", self._log.path(number), error)

    def _drop_older(self) -> None:
        self._is_stale = False
        for number in self._log.older:
            self._remove(number)

    def _remove(self, number: int) -> None:
        try:
            self._log.remove(number)
        except StoreError as error:
            logger.warning("the port's journal: %s", error)
        else:
            self._ranges.pop(number, None)
            self._loaded.pop(number, None)

    def _note(self, file: int, found: Iterable[records.FoundGroup]) -> None:
        streams = self._ranges.setdefault(file, {})
        loaded = self._loaded.get(file)
        for each in found:
            stream, number = each.point
            first, last = streams.get(stream, (number, number))
            streams[stream] = min(first, number), max(last, number)
            if loaded is not None:
                loaded[each.point] = each

    def _load(self, file: int) -> dict[Point, records.FoundGroup]:
        """Read the findings on groups that a file holds."""
        loaded = self._loaded.get(file)
        if loaded is None:
            loaded = {}
            try:
                for record in self._log.records(file):
                    if record.kind != records.READ:
                        continue
                    for found in records.read_reading(record.body).found:
                        loaded[found.point] = found
            except BinlaneError as error:
                logger.warning("the port's journal: %s", error)
            while len(self._loaded) >= _LOADED_MOST:
                del self._loaded[next(iter(self._loaded))]
            self._loaded[file] = loaded
        return loaded
