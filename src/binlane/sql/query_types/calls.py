"""A call of a function, as what types it sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from binlane.sql.cursor import split
from binlane.sql.query_types.scope import Scope, Untyped
from binlane.sql.query_types.values import (
    Coercibility,
    Value,
    ValueKind,
    aggregated,
    collation_of,
    zero_default,
)
from binlane.sql.table_definitions import TableColumn
from binlane.sql.tokens import Token


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call of a function.

    Attributes:
        tokens: Between its parentheses.
        scope: Where it stands.
        typed: Types one expression.
    """

    tokens: Sequence[Token]
    scope: Scope
    typed: Callable[[Sequence[Token], Scope], Value]

    @cached_property
    def parts(self) -> list[list[Token]]:
        """The tokens of each argument, without DISTINCT."""
        tokens = self.tokens
        if tokens and tokens[0].word in {"DISTINCT", "ALL"}:
            tokens = tokens[1:]
        return [part for part in split(tokens) if part]

    @cached_property
    def values(self) -> list[Value]:
        """The arguments; at least one.

        Raises:
            Untyped: If one is not known, or there is none.
        """
        if not self.parts:
            raise Untyped("a call without arguments")
        return [self.typed(part, self.scope) for part in self.parts]

    def number(self, index: int) -> int:
        """A constant number among the arguments.

        Raises:
            Untyped: If it is none.
        """
        part = self.parts[index] if index < len(self.parts) else []
        if len(part) == 1 and part[0].text.isdigit():
            return int(part[0].text)
        raise Untyped("a length that is no constant")

    def first(self) -> Value:
        """The first argument."""
        return self.typed(self.parts[0], self.scope) if self.parts else self.values[0]

    def text(self, length: int, values: Sequence[Value] = ()) -> Value:
        """Text made of some values; functions on text may always give NULL."""
        charset, collation = collation_of(values, self.scope.connection)
        coercibility = min(
            (value.coercibility for value in values),
            key=lambda each: each.value,
            default=Coercibility.LITERAL,
        )
        return Value(
            kind=ValueKind.TEXT,
            length=length,
            is_nullable=True,
            charset=charset,
            collation=collation,
            coercibility=coercibility,
        )


def together(values: Sequence[Value], scope: Scope) -> Value:
    """The type that holds all of some values.

    Raises:
        Untyped: If it is not known.
    """
    made = aggregated(values, connection=scope.connection, flavor=scope.flavor)
    if made is None:
        raise Untyped("values of several types")
    return with_default(made, scope)


def with_default(value: Value, scope: Scope) -> Value:
    """With the default that MySQL gives to what functions make of a column that is not NULL."""
    if value.column is None or scope.is_mariadb or value.is_nullable:
        return value
    return replace(value, column=replace(value.column, default=zero_default(value)))


def without_default(column: TableColumn | None) -> TableColumn | None:
    """A column as functions keep it: its default and comment are not theirs."""
    return None if column is None else replace(column, default=None, comment=None)
