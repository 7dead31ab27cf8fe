"""Answers questions over the system tables for a client's session."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Final

from binlane.errors import StatementError
from binlane.live.answers.access import Access
from binlane.live.answers.system_tables.question import (
    Describe,
    QuestionSession,
    ShowCreate,
    ShowTables,
    SystemSelect,
    may_ask,
    question_of,
)
from binlane.live.answers.system_tables.run import QueryLimits, QueryRunner, SessionFunctions
from binlane.live.answers.system_tables.system_columns import (
    DESCRIBE_COLUMNS,
    TABLES,
    TABLES_COLUMN,
    Snapshot,
    created,
    described,
    is_like,
)
from binlane.live.answers.system_tables.translate import translate
from binlane.live.gateway.answers import RowsAnswer
from binlane.live.gateway.handler import HandlerSession
from binlane.live.gateway.source_privileges import SourcePrivilege
from binlane.statements.scope.scope import SYSTEM_DATABASE

_SESSION: Final = "SELECT @@SESSION.sql_mode, DATABASE(), USER(), VERSION(), CURRENT_USER() LIMIT 1"
_INTERRUPTED: Final = 1317
_DEFAULT_LIMITS: Final = QueryLimits()


class SystemTables:
    """Answers what sessions ask of `system`.

    Args:
        snapshot: Gives the rows of all tables, as far as a session may see them.
        access: Decides which sessions may ask, and what they see.
        limits: The limits of one question.
    """

    def __init__(
        self,
        snapshot: Callable[[HandlerSession], Awaitable[Snapshot]],
        access: Access,
        *,
        limits: QueryLimits = _DEFAULT_LIMITS,
    ) -> None:
        self._snapshot = snapshot
        self._access = access
        self._runner = QueryRunner(limits)
        self._running: dict[int, asyncio.Future[RowsAnswer]] = {}

    async def answers(self, session: HandlerSession, statement: str) -> bool:
        """True if a statement asks tables of `system`.

        Raises:
            StatementError: If it is wrong.
        """
        if not may_ask(statement):
            return False
        ((modes, database, *_),) = (await session.query_source(_SESSION)).texts()
        return question_of(statement, _reading(modes, database)) is not None

    async def answer(self, session: HandlerSession, statement: str) -> RowsAnswer | None:
        """Answer a statement; None if it does not ask tables of `system`.

        Raises:
            StatementError: If it is wrong, if the account may not ask, or if it takes too much.
        """
        if not may_ask(statement):
            return None
        ((modes, database, user, version, account),) = (
            await session.query_source(_SESSION)
        ).texts()
        reading = _reading(modes, database)
        question = question_of(statement, reading)
        if question is None:
            return None
        await self._access.names(session, SourcePrivilege.MONITOR)
        match question:
            case SystemSelect(tokens):
                sql = translate(statement, tokens, pipes_concat="PIPES_AS_CONCAT" in reading.modes)
                running = self._runner.run(
                    sql,
                    await self._snapshot(session),
                    SessionFunctions(
                        default_database=database or "",
                        user=user or "",
                        account=account or "",
                        version=version or "",
                    ),
                    is_administrator=await self._access.is_administrator(session),
                )
                return await self._until_killed(session, running)
            case Describe(table, pattern):
                rows = [row for row in described(table) if is_like(str(row[0]), pattern)]
                return RowsAnswer(DESCRIBE_COLUMNS, rows)
            case ShowCreate(table):
                return RowsAnswer(("Table", "Create Table"), [(table, created(table))])
            case ShowTables(pattern):
                names = {*TABLES, *await _tables_of_the_source(session)}
                listed = sorted(name for name in names if is_like(name, pattern))
                return RowsAnswer((TABLES_COLUMN,), [(name,) for name in listed])

    def killed(self, thread_id: int) -> None:
        """End the query of a session that the source has killed, or whose statement it has."""
        running = self._running.get(thread_id)
        if running is not None:
            running.cancel()

    async def _until_killed(
        self, session: HandlerSession, query: Coroutine[None, None, RowsAnswer]
    ) -> RowsAnswer:
        """Return a query's answer, unless KILL ends the query.

        Raises:
            StatementError: Error 1317 if it was killed.
        """
        running = self._running[session.thread_id] = asyncio.ensure_future(query)
        try:
            await asyncio.wait((running,))
        finally:
            del self._running[session.thread_id]
            running.cancel()  # whose client has gone
        if running.cancelled():
            raise StatementError(
                "Query execution was interrupted", errno=_INTERRUPTED, sqlstate="70100"
            )
        return running.result()


def _reading(modes: str | None, database: str | None) -> QuestionSession:
    return QuestionSession(database=database or "", modes=frozenset((modes or "").split(",")))


async def _tables_of_the_source(session: HandlerSession) -> set[str]:
    """The tables of a database of the same name, which the source may have."""
    try:
        found = await session.query_source(f"SHOW TABLES FROM {SYSTEM_DATABASE}")
    except StatementError:
        return set()
    return {row[0] or "" for row in found.texts()}
