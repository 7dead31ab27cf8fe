"""History: each version of a row, and in which time it held (a slowly changing dimension, type 2).

A version begins with the image that made it and ends with the key's next image. Both times are those
of the log's events; several versions in one moment are all kept, and those that ended at once hold
in no time at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from binlane.tables.landing.net_changes import GONE
from binlane.tables.landing.range_work import Mode
from binlane.tables.landing.tables.bounds import LiveFile
from binlane.tables.landing.tables.formats import Snapshot
from binlane.tables.landing.tables.key_order import Places, is_same_as_next, places

VALID_FROM: Final = "valid_from"
VALID_TO: Final = "valid_to"
IS_CURRENT: Final = "is_current"
MOMENT: Final = pa.timestamp("us", tz="UTC")
_COLUMNS: Final[list[tuple[str, pa.DataType]]] = [
    (VALID_FROM, MOMENT),
    (VALID_TO, MOMENT),
    (IS_CURRENT, pa.bool_()),
    ("_gtid", pa.string()),
    ("_seq", pa.int64()),
]
VERSION_COLUMNS: Final = pa.schema(_COLUMNS)
"""Columns of a history table behind the source's columns; `valid_to` is NULL while a version holds,
`_gtid` and `_seq` are those of the change that made the version."""


@dataclass(frozen=True, slots=True)
class Versions:
    """The rows that hold, after images were applied.

    Attributes:
        kept: Rows that held before and still hold.
        ended: Rows that hold no more, and new ones that ended with the same images.
        opened: New rows that hold from now on.
    """

    kept: pa.Table
    ended: pa.Table
    opened: pa.Table


def versions(
    holding: pa.Table,
    images: pa.Table,
    key: Sequence[str],
    schema: pa.Schema,
    is_new: npt.NDArray[np.bool_],
) -> Versions:
    """Apply images.

    Args:
        holding: The rows of the table that hold, one a key.
        images: Images sorted by key, those of a key in log order: own columns, `_gtid`, `_seq`,
            `_ts` and `_gone`; before images of updates that keep the key are not needed.
        key: Names of the key's columns.
        schema: Schema of the history table.
        is_new: For each image, whether it makes a version here; the others only end one.
    """
    is_same = is_same_as_next(images, key)
    times: Any = images.column("_ts").combine_chunks()
    following = np.minimum(np.arange(1, len(times) + 1), max(len(times) - 1, 0))
    nothing: Any = pa.scalar(None, MOMENT)
    ends = pc.if_else(pa.array(is_same), _taken(times, following), nothing)
    new = _as_versions(images, times, ends, schema)
    makes: Any = pc.and_(pc.invert(images.column(GONE)).combine_chunks(), pa.array(is_new))
    is_open: Any = pc.and_(makes, pa.array(~is_same))
    is_first = np.ones(images.num_rows, bool)
    is_first[1:] = ~is_same[:-1]
    firsts = images.filter(pa.array(is_first))
    at = places(holding, firsts, key)
    touched = holding.filter(pa.array(at >= 0))
    ended = _as_versions(
        touched,
        touched.column(VALID_FROM),
        _taken(firsts.column("_ts"), at[at >= 0]),
        schema,
    )
    return Versions(
        kept=holding.filter(pa.array(at < 0)),
        ended=pa.concat_tables([ended, new.filter(pc.and_(makes, pa.array(is_same)))]),
        opened=new.filter(is_open),
    )


def ended(rows: pa.Table, moment: pa.TimestampScalar[Any, Any]) -> pa.Table:
    """Rows that hold no more behind a moment, which log events may name in whole seconds only."""
    begins: Any = rows.column(VALID_FROM)
    latest: Any = pc.if_else(pc.greater(begins, moment), begins, moment)
    ends = pc.coalesce(rows.column(VALID_TO), latest)
    return _as_versions(rows, begins, ends, rows.schema)


def first_versions(rows: pa.Table) -> pa.Table:
    """Rows with `_ts` as versions that hold from then on."""
    nothing = pa.nulls(rows.num_rows, MOMENT)
    holds = pa.repeat(pa.scalar(True), rows.num_rows)
    made = rows.append_column(VALID_FROM, rows.column("_ts"))
    return made.append_column(VALID_TO, nothing).append_column(IS_CURRENT, holds)


def _as_versions(
    rows: pa.Table,
    begins: Any,
    ends: Any,
    schema: pa.Schema,
) -> pa.Table:
    made = {VALID_FROM: begins, VALID_TO: ends, IS_CURRENT: pc.is_null(ends)}
    known = set(rows.column_names)
    columns = []
    for field in schema:
        if field.name in made:
            columns.append(made[field.name])
        elif field.name in known:
            columns.append(rows.column(field.name).cast(field.type))
        else:  # of the table as it was once
            columns.append(pa.nulls(rows.num_rows, field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def _taken(values: Any, at: Places) -> Any:
    return values.take(pa.array(at.astype(np.int64)))


def holding(now: Snapshot, mode: Mode) -> list[LiveFile]:
    """Files of rows that hold; versions in a history table that ended are left alone."""
    files = list(now.files.values())
    if mode is not Mode.HISTORY:
        return files
    return [file for file in files if file.nulls.get(VALID_TO, file.rows) > 0]
