"""The content of the source's event groups in each binlog, for the groups that a session makes.

Beside its binlogs a session keeps the log of the source that it runs on. The events that statements append to
that log, group by group, are those that the source is about to write; the events that statements append to
the binlogs at the same time are the content of these groups there. This module puts the two together: each
statement's rows in a group, and the rows that a binlog has as text.

Each event waits, and is written, under the number of its statement. A group of a binlog belongs to the
source's group with which it shares statements. Where that leaves a doubt of any kind the statement is in the
binlog as its rows, which are never wrong:

- the statement failed, or data decides its effect;
- its rows are in more than one group of the source, or wait still as its text is written;
- the source writes its rows at once, and the binlog lets its text wait for the end of the
  transaction: the binlog then has it now, and not later; as text only if nothing but its place
  makes that unsafe;
- the binlog's group ends in another way than the source's;
- the statement uses a temporary table that the binlog does not have in the same state.

Statements without rows at the source have groups in a binlog that have none there. Of these groups only those
that change temporary tables are kept: later texts may need the tables.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from binlane.log.codec.variables import IntvarEvent, RandEvent
from binlane.log.grouping.sections import Section
from binlane.statements.policy.reasons import Reason, symbol
from binlane.statements.policy.refusals import NO_OUTCOME, Outcome
from binlane.statements.programs.host import LoggedVariable
from binlane.statements.session.log_events import SOURCE_LOG, Body
from binlane.statements.session.log_groups import (
    DROP_TEMPORARY,
    SAVEPOINTS,
    End,
    LogGroup,
    SourceGroup,
    are_rows,
    begins,
    groups_of,
)
from binlane.statements.session.recurring import Foreseen, KnownEffect
from binlane.statements.session.report import StatementResult
from binlane.statements.session.session import Session
from binlane.statements.session.state import SessionState
from binlane.statements.session.temporary_copies import TemporaryCopies
from binlane.statements.sql.servers import LoggingFormat, RowImage, larger

__all__ = [
    "SOURCE_LOG",
    "DraftPart",
    "GroupDraft",
    "Planned",
    "PlannedSession",
    "RowsOf",
    "TextOf",
]


class RowsOf(NamedTuple):
    """A statement that is in the binlog as its rows.

    Attributes:
        number: Number of the statement, which is that of one of the group's sections.
    """

    number: int


class TextOf(NamedTuple):
    """A statement that is in the binlog as its text.

    Attributes:
        number: Number of the statement; that of a section of the group if the statement has rows there.
        bodies: The statement's events, without those that open and end a group.
        uses_temporary: The statement uses temporary tables, or makes or drops some.
    """

    number: int
    bodies: tuple[Body, ...]
    uses_temporary: bool = False


DraftPart = RowsOf | TextOf
_UNSAFE_LATER: Final = frozenset((symbol(Reason.NONTRANS_AFTER_TRANS),))
"""Reasons that make a statement unsafe as a text only where it waits for the end of its transaction."""
_NONE_NAMED: Final[Mapping[str, Any]] = MappingProxyType({})


class GroupDraft(NamedTuple):
    """One group of the source, with its content in each binlog.

    Attributes:
        sections: The rows that the source is to log, each with the number of the statement that makes them;
            no number comes twice.
        is_standalone: The group is one statement that the source logs as its text: DDL and the like, with its
            rows behind it where that is CREATE … SELECT. A binlog without an entry in `binlogs` has that
            text, and those rows.
        binlogs: By name the parts that stand in place of the source's events, in order; empty: the binlog has
            nothing of the group. Binlogs that are not named have the group as the source does, as far as it
            is in their scope.
        ends: By name the end that a binlog's group has if all of it is text and it ends otherwise than the
            source's; None: its one statement stands alone.
        image: The largest binlog_row_image that one of the group's statements ran with, to which its rows are
            cut. Unless it is FULL all binlogs are named.
    """

    sections: tuple[tuple[int, Section], ...] = ()
    is_standalone: bool = False
    binlogs: Mapping[str, tuple[DraftPart, ...]] = _NONE_NAMED
    ends: Mapping[str, Body | None] = _NONE_NAMED
    image: RowImage = RowImage.FULL


class Planned(NamedTuple):
    """The effects of a statement, and the content of the groups that it makes.

    Attributes:
        result: Effects of the statement on each log.
        number: Number of the statement, from 1.
        last: Number of the last statement that it ran, which follow its own number; without any, its own.
        groups: Groups that the source writes because of the statement, in order.
        homeless: By binlog, groups without a group of the source, in order: of statements on temporary
            tables.
        homeless_ends: Ends of the groups in `homeless`; None: the one statement stands alone.
        has_texts: Some of the statement is in a binlog as text, now or later.
        values: Events of values that stand before the statement's text, in some binlog.
    """

    result: StatementResult
    number: int
    last: int
    groups: tuple[GroupDraft, ...] = ()
    homeless: Mapping[str, tuple[tuple[DraftPart, ...], ...]] = _NONE_NAMED
    homeless_ends: Mapping[str, tuple[Body | None, ...]] = _NONE_NAMED
    has_texts: bool = False
    values: tuple[Body, ...] = ()

    @property
    def numbers(self) -> range:
        """Return the statement's number, and those of the statements that it ran."""
        return range(self.number, self.last + 1)


