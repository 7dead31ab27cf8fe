"""Which files go, and which never do."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from binlane.binlogs.store.binlog import Binlog
from binlane.binlogs.store.catalog import Catalog
from binlane.binlogs.store.files import ended_before
from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.store import Store
from binlane.binlogs.store.stored_groups import StoreReader
from binlane.binlogs.store.verify import verify
from binlane.positions import GtidPosition
from tests.groups import TIMESTAMP, add, create, sequences, stored, transaction

SMALL = StoreSettings(max_binlog_size_bytes=4096, watermark_interval_s=3600)


def renumber(data_dir: Path, number: str) -> None:
    """Give the only file of binlog `orders` another number."""
    directory = data_dir / "binlogs/orders"
    (directory / "orders.000001").rename(directory / f"orders.{number}")
    (directory / "orders.index").write_text(f"./orders.{number}\n")
    connection = sqlite3.connect(Catalog.path_in(data_dir))
    with connection:
        connection.execute("UPDATE binlogs SET end_file = ?", (f"orders.{number}",))
    connection.close()


def test_files_are_told_by_number_where_one_has_a_digit_more(tmp_path: Path) -> None:
    with Store.open(tmp_path, SMALL) as store:
        create(store)
    renumber(tmp_path, "999998")
    with Store.open(tmp_path, SMALL) as store:
        add(binlog := store.binlogs["orders"], [transaction(n, size=1500) for n in range(1, 10)])
        names = [file.name for file in binlog.files()]
        assert names == ["orders.999998", "orders.999999", "orders.1000000"]
        binlog.purge("orders.999999")
        assert [file.name for file in binlog.files()] == names[1:]
        held = sequences(stored(binlog))
        binlog.purge("orders.1000000")
        assert [file.name for file in binlog.files()] == names[2:]
        add(binlog, [transaction(10)])
        assert sequences(stored(binlog))[-1] == 10 == held[-1] + 1
    assert not list(verify([tmp_path]))


def aged(store: Store) -> Binlog:
    """A binlog of several files, one an hour, the last of them live."""
    binlog = create(store)
    for hour in range(1, 6):
        add(binlog, [transaction(hour)])
        binlog.rotate(TIMESTAMP + hour * 3600)
    return binlog


def purge_before(binlog: Binlog, timestamp: float) -> None:
    """Purge as PURGE BINARY LOGS BEFORE does."""
    binlog.purge(binlog.files()[ended_before(binlog.published.closed, timestamp)].name)


def test_files_that_ended_before_a_time_go(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        binlog = aged(store)
        purge_before(binlog, TIMESTAMP)
        assert len(binlog.files()) == 6
        purge_before(binlog, TIMESTAMP + 3 * 3600)
        assert sequences(stored(binlog)) == [3, 4, 5]
    with Store.open(tmp_path) as store:
        binlog = store.binlogs["orders"]
        purge_before(binlog, TIMESTAMP + 10**6)
        assert [file.name for file in binlog.files()] == ["orders.000006"]
        assert binlog.position == GtidPosition.parse("0-1-5")
    assert not list(verify([tmp_path]))


def test_purging_by_time_ends_at_the_first_file_that_is_newer(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        binlog = create(store)
        for ended in (5, 90, 7, 8):
            binlog.rotate(TIMESTAMP + ended)
        purge_before(binlog, TIMESTAMP + 50)
        assert [file.number for file in binlog.files()] == [2, 3, 4, 5]


def test_files_expire_when_another_begins(tmp_path: Path) -> None:
    settings = StoreSettings(max_binlog_size_bytes=4096, expire_logs_s=60)
    with Store.open(tmp_path, settings) as store:
        binlog = create(store)
        binlog.rotate(int(time.time()))
        add(binlog, [transaction(n, size=900) for n in range(1, 13)])
        # The one that ended now has time left, and so have all behind it.
        assert binlog.files()[0].number == 1
        binlog.purge(binlog.files()[1].name)
        add(binlog, [transaction(n, size=900) for n in range(13, 21)])
        assert len(binlog.files()) == 1


def test_a_binlog_stays_within_its_total_size(tmp_path: Path) -> None:
    settings = StoreSettings(max_binlog_size_bytes=4096, max_binlog_total_size_bytes=20_000)
    with Store.open(tmp_path, settings) as store:
        binlog = create(store)
        for n in range(1, 101):
            add(binlog, [transaction(n, size=900)])
            assert sum(file.size_bytes for file in binlog.files()) < 20_000 + 2 * 4096
        assert sequences(stored(binlog))[-1] == 100
        assert len(binlog.files()) > 2
    assert not list(verify([tmp_path]))


def test_the_end_of_a_file_is_known_without_the_catalog(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        files = aged(store).files()
    connection = sqlite3.connect(Catalog.path_in(tmp_path))
    with connection:
        assert connection.execute("SELECT count(*) FROM binlog_files").fetchone() == (5,)
        connection.execute("DELETE FROM binlog_files WHERE number IN (2, 4)")
    connection.close()
    assert StoreReader(tmp_path).files("orders") == files
    with Store.open(tmp_path) as store:
        assert store.binlogs["orders"].files() == files
    connection = sqlite3.connect(Catalog.path_in(tmp_path))
    assert connection.execute("SELECT count(*) FROM binlog_files").fetchone() == (5,)
    connection.close()


def test_purged_and_dropped_files_are_forgotten(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        binlog = aged(store)
        binlog.sync(force=True)
        binlog.purge("orders.000003")
        connection = sqlite3.connect(Catalog.path_in(tmp_path))
        assert connection.execute("SELECT min(number) FROM binlog_files").fetchone() == (3,)
        store.drop_binlog("orders")
        assert connection.execute("SELECT count(*) FROM binlog_files").fetchone() == (0,)
        connection.close()
