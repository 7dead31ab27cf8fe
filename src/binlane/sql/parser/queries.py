"""Queries: SELECT, VALUES, TABLE, what stands between and behind them, and their tables.

Source: MySQL 9.7 and MariaDB 11.8, sql/sql_yacc.yy: query_expression, query_specification,
table_reference.
"""

from __future__ import annotations

from typing import Any, Final

from binlane.names import folded
from binlane.sql.parser.calls import read_on_empty_or_error, read_window
from binlane.sql.parser.cursor import Cursor
from binlane.sql.parser.expressions import (
    is_at_query,
    read_expression,
    read_items,
    read_order,
    read_value,
)
from binlane.sql.parser.literals import (
    Items,
    read_charset,
    read_collation,
    read_column,
    read_literal,
    read_rows_run,
    read_run,
    read_user_variable,
)
from binlane.sql.parser.notation import Notation, Reader
from binlane.sql.parser.types import read_column_type
from binlane.sql.tokens import TokenKind
from binlane.sql.tree.expressions import (
    Call,
    CommonTable,
    DerivedTable,
    Expression,
    Into,
    Join,
    Limit,
    Literal,
    LiteralKind,
    Locking,
    Name,
    ObjectName,
    OrderItem,
    Parameter,
    Query,
    Row,
    Select,
    SelectItem,
    SetOperation,
    Star,
    TableFunction,
    TableQuery,
    TableReference,
    TableUse,
    UserVariable,
    Values,
    Window,
    With,
)

