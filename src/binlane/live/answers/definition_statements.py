"""Statements that make, change, start, stop, purge and drop binlogs."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from binlane.binlogs.store.fills import FillKind
from binlane.errors import HINT_ERRNO, DefinitionError, Diagnostic, StatementError
from binlane.live.answers.access import (
    Access,
)
from binlane.live.answers.purging import evaluated_time, plan_before, plan_to, unknown_target
from binlane.live.answers.source_links import (
    NO_SOURCE_LINKS,
    SourceLinks,
    source_links,
)
from binlane.live.answers.source_queries import (
    ignores_case,
    query_of,
    source_position,
)
from binlane.live.answers.unknown_names import UnknownNames, unknown_names
from binlane.live.gateway.answers import Answer, OkAnswer
from binlane.live.gateway.handler import HandlerSession
from binlane.live.gateway.log_texts import shown
from binlane.live.gateway.source_privileges import SourcePrivilege
from binlane.live.loop.binlogs import Binlogs
from binlane.live.loop.fill_changes import StagingPlan, staging_scope
from binlane.names import quote
from binlane.positions import Position
from binlane.statements.scope.definition import (
    Definition,
    DuplicateBinlogError,
    duplicate_binlog,
    unknown_binlog,
)
from binlane.statements.scope.scope import Scope
from binlane.statements.scope.statements import (
    AcknowledgeIncidents,
    AlterBinlog,
    CancelRows,
    CompactBinlog,
    CreateBinlog,
    DropBinlog,
    FlushBinaryLogs,
    PurgeBinaryLogs,
    StartBinlog,
    StopBinlog,
    alter,
    create,
)

logger = logging.getLogger(__name__)

_BAD_DATABASE: Final = 1049
_READING: Final = "the tables' rows are read; SHOW BINLOGS tells how far that is"


class DefinitionStatements:
    """Executes the statements.

    Args:
        binlogs: The binlogs that the statements are about.
        access: Says which binlogs a session may see.
    """

    def __init__(self, binlogs: Binlogs, access: Access) -> None:
        self._binlogs = binlogs
        self._access = access

    async def create(self, session: HandlerSession, statement: CreateBinlog) -> Answer:
        """Execute CREATE BINLOG."""
        await session.require(SourcePrivilege.DEFINE)
        if statement.name in self._binlogs.names:
            if statement.if_not_exists:
                return _noted(duplicate_binlog(statement.name))
            raise duplicate_binlog(statement.name)
        folds, default = await ignores_case(session), self._binlogs.default_format

        def make(log_id: int) -> Definition:
            return create(statement, log_id, ignores_case=folds, default=default)

        preview = make(1)
        scope, follows = preview.scope, preview.follows_cascades
        await _check_databases(session, scope)
        done = await source_position(session)
        found = await _links(session, scope)
        notes = found.notes(scope, follows_cascades=follows)
        unknown = await unknown_names(query_of(session), scope)
        fills, changes = self._binlogs.fills, self._binlogs.changes
        try:
            if statement.with_rows:
                fills.check_domain(done)
                plan = StagingPlan(scope=scope, done=done, links=found.links)
                await changes.execute(partial(fills.create, statement.name, make, plan))
                return _reading(statement.name, unknown, notes)
            begin = await changes.create(statement.name, make, done=done, links=found.links)
        except DuplicateBinlogError as error:
            if statement.if_not_exists:
                return _noted(error)
            raise
        return _effective(begin, statement.name, unknown, notes)

    async def drop(self, session: HandlerSession, statement: DropBinlog) -> Answer:
        """Execute DROP BINLOG."""
        await session.require(SourcePrivilege.DEFINE)
        if not await self._binlogs.changes.drop(statement.name, if_exists=statement.if_exists):
            return _noted(unknown_binlog(statement.name, None))
        return OkAnswer()

    async def start(self, session: HandlerSession, statement: StartBinlog) -> Answer:
        """Execute START BINLOG."""
        await session.require(SourcePrivilege.DEFINE)
        begin = await self._binlogs.changes.start(statement.name, statement.position)
        return OkAnswer(info=f"goes on after GTID {begin}")

    async def stop(self, session: HandlerSession, statement: StopBinlog) -> Answer:
        """Execute STOP BINLOG."""
        await session.require(SourcePrivilege.DEFINE)
        end = await self._binlogs.changes.stop(statement.name)
        return OkAnswer(info=f"stopped after GTID {end}")

    async def flush(self, session: HandlerSession, statement: FlushBinaryLogs) -> Answer:
        """Execute FLUSH BINARY LOGS."""
        for name in await self._access.chosen(session, statement.name, SourcePrivilege.FLUSH):
            await self._binlogs.changes.rotate(name)
        return OkAnswer()

    async def alter(self, session: HandlerSession, statement: AlterBinlog) -> Answer:
        """Execute ALTER BINLOG."""
        await session.require(SourcePrivilege.DEFINE)
        if statement.if_exists and statement.name not in self._binlogs.names:
            return _noted(unknown_binlog(statement.name, None))
        former, default = self._binlogs.get(statement.name).definition, self._binlogs.default_format
        preview = alter(former, statement, default=default)
        await _check_databases(session, preview.scope)
        # All that the source has done by now belongs to the scope as it was.
        done = await source_position(session)
        found = await _links(session, preview.scope)
        notes = found.notes(preview.scope, follows_cascades=preview.follows_cascades)
        unknown = await unknown_names(query_of(session), preview.scope, former.scope)
        if statement.with_rows:
            added = staging_scope(former.scope, preview.scope)
            plan = StagingPlan(scope=added, done=done, links=found.links)
            await self._fill(statement.name, FillKind.ADD, statement.scope_text, plan)
            return _reading(statement.name, unknown, notes)
        begin = await self._binlogs.changes.alter(
            statement.name,
            lambda definition: alter(definition, statement, default=default),
            done=done,
            links=found.links,
        )
        return _effective(begin, statement.name, unknown, notes)

    async def compact(self, session: HandlerSession, statement: CompactBinlog) -> Answer:
        """Execute ALTER BINLOG … COMPACT."""
        await session.require(SourcePrivilege.DEFINE)
        if statement.if_exists and statement.name not in self._binlogs.names:
            return _noted(unknown_binlog(statement.name, None))
        scope = self._binlogs.get(statement.name).definition.scope
        done = await source_position(session)
        found = await _links(session, scope)
        plan = StagingPlan(scope=scope, done=done, links=found.links)
        await self._fill(statement.name, FillKind.COMPACT, "", plan)
        return OkAnswer(info=_READING)

    async def cancel_rows(self, session: HandlerSession, statement: CancelRows) -> Answer:
        """Execute ALTER BINLOG … WITHOUT ROWS."""
        await session.require(SourcePrivilege.DEFINE)
        fills = self._binlogs.fills
        await self._binlogs.changes.execute(partial(fills.give_up, statement.name))
        return OkAnswer()

    async def _fill(self, name: str, kind: FillKind, text: str, plan: StagingPlan) -> None:
        """Begin to read rows for a binlog that is there."""
        fills = self._binlogs.fills
        fills.check_domain(plan.done)
        await self._binlogs.changes.execute(partial(fills.begin, name, kind, text, plan))

    async def purge(self, session: HandlerSession, statement: PurgeBinaryLogs) -> Answer:
        """Execute PURGE BINARY LOGS."""
        names = await self._access.chosen(session, statement.name, SourcePrivilege.DEFINE)
        if statement.to_file is not None:
            name = statement.name or statement.to_file.rpartition(".")[0]
            if name not in names:
                raise unknown_target(statement.to_file)
            plans = [plan_to(self._binlogs.live(name), statement.to_file)]
        else:
            timestamp = await evaluated_time(session, statement.before or "")
            plans = [plan_before(self._binlogs.live(name), timestamp) for name in names]
        for plan in plans:
            if plan.first is not None:
                await self._binlogs.changes.purge(plan.binlog, plan.first)
        kept = [_diagnostic("Warning", plan.warning) for plan in plans if plan.warning]
        return OkAnswer(info="; ".join(each.text for each in kept), diagnostics=tuple(kept))

    async def acknowledge(self, session: HandlerSession, statement: AcknowledgeIncidents) -> Answer:
        """Execute ACKNOWLEDGE BINLOG INCIDENTS."""
        await session.require(SourcePrivilege.DEFINE)
        done = await self._binlogs.changes.acknowledge(statement.name, statement.last)
        if not done:
            return OkAnswer(info=f"binlog '{statement.name}' has none that is not acknowledged")
        count = sum(each.count for each in done)
        told = f"{count} acknowledged, the last at {done[-1].place_text}"
        logger.info(
            "binlog %s: INCIDENTs by %s: %s",
            *(statement.name, shown(session.user), told),
            extra={"binlog": statement.name, "user": session.user},
        )
        return OkAnswer(info=told)


async def _check_databases(session: HandlerSession, scope: Scope) -> None:
    """Table-scope binlogs must be created after their databases (seed 000)."""
    databases = {table.database for table in scope.log_tables}
    if not databases:
        return
    found = await session.query_source("SHOW DATABASES")
    there = {scope.as_listed(row[0] or "") for row in found.texts()}
    for database in sorted(databases - there):
        raise DefinitionError(
            f"Unknown database '{database}'",
            errno=_BAD_DATABASE,
            hint=f"CREATE DATABASE {quote(database)} first; the account must see it too",
        )


async def _links(session: HandlerSession, scope: Scope) -> SourceLinks:
    """Return the links by which the source's tables change others unlogged, as this account sees them."""
    if scope.is_unscoped:
        return NO_SOURCE_LINKS

    found = await source_links(query_of(session))
    return replace(found, links=found.links.folded) if scope.ignores_case else found


