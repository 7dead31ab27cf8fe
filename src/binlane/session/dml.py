"""Statements that read or change rows, and what they append to each binlog's caches.

Source: seed 004, R-log-statement-format and R-log-row-format; MariaDB 10.11 sql/log.cc and
sql/handler.cc, MySQL 9.7 sql/binlog.cc and sql/handler.cc.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from binlane.policy.access import ResolvedStatement, TableAccess
from binlane.policy.engines import traits
from binlane.session import log_events
from binlane.session.binlog import Binlog, Frame
from binlane.session.context_events import context_events, value_events
from binlane.session.decision import Decided, decide, give_notes
from binlane.session.delayed import is_delayed, log_delayed, text_without_delay
from binlane.session.failures import fail_as_stated
from binlane.session.load_data import load_text
from binlane.session.null_ids import with_null_ids
from binlane.session.opening import fails_at_once, is_not_locked
from binlane.session.programs.host import RowRun, Trace
from binlane.session.proven_empty import condition, is_proven_empty
from binlane.session.report import LoggedEvent, Outcome
from binlane.session.row_events import is_row_logged, write_rows
from binlane.session.state import Command, SessionState
from binlane.session.traces import trace_of
from binlane.session.transaction import Work
from binlane.session.work import note_tries, work_of
from binlane.sql.effects import StatementKind
from binlane.sql.logging_mode import LoggingFormat
from binlane.sql.schema import TriggerTime

_PROVEN_EMPTY: Final = Outcome(rows=0, is_proven_empty=True)
_DUPLICATE_KEYS: Final = frozenset((1022, 1062, 1169))
_READING: Final = frozenset((StatementKind.SELECT, StatementKind.DO, StatementKind.SET))


def execute_rows(state: SessionState, command: Command) -> None:
    """Carry out a statement that reads or changes rows."""
    decided = _open(state, command)
    if decided is None:
        return
    if command.succeeds and is_proven_empty(command.facts, command.text):
        command = replace(command, outcome=_PROVEN_EMPTY)
    trace = trace_of(state, command, decided)
    trace = with_null_ids(state, command, decided.resolved, trace)
    if trace.error is not None and command.succeeds:
        command = command.failing(trace.error)
    is_left_to_others = any(is_delayed(state, name, decided.resolved) for name in decided.verdicts)
    runs = () if is_left_to_others else trace.runs
    work = work_of(state.server, decided.resolved, runs)
    if command.succeeds and (_tries_rows(command) or _empties_table(state, command, decided)):
        note_tries(state.server, decided.resolved, work)
    logged = _log(state, command, decided, trace, work)
    if command.facts.effects.kind is not StatementKind.LOAD_DATA:
        # Functions of SELECT, DO and SET are logged, and noted, one by one.
        times = len(trace.calls) if command.facts.effects.kind in _READING else 1
        for _ in range(times):
            give_notes(state, decided, logged)
    if not command.succeeds:
        fail_as_stated(state, command)
    if command.succeeds or work.changed_nontransactional:
        _remember_writes(state, decided)
    state.end_statement(work, succeeds=command.succeeds, formats=decided.formats)
    if not state.is_in_transaction:
        state.reset_isolation()


def _open(state: SessionState, command: Command) -> Decided | None:
    """Open the tables and decide; None if the statement comes to nothing, which `state` knows."""
    if is_not_locked(state, command):
        return None
    decided = decide(state, command)
    if decided is not None and fails_at_once(command, decided.resolved):
        fail_as_stated(state, command)
        return None
    return decided


def _tries_rows(command: Command) -> bool:
    """Whether a statement gives its engine rows that need not all be kept."""
    facts = command.facts
    if command.outcome.is_proven_empty:
        return False
    if facts.effects.kind is StatementKind.UPDATE:
        # Rows that are there, and keep their values, are tried; nothing says that there are none.
        return not (facts.has_where or facts.is_multi_table or facts.limits)
    kinds = (StatementKind.INSERT, StatementKind.REPLACE)
    return facts.effects.kind in kinds and not facts.has_query


def _empties_table(state: SessionState, command: Command, decided: Decided) -> bool:
    """Whether a statement asks its engine to delete all rows at once, which counts as a change."""
    facts = command.facts
    if (
        facts.effects.kind is not StatementKind.DELETE
        or facts.is_multi_table
        or not condition(facts, command.text)
        or facts.has_returning
        or facts.limits
        or command.outcome.is_proven_empty
    ):
        return False
    is_text = LoggingFormat.STATEMENT in decided.formats.values()
    targets = [access.name for access in _own_targets(decided.resolved)]
    triggers = [one for name in targets for one in state.objects.triggers(name)]
    return is_text and not any("DELETE" in trigger.events for trigger in triggers)


def _remember_writes(state: SessionState, decided: Decided) -> None:
    """Tell the rules of several binlogs what was written, and which binlogs log it."""
    changes = decided.changes
    if state.safety is None or changes is None:
        return
    recorders = frozenset(
        name
        for name, logging_format in decided.formats.items()
        if changes.writes or logging_format is LoggingFormat.STATEMENT
    )
    state.safety.executed(changes, recorders, is_in_transaction=state.is_in_transaction)


def _log(
    state: SessionState, command: Command, decided: Decided, trace: Trace, work: Work
) -> frozenset[str]:
    """Log a statement in all binlogs that take it; the names of those that did."""
    _stay_in_rows(state, command, decided)
    return frozenset(
        name
        for name, binlog in state.each_logging().items()
        if name in decided.verdicts
        and not decided.is_filtered(name)
        and _log_in(state, binlog, command, decided, trace, work)
    )


def _stay_in_rows(state: SessionState, command: Command, decided: Decided) -> None:
    """Stay in row format as long as the server does, also where nothing is logged."""
    for name, logging_format in decided.formats.items():
        if logging_format is not LoggingFormat.ROW:
            continue
        if state.objects.temporary_tables() and decided.resolved.accesses:
            state.row_sticky.add(name)
        if command.is_inner:
            state.program_rows.add(name)


def _log_in(
    state: SessionState,
    binlog: Binlog,
    command: Command,
    decided: Decided,
    trace: Trace,
    work: Work,
) -> bool:
    verdict = decided.verdicts[binlog.name]
    assert verdict.logging_format is not None
    if is_delayed(state, binlog.name, decided.resolved):
        return log_delayed(state, binlog, trace)
    frame = state.frame(binlog.name, work, verdict.logging_format)
    if verdict.logging_format is LoggingFormat.ROW:
        return _log_rows(state, binlog, command, decided, trace, frame)
    if not command.succeeds and not work.changed_nontransactional:
        return False
    if command.outcome.is_proven_empty:
        return False
    if command.facts.effects.kind in _READING:
        return _log_calls(state, binlog, command, decided, trace, frame)
    is_transactional = verdict.is_mixed_unsafe or (
        _is_transactional(state, decided.resolved) and not _updates_nothing(state, command)
    )
    _note_temporary(state, binlog, decided.resolved, frame, is_transactional)
    if command.facts.effects.kind is StatementKind.LOAD_DATA:
        _log_file(state, binlog, frame, decided.resolved)
    before = context_events(state, command, decided.resolved, trace, plan=decided.plan)
    events = [*before, _text(state, command)]
    binlog.write_statement(events, frame, is_transactional=is_transactional)
    state.run.log(binlog.name, LoggingFormat.STATEMENT)
    return True


def _log_rows(
    state: SessionState,
    binlog: Binlog,
    command: Command,
    decided: Decided,
    trace: Trace,
    frame: Frame,
) -> bool:
    """Log a statement as rows."""
    if not write_rows(state, binlog, decided.resolved, trace, frame):
        if command.outcome.error in _DUPLICATE_KEYS and _fires_before(state, decided.resolved):
            binlog.start(frame)  # rows were there, and went with the statement
        return command.succeeds and not command.outcome.is_proven_empty
    if command.succeeds or frame.statement.changed_nontransactional:
        state.run.log(binlog.name, LoggingFormat.ROW)
    return True


def _fires_before(state: SessionState, resolved: ResolvedStatement) -> bool:
    """Whether rows of transactional tables are written before those of the statement's target."""
    fired = {
        step.name
        for access in _own_targets(resolved)
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


def _log_file(
    state: SessionState, binlog: Binlog, frame: Frame, resolved: ResolvedStatement
) -> None:
    """The content of LOAD DATA's file; MySQL chooses its cache by the table alone."""
    is_transactional = _is_transactional(state, resolved)
    if state.server.is_mariadb or is_transactional:
        binlog.write_statement([log_events.BEGIN_LOAD], frame, is_transactional=is_transactional)
        return
    binlog.start(frame)
    binlog.statement_cache.events.append(log_events.BEGIN_LOAD)


def _log_calls(
    state: SessionState,
    binlog: Binlog,
    command: Command,
    decided: Decided,
    trace: Trace,
    frame: Frame,
) -> bool:
    """Log the function calls of a statement that is itself not logged."""
    verdict = decided.verdicts[binlog.name]
    tables = {access.name: access.table for access in decided.resolved.accesses}
    done: list[RowRun] = []
    for call in trace.calls:
        done += [RowRun(name, "") for name in call.writes if name in tables]
        so_far = work_of(state.server, decided.resolved, done)
        frame = state.frame(binlog.name, so_far, LoggingFormat.STATEMENT)
        written = [tables[name] for name in call.writes if name in tables]
        is_transactional = any(traits(table, state.server).has_rollback for table in written)
        events: list[LoggedEvent] = [
            *value_events(call.values),
            *(log_events.user_variable(info) for info in call.user_variables),
            log_events.query(call.text, command.database),
        ]
        state.run.log(binlog.name, LoggingFormat.STATEMENT)
        if command.is_condition:
            binlog.write_directly(events)
            continue
        binlog.write_statement(
            events, frame, is_transactional=is_transactional or verdict.is_mixed_unsafe
        )
    return bool(trace.calls)


def _is_transactional(state: SessionState, resolved: ResolvedStatement) -> bool:
    """Whether the command itself counts as one of a transactional table."""
    return any(traits(access.table, state.server).has_rollback for access in _own_targets(resolved))


def _updates_nothing(state: SessionState, command: Command) -> bool:
    """Whether it is an UPDATE of several tables to which MariaDB found no row to change.

    Only with the first row that it changes does it learn whether its tables are transactional.
    """
    facts = command.facts
    return (
        state.server.is_mariadb
        and facts.effects.kind is StatementKind.UPDATE
        and facts.is_multi_table
        and command.outcome.rows == 0
    )


def _own_targets(resolved: ResolvedStatement) -> Iterable[TableAccess]:
    return (access for access in resolved.accesses if access.changes and not access.is_prelocked)


def _note_temporary(
    state: SessionState,
    binlog: Binlog,
    resolved: ResolvedStatement,
    frame: Frame,
    is_transactional: bool,  # noqa: FBT001 - as the command counts
) -> None:
    """Note statements on non-transactional temporary tables in the transaction cache.

    MariaDB counts those that read them, and those that change no row.
    """
    if any(
        access.table.is_temporary and not traits(access.table, state.server).has_rollback
        for access in resolved.accesses
    ) and binlog.is_logged_in_transaction(frame, is_transactional=is_transactional):
        frame.statement.changed_nontransactional_temporary = True


def _text(state: SessionState, command: Command) -> LoggedEvent:
    if command.facts.effects.kind is StatementKind.LOAD_DATA:
        return log_events.execute_load(load_text(state, command), command.database)
    return log_events.query(text_without_delay(state, command), command.database)
