"""What foreign keys do to the rows of other tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from binlane.sql.facts import RowChange

if TYPE_CHECKING:
    from collections.abc import Iterator

    from binlane.sql.schema import ForeignKey

ROW_DELETES: Final = frozenset({RowChange.DELETE, RowChange.REPLACE})
"""Changes that remove rows."""
ROW_UPDATES: Final = frozenset({RowChange.UPDATE, RowChange.UPSERT})
"""Changes of rows in place."""


NO_CHANGES: Final[frozenset[RowChange]] = frozenset()
"""What only looks at rows does."""
_RESTRICTS: Final = frozenset({"RESTRICT", "NO ACTION"})


def cascaded(key: ForeignKey, changes: frozenset[RowChange]) -> frozenset[RowChange]:
    """What a change of the parent's rows does to the child's."""
    found = set()
    if changes & ROW_DELETES:
        if key.on_delete == "CASCADE":
            found.add(RowChange.DELETE)
        elif key.on_delete not in _RESTRICTS:
            found.add(RowChange.UPDATE)
    if changes & ROW_UPDATES and key.on_update not in _RESTRICTS:
        found.add(RowChange.UPDATE)
    return frozenset(found)


def roles(key: ForeignKey, changes: frozenset[RowChange]) -> Iterator[frozenset[RowChange]]:
    """For what MySQL opens a child, each by itself: to look at its rows, to update, to delete them.

    Args:
        key: Of the child.
        changes: Of the parent's rows.
    """
    is_deleted, is_updated = bool(changes & ROW_DELETES), bool(changes & ROW_UPDATES)
    actions = [key.on_delete] * is_deleted + [key.on_update] * is_updated
    if not _RESTRICTS.isdisjoint(actions):
        yield NO_CHANGES
    if (is_updated and key.on_update not in _RESTRICTS) or (
        is_deleted and key.on_delete not in (*_RESTRICTS, "CASCADE")
    ):
        yield frozenset({RowChange.UPDATE})
    if is_deleted and key.on_delete == "CASCADE":
        yield frozenset({RowChange.DELETE})


def cascaded_kind(key: ForeignKey, kind: str, columns: frozenset[str] | None) -> str | None:
    """What happens to a child's row that refers to one that is changed: `update`, `delete` or None.

    Args:
        key: Of the child.
        kind: What happens to the parent's row: `update` or `delete`.
        columns: Those that an update changes, in small letters; None: it may be any.
    """
    action = key.on_delete if kind == "delete" else key.on_update
    referred = {column.lower() for column in key.parent_columns}
    is_touched = kind == "delete" or not columns or not referred or not referred.isdisjoint(columns)
    if action in _RESTRICTS or not is_touched:
        return None
    return "delete" if kind == "delete" and action == "CASCADE" else "update"


def identifier(key: ForeignKey) -> str:
    """InnoDB's name of a foreign key."""
    return f"{key.table.database}/{key.name or f'{key.table.table}_ibfk_1'}"