class PlannedSession:
    """A session that plans the content of its source's groups in each binlog.

    Args:
        session: Session that logs for its source, too (`logs_source`).
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self._ledger = _Ledger()
        self._foreseen: _Foreseen | None = None

    @property
    def needs_plans(self) -> bool:
        """True if groups may have another content in some binlog than at the source.

        False where all binlogs log rows and nothing of the session is kept from them. A binlog of statements
        needs the numbers of all rows' statements, also for a session that wants rows.
        """
        state = self.session.state
        return (
            (state.safety is not None and not state.safety.logs_rows_alone)
            or self._ledger.has_texts
            or bool(state.temporary.names)
            or not state.is_logging
            or not self.session.logs_rows_alone
            or self.has_images
        )

    @property
    def is_for_all(self) -> bool:
        """True if every binlog gets another content of the session's groups than the source has."""
        return self.has_images or not self.session.state.is_logging

    @property
    def has_images(self) -> bool:
        """True if the session makes groups now with less than full row images."""
        image = self.session.row_image
        return image is not RowImage.FULL or bool(self._ledger.images)

    @property
    def waits(self) -> bool:
        """True if something waits for the end of a transaction."""
        return _waits(self.session.state)

    def preview(self, text: str, outcome: Outcome = NO_OUTCOME) -> Planned:
        """Return the plan of a statement without running it; nothing of the session changes.

        Args:
            text: The statement's text, as for `Session.execute`.
            outcome: The stated outcome, as for `Session.execute`.
        """
        known = self.preview_known(text, outcome)
        if known is not None:
            return known
        before = self.snapshot()
        try:
            return self.execute(text, outcome)
        finally:
            self.restore(before)

    def preview_known(self, text: str, outcome: Outcome = NO_OUTCOME) -> Planned | None:
        """Return the plan of a statement, if it is known from others like it; else None."""
        foreseen = self.session.foresee(text, outcome)
        if foreseen is None:
            self._foreseen = None
            return None
        state, ledger, effect = self.session.state, self._ledger, foreseen.effect
        number = state.number + 1
        if not self.needs_plans:
            planned = Planned(result=foreseen.result, number=number, last=number)
        elif self.has_images:
            ledger = ledger.copy()
            ledger.note_image(self.session.row_image, range(number, number + 1))
            planned = self._draft_known(foreseen, ledger, number)
            planned = _with_values(planned, effect.values)
        elif ledger.is_clean and state.is_logging and not (effect.waits or _waits(state)):
            planned = _as_known(foreseen, number)
        elif ledger.has_texts and state.is_logging and effect.is_quiet:
            planned = Planned(
                result=foreseen.result,
                number=number,
                last=number,
                has_texts=effect.waits_as_text,
                values=effect.values if effect.waits_as_text else (),
            )
        else:
            ledger = ledger.copy()
            planned = self._draft_known(foreseen, ledger, number)
            planned = _with_values(planned, effect.values)
        self._foreseen = _Foreseen(text, outcome, planned, ledger)
        return planned

    def unchanging(self, text: str) -> KnownEffect | None:
        """Return the effect of a statement that leaves nothing behind but its events; None if not known.

        Args:
            text: The statement's text, as for `Session.execute`; with anything around it is not known.
        """
        ledger = self._ledger
        if ledger.has_texts or ledger.removed or ledger.unlogged or ledger.images:
            return None
        return self.session.recurring.unchanging(text)

    def repeat(self) -> None:
        """Run a statement that `unchanging` told of; it has the next number."""
        self._foreseen = None
        self.session.recurring.stay()

    def count(self) -> int:
        """Return a number for an event that the session logs without a statement of its own."""
        self.session.state.number += 1
        return self.session.state.number

    def have_rows(self, count: int) -> None:
        """Know that the next statement, and those that it runs, cannot be in binlogs as text.

        Args:
            count: Number of statements, which each have one number.
        """
        number = self.session.state.number + 1
        for name in self.session.state.binlogs:
            if name != SOURCE_LOG:
                self._ledger.remove(name, range(number, number + count))
        self._foreseen = None

    def _draft_known(self, foreseen: Foreseen, ledger: _Ledger, number: int) -> Planned:
        """Return the plan of a foreseen statement, in a transaction or kept from the binlogs.

        Args:
            foreseen: The foreseen effects of the statement on the session.
            ledger: Ledger that is changed to its state behind the statement.
            number: Number of the statement, from 1.
        """
        state = self.session.state
        waiting = {
            name: _waiting(state, name, number, foreseen) for name in foreseen.result.binlogs
        }
        drafting = _Drafting(foreseen.result, range(number, number + 1), ledger, waiting)
        planned = drafting.run(is_unlogged=not state.is_logging)
        self._end_statement(ledger, waiting)
        return planned

    def execute(self, text: str, outcome: Outcome = NO_OUTCOME) -> Planned:
        """Run a statement.

        Args:
            text: The statement's text, as for `Session.execute`.
            outcome: The stated outcome, as for `Session.execute`.
        """
        foreseen = self._foreseen
        if foreseen is None or foreseen.text != text or foreseen.outcome != outcome:
            self.preview_known(text, outcome)
            foreseen = self._foreseen
        self._foreseen = None
        state = self.session.state
        number, needed = state.number + 1, foreseen is not None or self.needs_plans
        result = self.session.execute(text, outcome)
        if foreseen is not None and foreseen.planned.result is result:
            self._ledger = foreseen.ledger
            return foreseen.planned
        return self._planned(result, number, needed=needed)

    def disconnect(self) -> Planned:
        """End the session: the open transaction is rolled back, temporary tables are dropped."""
        state = self.session.state
        number, needed = state.number + 1, self.needs_plans
        result = self.session.disconnect()
        return self._planned(result, number, needed=needed)

    def snapshot(self) -> tuple[SessionState, _Ledger]:
        """Return the present state, for `restore`."""
        return self.session.snapshot(), self._ledger.copy()

    def restore(self, snapshot: tuple[SessionState, _Ledger]) -> None:
        """Return to the state of a snapshot, as often as it is wanted."""
        state, ledger = snapshot
        self.session.restore(state)
        self._ledger = ledger.copy()
        self._foreseen = None

    def lose(self, binlog: str, parts: Iterable[DraftPart]) -> None:
        """Know that a binlog did not get the parts planned for it: its temporary tables miss them.

        Args:
            binlog: Name of the binlog without them.
            parts: Parts of the group, or of a homeless group, that the binlog did not get.
        """
        for part in parts:
            if isinstance(part, TextOf):
                self._ledger.temporary.lose(binlog, part.number)
        self._foreseen = None
        self._forget_unmade()

    def _planned(
        self,
        result: StatementResult,
        number: int,
        *,
        needed: bool,
    ) -> Planned:
        """Return the plan of a statement that ran.

        Args:
            result: Effects of the statement on each log.
            number: Number of the statement, from 1.
            needed: Plans were needed before the statement.
        """
        state, ledger = self.session.state, self._ledger
        execution, last = state.execution, state.number
        is_followed = execution.number == number  # else it is known from others like it
        is_unlogged = not state.is_logging or (is_followed and execution.is_unlogged)
        image = execution.row_image if is_followed else self.session.row_image
        ledger.note_image(image, range(number, last + 1))
        if not (needed or is_unlogged or self.needs_plans):
            return Planned(result=result, number=number, last=last)
        waiting = {name: _numbers(state, name) for name in state.binlogs}
        drafting = _Drafting(result, range(number, last + 1), ledger, waiting)
        if is_followed:
            drafting.note(state)
        planned = drafting.run(is_unlogged=is_unlogged)
        if planned.has_texts:
            planned = _with_values(planned, _waiting_events(state, planned.numbers))
        self._end_statement(ledger, waiting)
        self._forget_unmade()
        return planned

    def _end_statement(self, ledger: _Ledger, waiting: Mapping[str, _Waiting]) -> None:
        """Remember the facts that must be known as long as something waits.

        Args:
            ledger: Ledger that keeps these facts.
            waiting: By log, the numbers of the statements that wait.
        """
        if any(waiting.values()):
            ledger.has_texts |= not self.session.logs_rows_alone
        else:
            ledger.end_transaction()

    def _forget_unmade(self) -> None:
        """Forget in each binlog the temporary tables whose creation it did not get."""
        unmade = self._ledger.temporary.unmade
        for name, table in unmade:
            if name in self.session.state.binlogs:
                self.session.state.binlogs[name].held_temporary.discard(table)
        unmade.clear()


