"""Answers that binlane gives by itself, in values."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from binlane.errors import Diagnostic
from binlane.log.codec.packets.results import Cell, ColumnDefinition


@dataclass(frozen=True, slots=True, kw_only=True)
class OkAnswer:
    """The reply to a statement that is done and has no rows.

    Attributes:
        affected_rows: Number of rows, as the client shows it.
        info: Text for people, as the OK packet has it.
        warnings: Number of warnings that the source has of the statement.
        diagnostics: Rows of SHOW WARNINGS where binlane has them, and not the source.
    """

    affected_rows: int = 0
    info: str = ""
    warnings: int = 0
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class RowsAnswer:
    """A result set.

    Attributes:
        columns: Column heads: a name stands for a column of text.
        rows: One cell a column; None is NULL.
        diagnostics: Same as in `OkAnswer`: rows of SHOW WARNINGS.
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
        columns: Same as in `RowsAnswer`: the column heads.
        parts: Gives some rows at a time; an error that it raises ends the result set.
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
        text: Text of the statement that is run.
    """

    text: str


Answer = OkAnswer | RowsAnswer | RowsInParts
