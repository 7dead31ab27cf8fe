"""A client's session on the source: how it is set, and which objects its account may see.

What the account may not see the source refuses, and the refusal goes to the client as it is.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from binlane.client.needed_objects import Question, Topic
from binlane.client.questions import (
    ALL_ROWS,
    Answer,
    AskingContext,
    asking,
    hidden,
    text_literal,
)
from binlane.errors import StatementError
from binlane.log.codec.charsets import charset_of
from binlane.log.codec.packets.results import ResultSet
from binlane.names import TableName
from binlane.statements.policy.server import Server

TIMEOUT_S: Final = 10.0
"""Longest time for which the source is asked for definitions."""
LOCK_TIMEOUT_S: Final = 2
"""Longest wait of the source for the lock of one object."""
QUESTIONS_MAX: Final = 512

_SESSION: Final = (
    *("autocommit", "binlog_direct_non_transactional_updates", "binlog_format"),
    "binlog_row_image",
    *("default_storage_engine", "default_tmp_storage_engine", "sql_log_bin", "sql_mode"),
    *("character_set_client", "foreign_key_checks", "transaction_isolation", "tx_isolation"),
)
_CIRCUMSTANCES: Final = ("DATABASE()", "VERSION()")
_SWITCHES: Final = (
    *("autocommit", "binlog_direct_non_transactional_updates", "foreign_key_checks", "sql_log_bin"),
)
_RENAMED: Final = (11, 1)
"""The version since which MariaDB's tx_isolation has its other name, and warns if read by the old."""
_HAS_ALL: Final = frozenset(("binary", "utf8mb4"))
"""Character sets that have every letter."""
_ACCESS_DENIED: Final = 1142
_TIMED_OUT: Final = 3024


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSession:
    """A client's session on the source.

    Attributes:
        server: The source's flavor and version.
        database: The default database; empty without one.
        variables: Session variables that bear on logging.
        is_in_transaction: True while a transaction is open.
        beside: Answer to the expressions that were asked for beside them, from column `place` on; None
            where they are still to be asked for.
        place: Number of the first of their columns, from 0.
        asked_s: Time by `time.time`, a moment before the source was asked.
    """

    server: Server
    database: str
    variables: dict[str, str] = field(default_factory=dict)
    is_in_transaction: bool = False
    beside: ResultSet | None = None
    place: int = 0
    asked_s: float = 0.0


class ClientSession(Protocol):
    """A client's session on the source."""

    @property
    def server_version(self) -> str:
        """The version of the source."""
        ...

    async def query_source(self, statement: str) -> ResultSet:
        """Run a statement in this session.

        Raises:
            StatementError: If the source refuses it.
            PeerError: If the source goes away.
        """
        ...


