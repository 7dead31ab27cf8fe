"""What a session appends are bodies of the codec: they can be written and read again."""

from __future__ import annotations

from typing import Final

import pytest

from binlane.log.codec.buffer import Reader
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.types import Flavor
from binlane.statements.policy.server import Server
from binlane.statements.programs.host import LoggedVariable
from binlane.statements.session.log_events import (
    ChangedRows,
    LoggedEvent,
    MappedTable,
    PayloadStart,
    printed,
)
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog
from tests.build import format_description

PLACEHOLDERS: Final = (MappedTable, ChangedRows, LoggedVariable, PayloadStart)
SCRIPT: Final = (
    "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, n INT)",
    "SET foreign_key_checks = 0, unique_checks = 0",
    "SET binlog_format = STATEMENT",
    "SET @a = 1",
    "INSERT INTO t (n) VALUES (@a)",
    "INSERT INTO t (n) VALUES (rand() * last_insert_id())",
    "LOAD DATA LOCAL INFILE '/tmp/a b' REPLACE INTO TABLE t",
    "SET binlog_format = ROW",
    "BEGIN",
    "INSERT INTO t (n) VALUES (3)",
    "SAVEPOINT s",
    "UPDATE t SET n = 4",
    "COMMIT",
    "XA START 'a', 0x62, 7",
    "DELETE FROM t",
    "XA END 'a', 0x62, 7",
    "XA PREPARE 'a', 0x62, 7",
    "XA COMMIT 'a', 0x62, 7",
    "DROP TABLE t",
)


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_bodies_can_be_written(flavor: str) -> None:
    objects = SchemaCatalog(Flavor(flavor))
    objects.load("CREATE DATABASE d")
    server = Server.parse(flavor)
    session = Session(server=server, objects=objects, database="d")
    kinds = set()
    for sql in SCRIPT:
        for body in session.execute(sql).binlogs["binlog"].bodies:
            kinds.add(type(body).__name__)
            if isinstance(body, PLACEHOLDERS):
                continue
            version = "10.11.1-MariaDB-log" if flavor == "mariadb" else "9.7.0"
            format_ = format_description(server_version=version).format
            reader = Reader(body.encode(format_))
            again = type(body).decode(reader, format_)
            assert printed(again, server) == printed(body, server)
    expected = {
        *("QueryEvent", "IntvarEvent", "RandEvent", "XidEvent", "BeginLoadQueryEvent"),
        *("ExecuteLoadQueryEvent", "LoggedVariable", "MappedTable", "ChangedRows"),
        "XaPrepareEvent",
    }
    expected |= {"GtidEvent", "AnnotateRowsEvent"} if flavor == "mariadb" else set()
    assert kinds == expected


def test_options_of_the_session_are_in_its_status_variables() -> None:
    objects = SchemaCatalog(Flavor.MARIADB)
    objects.load("CREATE DATABASE d; CREATE TABLE d.t (n INT)")
    session = Session(server=Server.parse("mariadb"), objects=objects, database="d")
    session.execute("SET foreign_key_checks = 0")
    session.execute("SET sql_if_exists = 1")
    result = session.execute("TRUNCATE TABLE t").binlogs["binlog"]
    _, body = result.bodies
    assert isinstance(body, QueryEvent)
    assert body.query == b"TRUNCATE TABLE t"
    assert result.events[1] == LoggedEvent(
        "Query", "use `d`; set foreign_key_checks=0, @@sql_if_exists=1; TRUNCATE TABLE t"
    )
