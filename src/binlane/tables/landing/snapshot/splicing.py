"""Rows of a snapshot become a table's at their place in the log, as if a statement made them there.

The landing stops at that place; the table gets the rows in one commit, which says that it is
complete up to there; what comes behind is landed over them. Until the log is landed beyond all that
was seen of the table, and unless its definition changes before that, it is not called current.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from binlane.statements.sql.logged_objects import LoggedObjects
from binlane.tables.landing.change_tables import ChangeTables
from binlane.tables.landing.current_tables import CurrentTables
from binlane.tables.landing.history_tables import HistoryTables
from binlane.tables.landing.landing_progress import LandingProgress
from binlane.tables.landing.range_work import DataFile, Mode, sequence
from binlane.tables.landing.snapshot.chunk_work import file_schemas
from binlane.tables.landing.snapshot.snapshot_records import SnapshotRecord, SnapshotRecords, Stage
from binlane.tables.landing.steps import (
    AbandonAll,
    Create,
    CreateLike,
    DropDatabase,
    DropTable,
    Step,
    Truncate,
    tables_of,
)
from binlane.tables.landing.target_files import snapshot_uri
from binlane.tables.ranges.log_range import Offset

_MADE_OVER = "its definition changed while its snapshot was read"


class Snapshots:
    """The snapshots of a target on their way into its tables.

    Args:
        records: The snapshot records of the target.
        into: URI or path of the target.
        current: The target's current tables, if it keeps them.
        changes: The target's change tables, if it keeps them.
        history: The target's history tables, if it keeps them.
    """

    def __init__(
        self,
        records: SnapshotRecords,
        into: str,
        *,
        current: CurrentTables | None,
        changes: ChangeTables | None,
        history: HistoryTables | None = None,
    ) -> None:
        self._records = records
        self._into = into
        self._current = current
        self._changes = changes
        self._history = history

    def stop(self) -> Offset | None:
        """The next place in the log at which rows wait to be landed."""
        places = [each.place for each in self._records if each.stage == Stage.READ.value]
        if not places:
            return None
        first = min(places, key=lambda place: place.seq)
        return Offset(file=first.file, position=first.position)

    def are_under_way(self) -> bool:
        """True if there is a snapshot whose table is not current yet."""
        return any(True for _ in self._records)

    def reached(self, place: Offset, reach: Offset, definitions: LoggedObjects) -> None:
        """Land the snapshots that wait for a place that the log has reached, and end those it completes.

        Args:
            place: The place in the log that is reached.
            reach: A place before which no event group stands behind `place`.
            definitions: Definitions of the tables at the place; gets those of the tables that are
                landed.

        Raises:
            StoreError: If a table cannot be written.
        """
        landed = max(landed_up_to(place), landed_up_to(reach))
        for record in self._records:
            if record.stage == Stage.READ.value and record.place.seq <= landed:
                self._land(record, definitions)
                self._records.landed(record, place, definitions)
            if record.stage == Stage.LANDED.value and record.high <= landed:
                self._records.remove(record)
            elif record.stage == Stage.READING.value and record.place.seq < landed:
                # Landed without the server: what was read is of no use any more.
                self._records.clear(record)
                self._records.put(replace(record, stage=Stage.AGAIN.value, attempt=0))

    def see(self, step: Step, seq: int) -> None:
        """A statement's step is done that may be about a table whose snapshot was landed."""
        for record in self._records:
            if record.stage != Stage.LANDED.value or seq > record.high:
                continue
            if isinstance(step, DropDatabase | AbandonAll):
                if step.database not in {None, record.database}:
                    continue
            elif record.name not in tables_of(step) or isinstance(step, Truncate):
                continue
            if isinstance(step, DropTable | DropDatabase | Create | CreateLike):
                self._records.remove(record)  # what follows is all in the log
                continue
            if self._current is not None:
                self._current.give_up(record.name, _MADE_OVER)
            self._records.put(replace(record, stage=Stage.AGAIN.value))

    def starts_over(self) -> bool:
        """True if snapshots wait to be taken again from the server."""
        return any(each.stage == Stage.AGAIN.value for each in self._records)

    def report(self, progress: LandingProgress) -> None:
        """Tell which tables are not current yet."""
        for record in self._records:
            table = progress.of(record.name)
            table.is_current, table.why_not = False, record.why_not

    def _land(self, record: SnapshotRecord, definitions: LoggedObjects) -> None:
        modes = frozenset(
            mode
            for mode, tables in (
                (Mode.CURRENT, self._current),
                (Mode.CHANGES, self._changes),
                (Mode.HISTORY, self._history),
            )
            if tables is not None
        )
        table = record.definition
        schemas = file_schemas(table, modes)
        ranges = self._records.ranges(record, schemas)
        folder = snapshot_uri(self._into, record.snapshot_id)

        def files(mode: Mode) -> Sequence[DataFile]:
            return [
                replace(file, path=f"{folder}/{file.path}")
                for result in ranges
                for file in result.files.get(mode, ())
            ]

        place = record.place.seq
        if self._changes is not None:
            self._changes.seed(record.name, files(Mode.CHANGES), place)
        if self._history is not None:
            rows, key, taken = files(Mode.HISTORY), table.key_names, record.taken
            self._history.seed(record.name, rows, key, table.schema, place, taken)
        if self._current is not None:
            rows = files(Mode.CURRENT)
            self._current.seed(record.name, rows, table.key_names, table.schema, place)
        for statement in record.statements():
            definitions.follow(statement)


def landed_up_to(place: Offset | None) -> int:
    """A landing's place as `_seq` counts."""
    return 0 if place is None else sequence(place.number, place.position)
