"""Names with their qualifiers, and calls: those of functions with a grammar of their own, too.

Source: MySQL 9.7 and MariaDB 11.8, sql/sql_yacc.yy: function_call_keyword, function_call_nonkeyword,
function_call_conflict, function_call_generic, sum_expr, window.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from binlane.statements.sql.parser.cursor import Cursor
from binlane.statements.sql.parser.expressions import (
    BITS,
    SIMPLE_UNITS,
    UNARY,
    read_expression,
    read_interval_or_call,
    read_items,
    read_operators,
    read_order,
    read_unit,
)
from binlane.statements.sql.parser.literals import (
    read_cast_type,
    read_charset,
    read_digits,
    read_literal,
    read_run,
)
from binlane.statements.sql.parser.notation import Notation, TokenReader
from binlane.statements.sql.parser.notation_readers import Fields
from binlane.statements.sql.parser.reserved_words import (
    NEVER_CALLED,
    NEVER_CALLED_IN_MYSQL,
    argument_counts,
    words_of,
)
from binlane.statements.sql.tokens import TokenKind
from binlane.statements.sql.tree.expressions import (
    Call,
    Cast,
    Expression,
    Interval,
    Literal,
    Name,
    OrderItem,
    Star,
    WindowDefinition,
)

_FORM_CALLS: Final = 8
"""Calls that a function with a grammar of its own takes."""


def read_name(c: Cursor) -> Expression:
    """Read a name, or the call that begins with one."""
    index = c.index
    if c.kinds[index] is TokenKind.NAME and c.words[index + 1] == "(":
        return _call(c, c.words[index])
    return _path(c)


def _path(c: Cursor) -> Name | Call:
    """A name with its qualifiers, or the call of a stored function."""
    at = c.start
    is_quoted = c.kind is TokenKind.QUOTED_NAME
    parts = [c.any_name(may_be_empty=True) if is_quoted else c.identifier()]
    words = c.words
    while words[c.index] == ".":
        if len(parts) == 3:
            raise c.stop("a name of at most three parts")
        c.index += 1
        is_quoted = c.kind is TokenKind.QUOTED_NAME
        parts.append(c.identifier())
    following = words[c.index]
    if following == "(":
        if words[c.index + 1] == "+" and words[c.index + 2] == ")" and len(parts) > 1:
            return _outer_joined(c, Name(at, c.end, tuple(parts)))
        database = ".".join(parts[:-1]) if len(parts) > 1 else None
        call = _plain_call(c, at, parts[-1], has_aliases=database is None)
        call.database, call.is_quoted = database, is_quoted
        return call
    if c.dialect.is_oracle and len(parts) > 1 and (member := parts[-1].upper()) in _MEMBERS:
        end = c.starts[c.index - 2]
        return Call(at, c.end, _MEMBERS[member], (Name(at, end, tuple(parts[:-1])),))
    return Name(at, c.end, tuple(parts))


_MEMBERS: Final = {"NEXTVAL": "NEXTVAL", "CURRVAL": "LASTVAL"}


def _outer_joined(c: Cursor, name: Name) -> Name:
    """`a.b(+)` of sql_mode ORACLE."""
    if not c.dialect.has_mariadb(12, 1):
        raise c.stop("an expression")
    c.index += 3
    name.end = c.end
    return name


def _call(c: Cursor, word: str) -> Expression:
    """The call of a function whose name stands without quotes, and without a database."""
    index = c.index
    at = c.starts[index]
    name = c.texts[index]
    if (
        c.starts[index + 1] != at + len(name)
        and not c.dialect.ignore_space
        and (word in _NEED_NO_BLANK or (word in _WINDOWED_ALONE and not c.dialect.may_be_mysql))
    ):
        if word in c.reserved:
            raise c.stop("an expression")
        if c.words[index + 2] in ("*", "DISTINCT"):
            c.index += 2
            raise c.stop("an expression")
        c.index += 1
        return _plain_call(c, at, name, has_over=False)
    reader = _GRAMMARS.get(word)
    if reader is None or (reader is _dynamic_columns and not c.dialect.may_be_mariadb):
        if (word in c.reserved and word not in _RESERVED_FUNCTIONS) or _is_never_called(c, word):
            raise c.stop("an expression")
        c.index += 1
        counts = argument_counts(c.dialect).get(word)
        call = _plain_call(c, at, name, has_aliases=counts is None)
        if counts is not None and not counts[0] <= len(call.arguments) <= counts[1]:
            c.index -= 1
            raise c.stop("another number of arguments")
        if call.over is None and word in _ONLY_WINDOWED and c.dialect.flavor and word in c.reserved:
            raise c.stop("OVER")
        return call
    c.index += 2
    call = Call(at, at, name)
    c.deeper(_FORM_CALLS)
    reader(c, call)
    c.depth -= _FORM_CALLS
    c.expect_operator(")")
    call.end = c.end
    _read_over(c, call)
    return call


def _is_never_called(c: Cursor, word: str) -> bool:
    """True if a word that may be a name is none before a parenthesis."""
    if word == "PASSWORD" and not c.dialect.has_mysql(8, 0, 11):
        return False  # a function then
    return word in NEVER_CALLED or (word in NEVER_CALLED_IN_MYSQL and not c.dialect.may_be_mariadb)


def _plain_call(
    c: Cursor, at: int, name: str, *, has_aliases: bool = True, has_over: bool = True
) -> Call:
    """The arguments of a function without a grammar of its own, and OVER."""
    arguments = read_arguments(c, has_aliases=has_aliases)
    call = Call(at, c.starts[c.index - 1] + 1, name, arguments)
    if has_over and c.words[c.index] in _BEHIND_CALLS:
        _read_over(c, call)
    return call


def read_arguments(c: Cursor, *, has_aliases: bool = True) -> tuple[Expression, ...]:
    """Read arguments in parentheses, maybe none; with names, as loadable functions have them."""
    c.index += 1
    found: list[Expression] = []
    if c.words[c.index] != ")":
        c.deeper(3)
        while True:
            found.append(read_expression(c))
            while c.kinds[c.index] is TokenKind.LITERALS:
                found += read_run(c)
            word = c.words[c.index]
            if word not in _BEHIND_ARGUMENTS and has_aliases:
                _argument_alias(c)
            if c.words[c.index] != ",":
                break
            c.index += 1
        c.depth -= 3
    c.expect_operator(")")
    return tuple(found)


def _argument_alias(c: Cursor) -> None:
    """`f(a AS b)`, for loadable functions."""
    has_as = c.accept("AS")
    if c.kind is TokenKind.STRING:
        c.index += 1
    elif has_as or c.is_at_alias:
        c.identifier()


_BEHIND_ARGUMENTS: Final = frozenset((",", ")"))
_BEHIND_CALLS: Final = frozenset(("OVER", "WITHIN", "FROM", "RESPECT", "IGNORE"))


def _read_over(c: Cursor, call: Call) -> None:
    """Read the words that may stand behind a window function's or aggregate's arguments."""
    words = c.words
    if words[c.index] == "WITHIN" and words[c.index + 1] == "GROUP":
        if not c.dialect.has_mariadb(10, 3, 3):
            raise c.stop("an operator")
        c.index += 2
        call.order_by = c.enclosed(_order_by)
        call.end = c.end
    if c.dialect.has_mysql(8, 0):
        if call.upper_name == "NTH_VALUE" and words[c.index + 2] in ("OVER", "RESPECT", "IGNORE"):
            c.accept("FROM", "FIRST")
        if call.upper_name in _OF_ROWS:
            c.accept("RESPECT", "NULLS")
    elif not c.dialect.may_be_mariadb:
        return
    if words[c.index] != "OVER" or (
        call.upper_name not in _WINDOWED
        and (call.upper_name not in _WINDOWED_IN_MARIADB or not c.dialect.may_be_mariadb)
    ):
        return
    c.index += 1
    call.over = read_window(c) if c.word == "(" else c.identifier()
    call.end = c.end


def _order_by(c: Cursor) -> tuple[OrderItem, ...]:
    c.expect("ORDER", "BY")
    return read_order(c)


_OF_ROWS: Final = frozenset(("LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE", "NTH_VALUE"))
_WINDOWED: Final = frozenset(
    (
        *("SUM", "AVG", "MIN", "MAX", "COUNT", "BIT_AND", "BIT_OR", "BIT_XOR", "STD", "STDDEV"),
        *("STDDEV_POP", "STDDEV_SAMP", "VARIANCE", "VAR_POP", "VAR_SAMP", "ST_COLLECT"),
        *("JSON_ARRAYAGG", "JSON_OBJECTAGG", "GROUP_CONCAT", "ROW_NUMBER", "RANK", "DENSE_RANK"),
        *("PERCENT_RANK", "CUME_DIST", "NTILE", *_OF_ROWS),
    )
)
_ONLY_WINDOWED: Final = frozenset(
    ("ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST", "NTILE", *_OF_ROWS)
)
_WINDOWED_IN_MARIADB: Final = frozenset(("MEDIAN", "PERCENTILE_CONT", "PERCENTILE_DISC"))
_WINDOWED_ALONE: Final = _ONLY_WINDOWED | _WINDOWED_IN_MARIADB


def read_window(c: Cursor) -> WindowDefinition:
    """Read what stands behind OVER or WINDOW … AS, in parentheses."""
    at = c.start
    c.expect_operator("(")
    window = WindowDefinition(at, at)
    c.deeper(3)
    if c.is_at_name and c.word not in ("PARTITION", "RANGE", "ROWS", "GROUPS"):
        window.base = c.identifier()
    if c.accept("PARTITION"):
        c.expect("BY")
        window.partition_by = tuple(item.value for item in read_order(c))
    if c.accept("ORDER"):
        c.expect("BY")
        window.order_by = read_order(c)
    if c.accept_any(("ROWS", "RANGE", "GROUPS")):
        window.frame = _frame(c)
    c.depth -= 3
    c.expect_operator(")")
    window.end = c.end
    return window


def _frame(c: Cursor) -> tuple[Expression, ...]:
    found: list[Expression] = []
    if c.accept("BETWEEN"):
        _bound(c, found)
        c.expect("AND")
        _bound(c, found)
    else:
        _bound(c, found)
    if c.accept("EXCLUDE") and not (
        c.accept("CURRENT", "ROW") or c.accept("NO", "OTHERS") or c.accept_any(("GROUP", "TIES"))
    ):
        raise c.stop("what is excluded")
    return tuple(found)


def _bound(c: Cursor, found: list[Expression]) -> None:
    if c.accept("CURRENT", "ROW"):
        return
    if not c.accept("UNBOUNDED"):
        if c.word == "INTERVAL" and c.dialect.may_be_mysql:
            found.append(read_interval_or_call(c))
        else:
            found.append(read_expression(c, BITS))
    c.expect_any(("PRECEDING", "FOLLOWING"))


# Functions with a grammar of their own: at what stands in their parentheses -------------------

_FORMS: Final = """
aggregate = [ALL] arguments:expression
distinct_aggregate = [ALL | words:DISTINCT] arguments:expression
COUNT = arguments:star | words:DISTINCT items:items | [ALL] arguments:expression
JSON_ARRAYAGG = joined @mariadb | arguments:expression @!mariadb
joined = [words:DISTINCT] items:items [ORDER BY order_by:order]
  [words:SEPARATOR separator:literal] [LIMIT arguments:limit [{, | OFFSET} arguments:limit] @mariadb]
