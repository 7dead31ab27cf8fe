"""The memory of a planning session between statements, and the statements that wait in transaction caches.

The memory has the temporary tables of each binlog. A binlog that logs statements has the texts that make and change them, so that later texts can use the tables.
It may have got one of these texts at another time than the source ran it, or not at all. So this module keeps
count: a table is, at the source and in each binlog, in the state left by the statement that changed it last;
a text can use a table of its binlog only if that is in the state that its statement found.

A change that a rollback undoes counts as a change: then rows are logged where a text would have done.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final

from binlane.names import TableName
from binlane.statements.session.log_events import Body
from binlane.statements.session.state import SessionState
from binlane.statements.session.statement_state import TemporaryChange, TemporaryUse
from binlane.statements.session.statement_template import ExpectedResult
from binlane.statements.sql.servers import RowImage

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


@dataclass(slots=True)
class Ledger:
    """The planning session's memory between statements.

    Attributes:
        removed: By binlog, the numbers of statements that are not to be there as text.
        removed_until: All statements up to this number are not to be in any binlog as text.
        unlogged: Numbers of statements of which the binlogs are to have nothing.
        temporary: The temporary tables that each binlog has.
        images: Row images that are to be less than full, by the number of their statement.
        has_texts: Texts may wait for the end of the transaction.
    """

    removed: dict[str, set[int]] = field(default_factory=dict)
    removed_until: int = 0
    unlogged: set[int] = field(default_factory=set)
    temporary: TemporaryCopies = field(default_factory=TemporaryCopies)
    images: dict[int, RowImage] = field(default_factory=dict)
    has_texts: bool = False

    @property
    def is_clean(self) -> bool:
        """True if no single statement has a restriction."""
        return not (self.removed or self.unlogged)

    def copy(self) -> Ledger:
        """Copy the present state."""
        return Ledger(
            removed={name: numbers.copy() for name, numbers in self.removed.items()},
            removed_until=self.removed_until,
            unlogged=self.unlogged.copy(),
            temporary=self.temporary.copy(),
            images=self.images.copy(),
            has_texts=self.has_texts,
        )

    def end_transaction(self) -> None:
        """Forget the transaction: nothing waits any longer."""
        if self.removed or self.unlogged:
            self.removed.clear()
            self.unlogged.clear()
        self.temporary.forget()
        self.images.clear()
        self.has_texts = False

    def note_image(self, image: RowImage, numbers: Iterable[int]) -> None:
        """Know which row images statements are to have."""
        if image is not RowImage.FULL:
            self.images.update(dict.fromkeys(numbers, image))

    def is_removed(self, name: str, number: int) -> bool:
        """True if a statement is not to be in a binlog as text."""
        return number <= self.removed_until or number in self.removed.get(name, ())

    def remove(self, name: str, numbers: Collection[int]) -> None:
        """Keep the texts of some statements out of a binlog."""
        if numbers:
            self.removed.setdefault(name, set()).update(numbers)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Statements with events that wait in a transaction cache, which is not copied for that.

    Attributes:
        marks: Marks of the transaction cache, which tell the statements.
        last: Number of one more statement, behind them; 0: none.
        events: Events of the transaction cache.
        expected: Known statement whose number is `last`.
        name: Name of the cache's binlog.
    """

    marks: Sequence[tuple[int, int]] = ()
    last: int = 0
    events: Sequence[Body] = ()
    expected: ExpectedResult | None = None
    name: str = ""

    @classmethod
    def present(cls, state: SessionState, name: str) -> Waiting:
        """Return the statements of which something waits in a binlog's transaction cache."""
        cache = state.binlogs[name].transaction_cache
        return cls(cache.marks, events=cache.events)

    @classmethod
    def behind(
        cls, state: SessionState, name: str, number: int, expected: ExpectedResult
    ) -> Waiting:
        """Return the statements that wait in a binlog's cache behind a known statement."""
        cache, template = state.binlogs[name].transaction_cache, expected.template
        marks = () if name in template.clears else cache.marks
        last = number if name in template.waits else 0
        return cls(marks, last, cache.events, expected, name)

    def __bool__(self) -> bool:
        return bool(self.marks) or self.last > 0

    def __contains__(self, number: int) -> bool:
        if self.last and number == self.last:
            return True
        at = bisect_left(self.marks, number, key=itemgetter(1))
        return at < len(self.marks) and self.marks[at][1] == number

    def bodies(self, number: int) -> tuple[Body, ...]:
        """Return the waiting events of a statement; none for a statement that does not wait."""
        if self.expected is not None and self.last and number == self.last:
            return self.expected.template.appends(self.name, self.expected.text)
        at = bisect_left(self.marks, number, key=itemgetter(1))
        if at >= len(self.marks) or self.marks[at][1] != number:
            return ()
        return tuple(self.events[self.marks[at - 1][0] if at else 0 : self.marks[at][0]])

    def has_from(self, number: int) -> bool:
        """True if a statement with this number or a greater one waits."""
        newest = self.last or (self.marks[-1][1] if self.marks else 0)
        return newest >= number
