"""Logged statements that differ in their literals alone, and payloads in their rows, judged once.

The key of such a statement is its event's body behind thread and time, with the shape of its text;
that of a payload is in `payload_shapes`. `event_routing` judges it, as it would any: here is only
looked at whether its verdict holds for the others as well.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from binlane.binlogs.routing.cascades import dangers
from binlane.binlogs.routing.event_routing import route
from binlane.binlogs.routing.payload_cuts import PayloadCut
from binlane.binlogs.routing.routed_group import TEXT_LEFT_OUT
from binlane.binlogs.routing.routing_memory import Memory
from binlane.binlogs.routing.row_selection import table_name
from binlane.binlogs.routing.session_format import LOGGED_AS_STATEMENT
from binlane.binlogs.routing.texts import is_plain_shape
from binlane.errors import CodecError
from binlane.log.codec.client_text import AS_IT_IS
from binlane.log.codec.event import Event, EventHeader
from binlane.log.codec.format import Format
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import TableMapEvent, UpdateRowsEvent
from binlane.log.codec.statement_text import statement_charset
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import EventGroup
from binlane.log.grouping.inner import expanded
from binlane.statements.scope.definition import Definition

_JUDGED_MAX: Final = 4096


@lru_cache(_JUDGED_MAX)
def part_of(
    body: QueryEvent, definition: Definition, memory: Memory, format_: Format
) -> QueryEvent | str | None:
    """The form of all statements of a shape in a scoped binlog.

    Args:
        body: A statement whose text is the shape.
        definition: Definition of the binlog to route to.
        memory: Routing's memory of the groups before.
        format_: Format of the FORMAT_DESCRIPTION before the statements.

    Returns:
        The statement as it stands in the binlog; None if it is not there; the reason why the
        reference must look at each.

    Raises:
        CodecError: If the context is damaged.
    """
    if not is_plain_shape(body.query):
        return "a comment may hold what looks like a literal"
    if not body.query.isascii() and statement_charset(body) not in AS_IT_IS:
        return "its names are in another character set"
    header = EventHeader(
        timestamp=0, type_code=EventType.QUERY, server_id=0, length=0, next_position=0, flags=0
    )
    group = EventGroup(gtid=None, events=(Event(header, body, 0),), file="")
    routing = route(group, definition, format_, memory=memory)
    if routing.omissions != (LOGGED_AS_STATEMENT,) or routing.incident is not None:
        return "something of it is to be told"
    if routing.memory is not None:
        return "it bears on the groups behind it"
    if routing.group is None:
        return None
    (event,) = routing.group.events
    kept = event.body
    if not isinstance(kept, QueryEvent) or kept.query != body.query:
        return "its text changes"
    return kept


def payload_part(
    event: Event, definition: Definition, memory: Memory, format_: Format
) -> PayloadCut | bool | None:
    """Tell what becomes of all payloads of a shape in a binlog.

    Args:
        event: A payload of the shape.
        definition: Definition of the binlog to route to.
        memory: Routing's memory of the groups before.
        format_: Format of the FORMAT_DESCRIPTION before the payloads.

    Returns:
        True if they stay as they are, False if nothing of them does; the cut by which a part of
        them stays; None if the reference must look at each.
    """
    if definition.follows_cascades or _hangs_on_rows(event, definition, memory, format_):
        return None
    group = EventGroup(gtid=None, events=(event,), file="")
    try:
        routing = route(group, definition, format_, memory=memory)
    except CodecError:
        return None  # the reference tells where
    if routing.incident is not None or routing.memory is not None:
        return None
    if routing.group is None:
        return None if routing.omissions else False
    (cut,) = routing.group.events
    if cut == event:
        return None if routing.omissions else True
    texts_left = len(routing.omissions)
    if routing.omissions != (TEXT_LEFT_OUT,) * texts_left:
        return None
    return PayloadCut.of(event, cut, format_, texts_left=texts_left)


def _hangs_on_rows(event: Event, definition: Definition, memory: Memory, format_: Format) -> bool:
    """True if values of rows may decide: of parents that an update may give other keys."""
    known = dangers(memory.links, definition.scope)
    if not known:
        return False
    inside = [one.body for one in expanded(event, format_)]
    mapped = {table_name(body) for body in inside if isinstance(body, TableMapEvent)}
    has_updates = any(isinstance(body, UpdateRowsEvent) for body in inside)
    return has_updates and any(definition.scope.key(name) in known for name in mapped)
