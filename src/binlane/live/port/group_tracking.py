"""Tracking of a session's groups in the source's log, and of the effect of each on each binlog.

The model's account of a statement's groups is planned and told to `Attributions` before the statement is
sent. Behind it the groups are named: by the replies, or by the source when it is asked. For a change of which
the source logs nothing, a mark is made there.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from typing import Final, Protocol

from binlane.errors import NotLoggableError, StatementError
from binlane.live.gateway.handler import HandlerSession
from binlane.live.gateway.judge import StatementReply
from binlane.live.port.binlog_variables import TRACKING, Rewritten, telling_gtids, tells_gtids
from binlane.live.port.context_use import ContextUse
from binlane.live.port.group_planning import GroupPlanning
from binlane.live.port.judged_objects import JudgedObjects
from binlane.live.port.port_parts import PortParts
from binlane.live.port.statement_context import StatementContext
from binlane.log.codec.format import flavor_of
from binlane.log.codec.types import Flavor
from binlane.positions import parse_position
from binlane.statements.policy.engines import traits
from binlane.statements.programs.runner import is_program
from binlane.statements.session.group_plan import GroupPlan
from binlane.statements.session.planning_session import PlanningSession
from binlane.statements.session.report import StatementPlan, StatementResult
from binlane.statements.session.session import Session
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.statement_kinds import QUIET_KINDS, WRITING_KINDS, StatementKind

logger = logging.getLogger(__name__)

_AND_ITS_OWN: Final = 2
_SYNTAX: Final = 1064
_TRACKED: Final[Mapping[Flavor, str]] = {
    Flavor.MARIADB: f"SELECT @@SESSION.{TRACKING[Flavor.MARIADB]}, @@GLOBAL.gtid_binlog_pos,"
    " @@last_gtid LIMIT 1",
    Flavor.MYSQL: f"SELECT @@SESSION.{TRACKING[Flavor.MYSQL]}, @@GLOBAL.gtid_executed LIMIT 1",
}
"""Questions for what a session is told, and for the groups that there are."""
_ENDING_ALL: Final = frozenset((1205, 1213))
"""Errors by which a statement may end its transaction."""


@dataclass(slots=True, kw_only=True)
class UnderWay:
    """A statement that the source runs.

    Attributes:
        facts: Parsed facts of the statement's text.
        expected: The model's preview of the statement.
        context: Context of the statement's text; None where nothing of it is planned.
        use: Use that the statement makes of its context; None where nobody looked.
        catalog_version: Version of the objects with which the statement was judged.
        is_intended: True if the statement's plans were given to `Attributions`.
        plans: Plans of the statement's groups, as given to `Attributions`.
        rewritten: Form that the source runs in the statement's place; None for the statement itself.
        sent_s: Time by `time.monotonic`, a moment before the statement was sent; 0 where that is not known.
    """

    text: str
    facts: StatementFacts
    expected: StatementPlan
    context: StatementContext | None = None
    use: ContextUse | None = None
    catalog_version: object = None
    is_intended: bool = False
    plans: Sequence[GroupPlan] = ()
    rewritten: Rewritten | None = None
    sent_s: float = 0.0

    @property
    def number(self) -> int:
        """Number of the statement in its session."""
        return self.expected.number


class TrackedStatement(Protocol):
    """A statement that the source runs, as far as its groups are told of."""

    @property
    def number(self) -> int:
        """Number of the statement in its session."""
        ...

    @property
    def is_intended(self) -> bool:
        """True if the statement's plans were given to `Attributions`."""
        ...


@dataclass(frozen=True, slots=True)
class _Report:
    """A message to `Attributions` on a statement's groups.

    Attributes:
        number: Number of the statement in its session.
        plans: Plans of the groups, if the statement made them; empty where they are not known, None where
            they are those that were intended.
        is_intended: True if the plans were told before the statement was sent.
        last: GTIDs of the statement's last group, from its replies; None for nothing.
        is_untold: True if the statement may have made groups of which its replies tell nothing: the source
            has to be asked.
    """

    number: int
    plans: Sequence[GroupPlan] | None
    _: KW_ONLY
    is_intended: bool
    last: str | None = None
    is_untold: bool = False


