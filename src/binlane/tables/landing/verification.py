"""Tables that were landed, held against their log afterwards: as many rows, and the same ones.

Counts come from the log itself, from the footers of the tables' files and from what their commits
say. Values are compared with those of another landing of the same stretch, into a folder of its
own, which knows nothing of the batches, crashes and merges of the first.
"""

from __future__ import annotations

import tempfile
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from binlane.binlogs.filters.terms import terms_of
from binlane.errors import BinlaneError, ConfigError
from binlane.names import TableName
from binlane.tables.landing.current_tables import AWAITED
from binlane.tables.landing.current_tables import GIVEN_UP as NOT_IN_CURRENT
from binlane.tables.landing.history_tables import GIVEN_UP as NOT_IN_HISTORY
from binlane.tables.landing.journal import Journal, JournalState
from binlane.tables.landing.landing import Landing, scope_of
from binlane.tables.landing.landing_settings import LandingSettings
from binlane.tables.landing.range_work import FormatName, Mode
from binlane.tables.landing.snapshot.chunk_work import OPERATION
from binlane.tables.landing.tables.opening import open_store
from binlane.tables.landing.tables.parquet_files import read_columns
from binlane.tables.landing.tables.store_settings import TableStoreSettings
from binlane.tables.landing.tables.table_store import OWN_COLUMNS, TableStore
from binlane.tables.landing.target_files import resolve
from binlane.tables.ranges.log_range import Offset
from binlane.tables.ranges.logged_rows import logged_rows
from binlane.tables.ranges.planner import Planner, PlanOptions

