"""Replicas of several servers, by file and by GTID, of scoped and unscoped binlogs, under a load.

`python -m tests.replica_matrix --seed 3 --seconds 60` tries one seed on MariaDB, `--mysql` on MySQL;
`--kills` kills binlane meanwhile. MariaDB 11.8 joins where `BINLANE_MARIADB118` names a folder that
it is unpacked in.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from binlane.live.provision.private_server import (
    MYSQL_SOURCE_OPTIONS,
    SOURCE_OPTIONS,
    PrivateServer,
)
from binlane.live.provision.server_programs import MARIADB, ServerProgram
from binlane.positions import GtidSet
from tests.judged_port import judged
from tests.lent_servers import LENT
from tests.port_replicas import replica_status
from tests.replica_load import OPTIONS, ReplicaLoad
from tests.serve_process import PASSWORD, ServeProcess, source_position, wait_until
from tests.servers import connect, execute, mariadb118_program, mysql_program

BINLOGS: Final = {"all": "", "orders": "LOG(shop)"}
"""By name the lists of a binlog."""
WAYS: Final = ("file", "gtid")
_END_TIMEOUT_S: Final = 400.0
_REPLICA_OPTIONS: Final = {
    "mariadb": (
        "--log-bin=own",
        "--log-slave-updates=ON",
        "--gtid-strict-mode=ON",
        "--slave-net-timeout=10",
        "--slave-parallel-threads=4",
    ),
    "mysql": (
        "--log-bin=own",
        "--gtid-mode=ON",
        "--enforce-gtid-consistency=ON",
        "--replica-net-timeout=10",
    ),
}


@dataclass(frozen=True)
class Replica:
    """One of the matrix.

    Attributes:
        name: `11.8-gtid-orders`.
        server: The server.
        way: Of `WAYS`.
        binlog: Of `BINLOGS`.
    """

    name: str
    server: PrivateServer
    way: str
    binlog: str

    @property
    def databases(self) -> Callable[[str], bool]:
        """Whether it has a database."""
        return (lambda _: True) if self.binlog == "all" else (lambda name: name == "shop")


@dataclass(frozen=True)
class Wanted:
    """A replica to be made: a program by its short name, a way and a binlog."""

    program: str
    way: str
    binlog: str


def wanted(flavor: str, *, is_whole: bool) -> list[Wanted]:
    """The replicas of a run: each program, way and binlog at least once, or all together."""
    if flavor == "mysql":
        programs = ["mysql"]
    else:
        programs = ["mariadb", *(["11.8"] if mariadb118_program() else [])]
    if is_whole:
        return [Wanted(each, way, name) for each in programs for way in WAYS for name in BINLOGS]
    pairs = [("file", "all"), ("gtid", "orders"), ("gtid", "all"), ("file", "orders")]
    return [
        Wanted(each, *pair)
        for number, each in enumerate(programs)
        for pair in pairs[2 * number : 2 * number + 2]
    ]


class Matrix:
    """A source, binlane before it, and replicas.

    Attributes:
        source: The source.
        serve: binlane.
        replicas: All.
        kills: How often binlane was killed.
    """

    def __init__(
        self,
        stack: ExitStack,
        directory: Path,
        flavor: str,
        replicas: Sequence[Wanted],
        *,
        option: str = "",
    ) -> None:
        """Start all; the stack stops them.

        Args:
            stack: Takes what is to be stopped.
            directory: Where it all lives.
            flavor: `mariadb` or `mysql`.
            replicas: Which ones.
            option: Of all binlogs, as CREATE BINLOG takes it.
        """
        self._stack, self._directory, self._flavor = stack, directory, flavor
        options = SOURCE_OPTIONS if flavor == "mariadb" else MYSQL_SOURCE_OPTIONS
        self.source = self._start((*options, *OPTIONS), flavor)
        self.serve: ServeProcess = stack.enter_context(judged(directory / "serve", self.source))
        self.kills = 0
        for name, lists in BINLOGS.items():
            user = f"to_{name}"
            execute(self.source, f"CREATE USER {user}@'%' IDENTIFIED BY '{PASSWORD}'")
            self.serve.execute_as_root(
                " ".join(filter(None, (f"CREATE BINLOG '{name}'", lists, option))),
                f"GRANT READ ON BINLOG '{name}' TO '{user}'@'%'",
            )
        self.replicas: list[Replica] = []
        for number, one in enumerate(replicas, start=30):
            name = f"{one.program}-{one.way}-{one.binlog}"
            extra = (f"--server-id={number}", *_REPLICA_OPTIONS[flavor], *OPTIONS)
            server = self._start(extra, one.program)
            self.replicas.append(Replica(name, server, one.way, one.binlog))

    def follow(self) -> None:
        """Let all replicas begin at the binlogs' beginnings, from which on they have everything."""
        begins = {row[0]: row[3] for row in self.serve.execute_as_root("SHOW BINLOGS")}
        for replica in self.replicas:
            follow(replica, self.serve.port, begins[replica.binlog])

    @contextmanager
    def being_killed(self, chance: random.Random, every_s: tuple[float, float]) -> Iterator[None]:
        """Kill binlane again and again while the block runs; it is there at its end."""
        over = threading.Event()

        def kill() -> None:
            while not over.wait(chance.uniform(*every_s)):
                self.serve.kill()
                self.kills += 1
                self.serve.start()

        thread = threading.Thread(target=kill, name="kills")
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def problems(self) -> list[str]:
        """How replicas differ from the source once they have everything, a line each."""
        truth = tables(self.source)
        for name in BINLOGS:
            self.serve.wait_until_complete(name, timeout_s=_END_TIMEOUT_S)
        found, done = [], source_position(self.source)
        for replica in self.replicas:
            expected = {k: v for k, v in truth.items() if replica.databases(k[0])}
            found += [f"{replica.name}: {one}" for one in _differences(replica, expected)]
            if replica.way == "gtid" and isinstance(done, GtidSet):
                found += [f"{replica.name}: {one}" for one in _gaps(replica, done)]
        if "Traceback" in self.serve.log:
            found.append(self.serve.log[self.serve.log.index("Traceback") :][:4000])
        return found

    def connects(self, through: int, beside: int) -> list[Callable[[], Connection[Cursor]]]:
        """For a load: so many sessions through the port, and on the source."""
        return [
            *([lambda: self.serve.connect("root", "")] * through),
            *([lambda: connect(self.source)] * beside),
        ]

    def _start(self, options: Sequence[str], program: str) -> PrivateServer:
        programs: Mapping[str, Callable[[], ServerProgram | None]] = {
            "mariadb": lambda: MARIADB,
            "11.8": mariadb118_program,
            "mysql": mysql_program,
        }
        found = programs[program]()
        assert found is not None, f"there is no {program} here"
        return self._stack.enter_context(LENT.lend(options, found))


