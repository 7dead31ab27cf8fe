"""Fills: binlogs that are being given their tables' rows, on disk, beside the definitions.

A fill reads rows while a *staging* binlog keeps what changes them meanwhile, and then places them as
*seed* groups at one place of the source's log. The groups have GTIDs of their own: of a domain that
the source does not use (MariaDB), or of a UUID (MySQL). Where such groups stand in a binlog is a
*seeding*; a beginning stands for all that was before it, an addition for some tables alone. An
*arrival* needs no fill: it stands around a statement of the source that brings tables into a scope.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from binlane.binlogs.store.database import SqliteDatabase
from binlane.errors import DefinitionError
from binlane.positions import (
    AnyGtid,
    Gtid,
    GtidPosition,
    GtidRun,
    GtidSet,
    MysqlGtid,
    Position,
    nothing_done,
    parse_position,
    uuid_text,
)

STAGING_PREFIX: Final = "@fill-"
BLOCK: Final = 1 << 24
"""GTIDs that one seeding may use, so that those of two never mix."""
DOMAIN: Final = 620_000
"""The domain of seed groups' GTIDs, unless the settings name another one."""
_SERVER_ID_BASE: Final = 0x63000000
_SERVER_ID_RANDOM: Final = 1 << 24


class FillKind(Enum):
    """Reason for a fill: CREATE … WITH ROWS, ADD LOG … WITH ROWS, or COMPACT."""

    CREATE = "create"
    ADD = "add"
    COMPACT = "compact"

    @property
    def is_beginning(self) -> bool:
        """True if the rows are all of the binlog's tables, which replicas may begin with."""
        return self is not FillKind.ADD


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedSource:
    """The origin of seed groups' GTIDs.

    Attributes:
        name: The domain and the server id as `77-9` for MariaDB, a UUID for MySQL.
        server_id: The server id in the headers of seed groups' events.
    """

    name: str
    server_id: int

    @property
    def flavor(self) -> str:
        """The flavor of the GTIDs, as positions name it."""
        return GtidSet.flavor if self.name.count("-") > 1 else GtidPosition.flavor

    @property
    def key(self) -> str:
        """The domain alone, or the UUID: what tells these GTIDs from the source's own."""
        return self.name if self.flavor == GtidSet.flavor else self.name.partition("-")[0]

    def gtid(self, sequence: int) -> AnyGtid:
        """Give the GTID of a sequence."""
        if self.flavor == GtidSet.flavor:
            return MysqlGtid(self.name, sequence)
        domain_id, server_id = self.name.split("-")
        return Gtid(int(domain_id), int(server_id), sequence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeding:
    """A stretch of seed groups in a binlog.

    Attributes:
        log_id: Id of the binlog that holds them.
        source: The origin of the GTIDs.
        first: The sequence of the first group.
        last: The sequence of the last group; None while they are being placed.
        place: The source's position of which the rows are: all before it is in them. Of an arrival
            it is the GTID of the statement that brings the tables in.
        is_beginning: True if the rows stand for all before the place.
        first_file: The file that the first group begins in.
        is_arrival: True if the rows belong to a statement of the source: whoever has that needs
            none of them.
    """

    log_id: int
    source: SeedSource
    first: int
    last: int | None
    place: Position
    is_beginning: bool
    first_file: str
    is_arrival: bool = False

    def held_in(self, position: Position) -> int | None:
        """Give the sequence of the last of its groups that a position has done; None for none.

        Behind its last possible one where a MariaDB's position is in a later seeding.
        """
        if isinstance(position, GtidSet):
            ends = [
                min(last, self.end)
                for run in position.runs
                if run.source_id == self.source.name
                for first, last in run.intervals
                if first <= self.end and last >= self.first
            ]
            return ends[-1] if ends else None
        assert isinstance(position, GtidPosition)
        gtid = position.last(int(self.source.key))
        return None if gtid is None or gtid.sequence < self.first else gtid.sequence

    @property
    def end(self) -> int:
        """The last sequence that its groups may have."""
        return self.first + BLOCK - 1

    def has(self, gtid: AnyGtid) -> bool:
        """True if a GTID is of the origin of its groups."""
        own = gtid.source_id if isinstance(gtid, MysqlGtid) else str(gtid.domain_id)
        return own == self.source.key

    @property
    def flavor(self) -> str:
        """The flavor of the GTIDs, as positions name it."""
        return self.source.flavor

    def begin_of_file(self, reached: Position) -> Position | None:
        """Give the position that a file says is done before it that begins among its groups.

        Args:
            reached: The position of the binlog.

        Returns:
            Of a beginning its own groups alone: what they stand for is with them, also for whoever
            has it already and gets none of them. None for the binlog's own position.
        """
        if not self.is_beginning:
            return None
        held = self.held_in(reached)
        return nothing_done(self.flavor) if held is None else self._up_to(held)

    @property
    def whole(self) -> Position:
        """The position that has all of its groups done, and nothing else."""
        return self._up_to(self.end if self.last is None else self.last)

    def _up_to(self, last: int) -> Position:
        if self.source.flavor == GtidSet.flavor:
            return GtidSet.of([GtidRun(self.source.name, "", ((self.first, last),))])
        gtid = self.source.gtid(last)
        assert isinstance(gtid, Gtid)
        return GtidPosition.of([gtid])


def without_seeds(position: Position, seedings: Sequence[Seeding]) -> Position:
    """Give the part of a position that is the source's.

    Args:
        position: A position that may hold GTIDs of seed groups.
        seedings: The stretches of these groups.
    """
    if not seedings:
        return position
    keys = {each.source.key for each in seedings}
    if isinstance(position, GtidSet):
        if all(run.source_id not in keys for run in position.runs):
            return position
        return GtidSet.of(run for run in position.runs if run.source_id not in keys)
    assert isinstance(position, GtidPosition)
    if all(str(gtid.domain_id) not in keys for gtid in position):
        return position
    return GtidPosition.of(gtid for gtid in position if str(gtid.domain_id) not in keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """A fill that is under way.

    Attributes:
        log_id: Id of the binlog that is filled.
        kind: The statement that began it.
        statement: Text of the ALTER BINLOG whose definition holds once the rows are there; else
            empty.
        place: The source's position at which the rows are placed; None while they are read.
        created: Time of the statement, seconds since 1970.
    """

    log_id: int
    kind: FillKind
    statement: str = ""
    place: Position | None = None
    created: int = 0

    @property
    def holds_back(self) -> bool:
        """True if the binlog takes nothing from the source meanwhile."""
        return self.kind is FillKind.CREATE or self.place is not None

    @property
    def staging(self) -> str:
        """The name of the binlog that keeps the changes of the tables meanwhile."""
        return f"{STAGING_PREFIX}{self.log_id}"


class FillTable:
    """The rows of fills and seedings.

    Args:
        database: The SQLite database that holds them.
    """

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    def fills(self) -> tuple[Fill, ...]:
        """All fills that are under way, the oldest first."""
        rows = self._database.rows(
            "SELECT log_id, kind, statement, place, flavor, created FROM binlog_fills"
            " ORDER BY created, log_id"
        )
        return tuple(
            Fill(
                log_id=log_id,
                kind=FillKind(kind),
                statement=statement,
                place=None if place is None else parse_position(place, flavor),
                created=created,
            )
            for log_id, kind, statement, place, flavor, created in rows
        )

    def begin(self, fill: Fill) -> None:
        """Note a fill."""
        with self._database.transaction() as connection:
            self.insert(connection, fill)

    @staticmethod
    def insert(connection: sqlite3.Connection, fill: Fill) -> None:
        """Note a fill, inside of a transaction."""
        connection.execute(
            "INSERT INTO binlog_fills VALUES (?, ?, ?, NULL, '', ?)",
            (fill.log_id, fill.kind.value, fill.statement, fill.created),
        )

    def place(self, seeding: Seeding) -> None:
        """Note that a fill's rows are placed from now on."""
        with self._database.transaction() as connection:
            connection.execute(
                "UPDATE binlog_fills SET place = ?, flavor = ? WHERE log_id = ?",
                (str(seeding.place), seeding.place.flavor, seeding.log_id),
            )
            self._insert_seeding(connection, seeding)

    def place_arrival(self, seeding: Seeding) -> None:
        """Note that the rows of tables that come in are placed from now on."""
        with self._database.transaction() as connection:
            self._insert_seeding(connection, seeding)

    @staticmethod
    def _insert_seeding(connection: sqlite3.Connection, seeding: Seeding) -> None:
        connection.execute(
            "INSERT INTO binlog_seeds VALUES (?, ?, ?, ?, NULL, ?, ?, ?, ?, ?)",
            (
                seeding.log_id,
                seeding.source.name,
                seeding.source.server_id,
                seeding.first,
                str(seeding.place),
                seeding.place.flavor,
                seeding.is_beginning,
                seeding.first_file,
                seeding.is_arrival,
            ),
        )
        connection.execute("DELETE FROM seed_block")
        connection.execute("INSERT INTO seed_block VALUES (?)", (seeding.first,))

    def unplace(self, log_id: int) -> None:
        """Note that the rows of a fill are not placed at the place that was chosen."""
        with self._database.transaction() as connection:
            connection.execute("UPDATE binlog_fills SET place = NULL WHERE log_id = ?", (log_id,))
            connection.execute(
                "DELETE FROM binlog_seeds WHERE log_id = ? AND last IS NULL AND NOT is_arrival",
                (log_id,),
            )

    def end_arrival(self, seeding: Seeding, last: int | None) -> None:
        """Note the last group of an arrival; None removes it: no group is there."""
        key = seeding.log_id, seeding.first
        with self._database.transaction() as connection:
            if last is None:
                connection.execute("DELETE FROM binlog_seeds WHERE log_id = ? AND first = ?", key)
            else:
                connection.execute(
                    "UPDATE binlog_seeds SET last = ? WHERE log_id = ? AND first = ?", (last, *key)
                )

    @staticmethod
    def finish(connection: sqlite3.Connection, seeding: Seeding) -> None:
        """Note that a fill is done, inside of a transaction."""
        connection.execute(
            "UPDATE binlog_seeds SET last = ? WHERE log_id = ? AND first = ?",
            (seeding.last, seeding.log_id, seeding.first),
        )
        connection.execute("DELETE FROM binlog_fills WHERE log_id = ?", (seeding.log_id,))

    def cancel(self, log_id: int) -> None:
        """Forget a fill whose rows are not placed yet."""
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM binlog_fills WHERE log_id = ?", (log_id,))

    def next_block(self) -> int:
        """The first sequence of a seeding that has none yet."""
        rows = self._database.rows("SELECT first FROM seed_block")
        return int(rows[0][0]) + BLOCK if rows else 1

    def source(self, flavor: str) -> SeedSource | None:
        """The origin of seed groups' GTIDs that was used last; None before the first."""
        rows = self._database.rows("SELECT name, server_id FROM seed_source")
        found = [SeedSource(name=name, server_id=server_id) for name, server_id in rows]
        return next((each for each in found if each.flavor == flavor), None)

    def set_source(self, source: SeedSource) -> None:
        """Have another origin from now on."""
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM seed_source")
            values = source.name, source.server_id
            connection.execute("INSERT INTO seed_source VALUES (?, ?)", values)

    def seedings(self) -> tuple[Seeding, ...]:
        """All seedings, by binlog, the first one first."""
        rows = self._database.rows(
            "SELECT log_id, source, server_id, first, last, place, flavor, is_beginning, first_file,"
            " is_arrival FROM binlog_seeds ORDER BY log_id, first"
        )
        return tuple(
            Seeding(
                log_id=log_id,
                source=SeedSource(name=source, server_id=server_id),
                first=first,
                last=last,
                place=parse_position(place, flavor),
                is_beginning=bool(is_beginning),
                first_file=first_file,
                is_arrival=bool(is_arrival),
            )
            for (
                log_id,
                source,
                server_id,
                first,
                last,
                place,
                flavor,
                is_beginning,
                first_file,
                is_arrival,
            ) in rows
        )


class StoreSeeds:
    """The fills and seedings of a store. The store's owner changes them; any thread may look.

    Attributes:
        fills: The fills that are under way, the oldest first.
        seedings: All seedings of the store, by binlog.
        gtid_domain_id: The domain of the GTIDs that rows have where the source is a MariaDB.

    Args:
        table: The rows of fills on disk.
    """

    def __init__(self, table: FillTable) -> None:
        self._table = table
        self.fills: tuple[Fill, ...] = ()
        self.seedings: tuple[Seeding, ...] = ()
        self.gtid_domain_id = DOMAIN
        self.read()

    def read(self) -> None:
        """Look at what is on disk."""
        self.fills, self.seedings = self._table.fills(), self._table.seedings()

    def of(self, log_id: int) -> tuple[Seeding, ...]:
        """Seedings of a binlog, the first one first."""
        return tuple(each for each in self.seedings if each.log_id == log_id)

    def fill_of(self, log_id: int) -> Fill | None:
        """The fill of a binlog that is under way; None without one."""
        return next((each for each in self.fills if each.log_id == log_id), None)

    def begin(self, fill: Fill) -> None:
        """Note a fill of a binlog that is there.

        Raises:
            StoreError: If that cannot be saved.
        """
        self._table.begin(fill)
        self.read()

    def cancel(self, log_id: int) -> None:
        """Forget a fill whose rows are not placed yet.

        Raises:
            StoreError: If that cannot be saved.
        """
        self._table.cancel(log_id)
        self.read()

    def place(self, fill: Fill, place: Position, first_file: str) -> Seeding:
        """Note that the rows of a fill are placed from now on.

        Raises:
            DefinitionError: If the source uses the domain of rows itself.
            StoreError: If that cannot be saved.
        """
        seeding = Seeding(
            log_id=fill.log_id,
            source=self._source_at(place),
            first=self._table.next_block(),
            last=None,
            place=place,
            is_beginning=fill.kind.is_beginning,
            first_file=first_file,
        )
        self._table.place(seeding)
        self.read()
        return seeding

    def begin_arrival(self, log_id: int, gtid: AnyGtid, done: Position, first_file: str) -> Seeding:
        """Note that the rows of tables that a statement brings in are placed from now on.

        Each try has GTIDs of its own, which grow: a replica may have some of those of the last one.

        Args:
            log_id: Id of the binlog that has the rows.
            gtid: GTID of the statement at the source.
            done: The source's position before it.
            first_file: The file that the first group begins in.

        Raises:
            DefinitionError: If the source uses the domain of rows itself.
            StoreError: If that cannot be saved.
        """
        seeding = Seeding(
            log_id=log_id,
            source=self._source_at(done.advance(gtid)),
            first=self._table.next_block(),
            last=None,
            place=nothing_done(done.flavor).advance(gtid),
            is_beginning=False,
            first_file=first_file,
            is_arrival=True,
        )
        self._table.place_arrival(seeding)
        self.read()
        return seeding

    def end_arrivals(self, log_id: int, position: Position) -> tuple[Seeding, ...]:
        """Note how far the arrivals of a binlog are of which that is not known.

        Returns:
            The binlog's seedings, the first one first.

        Args:
            log_id: Id of the binlog that has the rows.
            position: The position that the binlog has reached.

        Raises:
            StoreError: If that cannot be saved.
        """
        open_ones = [each for each in self.of(log_id) if each.is_arrival and each.last is None]
        for each in open_ones:
            held = each.held_in(position)
            self._table.end_arrival(each, None if held is None else min(held, each.end))
        if open_ones:
            self.read()
        return self.of(log_id)

    def _source_at(self, place: Position) -> SeedSource:
        """The origin of GTIDs; always the same, unless the settings name another domain.

        Raises:
            DefinitionError: If the source uses the domain itself.
            StoreError: If it cannot be saved.
        """
        known = self._table.source(place.flavor)
        if isinstance(place, GtidSet):
            source = known or SeedSource(name=_new_uuid(), server_id=_new_server_id())
        else:
            self.check_domain(place)
            server_id = _new_server_id() if known is None else known.server_id
            source = SeedSource(name=f"{self.gtid_domain_id}-{server_id}", server_id=server_id)
        if source != known:
            self._table.set_source(source)
        return source

    def check_domain(self, done: Position) -> None:
        """See that the source has no GTIDs of the domain that rows have.

        Raises:
            DefinitionError: If it has.
        """
        domain_id = self.gtid_domain_id
        if isinstance(done, GtidPosition) and done.last(domain_id) is not None:
            raise DefinitionError(
                f"the source uses GTIDs of domain {domain_id} itself, which rows are to have",
                hint="give rows another one: [rows] gtid_domain_id in binlane.toml",
            )

    def unplace(self, log_id: int) -> None:
        """Note that the rows of a fill are not placed at the place that was chosen.

        Raises:
            StoreError: If that cannot be saved.
        """
        self._table.unplace(log_id)
        self.read()


def _new_uuid() -> str:
    return uuid_text(secrets.token_hex(16))


def _new_server_id() -> int:
    return _SERVER_ID_BASE + secrets.randbelow(_SERVER_ID_RANDOM)
