"""Shadows of online schema change tools: the triggers that fill them, and the RENAME that swaps them in.

A shadow is outside of a binlog that logs its table by name. The changes of the table are whole without it,
and its rows come in with the RENAME (decision 0081), so that a statement which also writes the shadow loses
nothing there. That holds only where it is certain that there is a shadow: by the forms that
pt-online-schema-change 3 gives its triggers, and by the names that it and gh-ost give their tables.

Source: pt-online-schema-change 3.2.1 and 3.5 `create_triggers`, `create_new_table`, `swap_tables`; gh-ost 1.1
go/base/context.go `GetGhostTableName`, `GetOldTableName`, go/sql/builder.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from binlane.names import TableName
from binlane.statements.policy.used_objects import ROW_DELETES, ROW_UPDATES, body_use, cascaded
from binlane.statements.sql.facts import StatementEffects, StatementFacts
from binlane.statements.sql.object_store import Objects
from binlane.statements.sql.schema import Trigger, TriggerTime
from binlane.statements.sql.statement_kinds import StatementKind

_SUFFIXES: Final[Mapping[str, str]] = MappingProxyType(
    {"INSERT": "ins", "UPDATE": "upd", "DELETE": "del"}
)
_PREFIX_MAX: Final = 60
"""Characters of a trigger's name before its suffix."""
_PT_NAMES: Final = r"_{1,10}{table}_new", r"_{1,10}{table}_old"
_GH_NAMES: Final = r"_{table}_gho", r"_{table}(_\d{14})?_del"
"""Names of a shadow and of the table that it has replaced."""


def shadow_of_trigger(trigger: Trigger) -> TableName | None:
    """Return the shadow that a trigger of pt-online-schema-change keeps up to date; None for others."""
    table = trigger.table
    if trigger.time is not TriggerTime.AFTER or len(trigger.events) != 1:
        return None
    (event,) = trigger.events
    prefix = re.sub(r"\W", "_", f"pt_osc_{table.database}_{table.table}")[:_PREFIX_MAX]
    if trigger.name != TableName(table.database, f"{prefix}_{_SUFFIXES[event]}"):
        return None
    used = body_use(trigger.body, table.database, trigger.dialect)
    names = {use.name for use in used.tables}
    if not used.is_understood or len(names) != 1:
        return None
    (shadow,) = names
    if not _is_named(shadow, table, _PT_NAMES[0]):
        return None
    return shadow if all(_only_fills(facts, shadow) for facts in used.facts) else None


def _only_fills(facts: StatementFacts, shadow: TableName) -> bool:
    """True if a statement of a body only puts a row into a shadow, or takes one out of it."""
    is_put = facts.effects.kind is StatementKind.REPLACE and not facts.has_query
    is_taken = (
        facts.effects.kind is StatementKind.DELETE and facts.is_ignore and not facts.is_multi_table
    )
    return (
        (is_put or is_taken)
        and facts.effects.writes == (shadow,)
        and not (facts.functions or facts.user_variables or facts.system_variables)
    )


def swapped_table(effects: StatementEffects, objects: Objects) -> TableName | None:
    """Return the table that a tool's RENAME replaces by its shadow; None for every other statement.

    With `drop_swap`, pt-online-schema-change drops the table before, and only renames the shadow.

    Args:
        effects: Effects of the statement's text on objects.
        objects: The server's objects before the statement.
    """
    if effects.kind is not StatementKind.RENAME_TABLE or not effects.renames:
        return None
    *moved, (shadow, table) = effects.renames
    old = [new for name, new in moved if name == table]
    if len(old) != len(moved) or len(old) > 1 or not can_come_in(shadow, objects):
        return None
    is_swap = any(
        _is_named(shadow, table, names[0]) and all(_is_named(one, table, names[1]) for one in old)
        for names in (_PT_NAMES, _GH_NAMES)[: None if old else 1]
    )
    return table if is_swap else None


def can_come_in(shadow: TableName, objects: Objects) -> bool:
    """True if all rows of a shadow are in the log: it is there, and no foreign key changes them unseen."""
    known = objects.base_table(shadow)
    return known is not None and not any(
        cascaded(key, ROW_DELETES | ROW_UPDATES) for key in known.foreign_keys
    )


def _is_named(name: TableName, table: TableName, form: str) -> bool:
    """True if a tool would give a table's companion this name."""
    pattern = form.replace("{table}", re.escape(table.table))
    return name.database == table.database and re.fullmatch(pattern, name.table) is not None
