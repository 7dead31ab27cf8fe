"""Catalog of the existing objects, which completes a log's tables and stands for a server's schema.

The catalog is made from a schema, or from nothing, and kept up to date by the DDL of a log or
script. It gives only facts that are sure; the log's own facts always count more, and a definition
that does not fit the log's TABLE_MAP adds nothing at all. `object_changes` has the changes of
objects by DDL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, NamedTuple, Self, TypedDict, Unpack

from binlane.errors import UnsupportedError
from binlane.log.codec.charsets import BINARY, BINARY_COLLATION, charset_of, collation_of
from binlane.log.codec.columns import Column
from binlane.log.codec.event import Event
from binlane.log.codec.logical_types import LENGTHS, LogicalType
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import TableMapEvent
from binlane.log.codec.status_vars import decode_status_vars
from binlane.log.codec.table_metadata import table_columns
from binlane.log.codec.transaction import GtidEvent
from binlane.log.codec.types import ColumnType, Flavor
from binlane.names import TableName, folded
from binlane.statements.sql.accounts import ROOT, AccountName
from binlane.statements.sql.evaluation.evaluator import Environment
from binlane.statements.sql.facts import StatementEffects, StatementFacts, StatementKind
from binlane.statements.sql.logged_statements import first_word, logged_statement
from binlane.statements.sql.object_changes import LOG_HANDLERS, SERVER_HANDLERS, ObjectChange
from binlane.statements.sql.reading import read
from binlane.statements.sql.schema import ChildTables, CreationContext, Objects, Table
from binlane.statements.sql.script import statements
from binlane.statements.sql.script_session import ScriptSession
from binlane.statements.sql.servers import Dialect, Version
from binlane.statements.sql.table_changes import engine_name
from binlane.statements.sql.table_definitions import (
    TableColumn,
    TableDefinition,
)
from binlane.statements.sql.tokens import SqlSyntaxError, line_of, server_text
from binlane.statements.sql.tree.statements import Administration

_FLOAT: Final = (ColumnType.FLOAT, ColumnType.DOUBLE)
_DOUBLE: Final = (ColumnType.DOUBLE, ColumnType.FLOAT)
_DECIMAL: Final = (ColumnType.NEWDECIMAL,)
_DATETIME: Final = (ColumnType.DATETIME2, ColumnType.DATETIME)
_CHAR: Final = (ColumnType.STRING, ColumnType.BLOB, ColumnType.BLOB_COMPRESSED)
_VARCHAR: Final = (
    ColumnType.VARCHAR,
    ColumnType.VAR_STRING,
    ColumnType.VARCHAR_COMPRESSED,
    # Without strict mode a column that is too long becomes a TEXT or BLOB.
    ColumnType.BLOB,
)
_BLOB: Final = (ColumnType.BLOB, ColumnType.BLOB_COMPRESSED)
_GEOMETRY: Final = (ColumnType.GEOMETRY,)
LOGGED_TYPES: Final[Mapping[str, tuple[ColumnType, ...]]] = MappingProxyType(
    {
        **dict.fromkeys(("TINYINT", "INT1", "BOOL", "BOOLEAN"), (ColumnType.TINY,)),
        **dict.fromkeys(("SMALLINT", "INT2"), (ColumnType.SHORT,)),
        **dict.fromkeys(("MEDIUMINT", "INT3", "MIDDLEINT"), (ColumnType.INT24,)),
        **dict.fromkeys(("INT", "INTEGER", "INT4"), (ColumnType.LONG,)),
        **dict.fromkeys(("BIGINT", "INT8", "SERIAL"), (ColumnType.LONGLONG,)),
        **dict.fromkeys(("FLOAT", "FLOAT4"), _FLOAT),
        **dict.fromkeys(("FLOAT8", "DOUBLE", "REAL"), _DOUBLE),
        **dict.fromkeys(("DECIMAL", "NUMERIC", "DEC", "FIXED"), _DECIMAL),
        "NUMBER": (*_DECIMAL, ColumnType.DOUBLE),
        "BIT": (ColumnType.BIT,),
        "YEAR": (ColumnType.YEAR,),
        # With sql_mode ORACLE a DATE is a DATETIME.
        "DATE": (ColumnType.DATE, ColumnType.NEWDATE, *_DATETIME),
        "TIME": (ColumnType.TIME2, ColumnType.TIME),
        "DATETIME": _DATETIME,
        # With sql_mode MAXDB a TIMESTAMP is a DATETIME.
        "TIMESTAMP": (ColumnType.TIMESTAMP2, ColumnType.TIMESTAMP, *_DATETIME),
        **dict.fromkeys(("CHAR", "NCHAR", "BINARY"), _CHAR),
        **dict.fromkeys(("VARCHAR", "NVARCHAR", "VARCHAR2", "VARBINARY", "RAW"), _VARCHAR),
        **dict.fromkeys(("TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT", "CLOB"), _BLOB),
        **dict.fromkeys(("TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"), _BLOB),
        "ENUM": (ColumnType.ENUM,),
        "SET": (ColumnType.SET,),
        "JSON": (*_BLOB, ColumnType.JSON),
        "VECTOR": (*_VARCHAR, ColumnType.VECTOR),
        **dict.fromkeys(("UUID", "INET4", "INET6"), _CHAR),
        **dict.fromkeys(("GEOMETRY", "POINT", "LINESTRING", "POLYGON"), _GEOMETRY),
        **dict.fromkeys(("MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON"), _GEOMETRY),
        **dict.fromkeys(("GEOMETRYCOLLECTION", "GEOMCOLLECTION"), _GEOMETRY),
    }
)
"""Column types in the log of an SQL type, the usual one first; other SQL types fit any column."""

_TEXT_CHARSET: Final = "utf8mb4"
_GENERATED_PRIMARY_KEY: Final = 0x4
_MY_ROW_ID: Final = TableColumn(
    name="my_row_id", type_name="BIGINT", is_unsigned=True, is_visible=False
)
_ROW_START: Final = TableColumn(
    name="row_start", type_name="TIMESTAMP", arguments=("6",), is_visible=False, is_generated=True
)
_ROW_END: Final = replace(_ROW_START, name="row_end")
_ROW_HASH: Final = TableColumn(name="DB_ROW_HASH_", type_name="BIGINT", is_generated=True)
_DECIMAL_DEFAULT: Final = (10, 0)
_ONE_BYTE_MEMBERS_MAX: Final = 255

_FLOAT_DIGITS_MAX: Final = 24
_OWN_CODES: Final = {"JSON": ColumnType.JSON, "VECTOR": ColumnType.VECTOR}
"""Types that MySQL's log has a code for; MariaDB has columns of such types as text and bytes."""

