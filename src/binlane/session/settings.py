"""SET, SET TRANSACTION and SET STATEMENT … FOR, and what they do to a transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from binlane.session.state import SessionState, SessionStatement
from binlane.session.transactions import refuse_in_xa
from binlane.session.variable_values import with_value
from binlane.session.variables import (
    Situation,
    Variables,
    isolation_level,
    misspelt,
    plain,
    refusal,
)
from binlane.sql.facts import Assignment, VariableScope

_GLOBAL = frozenset((VariableScope.GLOBAL, VariableScope.PERSIST))
_ISOLATION_NAMES = frozenset(("tx_isolation", "transaction_isolation"))
_LEVEL = "transaction isolation level"


def checked(
    state: SessionState, statement: SessionStatement, assignments: Iterable[Assignment]
) -> tuple[Assignment, ...] | None:
    """A statement's assignments with the values of their expressions; None if one is refused."""
    found = tuple(
        with_value(assignment, statement.facts, state.host, statement.environment)
        for assignment in assignments
    )
    for assignment in found:
        error = refusal(assignment, state.variables, situation(state))
        if error is None and statement.environment is None:
            error = misspelt(assignment.name)
        if error is not None:
            state.refuse(error)
            return None
        if state.transaction.xa_phase is not None and _turns_autocommit_on(state, assignment):
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
        is_transaction_active=state.transaction.is_active,
        has_temporary_tables=bool(state.objects.temporary_tables()),
        is_row_now=any(state.is_row_now(name) for name in state.binlogs),
        may_switch_with_temporary=state.safety is not None,
    )


def _assign(state: SessionState, assignment: Assignment) -> None:
    if assignment.name.startswith("@"):
        return
    if assignment.name == _LEVEL and assignment.scope is VariableScope.UNSAID:
        state.transaction.next_isolation = isolation_level(assignment.value)
        return
    was_autocommit = state.variables.is_autocommit
    state.variables.assign(assignment)
    if assignment.scope in _GLOBAL:
        return
    if assignment.name in CONNECTION_NAMES:
        state.variables.connection = connection_after(state, assignment)
    if assignment.name == "autocommit" and was_autocommit != state.variables.is_autocommit:
        _switch_autocommit(state)
    if (
        assignment.name in _ISOLATION_NAMES or assignment.name == _LEVEL
    ) and not state.transaction.is_active:
        state.reset_isolation()
    if assignment.name == "binlog_format" and state.safety is not None:
        state.safety.mode_changed({name: state.mode(name) for name in state.binlogs})


def _switch_autocommit(state: SessionState) -> None:
    """SET autocommit=1 commits what was done without; =0 keeps an open BEGIN."""
    if state.variables.is_autocommit:
        state.commit()
    elif state.server.is_mariadb:
        # The server forgets it, too (sql/sys_vars.cc, fix_autocommit).
        state.transaction.changes.changed_nontransactional = False


@contextmanager
def statement_settings(state: SessionState, statement: SessionStatement) -> Iterator[bool]:
    """SET STATEMENT … FOR: its assignments hold while the statement runs; False if refused."""
    assignments = statement.facts.statement_assignments
    if not assignments:
        yield True
        return
    saved = state.variables.copy()
    found = checked(state, statement, assignments)
    if found is None:
        yield False
        return
    carry_out(state, found)
    yield True
    _take_back(state, assignments, saved)


def _take_back(state: SessionState, assignments: Iterable[Assignment], saved: Variables) -> None:
    """Take assignments back as SET would: what a transaction forbids all stay."""
    now = situation(state)
    for assignment in assignments:
        value = saved.logging_mode.value if assignment.name == "binlog_format" else assignment.value
        if refusal(replace(assignment, value=value), state.variables, now) is not None:
            return
    state.variables = saved


def names_charset(assignment: Assignment) -> bool:
    """Whether an assignment is SET NAMES or SET CHARACTER SET."""
    return assignment.name in ("names", "character set") and bool(plain(assignment.value))


# Character set and collation of literals ----------------------------------------------------------


CONNECTION_NAMES: Final = frozenset(
    ("names", "character set", "character_set_connection", "collation_connection")
)
_COLLATE: Final = " collate "


def connection_after(state: SessionState, assignment: Assignment) -> tuple[str, str]:
    """Character set and collation behind an assignment of one of `CONNECTION_NAMES`."""
    server_charset = state.server.default("character_set_server")
    value = assignment.value.strip().lower()
    charset, _, collation = (
        part.strip("'\"` ") for part in value.replace("\n", " ").partition(_COLLATE)
    )
    if charset == "default":
        charset = server_charset
    elif assignment.name == "character set":
        charset = state.objects.charset_of_database(state.database) or server_charset
    elif assignment.name == "collation_connection":
        charset, collation = charset.partition("_")[0], charset
    if charset == "utf8":
        charset = "utf8mb3"
    if charset == "binary":
        return charset, "binary"
    return charset, collation or state.server.default_collation(charset)
