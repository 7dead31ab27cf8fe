"""One client's session through the port: judged before its statements run, followed after.

A session of the model (`session.Session`) goes along with the client's session on the source. What
the model refuses never reaches the source. What it lets pass is told again what came of it, and
what the model then says of the groups that the source wrote is given to `Attributions`.

Where model and source disagree on anything, the model is wrong: from there on nothing of the
transaction is planned, which makes rows of it, and the model begins anew behind it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from binlane.client.source_objects import Source, SourceSession
from binlane.codec.packets.flags import ServerStatus
from binlane.codec.types import Flavor
from binlane.errors import BinlaneError, StatementError
from binlane.gateway.handler import SessionContext
from binlane.gateway.judge import (
    NOTHING_LEFT,
    ClientStatement,
    Done,
    Pass,
    Refuse,
    Reply,
    Run,
    Verdict,
)
from binlane.policy.refusals import Outcome, Refusal
from binlane.port.attributions import Attributions
from binlane.port.lanes import Lane, LanePool
from binlane.port.live_catalog import LiveCatalog
from binlane.port.statement_context import ContextReader, StatementContext, complete
from binlane.routing.plan import GroupPlan, Part, Rows, Text, basis_of
from binlane.scope.definition import Definition
from binlane.session.group_plans import (
    DraftPart,
    GroupDraft,
    Planned,
    PlannedSession,
    RowsOf,
)
from binlane.session.report import StatementResult
from binlane.session.session import Session
from binlane.sql.catalog import SchemaCatalog
from binlane.sql.facts import DDL_KINDS, WRITING_KINDS, StatementFacts, StatementKind
from binlane.sql.reading import read

logger = logging.getLogger(__name__)

_READS: Final = frozenset((StatementKind.SELECT, StatementKind.SESSION, StatementKind.EMPTY))
"""What a session may begin with that the model need not know of."""
_OWN: Final = ("ER_BINLOG_", "BINLANE_", "ER_INSIDE_TRANSACTION_PREVENTS_")
"""How the symbols of refusals begin that are binlane's to give: the source logs rows, whatever the
binlogs have, and would let such a statement pass."""
_OWN_SYMBOLS: Final = frozenset(
    (
        "ER_TEMP_TABLE_PREVENTS_SWITCH_OUT_OF_RBR",
        "ER_TEMP_TABLE_PREVENTS_SWITCH_SESSION_BINLOG_FORMAT",
        "ER_STORED_FUNCTION_PREVENTS_SWITCH_BINLOG_FORMAT",
        "ER_STORED_FUNCTION_PREVENTS_SWITCH_BINLOG_DIRECT",
        "ER_STORED_FUNCTION_PREVENTS_SWITCH_SQL_LOG_BIN",
    )
)
_DIRTYING: Final = frozenset(
    (
        *(StatementKind.SET, StatementKind.CALL, StatementKind.COMPOUND, StatementKind.EXECUTE),
        *(StatementKind.EXECUTE_IMMEDIATE, StatementKind.DO, StatementKind.SESSION),
    )
)
"""What may change the values that belong to later statements' texts."""


