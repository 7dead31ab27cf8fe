"""Decide for each binlog how a statement is logged, and refuse it for all if one cannot.

Errors that a statement meets when its tables are opened come first.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from binlane.names import TableName
from binlane.statements.policy import reasons
from binlane.statements.policy.procedure import Verdict
from binlane.statements.policy.reasons import ReasonFound
from binlane.statements.policy.refusals import (
    NONTRANSACTIONAL_AND_GTID,
    Refusal,
    Why,
)
from binlane.statements.policy.resolution import ResolvedStatement
from binlane.statements.policy.server import Circumstances, Isolation
from binlane.statements.programs.environment import RoutineEnvironment
from binlane.statements.scope.changes import Changes
from binlane.statements.session.lock_refusals import refusal_beyond_locks
from binlane.statements.session.log_events import SOURCE_LOG
from binlane.statements.session.report import Note
from binlane.statements.session.resolved_shape import ResolvedShape, shape_of
from binlane.statements.session.state import SessionState
from binlane.statements.session.statement_changes import changes_of
from binlane.statements.session.statement_state import SessionStatement, TemporaryChange
from binlane.statements.sql.facts import Shift, StatementFacts
from binlane.statements.sql.schema import Table
from binlane.statements.sql.servers import Fact, LoggingFormat, LoggingMode
from binlane.statements.sql.statement_kinds import StatementKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A statement that may run.

    Attributes:
        resolved: The tables of this statement.
        shape: Knowledge of all statements of the same shape.
        shift: Differences between the places in this text and those of the shape; None: no difference.
        verdicts: Verdicts of the binlogs that log the statement, by name.
        changes: The statement's changes in scopes; None where no binlogs are defined.
        shadows: By binlog, shadows beside its scope whose rows it leaves out.
        takes_seeds: The statement gets a table ready whose DEFAULT takes the session's seeds of RAND().
    """

    resolved: ResolvedStatement
    shape: ResolvedShape
    shift: Shift | None = None
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    changes: Changes | None = None
    shadows: Mapping[str, frozenset[TableName]] = field(default_factory=dict)
    takes_seeds: bool = False

    def verdict(self, circumstances: Circumstances) -> Verdict:
        """Return the decision for some circumstances, with places of this text."""
        found = self.shape.verdict(circumstances)
        return found if self.shift is None else found.moved(self.shift)

    @property
    def formats(self) -> dict[str, LoggingFormat]:
        """The statement's logging format by binlog."""
        return {
            name: verdict.logging_format or LoggingFormat.STATEMENT
            for name, verdict in self.verdicts.items()
        }

    @property
    def own_formats(self) -> dict[str, LoggingFormat]:
        """Return the formats of the binlogs, without the source's own log."""
        formats = self.formats
        formats.pop(SOURCE_LOG, None)
        return formats

    def is_filtered(self, name: str) -> bool:
        """True if a binlog logs nothing of the statement, because only unreplicated tables are written."""
        return self.verdicts[name].is_filtered


_TOLD_MAX: Final = 64
_BEHIND_LOCKS: Final = frozenset((1052, 1054, 1110, 1136, 1305))
_BEFORE_COLUMNS: Final = frozenset((1046, 1049, 1050))
"""Errors in the table of a CREATE … SELECT, which come before its columns are looked up."""


def decide(
    state: SessionState, statement: SessionStatement, created: Table | None = None
) -> Decided | None:
    """Decide a statement in all binlogs; None if one refuses it, which `state` then knows.

    Args:
        state: The state of the session.
        statement: The statement to be decided.
        created: The table that CREATE … SELECT is about to make.
    """
    shape = shape_of(statement.facts, state.opening(statement.database, created))
    shift = statement.facts.shift
    resolved = shape.resolved if shift is None else shape.resolved.moved(shift)
    if _cannot_open(state, statement, resolved):
        return None
    # MySQL looks up columns before it decides, MariaDB behind that.
    refusal = _unknown_column(state, statement) if state.host.errors.predicts else None
    if refusal is not None and not state.server.is_mariadb:
        state.fail(refusal)
        return None
    if resolved.notes:
        state.programs.effort.unfollowed = resolved.notes[0]
        return None
    remembered = _still_remembered(state, statement, resolved)
    if remembered or (resolved.is_delayed and statement.is_in_body):
        is_delayed = resolved.is_delayed and not statement.is_in_body
        reasons_ = (*resolved.reasons, *remembered)
        resolved = replace(resolved, is_delayed=is_delayed, reasons=reasons_)
        shape, shift = ResolvedShape(statement.facts, resolved, state.objects), None
    takes_seeds = bool(shape.random_tables) and state.get_ready(shape.random_tables)
    decided = _decide_resolved(
        state,
        statement,
        Decided(resolved=resolved, shape=shape, shift=shift, takes_seeds=takes_seeds),
    )
    if decided is not None and refusal is not None:
        _fail_behind_locks(state, statement, resolved, refusal)
        return None
    if decided is not None:
        _remember(state, statement, decided)
    return decided


