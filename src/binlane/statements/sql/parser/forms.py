"""The grammar of all statements whose tree holds little: its readers, nodes and entry.

The texts are in `definition_forms` and `session_forms`; what their rules name in small letters and
that is no rule is here: what is read by hand, and what makes nodes of parts that lie otherwise in
the text than in the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from binlane.statements.sql.parser.cursor import Cursor, Stopped
from binlane.statements.sql.parser.definition_forms import OBJECTS, TABLES
from binlane.statements.sql.parser.expressions import (
    read_expression,
    read_interval_or_call,
    read_unit,
    read_value,
)
from binlane.statements.sql.parser.form_makers import MAKERS, defined_body
from binlane.statements.sql.parser.literals import (
    number_kind,
    read_column,
    read_object_name,
    read_user_variable,
)
from binlane.statements.sql.parser.notation import Notation, Reader
from binlane.statements.sql.parser.queries import read_limit, read_query
from binlane.statements.sql.parser.reserved_words import words_of
from binlane.statements.sql.parser.session_forms import ADMINISTRATION, PROGRAMS, TRANSACTIONS
from binlane.statements.sql.parser.types import (
    charset_name,
    collation_name,
    read_column_type,
    read_type,
)
from binlane.statements.sql.tokens import NAME_KINDS, TokenKind
from binlane.statements.sql.tree.expressions import (
    Call,
    Expression,
    Literal,
    LiteralKind,
    Name,
    Node,
    ObjectName,
    Operation,
    UserVariable,
)

_QUERY_WORDS: Final = ("SELECT", "WITH", "VALUES", "TABLE")
_NOW: Final = frozenset({"NOW", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"})
_NO_ENGINE_OPTIONS: Final = words_of("""
    ALGORITHM AUTOEXTEND_SIZE AUTO_INCREMENT AVG_ROW_LENGTH CHARSET CHECKSUM COLLATE COMMENT
    CONNECTION DATA DEFAULT DELAY_KEY_WRITE ENGINE INDEX INSERT_METHOD KEY_BLOCK_SIZE LOCK MAX_ROWS
    MIN_ROWS PACK_KEYS PAGE_CHECKSUM PASSWORD ROW_FORMAT SEQUENCE STATS_AUTO_RECALC STATS_PERSISTENT
    STATS_SAMPLE_PAGES STORAGE TABLESPACE TABLE_CHECKSUM TRANSACTIONAL TYPE UNION
    """)
"""Words of MariaDB's grammar, which therefore name no option of an engine."""
_EXPLAINED: Final = ("SELECT", "WITH", "INSERT", "REPLACE", "UPDATE", "DELETE", "(")
_OPERAND: Final = 99
"""Binds more tightly than any operator: COLLATE behind a default value is the column's."""


def read_statement(cursor: Cursor) -> Node:
    """Read a statement by the rule of its first word.

    Raises:
        Stopped: Where the text is not what the rule says.
    """
    word = cursor.word
    if word not in GRAMMAR.names:
        raise cursor.stop("a statement")
    node: Node = read_rule(cursor, word)
    return node


def read_rule(cursor: Cursor, name: str) -> Any:
    """Read what a rule says, and give its node; errors as of `read_statement`."""
    return GRAMMAR.of(cursor.dialect).rule(name).node(cursor)


# Numbers, strings, names -----------------------------------------------------------------------


def string(cursor: Cursor) -> Literal:
    """Read a string."""
    at = cursor.start
    _text(cursor)
    return Literal(at, cursor.end, LiteralKind.STRING)


def _text(cursor: Cursor) -> str:
    """A string's value; one with the sign of a character set is none here."""
    if cursor.texts[cursor.index][:1] in {"n", "N"}:
        raise cursor.stop("a string")
    return cursor.string()


def number(cursor: Cursor) -> int:
    """Read a whole number without a sign."""
    text = cursor.texts[cursor.index]
    if cursor.kind is not TokenKind.NUMBER or not text.isdecimal():
        raise cursor.stop("a number")
    cursor.index += 1
    return int(text)


def _signed(cursor: Cursor) -> int:
    sign = cursor.accept_any(("-", "+"))
    return -number(cursor) if sign == "-" else number(cursor)


def _digits(cursor: Cursor) -> str:
    text = cursor.texts[cursor.index]
    if cursor.kind is not TokenKind.NUMBER or text[:1] not in "0123456789.":
        raise cursor.stop("a number")
    if text[:2] in {"0x", "0b"}:
        raise cursor.stop("a number")
    return cursor.advance().text


def _one_of(*texts: str) -> Callable[[Cursor], str]:
    def read(cursor: Cursor) -> str:
        if cursor.texts[cursor.index].upper() not in texts or cursor.kind is TokenKind.QUOTED_NAME:
            raise cursor.stop(" or ".join(texts))
        return cursor.advance().text

    return read


