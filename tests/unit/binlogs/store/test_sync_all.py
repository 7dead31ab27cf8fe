"""One batch, one fsync a binlog, all at once; what fails in one binlog is no loss to the others."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from binlane.binlogs.store.disk import DiskFile, LocalDisk
from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.store import Store
from binlane.binlogs.store.stored_groups import StoreReader
from binlane.binlogs.store.verify import verify
from binlane.errors import StoreError, StoreFullError
from binlane.positions import GtidPosition
from tests.groups import (
    add,
    create,
    sequences,
    stored,
    sync_all,
    transaction,
)

NAMES = ("a", "b", "c", "d")
SETTINGS = StoreSettings(watermark_interval_s=3600)
TIMEOUT_S = 30


class _File:
    """A file whose sync is told to a disk."""

    def __init__(self, file: DiskFile, path: Path, disk: _Disk) -> None:
        self.write_at, self.truncate, self.close = file.write_at, file.truncate, file.close
        self.mapped = file.mapped
        self._file, self._path, self._disk = file, path, disk

    def sync(self) -> None:
        self._disk.before_sync(self._path)
        self._file.sync()


class _Disk(LocalDisk):
    """A disk on which syncs of files meet, or fail."""

    def __init__(self) -> None:
        self.meeting: threading.Barrier | None = None
        self.failing: dict[str, int] = {}
        self.syncs: list[str] = []

    def open(self, path: Path) -> DiskFile:  # type: ignore[override]  # a Disk all the same
        return _File(super().open(path), path, self)

    def before_sync(self, path: Path) -> None:
        self.syncs.append(path.parent.name)
        if self.meeting:
            self.meeting.wait(TIMEOUT_S)
        if number := self.failing.get(path.parent.name):
            raise OSError(number, os.strerror(number))


def batch(store: Store, first: int) -> None:
    for binlog in store.binlogs.values():
        for n in range(first, first + 5):
            binlog.append(transaction(n))


def test_one_sync_for_each_binlog_and_all_at_the_same_time(tmp_path: Path) -> None:
    disk = _Disk()
    with Store.open(tmp_path, SETTINGS, disk=disk) as store:
        for name in NAMES:
            create(store, name)
        sync_all(store)
        disk.syncs.clear()
        batch(store, 1)
        disk.meeting = threading.Barrier(len(NAMES))
        sync_all(store)
        disk.meeting = None
        assert sorted(disk.syncs) == list(NAMES)
        for binlog in store.binlogs.values():
            assert sequences(stored(binlog)) == [1, 2, 3, 4, 5]
        sync_all(store)
        assert len(disk.syncs) == len(NAMES)


def test_what_fails_in_one_binlog_does_not_stop_the_others(tmp_path: Path) -> None:
    disk = _Disk()
    store = Store.open(tmp_path, SETTINGS, disk=disk)
    for name in NAMES:
        create(store, name)
    batch(store, 1)
    disk.failing = {"b": errno.EIO}
    with pytest.raises(StoreError, match="binlog b cannot be written") as caught:
        sync_all(store)
    assert not isinstance(caught.value, StoreFullError)
    disk.failing = {}
    for name, binlog in store.binlogs.items():
        assert binlog.position == GtidPosition.parse("" if name == "b" else "0-1-5")
    store.close()
    with Store.open(tmp_path, SETTINGS) as store:
        batch(store, 1)
        sync_all(store)
        for name in NAMES:
            assert sequences(stored(store.binlogs[name])) == [1, 2, 3, 4, 5]
    assert not list(verify([tmp_path]))


@pytest.mark.parametrize("force", [False, True])
def test_marks_are_saved_from_many_threads(tmp_path: Path, *, force: bool) -> None:
    settings = StoreSettings(watermark_interval_s=0)
    names = [f"log{number:02}" for number in range(40)]
    with Store.open(tmp_path, settings) as store:
        for name in names:
            create(store, name)
        batch(store, 1)
        sync_all(store, force=force)
        assert {str(StoreReader(tmp_path).watermark(name)) for name in names} == {"0-1-5"}


def test_a_store_of_one_binlog_needs_no_threads(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        binlog = create(store)
        add(binlog, [transaction(1)])
        binlog.append(transaction(2))
        before = threading.active_count()
        sync_all(store)
        assert threading.active_count() == before
        assert binlog.position == GtidPosition.parse("0-1-2")