_QUERY_CALLS: Final = 4
_LIST_CALLS: Final = 2
_TABLE_CALLS: Final = 3
"""Calls that a query, a select list and a table take."""
_SET_OPERATORS: Final = frozenset(("UNION", "EXCEPT", "INTERSECT"))
_SELECT_OPTIONS: Final = frozenset(
    [
        "ALL",
        "DISTINCT",
        "DISTINCTROW",
        "UNIQUE",
        "HIGH_PRIORITY",
        "STRAIGHT_JOIN",
        "SQL_SMALL_RESULT",
        "SQL_BIG_RESULT",
        "SQL_BUFFER_RESULT",
        "SQL_NO_CACHE",
        "SQL_CACHE",
        "SQL_CALC_FOUND_ROWS",
    ]
)
_OLD_OPTIONS: Final = frozenset(("UNIQUE", "SQL_CACHE"))
_TAIL: Final = frozenset(("ORDER", "LIMIT", "OFFSET", "FETCH", "INTO", "FOR", "LOCK", "PROCEDURE"))
_JOINS: Final = frozenset(
    ("JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "STRAIGHT_JOIN", "NATURAL", "FULL")
)


def read_query(c: Cursor, first: Query | None = None) -> Query:
    """Read a query with its WITH and the clauses behind it.

    Args:
        c: At its first word.
        first: Its first query, in parentheses, if that was read already.

    Raises:
        Stopped: If none comes next.
    """
    if first is not None:
        return _with_clauses(c, first, first.at, is_inside=True)
    at = c.start
    c.deeper(_QUERY_CALLS)
    with_ = read_with(c) if c.word == "WITH" else None
    query, is_inside = _operand(c)
    query = _with_clauses(c, query, at, is_inside=is_inside, with_=with_)
    c.depth -= _QUERY_CALLS
    return query


def read_query_behind_with(c: Cursor, at: int, with_: With) -> Query:
    """Read the query behind a WITH that was read."""
    query, is_inside = _operand(c)
    return _with_clauses(c, query, at, is_inside=is_inside, with_=with_)


def _with_clauses(
    c: Cursor, query: Query, at: int, *, is_inside: bool, with_: With | None = None
) -> Query:
    """The set operations and clauses behind a query; `is_inside`: it stands in parentheses."""
    words = c.words
    if words[c.index] in _SET_OPERATORS or (words[c.index] == "MINUS" and c.dialect.is_oracle):
        if query.into is not None and not is_inside and not c.dialect.may_be_mysql:
            raise c.stop("the end of the query")
        query = _set_operation(c, query, at)
        is_inside = False
    if words[c.index] not in _TAIL and with_ is None:
        return query
    if is_inside:
        query = Query(at, c.end, query)
    query.at = at
    query.with_ = with_
    _tail(c, query)
    query.end = c.end
    return query


def _operand(c: Cursor) -> tuple[Query, bool]:
    """A query without clauses behind it, and whether it stands in parentheses."""
    at = c.start
    word = c.words[c.index]
    if word == "SELECT":
        query = Query(at, at, None)  # type: ignore[arg-type]  # told in the next line
        query.body = select = _select(c, query)
        query.end = select.end
        return query, False
    if word == "(":
        c.index += 1
        query = read_query(c)
        c.expect_operator(")")
        return query, True
    if word == "VALUES":
        values = _values(c)
        return Query(at, values.end, values), False
    if word == "TABLE" and c.dialect.has_mysql(8, 0, 19):
        c.index += 1
        table = _table_name(c)
        return Query(at, c.end, TableQuery(at, c.end, table)), False
    raise c.stop("a query")


def _set_operation(c: Cursor, first: Query, at: int) -> Query:
    """UNION, EXCEPT and INTERSECT, which binds more tightly."""
    operands = [first]
    operators: list[str] = []
    intersected = False
    while True:
        word = c.accept_any(_SET_OPERATORS) or (
            c.accept_any(("MINUS",)) if c.dialect.is_oracle else ""
        )
        if not word:
            break
        if word == "MINUS":
            word = "EXCEPT"
        if word != "UNION" and not (c.dialect.has_mysql(8, 0, 31) or c.dialect.may_be_mariadb):
            c.index -= 1
            raise c.stop("the end of the query")
        option = c.accept_any(("ALL", "DISTINCT"))
        operator = f"{word} ALL" if option == "ALL" else word
        query, _ = _operand(c)
        if word == "INTERSECT" and operators and not c.dialect.is_oracle:
            before = operands[-1]
            if intersected:
                assert isinstance(before.body, SetOperation)
                body = before.body
                body.operands += (query,)
                body.operators += (operator,)
                body.end = before.end = c.end
            else:
                body = SetOperation(before.at, c.end, (before, query), (operator,))
                operands[-1] = Query(before.at, c.end, body)
                intersected = True
            continue
        intersected = False
        operands.append(query)
        operators.append(operator)
        if word == "INTERSECT":
            body = SetOperation(at, c.end, tuple(operands), tuple(operators))
            if c.word != "INTERSECT":
                operands, operators = [Query(at, c.end, body)], []
    if not operators:
        return operands[0]
    body = SetOperation(at, c.end, tuple(operands), tuple(operators))
    return Query(at, c.end, body)


def read_with(c: Cursor) -> With:
    """Read WITH.

    Raises:
        Stopped: If none comes next.
    """
    at = c.start
    if not (c.dialect.has_mysql(8, 0) or c.dialect.may_be_mariadb):
        raise c.stop("a statement")
    c.expect("WITH")
    is_recursive = c.accept("RECURSIVE")
    tables = c.several(lambda c: _common_table(c, is_recursive=is_recursive))
    return With(at, c.end, is_recursive, tables)


def _common_table(c: Cursor, *, is_recursive: bool) -> CommonTable:
    at = c.start
    name = c.identifier()
    columns = read_names(c) if c.word == "(" else ()
    c.expect("AS")
    query = c.enclosed(read_query)
    if is_recursive and c.dialect.may_be_mariadb and c.accept("CYCLE"):
        c.several(Cursor.identifier)
        c.expect("RESTRICT")
    return CommonTable(at, c.end, name, columns, query)


def read_names(c: Cursor) -> tuple[str, ...]:
    """Read names in parentheses, at least one."""
    return c.enclosed(lambda c: c.several(Cursor.identifier))


# SELECT ---------------------------------------------------------------------------------------


def _select(c: Cursor, query: Query) -> Select:  # noqa: C901 - its clauses in a row
    """SELECT; an INTO before FROM is the query's."""
    at = c.start
    words = c.words
    c.index += 1
    options: set[str] = set()
    c.deeper(_LIST_CALLS)
    while words[c.index] in _SELECT_OPTIONS:
        if words[c.index] in _OLD_OPTIONS and not _has_old_options(c, words[c.index]):
            break
        options.add(words[c.index])
        c.index += 1
    select = Select(at, at, read_select_items(c), frozenset(options))
    c.depth -= _LIST_CALLS
    if words[c.index] == "INTO":
        query.into = _form(c, "into")
    if words[c.index] == "FROM":
        select.from_at = c.starts[c.index]
        c.index += 1
        if words[c.index] == "DUAL":
            c.index += 1
        else:
            select.tables = read_tables(c)
    if words[c.index] == "WHERE":
        c.index += 1
        select.where = read_expression(c)
    if words[c.index] == "GROUP":
        _group(c, select)
    if words[c.index] == "HAVING":
        c.index += 1
        select.having = read_expression(c)
    if words[c.index] == "WINDOW":
        c.index += 1
        select.windows = c.several(_window)
    if words[c.index] == "QUALIFY" and c.dialect.has_mysql(9, 3):
        c.index += 1
        select.qualify = read_expression(c)
    select.end = c.end
    return select


def _has_old_options(c: Cursor, word: str) -> bool:
    return c.dialect.may_be_mariadb or (word == "SQL_CACHE" and c.dialect.version < (8, 0, 3))


def _group(c: Cursor, select: Select) -> None:
    c.index += 1
    c.expect("BY")
    is_old = c.dialect.may_be_mariadb or c.dialect.version < (8, 0, 13)
    select.group_by = read_order(c, has_direction=is_old)
    if c.accept("WITH"):
        if not (is_old and c.accept("CUBE")):
            c.expect("ROLLUP")
        select.with_rollup = True


def _window(c: Cursor) -> tuple[str, Window]:
    name = c.identifier()
    c.expect("AS")
    return name, read_window(c)


def read_select_items(c: Cursor) -> tuple[SelectItem, ...]:
    """Read a select list, as RETURNING has it, too."""
    words = c.words
    found = []
    at = c.starts[c.index]
    if words[c.index] == "*":
        c.index += 1
        found.append(SelectItem(at, at + 1, Star(at, at + 1)))
        if words[c.index] != ",":
            return tuple(found)
        c.index += 1
    while True:
        found.append(_select_item(c))
        if c.kinds[c.index] is TokenKind.LITERALS:
            found += [SelectItem(each.at, each.end, each) for each in read_run(c)]
        if words[c.index] != ",":
            return tuple(found)
        c.index += 1


def _select_item(c: Cursor) -> SelectItem:
    index = c.index
    at = c.starts[index]
    words = c.words
    if words[index + 1 : index + 2] == ["."]:
        star = _qualified_star(c)
        if star is not None:
            return SelectItem(at, star.end, star)
    value = read_expression(c)
    word = words[c.index]
    if word == "," or word == "FROM":  # noqa: PLR1714 - faster
        return SelectItem(at, c.end, value)
    if word == "AS":
        c.index += 1
        alias = _alias(c)
    elif c.kinds[c.index] is TokenKind.STRING and c.texts[c.index][0] not in "nN":
        alias = c.string()
    elif c.is_at_alias:
        alias = c.any_name()
    else:
        return SelectItem(at, c.end, value)
    return SelectItem(at, c.end, value, alias)


def _alias(c: Cursor) -> str:
    return c.string() if c.kind is TokenKind.STRING else c.identifier()


def _qualified_star(c: Cursor) -> Star | None:
    """`t.*` or `d.t.*`; None, and nothing read, if it is none."""
    index = c.index
    words = c.words
    end = index + 2
    if words[end] != "*":
        if words[end + 1 : end + 3] != [".", "*"]:
            return None
        end += 2
    at = c.start
    parts = [c.identifier()]
    c.index += 1
    if c.index != end:
        parts.append(c.identifier())
        c.index += 1
    c.index += 1
    return Star(at, c.end, tuple(parts))


def _values(c: Cursor) -> Values:
    """VALUES ROW(…), … of MySQL, VALUES (…), … of MariaDB."""
    at = c.start
    c.index += 1
    if not (c.dialect.has_mysql(8, 0, 19) or c.dialect.may_be_mariadb):
        raise c.stop("a query")
    rows = read_rows(c, with_word=True)
    return Values(at, c.end, tuple(rows))


def read_rows(c: Cursor, *, with_word: bool) -> Items[Row] | tuple[Row, ...]:
    """Read rows of VALUES, at least one.

    Args:
        c: At the first.
        with_word: As a query, where MySQL has ROW before each.
    """
    found: list[Row] = []
    parts: list[Items[Row] | tuple[Row, ...] | list[Row]] = []
    words, dialect = c.words, c.dialect
    while True:
        index = c.index
        at = c.starts[index]
        if with_word and words[index] == "ROW" and dialect.may_be_mysql:
            c.index += 1
        elif with_word and not dialect.may_be_mariadb:
            raise c.stop("ROW")
        if words[c.index] != "(":
            raise c.stop("a row")
        c.index += 1
        if words[c.index] == ")":
            c.index += 1
            found.append(Row(at, c.end, ()))
        else:
            items = [read_value(c)]
            while words[c.index] == ",":
                c.index += 1
                items.append(read_value(c))
            if words[c.index] != ")":
                _run_in_row(c, items)
            end = c.starts[c.index] + 1
            c.index += 1
            found.append(Row(at, end, tuple(items)))
        if c.kinds[c.index] is TokenKind.ROWS:
            parts += (found, read_rows_run(c))  # type: ignore[arg-type]
            found = []
        if words[c.index] != ",":
            break
        c.index += 1
    return Items((*parts, found)) if parts else tuple(found)


def _run_in_row(c: Cursor, items: list[Expression]) -> None:
    """Many literals in one row."""
    while c.kinds[c.index] is TokenKind.LITERALS:
        c.index -= 1
        items.pop()
        # The value before a run is read again with it.
        items += read_items(c)
        if c.accept(","):
            items.append(read_value(c))
    if c.word != ")":
        raise c.stop(") or ,")


# Behind a query -------------------------------------------------------------------------------


def _tail(c: Cursor, query: Query) -> None:
    words = c.words
    if words[c.index] == "ORDER":
        query.order_by = read_order_by(c)
    if words[c.index] in ("LIMIT", "OFFSET", "FETCH"):
        query.limit = read_limit(c)
    if words[c.index] == "PROCEDURE":
        _procedure(c, query)
    locks: list[Locking] = []
    while True:
        word = words[c.index]
        if word == "INTO" and query.into is None:
            query.into = _form(c, "into")
        elif word == "LOCK" or (word == "FOR" and words[c.index + 1] in ("UPDATE", "SHARE")):
            if locks and not c.dialect.may_be_mysql:
                break
            locks.append(_form(c, "lock"))
        else:
            break
    query.locks = tuple(locks)


def read_order_by(c: Cursor) -> tuple[OrderItem, ...]:
    """Read ORDER BY."""
    c.expect("ORDER", "BY")
    return read_order(c)


def read_limit(c: Cursor) -> Limit:
    """Read LIMIT, OFFSET and FETCH FIRST."""
    at = c.start
    limit = Limit(at, at, None)
    is_mariadb = c.dialect.may_be_mariadb
    if c.accept("LIMIT"):
        if not (is_mariadb and c.word == "ROWS"):
            first = _limit_value(c)
            if c.accept(","):
                limit.offset, limit.count = first, _limit_value(c)
            else:
                limit.count = first
                if c.accept("OFFSET"):
                    limit.offset = _limit_value(c)
        if is_mariadb and c.accept("ROWS", "EXAMINED"):
            limit.rows_examined = _limit_value(c)
        elif limit.count is None:
            raise c.stop("EXAMINED")
    else:
        if not c.dialect.has_mariadb(10, 6):
            raise c.stop("the end of the query")
        if c.accept("OFFSET"):
            limit.offset = _limit_value(c)
            c.expect_any(("ROW", "ROWS"))
        if c.accept("FETCH"):
            _fetch(c, limit)
    limit.end = c.end
    return limit


def _fetch(c: Cursor, limit: Limit) -> None:
    c.expect_any(("FIRST", "NEXT"))
    if c.word in ("ROW", "ROWS"):
        limit.count = Literal(c.start, c.start, LiteralKind.NUMBER)
    else:
        limit.count = _limit_value(c)
    c.expect_any(("ROW", "ROWS"))
    if not c.accept("ONLY"):
        c.expect("WITH", "TIES")
        limit.has_ties = True


def _limit_value(c: Cursor) -> Expression:
    index = c.index
    at = c.starts[index]
    if c.kinds[index] is TokenKind.NUMBER and c.texts[index].isdecimal():
        return read_literal(c)
    if c.words[index] == "?":
        c.index += 1
        return Parameter(at, at + 1)
    if c.is_at_name:
        return read_column(c)
    if c.words[index] == ":" and c.dialect.is_oracle:
        return read_expression(c)
    raise c.stop("a number")


def _procedure(c: Cursor, query: Query) -> None:
    """PROCEDURE ANALYSE(…) of old servers."""
    if c.dialect.flavor == "mysql" and c.dialect.version >= (8, 0, 0):
        raise c.stop("the end of the query")
    at = c.start
    c.index += 1
    name = c.identifier()
    arguments = c.enclosed(lambda c: () if c.word == ")" else tuple(read_items(c)))
    if isinstance(query.body, Select):
        query.body.procedure = Call(at, c.end, name, arguments)


def _form(c: Cursor, name: str) -> Any:
    return _NOTATION.of(c.dialect).rule(name).node(c)


def read_variable(c: Cursor) -> UserVariable | Name:
    """Read a user variable, a local one or a record's field."""
    return read_user_variable(c) if c.kind is TokenKind.USER_VARIABLE else read_column(c)


def is_at_field(c: Cursor) -> bool:
    """Whether a part of FIELDS comes next."""
    return c.word in ("OPTIONALLY", "TERMINATED", "ENCLOSED", "ESCAPED")


def read_field(c: Cursor) -> tuple[str, Literal]:
    """Read a part of FIELDS of LOAD DATA and INTO OUTFILE: its words, and the text."""
    word = "OPTIONALLY " if c.accept("OPTIONALLY") else ""
    kind = c.expect_any(("TERMINATED", "ENCLOSED", "ESCAPED"))
    c.expect("BY")
    return word + kind, _text(c)


def is_at_line(c: Cursor) -> bool:
    """Whether a part of LINES comes next."""
    return c.word in ("TERMINATED", "STARTING")


def read_line(c: Cursor) -> tuple[str, Literal]:
    """Read a part of LINES; as of `read_field`."""
    kind = c.expect_any(("TERMINATED", "STARTING"))
    c.expect("BY")
    return kind, _text(c)


def _text(c: Cursor) -> Literal:
    if c.kind not in (TokenKind.STRING, TokenKind.NUMBER):
        raise c.stop("a string")
    return read_literal(c)


# Tables ---------------------------------------------------------------------------------------


def read_object_name(c: Cursor) -> ObjectName:
    """Read `name` or `database.name`.

    Raises:
        Stopped: If none comes next.
    """
    at = c.start
    if c.words[c.index] == "." and c.dialect.may_be_mariadb:
        c.index += 1
    first = c.object_identifier()
    if c.words[c.index] != ".":
        return ObjectName(at, c.end, None, first)
    c.index += 1
    second = c.object_identifier()
    return ObjectName(at, c.end, first, second)


def _table_name(c: Cursor) -> TableUse:
    name = read_object_name(c)
    return TableUse(name.at, name.end, name)


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
    """One join, up to its condition."""
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
    """Whether a condition behind a join is of the join before it."""
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
    """What stands in parentheses: a query, or tables."""
    if is_at_query(c):
        c.index += 1
        query = read_query(c)
        c.expect_operator(")")
        return query
    c.index += 1
    if c.word == "(":
        c.deeper(_TABLE_CALLS)
        start = c.start
        found = _in_parentheses(c)
        c.depth -= _TABLE_CALLS
        if isinstance(found, Query):
            query = read_query(c, found)
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
    """Whether a word that begins what follows a table is its alias."""
    if word == "FULL":
        return not (c.dialect.has_mariadb(12, 1) and c.words[c.index + 1] in ("OUTER", "JOIN"))
    return word == "MINUS" and not c.dialect.is_oracle


def read_table_use(c: Cursor) -> TableUse:
    """Read a table's name with what may follow it: partitions, period, alias, index hints."""
    name = read_object_name(c)
    words = c.words
    table = TableUse(name.at, name.end, name)
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
        c.enclosed(_limit_value)
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


# What is read by a grammar that is written as text ---------------------------------------------

_FORMS: Final = """
into = INTO {
    OUTFILE outfile:literal [{CHARACTER SET | CHARSET} charset]
    [{FIELDS | COLUMNS} field ...] [LINES line ...]
  | DUMPFILE dumpfile:literal | variables:variable, ... } -> Into
lock = FOR {is_for_update:UPDATE | is_for_update:no SHARE @mysql>=8} [OF tables:object, ... @mysql>=8]
    [wait] -> Locking
  | LOCK IN SHARE MODE is_for_update:no [wait @mariadb] -> Locking
wait = wait_at:^ wait:NOWAIT @mariadb|mysql>=8
  | wait_at:^ wait:{SKIP LOCKED} @mariadb>=10.6|mysql>=8
  | wait_at:^ wait:WAIT literal @mariadb>=10.3
"""
_NOTATION: Final = Notation(
    (_FORMS,),
    {
        "charset": Reader(read_charset, "a character set"),
        "field": Reader(read_field, "TERMINATED, ENCLOSED or ESCAPED", is_at_field),
        "line": Reader(read_line, "TERMINATED or STARTING", is_at_line),
        "literal": Reader(read_literal, "a literal"),
        "no": Reader(lambda _: False, "nothing"),
        "object": Reader(read_object_name, "a name"),
        "variable": Reader(read_variable, "a variable"),
    },
    {"Into": Into, "Locking": Locking},
)
