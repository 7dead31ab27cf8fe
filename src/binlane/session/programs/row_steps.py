"""What happens to one row after the other: its triggers and changes, in the order of the servers."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from types import MappingProxyType
from typing import Final

from binlane.names import TableName
from binlane.policy.access import TableAccess
from binlane.sql.catalog import SchemaCatalog
from binlane.sql.facts import RowChange

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
    access: TableAccess, given: int, count: int | None, objects: SchemaCatalog
) -> Iterator[tuple[TableName, tuple[Step, ...]]]:
    """What happens to a table row by row, for each way in which it is changed."""
    # Clauses of one INSERT: what it does to a row that is there says it all.
    changes = access.changes & _REPLACING or access.changes
    for change in sorted(changes, key=lambda change: change.name):
        if change in _REPLACING:
            yield access.name, _replacing(change, access, given, count, objects)
        elif change in _PLAIN:
            rows = given if count is None else count
            yield access.name, (_PLAIN[change],) * min(rows, ROWS_MAX)


def _replacing(
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
