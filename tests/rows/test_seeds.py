"""Rows read in small ranges beside writers, reconciled with the log, are those of one GTID exactly."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pymysql
import pytest

from binlane.binlogs.seeds.reconciliation import Reconciled, SeedTroubleError, reconcile
from binlane.binlogs.seeds.spool import SeedSpool
from binlane.binlogs.seeds.spool_reading import ReadingLimits, ReadingProgress, read_tables
from binlane.binlogs.store.stored_groups import read_groups
from binlane.client.rows.logged_table import read_logged_table
from binlane.client.rows.settled_places import await_prepared, set_up, settled_gtids
from binlane.client.rows.table_rows import TableRows
from binlane.client.session import ServerSession
from binlane.client.settings import ServerUrl
from binlane.errors import PeerError, StoreFullError
from binlane.live.provision.private_server import PrivateServer
from binlane.log.codec.row_cutting import keyed_images
from binlane.log.codec.rows import DeleteRowsEvent, RowsEvent, TableMapEvent, UpdateRowsEvent
from binlane.log.grouping.event_group import EventGroup
from binlane.names import TableName
from binlane.positions import Position
from tests.build import FORMAT
from tests.servers import ServerFactory, connect, execute

_TABLES = (
    "CREATE DATABASE shop CHARACTER SET utf8mb4",
    """CREATE TABLE shop.orders (id INT PRIMARY KEY, n INT, note VARCHAR(40) CHARACTER SET latin1,
        at DATETIME(3), f FLOAT, KEY (n)) ENGINE=InnoDB""",
    """CREATE TABLE shop.lines (word VARCHAR(12) CHARACTER SET utf8mb4 NOT NULL,
        kind ENUM('z', 'm', 'a') NOT NULL, n DECIMAL(9,2) NOT NULL, total DOUBLE,
        UNIQUE KEY (word, kind, n)) ENGINE=InnoDB""",
    "CREATE TABLE shop.visits (page VARCHAR(20), n INT) ENGINE=InnoDB",
    "CREATE TABLE shop.empty (id INT PRIMARY KEY) ENGINE=InnoDB",
)
_NAMES = tuple(TableName("shop", name) for name in ("orders", "lines", "visits", "empty"))
_WORDS = ("a", "A", "ä", "b", "B", "ß", "zz", "Zz", "öl", "", " ", "日本", "it's", "\\")
_LIMITS = ReadingLimits(chunk_rows=7)
_PAUSE_S = 0.005
"""A writer's pause behind each transaction: the whole log is decoded one event after the other."""


@pytest.fixture(params=["mariadb", "mysql"])
def source(request: pytest.FixtureRequest, servers: ServerFactory) -> PrivateServer:
    """A server of each flavor, which the test has to itself."""
    return servers.start("source") if request.param == "mariadb" else servers.start_mysql("source")


def _fill(server: PrivateServer, rows: int = 300) -> None:
    execute(server, *_TABLES)
    with connect(server, autocommit=False, charset="utf8mb4") as connection:
        cursor = connection.cursor()
        chance = random.Random(7)
        for _ in range(rows):
            _write(cursor, chance)
        cursor.executemany(
            "INSERT INTO shop.visits VALUES (%s, %s)", [(f"/{n % 7}", n % 3) for n in range(60)]
        )
        connection.commit()


