"""What a statement does to rows, through the triggers and stored functions that it uses.

Function bodies and triggers are run in place, in the order of the servers: the functions of a row's
values, BEFORE triggers, the row itself, AFTER triggers. User variables are assigned on the way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType
from typing import Final

from binlane.names import TableName, quote
from binlane.policy.access import ResolvedStatement, TableAccess
from binlane.policy.refusals import LoggingError
from binlane.session.context_events import random_values, session_values
from binlane.session.plans import resolved_of
from binlane.session.programs.conditions import Raised
from binlane.session.programs.environment import RoutineEnvironment, SessionEnvironment
from binlane.session.programs.expressions import evaluate
from binlane.session.programs.host import FunctionCall, Host, RowRun, SessionValues, Trace
from binlane.session.programs.interpreter import Interpreter, read_body
from binlane.session.programs.name_const import with_constants
from binlane.session.programs.recorder import Recorder
from binlane.session.programs.routines import (
    Assignments,
    call_error,
    declare_parameters,
    facts_of,
    not_understood,
    procedure_name,
    recursion,
    run_routine,
    text_of,
)
from binlane.session.programs.rows_of_values import ValueRow, value_rows
from binlane.session.programs.silent import silent
from binlane.session.programs.user_variables import names_read
from binlane.session.programs.values import UNKNOWN, Value, constant
from binlane.session.report import Outcome, Refusal
from binlane.session.rows import changed_rows, plain_changes
from binlane.session.variables import refusal_in_function
from binlane.sql.body import PlainStatement, Span
from binlane.sql.effects import DDL_KINDS, StatementKind
from binlane.sql.facts import FunctionUse, RowChange, StatementFacts
from binlane.sql.schema import Routine, Trigger, TriggerTime

_LAST_INSERT_ID: Final = re.compile(r"\blast_insert_id\s*\(\s*\)", re.IGNORECASE)
_RANDOM: Final = re.compile(r"\brand\s*\(\s*\)", re.IGNORECASE)
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
        self._raised: Raised | None = None
        self._in_use: list[frozenset[TableName]] = []
        self._made: set[TableName] = set()

    def outermost(self, statement: Traced, environment: SessionEnvironment) -> None:
        """Follow the statement that the client sent, or that stands in a procedure."""
        facts = statement.facts
        self._in_use.append(_own_tables(statement.resolved))
        if facts.effects.kind in _READING:
            self._read(statement, environment)
        else:
            self._record_variables(statement, environment)
            self._change(statement, environment)
        self._assign(statement, environment)
        self._recorder.raised = self._raised

    # Statements ----------------------------------------------------------------------------------

    def _read(self, statement: Traced, environment: SessionEnvironment) -> None:
        """SELECT, DO, SET: each call of a function that changes something is logged."""
        count = changed_rows(statement.outcome)
        if statement.outcome.error is not None and not count:
            return
        is_by_row = bool(statement.facts.tables) and count is not None
        for _ in range(min(count or 0, _ROWS_MAX) if is_by_row else 1):
            self._read_row(statement, environment)

    def _read_row(self, statement: Traced, environment: SessionEnvironment) -> None:
        for use in self._stored(statement.facts, environment):
            arguments = self._arguments(use, environment)
            with self._recorder.call() as call:
                for text in use.arguments:
                    self._recorder.depends_on(_values_of(text))
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
            if self._raised is not None:
                return

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
            if self._raised is not None:
                return
            new = {} if row is None else self._given(row.values, facts, statement, environment)
            for table, kinds in steps:
                if index < len(kinds) and self._raised is None:
                    self._row(table, kinds[index], new, statement.logged)
        if (
            statement.outcome.error is not None
            and rounds
            and (facts.row_count or _ROWS_MAX) > rounds
        ):
            self._fail(steps, rows[rounds] if rounds < len(rows) else None, statement, environment)

    def _fail(
        self,
        steps: Sequence[tuple[TableName, tuple[_Step, ...]]],
        row: ValueRow | None,
        statement: Traced,
        environment: SessionEnvironment,
    ) -> None:
        """The row that the statement fails with: all that comes before its change."""
        for use in self._stored(statement.facts, environment):
            if row is None or row.holds(use.offset):
                self._call(use, self._arguments(use, environment), environment)
        new = (
            {} if row is None else self._given(row.values, statement.facts, statement, environment)
        )
        for table, kinds in steps:
            for kind in kinds[:1]:
                self._fire_all(table, kind.value[0], new)

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
        for part in step.value:
            if part in _EVENTS:
                self._cascade(table, part, text)
                self._recorder.changes(RowRun(table, part), text)
                continue
            self._fire_all(table, part, new)
            if self._raised is not None:
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
            self._recorder.changes(RowRun(key.table, child, is_cascade=True), text)
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
        if isinstance(jump, Raised) and jump.is_certain and self._raised is None:
            self._raised = jump

    def _take_raised(self) -> Raised | None:
        raised, self._raised = self._raised, None
        return raised

    # Functions -----------------------------------------------------------------------------------

    def _stored(self, facts: StatementFacts, environment: SessionEnvironment) -> list[FunctionUse]:
        """The stored functions that a statement calls: those in arguments first."""
        uses = [
            use
            for use in facts.functions
            if self._host.objects.function(_name(use, environment)) is not None
        ]
        uses.sort(key=lambda use: use.offset + use.length)
        return [*uses, *self._in_views(facts, ())]

    def _in_views(
        self, facts: StatementFacts, through: tuple[TableName, ...]
    ) -> Iterator[FunctionUse]:
        """The stored functions that a statement's views call."""
        for table in facts.tables:
            view = self._host.objects.view(table.name)
            if view is None or table.name in through:
                continue
            for use in view.facts.functions:
                database = use.database or view.database or view.name.database
                if self._host.objects.function(TableName(database, use.name)) is not None:
                    yield replace(use, database=database, offset=table.offset)
            yield from self._in_views(view.facts, (*through, table.name))

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
        if routine is None:
            return UNKNOWN
        if routine.name in self._running:
            self._stops(recursion(routine, is_mariadb=self._host.server.is_mariadb))
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
        self._stops(value)
        return UNKNOWN if isinstance(value, Raised) else value

    def depends_on(self, values: SessionValues) -> None:
        """An expression of a function depends on values of the session."""
        self._recorder.depends_on(values)

    def starts_statement(self) -> None:
        """A statement or expression of a function or trigger begins."""
        self._recorder.starts_statement()

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
        if kind in DDL_KINDS:
            self._made.update(facts.effects.writes)
        raised = self._refused(facts, environment)
        if raised is not None:
            return raised
        if kind is StatementKind.CALL:
            return self._call_procedure(facts, environment)
        if kind in _READING:
            self._recorder.depends_on(random_values(facts))
            self._read_in_body(facts, sql, environment)
        elif kind in _WRITING:
            self._write_in_body(statement, facts, body, environment)
        return self._take_raised()

    def _read_in_body(
        self, facts: StatementFacts, sql: str, environment: RoutineEnvironment
    ) -> None:
        if facts.effects.kind is StatementKind.SET:
            self._assignments.of_set(facts, environment)
            return
        for use in self._stored(facts, environment):
            self._call(use, self._arguments(use, environment), environment)
        if facts.has_into:
            with silent(environment):
                self._assignments.of_select(sql, environment)

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
        self._record_variables(traced, environment)
        self._recorder.depends_on(session_values(facts, resolved, sql, environment))
        for change in plain_changes(facts, resolved, Outcome()):
            self._recorder.logs(change.table)
        self._in_use.append(_own_tables(resolved))
        self._change(traced, environment)
        self._in_use.pop()

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
            return _raised_by(forbidden)
        if not facts.tables and not facts.functions:
            return None
        resolved = self._resolved(facts, environment)
        unknown = {name for name, _ in resolved.unknown_tables}
        if resolved.errors and not unknown & self._made:
            return _raised_by(resolved.errors[0])
        for access in resolved.accesses:
            is_written = access.changes and not access.is_prelocked
            if is_written and any(access.name in names for names in self._in_use):
                return _in_use(access.name, is_mariadb=environment.is_mariadb)
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
        self._tracer.starts_statement()
        self._tracer.depends_on(_values_of(expression.text))
        self._tracer.check_expression(expression.text, environment)
        return evaluate(expression.text, environment)


