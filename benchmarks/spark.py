"""What Spark spends on reading a log, as JSON lines: wall and CPU seconds of JVM and all its Pythons.

Every case reads the same row images into Spark's `noop` sink, in a session of its own on `--cores`
processors. All sessions warm up; then the cases take turns, `--rounds` times, so that what else the
machine does meets all alike, and medians are told. `parquet` is Spark's own scan of those images,
written by Spark; `typed` the source with the table's columns, `typed without GTID` without that
column, `changes` and `debezium` other shapes, `change log` images as JSON,
`python-mysql-replication` its rows from a private server through `createDataFrame`. `nothing new`
is a stream that starts again where it ended; its figure is that of one start in a running session.

`wall_ratio` and `cpu_ratio` are those of the first case divided by this one's, round by round, and
again the median. CPU time is that of the process tree, so that a busy machine changes it little.

    python -m benchmarks.spark [--megabytes N] [--rounds N] [--cores N] [--directory DIR] [CASE...]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

from pymysqlreplication import BinLogStreamReader  # type: ignore[import-untyped] # has no types
from pymysqlreplication.row_event import (  # type: ignore[import-untyped] # as above
    DeleteRowsEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
)
from pyspark.sql import DataFrame, SparkSession

from benchmarks.logs import DIRECTORY, Account, log, served
from binlane.tables.spark.spark_session import build_session

TABLE = "bench.bulk"
_TICKS = os.sysconf("SC_CLK_TCK")
_STAT_TIMES = slice(11, 15)  # user and system, also of children that ended
_MEGABYTES_FOREIGN = 5
_SERVERS = ("mariadbd", "mysqld")
FOREIGN = "python-mysql-replication"
_FRAMES: dict[str, dict[str, str]] = {
    "typed": {"table": TABLE},
    "typed without GTID": {
        "table": TABLE,
        "changeColumns": "_op,_ts,_file,_pos,_row,_txn_order,_server_id",
    },
    "changes": {"table": TABLE, "shape": "changes"},
    "debezium": {"table": TABLE, "shape": "debezium"},
    "change log": {},
}
CASES = ("parquet", *_FRAMES, "nothing new", FOREIGN)


def main() -> None:
    """Print one line a case."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", default=list(CASES), metavar="CASE")
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--directory", type=Path, default=DIRECTORY)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    path = log("bulk", megabytes=given.megabytes, directory=given.directory)
    assert path is not None, "it needs no server beside MariaDB"
    if given.here:
        answer(given.cases[0], path, given.cores)
        return
    with ExitStack() as stack:
        sessions = {case: stack.enter_context(_session(case, given)) for case in given.cases}
        rows = {case: _told(session) for case, session in sessions.items()}
        taken: dict[str, list[tuple[float, float]]] = {case: [] for case in sessions}
        for _ in range(given.rounds):
            for case, session in sessions.items():
                assert session.stdin is not None, "it is a pipe"
                session.stdin.write("again\n")
                session.stdin.flush()
                taken[case].append(_told(session))
    common = {"benchmark": "spark", "cores": given.cores, "rounds": given.rounds}
    common |= {"megabytes": round(path.stat().st_size / 1e6), "load": os.getloadavg()[0]}
    first = taken[given.cases[0]]
    for case, figures in taken.items():
        print(json.dumps({**common, "case": case, **_line(figures, first, rows[case])}), flush=True)


def _line(
    taken: list[tuple[float, float]], first: list[tuple[float, float]], rows: int
) -> dict[str, float]:
    """What is told of a case."""
    cpu_s = statistics.median(cpu for cpu, _ in taken)
    wall_s = statistics.median(wall for _, wall in taken)
    line: dict[str, float] = {"rows": rows, "cpu_s": round(cpu_s, 2), "wall_s": round(wall_s, 2)}
    for index, name in enumerate(("cpu_ratio", "wall_ratio")):
        ratios = (one[index] / each[index] for one, each in zip(first, taken, strict=True))
        line[name] = round(statistics.median(ratios), 2)
    if rows:
        line["rows_per_cpu_s"] = round(rows / cpu_s)
    return line


