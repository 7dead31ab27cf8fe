"""Private servers that record how they log: MariaDB as installed, MySQL where it is unpacked.

`BINLANE_MYSQL` names a folder that MySQL was unpacked into, and whose file `exec` runs a program of
it (`exec /usr/sbin/mysqld …`). Without it the tests on MySQL are skipped.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from binlane.service.private_server import PrivateServer

# Nothing that is recorded needs to outlive the machine.
_FAST: Final = ("--sync-binlog=0", "--innodb-flush-log-at-trx-commit=0")
_MARIADB_OPTIONS: Final = (
    "--log-bin=binlog",
    "--server-id=1",
    "--log-bin-trust-function-creators=1",
    "--plugin-maturity=unknown",
    *_FAST,
)
_MYSQL_OPTIONS: Final = (
    "--log-bin=binlog",
    "--server-id=1",
    "--log-bin-trust-function-creators=1",
    "--gtid-mode=OFF",
    "--enforce-gtid-consistency=OFF",
    "--secure-file-priv=",
    "--mysqlx=OFF",
    *_FAST,
)
_START_TIMEOUT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class LoggingServer:
    """A running server.

    Attributes:
        flavor: `mariadb` or `mysql`.
        socket_path: Where it listens.
        version: As it says.
    """

    flavor: str
    socket_path: Path
    version: str = ""

    def connect(self, database: str | None = None) -> Connection[Cursor]:
        """Log in as root, as the command-line client does: nothing is set."""
        return pymysql.connect(
            unix_socket=str(self.socket_path),
            user="root",
            database=database,
            charset="utf8mb4",
            autocommit=None,  # as the server has it
        )


@contextmanager
def mariadb(directory: Path) -> Iterator[LoggingServer]:
    """A MariaDB of one's own."""
    with PrivateServer.start(directory, name="logging", options=_MARIADB_OPTIONS) as server:
        yield LoggingServer("mariadb", server.socket_path)


def mysql_folder() -> Path | None:
    """Where MySQL is unpacked; None if it is not."""
    folder = os.environ.get("BINLANE_MYSQL")
    return Path(folder) if folder else None


@contextmanager
def mysql(directory: Path, folder: Path) -> Iterator[LoggingServer]:
    """A MySQL of one's own, from the folder that it is unpacked into."""
    data = directory / "mysql-logging"
    socket_path = directory / "mysql.sock"
    base = [
        str(folder / "exec"),
        "/usr/sbin/mysqld",
        "--no-defaults",
        "--user=root",
        f"--basedir={folder}/usr",
        f"--datadir={data}",
        f"--lc-messages-dir={folder}/usr/share/mysql",
        f"--character-sets-dir={folder}/usr/share/mysql/charsets",
    ]
    log_path = directory / "mysql.log"
    with log_path.open("ab") as log:
        if not data.exists():
            command = [*base, "--initialize-insecure"]
            subprocess.run(command, stdout=log, stderr=log, check=True)
        command = [
            *base,
            f"--plugin-dir={folder}/usr/lib/mysql/plugin",
            f"--socket={socket_path}",
            "--skip-networking",
            *_MYSQL_OPTIONS,
        ]
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        _wait(socket_path, process, log_path)
        yield LoggingServer("mysql", socket_path)
    finally:
        process.terminate()
        process.wait()


def _wait(path: Path, process: subprocess.Popen[Any], log: Path) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while not _greets(path):
        assert process.poll() is None, log.read_text("utf-8", "replace")[-2000:]
        assert time.monotonic() < deadline, "MySQL is not ready"
        time.sleep(0.1)


def _greets(path: Path) -> bool:
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(5)
            client.connect(str(path))
            return len(client.recv(5)) == 5
    except OSError:
        return False
