"""The groups that statements append to a log: their beginnings, contents and ends.

The module purely splits bodies that a session appended, with the numbers of their statements. `group_fitting`
decides the content of the source's groups in a binlog.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple

from binlane.log.codec.query import AnnotateRowsEvent, QueryEvent
from binlane.log.codec.transaction import GtidEvent, XaPrepareEvent, XidEvent
from binlane.log.codec.types import EventType, GtidFlag, RowsFlag
from binlane.log.grouping.sections import RowsPiece, Section
from binlane.names import TableName
from binlane.statements.session import log_events
from binlane.statements.session.log_events import Body, ChangedRows, MappedTable
from binlane.statements.session.report import BinlogResult


class End(Enum):
    """The end of a group; NONE: the group is one statement that stands alone."""

    COMMIT = "commit"
    ROLLBACK = "rollback"
    PREPARE = "prepare"
    NONE = "none"


class LogGroup(NamedTuple):
    """A group that one log gets.

    Attributes:
        runs: The group's events without those that open and end it, with the numbers of their statements.
        end: Kind of the group's end; NONE: it is one statement that stands alone.
        closing: The event that ends the group; None if it stands alone.
    """

    runs: tuple[tuple[int, tuple[Body, ...]], ...]
    end: End
    closing: Body | None

    @property
    def number(self) -> int:
        """Return the number of the group's first statement; 0 if it has none."""
        return self.runs[0][0] if self.runs else 0


def groups_of(told: BinlogResult, number: int) -> list[LogGroup]:
    """Split the events that a statement appends to a log.

    Args:
        told: The statement's result in the log, with the appended events.
        number: Number of the appending statement.
    """
    bodies = told.bodies
    if not bodies:
        return []
    owners = None
    if told.runs:
        owners = [number] * len(bodies)
        for begin, end, owner in told.runs:
            owners[begin:end] = [owner] * (end - begin)
    bounds = _bounds_mariadb(bodies) if told.server.is_mariadb else _bounds_mysql(bodies)
    return [
        LogGroup(_runs(bodies, begin, until, owners, number), end, closing)
        for begin, until, end, closing in bounds
    ]


def _runs(
    bodies: Sequence[Body], begin: int, until: int, owners: Sequence[int] | None, number: int
) -> tuple[tuple[int, tuple[Body, ...]], ...]:
    if begin >= until:
        return ()
    if owners is None:
        return ((number, tuple(bodies[begin:until])),)
    found: list[tuple[int, tuple[Body, ...]]] = []
    while begin < until:
        end = begin
        while end < until and owners[end] == owners[begin]:
            end += 1
        found.append((owners[begin], tuple(bodies[begin:end])))
        begin = end
    return tuple(found)


_Bounds = list[tuple[int, int, End, Body | None]]
"""From where and up to where the groups of a log have their statements, and how they end."""


def _bounds_mariadb(bodies: Sequence[Body]) -> _Bounds:
    starts = [place for place, body in enumerate(bodies) if isinstance(body, GtidEvent)]
    found: _Bounds = []
    for start, until in zip(starts, (*starts[1:], len(bodies)), strict=True):
        opening = bodies[start]
        assert isinstance(opening, GtidEvent), "it was looked for"
        if opening is not log_events.GROUP_START and opening.flags & GtidFlag.STANDALONE:
            found.append((start + 1, until, End.NONE, None))
        elif opening.xid is not None:
            found.append((start + 1, until - 2, End.PREPARE, bodies[until - 1]))
        else:
            closing = bodies[until - 1]
            found.append((start + 1, until - 1, _end(closing), closing))
    return found


def _bounds_mysql(bodies: Sequence[Body]) -> _Bounds:
    found: _Bounds = []
    start = 0
    while start < len(bodies):
        opening = bodies[start]
        until = start
        if opening == log_events.BEGIN:
            while not _ends_transaction(bodies[until]):
                until += 1
            found.append((start + 1, until, _end(bodies[until]), bodies[until]))
        elif isinstance(opening, QueryEvent) and opening.query.startswith(_XA_START):
            while not _ends_xa(bodies[until]):
                until += 1
            end = bodies[until]
            is_prepared = isinstance(end, XaPrepareEvent) and not end.one_phase
            is_rolled_back = isinstance(end, QueryEvent)
            kind = End.ROLLBACK if is_rolled_back else End.COMMIT
            # Behind a session's end nothing says XA END.
            behind = until if end == log_events.ROLLBACK else until - 1
            found.append((start + 1, behind, End.PREPARE if is_prepared else kind, end))
        else:
            while not isinstance(bodies[until], QueryEvent):
                until += 1
            found.append((start, until + 1, End.NONE, None))
        start = until + 1
    return found


