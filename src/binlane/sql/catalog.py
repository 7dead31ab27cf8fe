"""Which objects there are: what a log does not say of its tables, what a schema says of a server.

Made from a schema, or from nothing, and kept up to date by the DDL of a log or script. What it does
not know for sure it does not say. How DDL changes the objects stands in `object_changes`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
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
from binlane.names import TableName, folded
from binlane.sql.accounts import ROOT, AccountName
from binlane.sql.evaluation.evaluator import Environment
from binlane.sql.facts import StatementEffects, StatementFacts, StatementKind
from binlane.sql.logged_columns import fitted
from binlane.sql.logged_statements import first_word, logged_statement
from binlane.sql.object_changes import LOG_HANDLERS, SERVER_HANDLERS, ObjectChange
from binlane.sql.reading import read
from binlane.sql.schema import Objects, Table
from binlane.sql.script import statements
from binlane.sql.servers import Dialect, Version
from binlane.sql.table_changes import engine_name
from binlane.sql.table_definitions import TableDefinition
from binlane.sql.tokens import SqlSyntaxError, line_of, server_text
from binlane.sql.tree.statements import Administration

_CHANGES: Final = frozenset({"CREATE", "ALTER", "RENAME", "DROP", "SET", "GRANT", "REVOKE"})
"""What statements begin with that change objects."""
_KNOWN: Final = frozenset(
    {
        *("INSERT", "REPLACE", "UPDATE", "DELETE", "SELECT", "LOCK", "UNLOCK", "BEGIN", "START"),
        "COMMIT",
    }
)
"""What begins so is not read: a dump is full of it."""
_MAY_BE_DDL: Final = re.compile(rb"CREATE|ALTER|RENAME|DROP", re.IGNORECASE)
_TABLES_CACHED_MAX: Final = 1024
_GENERATES: Final = "sql_generate_invisible_primary_key"
_NEWEST: Final = Dialect().version
_DEFAULT_ENGINE: Final = "INNODB"
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
        dialect: How it reads statements; None for that of `sql_mode`.
        generates_primary_key: sql_generate_invisible_primary_key; that of the settings if None.
        environment: Of whom variables in a query are.
        account: Who runs it.
        knows_accounts: There are no accounts beside those that are known.
    """

    sql_mode: int
    dialect: Dialect | None
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
        )

    def forget(self, *tables: TableName) -> None:
        """Know no more of tables and views than that they may exist."""
        self.version = object()
        self.store.forget(*tables)

    def restore(self, kept: Self) -> None:
        """Have again what a copy of this catalog has; that must not be used any longer."""
        self.default_database, self.version = kept.default_database, kept.version
        self.problems, self.store = kept.problems, kept.store

    def only(self, tables: Collection[TableName]) -> Self:
        """A copy that knows none but some tables: small, so that it travels."""
        store = self.store.copy()
        store.tables = {name: store.tables[name] for name in store.tables if name in tables}
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
        if version is not None:
            self.server_version = version
        end = 0
        for statement in statements(script):
            start = script.find(statement, end)
            end = start + len(statement)
            if first_word(statement) == "USE" and (used := self._used(statement)):
                self.default_database = used
                self.store.databases.setdefault(used, None)
                self.version = object()
                continue
            problems_before = len(self.problems)
            text = statement
            if version is not None and self.flavor is not None:
                text = server_text(
                    statement, Dialect(flavor=self.flavor.value, version=version)
                ).stored
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
        word = first_word(statement)
        if word not in _CHANGES:
            if self.flavor is not None and word not in _KNOWN:
                self._note_unread(statement, database)
            return False
        if self.ignores_case:
            database = folded(database)
        dialect = options.get("dialect") or self._dialect(options.get("sql_mode", 0))
        facts = read(statement, database=database, dialect=dialect)
        effects = facts.effects
        handlers = LOG_HANDLERS if self.flavor is None else SERVER_HANDLERS
        handler = handlers.get(effects.kind)
        if handler is None:
            if effects.stopped_at is not None:
                self._note(statement, effects.stopped_at.offset, _NOT_UNDERSTOOD)
            return False
        if effects.is_temporary and self.flavor is None:
            return self._change_unknown_temporary(effects)
        try:
            if effects.stopped_at is not None:
                self.store.forget(*effects.writes)
                self._note(statement, effects.stopped_at.offset, _NOT_UNDERSTOOD)
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
        )

    def _used(self, statement: str) -> str:
        """The database that USE names; empty if it is none."""
        node = read(statement, database="", dialect=self._dialect(0)).tree
        return node.name if isinstance(node, Administration) else ""

    def _dialect(self, sql_mode: int) -> Dialect:
        """How statements are read: a log's by the grammars of both flavors."""
        if self.flavor is None:
            return Dialect().with_mode(sql_mode)
        return Dialect(
            flavor=self.flavor.value,
            version=self.server_version or _NEWEST,
            lower_case_names=self.ignores_case,
        ).with_mode(sql_mode)

    def _note_unread(self, statement: str, database: str) -> None:
        """Say it of a text that is no statement at all."""
        stopped_at = read(statement, database=database, dialect=self._dialect(0)).effects.stopped_at
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
