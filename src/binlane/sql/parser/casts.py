"""Types of CAST, character sets and collations.

Source: MySQL 9.7 and MariaDB 11.8, sql/sql_yacc.yy: cast_type.
"""

from __future__ import annotations

from typing import Final

from binlane.sql.parser.cursor import Cursor
from binlane.sql.parser.reserved import words_of
from binlane.sql.tokens import TokenKind
from binlane.sql.tree.expressions import DataType

_BOTH: Final = words_of("""
    BINARY CHAR CHARACTER NCHAR SIGNED UNSIGNED DATE TIME DATETIME DECIMAL DEC DOUBLE FLOAT POINT
    LINESTRING POLYGON MULTIPOINT MULTILINESTRING MULTIPOLYGON GEOMETRYCOLLECTION
    """)
_ONLY_MYSQL: Final = words_of("JSON YEAR REAL NATIONAL GEOMCOLLECTION VECTOR")
_ONLY_MARIADB: Final = words_of(
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
        Stopped: If it is none that the server knows there.
    """
    at = c.start
    word = c.word
    dialect = c.dialect
    if not (
        word in _BOTH
        or (word in _ONLY_MYSQL and dialect.may_be_mysql)
        or (word in _ONLY_MARIADB and dialect.may_be_mariadb)
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
        Stopped: If none comes next.
    """
    if c.accept("BINARY"):
        return "binary"
    if c.kind is TokenKind.STRING:
        return c.string()
    return c.identifier()


def read_collation(c: Cursor) -> str:
    """Read the name of a collation.

    Raises:
        Stopped: If none comes next.
    """
    return c.string() if c.kind is TokenKind.STRING else c.identifier()
