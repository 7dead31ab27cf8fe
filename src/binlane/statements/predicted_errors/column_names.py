"""Columns that a statement names and no table has, columns named twice, rows of the wrong length.

A name that a table, view or function may have is taken to be there.

Source: MariaDB 10.11 and MySQL 9.7: sql_base.cc `find_field_in_tables`, sql_insert.cc `check_insert_fields`;
measured, tests/vectors/errors.txt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from binlane.names import TableName
from binlane.statements.policy.refusals import Refusal, invalid_view, refusal, wrong_argument_count
from binlane.statements.policy.server import Server
from binlane.statements.predicted_errors.prediction import PredictedError
from binlane.statements.predicted_errors.variable_names import is_no_variable
from binlane.statements.sql.evaluation.functions import is_built_in
from binlane.statements.sql.evaluation.query_types import column_name, is_stored
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.object_store import Objects
from binlane.statements.sql.schema import Table, View
from binlane.statements.sql.servers import Fact
from binlane.statements.sql.tree.definitions import CreateTable, CreateView
from binlane.statements.sql.tree.expressions import (
    Call,
    Default,
    DerivedTable,
    Join,
    Name,
    NamedTable,
    Node,
    Operation,
    Query,
    Select,
    SelectItem,
    SetOperation,
    Star,
    Subquery,
    SystemVariable,
    TableReference,
    children,
    told,
)
from binlane.statements.sql.tree.statements import Delete, Insert, QueryStatement, Update

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
_IN_FROM: Final = ("from clause", "FROM")
_IN_INSERT: Final = ("field list", "INSERT INTO")
_IN_VALUES: Final = ("field list", "VALUES")
_IN_SET: Final = ("field list", "SET")
_IN_DUPLICATE: Final = ("field list", "UPDATE")
_Clause = tuple[str, str]
"""The names that MySQL and MariaDB have for it."""
_Locals = Callable[[str], bool]
"""Whether a local variable has a name."""


@dataclass(slots=True)
class _TablesInScope:
    """Tables and aliases that names can mean at a place.

    Attributes:
        tables: Their names or aliases, in small letters, with their columns; None: not known.
        outer: Scope of the query around this one.
        aliases: Of the select list; None: not known.
        common: Columns of the tables that WITH makes.
    """

    tables: list[tuple[str, frozenset[str] | None]] = field(default_factory=list)
    outer: _TablesInScope | None = None
    aliases: frozenset[str] = frozenset()
    common: dict[str, list[str] | None] = field(default_factory=dict)

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

    def common_table(self, name: str) -> tuple[bool, list[str] | None]:
        """Return whether WITH makes a table of this name, and its columns."""
        if name in self.common:
            return True, self.common[name]
        return (False, None) if self.outer is None else self.outer.common_table(name)


def unknown_column(
    facts: StatementFacts,
    objects: Objects,
    *,
    server: Server,
    database: str,
    is_local: _Locals = lambda _: False,
) -> Refusal | None:
    """The error of a statement or definition that names wrong columns; None if it has none.

    Args:
        facts: Facts of the statement or definition.
        objects: Catalog of the server's objects.
        server: Server whose texts of errors are given.
        database: Default database of the statement's session.
        is_local: Which names are local variables, or rows of a trigger.
    """
    try:
        _ColumnReader(facts, objects, server, database, is_local).statement(facts.tree)
    except PredictedError as found:
        return found.error
    return None


def column_names(
    query: Query, facts: StatementFacts, objects: Objects, *, server: Server, database: str
) -> list[str] | None:
    """The names of the columns of a statement's query; None if they are not known."""
    return _ColumnReader(facts, objects, server, database, lambda _: False).names(query, None)