def _cannot_open(
    state: SessionState, statement: SessionStatement, resolved: ResolvedStatement
) -> bool:
    """True if the tables of a statement cannot be opened, for a reason that `state` then knows."""
    for name, _ in resolved.unknown_tables:
        if state.objects.is_unknown(name):
            state.programs.effort.unfollowed = f"what was made of {name.plain} was not analysed"
            return True
    if state.locked_tables is not None or state.is_read_locked:
        refusal = refusal_beyond_locks(state, statement.facts, resolved)
        if refusal is not None:
            state.fail(refusal)
            return True
    errors, failure = state.host.errors, next(iter(resolved.errors), None)
    if failure is None and errors.predicts:
        opening = state.opening(statement.database)
        failure = errors.denied_inside(statement.facts, opening, state.identity)
    if failure is not None:
        _fail_behind_locks(state, statement, resolved, failure)
    return failure is not None


def _unknown_column(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """Return the error of columns that a statement names and that do not exist; None if none is sure."""
    if statement.outcome.error in _BEFORE_COLUMNS or state.assume_engine is not None:
        return None
    environment, opening = statement.environment, state.opening(statement.database)
    if isinstance(environment, RoutineEnvironment):
        return state.host.errors.unknown_column(statement.facts, opening, environment.hides)
    return state.host.errors.unknown_column(statement.facts, opening)


def _fail_behind_locks(
    state: SessionState, statement: SessionStatement, resolved: ResolvedStatement, failure: Refusal
) -> None:
    """Fail a statement of which MariaDB has locked the tables when it finds a name wrong."""
    effects = statement.facts.effects
    # DDL ends with a rollback.
    may_begin = effects.kind is not StatementKind.CREATE_TABLE_SELECT or effects.is_temporary
    if may_begin and state.server.is_mariadb and failure.errno in _BEHIND_LOCKS:
        state.opened(access.table for access in resolved.accesses)
    state.fail(failure)


def _still_remembered(
    state: SessionState, statement: SessionStatement, resolved: ResolvedStatement
) -> Sequence[ReasonFound]:
    """The reasons of earlier executions, unless the statement is prepared anew by now."""
    remembered = statement.remembered
    is_watched = not remembered.is_of_routine or state.server.has(Fact.PREPARES_BODIES_ANEW)
    if remembered.reasons and is_watched and remembered.tables != _table_changes(state, resolved):
        remembered.reasons.clear()
    return remembered.reasons


def _table_changes(state: SessionState, resolved: ResolvedStatement) -> tuple[int, ...]:
    """Return the number of changes of each of a statement's tables."""
    return state.programs.changes_of(access.name for access in resolved.accesses)


def _remember(state: SessionState, statement: SessionStatement, decided: Decided) -> None:
    remembered = statement.remembered
    known = {found.reason for found in remembered.reasons}
    for verdict in decided.verdicts.values():
        remembered.reasons.extend([one for one in verdict.unsafe if one.reason not in known])
        known.update([one.reason for one in verdict.unsafe])
    if remembered.reasons:
        remembered.tables = _table_changes(state, decided.resolved)


def _decide_resolved(
    state: SessionState, statement: SessionStatement, known: Decided
) -> Decided | None:
    safety = state.safety if state.is_logging else None
    changes = None
    candidates = frozenset(state.each_logging())
    if safety is not None:
        # Changes and needs of statements of the shape, by True if they stand in a procedure.
        of_shape, is_in_procedure = known.shape.changes, state.execution.is_in_procedure
        changes = of_shape.get(is_in_procedure)
        if changes is None:
            changes = _changes_of(state, known.shape.facts, known.shape.resolved)
            of_shape[is_in_procedure] = changes
        candidates &= safety.candidates(changes) | {SOURCE_LOG}
    names = [name for name in state.each_logging() if name in candidates]
    verdicts = _verdicts(state, statement, known, names)
    if SOURCE_LOG in verdicts and not verdicts[SOURCE_LOG].errors:
        # A source that logs rows takes it, where one that logs texts does not: rows it is.
        against = [
            name for name, one in verdicts.items() if NONTRANSACTIONAL_AND_GTID in one.errors
        ]
        verdicts |= _verdicts(state, statement, known, against, are_rows=True)
    if SOURCE_LOG in verdicts and verdicts[SOURCE_LOG].logging_format is None:
        # The source will say so itself.
        del verdicts[SOURCE_LOG]
    if state.temporary.names:
        _note_temporary_tables(state, known.resolved)
    for name, verdict in verdicts.items():
        state.execution.steps.setdefault(name, []).extend(verdict.steps)
        state.execution.unsafe.setdefault(name, []).extend(
            [reasons.symbol(found.reason) for found in verdict.unsafe]
        )
    if _refuse(state, verdicts):
        if state.safety is None:
            state.opened(_locked_until(known.resolved, state.execution.error))
        return None
    decided = Decided(
        resolved=known.resolved,
        shape=known.shape,
        shift=known.shift,
        takes_seeds=known.takes_seeds,
        verdicts=verdicts,
        changes=changes,
    )
    return decided if changes is None else _decide_safety(state, statement, decided, changes)


def _locked_until(resolved: ResolvedStatement, error: Refusal | None) -> Iterator[Table]:
    """Give the tables that are locked when a statement is refused.

    Servers decide when all tables are locked, but InnoDB refuses to be locked for writing.
    """
    is_of_innodb = error is not None and bool(error.behind)
    for access in (*resolved.accesses, *resolved.dictionary):
        is_written = access.is_locked_for_write and access.table.engine.upper() == "INNODB"
        if is_of_innodb and is_written:
            return
        yield access.table


def _refuse(state: SessionState, verdicts: Mapping[str, Verdict]) -> bool:
    """Fail with the errors of the binlogs that refuse a statement; False if none does."""
    refusing: dict[int, Refusal] = {}
    for name, verdict in verdicts.items():
        for error in verdict.errors[:1]:
            known_error = refusing.get(error.errno, error)
            refusing[error.errno] = replace(known_error, binlogs=(*known_error.binlogs, name))
    if not refusing:
        return False
    first, *others = refusing.values()
    if first.errno == NONTRANSACTIONAL_AND_GTID.errno and state.execution.is_in_procedure:
        # CALL gives the notes of the statement that it ends with; measured on MySQL 9.7.4.
        note_unsafe(state, {name: one.unsafe for name, one in verdicts.items() if one.errors})
    state.fail(replace(first, others=tuple(others)))
    return True


def _locked_isolation(state: SessionState, resolved: ResolvedStatement) -> Isolation | None:
    """The isolation level with which the tables were opened that a statement changes.

    None without LOCK TABLES: they are opened with the session's.
    """
    if state.locked_tables is None:
        return None
    changed = (access.name for access in resolved.accesses if access.changes)
    return state.locked_tables.isolation_of(changed)


def _changes_of(state: SessionState, facts: StatementFacts, resolved: ResolvedStatement) -> Changes:
    is_in_procedure = state.execution.is_in_procedure
    return changes_of(
        facts, resolved, state.objects, server=state.server, is_in_procedure=is_in_procedure
    )


def _decide_safety(
    state: SessionState, statement: SessionStatement, decided: Decided, changes: Changes
) -> Decided | None:
    assert state.safety is not None
    admit = partial(
        state.safety.admit, modes=state.modes(), is_in_transaction=state.is_in_transaction
    )
    admitted = admit(changes, formats=decided.own_formats)
    if isinstance(admitted, Refusal):
        rows = _as_rows(state, statement, decided, admitted)
        if rows is not None:
            decided, admitted = rows, admit(changes, formats=rows.own_formats)
    if isinstance(admitted, Refusal) and decided.shift is not None:
        # Say where it stands in this statement, not in the first one of its shape.
        moved = _changes_of(state, statement.facts, decided.resolved)
        admitted = admit(moved, formats=decided.own_formats)
    if isinstance(admitted, Refusal):
        state.fail(admitted)
        return None
    if changes.triggers:
        rows = _as_rows_without_triggers(state, statement, decided, admitted)
        if rows is None:
            return None
        decided = rows
    admitted |= {SOURCE_LOG}
    verdicts = {name: one for name, one in decided.verdicts.items() if name in admitted}
    return replace(decided, verdicts=verdicts)


def _as_rows(
    state: SessionState, statement: SessionStatement, decided: Decided, refusal: Refusal
) -> Decided | None:
    """A statement as rows in MIXED binlogs that could not have its text; None if there are none.

    A text needs what it reads, and triggers do on a replica what they did here; rows need neither.
    """
    names = {
        name
        for one in (refusal, *refusal.others)
        if one.symbol in _OF_TEXTS
        for name in one.binlogs
        if state.mode(name) is LoggingMode.MIXED
    }
    if not names:
        return None
    verdicts = _verdicts(state, statement, decided, names, are_rows=True)
    if any(one.errors for one in verdicts.values()):
        return None
    return _with_verdicts(state, decided, verdicts)


def _with_verdicts(
    state: SessionState, decided: Decided, verdicts: Mapping[str, Verdict]
) -> Decided:
    """Return a decision with other verdicts for some binlogs."""
    for name, verdict in verdicts.items():
        state.execution.steps.setdefault(name, []).extend(verdict.steps)
    return replace(decided, verdicts={**decided.verdicts, **verdicts})


def _as_rows_without_triggers(
    state: SessionState, statement: SessionStatement, decided: Decided, recorders: Container[str]
) -> Decided | None:
    """A statement as rows in binlogs that have none of the triggers which fill a shadow beside.

    A text could do something else where such a trigger is missing, and its rows are the same.

    Returns:
        The decision; None if a binlog can have no rows of it, which `state` then knows.
    """
    assert state.safety is not None
    assert decided.changes is not None
    found = state.safety.shadows_left_out(decided.changes)
    left_out = {name: shadows for name, shadows in found.items() if name in recorders}
    if not left_out:
        return decided
    verdicts = _verdicts(state, statement, decided, left_out, are_rows=True)
    if _refuse(state, verdicts):
        return None
    for name, shadows in left_out.items():
        names = ", ".join(shadow.plain for shadow in sorted(shadows))
        steps = state.execution.steps.setdefault(name, [])
        steps.append(f"{names} is a tool's shadow outside of the scope: logged as rows without it")
    # No text, nothing unsafe: the notes are for texts.
    safe = {name: replace(verdict, unsafe=()) for name, verdict in verdicts.items()}
    return replace(_with_verdicts(state, decided, safe), shadows=left_out)


_OF_TEXTS: Final = frozenset(
    ("BINLANE_DEPENDENCY", "BINLANE_TABLE_SCOPE_TRIGGER", "BINLANE_LOAD_DATA")
)
"""Refusals of texts where a binlog could have the rows instead."""


def _verdicts(
    state: SessionState,
    statement: SessionStatement,
    known: Decided,
    names: Iterable[str],
    *,
    are_rows: bool = False,
) -> dict[str, Verdict]:
    """Return each binlog's verdict: decided once for all binlogs that are in the same state."""
    settings = state.variables.settings
    decided: dict[tuple[object, ...], Verdict] = {}
    verdicts: dict[str, Verdict] = {}
    temporary = _temporary_names(statement, known.resolved)
    is_sticky = not state.server.has(Fact.ROWS_OF_TEMPORARY_TABLES)
    is_taken = are_rows and state.logs_source
    locked_isolation = _locked_isolation(state, known.resolved)
    for name in names:
        binlog = state.binlogs[name]
        unlogged = temporary - binlog.held_temporary
        if state.safety is not None and state.temporary.names:
            unlogged |= state.safety.stopped_temporary(name)
        mode, delayed_mode = state.mode(name), state.delayed_mode(name)
        is_empty = binlog.transaction_cache.is_empty
        is_row_forced = (
            are_rows
            or name in state.execution.row_binlogs
            or (is_sticky and state.is_row_now(name))
        )
        key = (mode, delayed_mode, is_empty, is_row_forced, unlogged)
        verdict = decided.get(key)
        if verdict is None:
            verdict = decided[key] = known.verdict(
                Circumstances(
                    server=state.server,
                    logging_mode=mode,
                    delayed_mode=delayed_mode,
                    isolation=state.characteristics.isolation,
                    locked_isolation=locked_isolation,
                    is_in_transaction=state.is_in_transaction,
                    is_trx_cache_empty=is_empty,
                    is_direct=settings.is_direct,
                    is_row_forced=is_row_forced,
                    is_in_xa=state.transaction.xid is not None,
                    unlogged_temporary=unlogged,
                    has_locked_tables=state.locked_tables is not None,
                    autoinc_lock_mode=settings.autoinc_lock_mode,
                    gtid_consistency="OFF" if is_taken else settings.gtid_consistency,
                )
            )
        verdicts[name] = verdict
    return verdicts


def _note_temporary_tables(state: SessionState, resolved: ResolvedStatement) -> None:
    """Note the temporary tables whose rows a statement reads or changes."""
    for access in resolved.accesses:
        if access.table.is_temporary:
            change = TemporaryChange.ROWS if access.changes else TemporaryChange.NOTHING
            state.uses_temporary(access.table, change)


def _temporary_names(
    statement: SessionStatement, resolved: ResolvedStatement
) -> frozenset[TableName]:
    """The temporary tables that a statement opens, without the one that it makes."""
    effects = statement.facts.effects
    made = effects.writes if effects.kind is StatementKind.CREATE_TABLE_SELECT else ()
    names = [one.name for one in resolved.accesses if one.table.is_temporary]
    return frozenset(names).difference(made)


def give_notes(state: SessionState, decided: Decided, names: frozenset[str]) -> None:
    """Give the notes of a statement that is logged as its text, each once, in bit order."""
    note_unsafe(state, {name: decided.verdicts[name].unsafe for name in names})


def note_unsafe(state: SessionState, unsafe: Mapping[str, Iterable[ReasonFound]]) -> None:
    """Give the notes of unsafe statements that binlogs have as texts, each once, in bit order."""
    found: dict[reasons.Reason, tuple[ReasonFound, list[str]]] = {}
    for name, reasons_found in unsafe.items():
        if state.mode(name) is not LoggingMode.STATEMENT:
            continue
        for one in reasons_found:
            found.setdefault(one.reason, (one, []))[1].append(name)
    # Other warnings take room as well, but only the server knows of them.
    told_max = state.variables.number("max_error_count", default=_TOLD_MAX)
    if not state.variables.is_on("sql_notes", default=True):
        told_max = 0
    for reason in sorted(found, key=lambda reason: reason.position):
        one, binlogs = found[reason]
        state.execution.notes.append(
            Note(
                errno=1592,
                reason=reasons.symbol(reason),
                message=reasons.note(reason, state.server),
                binlogs=tuple(name for name in state.binlogs if name in binlogs),
                is_told=len(state.execution.notes) < told_max,
                why=Why(
                    what=one.what,
                    through=tuple(f"{step.kind} {step.name.plain}" for step in one.via),
                    offset=one.offset,
                    length=one.length,
                ),
            )
        )


# Statements that are logged as their text in every mode -------------------------------------------


def recorders_of(
    state: SessionState, statement: SessionStatement, *, commits: bool
) -> frozenset[str] | None:
    """Return the binlogs that log a statement; None if one refuses it, which `state` then knows.

    Args:
        state: The state of the session.
        statement: The statement to be logged.
        commits: The statement commits the open transaction first.
    """
    names = frozenset(state.each_logging())
    safety = state.safety
    if safety is None or not state.is_logging:
        return names
    changes = _changes_of(state, statement.facts, ResolvedStatement())
    is_in_transaction = state.is_in_transaction and not commits
    admitted = safety.admit(
        changes, modes=state.modes(), formats={}, is_in_transaction=is_in_transaction
    )
    if isinstance(admitted, Refusal):
        state.fail(admitted)
        return None
    if statement.succeeds:
        safety.executed(
            changes, admitted, state.held_temporary(), is_in_transaction=is_in_transaction
        )
    return (admitted | {SOURCE_LOG}) & names