def _size(cursor: Cursor) -> str:
    """A size such as `4M`."""
    token = cursor.token
    if not token.text.rstrip("kKmMgG").isdecimal() or token.kind is TokenKind.STRING:
        raise cursor.stop("a size")
    return cursor.advance().text


def name_or_text(cursor: Cursor) -> str:
    """Read a name, or a string that says one."""
    return cursor.string() if cursor.kind is TokenKind.STRING else cursor.identifier()


def _alone(read: Callable[[Cursor], str]) -> Callable[[Cursor], ObjectName]:
    """Reads the name of an object that stands in no database."""

    def read_name(cursor: Cursor) -> ObjectName:
        at = cursor.start
        name = read(cursor)
        return ObjectName(at, cursor.end, None, name)

    return read_name


def _column_name(cursor: Cursor) -> str:
    """A column's name; MariaDB takes its table's before it."""
    name = cursor.identifier()
    if cursor.dialect.may_be_mariadb:
        while cursor.accept_operator("."):
            name = cursor.identifier()
    return name


def _name_value(cursor: Cursor) -> Name:
    at = cursor.start
    name = cursor.identifier()
    return Name(at, cursor.end, (name,))


def _rest(cursor: Cursor) -> None:
    while not cursor.is_at_end:
        cursor.advance()


# Values and options ------------------------------------------------------------------------------


def _is_at_engine_option(cursor: Cursor) -> bool:
    """True if `name = value` comes next, which MariaDB leaves to the engine."""
    return (
        cursor.kinds[cursor.index] in NAME_KINDS
        and cursor.words[cursor.index + 1] == "="
        and cursor.words[cursor.index] not in _NO_ENGINE_OPTIONS
    )


def _engine_value(cursor: Cursor) -> str:
    is_value = cursor.is_at_name or cursor.kind in {TokenKind.STRING, TokenKind.NUMBER}
    if not is_value and cursor.word != "DEFAULT":
        raise cursor.stop("a value")
    return cursor.advance().value


def _default_value(cursor: Cursor) -> Expression:
    """Read the value behind DEFAULT: a literal with its sign, a call, or `(expression)`."""
    dialect = cursor.dialect
    start = cursor.token
    if start.text in {"+", "-"}:
        return _signed_number(cursor)
    if start.text == "(" and start.kind is TokenKind.OPERATOR:
        if not (dialect.may_be_mariadb or dialect.has_mysql(8, 0, 13)):
            raise cursor.stop("a literal")
        cursor.advance()
        value = read_expression(cursor)
        cursor.expect_operator(")")
        return value
    if start.text in {"!", "~"} or start.word in {"BINARY", "EXISTS", "ROW"}:
        raise cursor.stop("a default value")
    if dialect.may_be_mariadb:
        return _simple_value(cursor)
    if start.word in _NOW:
        return _now(cursor)
    literal = read_expression(cursor, _OPERAND) if start.text != "{" else None
    if not isinstance(literal, Literal):
        raise Stopped(start, "a literal")
    return literal


def _simple_value(cursor: Cursor) -> Expression:
    """A default value of MariaDB without parentheses, in which no operator stands."""
    start = cursor.token
    if start.word != "INTERVAL":
        return read_expression(cursor, _OPERAND)
    value = read_interval_or_call(cursor)
    if not isinstance(value, Call):
        raise Stopped(start, "a default value")
    return value


def _signed_number(cursor: Cursor) -> Expression:
    start = cursor.token
    cursor.advance()
    if cursor.kind is not TokenKind.NUMBER or cursor.token.text[:1] not in "0123456789.":
        raise cursor.stop("a number")
    if cursor.token.text[:2].lower() in {"0x", "0b"}:
        raise cursor.stop("a number")
    value = read_expression(cursor, _OPERAND)
    operator = "NEG" if start.text == "-" else "POS"
    return Operation(start.offset, value.end, operator, (value,))


def _now(cursor: Cursor) -> Expression:
    """CURRENT_TIMESTAMP and its like; ON UPDATE of MariaDB 11.8 takes no LOCALTIME."""
    start = cursor.token
    dialect = cursor.dialect
    is_new = dialect.flavor == "mariadb" and dialect.version >= (11, 8)
    if cursor.word not in _NOW or (is_new and cursor.word.startswith("LOCALTIME")):
        raise cursor.stop("CURRENT_TIMESTAMP")
    value = read_expression(cursor, _OPERAND)
    if not isinstance(value, Call):
        raise Stopped(start, "CURRENT_TIMESTAMP")
    return value


# Statements of sessions ---------------------------------------------------------------------------


def read_condition(cursor: Cursor) -> str:
    """Read SQLSTATE, or the name of a condition."""
    if cursor.accept("SQLSTATE"):
        cursor.accept("VALUE")
        return f"SQLSTATE {cursor.string()}"
    return cursor.identifier()


