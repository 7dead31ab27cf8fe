"""`route` in several processes, killed at random times: the next run makes what an undisturbed one makes."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import pytest

from binlane.binlogs.route.job import route_files
from binlane.binlogs.store.settings import StoreSettings
from binlane.live.provision.private_server import PrivateServer
from binlane.log.kernels.load import is_compiled
from binlane.tables.landing.engine import EmbeddedEngine
from tests.landed_select import Source
from tests.routed_files import outputs, request

TABLES = ("shop.a", "shop.b", "other.a")
FILES = 30
KILLS = 4
SCOPES = ("LOG ALL", "LOG(shop)", "IGNORE(shop.a)")
PROGRAM = """
import sys
from pathlib import Path
from tests.faults.test_route_kill import run
run(tuple(sys.argv[2:]), Path(sys.argv[1]), processes=2)
"""

pytestmark = pytest.mark.skipif(
    not is_compiled(("copying", "scan")), reason="the kernels are not compiled here"
)


def run(paths: tuple[str, ...], out: Path, *, processes: int = 1) -> None:
    """Route files; each batch in processes, however small it is."""
    asked = request(paths, out, *SCOPES, settings=StoreSettings(max_binlog_size_bytes=8192))
    with EmbeddedEngine(processes, small_bytes=0) as engine:
        report = route_files(asked, engine=engine if processes > 1 else None)
    assert report.fault is None


def small_files(server: PrivateServer, directory: Path) -> tuple[str, ...]:
    """A server's log of many small files, of transactions in two databases."""
    changed = (
        "INSERT INTO {}(text) SELECT REPEAT(RAND(), 20) FROM seq_1_to_8",
        "UPDATE {} SET text = REPEAT(RAND(), 20) WHERE id % 5 = 0",
        "DELETE FROM {} WHERE id % 3 = 0",
    )
    source = Source(server, "shop")
    try:
        source.run("SET GLOBAL max_binlog_size = 4096", "CREATE DATABASE other")
        for table in TABLES:
            source.run(f"CREATE TABLE {table}(id INT AUTO_INCREMENT PRIMARY KEY, text TEXT)")
        for _ in range(FILES // len(TABLES)):
            source.run(*[each.format(table) for each in changed for table in TABLES])
        files = source.binlogs()
        source.run("SET GLOBAL max_binlog_size = DEFAULT", "DROP DATABASE other")
    finally:
        source.close()
    directory.mkdir()
    for name, data in files:
        (directory / name).write_bytes(data)
    return tuple(str(directory / name) for name, _ in files)


def test_a_run_that_is_killed_is_gone_on_with(
    mariadb_server: PrivateServer, tmp_path: Path
) -> None:
    paths = small_files(mariadb_server, tmp_path / "log")
    run(paths, tmp_path / "one")
    expected, dice = outputs(tmp_path / "one"), random.Random(29)
    command = [sys.executable, "-c", PROGRAM]
    began = time.monotonic()
    subprocess.run([*command, str(tmp_path / "undisturbed"), *paths], check=True)
    whole_s = time.monotonic() - began
    kills = 0
    for number in count():
        out = tmp_path / f"out{number}"
        while kills < KILLS:
            with subprocess.Popen([*command, str(out), *paths]) as process:
                try:
                    assert process.wait(timeout=dice.uniform(0.2, 1.0) * whole_s) == 0
                    break
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGKILL)
                    kills += 1
        run(paths, out, processes=2)
        assert outputs(out) == expected
        if kills >= KILLS:
            return
