"""A server whose tables are held against a binlog: how far it is, and the rows that it has.

Nothing is locked, and nothing is written. The account needs SELECT on the tables, and at the source
REPLICATION CLIENT (BINLOG MONITOR in MariaDB).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Final, Self

from binlane.binlogs.filters.rules import TableRules, WildTable
from binlane.client.rows.logged_table import LoggedTable, read_logged_table
from binlane.client.rows.settled_places import (
    await_prepared,
    open_snapshot,
    set_up,
    settled_place,
    written_place,
)
from binlane.client.rows.table_rows import TableRows
from binlane.client.rows.waiting_statements import LOCK_WAIT_S, TableWantedError, WaitingStatements
from binlane.client.session import ServerSession
from binlane.client.settings import ServerUrl
from binlane.errors import PeerError, UnsupportedError
from binlane.log.codec.format import MAGIC, Format, flavor_of
from binlane.log.codec.types import Flavor
from binlane.log.grouping.event_group import EventGroup
from binlane.names import TableName
from binlane.positions import FilePosition, Position, file_number, parse_position
from binlane.tables.proof.described_binlog import groups_with_format
from binlane.tables.proof.row_hashes import RowHasher, row_layout
from binlane.tables.proof.table_digest import Hashes
from binlane.tables.proof.watched_changes import WatchedChanges
from binlane.tables.ranges.log_range import LogRange
from binlane.tables.ranges.served_logs import file_of

CHUNK_ROWS: Final = 20_000
_PAUSE_S: Final = 0.05
_LOOK_S: Final = 1.0
_ATTEMPTS: Final = 20
_PREPARED_S: Final = 2.0
"""Longest wait for XA transactions that are prepared."""
GONE: Final = frozenset({1146, 1049})
"""Errors with which a server says that there is no such table."""
_DENIED: Final = frozenset({1142, 1143, 1044})
_TABLES: Final = (
    "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES"
    " WHERE TABLE_SCHEMA NOT IN ('information_schema', 'performance_schema', 'mysql', 'sys')"
    " AND TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED', 'SEQUENCE') ORDER BY 1, 2"
)
_FILTERS: Final = (
    *("replicate_do_db", "replicate_ignore_db", "replicate_do_table"),
    *("replicate_ignore_table", "replicate_wild_do_table", "replicate_wild_ignore_table"),
)
_MARIADB_FILTERS: Final = " UNION ALL ".join(
    f"SELECT '{name}', @@GLOBAL.{name}" for name in _FILTERS
)
_MYSQL_FILTERS: Final = (
    "SELECT FILTER_NAME, FILTER_RULE FROM performance_schema.replication_applier_filters"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """A server to compare with.

    Attributes:
        uri: The address as it was given, with the place of the password, as of `ServerPlace`.
        url: The server's address and account.
        password: The password of that account.
        is_source: True for the source of the binlog, False for a replica of the binlog.
    """

    uri: str
    url: ServerUrl
    password: str
    is_source: bool

    @property
    def label(self) -> str:
        """Name of the server in results: `source`, or a replica's address."""
        if self.is_source:
            return "source"
        return self.url.socket or f"{self.url.host}:{self.url.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationFilter:
    """The filters of a replica.

    Attributes:
        rules: The tables that the replica replicates.
        text: The filters as the server tells them.
    """

    rules: TableRules
    text: str

    @classmethod
    def of(cls, given: Iterable[tuple[str, str]]) -> Self:
        """Make the filter of the values of the server's options, by their names."""
        found: dict[str, list[str]] = {}
        for name, rule in given:
            parts = [part.strip(" `") for part in rule.split(",")]
            found.setdefault(name.lower(), []).extend(part for part in parts if part)

        def names(option: str) -> frozenset[str]:
            return frozenset(found.get(option, ()))

        def tables(option: str) -> frozenset[TableName]:
            parted = (part.replace("`", "").partition(".") for part in found.get(option, ()))
            return frozenset(TableName(database, table) for database, _, table in parted)

        def patterns(option: str) -> tuple[WildTable, ...]:
            return tuple(WildTable(part) for part in found.get(option, ()) if "." in part)

        rules = TableRules(
            do_databases=names("replicate_do_db"),
            ignore_databases=names("replicate_ignore_db"),
            do_tables=tables("replicate_do_table"),
            ignore_tables=tables("replicate_ignore_table"),
            wild_do=patterns("replicate_wild_do_table"),
            wild_ignore=patterns("replicate_wild_ignore_table"),
        )
        return cls(rules=rules, text=", ".join(f"{k}={','.join(v)}" for k, v in found.items() if v))

    def includes(self, name: TableName) -> bool:
        """True if the replica replicates a table."""
        return self.rules.includes(name)


