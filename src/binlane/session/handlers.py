"""Which function carries out which kind of statement, and those too small for a module."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from binlane.session import creates, ddl, drops, settings, transactions, xa
from binlane.session.dml import execute_rows
from binlane.session.failures import fail_as_stated
from binlane.session.state import Command, Handler, SessionState
from binlane.sql.effects import StatementKind
from binlane.sql.facts import Assignment, StatementFacts

_KEY_CACHE: Final = ("CACHE INDEX", "LOAD INDEX")
_ROWS: Final = (
    StatementKind.INSERT,
    StatementKind.REPLACE,
    StatementKind.UPDATE,
    StatementKind.DELETE,
    StatementKind.LOAD_DATA,
    StatementKind.SELECT,
    StatementKind.DO,
)


def handler_of(kind: StatementKind) -> Handler:
    """What carries out a kind of statement; programs are run by `programs.runner`."""
    return _HANDLERS.get(kind, _do_nothing)


def _look_or_use(state: SessionState, command: Command) -> None:
    verb = command.facts.verb
    if verb.startswith(_KEY_CACHE) and not state.server.is_mariadb:
        state.implicit_commit()
    if not command.succeeds:
        fail_as_stated(state, command)
    elif verb == "USE":
        state.database = command.facts.name


def _set(state: SessionState, command: Command) -> None:
    facts = command.facts
    assignments: tuple[Assignment, ...] | None = ()
    if command.succeeds:
        assignments = settings.checked(state, facts.assignments, command.environment)
    if assignments is None:
        return
    # What is said first is done first: a variable's old value is kept in the same SET.
    keeps_old = facts.assignments[:1] != () and _is_user_variable(facts.assignments[0])
    if not keeps_old:
        settings.carry_out(state, assignments)
    if facts.functions or facts.tables or facts.user_variables or _sets_user_variable(facts):
        execute_rows(state, command)
    elif not command.succeeds:
        fail_as_stated(state, command)
    if keeps_old and state.run.error is None:
        settings.carry_out(state, assignments)


def _sets_user_variable(facts: StatementFacts) -> bool:
    return any(_is_user_variable(one) for one in facts.assignments)


def _is_user_variable(assignment: Assignment) -> bool:
    return assignment.name.startswith("@") and not assignment.name.startswith("@@")


def _lock(state: SessionState, command: Command) -> None:
    """LOCK TABLES commits what is open; UNLOCK TABLES does if tables were locked."""
    if command.facts.verb.startswith("LOCK"):
        state.implicit_commit()
        state.has_locked_tables = command.succeeds
        state.locked_tables = tuple(
            use.name
            for use in command.facts.tables
            if command.succeeds and use.lock.upper().endswith("WRITE")
        )
    elif command.facts.verb.startswith("UNLOCK"):
        if state.has_locked_tables:
            state.implicit_commit()
        state.has_locked_tables = False
        state.locked_tables = ()
    if not command.succeeds:
        fail_as_stated(state, command)


def _do_nothing(state: SessionState, command: Command) -> None:
    """What changes nothing that is logged."""
    if not command.succeeds:
        fail_as_stated(state, command)


_HANDLERS: Final[Mapping[StatementKind, Handler]] = MappingProxyType(
    {
        **dict.fromkeys(_ROWS, execute_rows),
        **dict.fromkeys(ddl.KINDS, ddl.execute_ddl),
        **dict.fromkeys(creates.KINDS, creates.execute_create),
        **dict.fromkeys(drops.KINDS, drops.execute_drop),
        StatementKind.SET: _set,
        StatementKind.BEGIN: transactions.begin,
        StatementKind.COMMIT: transactions.commit,
        StatementKind.ROLLBACK: transactions.roll_back,
        StatementKind.SAVEPOINT: transactions.set_savepoint,
        StatementKind.ROLLBACK_TO: transactions.roll_back_to,
        StatementKind.RELEASE_SAVEPOINT: transactions.release_savepoint,
        StatementKind.XA: xa.execute_xa,
        StatementKind.LOCK: _lock,
        StatementKind.SESSION: _look_or_use,
    }
)
