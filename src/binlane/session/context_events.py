"""Values that a statement's text depends on, logged before it in statement format.

Source: MariaDB 10.11 sql/log.cc `MYSQL_BIN_LOG::write`, MySQL 9.7 sql/binlog.cc
`MYSQL_BIN_LOG::write_event`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from binlane.policy.access import ResolvedStatement
from binlane.policy.defaults import prepared_defaults
from binlane.session import log_events
from binlane.session.auto_increment import generates_for_created, generates_insert_id
from binlane.session.plans import Plan
from binlane.session.programs.environment import SessionEnvironment
from binlane.session.programs.host import NO_VALUES, SessionValues, Trace
from binlane.session.report import LoggedEvent
from binlane.session.state import Command, SessionState
from binlane.sql.cursor import Cursor
from binlane.sql.effects import StatementKind
from binlane.sql.facts import FunctionUse, StatementFacts
from binlane.sql.schema import Table
from binlane.sql.tokens import tokenise

_LAST_INSERT_ID: Final = frozenset(("last_insert_id", "identity"))
_CHANGING_IN_PLACE: Final = frozenset((StatementKind.UPDATE, StatementKind.DELETE))
_VIEWS_MAX: Final = 64


def context_events(
    state: SessionState,
    command: Command,
    resolved: ResolvedStatement,
    trace: Trace,
    *,
    created: Table | None = None,
    plan: Plan | None = None,
) -> list[LoggedEvent]:
    """What stands in the log before a statement's text.

    Args:
        state: The session.
        command: The statement.
        resolved: Its tables.
        trace: What it did.
        created: The table that CREATE … SELECT makes.
        plan: What is known of all statements like it.
    """
    values = _own_values(state, command, resolved, trace, created, plan)
    events = value_events(values.with_those(trace.values))
    events.extend(log_events.user_variable(info) for info in trace.user_variables)
    return events


def _own_values(
    state: SessionState,
    command: Command,
    resolved: ResolvedStatement,
    trace: Trace,
    created: Table | None,
    plan: Plan | None,
) -> SessionValues:
    if plan is not None and plan.can_depend is False:
        return NO_VALUES
    environment = command.environment
    if environment is None:
        environment = SessionEnvironment(state.host, command.database)
    assert isinstance(environment, SessionEnvironment)
    facts = command.facts
    if plan is not None and plan.can_depend is None:
        plan.can_depend = _can_depend(facts, resolved, environment)
    own = session_values(facts, resolved, command.sql, environment, trace)
    if created is not None:
        generates = generates_for_created(facts, resolved, created, command.sql, environment)
        own = own._replace(insert_id=generates and bool(trace.runs))
    return own


def _can_depend(
    facts: StatementFacts, resolved: ResolvedStatement, environment: SessionEnvironment
) -> bool:
    """Whether some statement that differs only in its literals depends on the session."""
    functions = (*facts.functions, *_in_views(facts, environment))
    return (
        any(_is_random(use) or _is_last_insert_id(use) for use in functions)
        or any(use.name in _LAST_INSERT_ID for use in facts.system_variables)
        or any(
            access.changes and access.table.auto_increment is not None
            for access in resolved.accesses
        )
        or _has_random_default(facts, resolved, environment)
    )


def value_events(values: SessionValues) -> list[LoggedEvent]:
    """The events of values that a text depends on, in the servers' order."""
    events = (log_events.LAST_INSERT_ID, log_events.INSERT_ID, log_events.RANDOM_SEEDS)
    return [event for event, is_used in zip(events, values, strict=True) if is_used]


def session_values(
    facts: StatementFacts,
    resolved: ResolvedStatement,
    sql: str,
    environment: SessionEnvironment,
    trace: Trace | None = None,
) -> SessionValues:
    """What a statement itself depends on, its functions and triggers left out.

    Args:
        facts: What it says.
        resolved: Its tables.
        sql: Its text.
        environment: What its expressions can refer to.
        trace: What it did; without it, that it changed rows.
    """
    of_views = list(_in_views(facts, environment))
    # Rows of VALUES are tried in any case, those of a query only where there are some.
    tries_rows = trace is None or bool(trace.runs) or not facts.has_query
    return SessionValues(
        last_insert_id=_reads_last_insert_id(facts, sql, trace)
        or (tries_rows and any(map(_is_last_insert_id, of_views))),
        insert_id=tries_rows and generates_insert_id(facts, resolved, sql, environment),
        random=any(map(_is_random, (*facts.functions, *of_views)))
        or _has_random_default(facts, resolved, environment),
    )


def random_values(facts: StatementFacts) -> SessionValues:
    """What an expression of a function or trigger depends on."""
    return SessionValues(
        last_insert_id=any(map(_is_last_insert_id, facts.functions)),
        random=any(map(_is_random, facts.functions)),
    )


def _is_random(use: FunctionUse) -> bool:
    return use.upper_name == "RAND" and not use.arguments


def _is_last_insert_id(use: FunctionUse) -> bool:
    return use.upper_name == "LAST_INSERT_ID" and not use.arguments


def _in_views(facts: StatementFacts, environment: SessionEnvironment) -> Iterator[FunctionUse]:
    """The functions of the views that a statement uses.

    MariaDB leaves a view's own columns alone where UPDATE or DELETE changes it.
    """
    objects = environment.host.objects
    skips_targets = environment.is_mariadb and facts.effects.kind in _CHANGING_IN_PLACE
    names = [use.name for use in facts.tables if not (skips_targets and use.changes)]
    for name in names:
        view = objects.view(name)
        if view is not None and len(names) < _VIEWS_MAX:
            yield from view.facts.functions
            names.extend(use.name for use in view.facts.tables)


def _has_random_default(
    facts: StatementFacts, resolved: ResolvedStatement, environment: SessionEnvironment
) -> bool:
    server = environment.host.server
    return any(
        _is_random(use)
        for access in resolved.accesses
        if server.is_mariadb or (access.changes and not access.is_prelocked)
        for default in prepared_defaults(access.table, facts, server)
        for use in default.functions
    )


def _reads_last_insert_id(facts: StatementFacts, sql: str, trace: Trace | None) -> bool:
    """Whether LAST_INSERT_ID() is evaluated; where no row is changed, only behind WHERE."""
    if any(use.name in _LAST_INSERT_ID for use in facts.system_variables):
        return True
    offsets = [use.offset for use in facts.functions if _is_last_insert_id(use)]
    if not offsets or trace is None:
        return bool(offsets)
    if facts.on_duplicate_offset is not None and all(run.kind != "update" for run in trace.runs):
        offsets = [offset for offset in offsets if offset < facts.on_duplicate_offset]
    if not trace.runs and (facts.has_query or facts.effects.kind is StatementKind.UPDATE):
        start = _where(sql)
        offsets = [offset for offset in offsets if offset > start]
    return bool(offsets)


def _where(sql: str) -> int:
    """Where the statement's own WHERE stands, or its end."""
    cursor = Cursor(list(tokenise(sql)))
    cursor.until(("WHERE",))
    return cursor.token.offset
