"""Statements of sessions of which others have run that are alike: sent and followed in few steps.

A template that `PlanningSession.plain` gives leaves the session as it is and makes one group, or it makes none.
For its first statement the plan is made by the model, and encoded, in full. Of those behind it three things
differ: the text, the session's thread, and the AUTO_INCREMENT value that goes with the text. So the template's
`sent` keeps the plan as bytes with holes for these, for all sessions in the same context.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from binlane.live.gateway.judge import OkFields, PlanPiece, StatementReply
from binlane.live.gateway.ok_packets import told_gtids
from binlane.live.port.alike_transactions import (
    INSERT_ID_KIND,
    QUERY,
    THREAD_BYTES,
    TO_BE_CHOSEN,
    VALUE_BYTES,
    TextEvent,
    TransactionEnd,
    WaitingTemplate,
    piece_alone,
)
from binlane.live.port.context_reader import may_run_programs
from binlane.live.port.context_use import ContextUse
from binlane.live.port.context_values import ContextValues
from binlane.live.port.followed_session import CHANGING, FollowedSession
from binlane.live.port.group_planning import WaitingWrite
from binlane.live.port.group_tracking import UnderWay
from binlane.live.port.statement_context import StatementContext
from binlane.statements.policy.refusals import NO_OUTCOME, Outcome
from binlane.statements.scope.definition import Definition
from binlane.statements.session.group_plan import EncodedEvent, GroupPlan, Part, TextPart
from binlane.statements.session.plan_bytes import EVENT_HEAD, EncodedPlans, encode_plans
from binlane.statements.session.report import StatementPlan
from binlane.statements.session.statement_template import StatementTemplate
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.statement_kinds import WRITING_KINDS, StatementKind

_SILENT: Final = frozenset(
    (StatementKind.SELECT, StatementKind.BEGIN, StatementKind.COMMIT, StatementKind.ROLLBACK)
)
_CONTEXTS_MAX: Final = 16
"""Contexts of sessions for which a template keeps its plan."""
_NONE_CHANGED: Final = " Changed: 0 "
_NONE_CHANGED_BYTES: Final = _NONE_CHANGED.encode()
"""In the OK packet of an UPDATE."""
_NO_VALUE: Final = bytes(VALUE_BYTES)


class TextHole(NamedTuple):
    """Place of a text in an encoded plan.

    Attributes:
        part: The text's part, with the event of the first text.
        event: Event of the text, apart from what differs.
        others: Parts of binlogs that have something else than the text.
        before: The plan's bytes up to the text's event, or to the value before that.
        after: The plan's bytes behind the text's event.
    """

    part: TextPart
    event: TextEvent
    others: Mapping[str, tuple[Part, ...]]
    before: bytes
    after: bytes


@dataclass(frozen=True, slots=True, eq=False)
class SentTemplate:
    """A statement template as sessions in one context send it, under circumstances that are compared by identity.

    Attributes:
        definitions: Definitions of the binlogs at that time.
        version: Version of the source's objects.
        is_text_as_it_came: True if the sessions' texts are as the gateway reads them.
        plan: Plan of the first statement's group; None for statements of which no binlog has anything.
        encoded: The same plan where no binlog has the text, so that nothing differs; else None.
        hole: Place of the text that differs in other statements; None where no binlog has the text.
        event: The event of that text, also of one that waits; None where no binlog has the text.
        piece: Part of a write with autocommit in its plan, if the kernel may put that together; else None.
        has_rows: True if the statement changes rows.
        waiting: What binlogs have of a write in a transaction; None for other statements.
        end: Plans of the transactions that a statement ends; None for other statements.
        is_update: True if a reply tells in words how many rows a statement changed.
    """

    definitions: tuple[Definition, ...]
    version: object
    is_text_as_it_came: bool
    plan: GroupPlan | None = None
    encoded: EncodedPlans | None = None
    hole: TextHole | None = None
    event: TextEvent | None = None
    piece: PlanPiece | None = None
    has_rows: bool = False
    waiting: WaitingTemplate | None = None
    end: TransactionEnd | None = None
    is_update: bool = False

    def is_of(self, other: SentTemplate) -> bool:
        """True if another template was made for the same binlogs and objects."""
        return self.definitions is other.definitions and self.version is other.version

    def ends_as(self, other: SentTemplate) -> bool:
        """True if the statement ends transactions, under the same circumstances as for another template."""
        is_as_it_came = self.is_text_as_it_came is other.is_text_as_it_came
        return self.end is not None and self.is_of(other) and is_as_it_came

    def with_write(
        self, planned: StatementPlan, one: UnderWay, thread_id: int
    ) -> SentTemplate | None:
        """Return the template with the plan of its first statement; None where more than the text differs.

        Args:
            planned: The model's account of the statement.
            one: The statement, before it is sent, with its plan.
            thread_id: Thread with which the statement is logged.
        """
        plan, text = one.plans[0], one.text
        if one.use is None or not _is_plain(planned, plan, one.use):
            return None
        texts = {
            parts: None
            for parts in plan.binlogs.values()
            if any(isinstance(part, TextPart) for part in parts)
        }
        if not texts:
            encoded = EncodedPlans(encode_plans((plan,)), 1)
            found = replace(self, plan=plan, encoded=encoded, has_rows=True)
            return None if planned.has_texts else found
        (parts, *more) = texts
        hole = None if more or len(parts) > 1 else _hole(plan, parts, text)
        if hole is None:
            return None
        template = replace(self, plan=plan, hole=hole, event=hole.event, has_rows=True)
        event = template.event_of(text, thread_id)
        filled = None if event is None else FilledPlans(template, event)
        is_right = (
            filled is not None
            and filled.encoded == encode_plans((plan,))
            and list(filled) == [plan]
        )
        if not is_right:
            return None
        return replace(template, piece=piece_alone(self.definitions, plan, hole.event))

    def event_of(self, text: str, thread_id: int) -> bytes | None:
        """Return the event of another text as it is in plans; None where it has to be made.

        Args:
            text: Text of the client's statement.
            thread_id: Thread with which the statement is logged.
        """
        event = self.event
        if event is None:
            return b""
        if not (self.is_text_as_it_came or text.isascii()):
            return None
        query = text.encode("utf-8", "surrogateescape")
        head = thread_id.to_bytes(THREAD_BYTES, "little") + event.head
        return EVENT_HEAD.pack(QUERY, event.flags, len(head) + len(query)) + head + query


class FilledPlans(EncodedPlans):
    """The plan of a template with a statement's text in its hole.

    Args:
        sent: Template by which the statement is sent.
        event: Event with the statement's text.
        value: AUTO_INCREMENT value that stands before that.
    """

    __slots__ = ("_event", "_sent")

    def __init__(self, sent: SentTemplate, event: bytes, value: bytes = _NO_VALUE) -> None:
        hole = sent.hole
        assert hole is not None, "there is a text"
        before = value if hole.event.has_insert_id else b""
        self.encoded = b"".join((hole.before, before, event, hole.after))
        self._sent = sent
        self._event = event
        self._plans = None

    def __len__(self) -> int:
        return 1

    def with_insert_id(self, insert_id: int) -> FilledPlans:
        """Return the plan with the AUTO_INCREMENT value that stands before its text."""
        return FilledPlans(self._sent, self._event, insert_id.to_bytes(VALUE_BYTES, "little"))

    def _made(self) -> tuple[GroupPlan, ...]:
        hole, plan, encoded = self._sent.hole, self._sent.plan, self.encoded
        assert hole is not None, "there is a text"
        assert plan is not None, "the text is in a plan"
        begin = len(hole.before)
        events: tuple[EncodedEvent, ...] = ()
        if hole.event.has_insert_id:
            value = encoded[begin : begin + VALUE_BYTES]
            events = (TO_BE_CHOSEN._replace(body=INSERT_ID_KIND + value),)
        events += (EncodedEvent(QUERY, self._event[EVENT_HEAD.size :], hole.event.flags),)
        # In a third of the time of `_replace`.
        parts = (TextPart(events, *hole.part[1:]),)
        binlogs: dict[str, tuple[Part, ...]] = dict.fromkeys(plan.binlogs, parts)
        if hole.others:
            binlogs |= hole.others
        return (replace(plan, binlogs=binlogs),)


class Repeated(NamedTuple):
    """A statement that the source runs, of which others have run that are alike.

    Attributes:
        text: Text of the client's statement.
        sent: Template of the statements that are alike.
        effect: Effect that all such statements have.
        number: Number of the statement in its session.
        plans: Plan of the statement's group; None for a statement that makes no group.
        context: Context of a write in a transaction that is a text somewhere; None for other statements.
        event: Event with that text in the log.
    """

    text: str
    sent: SentTemplate
    effect: StatementTemplate
    number: int
    plans: EncodedPlans | None
    context: StatementContext | None
    event: bytes

    @property
    def is_intended(self) -> bool:
        """True if the statement's plan was given to `Attributions`."""
        return self.plans is not None


