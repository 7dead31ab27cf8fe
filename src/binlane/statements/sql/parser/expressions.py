"""Expressions, by the precedence of their operators.

A chain of one operator is one node, and what nests costs calls that are counted (`Cursor.deeper`):
so no text ends the interpreter's stack.

Source: MySQL 9.7 and MariaDB 11.8, sql/sql_yacc.yy: expr, bool_pri, predicate, bit_expr,
simple_expr.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from binlane.statements.sql.parser.cursor import Cursor
from binlane.statements.sql.parser.literals import (
    INTRODUCED,
    Items,
    number_kind,
    read_collation,
    read_introduced,
    read_rows_run,
    read_run,
    read_string,
    read_system_variable,
    read_user_variable,
)
from binlane.statements.sql.parser.reserved_words import CHARSETS, words_of
from binlane.statements.sql.tokens import NAME_KINDS, TokenKind
from binlane.statements.sql.tree.expressions import (
    Assign,
    Call,
    Default,
    Expression,
    Interval,
    Literal,
    LiteralKind,
    Name,
    Operation,
    OrderItem,
    Row,
    Subquery,
)

# Strength with which operators bind.
_OR: Final = 1
_XOR: Final = 2
_AND: Final = 3
_NOT: Final = 4
_COMPARISON: Final = 6
_PREDICATE: Final = 7
BITS: Final = 8
"""From here on, operators are of values, none of conditions (`bit_expr`)."""
_SHIFT: Final = 10
_SUM: Final = 11
_PRODUCT: Final = 12
_POWER: Final = 13
_CONCAT: Final = 14
UNARY: Final = 15
_COLLATE: Final = 16
_MEMBER: Final = 17
UNITS: Final = words_of("""
    MICROSECOND SECOND MINUTE HOUR DAY WEEK MONTH QUARTER YEAR SECOND_MICROSECOND
    MINUTE_MICROSECOND MINUTE_SECOND HOUR_MICROSECOND HOUR_SECOND HOUR_MINUTE DAY_MICROSECOND
    DAY_SECOND DAY_MINUTE DAY_HOUR YEAR_MONTH
    """)
"""Units of INTERVAL and EXTRACT."""
SIMPLE_UNITS: Final = words_of("MICROSECOND SECOND MINUTE HOUR DAY WEEK MONTH QUARTER YEAR")
QUERY_WORDS: Final = frozenset(("SELECT", "WITH", "TABLE", "VALUES"))
"""Words that a query begins with, unless it is in parentheses."""
SET_OPERATIONS: Final = frozenset(("UNION", "EXCEPT", "INTERSECT", "MINUS", "ORDER", "LIMIT"))
_QUANTIFIERS: Final = {"ANY": "ANY", "SOME": "ANY", "ALL": "ALL"}


def read_expression(c: Cursor, floor: int = 0) -> Expression:
    """Read an expression.

    Args:
        c: At its first token; afterwards behind its last one.
        floor: Operators that bind less tightly are left.

    Raises:
        Stopped: If no expression comes next.
    """
    c.deeper(2)
    at = c.starts[c.index]
    if c.words[c.index] == "NOT" and floor <= _NOT and not c.dialect.high_not_precedence:
        c.index += 1
        operand = read_expression(c, _NOT)
        left: Expression = Operation(at, c.end, "NOT", (operand,))
    else:
        left = _operand(c)
    if c.words[c.index] in _BINARY:
        left = read_operators(c, left, floor, at)
    c.depth -= 2
    return left


def read_operators(  # noqa: C901, PLR0912 - the hottest loop
    c: Cursor, left: Expression, floor: int, at: int
) -> Expression:
    """Read what operators follow an operand that begins at `at`, its parentheses included."""
    words = c.words
    is_mysql = c.dialect.flavor == "mysql"
    ceiling = 99
    wraps = 0
    while True:
        word = words[c.index]
        found = _BINARY.get(word)
        if found is None:
            break
        strength, name = found
        if word == "||" and c.dialect.pipes_as_concat:
            strength, name = _CONCAT, "CONCAT"
        if strength < floor or strength > ceiling:
            break
        special = _SPECIAL.get(word)
        if special is not None:
            operation = special(c, left, at)
            if operation is None:
                break
            left = operation
            wraps += 1
            if is_mysql and strength == _PREDICATE:
                ceiling = _COMPARISON
            elif is_mysql and word == "IS" and operation.operator != "IS NULL":
                ceiling = _NOT
            continue
        c.index += 1
        if strength == _COMPARISON:
            left = _comparison(c, left, name, at)
            wraps += 1
            ceiling = _COMPARISON if is_mysql else _PREDICATE
            continue
        operands = [left]
        while True:
            if strength == _SUM and words[c.index] == "INTERVAL":
                operands.append(read_interval_or_call(c))
            else:
                operands.append(read_expression(c, strength + 1))
            following = words[c.index]
            if following != word and _BINARY.get(following) != found:
                break
            if following == "||" and c.dialect.pipes_as_concat:
                break
            c.index += 1
        left = Operation(at, c.end, name, tuple(operands))
        wraps += 1
    if wraps > 2:
        c.high += wraps
    return left


def _comparison(c: Cursor, left: Expression, name: str, at: int) -> Expression:
    words = c.words
    quantifier = _QUANTIFIERS.get(words[c.index])
    if quantifier is not None and words[c.index + 1] == "(":
        c.index += 1
        query = read_subquery(c)
        return Operation(at, c.end, f"{name} {quantifier}", (left, query))
    right = read_expression(c, _PREDICATE)
    return Operation(at, c.end, name, (left, right))


# Operators with words of their own ------------------------------------------------------------


def _is(c: Cursor, left: Expression, at: int) -> Operation | None:
    c.index += 1
    is_negated = c.accept("NOT")
    word = c.accept_any(("NULL", "TRUE", "FALSE", "UNKNOWN"))
    if not word:
        if not (c.word == "JSON" and c.dialect.has_mariadb(12, 3)):
            raise c.stop("NULL, TRUE, FALSE or UNKNOWN")
        c.index += 1
        word = "JSON"
    return Operation(at, c.end, f"IS {word}", (left,), is_negated)


def _not_predicate(c: Cursor, left: Expression, at: int) -> Operation | None:
    """`NOT` behind an operand: NOT IN, NOT LIKE and so on."""
    reader = _NEGATED.get(c.words[c.index + 1])
    if reader is None:
        c.index += 1
        raise c.stop("IN, LIKE, BETWEEN or REGEXP")
    c.index += 1
    operation = reader(c, left, at)
    assert operation is not None  # these always begin one
    operation.is_negated = True
    return operation


def _in(c: Cursor, left: Expression, at: int) -> Operation | None:
    c.index += 1
    if c.word != "(":
        raise c.stop("(")
    c.deeper(3)
    if is_at_query(c):
        right = read_subquery(c)
        items: Sequence[Expression] = (left, right)
    else:
        c.index += 1
        found = read_items(c)
        c.expect_operator(")")
        items = (left, *found) if isinstance(found, tuple) else Items(((left,), found))
    c.depth -= 3
    return Operation(at, c.end, "IN", items)


def _between(c: Cursor, left: Expression, at: int) -> Operation | None:
    c.index += 1
    c.deeper(1)
    # MariaDB takes any predicate there, and prints one without parentheses around it.
    low = read_expression(c, _PREDICATE if c.dialect.may_be_mariadb else BITS)
    c.expect("AND")
    high = read_expression(c, _PREDICATE)
    c.depth -= 1
    return Operation(at, c.end, "BETWEEN", (left, low, high))


def _like(c: Cursor, left: Expression, at: int) -> Operation | None:
    c.index += 1
    pattern = read_expression(c, _CONCAT)
    if c.accept("ESCAPE"):
        escape = read_expression(c, _CONCAT)
        return Operation(at, c.end, "LIKE", (left, pattern, escape))
    return Operation(at, c.end, "LIKE", (left, pattern))


def _regexp(c: Cursor, left: Expression, at: int) -> Operation | None:
    c.index += 1
    pattern = read_expression(c, BITS)
    return Operation(at, c.end, "REGEXP", (left, pattern))


def _sounds(c: Cursor, left: Expression, at: int) -> Operation | None:
    if c.words[c.index + 1] != "LIKE":
        return None
    c.index += 2
    right = read_expression(c, BITS)
    return Operation(at, c.end, "SOUNDS LIKE", (left, right))


def _member_of(c: Cursor, left: Expression, at: int) -> Operation | None:
    if not c.dialect.has_mysql(8, 0, 17) or c.words[c.index + 1] not in ("OF", "("):
        return None
    c.index += 1
    c.accept("OF")
    c.expect_operator("(")
    right = read_expression(c, UNARY)
    c.expect_operator(")")
    return Operation(at, c.end, "MEMBER OF", (left, right))


def _collate(c: Cursor, left: Expression, at: int) -> Operation | None:
    c.index += 1
    start = c.start
    name = Name(start, start, (read_collation(c),))
    name.end = c.end
    return Operation(at, c.end, "COLLATE", (left, name))


def _json_member(c: Cursor, left: Expression, at: int) -> Operation | None:
    operator = c.word
    if not c.dialect.may_be_mysql or not isinstance(left, Name):
        raise c.stop("an operator")
    c.index += 1
    if c.kind is not TokenKind.STRING:
        raise c.stop("a path")
    path = read_string(c)
    return Operation(at, c.end, operator, (left, path))


_Special = Callable[[Cursor, Expression, int], Operation | None]
_BINARY: Final[Mapping[str, tuple[int, str]]] = {
    "OR": (_OR, "OR"),
    "||": (_OR, "OR"),
    "XOR": (_XOR, "XOR"),
    "AND": (_AND, "AND"),
    "&&": (_AND, "AND"),
    "IS": (_COMPARISON, "IS"),
    "=": (_COMPARISON, "="),
    "<=>": (_COMPARISON, "<=>"),
    "<>": (_COMPARISON, "<>"),
    "!=": (_COMPARISON, "<>"),
    "<": (_COMPARISON, "<"),
    "<=": (_COMPARISON, "<="),
    ">": (_COMPARISON, ">"),
    ">=": (_COMPARISON, ">="),
    "NOT": (_PREDICATE, "NOT"),
    "IN": (_PREDICATE, "IN"),
    "BETWEEN": (_PREDICATE, "BETWEEN"),
    "LIKE": (_PREDICATE, "LIKE"),
    "REGEXP": (_PREDICATE, "REGEXP"),
    "RLIKE": (_PREDICATE, "REGEXP"),
    "SOUNDS": (_PREDICATE, "SOUNDS LIKE"),
    "MEMBER": (_PREDICATE, "MEMBER OF"),
    "|": (BITS, "|"),
    "&": (BITS + 1, "&"),
    "<<": (_SHIFT, "<<"),
    ">>": (_SHIFT, ">>"),
    "+": (_SUM, "+"),
    "-": (_SUM, "-"),
    "*": (_PRODUCT, "*"),
    "/": (_PRODUCT, "/"),
    "%": (_PRODUCT, "%"),
    "DIV": (_PRODUCT, "DIV"),
    "MOD": (_PRODUCT, "%"),
    "^": (_POWER, "^"),
    "COLLATE": (_COLLATE, "COLLATE"),
    "->": (_MEMBER, "->"),
    "->>": (_MEMBER, "->>"),
}
_NEGATED: Final[Mapping[str, _Special]] = {
    "IN": _in,
    "BETWEEN": _between,
    "LIKE": _like,
    "REGEXP": _regexp,
    "RLIKE": _regexp,
}
_SPECIAL: Final[Mapping[str, _Special]] = {
    **_NEGATED,
    "IS": _is,
    "NOT": _not_predicate,
    "SOUNDS": _sounds,
    "MEMBER": _member_of,
    "COLLATE": _collate,
    "->": _json_member,
    "->>": _json_member,
}


# Operands -------------------------------------------------------------------------------------


def _operand(c: Cursor) -> Expression:  # noqa: C901, PLR0912 - one branch a kind of token
    index = c.index
    kind = c.kinds[index]
    if kind is TokenKind.NAME:
        word = c.words[index]
        reader = c.grammar.words.get(word)
        if reader is not None:
            found = reader(c)
            if found is not None:
                return found
        following = c.words[index + 1]
        if following == "(" or following == ".":  # noqa: PLR1714 - faster
            return c.grammar.name(c)
        if word in c.reserved and not (word == "SQL" and following == "%" and c.dialect.is_oracle):
            if word in CHARSETS and c.kinds[index + 1] in INTRODUCED:
                return read_introduced(c)
            if word != "SQL" or following != "%" or not c.dialect.is_oracle:
                raise c.stop("an expression")
        c.index = index + 1
        at = c.starts[index]
        text = c.texts[index]
        name = Name(at, at + len(text), (text,))
        if following == "%" and c.dialect.is_oracle:
            return _cursor_attribute(c, name)
        return name
    if kind is TokenKind.NUMBER:
        c.index = index + 1
        at = c.starts[index]
        text = c.texts[index]
        return Literal(at, at + len(text), number_kind(text))
    if kind is TokenKind.STRING:
        return read_string(c)
    if kind is TokenKind.QUOTED_NAME or kind is TokenKind.MEMBER_NAME:
        return c.grammar.name(c)
    if kind is TokenKind.USER_VARIABLE:
        return _user_variable(c)
    if kind is TokenKind.SYSTEM_VARIABLE:
        return read_system_variable(c)
    reader = c.grammar.signs.get(c.words[index])
    if reader is None and c.text.startswith("\\N", c.starts[index]) and _has_null_sign(c):
        c.index = index + 2
        return Literal(c.starts[index], c.end, LiteralKind.NULL)
    if reader is None:
        raise c.stop("an expression")
    found = reader(c)
    assert found is not None  # signs always begin something
    return found


def _has_null_sign(c: Cursor) -> bool:
    r"""True if `\N` is NULL, as it was in MySQL before 8.0."""
    return c.dialect.may_be_mariadb or not c.dialect.has_mysql(8)


def _user_variable(c: Cursor) -> Expression:
    variable = read_user_variable(c)
    if c.words[c.index] == ":=":
        c.index += 1
        c.deeper(1)
        value = read_expression(c)
        c.depth -= 1
        return Assign(variable.at, c.end, variable, value)
    return variable


def _cursor_attribute(c: Cursor, name: Name) -> Expression:
    """`cursor%FOUND` of sql_mode ORACLE; `%` alone is an operator."""
    attribute = c.words[c.index + 1]
    if attribute not in ("FOUND", "NOTFOUND", "ISOPEN", "ROWCOUNT"):
        return name
    c.index += 2
    if name.parts[0].upper() == "SQL":  # of the statement before: only how many rows it had
        return Call(name.at, c.end, "ROW_COUNT", ())
    return Call(name.at, c.end, f"{name.parts[0]}%{attribute}", ())


# Parentheses and signs ------------------------------------------------------------------------


def is_at_query(c: Cursor) -> bool:
    """True if the parenthesis at the cursor holds a query and nothing before it."""
    index = c.index + 1
    word = c.words[index]
    if word not in QUERY_WORDS:
        return False
    return word != "VALUES" or not _is_values_function(c, index)


def _is_values_function(c: Cursor, index: int) -> bool:
    """True if VALUES at an index is the function of one column that ON DUPLICATE KEY knows."""
    if c.words[index + 1] != "(":
        return False
    if c.dialect.flavor:
        return c.has_new_values
    index += 2
    while c.kinds[index] in NAME_KINDS:
        if c.words[index + 1] != ".":
            return c.words[index + 1] == ")" and c.words[index] not in c.reserved
        index += 2
    return False


def read_subquery(c: Cursor) -> Subquery:
    """Read a query in parentheses.

    Raises:
        Stopped: If no query in parentheses comes next.
    """
    at = c.start
    c.expect_operator("(")
    query = c.grammar.query(c, None)
    c.expect_operator(")")
    return Subquery(at, c.end, query)


# Lists ----------------------------------------------------------------------------------------


def read_items(c: Cursor) -> Sequence[Expression]:
    """Read expressions with commas between them, at least one."""
    found = [read_expression(c)]
    parts: list[Sequence[Expression]] = []
    while True:
        word = c.words[c.index]
        if word == ",":
            c.index += 1
            found.append(read_expression(c))
        elif word or c.kinds[c.index] not in (TokenKind.LITERALS, TokenKind.ROWS):
            break
        else:
            is_rows = c.kinds[c.index] is TokenKind.ROWS
            parts += (found, read_rows_run(c) if is_rows else read_run(c))
            found = []
    return Items((*parts, found)) if parts else tuple(found)


def read_order(c: Cursor, *, has_direction: bool = True) -> tuple[OrderItem, ...]:
    """Read the items of ORDER BY or GROUP BY; `has_direction`: ASC and DESC may stand there."""
    return c.several(lambda c: _order_item(c, has_direction=has_direction))


def _order_item(c: Cursor, *, has_direction: bool) -> OrderItem:
    at = c.start
    value = read_expression(c)
    if has_direction:
        c.accept_any(("ASC", "DESC"))
    return OrderItem(at, c.end, value)


def read_unit(c: Cursor) -> str:
    """Read a unit of time, in capitals.

    Raises:
        Stopped: If no unit comes next.
    """
    word = c.word
    if word not in UNITS:
        raise c.stop("a unit of time")
    c.index += 1
    return word


def read_value(c: Cursor) -> Expression:
    """Read an expression, or DEFAULT alone, as in VALUES and behind `column =`."""
    index = c.index
    if c.words[index] == "DEFAULT" and c.words[index + 1] != "(":
        at = c.starts[index]
        c.index = index + 1
        return Default(at, c.end)
    if c.words[index] == "IGNORE" and c.dialect.may_be_mariadb:
        at = c.starts[index]
        c.index = index + 1
        return Default(at, c.end, word="IGNORE")
    return read_expression(c)


def read_parentheses(c: Cursor) -> Expression:
    """A query, row or expression in parentheses."""
    at = c.start
    c.deeper(2)
    if is_at_query(c):
        found: Expression = read_subquery(c)
        c.depth -= 2
        return found
    c.index += 1
    if c.word == "(":
        start = c.start
        first = read_parentheses(c)
        if isinstance(first, Subquery) and c.word in SET_OPERATIONS:
            query = c.grammar.query(c, first.query)
            first = Subquery(query.at, query.end, query)
        else:
            first = read_operators(c, first, 0, start)
    else:
        first = read_expression(c)
    if c.words[c.index] == ",":
        c.index += 1
        items = (first, *read_items(c))
        c.expect_operator(")")
        found = Row(at, c.end, items)
    else:
        c.expect_operator(")")
        found = first
    c.depth -= 2
    return found


def read_interval_or_call(c: Cursor) -> Interval | Call:
    """INTERVAL value unit; INTERVAL(a, b, …) is a function."""
    at = c.start
    name = c.texts[c.index]
    c.index += 1
    c.deeper(2)
    if c.word == "(" and not is_at_query(c):
        opens = c.start
        value: Expression = read_parentheses(c)
        if isinstance(value, Row) and value.at == opens and c.word not in UNITS:
            c.depth -= 2
            return Call(at, c.end, name, tuple(value.items))
        value = read_operators(c, value, 0, opens)
    else:
        value = read_expression(c)
    c.depth -= 2
    unit = read_unit(c)
    return Interval(at, c.end, value, unit)
