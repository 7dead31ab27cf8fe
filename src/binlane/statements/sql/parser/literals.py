"""Literals, variables, names and types of CAST: what has no expression inside.

Many literals, or rows of them, that stand as one token are read when they are asked for.

Source: MySQL 9.7 and MariaDB 11.8, sql/sql_yacc.yy: literal, variable, simple_ident, cast_type.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar, overload

from binlane.statements.sql.parser.cursor import Cursor
from binlane.statements.sql.parser.reserved_words import words_of
from binlane.statements.sql.tokens import TokenKind, literal_pattern, quoted_name
from binlane.statements.sql.tree.expressions import (
    DataType,
    Literal,
    LiteralKind,
    Name,
    ObjectName,
    Operation,
    Row,
    SystemVariable,
    UserVariable,
    told,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from binlane.statements.sql.servers import Dialect
    from binlane.statements.sql.tree.expressions import Expression

_T = TypeVar("_T", bound="Expression")
_WORDS: Final = {"N": LiteralKind.NULL, "T": LiteralKind.TRUE, "F": LiteralKind.FALSE}


class _Later(Sequence["_T"]):
    """Items that are made while they are gone through."""

    __slots__ = ("_length",)

    def __init__(self) -> None:
        self._length = -1

    def __len__(self) -> int:
        if self._length < 0:
            self._length = self._count()
        return self._length

    @abstractmethod
    def _count(self) -> int: ...

    @abstractmethod
    def __iter__(self) -> Iterator[_T]: ...

    @overload
    def __getitem__(self, index: int) -> _T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[_T]: ...
    def __getitem__(self, index: int | slice) -> _T | Sequence[_T]:
        if isinstance(index, slice):
            return tuple(islice(self, *index.indices(len(self))))
        for item in islice(self, index if index >= 0 else index + len(self), None):
            return item
        raise IndexError(index)


class Items(_Later[_T]):
    """Several sequences as one."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Sequence[Sequence[_T]]) -> None:
        super().__init__()
        self._parts = [part for part in parts if part]

    def _count(self) -> int:
        return sum(map(len, self._parts))

    def __bool__(self) -> bool:
        return bool(self._parts)

    def __iter__(self) -> Iterator[_T]:
        for part in self._parts:
            yield from part

    @property
    def told(self) -> Sequence[_T]:
        """Give the items that do not stand in one token with others."""
        own = (() if isinstance(part, _Run) else told(part) for part in self._parts)
        return [item for items in own for item in items]


class _Run(_Later[_T]):
    """Items that stand together in one token."""

    __slots__ = ("_at", "_make", "_pattern", "_text")

    def __init__(
        self, text: str, at: int, pattern: re.Pattern[str], make: Callable[[re.Match[str], int], _T]
    ) -> None:
        super().__init__()
        self._text = text
        self._at = at
        self._pattern = pattern
        self._make = make

    def _count(self) -> int:
        return sum(1 for _ in self._pattern.finditer(self._text))

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[_T]:
        make, at = self._make, self._at
        return (make(found, at) for found in self._pattern.finditer(self._text))


@cache
def _literals(dialect: Dialect) -> re.Pattern[str]:
    return re.compile(rf"[,(]\s*+({literal_pattern(dialect)})", re.VERBOSE | re.DOTALL)


@cache
def _rows(dialect: Dialect) -> re.Pattern[str]:
    literal = literal_pattern(dialect)
    return re.compile(
        rf",\s*+(\(\s*+{literal}\s*+(?:,\s*+{literal}\s*+|(?!))*+\))", re.VERBOSE | re.DOTALL
    )


def _literal(found: re.Match[str], at: int) -> Expression:
    text = found[1]
    start, end = at + found.start(1), at + found.end(1)
    first = text[0]
    if first in "-+":
        number = Literal(start + 1, end, LiteralKind.NUMBER)
        return Operation(start, end, "NEG" if first == "-" else "POS", (number,))
    if first.isdigit():
        is_hex = text[1:2] in ("x", "X")
        return Literal(start, end, LiteralKind.HEX if is_hex else LiteralKind.NUMBER)
    if first in "'\"":
        return Literal(start, end, LiteralKind.STRING)
    if first == "_":
        quote = min(place for place in map(text.find, "'\" ") if place > 0)
        return Literal(start, end, LiteralKind.STRING, text[1:quote].lower())
    if text[1] in "'\"":
        kinds = {"x": LiteralKind.HEX, "b": LiteralKind.BIT}
        kind = kinds.get(first.lower(), LiteralKind.STRING)
        return Literal(start, end, kind, "n" if kind is LiteralKind.STRING else "")
    return Literal(start, end, _WORDS[first.upper()])


