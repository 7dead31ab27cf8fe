"""Events → SQL that takes their changes back, last change first.

Whole transactions are reversed. Statements wait in a temporary file until the log has been read to
its end, so memory does not grow with it, and nothing is printed of a log that cannot be taken back.
"""

from __future__ import annotations

import re
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from binlane.binlogs.cat.sql.row_sql import RowSqlCache
from binlane.binlogs.cat.sql.sql_literals import ROW_SQL_MODE
from binlane.errors import CodecError, StoreError, UnsupportedError
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.transaction import XaPrepareEvent
from binlane.log.codec.types import EventType, Flavor, HeaderFlag
from binlane.log.grouping.event_group import GroupTracker, Place
from binlane.log.grouping.table_maps import TableMaps

if TYPE_CHECKING:
    from binlane.statements.sql.logged_objects import LoggedObjects

_LENGTH_BYTES: Final = 8
_BLOCK_BYTES: Final = 1 << 20


class Spool:
    """Lines in a file, each with its length behind it, so that they can be read from the end.

    Attributes:
        size: Bytes so far; a place to cut back to.

    Args:
        directory: Directory of the file; the system's directory for temporary files by default.
    """

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self.size = 0
        try:
            # Without a name: it is gone as soon as this process is.
            self._file = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115  # closed below
        except OSError as error:
            raise self._error(error) from error
        # The file is closed, too, if its writer gives up.
        weakref.finalize(self, self._file.close)

    def add(self, line: str) -> None:
        """Write one line.

        Raises:
            StoreError: If there is no room.
        """
        data = line.encode("utf-8", "surrogateescape")
        data += len(data).to_bytes(_LENGTH_BYTES, "little")
        try:
            self._file.write(data)
        except OSError as error:
            raise self._error(error) from error
        self.size += len(data)

    def cut(self, size: int) -> None:
        """Forget everything that was written after `size` was this."""
        self._file.seek(size)
        self._file.truncate()
        self.size = size

    def backwards(self) -> Iterator[str]:
        """All lines, last one first.

        Raises:
            StoreError: If what is still in memory cannot be written.
        """
        try:
            self._file.flush()
        except OSError as error:
            raise self._error(error) from error
        end = self.size
        while end:
            start = max(0, end - _BLOCK_BYTES)
            block = self._read(start, end)
            length = int.from_bytes(block[-_LENGTH_BYTES:], "little")
            if length + _LENGTH_BYTES > len(block):
                start = end - _LENGTH_BYTES - length
                block = self._read(start, end)
            stop = len(block)
            while stop:
                length = int.from_bytes(block[stop - _LENGTH_BYTES : stop], "little")
                first = stop - _LENGTH_BYTES - length
                if stop < _LENGTH_BYTES or first < 0:
                    break
                yield block[first : stop - _LENGTH_BYTES].decode("utf-8", "surrogateescape")
                stop = first
            end = start + stop

    def close(self) -> None:
        """Give the file's room back."""
        self._file.close()

    def _read(self, start: int, end: int) -> bytes:
        self._file.seek(start)
        return self._file.read(end - start)

    def _error(self, error: OSError) -> StoreError:
        return StoreError(
            f"the temporary file cannot be written: {error.strerror or error}",
            path=str(self._directory or tempfile.gettempdir()),
            hint="make room there, or set TMPDIR to another directory",
        )


# Statements that leave every table as it was. Temporary tables are gone anyway.
_HARMLESS: Final = re.compile(
    rb"(?:BEGIN|START\s+TRANSACTION|COMMIT|SAVEPOINT|RELEASE\s+SAVEPOINT|XA\s+(?:START|BEGIN|END)"
    rb"|FLUSH|ANALYZE|CHECK|CHECKSUM|DROP\s+(?:/\*!40005\s+)?TEMPORARY)\b",
    re.IGNORECASE,
)
_ROLLBACK: Final = re.compile(rb"ROLLBACK\b", re.IGNORECASE)
_UNSPOKEN: Final = frozenset(
    {
        EventType.EXECUTE_LOAD_QUERY,
        EventType.INCIDENT,
        EventType.LOAD,
        EventType.NEW_LOAD,
        EventType.EXEC_LOAD,
    }
)
_SHOWN: Final = 60


