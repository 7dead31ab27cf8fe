"""The columns of a query: names and types, as CREATE TABLE … SELECT makes them.

Follows views, derived tables and common table expressions. What it cannot tell raises `Untyped`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from binlane.codec.types import Flavor
from binlane.names import TableName
from binlane.sql.column_attributes import text_of
from binlane.sql.cursor import Cursor, Stopped, split
from binlane.sql.query_types.expressions import QUERY_WORDS, expression_type
from binlane.sql.query_types.scope import Scope, Source, Untyped
from binlane.sql.query_types.values import (
    Value,
    ValueKind,
    aggregated,
    column_of_value,
    value_of_column,
)
from binlane.sql.schema import Objects
from binlane.sql.sql_mode import Quoting
from binlane.sql.table_definitions import TableColumn
from binlane.sql.tokens import NAME_KINDS, SqlSyntaxError, Token, TokenKind, tokenise

_SELECT_OPTIONS: Final = frozenset(
    {
        *("ALL", "DISTINCT", "DISTINCTROW", "HIGH_PRIORITY", "STRAIGHT_JOIN", "SQL_SMALL_RESULT"),
        *("SQL_BIG_RESULT", "SQL_BUFFER_RESULT", "SQL_CACHE", "SQL_NO_CACHE"),
        "SQL_CALC_FOUND_ROWS",
    }
)
_SELECT_ENDS: Final = frozenset(
    {
        *("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "FOR", "LOCK", "PROCEDURE"),
        *("UNION", "EXCEPT", "INTERSECT", "INTO", "WINDOW", "FETCH", "OFFSET"),
    }
)
_FROM_ENDS: Final = frozenset(_SELECT_ENDS - {"FROM"})
_SETS: Final = ("UNION", "EXCEPT", "INTERSECT")
_JOINS: Final = frozenset({"JOIN", "STRAIGHT_JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "NATURAL"})
_ALIAS_ENDS: Final = frozenset(
    {*_JOINS, "ON", "USING", "USE", "FORCE", "IGNORE", "PARTITION", "FOR", "OUTER", "AS"}
)
_NAME_LENGTH_MAX: Final = 64
_NOT_MERGED: Final = frozenset(
    {*_SETS, "GROUP", "DISTINCT", "LIMIT", "HAVING", "COUNT", "SUM", "MIN", "MAX", "AVG"}
)

Columns = list[tuple[str, Value]]


def select_columns(
    query: str,
    *,
    objects: Objects,
    flavor: Flavor,
    database: str,
    quoting: Quoting,
    connection: tuple[str, str],
) -> tuple[TableColumn, ...]:
    """The columns that CREATE TABLE makes of a query.

    Args:
        query: Its text.
        objects: Of the server.
        flavor: Of the server.
        database: The default one.
        quoting: Of the text.
        connection: Character set and collation of literals.

    Raises:
        Untyped: If the columns cannot be told.
    """
    scope = Scope(
        objects=objects,
        flavor=flavor,
        database=database,
        sources=(),
        connection=connection,
        subquery=_subquery_of(query),
    )
    try:
        tokens = [each for each in tokenise(query, **quoting) if each.kind is not TokenKind.END]
        columns = _Query(query, scope, {}).columns(tokens)
    except SqlSyntaxError as error:
        raise Untyped(str(error)) from None
    except Stopped as stopped:
        raise Untyped(stopped.token.text) from None
    except RecursionError:
        raise Untyped("a query in so many others, or a view of itself") from None
    return tuple(column_of_value(name, value, flavor=flavor) for name, value in columns)


def _subquery_of(text: str) -> Callable[[Sequence[Token], Scope], Sequence[Value]]:
    """Types the queries in parentheses of a text."""

    def subquery(tokens: Sequence[Token], scope: Scope) -> Sequence[Value]:
        return [value for _, value in _Query(text, scope, {}).columns(tokens)]

    return subquery


class _Query:
    """Reads one query of a text."""

    def __init__(self, text: str, scope: Scope, expressions: dict[str, Columns]) -> None:
        self.text = text
        self.outer = scope
        self.expressions = expressions
        self.is_mysql = scope.flavor is Flavor.MYSQL

    def columns(self, tokens: Sequence[Token]) -> Columns:
        """Names and values of a query's columns."""
        cursor = Cursor([token for token in tokens if token.text != ";"])
        if cursor.accept("WITH"):
            self._read_expressions(cursor)
        branches = [self._term(cursor)]
        while cursor.accept_any(_SETS):
            cursor.accept_any(("ALL", "DISTINCT"))
            branches.append(self._term(cursor))
        if len(branches) == 1:
            return branches[0]
        return self._united(branches)

    def _united(self, branches: Sequence[Columns]) -> Columns:
        made: Columns = []
        for index, (name, _) in enumerate(branches[0]):
            values = [branch[index][1] for branch in branches if index < len(branch)]
            value = aggregated(values, connection=self.outer.connection, flavor=self.outer.flavor)
            if value is None or len(values) != len(branches):
                raise Untyped(f"column {name} of a UNION")
            if value.kind is ValueKind.INTEGER and value.column is None and self.is_mysql:
                value = replace(value, integer_type="BIGINT")
            made.append((name, replace(value, is_stored=True)))
        return made

    def _read_expressions(self, cursor: Cursor) -> None:
        if cursor.accept("RECURSIVE"):
            raise Untyped("a recursive query")
        while True:
            name = cursor.identifier()
            names = _names(cursor)
            cursor.expect("AS")
            columns = self._inner().columns(cursor.group())
            self.expressions[name.lower()] = _renamed(columns, names)
            if not cursor.accept_operator(","):
                return

    def _inner(self) -> _Query:
        return _Query(self.text, self.outer, dict(self.expressions))

    def _term(self, cursor: Cursor) -> Columns:
        if cursor.token.text == "(":
            columns = self._inner().columns(cursor.group())
            cursor.until(_SETS)
            return columns
        if cursor.accept("TABLE"):
            name = cursor.qualified_name()
            cursor.until(_SETS)
            return list(self._named_source(name, "").columns)
        if cursor.accept("VALUES"):
            raise Untyped("VALUES")
        cursor.expect("SELECT")
        while cursor.accept_any(_SELECT_OPTIONS):
            pass
        items = split(cursor.until(_SELECT_ENDS))
        sources: list[Source] = []
        if cursor.accept("FROM"):
            sources = self._sources(cursor.until(_FROM_ENDS))
        else:
            cursor.until(("FROM", *_SETS))
            if cursor.accept("FROM"):  # behind INTO
                sources = self._sources(cursor.until(_FROM_ENDS))
        cursor.until(_SETS)
        scope = replace(
            self.outer,
            sources=(*sources, *self.outer.sources),
            subquery=_subquery_of(self.text),
        )
        return [column for item in items for column in self._item(item, scope, sources)]

    def _item(self, tokens: Sequence[Token], scope: Scope, sources: Sequence[Source]) -> Columns:
        if not tokens:
            raise Untyped("an empty column")
        if tokens[-1].text == "*" and (len(tokens) == 1 or tokens[-2].text == "."):
            if len(tokens) == 1:
                return [column for source in sources for column in source.in_star]
            alias = tokens[-3].value.lower()
            chosen = [source for source in sources if source.alias.lower() == alias]
            if not chosen:
                raise Untyped(f"{alias}.*")
            return list(chosen[0].columns)
        expression, given = _aliased(tokens)
        value = expression_type(expression, scope)
        return [(self._name(expression) if given is None else given, value)]

    def _name(self, tokens: Sequence[Token]) -> str:
        """The name that the server gives a column without an alias."""
        is_column = tokens[-1].kind in NAME_KINDS and all(
            token.text == "." for token in tokens[1::2]
        )
        if is_column and len(tokens) % 2:
            return tokens[-1].value
        if len(tokens) == 1 and tokens[0].kind is TokenKind.STRING:
            return tokens[0].value.lstrip()[:_NAME_LENGTH_MAX]
        return text_of(tokens, self.text)[:_NAME_LENGTH_MAX]

    # FROM ----------------------------------------------------------------------------------------

    def _sources(self, tokens: Sequence[Token]) -> list[Source]:
        sources: list[Source] = []
        for part in split(tokens):
            sources += self._joined(Cursor(part))
        return sources

    def _joined(self, cursor: Cursor) -> list[Source]:
        made = self._table(cursor)
        while not cursor.is_at_end:
            words = set()
            while word := cursor.accept_any((*_JOINS, "OUTER")):
                words.add(word)
            if not words:
                raise Untyped(cursor.token.text)
            right = self._table(cursor)
            shared: list[str] = []
            if "NATURAL" in words:
                shared = _shared(made, right)
            elif cursor.accept("ON"):
                cursor.until(_JOINS)
            elif cursor.accept("USING"):
                shared = [Cursor(part).identifier().lower() for part in split(cursor.group())]
            if "LEFT" in words:
                right = [source.as_nullable() for source in right]
            if "RIGHT" in words:
                made = [source.as_nullable() for source in made]
            made = _coalesced(made, right, shared, is_right="RIGHT" in words)
        return made

    def _table(self, cursor: Cursor) -> list[Source]:
        cursor.accept("LATERAL")
        if cursor.token.text == "(":
            tokens = cursor.group()
            if tokens and (tokens[0].word in QUERY_WORDS or tokens[0].text == "("):
                alias = _alias(cursor)
                columns = _renamed(self._inner().columns(tokens), _names(cursor))
                if _is_stored(tokens):
                    columns = [(name, replace(value, is_stored=True)) for name, value in columns]
                return [Source(alias=alias, columns=tuple(columns))]
            return self._sources(tokens)
        name = cursor.qualified_name()
        if cursor.accept("PARTITION"):
            cursor.group()
        alias = _alias(cursor)
        while cursor.accept_any(("USE", "FORCE", "IGNORE")):
            cursor.until((), operators=("(",))
            cursor.group()
        if name[0] is None and name[1].upper() == "DUAL":
            return []
        return [self._named_source(name, alias)]

    def _named_source(self, name: tuple[str | None, str], alias: str) -> Source:
        database, table = name
        alias = alias or table
        known = self.expressions.get(table.lower()) if database is None else None
        if known is not None:
            return Source(alias=alias, columns=tuple(known))
        full = TableName(database or self.outer.database, table)
        found = self.outer.objects.table(full)
        if found is not None and found.is_complete:
            charset = found.definition.charset or ""
            columns = tuple(
                (column.name, value_of_column(column, charset=charset, flavor=self.outer.flavor))
                for column in found.definition.columns
                if column.is_visible
            )
            return Source(alias=alias, columns=columns)
        view = self.outer.objects.view(full)
        if found is not None or view is None:
            raise Untyped(f"table {table}")
        scope = replace(self.outer, database=view.database or full.database, sources=())
        tokens = [each for each in tokenise(view.query) if each.kind is not TokenKind.END]
        scope = replace(scope, subquery=_subquery_of(view.query))
        inner = _Query(view.query, scope, {}).columns(tokens)
        return Source(alias=alias, columns=tuple(_renamed(inner, view.columns)))