JSON_OBJECTAGG = arguments:expression , arguments:expression
now = [arguments:digits]
EXTRACT = words:unit FROM arguments:expression
trim = words:{LEADING | TRAILING | BOTH} {
      FROM arguments:expression | arguments:expression FROM arguments:expression }
  | arguments:expression [FROM arguments:expression]
POSITION = arguments:value IN arguments:expression
substring = arguments:expression {
    FROM arguments:expression [FOR arguments:expression]
  | , arguments:expression [, arguments:expression] }
CHAR = items:items [words:USING words:charset]
GET_FORMAT = words:{DATE | TIME | DATETIME | TIMESTAMP} , arguments:expression
timestamp = words:simple_unit , arguments:expression , arguments:expression
date_add = arguments:expression , arguments:interval
add_date = arguments:expression , arguments:interval_or_days
WEIGHT_STRING = items:items [words:AS words:{CHAR | BINARY} ( literal )] [LEVEL level [levels ...]]
levels = {, | -} level
level = literal [direction ...]
direction = ASC | DESC | REVERSE
JSON_DUALITY_OBJECT = [WITH ( tags )] {arguments:expression : arguments:expression}, ...
"""


def _simple_unit(c: Cursor) -> str:
    word = c.word.removeprefix("SQL_TSI_")
    if word not in SIMPLE_UNITS and word != "FRAC_SECOND":
        raise c.stop("a unit")
    c.index += 1
    return word


def _interval_or_days(c: Cursor) -> Expression:
    if c.word != "INTERVAL":
        return read_expression(c)
    found = read_interval_or_call(c)
    return found if isinstance(found, Interval) else read_operators(c, found, 0, found.at)


def _interval(c: Cursor) -> Expression:
    found = _interval_or_days(c)
    if not isinstance(found, Interval):
        raise c.stop("INTERVAL")
    return found


def _star(c: Cursor) -> Star:
    at = c.start
    c.expect("*")
    return Star(at, c.end)


def _tags(c: Cursor) -> None:
    while c.word != ")" and not c.is_at_end:
        c.advance()


_READERS: Final[Mapping[str, TokenReader]] = {
    "charset": TokenReader(lambda c: read_charset(c).upper(), "a character set"),
    "digits": TokenReader(read_digits, "a number", lambda c: c.word != ")"),
    "expression": TokenReader(read_expression, "an expression"),
    "interval": TokenReader(_interval, "INTERVAL"),
    "interval_or_days": TokenReader(_interval_or_days, "an expression"),
    "items": TokenReader(read_items, "an expression"),
    "limit": TokenReader(lambda c: read_expression(c, UNARY), "a number"),
    "literal": TokenReader(read_literal, "a literal"),
    "order": TokenReader(read_order, "an expression"),
    "simple_unit": TokenReader(_simple_unit, "a unit"),
    "star": TokenReader(_star, "*", lambda c: c.word == "*"),
    "tags": TokenReader(_tags, "tags"),
    "unit": TokenReader(read_unit, "a unit of time"),
    "value": TokenReader(lambda c: read_expression(c, BITS), "an expression"),
}
_NOTATION: Final = Notation((_FORMS,), _READERS, {})


def _by_form(c: Cursor, call: Call) -> None:
    """Read the arguments and words of a call with a form of its own."""
    found: Fields = {}
    _NOTATION.of(c.dialect).rule(_RULES.get(call.upper_name, call.upper_name)).read(c, found)
    call.arguments = (*found.get("arguments", ()), *(found["items"][0] if "items" in found else ()))
    call.words = tuple(found.get("words", ()))
    if "order_by" in found:
        call.order_by = found["order_by"][0]
    if "separator" in found:
        call.separator = found["separator"][0]


_RULES: Final = {
    **dict.fromkeys(("SUM", "AVG", "MIN", "MAX", "ST_COLLECT"), "distinct_aggregate"),
    **dict.fromkeys(
        (
            *("BIT_AND", "BIT_OR", "BIT_XOR", "STD", "STDDEV", "STDDEV_POP", "STDDEV_SAMP"),
            *("VARIANCE", "VAR_POP", "VAR_SAMP"),
        ),
        "aggregate",
    ),
    "GROUP_CONCAT": "joined",
    **dict.fromkeys(("NOW", "CURTIME", "SYSDATE"), "now"),
    **dict.fromkeys(("TRIM", "TRIM_ORACLE"), "trim"),
    **dict.fromkeys(("SUBSTRING", "SUBSTR", "MID"), "substring"),
    **dict.fromkeys(("TIMESTAMPADD", "TIMESTAMPDIFF"), "timestamp"),
    **dict.fromkeys(("DATE_ADD", "DATE_SUB"), "date_add"),
    **dict.fromkeys(("ADDDATE", "SUBDATE"), "add_date"),
}
"""The forms of functions that have no form by their own name."""


def _json_value(c: Cursor, call: Call) -> None:
    arguments = list(read_items(c))
    if c.dialect.may_be_mysql:
        if not c.dialect.flavor and c.word == ")":
            call.arguments = tuple(arguments)
            return
        if len(arguments) != 2 or not isinstance(arguments[1], Literal):
            raise c.stop("a document and a path")
        if c.accept("RETURNING"):
            at = c.start
            kind = read_cast_type(c)
            arguments[0] = Cast(at, c.end, arguments[0], kind)
            call.words = ("RETURNING",)
        read_on_empty_or_error(c)
    call.arguments = tuple(arguments)


def read_on_empty_or_error(c: Cursor) -> None:
    """Read NULL ON EMPTY, DEFAULT … ON ERROR and the like."""
    while True:
        if c.word in ("NULL", "ERROR") and c.word_ahead(1) == "ON":
            c.index += 2
        elif c.word == "DEFAULT":
            c.index += 1
            read_expression(c, UNARY)
            c.expect("ON")
        else:
            return
        c.expect_any(("EMPTY", "ERROR"))


def _dynamic_columns(c: Cursor, call: Call) -> None:
    """COLUMN_CREATE, COLUMN_ADD, COLUMN_GET of MariaDB: `value AS type`."""
    arguments = []
    while c.word != ")":
        value_at = c.start
        value = read_expression(c)
        if c.accept("AS"):
            kind = read_cast_type(c)
            value = Cast(value_at, c.end, value, kind)
        arguments.append(value)
        if not c.accept(","):
            break
    if len(arguments) % 2 != (call.upper_name == "COLUMN_ADD") and call.upper_name != "COLUMN_GET":
        raise c.stop("pairs of names and values")
    call.arguments = tuple(arguments)


_GRAMMARS: Final[Mapping[str, Callable[[Cursor, Call], None]]] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                *_RULES,
                *(
                    "COUNT",
                    "JSON_ARRAYAGG",
                    "JSON_OBJECTAGG",
                    "EXTRACT",
                    "POSITION",
                ),
                *("CHAR", "GET_FORMAT", "WEIGHT_STRING", "JSON_DUALITY_OBJECT"),
            ),
            _by_form,
        ),
        "JSON_VALUE": _json_value,
        **dict.fromkeys(("COLUMN_CREATE", "COLUMN_ADD", "COLUMN_GET"), _dynamic_columns),
    }
)
_NEED_NO_BLANK: Final = words_of("""
    ADDDATE BIT_AND BIT_OR BIT_XOR CAST COUNT CURDATE CURTIME DATE_ADD DATE_SUB EXTRACT GROUP_CONCAT
    MAX MID MIN NOW POSITION STD STDDEV STDDEV_POP STDDEV_SAMP SUBDATE SUBSTR SUBSTRING SUM SYSDATE
    TRIM VARIANCE VAR_POP VAR_SAMP JSON_ARRAYAGG JSON_OBJECTAGG
    """)
"""Functions whose name and parenthesis must stand side by side without sql_mode IGNORE_SPACE."""
_RESERVED_FUNCTIONS: Final = words_of("""
    IF LEFT RIGHT REPLACE INSERT REPEAT MOD DATABASE SCHEMA CUME_DIST DENSE_RANK FIRST_VALUE GROUPING
    LAG LAST_VALUE LEAD NTH_VALUE NTILE PERCENT_RANK RANK ROW_NUMBER
    """)
"""Reserved words that are functions before a parenthesis, without a grammar of their own."""
