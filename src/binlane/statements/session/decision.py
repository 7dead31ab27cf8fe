"""Decide for each binlog how a statement is logged, and refuse it for all if one cannot.

Errors that a statement meets when its tables are opened come first.

The tables that a statement opens depend on its text, the objects and the server; its logging depends on those
and on the session. Both are found once, and kept for all statements of one shape as long as none of these
changes.

Source: sql_base.cc `open_table`, of MariaDB 10.11 and MySQL 9.7.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from binlane.names import TableName
from binlane.statements.policy import reasons
from binlane.statements.policy.procedure import Verdict, decide_statement
from binlane.statements.policy.reasons import ReasonFound
from binlane.statements.policy.refusals import (
    NONTRANSACTIONAL_AND_GTID,
    Outcome,
    Refusal,
    Why,
    refusal,
    unsafe_default_is_added,
)
from binlane.statements.policy.resolution import Opening, ResolvedStatement, resolve
from binlane.statements.policy.server import Circumstances, Isolation
from binlane.statements.policy.unsafe_defaults import added_unsafe_defaults, has_random_default
from binlane.statements.programs.environment import RoutineEnvironment
from binlane.statements.programs.interpreter import is_straight
from binlane.statements.programs.trace import Trace
from binlane.statements.scope.changes import Changes
from binlane.statements.session.log_events import SOURCE_LOG
from binlane.statements.session.report import Note
from binlane.statements.session.safety import changes_of
from binlane.statements.session.state import (
    LockedTables,
    SessionState,
    SessionStatement,
    TemporaryChange,
)
from binlane.statements.session.transactions import begins_transaction
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.facts import Shift, StatementFacts
from binlane.statements.sql.schema import Table
from binlane.statements.sql.servers import Fact, LoggingFormat, LoggingMode
from binlane.statements.sql.statement_kinds import (
    DDL_KINDS,
    TABLE_DROPPING_KINDS,
    TABLE_MAKING_KINDS,
    StatementKind,
)
from binlane.statements.sql.tree.definitions import AlterTable
from binlane.statements.sql.tree.expressions import Node

PLANS_MAX: Final = 4_096
"""Plans that are kept."""
VERDICTS_MAX: Final = 64
"""Verdicts that a plan keeps."""


class Plan:
    """A statement's shape with its tables; places are those in the facts of the shape.

    Attributes:
        facts: Facts of the text with which the plan was made.
        resolved: The tables of the statement, with its accesses.
        is_alone: No trigger, stored function or user variable takes part in the statement.
        traces: Effects on rows, by outcome; kept only where the statement is alone, when the values in it
            cannot matter.
        changes: Changes and needs of the statement, by True if it stands in a procedure.
        may_branch: The statement's triggers and functions may go on in more than one way.
        can_depend: Values of the session may have to be logged before the text; None: not found out yet.
        may_recur: Statements of the shape do the same in the same state; None: not found out yet.
        random_tables: Opened tables with a DEFAULT that calls RAND(), each as often as it is opened.
    """

    __slots__ = (
        *("_verdicts", "can_depend", "changes", "facts", "is_alone", "may_branch", "may_recur"),
        *("unknown_column", "random_tables", "resolved", "traces"),
    )

    def __init__(
        self, facts: StatementFacts, resolved: ResolvedStatement, objects: SchemaCatalog
    ) -> None:
        self.facts = facts
        self.resolved = resolved
        self.is_alone = _is_alone(facts, resolved, objects)
        self.may_branch = bool(resolved.functions) or any(
            not is_straight(trigger.body, trigger.dialect)
            for access in resolved.accesses
            if access.changes
            for trigger in objects.triggers(access.name)
        )
        self.may_branch |= _writes_what_it_reads(resolved)
        self.traces: dict[Outcome, Trace] = {}
        self.changes: dict[bool, Changes] = {}
        self.can_depend: bool | None = None
        self.may_recur: bool | None = None
        self.random_tables = tuple(
            access.name
            for access in resolved.accesses
            if not access.table.is_temporary and has_random_default(access.table)
        )
        self._verdicts: dict[Circumstances, Verdict] = {}

    def verdict(self, circumstances: Circumstances) -> Verdict:
        """Return the decision for some circumstances."""
        found = self._verdicts.get(circumstances)
        if found is None:
            if len(self._verdicts) >= VERDICTS_MAX:
                self._verdicts.clear()
            found = decide_statement(self.resolved, circumstances)
            self._verdicts[circumstances] = found
        return found


def _writes_what_it_reads(resolved: ResolvedStatement) -> bool:
    """True if triggers may write a table that the statement itself has open, which fails on a row."""
    own = {access.name for access in resolved.accesses if not access.is_prelocked}
    return any(
        access.is_prelocked and access.changes and access.name in own
        for access in resolved.accesses
    )


def plan_of(facts: StatementFacts, opening: Opening) -> Plan:
    """The plan of a statement: see `resolve`."""
    shape = facts.shape
    if shape is None or opening.created is not None:
        return _plan(facts, opening)
    server = opening.server
    key = (
        *(shape, opening.objects.version, server.flavor, server.version, opening.database),
        *(opening.assume_engine, opening.checks_foreign_keys),
    )
    found = _plans.get(key)
    if found is None:
        if len(_plans) >= PLANS_MAX:
            _plans.clear()
        missed = len(opening.objects.missed)
        found = _plan(shape.facts, opening)
        # A missing object may be read later, without a change of the existing ones.
        if not found.resolved.errors and len(opening.objects.missed) == missed:
            _plans[key] = found
    return found


def forget(plan: Plan) -> None:
    """Remove a plan, which is then made anew when a statement needs it."""
    for key in [key for key, known in _plans.items() if known is plan]:
        del _plans[key]


def _plan(facts: StatementFacts, opening: Opening) -> Plan:
    resolved = resolve(facts, opening)
    return Plan(facts, resolved, opening.objects)


def _is_alone(facts: StatementFacts, resolved: ResolvedStatement, objects: SchemaCatalog) -> bool:
    return not (
        facts.user_variables
        or facts.has_into
        or resolved.functions
        or any(access.changes and objects.triggers(access.name) for access in resolved.accesses)
    )


_plans: Final[dict[tuple[object, ...], Plan]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A statement that may run.

    Attributes:
        resolved: The tables of this statement.
        plan: The plan of all statements of the same shape.
        shift: Differences between the places in this text and those of the plan; None: no difference.
        verdicts: Verdicts of the binlogs that log the statement, by name.
        changes: The statement's changes in scopes; None where no binlogs are defined.
        takes_seeds: The statement gets a table ready whose DEFAULT takes the session's seeds of RAND().
    """

    resolved: ResolvedStatement
    plan: Plan
    shift: Shift | None = None
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    changes: Changes | None = None
    takes_seeds: bool = False

    def verdict(self, circumstances: Circumstances) -> Verdict:
        """Return the decision for some circumstances, with places of this text."""
        found = self.plan.verdict(circumstances)
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
    plan = plan_of(statement.facts, state.opening(statement.database, created))
    shift = statement.facts.shift
    resolved = plan.resolved if shift is None else plan.resolved.moved(shift)
    lost = next(
        (name for name, _ in resolved.unknown_tables if state.objects.is_unknown(name)), None
    )
    if lost is not None:
        state.programs.effort.unfollowed = f"what was made of {lost.plain} was not analysed"
        return None
    refusal = refusal_beyond_locks(state, statement.facts, resolved)
    if refusal is not None:
        state.fail(refusal)
        return None
    failure = next(iter(resolved.errors), None) or state.host.errors.denied_inside(
        statement.facts, state.opening(statement.database), state.identity
    )
    if failure is not None:
        _fail_behind_locks(state, statement, resolved, failure)
        return None
    # MySQL looks up columns before it decides, MariaDB behind that.
    refusal = _unknown_column(state, statement)
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
        plan, shift = Plan(statement.facts, resolved, state.objects), None
    takes_seeds = bool(plan.random_tables) and state.get_ready(plan.random_tables)
    decided = _decide_resolved(
        state,
        statement,
        Decided(resolved=resolved, plan=plan, shift=shift, takes_seeds=takes_seeds),
    )
    if decided is not None and refusal is not None:
        _fail_behind_locks(state, statement, resolved, refusal)
        return None
    if decided is not None:
        _remember(state, statement, decided)
    return decided


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
        remembered.reasons.extend(one for one in verdict.unsafe if one.reason not in known)
        known.update(one.reason for one in verdict.unsafe)
    if remembered.reasons:
        remembered.tables = _table_changes(state, decided.resolved)


