"""Running stored routines: parameters, bodies, results, texts, and the routines that expressions call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple

from binlane.names import TableName
from binlane.statements.policy.refusals import Refusal, no_such_routine, wrong_argument_count
from binlane.statements.programs.assignments import assign_by_select, assign_by_set, call_of
from binlane.statements.programs.environment import (
    BlockScope,
    RoutineEnvironment,
    SessionEnvironment,
)
from binlane.statements.programs.host import NO_VALUES, Host, SessionValues
from binlane.statements.programs.interpreter import (
    Actions,
    Interpreter,
    Returned,
    read_body,
    why_unread,
)
from binlane.statements.programs.ways import SinglePath, Undecided
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.evaluation.evaluator import evaluate
from binlane.statements.sql.evaluation.statements import with_constants
from binlane.statements.sql.evaluation.values import UNKNOWN, Value
from binlane.statements.sql.facts import FunctionUse, StatementFacts
from binlane.statements.sql.parser import Stopped, cursor_over
from binlane.statements.sql.parser.types import read_type
from binlane.statements.sql.reading import read, read_expression
from binlane.statements.sql.schema import Routine, Trigger
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.statement_kinds import StatementKind
from binlane.statements.sql.tokens import SqlSyntaxError
from binlane.statements.sql.tree.expressions import Call, DataType, Expression, Node, children

_CACHE_SIZE: Final = 4096


def run_routine(
    routine: Routine,
    arguments: Sequence[Value],
    environment: RoutineEnvironment,
    actions: Actions,
) -> Refusal | Value:
    """Run a routine's body in an environment that is made for it.

    Args:
        routine: The function or procedure to run.
        arguments: Values of the routine's parameters; missing ones are NULL.
        environment: A new environment; its first scope gets the parameters.
        actions: The actions of the body's statements.

    Returns:
        The value that a function returns, in its type; unknown where the body is not understood.
    """
    declare_parameters(routine, arguments, environment)
    body = read_body(routine.body, routine.dialect)
    if body is None:
        what = "function" if routine.is_function else "procedure"
        environment.host.programs.effort.unfollowed = not_understood(what, routine)
        return UNKNOWN
    environment.text = body
    jump = Interpreter(actions).run_body(body.tree, environment)
    if isinstance(jump, Refusal):
        return jump
    if not isinstance(jump, Returned):
        return UNKNOWN
    kind = environment.stored_type(type_of(routine.returns, routine.dialect))
    return kind.store(jump.value)


def not_understood(kind: str, program: Routine | Trigger) -> str:
    """Return the message for a routine or trigger whose body is beyond the grammar, or too much."""
    unread = program.unread if isinstance(program, Routine) else ""
    why = unread or why_unread(program.body, program.dialect)
    return f"the body of {kind} {program.name.plain} cannot be followed: {why}"


def call_error(routine: Routine | None, name: TableName, facts: StatementFacts) -> Refusal | None:
    """Return the error of calling a procedure; None if it can be called.

    Args:
        routine: The procedure; None if there is none.
        name: Name of the procedure as CALL gives it.
        facts: Facts of the CALL statement.
    """
    if routine is None:
        return no_such_routine("PROCEDURE", name)
    given = len(call_of(facts).arguments)
    return None if routine.takes(given) else wrong_argument_count(routine, given)


def declare_parameters(
    routine: Routine, arguments: Sequence[Value], environment: RoutineEnvironment
) -> None:
    """Give a fresh environment the parameters of a routine, their values in their types."""
    environment.scopes = [BlockScope()]
    for name in routine.outer:
        environment.declare(name, DataType(0, 0, ""), UNKNOWN)
    for index, parameter in enumerate(routine.parameters):
        value = arguments[index] if index < len(arguments) else None
        if index >= len(arguments) and parameter.default is not None:
            facts = read_expression(
                parameter.default, database=environment.database, dialect=routine.dialect
            )
            assert isinstance(facts.tree, Expression), "it is the tree of one"
            with silent(environment):
                value = evaluate(facts.tree, facts, environment)
        data_type = type_of(parameter.type_text, routine.dialect)
        environment.declare(parameter.name, data_type, value)


def recursion(routine: Routine, *, is_mariadb: bool) -> Refusal:
    """The error of a routine that comes to itself again."""
    if routine.is_function:
        end = "" if is_mariadb else "."
        message = f"Recursive stored functions and triggers are not allowed{end}"
        return Refusal(1424, "HY000", "ER_SP_NO_RECURSION", message, is_own=True)
    message = (
        "Recursive limit 0 (as set by the max_sp_recursion_depth variable) was exceeded for "
        f"routine {routine.name.table}"
    )
    return Refusal(1456, "HY000", "ER_SP_RECURSION_LIMIT", message, is_own=True)


@lru_cache(_CACHE_SIZE)
def type_of(text: str, dialect: Dialect) -> DataType:
    """Return the type of a parameter or result; an empty type if the text is not understood."""
    try:
        return read_type(cursor_over(text, dialect))
    except (Stopped, SqlSyntaxError):
        return DataType(0, 0, "")


# Texts --------------------------------------------------------------------------------------------


def facts_of(node: Node, environment: RoutineEnvironment) -> StatementFacts:
    """Read the facts of a statement or query of a body."""
    body = environment.text
    return read(body.text_of(node), database=environment.database, dialect=body.dialect)


def logged_text(
    statement: Node,
    facts: StatementFacts,
    environment: RoutineEnvironment,
    *,
    trims: bool = True,
) -> str:
    """Return the logged text of a body's statement: variables are replaced by their values."""
    own = facts.text_of(facts.whole)
    logged = with_constants(
        facts.whole, facts, environment.names(), environment.declared, environment.flavor
    )
    whole = logged + environment.kept_text(statement)
    return trimmed(whole) if trims and logged == own else whole


