"""Tables of FROM, UPDATE and DELETE: joins, derived tables, JSON_TABLE.

Source: MySQL 9.7 and MariaDB 11.8, sql/sql_yacc.yy: table_reference, joined_table, table_factor.
"""

from __future__ import annotations

from typing import Final

from binlane.names import folded
from binlane.statements.sql.parser.calls import read_on_empty_or_error
from binlane.statements.sql.parser.cursor import Cursor
from binlane.statements.sql.parser.expressions import is_at_query, read_expression
from binlane.statements.sql.parser.literals import (
    read_collation,
    read_column,
    read_literal,
    read_names,
    read_object_name,
)
from binlane.statements.sql.parser.types import read_column_type
from binlane.statements.sql.tokens import TokenKind
from binlane.statements.sql.tree.expressions import (
    Call,
    DerivedTable,
    Expression,
    Join,
    NamedTable,
    ParameterMarker,
    Query,
    TableFunction,
    TableReference,
)

_TABLE_CALLS: Final = 3
"""Calls that a table takes."""
_JOINS: Final = frozenset(
    ("JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "STRAIGHT_JOIN", "NATURAL", "FULL")
)


def read_tables(c: Cursor) -> tuple[TableReference, ...]:
    """Read tables with joins and commas between them, as of FROM and UPDATE."""
    return c.several(_joined)


def _joined(c: Cursor) -> TableReference:
    left = _factor(c)
    return _joins(c, left) if c.words[c.index] in _JOINS else left


def _joins(c: Cursor, left: TableReference) -> TableReference:
    count = 0
    while c.words[c.index] in _JOINS:
        left = _join(c, left)
        count += 1
        while c.words[c.index] in ("ON", "USING") and _lacks_condition(left):
            left = _condition_of_earlier(c, left)
    if count > 16:
        c.high += count
    return left


def _join(c: Cursor, left: TableReference) -> Join:
    """Read one join, up to its condition."""
    kind = _join_kind(c)
    c.deeper(2)
    right = _factor(c)
    while kind in ("LEFT", "RIGHT", "FULL") and c.words[c.index] in _JOINS:
        # The condition of an outer join may stand behind those of the joins to its right.
        right = _join(c, right)
    c.depth -= 2
    join = Join(left.at, c.end, kind, left, right)
    if not kind.startswith("NATURAL"):
        _condition(c, join)
        if join.on is None and not join.using and kind in ("LEFT", "RIGHT", "FULL"):
            raise c.stop("ON or USING")
    return join


def _join_kind(c: Cursor) -> str:
    prefix = "NATURAL " if c.accept("NATURAL") else ""
    word = c.accept_any(("LEFT", "RIGHT", "INNER", "CROSS", "FULL"))
    if word == "FULL" and not c.dialect.has_mariadb(12, 1):
        c.index -= 1
        raise c.stop("a join")
    if word in ("LEFT", "RIGHT", "FULL"):
        c.accept("OUTER")
    elif not word and not prefix and c.accept("STRAIGHT_JOIN"):
        return "STRAIGHT_JOIN"
    elif word == "CROSS" and prefix:
        raise c.stop("JOIN")
    c.expect("JOIN")
    return prefix + (word or "INNER")


def _condition(c: Cursor, join: Join) -> None:
    if c.accept("ON"):
        join.on = read_expression(c)
    elif c.word == "USING":
        c.index += 1
        join.using = read_names(c)
    join.end = c.end


def _lacks_condition(join: TableReference) -> bool:
    """True if a condition behind a join belongs to the join before it."""
    return (
        isinstance(join, Join)
        and isinstance(join.left, Join)
        and join.left.on is None
        and not join.left.using
        and not join.left.kind.startswith("NATURAL")
    )


def _condition_of_earlier(c: Cursor, join: TableReference) -> Join:
    """`a JOIN b JOIN c ON … ON …`: the second condition is of the first join."""
    assert isinstance(join, Join)  # as the caller has asked
    assert isinstance(join.left, Join)
    first = join.left
    inner = Join(first.right.at, join.end, join.kind, first.right, join.right, join.on, join.using)
    outer = Join(first.at, c.end, first.kind, first.left, inner)
    _condition(c, outer)
    return outer


def _factor(c: Cursor) -> TableReference:
    index = c.index
    word = c.words[index]
    if word == "(":
        c.deeper(_TABLE_CALLS)
        at = c.start
        found = _in_parentheses(c)
        c.depth -= _TABLE_CALLS
        return _derived(c, at, found) if isinstance(found, Query) else found
    if word == "JSON_TABLE" and c.words[index + 1] == "(":
        if c.dialect.has_mysql(8, 0, 4) or c.dialect.has_mariadb(10, 6):
            return _json_table(c)
    elif word == "LATERAL" and c.dialect.has_mysql(8, 0, 14) and c.words[index + 1] == "(":
        at = c.start
        c.index += 1
        found = _in_parentheses(c)
        if not isinstance(found, Query):
            raise c.stop("a query")
        derived = _derived(c, at, found)
        derived.is_lateral = True
        return derived
    elif word == "{":
        c.index += 1
        c.identifier()
        table = _joined(c)
        c.expect_operator("}")
        return table
    return read_table_use(c)


def _in_parentheses(c: Cursor) -> Query | TableReference:
    """Read the content of parentheses: a query, or tables."""
    if is_at_query(c):
        c.index += 1
        query = c.grammar.query(c, None)
        c.expect_operator(")")
        return query
    c.index += 1
    if c.word == "(":
        c.deeper(_TABLE_CALLS)
        start = c.start
        found = _in_parentheses(c)
        c.depth -= _TABLE_CALLS
        if isinstance(found, Query):
            query = c.grammar.query(c, found)
            if c.accept(")"):
                return query
            found = _derived(c, start, query)
        table = _joins(c, found)
    else:
        table = _joined(c)
    while c.accept(","):
        right = _joined(c)
        table = Join(table.at, right.end, "CROSS", table, right)
    if isinstance(table, DerivedTable) and not c.dialect.may_be_mariadb:
        raise c.stop("a join")
    c.expect_operator(")")
    return table


def _derived(c: Cursor, at: int, query: Query) -> DerivedTable:
    alias = _table_alias(c)
    columns: tuple[str, ...] = ()
    if alias is None and not c.dialect.may_be_mysql and not c.dialect.is_oracle:
        raise c.stop("a name of the table")
    if alias is not None and c.word == "(":
        if not (c.dialect.has_mysql(8, 0, 19) or c.dialect.has_mariadb(11, 7)):
            raise c.stop("the end of the table")
        columns = read_names(c)
    return DerivedTable(at, c.end, query, alias, columns)


def _table_alias(c: Cursor) -> str | None:
    alias = _written_alias(c)
    return folded(alias) if alias is not None and c.dialect.lower_case_names else alias


def _written_alias(c: Cursor) -> str | None:
    index = c.index
    word = c.words[index]
    if word == "AS" or (word == "=" and c.dialect.may_be_mariadb):
        c.index = index + 1
        return c.identifier()
    if c.kinds[index] is TokenKind.NAME:
        if word in c.no_aliases or (word in _NO_TABLE_ALIASES and not _is_alias(c, word)):
            return None
        c.index = index + 1
        return c.texts[index]
    return c.any_name() if c.is_at_alias else None


_NO_TABLE_ALIASES: Final = frozenset(("WINDOW", "MINUS", "FULL"))


def _is_alias(c: Cursor, word: str) -> bool:
    """True if a word that follows a table is its alias."""
    if word == "FULL":
        return not (c.dialect.has_mariadb(12, 1) and c.words[c.index + 1] in ("OUTER", "JOIN"))
    return word == "MINUS" and not c.dialect.is_oracle


def read_table_use(c: Cursor) -> NamedTable:
    """Read a table's name with what may follow it: partitions, period, alias, index hints."""
    name = read_object_name(c)
    words = c.words
    table = NamedTable(name.at, name.end, name)
    word = words[c.index]
    if word == "PARTITION":
        table.partitions = read_partitions(c)
        word = words[c.index]
    if word == "FOR" and c.dialect.may_be_mariadb and words[c.index + 1] == "SYSTEM_TIME":
        table.period = _system_time(c)
    table.alias = _table_alias(c)
    if words[c.index] in ("USE", "FORCE", "IGNORE"):
        read_index_hints(c)
    if words[c.index] == "TABLESAMPLE" and c.dialect.has_mysql(9, 0):
        c.index += 1
        c.expect_any(("SYSTEM", "BERNOULLI"))
        c.enclosed(read_count)
    table.end = c.end
    return table


def read_partitions(c: Cursor) -> tuple[str, ...]:
    """Read PARTITION (p, …)."""
    c.expect("PARTITION")
    return read_names(c)


def _system_time(c: Cursor) -> tuple[str, tuple[Expression, ...]]:
    c.index += 2
    if c.accept("ALL"):
        return "ALL", ()
    if c.accept("AS", "OF"):
        return "AS OF", (read_point_in_time(c),)
    if c.accept("BETWEEN"):
        first = read_point_in_time(c)
        c.expect("AND")
        return "BETWEEN", (first, read_point_in_time(c))
    if c.accept("FROM"):
        first = read_point_in_time(c)
        c.expect("TO")
        return "FROM", (first, read_point_in_time(c))
    raise c.stop("ALL, AS OF, BETWEEN or FROM")


def read_point_in_time(c: Cursor) -> Expression:
    """Read a point in the history of a system-versioned table."""
    is_literal = c.kinds[c.index + 1] is TokenKind.STRING or c.words[c.index + 1] == "("
    if c.word in ("TIMESTAMP", "TRANSACTION") and not is_literal:
        c.index += 1
    return read_expression(c, 8)


def read_index_hints(c: Cursor) -> None:
    """Read USE INDEX and the like."""
    words = c.words
    while words[c.index] in ("USE", "FORCE", "IGNORE") and words[c.index + 1] in ("INDEX", "KEY"):
        is_use = words[c.index] == "USE"
        c.index += 2
        if c.accept("FOR") and not c.accept("JOIN"):
            c.expect_any(("ORDER", "GROUP"))
            c.expect("BY")
        if is_use and c.accept("(", ")"):
            continue
        c.enclosed(lambda c: c.several(_key_name))


def _key_name(c: Cursor) -> None:
    if not c.accept("PRIMARY"):
        c.identifier()


# JSON_TABLE -----------------------------------------------------------------------------------


def _json_table(c: Cursor) -> TableFunction:
    at = c.start
    name = c.texts[c.index]
    c.index += 1
    call = Call(at, at, name, c.enclosed(_json_table_arguments, _TABLE_CALLS))
    call.end = c.end
    alias = _table_alias(c)
    return TableFunction(at, c.end, call, alias)


def _json_table_arguments(c: Cursor) -> tuple[Expression, ...]:
    document = read_expression(c)
    c.expect_operator(",")
    path = read_literal(c)
    _json_columns(c)
    return document, path


def _json_columns(c: Cursor) -> None:
    c.expect("COLUMNS")
    c.enclosed(lambda c: c.several(_json_column), 2)


def _json_column(c: Cursor) -> None:
    if c.word == "NESTED" and (
        c.kinds[c.index + 1] is TokenKind.STRING or c.word_ahead(1) == "PATH"
    ):
        c.index += 1
        c.accept("PATH")
        c.string()
        _json_columns(c)
        return
    c.identifier()
    if c.accept("FOR", "ORDINALITY"):
        return
    read_column_type(c)
    if c.accept("COLLATE"):
        read_collation(c)
    c.accept("EXISTS")
    c.expect("PATH")
    c.string()
    read_on_empty_or_error(c)


def read_table_name(c: Cursor) -> NamedTable:
    """Read a table's name alone."""
    name = read_object_name(c)
    return NamedTable(name.at, name.end, name)


def read_count(c: Cursor) -> Expression:
    """Read a number of rows, as LIMIT has it: it may be a parameter or a variable."""
    index = c.index
    at = c.starts[index]
    if c.kinds[index] is TokenKind.NUMBER and c.texts[index].isdecimal():
        return read_literal(c)
    if c.words[index] == "?":
        c.index += 1
        return ParameterMarker(at, at + 1)
    if c.is_at_name:
        return read_column(c)
    if c.words[index] == ":" and c.dialect.is_oracle:
        return read_expression(c)
    raise c.stop("a number")
