"""Types: of columns, parameters, variables, and what RETURNS names.

Which types there are is the server's and its version's. Those of CAST are the expressions' own.

Source: MySQL 9.7 and MariaDB 11.8, sql/sql_yacc.yy: type, field_type.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from binlane.sql.parser.cursor import Cursor, Stopped
from binlane.sql.parser.literals import read_charset, read_collation
from binlane.sql.tokens import TokenKind
from binlane.sql.tree.expressions import DataType

_LONG_NAMES: Final = (
    ("VARCHAR", ("CHARACTER", "VARYING")),
    ("VARCHAR", ("CHAR", "VARYING")),
    ("NVARCHAR", ("NATIONAL", "CHARACTER", "VARYING")),
    ("NVARCHAR", ("NATIONAL", "CHAR", "VARYING")),
    ("NVARCHAR", ("NATIONAL", "VARCHAR")),
    ("NVARCHAR", ("NATIONAL", "VARCHARACTER")),
    ("NCHAR", ("NATIONAL", "CHARACTER")),
    ("NCHAR", ("NATIONAL", "CHAR")),
    ("NVARCHAR", ("NCHAR", "VARYING")),
    ("NVARCHAR", ("NCHAR", "VARCHAR")),
    ("NVARCHAR", ("NCHAR", "VARCHARACTER")),
    ("DOUBLE", ("DOUBLE", "PRECISION")),
    ("MEDIUMBLOB", ("LONG", "VARBINARY")),
    ("MEDIUMTEXT", ("LONG", "CHARACTER", "VARYING")),
    ("MEDIUMTEXT", ("LONG", "CHAR", "VARYING")),
    ("MEDIUMTEXT", ("LONG", "VARCHARACTER")),
    ("MEDIUMTEXT", ("LONG", "VARCHAR")),
    ("MEDIUMTEXT", ("LONG",)),
    ("VARCHAR", ("VARCHARACTER",)),
    ("CHAR", ("CHARACTER",)),
)
"""Types by the words that stand for them, longer ones first."""

_INTEGERS: Final = frozenset(
    {
        *("TINYINT", "SMALLINT", "MEDIUMINT", "MIDDLEINT", "INT", "INTEGER", "BIGINT"),
        *("INT1", "INT2", "INT3", "INT4", "INT8", "YEAR"),
    }
)
_EXACT: Final = frozenset({"DECIMAL", "DEC", "NUMERIC", "FIXED", "FLOAT", "FLOAT4", "NUMBER"})
_DOUBLES: Final = frozenset({"DOUBLE", "REAL", "FLOAT8"})
_SIGNS: Final = ("UNSIGNED", "SIGNED", "ZEROFILL")
_TEXTS: Final = frozenset(
    {
        *("CHAR", "VARCHAR", "VARCHAR2", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT", "CLOB"),
        *("ENUM", "SET", "NCHAR", "NVARCHAR"),
    }
)
_BLOBS: Final = frozenset({"VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"})
_COMPRESSED: Final = (_TEXTS | _BLOBS) - {"CHAR", "NCHAR", "ENUM", "SET"}
_CHARSET_WORDS: Final = ("BINARY", "ASCII", "UNICODE", "BYTE")
_NEED_LENGTH: Final = frozenset({"VARCHAR", "NVARCHAR", "VARBINARY", "VARCHAR2", "RAW"})
_MAY_HAVE_LENGTH: Final = frozenset(
    {
        *("CHAR", "NCHAR", "BINARY", "BIT", "TIME", "TIMESTAMP", "DATETIME", "TEXT", "BLOB"),
        *("VECTOR", "CLOB"),
    }
)
_GEOMETRIES: Final = frozenset(
    {
        *("GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING"),
        *("MULTIPOLYGON", "GEOMETRYCOLLECTION"),
    }
)
_PLAIN: Final = frozenset(
    {
        *("BOOL", "BOOLEAN", "DATE", "SERIAL", "JSON", "TINYTEXT", "MEDIUMTEXT", "LONGTEXT"),
        *("TINYBLOB", "MEDIUMBLOB", "LONGBLOB", *_GEOMETRIES),
    }
)
_EVERYWHERE: Final = (
    _INTEGERS
    | (_EXACT - {"NUMBER"})
    | _DOUBLES
    | (_TEXTS - {"VARCHAR2", "CLOB"})
    | (_NEED_LENGTH - {"VARCHAR2", "RAW"})
    | (_MAY_HAVE_LENGTH - {"VECTOR", "CLOB"})
    | _PLAIN
)
_ONLY_MARIADB: Final[Mapping[str, tuple[int, ...]]] = MappingProxyType(
    {
        "INET6": (10, 5),
        "UUID": (10, 7),
        "INET4": (10, 10),
        "VECTOR": (11, 7),
        "XMLTYPE": (12, 3),
    }
)
"""Types of MariaDB, and since when."""
_ONLY_MYSQL: Final[Mapping[str, tuple[int, ...]]] = MappingProxyType(
    {"GEOMCOLLECTION": (8, 0, 11), "VECTOR": (9, 0)}
)
_ORACLE: Final = frozenset({"VARCHAR2", "NUMBER", "RAW", "CLOB"})
"""Types of MariaDB's sql_mode ORACLE."""
_ALL: Final = frozenset((*_EVERYWHERE, *_ONLY_MARIADB, *_ONLY_MYSQL, *_ORACLE))
_QUALIFIERS: Final = frozenset({"mariadb_schema", "maxdb_schema", "oracle_schema"})
"""MariaDB says whose type it means where sql_mode could make it another."""


