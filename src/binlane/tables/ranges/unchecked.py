"""Places of changed rows on which no foreign key acts unseen; batches of rows do not tell them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, NamedTuple

from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.format import Format
from binlane.log.codec.row_count import count_rows
from binlane.log.codec.table_metadata import table_columns
from binlane.log.codec.types import RowsFlag
from binlane.log.grouping.event_group import EventGroup, group_events
from binlane.log.grouping.table_maps import rows_with_tables
from binlane.log.grouping.walk import Walker
from binlane.log.grouping.xa import finished_by, prepared_in
from binlane.tables.columnar.prepared_transactions import is_commit
from binlane.tables.ranges.earlier import LogBefore
from binlane.tables.ranges.log_range import LogRange
from binlane.tables.ranges.stored_files import chunks_of, read_groups_of

_NOT_CASCADED: Final = RowsFlag.NO_FOREIGN_KEY_CHECKS | RowsFlag.USE_SQL_FOREIGN_KEY


class PreparedRowRun(NamedTuple):
    """Row changes of an XA transaction: its XA COMMIT's position, and numbers from first to last."""

    position: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Unchecked:
    """Rows behind which nothing cascades that is not logged.

    Attributes:
        positions: Positions of events whose rows are all such.
        runs: Runs of rows in other events.
    """

    positions: tuple[int, ...]
    runs: tuple[PreparedRowRun, ...]


class _Flagged(NamedTuple):
    """A number of row changes, and whether nothing cascades from them."""

    changes: int
    is_unchecked: bool


def unchecked_rows(piece: LogRange) -> Unchecked:
    """The rows of a range behind which nothing cascades that is not logged.

    Such rows are of sessions with foreign_key_checks=0, or of MySQL since 9.6, which logs all
    cascades. Rows of an XA transaction stand where the transaction is committed.

    The range is read by the reference decoder; its rows are not decoded.

    Raises:
        CodecError: If the log is damaged.
        StoreError: If it cannot be read.
    """
    return _unchecked(replace(piece, catalog=None))  # which has no hash


@lru_cache(maxsize=2)
def _unchecked(piece: LogRange) -> Unchecked:
    positions: dict[int, bool] = {}
    runs: list[PreparedRowRun] = []
    prepared: dict[str, list[_Flagged]] = {}
    format_: Format | None = None
    with closing(LogBefore(piece)) as before:
        for group in read_groups_of(piece):
            first = group.events[0].body
            if isinstance(first, FormatDescriptionEvent):
                format_ = first.format
            if group.is_control or not group.is_complete:
                continue
            assert format_ is not None, "a file begins with it"
            xid = prepared_in(group.events[-1], format_)
            if xid is not None:
                prepared[xid] = list(_flagged(group, format_))
                continue
            for event in group.events:
                finished = finished_by(event)
                if finished is None:
                    continue
                rows = prepared.pop(finished, None)
                if is_commit(event):
                    rows = _before(before, finished) if rows is None else rows
                    runs += _runs(event.position, rows)
            for event, body, _ in rows_with_tables(group.events, file=group.file, format_=format_):
                is_such = bool(body.flags & _NOT_CASCADED)
                # Rows of a compressed transaction all stand at its position.
                positions[event.position] = positions.get(event.position, True) and is_such
    return Unchecked(tuple(at for at, is_such in positions.items() if is_such), tuple(runs))


def _flagged(group: EventGroup, format_: Format) -> Iterator[_Flagged]:
    for _, body, table_map in rows_with_tables(group.events, file=group.file, format_=format_):
        changes = count_rows(body, table_columns(table_map, flavor=format_.flavor))
        yield _Flagged(changes, bool(body.flags & _NOT_CASCADED))


def _before(log: LogBefore, xid: str) -> list[_Flagged]:
    """The rows of a transaction that was prepared before the range."""
    place = log.find(xid)
    if place is None:
        return []  # whoever decodes the rows tells that nobody knows them
    walker = Walker(
        chunks_of(log.source(place)),
        file=place.path,
        position=place.start,
        format_=place.format,
    )
    return list(_flagged(next(group_events(walker.events(), file=place.path)), place.format))


def _runs(position: int, rows: list[_Flagged]) -> Iterator[PreparedRowRun]:
    """The row changes of a transaction are numbered through."""
    number = 0
    for changes, is_unchecked in rows:
        if is_unchecked and changes:
            yield PreparedRowRun(position, number, number + changes - 1)
        number += changes
