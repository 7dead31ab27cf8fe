"""Which objects there are: what a log does not say of its tables, what a schema says of a server.

Made from a schema, or from nothing, and kept up to date by the DDL of a log or script. What it does
not know for sure it does not say. How DDL changes the objects stands in `table_ddl`, `object_ddl`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, Self, TypedDict, Unpack

from binlane.codec.charsets import charset_of
from binlane.codec.columns import Column
from binlane.codec.event import Event
from binlane.codec.query import QueryEvent
from binlane.codec.rows import TableMapEvent
from binlane.codec.status_vars import decode_status_vars
from binlane.codec.table_metadata import table_columns
from binlane.codec.transaction import GtidEvent
from binlane.codec.types import Flavor
from binlane.names import TableName
from binlane.sql.analysis import analyse
from binlane.sql.column_fit import fitted
from binlane.sql.comments import Version, server_text
from binlane.sql.cursor import Stopped
from binlane.sql.effects import StatementEffects, StatementKind
from binlane.sql.logged_statements import logged_statement
from binlane.sql.object_ddl import DATABASE_HANDLERS, OBJECT_HANDLERS
from binlane.sql.object_store import CatalogStatement
from binlane.sql.query_types.scope import Untyped
from binlane.sql.schema import Table
from binlane.sql.script import statements
from binlane.sql.select_columns import select_columns
from binlane.sql.sql_mode import quoting
from binlane.sql.stored_objects import StoredObjects
from binlane.sql.table_changes import query_of, with_selected
from binlane.sql.table_ddl import (
    TABLE_HANDLERS,
    Handler,
    is_left_alone,
    put_table,
    table_created,
)
from binlane.sql.table_definitions import TableDefinition
from binlane.sql.table_options import engine_name
from binlane.sql.tokens import SqlSyntaxError, line_of

_GAP: Final = r"(?:\s | \#[^\n]*+ | --[\s][^\n]*+ | /\*M?!\d*+ | /\*(?!M?!)(?:[^*]|\*(?!/))*\*/)*"
_TABLE_DDL: Final = re.compile(
    rf"{_GAP} (?:CREATE|ALTER|RENAME|DROP|SET{_GAP}STATEMENT)\b",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_ANY_CHANGE: Final = re.compile(
    rf"{_GAP} (?:CREATE|ALTER|RENAME|DROP|SET)\b", re.VERBOSE | re.DOTALL | re.IGNORECASE
)
# What begins like a statement that changes no object is not read: a dump is full of it.
_LOOKS_KNOWN: Final = re.compile(
    rf"{_GAP} (?:INSERT|REPLACE|UPDATE|DELETE|SELECT|LOCK|UNLOCK|BEGIN|START|COMMIT)\b",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_MAY_BE_DDL: Final = re.compile(rb"CREATE|ALTER|RENAME|DROP", re.IGNORECASE)
_USE: Final = re.compile(
    rf"{_GAP} USE\s+ (?: `((?:[^`]|``)+)` | ([^\s;`]+) ) \s*;?\s*\Z",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_TABLES_CACHED_MAX: Final = 1024
_LOG_HANDLERS: Final[Mapping[StatementKind, Handler]] = MappingProxyType(
    {**TABLE_HANDLERS, **DATABASE_HANDLERS}
)
_SERVER_HANDLERS: Final[Mapping[StatementKind, Handler]] = MappingProxyType(
    {**_LOG_HANDLERS, **OBJECT_HANDLERS}
)
_DEFAULT_ENGINE: Final = "INNODB"
_CONNECTIONS: Final = MappingProxyType(
    {
        Flavor.MARIADB: ("utf8mb4", "utf8mb4_general_ci"),
        Flavor.MYSQL: ("utf8mb4", "utf8mb4_0900_ai_ci"),
    }
)
_NO_COLUMNS: Final = TableDefinition(columns=())
_NOT_UNDERSTOOD: Final = "it is not understood"


@dataclass(frozen=True, slots=True)
class CatalogProblem:
    """A statement of which the catalog cannot tell what it does.

    Attributes:
        line: Of the script, from 1, where it is not understood.
        message: What is wrong.
        statement: The whole text.
    """

    line: int
    message: str
    statement: str


class SessionOptions(TypedDict, total=False):
    """What a session adds to the text of a statement.

    Attributes:
        sql_mode: Its bits.
        server_charset: Character set of databases that name none; None if it is not known.
        engine: default_storage_engine; that of the settings if None.
        temporary_engine: default_tmp_storage_engine; None for `engine`.
        connection: Character set and collation of literals.
    """

    sql_mode: int
    server_charset: str | None
    engine: str | None
    temporary_engine: str | None
    connection: tuple[str, str] | None


@dataclass(slots=True)
class SchemaCatalog(StoredObjects):
    """The objects of a server, or the columns of tables at one place in a log.

    Attributes:
        flavor: Of the server whose objects these are; None for those of a log, of which only tables
            are known, and not all of them.
        default_database: Of the last USE that `load` has seen.
        problems: What could not be understood.
        misfits: Why the definition of a table that the catalog knows was not used for it, by the
            first TABLE_MAP that it does not fit.
    """

    default_database: str = ""
    problems: list[CatalogProblem] = field(default_factory=list)
    misfits: dict[TableName, str] = field(default_factory=dict)
    _columns: dict[tuple[TableMapEvent, Flavor], tuple[Column, ...]] = field(default_factory=dict)
    _is_undone: bool = False

    @classmethod
    def of_tables(cls, tables: Iterable[Table]) -> Self:
        """The catalog of a log of which some tables are known."""
        found = cls()
        for table in tables:
            found._store.put(table)
        return found

    def copy(self) -> Self:
        """Another catalog with the same objects, which changes by itself."""
        return type(self)(
            flavor=self.flavor,
            version=self.version,
            default_database=self.default_database,
            problems=self.problems.copy(),
            _store=self._store.copy(),
        )

    def only(self, tables: Collection[TableName]) -> Self:
        """A copy that knows none but some tables: small, so that it travels."""
        store = self._store.copy()
        store.tables = {name: store.tables[name] for name in store.tables if name in tables}
        store.unknown.clear()
        return type(self)(flavor=self.flavor, version=self.version, _store=store)

    @property
    def tables(self) -> tuple[TableName, ...]:
        """The tables and sequences that it knows, without temporary ones."""
        return tuple(self._store.tables)

    def definition(self, table: TableName) -> TableDefinition | None:
        """The columns of a table that is not temporary; None if nothing is known."""
        found = self._store.tables.get(table)
        return None if found is None else found.definition

    # What a log's tables are asked for -----------------------------------------------------------

    def columns(self, table_map: TableMapEvent, *, flavor: Flavor) -> tuple[Column, ...]:
        """What log and catalog together tell of a table's columns.

        Args:
            table_map: Of a log of that flavor.
            flavor: Of the log.

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
            Whether the event changed what the catalog knows.

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
            server_charset=_server_charset(body),
        )

    def load(self, script: str, *, database: str = "", version: Version | None = None) -> None:
        """Run a script: a dump of tables' definitions, or any other; only its DDL counts.

        Args:
            script: As the command-line clients take it, with USE and DELIMITER.
            database: The default database before its first USE.
            version: Of the server, which tells the executable comments that it runs; None for all.
        """
        self.default_database = database
        end = 0
        for statement in statements(script):
            start = script.find(statement, end)
            end = start + len(statement)
            if used := _USE.match(statement):
                self.default_database = used[1].replace("``", "`") if used[1] else used[2]
                self._store.databases.setdefault(self.default_database, None)
                self.version = object()
                continue
            problems_before = len(self.problems)
            text = statement
            if version is not None and self.flavor is not None:
                text = server_text(statement, flavor=self.flavor, version=version).stored
            self.apply(text, database=self.default_database)
            if len(self.problems) > problems_before:
                found = self.problems.pop()
                line = line_of(script, start) + found.line - 1
                self.problems.append(CatalogProblem(line, found.message, statement))

    def load_statements(self, definitions: Iterable[tuple[str, str]]) -> None:
        """Run statements, each with its default database, such as a server's SHOW CREATE TABLE."""
        for database, statement in definitions:
            self.apply(statement, database=database)

    def apply(self, statement: str, *, database: str, **options: Unpack[SessionOptions]) -> bool:
        """Do what a statement does to the objects; no statement is an error.

        A table is unknown afterwards if the statement does to it what its text does not tell.

        Args:
            statement: Any one statement.
            database: Its default database.
            options: See `SessionOptions`.

        Returns:
            Whether the catalog changed.
        """
        if not (_TABLE_DDL if self.flavor is None else _ANY_CHANGE).match(statement):
            if self.flavor is not None and not _LOOKS_KNOWN.match(statement):
                self._note_unread(statement, database)
            return False
        quotes = quoting(options.get("sql_mode", 0))
        effects = analyse(statement, database=database, **quotes)
        handlers = _LOG_HANDLERS if self.flavor is None else _SERVER_HANDLERS
        handler = handlers.get(effects.kind)
        if handler is None:
            if effects.stopped_at is not None:
                self._note(statement, effects.stopped_at.offset, _NOT_UNDERSTOOD)
            return False
        if effects.is_temporary and self.flavor is None:
            return self._change_unknown_temporary(effects)
        changed = self._statement(statement, effects, database, options)
        try:
            if effects.stopped_at is not None:
                self._store.forget(*effects.writes)
                self._note(statement, effects.stopped_at.offset, _NOT_UNDERSTOOD)
            elif self.flavor is not None and effects.kind is StatementKind.CREATE_TABLE_SELECT:
                self._create_select(changed)
            else:
                handler(self._store, changed)
        except SqlSyntaxError as error:
            self._store.forget(*effects.writes)
            self._note(statement, error.offset, str(error))
        except Stopped as stopped:
            self._store.forget(*effects.writes)
            self._note(statement, stopped.token.offset, str(stopped))
        self._columns.clear()
        self.version = object()
        return True

    def _statement(
        self, text: str, effects: StatementEffects, database: str, options: SessionOptions
    ) -> CatalogStatement:
        default = self._store.settings.get("default_storage_engine") or _DEFAULT_ENGINE
        engine = engine_name(options.get("engine") or default)
        return CatalogStatement(
            text=text,
            effects=effects,
            quoting=quoting(options.get("sql_mode", 0)),
            database=database,
            server_charset=options.get("server_charset") or self.server_charset,
            flavor=self.flavor,
            engine=engine,
            temporary_engine=engine_name(options.get("temporary_engine") or engine),
            connection=options.get("connection"),
        )

    def _create_select(self, statement: CatalogStatement) -> None:
        if not is_left_alone(self._store, statement, statement.effects.writes[0]):
            put_table(self._store, statement, self._selected(statement))

    def _selected(self, statement: CatalogStatement) -> Table:
        """The table of a CREATE TABLE, with the columns of its SELECT."""
        table = table_created(self._store, statement, statement.effects.writes[0])
        query = query_of(statement.text, quoting=statement.quoting)
        if not query or self.flavor is None:
            return table
        try:
            selected = select_columns(
                query,
                objects=self,
                flavor=self.flavor,
                database=statement.database,
                quoting=statement.quoting,
                connection=statement.connection or _CONNECTIONS[self.flavor],
            )
        except Untyped:
            return replace(table, is_complete=False)
        return with_selected(table, selected)

    def _note_unread(self, statement: str, database: str) -> None:
        """Say it of a text that is no statement at all."""
        stopped_at = analyse(statement, database=database).stopped_at
        if stopped_at is not None:
            self._note(statement, stopped_at.offset, _NOT_UNDERSTOOD)

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
        if effects.kind is StatementKind.DROP_TABLE:
            for name in effects.drops:
                self._store.temporary.pop(name, None)
        elif effects.kind is not StatementKind.ALTER_TABLE:
            for name in effects.writes[:1]:
                self._store.temporary[name] = Table(
                    name=name, definition=_NO_COLUMNS, engine="", is_temporary=True
                )
        return False


def _server_charset(body: QueryEvent) -> str | None:
    """The server's character set when the statement ran."""
    for variable in decode_status_vars(body.status_vars):
        if variable.name == "CHARSET" and isinstance(variable.value, tuple):
            return charset_of(variable.value[2])
    return None
