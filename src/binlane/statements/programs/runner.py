"""CALL, prepared statements and compound statements: every statement in them runs by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from binlane.log.codec.client_text import text_telling
from binlane.names import TableName
from binlane.statements.policy.refusals import Outcome, Refusal, refusal
from binlane.statements.programs.assignments import (
    assign,
    assigned_value,
    give,
    has_no_row,
    is_variable,
)
from binlane.statements.programs.environment import RoutineEnvironment, SessionEnvironment
from binlane.statements.programs.host import (
    NO_DATA,
    Expected,
    Host,
    InnerStatement,
    Prepared,
    Remembered,
)
from binlane.statements.programs.interpreter import ExpressionError, Interpreter
from binlane.statements.programs.routines import (
    call_error,
    facts_of,
    logged_text,
    recursion,
    routine_name,
    run_routine,
    silent,
    trimmed,
)
from binlane.statements.programs.ways import DataCondition
from binlane.statements.sql.evaluation.evaluator import evaluate, possible_values
from binlane.statements.sql.evaluation.known_names import StatementText
from binlane.statements.sql.evaluation.values import (
    UNKNOWN,
    UNKNOWN_TEXT,
    Text,
    Value,
    as_integer,
    parameter,
)
from binlane.statements.sql.executable_comments import server_text
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.reading import read
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.statement_kinds import StatementKind
from binlane.statements.sql.stored import runs_nothing_stored
from binlane.statements.sql.tokens import SqlSyntaxError
from binlane.statements.sql.tree.expressions import (
    Call,
    Default,
    Expression,
    Limit,
    Node,
    ParameterMarker,
    Query,
    Subquery,
    SystemVariable,
    children,
    walk,
)
from binlane.statements.sql.tree.statements import PROGRAMS, CallProcedure, Prepare

_PROGRAMS: Final = (CallProcedure, Prepare, *PROGRAMS)
_NO_DEFAULT: Final = Refusal(
    *(4032, "HY000", "ER_INVALID_DEFAULT_PARAM"),
    "Default/ignore value is not supported for such parameter usage",
)
_WRONG_ARGUMENTS: Final = Refusal(
    *(1210, "HY000", "ER_WRONG_ARGUMENTS"), "Incorrect arguments to EXECUTE"
)


_IN_USE: Final = Refusal(
    *(1444, "HY000", "ER_PS_NO_RECURSION"),
    "The prepared statement contains a stored routine call that refers to that same statement. It's"
    " not allowed to execute a prepared statement in such a recursive manner",
)


def is_program(facts: StatementFacts) -> bool:
    """True if `run` is the way to execute a statement."""
    return facts.effects.stopped_at is None and isinstance(facts.tree, _PROGRAMS)


def run(
    facts: StatementFacts,
    outcome: Outcome,
    host: Host,
) -> Refusal | None:
    """Run a program; return the error if it fails.

    Args:
        facts: Facts of the statement's text.
        outcome: Result of the whole program. An error is that of the program's last statement, if nothing in
            the program itself leads to one; rows that did not change did not in any statement.
        host: The session in which the program runs.
    """
    outcomes = _Outcomes(outcome, host.programs.expected)
    raised = _Runner(host, outcomes).run(facts, SessionEnvironment(host))
    if outcome != Outcome() and host.programs.expected is None:
        host.programs.expected = Expected(outcomes.given, fails=raised is not None)
    if raised is None and outcome.error is not None:
        message = f"the script states that the server fails with error {outcome.error}"
        raised = Refusal(outcome.error, "HY000", "ER_SIGNAL_EXCEPTION", message, is_own=True)
    return raised


class _Outcomes:
    """Shares a program's outcome among its statements.

    Attributes:
        whole: Outcome of the whole program.
        expected: The program's course when nothing was stated; None while that is found out.
        given: Number of statements that ran.
    """

    def __init__(self, whole: Outcome, expected: Expected | None) -> None:
        self.whole = whole
        self.expected = expected
        self.given = 0

    def following(self) -> Outcome:
        """The outcome of the statement that runs next."""
        self.given += 1
        expected = self.expected
        if expected is not None and not expected.fails:
            is_last = self.given == expected.statements
            if expected.statements == 1 or (is_last and self.whole.error):
                return self.whole
        rows = 0 if self.whole.rows == 0 and self.whole.error is None else None
        return Outcome(rows=rows)


class _Runner:
    """Runs the programs of one outermost statement, and the statements of procedures."""

    def __init__(self, host: Host, outcomes: _Outcomes) -> None:
        self._host = host
        self._outcomes = outcomes
        self._running: list[TableName] = []
        self._executing: list[str] = []

    def run(self, facts: StatementFacts, environment: SessionEnvironment) -> Refusal | None:
        """Run a statement that is a program: also a compound one outside of routines."""
        tree = facts.tree
        if isinstance(tree, CallProcedure):
            return self._call(facts, tree, environment)
        if isinstance(tree, Prepare):
            return self._prepared_statement(facts, tree, environment)
        inside = RoutineEnvironment(self._host, self._host.database)
        inside.text = facts
        jump = Interpreter(self).run_body(tree, inside)
        return jump if isinstance(jump, Refusal) else None

    # CALL ----------------------------------------------------------------------------------------

    def _call(
        self, facts: StatementFacts, call: CallProcedure, environment: SessionEnvironment
    ) -> Refusal | None:
        name = routine_name(facts.functions[0], environment)
        routine = self._host.objects.procedure(name)
        denied = self._host.denied(facts, environment.database)
        error = call_error(routine, name, facts) if denied is None else denied
        if routine is None or error is not None:
            return error
        depth = environment.system_variable("max_sp_recursion_depth")
        allowed = depth if isinstance(depth, int) else 0
        if self._running.count(routine.name) > allowed:
            return recursion(routine, is_mariadb=environment.is_mariadb)
        self._host.evaluates(facts, environment.database)
        refusal = self._functions_of(facts, call, environment)
        if refusal is not None and refusal.is_for_safety:
            return refusal
        with silent(environment):
            values = [evaluate(node, facts, environment) for node in call.arguments]
        given = [
            None if parameter.direction == "OUT" else value
            for parameter, value in zip(routine.parameters, values, strict=False)
        ]
        inside = RoutineEnvironment(
            self._host,
            routine.name.database,
            routine=routine.name,
            program=f"procedure {routine.name.plain}",
        )
        self._running.append(routine.name)
        with self._host.acting_for(routine) as denied:
            result = run_routine(routine, given, inside, self) if denied is None else denied
        self._running.pop()
        if isinstance(result, Refusal):
            return result
        for one, node in zip(routine.parameters, call.arguments, strict=False):
            if one.direction != "IN":
                give(node, inside.first(one.name), environment)
        return None

    def _functions_of(
        self, facts: StatementFacts, call: CallProcedure, environment: SessionEnvironment
    ) -> Refusal | None:
        """Run the stored functions in the arguments of CALL, which are logged by themselves."""
        called = [
            one
            for one in map(facts.text_of, call.arguments)
            if self._calls_stored(self._read(f"DO {one}", environment, facts.dialect), environment)
        ]
        if not called:
            return None
        text = f"DO {', '.join(called)}"
        return self._inner(text, facts.dialect, text, environment, Remembered())

    def _calls_stored(self, facts: StatementFacts, environment: SessionEnvironment) -> bool:
        """True if an expression calls a stored function, or reads a view, which may call one."""
        objects = self._host.objects
        return any(
            objects.function(routine_name(use, environment)) for use in facts.functions
        ) or any(objects.view(use.name) for use in facts.tables)

    # Prepared statements -------------------------------------------------------------------------

    def _prepared_statement(
        self, facts: StatementFacts, tree: Prepare, environment: SessionEnvironment
    ) -> Refusal | None:
        """Carry out PREPARE, EXECUTE, EXECUTE IMMEDIATE and DEALLOCATE PREPARE."""
        name = tree.name.lower()
        if name and name in self._executing:
            return _IN_USE
        if tree.source is not None and _is_stored(tree.source, facts):
            verb = "PREPARE..FROM" if tree.verb == "PREPARE" else tree.verb
            return refusal(1970, verb)
        if tree.verb == "PREPARE":
            return self._prepare(facts, tree, environment)
        if tree.verb == "EXECUTE":
            prepared = self._prepared(tree.name, "EXECUTE")
            if not isinstance(prepared, Prepared):
                return prepared
            self._executing.append(name)
            raised = self._execute(prepared, facts, tree, environment)
            self._executing.pop()
            return raised
        if tree.verb == "DEALLOCATE":
            return self._deallocate(tree.name)
        text = self._text(facts, tree, environment)
        if text is None:
            assert tree.source is not None, "the grammar wants one"
            reason = f"the text to be executed is not known: {facts.text_of(tree.source)}"
            self._host.programs.effort.unfollowed = reason
            return None
        prepared = Prepared((text,), dialect=self._host.dialect)
        return self._execute(prepared, facts, tree, environment)

    def _deallocate(self, name: str) -> Refusal | None:
        programs = self._host.programs
        known = programs.prepared.get(name.lower())
        if (known is None and programs.hides_prepared) or (
            known is not None and not known.statements
        ):
            programs.prepared.pop(name.lower(), None)
            return None  # whatever it was
        found = self._prepared(name, "DEALLOCATE PREPARE")
        programs.prepared.pop(name.lower(), None)
        return found if isinstance(found, Refusal) else None

    def _prepare(
        self, facts: StatementFacts, tree: Prepare, environment: SessionEnvironment
    ) -> Refusal | None:
        name, programs = tree.name.lower(), self._host.programs
        programs.prepared.pop(name, None)
        if self._outcomes.whole.error is not None:
            return None
        text = self._text(facts, tree, environment)
        if text is None:
            programs.prepared[name] = Prepared(())
            return None
        dialect = self._host.dialect
        inner = self._read(trimmed(text), environment, dialect)
        if inner.error is not None:
            return _syntax_error(inner.error)
        denied = self._host.denied(inner, environment.database)
        if denied is not None:
            return denied
        # A text that is not understood does nothing before it is executed.
        programs.prepared[name] = Prepared((trimmed(text),), dialect=dialect)
        return None

    def _text(
        self, facts: StatementFacts, tree: Prepare, environment: SessionEnvironment
    ) -> str | None:
        """Return the text of a statement that an expression gives; of several texts, one on each way.

        None stands for a text that is not known, NULL included: for a session that is followed late,
        variables set earlier read as NULL.
        """
        source, programs = tree.source, self._host.programs
        assert source is not None
        value = evaluate(source, facts, environment)
        if value is UNKNOWN:
            with silent(environment):
                possible = possible_values(source, facts, environment) or ()
            texts = [one for one in possible if isinstance(one, Text)]
            condition = DataCondition(facts.text_of(source), "", facts.place(source.at))
            if texts:
                value = texts[programs.ways.choose(condition, len(texts)) if texts[1:] else 0]
                give(source, value, environment)
        if not isinstance(value, Text):
            return None
        text = text_telling(value.content, facts.dialect.charset)
        if text is None:
            programs.effort.unfollowed = (
                "the text to be prepared is not in the client's character set"
            )
            return None
        return server_text(text, facts.dialect).read

    @staticmethod
    def _read(text: str, environment: SessionEnvironment, dialect: Dialect) -> StatementFacts:
        return read(text, database=environment.database, dialect=dialect)

    def _prepared(self, name: str, verb: str) -> Prepared | Refusal | None:
        """A prepared statement on this way; None if its text cannot be known."""
        programs = self._host.programs
        found = programs.prepared.get(name.lower())
        is_hidden = found is None and programs.hides_prepared
        if is_hidden or (found is not None and not found.statements):
            programs.effort.unfollowed = f"what was prepared as {name} is not known"
            return None
        if found is None:
            return _no_statement(name, verb)
        number = 0
        if len(found.statements) > 1:
            condition = DataCondition(f"the text of {name}")
            number = programs.ways.choose(condition, len(found.statements))
        if found.statements[number] is None:
            del programs.prepared[name.lower()]
            return _no_statement(name, verb)
        chosen = Prepared((found.statements[number],), found.remembered, found.dialect)
        programs.prepared[name.lower()] = chosen
        return chosen

    def _execute(
        self,
        prepared: Prepared,
        facts: StatementFacts,
        tree: Prepare,
        environment: SessionEnvironment,
    ) -> Refusal | None:
        values = [evaluate(node, facts, environment) for node in tree.using]
        text = prepared.statements[0]
        assert text is not None
        statement = trimmed(text)
        known = self._read(statement, environment, prepared.dialect)
        if known.error is not None:
            return _syntax_error(known.error)
        parameters = sorted(
            (known.place(node.at), node.end - node.at) for node in _parameters(known.tree)
        )
        if len(parameters) != len(values):
            return _WRONG_ARGUMENTS
        is_mariadb = self._host.server.is_mariadb
        if is_mariadb:
            for node in _counts(known.tree):
                index = parameters.index((known.place(node.at), node.end - node.at))
                value = values[index]
                if value is None or value is UNKNOWN:
                    continue
                values[index] = as_integer(value)
                if as_integer(value) < 0:
                    return _WRONG_ARGUMENTS
        logged, shown = (
            [
                node.word
                if isinstance(node, Default)
                else None
                if value is UNKNOWN
                else parameter(
                    value, is_mariadb=is_mariadb, has_escapes=not dialect.no_backslash_escapes
                )
                for node, value in zip(tree.using, values, strict=True)
            ]
            for dialect in (self._host.dialect, prepared.dialect)
        )
        text = _with_values(statement, parameters, logged, UNKNOWN_TEXT)
        sql = _with_values(statement, parameters, shown, "NULL")
        inner = self._read(sql, environment, prepared.dialect)
        if inner.effects.stopped_at is not None and any(
            isinstance(node, Default) for node in tree.using
        ):
            return _NO_DEFAULT
        if inner.effects.stopped_at is not None:
            # No NULL may stand there, as in LIMIT.
            sql = _with_values(statement, parameters, shown, "1")
            inner = self._read(sql, environment, prepared.dialect)
        own = SessionEnvironment(self._host)
        if is_program(inner):
            return self.run(inner, own)
        return self._inner(sql, inner.dialect, text, own, prepared.remembered)

    # Statements ----------------------------------------------------------------------------------

    def statement(self, statement: Node, environment: RoutineEnvironment) -> Refusal | None:
        """Run a statement of a procedure."""
        facts = facts_of(statement, environment)
        if is_program(facts):
            return self.run(facts, environment)
        if facts.effects.kind is StatementKind.SET and all(
            is_variable(one, environment) for one in facts.assignments
        ):
            return self._set(facts, environment)
        if facts.has_into and has_no_row(statement, environment):
            return NO_DATA
        logged = logged_text(statement, facts, environment)
        remembered = self._host.programs.remembered_of(environment.routine, statement.at)
        return self._inner(facts.text, facts.dialect, logged, environment, remembered)

    def _set(self, facts: StatementFacts, environment: RoutineEnvironment) -> Refusal | None:
        """Carry out SET of local and user variables."""
        with silent(environment):
            values = [assigned_value(one, facts, environment) for one in facts.assignments]
        for assignment in facts.assignments:
            if assignment.node is not None:
                raised = self._functions_in(assignment.node, facts, environment)
                if raised is not None:
                    return raised
        for assignment, value in zip(facts.assignments, values, strict=True):
            assign(assignment, value, facts, environment)
        return None

    def value(self, expression: Expression, environment: RoutineEnvironment) -> Value:
        """Return the value of an expression of a procedure; statements of its functions are logged."""
        with silent(environment):
            value = environment.value(expression)
        refusal = self._functions_in(expression, environment.text, environment, is_condition=True)
        if refusal is not None and refusal.is_for_safety:
            raise ExpressionError(refusal)
        return value

    def _functions_in(
        self,
        expression: Expression,
        text: StatementText,
        environment: RoutineEnvironment,
        *,
        is_condition: bool = False,
    ) -> Refusal | None:
        """Run the stored functions of an expression, whose changes are logged by themselves."""
        if not _does_anything(expression):
            return None
        sql = f"DO {text.text_of(expression)}"
        facts = read(sql, database=environment.database, dialect=text.dialect)
        refusal = self._host.evaluates(facts, environment.database)
        if refusal is not None:
            return refusal
        if not self._calls_stored(facts, environment):
            return None
        return self._inner(
            sql, facts.dialect, sql, environment, Remembered(), is_condition=is_condition
        )

    def _inner(
        self,
        sql: str,
        dialect: Dialect,
        logged: str,
        environment: SessionEnvironment,
        remembered: Remembered,
        *,
        is_condition: bool = False,
    ) -> Refusal | None:
        self._host.programs.ways.passes(logged)
        return self._host.execute_inner(
            InnerStatement(
                sql=sql,
                dialect=dialect,
                logged=logged,
                database=environment.database,
                environment=environment,
                remembered=remembered,
                outcome=self._outcomes.following(),
                is_condition=is_condition,
                is_procedure=bool(self._running),
            )
        )


def _does_anything(node: Node) -> bool:
    """True if an expression is more than literals, variables and operators."""
    return isinstance(node, Call | Subquery | SystemVariable) or any(
        map(_does_anything, children(node))
    )


def _is_stored(source: Expression, facts: StatementFacts) -> bool:
    """True if an expression reads tables, or calls functions that are not built in."""
    return any(isinstance(node, Query) for node in walk(source)) or not runs_nothing_stored(facts)


def _parameters(node: Node) -> Iterator[ParameterMarker]:
    if isinstance(node, ParameterMarker):
        yield node
    for each in children(node):
        yield from _parameters(each)


def _counts(node: Node) -> Iterator[ParameterMarker]:
    """The parameters of LIMIT, which takes any value for a whole number."""
    for each in walk(node):
        if isinstance(each, Limit):
            yield from (one for one in children(each) if isinstance(one, ParameterMarker))


def _with_values(
    statement: str,
    parameters: Sequence[tuple[int, int]],
    values: Sequence[str | None],
    unknown: str,
) -> str:
    """The text of a prepared statement with values in the place of its parameters.

    Parameters are `?`, or `:1` and `:name` of sql_mode ORACLE: position and length of each.
    """
    parts: list[str] = []
    end = 0
    for (place, length), value in zip(parameters, values, strict=True):
        parts += [statement[end:place], unknown if value is None else value]
        end = place + length
    return "".join([*parts, statement[end:]])


def _syntax_error(error: SqlSyntaxError) -> Refusal:
    return Refusal(error.errno, error.sqlstate, "ER_PARSE_ERROR", str(error))


def _no_statement(name: str, verb: str) -> Refusal:
    message = f"Unknown prepared statement handler ({name}) given to {verb}"
    return Refusal(1243, "HY000", "ER_UNKNOWN_STMT_HANDLER", message)
