"""What a statement does to rows, by itself and through triggers, functions and sequences.

Source: `remove_eq_conds` in MariaDB 10.11 sql/sql_select.cc and
MySQL 9.7 sql/sql_optimizer.cc.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from binlane.names import TableName
from binlane.policy.access import ResolvedStatement
from binlane.programs.environment import SessionEnvironment
from binlane.programs.routines import silent
from binlane.programs.rows import changed_rows
from binlane.programs.trace import RowRun, SessionValues, Trace, Traced
from binlane.programs.tracer import trace
from binlane.session.auto_increment import generates_insert_id
from binlane.session.decision import Decided
from binlane.session.report import Outcome
from binlane.session.sequences import written_runs
from binlane.session.state import SessionState, SessionStatement
from binlane.sql.evaluation.statements import is_proven_empty as proves_empty
from binlane.sql.evaluation.statements import where_holds
from binlane.sql.facts import RowChange, StatementKind
from binlane.sql.schema import Table
from binlane.sql.tree.expressions import Name, Node, Operation, children
from binlane.sql.tree.statements import Delete, Update

_READING: Final = frozenset((StatementKind.SELECT, StatementKind.DO, StatementKind.SET))


def trace_of(state: SessionState, statement: SessionStatement, decided: Decided) -> Trace:
    """Follow a statement that runs; called once for it, as it assigns user variables."""
    plan = decided.plan
    known = plan.traces.get(statement.outcome)
    if known is not None:
        return Trace(runs=known.runs, annotation=statement.text)
    resolved = decided.resolved
    traced = Traced(
        facts=statement.facts,
        resolved=resolved,
        sql=statement.sql,
        logged=statement.text,
        outcome=statement.outcome,
    )
    environment = statement.environment
    assert environment is None or isinstance(environment, SessionEnvironment)
    sequences = {
        access.name: access.table for access in resolved.accesses if access.table.is_sequence
    }
    if sequences and _always_inserts(statement):
        found = trace(replace(traced, outcome=Outcome()), state.host, environment)
        return replace(found, runs=tuple(run for run in found.runs if run.table not in sequences))
    found = trace(traced, state.host, environment)
    if sequences:
        return _follow_sequences(state, statement, resolved, found, sequences)
    if plan.is_alone and found.error is None:
        plan.traces[statement.outcome] = found
    return found


def _always_inserts(statement: SessionStatement) -> bool:
    """Whether no changed row, as it was stated, can only be said of the statement's sequences.

    They then had values left in the range that they had reserved.
    """
    facts = statement.facts
    return (
        statement.outcome == Outcome(rows=0)
        and facts.effects.kind is StatementKind.INSERT
        and facts.row_count > 0
        and not facts.is_ignore
        and not facts.is_on_duplicate
    )


def _follow_sequences(
    state: SessionState,
    statement: SessionStatement,
    resolved: ResolvedStatement,
    found: Trace,
    sequences: dict[TableName, Table],
) -> Trace:
    """Add what SELECT, DO and SET do to sequences; leave out what needs no new range."""
    runs = found.runs
    if statement.facts.effects.kind in _READING:
        if changed_rows(statement.outcome) == 0:
            return found
        advanced = [
            RowRun(access.name, "insert")
            for access in resolved.accesses
            if RowChange.SEQUENCE in access.changes and not access.is_prelocked
        ]
        runs = (*advanced, *(run for run in runs if run.table not in sequences))
        if statement.outcome.rows is not None:
            return replace(found, runs=runs)
    kept = written_runs(state.sequence_values, runs, sequences, statement.facts)
    return replace(found, runs=kept)


# sql_auto_is_null: WHERE id IS NULL finds the row inserted last -----------------------------------


_INSERTING: Final = frozenset(
    (StatementKind.INSERT, StatementKind.REPLACE, StatementKind.LOAD_DATA)
)


def with_null_ids(
    state: SessionState, statement: SessionStatement, resolved: ResolvedStatement, trace: Trace
) -> Trace:
    """What a statement did, with LAST_INSERT_ID where it looks for the row inserted last."""
    if not state.variables.is_on("sql_auto_is_null", default=False):
        return trace
    if state.null_is_insert_id and _looks_for_null(statement, resolved):
        state.null_is_insert_id = not state.server.is_mariadb
        trace = replace(trace, values=trace.values.with_those(SessionValues(last_insert_id=True)))
    if statement.facts.effects.kind in _INSERTING and statement.succeeds and trace.runs:
        environment = SessionEnvironment(state.host, statement.database)
        if generates_insert_id(statement.facts, resolved, environment):
            state.null_is_insert_id = True
    return trace


def _looks_for_null(statement: SessionStatement, resolved: ResolvedStatement) -> bool:
    columns = {name.lower() for name in _compared_with_null(statement.facts.tree)}
    return any(
        access.table.auto_increment is not None
        and not access.is_prelocked
        and access.table.auto_increment.lower() in columns
        for access in resolved.accesses
    )


def _compared_with_null(node: Node) -> Iterator[str]:
    """The columns of which a statement asks whether they are NULL."""
    if isinstance(node, Operation) and node.operator == "IS NULL" and not node.is_negated:
        (operand,) = node.operands
        if isinstance(operand, Name):
            yield operand.parts[-1]
    for each in children(node):
        yield from _compared_with_null(each)


# UPDATE and DELETE that are known to change nothing -----------------------------------------------


def is_proven_empty(state: SessionState, statement: SessionStatement) -> bool:
    """Whether the server knows that UPDATE or DELETE of one table changes no row.

    Neither server logs them, in any format (`-- @rows none` of a script says it of all others).
    """
    facts = statement.facts
    if not isinstance(facts.tree, Update | Delete):
        return False
    environment = environment_of(state, statement)
    with silent(environment):
        return proves_empty(facts.tree, facts, environment)


def holds_for_all(state: SessionState, statement: SessionStatement) -> bool:
    """Whether the WHERE clause of UPDATE or DELETE holds whatever the row, or there is none."""
    facts = statement.facts
    if not isinstance(facts.tree, Update | Delete):
        return False
    environment = environment_of(state, statement)
    with silent(environment):
        return where_holds(facts.tree, facts, environment) is True


def environment_of(state: SessionState, statement: SessionStatement) -> SessionEnvironment:
    """What the expressions of a statement can refer to."""
    environment = statement.environment
    if environment is None:
        return SessionEnvironment(state.host, statement.database)
    assert isinstance(environment, SessionEnvironment)
    return environment
