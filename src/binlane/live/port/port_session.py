"""One client's session through the port: judged before its statements run, followed after.

A session of the model (`session.Session`) goes along with the client's session on the source. What
the model refuses never reaches the source. What it lets pass is told again what came of it, and
what the model then says of the groups that the source wrote is given to `Attributions`.

Where model and source disagree on anything, the model is wrong: from there on nothing of the
transaction is planned, which makes rows of it, and the model begins anew behind it.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

from binlane.client.prepared_texts import question as question_of_text
from binlane.client.prepared_texts import with_text
from binlane.client.questions import NotUnderstoodError
from binlane.client.source_objects import Source
from binlane.errors import SourceDownError, StatementError, StoreError, UnjudgedError
from binlane.live.gateway.answers import OkAnswer, RowsAnswer
from binlane.live.gateway.handler import SessionContext
from binlane.live.gateway.judge import (
    AS_IT_IS,
    NOTHING_LEFT,
    PASS,
    ClientStatement,
    Done,
    Give,
    Pass,
    Reading,
    Refuse,
    Reply,
    Run,
    Verdict,
)
from binlane.live.port.binlog_variables import (
    NAMES,
    Rewritten,
    concerns,
    known_of,
    mended,
    question,
    rewrite,
    shown,
    shows,
)
from binlane.live.port.context_reader import (
    ContextReader,
    Needs,
    may_run_programs,
    reads_diagnostics,
)
from binlane.live.port.context_use import ContextUse
from binlane.live.port.group_tracking import GroupTracking, UnderWay
from binlane.live.port.known_statements import (
    Circumstances,
    Foreseen,
    KnownRead,
    KnownWrite,
    known_write,
)
from binlane.live.port.live_catalog import LiveCatalog
from binlane.live.port.long_texts import TURN, LongTexts, turn_ends
from binlane.live.port.own_questions import own_questions
from binlane.live.port.parts import FindParts, PortParts
from binlane.live.port.refusals import (
    NO_BULK,
    NOT_PREPARED,
    Refusals,
    is_logged_by_its_text,
    may_take_rows,
    not_known,
)
from binlane.live.port.unfollowed import Unfollowed, are_unscoped_rows
from binlane.live.port.user_variables import asked as asked_variable
from binlane.live.port.warnings import Warnings
from binlane.log.codec.client_text import written_text
from binlane.log.codec.format import flavor_of
from binlane.log.codec.packets.flags import ServerStatus
from binlane.log.codec.packets.framing import text_of
from binlane.log.codec.packets.results import ResultSet
from binlane.log.codec.types import ColumnType
from binlane.names import quote
from binlane.statements.policy.refusals import NO_OUTCOME, Outcome
from binlane.statements.programs.host import STEPS_BESIDE_OTHERS_MAX
from binlane.statements.programs.routines import trimmed
from binlane.statements.programs.runner import is_program
from binlane.statements.scope.definition import Definition
from binlane.statements.session.group_plans import Planned, PlannedSession
from binlane.statements.session.recurring import KnownEffect
from binlane.statements.session.report import StatementResult
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.evaluation.evaluator import content_of
from binlane.statements.sql.evaluation.functions import is_built_in
from binlane.statements.sql.evaluation.values import UNKNOWN, Text
from binlane.statements.sql.facts import (
    DDL_KINDS,
    WRITING_KINDS,
    StatementFacts,
    StatementKind,
)
from binlane.statements.sql.lexis import lexed_as
from binlane.statements.sql.reading import read
from binlane.statements.sql.servers import Dialect, LoggingMode
from binlane.statements.sql.stored import runs_nothing_stored
from binlane.statements.sql.tokens import LONG, server_text
from binlane.statements.sql.tree.expressions import Literal
from binlane.statements.sql.tree.statements import Prepare

logger = logging.getLogger(__name__)

_NUMBERS: Final = (ColumnType.LONGLONG, ColumnType.DOUBLE, ColumnType.NEWDECIMAL)
_BARE: Final = re.compile(r"\w+", re.ASCII)
_CHANGING: Final = frozenset(
    (StatementKind.INSERT, StatementKind.REPLACE, StatementKind.UPDATE, StatementKind.DELETE)
)
_WITHOUT_ROWS: Final = frozenset((StatementKind.UPDATE, StatementKind.DELETE))
_ALIKE_MAX: Final = 256
_NONE_CHANGED: Final = " Changed: 0 "
"""In the OK packet of an UPDATE."""
_ACTIVE: Final = int(ServerStatus.IN_TRANSACTION)


_Replied = tuple[UnderWay, Sequence[Reply]]
"""A statement that the source has run, and its replies."""
_KnownUnderWay = tuple[str, KnownRead | KnownWrite, int, Foreseen | None]
"""A statement that the source runs, of which others have run that are alike: its text, what is known
of them, the number it has, and its plan; None of one that is not planned."""


class _NotToldError(Exception):
    """The source does not tell of an object that a statement uses.

    Attributes:
        told: Error that the client gets.
    """

    def __init__(self, told: StatementError) -> None:
        super().__init__(str(told))
        self.told = told


class PortSession:
    """Judges and follows one session; a `Judge` of the gateway.

    Args:
        client: The session on the source.
        find_parts: Gives what it shares with others.
    """

    def __init__(self, client: SessionContext, find_parts: FindParts) -> None:
        self._client = client
        self._find_parts = find_parts
        self._flavor = flavor_of(client.server_version)
        self._first_dialect = Dialect(flavor=self._flavor.value)
        self._shared: PortParts | None = None
        self._is_relayed = False
        self._model: PlannedSession | None = None
        self._reading: Reading | None = None
        self._catalog = SchemaCatalog(self._flavor)
        self._definitions: tuple[Definition, ...] = ()
        self._reader: ContextReader | None = None
        self._tracking = GroupTracking(client)
        self._under_way: list[UnderWay] = []
        # Statements whose replies are there, until all is told of them.
        self._followed: list[UnderWay] = []
        self._known_under_way: _KnownUnderWay | None = None
        self._alike: dict[KnownEffect, KnownRead | KnownWrite] = {}
        self._long_texts = LongTexts()
        self._unfollowed = Unfollowed(self._first_dialect, self._long_texts)
        self._warnings = Warnings(self._flavor)
        self._refusals = Refusals(client)
        self._is_out_of_step = False
        self._is_in_transaction = False
        # Temporary tables may be there of which the model does not know.
        self._hides_tables = False

    # Calls of the gateway -------------------------------------------------------------------------

    @property
    def reading(self) -> Reading | None:
        """The way in which the source reads the session's next statement; None where that is not known."""
        if self._is_relayed:
            return Reading(self._first_dialect, "utf8mb4")
        model, reader = self._model, self._reader
        if model is None or reader is None or reader.values is None or not reader.is_charset_known:
            return None
        dialect, charset = model.session.dialect, reader.values.client_charset
        found = self._reading
        if found is None or found.dialect is not dialect or found.character_set != charset:
            found = self._reading = Reading(dialect, charset)
        return found

    @property
    def hides_gtids(self) -> bool:
        """True if the source tells GTIDs that the client has not asked for."""
        return self._tracking.hides_gtids

    @property
    def reads_long_texts(self) -> bool:
        """True if the events of long statements in binlogs depend on the statements' texts."""
        model, shared = self._model, self._shared
        if model is not None:
            return not model.session.may_log_rows or model.has_images
        if shared is None:
            return not self._is_relayed
        return any(one.logging_mode is LoggingMode.STATEMENT for one in shared.definitions())

    async def learn(self) -> None:
        """Find out how the source reads the session's next statement."""
        model = self._model or await self._begin()
        reader = self._reader
        if model is not None and reader is not None and not reader.is_charset_known:
            await self._read_context(model, reader)

    async def start(self, *, is_reset: bool) -> None:
        """Begin anew: the session's state is asked for when its first statement needs it."""
        if is_reset:
            await self._drop_temporary()
        self._forget()

    def judge(self, statements: Sequence[ClientStatement]) -> Verdict | None:
        """Give the verdict on a command, if that is known without asking anybody."""
        if self._is_relayed or not statements:
            return PASS
        if len(statements) != 1:
            return None
        told, _, is_complete, _ = statements[0]
        model, reader, shared = self._model, self._reader, self._shared
        if not is_complete or len(told) > LONG:
            return None
        if model is None or reader is None:
            return self._unfollowed.judge(told, shared)
        if self._is_out_of_step:
            # Where warnings are changed, those that are not the source's are still to be put in.
            is_apart = self._begins_anew and not self._warnings.are_changed
            return AS_IT_IS if is_apart and self._unfollowed.only_reads_diagnostics(told) else None
        is_as_told = reader.is_charset_known and told.isascii()
        text = told if is_as_told else reader.read_text(told)
        if text is None or shared is None or shared.definitions() is not self._definitions:
            return None
        effect = model.unchanging(text)
        known = None if effect is None else self._alike.get(effect)
        if known is not None and self._let_known_run(text, known, model, reader, shared):
            return AS_IT_IS
        if not self._is_fit(shared) or self._wants_tracking(model):
            return None
        expected = model.preview_known(text)
        return None if expected is None else self._let_run(text, model, reader, expected, effect)

    async def judge_later(self, statements: Sequence[ClientStatement]) -> Verdict:
        """Give the verdict on a command; the source is asked for unknown objects and values.

        Raises:
            StatementError: If the source does not tell what has to be known.
            PeerError: If it goes away.
        """
        verdict: Verdict | None = None
        try:
            verdict = await self._judge_later(statements)
        finally:
            if not isinstance(verdict, Run):
                self._long_texts.forget()
        return verdict

    async def _judge_later(self, statements: Sequence[ClientStatement]) -> Verdict:
        if self._model is None:
            shared = self._shared = await self._find_parts()
            if shared is not None and await self._unfollowed.concern_nobody(statements, shared):
                return Pass()
        model = await self._begun()
        reader, shared = self._reader, self._shared
        if model is None or reader is None or shared is None:
            return Pass()
        self._make_current(model, shared)
        if self._wants_tracking(model):
            await self._tracking.begin(shared)
        must_ask = any(reader.must_ask_to_read(one.text) for one in statements)
        is_as_before = must_ask and self._reads_what_is_left(model, statements)
        if must_ask and not is_as_before:
            await self._read_context(model, reader)
        texts: list[str] = []
        for one in statements:
            text = one.text if is_as_before else reader.read_text(one.text)
            text = text if one.is_complete else None
            if text is None:
                return await self._judge_unread(model, reader, one)
            texts.append(text)
        session = model.session
        if await self._long_texts.read(texts, session.database, session.dialect):
            self._make_current(model, shared)
        return await self._judge_read(model, reader, texts, is_prepared=statements[0].is_prepared)

    async def _judge_read(
        self,
        model: PlannedSession,
        reader: ContextReader,
        texts: Sequence[str],
        *,
        is_prepared: bool,
    ) -> Verdict:
        """Judge statements of which the texts are known, if not all that they use."""
        try:
            if len(texts) > 1:
                return await self._judge_several(model, texts)
            return await self._judge_one(model, reader, texts[0], is_prepared=is_prepared)
        except _NotToldError as error:
            told = error.told
        session = model.session
        facts = [read(one, database=session.database, dialect=session.dialect) for one in texts]
        if may_take_rows(session) or all(is_logged_by_its_text(one, session) for one in facts):
            return self._run_unread(*facts)
        if len(facts) == 1 and not isinstance(told, SourceDownError):
            own = await self._refusals.of_source(facts[0], self._as_sent)
            if own is not None:
                return Refuse(own)
        raise not_known(str(told), model) if isinstance(told, NotUnderstoodError) else told

    @staticmethod
    def _reads_what_is_left(model: PlannedSession, statements: Sequence[ClientStatement]) -> bool:
        """True if a statement would see that something was asked before it.

        The statement is read in the character set that was known last: programs in statements that ran since
        may have set another one.
        """
        text, session = statements[0].text, model.session
        if len(statements) > 1 or not text.isascii():
            return False
        return reads_diagnostics(read(text, database=session.database, dialect=session.dialect))

    async def _read_context(
        self, model: PlannedSession, reader: ContextReader, needs: Needs | None = None
    ) -> None:
        """Ask for the session's context, and have the model read in its character set."""
        await reader.read(self._client.query_source, needs)
        if reader.values is not None and reader.is_charset_known:
            charset = reader.values.client_charset
            if lexed_as(charset) != model.session.dialect.charset:
                model.execute(f"SET SESSION character_set_client = {charset}")

    async def state_now(self) -> tuple[LiveCatalog, Session] | None:
        """The objects, and the model as the client's session is; None where it is not followed.

        Raises:
            StatementError: If the source does not tell what has to be known.
            PeerError: If it goes away.
        """
        model = await self._begun()
        shared = self._shared
        if model is None or shared is None or self._is_out_of_step:
            return None
        self._make_current(model, shared)
        return shared.catalog, model.session

    def local_data(self, data: bytes) -> None:
        """Take some of the file that LOAD DATA LOCAL sends."""
        for one in self._under_way[-1:]:
            if one.context is not None:
                one.context.add_data(data)

    def done(self, replies: Sequence[Reply]) -> Done:
        """Follow the replies to the command."""
        model, reader, known = self._model, self._reader, self._known_under_way
        if replies:
            self._is_in_transaction = bool(replies[-1].status & _ACTIVE)
        if (
            known is not None
            and model is not None
            and len(replies) == 1
            and self._follow_known(known, model, replies[0])
        ):
            self._known_under_way = None
            return NOTHING_LEFT
        under_way, self._under_way = self._under_way, []
        if not (under_way and replies):
            self._tracking.answer_unread(replies)
        if model is None or reader is None:
            return NOTHING_LEFT
        if known is not None:
            under_way = [self._looked_at(known, model, reader)]
            self._known_under_way = None
        self._followed = under_way
        if not under_way:
            return NOTHING_LEFT
        if not replies:
            # The command was not sent: what was intended does not come.
            self._tracking.withdraw(under_way)
            reader.unsent()
            self._long_texts.forget()
            self._followed = []
            return NOTHING_LEFT
        behind = deque(self._each_reply(under_way, replies))
        warnings = self._follow_turn(model, reader, behind)
        if behind:
            self._under_way = under_way  # as long as not all of them are followed
            self._let_others_know(model, behind)
            more = self._more_warnings(model, *behind[-1])
            return Done(more, partial(self._follow_rest, model, reader, behind))
        self._long_texts.forget()
        self._followed = []
        tracking = self._tracking
        return Done(warnings, None if tracking.is_settled else partial(tracking.settle, model))

    def used(self, database: str) -> None:
        """Follow COM_INIT_DB."""
        if self._model is not None and self._reader is not None:
            self._model.execute(f"USE {quote(database)}")
            self._reader.used()
            self._warnings.forget()

    def stumbled(self) -> None:
        """Rely on nothing any more that is known of the session, until it begins anew."""
        known, self._known_under_way = self._known_under_way, None
        sent = [*self._followed, *self._under_way]
        numbers = [one.expected.number for one in sent if one.is_intended]
        if known is not None and isinstance(known[1], KnownWrite):
            numbers.append(known[2])
        self._tracking.stumbled(numbers)
        self._followed.clear()
        self._under_way.clear()
        self._tracking.answer_unread(())
        self._long_texts.forget()
        if self._reader is not None:
            self._reader.lost_track()
        self._lose_step(*(one.facts for one in sent))

    async def unjudged(self) -> Verdict:
        """Let a command run of which nothing is known, or refuse it."""
        if self._shared is None:
            self._shared = await self._find_parts()
        if self._shared is None:
            self._is_relayed = True
            return PASS
        if not self._may_take_rows(self._shared):
            return Refuse(not_known("binlane failed to find out what it would do", self._model))
        return self._run_unread(None)

    def _may_take_rows(self, shared: PortParts) -> bool:
        """True if every binlog may have the rows of all that the session does."""
        if self._model is not None:
            return may_take_rows(self._model.session)
        return not shared.global_values() and are_unscoped_rows(shared.definitions())

    async def ended(self) -> None:
        """End the session: its temporary tables and locks are gone at the source."""
        await self._drop_temporary()
        self._forget()

    # Beginning and end ----------------------------------------------------------------------------

    def _forget(self) -> None:
        """Let go of the model, and of the tracking of its groups."""
        self._tracking.end(is_under_way=self._is_under_way)
        self._model = self._reader = None
        self._warnings.forget()
        self._under_way.clear()
        self._known_under_way = None
        self._long_texts.forget()
        self._alike.clear()
        self._unfollowed.forget()
        self._is_out_of_step = self._is_in_transaction = self._hides_tables = False

    async def _drop_temporary(self) -> None:
        """Have binlogs drop the temporary tables that the source has dropped by itself."""
        model, reader = self._model, self._reader
        if model is None or reader is None or self._may_be_writing or self._is_out_of_step:
            return
        context = reader.last()
        planned = model.disconnect()
        if planned.homeless and context is not None:
            await self._tracking.mark_end(planned, context, model)

    async def _begun(self) -> PlannedSession | None:
        """The model, begun if there is none that can go on; None where no session is judged."""
        model = self._model
        return await self._begin() if model is None or self._begins_anew else model

    @property
    def _begins_anew(self) -> bool:
        """True if the model does not know the session's state, and begins anew before it goes on."""
        return self._is_out_of_step and not self._is_in_transaction

    async def _begin(self) -> PlannedSession | None:
        """Begin to go along with the client's session, as it is now; None where none is judged."""
        parts = self._shared = await self._find_parts()
        if parts is None:
            self._is_relayed = True
            return None
        circumstances = await Source(self._client).circumstances()
        mending = mended(circumstances.variables)
        if mending is not None:
            await self._client.run_at_source(mending)
        self._definitions = parts.definitions()
        self._catalog = await parts.catalog.begun()
        session = Session(
            server=circumstances.server,
            objects=self._catalog,
            definitions=self._definitions,
            database=circumstances.database,
            logs_source=True,
            program_errors=parts.program_errors,
        )
        for name, value in circumstances.variables.items():
            if name not in NAMES:
                session.execute(f"SET SESSION {name} = {_literal(value)}")
        before = None if self._model is None else self._model.session
        session.begin_with(parts.global_values(), before)
        is_new = self._reader is None and not self._unfollowed.has_passed
        session.programs.hides_prepared = not is_new
        session.programs.effort.most = STEPS_BESIDE_OTHERS_MAX
        if circumstances.is_in_transaction:
            session.execute("BEGIN")
        model = self._model = PlannedSession(session)
        if self._reader is None:
            self._reader = ContextReader(circumstances.server)
        if not is_new:
            # The session may hold a timestamp of its own, which it has to take back.
            self._reader.lost_track()
        self._is_out_of_step = False
        # The transaction may have changes that are not known.
        self._tracking.spoils = circumstances.is_in_transaction or self._hides_tables
        self._is_in_transaction = circumstances.is_in_transaction
        if is_new:
            # Later it might have to be asked before a statement that reads warnings.
            await self._read_context(model, self._reader)
        return model

    def _wants_tracking(self, model: PlannedSession) -> bool:
        """True if it matters from now on which groups of the source are the session's."""
        is_off = self._tracking.shared is None
        return is_off and model.needs_plans and not self._is_in_transaction

    def _is_fit(self, shared: PortParts) -> bool:
        before = self._catalog.store.tables
        shared.catalog.fit(self._catalog)
        return shared.catalog.is_reached and self._catalog.store.tables is before

    def _make_current(self, model: PlannedSession, shared: PortParts) -> None:
        definitions = shared.definitions()
        if definitions is not self._definitions:
            self._definitions = definitions
            model.session.have(definitions)
        shared.catalog.fit(self._catalog)

    # Before a statement runs ----------------------------------------------------------------------

    async def _judge_unread(
        self, model: PlannedSession, reader: ContextReader, statement: ClientStatement
    ) -> Verdict:
        """Judge a command whose text is not known, or not with its values."""
        text = reader.read_text(statement.text) if statement.is_prepared else None
        if statement.is_bulk and not model.session.may_log_rows:
            return Refuse(NO_BULK)
        if not text:
            return self._run_unread(None)
        facts = await self._known(model, text)
        return await self._judge_text(model, reader, text, facts, is_complete=False)

    def _run_unread(self, *ran: StatementFacts | None) -> Verdict:
        """Let a command run that is not followed: knowledge of the session does not hold behind it.

        Args:
            ran: Parsed facts of its statements; None for one that is not read.
        """
        self._lose_step(*ran)
        self._warnings.forget()
        model, shared = self._model, self._shared
        if model is not None and shared is not None:
            self._tracking.intend_unread(model)
            for one in filter(None, ran):
                shared.catalog.changed(one, model.session.database)
        reader = self._reader
        if reader is None:
            self._unfollowed.has_passed = True
            return Pass()
        reader.lost_track()
        return Run(reader.owed(None))

    async def _judge_one(
        self, model: PlannedSession, reader: ContextReader, text: str, *, is_prepared: bool
    ) -> Verdict:
        facts = await self._known(model, text)
        answer = await self._answer(model, facts)
        if answer is not None:
            return Give(answer)
        await self._learn_prepared(model, facts)
        told = None if is_prepared else await self._with_prepared_text(model, reader, facts)
        if told is not None or concerns(facts):
            told = told or await self._rewrite(model, facts)
            if told.global_values:
                return await self._set_global(model, reader, told)
            if told.source != told.model:
                self._tracking.planning.know_rewritten(model.session.state.number + 1)
            text, facts = told.model, await self._known(model, told.model)
            verdict = await self._judge_text(model, reader, text, facts)
            if not isinstance(verdict, Run) or told.source == text:
                return verdict
            self._under_way[-1].rewritten = told
            if is_prepared and facts.effects.kind is not StatementKind.SET:
                # The client takes its rows in another form than those of a text.
                return Refuse(NOT_PREPARED) if facts.statement_assignments else verdict
            return replace(verdict, text=self._as_sent(told.source))
        return await self._judge_text(model, reader, text, facts)

    async def _learn_prepared(self, model: PlannedSession, facts: StatementFacts) -> None:
        """Ask for the text that PREPARE takes from a variable, if its EXECUTE may be refused without."""
        tree = facts.tree
        if (
            isinstance(tree, Prepare)
            and tree.verb == "PREPARE"
            and not may_take_rows(model.session)
        ):
            await self._learn_variables(model, facts)

    async def _read_prepared(self, tree: Prepare, facts: StatementFacts, session: Session) -> None:
        """Read a long text that is prepared or executed beside the event loop."""
        known = session.programs.prepared.get(tree.name.lower())
        texts = [] if known is None else list(filter(None, known.statements))
        if isinstance(tree.source, Literal) and len(facts.text) > LONG:
            texts = [trimmed(server_text(content_of(tree.source, facts), facts.dialect).read)]
        await self._long_texts.read(texts, session.database, session.dialect)

    async def _with_prepared_text(
        self, model: PlannedSession, reader: ContextReader, facts: StatementFacts
    ) -> Rewritten | None:
        """A statement with the text that an expression gives; None for others."""
        asked = question_of_text(facts)
        if asked is None or reader.values is None or may_take_rows(model.session):
            return None
        answer = await self._client.query_source(self._as_sent(asked))
        texts = with_text(facts, answer, reader.values.client_charset)
        return None if texts is None else Rewritten(source=texts[0], model=texts[1])

    async def _learn_variables(self, model: PlannedSession, facts: StatementFacts) -> bool:
        """Ask for user variables that the model does not know; True if there were any.

        A statement names them, or programs in it. What asking changes for the client, FOUND_ROWS() and
        on MySQL its warnings, weighs less than a refusal.
        """
        programs, names = model.session.programs, {use.name.lower() for use in facts.user_variables}
        if self._shared is not None:
            use = self._shared.uses.of(facts, model.session, self._shared.catalog.version)
            names.update(name for name, _ in use.variable_names)
        unknown = [name for name in names if programs.user_variables.get(name) in (None, UNKNOWN)]
        if not unknown:
            return False
        asked = [asked_variable(name) for name in unknown]
        columns = ", ".join(f"{value}, {collation}" for value, _, collation in asked)
        # Refused, such as by KILL QUERY, or in a character set that cannot be read.
        with suppress(StatementError, ValueError):
            answer = await self._client.query_source(f"SELECT {columns} LIMIT 1")
            for place, name in enumerate(unknown):
                text, collation = (answer.cell_text(2 * place + at) for at in (0, 1))
                if answer.heads[2 * place].type_code == ColumnType.LONGLONG and text:
                    programs.know(name, int(text))
                elif answer.heads[2 * place].type_code not in _NUMBERS:
                    programs.know(name, None if text is None else Text(text, collation or ""))
        return True

    async def _set_global(
        self, model: PlannedSession, reader: ContextReader, told: Rewritten
    ) -> Verdict:
        """Run a SET that holds for later sessions, from the moment when the client is answered."""
        assert self._shared is not None, "the model goes along with the source"
        facts = await self._known(model, told.model)
        refusal = await self._refusals.of(
            model.preview(told.model).result, facts, model, self._shared
        )
        if refusal is not None:
            return Refuse(refusal)
        reply = await self._client.run_at_source(self._as_sent(told.source))
        try:
            await asyncio.to_thread(self._shared.set_global_values, told.global_values)
        except StoreError as error:
            raise StatementError(f"the values were not kept: {error}", hint=error.hint) from None
        planned = model.execute(told.model)
        # A value that is taken back is the one of the settings again.
        model.session.know_global(self._shared.global_values())
        reader.ran(facts, None)
        self._warnings.follow(facts, [reply], planned.result.notes)
        return Give(OkAnswer(warnings=reply.warnings))

    async def _answer(self, model: PlannedSession, facts: StatementFacts) -> RowsAnswer | None:
        """The rows of a statement that asks for the binlogs' variables, or for warnings."""
        warnings, ask = self._warnings, self._client.query_source
        questions = warnings.questions(facts)
        if questions:
            errors_max = model.session.system_variable("max_error_count")
            return warnings.answer(
                facts,
                [await ask(each) for each in questions],
                errors_max if isinstance(errors_max, int) else None,
            )
        if shows(facts):
            known = known_of(model.session, tracking=self._tracking.client_value)
            return shown(facts, await ask(self._as_sent(facts.text)), known)
        return None

    async def shown(self, statement: str, result: ResultSet) -> RowsAnswer:
        """The rows of a statement that shows variables, as the binlogs have them."""
        model = None if self._is_relayed else self._model or await self._begin()
        if model is not None:
            facts = await self._known(model, statement)
            if shows(facts):
                return shown(
                    facts, result, known_of(model.session, tracking=self._tracking.client_value)
                )
        return RowsAnswer(result.heads, result.rows)

    async def _rewrite(self, model: PlannedSession, facts: StatementFacts) -> Rewritten:
        """Give the texts for the source and for the model of a statement on the binlogs' variables."""
        session = model.session
        known = known_of(session, self._warnings.count, self._tracking.client_value)
        asked = question(facts, known)
        if asked is not None and not runs_nothing_stored(facts):
            raise StatementError(
                "binlane doesn't yet support 'stored functions and tables in the value of a variable"
                " of the binlogs'",
                errno=1235,
                sqlstate="42000",
                hint="SET a user variable to it before",
            )
        return rewrite(
            facts,
            known,
            None if asked is None else await self._client.query_source(asked),
            flavor=self._flavor,
            has_temporary_tables=bool(session.objects.temporary_tables()),
        )

    async def _judge_text(
        self,
        model: PlannedSession,
        reader: ContextReader,
        text: str,
        facts: StatementFacts,
        *,
        is_complete: bool = True,
    ) -> Verdict:
        """Judge a statement; of one that is not complete nothing is text."""
        expected = await self._preview(model, text, facts)
        refusal = await self._refusal(expected.result, facts, model)
        if isinstance(refusal, UnjudgedError) and await self._learn_variables(model, facts):
            expected = await self._preview(model, text, facts)
            refusal = await self._refusal(expected.result, facts, model)
        if isinstance(refusal, UnjudgedError):
            refusal = await self._refusals.of_source(facts, self._as_sent) or refusal
        if refusal is not None:
            return Refuse(refusal)
        if expected.result.unanalysed is not None and may_take_rows(model.session):
            return self._run_unread(facts)
        needs = self._needs(model, reader, facts, expected) if is_complete else None
        if needs is not None and reader.must_ask(needs):
            await self._read_context(model, reader, needs)
        return self._send(text, model, facts, reader, expected, needs)

    def _as_rows(self, text: str, model: PlannedSession, expected: Planned) -> Planned:
        """Preview a statement of which nothing can be in binlogs as text."""
        model.have_rows(len(expected.numbers))
        return model.preview(text)

    async def _judge_several(self, model: PlannedSession, texts: Sequence[str]) -> Verdict:
        """Judge all statements of a packet, each behind those before it, before any of them runs."""
        before = model.snapshot()
        under_way: list[UnderWay] = []
        sources: list[str] = []
        is_for_all = model.is_for_all
        try:
            for text in texts:
                await turn_ends(len(sources))
                facts, told = await self._known(model, text, is_in_packet=True), None
                sources.append(text)
                if concerns(facts):
                    told = await self._rewrite_in_turn(model, facts)
                    sources[-1] = told.source
                    facts = await self._known(model, told.model, is_in_packet=True)
                expected = model.execute(facts.text)
                refusal = await self._refusal(expected.result, facts, model)
                if refusal is not None:
                    return Refuse(refusal)
                is_for_all |= model.is_for_all
                # A value that the source gives now may be another one when the statement's turn
                # comes: such a statement goes as rows.
                under_way.append(
                    UnderWay(text=facts.text, facts=facts, expected=expected, rewritten=told)
                )
        finally:
            model.restore(before)
        shared, is_off = self._shared, self._tracking.shared is None
        if is_for_all and is_off and shared is not None and not self._is_in_transaction:
            await self._tracking.begin(shared)
        self._tracking.intend_unread(model, is_for_all=is_for_all)
        self._under_way = under_way
        # Behind a comment to the end of its line nothing else may stand.
        owed = () if self._reader is None else self._reader.owed(None)
        is_same = sources == list(texts)
        return Run(owed, text=None if is_same else self._as_sent("\n;".join(sources)))

    def _as_sent(self, text: str) -> str:
        """A text that was made of the client's, as the gateway has it."""
        values = None if self._reader is None else self._reader.values
        written = None if values is None else written_text(text, values.client_charset)
        return text if written is None else text_of(written)

    async def _rewrite_in_turn(self, model: PlannedSession, facts: StatementFacts) -> Rewritten:
        """Rewrite one of several statements.

        Raises:
            StatementError: If the source would have to be asked before its turn comes.
        """
        what = "an expression"
        if question(facts, known_of(model.session, tracking=self._tracking.client_value)) is None:
            told = await self._rewrite(model, facts)
            if not told.global_values:
                return told
            what = "SET GLOBAL"
        raise StatementError(
            f"binlane doesn't yet support '{what} for a variable of the binlogs in a packet of several"
            " statements'",
            errno=1235,
            sqlstate="42000",
            hint="send the SET by itself",
        )

    @property
    def _is_under_way(self) -> bool:
        """True if the source runs a statement that is followed."""
        return bool(self._under_way) or self._known_under_way is not None

    @property
    def _may_be_writing(self) -> bool:
        """True if the source runs a statement that may make groups."""
        known = self._known_under_way
        is_known_write = known is not None and isinstance(known[1], KnownWrite)
        return is_known_write or any(one.is_intended for one in self._under_way)

    def _let_known_run(
        self,
        text: str,
        known: KnownRead | KnownWrite,
        model: PlannedSession,
        reader: ContextReader,
        shared: PortParts,
    ) -> bool:
        """Let a statement run of which others have run that are alike; False if it is none.

        Args:
            text: Text of the client's statement.
            known: Knowledge of the statements that are alike.
            model: Model of the client's session.
            reader: Reader of the session's context.
            shared: State that all sessions of the port share.
        """
        definitions, version, values = known.circumstances
        # The session's catalog may lack what was asked for since; this one's objects were known.
        if (
            definitions is not self._definitions
            or version is not shared.catalog.version
            or self._tracking.spoils
            or self._warnings.are_changed
            or not reader.begin_plain(values)
        ):
            return False
        number, plans = model.session.state.number + 1, None
        if isinstance(known, KnownWrite):
            plans, tracking = known.foreseen(text), self._tracking
            if tracking.shared is None or plans is None:
                return False
            shared.attributions.intend(tracking.thread_id, number, plans, plans.encoded())
        elif self._wants_tracking(model):
            return False
        self._known_under_way = text, known, number, plans
        return True

    def _follow_known(self, one: _KnownUnderWay, model: PlannedSession, reply: Reply) -> bool:
        """Follow a statement of a known kind; False where it did not do the same as the others.

        Args:
            one: The known statement that is under way.
            model: Model of the client's session.
            reply: Reply of the source to the statement.
        """
        _, known, number, plans = one
        shared, tracking = self._shared, self._tracking
        if (
            reply.errno
            or shared is None
            or known.circumstances.version is not shared.catalog.version
            or self._is_in_transaction is not model.session.state.transaction.is_active
        ):
            return False
        if isinstance(known, KnownRead):
            if reply.tracked or reply.gtids:
                return False
            model.repeat()
            return True
        if tracking.shared is None or plans is None or reply.is_result_set:
            return False
        if _has_no_rows(reply, is_update=known.is_update):
            return False
        model.repeat()
        last, insert_id = tracking.told((reply,)), reply.insert_id
        if last is None or not (insert_id and known.has_insert_id):
            shared.attributions.done(tracking.thread_id, number, last)
        else:
            plans = plans.with_id(insert_id)
            shared.attributions.done(tracking.thread_id, number, last, plans, plans.encoded())
        return True

    def _looked_at(
        self, one: _KnownUnderWay, model: PlannedSession, reader: ContextReader
    ) -> UnderWay:
        """Give a known statement in the form of an unknown one: nothing has changed meanwhile."""
        text, known, _, _ = one
        expected = model.preview(text)
        session = model.session
        facts = read(text, database=session.database, dialect=session.dialect)
        needs = self._needs(model, reader, facts, expected)
        begun = None if needs is None else reader.begin(needs)
        context = None if begun is None else begun[0]
        if context is not None:
            self._tracking.planning.know(expected.numbers, context)
        return UnderWay(
            text=text,
            facts=facts,
            expected=expected,
            context=context,
            use=self._use(model, facts, expected, needs),
            catalog_version=known.circumstances.version,
            is_intended=isinstance(known, KnownWrite),
        )

    def _keep(self, one: UnderWay, effect: KnownEffect, reader: ContextReader) -> None:
        """Keep the common part of a statement and those that are alike."""
        kind, expected = one.facts.effects.kind, one.expected
        circumstances = Circumstances(self._definitions, one.catalog_version, reader.values)
        if self._tracking.spoils or not reader.begin_plain(reader.values):
            return
        known: KnownRead | KnownWrite | None = None
        if kind is StatementKind.SELECT:
            is_silent = not (expected.groups or expected.homeless or expected.has_texts)
            if is_silent and not (expected.result.notes or may_run_programs(one.facts)):
                known = KnownRead(circumstances)
        elif kind in _CHANGING and len(one.plans) == 1 and one.use is not None:
            known = known_write(
                expected,
                one.plans[0],
                one.text,
                one.use,
                circumstances,
                is_update=kind is StatementKind.UPDATE,
            )
        if known is not None:
            if len(self._alike) >= _ALIKE_MAX:
                self._alike.clear()
            self._alike[effect] = known

    def _let_run(
        self,
        text: str,
        model: PlannedSession,
        reader: ContextReader,
        expected: Planned,
        effect: KnownEffect | None,
    ) -> Verdict | None:
        """Let a statement run whose kind is known; None if its context has to be asked for first."""
        session = model.session
        facts = read(text, database=session.database, dialect=session.dialect)
        if concerns(facts) or shows(facts) or self._warnings.questions(facts):
            return None
        needs = self._needs(model, reader, facts, expected)
        if needs is not None and reader.must_ask(needs):
            return None
        verdict = self._send(text, model, facts, reader, expected, needs)
        if effect is not None and verdict == AS_IT_IS:
            self._keep(self._under_way[-1], effect, reader)
        return verdict

    async def _known(
        self, model: PlannedSession, text: str, *, is_in_packet: bool = False
    ) -> StatementFacts:
        """Give a statement's facts, once all objects are known that it uses.

        Args:
            model: Model of the client's session.
            text: Text of the client's statement.
            is_in_packet: True if the model may have done DDL that the source is still to do.
        """
        shared, session = self._shared, model.session
        assert shared is not None, "the model goes along with the source"
        facts = read(text, database=session.database, dialect=session.dialect)
        if isinstance(facts.tree, Prepare):
            await self._read_prepared(facts.tree, facts, session)
        for each in (*session.executed(facts), facts):
            if shared.catalog.covers(each, session.database):
                continue
            own = own_questions(self._client, session, facts)
            try:
                asked = await shared.catalog.fetch(each, session.database, own)
            except StatementError as error:
                raise _NotToldError(error) from None
            if is_in_packet:
                shared.catalog.extend(self._catalog, asked)
            else:
                shared.catalog.fit(self._catalog)
        return facts

    async def _preview(self, model: PlannedSession, text: str, facts: StatementFacts) -> Planned:
        """Give the model's preview of a statement, once all objects are known that it uses."""
        expected = model.preview(text)
        while await self._read_missed(model, facts):
            expected = model.preview(text)
        return expected

    async def _read_missed(self, model: PlannedSession, facts: StatementFacts) -> bool:
        """Read objects that the model looked for and no text names; True if there were any."""
        assert self._shared is not None, "the model goes along with the source"
        catalog = self._shared.catalog
        missed = catalog.missed(self._catalog)
        if missed:
            own = own_questions(self._client, model.session, facts)
            try:
                await catalog.fetch_objects(missed, own)
            except StatementError as error:
                raise _NotToldError(error) from None
            catalog.fit(self._catalog)
        return bool(missed)

    async def _refusal(
        self, result: StatementResult, facts: StatementFacts, model: PlannedSession
    ) -> StatementError | None:
        assert self._shared is not None, "the model goes along with the source"
        return await self._refusals.of(result, facts, model, self._shared)

    def _needs(
        self,
        model: PlannedSession,
        reader: ContextReader,
        facts: StatementFacts,
        expected: Planned,
    ) -> Needs | None:
        """Give the needs of a statement's context; None where nothing of the statement is logged as text."""
        session, shared = model.session, self._tracking.shared
        if not expected.has_texts or shared is None or self._tracking.spoils:
            return None
        use = shared.uses.of(facts, session, shared.catalog.version)
        if use.reads.are_unlocked(locks_reads=session.locks_reads):
            return None
        resolved = session.opened_by(facts, session.database)
        self._tracking.planning.know_generated(expected.number, resolved)
        self._tracking.planning.know_words(expected.number, facts, resolved)
        if shared.tells_tables:
            self._tracking.planning.know_tables(expected.number, facts, resolved)
        return reader.needs(expected.values, use)

    def _use(
        self, model: PlannedSession, facts: StatementFacts, expected: Planned, needs: Needs | None
    ) -> ContextUse | None:
        """Give a statement's use of its context; None where nobody has to look."""
        if needs is not None:
            return needs.use
        kind, shared = facts.effects.kind, self._tracking.shared
        if kind not in _CHANGING or expected.has_texts or shared is None:
            return None
        # Rows as they are, it still leaves what later texts need as it was.
        return shared.uses.of(facts, model.session, shared.catalog.version)

    def _send(
        self,
        text: str,
        model: PlannedSession,
        facts: StatementFacts,
        reader: ContextReader,
        expected: Planned,
        needs: Needs | None,
    ) -> Verdict:
        """Note a statement as under way, in the journal, too, if it makes groups, and let it run."""
        begun = None if needs is None else reader.begin(needs)
        context, before = (None, reader.owed(facts)) if begun is None else begun
        if context is None and expected.has_texts:
            expected = self._as_rows(text, model, expected)
        one = UnderWay(
            text=text,
            facts=facts,
            expected=expected,
            context=context,
            use=self._use(model, facts, expected, needs),
            catalog_version=None if self._shared is None else self._shared.catalog.version,
            sent_s=time.monotonic(),
        )
        if context is not None:
            self._tracking.planning.know(expected.numbers, context)
        self._tracking.intend(one, model)
        self._under_way = [one]
        return Run(before)

    # Behind it ------------------------------------------------------------------------------------

    def _each_reply(
        self, under_way: list[UnderWay], replies: Sequence[Reply]
    ) -> Sequence[_Replied]:
        """The replies to each statement; none where they cannot be told apart."""
        if len(under_way) == 1:
            return [(under_way[0], replies)]
        if any(is_program(one.facts) for one in under_way):
            self._tracking.muddle(under_way, replies)
            self._lose_step(None)
            return []
        return [(one, [reply]) for one, reply in zip(under_way, replies, strict=False)]

    def _follow_turn(
        self, model: PlannedSession, reader: ContextReader, behind: deque[_Replied]
    ) -> int:
        """Follow the first of some statements, and take them out.

        Returns:
            How many more warnings the client is told of the last of them.
        """
        warnings = 0
        for _ in range(min(TURN, len(behind))):
            one, replies = behind.popleft()
            warnings = self._follow(model, reader, one, replies)
        return warnings

    def _let_others_know(self, model: PlannedSession, behind: Iterable[_Replied]) -> None:
        """Let no session be judged meanwhile by objects that the source has no more."""
        assert self._shared is not None, "the model goes along with the source"
        for one, replies in behind:
            if one.facts.effects.kind in DDL_KINDS:
                self._shared.catalog.changed(
                    one.facts, model.session.database, errno=replies[-1].errno
                )

    async def _follow_rest(
        self, model: PlannedSession, reader: ContextReader, behind: deque[_Replied]
    ) -> None:
        """Follow many statements, in turns with other sessions."""
        while behind:
            await asyncio.sleep(0)
            self._follow_turn(model, reader, behind)
        self._under_way.clear()
        self._long_texts.forget()
        await self._tracking.settle(model)

    def _more_warnings(self, model: PlannedSession, one: UnderWay, replies: Sequence[Reply]) -> int:
        """Predict the result of `_follow` for a statement from the model's preview."""
        notes = sum(note.is_told for note in one.expected.result.notes)
        return notes - self._hides(model.session, one, replies)

    def _lose_step(self, *ran: StatementFacts | None) -> None:
        """Note that the model does not know the session's state any longer.

        Args:
            ran: Parsed facts of the statements that are the cause; None for one that was not read.
        """
        self._is_out_of_step = self._tracking.spoils = True
        objects = self._catalog if self._model is None else self._model.session.objects
        may_make_tables = any(one is None or _may_make_tables(one, objects) for one in ran)
        self._hides_tables |= may_make_tables or bool(objects.temporary_tables())

    def _follow(
        self,
        model: PlannedSession,
        reader: ContextReader,
        one: UnderWay,
        replies: Sequence[Reply],
    ) -> int:
        """Let the model execute the statement that the source has run, and tell its groups.

        Returns:
            How many more warnings the client is told of than the source has.
        """
        assert self._shared is not None, "the model goes along with the source"
        reply, session, catalog = replies[-1], model.session, self._shared.catalog
        self._tracking.doubt(one, session)
        planned = _carried_out(model, one, reply)
        reader.ran(one.facts, one.use)
        has_failed = planned.result.error is not None
        if planned.result.unanalysed is not None or has_failed != bool(reply.errno):
            self._lose_step(one.facts)
        kind = one.facts.effects.kind
        if kind in DDL_KINDS or kind is StatementKind.SET or is_program(one.facts):
            catalog.changed(one.facts, session.database, errno=reply.errno)
            for facts in session.executed(one.facts):
                catalog.changed(facts, session.database)
        if one.context is not None:
            one.context.answered(
                errno=reply.errno,
                insert_id=reply.insert_id,
                affected_rows=reply.affected_rows,
                info=reply.info,
            )
            self._tracking.planning.know(planned.numbers, one.context)
        if not (reply.errno or _is_as_active(model, is_active=bool(reply.status & _ACTIVE))):
            self._lose_step(one.facts)
        more = self._warnings.follow(
            *(one.facts, replies, planned.result.notes),
            hides=self._hides(session, one, replies),
        )
        self._tracking.follow(one, planned, model, replies)
        if one.rewritten is not None and one.rewritten.tracking is not None and not has_failed:
            self._tracking.note(one.rewritten.tracking)
        if not session.is_transaction_active and not model.waits:
            self._tracking.planning.clear()
            self._tracking.spoils = self._is_out_of_step or self._hides_tables
        return more

    @staticmethod
    def _hides(session: Session, one: UnderWay, replies: Sequence[Reply]) -> bool:
        """True if one of the source's warnings is about its own log of rows alone."""
        return bool(replies[-1].warnings) and _is_of_blackhole(one.facts, session)


