"""Columns that a statement names and no table has, and rows of the wrong length: 1054, 1136.

Only what is sure is told: where a table, view or function may have a column of a name, it has. Local
variables of programs are not known here, so their statements are not asked about.

Source: MariaDB 10.11 and MySQL 9.7: sql_base.cc `find_field_in_tables`, sql_insert.cc
`check_insert_fields`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from binlane.names import TableName
from binlane.policy.refusals import Refusal
from binlane.policy.server import Server
from binlane.sql.facts import StatementFacts
from binlane.sql.schema import Objects, Table
from binlane.sql.tree.expressions import (
    Call,
    Default,
    DerivedTable,
    Join,
    Name,
    Node,
    Operation,
    Query,
    Select,
    SelectItem,
    SetOperation,
    Star,
    Subquery,
    TableReference,
    TableUse,
    With,
    children,
    told,
)
from binlane.sql.tree.statements import Delete, Insert, QueryStatement, Update

_ALWAYS: Final = frozenset(
    ("_rowid", "row_start", "row_end", "my_row_id", "rownum", "nextval", "currval", "lastval")
)
"""What tables may have without being told, and what stands for a column."""
_OF_SEQUENCES: Final = frozenset(("NEXTVAL", "LASTVAL", "SETVAL"))
_IN_SELECT: Final = ("field list", "SELECT")
_IN_WHERE: Final = ("where clause", "WHERE")
_IN_ORDER: Final = ("order clause", "ORDER BY")
_IN_GROUP: Final = ("group statement", "GROUP BY")
_IN_HAVING: Final = ("having clause", "HAVING")
_IN_ON: Final = ("on clause", "ON")
_IN_INSERT: Final = ("field list", "INSERT INTO")
_IN_SET: Final = ("field list", "SET")
_RENAMED_SINCE: Final = (11, 7, 0)
"""MariaDB's names of the clauses."""

_Clause = tuple[str, str]


@dataclass(slots=True)
class _Scope:
    """What names can mean at a place.

    Attributes:
        tables: Their names or aliases, in small letters, with their columns; None: not known.
        outer: The scope around it.
        aliases: Of the select list; None: not known.
        common: Tables of WITH.
    """

    tables: list[tuple[str, frozenset[str] | None]] = field(default_factory=list)
    outer: _Scope | None = None
    aliases: frozenset[str] = frozenset()
    common: dict[str, frozenset[str] | None] = field(default_factory=dict)

    def has(self, parts: Sequence[str], *, by_alias: bool) -> bool:
        column = parts[-1].lower()
        table = parts[-2].lower() if len(parts) > 1 else None
        if column in _ALWAYS:
            return True
        if any(
            table in (None, name) and (columns is None or column in columns)
            for name, columns in self.tables
        ):
            return True
        if by_alias and table is None and column in self.aliases:
            return True
        return self.outer is not None and self.outer.has(parts, by_alias=True)

    def common_table(self, name: str) -> tuple[bool, frozenset[str] | None]:
        """Whether WITH makes a table of this name, and its columns."""
        if name in self.common:
            return True, self.common[name]
        return (False, None) if self.outer is None else self.outer.common_table(name)


class _Misnamed(Exception):  # noqa: N818  # found, not wrong
    def __init__(self, name: Name, clause: _Clause) -> None:
        self.name = name
        self.clause = clause


class _WrongCount(Exception):  # noqa: N818  # as above
    def __init__(self, row: int) -> None:
        self.row = row


def misnamed(
    facts: StatementFacts, objects: Objects, *, server: Server, database: str
) -> Refusal | None:
    """The error of a statement on rows that names wrong columns; None if it has none.

    Args:
        facts: It.
        objects: The server's.
        server: Whose texts are given.
        database: The default one.
    """
    checks = _Checks(objects, database)
    try:
        checks.statement(facts.tree)
    except _Misnamed as found:
        is_new = server.is_mariadb and server.version >= _RENAMED_SINCE
        clause = found.clause[is_new]
        shown = ".".join(found.name.parts)
        message = f"Unknown column '{shown}' in '{clause}'"
        return Refusal(1054, "42S22", "ER_BAD_FIELD_ERROR", message)
    except _WrongCount as found:
        message = f"Column count doesn't match value count at row {found.row}"
        return Refusal(1136, "21S01", "ER_WRONG_VALUE_COUNT_ON_ROW", message)
    return None