def _with_values(planned: Planned, waiting: Iterable[Body]) -> Planned:
    """Return a plan with the events of values that stand before the statement's own texts.

    Args:
        planned: The plan of the statement.
        waiting: Events of the statement that wait for the end of the transaction.
    """
    if not planned.has_texts:
        return planned
    given = [
        *(parts for group in planned.groups for parts in group.binlogs.values()),
        *(parts for groups in planned.homeless.values() for parts in groups),
    ]
    bodies = [
        body
        for parts in given
        for part in parts
        if isinstance(part, TextOf) and part.number in planned.numbers
        for body in part.bodies
    ]
    found: list[Body] = []
    for body in (*bodies, *waiting):
        if isinstance(body, _VALUES) and body not in found:
            found.append(body)
    return planned._replace(values=tuple(found)) if found else planned


def _waiting_events(state: SessionState, numbers: range) -> Iterator[Body]:
    """Give the events of the last statements that wait in the binlogs' transaction caches."""
    for name, binlog in state.binlogs.items():
        marks = binlog.transaction_cache.marks if name != SOURCE_LOG else []
        at = bisect_left(marks, numbers[0], key=itemgetter(1))
        if at < len(marks):
            begin = marks[at - 1][0] if at else 0
            yield from binlog.transaction_cache.events[begin:]


