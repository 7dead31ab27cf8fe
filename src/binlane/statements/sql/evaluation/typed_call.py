"""A call of a function with the types of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

from binlane.statements.sql.evaluation.operator_types import (
    TypeScope,
    Untyped,
)
from binlane.statements.sql.evaluation.types import (
    Coercibility,
    Type,
    TypeKind,
    collation_of,
    length_in,
    text,
)
from binlane.statements.sql.tree.expressions import (
    Call,
    Expression,
    Literal,
    LiteralKind,
)

MYSQL_ROW_BIGINT: Final = 11
FRACTION_MAX: Final = 6
SUM_DIGITS: Final = 22
AVERAGE_SCALE: Final = 4
EXACT: Final = frozenset({TypeKind.INTEGER, TypeKind.DECIMAL})


@dataclass(frozen=True)
class TypedCall:
    """A call of a function, with the scope and the types of its arguments.

    Attributes:
        scope: Scope in which the call stands.
        typed: Gives the type of one expression.
    """

    node: Call
    scope: TypeScope
    typed: Callable[[Expression, TypeScope], Type]

    @cached_property
    def types(self) -> list[Type]:
        """Types of the arguments; at least one.

        Raises:
            Untyped: If the type of one is not known, or there are no arguments.
        """
        if not self.node.arguments:
            raise Untyped("a call without arguments")
        return [self.typed(each, self.scope) for each in self.node.arguments]

    @property
    def first(self) -> Type:
        """Type of the first argument."""
        return self.at(0)

    def at(self, index: int) -> Type:
        """An argument's.

        Raises:
            Untyped: If it is not known, or there is none.
        """
        return self.typed(self.argument(index), self.scope)

    def argument(self, index: int) -> Expression:
        """An argument.

        Raises:
            Untyped: If there is none.
        """
        if index >= len(self.node.arguments):
            raise Untyped(f"{self.node.name} of so few arguments")
        return self.node.arguments[index]

    def number(self, index: int, otherwise: int | None = None) -> int:
        """A constant number among the arguments.

        Args:
            index: Index of the argument, from 0.
            otherwise: Number to give where the argument is no constant.

        Raises:
            Untyped: If the argument is no constant, and `otherwise` is None.
        """
        node = self.argument(index)
        if isinstance(node, Literal) and node.kind is LiteralKind.NUMBER:
            text = self.scope.text.text_of(node)
            if text.isdecimal():
                return int(text)
        if otherwise is None:
            raise Untyped("a length that is no constant")
        return otherwise

    def text(self, length: int, types: Sequence[Type] = ()) -> Type:
        """Text made of some values; in strict mode such functions may always give NULL."""
        strongest = min((each.coercibility.value for each in types), default=4)
        return text(
            length,
            collation_of(types, self.scope.connection),
            coercibility=Coercibility(strongest),
            is_nullable=True,
        )

    def joined(self, types: Sequence[Type], lengths: Callable[[list[int]], int] = sum) -> Type:
        """Text made of several values, whose lengths decide its own."""
        charset, _ = collation_of(types, self.scope.connection)
        return self.text(
            lengths([length_in(each, charset, self.scope.flavor) for each in types]), types
        )


Typed: TypeAlias = Callable[[TypedCall], Type]
