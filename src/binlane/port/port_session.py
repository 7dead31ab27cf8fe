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
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Final

from binlane.check.hints import HINTS
from binlane.client.questions import NotUnderstoodError
from binlane.client.source_objects import Source
from binlane.codec.client_text import is_lexed_alike, written_text
from binlane.codec.format import flavor_of
from binlane.codec.packets.flags import ServerStatus
from binlane.codec.packets.framing import text_of
from binlane.codec.packets.results import ResultSet
from binlane.codec.types import ColumnType, Flavor
from binlane.errors import SourceDownError, StatementError, StoreError, UnjudgedError
from binlane.gateway.answers import OkAnswer, RowsAnswer
from binlane.gateway.handler import SessionContext
from binlane.gateway.judge import (
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
from binlane.gateway.long_texts import is_long
from binlane.names import quote
from binlane.policy.refusals import NO_OUTCOME, Outcome, Refusal
from binlane.port.binlog_variables import (
    NAMES,
    TRACKING,
    Rewritten,
    concerns,
    known_of,
    mended,
    question,
    rewrite,
    shown,
    shows,
    telling_gtids,
    tells_gtids,
)
from binlane.port.context_reader import (
    ContextReader,
    Needs,
    may_run_programs,
    reads_diagnostics,
)
from binlane.port.context_use import ContextUse, KnownUses
from binlane.port.doubts import Doubt
from binlane.port.group_planning import GroupPlanning, bases
from binlane.port.known_statements import Circumstances, KnownRead, KnownWrite, known_write
from binlane.port.live_catalog import LiveCatalog
from binlane.port.long_texts import LongTexts
from binlane.port.marks import Marker
from binlane.port.own_questions import own_questions
from binlane.port.sayings import Sayings
from binlane.port.session_values import cell_text
from binlane.port.statement_context import StatementContext
from binlane.port.told_refusals import as_told
from binlane.port.user_variables import asked as asked_variable
from binlane.port.warnings import Warnings
from binlane.positions import parse_position
from binlane.programs.runner import is_program
from binlane.routing.plan import EncodedEvent, GroupPlan, Part
from binlane.scope.definition import Definition
from binlane.session.group_plans import DraftPart, Planned, PlannedSession
from binlane.session.recurring import KnownEffect
from binlane.session.report import StatementResult
from binlane.session.session import Session
from binlane.sql.catalog import SchemaCatalog
from binlane.sql.evaluation.functions import is_built_in
from binlane.sql.evaluation.values import UNKNOWN, Text
from binlane.sql.facts import (
    DDL_KINDS,
    WRITING_KINDS,
    Shape,
    StatementFacts,
    StatementKind,
)
from binlane.sql.lexis import lexed_as
from binlane.sql.reading import read
from binlane.sql.servers import Dialect, LoggingMode
from binlane.sql.stored import runs_nothing_stored
from binlane.sql.tree.statements import Prepare

logger = logging.getLogger(__name__)

_READS: Final = frozenset((StatementKind.SELECT, StatementKind.SESSION, StatementKind.EMPTY))
"""What a session may begin with that the model need not know of."""
_DIAGNOSTICS: Final = "GET DIAGNOSTICS"
"""Likewise; and to begin with somebody would take away what it reads."""
_OWN: Final = ("ER_BINLOG_", "BINLANE_", "ER_INSIDE_TRANSACTION_PREVENTS_")
"""How the symbols of refusals begin that are binlane's to give: the source logs rows, whatever the
binlogs have, and would let such a statement pass."""
_OWN_SYMBOLS: Final = frozenset(
    (
        "ER_CLIENT_GTID_UNSAFE_CREATE_DROP_TEMP_TABLE_IN_TRX_IN_SBR",
        "ER_TEMP_TABLE_PREVENTS_SWITCH_OUT_OF_RBR",
        "ER_TEMP_TABLE_PREVENTS_SWITCH_SESSION_BINLOG_FORMAT",
        "ER_STORED_FUNCTION_PREVENTS_SWITCH_BINLOG_FORMAT",
        "ER_STORED_FUNCTION_PREVENTS_SWITCH_BINLOG_DIRECT",
        "ER_STORED_FUNCTION_PREVENTS_SWITCH_SQL_LOG_BIN",
    )
)
_WATCHED: Final = NAMES.keys() | {
    *("session_track_gtids", "session_track_system_variables", "session_track_state_change"),
    "pseudo_thread_id",
    *("pseudo_slave_mode", "pseudo_replica_mode", "skip_replication", "timestamp", "insert_id"),
    *("rand_seed1", "rand_seed2", "autocommit", "collation_database", "character_set_database"),
}
"""What a session cannot set before somebody follows it."""
_ASKED_FOR: Final = frozenset(("autocommit",))
"""Of these what the source is asked for when somebody begins to."""
_NOT_PREPARED: Final = StatementError(
    "This command is not supported in the prepared statement protocol yet", errno=1295
)
_NO_BULK: Final = StatementError(
    "Only row based replication supported for bulk operations",
    errno=4033,
    hint="SET SESSION binlog_format = 'ROW', or execute it for each row of values",
)
_NO_VALUES: Final = UnjudgedError(
    "its values cannot be told as the server would log them",
    hint="send them as other types, or SET SESSION binlog_format = 'ROW'",
)
_MAY_HIDE: Final = re.compile("[\udc80-\udcff]|[^\0-\x7f][\\\\`]")
"""In a text whose character set nobody knows: where a string or name may end elsewhere than in UTF-8.

What names the binlogs' variables has no other letters in swe7.
"""
_TOO_LONG: Final = UnjudgedError(
    "it is longer than 32 MiB and is not read", hint="SET SESSION binlog_format = 'ROW'"
)
_NO_TEXT: Final = UnjudgedError(
    "its text cannot be read in the session's character set",
    hint="SET NAMES utf8mb4, or SET SESSION binlog_format = 'ROW'",
)
_AS_ROWS: Final = "SET SESSION binlog_format = 'ROW' lets it run"
_WITHOUT_SCOPES: Final = "binlogs that log everything would have its rows; one here has a scope"
_SHOWN: Final = 40
_TRIED: Final = "binlane_tried"
"""A prepared statement of binlane's own in the client's session, for a moment."""
_NOT_TRIED: Final = frozenset((1295, 1461))
"""Errors of PREPARE that are not the statement's."""
_NUMBERS: Final = (ColumnType.LONGLONG, ColumnType.DOUBLE, ColumnType.NEWDECIMAL)
_BARE: Final = re.compile(r"\w+", re.ASCII)
_CHANGING: Final = frozenset(
    (StatementKind.INSERT, StatementKind.REPLACE, StatementKind.UPDATE, StatementKind.DELETE)
)
_WITHOUT_ROWS: Final = frozenset((StatementKind.UPDATE, StatementKind.DELETE))
_ALIKE_MAX: Final = 256
_AND_ITS_OWN: Final = 2
_TURN: Final = 4
"""So many statements of a packet are judged, or followed, before other sessions have their turn."""
_ACTIVE: Final = int(ServerStatus.IN_TRANSACTION)


def is_own(refusal: Refusal) -> bool:
    """Whether binlane refuses, and not the source, which gets to say its own errors itself."""
    return refusal.symbol in _OWN_SYMBOLS or refusal.symbol.startswith(_OWN)


Seen = Callable[[SessionContext], Awaitable[Collection[str] | None]]
"""Gives the names of the binlogs that a session's account may see; None for all."""


async def _all_seen(_session: SessionContext) -> None:
    """Where nobody says anything else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PortParts:
    """What all sessions of the port share.

    Attributes:
        definitions: Gives the binlogs as they are now; the same tuple as long as they are the same.
        catalog: The source's objects.
        attributions: Gets the plans of the groups that sessions make.
        marker: Makes groups for what the source logs nothing of.
        has_marks: Whether the source has what it needs for that.
        global_values: Gives the values that `SET GLOBAL` gave to the binlogs' variables.
        seen: Gives the binlogs that a session's account may see; None for all.
        uses: What statements use of their context.
        set_global_values: Keeps such values, None for those that are taken back; blocks.
        tells_tables: Binlogs say which tables statements concern.
    """

    definitions: Callable[[], tuple[Definition, ...]]
    catalog: LiveCatalog
    attributions: Sayings
    marker: Marker
    has_marks: bool = True
    global_values: Callable[[], Mapping[str, str]] = dict
    seen: Seen = _all_seen
    uses: KnownUses = field(default_factory=KnownUses)
    set_global_values: Callable[[Mapping[str, str | None]], None] = lambda _: None
    tells_tables: bool = False


FindParts = Callable[[], Awaitable[PortParts | None]]
"""Gives what sessions share; None where the source was not set up to be judged: all is relayed then."""


@dataclass(slots=True, kw_only=True)
class _UnderWay:
    """A statement that the source runs.

    Attributes:
        text: Its text.
        facts: What it says.
        expected: What the model says it will do.
        context: Of its text; None where nothing of it is planned.
        use: What of the context it uses; None where nobody looked.
        catalog_version: Of the objects that it was judged with.
        is_intended: Its plans were given to `Attributions`.
        plans: They.
        rewritten: What the source runs in its place; None for itself.
        sent_s: As `time.monotonic`, a moment before it was sent; 0 where that is not known.
    """

    text: str
    facts: StatementFacts
    expected: Planned
    context: StatementContext | None = None
    use: ContextUse | None = None
    catalog_version: object = None
    is_intended: bool = False
    plans: Sequence[GroupPlan] = ()
    rewritten: Rewritten | None = None
    sent_s: float = 0.0


_Replied = tuple[_UnderWay, Sequence[Reply]]
"""A statement that the source has run, and its replies."""
_KnownUnderWay = tuple[str, KnownRead | KnownWrite, int, bytes | None]
"""A statement that the source runs, of which others have run that are alike: its text, what is known
of them, the number it has, and the event of its text; None of one that is not planned."""


class _NotToldError(Exception):
    """The source does not tell what a statement uses.

    Attributes:
        told: What it says instead.
    """

    def __init__(self, told: StatementError) -> None:
        super().__init__(str(told))
        self.told = told


@dataclass(frozen=True, slots=True)
class _Told:
    """What is to be told of a statement's groups.

    Attributes:
        number: Its number.
        plans: Of the groups, if it made them; nothing where they are not known, None where they are
            those that were intended.
        is_intended: They were told before it was sent.
        last: What its replies told of its last group; None for nothing.
        is_untold: It may have made groups of which they tell nothing: the source has to be asked.
    """

    number: int
    plans: Sequence[GroupPlan] | None
    _: KW_ONLY
    is_intended: bool
    last: str | None = None
    is_untold: bool = False


@dataclass(frozen=True, slots=True)
class _Homeless:
    """What binlogs are to have, and the source logs nothing of.

    Attributes:
        planned: What tells of it.
        parts: By binlog.
        ends: As in a plan.
    """

    planned: Planned
    parts: Mapping[str, tuple[Part, ...]]
    ends: Mapping[str, EncodedEvent | None]


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
        self._thread_id = client.thread_id
        self._is_tracked = False
        self._last = ""
        # What the variable of `TRACKING` is for the client, where it is another one at the source.
        self._tracking: str | None = None
        self._hides_gtids = False
        self._planning = GroupPlanning(self._flavor)
        self._under_way: list[_UnderWay] = []
        # Those whose replies are there, until all is told of them.
        self._followed: list[_UnderWay] = []
        self._known_under_way: _KnownUnderWay | None = None
        self._alike: dict[KnownEffect, KnownRead | KnownWrite] = {}
        self._long_texts = LongTexts()
        self._passing: set[Shape] = set()
        self._unsettled: list[_Told] = []
        self._doubts: list[Doubt] = []
        self._homeless: list[_Homeless] = []
        self._warnings = Warnings(self._flavor)
        # When a statement was sent that the source has answered.
        self._there_s = 0.0
        self._has_passed = False
        self._is_out_of_step = False
        self._is_in_transaction = False
        self._spoils = False
        # Temporary tables may be there of which the model does not know.
        self._hides_tables = False

    # What the gateway calls -----------------------------------------------------------------------

    @property
    def reading(self) -> Reading | None:
        """How the source reads the session's next statement."""
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
        """Whether the source tells GTIDs that the client has not asked for."""
        return self._hides_gtids

    async def learn(self) -> None:
        """Find out how the source reads the session's next statement."""
        model = self._model or await self._begin()
        reader = self._reader
        if model is not None and reader is not None and not reader.is_charset_known:
            await self._read_context(model, reader)

    async def start(self, *, is_reset: bool) -> None:
        """Begin anew: what the session is like is asked when its first statement needs it."""
        if is_reset:
            await self._drop_temporary()
        self._forget()

    def judge(self, statements: Sequence[ClientStatement]) -> Verdict | None:
        """Say what becomes of a command, if that is known without asking anybody."""
        if self._is_relayed or not statements:
            return PASS
        if len(statements) != 1:
            return None
        told, _, is_complete, _ = statements[0]
        model, reader, shared = self._model, self._reader, self._shared
        if not is_complete or is_long(told):
            return None
        if model is None or reader is None:
            return self._pass_unread(told)
        if self._begins_anew and self._only_reads_diagnostics(told):
            return AS_IT_IS
        text = reader.read_text(told)
        if text is None or shared is None or self._is_out_of_step:
            return None
        if shared.definitions() is not self._definitions:
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
        """Say what becomes of a command; the source is asked for what is not known.

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
            self._shared = await self._find_parts()
            if await self._concern_nobody(statements):
                return Pass()
        model = await self._begun()
        reader, shared = self._reader, self._shared
        if model is None or reader is None or shared is None:
            return Pass()
        self._make_current(model, shared)
        if self._wants_tracking(model):
            await self._begin_tracking(shared)
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
        if _may_take_rows(session) or all(_is_logged_by_its_text(one, session) for one in facts):
            return self._run_unread(*facts)
        if len(facts) == 1 and not isinstance(told, SourceDownError):
            own = await self._own_error(facts[0])
            if own is not None:
                return Refuse(own)
        raise _not_known(str(told), model) if isinstance(told, NotUnderstoodError) else told

    @staticmethod
    def _reads_what_is_left(model: PlannedSession, statements: Sequence[ClientStatement]) -> bool:
        """Whether a statement would see that something was asked before it.

        It is read in the character set that was known last: programs in what ran since may have set
        another one.
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

    def failed(self, statement: str, reply: Reply) -> Done:
        """Nothing is run behind a client's statement."""
        del statement, reply
        return NOTHING_LEFT

    def done(self, replies: Sequence[Reply]) -> Done:
        """Follow what came of the command."""
        model, reader, known = self._model, self._reader, self._known_under_way
        if replies:
            # The operator of flags takes many times as long.
            self._is_in_transaction = bool(int.__and__(replies[-1].status, _ACTIVE))
        if (
            known is not None
            and model is not None
            and len(replies) == 1
            and self._follow_known(known, model, replies[0])
        ):
            self._known_under_way = None
            return NOTHING_LEFT
        under_way, self._under_way = self._under_way, []
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
            self._withdraw(under_way)
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
        is_more = self._unsettled or self._doubts or self._homeless
        return Done(warnings, self._settle if is_more else None)

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
        numbers += [one.number for one in self._unsettled if one.is_intended]
        if known is not None and isinstance(known[1], KnownWrite):
            numbers.append(known[2])
        if self._is_tracked and self._shared is not None:
            for number in numbers:
                self._shared.attributions.done(self._thread_id, number, None, ())
        for kept in (
            self._followed,
            self._under_way,
            self._unsettled,
            self._doubts,
            self._homeless,
        ):
            kept.clear()
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
            return Refuse(_not_known("binlane failed to find out what it would do", self._model))
        return self._run_unread(None)

    def _may_take_rows(self, shared: PortParts) -> bool:
        """Whether every binlog may have the rows of what the session does, whatever it is."""
        if self._model is not None:
            return _may_take_rows(self._model.session)
        return not shared.global_values() and _are_unscoped_rows(shared.definitions())

    async def ended(self) -> None:
        """The session is over: what it had for itself at the source is gone there."""
        await self._drop_temporary()
        self._forget()

    # Beginning and end ----------------------------------------------------------------------------

    def _forget(self) -> None:
        """Let the model go, and what is told of its groups."""
        self._end_tracking()
        self._note_tracking(None)
        self._model = self._reader = None
        self._warnings.forget()
        self._under_way.clear()
        self._known_under_way = None
        self._long_texts.forget()
        self._alike.clear()
        self._passing.clear()
        self._planning.clear()
        self._is_out_of_step = self._is_in_transaction = self._hides_tables = False

    async def _drop_temporary(self) -> None:
        """Have binlogs drop the temporary tables that the source has dropped by itself."""
        model, reader = self._model, self._reader
        if model is None or reader is None or self._may_be_writing or self._is_out_of_step:
            return
        context = reader.last()
        planned = model.disconnect()
        if not planned.homeless or context is None:
            return
        self._planning.know(planned.numbers, context)
        self._spoils = False
        self._find_home(planned)
        homeless, self._homeless = self._homeless, []
        for what in homeless:
            await self._mark(what)

    def _end_tracking(self) -> None:
        """Say that nothing more is told of the session's groups."""
        if self._is_tracked and self._shared is not None:
            attributions = self._shared.attributions
            if self._is_under_way:
                attributions.lost(self._thread_id)
            attributions.given(self._thread_id)
        self._is_tracked = False

    async def _begun(self) -> PlannedSession | None:
        """The model, begun if there is none that can go on; None where no session is judged."""
        model = self._model
        return await self._begin() if model is None or self._begins_anew else model

    @property
    def _begins_anew(self) -> bool:
        """Whether the model does not know what the session does, and begins anew before it goes on."""
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
        )
        for name, value in circumstances.variables.items():
            if name not in NAMES:
                session.execute(f"SET SESSION {name} = {_literal(value)}")
        before = None if self._model is None else self._model.session
        session.begin_with(parts.global_values(), before)
        is_new = self._reader is None and not self._has_passed
        session.programs.hides_prepared = not is_new
        if circumstances.is_in_transaction:
            session.execute("BEGIN")
        model = self._model = PlannedSession(session)
        if self._reader is None:
            self._reader = ContextReader(circumstances.server)
        if not is_new:
            # It may hold a timestamp of its own, which it has to take back.
            self._reader.lost_track()
        self._is_out_of_step = False
        # What it has done in it so far is not known.
        self._spoils = circumstances.is_in_transaction or self._hides_tables
        self._is_in_transaction = circumstances.is_in_transaction
        if is_new:
            # Later it might have to be asked before a statement that reads warnings.
            await self._read_context(model, self._reader)
        return model

    def _wants_tracking(self, model: PlannedSession) -> bool:
        """Whether it matters from now on which groups of the source are the session's."""
        return not self._is_tracked and model.needs_plans and not self._is_in_transaction

    async def _begin_tracking(self, parts: PortParts) -> None:
        """Have the source tell the session's groups by their GTIDs."""
        await parts.marker.open()
        there_s = time.monotonic()
        await self._have_gtids_told()
        if self._flavor is Flavor.MARIADB:
            asked = await self._client.query_source(
                "SELECT @@last_gtid, @@GLOBAL.gtid_binlog_pos LIMIT 1"
            )
            self._last, logged = (value or "" for value in asked.texts()[0])
        else:
            asked = await self._client.query_source("SELECT @@GLOBAL.gtid_executed LIMIT 1")
            logged = asked.texts()[0][0] or ""
        self._there_s, self._is_tracked = there_s, True
        position = parse_position(logged, self._flavor.value)
        parts.attributions.taken(self._thread_id, position)

    async def _have_gtids_told(self) -> None:
        """Have the source tell the GTIDs of the session's groups, whatever the client has it tell."""
        if self._tracking is None:
            asked = await self._client.query_source(
                f"SELECT @@SESSION.{TRACKING[self._flavor]} LIMIT 1"
            )
            await self._client.run_at_source(telling_gtids(self._flavor))
            self._note_tracking(asked.texts()[0][0] or "")

    def _note_tracking(self, tracking: str | None) -> None:
        """Note what the client has of `TRACKING`; None for what the source has."""
        self._tracking = tracking
        self._hides_gtids = tracking is not None and not tells_gtids(tracking)

    async def _told_last(self) -> str:
        # A LIMIT of its own stands above the sql_select_limit of the client, which may be 0.
        return (await self._client.query_source("SELECT @@last_gtid LIMIT 1")).texts()[0][0] or ""

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

    @staticmethod
    def _is_nothing(facts: StatementFacts) -> bool:
        """Whether a session may begin with a statement without the model knowing of it."""
        effects = facts.effects
        if facts.error is not None or effects.stopped_at is not None:
            return False
        if not is_lexed_alike(facts.text):
            return False
        if effects.kind is StatementKind.SET:
            names = {one.name for one in facts.assignments}
            is_heard = names.isdisjoint(_WATCHED) and not concerns(facts, is_first=True)
            return is_heard and runs_nothing_stored(facts)
        return (
            (effects.kind in _READS or facts.verb == _DIAGNOSTICS)
            and not concerns(facts, is_first=True)
            and not shows(facts)
            and not effects.writes
            and not facts.has_into
            and not facts.statement_assignments
            and runs_nothing_stored(facts)
        )

    def _pass_unread(self, text: str) -> Pass | None:
        """Let a statement pass that nobody has to follow yet; None for others."""
        if not text.isascii() and _MAY_HIDE.search(text):
            return None
        facts, shared = self._first_read(text), self._shared
        if (
            facts.shape is not None
            and facts.shape in self._passing
            and shared is not None
            and shared.definitions() is self._definitions
            and not shared.global_values()
        ):
            return PASS
        if self._is_nothing(facts):
            return PASS
        if shared is None or not self._concerns_nobody(facts):
            return None
        self._has_passed = True
        if shared.definitions() is not self._definitions or len(self._passing) >= _ALIKE_MAX:
            self._definitions = shared.definitions()
            self._passing.clear()
        if facts.shape is not None:
            self._passing.add(facts.shape)
        return PASS

    def _only_reads_diagnostics(self, text: str) -> bool:
        """Whether a statement reads what the last one left, which to begin takes away, and no more.

        The notes of the binlogs, and what a refused statement left, are still to be put in.
        """
        if self._warnings.are_changed or (not text.isascii() and _MAY_HIDE.search(text)):
            return False
        facts = self._first_read(text)
        return reads_diagnostics(facts) and self._is_nothing(facts)

    def _first_read(self, text: str) -> StatementFacts:
        return read(text, database="", dialect=self._first_dialect)

    async def _concern_nobody(self, statements: Sequence[ClientStatement]) -> bool:
        """Whether that holds for all of some statements."""
        if self._shared is None or not all(one.is_complete for one in statements):
            return False
        texts = [one.text for one in statements]
        await self._long_texts.read(texts, "", self._first_dialect)
        for number, text in enumerate(texts):
            await _turn_ends(number)
            if not self._concerns_nobody(self._first_read(text)):
                return False
        self._has_passed = True
        return True

    def _concerns_nobody(self, facts: StatementFacts) -> bool:
        """Whether no binlog could refuse a statement, or have anything but its rows.

        So it is where all binlogs log everything as rows, of sessions that do not say otherwise.
        """
        shared = self._shared
        if shared is None or shared.global_values():
            return False
        definitions = shared.definitions()
        if not _are_unscoped_rows(definitions):
            return False
        names = {one.name for one in (*facts.assignments, *facts.statement_assignments)}
        return (
            facts.effects.stopped_at is None
            and _MAY_HIDE.search(facts.text) is None
            and names.isdisjoint(_WATCHED - _ASKED_FOR)
            and not concerns(facts, is_first=True)
            and not shows(facts)
        )

    # Before a statement runs ----------------------------------------------------------------------

    async def _judge_unread(
        self, model: PlannedSession, reader: ContextReader, statement: ClientStatement
    ) -> Verdict:
        """Judge a command whose text is not known, or not with its values."""
        may_log_rows = model.session.may_log_rows
        text = reader.read_text(statement.text) if statement.is_prepared else None
        if text and (may_log_rows or not statement.is_bulk):
            facts = await self._known(model, text)
            return await self._judge_text(model, reader, text, facts, is_complete=False)
        if may_log_rows:
            return self._run_unread(None)
        if statement.is_bulk:
            return Refuse(_NO_BULK)
        if statement.is_prepared:
            return Refuse(_NO_VALUES)
        return Refuse(_NO_TEXT if statement.text else _TOO_LONG)

    def _run_unread(self, *ran: StatementFacts | None) -> Verdict:
        """Let a command run that nobody follows: what is known of the session does not hold then.

        Args:
            ran: What its statements say; None of one that is not read.
        """
        self._lose_step(*ran)
        self._warnings.forget()
        reader = self._reader
        if reader is None:
            self._has_passed = True
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
        if concerns(facts):
            told = await self._rewrite(model, facts)
            if told.global_values:
                return await self._set_global(model, reader, told)
            if told.source != told.model:
                self._planning.know_rewritten(model.session.state.number + 1)
            text, facts = told.model, await self._known(model, told.model)
            verdict = await self._judge_text(model, reader, text, facts)
            if not isinstance(verdict, Run) or told.source == text:
                return verdict
            self._under_way[-1].rewritten = told
            if is_prepared and facts.effects.kind is not StatementKind.SET:
                # Its client takes rows in another form than those of a text.
                return Refuse(_NOT_PREPARED) if facts.statement_assignments else verdict
            return replace(verdict, text=self._as_sent(told.source))
        return await self._judge_text(model, reader, text, facts)

    async def _learn_prepared(self, model: PlannedSession, facts: StatementFacts) -> None:
        """Ask for the text that PREPARE takes from a variable, if its EXECUTE may be refused without."""
        tree = facts.tree
        if (
            isinstance(tree, Prepare)
            and tree.verb == "PREPARE"
            and not _may_take_rows(model.session)
        ):
            await self._learn_variables(model, facts)

    async def _learn_variables(self, model: PlannedSession, facts: StatementFacts) -> bool:
        """Ask for user variables that a statement names and the model does not know; whether any was.

        What asking changes for the client, FOUND_ROWS() and on MySQL its warnings, weighs less than a
        refusal.
        """
        programs = model.session.programs
        names = dict.fromkeys(use.name.lower() for use in facts.user_variables)
        unknown = [name for name in names if programs.user_variables.get(name) in (None, UNKNOWN)]
        if not unknown:
            return False
        asked = [asked_variable(name) for name in unknown]
        columns = ", ".join(f"{value}, {collation}" for value, _, collation in asked)
        # Refused, such as by KILL QUERY, or in a character set that cannot be read.
        with suppress(StatementError, ValueError):
            answer = await self._client.query_source(f"SELECT {columns} LIMIT 1")
            for place, name in enumerate(unknown):
                text, collation = (cell_text(answer, 2 * place + at) for at in (0, 1))
                if answer.heads[2 * place].type_code == ColumnType.LONGLONG and text:
                    programs.know(name, int(text))
                elif answer.heads[2 * place].type_code not in _NUMBERS:
                    programs.know(name, None if text is None else Text(text, collation or ""))
        return True

    async def _own_error(self, facts: StatementFacts) -> StatementError | None:
        """The error by which the source refuses a statement that is not known, too; None if it does not.

        It is prepared there, which executes nothing; of a text that is made up, that text.
        """
        tree = facts.tree
        if isinstance(tree, Prepare) and tree.source is not None and runs_nothing_stored(facts):
            tried = facts.text_of(tree.source)
        elif is_program(facts):
            return None
        else:
            text = facts.text.replace("'", "''")
            if not facts.dialect.no_backslash_escapes:
                text = text.replace("\\", "\\\\")
            tried = f"'{text}'"
        try:
            await self._client.run_at_source(self._as_sent(f"PREPARE {_TRIED} FROM {tried}"))
        except StatementError as error:
            return None if error.errno in _NOT_TRIED else error
        await self._client.run_at_source(f"DEALLOCATE PREPARE {_TRIED}")
        return None

    async def _set_global(
        self, model: PlannedSession, reader: ContextReader, told: Rewritten
    ) -> Verdict:
        """Run a SET that holds for later sessions; they have it once the client is answered."""
        assert self._shared is not None, "the model goes along with the source"
        facts = await self._known(model, told.model)
        refusal = await self._refusal(model, facts, model.preview(told.model).result)
        if refusal is not None:
            return Refuse(refusal)
        reply = await self._client.run_at_source(self._as_sent(told.source))
        try:
            await asyncio.to_thread(self._shared.set_global_values, told.global_values)
        except StoreError as error:
            raise StatementError(f"the values were not kept: {error}", hint=error.hint) from None
        planned = model.execute(told.model)
        reader.ran(facts, None)
        self._warnings.follow(facts, [reply], planned.result.notes)
        return Give(OkAnswer(warnings=reply.warnings))

    async def _answer(self, model: PlannedSession, facts: StatementFacts) -> RowsAnswer | None:
        """The rows of a statement that asks for the binlogs' variables, or for warnings."""
        warnings, ask = self._warnings, self._client.query_source
        refused = warnings.of_refused(facts)
        if refused is not None:
            return refused
        questions = warnings.questions(facts)
        if questions:
            errors_max = model.session.system_variable("max_error_count")
            return warnings.answer(
                facts,
                [await ask(each) for each in questions],
                errors_max if isinstance(errors_max, int) else None,
            )
        if shows(facts):
            known = known_of(model.session, tracking=self._tracking)
            return shown(facts, await ask(self._as_sent(facts.text)), known)
        return None

    async def shown(self, statement: str, result: ResultSet) -> RowsAnswer:
        """The rows of a statement that shows variables, as the binlogs have them."""
        model = None if self._is_relayed else self._model or await self._begin()
        if model is not None:
            facts = await self._known(model, statement)
            if shows(facts):
                return shown(facts, result, known_of(model.session, tracking=self._tracking))
        return RowsAnswer(result.heads, result.rows)

    async def _rewrite(self, model: PlannedSession, facts: StatementFacts) -> Rewritten:
        """What the source runs of a statement on the binlogs' variables, and what the model."""
        session = model.session
        known = known_of(session, self._warnings.count, self._tracking)
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
        refusal = await self._refusal(model, facts, expected.result)
        if isinstance(refusal, UnjudgedError) and await self._learn_variables(model, facts):
            expected = await self._preview(model, text, facts)
            refusal = await self._refusal(model, facts, expected.result)
        if isinstance(refusal, UnjudgedError):
            refusal = await self._own_error(facts) or refusal
        if refusal is not None:
            return Refuse(refusal)
        needs = self._needs(model, reader, facts, expected) if is_complete else None
        if needs is not None and reader.must_ask(needs):
            await self._read_context(model, reader, needs)
        return self._send(text, model, facts, reader, expected, needs)

    def _as_rows(self, text: str, model: PlannedSession, expected: Planned) -> Planned:
        """What a statement does of which nothing can be in binlogs as text."""
        model.have_rows(len(expected.numbers))
        return model.preview(text)

    async def _judge_several(self, model: PlannedSession, texts: Sequence[str]) -> Verdict:
        """Judge all statements of a packet, each behind those before it, before any of them runs."""
        before = model.snapshot()
        under_way: list[_UnderWay] = []
        sources: list[str] = []
        try:
            for text in texts:
                await _turn_ends(len(sources))
                facts, told = await self._known(model, text, is_in_packet=True), None
                sources.append(text)
                if concerns(facts):
                    told = await self._rewrite_in_turn(model, facts)
                    sources[-1] = told.source
                    facts = await self._known(model, told.model, is_in_packet=True)
                expected = model.execute(facts.text)
                refusal = await self._refusal(model, facts, expected.result)
                if refusal is not None:
                    return Refuse(refusal)
                # What is asked of the source now is not what it will be when the statement's turn
                # comes: such a statement goes as rows.
                under_way.append(
                    _UnderWay(text=facts.text, facts=facts, expected=expected, rewritten=told)
                )
        finally:
            model.restore(before)
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
        if question(facts, known_of(model.session, tracking=self._tracking)) is None:
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
        """Whether the source runs a statement that is followed."""
        return bool(self._under_way) or self._known_under_way is not None

    @property
    def _may_be_writing(self) -> bool:
        """Whether the source runs a statement that may make groups."""
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
        """Let a statement run of which others have run that are alike; whether it is one.

        Args:
            text: The statement's.
            known: What is known of them.
            model: The session.
            reader: Of its context.
            shared: What it shares with others.
        """
        definitions, version, values = known.circumstances
        # The session's catalog may lack what was asked for since; this one's objects were known.
        if (
            definitions is not self._definitions
            or version is not shared.catalog.version
            or self._spoils
            or self._warnings.are_changed
            or not reader.begin_plain(values)
        ):
            return False
        number, body = model.session.state.number + 1, None
        if isinstance(known, KnownWrite):
            body = known.body(text)
            if not self._is_tracked or body is None:
                return False
            plans, thread_id = known.plans_of(body), self._thread_id
            shared.attributions.intend(thread_id, number, plans, known.encoded(body))
        elif self._wants_tracking(model):
            return False
        self._known_under_way = text, known, number, body
        return True

    def _follow_known(self, one: _KnownUnderWay, model: PlannedSession, reply: Reply) -> bool:
        """Follow such a statement; False where it did not do what others did.

        Args:
            one: It.
            model: The session.
            reply: The source's.
        """
        _, known, number, body = one
        shared, thread_id = self._shared, self._thread_id
        if (
            reply.errno
            or shared is None
            or known.circumstances.version is not shared.catalog.version
            or self._is_in_transaction is not model.session.is_transaction_active
        ):
            return False
        if isinstance(known, KnownRead):
            if reply.tracked or reply.gtids:
                return False
            model.repeat()
            return True
        if not self._is_tracked or body is None or reply.is_result_set:
            return False
        changed = _changed_rows(reply.info) if known.is_update else None
        if not (reply.affected_rows if changed is None else changed):
            return False
        model.repeat()
        last, insert_id = self._told((reply,)), reply.insert_id
        if last is None or not (insert_id and known.has_insert_id):
            shared.attributions.done(thread_id, number, last)
        else:
            plans, encoded = known.plans_of(body, insert_id), known.encoded(body, insert_id)
            shared.attributions.done(thread_id, number, last, plans, encoded)
        return True

    def _looked_at(
        self, one: _KnownUnderWay, model: PlannedSession, reader: ContextReader
    ) -> _UnderWay:
        """Such a statement, as one that nothing was known of: nothing has changed meanwhile."""
        text, known, _, _ = one
        expected = model.preview(text)
        session = model.session
        facts = read(text, database=session.database, dialect=session.dialect)
        needs = self._needs(model, reader, facts, expected)
        begun = None if needs is None else reader.begin(needs)
        context = None if begun is None else begun[0]
        if context is not None:
            self._planning.know(expected.numbers, context)
        return _UnderWay(
            text=text,
            facts=facts,
            expected=expected,
            context=context,
            use=self._use(model, facts, expected, needs),
            catalog_version=known.circumstances.version,
            is_intended=isinstance(known, KnownWrite),
        )

    def _keep(self, one: _UnderWay, effect: KnownEffect, reader: ContextReader) -> None:
        """Keep of a statement what others have that are alike."""
        kind, expected = one.facts.effects.kind, one.expected
        circumstances = Circumstances(self._definitions, one.catalog_version, reader.values)
        if self._spoils or not reader.begin_plain(reader.values):
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
        """What a statement says, with all objects known that it uses.

        Args:
            model: The session.
            text: The statement's.
            is_in_packet: The model may have done DDL that the source is still to do.
        """
        shared, session = self._shared, model.session
        assert shared is not None, "the model goes along with the source"
        facts = read(text, database=session.database, dialect=session.dialect)
        if not shared.catalog.covers(facts, session.database):
            own = own_questions(self._client, session, facts)
            try:
                asked = await shared.catalog.fetch(facts, session.database, own)
            except StatementError as error:
                raise _NotToldError(error) from None
            if is_in_packet:
                shared.catalog.extend(self._catalog, asked)
            else:
                shared.catalog.fit(self._catalog)
        return facts

    async def _preview(self, model: PlannedSession, text: str, facts: StatementFacts) -> Planned:
        """What a statement would do, with all objects known that it uses."""
        expected = model.preview(text)
        while await self._read_missed(model, facts):
            expected = model.preview(text)
        return expected

    async def _read_missed(self, model: PlannedSession, facts: StatementFacts) -> bool:
        """Read what the model looked for and no text names; whether there was anything."""
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
        self, model: PlannedSession, facts: StatementFacts, result: StatementResult
    ) -> StatementError | None:
        """Why a statement must not run; None if it may, or the source will say it."""
        if result.unanalysed is not None:
            if _may_take_rows(model.session) or _is_logged_by_its_text(facts, model.session):
                return None
            at = result.unanalysed.offset
            where = f" near {facts.text[at : at + _SHOWN]!r}" if facts.text[at:] else ""
            return _not_known(f"{result.unanalysed.reason}{where}", model)
        error = result.error
        if error is None or not is_own(error):
            return None
        error = as_told(error, await self._seen())
        whys = [why.hint for why in error.why] or [HINTS.get(error.symbol, "")]
        self._warnings.refuse(error, dict.fromkeys(filter(None, whys)))
        return StatementError(error.message, errno=error.errno, sqlstate=error.sqlstate)

    async def _seen(self) -> Collection[str] | None:
        """The binlogs that the client may see; None for all."""
        assert self._shared is not None, "the model goes along with the source"
        try:
            return await self._shared.seen(self._client)
        except StatementError:
            return ()  # what cannot be found out is not told

    def _needs(
        self,
        model: PlannedSession,
        reader: ContextReader,
        facts: StatementFacts,
        expected: Planned,
    ) -> Needs | None:
        """What has to be known of the context of a statement; None where nothing of it is text."""
        if not expected.has_texts or not self._is_tracked or self._spoils or self._shared is None:
            return None
        session = model.session
        use = self._shared.uses.of(facts, session, self._shared.catalog.version)
        if use.reads.are_unlocked(locks_reads=session.locks_reads):
            return None
        resolved = session.opened_by(facts, session.database)
        self._planning.know_generated(expected.number, resolved)
        self._planning.know_words(expected.number, facts, resolved)
        if self._shared.tells_tables:
            self._planning.know_tables(expected.number, facts, resolved)
        return reader.needs(expected.values, use)

    def _use(
        self, model: PlannedSession, facts: StatementFacts, expected: Planned, needs: Needs | None
    ) -> ContextUse | None:
        """What a statement uses of its context; None where nobody has to look."""
        if needs is not None:
            return needs.use
        kind, shared = facts.effects.kind, self._shared
        if shared is None or kind not in _CHANGING or expected.has_texts or not self._is_tracked:
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
        """Note what is under way, in the journal, too, if it makes groups, and let it run."""
        begun = None if needs is None else reader.begin(needs)
        context, before = (None, reader.owed(facts)) if begun is None else begun
        if context is None and expected.has_texts:
            expected = self._as_rows(text, model, expected)
        one = _UnderWay(
            text=text,
            facts=facts,
            expected=expected,
            context=context,
            use=self._use(model, facts, expected, needs),
            catalog_version=None if self._shared is None else self._shared.catalog.version,
            sent_s=time.monotonic(),
        )
        if context is not None:
            self._planning.know(expected.numbers, context)
        if expected.groups and self._is_tracked and self._shared is not None:
            one.plans, thread_id = self._plans(expected), self._thread_id
            is_split = _is_split(expected)
            self._shared.attributions.intend(
                thread_id, expected.number, one.plans, is_split=is_split
            )
            one.is_intended = True
        self._under_way = [one]
        return Run(before)

    # Behind it ------------------------------------------------------------------------------------

    def _plans(self, planned: Planned) -> list[GroupPlan]:
        """The plans of a statement's groups; none where what stands in them is not certain."""
        if self._spoils:
            return []
        return [
            self._planning.plan(group, self._definitions, self._catalog) for group in planned.groups
        ]

    def _withdraw(self, under_way: Sequence[_UnderWay]) -> None:
        for one in under_way:
            if one.is_intended and self._is_tracked and self._shared is not None:
                thread_id, number = self._thread_id, one.expected.number
                self._shared.attributions.done(thread_id, number, None)

    def _each_reply(
        self, under_way: list[_UnderWay], replies: Sequence[Reply]
    ) -> Sequence[_Replied]:
        """The replies to each statement; none where they cannot be told apart."""
        if len(under_way) == 1:
            return [(under_way[0], replies)]
        if any(is_program(one.facts) for one in under_way):
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
        for _ in range(min(_TURN, len(behind))):
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
        await self._settle()

    def _more_warnings(
        self, model: PlannedSession, one: _UnderWay, replies: Sequence[Reply]
    ) -> int:
        """What `_follow` will give of a statement, by what the model foresaw."""
        notes = sum(note.is_told for note in one.expected.result.notes)
        return notes - self._hides(model.session, one, replies)

    def _lose_step(self, *ran: StatementFacts | None) -> None:
        """The model does not know any longer what the session does.

        Args:
            ran: What the statements say that it is because of; None of one that was not read.
        """
        self._is_out_of_step = self._spoils = True
        objects = self._catalog if self._model is None else self._model.session.objects
        may_make_tables = any(one is None or _may_make_tables(one, objects) for one in ran)
        self._hides_tables |= may_make_tables or bool(objects.temporary_tables())

    def _follow(
        self,
        model: PlannedSession,
        reader: ContextReader,
        one: _UnderWay,
        replies: Sequence[Reply],
    ) -> int:
        """Let the model do what the source has done, and say which groups that made.

        Returns:
            How many more warnings the client is told of than the source has.
        """
        assert self._shared is not None, "the model goes along with the source"
        reply, session, catalog = replies[-1], model.session, self._shared.catalog
        self._there_s = max(self._there_s, one.sent_s)
        if one.catalog_version is not catalog.version:
            self._doubts.append(Doubt.of(one.facts, session))
        planned = _carried_out(model, one, reply)
        reader.ran(one.facts, one.use)
        has_failed = planned.result.error is not None
        if planned.result.unanalysed is not None or has_failed != bool(reply.errno):
            self._lose_step(one.facts)
        kind = one.facts.effects.kind
        if kind in DDL_KINDS or kind is StatementKind.SET or is_program(one.facts):
            catalog.changed(one.facts, session.database, errno=reply.errno)
        if one.context is not None:
            one.context.answered(
                errno=reply.errno,
                insert_id=reply.insert_id,
                affected_rows=reply.affected_rows,
                info=reply.info,
            )
            self._planning.know(planned.numbers, one.context)
        if not reply.errno:
            is_active = _is_in_transaction(reply)
            if is_active != session.is_transaction_active:
                self._lose_step(one.facts)
        more = self._warnings.follow(
            *(one.facts, replies, planned.result.notes),
            hides=self._hides(session, one, replies),
        )
        self._tell(one, planned, replies)
        if one.rewritten is not None and one.rewritten.tracking is not None and not has_failed:
            self._note_tracking(one.rewritten.tracking)
        if planned.homeless:
            self._find_home(planned)
        if not session.is_transaction_active and not model.waits:
            self._planning.clear()
            self._spoils = self._is_out_of_step or self._hides_tables
        return more

    @staticmethod
    def _hides(session: Session, one: _UnderWay, replies: Sequence[Reply]) -> bool:
        """Whether one of the source's warnings is about its own log of rows alone."""
        return bool(replies[-1].warnings) and _is_of_blackhole(one.facts, session)

    def _tell(self, one: _UnderWay, planned: Planned, replies: Sequence[Reply]) -> None:
        """Tell `Attributions` which groups are of a statement, or find that out first."""
        if not self._is_tracked:
            self._lose_unplanned(planned, ())
            return
        last = self._told(replies)
        is_silent = replies[-1].errno or any(reply.is_result_set for reply in replies)
        may_write = one.facts.effects.kind not in _READS or bool(planned.groups)
        # Now, as the contexts of a transaction go with its end.
        is_same = one.is_intended and planned is one.expected and not self._spoils
        # An id that the server chose is told by the reply.
        plans = None if is_same and not replies[-1].insert_id else self._plans(planned)
        self._lose_unplanned(planned, one.plans if plans is None else plans)
        told = _Told(planned.number, plans, is_intended=one.is_intended)
        is_untold = bool(last is None and is_silent and may_write)
        if self._doubts or is_untold:
            self._unsettled.append(replace(told, last=last, is_untold=is_untold))
        else:
            self._attribute(told, last)

    def _told(self, replies: Sequence[Reply]) -> str | None:
        """What the replies say of the last group; None for nothing."""
        for reply in reversed(replies):
            told = reply.gtids or reply.tracked.get("last_gtid", "")
            if told and told != self._last:
                self._last = told
                return told
        return None

    def _attribute(self, told: _Told, last: str | None) -> None:
        assert self._shared is not None, "the session is tracked"
        attributions, thread_id = self._shared.attributions, self._thread_id
        if last is not None:
            attributions.done(thread_id, told.number, last, told.plans)
        elif told.is_intended:
            attributions.done(thread_id, told.number, None)

    async def _settle(self) -> None:
        """Ask for what the replies did not tell, and mark what has no group at the source."""
        unsettled, self._unsettled = self._unsettled, []
        homeless, self._homeless = self._homeless, []
        if not await self._are_settled():
            unsettled = [replace(one, plans=()) for one in unsettled]
            self._spoils = True
        for one in unsettled:
            await self._find_last(one)
        for what in homeless:
            await self._mark(what)

    async def _are_settled(self) -> bool:
        """Whether statements ran on the objects that they were judged with."""
        doubts, self._doubts = self._doubts, []
        shared = self._shared
        if not doubts or shared is None:
            return True
        try:
            for one in doubts:
                if self._locks_tables and not shared.catalog.covers(one.facts, one.database):
                    return False  # others would wait for its locks
                await shared.catalog.fetch(one.facts, one.database)
            objects = shared.catalog.catalog()
        except StatementError as error:
            logger.warning("%s: %s", self._client.peer, error, extra={"peer": self._client.peer})
            return False
        return all(one.is_settled(objects) for one in doubts)

    @property
    def _locks_tables(self) -> bool:
        """Whether LOCK TABLES is in force."""
        return self._model is not None and self._model.session.state.locked_tables is not None

    async def _find_last(self, one: _Told) -> None:
        """Find out the last group of a statement, if its replies did not tell it."""
        if not self._is_tracked or self._shared is None:
            return
        if not one.is_untold:
            self._attribute(one, one.last)
        elif self._flavor is Flavor.MARIADB:
            told = await self._told_last()
            last = told if told != self._last else None
            self._last = told
            self._attribute(one, last)
        else:
            await self._ask_for_all(self._shared, one)

    async def _ask_for_all(self, shared: PortParts, one: _Told) -> None:
        """Find out up to where the groups of a statement of MySQL are: errors and rows tell none.

        Not in the session, whose warnings any statement takes away.
        """
        thread_id = self._thread_id
        try:
            executed = await shared.marker.executed()
        except StatementError as error:
            logger.warning("%s: %s", self._client.peer, error, extra={"peer": self._client.peer})
            shared.attributions.done(thread_id, one.number, None, [])
        else:
            done = shared.attributions.done
            done(thread_id, one.number, executed, one.plans, is_bound=True)

    def _find_home(self, planned: Planned) -> None:
        """Keep what the source logs nothing of until it is marked."""
        model = self._model
        assert model is not None, "it told of that"
        parts: dict[str, tuple[Part, ...]] = {}
        ends: dict[str, EncodedEvent | None] = {}
        for name, groups in planned.homeless.items():
            made = self._planning.parts((part for group in groups for part in group), {})
            if made is None or not self._is_tracked or self._spoils:
                self._lose(model, name, groups)
                continue
            parts[name] = made
            if len(groups) == 1:
                ends |= self._planning.ends({name: planned.homeless_ends[name][0]}, groups[0])
        if parts:
            self._homeless.append(_Homeless(planned, parts, ends))

    def _lose_unplanned(self, planned: Planned, plans: Sequence[GroupPlan]) -> None:
        """Let the model know which binlogs get the rows of a group in which it has texts.

        Args:
            planned: What it says of a statement.
            plans: Of the statement's groups; none where nothing of them is certain.
        """
        model = self._model
        assert model is not None, "it told of that"
        for place, group in enumerate(planned.groups):
            given = plans[place].binlogs if place < len(plans) else ()
            for name, parts in group.binlogs.items():
                if name not in given:
                    self._lose(model, name, [parts])

    @staticmethod
    def _lose(model: PlannedSession, name: str, groups: Iterable[Iterable[DraftPart]]) -> None:
        for group in groups:
            model.lose(name, group)

    async def _mark(self, homeless: _Homeless) -> None:
        """Have the source log a group for what it logs nothing of."""
        model, shared, thread_id = self._model, self._shared, self._thread_id
        if model is None or shared is None or not self._is_tracked:
            return
        parts = homeless.parts
        if not shared.has_marks:
            for name in parts:
                self._lose(model, name, homeless.planned.homeless[name])
            return
        plan = GroupPlan(binlogs=parts, bases=bases(self._definitions, parts), ends=homeless.ends)
        number = model.count()
        shared.attributions.intend(thread_id, number, [plan])
        try:
            last = await shared.marker.mark(thread_id, self._there_s)
        except StatementError as error:
            logger.warning("%s: %s", self._client.peer, error, extra={"peer": self._client.peer})
            shared.attributions.done(thread_id, number, None, [])
            for name in parts:
                self._lose(model, name, homeless.planned.homeless[name])
        else:
            is_bound = self._flavor is Flavor.MYSQL
            shared.attributions.done(thread_id, number, last, is_bound=is_bound)


def _are_unscoped_rows(definitions: Iterable[Definition]) -> bool:
    """Whether all binlogs log everything, as rows."""
    return all(one.logging_mode is LoggingMode.ROW and one.scope.is_unscoped for one in definitions)


def _may_take_rows(session: Session) -> bool:
    """Whether every binlog may have the rows of what a session does, whatever it is.

    Not where one has a scope: what it would have by halves is refused.
    """
    return session.may_log_rows and not session.has_scopes


def _may_make_tables(facts: StatementFacts, objects: SchemaCatalog) -> bool:
    """Whether a statement may make temporary tables: programs that it runs may."""
    effects = facts.effects
    if effects.is_temporary or effects.stopped_at is not None or is_program(facts):
        return True
    has_calls = not all(is_built_in(one.name, facts.dialect) for one in facts.functions)
    return has_calls or (effects.kind not in DDL_KINDS and objects.has_programs)


def _is_logged_by_its_text(facts: StatementFacts, session: Session) -> bool:
    """Whether a statement is in the source's log, and in each binlog, as its text, whatever it is."""
    effects = facts.effects
    return effects.kind in DDL_KINDS and not effects.is_temporary and not session.has_scopes


def _not_known(what: str, model: PlannedSession | None) -> UnjudgedError:
    """Why a statement is refused of which it is not known what it does."""
    has_scopes = model is not None and model.session.has_scopes
    return UnjudgedError(what, hint=_WITHOUT_SCOPES if has_scopes else _AS_ROWS)


