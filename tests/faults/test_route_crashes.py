"""`route` on disks that fail at any operation: the next run makes what an undisturbed one makes."""

from __future__ import annotations

import errno
import gc
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from binlane.binlogs.route.job import route_files
from binlane.binlogs.route.route_request import RouteReport
from binlane.binlogs.store.settings import StoreSettings
from binlane.errors import StoreError
from tests.faulty_disk import Failure, FaultyDisk, Killed, no_room
from tests.routed_files import outputs, request, written

_SCOPES = ("LOG ALL", "LOG(shop.a)", "IGNORE(shop.a)")
_SAMPLE = 7
"""Every so many operations fail in the usual run."""


def run(paths: tuple[str, ...], out: Path, disk: FaultyDisk) -> RouteReport:
    settings = StoreSettings(max_binlog_size_bytes=4096)
    return route_files(request(paths, out, *_SCOPES, settings=settings, keep_bytes=3000), disk=disk)


def fails_everywhere(
    name: str, tmp_path: Path, error: Callable[[], BaseException], *, share: float, step: int
) -> int:
    """Let each operation fail once; how many runs that made."""
    paths = written(name, tmp_path / "in")
    run(paths, tmp_path / "whole", FaultyDisk())
    expected = outputs(tmp_path / "whole")
    for at in count(0, step):
        out = tmp_path / f"out{at}"
        disk = FaultyDisk(Failure(at=at, error=error, share=share, lasts=True))
        try:
            run(paths, out, disk)
        except (StoreError, Killed):
            gc.collect()  # the lock of a process that is gone
        else:
            assert len(disk.operations) <= at
            return at // step
        run(paths, out, FaultyDisk())
        assert outputs(out) == expected
    raise AssertionError("it never ends")


@pytest.mark.parametrize("name", ["md1011_txn", "my97_txn"])
@pytest.mark.parametrize("share", [0.0, 0.6])
def test_a_killed_run_is_gone_on_with(name: str, share: float, tmp_path: Path) -> None:
    assert fails_everywhere(name, tmp_path, Killed, share=share, step=_SAMPLE) > 10


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_failing_disk_loses_nothing(number: int, tmp_path: Path) -> None:
    error = no_room(number)
    assert fails_everywhere("md1011_txn", tmp_path, error, share=0.5, step=_SAMPLE) > 10


@pytest.mark.slow
@pytest.mark.parametrize("name", ["md1011_txn", "my97_txn", "my97_compressed"])
@pytest.mark.parametrize("share", [0.0, 0.6])
@pytest.mark.parametrize("error", [Killed, no_room(errno.ENOSPC), no_room(errno.EIO)])
def test_any_operation_may_fail(
    name: str, share: float, error: Callable[[], BaseException], tmp_path: Path
) -> None:
    assert fails_everywhere(name, tmp_path, error, share=share, step=1) > 30
