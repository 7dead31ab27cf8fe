"""Statements that read or change rows: which of them are carried out, and what is known of their rows.

Source: seed 004, R-log-statement-format and R-log-row-format; MariaDB 10.11 sql/log.cc and sql/handler.cc,
MySQL 9.7 sql/binlog.cc and sql/handler.cc. UPDATE and DELETE of tables that hold no rows, BLACKHOLE's:
measured on MariaDB 10.11.19, whose optimizer asks the engine how many rows a key has, and on MySQL 9.7.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from binlane.statements.policy.engines import traits
from binlane.statements.policy.refusals import Outcome, Refusal
from binlane.statements.policy.resolution import ResolvedStatement
from binlane.statements.policy.server import Server
from binlane.statements.programs.trace import Trace
from binlane.statements.programs.ways import DataCondition, SinglePath
from binlane.statements.session.decision import Decided, decide, give_notes
from binlane.statements.session.lock_refusals import (
    fails_at_once,
    fails_before_locking,
    is_not_locked,
)
from binlane.statements.session.log_events import SOURCE_LOG
from binlane.statements.session.resolved_shape import forget
from binlane.statements.session.rows import (
    holds_for_all,
    is_proven_empty,
    trace_of,
    with_null_ids,
)
from binlane.statements.session.state import SessionState
from binlane.statements.session.statement_log import (
    StatementLog,
    becomes_join,
    is_delayed,
    own_targets,
)
from binlane.statements.session.statement_state import SessionStatement
from binlane.statements.session.transaction import engine_changes_of, note_tries
from binlane.statements.session.unchanged import (
    fails_foreign_keys,
    note_rows,
    tries_own_rows,
    tries_unchanged,
)
from binlane.statements.sql.facts import RowChange, StatementFacts
from binlane.statements.sql.schema import Table, TriggerTime
from binlane.statements.sql.servers import Fact, LoggingFormat, LoggingMode
from binlane.statements.sql.statement_kinds import READING_KINDS, StatementKind
from binlane.statements.sql.tree.expressions import (
    Expression,
    Literal,
    Name,
    Operation,
    Subquery,
)
from binlane.statements.sql.tree.statements import Delete, Update

_PROVEN_EMPTY: Final = Outcome(rows=0, is_proven_empty=True)
_IN_USE: Final = 1442
_WITHOUT_NEW_ROWS: Final = frozenset((RowChange.UPDATE, RowChange.DELETE))


_AT_ONCE: Final = frozenset(
    (
        *(StatementKind.INSERT, StatementKind.REPLACE, StatementKind.UPDATE),
        *(StatementKind.DELETE, StatementKind.SELECT),
    )
)


def runs_at_once(state: SessionState, statement: SessionStatement) -> bool:
    """True if a statement of rows runs, unless its tables or rows hinder it."""
    transaction = state.transaction
    return (
        statement.facts.effects.kind in _AT_ONCE
        and statement.outcome.error is None
        and transaction.xa_phase is None
        and transaction.created is None
        and not state.unknown_programs
        and not (state.locked_tables is not None or state.is_read_locked)
        and not state.characteristics.is_read_only
        and not state.variables.settings.characteristics.is_read_only
        and not state.host.errors.predicts
    )


def execute_rows(state: SessionState, statement: SessionStatement) -> None:
    """Carry out a statement that reads or changes rows."""
    _begin(state, statement)
    decided = _open(state, statement)
    if decided is None:
        return
    statement = _with_rows_known(state, statement, decided)
    statement, trace = _traced(state, statement, decided)
    trace = with_null_ids(state, statement, decided.resolved, trace)
    if trace.error is not None and statement.succeeds:
        statement = statement.failing(trace.error)
    if not _was_foreseen(state, decided, trace):
        return
    runs = () if _is_left_to_others(state, decided) else trace.runs
    engine_changes = engine_changes_of(state.server, decided.resolved, runs)
    if statement.succeeds and (
        _tries_rows(state, statement, decided.resolved) or _empties_table(state, statement, decided)
    ):
        note_tries(state.server, decided.resolved, engine_changes)
    written = _written(state)
    logged = StatementLog(state, statement, decided, trace, engine_changes).write()
    if statement.facts.effects.kind is not StatementKind.LOAD_DATA:
        # Functions of SELECT, DO and SET are logged, and noted, one by one.
        times = len(trace.calls) if statement.facts.effects.kind in READING_KINDS else 1
        for _ in range(times):
            give_notes(state, decided, logged)
    if not statement.succeeds and not _is_passed_over(state, statement, trace):
        state.fail_as_stated(statement)
    if statement.succeeds or engine_changes.changed_nontransactional:
        _remember_writes(state, decided)
        _fill(state, decided.resolved)
        note_rows(state, statement, decided.resolved)
    state.end_statement(
        engine_changes,
        succeeds=statement.succeeds,
        formats=decided.formats,
        keeps_rows_open=_keeps_rows_open(state, decided.resolved),
    )
    state.opened(_looked_at(decided.resolved))
    if not state.is_in_transaction and (written < _written(state) or _is_begun(state, decided)):
        state.reset_characteristics()


def _is_left_to_others(state: SessionState, decided: Decided) -> bool:
    """True if another thread inserts the rows, as some binlog sees it."""
    resolved = decided.resolved
    return resolved.is_delayed and any(is_delayed(state, one, resolved) for one in decided.verdicts)


def _is_passed_over(state: SessionState, statement: SessionStatement, trace: Trace) -> bool:
    """True if a statement that a function stopped has no error all the same: MariaDB's DO.

    The functions' changes are rolled back as far as that is possible.
    """
    is_do = statement.facts.effects.kind is StatementKind.DO and state.server.is_mariadb
    return is_do and trace.error is not None


def _traced(
    state: SessionState, statement: SessionStatement, decided: Decided
) -> tuple[SessionStatement, Trace]:
    """Follow a statement; where its triggers write a table in use, also as a statement without rows."""
    variables = dict(state.programs.user_variables)
    trace = trace_of(state, statement, decided)
    facts, outcome = statement.facts, statement.outcome
    may_find_none = isinstance(facts.tree, Update | Delete) or facts.has_query
    is_in_use = trace.error is not None and trace.error.errno == _IN_USE
    if not is_in_use or outcome != Outcome() or not may_find_none:
        return statement, trace
    ways, target = state.programs.ways, next(iter(own_targets(decided.resolved)), None)
    if target is None or isinstance(ways, SinglePath):
        return statement, trace
    if not ways.choose(DataCondition(f"a row for {target.name.plain}")):
        return statement, trace
    state.programs.user_variables = variables
    statement = replace(statement, outcome=outcome._replace(rows=0))
    return statement, trace_of(state, statement, decided)


def _unfilled(state: SessionState, statement: SessionStatement, decided: Decided) -> Refusal | None:
    """Return the error of rows that lack values, for an INSERT without view, function or BEFORE trigger."""
    kinds = (StatementKind.INSERT, StatementKind.REPLACE)
    accesses = decided.resolved.accesses
    if statement.facts.effects.kind not in kinds or decided.resolved.functions or not accesses:
        return None
    table = accesses[0].table
    triggers = state.objects.triggers(table.name)
    is_before = any(one.time is TriggerTime.BEFORE and "INSERT" in one.events for one in triggers)
    if is_before or accesses[0].via or not accesses[0].changes:
        return None
    return state.host.errors.lacking_value(
        statement.facts,
        table,
        state.server,
        is_strict=state.variables.is_strict,
        is_kept=not traits(table, state.server).has_rollback,
    )


def _begin(state: SessionState, statement: SessionStatement) -> None:
    """Turn MariaDB to rows as LOAD DATA begins, whatever comes of it, and logged or not."""
    is_load = statement.facts.effects.kind is StatementKind.LOAD_DATA
    if is_load and state.server.is_mariadb and state.objects.temporary_tables():
        mixed = (name for name in state.binlogs if state.mode(name) is LoggingMode.MIXED)
        state.temporary.row_binlogs.update(mixed)


def _keeps_rows_open(state: SessionState, resolved: ResolvedStatement) -> bool:
    """True if the server has not yet ended the rows of a statement when the statement ends.

    Under LOCK TABLES such a server closes the tables of a statement that locks others, but nothing
    more. Source: MySQL 9.7 sql/sql_base.cc `close_thread_tables`, measured.
    """
    if state.locked_tables is None or state.server.has(Fact.ENDS_ROWS_UNDER_LOCKS):
        return False
    return bool(resolved.functions) or any(
        access.is_prelocked
        or (access.is_locked_for_write and any(state.objects.children(access.name)))
        for access in resolved.accesses
    )


def _written(state: SessionState) -> int:
    """Return the number of events that the client's statement has in the binlogs so far."""
    return sum([len(one.written) for name, one in state.binlogs.items() if name != SOURCE_LOG])


