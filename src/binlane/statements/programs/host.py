"""The interface between a session and the programs that run in it.

The module also has the errors and other conditions of a program, and the handlers that match them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, NamedTuple, Protocol

from binlane.names import TableName, quote
from binlane.statements.policy.reasons import ReasonFound
from binlane.statements.policy.refusals import Outcome, Refusal
from binlane.statements.policy.resolution import ResolvedStatement
from binlane.statements.policy.server import Server
from binlane.statements.policy.server_errors import ServerErrors
from binlane.statements.programs.ways import Paths, SinglePath
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.evaluation.known_names import Environment
from binlane.statements.sql.evaluation.values import UNKNOWN, Temporal, Value, number_text
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.schema import Routine, Trigger
from binlane.statements.sql.servers import ANY, Dialect


class LoggedVariable(NamedTuple):
    """A USER_VAR event for a variable that a statement reads.

    Attributes:
        name: Name of the variable without `@`.
        value: Value of the variable before that statement.
    """

    name: str
    value: Value


class SessionValues(NamedTuple):
    """Values of the session that a logged text depends on, and that are logged before it.

    Attributes:
        last_insert_id: The text reads the value of LAST_INSERT_ID().
        insert_id: The server chose AUTO_INCREMENT values.
        random: The text calls RAND() without a seed.
    """

    last_insert_id: bool = False
    insert_id: bool = False
    random: bool = False

    def with_those(self, other: SessionValues) -> SessionValues:
        """Join the values of both."""
        if other is NO_VALUES:
            return self
        return SessionValues(*(one or two for one, two in zip(self, other, strict=True)))


NO_VALUES: Final = SessionValues()

NO_DATA: Final = Refusal(
    *(1329, "02000", "ER_SP_FETCH_NO_DATA"),
    "No data - zero rows fetched, selected, or processed",
    is_own=True,
)


def handles(condition: str, raised: Refusal) -> int:
    """Return how exactly a handler's condition names a raised error; 0 if the condition does not name it.

    Args:
        condition: `NOT FOUND`, `SQLEXCEPTION`, `SQLWARNING`, `SQLSTATE 23000` or a number.
        raised: The error or condition that was raised.
    """
    words = condition.upper().replace("'", " ").replace('"', " ").split()
    if not words:
        return 0
    if words[0].isdigit():
        return 3 if int(words[0]) == raised.errno else 0
    if words[0] == "SQLSTATE":
        return 2 if words[-1] == raised.sqlstate else 0
    named = {"SQLWARNING": "01", "NOT": "02"}.get(words[0])
    if named is not None:
        return 1 if raised.sqlstate.startswith(named) else 0
    is_exception = raised.sqlstate[:2] not in {"00", "01", "02"}
    return 1 if words[0] in {"SQLEXCEPTION", "OTHERS"} and is_exception else 0


def table_in_use(name: TableName, *, is_mariadb: bool) -> Refusal:
    """Return error 1442 for a table that the statement already uses."""
    message = (
        f"Can't update table '{name.table}' in stored function/trigger because it is already used "
        f"by statement which invoked this stored function/trigger{'' if is_mariadb else '.'}"
    )
    return Refusal(1442, "HY000", "ER_CANT_UPDATE_USED_TABLE_IN_SF_OR_TRG", message)


STEPS_MAX: Final = 40_000
"""After so many statements and rounds a program is not followed any longer; after half as many on
all ways together no further way is."""
STEPS_BESIDE_OTHERS_MAX: Final = 8_000
"""The same where other sessions wait meanwhile."""
CHARACTERS_OF_STEP: Final = 4_096
"""Characters of variables that a round of a loop may look at for each step."""


@dataclass(slots=True)
class Remembered:
    """Unsafe reasons of earlier executions of a statement, which servers keep with it.

    Attributes:
        reasons: Unsafe reasons of all earlier executions.
        is_of_routine: The statement stands in a procedure.
        tables: Number of changes of each table when the reasons were found.
    """

    reasons: list[ReasonFound] = field(default_factory=list)
    is_of_routine: bool = False
    tables: tuple[int, ...] = ()

    def copy(self) -> Remembered:
        """Copy the present state."""
        return Remembered(self.reasons.copy(), self.is_of_routine, self.tables)


@dataclass(slots=True)
class Prepared:
    """A prepared statement.

    Attributes:
        statements: The statement's text as PREPARE got it; all possible texts, where that depends on data:
            None stands for none prepared. Empty if the text cannot be known.
        remembered: Unsafe reasons of earlier executions.
        dialect: Dialect in which PREPARE has read the text.
    """

    statements: tuple[str | None, ...]
    remembered: Remembered = field(default_factory=Remembered)
    dialect: Dialect = ANY


class Expected(NamedTuple):
    """The course of a program of which the script states nothing.

    Attributes:
        statements: Number of statements that the program runs.
        fails: The program raises an error without a server.
    """

    statements: int
    fails: bool


@dataclass(slots=True)
class Effort:
    """The work done for one statement of the client; shared by all programs in that statement.

    Attributes:
        steps: Statements and rounds of loops so far on the way that is followed now.
        unfollowed: Reason why some part could not be followed, and so is not known; empty if there is none.
        steps_of_all: Steps of all ways before the one that is followed now.
        most: Number of steps that may be taken.
    """

    steps: int = 0
    unfollowed: str = ""
    steps_of_all: int = 0
    most: int = STEPS_MAX

    def spend(self, steps: int = 1) -> bool:
        """Count one step, or several for a longer action; False if there may be no more steps."""
        self.steps += steps
        if self.steps > self.most and not self.unfollowed:
            self.unfollowed = f"it runs more than {self.most:,} statements, which are not followed"
        return self.steps <= self.most

    @property
    def is_spent(self) -> bool:
        """True if no more ways of the statement are to be followed."""
        return self.steps_of_all > self.most // 2

    def begin_way(self) -> None:
        """Begin another way, on which the statement is followed again."""
        self.steps_of_all += self.steps
        self.steps, self.unfollowed = 0, ""

    def give_up(self, reason: str) -> None:
        """Take no more steps."""
        self.steps, self.unfollowed = self.most, reason

    def reset(self) -> None:
        """Begin a new statement of the client."""
        self.steps = self.steps_of_all = 0
        self.unfollowed = ""

    def copy(self) -> Effort:
        """Copy the present state."""
        return Effort(self.steps, self.unfollowed, self.steps_of_all, self.most)


@dataclass(slots=True)
class ProgramState:
    """The session's memory for its programs.

    Attributes:
        user_variables: Values of user variables by name in lower case.
        variable_names: Names of user variables, as the text that made them writes them, by name in lower
            case.
        prepared: Prepared statements by name in lower case.
        remembered: Unsafe reasons that statements of procedures showed when they ran, by the procedure's name
            and the statement's position in its body. Both servers keep the reasons until they read their
            routines anew (`forget_routines`).
        tables: Number of changes of each table that make servers prepare statements anew; the key None stands
            for all tables.
        effort: Work done for the current statement of the client.
        ways: Ways of the current statement of the client.
        expected: Course of the program that an outcome is stated of, once that was found out.
        possible: Values of user variables that can have several values.
        hides_prepared: The session may have unknown prepared statements, because it is followed late.
    """

    user_variables: dict[str, Value] = field(default_factory=dict)
    variable_names: dict[str, str] = field(default_factory=dict)
    prepared: dict[str, Prepared] = field(default_factory=dict)
    remembered: dict[tuple[TableName, int], Remembered] = field(default_factory=dict)
    tables: dict[TableName | None, int] = field(default_factory=dict)
    effort: Effort = field(default_factory=Effort)
    ways: Paths | SinglePath = field(default_factory=SinglePath)
    expected: Expected | None = None
    possible: dict[str, tuple[Value, ...]] = field(default_factory=dict)
    hides_prepared: bool = False

    def copy(self) -> ProgramState:
        """Copy the present state."""
        return ProgramState(
            user_variables=self.user_variables.copy(),
            variable_names=self.variable_names.copy(),
            prepared={
                name: Prepared(one.statements, one.remembered.copy(), one.dialect)
                for name, one in self.prepared.items()
            },
            remembered={place: reasons.copy() for place, reasons in self.remembered.items()},
            tables=self.tables.copy(),
            effort=self.effort.copy(),
            ways=self.ways,
            expected=self.expected,
            possible=self.possible.copy(),
            hides_prepared=self.hides_prepared,
        )

    def named(self, written: str) -> str:
        """The name of a user variable: as it was written first."""
        return self.variable_names.setdefault(written.lower(), written)

    def know(self, name: str, value: Value) -> None:
        """Know the value of a user variable, whatever it was taken for."""
        self.user_variables[name] = value
        self.possible.pop(name, None)

    def remembered_of(self, routine: TableName | None, offset: int) -> Remembered:
        """Return the store for the reasons of a procedure's statement; a new one outside of a procedure."""
        if routine is None:
            return Remembered()
        return self.remembered.setdefault((routine, offset), Remembered(is_of_routine=True))

    def change_tables(self, *names: TableName | None) -> None:
        """Note changed tables, all of them for None: statements that use them are prepared anew."""
        for name in names:
            self.tables[name] = self.tables.get(name, 0) + 1

    def changes_of(self, names: Iterable[TableName]) -> tuple[int, ...]:
        """Return the number of changes of each table, the count of all first."""
        return (self.tables.get(None, 0), *(self.tables.get(name, 0) for name in names))

    def forget_routines(self) -> None:
        """Forget the reasons of routines, as the servers read all routines anew."""
        self.remembered.clear()


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerStatement:
    """A statement that a program runs, decided and logged as one of its own.

    Attributes:
        sql: Text as it stands in the body, or as it was prepared with its values in place.
        dialect: Dialect in which `sql` is read.
        logged: Text as it is logged: local variables and parameters replaced by their values.
        database: The default database while the statement runs.
        environment: Names that the statement's expressions can refer to.
        remembered: Unsafe reasons of earlier executions. These join the reasons of this execution, and what
            the decision finds is to be added to them.
        outcome: Result of the statement's execution.
        is_procedure: The statement stands in the body of a procedure.
        is_condition: The statement is the condition of an IF, CASE or loop, or a DEFAULT: what its functions
            do is then logged at once, outside of the transaction.
    """

    sql: str
    dialect: Dialect
    logged: str
    database: str
    environment: Environment
    remembered: Remembered = field(default_factory=Remembered)
    outcome: Outcome = field(default_factory=Outcome)
    is_condition: bool = False
    is_procedure: bool = True


