"""`land --snapshot`: rows taken from a real server without locks, and the log landed over them."""

from __future__ import annotations

import random
import re
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pymysql
import pytest

from binlane.cli.main import main
from binlane.errors import ConfigError, PeerError
from binlane.live.provision.private_server import SOURCE_OPTIONS, PrivateServer
from binlane.names import TableName
from binlane.tables.landing.engine import EmbeddedEngine
from binlane.tables.landing.journal import Journal
from binlane.tables.landing.landing import land
from binlane.tables.landing.landing_settings import LandingSettings
from binlane.tables.landing.range_work import FormatName, Mode
from binlane.tables.landing.snapshot.chunk_work import snapshot_chunk
from binlane.tables.landing.verification import Lake, verify_lake
from tests.landed import plain_rows
from tests.serve_process import wait_until
from tests.servers import ServerFactory, connect, execute, purge_before

TABLES = (
    "CREATE DATABASE shop",
    """CREATE TABLE shop.orders (id INT PRIMARY KEY, n INT, note VARCHAR(40) CHARACTER SET latin1,
        at DATETIME(3), f FLOAT, KEY (n)) ENGINE=InnoDB""",
    """CREATE TABLE shop.lines (word VARCHAR(12) CHARACTER SET utf8mb4, kind ENUM('z', 'm', 'a'),
        n DECIMAL(9,2), total DOUBLE, PRIMARY KEY (word, kind, n)) ENGINE=InnoDB""",
    "CREATE TABLE shop.visits (page VARCHAR(20), n INT) ENGINE=InnoDB",
    "CREATE TABLE shop.empty (id INT PRIMARY KEY) ENGINE=InnoDB",
)
KEYED = ("orders", "lines", "empty")
_WRITING_S = 3.0
WORDS = ("a", "ä", "B", "ß", "zz", "Zz", "öl", "", " ", "日本", "it's", "\\")


def filled(server: PrivateServer, rows: int = 300) -> None:
    """Make the tables, and begin a log that does not know their rows."""
    execute(server, *TABLES)
    with connect(server, autocommit=False, charset="utf8mb4") as connection:
        cursor = connection.cursor()
        for number in range(rows):
            order(cursor, number)
            line(cursor, number)
        cursor.executemany(
            "INSERT INTO shop.visits VALUES (%s, %s)", [(f"/{n % 7}", n % 3) for n in range(60)]
        )
        connection.commit()
    execute(server, "FLUSH BINARY LOGS")


def order(cursor: pymysql.cursors.Cursor, number: int) -> None:
    cursor.execute(
        "REPLACE INTO shop.orders VALUES (%s, %s, %s, '2026-01-01 00:00:00.125', %s)",
        (number, number % 10, f"né {number}", number / 7),
    )