def _write(cursor: pymysql.cursors.Cursor, chance: random.Random) -> None:
    """One change; some find nothing, some are refused."""
    number, word = chance.randrange(400), chance.choice(_WORDS) + str(chance.randrange(9))
    kind = chance.choice("zma")
    statements = (
        (
            "REPLACE INTO shop.orders VALUES (%s, %s, 'né', '2026-01-01 00:00:00.125', %s)",
            (number, number % 10, number / 7),
        ),
        (
            "UPDATE shop.orders SET n = n + 1, f = f / 3 WHERE id BETWEEN %s AND %s",
            (number, number + 20),
        ),
        ("UPDATE shop.orders SET id = %s WHERE id = %s", (chance.randrange(400), number)),
        ("DELETE FROM shop.orders WHERE id = %s", (number,)),
        (
            "REPLACE INTO shop.lines VALUES (%s, %s, %s, %s)",
            (word, kind, chance.randrange(5), number / 3),
        ),
        (
            "UPDATE shop.lines SET word = %s WHERE word = %s AND kind = %s",
            (word.swapcase(), word, kind),
        ),
        ("DELETE FROM shop.lines WHERE word = %s AND kind = %s", (word, kind)),
        ("INSERT INTO shop.visits VALUES (%s, %s)", (f"/{number % 7}", number % 3)),
        ("DELETE FROM shop.visits WHERE page = %s LIMIT 1", (f"/{number % 7}",)),
        ("UPDATE shop.visits SET n = n + 1 WHERE page = %s LIMIT 2", (f"/{number % 7}",)),
    )
    statement, values = chance.choice(statements)
    try:
        cursor.execute(statement, values)
    except pymysql.Error:
        cursor.connection.rollback()


