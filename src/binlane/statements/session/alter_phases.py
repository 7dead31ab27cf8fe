"""MariaDB's ALTER TABLE in two phases: the choice of statements that are logged as they start, too.

With `binlog_alter_two_phase` START ALTER is a group of its own, and so is COMMIT ALTER, or ROLLBACK ALTER
where the existing rows make the statement fail. A statement that only changes names, keys' use or partitions,
or nothing at all, has one group as ever.

Source: MariaDB 10.11 sql/sql_table.cc `mysql_alter_table`, `handle_if_exists_options` and
`write_bin_log_start_alter`; measured on MariaDB 10.11.19 and 11.8.
"""

from __future__ import annotations

from typing import Final

from binlane.statements.session import log_events
from binlane.statements.session.state import SessionState
from binlane.statements.session.statement_state import SessionStatement
from binlane.statements.sql.foreign_keys import asked_name
from binlane.statements.sql.schema import Key, Table
from binlane.statements.sql.statement_kinds import StatementKind
from binlane.statements.sql.table_changes import PRIMARY
from binlane.statements.sql.table_definitions import TableDefinition
from binlane.statements.sql.tree.definitions import AlterAction, AlterTable, CreateIndex, DropIndex

AT_ONCE: Final = (log_events.STANDALONE,)
"""Openings of the groups: of any other statement, of one in two phases, and of a failed one."""
IN_PHASES: Final = (log_events.START_ALTER, log_events.COMMIT_ALTER)
UNDONE_IN_PHASES: Final = (log_events.START_ALTER, log_events.ROLLBACK_ALTER)
_KINDS: Final = frozenset(
    (StatementKind.ALTER_TABLE, StatementKind.CREATE_INDEX, StatementKind.DROP_INDEX)
)
_HOW: Final = frozenset(("ALGORITHM", "LOCK"))
_SIMPLE: Final = _HOW | {"RENAME", "ENABLE KEYS", "DISABLE KEYS"}
_OF_FILES: Final = frozenset(("PARTITION", "DISCARD TABLESPACE", "IMPORT TABLESPACE"))
_CANCELLING: Final = _HOW | {"ADD KEY", "DROP KEY", "RENAME COLUMN"}
"""Actions that the server finds to change nothing where the table is the same as before."""
_OF_ROWS: Final = frozenset(
    (
        *(1005, 1022, 1025, 1030, 1048, 1062, 1114, 1138, 1264, 1265, 1292, 1317, 1365, 1366, 1367),
        *(1406, 1452, 1526, 1553, 1586, 1690, 4025),
    )
)
"""Errors that are met behind START ALTER: of rows, of engines, and of who ends the statement."""


def is_in_two_phases(
    state: SessionState, statement: SessionStatement, before: Table | None
) -> bool:
    """True if a statement that was carried out, or failed, is logged as it starts.

    Args:
        state: The state of the session.
        statement: Any statement that was run.
        before: The statement's table, as it was before; None for a statement about no table.
    """
    effects, tree = statement.facts.effects, statement.facts.tree
    if effects.kind not in _KINDS or not state.server.is_mariadb:
        return False
    if not state.variables.is_on("binlog_alter_two_phase", default=False):
        return False
    if before is None or before.is_temporary:
        return False
    if not statement.succeeds and statement.outcome.error not in _OF_ROWS:
        return False
    if isinstance(tree, CreateIndex):
        actions = [
            AlterAction(
                tree.at, tree.end, "ADD KEY", key=tree.key, if_exists=tree.key.if_not_exists
            )
        ]
    elif isinstance(tree, DropIndex):
        kind = "DROP PRIMARY KEY" if tree.name.upper() == PRIMARY else "DROP KEY"
        actions = [AlterAction(tree.at, tree.end, kind, name=tree.name, if_exists=tree.if_exists)]
    elif isinstance(tree, AlterTable):
        actions = [*tree.actions]
    else:
        return False
    after = state.objects.table(before.name) if statement.succeeds else None
    return _is_whole(actions, before, after)


def _is_whole(actions: list[AlterAction], table: Table, after: Table | None) -> bool:
    """True if the server makes the table anew, or asks its engine to change it."""
    left = [one for one in actions if not _is_left_out(one, table)]
    kinds = {one.kind for one in left}
    if kinds <= _HOW or not kinds.isdisjoint(_OF_FILES):
        return False
    if kinds <= _SIMPLE:
        return any(one.kind == "ALGORITHM" and "COPY" in one.words for one in left)
    is_same = after is not None and _looks(after) == _looks(table)
    return not (is_same and kinds <= _CANCELLING and not any(map(_is_foreign, left)))


def _looks(table: Table) -> tuple[frozenset[Key], TableDefinition]:
    return frozenset(table.keys), table.definition


def _is_foreign(action: AlterAction) -> bool:
    return action.key is not None and action.key.kind == "FOREIGN"


def _is_left_out(action: AlterAction, table: Table) -> bool:
    """True if IF EXISTS or IF NOT EXISTS leaves nothing of an action, as the server counts it.

    The server still counts RENAME KEY, ALTER KEY, DROP CONSTRAINT and changes of periods.
    """
    if not action.if_exists:
        return False
    name = action.name.lower()
    columns = {column.name.lower() for column in table.definition.columns}
    keys = {key.name.lower() for key in table.keys}
    foreign = {key.own_name.lower() for key in table.foreign_keys}
    match action.kind:
        case "ADD COLUMN":
            return all(column.name.lower() in columns for column in action.columns)
        case "MODIFY COLUMN" | "CHANGE COLUMN" | "DROP COLUMN" | "RENAME COLUMN" | "ALTER COLUMN":
            return (name or action.columns[0].name.lower()) not in columns
        case "ADD KEY" if action.key is not None:
            return asked_name(action.key).lower() in (foreign if _is_foreign(action) else keys)
        case "DROP KEY" | "DROP PRIMARY KEY":
            return name not in keys
        case "DROP FOREIGN KEY":
            return name not in foreign
        case "ADD CHECK":
            return any(name in one.lower() for one in table.checks)
    return False
