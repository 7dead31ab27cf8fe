"""A client's session on the source, and the model that goes along with it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Self

from binlane.client.needed_objects import Question, Topic
from binlane.client.questions import Answer, AskingContext
from binlane.client.source_objects import Source
from binlane.errors import StatementError
from binlane.live.gateway.handler import HandlerSession
from binlane.live.gateway.judge import StatementReply
from binlane.live.port.binlog_variables import NAMES, mended
from binlane.live.port.context_reader import ContextReader, Needs, reads_diagnostics
from binlane.live.port.context_use import ContextUse
from binlane.live.port.group_tracking import GroupTracking
from binlane.live.port.long_statements import LongTexts
from binlane.live.port.port_parts import PortParts
from binlane.live.port.statement_refusals import Refusals
from binlane.live.port.unread import Unread
from binlane.live.port.user_variables import asked as asked_variable
from binlane.live.port.warnings import Warnings
from binlane.log.codec.client_text import written_text
from binlane.log.codec.format import flavor_of
from binlane.log.codec.packets.framing import text_of
from binlane.log.codec.types import ColumnType
from binlane.statements.policy.server import Server
from binlane.statements.programs.host import STEPS_BESIDE_OTHERS_MAX
from binlane.statements.programs.routines import trimmed
from binlane.statements.programs.runner import is_program
from binlane.statements.scope.definition import Definition
from binlane.statements.session.planning_session import PlanningSession
from binlane.statements.session.report import StatementPlan, StatementResult
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.evaluation.functions import is_built_in
from binlane.statements.sql.evaluation.literal_values import content_of
from binlane.statements.sql.evaluation.values import UNKNOWN, Text
from binlane.statements.sql.executable_comments import server_text
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.lexis import lexed_as
from binlane.statements.sql.reading import read
from binlane.statements.sql.statement_kinds import DDL_KINDS, StatementKind
from binlane.statements.sql.tokens import LONG
from binlane.statements.sql.tree.expressions import Literal
from binlane.statements.sql.tree.statements import Prepare

CHANGING: Final = frozenset(
    (StatementKind.INSERT, StatementKind.REPLACE, StatementKind.UPDATE, StatementKind.DELETE)
)
_WITHOUT_ROWS: Final = frozenset((StatementKind.UPDATE, StatementKind.DELETE))
_NUMBERS: Final = (ColumnType.LONGLONG, ColumnType.DOUBLE, ColumnType.NEWDECIMAL)
_LOCKED: Final = frozenset((Topic.TABLE, Topic.TRIGGERS))
"""Topics of questions on a table itself."""


class ObjectsUnknownError(Exception):
    """The source does not tell of an object that a statement uses.

    Attributes:
        error: Error that the client gets.
    """

    def __init__(self, error: StatementError) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(slots=True, kw_only=True, eq=False)
class FollowedSession:
    """A client's session, and all that is known of it.

    Attributes:
        client: The session on the source.
        shared: State that all sessions of the port share.
        model: Model of the session, with the plans of its groups.
        objects: The model's view of the source's objects.
        definitions: Definitions of the binlogs, as the model has them.
        reader: Reader of the session's context.
        tracking: The session's groups, as `Attributions` is told of them.
        warnings: Warnings that the client has and the source has not.
        refusals: Reasons to refuse the session's statements.
        long_texts: Long texts of the command under way.
        is_in_transaction: True if the source's last reply said that a transaction is open.
    """

    client: HandlerSession
    shared: PortParts
    model: PlanningSession
    objects: SchemaCatalog
    definitions: tuple[Definition, ...]
    reader: ContextReader
    tracking: GroupTracking
    warnings: Warnings
    refusals: Refusals
    long_texts: LongTexts
    is_in_transaction: bool

    @classmethod
    async def begin(
        cls,
        client: HandlerSession,
        shared: PortParts,
        long_texts: LongTexts,
        before: FollowedSession | Unread,
    ) -> Self:
        """Begin to go along with a client's session, as it is now.

        Args:
            client: The session on the source.
            shared: State that all sessions of the port share.
            long_texts: Long texts of the session's commands.
            before: The session as it was before, followed or unread.

        Raises:
            StatementError: If the source does not tell what has to be known.
            PeerError: If it goes away.
        """
        is_new = isinstance(before, Unread) and not before.has_passed
        flavor = flavor_of(client.server_version)
        reader = ContextReader(Server.of(flavor.value, client.server_version))
        circumstances = await Source(client).circumstances(reader.expressions if is_new else ())
        mending = mended(circumstances.variables)
        if mending is not None:
            await client.run_at_source(mending)
        definitions, objects = shared.definitions(), await shared.catalog.begun()
        session = Session(
            server=circumstances.server,
            objects=objects,
            definitions=definitions,
            database=circumstances.database,
            logs_source=True,
            program_errors=shared.program_errors,
        )
        session.begin_with(
            shared.global_values(),
            None if isinstance(before, Unread) else before.model.session,
            {name: one for name, one in circumstances.variables.items() if name not in NAMES},
        )
        session.programs.hides_prepared = not is_new
        session.programs.effort.most = STEPS_BESIDE_OTHERS_MAX
        if circumstances.is_in_transaction:
            session.execute("BEGIN")
        if isinstance(before, Unread):
            if circumstances.beside is None:
                reader = ContextReader(circumstances.server)
            tracking = GroupTracking(client, shared, hides_tables=before.hides_tables)
            warnings = Warnings(flavor)
        else:
            reader, tracking, warnings = before.reader, before.tracking, before.warnings
        found = cls(
            client=client,
            shared=shared,
            model=PlanningSession(session),
            objects=objects,
            definitions=definitions,
            reader=reader,
            tracking=tracking,
            warnings=warnings,
            refusals=Refusals(client),
            long_texts=long_texts,
            is_in_transaction=circumstances.is_in_transaction,
        )
        if not is_new:
            # The session may hold a timestamp of its own, which it has to take back.
            found.reader.lost_track()
        # The transaction may have changes that are not known.
        tracking.begin_anew(shared, is_in_transaction=circumstances.is_in_transaction)
        if is_new:
            # Later it might have to be asked before a statement that reads warnings.
            beside = circumstances.beside
            if beside is None:
                await found.read_context()
            else:
                asked_s = circumstances.asked_s
                await reader.take(client.query_source, beside, circumstances.place, asked_s)
                found._read_as_told()
        return found

    # Its state ------------------------------------------------------------------------------------

    @property
    def wants_tracking(self) -> bool:
        """True if it matters from now on which groups of the source are the session's."""
        is_off = not self.tracking.is_on
        return is_off and self.model.needs_plans and not self.is_in_transaction

    @property
    def is_fit(self) -> bool:
        """True if the model has had the source's objects as they are now."""
        before = self.objects.store.tables
        self._fit()
        return self.shared.catalog.is_reached and self.objects.store.tables is before

    def make_current(self) -> None:
        """Give the model the binlogs and the source's objects as they are now."""
        definitions = self.shared.definitions()
        if definitions is not self.definitions:
            self.definitions = definitions
            self.model.session.have(definitions)
        self._fit()

    def _fit(self) -> None:
        """Give the model the source's objects; with those of before some writes of the transaction were judged.

        Each may have run behind a change of them that was heard of only now: that is looked at before the
        transaction's group is told.
        """
        known, session = self.shared.catalog.known, self.model.session
        if known is not None and self.objects.store.tables is not known.store.tables:
            planning = self.tracking.planning
            writes = ((write.text, write.version) for write in planning.writes)
            for text, version in (*writes, *planning.judged):
                self.tracking.note_judged(self.facts_of(text), version, session)
        self.shared.catalog.fit(self.objects)

    def facts_of(self, text: str) -> StatementFacts:
        """Give the parsed facts of a text."""
        session = self.model.session
        return read(text, database=session.database, dialect=session.dialect)

    def as_sent(self, text: str) -> str:
        """A text that was made of the client's, as the gateway has it."""
        values = self.reader.values
        written = None if values is None else written_text(text, values.client_charset)
        return text if written is None else text_of(written)

    # Before a statement ---------------------------------------------------------------------------

    async def read_context(self, needs: Needs | None = None) -> None:
        """Ask for the session's context, and have the model read in its character set."""
        await self.reader.read(self.client.query_source, needs)
        self._read_as_told()

    def _read_as_told(self) -> None:
        """Have the model read statements in the session's character set."""
        reader, model = self.reader, self.model
        if reader.values is not None and reader.is_charset_known:
            charset = reader.values.client_charset
            if lexed_as(charset) != model.session.dialect.charset:
                model.execute(f"SET SESSION character_set_client = {charset}")

    async def read_long(self, texts: Sequence[str]) -> None:
        """Read long texts beside the event loop."""
        session = self.model.session
        if await self.long_texts.read(texts, session.database, session.dialect):
            self.make_current()

    async def known_facts(self, text: str, *, is_in_packet: bool = False) -> StatementFacts:
        """Give a statement's facts, once all objects are known that it uses.

        Args:
            text: Text of the client's statement.
            is_in_packet: True if the model may have done DDL that the source is still to do.

        Raises:
            ObjectsUnknownError: If the source does not tell of an object.
        """
        catalog, session = self.shared.catalog, self.model.session
        facts = self.facts_of(text)
        if isinstance(facts.tree, Prepare):
            await self._read_prepared(facts.tree, facts)
        for each in (*session.executed(facts), facts):
            if catalog.covers(each, session.database):
                continue
            own = _own_questions(self.client, session, facts)
            try:
                asked = await catalog.fetch(each, session.database, own)
            except StatementError as error:
                raise ObjectsUnknownError(error) from None
            if is_in_packet:
                catalog.extend(self.objects, asked)
            else:
                catalog.fit(self.objects)
        return facts

    async def _read_prepared(self, tree: Prepare, facts: StatementFacts) -> None:
        """Read a long text that is prepared or executed beside the event loop."""
        session = self.model.session
        known = session.programs.prepared.get(tree.name.lower())
        texts = [] if known is None else list(filter(None, known.statements))
        if isinstance(tree.source, Literal) and len(facts.text) > LONG:
            texts = [trimmed(server_text(content_of(tree.source, facts), facts.dialect).read)]
        await self.long_texts.read(texts, session.database, session.dialect)

    async def preview(self, text: str, facts: StatementFacts) -> StatementPlan:
        """Give the model's preview of a statement, once all objects are known that it uses.

        Raises:
            ObjectsUnknownError: If the source does not tell of an object.
        """
        expected = self.model.preview(text)
        while await self._read_missed(facts):
            expected = self.model.preview(text)
        return expected

    async def _read_missed(self, facts: StatementFacts) -> bool:
        """Read objects that the model looked for and no text names; True if there were any."""
        catalog = self.shared.catalog
        missed = catalog.missed(self.objects)
        if missed:
            own = _own_questions(self.client, self.model.session, facts)
            try:
                await catalog.fetch_objects(missed, own)
            except StatementError as error:
                raise ObjectsUnknownError(error) from None
            catalog.fit(self.objects)
        return bool(missed)

    async def learn_variables(self, facts: StatementFacts) -> bool:
        """Ask for user variables that the model does not know; True if there were any.

        A statement names them, or programs in it. What asking changes for the client, FOUND_ROWS() and
        on MySQL its warnings, weighs less than a refusal.
        """
        session, shared = self.model.session, self.shared
        programs, names = session.programs, {use.name.lower() for use in facts.user_variables}
        use = shared.uses.of(facts, session, shared.catalog.version)
        names.update(name for name, _ in use.variable_names)
        unknown = [name for name in names if programs.user_variables.get(name) in (None, UNKNOWN)]
        if not unknown:
            return False
        asked = [asked_variable(name) for name in unknown]
        columns = ", ".join(f"{value}, {collation}" for value, _, collation in asked)
        # Refused, such as by KILL QUERY, or in a character set that cannot be read.
        with suppress(StatementError, ValueError):
            answer = await self.client.query_source(f"SELECT {columns} LIMIT 1")
            for place, name in enumerate(unknown):
                text, collation = (answer.cell_text(2 * place + at) for at in (0, 1))
                if answer.heads[2 * place].type_code == ColumnType.LONGLONG and text:
                    programs.know(name, int(text))
                elif answer.heads[2 * place].type_code not in _NUMBERS:
                    programs.know(name, None if text is None else Text(text, collation or ""))
        return True

    async def refusal(
        self, result: StatementResult, facts: StatementFacts
    ) -> StatementError | None:
        """The reason why a statement must not run; None if it may, or the source will say the reason."""
        return await self.refusals.of(result, facts, self.model, self.shared)

    def needs(self, facts: StatementFacts, expected: StatementPlan) -> Needs | None:
        """Give the needs of a statement's context; None where nothing of the statement is logged as text.

        Args:
            facts: Parsed facts of the statement's text.
            expected: The model's preview of the statement.
        """
        session, tracking = self.model.session, self.tracking
        if not expected.has_texts or not tracking.is_on or tracking.spoils:
            return None
        use = self.shared.uses.of(facts, session, self.shared.catalog.version)
        if use.reads.are_unlocked(locks_reads=session.locks_reads):
            return None
        resolved = session.opened_by(facts, session.database)
        tracking.planning.know_generated(expected.number, resolved)
        tracking.planning.know_words(expected.number, facts, resolved)
        if self.shared.tells_tables:
            tracking.planning.know_tables(expected.number, facts, resolved)
        return self.reader.needs(expected.values, use)

    def use(self, facts: StatementFacts, needs: Needs | None) -> ContextUse | None:
        """Give a statement's use of its context; None for one that changes no rows and is no text."""
        if needs is not None:
            return needs.use
        if facts.effects.kind not in CHANGING:
            return None
        # Rows or not, it may leave as it was what is known of the session.
        return self.shared.uses.of(facts, self.model.session, self.shared.catalog.version)


