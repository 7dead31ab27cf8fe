"""The two caches of a binlog: events of a statement that wait for its or its transaction's end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from binlane.names import TableName
from binlane.session.log_events import ended
from binlane.session.report import LoggedEvent

_WITHOUT_CONTENT: Final = frozenset(("Table_map", "Annotate_rows"))


@dataclass(slots=True)
class Cache:
    """Events that are not in the log yet.

    Attributes:
        counts_maps: MySQL: a table map without rows is something to log; MariaDB drops it.
        events: In order; what opens and closes a group is added when it is written.
        before_statement: How many stood there when the current statement first used it, in the
            transaction cache; None outside.
        open_rows: Where the last rows event of the current statement stands, and what it is
            about: rows of the same kind and table join it. None without.
    """

    counts_maps: bool = True
    events: list[LoggedEvent] = field(default_factory=list)
    before_statement: int | None = None
    open_rows: tuple[int, TableName, str] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits that is to be logged."""
        if self.counts_maps or not self.events:
            return not self.events
        return all(event.type in _WITHOUT_CONTENT for event in self.events)

    def add_rows(self, table: TableName, kind: str, event: LoggedEvent) -> None:
        """Add rows; those of the same table and kind as the last ones are in one event."""
        if self.open_rows is not None and self.open_rows[1:] == (table, kind):
            return
        self.open_rows = (len(self.events), table, kind)
        self.events.append(event)

    def end_rows(self) -> None:
        """Mark the last rows event as the end of its statement."""
        if self.open_rows is not None:
            index = self.open_rows[0]
            self.events[index] = ended(self.events[index])
            self.open_rows = None

    def truncate(self, size: int) -> None:
        """Drop what was added after so many events."""
        del self.events[size:]
        self.open_rows = None

    def clear(self) -> None:
        """Drop everything."""
        self.truncate(0)
        self.before_statement = None
