"""`binlane serve` beside a server under load, as JSON lines: CPU, commits a second, latency, backlog.

A private MariaDB with `sync_binlog=1` takes sysbench's oltp_write_only; `serve` keeps one or ten
unscoped binlogs of it. Latency is from the return of a probe's COMMIT to the moment when its row has
come to a dump client; the same of the source's own dump stands beside it. A backlog is what the source
wrote while `serve` was away; its CPU has the start of the process in it.

    python -m benchmarks.serve [--seconds N] [--binlogs 1,10] [--rates 200,2000] [--parts P,…]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pymysql
from pymysql.cursors import Cursor

from benchmarks.logs import fill, server_of
from benchmarks.measuring import run
from binlane.client.account import account_at
from binlane.client.connection import ServerConnection
from binlane.client.dialogue import GTID_CAPABILITY, Account, Command, Dialogue, ask, log_in
from binlane.client.packet_flow import PacketFlow
from binlane.client.settings import ServerUrl
from binlane.codec.packets.commands import BinlogDump
from binlane.codec.packets.flags import DumpFlag
from binlane.errors import PeerError
from binlane.service.private_server import SOURCE_OPTIONS, PrivateServer

_USER: Final = "binlane"
_PASSWORD: Final = "bench-binlane"
_DURABLE: Final = ("--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1")
_TABLES: Final = 4
_ROWS: Final = 10_000
_THREADS: Final = 4
_PROBE: Final = b"probe:"
_PROBE_LENGTH: Final = 8
_PROBES_A_S: Final = 50
_TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")
_READY_S: Final = 60.0
_MIB: Final = 1 << 20


def main() -> None:
    """Print one line for each figure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=20, help="of load for each figure")
    parser.add_argument("--binlogs", default="1,10", help="how many, a list")
    parser.add_argument("--rates", default="200,2000", help="commits a second for latency, a list")
    parser.add_argument("--parts", default="cpu,latency,backlog")
    parser.add_argument("--megabytes", type=int, default=300, help="of each backlog")
    given = parser.parse_args()
    parts = given.parts.split(",")
    for count in map(int, given.binlogs.split(",")):
        if "cpu" in parts or "latency" in parts:
            with _running(_DURABLE, count) as stage:
                stage.prepare_sysbench()
                if "cpu" in parts:
                    _measure_cpu(stage, given.seconds)
                if "latency" in parts:
                    for rate in map(int, given.rates.split(",")):
                        _measure_latency(stage, rate, given.seconds)
    if "backlog" in parts:
        for name in ("oltp", "bulk"):
            _measure_backlog(name, given.megabytes)


@dataclass(slots=True)
class Stage:
    """A source, `serve`, and the binlogs there.

    Attributes:
        source: The server's address.
        source_pid: Of its process.
        serve: The process of `serve`.
        port: Where that listens.
        count: How many binlogs there are.
        directory: Where `serve` keeps its data.
    """

    source: tuple[str, int]
    source_pid: int
    serve: subprocess.Popen[bytes]
    port: int
    count: int
    directory: Path

    def prepare_sysbench(self) -> None:
        """Make the tables of the load and of the probes."""
        _execute(self.source, "CREATE DATABASE IF NOT EXISTS sbtest")
        _execute(self.source, "CREATE DATABASE IF NOT EXISTS bench")
        _execute(
            self.source,
            "CREATE TABLE bench.probe (id INT PRIMARY KEY AUTO_INCREMENT, mark CHAR(14))",
        )
        subprocess.run([*self._sysbench(), "prepare"], check=True, stdout=subprocess.DEVNULL)
        self.wait_until_complete()

    def load(self, seconds: int, rate: int = 0) -> subprocess.Popen[str]:
        """Begin the load; a rate of 0 is as fast as it goes."""
        command = [*self._sysbench(), f"--time={seconds}", f"--rate={rate}", "run"]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def _sysbench(self) -> list[str]:
        host, port = self.source
        return [
            *("sysbench", "oltp_write_only", "--db-driver=mysql", f"--mysql-host={host}"),
            *(f"--mysql-port={port}", "--mysql-user=root", f"--tables={_TABLES}"),
            *(f"--table-size={_ROWS}", f"--threads={_THREADS}"),
        ]

    def wait_until_complete(self, timeout_s: float = 600.0) -> float:
        """Wait until all binlogs have what the source has; gives the seconds that took."""
        begin = time.monotonic()
        done = _execute(self.source, "SELECT @@gtid_binlog_pos")[0][0]
        while time.monotonic() - begin < timeout_s:
            rows = _execute(("127.0.0.1", self.port), "SHOW BINLOGS", _USER, _PASSWORD)
            if rows and all(row[3] == done for row in rows):
                return time.monotonic() - begin
            time.sleep(0.02)
        raise TimeoutError(f"binlogs are at {[row[3] for row in rows]}, the source is at {done}")