class AlikeStatements:
    """Sends and follows a session's statements by their templates.

    Args:
        session: The client's session, as it is followed.
    """

    def __init__(self, session: FollowedSession) -> None:
        self._session = session

    def begin(self, text: str, effect: StatementTemplate) -> Repeated | None:
        """Tell of a statement that is now sent; None if it is like no other one.

        Args:
            text: Text of the client's statement.
            effect: Effect that all such statements have.
        """
        session = self._session
        reader = session.reader
        values = reader.values
        sent: SentTemplate | None = None if values is None else effect.sent.get(values.alike)
        if sent is None or values is None:
            return None
        tracking, clock, shared = session.tracking, reader.clock, session.shared
        known = shared.catalog.known
        # The session's catalog may lack what was asked for since; this one's objects were known.
        if (
            known is None
            or sent.version is not known.version
            or sent.definitions is not session.definitions
            or tracking.spoils
            or session.warnings.are_changed
            or reader.is_dirty
            or clock.fixed is not None
            or clock.held is not None
        ):
            return None
        clock.was_given_back = False
        number, context = session.model.session.state.number + 1, None
        plans: EncodedPlans | None = None
        event = sent.event_of(text, values.thread_id)
        is_end = sent.end is not None
        if is_end and tracking.planning.is_outdated:
            return None
        is_told = is_end or sent.has_rows
        if event is None or not (tracking.is_on if is_told else not session.wants_tracking):
            return None
        if sent.waiting is None:
            plans = self.ended(sent) if is_end else sent.encoded
            if sent.hole is not None:
                plans = FilledPlans(sent, event)
            if plans is None and is_told:
                return None
            if plans is not None:
                shared.attributions.intend(tracking.thread_id, number, plans)
        elif sent.event is not None:
            context = self.context_of(sent.waiting, values)
        # In a third of the time of `Repeated(…)`.
        return tuple.__new__(Repeated, (text, sent, effect, number, plans, context, event))

    def ended(self, sent: SentTemplate) -> EncodedPlans | None:
        """Return the plan of a transaction that now ends; None where the plan has to be made."""
        writes = self._session.tracking.planning.writes
        assert sent.end is not None, "the statement ends one"
        return sent.end.filled(writes) if self._are_all(writes) else None

    def _are_all(self, writes: Sequence[WaitingWrite]) -> bool:
        """True if a transaction has nothing but some writes."""
        return self._session.model.waits_for([one.number for one in writes])

    def _is_as_expected(self, one: Repeated) -> bool:
        """True if nothing has come in between, and the source's transaction is as active as the model's will be."""
        session, after = self._session, one.effect.transaction
        if after is None:
            after = session.model.session.state.transaction
        known = session.shared.catalog.known
        is_same = known is not None and one.sent.version is known.version
        return is_same and session.is_in_transaction is after.is_active

    def has_read(self, one: Repeated, replies: Sequence[StatementReply]) -> bool:
        """Follow a statement that makes no group; False where it did not do the same as the others.

        Args:
            one: The statement that the source has run.
            replies: Replies of the source to the statement.
        """
        (reply, *more) = replies
        is_write = one.plans is not None or one.sent.waiting is not None
        is_other = is_write or more or reply.errno or reply.tracked or reply.gtids
        if is_other or not self._is_as_expected(one):
            return False
        self._repeat(one)
        return True

    def context_of(self, waiting: WaitingTemplate, values: ContextValues) -> StatementContext:
        """Make the context of a write in a transaction that is sent now."""
        timestamp = int(self._session.reader.clock.source_s)
        return StatementContext(values, waiting.use, timestamp=timestamp)

    def _repeat(self, one: Repeated) -> None:
        model = self._session.model
        model.repeat(one.effect, one.text)
        transaction = one.effect.transaction
        if transaction is not None and not (transaction.is_active or model.waits):
            self._session.tracking.end_transaction()

    def has_run(self, one: Repeated, ok: OkFields) -> bool:
        """Follow a statement by its OK packet; as of `has_read`."""
        _, sent, _, number, plans, *_ = one
        rows, insert_id, _, _, info, state, _ = ok
        session = self._session
        if not self._is_as_expected(one):
            return False
        if sent.has_rows and (not rows or (sent.is_update and _NONE_CHANGED_BYTES in info)):
            return False
        if plans is None:
            return not state and self.repeat(one, insert_id)
        tracking = session.tracking
        last = None
        if state:
            told = told_gtids(state)
            if told is None:
                return False
            if told and told != tracking.last_told:
                last = tracking.last_told = told
        if sent.end is None:
            session.model.repeat(one.effect, one.text)
        else:
            self._repeat(one)
        others = None
        has_value = insert_id and sent.event is not None and sent.event.has_insert_id
        if last is not None and has_value and isinstance(plans, FilledPlans):
            others = plans.with_insert_id(insert_id)
        session.shared.attributions.done(tracking.thread_id, number, last, others)
        return True

    def repeat(self, one: Repeated, insert_id: int) -> bool:
        """Follow a statement that makes no group yet, and has done the same as the others; always True."""
        self._repeat(one)
        waiting, context, planning = one.sent.waiting, one.context, self._session.tracking.planning
        if waiting is None:
            return True
        if context is not None and waiting.part is not None:
            context.insert_id = insert_id
            planning.know_alike(one.number, context, waiting.part)
        events, sent = waiting.events(one.event, insert_id), one.sent
        # As `WaitingWrite(…)`, in a third of the time.
        fields = one.number, sent, events, one.text, sent.version
        planning.writes.append(tuple.__new__(WaitingWrite, fields))
        return True

    def looked_at(self, one: Repeated) -> UnderWay:
        """Give a repeated statement in the form of a new one: nothing has changed meanwhile."""
        session = self._session
        expected, facts = session.model.preview(one.text), session.facts_of(one.text)
        needs = session.needs(facts, expected)
        begun = None if needs is None else session.reader.begin(needs)
        context = None if begun is None else begun[0]
        if context is not None:
            session.tracking.planning.know(expected.numbers, context)
        return UnderWay(
            text=one.text,
            facts=facts,
            expected=expected,
            context=context,
            use=session.use(facts, needs),
            catalog_version=one.sent.version,
            is_intended=one.is_intended,
        )

    def keep(self, one: UnderWay, effect: StatementTemplate) -> None:
        """Keep the common part of a statement and those that are alike.

        Args:
            one: A statement that is sent as it came.
            effect: Effect that all such statements have.
        """
        session = self._session
        kind, expected, reader = one.facts.effects.kind, one.expected, session.reader
        values = reader.values
        if session.tracking.spoils or values is None or not reader.is_plain:
            return
        sent: SentTemplate | None
        sent = SentTemplate(
            session.definitions,
            one.catalog_version,
            is_text_as_it_came=values.is_text_as_it_came,
            is_update=kind is StatementKind.UPDATE,
        )
        if kind in _SILENT:
            is_silent = not (expected.groups or expected.mark or expected.has_texts)
            if effect.is_end and not is_silent:
                known: SentTemplate | None = effect.sent.get(values.alike)
                is_known = known is not None and known.ends_as(sent)
                sent = self._with_end(known if known is not None and is_known else sent, one)
            elif not is_silent or expected.result.notes or may_run_programs(one.facts):
                return
        elif kind not in CHANGING:
            return
        elif effect.is_waiting:
            sent = self._with_waiting(sent, one, effect)
        elif len(one.plans) == 1:
            sent = sent.with_write(expected, one, values.thread_id)
        else:
            return
        if sent is not None:
            if len(effect.sent) >= _CONTEXTS_MAX:
                effect.sent.clear()
            effect.sent[values.alike] = sent

    def _with_waiting(
        self, sent: SentTemplate, one: UnderWay, effect: StatementTemplate
    ) -> SentTemplate | None:
        """Return a template with what its first statement leaves waiting; None where that is more than a text."""
        expected, use, model = one.expected, one.use, self._session.model
        is_plain = use is not None and _is_plain_use(use) and not model.has_images
        is_alone = expected.last == expected.number and not (
            expected.groups or expected.mark or expected.result.notes
        )
        if not (is_plain and is_alone) or expected.has_texts is (one.context is None):
            return None
        assert use is not None, "it was looked at"
        planning = self._session.tracking.planning
        found = WaitingTemplate.of(use, effect.waiting_texts(one.text), one, planning)
        if found is None:
            return None
        return replace(sent, waiting=found, event=found.event, has_rows=True)

    def _with_end(self, sent: SentTemplate, one: UnderWay) -> SentTemplate | None:
        """Return a template with the plan of the transaction that it ends; None where its writes are not known."""
        expected, plans, writes = one.expected, one.plans, self._session.tracking.planning.writes
        if (
            len(plans) != 1
            or not _is_one_group(expected, plans[0])
            or self._session.model.has_images
        ):
            return None
        numbers = tuple([write.number for write in writes])
        if expected.groups[0].numbers != numbers or not self._are_all(writes):
            return None
        templates = [write.template for write in writes]
        are_of_now = all(isinstance(one, SentTemplate) and sent.is_of(one) for one in templates)
        if not (are_of_now and self._session.model.end_with_rows(numbers)):
            return None
        found = (
            sent if sent.end is not None else replace(sent, end=TransactionEnd(sent.definitions))
        )
        assert found.end is not None, "it is made here"
        was_known = found.end.is_known
        if found.end.learn(plans[0], writes):
            return found
        if was_known:
            # The kernel is not to put such plans together, either.
            self._session.shared.standing.end()
        return None


