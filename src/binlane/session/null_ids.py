"""sql_auto_is_null: `WHERE id IS NULL` finds the row that was inserted last, as ODBC wants it.

The server then reads LAST_INSERT_ID, and logs its value. MariaDB does so for the first statement
behind the insert only.

Source: `remove_eq_conds` in MariaDB 10.11 sql/sql_select.cc and MySQL 9.7 sql/sql_optimizer.cc.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from binlane.policy.access import ResolvedStatement
from binlane.session.auto_increment import generates_insert_id
from binlane.session.programs.environment import SessionEnvironment
from binlane.session.programs.host import SessionValues, Trace
from binlane.session.state import Command, SessionState
from binlane.sql.effects import StatementKind

_IS_NULL: Final = re.compile(r"`?(\w+)`?\s+IS\s+NULL\b", re.IGNORECASE)
_INSERTING: Final = frozenset(
    (StatementKind.INSERT, StatementKind.REPLACE, StatementKind.LOAD_DATA)
)


def with_null_ids(
    state: SessionState, command: Command, resolved: ResolvedStatement, trace: Trace
) -> Trace:
    """What a statement did, with LAST_INSERT_ID where it looks for the row inserted last."""
    if not state.variables.is_on("sql_auto_is_null", default=False):
        return trace
    if state.null_is_insert_id and _looks_for_null(command, resolved):
        state.null_is_insert_id = not state.server.is_mariadb
        trace = replace(trace, values=trace.values.with_those(SessionValues(last_insert_id=True)))
    if command.facts.effects.kind in _INSERTING and command.succeeds and trace.runs:
        environment = SessionEnvironment(state.host, command.database)
        if generates_insert_id(command.facts, resolved, command.sql, environment):
            state.null_is_insert_id = True
    return trace


def _looks_for_null(command: Command, resolved: ResolvedStatement) -> bool:
    columns = {found[1].lower() for found in _IS_NULL.finditer(command.sql)}
    return any(
        access.table.auto_increment is not None
        and not access.is_prelocked
        and access.table.auto_increment.lower() in columns
        for access in resolved.accesses
    )
