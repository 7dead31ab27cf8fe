"""A MariaDB or MySQL server of one's own: for the demo, the tests and `serve --embedded`.

It lives in a directory that the caller gives, listens on 127.0.0.1 and a socket in that directory,
reads no option file and leaves nothing behind but that directory. `root` has no password, so the
server holds nothing but what its starter puts there, and reads and writes no other files.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from binlane.errors import ConfigError, PeerError
from binlane.live.provision.server_programs import MARIADB, ServerProgram

SOURCE_OPTIONS: Final = (
    "--log-bin=binlog",
    "--server-id=1",
    "--binlog-format=ROW",
    "--binlog-row-image=FULL",
    "--binlog-row-metadata=FULL",
    "--gtid-strict-mode=ON",
)
"""Options that make a MariaDB a source whose log says everything: rows in full, with names and types."""

MYSQL_SOURCE_OPTIONS: Final = (
    "--log-bin=binlog",
    "--server-id=1",
    "--binlog-row-image=FULL",
    "--binlog-row-metadata=FULL",
    "--gtid-mode=ON",
    "--enforce-gtid-consistency=ON",
)
"""The same for a MySQL, which logs rows unless it is told otherwise."""

_START_TIMEOUT_S: Final = 60.0
_STOP_TIMEOUT_S: Final = 60.0
_POLL_S: Final = 0.01
_SOCKET_PATH_MAX: Final = 100  # sockaddr_un holds 107 bytes
_GREETING_VERSION: Final = 10
_PORT_ATTEMPTS: Final = 5
_PORT_TAKEN: Final = "Bind on TCP/IP port"
_HOST: Final = "127.0.0.1"


class PrivateServer:
    """A running `mariadbd` or `mysqld`, stopped at the end of its `with` block.

    Attributes:
        name: The name of its directory.
        directory: Holds `data/`, `error.log` and, where its path is short enough, `server.sock`.
        program: The program that runs as the server.
        options: Options given to it beyond those that make it private.
        port: The port that it listens on at 127.0.0.1.
        socket_path: The path of its Unix socket.

    Args:
        start_timeout_s: The longest time until it accepts connections, a recovery included.
    """

    def __init__(
        self,
        directory: Path,
        *,
        name: str,
        options: Sequence[str],
        port: int,
        program: ServerProgram = MARIADB,
        start_timeout_s: float = _START_TIMEOUT_S,
    ) -> None:
        self.name = name
        self.directory = directory
        self.program = program
        self.options = tuple(options)
        self.port = port
        self.socket_path = _socket_path(directory)
        self._start_timeout_s = start_timeout_s
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    def start(
        cls,
        directory: Path,
        *,
        name: str,
        options: Sequence[str] = (),
        port: int | None = None,
        program: ServerProgram = MARIADB,
    ) -> Self:
        """Start a server on fresh data, or on the data that an earlier server of this name left.

        Args:
            directory: The folder in which `name/` is made. Servers that share it are installed once
                and copied.
            name: The name of the server, such as `source`.
            options: Options of the command line, such as `SOURCE_OPTIONS` of a MariaDB.
            port: TCP port on 127.0.0.1; any free one by default.
            program: The program that runs as the server.

        Raises:
            ConfigError: If `port` is taken.
            PeerError: If it is not installed, or ends before it accepts connections.
        """
        directory = directory.resolve()
        home = directory / name
        if not (home / "data").exists():
            template = _template(directory, program)
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.copytree(template, home / "data")
        server = cls(home, name=name, program=program, options=options, port=port or _free_port())
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            try:
                server._launch()
            except ConfigError:
                # Between finding a free port and binding it somebody else may take it.
                if port is not None or attempt == _PORT_ATTEMPTS:
                    raise
                server.port = _free_port()
            else:
                break
        return server

    @property
    def host(self) -> str:
        """The address that it listens on."""
        return _HOST

    @property
    def url(self) -> str:
        """The server as binlane's commands take it."""
        return f"{self.program.scheme}://root@{_HOST}:{self.port}"

    @property
    def data_directory(self) -> Path:
        """The data directory, which holds the server's binlog files too."""
        return self.directory / "data"

    @property
    def error_log(self) -> Path:
        """The file of the server's messages, from its first start on."""
        return self.directory / "error.log"

    @property
    def process_id(self) -> int:
        """Process id of the running server."""
        assert self._process is not None, f"{self.name} is not running"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """True if the process lives."""
        return self._process is not None and self._process.poll() is None

    @property
    def exit_status(self) -> int | None:
        """The exit status of a process that ended by itself, the negative number of a signal; else None."""
        return None if self._process is None else self._process.poll()

    def interrupt(self) -> None:
        """Let it end, also while another thread waits for its start; that then fails."""
        process = self._process
        if process is not None:
            process.terminate()

    def stop(self) -> None:
        """Shut down cleanly; does nothing to a server that has stopped.

        Raises:
            PeerError: If it does not end in time; it is killed then.
        """
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise self._failure("did not shut down in time and was killed", "stop") from None
        finally:
            self.kill()

    def kill(self) -> None:
        """End the server with SIGKILL, as a crash would."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        self._process = None
        if self.socket_path.parent != self.directory:
            shutil.rmtree(self.socket_path.parent)

    def restart(self) -> None:
        """Start it again on its port and data, after a clean shutdown if it still runs.

        Raises:
            ConfigError: If its port is taken.
            PeerError: If it ends before it accepts connections.
        """
        self.stop()
        self._launch()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _launch(self) -> None:
        self.socket_path.parent.mkdir(mode=0o700, exist_ok=True)
        said_before = self.error_log.stat().st_size if self.error_log.exists() else 0
        with self.error_log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own command line
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C is for us; the server then gets its clean shutdown.
                start_new_session=True,
            )
        deadline = time.monotonic() + self._start_timeout_s
        while not _greets(self.socket_path):
            status = self._process.poll()
            if status is not None:
                self.kill()
                if _PORT_TAKEN in self._log_since(said_before):
                    raise ConfigError(
                        f"port {self.port} on {_HOST} is taken",
                        key="port",
                        hint="name another port, or leave it out to take a free one",
                    )
                raise self._failure(f"ended at its start with status {status}", "start")
            if time.monotonic() > deadline:
                self.kill()
                raise self._failure(f"not ready after {self._start_timeout_s:.0f} s", "start")
            time.sleep(_POLL_S)

    def _command(self) -> list[str]:
        files = self.directory / "files"
        files.mkdir(exist_ok=True)
        return [
            *self.program.command(data=self.data_directory),
            f"--socket={self.socket_path}",
            f"--pid-file={self.directory / 'server.pid'}",
            "--skip-networking=0",
            f"--bind-address={_HOST}",
            f"--port={self.port}",
            f"--secure-file-priv={files}",
            *self.options,
        ]

    def _log_since(self, offset: int) -> str:
        with self.error_log.open("rb") as log:
            log.seek(offset)
            return log.read().decode("utf-8", "replace")

    def _failure(self, what: str, phase: str) -> PeerError:
        tail = "\n".join(self._log_since(0).splitlines()[-5:])
        return PeerError(
            f"the private server {self.name!r} {what}",
            peer=self.url,
            phase=phase,
            hint=f"its log is {self.error_log} and ends:\n{tail}",
        )


def _template(directory: Path, program: ServerProgram) -> Path:
    """Return a data directory as its program makes it; made once, then copied."""
    template = directory / f"template-{program.scheme}"
    if template.exists():
        return template
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix="template-", dir=directory))
    try:
        program.install(unfinished)
    except PeerError:
        shutil.rmtree(unfinished)
        raise
    return unfinished.rename(template)


def _socket_path(home: Path) -> Path:
    path = home / "server.sock"
    if len(os.fsencode(path)) <= _SOCKET_PATH_MAX:
        return path
    return Path(tempfile.mkdtemp(prefix="binlane-")) / "server.sock"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _greets(path: Path) -> bool:
    """True if a server behind the socket sends its greeting: only then it takes logins."""
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(_START_TIMEOUT_S)
            client.connect(os.fspath(path))
            packet = client.recv(5)
    except OSError:
        return False
    return len(packet) == 5 and packet[4] == _GREETING_VERSION
