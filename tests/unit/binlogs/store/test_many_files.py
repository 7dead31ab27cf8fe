"""Closed files are not looked at until somebody needs them, and then not believed."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from binlane.binlogs.store.catalog import BinlogActivity, Catalog
from binlane.binlogs.store.live import LiveBinlog
from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.store import Store
from binlane.binlogs.store.stored_groups import StoreReader
from binlane.binlogs.store.verify import verify
from binlane.errors import CorruptStoreError
from binlane.live.dump.dump_sending import serve_dump
from binlane.live.dump.request import ReplicaRequest
from binlane.log.codec.packets.framing import PacketSplitter
from binlane.log.codec.packets.replies import ErrPacket
from binlane.positions import GtidPosition
from tests.groups import add, create, transaction
from tests.old_stores import (
    without_arrivals,
    without_cascades,
    without_compress,
    without_fills,
    without_incidents,
    without_row_image,
)

SMALL = StoreSettings(max_binlog_size_bytes=4096)
NON_BLOCK = 1
FILE = "orders.000002"


def written(data_dir: Path) -> Path:
    """A closed store of one binlog with several files; the directory of these."""
    with Store.open(data_dir, SMALL) as store:
        add(binlog := create(store), [transaction(n, size=900) for n in range(1, 23)])
        assert len(binlog.files()) == 6
        return binlog.files()[0].directory


def dumped(store: Store, state: str) -> str:
    """How a dump by GTID that does not wait ends: the text of its error."""

    async def dump() -> bytes:
        request = ReplicaRequest(connect_state=GtidPosition.parse(state), flags=NON_BLOCK)
        return await serve_dump(request, LiveBinlog(store.binlogs["orders"]), _drop)

    (packet,) = PacketSplitter().feed(asyncio.run(dump()))
    return ErrPacket.decode(packet.payload).message if packet.payload[0] == 0xFF else ""


async def _drop(packets: bytes | memoryview) -> None:
    del packets


def test_opening_reads_no_closed_file(tmp_path: Path) -> None:
    directory = written(tmp_path)
    for number in range(1, 6):
        (directory / f"orders.{number:06}").unlink()
        (directory / f"orders.{number:06}").mkdir()
    reader = StoreReader(tmp_path)
    with Store.open(tmp_path, SMALL) as store:
        assert [file.name for file in store.binlogs["orders"].files()] == [
            f"orders.{number:06}" for number in range(1, 7)
        ]
        assert reader.files("orders") == store.binlogs["orders"].files()


@pytest.mark.parametrize("added", [b"", b"x" * 5000])
def test_a_changed_file_is_told_when_it_is_read(tmp_path: Path, added: bytes) -> None:
    path = written(tmp_path) / FILE
    path.write_bytes(path.read_bytes()[:2000] + added)
    with Store.open(tmp_path, SMALL) as store:
        file = store.binlogs["orders"].files()[1]
        text = f"the file has {path.stat().st_size} bytes, and was closed with {file.size_bytes}"
        assert text in dumped(store, "0-1-5")
        assert not dumped(store, "0-1-18")
    assert any(verify([tmp_path]))


def test_a_file_in_the_place_of_another_is_told(tmp_path: Path) -> None:
    directory = written(tmp_path)
    path = directory / FILE
    path.write_bytes((directory / "orders.000003").read_bytes())
    with Store.open(tmp_path, SMALL) as store:
        assert "begins at 0-1-8; the store has noted 0-1-4" in dumped(store, "0-1-5")
    assert any(verify([tmp_path]))


def test_a_missing_file_is_told_when_it_is_needed(tmp_path: Path) -> None:
    path = written(tmp_path) / FILE
    with Store.open(tmp_path, SMALL) as store:
        path.unlink()
        assert "No such file" in dumped(store, "0-1-5")
    with pytest.raises(CorruptStoreError, match="the file is missing"):
        Store.open(tmp_path)
    assert any(verify([tmp_path]))


@pytest.mark.parametrize("version", [2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
def test_a_catalog_of_a_version_before_is_brought_up(tmp_path: Path, version: int) -> None:
    written(tmp_path)
    files = StoreReader(tmp_path).files("orders")
    connection = sqlite3.connect(Catalog.path_in(tmp_path))
    with connection:
        connection.execute("DELETE FROM binlog_files")
        older = {
            11: without_arrivals,
            10: without_cascades,
            9: without_fills,
            8: without_compress,
            7: without_row_image,
        }
        older.get(version, without_incidents)(connection)
        if version < 6:
            connection.execute("DROP TABLE binlog_grants")
            connection.execute("DROP TABLE accounts_known")
        if version < 5:
            connection.execute("DROP TABLE variables")
        if version < 4:
            connection.execute("DROP TABLE source_identity")
            for column in ("memory", "is_cut", "activity", "reason", "ignores_case"):
                connection.execute(f"ALTER TABLE binlogs DROP COLUMN {column}")
        if version < 3:
            connection.execute("DROP TABLE binlog_files")
            connection.execute("ALTER TABLE binlogs DROP COLUMN prepared")
        connection.execute(f"PRAGMA user_version = {version}")
    with Store.open(tmp_path, SMALL) as store:
        assert store.binlogs["orders"].files() == files
        assert store.activities() == {"orders": (BinlogActivity.OPEN, "")}
        assert store.source_identity == ""
        assert store.variables == {}
        assert store.grants == ()
    assert connection.execute("SELECT count(*) FROM binlog_files").fetchone() == (5,)
    connection.close()
