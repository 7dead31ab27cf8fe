"""What a comparison of a binlog with its source costs, as JSON lines.

A private MariaDB gets an orders-like table of `--rows` rows and some 60 bytes a row, beside a
`binlane serve` with one binlog of it. The first round follows the whole binlog and reads the table;
the second reads the table alone, the third follows `--commits` small transactions before it. CPU seconds are those of the comparing process.

With `--beside` sysbench writes `--tables` tables of 1,000 rows directly at the source, in turns with
rounds one after the other and without any: transactions a second, CPU time of the source for each,
and what the rounds took. `--before` names the `binlane` of another checkout to compare with.

    python -m benchmarks.proof [--rows N] [--commits N]
    python -m benchmarks.proof --beside [--tables N] [--seconds N] [--rounds N] [--before PROGRAM]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measuring import cpu_of_threads_s
from binlane.live.provision.private_server import SOURCE_OPTIONS, PrivateServer
from tests.serve_process import ADMIN, ServeProcess, create_account
from tests.servers import QUICK, execute

_TABLE = (
    "CREATE TABLE shop.orders (id INT PRIMARY KEY AUTO_INCREMENT, customer VARCHAR(60),"
    " total DECIMAL(12,2), placed DATETIME, state INT)"
)
_FILL = (
    "INSERT INTO shop.orders (customer, total, placed, state) SELECT CONCAT('customer ', seq),"
    " seq / 7, '2026-01-01' + INTERVAL seq SECOND, seq % 5 FROM shop.seq_1_to_{rows}"
)
_COMMITS = (
    "BEGIN NOT ATOMIC FOR i IN 1..{commits} DO"
    " UPDATE shop.orders SET state = state + 1 WHERE id = i; END FOR; END"
)


def main() -> None:
    """Measure three rounds, or rounds beside sysbench."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--commits", type=int, default=20_000)
    parser.add_argument("--beside", action="store_true")
    parser.add_argument("--tables", type=int, default=40)
    parser.add_argument("--seconds", type=int, default=20, help="of each turn")
    parser.add_argument("--rounds", type=int, default=3, help="of which figures are medians")
    parser.add_argument("--before", help="another binlane, which takes turns too")
    given = parser.parse_args()
    with _serving("sbtest" if given.beside else "shop") as (source, serve):
        lines = _beside(serve, source, given) if given.beside else _three(serve, source, given)
        for line in lines:
            print(json.dumps(line | {"load": round(os.getloadavg()[0], 1)}), flush=True)


@contextmanager
def _serving(database: str) -> Iterator[tuple[PrivateServer, ServeProcess]]:
    with tempfile.TemporaryDirectory() as folder:
        source = PrivateServer.start(Path(folder), name="source", options=(*QUICK, *SOURCE_OPTIONS))
        try:
            create_account(source)
            execute(source, f"GRANT SELECT ON *.* TO '{ADMIN}'@'%'")
            with ServeProcess(Path(folder) / "serve", source) as serve:
                serve.execute_as_root(f"CREATE BINLOG 'orders' LOG({database})")
                yield source, serve
        finally:
            source.kill()


def _three(
    serve: ServeProcess, source: PrivateServer, given: argparse.Namespace
) -> Iterator[dict[str, object]]:
    rows, commits = given.rows, given.commits
    execute(source, "CREATE DATABASE shop", _TABLE, _FILL.format(rows=rows))
    serve.wait_until_complete("orders", timeout_s=600)
    time.sleep(2)  # until the mark is saved
    for what in ("the whole binlog, and the table", "the table alone"):
        yield {"what": what, **_round(serve, source, rows)}
    execute(source, _COMMITS.format(commits=commits))
    serve.wait_until_complete("orders", timeout_s=600)
    time.sleep(2)
    what = f"{commits} transactions of one UPDATE, and the table"
    yield {"what": what, **_round(serve, source, rows)}


