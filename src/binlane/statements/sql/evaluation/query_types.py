"""Types of expressions, and the columns that CREATE TABLE makes of a query.

Names of columns are those that the servers give, types those that `types` derives of expressions.
Tables, views and stored functions are looked up in the catalog; what is not known raises `Untyped`:
then no column is made up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

from binlane.names import TableName
from binlane.statements.sql.column_charsets import collation_today
from binlane.statements.sql.evaluation.evaluator import has_aggregate
from binlane.statements.sql.evaluation.function_types import call_type, cast_type, of_one_row
from binlane.statements.sql.evaluation.known_names import StatementText
from binlane.statements.sql.evaluation.literal_values import bytes_value, string_content
from binlane.statements.sql.evaluation.operator_types import (
    ARITHMETIC,
    OPERATORS,
    Columns,
    TypeScope,
    TypeSource,
    Untyped,
    combined,
    integer,
    moved,
    real,
    together,
    truth,
)
from binlane.statements.sql.evaluation.typed_call import TypedCall
from binlane.statements.sql.evaluation.types import (
    BYTES,
    LONGEST,
    NO_DECIMALS,
    Coercibility,
    Type,
    TypeKind,
    aggregated,
    column_of_type,
    moment,
    text,
    type_of_column,
)
from binlane.statements.sql.evaluation.values import UNKNOWN, Temporal, Text, Unknown, Value
from binlane.statements.sql.parser import Stopped, cursor_over
from binlane.statements.sql.parser.types import read_type
from binlane.statements.sql.schema import Routine, View
from binlane.statements.sql.servers import Dialect, Fact, default_collation
from binlane.statements.sql.table_definitions import TableColumn, typed_column
from binlane.statements.sql.tokens import SqlSyntaxError
from binlane.statements.sql.tree.expressions import (
    Assign,
    Call,
    Case,
    Cast,
    CommonTable,
    DerivedTable,
    Expression,
    Interval,
    Join,
    Literal,
    LiteralKind,
    Match,
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
    TableQuery,
    TableReference,
    UserVariable,
    Values,
)
from binlane.statements.sql.tree.statements import QueryStatement

_NAME_LENGTH_MAX: Final = 64
_BIGINT_MAX: Final = (1 << 63) - 1
_UNSIGNED_MAX: Final = (1 << 64) - 1


UNKNOWN_TYPE: Final = "?"
"""The name of a type that nobody knows; printed as it is."""


def query_columns(query: Query, scope: TypeScope) -> tuple[TableColumn, ...]:
    """The columns that CREATE TABLE makes of a query.

    Raises:
        Untyped: If the columns cannot be told.
    """
    return tuple(
        column_of_type(name, each, flavor=scope.flavor) for name, each in _columns(query, scope)
    )


def columns_as_far_as_known(query: Query, scope: TypeScope) -> tuple[TableColumn, ...]:
    """Give the columns of a query, with `UNKNOWN_TYPE` for unknown types, where one can stand.

    Raises:
        Untyped: If not even the number of columns can be told.
    """
    select = query.body
    if not isinstance(select, Select) or query.with_ is not None:
        return query_columns(query, scope)
    sources = _from(select, scope)
    inside = replace(scope, sources=(*sources, *scope.sources))
    found: list[TableColumn] = []
    for item in select.items:
        try:
            columns = _item(item, inside, sources)
        except Untyped:
            if isinstance(item.value, Star):
                raise
            name = column_name(item, scope.text) if item.alias is None else item.alias
            found.append(TableColumn(name=name, type_name=UNKNOWN_TYPE))
            continue
        found += (column_of_type(name, each, flavor=scope.flavor) for name, each in columns)
    return tuple(found)


# Queries ------------------------------------------------------------------------------------------


def _columns(query: Query, scope: TypeScope) -> Columns:
    """Names and types of a query's columns."""
    if query.with_ is not None:
        for table in query.with_.tables:
            columns = _common(table, scope, is_recursive=query.with_.is_recursive)
            scope = replace(scope, common={**scope.common, table.name.lower(): columns})
    return _of_body(query.body, scope)