def read_run(c: Cursor) -> Sequence[Expression]:
    """Read a LITERALS token."""
    c.index += 1
    return _Run(c.texts[c.index - 1], c.starts[c.index - 1], _literals(c.dialect), _literal)


def read_rows_run(c: Cursor) -> Sequence[Row]:
    """Read a ROWS token."""
    pattern = _literals(c.dialect)

    def row(found: re.Match[str], at: int) -> Row:
        start = found.start(1)
        items = tuple(_literal(each, at + start) for each in pattern.finditer(found[1]))
        return Row(at + start, at + found.end(1), items)

    c.index += 1
    return _Run(c.texts[c.index - 1], c.starts[c.index - 1], _rows(c.dialect), row)


INTRODUCED: Final = (TokenKind.STRING, TokenKind.NUMBER)


def number_kind(text: str) -> LiteralKind:
    """Give the kind of a NUMBER token: NUMBER, HEX or BIT."""
    second = text[1:2]
    if second in ("x", "X", "b", "B", "'"):
        first = text[0]
        if second == "x" or first in "xX":
            return LiteralKind.HEX
        if second == "b" or first in "bB":
            return LiteralKind.BIT
    return LiteralKind.NUMBER


def read_literal(c: Cursor) -> Literal:
    """Read a string or number without a sign.

    Raises:
        Stopped: If no literal comes next.
    """
    kind = c.kinds[c.index]
    if kind is TokenKind.STRING:
        return read_string(c)
    if kind is TokenKind.NUMBER:
        at, text = c.start, c.texts[c.index]
        c.index += 1
        return Literal(at, at + len(text), number_kind(text))
    raise c.stop("a literal")


def read_string(c: Cursor) -> Literal:
    """A string, or several side by side, which are one."""
    index = c.index
    at = c.starts[index]
    introducer = "n" if c.texts[index][0] in "nN" else ""
    kinds = c.kinds
    index += 1
    while kinds[index] is TokenKind.STRING and c.texts[index][0] not in "nN":
        index += 1
    c.index = index
    index -= 1
    return Literal(at, c.starts[index] + len(c.texts[index]), LiteralKind.STRING, introducer)


def read_introduced(c: Cursor) -> Literal:
    """A literal with its character set before it."""
    at = c.start
    introducer = c.texts[c.index][1:].lower()
    c.index += 1
    literal = read_literal(c)
    if literal.kind is LiteralKind.NUMBER:
        raise c.stop("a string")
    return Literal(at, literal.end, literal.kind, introducer)


def read_user_variable(c: Cursor) -> UserVariable:
    """Read `@name`.

    Raises:
        Stopped: If no user variable comes next.
    """
    index = c.index
    if c.kinds[index] is not TokenKind.USER_VARIABLE:
        raise c.stop("a user variable")
    c.index = index + 1
    at = c.starts[index]
    text = c.texts[index]
    name = text[1:]
    if name[0] in "`'\"":
        name = quoted_name(name, c.dialect)
    return UserVariable(at, at + len(text), name.lower())


_SCOPES: Final = {
    "global": "global",
    "session": "session",
    "local": "session",
    "persist": "persist",
    "persist_only": "persist",
}


def read_system_variable(c: Cursor) -> SystemVariable:
    """Read `@@name`.

    Raises:
        Stopped: If the name has too many parts.
    """
    index = c.index
    c.index = index + 1
    at = c.starts[index]
    text = c.texts[index]
    name = text[2:].replace("`", "").lower()
    first, dot, rest = name.partition(".")
    scope = _SCOPES.get(first, "") if dot else ""
    if (rest if scope else name).count(".") > 1:
        c.index = index
        raise c.stop("a system variable")
    if scope:
        return SystemVariable(at, at + len(text), rest, scope)
    return SystemVariable(at, at + len(text), name)


def read_column(c: Cursor) -> Name:
    """Read the name of a column with its qualifiers.

    Raises:
        Stopped: If no name comes next.
    """
    at = c.start
    if c.words[c.index] == ".":
        if c.word_ahead(2) != "." or not c.dialect.may_be_mariadb:
            raise c.stop("a name")
        c.index += 1
    parts = [c.identifier()]
    while c.words[c.index] == ".":
        if len(parts) == 3:
            raise c.stop("a name of at most three parts")
        c.index += 1
        parts.append(c.identifier())
    return Name(at, c.end, tuple(parts))


