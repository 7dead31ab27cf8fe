"""Whether a statement makes the server choose AUTO_INCREMENT values.

It does where a new row gives the column no value, NULL or DEFAULT, and mostly also for 0.

Source: MariaDB 10.11 and MySQL 9.7 sql/handler.cc, `handler::update_auto_increment`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from binlane.policy.access import ResolvedStatement, TableAccess
from binlane.policy.view_columns import columns_behind, columns_of
from binlane.session.programs.environment import SessionEnvironment
from binlane.session.programs.expressions import evaluate
from binlane.session.programs.rows_of_values import value_rows
from binlane.session.programs.silent import silent
from binlane.session.programs.types import as_number
from binlane.session.programs.values import Unknown
from binlane.sql.cursor import Cursor, Stopped, split
from binlane.sql.facts import RowChange, SetColumn, StatementFacts
from binlane.sql.schema import Table
from binlane.sql.tokens import SqlSyntaxError, Token, tokenise

_CACHE_SIZE: Final = 1024
_DEPTH_MAX: Final = 20
_INSERTING: Final = frozenset(
    (RowChange.INSERT, RowChange.REPLACE, RowChange.UPSERT, RowChange.LOAD)
)
_SET_OPERATORS: Final = ("UNION", "EXCEPT", "INTERSECT", "MINUS")
_QUERY_STARTS: Final = ("SELECT", "VALUES", "VALUE", "TABLE")
_SELECT_OPTIONS: Final = frozenset(
    (
        *("ALL", "DISTINCT", "DISTINCTROW", "HIGH_PRIORITY", "STRAIGHT_JOIN", "SQL_CACHE"),
        *("SQL_NO_CACHE", "SQL_CALC_FOUND_ROWS", "SQL_BUFFER_RESULT", "SQL_SMALL_RESULT"),
        "SQL_BIG_RESULT",
    )
)
_LIST_ENDS: Final = (
    *("FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "FETCH", "INTO", "FOR"),
    *("LOCK", "ON", "RETURNING", "PROCEDURE"),
)


def generates_insert_id(
    facts: StatementFacts, resolved: ResolvedStatement, sql: str, environment: SessionEnvironment
) -> bool:
    """Whether the server chooses an AUTO_INCREMENT value for a row, if there is one.

    Args:
        facts: What the statement says.
        resolved: Its tables.
        sql: Its text.
        environment: What its expressions can refer to.
    """
    for access in resolved.accesses:
        table = access.table
        if (
            access.is_prelocked
            or not access.changes & _INSERTING
            or table.auto_increment is None
            or not table.is_auto_increment_first
        ):
            continue
        columns = _columns(facts, access, environment)
        if _is_chosen(table.auto_increment, columns, facts, sql, environment):
            return True
    return False


def generates_for_created(
    facts: StatementFacts,
    resolved: ResolvedStatement,
    created: Table,
    sql: str,
    environment: SessionEnvironment,
) -> bool:
    """Whether the query of CREATE … SELECT leaves a value of the new table to the server."""
    column = created.auto_increment
    if column is None or not created.is_auto_increment_first or facts.query_offset is None:
        return False
    names = _item_names(sql[facts.query_offset :])
    if "*" in names and any(_has_column(access, column) for access in resolved.accesses):
        return False
    if column.lower() not in names:
        return True
    texts = _selected(sql[facts.query_offset :], names.index(column.lower()))
    return any(_leaves_to_server(text, environment) for text in texts)


def _columns(
    facts: StatementFacts, access: TableAccess, environment: SessionEnvironment
) -> list[str]:
    """The table's columns that get values, in the order of the values."""
    view = None
    if access.via and access.via[0].kind == "view":
        view = environment.host.objects.view(access.via[0].name)
    if facts.columns is not None:
        names = list(facts.columns)
        if view is not None:
            given = [SetColumn(qualifier=None, name=name) for name in names]
            names = [column.name for column in columns_behind(view, given)]
        return [name.lower() for name in names]
    names = columns_of(view) if view is not None else []
    if not names:
        names = [column.name for column in access.table.definition.columns]
    return [name.lower() for name in names]


