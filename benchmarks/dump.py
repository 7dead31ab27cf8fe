"""What dumps cost through the port beside the source's own, as JSON lines.

A private server is the source, `binlane serve` a process before it with one binlog of everything, so
that both hold the same events. Readers are sockets that take bytes and drop them in the kernel, so
that reading costs next to nothing. Dumps of the source and of the port take turns.

    python -m benchmarks.dump [--only NAME ...] [--readers 1 10 100] [--megabytes N] [--mysql]

`throughput`: megabytes that all readers got for a CPU second of the process that serves them, and for
a second of the clock; `small` events have some 250 bytes, `big` ones 8 KB. `whole`: a dump to its end
(BINLOG_DUMP_NON_BLOCK) with and without checksums of what is made for it. `latency`: from sending a
commit to the source until a reader has its GTID. `statements`: how long a SELECT through the port
takes beside readers that are given as much as they take.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import selectors
import socket
import statistics
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pymysql

from binlane.live.provision.private_server import (
    MYSQL_SOURCE_OPTIONS,
    SOURCE_OPTIONS,
    PrivateServer,
)
from binlane.live.provision.server_programs import MARIADB
from tests.serve_process import ServeProcess, create_account
from tests.servers import QUICK, execute, mysql_program

_EVENTS = {"small": (100, 2000), "big": (8000, 200)}
"""Bytes of a row, which makes an event of its own, and rows of a transaction."""
_COM_BINLOG_DUMP = 18
_NON_BLOCK = 1
_FRAME = 4
_TYPE_AT = 5 + 4
_GTIDS = (162, 33)
_TAKEN = 1 << 20
_BUFFER = 256 << 10
_TICKS = os.sysconf("SC_CLK_TCK")
_LEAST_MEGABYTES = 32
_OPTIONS = (
    *QUICK,
    "--binlog-row-event-max-size=256",
    "--max-connections=400",
    "--innodb-buffer-pool-size=256M",
)


def main() -> None:
    """Measure what was asked for."""
    given = _options().parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="binlane-bench-", dir=given.directory) as place,
        _serving(Path(place), given) as serve,
    ):
        starts = {}
        if {"throughput", "whole", "statements"}.intersection(given.only):
            starts = {name: _filled(serve, name, given.megabytes) for name in _EVENTS}
        for name in given.only:
            for line in _MEASURES[name](serve, starts, given):
                head = {"benchmark": "dump", "what": name}
                print(json.dumps(head | line | {"load": round(os.getloadavg()[0], 1)}), flush=True)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", choices=_MEASURES, default=list(_MEASURES))
    parser.add_argument("--readers", nargs="*", type=int, default=[1, 10, 100])
    parser.add_argument("--megabytes", type=int, default=256, help="of each kind of events")
    parser.add_argument("--rounds", type=int, default=3, help="of which figures are medians")
    parser.add_argument("--seconds", type=float, default=5, help="of load for each latency")
    parser.add_argument("--rate", type=int, default=200, help="commits a second of it")
    parser.add_argument("--mysql", action="store_true", help="a MySQL instead of a MariaDB")
    parser.add_argument("--directory", help="where servers and binlogs are kept")
    return parser


@contextmanager
def _serving(place: Path, given: argparse.Namespace) -> Iterator[ServeProcess]:
    options = MYSQL_SOURCE_OPTIONS if given.mysql else SOURCE_OPTIONS
    program: Any = mysql_program() if given.mysql else MARIADB
    with PrivateServer.start(
        place, name="source", options=(*options, *_OPTIONS), program=program
    ) as source:
        create_account(source)
        listen = "max_connections = 300\n"
        with ServeProcess(place / "serve", source, listen=listen) as serve:
            serve.execute_as_root("CREATE BINLOG 'b'", "CREATE DATABASE bench")
            yield serve


def _filled(serve: ServeProcess, name: str, megabytes: int) -> dict[int, str]:
    """Fill a file of its own with one kind of events; its name by port."""
    size, count = _EVENTS[name]
    source, table = serve.source, f"bench.{name}"
    execute(
        source,
        f"CREATE TABLE {table} (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(8000))",
        f"INSERT INTO {table} (v) VALUES (REPEAT('x', {size}))",
        *[f"INSERT INTO {table} (v) SELECT v FROM {table} LIMIT {count}"] * 12,
        "FLUSH BINARY LOGS",
    )
    serve.wait_until_complete("b")
    serve.execute("FLUSH BINARY LOGS 'b'")
    files = {port: _current(port)[0] for port in (source.port, serve.port)}
    while _current(source.port)[1] < megabytes << 20:
        execute(source, *[f"INSERT INTO {table} (v) SELECT v FROM {table} LIMIT {count}"] * 10)
    serve.wait_until_complete("b")
    return files


def _current(port: int) -> tuple[str, int]:
    """The file that is being written, and its size."""
    with _connected(port) as session, session.cursor() as cursor:
        try:
            cursor.execute("SHOW MASTER STATUS")
        except pymysql.err.Error:
            cursor.execute("SHOW BINARY LOG STATUS")
        row = cursor.fetchone()
        assert row is not None, "it logs"
        return str(row[0]), int(row[1])


# Readers --------------------------------------------------------------------------------------


class _Readers:
    """Readers in a process of their own; they begin together and tell when they have enough."""

    def __init__(
        self, target: Callable[..., None], port: int, file: str, position: int, *values: object
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=target, args=(theirs, port, file, position, *values))
        self._process.start()
        self._pipe.recv()

    def begin(self) -> None:
        """Send the dump commands."""
        self._pipe.send(None)

    def result(self) -> Any:
        """What they have to tell, once they do."""
        return self._pipe.recv()

    def end(self) -> Any:
        """Close all, having asked for what there is to tell."""
        self._pipe.send(None)
        found = self._pipe.recv()
        self._process.join()
        return found


def _take(pipe: Connection, port: int, file: str, position: int, count: int, size: int) -> None:
    """Be some readers that take `size` bytes each."""
    sockets = [_prepared(port) for _ in range(count)]
    buffer, poll = bytearray(_TAKEN), selectors.DefaultSelector()
    left = dict.fromkeys(sockets, size)
    pipe.send(None)
    pipe.recv()
    for number, each in enumerate(sockets):
        each.sendall(_dump_command(file, position, 1000 + number))
        each.setblocking(False)
        poll.register(each, selectors.EVENT_READ)
    while left:
        for key, _ in poll.select():
            one = key.fileobj
            assert isinstance(one, socket.socket), "nothing else is registered"
            # The kernel drops what is taken so.
            left[one] -= one.recv_into(buffer, 0, socket.MSG_TRUNC)
            if left[one] <= 0:
                poll.unregister(one)
                del left[one]
    pipe.send(None)
    for each in sockets:
        each.close()


def _whole(pipe: Connection, port: int, file: str, position: int, checksum: str) -> None:
    """Be a reader of a whole dump; tells its bytes and its packets."""
    one = _prepared(port, checksum)
    pipe.send(None)
    pipe.recv()
    one.sendall(_dump_command(file, position, 999, _NON_BLOCK))
    data, size, packets = b"", 0, 0
    while True:
        got = one.recv(_TAKEN)
        assert got, "the dump ends with a packet"
        size += len(got)
        data += got
        at, is_over = 0, False
        while len(data) - at > _FRAME:
            length = int.from_bytes(data[at : at + 3], "little")
            if len(data) - at < _FRAME + length:
                break
            packets += 1
            is_over = data[at + _FRAME] != 0
            at += _FRAME + length
        data = data[at:]
        if is_over:
            break
    pipe.send((size, packets))
    one.close()


def _times(pipe: Connection, port: int, file: str, position: int, count: int) -> None:
    """Be some readers at the log's end; tells when the first of them had each GTID."""
    sockets = [_prepared(port) for _ in range(count)]
    poll = selectors.DefaultSelector()
    poll.register(pipe, selectors.EVENT_READ)
    buffer = bytearray(_TAKEN)
    pipe.send(None)
    pipe.recv()
    for number, each in enumerate(sockets):
        each.sendall(_dump_command(file, position, 2000 + number))
        each.setblocking(False)
        poll.register(each, selectors.EVENT_READ)
    watched, data = sockets[-1], b""
    at: list[float] = []
    while True:
        for key, _ in poll.select():
            one = key.fileobj
            if not isinstance(one, socket.socket):
                pipe.recv()
                pipe.send(at)
                return
            if one is not watched:
                one.recv_into(buffer, 0, socket.MSG_TRUNC)
                continue
            data += one.recv(_TAKEN)
            now_s, offset = time.monotonic(), 0
            while len(data) - offset > _TYPE_AT:
                length = int.from_bytes(data[offset : offset + 3], "little")
                if len(data) - offset < _FRAME + length:
                    break
                if data[offset + _TYPE_AT] in _GTIDS:
                    at.append(now_s)
                offset += _FRAME + length
            data = data[offset:]


