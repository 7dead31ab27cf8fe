"""Transactions a second through the port beside those of a direct connection, as JSON lines.

sysbench runs at the source, through `binlane serve` and, where it is installed, through HAProxy, which
passes bytes on and knows nothing of the protocol; all in turns, over the same tables, on cores that
server, port and sysbench share. `row` and `statement` are ports that judge for binlogs of that
format, which routing fills meanwhile; `relay` is a port whose source is not set up to be judged.

    python -m benchmarks.sysbench [--only relay row statement] [--binlogs N] [--clients 8 32] [--seconds N]

`per_s` is transactions a second, `p95_ms` sysbench's time of a transaction; *ratio* is the way's
transactions by those of direct connections: medians of the rounds, each with its least and most.
`cpu_us` is the CPU time of all of binlane's processes for a statement, routing included;
`routing_s_per_1000` is CPU seconds of the process that routes, until it is at rest, for 1,000 transactions: with
workers that process serves no clients. With `--beside` one
more session sends `SELECT 1` again and again: `select_p99_ms` is its time from sending to the answer.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pymysql

from benchmarks.measuring import cpu_of_process_s, cpu_of_threads_s
from benchmarks.port import SETTINGS, serving
from tests.serve_process import ServeProcess

_SETTINGS: Final = ("relay", "row", "statement")
_WORK: Final = (
    *("oltp_read_write", "oltp_write_only", "oltp_point_select"),
    *("oltp_insert", "oltp_update_non_index"),
)
_NO_BYTECODE: Final = "PYTHONDONTWRITEBYTECODE"
_HAPROXY: Final = """
global
    maxconn 1000
defaults
    mode tcp
    timeout connect 5s
    timeout client 1h
    timeout server 1h
listen mysql
    bind 127.0.0.1:{port}
    server source 127.0.0.1:{source}
