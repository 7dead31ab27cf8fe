"""`binlane verify` beside a `serve` that writes, rotates, purges, makes and drops binlogs."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from binlane.binlogs.store.verify import CheckCounts, verify
from tests.serve_process import ServeProcess, create_account
from tests.servers import ServerFactory, connect, execute

SMALL_FILES = "[binlog]\nmax_binlog_size = 16384\nmax_binlog_total_size = 65536\n"
RUN_S = 4.0


def test_a_store_that_is_written_has_no_faults(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers.start("source")
    create_account(source)
    execute(
        source,
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT)",
    )
    has_ended = threading.Event()

    def write() -> None:
        with connect(source) as session, session.cursor() as cursor:
            while not has_ended.is_set():
                cursor.execute("INSERT INTO shop.t (v) VALUES (REPEAT('x', 500)), ('y')")

    def define() -> None:
        with serve.connect() as session, session.cursor() as cursor:
            while not has_ended.is_set():
                cursor.execute("CREATE BINLOG 'brief'")
                cursor.execute("FLUSH BINARY LOGS 'brief'")
                cursor.execute("DROP BINLOG 'brief'")

    with ServeProcess(tmp_path / "serve", source, extra=SMALL_FILES) as serve:
        serve.execute("CREATE BINLOG 'all'", "CREATE BINLOG 'shop' LOG(shop)")
        tally, found = CheckCounts(), []
        with ExitStack() as stack:
            for work in (write, write, define):
                stack.callback(_start(work).join)
            stack.callback(has_ended.set)
            deadline_s = time.monotonic() + RUN_S
            while time.monotonic() < deadline_s:
                found += list(verify([serve.data_dir], tally=tally))
            process = subprocess.run(
                [sys.executable, "-m", "binlane", "verify", str(serve.data_dir)],
                capture_output=True,
                text=True,
                check=False,
            )
        assert [str(fault) for fault in found] == []
        assert (process.returncode, process.stdout) == (0, "")
        assert tally.files > 20
        # What was purged meanwhile shows that there was something to stumble over.
        assert "purged" in serve.log
        serve.wait_until_complete("shop")
        (serve.data_dir / "binlogs" / "shop" / "stray").touch()
        assert [fault.what for fault in verify([serve.data_dir])] == [
            "the index does not name this file"
        ]


def _start(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread
