"""The context of a session, asked of the source in the client's own session.

`ContextReader` asks by a SELECT of variables: when the session begins, and again behind any statement that
may have changed them, before the next statement that is to be logged as its text. Asking changes the values
of ROW_COUNT() and FOUND_ROWS(), and on MySQL SHOW WARNINGS; every statement that makes the reader ask changes
these as well, so the client does not see it: before a statement that reads them itself nothing is asked, and
that statement is logged as rows.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Final, NamedTuple

from binlane.errors import StatementError
from binlane.live.port.context_use import PLAIN, ContextUse
from binlane.live.port.context_values import ContextValues, asked_values, context_values
from binlane.live.port.session_clock import SessionClock
from binlane.live.port.statement_context import StatementContext
from binlane.live.port.user_variables import asked as asked_variable
from binlane.live.port.user_variables import variable_event
from binlane.log.codec.charsets import collation_of
from binlane.log.codec.client_text import is_alike, read_text, text_telling, written_text
from binlane.log.codec.format import Format
from binlane.log.codec.packets.framing import bytes_of, text_of
from binlane.log.codec.packets.results import ResultSet
from binlane.log.codec.types import ChecksumAlgorithm, Flavor
from binlane.log.codec.variables import IntvarEvent, IntvarKind, RandEvent
from binlane.names import TableName
from binlane.statements.policy.server import Server
from binlane.statements.programs.host import LoggedVariable
from binlane.statements.session.log_events import Body
from binlane.statements.session.variables import ACCESS_NAMES, ISOLATION_NAMES
from binlane.statements.sql.evaluation.functions import is_built_in
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.statement_kinds import WRITING_KINDS, StatementKind
from binlane.statements.sql.tree.expressions import Literal, Name

_INSERT_ID: Final = int(IntvarKind.INSERT_ID)
_DATABASE_VERBS: Final = frozenset(("CREATE DATABASE", "ALTER DATABASE", "DROP DATABASE"))

Ask = Callable[[str], Awaitable[ResultSet]]
"""Runs a statement in the client's session on the source."""

_OF_TRANSACTIONS: Final = (
    frozenset(("autocommit", "transaction isolation level", "transaction access mode"))
    | ISOLATION_NAMES
    | ACCESS_NAMES
)
_TIMESTAMP: Final = "@@timestamp"
_SEEDS: Final = ("@@rand_seed1", "@@rand_seed2")
_LAST_INSERT_ID: Final = "LAST_INSERT_ID()"
_OWN_COLLATION: Final = (
    "SELECT DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA"
    " WHERE SCHEMA_NAME = DATABASE() LIMIT 1"
)
_FORMATS: Final[Mapping[Flavor, Format]] = MappingProxyType(
    {
        flavor: Format(
            server_version="",
            flavor=flavor,
            checksum=ChecksumAlgorithm.NONE,
            post_header_lengths=b"",
        )
        for flavor in Flavor
    }
)
"""For events whose layout no version changed."""
_ROUTINE: Final = (
    "SELECT r.SQL_MODE, r.CHARACTER_SET_CLIENT, r.COLLATION_CONNECTION, r.DATABASE_COLLATION,"
    " s.DEFAULT_COLLATION_NAME FROM information_schema.ROUTINES r"
    " JOIN information_schema.SCHEMATA s ON s.SCHEMA_NAME = r.ROUTINE_SCHEMA"
    " WHERE r.ROUTINE_TYPE = 0x{kind} AND r.ROUTINE_SCHEMA = 0x{database}"
    " AND r.ROUTINE_NAME = 0x{name} LIMIT 1"
)
_SEED_MAX: Final = 0x3FFFFFFE
_CLIENT_CHARSETS: Final = frozenset(("names", "character_set_client", "character set"))
_DATABASE_COLLATIONS: Final = frozenset(("collation_database", "character_set_database"))
_SEED_NAMES: Final = frozenset(("rand_seed1", "rand_seed2"))
_RUNS_OTHERS: Final = frozenset(
    (
        *(StatementKind.CALL, StatementKind.COMPOUND, StatementKind.EXECUTE),
        StatementKind.EXECUTE_IMMEDIATE,
    )
)
_OF_DIAGNOSTICS: Final = frozenset(
    (
        *("SHOW WARNINGS", "SHOW ERRORS", "SHOW COUNT", "GET DIAGNOSTICS"),
        *("SHOW PROFILE", "SHOW PROFILES", "SHOW STATUS", "SHOW SESSION STATUS"),
    )
)
_TRACES: Final = frozenset(("optimizer_trace", "profiling"))
"""Tables of information_schema that tell of the session's last statements."""


