"""The number of processes that serve the port, by the cores that this one may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from binlane.live.loop.port_settings import PortSettings
from binlane.live.service import process
from binlane.live.service.process import worker_count


@pytest.mark.parametrize(
    ("cores", "quotas", "workers"),
    [
        (1, {}, 0),
        (2, {}, 1),
        (4, {}, 3),
        (64, {}, 4),
        (4, {"": "max 100000"}, 3),
        (4, {"": "200000 100000"}, 1),
        (4, {"a.slice": "50000 100000"}, 0),
        (8, {"a.slice/b.service": "max 100000", "a.slice": "300000 100000"}, 2),
        (4, {"a.slice": "no quota"}, 3),
    ],
)
def test_a_core_is_left_to_routing_and_the_others_serve(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cores: int,
    quotas: dict[str, str],
    workers: int,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    (tmp_path / "cgroup").write_text("1:cpu:/elsewhere\n0::/a.slice/b.service\n")
    monkeypatch.setattr(process, "_CONTROL_GROUP", tmp_path / "cgroup")
    monkeypatch.setattr(process, "_CONTROL_GROUPS", tmp_path)
    (tmp_path / "a.slice" / "b.service").mkdir(parents=True)
    for group, quota in quotas.items():
        (tmp_path / group / "cpu.max").write_text(quota)
    assert worker_count(PortSettings()) == workers
    assert worker_count(PortSettings(workers=7)) == 7


def test_a_machine_that_tells_no_quota_has_its_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    monkeypatch.setattr(process, "_CONTROL_GROUP", tmp_path / "cgroup")
    assert worker_count(PortSettings()) == 2
