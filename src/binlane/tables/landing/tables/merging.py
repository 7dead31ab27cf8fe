"""The work of a task on base files and runs: read them, merge them, write files in their place.

The new files are nobody's until the table's commit names them, so the work can be done again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from binlane.tables.columnar.table_schema import SEQUENCE_COLUMN
from binlane.tables.columnar.unify import conform_table
from binlane.tables.landing.net_changes import COUNT, GONE, added
from binlane.tables.landing.range_work import DataFile
from binlane.tables.landing.table_files import write_file
from binlane.tables.landing.tables import planning
from binlane.tables.landing.tables.formats import RowCounts
from binlane.tables.landing.tables.key_order import Places, last_of_each, places, sorted_by_key
from binlane.tables.landing.tables.merge_work import How, MergeResult, MergeWork
from binlane.tables.landing.tables.parquet_files import read_rows
from binlane.tables.landing.tables.row_versions import VALID_TO, versions
from binlane.tables.landing.target_files import file_name

DELETED_AT: Final = "_deleted_at"
"""Column with the time at which a row that stays was deleted; NULL of all others."""
MOMENT: Final = pa.timestamp("us", tz="UTC")
# Names of Delta's protocol.
FEED: Final = "_change_data"
CHANGE_TYPE: Final = "_change_type"
INSERTED: Final = "insert"
UPDATED_FROM: Final = "update_preimage"
UPDATED_TO: Final = "update_postimage"
DELETED: Final = "delete"
Bools = npt.NDArray[np.bool_]


def merge_file(work: MergeWork) -> MergeResult:
    """Do one work.

    Raises:
        StoreError: If something cannot be read or written.
    """
    if work.how is How.COUNT:
        return _count(work)
    try:
        base = _base(work)
    except (ValueError, NotImplementedError) as error:
        return MergeResult(add=(), remove=(), schema=work.schema, error=str(error))
    if work.how is How.REWRITE:
        written = _write(work, sorted_by_key(base, work.key))
        return MergeResult(add=written, remove=work.base, schema=work.schema)
    if work.how is How.VERSIONS:
        return _versions(work, base)
    return _merge(work, base)


def _merge(work: MergeWork, base: pa.Table) -> MergeResult:
    run = _run(work)
    at = places(base, run, work.key)
    is_kept = at < 0
    stays = run.column(_ADDS).to_numpy()
    if not work.soft_deletes:
        stays = stays & ~run.column(GONE).to_numpy()
    fresh = run.filter(pa.array(stays))
    if work.soft_deletes:
        deleted = pc.if_else(fresh.column(GONE), fresh.column("_ts"), pa.scalar(None, MOMENT))
        fresh = fresh.append_column(DELETED_AT, deleted)
    if is_kept.all() and not fresh.num_rows:
        return MergeResult(add=(), remove=(), schema=work.schema)
    kept = base if is_kept.all() else base.filter(pa.array(is_kept))
    fresh = conform_table(fresh, work.schema)
    written = _write(work, sorted_by_key(pa.concat_tables([kept, fresh]), work.key))
    old = at[~is_kept]
    was = np.zeros(run.num_rows, bool)
    was[old] = True
    changed = int((was & stays).sum())
    feed: tuple[DataFile, ...] = ()
    if work.has_feed:
        before = base.filter(pa.array(~is_kept))
        feed = _feed(
            work,
            _typed(before, DELETED, stays[old], UPDATED_FROM),
            _typed(fresh, INSERTED, was[stays], UPDATED_TO),
        )
    return MergeResult(
        add=written,
        remove=work.base,
        schema=work.schema,
        rows=RowCounts(
            inserted=fresh.num_rows - changed, updated=changed, deleted=len(old) - changed
        ),
        feed=feed,
    )


def _versions(work: MergeWork, base: pa.Table) -> MergeResult:
    slices = _slices(work)
    images = pa.concat_tables(slices)
    if len(slices) > 1:  # what foreign keys did lies between what the log tells
        images = images.take(pc.sort_indices(images, [(SEQUENCE_COLUMN, "ascending")]))
    images = sorted_by_key(images, work.key)
    found = versions(base, images, work.key, work.schema, images.column(_ADDS).to_numpy())
    kept = sorted_by_key(pa.concat_tables([found.kept, found.opened]), work.key)
    return MergeResult(
        add=(*_write(work, kept), *_write(work, found.ended)), remove=work.base, schema=work.schema
    )


def _count(work: MergeWork) -> MergeResult:
    """Rows come and go as often as the runs say.

    Only files that lose rows are written anew.
    """
    own = [name for name in work.names if name in work.schema.names]
    parts = [part.drop_columns([_ADDS]) for part in _slices(work)]
    is_whole = len(own) == len(work.names)
    counts = parts[0] if len(parts) == 1 and is_whole else added(parts, own)
    numbers = counts.column(COUNT).to_numpy()
    left = np.maximum(-numbers, 0)
    wanted = counts.filter(pa.array(left > 0))
    left = left[left > 0]
    written: list[DataFile] = []
    removed: list[str] = []
    gone = [work.schema.empty_table()]
    for path in work.base if len(left) else ():
        rows = conform_table(_read(work, path), work.schema)
        at = places(rows, wanted, own)
        is_going = _taken(at, left)
        if is_going.any():
            removed.append(path)
            written += _write(work, rows.filter(pa.array(~is_going)))
            gone.append(rows.filter(pa.array(is_going)))
    places_of: Places = np.repeat(np.arange(len(numbers)), np.maximum(numbers, 0))
    coming = conform_table(counts.take(places_of), work.schema)
    written += _write(work, coming)
    going = pa.concat_tables(gone)
    feed: tuple[DataFile, ...] = ()
    if work.has_feed and removed:
        feed = _feed(work, _typed(going, DELETED), _typed(coming, INSERTED))
    return MergeResult(
        add=tuple(written),
        remove=tuple(removed),
        schema=work.schema,
        missing=int(left.sum()),
        rows=RowCounts(inserted=coming.num_rows, deleted=going.num_rows),
        feed=feed,
    )


def _taken(at: np.ndarray[Any, Any], left: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a mask of rows that go, the first ones of each kind; `left` is lessened by them."""
    order = np.argsort(at, kind="stable")
    kinds = at[order]
    starts = np.searchsorted(kinds, kinds)
    number_in_kind = np.arange(len(at)) - starts
    goes = (kinds >= 0) & (number_in_kind < np.where(kinds >= 0, left[kinds], 0))
    np.subtract.at(left, kinds[goes], 1)
    is_going = np.zeros(len(at), bool)
    is_going[order] = goes
    return is_going