@contextmanager
def _writers(server: PrivateServer, *, truncates: bool = False) -> Iterator[None]:
    is_done = threading.Event()

    def write(seed: int) -> None:
        chance = random.Random(seed)
        with connect(server, autocommit=False, charset="utf8mb4") as connection:
            cursor = connection.cursor()
            while not is_done.is_set():
                for _ in range(chance.randrange(1, 5)):
                    _write(cursor, chance)
                if chance.random() < 0.2:
                    connection.rollback()
                try:
                    connection.commit()
                    if truncates and chance.random() < 0.01:
                        cursor.execute("TRUNCATE shop.orders")
                except pymysql.Error:
                    connection.rollback()
                time.sleep(_PAUSE_S)

    threads = [threading.Thread(target=write, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        is_done.set()
        for thread in threads:
            thread.join()


def _session(server: PrivateServer) -> ServerSession:
    session = ServerSession(ServerUrl.parse(server.url), "")
    set_up(session)
    return session


def _place(server: PrivateServer) -> Position:
    with _session(server) as session:
        return settled_gtids(session)


def _groups(server: PrivateServer) -> list[EventGroup]:
    return list(read_groups(sorted(server.data_directory.glob("binlog.0*"))))


def _up_to(groups: list[EventGroup], begin: Position, high: Position) -> list[EventGroup]:
    """The groups behind a position up to the first one at which another is covered."""
    reached, found = begin, []
    for group in groups:
        if group.gtid is None or begin.covers(group.gtid):
            continue
        if reached.includes(high):
            break
        reached = reached.advance(group.gtid)
        found.append(group)
    assert reached.includes(high)
    return found


def _logged(groups: list[EventGroup], table: TableName, widths: tuple[int, ...]) -> Counter[bytes]:
    """The rows of a table that a log from its beginning makes, by their images."""
    images: Counter[bytes] = Counter()
    for group in groups:
        ids: set[int] = set()
        for event in group.events:
            body = event.body
            if b"TRUNCATE" in getattr(body, "query", b"") and table.table == "orders":
                images.clear()
            if isinstance(body, TableMapEvent) and body.name == table:
                ids.add(body.table_id)
            elif isinstance(body, RowsEvent) and body.table_id in ids:
                for number, (_, image) in enumerate(keyed_images(body.images, widths, ())):
                    is_before = isinstance(body, DeleteRowsEvent) or (
                        isinstance(body, UpdateRowsEvent) and number % 2 == 0
                    )
                    images[image] += -1 if is_before else 1
    assert min(images.values(), default=0) >= 0
    return +images


def _reconciled(
    server: PrivateServer, spool: SeedSpool, begin: Position
) -> tuple[Reconciled, list[EventGroup]]:
    """The rows at the first GTID at which they can be had, and the log up to there."""
    assert spool.high is not None
    groups = _groups(server)
    changes = _up_to(groups, begin, spool.high)
    found = reconcile(spool, changes, format_=FORMAT)
    assert found is not None
    last = groups.index(changes[-1]) if changes else 0
    return found, groups[: last + 1]


def _check(server: PrivateServer, spool: SeedSpool, begin: Position) -> None:
    found, log = _reconciled(server, spool, begin)
    assert not spool.refusals
    for name in _NAMES:
        table = spool.state_of(name).table
        assert table is not None
        expected = _logged(log, name, table.widths)
        assert Counter(found.rows(name)) == expected, name
        seeded: Counter[bytes] = Counter()
        for transaction in found.transactions(bytes_max=2000, rows_max=11):
            if transaction.table == name:
                rows = [
                    image
                    for body in transaction.bodies
                    if isinstance(body, RowsEvent)
                    for _, image in keyed_images(body.images, table.widths, ())
                ]
                assert len(rows) == transaction.rows <= 11
                seeded.update(rows)
        assert seeded == expected, name
    found.close()


@pytest.mark.parametrize("truncates", [False, True])
def test_rows_beside_writers_are_those_of_one_gtid(
    source: PrivateServer, tmp_path: Path, *, truncates: bool
) -> None:
    _fill(source)
    for number in range(2):
        folder = tmp_path / str(number)
        with _writers(source, truncates=truncates):
            begin = _place(source)
            spool = SeedSpool.create(folder, _NAMES)
            with _session(source) as session:
                read_tables(spool, session, limits=_LIMITS)
            assert spool.is_read
            time.sleep(0.3)
        _check(source, spool, begin)
        again = SeedSpool.open(folder)
        assert again.is_read
        assert again.high == spool.high
        _check(source, again, begin)


def test_rows_are_those_of_an_earlier_gtid_where_the_log_is_undone(
    source: PrivateServer, tmp_path: Path
) -> None:
    _fill(source)
    with _writers(source):
        time.sleep(0.3)
        begin = _place(source)
        spool = SeedSpool.create(tmp_path / "spool", _NAMES)
        with _session(source) as session:
            read_tables(spool, session, limits=_LIMITS)
        time.sleep(0.3)
    groups = _groups(source)
    known = [group.gtid is not None and begin.covers(group.gtid) for group in groups]
    last = max(number for number, is_known in enumerate(known) if is_known)
    for place in (last, last - 40):
        found = reconcile(spool, groups[place + 1 :], format_=FORMAT, undoes=True)
        assert found is not None
        for name in _NAMES:
            table = spool.state_of(name).table
            assert table is not None
            expected = _logged(groups[: place + 1], name, table.widths)
            assert Counter(found.rows(name)) == expected, name
        found.close()


def test_what_cannot_be_undone_is_told(source: PrivateServer, tmp_path: Path) -> None:
    _fill(source, rows=20)
    count = len(_groups(source))
    execute(source, "TRUNCATE TABLE shop.orders")
    spool = SeedSpool.create(tmp_path / "spool", _NAMES)
    with _session(source) as session:
        read_tables(spool, session, limits=_LIMITS)
    with pytest.raises(SeedTroubleError, match="a statement changed it") as caught:
        reconcile(spool, _groups(source)[count:], format_=FORMAT, undoes=True)
    assert caught.value.tables == (TableName("shop", "orders"),)


def test_a_full_disk_is_not_filled_further(source: PrivateServer, tmp_path: Path) -> None:
    _fill(source)
    begin = _place(source)
    execute(source, "DELETE FROM shop.visits LIMIT 1")
    spool = SeedSpool.create(tmp_path / "spool", _NAMES)
    with (
        _session(source) as session,
        pytest.raises(StoreFullError, match="the disk is nearly full"),
    ):
        read_tables(spool, session, limits=ReadingLimits(free_least_bytes=1 << 62))
    assert not spool.is_read
    with _session(source) as session:
        read_tables(SeedSpool.open(spool.folder), session, limits=_LIMITS)
    _check(source, SeedSpool.open(spool.folder), begin)


def _print(progress: ReadingProgress) -> None:
    os.write(1, b"%d\n" % progress.rows)


def read_on(url: str, folder: str) -> None:
    """Go on reading, and print a line for each range: the part of a process that is killed."""
    with ServerSession(ServerUrl.parse(url), "") as session:
        read_tables(
            SeedSpool.open(Path(folder)),
            session,
            limits=ReadingLimits(chunk_rows=5),
            observe=_print,
        )


def test_a_killed_reading_goes_on_behind_its_last_range(
    source: PrivateServer, tmp_path: Path
) -> None:
    _fill(source, 900)
    folder = tmp_path / "spool"
    chance = random.Random(3)
    kills = 0
    with _writers(source):
        begin = _place(source)
        SeedSpool.create(folder, _NAMES)
        seen = [0]
        while not SeedSpool.open(folder).is_read:
            script = f"""
from tests.rows.test_seeds import read_on
read_on({source.url!r}, {str(folder)!r})
"""
            with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as child:
                assert child.stdout is not None
                # Each line is a range; the child is killed while it reads the next one or writes.
                for _ in range(chance.randrange(1, 25)):
                    if not child.stdout.readline():
                        break
                else:
                    time.sleep(chance.uniform(0, 0.02))
                    child.send_signal(signal.SIGKILL)
                    kills += 1
            seen.append(sum(state.rows for state in SeedSpool.open(folder).states))
        time.sleep(0.3)
    assert kills > 1
    assert seen == sorted(seen)
    assert len(set(seen)) > 2
    _check(source, SeedSpool.open(folder), begin)


def test_a_table_that_is_altered_starts_over(source: PrivateServer, tmp_path: Path) -> None:
    _fill(source)
    begin = _place(source)
    spool = SeedSpool.create(tmp_path / "spool", _NAMES)
    notes: list[str] = []
    altered: list[bool] = []

    def observe(progress: ReadingProgress) -> None:
        if progress.note:
            notes.append(progress.note)
        elif not altered:
            altered.append(True)
            execute(source, "ALTER TABLE shop.orders ADD COLUMN c INT DEFAULT 7")

    with _session(source) as session:
        read_tables(spool, session, limits=_LIMITS, observe=observe)
    assert notes == ["starts over: its definition changed while it was read"]
    # What was altered before its reading began anew is no trouble.
    found, _ = _reconciled(source, spool, begin)
    found.close()
    execute(source, "ALTER TABLE shop.orders ADD KEY (at)")
    with pytest.raises(SeedTroubleError, match="ALTER TABLE") as caught:
        reconcile(spool, _groups(source), format_=FORMAT)
    assert caught.value.tables == (_NAMES[0],)
    spool.start_over(_NAMES[0], caught.value.message)
    assert not SeedSpool.open(spool.folder).is_read
    with _session(source) as session:
        read_tables(spool, session, limits=_LIMITS)
        table = read_logged_table(session, _NAMES[0])
        rows = Counter(image for batch in TableRows(session, table).read() for _, image in batch)
    assert spool.state_of(_NAMES[0]).attempt == 3
    found, _ = _reconciled(source, spool, begin)
    assert Counter(found.rows(_NAMES[0])) == rows
    found.close()
    spool.start_over(_NAMES[0], "it changes all the time")
    assert spool.refusals == {_NAMES[0]: "it was begun 3 times: it changes all the time"}


def test_tables_that_cannot_be_had_are_told(source: PrivateServer, tmp_path: Path) -> None:
    execute(
        source,
        "CREATE DATABASE d",
        "CREATE TABLE d.m (a INT PRIMARY KEY) ENGINE=MyISAM",
        "CREATE VIEW d.v AS SELECT * FROM d.m",
        "CREATE TABLE d.t (a INT PRIMARY KEY)",
        "INSERT INTO d.t VALUES (1)",
    )
    names = [TableName("d", name) for name in ("m", "v", "gone", "t")]
    spool = SeedSpool.create(tmp_path / "spool", names)
    with _session(source) as session:
        read_tables(spool, session)
    assert spool.is_read
    found = spool.refusals
    assert list(found) == names[:3]
    assert "its engine is not transactional" in found[names[0]]
    assert "it is a view" in found[names[1]]
    assert "doesn't exist" in found[names[2]]
    assert spool.databases.keys() == {"d"}
    assert spool.definitions.keys() == {names[3]}


def _read(server: PrivateServer, folder: Path, *names: str) -> tuple[SeedSpool, Position]:
    begin = _place(server)
    spool = SeedSpool.create(folder, [TableName("d", name) for name in names])
    with _session(server) as session:
        read_tables(spool, session)
    return spool, begin


def _folded(server: PrivateServer, spool: SeedSpool, begin: Position) -> Reconciled:
    groups = [
        group
        for group in _groups(server)
        if group.gtid is not None and not begin.covers(group.gtid)
    ]
    found = reconcile(spool, groups, format_=FORMAT)
    assert found is not None
    return found


def test_changes_that_the_log_does_not_have_are_told(source: PrivateServer, tmp_path: Path) -> None:
    """Rows that a foreign key changes, unless the server logs them, and rows without all columns."""
    execute(
        source,
        "CREATE DATABASE d",
        "CREATE TABLE d.p (id INT PRIMARY KEY, n INT)",
        "CREATE TABLE d.c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES d.p (id)"
        " ON DELETE CASCADE)",
        "INSERT INTO d.p VALUES (1, 1), (2, 2)",
        "INSERT INTO d.c VALUES (1, 1), (2, 2)",
    )
    spool, begin = _read(source, tmp_path / "spool", "p", "c")
    child = TableName("d", "c")
    execute(source, "UPDATE d.p SET n = 7")
    found = _folded(source, spool, begin)
    assert len(list(found.rows(child))) == 2
    found.close()
    execute(source, "DELETE FROM d.p WHERE id = 2")
    if source.program.scheme == "mariadb":
        with pytest.raises(SeedTroubleError, match="a foreign key may have changed") as caught:
            _folded(source, spool, begin)
        assert caught.value.tables == (child,)
    else:
        found = _folded(source, spool, begin)
        assert len(list(found.rows(child))) == 1
        found.close()
    spool, begin = _read(source, tmp_path / "again", "p")
    execute(source, "SET SESSION binlog_row_image = MINIMAL", "UPDATE d.p SET n = 8")
    with pytest.raises(SeedTroubleError, match="without all columns"):
        _folded(source, spool, begin)


def test_prepared_transactions_count_where_they_are_committed(
    source: PrivateServer, tmp_path: Path
) -> None:
    execute(
        source,
        "CREATE DATABASE d",
        "CREATE TABLE d.t (id INT PRIMARY KEY)",
        "INSERT INTO d.t VALUES (1)",
    )
    spool, begin = _read(source, tmp_path / "spool", "t")
    name = TableName("d", "t")
    execute(
        source,
        "XA START 'x'",
        "INSERT INTO d.t VALUES (2)",
        "XA END 'x'",
        "XA PREPARE 'x'",
    )
    found = _folded(source, spool, begin)
    assert len(list(found.rows(name))) == 1
    assert found.prepared == {"X'78',X'',1"}
    found.close()
    execute(source, "XA COMMIT 'x'")
    found = _folded(source, spool, begin)
    assert len(list(found.rows(name))) == 2
    assert not found.prepared
    found.close()


def test_a_transaction_that_stays_prepared_is_asked_for_now_and_then(source: PrivateServer) -> None:
    execute(
        source,
        "CREATE DATABASE d",
        "CREATE TABLE d.t (id INT PRIMARY KEY)",
        "XA START 'x'",
        "INSERT INTO d.t VALUES (2)",
        "XA END 'x'",
        "XA PREPARE 'x'",
    )
    with _session(source) as session:
        with pytest.raises(PeerError, match="is prepared and does not end"):
            await_prepared(session, wait_s=0.5)
        asked = session.ask("SHOW SESSION STATUS LIKE 'Com_xa_recover'")[0][1]
    # Every two milliseconds was two hundred times.
    assert int(asked or 0) < 20
    execute(source, "XA ROLLBACK 'x'")