def _effective(begin: Position, name: str, unknown: UnknownNames, notes: Sequence[str]) -> OkAnswer:
    """The answer to a definition that holds."""
    told = _told(name, unknown, notes)
    said = (f"{each.level.lower()}: {each.text}" for each in told)
    info = "; ".join((f"effective after GTID {begin}", *said, *unknown.missing))
    return OkAnswer(info=info, diagnostics=told)


def _told(name: str, unknown: UnknownNames, notes: Sequence[str]) -> tuple[Diagnostic, ...]:
    """Give and log all that the user of a definition should know."""
    told = [
        *(_diagnostic("Warning", each) for each in unknown.slips),
        *(_diagnostic("Note", each) for each in notes),
    ]
    for each in told:
        logger.warning("binlog %s: %s", name, shown(each.text), extra={"binlog": name})
    for text in unknown.missing:
        logger.info("binlog %s: %s", name, shown(text), extra={"binlog": name})
    return tuple(told)


def _reading(name: str, unknown: UnknownNames, notes: Sequence[str]) -> OkAnswer:
    """The answer to a definition that holds once the tables' rows are there."""
    told = _told(name, unknown, notes)
    said = (f"{each.level.lower()}: {each.text}" for each in told)
    return OkAnswer(info="; ".join((_READING, *said, *unknown.missing)), diagnostics=told)


def _noted(error: StatementError) -> OkAnswer:
    """The answer to a statement that had nothing to do, and says by IF that this is no error."""
    note = Diagnostic("Note", error.errno, error.message)
    return OkAnswer(info=error.message, diagnostics=(note,))


def _diagnostic(level: str, text: str) -> Diagnostic:
    return Diagnostic(level, HINT_ERRNO, text)
