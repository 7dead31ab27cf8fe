"""The session in which a script runs that makes objects, as far as they hang on it.

Dumps say in which sql_mode each routine and trigger was made: they keep the session's in a user
variable, set that of the program, and set it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from binlane.log.codec.types import Flavor
from binlane.statements.sql.evaluation.evaluator import evaluate
from binlane.statements.sql.evaluation.values import UNKNOWN, Text, Value, plain_text
from binlane.statements.sql.facts import StatementFacts, VariableAssignment, VariableScope
from binlane.statements.sql.schema import CreationContext
from binlane.statements.sql.servers import Dialect, Version, default_collation
from binlane.statements.sql.tree.expressions import Name

_COLLATION: Final = "utf8mb3_general_ci"
"""Collation of the values of system variables."""
_CHARSETS: Final = frozenset(("names", "character set", "character_set_connection"))
_GLOBAL: Final = frozenset((VariableScope.GLOBAL, VariableScope.PERSIST))


@dataclass(slots=True)
class ScriptSession:
    """The variables of such a session.

    Attributes:
        bare: Dialect of its statements without an sql_mode.
        version: Version of the server; None where nobody knows it.
        sql_mode: Names of the modes in capitals; None if they are not known.
        connection: collation_connection; empty if it is not known.
        variables: User variables by name in lower case.
        dialect: Dialect of its next statement.
    """

    bare: Dialect
    version: Version | None = None
    sql_mode: str | None = None
    connection: str = ""
    variables: dict[str, Value] = field(default_factory=dict)
    dialect: Dialect = field(init=False)

    def __post_init__(self) -> None:
        self.dialect = self.bare

    @property
    def context(self) -> CreationContext | None:
        """Context in which a program runs that is made now; None if that is not known."""
        if self.sql_mode is None:
            return None
        return CreationContext(sql_mode=self.sql_mode, collation=self.connection)

    def set(self, facts: StatementFacts) -> None:
        """Carry out SET."""
        # User variables are set when all values are known.
        kept: dict[str, Value] = {}
        for one in facts.assignments:
            value = self._assigned(one, facts)
            if one.name.startswith("@"):
                kept[one.name[1:]] = value
            elif one.scope not in _GLOBAL:
                self._assign(one.name, value)
        self.variables |= kept

    def _assigned(self, assignment: VariableAssignment, facts: StatementFacts) -> Value:
        node = assignment.node
        if node is None or isinstance(node, Name):  # a word
            return Text(assignment.value, _COLLATION)
        return evaluate(node, facts, self)

    def _assign(self, name: str, value: Value) -> None:
        text = None if value is UNKNOWN or value is None else plain_text(value)
        if text is not None and text.upper() == "DEFAULT":
            text = None
        if name == "sql_mode":
            self.sql_mode = None if text is None else text.upper()
            self.dialect = self.bare.in_modes(self.sql_mode or "")
        elif name in _CHARSETS:
            charset, _, collation = (
                part.strip("'\"` ") for part in (text or "").lower().partition(" collate ")
            )
            self.connection = collation or (self.default_collation(charset) if charset else "")
        elif name == "collation_connection":
            self.connection = (text or "").lower()

    # Environment of expressions --------------------------------------------------------------

    @property
    def flavor(self) -> Flavor:
        """Flavor of the server whose rules are followed."""
        return Flavor.MARIADB if self.bare.may_be_mariadb else Flavor.MYSQL

    @property
    def collation(self) -> str:
        """Collation of string literals."""
        return self.connection or self.default_collation("utf8mb4")

    def default_collation(self, charset: str) -> str:
        """The collation of a character set where none is named."""
        return default_collation(charset, self.flavor, self.version)

    @property
    def database(self) -> str:
        """No value hangs on it here."""
        return ""

    def local(self, name: str) -> Value:
        """There are no local variables."""
        raise LookupError(name)

    def user_variable(self, name: str) -> Value:
        """The value of `@name`."""
        return self.variables.get(name)

    def user_variable_values(self, name: str) -> tuple[Value, ...] | None:
        """All values that `@name` can have; None where they are not known."""
        value = self.user_variable(name)
        return None if value is UNKNOWN else (value,)

    def assign_user_variable(self, name: str, value: Value) -> None:
        """Do `@name := value`."""
        self.variables[name] = value

    def system_variable(self, name: str, scope: str) -> Value:
        """The value of `@@name`, where it is known."""
        if scope.lower() not in ("", "session", "local"):
            return UNKNOWN
        if name == "sql_mode" and self.sql_mode is not None:
            return Text(self.sql_mode, _COLLATION)
        if name == "collation_connection" and self.connection:
            return Text(self.connection, _COLLATION)
        return UNKNOWN

    def call(self, _database: str | None, _name: str, _arguments: Sequence[Value]) -> Value:
        """There are no functions but built-in ones."""
        return UNKNOWN