_ADDS: Final = "_adds"
"""Column of a run: whether this work writes the row; if not, it only takes the key's old row away."""


def _run(work: MergeWork) -> pa.Table:
    """The last row of each key of the runs."""
    found = [part for part in _slices(work) if part.num_rows]
    if len(found) == 1:
        return found[0]
    return last_of_each(pa.concat_tables(found), work.key)


def _slices(work: MergeWork) -> list[pa.Table]:
    parts = []
    for each in work.runs:
        start, stop = each.span
        rows = read_rows(each.uri, start, stop)
        # Names of a table may be known where its rows in the log have numbers only.
        rows = rows.rename_columns([*work.names, *rows.column_names[len(work.names) :]])
        rows = rows.drop_columns([name for name in work.names if name not in work.schema.names])
        numbers = np.arange(start, stop)
        adds = (numbers >= each.add[0]) & (numbers < each.add[1])
        parts.append(rows.append_column(_ADDS, pa.array(adds)))
    return parts


def _base(work: MergeWork) -> pa.Table:
    if not work.base:
        return work.schema.empty_table()
    parts = [_read(work, path) for path in work.base]
    if work.change is not None:
        parts = [work.change(part) for part in parts]
    return pa.concat_tables([conform_table(part, work.schema) for part in parts])


def _read(work: MergeWork, path: str) -> pa.Table:
    return read_rows(f"{work.directory}/{path}")


def _write(work: MergeWork, rows: pa.Table) -> tuple[DataFile, ...]:
    return tuple(_written(work, rows)) if rows.num_rows else ()


def _written(work: MergeWork, rows: pa.Table) -> Iterator[DataFile]:
    """Files of about the target's size."""
    row_bytes = work.size_bytes / max(work.rows, 1)
    pieces = max(
        1,
        round(rows.num_rows * row_bytes / work.target_bytes),
        round(rows.num_rows / planning.TARGET_ROWS),
    )
    length = -(-rows.num_rows // pieces)
    names = set(work.schema.names)
    before = [name for name in work.known if name in names]
    known = known_columns(work.schema, [*work.key, *before])
    for start in range(0, rows.num_rows, length):
        name = file_name(work.format, work.run_id)
        yield write_file(rows.slice(start, length), work.directory, name, known)


def _typed(
    rows: pa.Table, alone: str, is_updated: Bools | None = None, updated: str = ""
) -> pa.Table:
    """Rows with what became of each: some of them may be one of the two of an update."""
    kinds = np.full(rows.num_rows, alone, dtype=object)
    if is_updated is not None:
        kinds[is_updated] = updated
    return rows.append_column(CHANGE_TYPE, pa.array(kinds, pa.string()))


def _feed(work: MergeWork, *rows: pa.Table) -> tuple[DataFile, ...]:
    """A file of the rows that change."""
    changes = pa.concat_tables(rows)
    if not changes.num_rows:
        return ()
    name = f"{work.run_id}-{uuid.uuid4().hex}.parquet"
    file = write_file(changes, f"{work.directory}/{FEED}", name, [])
    return (replace(file, path=f"{FEED}/{file.path}"),)


def known_columns(schema: pa.Schema, key: Sequence[str]) -> list[str]:
    """Columns of which a file's statistics are kept: those that merging needs, and cheap ones."""
    cheap = [
        field.name
        for field in list(schema)[:_CHEAP_COLUMNS_MAX]
        if pa.types.is_integer(field.type) or pa.types.is_temporal(field.type)
    ]
    own = [name for name in (SEQUENCE_COLUMN, VALID_TO) if name in schema.names]
    return list(dict.fromkeys([*key, *own, *cheap]))


_CHEAP_COLUMNS_MAX: Final = 32
