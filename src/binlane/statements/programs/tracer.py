"""Rows of one statement, and the effects of triggers and stored functions for each row.

Triggers and functions are run in place, in the order of the servers: the functions of a row's values, BEFORE
triggers, the row itself, AFTER triggers. Statements in them are traced here, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final

from binlane.names import TableName
from binlane.statements.policy.refusals import Outcome, Refusal, wrong_argument_count
from binlane.statements.policy.used_objects import cascaded_kind
from binlane.statements.programs.assignments import (
    assign_by_select,
    assign_by_set,
    assign_in_expressions,
    assigned_first,
    call_of,
    has_no_row,
    name_variables,
)
from binlane.statements.programs.environment import RoutineEnvironment, SessionEnvironment
from binlane.statements.programs.host import NO_DATA, Host, table_in_use
from binlane.statements.programs.interpreter import Interpreter, calls_functions, read_body
from binlane.statements.programs.routines import (
    StoredCall,
    call_error,
    declare_parameters,
    facts_of,
    logged_text,
    not_understood,
    random_values,
    recursion,
    routine_name,
    run_routine,
    silent,
    stored_functions,
    values_of,
)
from binlane.statements.programs.trace import (
    EVENTS,
    ROWS_MAX,
    Recorder,
    RowRun,
    Step,
    Trace,
    Traced,
    changed_rows,
    plain_changes,
    steps_of,
)
from binlane.statements.sql.evaluation.evaluator import evaluate
from binlane.statements.sql.evaluation.statements import (
    RowsTried,
    user_variables_loaded,
    user_variables_read,
)
from binlane.statements.sql.evaluation.values import UNKNOWN, Value, constant
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.reading import read_expression
from binlane.statements.sql.schema import Routine, Trigger, TriggerTime
from binlane.statements.sql.statement_kinds import (
    DDL_KINDS,
    READING_KINDS,
    WRITING_KINDS,
    StatementKind,
)
from binlane.statements.sql.tree.expressions import Expression, Node, Row
from binlane.statements.sql.tree.statements import Insert, Update

_ROWS_EXPLORED: Final = 2
"""For so many rows of a statement each way of its triggers and functions is followed."""
_TIMES: Final = MappingProxyType({"BEFORE": TriggerTime.BEFORE, "AFTER": TriggerTime.AFTER})


class Tracer:
    """Runs one outermost statement, and the statements in its functions and triggers.

    Attributes:
        recorder: Recorder of the rows, calls and values.
        raised: Error that stops the statement.
        in_use: Tables of the statements that run, the outermost first.
    """

    def __init__(self, host: Host) -> None:
        """Start outside of any statement."""
        self._host = host
        self.recorder = Recorder(is_mariadb=host.server.is_mariadb, named=self._named)
        self._running: list[TableName] = []
        self.raised: Refusal | None = None
        self.in_use: list[frozenset[TableName]] = []
        self._made: set[TableName] = set()
        self._at: list[object] = []

    def _named(self, written: str) -> str:
        return self._host.programs.named(written)

    def place(self) -> object:
        """Return the rows and programs at work."""
        return tuple(self._at)

    def state(self) -> object:
        """Return the state that the rest depends on, the programs at work left out."""
        return tuple(self._at), self.recorder.state(), self.raised, sorted(map(repr, self._made))

    # The outermost statement -----------------------------------------------------------------------

    def follow(self, statement: Traced, environment: SessionEnvironment) -> None:
        """Follow the statement that the client sent, or that stands in a procedure."""
        facts = statement.facts
        self.in_use.append(statement.own_tables)
        if facts.effects.kind in READING_KINDS:
            self._read(statement, environment)
        else:
            self._record_variables(facts, environment, statement.outcome)
            self._change(statement, environment)
        if facts.effects.kind is StatementKind.SET:
            with silent(environment):
                assign_by_set(facts, environment)
        elif facts.has_into:
            with silent(environment):
                assign_by_select(facts, environment)
        else:
            assign_in_expressions(facts, environment)
        self.recorder.raised = self.raised

    def _read(self, statement: Traced, environment: SessionEnvironment) -> None:
        """Follow SELECT, DO or SET: each call of a function that changes something is logged."""
        count = changed_rows(statement.outcome)
        if statement.outcome.error is not None and not count:
            return
        is_by_row = bool(statement.facts.tables) and count is not None
        for index in range(min(count or 0, ROWS_MAX) if is_by_row else 1):
            with self._at_row(index):
                self._read_row(statement, environment)

    def _read_row(self, statement: Traced, environment: SessionEnvironment) -> None:
        for stored in stored_functions(statement.facts, environment):
            name = routine_name(stored.use, environment)
            arguments = self._arguments(stored, environment)
            with self.recorder.call() as call:
                for node in stored.use.arguments:
                    self.recorder.depends_on(values_of(node))
                self._value_of(name, arguments)
            routine = self._host.objects.function(name)
            if routine is not None and call.is_logged:
                call.text = _call_text(routine, arguments, environment)
                self.recorder.calls.append(call)
            if self.raised is not None:
                return

    def _record_variables(
        self, facts: StatementFacts, environment: SessionEnvironment, outcome: Outcome
    ) -> None:
        """Note the user variables that a statement reads."""
        if not facts.user_variables:
            return
        known = self._host.programs.user_variables
        loaded = user_variables_loaded(facts.whole)
        set_first = assigned_first(facts.whole) | loaded
        tried = None
        if not environment.is_mariadb:
            tried = RowsTried(changed_rows(outcome), outcome.error is not None)
        tree = facts.whole if tried is None else facts.tree
        for name in user_variables_read(tree, facts, tried):
            key = name.lower()
            if key in set_first and (key not in known or not environment.is_mariadb):
                continue
            # MariaDB logs one that was there, with its bytes, as text of the file's character set.
            value = UNKNOWN if key in loaded else environment.user_variable(key)
            self.recorder.reads_variable(name, value)

    # Rows ------------------------------------------------------------------------------------------

    @contextmanager
    def _at_row(self, number: int) -> Iterator[None]:
        """Enter a row of a statement; all rows behind the first ones are taken to be alike."""
        ways = self._host.programs.ways
        self._at.append(min(number, _ROWS_EXPLORED))
        ways.repeats += number >= _ROWS_EXPLORED
        yield
        ways.repeats -= number >= _ROWS_EXPLORED
        self._at.pop()

    def _change(self, statement: Traced, environment: SessionEnvironment) -> None:
        """Follow INSERT, UPDATE, DELETE and their like, row by row."""
        facts, objects = statement.facts, self._host.objects
        functions = stored_functions(facts, environment)
        changes = [a for a in statement.resolved.accesses if a.changes and not a.is_prelocked]
        has_triggers = any(objects.triggers(one.name) for one in changes)
        tree = facts.tree
        rows: Sequence[Row] = ()
        if isinstance(tree, Insert) and tree.rows is not None and (functions or has_triggers):
            rows = tree.rows
        steps = [step for one in changes for step in steps_of(one, statement, objects)]
        rounds = max((len(kinds) for _, kinds in steps), default=0)
        for index in range(min(rounds, ROWS_MAX)):
            row = rows[index] if index < len(rows) else None
            with self._at_row(index):
                self._call_all(functions, row, facts, environment)
                if self.raised is not None:
                    return
                new = self._given(row, statement, environment)
                for table, kinds in steps:
                    if index < len(kinds) and self.raised is None:
                        self._row(table, kinds[index], new, statement)
        is_failing = statement.outcome.error is not None
        if is_failing and rounds and (facts.row_count or ROWS_MAX) > rounds:
            # The row that the statement fails with: all that comes before its change.
            row = rows[rounds] if rounds < len(rows) else None
            self._call_all(functions, row, facts, environment)
            new = self._given(row, statement, environment)
            for table, kinds in steps:
                for kind in kinds[:1]:
                    self._fire_all(table, kind.value[0], new)

    def _call_all(
        self,
        functions: Sequence[StoredCall],
        row: Row | None,
        facts: StatementFacts,
        environment: SessionEnvironment,
    ) -> None:
        """Call the functions of a row: those in its own values, if these are known."""
        for call in functions:
            place = call.use.offset
            if row is None or facts.place(row.at) <= place < facts.place(row.end):
                self._call(call, environment)

    def _given(
        self, row: Row | None, statement: Traced, environment: SessionEnvironment
    ) -> dict[str, Value]:
        """The values of a new row's columns, for triggers to see."""
        facts, tree = statement.facts, statement.facts.tree
        table = next((a.table for a in statement.resolved.accesses if a.changes), None)
        if table is None or not self._host.objects.triggers(table.name):
            return {}
        if isinstance(tree, Update):
            given = [(one.column.parts[-1], one.value) for one in tree.assignments]
        elif row is None:
            return {}
        else:
            columns = facts.columns
            if columns is None:
                columns = tuple(column.name for column in table.definition.columns)
            given = list(zip(columns, row.items, strict=False))
        with silent(environment):
            return {column.lower(): evaluate(value, facts, environment) for column, value in given}

    def _row(
        self, table: TableName, step: Step, new: Mapping[str, Value], statement: Traced
    ) -> None:
        """Follow one row of a table, with its triggers."""
        for part in step.value:
            if part in EVENTS:
                self._cascade(table, part, statement.set_columns(table), statement)
                self._changes(RowRun(table, part), statement.logged)
                continue
            self._fire_all(table, part, new)
            if self.raised is not None:
                return

    def _changes(self, run: RowRun, text: str) -> None:
        self._host.programs.ways.passes(run)
        self.recorder.changes(run, text)

    def _cascade(
        self, parent: TableName, kind: str, columns: frozenset[str] | None, statement: Traced
    ) -> None:
        """Change the rows that foreign keys change before a row of their parent; MariaDB logs none.

        A child's row stands before those of its own children.

        Args:
            parent: The table whose row changes.
            kind: Kind of change: `insert`, `update` or `delete`.
            columns: Columns that an update changes, in small letters; None: any column may change.
            statement: The statement that changes the row.
        """
        if kind == "insert" or not self._host.server.has_server_foreign_keys:
            return
        for key in self._host.objects.children(parent):
            child = cascaded_kind(key, kind, columns)
            if child is None or not statement.follows(key) or key.table in self._running:
                continue
            self._running.append(key.table)
            changed = frozenset(column.lower() for column in key.columns)
            self._changes(RowRun(key.table, child, is_cascade=True), statement.logged)
            self._cascade(key.table, child, changed, statement)
            self._running.pop()

    # Triggers and routines -------------------------------------------------------------------------

    def _fire_all(self, table: TableName, part: str, new: Mapping[str, Value]) -> None:
        """Run the triggers of one time and event, as BEFORE INSERT."""
        time, _, event = part.partition(" ")
        for trigger in self._host.objects.triggers(table):
            if event in trigger.events and trigger.time is _TIMES[time]:
                self._fire(trigger, new)

    def _fire(self, trigger: Trigger, given: Mapping[str, Value]) -> None:
        body = read_body(trigger.body, trigger.dialect)
        if body is None:
            reason = not_understood("trigger", trigger)
            self._host.programs.effort.unfollowed = reason
            return
        with self._inside("trigger", trigger.name) as environment:
            environment.rows = True
            environment.text = body
            environment.set_row(given)
            with self._host.acting_for(trigger) as denied:
                run = Interpreter(self).run_body
                self._stops(run(body.tree, environment) if denied is None else denied)

    @contextmanager
    def _inside(self, kind: str, name: TableName) -> Iterator[RoutineEnvironment]:
        """Enter a trigger or routine that runs."""
        environment = RoutineEnvironment(
            self._host,
            name.database,
            routine=None if kind == "trigger" else name,
            call_stored=self._value_of,
            program=f"{kind} {name.plain}",
        )
        environment.on_read = self.recorder.reads_variable
        environment.on_assign = self.recorder.assigns_variable
        self._running.append(name)
        self._at.append(name.plain)
        yield environment
        self._at.pop()
        self._running.pop()

    def _stops(self, jump: object) -> None:
        """Remember the error that ends the statement, if that is certain."""
        if isinstance(jump, Refusal) and self.raised is None:
            self.raised = jump

    def _arguments(self, call: StoredCall, environment: SessionEnvironment) -> list[Value]:
        """The values that a function is called with."""
        with silent(environment):
            return [evaluate(node, call.facts, environment) for node in call.use.arguments]

    def _call(self, call: StoredCall, environment: SessionEnvironment) -> None:
        self._value_of(routine_name(call.use, environment), self._arguments(call, environment))

    def _value_of(self, name: TableName, arguments: Sequence[Value]) -> Value:
        """Run a stored function, if there is one of that name."""
        routine = self._host.objects.function(name)
        if routine is None:
            return UNKNOWN
        if not routine.takes(len(arguments)):
            self._stops(wrong_argument_count(routine, len(arguments)))
            return UNKNOWN
        value = self._run(routine, arguments)
        self._stops(value)
        return UNKNOWN if isinstance(value, Refusal) else value

    def _run(self, routine: Routine, arguments: Sequence[Value]) -> Refusal | Value:
        if routine.name in self._running:
            return recursion(routine, is_mariadb=self._host.server.is_mariadb)
        kind = "function" if routine.is_function else "procedure"
        with (
            self._inside(kind, routine.name) as environment,
            self._host.acting_for(routine) as denied,
        ):
            if denied is not None:
                return denied
            return run_routine(routine, arguments, environment, self)

    def _call_procedure(
        self, facts: StatementFacts, environment: RoutineEnvironment
    ) -> Refusal | None:
        name = routine_name(facts.functions[0], environment)
        routine = self._host.objects.procedure(name)
        error = call_error(routine, name, facts)
        if routine is None or error is not None:
            return error
        arguments = [evaluate(node, facts, environment) for node in call_of(facts).arguments]
        result = self._run(routine, arguments)
        return result if isinstance(result, Refusal) else None

    # Bodies of functions and triggers ---------------------------------------------------------------

    def value(self, expression: Expression, environment: RoutineEnvironment) -> Value:
        """The value of an expression of a function or trigger."""
        self.recorder.starts_statement()
        self.recorder.depends_on(values_of(expression))
        if calls_functions(expression):
            body = environment.text
            facts = read_expression(
                body.text_of(expression), database=environment.database, dialect=body.dialect
            )
            self._stops(self._refused(facts, environment))
        return environment.value(expression)

    def statement(self, statement: Node, environment: RoutineEnvironment) -> Refusal | None:
        """Run a statement of a function or trigger."""
        facts = facts_of(statement, environment)
        kind = facts.effects.kind
        name_variables(facts, environment)
        self.recorder.starts_statement()
        if kind in DDL_KINDS:
            self._made.update(facts.effects.writes)
        refusal = self._refused(facts, environment)
        if refusal is not None:
            return refusal
        if kind is StatementKind.CALL:
            return self._call_procedure(facts, environment)
        if kind in READING_KINDS:
            if facts.has_into and has_no_row(statement, environment):
                return NO_DATA
            self.recorder.depends_on(random_values(facts))
            self._read_in_body(facts, environment)
        elif kind in WRITING_KINDS:
            self._write_in_body(statement, facts, environment)
        raised, self.raised = self.raised, None
        is_passed_over = environment.is_mariadb and kind is StatementKind.DO
        return None if is_passed_over else raised

    def _read_in_body(self, facts: StatementFacts, environment: RoutineEnvironment) -> None:
        if facts.effects.kind is StatementKind.SET:
            assign_by_set(facts, environment)
            return
        self._record_variables(facts, environment, Outcome())
        for call in stored_functions(facts, environment):
            self._call(call, environment)
        if facts.has_into:
            with silent(environment):
                assign_by_select(facts, environment)

    def _write_in_body(
        self, statement: Node, facts: StatementFacts, environment: RoutineEnvironment
    ) -> None:
        resolved = self._host.resolved(facts, environment.database)
        logged = logged_text(statement, facts, environment, trims=False)
        traced = Traced(facts=facts, resolved=resolved, logged=logged)
        self._record_variables(facts, environment, Outcome())
        self.recorder.depends_on(self._host.depends_on(facts, resolved, environment))
        for change in plain_changes(resolved):
            self._host.programs.ways.passes(change)
            self.recorder.logs(change.table)
        self.in_use.append(traced.own_tables)
        self._change(traced, environment)
        self.in_use.pop()

    def _refused(self, facts: StatementFacts, environment: RoutineEnvironment) -> Refusal | None:
        """Return the error of a statement that names a missing object, or writes a table in use.

        A SET which no function may contain has an error, too.
        """
        forbidden = self._host.refusal_in_body(facts)
        if forbidden is not None:
            return forbidden
        denied = self._host.denied(facts, environment.database)
        if denied is not None:
            return denied
        if not facts.tables and not facts.functions:
            return None
        resolved = self._host.resolved(facts, environment.database)
        unknown = {name for name, _ in resolved.unknown_tables}
        if resolved.errors and not unknown & self._made:
            return resolved.errors[0]
        if self._made.isdisjoint(use.name for use in facts.tables):
            database = environment.database
            unknown_column = self._host.unknown_column(facts, database, environment.hides)
            if unknown_column is not None:
                return unknown_column
        for access in resolved.accesses:
            is_written = (
                access.changes and not access.is_prelocked and not facts.effects.is_temporary
            )
            if is_written and any(access.name in names for names in self.in_use):
                return table_in_use(access.name, is_mariadb=environment.is_mariadb)
        return None


def _call_text(
    routine: Routine, arguments: Sequence[Value], environment: SessionEnvironment
) -> str:
    """Return the logged text of a call: with the values that the parameters got."""
    inside = RoutineEnvironment(environment.host, routine.name.database)
    declare_parameters(routine, arguments, inside)
    given = [
        constant(
            inside.declared(parameter.name)[1],
            is_mariadb=environment.is_mariadb,
            has_escapes=not environment.dialect.no_backslash_escapes,
        )
        for parameter in routine.parameters[: len(arguments)]
    ]
    return f"SELECT {environment.host.quote(routine.name)}({','.join(given)})"


def trace(statement: Traced, host: Host, environment: SessionEnvironment | None = None) -> Trace:
    """Follow a statement; to be called once for each one that runs.

    Args:
        statement: The statement to be followed.
        host: The session; its user variables change.
        environment: Environment of the program that the statement stands in.
    """
    tracer = Tracer(host)
    activities = host.programs.ways.activities
    activities.append(tracer)
    try:
        tracer.follow(statement, environment or SessionEnvironment(host))
    finally:
        activities.pop()
    return tracer.recorder.trace(statement.logged)