def _is_begun(state: SessionState, decided: Decided) -> bool:
    """True if an engine that has transactions took part, if only by being read."""
    resolved = decided.resolved
    accesses = (*resolved.accesses, *resolved.dictionary)
    return any(traits(access.table, state.server).is_transactional for access in accesses)


def _with_rows_known(
    state: SessionState, statement: SessionStatement, decided: Decided
) -> SessionStatement:
    """State no changed rows for a statement that changes none, whatever is in its tables.

    A statement that fails for rows without a value gets that error.
    """
    if not statement.succeeds:
        return statement
    if state.host.errors.predicts:
        lack = _unfilled(state, statement, decided)
        if lack is not None:
            return statement.failing(lack)
    if not isinstance(statement.facts.tree, Update | Delete):
        return statement
    facts, resolved = statement.facts, decided.resolved
    if is_proven_empty(state, statement, resolved) or looks_up_nothing(
        facts, resolved, state.server
    ):
        return replace(statement, outcome=_PROVEN_EMPTY)
    if state.empty_tables and _is_of_empty_table(state, statement, decided):
        return replace(statement, outcome=_PROVEN_EMPTY)
    if finds_no_rows(facts, resolved):
        return replace(statement, outcome=statement.outcome._replace(rows=0))
    return statement


def _looked_at(resolved: ResolvedStatement) -> Iterator[Table]:
    """Give the tables that are read without a part in the decision, but begin their engine's transaction."""
    yield from (access.table for access in resolved.dictionary)
    yield from (access.table for access in resolved.accesses if access.table.is_sequence)