def _may_make_tables(facts: StatementFacts, objects: SchemaCatalog) -> bool:
    """True if a statement may make temporary tables: programs that it runs may."""
    effects = facts.effects
    if effects.is_temporary or effects.stopped_at is not None or is_program(facts):
        return True
    has_calls = not all(is_built_in(one.name, facts.dialect) for one in facts.functions)
    return has_calls or (effects.kind not in DDL_KINDS and objects.has_programs)


def _carried_out(model: PlannedSession, one: UnderWay, reply: Reply) -> Planned:
    """Let the model execute a statement whose outcome is known, and give its account."""
    if one.context is None and one.expected.has_texts:
        model.have_rows(len(one.expected.numbers))
    return model.execute(one.text, _outcome(one.facts, reply))


def _is_as_active(model: PlannedSession, *, is_active: bool) -> bool:
    """True if the model's transaction has begun to work if the source's has, or has by now.

    No reply tells how much of a failed statement was left there, and with autocommit=0 much that changes no
    rows begins the transaction: EXPLAIN, and all that asks the tables of MySQL's dictionary.
    """
    session = model.session
    if is_active and session.is_in_transaction and not model.waits:
        session.begin_to_work()
    return session.is_transaction_active is is_active


def _is_of_blackhole(facts: StatementFacts, session: Session) -> bool:
    """True if a source that logs rows warns of a statement as no server does that logs it as text."""
    if facts.effects.kind not in _WITHOUT_ROWS or session.has_row_binlogs:
        return False
    return any(
        access.changes and access.table.engine.upper() == "BLACKHOLE"
        for access in session.opened_by(facts, session.database).accesses
    )


def _literal(value: str) -> str:
    return value if _BARE.fullmatch(value) else "'" + value.replace("'", "''") + "'"


def _outcome(facts: StatementFacts, reply: Reply) -> Outcome:
    """Give the outcome of a statement in its reply, as far as the model does not know it."""
    if reply.errno:
        return Outcome(error=reply.errno)
    if facts.effects.kind not in WRITING_KINDS or reply.is_result_set:
        return NO_OUTCOME
    is_update = facts.effects.kind is StatementKind.UPDATE
    return Outcome(rows=0) if _has_no_rows(reply, is_update=is_update) else NO_OUTCOME


def _has_no_rows(reply: Reply, *, is_update: bool) -> bool:
    """True if a reply says that no rows were changed; a client may ask for those that were found."""
    return not reply.affected_rows or (is_update and _NONE_CHANGED in reply.info)
