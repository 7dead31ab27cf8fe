"""CALL, prepared statements and compound statements: every statement in them runs by itself."""

from __future__ import annotations

from typing import Final

from binlane.codec.types import Flavor
from binlane.names import TableName
from binlane.policy.reasons_found import ReasonFound
from binlane.session.programs.conditions import Raised
from binlane.session.programs.environment import RoutineEnvironment, SessionEnvironment
from binlane.session.programs.expression_reader import user_variable_name
from binlane.session.programs.expressions import evaluate
from binlane.session.programs.host import Host, InnerStatement, Prepared
from binlane.session.programs.interpreter import Interpreter, read_body
from binlane.session.programs.name_const import with_constants
from binlane.session.programs.prepared import parameter_places, trimmed, with_values
from binlane.session.programs.routines import (
    Assignments,
    call_error,
    facts_of,
    procedure_name,
    recursion,
    run_routine,
    text_of,
)
from binlane.session.programs.silent import ShadowHost, silent
from binlane.session.programs.values import Text, Value
from binlane.session.report import Outcome, Refusal
from binlane.sql.body import PlainStatement, Span
from binlane.sql.comments import server_text
from binlane.sql.effects import StatementKind
from binlane.sql.facts import StatementFacts

_VERBS: Final = frozenset(
    ("CALL", "PREPARE", "EXECUTE", "EXECUTE IMMEDIATE", "DEALLOCATE", "BEGIN NOT ATOMIC")
)
_STATED: Final = "the script states that the server fails with error {}"
_WRONG_ARGUMENTS: Final = Raised.by(
    Refusal(
        errno=1210,
        sqlstate="HY000",
        symbol="ER_WRONG_ARGUMENTS",
        message="Incorrect arguments to EXECUTE",
    )
)


def is_program(facts: StatementFacts) -> bool:
    """Whether a statement is one that `run` is for."""
    return facts.verb in _VERBS


def run(
    facts: StatementFacts,
    statement: str,
    outcome: Outcome,
    host: Host,
) -> Refusal | None:
    """Run a program; the error if it fails.

    Args:
        facts: What the statement says.
        statement: Its text.
        outcome: What happened. An error is that of its last statement, if nothing in the program
            itself leads to one; rows that did not change are so in all its statements.
        host: The session.
    """
    outcomes = _Outcomes(outcome)
    if outcome != Outcome():
        effort = host.programs.effort
        steps = effort.steps
        counting = _CountingHost(host)
        rehearsal = _Runner(counting, _Outcomes(Outcome()))
        raised = rehearsal.run(facts, statement, SessionEnvironment(counting))
        outcomes.fails_by_itself = raised is not None
        outcomes.count = counting.count
        effort.steps = steps
    raised = _Runner(host, outcomes).run(facts, statement, SessionEnvironment(host))
    if raised is None and outcome.error is not None:
        raised = Raised(outcome.error, "HY000", _STATED.format(outcome.error))
    return None if raised is None else raised.as_refusal


