"""An hour of everything at once behind and beside the port, with kills of all that can be killed.

`python -m tests.soak --seconds 3600 --seed 1` beside MariaDB, `--mysql` beside MySQL, `--server FOLDER`
beside the MariaDB that is unpacked there. Eight sessions through the port and two beside it write:
rows, DDL, renames within and across the edge of a scope, XA, temporary tables, programs. Binlogs of
all three formats, and one of a scope, have replicas; others are altered, made and dropped all the
while. `serve`, the processes of its port and the source are killed, its disk is full at times.

All rests at times, and in the end. Each replica must then have the tables that the source's own log
makes on a server that follows the source; each binlog must hold every group of that log once and in
order; what is rows must be, event by event, what `binlane route` makes of the source's files.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import pymysql

from binlane.binlogs.store.stored_groups import StoreReader, read_groups
from binlane.binlogs.store.verify import verify
from binlane.live.provision.private_server import PrivateServer
from binlane.live.provision.server_programs import ServerProgram
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.types import EventType
from tests.live_load import SECRET, Load
from tests.live_oracle import differences, source_files
from tests.port_load import PortLoad
from tests.port_replicas import SAFE, FollowedBinlogs, replica_status
from tests.port_story import out_of_order, source_groups
from tests.replica_load import ReplicaLoad
from tests.replica_matrix import Replica, follow
from tests.serve_process import ADMIN, PASSWORD, wait_until, worker_processes
from tests.servers import (
    UnpackedMariadb,
    Xid,
    end_lost_xa,
    end_of,
    execute,
    prepared,
)

_SETTINGS: Final = """
[http]
port = 0
[binlog]
max_binlog_size = 4194304
sync_binlog = 1
"""
_DEFINITIONS: Final = (
    "ALTER BINLOG 'moving' IGNORE ALL, ADD LOG(shop)",
    "ALTER BINLOG 'moving' IGNORE ALL, ADD LOG(crm)",
    "ALTER BINLOG 'moving' LOG ALL, ADD IGNORE(crm)",
    "ALTER BINLOG 'moving' IGNORE ALL, ADD LOG(shop.a, crm.b)",
    "ALTER BINLOG 'moving' LOG ALL",
    "STOP BINLOG 'moving'",
    *("START BINLOG 'moving'",) * 2,
    "CREATE BINLOG IF NOT EXISTS 'brief' LOG(shop), FORMAT='MIXED'",
    "ALTER BINLOG IF EXISTS 'brief' FORMAT='STATEMENT'",
    "ALTER BINLOG IF EXISTS 'brief' LOG ALL, FORMAT='ROW'",
    "DROP BINLOG IF EXISTS 'brief'",
    *(f"FLUSH BINARY LOGS '{name}'" for name in ("statement", "mixed", "row", "orders", "moving")),
    "FLUSH BINARY LOGS",
)
_OUTSIDE: Final = (b"crm.", b"`crm`", b"\x03crm\x00", SECRET.encode())
"""What no byte of the binlog `orders` may be of."""
_ROWS: Final = ("row", "orders", "moving")
"""Binlogs that `route` makes of the source's files, too."""
_ROOM: Final = "6g"
_LOCK_WAIT: Final = 1205
_UNKNOWN_XID: Final = 1397
_REST_TIMEOUT_S: Final = 900.0
_SESSIONS: Final = (
    "SELECT id FROM information_schema.processlist WHERE user = 'root' AND id <> CONNECTION_ID()"
)
_END_OF_XA: Final = re.compile(rb"XA (?:COMMIT|ROLLBACK) X'(\w*)',X'(\w*)',(\d+)")
_XA_ENDS: Final = (b"XA COMMIT ", b"XA ROLLBACK ")
_XA_BYTES_MAX: Final = 400
_UNLOGGED_S: Final = 15.0
_KILLS: Final = {"mariadb": ("", "QUERY ", "HARD ", "SOFT "), "mysql": ("", "QUERY ")}
_STATUS: Final = {"mariadb": "SHOW MASTER STATUS", "mysql": "SHOW BINARY LOG STATUS"}
_TABLES: Final = (
    "SELECT CONCAT('`', TABLE_SCHEMA, '`.`', REPLACE(TABLE_NAME, '`', '``'), '`')"
    " FROM information_schema.TABLES"
    " WHERE TABLE_TYPE IN ('BASE TABLE', 'SEQUENCE', 'SYSTEM VERSIONED')"
    " AND TABLE_SCHEMA NOT IN"
    " ('mysql', 'sys', 'information_schema', 'performance_schema', 'binlane')"
)