def _common(table: CommonTable, scope: TypeScope, *, is_recursive: bool) -> Columns:
    body = table.query.body
    if is_recursive and isinstance(body, SetOperation):
        # The first part alone decides; a later one may have no row.
        first = _columns(body.operands[0], scope)
        nothing = tuple(("", _NULL) for _ in first)
        return _renamed(_united([first, nothing], scope), table.columns)
    return _renamed(_columns(table.query, scope), table.columns)


def _of_body(body: Node, scope: TypeScope) -> Columns:
    if isinstance(body, Query):
        return _columns(body, scope)
    if isinstance(body, SetOperation):
        united = _united([_columns(each, scope) for each in body.operands], scope)
        return _stored(united)
    if isinstance(body, TableQuery):
        return _source(body.table, scope).columns
    if isinstance(body, Values):
        return _united([_of_row(row.items, scope) for row in body.rows], scope)
    assert isinstance(body, Select)
    sources = _from(body, scope)
    inside = replace(scope, sources=(*sources, *scope.sources))
    return tuple(column for item in body.items for column in _item(item, inside, sources))


def _from(select: Select, scope: TypeScope) -> list[TypeSource]:
    """The tables of a SELECT."""
    sources: list[TypeSource] = []
    for table in select.tables:
        inner = replace(scope, sources=(*sources, *scope.sources))  # for LATERAL
        sources += _sources(table, inner)
    return sources


def _of_row(items: Sequence[Expression], scope: TypeScope) -> Columns:
    return tuple(
        (
            column_name(SelectItem(each.at, each.end, each), scope.text)
            if scope.is_mariadb
            else f"column_{index}",
            expression_type(each, scope),
        )
        for index, each in enumerate(items)
    )


def _united(branches: Sequence[Columns], scope: TypeScope) -> Columns:
    made: list[tuple[str, Type]] = []
    for index, (name, _) in enumerate(branches[0]):
        types = [branch[index][1] for branch in branches if index < len(branch)]
        each = aggregated(
            types,
            connection=scope.connection,
            flavor=scope.flavor,
            has_signs=scope.has(Fact.LITERALS_HAVE_SIGNS),
        )
        if each is None or len(types) != len(branches):
            raise Untyped(f"column {name} of a UNION")
        made.append((name, each))
    return tuple(made)


def _stored(columns: Columns) -> Columns:
    """Columns as a table has them that the server makes for a query."""
    return tuple((name, replace(each, is_stored=True)) for name, each in columns)


def _item(item: SelectItem, scope: TypeScope, sources: Sequence[TypeSource]) -> Columns:
    value = item.value
    if isinstance(value, Star):
        if not value.qualifier:
            return tuple(column for source in sources for column in source.in_star)
        alias = value.qualifier[-1].lower()
        chosen = [source for source in sources if source.alias.lower() == alias]
        if not chosen:
            raise Untyped(f"{alias}.*")
        return chosen[0].columns
    name = column_name(item, scope.text) if item.alias is None else item.alias
    return ((name, expression_type(value, scope)),)


def column_name(item: SelectItem, statement: StatementText) -> str:
    """The name that the servers give a column without an alias."""
    value = item.value
    if isinstance(value, Name):
        return value.parts[-1]
    written = statement.text_of(item)
    if isinstance(value, Literal):
        written = statement.text_of(value)
        if value.kind is LiteralKind.STRING:
            written = string_content(written, statement.dialect).lstrip()
        elif value.kind in {LiteralKind.NULL, LiteralKind.TRUE, LiteralKind.FALSE}:
            written = written.upper()
    return written[:_NAME_LENGTH_MAX]


def _renamed(columns: Columns, names: Sequence[str]) -> Columns:
    if not names:
        return columns
    return tuple((name, each) for name, (_, each) in zip(names, columns, strict=False))


# FROM ---------------------------------------------------------------------------------------------


def _sources(table: TableReference, scope: TypeScope) -> list[TypeSource]:
    if isinstance(table, Join):
        return _joined(table, scope)
    if isinstance(table, DerivedTable):
        columns = _renamed(_columns(table.query, scope), table.columns)
        if is_stored(table.query):
            columns = _stored(columns)
        return [TypeSource(alias=table.alias or "", columns=columns)]
    if isinstance(table, NamedTable):
        return [_source(table, scope)]
    raise Untyped("JSON_TABLE")


