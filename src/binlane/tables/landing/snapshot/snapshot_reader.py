"""Reads the rows of a server's tables, range by range, over any engine; what is done stays done.

No lock is taken. All ranges of a table with a key count as read at one place in the log, of which
all that precedes was visible before the first range was read; what comes behind is landed over them.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from binlane.client.rows.key_bounds import Bound, bound_statement
from binlane.client.rows.logged_table import DENIED, GONE, TableChangedError, check_definition
from binlane.client.rows.settled_places import (
    SnapshotPlace,
    place_behind,
    set_up,
    settled_place,
)
from binlane.client.session import ServerSession
from binlane.errors import PeerError, UnsupportedError
from binlane.log.codec.format import flavor_of
from binlane.names import TableName
from binlane.tables.landing.engine import Engine
from binlane.tables.landing.landing_progress import LandingProgress
from binlane.tables.landing.range_work import Mode
from binlane.tables.landing.snapshot.chunk_work import (
    ChunkResult,
    ChunkTrouble,
    ChunkWork,
    file_schemas,
    snapshot_chunk,
)
from binlane.tables.landing.snapshot.snapshot_records import SnapshotRecord, SnapshotRecords, Stage
from binlane.tables.landing.snapshot.table import SnapshotTable, snapshot_table
from binlane.tables.ranges.served_logs import ServerPlace

ATTEMPTS_MAX: Final = 3
"""Number of times that a table is begun that changes, or is wanted by a statement, while it is read."""
CHUNK_BYTES: Final = 48 << 20
_CHANGED: Final = "its definition changed while it was read"
_CHUNK_ROWS_MAX: Final = 500_000
_ROW_BYTES_GUESS: Final = 200
_ROUND: Final = 16
_TABLES: Final = (
    "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, TABLE_ROWS, AVG_ROW_LENGTH"
    " FROM information_schema.TABLES WHERE TABLE_SCHEMA NOT IN"
    " ('information_schema', 'performance_schema', 'mysql', 'sys')"
    " AND TABLE_TYPE NOT IN ('VIEW', 'SYSTEM VIEW', 'SEQUENCE') ORDER BY 1, 2"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotTarget:
    """The target that a snapshot's rows go to.

    Attributes:
        into: The target's URI or absolute path.
        modes: The kinds of tables that get rows.
        chunk_rows: Rows of a range; None for as many as have about 48 MB.
    """

    into: str
    modes: frozenset[Mode]
    chunk_rows: int | None = None


@dataclass(slots=True)
class _Reading:
    """A table that is being read.

    Attributes:
        table: The definition of the table.
        number: The number of the next range.
        low: The lower bound of the next range; None for the first.
        is_planned: Whether the last range was given out.
        results: Results that are not written down yet.
        trouble: Why the table cannot be read on.
    """

    record: SnapshotRecord
    table: SnapshotTable
    number: int = 0
    low: Bound | None = None
    is_planned: bool = False
    results: list[ChunkResult] = field(default_factory=list)
    trouble: ChunkTrouble | None = None


class SnapshotReader:
    """Reads tables of one server.

    Args:
        server: URL of the server, whose account may SELECT the tables, and REPLICATION CLIENT.
        records: The snapshot records of the target.
        target: The target that the rows go to.
        engine: The engine that runs the works.
        progress: Told of rows, and of tables that cannot be had.
        observe: Called when there is progress.

    Raises:
        PeerError: If the server cannot be reached or refuses the account.
    """

    def __init__(
        self,
        server: str,
        *,
        records: SnapshotRecords,
        target: SnapshotTarget,
        engine: Engine,
        progress: LandingProgress,
        observe: Callable[[], None] = lambda: None,
    ) -> None:
        self._server = server
        self._records = records
        self._target = target
        self._engine = engine
        self._progress = progress
        self._observe = observe
        place = ServerPlace.parse(server)
        self.session = ServerSession(place.url, place.password())
        set_up(self.session)

    def close(self) -> None:
        """Let go of the server."""
        self.session.close()

    def begin(
        self,
        is_wanted: Callable[[TableName], bool],
        check: Callable[[SnapshotPlace], None],
        named: Collection[TableName] = (),
    ) -> None:
        """Begin the snapshots of tables, and see to those that were begun before.

        Args:
            is_wanted: Tells which of the server's tables are wanted; one whose snapshot is under
                way goes on.
            named: Tables that the server is to have.
            check: Raises where the log does not come to a place.

        Raises:
            PeerError: If the server refuses something, or goes away.
        """
        # Before any definition is looked at, so that none changes behind it unseen.
        place = settled_place(self.session)
        check(place)
        fresh, missing = [], set(named)
        for database, name, _, rows, _ in self.session.ask(_TABLES):
            table = TableName(database or "", name or "")
            missing.discard(table)
            known = self._records.of(table)
            if known is not None and known.stage != Stage.AGAIN.value:
                continue
            if known is None and not is_wanted(table):
                continue
            record = self._begun(table, place, int(rows or 0), known)
            if record is not None:
                fresh.append(record)
        self._records.put(*fresh)
        for table in sorted(missing, key=str):
            self._tell(
                table,
                "the server has none of that name, or the account may not see it "
                f"(GRANT SELECT ON {table} TO the account)",
            )

    def read(self, is_stopped: Callable[[], bool] = lambda: False) -> None:
        """Read all tables whose snapshots are begun, to their ends.

        Args:
            is_stopped: Whether to leave the rest for another time.

        Raises:
            PeerError: If the server goes away; what is done stays done.
            StoreError: If the target cannot be written.
        """
        readings = (self._reading(record) for record in self._records)
        queue = deque(each for each in readings if each is not None)
        while queue and not is_stopped():
            ended: list[_Reading] = []
            works = list(islice(self._works(queue, ended), _ROUND))
            open_ = {id(reading): reading for reading, _ in works}
            try:
                results = self._engine.run(snapshot_chunk, [work for _, work in works])
                for (reading, _), result in zip(works, results, strict=True):
                    self._take(reading, result)
            finally:
                for reading in open_.values():
                    self._write_down(reading)
            for reading in {**open_, **{id(each): each for each in ended}}.values():
                again = self._after_round(reading)
                if reading.trouble is not None and reading in queue:
                    queue.remove(reading)
                if again is not None:
                    queue.append(again)
        self._progress.reading = ""

    # One table ------------------------------------------------------------------------------------

    def _begun(
        self,
        name: TableName,
        place: SnapshotPlace,
        rows: int,
        before: SnapshotRecord | None,
        why: str = _CHANGED,
    ) -> SnapshotRecord | None:
        """A record of a new snapshot; None where there can be none, which is told."""
        attempt = 1 if before is None else before.attempt + 1
        if before is not None:
            self._records.remove(before)
        if attempt > ATTEMPTS_MAX:
            self._tell(name, f"it was begun {ATTEMPTS_MAX} times, at last: {why}")
            return None
        try:
            table = self._table(name)
        except UnsupportedError as error:
            self._tell(name, error.message)
            return None
        except TableChangedError:
            return None  # gone meanwhile
        return SnapshotRecord(
            database=name.database,
            table=name.table,
            file=place.file,
            position=place.position,
            taken=int(time.time()),
            create=table.create,
            flavor=flavor_of(self.session.version).value,
            attempt=attempt,
            expected=rows,
        )

    def _table(self, name: TableName) -> SnapshotTable:
        try:
            create = self.session.ask(f"SHOW CREATE TABLE {name}")[0][1] or ""
            ((rows, row_bytes),) = self.session.ask(
                "SELECT TABLE_ROWS, AVG_ROW_LENGTH FROM information_schema.TABLES WHERE"  # noqa: S608  # names are hexadecimal literals
                f" TABLE_SCHEMA = {_text(name.database)} AND TABLE_NAME = {_text(name.table)}"
            )
        except PeerError as error:
            if error.errno in GONE:
                raise TableChangedError(error.message) from None
            if error.errno in DENIED:
                raise UnsupportedError(
                    f"the account may not read it (GRANT SELECT ON {name} TO the account)"
                ) from None
            raise
        except ValueError:
            raise TableChangedError("it is gone") from None
        table = snapshot_table(
            name,
            create,
            flavor=flavor_of(self.session.version),
            rows=int(rows or 0),
            row_bytes=int(row_bytes or 0),
        )
        if not table.is_transactional:
            if not table.key:
                raise UnsupportedError(
                    "it has neither a primary key nor an engine with consistent reads"
                )
            note = f"{name.plain}: its engine is not transactional: rows of its snapshot are exact "
            note += "as far as its log is in the order of its changes"
            if note not in self._progress.notes:
                self._progress.notes.append(note)
        return table

    def _reading(self, record: SnapshotRecord) -> _Reading | None:
        """A table to read or to read on; None if there is nothing to read of it."""
        if record.stage != Stage.READING.value:
            return None
        try:
            table = self._table(record.name)
        except (UnsupportedError, TableChangedError) as error:
            self._records.remove(record)
            self._tell(record.name, error.message)
            return None
        if table.create != record.create:
            return self._again(record)
        done = self._records.ranges(record, file_schemas(table, self._target.modes))
        reading = _Reading(record, table, number=len(done))
        if done:
            reading.low = done[-1].high
            reading.is_planned = reading.low is None
        return reading

    def _again(self, record: SnapshotRecord, why: str = _CHANGED) -> _Reading | None:
        place = settled_place(self.session)
        fresh = self._begun(record.name, place, record.expected, record, why)
        if fresh is None:
            return None
        self._records.put(fresh)
        return self._reading(fresh)

    # Ranges ---------------------------------------------------------------------------------------

    def _works(
        self, queue: deque[_Reading], ended: list[_Reading]
    ) -> Iterator[tuple[_Reading, ChunkWork]]:
        while queue:
            reading = queue[0]
            try:
                work = self._next_work(reading)
            except PeerError as error:
                if error.errno not in GONE:
                    raise
                reading.trouble = ChunkTrouble(what=error.message, is_passing=True)
                work = None
            if work is None:
                ended.append(queue.popleft())
            else:
                yield reading, work

    def _next_work(self, reading: _Reading) -> ChunkWork | None:
        if reading.is_planned:
            return None
        table, low = reading.table, reading.low
        row_bytes = table.row_bytes or _ROW_BYTES_GUESS
        rows = self._target.chunk_rows or min(_CHUNK_ROWS_MAX, max(1, CHUNK_BYTES // row_bytes))
        high = self._bound(table, low, rows) if table.key else None
        work = ChunkWork(
            table=table,
            number=reading.number,
            low=low,
            high=high,
            server=self._server,
            place=reading.record.place if table.key else None,
            taken=reading.record.taken,
            modes=self._target.modes,
            into=self._target.into,
            snapshot_id=reading.record.snapshot_id,
            size_bytes=(table.rows if high is None else rows) * row_bytes,
        )
        reading.number, reading.low, reading.is_planned = reading.number + 1, high, high is None
        return work

    def _bound(self, table: SnapshotTable, low: Bound | None, rows: int) -> Bound | None:
        """The key that ends the range behind `low`; None if there are no more rows than it has."""
        statement = bound_statement(str(table.name), table.key, low, rows)
        for piece in self.session.stream(statement):
            return tuple(
                part.literal(cells[0]) for part, cells in zip(table.key, piece, strict=True)
            )
        return None

    def _take(self, reading: _Reading, result: ChunkResult | ChunkTrouble) -> None:
        if isinstance(result, ChunkTrouble):
            reading.trouble = reading.trouble or result
        elif reading.trouble is None:
            reading.results.append(result)
            reading.record.rows += result.rows
            reading.record.invalid_dates += result.invalid_dates
            report = self._progress.of(reading.record.name)
            report.snapshot_rows += result.rows
            # The server's number was an estimate.
            report.snapshot_expected = max(reading.record.expected, reading.record.rows)
            share = 100 * reading.record.rows // max(report.snapshot_expected, 1)
            self._progress.reading = f"{reading.record.name.plain} {share} %"
            self._observe()

    def _write_down(self, reading: _Reading) -> None:
        if reading.results:
            self._records.add_ranges(reading.record, reading.results)
            if not reading.table.key:
                place = reading.results[0].place
                reading.record.file, reading.record.position = place.file, place.position
            reading.results = []
            self._records.put(reading.record)

    def _after_round(self, reading: _Reading) -> _Reading | None:
        """Return the reading that is to start over after a round; None mostly."""
        record = reading.record
        if reading.trouble is None and reading.is_planned:
            try:
                check_definition(self.session, record.name, reading.table.create)
            except TableChangedError as error:
                reading.trouble = ChunkTrouble(what=error.message, is_passing=True)
            except PeerError as error:
                if error.errno not in GONE:
                    raise
                reading.trouble = ChunkTrouble(what=error.message, is_passing=True)
            else:
                record.high = place_behind(self.session).seq
                record.stage = Stage.READ.value
                self._records.put(record)
                return None
        if reading.trouble is None:
            return None
        if reading.trouble.is_passing:
            return self._again(record, reading.trouble.what)
        self._records.remove(record)
        self._tell(record.name, reading.trouble.what)
        return None

    def _tell(self, name: TableName, why: str) -> None:
        self._progress.notes.append(f"{name.plain}: no snapshot of it: {why}")


def _text(value: str) -> str:
    """A literal that means the same under every sql_mode."""
    return f"CONVERT(0x{value.encode().hex()} USING utf8mb4)"