def read_column_type(cursor: Cursor) -> DataType:
    """Read a column's type with its length, sign and character set.

    Raises:
        Stopped: If none comes next that the server knows.
    """
    start = cursor.token
    name = _name(cursor)
    arguments = _arguments(cursor, name)
    words: set[str] = set()
    charset = ""
    if name in _INTEGERS | _EXACT | _DOUBLES:
        while word := cursor.accept_any(_SIGNS):
            if word in words and cursor.dialect.flavor == "mariadb":
                raise Stopped(cursor.ahead(-1), "each word once")
            words.add(word)
    elif name in _TEXTS:
        charset = _charset(cursor, words, is_national=name in {"NCHAR", "NVARCHAR"})
    if may_be_compressed(cursor, name) and cursor.accept("COMPRESSED"):
        words.add("COMPRESSED")
        if cursor.accept_operator("="):
            cursor.identifier()
    return DataType(
        start.offset,
        cursor.end,
        name=name,
        arguments=arguments,
        words=frozenset(words),
        charset=charset,
    )


def may_be_compressed(cursor: Cursor, name: str) -> bool:
    """Whether MariaDB's COMPRESSED may stand behind a type."""
    return cursor.dialect.may_be_mariadb and name in _COMPRESSED


def read_type(cursor: Cursor, *, may_refer: bool = True) -> DataType:
    """Read the type of a variable, parameter or result.

    Args:
        cursor: At its first word.
        may_refer: MariaDB's types of something else, TYPE OF and ROW TYPE OF, may stand here.

    Raises:
        Stopped: If none comes next that the server knows.
    """
    start = cursor.token
    if cursor.dialect.may_be_mariadb and may_refer:
        if cursor.accept("TYPE", "OF"):
            return _type_of(cursor, start.offset, "TYPE OF")
        if cursor.accept("ROW", "TYPE", "OF"):
            return _type_of(cursor, start.offset, "ROW TYPE OF")
        if cursor.word == "ROW" and cursor.word_ahead(1) == "(":
            cursor.advance()
            return _row(cursor, start.offset)
        if cursor.dialect.is_oracle and (found := _oracle_type(cursor)):
            return found
    found = read_column_type(cursor)
    if found.name in _TEXTS and not found.collation and cursor.accept("COLLATE"):
        found.collation = collation_name(cursor)
        found.end = cursor.end
    return found


def charset_name(cursor: Cursor) -> str:
    """Read a character set's name, in small letters; `default` where the text says DEFAULT."""
    return "default" if cursor.accept("DEFAULT") else read_charset(cursor).lower()


def collation_name(cursor: Cursor) -> str:
    """Read a collation's name, in small letters; `default` where the text says DEFAULT."""
    return "default" if cursor.accept("DEFAULT") else read_collation(cursor).lower()


def accept_charset(cursor: Cursor) -> bool:
    """Read CHARACTER SET, CHAR SET or CHARSET if one comes next."""
    return (
        cursor.accept("CHARACTER", "SET")
        or cursor.accept("CHAR", "SET")
        or cursor.accept("CHARSET")
    )


