"""Names that expressions can refer to, in the session and inside of a routine or trigger.

The module also assigns local and user variables: SET, SELECT … INTO, `:=`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.statements.programs.host import NO_DATA, Host, handles
from binlane.statements.sql.evaluation.evaluator import evaluate
from binlane.statements.sql.evaluation.known_names import OwnText
from binlane.statements.sql.evaluation.stored_types import StoredType
from binlane.statements.sql.evaluation.values import UNKNOWN, Temporal, Text, Value
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.tree.expressions import (
    DataType,
    Expression,
    Node,
)
from binlane.statements.sql.tree.statements import (
    Block,
    CursorDeclaration,
    HandlerDeclaration,
)

StoredFunction = Callable[[TableName, Sequence[Value]], Value]
"""Runs a stored function."""


_NOTHING: Final = Block(0, 0, (), ())


INTEGER: Final = DataType(0, 0, "INT")


_Declared = TypeVar("_Declared")


@dataclass(frozen=True, slots=True)
class ProgramBody(OwnText):
    """The text of a body with its tree; a compound statement's is in its facts."""

    tree: Node

    @property
    def text(self) -> str:
        """Return the whole text of the body."""
        return self.sql

    def place(self, offset: int) -> int:
        """Return the position in the text of a place of the tree."""
        return offset


