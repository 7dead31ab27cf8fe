"""A session that plans: the content of the source's event groups in each binlog, for the groups that it makes.

`group_fitting` makes the plans. Here a session runs beside its ledger of what plans must know of statements
before, and plans of statements that come again are made of the first one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

from binlane.log.codec.variables import IntvarEvent, RandEvent
from binlane.statements.policy.refusals import NO_OUTCOME, Outcome
from binlane.statements.programs.host import LoggedVariable
from binlane.statements.session.group_fitting import GroupFitting, StatementPlan
from binlane.statements.session.group_plan import GroupPlan, Part, RowsPart, TextPart
from binlane.statements.session.log_events import SOURCE_LOG, Body
from binlane.statements.session.plan_ledger import Ledger, Waiting
from binlane.statements.session.recurring import Foreseen, KnownEffect
from binlane.statements.session.report import StatementResult
from binlane.statements.session.session import Session
from binlane.statements.session.state import SessionState
from binlane.statements.sql.servers import RowImage


class PlanningSession:
    """A session that plans the content of its source's groups in each binlog.

    Args:
        session: Session that logs for its source, too (`logs_source`).
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self._ledger = Ledger()
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

    def preview(self, text: str, outcome: Outcome = NO_OUTCOME) -> StatementPlan:
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

    def preview_known(self, text: str, outcome: Outcome = NO_OUTCOME) -> StatementPlan | None:
        """Return the plan of a statement, if it is known from others like it; else None."""
        foreseen = self.session.foresee(text, outcome)
        if foreseen is None:
            self._foreseen = None
            return None
        state, ledger, effect = self.session.state, self._ledger, foreseen.effect
        number = state.number + 1
        if not self.needs_plans:
            planned = StatementPlan(result=foreseen.result, number=number, last=number)
        elif self.has_images:
            ledger = ledger.copy()
            ledger.note_image(self.session.row_image, range(number, number + 1))
            planned = self._draft_known(foreseen, ledger, number)
            planned = _with_values(planned, effect.values)
        elif ledger.is_clean and state.is_logging and not (effect.waits or _waits(state)):
            planned = _as_known(foreseen, number)
        elif ledger.has_texts and state.is_logging and effect.is_quiet:
            planned = StatementPlan(
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

    def _draft_known(self, foreseen: Foreseen, ledger: Ledger, number: int) -> StatementPlan:
        """Return the plan of a foreseen statement, in a transaction or kept from the binlogs.

        Args:
            foreseen: The foreseen effects of the statement on the session.
            ledger: Ledger that is changed to its state behind the statement.
            number: Number of the statement, from 1.
        """
        state = self.session.state
        waiting = {
            name: Waiting.behind(state, name, number, foreseen) for name in foreseen.result.binlogs
        }
        fitting = GroupFitting(foreseen.result, range(number, number + 1), ledger, waiting)
        planned = fitting.run(is_unlogged=not state.is_logging)
        self._end_statement(ledger, waiting)
        return planned

    def execute(self, text: str, outcome: Outcome = NO_OUTCOME) -> StatementPlan:
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

    def disconnect(self) -> StatementPlan:
        """End the session: the open transaction is rolled back, temporary tables are dropped."""
        state = self.session.state
        number, needed = state.number + 1, self.needs_plans
        result = self.session.disconnect()
        return self._planned(result, number, needed=needed)

    def snapshot(self) -> tuple[SessionState, Ledger]:
        """Return the present state, for `restore`."""
        return self.session.snapshot(), self._ledger.copy()

    def restore(self, snapshot: tuple[SessionState, Ledger]) -> None:
        """Return to the state of a snapshot, as often as it is wanted."""
        state, ledger = snapshot
        self.session.restore(state)
        self._ledger = ledger.copy()
        self._foreseen = None

    def lose(self, binlog: str, parts: Iterable[Part]) -> None:
        """Know that a binlog did not get the parts planned for it: its temporary tables miss them.

        Args:
            binlog: Name of the binlog without them.
            parts: Parts of a group that the binlog did not get.
        """
        for part in parts:
            if isinstance(part, TextPart):
                self._ledger.temporary.lose(binlog, part.number)
        self._foreseen = None
        self._forget_unmade()

    def _planned(
        self,
        result: StatementResult,
        number: int,
        *,
        needed: bool,
    ) -> StatementPlan:
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
            return StatementPlan(result=result, number=number, last=last)
        waiting = {name: Waiting.of(state, name) for name in state.binlogs}
        fitting = GroupFitting(result, range(number, last + 1), ledger, waiting)
        if is_followed:
            fitting.note(state)
        planned = fitting.run(is_unlogged=is_unlogged)
        if planned.has_texts:
            planned = _with_values(planned, _waiting_events(state, planned.numbers))
        self._end_statement(ledger, waiting)
        self._forget_unmade()
        return planned

    def _end_statement(self, ledger: Ledger, waiting: Mapping[str, Waiting]) -> None:
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


def _with_values(planned: StatementPlan, waiting: Iterable[Body]) -> StatementPlan:
    """Return a plan with the events of values that stand before the statement's own texts.

    Args:
        planned: The plan of the statement.
        waiting: Events of the statement that wait for the end of the transaction.
    """
    if not planned.has_texts:
        return planned
    bodies = [body for part in planned.own_texts() for body in part.bodies]
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
    planned: StatementPlan
    ledger: Ledger


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
        plan: The plan of the first statement's group.
        binlogs: By name the positions of the group's texts; None stands for its rows.
    """

    plan: GroupPlan
    binlogs: tuple[tuple[str, tuple[_Slice | None, ...]], ...]


class _Forms(NamedTuple):
    """The parts that the plans of all statements of one kind share.

    Attributes:
        plan: The plan of the first statement.
    """

    plan: StatementPlan
    groups: tuple[_Form, ...]

    @classmethod
    def of(cls, plan: StatementPlan) -> _Forms:
        """Return the shared parts of the plan of a statement for which nothing waits."""
        binlogs = plan.result.binlogs
        return cls(
            plan,
            tuple(
                _Form(
                    group,
                    tuple(
                        (name, tuple(_slice(part, binlogs[name].bodies) for part in parts))
                        for name, parts in group.binlogs.items()
                    ),
                )
                for group in plan.groups
            ),
        )

    def planned(self, result: StatementResult, number: int) -> StatementPlan:
        """Return the plan of a statement of this kind."""
        groups = []
        for plan, binlogs in self.groups:
            numbers = (number,) if plan.sections else ()
            section = 0 if plan.sections else None
            drafts: dict[str, tuple[Part, ...]] = {}
            for name, slices in binlogs:
                bodies = result.binlogs[name].bodies
                drafts[name] = tuple(
                    [
                        RowsPart(0, number)
                        if one is None
                        else TextPart(
                            section=section, number=number, bodies=bodies[one[0] : one[1]]
                        )
                        for one in slices
                    ]
                )
            groups.append(
                GroupPlan(
                    sections=plan.sections,
                    numbers=numbers,
                    binlogs=drafts,
                    ends={
                        name: None if end is None else end._replace(number=number)
                        for name, end in plan.ends.items()
                    },
                )
            )
        return self.plan._replace(result=result, number=number, last=number, groups=tuple(groups))


def _slice(part: Part, bodies: Sequence[Body]) -> _Slice | None:
    if isinstance(part, RowsPart):
        return None
    size = len(part.bodies)
    begin = next(at for at in range(len(bodies)) if bodies[at : at + size] == part.bodies)
    return _Slice(begin, begin + size)


def _as_known(foreseen: Foreseen, number: int) -> StatementPlan:
    """Return the plan of a known statement, where nothing waits and binlogs get what they log."""
    result, effect = foreseen.result, foreseen.effect
    forms = effect.notes.get(_Forms)
    if forms is None:
        waiting = dict.fromkeys(result.binlogs, Waiting())
        planned = GroupFitting(result, range(number, number + 1), Ledger(), waiting).run()
        planned = _with_values(planned, ())
        effect.notes[_Forms] = _Forms.of(planned)
        return planned
    assert isinstance(forms, _Forms), "nobody else keeps this"
    return forms.planned(result, number)