def _prepared(port: int, checksum: str = "CRC32") -> socket.socket:
    """A session that may ask for a dump."""
    session: Any = _connected(port)
    with session.cursor() as cursor:
        cursor.execute(
            f"SET @mariadb_slave_capability = 4, @master_binlog_checksum = '{checksum}',"
            f" @source_binlog_checksum = '{checksum}'"
        )
    connection: socket.socket = session._sock  # noqa: SLF001 - it knows no dumps
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
    return connection.dup()


def _dump_command(file: str, position: int, server_id: int, flags: int = 0) -> bytes:
    body = struct.pack("<BIHI", _COM_BINLOG_DUMP, position, flags, server_id) + file.encode()
    return len(body).to_bytes(3, "little") + b"\0" + body


# What is measured -----------------------------------------------------------------------------


def _throughput(
    serve: ServeProcess, starts: dict[str, dict[int, str]], given: argparse.Namespace
) -> Iterator[dict[str, object]]:
    servers: dict[str, PrivateServer | ServeProcess] = {"source": serve.source, "port": serve}
    for events, files in starts.items():
        for count in given.readers:
            size = max(given.megabytes // count, min(_LEAST_MEGABYTES, given.megabytes - 1)) << 20
            found: dict[str, list[tuple[float, float]]] = {name: [] for name in servers}
            for _ in range(given.rounds):
                for name, server in servers.items():
                    readers = _Readers(_take, server.port, files[server.port], 4, count, size)
                    before, began_s = _cpu_s(server.process_id), time.monotonic()
                    readers.begin()
                    readers.result()
                    took_s = time.monotonic() - began_s
                    cpu_s = _cpu_s(server.process_id) - before
                    found[name].append((count * size / 1e6 / cpu_s, count * size / 1e6 / took_s))
            line: dict[str, object] = {"events": events, "readers": count, "mb_each": size >> 20}
            per_cpu = {
                name: statistics.median(one[0] for one in all_) for name, all_ in found.items()
            }
            for name, all_ in found.items():
                line[f"{name}_mb_per_cpu_s"] = round(per_cpu[name])
                line[f"{name}_mb_per_s"] = round(statistics.median(one[1] for one in all_))
            yield line | {"ratio": round(per_cpu["port"] / per_cpu["source"], 2)}


def _wholes(
    serve: ServeProcess, starts: dict[str, dict[int, str]], given: argparse.Namespace
) -> Iterator[dict[str, object]]:
    for events, files in starts.items():
        for checksum in ("CRC32", "NONE"):
            line: dict[str, object] = {"events": events, "checksum": checksum}
            servers: dict[str, PrivateServer | ServeProcess]
            servers = {"source": serve.source, "port": serve}
            for name, server in servers.items():
                taken = []
                for _ in range(given.rounds):
                    readers = _Readers(_whole, server.port, files[server.port], 4, checksum)
                    before = _cpu_s(server.process_id)
                    readers.begin()
                    size, packets = readers.result()
                    taken.append(size / 1e6 / (_cpu_s(server.process_id) - before))
                    line[f"{name}_packets"] = packets
                line[f"{name}_mb_per_cpu_s"] = round(statistics.median(taken))
            yield line


def _latency(
    serve: ServeProcess, starts: dict[str, dict[int, str]], given: argparse.Namespace
) -> Iterator[dict[str, object]]:
    del starts
    execute(serve.source, "CREATE TABLE bench.one (id INT AUTO_INCREMENT PRIMARY KEY, v INT)")
    for count in given.readers:
        for name, server in (("source", serve.source), ("port", serve)):
            serve.wait_until_complete("b")
            readers = _Readers(_times, server.port, *_current(server.port), count)
            readers.begin()
            time.sleep(1.0)
            before, sent = _cpu_s(serve.process_id), []
            with _connected(serve.source.port) as session, session.cursor() as cursor:
                began_s = time.monotonic()
                for number in range(int(given.seconds * given.rate)):
                    time.sleep(max(0.0, began_s + number / given.rate - time.monotonic()))
                    sent.append(time.monotonic())
                    cursor.execute("INSERT INTO bench.one (v) VALUES (1)")
            took_s = time.monotonic() - began_s
            time.sleep(0.5)
            got = readers.end()
            cpu_s = _cpu_s(serve.process_id) - before
            assert len(got) == len(sent), "every commit came once"
            delays = [1000 * (came - went) for went, came in zip(sent, got, strict=True)]
            yield {
                "of": name,
                "readers": count,
                "rate": round(len(sent) / took_s),
                **_shares(delays),
                "binlane_cpu_ms_per_commit": round(1000 * cpu_s / len(sent), 2),
            }


def _statements(
    serve: ServeProcess, starts: dict[str, dict[int, str]], given: argparse.Namespace
) -> Iterator[dict[str, object]]:
    """Beside readers that come again as soon as they have a file."""
    for count in (0, *given.readers):
        with ExitStack() as stack:
            if count:
                readers = _Readers(
                    _take_again, serve.port, starts["small"][serve.port], 4, count, given.megabytes
                )
                readers.begin()
                stack.callback(readers.end)
            time.sleep(1.0)
            delays = []
            with _connected(serve.port) as session, session.cursor() as cursor:
                end_s = time.monotonic() + given.seconds
                while (now_s := time.monotonic()) < end_s:
                    cursor.execute("SELECT 1")
                    delays.append(1000 * (time.monotonic() - now_s))
                    time.sleep(0.002)
            yield {"readers": count, "statements": len(delays), **_shares(delays)}


def _take_again(
    pipe: Connection, port: int, file: str, position: int, count: int, megabytes: int
) -> None:
    """Be some readers without end."""
    pipe.send(None)
    pipe.recv()
    stop = threading.Event()

    def read() -> None:
        buffer = bytearray(_TAKEN)
        while not stop.is_set():
            one = _prepared(port)
            one.sendall(_dump_command(file, position, threading.get_ident() & 0xFFFFFF))
            left = (megabytes - 1) << 20
            while left > 0 and not stop.is_set():
                left -= one.recv_into(buffer, 0, socket.MSG_TRUNC)
            one.close()

    threads = [threading.Thread(target=read) for _ in range(count)]
    for thread in threads:
        thread.start()
    pipe.recv()
    stop.set()
    for thread in threads:
        thread.join()
    pipe.send(None)


def _shares(values: Sequence[float]) -> dict[str, float]:
    ordered = sorted(values)
    at = {share: ordered[min(len(ordered) - 1, len(ordered) * share // 100)] for share in (50, 99)}
    return {
        "p50_ms": round(at[50], 2),
        "p99_ms": round(at[99], 2),
        "max_ms": round(ordered[-1], 2),
    }


def _connected(port: int) -> pymysql.connections.Connection[Any]:
    return pymysql.connect(
        host="127.0.0.1", port=port, user="root", autocommit=True, ssl_disabled=True
    )


def _cpu_s(process_id: int) -> float:
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


_MEASURES = {
    "throughput": _throughput,
    "whole": _wholes,
    "latency": _latency,
    "statements": _statements,
}


if __name__ == "__main__":
    main()
