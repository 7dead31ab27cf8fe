"""Decide for each binlog how a statement is logged, and refuse it for all if one cannot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from binlane.policy import reasons
from binlane.policy.access import ResolvedStatement
from binlane.policy.procedure import Circumstances, Verdict
from binlane.policy.reasons_found import ReasonFound
from binlane.policy.resolution import Opening
from binlane.scope.changes import Changes
from binlane.session.plans import Plan, plan_of
from binlane.session.report import Note, Why
from binlane.session.safety import ScopeSafety
from binlane.session.state import Command, SessionState
from binlane.sql.effects import StatementKind
from binlane.sql.facts import Shift
from binlane.sql.logging_mode import LoggingFormat, LoggingMode
from binlane.sql.schema import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A statement that may run.

    Attributes:
        resolved: Its tables.
        plan: What is known of all statements of its shape.
        shift: How its places differ from those of the plan; None: not at all.
        verdicts: Of the binlogs that log it, by name.
        changes: What it does to scopes; None where no binlogs are defined.
    """

    resolved: ResolvedStatement
    plan: Plan
    shift: Shift | None = None
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    changes: Changes | None = None

    def verdict(self, circumstances: Circumstances) -> Verdict:
        """How it is logged in some circumstances."""
        found = self.plan.verdict(circumstances)
        return found if self.shift is None else found.moved(self.shift)

    @property
    def formats(self) -> dict[str, LoggingFormat]:
        """The statement's logging format by binlog."""
        return {
            name: verdict.logging_format or LoggingFormat.STATEMENT
            for name, verdict in self.verdicts.items()
        }

    def is_filtered(self, name: str) -> bool:
        """Whether a binlog logs nothing of it, because it writes only what is not replicated."""
        return self.verdicts[name].is_filtered


def decide(state: SessionState, command: Command, created: Table | None = None) -> Decided | None:
    """Decide a statement in all binlogs; None if it is refused, which `state` then knows.

    Args:
        state: The session.
        command: The statement.
        created: The table that CREATE … SELECT is about to make.
    """
    plan = plan_of(
        command.facts,
        state.objects,
        server=state.server,
        database=command.database,
        opening=Opening(
            created=created,
            assume_engine=state.assume_engine,
            checks_foreign_keys=state.variables.checks_foreign_keys,
        ),
    )
    shift = command.facts.shift
    resolved = plan.resolved if shift is None else plan.resolved.moved(shift)
    if resolved.errors:
        state.refuse(resolved.errors[0])
        return None
    if resolved.notes:
        state.programs.effort.unfollowed = resolved.notes[0]
        return None
    if command.remembered or (resolved.is_delayed and command.is_in_body):
        is_delayed = resolved.is_delayed and not command.is_in_body
        reasons_ = (*resolved.reasons, *command.remembered)
        resolved = replace(resolved, is_delayed=is_delayed, reasons=reasons_)
        plan, shift = Plan(command.facts, resolved, state.objects), None
    decided = _decide_resolved(state, command, Decided(resolved=resolved, plan=plan, shift=shift))
    if decided is not None:
        _remember(command, decided)
    return decided


def _remember(command: Command, decided: Decided) -> None:
    known = {found.reason for found in command.remembered}
    for verdict in decided.verdicts.values():
        command.remembered.extend(one for one in verdict.unsafe if one.reason not in known)
        known.update(one.reason for one in verdict.unsafe)


def _decide_resolved(state: SessionState, command: Command, known: Decided) -> Decided | None:
    safety = state.safety if state.is_logging else None
    changes = None
    candidates = frozenset(state.each_logging())
    if safety is not None:
        changes = _changes(state, safety, known.plan)
        candidates &= safety.candidates(changes)
    verdicts = {
        name: known.verdict(circumstances(state, name, command, known.resolved))
        for name in state.each_logging()
        if name in candidates
    }
    for name, verdict in verdicts.items():
        state.run.steps.setdefault(name, []).extend(verdict.steps)
        state.run.unsafe.setdefault(name, []).extend(
            reasons.symbol(found.reason) for found in verdict.unsafe
        )
    for verdict in verdicts.values():
        if verdict.errors:
            first = verdict.errors[0]
            refusing = tuple(
                name
                for name, other in verdicts.items()
                if other.errors and other.errors[0].errno == first.errno
            )
            state.refuse(first, refusing)
            return None
    decided = Decided(
        resolved=known.resolved,
        plan=known.plan,
        shift=known.shift,
        verdicts=verdicts,
        changes=changes,
    )
    return decided if changes is None else _decide_safety(state, command, decided, changes)


