"""Query events of a group, extended by the tables that they concern (seed 003).

The tables are those of the statement's text, unless the event itself tells more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from binlane.binlogs.routing.query_events import NO_TABLES, statement_of, with_statement
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.payload import TransactionPayloadEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.grouping.event_group import END_QUERIES
from binlane.log.grouping.inner import expanded
from binlane.statements.sql.logged_statements import (
    is_about_rows_only,
    is_about_transactions,
    logged_statement,
)
from binlane.statements.sql.statement_kinds import CREATE_TABLE_KINDS
from binlane.statements.sql.tables_info import INFO_MAX, encode_tables, tables_of_text, told_tables

_BEGIN: Final = b"BEGIN"


def with_tables_info(events: Sequence[Event], format_: Format) -> tuple[Event, ...] | None:
    """Give a group's events as a file has them whose Query events are extended.

    Args:
        events: A group, in any form.
        format_: Format of the FORMAT_DESCRIPTION before it.

    Returns:
        The events; None where one of them has no room in the extended form.

    Raises:
        CodecError: If a payload or the context of a statement is damaged.
    """
    found = list(_unpacked(events, format_))
    made = NO_TABLES
    for number, event in enumerate(found):
        statement = statement_of(event.body)
        if statement is None or is_about_transactions(statement.query):
            continue
        info = tables_info(statement)
        if info is None:
            return None
        if _makes_table(statement):
            made = info
        found[number] = with_statement(event, statement.in_form(info))
    for number, event in enumerate(found):
        statement = statement_of(event.body)
        if statement is not None and is_about_transactions(statement.query):
            info = made if _is_bracket(statement) else NO_TABLES
            found[number] = with_statement(event, statement.in_form(info))
    return tuple(found)


def tables_info(body: QueryEvent) -> bytes | None:
    """Make the tables info of a statement's event; None where it has no room there.

    Raises:
        CodecError: If the event's context or tables info is damaged.
    """
    query = body.query if body.record is None else body.record
    if len(query) > INFO_MAX:
        return None
    tables = told_tables(body) if body.tables_info else tables_of_text(body)
    return encode_tables(tables, body.database)


def _makes_table(statement: QueryEvent) -> bool:
    """True if rows behind a statement may be those that it fills a new table with."""
    if is_about_rows_only(statement.query):
        return False
    effects = logged_statement(statement).effects()
    return effects.kind in CREATE_TABLE_KINDS and not effects.is_temporary


def _is_bracket(statement: QueryEvent) -> bool:
    """True if a statement begins or ends the group."""
    return statement.query == _BEGIN or statement.query in END_QUERIES


def _unpacked(events: Sequence[Event], format_: Format) -> Iterator[Event]:
    """The events, those of a TRANSACTION_PAYLOAD in its place: its own would be of the other form."""
    for event in events:
        if not isinstance(event.body, TransactionPayloadEvent):
            yield event
            continue
        inside = expanded(event, format_)
        next(inside)
        for inner in inside:
            yield replace(inner, inner=0, carrier_length=0)
