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
from binlane.statements.session.group_fitting import GroupFitting
from binlane.statements.session.group_plan import Part, TextPart
from binlane.statements.session.log_events import SOURCE_LOG, Body, ends_rows
from binlane.statements.session.plan_ledger import Ledger, Waiting
from binlane.statements.session.report import StatementPlan, StatementResult
from binlane.statements.session.session import Session
from binlane.statements.session.state import SessionState
from binlane.statements.session.statement_template import (
    ExpectedResult,
    PlanTemplate,
    StatementTemplate,
)
from binlane.statements.sql.servers import RowImage


class PlanningSession:
    """A session that plans the content of its source's groups in each binlog.

    Args:
        session: Session that logs for its source, too (`logs_source`).
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self._ledger = Ledger()
        self._preview: _Preview | None = None

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
        state, ledger = self.snapshot()
        try:
            return self.execute(text, outcome)
        finally:
            self.session.take_back(state)
            self._ledger, self._preview = ledger, None

    def preview_known(self, text: str, outcome: Outcome = NO_OUTCOME) -> StatementPlan | None:
        """Return the plan of a statement, if it is known from others like it; else None."""
        expected = self.session.expect(text, outcome)
        if expected is None:
            self._preview = None
            return None
        state, ledger, template = self.session.state, self._ledger, expected.template
        number = state.number + 1
        is_plain = state.is_logging and not self.has_images
        if not self.needs_plans:
            planned = StatementPlan(result=expected.result, number=number, last=number)
        elif is_plain and ledger.is_clean and not (template.waits or _waits(state)):
            planned = _as_known(expected, number)
        elif is_plain and ledger.has_texts and template.is_quiet:
            planned = StatementPlan(
                result=expected.result,
                number=number,
                last=number,
                has_texts=template.waits_as_text,
                values=template.values if template.waits_as_text else (),
            )
        else:
            ledger = ledger.copy()
            ledger.note_image(self.session.row_image, range(number, number + 1))
            planned = _with_values(self._fitted(expected, ledger, number), template.values)
        self._preview = _Preview(text, outcome, planned, ledger)
        return planned

    def plain(self, text: str) -> StatementTemplate | None:
        """Return the template of a statement of which little is left behind.

        That is nothing but its events, or those wait for the end of a transaction; or it is that end.

        Args:
            text: The statement's text, as for `Session.execute`; with anything around it is not known.

        Returns:
            None if the template is not known.
        """
        ledger, template = self._ledger, self.session.recurring.plain(text)
        if template is None or (template.is_silent and template.transaction is None):
            return template
        if ledger.removed or ledger.unlogged or ledger.images:
            return None
        is_of_texts = template.is_waiting or template.is_end
        return None if ledger.has_texts and not is_of_texts else template

    def waits_for(self, numbers: Sequence[int]) -> bool:
        """True if nothing waits but some statements, of which each waits in the source's log.

        Args:
            numbers: Numbers of the statements, in order.
        """
        known = frozenset(numbers)
        for name, binlog in self.session.state.binlogs.items():
            waiting = [number for _, number in binlog.transaction_cache.marks]
            is_known = known.issuperset(waiting)
            if not is_known or (name == SOURCE_LOG and len(waiting) != len(numbers)):
                return False
        return True

    def end_with_rows(self, numbers: Sequence[int]) -> bool:
        """True if each of some statements that wait ends its own rows in the source's log.

        Args:
            numbers: Numbers of the statements that wait.
        """
        cache = self.session.state.binlogs[SOURCE_LOG].transaction_cache
        ends = {number: end for end, number in cache.marks}
        return all(
            number in ends and ends_rows(cache.events[ends[number] - 1]) for number in numbers
        )

    def repeat(self, template: StatementTemplate, text: str) -> None:
        """Run a statement that `plain` told of; it has the next number."""
        self._preview = None
        self.session.recurring.repeat(template, text)
        if template.is_waiting:
            self._ledger.has_texts |= not self.session.logs_rows_alone
        elif template.is_end and not self.waits:
            self._ledger.end_transaction()

    def passed(self, number: int) -> None:
        """Take in that whole transactions have run behind which the session is where it is.

        Args:
            number: Number of the last one's last statement.
        """
        self._preview = None
        self.session.recurring.passed(number)

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
        self._preview = None

    def _fitted(self, expected: ExpectedResult, ledger: Ledger, number: int) -> StatementPlan:
        """Return the plan of a known statement, in a transaction or kept from the binlogs.

        Args:
            expected: The effects that the statement will have.
            ledger: Ledger that is changed to its state behind the statement.
            number: Number of the statement, from 1.
        """
        state, result = self.session.state, expected.result
        waiting = {name: Waiting.behind(state, name, number, expected) for name in result.binlogs}
        fitting = GroupFitting(result, range(number, number + 1), ledger, waiting)
        planned = fitting.run(is_unlogged=not state.is_logging)
        self._end_statement(ledger, waiting)
        return planned

    def execute(self, text: str, outcome: Outcome = NO_OUTCOME) -> StatementPlan:
        """Run a statement.

        Args:
            text: The statement's text, as for `Session.execute`.
            outcome: The stated outcome, as for `Session.execute`.
        """
        preview = self._preview
        if preview is None or preview.text != text or preview.outcome != outcome:
            self.preview_known(text, outcome)
            preview = self._preview
        self._preview = None
        state = self.session.state
        number, needed = state.number + 1, preview is not None or self.needs_plans
        is_alone = self._ledger.is_clean and not (self._ledger.images or _waits(state))
        result = self.session.execute(text, outcome)
        if preview is not None and preview.planned.result is result:
            self._ledger = preview.ledger
            return preview.planned
        planned = self._planned(result, number, needed=needed)
        template, execution = self.session.recurring.latest, state.execution
        is_plain = is_alone and needed and state.is_logging and not self.has_images
        if template is not None and is_plain and not (template.waits or execution.failed):
            template.plan = PlanTemplate.of(planned)
        return planned

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
        self._preview = None

    def lose(self, binlog: str, parts: Iterable[Part]) -> None:
        """Know that a binlog did not get the parts planned for it: its temporary tables miss them.

        Args:
            binlog: Name of the binlog without them.
            parts: Parts of a group that the binlog did not get.
        """
        for part in parts:
            if isinstance(part, TextPart):
                self._ledger.temporary.lose(binlog, part.number)
        self._preview = None
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
        waiting = {name: Waiting.present(state, name) for name in state.binlogs}
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


class _Preview(NamedTuple):
    """The last plan of a known statement.

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


def _as_known(expected: ExpectedResult, number: int) -> StatementPlan:
    """Return the plan of a known statement, where nothing waits and binlogs get what they log."""
    result, template = expected.result, expected.template
    if template.plan is None:
        waiting = dict.fromkeys(result.binlogs, Waiting())
        fitting = GroupFitting(result, range(number, number + 1), Ledger(), waiting)
        planned = _with_values(fitting.run(), ())
        template.plan = PlanTemplate.of(planned)
        return planned
    return template.plan.planned(result, number)
