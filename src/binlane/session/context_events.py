"""Values that a statement's text depends on, logged before it in statement format.

Source: MariaDB 10.11 sql/log.cc `MYSQL_BIN_LOG::write`, MySQL 9.7 sql/binlog.cc
`MYSQL_BIN_LOG::write_event`.
"""

from __future__ import annotations

from typing import Final

from binlane.policy.access import ResolvedStatement
from binlane.session import log_events
from binlane.session.programs.host import SessionValues, Trace
from binlane.session.report import LoggedEvent
from binlane.session.state import Command
from binlane.sql.effects import StatementKind
from binlane.sql.facts import RowChange, StatementFacts
from binlane.sql.schema import Table

_LAST_INSERT_ID: Final = frozenset(("last_insert_id", "identity"))
_INSERTING: Final = frozenset(
    (RowChange.INSERT, RowChange.REPLACE, RowChange.UPSERT, RowChange.LOAD)
)


def context_events(
    command: Command,
    resolved: ResolvedStatement,
    trace: Trace,
    *,
    created: Table | None = None,
) -> list[LoggedEvent]:
    """What stands in the log before a statement's text.

    Args:
        command: The statement.
        resolved: Its tables.
        trace: What it did.
        created: The table that CREATE … SELECT makes.
    """
    facts = command.facts
    events: list[LoggedEvent] = []
    own = session_values(facts, resolved)
    generates = own.insert_id or (
        created is not None and _leaves_out_auto_increment(facts, created)
    )
    own = own._replace(insert_id=generates and bool(trace.runs))
    events.extend(value_events(own.with_those(trace.values)))
    events.extend(log_events.user_variable(info) for info in trace.user_variables)
    return events


def value_events(values: SessionValues) -> list[LoggedEvent]:
    """The events of values that a text depends on, in the servers' order."""
    events = (log_events.LAST_INSERT_ID, log_events.INSERT_ID, log_events.RANDOM_SEEDS)
    return [event for event, is_used in zip(events, values, strict=True) if is_used]


def session_values(facts: StatementFacts, resolved: ResolvedStatement) -> SessionValues:
    """What a statement itself depends on, its functions and triggers left out."""
    return SessionValues(
        last_insert_id=_reads_last_insert_id(facts),
        insert_id=generates_insert_id(facts, resolved),
        random=any(use.upper_name == "RAND" and not use.arguments for use in facts.functions),
    )


def _reads_last_insert_id(facts: StatementFacts) -> bool:
    return any(
        use.upper_name == "LAST_INSERT_ID" and not use.arguments for use in facts.functions
    ) or any(use.name in _LAST_INSERT_ID for use in facts.system_variables)


def generates_insert_id(facts: StatementFacts, resolved: ResolvedStatement) -> bool:
    """Whether the server chooses an AUTO_INCREMENT value, and logs it."""
    for access in resolved.accesses:
        table = access.table
        if (
            access.is_prelocked
            or not access.changes & _INSERTING
            or table.auto_increment is None
            or not table.is_auto_increment_first
        ):
            continue
        if facts.columns is not None and table.auto_increment.lower() not in {
            column.lower() for column in facts.columns
        }:
            return True
    return False


def _leaves_out_auto_increment(facts: StatementFacts, created: Table) -> bool:
    """Whether the query of CREATE … SELECT gives the AUTO_INCREMENT column no value."""
    return (
        facts.effects.kind is StatementKind.CREATE_TABLE_SELECT
        and created.auto_increment is not None
        and created.is_auto_increment_first
    )
