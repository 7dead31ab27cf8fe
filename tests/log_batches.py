"""What Spark hands to landing, made in this process."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa

from binlane.columnar.selection import file_number
from binlane.land.change_tables import ChangeTables
from binlane.land.current_tables import CurrentTables
from binlane.land.delta_tables import DeltaTables
from binlane.land.journal import Journal
from binlane.land.lander import Lander
from binlane.ranges.log_range import LogRange
from binlane.scope.scope import Scope
from binlane.spark.change_batches import CHANGE_BATCHES, read_change_batches
from binlane.spark.options import SourceOptions

Binlogs = Sequence[tuple[str, bytes]]


def change_batches(binlogs: Binlogs, **options: str) -> pa.Table:
    """A log in the layout `batches`."""
    parsed = SourceOptions.parse({"path": "unused", "layout": "batches", **options})
    batches: list[pa.RecordBatch] = []
    with tempfile.TemporaryDirectory() as folder:
        earlier: tuple[str, ...] = ()
        for name, data in binlogs:
            path = Path(folder) / name
            path.write_bytes(data)
            piece = LogRange(uri=str(path), name=name, number=file_number(name), earlier=earlier)
            earlier = (str(path), *earlier)
            batches += read_change_batches(piece, parsed)
    return pa.Table.from_batches(batches, schema=CHANGE_BATCHES)


def new_lander(into: Path, *, scope: Scope | None = None) -> Lander:
    """A lander as a new process makes it."""
    journal = Journal.open(str(into), str(into / "_binlane/checkpoint"), {})
    app_id = journal.state.app_id
    return Lander(
        journal,
        current=CurrentTables(DeltaTables(str(into), "current", app_id), journal),
        changes=ChangeTables(DeltaTables(str(into), "changes", app_id)),
        scope=scope or Scope.everything(),
    )


def land_all(into: Path, micro_batches: Iterable[pa.Table]) -> Lander:
    """Land some micro-batches, one after the other."""
    lander = new_lander(into)
    for rows in micro_batches:
        lander.apply(rows)
    return lander