_SYSTEM_CHARSET: Final = "utf8mb3"
_AT_THE_END: Final = PLAIN._replace(is_thread_specific=True)


class Needs(NamedTuple):
    """Parts of a statement's context that have to be known before the statement is sent.

    Attributes:
        use: Use that the statement makes of its context.
        variables: Names of user variables that are logged with the statement.
        last_insert_id: True if LAST_INSERT_ID() has to be known.
        seeds: True if the seeds of RAND() have to be known.
    """

    use: ContextUse
    variables: tuple[str, ...] = ()
    last_insert_id: bool = False
    seeds: bool = False


@dataclass(slots=True)
class _AskedValues:
    """Values that the source told for one statement.

    Attributes:
        variables: Events of user variables, by name in small letters.
        last_insert_id: Value of LAST_INSERT_ID(); None where it was not asked for.
        seeds: Seeds of RAND(); None where they were not asked for.
        routine: Context in which the called procedures run; empty if that is not known or not the same for
            all, None where none was asked for.
    """

    variables: dict[str, bytes] = field(default_factory=dict)
    last_insert_id: int | None = None
    seeds: tuple[int, int] | None = None
    routine: tuple[str | None, ...] | None = None


class _Asked(NamedTuple):
    """Expressions whose values are asked for, and the function that takes them from the answer."""

    expressions: Sequence[str]
    take: Callable[[ResultSet, int], None]


