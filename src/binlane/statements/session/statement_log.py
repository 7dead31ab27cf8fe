"""The events that a statement of rows appends to each binlog's caches: its text, or its rows.

The rows of MariaDB's INSERT DELAYED and REPLACE DELAYED are inserted by another thread, in transactions and
with a binlog_format of its own, the server's. Where that format is STATEMENT, and where other tables take
part, the statement is an ordinary INSERT.

Source: MariaDB 10.11 sql/log.cc and sql/sql_insert.cc `Delayed_insert::handle_inserts`, MySQL 9.7
sql/binlog.cc.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Final

from binlane.statements.policy.engines import traits
from binlane.statements.policy.resolution import ResolvedStatement, TableAccess
from binlane.statements.programs.trace import RowRun, Trace
from binlane.statements.session import log_events
from binlane.statements.session.caches import BinlogCaches, WriteContext
from binlane.statements.session.context_events import context_events, value_events
from binlane.statements.session.decision import Decided
from binlane.statements.session.log_events import Body
from binlane.statements.session.logged_texts import load_event
from binlane.statements.session.rows import (
    LoggedRows,
    is_joined_to_nothing,
    is_row_logged,
    logged_rows,
)
from binlane.statements.session.state import SessionState
from binlane.statements.session.statement_state import SessionStatement
from binlane.statements.session.transaction import EngineChanges, engine_changes_of
from binlane.statements.session.unchanged import (
    fails_foreign_keys,
)
from binlane.statements.sql.schema import TriggerTime
from binlane.statements.sql.servers import Fact, LoggingFormat, LoggingMode
from binlane.statements.sql.statement_kinds import READING_KINDS, StatementKind
from binlane.statements.sql.tree.expressions import (
    Node,
    Operation,
    Select,
    Subquery,
)
from binlane.statements.sql.tree.statements import Delete, Insert, Update

_DUPLICATE_KEYS: Final = frozenset((1022, 1062, 1169))

_BEFORE_FILES: Final = frozenset((2, 13, 29, 1017, 1045, 1085, 1227, 1290, 3948, 4166))
"""Errors of LOAD DATA before it reads its file: there is none, or it may not be read."""


class StatementLog:
    """Logs one statement in all binlogs that take it; the events common to all are made once."""

    def __init__(
        self,
        state: SessionState,
        statement: SessionStatement,
        decided: Decided,
        trace: Trace,
        engine_changes: EngineChanges,
    ) -> None:
        self._state = state
        self._statement = statement
        self._decided = decided
        self._trace = trace
        self._engine_changes = engine_changes

    @cached_property
    def _rows(self) -> LoggedRows | None:
        return logged_rows(self._state, self._decided.resolved, self._trace)

    @cached_property
    def _is_transactional(self) -> bool:
        """True if the statement itself counts as one of a transactional table."""
        return _is_transactional(self._state, self._decided.resolved)

    @cached_property
    def _text(self) -> tuple[Body, ...]:
        """The statement as its text, with the events of values that belong to it."""
        state, statement, decided = self._state, self._statement, self._decided
        before = context_events(state, statement, decided, self._trace)
        is_left_out = statement.outcome.rows == 0 and isinstance(statement.facts.tree, Insert)
        if is_left_out and fails_foreign_keys(state, statement.facts, decided.resolved):
            before = [event for event in before if event is not log_events.INSERT_ID]
        if statement.facts.effects.kind is StatementKind.LOAD_DATA:
            return (*before, load_event(state, statement))
        text = text_without_delay(state, statement)
        return (*before, state.query(text, statement.database))

    def write(self) -> frozenset[str]:
        """Log it; the names of the binlogs in which it was."""
        self._stay_in_rows()
        decided = self._decided
        return frozenset(
            name
            for name, binlog in self._state.each_logging().items()
            if name in decided.verdicts and not decided.is_filtered(name) and self._write_in(binlog)
        )

    def _stay_in_rows(self) -> None:
        """Stay in row format as long as the server does, also where nothing is logged."""
        state = self._state
        for name, logging_format in self._decided.formats.items():
            if logging_format is not LoggingFormat.ROW:
                continue
            resolved = self._decided.resolved
            if state.objects.temporary_tables() and (resolved.accesses or resolved.functions):
                state.temporary.row_binlogs.add(name)
            if self._statement.is_inner:
                state.execution.row_binlogs.add(name)

    def _write_in(self, binlog: BinlogCaches) -> bool:
        state, statement = self._state, self._statement
        verdict = self._decided.verdicts[binlog.name]
        assert verdict.logging_format is not None
        if is_delayed(state, binlog.name, self._decided.resolved):
            return log_delayed(state, binlog, self._trace)
        context = state.write_context(binlog.name, self._engine_changes, verdict.logging_format)
        if verdict.logging_format is LoggingFormat.ROW:
            return self._write_rows(binlog, context)
        if not statement.succeeds and not self._engine_changes.changed_nontransactional:
            self._give_up_file(binlog, context)
            return False
        if statement.outcome.is_proven_empty:
            return False
        if statement.facts.effects.kind in READING_KINDS:
            return self._write_calls(binlog, context, is_mixed_unsafe=verdict.is_mixed_unsafe)
        is_transactional = verdict.is_mixed_unsafe or (
            self._is_transactional
            and not _updates_nothing(state, statement, self._decided.resolved)
        )
        _note_temporary(state, binlog, self._decided.resolved, context, is_transactional)
        if statement.facts.effects.kind is StatementKind.LOAD_DATA:
            self._write_file(binlog, context)
        binlog.write_statement(self._text, context, is_transactional=is_transactional)
        state.execution.log(binlog.name, LoggingFormat.STATEMENT)
        return True

    def _write_rows(self, binlog: BinlogCaches, context: WriteContext) -> bool:
        statement = self._statement
        if self._rows is None:
            is_duplicate = statement.outcome.error in _DUPLICATE_KEYS
            if is_duplicate and _fires_before(self._state, self._decided.resolved):
                binlog.start(context)  # rows were there, and went with the statement
            return statement.succeeds and not statement.outcome.is_proven_empty
        shadows = self._decided.shadows.get(binlog.name)
        rows = self._rows if shadows is None else self._rows.without(shadows)
        rows.write(binlog, context)
        if statement.succeeds or self._engine_changes.changed_nontransactional:
            self._state.execution.log(binlog.name, LoggingFormat.ROW)
        return True

    def _write_file(self, binlog: BinlogCaches, context: WriteContext) -> None:
        """The content of LOAD DATA's file, read to its end; MySQL's cache hangs on the table alone.

        The values that the statement depends on come before the file as they do before its text.
        """
        events = [*self._text[:-1], log_events.BEGIN_LOAD]
        if self._state.server.is_mariadb or self._is_transactional:
            binlog.write_statement(events, context, is_transactional=self._is_transactional)
            return
        binlog.start(context)
        binlog.statement_cache.events.extend(events)

    def _give_up_file(self, binlog: BinlogCaches, context: WriteContext) -> None:
        """Log the content of a file of which no row was kept, and that the file is not needed.

        Nothing is left of the file in a transaction, or where the table can be rolled back, but the binlog
        takes part in the transaction.
        """
        error = self._statement.outcome.error
        is_load = self._statement.facts.effects.kind is StatementKind.LOAD_DATA
        if not is_load or error in _BEFORE_FILES:
            return
        binlog.start(context)
        is_mariadb = self._state.server.is_mariadb
        is_dropped = is_mariadb and binlog.is_logged_in_transaction(context, is_transactional=False)
        if self._is_transactional or is_dropped:
            return
        values = self._text[:-1]
        if error not in _DUPLICATE_KEYS:  # a row that is none gets no number
            values = tuple(one for one in values if one is not log_events.INSERT_ID)
        binlog.statement_cache.events += (
            *(*values, log_events.BEGIN_LOAD),
            *(*values, log_events.DELETE_FILE),
        )

    def _write_calls(
        self, binlog: BinlogCaches, context: WriteContext, *, is_mixed_unsafe: bool
    ) -> bool:
        """Log the function calls of a statement that is itself not logged."""
        state, resolved = self._state, self._decided.resolved
        tables = {access.name: access.table for access in resolved.accesses}
        done: list[RowRun] = []
        for call in self._trace.calls:
            written = [tables[name] for name in call.writes if name in tables]
            done += [RowRun(table.name, "") for table in written]
            context = context._replace(
                engine_changes=engine_changes_of(state.server, resolved, done)
            )
            events: list[Body] = [
                *value_events(call.values),
                *call.user_variables,
                state.query(call.text, self._statement.database),
            ]
            state.execution.log(binlog.name, LoggingFormat.STATEMENT)
            if self._statement.is_condition:
                binlog.write_directly(events)
                continue
            is_transactional = any(traits(table, state.server).has_rollback for table in written)
            binlog.write_statement(
                events, context, is_transactional=is_transactional or is_mixed_unsafe
            )
        return bool(self._trace.calls)


def _fires_before(state: SessionState, resolved: ResolvedStatement) -> bool:
    """True if rows of transactional tables are written before those of the statement's target."""
    fired = {
        step.name
        for access in own_targets(resolved)
        for step in state.objects.triggers(access.name)
        if step.time is TriggerTime.BEFORE
    }
    return any(
        access.changes
        and is_row_logged(access.table, state.server)
        and traits(access.table, state.server).has_rollback
        and not fired.isdisjoint(step.name for step in access.via)
        for access in resolved.accesses
    )


