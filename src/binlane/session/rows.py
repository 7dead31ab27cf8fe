"""What a statement does to rows, where no trigger or function takes part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from binlane.names import TableName
from binlane.policy.access import ResolvedStatement, TableAccess
from binlane.session.report import Outcome
from binlane.sql.facts import RowChange, StatementFacts

_KINDS: Final = MappingProxyType(
    {
        RowChange.INSERT: "insert",
        RowChange.LOAD: "insert",
        RowChange.SEQUENCE: "insert",
        RowChange.UPDATE: "update",
        RowChange.DELETE: "delete",
    }
)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one table that change in one way, one after the other."""

    table: TableName
    kind: str


def plain_changes(
    facts: StatementFacts, resolved: ResolvedStatement, outcome: Outcome
) -> tuple[Rows, ...]:
    """What a statement changes by itself, in the order in which it does it."""
    if changed_rows(outcome) == 0:
        return ()
    own = [access for access in resolved.accesses if access.changes and not access.is_prelocked]
    return tuple(_changes_of(own, facts, outcome))


def changed_rows(outcome: Outcome) -> int | None:
    """How many rows changed in each table; None if only that some did."""
    if outcome.is_proven_empty:
        return 0
    if outcome.rows is None and outcome.error is not None:
        return 0
    return outcome.rows


def _changes_of(
    accesses: Iterable[TableAccess], facts: StatementFacts, outcome: Outcome
) -> Iterator[Rows]:
    for access in accesses:
        for change in sorted(access.changes, key=lambda change: change.name):
            kind = _KINDS.get(change)
            kinds = (kind,) if kind else _replacing(change, access, facts, outcome)
            yield from (Rows(access.name, one) for one in kinds)


def _replacing(
    change: RowChange, access: TableAccess, facts: StatementFacts, outcome: Outcome
) -> tuple[str, ...]:
    """REPLACE and ON DUPLICATE KEY UPDATE: what the number of affected rows tells.

    A row that is inserted counts as one, one that is changed as two.
    """
    rows = changed_rows(outcome)
    if rows is None or rows == 1:
        return ("insert",)
    replaced = (
        ("update",)
        if change is RowChange.UPSERT or len(access.table.unique_keys) == 1
        else ("delete", "insert")
    )
    given = facts.row_count or 1
    inserted = max(0, 2 * given - rows) if rows <= 2 * given else 0
    return (*replaced, "insert") if inserted and replaced[-1] != "insert" else replaced
