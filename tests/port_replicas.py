"""Replicas of a STATEMENT, a MIXED and a ROW binlog under random sessions, and how they differ.

`python -m tests.port_replicas --seed 3 --through 4 --beside 2 --length 100` tries one seed.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pymysql

from binlane.live.provision.private_server import (
    MYSQL_SOURCE_OPTIONS,
    SOURCE_OPTIONS,
    PrivateServer,
)
from binlane.live.provision.server_programs import MARIADB, ServerProgram
from tests.judged_port import judged
from tests.lent_servers import LENT
from tests.port_load import OPTIONS, PortLoad, checksums
from tests.serve_process import ADMIN, PASSWORD, ServeProcess, wait_until
from tests.servers import QUICK, connect, execute, mysql_program

SAFE: Final = ("STATEMENT", "MIXED", "ROW")
"""Formats whose replicas are equal if no statement is unsafe."""
UNSAFE: Final = ("MIXED", "ROW")
"""Formats whose replicas are equal whatever is run."""
_OWN_FORMATS: Final = {"STATEMENT": "ROW", "MIXED": "ROW", "ROW": "MIXED"}
"""By format of a binlog that of its replica's own log."""
REPLICA: Final = {
    "mariadb": (
        "--log-bin-trust-function-creators=1",
        "--slave-net-timeout=10",
        "--log-bin=own",
        "--log-slave-updates=ON",
    ),
    "mysql": (
        "--log-bin-trust-function-creators=1",
        "--skip-log-bin",
        "--gtid-mode=ON",
        "--enforce-gtid-consistency=ON",
        "--replica-parallel-workers=1",
    ),
}
"""By flavor the options of a server that is a replica."""
_STATUS: Final = {"mariadb": "SHOW MASTER STATUS", "mysql": "SHOW BINARY LOG STATUS"}
_END_TIMEOUT_S: Final = 120.0


