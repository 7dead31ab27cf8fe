"""The demo's line, step by step: a living shop, two binlogs, a replica, text, tables, and the proof.

Each step yields the checks that it made. A check that does not hold ends the demo with an error at
its end, when the table of all checks has been shown.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa
from deltalake import DeltaTable

from binlane.binlogs.store.stored_groups import StoreReader, read_groups
from binlane.live.provision.demo.shop import DATABASES, SECRET, TABLES, Shop
from binlane.live.provision.demo.stage import CHARACTER_SET, REPLICA, REPLICA_PASSWORD, DemoStage
from binlane.log.codec.columns import decode_rows
from binlane.log.codec.table_metadata import table_columns
from binlane.log.grouping.table_maps import rows_with_tables
from binlane.positions import AnyGtid

if TYPE_CHECKING:
    import pymysql

Table = tuple[list[str], list[tuple[Any, ...]]]
"""Column names, and rows sorted by all their values."""


def server_rows(connection: pymysql.Connection[Any], table: str) -> Table:
    """`SELECT *` of a server's table, in UTC."""
    with connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(f"SELECT * FROM {table}")  # noqa: S608  # our own table
        columns = [column[0] for column in cursor.description or ()]
        return columns, _sorted(cursor.fetchall())


def delta_rows(path: Path) -> Table:
    """A current-state table without the columns that landing adds."""
    table = pa.table(DeltaTable(str(path)).scan())
    columns = [name for name in table.column_names if not name.startswith("_")]
    rows = [tuple(map(_plain, row.values())) for row in table.select(columns).to_pylist()]
    return columns, _sorted(rows)


def _plain(value: object) -> object:
    """A value as the MySQL client gives it: times without a zone."""
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def _sorted(rows: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in rows), key=repr)


if TYPE_CHECKING:
    import pymysql

SESSIONS: Final = 4
TRANSACTIONS: Final = 750
DEFINITIONS: Final = (
    "CREATE BINLOG 'orders' LOG(shop.orders, shop.items), FORMAT='ROW'",
    "CREATE BINLOG 'analytics' IGNORE(crm)",
)
STATEMENTS: Final = "CREATE BINLOG 'statements' LOG(shop.inventory), FORMAT='STATEMENT'"
PARTIAL_WRITE: Final = (
    "UPDATE shop.orders o JOIN crm.person p USING (customer) SET o.note = 'seen', p.born = NULL"
)
TRANSACTION: Final = (
    "UPDATE shop.inventory SET quantity = quantity + 10 WHERE product <= 5",
    "DELETE FROM shop.inventory WHERE product = 7",
)
IN_SCOPE: Final = ("shop.orders", "shop.items")
_ROWS_EVENTS: Final = ("Write_rows", "Update_rows", "Delete_rows")
_CATCH_UP_TIMEOUT_S: Final = 120.0
_CAT_TIMEOUT_S: Final = 120.0
_CAT_LINES: Final = 30
_CAT_WIDTH: Final = 72
_BEGINS: Final = ("START TRANSACTION", "BEGIN")
_EVENT_PLACE: Final = re.compile(r" server id .*? CRC32 0x[0-9a-f]+ *")


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim and whether it held.

    Attributes:
        claim: The claim in a few words.
        holds: True if the claim is so.
        detail: The numbers behind the claim, in words.
    """

    claim: str
    holds: bool
    detail: str


@dataclass(frozen=True, slots=True)
class BinlogFigures:
    """A binlog's contents at the end."""

    name: str
    files: int
    groups: int
    events: int
    rows: int
    bytes: int
    lag_s: float


class Voice(Protocol):
    """The listener to whom the story is told."""

    def say(self, line: str) -> None:
        """Tell a line of the story."""
        ...

    def progress(self, text: str) -> None:
        """Tell how far the step at hand is; what was told before is out of date."""
        ...