class Flashback:
    """Renders SQL that takes one or more files back.

    Args:
        catalog: Catalog of the columns' names where the log does not tell them.
        directory: Directory of the temporary file; the system's directory for such by default.
    """

    def __init__(
        self, *, catalog: LoggedObjects | None = None, directory: Path | None = None
    ) -> None:
        self._tables = RowSqlCache(catalog)
        self._spool = Spool(directory)
        self._tracker = GroupTracker()
        self._maps = TableMaps()
        self._flavor = Flavor.MARIADB
        self._group_start: int | None = None
        self._rows_of_group = 0
        self._is_ended = True

    def head(self) -> Iterator[str]:
        """Return nothing: it is not known yet if there is anything to print."""
        yield from ()

    def lines(self, event: Event, *, file: str) -> Iterator[str]:
        """Take one event; it is printed by `finish`.

        Args:
            event: The next event; events inside a compressed transaction follow their carrier.
            file: Base name of its file.

        Raises:
            UnsupportedError: If the event changes something that the log cannot take back.
            CodecError: If a row cannot be decoded, or no TABLE_MAP tells its table.
            StoreError: If the temporary file cannot be written.
        """
        place = self._tracker.feed(event)
        if place.begins:
            self._close_group()
        with _at(event, file):
            self._feed(event, place, file)
        if not event.inner:
            # The inner events of a carrier follow the event that ends its group.
            self._is_ended = place.ends
        yield from ()

    def finish(self) -> Iterator[str]:
        """Return the whole script."""
        self._close_group()
        yield "-- SQL that takes a binlog back, made by binlane; tables must have no triggers."
        yield "SET NAMES utf8mb4;"
        settings = ["time_zone = '+00:00'", f"sql_mode = '{ROW_SQL_MODE}'"]
        # A change may have been valid only together with others that are taken back later.
        settings += ["foreign_key_checks = 0", "unique_checks = 0"]
        if self._flavor is Flavor.MARIADB:
            settings.append("check_constraint_checks = 0")
        yield f"SET {', '.join(settings)};"
        yield from self._spool.backwards()
        self._spool.close()

    def _feed(self, event: Event, place: Place, file: str) -> None:
        body = event.body
        table_map = self._maps.feed(event, file=file)
        if table_map is not None and isinstance(body, RowsEvent):
            self._begin(event, place, file)
            self._rows(event, body, table_map, file)
        elif isinstance(body, FormatDescriptionEvent):
            self._flavor = body.format.flavor
        elif isinstance(body, QueryEvent):
            self._query(body)
        elif isinstance(body, XaPrepareEvent) and not body.one_phase and self._rows_of_group:
            raise _cannot("an XA transaction that is only prepared here", "its end is elsewhere")
        elif event.header.type_code in _UNSPOKEN:
            raise _cannot(event.header.type_name, "it does not tell what was there before")
        elif event.header.type_name == "UNKNOWN" and not event.header.flags & HeaderFlag.IGNORABLE:
            raise _cannot(f"an event of the unknown type {event.header.type_code}", "")

    def _begin(self, event: Event, place: Place, file: str) -> None:
        """Print a group's first row: its COMMIT, which comes last when read backwards."""
        if self._group_start is None:
            self._group_start = self._spool.size
            when = datetime.fromtimestamp(event.header.timestamp, UTC)
            self._spool.add("COMMIT;")
            what = f"{place.gtid or 'no GTID'}  {file}:{event.position}"
            self._spool.add(f"-- takes back {what}  {when:%Y-%m-%d %H:%M:%S} UTC")

    def _rows(self, event: Event, body: RowsEvent, table_map: TableMapEvent, file: str) -> None:
        table = self._tables.get(table_map, flavor=self._flavor, place=(file, event.position))
        for change in table.changes(body):
            self._spool.add(f"{table.backward(change)};")
            self._rows_of_group += 1

    def _query(self, body: QueryEvent) -> None:
        if _ROLLBACK.match(body.query):
            if self._rows_of_group:
                raise _cannot(
                    "a ROLLBACK after rows", "the log does not tell which of them it undid"
                )
        elif not _HARMLESS.match(body.query):
            text = " ".join(body.query.decode("utf-8", "backslashreplace").split())
            shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
            raise _cannot(f"the statement {shown!r}", "it does not tell what was there before")

    def _close_group(self) -> None:
        """Begin a group where, read backwards, it begins; one that was never committed is cut."""
        if self._group_start is not None:
            if self._is_ended:
                self._spool.add("BEGIN;")
            else:
                self._spool.cut(self._group_start)
        self._group_start, self._rows_of_group = None, 0


@contextmanager
def _at(event: Event, file: str) -> Iterator[None]:
    try:
        yield
    except CodecError as error:
        raise error.at(file, event.position) from None


def _cannot(what: str, why: str) -> UnsupportedError:
    return UnsupportedError(
        f"{what} cannot be taken back" + (f": {why}" if why else ""),
        hint="choose a span without it by --start-position and --stop-position, or leave its "
        "table out by --ignore-table; nothing was printed",
    )