class Pace:
    """Keeps reading down to a number of rows a second.

    Args:
        rows_per_s: The rows that may be read a second; 0 for any number.
    """

    def __init__(self, rows_per_s: int) -> None:
        self._rows_per_s = rows_per_s
        self._due_s = time.monotonic()

    def read(self, rows: int, look: Callable[[], None] = lambda: None) -> None:
        """Wait as long as reading some rows may take; `look` is called before, and each second."""
        look()
        if not self._rows_per_s:
            return
        self._due_s = max(self._due_s, time.monotonic() - 1.0) + rows / self._rows_per_s
        while (left_s := self._due_s - time.monotonic()) > 0:
            time.sleep(min(left_s, _LOOK_S))
            look()


class ComparedServer:
    """One session of a server to compare with.

    Args:
        address: The server and the account.
        pace: Keeps the reading of rows slow.

    Raises:
        PeerError: If the server cannot be reached or refuses the account.
    """

    def __init__(self, address: ServerAddress, pace: Pace) -> None:
        self.address = address
        self._pace = pace
        self._session = self._opened()
        self.flavor = flavor_of(self._session.version)

    def _opened(self) -> ServerSession:
        session = ServerSession(self.address.url, self.address.password)
        try:
            set_up(session)
            session.ask(f"SET SESSION lock_wait_timeout = {LOCK_WAIT_S}")
        except BaseException:
            session.close()
            raise
        return session

    def close(self) -> None:
        """Let go of the server."""
        self._session.close()

    def tables(self) -> list[TableName]:
        """The base tables that the account may see.

        Raises:
            PeerError: If the server goes away.
        """
        rows = self._session.ask(_TABLES)
        return [TableName(database or "", table or "") for database, table in rows]

    def lacks(self, name: TableName) -> bool:
        """True if the server surely has no such table.

        Raises:
            UnsupportedError: If the account may not know.
            PeerError: If the server goes away.
        """
        try:
            self._session.ask(f"SELECT 1 FROM {name} LIMIT 0")  # noqa: S608  # a quoted name
        except PeerError as error:
            if error.errno in GONE:
                return True
            if error.errno in _DENIED:
                raise UnsupportedError(
                    f"the account may not read it: GRANT SELECT ON {name} TO it"
                ) from None
            raise
        return False

    def table(self, name: TableName) -> LoggedTable:
        """A table's definition; errors are those of `read_logged_table`."""
        return read_logged_table(self._session, name)

    def replication_filter(self) -> ReplicationFilter:
        """The filters by which the server, as a replica, leaves tables out, as far as it tells them.

        Raises:
            PeerError: If the server goes away.
        """
        statement = _MYSQL_FILTERS if self.flavor is Flavor.MYSQL else _MARIADB_FILTERS
        try:
            rows = self._session.ask(statement)
        except PeerError as error:
            if error.errno is None:
                raise
            rows = ()
        return ReplicationFilter.of((name or "", rule or "") for name, rule in rows)

    # How far it is --------------------------------------------------------------------------------

    def settled(self) -> Position:
        """A position of which everything is visible to each read from now on.

        Raises:
            PeerError: If the account may not ask, or a transaction does not end.
        """
        if not self.address.is_source:
            return self._applied()
        if self.flavor is Flavor.MYSQL:
            return self._executed()
        position = self._position("SELECT @@GLOBAL.gtid_binlog_pos")
        written = self.written_place()
        while self._settled_place() < written:
            time.sleep(_PAUSE_S)
        return position

    def position_behind(self) -> Position:
        """A position that has everything done that was visible to reads until now.

        Raises:
            PeerError: If the account may not ask, or a transaction does not end.
        """
        if not self.address.is_source:
            return self._applied()
        if self.flavor is Flavor.MYSQL:
            settled_place(self._session)  # none that was visible is still without its GTID
            return self._executed()
        return self._position("SELECT @@GLOBAL.gtid_binlog_pos")

    def _applied(self) -> Position:
        if self.flavor is Flavor.MYSQL:
            return self._executed()
        return self._position("SELECT @@GLOBAL.gtid_slave_pos")

    def _executed(self) -> Position:
        return self._position("SELECT @@GLOBAL.gtid_executed")

    def _position(self, statement: str) -> Position:
        ((text,),) = self._session.ask(statement)
        flavor = "mysql" if self.flavor is Flavor.MYSQL else "mariadb"
        return parse_position(text or "", flavor)

    def _settled_place(self) -> FilePosition:
        place = settled_place(self._session)
        return FilePosition(place.file, place.position)

    def visible_places(self) -> tuple[FilePosition, FilePosition]:
        """Two places in the server's log: all that precedes the second is visible from now on.

        The rows of XA transactions that end behind the second place stand behind the first, if the
        account may see them prepared and they end soon.

        Raises:
            PeerError: If the account may not ask, or a transaction does not end.
        """
        first = self._settled_place()
        with suppress(PeerError):
            await_prepared(self._session, wait_s=_PREPARED_S)
        return first, self._settled_place()

    def written_place(self) -> FilePosition:
        """The end of the server's log, which may lie behind what is visible.

        Raises:
            PeerError: If the account may not ask, or the server writes no log.
        """
        place = written_place(self._session)
        return FilePosition(place.file, place.position)

    def log_between(
        self, start: FilePosition, end: FilePosition
    ) -> Iterator[tuple[EventGroup, Format]]:
        """The event groups of the server's log between two places, each with its file's format.

        Raises:
            CodecError: With file and position, if the log is damaged.
            PeerError: If the account may not read the log, or the server goes away.
        """
        first, last = file_number(start.file), file_number(end.file)
        for name, *_ in self._session.ask("SHOW BINARY LOGS"):
            if name and first <= (number := file_number(name)) <= last:
                yield from groups_with_format(
                    LogRange(
                        uri=file_of(self.address.uri, name),
                        name=name,
                        number=number,
                        start=start.position if number == first else len(MAGIC),
                        stop=end.position if number == last else None,
                    )
                )

    # Rows -----------------------------------------------------------------------------------------

    def rows(
        self, table: LoggedTable, watch: WatchedChanges, is_stopped: Callable[[], bool]
    ) -> Generator[Hashes, None, None]:
        """The hashes of a table's rows, each range of the key as of its own time.

        Args:
            table: The table, which has a key.
            watch: Keeps images of the rows that it wants.
            is_stopped: True if the reading is to end early.

        Raises:
            TableChangedError: If the table is no longer what it was.
            UnsupportedError: If a value cannot be had as the log has it.
            TableWantedError: If a statement waits for the table, which has no key and so is read in
                one piece: nothing of it is held any more.
            PeerError: If the server goes away.
        """
        hasher = RowHasher(table.table_map(1), self.flavor)
        if table.source.key:
            yield from self._ranges(TableRows(self._session, table), hasher, watch, is_stopped)
            return
        with closing(WaitingStatements(self._session, table.name)) as waiting:
            try:
                yield from self._ranges(
                    TableRows(self._session, table), hasher, watch, is_stopped, waiting.look
                )
            except TableWantedError:
                self._session.close()
                self._session = self._opened()
                raise

    def _ranges(
        self,
        reader: TableRows,
        hasher: RowHasher,
        watch: WatchedChanges,
        is_stopped: Callable[[], bool],
        look: Callable[[], None] = lambda: None,
    ) -> Generator[Hashes, None, None]:
        """Give the hashes of rows, and look for whoever wants the table behind each piece."""
        for low, high in reader.ranges(CHUNK_ROWS):
            for batch in reader.read(low, high):
                hashes, starts = hasher.hash(batch.images)
                if watch.wanted:
                    watch.keep_wanted(hashes, starts, batch.images, "")
                yield hashes
                if is_stopped():
                    return
                self._pace.read(len(hashes), look)

    def open_snapshot(self) -> Position:
        """Begin a transaction that sees exactly the rows as of a position, which is returned.

        Raises:
            PeerError: If the server wrote on at every attempt.
        """
        if self.address.is_source and self.flavor is Flavor.MARIADB:
            place = open_snapshot(self._session)
            return self._position(f"SELECT BINLOG_GTID_POS('{place.file}', {place.position})")
        for _ in range(_ATTEMPTS):
            before = self.position_behind()
            if self.address.is_source:
                open_snapshot(self._session)
            else:
                self._session.ask("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            if self.position_behind() == before:
                return before
            self._session.ask("COMMIT")
            time.sleep(_PAUSE_S)
        raise PeerError(
            "the server never stopped writing, so a snapshot would have no exact position",
            peer=str(self.address.url),
            phase="comparison",
            hint="give the table a primary key, or compare when the server is quieter",
        )

    def close_snapshot(self) -> None:
        """End the transaction of a snapshot."""
        self._session.ask("COMMIT")


def layout_of(table: LoggedTable) -> bytes:
    """The layout of a table's row images, as `row_layout` gives that of a log's."""
    return row_layout(table.table_map(1))