@contextmanager
def _running(options: Sequence[str], count: int) -> Iterator[Stage]:
    """A source with `serve` beside it and so many binlogs."""
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        source = stack.enter_context(
            PrivateServer.start(work, name="source", options=(*SOURCE_OPTIONS, *options))
        )
        address = (source.host, source.port)
        _grant(address)
        stage = _serve(stack, work, address, _pid_of(source.port), start="now")
        for number in range(count):
            _execute(("127.0.0.1", stage.port), f"CREATE BINLOG 'b{number}'", _USER, _PASSWORD)
        stage.count = count
        yield stage


def _grant(address: tuple[str, int]) -> None:
    _execute(address, f"CREATE USER {_USER}@'%' IDENTIFIED BY '{_PASSWORD}'")
    _execute(
        address,
        f"GRANT SELECT, REPLICATION SLAVE, BINLOG ADMIN, BINLOG MONITOR ON *.* TO {_USER}@'%'",
    )


def _serve(
    stack: ExitStack, work: Path, source: tuple[str, int], pid: int, *, start: str, port: int = 0
) -> Stage:
    """Start `serve`, and wait until it listens."""
    (work / "secret").write_text(_PASSWORD)
    (work / "binlane.toml").write_text(
        f'data_dir = "data"\n[source]\nurl = "mariadb://{_USER}@{source[0]}:{source[1]}"\n'
        f'password_file = "secret"\nstart = "{start}"\n[listen]\nport = {port}\n'
    )
    ready = work / "port"
    ready.unlink(missing_ok=True)
    log = stack.enter_context((work / "serve.log").open("ab"))
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "binlane", "serve", "--config", str(work / "binlane.toml")),
            *("--port-file", str(ready)),
        ],
        stdout=log,
        stderr=log,
    )
    stack.callback(_end, process)
    deadline = time.monotonic() + _READY_S
    while not ready.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError((work / "serve.log").read_text())
        time.sleep(0.05)
    return Stage(source, pid, process, int(ready.read_text()), 0, work)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(30)
    process.kill()


def _measure_cpu(stage: Stage, seconds: int) -> None:
    """What 1,000 commits cost, at full load, and how many a second all binlogs keep up with."""
    serve, source = _cpu_s(stage.serve.pid), _cpu_s(stage.source_pid)
    commits, begin = _commits(stage), time.monotonic()
    _finish(stage.load(seconds))
    loaded_s = time.monotonic() - begin
    commits = _commits(stage) - commits
    behind_s = stage.wait_until_complete()
    thousands = commits / 1000
    _print(
        benchmark="serve_cpu",
        binlogs=stage.count,
        commits=commits,
        source_commits_a_s=round(commits / loaded_s),
        kept_up_commits_a_s=round(commits / (loaded_s + behind_s)),
        behind_at_the_end_s=round(behind_s, 2),
        serve_cpu_s_a_1000=round((_cpu_s(stage.serve.pid) - serve) / thousands, 3),
        source_cpu_s_a_1000=round((_cpu_s(stage.source_pid) - source) / thousands, 3),
        serve_rss_mib=_memory_mib(stage.serve.pid),
    )


