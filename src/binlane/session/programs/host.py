"""What a session gives to the programs that run in it, and what they give back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from binlane.names import TableName
from binlane.policy.reasons_found import ReasonFound
from binlane.policy.server import Server
from binlane.session.programs.expression_environment import Environment
from binlane.session.programs.values import Value
from binlane.session.report import Outcome, Refusal
from binlane.sql.catalog import SchemaCatalog
from binlane.sql.facts import StatementFacts

STEPS_MAX: Final = 40_000
"""After so many statements and rounds a program is not followed any longer."""


@dataclass(slots=True)
class Prepared:
    """A prepared statement.

    Attributes:
        statement: Its text as PREPARE was given it.
        remembered: Unsafe reasons of earlier executions: both servers keep them.
    """

    statement: str
    remembered: list[ReasonFound] = field(default_factory=list)


@dataclass(slots=True)
class Effort:
    """How much is run for one statement of the client; shared by all programs in it.

    Attributes:
        steps: Statements and rounds of loops so far.
        unfollowed: What could not be followed, and so is not known; empty if nothing.
    """

    steps: int = 0
    unfollowed: str = ""

    def spend(self) -> bool:
        """Take one step; whether there may be more."""
        self.steps += 1
        if self.steps > STEPS_MAX and not self.unfollowed:
            self.unfollowed = f"it runs more than {STEPS_MAX:,} statements, which are not followed"
        return self.steps <= STEPS_MAX

    def give_up(self, reason: str) -> None:
        """Take no more steps."""
        self.steps, self.unfollowed = STEPS_MAX, reason

    def reset(self) -> None:
        """A new statement of the client begins."""
        self.steps, self.unfollowed = 0, ""


@dataclass(slots=True)
class ProgramState:
    """What a session keeps for its programs.

    Attributes:
        user_variables: By name in lower case.
        prepared: By name in lower case.
        remembered: Unsafe reasons that statements of procedures showed when they ran, by the
            procedure's name and the statement's place in its body. Both servers keep them until a
            routine is created, altered or dropped: `forget_routines`.
        effort: Of the current statement of the client.
    """

    user_variables: dict[str, Value] = field(default_factory=dict)
    prepared: dict[str, Prepared] = field(default_factory=dict)
    remembered: dict[tuple[TableName, int], list[ReasonFound]] = field(default_factory=dict)
    effort: Effort = field(default_factory=Effort)

    def remembered_of(self, routine: TableName | None, offset: int) -> list[ReasonFound]:
        """Where the reasons of a procedure's statement are kept; outside of one they are not."""
        return [] if routine is None else self.remembered.setdefault((routine, offset), [])

    def forget_routines(self) -> None:
        """Routines changed: the servers read all of them anew."""
        self.remembered.clear()


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerStatement:
    """A statement that a program runs, decided and logged as one of its own.

    Attributes:
        sql: As it stands in the body, or as it was prepared with its values in place.
        logged: As it is logged: local variables and parameters replaced by their values.
        database: The default database while it runs.
        environment: What its expressions can refer to.
        remembered: Unsafe reasons of earlier executions. They join those of this one; what the
            decision finds is to be added.
        outcome: What happened.
        is_procedure: It stands in the body of a procedure.
        is_condition: It is the condition of an IF, CASE or loop, or a DEFAULT: what its functions
            do is then logged at once, outside of the transaction.
    """

    sql: str
    logged: str
    database: str
    environment: Environment
    remembered: list[ReasonFound] = field(default_factory=list)
    outcome: Outcome = field(default_factory=Outcome)
    is_condition: bool = False
    is_procedure: bool = True


class Host(Protocol):
    """The session, as programs see it."""

    @property
    def server(self) -> Server:
        """Whose rules are followed."""

    @property
    def objects(self) -> SchemaCatalog:
        """The server's objects, temporary tables of the session included."""

    @property
    def database(self) -> str:
        """The default database."""

    @property
    def collation(self) -> str:
        """collation_connection."""

    @property
    def programs(self) -> ProgramState:
        """What the session keeps for its programs."""

    def system_variable(self, name: str) -> Value:
        """The value of `@@name`; `name` in lower case, with its scope if one is given."""

    def has_sql_mode(self, mode: str) -> bool:
        """Whether a mode, in capitals, is one of sql_mode."""

    def evaluates(self, facts: StatementFacts, database: str) -> None:
        """Note that a program evaluates expressions: arguments of CALL, SET, a condition.

        One that is unsafe has MySQL log all that follows in the program as rows under MIXED.
        """

    def execute_inner(self, statement: InnerStatement) -> Refusal | None:
        """Run one statement of a program; the error if it fails.

        What it logs becomes part of what the outermost statement logs.
        """


class SessionValues(NamedTuple):
    """Values of the session that a logged text depends on, and that are logged before it.

    Attributes:
        last_insert_id: LAST_INSERT_ID() is read.
        insert_id: The server chose AUTO_INCREMENT values.
        random: RAND() is called.
    """

    last_insert_id: bool = False
    insert_id: bool = False
    random: bool = False

    def with_those(self, other: SessionValues) -> SessionValues:
        """Those of both."""
        if other is NO_VALUES:
            return self
        return SessionValues(*(one or two for one, two in zip(self, other, strict=True)))


NO_VALUES: Final = SessionValues()


class RowRun(NamedTuple):
    """Rows of one kind written to one table, one after the other.

    Attributes:
        table: Which.
        kind: `insert`, `update` or `delete`.
        is_cascade: A foreign key changes them.
    """

    table: TableName
    kind: str
    is_cascade: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCall:
    """A call of a stored function by SELECT, DO or SET that is logged in statement format.

    Attributes:
        text: ``SELECT `db`.`f`(args)``.
        writes: The tables that its statements write.
        user_variables: Infos of the `User var` events before it.
        values: What else is logged before it.
    """

    text: str
    writes: frozenset[TableName]
    user_variables: tuple[str, ...] = ()
    values: SessionValues = NO_VALUES


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What a statement does to rows, through its triggers and functions.

    Attributes:
        runs: In the order in which the server writes them; equal neighbours are one.
        annotation: The text of the statement that changes the first row: the statement itself,
            or one of a function or BEFORE trigger.
        calls: Of SELECT, DO and SET: function calls that are logged in statement format.
        user_variables: Infos of `User var` events for a statement that is logged as its text.
        values: What its functions and triggers depend on, to be logged before its text.
        error: With which a function or trigger stopped it.
    """

    runs: tuple[RowRun, ...] = ()
    annotation: str = ""
    calls: tuple[FunctionCall, ...] = ()
    user_variables: tuple[str, ...] = ()
    values: SessionValues = NO_VALUES
    error: Refusal | None = None
