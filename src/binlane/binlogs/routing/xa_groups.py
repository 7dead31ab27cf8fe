"""XA transactions in scoped binlogs: where one is prepared, it is finished, and nowhere else.

The binlog's `prepared` names the XA transactions of which it holds a part; its memory, those of
which it has nothing. A transaction in neither was prepared before the binlog saw the log, and may
hold anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from binlane.binlogs.routing.routing_memory import Memory, PassedXa
from binlane.binlogs.routing.row_selection import table_name
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import TableMapEvent
from binlane.log.grouping.event_group import EventGroup
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.xa import finished_by, prepared_by
from binlane.names import TableName
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.logged_statements import logged_statement

UNKNOWN: Final = "an XA transaction is committed that was prepared before this binlog began"


def prepared_in(events: Iterable[Event]) -> str | None:
    """The XA transaction that some events prepare."""
    return next(filter(None, map(prepared_by, events)), None)


def finished_in(events: Iterable[Event]) -> str | None:
    """The XA transaction that some events commit or roll back."""
    return next(filter(None, map(finished_by, events)), None)


def is_commit(event: Event) -> bool:
    """True if an event that finishes an XA transaction commits it."""
    return isinstance(event.body, QueryEvent) and event.body.query.startswith(b"XA COMMIT ")


def is_passed(memory: Memory, xid: str, scope: Scope) -> bool:
    """True if an XA transaction is known to hold nothing in scope."""
    return any(one.xid == xid and not any(map(scope.includes, one.tables)) for one in memory.passed)


def remembered(
    memory: Memory, group: EventGroup, format_: Format, *, is_held: bool | None
) -> Memory:
    """The memory behind a group, which mostly has nothing to do with XA transactions.

    Args:
        memory: Routing's memory before the group.
        group: Any group of the source.
        format_: Format of the FORMAT_DESCRIPTION before it.
        is_held: True if the binlog holds any part of it; None for an INCIDENT in its place, which
            has told of all that the transaction holds.
    """
    prepares, finishes = prepared_in(group.events), finished_in(group.events)
    if prepares is None and finishes is None:
        return memory
    kept = frozenset(one for one in memory.passed if one.xid not in (prepares, finishes))
    if prepares is not None and not is_held:
        tables = frozenset[TableName]() if is_held is None else _tables(group, format_)
        kept |= {PassedXa(prepares, tables)}
    return replace(memory, passed=kept)


def _tables(group: EventGroup, format_: Format) -> frozenset[TableName]:
    """All tables that a group names as changed."""
    found: set[TableName] = set()
    for event in expanded_all(group.events, file=group.file, format_=format_):
        if isinstance(event.body, TableMapEvent):
            found.add(table_name(event.body))
        elif isinstance(event.body, QueryEvent):
            found.update(logged_statement(event.body).effects().writes)
    return frozenset(found)
