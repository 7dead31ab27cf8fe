"""Marks on their way into the catalog: one transaction for many, and none ever goes back.

A mark is a promise about what is on disk already, so it may be saved late and from another thread;
but never behind a later one of the same binlog, which may have let files go.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count

from binlane.binlogs.store.catalog import Catalog, Mark


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