def line(cursor: pymysql.cursors.Cursor, number: int) -> None:
    word = WORDS[number % len(WORDS)] + str(number // 40)
    cursor.execute(
        "REPLACE INTO shop.lines VALUES (%s, %s, %s, %s)",
        (word, "zma"[number % 3], number % 13, number / 3),
    )


def copied(server: PrivateServer, live_log: Path, log: Path) -> None:
    """The server's log without its first file, which has the rows, and without its last."""
    log.mkdir(exist_ok=True)
    execute(server, "FLUSH BINARY LOGS")
    for path in sorted(live_log.glob("binlog.0*"))[1:-1]:
        shutil.copy(path, log)


def assert_equal(
    server: PrivateServer, lake: Path, *tables: str, table_format: FormatName = FormatName.DELTA
) -> None:
    """The current tables hold what the server's SELECT gives, its floats exact."""
    for table in tables:
        shown = [
            (name, kind) for name, kind, *_ in execute(server, f"SHOW COLUMNS FROM shop.{table}")
        ]
        asked = ", ".join(f"{name} * 1e0" if kind == "float" else name for name, kind in shown)
        rows = execute(server, "SET time_zone = '+00:00'", f"SELECT {asked} FROM shop.{table}")
        found = plain_rows(lake, table_format, Mode.CURRENT, TableName("shop", table))
        assert selected(found, [name for name, _ in shown]) == Counter(rows), table


def selected(rows: pa.Table, columns: list[str]) -> Counter[tuple[Any, ...]]:
    """Rows as PyMySQL gives a SELECT: times without a zone."""
    return Counter(
        tuple(
            value.replace(tzinfo=None) if hasattr(value, "tzinfo") else value
            for value in (row[name] for name in columns)
        )
        for row in rows.to_pylist()
    )


def settings(server: PrivateServer, chunk_rows: int = 37, tables: str = "") -> LandingSettings:
    return LandingSettings(snapshot=server.url, chunk_rows=chunk_rows, tables=tables)


@pytest.fixture(params=["mariadb", "mysql"])
def source(request: pytest.FixtureRequest, servers: ServerFactory, tmp_path: Path) -> PrivateServer:
    """A server of each flavor, whose log has a directory of its own."""
    folder = tmp_path / "server"
    folder.mkdir()
    option = f"--log-bin={folder}/binlog"
    if request.param == "mariadb":
        return servers.start("source", (*SOURCE_OPTIONS, option))
    return servers.start_mysql("source", option)


@pytest.fixture
def mariadb_source(servers: ServerFactory, tmp_path: Path) -> PrivateServer:
    """A MariaDB whose log has a directory of its own."""
    folder = tmp_path / "server"
    folder.mkdir()
    return servers.start("source", (*SOURCE_OPTIONS, f"--log-bin={folder}/binlog"))


@pytest.fixture
def live_log(tmp_path: Path) -> Path:
    """That directory."""
    return tmp_path / "server"


@pytest.mark.parametrize("table_format", list(FormatName), ids=lambda each: each.value)
def test_a_log_that_begins_in_mid_life_is_made_up_for(
    mariadb_source: PrivateServer, live_log: Path, tmp_path: Path, table_format: FormatName
) -> None:
    """In every kind of table and every format."""
    source = mariadb_source
    filled(source, 60)
    execute(
        source, "INSERT INTO shop.visits VALUES ('/new', 1)", "DELETE FROM shop.orders WHERE id < 5"
    )
    lake, log = tmp_path / "lake", tmp_path / "log"
    copied(source, live_log, log)
    asked = replace(settings(source), modes=frozenset(Mode), format=table_format)
    report = land(str(log), str(lake), asked)
    assert report.tables["shop.orders"].snapshot_rows == 55
    # The server's place lies in a file that is not there yet.
    assert "waits for the log up to binlog.00000" in report.tables["shop.orders"].why_not
    execute(source, "UPDATE shop.orders SET note = 'later' WHERE id % 50 = 0")
    copied(source, live_log, log)
    report = land(str(log), str(lake), replace(asked, snapshot=""))
    assert all(table.is_current for table in report.tables.values()), report
    assert_equal(source, lake, "orders", "lines", "visits", "empty", table_format=table_format)
    table = TableName("shop", "orders")
    changes = plain_rows(lake, table_format, Mode.CHANGES, table).column("_op").to_pylist()
    assert Counter(changes) == {
        "snapshot": 55,
        "delete": 5,
        "update_before": 1,
        "update_after": 1,
    }
    versions = plain_rows(lake, table_format, Mode.HISTORY, table).to_pylist()
    assert Counter(row["is_current"] for row in versions) == {True: 55, False: 1}
    assert {row["id"] for row in versions if not row["is_current"]} == {50}
    assert list(verify_lake(Lake(into=str(lake), sources=[str(log)]))) == []
    # Whole in the log from here on, but for the history.
    execute(
        source,
        "TRUNCATE shop.orders",
        "RENAME TABLE shop.lines TO shop.moved",
        "INSERT INTO shop.orders SELECT 7, 1, 'new', '2026-01-01', 0.5",
    )
    copied(source, live_log, log)
    land(str(log), str(lake), replace(asked, snapshot=""))
    assert list(verify_lake(Lake(into=str(lake), sources=[str(log)]), has_values=True)) == []


@contextmanager
def writers(
    server: PrivateServer, count: int = 3, tables: tuple[str, ...] = KEYED
) -> Iterator[None]:
    """Random DML in transactions of several sessions: also of keys, deleted and come again.

    They end after some seconds, so that a landing can catch up.
    """
    ends = threading.Event()
    failures: list[BaseException] = []

    def write(seed: int) -> None:
        chance = random.Random(seed)
        try:
            with connect(server, autocommit=False, charset="utf8mb4") as connection:
                cursor = connection.cursor()
                while not ends.is_set():
                    try:
                        for _ in range(chance.randrange(1, 4)):
                            change(cursor, chance, tables)
                        if chance.random() < 0.1:
                            connection.rollback()
                        connection.commit()
                        ends.wait(0.02)
                    except pymysql.Error as error:
                        # A deadlock, a key that is taken, a table that is being altered.
                        if error.args[0] not in {1213, 1205, 1062, 1054, 1136, 1146, 1412}:
                            raise
                        connection.rollback()
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=write, args=(seed,)) for seed in range(count)]
    timer = threading.Timer(_WRITING_S, ends.set)
    for thread in (*threads, timer):
        thread.start()
    try:
        yield
    finally:
        timer.cancel()
        ends.set()
        for thread in threads:
            thread.join()
    assert not failures


