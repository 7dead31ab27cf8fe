"""What CREATE BINLOG … WITH ROWS reads a second, and what that costs the source's commits.

`python -m benchmarks.rows --rows N --flavor mariadb`: one table of 8 columns, about 120 bytes a row.
One client commits single-row updates meanwhile, as it did in the same time before.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

from binlane.live.provision.private_server import (
    MYSQL_SOURCE_OPTIONS,
    SOURCE_OPTIONS,
    PrivateServer,
)
from binlane.live.provision.server_programs import MARIADB
from tests.judged_port import set_up
from tests.serve_process import ServeProcess
from tests.servers import QUICK, connect, execute, mysql_program

_TABLE = (
    "CREATE TABLE shop.orders (id INT PRIMARY KEY, a BIGINT, b INT, name VARCHAR(60),"
    " kind CHAR(10), price DECIMAL(10,2), at DATETIME, note VARCHAR(80))"
)
_PAUSE_S = 0.002


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--flavor", choices=("mariadb", "mysql"), default="mariadb")
    parser.add_argument("--rows-per-s", type=int, default=0)
    arguments = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        _measure(folder, arguments, stack)


def _measure(folder: Path, arguments: argparse.Namespace, stack: ExitStack) -> None:
    is_mysql = arguments.flavor == "mysql"
    source = PrivateServer.start(
        folder,
        name="source",
        options=(
            *QUICK,
            *(MYSQL_SOURCE_OPTIONS if is_mysql else SOURCE_OPTIONS),
            "--innodb-buffer-pool-size=512M",
        ),
        program=mysql_program() if is_mysql else MARIADB,
    )
    stack.callback(source.kill)
    _fill(source, arguments.rows)
    extra = f"[rows]\nrows_per_s = {arguments.rows_per_s}\n"
    serve = ServeProcess(folder / "serve", source, extra=extra)
    set_up(serve)
    stack.enter_context(serve)
    before = _commits(source, lambda begun_s: time.monotonic() - begun_s > 10)

    def is_filled(begun_s: float) -> bool:
        del begun_s
        return bool(serve.execute_as_root("SHOW BINLOGS")[0][7] == "OPEN")

    cpu_s = _children_cpu_s(serve.process_id)
    serve.execute_as_root("CREATE BINLOG 'orders' LOG(shop.orders) WITH ROWS")
    begun_s = time.monotonic()
    during = _commits(source, is_filled)
    took_s = time.monotonic() - begun_s
    used_s = _children_cpu_s(serve.process_id) - cpu_s
    size = sum(f.stat().st_size for f in (serve.data_dir / "binlogs/orders").iterdir())
    print(
        f"{arguments.flavor}: {arguments.rows} rows in {took_s:.1f} s: "
        f"{arguments.rows / took_s:,.0f} rows/s by the clock, {arguments.rows / used_s:,.0f} rows a "
        f"CPU second of binlane ({used_s:.1f} s), {size / 1e6:.0f} MB"
    )
    print(f"commits/s before {before:,.0f}, meanwhile {during:,.0f}: {during / before:.0%}")
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")


def _fill(source: PrivateServer, rows: int) -> None:
    execute(source, "CREATE DATABASE shop", _TABLE)
    execute(source, "INSERT INTO shop.orders VALUES (0, 0, 0, 'n', 'k', 1, NOW(), 'x')")
    done = 1
    while done < rows:
        more = min(done, rows - done, 100_000)
        execute(
            source,
            f"INSERT INTO shop.orders SELECT id + {done}, a + {done}, id % 100,"
            f" CONCAT('name of order ', id + {done}), kind, price + 1, at, REPEAT('n', id % 60)"
            f" FROM shop.orders WHERE id < {more}",
        )
        done += more


def _commits(source: PrivateServer, is_over: object) -> float:
    """Commits a second of one client that waits a little between two, until something is so."""
    assert callable(is_over)
    has_ended, counts = threading.Event(), [0]

    def work() -> None:
        with connect(source) as session, session.cursor() as cursor:
            while not has_ended.is_set():
                cursor.execute(f"UPDATE shop.orders SET b = b + 1 WHERE id = {counts[0] % 1000}")
                counts[0] += 1
                time.sleep(_PAUSE_S)

    thread, begun_s = threading.Thread(target=work), time.monotonic()
    thread.start()
    while not is_over(begun_s):
        time.sleep(0.1)
    took_s = time.monotonic() - begun_s
    has_ended.set()
    thread.join()
    return counts[0] / took_s


def _children_cpu_s(process_id: int) -> float:
    """Processor time of a process and of those that it has waited for, in seconds."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
