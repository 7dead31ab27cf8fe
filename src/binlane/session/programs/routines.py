"""Running stored routines: their parameters, bodies and results, and assignments in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from binlane.names import TableName
from binlane.session.programs.conditions import Raised
from binlane.session.programs.environment import RoutineEnvironment, Scope, SessionEnvironment
from binlane.session.programs.expression_reader import user_variable_name
from binlane.session.programs.expressions import evaluate
from binlane.session.programs.host import Host
from binlane.session.programs.interpreter import Actions, Interpreter, Returned, read_body
from binlane.session.programs.rows_of_values import value_rows
from binlane.session.programs.selects import selected_expressions, selected_into
from binlane.session.programs.types import VariableType
from binlane.session.programs.values import UNKNOWN, Value
from binlane.session.report import Refusal
from binlane.sql.analysis import read
from binlane.sql.body import PlainStatement
from binlane.sql.facts import Assignment, StatementFacts, VariableScope
from binlane.sql.schema import Routine
from binlane.sql.tokens import TokenKind, tokenise

_CACHE_SIZE: Final = 4096
NO_PROCEDURE: Final = 1305


def run_routine(
    routine: Routine,
    arguments: Mapping[str, Value],
    environment: RoutineEnvironment,
    actions: Actions,
) -> Raised | Value:
    """Run a routine's body in an environment that is made for it.

    Args:
        routine: Which.
        arguments: Values of its parameters, by their names in lower case.
        environment: Fresh; its first scope gets the parameters.
        actions: What statements do.

    Returns:
        What a function returns, in its type; unknown where the body is not understood.
    """
    declare_parameters(routine, arguments, environment)
    body = read_body(routine.body)
    if body is None:
        what = "function" if routine.is_function else "procedure"
        environment.host.programs.effort.unfollowed = not_understood(what, routine.name)
        return UNKNOWN
    jump = Interpreter(actions).run(body, environment)
    if isinstance(jump, Raised):
        return jump
    if not isinstance(jump, Returned):
        return UNKNOWN
    kind = VariableType.parse(
        routine.returns,
        collation=environment.database_collation,
        is_mariadb=environment.is_mariadb,
    )
    return kind.store(jump.value)


def not_understood(kind: str, name: TableName) -> str:
    """What is said of a routine or trigger whose body is beyond the grammar."""
    return f"the body of {kind} {name.plain} is not understood"


def call_error(routine: Routine | None, name: TableName, facts: StatementFacts) -> Raised | None:
    """Why a procedure cannot be called; None if it can.

    Args:
        routine: The procedure; None if there is none.
        name: As CALL gives it.
        facts: Of the CALL.
    """
    if routine is None:
        message = f"PROCEDURE {name.plain} does not exist"
        errno, symbol = NO_PROCEDURE, "ER_SP_DOES_NOT_EXIST"
    elif len(routine.parameters) != len(facts.functions[0].arguments):
        message = (
            f"Incorrect number of arguments for PROCEDURE {routine.name.plain}; expected "
            f"{len(routine.parameters)}, got {len(facts.functions[0].arguments)}"
        )
        errno, symbol = 1318, "ER_SP_WRONG_NO_OF_ARGS"
    else:
        return None
    return Raised.by(Refusal(errno=errno, sqlstate="42000", symbol=symbol, message=message))


def declare_parameters(
    routine: Routine, arguments: Mapping[str, Value], environment: RoutineEnvironment
) -> None:
    """Give a fresh environment the parameters of a routine, their values in their types."""
    environment.scopes = [Scope()]
    for parameter in routine.parameters:
        value = arguments.get(parameter.name.lower())
        environment.declare(parameter.name, parameter.type_text, value)


def recursion(routine: Routine, *, is_mariadb: bool) -> Raised:
    """The error of a routine that comes to itself again."""
    if routine.is_function:
        end = "" if is_mariadb else "."
        message = f"Recursive stored functions and triggers are not allowed{end}"
        return Raised(1424, "HY000", message)
    message = (
        "Recursive limit 0 (as set by the max_sp_recursion_depth variable) was exceeded for "
        f"routine {routine.name.table}"
    )
    return Raised(1456, "HY000", message)


class Assignments:
    """SET and SELECT … INTO of a program: local and user variables."""

    def __init__(self, host: Host) -> None:
        """Work for a session."""
        self._host = host

    def of_set(self, facts: StatementFacts, environment: SessionEnvironment) -> None:
        """Do what SET assigns to local and user variables; system variables are left out."""
        waiting: list[tuple[Assignment, Value]] = []
        for assignment in facts.assignments:
            if not self.is_variable(assignment, environment):
                continue
            value = evaluate(assignment.value, environment)
            if assignment.name.startswith("@"):
                waiting.append((assignment, value))
            else:
                self.store(assignment, value, environment)
        # User variables are set when all values are known: `SET @a = 1, @b = @a` reads the old.
        for assignment, value in waiting:
            self.store(assignment, value, environment)

    def is_variable(self, assignment: Assignment, environment: SessionEnvironment) -> bool:
        """Whether a local or user variable is set, not one of the system."""
        if assignment.scope is not VariableScope.UNSAID or assignment.name.startswith("@@"):
            return False
        if assignment.name.startswith("@"):
            return True
        return isinstance(environment, RoutineEnvironment) and environment.has(assignment.name)

    def store(self, assignment: Assignment, value: Value, environment: SessionEnvironment) -> None:
        """Give a variable its value."""
        if assignment.name.startswith("@"):
            environment.assign_user_variable(user_variable_name(assignment.name), value)
        elif isinstance(environment, RoutineEnvironment):
            environment.assign(assignment.name, value)

    def in_expressions(
        self, statement: str, facts: StatementFacts, environment: SessionEnvironment
    ) -> None:
        """Do what `:=` assigns in a statement; what depends on rows is unknown."""
        assigned = [use.name for use in facts.user_variables if use.is_assigned]
        if not assigned:
            return
        reads_rows = bool(facts.tables) and not facts.row_count
        if reads_rows:
            for name in assigned:
                environment.assign_user_variable(name, UNKNOWN)
            return
        rows = value_rows(statement, facts)
        texts = [text for row in rows for text in row.values] or [
            *(selected_expressions(statement) or (statement.partition(" ")[2],))
        ]
        for text in texts:
            if ":=" in text:
                evaluate(text, environment)

    def of_select(self, query: str, environment: SessionEnvironment) -> None:
        """Do what SELECT … INTO assigns; what comes from tables is unknown."""
        selected, targets = selected_into(query)
        values: Sequence[Value] = [UNKNOWN] * len(targets)
        if selected is not None and len(selected) == len(targets):
            values = [evaluate(text, environment) for text in selected]
        for name, value in zip(targets, values, strict=True):
            if name.startswith("@"):
                environment.assign_user_variable(user_variable_name(name), value)
            elif isinstance(environment, RoutineEnvironment):
                environment.assign(name, value)


@lru_cache(_CACHE_SIZE)
def facts_of(statement: str, database: str) -> StatementFacts:
    """What a statement of a body says."""
    return read(statement, database=database)


@lru_cache(_CACHE_SIZE)
def logged_span(body: str, offset: int, end: int, *, is_mariadb: bool) -> str:
    """A statement's text as the server keeps it from the body of a routine.

    MySQL's ends with its last token; MariaDB's reaches to the `;` behind it, comments included.
    """
    if not is_mariadb:
        return body[offset:end]
    rest = body[end:]
    for token in tokenise(rest):
        if token.kind is not TokenKind.END and token.text != ";":
            return body[offset:end]
        return body[offset : end + token.offset]
    return body[offset:end]


def text_of(statement: PlainStatement, body: str, *, is_mariadb: bool) -> str:
    """`logged_span` of a statement."""
    return logged_span(body, statement.sql.offset, statement.sql.end, is_mariadb=is_mariadb)


def procedure_name(facts: StatementFacts, database: str) -> TableName:
    """The procedure that CALL names."""
    use = facts.functions[0]
    return TableName(use.database or database, use.name)