def _was_foreseen(state: SessionState, decided: Decided, trace: Trace) -> bool:
    """True if all changed tables were known at the decision; else `state` knows of an error.

    A routine or object that a function or trigger names may have been read since, which changes no version of
    the objects.
    """
    if not trace.runs:
        return True
    accessed = {access.name for access in decided.resolved.accesses}
    for run in trace.runs:
        if run.table not in accessed:
            forget(decided.shape)
            state.programs.effort.unfollowed = f"{run.table.plain} was not known at the decision"
            return False
    return True


def _open(state: SessionState, statement: SessionStatement) -> Decided | None:
    """Open the tables and decide; None if the statement comes to nothing, which `state` knows."""
    is_open = statement.succeeds and state.locked_tables is None
    if not is_open and is_not_locked(state, statement):
        return None
    if not statement.succeeds:
        resolved = state.host.resolved(statement.facts, statement.database)
        # MySQL looks at the text before it decides.
        is_early = not state.server.is_mariadb and fails_at_once(statement, resolved)
        if is_early or fails_before_locking(state, statement, resolved):
            state.fail_as_stated(statement)
            return None
    decided = decide(state, statement)
    if decided is None or statement.succeeds:
        return decided
    if fails_at_once(statement, decided.resolved):
        state.opened(access.table for access in decided.resolved.accesses)
        state.fail_as_stated(statement)
        return None
    return decided


def _tries_rows(
    state: SessionState, statement: SessionStatement, resolved: ResolvedStatement
) -> bool:
    """True if a statement gives its engine rows that need not all be kept."""
    facts = statement.facts
    if statement.outcome.is_proven_empty:
        return False
    if facts.effects.kind is StatementKind.UPDATE:
        return tries_unchanged(state, facts, resolved)
    kinds = (StatementKind.INSERT, StatementKind.REPLACE)
    if facts.effects.kind not in kinds:
        return False
    if facts.has_query:
        return tries_own_rows(state, statement, resolved)
    return statement.outcome.rows != 0 or not fails_foreign_keys(state, facts, resolved)