class FollowedBinlogs:
    """A source, a port before it, binlogs of some formats and a replica of each.

    Attributes:
        source: The source.
        serve: The port.
        replicas: By format.
    """

    def __init__(
        self,
        stack: ExitStack,
        directory: Path,
        formats: Sequence[str],
        *,
        flavor: str = "mariadb",
        begins: bool = True,
        workers: int = 0,
        extra: str = "",
        program: ServerProgram | None = None,
        keeps_data: bool = False,
    ) -> None:
        """Start all; the stack stops them.

        Args:
            stack: Takes what is to be stopped.
            directory: Where it all lives.
            formats: Of the binlogs; also values of ROW_IMAGE.
            flavor: `mariadb` or `mysql`.
            begins: Replicas follow at once; else when they are compared.
            workers: Processes of the port.
            extra: Further sections of its configuration.
            program: Of source and replicas; by default that of the flavor that is here.
            keeps_data: Whether the data of the servers stay in the directory; else they are lent.
        """
        self.flavor = flavor
        self._program: ServerProgram = program or (
            MARIADB if flavor == "mariadb" else mysql_program()
        )
        self._stack = stack
        self._directory = directory
        self._keeps_data = keeps_data
        self._formats = tuple(formats)
        options = SOURCE_OPTIONS if flavor == "mariadb" else MYSQL_SOURCE_OPTIONS
        self.source = self.start("source", (*options, *OPTIONS))
        extra = f"[gateway]\nworkers = {workers}\n{extra}"
        self.serve: ServeProcess = stack.enter_context(
            judged(directory / "serve", self.source, extra=extra)
        )
        self.replicas: dict[str, PrivateServer] = {}
        self._truth: PrivateServer | None = None
        for one in formats:
            option = "FORMAT" if one in _OWN_FORMATS else "ROW_IMAGE"
            self.serve.execute_as_root(f"CREATE BINLOG '{one.lower()}' {option}='{one}'")
        if begins:
            self._begin()

    def _begin(self) -> None:
        for number, one in enumerate(self._formats, start=30):
            # Its own log, and the format of that, are no matter of what it follows.
            own = (
                (f"--binlog-format={_OWN_FORMATS.get(one, 'MIXED')}",)
                if self.flavor == "mariadb"
                else ()
            )
            replica = self.start_replica(one, number, *own)
            self.replicas[one] = replica
            follow(replica, self.serve.port, f"{one.lower()}.000001")

    def problems(self, wanted: Mapping[str, object] | None = None) -> list[str]:
        """How replicas differ from the source once they have everything, a line each.

        Args:
            wanted: Checksums that they must have; by default those of the source.
        """
        wanted = checksums(self.source) if wanted is None else wanted
        if not self.replicas:
            self._begin()
        found = []
        for one, replica in self.replicas.items():
            name = one.lower()
            self.serve.wait_until_complete(name, timeout_s=_END_TIMEOUT_S)
            stopped = self._caught_up(replica, name)
            if stopped:
                found.append(f"{one}: {stopped}")
                continue
            has = checksums(replica)
            found += [
                f"{one}: {table} differs"
                if table in has and table in wanted
                else f"{one}: {table} is only on the {'replica' if table in has else 'source'}"
                for table in sorted(set(has) | set(wanted))
                if has.get(table) != wanted.get(table)
            ]
        return found

    def problems_by_log(self) -> list[str]:
        """How replicas differ from the source, but for what its own log lacks, too."""
        found = self.problems()
        return self.problems(self.logged()) if found else found

    def start(self, name: str, options: Sequence[str]) -> PrivateServer:
        """Start a server that the stack stops, or borrow one that it gives back."""
        if not self._keeps_data:
            return self._stack.enter_context(LENT.lend(options, self._program))
        server = PrivateServer.start(
            self._directory, name=name, options=(*QUICK, *options), program=self._program
        )
        self._stack.callback(server.kill)
        return server

    def start_replica(self, name: str, server_id: int, *options: str) -> PrivateServer:
        """Start a server that can be a replica."""
        own = (f"--server-id={server_id}", *REPLICA[self.flavor], *OPTIONS)
        return self.start(name, (*own, *options))

    def logged(self) -> Mapping[str, object]:
        """The checksums that the source's own log makes on a fresh server.

        Raises:
            AssertionError: If such a replica does not come to its end.
        """
        if self._truth is None:
            self._truth = self.start_replica("truth", 29)
            follow(self._truth, self.source.port, "binlog.000001")
        replica = self._truth
        ((file, position, *_),) = execute(self.source, _STATUS[self.flavor])
        stopped = self._stopped(replica, (str(file), int(position)))
        assert not stopped, stopped
        return checksums(replica)

    def _caught_up(self, replica: PrivateServer, name: str) -> str:
        """Wait until a replica has all of a binlog; why it stopped, if it did."""
        (row,) = (row for row in self.serve.execute_as_root("SHOW BINLOGS") if row[0] == name)
        return self._stopped(replica, (str(row[1]), int(row[2])))

    def _stopped(self, replica: PrivateServer, end: tuple[str, int]) -> str:
        status: Mapping[str, Any] = {}

        def is_there() -> bool:
            nonlocal status
            status = replica_status(replica)
            at = status["Relay_Source_Log_File"], int(status["Exec_Source_Log_Pos"])
            return bool(status["Last_SQL_Error"] or status["Last_IO_Error"]) or at == end

        try:
            wait_until(is_there, _END_TIMEOUT_S)
        except AssertionError:
            return f"not at {end} in time: {status}"
        error = status["Last_SQL_Error"] or status["Last_IO_Error"]
        if not error:
            return ""
        at = status["Relay_Source_Log_File"], status["Exec_Source_Log_Pos"]
        return f"stopped behind {at}: {error}"


