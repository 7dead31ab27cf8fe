"""Whose fault an error is: one table's, or the target's."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyarrow import fs

from binlane.errors import ConfigError, PeerError, StoreError, StoreFullError, StoreLockedError
from binlane.tables.landing.range_work import FormatName, Mode
from binlane.tables.landing.table_files import write_file
from binlane.tables.landing.tables.opening import open_store
from binlane.tables.landing.tables.store_settings import TableStoreSettings
from binlane.tables.landing.tables.table_faults import Faults, UnusableTableError, is_own
from tests.runs import TABLE, images, merge, run_of
from tests.unit.tables.landing.tables.test_store import (
    OF_ALL_FORMATS,
    ORDERS,
    inserts,
    opened,
    rows_of,
)

ROWS = pa.table({"id": [1]})


@pytest.fixture(autouse=True)
def _landing(tmp_path: Path) -> None:
    """Where landing keeps what is beside the tables."""
    (tmp_path / "_binlane").mkdir()


def caught(act: Callable[[], object]) -> Exception:
    with pytest.raises(Exception) as found:  # noqa: PT011 - whatever the library raises
        act()
    return found.value


def test_a_full_disk_is_no_tables_fault(tmp_path: Path) -> None:
    (tmp_path / "rows.parquet").symlink_to("/dev/full")

    def write() -> None:
        write_file(ROWS, str(tmp_path), "rows.parquet", [])

    error = caught(write)
    assert isinstance(error, StoreError)
    assert not is_own(error)
    assert not is_own(pickle.loads(pickle.dumps(error)))  # as it comes from a worker


@pytest.mark.parametrize(
    "error",
    [
        StoreError("cannot be written: No space left on device (os error 28)", path="t"),
        StoreError("cannot be written: Disk quota exceeded", path="t"),
        StoreError("cannot be written: [Errno 5] Input/output error", path="t"),
        StoreError("cannot be written: [Errno 30] Read-only file system", path="t"),
        StoreError("cannot be read: [Errno 2] No such file", path="/lake/_binlane/staging/x"),
        StoreFullError("full", path="t"),
        StoreLockedError("taken over", path="t"),
        ConfigError("no catalog", key="catalog"),
        PeerError("went away", peer="p", phase="dump"),
        ConnectionResetError(104, "Connection reset by peer"),
        TimeoutError("timed out"),
        MemoryError(),
        AssertionError("a fault of ours"),
    ],
    ids=str,
)
def test_what_all_tables_share(error: Exception) -> None:
    assert not is_own(error)


@pytest.mark.parametrize(
    "error",
    [
        StoreError("cannot be written: [Errno 13] Permission denied", path="t"),
        StoreError("cannot be read: Parquet magic bytes not found in footer", path="t"),
        ConfigError("its name is taken", key="tables"),
        PermissionError(13, "Permission denied"),
        NotADirectoryError(20, "Not a directory"),
        pa.ArrowInvalid("does not fit"),
        Exception("Schema error: Duplicate field name"),
    ],
    ids=str,
)
def test_what_one_table_has_alone(error: Exception) -> None:
    assert is_own(error)


def test_a_target_that_is_not_there_gives_no_table_up(tmp_path: Path) -> None:
    faults = Faults(str(tmp_path / "gone"), lambda: None, lambda: None)
    with pytest.raises(StoreError, match="the target cannot be used"), faults.of(TABLE):
        raise FileNotFoundError(2, "No such file or directory")


def test_who_has_lost_the_lease_gives_no_table_up(tmp_path: Path) -> None:
    def fence() -> None:
        raise StoreLockedError("taken over", path="t")

    faults = Faults(str(tmp_path), fence, lambda: None)
    with pytest.raises(StoreLockedError), faults.of(TABLE):
        raise FileNotFoundError(2, "No such file or directory")


def test_a_catalog_that_is_down_gives_no_table_up(tmp_path: Path) -> None:
    store = opened(tmp_path, FormatName.ICEBERG)
    merge(store, [run_of(tmp_path, images(ORDERS, inserts([(1, "a")]), 1), ["id"])], ["id"], 1)
    database = tmp_path / "_binlane/iceberg.db"
    database.write_bytes(b"no database" * 1000)
    error = caught(lambda: opened(tmp_path, FormatName.ICEBERG).applied(TABLE))
    assert not isinstance(error, UnusableTableError)


@pytest.mark.parametrize(
    "table_format", [FormatName.DELTA, FormatName.ICEBERG], ids=lambda each: each.value
)
def test_a_commit_of_somebody_else_in_between(table_format: FormatName, tmp_path: Path) -> None:
    store = opened(tmp_path, table_format)
    merge(store, [run_of(tmp_path, images(ORDERS, inserts([(1, "a")]), 1), ["id"])], ["id"], 1)
    if table_format is FormatName.DELTA:
        there = tmp_path / "current/shop/orders"
        rows = pa.table({"id": [7], "state": ["x"], "_gtid": [""], "_seq": [1]})
        write_deltalake(str(there), rows, mode="append")
    else:
        from binlane.tables.landing.tables.iceberg import open_catalog  # noqa: PLC0415 - takes a second

        catalog = open_catalog(str(tmp_path), {})
        catalog.load_table((TABLE.database, TABLE.table)).append(
            pa.table({"id": [7], "state": ["x"], "_gtid": [""], "_seq": [1]})
        )
        catalog.close()
    run = run_of(tmp_path, images(ORDERS, inserts([(2, "a")]), 2), ["id"])
    with pytest.raises(UnusableTableError):
        store.merge(TABLE, [run], ["id"], ORDERS, 2)


@pytest.mark.parametrize(
    "table_format", [FormatName.DELTA, FormatName.ICEBERG], ids=lambda each: each.value
)
def test_a_commit_of_a_driver_that_lost_the_lease_gives_no_table_up(
    table_format: FormatName, tmp_path: Path
) -> None:
    store = opened(tmp_path, table_format)
    merge(store, [run_of(tmp_path, images(ORDERS, inserts([(1, "a")]), 1), ["id"])], ["id"], 1)
    run = run_of(tmp_path, images(ORDERS, inserts([(2, "a")]), 2), ["id"])
    merge(opened(tmp_path, table_format), [run], ["id"], 2)
    again = run_of(tmp_path, images(ORDERS, inserts([(2, "a")]), 2), ["id"])
    with pytest.raises(StoreLockedError, match="another driver has committed"):
        store.merge(TABLE, [again], ["id"], ORDERS, 2)
    assert rows_of(tmp_path, table_format) == [(1, "a"), (2, "a")]


@OF_ALL_FORMATS
def test_what_failed_before_a_commit_can_be_done_again(
    table_format: FormatName, tmp_path: Path
) -> None:
    store = open_store(
        str(tmp_path), Mode.CURRENT, table_format, "app", TableStoreSettings(run_id="r")
    )
    merge(store, [run_of(tmp_path, images(ORDERS, inserts([(1, "a")]), 1), ["id"])], ["id"], 1)
    file = next(iter(store.there(TABLE).files))
    filesystem, folder = fs.FileSystem.from_uri(store.uri(TABLE))
    filesystem.move(f"{folder}/{file}", f"{folder}/_aside")
    run = run_of(tmp_path, images(ORDERS, [("update_after", (1, "b"))], 2), ["id"])
    with pytest.raises(UnusableTableError):
        store.merge(TABLE, [run], ["id"], ORDERS, 2)
    filesystem.move(f"{folder}/_aside", f"{folder}/{file}")
    store.merge(TABLE, [run], ["id"], ORDERS, 2)
    assert rows_of(tmp_path, table_format) == [(1, "b")]