def follow(replica: Replica, port: int, begin: str) -> None:
    """Let a replica begin at the beginning of its binlog.

    Args:
        replica: It.
        port: binlane's.
        begin: What was done before its binlog.
    """
    user = f"to_{replica.binlog}"
    if replica.server.program.scheme == "mysql":
        by_file = f"SOURCE_LOG_FILE='{replica.binlog}.000001', SOURCE_LOG_POS=4"
        # By GTID the file name says which binlog, among several.
        how = f"SOURCE_AUTO_POSITION=0, {by_file}" if replica.way == "file" else ""
        if replica.way == "gtid":
            execute(replica.server, f"SET GLOBAL gtid_purged = '{begin}'")
            how = "SOURCE_AUTO_POSITION=1"
        execute(
            replica.server,
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={port}, "
            f"SOURCE_USER='{user}', SOURCE_PASSWORD='{PASSWORD}', SOURCE_SSL=0, "
            f"GET_SOURCE_PUBLIC_KEY=1, SOURCE_CONNECT_RETRY=1, SOURCE_RETRY_COUNT=1000, {how}",
            "START REPLICA",
        )
        return
    how = f"MASTER_USE_GTID=no, MASTER_LOG_FILE='{replica.binlog}.000001', MASTER_LOG_POS=4"
    if replica.way == "gtid":
        execute(replica.server, f"SET GLOBAL gtid_slave_pos = '{begin}'")
        how = "MASTER_USE_GTID=slave_pos"
    # From 11.4 on it would be verified unless told otherwise.
    how += ", MASTER_SSL_VERIFY_SERVER_CERT=0"
    execute(
        replica.server,
        f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='{user}', "
        f"MASTER_PASSWORD='{PASSWORD}', MASTER_CONNECT_RETRY=1, {how}",
        "START SLAVE",
    )


def tables(server: PrivateServer) -> dict[tuple[str, str], object]:
    """The checksum of each table of the load, by database and name."""
    found = execute(
        server,
        "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE ="
        " 'BASE TABLE' AND (TABLE_SCHEMA IN ('shop', 'crm') OR TABLE_SCHEMA LIKE 'extra%')",
    )
    return {
        (database, name): execute(server, f"CHECKSUM TABLE {database}.{name}")[0][1]
        for database, name in found
    }


