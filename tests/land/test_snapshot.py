"""`land --snapshot`: rows taken from a real server without locks, and the log landed over them."""

from __future__ import annotations

import random
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pymysql
import pytest

from binlane.land.engine import EmbeddedEngine, InProcess
from binlane.land.landing import LandingReport, land
from binlane.land.settings import LandingSettings
from binlane.service.private_server import PrivateServer
from tests.land.test_landing import selected
from tests.landed import delta_rows
from tests.servers import ServerFactory, connect, execute

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
WORDS = ("a", "ä", "B", "ß", "zz", "Zz", "öl", "", " ", "日本", "it's", "\\")


def filled(server: PrivateServer, rows: int = 400) -> None:
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


def purged(server: PrivateServer, log: Path) -> None:
    """The server's log without its first file, which has the rows."""
    log.mkdir(exist_ok=True)
    execute(server, "FLUSH BINARY LOGS")
    for path in sorted(server.data_directory.glob("binlog.0*"))[1:-1]:
        shutil.copy(path, log)


def assert_equal(server: PrivateServer, lake: Path, *tables: str) -> None:
    """The current tables hold what the server's SELECT gives, its floats exact."""
    for table in tables:
        shown = [(name, kind) for name, kind, *_ in execute(server, f"SHOW COLUMNS FROM shop.{table}")]
        asked = ", ".join(f"{name} * 1e0" if kind == "float" else name for name, kind in shown)
        rows = execute(server, "SET time_zone = '+00:00'", f"SELECT {asked} FROM shop.{table}")
        assert selected(lake / "current/shop" / table, [name for name, _ in shown]) == Counter(
            rows
        ), table


def settings(server: PrivateServer, chunk_rows: int = 37, tables: str = "") -> LandingSettings:
    return LandingSettings(snapshot=server.url, chunk_rows=chunk_rows, tables=tables)


@pytest.fixture(params=["mariadb", "mysql"])
def source(request: pytest.FixtureRequest, servers: ServerFactory) -> PrivateServer:
    """A server of each flavor."""
    return servers.start("source") if request.param == "mariadb" else servers.start_mysql("source")


def test_a_log_that_begins_in_mid_life_is_made_up_for(
    source: PrivateServer, tmp_path: Path
) -> None:
    filled(source)
    execute(
        source, "INSERT INTO shop.visits VALUES ('/new', 1)", "DELETE FROM shop.orders WHERE id < 5"
    )
    lake, log = tmp_path / "lake", tmp_path / "log"
    purged(source, log)
    report = land(str(log), str(lake), settings(source))
    assert report.tables["shop.orders"].snapshot_rows == 395
    # The server's place lies in a file that is not there yet.
    assert not report.tables["shop.orders"].is_current
    execute(source, "UPDATE shop.orders SET note = 'later' WHERE id % 50 = 0")
    purged(source, log)
    report = land(str(log), str(lake))
    assert all(table.is_current for table in report.tables.values()), report
    assert_equal(source, lake, "orders", "lines", "visits", "empty")
    changes = delta_rows(lake / "changes/shop/orders").to_pylist()
    assert Counter(row["_op"] for row in changes) == {
        "snapshot": 395,
        "delete": 5,
        "update_before": 7,
        "update_after": 7,
    }
