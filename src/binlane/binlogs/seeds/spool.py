"""A folder with rows of tables as they were read, and with what is done, so that a killed process goes on.

`spool.json` names the tables. Each has a file of its state, one of its rows, and one of its ranges:
a line a range that is done, forced to disk behind the range's rows. What stands behind the last such
line is of no use, and is cut off when the folder is opened.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from binlane.binlogs.seeds.spooled_rows import RowsFile, read_blocks
from binlane.binlogs.store.disk import LocalDisk, unusable, write_whole
from binlane.client.rows.key_bounds import Bound
from binlane.client.rows.logged_table import LoggedTable
from binlane.client.rows.table_rows import RowBatch
from binlane.errors import StoreError
from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.positions import GtidPosition, GtidSet, Position

ATTEMPTS_MAX: Final = 3
"""Number of times that a table is begun that changes while it is read."""
_DISK: Final = LocalDisk()
_VERSION: Final = 1
_INDEX: Final = "spool.json"
_HINT: Final = "remove the folder, and begin anew"
_POSITIONS: Final[Mapping[str, type[GtidPosition | GtidSet]]] = {
    Flavor.MARIADB.value: GtidPosition,
    Flavor.MYSQL.value: GtidSet,
}


@dataclass(slots=True, kw_only=True)
class SpooledTable:
    """A table's reading.

    Attributes:
        name: The name of the table.
        number: Its place among the tables of the spool, from 0.
        attempt: Number of the attempt, 1 for the first.
        table: Its definition; None until its reading begins.
        low: All that this position covers was visible when its reading began.
        is_read: True if all its ranges are read.
        refusal: Why it cannot be had; empty while it can.
        bounds: The upper bounds of the ranges that are done; None of the last.
        rows: The rows of these ranges.
        size_bytes: The bytes that the file of rows has with them.
        expected: The server's estimate of its rows.
    """

    name: TableName
    number: int
    attempt: int = 1
    table: LoggedTable | None = None
    low: Position | None = None
    is_read: bool = False
    refusal: str = ""
    bounds: list[Bound | None] = field(default_factory=list)
    rows: int = 0
    size_bytes: int = 0
    expected: int = 0

    @property
    def is_done(self) -> bool:
        """True if nothing is left to read of it."""
        return self.is_read or bool(self.refusal)

    @property
    def stem(self) -> str:
        """The beginning of the names of its files."""
        return f"{self.number:06}-{self.attempt}"


class SeedSpool:
    """Rows of tables on disk. One process and one thread writes it.

    Attributes:
        folder: The folder, which nobody else uses.
        states: The tables' readings, in the order in which they are read and seeded.
    """

    def __init__(self, folder: Path, names: Sequence[TableName]) -> None:
        self.folder = folder
        self.states = [SpooledTable(name=name, number=number) for number, name in enumerate(names)]
        self._databases: dict[str, str] = {}
        self._high: Position | None = None

    @classmethod
    def create(cls, folder: Path, tables: Sequence[TableName]) -> Self:
        """Make a folder for tables that nothing was read of yet.

        Raises:
            StoreError: If it cannot be made, or is there.
        """
        spool = cls(folder, tables)
        try:
            folder.mkdir(mode=0o700)
            spool._write_index()
            _DISK.sync_directory(folder.parent)
        except OSError as error:
            raise unusable(error, folder) from None
        return spool

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Go on with a folder, as it was left by whatever end of its process.

        Raises:
            StoreError: If it cannot be read, or is none.
        """
        index = folder / _INDEX
        try:
            value = json.loads(index.read_text("utf-8"))
            spool = cls(folder, [TableName(*name) for name in value["tables"]])
            if value["version"] != _VERSION:
                raise StoreError(
                    f"it is of version {value['version']}, {_VERSION} is expected",
                    path=str(index),
                    hint=_HINT,
                )
            spool._databases = value["databases"]
            spool._high = _position(value["high"])
            for state in spool.states:
                spool._load(state)
        except OSError as error:
            raise unusable(error, folder) from None
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(f"it is damaged: {error}", path=str(index), hint=_HINT) from None
        return spool

    @property
    def tables(self) -> tuple[TableName, ...]:
        """The names of the tables, in the order in which they are read and seeded."""
        return tuple(state.name for state in self.states)

    @property
    def is_read(self) -> bool:
        """True if all tables are read to their ends, or cannot be had."""
        return self._high is not None and all(state.is_done for state in self.states)

    @property
    def high(self) -> Position | None:
        """A position that covers all that was visible while the tables were read.

        Reconciliation takes the log's changes at least up to it. None until `is_read`.
        """
        return self._high if self.is_read else None

    @property
    def refusals(self) -> dict[TableName, str]:
        """Tables that cannot be had, with the reason for people."""
        return {state.name: state.refusal for state in self.states if state.refusal}

    @property
    def definitions(self) -> dict[TableName, str]:
        """SHOW CREATE TABLE of the tables that are read, without the counter."""
        return {
            state.name: state.table.source.create
            for state in self.states
            if state.table is not None and not state.refusal
        }

    @property
    def databases(self) -> dict[str, str]:
        """SHOW CREATE DATABASE of the databases of the tables."""
        return dict(self._databases)

    def state_of(self, table: TableName) -> SpooledTable:
        """The reading of one of the tables."""
        return next(state for state in self.states if state.name == table)

    def start_over(self, table: TableName, why: str) -> None:
        """Forget what was read of a table, which is read again; the third time it is refused.

        Args:
            table: One of the spool's tables.
            why: The reason, which a refusal then tells.

        Raises:
            StoreError: If the spool cannot be written.
        """
        state = self.state_of(table)
        old = state.stem
        attempt = state.attempt + 1
        state.table, state.low, state.is_read = None, None, False
        state.bounds, state.rows, state.size_bytes = [], 0, 0
        if attempt > ATTEMPTS_MAX:
            state.refusal = f"it was begun {ATTEMPTS_MAX} times: {why}"
        else:
            state.attempt = attempt
        self._high = None
        self._write_index()
        self._save(state)
        for suffix in (".rows", ".ranges"):
            (self.folder / f"{old}{suffix}").unlink(missing_ok=True)

    def try_refused_again(self) -> None:
        """Let tables be read that could not be had: somebody may have seen to it.

        Raises:
            StoreError: If the spool cannot be written.
        """
        for state in self.states:
            if state.refusal:
                for path in self.folder.glob(f"{state.number:06}-*"):
                    path.unlink()
                state.refusal, state.attempt, self._high = "", 1, None
                state.table, state.low, state.is_read = None, None, False
                state.bounds, state.rows, state.size_bytes = [], 0, 0
                self._write_index()
                self._save(state)

    def remove(self) -> None:
        """Remove the folder with all in it."""
        shutil.rmtree(self.folder, ignore_errors=True)

    # For the reading ------------------------------------------------------------------------------

    def begin(self, state: SpooledTable, table: LoggedTable, low: Position, expected: int) -> None:
        """Note that a table's reading begins."""
        state.table, state.low, state.expected = table, low, expected
        self._save(state)

    def refuse(self, state: SpooledTable, why: str) -> None:
        """Note that a table cannot be had."""
        state.refusal = why
        self._save(state)

    def finish(self, state: SpooledTable) -> None:
        """Note that all ranges of a table are read."""
        state.is_read = True
        self._save(state)

    def note_high(self, high: Position) -> None:
        """Note a position that covers all that was visible while the tables were read."""
        self._high = high
        self._write_index()

    def note_database(self, database: str, create: str) -> None:
        """Note the definition of a database."""
        self._databases[database] = create
        self._write_index()

    def writer(self, state: SpooledTable) -> RangeWriter:
        """Write the next ranges of a table."""
        return RangeWriter(self.folder, state)

    def blocks(self, state: SpooledTable) -> Iterator[RowBatch]:
        """The rows of the ranges of a table that are done, in order.

        Raises:
            StoreError: If the file is damaged.
        """
        return read_blocks(self.folder / f"{state.stem}.rows", state.size_bytes)

    # Files ----------------------------------------------------------------------------------------

    def _write_index(self) -> None:
        value = {
            "version": _VERSION,
            "tables": [list(name) for name in self.tables],
            "databases": self._databases,
            "high": _encoded(self._high),
        }
        self._write(_INDEX, value)

    def _save(self, state: SpooledTable) -> None:
        value = {
            "attempt": state.attempt,
            "table": None if state.table is None else state.table.encode(),
            "low": _encoded(state.low),
            "is_read": state.is_read,
            "refusal": state.refusal,
            "expected": state.expected,
        }
        self._write(f"{state.number:06}.json", value)

    def _write(self, name: str, value: dict[str, Any]) -> None:
        path = self.folder / name
        try:
            write_whole(_DISK, path, json.dumps(value).encode())
        except OSError as error:
            raise unusable(error, path) from None

    def _load(self, state: SpooledTable) -> None:
        path = self.folder / f"{state.number:06}.json"
        if not path.exists():
            return
        value = json.loads(path.read_text("utf-8"))
        state.attempt, state.is_read = value["attempt"], value["is_read"]
        state.refusal, state.expected = value["refusal"], value["expected"]
        state.low = _position(value["low"])
        state.table = None if value["table"] is None else LoggedTable.decode(value["table"])
        for bound, rows, size_bytes in _ranges(self.folder / f"{state.stem}.ranges"):
            state.bounds.append(bound)
            state.rows, state.size_bytes = state.rows + rows, size_bytes


