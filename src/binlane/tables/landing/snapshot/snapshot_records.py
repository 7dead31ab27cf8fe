"""The records of snapshots: one record a table in the journal, and the table's ranges in files beside.

A record lives from the beginning of a table's snapshot until the log is landed beyond the place up
to which the snapshot saw the table; until then the table is not called current.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any, Final

import pyarrow as pa
from pyarrow import fs

from binlane.client.rows.settled_places import SnapshotPlace
from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.statements.sql.logged_objects import LoggedObjects
from binlane.tables.columnar.log_notes import Statement
from binlane.tables.landing.journal import Journal, write_file_whole
from binlane.tables.landing.range_work import Mode
from binlane.tables.landing.snapshot.chunk_work import ChunkResult
from binlane.tables.landing.snapshot.table import SnapshotTable, snapshot_table
from binlane.tables.landing.target_files import resolve, snapshot_uri
from binlane.tables.ranges.log_range import Offset

_SUFFIX: Final = ".jsonl"


class Stage(Enum):
    """Stages of a table's snapshot."""

    READING = "reading"
    """The table's ranges are being read."""
    READ = "read"
    """All are; the log is to be landed up to their place."""
    LANDED = "landed"
    """The rows are in the tables; the log is to be landed beyond all that was seen."""
    AGAIN = "again"
    """The definition changed meanwhile, or the log was landed beyond the rows' place: it starts over."""


@dataclass(slots=True, kw_only=True)
class SnapshotRecord:
    """A table's snapshot.

    Attributes:
        snapshot_id: Name of the snapshot in its files.
        stage: The stage of the snapshot, a value of `Stage`.
        file: Binlog file of the place of the rows: later changes are landed over the rows.
        position: Position of that place, in bytes.
        high: `_seq` of a place behind all changes that the snapshot may have seen; 0 until it is
            known.
        taken: Time at which the snapshot began, in seconds since 1970.
        create: The table's definition as CREATE TABLE.
        attempt: Number of the attempt, 1 for the first.
        rows: Number of rows read so far.
        expected: Rows that the server estimates the table to have.
        invalid_dates: Zero or partial dates that became NULL.
    """

    database: str
    table: str
    snapshot_id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    stage: str = Stage.READING.value
    file: str = ""
    position: int = 0
    high: int = 0
    taken: int = 0
    create: str = ""
    flavor: str = ""
    attempt: int = 1
    rows: int = 0
    expected: int = 0
    invalid_dates: int = 0

    @property
    def name(self) -> TableName:
        """The table."""
        return TableName(self.database, self.table)

    @property
    def place(self) -> SnapshotPlace:
        """In the log, of its rows."""
        return SnapshotPlace(file=self.file, position=self.position)

    @property
    def definition(self) -> SnapshotTable:
        """The table as it was defined."""
        return snapshot_table(self.name, self.create, flavor=Flavor(self.flavor))

    def statements(self) -> tuple[Statement, Statement]:
        """The statements that make the table in place of any of its name, as if they stood in the log."""
        drop = f"DROP TABLE IF EXISTS {self.name}"
        first, second = (
            Statement(
                text=text,
                database=self.database,
                sql_mode=0,
                timestamp=self.taken,
                gtid=None,
                file=self.file,
                position=self.position,
            )
            for text in (drop, self.create)
        )
        return first, second

    @property
    def why_not(self) -> str:
        """Why the table is not current yet."""
        if self.stage == Stage.READING.value:
            return "its snapshot is being read"
        if self.stage == Stage.READ.value:
            return f"its snapshot waits for the log up to {self.place}"
        if self.stage == Stage.AGAIN.value:
            return "its snapshot starts over: give --snapshot again"
        number, position = self.high >> 40, self.high & ((1 << 40) - 1)
        return f"its snapshot is exact once the log is landed up to file {number}:{position}"


class SnapshotRecords:
    """The records of a target.

    Args:
        journal: The journal that holds the records.
        into: URI or path of the target.
    """

    def __init__(self, journal: Journal, into: str) -> None:
        self._journal = journal
        self._into = into

    def __iter__(self) -> Iterator[SnapshotRecord]:
        """All of them."""
        return iter([SnapshotRecord(**value) for value in self._journal.state.snapshots.values()])

    def of(self, table: TableName) -> SnapshotRecord | None:
        """Return the record of a table; None if it has none."""
        value = self._journal.state.snapshots.get(table.plain)
        return None if value is None else SnapshotRecord(**value)

    def put(self, *records: SnapshotRecord) -> None:
        """Write records down."""
        for record in records:
            self._journal.state.snapshots[record.name.plain] = asdict(record)
        self._journal.save()

    def landed(self, record: SnapshotRecord, place: Offset, definitions: LoggedObjects) -> None:
        """Note that a snapshot's rows are in the tables, and with it the tables' definitions."""
        record.stage = Stage.LANDED.value
        state = self._journal.state
        state.snapshots[record.name.plain] = asdict(record)
        state.partial.pop(record.name.plain, None)
        self._journal.reach(place.json(), definitions)
        self.clear(record)

    def remove(self, record: SnapshotRecord) -> None:
        """Forget a snapshot, and delete what waits of it."""
        self._journal.state.snapshots.pop(record.name.plain, None)
        self._journal.save()
        self.clear(record)

    def clear(self, record: SnapshotRecord) -> None:
        """Delete what waits of a snapshot."""
        filesystem, path = resolve(snapshot_uri(self._into, record.snapshot_id))
        if filesystem.get_file_info(path).type is fs.FileType.Directory:
            filesystem.delete_dir(path)

    # Ranges ---------------------------------------------------------------------------------------

    def add_ranges(self, record: SnapshotRecord, results: Sequence[ChunkResult]) -> None:
        """Write down ranges that are done, which follow those that are written down."""
        lines = [json.dumps(result.encode(), ensure_ascii=False) for result in results]
        filesystem, folder = resolve(snapshot_uri(self._into, record.snapshot_id))
        path = f"{folder}/{results[0].number:06}{_SUFFIX}"
        write_file_whole(filesystem, path, "\n".join([*lines, ""]))

    def ranges(self, record: SnapshotRecord, schemas: dict[Mode, pa.Schema]) -> list[ChunkResult]:
        """The ranges that are done, in order."""
        filesystem, folder = resolve(snapshot_uri(self._into, record.snapshot_id))
        selector = fs.FileSelector(folder, allow_not_found=True)
        found: list[ChunkResult] = []
        for info in sorted(filesystem.get_file_info(selector), key=lambda each: each.path):
            if info.base_name.endswith(_SUFFIX):
                with filesystem.open_input_file(info.path) as stream:
                    values: list[dict[str, Any]] = [
                        json.loads(line) for line in stream.read().decode().splitlines()
                    ]
                found += [ChunkResult.decode(value, schemas) for value in values]
        assert [each.number for each in found] == list(range(len(found))), "one after the other"
        return found
