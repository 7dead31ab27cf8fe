"""A store of several binlogs on a disk that fails in every life but the last."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from binlane.binlogs.store.binlog import Binlog
from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.store import Store
from binlane.binlogs.store.verify import verify
from binlane.errors import StoreError, StoreFullError
from binlane.positions import mariadb_position
from tests.fault_runs import Fault, Writer, fault_runs
from tests.faulty_disk import Killed, VolatileDisk
from tests.groups import (
    TIMESTAMP,
    create,
    kill,
    sequences,
    stored,
    sync_all,
    transaction,
)

LAST = 24
ATTEMPTS = 3
SAMPLE = range(40)
ALL = range(1_200)


class StoreWriter:
    """Gives all groups to all binlogs, in each life from the first group on."""

    def __init__(self, data_dir: Path, chance: Random) -> None:
        self.data_dir = data_dir
        self.settings = StoreSettings(
            max_binlog_size_bytes=chance.choice((4096, 1 << 20)),
            sync_binlog=chance.choice((1, 1, 0, 3)),
            watermark_interval_s=chance.choice((0, 3600)),
            max_binlog_total_size_bytes=chance.choice((0, 0, 9000)),
        )
        self.names = ["a", "b", "c"][: chance.randint(1, 3)]
        self.groups = [
            transaction(n, size=chance.choice((20, 400, 1500))) for n in range(1, LAST + 1)
        ]
        self.batches: list[range] = []
        while not self.batches or self.batches[-1].stop <= LAST:
            first = self.batches[-1].stop if self.batches else 1
            self.batches.append(range(first, min(first + chance.randint(1, 6), LAST + 1)))
        self.rotations = {chance.randint(1, LAST) for _ in range(2)}
        self.safe = dict.fromkeys(self.names, 0)

    def live(self, disk: VolatileDisk) -> None:
        store = None
        try:
            store = Store.open(self.data_dir, self.settings, disk=disk)
            for name, binlog in store.binlogs.items():
                self.see(name, binlog)
            assert not [n for n in self.names if self.safe[n] and n not in store.binlogs]
            self.write(store)
            store.close()
        except Killed:
            if store:
                kill(store)
            raise
        except StoreError:
            if store:
                self.close(store)
            raise

    def write(self, store: Store) -> None:
        for name in self.names:
            if name not in store.binlogs:
                try:
                    create(store, name)
                except StoreFullError:
                    create(store, name)
        for batch in self.batches:
            for attempt in range(ATTEMPTS):
                try:
                    self.give(store, batch)
                    break
                except StoreFullError:
                    if attempt == ATTEMPTS - 1:
                        raise
            for name in self.names:
                self.safe[name] = max(self.safe[name], batch.stop - 1)

    def give(self, store: Store, batch: range) -> None:
        for n in batch:
            for binlog in store.binlogs.values():
                binlog.append(self.groups[n - 1])
        sync_all(store)
        if self.rotations & set(batch):
            store.binlogs[self.names[0]].rotate(TIMESTAMP)

    def close(self, store: Store) -> None:
        """As `serve` does at the end of its process; the fault itself was told already."""
        try:
            store.close()
        except Killed:
            kill(store)
        except StoreError:
            pass

    def forget(self) -> None:
        if self.settings.sync_binlog != 1:
            self.safe = dict.fromkeys(self.names, 0)

    def see(self, name: str, binlog: Binlog) -> None:
        """A binlog holds a run without gaps, from the first group unless files were purged."""
        held = sequences(stored(binlog))
        done = mariadb_position(binlog.position).last(0)
        last = done.sequence if done else 0
        assert last >= self.safe[name], f"{name} lost {last + 1} to {self.safe[name]}"
        first = held[0] if held else last + 1
        assert held == list(range(first, last + 1)), f"{name} holds {held} up to {last}"
        assert first == 1 or self.settings.max_binlog_total_size_bytes

    def check(self) -> None:
        with Store.open(self.data_dir, self.settings) as store:
            assert list(store.binlogs) == self.names
            for name, binlog in store.binlogs.items():
                self.see(name, binlog)
                assert str(binlog.position) == f"0-1-{LAST}"
        assert [str(fault) for fault in verify([self.data_dir])] == []


def new_writer(data_dir: Path, chance: Random) -> tuple[Path, Writer]:
    Store.open(data_dir).close()
    return data_dir / "binlogs", StoreWriter(data_dir, chance)


def test_nothing_is_lost_doubled_or_damaged_in_a_sample(tmp_path: Path) -> None:
    tally = fault_runs(SAMPLE, new_writer, tmp_path)
    assert tally.runs == len(SAMPLE)
    assert tally.struck.total() > len(SAMPLE)


@pytest.mark.slow
def test_nothing_is_lost_doubled_or_damaged(tmp_path: Path) -> None:
    tally = fault_runs(ALL, new_writer, tmp_path)
    print(tally)  # noqa: T201 the figures of docs/reliability.md
    assert tally.runs == len(ALL)
    assert all(tally.struck[fault] > 50 for fault in Fault)
