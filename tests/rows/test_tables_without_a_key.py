"""A table without a key is read in one piece, however large: nobody is to wait for that."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from binlane.binlogs.seeds.spool import RangeWriter, SeedSpool, SpooledTable
from binlane.binlogs.seeds.spool_reading import ReadingLimits, read_tables
from binlane.client.rows.table_rows import RowBatch
from binlane.client.rows.waiting_statements import TableWantedError
from binlane.client.session import ServerSession
from binlane.client.settings import ServerUrl
from binlane.errors import StoreFullError
from binlane.live.provision.private_server import PrivateServer
from binlane.names import TableName
from tests.serve_process import wait_until
from tests.servers import ServerFactory, execute

_ROWS = 256
_WAITING = "SELECT 1 FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting for table%'"
_STATEMENTS = [
    ("mariadb", "ALTER TABLE shop.pages ADD COLUMN n INT"),
    ("mariadb", "LOCK TABLES shop.pages WRITE"),
    ("mysql", "ALTER TABLE shop.pages ADD COLUMN n INT"),
    # All tables of the server wait behind this one.
    ("mysql", "FLUSH TABLES WITH READ LOCK"),
]


def _source(flavor: str, servers: ServerFactory) -> PrivateServer:
    """A server with a table of 16 MB, which comes in several pieces."""
    source = servers.start("source") if flavor == "mariadb" else servers.start_mysql("source")
    execute(
        source,
        "CREATE DATABASE shop",
        "CREATE TABLE shop.pages (text MEDIUMTEXT)",
        *["INSERT INTO shop.pages VALUES (REPEAT('x', 65536))"],
        *["INSERT INTO shop.pages SELECT * FROM shop.pages"] * (_ROWS.bit_length() - 1),
    )
    return source


class _Writer(RangeWriter):
    """Does something once a piece of the table has come, and the next is not asked for yet."""

    def __init__(self, folder: Path, state: SpooledTable, do: Callable[[], None]) -> None:
        super().__init__(folder, state)
        self._do = do

    def add(self, batch: RowBatch) -> None:
        super().add(batch)
        self._do()


def _session(server: PrivateServer) -> ServerSession:
    return ServerSession(ServerUrl.parse(server.url), "")


@pytest.mark.parametrize(("flavor", "statement"), _STATEMENTS)
def test_a_statement_that_waits_for_the_table_gets_it(
    servers: ServerFactory, tmp_path: Path, flavor: str, statement: str
) -> None:
    source = _source(flavor, servers)
    client = threading.Thread(target=execute, args=(source, statement))

    def begin() -> None:
        if not client.ident:
            client.start()
            wait_until(lambda: bool(execute(source, _WAITING)))

    class Spool(SeedSpool):
        def writer(self, state: SpooledTable) -> RangeWriter:
            return _Writer(self.folder, state, begin)

    spool = Spool.create(tmp_path / "spool", [TableName("shop", "pages")])
    with _session(source) as session, pytest.raises(TableWantedError, match=r"shop\.pages was let"):
        read_tables(spool, session)
    client.join()
    assert not spool.is_read
    with _session(source) as session:
        read_tables(SeedSpool.open(spool.folder), session)
    assert SeedSpool.open(spool.folder).states[0].rows == _ROWS


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_one_that_is_too_large_is_told(servers: ServerFactory, tmp_path: Path, flavor: str) -> None:
    source = _source(flavor, servers)
    spool = SeedSpool.create(tmp_path / "spool", [TableName("shop", "pages")])
    limits = ReadingLimits(size_max_bytes=1 << 20)
    with _session(source) as session, pytest.raises(StoreFullError, match="rows are more than"):
        read_tables(spool, session, limits=limits)
