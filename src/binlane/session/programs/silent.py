"""Values of stored functions without what they do: for expressions that are evaluated twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from binlane.names import TableName
from binlane.policy.server import Server
from binlane.session.programs.conditions import Raised
from binlane.session.programs.environment import RoutineEnvironment, SessionEnvironment
from binlane.session.programs.expressions import evaluate
from binlane.session.programs.host import Host, InnerStatement, ProgramState
from binlane.session.programs.routines import Assignments, facts_of, run_routine
from binlane.session.programs.values import UNKNOWN, Value
from binlane.session.report import Refusal
from binlane.sql.body import PlainStatement, Span
from binlane.sql.catalog import SchemaCatalog
from binlane.sql.effects import StatementKind
from binlane.sql.facts import StatementFacts


class ShadowHost:
    """A session whose user variables may change without effect on the real one."""

    def __init__(self, host: Host) -> None:
        """Copy what programs change."""
        self._host = host
        self._programs = replace(
            host.programs,
            user_variables=dict(host.programs.user_variables),
            prepared=dict(host.programs.prepared),
        )

    @property
    def server(self) -> Server:
        """Whose rules are followed."""
        return self._host.server

    @property
    def objects(self) -> SchemaCatalog:
        """The server's objects."""
        return self._host.objects

    @property
    def database(self) -> str:
        """The default database."""
        return self._host.database

    @property
    def collation(self) -> str:
        """collation_connection."""
        return self._host.collation

    @property
    def programs(self) -> ProgramState:
        """The copy."""
        return self._programs

    def system_variable(self, name: str) -> Value:
        """The value of `@@name`."""
        return self._host.system_variable(name)

    def has_sql_mode(self, mode: str) -> bool:
        """Whether a mode is one of sql_mode."""
        return self._host.has_sql_mode(mode)

    def evaluates(self, facts: StatementFacts, database: str) -> None:
        """Note nothing."""

    def execute_inner(self, _: InnerStatement) -> Refusal | None:
        """Do nothing."""
        return None


class _Silent:
    """Statements of a function that only set variables."""

    def __init__(self, host: Host) -> None:
        self._assignments = Assignments(host)

    def statement(
        self, statement: PlainStatement, environment: RoutineEnvironment
    ) -> Raised | None:
        """Do what a statement does to variables."""
        facts = facts_of(statement.sql.text, environment.database)
        if facts.effects.kind is StatementKind.SET:
            self._assignments.of_set(facts, environment)
        elif facts.has_into:
            self._assignments.of_select(statement.sql.text, environment)
        return None

    def value(self, expression: Span, environment: RoutineEnvironment) -> Value:
        """The value of an expression."""
        return evaluate(expression.text, environment)


class _SilentFunctions:
    """Runs stored functions for their values alone."""

    def __init__(self, host: Host) -> None:
        self._real = host
        self._shadow: Host | None = None
        self._running: list[TableName] = []

    def __call__(self, name: TableName, arguments: Sequence[Value]) -> Value:
        routine = self._real.objects.function(name)
        if routine is None or routine.name in self._running:
            return UNKNOWN
        if self._shadow is None:
            self._shadow = ShadowHost(self._real)
        host = self._shadow
        self._running.append(routine.name)
        environment = RoutineEnvironment(host, routine.name.database, call_stored=self)
        names = [parameter.name.lower() for parameter in routine.parameters]
        given = dict(zip(names, arguments, strict=False))
        value = run_routine(routine, given, environment, _Silent(host))
        self._running.pop()
        return UNKNOWN if isinstance(value, Raised) else value


@contextmanager
def silent(environment: SessionEnvironment) -> Iterator[None]:
    """Evaluate expressions: functions in them leave nothing behind, reading is not noted."""
    call_stored, on_read = environment.call_stored, environment.on_read
    environment.call_stored = _SilentFunctions(environment.host)
    environment.on_read = None
    yield
    environment.call_stored, environment.on_read = call_stored, on_read
