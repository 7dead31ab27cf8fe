"""The text of a table as the servers write it: SHOW CREATE TABLE, and CREATE … SELECT as rows.

Only what a table's definition holds; numbers that the server counts itself are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from binlane.log.codec.types import Flavor
from binlane.names import quote
from binlane.statements.sql.parser import Stopped, cursor_over
from binlane.statements.sql.parser.forms import read_rule
from binlane.statements.sql.schema import ForeignKey, Key, Table, printed_engine
from binlane.statements.sql.servers import (
    Dialect,
    bytes_per_character,
    charset_of_collation,
    default_collation,
)
from binlane.statements.sql.table_definitions import TableColumn
from binlane.statements.sql.tokens import SqlSyntaxError
from binlane.statements.sql.tree.definitions import Partition, Partitioning
from binlane.statements.sql.tree.expressions import Name

INTEGERS: Final[Mapping[str, tuple[str, int, int]]] = MappingProxyType(
    {
        **dict.fromkeys(("TINYINT", "INT1"), ("tinyint", 4, 3)),
        **dict.fromkeys(("SMALLINT", "INT2"), ("smallint", 6, 5)),
        **dict.fromkeys(("MEDIUMINT", "INT3", "MIDDLEINT"), ("mediumint", 9, 8)),
        **dict.fromkeys(("INT", "INTEGER", "INT4"), ("int", 11, 10)),
        **dict.fromkeys(("BIGINT", "INT8", "SERIAL"), ("bigint", 20, 20)),
    }
)
"""Integer types by name: the printed name, and the widths of signed and unsigned ones."""
BOOLEANS: Final = frozenset({"BOOL", "BOOLEAN"})
_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "DEC": "decimal",
        "NUMERIC": "decimal",
        "FIXED": "decimal",
        "NUMBER": "decimal",
        "REAL": "double",
        "FLOAT8": "double",
        "FLOAT4": "float",
        "NVARCHAR": "varchar",
        "VARCHAR2": "varchar",
        "NCHAR": "char",
        "RAW": "varbinary",
        "CLOB": "longtext",
        "GEOMETRYCOLLECTION": "geomcollection",
    }
)
_MARIADB_TYPES: Final = MappingProxyType({"json": "longtext", "year": "year(4)"})
_BINARY_TYPES: Final = MappingProxyType({"CHAR": "BINARY", "VARCHAR": "VARBINARY", "TEXT": "BLOB"})
_FLOAT_BITS_MAX: Final = 24
_LENGTH_ONE: Final = frozenset({"char", "binary", "bit"})
_TEXTS: Final = frozenset({"tinytext", "text", "mediumtext", "longtext"})
_BLOBS: Final = frozenset({"tinyblob", "blob", "mediumblob", "longblob"})
_GEOMETRIES: Final = frozenset(
    {
        *("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring"),
        *("multipolygon", "geometrycollection", "geomcollection"),
    }
)
_LARGE: Final = (("tiny", 255), ("", 65_535), ("medium", 16_777_215), ("long", 1 << 32))
_NEWEST: Final = "utf8mb4_0900_ai_ci"
_MARK: Final = "\0"
_OF_OTHERS: Final = frozenset(("ORACLE", "MSSQL", "DB2", "MAXDB", "POSTGRESQL"))
_WITHOUT_FIELD_OPTIONS: Final = _OF_OTHERS | {"NO_FIELD_OPTIONS", "MYSQL323", "MYSQL40"}
_WITHOUT_TABLE_OPTIONS: Final = _OF_OTHERS | {"NO_TABLE_OPTIONS", "ANSI"}
_SEQUENCES: Final = re.compile(
    r"""(?xi) \b (?: (?P<function>nextval|lastval) \s* \( \s* | (?P<next>next|previous)
    \s+ value \s+ for \s+ ) (?: (?P<database>`[^`]+`|\w+) \s* \. \s* )?
    (?P<sequence>`[^`]+`|\w+) (?(function) \s* \) )"""
)


def create_table_text(  # noqa: PLR0913 - what a CREATE TABLE can say
    table: Table,
    *,
    flavor: Flavor,
    is_or_replace: bool = False,
    if_not_exists: bool = False,
    is_transaction: bool = False,
    only_given_options: bool = True,
    quoted: Callable[[str], str] = quote,
    sql_modes: frozenset[str] = frozenset(),
) -> str:
    """Give the statement that makes a table.

    Args:
        table: Table with all of its columns.
        flavor: Flavor of the server that writes the text.
        is_or_replace: True to write OR REPLACE.
        if_not_exists: True to write IF NOT EXISTS.
        is_transaction: True to write MySQL's START TRANSACTION, as the log has it before the rows.
        only_given_options: True to write only options that the user gave, as the log has them; else
            as SHOW CREATE TABLE has them.
        quoted: Puts a name into its quotes.
        sql_modes: Modes in capitals; modes for other servers leave out parts that these do not
            have.
    """
    head = "CREATE OR REPLACE " if is_or_replace else "CREATE "
    head += "TEMPORARY TABLE " if table.is_temporary else "TABLE "
    if if_not_exists:
        head += "IF NOT EXISTS "
    writer = _Writer(table, flavor, sql_modes)
    start = " START TRANSACTION" if is_transaction and flavor is Flavor.MYSQL else ""
    options = writer.options(only_given=only_given_options)
    text = f"{head}{_marked(table.name.table)} (\n  {writer.body()}\n){start}{options}"
    pieces = (text + (writer.partition_clause() if table.partitioning else "")).split(_MARK)
    pieces[1::2] = map(quoted, pieces[1::2])
    return "".join(pieces)


def _marked(name: str) -> str:
    """A name that is yet to be quoted; none has this character in it."""
    return f"{_MARK}{name}{_MARK}"


def _part(column: str, part: str) -> str:
    """A part of a key: its column, quoted already, and perhaps a length or DESC."""
    own = quote(column)
    return _marked(column) + part[len(own) :] if column and part.startswith(own) else part


def column_type(column: TableColumn, flavor: Flavor) -> str:
    """A column's type as the server prints it, without character set."""
    name = column.type_name
    if column.charset == "binary" and name in _BINARY_TYPES:
        name = _BINARY_TYPES[name]
    if name in BOOLEANS:
        return "tinyint(1)"
    if name in INTEGERS:
        return _integer(column, flavor)
    lower = _NAMES.get(name, name.lower())
    if lower in _TEXTS | _BLOBS:
        return _large(lower, column, flavor)
    if lower in {"enum", "set"}:
        members = [_string(member.rstrip(" ")) for member in column.arguments]
        return f"{lower}({','.join(members)})"
    if flavor is Flavor.MARIADB and lower in _MARIADB_TYPES:
        return _MARIADB_TYPES[lower]
    return _with_arguments(lower, column.arguments) + _sign(column)


def _with_arguments(name: str, arguments: tuple[str, ...]) -> str:
    """A type with the numbers that the servers print, given or not."""
    if name == "year":
        return name
    if name == "decimal":
        arguments = (*arguments, *("10", "0")[len(arguments) :])
    elif name == "float" and len(arguments) == 1:
        name, arguments = ("double" if int(arguments[0]) > _FLOAT_BITS_MAX else "float"), ()
    elif name in _LENGTH_ONE and not arguments:
        arguments = ("1",)
    elif name in {"datetime", "timestamp", "time"} and arguments == ("0",):
        arguments = ()
    return name + (f"({','.join(arguments)})" if arguments else "")


def _integer(column: TableColumn, flavor: Flavor) -> str:
    name, signed, unsigned = INTEGERS[column.type_name]
    width = (
        column.arguments[0] if column.arguments else str(unsigned if column.is_unsigned else signed)
    )
    if flavor is Flavor.MARIADB or column.is_zerofill or (name, width) == ("tinyint", "1"):
        return f"{name}({width})" + _sign(column)
    return name + _sign(column)


def _sign(column: TableColumn) -> str:
    return " unsigned" * column.is_unsigned + " zerofill" * column.is_zerofill


def _large(name: str, column: TableColumn, flavor: Flavor) -> str:
    """TEXT(n) and BLOB(n) become the smallest type that has room; MySQL counts characters."""
    if not column.arguments or name not in {"text", "blob"}:
        return name
    length = int(column.arguments[0])
    if flavor is Flavor.MYSQL:
        length *= bytes_per_character(column.charset or "")
    prefix = next(prefix for prefix, size in _LARGE if length <= size)
    return prefix + name


def _is_exact(column: TableColumn) -> bool:
    """True if MariaDB prints defaults of the column's type without quotes."""
    names = {"DECIMAL", "DEC", "NUMERIC", "FIXED", "NUMBER", "FLOAT", "DOUBLE", "REAL", "FLOAT4"}
    return column.type_name in names | {"FLOAT8"}


def _string(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def _key_text(key: Key) -> str:
    columns = ",".join(map(_part, key.columns, key.parts))
    if key.is_primary:
        return f"PRIMARY KEY ({columns})" + _using(key)
    kind = (
        "UNIQUE KEY"
        if key.is_unique
        else "FULLTEXT KEY"
        if key.is_fulltext
        else "SPATIAL KEY"
        if key.is_spatial
        else "KEY"
    )
    text = f"{kind} {_marked(key.name)} ({columns})" + _using(key)
    if key.parser:
        text += f" /*!50100 WITH PARSER {_marked(key.parser)} */ "
    return text


def _using(key: Key) -> str:
    return f" USING {key.algorithm}" if key.algorithm else ""


_REST: Final = (
    *("MIN_ROWS", "MAX_ROWS", "AVG_ROW_LENGTH", "PACK_KEYS", "STATS_PERSISTENT"),
    *("STATS_AUTO_RECALC", "STATS_SAMPLE_PAGES", "CHECKSUM", "PAGE_CHECKSUM", "DELAY_KEY_WRITE"),
    *("ROW_FORMAT", "TRANSACTIONAL", "KEY_BLOCK_SIZE"),
)


def without_json_checks(column: TableColumn) -> TableColumn:
    """MariaDB's JSON as a CREATE … SELECT copies it: as text, without the check."""
    if column.type_name != "JSON":
        return column
    return replace(
        column, type_name="LONGTEXT", charset="utf8mb4", collation="utf8mb4_bin", check=None
    )


_PARTITIONS: Final = frozenset(("", "LESS THAN", "IN", "HISTORY", "CURRENT"))


# The text of one table -------------------------------------------------------------------------


class _Writer:
    """Writes the definition of a table as one of the servers does."""

    def __init__(self, table: Table, flavor: Flavor, sql_modes: frozenset[str]) -> None:
        self.table = table
        self.flavor = flavor
        self.is_mariadb = flavor is Flavor.MARIADB
        self.given = dict(table.options)
        self.has_field_options = sql_modes.isdisjoint(_WITHOUT_FIELD_OPTIONS)
        self.has_table_options = sql_modes.isdisjoint(_WITHOUT_TABLE_OPTIONS)

    def body(self) -> str:
        """Write the content of the parentheses."""
        table = self.table
        lines = [self._column(column) for column in table.definition.columns]
        lines += [_key_text(key) for key in table.keys]
        if period := [one.name for one in table.definition.columns if one.row_time]:
            lines.append(f"PERIOD FOR SYSTEM_TIME ({', '.join(map(_marked, period))})")
        lines += [
            self._foreign_key(key, number) for number, key in enumerate(table.foreign_keys, 1)
        ]
        return ",\n  ".join((*lines, *table.checks))

    def _column(self, column: TableColumn) -> str:
        text = f"{_marked(column.name)} {column_type(column, self.flavor)}"
        text += self._charset(column)
        if column.generated is not None:
            return text + self._generated(column)
        if column.row_time:
            hidden = " INVISIBLE" * (not column.is_visible)
            return f"{text} GENERATED ALWAYS AS {column.row_time}{hidden}"
        if not column.is_nullable:
            text += " NOT NULL"
        elif column.type_name == "TIMESTAMP":
            text += " NULL"
        text += " INVISIBLE" * (not column.is_visible and self.is_mariadb)
        text += self._default(column)
        text += " WITHOUT SYSTEM VERSIONING" * column.is_unversioned
        if self.has_field_options or not self.is_mariadb:
            if column.on_update is not None:
                text += f" ON UPDATE {self._now(column.on_update)}"
            text += " AUTO_INCREMENT" * column.is_auto_increment
        text += self._check(column)
        if column.comment:
            text += f" COMMENT {_string(column.comment)}"
        return text + " /*!80023 INVISIBLE */" * (not column.is_visible and not self.is_mariadb)

    def _check(self, column: TableColumn) -> str:
        if not self.is_mariadb:
            return ""
        if column.check is None and column.type_name == "JSON":
            return f" CHECK (json_valid({_marked(column.name)}))"
        return "" if column.check is None else f" CHECK ({column.check})"

    def _charset(self, column: TableColumn) -> str:
        if (
            column.charset is None
            or column.charset == "binary"
            or (column.type_name == "JSON" and not self.is_mariadb)
        ):
            return ""
        own = column.collation or default_collation(column.charset, self.flavor)
        if self.is_mariadb:
            if column.charset == self.table.definition.charset and own == self._table_collation():
                return ""
            if column.type_name == "JSON":
                own = "utf8mb4_bin"
            return f" CHARACTER SET {column.charset} COLLATE {own}"
        text = ""
        if column.names_charset or own != self._table_collation():
            text = f" CHARACTER SET {column.charset}"
        is_default = own == default_collation(column.charset, self.flavor)
        is_newest = own == _NEWEST and self._table_collation() != _NEWEST
        if column.names_charset or not is_default or is_newest:
            text += f" COLLATE {own}"
        return text

    def _table_collation(self) -> str:
        if "COLLATE" in self.given:
            return self.given["COLLATE"]
        return default_collation(self.table.definition.charset or "", self.flavor)

    def _generated(self, column: TableColumn) -> str:
        if column.generated in {"ROW START", "ROW END"}:
            return f" GENERATED ALWAYS AS {column.generated}"
        stored = "STORED" if column.is_stored else "VIRTUAL"
        generated = column.generated
        if self.is_mariadb and generated is not None and generated.isidentifier():
            generated = f"`{generated}`"  # a column
        text = f" GENERATED ALWAYS AS ({generated}) {stored}"
        if not column.is_nullable and not self.is_mariadb:
            text += " NOT NULL"
        return text

    def _default(self, column: TableColumn) -> str:
        value = column.default
        if value is None:
            printed = column_type(column, self.flavor)
            has_none = printed in _TEXTS | _BLOBS or printed in _GEOMETRIES
            if column.is_auto_increment or not column.is_nullable or column.has_no_default:
                return ""
            return "" if not self.is_mariadb and has_none else " DEFAULT NULL"
        if column.default_form == "null":
            has_none = column_type(column, self.flavor) in _TEXTS | _BLOBS
            return "" if not self.is_mariadb and has_none else " DEFAULT NULL"
        if column.default_form == "now":
            return f" DEFAULT {self._now(value)}"
        if column.has_default_expression:
            inner = value[1:-1] if value.startswith("(") and value.endswith(")") else value
            is_call = column.default_form == "call" or _SEQUENCES.fullmatch(inner.strip())
            if not self.is_mariadb:
                return f" DEFAULT ({inner})"
            return f" DEFAULT {self._with_sequences(inner if is_call else value)}"
        return f" DEFAULT {self._literal(value, column)}"

    def _with_sequences(self, expression: str) -> str:
        """A default as MariaDB prints it: sequences with their databases, by functions."""

        def printed(found: re.Match[str]) -> str:
            name = found["function"] or (
                "nextval" if found["next"].upper() == "NEXT" else "lastval"
            )
            database = found["database"] or self.table.name.database
            shown = ".".join(f"`{one.strip('`')}`" for one in (database, found["sequence"]))
            return f"{name.lower()}({shown})"

        return _SEQUENCES.sub(printed, expression)

    def _literal(self, value: str, column: TableColumn) -> str:
        value = {"TRUE": "1", "FALSE": "0"}.get(value.upper(), value)
        quoted = value if value[:1] in {"'", '"'} else f"'{value}'"
        content = quoted[1:-1]
        if self.is_mariadb and (
            column.type_name in INTEGERS or column.type_name in BOOLEANS or _is_exact(column)
        ):
            return content
        if column.default_form == "number" or quoted.startswith('"'):
            return f"'{content}'"
        return quoted

    def _now(self, value: str) -> str:
        """CURRENT_TIMESTAMP, as a definition has it, in the self.flavor's spelling."""
        if not self.is_mariadb:
            return value
        digits = value.removeprefix("CURRENT_TIMESTAMP").strip("()")
        return f"current_timestamp({digits})"

    def _foreign_key(self, key: ForeignKey, number: int) -> str:
        name = key.own_name or f"{self.table.name.table}_ibfk_{number}"
        columns = ", ".join(_marked(column) for column in key.columns)
        parent = _marked(key.parent.table)
        if key.parent.database != self.table.name.database:
            parent = f"{_marked(key.parent.database)}.{parent}"
        parent_columns = ", ".join(_marked(column) for column in key.parent_columns)
        text = f"CONSTRAINT {_marked(name)} FOREIGN KEY ({columns}) REFERENCES {parent} ({parent_columns})"
        default = "RESTRICT" if self.is_mariadb else "NO ACTION"
        for event, action in (("DELETE", key.on_delete), ("UPDATE", key.on_update)):
            if action not in {"RESTRICT", default}:
                text += f" ON {event} {action}"
        return text

    def options(self, *, only_given: bool) -> str:
        """Write the options behind the parentheses."""
        versioning = " WITH SYSTEM VERSIONING" * self.table.definition.has_history
        if not self.has_table_options:
            return versioning
        text = ""
        if "ENGINE" in self.given or not only_given:
            text += f" ENGINE={self.given.get('ENGINE', 'InnoDB')}"
        if int(self.given.get("AUTO_INCREMENT", "0")) > 1 and self.table.auto_increment is not None:
            text += f" AUTO_INCREMENT={self.given['AUTO_INCREMENT']}"
        text += self._charset_option(only_given=only_given)
        for name in _REST:
            if name in self.given:
                value = self.given[name]
                text += f" {name}={value.upper() if name == 'ROW_FORMAT' else value}"
        if self.table.union:
            names = ",".join(_marked(child.table) for child in self.table.union)
            method = f" INSERT_METHOD={self.given['INSERT_METHOD'].upper()}" * (
                "INSERT_METHOD" in self.given
            )
            text += f"{method} UNION=({names})"
        for name in ("COMMENT", "CONNECTION"):
            if name in self.given:
                text += f" {name}={_string(self.given[name])}"
        return text + versioning

    def _charset_option(self, *, only_given: bool) -> str:
        if only_given and not {"CHARSET", "COLLATE"} & set(self.given):
            return ""
        collation = self._table_collation()
        charset = self.table.definition.charset or charset_of_collation(collation)
        text = f" DEFAULT CHARSET={charset}"
        is_default = collation == default_collation(charset, self.flavor)
        if self.is_mariadb or not is_default or charset == "utf8mb4":
            text += f" COLLATE={collation}"
        return text

    def partition_clause(self) -> str:
        """PARTITION BY with the line break before it; as it was written where it is beyond this."""
        text = self.table.partitioning
        try:
            node = read_rule(cursor_over(text, Dialect(flavor=self.flavor.value)), "partitioning")
        except (Stopped, SqlSyntaxError):
            return f"\n {text}"
        printed = self._partitioning(node)
        if printed is None:
            return f"\n {text}"
        return f"\n {printed}" if self.is_mariadb else f"\n/*!50100 {printed} */"

    def _partitioning(self, node: Partitioning) -> str | None:
        """The clause, if columns alone decide the partitions."""
        *linear, kind = node.kind.removesuffix(" COLUMNS").split(" ")
        is_columns = node.kind.endswith(" COLUMNS")
        columns = [each.parts[-1] for each in node.values if isinstance(each, Name)]
        if kind not in {"HASH", "KEY", "RANGE", "LIST", "SYSTEM_TIME"} or node.sub is not None:
            return None
        if node.limits:
            return None
        if len(columns) != len(node.values) or (
            len(columns) > 1 and not is_columns and kind != "KEY"
        ):
            return None
        is_bare = not self.is_mariadb and (kind == "KEY" or is_columns)
        names = ",".join(name if is_bare else _marked(name) for name in columns)
        names = f"({names})" * (kind != "SYSTEM_TIME")
        word = " ".join([*linear, kind])
        lines = [f"PARTITION BY {word}{'  COLUMNS' if is_columns else ' '}{names}"]
        if node.count is not None:
            lines.append(f"PARTITIONS {node.count}")
        if node.partitions:
            parts = [self._partition(each) for each in node.partitions]
            if None in parts:
                return None
            lines.append("(" + ",\n ".join(part for part in parts if part is not None) + ")")
        return "\n".join(lines)

    def _partition(self, node: Partition) -> str | None:
        if node.options or node.subpartitions or node.kind not in _PARTITIONS:
            return None
        printed = f"PARTITION {_marked(node.name) if self.is_mariadb else node.name}"
        if node.kind == "LESS THAN":
            values = (
                self.table.partitioning[node.values_at : node.values_end]
                if node.values
                else "MAXVALUE"
            )
            printed += f" VALUES LESS THAN {values}"
        elif node.kind in ("HISTORY", "CURRENT"):
            printed += f" {node.kind}"
        elif node.kind == "IN":
            printed += f" VALUES IN ({','.join(self.table.partitioning[each.at : each.end] for each in node.values)})"
        return f"{printed} ENGINE = {printed_engine(self.table.engine)}"