def is_own(refusal: Refusal) -> bool:
    """Whether binlane refuses, and not the source, which gets to say its own errors itself."""
    return refusal.symbol in _OWN_SYMBOLS or refusal.symbol.startswith(_OWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class PortParts:
    """What all sessions of the port share.

    Attributes:
        flavor: Of the source.
        definitions: Gives the binlogs as they are now; the same tuple as long as they are the same.
        catalog: The source's objects.
        attributions: Gets the plans of the groups that sessions make.
        lanes: None where the source was not prepared for them: then all groups go as rows.
        global_values: Gives the values that `SET GLOBAL` gave to the binlogs' variables.
    """

    flavor: Flavor
    definitions: Callable[[], tuple[Definition, ...]]
    catalog: LiveCatalog
    attributions: Attributions
    lanes: LanePool | None = None
    global_values: Callable[[], Mapping[str, str]] = dict


@dataclass(slots=True, kw_only=True)
class _UnderWay:
    """A statement that the source runs.

    Attributes:
        text: Its text.
        facts: What it says.
        expected: What the model says it will do.
        context: Of its text; None where nothing of it is planned.
        catalog_version: Of the objects that it was judged with.
        is_intended: Its plans were given to `Attributions`.
    """

    text: str
    facts: StatementFacts
    expected: Planned
    context: StatementContext | None = None
    catalog_version: object = None
    is_intended: bool = False


class PortSession:
    """Judges and follows one session; a `Judge` of the gateway.

    Args:
        client: The session on the source.
        parts: What it shares with others.
    """

    def __init__(self, client: SessionContext, parts: PortParts) -> None:
        self._client = client
        self._parts = parts
        self._model: PlannedSession | None = None
        self._catalog = SchemaCatalog(parts.flavor)
        self._definitions: tuple[Definition, ...] = ()
        self._reader: ContextReader | None = None
        self._lane: Lane | None = None
        self._last = ""
        self._contexts: dict[int, StatementContext] = {}
        self._under_way: list[_UnderWay] = []
        self._is_out_of_step = False

    # What the gateway calls -----------------------------------------------------------------------

    async def start(self) -> None:
        """Begin anew: what the session is like is asked when its first statement needs it."""
        self._forget()

    def judge(self, statements: Sequence[ClientStatement]) -> Verdict | None:
        """Say what becomes of a command, if that is known without asking anybody."""
        if len(statements) != 1:
            return None
        text = statements[0].text
        model = self._model
        if model is None:
            return Pass() if self._is_nothing(text) else None
        if not self._is_current():
            return None
        expected = model.preview_known(text)
        if expected is None:
            return None
        return self._let_run(text, model, expected)

    async def judge_later(self, statements: Sequence[ClientStatement]) -> Verdict:
        """Say what becomes of a command; the source is asked for what is not known.

        Raises:
            StatementError: If the source does not tell what has to be known.
            PeerError: If it goes away.
        """
        model = self._model
        if model is None:
            if len(statements) == 1 and self._is_nothing(statements[0].text):
                return Pass()
            model = await self._begin()
        elif self._is_out_of_step and not self._client.status & ServerStatus.IN_TRANSACTION:
            model = await self._begin()
        self._make_current(model)
        if len(statements) == 1:
            return await self._judge_one(model, statements[0].text)
        return await self._judge_several(model, [each.text for each in statements])

    def local_data(self, data: bytes) -> None:
        """Take some of the file that LOAD DATA LOCAL sends."""
        for one in self._under_way[-1:]:
            if one.context is not None:
                one.context.add_file(data)

    def done(self, replies: Sequence[Reply]) -> Done:
        """Follow what came of the command."""
        under_way, self._under_way = self._under_way, []
        model = self._model
        if model is None or not under_way:
            return NOTHING_LEFT
        warnings, asks = 0, False
        for one, own in self._each_reply(under_way, replies):
            planned = self._follow(model, one, own)
            warnings += sum(note.is_told for note in planned.result.notes)
            asks |= self._must_ask(one, own, planned)
        return Done(warnings, self._settle if asks else None)

    def used(self, database: str) -> None:
        """Follow COM_INIT_DB."""
        if self._model is not None:
            self._model.execute(f"USE {quote(database)}")
            self._mark_dirty()

    async def ended(self) -> None:
        """The session is over."""
        self._forget()

    # Beginning and end ----------------------------------------------------------------------------

    def _forget(self) -> None:
        """Let the model go, and the lane."""
        if self._lane is not None:
            assert self._parts.lanes is not None, "it gave the lane"
            if self._under_way:
                self._parts.attributions.lost(self._lane.number)
            self._parts.lanes.release(self._lane)
        self._lane = self._model = self._reader = None
        self._under_way.clear()
        self._contexts.clear()
        self._is_out_of_step = False

    async def _begin(self) -> PlannedSession:
        """Begin to go along with the client's session, as it is now."""
        parts = self._parts
        source = Source(self._client)
        circumstances = await source.circumstances()
        self._definitions = parts.definitions()
        parts.catalog.fit(self._catalog)
        self._model = PlannedSession(
            _session(self._catalog, circumstances, self._definitions, parts.global_values())
        )
        self._reader = ContextReader(parts.flavor, thread_id=self._client.thread_id)
        self._is_out_of_step = False
        await self._take_lane()
        return self._model

    async def _take_lane(self) -> None:
        lanes = self._parts.lanes
        if lanes is None or self._lane is not None:
            return
        self._lane = await lanes.enter(self._client)
        self._last = await self._told_last()

    def _is_current(self) -> bool:
        """Whether the model knows the binlogs and objects as they are."""
        return (
            not self._is_out_of_step
            and self._parts.definitions() is self._definitions
            and self._parts.catalog.is_fit(self._catalog)
        )

    def _make_current(self, model: PlannedSession) -> None:
        definitions = self._parts.definitions()
        if definitions is not self._definitions:
            self._definitions = definitions
            model.session.have(definitions)
        self._parts.catalog.fit(self._catalog)

    def _is_nothing(self, text: str) -> bool:
        """Whether a session may begin with a statement without the model knowing of it."""
        facts = read(text, database="", dialect=Dialect(flavor=self._parts.flavor.value))
        effects = facts.effects
        if facts.error is not None or effects.stopped_at is not None:
            return False
        if effects.kind is StatementKind.SET:
            return all(is_harmless(one.name) for one in facts.assignments)
        return (
            effects.kind in _READS
            and not effects.writes
            and not facts.has_into
            and not facts.statement_assignments
            and not facts.user_variables
            and all(is_built_in(one.name, facts.dialect) for one in facts.functions)
        )

    # Before a statement runs ----------------------------------------------------------------------

    async def _judge_one(self, model: PlannedSession, text: str) -> Verdict:
        facts = await self._known(model, text)
        expected = model.preview(text)
        refusal = self._refusal(text, expected.result)
        if refusal is not None:
            return Refuse(refusal)
        return await self._prepare(text, facts, model, expected)

    async def _judge_several(self, model: PlannedSession, texts: Sequence[str]) -> Verdict:
        """Judge all statements of a packet, each behind those before it, before any of them runs."""
        before = model.snapshot()
        under_way: list[_UnderWay] = []
        try:
            for text in texts:
                facts = await self._known(model, text)
                expected = model.preview(text)
                refusal = self._refusal(text, expected.result)
                if refusal is not None:
                    return Refuse(refusal)
                # What is asked of the source now is not what it will be when the statement's turn
                # comes: such a statement goes as rows.
                under_way.append(_UnderWay(text=text, facts=facts, expected=expected))
                model.execute(text)
        finally:
            model.restore(before)
        self._under_way = under_way
        return Run()

    async def _known(self, model: PlannedSession, text: str) -> StatementFacts:
        """What a statement says, with all objects known that it uses."""
        catalog, session = self._parts.catalog, model.session
        facts = read(text, database=session.database, dialect=session.dialect)
        if not catalog.covers(facts, session.database):
            await catalog.fetch(facts, session.database)
            catalog.fit(self._catalog)
        return facts

    def _refusal(self, text: str, result: StatementResult) -> StatementError | None:
        """Why a statement must not run; None if it may, or the source will say it."""
        if result.unanalysed is not None:
            if self._are_all_rows():
                return None
            where = text[result.unanalysed.offset :][:80]
            return UnsafeStatementError(
                f"{result.unanalysed.reason}",
                hint=f"binlane does not know what it would do, near {where!r}; "
                "SET SESSION binlog_format = 'ROW' lets it pass as rows",
            )
        error = result.error
        if error is None or not is_own(error):
            return None
        return StatementError(
            error.message, errno=error.errno, sqlstate=error.sqlstate, hint=hint_of(error)
        )

    def _are_all_rows(self) -> bool:
        assert self._model is not None, "something is judged"
        return self._model.session.logs_rows_alone

    def _let_run(self, text: str, model: PlannedSession, expected: Planned) -> Verdict | None:
        """Let a statement run whose kind is known; None if its context has to be asked for first."""
        session = model.session
        facts = read(text, database=session.database, dialect=session.dialect)
        context = None
        if expected.has_texts:
            assert self._reader is not None, "it begins with the model"
            if self._reader.needs(facts, expected):
                return None
            context = self._reader.now()
        self._send(text, facts, expected, context)
        return Run()

    async def _prepare(
        self, text: str, facts: StatementFacts, model: PlannedSession, expected: Planned
    ) -> Verdict:
        """Let a statement run; what its text hangs on is asked for before."""
        context, before, after = None, (), ()
        if expected.has_texts and self._lane is not None:
            assert self._reader is not None, "it begins with the model"
            context, before, after = await self._reader.read(facts, expected, self._client)
        self._send(text, facts, expected, context)
        return Run(before, after)

    def _send(
        self,
        text: str,
        facts: StatementFacts,
        expected: Planned,
        context: StatementContext | None,
    ) -> None:
        """Note what is under way, in the journal, too, if it makes groups."""
        one = _UnderWay(
            text=text,
            facts=facts,
            expected=expected,
            context=context,
            catalog_version=self._parts.catalog.version,
        )
        if context is not None:
            self._contexts[expected.number] = context
        if expected.groups and self._lane is not None:
            plans = [self._plan(group) for group in expected.groups]
            self._parts.attributions.intend(self._lane.number, expected.number, plans)
            one.is_intended = True
        self._under_way = [one]

    # Behind it ------------------------------------------------------------------------------------

    def _each_reply(
        self, under_way: list[_UnderWay], replies: Sequence[Reply]
    ) -> Sequence[tuple[_UnderWay, Sequence[Reply]]]:
        """The replies to each statement; none where they cannot be told apart."""
        if len(under_way) == 1:
            return [(under_way[0], replies)]
        if any(is_program(one.facts) for one in under_way):
            self._is_out_of_step = True
            return []
        return [(one, [reply]) for one, reply in zip(under_way, replies, strict=False)]

    def _follow(self, model: PlannedSession, one: _UnderWay, replies: Sequence[Reply]) -> Planned:
        """Let the model do what the source has done, and say which groups that made."""
        reply = replies[-1]
        if reply.database is not None and one.facts.verb != "USE":
            self._is_out_of_step = True
        if one.facts.effects.kind in _DIRTYING or one.facts.statement_assignments:
            self._mark_dirty()
        planned = model.execute(one.text, _outcome(one.facts, reply))
        failed = planned.result.error is not None
        if planned.result.unanalysed is not None or failed != bool(reply.errno):
            self._is_out_of_step = True
        if one.facts.effects.kind in DDL_KINDS:
            self._parts.catalog.changed(one.facts, model.session.database)
        has_changed = one.catalog_version is not self._parts.catalog.version
        if one.context is not None:
            one.context.insert_id = reply.insert_id
            self._contexts[planned.number] = one.context
        self._tell(one, planned, replies, is_certain=not (has_changed or self._is_out_of_step))
        is_active = bool(reply.status & ServerStatus.IN_TRANSACTION)
        if is_active != model.session.is_transaction_active:
            self._is_out_of_step = True
        if not model.session.is_in_transaction:
            self._contexts.clear()
        return planned

    def _tell(
        self, one: _UnderWay, planned: Planned, replies: Sequence[Reply], *, is_certain: bool
    ) -> None:
        """Tell `Attributions` which groups are of a statement."""
        if self._lane is None:
            return
        told = next((r.tracked["last_gtid"] for r in reversed(replies) if "last_gtid" in r.tracked), "")
        told = told or next((r.gtids for r in reversed(replies) if r.gtids), "")
        last = told if told and told != self._last else None
        if last is None and not one.is_intended:
            return
        if last is not None:
            self._last = last
        plans = [self._plan(group) for group in planned.groups] if is_certain else []
        self._parts.attributions.done(self._lane.number, planned.number, last, plans)

    def _plan(self, draft: GroupDraft) -> GroupPlan:
        """A group as the binlogs are to have it, with all values; those that lack some get rows."""
        sections = {number: place for place, (number, _) in enumerate(draft.sections)}
        binlogs: dict[str, tuple[Part, ...]] = {}
        for name, parts in draft.binlogs.items():
            made = [self._part(part, sections) for part in parts]
            if None not in made:
                binlogs[name] = tuple(part for part in made if part is not None)
        return GroupPlan(
            sections=tuple(section for _, section in draft.sections),
            binlogs=binlogs,
            bases={one.name: basis_of(one) for one in self._definitions if one.name in binlogs},
        )

    def _part(self, draft: DraftPart, sections: Mapping[int, int]) -> Part | None:
        if isinstance(draft, RowsOf):
            return Rows(sections[draft.number])
        context = self._contexts.get(draft.number)
        if context is None:
            return None
        events = complete(draft.bodies, context, self._parts.flavor)
        return None if events is None else Text(events, sections.get(draft.number))