class OwnQuestions:
    """Questions to a client's session on the source about objects that it has locked from all others.

    Whoever holds an exclusive lock of a table reads its definition; binlane's own connections would wait for the
    lock, and the client for them. A session that has to wait for somebody else's lock waits as long as its own
    settings say, as it would without the port.

    Args:
        client: Client's session on the source.
        session: Model of the client's session.
    """

    def __init__(self, client: HandlerSession, session: Session) -> None:
        self._client = client
        self._session = session

    def may_have_locked(self, question: Question) -> bool:
        """True if the session may have locked the object of a question."""
        locked = self._session.state.locked_tables
        if locked is None or question.topic not in _LOCKED:
            return False
        return any(name == question.name for name, _, _ in locked.locks)

    async def answer(self, question: Question, asked: AskingContext) -> Answer:
        """The answer to a question.

        Raises:
            StatementError: If the source refuses to tell the session, or is not understood.
            PeerError: If it goes away.
        """
        variables = self._session.state.variables
        source = Source(self._client, sql_mode=variables.text("sql_mode"), is_patient=True)
        return await source.answer(question, asked)


def _own_questions(
    client: HandlerSession, session: Session, facts: StatementFacts
) -> OwnQuestions | None:
    """Give the questions that a session may be asked before a statement; None where that would show.

    Asking takes away the diagnostics that the statement before has left (`context_reader`): so nothing is asked
    before a statement that reads those.

    Args:
        client: Client's session on the source.
        session: Model of the client's session.
        facts: Parsed facts of the statement's text.
    """
    return None if reads_diagnostics(facts) else OwnQuestions(client, session)


def may_make_tables(facts: StatementFacts, objects: SchemaCatalog) -> bool:
    """True if a statement may make temporary tables: programs that it runs may."""
    effects = facts.effects
    if effects.is_temporary or effects.stopped_at is not None or is_program(facts):
        return True
    has_calls = not all(is_built_in(one.name, facts.dialect) for one in facts.functions)
    return has_calls or (effects.kind not in DDL_KINDS and objects.has_programs)


def hides_warning(
    session: Session, facts: StatementFacts, replies: Sequence[StatementReply]
) -> bool:
    """True if one of the source's warnings is about its own log of rows alone.

    A server that logs a change of a BLACKHOLE table as text does not warn of it.
    """
    if not replies[-1].warnings or facts.effects.kind not in _WITHOUT_ROWS:
        return False
    return not session.has_row_binlogs and any(
        access.changes and access.table.engine.upper() == "BLACKHOLE"
        for access in session.opened_by(facts, session.database).accesses
    )