def read_handled(cursor: Cursor) -> str:
    """Read what a handler is for: a condition, several of them, or an error's number."""
    if cursor.accept("NOT", "FOUND"):
        return "NOT FOUND"
    if word := cursor.accept_any(("SQLEXCEPTION", "SQLWARNING", "OTHERS")):
        return word
    if cursor.kind is TokenKind.NUMBER:
        return cursor.advance().text
    return read_condition(cursor)


def read_variable(cursor: Cursor) -> Name | UserVariable:
    """Read what a value goes into: `@name`, a local variable, a field of one."""
    token = cursor.token
    if token.kind is TokenKind.USER_VARIABLE:
        return read_user_variable(cursor)
    parts = [cursor.identifier()]
    while cursor.accept_operator("."):
        parts.append(cursor.identifier())
    return Name(token.offset, cursor.end, tuple(parts))


def _literal(*, is_number: bool) -> Callable[[Cursor], Literal]:
    """Reads a part of an XA identifier: a string, hexadecimal or bits, or a number."""

    def read(cursor: Cursor) -> Literal:
        token = cursor.token
        kind = LiteralKind.STRING
        if token.kind is TokenKind.NUMBER:
            kind = number_kind(token.text)
        elif is_number or token.kind is not TokenKind.STRING:
            raise cursor.stop("a number" if is_number else "a string")
        if kind is LiteralKind.NUMBER and not is_number:
            raise cursor.stop("a string")
        cursor.advance()
        return Literal(token.offset, token.end, kind)

    return read


def _prepared(*kinds: TokenKind, expected: str) -> Callable[[Cursor], Expression]:
    """Reads what PREPARE and EXECUTE take: of MariaDB any expression, of MySQL some tokens."""

    def read(cursor: Cursor) -> Expression:
        if not cursor.dialect.has_mariadb(10, 2) and cursor.kind not in kinds:
            raise cursor.stop(expected)
        return read_expression(cursor)

    return read


def _used(cursor: Cursor) -> Expression:
    """Reads a value of USING; MariaDB takes DEFAULT and IGNORE, too."""
    if cursor.dialect.has_mariadb(10, 2):
        return read_value(cursor)
    return _prepared(TokenKind.USER_VARIABLE, expected="a variable")(cursor)


def _is_immediate(cursor: Cursor) -> bool:
    """True if EXECUTE IMMEDIATE has a text to execute; else IMMEDIATE is a name."""
    return (
        cursor.word == "IMMEDIATE"
        and cursor.ahead(1).kind is not TokenKind.END
        and cursor.word_ahead(1) not in {"USING", ";"}
    )


def _signal_value(cursor: Cursor) -> Expression:
    """A value of SIGNAL, in which no operator stands; MariaDB takes calls."""
    if cursor.word in {"-", "+", "!", "~", "("}:
        raise cursor.stop("a value")
    start = cursor.token
    value = read_expression(cursor, _OPERAND)
    if isinstance(value, Call) and not cursor.dialect.may_be_mariadb:
        raise Stopped(start, "a literal or variable")
    return value


def _is_explained(cursor: Cursor) -> bool:
    return cursor.word in _EXPLAINED or (
        cursor.word in {"TABLE", "VALUES"} and cursor.dialect.may_be_mysql
    )


# Looks at the next words, without reading them ---------------------------------------------------


def _opens_query(cursor: Cursor) -> bool:
    count = 0
    while cursor.word_ahead(count) == "(":
        count += 1
    return cursor.word_ahead(count) in _QUERY_WORDS


def _is_no_reference(cursor: Cursor) -> bool:
    """True if a check comes next, and not MariaDB's CONSTRAINT … REFERENCES."""
    if cursor.word == "CONSTRAINT" and cursor.dialect.flavor != "mysql":
        return "REFERENCES" not in {cursor.word_ahead(1), cursor.word_ahead(2)}
    return cursor.word in {"CHECK", "CONSTRAINT"}


def _no_period(cursor: Cursor) -> None:
    """MariaDB takes PERIOD and SYSTEM for no column unless COLUMN stands before them."""
    has_word = cursor.words[cursor.index - 1] == "COLUMN"
    if not has_word and cursor.dialect.flavor == "mariadb" and cursor.word in {"PERIOD", "SYSTEM"}:
        raise cursor.stop("a column")


def _may_be_column(cursor: Cursor) -> bool:
    return cursor.is_at_name or cursor.word in {"(", "IF"}


def _nothing(_: Cursor) -> None:
    """Reads nothing: what matters is whether it begins."""


def _is_name(cursor: Cursor) -> bool:
    return cursor.is_at_name


def _is_string(cursor: Cursor) -> bool:
    return cursor.kinds[cursor.index] is TokenKind.STRING


