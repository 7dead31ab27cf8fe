"""`binlane land` as a process: two at once, one that is paused, one that is interrupted."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.landed import delta_rows
from tests.shop_log import ShopLog, Table

ORDERS = Table("orders", ("id", "state"))
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts `binlane land` over the test's log; what still runs at the end is killed."""
    begun: list[subprocess.Popen[str]] = []

    def start_one(*options: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "binlane", "land", str(tmp_path / "log")]
        process = subprocess.Popen(
            [*command, "--into", str(tmp_path / "lake"), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        begun.append(process)
        return process

    yield start_one
    for process in begun:
        if process.poll() is None:
            process.kill()
        process.communicate()


def grow(folder: Path, log: ShopLog, number: int) -> None:
    """One more order in the log."""
    if not log.groups:
        log.statement("CREATE TABLE orders (id INT PRIMARY KEY, state VARCHAR(50))")
    log.insert(ORDERS, (number, "new"))
    path = folder / "log/shop.000001"
    path.parent.mkdir(exist_ok=True)
    path.with_suffix(".new").write_bytes(log.file()[1])
    path.with_suffix(".new").replace(path)


def landed(folder: Path) -> list[int]:
    """The orders in both tables, which must agree."""
    tables = [folder / "lake" / kind / "shop/orders" for kind in ("changes", "current")]
    if not all((table / "_delta_log").exists() for table in tables):
        return []
    changes, current = (
        sorted(row["id"] for row in delta_rows(table).to_pylist()) for table in tables
    )
    return changes if changes == current else []


def wait_for(folder: Path, orders: list[int]) -> None:
    until = time.monotonic() + 30
    while landed(folder) != orders:
        assert time.monotonic() < until, landed(folder)
        time.sleep(0.05)


def test_of_two_that_start_at_once_one_is_refused(start: Start, tmp_path: Path) -> None:
    log = ShopLog()
    grow(tmp_path, log, 1)
    both = [start("--follow", "--trigger", "100ms") for _ in range(2)]
    until = time.monotonic() + 30
    while not (ended := [each for each in both if each.poll() is not None]):
        assert time.monotonic() < until
        time.sleep(0.05)
    (refused,) = ended
    (holder,) = (each for each in both if each is not refused)
    _, said = refused.communicate()
    assert refused.returncode == 3
    assert said.startswith(f"binlane: process {holder.pid} of ")
    assert "hint: stop it first; if it is gone, wait 30 s or use --take-over" in said
    grow(tmp_path, log, 2)
    wait_for(tmp_path, [1, 2])
    holder.send_signal(signal.SIGTERM)
    shown, said = holder.communicate(timeout=30)
    assert (holder.returncode, said) == (0, "")
    assert "  shop.orders: 2 row images; current\n" in shown


def test_one_that_was_paused_and_overtaken_commits_nothing(start: Start, tmp_path: Path) -> None:
    log = ShopLog()
    grow(tmp_path, log, 1)
    paused = start("--follow", "--trigger", "50ms")
    wait_for(tmp_path, [1])
    paused.send_signal(signal.SIGSTOP)
    grow(tmp_path, log, 2)
    second = start("--take-over")
    assert second.communicate(timeout=60)[1] == ""
    assert landed(tmp_path) == [1, 2]
    grow(tmp_path, log, 3)
    paused.send_signal(signal.SIGCONT)
    _, said = paused.communicate(timeout=30)
    assert paused.returncode == 3
    assert re.match(r"binlane: process \d+ of .* has taken over; this driver has", said)
    assert landed(tmp_path) == [1, 2]
    assert start().communicate(timeout=60)[1] == ""
    assert landed(tmp_path) == [1, 2, 3]


def test_interrupted_it_says_so_in_one_line(start: Start, tmp_path: Path) -> None:
    log = ShopLog()
    grow(tmp_path, log, 1)
    report = tmp_path / "report.json"
    process = start("--follow", "--metrics", "127.0.0.1:0", "--report", str(report))
    assert process.stderr is not None
    where = process.stderr.readline().removeprefix("metrics: ").strip()
    wait_for(tmp_path, [1])
    until = time.monotonic() + 10
    line = 'binlane_land_rows_total{table="shop.orders"} 1'
    while line not in urllib.request.urlopen(where).read().decode():
        assert time.monotonic() < until
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    shown, said = process.communicate(timeout=30)
    assert (process.returncode, shown, said.strip()) == (130, "", "binlane: interrupted")
    assert json.loads(report.read_text())["error"] == "KeyboardInterrupt"
    assert os.listdir(tmp_path / "lake/_binlane/staging") == []  # noqa: PTH208 - shorter