def _name(cursor: Cursor) -> str:
    for name, words in _LONG_NAMES:
        if cursor.accept(*words):
            return name
    dialect = cursor.dialect
    if dialect.may_be_mariadb and cursor.word_ahead(1) == ".":
        if cursor.token.value.lower() not in _QUALIFIERS:
            raise cursor.stop("a type")
        cursor.advance()
        cursor.advance()
        return cursor.advance().value.upper()
    word = cursor.word
    is_known = word in _EVERYWHERE
    if not is_known and word in _ONLY_MARIADB:
        is_known = dialect.has_mariadb(*_ONLY_MARIADB[word])
    if not is_known and word in _ONLY_MYSQL:
        is_known = dialect.has_mysql(*_ONLY_MYSQL[word])
    if not is_known and word in _ORACLE:
        is_known = dialect.is_oracle or not dialect.flavor
    if not is_known and not dialect.flavor and cursor.is_at_name:
        is_known = True  # of a plugin of a server that nobody has named
    if not is_known:
        raise cursor.stop("a type")
    return cursor.advance().value.upper()


def _arguments(cursor: Cursor, name: str) -> tuple[str, ...]:  # noqa: C901 - one branch a clause
    if name in {"ENUM", "SET"}:
        return _members(cursor)
    if cursor.word != "(" or cursor.kind is not TokenKind.OPERATOR:
        needs = name in _NEED_LENGTH or (name == "VECTOR" and not cursor.dialect.may_be_mysql)
        if needs and not cursor.dialect.is_oracle:
            raise cursor.stop("a length")
        return ()
    most, least = 0, 1
    if name in _INTEGERS | _NEED_LENGTH | _MAY_HAVE_LENGTH:
        most = 1
    elif name in _EXACT or name not in _ALL:
        most = 2
    elif name in _DOUBLES:
        most = least = 2
    elif name in _GEOMETRIES and cursor.dialect.may_be_mariadb:
        most = 1
    if not most:
        return ()  # what the parenthesis is, the caller says
    cursor.advance()
    found = [_number(cursor)]
    while len(found) < most and cursor.accept_operator(","):
        found.append(_number(cursor))
    if len(found) < least:
        raise cursor.stop(",")
    cursor.expect_operator(")")
    return tuple(found)


def _number(cursor: Cursor) -> str:
    token = cursor.token
    whole = token.text.partition(".")[0]  # the servers leave away what stands behind a point
    if token.kind is not TokenKind.NUMBER or not whole.isdecimal():
        raise cursor.stop("a number")
    cursor.advance()
    return whole


def _members(cursor: Cursor) -> tuple[str, ...]:
    cursor.expect_operator("(")
    found = []
    while True:
        is_bytes = cursor.token.text[:1] in {"x", "X", "b", "B"}
        is_national = cursor.token.text[:1] in {"n", "N"}
        if (cursor.kind is not TokenKind.STRING or is_national) and not (
            cursor.kind is TokenKind.NUMBER and (is_bytes or cursor.token.text[:2] in {"0x", "0b"})
        ):
            raise cursor.stop("a string")
        found.append(cursor.advance().value)
        if not cursor.accept_operator(","):
            break
    cursor.expect_operator(")")
    return tuple(found)


def _charset(cursor: Cursor, words: set[str], *, is_national: bool) -> str:
    """What may stand behind a text type; the words ASCII, UNICODE, BYTE and BINARY into `words`."""
    charset = ""
    while True:
        if not is_national and not charset and accept_charset(cursor):
            if cursor.word == "DEFAULT":
                raise cursor.stop("a character set")
            charset = charset_name(cursor)
        elif word := cursor.accept_any(("BINARY",) if is_national else _CHARSET_WORDS):
            words.add(word)
        else:
            break
    return charset


def _type_of(cursor: Cursor, at: int, name: str) -> DataType:
    parts = [cursor.identifier()]
    while cursor.accept_operator("."):
        parts.append(cursor.identifier())
    return DataType(at, cursor.end, name=name, of=tuple(parts))


def _row(cursor: Cursor, at: int) -> DataType:
    cursor.expect_operator("(")
    names = []
    while True:
        names.append(cursor.identifier())
        read_type(cursor)
        if not cursor.accept_operator(","):
            break
    cursor.expect_operator(")")
    return DataType(at, cursor.end, name="ROW", arguments=tuple(names))


def _oracle_type(cursor: Cursor) -> DataType | None:
    """`t.a%TYPE` and `t%ROWTYPE` of sql_mode ORACLE."""
    count = 1
    while cursor.word_ahead(count) == ".":
        count += 2
    kind = cursor.ahead(count + 1).word
    if cursor.ahead(count).text != "%" or kind not in {"TYPE", "ROWTYPE"}:
        return None
    at = cursor.start
    parts = [cursor.identifier()]
    while cursor.accept_operator("."):
        parts.append(cursor.identifier())
    cursor.advance()
    cursor.advance()
    name = "TYPE OF" if kind == "TYPE" else "ROW TYPE OF"
    return DataType(at, cursor.end, name=name, of=tuple(parts))
