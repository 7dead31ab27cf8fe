"""Workers of an earlier run do not write beside a later one."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.binlogs.route import writers_lock
from binlane.binlogs.route.writers_lock import owner_of, wait_for_writers, writing
from binlane.binlogs.store.disk import DirectoryLock
from binlane.errors import StoreLockedError


def test_workers_write_for_the_owner_only(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    with writing(tmp_path, owner_of(tmp_path)), writing(tmp_path, owner_of(tmp_path)):
        pass
    with pytest.raises(StoreLockedError, match="another run"), writing(tmp_path, "1\n"):
        raise AssertionError("nothing is written")
    lock.release()


def test_a_later_run_waits_for_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers_lock, "_WAIT_S", 0.1)
    lock = DirectoryLock(tmp_path)
    wait_for_writers(tmp_path)
    with writing(tmp_path, owner_of(tmp_path)), pytest.raises(StoreLockedError, match="still"):
        wait_for_writers(tmp_path)
    wait_for_writers(tmp_path)
    lock.release()