class GroupTracking:
    """Plans one session's groups, and tells `Attributions` which they are.

    Attributes:
        is_on: True if `Attributions` is told of the session's groups.
        thread_id: Thread of the session at the source.
        planning: The plans of the transaction.
        spoils: True if nothing of the transaction is planned any more: its groups go as rows. So it is, too,
            while the model does not know the session's state, and with temporary tables unknown to it.
        client: Client's session on the source.
        client_value: Value of the variable of `TRACKING` for the client, where it is another one at the
            source; None elsewhere.
        hides_gtids: True if the source tells GTIDs that the client has not asked for.
        last_told: GTIDs that the source told last.

    Args:
        client: Client's session on the source.
        shared: State that the sessions of the port share.
        hides_tables: True if the session may have temporary tables that the model does not know.
    """

    def __init__(
        self, client: HandlerSession, shared: PortParts, *, hides_tables: bool = False
    ) -> None:
        self.is_on = False
        self.thread_id = client.thread_id
        self._flavor = flavor_of(client.server_version)
        self.planning = GroupPlanning(self._flavor)
        self.spoils = False
        self.client_value: str | None = None
        self.hides_gtids = False
        self.client = client
        self._shared = shared
        self._is_out_of_step = False
        self._hides_tables = hides_tables
        self.last_told = ""
        # Time at which the last statement was sent that the source has answered.
        self._there_s = 0.0
        # The number of a command under way that was not read; 0 for none.
        self._unread = 0
        self._unsettled: list[_Report] = []
        self._judged: list[JudgedObjects] = []
        # Plans of groups that are to be marked, as the model has them, and completed.
        self._marks: list[tuple[GroupPlan, GroupPlan]] = []

    async def begin(self) -> None:
        """Have the source tell the session's groups by their GTIDs from now on.

        Raises:
            StatementError: If it refuses.
            PeerError: If it goes away.
        """
        shared = self._shared
        await shared.marker.open()
        there_s = time.monotonic()
        # Between the question and the SET the session makes no group.
        row = (await self.client.query_source(_TRACKED[self._flavor])).texts()[0]
        if self.client_value is None:
            await self.client.run_at_source(telling_gtids(self._flavor))
            self.note(row[0] or "")
        logged = row[1] or ""
        if self._flavor is Flavor.MARIADB:
            self.last_told = row[2] or ""
        self._there_s, self.is_on = there_s, True
        position = parse_position(logged, self._flavor.value)
        shared.attributions.taken(self.thread_id, position)

    def end(self, *, is_under_way: bool) -> None:
        """Say that nothing more is told of the session's groups.

        Args:
            is_under_way: The source runs a statement of which no reply comes.
        """
        if self.is_on:
            attributions = self._shared.attributions
            if is_under_way:
                attributions.lost(self.thread_id)
            attributions.given(self.thread_id)
        self.is_on = False
        self.note(None)

    def begin_anew(self, shared: PortParts, *, is_in_transaction: bool) -> None:
        """Plan groups again: the model knows the session's state.

        Args:
            shared: State that sessions share, as it is now.
            is_in_transaction: True if a transaction is open, whose changes may not be known.
        """
        if not self.is_on:
            self._shared = shared
        self._is_out_of_step = False
        self.planning.writes.clear()
        self.planning.judged.clear()
        self.spoils = is_in_transaction or self._hides_tables

    def lose_step(self, *, hides_tables: bool) -> None:
        """Plan nothing until the model knows the session's state again.

        Args:
            hides_tables: True if the session may have temporary tables that the model does not know.
        """
        self._is_out_of_step = self.spoils = True
        self._hides_tables |= hides_tables

    def end_transaction(self) -> None:
        """Forget the contexts of a transaction that is over."""
        self.planning.clear()
        self.spoils = self._is_out_of_step or self._hides_tables

    def note(self, client_value: str | None) -> None:
        """Note the client's value of the variable of `TRACKING`; None for the source's value."""
        self.client_value = client_value
        self.hides_gtids = client_value is not None and not tells_gtids(client_value)

    # Before a statement runs.

    def intend(self, one: UnderWay, model: PlanningSession) -> None:
        """Tell of the groups that a statement will make."""
        if one.expected.groups and self.is_on:
            one.plans, expected = self._plans(one.expected, model), one.expected
            self._shared.attributions.intend(
                *(self.thread_id, expected.number, one.plans),
                is_split=_is_split(expected),
                is_outdated=self.planning.is_outdated,
            )
            one.is_intended = True

    def intend_unread(self, model: PlanningSession, *, is_for_all: bool = False) -> None:
        """Tell that a command runs of which it is not known yet which groups it makes.

        Args:
            model: Model of the client's session.
            is_for_all: Passed on to `Attributions.intend` as it is.
        """
        if self.is_on:
            self._unread = model.count()
            self._shared.attributions.intend(
                self.thread_id, self._unread, (), is_for_all=is_for_all
            )

    def answer_unread(self, replies: Sequence[StatementReply]) -> None:
        """Tell the groups in the replies to an unread command; no replies if it was not sent."""
        number, self._unread = self._unread, 0
        if number and self.is_on:
            plans = () if replies else None
            self._shared.attributions.done(self.thread_id, number, self.told(replies), plans)

    def withdraw(self, under_way: Iterable[TrackedStatement]) -> None:
        """Tell that statements were not sent: their intended groups do not come."""
        for one in under_way:
            if one.is_intended and self.is_on:
                self._shared.attributions.done(self.thread_id, one.number, None)

    def muddle(
        self, under_way: Sequence[TrackedStatement], replies: Sequence[StatementReply]
    ) -> None:
        """Tell that replies came, and nobody knows which of them are to which statement."""
        if self.is_on:
            last = self.told(replies)
            for one in under_way:
                told = last if one is under_way[-1] else None
                self._shared.attributions.done(self.thread_id, one.number, told, ())

    def stumbled(self, numbers: Iterable[int]) -> None:
        """Tell that nothing is certain of statements that were intended, nor of those that are unsettled.

        Args:
            numbers: Numbers of the intended statements.
        """
        unsettled = [one.number for one in self._unsettled if one.is_intended]
        if self.is_on:
            for number in (*numbers, *unsettled):
                self._shared.attributions.done(self.thread_id, number, None, ())
        for kept in (self._unsettled, self._judged, self._marks):
            kept.clear()

    def _plans(self, planned: StatementPlan, model: PlanningSession) -> list[GroupPlan]:
        """The plans of a statement's groups; none where their contents are not certain."""
        if self.spoils:
            return []
        definitions, objects = model.session.definitions or (), model.session.objects
        return [self.planning.complete(group, definitions, objects) for group in planned.groups]

    # Behind it.

    def know_run(self, one: UnderWay, planned: StatementPlan) -> None:
        """Note a statement that has run, and has a context: its text may be in the transaction's plan."""
        assert one.context is not None, "it is why it is noted"
        self.planning.know(planned.numbers, one.context)
        self.planning.judged.append((one.text, one.catalog_version))

    @property
    def is_settled(self) -> bool:
        """True if all groups were told of the statements that were followed."""
        return not (self._unsettled or self._judged or self._marks or self._unread)

    def note_judged(self, facts: StatementFacts, version: object, session: Session) -> None:
        """Note the objects that a statement was judged with, where it may have run with others.

        What the objects are later may be what they were, and not what they were in between: so whoever routes
        is told that the transaction was judged before changes that its process has heard of.

        Args:
            facts: Parsed facts of the statement's text.
            version: Version of the objects with which the statement was judged.
            session: Session as it was before the statement.
        """
        if self.is_on and version is not self._shared.catalog.version:
            self.planning.is_outdated = True
            self._judged.append(JudgedObjects.of(facts, session))

    def follow(
        self,
        one: UnderWay,
        planned: StatementPlan,
        model: PlanningSession,
        replies: Sequence[StatementReply],
    ) -> None:
        """Tell which groups are a statement's, or keep it until `settle`.

        Args:
            one: Statement that the source has run.
            planned: The model's account of the executed statement.
            model: Session's model as it is behind the statement.
            replies: Replies of the source to the statement.
        """
        self._there_s = max(self._there_s, one.sent_s)
        self._tell(one, planned, model, replies)
        if planned.mark is not None:
            self._keep_for_mark(planned.mark, model)

    def _tell(
        self,
        one: UnderWay,
        planned: StatementPlan,
        model: PlanningSession,
        replies: Sequence[StatementReply],
    ) -> None:
        if not self.is_on:
            _lose_unplanned(model, planned, ())
            return
        last = self.told(replies)
        has_failed = replies[-1].errno and not _leaves_nothing(one.facts, model, replies[-1].errno)
        is_silent = has_failed or any(reply.is_result_set for reply in replies)
        may_write = bool(planned.groups) or not (
            one.facts.effects.kind in QUIET_KINDS or _is_quiet(one.facts, planned.result)
        )
        # Now, as the contexts of a transaction go with its end.
        is_same = one.is_intended and planned is one.expected and not self.spoils
        is_same = is_same and not passes_over_errors(one.facts, replies[-1])
        # An id that the server chose is told by the reply.
        plans = None if is_same and not replies[-1].insert_id else self._plans(planned, model)
        _lose_unplanned(model, planned, one.plans if plans is None else plans)
        told = _Report(planned.number, plans, is_intended=one.is_intended)
        is_untold = bool(last is None and is_silent and may_write)
        if self._judged or is_untold:
            self._unsettled.append(replace(told, last=last, is_untold=is_untold))
        else:
            self._attribute(told, last)

    def told(self, replies: Sequence[StatementReply]) -> str | None:
        """Give the GTIDs of the session's last group from replies; None for nothing that is new."""
        for reply in reversed(replies):
            told = reply.gtids or reply.tracked.get("last_gtid", "")
            if told and told != self.last_told:
                self.last_told = told
                return told
        return None

    def _attribute(self, told: _Report, last: str | None) -> None:
        if last is not None:
            self._shared.attributions.done(self.thread_id, told.number, last, told.plans)
        elif told.is_intended:
            self._shared.attributions.done(self.thread_id, told.number, None)

    async def settle(self, model: PlanningSession) -> None:
        """Ask for groups that the replies did not tell, and mark changes without a group at the source."""
        unsettled, self._unsettled = self._unsettled, []
        marks, self._marks = self._marks, []
        if not self.is_on:
            return
        if not await self._are_settled(model):
            unsettled = [replace(one, plans=()) for one in unsettled]
            self.spoils = True
        for one in unsettled:
            await self._find_last(one)
        self.answer_unread(())  # by now it is told of each statement of the packet
        for draft, plan in marks:
            await self._mark(draft, plan, model)

    async def _are_settled(self, model: PlanningSession) -> bool:
        """True if statements ran on the objects that they were judged with."""
        judged, self._judged = self._judged, []
        if not judged:
            return True
        catalog = self._shared.catalog
        has_locks = model.session.state.locked_tables is not None
        try:
            for one in judged:
                if has_locks and not catalog.covers(one.facts, one.database):
                    return False  # others would wait for its locks
                await catalog.fetch(one.facts, one.database)
            objects = catalog.catalog()
        except StatementError as error:
            self._warn(error)
            return False
        return all(one.are_same(objects) for one in judged)

    async def _find_last(self, one: _Report) -> None:
        """Find out the last group of a statement, if its replies did not tell it."""
        last, done = one.last, self._shared.attributions.done
        if one.is_untold and self._flavor is Flavor.MARIADB:
            # A LIMIT of its own stands above the sql_select_limit of the client, which may be 0.
            asked = await self.client.query_source("SELECT @@last_gtid LIMIT 1")
            told = asked.texts()[0][0] or ""
            last, self.last_told = told if told != self.last_told else None, told
        elif one.is_untold:
            # Errors and rows of MySQL tell none. Not in the session, whose warnings any statement
            # takes away.
            try:
                executed = await self._shared.marker.executed()
            except StatementError as error:
                self._warn(error)
                done(self.thread_id, one.number, None, [])
            else:
                done(self.thread_id, one.number, executed, one.plans, is_bound=True)
            return
        self._attribute(one, last)

    # Changes of which the source logs nothing.

    async def mark_end(
        self, planned: StatementPlan, context: StatementContext, model: PlanningSession
    ) -> None:
        """Have binlogs drop temporary tables that the source drops by itself.

        Args:
            planned: The model's account of the session's end.
            context: Context of the session's last statement.
            model: Model of the client's session.
        """
        self.planning.know(planned.numbers, context)
        self.spoils = False
        if planned.mark is not None:
            self._keep_for_mark(planned.mark, model)
        marks, self._marks = self._marks, []
        for draft, plan in marks:
            await self._mark(draft, plan, model)

    def _keep_for_mark(self, draft: GroupPlan, model: PlanningSession) -> None:
        """Keep changes of which the source logs nothing until they are marked."""
        is_certain = self.is_on and not self.spoils
        session = model.session
        plan = GroupPlan()
        if is_certain:
            plan = self.planning.complete(draft, session.definitions or (), session.objects)
        _lose(model, draft, plan)
        if plan.binlogs:
            self._marks.append((draft, plan))

    async def _mark(self, draft: GroupPlan, plan: GroupPlan, model: PlanningSession) -> None:
        """Have the source log a group for changes of which it logs nothing.

        Args:
            draft: Plan of the group, as the model has it.
            plan: The same plan with all values.
            model: Model of the client's session.
        """
        shared = self._shared
        done = shared.attributions.done
        if shared.has_marks:
            number = model.count()
            shared.attributions.intend(self.thread_id, number, [plan])
            try:
                last = await shared.marker.mark(self.thread_id, self._there_s)
            except StatementError as error:
                self._warn(error)
                done(self.thread_id, number, None, [])
            else:
                done(self.thread_id, number, last, is_bound=self._flavor is Flavor.MYSQL)
                return
        for name in plan.binlogs:
            model.lose(name, draft.binlogs[name])

    def _warn(self, error: StatementError) -> None:
        logger.warning("%s: %s", self.client.peer, error, extra={"peer": self.client.peer})


