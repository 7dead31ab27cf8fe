"""What CREATE, ALTER and DROP do to routines, triggers and events, with the bodies of new ones.

They belong to a database. What their bodies name counts as read: it has to exist where they run.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from binlane.sql.clauses import accept_if_exists, name_table
from binlane.sql.compound import read_body
from binlane.sql.cursor import Cursor
from binlane.sql.ddl import Reader, read_event_changes
from binlane.sql.draft import Draft
from binlane.sql.effects import StatementKind
from binlane.sql.tokens import TokenKind

_TYPE_WORDS: Final = ("UNSIGNED", "SIGNED", "ZEROFILL", "BINARY", "ASCII")


def read_create_procedure(cursor: Cursor, draft: Draft) -> None:
    """CREATE PROCEDURE."""
    draft.kind = StatementKind.CREATE_ROUTINE
    _read_name(cursor, draft)
    if cursor.token.text == "(":
        cursor.group()
    _skip_characteristics(cursor)
    _read_routine_body(cursor, draft)


def read_create_function(cursor: Cursor, draft: Draft) -> None:
    """CREATE FUNCTION, stored or from a shared library."""
    draft.kind = StatementKind.CREATE_ROUTINE
    _read_name(cursor, draft)
    if cursor.token.text == "(":
        cursor.group()
    if not cursor.accept("RETURN"):  # of sql_mode ORACLE
        cursor.expect("RETURNS")
    skip_type(cursor)
    if cursor.accept("SONAME"):
        draft.options.add("SONAME")
        cursor.advance()
        return
    _skip_characteristics(cursor)
    _read_routine_body(cursor, draft)


def read_create_trigger(cursor: Cursor, draft: Draft) -> None:
    """CREATE TRIGGER: its table counts as written, for what it does changes."""
    draft.kind = StatementKind.CREATE_TRIGGER
    accept_if_exists(cursor, draft)
    draft.objects[draft.resolve(cursor.qualified_name())] = None
    cursor.until(("ON",))
    cursor.expect("ON")
    draft.write(name_table(cursor, draft))
    cursor.expect("FOR", "EACH", "ROW")
    if cursor.accept_any(("FOLLOWS", "PRECEDES")):
        cursor.identifier()
    _read_named_body(cursor, draft)


def read_create_event(cursor: Cursor, draft: Draft) -> None:
    """CREATE EVENT."""
    draft.kind = StatementKind.CREATE_EVENT
    _read_name(cursor, draft)
    cursor.until(("DO",))
    cursor.expect("DO")
    _read_named_body(cursor, draft)


def read_alter_event(cursor: Cursor, draft: Draft) -> None:
    """ALTER EVENT."""
    read_event_changes(cursor, draft)
    if cursor.accept("DO"):
        _read_named_body(cursor, draft)


def read_alter_routine(cursor: Cursor, draft: Draft) -> None:
    """ALTER PROCEDURE and ALTER FUNCTION."""
    draft.kind = StatementKind.ALTER_ROUTINE
    _read_name(cursor, draft)
    _skip_characteristics(cursor)


def read_drop_routine(cursor: Cursor, draft: Draft) -> None:
    """DROP PROCEDURE and DROP FUNCTION."""
    draft.kind = StatementKind.DROP_ROUTINE
    _read_name(cursor, draft)


def read_create_package(cursor: Cursor, draft: Draft) -> None:
    """CREATE PACKAGE and CREATE PACKAGE BODY of MariaDB; the routines in it are left alone."""
    draft.kind = StatementKind.CREATE_PACKAGE
    _read_package_name(cursor, draft)
    cursor.rest()


def read_drop_package(cursor: Cursor, draft: Draft) -> None:
    """DROP PACKAGE and DROP PACKAGE BODY."""
    draft.kind = StatementKind.DROP_PACKAGE
    _read_package_name(cursor, draft)


def _read_package_name(cursor: Cursor, draft: Draft) -> None:
    if cursor.accept("BODY"):
        draft.verb += " BODY"
    _read_name(cursor, draft)


def read_create_library(cursor: Cursor, draft: Draft) -> None:
    """CREATE LIBRARY of MySQL."""
    draft.kind = StatementKind.CREATE_LIBRARY
    _read_name(cursor, draft)
    cursor.rest()


def read_alter_library(cursor: Cursor, draft: Draft) -> None:
    """ALTER LIBRARY."""
    draft.kind = StatementKind.ALTER_LIBRARY
    _read_name(cursor, draft)
    cursor.rest()


def read_drop_library(cursor: Cursor, draft: Draft) -> None:
    """DROP LIBRARY."""
    draft.kind = StatementKind.DROP_LIBRARY
    _read_name(cursor, draft)


CREATE: Final[Mapping[str, Reader]] = MappingProxyType(
    {
        "PROCEDURE": read_create_procedure,
        "FUNCTION": read_create_function,
        "TRIGGER": read_create_trigger,
        "EVENT": read_create_event,
        "PACKAGE": read_create_package,
        "LIBRARY": read_create_library,
    }
)
ALTER: Final[Mapping[str, Reader]] = MappingProxyType(
    {
        "PROCEDURE": read_alter_routine,
        "FUNCTION": read_alter_routine,
        "EVENT": read_alter_event,
        "LIBRARY": read_alter_library,
    }
)
DROP: Final[Mapping[str, Reader]] = MappingProxyType(
    {
        "PROCEDURE": read_drop_routine,
        "FUNCTION": read_drop_routine,
        "PACKAGE": read_drop_package,
        "LIBRARY": read_drop_library,
    }
)


def _read_name(cursor: Cursor, draft: Draft) -> None:
    accept_if_exists(cursor, draft)
    draft.change_object(draft.resolve(cursor.qualified_name()))


def _read_named_body(cursor: Cursor, draft: Draft) -> None:
    # It runs in the database of its program, whatever the default one is when that is made.
    database = next(iter(draft.objects)).database
    body = Draft(database, draft.text)
    draft.body_offset = cursor.token.offset
    try:
        read_body(cursor, body)
    finally:
        draft.refer_to(body)


def _read_routine_body(cursor: Cursor, draft: Draft) -> None:
    """A body of SQL; one of JavaScript, or of sql_mode ORACLE, is only gone behind."""
    if cursor.accept("USING"):
        cursor.group()
    if cursor.word in ("AS", "IS"):
        draft.body_offset = cursor.token.offset
        cursor.rest()
    else:
        _read_named_body(cursor, draft)


def skip_type(cursor: Cursor) -> None:
    """A column type, as far as it goes."""
    if cursor.accept("TYPE", "OF") or cursor.accept("ROW", "TYPE", "OF"):
        cursor.identifier()
        while cursor.accept_operator("."):
            cursor.identifier()
        return
    cursor.accept("NATIONAL")
    cursor.identifier()
    cursor.accept_any(("PRECISION", "VARYING"))
    if cursor.token.text == "(":
        cursor.group()
    while True:
        if cursor.accept("CHARACTER", "SET") or cursor.accept_any(("CHARSET", "COLLATE")):
            cursor.identifier()
        elif not cursor.accept_any(_TYPE_WORDS):
            return


def _skip_characteristics(cursor: Cursor) -> None:
    """What stands between the head of a routine and its body."""
    while True:
        if cursor.accept("COMMENT"):
            if cursor.token.kind is not TokenKind.STRING:
                raise cursor.stop("a string")
            cursor.advance()
        elif cursor.accept("SQL", "SECURITY") or cursor.accept("LANGUAGE"):
            cursor.identifier()
        elif not (
            cursor.accept("NOT", "DETERMINISTIC")
            or cursor.accept("DETERMINISTIC")
            or cursor.accept("CONTAINS", "SQL")
            or cursor.accept("NO", "SQL")
            or cursor.accept("READS", "SQL", "DATA")
            or cursor.accept("MODIFIES", "SQL", "DATA")
        ):
            return
