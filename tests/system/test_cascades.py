"""Rows that change in scope with those outside of it: found exactly in the logs of real servers."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from binlane.binlogs.routing.cascades import CASCADED, MAPPED, MERGED
from binlane.live.answers.source_links import Rows, SourceLinks, source_links
from binlane.live.provision.private_server import PrivateServer
from tests.edges import Recording, recorded
from tests.routed_files import definitions
from tests.servers import ServerFactory, connect, execute

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


# Of tables that are there already, whose definitions no log has.
LATER = (
    "UPDATE crm.p SET v = 1 WHERE id = 4",
    "INSERT INTO crm.p VALUES (10, 1, 10)",
    "DELETE FROM crm.p WHERE id = 4",
    "DELETE FROM crm.t WHERE id = 1",
    "DELETE FROM crm.r WHERE id = 1",
    "INSERT INTO crm.merged VALUES (1)",
)


async def _query(server: PrivateServer, statement: str) -> Rows:
    return [
        [None if cell is None else str(cell) for cell in row] for row in execute(server, statement)
    ]


def asked(server: PrivateServer) -> SourceLinks:
    return asyncio.run(source_links(partial(_query, server)))


def test_what_is_known_of_a_source(mariadb_server: PrivateServer, tmp_path: Path) -> None:
    execute(mariadb_server, *SETUP)
    found = asked(mariadb_server)
    recording = recorded(mariadb_server, tmp_path, (), LATER)
    told = recording.incidents(recording.reports("LOG(shop)", links=found.links))
    assert told == {2: CASCADED, 5: MERGED}
    assert not found.are_logged
    (scope,) = definitions("LOG(shop)")
    notes = found.notes(scope.scope)
    assert [note.partition(":")[0] for note in notes] == ["`shop`.`c`", "`shop`.`n`", "`shop`.`m1`"]
    assert "`crm`.`p`" in notes[0]
    assert "ON DELETE CASCADE ON UPDATE CASCADE" in notes[0]
    assert "with ON DELETE SET NULL:" in notes[1]
    for clauses in ("LOG ALL", "LOG(shop, crm)", "LOG(crm)"):
        (other,) = definitions(clauses)
        assert found.notes(other.scope) == ()


def test_what_is_not_known_of_a_source_stops_replicas(
    mariadb_server: PrivateServer, tmp_path: Path
) -> None:
    execute(mariadb_server, *SETUP)
    recording = recorded(mariadb_server, tmp_path, (), LATER)
    told = recording.incidents(recording.reports("LOG(shop)"))
    assert told == dict.fromkeys((0, 2, 3, 5), MAPPED)


def test_an_account_that_does_not_see_all_is_told(
    mariadb_server: PrivateServer, tmp_path: Path
) -> None:
    execute(
        mariadb_server,
        *SETUP,
        "CREATE OR REPLACE USER some@localhost",
        "CREATE OR REPLACE USER reader@localhost",
        "GRANT SELECT ON shop.* TO some@localhost",
        "GRANT SELECT ON *.* TO reader@localhost",
    )

    async def query(user: str, statement: str) -> Rows:
        with connect(mariadb_server, user=user) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return [
                [None if cell is None else str(cell) for cell in row] for row in cursor.fetchall()
            ]

    assert asyncio.run(source_links(partial(query, "reader"))) == asked(mariadb_server)
    found = asyncio.run(source_links(partial(query, "some")))
    assert not found.links.is_complete
    (scope,) = definitions("LOG(shop)")
    assert "does not see all tables" in found.notes(scope.scope)[-1]
    execute(mariadb_server, "DROP USER some@localhost, reader@localhost")


def test_what_is_known_of_mysql(mysql_server: PrivateServer, tmp_path: Path) -> None:
    execute(mysql_server, *SETUP)
    found = asked(mysql_server)
    assert found.are_logged
    assert {key.name for key in found.links.keys} == {"c_ibfk_1", "n_ibfk_1"}
    (scope,) = definitions("LOG(shop)")
    (note,) = found.notes(scope.scope)
    assert note.startswith("`shop`.`m1`: belongs to the MERGE table `crm`.`merged`")
    recording = recorded(mysql_server, tmp_path, (), LATER)
    told = recording.incidents(recording.reports("LOG(shop)", links=found.links))
    assert told == {5: MERGED}


EMPTY_SETUP = (
    *("DROP DATABASE IF EXISTS shop", "DROP DATABASE IF EXISTS crm"),
    *("CREATE DATABASE shop", "CREATE DATABASE crm"),
    "CREATE TABLE crm.q (id INT PRIMARY KEY, v INT)",
    "INSERT INTO crm.q VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6), (7, 7), (8, 8)",
)
_CHILD = "FOREIGN KEY (q) REFERENCES crm.q (id) ON DELETE CASCADE ON UPDATE CASCADE"
# The parent is outside; from its CREATE TABLE or TRUNCATE to its first row no child can change.
EMPTY_CASES = {
    f"CREATE TABLE shop.e (id INT PRIMARY KEY, q INT, {_CHILD})": None,
    "DELETE FROM crm.q WHERE id = 1": None,
    "UPDATE crm.q SET id = 20 WHERE id = 2": None,
    "DELETE FROM crm.q WHERE id = 20": None,
    "BEGIN; INSERT INTO shop.e VALUES (1, 3); DELETE FROM crm.q WHERE id = 3; COMMIT": CASCADED,
    "DELETE FROM crm.q WHERE id = 4": CASCADED,
    "TRUNCATE TABLE shop.e": None,
    "DELETE FROM crm.q WHERE id = 5": None,
    "INSERT INTO shop.e VALUES (2, 6); DELETE FROM crm.q WHERE id = 7": CASCADED,
    "ALTER TABLE shop.e DROP FOREIGN KEY e_ibfk_1": None,
    "DELETE FROM crm.q WHERE id = 6": None,
}


def _empty_children(server: PrivateServer, directory: Path) -> None:
    recording = recorded(server, directory, EMPTY_SETUP, tuple(EMPTY_CASES))
    report = recording.reports("LOG(shop)")
    told = {number: reason for number, reason in enumerate(EMPTY_CASES.values()) if reason}
    assert recording.incidents(report) == told
    assert report.counts["b1"].omissions["foreign key"] == 1


def test_empty_children_of_mariadb(mariadb_server: PrivateServer, tmp_path: Path) -> None:
    _empty_children(mariadb_server, tmp_path)


def test_empty_children_of_mysql_where_innodb_follows_keys(
    servers: ServerFactory, tmp_path: Path
) -> None:
    server = servers.start_mysql("mysql", "--innodb-native-foreign-keys=ON")
    _empty_children(server, tmp_path)