_VALUES: Final = (IntvarEvent, RandEvent, LoggedVariable)


class _Foreseen(NamedTuple):
    """The last plan of a known statement that was foreseen.

    Attributes:
        text: The text of the statement.
        outcome: The stated outcome of the statement.
        planned: The plan of the statement.
        ledger: The ledger's state behind the statement.
    """

    text: str
    outcome: Outcome
    planned: Planned
    ledger: _Ledger


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Statements with events that wait in a transaction cache, which is not copied for that.

    Attributes:
        marks: Marks of the transaction cache, which tell the statements.
        last: Number of one more statement, behind them; 0: none.
        events: Events of the transaction cache.
        foreseen: Foreseen statement whose number is `last`.
        name: Name of the cache's binlog.
    """

    marks: Sequence[tuple[int, int]] = ()
    last: int = 0
    events: Sequence[Body] = ()
    foreseen: Foreseen | None = None
    name: str = ""

    def __bool__(self) -> bool:
        return bool(self.marks) or self.last > 0

    def __contains__(self, number: int) -> bool:
        if self.last and number == self.last:
            return True
        at = bisect_left(self.marks, number, key=itemgetter(1))
        return at < len(self.marks) and self.marks[at][1] == number

    def bodies(self, number: int) -> tuple[Body, ...]:
        """Return the waiting events of a statement; none for a statement that does not wait."""
        if self.foreseen is not None and self.last and number == self.last:
            return self.foreseen.effect.appends(self.name, self.foreseen.text)
        at = bisect_left(self.marks, number, key=itemgetter(1))
        if at >= len(self.marks) or self.marks[at][1] != number:
            return ()
        return tuple(self.events[self.marks[at - 1][0] if at else 0 : self.marks[at][0]])

    def has_from(self, number: int) -> bool:
        """True if a statement with this number or a greater one waits."""
        newest = self.last or (self.marks[-1][1] if self.marks else 0)
        return newest >= number


def _numbers(state: SessionState, name: str) -> _Waiting:
    """The statements of which something waits in a binlog's transaction cache."""
    cache = state.binlogs[name].transaction_cache
    return _Waiting(cache.marks, events=cache.events)


def _waiting(state: SessionState, name: str, number: int, foreseen: Foreseen) -> _Waiting:
    """Return the statements that wait in a binlog's cache behind a foreseen statement."""
    cache, effect = state.binlogs[name].transaction_cache, foreseen.effect
    marks = () if name in effect.clears else cache.marks
    last = number if name in effect.waits else 0
    return _Waiting(marks, last, cache.events, foreseen, name)


def _waits(state: SessionState) -> bool:
    """True if anything waits in a transaction cache."""
    for binlog in state.binlogs.values():  # noqa: SIM110 - a generator costs as much as all this
        if binlog.transaction_cache.events:
            return True
    return False


class _Slice(NamedTuple):
    """Position of a text among the events that a binlog is given."""

    begin: int
    end: int


