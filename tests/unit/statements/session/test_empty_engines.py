"""UPDATE and DELETE of a table whose engine keeps no rows."""

from __future__ import annotations

import pytest

from binlane.log.codec.types import Flavor
from binlane.statements.policy.server import Server
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog


def _session(flavor: str, logging_format: str) -> Session:
    objects = SchemaCatalog(Flavor(flavor))
    objects.load("CREATE DATABASE d; USE d; CREATE TABLE bh (a INT, b INT) ENGINE=BLACKHOLE;")
    session = Session(server=Server.parse(flavor), objects=objects, database="d")
    session.execute(f"SET SESSION binlog_format = '{logging_format}'")
    return session


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
@pytest.mark.parametrize(
    "sql",
    ["UPDATE bh SET a = 1", "DELETE FROM bh", "UPDATE bh SET b = 2 WHERE a = 1 ORDER BY a LIMIT 1"],
)
def test_there_are_no_rows_to_log(flavor: str, sql: str) -> None:
    """Measured on MariaDB 10.11.19 and MySQL 9.7.4."""
    (rows,) = _session(flavor, "ROW").execute(sql).binlogs.values()
    assert rows.events == ()
    (text,) = _session(flavor, "STATEMENT").execute(sql).binlogs.values()
    assert [event.type for event in text.events if sql in event.info] == ["Query"]


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_rows_that_are_put_in_are_logged(flavor: str) -> None:
    (rows,) = _session(flavor, "ROW").execute("INSERT INTO bh VALUES (1, 2)").binlogs.values()
    assert any(event.type.startswith("Write_rows") for event in rows.events)
