"""`binlane serve` as a process of its own, as operators run it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from binlane.binlogs.store.stored_groups import StoreReader, read_groups
from binlane.live.provision.private_server import PrivateServer
from binlane.positions import Position, parse_position
from tests.forked_binlane import FORKED_STARTS, ForkedBinlane
from tests.servers import execute

ADMIN = "binlane"
PASSWORD = "test-binlane"
_TIMEOUT_S = 120.0
_WORKERS = "BINLANE_GATEWAY_WORKERS"
"""Processes of the port, where a test's settings say nothing of them: none beside the main one, on
any machine, unless this variable says otherwise."""
_NOT_IN_TIME = 1205
"""Who may see a binlog is told once the source's statements on accounts were read."""


class ServeProcess:
    """A server of binlogs in a directory of its own, started and stopped as often as a test likes.

    Attributes:
        directory: Holds configuration, data and log.
        source: The captured server.
        port: Where it listens, the same after each start.
    """

    def __init__(
        self,
        directory: Path,
        source: PrivateServer,
        *,
        extra: str = "",
        capture: str = "",
        listen: str = "",
        source_host: str = "127.0.0.1",
        prefix: Sequence[str] = (),
        environment: Mapping[str, str] = MappingProxyType({}),
        is_forked: bool = True,
    ) -> None:
        """Prepare; `start` or `with` starts it.

        Args:
            directory: Is made.
            source: The server to capture.
            extra: Further sections of the configuration.
            capture: Further lines of its section `[source]`.
            listen: Further lines of its section `[listen]`.
            source_host: By which address the source is reached.
            prefix: A program with arguments that runs the command behind it.
            environment: Added to the process's.
            is_forked: Whether it may be forked from a process that has loaded its modules, where
                nothing is to run it or be added to its environment.
        """
        self.directory = directory
        self.source = source
        self.port = 0
        self._process: subprocess.Popen[bytes] | ForkedBinlane | None = None
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "secret").write_text(PASSWORD)
        self._extra = extra
        self._capture = capture
        self._listen = listen
        self._source_host = source_host
        self._prefix = tuple(prefix)
        self._is_forked = is_forked and not prefix and not environment
        self._environment = {_WORKERS: os.environ.get(_WORKERS, "0"), **environment}

    def configure(self, *, listen: str, extra: str) -> None:
        """Write other settings, for a start or a SIGHUP."""
        self._listen, self._extra = listen, extra
        self._configure()

    def _configure(self) -> Path:
        path = self.directory / "binlane.toml"
        path.write_text(
            'data_dir = "data"\n[source]\n'
            f'url = "{self.source.program.scheme}://{ADMIN}@{self._source_host}'
            f':{self.source.port}"\n'
            f'password_file = "secret"\n{self._capture}\n[listen]\nport = {self.port}\n{self._listen}\n'
            + self._extra
        )
        return path

    @property
    def data_dir(self) -> Path:
        return self.directory / "data"

    @property
    def log(self) -> str:
        path = self.directory / "serve.log"
        return path.read_text() if path.exists() else ""

    def start(self) -> Self:
        """Start it and wait until it takes logins."""
        self.spawn()
        ready = self.directory / "port"
        wait_until(lambda: ready.exists() or not self.is_running)
        assert ready.exists(), self.log
        self.port = int(ready.read_text())
        return self

    def spawn(self) -> None:
        """Start it and do not wait."""
        ready = self.directory / "port"
        ready.unlink(missing_ok=True)
        config = self._configure()
        arguments = ("serve", "--config", str(config), "--port-file", str(ready))
        output = self.directory / "serve.log"
        environment = os.environ | {"PYTHONUNBUFFERED": "1"} | self._variables
        if self._is_forked and FORKED_STARTS.are_on:
            self._process = ForkedBinlane(arguments, output, environment)
            return
        with output.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._prefix, sys.executable, "-m", "binlane", *arguments],
                stdout=log,
                stderr=log,
                env=environment,
            )

    @property
    def _variables(self) -> dict[str, str]:
        # They stand above the file, where a test may have named the number.
        is_told = "workers =" in self._extra
        return {
            name: value
            for name, value in self._environment.items()
            if name != _WORKERS or not is_told
        }

    @property
    def is_running(self) -> bool:
        """Whether the process lives."""
        return self._process is not None and self._process.poll() is None

    @property
    def process_id(self) -> int:
        """Of the running process."""
        assert self._process is not None, "it is not running"
        return self._process.pid

    @property
    def http_port(self) -> int:
        """Where it answers over HTTP, from its log."""
        *_, line = (line for line in self.log.splitlines() if "(HTTP)" in line)
        return int(line.split(" (HTTP)")[0].rpartition(":")[2])

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        """Ask over HTTP; status and text."""
        url = f"http://127.0.0.1:{self.http_port}{path}"
        try:
            with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def kill(self) -> None:
        """SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM; gives the exit status."""
        return self._end(signal.SIGTERM)

    def wait(self) -> int:
        """The exit status of a process that ends by itself."""
        assert self._process is not None
        return self._process.wait(_TIMEOUT_S)

    def _end(self, number: signal.Signals) -> int:
        assert self._process is not None
        self._process.send_signal(number)
        status = self._process.wait(_TIMEOUT_S)
        self._process = None
        return status

    def __enter__(self) -> Self:
        return self if self._process else self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self.kill()

    def connect(self, user: str = ADMIN, password: str = PASSWORD) -> Connection[Cursor]:
        """An ordinary MySQL client's session."""
        return pymysql.connect(
            host="127.0.0.1",
            port=self.port,
            user=user,
            password=password,
            autocommit=True,
            ssl_disabled=True,  # reading the machine's certificates takes longer than a session
        )

    def execute(self, *statements: str) -> tuple[tuple[Any, ...], ...]:
        """Run statements in a session of their own; the rows of the last one."""
        with self.connect() as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return tuple(cursor.fetchall())

    def execute_as_root(self, *statements: str) -> tuple[tuple[Any, ...], ...]:
        """Run statements in a session of the source's root; the rows of the last one."""
        with self.connect("root", "") as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return tuple(cursor.fetchall())

    def wait_until_complete(self, name: str, *, timeout_s: float = _TIMEOUT_S) -> str:
        """Wait until a binlog has everything that the source has; gives the source's position."""
        position = source_position(self.source)

        def is_complete() -> bool:
            # A session that ends may still leave a mark at the source.
            try:
                told = [row[3] for row in self.execute("SHOW BINLOGS") if row[0] == name]
            except pymysql.OperationalError as error:
                if error.args[0] != _NOT_IN_TIME:
                    raise
                return False
            if not told:
                return False
            reached: Position = parse_position(told[0], position.flavor)
            return reached.includes(position)

        wait_until(is_complete, timeout_s)
        return str(position)

    def gtids(self, name: str) -> list[str]:
        """The GTIDs in a binlog's files, in order."""
        paths = [file.path for file in StoreReader(self.data_dir).files(name)]
        return [str(group.gtid) for group in read_groups(paths) if group.gtid is not None]

    def binlog_bytes(self, name: str) -> bytes:
        """Everything that stands in a binlog's directory."""
        directory = self.data_dir / "binlogs" / name
        return b"".join(path.read_bytes() for path in sorted(directory.iterdir()))


