"""The tables of a log that are landed: those of lists that a filter lets through, where the log stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from binlane.names import TableName
from binlane.statements.scope.scope import Scope
from binlane.tables.columnar.selection import file_number
from binlane.tables.ranges.history import FilterAt
from binlane.tables.ranges.offset import Offset

if TYPE_CHECKING:
    from binlane.binlogs.filters.state import FilterState, Saved
    from binlane.tables.ranges.statements import Statement


class Tables(Protocol):
    """A test of names: which tables are landed."""

    def includes(self, table: TableName, /) -> bool:
        """True if a table is landed."""


class LandedTables:
    """The tables that are landed, at the place that a landing has come to.

    Args:
        scope: The lists of databases and tables.
        state: State of the filter at that place; None without a filter.

    Attributes:
        notes: Statements that the filter left out or doubted of tables that it names, since the
            notes were last taken; each with a place.
    """

    def __init__(self, scope: Scope, state: FilterState | None) -> None:
        self.notes: list[str] = []
        self._scope = scope
        self._state = state

    def includes(self, table: TableName, /) -> bool:
        """True if a table is landed."""
        return self._scope.includes(table) and (self._state is None or self._state.includes(table))

    def after(self, statement: Statement) -> LandedTables:
        """The tables that are landed behind a statement."""
        if self._state is None:
            return self
        from binlane.binlogs.filters.concern import concern_of_statement  # noqa: PLC0415 - for filters only

        state = self._state.copy()
        place = f"{statement.file}:{statement.position}"
        verdict = state.take(concern_of_statement(statement, statement.told), place)
        behind = LandedTables(self._scope, state)
        if verdict.row_note:
            behind.notes.append(f"{place}: {verdict.row_note}")
        return behind

    def become(self, other: LandedTables) -> None:
        """Go on with the tables of another place."""
        self._state = other._state
        self.notes += other.notes

    def copy(self) -> LandedTables:
        """The tables of this place."""
        return LandedTables(self._scope, self._state)

    @property
    def unmatched(self) -> str:
        """Return a warning if no statement was about what a filter names; else empty text."""
        state = self._state
        return state.unmatched if state is not None and state.is_unmatched else ""

    @property
    def followed(self) -> Saved:
        """The names that the filter remembers."""
        return {} if self._state is None else self._state.saved


def filter_at(state: FilterState, place: Offset | None) -> FilterAt:
    """The filter of a landing that goes on at a place; None for the log's beginning."""
    if place is None:
        return FilterAt(state)
    return FilterAt(state, file_number(place.file), place.position)