def _session(case: str, given: argparse.Namespace) -> subprocess.Popen[str]:
    """A process with a Spark of its own, so that no case lives from what another one left."""
    command = [sys.executable, "-m", "benchmarks.spark", case, "--here"]
    for name in ("megabytes", "cores", "directory"):
        command += [f"--{name}", str(getattr(given, name))]
    environment = {key: value for key, value in os.environ.items() if "BYTECODE" not in key}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, text=True)


def _told(session: subprocess.Popen[str]) -> Any:
    assert session.stdout is not None, "it is a pipe"
    return json.loads(session.stdout.readline())


def answer(case: str, path: Path, cores: int) -> None:
    """Run a case in this process, once to warm up and once for each line of standard input.

    Prints how many rows it has, then CPU and wall seconds of each run.
    """
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    with tempfile.TemporaryDirectory() as folder, ExitStack() as servers:
        spark = build_session(f"local[{cores}]", log_file=Path(folder) / "log")
        spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        rows, run = _prepared(spark, case, path, Path(folder), servers)
        run()
        print(rows, flush=True)
        for _ in sys.stdin:
            print(json.dumps(_timed(run)), flush=True)
        spark.stop()


def _prepared(
    spark: SparkSession, case: str, path: Path, folder: Path, servers: ExitStack
) -> tuple[int, Callable[[], object]]:
    """How many rows a case has, and what is measured."""
    if case == FOREIGN:
        account, file = servers.enter_context(served("bulk", _MEGABYTES_FOREIGN))
        rows = _foreign(spark, account, file).count()
        return rows, lambda: _noop(_foreign(spark, account, file))
    if case == "nothing new":
        return 0, lambda: _stream(spark, path, folder)
    if case == "parquet":
        target = str(folder / "rows.parquet")
        _frame(spark, path, _FRAMES["typed"]).write.parquet(target)
        frame = spark.read.parquet(target)
    else:
        frame = _frame(spark, path, _FRAMES[case])
    return frame.count(), lambda: _noop(frame)


def _frame(spark: SparkSession, path: Path, options: dict[str, str]) -> DataFrame:
    return spark.read.format("binlog").options(**options).load(str(path))


def _noop(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _stream(spark: SparkSession, path: Path, folder: Path) -> None:
    source = spark.readStream.format("binlog").options(**_FRAMES["typed"]).load(str(path))
    sink = source.writeStream.format("noop").option("checkpointLocation", str(folder / "at"))
    sink.trigger(availableNow=True).start().awaitTermination()


def _foreign(spark: SparkSession, account: Account, file: str) -> DataFrame:
    """All rows of a server's log, as python-mysql-replication decodes them."""
    stream = BinLogStreamReader(
        connection_settings={"host": account.host, "port": account.port, "user": "root"},
        server_id=4711,
        log_file=file,
        log_pos=4,
        only_events=[DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent],
    )
    rows = [
        (operation, *map(_plain, values.values()))
        for event in stream
        for row in event.rows
        for operation, values in row.items()
        if values
    ]
    stream.close()
    return spark.createDataFrame(rows, ["op", *(f"c{index}" for index in range(len(rows[0]) - 1))])


def _plain(value: object) -> object:
    """What Spark's inference takes for the same type in every row."""
    return str(value) if isinstance(value, set | dict | timedelta) else value


def _timed(run: Callable[[], object]) -> tuple[float, float]:
    """CPU and wall seconds of a run."""
    cpu, wall = _tree_cpu_s(), time.perf_counter()
    run()
    return _tree_cpu_s() - cpu, time.perf_counter() - wall


def _tree_cpu_s() -> float:
    """What this process and all below it have used."""
    return sum(map(_cpu_s, _tree(os.getpid())))


def _tree(root: int) -> Iterator[int]:
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    waiting = [root]
    while waiting:
        process = waiting.pop()
        yield process
        waiting += parents.get(process, [])


def _cpu_s(process: int) -> float:
    return sum(map(int, _stat(process)[_STAT_TIMES])) / _TICKS


def _stat(process: int) -> list[str]:
    """The fields behind the name; none of a process that ended, or of a server."""
    try:
        name, _, fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")
    except OSError:
        return []
    return [] if name.endswith(_SERVERS) else fields.split()


if __name__ == "__main__":
    main()
