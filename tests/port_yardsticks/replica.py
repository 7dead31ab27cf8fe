"""A replica of the binlog that recorded sessions are run into, and where its tables differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pymysql
from pymysql.constants import CLIENT

from binlane.live.provision.private_server import PrivateServer
from tests.port_load import checksums
from tests.port_replicas import follow, replica_status
from tests.serve_process import ServeProcess

_WAIT: Final = {"mariadb": "MASTER_POS_WAIT", "mysql": "SOURCE_POS_WAIT"}
_END: Final = {
    "mariadb": ("STOP SLAVE", "RESET SLAVE ALL"),
    "mysql": ("STOP REPLICA", "RESET REPLICA ALL"),
}
_WAIT_S: Final = 60
_ASKED: Final = 3


class RecordsReplica:
    """A server that follows one binlog.

    Args:
        server: It follows nobody yet.
        serve: Whose port it is.
        binlog: The binlog's name; it has files from now on, and what is in them is left out.
        statements: Make the objects that the source has by now.
    """

    def __init__(
        self, server: PrivateServer, serve: ServeProcess, binlog: str, statements: Sequence[str]
    ) -> None:
        self._server, self._serve, self._binlog = server, serve, binlog
        self._flavor = server.program.scheme
        self._connection = pymysql.connect(
            host=server.host,
            port=server.port,
            user="root",
            autocommit=True,
            client_flag=CLIENT.MULTI_STATEMENTS,
            ssl_disabled=True,
        )
        for statement in statements:
            self.run(statement)
        self._apart: frozenset[str] = frozenset()
        self._follow()
        # ARCHIVE deletes nothing: what the source has more of stays.
        self._apart = frozenset(self.differing())

    def close(self) -> None:
        """End its session."""
        self._connection.close()

    def run(self, statements: str) -> None:
        """Run statements on it that the source runs, too, and does not log."""
        with self._connection.cursor() as cursor:
            cursor.execute(statements)
            while cursor.nextset():
                pass

    def differing(self) -> list[str]:
        """What differs once it has all that the binlog has: tables, or why it stopped.

        One that stopped goes on behind what the binlog has by now.
        """
        file, position = self._end()
        with self._connection.cursor() as cursor:
            cursor.execute(f"SELECT {_WAIT[self._flavor]}('{file}', {position}, {_WAIT_S})")
            (waited,) = cursor.fetchone() or (None,)
        if waited is None or waited < 0:
            status = replica_status(self._server)
            self._follow()
            return [f"stopped: {status['Last_SQL_Error'] or status['Last_IO_Error']}"]
        # CHECKSUM TABLE of an ARCHIVE table that a session has just written gives other values at
        # times, and the right one when it is asked again.
        for _ in range(_ASKED):
            here, there = checksums(self._server), checksums(self._serve.source)
            names = sorted({*here, *there} - self._apart)
            found = [name for name in names if here.get(name) != there.get(name)]
            if not found:
                break
        return found

    def _follow(self) -> None:
        for statement in _END[self._flavor]:
            self.run(statement)
        file, position = self._end()
        follow(self._server, self._serve.port, file, position)

    def _end(self) -> tuple[str, int]:
        """Where the binlog ends, with all that the source has."""
        self._serve.wait_until_complete(self._binlog)
        rows = self._serve.execute_as_root("SHOW BINLOGS")
        row = next(row for row in rows if row[0] == self._binlog)
        return str(row[1]), int(row[2])
