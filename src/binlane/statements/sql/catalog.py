"""Catalog of the existing objects, which completes a log's tables and stands for a server's schema.

The catalog is made from a schema, or from nothing, and kept up to date by the DDL of a log or
script. It gives only facts that are sure; the log's own facts always count more, and a definition
that does not fit the log's TABLE_MAP adds nothing at all. `object_changes` has the changes of
objects by DDL.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self, TypedDict, Unpack

from binlane.log.codec.types import Flavor
from binlane.names import TableName, folded
from binlane.statements.sql.accounts import ROOT, AccountName
from binlane.statements.sql.evaluation.known_names import Environment
from binlane.statements.sql.executable_comments import server_text
from binlane.statements.sql.facts import StatementEffects, StatementFacts
from binlane.statements.sql.logged_statements import first_word
from binlane.statements.sql.object_changes import SERVER_HANDLERS, ObjectChange
from binlane.statements.sql.object_store import Objects
from binlane.statements.sql.reading import read
from binlane.statements.sql.schema import CreationContext, Table
from binlane.statements.sql.script import statements
from binlane.statements.sql.script_session import ScriptSession
from binlane.statements.sql.servers import Dialect, Version
from binlane.statements.sql.statement_kinds import StatementKind
from binlane.statements.sql.table_changes import engine_name
from binlane.statements.sql.table_definitions import TableDefinition
from binlane.statements.sql.table_effects import LOG_HANDLERS
from binlane.statements.sql.tokens import SqlSyntaxError, line_of
from binlane.statements.sql.tree.statements import Administration

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
    """The objects of a server, or the tables of a script.

    Attributes:
        flavor: Flavor of the server whose objects these are; None where only tables are known, and
            not all of them.
        default_database: Database of the last USE that `load` has seen.
        problems: Statements that could not be understood.
        filled: The tables that got rows, as far as statements tell; None where none were seen.
    """

    default_database: str = ""
    problems: list[CatalogProblem] = field(default_factory=list)
    filled: set[TableName] | None = None

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

    @property
    def tables(self) -> tuple[TableName, ...]:
        """The tables and sequences that it knows, without temporary ones."""
        return tuple(self.store.tables)

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


def _used(statement: str, dialect: Dialect) -> str:
    """The database that USE names; empty if it is none."""
    node = read(statement, database="", dialect=dialect).tree
    return node.name if isinstance(node, Administration) else ""
