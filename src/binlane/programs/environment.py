"""What expressions can refer to: in the session, and inside of a routine or trigger."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from binlane.codec.types import Flavor
from binlane.names import TableName
from binlane.programs.conditions import NO_DATA, handles
from binlane.programs.host import Host
from binlane.sql.evaluation.evaluator import OwnText, evaluate
from binlane.sql.evaluation.values import UNKNOWN, StoredType, Temporal, Text, Value
from binlane.sql.facts import StatementFacts
from binlane.sql.servers import Dialect
from binlane.sql.tree.expressions import DataType, Expression, Node
from binlane.sql.tree.statements import Block, CursorDeclaration, HandlerDeclaration

StoredFunction = Callable[[TableName, Sequence[Value]], Value]
"""Runs a stored function."""
_NOTHING: Final = Block(0, 0, (), ())
INTEGER: Final = DataType(0, 0, "INT")


@dataclass(frozen=True, slots=True)
class Body(OwnText):
    """The text of a body with its tree; a compound statement's is in its facts."""

    tree: Node

    @property
    def text(self) -> str:
        """The whole."""
        return self.sql

    def place(self, offset: int) -> int:
        """Where a place of the tree is in the text."""
        return offset


class SessionEnvironment:
    """The session's own: user and system variables, functions; no local variables.

    Attributes:
        host: The session.
        database: Where functions without a database are looked up.
        call_stored: Runs stored functions; without it their values are unknown.
        on_read: Is told which user variables are read, with their values.
        on_assign: Is told which user variables are set, and whether they are new.
    """

    def __init__(
        self, host: Host, database: str = "", call_stored: StoredFunction | None = None
    ) -> None:
        """Start in a database, the default one if none is given."""
        self.host = host
        self.database = database or host.database
        self.call_stored = call_stored
        self.on_read: Callable[[str, Value], None] | None = None
        self.on_assign: Callable[[str, bool], None] | None = None

    @property
    def flavor(self) -> Flavor:
        """Whose rules are followed."""
        return Flavor(self.host.server.flavor)

    @property
    def is_mariadb(self) -> bool:
        """MariaDB, not MySQL."""
        return self.host.server.is_mariadb

    @property
    def dialect(self) -> Dialect:
        """How the session reads statements."""
        return self.host.dialect

    @property
    def collation(self) -> str:
        """collation_connection."""
        return self.host.collation

    def default_collation(self, charset: str) -> str:
        """The collation of a character set where none is named."""
        return self.host.server.default_collation(charset)

    def local(self, name: str) -> Value:
        """There are no local variables."""
        raise LookupError(name)

    def user_variable(self, name: str) -> Value:
        """The value of `@name`; NULL if it was never set."""
        value = self.host.programs.user_variables.get(name)
        if self.on_read is not None:
            self.on_read(name, value)
        return value

    def user_variable_values(self, name: str) -> tuple[Value, ...] | None:
        """All values that `@name` can have; None where they are not known."""
        value = self.host.programs.user_variables.get(name)
        return self.host.programs.possible.get(name) if value is UNKNOWN else (value,)

    def assign_user_variable(self, name: str, value: Value) -> None:
        """Do `@name := value`; points in time are kept as strings."""
        if isinstance(value, Temporal):
            value = Text(value.text, "latin1_swedish_ci")
        if self.on_assign is not None:
            self.on_assign(name, name not in self.host.programs.user_variables)
        self.host.programs.possible.pop(name, None)
        self.host.programs.user_variables[name] = value

    def system_variable(self, name: str, scope: str = "") -> Value:
        """The value of `@@name`."""
        return self.host.system_variable(f"{scope}.{name}" if scope else name)

    def call(self, database: str | None, name: str, arguments: Sequence[Value]) -> Value:
        """Call a stored function, if there is one."""
        stored = TableName(database or self.database, name)
        if self.call_stored is None or self.host.objects.function(stored) is None:
            return UNKNOWN
        return self.call_stored(stored, arguments)


@dataclass(slots=True)
class Variable:
    """A local variable or parameter: its name as declared, type and value."""

    name: str
    type: StoredType
    value: Value = None


@dataclass(slots=True)
class Cursor:
    """A cursor: how often a row was fetched since it was opened."""

    declaration: CursorDeclaration
    is_open: bool = False
    fetched: int = 0


@dataclass(slots=True)
class Scope:
    """What a block declares."""

    variables: dict[str, Variable] = field(default_factory=dict)
    cursors: dict[str, Cursor] = field(default_factory=dict)
    conditions: dict[str, str] = field(default_factory=dict)
    handlers: list[HandlerDeclaration] = field(default_factory=list)
    is_handling: bool = False