def change(cursor: pymysql.cursors.Cursor, chance: random.Random, tables: tuple[str, ...]) -> None:
    number = chance.randrange(300)
    kind = chance.randrange(6)
    if "visits" in tables and chance.random() < 0.3:
        cursor.execute("INSERT INTO shop.visits VALUES ('/live', %s)", (number,))
    if kind == 0:
        order(cursor, number)
    elif kind == 1:
        line(cursor, number)
    elif kind == 2:
        cursor.execute("DELETE FROM shop.orders WHERE id BETWEEN %s AND %s", (number, number + 3))
    elif kind == 3:
        cursor.execute(
            "UPDATE shop.orders SET id = %s, n = n + 1 WHERE id = %s",
            (chance.randrange(300), number),
        )
    elif kind == 4:
        cursor.execute(
            "UPDATE shop.lines SET total = -total, kind = 'm' WHERE n = %s", (number % 13,)
        )
    else:
        cursor.execute("INSERT INTO shop.empty VALUES (%s)", (number,))


def test_rows_are_exact_under_load(source: PrivateServer, live_log: Path, tmp_path: Path) -> None:
    filled(source)
    last = max(live_log.glob("binlog.0*"))
    purge_before(source, last.name)
    lake = tmp_path / "lake"
    with EmbeddedEngine(2) as engine:
        with writers(source):
            first = land(str(live_log), str(lake), settings(source, 11), engine=engine)
        with writers(source):
            asked = settings(source, 50, tables="shop.orders, shop.empty")
            again = land(str(live_log), str(lake), asked, engine=engine)
    assert first.tables["shop.orders"].snapshot_rows > 50
    assert again.tables["shop.orders"].snapshot_rows > 0
    assert again.tables["shop.lines"].snapshot_rows == 0
    report = land(str(live_log), str(lake))
    assert all(table.is_current for table in report.tables.values()), report
    assert_equal(source, lake, *KEYED)


class Killed(BaseException):
    """Stands for the end of the process: nobody catches it."""