def _is_stored(tokens: Sequence[Token]) -> bool:
    """Whether the server makes a table of a derived one: it cannot be merged into its query."""
    words = {token.word for token in tokens}
    return "FROM" not in words or not words.isdisjoint(_NOT_MERGED)


def _shared(left: Sequence[Source], right: Sequence[Source]) -> list[str]:
    """Names of columns that both sides of a join have."""
    names = {name.lower() for source in right for name, _ in source.columns}
    return [name.lower() for each in left for name, _ in each.columns if name.lower() in names]


def _coalesced(
    left: list[Source], right: list[Source], shared: Sequence[str], *, is_right: bool
) -> list[Source]:
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
    return [Source(alias="", columns=tuple(common)), *rest]


def _names(cursor: Cursor) -> tuple[str, ...]:
    """Names of columns in parentheses, if they come next."""
    if cursor.token.text != "(":
        return ()
    return tuple(Cursor(part).identifier() for part in split(cursor.group()))


def _renamed(columns: Columns, names: Sequence[str]) -> Columns:
    if not names:
        return columns
    return [(name, value) for name, (_, value) in zip(names, columns, strict=False)]


def _alias(cursor: Cursor) -> str:
    if cursor.accept("AS"):
        return cursor.advance().value
    token = cursor.token
    if token.kind in NAME_KINDS and token.word not in _ALIAS_ENDS and not cursor.is_at_end:
        return cursor.advance().value
    return ""


