"""Knowledge of tables with rows, and the effect of UPDATE on rows that keep their values.

No definition tells whether a table has rows: tables that no statement filled are taken for empty.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from binlane.names import TableName
from binlane.statements.policy.resolution import ResolvedStatement
from binlane.statements.programs.trace import inserts_own_rows
from binlane.statements.session.state import SessionState
from binlane.statements.session.statement_state import SessionStatement
from binlane.statements.sql.facts import RowChange, StatementFacts
from binlane.statements.sql.schema import Table
from binlane.statements.sql.tree.expressions import Name, Node, Select, TableUse, walk
from binlane.statements.sql.tree.statements import Delete, Insert, Update

_REMOVES: Final = frozenset((RowChange.UPDATE, RowChange.DELETE))
_WITHOUT_ROWS: Final = frozenset(("BLACKHOLE", "EXAMPLE"))
_WORD: Final = re.compile(r"\w+")
_OF_ROW: Final = re.compile(r"(?i)\b(?:OLD|NEW)\s*\.\s*`?(\w+)")


def note_rows(
    state: SessionState, statement: SessionStatement, resolved: ResolvedStatement
) -> None:
    """Know which tables got rows by a statement, or lost all."""
    filled, facts = state.objects.filled, statement.facts
    if filled is None:
        return
    own = [access for access in resolved.accesses if access.changes and not access.is_prelocked]
    tree, rows = facts.tree, statement.outcome.rows
    if isinstance(tree, Delete) and not facts.is_multi_table and tree.where is None:
        if tree.limit is None or rows == 0:
            note_emptied(state, (access.name for access in own))
        return
    if isinstance(tree, Insert) and rows == 0 and inserts_own_rows(facts, resolved):
        is_limited = tree.query is not None and tree.query.limit is not None
        leaves_out = facts.is_ignore or facts.is_on_duplicate or is_limited or _has_where(facts)
        if not leaves_out:
            note_emptied(state, (access.name for access in own))
        return
    for access in resolved.accesses:
        if access.changes - _REMOVES and (access.is_prelocked or rows != 0):
            filled.add(access.name)


def note_emptied(state: SessionState, names: Iterable[TableName]) -> None:
    """Know that tables have no rows."""
    filled = state.objects.filled
    if filled is None:
        return
    emptied = filled.intersection(names)
    if emptied:
        filled -= emptied
        state.objects.version = object()  # what was kept of statements may do something else now


def tries_unchanged(
    state: SessionState, facts: StatementFacts, resolved: ResolvedStatement
) -> bool:
    """True if UPDATE gives its engine existing rows, whether they change or not.

    Servers compare a row themselves, and leave the engine out, where they read all columns that are set.

    Source: `records_are_comparable` of both servers; the columns that they read of tables are measured on
    MariaDB 10.11.19 and MySQL 9.7.4.
    """
    tree = facts.tree
    if not isinstance(tree, Update) or tree.where is not None:
        return False
    if fails_foreign_keys(state, facts, resolved):
        return False
    if not all(isinstance(table, TableUse) for table in tree.tables):
        return False
    named = [access for access in resolved.accesses if not access.is_prelocked]
    if any(is_taken_for_empty(state, access.name) for access in named):
        return False
    if len(tree.tables) > 1 and state.objects.filled is None:
        return False
    return any(access.changes and not _compares(state, tree, access.table) for access in named)


def tries_own_rows(
    state: SessionState, statement: SessionStatement, resolved: ResolvedStatement
) -> bool:
    """True if INSERT or REPLACE gives a table the rows that it has, if it has some."""
    facts = statement.facts
    if statement.outcome.rows == 0 and not (facts.is_ignore or facts.is_on_duplicate):
        return False
    own = next((access for access in resolved.accesses if access.changes), None)
    return (
        own is not None
        and inserts_own_rows(facts, resolved)
        and not _has_where(facts)
        and not is_taken_for_empty(state, own.name)
    )


def _has_where(facts: StatementFacts) -> bool:
    """True if a query of INSERT leaves out rows."""
    tree = facts.tree
    body = tree.query.body if isinstance(tree, Insert) and tree.query is not None else None
    return isinstance(body, Select) and (body.where is not None or body.having is not None)


def fails_foreign_keys(
    state: SessionState, facts: StatementFacts, resolved: ResolvedStatement
) -> bool:
    """True if a row that INSERT or UPDATE IGNORE leaves out is one that MySQL's engine never gets.

    MySQL looks for the parent row first. Otherwise a row is left out for another row with its key.
    """
    own = next((access for access in resolved.accesses if access.changes), None)
    if state.server.is_mariadb or not facts.is_ignore or own is None:
        return False
    keys, table = own.table.foreign_keys, own.table
    if isinstance(facts.tree, Update):
        names = {one.column.parts[-1].lower() for one in facts.tree.assignments}
        linked = {column.lower() for key in keys for column in key.columns}
        for key in state.objects.children(own.name):
            linked.update(column.lower() for column in key.parent_columns)
        return not names.isdisjoint(linked)
    return bool(keys) and (
        not table.unique_keys
        or is_taken_for_empty(state, own.name)
        or any(is_taken_for_empty(state, key.parent) for key in keys)
    )


def is_taken_for_empty(state: SessionState, name: TableName) -> bool:
    """True if no statement filled a table that one made, or none can."""
    filled, table = state.objects.filled, state.objects.table(name)
    if table is None:
        return False
    return table.engine in _WITHOUT_ROWS or (filled is not None and name not in filled)


def _compares(state: SessionState, tree: Update, table: Table) -> bool:
    """True if the server reads all columns that an UPDATE sets, and so finds rows that stay as they are."""
    defined = {column.name.lower(): column for column in table.definition.columns}
    assigned = [one.column.parts[-1].lower() for one in tree.assignments]
    written = {name for name in assigned if name in defined}
    if any(column.on_update and name not in written for name, column in defined.items()):
        return True
    asked: list[Node] = [one.value for one in tree.assignments]
    if state.server.is_mariadb:
        asked += tree.order_by
    read = {node.parts[-1].lower() for one in asked for node in walk(one) if isinstance(node, Name)}
    return written <= read.union(_read_of_table(state, table, written))


def _read_of_table(state: SessionState, table: Table, written: Collection[str]) -> Iterator[str]:
    """Return the columns that a server reads when some columns change."""
    is_mariadb = state.server.is_mariadb
    indexed = {column.lower() for key in table.keys for column in key.columns}
    if is_mariadb:
        yield from indexed
    elif table.keys and table.keys[0].is_primary:
        # MySQL looks for all rows first where that it goes by is set.
        primary = {column.lower() for column in table.keys[0].columns}
        yield from () if primary.isdisjoint(written) else primary
    for column in table.definition.columns:
        yield from _words(column.check)
        if column.generated and (
            not is_mariadb or column.is_stored or column.name.lower() in indexed
        ):
            yield from _words(column.generated)
    for check in table.checks:
        yield from _words(check)
    for trigger in state.objects.triggers(table.name):
        if "UPDATE" in trigger.events:
            yield from (name.lower() for name in _OF_ROW.findall(trigger.body))


def _words(text: str | None) -> Iterator[str]:
    return (word.lower() for word in _WORD.findall(text or ""))
