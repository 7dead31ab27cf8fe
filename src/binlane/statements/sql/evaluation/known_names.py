"""Text of an expression, and the names to which it can refer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from binlane.log.codec.types import Flavor
from binlane.statements.sql.evaluation.values import (
    Value,
)
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.tree.expressions import (
    Name,
    Node,
)


class StatementText(Protocol):
    """The text that a tree stands for: the part of `StatementFacts` that evaluation needs."""

    @property
    def dialect(self) -> Dialect:
        """Dialect in which the text was read."""

    def text_of(self, node: Node) -> str:
        """The text at a node in this statement."""


@dataclass(frozen=True, slots=True)
class OwnText:
    """The text that a tree was made from."""

    sql: str
    dialect: Dialect

    def text_of(self, node: Node) -> str:
        """The text at a node."""
        return self.sql[node.at : node.end]


@dataclass(slots=True, eq=False)
class Given(Name):
    """Stands in the place of an expression whose value is chosen."""

    value: Value = None


class Environment(Protocol):
    """Meaning of the names and calls that an expression can have."""

    @property
    def flavor(self) -> Flavor:
        """Flavor of the server whose rules are followed."""

    @property
    def collation(self) -> str:
        """Value of collation_connection, the collation of string literals."""

    def default_collation(self, charset: str) -> str:
        """The collation of a character set where none is named."""

    @property
    def database(self) -> str:
        """The default database; empty without one."""

    def local(self, name: str) -> Value:
        """The value of a local variable, parameter or field (`NEW.a`).

        Raises:
            LookupError: If nothing has that name.
        """

    def user_variable(self, name: str) -> Value:
        """The value of `@name`; the name is in lower case."""

    def user_variable_values(self, name: str) -> tuple[Value, ...] | None:
        """All values that `@name` can have; None where they are not known."""

    def assign_user_variable(self, name: str, value: Value) -> None:
        """Do `@name := value`."""

    def system_variable(self, name: str, scope: str) -> Value:
        """The value of `@@name` or `@@scope.name`, where it is known; `scope` may be empty."""

    def call(self, database: str | None, name: str, arguments: Sequence[Value]) -> Value:
        """Call a function that is not built in, or whose value only a session knows."""
