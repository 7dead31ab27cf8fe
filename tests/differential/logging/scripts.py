"""Sessions as text: the objects and the statements that run on them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement of a session.

    Attributes:
        sql: Its text.
        rows: Rows that it changes before it fails, where that is meant; None if it succeeds.
    """

    sql: str
    rows: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A session on objects of its own.

    Attributes:
        schema: Statements that make the objects.
        statements: What the session runs.
    """

    schema: tuple[str, ...]
    statements: tuple[Statement, ...] = field(default_factory=tuple)

    @property
    def texts(self) -> list[str]:
        """The statements as they are sent."""
        return [statement.sql for statement in self.statements]
