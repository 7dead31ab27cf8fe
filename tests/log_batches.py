"""What tasks give to landing, made in this process."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from binlane.columnar.selection import Selection, file_number
from binlane.land.change_tables import ChangeTables
from binlane.land.current_tables import CurrentTables
from binlane.land.journal import Journal
from binlane.land.lander import Lander
from binlane.land.tables.delta import DeltaFormat
from binlane.land.tables.formats import TableFormat
from binlane.land.tables.store import StoreSettings, TableStore
from binlane.land.tasks import land_range
from binlane.land.work import Format, Mode, RangeResult, RangeWork
from binlane.ranges.items import Want
from binlane.ranges.log_range import LogRange
from binlane.scope.scope import Scope

Binlogs = Sequence[tuple[str, bytes]]
NewTables = Callable[[str, Mode, str], TableFormat]


class LogLander(Lander):
    """A lander that is given logs, each landed as one batch."""

    def __init__(self, into: Path, scope: Scope, new_tables: NewTables) -> None:
        self._into = into
        self.journal = Journal.open(str(into), None, {})
        self.kept = {
            mode: TableStore(
                mode,
                new_tables(str(into), mode, self.journal.state.app_id),
                StoreSettings(run_id=uuid.uuid4().hex),
            )
            for mode in (Mode.CURRENT, Mode.CHANGES)
        }
        super().__init__(
            self.journal,
            current=CurrentTables(self.kept[Mode.CURRENT], self.journal),
            changes=ChangeTables(self.kept[Mode.CHANGES]),
            scope=scope,
        )

    def land(self, binlogs: Binlogs) -> None:
        """Land some files as one batch."""
        with tempfile.TemporaryDirectory() as folder:
            self.apply(self._results(Path(folder), binlogs))

    def _results(self, folder: Path, binlogs: Binlogs) -> Iterable[RangeResult]:
        earlier: tuple[str, ...] = ()
        for name, data in binlogs:
            path = folder / name
            path.write_bytes(data)
            piece = LogRange(uri=str(path), name=name, number=file_number(name), earlier=earlier)
            earlier = (str(path), *earlier)
            yield land_range(
                RangeWork(
                    piece=piece,
                    want=Want(selection=Selection(scope=self._scope), has_statements=True),
                    modes=frozenset(self.kept),
                    into=str(self._into),
                    format=Format.DELTA,
                    run_id=uuid.uuid4().hex,
                    done=self.journal.state.flushed,
                    applied={
                        mode: {table: tables.applied(table) for table in tables.names()}
                        for mode, tables in self.kept.items()
                    },
                )
            )


def new_lander(
    into: Path, *, scope: Scope | None = None, new_tables: NewTables = DeltaFormat
) -> LogLander:
    """A lander as a new process makes it."""
    return LogLander(into, scope or Scope.everything(), new_tables)


def land_all(into: Path, batches: Iterable[Binlogs]) -> LogLander:
    """Land some logs, one batch after the other."""
    lander = new_lander(into)
    for binlogs in batches:
        lander.land(binlogs)
    return lander
