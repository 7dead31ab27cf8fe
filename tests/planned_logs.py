"""The same session's log in two formats, and the plans that make one of the other.

A plan's texts are those that a real server logged, its sections the rows that a real server logged:
what is made of both must be the first server's log again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace

from binlane.binlogs.routing.cut_group import CutGroup, Piece, cut_group
from binlane.live.provision.private_server import PrivateServer
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.format import MAGIC, Format
from binlane.log.codec.load_data import ExecuteLoadQueryEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.types import EventType
from binlane.log.codec.variables import IntvarEvent, IntvarKind
from binlane.log.grouping.event_group import EventGroup, group_events
from binlane.log.grouping.placing import place, place_group
from binlane.log.grouping.sections import RowsPiece
from binlane.log.grouping.walk import walk
from binlane.statements.scope.definition import Definition
from binlane.statements.session.group_plan import (
    EncodedEvent,
    Generated,
    GroupPlan,
    Part,
    RowsPart,
    TextPart,
    basis_of,
)
from tests.servers import connect, execute

TIME = 1_700_000_000
_ENDS = frozenset({EventType.XID, EventType.XA_PREPARE_LOG})
_END_QUERIES = (b"COMMIT", b"ROLLBACK", b"XA END")
_BEGINNINGS = (b"BEGIN", b"XA START")


class SourceLog:
    """What a server logged of one session.

    Attributes:
        description: The log's FORMAT_DESCRIPTION.
        format: What that says.
        groups: The event groups of the session.
    """

    def __init__(
        self, server: PrivateServer, binlog_format: str, statements: Sequence[str]
    ) -> None:
        """Run a session's statements, each a second behind the one before it."""
        ((before, *_),) = execute(server, "FLUSH BINARY LOGS", _status(server))
        with closing(connect(server)) as connection, connection.cursor() as cursor:
            cursor.execute(f"SET SESSION binlog_format = {binlog_format}")
            for number, statement in enumerate(statements):
                cursor.execute(f"SET timestamp = {TIME + number}")
                cursor.execute(statement)
        self._groups = list(_groups(server, str(before)))
        first = self._groups[0].events[0]
        assert isinstance(first.body, FormatDescriptionEvent)
        self._first = first
        self.description = first.body
        self.format: Format = first.body.format
        self.groups = [group for group in self._groups if not group.is_control]

    def written(self, groups: Sequence[EventGroup]) -> bytes:
        """A binlog file with some groups."""
        data = bytearray(MAGIC)
        data += place(self._first, len(data), self.format)
        for group in groups:
            data += place_group(group.events, len(data), self.format)
        return bytes(data)


def _status(server: PrivateServer) -> str:
    return "SHOW MASTER STATUS" if server.program.scheme == "mariadb" else "SHOW BINARY LOG STATUS"


def _groups(server: PrivateServer, first: str) -> Iterator[EventGroup]:
    # Written, but for what a session's end logs.
    deadline = time.monotonic() + 5
    while len(execute(server, "SHOW PROCESSLIST")) > 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    for path in sorted(server.data_directory.glob("binlog.[0-9]*")):
        if path.name >= first:
            yield from group_events(walk([path.read_bytes()], file=path.name), file=path.name)


def texts_of(group: EventGroup) -> tuple[tuple[Event, ...], ...]:
    """The statements of a group, each with its context."""
    found, context = list[tuple[Event, ...]](), list[Event]()
    for event in group.events[1:]:
        body = event.body
        if event.header.type_code in _ENDS:
            continue
        if isinstance(body, QueryEvent) and body.query.startswith((*_END_QUERIES, *_BEGINNINGS)):
            continue
        context.append(event)
        if isinstance(body, QueryEvent | ExecuteLoadQueryEvent):
            found.append(tuple(context))
            context = []
    assert not context, "a context belongs to a statement"
    return tuple(found)


def pieces_of(group: EventGroup, format_: Format) -> tuple[Piece, ...]:
    """The rows of a group."""
    cut = cut_group(group, format_)
    assert isinstance(cut, CutGroup), cut
    return cut.pieces