def _aliased(tokens: Sequence[Token]) -> tuple[Sequence[Token], str | None]:
    """An expression and its alias."""
    if len(tokens) >= 3 and tokens[-2].word == "AS":
        return tokens[:-2], tokens[-1].value
    last = tokens[-1]
    if len(tokens) >= 2 and last.kind in {TokenKind.NAME, TokenKind.QUOTED_NAME, TokenKind.STRING}:
        before = tokens[-2]
        is_operand = before.text == ")" or before.kind in {
            *NAME_KINDS,
            TokenKind.NUMBER,
            TokenKind.STRING,
            TokenKind.USER_VARIABLE,
            TokenKind.SYSTEM_VARIABLE,
        }
        if is_operand and not _binds(before, last):
            return tokens[:-1], last.value
    return tokens, None


def _binds(before: Token, last: Token) -> bool:
    """Whether two tokens beside each other belong to one expression."""
    if last.word in {"END", "NULL", "TRUE", "FALSE", "UNKNOWN"}:
        return last.word == "END" or before.word in _OPERATOR_WORDS
    if before.kind is TokenKind.STRING and last.kind is TokenKind.STRING:
        return True
    if before.text.startswith("_") and last.kind is TokenKind.STRING:
        return True
    return before.word in _OPERATOR_WORDS


_OPERATOR_WORDS: Final = frozenset(
    {
        *("AND", "OR", "XOR", "NOT", "IS", "LIKE", "IN", "BETWEEN", "DIV", "MOD", "REGEXP"),
        *("RLIKE", "BINARY", "COLLATE", "INTERVAL", "DATE", "TIME", "TIMESTAMP", "FOR", "THEN"),
        *("ELSE", "WHEN", "CASE", "ESCAPE"),
    }
)
