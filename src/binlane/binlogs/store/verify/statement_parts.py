"""Parts that a scope may leave of a statement, told by the tables that part and statement name."""

from __future__ import annotations

from typing import Final

from binlane.binlogs.routing.judging import judge_statement
from binlane.binlogs.routing.outside_references import without_outside_keys
from binlane.binlogs.routing.routing_memory import NOTHING
from binlane.binlogs.routing.statement_verdicts import MOVING
from binlane.binlogs.store.verify.contents import GroupChanges, LoggedChange
from binlane.names import TableName
from binlane.statements.scope.scope import Scope, ScopeList
from binlane.statements.sql.facts import StatementEffects
from binlane.statements.sql.logged_statements import logged_statement
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
    if _has_fewer_keys(part, whole):
        return True
    if kind not in _REWRITTEN and not comes_in and not is_left:
        return False
    if dropped := set(whole.effects.dropped_databases):
        return {table.database for table in names_in(part.effects)} <= dropped
    return names_in(part.effects) <= names_in(whole.effects)


def _has_fewer_keys(part: LoggedChange, whole: LoggedChange) -> bool:
    """True if a statement on a child is another one without the foreign keys of some parents."""
    if part.query is None or whole.query is None or part.effects is None or whole.effects is None:
        return False
    parents = set(whole.effects.reads).difference(part.effects.reads)
    if not parents or part.effects.writes != whole.effects.writes:
        return False
    scope = Scope.everything().with_list(ScopeList.IGNORE, parents)
    judged = judge_statement(logged_statement(whole.query), scope, NOTHING)
    left = without_outside_keys(whole.query, judged, scope, NOTHING)
    return left is not None and left.query.query == part.query.query


def names_in(effects: StatementEffects) -> set[TableName]:
    """Give all names that a statement changes, drops or renames."""
    tables = {name for name in effects.changed_tables if not name.table.startswith(MOVING)}
    return tables.union(effects.objects)


def _moves_partition(effects: StatementEffects) -> bool:
    """True if a statement may move a partition between two tables."""
    return effects.kind is StatementKind.ALTER_TABLE and len(effects.writes) > 1