def _is_transactional(state: SessionState, resolved: ResolvedStatement) -> bool:
    """True if the statement itself counts as one of a transactional table."""
    return any(traits(access.table, state.server).has_rollback for access in own_targets(resolved))


def _updates_nothing(
    state: SessionState, statement: SessionStatement, resolved: ResolvedStatement
) -> bool:
    """True if MariaDB found no row to change for an UPDATE or DELETE of several tables.

    Only with the first row that MariaDB changes does it learn whether the tables are transactional. A
    statement whose subquery reads its own table is of several tables, too.
    """
    facts = statement.facts
    if state.server.is_mariadb and is_joined_to_nothing(state, statement):
        return True
    return (
        state.server.is_mariadb
        and facts.effects.kind is StatementKind.UPDATE
        and statement.outcome.rows == 0
        and (
            facts.is_multi_table
            or (state.server.has(Fact.UPDATES_AS_QUERIES) and becomes_join(facts.tree))
            or _reads_what_it_updates(resolved)
        )
    )


def _reads_what_it_updates(resolved: ResolvedStatement) -> bool:
    named = [access.name for access in resolved.accesses if not access.is_prelocked]
    return any(named.count(access.name) > 1 for access in own_targets(resolved))


def _note_temporary(
    state: SessionState,
    binlog: BinlogCaches,
    resolved: ResolvedStatement,
    context: WriteContext,
    is_transactional: bool,  # noqa: FBT001 - as the statement counts
) -> None:
    """Note statements on non-transactional temporary tables in the transaction cache.

    MariaDB counts those that read them, and those that change no row.
    """
    if any(
        access.table.is_temporary and not traits(access.table, state.server).has_rollback
        for access in resolved.accesses
    ) and binlog.is_logged_in_transaction(context, is_transactional=is_transactional):
        context.engine_changes.changed_nontransactional_temporary = True