def read_object_name(c: Cursor) -> ObjectName:
    """Read `name` or `database.name`.

    Raises:
        Stopped: If no name comes next.
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


def read_names(c: Cursor) -> tuple[str, ...]:
    """Read names in parentheses, at least one."""
    return c.enclosed(lambda c: c.several(Cursor.identifier))


def read_digits(c: Cursor) -> Literal:
    """Read how many digits of a second."""
    if c.kind is not TokenKind.NUMBER:
        raise c.stop("a number")
    return read_literal(c)


_CAST_TYPES: Final = words_of("""
    BINARY CHAR CHARACTER NCHAR SIGNED UNSIGNED DATE TIME DATETIME DECIMAL DEC DOUBLE FLOAT POINT
    LINESTRING POLYGON MULTIPOINT MULTILINESTRING MULTIPOLYGON GEOMETRYCOLLECTION
    """)
_MYSQL_CAST_TYPES: Final = words_of("JSON YEAR REAL NATIONAL GEOMCOLLECTION VECTOR")
_MARIADB_CAST_TYPES: Final = words_of(
    "VARCHAR VARCHAR2 INT INTEGER INET4 INET6 UUID INTERVAL NUMBER CLOB RAW XMLTYPE"
)
_NO_NAMES: Final = words_of(
    "JSON YEAR NATIONAL TIMESTAMP TEXT BOOL BOOLEAN BIT ENUM SERIAL FIXED NVARCHAR"
)
_WITH_SCALE: Final = frozenset(("DECIMAL", "DEC", "DOUBLE", "NUMBER"))
_WITH_LENGTH: Final = words_of("BINARY CHAR NCHAR TIME DATETIME FLOAT VARCHAR VARCHAR2 VECTOR RAW")
_TEXTS: Final = frozenset(("CHAR", "VARCHAR", "VARCHAR2", "CLOB"))


def read_cast_type(c: Cursor) -> DataType:
    """Read the type that CAST, CONVERT or RETURNING names.

    Raises:
        Stopped: If no type comes next that the server knows there.
    """
    at = c.start
    word = c.word
    dialect = c.dialect
    if not (
        word in _CAST_TYPES
        or (word in _MYSQL_CAST_TYPES and dialect.may_be_mysql)
        or (word in _MARIADB_CAST_TYPES and dialect.may_be_mariadb)
        # A name that is no word of the grammar is an unknown type, 4161.
        or (dialect.may_be_mariadb and word and word not in _NO_NAMES and c.is_at_name)
    ):
        raise c.stop("a type")
    c.index += 1
    if word == "NATIONAL":
        c.expect_any(("CHAR", "CHARACTER"))
        word = "NCHAR"
    if word == "CHARACTER":
        word = "CHAR"
    if word in ("SIGNED", "UNSIGNED"):
        c.accept_any(("INT", "INTEGER"))
    if word == "DOUBLE" and dialect.may_be_mysql:
        c.accept("PRECISION")
    if word == "INTERVAL":
        c.expect("DAY_SECOND")
    arguments = _lengths(c, word)
    words: set[str] = set()
    charset = ""
    if word in _TEXTS:
        charset = read_charset_option(c, words)
    collation = ""
    if word in _TEXTS and dialect.may_be_mariadb and c.accept("COLLATE"):
        collation = read_collation(c)
    return DataType(at, c.end, word, arguments, frozenset(words), charset, collation)


def _lengths(c: Cursor, word: str) -> tuple[str, ...]:
    if c.word != "(" or word not in _WITH_SCALE | _WITH_LENGTH | {"INTERVAL"}:
        return ()
    c.index += 1
    found = [_number(c)]
    if word in _WITH_SCALE and c.accept(","):
        found.append(_number(c))
    c.expect_operator(")")
    return tuple(found)


def _number(c: Cursor) -> str:
    if c.kind is not TokenKind.NUMBER:
        raise c.stop("a number")
    c.index += 1
    return c.texts[c.index - 1]


def read_charset_option(c: Cursor, words: set[str]) -> str:
    """Read CHARACTER SET … and its short forms, with BINARY before or behind, if they are there.

    Args:
        c: Behind the type and its length.
        words: Gets BINARY, ASCII, UNICODE, BYTE.

    Returns:
        The character set, empty without one.
    """
    charset = ""
    if c.accept("BINARY"):
        words.add("BINARY")
    if c.accept("CHARACTER", "SET") or c.accept("CHARSET") or c.accept("CHAR", "SET"):
        charset = read_charset(c)
    elif word := c.accept_any(("ASCII", "UNICODE", "BYTE")):
        words.add(word)
    if c.accept("BINARY"):
        words.add("BINARY")
    return charset


def read_charset(c: Cursor) -> str:
    """Read the name of a character set.

    Raises:
        Stopped: If no name of a character set comes next.
    """
    if c.accept("BINARY"):
        return "binary"
    if c.kind is TokenKind.STRING:
        return c.string()
    return c.identifier()


def read_collation(c: Cursor) -> str:
    """Read the name of a collation.

    Raises:
        Stopped: If no name of a collation comes next.
    """
    return c.string() if c.kind is TokenKind.STRING else c.identifier()