_SIGNED_OR_NOT: Final = frozenset(
    {
        ColumnType.TINY,
        ColumnType.SHORT,
        ColumnType.INT24,
        ColumnType.LONG,
        ColumnType.LONGLONG,
        ColumnType.FLOAT,
        ColumnType.DOUBLE,
        ColumnType.NEWDECIMAL,
    }
)
_TEXT: Final = frozenset(
    {*LOGGED_TYPES["CHAR"], *LOGGED_TYPES["VARCHAR"], ColumnType.ENUM, ColumnType.SET}
)
_FRACTIONS: Final = frozenset({ColumnType.TIME2, ColumnType.DATETIME2, ColumnType.TIMESTAMP2})


def _of_type(own: TableColumn, *, is_mysql: bool = False) -> tuple[ColumnType, int] | None:
    """The type of a definition in the log and its metadata, without lengths of strings."""
    types = LOGGED_TYPES.get(own.type_name)
    if types is None:
        return None
    kind, numbers = types[0], tuple(map(_number, own.arguments[:2]))
    if is_mysql and own.type_name in _OWN_CODES:
        kind = _OWN_CODES[own.type_name]
    is_long = kind is ColumnType.FLOAT and len(numbers) == 1 and numbers[0] > _FLOAT_DIGITS_MAX
    if is_long or (own.type_name == "NUMBER" and not numbers):
        kind = ColumnType.DOUBLE
    metadata = 0
    if kind is ColumnType.NEWDECIMAL:
        precision, scale = numbers + _DECIMAL_DEFAULT[len(numbers) :]
        metadata = (precision or _DECIMAL_DEFAULT[0]) << 8 | scale
    elif kind is ColumnType.BIT:
        whole, rest = divmod(numbers[0] if numbers else 1, 8)
        metadata = whole << 8 | rest
    elif kind in _FRACTIONS:
        metadata = numbers[0] if numbers else 0
    return kind, metadata