def follow(replica: PrivateServer, port: int, file: str, position: int = 4) -> None:
    """Make a server a replica, with binlane's account.

    Args:
        replica: The server; it follows nobody.
        port: Of this machine, on which a server or `serve` listens.
        file: Where it begins.
        position: In it, in bytes.
    """
    if replica.program.scheme == "mysql":
        execute(
            replica,
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={port}, "
            f"SOURCE_USER='{ADMIN}', SOURCE_PASSWORD='{PASSWORD}', SOURCE_SSL=0, "
            f"GET_SOURCE_PUBLIC_KEY=1, SOURCE_AUTO_POSITION=0, SOURCE_LOG_FILE='{file}', "
            f"SOURCE_LOG_POS={position}, SOURCE_CONNECT_RETRY=1, SOURCE_RETRY_COUNT=100000",
            "START REPLICA",
        )
        return
    execute(
        replica,
        f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, "
        f"MASTER_USER='{ADMIN}', MASTER_PASSWORD='{PASSWORD}', MASTER_LOG_FILE='{file}', "
        f"MASTER_LOG_POS={position}, MASTER_CONNECT_RETRY=1, MASTER_SSL_VERIFY_SERVER_CERT=0",
        "START SLAVE",
    )


def replica_status(replica: PrivateServer) -> dict[str, Any]:
    """SHOW REPLICA STATUS by column, in MySQL's words."""
    is_mysql = replica.program.scheme == "mysql"
    with connect(replica) as session, session.cursor(pymysql.cursors.DictCursor) as cursor:
        cursor.execute("SHOW REPLICA STATUS" if is_mysql else "SHOW SLAVE STATUS")
        found: Any = cursor.fetchone() or {}
        return {key.replace("Master", "Source"): value for key, value in dict(found).items()}


def tried(
    directory: Path,
    *,
    seed: int,
    through: int,
    beside: int,
    length: int,
    is_safe: bool,
    flavor: str = "mariadb",
    workers: int = 0,
) -> tuple[PortLoad, list[str]]:
    """One load on servers of its own; the load, and how replicas differ then."""
    with ExitStack() as stack:
        formats = SAFE if is_safe else UNSAFE
        binlogs = FollowedBinlogs(stack, directory, formats, flavor=flavor, workers=workers)
        load = PortLoad(
            binlogs.serve,
            seed=seed,
            through=through,
            beside=beside,
            length=length,
            is_safe=is_safe,
        )
        load.prepare()
        with load:
            pass
        found = binlogs.problems_by_log()
        if "Traceback" in binlogs.serve.log:
            found.append(binlogs.serve.log[binlogs.serve.log.index("Traceback") :][:4000])
        return load, found


def main() -> None:
    """Try a seed; `--keep` leaves servers' data, binlogs and the sessions' statements."""
    parser = argparse.ArgumentParser(prog="python -m tests.port_replicas", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--through", type=int, default=4)
    parser.add_argument("--beside", type=int, default=1)
    parser.add_argument("--length", type=int, default=60)
    parser.add_argument("--unsafe", action="store_true", help="unsafe statements too")
    parser.add_argument("--mysql", action="store_true")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--directory", type=Path)
    parser.add_argument("--keep", action="store_true")
    chosen = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="port-replicas-", dir=chosen.directory))
    began_s = time.monotonic()
    load, found = tried(
        directory,
        seed=chosen.seed,
        through=chosen.through,
        beside=chosen.beside,
        length=chosen.length,
        is_safe=not chosen.unsafe,
        flavor="mysql" if chosen.mysql else "mariadb",
        workers=chosen.workers,
    )
    took_s = time.monotonic() - began_s
    _say(f"seed {chosen.seed}: {dict(load.counts)}, errors {dict(load.errors)}, {took_s:.0f} s")
    _say("\n".join(found) or "all replicas are equal")
    if chosen.keep:
        for number, log in enumerate(load.session_logs):
            (directory / f"session-{number}.log").write_text("\n".join(log), encoding="utf-8")
        _say(f"kept in {directory}")
    else:
        shutil.rmtree(directory)


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - what it is run for


if __name__ == "__main__":
    main()