class Story:
    """The steps, in order; each is a title and a method that yields checks.

    Args:
        stage: The stage with its source running.
        voice: The listener to whom the story is told.
        sessions: Concurrent sessions of the shop.
        transactions: The number of transactions that each session makes.
    """

    def __init__(
        self,
        stage: DemoStage,
        voice: Voice,
        *,
        sessions: int = SESSIONS,
        transactions: int = TRANSACTIONS,
    ) -> None:
        self._stage = stage
        self._voice = voice
        self._sessions, self._transactions = sessions, transactions
        self._shop = Shop(stage.connect_source)
        self._lag_s: dict[str, float] = {}
        self.figures: list[BinlogFigures] = []

    @property
    def steps(self) -> tuple[tuple[str, Callable[[], Iterator[Claim]]], ...]:
        """Titles and steps."""
        return (
            (
                "binlane serve attached to it, two binlogs defined through SQL",
                self.define,
            ),
            ("A real replica of binlog `orders`, and a shop that lives", self.live),
            ("The replica against the source", self.compare_replica),
            ("A session through the port", self.judge),
            ("What the binlogs hold", self.print),
            ("PySpark lands binlog `analytics` in Delta tables", self.land),
        )

    def define(self) -> Iterator[Claim]:
        """Databases, `binlane serve`, and definitions by an ordinary MySQL client."""
        # It takes as long as all that is shown before it is needed.
        self._stage.start_spark("analytics")
        self._voice.say("Spark (local[2]) starts beside what follows")
        self._stage.create_accounts(DATABASES)
        self._stage.start_serve()
        self._voice.say(
            f"source 127.0.0.1:{self._stage.source.port}, binlane 127.0.0.1:{self._stage.port}"
        )
        with closing(self._stage.connect_binlane()) as connection:
            for statement in DEFINITIONS:
                self._voice.say(f"MySQL client> {statement};")
                _query(connection, statement)
            names = [row[0] for row in _query(connection, "SHOW BINLOGS")]
        yield Claim("both binlogs are defined", names == ["analytics", "orders"], ", ".join(names))

    def live(self) -> Iterator[Claim]:
        """The replica starts, then the shop opens and trades."""
        dialect = self._stage.dialect
        self._stage.start_replica()
        with closing(self._stage.connect_replica()) as connection:
            # LOG(shop.orders, …) names tables: their database is the replica's to have.
            _query(connection, f"CREATE DATABASE shop {CHARACTER_SET}")
            change = dialect.follow(
                port=self._stage.port,
                user=REPLICA,
                password=REPLICA_PASSWORD,
                file="orders.000001",
            )
            begin, end = change.index(" TO "), change.index("_LOG_FILE")
            named = change[change.rindex(" ", 0, end) + 1 :].partition(",")[0]
            self._voice.say(f"replica> {change[:begin]} TO … {named}; {dialect.start};")
            _query(connection, change)
            _query(connection, dialect.start)
        self._shop.open()
        began = time.monotonic()
        for done in self._shop.run(sessions=self._sessions, transactions=self._transactions):
            self._voice.progress(f"{done} transactions by {self._sessions} sessions")
        seconds = time.monotonic() - began
        tally = self._shop.tally
        self._wait_for_binlogs()
        yield Claim(
            "the shop traded, with ADD COLUMN and RENAME TABLE in mid-flight",
            tally.committed > 0 and tally.rolled_back > 0,
            f"{tally.committed} committed, {tally.rolled_back} rolled back, {seconds:.0f} s",
        )

    def _wait_for_binlogs(self) -> None:
        """Wait until every binlog is complete up to the source, and note how long each took."""
        with closing(self._stage.connect_source()) as connection:
            dialect = self._stage.dialect
            position = dialect.position(_query(connection, dialect.done)[0][0])
        with closing(self._stage.connect_binlane()) as connection:
            for name in ("orders", "analytics"):

                def is_complete(name: str = name) -> bool:
                    rows = _query(connection, "SHOW BINLOGS")
                    return any(row[0] == name and row[3] == position for row in rows)

                self._lag_s[name] = self._stage.wait_for(
                    f"binlog {name} to be complete up to {position}",
                    is_complete,
                    timeout_s=_CATCH_UP_TIMEOUT_S,
                )

    def compare_replica(self) -> Iterator[Claim]:
        """Caught up, equal in scope, nothing else there."""
        last = _last_gtid(self._stage.data_dir, "orders")
        dialect = self._stage.dialect

        def has_caught_up() -> bool:
            with closing(self._stage.connect_replica()) as connection:
                status = _status(connection, dialect.status)
                if status["Last_SQL_Error"] or status["Last_IO_Error"]:
                    raise AssertionError(status["Last_SQL_Error"] or status["Last_IO_Error"])
                return dialect.has_applied(_query(connection, dialect.replicated)[0][0], last)

        try:
            self._stage.wait_for(
                "the replica to catch up", has_caught_up, timeout_s=_CATCH_UP_TIMEOUT_S
            )
        except AssertionError as error:
            yield Claim("the replica applies the binlog", False, str(error))
            return
        with (
            closing(self._stage.connect_source()) as source,
            closing(self._stage.connect_replica()) as replica,
        ):
            for table in IN_SCOPE:
                theirs = _query(source, f"CHECKSUM TABLE {table}")[0][1]
                ours = _query(replica, f"CHECKSUM TABLE {table}")[0][1]
                rows = _query(replica, f"SELECT COUNT(*) FROM {table}")[0][0]  # noqa: S608
                yield Claim(
                    f"CHECKSUM TABLE {table} is equal on source and replica",
                    theirs == ours and rows > 0,
                    f"{ours}, {rows} rows",
                )
            there = _query(
                replica,
                "SELECT CONCAT(TABLE_SCHEMA, '.', TABLE_NAME) FROM information_schema.TABLES "
                "WHERE TABLE_SCHEMA IN ('shop', 'crm') ORDER BY 1",
            )
        tables = [row[0] for row in there]
        yield Claim(
            "no other table is on the replica", tables == sorted(IN_SCOPE), ", ".join(tables)
        )

    def judge(self) -> Iterator[Claim]:
        """A statement that is refused, and a transaction that is text in one binlog, rows in another."""
        with closing(self._stage.connect_binlane()) as connection:
            self._voice.say(f"MySQL client> {STATEMENTS};")
            _query(connection, STATEMENTS)
        with closing(self._stage.connect_writer()) as connection:
            before = self._done()
            self._voice.say(f"MySQL client> {PARTIAL_WRITE};")
            told = _refusal(connection, PARTIAL_WRITE)
            self._voice.say(told)
            yield Claim(
                "what binlogs would hold in part is refused before it runs",
                "[11314]" in told and self._done() == before,
                "the source has done nothing",
            )
            places = {name: self._end(connection, name) for name in ("statements", "analytics")}
            for statement in ("BEGIN", *TRANSACTION, "COMMIT"):
                self._voice.say(f"MySQL client> {statement};")
                _query(connection, statement)
            events = {
                name: [
                    (str(row[2]), str(row[5]))
                    for row in _query(connection, f"SHOW BINLOG EVENTS IN '{file}' FROM {position}")
                ]
                for name, (file, position) in places.items()
            }
        texts = [text for kind, text in events["statements"] if kind == "Query" and " " in text]
        rows = [kind for kind, _ in events["analytics"] if kind.startswith(_ROWS_EVENTS)]
        for text in texts:
            self._voice.say(f"binlog statements: {text}")
        self._voice.say(f"binlog analytics:  {', '.join(rows)}")
        yield Claim(
            "one transaction is statements in one binlog and rows in another",
            texts == list(TRANSACTION)
            and len(rows) == len(TRANSACTION)
            and not any(kind.startswith(_ROWS_EVENTS) for kind, _ in events["statements"]),
            f"{len(texts)} statements, {len(rows)} rows events",
        )

    def _done(self) -> str:
        """Return the position of all that the source has done."""
        with closing(self._stage.connect_source()) as connection:
            return str(_query(connection, self._stage.dialect.done)[0][0])

    def _end(self, connection: pymysql.Connection[Any], name: str) -> tuple[str, int]:
        """File and position where a binlog goes on."""
        (row,) = (row for row in _query(connection, "SHOW BINLOGS") if row[0] == name)
        return str(row[1]), int(row[2])

    def print(self) -> Iterator[Claim]:
        """A few groups as text, and a search for what must not be there."""
        reader = StoreReader(self._stage.data_dir)
        orders = [Path(file.path) for file in reader.files("orders")]
        self._cat(orders[0])
        hidden = self._needles()
        found = [
            n for n in hidden if any(n in path.read_bytes() for path in self._directory("orders"))
        ]
        everywhere = self._stage.source.data_directory.glob("binlog.0*")
        source_bytes = b"".join(path.read_bytes() for path in everywhere)
        yield Claim(
            "no byte of crm is in the files of `orders`",
            not found and all(needle in source_bytes for needle in hidden),
            f"{len(hidden)} values and names searched, all of them in the source's own log",
        )
        done = self._binlane("verify", str(self._stage.data_dir))
        yield Claim("binlane verify finds no fault", done.returncode == 0, done.stderr.strip())
        self.figures = [self._figures(reader, name) for name in ("orders", "analytics")]

    def _directory(self, name: str) -> list[Path]:
        directory = self._stage.data_dir / "binlogs" / name
        return [path for path in directory.iterdir() if path.is_file()]

    def _needles(self) -> list[bytes]:
        with closing(self._stage.connect_source()) as connection:
            emails = _query(connection, "SELECT email FROM crm.person ORDER BY customer LIMIT 20")
        return [b"crm", b"person", SECRET.encode(), *(row[0].encode() for row in emails)]

    def _cat(self, path: Path) -> None:
        """Show the first groups with rows, without what only a client that runs the text needs."""
        self._voice.say(f"$ binlane cat -v {path.name}   (some of it)")
        lines = self._binlane("cat", "-v", str(path)).stdout.splitlines()
        told = [line for line in lines if line.startswith(("#", "COMMIT", *_BEGINS))]
        first = next((i for i, line in enumerate(told) if line.startswith(_BEGINS)), 1)
        for line in told[first - 1 : first + _CAT_LINES]:
            self._voice.say(f"  {_without_place(line)[:_CAT_WIDTH]}")

    def _binlane(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603  # our own program
            [sys.executable, "-m", "binlane", *arguments],
            capture_output=True,
            text=True,
            timeout=_CAT_TIMEOUT_S,
            check=False,
        )

    def _figures(self, reader: StoreReader, name: str) -> BinlogFigures:
        files = reader.files(name)
        groups = events = rows = 0
        for group in read_groups([Path(file.path) for file in files]):
            groups += not group.is_control
            events += len(group.events)
            for _, body, table_map in rows_with_tables(group.events, file=group.file):
                columns = table_columns(table_map, flavor=self._stage.dialect.flavor)
                rows += sum(1 for _ in decode_rows(body, columns))
        size = sum(file.size_bytes for file in files)
        return BinlogFigures(
            name, len(files), groups, events, rows, size, self._lag_s.get(name, 0.0)
        )

    def land(self) -> Iterator[Claim]:
        """Spark reads the binlog and lands it; the tables must equal the server's."""
        landed = self._stage.land()
        counted = landed.counted
        self._voice.say(f"spark.read.format('binlog').load(): {sum(counted.values())} changes")
        self._voice.say(
            f"{landed.rows} row images landed in {landed.seconds:.1f} s, "
            f"up to GTID {landed.last_gtid}"
        )
        lake = self._stage.lake
        yield Claim(
            "Spark sees no table of crm",
            not any(name.startswith("crm.") for name in counted)
            and not (lake / "current/crm").exists(),
            ", ".join(sorted(counted)),
        )
        with closing(self._stage.connect_source()) as connection:
            for table in TABLES:
                if table.startswith("crm."):
                    continue
                theirs = server_rows(connection, table)
                ours = delta_rows(lake / "current" / table.replace(".", "/"))
                yield Claim(
                    f"current/{table.replace('.', '/')} is row for row what the server selects",
                    theirs == ours and len(theirs[1]) > 0,
                    f"{len(ours[1])} rows, {len(ours[0])} columns",
                )


def _without_place(line: str) -> str:
    """An event's head without what 80 columns have no room for."""
    return _EVENT_PLACE.sub(" ", line).expandtabs(1)


def _query(connection: pymysql.Connection[Any], statement: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())


def _refusal(connection: pymysql.Connection[Any], statement: str) -> str:
    """The error that a statement gets, as the servers' client shows it; empty for none."""
    from pymysql import MySQLError  # noqa: PLC0415  # as the type above

    try:
        _query(connection, statement)
    except MySQLError as error:
        return f"ERROR {error.args[0]} (HY000): {error.args[1]}"
    return ""


def _status(connection: pymysql.Connection[Any], statement: str) -> dict[str, Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        names = [column[0] for column in cursor.description or ()]
        return dict(zip(names, cursor.fetchone() or (), strict=True))


def _last_gtid(data_dir: Path, name: str) -> AnyGtid:
    """The last GTID in a binlog's files: where its replica has to be."""
    paths = [Path(file.path) for file in StoreReader(data_dir).files(name)]
    gtids = [group.gtid for group in read_groups(paths) if group.gtid is not None]
    return gtids[-1]