def logged_column(definition: TableColumn) -> Column | None:
    """The column that a definition makes in the log, as far as its type goes.

    Text whose character set the definition does not name is text all the same.

    Returns:
        Without a name; None if the type is not known.
    """
    found = _of_type(definition)
    if found is None:
        return None
    is_bytes = definition.charset == BINARY
    return Column(
        index=0,
        type=found[0],
        metadata=found[1],
        is_nullable=definition.is_nullable,
        is_unsigned=definition.is_unsigned,
        collation_id=BINARY_COLLATION if is_bytes else collation_of(_TEXT_CHARSET),
    )


def fitted(
    columns: Sequence[Column],
    table: TableDefinition,
    table_map: TableMapEvent,
    *,
    flavor: Flavor,
) -> tuple[Column, ...] | str:
    """The columns of a TABLE_MAP with all that a definition adds.

    Returns:
        As many columns; or, as text, the reason why the definition is not that of the TABLE_MAP.
    """
    defined = _logged(columns, table, table_map)
    if len(defined) != len(columns):
        return f"the log has {len(columns)} columns, the schema {len(defined)}"
    for column, own in zip(columns, defined, strict=True):
        reason = _misfit(column, own)
        if reason:
            return f"column {column.index + 1}, {own.name}: {reason}"
    return tuple(_merged(column, own, flavor) for column, own in zip(columns, defined, strict=True))


def logged_form(own: TableColumn, index: int, *, is_mysql: bool) -> Column:
    """The column that a definition makes in the log, with all that the definition tells.

    Lengths of strings are left out; all else that decides its values and their types is there.

    Raises:
        UnsupportedError: If the column's type is not known.
    """
    found = _of_type(own, is_mysql=is_mysql)
    if found is None:
        raise UnsupportedError(f"column {own.name} is of type {own.type_name}, which is not known")
    kind, metadata = found
    bare = Column(index=index, type=kind, metadata=metadata, is_nullable=own.is_nullable)
    return _merged(bare, own, Flavor.MYSQL if is_mysql else Flavor.MARIADB)


def _logged(
    columns: Sequence[Column], table: TableDefinition, table_map: TableMapEvent
) -> list[TableColumn]:
    """A table's columns as the log has them: with those that the server hides."""
    defined = list(table.columns)
    is_hidden = table_map.flags & _GENERATED_PRIMARY_KEY
    if is_hidden and not (defined and defined[0].name.lower() == _MY_ROW_ID.name):
        defined.insert(0, _MY_ROW_ID)
    if table.is_versioned:
        defined += [_ROW_START, _ROW_END]
    if table.has_unique_key:
        extra = columns[len(defined) :]
        if all(column.type is ColumnType.LONGLONG for column in extra):
            defined += [
                replace(_ROW_HASH, name=f"{_ROW_HASH.name}{number}")
                for number in range(1, len(extra) + 1)
            ]
    return defined


def _misfit(column: Column, own: TableColumn) -> str:
    """Why a definition is not that of a column; empty if it can be."""
    if column.name is not None and column.name.lower() != own.name.lower():
        return f"the log calls it {column.name}"
    if column.type not in LOGGED_TYPES.get(own.type_name, (column.type,)):
        return f"it is {column.type.name} in the log, {own.type_name} in the schema"
    check = _CHECKS.get(column.type)
    if check is not None and not check(column, own):
        return f"it has another length in the log than {own.type_name}({', '.join(own.arguments)})"
    return ""


def _same_digits(column: Column, own: TableColumn) -> bool:
    if own.type_name == "NUMBER":
        return True
    numbers = tuple(map(_number, own.arguments))
    return (column.precision, column.scale) == numbers + _DECIMAL_DEFAULT[len(numbers) :]


def _same_fraction(column: Column, own: TableColumn) -> bool:
    digits = _number(own.arguments[0]) if own.arguments else 0
    return column.fraction_digits == digits


def _same_width(column: Column, own: TableColumn) -> bool:
    return column.bits == (_number(own.arguments[0]) if own.arguments else 1)


