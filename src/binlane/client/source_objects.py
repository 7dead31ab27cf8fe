"""The source's objects, asked for one by one in a client's session, and how that session is set.

What the account may not see the source refuses, and the refusal goes to the client as it is.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from binlane.codec.packets.results import ResultSet
from binlane.errors import StatementError
from binlane.names import TableName, quote
from binlane.policy.server import Server
from binlane.policy.used_objects import body_use
from binlane.sql.catalog import SchemaCatalog
from binlane.sql.facts import StatementFacts, StatementKind
from binlane.sql.schema import Routine, Trigger

TIMEOUT_S: Final = 10.0
"""How long the source is asked for definitions."""
LOCK_TIMEOUT_S: Final = 2
"""How long it may wait for the lock of one object."""
QUESTIONS_MAX: Final = 512
TABLE: Final = "TABLE"
FUNCTION: Final = "FUNCTION"
PROCEDURE: Final = "PROCEDURE"

_SESSION: Final = (
    *("autocommit", "binlog_direct_non_transactional_updates", "binlog_format"),
    "binlog_row_image",
    *("default_storage_engine", "default_tmp_storage_engine", "sql_log_bin", "sql_mode"),
    *("foreign_key_checks", "transaction_isolation", "tx_isolation"),
)
_CONFIGURED: Final = (
    *("enforce_gtid_consistency", "gtid_mode", "innodb_autoinc_lock_mode"),
    *("log_bin_trust_function_creators", "sql_generate_invisible_primary_key"),
)
_NO_SUCH_TABLE: Final = 1146
_NO_SUCH_ROUTINE: Final = 1305
_BAD_DATABASE: Final = 1049
_ACCESS_DENIED: Final = 1142
_TIMED_OUT: Final = 3024
_ABSENT: Final = frozenset((_NO_SUCH_TABLE, _NO_SUCH_ROUTINE, _BAD_DATABASE))
_SYSTEM: Final = frozenset(("information_schema", "performance_schema", "mysql", "sys"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSession:
    """A client's session on the source.

    Attributes:
        server: The source's flavor and version.
        database: The default database; empty without one.
        variables: Session variables that bear on logging.
        configured: Global ones that do.
        is_in_transaction: A transaction is open.
    """

    server: Server
    database: str
    variables: dict[str, str] = field(default_factory=dict)
    configured: dict[str, str] = field(default_factory=dict)
    is_in_transaction: bool = False


class ClientSession(Protocol):
    """A client's session on the source."""

    @property
    def server_version(self) -> str:
        """The source's."""
        ...

    async def query_source(self, statement: str) -> ResultSet:
        """Run a statement in this session.

        Raises:
            StatementError: If the source refuses it.
            PeerError: If the source goes away.
        """
        ...


class Source:
    """The source, asked for a limited time.

    Args:
        session: The client's.
    """

    def __init__(self, session: ClientSession) -> None:
        self._session = session
        self._deadline = time.monotonic() + TIMEOUT_S
        self._questions = 0
        self.is_mariadb = "mariadb" in session.server_version.lower()

    async def texts(self, query: str) -> list[list[str | None]]:
        """The rows of a query.

        Raises:
            StatementError: If the source refuses it, or there was no time left to ask.
            PeerError: If the source goes away.
        """
        # A question that is under way cannot be taken back, so its waiting is bounded over there.
        self._questions += 1
        if time.monotonic() > self._deadline or self._questions > QUESTIONS_MAX:
            raise StatementError(
                f"the source did not tell all that the statement needs in {TIMEOUT_S:.0f} s",
                errno=_TIMED_OUT,
                hint="try again when fewer tables are locked",
            )
        if self.is_mariadb:
            query = (
                f"SET STATEMENT lock_wait_timeout = {LOCK_TIMEOUT_S},"
                f" max_statement_time = {TIMEOUT_S}, sql_mode = '',"
                f" sql_quote_show_create = 1 FOR {query}"
            )
        return [list(row) for row in (await self._session.query_source(query)).texts()]

    async def circumstances(self) -> SourceSession:
        """How the client's session is set.

        Raises:
            StatementError: If the source refuses to tell.
            PeerError: If it goes away.
        """
        transaction = "@@in_transaction" if self.is_mariadb else "0"
        # Unwrapped: the wrapping sets sql_mode.
        values = (
            await self._session.query_source(f"SELECT DATABASE(), VERSION(), {transaction}")
        ).texts()[0]
        return SourceSession(
            server=_server(values[1] or "", is_mariadb=self.is_mariadb),
            database=values[0] or "",
            variables=await self._variables("SESSION", _SESSION),
            configured=await self._variables("GLOBAL", _CONFIGURED),
            is_in_transaction=values[2] == "1",
        )

    async def _variables(self, scope: str, names: Sequence[str]) -> dict[str, str]:
        listed = ", ".join(f"'{name}'" for name in names)
        found = await self._session.query_source(
            f"SHOW {scope} VARIABLES WHERE Variable_name IN ({listed})"
        )
        told = {row[0] or "": row[1] or "" for row in found.texts()}
        if "transaction_isolation" in told:
            told.pop("tx_isolation", None)
        return told