def _joined(join: Join, scope: TypeScope) -> list[TypeSource]:
    left, right = _sources(join.left, scope), _sources(join.right, scope)
    shared = [name.lower() for name in join.using]
    if join.kind.startswith("NATURAL"):
        names = {name.lower() for source in right for name, _ in source.columns}
        shared = [name.lower() for each in left for name, _ in each.columns]
        shared = [name for name in shared if name in names]
    if "LEFT" in join.kind:
        right = [source.as_nullable() for source in right]
    if "RIGHT" in join.kind:
        left = [source.as_nullable() for source in left]
    return _coalesced(left, right, shared, is_right="RIGHT" in join.kind)


def _coalesced(
    left: list[TypeSource], right: list[TypeSource], shared: Sequence[str], *, is_right: bool
) -> list[TypeSource]:
    """Both sides of a join; `*` has columns that they share once, and first.

    A column is still found by its own table's name.
    """
    if not shared:
        return left + right
    first = right if is_right else left
    common = [
        column
        for name in shared
        for each in first
        for column in each.columns
        if column[0].lower() == name
    ][: len(shared)]
    rest = [
        replace(each, starred=tuple(c for c in each.in_star if c[0].lower() not in shared))
        for each in left + right
    ]
    return [TypeSource(alias="", columns=tuple(common)), *rest]


def _source(use: NamedTable, scope: TypeScope) -> TypeSource:
    database, table = use.name.database, use.name.name
    alias = use.alias or table
    if database is None and (known := scope.common.get(table.lower())) is not None:
        return TypeSource(alias=alias, columns=known)
    full = TableName(database or scope.database, table)
    found = scope.objects.table(full)
    if found is not None and found.is_complete:
        charset = found.definition.charset or ""
        columns = tuple(
            (column.name, type_of_column(column, charset=charset, flavor=scope.flavor))
            for column in found.definition.columns
            if column.is_visible
        )
        return TypeSource(alias=alias, columns=columns)
    view = scope.objects.view(full)
    if found is not None or view is None:
        raise Untyped(f"table {table}")
    return TypeSource(alias=alias, columns=_of_view(view, full, scope))


def _of_view(view: View, name: TableName, scope: TypeScope) -> Columns:
    if name in scope.views:
        raise Untyped("a view of itself")
    statement = view.facts.tree
    if not isinstance(statement, QueryStatement):
        raise Untyped(f"view {name.table}")
    inside = replace(
        scope,
        text=view.facts,
        database=view.database or name.database,
        sources=(),
        common={},
        views=(*scope.views, name),
    )
    return _renamed(_columns(statement.query, inside), view.columns)


def is_stored(query: Query) -> bool:
    """True if the server makes a table of a derived one, which cannot be merged into its query."""
    select = query.body
    if not isinstance(select, Select) or not select.tables or query.limit is not None:
        return True
    if select.group_by or select.having is not None or "DISTINCT" in select.options:
        return True
    return any(has_aggregate(item) for item in select.items)


# Expressions --------------------------------------------------------------------------------------


def expression_type(node: Expression, scope: TypeScope) -> Type:
    """The type of one expression.

    Raises:
        Untyped: If the type is not known.
    """
    typed = _TYPED.get(node.__class__)
    if typed is None:
        raise Untyped(scope.text.text_of(node))
    return typed(node, scope)


def _operation(node: Operation, scope: TypeScope) -> Type:
    name = node.operator
    if name == "COLLATE":
        return _collated(node, scope)
    if name in {"IS NULL", "IS TRUE", "IS FALSE", "IS UNKNOWN", "EXISTS", "<=>"}:
        return truth()
    if isinstance(interval := node.operands[-1], Interval):
        return moved(expression_type(node.operands[0], scope), interval.unit, scope)
    if name == "IN" or name.endswith((" ANY", " ALL")):
        return truth(*_members(node, scope))
    operands = [expression_type(each, scope) for each in node.operands]
    if name in ARITHMETIC:
        made, *others = operands
        for other in others:
            made = combined(made, other, "+" if name == "-" else name, scope)
        return made
    typed = OPERATORS.get(name)
    return truth(*operands) if typed is None else typed(operands, scope)