class _CountingHost(ShadowHost):
    """A session that counts what a program runs, and does none of it."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.count = 0

    def execute_inner(self, _: InnerStatement) -> Refusal | None:
        """Count a statement."""
        self.count += 1
        return None


class _Outcomes:
    """Shares what happened to a program among its statements.

    Attributes:
        whole: Of the program.
        count: How many statements it runs.
        fails_by_itself: It raises an error without a server.
    """

    def __init__(self, whole: Outcome) -> None:
        self.whole = whole
        self.count = 0
        self.fails_by_itself = False
        self._given = 0

    def following(self) -> Outcome:
        """The outcome of the statement that runs next."""
        self._given += 1
        if self.count == 1 and not self.fails_by_itself:
            return self.whole
        rows = 0 if self.whole.rows == 0 and self.whole.error is None else None
        if self._given == self.count and self.whole.error and not self.fails_by_itself:
            return self.whole
        return Outcome(rows=rows)


class _Runner:
    """Runs the programs of one outermost statement."""

    def __init__(self, host: Host, outcomes: _Outcomes) -> None:
        self._host = host
        self._outcomes = outcomes
        self._running: list[TableName] = []
        self._assignments = Assignments(host)

    def run(
        self, facts: StatementFacts, statement: str, environment: SessionEnvironment
    ) -> Raised | None:
        """Run a statement that is a program."""
        verb = facts.verb
        if facts.effects.kind is StatementKind.CALL:
            return self._call(facts, environment)
        if verb == "PREPARE":
            return self._prepare(facts, environment)
        if verb == "EXECUTE":
            return self._execute(facts, environment)
        if verb == "EXECUTE IMMEDIATE":
            text = self._text(facts.prepared, environment)
            return None if text is None else self._execute_text(Prepared(text), facts, environment)
        if verb == "DEALLOCATE":
            known = self._host.programs.prepared.pop(facts.name.lower(), None)
            return _no_statement(facts.name, "DEALLOCATE PREPARE") if known is None else None
        return self._compound(statement)

    def _compound(self, statement: str) -> Raised | None:
        """BEGIN NOT ATOMIC and other compound statements outside of routines."""
        body = read_body(statement)
        if body is None:
            self._host.programs.effort.unfollowed = "the compound statement is not understood"
            return None
        inside = RoutineEnvironment(self._host, self._host.database)
        jump = Interpreter(_InProcedure(self, statement, None)).run(body, inside)
        return jump if isinstance(jump, Raised) else None

    # CALL ----------------------------------------------------------------------------------------

    def _call(self, facts: StatementFacts, environment: SessionEnvironment) -> Raised | None:
        name = procedure_name(facts, environment.database)
        routine = self._host.objects.procedure(name)
        error = call_error(routine, name, facts)
        if routine is None or error is not None:
            return error
        depth = environment.system_variable("max_sp_recursion_depth")
        allowed = depth if isinstance(depth, int) else 0
        if self._running.count(routine.name) > allowed:
            return recursion(routine, is_mariadb=environment.is_mariadb)
        texts = facts.functions[0].arguments
        self._host.evaluates(facts, environment.database)
        self._functions_of(facts, environment, skip=1)
        with silent(environment):
            values = [evaluate(text, environment) for text in texts]
        given = {
            parameter.name.lower(): None if parameter.direction == "OUT" else value
            for parameter, value in zip(routine.parameters, values, strict=False)
        }
        inside = RoutineEnvironment(self._host, routine.name.database, routine=routine.name)
        self._running.append(routine.name)
        actions = _InProcedure(self, routine.body, routine.name)
        result = run_routine(routine, given, inside, actions)
        self._running.pop()
        if isinstance(result, Raised):
            return result
        for parameter, text in zip(routine.parameters, texts, strict=False):
            if parameter.direction != "IN":
                _give_back(text, inside.first(parameter.name), environment)
        return None

    def _functions_of(
        self, facts: StatementFacts, environment: SessionEnvironment, *, skip: int
    ) -> None:
        """Run the stored functions in the arguments of CALL, which are logged by themselves."""
        stored = [
            use
            for use in facts.functions[skip:]
            if self._host.objects.function(
                TableName(use.database or environment.database, use.name)
            )
            is not None
        ]
        if not stored:
            return
        called = [
            text for text in facts.functions[0].arguments if any(use.name in text for use in stored)
        ]
        if called:
            text = f"DO {', '.join(called)}"
            self._inner(text, text, environment, [])

    # Prepared statements -------------------------------------------------------------------------

    def _prepare(self, facts: StatementFacts, environment: SessionEnvironment) -> Raised | None:
        name = facts.name.lower()
        self._host.programs.prepared.pop(name, None)
        if self._outcomes.whole.error is not None:
            return None
        text = self._text(facts.prepared, environment)
        if text is not None:
            self._host.programs.prepared[name] = Prepared(trimmed(text))
            if facts_of(trimmed(text), environment.database).effects.stopped_at is not None:
                self._host.programs.effort.unfollowed = "the text to be prepared is not understood"
        return None

    def _text(self, source: str, environment: SessionEnvironment) -> str | None:
        """The text of a statement that a string or variable gives."""
        value = evaluate(source, environment)
        if not isinstance(value, Text):
            reason = f"the text to be prepared is not known: {source}"
            self._host.programs.effort.unfollowed = reason
            return None
        server = self._host.server
        return server_text(value.content, flavor=Flavor(server.flavor), version=server.version).read

    def _execute(self, facts: StatementFacts, environment: SessionEnvironment) -> Raised | None:
        prepared = self._host.programs.prepared.get(facts.name.lower())
        if prepared is None:
            return _no_statement(facts.name, "EXECUTE")
        return self._execute_text(prepared, facts, environment)

    def _execute_text(
        self, prepared: Prepared, facts: StatementFacts, environment: SessionEnvironment
    ) -> Raised | None:
        values = [evaluate(text, environment) for text in facts.using]
        statement, is_mariadb = trimmed(prepared.statement), self._host.server.is_mariadb
        if len(parameter_places(statement)) != len(values):
            return _WRONG_ARGUMENTS
        logged = with_values(statement, values, is_mariadb=is_mariadb)
        sql = with_values(statement, values, is_mariadb=is_mariadb, unknown="NULL")
        inner = facts_of(sql, environment.database)
        if inner.effects.stopped_at is not None:
            # No NULL may stand there, as in LIMIT.
            sql = with_values(statement, values, is_mariadb=is_mariadb, unknown="1")
            inner = facts_of(sql, environment.database)
        own = SessionEnvironment(self._host)
        if is_program(inner):
            return self.run(inner, sql, own)
        return self._inner(sql, logged, own, prepared.remembered)

    # Statements ----------------------------------------------------------------------------------

    def statement(
        self,
        statement: PlainStatement,
        body: str,
        routine: TableName | None,
        environment: RoutineEnvironment,
    ) -> Raised | None:
        """Run a statement of a procedure."""
        sql = statement.sql.text
        facts = facts_of(sql, environment.database)
        if is_program(facts):
            return self.run(facts, sql, environment)
        if facts.effects.kind is StatementKind.SET and self._sets_variables(facts, environment):
            return self._set(facts, environment)
        logged = with_constants(
            text_of(statement, body, is_mariadb=environment.is_mariadb),
            environment.names(),
            environment.declared,
            is_mariadb=environment.is_mariadb,
        )
        if logged == text_of(statement, body, is_mariadb=environment.is_mariadb):
            logged = trimmed(logged)
        remembered = self._host.programs.remembered_of(routine, statement.sql.offset)
        return self._inner(sql, logged, environment, remembered)

    def _sets_variables(self, facts: StatementFacts, environment: RoutineEnvironment) -> bool:
        return all(
            self._assignments.is_variable(assignment, environment)
            for assignment in facts.assignments
        )

    def _set(self, facts: StatementFacts, environment: RoutineEnvironment) -> Raised | None:
        """SET of local and user variables."""
        with silent(environment):
            values = [evaluate(one.value, environment) for one in facts.assignments]
        for assignment in facts.assignments:
            raised = self.functions_in(assignment.value, environment)
            if raised is not None:
                return raised
        for assignment, value in zip(facts.assignments, values, strict=True):
            self._assignments.store(assignment, value, environment)
        return None

    def functions_in(
        self, expression: str, environment: RoutineEnvironment, *, is_condition: bool = False
    ) -> Raised | None:
        """Run the stored functions of an expression, whose changes are logged by themselves."""
        if "(" not in expression and "@@" not in expression:
            return None
        sql = f"DO {expression}"
        facts = facts_of(sql, environment.database)
        self._host.evaluates(facts, environment.database)
        if not any(
            self._host.objects.function(TableName(use.database or environment.database, use.name))
            for use in facts.functions
        ):
            return None
        return self._inner(sql, sql, environment, [], is_condition=is_condition)

    def _inner(
        self,
        sql: str,
        logged: str,
        environment: SessionEnvironment,
        remembered: list[ReasonFound],
        *,
        is_condition: bool = False,
    ) -> Raised | None:
        refusal = self._host.execute_inner(
            InnerStatement(
                sql=sql,
                logged=logged,
                database=environment.database,
                environment=environment,
                remembered=remembered,
                outcome=self._outcomes.following(),
                is_condition=is_condition,
                is_procedure=bool(self._running),
            )
        )
        return None if refusal is None else Raised.by(refusal)


class _InProcedure:
    """What the statements of a procedure do."""

    def __init__(self, runner: _Runner, body: str, routine: TableName | None) -> None:
        self._runner = runner
        self._body = body
        self._routine = routine

    def statement(
        self, statement: PlainStatement, environment: RoutineEnvironment
    ) -> Raised | None:
        """Run an SQL statement."""
        return self._runner.statement(statement, self._body, self._routine, environment)

    def value(self, expression: Span, environment: RoutineEnvironment) -> Value:
        """The value of an expression; what its functions do is logged."""
        with silent(environment):
            value = evaluate(expression.text, environment)
        self._runner.functions_in(expression.text, environment, is_condition=True)
        return value


def _no_statement(name: str, verb: str) -> Raised:
    message = f"Unknown prepared statement handler ({name}) given to {verb}"
    return Raised.by(
        Refusal(errno=1243, sqlstate="HY000", symbol="ER_UNKNOWN_STMT_HANDLER", message=message)
    )


def _give_back(text: str, value: Value, environment: SessionEnvironment) -> None:
    """Store what an OUT or INOUT parameter holds in the variable that CALL names."""
    if text.startswith("@"):
        environment.assign_user_variable(user_variable_name(text), value)
    elif isinstance(environment, RoutineEnvironment):
        environment.assign(text.strip("`"), value)
