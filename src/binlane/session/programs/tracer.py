"""Rows of one statement, and what triggers and stored functions do for each of them.

They are run in place, in the order of the servers: the functions of a row's values, BEFORE
triggers, the row itself, AFTER triggers. Statements in them come back here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from binlane.names import TableName
from binlane.policy.access import ResolvedStatement
from binlane.session.context_events import random_values, session_values
from binlane.session.plans import resolved_of
from binlane.session.programs.conditions import Raised
from binlane.session.programs.environment import RoutineEnvironment, SessionEnvironment
from binlane.session.programs.errors_in_bodies import raised_by, table_in_use
from binlane.session.programs.expressions import evaluate
from binlane.session.programs.host import Host, RowRun, SessionValues
from binlane.session.programs.interpreter import Interpreter, read_body
from binlane.session.programs.name_const import with_constants
from binlane.session.programs.recorder import Recorder
from binlane.session.programs.routines import (
    Assignments,
    call_error,
    facts_of,
    not_understood,
    procedure_name,
    recursion,
    run_routine,
    text_of,
)
from binlane.session.programs.row_steps import EVENTS, ROWS_MAX, Step, steps_of
from binlane.session.programs.rows_of_values import ValueRow, value_rows
from binlane.session.programs.silent import silent
from binlane.session.programs.traced import Traced
from binlane.session.programs.used_functions import function_name, stored_functions, values_of
from binlane.session.programs.user_variables import names_read
from binlane.session.programs.values import UNKNOWN, Value
from binlane.session.report import Outcome
from binlane.session.rows import changed_rows, plain_changes
from binlane.session.variables import refusal_in_function
from binlane.sql.body import PlainStatement, Span
from binlane.sql.effects import DDL_KINDS, StatementKind
from binlane.sql.facts import FunctionUse, StatementFacts
from binlane.sql.schema import Routine, Trigger, TriggerTime

READING: Final = frozenset((StatementKind.SELECT, StatementKind.DO, StatementKind.SET))
_WRITING: Final = frozenset(
    (
        StatementKind.INSERT,
        StatementKind.REPLACE,
        StatementKind.UPDATE,
        StatementKind.DELETE,
        StatementKind.LOAD_DATA,
    )
)
_CASCADES: Final = frozenset(("CASCADE", "SET NULL", "SET DEFAULT"))
_TIMES: Final = MappingProxyType({"BEFORE": TriggerTime.BEFORE, "AFTER": TriggerTime.AFTER})


class Tracer:
    """Runs statements, functions and triggers of one outermost statement.

    Attributes:
        recorder: Of what they do.
        assignments: Of user variables.
        raised: What stops the statement.
        in_use: Tables of the statements that run, the outermost first.
    """

    def __init__(self, host: Host, recorder: Recorder) -> None:
        """Start outside of any statement."""
        self._host = host
        self.recorder = recorder
        self._running: list[TableName] = []
        self.assignments = Assignments(host)
        self.raised: Raised | None = None
        self.in_use: list[frozenset[TableName]] = []
        self._made: set[TableName] = set()

    def record_variables(self, statement: Traced, environment: SessionEnvironment) -> None:
        """Note the user variables that a statement reads."""
        for name in names_read(statement.facts, statement.sql):
            self.recorder.reads_variable(name, environment.user_variable(name), self._host.server)

    def change(self, statement: Traced, environment: SessionEnvironment) -> None:
        """INSERT, UPDATE, DELETE and their like, row by row."""
        facts = statement.facts
        functions = stored_functions(facts, environment)
        changes = [a for a in statement.resolved.accesses if a.changes and not a.is_prelocked]
        has_triggers = any(self._host.objects.triggers(one.name) for one in changes)
        rows = value_rows(statement.sql, facts) if functions or has_triggers else ()
        count = changed_rows(statement.outcome)
        given = facts.row_count or 1
        steps = [
            step for one in changes for step in steps_of(one, given, count, self._host.objects)
        ]
        rounds = max((len(kinds) for _, kinds in steps), default=0)
        for index in range(min(rounds, ROWS_MAX)):
            row = rows[index] if index < len(rows) else None
            for use in functions:
                if row is None or row.holds(use.offset):
                    self.call(use, self.arguments(use, environment), environment)
            if self.raised is not None:
                return
            new = {} if row is None else self._given(row.values, facts, statement, environment)
            for table, kinds in steps:
                if index < len(kinds) and self.raised is None:
                    self._row(table, kinds[index], new, statement.logged)
        if (
            statement.outcome.error is not None
            and rounds
            and (facts.row_count or ROWS_MAX) > rounds
        ):
            self._fail(steps, rows[rounds] if rounds < len(rows) else None, statement, environment)

    def _fail(
        self,
        steps: Sequence[tuple[TableName, tuple[Step, ...]]],
        row: ValueRow | None,
        statement: Traced,
        environment: SessionEnvironment,
    ) -> None:
        """The row that the statement fails with: all that comes before its change."""
        for use in stored_functions(statement.facts, environment):
            if row is None or row.holds(use.offset):
                self.call(use, self.arguments(use, environment), environment)
        new = (
            {} if row is None else self._given(row.values, statement.facts, statement, environment)
        )
        for table, kinds in steps:
            for kind in kinds[:1]:
                self._fire_all(table, kind.value[0], new)

    def _given(
        self,
        values: Sequence[str],
        facts: StatementFacts,
        statement: Traced,
        environment: SessionEnvironment,
    ) -> dict[str, Value]:
        """The values of a new row's columns, for triggers to see."""
        table = next((a.table for a in statement.resolved.accesses if a.changes), None)
        if table is None or not self._host.objects.triggers(table.name):
            return {}
        columns = facts.columns
        if columns is None:
            columns = tuple(column.name for column in table.definition.columns)
        with silent(environment):
            found = [evaluate(text, environment) for text in values]
        return {column.lower(): value for column, value in zip(columns, found, strict=False)}

    def _row(self, table: TableName, step: Step, new: Mapping[str, Value], text: str) -> None:
        """One row of a table, with its triggers."""
        for part in step.value:
            if part in EVENTS:
                self._cascade(table, part, text)
                self.recorder.changes(RowRun(table, part), text)
                continue
            self._fire_all(table, part, new)
            if self.raised is not None:
                return

    def _fire_all(self, table: TableName, part: str, new: Mapping[str, Value]) -> None:
        """The triggers of one time and event: BEFORE INSERT."""
        time, _, event = part.partition(" ")
        for trigger in self._host.objects.triggers(table):
            if event in trigger.events and trigger.time is _TIMES[time]:
                self._fire(trigger, new)

    def _cascade(self, parent: TableName, kind: str, text: str) -> None:
        """Rows that foreign keys change before a row of their parent; MariaDB logs none."""
        if kind == "insert" or not self._host.server.has_server_foreign_keys:
            return
        for key in self._host.objects.children(parent):
            action = key.on_delete if kind == "delete" else key.on_update
            if action not in _CASCADES or key.table in self._running:
                continue
            self._running.append(key.table)
            child = "delete" if kind == "delete" and action == "CASCADE" else "update"
            self._cascade(key.table, child, text)
            self.recorder.changes(RowRun(key.table, child, is_cascade=True), text)
            self._running.pop()

    def _fire(self, trigger: Trigger, given: Mapping[str, Value]) -> None:
        body = read_body(trigger.body)
        if body is None:
            reason = not_understood("trigger", trigger.name)
            self._host.programs.effort.unfollowed = reason
            return
        environment = RoutineEnvironment(
            self._host, trigger.name.database, call_stored=self._value_of, rows=True
        )
        environment.set_row(given)
        self._running.append(trigger.name)
        self._stops(Interpreter(_InFunction(self, trigger.body)).run(body, environment))
        self._running.pop()

    def _stops(self, jump: object) -> None:
        """Remember what ends the statement, if that is certain."""
        if isinstance(jump, Raised) and jump.is_certain and self.raised is None:
            self.raised = jump

    def _take_raised(self) -> Raised | None:
        raised, self.raised = self.raised, None
        return raised

    # Functions ---------------------------------------------------------------------------------------

    def arguments(self, use: FunctionUse, environment: SessionEnvironment) -> list[Value]:
        """The values that a function is called with."""
        with silent(environment):
            return [evaluate(text, environment) for text in use.arguments]

    def call(
        self, use: FunctionUse, arguments: Sequence[Value], environment: SessionEnvironment
    ) -> tuple[TableName, Routine | None, dict[str, Value]]:
        """Run a function; its name, itself if there is one, and its parameters' values."""
        name = function_name(use, environment)
        routine = self._host.objects.function(name)
        if routine is None:
            return name, None, {}
        self._value_of(name, arguments)
        names = [parameter.name.lower() for parameter in routine.parameters]
        return name, routine, dict(zip(names, arguments, strict=False))

    def _value_of(self, name: TableName, arguments: Sequence[Value]) -> Value:
        """Run a stored function."""
        routine = self._host.objects.function(name)
        if routine is None:
            return UNKNOWN
        if routine.name in self._running:
            self._stops(recursion(routine, is_mariadb=self._host.server.is_mariadb))
            return UNKNOWN
        self._running.append(routine.name)
        environment = RoutineEnvironment(
            self._host, routine.name.database, call_stored=self._value_of
        )
        environment.on_read, environment.on_assign = self._reads, self.recorder.assigns_variable
        names = [parameter.name.lower() for parameter in routine.parameters]
        given = dict(zip(names, arguments, strict=False))
        value = run_routine(routine, given, environment, _InFunction(self, routine.body))
        self._running.pop()
        self._stops(value)
        return UNKNOWN if isinstance(value, Raised) else value

    def depends_on(self, values: SessionValues) -> None:
        """An expression of a function depends on values of the session."""
        self.recorder.depends_on(values)

    def starts_statement(self) -> None:
        """A statement or expression of a function or trigger begins."""
        self.recorder.starts_statement()

    def _reads(self, name: str, value: Value) -> None:
        self.recorder.reads_variable(name, value, self._host.server)

    # Statements of functions and triggers --------------------------------------------------------

    def inner(
        self, statement: PlainStatement, body: str, environment: RoutineEnvironment
    ) -> Raised | None:
        """Run a statement of a function or trigger."""
        sql = statement.sql.text
        facts = facts_of(sql, environment.database)
        kind = facts.effects.kind
        self.recorder.starts_statement()
        if kind in DDL_KINDS:
            self._made.update(facts.effects.writes)
        raised = self._refused(facts, environment)
        if raised is not None:
            return raised
        if kind is StatementKind.CALL:
            return self._call_procedure(facts, environment)
        if kind in READING:
            self.recorder.depends_on(random_values(facts))
            self._read_in_body(facts, sql, environment)
        elif kind in _WRITING:
            self._write_in_body(statement, facts, body, environment)
        return self._take_raised()

    def _read_in_body(
        self, facts: StatementFacts, sql: str, environment: RoutineEnvironment
    ) -> None:
        if facts.effects.kind is StatementKind.SET:
            self.assignments.of_set(facts, environment)
            return
        for use in stored_functions(facts, environment):
            self.call(use, self.arguments(use, environment), environment)
        if facts.has_into:
            with silent(environment):
                self.assignments.of_select(sql, environment)

    def _write_in_body(
        self,
        statement: PlainStatement,
        facts: StatementFacts,
        body: str,
        environment: RoutineEnvironment,
    ) -> None:
        sql = statement.sql.text
        resolved = self._resolved(facts, environment)
        logged = with_constants(
            text_of(statement, body, is_mariadb=environment.is_mariadb),
            environment.names(),
            environment.declared,
            is_mariadb=environment.is_mariadb,
        )
        traced = Traced(facts=facts, resolved=resolved, sql=sql, logged=logged)
        self.record_variables(traced, environment)
        self.recorder.depends_on(session_values(facts, resolved, sql, environment))
        for change in plain_changes(facts, resolved, Outcome()):
            self.recorder.logs(change.table)
        self.in_use.append(traced.own_tables)
        self.change(traced, environment)
        self.in_use.pop()

    def _resolved(
        self, facts: StatementFacts, environment: SessionEnvironment
    ) -> ResolvedStatement:
        return resolved_of(
            facts, self._host.objects, server=self._host.server, database=environment.database
        )

    def _refused(self, facts: StatementFacts, environment: SessionEnvironment) -> Raised | None:
        """The error of a statement that names what is not there, or writes what is in use.

        So is that of a SET which no function may do.
        """
        forbidden = refusal_in_function(facts.assignments)
        if forbidden is not None:
            return raised_by(forbidden)
        if not facts.tables and not facts.functions:
            return None
        resolved = self._resolved(facts, environment)
        unknown = {name for name, _ in resolved.unknown_tables}
        if resolved.errors and not unknown & self._made:
            return raised_by(resolved.errors[0])
        for access in resolved.accesses:
            is_written = access.changes and not access.is_prelocked
            if is_written and any(access.name in names for names in self.in_use):
                return table_in_use(access.name, is_mariadb=environment.is_mariadb)
        return None

    def check_expression(self, text: str, environment: RoutineEnvironment) -> None:
        """Find what an expression names and is not there."""
        if "(" in text:
            raised = self._refused(facts_of(f"DO {text}", environment.database), environment)
            self._stops(raised)

    def _call_procedure(
        self, facts: StatementFacts, environment: RoutineEnvironment
    ) -> Raised | None:
        name = procedure_name(facts, environment.database)
        routine = self._host.objects.procedure(name)
        error = call_error(routine, name, facts)
        if routine is None or error is not None:
            return error
        if routine.name in self._running:
            return recursion(routine, is_mariadb=environment.is_mariadb)
        self._running.append(routine.name)
        inside = RoutineEnvironment(self._host, routine.name.database, call_stored=self._value_of)
        inside.on_read, inside.on_assign = self._reads, self.recorder.assigns_variable
        texts = facts.functions[0].arguments
        values = [evaluate(text, environment) for text in texts]
        names = [parameter.name.lower() for parameter in routine.parameters]
        given = dict(zip(names, values, strict=False))
        result = run_routine(routine, given, inside, _InFunction(self, routine.body))
        self._running.pop()
        return result if isinstance(result, Raised) else None


class _InFunction:
    """What the statements of a function's or trigger's body do."""

    def __init__(self, tracer: Tracer, body: str) -> None:
        self._tracer = tracer
        self._body = body

    def statement(
        self, statement: PlainStatement, environment: RoutineEnvironment
    ) -> Raised | None:
        """Run an SQL statement."""
        return self._tracer.inner(statement, self._body, environment)

    def value(self, expression: Span, environment: RoutineEnvironment) -> Value:
        """The value of an expression."""
        self._tracer.starts_statement()
        self._tracer.depends_on(values_of(expression.text))
        self._tracer.check_expression(expression.text, environment)
        return evaluate(expression.text, environment)
