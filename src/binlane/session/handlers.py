"""Which function carries out which kind of statement, and those too small for a module."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from binlane.policy.engines import traits
from binlane.policy.refusals import nontransactional_and_gtid
from binlane.session import create_select, creates, ddl, drops, settings, transactions
from binlane.session.dml import execute_rows
from binlane.session.state import Handler, SessionState, SessionStatement
from binlane.sql.facts import Assignment, StatementFacts, StatementKind
from binlane.sql.schema import Table

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


def _look_or_use(state: SessionState, statement: SessionStatement) -> None:
    verb = statement.facts.verb
    if verb.startswith(_KEY_CACHE) and not state.server.is_mariadb:
        state.implicit_commit()
    if not statement.succeeds:
        state.fail_as_stated(statement)
    elif verb == "USE":
        state.database = statement.facts.name


def _set(state: SessionState, statement: SessionStatement) -> None:
    facts = statement.facts
    assignments: tuple[Assignment, ...] | None = ()
    if statement.succeeds:
        assignments = settings.checked(state, statement, facts.assignments)
    if assignments is None:
        return
    # What is said first is done first: a variable's old value is kept in the same SET.
    keeps_old = facts.assignments[:1] != () and _is_user_variable(facts.assignments[0])
    if not keeps_old:
        settings.carry_out(state, assignments)
    if facts.functions or facts.tables or facts.user_variables or _sets_user_variable(facts):
        execute_rows(state, statement)
    elif not statement.succeeds:
        state.fail_as_stated(statement)
    if keeps_old and state.execution.error is None:
        settings.carry_out(state, assignments)


def _sets_user_variable(facts: StatementFacts) -> bool:
    return any(_is_user_variable(one) for one in facts.assignments)


def _is_user_variable(assignment: Assignment) -> bool:
    return assignment.name.startswith("@") and not assignment.name.startswith("@@")


def _lock(state: SessionState, statement: SessionStatement) -> None:
    """LOCK TABLES commits what is open; UNLOCK TABLES does if tables were locked."""
    if statement.facts.verb.startswith("LOCK"):
        state.implicit_commit()
        state.locked_tables = None
        if statement.succeeds:
            opened = state.host.resolved(statement.facts, statement.database).accesses
            written = [one.table for one in opened if one.is_locked_for_write]
            if _mixes_engines(state, written):
                state.refuse(nontransactional_and_gtid())
            else:
                state.locked_tables = tuple(table.name for table in written)
    elif statement.facts.verb.startswith("UNLOCK"):
        if state.locked_tables is not None:
            state.implicit_commit()
        state.locked_tables = None
    if not statement.succeeds:
        state.fail_as_stated(statement)


def _mixes_engines(state: SessionState, written: Iterable[Table]) -> bool:
    """Whether MySQL's GTID consistency forbids to write some tables under the same locks."""
    kinds = {traits(table, state.server).is_transactional for table in written}
    return len(kinds) > 1 and creates.is_gtid_enforced(state)


def _do_nothing(state: SessionState, statement: SessionStatement) -> None:
    """What changes nothing that is logged."""
    if not statement.succeeds:
        state.fail_as_stated(statement)


_HANDLERS: Final[Mapping[StatementKind, Handler]] = MappingProxyType(
    {
        **dict.fromkeys(_ROWS, execute_rows),
        **dict.fromkeys(ddl.KINDS, ddl.execute_ddl),
        **dict.fromkeys(creates.KINDS, creates.execute_create),
        StatementKind.CREATE_TABLE_SELECT: create_select.execute_create_select,
        **dict.fromkeys(drops.KINDS, drops.execute_drop),
        StatementKind.SET: _set,
        StatementKind.BEGIN: transactions.begin,
        StatementKind.COMMIT: transactions.commit,
        StatementKind.ROLLBACK: transactions.roll_back,
        StatementKind.SAVEPOINT: transactions.set_savepoint,
        StatementKind.ROLLBACK_TO: transactions.roll_back_to,
        StatementKind.RELEASE_SAVEPOINT: transactions.release_savepoint,
        StatementKind.XA: transactions.execute_xa,
        StatementKind.LOCK: _lock,
        StatementKind.SESSION: _look_or_use,
    }
)