class Source:
    """The source as a session asks it, with a limit of time for each question.

    Args:
        session: The session of the client.
        sql_mode: The session's own, where it is known; `circumstances` finds it out.
        is_patient: Locks are waited for as long as the session does, and what it hears counts for
            others: nothing may be lost in its character set.
    """

    def __init__(
        self, session: ClientSession, *, sql_mode: str = "", is_patient: bool = False
    ) -> None:
        self._session = session
        self._sql_mode = sql_mode
        self._is_patient = is_patient
        self._deadline = math.inf if is_patient else time.monotonic() + TIMEOUT_S
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
            limits = f" lock_wait_timeout = {LOCK_TIMEOUT_S}, max_statement_time = {TIMEOUT_S},"
            query = (
                f"SET STATEMENT{'' if self._is_patient else limits} sql_mode = '',"
                f" sql_select_limit = DEFAULT, sql_quote_show_create = 1 FOR {query}"
            )
        elif query.startswith("SELECT"):
            query += ALL_ROWS
        answer = await self._session.query_source(query)
        rows = [list(row) for row in answer.texts()]
        if self._is_patient and _may_lack_letters(answer, rows):
            raise StatementError(
                "what the source tells cannot be read in the session's character set"
            )
        return rows

    async def answer(self, question: Question, asked: AskingContext) -> Answer:
        """The answer to a question, as far as the session's account may see it.

        Raises:
            StatementError: If the source refuses to tell, or is not understood.
            PeerError: If the source goes away.
        """
        if not self.is_mariadb:
            asked = replace(asked, sql_mode=self._sql_mode)
        steps = asking(question, asked)
        try:
            statement = next(steps)
            while True:
                try:
                    rows = await self.texts(statement)
                except StatementError as error:
                    statement = steps.throw(error)
                else:
                    statement = steps.send(rows)
        except StopIteration as stop:
            found: Answer = stop.value
            return found

    async def see(self, question: Question, told: Answer) -> None:
        """Check that the session's account may see objects that were read by another account.

        Raises:
            StatementError: If the source hides any of it.
            PeerError: If it goes away.
        """
        topic, name = question
        if topic is Topic.TABLE:
            if told.objects.tables or told.objects.views:
                await self._see("TABLE", 1, name)
            if told.objects.tables:
                await self.see_triggers(name)
        elif topic in (Topic.FUNCTION, Topic.PROCEDURE):
            for routine in told.objects.routines.values():
                await self._see(topic.name, 2, routine.name)
        elif topic is Topic.TRIGGERS:
            for trigger in told.objects.triggers.get(name, ()):
                await self._see("TRIGGER", 2, trigger.name)

    async def _see(self, kind: str, column: int, name: TableName) -> None:
        (row, *_) = await self.texts(f"SHOW CREATE {kind} {name}")
        if row[column] is None:
            raise hidden(kind, name)

    async def see_triggers(self, table: TableName) -> None:
        """See that the source does not hide a table's triggers: it does not say that it does.

        Raises:
            StatementError: If it does.
            PeerError: If it goes away.
        """
        database, name = text_literal(table.database), text_literal(table.table)
        rows = await self.texts(
            "SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE = 'TRIGGER'"  # noqa: S608  # names are hexadecimal
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

    async def circumstances(self, beside: Sequence[str] = ()) -> SourceSession:
        """Ask the source for the facts of the client's session.

        MariaDB is asked once for all of them, by a question without a table, which leaves the client its
        warnings.

        Args:
            beside: Expressions of a server of the version that greeted. They are asked for, too, where that
                takes no further question.

        Raises:
            StatementError: If the source refuses to tell.
            PeerError: If it goes away.
        """
        if not self.is_mariadb:
            return await self._mysql_circumstances()
        greeted = Server.of("mariadb", self._session.server_version)
        lacking = "tx_isolation" if greeted.version >= _RENAMED else "transaction_isolation"
        names = [name for name in _SESSION if name != lacking]
        own = [*_CIRCUMSTANCES, "@@in_transaction", *(f"@@SESSION.{name}" for name in names)]
        # Unwrapped: the wrapping sets sql_mode.
        asked_s = time.time()
        answer = await self._session.query_source(f"SELECT {', '.join((*own, *beside))} LIMIT 1")
        database, version, is_active, *values = answer.texts()[0][: len(own)]
        server = Server.of("mariadb", version or "")
        told = {name: value or "" for name, value in zip(names, values, strict=True)}
        told |= {name: "ON" if told[name] == "1" else "OFF" for name in _SWITCHES}
        self._sql_mode = told["sql_mode"]
        return SourceSession(
            server=server,
            database=database or "",
            variables=told,
            is_in_transaction=is_active == "1",
            beside=answer if server == greeted else None,
            place=len(own),
            asked_s=asked_s,
        )

    async def _mysql_circumstances(self) -> SourceSession:
        # Unwrapped, too.
        asked = f"SELECT {', '.join(_CIRCUMSTANCES)} LIMIT 1"
        database, version = (await self._session.query_source(asked)).texts()[0]
        variables = await self._variables()
        self._sql_mode = variables.get("sql_mode", "")
        return SourceSession(
            server=Server.of("mysql", version or ""), database=database or "", variables=variables
        )

    async def _variables(self) -> dict[str, str]:
        listed = ", ".join(f"'{name}'" for name in _SESSION)
        # SHOW VARIABLES would tell no more of them than the client's sql_select_limit lets through.
        found = await self._session.query_source(
            "SELECT VARIABLE_NAME, VARIABLE_VALUE FROM performance_schema.session_variables"  # noqa: S608  # all of it stands here
            f" WHERE VARIABLE_NAME IN ({listed}){ALL_ROWS}"
        )
        told = {(row[0] or "").lower(): row[1] or "" for row in found.texts()}
        if "transaction_isolation" in told:
            told.pop("tx_isolation", None)
        return told


def _may_lack_letters(answer: ResultSet, rows: list[list[str | None]]) -> bool:
    """True if letters may stand as question marks which character_set_results has not."""
    charsets = {charset_of(head.character_set) for head in answer.heads}
    return not charsets <= _HAS_ALL and any("?" in (cell or "") for row in rows for cell in row)
