"""Rows that change in scope with those outside of it: found exactly in the logs of real servers."""

from __future__ import annotations

from pathlib import Path

from binlane.routing.cascades import CASCADED, MERGED
from binlane.service.private_server import PrivateServer
from tests.edges import Recording, recorded
from tests.servers import ServerFactory

_KEY = "FOREIGN KEY (p) REFERENCES crm.p (id)"
_OUTSIDE = "a statement needs objects outside of the scope"
_TRIGGERED = "IF OLD.v > 100 THEN INSERT INTO shop.log (v) VALUES (OLD.v); END IF"
SETUP = (
    *("DROP DATABASE IF EXISTS shop", "DROP DATABASE IF EXISTS crm"),
    *("CREATE DATABASE shop", "CREATE DATABASE crm"),
    "CREATE TABLE crm.p (id INT PRIMARY KEY, v INT, u INT UNIQUE)",
    f"CREATE TABLE shop.c (id INT PRIMARY KEY, p INT, {_KEY} ON DELETE CASCADE ON UPDATE CASCADE)",
    f"CREATE TABLE shop.n (id INT PRIMARY KEY, p INT, {_KEY} ON DELETE SET NULL)",
    "CREATE TABLE crm.r (id INT PRIMARY KEY, v INT)",
    "CREATE TABLE shop.r (id INT PRIMARY KEY, r INT, FOREIGN KEY (r) REFERENCES crm.r (id))",
    "CREATE TABLE shop.log (id INT PRIMARY KEY AUTO_INCREMENT, v INT)",
    "CREATE TABLE crm.t (id INT PRIMARY KEY, v INT)",
    f"CREATE TRIGGER crm.tr AFTER DELETE ON crm.t FOR EACH ROW {_TRIGGERED}",
    "CREATE TABLE shop.m1 (id INT) ENGINE=MyISAM",
    "CREATE TABLE crm.merged (id INT) ENGINE=MERGE UNION=(shop.m1) INSERT_METHOD=LAST",
    "INSERT INTO crm.p VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3), (4, 4, 4), (5, 5, 5), (6, 6, 6)",
    "INSERT INTO shop.c VALUES (1, 1), (2, 2), (4, 4)",
    "INSERT INTO shop.n VALUES (1, 1), (4, 4)",
    "INSERT INTO crm.r VALUES (1, 1), (2, 2)",
    "INSERT INTO crm.t VALUES (1, 1), (2, 200)",
)
# With what MariaDB, and MySQL where InnoDB follows foreign keys, makes of each in LOG(shop).
CASES = {
    "INSERT INTO crm.p VALUES (10, 1, 10)": None,
    "UPDATE crm.p SET v = 99 WHERE id = 1": None,
    "UPDATE crm.p SET u = 99 WHERE id = 1": None,
    "DELETE FROM crm.p WHERE id = 1": CASCADED,
    "UPDATE crm.p SET id = 20 WHERE id = 2": CASCADED,
    "REPLACE INTO crm.p VALUES (5, 55, 5)": CASCADED,
    "INSERT INTO crm.p VALUES (6, 6, 6) ON DUPLICATE KEY UPDATE v = 3": None,
    "INSERT INTO crm.p VALUES (6, 6, 6) ON DUPLICATE KEY UPDATE id = 66": CASCADED,
    "SET foreign_key_checks=0; DELETE FROM crm.p WHERE id = 3; SET foreign_key_checks=1": None,
    "DELETE FROM crm.r WHERE id = 1": None,
    "UPDATE crm.r SET id = 12 WHERE id = 2": None,
    "DELETE FROM crm.t WHERE id = 1": None,
    "DELETE FROM crm.t WHERE id = 2": None,
    "UPDATE shop.log l RIGHT JOIN crm.t i ON l.id = 999 SET l.v = 5, i.v = i.v + 1": None,
    "LOCK TABLES shop.log WRITE, crm.t WRITE; INSERT INTO crm.t VALUES (60, 1); UNLOCK TABLES": None,
    "INSERT INTO crm.merged VALUES (1)": MERGED,
    "DELETE FROM crm.merged": MERGED,
    "DELETE FROM shop.c WHERE id = 4": None,
    "ALTER TABLE shop.c DROP FOREIGN KEY c_ibfk_1; DELETE FROM crm.p WHERE id = 4": CASCADED,
    "ALTER TABLE shop.n DROP FOREIGN KEY n_ibfk_1; DELETE FROM crm.p WHERE id = 10": None,
    "ALTER TABLE shop.n ADD FOREIGN KEY (p) REFERENCES crm.p (u) ON UPDATE CASCADE": _OUTSIDE,
    "INSERT INTO crm.p VALUES (7, 7, 7); UPDATE crm.p SET u = 77 WHERE id = 7": CASCADED,
    "DELETE FROM crm.p WHERE id = 7": None,
}


def record(server: PrivateServer, directory: Path) -> Recording:
    return recorded(server, directory, SETUP, tuple(CASES))


def expected() -> dict[int, str]:
    return {number: reason for number, reason in enumerate(CASES.values()) if reason}


def test_what_mariadb_does_not_log(mariadb_server: PrivateServer, tmp_path: Path) -> None:
    recording = record(mariadb_server, tmp_path)
    report = recording.reports("LOG(shop)", "IGNORE(crm)", "LOG(shop, crm)", "LOG(crm)")
    assert recording.incidents(report) == expected()
    assert recording.incidents(report, "b2") == expected()
    assert recording.incidents(report, "b3") == {}


def test_what_mysql_does_not_log_where_innodb_follows_keys(
    servers: ServerFactory, tmp_path: Path
) -> None:
    server = servers.start_mysql("mysql", "--innodb-native-foreign-keys=ON")
    recording = record(server, tmp_path)
    report = recording.reports("LOG(shop)", "LOG(shop, crm)")
    assert recording.incidents(report) == expected()
    assert recording.incidents(report, "b2") == {}


def test_what_mysql_logs_itself(mysql_server: PrivateServer, tmp_path: Path) -> None:
    recording = record(mysql_server, tmp_path)
    report = recording.reports("LOG(shop)", "LOG(shop, crm)")
    told = {number: reason for number, reason in expected().items() if reason != CASCADED}
    assert recording.incidents(report) == told
    assert recording.incidents(report, "b2") == {}