def _changes(state: SessionState, safety: ScopeSafety, plan: Plan) -> Changes:
    """What statements of a plan change and need."""
    found = plan.changes.get(state.is_in_procedure)
    if found is None:
        found = plan.changes[state.is_in_procedure] = safety.changes(
            plan.facts, plan.resolved, state.objects, is_in_procedure=state.is_in_procedure
        )
    return found


def _decide_safety(
    state: SessionState, command: Command, decided: Decided, changes: Changes
) -> Decided | None:
    safety = state.safety
    assert safety is not None
    modes = {name: state.mode(name) for name in state.binlogs}
    formats = decided.formats
    is_in_transaction = state.is_in_transaction
    refusal = safety.check(
        changes, modes=modes, formats=formats, is_in_transaction=is_in_transaction
    )
    if refusal is not None and decided.shift is not None:
        # Say where it stands in this statement, not in the first one of its shape.
        changes = safety.changes(
            command.facts,
            decided.resolved,
            state.objects,
            is_in_procedure=state.is_in_procedure,
        )
        refusal = safety.check(
            changes, modes=modes, formats=formats, is_in_transaction=is_in_transaction
        )
    if refusal is not None:
        state.fail(refusal)
        return None
    recorders = safety.recorders(changes, modes=modes, formats=formats)
    verdicts = {name: one for name, one in decided.verdicts.items() if name in recorders}
    return replace(decided, verdicts=verdicts)


def circumstances(
    state: SessionState, name: str, command: Command, resolved: ResolvedStatement
) -> Circumstances:
    """The session as the decision for one binlog sees it."""
    binlog = state.binlogs[name]
    made = command.facts.effects.kind is StatementKind.CREATE_TABLE_SELECT
    unlogged: set[object] = {
        access.name
        for access in resolved.accesses
        if access.table.is_temporary
        and access.name not in binlog.held_temporary
        and not (made and access.name in command.facts.effects.writes)
    }
    if state.safety is not None:
        unlogged |= state.safety.stopped_temporary(name)
    settings = state.variables.settings
    return Circumstances(
        server=state.server,
        logging_mode=state.mode(name),
        delayed_mode=state.delayed_mode(name),
        isolation=state.current_isolation,
        is_in_transaction=state.is_in_transaction,
        is_trx_cache_empty=binlog.transaction_cache.is_empty,
        is_direct=settings.is_direct,
        is_row_forced=name in state.program_rows
        or (state.server.is_mariadb and state.is_row_now(name)),
        is_in_xa=state.xid is not None,
        unlogged_temporary=frozenset(unlogged),
        has_locked_tables=state.has_locked_tables,
        autoinc_lock_mode=settings.autoinc_lock_mode,
        gtid_consistency=settings.gtid_consistency,
    )


def give_notes(state: SessionState, decided: Decided, names: frozenset[str]) -> None:
    """Give the notes of a statement that is logged as its text, each once, in bit order."""
    found: dict[reasons.Reason, tuple[ReasonFound, list[str]]] = {}
    for name in names:
        if state.mode(name) is not LoggingMode.STATEMENT:
            continue
        for one in decided.verdicts[name].unsafe:
            found.setdefault(one.reason, (one, []))[1].append(name)
    for reason in sorted(found, key=lambda reason: reason.position):
        one, binlogs = found[reason]
        state.run.notes.append(
            Note(
                errno=1592,
                reason=reasons.symbol(reason),
                message=reasons.note(reason, state.server),
                binlogs=tuple(name for name in state.binlogs if name in binlogs),
                why=Why(
                    what=one.what,
                    through=tuple(f"{step.kind} {step.name.plain}" for step in one.via),
                    offset=one.offset,
                    length=one.length,
                ),
            )
        )