def _decide_resolved(
    state: SessionState, statement: SessionStatement, known: Decided
) -> Decided | None:
    safety = state.safety if state.is_logging else None
    changes = None
    candidates = frozenset(state.each_logging())
    if safety is not None:
        # Changes and needs of statements of a plan, by True if they stand in a procedure.
        of_plan, is_in_procedure = known.plan.changes, state.execution.is_in_procedure
        changes = of_plan.get(is_in_procedure)
        if changes is None:
            changes = _changes_of(state, known.plan.facts, known.plan.resolved)
            of_plan[is_in_procedure] = changes
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
            reasons.symbol(found.reason) for found in verdict.unsafe
        )
    if _refuse(state, verdicts):
        return None
    decided = Decided(
        resolved=known.resolved,
        plan=known.plan,
        shift=known.shift,
        takes_seeds=known.takes_seeds,
        verdicts=verdicts,
        changes=changes,
    )
    return decided if changes is None else _decide_safety(state, statement, decided, changes)


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
    for name, verdict in verdicts.items():
        state.execution.steps.setdefault(name, []).extend(verdict.steps)
    return replace(decided, verdicts={**decided.verdicts, **verdicts})


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
    return frozenset(
        access.name
        for access in resolved.accesses
        if access.table.is_temporary and access.name not in made
    )


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


