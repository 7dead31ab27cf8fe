"""What a statement is about that is not understood to its end: what its first words tell.

A log may hold statements of newer servers than this package knows. Which kind they are, and which
object they make, change or drop, often stands before what is new in them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from binlane.names import ACCOUNT_DATABASE, TableName
from binlane.sql.dialect import Dialect
from binlane.sql.effects import StatementEffects, StatementKind
from binlane.sql.parser import cursor_over
from binlane.sql.parser.cursor import Cursor, Stopped
from binlane.sql.parser.programs import is_at_compound
from binlane.sql.parser.queries import read_object_name
from binlane.sql.tokens import NAME_KINDS, SqlSyntaxError, Token

_KINDS: Final = {
    "INSERT": StatementKind.INSERT,
    "REPLACE": StatementKind.REPLACE,
    "UPDATE": StatementKind.UPDATE,
    "DELETE": StatementKind.DELETE,
    "SELECT": StatementKind.SELECT,
    "TABLE": StatementKind.SELECT,
    "VALUES": StatementKind.SELECT,
    "LOAD": StatementKind.LOAD_DATA,
    "DO": StatementKind.DO,
    "CALL": StatementKind.CALL,
    "SET": StatementKind.SET,
    "BEGIN": StatementKind.BEGIN,
    "START": StatementKind.BEGIN,
    "COMMIT": StatementKind.COMMIT,
    "ROLLBACK": StatementKind.ROLLBACK,
    "SAVEPOINT": StatementKind.SAVEPOINT,
    "RELEASE": StatementKind.RELEASE_SAVEPOINT,
    "XA": StatementKind.XA,
    "LOCK": StatementKind.LOCK,
    "UNLOCK": StatementKind.LOCK,
    "FLUSH": StatementKind.FLUSH,
    "HANDLER": StatementKind.HANDLER,
    "PREPARE": StatementKind.PREPARE,
    "EXECUTE": StatementKind.EXECUTE,
    "DEALLOCATE": StatementKind.DEALLOCATE,
    "BINLOG": StatementKind.BINLOG,
    "SIGNAL": StatementKind.SIGNAL,
    "RESIGNAL": StatementKind.SIGNAL,
    "GET": StatementKind.SIGNAL,
    "GRANT": StatementKind.ACCOUNT,
    "REVOKE": StatementKind.ACCOUNT,
    "RENAME": StatementKind.RENAME_TABLE,
    "TRUNCATE": StatementKind.TRUNCATE_TABLE,
}
"""By first word."""
_DEFINITIONS: Final = ("CREATE", "ALTER", "DROP")
_OBJECTS: Final = {
    "TABLE": "TABLE",
    "TABLES": "TABLE",
    "SEQUENCE": "SEQUENCE",
    "INDEX": "INDEX",
    "VIEW": "VIEW",
    "DATABASE": "DATABASE",
    "SCHEMA": "DATABASE",
    "TRIGGER": "TRIGGER",
    "PROCEDURE": "ROUTINE",
    "FUNCTION": "ROUTINE",
    "EVENT": "EVENT",
    "PACKAGE": "PACKAGE",
    "LIBRARY": "LIBRARY",
    "USER": "",
    "ROLE": "",
    "SERVER": "",
    "TABLESPACE": "",
}
_TABLE_KINDS: Final = ("TABLE", "SEQUENCE")
_WORDS_MAX: Final = 24
"""Tokens in which the word for a kind of object stands, behind options such as DEFINER."""


def head(
    text: str, stopped_at: Token, database: str, dialect: Dialect
) -> tuple[str, StatementEffects]:
    """The verb of a statement, and what is known of what it does."""
    try:
        cursor = cursor_over(text, dialect)
    except SqlSyntaxError:
        return "", StatementEffects(kind=StatementKind.UNKNOWN, stopped_at=stopped_at)
    first = cursor.word
    if dialect.has_mariadb(10, 1) and is_at_compound(cursor):
        effects = StatementEffects(kind=StatementKind.COMPOUND, stopped_at=stopped_at)
        return "BEGIN NOT ATOMIC", effects
    try:
        if first in _DEFINITIONS:
            return _definition(cursor, stopped_at, database)
    except Stopped:
        return "", StatementEffects(kind=StatementKind.UNKNOWN, stopped_at=stopped_at)
    kind = _KINDS.get(first, StatementKind.UNKNOWN)
    return first if first in _KINDS else "", StatementEffects(kind=kind, stopped_at=stopped_at)


def _with(effects: StatementEffects, **found: Any) -> StatementEffects:
    return replace(effects, **found)


def _definition(cursor: Cursor, stopped_at: Token, database: str) -> tuple[str, StatementEffects]:
    """CREATE, ALTER and DROP: the kind of object, and its name."""
    first = cursor.advance().word
    is_temporary = False
    for _ in range(_WORDS_MAX):
        if cursor.word in _OBJECTS or cursor.is_at_end:
            break
        is_temporary |= cursor.advance().word == "TEMPORARY"
    word = cursor.word
    verb = f"{first} {'DATABASE' if word == 'SCHEMA' else word}"
    name = _OBJECTS.get(word)
    if not name:
        kind = StatementKind.ACCOUNT if name == "" else StatementKind.UNKNOWN
        if word in ("SERVER", "TABLESPACE"):
            kind = StatementKind[word]
        databases = () if kind is not StatementKind.ACCOUNT else (ACCOUNT_DATABASE,)
        return verb, StatementEffects(kind=kind, databases=databases, stopped_at=stopped_at)
    cursor.advance()
    if word == "PACKAGE" and cursor.accept("BODY"):
        verb += " BODY"
    if_exists = cursor.accept("IF", "EXISTS") or cursor.accept("IF", "NOT", "EXISTS")
    kind = StatementKind[f"{first}_{name}"]
    found = StatementEffects(
        kind=kind, is_temporary=is_temporary, if_exists=if_exists, stopped_at=stopped_at
    )
    if cursor.token.kind not in NAME_KINDS or name == "INDEX":
        return verb, found
    given = read_object_name(cursor)
    if name == "DATABASE":
        return verb, _with(found, databases=(given.name,))
    table = TableName(given.database if given.database is not None else database, given.name)
    if name == "TRIGGER" and first == "CREATE":
        own = _trigger_table(cursor, table.database)
        return verb, _with(found, objects=(table,), writes=own, databases=(table.database,))
    if name in _TABLE_KINDS:
        drops = (table,) if first == "DROP" else ()
        return verb, _with(found, writes=(table,), drops=drops)
    return verb, _with(found, objects=(table,), databases=(table.database,))


def _trigger_table(cursor: Cursor, database: str) -> tuple[TableName, ...]:
    """The table of a trigger: behind the first ON."""
    for _ in range(_WORDS_MAX):
        if cursor.is_at_end:
            return ()
        if cursor.accept("ON"):
            given = read_object_name(cursor)
            own = given.database if given.database is not None else database
            return (TableName(own, given.name),)
        cursor.advance()
    return ()
