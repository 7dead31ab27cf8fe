"""Running servers that tests borrow: each test finds one as it was after its start.

A start of MariaDB takes a third of a second of CPU, one of MySQL more than one, and their data has to
be copied. So a server that comes back is made as new where that can be seen to have worked, and waits
for the next test that asks for the same program with the same options; else it ends, and its data go.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

import pymysql
from pymysql.cursors import Cursor

from binlane.live.provision.private_server import (
    MYSQL_SOURCE_OPTIONS,
    SOURCE_OPTIONS,
    PrivateServer,
)
from binlane.live.provision.server_programs import MARIADB, ServerProgram
from tests.serve_process import wait_until
from tests.servers import QUICK, connect, mysql_program
from tests.shared_server import ServerState

_IDLE: Final = 6
"""So many servers may wait: each has its memory."""
_SYSTEM_TABLES: Final = (
    *("user", "global_priv", "global_grants", "db", "tables_priv", "columns_priv", "procs_priv"),
    *("proxies_priv", "roles_mapping", "role_edges", "default_roles"),
    *("func", "plugin", "component", "servers"),
)
"""Of both flavors: what a test may change beside databases, accounts and variables."""
_FOLLOWS_NOBODY: Final = {
    "mariadb": ("STOP ALL SLAVES", "RESET SLAVE ALL"),
    "mysql": ("STOP REPLICA", "RESET REPLICA ALL"),
}
_END_OF_SESSIONS_S: Final = 10.0
_ANSWER_S: Final = 60
"""Who does not answer for so long is not made new."""


@dataclass(frozen=True, slots=True)
class _Lent:
    """What a server was asked for by, and was when it had just been started.

    Attributes:
        key: Program, options, and what prepared it.
        state: Databases, accounts, variables.
        system_tables: Their checksums.
        paths: What its directory held.
    """

    key: tuple[object, ...]
    state: ServerState
    system_tables: tuple[object, ...]
    paths: frozenset[Path]


class LentServers:
    """Servers of one run; they share a directory, and so an installation."""

    def __init__(self) -> None:
        self._directory: Path | None = None
        self._numbers = count(1)
        self._lent: dict[PrivateServer, _Lent] = {}
        self._idle: list[PrivateServer] = []

    @contextmanager
    def open(self, directory: Path) -> Iterator[None]:
        """Have a directory to start servers in; all that wait end with the block."""
        self._directory = directory
        yield
        self._directory = None
        while self._idle:
            self._end(self._idle.pop())

    @contextmanager
    def lend(
        self,
        options: Sequence[str],
        program: ServerProgram = MARIADB,
        prepare: Callable[[PrivateServer], None] | None = None,
    ) -> Iterator[PrivateServer]:
        """Lend a server whose data, log and positions are as after its first start.

        Args:
            options: Of its command line, beyond those that make it quick.
            program: It runs.
            prepare: What is done to it first; its log is emptied behind that.
        """
        key = (program, tuple(options), prepare)
        server = next((one for one in self._idle if self._lent[one].key == key), None)
        if server is None:
            server = self._start(options, program)
            try:
                self._lent[server] = _prepared(server, key, prepare)
            except BaseException:
                server.kill()
                raise
        else:
            self._idle.remove(server)
        try:
            yield server
        finally:
            self._take_back(server)

    def lend_source(
        self,
        flavor: str,
        *options: str,
        prepare: Callable[[PrivateServer], None] | None = None,
    ) -> AbstractContextManager[PrivateServer]:
        """Lend a source of `mariadb` or `mysql` whose log has rows in full; later options win."""
        if flavor == "mysql":
            return self.lend((*MYSQL_SOURCE_OPTIONS, *options), mysql_program(), prepare)
        return self.lend((*SOURCE_OPTIONS, *options), MARIADB, prepare)

    def _start(self, options: Sequence[str], program: ServerProgram) -> PrivateServer:
        assert self._directory is not None, "servers are lent in a run of tests"
        return PrivateServer.start(
            self._directory,
            name=f"lent{next(self._numbers)}",
            options=(*QUICK, *options),
            program=program,
        )

    def _take_back(self, server: PrivateServer) -> None:
        if not self._is_new_again(server):
            self._end(server)
            return
        self._idle.append(server)
        if len(self._idle) > _IDLE:
            self._end(self._idle.pop(0))

    def _is_new_again(self, server: PrivateServer) -> bool:
        """Make a server new; False where it has ended, or is not what it was."""
        lent = self._lent[server]
        # The port of one that has ended may be another one's.
        if not server.is_running:
            return False
        try:
            with connect(server, read_timeout=_ANSWER_S) as session, session.cursor() as cursor:
                _end_sessions(cursor)
                cursor.execute("XA RECOVER")
                if cursor.fetchall():
                    return False
                for statement in _FOLLOWS_NOBODY[server.program.scheme]:
                    cursor.execute(statement)
                lent.state.restore(cursor)
                # What was taken away just now is in the log, too.
                _empty_log(server, cursor)
                is_same = _seen(cursor) == (lent.state, lent.system_tables)
        except (pymysql.MySQLError, OSError, AssertionError):
            return False
        for path in (*(server.directory / "files").iterdir(), *server.directory.iterdir()):
            if path not in lent.paths:
                _remove(path)
        return is_same

    def _end(self, server: PrivateServer) -> None:
        server.kill()
        del self._lent[server]
        shutil.rmtree(server.directory, ignore_errors=True)


LENT: Final = LentServers()
"""Those of this run; `tests/conftest.py` opens it."""


def _prepared(
    server: PrivateServer,
    key: tuple[object, ...],
    prepare: Callable[[PrivateServer], None] | None,
) -> _Lent:
    """Prepare a server that has just been started, and read what it is then."""
    if prepare is not None:
        prepare(server)
    with connect(server) as session, session.cursor() as cursor:
        if prepare is not None:
            _empty_log(server, cursor)
        return _Lent(key, *_seen(cursor), frozenset(server.directory.iterdir()))


def _remove(path: Path) -> None:
    """Remove what a test left beside a server's data; the server's own files come and go."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _empty_log(server: PrivateServer, cursor: Cursor) -> None:
    if server.program.scheme == "mysql":
        cursor.execute("RESET BINARY LOGS AND GTIDS")
        return
    cursor.execute("SELECT @@log_bin")
    if cursor.fetchall() == ((1,),):
        cursor.execute("RESET MASTER")
    cursor.execute("SET GLOBAL gtid_slave_pos = ''")


def _seen(cursor: Cursor) -> tuple[ServerState, tuple[object, ...]]:
    """What a test may change: the state, and checksums of system tables."""
    cursor.execute(f"CHECKSUM TABLE {', '.join(f'mysql.{name}' for name in _SYSTEM_TABLES)}")
    return ServerState.read(cursor), tuple(cursor.fetchall())


def _end_sessions(cursor: Cursor) -> None:
    """End all sessions but one's own, and wait until they are gone.

    Raises:
        AssertionError: If they do not go.
    """

    def are_gone() -> bool:
        cursor.execute(
            "SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID()"
            " AND user NOT IN ('system user', 'event_scheduler') AND command <> 'Daemon'"
        )
        others = cursor.fetchall()
        for (number,) in others:
            with suppress(pymysql.MySQLError):  # gone meanwhile
                cursor.execute(f"KILL {number}")
        return not others

    wait_until(are_gone, _END_OF_SESSIONS_S)
