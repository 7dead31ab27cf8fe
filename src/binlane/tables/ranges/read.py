"""A range of a log → its rows, statements and troubles, in log order as far as order matters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from binlane.binlogs.store.chunks import STDIN
from binlane.log.codec.control import IncidentEvent
from binlane.tables.columnar.batches import ChangeBatcher
from binlane.tables.columnar.counters import ReadCounters
from binlane.tables.columnar.followed_log import FollowedLog
from binlane.tables.columnar.log_notes import (
    LogNote,
    LogNoteKind,
    RangeItem,
    Trouble,
    TroubleKind,
    statement_at,
    statement_of,
)
from binlane.tables.columnar.prepared_transactions import PreparedTransactions
from binlane.tables.columnar.selection import Selection
from binlane.tables.columnar.table_schema import ReadOptions
from binlane.tables.ranges.decoding import are_kernels_ready, decoded, rows_max_of
from binlane.tables.ranges.earlier import LogBefore
from binlane.tables.ranges.log_range import LogRange

if TYPE_CHECKING:
    from binlane.binlogs.filters.filter_state import FilterState


@dataclass(frozen=True, slots=True, kw_only=True)
class LogState:
    """State that a reader of a log's files, one after the other, takes from file to file.

    Attributes:
        prepared: The XA transactions that are prepared.
        log: The log where the reader begins; the reader follows it.
    """

    prepared: PreparedTransactions
    log: FollowedLog


def read_range(
    piece: LogRange,
    want: ReadOptions,
    *,
    counters: ReadCounters | None = None,
    state: LogState | None = None,
    by_kernels: bool | None = None,
) -> Iterator[RangeItem]:
    """The rows of a range, and its statements and troubles where they are wanted.

    Args:
        piece: The range of the log.
        want: The reader's wishes for the range.
        counters: Counters that get the bytes that were read, and the filter's losses.
        state: State before the range, if the log is read from its beginning; else `piece` tells it,
            and the log is searched backwards where an XA transaction commits.
        by_kernels: Whether kernels read the range; None to use them where they were compiled ahead.

    Yields:
        Batches of one table each, as `columnar.batches` gives them: the images of a table in log
        order, batches of several tables in any order between two statements or troubles.

    Raises:
        CodecError: With file and position, if the log is damaged or a row cannot be decoded.
        UnsupportedError: At an XA COMMIT whose rows are not in the log, if troubles are not wanted.
        StoreError: If the file cannot be read.
    """
    if by_kernels is None:
        by_kernels = are_kernels_ready()
    with closing(LogBefore(piece)) as before:
        if state is None:
            objects = None if piece.catalog is None else piece.catalog.copy()
            log = FollowedLog(objects, filter_state_of(piece, want.selection))
            state = LogState(prepared=PreparedTransactions(before), log=log)
        state.prepared.path = None if piece.uri == STDIN else piece.uri
        rows_max = want.rows_max or rows_max_of(by_kernels=by_kernels)
        batcher = ChangeBatcher(
            replace(want, rows_max=rows_max), log=state.log, prepared=state.prepared
        )
        if counters is not None and state.log.filter_state is not None:
            state.log.filter_state.left_out = counters.left_out
        counters = counters or ReadCounters()
        for item in decoded(piece, batcher, by_kernels=by_kernels, counters=counters):
            yield _of_told(item) if isinstance(item, LogNote) else item


def filter_state_of(piece: LogRange, selection: Selection) -> FilterState | None:
    """Return the state of a reader's filter where a range begins; None without a filter."""
    terms = selection.filter_terms
    if terms is None or terms.is_everything:
        return None
    from binlane.binlogs.filters.filter_state import FilterState  # noqa: PLC0415 - for filters only

    return FilterState(terms) if piece.filter_state is None else piece.filter_state.copy()


def _of_told(told: LogNote) -> RangeItem:
    place = told.place
    if told.kind is LogNoteKind.ROWS:
        return Trouble(
            kind=TroubleKind.ROWS,
            what=told.what,
            hint="report it, with the event; the other tables are landed",
            tables=told.tables,
            gtid=place.gtid,
            file=place.file,
            position=place.position,
        )
    assert told.event is not None, "all else is told by an event"
    if told.kind is LogNoteKind.STATEMENT:
        body = statement_of(told.event)
        assert body is not None, "a statement is told by its event"
        return statement_at(body, place, is_wanted=told.is_wanted)
    kind, what, hint = _TROUBLES[told.kind]
    body_of = told.event.body
    if isinstance(body_of, IncidentEvent):
        what = what.format(body_of.message.decode("utf-8", "replace"))
    return Trouble(
        kind=kind,
        what=what,
        hint=hint,
        tables=told.tables,
        gtid=place.gtid,
        file=place.file,
        position=place.position,
    )


_TROUBLES: Final[Mapping[LogNoteKind, tuple[TroubleKind, str, str]]] = MappingProxyType(
    {
        LogNoteKind.INCIDENT: (
            TroubleKind.INCIDENT,
            "changes are missing here: INCIDENT {}",
            "land the tables anew from a copy of the source",
        ),
        LogNoteKind.ROLLED_BACK: (
            TroubleKind.ROLLED_BACK,
            "a transaction with rows is rolled back here in part",
            "the log does not tell which rows stay; use one engine in a transaction",
        ),
        LogNoteKind.XA_UNKNOWN: (
            TroubleKind.XA_UNKNOWN,
            "an XA transaction is committed here that was prepared before the log's beginning",
            "read the log from where it was prepared, or land the tables anew",
        ),
    }
)
