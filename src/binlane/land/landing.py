"""Landing: a log's changes → tables, as a loop of batches over any engine.

Plan the next ranges behind the journal's position; have tasks decode and write them; commit, table
by table; note the position. Tables say themselves up to where they are complete (see `lander`), so
that a crash anywhere loses and doubles nothing.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from binlane.columnar.selection import Selection
from binlane.land.change_tables import ChangeTables
from binlane.land.current_tables import CurrentTables
from binlane.land.delta_tables import DeltaTables
from binlane.land.engine import EmbeddedEngine, Engine
from binlane.land.journal import Journal
from binlane.land.lander import Lander
from binlane.land.next_batch import Batch, next_batch
from binlane.land.progress import TableReport
from binlane.land.settings import LandingSettings
from binlane.land.tasks import land_range
from binlane.land.work import Mode, RangeWork
from binlane.ranges.files import Log
from binlane.ranges.items import Want
from binlane.ranges.scopes import read_scope
from binlane.scope.scope import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class LandingReport:
    """What a landing did.

    Attributes:
        tables: By name, such as `shop.orders`: also those that were there before.
        batches: Batches that were not empty.
        seconds: From start to end.
        last_gtid: Of the last change or statement applied; None if there was nothing to do.
        notes: What the reader of the tables must know.
    """

    tables: dict[str, TableReport] = field(default_factory=dict)
    batches: int = 0
    seconds: float = 0.0
    last_gtid: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """Row images landed."""
        return sum(table.rows for table in self.tables.values())


def land(
    source: str | Sequence[str],
    into: str,
    settings: LandingSettings | None = None,
    *,
    engine: Engine | None = None,
) -> LandingReport:
    """Land a log's changes, or follow it.

    Current tables need full row images. With the primary key in the log
    (`binlog_row_metadata=FULL`) changes are merged by key; without, all rows are counted, which is
    as exact but rewrites the table. A current table holds what the log tells from its beginning on:
    rows that were there before are not in it, nor are cascades that MariaDB does not log.

    Args:
        source: Files, a directory, or `DATA#name`.
        into: URI or path of the target: gets `current/<database>/<table>` and `changes/…`.
        settings: Else the defaults.
        engine: Who runs the tasks; by default processes of this machine.

    Raises:
        CodecError: With file and position, if the log is damaged or holds what cannot be landed.
        ConfigError: If source, target and checkpoint do not fit together.
        StoreError: If the log or the target cannot be used.
    """
    settings = settings or LandingSettings()
    started = time.monotonic()
    into = into.rstrip("/") if "://" in into else str(Path(into).absolute())
    sources = [source] if isinstance(source, str) else list(source)
    log = Log(sources)
    log.one_log()  # what is wrong with it is said before the target is touched
    modes = ",".join(sorted(mode.value for mode in settings.modes))
    journal = Journal.open(into, settings.checkpoint, {"mode": modes, "tables": settings.tables})
    used = engine or EmbeddedEngine()
    try:
        landing = _Landing(log, into, settings, journal, used)
        landing.run()
    finally:
        if engine is None:
            used.close()
    progress = landing.lander.finish()
    return LandingReport(
        tables=dict(sorted(progress.tables.items())),
        batches=progress.batches,
        seconds=time.monotonic() - started,
        last_gtid=progress.last_gtid,
        notes=tuple(progress.notes),
    )


class _Landing:
    """One landing at work."""

    def __init__(
        self,
        log: Log,
        into: str,
        settings: LandingSettings,
        journal: Journal,
        engine: Engine,
    ) -> None:
        self._log = log
        self._into = into
        self._settings = settings
        self._journal = journal
        self._engine = engine
        self._run_id = uuid.uuid4().hex[:12]
        scope = read_scope(settings.tables) if settings.tables else Scope.everything()
        self._want = Want(selection=Selection(scope=scope), has_statements=True)
        self._kept = {
            mode: DeltaTables(into, mode.value, journal.state.app_id) for mode in settings.modes
        }
        kept = self._kept
        self.lander = Lander(
            journal,
            current=CurrentTables(kept[Mode.CURRENT], journal) if Mode.CURRENT in kept else None,
            changes=ChangeTables(kept[Mode.CHANGES]) if Mode.CHANGES in kept else None,
            scope=scope,
        )

    def run(self) -> None:
        """Land what there is; following, go on until interrupted."""
        settings = self._settings
        while True:
            began = time.monotonic()
            batch = next_batch(
                self._log,
                self._journal.state.position,
                batch_bytes=settings.batch_bytes,
                task_bytes=settings.task_bytes,
            )
            if batch is not None:
                self._land(batch)
            elif settings.follow_s is None:
                return
            else:
                time.sleep(max(0.0, began + settings.follow_s - time.monotonic()))

    def _land(self, batch: Batch) -> None:
        state = self._journal.state
        applied = {
            mode: {table: tables.applied(table) for table in tables.names()}
            for mode, tables in self._kept.items()
        }
        works = [
            RangeWork(
                piece=piece,
                want=self._want,
                modes=self._settings.modes,
                into=self._into,
                format=self._settings.format,
                run_id=self._run_id,
                done=state.flushed,
                applied=applied,
            )
            for piece in batch.pieces
        ]
        self.lander.apply(self._engine.run(land_range, works))
        self._journal.reach(batch.end, self.lander.definitions)
