"""Which tables there are, with which columns: what a log does not say of its tables.

It is made from a schema, or from nothing, and kept up to date by the DDL in the log. What it does
not know for sure it does not say: then a column has no more than what the log tells.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ClassVar, Final

from binlane.codec.charsets import charset_of
from binlane.codec.columns import Column
from binlane.codec.event import Event
from binlane.codec.query import QueryEvent
from binlane.codec.rows import TableMapEvent
from binlane.codec.status_vars import decode_status_vars, query_text, sql_mode
from binlane.codec.table_metadata import table_columns
from binlane.codec.transaction import GtidEvent
from binlane.codec.types import Flavor, GtidExtraFlag
from binlane.names import TableName
from binlane.sql.analysis import analyse
from binlane.sql.column_changes import alter_actions
from binlane.sql.column_fit import fitted
from binlane.sql.cursor import Cursor, Stopped
from binlane.sql.effects import StatementEffects, StatementKind
from binlane.sql.script import statements
from binlane.sql.sql_mode import Quoting, quoting
from binlane.sql.table_definitions import (
    TableColumn,
    TableDefinition,
    alter_table,
    create_table,
    named_charset,
)
from binlane.sql.tokens import SqlSyntaxError, tokenise

_GAP: Final = r"(?:\s | \#[^\n]*+ | --[\s][^\n]*+ | /\*M?!\d*+ | /\*(?!M?!).*?\*/)*+"
_DDL: Final = re.compile(
    rf"{_GAP} (?:CREATE|ALTER|RENAME|DROP|SET{_GAP}STATEMENT)\b",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_MAY_BE_DDL: Final = re.compile(rb"CREATE|ALTER|RENAME|DROP", re.IGNORECASE)
_USE: Final = re.compile(
    rf"{_GAP} USE\s+ (?: `((?:[^`]|``)+)` | ([^\s;`]+) ) \s*;?\s*\Z",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
# Of a two-phase ALTER only the commit counts, which repeats the statement.
_NOT_DONE: Final = GtidExtraFlag.START_ALTER | GtidExtraFlag.ROLLBACK_ALTER
_TABLES_CACHED_MAX: Final = 1024
_SEQUENCE: Final = TableDefinition(
    columns=(
        *(
            TableColumn(name=name, type_name="BIGINT")
            for name in (
                *("next_not_cached_value", "minimum_value", "maximum_value"),
                *("start_value", "increment"),
            )
        ),
        TableColumn(name="cache_size", type_name="BIGINT", is_unsigned=True),
        TableColumn(name="cycle_option", type_name="TINYINT", is_unsigned=True),
        TableColumn(name="cycle_count", type_name="BIGINT"),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Statement:
    """A statement that may change the catalog, with what its session adds to its text."""

    text: str
    effects: StatementEffects
    quoting: Quoting
    server_charset: str | None


@dataclass(slots=True)
class SchemaCatalog:
    """The columns of tables, at one place in a log.

    Attributes:
        misfits: Why the definition of a table that the catalog knows was not used for it, by the
            first TABLE_MAP that it does not fit.
    """

    misfits: dict[TableName, str] = field(default_factory=dict)
    _tables: dict[TableName, TableDefinition] = field(default_factory=dict)
    _charsets: dict[str, str] = field(default_factory=dict)
    _temporary: set[TableName] = field(default_factory=set)
    _columns: dict[tuple[TableMapEvent, Flavor], tuple[Column, ...]] = field(default_factory=dict)
    _is_undone: bool = False

    @property
    def tables(self) -> tuple[TableName, ...]:
        """The tables and sequences that it knows."""
        return tuple(self._tables)

    def definition(self, table: TableName) -> TableDefinition | None:
        """What the catalog knows of a table; None if nothing."""
        return self._tables.get(table)

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
            self._is_undone = bool((body.flags_extra or 0) & _NOT_DONE)
        if not isinstance(body, QueryEvent) or self._is_undone:
            return False
        if not _MAY_BE_DDL.search(body.query):
            return False
        return self.apply(
            query_text(body),
            database=body.database.decode("utf-8", "surrogateescape"),
            sql_mode=sql_mode(body) or 0,
            server_charset=_server_charset(body),
        )

    def load(self, script: str, *, database: str = "") -> None:
        """Run a script: a dump of tables' definitions, or any other; only its DDL counts.

        Args:
            script: As the command-line clients take it, with USE and DELIMITER.
            database: The default database before its first USE.
        """
        for statement in statements(script):
            if used := _USE.match(statement):
                database = used[1].replace("``", "`") if used[1] else used[2]
            else:
                self.apply(statement, database=database)

    def load_statements(self, definitions: Iterable[tuple[str, str]]) -> None:
        """Run statements, each with its default database, such as a server's SHOW CREATE TABLE."""
        for database, statement in definitions:
            self.apply(statement, database=database)

    def apply(
        self,
        statement: str,
        *,
        database: str,
        sql_mode: int = 0,
        server_charset: str | None = None,
    ) -> bool:
        """Do what a statement does to tables; no statement is an error.

        A table is unknown afterwards if the statement does to it what its text does not tell.

        Args:
            statement: Any one statement.
            database: Its default database.
            sql_mode: Bits of its session's sql_mode.
            server_charset: Character set of databases that name none; None if it is not known.

        Returns:
            Whether the catalog changed.
        """
        if not _DDL.match(statement):
            return False
        quotes = quoting(sql_mode)
        effects = analyse(statement, database=database, **quotes)
        changed = _Statement(
            text=statement, effects=effects, quoting=quotes, server_charset=server_charset
        )
        handler = self._HANDLERS.get(effects.kind)
        if handler is None:
            return False
        try:
            if effects.is_temporary:
                return self._change_temporary(effects)
            if effects.stopped_at is None:
                handler(self, changed)
            else:
                self._forget(*effects.writes)
        except (SqlSyntaxError, Stopped):
            self._forget(*effects.writes)
        self._columns.clear()
        return True

    def _fit(self, table_map: TableMapEvent, flavor: Flavor) -> tuple[Column, ...]:
        columns = table_columns(table_map, flavor=flavor)
        name = TableName(table_map.database, table_map.table)
        table = self._tables.get(name)
        if table is None:
            return columns
        found = fitted(columns, table, table_map, flavor=flavor)
        if isinstance(found, str):
            self.misfits.setdefault(name, found)
            return columns
        return found

    def _forget(self, *tables: TableName) -> None:
        for table in tables:
            self._tables.pop(table, None)

    def _change_temporary(self, effects: StatementEffects) -> bool:
        """Note temporary tables, which have no rows in a log, but may be what others are LIKE."""
        if effects.kind is StatementKind.DROP_TABLE:
            self._temporary.difference_update(effects.drops)
        elif effects.kind is not StatementKind.ALTER_TABLE:
            self._temporary.update(effects.writes[:1])
        return False

    def _create_table(self, statement: _Statement) -> None:
        table = statement.effects.writes[0]
        if statement.effects.if_exists and table in self._tables:
            return
        self._tables[table] = create_table(
            statement.text,
            charset=self._charsets.get(table.database),
            quoting=statement.quoting,
        )

    def _create_like(self, statement: _Statement) -> None:
        table = statement.effects.writes[0]
        if statement.effects.if_exists and table in self._tables:
            return
        # A table may be like itself in another case, or like one that was found to be written.
        source = next(iter(statement.effects.reads), table)
        like = None if source in self._temporary else self._tables.get(source)
        if like is None:
            self._forget(table)
        else:
            self._tables[table] = like

    def _create_select(self, statement: _Statement) -> None:
        table = statement.effects.writes[0]
        if not (statement.effects.if_exists and table in self._tables):
            self._forget(table)

    def _create_sequence(self, statement: _Statement) -> None:
        self._tables[statement.effects.writes[0]] = _SEQUENCE

    def _create_index(self, statement: _Statement) -> None:
        for name in statement.effects.writes[:1]:
            if (table := self._tables.get(name)) and "UNIQUE" in statement.text.upper():
                self._tables[name] = replace(table, has_unique_key=True)

    def _alter_table(self, statement: _Statement) -> None:
        name = statement.effects.writes[0]
        if name in self._temporary:
            return
        table = self._tables.get(name)
        if table is not None:
            self._tables[name] = table = alter_table(
                table,
                statement.text,
                charset=self._charsets.get(name.database),
                quoting=statement.quoting,
            )
            for new in _parted_tables(statement):
                self._tables[TableName(new.database or name.database, new.table)] = table
        self._drop_tables(statement)
        self._rename(statement)

    def _rename(self, statement: _Statement) -> None:
        for old, new in statement.effects.renames:
            table = self._tables.pop(old, None)
            if table is not None:
                self._tables[new] = table

    def _drop_tables(self, statement: _Statement) -> None:
        self._forget(*statement.effects.drops)

    def _create_database(self, statement: _Statement) -> None:
        (database,) = statement.effects.databases
        charset = named_charset(list(tokenise(statement.text, **statement.quoting)))
        charset = charset or statement.server_charset
        if charset is not None and not (statement.effects.if_exists and database in self._charsets):
            self._charsets[database] = charset

    def _alter_database(self, statement: _Statement) -> None:
        (database,) = statement.effects.databases
        charset = named_charset(list(tokenise(statement.text, **statement.quoting)))
        if charset is not None:
            self._charsets[database] = charset

    def _drop_database(self, statement: _Statement) -> None:
        for database in statement.effects.databases:
            self._charsets.pop(database, None)
            self._forget(*[name for name in self._tables if name.database == database])

    _HANDLERS: ClassVar[Mapping[StatementKind, Callable[[SchemaCatalog, _Statement], None]]] = (
        MappingProxyType(
            {
                StatementKind.CREATE_TABLE: _create_table,
                StatementKind.CREATE_TABLE_LIKE: _create_like,
                StatementKind.CREATE_TABLE_SELECT: _create_select,
                StatementKind.CREATE_SEQUENCE: _create_sequence,
                StatementKind.CREATE_INDEX: _create_index,
                StatementKind.ALTER_TABLE: _alter_table,
                StatementKind.RENAME_TABLE: _rename,
                StatementKind.DROP_TABLE: _drop_tables,
                StatementKind.DROP_SEQUENCE: _drop_tables,
                StatementKind.CREATE_DATABASE: _create_database,
                StatementKind.ALTER_DATABASE: _alter_database,
                StatementKind.DROP_DATABASE: _drop_database,
            }
        )
    )


def _parted_tables(statement: _Statement) -> Iterable[TableName]:
    """Tables that ALTER TABLE … CONVERT PARTITION … TO TABLE makes; no database: the table's own."""
    for action in alter_actions(statement.text, **statement.quoting):
        cursor = Cursor(action)
        if cursor.accept("CONVERT", "PARTITION"):
            cursor.until(("TABLE",))
            cursor.expect("TABLE")
            database, table = cursor.qualified_name()
            yield TableName(database or "", table)


def _server_charset(body: QueryEvent) -> str | None:
    """The server's character set when the statement ran."""
    for variable in decode_status_vars(body.status_vars):
        if variable.name == "CHARSET" and isinstance(variable.value, tuple):
            return charset_of(variable.value[2])
    return None