class _Form(NamedTuple):
    """A group of a statement, in the form that all statements of its kind share.

    Attributes:
        section: The group's rows; None where it has none.
        is_standalone: The same as `is_standalone` of `GroupDraft`.
        binlogs: By name the positions of the group's texts; None stands for its rows.
        ends: The same as `ends` of `GroupDraft`.
    """

    section: Section | None
    is_standalone: bool
    binlogs: tuple[tuple[str, tuple[_Slice | None, ...]], ...]
    ends: Mapping[str, Body | None]


class _Forms(NamedTuple):
    """The parts that the plans of all statements of one kind share.

    Attributes:
        has_texts: The same as `has_texts` of `Planned`.
        values: The same as `values` of `Planned`.
    """

    groups: tuple[_Form, ...]
    has_texts: bool
    values: tuple[Body, ...]

    @classmethod
    def of(cls, planned: Planned) -> _Forms:
        """Return the shared parts of the plan of a statement for which nothing waits."""
        binlogs = planned.result.binlogs
        groups = tuple(
            _Form(
                group.sections[0][1] if group.sections else None,
                group.is_standalone,
                tuple(
                    (name, tuple(_slice(part, binlogs[name].bodies) for part in parts))
                    for name, parts in group.binlogs.items()
                ),
                group.ends,
            )
            for group in planned.groups
        )
        return cls(groups, planned.has_texts, planned.values)

    def planned(self, result: StatementResult, number: int) -> Planned:
        """Return the plan of a statement of this kind."""
        groups = []
        for section, is_standalone, binlogs, ends in self.groups:
            drafts: dict[str, tuple[DraftPart, ...]] = {}
            for name, slices in binlogs:
                bodies = result.binlogs[name].bodies
                drafts[name] = tuple(
                    [
                        RowsOf(number) if one is None else TextOf(number, bodies[one[0] : one[1]])
                        for one in slices
                    ]
                )
            groups.append(
                GroupDraft(
                    sections=() if section is None else ((number, section),),
                    is_standalone=is_standalone,
                    binlogs=drafts,
                    ends=ends,
                )
            )
        return Planned(
            result=result,
            number=number,
            last=number,
            groups=tuple(groups),
            has_texts=self.has_texts,
            values=self.values,
        )


def _slice(part: DraftPart, bodies: Sequence[Body]) -> _Slice | None:
    if isinstance(part, RowsOf):
        return None
    size = len(part.bodies)
    begin = next(at for at in range(len(bodies)) if bodies[at : at + size] == part.bodies)
    return _Slice(begin, begin + size)


def _as_known(foreseen: Foreseen, number: int) -> Planned:
    """Return the plan of a known statement, where nothing waits and binlogs get what they log."""
    result, effect = foreseen.result, foreseen.effect
    forms = effect.notes.get(_Forms)
    if forms is None:
        waiting = dict.fromkeys(result.binlogs, _Waiting())
        planned = _Drafting(result, range(number, number + 1), _Ledger(), waiting).run()
        planned = _with_values(planned, ())
        effect.notes[_Forms] = _Forms.of(planned)
        return planned
    assert isinstance(forms, _Forms), "nobody else keeps this"
    return forms.planned(result, number)


