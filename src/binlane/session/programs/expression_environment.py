"""What an expression can refer to, whoever evaluates it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from binlane.session.programs.values import Value


class Environment(Protocol):
    """What an expression can refer to."""

    @property
    def is_mariadb(self) -> bool:
        """Whose rules are followed."""

    @property
    def collation(self) -> str:
        """collation_connection, that of string literals."""

    @property
    def database(self) -> str:
        """The default database."""

    def local(self, name: str) -> Value:
        """The value of a local variable or parameter.

        Raises:
            LookupError: If there is none of that name.
        """

    def user_variable(self, name: str) -> Value:
        """The value of `@name`."""

    def assign_user_variable(self, name: str, value: Value) -> None:
        """Do `@name := value`."""

    def system_variable(self, name: str) -> Value:
        """The value of `@@name`, where it is known."""

    def call(self, database: str | None, name: str, arguments: Sequence[Value]) -> Value:
        """Call a function that is none of those known here."""


Compiled: TypeAlias = Callable[[Environment], Value]
