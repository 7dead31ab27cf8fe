"""What binlane answers by itself, in values."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from binlane.errors import Diagnostic
from binlane.log.codec.packets.results import Cell, ColumnDefinition


@dataclass(frozen=True, slots=True, kw_only=True)
class OkAnswer:
    """The statement is done.

    Attributes:
        affected_rows: As the client shows it.
        info: For people.
        warnings: How many the source has of it.
        diagnostics: What SHOW WARNINGS lists where binlane has them, and not the source.
    """

    affected_rows: int = 0
    info: str = ""
    warnings: int = 0
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class RowsAnswer:
    """A result set.

    Attributes:
        columns: Heads: a name is a column of text.
        rows: One cell a column; None is NULL.
        diagnostics: As of `OkAnswer`.
    """

    columns: Sequence[ColumnDefinition | str]
    rows: Sequence[Sequence[Cell]]
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def heads(self) -> list[ColumnDefinition]:
        """All heads with their types."""
        return _heads(self.columns)


@dataclass(frozen=True, slots=True)
class RowsInParts:
    """A result set that is too large to be held: it is sent as it is made.

    Attributes:
        columns: As of `RowsAnswer`.
        parts: Some rows at a time; what it raises ends the result set with that error.
    """

    columns: Sequence[ColumnDefinition | str]
    parts: AsyncGenerator[Sequence[Sequence[Cell]], None]

    @property
    def heads(self) -> list[ColumnDefinition]:
        """All heads with their types."""
        return _heads(self.columns)


def _heads(columns: Sequence[ColumnDefinition | str]) -> list[ColumnDefinition]:
    return [
        ColumnDefinition(name=column) if isinstance(column, str) else column for column in columns
    ]


@dataclass(frozen=True, slots=True)
class HandOn:
    """Another statement is to be run in the place of the client's.

    Attributes:
        text: It.
    """

    text: str


Answer = OkAnswer | RowsAnswer | RowsInParts