_RANGE_BYTES: Final = 64 << 20
_SHOWN_MAX: Final = 200
_ELSEWHERE: Final = frozenset({NOT_IN_CURRENT, NOT_IN_HISTORY, AWAITED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Lake:
    """A target of landings, and the log that was landed there.

    Attributes:
        into: URI or path of the target.
        sources: The log, as `land` takes it: from where the landing began, at least up to where it
            is.
        checkpoint: Folder of the journal, as the landing had it.
        keys: Path of the key file of an encrypted log.
        catalog: Settings of the Iceberg catalog, as the landing had them.
    """

    into: str
    sources: Sequence[str]
    checkpoint: str | None = None
    keys: str | None = None
    catalog: Mapping[str, str] = field(default_factory=dict)


def verify_lake(lake: Lake, *, has_values: bool = False) -> Iterator[str]:
    """Hold tables against their log.

    Nothing is changed.

    Args:
        lake: The tables, and their log.
        has_values: Whether values are compared, too; the tables are held in memory one by one.

    Yields:
        A line for each difference.

    Raises:
        ConfigError: If nothing was landed there, or if the log does not have all that was.
        BinlaneError: If the log or the target cannot be read.
    """
    state = Journal.read(lake.into, lake.checkpoint)
    if state.position is None or state.began is None:
        raise ConfigError(
            f"where the landing into {lake.into} began is not known",
            key="against",
            hint="it has landed nothing yet, or an earlier binlane began it",
        )
    if state.run_id:
        raise ConfigError(
            f"a landing into {lake.into} is under way, or died",
            key="against",
            hint="let it end, or run `binlane land` once more, which does the rest",
        )
    end = Offset.parse(state.position)
    planner = Planner(lake.sources, PlanOptions(keys=lake.keys))
    begin = planner.begin()
    if begin.place > Offset.parse(state.began).place:
        raise ConfigError(
            f"the log begins at {begin}, and what was landed at {Offset.parse(state.began)}",
            key="against",
            hint="name the files before it, too",
        )
    planner.end(end)  # whether it is this log
    stores = _stores(lake.into, state, lake.catalog)
    yield from _counts(planner, Offset.parse(state.began), end, state, stores)
    if has_values:
        yield from _values(lake, state, end, stores)


def _stores(into: str, state: JournalState, catalog: Mapping[str, str]) -> dict[Mode, TableStore]:
    settings = TableStoreSettings(run_id=uuid.uuid4().hex, catalog=catalog, is_read_only=True)
    table_format = FormatName(state.terms["format"])
    return {
        mode: open_store(into, mode, table_format, state.app_id, settings)
        for mode in map(Mode, state.terms["mode"].split(","))
    }


# Counts -------------------------------------------------------------------------------------------


def _counts(
    planner: Planner,
    begin: Offset,
    end: Offset,
    state: JournalState,
    stores: Mapping[Mode, TableStore],
) -> Iterator[str]:
    scope = scope_of(state.terms["tables"])
    logged: Counter[str] = Counter()
    uncounted: set[str] = set()
    for piece in planner.ranges(begin, end, size_bytes=_RANGE_BYTES):
        found = logged_rows(piece)
        for images in (found.images, found.uncertain):
            logged.update({t.plain: n for t, n in images.items() if scope.includes(t)})
        uncounted |= {table.plain for table in found.uncounted}
    if state.terms.get("filter"):
        logged = Counter(state.logged)  # what it lets through hangs on names, and shows in values
    for name in sorted({*+logged, *state.logged} - uncounted):
        taken = state.logged.get(name, 0)
        if logged[name] != taken:
            yield f"{name}: the log has {logged[name]} row images, and {taken} were taken"
    for mode, store in stores.items():
        for table in sorted(store.names()):
            if table.plain not in uncounted:
                yield from _table_counts(mode, table, store, state, logged[table.plain])


def _table_counts(
    mode: Mode, table: TableName, store: TableStore, state: JournalState, logged: int
) -> Iterator[str]:
    name = f"{table.plain} ({mode.value})"
    try:
        now, rows = store.there(table), _rows_in_files(store, table)
    except (BinlaneError, OSError, pa.ArrowInvalid) as error:
        yield f"{name}: cannot be read: {error}"
        return
    if rows != now.rows:
        yield f"{name}: its files have {rows} rows, and its commits say {now.rows}"
    landed = state.landed.get(mode.value, {}).get(table.plain, 0)
    if now.images is not None and now.images != landed:
        yield f"{name}: its commits say {now.images} row images of the log, and {landed} were landed"
    if mode is not Mode.CHANGES:
        return
    left_out = state.left_out.get(table.plain, {})
    expected = logged - sum(n for why, n in left_out.items() if why not in _ELSEWHERE)
    found = rows - _snapshot_rows(store, table)
    if found != expected:
        yield f"{name}: it has {found} row images of the log, and should have {expected}"


def _rows_in_files(store: TableStore, table: TableName) -> int:
    """Rows of a table, as the footers of its files say."""
    total = 0
    for path in store.there(table).files:
        filesystem, place = resolve(f"{store.uri(table)}/{path}")
        with filesystem.open_input_file(place) as stream:
            total += pq.read_metadata(stream).num_rows
    return total


def _snapshot_rows(store: TableStore, table: TableName) -> int:
    """Rows of a change table that are not of the log."""
    total = 0
    for path in store.there(table).files:
        rows = read_columns(f"{store.uri(table)}/{path}", ["_op"])
        total += rows.num_rows - _of_log(rows).num_rows
    return total


def _of_log(rows: pa.Table) -> pa.Table:
    """Rows of a change table without those of a snapshot."""
    ops: Any = rows.column("_op")
    return rows.filter(pc.not_equal(ops, pa.scalar(OPERATION, pa.string())))


# Values -------------------------------------------------------------------------------------------


def _values(
    lake: Lake, state: JournalState, end: Offset, stores: Mapping[Mode, TableStore]
) -> Iterator[str]:
    terms = state.terms
    settings = LandingSettings(
        modes=frozenset(stores),
        tables=terms["tables"],
        format=FormatName(terms["format"]),
        soft_deletes=bool(terms.get("soft-deletes")),
        skip=frozenset(state.skipped),
        keys=lake.keys,
        filter_terms=terms_of(terms.get("filter", "")),
    )
    with tempfile.TemporaryDirectory(prefix="binlane-verify-") as folder:
        with Landing(lake.sources, folder, settings) as landing:
            landing.run(until=end)
        again = Journal.read(folder, None)
        others = _stores(folder, again, {})
        for mode, store in stores.items():
            yield from _kind(mode, store, others[mode], state)


def _kind(mode: Mode, store: TableStore, other: TableStore, state: JournalState) -> Iterator[str]:
    """Compare the tables of a kind with those of another landing."""
    seeded = {*state.seeded.get(mode.value, ()), *state.snapshots}
    there, expected = set(store.names()), set(other.names())
    for table in sorted(there | expected):
        name = f"{table.plain} ({mode.value})"
        if table.plain in seeded and mode is not Mode.CHANGES:
            continue
        if table not in there:
            yield f"{name}: is not there, and the log has it"
            continue
        if table not in expected and mode is not Mode.CHANGES:
            yield f"{name}: is there, and the log does not make it"
            continue
        try:
            ours, theirs = store.read(table), other.read(table) if table in expected else None
        except (BinlaneError, OSError, pa.ArrowInvalid) as error:
            yield f"{name}: cannot be read: {error}"
            continue
        if mode is Mode.CHANGES:
            ours = _of_log(ours)
        elif mode is Mode.CURRENT:
            # Of rows without a key it is one of several that says which change made it.
            ours = ours.drop_columns(list(OWN_COLUMNS.names))
            theirs = None if theirs is None else theirs.drop_columns(list(OWN_COLUMNS.names))
        if theirs is None:
            theirs = ours.schema.empty_table()
        yield from (f"{name}: {what}" for what in _differences(ours, theirs))


def _differences(ours: pa.Table, theirs: pa.Table) -> Iterator[str]:
    if set(ours.column_names) != set(theirs.column_names):
        names = f"{', '.join(ours.column_names)}, and should have {', '.join(theirs.column_names)}"
        yield f"has columns {names}"
        return
    ours = ours.select(theirs.column_names)
    for field_ in theirs.schema:
        own = ours.schema.field(field_.name).type
        if not own.equals(field_.type):
            yield f"its column {field_.name} is {own}, and should be {field_.type}"
            return
    if _sorted(ours).equals(_sorted(theirs)):
        return
    counts = Counter(map(_row, ours.to_pylist()))
    counts.subtract(map(_row, theirs.to_pylist()))
    for sign, what in ((1, "that the log does not make"), (-1, "missing")):
        rows = [row for row, count in counts.items() if count * sign > 0]
        if rows:
            total = sum(counts[row] * sign for row in rows)
            shown = ", ".join(f"{name}={value}" for name, value in rows[0])
            yield f"{total} rows {what}, such as {shown[:_SHOWN_MAX]}"


def _sorted(rows: pa.Table) -> pa.Table:
    return rows.sort_by([(name, "ascending") for name in rows.column_names]).combine_chunks()


def _row(values: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((name, repr(value)) for name, value in values.items())
