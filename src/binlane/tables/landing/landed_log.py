"""The log at the place that a landing has come to: its objects, and the tables that are landed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from binlane.names import TableName
from binlane.positions import file_number
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.logged_objects import LoggedObjects
from binlane.tables.columnar.followed_log import FollowedLog
from binlane.tables.columnar.log_notes import Statement
from binlane.tables.ranges.log_history import FilterAt
from binlane.tables.ranges.log_range import Offset

if TYPE_CHECKING:
    from binlane.binlogs.filters.filter_state import FilterState, Saved


class LandedLog:
    """The log at the place that a landing has come to: its objects, and the tables that are landed.

    Args:
        scope: The lists of databases and tables.
        log: The log at that place, with its objects.

    Attributes:
        notes: Statements that the filter left out or doubted of tables that it names, since the
            notes were last taken; each with a place.
    """

    def __init__(self, scope: Scope, log: FollowedLog) -> None:
        self.notes: list[str] = []
        self._scope = scope
        self._log = log

    @property
    def objects(self) -> LoggedObjects:
        """The log's objects at the place."""
        assert self._log.objects is not None, "a landing needs them"
        return self._log.objects

    def includes(self, table: TableName, /) -> bool:
        """True if a table is landed."""
        return self._scope.includes(table) and self._log.wants(table)

    def after(self, statement: Statement) -> LandedLog:
        """Return the log behind a statement; this one stays where it is."""
        log = self._log.copy()
        log.follow(statement)
        behind = LandedLog(self._scope, log)
        behind.notes += self.notes
        if log.filter_state is not None:
            behind.notes += log.filter_state.notes
        return behind

    def become(self, other: LandedLog) -> None:
        """Go on at another place."""
        self._log, self.notes = other._log, other.notes

    def copy(self) -> LandedLog:
        """Return the log at the same place."""
        found = LandedLog(self._scope, self._log.copy())
        found.notes += self.notes
        return found

    @property
    def unmatched(self) -> str:
        """Return a warning if no statement was about what a filter names; else empty text."""
        state = self._log.filter_state
        return state.unmatched if state is not None and state.is_unmatched else ""

    @property
    def followed(self) -> Saved:
        """The names that the filter remembers."""
        return {} if self._log.filter_state is None else self._log.filter_state.saved


def filter_at(state: FilterState, place: Offset | None) -> FilterAt:
    """The filter of a landing that goes on at a place; None for the log's beginning."""
    if place is None:
        return FilterAt(state)
    return FilterAt(state, file_number(place.file), place.position)
