"""Which temporary tables of a session each binlog has, and whether they are as they are at the source.

A binlog that logs statements has the texts that make and change them, so that later texts can use
them. It may have got one of these at another time than the source ran it, or not at all. So it is
counted: a table is, at the source and in each binlog, as the statement left it that changed it
last; a text can use what its binlog has only if that is what its statement found.

What a rollback undoes counts as changed: then rows are logged where a text would have done.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from binlane.names import TableName
from binlane.statements.session.state import TemporaryChange, TemporaryUse

_KEPT: Final = 64
"""Of so many statements that are over it is known what they did: a binlog may turn out not to have got
their texts."""
_UNKNOWN: Final = -1
"""Of no statement: nobody knows how a table is."""


@dataclass(slots=True)
class _Use:
    """A temporary table as one statement uses it.

    Attributes:
        use: What it does with it.
        found: The statement that had changed it last; None: there was none of that name.
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
        """As they are now."""
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
        """Note what statements did at the source.

        Args:
            uses: What they did with temporary tables, by number.
            tables: Those that are there behind them.
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
        """Nothing waits any longer: forget the oldest statements."""
        while len(self._uses) > _KEPT:
            del self._uses[next(iter(self._uses))]

    def are_used(self, number: int) -> bool:
        """Whether a statement reads, changes, makes or drops temporary tables."""
        return bool(self._uses.get(number))

    def are_changed(self, number: int) -> bool:
        """Whether a statement changes temporary tables."""
        return any(one.use.change for one in self._uses.get(number, {}).values())

    def survive_rollback(self, number: int) -> bool:
        """Whether a statement changes some, and a rollback undoes none of that."""
        return self.are_changed(number) and not any(
            one.use.has_rollback
            and one.use.change in (TemporaryChange.ROWS, TemporaryChange.FILLED)
            for one in self._uses[number].values()
        )

    def can_be_used(self, name: str, number: int) -> bool:
        """Whether a binlog has them as a statement's text needs them."""
        own = self._binlogs.get(name, {})
        uses = self._uses.get(number, {})
        dropped = [
            table for table, one in uses.items() if one.use.change is TemporaryChange.DROPPED
        ]
        # Its texts, one or more, are of those that are there.
        is_there = any(table in own or self._gone.get((name, table)) == number for table in dropped)
        return (is_there or not dropped) and all(
            _fits(table, one, own) for table, one in uses.items() if table not in dropped
        )

    def give(self, name: str, number: int, *, is_drop: bool) -> None:
        """Note that a binlog gets the text of a statement.

        Args:
            name: The binlog.
            number: Of the statement.
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
    """Whether a table is as a statement needs it.

    Args:
        table: Its name.
        one: What the statement does with it.
        own: The tables that are there, and which statement changed them last.
    """
    if one.use.change >= TemporaryChange.MADE:
        return table not in own or one.use.replaces
    if one.use.new_name in own:
        return False
    return table in own and own[table] == one.found != _UNKNOWN
