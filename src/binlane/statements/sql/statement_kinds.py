"""Kinds of statements, and groups of them."""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import Final


class StatementKind(Enum):
    """Kind of a statement, as far as binlogs ask."""

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
    """The effects of the prepared statement stand in another text."""
    EXECUTE_IMMEDIATE = "execute immediate"
    DEALLOCATE = "deallocate"
    BINLOG = "binlog"
    """BINLOG 'base64': events as a statement, whose rows no text tells."""
    SIGNAL = "signal"
    SESSION = "session"
    """A statement that changes nothing that is logged: USE, SHOW, EXPLAIN, KILL …; the verb says which."""
    EMPTY = "empty"
    UNKNOWN = "unknown"


_DEFINING: Final = ("CREATE", "ALTER", "DROP")
_NO_VERBS: Final = frozenset(
    (
        StatementKind.TABLESPACE,
        StatementKind.SESSION,
        StatementKind.EMPTY,
        StatementKind.UNKNOWN,
    )
)
"""Kinds whose value is one word that no statement of the kind begins with."""
_KINDS: Final = {
    **{kind.value.upper(): kind for kind in StatementKind if kind not in _NO_VERBS},
    **{
        f"{verb} {word}": StatementKind[f"{verb}_ROUTINE"]
        for verb in _DEFINING
        for word in ("PROCEDURE", "FUNCTION")
    },
    **{
        f"{verb} {word}": kind
        for verb in _DEFINING
        for kind, words in (
            (StatementKind.ACCOUNT, ("USER", "ROLE")),
            (StatementKind.SERVER, ("SERVER",)),
            (StatementKind.TABLESPACE, ("TABLESPACE", "UNDO", "LOGFILE")),
        )
        for word in words
    },
    **dict.fromkeys(("GRANT", "REVOKE"), StatementKind.ACCOUNT),
    **dict.fromkeys(("TABLE", "VALUES", "WITH"), StatementKind.SELECT),
    **dict.fromkeys(("RESIGNAL", "GET"), StatementKind.SIGNAL),
    "LOAD": StatementKind.LOAD_DATA,
    "START": StatementKind.BEGIN,
    "ROLLBACK TO": StatementKind.ROLLBACK_TO,
    "RELEASE": StatementKind.RELEASE_SAVEPOINT,
    "UNLOCK": StatementKind.LOCK,
    "RENAME": StatementKind.RENAME_TABLE,
    "TRUNCATE": StatementKind.TRUNCATE_TABLE,
}
"""Kinds by the words that a statement begins with."""


@lru_cache
def kind_of(verb: str) -> StatementKind:
    """The kind of a statement, by as many of its first words as tell it."""
    words = verb.split(" ", 2)
    for known in (verb, " ".join(words[:2]), words[0]):
        if known in _KINDS:
            return _KINDS[known]
    return StatementKind.UNKNOWN


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
INSERTING_KINDS = frozenset((StatementKind.INSERT, StatementKind.REPLACE, StatementKind.LOAD_DATA))
WRITING_KINDS = INSERTING_KINDS | {StatementKind.UPDATE, StatementKind.DELETE}
READING_KINDS = frozenset((StatementKind.SELECT, StatementKind.DO, StatementKind.SET))
"""Kinds that change no rows but through functions."""
QUIET_KINDS = frozenset((StatementKind.SELECT, StatementKind.SESSION, StatementKind.EMPTY))
"""Kinds of which servers log nothing but the writes of functions in them."""
TABLE_MAKING_KINDS = frozenset(
    {
        *(StatementKind.CREATE_TABLE, StatementKind.CREATE_TABLE_LIKE),
        *(StatementKind.CREATE_TABLE_SELECT, StatementKind.CREATE_SEQUENCE),
    }
)
TABLE_DROPPING_KINDS = frozenset((StatementKind.DROP_TABLE, StatementKind.DROP_SEQUENCE))
CREATE_TABLE_KINDS = frozenset((StatementKind.CREATE_TABLE, StatementKind.CREATE_TABLE_SELECT))
VIEW_KINDS = frozenset(
    (StatementKind.CREATE_VIEW, StatementKind.ALTER_VIEW, StatementKind.DROP_VIEW)
)


# Their reads are foreign keys' other tables and sequences.
OF_THEIR_OWN = frozenset({StatementKind.CREATE_TABLE, StatementKind.ALTER_TABLE})
OPEN_ENDED_KINDS = frozenset(
    {
        *(StatementKind.SELECT, StatementKind.DO, StatementKind.CALL, StatementKind.COMPOUND),
        *(StatementKind.EXECUTE, StatementKind.EXECUTE_IMMEDIATE, StatementKind.BINLOG),
    }
)
"""Kinds whose effects the text alone does not tell."""
