"""Private servers that record how they log: MariaDB as installed, MySQL where there is one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from binlane.service.private_server import PrivateServer
from tests.servers import mysql_program

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
    *_FAST,
)


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


@contextmanager
def mysql(directory: Path) -> Iterator[LoggingServer]:
    """A MySQL of one's own; skips the test where there is none."""
    with PrivateServer.start(
        directory, name="logging", options=_MYSQL_OPTIONS, program=mysql_program()
    ) as server:
        yield LoggingServer("mysql", server.socket_path)