def becomes_join(tree: Node) -> bool:
    """True if WHERE of UPDATE or DELETE has a value of IN (SELECT … FROM …), or = ANY."""
    if not isinstance(tree, Update | Delete) or tree.where is None:
        return False
    where = tree.where
    is_all = isinstance(where, Operation) and where.operator == "AND"
    conditions = where.operands if isinstance(where, Operation) and is_all else (where,)
    return any(
        isinstance(one, Operation)
        and one.operator in ("IN", "= ANY")
        and not one.is_negated
        and isinstance(one.operands[-1], Subquery)
        and isinstance(one.operands[-1].query.body, Select)
        and bool(one.operands[-1].query.body.tables)
        for one in conditions
    )


def own_targets(resolved: ResolvedStatement) -> Iterable[TableAccess]:
    """Give the tables that a statement changes itself, not by way of triggers and functions."""
    return (access for access in resolved.accesses if access.changes and not access.is_prelocked)


_WORD: Final = "DELAYED"


def is_delayed(state: SessionState, name: str, resolved: ResolvedStatement) -> bool:
    """True if another thread inserts a statement's rows, as a binlog sees it."""
    return resolved.is_delayed and state.delayed_mode(name) is not LoggingMode.STATEMENT


def log_delayed(state: SessionState, binlog: BinlogCaches, trace: Trace) -> bool:
    """Log the rows that another thread inserts, in a group of their own.

    Where the session keeps the log of its source, it has what is its own there, and this is not.
    """
    events: list[Body] = []
    for run in trace.runs:
        rows = log_events.ended(log_events.rows(run.kind, run.table, state.server))
        events += [log_events.MappedTable(run.table), rows]
    if events and not state.logs_source:
        binlog.written.extend(log_events.group(events, log_events.COMMIT, state.server))
        state.execution.log(binlog.name, LoggingFormat.ROW)
    return bool(events)


def text_without_delay(state: SessionState, statement: SessionStatement) -> str:
    """Return the statement as it is logged if its rows are not delayed after all."""
    facts = statement.facts
    if not (facts.is_delayed and state.server.is_mariadb) or statement.is_in_body:
        return statement.text
    if facts.has_query or facts.is_on_duplicate:
        return statement.text
    if not isinstance(facts.tree, Insert) or facts.tree.delayed_at < 0:
        return statement.text
    at = facts.place(facts.tree.delayed_at)
    return statement.text[:at] + statement.text[at + len(_WORD) :]
