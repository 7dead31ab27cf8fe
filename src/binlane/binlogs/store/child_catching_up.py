"""Rows of children that are read from a binlog's files in a thread of its own, beside the writer.

A million rows take a minute. Meanwhile the writer leaves the rows alone, goes on with other binlogs,
and gives this one nothing that needs them. What was kept stays, so whoever ends it goes on there.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from binlane.binlogs.store.child_reading import BinlogOfChildren, FileReading
from binlane.binlogs.store.child_rows import FilePlace, KeptChildren
from binlane.binlogs.store.files import BinlogFile
from binlane.errors import BinlaneError
from binlane.log.codec.format import Format
from binlane.statements.scope.definition import Definition

CHILDREN_DIRECTORY: Final = "children"


class ChildrenBehindError(BinlaneError):
    """The rows of a binlog's children are being read; what needs them is asked for again later."""


@dataclass(slots=True)
class ChildReadings:
    """The readings of all binlogs of a store.

    Attributes:
        folder: The folder of the rows of all binlogs.
        wake: Called at the end of each, by its thread; None where the writer has time to read.
    """

    folder: Path
    wake: Callable[[], None] | None = None


@dataclass(slots=True, kw_only=True)
class FilesThen:
    """A binlog as it was: later groups change nothing of it.

    Attributes:
        definition: The definition of the binlog.
        source_format: The format of the events that it was given.
        size_bytes: The place in the last file behind the last group.
        all_files: The files that it had, the oldest first.
    """

    definition: Definition
    source_format: Format
    size_bytes: int
    all_files: tuple[BinlogFile, ...]

    @classmethod
    def of(cls, binlog: BinlogOfChildren) -> FilesThen:
        """A binlog as it is; all that was appended is in its files."""
        return cls(
            definition=binlog.definition,
            source_format=binlog.source_format,
            size_bytes=binlog.size_bytes,
            all_files=binlog.files(),
        )

    def files(self) -> tuple[BinlogFile, ...]:
        """As `BinlogOfChildren`."""
        return self.all_files

    def write_appended(self) -> None:
        """As `BinlogOfChildren`; all is there."""

    def bytes_behind(self, place: FilePlace) -> int:
        """Bytes of the files behind a place; all bytes if the place is in none of them."""
        names = [file.name for file in self.all_files]
        first = names.index(place.file) if place.file in names else 0
        sizes = [*(file.size_bytes for file in self.all_files[first:-1]), self.size_bytes]
        return max(0, sum(sizes) - (place.position if place.file in names else 0))


class ChildReading:
    """One reading, which begins at once.

    Args:
        kept: What is kept so far; nobody else's until the reading is over.
        binlog: The binlog as it was when the reading began.
        wake: Called at the end, unless the reading was ended by `end`.
    """

    def __init__(self, kept: KeptChildren, binlog: FilesThen, wake: Callable[[], None]) -> None:
        self._kept, self._binlog, self._wake = kept, binlog, wake
        self._all_bytes = binlog.bytes_behind(kept.state.place)
        self._is_wanted = True
        self._is_read = False
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="children", daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """True if `result` gives something at once."""
        return not self._thread.is_alive()

    @property
    def share(self) -> float:
        """The part that is read, from 0 to 1; any thread may ask."""
        left = self._binlog.bytes_behind(self._kept.state.place)
        return 1 - left / self._all_bytes if self._all_bytes else 1.0

    def result(self) -> bool:
        """Wait for the end; gives what `FileReading.read` does.

        Raises:
            BinlaneError: As `FileReading.read`.
            sqlite3.Error: If the rows cannot be kept.
            OSError: Likewise.
        """
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._is_read

    def end(self) -> None:
        """Have it end soon, and wait for that; what it has kept so far stays."""
        self._is_wanted = False
        self._thread.join()

    def _run(self) -> None:
        try:
            reading = FileReading(self._kept, self._binlog, goes_on=lambda: self._is_wanted)
            self._is_read = reading.read()
        except (BinlaneError, sqlite3.Error, OSError) as error:
            self._error = error
        except Exception as error:  # noqa: BLE001  # whatever it is, it is this binlog's
            self._error = BinlaneError(f"internal error: {error!r}")
        if self._is_wanted:
            self._wake()