def _members(node: Operation, scope: TypeScope) -> list[Type]:
    found: list[Type] = []
    for each in node.operands:
        if isinstance(each, Subquery):
            found += [column for _, column in _columns(each.query, scope)]
        else:
            found.append(expression_type(each, scope))
    return found


def _collated(node: Operation, scope: TypeScope) -> Type:
    name = node.operands[1]
    assert isinstance(name, Name)
    return replace(
        expression_type(node.operands[0], scope),
        collation=collation_today(name.parts[-1]),
        coercibility=Coercibility.EXPLICIT,
        is_nullable=True,
        column=None,
    )


_MOMENTS: Final = {
    LiteralKind.DATE: "DATE",
    LiteralKind.TIME: "TIME",
    LiteralKind.TIMESTAMP: "DATETIME",
}


def _literal(node: Literal, scope: TypeScope) -> Type:
    kind = node.kind
    written = scope.text.text_of(node)
    if kind is LiteralKind.NULL:
        return _NULL
    if kind in {LiteralKind.TRUE, LiteralKind.FALSE}:
        length = 5 if scope.is_mariadb and scope.has(Fact.LITERALS_HAVE_SIGNS) else 1
        return Type(kind=TypeKind.INTEGER, length=length, is_literal=True)
    if kind is LiteralKind.NUMBER:
        return _number(written)
    if kind in _MOMENTS:
        content = string_content(written, scope.text.dialect)
        return moment(_MOMENTS[kind], len(content.partition(".")[2])).as_nullable(False)
    of = scope.connection
    if kind is LiteralKind.STRING:
        length = len(string_content(written, scope.text.dialect))
    else:
        length = len(bytes_value(written, is_hexadecimal=kind is LiteralKind.HEX))
        of = BYTES
    if introducer := node.introducer.lower():
        charset = {"n": "utf8mb3", "utf8": "utf8mb3"}.get(introducer, introducer)
        of = charset, default_collation(charset, scope.flavor)
    return replace(text(length, of, coercibility=Coercibility.LITERAL), is_literal=True)


_NULL: Final = Type(kind=TypeKind.NULL, is_nullable=True, coercibility=Coercibility.NULL)


def _number(written: str) -> Type:
    if "e" in written.lower():
        return Type(kind=TypeKind.REAL, length=len(written), decimals=NO_DECIMALS, is_literal=True)
    if "." in written:
        whole, _, fraction = written.partition(".")
        length = max(len(whole.lstrip("0")), 1) + len(fraction)  # `.5` has two digits
        return Type(kind=TypeKind.DECIMAL, length=length, decimals=len(fraction), is_literal=True)
    digits = written.lstrip("0") or "0"
    kind = TypeKind.DECIMAL if int(digits) > _UNSIGNED_MAX else TypeKind.INTEGER
    is_unsigned = kind is TypeKind.INTEGER and int(digits) > _BIGINT_MAX
    return Type(kind=kind, length=len(digits), is_unsigned=is_unsigned, is_literal=True)


def _case(node: Case, scope: TypeScope) -> Type:
    conditions = [] if node.operand is None else [expression_type(node.operand, scope)]
    results = []
    for condition, result in node.branches:
        conditions.append(expression_type(condition, scope))
        results.append(expression_type(result, scope))
    results.append(_NULL if node.otherwise is None else expression_type(node.otherwise, scope))
    made = together(results, scope)
    if scope.is_mariadb and any(each.is_nullable for each in conditions):
        return made.as_nullable()
    return made


def _subquery(node: Subquery, scope: TypeScope) -> Type:
    types = [each for _, each in _columns(node.query, scope)]
    body = node.query.body
    if len(types) != 1:
        raise Untyped("a subquery of several columns")
    (made,) = types
    if isinstance(body, Select) and not body.tables:
        return made
    return of_one_row(made, scope)


def _assign(node: Assign, scope: TypeScope) -> Type:
    made = expression_type(node.value, scope)
    if scope.is_mariadb and made.kind is TypeKind.INTEGER:
        whole = integer(made.length, scope, is_unsigned=made.is_unsigned)
        return whole.as_nullable(made.is_nullable)
    return replace(made, column=None, is_literal=False)