@dataclass(frozen=True, slots=True)
class _Checks:
    objects: Objects
    database: str

    def statement(self, tree: Node) -> None:
        if isinstance(tree, Insert):
            self.insert(tree)
        elif isinstance(tree, Update):
            scope = self.scope(tree.tables, _with(tree.with_, None))
            for one in tree.assignments:
                self.name(one.column, scope, _IN_SET)
                self.value(one.value, scope, _IN_SET)
            self.values((tree.where,), scope, _IN_WHERE)
            self.values((item.value for item in tree.order_by), scope, _IN_ORDER)
        elif isinstance(tree, Delete):
            scope = self.scope(tree.tables, _with(tree.with_, None))
            self.values((tree.where,), scope, _IN_WHERE)
            self.values((item.value for item in tree.order_by), scope, _IN_ORDER)
        elif isinstance(tree, QueryStatement):
            self.query(tree.query, None)

    def insert(self, tree: Insert) -> None:
        columns = self.columns_of(tree.table, None)
        scope = _Scope([((tree.table.alias or tree.table.name.name).lower(), columns)])
        for column in tree.columns or ():
            if columns is not None and column.lower() not in (columns | _ALWAYS):
                raise _Misnamed(Name(tree.at, tree.at, (column,)), _IN_INSERT)
        self.row_lengths(tree)
        for row in told(tree.rows or ()):
            self.values(row.items, scope, _IN_INSERT)
        if tree.query is not None:
            self.query(tree.query, None)
        if tree.row_alias is not None:
            name, named = tree.row_alias
            known = frozenset(one.lower() for one in named) if named else columns
            scope.tables.append((name.lower(), known))
        if tree.query is not None:
            return  # whose tables ON DUPLICATE KEY UPDATE may name
        for one in tree.on_duplicate or ():
            self.name(one.column, scope, _IN_SET)
            self.value(one.value, scope, _IN_SET)

    def row_lengths(self, tree: Insert) -> None:
        """Raise `_WrongCount` for the first row of another length than the columns."""
        wanted = self.wanted(tree)
        if wanted is None:
            return
        if tree.rows:
            first = len(tree.rows[0].items)
            if first != wanted and (first or tree.columns):
                raise _WrongCount(1)
            if isinstance(tree.rows, tuple):
                for number, row in enumerate(tree.rows, 1):
                    if len(row.items) != first:
                        raise _WrongCount(number)
        elif tree.query is not None:
            given = _width(tree.query)
            if given is not None and given != wanted:
                raise _WrongCount(1)

    def wanted(self, tree: Insert) -> int | None:
        """How many values a row must have; None where that is not known."""
        if tree.is_set:
            return None
        if tree.columns is not None:
            return len(tree.columns) or None
        table = self.table(tree.table)
        if table is None or table.name.database.lower() in _SYSTEM_DATABASES:
            return None
        return sum(column.is_visible for column in table.definition.columns) or None

    def query(self, query: Query, outer: _Scope | None) -> None:
        around = _with(query.with_, outer)
        if query.with_ is not None:
            for one in query.with_.tables:
                self.query(one.query, around)
        body = query.body
        if isinstance(body, Select):
            self.select(body, query, around)
        elif isinstance(body, SetOperation):
            for operand in body.operands:
                self.query(operand, around)
        elif isinstance(body, Query):
            self.query(body, around)

    def select(self, select: Select, query: Query, outer: _Scope | None) -> None:
        scope = self.scope(select.tables, outer)
        scope.aliases = frozenset(filter(None, map(_item_name, select.items)))
        for item in select.items:
            self.value(item.value, scope, _IN_SELECT)
        self.values((select.where,), scope, _IN_WHERE)
        for items, clause in (
            ((item.value for item in select.group_by), _IN_GROUP),
            ((select.having, select.qualify), _IN_HAVING),
            ((item.value for item in query.order_by), _IN_ORDER),
        ):
            self.values(items, scope, clause, by_alias=True)

    def scope(self, tables: Iterable[TableReference], outer: _Scope | None) -> _Scope:
        """The tables of FROM; what is inside of them is looked at, too."""
        scope = _Scope(outer=outer)
        joins: list[Join] = []
        for reference in tables:
            self.add(reference, scope, joins)
        for join in joins:
            self.values((join.on,), scope, _IN_ON)
        return scope

    def add(self, reference: TableReference, scope: _Scope, joins: list[Join]) -> None:
        if isinstance(reference, Join):
            joins.append(reference)
            self.add(reference.left, scope, joins)
            self.add(reference.right, scope, joins)
        elif isinstance(reference, TableUse):
            name = (reference.alias or reference.name.name).lower()
            scope.tables.append((name, self.columns_of(reference, scope.outer)))
        elif isinstance(reference, DerivedTable):
            self.query(reference.query, scope)
            columns = reference.columns or _columns_of_query(reference.query)
            known = None if columns is None else frozenset(one.lower() for one in columns)
            scope.tables.append(((reference.alias or "").lower(), known))
        else:
            scope.tables.append(((reference.alias or "").lower(), None))

    def table(self, use: TableUse) -> Table | None:
        table = self.objects.table(TableName(use.name.database or self.database, use.name.name))
        if table is None or not table.is_complete or table.is_sequence:
            return None
        return table

    def columns_of(self, use: TableUse, outer: _Scope | None) -> frozenset[str] | None:
        """The columns of a table, in small letters; None if they are not known."""
        if use.name.database is None and outer is not None:
            is_common, columns = outer.common_table(use.name.name.lower())
            if is_common:
                return columns
        table = self.table(use)
        if table is None or not table.definition.columns:
            return None
        return frozenset(column.name.lower() for column in table.definition.columns)

    def values(
        self,
        values: Iterable[Node | None],
        scope: _Scope,
        clause: _Clause,
        *,
        by_alias: bool = False,
    ) -> None:
        for value in values:
            if value is not None:
                self.value(value, scope, clause, by_alias=by_alias)

    def value(self, value: Node, scope: _Scope, clause: _Clause, *, by_alias: bool = False) -> None:
        """Look at the names of an expression."""
        if isinstance(value, Name):
            self.name(value, scope, clause, by_alias=by_alias)
        elif isinstance(value, Subquery):
            self.query(value.query, scope)
        elif isinstance(value, Operation) and value.operator == "COLLATE":
            self.value(value.operands[0], scope, clause, by_alias=by_alias)
        elif isinstance(value, Call) and value.upper_name in _OF_SEQUENCES:
            self.values(value.arguments[1:], scope, clause, by_alias=by_alias)
        elif not isinstance(value, Star | Default):
            # ORDER BY and OVER inside of calls may name what they like.
            by_alias = by_alias or isinstance(value, Call)
            for child in children(value):
                self.value(child, scope, clause, by_alias=by_alias)

    def name(self, name: Name, scope: _Scope, clause: _Clause, *, by_alias: bool = False) -> None:
        if not scope.has(name.parts, by_alias=by_alias):
            raise _Misnamed(name, clause)


