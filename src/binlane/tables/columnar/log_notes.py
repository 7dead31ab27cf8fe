"""Items of a log beside rows, which a reader of rows may want given where they stand among the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

import pyarrow as pa

from binlane.errors import CodecError
from binlane.log.codec.control import IncidentEvent
from binlane.log.codec.event import Event
from binlane.log.codec.load_data import ExecuteLoadQueryEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import RowsEvent
from binlane.log.codec.transaction import GtidEvent
from binlane.log.grouping.event_group import EventGroup
from binlane.log.grouping.table_maps import TableMaps
from binlane.names import TableName
from binlane.statements.sql.logged_statements import (
    LoggedStatement,
    followed_statement,
    is_beside_tables,
)
from binlane.tables.columnar.builder import RowsSource

_HEAD_LENGTH: Final = 512


class LogNoteKind(Enum):
    """Kinds of items beside rows."""

    STATEMENT = "statement"
    """A statement that may bear on tables: DDL, or one that changes rows."""
    INCIDENT = "incident"
    """The source lost changes."""
    ROLLED_BACK = "rolled back"
    """A transaction with rows is rolled back in part; its rows are left out."""
    XA_UNKNOWN = "xa unknown"
    """An XA transaction is committed whose rows are not in the log."""
    ROWS = "rows"
    """Rows of an event cannot be decoded, though its checksum is right; they are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogNote:
    """Something that is no row; all rows before it were given before, those behind it come later.

    Attributes:
        event: The event that tells it; None of ROWS.
        place: Where the item counts: mostly its own place, in an XA transaction that of the XA
            COMMIT.
        tables: Tables whose rows are left out, of ROLLED_BACK and ROWS.
        what: The reason why rows are left out, of ROWS.
        is_wanted: Whether the reader's filter lets the item through, of STATEMENT.
    """

    kind: LogNoteKind
    event: Event | None
    place: RowsSource
    tables: tuple[TableName, ...] = ()
    what: str = ""
    is_wanted: bool = True


RowItem = pa.RecordBatch | LogNote
"""An item that a reader of rows gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOrigin:
    """Facts that all events of a group share, and the commit's place if it is an XA transaction.

    Attributes:
        file: Base name of the binlog file.
        start: Where the group begins, as `RowsSource.group` has it.
        micros: Microseconds since 1970 of the group's commit, 0 if the log does not tell.
        commit: The place of the XA COMMIT, at which all rows of the group then stand.
    """

    gtid: str | None
    file: str
    start: int
    micros: int
    commit: RowsSource | None = None

    @classmethod
    def of(cls, group: EventGroup) -> GroupOrigin:
        """Return the facts of a decoded group."""
        micros = getattr(group.events[0].body, "commit_micros", None)
        gtid = None if group.gtid is None else str(group.gtid)
        return cls(gtid=gtid, file=group.file, start=group.position, micros=micros or 0)

    @classmethod
    def of_commit(cls, commit: RowsSource) -> GroupOrigin:
        """Return the facts of the group that an XA COMMIT brings into effect."""
        return cls(
            gtid=commit.gtid,
            file=commit.file,
            start=-1 - commit.position,
            micros=commit.micros,
            commit=commit,
        )

    def source(self, event: Event) -> RowsSource:
        """Return the place at which an event of the group counts."""
        header, commit = event.header, self.commit
        return RowsSource(
            gtid=self.gtid,
            timestamp=header.timestamp if commit is None else commit.timestamp,
            file=self.file,
            position=event.position if commit is None else commit.position,
            group=self.start,
            micros=self.micros,
            server_id=header.server_id,
        )


def statement_of(event: Event) -> QueryEvent | None:
    """The statement that an event is; None if it is none."""
    body = event.body
    if isinstance(body, ExecuteLoadQueryEvent):
        return body.statement
    return body if isinstance(body, QueryEvent) else None


def may_concern_tables(event: Event) -> bool:
    """True if an event is a statement that may change tables or their rows, by its first words."""
    statement = statement_of(event)
    return statement is not None and not is_beside_tables(statement.query)


def is_about_views(event: Event) -> bool:
    """True if an event may be a statement that makes, renames or drops views, by its first words."""
    statement = statement_of(event)
    return statement is not None and b"VIEW" in statement.query[:_HEAD_LENGTH].upper()


def undecided(events: Sequence[Event]) -> tuple[LogNoteKind, Event] | None:
    """Return the event that makes a group's rows uncertain: lost changes, or a rollback of a part."""
    has_rows = any(isinstance(event.body, RowsEvent) for event in events)
    for event in events:
        if isinstance(event.body, IncidentEvent):
            return LogNoteKind.INCIDENT, event
        if has_rows and is_rollback(event):
            return LogNoteKind.ROLLED_BACK, event
    return None


def is_rollback(event: Event) -> bool:
    """True if an event takes back changes of its transaction."""
    return isinstance(event.body, QueryEvent) and event.body.query.startswith(b"ROLLBACK")


def tables_of(events: Sequence[Event], *, file: str) -> tuple[TableName, ...]:
    """The tables that a group has rows of, but for those inside of a TRANSACTION_PAYLOAD."""
    maps = TableMaps()
    found = (maps.feed(event, file=file) for event in events)
    return tuple(dict.fromkeys(each.name for each in found if each))


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
        thread_id: Id of the session that ran it; 0 where that is not told.
    """

    timestamp: int
    gtid: str | None
    file: str
    position: int
    is_wanted: bool = True
    told: tuple[TableName, ...] | None = None
    thread_id: int = 0


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
        thread_id=body.thread_id,
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
    place = GroupOrigin.of(group)
    for event in group.events:
        body = statement_of(event)
        if body is not None and may_concern_tables(event):
            yield statement_at(body, place.source(event))


def storable(text: str) -> str:
    """Text that can travel in Arrow strings, which bytes that are no text cannot."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


class TroubleKind(Enum):
    """Why the rows of a group are not what the source's tables then held."""

    INCIDENT = "incident"
    """The source lost changes here: any table may be meant."""
    STATEMENT = "statement"
    """Rows were changed by a statement, which the log does not follow with rows."""
    ROLLED_BACK = "rolled_back"
    """A transaction with rows was rolled back in part, and the log does not tell which rows stay."""
    XA_UNKNOWN = "xa_unknown"
    """An XA transaction is committed here that was prepared before the log's beginning."""
    ROWS = "rows"
    """Rows of a table cannot be decoded, though the log is whole: they are left out."""
    COLUMN = "column"
    """A table has a column that cannot stand beside those that a reader adds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A group that cannot be followed; the reader decides what becomes of its tables.

    Attributes:
        what: The trouble in one line for people.
        hint: Advice on what to do about it.
        tables: The tables that the group concerns; empty where the log does not tell, so all of
            them.
        gtid: GTID of the group, as text.
        file: Base name of the binlog file.
        position: Position of the event in that file, in bytes.
    """

    kind: TroubleKind
    what: str
    hint: str
    tables: tuple[TableName, ...] = ()
    gtid: str | None
    file: str
    position: int


RangeItem = pa.RecordBatch | Statement | Trouble