def _same_string(column: Column, own: TableColumn) -> bool:
    logical = _logical(own)
    return logical is None or column.length_max == LENGTHS.get(logical, column.length_max)


def _room_for_enum(column: Column, own: TableColumn) -> bool:
    return column.pack_length == (1 if len(own.arguments) <= _ONE_BYTE_MEMBERS_MAX else 2)


def _room_for_set(column: Column, own: TableColumn) -> bool:
    length = (len(own.arguments) + 7) // 8
    return column.pack_length == (8 if length > 4 else length)


_CHECKS: Final[Mapping[ColumnType, Callable[[Column, TableColumn], bool]]] = MappingProxyType(
    {
        ColumnType.NEWDECIMAL: _same_digits,
        **dict.fromkeys(_FRACTIONS, _same_fraction),
        ColumnType.BIT: _same_width,
        ColumnType.STRING: _same_string,
        ColumnType.ENUM: _room_for_enum,
        ColumnType.SET: _room_for_set,
    }
)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else -1


def _merged(column: Column, own: TableColumn, flavor: Flavor) -> Column:
    logical = _logical(own)
    if logical is LogicalType.JSON and flavor is Flavor.MYSQL:
        logical = None
    is_unsigned, collation_id = column.is_unsigned, column.collation_id
    if is_unsigned is None and column.type in _SIGNED_OR_NOT:
        is_unsigned = own.is_unsigned
    if collation_id is None and own.charset is not None and column.type in _TEXT:
        collation_id = collation_of(own.charset)
    members = column.members
    if members is None and column.type in {ColumnType.ENUM, ColumnType.SET}:
        members = _members(own, collation_id)
    return replace(
        column,
        name=own.name if column.name is None else column.name,
        is_unsigned=is_unsigned,
        collation_id=collation_id,
        members=members,
        is_visible=column.is_visible and own.is_visible,
        logical=logical,
        is_generated=own.is_generated,
        has_schema=True,
    )


def _logical(own: TableColumn) -> LogicalType | None:
    return LogicalType(own.type_name) if own.type_name in _LOGICAL_NAMES else None


_LOGICAL_NAMES: Final = frozenset(logical.value for logical in LogicalType)


def _members(own: TableColumn, collation_id: int | None) -> tuple[str, ...]:
    """Members as the server keeps them: without trailing spaces, unless they are bytes."""
    if collation_id == BINARY_COLLATION:
        return own.arguments
    return tuple(member.rstrip(" ") for member in own.arguments)


_CHANGES: Final = frozenset(
    {
        *("CREATE", "ALTER", "RENAME", "DROP", "SET", "GRANT", "REVOKE"),
        *("INSTALL", "UNINSTALL"),
    }
)
"""First words of statements that change objects."""
_KNOWN: Final = frozenset(
    {
        *("INSERT", "REPLACE", "UPDATE", "DELETE", "SELECT", "LOCK", "UNLOCK", "BEGIN", "START"),
        "COMMIT",
    }
)
"""First words of statements that are not read: a dump is full of them."""
_FILLS: Final = re.compile(
    r"""(?ix) (?:INSERT|REPLACE) \s+ (?:(?:LOW_PRIORITY|HIGH_PRIORITY|DELAYED|IGNORE) \s+)*
    (?:INTO \s+)? (?:(?P<database>`[^`]+`|[\w$]+) \s*\.\s*)? (?P<table>`[^`]+`|[\w$]+)"""
)
_MAY_BE_DDL: Final = re.compile(rb"CREATE|ALTER|RENAME|DROP", re.IGNORECASE)
_TABLES_CACHED_MAX: Final = 1024
_GENERATES: Final = "sql_generate_invisible_primary_key"
_NEWEST: Final = Dialect().version
_DEFAULT_ENGINE: Final = "INNODB"
_NO_COLUMNS: Final = TableDefinition(columns=())
_NOT_UNDERSTOOD: Final = "it is not understood"


@dataclass(frozen=True, slots=True)
class CatalogProblem:
    """A statement whose effect the catalog cannot tell.

    Attributes:
        line: Line of the script, from 1, where the text is not understood.
        message: Text that tells the cause.
        statement: The whole text of the statement.
    """

    line: int
    message: str
    statement: str


