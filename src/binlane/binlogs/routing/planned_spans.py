"""A planned group as bytes → the bytes of a binlog's group: `planned_route` for the usual case.

A group of MariaDB's rows and their brackets, all of whose statements are there as texts, in a
binlog that takes all that they name. Rows are decoded only where they tell AUTO_INCREMENT values.
Whatever else a group, a plan or a binlog is, is for the reference.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from struct import Struct
from typing import Final

from binlane.binlogs.routing.cascades import dangers
from binlane.binlogs.routing.cut_group import MARKS, is_same_group
from binlane.binlogs.routing.generated import Chosen, first_chosen
from binlane.binlogs.routing.query_events import confined
from binlane.binlogs.routing.routing_memory import Memory
from binlane.binlogs.routing.row_selection import table_name
from binlane.binlogs.routing.texts import names_in_statement
from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.event import decode_event
from binlane.log.codec.format import CHECKSUM_LENGTH, HEADER_LENGTH, Format
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.types import EventType, RowsFlag
from binlane.log.codec.variables import IntvarKind
from binlane.log.grouping.raw import RawRun
from binlane.log.kernels import layout
from binlane.names import TableName
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.scope import Scope
from binlane.statements.session.group_plan import EncodedEvent, GroupPlan, TextPart, basis_of
from binlane.statements.sql.logged_statements import is_about_rows_only

_HEADER: Final = Struct("<IBIIIH")
_POSITION_MASK: Final = (1 << 32) - 1
_FLAGS: Final = HEADER_LENGTH + 6
_INTVAR: Final = Struct("<BQ")
_ROWS: Final = frozenset(
    {
        EventType.WRITE_ROWS_V1,
        EventType.UPDATE_ROWS_V1,
        EventType.DELETE_ROWS_V1,
        EventType.WRITE_ROWS_COMPRESSED_V1,
        EventType.UPDATE_ROWS_COMPRESSED_V1,
        EventType.DELETE_ROWS_COMPRESSED_V1,
    }
)
_ROWS_CODES: Final = frozenset(map(int, _ROWS))
_QUERY: Final = int(EventType.QUERY)
_XID: Final = int(EventType.XID)
_MAP: Final = int(EventType.TABLE_MAP)
_ANNOTATE: Final = int(EventType.ANNOTATE_ROWS)
_GTID: Final = int(EventType.GTID)
_INTVAR_CODE: Final = int(EventType.INTVAR)
_COMMIT: Final = b"\0COMMIT"
_BODIES_KEPT: Final = 64


@dataclass(frozen=True, slots=True)
class RawPiece:
    """The events of a group up to a STMT_END.

    Attributes:
        first: Number of the first of them in the run.
        end: Number behind the last of them.
        mapped: The tables of the TABLE_MAPs.
    """

    first: int
    end: int
    mapped: frozenset[TableName]


@dataclass(frozen=True, slots=True)
class RawGroup:
    """A group of a run that is cut where its statements end.

    Attributes:
        run: The run that holds the group.
        first: Number of the group's first event in the run.
        end: Number behind the group's last event.
        pieces: Pieces of rows, one up to each STMT_END.
    """

    run: RawRun
    first: int
    end: int
    pieces: tuple[RawPiece, ...]

    @property
    def timestamp(self) -> int:
        """Time of the group's last event, in seconds since 1970."""
        at = self.run.events.item(layout.EVENT_OFFSET, self.end - 1)
        return int.from_bytes(self.run.data[at : at + 4].tobytes(), "little")

    @property
    def mapped(self) -> frozenset[TableName]:
        """All tables that have maps."""
        return frozenset[TableName]().union(*(piece.mapped for piece in self.pieces))


