"""What tasks give to landing, made in this process."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from binlane.positions import file_number
from binlane.statements.scope.scope import Scope
from binlane.tables.columnar.followed_log import FollowedLog
from binlane.tables.columnar.selection import Selection
from binlane.tables.columnar.table_schema import ReadOptions
from binlane.tables.landing.audit import Audit
from binlane.tables.landing.journal import Journal
from binlane.tables.landing.landed_log import LandedLog
from binlane.tables.landing.lander import BatchTerms, Lander, TargetTables
from binlane.tables.landing.linked_tables import StaleBatchError
from binlane.tables.landing.range_work import FormatName, Mode, RangeResult, RangeWork
from binlane.tables.landing.tables.delta import DeltaFormat
from binlane.tables.landing.tables.formats import TableFormat
from binlane.tables.landing.tables.store_settings import TableStoreSettings
from binlane.tables.landing.tables.table_store import TableStore
from binlane.tables.landing.tasks import land_range
from binlane.tables.ranges.log_range import LogRange

Binlogs = Sequence[tuple[str, bytes]]
NewTables = Callable[[str, Mode, str], TableFormat]


class LogLander(Lander):
    """A lander that is given logs, each landed as one batch."""

    def __init__(
        self, into: Path, scope: Scope, new_tables: NewTables, modes: Collection[Mode]
    ) -> None:
        self._into, self._scope = into, scope
        self.journal = Journal.open(str(into), None, {})
        self.kept = {
            mode: TableStore(
                str(into),
                mode,
                new_tables(str(into), mode, self.journal.state.app_id),
                TableStoreSettings(run_id=uuid.uuid4().hex),
            )
            for mode in modes
        }
        kept, journal = self.kept, self.journal
        audit = Audit(journal.state)
        super().__init__(
            journal,
            kept=TargetTables.of(kept, journal, audit),
            log=LandedLog(scope, FollowedLog(journal.definitions())),
            audit=audit,
        )

    def land(self, binlogs: Binlogs) -> None:
        """Land some files as one batch; the log's first file is the log from its beginning."""
        if file_number(binlogs[0][0]) == 1:
            self.journal.state.landed.clear()
        with tempfile.TemporaryDirectory() as folder:
            terms = self.begin()
            while True:
                try:
                    self.apply(self._results(Path(folder), binlogs, terms))
                    self.journal.save()
                    break
                except StaleBatchError:
                    terms = self.begin(is_again=True)

    def _results(self, folder: Path, binlogs: Binlogs, terms: BatchTerms) -> Iterable[RangeResult]:
        scope = self._scope.with_tables(terms.links)
        earlier: tuple[str, ...] = ()
        for number, (name, data) in enumerate(binlogs):
            path = folder / name
            path.write_bytes(data)
            piece = LogRange(uri=str(path), name=name, number=file_number(name), earlier=earlier)
            earlier = (str(path), *earlier)
            yield land_range(
                RangeWork(
                    piece=terms.of(piece, number),
                    want=ReadOptions(selection=Selection(scope=scope), has_statements=True),
                    modes=frozenset(self.kept),
                    into=str(self._into),
                    format=FormatName.DELTA,
                    run_id=uuid.uuid4().hex,
                    done=self.journal.state.flushed,
                    applied=self.applied(),
                    lost=self.lost,
                    links=terms.links,
                )
            )


def new_lander(
    into: Path,
    *,
    scope: Scope | None = None,
    new_tables: NewTables = DeltaFormat,
    modes: Collection[Mode] = (Mode.CURRENT, Mode.CHANGES),
) -> LogLander:
    """A lander as a new process makes it."""
    return LogLander(into, scope or Scope.everything(), new_tables, modes)


def land_all(into: Path, batches: Iterable[Binlogs]) -> LogLander:
    """Land some logs, one batch after the other."""
    lander = new_lander(into)
    for binlogs in batches:
        lander.land(binlogs)
    return lander
