"""Any sequence of operations on a binlog, against a list of numbers."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from binlane.binlogs.store.binlog import Binlog
from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.store import Store
from binlane.binlogs.store.stored_groups import StoreReader
from binlane.binlogs.store.verify import verify
from binlane.positions import Gtid, mariadb_position
from tests.groups import TIMESTAMP, create, kill, sequences, stored, transaction


class BinlogMachine(RuleBasedStateMachine):
    """A binlog holds what was appended and published, in order, once."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.data_dir = Path(self.directory.name)
        self.published: list[int] = []
        self.appended: list[int] = []
        self.last = 0

    @initialize(sync_binlog=st.integers(0, 3), interval=st.sampled_from([0.0, 3600.0]))
    def open(self, sync_binlog: int, interval: float) -> None:
        self.settings = StoreSettings(
            max_binlog_size_bytes=4096, sync_binlog=sync_binlog, watermark_interval_s=interval
        )
        self.store = Store.open(self.data_dir, self.settings)
        create(self.store)

    @property
    def binlog(self) -> Binlog:
        return self.store.binlogs["orders"]

    def _publish(self) -> None:
        self.published += self.appended
        self.appended = []

    @rule(size=st.integers(0, 3000), gap=st.integers(1, 3))
    def append(self, size: int, gap: int) -> None:
        files = len(self.binlog.files())
        self.binlog.append(transaction(self.last + gap, size=size))
        if len(self.binlog.files()) > files:
            self._publish()
        self.last += gap
        self.appended.append(self.last)

    @precondition(lambda self: self.last > 0)
    @rule(data=st.data())
    def append_again(self, data: st.DataObject) -> None:
        self.binlog.append(transaction(data.draw(st.integers(1, self.last))))

    @rule(gap=st.integers(1, 3))
    def advance(self, gap: int) -> None:
        self.last += gap
        self.binlog.advance(Gtid(0, 1, self.last))

    @rule(force=st.booleans())
    def sync(self, force: bool) -> None:  # noqa: FBT001 drawn by Hypothesis
        self.binlog.sync(force=force)
        self._publish()

    @rule()
    def rotate(self) -> None:
        self.binlog.rotate(TIMESTAMP)
        self._publish()

    @rule()
    def close_and_open(self) -> None:
        self.store.close()
        self._publish()
        self.store = Store.open(self.data_dir, self.settings)

    @rule()
    def kill_and_open(self) -> None:
        kill(self.store)
        self.store = Store.open(self.data_dir, self.settings)
        self.appended = []
        position = mariadb_position(self.binlog.position).last(0)
        self.last = position.sequence if position else 0

    @invariant()
    def holds_what_was_published(self) -> None:
        if not hasattr(self, "store"):
            return
        assert StoreReader(self.data_dir).files("orders") == self.binlog.files()
        assert sequences(stored(self.binlog)) == self.published

    def teardown(self) -> None:
        self.store.close()
        assert not list(verify([self.data_dir]))
        self.directory.cleanup()


TestBinlogMachine = BinlogMachine.TestCase
TestBinlogMachine.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