def section_of(pieces: Sequence[Piece]) -> tuple[RowsPiece, ...]:
    """What a plan says of some rows."""
    return tuple(
        RowsPiece(tuple(sorted(piece.mapped)), tuple(("any", table) for table in piece.changed))
        for piece in pieces
        if piece.mapped
    )


def is_control(text: Sequence[Event]) -> bool:
    """Whether a text is a statement on savepoints."""
    body = text[-1].body
    return isinstance(body, QueryEvent) and body.query.startswith((b"SAVEPOINT", b"ROLLBACK TO"))


def plan_of(
    rows: EventGroup,
    texts: EventGroup,
    definition: Definition,
    format_: Format,
    *,
    generated: dict[str, Generated] | None = None,
    as_rows: frozenset[int] = frozenset(),
) -> GroupPlan:
    """A plan by which a binlog has some texts in the places of a group's rows.

    Args:
        rows: The group.
        texts: The same group as statements.
        definition: Of the binlog.
        format_: Of both logs.
        generated: By the table that an INSERT names first, where its chosen values stand.
        as_rows: Statements that stay rows, by number.
    """
    pieces, statements = pieces_of(rows, format_), texts_of(texts)
    changing = [text for text in statements if not is_control(text)]
    if len(changing) == 1 and pieces:
        sections: list[Sequence[Piece]] = [pieces]
    else:
        assert len(pieces) in {0, len(changing)}, (pieces, statements)
        sections = [(piece,) for piece in pieces]
    parts: list[Part] = []
    number = 0
    for text in statements:
        if is_control(text) or not sections:
            parts.append(TextPart(_encoded(text, format_), None, None, text[-1].header.timestamp))
            continue
        if number in as_rows:
            parts.append(RowsPart(number))
        else:
            where = next(
                (one for name, one in (generated or {}).items() if name in _query(text)), None
            )
            parts.append(TextPart(_encoded(text, format_), number, where))
        number += 1
    last = texts.events[-1]
    is_lone = isinstance(last.body, QueryEvent) and not last.body.query.startswith(_END_QUERIES)
    has_own_end = is_lone and rows.events[-1].header.type_code != EventType.QUERY
    own_end = has_own_end or (is_lone and len(rows.events) > len(texts.events))
    return GroupPlan(
        sections=tuple(map(section_of, sections)),
        binlogs={definition.name: tuple(parts)},
        bases={definition.name: basis_of(definition)},
        ends={definition.name: None} if own_end else {},
    )


def _query(text: Sequence[Event]) -> str:
    body = text[-1].body
    assert isinstance(body, QueryEvent | ExecuteLoadQueryEvent)
    query = body if isinstance(body, QueryEvent) else body.statement
    return query.query.decode()


def _encoded(text: Sequence[Event], format_: Format) -> tuple[EncodedEvent, ...]:
    """The events of a text as a plan has them: what rows tell is left to them."""
    found = []
    for event in text:
        body = event.body
        if isinstance(body, IntvarEvent) and body.kind == IntvarKind.INSERT_ID:
            body = replace(body, value=0)
        found.append(EncodedEvent(event.header.type_code, body.encode(format_), event.header.flags))
    return tuple(found)


def comparable(events: Sequence[Event]) -> list[tuple[object, ...]]:
    """Events without what differs between two servers: ids, places, and what commits they had."""
    found: list[tuple[object, ...]] = []
    for event in events[1:]:
        body = event.body
        if isinstance(body, QueryEvent):
            is_frame = body.query.startswith((*_END_QUERIES, *_BEGINNINGS))
            variables = b"" if is_frame else body.status_vars
            shown: object = (body.query, body.database, variables)
        elif event.header.type_code == EventType.XID:
            shown = ""
        else:
            shown = body
        flags = 0 if isinstance(body, QueryEvent) and body.query == b"BEGIN" else event.header.flags
        found.append((event.header.type_name, event.header.timestamp, flags, shown))
    return found
