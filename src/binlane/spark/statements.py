"""The statements of an event group that change no rows themselves: DDL, and what is like it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from binlane.codec.query import QueryEvent
from binlane.codec.status_vars import query_text, sql_mode
from binlane.codec.transaction import GtidEvent
from binlane.codec.types import GtidExtraFlag
from binlane.grouping.event_group import EventGroup
from binlane.sql.analysis import analyse
from binlane.sql.effects import StatementEffects

# Of a two-phase ALTER only the commit counts, which repeats the statement.
_NOT_DONE: Final = GtidExtraFlag.START_ALTER | GtidExtraFlag.ROLLBACK_ALTER
_ANSI_QUOTES: Final = 0x4
_NO_BACKSLASH_ESCAPES: Final = 0x100000
_TRANSACTION_STATEMENTS: Final = ("BEGIN", "COMMIT", "ROLLBACK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A statement of a log.

    Attributes:
        text: As logged.
        database: The session's default database.
        has_ansi_quotes: sql_mode ANSI_QUOTES.
        has_backslash_escapes: Not sql_mode NO_BACKSLASH_ESCAPES.
        timestamp: When it ran, in seconds since 1970.
        gtid: Of its event group, as text.
        file: Base name of the binlog file.
        position: Of the event in it, in bytes.
    """

    text: str
    database: str
    has_ansi_quotes: bool
    has_backslash_escapes: bool
    timestamp: int
    gtid: str | None
    file: str
    position: int

    def effects(self) -> StatementEffects:
        """What it does, by its text."""
        return analyse(
            self.text,
            database=self.database,
            ansi_quotes=self.has_ansi_quotes,
            no_backslash_escapes=not self.has_backslash_escapes,
        )


def statements(group: EventGroup) -> Iterator[Statement]:
    """The statements of a group, those that only delimit a transaction left out."""
    if group.is_control or not group.is_complete:
        return
    gtid = None if group.gtid is None else str(group.gtid)
    for event in group.events:
        body = event.body
        if isinstance(body, GtidEvent) and (body.flags_extra or 0) & _NOT_DONE:
            return
        if not isinstance(body, QueryEvent):
            continue
        # Bytes that are no text cannot travel in Arrow strings.
        text = (
            query_text(body).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        )
        if text in _TRANSACTION_STATEMENTS or text.startswith(("SAVEPOINT", "XA ")):
            continue
        mode = sql_mode(body) or 0
        yield Statement(
            text=text,
            database=body.database.decode("utf-8", "backslashreplace"),
            has_ansi_quotes=bool(mode & _ANSI_QUOTES),
            has_backslash_escapes=not mode & _NO_BACKSLASH_ESCAPES,
            timestamp=event.header.timestamp,
            gtid=gtid,
            file=group.file,
            position=event.position,
        )
