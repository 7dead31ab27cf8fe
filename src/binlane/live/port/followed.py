"""A session that is followed: judged before its statements run, and carried out behind them.

What the model refuses never reaches the source. What it lets pass is told again what came of it, and what the
model then says of the groups that the source wrote is given to `Attributions`.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from binlane.client.questions import NotUnderstoodError
from binlane.errors import SourceDownError, StatementError, UnjudgedError
from binlane.live.gateway.answers import RowsAnswer
from binlane.live.gateway.judge import (
    AS_IT_IS,
    NOTHING_LEFT,
    PASS,
    ClientStatement,
    Done,
    Give,
    OkFields,
    PassedEnds,
    Refuse,
    RepeatedStatement,
    RunVerdict,
    StatementReply,
    TextReading,
    Unseen,
    Verdict,
)
from binlane.live.port.alike_statements import AlikeStatements, Repeated, outcome_of
from binlane.live.port.binlog_variables import concerns
from binlane.live.port.context_reader import Needs, reads_diagnostics
from binlane.live.port.followed_session import (
    FollowedSession,
    ObjectsUnknownError,
    hides_warning,
    may_make_tables,
)
from binlane.live.port.group_tracking import UnderWay, passes_over_errors
from binlane.live.port.long_statements import TURN, turn_ends
from binlane.live.port.statement_refusals import (
    NO_BULK,
    NOT_PREPARED,
    is_logged_by_its_text,
    may_take_rows,
    not_known,
)
from binlane.live.port.unseen_statements import UnseenStatements
from binlane.live.port.variable_answers import VariableAnswers
from binlane.log.codec.client_text import is_alike
from binlane.log.codec.packets.flags import ServerStatus
from binlane.log.codec.packets.results import ResultSet
from binlane.names import quote
from binlane.statements.programs.runner import is_program
from binlane.statements.session.planning_session import PlanningSession
from binlane.statements.session.report import StatementPlan
from binlane.statements.session.statement_template import StatementTemplate
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.statement_kinds import DDL_KINDS, StatementKind
from binlane.statements.sql.tokens import LONG

_ACTIVE: Final = int(ServerStatus.IN_TRANSACTION)

_Replied = tuple[UnderWay | Repeated, Sequence[StatementReply]]
"""A statement that the source has run, and its replies."""


class Followed:
    """A session that the model goes along with.

    Attributes:
        session: The client's session, and all that is known of it.

    Args:
        session: The client's session, as it begins to be followed.
        lost: Called when the model does not know the session's state any longer.
    """

    def __init__(self, session: FollowedSession, lost: Callable[[], None]) -> None:
        self.session = session
        self._lost = lost
        self._answers = VariableAnswers(session)
        self._alike = AlikeStatements(session)
        self._reading = TextReading(session.model.session.dialect, "")
        # Statements that the source runs, until all is told of them.
        self._under_way: Sequence[UnderWay | Repeated] = ()
        # The last statement, if it has run as others like it.
        self._last: Repeated | None = None
        self._unseen = UnseenStatements(session, self._alike)

    @property
    def reading(self) -> TextReading | None:
        """Same as in `Judge`: None where the session's character set is not known."""
        reader, dialect = self.session.reader, self.session.model.session.dialect
        if reader.values is None or not reader.is_charset_known:
            return None
        charset = reader.values.client_charset
        if self._reading.dialect is not dialect or self._reading.character_set != charset:
            self._reading = TextReading(dialect, charset)
        return self._reading

    @property
    def reads_long_texts(self) -> bool:
        """Same as in `Judge`."""
        model = self.session.model
        return not model.session.may_log_rows or model.has_images

    @property
    def hides_gtids(self) -> bool:
        """Same as in `Judge`."""
        return self.session.tracking.hides_gtids

    async def learn(self) -> None:
        """Same as in `Judge`."""
        if not self.session.reader.is_charset_known:
            await self.session.read_context()

    # Before a statement runs ----------------------------------------------------------------------

    def judge(self, statements: Sequence[ClientStatement]) -> Verdict | None:
        """Same as in `Judge`."""
        if len(statements) != 1:
            return None if statements else PASS
        told, _, is_complete, _ = statements[0]
        self._last = None
        session = self.session
        if not is_complete or len(told) > LONG:
            return None
        reader, model = session.reader, session.model
        is_as_told = reader.is_charset_known and told.isascii()
        text = told if is_as_told else reader.read_text(told)
        if text is None or session.shared.definitions() is not session.definitions:
            return None
        effect = model.plain(text)
        repeated = None if effect is None else self._alike.begin(text, effect)
        if repeated is not None:
            self._under_way = (repeated,)
            return AS_IT_IS
        is_ready = session.is_fit and not session.wants_tracking
        expected = model.preview_known(text) if is_ready else None
        return None if expected is None else self._let_run(text, expected, effect)

    def _let_run(
        self, text: str, expected: StatementPlan, effect: StatementTemplate | None
    ) -> Verdict | None:
        """Let a statement run whose kind is known; None if its context has to be asked for first."""
        session = self.session
        facts = session.facts_of(text)
        if self._answers.concern(facts):
            return None
        needs = session.needs(facts, expected)
        if needs is not None and session.reader.must_ask(needs):
            return None
        one, verdict = self._send(text, facts, expected, needs)
        if effect is not None and verdict == AS_IT_IS:
            self._alike.keep(one, effect)
        return verdict

    async def judge_later(self, statements: Sequence[ClientStatement]) -> Verdict:
        """Same as in `Judge`."""
        session = self.session
        session.make_current()
        if session.wants_tracking:
            await session.tracking.begin()
        reader = session.reader
        must_ask = not (reader.is_charset_known or all(is_alike(one.text) for one in statements))
        is_as_before = must_ask and self._reads_diagnostics(statements)
        if must_ask and not is_as_before:
            await session.read_context()
        texts: list[str] = []
        for one in statements:
            text = one.text if is_as_before else reader.read_text(one.text)
            if text is None or not one.is_complete:
                return await self._judge_unread(one)
            texts.append(text)
        await session.read_long(texts)
        try:
            if len(texts) > 1:
                return await self._judge_several(texts)
            return await self._judge_one(texts[0], is_prepared=statements[0].is_prepared)
        except ObjectsUnknownError as error:
            unknown = error.error
        return await self._judge_without_objects(texts, unknown)

    def _reads_diagnostics(self, statements: Sequence[ClientStatement]) -> bool:
        """True if a statement would see that something was asked before it.

        The statement is read in the character set that was known last: programs in statements that ran since
        may have set another one.
        """
        if len(statements) > 1 or not statements[0].text.isascii():
            return False
        return reads_diagnostics(self.session.facts_of(statements[0].text))

    async def _judge_without_objects(self, texts: Sequence[str], error: StatementError) -> Verdict:
        """Judge statements of which not all objects are known."""
        session, facts = self.session, [self.session.facts_of(text) for text in texts]
        model = session.model
        if may_take_rows(model.session) or all(
            is_logged_by_its_text(one, model.session) for one in facts
        ):
            return self.run_unread(*facts)
        if len(facts) == 1 and not isinstance(error, SourceDownError):
            own = await session.refusals.of_source(facts[0], session.as_sent)
            if own is not None:
                return Refuse(own)
        raise not_known(str(error), model) if isinstance(error, NotUnderstoodError) else error

    async def _judge_unread(self, statement: ClientStatement) -> Verdict:
        """Judge a command whose text is not known, or not with its values."""
        session = self.session
        text = session.reader.read_text(statement.text) if statement.is_prepared else None
        if statement.is_bulk and not session.model.session.may_log_rows:
            return Refuse(NO_BULK)
        if not text:
            return self.run_unread(None)
        facts = await session.known_facts(text)
        return await self._judge_text(text, facts, is_complete=False)

    def run_unread(self, *ran: StatementFacts | None) -> Verdict:
        """Let a command run that is not followed: knowledge of the session does not hold behind it.

        Args:
            ran: Parsed facts of its statements; None for one that is not read.
        """
        session = self.session
        self._lose_step(*ran)
        session.warnings.forget()
        session.tracking.intend_unread(session.model)
        for one in filter(None, ran):
            session.shared.catalog.changed(one, session.model.session.database)
        session.reader.lost_track()
        return RunVerdict(session.reader.owed(None))

    async def _judge_one(self, text: str, *, is_prepared: bool) -> Verdict:
        session, answers = self.session, self._answers
        facts = await session.known_facts(text)
        answer = await answers.answer(facts)
        if answer is not None:
            return Give(answer)
        await answers.learn_prepared(facts)
        rewritten = None if is_prepared else await answers.with_prepared_text(facts)
        if rewritten is None and concerns(facts):
            rewritten = await answers.rewrite(facts)
        if rewritten is None:
            return await self._judge_text(text, facts)
        if rewritten.global_values:
            return await answers.set_global(rewritten)
        if rewritten.source != rewritten.model:
            session.tracking.planning.know_rewritten(session.model.session.state.number + 1)
        text, facts = rewritten.model, await session.known_facts(rewritten.model)
        verdict = await self._judge_text(text, facts)
        if not isinstance(verdict, RunVerdict) or rewritten.source == text:
            return verdict
        for one in self._under_way:
            if isinstance(one, UnderWay):
                one.rewritten = rewritten
        if is_prepared and facts.effects.kind is not StatementKind.SET:
            # The client takes its rows in another form than those of a text.
            return Refuse(NOT_PREPARED) if facts.statement_assignments else verdict
        return replace(verdict, text=session.as_sent(rewritten.source))

    async def _judge_text(
        self, text: str, facts: StatementFacts, *, is_complete: bool = True
    ) -> Verdict:
        """Judge a statement; of one that is not complete nothing is text."""
        session, version = self.session, self.session.shared.catalog.version
        expected = await session.preview(text, facts)
        refusal = await session.refusal(expected.result, facts)
        if isinstance(refusal, UnjudgedError) and await session.learn_variables(facts):
            expected = await session.preview(text, facts)
            refusal = await session.refusal(expected.result, facts)
        if isinstance(refusal, UnjudgedError):
            refusal = await session.refusals.of_source(facts, session.as_sent) or refusal
        if refusal is not None:
            return Refuse(refusal)
        if expected.result.unanalysed is not None and may_take_rows(session.model.session):
            return self.run_unread(facts)
        needs = session.needs(facts, expected) if is_complete else None
        if needs is not None and session.reader.must_ask(needs):
            await session.read_context(needs)
        sent = self._send(text, facts, expected, needs)
        sent[0].catalog_version = version
        return sent[1]

    async def _judge_several(self, texts: Sequence[str]) -> Verdict:
        """Judge all statements of a packet, each behind those before it, before any of them runs."""
        session, model = self.session, self.session.model
        before = model.snapshot()
        under_way: list[UnderWay | Repeated] = []
        sources: list[str] = []
        is_for_all = model.is_for_all
        try:
            for text in texts:
                await turn_ends(len(sources))
                facts, rewritten = await session.known_facts(text, is_in_packet=True), None
                sources.append(text)
                if concerns(facts):
                    rewritten = await self._answers.rewrite_in_turn(facts)
                    sources[-1] = rewritten.source
                    facts = await session.known_facts(rewritten.model, is_in_packet=True)
                expected = model.execute(facts.text)
                refusal = await session.refusal(expected.result, facts)
                if refusal is not None:
                    return Refuse(refusal)
                is_for_all |= model.is_for_all
                # A value that the source gives now may be another one when the statement's turn
                # comes: such a statement goes as rows.
                under_way.append(
                    UnderWay(text=facts.text, facts=facts, expected=expected, rewritten=rewritten)
                )
        finally:
            model.restore(before)
        tracking = session.tracking
        if is_for_all and not tracking.is_on and not session.is_in_transaction:
            await tracking.begin()
        tracking.intend_unread(model, is_for_all=is_for_all)
        self._under_way = under_way
        # Behind a comment to the end of its line nothing else may stand.
        owed, is_same = session.reader.owed(None), sources == list(texts)
        return RunVerdict(owed, text=None if is_same else session.as_sent("\n;".join(sources)))

    def _send(
        self,
        text: str,
        facts: StatementFacts,
        expected: StatementPlan,
        needs: Needs | None,
    ) -> tuple[UnderWay, Verdict]:
        """Note a statement as under way, in the journal, too, if it makes groups, and let it run."""
        session = self.session
        model, tracking = session.model, session.tracking
        begun = None if needs is None else session.reader.begin(needs)
        context, before = (None, session.reader.owed(facts)) if begun is None else begun
        if context is None and expected.has_texts:
            # Nothing of it can be in binlogs as text.
            model.have_rows(len(expected.numbers))
            expected = model.preview(text)
        one = UnderWay(
            text=text,
            facts=facts,
            expected=expected,
            context=context,
            use=session.use(facts, needs),
            catalog_version=session.shared.catalog.version,
            sent_s=time.monotonic(),
        )
        if context is not None:
            tracking.planning.know(expected.numbers, context)
        tracking.intend(one, model)
        self._under_way = (one,)
        return one, RunVerdict(before)

    async def shown(self, statement: str, result: ResultSet) -> RowsAnswer:
        """Same as in `Judge`."""
        return await self._answers.shown(statement, result)

    async def unjudged(self) -> Verdict:
        """Same as in `Judge`."""
        model = self.session.model
        if not may_take_rows(model.session):
            return Refuse(not_known("binlane failed to find out what it would do", model))
        return self.run_unread(None)

    def unseen(self) -> Unseen | None:
        """Same as in `Judge`: statements pass behind one that was like others."""
        one = self._last
        return None if one is None or self.reading is None else self._unseen.terms(one)

    def repeat(self, statements: Sequence[RepeatedStatement], ended: PassedEnds | None) -> None:
        """Same as in `Judge`."""
        self._last = None
        self._unseen.repeat(statements, ended)

    def go_on(self, text: str, effect: object = None) -> None:
        """Same as in `Judge`: a read is taken for one whose values are not known, so not complete."""
        session, self._last = self.session, None
        if effect is not None:
            self._under_way = (self._unseen.go_on(text, effect),)
            return
        session.make_current()
        read = session.reader.read_text(text) or text
        self._send(read, session.facts_of(read), session.model.preview(read), None)

    # Behind it ------------------------------------------------------------------------------------

    def local_data(self, data: bytes) -> None:
        """Same as in `Judge`."""
        one = self._under_way[-1] if self._under_way else None
        if isinstance(one, UnderWay) and one.context is not None:
            one.context.add_data(data)

    def used(self, database: str) -> None:
        """Same as in `Judge`."""
        self._last = None
        self.session.model.execute(f"USE {quote(database)}")
        self.session.reader.used()
        self.session.warnings.forget()

    def done(self, replies: Sequence[StatementReply]) -> Done:
        """Same as in `Judge`."""
        session, under_way = self.session, self._under_way
        if replies:
            session.is_in_transaction = bool(replies[-1].status & _ACTIVE)
        if not (replies and under_way):
            self._unsent(replies)
            return NOTHING_LEFT
        if len(under_way) == 1:
            one = under_way[0]
            if isinstance(one, Repeated) and self._alike.has_read(one, replies):
                self._under_way = ()
                self._last = one
                return NOTHING_LEFT
            warnings = self._follow(one, replies)
        else:
            behind = deque(self._each_reply(under_way, replies))
            warnings = self._follow_turn(behind)
            if behind:
                # Until all are followed they are under way.
                self._let_others_know(behind)
                more = self._more_warnings(*behind[-1])
                return Done(more, partial(self._follow_rest, behind))
        self._under_way = ()
        if session.long_texts.held:
            session.long_texts.forget()
        if session.tracking.is_settled:
            return Done(warnings) if warnings else NOTHING_LEFT
        return Done(warnings, partial(session.tracking.settle, session.model))

    def done_at_once(self, ok: OkFields) -> bool:
        """Same as in `Judge`."""
        one = self._under_way[0] if len(self._under_way) == 1 else None
        if isinstance(one, Repeated):
            self.session.is_in_transaction = bool(ok[2] & _ACTIVE)
            if self._alike.has_run(one, ok):
                self._under_way = ()
                self._last = one
                return True
        return False

    def _unsent(self, replies: Sequence[StatementReply]) -> None:
        """Note a command that was not read, or was not sent: what was intended does not come."""
        session, under_way = self.session, self._under_way
        session.tracking.answer_unread(replies)
        if under_way:
            session.tracking.withdraw(under_way)
            session.reader.unsent()
            session.long_texts.forget()
            self._under_way = ()

    def _each_reply(
        self, under_way: Sequence[UnderWay | Repeated], replies: Sequence[StatementReply]
    ) -> Sequence[_Replied]:
        """The replies to each statement of several; none where they cannot be told apart."""
        if any(isinstance(one, UnderWay) and is_program(one.facts) for one in under_way):
            self.session.tracking.muddle(under_way, replies)
            self._lose_step(None)
            return []
        return [(one, [reply]) for one, reply in zip(under_way, replies, strict=False)]

    def _follow_turn(self, behind: deque[_Replied]) -> int:
        """Follow the first of some statements, and take them out.

        Returns:
            How many more warnings the client is told of the last of them.
        """
        warnings = 0
        for _ in range(min(TURN, len(behind))):
            warnings = self._follow(*behind.popleft())
        return warnings

    async def _follow_rest(self, behind: deque[_Replied]) -> None:
        """Follow many statements, in turns with other sessions."""
        while behind:
            await asyncio.sleep(0)
            self._follow_turn(behind)
        self._under_way = ()
        self.session.long_texts.forget()
        await self.session.tracking.settle(self.session.model)

    def _let_others_know(self, behind: Iterable[_Replied]) -> None:
        """Let no session be judged meanwhile by objects that the source has no more."""
        catalog, database = self.session.shared.catalog, self.session.model.session.database
        for one, replies in behind:
            if isinstance(one, UnderWay) and one.facts.effects.kind in DDL_KINDS:
                catalog.changed(one.facts, database, errno=replies[-1].errno)

    def _more_warnings(self, one: UnderWay | Repeated, replies: Sequence[StatementReply]) -> int:
        """Predict the result of `_follow` for a statement from the model's preview."""
        if isinstance(one, Repeated):
            return 0
        notes = sum(note.is_told for note in one.expected.result.notes)
        return notes - hides_warning(self.session.model.session, one.facts, replies)

    def stumbled(self) -> None:
        """Same as in `Judge`."""
        session, under_way = self.session, self._under_way
        session.tracking.stumbled(one.number for one in under_way if one.is_intended)
        self._under_way = ()
        session.tracking.answer_unread(())
        session.long_texts.forget()
        session.reader.lost_track()
        self._lose_step(*(one.facts for one in under_way if isinstance(one, UnderWay)))

    def _lose_step(self, *ran: StatementFacts | None) -> None:
        """Note that the model does not know the session's state any longer, because of some statements."""
        objects = self.session.model.session.objects
        makes_tables = any(one is None or may_make_tables(one, objects) for one in ran)
        hides_tables = makes_tables or bool(objects.temporary_tables())
        self.session.tracking.lose_step(hides_tables=hides_tables)
        self._lost()

    def _follow(self, one: UnderWay | Repeated, replies: Sequence[StatementReply]) -> int:
        """Let the model execute the statement that the source has run, and tell its groups.

        Returns:
            How many more warnings the client is told of than the source has.
        """
        if isinstance(one, Repeated):
            one = self._alike.looked_at(one)
        session, reply = self.session, replies[-1]
        model, tracking = session.model, session.tracking
        tracking.note_judged(one.facts, one.catalog_version, model.session)
        planned = _carried_out(model, one, reply)
        session.reader.ran(one.facts, one.use)
        has_failed = planned.result.error is not None
        if planned.result.unanalysed is not None or has_failed != bool(reply.errno):
            self._lose_step(one.facts)
        self._change_objects(one.facts, reply)
        if one.context is not None:
            one.context.answered(
                errno=None if passes_over_errors(one.facts, reply) else reply.errno,
                insert_id=reply.insert_id,
                affected_rows=reply.affected_rows,
                info=reply.info,
            )
            tracking.know_run(one, planned)
        if not (reply.errno or _is_as_active(model, is_active=bool(reply.status & _ACTIVE))):
            self._lose_step(one.facts)
        more = session.warnings.follow(
            *(one.facts, replies, planned.result.notes),
            hides=hides_warning(model.session, one.facts, replies),
        )
        tracking.follow(one, planned, model, replies)
        if one.rewritten is not None and one.rewritten.tracking is not None and not has_failed:
            tracking.note(one.rewritten.tracking)
        if not model.session.is_transaction_active and not model.waits:
            tracking.end_transaction()
        return more

    def _change_objects(self, facts: StatementFacts, reply: StatementReply) -> None:
        """Forget the objects that a statement may have changed."""
        catalog, session = self.session.shared.catalog, self.session.model.session
        if facts.effects.kind in {*DDL_KINDS, StatementKind.SET} or is_program(facts):
            catalog.changed(facts, session.database, errno=reply.errno)
            for executed in session.executed(facts):
                catalog.changed(executed, session.database)

    async def ended(self) -> None:
        """Same as in `Judge`."""
        if not any(one.is_intended for one in self._under_way):  # else the source may be writing
            await self._drop_temporary()
        self.end_tracking()

    def end_tracking(self) -> None:
        """Say that nothing more is told of the session's groups."""
        self.session.tracking.end(is_under_way=bool(self._under_way))

    async def _drop_temporary(self) -> None:
        """Have binlogs drop the temporary tables that the source has dropped by itself."""
        context = self.session.reader.last()
        planned = self.session.model.disconnect()
        if planned.mark is not None and context is not None:
            await self.session.tracking.mark_end(planned, context, self.session.model)


def _carried_out(model: PlanningSession, one: UnderWay, reply: StatementReply) -> StatementPlan:
    """Let the model execute a statement whose outcome is known, and give its account."""
    if one.context is None and one.expected.has_texts:
        model.have_rows(len(one.expected.numbers))
    return model.execute(one.text, outcome_of(one.facts, reply))


def _is_as_active(model: PlanningSession, *, is_active: bool) -> bool:
    """True if the model's transaction has begun to work if the source's has, or has by now.

    No reply tells how much of a failed statement was left there, and with autocommit=0 much that changes no
    rows begins the transaction: EXPLAIN, and all that asks the tables of MySQL's dictionary.
    """
    session = model.session
    if is_active and session.is_in_transaction and not model.waits:
        session.begin_to_work()
    return session.is_transaction_active is is_active