def _carried_out(model: PlannedSession, one: _UnderWay, reply: Reply) -> Planned:
    """What the model says of a statement once it is known what came of it."""
    if one.context is None and one.expected.has_texts:
        model.have_rows(len(one.expected.numbers))
    return model.execute(one.text, _outcome(one.facts, reply))


def _is_split(planned: Planned) -> bool:
    """Whether a statement commits what was done before it, and then makes a group of its own."""
    if len(planned.groups) != _AND_ITS_OWN:
        return False
    numbers = [number for number, _ in planned.groups[0].sections]
    return bool(numbers) and all(number < planned.number for number in numbers)


async def _turn_ends(done: int) -> None:
    """Let other sessions go on, if that many statements of a packet make a turn."""
    if done and not done % _TURN:
        await asyncio.sleep(0)


def _is_of_blackhole(facts: StatementFacts, session: Session) -> bool:
    """Whether a source that logs rows warns of a statement as no server does that logs it as text."""
    if facts.effects.kind not in _WITHOUT_ROWS or session.has_row_binlogs:
        return False
    return any(
        access.changes and access.table.engine.upper() == "BLACKHOLE"
        for access in session.opened_by(facts, session.database).accesses
    )


def _is_in_transaction(reply: Reply) -> bool:
    # The operator of flags takes many times as long.
    return bool(int.__and__(reply.status, _ACTIVE))


def _literal(value: str) -> str:
    return value if _BARE.fullmatch(value) else "'" + value.replace("'", "''") + "'"


def _outcome(facts: StatementFacts, reply: Reply) -> Outcome:
    """What a reply says that the model does not know."""
    if reply.errno:
        return Outcome(error=reply.errno)
    if facts.effects.kind not in WRITING_KINDS or reply.is_result_set:
        return NO_OUTCOME
    changed = reply.affected_rows
    if (
        facts.effects.kind is StatementKind.UPDATE
        and (told := _changed_rows(reply.info)) is not None
    ):
        changed = told  # a client may ask for the rows that were found instead
    return NO_OUTCOME if changed else Outcome(rows=0)


def _changed_rows(info: str) -> int | None:
    """How many rows the info of an UPDATE's OK packet says were changed."""
    number = info.partition(" Changed: ")[2].partition(" ")[0]
    return int(number) if number.isdigit() else None
