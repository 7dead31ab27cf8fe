"""Privileges on tables, views, columns and functions that statements on rows need.

Column privileges are looked up by name, not by scope: where two tables of a statement have a column of one name,
the name is taken for that of both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from binlane.names import TableName
from binlane.statements.policy.refusals import Refusal, invalid_view
from binlane.statements.policy.used_objects import columns_of_view, updated_uses
from binlane.statements.predicted_errors.account_rights import SYSTEM_DATABASES, PrivilegeCheck
from binlane.statements.sql.accounts import OWN
from binlane.statements.sql.evaluation.functions import is_built_in
from binlane.statements.sql.facts import RowChange, TableUse
from binlane.statements.sql.object_store import Objects
from binlane.statements.sql.schema import View
from binlane.statements.sql.statement_kinds import StatementKind
from binlane.statements.sql.tree.expressions import Name, Node, Select, Star, children
from binlane.statements.sql.tree.statements import Assignment, Insert, QueryStatement, Update

_CHANGES: Final[Mapping[RowChange, frozenset[str]]] = MappingProxyType(
    {
        RowChange.INSERT: frozenset(("INSERT",)),
        RowChange.LOAD: frozenset(("INSERT",)),
        RowChange.UPDATE: frozenset(("UPDATE",)),
        RowChange.DELETE: frozenset(("DELETE",)),
        RowChange.REPLACE: frozenset(("INSERT", "DELETE")),
        RowChange.UPSERT: frozenset(("INSERT", "UPDATE")),
        RowChange.SEQUENCE: frozenset(("INSERT",)),
    }
)
SELECT: Final = frozenset(("SELECT",))
ANY_OF_ROWS: Final = frozenset(("SELECT", "INSERT", "UPDATE", "DELETE"))


def denied_inside(check: PrivilegeCheck) -> Refusal | None:
    """Return the error for a privilege that columns or functions lack once tables are open: 1143, 1370."""
    for find in (_views, _functions, _columns):
        found = next(find(check), None)
        if found is not None:
            return found
    return None


def row_privileges(check: PrivilegeCheck) -> Iterator[Refusal]:
    """Give the errors of SELECT, INSERT, UPDATE, DELETE, CALL's arguments and their like."""
    facts = check.facts
    kind = facts.effects.kind
    is_load = kind is StatementKind.LOAD_DATA
    if is_load and not facts.is_local and _lacks_file(check):
        yield check.denied()
    uses = facts.tables
    if kind is StatementKind.UPDATE and facts.is_multi_table:
        yield from _joined(check)
        uses = tuple(use for use in uses if not use.is_outermost)
    for use in uses:
        wanted = _wanted(use)
        if is_load and use.changes and facts.is_replace:
            wanted |= {"DELETE"}
        if not use.is_sequence or check.objects.table(use.name) is not None:
            yield from check.tables(wanted, use.name)
    tree = facts.tree
    if isinstance(tree, QueryStatement) and _writes_file(tree):
        is_login = check.server.is_mariadb and check.server.version >= (11,)
        yield from (
            (check.denied(),) if is_login and _lacks_file(check) else check.everywhere("FILE")
        )
    yield from _unknown_functions(check)


def _joined(check: PrivilegeCheck) -> Iterator[Refusal]:
    """Give the errors of an UPDATE of several tables: any of two privileges first, then the right one."""
    uses = [use for use in check.facts.tables if use.is_outermost]
    for use in uses:
        have = check.rights.on("TABLE", use.name) | check.rights.on_columns(use.name)
        if "UPDATE" not in have:
            yield from check.tables(SELECT, use.name)
    objects = check.objects
    if not all(objects.table(use.name) or objects.view(use.name) for use in uses):
        return
    if check.server.is_mariadb:
        for use in updated_uses(uses, check.facts.set_columns, objects):
            if not use.changes:
                yield from check.tables(SELECT, use.name)
            elif "SELECT" not in check.rights.on("TABLE", use.name):
                yield from check.tables(frozenset(("UPDATE",)), use.name)


def _unknown_functions(check: PrivilegeCheck) -> Iterator[Refusal]:
    """Give error 1370 for missing functions where the servers raise no other error."""
    facts = check.facts
    for use in facts.functions[facts.effects.kind is StatementKind.CALL :]:
        if use.database is None and is_built_in(use.name, facts.dialect):
            continue
        name = TableName(use.database or check.database, use.name)
        is_there = check.objects.function(name) or check.objects.is_loadable_function(use.name)
        if not is_there and name.database not in ("sys", ""):
            yield from check.routines("EXECUTE", "FUNCTION", name)


def _lacks_file(check: PrivilegeCheck) -> bool:
    return "FILE" not in check.rights.at(())


def _writes_file(tree: QueryStatement) -> bool:
    into = tree.query.into
    return into is not None and not into.variables


def _wanted(use: TableUse) -> frozenset[str]:
    if use.lock:
        return frozenset(("SELECT", "LOCK TABLES"))
    return frozenset().union(*(_CHANGES[one] for one in use.changes)) or SELECT


def _functions(check: PrivilegeCheck) -> Iterator[Refusal]:
    for use in check.facts.functions[check.facts.effects.kind is StatementKind.CALL :]:
        routine = check.objects.function(TableName(use.database or check.database, use.name))
        if routine is not None:
            yield from check.routines("EXECUTE", "FUNCTION", routine.name)


def called(check: PrivilegeCheck) -> Iterator[Refusal]:
    """Give the errors of CALL: of its procedure and its arguments."""
    use = check.facts.functions[0]
    name = TableName(use.database or check.database, use.name)
    yield from check.routines("EXECUTE", "PROCEDURE", name)
    yield from row_privileges(check)