class Host(Protocol):
    """The session, as programs see it."""

    @property
    def server(self) -> Server:
        """Return the server whose rules are followed."""

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
    def dialect(self) -> Dialect:
        """Return the dialect in which the session reads statements."""

    @property
    def errors(self) -> ServerErrors:
        """Return the prediction of the server's errors."""

    @property
    def programs(self) -> ProgramState:
        """Return the session's memory for its programs."""

    def system_variable(self, name: str) -> Value:
        """The value of `@@name`; `name` in lower case, with its scope if one is given."""

    def quote(self, name: TableName) -> str:
        """Return a name as texts that the server writes have it."""

    def has_sql_mode(self, mode: str) -> bool:
        """True if a mode, in capitals, is one of sql_mode."""

    def evaluates(self, facts: StatementFacts, database: str) -> Refusal | None:
        """Note that a program evaluates expressions: arguments of CALL, SET, a condition.

        Returns why their tables cannot be opened, if so.

        One that is unsafe has MySQL log all that follows in the program as rows under MIXED.
        """

    def denied(self, facts: StatementFacts, database: str) -> Refusal | None:
        """Return the refusal to run a statement under the privileges that hold; None if it is allowed."""

    def acting_for(self, program: Routine | Trigger) -> AbstractContextManager[Refusal | None]:
        """Run a program in the context of its creation, with the privileges of its definer or caller.

        The value of the context is the error if that account does not exist.
        """

    def resolved(self, facts: StatementFacts, database: str) -> ResolvedStatement:
        """The tables and functions of a statement."""

    def unknown_column(
        self, facts: StatementFacts, database: str, is_local: Callable[[str], bool]
    ) -> Refusal | None:
        """Return the error of columns that a statement names and that do not exist.

        Args:
            facts: Facts of the statement's text.
            database: Default database of the statement's names.
            is_local: True for names that are declared around the statement.
        """

    def depends_on(
        self,
        facts: StatementFacts,
        resolved: ResolvedStatement,
        environment: Environment,
    ) -> SessionValues:
        """Return the session values that a statement's text depends on, triggers and functions left out."""

    def refusal_in_body(self, facts: StatementFacts) -> Refusal | None:
        """Return the refusal of a SET in a function or trigger; None if it is allowed."""

    def execute_inner(self, statement: InnerStatement) -> Refusal | None:
        """Run one statement of a program; the error if it fails.

        Events that the inner statement logs become part of the outermost statement's events.
        """


def printed_variable(variable: LoggedVariable, server: Server) -> str:
    """Return the text that a server's SHOW BINLOG EVENTS prints for a `User var` event."""
    name, value = variable
    if value is None:
        shown = "NULL"
    elif value is UNKNOWN:
        shown = "#"
    elif isinstance(value, int | float | Decimal):
        shown = number_text(value)
    elif isinstance(value, Temporal):
        shown = f"'{value.text}'"
    else:
        digits = value.encoded.hex().upper()
        bytes_text = f"X'{digits}'" if server.is_mariadb else f"0x{digits}"
        if not digits:
            bytes_text = '""'
        shown = f"_{value.charset} {bytes_text} COLLATE {value.collation}"
    return f"@{quote(name)}={shown}"