def _differences(replica: Replica, expected: dict[tuple[str, str], object]) -> list[str]:
    status: dict[str, Any] = {}
    has: dict[tuple[str, str], object] = {}

    def is_over() -> bool:
        nonlocal status, has
        status = replica_status(replica.server)
        try:
            has = tables(replica.server)
        except pymysql.MySQLError:  # a table that has gone meanwhile
            return False
        return bool(_error(status)) or has == expected

    with suppress(AssertionError):  # what differs tells it
        wait_until(is_over, _END_TIMEOUT_S)
    if has == expected:
        return []
    names = sorted(has.keys() | expected.keys())
    differing = [f"{d}.{t}" for d, t in names if has.get((d, t)) != expected.get((d, t))]
    at = status.get("Relay_Source_Log_File"), status.get("Exec_Source_Log_Pos")
    return [f"{', '.join(differing)} differ at {at}; {_error(status) or 'no error'}"]


def _gaps(replica: Replica, done: GtidSet) -> list[str]:
    """What of the source's GTIDs a replica lacks, also of what it has no part of."""
    left = done

    def is_over() -> bool:
        nonlocal left
        left = done.subtract(GtidSet.parse(replica_status(replica.server)["Executed_Gtid_Set"]))
        return not left

    with suppress(AssertionError):
        wait_until(is_over, _END_TIMEOUT_S)
    return [f"lacks {left}"] if left else []


def _error(status: dict[str, Any]) -> str:
    # An error of the connection passes: binlane is killed meanwhile.
    is_fatal = status.get("Replica_IO_Running", status.get("Slave_IO_Running")) == "No"
    return str(status.get("Last_SQL_Error") or (is_fatal and status.get("Last_IO_Error")) or "")


def tried(
    directory: Path,
    *,
    seed: int,
    flavor: str = "mariadb",
    is_whole: bool = False,
    through: int = 2,
    beside: int = 2,
    length: int | None = 60,
    seconds: float = 0.0,
    kills: bool = False,
    option: str = "",
) -> tuple[Matrix, ReplicaLoad, list[str]]:
    """One load on servers of its own; how replicas differ then.

    Args:
        directory: Where it all lives.
        seed: Of the load.
        flavor: Of the source.
        is_whole: All replicas, not some.
        through: Sessions through the port.
        beside: Sessions on the source.
        length: Statements of each; None for as many as `seconds` has time for.
        seconds: See `length`.
        kills: binlane is killed meanwhile.
        option: Of all binlogs, as CREATE BINLOG takes it.
    """
    chance = random.Random(seed)
    with ExitStack() as stack:
        replicas = wanted(flavor, is_whole=is_whole)
        matrix = Matrix(stack, directory, flavor, replicas, option=option)
        load = ReplicaLoad(
            matrix.source,
            matrix.connects(through, beside),
            seed=seed,
            length=length,
            pause_s=0.01 if length is None else 0.0,
        )
        matrix.follow()
        load.prepare()
        with ExitStack() as running:
            if kills:
                running.enter_context(matrix.being_killed(chance, (1.0, 6.0)))
            running.enter_context(load)
            if length is None:
                time.sleep(seconds)
        return matrix, load, matrix.problems()


def main() -> None:
    """Try a seed, or one after the other until the time is over."""
    parser = argparse.ArgumentParser(prog="python -m tests.replica_matrix", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each seed's load")
    parser.add_argument("--through", type=int, default=3)
    parser.add_argument("--beside", type=int, default=3)
    parser.add_argument("--mysql", action="store_true")
    parser.add_argument("--some", action="store_true", help="not all replicas")
    parser.add_argument("--kills", action="store_true")
    parser.add_argument("--minutes", type=float, default=0.0, help="go on with further seeds")
    parser.add_argument("--directory", type=Path)
    parser.add_argument("--keep", action="store_true")
    chosen = parser.parse_args()
    end_s = time.monotonic() + chosen.minutes * 60
    seed = chosen.seed
    while True:
        directory = Path(tempfile.mkdtemp(prefix="replica-matrix-", dir=chosen.directory))
        matrix, load, found = tried(
            directory,
            seed=seed,
            flavor="mysql" if chosen.mysql else "mariadb",
            is_whole=not chosen.some,
            through=chosen.through,
            beside=chosen.beside,
            length=None,
            seconds=chosen.seconds,
            kills=chosen.kills,
        )
        _say(f"seed {seed}: {dict(load.counts)}, errors {dict(load.errors)}, {matrix.kills} kills")
        _say("\n".join(found) or f"all {len(matrix.replicas)} replicas are equal")
        if chosen.keep or found:
            _say(f"kept in {directory}")
        else:
            shutil.rmtree(directory)
        seed += 1
        if time.monotonic() >= end_s:
            return


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - what it is run for


if __name__ == "__main__":
    main()
