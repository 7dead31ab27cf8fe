"""A log at one place in it, as its statements tell: its objects, and the tables that a filter wants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from binlane.log.codec.event import Event
from binlane.names import TableName
from binlane.tables.columnar.log_notes import Statement, statement_of

if TYPE_CHECKING:
    from binlane.binlogs.filters.filter_state import FilterState
    from binlane.statements.sql.logged_objects import LoggedObjects


@dataclass(slots=True)
class FollowedLog:
    """A log at one place, to be followed event by event or statement by statement.

    The planner, the readers of ranges and the lander of a landing all follow the log by this class.

    Attributes:
        objects: The log's objects at the place; None if nobody needs them.
        filter_state: State of the reader's filter at the place; None without a filter.
        is_wanted: True if the filter lets the statement through that was followed last.
    """

    objects: LoggedObjects | None = None
    filter_state: FilterState | None = None
    is_wanted: bool = True

    @property
    def is_needed(self) -> bool:
        """True if statements change what is read: there are objects or a filter."""
        return self.objects is not None or self.filter_state is not None

    def copy(self) -> Self:
        """Return the log at the same place, to be followed by itself; notes are counted anew."""
        return type(self)(
            objects=None if self.objects is None else self.objects.copy(),
            filter_state=None if self.filter_state is None else self.filter_state.copy(),
        )

    def feed(self, event: Event, place: str | None) -> bool:
        """Follow the log by its next event.

        Args:
            event: Any event but a rows event.
            place: Place of the event, as FILE:POSITION; None if the filter is to count nothing.

        Returns:
            True if the objects changed.

        Raises:
            CodecError: If a statement's tables info or context is damaged.
        """
        self.judge(event, place)
        return self.objects is not None and self.objects.feed(event)

    def judge(self, event: Event, place: str | None) -> None:
        """Have the filter alone judge an event; arguments and errors are as of `feed`."""
        self.is_wanted, body = True, statement_of(event)
        if self.filter_state is not None and body is not None:
            from binlane.binlogs.filters.events import judged  # noqa: PLC0415 - reads SQL

            self.is_wanted = judged(body, self.filter_state, place)

    def follow(self, statement: Statement) -> None:
        """Follow the log by its next statement, which has effect."""
        self.is_wanted = True
        if self.filter_state is not None:
            from binlane.binlogs.filters.events import passes  # noqa: PLC0415 - likewise
            from binlane.binlogs.filters.statement_concern import concern_of_statement  # noqa: PLC0415 - reads SQL

            place = f"{statement.file}:{statement.position}"
            concern = concern_of_statement(statement, statement.told, thread_id=statement.thread_id)
            self.is_wanted = passes(concern, self.filter_state, place)
        if self.objects is not None:
            self.objects.follow(statement)

    def wants(self, table: TableName) -> bool:
        """Return True if the filter wants changes of a table at this place."""
        return self.filter_state is None or self.filter_state.includes(table)
