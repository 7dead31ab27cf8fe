"""The statements of a log that may change a server's objects: found among rows, and not read here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from binlane.binlogs.routing.session_format import odd_queries
from binlane.log.codec.event import Event
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import RowsEvent
from binlane.log.grouping.event_group import EventGroup, GroupTracker
from binlane.log.grouping.raw import Item, LargeGroup, RawRun
from binlane.positions import AnyGtid
from binlane.statements.sql.logged_statements import is_about_rows_only

_BRACKETS: Final = re.compile(rb"BEGIN|COMMIT|ROLLBACK|SAVEPOINT |XA ")


def logged_ddl(item: Item) -> Iterator[tuple[QueryEvent, AnyGtid | None]]:
    """Give the statements of the source's next item that may change objects.

    Args:
        item: A run of groups, a group that is not held, or a group that is.

    Yields:
        Each such statement, and the GTID of its group.

    Raises:
        CodecError: If an event of a group with such a statement is damaged.
    """
    if isinstance(item, RawRun):
        for event, text in sorted(odd_queries(item)):
            if _may_change(text):
                body = item.event(event).body
                assert isinstance(body, QueryEvent), "its type says so"
                yield body, item.gtid(item.group_of(event))
    elif isinstance(item, LargeGroup):
        # Only a table's own CREATE stands before rows: CREATE TABLE … SELECT.
        yield from _of(_before_rows(item.events()), item.gtid)
    else:
        yield from _of_group(item)


def _of_group(group: EventGroup) -> Iterator[tuple[QueryEvent, AnyGtid | None]]:
    return _of(group.events, group.gtid)


def _of(
    events: Iterable[Event], gtid: AnyGtid | None
) -> Iterator[tuple[QueryEvent, AnyGtid | None]]:
    for event in events:
        if isinstance(event.body, QueryEvent) and _may_change(event.body.query):
            yield event.body, gtid


def _before_rows(events: Iterable[Event]) -> Iterator[Event]:
    """The events of the first group up to its first rows."""
    tracker = GroupTracker()
    for event in events:
        if isinstance(event.body, RowsEvent):
            return
        place = tracker.feed(event)
        yield event
        if place.ends:
            return


def _may_change(text: bytes) -> bool:
    return _BRACKETS.match(text) is None and not is_about_rows_only(text)