def trimmed(statement: str) -> str:
    """A statement as the servers keep it: without white space around it and its last `;`."""
    return statement.strip(" \t\r\n\v\f\0").rstrip("; \t\r\n\v\f\0")


def routine_name(use: FunctionUse, environment: SessionEnvironment) -> TableName:
    """The whole name of a stored function, or of the procedure that CALL names."""
    return environment.called(use.database, use.name)


# Functions that are called ----------------------------------------------------------------------


class StoredCall(NamedTuple):
    """A call of a stored function, and the statement or view that it stands in."""

    use: FunctionUse
    facts: StatementFacts


def stored_functions(facts: StatementFacts, environment: SessionEnvironment) -> list[StoredCall]:
    """The stored functions that a statement calls: those in arguments first."""
    objects = environment.host.objects
    uses = [
        StoredCall(use, facts)
        for use in facts.functions
        if objects.function(routine_name(use, environment)) is not None
    ]
    uses.sort(key=lambda call: call.use.offset + call.use.length)
    return [*uses, *_in_views(facts, (), objects)]


def _in_views(
    facts: StatementFacts, through: tuple[TableName, ...], objects: SchemaCatalog
) -> Iterator[StoredCall]:
    """The stored functions that a statement's views call."""
    for table in facts.tables:
        view = objects.view(table.name)
        if view is None or table.name in through:
            continue
        for use in view.facts.functions:
            database = use.database or view.database or view.name.database
            if objects.function(TableName(database, use.name)) is not None:
                yield StoredCall(replace(use, database=database, offset=table.offset), view.facts)
        yield from _in_views(view.facts, (*through, table.name), objects)


def values_of(expression: Node) -> SessionValues:
    """Return the session values that an expression depends on."""
    found = NO_VALUES
    if isinstance(expression, Call) and not expression.arguments:
        name = expression.upper_name
        found = SessionValues(last_insert_id=name == "LAST_INSERT_ID", random=name == "RAND")
    for each in children(expression):
        found = found.with_those(values_of(each))
    return found


def random_values(facts: StatementFacts) -> SessionValues:
    """Return the session values that an expression of a function or trigger depends on."""
    names = [use.upper_name for use in facts.functions if not use.arguments]
    return SessionValues(last_insert_id="LAST_INSERT_ID" in names, random="RAND" in names)


# Values without effects ---------------------------------------------------------------------------


class _Silent:
    """Statements of a function that only set variables."""

    def statement(self, statement: Node, environment: RoutineEnvironment) -> Refusal | None:
        """Carry out the assignments of a statement to variables."""
        facts = facts_of(statement, environment)
        if facts.effects.kind is StatementKind.SET:
            assign_by_set(facts, environment)
        elif facts.has_into:
            assign_by_select(facts, environment)
        return None

    def value(self, expression: Expression, environment: RoutineEnvironment) -> Value:
        """The value of an expression."""
        return environment.value(expression)


class _SilentFunctions:
    """Runs stored functions for their values alone: user variables that they set are put back."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._running: list[TableName] = []
        self._left: tuple[dict[str, Value], dict[str, tuple[Value, ...]]] | None = None

    def __call__(self, name: TableName, arguments: Sequence[Value]) -> Value:
        host, programs = self._host, self._host.programs
        routine = host.objects.function(name)
        if routine is None or routine.name in self._running:
            return UNKNOWN
        before = programs.user_variables, programs.possible, programs.ways
        variables, possible = self._left or before[:2]
        programs.user_variables, programs.possible = variables.copy(), possible.copy()
        programs.ways = SinglePath()
        self._running.append(routine.name)
        environment = RoutineEnvironment(host, routine.name.database, call_stored=self)
        try:
            value = run_routine(routine, arguments, environment, _Silent())
        except Undecided:
            value = UNKNOWN
        self._running.pop()
        self._left = programs.user_variables, programs.possible
        programs.user_variables, programs.possible, programs.ways = before
        return UNKNOWN if isinstance(value, Refusal) else value


@contextmanager
def silent(environment: SessionEnvironment) -> Iterator[None]:
    """Evaluate expressions: functions in them leave nothing behind, reading is not noted."""
    call_stored, on_read = environment.call_stored, environment.on_read
    environment.call_stored = _SilentFunctions(environment.host)
    environment.on_read = None
    yield
    environment.call_stored, environment.on_read = call_stored, on_read
