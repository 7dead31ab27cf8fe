"""A live binlog and what changes its tables from outside: asked of the source, told at definition."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from binlane.live.provision.private_server import PrivateServer
from binlane.log.codec.control import IncidentEvent
from binlane.log.codec.rows import TableMapEvent
from binlane.log.grouping.walk import walk
from tests.serve_process import ServeProcess, create_account
from tests.servers import ServerFactory, connect, end_xa, execute

_KEY = "CONSTRAINT of_p FOREIGN KEY (p) REFERENCES crm.p (id)"
TABLES = (
    *("CREATE DATABASE shop", "CREATE DATABASE crm"),
    "CREATE TABLE crm.p (id INT PRIMARY KEY, v INT)",
    f"CREATE TABLE shop.c (id INT PRIMARY KEY, p INT, {_KEY} ON DELETE CASCADE)",
    "INSERT INTO crm.p VALUES (1, 1), (2, 2), (3, 3)",
    "INSERT INTO shop.c VALUES (1, 1), (2, 2)",
)


@pytest.fixture
def source(servers: ServerFactory) -> PrivateServer:
    server = servers.start("source")
    create_account(server)
    execute(server, *TABLES)
    return server


@pytest.fixture
def serve(source: PrivateServer, tmp_path: Path) -> Iterator[ServeProcess]:
    with ServeProcess(tmp_path / "serve", source) as process:
        yield process


def incidents(serve: ServeProcess, name: str) -> list[bytes]:
    """The messages of the INCIDENT events of a binlog that is complete."""
    serve.execute(f"SHOW MASTER STATUS '{name}'")
    return [
        event.body.message
        for path in sorted((serve.directory / "data" / "binlogs" / name).glob(f"{name}.0*"))
        for event in walk([path.read_bytes()], file=path.name)
        if isinstance(event.body, IncidentEvent)
    ]


def test_cascades_from_outside_are_noted_and_told(
    source: PrivateServer, serve: ServeProcess
) -> None:
    with serve.connect() as session, session.cursor() as cursor:
        cursor.execute("CREATE BINLOG 'shop' LOG(shop)")
        assert cursor.warning_count == 1
    assert "foreign key of_p refers to `crm`.`p`" in serve.log
    serve.execute("CREATE BINLOG 'both' LOG(shop, crm)", "CREATE BINLOG 'everything'")
    execute(source, "UPDATE crm.p SET v = 5 WHERE id = 1", "INSERT INTO crm.p VALUES (4, 4)")
    assert incidents(serve, "shop") == []
    execute(source, "DELETE FROM crm.p WHERE id = 1")
    assert len(incidents(serve, "shop")) == 1
    serve.kill()
    serve.start()
    execute(source, "DELETE FROM crm.p WHERE id = 2")
    assert len(incidents(serve, "shop")) == 2
    serve.execute("ALTER BINLOG 'everything' LOG(shop)")
    execute(source, "DELETE FROM crm.p WHERE id = 3")
    assert len(incidents(serve, "everything")) == 1
    assert incidents(serve, "both") == []


def test_tables_come_in_with_their_rows_behind_a_restart(
    source: PrivateServer, serve: ServeProcess
) -> None:
    serve.execute("CREATE BINLOG 'shop' LOG(shop)")
    text = "(id INT PRIMARY KEY, n VARCHAR(9)) DEFAULT CHARSET=latin1"
    execute(source, *(f"CREATE TABLE crm.{name} {text}" for name in "xyz"))
    execute(source, "INSERT INTO crm.y VALUES (1, 'a')")
    serve.execute("SHOW MASTER STATUS 'shop'")
    serve.kill()
    serve.start()
    execute(source, "INSERT INTO crm.z VALUES (1, 'a')")
    execute(source, *(f"RENAME TABLE crm.{name} TO shop.{name}" for name in "xyz"))
    assert incidents(serve, "shop") == []
    named = [
        event.body.table
        for path in sorted((serve.directory / "data/binlogs/shop").glob("shop.0*"))
        for event in walk([path.read_bytes()], file=path.name)
        if isinstance(event.body, TableMapEvent)
    ]
    assert named == ["binlane_filling_1", "binlane_filling_1"], "of y and of z"


def test_an_xa_transaction_that_was_prepared_before(
    source: PrivateServer, serve: ServeProcess
) -> None:
    def prepare(xid: str, statement: str) -> None:
        with connect(source, autocommit=False) as session, session.cursor() as cursor:
            for each in (f"XA START '{xid}'", statement, f"XA END '{xid}'", f"XA PREPARE '{xid}'"):
                cursor.execute(each)

    serve.execute("CREATE BINLOG 'everything'")
    prepare("a", "INSERT INTO shop.c VALUES (10, NULL)")
    prepare("b", "INSERT INTO shop.c VALUES (11, NULL)")
    serve.execute("CREATE BINLOG 'shop' LOG(shop)", "ALTER BINLOG 'everything' LOG(shop)")
    prepare("c", "INSERT INTO crm.p VALUES (12, 1)")
    end_xa(source, "XA ROLLBACK 'b'", "XA COMMIT 'c'")
    assert incidents(serve, "shop") == []
    end_xa(source, "XA COMMIT 'a'")
    (told,) = incidents(serve, "shop")
    assert b"prepared before this binlog began" in told
    assert incidents(serve, "everything") == []