def _is_number(cursor: Cursor) -> bool:
    return cursor.kinds[cursor.index] is TokenKind.NUMBER


def _is_signed(cursor: Cursor) -> bool:
    return cursor.words[cursor.index] in {"-", "+"} or _is_number(cursor)


def _is_name_or_text(cursor: Cursor) -> bool:
    return cursor.is_at_name or _is_string(cursor)


def _is_account(cursor: Cursor) -> bool:
    return _is_name_or_text(cursor) or cursor.word in {"CURRENT_USER", "CURRENT_ROLE"}


def _is_condition(cursor: Cursor) -> bool:
    return cursor.is_at_name or cursor.word == "SQLSTATE"


def _is_object(cursor: Cursor) -> bool:
    return cursor.is_at_name or cursor.word == "."


# All of it ---------------------------------------------------------------------------------------

_READERS: Final[Mapping[str, Reader]] = {
    "account": Reader(lambda cursor: cursor.grammar.account(cursor), "an account", _is_account),
    "bytes": Reader(_literal(is_number=False), "a string"),
    "body": Reader(defined_body, "a statement"),
    "charset_name": Reader(charset_name, "a character set"),
    "collation_name": Reader(collation_name, "a collation"),
    "column_name": Reader(_column_name, "a name", _is_name),
    "column_name_value": Reader(_name_value, "a name", _is_name),
    "column_reference": Reader(read_column, "a column"),
    "column_type": Reader(read_column_type, "a type"),
    "columns_next": Reader(_nothing, "(", lambda c: c.word == "(" and not _opens_query(c)),
    "condition": Reader(read_condition, "a condition", _is_condition),
    "database_name": Reader(Cursor.object_identifier, "a name", _is_name),
    "database": Reader(_alone(Cursor.object_identifier), "a name", _is_name),
    "default_value": Reader(_default_value, "a default value"),
    "digits": Reader(_digits, "a number", _is_number),
    "engine_value": Reader(_engine_value, "a value"),
    "engine_word": Reader(lambda c: c.advance().value.upper(), "an option", _is_at_engine_option),
    "explainable": Reader(lambda c: c.grammar.statement(c), "a statement", _is_explained),
    "expression": Reader(read_expression, "an expression"),
    "format": Reader(_literal(is_number=True), "a number"),
    "handled": Reader(read_handled, "a condition"),
    "immediate_next": Reader(_nothing, "IMMEDIATE", _is_immediate),
    "limit": Reader(read_limit, "LIMIT", lambda cursor: cursor.word == "LIMIT"),
    "name": Reader(Cursor.identifier, "a name", _is_name),
    "name_or_text": Reader(name_or_text, "a name", _is_name_or_text),
    "named": Reader(_alone(name_or_text), "a name", _is_name_or_text),
    "no": Reader(lambda _: False, "nothing"),
    "no_period": Reader(_no_period, "a column", _may_be_column),
    "no_reference": Reader(_nothing, "CHECK", _is_no_reference),
    "none": Reader(lambda _: None, "nothing"),
    "nothing_more": Reader(_nothing, "the end", lambda c: c.is_at_end or c.word == ";"),
    "now": Reader(_now, "CURRENT_TIMESTAMP"),
    "number": Reader(number, "a number", _is_number),
    "object": Reader(read_object_name, "a name", _is_object),
    "one_or_two": Reader(_one_of("1", "2"), "1 or 2"),
    "own_type": Reader(lambda cursor: read_type(cursor, may_refer=False), "a type"),
    "used": Reader(_used, "a parameter"),
    "prepared": Reader(
        _prepared(*(TokenKind.STRING, TokenKind.USER_VARIABLE), expected="a string or a variable"),
        "a string or a variable",
    ),
    "query": Reader(read_query, "a query", _opens_query),
    "rest": Reader(_rest, "anything"),
    "signal_value": Reader(_signal_value, "a value"),
    "signed": Reader(_signed, "a number", _is_signed),
    "single": Reader(_alone(Cursor.identifier), "a name", _is_name),
    "size": Reader(_size, "a size"),
    "string": Reader(string, "a string", _is_string),
    "ternary": Reader(_one_of("0", "1", "DEFAULT"), "0, 1 or DEFAULT"),
    "text": Reader(_text, "a string", _is_string),
    "type": Reader(read_type, "a type"),
    "unit": Reader(read_unit, "a unit of time"),
    "user_variable": Reader(
        read_user_variable, "a user variable", lambda c: c.kind is TokenKind.USER_VARIABLE
    ),
    "variable": Reader(read_variable, "a variable"),
    "zero": Reader(lambda _: 0, "nothing"),
}
GRAMMAR: Final = Notation(
    (OBJECTS, TABLES, TRANSACTIONS, PROGRAMS, ADMINISTRATION), _READERS, MAKERS
)
