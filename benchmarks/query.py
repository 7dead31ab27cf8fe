"""SQL over a log of a day, beside a decode of the whole log and mariadb-binlog with grep.

The log has four tables of a shop, each changed in all of its 24 hours by inserts, updates and deletes
of some hundred rows. Each question is asked by processes of their own, and at an open connection;
figures are medians. `first` is the first question of all, for which the log is surveyed.

    python -m benchmarks.query [--megabytes N] [--rounds N] [--directory DIR]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pymysql
from pymysql.cursors import Cursor

import binlane
from benchmarks.logs import DIRECTORY, position
from binlane.live.provision.private_server import SOURCE_OPTIONS, PrivateServer

_TABLES = ("orders", "items", "customers", "visits")
_START = int(datetime(2026, 1, 31, tzinfo=UTC).timestamp())
_DAY_S = 86_400
_ROWS = 200
_STATEMENT_BYTES = 130_000
_OPTIONS = (
    *SOURCE_OPTIONS,
    "--max-binlog-size=1G",
    "--sync-binlog=0",
    "--max-allowed-packet=64M",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-log-file-size=256M",
    "--binlog-row-metadata=FULL",
)
_HOUR = "_timestamp >= '2026-01-31 12:00' AND _timestamp < '2026-01-31 13:00'"
QUESTIONS = {
    "one row's price, its whole day": (
        "SELECT _timestamp, _gtid, _op, _before.price, price FROM shop.orders WHERE id = 4242"
    ),
    "one table's hour, counted": f"SELECT count(*), sum(price) FROM shop.orders WHERE {_HOUR}",
    "one table's hour, price and its old value": (
        f"SELECT count(*) FROM shop.orders WHERE {_HOUR} AND price <> _before.price"
    ),
    "one table's day, counted by hour": (
        "SELECT date_trunc('hour', _timestamp) h, count(*) FROM shop.orders GROUP BY h ORDER BY h"
    ),
    "the hour's groups": f"SELECT count(*), sum(rows) FROM groups WHERE {_HOUR}",
}


def main() -> None:
    """Measure, one JSON line a question."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--directory", type=Path, default=DIRECTORY)
    given = parser.parse_args()
    path = day(given.megabytes, given.directory)
    path.read_bytes()  # in the page cache, for all of them
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        tell("first", asked("SELECT 1", path), log_mb=path.stat().st_size >> 20)
        connection = binlane.connect(path)
        for name, sql in QUESTIONS.items():
            whole = [asked(sql, path) for _ in range(given.rounds)]
            inside = []
            for _ in range(given.rounds):
                start = time.perf_counter(), time.process_time()
                connection.execute(sql).fetchall()
                inside.append((time.perf_counter() - start[0], time.process_time() - start[1]))
            tell(name, middle(whole))
            tell(f"{name}; in a session", middle(inside))
    for name, peer in peers(path).items():
        tell(name, costs(peer))


Costs = tuple[float, float]
"""Seconds of wall clock, and of the processors."""


def tell(name: str, found: Costs, **others: Any) -> None:
    """Print the figures of a question or peer."""
    figures = {"s": round(found[0], 2), "cpu_s": round(found[1], 2)}
    print(json.dumps({"benchmark": "query", "case": name, **figures, **others}), flush=True)


def middle(found: list[Costs]) -> Costs:
    """The median of each figure."""
    return statistics.median(wall for wall, _ in found), statistics.median(cpu for _, cpu in found)


def asked(sql: str, path: Path) -> Costs:
    """Costs of a process that asks."""
    return costs([sys.executable, "-m", "binlane", "query", sql, str(path)])


def costs(command: list[str]) -> Costs:
    """Costs of a command and its children."""
    start, used = time.perf_counter(), os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    cpu = after.children_user + after.children_system - used.children_user - used.children_system
    return time.perf_counter() - start, cpu


def peers(path: Path) -> dict[str, list[str]]:
    """Commands that find the same by other means."""
    decode = (
        "import binlane,sys; print(sum(b.num_rows for b in binlane.scan(sys.argv[1], "
        "tables='shop.orders')))"
    )
    found = {"binlane.scan of the table": [sys.executable, "-c", decode, str(path)]}
    if shutil.which("mariadb-binlog"):
        tool = "mariadb-binlog --no-defaults --base64-output=decode-rows -vv"
        grep = f"{tool} {path} | grep -c '@1=4242 ' || true"
        found["mariadb-binlog | grep"] = ["sh", "-c", grep]
    return found


def day(megabytes: int, directory: Path) -> Path:
    """The log, made if it is not there yet."""
    path = directory / f"day-{megabytes}.000001"
    if path.exists():
        return path
    directory.mkdir(parents=True, exist_ok=True)
    print(f"making {path}", file=sys.stderr, flush=True)
    with (
        tempfile.TemporaryDirectory() as work,
        PrivateServer.start(Path(work), name="source", options=list(_OPTIONS)) as server,
    ):
        with pymysql.connect(
            host=server.host, port=server.port, user="root", autocommit=True
        ) as session:
            name = _fill(session.cursor(), megabytes << 20)
        partial = path.with_suffix(".part")
        shutil.copyfile(server.data_directory / name, partial)
        partial.rename(path)
    return path


def _fill(cursor: Cursor, size: int) -> str:
    """Change the tables over a day until the log has so many bytes; return the file's name."""
    cursor.execute(f"SET timestamp = {_START}")
    cursor.execute("CREATE DATABASE shop")
    for table in _TABLES:
        cursor.execute(
            f"CREATE TABLE shop.{table} (id INT PRIMARY KEY, customer INT, price DECIMAL(10,2), "
            "state VARCHAR(20), note VARCHAR(200))"
        )
    source = random.Random(1)
    rounds = size // _STATEMENT_BYTES
    for number in range(rounds * 2):
        _, at = position(cursor)
        if at >= size:
            break
        cursor.execute(f"SET timestamp = {_START + min(at * _DAY_S // size, _DAY_S - 1)}")
        for table in _TABLES:
            first = number * _ROWS
            rows = ",".join(
                f"({first + n},{source.randrange(10_000)},{source.randrange(10**6) / 100},'new',"
                f"'{'abcdefgh' * source.randrange(1, 12)}')"
                for n in range(_ROWS)
            )
            cursor.execute(f"INSERT INTO shop.{table} VALUES {rows}")
            cursor.execute(
                f"UPDATE shop.{table} SET price = price + 1, state = 'paid' WHERE id >= {first}"
            )
            last = first - _ROWS // 2
            cursor.execute(f"DELETE FROM shop.{table} WHERE id BETWEEN {last - 50} AND {last}")
    return position(cursor)[0]


if __name__ == "__main__":
    main()