_PRIVILEGES = {
    "mariadb": "SELECT, REPLICATION SLAVE, BINLOG ADMIN, BINLOG MONITOR",
    "mysql": "SELECT, REPLICATION SLAVE, BINLOG_ADMIN, REPLICATION CLIENT",
}


def create_account(source: PrivateServer) -> None:
    """The account of binlane on a source."""
    execute(
        source,
        f"CREATE USER {ADMIN}@'%' IDENTIFIED BY '{PASSWORD}'",
        f"GRANT {_PRIVILEGES[source.program.scheme]} ON *.* TO {ADMIN}@'%'",
    )


def worker_processes(serve: ServeProcess) -> list[int]:
    """The process ids of those that serve the port beside the one that was started."""
    main = serve.process_id
    return list(map(int, Path(f"/proc/{main}/task/{main}/children").read_text().split()))


def is_alive(process_id: int) -> bool:
    """Whether a process has not ended."""
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def source_position(source: PrivateServer) -> Position:
    """What a source has done."""
    scheme = source.program.scheme
    variable = "gtid_executed" if scheme == "mysql" else "gtid_binlog_pos"
    return parse_position(str(execute(source, f"SELECT @@{variable}")[0][0]), scheme)


def wait_until(is_so: Callable[[], bool], timeout_s: float = _TIMEOUT_S) -> None:
    """Wait until something is so; fail if it never is."""
    deadline = time.monotonic() + timeout_s
    pause_s = 0.01
    while not is_so():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, 0.05)
