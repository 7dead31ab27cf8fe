"""What expressions can refer to: in the session, and inside of a routine or trigger."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from binlane.names import TableName
from binlane.session.programs.functions import call_built_in
from binlane.session.programs.host import Host
from binlane.session.programs.types import VariableType, default_collation
from binlane.session.programs.values import UNKNOWN, Temporal, Text, Value
from binlane.sql.body import CursorDeclaration, HandlerDeclaration

StoredFunction = Callable[[TableName, Sequence[Value]], Value]
"""Runs a stored function."""


class SessionEnvironment:
    """The session's own: user and system variables, functions; no local variables.

    Attributes:
        host: The session.
        database: Where functions without a database are looked up.
        call_stored: Runs stored functions; without it their values are unknown.
        on_read: Is told which user variables are read, with their values.
        on_assign: Is told which user variables are set.
    """

    def __init__(
        self, host: Host, database: str = "", call_stored: StoredFunction | None = None
    ) -> None:
        """Start in a database, the default one if none is given."""
        self.host = host
        self.database = database or host.database
        self.call_stored = call_stored
        self.on_read: Callable[[str, Value], None] | None = None
        self.on_assign: Callable[[str], None] | None = None

    @property
    def is_mariadb(self) -> bool:
        """MariaDB, not MySQL."""
        return self.host.server.is_mariadb

    @property
    def collation(self) -> str:
        """collation_connection."""
        return self.host.collation

    def local(self, name: str) -> Value:
        """There are no local variables."""
        raise LookupError(name)

    def user_variable(self, name: str) -> Value:
        """The value of `@name`; NULL if it was never set."""
        value = self.host.programs.user_variables.get(name)
        if self.on_read is not None:
            self.on_read(name, value)
        return value

    def assign_user_variable(self, name: str, value: Value) -> None:
        """Do `@name := value`; points in time are kept as strings."""
        if isinstance(value, Temporal):
            value = Text(value.text, "latin1_swedish_ci")
        if self.on_assign is not None:
            self.on_assign(name)
        self.host.programs.user_variables[name] = value

    def system_variable(self, name: str) -> Value:
        """The value of `@@name`."""
        return self.host.system_variable(name)

    def call(self, database: str | None, name: str, arguments: Sequence[Value]) -> Value:
        """Call a function: one that is stored, if there is one, else one that is built in."""
        if database is None:
            value = call_built_in(name, arguments, self.collation, self)
            if value is not UNKNOWN:
                return value
        stored = TableName(database or self.database, name)
        if self.call_stored is None or self.host.objects.function(stored) is None:
            return UNKNOWN
        return self.call_stored(stored, arguments)


@dataclass(slots=True)
class Variable:
    """A local variable or parameter: its name as declared, type and value."""

    name: str
    type: VariableType
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
        routine: Its name; of a block outside of routines None.
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
    ) -> None:
        """Start without scopes."""
        super().__init__(host, database, call_stored)
        self.routine = routine
        self.scopes: list[Scope] = []
        self.rows = rows
        self._row_values: dict[str, Value] = {}

    def set_row(self, values: Mapping[str, Value]) -> None:
        """Say what is known of NEW, by the columns' names in lower case."""
        self._row_values = {f"new.{name}": value for name, value in values.items()}

    def first(self, name: str) -> Value:
        """The value of a parameter after the routine ended."""
        found = self.scopes[0].variables.get(name.lower())
        return UNKNOWN if found is None else found.value

    def declare(self, name: str, type_text: str, value: Value) -> None:
        """Declare a variable in the innermost scope."""
        kind = VariableType.parse(
            type_text, collation=self.database_collation, is_mariadb=self.is_mariadb
        )
        self.scopes[-1].variables[name.lower()] = Variable(name, kind, kind.store(value))

    @property
    def database_collation(self) -> str:
        """The collation of strings whose type names none."""
        charset = self.host.objects.charset_of_database(self.database)
        if charset is None:
            return "latin1_swedish_ci" if self.is_mariadb else "utf8mb4_0900_ai_ci"
        return default_collation(charset, is_mariadb=self.is_mariadb)

    def state(self) -> object:
        """All that a loop can change here; where it stays the same the loop has no end."""
        return (
            [
                (
                    [variable.value for variable in scope.variables.values()],
                    [(cursor.is_open, cursor.fetched) for cursor in scope.cursors.values()],
                )
                for scope in self.scopes
            ],
            dict(self._row_values),
            dict(self.host.programs.user_variables),
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
