"""What a session through the port costs beside one at the source, as JSON lines.

A private server is the source, `binlane serve` a process before it; the clients are sockets that
send one prepared packet after another, so that they cost next to nothing. Direct connections and
those through the port take turns, so that a busy machine is busy for both; figures are medians of
the rounds. `relay` is a port whose source is not set up, which judges nothing; the others judge,
for one binlog of the format that they name.

    python -m benchmarks.port [--only relay row statement] [--clients 1 8 64] [--seconds N] [--tls]

`per_s` statements a second of all clients, `p50_us` and `p99_us` from sending a statement to its
whole answer, each beside the same of direct connections; `port_cpu_us` is the CPU time of binlane
for one statement but for its routing, `routing_cpu_us` that of its other threads.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import select
import ssl
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any, NamedTuple

import pymysql

from benchmarks.measuring import cpu_of_threads_s
from binlane.live.provision.private_server import (
    MYSQL_SOURCE_OPTIONS,
    SOURCE_OPTIONS,
    PrivateServer,
)
from binlane.live.provision.server_programs import MARIADB
from tests.judged_port import set_up
from tests.serve_process import ServeProcess, create_account
from tests.servers import QUICK, mysql_program

SETTINGS = {"relay": "ROW", "row": "ROW", "mixed": "MIXED", "statement": "STATEMENT"}
_ROWS = 10_000
_WARM_S = 0.5
_PROCESSES_MOST = 2
_REST_S = 0.3
_RESTS_MOST = 100
_AT_REST = 0.1
_HEAD = 4
_EOF = 0xFE
_ERROR = 0xFF
_EOF_LONGEST = 9
_TEXT = "x" * 60
_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"


def main() -> None:
    """Measure what was asked for."""
    # Where bytecode is not kept, `serve` would compile all modules.
    os.environ.pop(_NO_BYTECODE, None)
    given, _ = _options().parse_known_args()  # those of the other benchmarks
    with (
        tempfile.TemporaryDirectory(prefix="binlane-bench-", dir=given.directory) as place,
        multiprocessing.get_context("spawn").Pool(_PROCESSES_MOST) as pool,
    ):
        for name in given.only or SETTINGS:
            with serving(Path(place) / name, name, given, scope=given.scope) as serve:
                fill(serve)
                for clients in given.clients:
                    for work in given.work:
                        line = _measured(pool, serve, work, clients, given)
                        head = {"benchmark": "port", "setting": name, "work": work}
                        head["tls"] = given.tls
                        tail = {"load": os.getloadavg()[0]}
                        print(json.dumps(head | {"clients": clients} | line | tail), flush=True)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", choices=SETTINGS, help="settings; all by default")
    parser.add_argument("--work", nargs="*", choices=_WORK, default=["select", "insert"])
    parser.add_argument("--clients", nargs="*", type=int, default=[1, 8, 64])
    parser.add_argument("--seconds", type=float, default=3, help="of each turn")
    parser.add_argument("--rounds", type=int, default=3, help="of which figures are medians")
    parser.add_argument("--workers", type=int, default=0, help="processes of the port")
    parser.add_argument("--mysql", action="store_true", help="a MySQL instead of a MariaDB")
    parser.add_argument("--scope", default="", help="of the binlog, such as LOG(bench)")
    parser.add_argument("--tls", action="store_true", help="clients of the port use TLS")
    parser.add_argument("--directory", help="where servers and binlogs are kept")
    return parser


@contextmanager
def serving(
    place: Path, name: str, given: argparse.Namespace, *, scope: str = ""
) -> Iterator[ServeProcess]:
    """Run `binlane serve` before a private server, with one binlog.

    Args:
        place: Directory of the server and of `serve`; is made.
        name: One of `SETTINGS`.
        given: Options `mysql` and `workers`.
        scope: Clauses of the binlog's scope; all tables by default.
    """
    place.mkdir(parents=True)
    options = MYSQL_SOURCE_OPTIONS if given.mysql else SOURCE_OPTIONS
    program: Any = mysql_program() if given.mysql else MARIADB
    with PrivateServer.start(
        place, name="source", options=(*options, *QUICK, "--max-connections=300"), program=program
    ) as source:
        extra = f"[gateway]\nworkers = {given.workers}\n"
        serve = ServeProcess(place / "serve", source, extra=extra)
        if name == "relay":
            create_account(source)
        else:
            set_up(serve)
        with serve:
            serve.execute_as_root(f"CREATE BINLOG 'b' {scope} FORMAT='{SETTINGS[name]}'")
            yield serve


def fill(serve: ServeProcess) -> None:
    """Make the tables that the clients read and write."""
    serve.execute_as_root(
        "CREATE DATABASE bench",
        "CREATE TABLE bench.point (id INT PRIMARY KEY, v VARCHAR(100))",
        "CREATE TABLE bench.many (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(100))",
        *(
            "INSERT INTO bench.point VALUES "
            + ",".join(f"({n},'{_TEXT}')" for n in range(first, first + 1000))
            for first in range(0, _ROWS, 1000)
        ),
    )


def _selecting(number: int) -> str:
    return f"SELECT v FROM point WHERE id={number % _ROWS}"


def _inserting(number: int) -> str:
    return f"INSERT INTO many (v) VALUES ('{number:010}{_TEXT}')"


def _updating(number: int) -> str:
    return f"UPDATE point SET v='{number:010}{_TEXT}' WHERE id={number % _ROWS}"


_WORK = {"select": _selecting, "insert": _inserting, "update": _updating}


class Done(NamedTuple):
    """What clients did in one turn; times in nanoseconds, `sent` is also of the time before figures count."""

    errors: int
    latencies: list[int]
    sent: int


@dataclass(frozen=True, slots=True)
class _Figures:
    per_s: float
    p50_us: float
    p99_us: float
    port_cpu_us: float = 0.0
    routing_cpu_us: float = 0.0


def _measured(
    pool: Pool, serve: ServeProcess, work: str, clients: int, given: argparse.Namespace
) -> dict[str, object]:
    direct: list[_Figures] = []
    port: list[_Figures] = []
    for turn in range(given.rounds):
        load = _Load(work, clients, given.seconds, first=turn * 2_000_000)
        direct.append(_turn(pool, serve, load, serve.source.port))
        let_routing_rest(serve)
        through = replace(load, first=load.first + 1_000_000, has_tls=given.tls)
        port.append(_turn(pool, serve, through, serve.port))
    found: dict[str, object] = {}
    for name, digits in (("per_s", 0), ("p50_us", 0), ("p99_us", 0)):
        mine = statistics.median(getattr(one, name) for one in port)
        theirs = statistics.median(getattr(one, name) for one in direct)
        found[name] = round(mine, digits)
        found[f"direct_{name}"] = round(theirs, digits)
        found[f"{name}_ratio"] = round(mine / theirs, 2)
    for name in ("port_cpu_us", "routing_cpu_us"):
        found[name] = round(statistics.median(getattr(one, name) for one in port), 1)
    return found


@dataclass(frozen=True, slots=True)
class _Load:
    """Work of some clients for a while, with statements numbered from `first`."""

    work: str
    clients: int
    seconds: float
    first: int
    has_tls: bool = False


def _turn(pool: Pool, serve: ServeProcess, load: _Load, port: int) -> _Figures:
    """Let clients work for a while."""
    seconds = load.seconds
    processes = min(_PROCESSES_MOST, load.clients)
    tasks = [
        (
            port,
            load.work,
            load.clients // processes + (one < load.clients % processes),
            seconds,
            load.first + one * 500_000,
            load.has_tls,
        )
        for one in range(processes)
    ]
    running = pool.starmap_async(stay, tasks)
    # The clients are logged in and warm by then.
    time.sleep(_WARM_S + 0.3)
    before, began_s = cpu_of_threads_s(serve.process_id), time.monotonic()
    time.sleep(max(0.1, seconds - 0.6))
    after, took_s = cpu_of_threads_s(serve.process_id), time.monotonic() - began_s
    turns = running.get()
    latencies = sorted(each for one in turns for each in one.latencies)
    assert sum(one.errors for one in turns) == 0, "statements failed"
    per_s = len(latencies) / seconds
    done = per_s * took_s
    return _Figures(
        per_s=per_s,
        p50_us=_share(latencies, 50) / 1000,
        p99_us=_share(latencies, 99) / 1000,
        port_cpu_us=1e6 * (after[0] - before[0]) / done,
        routing_cpu_us=1e6 * (after[1] - before[1]) / done,
    )


def let_routing_rest(serve: ServeProcess) -> None:
    """Wait until what direct connections wrote is in the binlogs, which else counts as the port's."""
    before = cpu_of_threads_s(serve.process_id)[1]
    for _ in range(_RESTS_MOST):
        time.sleep(_REST_S)
        after = cpu_of_threads_s(serve.process_id)[1]
        if after - before < _REST_S * _AT_REST:
            return
        before = after


