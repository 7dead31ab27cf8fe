"""The statements of an event group that change no rows themselves: DDL, and what is like it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from binlane.codec.query import QueryEvent
from binlane.codec.transaction import GtidEvent
from binlane.grouping.event_group import EventGroup
from binlane.sql.logged_statements import LoggedStatement, is_undone, logged_statement

_TRANSACTION_STATEMENTS: Final = ("BEGIN", "COMMIT", "ROLLBACK")
_GAP: Final = rb"(?:\s | \#[^\n]*+ | --[\s][^\n]*+ | /\*(?!M?!)(?:[^*]|\*(?!/))*\*/)*"
_ROWS_ONLY: Final = re.compile(
    _GAP
    + rb"(?:BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|XA|INSERT|UPDATE|DELETE|REPLACE|LOAD|SELECT"
    + rb"|WITH|DO)\b",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement(LoggedStatement):
    """A statement of a log and its place there.

    Attributes:
        timestamp: When it ran, in seconds since 1970.
        gtid: Of its event group, as text.
        file: Base name of the binlog file.
        position: Of the event in it, in bytes.
    """

    timestamp: int
    gtid: str | None
    file: str
    position: int


def is_about_rows_only(query: bytes) -> bool:
    """Whether a logged text changes rows or transactions only, by its first word."""
    return _ROWS_ONLY.match(query) is not None


def statements(group: EventGroup) -> Iterator[Statement]:
    """The statements of a group, those that only delimit a transaction left out."""
    if group.is_control or not group.is_complete:
        return
    gtid = None if group.gtid is None else str(group.gtid)
    for event in group.events:
        body = event.body
        if isinstance(body, GtidEvent) and is_undone(body):
            return
        if not isinstance(body, QueryEvent):
            continue
        logged = logged_statement(body)
        text = _storable(logged.text)
        if text in _TRANSACTION_STATEMENTS or text.startswith(("SAVEPOINT", "XA ")):
            continue
        yield Statement(
            text=text,
            database=_storable(logged.database),
            sql_mode=logged.sql_mode,
            timestamp=event.header.timestamp,
            gtid=gtid,
            file=group.file,
            position=event.position,
        )


def _storable(text: str) -> str:
    """Text that can travel in Arrow strings, which bytes that are no text cannot."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