# Views ----------------------------------------------------------------------------------------


def _views(check: PrivilegeCheck) -> Iterator[Refusal]:
    """Give 1356 where a view's definer lacks a privilege for the statement; 1045 where he does not exist."""
    tree = check.facts.tree
    for use in check.facts.tables:
        view = check.objects.view(use.name)
        if view is None:
            continue
        yield from _behind(check, view, _wanted(use) - {"LOCK TABLES"})
        columns = {one.lower() for one in _columns_of(use.name, check.objects)}
        rights = check.rights_in(view)
        for base in view.facts.tables if columns else ():
            if rights is None or not base.is_outermost or not check.objects.table(base.name):
                continue
            have = rights.on("TABLE", base.name)
            for privilege, column in used_columns(tree, use, check):
                if privilege not in have | rights.on_column(base.name, column):
                    yield invalid_view(view.name)


def _behind(check: PrivilegeCheck, view: View, wanted: frozenset[str]) -> Iterator[Refusal]:
    """Give the errors for privileges missing on the tables of a view, and of the views below it."""
    accounts, definer = check.objects.accounts, view.definer
    if not view.is_invoker and definer not in accounts and definer not in OWN and accounts:
        yield check.denied()
    rights = check.rights_in(view)
    for use in view.facts.tables:
        needed = wanted if use.is_outermost else SELECT
        if rights is not None:
            have = rights.on("TABLE", use.name) | rights.on_columns(use.name)
            if not needed <= have:
                yield invalid_view(view.name)
        inner = check.objects.view(use.name)
        if inner is not None and inner.name != view.name:
            yield from _behind(check, inner, needed)


# Columns --------------------------------------------------------------------------------------


def _columns(check: PrivilegeCheck) -> Iterator[Refusal]:
    """Give error 1143 for tables of which only some columns may be used, and those that are only written."""
    tree = check.facts.tree
    for use in check.facts.tables:
        if use.name.database.lower() in SYSTEM_DATABASES or use.lock:
            continue
        have = check.rights.in_database(use.name.database)
        # MySQL asks no privilege of the table where the whole database gives the wanted ones.
        if check.server.is_mariadb or not _wanted(use) <= have:
            have = check.rights.on("TABLE", use.name)
        if {"SELECT", *_wanted(use)} <= have:
            continue
        # The columns of a view that an INSERT does not name are check of its tables alone.
        is_whole = isinstance(tree, Insert) and not tree.columns
        is_behind = is_whole and check.objects.view(use.name) is not None
        for privilege, column in used_columns(tree, use, check):
            if is_behind and privilege == "INSERT":
                continue
            if privilege not in have | check.rights.on_column(use.name, column):
                yield check.denied_column(privilege, column, use.name)


def used_columns(tree: Node, use: TableUse, check: PrivilegeCheck) -> Iterator[tuple[str, str]]:
    """Give the privileges that a statement needs on columns of a table, each with its column."""
    columns = _columns_of(use.name, check.objects)
    own = {column.lower() for column in columns}
    written: Sequence[Assignment] = ()
    if isinstance(tree, Update):
        written = tree.assignments
    elif isinstance(tree, Insert):
        written = tree.on_duplicate or ()
        if use.changes:
            yield from (("INSERT", column) for column in tree.columns or columns)
    for one in written:
        if use.changes and _is_of(one.column, use, own):
            if isinstance(tree, Insert) and check.server.is_mariadb:
                yield "SELECT", one.column.parts[-1]
            yield "UPDATE", one.column.parts[-1]
    yield from _read_columns(tree, use, check, {id(one.column) for one in written})


def _read_columns(
    tree: Node, use: TableUse, check: PrivilegeCheck, written: Collection[int]
) -> Iterator[tuple[str, str]]:
    columns = _columns_of(use.name, check.objects)
    own = {column.lower() for column in columns}
    for node, select in in_order(tree, None):
        is_inside = _is_inside(use, select, check)
        if isinstance(node, Star):
            yield from (("SELECT", one) for one in columns if is_inside and not use.changes)
        elif id(node) in written or not _is_of(node, use, own):
            continue
        elif is_inside or not _has_own(node, select, check):
            yield "SELECT", node.parts[-1]


def in_order(node: Node, select: Select | None) -> Iterator[tuple[Name | Star, Select | None]]:
    """Names and stars, each with the SELECT that it stands in."""
    for child in children(node):
        if isinstance(child, Name | Star):
            yield child, select
        yield from in_order(child, child if isinstance(child, Select) else select)


def _is_inside(use: TableUse, select: Select | None, check: PrivilegeCheck) -> bool:
    """True if a table is one of a SELECT, or of the statement itself."""
    place = check.facts.place
    return select is None or place(select.at) <= use.offset < place(select.end)


def _has_own(name: Name, select: Select | None, check: PrivilegeCheck) -> bool:
    """True if the tables of a SELECT itself have a column of this name."""
    column = name.parts[-1].lower()
    return any(
        column in map(str.lower, _columns_of(use.name, check.objects))
        for use in check.facts.tables
        if len(name.parts) == 1 and _is_inside(use, select, check)
    )


def _is_of(name: Name, use: TableUse, columns: set[str]) -> bool:
    if len(name.parts) > 1:
        return name.parts[-2].lower() == use.alias.lower()
    return name.parts[-1].lower() in columns


def _columns_of(name: TableName, objects: Objects) -> tuple[str, ...]:
    table, view = objects.table(name), objects.view(name)
    if table is not None:
        return tuple(column.name for column in table.definition.columns)
    return () if view is None else view.columns or tuple(columns_of_view(view))
