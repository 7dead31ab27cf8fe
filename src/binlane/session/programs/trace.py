"""What a statement does to rows, through the triggers and stored functions that it uses."""

from __future__ import annotations

from collections.abc import Mapping

from binlane.names import TableName, quote
from binlane.session.programs.environment import RoutineEnvironment, SessionEnvironment
from binlane.session.programs.host import FunctionCall, Host, Trace
from binlane.session.programs.recorder import Recorder
from binlane.session.programs.routines import (
    declare_parameters,
)
from binlane.session.programs.row_steps import ROWS_MAX
from binlane.session.programs.silent import silent
from binlane.session.programs.traced import Traced
from binlane.session.programs.tracer import READING, Tracer
from binlane.session.programs.used_functions import stored_functions, values_of
from binlane.session.programs.values import Value, constant
from binlane.session.rows import changed_rows
from binlane.sql.effects import StatementKind
from binlane.sql.schema import Routine


def trace(statement: Traced, host: Host, environment: SessionEnvironment | None = None) -> Trace:
    """Follow a statement; to be called once for each one that runs.

    Args:
        statement: Which.
        host: The session; its user variables change.
        environment: Of the program that the statement stands in.
    """
    recorder = Recorder(is_mariadb=host.server.is_mariadb)
    _follow(Tracer(host, recorder), statement, environment or SessionEnvironment(host))
    return recorder.trace(statement.logged)


def _follow(tracer: Tracer, statement: Traced, environment: SessionEnvironment) -> None:
    """Follow the statement that the client sent, or that stands in a procedure."""
    facts = statement.facts
    tracer.in_use.append(statement.own_tables)
    if facts.effects.kind in READING:
        _read(tracer, statement, environment)
    else:
        tracer.record_variables(statement, environment)
        tracer.change(statement, environment)
    _assign(tracer, statement, environment)
    tracer.recorder.raised = tracer.raised


def _read(tracer: Tracer, statement: Traced, environment: SessionEnvironment) -> None:
    """SELECT, DO, SET: each call of a function that changes something is logged."""
    count = changed_rows(statement.outcome)
    if statement.outcome.error is not None and not count:
        return
    is_by_row = bool(statement.facts.tables) and count is not None
    for _ in range(min(count or 0, ROWS_MAX) if is_by_row else 1):
        _read_row(tracer, statement, environment)


def _read_row(tracer: Tracer, statement: Traced, environment: SessionEnvironment) -> None:
    for use in stored_functions(statement.facts, environment):
        arguments = tracer.arguments(use, environment)
        with tracer.recorder.call() as call:
            for text in use.arguments:
                tracer.recorder.depends_on(values_of(text))
            name, routine, values = tracer.call(use, arguments, environment)
        if routine is not None and call.is_logged:
            text = _call_text(name, routine, values, environment)
            tracer.recorder.calls.append(
                FunctionCall(
                    text=text,
                    writes=frozenset(call.writes),
                    user_variables=tuple(call.user_variables),
                    values=call.values,
                )
            )
        if tracer.raised is not None:
            return


def _call_text(
    name: TableName,
    routine: Routine,
    values: Mapping[str, Value],
    environment: SessionEnvironment,
) -> str:
    """How a call is logged: with the values that the parameters got."""
    inside = RoutineEnvironment(environment.host, name.database)
    declare_parameters(routine, values, inside)
    arguments = [
        constant(inside.declared(parameter.name)[1], is_mariadb=environment.is_mariadb)
        for parameter in routine.parameters
    ]
    shown = f"{quote(routine.name.database)}.{quote(routine.name.table)}"
    return f"SELECT {shown}({','.join(arguments)})"


def _assign(tracer: Tracer, statement: Traced, environment: SessionEnvironment) -> None:
    """User variables that the statement sets."""
    facts = statement.facts
    if facts.effects.kind is StatementKind.SET:
        with silent(environment):
            tracer.assignments.of_set(facts, environment)
    elif facts.has_into:
        with silent(environment):
            tracer.assignments.of_select(statement.sql, environment)
    else:
        tracer.assignments.in_expressions(statement.sql, facts, environment)