def _is_chosen(
    column: str,
    columns: Sequence[str],
    facts: StatementFacts,
    sql: str,
    environment: SessionEnvironment,
) -> bool:
    if column.lower() not in columns:
        return True
    position = columns.index(column.lower())
    if facts.has_query and facts.query_offset is not None:
        texts = _selected(sql[facts.query_offset :], position)
        return any(_leaves_to_server(text, environment) for text in texts)
    rows = value_rows(sql, facts)
    return any(
        position >= len(row.values) or _leaves_to_server(row.values[position], environment)
        for row in rows
    )


def _leaves_to_server(text: str, environment: SessionEnvironment, depth: int = 0) -> bool:
    """Whether the value of an expression makes the server choose one."""
    start = text[:8].upper()
    if start.startswith("DEFAULT"):
        return True
    if text.startswith("(") and depth < _DEPTH_MAX and text[1:].lstrip()[:6].upper() == "SELECT":
        inner = _selected(text[1:-1], 0)
        return any(_leaves_to_server(one, environment, depth + 1) for one in inner)
    if text.isdigit():
        value = int(text)
    else:
        with silent(environment):
            found = as_number(evaluate(text, environment))
        if isinstance(found, Unknown):
            return False
        if found is None:
            return True
        return found == 0 and _chooses_for_zero(environment)
    return value == 0 and _chooses_for_zero(environment)


def _chooses_for_zero(environment: SessionEnvironment) -> bool:
    return not environment.host.has_sql_mode("NO_AUTO_VALUE_ON_ZERO")


def _has_column(access: TableAccess, column: str) -> bool:
    return any(
        one.name.lower() == column.lower() for one in access.table.definition.columns
    ) and not (access.is_prelocked or access.changes)


# What a query selects -----------------------------------------------------------------------------


@lru_cache(_CACHE_SIZE)
def _selected(query: str, position: int) -> tuple[str, ...]:
    """The expressions that a query gives in one place, of each part of a UNION."""
    try:
        return tuple(_expressions(Cursor(list(tokenise(query))), query, position, 0))
    except (Stopped, SqlSyntaxError):
        return ()


@lru_cache(_CACHE_SIZE)
def _item_names(query: str) -> tuple[str, ...]:
    """The names of the columns that a query gives; `*` for all columns of its tables."""
    try:
        cursor = Cursor(list(tokenise(query)))
        return tuple(_name(item) for item in _items(cursor))
    except (Stopped, SqlSyntaxError):
        return ()


def _expressions(cursor: Cursor, query: str, position: int, depth: int) -> Iterator[str]:
    while depth < _DEPTH_MAX:
        if cursor.token.text == "(":
            yield from _expressions(Cursor(cursor.group()), query, position, depth + 1)
        else:
            yield from _of_select(cursor, query, position, depth)
        cursor.until(_SET_OPERATORS)
        if cursor.is_at_end:
            return
        cursor.advance()
        cursor.accept_any(("ALL", "DISTINCT"))


def _of_select(cursor: Cursor, query: str, position: int, depth: int) -> Iterator[str]:
    items = _items(cursor)
    stars = [index for index, item in enumerate(items) if item and item[-1].text == "*"]
    if not stars or stars[0] > position:
        if position < len(items) and items[position]:
            expression = _without_alias(items[position])
            yield query[expression[0].offset : expression[-1].end]
        return
    if cursor.accept("FROM") and cursor.token.text == "(" and len(items[stars[0]]) == 1:
        inner = Cursor(cursor.group())
        yield from _expressions(inner, query, position - stars[0], depth + 1)


def _items(cursor: Cursor) -> list[list[Token]]:
    """The expressions of one SELECT or row of VALUES."""
    cursor.until(_QUERY_STARTS)
    if cursor.accept_any(("VALUES", "VALUE")):
        cursor.accept("ROW")
        return split(cursor.group())
    cursor.expect("SELECT")
    while cursor.accept_any(_SELECT_OPTIONS):
        pass
    return split(cursor.until((*_LIST_ENDS, *_SET_OPERATORS)))


def _without_alias(item: Sequence[Token]) -> Sequence[Token]:
    words = [token.word for token in item]
    if len(item) > 2 and words[-2] == "AS":
        return item[:-2]
    return item[:1] if len(item) == 2 and words[0] == "NULL" else item


def _name(item: Sequence[Token]) -> str:
    return item[-1].value.lower() if item and item[-1].text != "*" else "*"
