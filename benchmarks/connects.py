"""What a connection through the port costs beside one at the source, as JSON lines.

Clients connect, log in, ask `SELECT 1` and leave, and begin anew at once; with `--opening` they say before that
what a driver or framework says, and with `--insert` they write a row at the end. Direct connections and those
through the port take turns. `greeted`, `in` and `asked` are the milliseconds from the begin of a connection until
its greeting, the OK packet of its login, and its last answer are there; `port_cpu_us` and `routing_cpu_us` are as
in `benchmarks.port`, for one connection.

    python -m benchmarks.connects [--only relay row statement] [--clients N] [--seconds N] [--opening NAME]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import select
import socket
import tempfile
import time
from collections.abc import Sequence
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any, Final

from benchmarks.measuring import cpu_of_threads_s
from benchmarks.port import SETTINGS, serving
from binlane.client.authentication import CACHING_SHA2_PASSWORD
from binlane.log.codec.packets.commands import encode_query
from binlane.log.codec.packets.flags import Capability, Command
from binlane.log.codec.packets.framing import frame
from binlane.log.codec.packets.handshake import HandshakeResponse, SslRequest
from binlane.log.codec.packets.replies import ERR_MARK
from tests.serve_process import ServeProcess

OPENINGS: Final[dict[str, Sequence[str]]] = {
    "none": (),
    "pymysql": ["SET AUTOCOMMIT = 1"],
    "go": ["SET NAMES utf8mb4"],
    "django": (
        "SET NAMES utf8mb4",
        "set autocommit=0",
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "set autocommit=1",
    ),
    "sqlalchemy": (
        "SET NAMES utf8mb4",
        "SET AUTOCOMMIT = 0",
        "SELECT CAST('test plain returns' AS CHAR(60)) AS anon_1",
        "ROLLBACK",
        "SET AUTOCOMMIT = 1",
    ),
    "connector_j": (
        "SET character_set_results = NULL",
        "SET autocommit=1",
        "SET sql_mode='STRICT_TRANS_TABLES'",
        "SET SESSION TRANSACTION READ WRITE",
    ),
    "rails": ["SET NAMES utf8mb4, @@SESSION.sql_auto_is_null = 0, @@SESSION.wait_timeout = 9999"],
}
"""What drivers and frameworks say in a new connection, without their questions."""
INSERT: Final = "INSERT INTO bench.many (v) VALUES ('x')"
_CAPABILITIES: Final = (
    Capability.PROTOCOL_41
    | Capability.SECURE_CONNECTION
    | Capability.PLUGIN_AUTH
    | Capability.TRANSACTIONS
    | Capability.CONNECT_WITH_DB
)
_PROCESSES: Final = 2
_CHUNK: Final = 1 << 16
_HEAD: Final = 4
_EOF: Final = 0xFE
_EOF_LONGEST: Final = 9
_REST_S: Final = 0.5


class _Connection:
    """A connection from its begin to its end.

    Args:
        port: Port that it connects to.
        login: Bytes of the packet by which it logs in.
        asks: Bytes of its commands, each with True if its answer has rows.
    """

    def __init__(self, port: int, login: bytes, asks: Sequence[tuple[bytes, bool]]) -> None:
        self.times = [time.perf_counter()]
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setblocking(False)
        self._sends = [(login, False), *asks]
        self._is_rows = False
        self._data = b""

    def take(self) -> bool:
        """Take bytes, and send what is next; True if the last answer is there."""
        self._data += self.socket.recv(_CHUNK)
        if not self._is_whole():
            return False
        assert self._data[_HEAD] != ERR_MARK, self._data
        self._data = b""
        if len(self.times) < 3 or not self._sends:
            self.times.append(time.perf_counter())
        if not self._sends:
            return True
        packet, self._is_rows = self._sends.pop(0)
        self.socket.sendall(packet)
        return False

    def _is_whole(self) -> bool:
        data, at, ends = self._data, 0, 0
        while len(data) - at >= _HEAD:
            length = int.from_bytes(data[at : at + 3], "little")
            at += _HEAD + length
            if len(data) < at:
                return False
            if not self._is_rows:
                return True
            ends += data[at - length] == _EOF and length < _EOF_LONGEST
            if ends == 2:  # of columns and of rows
                return True
        return False


def come_and_go(
    port: int, count: int, seconds: float, texts: Sequence[str], plugin: str
) -> list[list[float]]:
    """Be some clients for a while; gives the three times of each connection in seconds."""
    head = SslRequest(capabilities=_CAPABILITIES, payload_max=1 << 24, character_set=45)
    response = HandshakeResponse(
        head=head,
        user="root",
        auth_response=b"",
        database="bench",
        plugin=plugin,
    )
    login = frame(response.encode(), 1)
    asks = [(frame(encode_query(text), 0), text.startswith("SELECT")) for text in texts]
    leaving = frame(bytes((Command.QUIT,)), 0)
    poll, now = select.epoll(), {}
    found: list[list[float]] = []

    def begin() -> None:
        one = _Connection(port, login, asks)
        now[one.socket.fileno()] = one
        poll.register(one.socket, select.EPOLLIN)

    for _ in range(count):
        begin()
    end = time.monotonic() + seconds
    while now:
        for number, _ in poll.poll():
            one = now[number]
            if one.take():
                found.append([each - one.times[0] for each in one.times[1:]])
                poll.unregister(number)
                del now[number]
                one.socket.sendall(leaving)
                one.socket.close()
                if time.monotonic() < end:
                    begin()
    return found


def _turn(
    pool: Pool, serve: ServeProcess, port: int, given: argparse.Namespace, texts: Sequence[str]
) -> dict[str, Any]:
    before = cpu_of_threads_s(serve.process_id)
    processes = min(_PROCESSES, given.clients)
    plugin = CACHING_SHA2_PASSWORD if given.mysql else "mysql_native_password"
    tasks = [(port, given.clients // processes, given.seconds, texts, plugin)] * processes
    times = [one for found in pool.starmap(come_and_go, tasks) for one in found]
    port_s, routing_s = (
        after - began
        for began, after in zip(before, cpu_of_threads_s(serve.process_id), strict=True)
    )
    line: dict[str, Any] = {
        "per_s": round(len(times) / given.seconds),
        "port_cpu_us": round(1e6 * port_s / len(times)),
        "routing_cpu_us": round(1e6 * routing_s / len(times)),
    }
    for place, name in enumerate(("greeted", "in", "asked")):
        ordered = sorted(one[place] for one in times)
        line[f"{name}_p50_ms"] = round(1e3 * ordered[len(ordered) // 2], 2)
        line[f"{name}_p99_ms"] = round(1e3 * ordered[len(ordered) * 99 // 100], 2)
    return line


def main() -> None:
    """Measure what was asked for."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", choices=SETTINGS, default=["row", "statement"])
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=3, help="of each turn")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--opening", nargs="*", choices=OPENINGS, default=["none"])
    parser.add_argument("--insert", action="store_true", help="write a row at the end")
    parser.add_argument("--workers", type=int, default=0, help="processes of the port")
    parser.add_argument("--mysql", action="store_true", help="a MySQL instead of a MariaDB")
    parser.add_argument("--directory", help="where servers and binlogs are kept")
    given, _ = parser.parse_known_args()  # those of the other benchmarks
    with (
        tempfile.TemporaryDirectory(prefix="binlane-bench-", dir=given.directory) as place,
        multiprocessing.get_context("spawn").Pool(_PROCESSES) as pool,
    ):
        for name in given.only:
            with serving(Path(place) / name, name, given) as serve:
                serve.execute_as_root(
                    "CREATE DATABASE bench",
                    "CREATE TABLE bench.many (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(100))",
                )
                for opening in given.opening:
                    texts = [*OPENINGS[opening], "SELECT 1", *([INSERT] if given.insert else ())]
                    for _ in range(given.rounds):
                        for way, port in (("direct", serve.source.port), ("port", serve.port)):
                            time.sleep(_REST_S)
                            head = {"benchmark": "connects", "setting": name, "way": way}
                            head |= {"opening": opening, "insert": given.insert}
                            line = _turn(pool, serve, port, given, texts)
                            tail = {"clients": given.clients, "load": os.getloadavg()[0]}
                            print(json.dumps(head | line | tail), flush=True)


if __name__ == "__main__":
    main()
