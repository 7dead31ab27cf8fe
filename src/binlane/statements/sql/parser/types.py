"""Types: of columns, parameters, variables, and what RETURNS names.

The server and its version decide which types exist. Types of CAST belong to the expressions.

Source: MySQL 9.7 and MariaDB 11.8, sql/sql_yacc.yy: type, field_type.
"""

from __future__ import annotations

from typing import Any, Final

from binlane.statements.sql.parser.cursor import Cursor, Stopped
from binlane.statements.sql.parser.literals import read_charset, read_collation
from binlane.statements.sql.parser.notation import Notation, Reader
from binlane.statements.sql.parser.notation_readers import Fields, maker
from binlane.statements.sql.tokens import TokenKind
from binlane.statements.sql.tree.expressions import DataType

_TYPES: Final = """
type =
    name:TYPE+OF name [{. name} ...] -> DataType @mariadb
  | name:ROW+TYPE+OF name [{. name} ...] -> DataType @mariadb
  | name:ROW &{(} ( {arguments:name fields:field_type}, ... ) -> DataType @mariadb
  | oracle_next name [{. name} ...] % {TYPE name:"TYPE OF" | ROWTYPE name:"ROW TYPE OF"}
    -> DataType @oracle
  | own_type
own_type = [schema @mariadb] {
    plain_type
  | {text | national_text | member_text} [COLLATE collation:collation_name]
  | plugin_type @any
  | "a type" } -> numeric
column_type = [schema @mariadb] {
    plain_type | text | national_text | member_text | plugin_type @any | "a type" } -> numeric
plugin_type = name:unknown [scale]   # of a server that nobody has named

plain_type =
    name:{ TINYINT | SMALLINT | MEDIUMINT | MIDDLEINT | INT | INTEGER | BIGINT | INT1 | INT2 | INT3
      | INT4 | INT8 | YEAR } [size] [sign ...]
  | name:{DECIMAL | DEC | NUMERIC | FIXED | FLOAT | FLOAT4} [scale] [sign ...]
  | name:NUMBER [scale] [sign ...] @any|oracle
  | { name:DOUBLE [PRECISION] | name:{REAL | FLOAT8} } [( arguments:whole , arguments:whole )]
    [sign ...]
  | name:{BINARY | BIT | TIME | TIMESTAMP | DATETIME} [size]
  | name:{BOOL | BOOLEAN | DATE | SERIAL | JSON}
  | name:VARBINARY needed_size [compressed]
  | name:BLOB [size] [compressed]
  | name:{TINYBLOB | MEDIUMBLOB | LONGBLOB} [compressed]
  | LONG+VARBINARY name:"MEDIUMBLOB" [compressed]
  | name:{ GEOMETRY | POINT | LINESTRING | POLYGON | MULTIPOINT | MULTILINESTRING | MULTIPOLYGON
      | GEOMETRYCOLLECTION } [size @mariadb]
  | name:GEOMCOLLECTION @mysql>=8.0.11
  | name:VECTOR {size | @mysql} @mariadb>=11.7|mysql>=9
  | name:INET6 @mariadb>=10.5 | name:UUID @mariadb>=10.7 | name:INET4 @mariadb>=10.10
  | name:XMLTYPE @mariadb>=12.3
  | name:RAW needed_size @any|oracle
text =
    { {VARCHAR | VARCHARACTER | CHARACTER+VARYING | CHAR+VARYING} name:"VARCHAR"
    | name:VARCHAR2 @any|oracle } needed_size [charset_compressed]
  | {CHARACTER | CHAR} name:"CHAR" [size] [charset]
  | name:TEXT [size] [charset_compressed]
  | name:CLOB [size] [charset_compressed] @any|oracle
  | name:{TINYTEXT | MEDIUMTEXT | LONGTEXT} [charset_compressed]
  | LONG+CHARACTER+VARYING name:"MEDIUMTEXT" [charset_compressed]
  | LONG+CHAR+VARYING name:"MEDIUMTEXT" [charset_compressed]
  | LONG [VARCHARACTER | VARCHAR] name:"MEDIUMTEXT" [charset_compressed]
member_text = name:{ENUM | SET} ( arguments:member, ... ) [charset]
national_text =
    { NATIONAL+CHARACTER+VARYING | NATIONAL+CHAR+VARYING | NATIONAL+VARCHAR | NATIONAL+VARCHARACTER
    | NCHAR+VARYING | NCHAR+VARCHAR | NCHAR+VARCHARACTER | NVARCHAR } name:"NVARCHAR" needed_size
    [words:BINARY ...] [compressed [words:BINARY ...]]
  | {NATIONAL+CHARACTER | NATIONAL+CHAR | NCHAR} name:"NCHAR" [size] [words:BINARY ...]
size = ( arguments:whole )
needed_size = size | @oracle | "a length"
scale = ( arguments:whole [, arguments:whole] )
sign = words:{UNSIGNED | SIGNED | ZEROFILL}
charset = charset_word ... [charset_named] | charset_named
charset_named = {{CHARACTER | CHAR} SET | CHARSET} !DEFAULT charset:charset_name [charset_word ...]
charset_word = words:{BINARY | ASCII | UNICODE | BYTE}
charset_compressed = charset [compressed] | compressed [charset]
compressed = words:COMPRESSED [= name] @mariadb
"""
_COMPRESSED: Final = frozenset(
    {
        *("VARCHAR", "VARCHAR2", "NVARCHAR", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT", "CLOB"),
        *("VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"),
    }
)
QUALIFIERS: Final = frozenset({"mariadb_schema", "maxdb_schema", "oracle_schema"})
"""MariaDB says whose type or function it means where sql_mode could make it another."""


def read_column_type(cursor: Cursor) -> DataType:
    """Read a column's type with its length, sign and character set.

    Raises:
        Stopped: If no type comes next that the server knows.
    """
    found: DataType = _NOTATION.of(cursor.dialect).rule("column_type").node(cursor)
    return found


def read_type(cursor: Cursor, *, may_refer: bool = True) -> DataType:
    """Read the type of a variable, parameter or result.

    Args:
        cursor: Cursor at the type's first word.
        may_refer: True if MariaDB's types of something else, TYPE OF and ROW TYPE OF, may stand
            here.

    Raises:
        Stopped: If no type comes next that the server knows.
    """
    rule = "type" if may_refer else "own_type"
    found: DataType = _NOTATION.of(cursor.dialect).rule(rule).node(cursor)
    return found


def may_be_compressed(cursor: Cursor, name: str) -> bool:
    """True if MariaDB's COMPRESSED may stand behind a type."""
    return cursor.dialect.may_be_mariadb and name in _COMPRESSED


def charset_name(cursor: Cursor) -> str:
    """Read a character set's name, in small letters; `default` where the text says DEFAULT."""
    return "default" if cursor.accept("DEFAULT") else read_charset(cursor).lower()


def collation_name(cursor: Cursor) -> str:
    """Read a collation's name, in small letters; `default` where the text says DEFAULT."""
    return "default" if cursor.accept("DEFAULT") else read_collation(cursor).lower()


def _schema(cursor: Cursor) -> None:
    if cursor.token.value.lower() not in QUALIFIERS:
        raise cursor.stop("a type")
    cursor.index += 2
    # Behind a dot no word is one of the grammar; this one is.
    cursor.words[cursor.index] = cursor.texts[cursor.index].upper()


def _whole(cursor: Cursor) -> str:
    """A number; the servers leave away what stands behind a point."""
    whole = cursor.texts[cursor.index].partition(".")[0]
    if cursor.kind is not TokenKind.NUMBER or not whole.isdecimal():
        raise cursor.stop("a number")
    cursor.index += 1
    return whole


def _member(cursor: Cursor) -> str:
    token = cursor.token
    is_bytes = token.text[:1] in {"x", "X", "b", "B"} or token.text[:2] in {"0x", "0b"}
    is_national = token.text[:1] in {"n", "N"}
    if (token.kind is not TokenKind.STRING or is_national) and not (
        token.kind is TokenKind.NUMBER and is_bytes
    ):
        raise cursor.stop("a string")
    return cursor.advance().value


def _is_oracle_type(cursor: Cursor) -> bool:
    """True if `t.a%TYPE` or `t%ROWTYPE` comes next."""
    count = 1
    while cursor.word_ahead(count) == ".":
        count += 2
    return cursor.word_ahead(count) == "%" and cursor.word_ahead(count + 1) in {"TYPE", "ROWTYPE"}


def _numeric(cursor: Cursor, at: int, found: Fields) -> Any:
    """A type; MariaDB takes each sign of a number once."""
    words = [word for word in found.get("words", ()) if word in {"UNSIGNED", "SIGNED", "ZEROFILL"}]
    if len(set(words)) < len(words) and cursor.dialect.flavor == "mariadb":
        raise Stopped(cursor.ahead(-1), "each word once")
    return _MAKE(cursor, at, found)


_MAKE: Final = maker(DataType)
_NOTATION: Final = Notation(
    (_TYPES,),
    {
        "charset_name": Reader(charset_name, "a character set"),
        "collation_name": Reader(collation_name, "a collation"),
        "field_type": Reader(read_type, "a type"),
        "member": Reader(_member, "a string"),
        "name": Reader(Cursor.identifier, "a name", lambda cursor: cursor.is_at_name),
        "oracle_next": Reader(lambda _: None, "a type", _is_oracle_type),
        "schema": Reader(_schema, "a type", lambda cursor: cursor.word_ahead(1) == "."),
        "unknown": Reader(
            lambda cursor: cursor.identifier().upper(), "a type", lambda cursor: cursor.is_at_name
        ),
        "whole": Reader(_whole, "a number"),
    },
    {"DataType": DataType, "numeric": _numeric},
)