"""


class _Turn(NamedTuple):
    """One run of sysbench."""

    per_s: float
    p95_ms: float
    cpu_us: float
    routing_s_per_1000: float
    select_p99_ms: float


def main() -> None:
    """Measure what was asked for."""
    os.environ.pop(_NO_BYTECODE, None)  # else `serve` would compile all modules
    given = _options().parse_args()
    if shutil.which("sysbench") is None:
        raise SystemExit("sysbench is missing: apt-get install sysbench")
    with tempfile.TemporaryDirectory(prefix="binlane-bench-", dir=given.directory) as place:
        for name in given.only or _SETTINGS:
            with serving(Path(place) / name, name, given) as serve, _peers(serve) as ports:
                for number in range(1, given.binlogs):
                    serve.execute_as_root(f"CREATE BINLOG 'b{number}' FORMAT='{SETTINGS[name]}'")
                _fill(serve)
                for work in given.work:
                    for clients in given.clients:
                        for line in _measured(serve, ports, work, clients, given):
                            print(json.dumps({"setting": name} | line), flush=True)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", choices=_SETTINGS, help="settings; all by default")
    parser.add_argument("--binlogs", type=int, default=1, help="of the setting's format")
    parser.add_argument("--work", nargs="*", choices=_WORK, default=_WORK[:2])
    parser.add_argument("--clients", nargs="*", type=int, default=[8, 32])
    parser.add_argument("--seconds", type=int, default=5, help="of each turn")
    parser.add_argument("--rounds", type=int, default=3, help="of which figures are medians")
    parser.add_argument("--beside", action="store_true", help="time SELECT 1 in one more session")
    parser.add_argument("--workers", default='"auto"', help="processes of the port, as in settings")
    parser.add_argument("--mysql", action="store_true", help="a MySQL instead of a MariaDB")
    parser.add_argument("--directory", help="where servers and binlogs are kept")
    return parser


def _fill(serve: ServeProcess) -> None:
    """Make sysbench's tables."""
    serve.execute_as_root("CREATE DATABASE sbtest")
    command = [*_command(serve.source.port, "oltp_read_write", 1), "prepare"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def _peers(serve: ServeProcess) -> Iterator[dict[str, int]]:
    """Ports of the ways to the source, by name."""
    ports = {"direct": serve.source.port, "port": serve.port}
    program = shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        yield ports
        return
    port = _free_port()
    file = serve.directory / "haproxy.cfg"
    file.write_text(_HAPROXY.format(port=port, source=serve.source.port))
    process = subprocess.Popen([program, "-q", "-f", file])
    try:
        yield ports | {"haproxy": port}
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def _command(port: int, work: str, clients: int) -> list[str]:
    return [
        *("sysbench", work, "--mysql-host=127.0.0.1", f"--mysql-port={port}"),
        *("--mysql-user=root", "--mysql-db=sbtest", "--tables=4", "--table-size=10000"),
        *(f"--threads={clients}", "--mysql-ignore-errors=all"),
    ]


def _measured(
    serve: ServeProcess,
    ports: dict[str, int],
    work: str,
    clients: int,
    given: argparse.Namespace,
) -> Iterator[dict[str, object]]:
    turns: dict[str, list[_Turn]] = {name: [] for name in ports}
    for _ in range(given.rounds):
        for name, port in ports.items():
            turns[name].append(_turn(serve, port, work, clients, given))
    for name, mine in turns.items():
        ratios = [
            way.per_s / direct.per_s for way, direct in zip(mine, turns["direct"], strict=True)
        ]
        line: dict[str, object] = {"work": work, "clients": clients, "way": name}
        line["per_s"] = round(statistics.median(turn.per_s for turn in mine))
        line["p95_ms"] = round(statistics.median(turn.p95_ms for turn in mine), 1)
        if name != "direct":
            line["ratio"] = round(statistics.median(ratios), 2)
            line["ratios"] = [round(min(ratios), 2), round(max(ratios), 2)]
        if name == "port":
            line["cpu_us"] = round(statistics.median(turn.cpu_us for turn in mine), 1)
            routing_s = statistics.median(turn.routing_s_per_1000 for turn in mine)
            line["routing_s_per_1000"] = round(routing_s, 3)
        if given.beside:
            line["select_p99_ms"] = round(statistics.median(turn.select_p99_ms for turn in mine), 2)
        yield line | {"load": round(os.getloadavg()[0], 1)}


def _turn(
    serve: ServeProcess, port: int, work: str, clients: int, given: argparse.Namespace
) -> _Turn:
    before, routing_before = _cpu_s(serve)
    times_ms: list[float] = []
    is_over = threading.Event()
    beside = threading.Thread(target=_select, args=(port, times_ms, is_over))
    if given.beside:
        beside.start()
    done = subprocess.run(
        [*_command(port, work, clients), f"--time={given.seconds}", "run"],
        check=True,
        capture_output=True,
        text=True,
    )
    is_over.set()
    if given.beside:
        beside.join()
    cpu_s = _cpu_s(serve)[0] - before
    _let_routing_rest(serve)
    routing_s = _cpu_s(serve)[1] - routing_before
    found = re.search(r"transactions: +(\d+) +\(([\d.]+) per sec", done.stdout)
    queries = re.search(r"queries: +(\d+)", done.stdout)
    late = re.search(r"95th percentile: +([\d.]+)", done.stdout)
    if not found or not queries or not late:
        raise SystemExit(done.stdout)
    p99_ms = statistics.quantiles(times_ms, n=100)[-1] if times_ms else 0.0
    return _Turn(
        per_s=float(found[2]),
        p95_ms=float(late[1]),
        cpu_us=1e6 * cpu_s / max(1, int(queries[1])),
        routing_s_per_1000=1000 * routing_s / max(1, int(found[1])),
        select_p99_ms=p99_ms,
    )


def _cpu_s(serve: ServeProcess) -> tuple[float, float]:
    """CPU time so far of all of binlane's processes, and of the one that routes."""
    return sum(cpu_of_threads_s(serve.process_id)), cpu_of_process_s(serve.process_id)


def _select(port: int, times_ms: list[float], is_over: threading.Event) -> None:
    """Send `SELECT 1` until sysbench is over, a little slower than answers come."""
    with pymysql.connect(host="127.0.0.1", port=port, user="root", ssl_disabled=True) as session:
        while not is_over.wait(0.002):
            began = time.perf_counter()
            session.query("SELECT 1")
            times_ms.append(1000 * (time.perf_counter() - began))


def _let_routing_rest(serve: ServeProcess) -> None:
    """Wait until what was written is in the binlogs: routing goes on behind the last transaction."""
    for _ in range(100):
        before = sum(cpu_of_threads_s(serve.process_id))
        time.sleep(0.3)
        if sum(cpu_of_threads_s(serve.process_id)) - before < 0.03:
            return


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


if __name__ == "__main__":
    main()
