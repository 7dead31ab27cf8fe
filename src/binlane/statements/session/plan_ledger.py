"""The memory of a planning session between statements, and the statements that wait in transaction caches."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from binlane.statements.session.log_events import Body
from binlane.statements.session.state import SessionState
from binlane.statements.session.statement_template import ExpectedResult
from binlane.statements.session.temporary_copies import TemporaryCopies
from binlane.statements.sql.servers import RowImage


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
        """Note the row images of later statements."""
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
