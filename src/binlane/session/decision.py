"""Decide for each binlog how a statement is logged, and refuse it for all if one cannot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from binlane.names import TableName
from binlane.policy import reasons
from binlane.policy.access import ReasonFound, ResolvedStatement
from binlane.policy.procedure import Circumstances, Verdict, decide_statement
from binlane.policy.resolution import Opening, resolve
from binlane.scope.changes import Changes
from binlane.session.report import Note, Why
from binlane.session.state import Command, SessionState
from binlane.sql.effects import StatementKind
from binlane.sql.logging_mode import LoggingFormat, LoggingMode
from binlane.sql.schema import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A statement that may run.

    Attributes:
        resolved: Its tables.
        verdicts: Of the binlogs that log it, by name.
        changes: What it does to scopes; None where no binlogs are defined.
    """

    resolved: ResolvedStatement
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    changes: Changes | None = None

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
    resolved = resolve(
        command.facts,
        state.objects,
        server=state.server,
        database=command.database,
        opening=Opening(
            created=created,
            assume_engine=state.assume_engine,
            checks_foreign_keys=state.variables.is_on("foreign_key_checks", default=True),
        ),
    )
    if resolved.errors:
        state.refuse(resolved.errors[0])
        return None
    if command.remembered:
        resolved = replace(resolved, reasons=(*resolved.reasons, *command.remembered))
    decided = _decide_resolved(state, command, resolved)
    if decided is not None:
        _remember(command, decided)
    return decided


def _remember(command: Command, decided: Decided) -> None:
    known = {found.reason for found in command.remembered}
    for verdict in decided.verdicts.values():
        command.remembered.extend(one for one in verdict.unsafe if one.reason not in known)
        known.update(one.reason for one in verdict.unsafe)


def _decide_resolved(
    state: SessionState, command: Command, resolved: ResolvedStatement
) -> Decided | None:
    safety = state.safety if state.is_logging else None
    changes = None
    candidates = frozenset(state.each_logging())
    if safety is not None:
        changes = safety.changes(
            command.facts, resolved, state.objects, is_in_procedure=state.is_in_procedure
        )
        candidates &= safety.candidates(changes)
    verdicts = {
        name: decide_statement(resolved, circumstances(state, name, command, resolved))
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
    decided = Decided(resolved=resolved, verdicts=verdicts, changes=changes)
    return decided if changes is None else _decide_safety(state, decided, changes)


def _decide_safety(state: SessionState, decided: Decided, changes: Changes) -> Decided | None:
    safety = state.safety
    assert safety is not None
    modes = {name: state.mode(name) for name in state.binlogs}
    refusal = safety.check(
        changes,
        modes=modes,
        formats=decided.formats,
        is_in_transaction=state.is_in_transaction,
    )
    if refusal is not None:
        state.fail(refusal)
        return None
    recorders = safety.recorders(changes, modes=modes, formats=decided.formats)
    verdicts = {name: one for name, one in decided.verdicts.items() if name in recorders}
    return Decided(resolved=decided.resolved, verdicts=verdicts, changes=changes)


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
    return Circumstances(
        server=state.server,
        logging_mode=_mode(state, name, command),
        isolation=state.current_isolation,
        is_in_transaction=state.is_in_transaction,
        is_trx_cache_empty=binlog.transaction_cache.is_empty,
        is_direct=state.variables.is_direct,
        is_row_forced=name in state.program_rows
        or (state.server.is_mariadb and state.is_row_now(name)),
        is_in_xa=state.xid is not None,
        unlogged_temporary=frozenset(unlogged),
        has_locked_tables=state.has_locked_tables,
        autoinc_lock_mode=state.variables.number(
            "innodb_autoinc_lock_mode", default=1 if state.server.is_mariadb else 2
        ),
        gtid_consistency=state.variables.text("enforce_gtid_consistency") or "OFF",
    )


def _mode(state: SessionState, name: str, command: Command) -> LoggingMode:
    """The binlog's mode; MariaDB's INSERT DELAYED is run by a thread with the server's."""
    if state.server.is_mariadb and command.facts.is_delayed:
        return state.variables.global_logging_mode
    return state.mode(name)


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


def is_open_temporary(state: SessionState, name: TableName) -> bool:
    """Whether a name is that of a temporary table of the session."""
    table = state.objects.table(name)
    return table is not None and table.is_temporary
