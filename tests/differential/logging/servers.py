"""Private servers that record how they log: MariaDB as installed or unpacked, MySQL where there is one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from binlane.live.provision.private_server import PrivateServer
from binlane.live.provision.server_programs import MARIADB, ServerProgram
from tests.servers import UnpackedMariadb, mysql_program

# Nothing that is recorded needs to outlive the machine.
_FAST: Final = ("--sync-binlog=0", "--innodb-flush-log-at-trx-commit=0")
_MARIADB_OPTIONS: Final = (
    "--log-bin=binlog",
    "--server-id=1",
    "--log-bin-trust-function-creators=1",
    "--plugin-maturity=unknown",
    "--secure-file-priv=",
    *_FAST,
)
_MYSQL_OPTIONS: Final = (
    "--log-bin=binlog",
    "--server-id=1",
    "--log-bin-trust-function-creators=1",
    "--gtid-mode=OFF",
    "--enforce-gtid-consistency=OFF",
    "--secure-file-priv=",
    *_FAST,
)


@dataclass(frozen=True, slots=True)
class LoggingServer:
    """A running server.

    Attributes:
        flavor: `mariadb` or `mysql`.
        socket_path: Where it listens.
    """

    flavor: str
    socket_path: Path

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
def mariadb(
    directory: Path, *, folder: Path | None = None, plugins: Path | None = None
) -> Iterator[LoggingServer]:
    """A MariaDB of one's own.

    Args:
        directory: Where it lives.
        folder: Where it was unpacked; None takes this machine's.
        plugins: Folder of its plugins, of which it gets BLACKHOLE; None goes without.
    """
    program: ServerProgram = MARIADB if folder is None else UnpackedMariadb(folder)
    options = list(_MARIADB_OPTIONS)
    if plugins is not None:
        options += [f"--plugin-dir={plugins}", "--plugin-load-add=ha_blackhole"]
    with PrivateServer.start(directory, name="logging", options=options, program=program) as server:
        _write_rows(server)
        yield LoggingServer("mariadb", server.socket_path)


@contextmanager
def mysql(directory: Path) -> Iterator[LoggingServer]:
    """A MySQL of one's own; skips the test where there is none."""
    with PrivateServer.start(
        directory, name="logging", options=_MYSQL_OPTIONS, program=mysql_program()
    ) as server:
        _write_rows(server)
        yield LoggingServer("mysql", server.socket_path)


def _write_rows(server: PrivateServer) -> None:
    """The file that LOAD DATA reads."""
    rows = server.data_directory / "rows.txt"
    rows.write_text("1\tone\n2\ttwo\n", encoding="utf-8")
    rows.chmod(0o644)
