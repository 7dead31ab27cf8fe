"""Operands that begin with a word or sign of their own: CASE, CAST, parentheses and their like."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from binlane.statements.sql.parser.cursor import Cursor
from binlane.statements.sql.parser.expressions import (
    BITS,
    UNARY,
    read_expression,
    read_interval_or_call,
    read_items,
    read_parentheses,
    read_subquery,
)
from binlane.statements.sql.parser.literals import (
    read_cast_type,
    read_charset,
    read_column,
    read_digits,
    read_literal,
)
from binlane.statements.sql.tokens import NAME_KINDS, TokenKind
from binlane.statements.sql.tree.expressions import (
    Call,
    Case,
    Cast,
    Default,
    Expression,
    Interval,
    Literal,
    LiteralKind,
    Match,
    Name,
    Operation,
    ParameterMarker,
    Row,
    UserVariable,
)


def _sign(name: str) -> Callable[[Cursor], Expression | None]:
    def read(c: Cursor) -> Expression:
        at = c.start
        c.index += 1
        c.deeper(2)
        operand = read_expression(c, UNARY)
        c.depth -= 2
        return Operation(at, c.end, name, (operand,))

    return read


def _not_as_sign(c: Cursor) -> Expression | None:
    """NOT of sql_mode HIGH_NOT_PRECEDENCE."""
    return _sign("NOT")(c) if c.dialect.high_not_precedence else None


def _parameter(c: Cursor) -> Expression:
    at = c.start
    c.index += 1
    return ParameterMarker(at, at + 1)


def _oracle_parameter(c: Cursor) -> Expression:
    """`:name` and `:1` of sql_mode ORACLE; `:NEW.a` in its triggers is a name."""
    if not c.dialect.is_oracle:
        raise c.stop("an expression")
    at = c.start
    c.index += 1
    if c.kind in NAME_KINDS and c.word_ahead(1) == ".":
        name = c.grammar.name(c)
        name.at = at
        return name
    c.advance()
    return ParameterMarker(at, c.end)


def _odbc(c: Cursor) -> Expression:
    """`{d '2020-01-01'}`, `{fn NOW()}`."""
    at = c.start
    c.index += 1
    word = c.word
    c.identifier()
    c.deeper(2)
    value = read_expression(c)
    c.depth -= 2
    c.expect_operator("}")
    kind = _ODBC.get(word)
    if kind is not None and isinstance(value, Literal) and value.kind is LiteralKind.STRING:
        return Literal(at, c.end, kind)
    return value


_ODBC: Final = {"D": LiteralKind.DATE, "T": LiteralKind.TIME, "TS": LiteralKind.TIMESTAMP}


def _empty_variable(c: Cursor) -> Expression:
    """`@` without a name, which MySQL takes."""
    if not c.dialect.may_be_mysql:
        raise c.stop("an expression")
    at = c.start
    c.index += 1
    return UserVariable(at, at + 1, "")


def _dotted(c: Cursor) -> Expression:
    """`.t.a`: no database, which MariaDB takes."""
    if not c.dialect.may_be_mariadb:
        raise c.stop("an expression")
    at = c.start
    c.index += 1
    if c.word_ahead(1) != ".":
        raise c.stop("a column of a table")
    found = c.grammar.name(c)
    if not isinstance(found, Name) or len(found.parts) > 2:
        raise c.stop("a column of a table")
    found.at = at
    return found


_Reader = Callable[[Cursor], Expression | None]
SIGNS: Final[Mapping[str, _Reader]] = {
    "(": read_parentheses,
    "-": _sign("NEG"),
    "+": _sign("POS"),
    "~": _sign("~"),
    "!": _sign("NOT"),
    "?": _parameter,
    "{": _odbc,
    ":": _oracle_parameter,
    ".": _dotted,
    "@": _empty_variable,
}


# Words that begin an operand: None if here they are but names ---------------------------------


def _constant(kind: LiteralKind) -> _Reader:
    def read(c: Cursor) -> Expression:
        at = c.start
        end = at + len(c.texts[c.index])
        c.index += 1
        return Literal(at, end, kind)

    return read


def _time_literal(kind: LiteralKind) -> _Reader:
    def read(c: Cursor) -> Expression | None:
        index = c.index
        if c.kinds[index + 1] is not TokenKind.STRING:
            return None
        c.index = index + 2
        return Literal(c.starts[index], c.end, kind)

    return read


def _now(c: Cursor) -> Expression:
    """CURRENT_TIMESTAMP and the like: parentheses may follow, with a number of digits."""
    at = c.start
    name = c.texts[c.index]
    arguments: tuple[Expression, ...] = ()
    c.index += 1
    if c.accept("("):
        if c.word != ")":
            if name.upper() in ("CURRENT_DATE", "UTC_DATE", "CURRENT_USER", "CURRENT_ROLE"):
                raise c.stop(")")
            arguments = (read_digits(c),)
        c.expect_operator(")")
    return Call(at, c.end, name, arguments)


def _current_role(c: Cursor) -> Expression | None:
    """Without parentheses in MariaDB, where it is reserved."""
    return _now(c) if c.dialect.may_be_mariadb else None


def _sysdate(c: Cursor) -> Expression | None:
    """SYSDATE and ROWNUM of sql_mode ORACLE, without parentheses."""
    if c.word_ahead(1) == "(" or not c.dialect.is_oracle:
        return None
    return _now(c)


def _case(c: Cursor) -> Expression:
    at = c.start
    c.index += 1
    c.deeper(2)
    operand = None if c.word == "WHEN" else read_expression(c)
    branches = []
    c.expect("WHEN")
    while True:
        condition = read_expression(c)
        c.expect("THEN")
        branches.append((condition, read_expression(c)))
        if not c.accept("WHEN"):
            break
    otherwise = read_expression(c) if c.accept("ELSE") else None
    c.depth -= 2
    c.expect("END")
    return Case(at, c.end, operand, tuple(branches), otherwise)


def _cast(c: Cursor) -> Expression | None:
    index = c.index
    if c.words[index + 1] != "(" or not _is_side_by_side(c):
        return None
    at = c.start
    c.index = index + 2
    c.deeper(2)
    value = read_expression(c)
    if c.word == "AT" and c.dialect.has_mysql(8, 0, 22):
        c.index += 1
        c.expect("TIME", "ZONE")
        c.accept("INTERVAL")
        read_literal(c)
    c.expect("AS")
    kind = read_cast_type(c)
    is_array = c.dialect.has_mysql(8, 0, 17) and c.accept("ARRAY")
    c.depth -= 2
    c.expect_operator(")")
    return Cast(at, c.end, value, kind, is_array=is_array)


def _is_side_by_side(c: Cursor) -> bool:
    """True if the parenthesis stands right behind the current word."""
    index = c.index
    return c.starts[index] + len(c.texts[index]) == c.starts[index + 1] or c.dialect.ignore_space


def _convert(c: Cursor) -> Expression:
    at = c.start
    c.index += 1
    c.expect_operator("(")
    c.deeper(2)
    value = read_expression(c)
    c.depth -= 2
    if c.accept("USING"):
        found = Cast(at, at, value, charset=read_charset(c))
    else:
        c.expect_operator(",")
        found = Cast(at, at, value, read_cast_type(c))
    c.expect_operator(")")
    found.end = c.end
    return found


def _exists(c: Cursor) -> Expression:
    at = c.start
    c.index += 1
    c.deeper(2)
    query = read_subquery(c)
    c.depth -= 2
    return Operation(at, query.end, "EXISTS", (query,))


def _interval_before(c: Cursor) -> Expression:
    """INTERVAL 1 DAY + time."""
    found = read_interval_or_call(c)
    if isinstance(found, Interval) and c.word != "+":
        raise c.stop("+")
    return found


def _match(c: Cursor) -> Expression:
    at = c.start
    c.index += 1
    has_parenthesis = c.accept("(")
    columns = c.several(read_column)
    if has_parenthesis:
        c.expect_operator(")")
    c.expect("AGAINST")
    against = c.enclosed(_searched, 2)
    return Match(at, c.end, columns, against)


def _searched(c: Cursor) -> Expression:
    against = read_expression(c, BITS)
    if not c.accept("IN", "BOOLEAN", "MODE"):
        c.accept("IN", "NATURAL", "LANGUAGE", "MODE")
        c.accept("WITH", "QUERY", "EXPANSION")
    return against


def _default(c: Cursor) -> Expression | None:
    """DEFAULT(column); DEFAULT alone is a value in few places (`read_value`)."""
    if c.word_ahead(1) != "(":
        raise c.stop("an expression")
    at = c.start
    c.index += 1
    column = c.enclosed(read_column)
    return Default(at, c.end, column)


def _values(c: Cursor) -> Expression:
    """VALUES(column), and VALUE(column) of MariaDB."""
    at = c.start
    name = c.texts[c.index]
    c.index += 1
    column = c.enclosed(read_column)
    return Call(at, c.end, name, (column,))


def _values_in_query(c: Cursor) -> Expression:
    """VALUES(column) where a server has it."""
    if not c.has_new_values:
        raise c.stop("an expression")
    return _values(c)


def _value(c: Cursor) -> Expression | None:
    return _values(c) if c.word_ahead(1) == "(" and c.dialect.may_be_mariadb else None


def _row(c: Cursor) -> Expression | None:
    if c.word_ahead(1) != "(":
        return None
    at = c.start
    c.index += 1
    items = c.enclosed(read_items, 2)
    if len(items) == 1:
        raise c.stop("a row of several values")
    return Row(at, c.end, items)


def _binary(c: Cursor) -> Expression:
    return _sign("BINARY")(c)  # type: ignore[return-value]  # signs always begin something


def _sequence_value(c: Cursor) -> Expression | None:
    """NEXT VALUE FOR s and PREVIOUS VALUE FOR s of MariaDB."""
    if c.word_ahead(1) != "VALUE" or c.word_ahead(2) != "FOR" or not c.dialect.may_be_mariadb:
        return None
    at = c.start
    name = "NEXTVAL" if c.word == "NEXT" else "LASTVAL"
    c.index += 3
    call = Call(at, at, name, (read_column(c),))
    call.end = c.end
    return call


WORDS: Final[Mapping[str, _Reader]] = MappingProxyType(
    {
        "NULL": _constant(LiteralKind.NULL),
        "TRUE": _constant(LiteralKind.TRUE),
        "FALSE": _constant(LiteralKind.FALSE),
        "DATE": _time_literal(LiteralKind.DATE),
        "TIME": _time_literal(LiteralKind.TIME),
        "TIMESTAMP": _time_literal(LiteralKind.TIMESTAMP),
        **dict.fromkeys(
            (
                *("CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME"),
                *("LOCALTIMESTAMP", "UTC_DATE", "UTC_TIME", "UTC_TIMESTAMP", "CURRENT_USER"),
            ),
            _now,
        ),
        "CURRENT_ROLE": _current_role,
        "SYSDATE": _sysdate,
        "ROWNUM": _sysdate,
        "NOT": _not_as_sign,
        "BINARY": _binary,
        "CASE": _case,
        "CAST": _cast,
        "CONVERT": _convert,
        "EXISTS": _exists,
        "INTERVAL": _interval_before,
        "MATCH": _match,
        "DEFAULT": _default,
        "VALUES": _values_in_query,
        "VALUE": _value,
        "ROW": _row,
        "NEXT": _sequence_value,
        "PREVIOUS": _sequence_value,
    }
)