class ContextReader:
    """Knows the context of one session.

    Attributes:
        values: The session's variables as last read; None before, and where they are not known.
        is_dirty: True if the variables may have changed since.
        is_charset_known: True if the character set of the client's texts cannot have changed since.
        clock: Time at which the session's statements run.
    """

    def __init__(
        self,
        server: Server,
        *,
        clock: Callable[[], float] = time.time,
        seed: Callable[[int], int] = secrets.randbelow,
    ) -> None:
        """Begin before the session's first statement.

        Args:
            server: The server that is the source.
            clock: Gives the seconds since 1970.
            seed: Gives a random number from 0 up to its argument, without it.
        """
        self._server = server
        self._flavor = Flavor(server.flavor)
        self.clock = SessionClock(clock)
        self._seed = seed
        self._asked = _AskedValues()
        self._has_own_seeds = False
        self._is_collation_own = True
        self._own_collation: tuple[str, str] | None = None
        self.values: ContextValues | None = None
        self.is_dirty = True
        self.is_charset_known = False

    def read_text(self, text: str) -> str | None:
        """A client's text, read in the character set that it is in; None where it cannot be read.

        Args:
            text: Text as the gateway has it; where its character set is not known, `read` comes first.
        """
        if self.values is None or not self.is_charset_known:
            return text if is_alike(text) else None
        if text.isascii() or self.values.is_text_as_it_came:
            return text
        return read_text(bytes_of(text), self.values.client_charset)

    # Before a statement -------------------------------------------------------------------------

    def needs(self, bodies: Sequence[Body], use: ContextUse) -> Needs | None:
        """Give the context to know before a statement is sent; None where it can only be logged as rows.

        Args:
            bodies: Events that the session would append for the statement.
            use: Use that the statement makes of its context.
        """
        if not use.is_known or use.sets_context:
            return None
        # A program may wait for time to pass, which would stand still.
        must_not_be_set = use.needs_server_time or (use.needs_microseconds and use.is_program)
        if must_not_be_set and self.clock.fixed is None:
            return None
        variables: list[str] = []
        last_insert_id = seeds = False
        for body in bodies:
            if isinstance(body, IntvarEvent):
                last_insert_id |= body.kind != _INSERT_ID
            elif isinstance(body, LoggedVariable):
                variables.append(body.name)
            elif isinstance(body, RandEvent):
                seeds = True
        found = Needs(use, tuple(variables), last_insert_id, seeds)
        if found.seeds and self._has_own_seeds and not self._server.is_mariadb:
            return None  # they are not told, and the client counts on them
        if use.reads_diagnostics and (self.must_ask(found) or use.needs_microseconds):
            return None
        return found

    def must_ask(self, needs: Needs) -> bool:
        """True if the source has to be asked before the statement is sent."""
        return (
            self.is_dirty
            or bool(needs.variables)
            or needs.last_insert_id
            or (needs.seeds and self._server.is_mariadb)
            or bool(needs.use.routines)
            or (needs.use.needs_microseconds and self.clock.has_drifted)
        )

    async def read(self, ask: Ask, needs: Needs | None = None) -> None:
        """Ask for all values that are not known; those that the source does not tell stay unknown.

        Args:
            ask: Runs a SELECT in the client's session.
            needs: Needs of the statement that waits; None for the session's variables alone.

        Raises:
            PeerError: If the source goes away.
        """
        self._asked = _AskedValues()
        # Refused, such as by KILL QUERY, or in a character set that cannot be read: `begin` says so.
        with suppress(StatementError, ValueError):
            await self._read(ask, needs)

    @property
    def expressions(self) -> tuple[str, ...]:
        """The expressions of all values of a session that begins, for `take`."""
        return asked_values(self._server)

    async def take(self, ask: Ask, answer: ResultSet, place: int, asked_s: float) -> None:
        """Take the values of `expressions` from the answer to a question that had them, too.

        Args:
            ask: Runs a SELECT in the client's session, as for `read`.
            answer: The answer, of one row.
            place: Number of the column of the first expression, from 0.
            asked_s: Time by the reader's clock at which the question was sent.

        Raises:
            PeerError: If the source goes away.
        """
        middle = (asked_s + self.clock.now()) / 2
        with suppress(StatementError, ValueError):
            given = {
                name: answer.cell_text(at) for at, name in enumerate(self.expressions, start=place)
            }
            await self._take_values(ask, given, middle)

    async def _read(self, ask: Ask, needs: Needs | None) -> None:
        names = () if needs is None else needs.variables
        if not (self.is_charset_known or all(map(is_alike, names))):
            await self._read(ask, None)
        if needs is not None:
            for routine in needs.use.routines:
                await self._ask_routine(ask, routine)
        values = asked_values(self._server) if self.is_dirty or self.clock.has_drifted else ()
        of_statement = self._asked_for(needs)
        asked = [*values, *(expression for one in of_statement for expression in one.expressions)]
        if not asked:
            return
        start = self.clock.now()
        answer = await ask(f"SELECT {', '.join(asked)} LIMIT 1")
        middle = (start + self.clock.now()) / 2
        if values:
            given = {name: answer.cell_text(place) for place, name in enumerate(values)}
            await self._take_values(ask, given, middle)
        place = len(values)
        for one in of_statement:
            one.take(answer, place)
            place += len(one.expressions)

    def _asked_for(self, needs: Needs | None) -> list[_Asked]:
        """Give the expressions that are asked for one statement."""
        if needs is None:
            return []
        found = []
        if needs.last_insert_id:
            found.append(_Asked((_LAST_INSERT_ID,), self._take_last_insert_id))
        if needs.seeds and self._server.is_mariadb:
            found.append(_Asked(_SEEDS, self._take_seeds))
        written = dict(needs.use.variable_names)
        for name in needs.variables:
            sent = self._sent(name)
            if sent:
                take = partial(self._take_variable, name, written.get(name.lower(), name))
                found.append(_Asked(asked_variable(sent), take))
        return found

    def _take_last_insert_id(self, answer: ResultSet, place: int) -> None:
        self._asked.last_insert_id = int(answer.cell_text(place) or 0)

    def _take_seeds(self, answer: ResultSet, place: int) -> None:
        first, second = answer.cell_text(place), answer.cell_text(place + 1)
        self._asked.seeds = (int(first or 0), int(second or 0))

    async def _take_values(self, ask: Ask, given: Mapping[str, str | None], middle: float) -> None:
        database, collation = given["DATABASE()"] or "", given["@@collation_database"] or ""
        if self._is_collation_own:
            self._own_collation = (database, collation)
        elif self._own_collation is None or self._own_collation[0] != database:
            rows = (await ask(_OWN_COLLATION)).texts()
            self._own_collation = (database, (rows[0][0] or "") if rows else collation)
        self.values = context_values(
            given,
            self._server,
            database_collation=self._own_collation[1],
        )
        again = None
        if self.clock.is_in_doubt:
            again = (await ask(f"SELECT {_TIMESTAMP} LIMIT 1")).cell_text(0)
        self.clock.measure(given[_TIMESTAMP] or "0", again, middle)
        self.is_dirty = False
        self.is_charset_known = self.values is not None

    async def _ask_routine(self, ask: Ask, name: TableName) -> None:
        """Ask in which context a procedure runs: that of its creation."""
        rows = (await ask(_routine_question(name))).texts()
        found = rows[0] if rows else ()
        if self._asked.routine not in (None, found):
            found = ()  # not the same for all: rows
        self._asked.routine = found

    def _sent(self, name: str) -> str:
        """A name as the client would send it, which the gateway takes for UTF-8; empty: it cannot."""
        if self.values is None or is_alike(name):
            return name
        text = text_telling(name, self.values.client_charset)
        written = None if text is None else written_text(text, self.values.client_charset)
        return text_of(written or b"")

    def _take_variable(self, name: str, written: str, answer: ResultSet, at: int) -> None:
        try:
            # The servers write it as it was first set, which is seldom another way.
            shown = written.encode()
        except UnicodeEncodeError:
            return  # bytes without a character set
        event = variable_event(shown, answer, at, self._flavor)
        if event is not None:
            self._asked.variables[name.lower()] = event.encode(_FORMATS[self._flavor])

    def begin(self, needs: Needs) -> tuple[StatementContext, tuple[str, ...]] | None:
        """The context of a statement that is now sent, and the statements to send before it.

        None where it is not known: the statement is logged as rows.
        """
        values, clock, asked = self.values, self.clock, self._asked
        clock.was_given_back = False
        if values is None or self.is_dirty:
            return None
        if needs.use.routines:
            values = self._values_in_routine(values)
            if values is None:
                return None
        context = StatementContext(
            values,
            needs.use,
            microseconds=clock.fixed,
            last_insert_id=asked.last_insert_id,
            seeds=asked.seeds,
            variables=asked.variables,
            insert_id=None if needs.use.may_skip_rows else 0,
            timestamp=int(clock.source_s),
        )
        if clock.fixed is not None:
            # The servers take the time from what was set to the end.
            elapsed = context.timestamp - int(values.timestamp)
            context.execution_time_s = elapsed & 0xFFFFFFFF
            context.timestamp = int(values.timestamp)
        if not (needs.use.needs_microseconds or needs.seeds or clock.held is not None):
            return context, ()
        before = []
        if needs.seeds and not (self._server.is_mariadb or needs.use.is_program):
            context.seeds = seeds = (self._seed(_SEED_MAX), self._seed(_SEED_MAX))
            before.append(f"SET rand_seed1={seeds[0]}, rand_seed2={seeds[1]}")
        if needs.use.needs_microseconds and clock.fixed is None:
            if not values.may_set_timestamp:
                return None
            before.append(clock.set_for(context))
        else:
            before += clock.give_back()
        return context, tuple(before)

    @property
    def is_plain(self) -> bool:
        """True if a statement may be sent as it is, without context but for variables that are known."""
        clock = self.clock
        return not self.is_dirty and clock.fixed is None and clock.held is None

    def _values_in_routine(self, values: ContextValues) -> ContextValues | None:
        routine = self._asked.routine
        if not routine:
            return None
        mode, charset, connection, database, own = (text or "" for text in routine)
        return values.in_routine(mode, charset, connection, database if database != own else None)

    def owed(self, facts: StatementFacts | None, use: ContextUse | None = None) -> tuple[str, ...]:
        """Give the statements that end an earlier statement's timestamp before one that has no context.

        Args:
            facts: Parsed facts of the statement; None where they are not known.
            use: Use that the statement makes of its context; None where it is not known.
        """
        clock = self.clock
        clock.was_given_back = False
        if clock.held is None:
            return ()
        if (facts is not None and reads_diagnostics(facts)) or clock.may_stay(use):
            return ()
        return clock.give_back()

    def unsent(self) -> None:
        """Note that a statement was not sent, and perhaps not the statements that were to go before it."""
        self.clock.unsent()

    def last(self) -> StatementContext | None:
        """The context of the statements that the server itself has logged at the session's end."""
        values = self.values
        if values is None:
            return None
        # The servers name temporary tables in UTF-8 then, whatever set the client was in.
        charset = (collation_of(_SYSTEM_CHARSET) or 0, *values.charset[1:])
        values = replace(values, client_charset=_SYSTEM_CHARSET, charset=charset)
        return StatementContext(values, _AT_THE_END)

    # Behind a statement -------------------------------------------------------------------------

    def ran(self, facts: StatementFacts, use: ContextUse | None = None) -> None:
        """Note that a statement ran, with success or not.

        Args:
            facts: Parsed facts of the statement's text.
            use: Use that the statement makes of its context; None where that was not looked at.
        """
        kind = facts.effects.kind
        if kind is StatementKind.SET:
            self._assigned(facts)
        elif kind in _RUNS_OTHERS or facts.effects.stopped_at is not None:
            if use is None or use.changes_session or not use.is_known:
                self._ran_anything()
        elif facts.verb == "USE" or facts.verb in _DATABASE_VERBS:
            self.used()
        elif use.changes_session if use is not None else may_run_programs(facts):
            self._ran_anything()

    def used(self) -> None:
        """Note that the default database may be another one, or have another collation."""
        self.is_dirty = self._is_collation_own = True

    def _assigned(self, facts: StatementFacts) -> None:
        names = {one.name for one in facts.assignments}
        if names <= _OF_TRANSACTIONS and all(
            one.node is None or isinstance(one.node, Literal | Name) for one in facts.assignments
        ):
            return  # none of the values is asked for
        if all(name.startswith("@") for name in names) and not facts.functions:
            return
        self.is_dirty = True
        if "timestamp" in names:
            self.clock.may_be_fixed = True
            self.clock.held = None
        if not names.isdisjoint(_SEED_NAMES):
            self._has_own_seeds = True
        if not names.isdisjoint(_CLIENT_CHARSETS):
            self.is_charset_known = False
        if not names.isdisjoint(_DATABASE_COLLATIONS):
            self._is_collation_own = False

    def lost_track(self) -> None:
        """Note that unknown statements ran: any value may be another one now."""
        self._ran_anything()

    def _ran_anything(self) -> None:
        self.is_dirty = self.clock.may_be_fixed = self._has_own_seeds = True
        self.is_charset_known = self._is_collation_own = False


def reads_diagnostics(facts: StatementFacts) -> bool:
    """True if a statement's text reads the diagnostics or counts that the statement before has left."""
    return (
        facts.verb in _OF_DIAGNOSTICS
        or any(use.upper_name in ("ROW_COUNT", "FOUND_ROWS") for use in facts.functions)
        or any(use.name in ("warning_count", "error_count") for use in facts.system_variables)
        or any(_is_trace(use.name) for use in facts.tables)
    )


def _is_trace(name: TableName) -> bool:
    return name.database.lower() == "information_schema" and name.table.lower() in _TRACES


def may_run_programs(facts: StatementFacts) -> bool:
    """True if functions or triggers may stand behind a statement of which only the text is known."""
    return facts.effects.kind in WRITING_KINDS or any(
        not is_built_in(use.name, facts.dialect) for use in facts.functions
    )


def _routine_question(name: TableName) -> str:
    # Hexadecimal: the text is to mean the same whatever the session's character set and sql_mode.
    texts = (b"PROCEDURE", name.database.encode(), name.table.encode())
    kind, database, routine = (f"{text.hex()}" for text in texts)
    return _ROUTINE.format(kind=kind, database=database, name=routine)
