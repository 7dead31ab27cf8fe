"""Where a suite is run: at a server itself, or at the port of a `serve` before one.

Each place has a server of its own with the same settings, so that what a suite leaves behind at one
place is not seen at another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
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
from binlane.live.provision.server_programs import MARIADB
from tests.certificates import make_certificate
from tests.judged_port import set_up
from tests.serve_process import ServeProcess
from tests.servers import QUICK, mysql_program

DIRECT: Final = "direct"
PLAIN: Final = "port"
BINLOGS: Final = "binlogs"
PORTS: Final = (PLAIN, BINLOGS)
"""What stands before a server: nothing, a port, a port with binlogs of statements."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where clients connect.

    Attributes:
        kind: `DIRECT`, `PLAIN` or `BINLOGS`.
        port: On 127.0.0.1; root has no password.
        server: The one behind it.
        serve: What stands before that, if anything does.
    """

    kind: str
    port: int
    server: PrivateServer
    serve: ServeProcess | None

    @property
    def log(self) -> str:
        """What `serve` has written."""
        return self.serve.log if self.serve else ""

    def connect(self, **options: Any) -> Connection[Cursor]:
        """Log in as root with autocommit."""
        return pymysql.connect(
            host="127.0.0.1",
            port=self.port,
            user="root",
            autocommit=True,
            ssl_disabled=True,  # reading the machine's certificates takes longer than a session
            **options,
        )

    def execute(self, *statements: str) -> tuple[tuple[Any, ...], ...]:
        """Run statements in a session of their own; the rows of the last one."""
        with self.connect() as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return tuple(cursor.fetchall())


@contextmanager
def place(
    kind: str,
    directory: Path,
    *,
    flavor: str = "mariadb",
    options: Sequence[str] = (),
    prepare: Callable[[PrivateServer], None] | None = None,
    scope: str = "test",
    has_tls: bool = False,
) -> Iterator[Place]:
    """Start a server, and what `kind` has before it.

    Args:
        kind: `DIRECT`, `PLAIN` or `BINLOGS`.
        directory: Where it all lives; servers that share it are installed once.
        flavor: `mariadb` or `mysql`.
        options: Of the server; they win.
        prepare: Makes what the suite expects there.
        scope: What a MIXED binlog is of, as LOG has it, beside a STATEMENT one over everything.
        has_tls: A MariaDB has TLS, as a MySQL has by itself.
    """
    is_mysql = flavor == "mysql"
    if has_tls and not is_mysql:
        certificate, key = make_certificate(directory, "localhost")
        options = (*options, f"--ssl-cert={certificate}", f"--ssl-key={key}")
    with ExitStack() as stack:
        server = PrivateServer.start(
            directory,
            name=kind,
            options=(*QUICK, *(MYSQL_SOURCE_OPTIONS if is_mysql else SOURCE_OPTIONS), *options),
            program=mysql_program() if is_mysql else MARIADB,
        )
        if is_mysql:
            # A clean shutdown of MySQL waits for those whom it sends its log, up to ten seconds.
            stack.callback(server.kill)
        else:
            stack.enter_context(server)
        if prepare is not None:
            prepare(server)
        serve = ServeProcess(server.directory / "serve", server)
        # At the server itself too: what binlane has made there is seen in lists of all that is there.
        set_up(serve)
        if kind == DIRECT:
            yield Place(kind, server.port, server, None)
            return
        stack.enter_context(serve)
        if kind == BINLOGS:
            serve.execute_as_root(
                "CREATE BINLOG 'all' FORMAT='STATEMENT'",
                f"CREATE BINLOG 'some' LOG({scope}), FORMAT='MIXED'",
            )
        yield Place(kind, serve.port, server, serve)
