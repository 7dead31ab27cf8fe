"""A Query event within a scope, without what lies outside; and in the form that its file has."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from binlane.errors import UnsupportedError
from binlane.log.codec.body import Body
from binlane.log.codec.client_text import text_of_name
from binlane.log.codec.compression import rewritten_record
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.load_data import ExecuteLoadQueryEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.statement_text import statement_bytes, statement_charset, statement_text
from binlane.log.codec.status_vars import (
    DDL_LOGGED_WITH_XID,
    GTID_FLAGS,
    StatusVar,
    decode_status_vars,
    encode_status_vars,
)
from binlane.log.codec.transaction import GtidEvent, XidEvent
from binlane.log.codec.types import ALTER_PHASES, ChecksumAlgorithm, Flavor
from binlane.statements.scope.scope import Scope

if TYPE_CHECKING:
    from binlane.statements.sql.facts import StatementEffects

THREAD_AND_TIME: Final = 8
"""Bytes of a QUERY's body before its context, which bear on nothing."""
PLAIN: Final = Format(
    server_version="",
    flavor=Flavor.MARIADB,
    checksum=ChecksumAlgorithm.NONE,
    post_header_lengths=b"",
)
"""Format of a body without anything of its log."""
UPDATED_DATABASES: Final = 12
"""Code of MySQL's status variable that names the databases a statement or transaction changes."""
_GTID_LENGTH_MIN: Final = 19
"""Least length of MariaDB's GTID event's body, which is its post-header."""
_QUOTED: Final = re.compile("`((?:[^`]|``)*)`")
NO_TABLES: Final = b""
"""Tables info of an event that concerns no table, or whose text alone tells its tables."""


def confined(body: QueryEvent, scope: Scope, effects: StatementEffects | None) -> QueryEvent:
    """The event with a default database that is in scope, or none, and no outside names beside it.

    Args:
        body: Event of a statement whose text may stand in the binlog.
        scope: Scope of the binlog to route to.
        effects: Effects of the statement; None where it names no object.
    """
    database = body.database.decode("utf-8", "surrogateescape")
    writes = () if effects is None else effects.writes
    inside = [table.database for table in writes if scope.includes(table)]
    if database and not scope.touches_database(database) and database not in inside:
        database = inside[0] if inside else ""
    data = database.encode("utf-8", "surrogateescape")
    return replace(
        body,
        database=data,
        status_vars=_confined_variables(body.status_vars, scope),
        tables_info=_confined_tables(body, scope, data) if body.tables_info else body.tables_info,
    )


def statement_of(body: Body) -> QueryEvent | None:
    """The statement that an event is, or holds; None where it is none."""
    if isinstance(body, ExecuteLoadQueryEvent):
        return body.statement
    return body if isinstance(body, QueryEvent) else None


def with_statement(event: Event, statement: QueryEvent) -> Event:
    """An event that is a statement, or holds one, with another in its place."""
    body = event.body
    if statement is statement_of(body):
        return event
    if isinstance(body, ExecuteLoadQueryEvent):
        return replace(event, body=replace(body, statement=statement))
    return replace(event, body=statement)


def with_ddl_xid(body: QueryEvent, group: Iterable[Event]) -> QueryEvent:
    """Give DDL of MySQL the number of its transaction, where it has room for an unknown one.

    Args:
        body: QUERY event of the statement.
        group: Events of the source's group, which tell the number; else the statement goes without.
    """
    unknown = StatusVar(DDL_LOGGED_WITH_XID, "DDL_LOGGED_WITH_XID", 0)
    if DDL_LOGGED_WITH_XID not in body.status_vars:
        return body
    variables = decode_status_vars(body.status_vars)
    if unknown not in variables:
        return body
    number = next((event.body.xid for event in group if isinstance(event.body, XidEvent)), None)
    known = () if number is None else (replace(unknown, value=number),)
    kept = [each for one in variables for each in (known if one == unknown else (one,))]
    return replace(body, status_vars=encode_status_vars(kept))


def without_phases(events: Iterable[Event], format_: Format) -> tuple[Event, ...]:
    """A group in which another statement stands for an ALTER in two phases: it has but one."""
    found = []
    for event in events:
        body = event.body
        if isinstance(body, GtidEvent) and body.flags_extra is not None:
            flags = body.flags_extra & ~ALTER_PHASES
            body = replace(body, flags_extra=flags, alter_sequence=None, padding=b"")
            missing = _GTID_LENGTH_MIN - len(body.encode(format_))
            body = replace(body, padding=bytes(max(0, missing)))
        elif isinstance(body, QueryEvent) and GTID_FLAGS in body.status_vars:
            kept = [one for one in decode_status_vars(body.status_vars) if one.code != GTID_FLAGS]
            body = replace(body, status_vars=encode_status_vars(kept))
        found.append(event if body is event.body else replace(event, body=body))
    return tuple(found)


def without_tables_info(events: Iterable[Event]) -> tuple[Event, ...]:
    """Events as a file has them whose Query events are not extended."""
    return tuple(
        event
        if (statement := statement_of(event.body)) is None or statement.tables_info is None
        else with_statement(event, statement.in_form(None))
        for event in events
    )


def with_text(body: QueryEvent, text: str) -> QueryEvent:
    """The event with another text, in the same character set.

    Raises:
        UnsupportedError: If the character set has not all of its characters.
    """
    if text == statement_text(body):
        return body
    query = statement_bytes(body, text)
    record = rewritten_record(query, body.record) if body.is_compressed else None
    tables_info = None if body.tables_info is None else NO_TABLES
    return replace(body, query=query, record=record, tables_info=tables_info)


def with_made_text(body: QueryEvent, text: str) -> QueryEvent:
    """The event with a text that has nothing of its own, but names in backticks as the server has them.

    Raises:
        UnsupportedError: If the character set has not all of its characters.
    """
    charset = statement_charset(body)

    def in_text(found: re.Match[str]) -> str:
        name = found[1].replace("``", "`")
        written = text_of_name(name, charset)
        if written is None:
            raise UnsupportedError(f"{found[0]} has no name in the character set of a client")
        return written

    return with_text(body, _QUOTED.sub(in_text, text))


def _confined_tables(body: QueryEvent, scope: Scope, database: bytes) -> bytes:
    """The tables that an event tells of and that are in scope.

    Args:
        body: QUERY event with tables info.
        scope: Scope of the binlog to route to.
        database: The default database that the event gets.
    """
    from binlane.statements.sql.tables_info import encode_tables, told_tables  # noqa: PLC0415  # parses SQL

    inside = encode_tables(filter(scope.includes, told_tables(body)), database)
    return NO_TABLES if inside is None else inside


def _confined_variables(data: bytes, scope: Scope) -> bytes:
    """The status variables with those names of changed databases that are in scope."""
    if UPDATED_DATABASES not in data:
        return data
    variables = decode_status_vars(data)
    kept = [variable for each in variables if (variable := _confined_variable(each, scope))]
    return data if kept == list(variables) else encode_status_vars(kept)


def _confined_variable(variable: StatusVar, scope: Scope) -> StatusVar | None:
    if variable.code != UPDATED_DATABASES or not isinstance(variable.value, tuple):
        return variable
    names = tuple(name for name in variable.value if scope.touches_database(name))
    return replace(variable, value=names) if names else None
