"""What one statement does to named objects.

Values only; `fact_finder` makes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from binlane.names import TableName
from binlane.sql.tokens import Token


class StatementKind(Enum):
    """What a statement is, as far as binlogs ask."""

    __hash__ = object.__hash__  # members are unique; Enum's own is no C function

    CREATE_TABLE = "create table"
    CREATE_TABLE_LIKE = "create table like"
    CREATE_TABLE_SELECT = "create table select"
    ALTER_TABLE = "alter table"
    RENAME_TABLE = "rename table"
    DROP_TABLE = "drop table"
    TRUNCATE_TABLE = "truncate table"
    CREATE_INDEX = "create index"
    DROP_INDEX = "drop index"
    CREATE_SEQUENCE = "create sequence"
    ALTER_SEQUENCE = "alter sequence"
    DROP_SEQUENCE = "drop sequence"
    CREATE_VIEW = "create view"
    ALTER_VIEW = "alter view"
    DROP_VIEW = "drop view"
    CREATE_TRIGGER = "create trigger"
    DROP_TRIGGER = "drop trigger"
    CREATE_ROUTINE = "create routine"
    ALTER_ROUTINE = "alter routine"
    DROP_ROUTINE = "drop routine"
    CREATE_EVENT = "create event"
    ALTER_EVENT = "alter event"
    DROP_EVENT = "drop event"
    CREATE_PACKAGE = "create package"
    """MariaDB's, also its body: its routines are not looked at."""
    DROP_PACKAGE = "drop package"
    CREATE_LIBRARY = "create library"
    ALTER_LIBRARY = "alter library"
    DROP_LIBRARY = "drop library"
    CREATE_REFERENCE_SYSTEM = "create spatial reference system"
    DROP_REFERENCE_SYSTEM = "drop spatial reference system"
    CREATE_DATABASE = "create database"
    ALTER_DATABASE = "alter database"
    DROP_DATABASE = "drop database"
    ACCOUNT = "account management"
    SERVER = "server definition"
    TABLESPACE = "tablespace"
    MAINTENANCE = "table maintenance"
    FLUSH = "flush"
    INSERT = "insert"
    REPLACE = "replace"
    UPDATE = "update"
    DELETE = "delete"
    LOAD_DATA = "load data"
    SELECT = "select"
    DO = "do"
    CALL = "call"
    COMPOUND = "compound statement"
    SET = "set"
    BEGIN = "begin"
    COMMIT = "commit"
    ROLLBACK = "rollback"
    SAVEPOINT = "savepoint"
    ROLLBACK_TO = "rollback to savepoint"
    RELEASE_SAVEPOINT = "release savepoint"
    XA = "xa"
    LOCK = "lock"
    """LOCK TABLES, UNLOCK TABLES, LOCK INSTANCE FOR BACKUP, …; the verb says which."""
    HANDLER = "handler"
    PREPARE = "prepare"
    EXECUTE = "execute"
    """What the prepared statement does stands in another text."""
    EXECUTE_IMMEDIATE = "execute immediate"
    DEALLOCATE = "deallocate"
    BINLOG = "binlog"
    """BINLOG 'base64': events as a statement, whose rows no text tells."""
    SIGNAL = "signal"
    SESSION = "session"
    """What changes nothing that is logged: USE, SHOW, EXPLAIN, KILL …; the verb says which."""
    EMPTY = "empty"
    UNKNOWN = "unknown"

    @property
    def is_ddl(self) -> bool:
        """Whether it is logged as a statement in every logging mode."""
        return self in DDL_KINDS


DDL_KINDS = frozenset(
    kind
    for kind in StatementKind
    if kind.value.startswith(("create ", "alter ", "drop ", "rename ", "truncate "))
    or kind
    in (
        StatementKind.ACCOUNT,
        StatementKind.SERVER,
        StatementKind.TABLESPACE,
        StatementKind.MAINTENANCE,
        StatementKind.FLUSH,
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementEffects:
    """What a statement does to named objects, by its text alone.

    Tuples are in the order of the text, without repetition; of a body what it writes comes first.
    A name without a database got the default database; the empty one where there is none.

    Attributes:
        kind: What the statement is.
        writes: Tables and sequences changed, created or dropped. Of a RENAME: what has another
            name or content afterwards; a name that lives only within the statement is left out.
        reads: Other tables that it names: read, referred to by a foreign key, or used in the body
            of a view, trigger, routine or event.
        databases: Databases changed as such: created, altered, dropped, or getting or losing a
            view, routine, event or account (`mysql`).
        objects: Views, triggers, routines and events created, altered or dropped.
        calls: Procedures called, and functions called with their database. Functions without
            cannot be told from built-in ones by the text.
        renames: Old and new names, one after the other as the server does them.
        drops: Tables and sequences that are gone afterwards.
        is_temporary: It says TEMPORARY.
        if_exists: It says IF EXISTS or IF NOT EXISTS.
        stopped_at: Where the analysis did not understand the text; then everything above is only
            what was found before. None if all was understood.
    """

    kind: StatementKind
    writes: tuple[TableName, ...] = ()
    reads: tuple[TableName, ...] = ()
    databases: tuple[str, ...] = ()
    objects: tuple[TableName, ...] = ()
    calls: tuple[TableName, ...] = ()
    renames: tuple[tuple[TableName, TableName], ...] = ()
    drops: tuple[TableName, ...] = ()
    is_temporary: bool = False
    if_exists: bool = False
    stopped_at: Token | None = None

    @property
    def renamed_tables(self) -> tuple[TableName, ...]:
        """The tables that a rename is about: old names that it did not itself make before.

        Source: WL#40, 4.2: add t_i only if t_i != s_j for all j < i.
        """
        return tuple(
            old
            for index, (old, _) in enumerate(self.renames)
            if old not in (new for _, new in self.renames[:index])
        )

    @property
    def net_renames(self) -> tuple[tuple[TableName, TableName], ...]:
        """First and last name of each table renamed, names in between left out.

        `t1 TO tmp, t2 TO t1, tmp TO t2` gives t1 to t2 and t2 to t1.
        """
        first_names: dict[TableName, TableName] = {}
        for old, new in self.renames:
            first_names[new] = first_names.pop(old, old)
        return tuple((first, last) for last, first in first_names.items() if first != last)