def raw_group(run: RawRun, number: int) -> RawGroup | None:
    """A group of a run; None if it is one for the reference."""
    if run.format.checksum_length != CHECKSUM_LENGTH:
        return None
    first, end = (
        run.groups.item(layout.GROUP_FIRST, number),
        run.groups.item(layout.GROUP_END, number),
    )
    types: list[int] = run.events[layout.EVENT_TYPE, first:end].tolist()
    if types[0] != _GTID or not _is_end(run, types[-1], end - 1):
        return None
    pieces: list[RawPiece] = []
    start, mapped = first + 1, set[TableName]()
    for place, kind in enumerate(types[1:-1], first + 1):
        if kind == _MAP:
            table = run.tables[run.events.item(layout.EVENT_MAP, place)]
            mapped.add(table_name(table.table_map))
        elif kind in _ROWS_CODES:
            at = run.events.item(layout.EVENT_OFFSET, place) + _FLAGS
            if int(run.data[at]) & RowsFlag.STMT_END.value:
                pieces.append(RawPiece(start, place + 1, frozenset(mapped)))
                start, mapped = place + 1, set()
        elif kind != _ANNOTATE:
            return None
    if start != end - 1 or not pieces or any(MARKS in piece.mapped for piece in pieces):
        return None
    return RawGroup(run, first, end, tuple(pieces))


def annotated_raw(run: RawRun, piece: RawPiece) -> bytes | None:
    """The text that MariaDB wrote before the rows of a statement; None without one."""
    for place in range(piece.first, piece.end):
        kind = run.events.item(layout.EVENT_TYPE, place)
        if kind == _ANNOTATE:
            start = run.events.item(layout.EVENT_OFFSET, place) + HEADER_LENGTH
            return run.data[start : run.events.item(layout.EVENT_END, place)].tobytes()
        if kind == _MAP:
            break
    return None


def _is_end(run: RawRun, kind: int, number: int) -> bool:
    """True if an event is XID or COMMIT."""
    if kind != _QUERY:
        return kind == _XID
    stop = run.events.item(layout.EVENT_END, number)
    # The NUL ends the name of the database before it.
    return run.data[stop - len(_COMMIT) : stop].tobytes() == _COMMIT


def planned_bytes(
    group: RawGroup, plan: GroupPlan, definition: Definition, memory: Memory, position: int
) -> tuple[bytes, int] | None:
    """Make the bytes of a group in a binlog, by its plan.

    Args:
        group: A group of a run; the run's bytes behind it may be changed.
        plan: The plan made for this group.
        definition: Definition of the binlog, which the plan names.
        memory: Routing's memory of the groups before.
        position: Position at which the binlog's file ends.

    Returns:
        The bytes of the group, and the number of their events; None if the group is for the
        reference.
    """
    parts, name, scope = plan.binlogs[definition.name], definition.name, definition.scope
    if memory.left_out or name in plan.ends or plan.bases.get(name) != basis_of(definition):
        return None
    sections = is_same_group([piece.mapped for piece in group.pieces], plan.sections)
    if sections is None or not _takes(group, scope, memory):
        return None
    bodies: list[tuple[EncodedEvent, int]] = []
    following = 0
    for part in parts:
        if not isinstance(part, TextPart) or part.section is None or part.section < following:
            return None
        if part.section >= len(sections):
            return None
        following = part.section + 1
        texts = _texts(group, part, [group.pieces[one] for one in sections[part.section]], scope)
        if texts is None:
            return None
        bodies += texts
    if not bodies:
        return None
    return _written(group, bodies, position), len(bodies) + 2


def _takes(group: RawGroup, scope: Scope, memory: Memory) -> bool:
    """True if all changed tables are in scope, and nothing is to be remembered of them."""
    if scope.is_unscoped:
        return True
    last = group.run.events.item(layout.EVENT_TYPE, group.end - 1)
    return not (
        last != _XID  # a COMMIT names a database
        or scope.ignores_case
        or memory.empty_tables
        or dangers(memory.links, scope)
        or not all(map(scope.includes, group.mapped))
    )