def _measure_latency(stage: Stage, rate: int, seconds: int) -> None:
    """From a commit to its row at a dump client, of the first binlog and of the source."""
    serve_cpu, commits = _cpu_s(stage.serve.pid), _commits(stage)
    load = stage.load(seconds + 2, rate)
    time.sleep(1)
    file = _execute(("127.0.0.1", stage.port), "SHOW BINARY LOGS FOR 'b0'", _USER, _PASSWORD)[-1][0]
    own = _execute(stage.source, "SHOW MASTER STATUS")[0]
    ends = ("127.0.0.1", stage.port), stage.source
    ours = _Listener(ends[0], str(file), _end_of(stage, str(file)), 71)
    theirs = _Listener(ends[1], str(own[0]), int(own[1]), 72)
    sent = _probe(stage.source, seconds)
    time.sleep(1)
    _finish(load)
    commits = _commits(stage) - commits
    _print(
        benchmark="serve_latency",
        binlogs=stage.count,
        rate=rate,
        commits=commits,
        probes=len(sent),
        commit_to_replica_ms=_percentiles(sent, ours.seen),
        source_commit_to_replica_ms=_percentiles(sent, theirs.seen),
        serve_cpu_s_a_1000=round((_cpu_s(stage.serve.pid) - serve_cpu) / (commits / 1000), 3),
    )
    ours.close()
    theirs.close()
    stage.wait_until_complete()


def _end_of(stage: Stage, file: str) -> int:
    rows = _execute(("127.0.0.1", stage.port), "SHOW BINLOGS", _USER, _PASSWORD)
    return next(int(row[2]) for row in rows if row[1] == file)


def _probe(source: tuple[str, int], seconds: int) -> dict[int, float]:
    """Commit probes for so long; when each COMMIT returned, by its number."""
    sent: dict[int, float] = {}
    with _connect(source) as connection, connection.cursor() as cursor:
        until = time.monotonic() + seconds
        number = 0
        while (now := time.monotonic()) < until:
            cursor.execute(f"INSERT INTO bench.probe (mark) VALUES ('probe:{number:08d}')")
            sent[number] = time.monotonic()
            number += 1
            time.sleep(max(0.0, 1 / _PROBES_A_S - (time.monotonic() - now)))
    return sent


class _Listener:
    """A dump client that notes when probes come."""

    def __init__(self, address: tuple[str, int], file: str, position: int, server_id: int) -> None:
        self.seen: dict[int, float] = {}
        url = ServerUrl(user=_USER, host=address[0], port=address[1])
        flow = PacketFlow(_introduction(account_at(url, _PASSWORD)), peer=str(url))
        self._connection = ServerConnection(url, None)
        while flow.result is None:
            for payload in flow.packets(self._connection.read()):
                for step in flow.converse(payload):
                    self._connection.do(step)
        dump = BinlogDump(position=position, flags=DumpFlag(0), server_id=server_id, file=file)
        self._connection.do(flow.take_step(Command(dump.encode())))
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        rest, size = b"", len(_PROBE) + _PROBE_LENGTH
        with suppress(OSError, PeerError):
            while True:
                data = rest + self._connection.read()
                now = time.monotonic()
                at = data.find(_PROBE)
                while 0 <= at <= len(data) - size:
                    number = data[at + len(_PROBE) : at + size]
                    if number.isdigit():
                        self.seen.setdefault(int(number), now)
                    at = data.find(_PROBE, at + 1)
                rest = data[1 - size :]

    def close(self) -> None:
        """Go away."""
        self._connection.close()