_SYSTEM_DATABASES: Final = frozenset(("information_schema", "performance_schema", "mysql", "sys"))


def _with(with_: With | None, outer: _Scope | None) -> _Scope | None:
    if with_ is None:
        return outer
    common = {
        one.name.lower(): frozenset(column.lower() for column in one.columns) or None
        for one in with_.tables
    }
    return _Scope(outer=outer, common=common)


def _item_name(item: SelectItem) -> str:
    """The name of a select list's column, in small letters; empty if it has none of its own."""
    if item.alias is not None:
        return item.alias.lower()
    return item.value.parts[-1].lower() if isinstance(item.value, Name) else ""


def _columns_of_query(query: Query) -> Sequence[str] | None:
    body = query.body
    while isinstance(body, SetOperation | Query):
        body = body.operands[0].body if isinstance(body, SetOperation) else body.body
    if not isinstance(body, Select):
        return None
    names = [_item_name(item) for item in body.items]
    return names if all(names) else None


def _width(query: Query) -> int | None:
    """How many columns a query has; None where that is not known."""
    body = query.body
    while isinstance(body, SetOperation | Query):
        body = body.operands[0].body if isinstance(body, SetOperation) else body.body
    if not isinstance(body, Select) or any(_is_star(item) for item in body.items):
        return None
    return len(body.items)


def _is_star(item: SelectItem) -> bool:
    return isinstance(item.value, Star)