# Errors met when tables are opened ----------------------------------------------------------------


_TOLD_MAX: Final = 64
_LOCKED_FOR_READ: Final = 1099
_NOT_LOCKED: Final = 1100
_READ_LOCKED: Final = 1223
_READ_LOCKS: Final = frozenset(("WITH READ LOCK", "FOR EXPORT"))
_UNDER_READ_LOCK: Final = frozenset((StatementKind.MAINTENANCE, StatementKind.FLUSH))
_BEHIND_LOCKS: Final = frozenset((1052, 1054, 1110, 1136, 1305))
_BEFORE_OPENING: Final = frozenset((1066, 1327, 1747))
"""Errors in aliases, partitions and variables: no table is locked yet."""
_BEFORE_LOCKING: Final = _BEFORE_OPENING | {1222, 1241}
"""The same of MySQL, which prepares a statement before it locks its tables."""
_OF_THE_TEXT: Final = frozenset((1052, 1054, 1093, 1110, 1136, 1288, 1348, 1394, 1443, 1471))
"""Errors in columns and targets, which are known before the statement runs."""


def is_not_locked(state: SessionState, statement: SessionStatement) -> bool:
    """Fail a statement that LOCK TABLES keeps from a table; it then comes to nothing else.

    Tables that LOCK TABLES did not name are not looked for: these may be missing, too.
    """
    if statement.outcome.error in (_LOCKED_FOR_READ, _NOT_LOCKED):
        state.fail_as_stated(statement)
        return True
    if state.locked_tables is None:
        return False
    for use in statement.facts.tables:
        name = use.name
        is_known = (
            state.assume_engine is not None
            or state.objects.table(name) is not None
            or state.objects.view(name) is not None
            or state.objects.is_unknown(name)
        )
        if not is_known and state.objects.has_database(name.database):
            state.fail(refusal(_NOT_LOCKED, use.alias))
            return True
    return False


