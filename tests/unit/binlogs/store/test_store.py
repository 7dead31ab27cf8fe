from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from binlane.binlogs.store.catalog import CATALOG_FILE, Catalog
from binlane.binlogs.store.database import SqliteDatabase
from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.store import Store
from binlane.errors import ConfigError, CorruptStoreError, StoreError, StoreLockedError
from binlane.positions import GtidPosition
from binlane.statements.scope.parser import parse_binlog_statement
from binlane.statements.scope.statements import CreateBinlog
from binlane.statements.scope.statements import create as binlog_definition
from binlane.statements.sql.servers import LoggingMode
from tests.groups import add, create, source_format, transaction

_HOLD = """
import sys
from pathlib import Path
from binlane.binlogs.store.store import Store
store = Store.open(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.read()
"""


def test_another_process_cannot_own_the_same_directory(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdin
        assert holder.stdout
        assert holder.stdout.readline() == b"open\n"
        with pytest.raises(StoreLockedError, match=f"process {holder.pid} owns"):
            Store.open(tmp_path)
        holder.kill()
    Store.open(tmp_path).close()


def test_the_same_process_cannot_either(tmp_path: Path) -> None:
    with Store.open(tmp_path), pytest.raises(StoreLockedError):
        Store.open(tmp_path)


def test_a_path_that_is_no_directory_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be used"):
        Store.open(tmp_path / "file")


@pytest.mark.parametrize(
    "settings, key",
    [
        ({"max_binlog_size_bytes": 4095}, "binlog.max_binlog_size"),
        ({"max_binlog_size_bytes": (1 << 30) + 1}, "binlog.max_binlog_size"),
        ({"sync_binlog": -1}, "binlog.sync_binlog"),
        ({"watermark_interval_s": -1}, "binlog.watermark_interval"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        StoreSettings(**settings)
    assert caught.value.key == key


@pytest.mark.parametrize("sync_binlog", [0, 1, 5])
def test_every_sync_setting_keeps_all_groups(tmp_path: Path, sync_binlog: int) -> None:
    settings = StoreSettings(sync_binlog=sync_binlog, watermark_interval_s=0)
    with Store.open(tmp_path, settings) as store:
        add(create(store), [transaction(n) for n in range(1, 12)])
    with Store.open(tmp_path, settings) as store:
        assert store.binlogs["orders"].position == GtidPosition.parse("0-1-11")


def test_a_catalog_of_another_version_is_refused(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    connection = sqlite3.connect(Catalog.path_in(tmp_path))
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match="version 99"):
        Store.open(tmp_path)


@pytest.mark.parametrize("mask", [0, 0o022, 0o077])
def test_nobody_else_reads_the_catalog_nor_its_journal(tmp_path: Path, mask: int) -> None:
    old = tmp_path / "old"
    old.mkdir()
    with Store.open(old):
        pass
    (old / CATALOG_FILE).chmod(0o644)  # as earlier versions left it
    before = os.umask(mask)
    try:
        for directory in (tmp_path / "new", old):
            with (
                Store.open(directory),
                closing(SqliteDatabase.open(directory / CATALOG_FILE)) as database,
            ):
                with database.transaction() as connection:
                    connection.execute("INSERT INTO variables VALUES ('a', 'b')")
                    files = [path for path in directory.iterdir() if path.is_file()]
                    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in files}
                assert f"{CATALOG_FILE}-journal" in modes
                assert {name: oct(mode & ~0o640) for name, mode in modes.items()} == dict.fromkeys(
                    modes, "0o0"
                )
    finally:
        os.umask(before)


def test_a_damaged_catalog_is_named(tmp_path: Path) -> None:
    Catalog.path_in(tmp_path).write_bytes(b"no database at all " * 100)
    with pytest.raises(CorruptStoreError, match="the catalog is damaged"):
        Store.open(tmp_path)


@pytest.mark.rule("001:binlog-format-option")
def test_the_settings_format_holds_until_another_is_said(tmp_path: Path) -> None:
    settings = StoreSettings(binlog_format=LoggingMode.MIXED)
    with Store.open(tmp_path, settings) as store:
        assert store.variables == {"binlog_format": "MIXED"}
        store.set_variables({"binlog_format": "STATEMENT", "binlog_row_image": "FULL"})
        assert store.variables == {"binlog_format": "STATEMENT", "binlog_row_image": "FULL"}
    with Store.open(tmp_path, settings) as store:
        assert store.variables["binlog_format"] == "STATEMENT"
        store.set_variables({"binlog_format": None, "binlog_row_image": None})
        assert store.variables == {"binlog_format": "MIXED"}
    with Store.open(tmp_path) as store:
        assert store.variables == {}


def test_global_values_of_variables_are_kept(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        assert store.variables == {}
        store.set_variables({"binlog_format": "ROW", "binlog_row_image": "FULL"})
        store.set_variables({"binlog_format": "MIXED", "binlog_row_image": None})
        assert store.variables == {"binlog_format": "MIXED"}
    with Store.open(tmp_path) as store:
        assert store.variables == {"binlog_format": "MIXED"}
        store.set_variables({"binlog_format": None})
        assert store.variables == {}


def test_the_scope_history_has_every_change(tmp_path: Path) -> None:
    begun = int(time.time())
    with Store.open(tmp_path) as store:
        add(create(store), [transaction(4)])
        store.drop_binlog("orders")
        history = store.history()
    rows = [(change.name, change.change, change.gtids) for change in history]
    assert rows == [("orders", "create", ""), ("orders", "drop", "0-1-4")]
    # When it was said, whatever time the source's last event has.
    assert all(begun <= change.changed <= time.time() for change in history)


@pytest.mark.parametrize("ignores_case", [False, True])
def test_a_scope_is_kept_as_it_is(tmp_path: Path, *, ignores_case: bool) -> None:
    statement = parse_binlog_statement("CREATE BINLOG 'b' LOG(Shop, crm.`T`), IGNORE(shop.`A,b`)")
    assert isinstance(statement, CreateBinlog)
    definition = binlog_definition(statement, 7, ignores_case=ignores_case)
    with Store.open(tmp_path) as store:
        store.create_binlog(
            definition,
            start=GtidPosition(),
            format_description=source_format(),
            server_id=1,
            timestamp=1,
        )
    with Store.open(tmp_path) as store:
        assert store.binlogs["b"].definition == definition