def _beside(
    serve: ServeProcess, source: PrivateServer, given: argparse.Namespace
) -> Iterator[dict[str, object]]:
    execute(source, "CREATE DATABASE sbtest")
    sysbench = [
        *("sysbench", "oltp_read_write", "--mysql-host=127.0.0.1", f"--mysql-port={source.port}"),
        *("--mysql-user=root", "--mysql-db=sbtest", f"--tables={given.tables}"),
        *("--table-size=1000", "--threads=4", "--mysql-ignore-errors=all"),
    ]
    subprocess.run([*sysbench, "prepare"], check=True, stdout=subprocess.DEVNULL)
    sysbench += [f"--time={given.seconds}", "run"]
    programs = {"without": "", "with": f"{sys.executable} -m binlane"}
    programs |= {"with the one before": given.before} if given.before else {}
    turns: dict[str, list[dict[str, float]]] = {way: [] for way in programs}
    for _ in range(given.rounds):
        for way, program in programs.items():
            turns[way].append(_turn(serve, source, sysbench, program.split()))
    for way, mine in turns.items():
        medians = {name: statistics.median(turn[name] for turn in mine) for name in mine[0]}
        yield {"what": f"sysbench {way} comparisons", "tables": given.tables, **medians}


def _turn(
    serve: ServeProcess, source: PrivateServer, sysbench: list[str], program: list[str]
) -> dict[str, float]:
    """Run sysbench once, and rounds of comparisons as long as it runs."""
    rounds, is_over = _Rounds(), threading.Event()
    cpu_s = sum(cpu_of_threads_s(source.process_id))
    comparing = threading.Thread(target=_compare, args=(serve, source, program, is_over, rounds))
    if program:
        comparing.start()
    begun_s = time.monotonic()
    done = subprocess.run(sysbench, check=True, capture_output=True, text=True).stdout
    cpu_s = sum(cpu_of_threads_s(source.process_id)) - cpu_s
    took_s = time.monotonic() - begun_s
    is_over.set()
    if program:
        comparing.join()
        took_s = time.monotonic() - begun_s
    found = re.search(r"transactions: +(\d+) +\(([\d.]+) per sec", done)
    assert found is not None, done
    return {
        "per_s": float(found[2]),
        "source_cpu_us": round(1e6 * cpu_s / int(found[1])),
        "rounds_cpu_share": round(rounds.cpu_s / took_s, 3),
        "tables_a_s": round(rounds.equal / took_s, 2),
        "different": rounds.different,
    }


@dataclass(slots=True)
class _Rounds:
    """Rounds of comparisons: tables that were found equal and different, and CPU seconds."""

    equal: int = 0
    different: int = 0
    cpu_s: float = 0.0


def _compare(
    serve: ServeProcess,
    source: PrivateServer,
    program: list[str],
    is_over: threading.Event,
    rounds: _Rounds,
) -> None:
    """Compare again and again."""
    command = ["nice", "-n", "10", *program, *_arguments(serve, source)]
    while not is_over.is_set():
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert process.stdout is not None, "it is a pipe"
        found = [json.loads(line)["finding"] for line in process.stdout]
        _, process.returncode, usage = os.wait4(process.pid, 0)
        rounds.cpu_s += usage.ru_utime + usage.ru_stime
        rounds.equal += found.count("equal")
        rounds.different += found.count("different")


def _arguments(serve: ServeProcess, source: PrivateServer) -> list[str]:
    url = f"mariadb://{ADMIN}@127.0.0.1:{source.port}?password-file={serve.directory / 'secret'}"
    return ["verify", f"{serve.data_dir}#orders", "--source", url, "--json"]


def _round(serve: ServeProcess, source: PrivateServer, rows: int) -> dict[str, object]:
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "binlane", *_arguments(serve, source)],
        capture_output=True,
        text=True,
        check=True,
    )
    wall_s = time.monotonic() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    verdict = json.loads(done.stdout)
    assert (verdict["finding"], verdict["rows"]) == ("equal", rows), verdict
    return {
        "rows": rows,
        "cpu_s": round(cpu_s, 2),
        "wall_s": round(wall_s, 2),
        "rows_a_cpu_s": round(rows / cpu_s),
        "memory_mb": after.ru_maxrss // 1024,
    }


if __name__ == "__main__":
    main()
