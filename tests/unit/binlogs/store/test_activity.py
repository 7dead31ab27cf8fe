"""What the store keeps of a binlog beside its files: activity, memory, marks; and a second start."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from binlane.binlogs.routing.routing_memory import Memory, StoredObject, StoredObjectKind
from binlane.binlogs.store.catalog import BinlogActivity
from binlane.binlogs.store.disk import DiskFile, LocalDisk
from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.store import Store
from binlane.binlogs.store.stored_groups import StoreReader
from binlane.errors import StoreError
from binlane.names import TableName
from binlane.positions import GtidPosition
from tests.groups import create, sequences, stored, transaction

NEVER = StoreSettings(watermark_interval_s=3600)


class _File:
    def __init__(self, file: DiskFile, disk: _Disk) -> None:
        self.write_at, self.truncate, self.close = file.write_at, file.truncate, file.close
        self.mapped = file.mapped
        self._file, self._disk = file, disk

    def sync(self) -> None:
        if self._disk.is_failing:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._file.sync()


class _Disk(LocalDisk):
    """A disk that fails while it is told to."""

    is_failing = False

    def open(self, path: Path) -> DiskFile:  # type: ignore[override]  # a Disk all the same
        return _File(super().open(path), self)


def test_activity_and_reason_are_there_after_a_restart(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        create(store)
        assert store.activities() == {"orders": (BinlogActivity.OPEN, "")}
        store.set_activity("orders", BinlogActivity.STOPPED, "STOP BINLOG")
    with Store.open(tmp_path) as store:
        assert store.activities() == {"orders": (BinlogActivity.STOPPED, "STOP BINLOG")}


def test_what_is_remembered_is_on_disk_before_anything_follows(tmp_path: Path) -> None:
    view = StoredObject(StoredObjectKind.VIEW, TableName("shop", "v"))
    memory = Memory().with_left_out(view)
    store = Store.open(tmp_path, NEVER)
    binlog = create(store)
    binlog.append(transaction(1))
    binlog.remember(memory)
    binlog.advance(transaction(2).gtid)  # type: ignore[arg-type]  # it has one
    assert store.sync_each([binlog]) == {}
    binlog.append(transaction(3))
    store._release()  # as a process that dies: nothing is saved any more
    with Store.open(tmp_path, NEVER) as again:
        found = again.binlogs["orders"]
        assert (found.memory, str(found.position)) == (memory, "0-1-2")
        assert sequences(stored(found)) == [1]


def test_a_group_is_not_there_without_what_it_left_to_remember(tmp_path: Path) -> None:
    view = StoredObject(StoredObjectKind.VIEW, TableName("shop", "v"))
    store = Store.open(tmp_path, NEVER)
    binlog = create(store)
    binlog.append(transaction(1))
    binlog.remember(Memory().with_left_out(view))
    binlog.append(transaction(2))
    binlog.write()
    binlog.force()
    store._release()  # as a process that dies before it has saved the mark
    with Store.open(tmp_path, NEVER) as again:
        found = again.binlogs["orders"]
        assert (found.memory, str(found.position)) == (Memory(), "0-1-1")
        assert sequences(stored(found)) == [1]


def test_a_mark_that_is_saved_late_does_not_take_a_later_one_back(tmp_path: Path) -> None:
    with Store.open(tmp_path, NEVER) as store:
        binlog = create(store)
        binlog.append(transaction(1))
        assert store.sync_each([binlog]) == {}
        save_late = store.take_marks(identity="one")
        assert save_late is not None
        binlog.append(transaction(2))
        binlog.sync(force=True)
        save_late()
        assert str(StoreReader(tmp_path).watermark("orders")) == "0-1-2"
        assert store.source_identity == "one"


def test_a_binlog_whose_disk_failed_goes_on_once_it_is_opened_anew(tmp_path: Path) -> None:
    disk = _Disk()
    with Store.open(tmp_path, NEVER, disk=disk) as store:
        binlog = create(store)
        binlog.append(transaction(1))
        assert not store.sync_each([binlog])
        binlog.append(transaction(2))
        disk.is_failing = True
        faults = store.sync_each([binlog])
        assert "cannot be written" in str(faults["orders"])
        with pytest.raises(StoreError):
            store.reopen_binlog("orders")
        disk.is_failing = False
        with pytest.raises(StoreError):
            binlog.append(transaction(3))
        again = store.reopen_binlog("orders")
        assert store.binlogs["orders"] is again
        for number in (1, 2, 3):
            again.append(transaction(number))
        again.sync()
        assert sequences(stored(again)) == [1, 2, 3]
        assert again.position == GtidPosition.parse("0-1-3")
