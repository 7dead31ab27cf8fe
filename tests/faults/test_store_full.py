"""A store on a disk that has no room, or breaks, at any single operation."""

from __future__ import annotations

import errno
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.store import Store
from binlane.binlogs.store.stored_groups import StoreReader
from binlane.binlogs.store.verify import verify
from binlane.errors import StoreError, StoreFullError
from tests.faulty_disk import Failure, FaultyDisk, no_room
from tests.groups import add, create, sequences, stored, transaction

SETTINGS = StoreSettings(max_binlog_size_bytes=4096, watermark_interval_s=3600)
GROUPS = [transaction(n, size=900) for n in range(1, 11)]
BATCHES = [GROUPS[:1], GROUPS[1:3], GROUPS[3:8], GROUPS[8:]]
ALL = [n + 1 for n in range(len(GROUPS))]


def contents(data_dir: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (data_dir / "binlogs/orders").iterdir()}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    data_dir = tmp_path_factory.mktemp("undisturbed")
    with Store.open(data_dir, SETTINGS) as store:
        create(store)
        add(store.binlogs["orders"], GROUPS)
    return contents(data_dir)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_after_room_is_made_the_same_groups_can_be_added_again(
    tmp_path: Path, share: float, undisturbed: dict[str, bytes]
) -> None:
    refusals = 0
    for at in count(3):
        data_dir = tmp_path / str(at)
        Store.open(data_dir, SETTINGS).close()
        disk = FaultyDisk(Failure(at=at, error=no_room(errno.ENOSPC), share=share))
        store = Store.open(data_dir, SETTINGS, disk=disk)
        try:
            create(store)
        except StoreFullError:
            assert not store.binlogs
            create(store)
        for batch in BATCHES:
            binlog = store.binlogs["orders"]
            before = binlog.published
            try:
                for group in batch:
                    binlog.append(group)
                binlog.sync()
            except StoreFullError:
                refusals += 1
                assert binlog.position.includes(before.position)
                assert StoreReader(data_dir).files("orders") == binlog.files()
            except StoreError:
                # The index may or may not name the new file: only opening the store tells.
                with pytest.raises(StoreError, match="cannot be written"):
                    binlog.append(batch[0])
                store.close()
                store = Store.open(data_dir, SETTINGS, disk=disk)
            add(store.binlogs["orders"], batch)
        assert sequences(stored(store.binlogs["orders"])) == ALL
        try:
            store.close()
        except StoreError:
            Store.open(data_dir, SETTINGS).close()
        assert not list(verify([data_dir]))
        assert contents(data_dir) == undisturbed
        if len(disk.operations) <= at:
            break
    assert refusals > 10


@pytest.mark.parametrize("operation", ["write_at", "sync"])
def test_a_broken_disk_closes_a_binlog_to_writing(tmp_path: Path, operation: str) -> None:
    probe = FaultyDisk()
    with Store.open(tmp_path / "probe", SETTINGS, disk=probe) as store:
        binlog = create(store)
        ready = len(probe.operations)
        add(binlog, GROUPS[:1])
    at = probe.operations.index(operation, ready)
    disk = FaultyDisk(Failure(at=at, error=no_room(errno.EIO)))
    store = Store.open(tmp_path / "data", SETTINGS, disk=disk)
    binlog = create(store)
    binlog.append(GROUPS[0])
    with pytest.raises(StoreError, match="Input/output error") as caught:
        binlog.sync()
    assert not isinstance(caught.value, StoreFullError)
    for attempt in (partial(binlog.append, GROUPS[0]), binlog.sync, partial(binlog.rotate, 1)):
        with pytest.raises(StoreError, match="cannot be written"):
            attempt()
    store.close()
    with Store.open(tmp_path / "data", SETTINGS) as store:
        add(store.binlogs["orders"], GROUPS)
        assert sequences(stored(store.binlogs["orders"])) == ALL