def _user_variable(node: UserVariable, scope: TypeScope) -> Type:
    """Give the type that the variable's value has when the statement begins."""
    if scope.environment is None:
        raise Untyped(f"@{node.name}")
    value = scope.environment.user_variable(node.name)
    if isinstance(value, Unknown | Temporal):
        raise Untyped(f"@{node.name}")
    if isinstance(value, float):
        return real().as_nullable()
    if isinstance(value, int):
        made = Type(kind=TypeKind.INTEGER, length=20, field_type="BIGINT")
    elif isinstance(value, Decimal):
        scale = 38 if scope.is_mariadb else 30
        made = Type(kind=TypeKind.DECIMAL, length=65, decimals=scale)
    else:
        made = text(LONGEST, BYTES if value is None else (value.charset, value.collation))
    return replace(made, is_nullable=True, coercibility=Coercibility.IMPLICIT)


def _system_variable(node: SystemVariable, scope: TypeScope) -> Type:
    if node.name in _SWITCHES:
        name = "BIGINT" if scope.is_mariadb else "INT"
        return Type(kind=TypeKind.INTEGER, length=1, is_nullable=True, field_type=name)
    if node.name in _SECONDS:
        length = 21 if scope.is_mariadb else 22
        return replace(real(), length=length, decimals=6, is_nullable=True)
    value: Value = UNKNOWN
    if scope.environment is not None:
        value = scope.environment.system_variable(node.name, node.scope)
    if isinstance(value, int) or node.name in _COUNTS:
        made = Type(kind=TypeKind.INTEGER, length=21, is_nullable=True, is_unsigned=True)
        return replace(made, field_type="BIGINT")
    if not isinstance(value, Text):
        raise Untyped(f"@@{node.name}")
    length = len(value.content) if scope.is_mariadb else 16_383
    of = ("utf8mb3", "utf8mb3_general_ci")
    return text(length, of, coercibility=Coercibility.SYSTEM, is_nullable=True)


_SWITCHES: Final = frozenset(
    (
        *("autocommit", "foreign_key_checks", "unique_checks", "sql_log_bin", "read_only"),
        *("sql_notes", "sql_warnings", "big_tables", "sql_safe_updates", "log_bin"),
    )
)
_SECONDS: Final = frozenset(("timestamp", "long_query_time"))
_COUNTS: Final = frozenset(
    (
        *("server_id", "port", "max_connections", "max_allowed_packet", "wait_timeout"),
        *("insert_id", "last_insert_id", "identity", "group_concat_max_len", "pseudo_thread_id"),
        *("auto_increment_increment", "auto_increment_offset", "error_count", "warning_count"),
    )
)


def _call(node: Call, scope: TypeScope) -> Type:
    if node.database is None and not node.is_quoted:
        made = call_type(TypedCall(node, scope, expression_type))
        if made is not None:
            return made
    routine = scope.objects.function(TableName(node.database or scope.database, node.name))
    if routine is None:
        raise Untyped(f"{node.name}()")
    made = _returned(routine, scope)
    return replace(made, is_nullable=True, coercibility=Coercibility.IMPLICIT)


def _returned(routine: Routine, scope: TypeScope) -> Type:
    """The type of what a stored function returns."""
    charset = routine.charset or scope.connection[0]
    try:
        kind = read_type(cursor_over(routine.returns, Dialect(flavor=scope.flavor.value)))
    except (Stopped, SqlSyntaxError):
        raise Untyped(routine.returns) from None
    return type_of_column(typed_column(kind, charset), charset=charset, flavor=scope.flavor)


_TYPED: Final[Mapping[type, Callable[[Any, TypeScope], Type]]] = MappingProxyType(
    {
        Literal: _literal,
        Name: lambda node, scope: scope.column(node.parts),
        Assign: _assign,
        Operation: _operation,
        UserVariable: _user_variable,
        SystemVariable: _system_variable,
        Case: _case,
        Cast: lambda node, scope: cast_type(node, expression_type(node.value, scope), scope),
        Call: _call,
        Match: lambda _, __: real(),
        Subquery: _subquery,
    }
)
"""Functions that type a node, by its kind; other nodes have no known type."""
