"""`land` in a real session, and against a real server's SELECT."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from binlane import api
from binlane.errors import CodecError, ConfigError, StoreLockedError
from binlane.tables.landing.landing import land
from binlane.tables.landing.landing_progress import LandingProgress
from binlane.tables.landing.landing_settings import LandingSettings
from binlane.tables.landing.lease import Lease
from binlane.tables.landing.range_work import Mode
from binlane.tables.landing.tasks import land_range
from tests.fixture_sets import fixture_set
from tests.landed import current_rows, delta_rows, final_rows
from tests.servers import ServerFactory, execute
from tests.shop_log import ShopLog, Table

CREATE_ORDERS = """CREATE TABLE shop.orders (
    id INT UNSIGNED PRIMARY KEY AUTO_INCREMENT,
    customer INT,
    state ENUM('new', 'paid') DEFAULT 'new',
    total DECIMAL(10,2),
    at DATETIME(3)
)"""
FILL_ORDERS = """INSERT INTO shop.orders (customer, total, at)
SELECT seq, seq * 1.25, '2026-01-01 00:00:00.125' + INTERVAL seq HOUR FROM shop.seq_1_to_60"""
STAGES = (
    (
        "CREATE DATABASE shop",
        CREATE_ORDERS,
        "CREATE TABLE shop.items (order_id INT, n TINYINT, what TEXT, PRIMARY KEY (n, order_id))",
        "CREATE TABLE shop.visits (page VARCHAR(20), at TIMESTAMP NULL)",
        FILL_ORDERS,
        "INSERT INTO shop.items SELECT seq, seq % 3, CONCAT('thing ', seq) FROM shop.seq_1_to_60",
        "INSERT INTO shop.visits SELECT CONCAT('/', seq % 5), '2026-01-01' FROM shop.seq_1_to_60",
    ),
    (
        "UPDATE shop.orders SET state = 'paid' WHERE id % 3 = 0",
        "UPDATE shop.orders SET id = id + 1000 WHERE id % 10 = 0",
        "DELETE FROM shop.items WHERE order_id % 4 = 0",
        "ALTER TABLE shop.orders ADD COLUMN note VARCHAR(40) NOT NULL DEFAULT 'none' AFTER customer",
        "INSERT INTO shop.orders (customer, note, total) VALUES (7, 'mine', NULL)",
        "DELETE FROM shop.visits WHERE page = '/3' LIMIT 7",
        "UPDATE shop.visits SET page = '/home' WHERE page = '/0'",
    ),
    (
        "RENAME TABLE shop.items TO shop.lines",
        "INSERT INTO shop.lines VALUES (5000, 1, 'behind the rename')",
        "ALTER TABLE shop.orders DROP COLUMN customer, CHANGE total amount DECIMAL(12,2)",
        "UPDATE shop.orders SET amount = amount + 1 WHERE id < 20",
        "CREATE TABLE shop.gone (a INT PRIMARY KEY)",
        "INSERT INTO shop.gone VALUES (1)",
        "DROP TABLE shop.gone",
        "CREATE TABLE shop.emptied (a INT PRIMARY KEY)",
        "INSERT INTO shop.emptied VALUES (1), (2)",
        "TRUNCATE TABLE shop.emptied",
    ),
)


@pytest.fixture
def fixture_logs(tmp_path: Path) -> Path:
    """Directories with the binlog files of some fixtures, by name."""
    folder = tmp_path / "logs"
    for name in ("md1011_metadata_full", "md118_txn"):
        (folder / name).mkdir(parents=True)
        for file, data in fixture_set(name).binlogs:
            (folder / name / file).write_bytes(data)
    return folder


def test_tables_follow_a_server_through_restarts(servers: ServerFactory, tmp_path: Path) -> None:
    server = servers.start("source")
    log, lake = tmp_path / "log", tmp_path / "lake"
    log.mkdir()
    batches = 0
    for statements in STAGES:
        execute(server, *statements)
        execute(server, "FLUSH BINARY LOGS")
        for path in server.data_directory.glob("binlog.0*"):
            shutil.copy(path, log)
        report = land(str(log), str(lake), LandingSettings(batch_bytes=4000))
        batches += report.batches
        tables = [name for name, table in report.tables.items() if table.is_current]
        shown = execute(server, "SHOW TABLES FROM shop")
        assert sorted(tables) == sorted(f"shop.{name}" for (name,) in shown)
        for name in tables:
            table = name.removeprefix("shop.")
            columns = [name for name, *_ in execute(server, f"SHOW COLUMNS FROM shop.{table}")]
            expected = execute(server, "SET time_zone = '+00:00'", f"SELECT * FROM shop.{table}")
            assert selected(lake / "current/shop" / table, columns) == Counter(expected), name
    assert batches > len(STAGES)
    again = land(str(log), str(lake))
    assert (again.batches, again.rows, again.last_gtid) == (0, 0, None)


def test_a_log_that_grows_all_the_time_is_landed_as_far_as_it_was(tmp_path: Path) -> None:
    """Else a source that writes as fast as it is landed would never let it end."""
    made, log, lake = ShopLog(), tmp_path / "log", tmp_path / "lake"
    orders = Table("orders", ("id", "state"))
    log.mkdir()
    made.statement("CREATE TABLE orders (id INT PRIMARY KEY, state VARCHAR(50))")

    def grow(_progress: LandingProgress | None = None) -> None:
        made.insert(orders, (made.groups, "new"))
        name, data = made.file()
        (log / f"{name}.new").write_bytes(data)
        (log / f"{name}.new").replace(log / name)
        assert made.groups < 50, "it goes on for ever"

    grow()
    report = land(str(log), str(lake), observer=grow)
    assert report.rows == 1
    left = made.groups - 2
    assert left > 0
    assert land(str(log), str(lake)).rows == left


class OvertakenEngine:
    """Runs works; before they merge another driver takes the target and sweeps it."""

    cores = 1
    merger = None

    def __init__(self, lake: Path) -> None:
        self._lake = lake

    def run(self, function: Callable[[Any], Any], works: Sequence[Any]) -> Iterator[Any]:
        for work in works:
            if function is not land_range:
                Lease.take(str(self._lake), is_taking_over=True).release()
                shutil.rmtree(self._lake / "_binlane/staging")
            yield function(work)


def test_who_misses_what_it_staged_says_who_took_the_target(
    fixture_logs: Path, tmp_path: Path
) -> None:
    lake, log = tmp_path / "lake", str(fixture_logs / "md118_txn")
    settings = LandingSettings(modes=frozenset({Mode.CURRENT}))
    with pytest.raises(StoreLockedError, match="has taken over; this driver has committed nothing"):
        land(log, str(lake), settings, engine=OvertakenEngine(lake))


def test_prepared_transactions_that_are_compressed(servers: ServerFactory, tmp_path: Path) -> None:
    """MySQL puts all of a prepared transaction, XA PREPARE included, into one event."""
    server = servers.start_mysql("source", "--binlog-transaction-compression=ON")
    execute(
        server,
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (id INT PRIMARY KEY, v VARCHAR(100))",
        *(
            statement
            for name, end in (("a", "COMMIT"), ("b", "ROLLBACK"))
            for statement in (
                f"XA START '{name}'",
                f"INSERT INTO shop.t VALUES ({ord(name)}, REPEAT('x', 100))",
                f"XA END '{name}'",
                f"XA PREPARE '{name}'",
                "FLUSH BINARY LOGS",
                f"XA {end} '{name}'",
            )
        ),
        "FLUSH BINARY LOGS",
    )
    files = sorted(map(str, server.data_directory.glob("binlog.0*")))[:-1]
    lake = tmp_path / "lake"
    report = land(files, str(lake), LandingSettings(task_bytes=500))
    assert report.tables["shop.t"].is_current, report.tables
    assert selected(lake / "current/shop/t", ["id"]) == {(97,): 1}
    assert delta_rows(lake / "changes/shop/t")["id"].to_pylist() == [97]


def selected(path: Path, columns: list[str]) -> Counter[tuple[Any, ...]]:
    """A current table as PyMySQL gives a SELECT: times without a zone."""
    return Counter(
        tuple(
            value.replace(tzinfo=None) if hasattr(value, "tzinfo") else value
            for value in (row[name] for name in columns)
        )
        for row in delta_rows(path).to_pylist()
    )


def test_a_real_log_with_all_types(fixture_logs: Path, tmp_path: Path) -> None:
    report = land(str(fixture_logs / "md1011_metadata_full"), str(tmp_path / "lake"))
    fixture = fixture_set("md1011_metadata_full")
    assert report.last_gtid == fixture.meta["gtid"]["gtid_binlog_pos"]
    assert report.rows == 17
    for name in fixture.final_tables():
        path = tmp_path / "lake/current" / name.replace(".", "/")
        assert current_rows(path) == final_rows(fixture.final(name), path), name


@pytest.mark.parametrize("name", ["md1011_encrypted", "my97_encrypted"])
def test_an_encrypted_log(name: str, tmp_path: Path) -> None:
    files = fixture_set(name).files
    plain, locked = tmp_path / "plain", tmp_path / "locked"
    for folder in (plain, locked):
        folder.mkdir()
    for file in ("binlog.000001", "binlog.000002"):
        (plain / file).write_bytes(files[f"{file}.decrypted"])
        (locked / file).write_bytes(files[file])
    expected = land(str(plain), str(tmp_path / "one"))
    keys = tmp_path / "keys"
    keys.write_bytes(files.get("keys.txt") or files["keyring"])
    settings = LandingSettings(keys=str(keys))
    report = land(str(locked), str(tmp_path / "two"), settings)
    assert expected.rows == report.rows > 0
    assert [*report.tables] == [*expected.tables]
    for table in report.tables:
        path = f"changes/{table.replace('.', '/')}"
        one, two = (delta_rows(tmp_path / lake / path) for lake in ("one", "two"))
        assert Counter(map(str, one.to_pylist())) == Counter(map(str, two.to_pylist()))


def test_modes_and_tables(fixture_logs: Path, tmp_path: Path) -> None:
    lists = "LOG(shop.m1, shop.m2), IGNORE(shop.m2)"
    settings = LandingSettings(modes=frozenset({Mode.CHANGES}), tables=lists)
    report = land(str(fixture_logs / "md1011_metadata_full"), str(tmp_path / "lake"), settings)
    assert list(report.tables) == ["shop.m1"]
    assert [
        path.name for path in (tmp_path / "lake").iterdir() if not path.name.startswith("_")
    ] == ["changes"]


def test_a_damaged_log_says_where(tmp_path: Path) -> None:
    log = tmp_path / "binlog.000001"
    log.write_bytes(fixture_set("corrupt_mariadb1011").files["flip_body.bin"])
    with pytest.raises(CodecError, match=rf"checksum is .* \({log}:\d+\)") as caught:
        land(str(log), str(tmp_path / "lake"))
    assert caught.value.hint


def test_another_checkpoint_is_refused(fixture_logs: Path, tmp_path: Path) -> None:
    log = str(fixture_logs / "md118_txn")
    land(log, str(tmp_path / "lake"))
    with pytest.raises(ConfigError, match="do not belong together"):
        land(log, str(tmp_path / "lake"), LandingSettings(checkpoint=str(tmp_path / "other")))


def test_the_command(fixture_logs: Path, tmp_path: Path) -> None:
    log, lake = str(fixture_logs / "md118_txn"), str(tmp_path / "lake")
    done = subprocess.run(
        [sys.executable, "-m", "binlane", "land", log, "--into", lake],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("138 row images, 1 batches, ")
    assert "up to GTID 0-1-15\n  shop.a: 12 row images; current\n" in done.stdout
    assert (tmp_path / "lake/current/shop/b/_delta_log").is_dir()


def test_the_same_from_python(fixture_logs: Path, tmp_path: Path) -> None:
    log, lake = fixture_logs / "md1011_metadata_full", tmp_path / "lake"
    seen: list[int] = []
    report = api.land(
        log,
        lake,
        mode=["changes", "history"],
        tables=["shop.m1", "shop.m2"],
        observer=lambda progress: seen.append(progress.rows),
    )
    assert sorted(report.tables) == ["shop.m1", "shop.m2"]
    assert seen[-1] == report.rows > 0
    assert sorted(path.name for path in lake.glob("*/shop")) == ["shop", "shop"]
    with pytest.raises(ConfigError, match="was landed with mode changes,history, not with changes"):
        api.land(log, lake, mode="changes", tables=["shop.m1", "shop.m2"])
    for wrong in ({"mode": "latest"}, {"table_format": "csv"}, {"batch_size": 4}):
        with pytest.raises(ConfigError):
            api.land(log, lake, **wrong)


@pytest.mark.parametrize("batch_bytes", [600, 1 << 20])
def test_rows_before_an_alter_of_their_characters_are_there_when_a_batch_begins_anew(
    servers: ServerFactory, tmp_path: Path, batch_bytes: int
) -> None:
    server = servers.start("source")
    execute(
        server,
        "CREATE DATABASE shop",
        "USE shop",
        "SET sql_mode = ''",
        "CREATE TABLE parent (id INT PRIMARY KEY)",
        "CREATE TABLE child (id INT PRIMARY KEY, p INT,"
        " FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)",
        "CREATE TABLE words (id INT PRIMARY KEY, v VARCHAR(20)) CHARSET latin1",
        "INSERT INTO words VALUES (1, 'one'), (2, 'two')",
        "ALTER TABLE words CONVERT TO CHARACTER SET utf8mb4",
        "INSERT INTO parent VALUES (1)",
        "INSERT INTO child VALUES (1, 1)",
        "DELETE FROM parent",
        "INSERT INTO words VALUES (3, 'three')",
        "FLUSH BINARY LOGS",
    )
    log, lake = tmp_path / "log", tmp_path / "lake"
    log.mkdir()
    for path in server.data_directory.glob("binlog.0*"):
        shutil.copy(path, log)
    report = land(str(log), str(lake), LandingSettings(batch_bytes=batch_bytes))
    assert all(table.is_current for table in report.tables.values())
    rows = delta_rows(lake / "current" / "shop" / "words").to_pylist()
    assert sorted((row["id"], row["v"]) for row in rows) == [(1, "one"), (2, "two"), (3, "three")]
    assert delta_rows(lake / "current" / "shop" / "child").num_rows == 0


DATETIMES = (
    "ALTER TABLE t ADD COLUMN d DATETIME(3)",
    "ALTER TABLE t ADD COLUMN d DATETIME AFTER id",
    "ALTER TABLE t ADD COLUMN d DATETIME FIRST",
    "ALTER TABLE t MODIFY v DATETIME",
    "ALTER TABLE t CHANGE v d DATETIME FIRST",
)


def test_a_table_gets_its_first_time_without_zone(servers: ServerFactory, tmp_path: Path) -> None:
    server = servers.start("source")
    log, lake = tmp_path / "log", tmp_path / "lake"
    log.mkdir()
    execute(server, "CREATE DATABASE shop")
    for number in range(len(DATETIMES)):
        execute(
            server,
            "USE shop",
            f"CREATE TABLE t{number} (id INT PRIMARY KEY, v DATE)",
            f"INSERT INTO t{number} VALUES (1, '2026-01-02')",
        )
    for text in ("", *DATETIMES):
        if text:
            number = DATETIMES.index(text)
            execute(server, "USE shop", text.replace(" t ", f" t{number} "))
            execute(server, f"INSERT INTO shop.t{number} (id) VALUES (2)")
        execute(server, "FLUSH BINARY LOGS")
        for path in server.data_directory.glob("binlog.0*"):
            shutil.copy(path, log)
        report = land(str(log), str(lake), LandingSettings())
        assert all(table.is_current for table in report.tables.values()), text
    for number, text in enumerate(DATETIMES):
        rows = delta_rows(lake / "current" / "shop" / f"t{number}").to_pylist()
        assert sorted(row["id"] for row in rows) == [1, 2], text