@dataclass(frozen=True, slots=True)
class Follower:
    """A replica, and of what.

    Attributes:
        server: It.
        binlog: Of binlane; empty for the source's own log.
        is_whole: It has all databases, else `shop`.
    """

    server: PrivateServer
    binlog: str
    is_whole: bool = True


class Soak:
    """The servers and processes of one run.

    Attributes:
        counts: What was done to whom.
        loads: What sessions did, by load.
    """

    def __init__(
        self,
        stack: ExitStack,
        directory: Path,
        *,
        flavor: str,
        seed: int,
        workers: int = 2,
        program: ServerProgram | None = None,
        pause_s: float = 0.15,
    ) -> None:
        """Start all; the stack stops it.

        Args:
            stack: Takes what is to be stopped.
            directory: Where it all lives.
            flavor: `mariadb` or `mysql`.
            seed: Of what is done by lot, but for when it strikes.
            workers: Processes of the port.
            program: Of source and replicas; by default that of the flavor that is here.
            pause_s: Longest wait of a session between two of its works.
        """
        self.counts: Counter[str] = Counter()
        self.loads: dict[str, Counter[str]] = {}
        self._directory = directory
        self._flavor = flavor
        self._seed = seed
        self._pause_s = pause_s
        self._chance = random.Random(seed)
        self._phases = 0
        self._failures: list[BaseException] = []
        self._reading = threading.Lock()
        self._read: dict[Path, int] = {}
        self._ended: set[Xid] = set()
        self._unlogged: defaultdict[str, dict[Xid, float]] = defaultdict(dict)
        self._disk = _Disk(stack, directory / "serve")
        self._binlogs = FollowedBinlogs(
            stack,
            directory,
            SAFE,
            flavor=flavor,
            workers=workers,
            extra=_SETTINGS,
            program=program,
            keeps_data=True,
        )
        self._source, self._serve = self._binlogs.source, self._binlogs.serve
        self._behind = len(source_groups(self._source))
        self._followers = [
            Follower(server, name.lower()) for name, server in self._binlogs.replicas.items()
        ]
        self._follow_by_gtid()
        self._serve.execute_as_root("CREATE BINLOG 'moving' LOG(crm)")
        PortLoad(self._serve, seed=seed, through=0).prepare()
        ReplicaLoad(self._source, (), seed=seed).prepare()
        Load(self._source, writers=1, seed=seed).prepare()

    def _follow_by_gtid(self) -> None:
        """A replica of a scope, and one of the source itself."""
        execute(self._source, f"CREATE USER to_orders@'%' IDENTIFIED BY '{PASSWORD}'")
        self._serve.execute_as_root(
            "CREATE BINLOG 'orders' LOG(shop)", "GRANT READ ON BINLOG 'orders' TO 'to_orders'@'%'"
        )
        (begin,) = (
            row[3] for row in self._serve.execute_as_root("SHOW BINLOGS") if row[0] == "orders"
        )
        self._orders = self._binlogs.start_replica("orders", 40)
        follow(Replica("orders", self._orders, "gtid", "orders"), self._serve.port, begin)
        self._truth = self._binlogs.start_replica("truth", 41)
        _follow_source(self._truth, self._source)
        self._followers += [
            Follower(self._orders, "orders", is_whole=False),
            Follower(self._truth, ""),
        ]

    @property
    def kills(self) -> int:
        """SIGKILLs so far."""
        return sum(count for what, count in self.counts.items() if what.startswith("kills of "))

    def live(self, seconds: float, kills_max: int) -> None:
        """Let sessions work and everything be struck, until a time is over or kills are done."""
        self._phases += 1
        seed = self._seed + self._phases * 7919
        through = partial(self._serve.connect, "root", "")
        programs = PortLoad(
            self._serve, seed=seed, through=4, beside=1, is_safe=True, pause_s=self._pause_s
        )
        renames = ReplicaLoad(self._source, [through] * 4, seed=seed, pause_s=self._pause_s)
        rows = Load(self._source, writers=1, seed=seed, pause_s=self._pause_s)
        until_s = time.monotonic() + seconds
        with ExitStack() as running:
            for load in (programs, renames, rows):
                running.enter_context(load)
            running.enter_context(self._beside(self._define, self._finish_lost_xa, self._heal))
            while time.monotonic() < until_s and self.kills < kills_max:
                time.sleep(self._chance.uniform(0.1, 2.5))
                self._strike()
                if self._failures:
                    break
            self._disk.mend()
        if self._failures:
            raise self._failures[0]
        for name, load in (("programs", programs), ("renames", renames), ("rows", rows)):
            self.loads.setdefault(name, Counter()).update(load.counts)

    @contextmanager
    def _beside(self, *works: Callable[[], None]) -> Iterator[None]:
        over = threading.Event()

        def repeat(work: Callable[[], None]) -> None:
            try:
                while not over.wait(random.uniform(0.1, 1.0)):
                    with suppress(pymysql.MySQLError, OSError):
                        work()
            except BaseException as error:
                self._failures.append(error)
                raise

        threads = [threading.Thread(target=repeat, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            over.set()
            for thread in threads:
                thread.join()

    # What is done to them -------------------------------------------------------------------------

    def _strike(self) -> None:
        strikes: Mapping[Callable[[], None], int] = {
            self._kill_serve: 30,
            self._kill_worker: 46,
            self._kill_source: 12,
            self._kill_session: 16,
            self._end_serve: 2,
            self._restart_source: 1,
            self._fill_disk: 3,
        }
        (strike,) = self._chance.choices(list(strikes), list(strikes.values()))
        strike()

    def _kill_serve(self) -> None:
        self._serve.kill()
        self.counts["kills of serve"] += 1
        while self._chance.random() < 0.3:
            self._serve.spawn()
            time.sleep(self._chance.uniform(0, 2.5))
            self._serve.kill()
            self.counts["kills of serve"] += 1
            self.counts["of these while it started"] += 1
        self._serve.start()

    def _kill_worker(self) -> None:
        workers = worker_processes(self._serve)
        if workers:
            with suppress(ProcessLookupError):
                os.kill(self._chance.choice(workers), signal.SIGKILL)
                self.counts["kills of workers"] += 1

    def _kill_source(self) -> None:
        self._source.kill()
        self.counts["kills of the source"] += 1
        time.sleep(self._chance.choice((0.0, 0.0, 1.0)))
        self._source.restart()

    def _kill_session(self) -> None:
        with suppress(pymysql.MySQLError):
            sessions = execute(self._source, _SESSIONS)
            if sessions:
                (number,) = self._chance.choice(sessions)
                what = self._chance.choice(_KILLS[self._flavor])
                execute(self._source, f"KILL {what}{number}")
                self.counts["sessions and statements that were killed"] += 1

    def _end_serve(self) -> None:
        status = self._serve.stop()
        assert status == 0, f"serve ended with {status}\n{self._serve.log[-4000:]}"
        self._serve.start()
        self.counts["ends of serve"] += 1

    def _restart_source(self) -> None:
        self._source.restart()
        self.counts["restarts of the source"] += 1

    def _fill_disk(self) -> None:
        if not self._disk.fill():
            return
        self.counts["full disks"] += 1
        time.sleep(self._chance.uniform(0.5, 4.0))
        is_killed = self._chance.random() < 0.5
        if is_killed:
            self._serve.kill()
            self.counts["kills of serve"] += 1
            self.counts["of these on a full disk"] += 1
        self._disk.mend()
        if is_killed:
            self._serve.start()

    # What goes on beside them ---------------------------------------------------------------------

    def _define(self) -> None:
        with closing(self._serve.connect("root", "")) as session, session.cursor() as cursor:
            for statement in random.choices(_DEFINITIONS, k=5):
                cursor.execute(statement)
                self.counts["statements on binlogs"] += 1
                time.sleep(random.uniform(0, 0.5))

    def _finish_lost_xa(self) -> None:
        ends = (partial(execute, self._source), self._serve.execute_as_root)
        self.counts["prepared transactions of lost sessions"] += end_lost_xa(
            self._source, random.choice(ends)
        )
        time.sleep(2)

    def _heal(self) -> None:
        for follower in self._followers:
            self._heal_one(follower)

    def _heal_one(self, follower: Follower) -> None:
        """Do what an operator does behind any server that was killed with XA transactions."""
        replica = follower.server
        status = replica_status(replica)
        errno = status.get("Last_SQL_Errno")
        if errno == _UNKNOWN_XID and self._flavor == "mariadb":
            self._skip_second_end(replica, str(status["Last_SQL_Error"]))
        if errno in (0, _LOCK_WAIT):
            self._finish_unlogged(replica)
        if errno == _LOCK_WAIT and self._flavor == "mysql":
            self._finish_ahead(replica)
        if errno == _LOCK_WAIT:
            self.counts["replicas that waited for a prepared transaction"] += 1
            execute(replica, "START REPLICA" if self._flavor == "mysql" else "START SLAVE")

    def _finish_unlogged(self, replica: PrivateServer) -> None:
        """End on a replica what the source has ended without a word in its log.

        MariaDB does that to XA transactions that it was killed with: after its recovery an
        XA COMMIT is executed, and not logged, so that its own replicas wait for ever, too.
        """
        here = prepared(replica)
        left = here - prepared(self._source) if here else here
        left = left - self._logged_ends() if left else left
        # One that is being ended is listed no more, and not logged yet.
        waits = self._unlogged[replica.name] = {
            xid: self._unlogged[replica.name].get(xid, time.monotonic()) for xid in left
        }
        for xid, since_s in sorted(waits.items()):
            if time.monotonic() > since_s + _UNLOGGED_S:
                execute(replica, f"XA {end_of(xid)} {xid.sql}")
                self.counts["XA that the source did not log"] += 1

    def _finish_ahead(self, replica: PrivateServer) -> None:
        """End on a replica that waits for a lock what the log ends behind where it stands.

        MySQL warns of it (1592, ER_BINLOG_UNSAFE_XA): the text of a prepared XA transaction locks
        all that it looks at. A source that was killed has locks of the changed rows only by then,
        and lets others pass before the end. The replica passes over a GTID that it has.
        """
        left = prepared(replica)
        left -= prepared(self._source) if left else left
        ends = ended_xa(self._source) if left else {}
        for xid in sorted(left & ends.keys()):
            gtid, verb = ends[xid]
            execute(replica, f"SET gtid_next = '{gtid}'", f"XA {verb} {xid.sql}")
            self.counts["XA that a replica had to end ahead"] += 1

    def _skip_second_end(self, replica: PrivateServer, error: str) -> None:
        """Let a replica pass over the end of an XA transaction that the source has logged twice.

        MariaDB does that to one that it was killed with between log and engine: it is prepared
        again after its recovery, so that its own replicas stop, too.
        """
        found = _END_OF_XA.search(error.encode())
        logs = (Path(path).read_bytes() for path in source_files(self._source))
        if found and sum(log.count(found[0]) for log in logs) > 1:
            self.counts["XA that the source logged twice"] += 1
            execute(replica, "STOP SLAVE", "SET GLOBAL sql_slave_skip_counter = 1", "START SLAVE")

    def _logged_ends(self) -> set[Xid]:
        """The XA transactions whose ends stand in the source's log."""
        with self._reading:
            for path in map(Path, source_files(self._source)):
                with path.open("rb") as file:
                    file.seek(self._read.get(path, 0))
                    data = file.read()
                self._ended.update(map(_xid_of, _END_OF_XA.findall(data)))
                # The last one may be cut.
                self._read[path] = max(0, self._read.get(path, 0) + len(data) - _XA_BYTES_MAX)
            return set(self._ended)

    # What must be so then -------------------------------------------------------------------------

    def problems_at_rest(self) -> list[str]:
        """What differs or went wrong so far, while no session works; a line each."""
        self._serve.execute_as_root("START BINLOG 'moving'", "DROP BINLOG IF EXISTS 'brief'")
        self._end_prepared()
        for name in ("statement", "mixed", "row", "orders", "moving"):
            self._serve.wait_until_complete(name, timeout_s=_REST_TIMEOUT_S)
        # Tables come into its changing scopes with their rows.
        self._serve.execute_as_root("ACKNOWLEDGE BINLOG INCIDENTS FOR 'moving'")
        found = self._health()
        ends = {
            row[0]: (row[1], int(row[2])) for row in self._serve.execute_as_root("SHOW BINLOGS")
        }
        ((file, position, *_),) = execute(self._source, _STATUS[self._flavor])
        ends[""] = str(file), int(position)
        found += [
            f"{each.server.name}: {why}"
            for each in self._followers
            if (why := self._stopped(each, ends[each.binlog]))
        ]
        truth = checksums(self._truth)
        for each in self._followers:
            wanted = truth if each.is_whole else _of_shop(truth)
            found += _differing(each.server.name, checksums(each.server), wanted)
        found += [f"verify: {fault}" for fault in verify([self._serve.data_dir])]
        if "Traceback" in self._serve.log:
            found.append(self._serve.log[self._serve.log.index("Traceback") :][:6000])
        self.counts["times that all was compared"] += 1
        return found

    def problems_at_the_end(self) -> list[str]:
        """What binlogs lack or have too much, and what stands in them that must not; behind all."""
        found = []
        wanted = source_groups(self._source)
        groups = list(wanted)[self._behind :]
        for name in ("statement", "mixed", "row"):
            held = self._serve.gtids(name)
            found += out_of_order(name, groups, held, wanted)
            self.counts[f"groups in {name}"] = len(held)
        store = StoreReader(self._serve.data_dir)
        for name in ("statement", "mixed", "row", "orders"):
            paths = [file.path for file in store.files(name)]
            found += [
                f"{name}: an incident at {group.file}:{group.position}"
                for group in read_groups(paths)
                if any(event.header.type_code == EventType.INCIDENT for event in group.events)
            ]
        held_bytes = self._serve.binlog_bytes("orders")
        found += [f"orders holds {each!r}" for each in _OUTSIDE if each in held_bytes]
        status = self._serve.stop()
        if status:
            found.append(f"serve ended with {status}")
        oracle = self._directory / "oracle"
        found += differences(self._source, self._serve.data_dir, oracle, names=_ROWS)
        self.counts["groups of the source"] = len(groups)
        return found

    def _health(self) -> list[str]:
        try:
            wait_until(lambda: self._serve.get("/healthz")[0] == 200)
        except AssertionError:
            return [f"/healthz: {self._serve.get('/healthz')}"]
        return []

    def _end_prepared(self) -> None:
        """Leave no prepared transaction at the source, nor at replicas what the source lacks."""

        def is_over() -> bool:
            end_lost_xa(self._source)
            return not prepared(self._source)

        wait_until(is_over)

    def _stopped(self, follower: Follower, end: tuple[str, int]) -> str:
        """Wait until a replica is at the end; why it does not come there, else nothing."""
        status: dict[str, Any] = {}

        def is_over() -> bool:
            nonlocal status
            self._heal_one(follower)
            status = replica_status(follower.server)
            at = status["Relay_Source_Log_File"], int(status["Exec_Source_Log_Pos"])
            return at == end or bool(_fatal(status))

        with suppress(AssertionError):
            wait_until(is_over, _REST_TIMEOUT_S)
        at = status["Relay_Source_Log_File"], int(status["Exec_Source_Log_Pos"])
        return "" if at == end else f"stands at {at}, not {end}: {_fatal(status) or status}"

    def said(self) -> Counter[str]:
        """What `serve` has logged as a warning or an error, numbers left out."""
        kinds: Counter[str] = Counter()
        for line in self._serve.log.splitlines():
            if re.search(r"\b(WARNING|ERROR|CRITICAL)\b", line):
                kinds[re.sub(r"'[^']*'", "'…'", re.sub(r"\d+", "#", line))[:160]] += 1
        return kinds


class _Disk:
    """A file system of the store's own, where one can be mounted."""

    def __init__(self, stack: ExitStack, path: Path) -> None:
        self._path = path
        path.mkdir(parents=True)
        command = ["mount", "-t", "tmpfs", "-o", f"size={_ROOM}", "tmpfs", str(path)]
        try:
            self._is_mounted = not subprocess.run(
                command, check=False, capture_output=True
            ).returncode
        except OSError:
            self._is_mounted = False
        if self._is_mounted:
            stack.callback(self._unmount)

    def _unmount(self) -> None:
        """Leave what it holds in its place."""
        kept = self._path.with_name("kept")
        shutil.copytree(self._path, kept)
        subprocess.run(["umount", "-l", self._path], check=True)
        self._path.rmdir()
        kept.rename(self._path)

    def fill(self) -> bool:
        """Let there be no room but for a little; False where that cannot be."""
        if not self._is_mounted:
            return False
        used = shutil.disk_usage(self._path).used
        self._resize(str(used + random.choice((0, 4096, 65536, 400_000))))
        return True

    def mend(self) -> None:
        """Let there be room again."""
        if self._is_mounted:
            self._resize(_ROOM)

    def _resize(self, size: str) -> None:
        # What was written meanwhile may be more by now.
        command = ["mount", "-o", f"remount,size={size}", str(self._path)]
        subprocess.run(command, check=False, capture_output=True)


def ended_xa(source: PrivateServer) -> dict[Xid, tuple[str, str]]:
    """The XA transactions whose ends stand in a source's log: the end's GTID, COMMIT or ROLLBACK."""
    found = {}
    for group in read_groups(list(map(Path, source_files(source)))):
        for event in group.events:
            body = event.body
            if isinstance(body, QueryEvent) and body.query.startswith(_XA_ENDS):
                (xid,) = map(_xid_of, _END_OF_XA.findall(body.query))
                found[xid] = str(group.gtid), body.query.split()[1].decode()
    return found


def _xid_of(parts: tuple[bytes, bytes, bytes]) -> Xid:
    """An XA transaction by what `_END_OF_XA` finds."""
    gtrid, bqual, kind = parts
    return Xid(bytes.fromhex(gtrid.decode()), bytes.fromhex(bqual.decode()), int(kind))


def checksums(server: PrivateServer) -> dict[str, object]:
    """The checksum of each table that is no system's, by its quoted name."""
    names = [str(name) for (name,) in execute(server, _TABLES)]
    return {name: execute(server, f"CHECKSUM TABLE {name}")[0][1] for name in names}


def _follow_source(replica: PrivateServer, source: PrivateServer) -> None:
    """From the beginning of its log."""
    if replica.program.scheme == "mysql":
        execute(
            replica,
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={source.port}, "
            f"SOURCE_USER='{ADMIN}', SOURCE_PASSWORD='{PASSWORD}', SOURCE_SSL=0, "
            "GET_SOURCE_PUBLIC_KEY=1, SOURCE_CONNECT_RETRY=1, SOURCE_RETRY_COUNT=100000, "
            "SOURCE_AUTO_POSITION=1",
            "START REPLICA",
        )
        return
    execute(
        replica,
        f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={source.port}, "
        f"MASTER_USER='{ADMIN}', MASTER_PASSWORD='{PASSWORD}', MASTER_CONNECT_RETRY=1, "
        "MASTER_USE_GTID=slave_pos, MASTER_SSL_VERIFY_SERVER_CERT=0",
        "START SLAVE",
    )


def _fatal(status: Mapping[str, Any]) -> str:
    """What a replica does not get over by itself."""
    is_running = status.get("Replica_IO_Running", status.get("Slave_IO_Running")) != "No"
    return str(status["Last_SQL_Error"] or ("" if is_running else status["Last_IO_Error"]))


def _of_shop(sums: Mapping[str, object]) -> dict[str, object]:
    return {name: each for name, each in sums.items() if name.startswith("`shop`")}


def _differing(name: str, has: Mapping[str, object], wanted: Mapping[str, object]) -> list[str]:
    return [
        f"{name}: {table} differs"
        if table in has and table in wanted
        else f"{name}: {table} is only {'here' if table in has else 'at the source'}"
        for table in sorted(set(has) | set(wanted))
        if has.get(table) != wanted.get(table)
    ]


def soaked(
    directory: Path,
    *,
    flavor: str,
    seconds: float,
    seed: int,
    kills_max: int = 1_000_000,
    rest_every_s: float = 600.0,
    workers: int = 2,
    program: ServerProgram | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> tuple[Soak, list[str]]:
    """One run on servers of its own; what was wrong, a line each.

    Args:
        directory: Where it all lives.
        flavor: `mariadb` or `mysql`.
        seconds: For which sessions work.
        seed: Of what is done by lot.
        kills_max: So many end it earlier.
        rest_every_s: After which all is compared.
        workers: Processes of the port.
        program: Of source and replicas.
        say: Is told how it goes.
    """
    with ExitStack() as stack:
        soak = Soak(stack, directory, flavor=flavor, seed=seed, workers=workers, program=program)
        found: list[str] = []
        left_s = seconds
        while left_s > 0 and soak.kills < kills_max and not found:
            began_s = time.monotonic()
            soak.live(min(left_s, rest_every_s), kills_max)
            left_s -= time.monotonic() - began_s
            say(f"{soak.kills} kills, {left_s:.0f} s are left; all rests")
            found = soak.problems_at_rest()
            say(f"{dict(soak.counts)}")
        return soak, found or soak.problems_at_the_end()


def main() -> int:
    """Run one; what was wrong is printed, and its servers' data and binlogs are kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=1_000_000, help="so many end it earlier")
    parser.add_argument("--rest-every", type=float, default=600.0, metavar="SECONDS")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--mysql", action="store_true")
    parser.add_argument("--server", type=Path, help="folder of another MariaDB")
    parser.add_argument("--directory", type=Path)
    parser.add_argument("--keep", action="store_true")
    chosen = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="soak-", dir=chosen.directory))
    began_s = time.monotonic()
    soak, found = soaked(
        directory,
        flavor="mysql" if chosen.mysql else "mariadb",
        seconds=chosen.seconds,
        seed=chosen.seed,
        kills_max=chosen.kills,
        rest_every_s=chosen.rest_every,
        workers=chosen.workers,
        program=UnpackedMariadb(chosen.server) if chosen.server else None,
        say=_say,
    )
    _say(f"took {time.monotonic() - began_s:.0f} s: {soak.kills} kills; {dict(soak.counts)}")
    _say(f"loads: { {name: dict(each) for name, each in soak.loads.items()} }")
    _say("\n".join(f"{count:6d} {kind}" for kind, count in soak.said().most_common(40)))
    _say("\n".join(found) or "nothing is lost, doubled, leaked or different")
    if chosen.keep or found:
        _say(f"kept in {directory}")
    else:
        shutil.rmtree(directory)
    return 1 if found else 0


def _say(text: str) -> None:
    print(f"{time.strftime('%T')} {text}", flush=True)  # noqa: T201 - what it is run for


if __name__ == "__main__":
    raise SystemExit(main())
