"""SET, SET TRANSACTION and SET STATEMENT … FOR, and what they do to a transaction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from binlane.session.connection import CONNECTION_NAMES, connection_after
from binlane.session.programs.expression_environment import Environment
from binlane.session.state import Command, SessionState
from binlane.session.transactions import refuse_in_xa
from binlane.session.variable_values import with_value
from binlane.session.variables import Situation, Variables, isolation_level, plain, refusal
from binlane.sql.facts import Assignment, VariableScope

_GLOBAL = frozenset((VariableScope.GLOBAL, VariableScope.PERSIST))
_ISOLATION_NAMES = frozenset(("tx_isolation", "transaction_isolation"))
_LEVEL = "transaction isolation level"


def assign_all(
    state: SessionState, assignments: Iterable[Assignment], environment: Environment | None = None
) -> bool:
    """Carry out the assignments of a SET; False if one is refused, and then none is.

    Args:
        state: The session.
        assignments: In their order.
        environment: What their expressions can refer to; None for the session itself.
    """
    found = checked(state, assignments, environment)
    if found is None:
        return False
    carry_out(state, found)
    return True


def checked(
    state: SessionState, assignments: Iterable[Assignment], environment: Environment | None = None
) -> tuple[Assignment, ...] | None:
    """The assignments with the values of their expressions; None if one is refused."""
    found = tuple(with_value(assignment, state.host, environment) for assignment in assignments)
    for assignment in found:
        error = refusal(assignment, state.variables, situation(state))
        if error is not None:
            state.refuse(error)
            return None
        if state.xa_phase is not None and _turns_autocommit_on(state, assignment):
            refuse_in_xa(state)
            return None
    return found


def _turns_autocommit_on(state: SessionState, assignment: Assignment) -> bool:
    """Whether an assignment would commit the transaction."""
    if assignment.name != "autocommit" or assignment.scope in _GLOBAL:
        return False
    after = state.variables.copy()
    after.assign(assignment)
    return after.is_autocommit and not state.variables.is_autocommit


def carry_out(state: SessionState, assignments: Iterable[Assignment]) -> None:
    """Carry out assignments to system variables that `checked` found right."""
    for assignment in assignments:
        _assign(state, assignment)


def situation(state: SessionState) -> Situation:
    """What of the session forbids a SET."""
    return Situation(
        is_transaction_active=state.is_active,
        has_temporary_tables=bool(state.objects.temporary_tables()),
        is_row_now=any(state.is_row_now(name) for name in state.binlogs),
        may_switch_with_temporary=state.safety is not None,
    )


def _assign(state: SessionState, assignment: Assignment) -> None:
    if assignment.name.startswith("@"):
        return
    if assignment.name == _LEVEL and assignment.scope is VariableScope.UNSAID:
        state.next_isolation = isolation_level(assignment.value)
        return
    was_autocommit = state.variables.is_autocommit
    state.variables.assign(assignment)
    if assignment.scope in _GLOBAL:
        return
    if assignment.name in CONNECTION_NAMES:
        state.variables.connection = connection_after(state, assignment)
    if assignment.name == "autocommit" and was_autocommit != state.variables.is_autocommit:
        _switch_autocommit(state)
    if (assignment.name in _ISOLATION_NAMES or assignment.name == _LEVEL) and not state.is_active:
        state.reset_isolation()
    if assignment.name == "binlog_format" and state.safety is not None:
        state.safety.mode_changed({name: state.mode(name) for name in state.binlogs})


def _switch_autocommit(state: SessionState) -> None:
    """SET autocommit=1 commits what was done without; =0 keeps an open BEGIN."""
    if state.variables.is_autocommit:
        state.commit()
    elif state.server.is_mariadb:
        # The server forgets it, too (sql/sys_vars.cc, fix_autocommit).
        state.transaction.changed_nontransactional = False


def with_statement_settings(state: SessionState, command: Command) -> bool:
    """Carry out SET STATEMENT's assignments; `restore` takes them back."""
    return assign_all(state, command.facts.statement_assignments, command.environment)


def restore(state: SessionState, command: Command, saved: Variables) -> None:
    """Take SET STATEMENT's assignments back as SET would: what a transaction forbids all stay."""
    now = situation(state)
    for assignment in command.facts.statement_assignments:
        value = saved.logging_mode.value if assignment.name == "binlog_format" else assignment.value
        if refusal(replace(assignment, value=value), state.variables, now) is not None:
            return
    state.variables = saved


def names_charset(assignment: Assignment) -> bool:
    """Whether an assignment is SET NAMES or SET CHARACTER SET."""
    return assignment.name in ("names", "character set") and bool(plain(assignment.value))
