"""Parts that a scope may leave of a statement, told by the tables that part and statement name."""

from __future__ import annotations

from typing import Final

from binlane.binlogs.routing.statement_verdicts import MOVING
from binlane.binlogs.store.verify.contents import GroupChanges, LoggedChange
from binlane.names import TableName
from binlane.statements.sql.facts import StatementEffects
from binlane.statements.sql.statement_kinds import StatementKind

_REWRITTEN: Final = frozenset(
    {
        StatementKind.DROP_TABLE,
        StatementKind.DROP_SEQUENCE,
        StatementKind.RENAME_TABLE,
        StatementKind.DROP_VIEW,
        StatementKind.DROP_ROUTINE,
        StatementKind.DROP_EVENT,
        StatementKind.DROP_TRIGGER,
        StatementKind.DROP_PACKAGE,
    }
)


def is_part_of_group(part: GroupChanges, whole: GroupChanges) -> bool:
    """True if another group does all that a group without GTID does."""
    changes = iter(whole.changes)
    return part.gtid is None and all(
        any(change.may_be(other) or is_part(change, other) for other in changes)
        for change in part.changes
    )


def is_part(part: LoggedChange, whole: LoggedChange) -> bool:
    """True if a statement may be the part that a scope leaves of another."""
    if part.effects is None or whole.effects is None:
        return False
    kind = part.effects.kind
    comes_in = kind is StatementKind.CREATE_TABLE and bool(whole.effects.renames)
    is_left = kind is StatementKind.ALTER_TABLE and _moves_partition(whole.effects)
    if kind not in _REWRITTEN and not comes_in and not is_left:
        return False
    if whole.effects.kind is StatementKind.DROP_DATABASE:
        return {table.database for table in names_in(part.effects)} <= set(whole.effects.databases)
    return names_in(part.effects) <= names_in(whole.effects)


def names_in(effects: StatementEffects) -> set[TableName]:
    """Give all names that a statement changes, drops or renames."""
    names = {name for pair in effects.renames for name in pair}
    renamed = {name for name in names if not name.table.startswith(MOVING)}
    return {*effects.writes, *effects.drops, *effects.objects, *renamed}


def _moves_partition(effects: StatementEffects) -> bool:
    """True if a statement may move a partition between two tables."""
    return effects.kind is StatementKind.ALTER_TABLE and len(effects.writes) > 1