class SessionEnvironment:
    """The session's own names: user and system variables, functions; no local variables.

    Attributes:
        host: Session that the names belong to.
        database: Database in which functions without one are looked up.
        call_stored: Runs stored functions; without it their values are unknown.
        on_read: Callback that gets the user variables that are read, with their values.
        on_assign: Callback that gets the user variables that are set, and whether they are new.
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
        """Return the flavor whose rules are followed."""
        return Flavor(self.host.server.flavor)

    @property
    def is_mariadb(self) -> bool:
        """True if the server is MariaDB, not MySQL."""
        return self.host.server.is_mariadb

    @property
    def dialect(self) -> Dialect:
        """Return the dialect in which the session reads statements."""
        return self.host.dialect

    @property
    def collation(self) -> str:
        """collation_connection."""
        return self.host.collation

    def default_collation(self, charset: str) -> str:
        """The collation of a character set where none is named."""
        return self.host.server.default_collation(charset)

    def local(self, name: str) -> Value:
        """Raise LookupError: the session itself has no local variables."""
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
        self.host.programs.know(name, value)

    def system_variable(self, name: str, scope: str = "") -> Value:
        """The value of `@@name`."""
        return self.host.system_variable(f"{scope}.{name}" if scope else name)

    def called(self, database: str | None, name: str) -> TableName:
        """The whole name of a routine that is called here."""
        calls_packages = self.host.dialect.calls_packages
        return self.host.objects.called(
            database, name, self.database, calls_packages=calls_packages
        )

    def call(self, database: str | None, name: str, arguments: Sequence[Value]) -> Value:
        """Call a stored function, if there is one."""
        stored = self.called(database, name)
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
class OpenCursor:
    """A cursor: how often a row was fetched since it was opened, and if the last FETCH had one."""

    declaration: CursorDeclaration
    is_open: bool = False
    fetched: int = 0
    has_row: bool | None = None

    def attribute(self, name: str) -> Value:
        """Return the value of `cursor%name`: FOUND, NOTFOUND, ISOPEN or ROWCOUNT."""
        if name == "ISOPEN":
            return int(self.is_open)
        if name == "ROWCOUNT":
            return self.fetched
        return None if self.has_row is None else int(self.has_row == (name == "FOUND"))


@dataclass(slots=True)
class BlockScope:
    """The declarations of a block."""

    variables: dict[str, Variable] = field(default_factory=dict)
    cursors: dict[str, OpenCursor] = field(default_factory=dict)
    conditions: dict[str, str] = field(default_factory=dict)
    handlers: list[HandlerDeclaration] = field(default_factory=list)
    is_handling: bool = False


class RoutineEnvironment(SessionEnvironment):
    """Names inside of a routine or trigger: its scopes come before the session's names.

    Attributes:
        text: Text of the body that runs, to which its nodes refer.
        routine: Name of the routine; None for a block outside of routines.
        program: Kind and name of the program, such as `procedure d.p`; empty outside of stored ones.
        running: Positions of the statements that run, the outermost first.
        scopes: Scopes of the blocks that run, the innermost last.
        rows: NEW and OLD in a trigger, whose columns are not known.
        fetched: Number of rows that an aggregate function has fetched.
        is_behind_group: The aggregate function has fetched all rows of its group.
    """

    def __init__(
        self,
        host: Host,
        database: str,
        *,
        routine: TableName | None = None,
        call_stored: StoredFunction | None = None,
        program: str = "",
    ) -> None:
        """Start without scopes."""
        super().__init__(host, database, call_stored)
        self.text: ProgramBody | StatementFacts = ProgramBody("", host.dialect, _NOTHING)
        self.routine = routine
        self.program = program
        self.running: list[int] = []
        self.scopes: list[BlockScope] = []
        self.rows = False
        self.fetched = 0
        self.is_behind_group = False
        self._row_values: dict[str, Value] = {}

    def called(self, database: str | None, name: str) -> TableName:
        """The whole name of a routine that is called here; first those of the own package."""
        calls_packages = self.text.dialect.calls_packages
        return self.host.objects.called(
            database, name, self.database, calls_packages=calls_packages, caller=self.routine
        )

    def value(self, expression: Expression) -> Value:
        """The value of an expression of the body."""
        return evaluate(expression, self.text, self)

    def kept_text(self, statement: Node) -> str:
        """Return the text behind a statement that the server keeps with the statement.

        MySQL's text ends with the last token; MariaDB's reaches to the `;` behind it, comments included.
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
        """Set the known values of NEW, by the columns' names in lower case."""
        self._row_values = {f"new.{name}": value for name, value in values.items()}

    def first(self, name: str) -> Value:
        """The value of a parameter after the routine ended."""
        found = self.scopes[0].variables.get(name.lower())
        return UNKNOWN if found is None else found.value

    def declare(self, name: str, data_type: DataType, value: Value) -> None:
        """Declare a variable in the innermost scope, and the fields of a row."""
        variables, kind = self.scopes[-1].variables, self.stored_type(data_type)
        is_row = bool(data_type.fields)
        variables[name.lower()] = Variable(name, kind, UNKNOWN if is_row else kind.store(value))
        of_fields = None if value is None else UNKNOWN
        for field_name, field_type in zip(data_type.arguments, data_type.fields, strict=False):
            of_field = Variable(field_name, self.stored_type(field_type), of_fields)
            variables[f"{name}.{field_name}".lower()] = of_field
        if data_type.name == _ROW_OF_ANOTHER:
            variables[f"{name}.*".lower()] = Variable(name, kind, UNKNOWN)

    def stored_type(self, data_type: DataType) -> StoredType:
        """Return the type in which values are stored; strings without a collation get the database's."""
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
        """Return the program's position in its text."""
        return tuple(self.running)

    def state(self) -> object:
        """Return all state that a loop can change; a loop in which it stays the same has no end."""
        return (
            self.place(),
            [
                (
                    [variable.value for variable in scope.variables.values()],
                    [(cursor.is_open, cursor.has_row) for cursor in scope.cursors.values()],
                    scope.is_handling,
                )
                for scope in self.scopes
            ],
            self._row_values,
            (min(self.fetched, 1), self.is_behind_group),
            self.host.programs.user_variables,
        )

    def values(self) -> dict[object, Value]:
        """Return the values of all variables and columns that have one, by scope number and name."""
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
        """Forget the values of variables that changed since `before`: these may change as often again."""
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

    # Declarations --------------------------------------------------------------------------------

    def handles_no_row(self) -> bool:
        """True if a handler waits for a query or cursor without a row."""
        return any(
            handles(self.condition(condition) or condition, NO_DATA)
            for scope in self.scopes
            if not scope.is_handling
            for handler in scope.handlers
            for condition in handler.conditions
        )

    def find(self, name: str) -> Variable | None:
        """The variable of a name, in the innermost scope that has one."""
        return self._innermost(name, [scope.variables for scope in self.scopes])

    def has(self, name: str) -> bool:
        """True if there is a variable of this name, or a column of NEW or OLD."""
        is_column = self.rows and name.lower().startswith(("new.", "old."))
        return is_column or self.find(name) is not None or self._is_field(name)

    def _is_field(self, name: str) -> bool:
        """True if a name is that of a field of a row, which may have any field."""
        row, _, field_name = name.rpartition(".")
        return bool(row and field_name) and self.find(f"{row}.*") is not None

    def cursor(self, name: str) -> OpenCursor | None:
        """The cursor of a name."""
        return self._innermost(name, [scope.cursors for scope in self.scopes])

    def condition(self, name: str) -> str | None:
        """Return the condition for which a declared condition name stands."""
        return self._innermost(name, [scope.conditions for scope in self.scopes])

    def _innermost(
        self, name: str, declared: Sequence[Mapping[str, _Declared]]
    ) -> _Declared | None:
        found = (each[name.lower()] for each in reversed(declared) if name.lower() in each)
        return next(found, None)

    def names(self) -> frozenset[str]:
        """The names of all variables, in lower case."""
        return frozenset(name for scope in self.scopes for name in scope.variables)

    def hides(self, name: str) -> bool:
        """True if a name, or its part before the first dot, may be something declared here."""
        is_row = self.rows and name.lower() in ("new", "old")
        return is_row or self.find(name) is not None or self.find(f"{name}.*") is not None

    def declared(self, name: str) -> tuple[str, Value]:
        """A variable's name as declared, that of a row's field as given, and its value."""
        found = self.find(name)
        if found is None:
            return name, UNKNOWN
        return (name if "." in name else found.name), found.value

    def local(self, name: str) -> Value:
        """The value of a local variable, or of a column of NEW and OLD as far as it was set.

        So are `cursor%FOUND` and its like.
        """
        name, _, attribute = name.partition("%")
        if attribute:
            cursor = self.cursor(name)
            return UNKNOWN if cursor is None else cursor.attribute(attribute)
        found = self.find(name)
        if found is not None:
            return found.value
        if self.rows and "." in name:
            return self._row_values.get(name.lower(), UNKNOWN)
        if self._is_field(name):
            return UNKNOWN
        raise LookupError(name)

    def assign(self, name: str, value: Value) -> bool:
        """Set a local variable, or a column of NEW; False if there is none of that name."""
        found = self.find(name)
        if found is not None:
            found.value = found.type.store(value)
            self._forget_fields(name)
            return True
        if self._is_field(name):
            return True
        if self.has(name):
            self._row_values[name.lower()] = value
            return True
        return False

    def _forget_fields(self, name: str) -> None:
        """Forget the values of the fields of a row that is set as a whole."""
        start = f"{name.lower()}."
        scope = next((one for one in reversed(self.scopes) if name.lower() in one.variables), None)
        for key, variable in () if scope is None else scope.variables.items():
            if key.startswith(start):
                variable.value = UNKNOWN


_ROW_OF_ANOTHER: Final = "ROW TYPE OF"
"""The type of a row with the columns of a table or cursor."""
