"""A table without a key is read in one piece, however large: nobody is to wait for that."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
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
from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.tables.landing.range_work import Mode
from binlane.tables.landing.snapshot.chunk_work import (
    ChunkResult,
    ChunkTrouble,
    ChunkWork,
    snapshot_chunk,
)
from binlane.tables.landing.snapshot.table import snapshot_table
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


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_a_snapshot_for_tables_lets_go_as_well(
    servers: ServerFactory, tmp_path: Path, flavor: str
) -> None:
    """The statement has less time to wait than the table takes, whose rows come slowly."""
    source = _source(flavor, servers)
    name = TableName("shop", "pages")
    create = execute(source, f"SHOW CREATE TABLE {name}")[0][1]
    table = snapshot_table(name, create, flavor=Flavor(flavor))
    work = ChunkWork(
        table=replace(table, expressions=("IF(SLEEP(0.1) = 0, text, NULL)",)),
        number=0,
        low=None,
        high=None,
        server=source.url,
        place=None,
        taken=0,
        modes=frozenset({Mode.CURRENT}),
        into=str(tmp_path),
        snapshot_id="one",
    )
    results: list[ChunkResult | ChunkTrouble] = []
    reading = threading.Thread(target=lambda: results.append(snapshot_chunk(work)))
    reading.start()
    wait_until(lambda: "SLEEP" in str(execute(source, "SHOW FULL PROCESSLIST")))
    execute(source, "SET SESSION lock_wait_timeout = 15", f"ALTER TABLE {name} COMMENT = 'b'")
    reading.join()
    (trouble,) = results
    assert isinstance(trouble, ChunkTrouble)
    assert trouble.is_passing
    assert "was let go of, because a statement waits for it" in trouble.what
