"""The statements of a log that may concern tables: DDL, and such as change rows themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from binlane.errors import CodecError
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.transaction import GtidEvent
from binlane.log.grouping.event_group import EventGroup
from binlane.names import TableName
from binlane.statements.sql.logged_statements import LoggedStatement, followed_statement
from binlane.tables.columnar.builder import RowsSource
from binlane.tables.columnar.told import GroupPlace, may_concern_tables, statement_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement(LoggedStatement):
    """A statement of a log and its place there.

    Attributes:
        timestamp: Time of the statement, in seconds since 1970.
        gtid: GTID of the event group, as text.
        file: Base name of the binlog file.
        position: Position of the event in that file, in bytes.
        is_wanted: Whether the reader's filter lets it through.
        told: The tables of its tables info; None if it has none.
    """

    timestamp: int
    gtid: str | None
    file: str
    position: int
    is_wanted: bool = True
    told: tuple[TableName, ...] | None = None


def statement_at(body: QueryEvent, place: RowsSource, *, is_wanted: bool = True) -> Statement:
    """A statement at its place.

    Raises:
        CodecError: If its status variables are damaged.
    """
    try:
        logged = followed_statement(body)
        told = _told(body) if body.tables_info else None
    except CodecError as error:
        raise error.at(place.file, place.position) from None
    return Statement(
        text=storable(logged.text),
        database=storable(logged.database),
        sql_mode=logged.sql_mode,
        charset=logged.charset,
        server_charset=logged.server_charset,
        timestamp=place.timestamp,
        gtid=place.gtid,
        file=place.file,
        position=place.position,
        is_wanted=is_wanted,
        told=told,
    )


def _told(body: QueryEvent) -> tuple[TableName, ...]:
    from binlane.statements.sql.tables_info import told_tables  # noqa: PLC0415 - few logs have tables info

    return told_tables(body)


def statements(group: EventGroup) -> Iterator[Statement]:
    """The statements of a group that may concern tables."""
    first = group.events[0].body
    is_without_effect = isinstance(first, GtidEvent) and first.is_undone
    if group.is_control or not group.is_complete or is_without_effect:
        return
    place = GroupPlace.of(group)
    for event in group.events:
        body = statement_of(event)
        if body is not None and may_concern_tables(event):
            yield statement_at(body, place.source(event))


def storable(text: str) -> str:
    """Text that can travel in Arrow strings, which bytes that are no text cannot."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