def _raised_by(error: LoggingError) -> Raised:
    return Raised.by(
        Refusal(
            errno=error.errno,
            sqlstate=error.sqlstate,
            symbol=error.symbol,
            message=error.message,
        )
    )


def _own_tables(resolved: ResolvedStatement) -> frozenset[TableName]:
    """The tables that a statement itself uses, through views too; they stay open while it runs."""
    return frozenset(access.name for access in resolved.accesses if not access.is_prelocked)


def _in_use(name: TableName, *, is_mariadb: bool) -> Raised:
    message = (
        f"Can't update table '{name.table}' in stored function/trigger because it is already used "
        "by statement which invoked this stored function/trigger"
    )
    return Raised.by(
        Refusal(
            errno=1442,
            sqlstate="HY000",
            symbol="ER_CANT_UPDATE_USED_TABLE_IN_SF_OR_TRG",
            message=message if is_mariadb else f"{message}.",
        )
    )


def _values_of(expression: str) -> SessionValues:
    """What an expression depends on."""
    return SessionValues(
        last_insert_id=_LAST_INSERT_ID.search(expression) is not None,
        random=_RANDOM.search(expression) is not None,
    )


def _name(use: FunctionUse, environment: SessionEnvironment) -> TableName:
    return TableName(use.database or environment.database, use.name)