def test_what_was_read_is_not_read_again(
    mariadb_source: PrivateServer, live_log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = mariadb_source
    filled(source)
    purge_before(source, max(live_log.glob("binlog.0*")).name)
    lake = tmp_path / "lake"
    asked = settings(source, 7)
    done = 0
    for doomed in (3, 20, None):
        engine = DoomedEngine(doomed)
        if doomed is None:
            report = land(str(live_log), str(lake), asked, engine=engine)
        else:
            with pytest.raises(Killed):
                land(str(live_log), str(lake), asked, engine=engine)
        done += engine.done
        execute(source, "UPDATE shop.orders SET id = id + 1000 WHERE id % 40 = 7")
    # 43 of orders and as many of lines, each of which ends with an empty one if it fits exactly.
    assert done == len(range(0, 300, 7)) * 2 + 2
    report = land(str(live_log), str(lake))
    assert all(table.is_current for table in report.tables.values())
    assert_equal(source, lake, "orders", "lines", "visits", "empty")


class DoomedEngine:
    """Runs works here, and dies before the one of a number."""

    cores = 1
    merger = None

    def __init__(self, number: int | None) -> None:
        self.left = number
        self.done = 0

    def run(self, function: Callable[[Any], Any], works: Sequence[Any]) -> Iterator[Any]:
        for work in works:
            if function is snapshot_chunk:
                if self.done == self.left:
                    raise Killed
                self.done += 1
            yield function(work)


def test_landing_dies_anywhere_between_rows_and_log(
    mariadb_source: PrivateServer, live_log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each write of the journal, while snapshots are spliced in."""
    source = mariadb_source
    filled(source, 40)
    purge_before(source, max(live_log.glob("binlog.0*")).name)
    asked = settings(source)
    save = Journal.save
    writes = 0

    def counted(journal: Journal) -> None:
        nonlocal writes
        if writes == 0:
            raise Killed
        writes -= 1
        save(journal)

    lake = tmp_path / "lake"
    monkeypatch.setattr(Journal, "save", counted)
    for number in range(1, 60):
        execute(source, "UPDATE shop.visits SET n = n + 1 WHERE n = 1 LIMIT 1")
        writes = number % 9
        try:
            land(str(live_log), str(lake), asked)
        except Killed:
            continue
        break
    monkeypatch.setattr(Journal, "save", save)
    land(str(live_log), str(lake))
    assert_equal(source, lake, "orders", "lines", "visits", "empty")


def test_a_definition_that_changes_meanwhile_starts_over(
    source: PrivateServer, live_log: Path, tmp_path: Path
) -> None:
    filled(source, 60)
    purge_before(source, max(live_log.glob("binlog.0*")).name)

    class Altering(DoomedEngine):
        """Alters tables between two ranges."""

        def run(self, function: Callable[[Any], Any], works: Sequence[Any]) -> Iterator[Any]:
            for result in super().run(function, works):
                if function is snapshot_chunk and self.done == 4:
                    execute(
                        source,
                        "ALTER TABLE shop.orders ADD COLUMN more INT DEFAULT 7 AFTER n, DROP at",
                        "ALTER TABLE shop.lines MODIFY total INT",
                        "TRUNCATE TABLE shop.visits",
                        "INSERT INTO shop.visits VALUES ('/one', 1)",
                        "DROP TABLE shop.empty",
                    )
                yield result

    lake = tmp_path / "lake"
    engine = Altering(None)
    report = land(str(live_log), str(lake), settings(source, 10), engine=engine)
    assert all(table.is_current for name, table in report.tables.items() if name != "shop.empty")
    assert_equal(source, lake, "orders", "lines", "visits")
    assert not (lake / "current/shop/empty").exists()


def test_tables_that_are_asked_for_are_taken_again(
    mariadb_source: PrivateServer, live_log: Path, tmp_path: Path
) -> None:
    """What the log cannot tell gives tables up; a snapshot of them is the way back."""
    source, lake = mariadb_source, tmp_path / "lake"
    filled(source, 40)
    land(str(live_log), str(lake))
    execute(source, "SET SESSION binlog_format = STATEMENT", "UPDATE shop.orders SET n = 3")
    execute(source, "INSERT INTO shop.visits VALUES ('/x', 1)")
    report = land(str(live_log), str(lake))
    assert not report.tables["shop.orders"].is_current
    report = land(str(live_log), str(lake), settings(source, tables="shop.orders"))
    assert report.tables["shop.orders"].snapshot_rows == 40
    assert report.tables["shop.visits"].snapshot_rows == 0
    assert_equal(source, lake, "orders", "visits")
    execute(source, "INSERT INTO shop.visits VALUES ('/y', 1)")
    land(str(live_log), str(lake))
    assert_equal(source, lake, "orders", "visits")


@pytest.mark.parametrize("is_asked", [False, True], ids=["files", "server"])
def test_what_a_log_says_of_itself_keeps_no_snapshot_waiting(
    mariadb_source: PrivateServer, live_log: Path, tmp_path: Path, *, is_asked: bool
) -> None:
    """Behind the last group, MariaDB's checkpoint, which may come after the log was landed."""
    source, lake = mariadb_source, tmp_path / "lake"
    filled(source, 40)
    log = source.url if is_asked else str(live_log)
    assert land(log, str(lake)).tables["shop.orders"].is_current
    execute(source, "SET SESSION binlog_format = STATEMENT", "UPDATE shop.orders SET n = 3")
    execute(source, "FLUSH BINARY LOGS")
    land(log, str(lake))
    newest = max(live_log.glob("binlog.0*")).name
    events = f"SHOW BINLOG EVENTS IN '{newest}'"
    wait_until(lambda: "Binlog_checkpoint" in {row[2] for row in execute(source, events)})
    report = land(log, str(lake), settings(source, tables="shop.orders"))
    assert report.tables["shop.orders"].is_current, report
    assert_equal(source, lake, "orders")


def test_another_server_is_refused(
    mariadb_source: PrivateServer, servers: ServerFactory, live_log: Path, tmp_path: Path
) -> None:
    filled(mariadb_source, 10)
    lake = str(tmp_path / "lake")
    other = servers.start("other", (*SOURCE_OPTIONS, "--server-id=7"))
    with pytest.raises(ConfigError, match="written by server id 1, not 7"):
        land(str(live_log), lake, settings(other))
    twin = servers.start("twin")
    with pytest.raises(ConfigError, match="is not the server whose log is landed"):
        land(str(live_log), lake, settings(twin))


def test_privileges_that_are_missing_are_named(
    source: PrivateServer, live_log: Path, tmp_path: Path
) -> None:
    filled(source, 10)
    execute(source, "CREATE USER reader@'%'", "GRANT SELECT ON shop.* TO reader@'%'")
    url = source.url.replace("root@", "reader@")
    lake = str(tmp_path / "lake")
    with pytest.raises(PeerError) as refused:
        land(str(live_log), lake, LandingSettings(snapshot=url))
    assert refused.value.hint == "GRANT REPLICATION CLIENT ON *.* TO the account"
    execute(source, "GRANT REPLICATION CLIENT ON *.* TO reader@'%'")
    asked = LandingSettings(snapshot=url, tables="shop.orders, other.gone")
    report = land(str(live_log), lake, asked)
    assert report.tables["shop.orders"].snapshot_rows == 10
    assert "GRANT SELECT ON `other`.`gone`" in " ".join(report.notes)


def test_a_server_is_source_and_snapshot(
    source: PrivateServer, live_log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the command line, with an account that has a password."""
    filled(source, 30)
    purge_before(source, max(live_log.glob("binlog.0*")).name)
    execute(
        source,
        "CREATE USER lander@'%' IDENTIFIED BY 'a word'",
        "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO lander@'%'",
        "GRANT SELECT ON shop.* TO lander@'%'",
    )
    secret, lake = tmp_path / "secret", tmp_path / "lake"
    secret.write_text("a word\n")
    url = source.url.replace("root@", "lander@")
    options = ["--into", str(lake), "--snapshot", url, "--password-file", str(secret)]
    assert main(["land", url, *options]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"shop\.orders: \d+ row images, 30 rows of a snapshot; current", shown)
    assert_equal(source, lake, "orders", "lines", "visits", "empty")


def test_tables_that_cannot_be_had_are_told(
    mariadb_source: PrivateServer, live_log: Path, tmp_path: Path
) -> None:
    execute(
        mariadb_source,
        "CREATE DATABASE shop",
        "CREATE TABLE shop.keyed (id INT PRIMARY KEY) ENGINE=MyISAM",
        "CREATE TABLE shop.keyless (id INT) ENGINE=MyISAM",
        "CREATE TABLE shop.versioned (id INT PRIMARY KEY) WITH SYSTEM VERSIONING",
        "CREATE TABLE shop.hashed (id INT PRIMARY KEY, t TEXT, UNIQUE (t))",
        "CREATE TABLE shop.zero (d DATE PRIMARY KEY)",
        "CREATE VIEW shop.seen AS SELECT * FROM shop.keyed",
        "CREATE SEQUENCE shop.numbers",
        "SET sql_mode = ''",
        "INSERT INTO shop.zero VALUES ('0000-00-00'), ('2026-01-01')",
        "INSERT INTO shop.keyed VALUES (1), (2)",
    )
    asked = settings(mariadb_source)
    report = land(str(live_log), str(tmp_path / "lake"), asked)
    told = {note.partition(":")[0]: note for note in report.notes if "snapshot of it" in note}
    for table, reason in {
        "keyless": "neither a primary key nor an engine",
        "versioned": "system-versioned",
        "hashed": "unique key over a long column",
        "zero": "its key has dates in d that are none",
    }.items():
        assert reason in told.pop(f"shop.{table}")
    assert not told
    assert any("shop.keyed: its engine is not transactional" in note for note in report.notes)
    assert report.tables["shop.keyed"].snapshot_rows == 2
