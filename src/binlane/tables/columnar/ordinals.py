"""Numbers of changes and images within a transaction, from 0."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Ordinals:
    """Counts of the changes and images that the transaction being read has had so far.

    Attributes:
        group: Where that transaction begins, as `RowsSource` has it; None before the first.
    """

    group: int | None = None
    changes: int = 0
    images: int = 0

    def begin(self, group: int) -> None:
        """Go on in a transaction, which may be another one."""
        if group != self.group:
            self.group, self.changes, self.images = group, 0, 0