def _share(values: Sequence[int], percent: int) -> int:
    return values[min(len(values) - 1, len(values) * percent // 100)]


def stay(
    port: int,
    work: str,
    count: int,
    seconds: float,
    first: int,
    has_tls: bool,  # noqa: FBT001 - likewise
) -> Done:
    """Be some clients: each sends its next statement when it has the answer of the last one."""
    texts = _WORK[work]
    connections = [_connected(port, has_tls=has_tls) for _ in range(count)]
    sockets = {one._sock.fileno(): one._sock for one in connections}  # noqa: SLF001  # its bytes
    poll = select.epoll()
    pending = {number: _Answer(is_rows=work == "select") for number in sockets}
    for number, one in sockets.items():
        one.setblocking(False)
        poll.register(number, select.EPOLLIN)
    clock = time.perf_counter_ns
    number = first
    sent = dict.fromkeys(sockets, 0)
    for each, one in sockets.items():
        one.sendall(_packet(texts(number)))
        sent[each], number = clock(), number + 1
    warm = clock() + int(_WARM_S * 1e9)
    end = warm + int(seconds * 1e9)
    latencies: list[int] = []
    errors = 0
    now = clock()
    while now < end:
        for each, _ in poll.poll(1):
            one = sockets[each]
            answer = pending[each]
            try:
                data = one.recv(65536)
            except ssl.SSLWantReadError:
                continue
            if not answer.take(data):
                continue
            now = clock()
            errors += answer.is_error
            answer.begin()
            if now >= warm:
                latencies.append(now - sent[each])
            one.sendall(_packet(texts(number)))
            sent[each], number = clock(), number + 1
        now = clock()
    for connection in connections:
        connection._force_close()  # noqa: SLF001  # an answer is under way
    return Done(errors, latencies, number - first)


class _Answer:
    """An answer as it comes in: OK, an error, or columns, rows and their two ends."""

    def __init__(self, *, is_rows: bool) -> None:
        self._is_rows = is_rows
        self.begin()

    def begin(self) -> None:
        """Wait for the next one."""
        self._data = b""
        self._ends = 0
        self.is_error = False

    def take(self, data: bytes) -> bool:
        """Take bytes; whether the answer is whole."""
        if not data:
            raise ConnectionError("the server went away")
        data = self._data + data
        at = 0
        while len(data) - at >= _HEAD:
            length = int.from_bytes(data[at : at + 3], "little")
            if len(data) - at < _HEAD + length:
                break
            kind = data[at + _HEAD]
            at += _HEAD + length
            if kind == _ERROR or not self._is_rows:
                self.is_error = kind == _ERROR
                return True
            self._ends += kind == _EOF and length < _EOF_LONGEST
            if self._ends == 2:  # of columns and of rows
                return True
        self._data = data[at:]
        return False


def _packet(text: str) -> bytes:
    body = b"\x03" + text.encode()
    return len(body).to_bytes(3, "little") + b"\x00" + body


def _connected(port: int, *, has_tls: bool) -> Any:
    return pymysql.connect(
        host="127.0.0.1",
        port=port,
        user="root",
        database="bench",
        autocommit=True,
        ssl={"check_hostname": False} if has_tls else None,
        ssl_disabled=not has_tls,
    )


if __name__ == "__main__":
    main()
