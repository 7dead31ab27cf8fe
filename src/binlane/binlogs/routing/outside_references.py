"""DDL of a child in scope whose parent is outside: it stands in the binlog without that foreign key.

A replica of the scope does not have the parent, and so cannot have the key. The rows are the same
without it: the source has checked them, and what the key does to them is told by events, or by an
INCIDENT. The index that a server makes for a key is made by name in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from binlane.binlogs.routing.judging import RoutedStatement, judge_statement
from binlane.binlogs.routing.query_events import with_text
from binlane.binlogs.routing.routed_group import Omission, OmissionKind
from binlane.binlogs.routing.routing_memory import Memory
from binlane.binlogs.routing.statement_verdicts import Drop, Keep
from binlane.log.codec.query import QueryEvent
from binlane.names import TableName, quote
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.facts import StatementEffects, StatementFacts
from binlane.statements.sql.foreign_keys import references_named
from binlane.statements.sql.logged_statements import logged_statement
from binlane.statements.sql.schema import made_up_number, made_up_reference
from binlane.statements.sql.statement_kinds import StatementKind
from binlane.statements.sql.table_changes import created
from binlane.statements.sql.tree.definitions import (
    AlterAction,
    AlterTable,
    CreateTable,
    DefinedColumn,
    KeyDefinition,
    Reference,
)
from binlane.statements.sql.tree.expressions import Node

KEY_LEFT_OUT: Final = Omission(
    kind=OmissionKind.FOREIGN_KEY, reason="its parent is outside of the scope"
)
_DROPPING: Final = frozenset({"DROP FOREIGN KEY", "DROP CONSTRAINT"})


class ChildStatement(NamedTuple):
    """A statement on a child as it stands in the binlog.

    Attributes:
        query: The event with the text that is left; as it was where none is left.
        found: The judgement on that text.
        table: Name of the child in scope.
        left_keys: Names, in small letters, of all keys of the child that its replicas lack.
    """

    query: QueryEvent
    found: RoutedStatement
    table: TableName
    left_keys: frozenset[str]


def without_outside_keys(
    query: QueryEvent, found: RoutedStatement, scope: Scope, memory: Memory
) -> ChildStatement | None:
    """Take the foreign keys to outside parents out of a statement on one table in scope.

    Args:
        query: Event of the statement as logged.
        found: The judgement on the statement as it is.
        scope: Scope of the binlog to route to.
        memory: Routing's memory before the statement.

    Returns:
        The statement; None if there is no such key, or the rest does not say the same without it.
    """
    node = found.facts.tree
    if not isinstance(node, CreateTable | AlterTable) or query.is_compressed:
        return None
    effects = found.facts.effects
    if effects.stopped_at is not None or effects.is_temporary or len(effects.writes) != 1:
        return None
    table = effects.writes[0]
    if not scope.includes(table):
        return None
    if isinstance(node, CreateTable):
        made = _created(node, found.facts, table, scope)
    else:
        made = _altered(node, found.facts, table, scope, memory)
    if made is None:
        return None
    text, names = made
    omissions = (KEY_LEFT_OUT,) if names - memory.left_keys_of(table) else ()
    if not text:
        return ChildStatement(query, replace(found, verdict=Drop()), table, names)
    altered = with_text(query, text)
    judged = judge_statement(logged_statement(altered), scope, memory)
    if not isinstance(judged.verdict, Keep):
        return None
    judged = replace(judged, omissions=(*judged.omissions, *omissions))
    return ChildStatement(with_text(altered, judged.text), judged, table, names)


def _is_outside(reference: Reference | None, table: TableName, scope: Scope) -> bool:
    if reference is None:
        return False
    parent = TableName(reference.table.database or table.database, reference.table.name)
    return not scope.includes(parent)


# CREATE TABLE -------------------------------------------------------------------------------------


def _created(
    node: CreateTable, facts: StatementFacts, table: TableName, scope: Scope
) -> tuple[str, frozenset[str]] | None:
    if node.elements_at < 0 or node.if_not_exists or facts.literals is not None:
        return None
    parts: list[str] = []
    indexes: list[str] = []
    is_outside = False
    for element in node.elements:
        reference = _reference(element)
        if not _is_outside(reference, table, scope):
            if reference is not None and not (
                isinstance(element, KeyDefinition) and _name(element)
            ):
                indexes.append("")  # its made up name has a number that counts those left out
            parts.append(facts.text_of(element))
            continue
        assert reference is not None, "it is outside"
        is_outside = True
        if isinstance(element, DefinedColumn):
            text, at = facts.text_of(element), element.at
            parts.append(text[: reference.at - at] + text[reference.end - at :])
            columns: tuple[str, ...] = (element.name,)
            name = ""
        else:
            assert isinstance(element, KeyDefinition), "others have no reference"
            columns = tuple(part.column for part in element.parts)
            name = _index_name(element, is_mariadb=facts.dialect.may_be_mariadb)
        if not _is_covered(columns, node):
            parts.append(_index(name, columns))
    if not is_outside or "" in indexes:
        return None
    text = facts.text
    made = f"{text[: node.elements_at]}({', '.join(parts)}){text[node.elements_end :]}"
    keys = created(table, facts, engine="INNODB", charset=None).foreign_keys
    outside = [key for key in references_named(keys, table.table) if not scope.includes(key.parent)]
    return made, frozenset(key.own_name.lower() for key in outside)


def _reference(element: Node) -> Reference | None:
    return element.references if isinstance(element, DefinedColumn | KeyDefinition) else None


def _name(key: KeyDefinition) -> str:
    return key.constraint or key.name


def _index_name(key: KeyDefinition, *, is_mariadb: bool) -> str:
    """The name that a server gives the index of a foreign key; empty if it makes one up."""
    return (key.name or key.constraint) if is_mariadb else _name(key)


def _index(name: str, columns: Iterable[str]) -> str:
    return f"KEY {quote(name) + ' ' if name else ''}({', '.join(map(quote, columns))})"


def _is_covered(columns: Sequence[str], node: CreateTable) -> bool:
    """True if another index of the table serves a foreign key, so that no server makes one."""
    wanted = [column.lower() for column in columns]
    for element in node.elements:
        if isinstance(element, DefinedColumn):
            if element.key and wanted == [element.name.lower()]:
                return True
        elif isinstance(element, KeyDefinition) and element.kind in ("PRIMARY", "UNIQUE", "KEY"):
            parts = element.parts[: len(wanted)]
            if [part.column.lower() for part in parts] == wanted and not any(
                part.length for part in parts
            ):
                return True
    return False


# ALTER TABLE --------------------------------------------------------------------------------------


def _altered(
    node: AlterTable, facts: StatementFacts, table: TableName, scope: Scope, memory: Memory
) -> tuple[str, frozenset[str]] | None:
    left = memory.left_keys_of(table)
    names, parts, is_changed = set(left), [], False
    if not node.actions or facts.literals is not None:
        return None
    for action in node.actions:
        text: str | None = facts.text_of(action)
        if action.kind in _DROPPING and action.name.lower() in left:
            names.discard(action.name.lower())
            text, is_changed = None, True
        elif action.kind == "ADD KEY" and action.key is not None:
            key = action.key
            if _is_outside(key.references, table, scope):
                if not _name(key):
                    return None  # which number its name has depends on keys that nobody knows
                index_name = _index_name(key, is_mariadb=facts.dialect.may_be_mariadb)
                index = _index(index_name, [part.column for part in key.parts])
                text = f"ADD {index.replace('KEY', 'KEY IF NOT EXISTS', 1)}"
                text = text if facts.dialect.may_be_mariadb else f"ADD {index}"
                names.add(_name(key).lower())
                is_changed = True
        elif _has_outside(action, table, scope):
            return None
        parts += [] if text is None else [text]
    if not is_changed:
        return None
    whole = facts.text
    head, tail = whole[: node.actions[0].at], whole[node.actions[-1].end :]
    return f"{head}{', '.join(parts)}{tail}" if parts else "", frozenset(names)


def _has_outside(action: AlterAction, table: TableName, scope: Scope) -> bool:
    return any(
        _is_outside(_reference(each), table, scope) for each in (*action.keys, *action.columns)
    )


# What becomes of them later -----------------------------------------------------------------------


def after_left_keys(memory: Memory, effects: StatementEffects, scope: Scope) -> Memory:
    """Give the memory, with the keys that were left out, behind a statement on tables."""
    if not memory.left_keys or effects.is_temporary:
        return memory
    gone = set(map(scope.key, effects.drops))
    if effects.kind is StatementKind.CREATE_TABLE and not effects.if_exists:
        gone |= set(map(scope.key, effects.writes))
    databases = effects.dropped_databases
    names = {scope.key(old): scope.key(new) for old, new in effects.net_renames}
    kept = set()
    for table, name in memory.left_keys:
        if table in gone or any(scope.is_same(table.database, one) for one in databases):
            continue
        new = names.get(table, table)
        number = made_up_number(name, table.table)
        is_made_up = number is not None and new != table
        kept.add((new, made_up_reference(new.table, number or 0).lower() if is_made_up else name))
    return replace(memory, left_keys=frozenset(kept))
