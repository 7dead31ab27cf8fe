"""What Spark hands to landing, made in this process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa

from binlane.grouping.event_group import group_events
from binlane.grouping.walk import walk
from binlane.scope.scope import Scope
from binlane.spark.change_batches import CHANGE_BATCHES, ChangeBatches
from binlane.spark.change_tables import ChangeTables
from binlane.spark.current_tables import CurrentTables
from binlane.spark.delta_tables import DeltaTables
from binlane.spark.journal import Journal
from binlane.spark.lander import Lander
from binlane.spark.options import SourceOptions

Binlogs = Sequence[tuple[str, bytes]]


def change_batches(binlogs: Binlogs, **options: str) -> pa.Table:
    """A log in the layout `batches`."""
    parsed = SourceOptions.parse({"path": "unused", "layout": "batches", **options})
    batches: list[pa.RecordBatch] = []
    for name, data in binlogs:
        renderer = ChangeBatches(parsed)
        for group in group_events(walk([data], file=name), file=name):
            batches += renderer.feed(group)
        batches += renderer.finish()
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
