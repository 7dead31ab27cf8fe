"""What happens to rows, one after the other: their changes and triggers, in the order of the servers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from types import MappingProxyType
from typing import Final

from binlane.names import TableName
from binlane.policy.refusals import Outcome
from binlane.policy.resolution import ResolvedStatement, TableAccess
from binlane.programs.trace import RowRun
from binlane.sql.catalog import SchemaCatalog
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


def plain_changes(
    facts: StatementFacts, resolved: ResolvedStatement, outcome: Outcome
) -> tuple[RowRun, ...]:
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
) -> Iterator[RowRun]:
    for access in accesses:
        for change in sorted(access.changes, key=lambda change: change.name):
            kind = _KINDS.get(change)
            kinds = (kind,) if kind else _replacing(change, access, facts, outcome)
            yield from (RowRun(access.name, one) for one in kinds)


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


ROWS_MAX: Final = 1000
"""More rows of one statement are not followed one by one."""
EVENTS: Final = frozenset(("insert", "update", "delete"))
"""What may happen to a row itself."""


class Step(Enum):
    """What happens for one row: triggers by their time and event, and changes of the row."""

    INSERT = ("BEFORE INSERT", "insert", "AFTER INSERT")
    UPDATE = ("BEFORE UPDATE", "update", "AFTER UPDATE")
    DELETE = ("BEFORE DELETE", "delete", "AFTER DELETE")
    UPSERT = ("BEFORE INSERT", "BEFORE UPDATE", "update", "AFTER UPDATE")
    REPLACE = (
        "BEFORE INSERT",
        "BEFORE DELETE",
        "delete",
        "AFTER DELETE",
        "insert",
        "AFTER INSERT",
    )
    REPLACE_BY_UPDATE = ("BEFORE INSERT", "update", "AFTER INSERT")
    UPDATE_KEEPING = ("BEFORE UPDATE", "update", "insert", "AFTER UPDATE")
    """What was is kept: as history, or outside of a portion of time."""
    DELETE_INTO_HISTORY = ("BEFORE DELETE", "update", "AFTER DELETE")
    DELETE_PORTION = ("BEFORE DELETE", "update", "insert", "AFTER DELETE")
    """Of a row's time a part in the middle."""


_REPLACING: Final = frozenset((RowChange.REPLACE, RowChange.UPSERT))
_PLAIN: Final = MappingProxyType(
    {
        RowChange.INSERT: Step.INSERT,
        RowChange.LOAD: Step.INSERT,
        RowChange.SEQUENCE: Step.INSERT,
        RowChange.UPDATE: Step.UPDATE,
        RowChange.DELETE: Step.DELETE,
    }
)


def steps_of(
    access: TableAccess,
    given: int,
    count: int | None,
    objects: SchemaCatalog,
    *,
    has_portion: bool = False,
    is_of_history: bool = False,
) -> Iterator[tuple[TableName, tuple[Step, ...]]]:
    """What happens to a table row by row, for each way in which it is changed.

    Args:
        access: The table.
        given: Rows that the text has.
        count: Rows that changed; None if that is not stated.
        objects: Where triggers and foreign keys are looked up.
        has_portion: FOR PORTION OF.
        is_of_history: DELETE HISTORY.
    """
    # Clauses of one INSERT: what it does to a row that is there says it all.
    changes = access.changes & _REPLACING or access.changes
    for change in sorted(changes, key=lambda change: change.name):
        if change in _REPLACING:
            yield access.name, _steps_of_replacing(change, access, given, count, objects)
        elif change in _PLAIN:
            rows = given if count is None else count
            step = _PLAIN[change]
            if not is_of_history:
                step = _kept(step, access, has_portion=has_portion)
            yield access.name, (step,) * min(rows, ROWS_MAX)


def _kept(step: Step, access: TableAccess, *, has_portion: bool) -> Step:
    """What becomes of an update or deletion where MariaDB keeps some of what was."""
    is_versioned = access.table.definition.is_versioned
    if step is Step.UPDATE and (is_versioned or has_portion):
        return Step.UPDATE_KEEPING
    if step is Step.DELETE and has_portion:
        return Step.DELETE_PORTION
    return Step.DELETE_INTO_HISTORY if step is Step.DELETE and is_versioned else step


def _steps_of_replacing(
    change: RowChange, access: TableAccess, given: int, count: int | None, objects: SchemaCatalog
) -> tuple[Step, ...]:
    """REPLACE and ON DUPLICATE KEY UPDATE: a row that was there counts as two."""
    replaced = Step.UPSERT
    if change is RowChange.REPLACE:
        triggers = objects.triggers(access.name)
        keeps_row = (
            len(access.table.unique_keys) == 1
            and not any("DELETE" in trigger.events for trigger in triggers)
            and not objects.children(access.name)
        )
        replaced = Step.REPLACE_BY_UPDATE if keeps_row else Step.REPLACE
    if count is None:
        return (Step.INSERT,) * given
    old = max(0, count - given) if count <= 2 * given else count // 2
    return ((replaced,) * old + (Step.INSERT,) * (count - 2 * old))[:ROWS_MAX]