def _introduction(account: Account) -> Dialogue[bool]:
    yield from log_in(account)
    yield from ask("SET @master_binlog_checksum = @@global.binlog_checksum", peer=account.peer)
    yield from ask(f"SET @mariadb_slave_capability = {GTID_CAPABILITY}", peer=account.peer)
    return True


def _percentiles(sent: dict[int, float], seen: dict[int, float]) -> dict[str, float]:
    taken = sorted(
        1000 * max(0.0, seen[number] - sent[number]) for number in sent if number in seen
    )
    if len(taken) < 2:
        return {"missing": len(sent) - len(taken)}
    cuts = statistics.quantiles(taken, n=100)
    return {
        "p50": round(cuts[49], 2),
        "p99": round(cuts[98], 2),
        "max": round(taken[-1], 2),
        "missing": len(sent) - len(taken),
    }


def _measure_backlog(name: str, megabytes: int) -> None:
    """Catching up on what the source wrote while `serve` was away, with one binlog."""
    with server_of(name) as account, ExitStack() as stack:
        address = (account.host, account.port)
        _grant(address)
        work = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        pid = _pid_of(account.port)
        with ExitStack() as first:
            stage = _serve(first, work, address, pid, start="now")
            _execute(("127.0.0.1", stage.port), "CREATE BINLOG 'b0'", _USER, _PASSWORD)
        file = fill(account, name, megabytes)
        size_mib = (account.directory / file).stat().st_size / _MIB
        since = time.monotonic()
        stage = _serve(stack, work, address, pid, start="now")
        stage.wait_until_complete()
        taken_s, cpu_s = time.monotonic() - since, _cpu_s(stage.serve.pid)
        _print(
            benchmark="serve_backlog",
            log=name,
            mib=round(size_mib),
            seconds=round(taken_s, 2),
            cpu_s_start_included=round(cpu_s, 2),
            mib_a_cpu_s=round(size_mib / cpu_s, 1),
            mariadb_binlog_mib_a_cpu_s=round(
                size_mib / _plain_reader_cpu_s(address, file, work), 1
            ),
            serve_rss_mib=_memory_mib(stage.serve.pid),
        )


def _plain_reader_cpu_s(address: tuple[str, int], file: str, work: Path) -> float:
    """What the official tool takes to copy the same file from the server."""
    host, port = address
    command = [
        *("mariadb-binlog", "--no-defaults", "--read-from-remote-server", "--raw", "--user=root"),
        *(f"--host={host}", f"--port={port}", f"--result-file={work}/copy-", file),
    ]
    return run(command).cpu_s


def _commits(stage: Stage) -> int:
    text = str(_execute(stage.source, "SELECT @@gtid_binlog_pos")[0][0])
    return int(text.rpartition("-")[2])


def _finish(load: subprocess.Popen[str]) -> None:
    text, _ = load.communicate()
    if load.returncode:
        raise RuntimeError(text)


def _execute(
    address: tuple[str, int], statement: str, user: str = "root", password: str = ""
) -> tuple[tuple[Any, ...], ...]:
    with _connect(address, user, password) as connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return tuple(cursor.fetchall())


def _connect(
    address: tuple[str, int], user: str = "root", password: str = ""
) -> pymysql.connections.Connection[Cursor]:
    return pymysql.connect(
        host=address[0], port=address[1], user=user, password=password, autocommit=True
    )


def _pid_of(port: int) -> int:
    """The process that listens on a port of this machine, of those that serve MariaDB or MySQL."""
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if f"--port={port}".encode() in words:
                return int(entry.name)
    raise ProcessLookupError(f"no server was started with --port={port}")


def _cpu_s(pid: int) -> float:
    """User and system time of a process, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_S


def _memory_mib(pid: int) -> int:
    """The most memory that a process had."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) // 1024
    return 0


def _print(**line: object) -> None:
    print(json.dumps({**line, "load": os.getloadavg()[0]}), flush=True)


if __name__ == "__main__":
    main()
