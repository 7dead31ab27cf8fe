"""Reads tables of a server into a spool, range by range; what is done stays done."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from binlane.binlogs.seeds.spool import RangeWriter, SeedSpool, SpooledTable
from binlane.client.rows.key_bounds import Bound
from binlane.client.rows.logged_table import LoggedTable, TableChangedError, read_logged_table
from binlane.client.rows.settled_places import (
    NeverQuietError,
    await_prepared,
    gtids_behind,
    open_snapshot_at,
    set_up,
    settled_gtids,
)
from binlane.client.rows.table_rows import TableRows
from binlane.client.rows.waiting_statements import LOCK_TIMEOUT, LOCK_WAIT_S, WaitingStatements
from binlane.client.session import ServerSession
from binlane.errors import PeerError, StoreFullError, UnsupportedError
from binlane.names import TableName, quote

_ROWS_MAX: Final = 200_000
_ROW_BYTES_GUESS: Final = 200
_NAP_S: Final = 0.1
_WRITE_TIMEOUT_S: Final = 60
"""A reader that takes nothing for so long is gone: a server that waits for it holds the table."""
UNSEEN_XA: Final = (
    "the account may not see prepared XA transactions: one that is prepared now, and committed"
    " later, may be missing (GRANT XA_RECOVER_ADMIN ON *.* TO the account)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingLimits:
    """Limits of reading a server.

    Attributes:
        rows_per_s: The most rows a second, over all tables; None without a limit.
        chunk_bytes: The bytes that a range is to have, about.
        chunk_rows: The rows of a range; None for as many as have `chunk_bytes`.
        size_max_bytes: The most bytes of rows, over all tables; None without a limit.
        free_least_bytes: The room that must stay free on the spool's disk.
    """

    rows_per_s: float | None = None
    chunk_bytes: int = 4 << 20
    chunk_rows: int | None = None
    size_max_bytes: int | None = None
    free_least_bytes: int = 256 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingProgress:
    """The part of a table that is read.

    Attributes:
        table: The table that is being read.
        rows: The rows that were read of it.
        rows_expected: The rows that the server estimates it has.
        note: What somebody should know: that it starts over, or cannot be had, and why.
    """

    table: TableName
    rows: int
    rows_expected: int
    note: str = ""


def read_tables(
    spool: SeedSpool,
    session: ServerSession,
    *,
    limits: ReadingLimits | None = None,
    is_stopped: Callable[[], bool] = lambda: False,
    observe: Callable[[ReadingProgress], None] = lambda _: None,
) -> None:
    """Read what is not read yet, until `spool.is_read` or `is_stopped`.

    The changes of the tables must be kept from before this is called first: a group that becomes
    visible after that call has begun must be in the log that is kept.

    Args:
        spool: The spool; what is done in it is not read again.
        session: A session of an account that may SELECT the tables, and REPLICATION CLIENT. Its
            settings are changed.
        limits: How fast, and how much at once.
        is_stopped: Asked between any two ranges.
        observe: Told of each range that is read, and of tables that start over or are refused.

    Raises:
        PeerError: If the server goes away; call again with another session to go on.
        StoreError: If the spool cannot be written, or the limits leave no room; call again once there
            is room to go on.
        TableWantedError: If a statement waits for a table that is read in one piece: close the
            session, and call again with another one.
    """
    reading = _Reading(spool, session, limits or ReadingLimits(), is_stopped, observe)
    reading.run()


class _Reading:
    def __init__(
        self,
        spool: SeedSpool,
        session: ServerSession,
        limits: ReadingLimits,
        is_stopped: Callable[[], bool],
        observe: Callable[[ReadingProgress], None],
    ) -> None:
        self._spool = spool
        self._session = session
        self._limits = limits
        self._is_stopped = is_stopped
        self._observe = observe
        self._pace = _Pace(limits.rows_per_s)

    def run(self) -> None:
        """Read all that is left."""
        if self._spool.is_read or self._is_stopped():
            return
        set_up(self._session)
        self._session.ask(
            f"SET SESSION net_write_timeout = {_WRITE_TIMEOUT_S},"
            f" SESSION lock_wait_timeout = {LOCK_WAIT_S}"
        )
        note = "" if await_prepared(self._session) else UNSEEN_XA
        for state in self._spool.states:
            while not state.is_done:
                if self._is_stopped():
                    return
                if note:
                    self._tell(state, note)
                    note = ""
                self._read(state)
        if not self._is_stopped():
            self._note_databases()
            self._spool.note_high(gtids_behind(self._session))

    def _read(self, state: SpooledTable) -> None:
        """Read a table to its end, or until it is stopped; or note that it starts over."""
        try:
            if state.table is None:
                low = settled_gtids(self._session)
                table = read_logged_table(self._session, state.name)
                _check(table)
                self._spool.begin(state, table, low, self._expected(state.name))
            else:
                table = _unchanged(state.table, read_logged_table(self._session, state.name))
            with closing(self._spool.writer(state)) as writer:
                if table.source.key:
                    self._read_ranges(state, table, writer)
                else:
                    self._read_at_once(state, table, writer)
        except TableChangedError as error:
            self._spool.start_over(state.name, error.message)
            self._tell(state, state.refusal or f"starts over: {error.message}")
        except PeerError as error:
            if error.errno != LOCK_TIMEOUT:
                raise
            raise PeerError(
                f"{state.name.plain}: a session of the server has held it locked for"
                f" {LOCK_WAIT_S} s",
                peer=str(self._session.url),
                phase="rows",
                errno=error.errno,
                hint="see SHOW PROCESSLIST on the server: the reading goes on soon after its end",
            ) from None
        except (UnsupportedError, NeverQuietError) as error:
            hint = f": {error.hint}" if error.hint else ""
            self._spool.refuse(state, f"{error.message}{hint}")
            self._tell(state, state.refusal)

    def _read_ranges(self, state: SpooledTable, table: LoggedTable, writer: RangeWriter) -> None:
        rows = TableRows(self._session, table)
        low = state.bounds[-1] if state.bounds else None
        is_last = bool(state.bounds) and low is None
        while not is_last:
            if self._is_stopped():
                return
            high = rows.bound_behind(low, self._rows_of_range(state))
            self._read_range(rows, writer, low, high)
            self._tell(state)
            low, is_last = high, high is None
        self._spool.finish(state)

    def _read_at_once(self, state: SpooledTable, table: LoggedTable, writer: RangeWriter) -> None:
        """A table without a key: all rows at one place, exactly."""
        if state.bounds:
            self._spool.finish(state)
            return
        low = open_snapshot_at(self._session)
        self._spool.begin(state, table, low, state.expected)
        try:
            with closing(WaitingStatements(self._session, state.name)) as waiting:
                self._read_range(
                    TableRows(self._session, table), writer, None, None, look=waiting.look
                )
        except (TableChangedError, UnsupportedError):
            self._session.ask("COMMIT")  # after anything else the session is not used any more
            raise
        self._session.ask("COMMIT")
        self._spool.finish(state)
        self._tell(state)

    def _read_range(
        self,
        rows: TableRows,
        writer: RangeWriter,
        low: Bound | None,
        high: Bound | None,
        *,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        """Read a range; `look` is called before each piece behind the first."""
        count = size = 0
        for batch in rows.read(low, high):
            if count:
                look()
            size += len(batch.images) + len(batch.keys)
            self._check_room(size)
            writer.add(batch)
            count += len(batch)
        writer.end_range(high)
        self._pace.note(count, self._is_stopped)

    def _check_room(self, size_bytes: int) -> None:
        """See that there is room for more rows than are done.

        Raises:
            StoreFullError: If there is none.
        """
        limits, folder = self._limits, self._spool.folder
        size_bytes += sum(state.size_bytes for state in self._spool.states)
        if limits.size_max_bytes is not None and size_bytes > limits.size_max_bytes:
            raise StoreFullError(
                f"the rows are more than the {limits.size_max_bytes:,} bytes that are allowed",
                path=str(folder),
                hint="raise [rows] max_size, or take tables out of the scope; reading goes on then",
            )
        if shutil.disk_usage(folder).free < limits.free_least_bytes:
            raise StoreFullError(
                "the disk is nearly full",
                path=str(folder),
                hint="make room there for the tables' rows, twice: reading goes on by itself",
            )

    def _rows_of_range(self, state: SpooledTable) -> int:
        if self._limits.chunk_rows is not None:
            return self._limits.chunk_rows
        size = state.size_bytes // state.rows if state.rows else self._guess(state.name)
        rows = min(_ROWS_MAX, max(1, self._limits.chunk_bytes // max(size, 1)))
        if self._limits.rows_per_s is not None:
            rows = min(rows, max(1, int(self._limits.rows_per_s)))
        return rows

    def _guess(self, name: TableName) -> int:
        return self._statistic(name, "AVG_ROW_LENGTH") or _ROW_BYTES_GUESS

    def _expected(self, name: TableName) -> int:
        return self._statistic(name, "TABLE_ROWS")

    def _statistic(self, name: TableName, column: str) -> int:
        rows = self._session.ask(
            f"SELECT {column} FROM information_schema.TABLES WHERE"  # noqa: S608  # names are hexadecimal literals
            f" TABLE_SCHEMA = {_text(name.database)} AND TABLE_NAME = {_text(name.table)}"
        )
        return int(rows[0][0] or 0) if rows else 0

    def _note_databases(self) -> None:
        for database in sorted({state.name.database for state in self._spool.states}):
            if database not in self._spool.databases:
                shown = self._session.ask(f"SHOW CREATE DATABASE {quote(database)}")
                self._spool.note_database(database, shown[0][1] or "")

    def _tell(self, state: SpooledTable, note: str = "") -> None:
        self._observe(
            ReadingProgress(
                table=state.name,
                rows=state.rows,
                rows_expected=max(state.expected, state.rows),
                note=note,
            )
        )


class _Pace:
    """Keeps reading at a rate, by naps between ranges."""

    def __init__(self, rows_per_s: float | None) -> None:
        self._rate = rows_per_s
        self._due = time.monotonic()

    def note(self, rows: int, is_stopped: Callable[[], bool]) -> None:
        """Rows were read; wait until the next may be."""
        if self._rate is None:
            return
        self._due = max(self._due, time.monotonic() - 1) + rows / self._rate
        while (left := self._due - time.monotonic()) > 0 and not is_stopped():
            time.sleep(min(left, _NAP_S))


def _unchanged(known: LoggedTable, found: LoggedTable) -> LoggedTable:
    if (known.source.create, known.heads) != (found.source.create, found.heads):
        raise TableChangedError("its definition changed while it was read")
    return known


def _check(table: LoggedTable) -> None:
    if not table.source.is_transactional:
        raise UnsupportedError(
            "its engine is not transactional, so that its rows belong to no place in the log",
            hint="ALTER TABLE … ENGINE=InnoDB",
        )


def _text(value: str) -> str:
    """A literal that means the same under every sql_mode."""
    return f"CONVERT(0x{value.encode().hex()} USING utf8mb4)"