class RoutineEnvironment(SessionEnvironment):
    """Inside of a routine or trigger: its scopes come first.

    Attributes:
        text: Of the body that runs: what its nodes stand for.
        routine: Its name; of a block outside of routines None.
        program: What it is, such as `procedure d.p`; empty outside of stored ones.
        running: Where the statements stand that run, the outermost first.
        scopes: The innermost last.
        rows: In a trigger NEW and OLD, whose columns are not known.
    """

    def __init__(
        self,
        host: Host,
        database: str,
        *,
        routine: TableName | None = None,
        call_stored: StoredFunction | None = None,
        rows: bool = False,
        program: str = "",
    ) -> None:
        """Start without scopes."""
        super().__init__(host, database, call_stored)
        self.text: Body | StatementFacts = Body("", host.dialect, _NOTHING)
        self.routine = routine
        self.program = program
        self.running: list[int] = []
        self.scopes: list[Scope] = []
        self.rows = rows
        self._row_values: dict[str, Value] = {}

    def value(self, expression: Expression) -> Value:
        """The value of an expression of the body."""
        return evaluate(expression, self.text, self)

    def kept_text(self, statement: Node) -> str:
        """What stands behind a statement that the server keeps with it from the body.

        MySQL's ends with its last token; MariaDB's reaches to the `;` behind it, comments included.
        """
        if not self.is_mariadb:
            return ""
        body, end = self.text.text, self.text.place(statement.end)
        place = end
        while place < len(body):
            if body.startswith("/*", place):
                place = body.find("*/", place) + 2
            elif body.startswith(("#", "--"), place):
                place = body.find("\n", place) + 1 or len(body)
            elif body[place].isspace():
                place += 1
            else:
                return body[end:place] if body[place] == ";" else ""
        return ""

    def set_row(self, values: Mapping[str, Value]) -> None:
        """Say what is known of NEW, by the columns' names in lower case."""
        self._row_values = {f"new.{name}": value for name, value in values.items()}

    def first(self, name: str) -> Value:
        """The value of a parameter after the routine ended."""
        found = self.scopes[0].variables.get(name.lower())
        return UNKNOWN if found is None else found.value

    def declare(self, name: str, data_type: DataType, value: Value) -> None:
        """Declare a variable in the innermost scope."""
        kind = self.stored_type(data_type)
        self.scopes[-1].variables[name.lower()] = Variable(name, kind, kind.store(value))

    def stored_type(self, data_type: DataType) -> StoredType:
        """What values of a type become; strings of no other collation have the database's."""
        return StoredType.of(
            data_type,
            collation=self.database_collation,
            default_collation=self.default_collation,
        )

    @property
    def database_collation(self) -> str:
        """The collation of strings whose type names none."""
        charset = self.host.objects.charset_of_database(self.database)
        if charset is None:
            return "latin1_swedish_ci" if self.is_mariadb else "utf8mb4_0900_ai_ci"
        return self.default_collation(charset)

    # States, for `Ways` --------------------------------------------------------------------------

    def place(self) -> object:
        """Where in its text the program is."""
        return tuple(self.running)

    def state(self) -> object:
        """All that a loop can change here; where it stays the same the loop has no end."""
        return (
            self.place(),
            [
                (
                    [variable.value for variable in scope.variables.values()],
                    [cursor.is_open for cursor in scope.cursors.values()],
                    scope.is_handling,
                )
                for scope in self.scopes
            ],
            self._row_values,
            self.host.programs.user_variables,
        )

    def values(self) -> dict[object, Value]:
        """The values of all that holds one, by what it is."""
        return {
            **{
                (number, name): variable.value
                for number, scope in enumerate(self.scopes)
                for name, variable in scope.variables.items()
            },
            **{("row", name): value for name, value in self._row_values.items()},
            **{("user", name): value for name, value in self.host.programs.user_variables.items()},
        }

    def forget_changes(self, before: Mapping[object, Value]) -> None:
        """Know no more what changed since: it may change as often again."""
        changed = {key for key, value in self.values().items() if before.get(key) != value}
        for number, scope in enumerate(self.scopes):
            for name, variable in scope.variables.items():
                if (number, name) in changed:
                    variable.value = UNKNOWN
        for name in self._row_values:
            if ("row", name) in changed:
                self._row_values[name] = UNKNOWN
        for name in [*self.host.programs.user_variables]:
            if ("user", name) in changed:
                self.assign_user_variable(name, UNKNOWN)

    # What is declared ----------------------------------------------------------------------------

    def handles_no_row(self) -> bool:
        """Whether a handler waits for a query or cursor without a row."""
        return any(
            handles(self.condition(condition) or condition, NO_DATA)
            for scope in self.scopes
            if not scope.is_handling
            for handler in scope.handlers
            for condition in handler.conditions
        )

    def find(self, name: str) -> Variable | None:
        """The variable of a name, in the innermost scope that has one."""
        key = name.lower()
        for scope in reversed(self.scopes):
            if (found := scope.variables.get(key)) is not None:
                return found
        return None

    def has(self, name: str) -> bool:
        """Whether there is such a variable, or a column of NEW or OLD."""
        is_column = self.rows and name.lower().startswith(("new.", "old."))
        return is_column or self.find(name) is not None

    def cursor(self, name: str) -> Cursor | None:
        """The cursor of a name."""
        for scope in reversed(self.scopes):
            if (found := scope.cursors.get(name.lower())) is not None:
                return found
        return None

    def condition(self, name: str) -> str | None:
        """What a declared condition stands for."""
        for scope in reversed(self.scopes):
            if (found := scope.conditions.get(name.lower())) is not None:
                return found
        return None

    def names(self) -> frozenset[str]:
        """The names of all variables, in lower case."""
        return frozenset(name for scope in self.scopes for name in scope.variables)

    def declared(self, name: str) -> tuple[str, Value]:
        """A variable's name as declared, and its value."""
        found = self.find(name)
        return (name, UNKNOWN) if found is None else (found.name, found.value)

    def local(self, name: str) -> Value:
        """The value of a local variable, or of a column of NEW and OLD as far as it was set."""
        found = self.find(name)
        if found is not None:
            return found.value
        if self.rows and "." in name:
            return self._row_values.get(name.lower(), UNKNOWN)
        raise LookupError(name)

    def assign(self, name: str, value: Value) -> bool:
        """Set a local variable, or a column of NEW; False if there is none of that name."""
        found = self.find(name)
        if found is not None:
            found.value = found.type.store(value)
            return True
        if self.has(name):
            self._row_values[name.lower()] = value
            return True
        return False
