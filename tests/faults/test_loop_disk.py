"""The routing loop on a disk that fails again and again under load, while everything else goes on.

Every kind of failure that `fault_runs` knows strikes, one after the other, in a process that lives
on: binlogs stop, and go on by themselves. At the end power is cut: only what is on the disk counts.
"""

from __future__ import annotations

import errno
import os
import random
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pymysql
import pytest

from binlane.binlogs.store.store import Store
from binlane.binlogs.store.verify import verify
from tests.faulty_disk import Failure, VolatileDisk, no_room
from tests.listening import ListeningPort, wait_until
from tests.live_load import Load
from tests.live_oracle import differences
from tests.servers import ServerFactory

pytestmark = pytest.mark.system

BINLOGS = {"all": "", "shop": "LOG(shop)", "rest": "IGNORE(crm)"}
SAMPLE = 25
ALL = 500
_OPERATIONS = ("", "", "write_at", "sync", "create", "replace", "sync_directory", "truncate")


def strike(disk: VolatileDisk, chance: random.Random) -> str:
    """Let the disk fail once, soon."""
    number = chance.choice((errno.ENOSPC, errno.EIO))
    operation = chance.choice(_OPERATIONS)
    share = chance.choice((0.0, 0.3, 0.7, 1.0))
    at = int(chance.expovariate(1 / 10))
    disk.arm(Failure(at=at, error=no_room(number), share=share, only=operation))
    return f"{os.strerror(number)} at {operation or 'any operation'}"


def run(servers: ServerFactory, tmp_path: Path, *, strikes: int, seed: int) -> Counter[str]:
    """Strike so often; gives what struck."""
    source = servers.start("source")
    data_dir = tmp_path / "data"
    Store.open(data_dir).close()
    disk, chance, struck = VolatileDisk(data_dir / "binlogs"), random.Random(seed), Counter[str]()
    load = Load(source, writers=2, seed=seed, pause_s=0.03)
    load.prepare()
    pause = threading.Event()
    with ListeningPort(source, data_dir, disk=disk, max_binlog_size_bytes=1 << 15) as port:
        port.execute(*(f"CREATE BINLOG '{name}' {scope}" for name, scope in BINLOGS.items()))
        with load:
            for number in range(strikes):
                what = strike(disk, chance)
                for _ in range(20):
                    if disk.has_failed or pause.wait(0.05):
                        break
                struck[what] += disk.has_failed
                if number % 5 == 0:
                    with suppress(pymysql.MySQLError):
                        port.execute(f"FLUSH BINARY LOGS '{chance.choice(list(BINLOGS))}'")
            disk.arm(None)
        for name in BINLOGS:
            wait_until(lambda: port.state(name) == "OPEN", what=f"{name} goes on")  # noqa: B023
            port.execute(f"SHOW MASTER STATUS '{name}'")
    disk.cut_power(share=0.0)
    Store.open(data_dir).close()
    assert [str(fault) for fault in verify([data_dir])] == []
    assert differences(source, data_dir, tmp_path / "oracle") == []
    return struck


def test_nothing_is_lost_doubled_or_damaged_in_a_sample(
    servers: ServerFactory, tmp_path: Path
) -> None:
    assert run(servers, tmp_path, strikes=SAMPLE, seed=5).total() > SAMPLE / 3


@pytest.mark.slow
def test_nothing_is_lost_doubled_or_damaged(servers: ServerFactory, tmp_path: Path) -> None:
    print(run(servers, tmp_path, strikes=ALL, seed=6))  # noqa: T201 for docs/reliability.md
