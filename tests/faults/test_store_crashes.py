"""A store whose process or machine dies at any single operation on disk."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.store import Store
from binlane.binlogs.store.verify import verify
from binlane.errors import StoreError
from tests.faulty_disk import Failure, FaultyDisk, Killed, VolatileDisk, no_room
from tests.groups import add, create, kill, sequences, stored, transaction

GROUPS = [transaction(n, size=900) for n in range(1, 11)]
BATCHES = [GROUPS[:1], GROUPS[1:3], GROUPS[3:4], GROUPS[4:8], GROUPS[8:]]
ALL = [n + 1 for n in range(len(GROUPS))]
TINY_FILES = StoreSettings(max_binlog_size_bytes=4096, watermark_interval_s=0)
RARE_MARKS = StoreSettings(max_binlog_size_bytes=4096, watermark_interval_s=3600)
UNSYNCED = StoreSettings(max_binlog_size_bytes=4096, sync_binlog=0, watermark_interval_s=3600)
MARKED = StoreSettings(max_binlog_size_bytes=4096, sync_binlog=0, watermark_interval_s=0)


def write(store: Store, safe: list[int]) -> None:
    """Make the binlog if need be and give it all groups in batches; note how far it is safe."""
    binlog = store.binlogs.get("orders") or create(store)
    for batch in BATCHES:
        for group in batch:
            binlog.append(group)
        binlog.sync()
        gtid = batch[-1].gtid
        assert gtid
        safe.append(gtid.sequence)
    binlog.rotate(1_700_000_000)


def run(
    data_dir: Path, settings: StoreSettings, disk: FaultyDisk, work: Callable[[Store], object]
) -> bool:
    """Open a store, work and close it on a disk that ends the process; whether it never did."""
    store = None
    try:
        store = Store.open(data_dir, settings, disk=disk)
        work(store)
        store.close()
    except Killed:
        if store:
            kill(store)
        return False
    return True


def contents(data_dir: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (data_dir / "binlogs/orders").iterdir()}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    data_dir = tmp_path_factory.mktemp("undisturbed")
    with Store.open(data_dir, TINY_FILES) as store:
        write(store, [])
        assert len(store.binlogs["orders"].files()) == 4
    return contents(data_dir)


def check_after_crash(data_dir: Path, settings: StoreSettings, safe: int) -> bool:
    """The binlog is a prefix that holds all that was safe; says whether it had become one.

    Afterwards it is given everything once more and must hold each group once.
    """
    with Store.open(data_dir, settings) as store:
        existed = "orders" in store.binlogs
        assert existed or not safe
        held = sequences(stored(store.binlogs["orders"])) if existed else []
        assert held == ALL[: len(held)]
        assert len(held) >= safe
        write(store, [])
        assert sequences(stored(store.binlogs["orders"])) == ALL
    assert not list(verify([data_dir]))
    return existed


# Every other operation, and in the long form those between them too.
halves = pytest.mark.parametrize("first", [0, pytest.param(1, marks=pytest.mark.slow)])


@halves
@pytest.mark.parametrize("settings", [TINY_FILES, RARE_MARKS])
@pytest.mark.parametrize("share", [0.0, 0.6])
def test_kill_at_any_operation_loses_and_doubles_nothing(
    tmp_path: Path,
    settings: StoreSettings,
    share: float,
    first: int,
    undisturbed: dict[str, bytes],
) -> None:
    for at in count(first, 2):
        data_dir = tmp_path / str(at)
        disk = FaultyDisk(Failure(at=at, error=Killed, share=share, lasts=True))
        safe = [0]
        if run(data_dir, settings, disk, partial(write, safe=safe)):
            break
        check_after_crash(data_dir, settings, safe[-1])
        files = contents(data_dir)
        # The forced rotation at the end may have happened before the crash, and then once more.
        assert {name: files[name] for name in sorted(files)[:3]} == {
            name: undisturbed[name] for name in sorted(undisturbed)[:3]
        }
    assert at > 40


@halves
@pytest.mark.parametrize("settings", [TINY_FILES, RARE_MARKS, UNSYNCED, MARKED])
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_power_cut_at_any_operation_loses_nothing_that_was_synced(
    tmp_path: Path, settings: StoreSettings, share: float, first: int
) -> None:
    for at in count(first, 2):
        data_dir = tmp_path / str(at)
        with Store.open(data_dir, settings) as store:
            create(store)
        failure = Failure(at=at, error=Killed, share=1.0, lasts=True)
        disk = VolatileDisk(data_dir / "binlogs/orders", failure)
        safe = [0]
        if run(data_dir, settings, disk, partial(write, safe=safe)):
            break
        disk.cut_power(share=share)
        assert check_after_crash(data_dir, settings, safe[-1] if settings.sync_binlog else 0)
    assert at > 25


def purge_two_files(store: Store) -> None:
    binlog = store.binlogs["orders"]
    binlog.purge(binlog.files()[2].name)


def test_kill_at_any_operation_of_a_purge(tmp_path: Path) -> None:
    for at in count():
        data_dir = tmp_path / str(at)
        with Store.open(data_dir, TINY_FILES) as store:
            write(store, [])
        disk = FaultyDisk(Failure(at=at, error=Killed, lasts=True))
        if run(data_dir, TINY_FILES, disk, purge_two_files):
            break
        with Store.open(data_dir) as store:
            held = sequences(stored(store.binlogs["orders"]))
            assert held in (ALL, ALL[8:])
        assert not list(verify([data_dir]))
    assert at > 5


def test_kill_at_any_operation_of_a_drop(tmp_path: Path) -> None:
    for at in count():
        data_dir = tmp_path / str(at)
        with Store.open(data_dir, TINY_FILES) as store:
            add(create(store), GROUPS)
            add(create(store, "kept"), GROUPS)
        disk = FaultyDisk(Failure(at=at, error=Killed, lasts=True))
        if run(data_dir, TINY_FILES, disk, lambda store: store.drop_binlog("orders")):
            break
        with Store.open(data_dir) as store:
            assert list(store.binlogs) in (["kept"], ["kept", "orders"])
            assert sequences(stored(store.binlogs["kept"])) == ALL
        assert not list(verify([data_dir]))
    assert at > 5


def test_what_a_dead_process_wrote_is_forced_before_a_mark_vouches_for_it(tmp_path: Path) -> None:
    with Store.open(tmp_path, TINY_FILES) as store:
        create(store)
    failure = Failure(at=0, error=Killed, lasts=True, only="sync")
    disk = VolatileDisk(tmp_path / "binlogs")
    store = Store.open(tmp_path, TINY_FILES, disk=disk)
    disk.arm(failure)
    with pytest.raises(Killed):
        add(store.binlogs["orders"], GROUPS[:1])
    kill(store)
    disk.arm(None)
    store = Store.open(tmp_path, TINY_FILES, disk=disk)
    store.binlogs["orders"].sync(force=True)
    kill(store)
    disk.cut_power(share=0.0)
    with Store.open(tmp_path, TINY_FILES) as store:
        assert sequences(stored(store.binlogs["orders"])) == [1]
    assert not list(verify([tmp_path]))


@pytest.mark.parametrize(
    "settings, number",
    [
        *((settings, errno.EIO) for settings in (TINY_FILES, UNSYNCED, MARKED)),
        (TINY_FILES, errno.ENOSPC),
        *(
            pytest.param(settings, errno.ENOSPC, marks=pytest.mark.slow)
            for settings in (UNSYNCED, MARKED)
        ),
    ],
)
def test_pages_that_a_failing_fsync_lost_are_written_again(
    tmp_path: Path, settings: StoreSettings, number: int
) -> None:
    for at in count():
        data_dir = tmp_path / str(at)
        with Store.open(data_dir, settings) as store:
            create(store)
        disk = VolatileDisk(data_dir / "binlogs")
        store = Store.open(data_dir, settings, disk=disk)
        disk.arm(Failure(at=at, error=no_room(number), only="sync"))
        safe = [0]
        with suppress(StoreError):
            write(store, safe)
        with suppress(StoreError):
            store.close()
        if not disk.has_failed:
            break
        with Store.open(data_dir, settings, disk=disk) as store:
            held = sequences(stored(store.binlogs["orders"]))
            assert held == ALL[: len(held)]
            assert len(held) >= (safe[-1] if settings.sync_binlog else 0)
            write(store, [])
        disk.cut_power(share=0.0)
        with Store.open(data_dir, settings) as store:
            assert sequences(stored(store.binlogs["orders"])) == ALL
        assert not list(verify([data_dir]))
    assert at > 2


def test_a_kill_at_any_operation_and_then_a_power_cut(tmp_path: Path) -> None:
    for at in count():
        data_dir = tmp_path / str(at)
        Store.open(data_dir, TINY_FILES).close()
        disk = VolatileDisk(data_dir / "binlogs", Failure(at=at, error=Killed, lasts=True))
        is_whole = run(data_dir, TINY_FILES, disk, partial(write, safe=[]))
        disk.arm(None)
        store = Store.open(data_dir, TINY_FILES, disk=disk)
        write(store, [])
        kill(store)
        disk.cut_power(share=0.0)
        with Store.open(data_dir, TINY_FILES) as store:
            assert sequences(stored(store.binlogs["orders"])) == ALL
        assert not list(verify([data_dir]))
        if is_whole:
            break
    assert at > 40
