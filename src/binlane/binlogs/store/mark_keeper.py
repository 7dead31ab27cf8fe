"""Marks on their way into the catalog: one transaction for many, and none ever goes back.

A mark is a promise about what is on disk already, so it may be saved late and from another thread;
but never behind a later one of the same binlog, which may have let files go.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Protocol

from binlane.binlogs.store.catalog import Catalog, Mark
from binlane.binlogs.store.file_facts import closed_files
from binlane.binlogs.store.files import BinlogFile


class MarkKeeper:
    """Saves the marks of all binlogs of a store; any thread may.

    Args:
        catalog: The catalog that keeps the marks.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._lock = threading.Lock()
        self._numbers = count(1)
        self._saved: dict[int, int] = {}

    def number(self) -> int:
        """Give the number of marks that are taken now; later marks have greater numbers."""
        return next(self._numbers)

    def save(
        self, marks: Mapping[int, Mark], *, number: int | None = None, identity: str | None = None
    ) -> None:
        """Save marks, but for those of which a later one was saved.

        Args:
            marks: Marks by the ids of their binlogs.
            number: The `number` of the time at which they were taken; now by default.
            identity: Identity of the source, as `Catalog.save_marks` takes it.

        Raises:
            StoreError: If the catalog cannot be written; nothing is saved then.
        """
        with self._lock:
            taken = self.number() if number is None else number
            newer = {key: mark for key, mark in marks.items() if self._saved.get(key, 0) < taken}
            if newer or identity is not None:
                self._catalog.save_marks(newer, identity)
                self._saved.update(dict.fromkeys(newer, taken))

    @contextmanager
    def later(self, log_id: int) -> Iterator[None]:
        """Within the block, a mark is saved by other means: those taken before are not any more."""
        with self._lock:
            yield
            self._saved[log_id] = self.number()


class ClosedFacts(Protocol):
    """Keeps facts of the closed files of binlogs."""

    def known(self, directory: Path) -> dict[str, BinlogFile]:
        """The files of a binlog that are known, by name."""
        ...

    def save(self, files: Iterable[BinlogFile]) -> None:
        """Note closed files."""
        ...

    def forget(self, *, before: int) -> None:
        """Forget files with numbers below `before`."""
        ...


class BinlogMarks:
    """The catalog's knowledge of one binlog: its mark, and facts of its closed files.

    Args:
        save: Writes a mark into the catalog.
        facts: Keeps the facts of closed files; None where nobody does.
    """

    def __init__(self, save: Callable[[Mark], None], facts: ClosedFacts | None = None) -> None:
        self._save = save
        self._facts = facts
        self._saved: Mark | None = None
        self._saved_at = time.monotonic()
        self._unsaved_files: list[BinlogFile] = []

    def closed(self, directory: Path, names: Sequence[str]) -> tuple[BinlogFile, ...]:
        """The closed files of the binlog, by their names.

        Raises:
            CorruptStoreError: If one that is not known is damaged.
        """
        known = self._facts.known(directory) if self._facts else {}
        closed = closed_files(directory, names, known)
        self._unsaved_files = [file for file in closed if file.name not in known]
        return closed

    def is_due(self, interval_s: float) -> bool:
        """True if the mark was looked at an interval ago or before."""
        return time.monotonic() - self._saved_at >= interval_s

    def is_saved(self, mark: Mark) -> bool:
        """True if the catalog has this mark; it is then looked at again after the interval."""
        self._saved_at = time.monotonic()
        return mark == self._saved

    def save(self, mark: Mark) -> None:
        """Save a mark, and before it the facts of the files that were closed.

        Raises:
            StoreError: If the catalog cannot be written.
        """
        self.note_closed(self._unsaved_files)
        self._unsaved_files = []
        self._save(mark)
        self._saved, self._saved_at = mark, time.monotonic()

    def take(self, mark: Mark) -> tuple[Mark | None, list[BinlogFile]]:
        """Take the facts that the catalog was not given yet: the mark, and closed files."""
        if mark == self._saved:
            return None, []
        files, self._unsaved_files = self._unsaved_files, []
        self._saved, self._saved_at = mark, time.monotonic()
        return mark, files

    def lose(self) -> None:
        """Let `take` give the mark again: the one that it gave could not be saved."""
        self._saved = None

    def note_ended(self, file: BinlogFile) -> None:
        """Keep the facts of a file that was closed, until the next mark is saved."""
        self._unsaved_files.append(file)

    def note_closed(self, files: Sequence[BinlogFile]) -> None:
        """Save facts of closed files; any thread may.

        Raises:
            StoreError: If the catalog cannot be written.
        """
        if self._facts and files:
            self._facts.save(files)

    def forget(self, *, before: int) -> None:
        """Forget files that were purged: those with numbers below `before`.

        Raises:
            StoreError: If the catalog cannot be written.
        """
        if self._facts:
            self._facts.forget(before=before)
