"""The temporary tables of a session in each binlog, and whether they are in the source's state.

A binlog that logs statements has the texts that make and change them, so that later texts can use the tables.
It may have got one of these texts at another time than the source ran it, or not at all. So this module keeps
count: a table is, at the source and in each binlog, in the state left by the statement that changed it last;
a text can use a table of its binlog only if that is in the state that its statement found.

A change that a rollback undoes counts as a change: then rows are logged where a text would have done.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from binlane.names import TableName
from binlane.statements.session.statement_state import TemporaryChange, TemporaryUse

_KEPT: Final = 64
"""Number of ended statements whose uses are remembered: a binlog may turn out not to have got their texts."""
_UNKNOWN: Final = -1
"""Number of no statement: the state of the table is not known."""


@dataclass(slots=True)
class _Use:
    """A temporary table in the use of one statement.

    Attributes:
        use: Use of the table by the statement.
        found: Number of the statement that had changed the table last; None: there was no table of that name.
    """

    use: TemporaryUse
    found: int | None


@dataclass(slots=True)
class TemporaryCopies:
    """The temporary tables of a session in its binlogs.

    Attributes:
        unmade: Binlogs, and tables that were to be made there and were not.
    """

    unmade: list[tuple[str, TableName]] = field(default_factory=list)
    _uses: dict[int, dict[TableName, _Use]] = field(default_factory=dict)
    _source: dict[TableName, int] = field(default_factory=dict)
    _binlogs: dict[str, dict[TableName, int]] = field(default_factory=dict)
    _gone: dict[tuple[str, TableName], int] = field(default_factory=dict)

    def copy(self) -> TemporaryCopies:
        """Copy the present state."""
        return TemporaryCopies(
            unmade=self.unmade.copy(),
            _uses=self._uses.copy(),
            _source=self._source.copy(),
            _binlogs={name: tables.copy() for name, tables in self._binlogs.items()},
            _gone=self._gone.copy(),
        )

    def note(
        self,
        uses: Mapping[int, Mapping[TableName, TemporaryUse]],
        tables: Collection[TableName],
    ) -> None:
        """Note the effects of statements at the source.

        Args:
            uses: Uses of temporary tables, by number of the statement.
            tables: Temporary tables that exist behind the statements.
        """
        for number in sorted(uses):
            found = self._uses[number] = {}
            for table, use in uses[number].items():
                found[table] = _Use(use, self._source.get(table))
                if use.change is TemporaryChange.DROPPED:
                    self._source.pop(table, None)
                elif use.change:
                    self._source.pop(table, None)
                    self._source[use.new_name or table] = number
        for table in self._source.keys() - set(tables):
            del self._source[table]
        for table in tables:
            self._source.setdefault(table, _UNKNOWN)

    def forget(self) -> None:
        """Forget the oldest statements, when nothing waits any longer."""
        while len(self._uses) > _KEPT:
            del self._uses[next(iter(self._uses))]

    def are_used(self, number: int) -> bool:
        """True if a statement reads, changes, makes or drops temporary tables."""
        return bool(self._uses.get(number))

    def are_changed(self, number: int) -> bool:
        """True if a statement changes temporary tables."""
        return any(one.use.change for one in self._uses.get(number, {}).values())

    def survive_rollback(self, number: int) -> bool:
        """True if a statement changes temporary tables, and a rollback undoes none of that."""
        return self.are_changed(number) and not any(
            one.use.has_rollback
            and one.use.change in (TemporaryChange.ROWS, TemporaryChange.FILLED)
            for one in self._uses[number].values()
        )

    def can_be_used(self, name: str, number: int) -> bool:
        """True if a binlog has the temporary tables as a statement's text needs them."""
        own = self._binlogs.get(name, {})
        uses = self._uses.get(number, {})
        dropped = [
            table for table, one in uses.items() if one.use.change is TemporaryChange.DROPPED
        ]
        # The texts of a DROP, one or more, are of tables that exist.
        is_there = any(table in own or self._gone.get((name, table)) == number for table in dropped)
        return (is_there or not dropped) and all(
            _fits(table, one, own) for table, one in uses.items() if table not in dropped
        )

    def give(self, name: str, number: int, *, is_drop: bool) -> None:
        """Note that a binlog gets the text of a statement.

        Args:
            name: Name of the binlog with the text.
            number: Number of the text's statement.
            is_drop: The text drops temporary tables; another text of such a statement does not.
        """
        uses = self._uses.get(number)
        if uses is None:
            return
        own = self._binlogs.setdefault(name, {})
        for table, one in uses.items():
            if one.use.change is TemporaryChange.DROPPED:
                if is_drop and own.pop(table, None) is not None:
                    self._gone[name, table] = number
            elif one.use.change:
                own.pop(table, None)
                own[one.use.new_name or table] = number

    def drop(self, name: str, number: int) -> None:
        """Note that a binlog does not get the text of a statement."""
        for table, one in self._uses.get(number, {}).items():
            made = table if one.use.change >= TemporaryChange.MADE else one.use.new_name
            if made is not None:
                self.unmade.append((name, made))

    def lose(self, name: str, number: int) -> None:
        """Note that a binlog did not get the text of a statement, though it was to."""
        own = self._binlogs.setdefault(name, {})
        for table, one in self._uses.get(number, {}).items():
            made = table if one.use.change >= TemporaryChange.MADE else one.use.new_name
            if made is not None:
                own.pop(made, None)
            if one.use.change < TemporaryChange.MADE and one.use.change:
                own[table] = _UNKNOWN
        self.drop(name, number)


def _fits(table: TableName, one: _Use, own: Mapping[TableName, int]) -> bool:
    """True if a table is in the state that a statement needs.

    Args:
        table: Name of the temporary table.
        one: Use of the table by the statement.
        own: The existing tables, with the number of the statement that changed each last.
    """
    if one.use.change >= TemporaryChange.MADE:
        return table not in own or one.use.replaces
    if one.use.new_name in own:
        return False
    return table in own and own[table] == one.found != _UNKNOWN
