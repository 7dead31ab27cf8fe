"""What `binlane serve` costs beside its source, as JSON lines: CPU, commits a second, latency, memory.

A private MariaDB is the source, `binlane serve` a process of its own, sysbench the load where it is
installed and a few clients of our own where it is not. Each figure stands beside the source's own.

    python -m benchmarks.serve [--only NAME ...] [--seconds N] [--megabytes N] [--directory DIR]

`cpu`: CPU seconds for 1,000 commits into one binlog and into ten, and the commits a second that
both keep up with. `latency`: from the answer to a COMMIT until its event group stands in the binlog
file and until a dump client has it. `backlog`: megabytes of the source's log for a CPU second while
catching up. `memory`: the most that ten binlogs take for one large transaction.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any, Self

import pymysql

from binlane.live.provision.private_server import SOURCE_OPTIONS, PrivateServer

_NAMES = ("cpu", "latency", "backlog", "memory")
_RATES = (200, 2000)
_TICKS = os.sysconf("SC_CLK_TCK")
_OPTIONS = (*SOURCE_OPTIONS, "--max-connections=200", "--innodb-buffer-pool-size=256M")
_GTID = 162
_FRAME = 4
_COM_BINLOG_DUMP = 18
_SANDBOX = "sbtest"


def main() -> None:
    """Measure what was asked for."""
    given = _options().parse_args()
    with tempfile.TemporaryDirectory(prefix="binlane-bench-", dir=given.directory) as place:
        for name in given.only or _NAMES:
            for count in (10,) if name == "memory" else (1, 10):
                with _setting(Path(place) / f"{name}{count}", count) as setting:
                    for line in _MEASURES[name](setting, given):
                        head = {"benchmark": "serve", "what": name, "binlogs": count}
                        print(json.dumps(head | line | {"load": os.getloadavg()[0]}), flush=True)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", choices=_NAMES, help="what to measure; all by default")
    parser.add_argument("--seconds", type=float, default=20, help="of load for each figure")
    parser.add_argument("--megabytes", type=int, default=300, help="of the backlog")
    parser.add_argument("--large", type=int, default=2048, help="megabytes of one transaction")
    parser.add_argument("--directory", help="where servers and binlogs are kept")
    return parser


@dataclass
class _Setting:
    """A source and a binlane before it."""

    source: PrivateServer
    binlane: subprocess.Popen[bytes]
    port: int
    data_dir: Path
    names: list[str]

    def binlog(self, statement: str) -> tuple[tuple[Any, ...], ...]:
        return _execute(self.port, statement)

    def run(self, *statements: str) -> tuple[tuple[Any, ...], ...]:
        return _execute(self.source.port, *statements)

    def commits(self) -> int:
        """The last sequence of the source."""
        position = str(self.run("SELECT @@gtid_binlog_pos")[0][0])
        return int(position.rpartition("-")[2] or 0)

    def wait(self) -> None:
        """Until all binlogs have everything."""
        position = self.run("SELECT @@gtid_binlog_pos")[0][0]
        while any(row[3] != position for row in self.binlog("SHOW BINLOGS")):
            time.sleep(0.02)

    def cpu_s(self) -> tuple[float, float]:
        """Of binlane and of its source, so far."""
        return _cpu_s(self.binlane.pid), _cpu_s(self.source.process_id)


@contextmanager
def _setting(place: Path, count: int) -> Iterator[_Setting]:
    place.mkdir(parents=True)
    with PrivateServer.start(place, name="source", options=_OPTIONS) as source:
        _execute(source.port, f"CREATE DATABASE {_SANDBOX}")
        port_file, config = place / "port", place / "binlane.toml"
        config.write_text(
            f'data_dir = "data"\n[source]\nurl = "mariadb://root@127.0.0.1:{source.port}"\n'
            "[listen]\nport = 0\n"
        )
        command = [sys.executable, "-m", "binlane", "serve", "--config", str(config)]
        with (place / "log").open("wb") as log:
            binlane = subprocess.Popen(
                [*command, "--port-file", str(port_file)], stdout=log, stderr=log
            )
        try:
            while not port_file.exists():
                if binlane.poll() is not None:
                    raise SystemExit((place / "log").read_text())
                time.sleep(0.05)
            port = int(port_file.read_text())
            names = [f"b{number}" for number in range(count)]
            for name in names:
                _execute(port, f"CREATE BINLOG '{name}'")
            yield _Setting(source, binlane, port, place / "data", names)
        finally:
            binlane.send_signal(signal.SIGTERM)
            binlane.wait()


def _cpu(setting: _Setting, given: argparse.Namespace) -> Iterator[dict[str, object]]:
    """CPU of both for a load at full speed, and how fast both together are."""
    with _Load(setting.source) as load:
        setting.wait()
        before, commits, start = setting.cpu_s(), setting.commits(), time.monotonic()
        load.run(given.seconds)
        done = setting.commits() - commits
        loaded_s = time.monotonic() - start
        setting.wait()
        taken_s = time.monotonic() - start
        after = setting.cpu_s()
    yield {
        "load_by": load.name,
        "commits": done,
        "binlane_cpu_s_per_1000": round(1000 * (after[0] - before[0]) / done, 3),
        "source_cpu_s_per_1000": round(1000 * (after[1] - before[1]) / done, 3),
        "source_commits_per_s": round(done / loaded_s),
        "sustained_commits_per_s": round(done / taken_s),
        "binlane_mb": _memory_mb(setting.binlane.pid),
    }


def _latency(setting: _Setting, given: argparse.Namespace) -> Iterator[dict[str, object]]:
    """From the answer to a COMMIT on, at some rates, with a dump client on one binlog."""
    setting.run(f"CREATE TABLE {_SANDBOX}.t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(100))")
    setting.wait()
    name = setting.names[0]
    file, position = next(row[1:3] for row in setting.binlog("SHOW BINLOGS") if row[0] == name)
    path = setting.data_dir / "binlogs" / name / str(file)
    context = multiprocessing.get_context("spawn")
    for rate in _RATES:
        before = setting.cpu_s()[0]
        position = next(row[2] for row in setting.binlog("SHOW BINLOGS") if row[0] == name)
        count = max(1, int(given.seconds * rate))
        writers = max(1, rate // 250)
        watch: Queue[dict[int, float]] = context.Queue()
        dump: Queue[dict[int, float]] = context.Queue()
        first = setting.commits() + 1
        readers = [
            context.Process(target=_watch, args=(path, int(position), first, count, watch)),
            context.Process(
                target=_dump, args=(setting.port, str(file), int(position), first, count, dump)
            ),
        ]
        for reader in readers:
            reader.start()
        time.sleep(1.5)
        given_out: Queue[dict[int, float]] = context.Queue()
        clients = [
            context.Process(
                target=_commit,
                args=(setting.source.port, count // writers, rate / writers, given_out),
            )
            for _ in range(writers)
        ]
        start = time.monotonic()
        for client in clients:
            client.start()
        committed: dict[int, float] = {}
        for _ in clients:
            committed |= given_out.get()
        taken_s = time.monotonic() - start
        for client in clients:
            client.join()
        setting.run(f"INSERT INTO {_SANDBOX}.t (v) VALUES ('the last')")
        arrived = {"file": watch.get(), "dump": dump.get()}
        for reader in readers:
            reader.join()
        for what, at in arrived.items():
            delays = sorted(
                1000 * max(0.0, at[number] - when)
                for number, when in committed.items()
                if number in at
            )
            yield {
                "until": what,
                "rate": rate,
                "reached_rate": round(len(committed) / taken_s),
                "groups": len(delays),
                **{f"p{share}_ms": round(_share(delays, share), 2) for share in (50, 90, 99)},
                "max_ms": round(delays[-1], 2),
                "binlane_cpu_ms_per_commit": round(
                    1000 * (setting.cpu_s()[0] - before) / max(1, len(committed)), 3
                ),
            }


def _share(values: Sequence[float], percent: int) -> float:
    return values[min(len(values) - 1, len(values) * percent // 100)]


def _backlog(setting: _Setting, given: argparse.Namespace) -> Iterator[dict[str, object]]:
    """A binlog that was stopped catches up, for small transactions and for large ones."""
    for what in ("oltp", "bulk"):
        for name in setting.names:
            setting.binlog(f"STOP BINLOG '{name}'")
        begin = _log_bytes(setting)
        if what == "oltp":
            with _Load(setting.source) as load:
                begin = _log_bytes(setting)
                while _log_bytes(setting) - begin < given.megabytes << 20:
                    load.run(10)
        else:
            setting.run(
                f"CREATE TABLE {_SANDBOX}.bulk (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(200))"
            )
            while _log_bytes(setting) - begin < given.megabytes << 20:
                setting.run(
                    f"INSERT INTO {_SANDBOX}.bulk (v) SELECT REPEAT(MD5(seq), 5) "
                    f"FROM {_SANDBOX}.seq_1_to_20000"
                )
        megabytes = (_log_bytes(setting) - begin) / (1 << 20)
        before, start = setting.cpu_s()[0], time.monotonic()
        for name in setting.names:
            setting.binlog(f"START BINLOG '{name}'")
        setting.wait()
        cpu_s = setting.cpu_s()[0] - before
        yield {
            "log": what,
            "megabytes": round(megabytes),
            "mb_per_cpu_s": round(megabytes / cpu_s, 1),
            "mb_per_s": round(megabytes / (time.monotonic() - start), 1),
            "binlane_mb": _memory_mb(setting.binlane.pid),
        }


def _memory(setting: _Setting, given: argparse.Namespace) -> Iterator[dict[str, object]]:
    """One transaction of some gigabytes."""
    setting.run(
        f"CREATE TABLE {_SANDBOX}.large (id INT AUTO_INCREMENT PRIMARY KEY, v LONGBLOB)",
        f"USE {_SANDBOX}",
        "BEGIN",
        *(
            "INSERT INTO large (v) SELECT REPEAT('x', 1 << 20) FROM seq_1_to_64"
            for _ in range(given.large // 64)
        ),
        "COMMIT",
    )
    before = setting.cpu_s()[0]
    setting.wait()
    yield {
        "transaction_mb": given.large,
        "binlane_mb": _memory_mb(setting.binlane.pid),
        "binlane_cpu_s": round(setting.cpu_s()[0] - before, 1),
    }


_MEASURES = {"cpu": _cpu, "latency": _latency, "backlog": _backlog, "memory": _memory}


class _Load:
    """Transactions at full speed: sysbench's oltp_write_only, else clients of our own."""

    def __init__(self, source: PrivateServer) -> None:
        self._source = source
        self._sysbench = shutil.which("sysbench")
        self.name = "sysbench oltp_write_only" if self._sysbench else "own"

    def __enter__(self) -> Self:
        if self._sysbench:
            self._call("prepare")
        else:
            _execute(
                self._source.port,
                f"CREATE TABLE {_SANDBOX}.own (id INT AUTO_INCREMENT PRIMARY KEY, v CHAR(120))",
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self._sysbench:
            self._call("cleanup")

    def run(self, seconds: float) -> None:
        if self._sysbench:
            self._call("run", f"--time={int(seconds)}")
            return
        ends_s = time.monotonic() + seconds
        clients = [threading.Thread(target=self._write, args=(ends_s,)) for _ in range(8)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()

    def _write(self, ends_s: float) -> None:
        with _connected(self._source.port) as session, session.cursor() as cursor:
            cursor.execute("SET autocommit = 0")
            while time.monotonic() < ends_s:
                for _ in range(4):
                    cursor.execute(f"INSERT INTO {_SANDBOX}.own (v) VALUES (REPEAT('x', 120))")
                session.commit()

    def _call(self, *arguments: str) -> None:
        assert self._sysbench is not None, "it was found"
        command = [
            *(self._sysbench, "oltp_write_only", "--db-driver=mysql", "--threads=8"),
            *("--mysql-host=127.0.0.1", f"--mysql-port={self._source.port}", "--mysql-user=root"),
            *(f"--mysql-db={_SANDBOX}", "--tables=4", "--table-size=10000", *arguments),
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _commit(port: int, count: int, rate: float, out: Queue[dict[int, float]]) -> None:
    """Commit at a rate; when each was answered, by its sequence."""
    at: dict[int, float] = {}
    with _connected(port) as session, session.cursor() as cursor:
        cursor.execute("SET session_track_system_variables = 'last_gtid'")
        start = time.monotonic()
        for number in range(count):
            time.sleep(max(0.0, start + number / rate - time.monotonic()))
            cursor.execute(f"INSERT INTO {_SANDBOX}.t (v) VALUES (REPEAT('x', 100))")
            now_s = time.monotonic()
            cursor.execute("SELECT @@last_gtid")
            row: Any = cursor.fetchone()
            at[int(row[0].rpartition("-")[2])] = now_s
    out.put(at)


def _watch(path: Path, position: int, first: int, count: int, out: Queue[dict[int, float]]) -> None:
    """When the group of each sequence stood in a file."""
    at: dict[int, float] = {}
    with path.open("rb") as file:
        while not at or max(at) < first + count:
            size = os.fstat(file.fileno()).st_size
            if size == position:
                time.sleep(0.0002)
                continue
            now_s, offset = time.monotonic(), 0
            data = os.pread(file.fileno(), size - position, position)
            while len(data) - offset >= 19:
                (length,) = struct.unpack_from("<I", data, offset + 9)
                if length < 19 or len(data) - offset < length:
                    break
                if data[offset + 4] == _GTID:
                    at[struct.unpack_from("<Q", data, offset + 19)[0]] = now_s
                offset += length
            position += offset
            if max(at, default=0) - first >= count - 1:
                break
    out.put(at)


def _dump(  # where, from where on, and how far
    port: int, file: str, position: int, first: int, count: int, out: Queue[dict[int, float]]
) -> None:
    """When a dump client had the group of each sequence."""
    at: dict[int, float] = {}
    with _connected(port) as session:
        with session.cursor() as cursor:
            cursor.execute("SET @mariadb_slave_capability = 4, @master_binlog_checksum = 'CRC32'")
        body = struct.pack("<IHI", position, 0, 4_000_000_000) + file.encode()
        connection: Any = session
        connection._execute_command(_COM_BINLOG_DUMP, body)  # noqa: SLF001  # it knows no dumps
        data, last = b"", first + count - 1
        # PyMySQL reads packet by packet, which takes longer than the event group takes to come.
        while last not in at:
            data += connection._rfile.read1(1 << 16)  # noqa: SLF001  # it knows no dumps
            now_s, offset = time.monotonic(), 0
            while len(data) - offset >= _FRAME + 1 + 19:
                length = int.from_bytes(data[offset : offset + 3], "little")
                if len(data) - offset < _FRAME + length:
                    break
                event = offset + _FRAME + 1
                if data[event + 4] == _GTID:
                    at[struct.unpack_from("<Q", data, event + 19)[0]] = now_s
                offset += _FRAME + length
            data = data[offset:]
        connection._force_close()  # noqa: SLF001  # it knows no dumps
    out.put(at)


def _log_bytes(setting: _Setting) -> int:
    return sum(int(row[1]) for row in setting.run("SHOW BINARY LOGS"))


def _connected(port: int) -> pymysql.connections.Connection[Any]:
    return pymysql.connect(host="127.0.0.1", port=port, user="root", autocommit=True)


def _execute(port: int, *statements: str) -> tuple[tuple[Any, ...], ...]:
    with _connected(port) as session, session.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return tuple(cursor.fetchall())


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _memory_mb(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) >> 10


if __name__ == "__main__":
    main()
