"""Private servers in tests: starting several, and talking to them as an ordinary client."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from binlane.service.private_server import SOURCE_OPTIONS, PrivateServer


class ServerFactory:
    """Starts servers that share one installation, and stops them at the end of a test.

    Attributes:
        directory: Where the servers of the whole run live.
        prefix: What the names of this test's servers begin with.
    """

    def __init__(self, directory: Path, prefix: str, stack: ExitStack) -> None:
        self.directory = directory
        self.prefix = prefix
        self._stack = stack

    def start(
        self, name: str, options: Sequence[str] = SOURCE_OPTIONS, *, port: int | None = None
    ) -> PrivateServer:
        """Start a server on fresh data; `name` is unique within the test."""
        server = PrivateServer.start(
            self.directory, name=f"{self.prefix}-{name}", options=options, port=port
        )
        return self._stack.enter_context(server)


def connect(server: PrivateServer, **options: Any) -> Connection[Cursor]:
    """Log in as root with autocommit, unless the options say otherwise."""
    return pymysql.connect(
        **{"host": server.host, "port": server.port, "user": "root", "autocommit": True, **options}
    )


def execute(server: PrivateServer, *statements: str) -> tuple[tuple[Any, ...], ...]:
    """Run statements in a session of their own; the rows of the last one."""
    with connect(server) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return tuple(cursor.fetchall())