def refusal_beyond_locks(
    state: SessionState, facts: StatementFacts, resolved: ResolvedStatement
) -> Refusal | None:
    """Return the error of a statement that opens tables beyond the locks, their kind or their number.

    Tables that foreign keys lead to are locked with their own tables, except under a lock for reading.
    """
    locked = state.locked_tables
    if state.is_read_locked and any(
        access.is_locked_for_write and not access.table.is_temporary for access in resolved.accesses
    ):
        return refusal(_READ_LOCKED)
    if locked is None:
        return None
    views = [use for use in facts.tables if state.objects.view(use.name) is not None]
    opened = [(use.name, use.alias, bool(use.changes)) for use in views]
    made: TableName | None = None
    if facts.effects.kind is StatementKind.CREATE_TABLE_SELECT and not facts.effects.is_temporary:
        # MySQL takes a READ lock for one that is there.
        made = facts.effects.writes[0]
        opened.append((made, made.table, state.server.is_mariadb))
    opened += [
        (access.name, access.alias, access.is_locked_for_write)
        for access in resolved.accesses
        if not (access.table.is_temporary or access.is_foreign_key)
        and not (access.changes and access.name == made)
    ]
    opened += [(name, name.table, True) for name in resolved.absent]
    led_to = [
        access.name
        for access in resolved.accesses
        if access.is_foreign_key and not access.table.is_temporary
    ]
    error = locked.refusal(opened, led_to)
    if state.server.is_mariadb and error is not None:
        # MariaDB opens all children of a table locked for reading, whatever would happen to their rows.
        written = (one for one in resolved.accesses if one.changes and not one.is_prelocked)
        led_to += [key.table for one in written for key in state.objects.children(one.name)]
        return locked.refusal(opened, led_to)
    return error


_CREATES_TABLES: Final = frozenset(
    (
        *(StatementKind.CREATE_TABLE, StatementKind.CREATE_TABLE_LIKE),
        StatementKind.CREATE_SEQUENCE,
    )
)
_NEEDS_LOCKS: Final = _CREATES_TABLES | {
    *(StatementKind.ALTER_TABLE, StatementKind.DROP_TABLE, StatementKind.TRUNCATE_TABLE),
    *(StatementKind.CREATE_INDEX, StatementKind.DROP_INDEX, StatementKind.CREATE_TRIGGER),
    *(StatementKind.RENAME_TABLE, StatementKind.DROP_SEQUENCE, StatementKind.ALTER_SEQUENCE),
}
_NOT_UNDER_LOCKS: Final = frozenset(
    (
        *(StatementKind.CREATE_VIEW, StatementKind.ALTER_VIEW, StatementKind.DROP_VIEW),
        *(StatementKind.CREATE_ROUTINE, StatementKind.ALTER_ROUTINE, StatementKind.DROP_ROUTINE),
        *(StatementKind.CREATE_DATABASE, StatementKind.ALTER_DATABASE),
        *(StatementKind.DROP_DATABASE, StatementKind.HANDLER),
        *(StatementKind.CREATE_EVENT, StatementKind.ALTER_EVENT, StatementKind.DROP_EVENT),
    )
)
_USERS: Final = TableName("mysql", "user")
_LOOKING: Final = frozenset(("ANALYZE", "CHECK", "OPTIMIZE", "REPAIR"))


def fails_under_locks(state: SessionState, statement: SessionStatement) -> bool:
    """Fail a statement about objects that LOCK TABLES does not allow; the transaction is committed.

    Source: measured on MariaDB 10.11.19 and 11.8.6 and MySQL 9.7.4.
    """
    locked = state.locked_tables
    if locked is not None:
        # MySQL's error for an unsafe DEFAULT comes first.
        is_unsafe = unsafe_default_added(state, statement.facts) is not None
        error = None if is_unsafe else _refusal_under_locks(state, statement, locked)
    elif state.is_read_locked:
        error = _refusal_under_read_lock(statement)
    else:
        return False
    if error is None:
        return False
    if not (statement.facts.effects.is_temporary or begins_transaction(statement.facts)):
        state.implicit_commit()
    state.fail(error)
    return True


def unsafe_default_added(state: SessionState, facts: StatementFacts) -> Refusal | None:
    """Return 1674 for MySQL's ALTER TABLE that gives an unsafe DEFAULT, whatever its table is; else None.

    MySQL logs no ALTER TABLE as rows.
    """
    if facts.effects.kind is not StatementKind.ALTER_TABLE or state.server.is_mariadb:
        return None
    if {state.mode(name) for name in state.each_logging()} <= {LoggingMode.STATEMENT}:
        return None
    found = next(added_unsafe_defaults(facts, state.server), None)
    return None if found is None else unsafe_default_is_added(found, state.server)


