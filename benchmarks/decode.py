"""Decoding binlogs to Arrow, beside the official tools and python-mysql-replication, as JSON lines.

Ours and the peer take turns; each figure is the median of their CPU seconds (user and system), since
a busy machine stretches wall time. `warm` is a process that has just decoded the same log, `whole`
one from its start to its end. python-mysql-replication reads a small log of the same kind from a server;
`reference` is our decoder without kernels on that log.

    python -m benchmarks.decode [--megabytes N] [--rounds N] [--directory DIR] [LOG...]
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import binlane
from benchmarks.logs import served
from benchmarks.measuring import Figures, chosen_logs, official_tool, options, run

LOGS = ("oltp", "bulk", "bulk_compressed", "payload")
SERVED = ("oltp", "bulk")
_SERVED_MEGABYTES = 12
_WHOLE = "import binlane,sys; print(sum(b.num_rows for b in binlane.scan(sys.argv[1])))"
_REFERENCE = """
import sys
from binlane.tables.columnar.batches import batches
from binlane.binlogs.store.stored_groups import read_groups
print(sum(batch.num_rows for batch in batches(read_groups([sys.argv[1]]))))
"""
_PEER = """
import sys
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent
settings = {"host": sys.argv[1], "port": int(sys.argv[2]), "user": "root", "passwd": ""}
stream = BinLogStreamReader(
    connection_settings=settings, server_id=4711, log_file=sys.argv[3], log_pos=4,
    only_events=[DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent])
images = 0
for event in stream:
    images += len(event.rows) * (2 if isinstance(event, UpdateRowsEvent) else 1)
print(images)
"""


def main() -> None:
    """Measure the logs that are named, or all."""
    given = options(__doc__, LOGS).parse_args()
    warm: dict[str, float] = {}
    for name, path in chosen_logs(given):
        figures = measure(name, path, given.rounds)
        warm[name] = figures["warm_images_per_s"]
        print(json.dumps(figures), flush=True)
    for name in SERVED:
        if name in warm:
            print(json.dumps(measure_peer(name, warm[name], given.rounds)), flush=True)


def measure(name: str, path: Path, rounds: int) -> dict[str, Any]:
    """Figures of one log beside the official tool."""
    print_text = [*official_tool(name), str(path)]
    whole = [sys.executable, "-c", _WHOLE, str(path)]
    images = decoded(path)
    tools, wholes, warms = [], [], []
    for _ in range(rounds):
        tools.append(run(print_text))
        decoded(path)  # warm means warm: the other process has emptied the processor's caches
        start = time.process_time()
        decoded(path)
        warms.append(time.process_time() - start)
        wholes.append(run(whole))
    tool, cold, warm = median(tools), median(wholes), statistics.median(warms)
    size = path.stat().st_size
    return {
        "benchmark": "decode",
        "log": name,
        "bytes": size,
        "images": images,
        "tool": print_text[0],
        "tool_cpu_s": round(tool, 3),
        "warm_cpu_s": round(warm, 3),
        "whole_cpu_s": round(cold, 3),
        "warm_ratio": round(tool / warm, 1),
        "whole_ratio": round(tool / cold, 1),
        "warm_images_per_s": round(images / warm),
        "warm_mb_per_s": round(size / warm / 1e6),
        "rss_mb": max(figures.rss_mb for figures in wholes),
        "load": os.getloadavg()[0],
    }


def decoded(path: Path) -> int:
    """Row images of a log."""
    return sum(batch.num_rows for batch in binlane.scan(path))


def median(taken: list[Figures]) -> float:
    """Of CPU time."""
    return statistics.median(figures.cpu_s for figures in taken)


def measure_peer(name: str, warm_images_per_s: float, rounds: int) -> dict[str, Any]:
    """python-mysql-replication and our reference decoder on a small log of a running server.

    Args:
        name: What the server writes.
        warm_images_per_s: What our kernels do on the large log of the same kind.
        rounds: Of which the figures are medians.
    """
    with served(name, _SERVED_MEGABYTES) as (account, file):
        peer = [sys.executable, "-c", _PEER, account.host, str(account.port), file]
        reference = [sys.executable, "-c", _REFERENCE, str(account.directory / file)]
        counts = [_printed(command) for command in (peer, reference)]
        turns = [(run(peer), run(reference)) for _ in range(rounds)]
    theirs, ours = (median(list(taken)) for taken in zip(*turns, strict=True))
    peer_rate, reference_rate = counts[0] / theirs, counts[1] / ours
    return {
        "benchmark": "decode",
        "log": name,
        "peer": "python-mysql-replication",
        "images": counts[0],
        "is_equal": counts[0] == counts[1],
        "peer_images_per_s": round(peer_rate),
        "reference_images_per_s": round(reference_rate),
        "warm_ratio": round(warm_images_per_s / peer_rate),
        "reference_ratio": round(reference_rate / peer_rate, 1),
        "load": os.getloadavg()[0],
    }


def _printed(command: list[str]) -> int:
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    main()
