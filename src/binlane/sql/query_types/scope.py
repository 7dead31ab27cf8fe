"""What names in an expression mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from binlane.codec.types import Flavor
from binlane.sql.query_types.values import Value
from binlane.sql.schema import Objects
from binlane.sql.tokens import Token

Columns = tuple[tuple[str, Value], ...]
"""Names and values."""


class Untyped(Exception):  # noqa: N818 - not an error: the type is beyond what is known here
    """The type of an expression is not known.

    Attributes:
        what: The part of the text that it is about.
    """

    def __init__(self, what: str) -> None:
        super().__init__(f"the type of {what} is not known")
        self.what = what


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A table of a FROM clause.

    Attributes:
        alias: By what the query calls it.
        columns: Of the table.
        starred: Those that `*` gives; None for all of them.
    """

    alias: str
    columns: Columns
    starred: Columns | None = None

    @property
    def in_star(self) -> Columns:
        """The columns that `*` gives."""
        return self.columns if self.starred is None else self.starred

    def as_nullable(self) -> Source:
        """The same on the side of an outer join that may have no row."""
        return Source(
            alias=self.alias,
            columns=_nullable(self.columns),
            starred=None if self.starred is None else _nullable(self.starred),
        )


def _nullable(columns: Columns) -> Columns:
    return tuple((name, value.as_nullable()) for name, value in columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Where an expression stands.

    Attributes:
        objects: Of the server.
        flavor: Of the server.
        database: The default one.
        sources: Tables of the query, then those of the queries around it.
        connection: Character set and collation of literals.
        subquery: Types the columns of a query in parentheses.
    """

    objects: Objects
    flavor: Flavor
    database: str
    sources: tuple[Source, ...]
    connection: tuple[str, str]
    subquery: Callable[[Sequence[Token], Scope], Sequence[Value]]

    @property
    def is_mariadb(self) -> bool:
        """Whether MariaDB's rules hold, not MySQL's."""
        return self.flavor is Flavor.MARIADB

    def column(self, names: Sequence[str]) -> Value:
        """The value of a column, by its name with or without its table.

        Raises:
            Untyped: If there is none.
        """
        *qualifiers, name = names
        for source in self.sources:
            if qualifiers and source.alias.lower() != qualifiers[-1].lower():
                continue
            for column, value in source.columns:
                if column.lower() == name.lower():
                    return value
        raise Untyped(f"column {name}")