def _empties_table(state: SessionState, statement: SessionStatement, decided: Decided) -> bool:
    """True if a statement asks its engine to delete all rows at once, which counts as a change."""
    facts = statement.facts
    if (
        not isinstance(facts.tree, Delete)
        or "HISTORY" in facts.tree.modifiers
        or facts.is_multi_table
        or not holds_for_all(state, statement, decided.resolved)
        or facts.has_returning
        or facts.limits
        or statement.outcome.is_proven_empty
    ):
        return False
    is_text = LoggingFormat.STATEMENT in decided.formats.values()
    targets = [access.name for access in own_targets(decided.resolved)]
    triggers = [one for name in targets for one in state.objects.triggers(name)]
    return is_text and not any("DELETE" in trigger.events for trigger in triggers)


def _remember_writes(state: SessionState, decided: Decided) -> None:
    """Give the statement's writes, and the binlogs that log it, to the rules of several binlogs."""
    changes = decided.changes
    if state.safety is None or changes is None:
        return
    recorders = frozenset(
        name
        for name, logging_format in decided.own_formats.items()
        if changes.writes or logging_format is LoggingFormat.STATEMENT
    )
    state.safety.executed(
        changes, recorders, state.held_temporary(), is_in_transaction=state.is_in_transaction
    )


def _is_of_empty_table(state: SessionState, statement: SessionStatement, decided: Decided) -> bool:
    """True if UPDATE or DELETE is of one table that is known to be empty, and reads its rows."""
    facts = statement.facts
    if not isinstance(facts.tree, Update | Delete) or facts.is_multi_table:
        return False
    if becomes_join(facts.tree) or _empties_table(state, statement, decided):
        return False
    return all(access.name in state.empty_tables for access in own_targets(decided.resolved))


def _fill(state: SessionState, resolved: ResolvedStatement) -> None:
    """Forget that tables that get rows are empty."""
    if not state.empty_tables:
        return
    for access in resolved.accesses:
        if access.changes - _WITHOUT_NEW_ROWS:
            state.empty_tables.discard(access.name)


def looks_up_nothing(facts: StatementFacts, resolved: ResolvedStatement, server: Server) -> bool:
    """True if UPDATE or DELETE of one BLACKHOLE table names a value for all of a unique key.

    Such a statement is known to change nothing before it runs, and is logged in no format.
    """
    tree = facts.tree
    table = _empty_table(facts, resolved)
    if table is None or not isinstance(tree, (Update, Delete)) or tree.where is None:
        return False
    if not server.has(Fact.ASKS_EMPTY_ENGINES):
        return False
    columns = {column.name.lower() for column in table.definition.columns}
    given = set(_looked_up(tree.where, columns))
    return any(
        given.issuperset(column.lower() for column in key.columns) for key in table.unique_keys
    )


def finds_no_rows(facts: StatementFacts, resolved: ResolvedStatement) -> bool:
    """True if UPDATE or DELETE of one BLACKHOLE table has no rows to change, whatever its text is.

    The text is logged all the same, and in row format there is nothing to log.
    """
    return _empty_table(facts, resolved) is not None


def _empty_table(facts: StatementFacts, resolved: ResolvedStatement) -> Table | None:
    """The BLACKHOLE table that alone UPDATE or DELETE changes."""
    if not isinstance(facts.tree, (Update, Delete)) or facts.is_multi_table:
        return None
    own = [one for one in resolved.accesses if not one.is_prelocked and one.changes]
    if len(own) != 1 or own[0].table.engine != "BLACKHOLE":
        return None
    return own[0].table


def _looked_up(condition: Expression, columns: set[str]) -> Iterator[str]:
    """The columns, in small letters, that a condition compares with values that no row has."""
    if not isinstance(condition, Operation) or condition.is_negated:
        return
    operands = condition.operands
    if condition.operator == "AND":
        for operand in operands:
            yield from _looked_up(operand, columns)
    elif condition.operator in ("=", "<=>"):
        for name, value in (tuple(operands), tuple(reversed(operands))):
            is_local = isinstance(value, Name) and value.parts[-1].lower() not in columns
            if isinstance(name, Name) and (is_local or isinstance(value, (Literal, Subquery))):
                yield name.parts[-1].lower()
    elif condition.operator == "IN" and isinstance(operands[0], Name):
        if all(isinstance(value, Literal) for value in operands[1:]):
            yield operands[0].parts[-1].lower()
    elif condition.operator == "IS NULL" and isinstance(operands[0], Name):
        yield operands[0].parts[-1].lower()
