"""Reading binlogs: binlane against mariadb-binlog and python-mysql-replication, on the same files.

Makes its logs on a private MariaDB, then runs each reader as a whole process in turn, several
rounds, and prints one JSON line a measurement: CPU seconds (user and system, of the process and its
children), and how many times more than the peer's binlane needs (`ratio`: below 1 is faster).

    ./run bench [--megabytes N] [--rounds N]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from pymysql import connect

from binlane.service.private_server import SOURCE_OPTIONS, PrivateServer

OLTP = "oltp"
BULK = "bulk"
_TABLES = {
    OLTP: "id INT UNSIGNED PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL",
    BULK: "id BIGINT UNSIGNED PRIMARY KEY, a INT, b DOUBLE, c DECIMAL(18,4), d DATETIME(6), "
    "e VARCHAR(100), f VARCHAR(100) CHARACTER SET latin1, g ENUM('x','y'), h DATE, i VARBINARY(40)",
}
_DECODE = """
import sys
from binlane.codec.columns import decode_rows
from binlane.codec.table_metadata import table_columns
from binlane.codec.types import Flavor
from binlane.grouping.table_maps import rows_with_tables
from binlane.grouping.walk import walk
from binlane.store.chunks import open_chunks
rows = 0
for path in sys.argv[1:]:
    for _, body, table in rows_with_tables(walk(open_chunks(path), file=path), file=path):
        for _ in decode_rows(body, table_columns(table, flavor=Flavor.MARIADB)):
            rows += 1
print(rows)
"""
_ARROW = """
import sys
import binlane
print(sum(batch.num_rows for batch in binlane.scan(sys.argv[1:])))
"""
_PEER = """
import sys
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent
host, port = sys.argv[1].split(":")
stream = BinLogStreamReader(
    connection_settings={"host": host, "port": int(port), "user": "root", "passwd": ""},
    server_id=4711, blocking=False, log_file=sys.argv[2], log_pos=4,
    only_events=[DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent],
)
rows = 0
for event in stream:
    rows += len(event.rows)
print(rows)
"""


def main() -> None:
    """Make the logs, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=20, help="of each log")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    machine = {"cpu": _cpu(), "cores": os.cpu_count(), "commit": commit}
    print(json.dumps({"machine": machine, "python": platform.python_version()}), flush=True)
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        with PrivateServer.start(work, name="source", options=SOURCE_OPTIONS) as server:
            for kind in (OLTP, BULK):
                file = _make_log(server, kind, options.megabytes << 20)
                _measure(server, server.data_directory / file, kind, options.rounds)


def _measure(server: PrivateServer, path: Path, kind: str, rounds: int) -> None:
    python = sys.executable
    size = path.stat().st_size
    official = ["mariadb-binlog", "--no-defaults", "--base64-output=decode-rows", "-vv", str(path)]
    peer = [python, "-c", _PEER, f"{server.host}:{server.port}", path.name]
    for work, ours, theirs in (
        ("cat -vv", [python, "-m", "binlane", "cat", "-vv", str(path)], official),
        ("decode rows", [python, "-c", _DECODE, str(path)], official),
        ("scan to Arrow", [python, "-c", _ARROW, str(path)], official),
        ("scan to Arrow against python-mysql-replication", [python, "-c", _ARROW, str(path)], peer),
    ):
        pairs = [(_cpu_seconds(ours), _cpu_seconds(theirs)) for _ in range(rounds)]
        ratios = [mine / other for mine, other in pairs]
        print(
            json.dumps(
                {
                    "work": work,
                    "log": kind,
                    "bytes": size,
                    "n": rounds,
                    "binlane_cpu_s": round(statistics.median(mine for mine, _ in pairs), 2),
                    "peer_cpu_s": round(statistics.median(other for _, other in pairs), 2),
                    "ratio": round(statistics.median(ratios), 2),
                    "ratio_min": round(min(ratios), 2),
                    "ratio_max": round(max(ratios), 2),
                }
            ),
            flush=True,
        )


def _cpu_seconds(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _make_log(server: PrivateServer, kind: str, size: int) -> str:
    """Write until the current binlog file has `size` bytes; its name."""
    fill: dict[str, Callable[[int], list[str]]] = {OLTP: _oltp, BULK: _bulk}
    with connect(host=server.host, port=server.port, user="root", autocommit=True) as session:
        cursor = session.cursor()
        cursor.execute("CREATE DATABASE IF NOT EXISTS bench CHARACTER SET utf8mb4")
        cursor.execute(f"CREATE TABLE bench.{kind} ({_TABLES[kind]})")
        cursor.execute("FLUSH BINARY LOGS")
        number = 0
        while True:
            for statement in fill[kind](number):
                cursor.execute(statement)
            number += 1
            if number % 50 == 0 or kind == BULK:
                cursor.execute("SHOW MASTER STATUS")
                file, position = cursor.fetchone()[:2]  # type: ignore[index]  # always one row
                if position >= size:
                    cursor.execute("FLUSH BINARY LOGS")
                    return str(file)


def _oltp(number: int) -> list[str]:
    """One transaction as sysbench's: two updates, a delete, an insert."""
    row = f"({number}, {number * 7 % 1000}, REPEAT('{number}-', 15), REPEAT('{number}', 8))"
    last = max(number - 5, 0)
    return [
        "BEGIN",
        f"INSERT INTO bench.oltp VALUES {row}",
        f"UPDATE bench.oltp SET k = k + 1 WHERE id = {last}",
        f"UPDATE bench.oltp SET c = REPEAT('{number}+', 12) WHERE id = {last}",
        f"DELETE FROM bench.oltp WHERE id = {number - 500}",
        "COMMIT",
    ]


def _bulk(number: int) -> list[str]:
    """2,000 wide rows at once."""
    first = number * 2000
    rows = ", ".join(
        f"({n}, {n % 977}, {n / 7}, {n / 3:.4f}, '2026-01-02 03:04:05.{n % 10**6:06d}', "
        f"'größer {n}', 'latin {n}', 'x', '2026-01-{n % 28 + 1:02d}', x'{n:016x}')"
        for n in range(first, first + 2000)
    )
    return [f"INSERT INTO bench.bulk VALUES {rows}"]


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


if __name__ == "__main__":
    main()