class ToldStatement(NamedTuple):
    """A statement that makes an object, as a server's SHOW CREATE gives it.

    Attributes:
        database: Default database of the statement.
        text: Text from the server's SHOW CREATE.
        context: Context in which a program is read and runs; None for objects that are no programs.
    """

    database: str
    text: str
    context: CreationContext | None = None


class SessionOptions(TypedDict, total=False):
    """State of a session that completes the text of a statement.

    Attributes:
        sql_mode: Bits of the session's sql_mode.
        charset: Character set as in `Dialect.charset`.
        server_charset: Character set of databases that name none; None if it is not known.
        engine: Value of default_storage_engine; None for that of the settings.
        temporary_engine: Value of default_tmp_storage_engine; None for `engine`.
        connection: Character set and collation of literals.
        dialect: Dialect of its statements; None for that of `context`, or of `sql_mode` and
            `charset`.
        context: Context of routines and triggers that the session makes; None if that is not known.
        generates_primary_key: Value of sql_generate_invisible_primary_key; None for that of the
            settings.
        environment: Environment with the variables of queries.
        account: Account that runs the statement.
        knows_accounts: True if there are no accounts beside those that are known.
    """

    sql_mode: int
    charset: str
    dialect: Dialect | None
    context: CreationContext | None
    generates_primary_key: bool | None
    server_charset: str | None
    engine: str | None
    temporary_engine: str | None
    connection: tuple[str, str] | None
    environment: Environment | None
    account: AccountName
    knows_accounts: bool


