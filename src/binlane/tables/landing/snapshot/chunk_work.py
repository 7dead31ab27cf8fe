"""The work of a snapshot's task: read one range of a table from the server, and write its files.

The files lie beside the tables until the log is landed up to the place of the rows. Memory is bounded whatever the range holds: a table may get several files of one range.
"""

from __future__ import annotations

import uuid
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from binlane.client.rows.key_bounds import Bound, between
from binlane.client.rows.logged_table import GONE, TableChangedError, check_definition
from binlane.client.rows.settled_places import (
    NeverQuietError,
    SnapshotPlace,
    open_snapshot,
    set_up,
)
from binlane.client.rows.waiting_statements import TableWantedError, WaitingStatements
from binlane.client.session import ServerSession
from binlane.client.text_results import Cells
from binlane.errors import BinlaneError, PeerError, UnsupportedError
from binlane.tables.landing.range_work import DataFile, Mode
from binlane.tables.landing.snapshot.cells import cell_converter
from binlane.tables.landing.snapshot.table import SnapshotTable
from binlane.tables.landing.table_files import write_file
from binlane.tables.landing.tables.key_order import sorted_by_key
from binlane.tables.landing.target_files import snapshot_uri
from binlane.tables.ranges.served_logs import ServerPlace

FILE_BYTES_MAX: Final = 64 << 20
"""Bytes of rows in memory behind which a file ends."""
OPERATION: Final = "snapshot"
"""`_op` of the rows in change tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkWork:
    """A range of a table, to be read by one task.

    Attributes:
        number: Number of the range, from 0 in the order of the key.
        low: The key behind which the rows lie; None for the first range.
        high: The last key of the range; None for the last range.
        server: The server's URL, which says where the password is.
        place: Place in the log before which all changes are visible; None for a table without a
            key, whose rows must come with an exact place of their own.
        taken: Time at which the snapshot began, in seconds since 1970.
        modes: The kinds of tables that get files.
        into: URI or absolute path of the target.
        snapshot_id: Name of the snapshot in the files.
        size_bytes: Bytes to read from the server, about.
    """

    table: SnapshotTable
    number: int
    low: Bound | None
    high: Bound | None
    server: str
    place: SnapshotPlace | None
    taken: int
    modes: frozenset[Mode]
    into: str
    snapshot_id: str
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkResult:
    """The result of reading a range.

    Attributes:
        high: The last key of the range, where it has one.
        place: Place of the rows in the log.
        rows: The number of rows in the range.
        invalid_dates: Zero or partial dates in the rows that became NULL.
        files: Files in the folder of the snapshot, by kind of table.
    """

    number: int
    high: Bound | None
    place: SnapshotPlace
    rows: int
    invalid_dates: int
    files: dict[Mode, tuple[DataFile, ...]]

    def encode(self) -> dict[str, Any]:
        """The result as JSON holds it, without the files' schemas."""
        return {
            "number": self.number,
            "high": self.high,
            "place": [self.place.file, self.place.position],
            "rows": self.rows,
            "invalid_dates": self.invalid_dates,
            "files": {
                mode.value: [[file.path, file.rows, file.size_bytes, file.stats] for file in files]
                for mode, files in self.files.items()
            },
        }

    @classmethod
    def decode(cls, value: dict[str, Any], schemas: dict[Mode, pa.Schema]) -> Self:
        """Return the result that `encode` wrote; the schemas are those of the table's files."""
        high, (file, position) = value["high"], value["place"]
        return cls(
            number=value["number"],
            high=None if high is None else tuple(high),
            place=SnapshotPlace(file=file, position=position),
            rows=value["rows"],
            invalid_dates=value["invalid_dates"],
            files={
                mode: tuple(
                    DataFile(path=path, rows=rows, size_bytes=size, schema=schema, stats=stats)
                    for path, rows, size, stats in value["files"][mode.value]
                )
                for mode, schema in schemas.items()
                if mode.value in value["files"]
            },
        )


def file_schemas(table: SnapshotTable, modes: frozenset[Mode]) -> dict[Mode, pa.Schema]:
    """Return the schemas of the files of a table's ranges, by kind of table."""
    own = table.schema
    found = {
        Mode.CURRENT: pa.schema([*own, *_CURRENT]),
        Mode.CHANGES: pa.schema([*_CHANGES, *own]),
        Mode.HISTORY: pa.schema([*own, *_CURRENT, _MOMENT]),
    }
    if not table.key:
        del found[Mode.HISTORY]  # versions cannot be told from each other
    return {mode: schema for mode, schema in found.items() if mode in modes}