@dataclass(slots=True)
class _Ledger:
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

    def copy(self) -> _Ledger:
        """Copy the present state."""
        return _Ledger(
            removed={name: one.copy() for name, one in self.removed.items()},
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


# Content of the groups in the binlogs --------------------------------------------------------------


class _Drafting:
    """The drafting of one statement's groups.

    Args:
        result: Effects of the statement on each log.
        numbers: The statement's number, and those of the statements that it ran.
        ledger: The session's memory, which is changed.
        waiting: By log, the numbers of the statements that wait there after the statement.
    """

    def __init__(
        self,
        result: StatementResult,
        numbers: range,
        ledger: _Ledger,
        waiting: Mapping[str, _Waiting],
    ) -> None:
        self._result, self._numbers = result, numbers
        self._ledger, self._waiting = ledger, waiting
        self._names = [name for name in result.binlogs if name != SOURCE_LOG]
        self._all_names = self._names
        self._groups: list[SourceGroup] = []
        self._places: dict[int, list[int]] = {}
        self._parts: dict[tuple[str, int], list[DraftPart]] = {}
        self._matched: set[tuple[str, int]] = set()
        self._ends: dict[tuple[str, int], list[Body | None]] = {}
        self._homeless: dict[str, list[tuple[tuple[DraftPart, ...], Body | None]]] = {}

    def note(self, state: SessionState) -> None:
        """Note the doubts about a statement that was followed, and its temporary tables.

        Args:
            state: The session's state behind the statement.
        """
        execution, result, ledger = state.execution, self._result, self._ledger
        if execution.temporary or state.temporary.names:
            ledger.temporary.note(execution.temporary, state.temporary.names)
        doubtful = set(execution.failed)
        error = result.error
        # With a stated error its text says that a replica is to fail as it did.
        is_alone = len(self._numbers) == 1
        is_certain = error is None or (error.is_stated and not error.on_some_ways and is_alone)
        is_certain &= result.ways == 1
        # MySQL leaves rows open there, and those of the next statement join them.
        has_locks = state.locked_tables is not None and not state.server.is_mariadb
        if not is_certain or result.depends_on or (has_locks and state.is_in_transaction):
            doubtful.update(self._numbers)
        if doubtful:
            for name in self._names:
                ledger.remove(name, doubtful)

    def run(self, *, is_unlogged: bool = False) -> Planned:
        """Put the groups together.

        Args:
            is_unlogged: The binlogs were not to have some of it (sql_log_bin=0).
        """
        result, numbers = self._result, self._numbers
        number, last = numbers[0], numbers[-1]
        if is_unlogged:
            self._ledger.unlogged.update(numbers)
        if result.unanalysed is not None:
            self._give_up()
            return Planned(result=result, number=number, last=last)
        if not any([told.bodies for told in result.binlogs.values()]):  # noqa: C419 - it is faster
            has_texts = self._has_texts((), {})
            return Planned(result=result, number=number, last=last, has_texts=has_texts)
        self._groups = [
            SourceGroup.of(one) for one in groups_of(result.binlogs[SOURCE_LOG], number)
        ]
        for place, source in enumerate(self._groups):
            for one in dict(source.group.runs):
                self._places.setdefault(one, []).append(place)
        at_source = result.binlogs[SOURCE_LOG]
        # A binlog with the very same events as the source needs no fitting.
        self._names = [name for name in self._names if result.binlogs[name] is not at_source]
        for name in self._names:
            self._fit(name, groups_of(result.binlogs[name], number))
        drafts = tuple(self._draft(place) for place in range(len(self._groups)))
        homeless = {
            name: tuple([parts for parts, _ in groups]) for name, groups in self._homeless.items()
        }
        return Planned(
            result=result,
            number=number,
            last=last,
            groups=drafts,
            homeless=homeless,
            homeless_ends={
                name: tuple([end for _, end in groups]) for name, groups in self._homeless.items()
            },
            has_texts=self._has_texts(drafts, homeless),
        )

    def _has_texts(
        self,
        drafts: Iterable[GroupDraft],
        homeless: Mapping[str, tuple[tuple[DraftPart, ...], ...]],
    ) -> bool:
        """True if something of the statement is, or will be, in a binlog as text."""
        given = [
            *(parts for draft in drafts for parts in draft.binlogs.values()),
            *(parts for groups in homeless.values() for parts in groups),
        ]
        own = self._numbers
        if any(isinstance(part, TextOf) and part.number in own for one in given for part in one):
            return True
        return any(
            self._result.binlogs[name].logged_as is not LoggingFormat.ROW
            and self._waiting[name].has_from(own[0])
            for name in self._names
        )

    def _give_up(self) -> None:
        """Give up the texts of a statement whose effects are not known: all that waits goes as rows."""
        self._ledger.removed_until = self._numbers[-1]
        for name in self._names:
            runs = self._result.binlogs[name].runs
            for number in {*self._numbers, *(number for _, _, number in runs)}:
                self._ledger.temporary.drop(name, number)

    # A binlog's groups -----------------------------------------------------------------------------

    def _fit(self, name: str, groups: Sequence[LogGroup]) -> None:
        """Find the parts of the source's groups that a binlog has as text.

        Groups that the source has, too, come first and in its order, as the binlog gets them.

        Args:
            name: Name of the binlog in question.
            groups: Groups that the binlog's own log gets.
        """
        written: set[int] = set()
        several: set[int] = set()
        for group in groups:
            own = {number for number, _ in group.runs}
            several |= written & own
            written |= own
        homeless: list[LogGroup] = []
        fitting: list[tuple[int, LogGroup]] = []
        for group in groups:
            place = self._place(name, group, groups)
            if place is None:
                homeless.append(group)
            else:
                fitting.append((place, group))
        for place, group in sorted(fitting, key=itemgetter(0)):
            if group.end is End.NONE:
                self._fit_alone(name, place, group)
            else:
                self._fit_transaction(name, place, group, several)
        for group in homeless:
            self._keep_temporary(name, group, several if group.end is not End.NONE else ())

    def _place(self, name: str, group: LogGroup, groups: Sequence[LogGroup]) -> int | None:
        """Return the source's group to which a binlog's group belongs; None if there is not one alone."""
        if group.end is not End.NONE:
            places = {
                place
                for number, _ in group.runs
                for place in self._places.get(number, ())
                if number in self._groups[place].sections
            }
            return places.pop() if len(places) == 1 else None
        number = group.number
        places_alone = [
            place for place in self._places.get(number, ()) if (name, place) not in self._matched
        ]
        for place in places_alone:
            if self._groups[place].group == group:
                self._matched.add((name, place))
                return place
        taken = [one.group for one in self._groups]
        left = [
            one
            for one in groups
            if one.end is End.NONE and one.number == number and one not in taken
        ]
        return places_alone[0] if len(places_alone) == len(left) == 1 else None

    def _can_be_text(self, name: str, part: TextOf, several: Iterable[int] = ()) -> bool:
        """True if a statement whose text a binlog is given now can be there as text.

        Args:
            name: Name of the binlog in question.
            part: The statement with its text.
            several: Numbers of statements that the binlog is not given as a whole now.
        """
        number = part.number
        is_whole = begins(part.bodies, DROP_TEMPORARY) or (
            number not in several
            and number not in self._waiting[name]
            and number not in self._waiting[SOURCE_LOG]
            and len(self._places.get(number, ())) <= 1
            and not self._ledger.is_removed(name, number)
        )
        return is_whole and self._ledger.temporary.can_be_used(name, number)

    def _fit_transaction(self, name: str, place: int, group: LogGroup, several: set[int]) -> None:
        """Fit a transaction of a binlog into a group of the source."""
        source = self._groups[place]
        ends_alike = source.is_split and source.group.end is group.end
        self._ends.setdefault((name, place), []).append(group.closing)
        parts = self._parts.setdefault((name, place), [])
        given = {part.number for part in parts}
        temporary = self._ledger.temporary
        for number, bodies in group.runs:
            has_rows, part = number in source.sections, self._text(number, bodies)
            is_filled = source.sections.get(number) != ()
            if are_rows(bodies) or (not is_filled and (number, bodies) in source.group.runs):
                if has_rows and number not in given:
                    parts.append(RowsOf(number))
            elif self._can_be_text(name, part, several) and (
                ends_alike or (not has_rows and temporary.survive_rollback(number))
            ):
                self._give(name, place, part)
            else:
                temporary.drop(name, number)
                if has_rows and number not in given:
                    parts.append(RowsOf(number))
            given.add(number)

    def _fit_alone(self, name: str, place: int, group: LogGroup) -> None:
        """Fit a statement that stands alone in a binlog into a group of the source."""
        number = group.number
        part = self._text(number, group.runs[0][1])
        if (name, place) in self._matched and self._groups[place].group == group:
            self._note_given(name, part)
        elif self._can_be_text(name, part):
            self._give(name, place, part)
            self._ends.setdefault((name, place), []).append(None)
        else:
            self._ledger.temporary.drop(name, number)

    def _text(self, number: int, bodies: tuple[Body, ...]) -> TextOf:
        return TextOf(number, bodies, self._ledger.temporary.are_used(number))

    def _give(self, name: str, place: int, part: TextOf) -> None:
        """Put a statement into a binlog as text."""
        self._parts.setdefault((name, place), []).append(part)
        self._note_given(name, part)

    def _note_given(self, name: str, part: TextOf) -> None:
        is_drop = begins(part.bodies, DROP_TEMPORARY)
        self._ledger.temporary.give(name, part.number, is_drop=is_drop)

    def _keep_temporary(self, name: str, group: LogGroup, several: Iterable[int]) -> None:
        """Keep the changes of temporary tables in a group that the source does not have."""
        temporary = self._ledger.temporary
        kept: list[DraftPart] = []
        has_change = False
        for number, bodies in group.runs:
            if are_rows(bodies):
                continue
            part = self._text(number, bodies)
            if _is_savepoint(part):
                kept.append(part)
            elif (
                temporary.are_changed(number)
                and (number not in self._places or begins(bodies, DROP_TEMPORARY))
                and self._can_be_text(name, part, several)
            ):
                kept.append(part)
                self._note_given(name, part)
                has_change = True
            else:
                temporary.drop(name, number)
        if has_change:
            self._homeless.setdefault(name, []).append((tuple(kept), group.closing))

    def _at_once(self, name: str, place: int, numbers: Sequence[int]) -> TextOf | None:
        """The text of a statement that waits in a binlog, and whose rows the source writes at once.

        Left for the end of the transaction it would stand behind what others did meanwhile. Only if
        that alone makes it unsafe: so it reads nothing that its transaction has changed.
        """
        source = self._groups[place].group
        if len(numbers) != 1 or source.end is not End.COMMIT:
            return None
        (number,) = numbers
        told, waiting = self._result.binlogs[name], self._waiting[name]
        if not (
            number in self._numbers and number in waiting and _UNSAFE_LATER.issuperset(told.unsafe)
        ):
            return None
        bodies = waiting.bodies(number)
        part = self._text(number, bodies)
        if (
            not bodies
            or are_rows(bodies)
            or number in self._waiting[SOURCE_LOG]
            or len(self._places.get(number, ())) > 1
            or self._ledger.is_removed(name, number)
            or not self._ledger.temporary.can_be_used(name, number)
        ):
            return None
        self._note_given(name, part)
        return part

    # A group of the source -------------------------------------------------------------------------

    def _draft(self, place: int) -> GroupDraft:
        """Return a group of the source with its content in all binlogs."""
        source = self._groups[place]
        binlogs: dict[str, tuple[DraftPart, ...]] = {}
        for name in self._names:
            parts = self._of_binlog(name, place, source)
            if parts is not None:
                binlogs[name] = parts
        image = self._image(source)
        if image is not RowImage.FULL:
            rows = tuple(map(RowsOf, source.sections))
            binlogs = {name: binlogs.get(name, rows) for name in self._all_names}
        return GroupDraft(
            sections=tuple(source.sections.items()),
            is_standalone=source.is_standalone,
            binlogs=binlogs,
            ends={
                name: end
                for name, parts in binlogs.items()
                for end in self._own_end(name, place, parts)
            },
            image=image,
        )

    def _image(self, source: SourceGroup) -> RowImage:
        """The row image of a group of the source."""
        images = self._ledger.images
        if not (images and source.sections):
            return RowImage.FULL
        return larger(*(images.get(number, RowImage.FULL) for number in source.sections))

    def _own_end(self, name: str, place: int, parts: Sequence[DraftPart]) -> Iterator[Body | None]:
        """The end that a binlog's group has of its own."""
        ends = self._ends.get((name, place), ())
        is_text = bool(parts) and all(isinstance(part, TextOf) for part in parts)
        if is_text and len(ends) == 1 and ends[0] != self._groups[place].group.closing:
            yield ends[0]

    def _of_binlog(
        self, name: str, place: int, source: SourceGroup
    ) -> tuple[DraftPart, ...] | None:
        """Return a group's content in a binlog; None: the same as at the source."""
        unlogged = self._ledger.unlogged
        numbers = {number for number, _ in source.group.runs}
        parts = self._parts.get((name, place), [])
        if not source.is_undone:
            # Some rows stand in the binlog's own log at another time, or no longer.
            logged = [one for one in source.sections if one not in unlogged]
            at_once = self._at_once(name, place, logged) if not parts else None
            parts = _with_rows(parts, logged) if at_once is None else [at_once]
        waiting = self._waiting[name]
        self._ledger.remove(name, [number for number in source.sections if number in waiting])
        if any(isinstance(part, TextOf) and not _is_savepoint(part) for part in parts):
            return tuple(parts)
        is_kept_from = not numbers.isdisjoint(unlogged) and (name, place) not in self._matched
        if is_kept_from or (source.ends_prepared and (name, place) not in self._matched):
            return tuple(parts)
        return None


def _is_savepoint(part: TextOf) -> bool:
    """True if a part is a text of a savepoint, which the source has in its group, too."""
    return begins(part.bodies, SAVEPOINTS)


def _with_rows(parts: list[DraftPart], numbers: Sequence[int]) -> list[DraftPart]:
    """Add the rows of statements that are not among the parts, in their places.

    Args:
        parts: Parts of a binlog's group.
        numbers: Statement numbers of the sections of the source's group, in order.
    """
    given = {part.number for part in parts}
    lacking = [number for number in numbers if number not in given]
    if not lacking:
        return parts
    order = {number: at for at, number in enumerate(numbers)}
    found = parts.copy()
    for number in lacking:
        later = (
            at
            for at, part in enumerate(found)
            if part.number in order and order[part.number] > order[number]
        )
        found.insert(next(later, len(found)), RowsOf(number))
    return found
