"""Decoding binlogs to Arrow, beside the official tools and python-mysql-replication, as JSON lines.

Ours and the peer take turns; each figure is the median of their CPU seconds (user and system, with
those of children), since a busy machine stretches wall time. `warm` is a process that has decoded
before, `whole` one from its start to its end.

    python benchmarks/decode.py [--repeat N] [--directory DIR] [NAME...]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import binlane
from benchmarks.logs import DIRECTORY, MEGABYTES, log

_WHOLE = "import binlane,sys; print(sum(b.num_rows for b in binlane.scan(sys.argv[1])))"
_PEER_ROWS = 20_000
_PEER = f"""
import json, sys
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent
settings = json.loads(sys.argv[1])
images = 0
stream = BinLogStreamReader(
    connection_settings=settings, server_id=4711, log_file=sys.argv[2], log_pos=4,
    only_events=[DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent])
for event in stream:
    images += len(event.rows) * (2 if isinstance(event, UpdateRowsEvent) else 1)
    if images >= {_PEER_ROWS}:
        break
print(images)
"""


def cpu_seconds(work: Callable[[], object]) -> float:
    """What a piece of work takes here and in children."""
    before = _used()
    work()
    return _used() - before


def _used() -> float:
    own, children = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def official_tool(name: str) -> list[str]:
    """The command that prints a log's rows as text."""
    tool = "mariadb-binlog"
    if name == "payload":
        tool = os.environ.get("BINLANE_MYSQLBINLOG", "mysqlbinlog")
    return [*tool.split(), "--base64-output=decode-rows", "-vv"]


def measure(name: str, path: Path, repeat: int) -> dict[str, Any]:
    """Figures of one log."""
    print_text = [*official_tool(name), str(path)]
    whole = [sys.executable, "-c", _WHOLE, str(path)]
    rows = 0

    def decode() -> None:
        nonlocal rows
        rows = sum(batch.num_rows for batch in binlane.scan(path))

    def run(command: list[str]) -> Callable[[], object]:
        return lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True)

    decode()
    taken: dict[str, list[float]] = {"tool": [], "warm": [], "whole": []}
    for _ in range(repeat):
        taken["tool"].append(cpu_seconds(run(print_text)))
        taken["warm"].append(cpu_seconds(decode))
        taken["whole"].append(cpu_seconds(run(whole)))
    tool, warm, cold = (statistics.median(taken[key]) for key in ("tool", "warm", "whole"))
    size = path.stat().st_size
    return {
        "benchmark": "decode",
        "log": name,
        "bytes": size,
        "images": rows,
        "tool": print_text[0],
        "tool_cpu_s": round(tool, 3),
        "warm_cpu_s": round(warm, 3),
        "whole_cpu_s": round(cold, 3),
        "warm_ratio": round(tool / warm, 1),
        "whole_ratio": round(tool / cold, 1),
        "warm_images_per_s": round(rows / warm),
        "warm_mb_per_s": round(size / warm / 1e6),
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "load": os.getloadavg()[0],
    }


def measure_peer(settings: str, file: str) -> dict[str, Any]:
    """python-mysql-replication on the first rows of a log that a running server serves.

    Args:
        settings: JSON of its connection settings.
        file: Of the server's log.
    """
    images = 0

    def read() -> None:
        nonlocal images
        done = subprocess.run(
            [sys.executable, "-c", _PEER, settings, file],
            capture_output=True,
            text=True,
            check=True,
        )
        images = int(done.stdout)

    taken = cpu_seconds(read)
    return {
        "benchmark": "decode",
        "peer": "python-mysql-replication",
        "images": images,
        "cpu_s": round(taken, 3),
        "images_per_s": round(images / taken),
    }


def main() -> None:
    """Measure the logs that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(MEGABYTES))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--directory", type=Path, default=DIRECTORY)
    parser.add_argument("--peer", nargs=2, metavar=("SETTINGS", "FILE"))
    given = parser.parse_args()
    for name in given.names:
        path = log(name, directory=given.directory)
        if path is not None:
            print(json.dumps(measure(name, path, given.repeat)), flush=True)
    if given.peer:
        print(json.dumps(measure_peer(*given.peer)), flush=True)


if __name__ == "__main__":
    main()
