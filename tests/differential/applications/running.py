"""The servers that applications are run on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from binlane.live.provision.private_server import PrivateServer
from binlane.live.provision.server_programs import MARIADB
from binlane.statements.policy.server import Server
from tests.differential.logging.servers import LoggingServer
from tests.servers import mysql_program

_OPTIONS: Final = (
    "--log-bin=binlog",
    "--server-id=1",
    "--log-bin-trust-function-creators=1",
    "--binlog-format=STATEMENT",
    "--secure-file-priv=",
    "--sync-binlog=0",
    "--innodb-flush-log-at-trx-commit=0",
)


@contextmanager
def server_of(flavor: str, directory: Path) -> Iterator[LoggingServer]:
    """A server with the log in statement format, so that it says what is unsafe."""
    program = MARIADB if flavor == "mariadb" else mysql_program()
    with PrivateServer.start(
        directory, name=f"applications-{flavor}", options=_OPTIONS, program=program
    ) as server:
        yield LoggingServer(flavor, server.socket_path)


def rules(flavor: str, server: LoggingServer) -> Server:
    """The rules of its version."""
    with server.connect() as session, session.cursor() as cursor:
        cursor.execute("SELECT version()")
        (row,) = cursor.fetchall()
    version = ".".join(row[0].partition("-")[0].split(".")[:3])
    return Server.parse(f"{flavor}:{version}")
