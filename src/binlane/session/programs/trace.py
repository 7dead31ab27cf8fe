"""What a statement does to rows, through the triggers and stored functions that it uses.

Function bodies and triggers are run in place, in the order of the servers: the functions of a row's
values, BEFORE triggers, the row itself, AFTER triggers. User variables are assigned on the way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Final

from binlane.names import TableName, quote
from binlane.policy.access import ResolvedStatement, TableAccess
from binlane.policy.resolution import resolve
from binlane.session.context_events import session_values
from binlane.session.programs.conditions import Raised
from binlane.session.programs.environment import RoutineEnvironment, SessionEnvironment
from binlane.session.programs.expressions import evaluate
from binlane.session.programs.host import FunctionCall, Host, RowRun, SessionValues, Trace
from binlane.session.programs.interpreter import Interpreter, read_body
from binlane.session.programs.name_const import with_constants
from binlane.session.programs.recorder import Recorder
from binlane.session.programs.routines import (
    Assignments,
    declare_parameters,
    facts_of,
    procedure_name,
    recursion,
    run_routine,
    text_of,
)
from binlane.session.programs.rows_of_values import value_rows
from binlane.session.programs.silent import silent
from binlane.session.programs.user_variables import names_read
from binlane.session.programs.values import UNKNOWN, Value, constant
from binlane.session.report import Outcome
from binlane.session.rows import changed_rows, plain_changes
from binlane.sql.body import PlainStatement, Span
from binlane.sql.effects import StatementKind
from binlane.sql.facts import FunctionUse, RowChange, StatementFacts
from binlane.sql.schema import Routine, Trigger, TriggerTime

_LAST_INSERT_ID: Final = re.compile(r"\blast_insert_id\s*\(\s*\)", re.IGNORECASE)
_ROWS_MAX: Final = 1000
"""More rows of one statement are not followed one by one."""
_READING: Final = frozenset((StatementKind.SELECT, StatementKind.DO, StatementKind.SET))
_WRITING: Final = frozenset(
    (
        StatementKind.INSERT,
        StatementKind.REPLACE,
        StatementKind.UPDATE,
        StatementKind.DELETE,
        StatementKind.LOAD_DATA,
    )
)
_LOGS_CASCADES: Final = (9, 6, 0)
"""The first MySQL that logs the rows that foreign keys change."""
_CASCADES: Final = frozenset(("CASCADE", "SET NULL", "SET DEFAULT"))
_EVENTS: Final = frozenset(("insert", "update", "delete"))
_TIMES: Final = MappingProxyType({"BEFORE": TriggerTime.BEFORE, "AFTER": TriggerTime.AFTER})


class _Step(Enum):
    """What happens for one row: triggers by their time and event, and changes of the row."""

    INSERT = ("BEFORE INSERT", "insert", "AFTER INSERT")
    UPDATE = ("BEFORE UPDATE", "update", "AFTER UPDATE")
    DELETE = ("BEFORE DELETE", "delete", "AFTER DELETE")
    UPSERT = ("BEFORE INSERT", "BEFORE UPDATE", "update", "AFTER UPDATE")
    REPLACE = (
        "BEFORE INSERT",
        "BEFORE DELETE",
        "delete",
        "AFTER DELETE",
        "insert",
        "AFTER INSERT",
    )
    REPLACE_BY_UPDATE = ("BEFORE INSERT", "update", "AFTER INSERT")


_REPLACING: Final = frozenset((RowChange.REPLACE, RowChange.UPSERT))
_PLAIN: Final = MappingProxyType(
    {
        RowChange.INSERT: _Step.INSERT,
        RowChange.LOAD: _Step.INSERT,
        RowChange.SEQUENCE: _Step.INSERT,
        RowChange.UPDATE: _Step.UPDATE,
        RowChange.DELETE: _Step.DELETE,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """A statement to be followed.

    Attributes:
        facts: What it says.
        resolved: Its tables.
        sql: Its text.
        logged: Its text with local variables replaced.
        outcome: What happened.
    """

    facts: StatementFacts
    resolved: ResolvedStatement
    sql: str
    logged: str
    outcome: Outcome = field(default_factory=Outcome)


def trace(statement: Traced, host: Host, environment: SessionEnvironment | None = None) -> Trace:
    """Follow a statement; to be called once for each one that runs.

    Args:
        statement: Which.
        host: The session; its user variables change.
        environment: Of the program that the statement stands in.
    """
    recorder = Recorder(is_mariadb=host.server.is_mariadb)
    tracer = _Tracer(host, recorder)
    tracer.outermost(statement, environment or SessionEnvironment(host))
    return recorder.trace(statement.logged)


class _Tracer:
    """Runs statements, functions and triggers of one outermost statement."""

    def __init__(self, host: Host, recorder: Recorder) -> None:
        self._host = host
        self._recorder = recorder
        self._running: list[TableName] = []
        self._assignments = Assignments(host)

    def outermost(self, statement: Traced, environment: SessionEnvironment) -> None:
        """Follow the statement that the client sent, or that stands in a procedure."""
        facts = statement.facts
        if facts.effects.kind in _READING:
            self._read(statement, environment)
        else:
            self._record_variables(statement, environment)
            self._change(statement, environment)
        self._assign(statement, environment)

    # Statements ----------------------------------------------------------------------------------

    def _read(self, statement: Traced, environment: SessionEnvironment) -> None:
        """SELECT, DO, SET: each call of a function that changes something is logged."""
        count = changed_rows(statement.outcome)
        is_by_row = bool(statement.facts.tables) and count is not None
        for _ in range(min(count or 0, _ROWS_MAX) if is_by_row else 1):
            self._read_row(statement, environment)

    def _read_row(self, statement: Traced, environment: SessionEnvironment) -> None:
        for use in self._stored(statement.facts, environment):
            arguments = self._arguments(use, environment)
            with self._recorder.call() as call:
                name, routine, values = self._call(use, arguments, environment)
            if routine is not None and call.is_logged:
                text = self._call_text(name, routine, values, environment)
                self._recorder.calls.append(
                    FunctionCall(
                        text=text,
                        writes=frozenset(call.writes),
                        user_variables=tuple(call.user_variables),
                        values=call.values,
                    )
                )

    def _call_text(
        self,
        name: TableName,
        routine: Routine,
        values: Mapping[str, Value],
        environment: SessionEnvironment,
    ) -> str:
        """How a call is logged: with the values that the parameters got."""
        inside = RoutineEnvironment(self._host, name.database)
        declare_parameters(routine, values, inside)
        arguments = [
            constant(inside.declared(parameter.name)[1], is_mariadb=environment.is_mariadb)
            for parameter in routine.parameters
        ]
        shown = f"{quote(routine.name.database)}.{quote(routine.name.table)}"
        return f"SELECT {shown}({','.join(arguments)})"

    def _assign(self, statement: Traced, environment: SessionEnvironment) -> None:
        """User variables that the statement sets."""
        facts = statement.facts
        if facts.effects.kind is StatementKind.SET:
            with silent(environment):
                self._assignments.of_set(facts, environment)
        elif facts.has_into:
            with silent(environment):
                self._assignments.of_select(statement.sql, environment)
        else:
            self._assignments.in_expressions(statement.sql, facts, environment)

    def _record_variables(self, statement: Traced, environment: SessionEnvironment) -> None:
        for name in names_read(statement.facts, statement.sql):
            self._recorder.reads_variable(name, environment.user_variable(name), self._host.server)

    def _change(self, statement: Traced, environment: SessionEnvironment) -> None:
        """INSERT, UPDATE, DELETE and their like, row by row."""
        facts = statement.facts
        functions = self._stored(facts, environment)
        changes = [a for a in statement.resolved.accesses if a.changes and not a.is_prelocked]
        has_triggers = any(self._host.objects.triggers(one.name) for one in changes)
        rows = value_rows(statement.sql, facts) if functions or has_triggers else ()
        count = changed_rows(statement.outcome)
        given = facts.row_count or 1
        steps = [step for one in changes for step in self._steps(one, given, count)]
        rounds = max((len(kinds) for _, kinds in steps), default=0)
        for index in range(min(rounds, _ROWS_MAX)):
            row = rows[index] if index < len(rows) else None
            for use in functions:
                if row is None or row.holds(use.offset):
                    self._call(use, self._arguments(use, environment), environment)
            new = {} if row is None else self._given(row.values, facts, statement, environment)
            for table, kinds in steps:
                if index < len(kinds):
                    self._row(table, kinds[index], new, statement.logged)

    def _steps(
        self, access: TableAccess, given: int, count: int | None
    ) -> Iterator[tuple[TableName, tuple[_Step, ...]]]:
        """What happens to a table row by row, for each way in which it is changed."""
        # Clauses of one INSERT: what it does to a row that is there says it all.
        changes = access.changes & _REPLACING or access.changes
        for change in sorted(changes, key=lambda change: change.name):
            if change in _REPLACING:
                yield access.name, self._replacing(change, access, given, count)
            elif change in _PLAIN:
                rows = given if count is None else count
                yield access.name, (_PLAIN[change],) * min(rows, _ROWS_MAX)

    def _replacing(
        self, change: RowChange, access: TableAccess, given: int, count: int | None
    ) -> tuple[_Step, ...]:
        """REPLACE and ON DUPLICATE KEY UPDATE: a row that was there counts as two."""
        replaced = _Step.UPSERT
        if change is RowChange.REPLACE:
            triggers = self._host.objects.triggers(access.name)
            keeps_row = (
                len(access.table.unique_keys) == 1
                and not any("DELETE" in trigger.events for trigger in triggers)
                and not self._host.objects.children(access.name)
            )
            replaced = _Step.REPLACE_BY_UPDATE if keeps_row else _Step.REPLACE
        if count is None:
            return (_Step.INSERT,) * given
        old = max(0, count - given) if count <= 2 * given else count // 2
        return ((replaced,) * old + (_Step.INSERT,) * (count - 2 * old))[:_ROWS_MAX]

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

    def _row(self, table: TableName, step: _Step, new: Mapping[str, Value], text: str) -> None:
        """One row of a table, with its triggers."""
        triggers = self._host.objects.triggers(table)
        for part in step.value:
            if part in _EVENTS:
                self._cascade(table, part, text)
                self._recorder.changes(RowRun(table, part), text)
                continue
            time, _, event = part.partition(" ")
            for trigger in triggers:
                if event in trigger.events and trigger.time is _TIMES[time]:
                    self._fire(trigger, new)

    def _cascade(self, parent: TableName, kind: str, text: str) -> None:
        """Rows that foreign keys change before a row of their parent; MariaDB logs none."""
        server = self._host.server
        if kind == "insert" or server.is_mariadb or server.version < _LOGS_CASCADES:
            return
        for key in self._host.objects.children(parent):
            action = key.on_delete if kind == "delete" else key.on_update
            if action not in _CASCADES or key.table in self._running:
                continue
            self._running.append(key.table)
            child = "delete" if kind == "delete" and action == "CASCADE" else "update"
            self._cascade(key.table, child, text)
            self._recorder.changes(RowRun(key.table, child, is_cascade=True), text)
            self._running.pop()

    def _fire(self, trigger: Trigger, given: Mapping[str, Value]) -> None:
        body = read_body(trigger.body)
        if body is None or trigger.name in self._running:
            return
        environment = RoutineEnvironment(
            self._host, trigger.name.database, call_stored=self._value_of, rows=True
        )
        environment.set_row(given)
        self._running.append(trigger.name)
        Interpreter(_InFunction(self, trigger.body)).run(body, environment)
        self._running.pop()

    # Functions -----------------------------------------------------------------------------------

    def _stored(self, facts: StatementFacts, environment: SessionEnvironment) -> list[FunctionUse]:
        """The stored functions that a statement calls: those in arguments first."""
        uses = [
            use
            for use in facts.functions
            if self._host.objects.function(_name(use, environment)) is not None
        ]
        return sorted(uses, key=lambda use: use.offset + use.length)

    def _arguments(self, use: FunctionUse, environment: SessionEnvironment) -> list[Value]:
        with silent(environment):
            return [evaluate(text, environment) for text in use.arguments]

    def _call(
        self, use: FunctionUse, arguments: Sequence[Value], environment: SessionEnvironment
    ) -> tuple[TableName, Routine | None, dict[str, Value]]:
        name = _name(use, environment)
        routine = self._host.objects.function(name)
        if routine is None:
            return name, None, {}
        self._value_of(name, arguments)
        names = [parameter.name.lower() for parameter in routine.parameters]
        return name, routine, dict(zip(names, arguments, strict=False))

    def _value_of(self, name: TableName, arguments: Sequence[Value]) -> Value:
        """Run a stored function."""
        routine = self._host.objects.function(name)
        if routine is None or routine.name in self._running:
            return UNKNOWN
        self._running.append(routine.name)
        environment = RoutineEnvironment(
            self._host, routine.name.database, call_stored=self._value_of
        )
        environment.on_read, environment.on_assign = self._reads, self._recorder.assigns_variable
        names = [parameter.name.lower() for parameter in routine.parameters]
        given = dict(zip(names, arguments, strict=False))
        value = run_routine(routine, given, environment, _InFunction(self, routine.body))
        self._running.pop()
        return UNKNOWN if isinstance(value, Raised) else value

    def depends_on(self, values: SessionValues) -> None:
        """An expression of a function depends on values of the session."""
        self._recorder.depends_on(values)

    def _reads(self, name: str, value: Value) -> None:
        self._recorder.reads_variable(name, value, self._host.server)

    # Statements of functions and triggers --------------------------------------------------------

    def inner(
        self, statement: PlainStatement, body: str, environment: RoutineEnvironment
    ) -> Raised | None:
        """Run a statement of a function or trigger."""
        sql = statement.sql.text
        facts = facts_of(sql, environment.database)
        kind = facts.effects.kind
        self._recorder.starts_statement()
        if kind is StatementKind.CALL:
            return self._call_procedure(facts, environment)
        if kind is StatementKind.SET:
            self._assignments.of_set(facts, environment)
            return None
        if kind in _READING:
            for use in self._stored(facts, environment):
                self._call(use, self._arguments(use, environment), environment)
            if facts.has_into:
                with silent(environment):
                    self._assignments.of_select(sql, environment)
            return None
        if kind not in _WRITING:
            return None
        resolved = resolve(
            facts, self._host.objects, server=self._host.server, database=environment.database
        )
        logged = with_constants(
            text_of(statement, body, is_mariadb=environment.is_mariadb),
            environment.names(),
            environment.declared,
            is_mariadb=environment.is_mariadb,
        )
        traced = Traced(facts=facts, resolved=resolved, sql=sql, logged=logged)
        self._record_variables(traced, environment)
        self._recorder.depends_on(session_values(facts, resolved))
        for change in plain_changes(facts, resolved, Outcome()):
            self._recorder.logs(change.table)
        self._change(traced, environment)
        return None

    def _call_procedure(
        self, facts: StatementFacts, environment: RoutineEnvironment
    ) -> Raised | None:
        name = procedure_name(facts, environment.database)
        routine = self._host.objects.procedure(name)
        if routine is None:
            return None
        if routine.name in self._running:
            return recursion(is_function=False)
        self._running.append(routine.name)
        inside = RoutineEnvironment(self._host, routine.name.database, call_stored=self._value_of)
        inside.on_read, inside.on_assign = self._reads, self._recorder.assigns_variable
        texts = facts.functions[0].arguments
        values = [evaluate(text, environment) for text in texts]
        names = [parameter.name.lower() for parameter in routine.parameters]
        given = dict(zip(names, values, strict=False))
        result = run_routine(routine, given, inside, _InFunction(self, routine.body))
        self._running.pop()
        return result if isinstance(result, Raised) else None


class _InFunction:
    """What the statements of a function's or trigger's body do."""

    def __init__(self, tracer: _Tracer, body: str) -> None:
        self._tracer = tracer
        self._body = body

    def statement(
        self, statement: PlainStatement, environment: RoutineEnvironment
    ) -> Raised | None:
        """Run an SQL statement."""
        return self._tracer.inner(statement, self._body, environment)

    def value(self, expression: Span, environment: RoutineEnvironment) -> Value:
        """The value of an expression."""
        if _LAST_INSERT_ID.search(expression.text):
            self._tracer.depends_on(SessionValues(last_insert_id=True))
        return evaluate(expression.text, environment)


def _name(use: FunctionUse, environment: SessionEnvironment) -> TableName:
    return TableName(use.database or environment.database, use.name)
