"""What MySQL's enforce_gtid_consistency refuses of CREATE and DROP.

Source: MySQL 9.7 sql/sql_class.cc `THD::is_ddl_gtid_compatible`.
"""

from __future__ import annotations

from binlane.policy import refusals
from binlane.policy.engines import traits
from binlane.session.state import Command, SessionState
from binlane.sql.effects import StatementKind
from binlane.sql.schema import Table

_REFUSES = "ON"


def refuses_temporary(state: SessionState, command: Command) -> bool:
    """Refuse CREATE and DROP TEMPORARY TABLE in a transaction that is logged as statements."""
    if not (
        _is_enforced(state)
        and command.facts.effects.is_temporary
        and state.is_in_transaction
        and any(state.mode(name).value == "STATEMENT" for name in state.binlogs)
    ):
        return False
    state.refuse(refusals.temporary_table_and_gtid())
    return True


def refuses_create_select(state: SessionState, command: Command, created: Table | None) -> bool:
    """Refuse CREATE … SELECT of a table whose engine does not commit DDL with its rows."""
    effects = command.facts.effects
    if (
        not _is_enforced(state)
        or effects.kind is not StatementKind.CREATE_TABLE_SELECT
        or effects.is_temporary
        or created is None
        or (state.server.fills_as_it_creates and traits(created, state.server).has_two_phases)
    ):
        return False
    state.refuse(refusals.create_select_and_gtid())
    return True


def _is_enforced(state: SessionState) -> bool:
    if state.server.is_mariadb or not state.is_logging:
        return False
    return state.variables.text("enforce_gtid_consistency") == _REFUSES