def _texts(
    group: RawGroup, part: TextPart, pieces: Sequence[RawPiece], scope: Scope
) -> list[tuple[EncodedEvent, int]] | None:
    """The events of a text, each with its time."""
    if not part.events or any(event.flags for event in part.events):
        return None
    last = part.events[-1]
    if last.type_code != EventType.QUERY or part.is_another(annotated_raw(group.run, pieces[0])):
        return None
    try:
        statement = _statement(last.body, group.run.format)
    except CodecError:
        return None
    if not _is_inside(statement, scope):
        return None
    events, run = list(part.events), group.run
    for number, event in enumerate(events):
        if event.type_code != _INTVAR_CODE or event.body[:1] != bytes((IntvarKind.INSERT_ID,)):
            continue
        if part.generated is None or len(event.body) != _INTVAR.size:
            return None
        rows = _rows(run, pieces, part.generated.table)
        known = Chosen(first=_INTVAR.unpack(event.body)[1], status_vars=statement.status_vars)
        found = first_chosen(rows, part.generated, known, flavor=run.format.flavor)
        if isinstance(found, str):
            return None
        events[number] = event._replace(body=_INTVAR.pack(IntvarKind.INSERT_ID, found))
    at = run.events.item(layout.EVENT_OFFSET, pieces[0].first)
    timestamp = part.timestamp or int.from_bytes(run.data[at : at + 4].tobytes(), "little")
    return [(event, timestamp) for event in events]


@lru_cache(maxsize=_BODIES_KEPT)
def _statement(body: bytes, format_: Format) -> QueryEvent:
    reader = Reader(body)
    found = QueryEvent.decode(reader, format_)
    reader.finish()
    return found


def _is_inside(statement: QueryEvent, scope: Scope) -> bool:
    """True if a text may stand in a scoped binlog as it is."""
    if scope.is_unscoped:
        return True
    database = statement.database.decode("utf-8", "surrogateescape")
    if not scope.touches_database(database) or not is_about_rows_only(statement.query):
        return False
    names = names_in_statement(statement)
    return (
        names.is_known
        and all(map(scope.includes, names.tables))
        and all(scope.includes(TableName(database, one)) for one in names.unqualified)
        and confined(statement, scope, None) == statement
    )


def _rows(
    run: RawRun, pieces: Sequence[RawPiece], table: TableName
) -> Iterator[tuple[RowsEvent, TableMapEvent]]:
    """The rows events of a table with it.

    Raises:
        CodecError: If one cannot be decoded.
    """
    for piece in pieces:
        for place in range(piece.first, piece.end):
            if run.events.item(layout.EVENT_TYPE, place) not in _ROWS_CODES:
                continue
            number = run.events.item(layout.EVENT_MAP, place)
            if number < 0 or table_name(run.tables[number].table_map) != table:
                continue
            start = run.events.item(layout.EVENT_OFFSET, place)
            stop = run.events.item(layout.EVENT_END, place) + CHECKSUM_LENGTH
            body = decode_event(run.data[start:stop].tobytes(), run.format).body
            assert isinstance(body, RowsEvent), "its type says so"
            yield body, run.tables[number].table_map


def _written(group: RawGroup, bodies: Sequence[tuple[EncodedEvent, int]], position: int) -> bytes:
    run = group.run
    first = run.events.item(layout.EVENT_OFFSET, group.first)
    server_id = int.from_bytes(run.data[first + 5 : first + 9].tobytes(), "little")
    out = bytearray(_moved(group, group.first, position))
    for event, timestamp in bodies:
        length = HEADER_LENGTH + len(event.body) + CHECKSUM_LENGTH
        end = (position + len(out) + length) & _POSITION_MASK
        code = event.type_code
        data = _HEADER.pack(timestamp, code, server_id, length, end, 0) + event.body
        out += data + zlib.crc32(data).to_bytes(4, "little")
    out += _moved(group, group.end - 1, position + len(out))
    return bytes(out)


def _moved(group: RawGroup, number: int, position: int) -> bytes:
    """An event of the group at another place."""
    run = group.run
    start = run.events.item(layout.EVENT_OFFSET, number)
    data = bytearray(run.data[start : run.events.item(layout.EVENT_END, number)].tobytes())
    end = (position + len(data) + CHECKSUM_LENGTH) & _POSITION_MASK
    data[13:17] = end.to_bytes(4, "little")
    return bytes(data) + zlib.crc32(data).to_bytes(4, "little")
