"""A range of a log → its rows, statements and troubles, in log order as far as order matters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from binlane.binlogs.store.chunks import STDIN
from binlane.log.codec.control import IncidentEvent
from binlane.tables.columnar.batches import ChangeBatcher
from binlane.tables.columnar.builder import BuilderFactory, ScalarBatchBuilder
from binlane.tables.columnar.counters import ReadCounters
from binlane.tables.columnar.prepared import Prepared
from binlane.tables.columnar.selection import Selection
from binlane.tables.columnar.told import Told, ToldKind, statement_of
from binlane.tables.ranges.decoding import are_kernels_ready, decoded, rows_max_of
from binlane.tables.ranges.earlier import LogBefore
from binlane.tables.ranges.items import RangeItem, Trouble, TroubleKind, Want
from binlane.tables.ranges.log_range import LogRange
from binlane.tables.ranges.statements import statement_at

if TYPE_CHECKING:
    from binlane.binlogs.filters.state import FilterState
    from binlane.statements.sql.logged_objects import LoggedObjects


@dataclass(frozen=True, slots=True, kw_only=True)
class LogState:
    """State that a reader of a log's files, one after the other, takes from file to file.

    Attributes:
        prepared: The XA transactions that are prepared.
        catalog: The tables as they are known beside the log; None if nothing is known.
        filter_state: State of the reader's filter; None without a filter.
    """

    prepared: Prepared
    catalog: LoggedObjects | None = None
    filter_state: FilterState | None = None


def read_range(
    piece: LogRange,
    want: Want,
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
            catalog = None if piece.catalog is None else piece.catalog.copy()
            state = LogState(
                prepared=Prepared(before),
                catalog=catalog,
                filter_state=filter_state_of(piece, want.selection),
            )
        state.prepared.path = None if piece.uri == STDIN else piece.uri
        batcher = ChangeBatcher(
            selection=want.selection,
            columns=want.columns,
            rows_max=want.rows_max or rows_max_of(by_kernels=by_kernels),
            catalog=state.catalog,
            change_names=want.change_columns,
            tells=want.has_statements,
            prepared=state.prepared,
            new_builder=_builder(want),
            as_json=want.as_json,
            may_clash=want.may_clash,
            filter_state=state.filter_state,
        )
        if counters is not None and state.filter_state is not None:
            state.filter_state.left_out = counters.left_out
        counters = counters or ReadCounters()
        for item in decoded(piece, batcher, by_kernels=by_kernels, counters=counters):
            yield _of_told(item) if isinstance(item, Told) else item


def filter_state_of(piece: LogRange, selection: Selection) -> FilterState | None:
    """Return the state of a reader's filter where a range begins; None without a filter."""
    terms = selection.filter_terms
    if terms is None or terms.is_everything:
        return None
    from binlane.binlogs.filters.state import FilterState  # noqa: PLC0415 - for filters only

    return FilterState(terms) if piece.filter_state is None else piece.filter_state.copy()


def _builder(want: Want) -> BuilderFactory:
    if not want.as_json:
        return ScalarBatchBuilder
    from binlane.tables.columnar.json_images import JsonBatchBuilder  # noqa: PLC0415 - few want JSON

    return JsonBatchBuilder


def _of_told(told: Told) -> RangeItem:
    place = told.place
    if told.kind is ToldKind.ROWS:
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
    if told.kind is ToldKind.STATEMENT:
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


_TROUBLES: Final[Mapping[ToldKind, tuple[TroubleKind, str, str]]] = MappingProxyType(
    {
        ToldKind.INCIDENT: (
            TroubleKind.INCIDENT,
            "changes are missing here: INCIDENT {}",
            "land the tables anew from a copy of the source",
        ),
        ToldKind.ROLLED_BACK: (
            TroubleKind.ROLLED_BACK,
            "a transaction with rows is rolled back here in part",
            "the log does not tell which rows stay; use one engine in a transaction",
        ),
        ToldKind.XA_UNKNOWN: (
            TroubleKind.XA_UNKNOWN,
            "an XA transaction is committed here that was prepared before the log's beginning",
            "read the log from where it was prepared, or land the tables anew",
        ),
    }
)