class RangeWriter:
    """Writes the next ranges of a table behind those that are done.

    Args:
        folder: The folder of the spool.
        state: The table's reading, which is kept up to date.

    Raises:
        StoreError: If the files cannot be written.
    """

    def __init__(self, folder: Path, state: SpooledTable) -> None:
        self._state = state
        self._path = folder / f"{state.stem}.ranges"
        try:
            self._rows = RowsFile(folder / f"{state.stem}.rows", state.size_bytes)
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            self._descriptor = os.open(self._path, flags, 0o600)
            kept = b"".join(_whole_lines(self._path))
            os.ftruncate(self._descriptor, len(kept))
            os.lseek(self._descriptor, 0, os.SEEK_END)
            _DISK.sync_directory(folder)
        except OSError as error:
            raise unusable(error, self._path) from None
        self._pending = 0

    def close(self) -> None:
        """Close the files; rows of a range that is not done are lost."""
        self._rows.close()
        os.close(self._descriptor)

    def add(self, batch: RowBatch) -> None:
        """Add rows of the range that is being read.

        Raises:
            StoreError: If they cannot be written.
        """
        self._rows.add(batch)
        self._pending += len(batch)

    def end_range(self, high: Bound | None) -> None:
        """The range is read to its end: force it to disk, and note it.

        Raises:
            StoreError: If that cannot be.
        """
        state = self._state
        size_bytes = self._rows.sync()
        line = json.dumps([None if high is None else list(high), self._pending, size_bytes])
        try:
            os.write(self._descriptor, line.encode() + b"\n")
            os.fsync(self._descriptor)
        except OSError as error:
            raise unusable(error, self._path) from None
        state.bounds.append(high)
        state.rows, state.size_bytes = state.rows + self._pending, size_bytes
        self._pending = 0


def _whole_lines(path: Path) -> Iterator[bytes]:
    if not path.exists():
        return
    for line in path.read_bytes().splitlines(keepends=True):
        if not line.endswith(b"\n"):
            return
        yield line


def _ranges(path: Path) -> Iterator[tuple[Bound | None, int, int]]:
    for line in _whole_lines(path):
        bound, rows, size_bytes = json.loads(line)
        yield None if bound is None else tuple(bound), rows, size_bytes


def _encoded(position: Position | None) -> list[str] | None:
    return None if position is None else [position.flavor, str(position)]


def _position(value: list[str] | None) -> Position | None:
    return None if value is None else _POSITIONS[value[0]].parse(value[1])
