"""A statement that is followed row by row."""

from __future__ import annotations

from dataclasses import dataclass, field

from binlane.names import TableName
from binlane.policy.access import ResolvedStatement
from binlane.session.report import Outcome
from binlane.sql.facts import StatementFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """A statement to be followed.

    Attributes:
        facts: What it says.
        resolved: Its tables.
        sql: Its text.
        logged: Its text with local variables replaced.
        outcome: What happened.
    """

    facts: StatementFacts
    resolved: ResolvedStatement
    sql: str
    logged: str
    outcome: Outcome = field(default_factory=Outcome)

    @property
    def own_tables(self) -> frozenset[TableName]:
        """The tables that it itself uses, through views too; they stay open while it runs."""
        return frozenset(
            access.name for access in self.resolved.accesses if not access.is_prelocked
        )
