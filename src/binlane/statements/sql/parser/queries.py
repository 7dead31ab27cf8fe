"""Queries: SELECT, VALUES, TABLE, what stands between and behind them, and their tables.

Source: MySQL 9.7 and MariaDB 11.8, sql/sql_yacc.yy: query_expression, query_specification,
table_reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from binlane.statements.sql.parser.calls import read_window
from binlane.statements.sql.parser.cursor import Cursor
from binlane.statements.sql.parser.expressions import (
    read_expression,
    read_items,
    read_order,
    read_value,
)
from binlane.statements.sql.parser.literals import (
    Items,
    read_charset,
    read_column,
    read_literal,
    read_names,
    read_object_name,
    read_rows_run,
    read_run,
    read_user_variable,
)
from binlane.statements.sql.parser.notation import Notation, TokenReader
from binlane.statements.sql.parser.tables import read_count, read_table_name, read_tables
from binlane.statements.sql.tokens import TokenKind
from binlane.statements.sql.tree.expressions import (
    CommonTable,
    Expression,
    Into,
    Limit,
    Literal,
    LiteralKind,
    Locking,
    Name,
    OrderItem,
    Query,
    Row,
    Select,
    SelectItem,
    SetOperation,
    Star,
    TableQuery,
    UserVariable,
    Values,
    WindowDefinition,
    With,
)

_QUERY_CALLS: Final = 4
_LIST_CALLS: Final = 2
"""Calls that a query and a select list take."""
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


def read_query(c: Cursor, first: Query | None = None) -> Query:
    """Read a query with its WITH and the clauses behind it.

    Args:
        c: Cursor at the query's first word.
        first: Query in parentheses that was read already and begins this one, if any.

    Raises:
        Stopped: If no query comes next.
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
        table = read_table_name(c)
        return Query(at, c.end, TableQuery(at, c.end, table)), False
    raise c.stop("a query")


def _set_operation(c: Cursor, first: Query, at: int) -> Query:
    """UNION, EXCEPT and INTERSECT, which binds more tightly."""
    operands = [first]
    operators: list[str] = []
    # INTERSECT behind another operator, up to the next one.
    inner: list[Query] = []
    inner_operators: list[str] = []
    inner_end = at
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
            inner = inner or [operands[-1]]
            inner.append(query)
            inner_operators.append(operator)
            inner_end = c.end
            continue
        if inner:
            operands[-1] = _set_of(inner, inner_operators, inner[0].at, inner_end)
            inner, inner_operators = [], []
        operands.append(query)
        operators.append(operator)
        if word == "INTERSECT" and c.word != "INTERSECT":
            operands, operators = [_set_of(operands, operators, at, c.end)], []
    if inner:
        operands[-1] = _set_of(inner, inner_operators, inner[0].at, inner_end)
    if not operators:
        return operands[0]
    return _set_of(operands, operators, at, c.end)


def _set_of(operands: Sequence[Query], operators: Sequence[str], at: int, end: int) -> Query:
    return Query(at, end, SetOperation(at, end, tuple(operands), tuple(operators)))


def read_with(c: Cursor) -> With:
    """Read WITH.

    Raises:
        Stopped: If no WITH clause comes next.
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


def _window(c: Cursor) -> tuple[str, WindowDefinition]:
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
        while c.kinds[c.index] is TokenKind.LITERALS:
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
        alias = c.any_name(may_be_empty=True)
    else:
        return SelectItem(at, c.end, value)
    return SelectItem(at, c.end, value, alias)


def _alias(c: Cursor) -> str:
    if c.kind is TokenKind.QUOTED_NAME:
        return c.any_name(may_be_empty=True)
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
        c: Cursor at the first row.
        with_word: True for VALUES as a query, where MySQL has ROW before each row.
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
        while c.kinds[c.index] is TokenKind.ROWS:
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
            first = read_count(c)
            if c.accept(","):
                limit.offset, limit.count = first, read_count(c)
            else:
                limit.count = first
                if c.accept("OFFSET"):
                    limit.offset = read_count(c)
        if is_mariadb and c.accept("ROWS", "EXAMINED"):
            limit.rows_examined = read_count(c)
        elif limit.count is None:
            raise c.stop("EXAMINED")
    else:
        if not c.dialect.has_mariadb(10, 6):
            raise c.stop("the end of the query")
        if c.accept("OFFSET"):
            limit.offset = read_count(c)
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
        limit.count = read_count(c)
    c.expect_any(("ROW", "ROWS"))
    if not c.accept("ONLY"):
        c.expect("WITH", "TIES")
        limit.has_ties = True


def _procedure(c: Cursor, query: Query) -> None:
    """PROCEDURE ANALYSE(…) of old servers."""
    if c.dialect.flavor == "mysql" and c.dialect.version >= (8, 0, 0):
        raise c.stop("the end of the query")
    c.index += 1
    c.identifier()
    arguments = c.enclosed(lambda c: () if c.word == ")" else tuple(read_items(c)))
    if isinstance(query.body, Select):
        query.body.procedure = arguments


def _form(c: Cursor, name: str) -> Any:
    return _NOTATION.of(c.dialect).rule(name).node(c)


def read_variable(c: Cursor) -> UserVariable | Name:
    """Read a user variable, a local one or a record's field."""
    return read_user_variable(c) if c.kind is TokenKind.USER_VARIABLE else read_column(c)


def is_at_field(c: Cursor) -> bool:
    """True if a part of FIELDS comes next."""
    return c.word in ("OPTIONALLY", "TERMINATED", "ENCLOSED", "ESCAPED")


def read_field(c: Cursor) -> tuple[str, Literal]:
    """Read a part of FIELDS of LOAD DATA and INTO OUTFILE: its words, and the text."""
    word = "OPTIONALLY " if c.accept("OPTIONALLY") else ""
    kind = c.expect_any(("TERMINATED", "ENCLOSED", "ESCAPED"))
    c.expect("BY")
    return word + kind, _text(c)


def is_at_line(c: Cursor) -> bool:
    """True if a part of LINES comes next."""
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


# Parts that a grammar written as text reads ----------------------------------------------------

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
        "charset": TokenReader(read_charset, "a character set"),
        "field": TokenReader(read_field, "TERMINATED, ENCLOSED or ESCAPED", is_at_field),
        "line": TokenReader(read_line, "TERMINATED or STARTING", is_at_line),
        "literal": TokenReader(read_literal, "a literal"),
        "no": TokenReader(lambda _: False, "nothing"),
        "object": TokenReader(read_object_name, "a name"),
        "variable": TokenReader(read_variable, "a variable"),
    },
    {"Into": Into, "Locking": Locking},
)