_CURRENT: Final = (pa.field("_gtid", pa.string()), pa.field("_seq", pa.int64()))
_MOMENT: Final = pa.field("_ts", pa.timestamp("us", tz="UTC"))
_CHANGES: Final = (
    pa.field("_op", pa.string()),
    pa.field("_gtid", pa.string()),
    _MOMENT,
    pa.field("_file", pa.string()),
    pa.field("_pos", pa.int64()),
    pa.field("_row", pa.int32()),
    pa.field("_seq", pa.int64()),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkTrouble:
    """The reason why one table, and no other, cannot be read on.

    Attributes:
        what: The reason in one line for people.
        is_passing: Whether the table may be had when its snapshot starts over.
    """

    what: str
    is_passing: bool


def snapshot_chunk(work: ChunkWork) -> ChunkResult | ChunkTrouble:
    """Read one range of a table, and write its files; or say why that cannot be.

    Raises:
        PeerError: If the server goes away, or refuses what concerns not this table alone.
        StoreError: If the target cannot be written.
    """
    try:
        return _read(work)
    except (TableChangedError, TableWantedError) as error:
        return ChunkTrouble(what=error.message, is_passing=True)
    except (UnsupportedError, NeverQuietError) as error:
        return ChunkTrouble(what=f"{error.message}: {error.hint}", is_passing=False)


def _read(work: ChunkWork) -> ChunkResult:
    place_of_server = ServerPlace.parse(work.server)
    with ServerSession(place_of_server.url, place_of_server.password()) as session:
        set_up(session)
        place = work.place
        if place is None:
            place = open_snapshot(session)
        files = _ChunkFiles(work, place)
        try:
            statement = work.table.select + between(work.table.key, work.low, work.high)
            with ExitStack() as stack:
                pieces = stack.enter_context(closing(session.stream(statement)))
                waiting = None
                if work.place is None:
                    waiting = stack.enter_context(
                        closing(WaitingStatements(session, work.table.name))
                    )
                for piece in pieces:
                    files.add(piece)
                    if waiting is not None:
                        waiting.look()
            # A definition that is still the same now was the same for the read.
            check_definition(session, work.table.name, work.table.create)
        except BinlaneError as error:
            if isinstance(error, PeerError) and error.errno in GONE:
                raise TableChangedError(error.message) from None
            raise
        return files.finish()


class _ChunkFiles:
    """The files of one range."""

    def __init__(self, work: ChunkWork, place: SnapshotPlace) -> None:
        self._work = work
        self._place = place
        self._converters = [cell_converter(column) for column in work.table.columns]
        self._schema = work.table.schema
        self._folder = snapshot_uri(work.into, work.snapshot_id)
        self._schemas = file_schemas(work.table, work.modes)
        self._parts: list[pa.Table] = []
        self._size_bytes = 0
        self._rows = 0
        self._invalid_dates = 0
        self._files: dict[Mode, list[DataFile]] = {mode: [] for mode in self._schemas}

    def add(self, piece: list[Cells]) -> None:
        """Take rows as the server sent them."""
        arrays = []
        for convert, cells in zip(self._converters, piece, strict=True):
            array, invalid = convert(cells)
            self._invalid_dates += invalid
            arrays.append(array)
        part = pa.Table.from_arrays(arrays, schema=self._schema)
        for name in self._work.table.key_names:
            if part.column(name).null_count:
                raise UnsupportedError(
                    f"its key has dates in {name} that are none, which no table can hold apart",
                    hint="change them on the server",
                )
        self._parts.append(part)
        self._size_bytes += part.nbytes
        if self._size_bytes >= FILE_BYTES_MAX:
            self._write()

    def finish(self) -> ChunkResult:
        """Write the rest."""
        self._write()
        return ChunkResult(
            number=self._work.number,
            high=self._work.high,
            place=self._place,
            rows=self._rows,
            invalid_dates=self._invalid_dates,
            files={mode: tuple(files) for mode, files in self._files.items()},
        )

    def _write(self) -> None:
        if not self._parts:
            return
        rows = pa.concat_tables(self._parts)
        self._parts, self._size_bytes = [], 0
        key = self._work.table.key_names
        rows = sorted_by_key(rows, key)
        work = self._work
        first, self._rows = self._rows, self._rows + rows.num_rows
        added = self._added(rows.num_rows, first)
        for mode, schema in self._schemas.items():
            columns = [
                added[field.name] if field.name in added else rows.column(field.name)
                for field in schema
            ]
            known = [*key, "_seq", "_ts"] if mode is Mode.CHANGES else key
            table = pa.Table.from_arrays(columns, schema=schema)
            folder = f"{self._folder}/{mode.value}"
            name = f"{work.snapshot_id}-{work.number:06}-{uuid.uuid4().hex}.parquet"
            file = write_file(table, folder, name, known)
            self._files[mode].append(replace(file, path=f"{mode.value}/{name}"))

    def _added(self, rows: int, first: int) -> dict[str, Any]:
        """The columns that landing adds, by name."""
        moment = datetime.fromtimestamp(self._work.taken, UTC)
        return {
            "_op": _same(OPERATION, pa.string(), rows),
            "_gtid": pa.nulls(rows, pa.string()),
            "_ts": _same(moment, _MOMENT.type, rows),
            "_file": _same(self._place.file, pa.string(), rows),
            "_pos": _same(self._place.position, pa.int64(), rows),
            "_row": pa.array(np.arange(first, first + rows, dtype=np.int32)),
            "_seq": _same(self._place.seq, pa.int64(), rows),
        }


def _same(value: object, data_type: pa.DataType, rows: int) -> Any:
    one: Any = pa.scalar(value, data_type)
    return pa.repeat(one, rows)
