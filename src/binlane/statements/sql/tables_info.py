"""The tables that a statement concerns, as extended Query events name them (seed 003, WL#40).

The event itself tells them, where its writer knew more than the text says, else the text does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from binlane.log.codec.query import QueryEvent
from binlane.names import TableName
from binlane.statements.sql.facts import StatementEffects
from binlane.statements.sql.logged_statements import is_about_transactions, logged_statement
from binlane.statements.sql.statement_kinds import DDL_KINDS, OPEN_ENDED_KINDS, StatementKind

INFO_MAX: Final = (1 << 16) - 1
"""Bytes that a statement, and what is told of its tables, may have each: lengths of 16 bits."""
_NAME_MAX: Final = 255
_BRACKETS: Final = frozenset({b"BEGIN", b"COMMIT", b"ROLLBACK"})
_OPEN_ENDED: Final = OPEN_ENDED_KINDS | {StatementKind.UNKNOWN}


def told_tables(body: QueryEvent) -> tuple[TableName, ...]:
    """The tables that an extended event names; those of the default database with its name.

    Raises:
        CodecError: If the event's text of tables is no list of tables.
    """
    database = body.database.decode("utf-8", "surrogateescape")
    return tuple(TableName(first or database, second) for first, second in body.tables)


def is_open_ended(effects: StatementEffects) -> bool:
    """True if a statement's text does not tell which tables it concerns."""
    return effects.stopped_at is not None or effects.kind in _OPEN_ENDED


def tables_of_text(body: QueryEvent) -> tuple[TableName, ...]:
    """The tables that a statement concerns by its text; none where that does not tell.

    Raises:
        CodecError: If the event's context is damaged.
    """
    if is_about_transactions(body.query):
        return ()
    effects = logged_statement(body).effects()
    return () if is_open_ended(effects) else effects.involved_tables


def contradiction(body: QueryEvent) -> str | None:
    """Describe the mismatch of an extended event's tables and text; None if there is none.

    Where a statement changes rows, views, functions and triggers bring in other tables than those
    that the text names. A statement that makes, changes or drops tables is about those alone.

    Raises:
        CodecError: If the event's context is damaged.
    """
    told = frozenset(told_tables(body))
    if is_about_transactions(body.query):
        # BEGIN and COMMIT of a group that makes a table have the name of that table.
        return None if not told or body.query in _BRACKETS else "it concerns no table"
    effects = logged_statement(body).effects()
    if is_open_ended(effects):
        return None
    named = frozenset(effects.involved_tables)
    is_exact = effects.kind in DDL_KINDS and effects.kind is not StatementKind.CREATE_TABLE_SELECT
    if told == named or not (is_exact or told <= named):
        return None
    texts = (", ".join(map(str, sorted(tables))) or "no table" for tables in (told, named))
    return "the event tells of {}, its text of {}".format(*texts)


def encode_tables(tables: Iterable[TableName], database: bytes) -> bytes | None:
    """Give tables as an extended event names them; None where they have no room in one.

    Args:
        tables: Tables in their order in the event.
        database: The event's default database, which is not written out.
    """
    data = bytearray()
    for table in tables:
        first = table.database.encode("utf-8", "surrogateescape")
        second = table.table.encode("utf-8", "surrogateescape")
        first = b"" if first == database else first
        if max(len(first), len(second)) > _NAME_MAX:
            return None
        data += bytes((len(first),)) + first + bytes((len(second),)) + second
    return bytes(data) if len(data) <= INFO_MAX else None