def has_no_rows(reply: StatementReply, *, is_update: bool) -> bool:
    """True if a reply says that no rows were changed; a client may ask for those that were found."""
    return not reply.affected_rows or (is_update and _NONE_CHANGED in reply.info)


def outcome_of(facts: StatementFacts, reply: StatementReply) -> Outcome:
    """Give the outcome of a statement in its reply, as far as the model does not know it."""
    if reply.errno:
        return Outcome(error=reply.errno)
    if facts.effects.kind not in WRITING_KINDS or reply.is_result_set:
        return NO_OUTCOME
    is_update = facts.effects.kind is StatementKind.UPDATE
    return Outcome(rows=0) if has_no_rows(reply, is_update=is_update) else NO_OUTCOME


def _hole(plan: GroupPlan, parts: tuple[Part, ...], text: str) -> TextHole | None:
    """Find a text's place in a plan, if nothing is around it but an AUTO_INCREMENT value to come."""
    (part,) = parts
    assert isinstance(part, TextPart), "it was looked at"
    found = TextEvent.of(part.events, text)
    if found is None or part.section is None or part.timestamp or part.uses_temporary:
        return None
    event = part.events[-1]
    head = EVENT_HEAD.pack(QUERY, event.flags, len(event.body))
    before, _, after = encode_plans((plan,)).partition(head + event.body)
    return TextHole(
        part=part,
        event=found,
        others={name: one for name, one in plan.binlogs.items() if one != parts},
        before=before[:-VALUE_BYTES] if found.has_insert_id else before,
        after=after,
    )


def _is_plain(planned: StatementPlan, plan: GroupPlan, use: ContextUse) -> bool:
    """True if a write makes the planned group, and nothing of its context is asked for."""
    return _is_one_group(planned, plan) and _is_plain_use(use)


def _is_one_group(planned: StatementPlan, plan: GroupPlan) -> bool:
    """True if a statement makes the planned group, which ends as the source's does."""
    return (
        len(planned.groups) == 1
        and planned.last == planned.number
        and planned.mark is None
        and not planned.result.notes
        and plan.binlogs.keys() == planned.groups[0].binlogs.keys()
        and not any(plan.ends.values())
    )


def _is_plain_use(use: ContextUse) -> bool:
    """True if nothing of a statement's context is asked for."""
    return not (
        use.is_program
        or use.may_skip_rows
        or use.changes_session
        or use.needs_microseconds
        or use.reads_diagnostics
        or use.routines
    )