def passes_over_errors(facts: StatementFacts, reply: StatementReply) -> bool:
    """True if a statement may have passed over an error of a function, as DO of MariaDB does.

    The server writes the error into the function's event, where replicas expect it; the reply has it as a
    warning like others.
    """
    is_do = facts.effects.kind is StatementKind.DO and facts.dialect.flavor == Flavor.MARIADB.value
    return is_do and bool(reply.warnings) and not reply.errno


def _lose_unplanned(
    model: PlanningSession, planned: StatementPlan, plans: Sequence[GroupPlan]
) -> None:
    """Let the model know which binlogs get the rows of a group in which it has texts.

    Args:
        model: Model of the client's session.
        planned: The model's account of a statement.
        plans: Plans of the statement's groups; empty where nothing of them is certain.
    """
    for place, draft in enumerate(planned.groups):
        _lose(model, draft, plans[place] if place < len(plans) else GroupPlan())


def _lose(model: PlanningSession, draft: GroupPlan, plan: GroupPlan) -> None:
    """Let the model know which binlogs of a plan are not in the completed one."""
    for name, parts in draft.binlogs.items():
        if name not in plan.binlogs:
            model.lose(name, parts)


def _leaves_nothing(facts: StatementFacts, model: PlanningSession, errno: int) -> bool:
    """True if a statement that failed has made no group for certain, so that nobody has to ask."""
    if facts.error is not None:
        return errno == _SYNTAX
    if facts.effects.kind not in WRITING_KINDS or errno in _ENDING_ALL:
        return False
    session = model.session
    with suppress(NotLoggableError):
        accesses = session.opened_by(facts, session.database).accesses
        return all(traits(one.table, session.server).is_transactional for one in accesses)
    return False


def _is_split(planned: StatementPlan) -> bool:
    """True if a statement commits what was done before it, and then makes a group of its own."""
    if len(planned.groups) != _AND_ITS_OWN:
        return False
    numbers = planned.groups[0].numbers
    return bool(numbers) and all(number < planned.number for number in numbers)


def _is_quiet(facts: StatementFacts, result: StatementResult) -> bool:
    """True if a program is known to have written nothing, if it made no group."""
    return is_program(facts) and result.unanalysed is None and result.ways == 1