def _refusal_under_locks(
    state: SessionState, statement: SessionStatement, locked: LockedTables
) -> Refusal | None:
    facts, effects = statement.facts, statement.facts.effects
    is_rename = effects.kind is StatementKind.RENAME_TABLE and state.server.is_mariadb
    if effects.kind in _NOT_UNDER_LOCKS or is_rename:
        return refusal(1192)
    if effects.kind is StatementKind.ACCOUNT or facts.verb == "FLUSH PRIVILEGES":
        return locked.refusal([(_USERS, _USERS.table, True)])
    if effects.kind is StatementKind.FLUSH and facts.verb == "FLUSH TABLES":
        if not _READ_LOCKS.isdisjoint(facts.options):
            return refusal(1192)
        names = effects.writes or [name for name, _, is_written in locked.locks if not is_written]
        return locked.refusal((name, name.table, True) for name in names)
    if effects.kind is StatementKind.DROP_TRIGGER:
        found = map(state.objects.trigger, effects.objects)
        return locked.refusal((one.table, one.table.table, True) for one in found if one)
    if effects.kind not in _NEEDS_LOCKS or _looks_at_partitions(facts.tree):
        return None
    changed = tuple(_changed_under_locks(state, statement))
    if state.server.is_mariadb and (error := _refused_in_order(locked, changed)) is not None:
        return error
    return locked.refusal(changed)


def _refused_in_order(
    locked: LockedTables, changed: Iterable[tuple[TableName, str, bool]]
) -> Refusal | None:
    """Return MariaDB's error for tables that DDL changes, which it looks for one behind the other."""
    held = {lock[0] for lock in locked.locks} | locked.implied
    for name, alias, is_written in changed:
        if name not in held:
            return refusal(_NOT_LOCKED, alias)
        if is_written and name in locked.implied:
            return refusal(_LOCKED_FOR_READ, name.table)
    return None


def _refusal_under_read_lock(statement: SessionStatement) -> Refusal | None:
    """Return the error with which a definition fails under FLUSH TABLES WITH READ LOCK."""
    effects = statement.facts.effects
    kind = effects.kind
    is_definition = kind in DDL_KINDS | TABLE_MAKING_KINDS | TABLE_DROPPING_KINDS
    if not is_definition or effects.is_temporary or kind in _UNDER_READ_LOCK:
        return None
    return refusal(_READ_LOCKED)


def _changed_under_locks(
    state: SessionState, statement: SessionStatement
) -> Iterator[tuple[TableName, str, bool]]:
    """Give the tables that DDL changes, and reads for CREATE … LIKE, with the locks that it needs."""
    effects = statement.facts.effects
    makes = effects.kind in _CREATES_TABLES
    if not effects.is_temporary:
        names = (*effects.writes, *effects.drops)
        if effects.renames:
            made: set[TableName] = set()
            names = ()
            for old, new in effects.renames:
                names += () if old in made else (old,)
                made.add(new)
        for name in dict.fromkeys(names):
            table = state.objects.table(name)
            if makes or table is None or not table.is_temporary:
                yield name, name.table, True
    for name in effects.reads:
        table = state.objects.table(name)
        if makes and (table is None or not table.is_temporary):
            yield name, name.table, False


def _looks_at_partitions(tree: Node) -> bool:
    """True if the statement is an ALTER TABLE that answers with a table of its actions, errors included."""
    return isinstance(tree, AlterTable) and any(
        action.kind == "PARTITION" and not _LOOKING.isdisjoint(action.words)
        for action in tree.actions
    )


def fails_before_locking(
    state: SessionState, statement: SessionStatement, resolved: ResolvedStatement
) -> bool:
    """True if the script states an error with which a server locks none of the statement's tables."""
    errors = _BEFORE_OPENING if state.server.is_mariadb else _BEFORE_LOCKING
    return statement.outcome.error in errors and not _has_bodies(resolved)


def _has_bodies(resolved: ResolvedStatement) -> bool:
    return any(access.is_prelocked for access in resolved.accesses)


def fails_at_once(statement: SessionStatement, resolved: ResolvedStatement) -> bool:
    """True if the script states an error of the text, and no body that could be meant has tables."""
    return statement.outcome.error in _OF_THE_TEXT and not _has_bodies(resolved)
