"""Landing, by the embedded engine: what it costs and how fresh its tables are, as JSON lines.

`changes` is one task that writes change-table Parquet of a log; `land` the whole command with change
and current tables, from its start to its end; `nothing_new` the same command again. Figures are
medians of CPU seconds (user and system, all processes), since a busy machine stretches wall time.
`fresh` follows a server that writes some rows every tenth of a second and looks every second: how
old a change is when its file is written, and what a batch costs.

    python -m benchmarks.land [--megabytes N] [--rounds N] [--directory DIR] [LOG...]
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pymysql

from benchmarks.logs import served
from benchmarks.measuring import Figures, chosen_logs, options, run
from binlane.tables.landing.landing import Landing
from binlane.tables.landing.landing_settings import LandingSettings

LOGS = ("oltp", "bulk")
_FRESH_S = 20.0
_TASK = """
import json, resource, sys, tempfile, time
from binlane.tables.landing.tasks import land_range
from binlane.tables.landing.range_work import FormatName, Mode, RangeWork
from binlane.tables.columnar.table_schema import ReadOptions
from binlane.tables.ranges.planner import Planner

def landed(pieces, into):
    return [
        land_range(RangeWork(piece=piece, want=ReadOptions(has_statements=True), into=into, run_id="x",
                             modes=frozenset({Mode.CHANGES}), format=FormatName.DELTA))
        for piece in pieces
    ]

planner = Planner(sys.argv[1])
pieces = planner.ranges(planner.begin(), planner.end(), size_bytes=32 << 20)
with tempfile.TemporaryDirectory() as into:
    landed(pieces[:1], into)  # whatever is loaded at first use
    begin = time.process_time()
    results = landed(pieces, into)
    cpu_s = time.process_time() - begin
rows = sum(getattr(item, "images", 0) for result in results for item in result.items)
rss_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"rows": rows, "cpu_s": cpu_s, "rss_mb": rss_mb}))
"""


def main() -> None:
    """Measure the logs that are named, or all, and then freshness."""
    given = options(__doc__, LOGS).parse_args()
    for name, path in chosen_logs(given):
        for figures in measured(name, path, given.rounds):
            print(json.dumps(figures), flush=True)
    print(json.dumps(fresh(_FRESH_S)), flush=True)


def measured(name: str, path: Path, rounds: int) -> list[dict[str, Any]]:
    """The figures of one log."""
    tasks, whole, again = [], [], []
    report: dict[str, Any] = {}
    for _ in range(rounds):
        tasks.append(_task(path))
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "binlane", "land", str(path)]
            command += ["--into", f"{folder}/lake", "--report", f"{folder}/report.json"]
            whole.append(run(command))
            report = json.loads(Path(folder, "report.json").read_text())
            again.append(run(command))
    rows = report["rows"]
    common = {"log": name, "megabytes": path.stat().st_size >> 20, "rows": rows, "rounds": rounds}
    task_s = statistics.median(task["cpu_s"] for task in tasks)
    return [
        {
            "benchmark": "land changes",
            **common,
            "cpu_s": round(task_s, 3),
            "rows_per_cpu_s": round(rows / task_s),
            "rss_mb": round(max(task["rss_mb"] for task in tasks)),
            "load": os.getloadavg()[0],
        },
        {"benchmark": "land", **common, **_cost(whole, rows)},
        {"benchmark": "land nothing_new", **common, **_cost(again)},
    ]


def _task(path: Path) -> dict[str, Any]:
    with tempfile.NamedTemporaryFile("w+") as taken:
        script = f"import sys; sys.stdout = open({taken.name!r}, 'w')\n{_TASK}"
        run([sys.executable, "-c", script, str(path)])
        found: dict[str, Any] = json.loads(taken.read())
    return found


def _cost(runs: list[Figures], rows: int | None = None) -> dict[str, Any]:
    cpu_s = statistics.median(each.cpu_s for each in runs)
    found: dict[str, Any] = {"cpu_s": round(cpu_s, 3), "load": os.getloadavg()[0]}
    if rows is not None:
        found["rows_per_cpu_s"] = round(rows / cpu_s)
    return found


def fresh(seconds: float) -> dict[str, Any]:
    """How old changes are when they are landed, and what a small batch costs."""
    with served("oltp", 1) as (account, log), tempfile.TemporaryDirectory() as folder:
        stop = threading.Event()
        connection = pymysql.connect(host=account.host, port=account.port, user="root")
        with connection, connection.cursor() as cursor:
            cursor.execute(
                "CREATE TABLE sbtest.fresh (id INT PRIMARY KEY AUTO_INCREMENT, at DOUBLE)"
            )
            settings = LandingSettings(follow_s=1.0)
            with Landing(str(account.directory / log), folder, settings) as landing:
                follower = threading.Thread(target=landing.run)
                follower.start()
                while not landing.progress.caught_up:
                    time.sleep(0.1)
                until = time.monotonic() + seconds
                begin, batches = time.process_time(), landing.progress.batches
                while time.monotonic() < until:
                    cursor.execute("INSERT INTO sbtest.fresh (at) VALUES (%s)", (time.time(),))
                    connection.commit()
                    stop.wait(0.1)
                cpu_s = time.process_time() - begin
                batches = landing.progress.batches - batches
                landing.stop()
                follower.join()
        ages = sorted(_ages(Path(folder, "changes/sbtest/fresh")))
    return {
        "benchmark": "land fresh",
        "seconds": seconds,
        "changes": len(ages),
        "batches": batches,
        "p50_s": round(ages[len(ages) // 2], 2),
        "p99_s": round(ages[len(ages) * 99 // 100], 2),
        "cpu_ms_per_batch": round(1e3 * cpu_s / max(batches, 1), 1),
        "load": os.getloadavg()[0],
    }


def _ages(table: Path) -> list[float]:
    """Seconds from each change to the commit that first had it: files are joined later."""
    seen: set[float] = set()
    ages = []
    for commit in sorted((table / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        (info,) = (action["commitInfo"] for action in actions if "commitInfo" in action)
        for added in (action["add"] for action in actions if "add" in action):
            times = pq.read_table(table / added["path"], columns=["at"]).column("at")
            fresh = {each for each in times.to_pylist() if each is not None} - seen
            seen |= fresh
            ages += [info["timestamp"] / 1000 - each for each in fresh]
    return ages


if __name__ == "__main__":
    main()
