"""What peers that are many, slow or hostile cost `binlane serve`, as JSON lines: memory, and others' time.

A private MariaDB is the source, `binlane serve` a process before it. Beside each crowd of peers an
honest client runs `SELECT 1`, and another one logs in anew every time. Memory is the resident set of
`serve` in megabytes: before, the most while the peers are there, and some seconds after they went.

    python -m benchmarks.peers [--only NAME ...] [--count N] [--seconds N] [--relay]

`idle`: sessions that say nothing. `strangers`: connections that never log in. `flood`: connections
that come and go as fast as they can, from a hundred addresses. `dumps`: replicas that read nothing.
`results`: sessions that read nothing of a result of 100 MB. `drops`: sessions that send a byte a
second. `pipeline`: sessions that send 100,000 commands and read no answer. `large`: a command of
1 GB. `values`: an INSERT of a million values. `logins`: sessions that log in and go, one after the
other.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import pymysql

from binlane.live.provision.private_server import SOURCE_OPTIONS, PrivateServer
from tests.judged_port import set_up
from tests.serve_process import ServeProcess, create_account
from tests.servers import QUICK

_COM_PING = b"\x01\0\0\0\x0e"
_COM_BINLOG_DUMP = 18
_FRAME_MAX = 0xFFFFFF
_SETTLE_S = 8.0
_SOME = 100
_MEGABYTES = 100


def main() -> None:
    """Measure what was asked for."""
    given = _options().parse_args()
    for name in given.only or _PEERS:
        with (
            tempfile.TemporaryDirectory(prefix="binlane-bench-", dir=given.directory) as place,
            _serving(Path(place), given) as serve,
        ):
            line = _measured(serve, _PEERS[name], given)
            head = {"benchmark": "peers", "what": name, "judged": not given.relay}
            print(json.dumps(head | line | {"load": round(os.getloadavg()[0], 1)}), flush=True)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", choices=_PEERS, help="all by default")
    parser.add_argument("--count", type=int, default=1000, help="of idle peers")
    parser.add_argument("--seconds", type=float, default=8, help="that peers stay")
    parser.add_argument("--relay", action="store_true", help="a source that was not set up")
    parser.add_argument("--directory", help="where servers and binlogs are kept")
    return parser


@contextmanager
def _serving(place: Path, given: argparse.Namespace) -> Iterator[ServeProcess]:
    options = (
        *SOURCE_OPTIONS,
        *QUICK,
        f"--max-connections={given.count + 300}",
        "--max-allowed-packet=1G",
        "--bind-address=0.0.0.0",
    )
    with PrivateServer.start(place, name="source", options=options) as source:
        listen = f'address = "0.0.0.0"\nmax_connections = {given.count + 200}\n'
        serve = ServeProcess(place / "serve", source, listen=listen)
        if given.relay:
            create_account(source)
        else:
            set_up(serve)
        with serve:
            serve.execute_as_root(
                "CREATE BINLOG 'b'" + ("" if given.relay else " FORMAT='STATEMENT'"),
                "CREATE DATABASE bench",
                "CREATE TABLE bench.t (id INT AUTO_INCREMENT PRIMARY KEY, v LONGBLOB)",
                "CREATE TABLE bench.two (a INT, b VARCHAR(20))",
                *["INSERT INTO bench.t (v) VALUES (REPEAT('x', 1000000))"] * 20,
            )
            serve.wait_until_complete("b")
            yield serve


class _Honest:
    """Clients that do nothing wrong, and how long they wait."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._stop = threading.Event()
        self.statements: list[float] = []
        self.logins: list[float] = []
        self.failed = 0
        self._threads = [
            threading.Thread(target=self._ask),
            threading.Thread(target=self._log_in),
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _ask(self) -> None:
        with _connected(self._port) as session, session.cursor() as cursor:
            while not self._stop.wait(0.005):
                began_s = time.monotonic()
                cursor.execute("SELECT 1")
                self.statements.append(1000 * (time.monotonic() - began_s))

    def _log_in(self) -> None:
        while not self._stop.wait(0.1):
            began_s = time.monotonic()
            try:
                _connected(self._port).close()
            except pymysql.err.Error:
                self.failed += 1
            self.logins.append(1000 * (time.monotonic() - began_s))


def _measured(
    serve: ServeProcess,
    peers: Callable[[ServeProcess, argparse.Namespace, ExitStack], None],
    given: argparse.Namespace,
) -> dict[str, object]:
    before_mb = _memory_mb(serve)
    cpu_s = _cpu_s(serve)
    most = [before_mb]
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(0.05):
            most.append(_memory_mb(serve))

    watching = threading.Thread(target=watch)
    with _Honest(serve.port) as honest:
        watching.start()
        began_s = time.monotonic()
        with ExitStack() as stack:
            peers(serve, given, stack)
            took_s = time.monotonic() - began_s
    time.sleep(_SETTLE_S)
    stop.set()
    watching.join()
    assert "Traceback" not in serve.log, serve.log[-3000:]
    return {
        "before_mb": before_mb,
        "most_mb": max(most),
        "after_mb": _memory_mb(serve),
        "seconds": round(took_s, 1),
        "cpu_s": round(_cpu_s(serve) - cpu_s, 1),
        **{f"statement_{name}": value for name, value in _shares(honest.statements).items()},
        **{f"login_{name}": value for name, value in _shares(honest.logins).items()},
        "failed_logins": honest.failed,
    }


def _shares(values: list[float]) -> dict[str, float]:
    ordered = sorted(values) or [0.0]
    return {
        "p50_ms": round(ordered[len(ordered) // 2], 2),
        "p99_ms": round(ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)], 2),
        "max_ms": round(ordered[-1], 1),
    }


def _idle(serve: ServeProcess, given: argparse.Namespace, stack: ExitStack) -> None:
    for _ in range(given.count):
        stack.enter_context(_connected(serve.port))
    time.sleep(given.seconds)


def _strangers(serve: ServeProcess, given: argparse.Namespace, stack: ExitStack) -> None:
    for number in range(given.count):
        stack.enter_context(closing(_stranger(serve.port, number)))
    time.sleep(given.seconds)


def _flood(serve: ServeProcess, given: argparse.Namespace, stack: ExitStack) -> None:
    del stack
    end_s = time.monotonic() + given.seconds
    number = 0
    while time.monotonic() < end_s:
        with suppress(OSError), closing(_stranger(serve.port, number)) as connection:
            if number % 3 == 0:
                connection.recv(1)
            elif number % 3 == 1:
                connection.sendall(b"\xff" * 100)
        number += 1


def _logins(serve: ServeProcess, given: argparse.Namespace, stack: ExitStack) -> None:
    del stack
    for number in range(2 * given.count):
        with _connected(serve.port) as session, session.cursor() as cursor:
            if number % 4 == 0:
                cursor.execute("INSERT INTO bench.two VALUES (1, 'one')")


def _dumps(serve: ServeProcess, given: argparse.Namespace, stack: ExitStack) -> None:
    for number in range(_SOME):
        session = stack.enter_context(_connected(serve.port))
        with session.cursor() as cursor:
            cursor.execute("SET @mariadb_slave_capability = 4, @master_binlog_checksum = 'CRC32'")
        body = struct.pack("<BIHI", _COM_BINLOG_DUMP, 4, 0, 100 + number) + b"b.000001"
        _raw(session).sendall(_packet(body))
    with _connected(serve.source.port) as session, session.cursor() as cursor:
        end_s = time.monotonic() + given.seconds
        while time.monotonic() < end_s:
            cursor.execute("INSERT INTO bench.t (v) VALUES (REPEAT('y', 100000))")
            time.sleep(0.02)
    serve.wait_until_complete("b")


def _results(serve: ServeProcess, given: argparse.Namespace, stack: ExitStack) -> None:
    for _ in range(_SOME):
        session = stack.enter_context(_connected(serve.port))
        query = b"\x03SELECT a.v FROM bench.t a, bench.t b LIMIT %d" % _MEGABYTES
        _raw(session).sendall(_packet(query))
    time.sleep(given.seconds)


def _drops(serve: ServeProcess, given: argparse.Namespace, stack: ExitStack) -> None:
    sessions = [_raw(stack.enter_context(_connected(serve.port))) for _ in range(_SOME)]
    packet = _packet(b"\x03INSERT INTO bench.two VALUES (1, 'slowly')")
    for number in range(int(given.seconds)):
        for each in sessions:
            each.sendall(packet[number : number + 1])
        time.sleep(1)


def _pipeline(serve: ServeProcess, given: argparse.Namespace, stack: ExitStack) -> None:
    for number in range(10):
        connection = _raw(stack.enter_context(_connected(serve.port)))
        connection.settimeout(given.seconds)
        command = _COM_PING if number % 2 else _packet(b"\x03SHOW BINLOGS")
        threading.Thread(target=_send, args=(connection, command * 100_000)).start()
    time.sleep(given.seconds)


def _large(serve: ServeProcess, given: argparse.Namespace, stack: ExitStack) -> None:
    del given
    connection = _raw(stack.enter_context(_connected(serve.port)))
    connection.settimeout(120)
    head, left, number = b"\x03INSERT INTO bench.t (v) VALUES ('", 1 << 30, 0
    with suppress(ConnectionError):
        while left:
            length = min(left, _FRAME_MAX)
            payload = head + b"z" * (length - len(head))
            head = b""
            connection.sendall(length.to_bytes(3, "little") + bytes((number & 0xFF,)) + payload)
            left, number = left - length, number + 1
        connection.recv(1000)


def _values(serve: ServeProcess, given: argparse.Namespace, stack: ExitStack) -> None:
    del given
    with stack.enter_context(_connected(serve.port)).cursor() as cursor:
        values = ",".join(f"({number},'v{number}')" for number in range(500_000))
        cursor.execute(f"INSERT INTO bench.two VALUES {values}")


_PEERS = {
    "idle": _idle,
    "strangers": _strangers,
    "flood": _flood,
    "logins": _logins,
    "dumps": _dumps,
    "results": _results,
    "drops": _drops,
    "pipeline": _pipeline,
    "large": _large,
    "values": _values,
}


def _send(connection: socket.socket, data: bytes) -> None:
    with suppress(OSError):
        connection.sendall(data)


def _stranger(port: int, number: int) -> socket.socket:
    """From one of a hundred addresses, as if there were a hundred hosts."""
    source = (f"127.0.0.{2 + number % _SOME}", 0)
    return socket.create_connection(("127.0.0.1", port), timeout=30, source_address=source)


def _packet(payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "little") + b"\0" + payload


def _connected(port: int) -> pymysql.connections.Connection[Any]:
    return pymysql.connect(
        host="127.0.0.1",
        port=port,
        user="root",
        autocommit=True,
        ssl_disabled=True,
        connect_timeout=30,
        read_timeout=120,
        write_timeout=120,
        max_allowed_packet=1 << 30,
    )


def _raw(session: pymysql.connections.Connection[Any]) -> socket.socket:
    connection: socket.socket = session._sock  # type: ignore[attr-defined]  # noqa: SLF001 - its bytes
    return connection


def _memory_mb(serve: ServeProcess) -> int:
    lines = Path(f"/proc/{serve.process_id}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) >> 10


def _cpu_s(serve: ServeProcess) -> float:
    fields = Path(f"/proc/{serve.process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