@dataclass(frozen=True, slots=True)
class _ColumnReader:
    text: StatementFacts
    objects: Objects
    server: Server
    database: str
    is_local: _Locals
    views: tuple[TableName, ...] = ()
    broken: dict[TableName, bool] = field(default_factory=dict)
    """Of the views that were looked at: each once, however often others name it."""

    def statement(self, tree: Node) -> None:
        if isinstance(tree, Insert):
            self.insert(tree)
        elif isinstance(tree, Update):
            is_select = len(tree.tables) > 1 or not isinstance(tree.tables[0], NamedTable)
            is_select = is_select or self.server.has(Fact.UPDATES_AS_QUERIES)
            scope = self.scope(tree.tables, self.with_common(tree, None), is_changed=True)
            for one in tree.assignments:
                self.name(one.column, scope, _IN_SET)
            for one in tree.assignments:
                self.value(one.value, scope, _IN_SELECT if is_select else _IN_SET)
            self.values((tree.where,), scope, _IN_WHERE)
            self.values((item.value for item in tree.order_by), scope, _IN_ORDER)
        elif isinstance(tree, Delete):
            scope = self.scope(tree.tables, self.with_common(tree, None), is_changed=True)
            self.values((tree.where,), scope, _IN_WHERE)
            self.values((item.value for item in tree.order_by), scope, _IN_ORDER)
        elif isinstance(tree, QueryStatement | CreateTable) and tree.query is not None:
            self.query(tree.query, None)
        elif isinstance(tree, CreateView):
            self.view_definition(tree)

    def view_definition(self, tree: CreateView) -> None:
        self.query(tree.query, None)
        names = self.names(tree.query, None)
        if tree.columns:
            if names is not None and len(names) != len(tree.columns):
                raise PredictedError(refusal(1353, server=self.server))
            self.twice(tree.columns)
        elif isinstance(tree.query.body, Select):
            # Expressions without a name get another one where it is taken.
            is_named = [_item_name(item) or _is_star(item) for item in tree.query.body.items]
            self.twice(names if all(is_named) else None)

    def twice(self, names: Iterable[str] | None) -> None:
        """Raise for the first name that is there before; None: they are not known."""
        seen: set[str] = set()
        for name in names or ():
            if name.lower() in seen:
                raise PredictedError(refusal(1060, name))
            seen.add(name.lower())

    def insert(self, tree: Insert) -> None:
        self.view_inside(tree.table, None)
        columns = self.columns_of(tree.table, None, is_changed=True)
        scope = _TablesInScope([((tree.table.alias or tree.table.name.name).lower(), columns)])
        # MariaDB looks at what is inserted first before it looks at the columns.
        if self.server.is_mariadb:
            self.first_row(tree, scope)
            self.row_length(tree)
        if columns is not None:
            self.column_list(tree, columns | _ALWAYS)
        if not self.server.is_mariadb:
            if tree.query is not None:
                self.query(tree.query, None)
            self.row_length(tree)
        self.rows(tree, scope)
        if tree.row_alias is not None:
            name, named = tree.row_alias
            known = frozenset(one.lower() for one in named) if named else columns
            scope.tables.append((name.lower(), known))
        if tree.query is not None:
            return  # whose tables ON DUPLICATE KEY UPDATE may name
        for one in tree.on_duplicate or ():
            self.name(one.column, scope, _IN_DUPLICATE)
        for one in tree.on_duplicate or ():
            self.value(one.value, scope, _IN_SELECT)

    def column_list(self, tree: Insert, columns: frozenset[str]) -> None:
        given: set[str] = set()
        for column in tree.columns or ():
            if column.lower() not in columns:
                raise self.unknown(Name(tree.at, tree.at, (column,)), _IN_INSERT)
            if column.lower() in given:
                raise PredictedError(refusal(1110, column))
            given.add(column.lower())

    def first_row(self, tree: Insert, scope: _TablesInScope) -> None:
        """Look at the first row of VALUES, or at the query."""
        for row in told(tree.rows or ())[:1]:
            self.values(row.items, scope, _IN_VALUES)
        if tree.query is not None:
            self.query(tree.query, None)

    def row_length(self, tree: Insert) -> None:
        """Raise if the first row of VALUES, or those of the query, are not as long as the columns."""
        wanted = self.wanted(tree)
        if wanted is None:
            return
        if tree.rows:
            first = len(tree.rows[0].items)
            if first != wanted and (first or tree.columns):
                raise PredictedError(refusal(1136, 1))
        elif tree.query is not None:
            given = self.names(tree.query, None)
            if given is not None and len(given) != wanted:
                raise PredictedError(refusal(1136, 1))

    def rows(self, tree: Insert, scope: _TablesInScope) -> None:
        """Look at the rows of VALUES, each of which has to be as long as the first one."""
        if not isinstance(tree.rows, tuple):
            for row in told(tree.rows or ()):
                self.values(row.items, scope, _IN_VALUES)
            return
        for number, row in enumerate(tree.rows, 1):
            if len(row.items) != len(tree.rows[0].items) and self.wanted(tree) is not None:
                raise PredictedError(refusal(1136, number))
            is_later = number > 1 and self.server.is_mariadb
            self.values(row.items, scope, _IN_SELECT if is_later else _IN_VALUES)

    def wanted(self, tree: Insert) -> int | None:
        """Return the number of values that a row must have; None where that is not known."""
        if tree.is_set:
            return None
        if tree.columns is not None:
            return len(tree.columns) or None
        table = self.table(tree.table)
        if table is None or table.name.database.lower() in _SYSTEM_DATABASES:
            return None
        return sum(column.is_visible for column in table.definition.columns) or None

    def query(self, query: Query, outer: _TablesInScope | None) -> None:
        around = self.with_common(query, outer)
        if query.with_ is not None:
            for one in query.with_.tables:
                self.query(one.query, around)
                self.twice(one.columns or self.names(one.query, around))
        body = query.body
        if isinstance(body, Select):
            self.select(body, query, around)
        elif isinstance(body, SetOperation):
            for operand in body.operands:
                self.query(operand, around)
        elif isinstance(body, Query):
            self.query(body, around)

    def select(self, select: Select, query: Query, outer: _TablesInScope | None) -> None:
        scope = self.scope(select.tables, outer)
        scope.aliases = frozenset(filter(None, map(_item_name, select.items)))
        for item in select.items:
            self.value(item.value, scope, _IN_SELECT)
            self.star(item.value, scope)
        self.values((select.where,), scope, _IN_WHERE)
        for items, clause in (
            ((item.value for item in select.group_by), _IN_GROUP),
            ((select.having, select.qualify), _IN_HAVING),
            ((item.value for item in query.order_by), _IN_ORDER),
        ):
            self.values(items, scope, clause, by_alias=True)

    def star(self, value: Node, scope: _TablesInScope) -> None:
        if not isinstance(value, Star) or not value.qualifier:
            return
        name = value.qualifier[-1].lower()
        if not any(table in ("", name) for table, _ in scope.tables):
            shown = ".".join(value.qualifier)
            if self.server.is_mariadb and len(value.qualifier) == 1 and self.database:
                shown = f"{self.database}.{shown}"
            raise PredictedError(refusal(1051, shown))

    def scope(
        self,
        tables: Iterable[TableReference],
        outer: _TablesInScope | None,
        *,
        is_changed: bool = False,
    ) -> _TablesInScope:
        """The tables of FROM; what is inside of them is looked at, too.

        Args:
            tables: Tables of FROM, those between commas.
            outer: Scope of the query around this one.
            is_changed: They are those of an UPDATE or DELETE.
        """
        scope = _TablesInScope(outer=outer)
        joins: list[Join] = []
        for reference in tables:
            self.add(reference, scope, joins, is_changed=is_changed)
        for join in joins:
            self.values((join.on,), scope, _IN_ON)
        return scope

    def add(
        self,
        reference: TableReference,
        scope: _TablesInScope,
        joins: list[Join],
        *,
        is_changed: bool = False,
    ) -> None:
        if isinstance(reference, Join):
            joins.append(reference)
            before = len(scope.tables)
            self.add(reference.left, scope, joins, is_changed=is_changed)
            middle = len(scope.tables)
            self.add(reference.right, scope, joins, is_changed=is_changed)
            for side in (scope.tables[before:middle], scope.tables[middle:]):
                for name in reference.using:
                    if not _TablesInScope(side).has((name,), by_alias=False):
                        raise self.unknown(Name(reference.at, reference.at, (name,)), _IN_FROM)
        elif isinstance(reference, NamedTable):
            # MariaDB looks only for those columns of a view that it needs.
            self.view_inside(reference, scope.outer, is_lazy=is_changed and self.server.is_mariadb)
            name = (reference.alias or reference.name.name).lower()
            columns = self.columns_of(reference, scope.outer, is_changed=is_changed)
            scope.tables.append((name, columns))
        elif isinstance(reference, DerivedTable):
            self.query(reference.query, scope)
            names = self.names(reference.query, scope)
            self.twice(reference.columns or names)
            known = _known(reference.columns or names)
            scope.tables.append(((reference.alias or "").lower(), known))
        else:
            scope.tables.append(((reference.alias or "").lower(), None))

    def table(self, use: NamedTable) -> Table | None:
        table = self.objects.table(self.full_name(use))
        if table is None or not table.is_complete or table.is_sequence:
            return None
        return table

    def full_name(self, use: NamedTable) -> TableName:
        return TableName(use.name.database or self.database, use.name.name)

    def view_inside(
        self, use: NamedTable, outer: _TablesInScope | None, *, is_lazy: bool = False
    ) -> None:
        """Look at a view's own query."""
        if is_lazy or (
            use.name.database is None and outer and outer.common_table(use.name.name)[0]
        ):
            return
        name = self.full_name(use)
        view = None if self.objects.table(name) is not None else self.objects.view(name)
        if view is None or name in self.views or not isinstance(view.facts.tree, QueryStatement):
            return
        if name not in self.broken:
            self.broken[name] = self.is_broken(view, view.facts.tree.query)
        if self.broken[name]:
            raise PredictedError(invalid_view(name))

    def is_broken(self, view: View, query: Query) -> bool:
        """Return True if a view names an object that is gone."""
        try:
            self.inside(view).query(query, None)
        except PredictedError as found:
            return found.error.errno in _BREAKING_VIEWS
        return False

    def inside(self, view: View) -> _ColumnReader:
        return replace(
            self,
            text=view.facts,
            database=view.database or view.name.database,
            is_local=lambda _: False,
            views=(*self.views, view.name),
        )

    def columns_of(
        self, use: NamedTable, outer: _TablesInScope | None, *, is_changed: bool = False
    ) -> frozenset[str] | None:
        """The columns of a table, in small letters; None if they are not known."""
        table = None if self.is_common(use, outer) else self.table(use)
        if table is not None:  # with the invisible ones
            return _known(column.name for column in table.definition.columns) or None
        view = self.objects.view(self.full_name(use)) if is_changed else None
        if view is not None:  # where it cannot be changed that is said first
            tree = view.facts.tree
            if not isinstance(tree, QueryStatement) or is_stored(tree.query):
                return None
        return _known(self.table_names(use, outer) or None)

    def is_common(self, use: NamedTable, outer: _TablesInScope | None) -> bool:
        if use.name.database is not None or outer is None:
            return False
        return outer.common_table(use.name.name.lower())[0]

    def table_names(self, use: NamedTable, outer: _TablesInScope | None) -> list[str] | None:
        """The columns that `*` gives of a table or view; None if they are not known."""
        if self.is_common(use, outer):
            assert outer is not None
            return outer.common_table(use.name.name.lower())[1]
        table = self.table(use)
        if table is not None:
            return [one.name for one in table.definition.columns if one.is_visible] or None
        name = self.full_name(use)
        view = None if self.objects.table(name) is not None else self.objects.view(name)
        if view is None or name in self.views or not isinstance(view.facts.tree, QueryStatement):
            return None
        if view.columns:
            return list(view.columns)
        # A star has the columns that its tables had when the view was made.
        query = view.facts.tree.query
        body = _first_body(query)
        if not isinstance(body, Select) or any(_is_star(item) for item in body.items):
            return None
        return self.inside(view).names(query, None)

    def names(self, query: Query, outer: _TablesInScope | None) -> list[str] | None:
        """The names of a query's columns; None if they are not known."""
        around = self.with_common(query, outer)
        body = query.body
        while isinstance(body, SetOperation | Query):
            if isinstance(body, Query):
                around = self.with_common(body, around)
            body = body.operands[0].body if isinstance(body, SetOperation) else body.body
        if not isinstance(body, Select):
            return None
        names: list[str] = []
        for item in body.items:
            if not isinstance(item.value, Star):
                names.append(item.alias or column_name(item, self.text))
                continue
            starred = self.starred(item.value, body.tables, around)
            if starred is None:
                return None
            names += starred
        return names

    def starred(
        self, star: Star, tables: Iterable[TableReference], outer: _TablesInScope | None
    ) -> list[str] | None:
        """The columns that `*` or `t.*` stands for; None if they are not known."""
        names: list[str] = []
        wanted = star.qualifier[-1].lower() if star.qualifier else None
        for table in tables:
            if isinstance(table, NamedTable):
                alias, found = table.alias or table.name.name, self.table_names(table, outer)
            elif isinstance(table, DerivedTable):
                alias = table.alias or ""
                found = list(table.columns) or self.names(table.query, outer)
            elif isinstance(table, Join) and not table.using and "NATURAL" not in table.kind:
                alias, found = None, self.starred(star, (table.left, table.right), outer)
            else:
                return None
            if wanted is None or alias is None or alias.lower() == wanted:
                if found is None:
                    return None
                names += found
        return names

    def with_common(
        self, query: Query | Update | Delete, outer: _TablesInScope | None
    ) -> _TablesInScope | None:
        """A scope with the tables of WITH; what is recursive has names of its own alone."""
        if query.with_ is None:
            return outer
        scope = _TablesInScope(outer=outer)
        for one in query.with_.tables:
            scope.common[one.name.lower()] = None
            names = list(one.columns) or self.names(one.query, scope)
            scope.common[one.name.lower()] = names
        return scope

    def values(
        self,
        values: Iterable[Node | None],
        scope: _TablesInScope,
        clause: _Clause,
        *,
        by_alias: bool = False,
    ) -> None:
        for value in values:
            if value is not None:
                self.value(value, scope, clause, by_alias=by_alias)

    def value(
        self, value: Node, scope: _TablesInScope, clause: _Clause, *, by_alias: bool = False
    ) -> None:
        """Look at the names of an expression."""
        if isinstance(value, Name):
            self.name(value, scope, clause, by_alias=by_alias)
        elif isinstance(value, Subquery):
            self.query(value.query, scope)
        elif isinstance(value, Operation) and value.operator == "COLLATE":
            self.value(value.operands[0], scope, clause, by_alias=by_alias)
        elif isinstance(value, Call) and value.upper_name in _OF_SEQUENCES:
            self.values(value.arguments[1:], scope, clause, by_alias=by_alias)
        elif isinstance(value, SystemVariable):
            if is_no_variable(value.name):
                raise PredictedError(refusal(1193, value.name))
        elif not isinstance(value, Star | Default):
            # ORDER BY and OVER inside of calls may name what they like.
            by_alias = by_alias or isinstance(value, Call)
            if isinstance(value, Call) and not self.server.is_mariadb:
                self.arguments(value)
            for child in children(value):
                self.value(child, scope, clause, by_alias=by_alias)

    def arguments(self, call: Call) -> None:
        """Raise if a stored function gets too few or too many, which MariaDB finds as it calls."""
        if call.database is None and not call.is_quoted and is_built_in(call.name):
            return
        routine = self.objects.function(TableName(call.database or self.database, call.name))
        if routine is not None and not routine.takes(len(call.arguments)):
            raise PredictedError(wrong_argument_count(routine, len(call.arguments)))

    def name(
        self, name: Name, scope: _TablesInScope, clause: _Clause, *, by_alias: bool = False
    ) -> None:
        if scope.has(name.parts, by_alias=by_alias) or self.is_local(name.parts[0]):
            return
        raise self.unknown(name, clause)

    def unknown(self, name: Name, clause: _Clause) -> PredictedError:
        is_mariadb = self.server.is_mariadb
        return PredictedError(refusal(1054, ".".join(name.parts), clause[is_mariadb]))


_SYSTEM_DATABASES: Final = frozenset(("information_schema", "performance_schema", "mysql", "sys"))
_BREAKING_VIEWS: Final = frozenset((1051, 1054, 1060, 1146, 1305, 1318, 1356))


def _known(names: Iterable[str] | None) -> frozenset[str] | None:
    return None if names is None else frozenset(name.lower() for name in names)


def _item_name(item: SelectItem) -> str:
    """The name of a select list's column, in small letters; empty if it has none of its own."""
    if item.alias is not None:
        return item.alias.lower()
    return item.value.parts[-1].lower() if isinstance(item.value, Name) else ""


def _first_body(query: Query) -> Node:
    """The first SELECT of a query, or what else it is."""
    body: Node = query.body
    while isinstance(body, SetOperation | Query):
        body = body.operands[0].body if isinstance(body, SetOperation) else body.body
    return body


def _is_star(item: SelectItem) -> bool:
    return isinstance(item.value, Star)
