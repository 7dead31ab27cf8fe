"""CREATE … SELECT and CREATE OR REPLACE that fail, in MariaDB: the old table may be gone.

Source: MariaDB 10.11 sql/sql_table.cc `mysql_create_table_no_lock`, sql/sql_insert.cc
`select_create::abort_result_set`, sql/log.cc `log_drop_table`.
"""

from __future__ import annotations

from typing import Final

from binlane.policy.engines import traits
from binlane.session import log_events
from binlane.session.decision import Decided
from binlane.session.failures import fail_as_stated
from binlane.session.report import LoggedEvent
from binlane.session.state import Command, SessionState, write_directly
from binlane.sql.effects import StatementKind
from binlane.sql.logging_mode import LoggingFormat
from binlane.sql.schema import Table

_EARLY_ERRORS: Final = frozenset((1044, 1049, 1064, 1142, 1146, 1347, 4161))
"""Errors found before a table is replaced: of syntax, privileges and what is missing."""
_EARLY_QUERY_ERRORS: Final = frozenset((1052, 1054, 1143, 1222, 1241, 1305, 1582))
"""Those of a query, which is looked at first."""
_DEFINITION_ERRORS: Final = frozenset(
    (1005, 1060, 1061, 1063, 1067, 1068, 1070, 1071, 1072, 1073, 1074, 1075, 1113, 1166, 1506)
)
"""Errors of the new table's definition, before its query runs."""


def is_logged_temporary(state: SessionState, name: str) -> bool:
    """Whether the creation of a temporary table is logged in a binlog now.

    MySQL logs it under STATEMENT only, MariaDB also under MIXED, as long as no statement had to
    be logged as rows while others are open.
    """
    if state.server.is_mariadb:
        return not state.is_row_now(name)
    return state.mode(name).value == "STATEMENT"


def fail_create_select(
    state: SessionState, command: Command, decided: Decided, created: Table, *, exists: bool
) -> None:
    """A failed CREATE … SELECT leaves nothing, except that OR REPLACE dropped the old table."""
    fail_as_stated(state, command)
    if not exists or not replaces_before_error(state, command):
        return
    held = _drop_old(state, command, created)
    event = _drop_event(command, created)
    is_run = command.outcome.error not in _DEFINITION_ERRORS
    for name, binlog in state.each_logging().items():
        if name not in decided.verdicts or (created.is_temporary and name not in held):
            continue
        if decided.verdicts[name].logging_format is LoggingFormat.ROW:
            binlog.write_group([event], log_events.ROLLBACK)
            continue
        if is_run and not created.is_temporary and traits(created, state.server).has_two_phases:
            binlog.write_directly([log_events.query(command.text, command.database)])
        binlog.write_directly([event])


def replaces_before_error(state: SessionState, command: Command) -> bool:
    """Whether MariaDB has dropped the old table when the statement fails."""
    known = _EARLY_ERRORS
    if command.facts.effects.kind is StatementKind.CREATE_TABLE_SELECT:
        known |= _EARLY_QUERY_ERRORS
    return _replaces(state, command) and command.outcome.error not in known


def _drop_old(state: SessionState, command: Command, created: Table) -> frozenset[str]:
    """The table that is replaced is gone; the binlogs that know it, if it was temporary."""
    temporary = "TEMPORARY " if created.is_temporary else ""
    state.objects.apply(f"DROP {temporary}TABLE {created.name}", database=command.database)
    if not created.is_temporary:
        return frozenset()
    state.gone_temporary(created.name)
    held = [name for name, one in state.binlogs.items() if created.name in one.held_temporary]
    for name in held:
        state.binlogs[name].held_temporary.discard(created.name)
    if state.safety is not None:
        state.safety.temporary_dropped(created.name)
    return frozenset(held)


def log_failed_replacement(
    state: SessionState, command: Command, created: Table, recorders: frozenset[str]
) -> None:
    """CREATE OR REPLACE without a query fails: its text is logged, as it dropped a table."""
    held = _drop_old(state, command, created)
    names = recorders
    if created.is_temporary:
        names = frozenset(name for name in recorders & held if is_logged_temporary(state, name))
    write_directly(state, [log_events.query(command.text, command.database)], names)


def _replaces(state: SessionState, command: Command) -> bool:
    return state.server.is_mariadb and command.facts.is_or_replace


def _drop_event(command: Command, created: Table) -> LoggedEvent:
    temporary = "TEMPORARY " if created.is_temporary else ""
    text = (
        f"DROP {temporary}TABLE IF EXISTS {created.name}"
        "/* Generated to handle failed CREATE OR REPLACE */"
    )
    return log_events.query(text, "" if created.is_temporary else command.database)


def log_refused_replacement(state: SessionState, command: Command, created: Table | None) -> None:
    """MariaDB decides when the old table is gone already, and logs that."""
    error = state.run.error
    if (
        created is None
        or created.is_temporary
        or not _replaces(state, command)
        or error is None
        or not error.symbol.startswith("ER_BINLOG_")
    ):
        return
    state.objects.apply(f"DROP TABLE IF EXISTS {created.name}", database=command.database)
    write_directly(state, [_drop_event(command, created)])
