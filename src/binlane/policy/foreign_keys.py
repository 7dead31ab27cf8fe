"""What foreign keys do to the rows of other tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from binlane.sql.facts import RowChange

if TYPE_CHECKING:
    from binlane.sql.schema import ForeignKey

ROW_DELETES: Final = frozenset({RowChange.DELETE, RowChange.REPLACE})
"""Changes that remove rows."""
ROW_UPDATES: Final = frozenset({RowChange.UPDATE, RowChange.UPSERT})
"""Changes of rows in place."""


def cascaded(key: ForeignKey, changes: frozenset[RowChange]) -> frozenset[RowChange]:
    """What a change of the parent's rows does to the child's."""
    found = set()
    if changes & ROW_DELETES:
        if key.on_delete.upper() == "CASCADE":
            found.add(RowChange.DELETE)
        elif key.on_delete.upper().startswith("SET"):
            found.add(RowChange.UPDATE)
    if changes & ROW_UPDATES and key.on_update.upper() not in ("RESTRICT", "NO ACTION"):
        found.add(RowChange.UPDATE)
    return frozenset(found)


def identifier(key: ForeignKey) -> str:
    """InnoDB's name of a foreign key."""
    return f"{key.table.database}/{key.name or f'{key.table.table}_ibfk_1'}"
