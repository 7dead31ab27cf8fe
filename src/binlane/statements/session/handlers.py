"""The handler of each kind of statement."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from binlane.statements.session import creates, ddl, drops, lookups, transactions
from binlane.statements.session.creates_with_rows import execute_create_select
from binlane.statements.session.dml import execute_rows
from binlane.statements.session.settings import execute_set
from binlane.statements.session.state import Handler, SessionState
from binlane.statements.session.statement_state import SessionStatement
from binlane.statements.session.transactions import execute_lock
from binlane.statements.session.xa_statements import execute_xa
from binlane.statements.sql.statement_kinds import (
    DDL_KINDS,
    READING_KINDS,
    TABLE_DROPPING_KINDS,
    WRITING_KINDS,
    StatementKind,
)


def do_nothing(state: SessionState, statement: SessionStatement) -> None:
    """Carry out a statement that changes nothing that is logged."""
    if not statement.succeeds:
        state.fail_as_stated(statement)


HANDLERS: Final[Mapping[StatementKind, Handler]] = MappingProxyType(
    {
        **dict.fromkeys(WRITING_KINDS | READING_KINDS, execute_rows),
        **dict.fromkeys(DDL_KINDS, ddl.execute_ddl),
        **dict.fromkeys(creates.KINDS, creates.execute_create),
        StatementKind.CREATE_TABLE_SELECT: execute_create_select,
        **dict.fromkeys(TABLE_DROPPING_KINDS, drops.execute_drop),
        StatementKind.SET: execute_set,
        StatementKind.BEGIN: transactions.begin,
        StatementKind.COMMIT: transactions.commit,
        StatementKind.ROLLBACK: transactions.roll_back,
        StatementKind.SAVEPOINT: transactions.set_savepoint,
        StatementKind.ROLLBACK_TO: transactions.roll_back_to,
        StatementKind.RELEASE_SAVEPOINT: transactions.release_savepoint,
        StatementKind.XA: execute_xa,
        StatementKind.LOCK: execute_lock,
        StatementKind.SESSION: lookups.look_or_use,
        StatementKind.HANDLER: lookups.handle,
    }
)