_STATEMENT_END: Final = int(RowsFlag.STMT_END)
_XA_START: Final = b"XA START "
_XA_ROLLBACK: Final = b"XA ROLLBACK "
_XA_ENDS: Final = (b"XA COMMIT ", _XA_ROLLBACK)
_ROLLBACK_TO: Final = b"ROLLBACK TO "
SAVEPOINTS: Final = (b"SAVEPOINT ", _ROLLBACK_TO)
_CREATE: Final = b"CREATE "
DROP_TEMPORARY: Final = (b"DROP TEMPORARY ", b"DROP /*!40005 TEMPORARY */ ")
"""Written anew for the tables that a binlog holds, whatever else becomes of the statement."""


def _end(body: Body) -> End:
    is_rollback = isinstance(body, QueryEvent) and body.query == log_events.ROLLBACK.query
    return End.ROLLBACK if is_rollback else End.COMMIT


def _ends_transaction(body: Body) -> bool:
    return isinstance(body, XidEvent) or (
        isinstance(body, QueryEvent)
        and body.query in (log_events.COMMIT.query, log_events.ROLLBACK.query)
    )


def _ends_xa(body: Body) -> bool:
    return isinstance(body, XaPrepareEvent) or (
        isinstance(body, QueryEvent)
        and (body.query.startswith(_XA_ROLLBACK) or body.query == log_events.ROLLBACK.query)
    )


def begins(bodies: Sequence[Body], beginnings: bytes | tuple[bytes, ...]) -> bool:
    """True if events begin with one of some statements that binlane itself writes."""
    first = bodies[0]
    return isinstance(first, QueryEvent) and first.query.startswith(beginnings)


def are_rows(bodies: Sequence[Body]) -> bool:
    """True if the events of one statement are its rows; the making of their table may stand before them."""
    return isinstance(bodies[-1], _OF_ROWS) or isinstance(bodies[0], _OF_ROWS)


_OF_ROWS: Final = (ChangedRows, MappedTable, AnnotateRowsEvent)
_KINDS: Final[Mapping[EventType, str]] = MappingProxyType(
    {
        EventType.WRITE_ROWS: "insert",
        EventType.WRITE_ROWS_V1: "insert",
        EventType.UPDATE_ROWS: "update",
        EventType.UPDATE_ROWS_V1: "update",
        EventType.PARTIAL_UPDATE_ROWS: "update",
        EventType.DELETE_ROWS: "delete",
        EventType.DELETE_ROWS_V1: "delete",
    }
)


@dataclass(slots=True)
class SourceGroup:
    """A group of the source.

    Attributes:
        group: The group as the log has it.
        sections: The rows of the group's statements, by their numbers, in order; none for a statement that
            made a table and filled it with nothing.
        places: Places of the statements' sections among all, from 0, by the statements' numbers.
        is_split: Each piece of rows is of one statement.
        is_undone: Some of the group, or all, is rolled back in the end.
    """

    group: LogGroup
    sections: dict[int, Section]
    places: dict[int, int]
    is_split: bool
    is_undone: bool

    @property
    def ends_prepared(self) -> bool:
        """True if the group is XA COMMIT or XA ROLLBACK."""
        return self.group.end is End.NONE and begins(self.group.runs[0][1], _XA_ENDS)

    @classmethod
    def of(cls, group: LogGroup) -> SourceGroup:
        """Find the rows of a group."""
        is_alone = group.end is End.NONE
        sections: dict[int, Section] = {}
        is_split = True
        tables: list[TableName] = []
        for number, bodies in () if is_alone else group.runs:
            pieces: list[RowsPiece] = []
            changes: list[tuple[str, TableName]] = []
            for body in bodies:
                if isinstance(body, MappedTable):
                    tables.append(body.table)
                elif isinstance(body, ChangedRows):
                    change = (_KINDS[body.event_type], body.table)
                    if not changes or changes[-1] != change:
                        changes.append(change)
                    if body.flags & _STATEMENT_END:
                        pieces.append(RowsPiece(tuple(tables), tuple(changes)))
                        tables, changes = [], []
            is_split &= not changes
            if pieces:
                sections[number] = (*sections.get(number, ()), *pieces)
        is_split &= not tables
        is_created = not is_alone and bool(group.runs) and begins(group.runs[0][1], _CREATE)
        if is_created and not sections:
            sections[group.number] = ()
        is_undone = group.end is End.ROLLBACK or any(
            begins(bodies, _ROLLBACK_TO) for _, bodies in group.runs
        )
        places = {number: place for place, number in enumerate(sections)}
        return cls(group, sections, places, is_split, is_undone)