@dataclass(slots=True)
class SchemaCatalog(Objects):
    """The objects of a server, or the columns of tables at one place in a log.

    Attributes:
        flavor: Flavor of the server whose objects these are; None for those of a log, of which only
            tables are known, and not all of them.
        default_database: Database of the last USE that `load` has seen.
        problems: Statements that could not be understood.
        misfits: Why the definition of a table that the catalog knows was not used for it, by the
            first TABLE_MAP that it does not fit.
        filled: The tables that got rows, as far as statements tell; None where none were seen.
    """

    default_database: str = ""
    problems: list[CatalogProblem] = field(default_factory=list)
    misfits: dict[TableName, str] = field(default_factory=dict)
    filled: set[TableName] | None = None
    _columns: dict[tuple[TableMapEvent, Flavor], tuple[Column, ...]] = field(default_factory=dict)
    _is_undone: bool = False

    @classmethod
    def of_tables(cls, tables: Iterable[Table]) -> Self:
        """The catalog of a log of which some tables are known."""
        found = cls()
        for table in tables:
            found.store.put(table)
        return found

    def copy(self) -> Self:
        """Another catalog with the same objects, which changes by itself."""
        return type(self)(
            flavor=self.flavor,
            version=self.version,
            default_database=self.default_database,
            problems=self.problems.copy(),
            server_version=self.server_version,
            store=self.store.copy(),
            filled=None if self.filled is None else self.filled.copy(),
            knows_components=self.knows_components,
        )

    def forget(self, *tables: TableName) -> None:
        """Know no more of tables and views than that they may exist."""
        self.version = object()
        self.store.own()
        self.store.forget(*tables)

    def restore(self, kept: Self) -> None:
        """Have again what a copy of this catalog has; that must not be used any longer."""
        self.default_database, self.version = kept.default_database, kept.version
        self.problems, self.store, self.filled = kept.problems, kept.store, kept.filled

    def only(self, tables: Collection[TableName]) -> Self:
        """A copy that knows none but some tables: small, so that it travels."""
        store = self.store.copy()
        store.own()
        store.tables = {name: store.tables[name] for name in store.tables if name in tables}
        store.children = ChildTables()
        store.unknown.clear()
        return type(self)(flavor=self.flavor, version=self.version, store=store)

    @property
    def tables(self) -> tuple[TableName, ...]:
        """The tables and sequences that it knows, without temporary ones."""
        return tuple(self.store.tables)

    def definition(self, table: TableName) -> TableDefinition | None:
        """The columns of a table that is not temporary; None if nothing is known."""
        found = self.store.tables.get(table)
        return None if found is None else found.definition

    # Columns for the tables of a log -------------------------------------------------------------

    def columns(self, table_map: TableMapEvent, *, flavor: Flavor) -> tuple[Column, ...]:
        """Give a table's columns as log and catalog together tell them.

        Args:
            table_map: Event of a log of that flavor.
            flavor: Flavor of the server that wrote the log.

        Raises:
            CodecError: If the TABLE_MAP contradicts itself.
            UnsupportedError: If a column's type is unknown.
        """
        key = (table_map, flavor)
        known = self._columns.get(key)
        if known is None:
            if len(self._columns) >= _TABLES_CACHED_MAX:
                self._columns.clear()
            known = self._columns[key] = self._fit(table_map, flavor)
        return known

    def feed(self, event: Event) -> bool:
        """Follow a log, event by event.

        Returns:
            True if the event changed the catalog's knowledge.

        Raises:
            CodecError: If the status variables of a statement are damaged.
        """
        body = event.body
        if isinstance(body, GtidEvent):
            self._is_undone = body.is_undone
        if not isinstance(body, QueryEvent) or self._is_undone:
            return False
        if not _MAY_BE_DDL.search(body.query):
            return False
        logged = logged_statement(body)
        return self.apply(
            logged.text,
            database=logged.database,
            sql_mode=logged.sql_mode,
            charset=logged.charset,
            server_charset=_server_charset(body),
        )

    def load(self, script: str, *, database: str = "", version: Version | None = None) -> None:
        """Run a script: a dump of tables' definitions, or any other; only its DDL counts.

        Args:
            script: Script as the command-line clients take it, with USE and DELIMITER.
            database: The default database before its first USE.
            version: Version of the server, which tells the executable comments that it runs; None
                for all.
        """
        self.default_database = database
        if version is not None:
            self.server_version = version
        self.filled = set() if self.filled is None else self.filled
        end = 0
        session = ScriptSession(self._dialect(0), version)
        for statement in statements(script, lambda: session.dialect):
            start = script.find(statement, end)
            end = start + len(statement)
            if first_word(statement) == "USE" and (used := _used(statement, session.dialect)):
                self.default_database = used
                self.store.own()
                self.store.databases.setdefault(used, None)
                self.version = object()
                continue
            problems_before = len(self.problems)
            text = statement
            if version is not None and self.flavor is not None:
                text = server_text(statement, session.dialect).stored
            self.apply(
                text,
                database=self.default_database,
                dialect=session.dialect,
                context=session.context,
            )
            if (named := _FILLS.match(text)) is not None:
                database, table = named["database"] or self.default_database, named["table"]
                name = TableName(database.strip("`"), table.strip("`"))
                self.filled.add(name.folded if self.ignores_case else name)
            if first_word(text) == "SET":
                session.set(read(text, database="", dialect=session.dialect))
            if len(self.problems) > problems_before:
                found = self.problems.pop()
                line = line_of(script, start) + found.line - 1
                self.problems.append(CatalogProblem(line, found.message, statement))

    def load_statements(self, definitions: Iterable[ToldStatement]) -> None:
        """Run what a server told of its objects."""
        for told in definitions:
            self.apply(told.text, database=told.database, context=told.context)

    def apply(self, statement: str, *, database: str, **options: Unpack[SessionOptions]) -> bool:
        """Apply a statement to the objects; no statement is an error.

        A table is unknown afterwards if the statement changes it in a way that the text does not
        tell.

        Args:
            statement: Text of any one statement.
            database: Default database of the statement.
            options: State of the session; see `SessionOptions`.

        Returns:
            True if the catalog changed.
        """
        word = first_word(statement)
        if word not in _CHANGES:
            if self.flavor is not None and word not in _KNOWN:
                self._note_unread(statement, database, self._dialect_of(options))
            return False
        if self.ignores_case:
            database = folded(database)
        facts = read(statement, database=database, dialect=self._dialect_of(options))
        effects = facts.effects
        handlers = LOG_HANDLERS if self.flavor is None else SERVER_HANDLERS
        handler = handlers.get(effects.kind)
        if handler is None:
            if effects.stopped_at is not None:
                self._note(statement, effects.stopped_at.offset, facts.too_much or _NOT_UNDERSTOOD)
            return False
        if effects.is_temporary and self.flavor is None:
            return self._change_unknown_temporary(effects)
        self.store.own()
        try:
            if effects.stopped_at is not None:
                self.store.forget(*effects.writes)
                self._note(statement, effects.stopped_at.offset, facts.too_much or _NOT_UNDERSTOOD)
            else:
                handler(self._change(facts, database, options))
        except SqlSyntaxError as error:
            self.store.forget(*effects.writes)
            self._note(statement, error.offset, str(error))
        self._columns.clear()
        self.version = object()
        return True

    def _change(
        self, facts: StatementFacts, database: str, options: SessionOptions
    ) -> ObjectChange:
        settings = self.store.settings
        engine = engine_name(
            options.get("engine") or settings.get("default_storage_engine") or _DEFAULT_ENGINE
        )
        generates = options.get("generates_primary_key")
        if generates is None:
            generates = settings.get(_GENERATES, "OFF").upper() in {"ON", "1"}
        return ObjectChange(
            objects=self,
            facts=facts,
            database=database,
            server_charset=options.get("server_charset") or self.server_charset,
            engine=engine,
            temporary_engine=engine_name(options.get("temporary_engine") or engine),
            connection=options.get("connection"),
            generates_primary_key=generates and self.flavor is Flavor.MYSQL,
            environment=options.get("environment"),
            account=options.get("account", ROOT),
            knows_accounts=options.get("knows_accounts", False),
            context=options.get("context"),
        )

    def _dialect_of(self, options: SessionOptions) -> Dialect:
        """Give the dialect in which a session's statements are read."""
        dialect, context = options.get("dialect"), options.get("context")
        if dialect is not None:
            return dialect
        if context is not None:
            return self._dialect(0).in_modes(context.sql_mode)
        return self._dialect(options.get("sql_mode", 0), options.get("charset", ""))

    def _dialect(self, sql_mode: int, charset: str = "") -> Dialect:
        """Give the dialect of statements; a log's are read by the grammars of both flavors."""
        if self.flavor is None:
            return Dialect().with_mode(sql_mode, charset)
        return Dialect(
            flavor=self.flavor.value,
            version=self.server_version or _NEWEST,
            lower_case_names=self.ignores_case,
        ).with_mode(sql_mode, charset)

    def _note_unread(self, statement: str, database: str, dialect: Dialect) -> None:
        """Say it of a text that is no statement at all."""
        facts = read(statement, database=database, dialect=dialect)
        if facts.effects.stopped_at is not None:
            message = facts.too_much or _NOT_UNDERSTOOD
            self._note(statement, facts.effects.stopped_at.offset, message)

    def _note(self, statement: str, offset: int, message: str) -> None:
        self.problems.append(CatalogProblem(line_of(statement, offset), message, statement))

    def _fit(self, table_map: TableMapEvent, flavor: Flavor) -> tuple[Column, ...]:
        columns = table_columns(table_map, flavor=flavor)
        name = TableName(table_map.database, table_map.table)
        table = self.definition(name)
        if table is None:
            return columns
        found = fitted(columns, table, table_map, flavor=flavor)
        if isinstance(found, str):
            self.misfits.setdefault(name, found)
            return columns
        return found

    def _change_unknown_temporary(self, effects: StatementEffects) -> bool:
        """Note temporary tables of a log's sessions: without rows, but others may be LIKE them."""
        self.version = object()
        self.store.own()
        if effects.kind is StatementKind.DROP_TABLE:
            for name in effects.drops:
                self.store.temporary.pop(name, None)
        elif effects.kind is not StatementKind.ALTER_TABLE:
            for name in effects.writes[:1]:
                self.store.temporary[name] = Table(
                    name=name, definition=_NO_COLUMNS, engine="", is_temporary=True
                )
        return False


def _server_charset(body: QueryEvent) -> str | None:
    """The server's character set when the statement ran."""
    for variable in decode_status_vars(body.status_vars):
        if variable.name == "CHARSET" and isinstance(variable.value, tuple):
            return charset_of(variable.value[2])
    return None


def _used(statement: str, dialect: Dialect) -> str:
    """The database that USE names; empty if it is none."""
    node = read(statement, database="", dialect=dialect).tree
    return node.name if isinstance(node, Administration) else ""
