"""What a statement does to rows, by itself and through triggers and functions."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from binlane.names import TableName
from binlane.policy.access import ResolvedStatement
from binlane.session.decision import Decided
from binlane.session.programs.environment import SessionEnvironment
from binlane.session.programs.host import RowRun, Trace
from binlane.session.programs.trace import trace
from binlane.session.programs.traced import Traced
from binlane.session.report import Outcome
from binlane.session.rows import changed_rows
from binlane.session.sequences import written_runs
from binlane.session.state import Command, SessionState
from binlane.sql.effects import StatementKind
from binlane.sql.facts import RowChange
from binlane.sql.schema import Table

_READING: Final = frozenset((StatementKind.SELECT, StatementKind.DO, StatementKind.SET))


def trace_of(state: SessionState, command: Command, decided: Decided) -> Trace:
    """Follow a statement that runs; called once for it, as it assigns user variables."""
    plan = decided.plan
    known = plan.traces.get(command.outcome)
    if known is not None:
        return Trace(runs=known.runs, annotation=command.text)
    resolved = decided.resolved
    traced = Traced(
        facts=command.facts,
        resolved=resolved,
        sql=command.sql,
        logged=command.text,
        outcome=command.outcome,
    )
    environment = command.environment
    assert environment is None or isinstance(environment, SessionEnvironment)
    sequences = {
        access.name: access.table for access in resolved.accesses if access.table.is_sequence
    }
    if sequences and _always_inserts(command):
        found = trace(replace(traced, outcome=Outcome()), state.host, environment)
        return replace(found, runs=tuple(run for run in found.runs if run.table not in sequences))
    found = trace(traced, state.host, environment)
    if sequences:
        return _follow_sequences(state, command, resolved, found, sequences)
    if plan.is_alone and found.error is None:
        plan.traces[command.outcome] = found
    return found


def _always_inserts(command: Command) -> bool:
    """Whether no changed row, as it was stated, can only be said of the statement's sequences.

    They then had values left in the range that they had reserved.
    """
    facts = command.facts
    return (
        command.outcome == Outcome(rows=0)
        and facts.effects.kind is StatementKind.INSERT
        and facts.row_count > 0
        and not facts.is_ignore
        and not facts.is_on_duplicate
    )


def _follow_sequences(
    state: SessionState,
    command: Command,
    resolved: ResolvedStatement,
    found: Trace,
    sequences: dict[TableName, Table],
) -> Trace:
    """Add what SELECT, DO and SET do to sequences; leave out what needs no new range."""
    runs = found.runs
    if command.facts.effects.kind in _READING:
        if changed_rows(command.outcome) == 0:
            return found
        advanced = [
            RowRun(access.name, "insert")
            for access in resolved.accesses
            if RowChange.SEQUENCE in access.changes and not access.is_prelocked
        ]
        runs = (*advanced, *(run for run in runs if run.table not in sequences))
        if command.outcome.rows is not None:
            return replace(found, runs=runs)
    kept = written_runs(state.sequence_values, runs, sequences, command.facts)
    return replace(found, runs=kept)
