"""`route` on a disk that fails in every life but the last."""

from __future__ import annotations

import gc
from pathlib import Path
from random import Random

import pytest

from binlane.binlogs.route.job import route_files
from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.verify import verify
from tests.fault_runs import Fault, Writer, fault_runs
from tests.faulty_disk import FaultyDisk, VolatileDisk
from tests.routed_files import outputs, request, written

SAMPLE = range(24)
ALL = range(1_000)
_FIXTURES = ("md1011_txn", "my97_txn")
_SCOPES = ("LOG ALL", "LOG(shop.a)", "IGNORE(shop.a)")


class RouteWriter:
    """Routes the files of a fixture; a later life goes on where the one before ended."""

    def __init__(self, base: Path, chance: Random) -> None:
        self._paths = written(chance.choice(_FIXTURES), base / "in")
        self._scopes = _SCOPES[: chance.randint(1, 3)]
        self._settings = StoreSettings(max_binlog_size_bytes=chance.choice((4096, 1 << 20)))
        self._keep_bytes = chance.choice((1, 3000))
        self.out = base / "disk/out"
        self._route(base / "whole", FaultyDisk())
        self._expected = outputs(base / "whole")
        self.out.parent.mkdir()

    def live(self, disk: VolatileDisk) -> None:
        try:
            self._route(self.out, disk)
        finally:
            gc.collect()  # the lock of a process that is gone

    def forget(self) -> None:
        pass

    def check(self) -> None:
        assert outputs(self.out) == self._expected
        directories = [path for path in self.out.iterdir() if path.is_dir()]
        assert [str(fault) for fault in verify(directories)] == []

    def _route(self, out: Path, disk: FaultyDisk) -> None:
        asked = request(
            self._paths, out, *self._scopes, settings=self._settings, keep_bytes=self._keep_bytes
        )
        route_files(asked, disk=disk)


def new_writer(base: Path, chance: Random) -> tuple[Path, Writer]:
    writer = RouteWriter(base, chance)
    return writer.out.parent, writer


def test_nothing_is_lost_doubled_or_damaged_in_a_sample(tmp_path: Path) -> None:
    tally = fault_runs(SAMPLE, new_writer, tmp_path)
    assert tally.struck.total() > len(SAMPLE) / 2


@pytest.mark.slow
def test_nothing_is_lost_doubled_or_damaged(tmp_path: Path) -> None:
    tally = fault_runs(ALL, new_writer, tmp_path)
    print(tally)  # noqa: T201 the figures of docs/reliability.md
    assert all(tally.struck[fault] > 20 for fault in Fault)