class Objects:
    """What is known of the source's objects so far.

    Args:
        source: Whom to ask.
        catalog: What is known; grows.
    """

    def __init__(self, source: Source, catalog: SchemaCatalog) -> None:
        self._source = source
        self.catalog = catalog
        self._asked: set[tuple[str, TableName]] = set()

    def apply(self, database: str, statement: str) -> None:
        """Add an object by the statement that makes it.

        Raises:
            StatementError: If the statement is not understood.
        """
        problems = len(self.catalog.problems)
        self.catalog.apply(statement, database=database)
        if len(self.catalog.problems) > problems:
            raise StatementError(
                f"what the source says of an object is not understood: {statement[:200]}",
                hint="run `binlane check` with a schema instead",
            )

    async def fetch(self, kind: str, name: TableName) -> bool:
        """Ask for an object and what hangs on it.

        Args:
            kind: TABLE (also views and sequences), FUNCTION or PROCEDURE.
            name: Its name.

        Returns:
            Whether it was found, now and not before.

        Raises:
            StatementError: If the source refuses to tell.
            PeerError: If it goes away.
        """
        if (kind, name) in self._asked or name.database.lower() in _SYSTEM:
            return False
        self._asked.add((kind, name))
        if not self.catalog.has_database(name.database):
            self.apply("", f"CREATE DATABASE {quote(name.database)}")
        try:
            (row, *_) = await self._source.texts(f"SHOW CREATE {kind} {name}")
        except StatementError as error:
            if error.errno in _ABSENT:
                return False
            raise
        text = row[1] if kind == TABLE else row[2]
        if text is None:
            raise StatementError(
                f"the account may not see the definition of {kind} {name}",
                errno=_ACCESS_DENIED,
                sqlstate="42000",
            )
        if kind == TABLE and _is_sequence(text):
            text = (await self._source.texts(f"SHOW CREATE SEQUENCE {name}"))[0][1] or ""
        self.apply(name.database, text)
        await self._fetch_what_hangs_on(kind, name)
        return True

    async def fetch_used(self, facts: StatementFacts, database: str) -> None:
        """Ask for all that a text uses, and what that uses.

        Args:
            facts: Of the text.
            database: Its default database; empty without one.

        Raises:
            StatementError: If the source refuses to tell.
            PeerError: If it goes away.
        """
        for table in dict.fromkeys((*(use.name for use in facts.tables), *facts.effects.writes)):
            await self.fetch(TABLE, table)
        kind = PROCEDURE if facts.effects.kind is StatementKind.CALL else FUNCTION
        for use in facts.functions:
            # Most are built in, which the source then says.
            if home := use.database or database:
                await self.fetch(kind, TableName(home, use.name))
                await self.fetch(FUNCTION, TableName(home, use.name))

    async def _fetch_what_hangs_on(self, kind: str, name: TableName) -> None:
        if kind != TABLE:
            is_function = kind == FUNCTION
            routine = self.catalog.function(name) if is_function else self.catalog.procedure(name)
            if routine is not None:
                await self._fetch_body(routine, name.database)
        elif (view := self.catalog.view(name)) is not None:
            await self.fetch_used(view.facts, name.database)
        else:
            await self._fetch_triggers(name)
            await self._fetch_children(name)

    async def _fetch_body(self, program: Routine | Trigger, database: str) -> None:
        use = body_use(program.body, database, program.dialect)
        if not use.is_understood:
            raise StatementError(
                f"a routine or trigger that the statement uses is not understood: {program.body[:200]}"
            )
        for facts in use.facts:
            await self.fetch_used(facts, database)

    async def _fetch_triggers(self, table: TableName) -> None:
        database, name = _text(table.database), _text(table.table)
        # Without the privilege the source says that there are none.
        rows = await self._source.texts(
            "SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE = 'TRIGGER'"  # noqa: S608  # names are hexadecimal literals
            " UNION ALL SELECT 1 FROM information_schema.SCHEMA_PRIVILEGES"
            f" WHERE PRIVILEGE_TYPE = 'TRIGGER' AND {database} LIKE TABLE_SCHEMA"
            " UNION ALL SELECT 1 FROM information_schema.TABLE_PRIVILEGES"
            f" WHERE PRIVILEGE_TYPE = 'TRIGGER' AND TABLE_SCHEMA = {database}"
            f" AND TABLE_NAME = {name}"
        )
        if not rows:
            raise StatementError(
                f"whether {table} has triggers cannot be seen without the TRIGGER privilege",
                errno=_ACCESS_DENIED,
                sqlstate="42000",
                hint=f"GRANT TRIGGER ON {table} to the account",
            )
        triggers = await self._source.texts(
            "SELECT TRIGGER_NAME FROM information_schema.TRIGGERS"  # noqa: S608  # as above
            f" WHERE TRIGGER_SCHEMA = {database} AND EVENT_OBJECT_TABLE = {name}"
            " ORDER BY EVENT_MANIPULATION, ACTION_TIMING, ACTION_ORDER"
        )
        for (trigger,) in triggers:
            full_name = TableName(table.database, trigger or "")
            (row, *_) = await self._source.texts(f"SHOW CREATE TRIGGER {full_name}")
            self.apply(table.database, row[2] or "")
            found = self.catalog.trigger(full_name)
            if found is not None:
                await self._fetch_body(found, table.database)

    async def _fetch_children(self, parent: TableName) -> None:
        children = await self._source.texts(
            "SELECT CONSTRAINT_SCHEMA, TABLE_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS"  # noqa: S608  # as above
            f" WHERE UNIQUE_CONSTRAINT_SCHEMA = {_text(parent.database)}"
            f" AND REFERENCED_TABLE_NAME = {_text(parent.table)}"
        )
        for database, table in children:
            await self.fetch(TABLE, TableName(database or "", table or ""))


def _is_sequence(text: str) -> bool:
    return "SEQUENCE=1" in text.rpartition(")")[2].replace(" ", "").upper()


def _server(version: str, *, is_mariadb: bool) -> Server:
    return Server.of("mariadb" if is_mariadb else "mysql", version)


def _text(value: str) -> str:
    """A literal that means the same under every sql_mode."""
    return f"CONVERT(0x{value.encode().hex()} USING utf8mb4)"
