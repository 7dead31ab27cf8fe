"""Tables and partitions that move over a scope's edge, on real servers: what replicas get of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from binlane.binlogs.routing.statement_verdicts import CAME_IN, REPLACED
from binlane.live.provision.private_server import PrivateServer
from tests.edges import PATHS, contents, recorded, replayed
from tests.replay import binlane
from tests.servers import ServerFactory, execute

SETUP = (
    *("DROP DATABASE IF EXISTS shop", "DROP DATABASE IF EXISTS crm"),
    *("CREATE DATABASE shop", "CREATE DATABASE crm"),
    "CREATE TABLE shop.a (id INT PRIMARY KEY)",
    "CREATE TABLE shop.b (id INT PRIMARY KEY, v INT)",
    "INSERT INTO shop.a VALUES (1)",
    "INSERT INTO shop.b VALUES (2, 2)",
)
_TEXT = "(id INT PRIMARY KEY, n VARCHAR(9) DEFAULT 'x') DEFAULT CHARSET=latin1"
# All of these can be expressed in LOG(shop).
MOVES = (
    f"CREATE TABLE crm.e {_TEXT}; RENAME TABLE crm.e TO shop.e; INSERT INTO shop.e VALUES (1, 'ä')",
    f"USE crm; CREATE TABLE f {_TEXT}; ALTER TABLE f RENAME shop.f; USE mysql",
    f"CREATE TABLE crm.h {_TEXT}; INSERT INTO crm.h VALUES (1, 'y'); TRUNCATE TABLE crm.h",
    "RENAME TABLE crm.h TO crm.i; RENAME TABLE crm.i TO shop.i",
    "RENAME TABLE shop.a TO crm.tmp, shop.b TO shop.a, crm.tmp TO shop.b",
    "CREATE TABLE crm.h2 (id INT); RENAME TABLE shop.f TO shop.f2, crm.h2 TO crm.h3",
    "RENAME TABLE shop.f2 TO crm.f2",
)
# With one statement MariaDB replaces a table by an empty one.
SWAP = (
    f"CREATE TABLE crm.new {_TEXT}; RENAME TABLE shop.i TO crm.old, crm.new TO shop.i",
    "INSERT INTO shop.i VALUES (7, 'z')",
)
_PARTS = "(PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20))"
_TWO = "(PARTITION p1 VALUES LESS THAN (15), PARTITION p2 VALUES LESS THAN (20))"
PARTITIONS = (
    f"CREATE TABLE shop.p (id INT) PARTITION BY RANGE (id) {_PARTS}",
    "INSERT INTO shop.p VALUES (1), (11)",
    "ALTER TABLE shop.p TRUNCATE PARTITION p1; INSERT INTO shop.p VALUES (12)",
    f"ALTER TABLE shop.p REORGANIZE PARTITION p1 INTO {_TWO}",
    "CREATE TABLE crm.x (id INT); ALTER TABLE shop.p EXCHANGE PARTITION p0 WITH TABLE crm.x",
    "INSERT INTO shop.p VALUES (3)",
)
# Of MariaDB alone.
CONVERTED = (
    *PARTITIONS,
    "INSERT INTO shop.p VALUES (18)",
    "ALTER TABLE shop.p CONVERT PARTITION p2 TO TABLE crm.y",
    "ALTER TABLE shop.p CONVERT PARTITION p1 TO TABLE shop.z",
    "ALTER TABLE shop.p CONVERT TABLE shop.z TO PARTITION p1 VALUES LESS THAN (15)",
)
_TAKEN = "a partition is exchanged with a table outside of the scope"
TOLD = {
    f"CREATE TABLE crm.g {_TEXT}; INSERT INTO crm.g VALUES (1, 'y'); RENAME TABLE crm.g TO shop.g": CAME_IN,
    f"CREATE TABLE crm.j {_TEXT}; ALTER TABLE crm.j ADD x INT; RENAME TABLE crm.j TO shop.j": CAME_IN,
    # In a database of another character set it would be another table.
    "CREATE TABLE crm.k (id INT PRIMARY KEY, n VARCHAR(9)); RENAME TABLE crm.k TO shop.k": CAME_IN,
    "CREATE TABLE crm.l LIKE shop.a; RENAME TABLE crm.l TO shop.l": CAME_IN,
    f"CREATE TABLE crm._a_new {_TEXT}; INSERT INTO crm._a_new SELECT id, 1 FROM shop.a": None,
    "RENAME TABLE shop.a TO crm._a_old, crm._a_new TO shop.a": REPLACED,
    f"CREATE TABLE shop.p (id INT) PARTITION BY RANGE (id) {_PARTS}": None,
    "CREATE TABLE crm.x (id INT); INSERT INTO crm.x VALUES (1)": None,
    "ALTER TABLE shop.p EXCHANGE PARTITION p0 WITH TABLE crm.x": _TAKEN,
    "TRUNCATE TABLE crm.x; ALTER TABLE shop.p EXCHANGE PARTITION p0 WITH TABLE crm.x": _TAKEN,
    f"CREATE TABLE crm.p (id INT) PARTITION BY RANGE (id) {_PARTS}": None,
    "CREATE TABLE shop.x (id INT); ALTER TABLE crm.p EXCHANGE PARTITION p0 WITH TABLE shop.x": _TAKEN,
}


def check_replayed(
    source: PrivateServer, replica: PrivateServer, cases: Sequence[str], directory: Path
) -> None:
    recording = recorded(source, directory, SETUP, cases)
    report = recording.reports("LOG(shop)", "LOG(shop, crm)")
    assert recording.incidents(report) == {}
    assert recording.incidents(report, "b2") == {}
    out = directory / PATHS[0]
    assert binlane("verify", str(out), "--against", str(recording.path)) == b""
    # Other tests' tables, which the setup drops.
    execute(replica, "CREATE DATABASE IF NOT EXISTS shop")
    assert replayed(out, "b1", replica) == []
    assert contents(replica, "shop") == contents(source, "shop")
    assert all(database != "crm" for (database,) in execute(replica, "SHOW DATABASES"))


def check_told(source: PrivateServer, directory: Path) -> None:
    recording = recorded(source, directory, SETUP, tuple(TOLD))
    report = recording.reports("LOG(shop)", "LOG(shop, crm)")
    told = {number: reason for number, reason in enumerate(TOLD.values()) if reason}
    assert recording.incidents(report) == told
    assert recording.incidents(report, "b2") == {}


def test_moves_on_mariadb(
    servers: ServerFactory, mariadb_server: PrivateServer, tmp_path: Path
) -> None:
    replica = servers.start("replica", ())
    (tmp_path / "partitions").mkdir()
    check_replayed(mariadb_server, replica, MOVES + SWAP, tmp_path)
    check_replayed(mariadb_server, replica, CONVERTED, tmp_path / "partitions")


def test_what_cannot_move_on_mariadb(mariadb_server: PrivateServer, tmp_path: Path) -> None:
    check_told(mariadb_server, tmp_path)


def test_moves_on_mysql(
    servers: ServerFactory, mysql_server: PrivateServer, tmp_path: Path
) -> None:
    replica = servers.start_mysql("mysql-replica", "--skip-log-bin")
    check_replayed(mysql_server, replica, MOVES + PARTITIONS, tmp_path)


def test_what_cannot_move_on_mysql(mysql_server: PrivateServer, tmp_path: Path) -> None:
    check_told(mysql_server, tmp_path)
