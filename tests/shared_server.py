"""A server that many modules of tests use, one after the other: each finds it as the run began.

What a module makes, databases, accounts and roles, goes behind it; global variables that it set are
what they were. So no module depends on another one's names, whatever it leaves behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Self

from pymysql.cursors import Cursor

from binlane.live.provision.private_server import PrivateServer
from tests.servers import connect

_LOCK_WAIT_S: Final = 10
# What has been logged, not what somebody set.
_MOVING: Final = frozenset(
    {
        *("gtid_binlog_pos", "gtid_binlog_state", "gtid_current_pos", "gtid_slave_pos"),
        *("gtid_executed", "gtid_owned", "gtid_purged"),
    }
)


@dataclass(frozen=True, slots=True)
class ServerState:
    """What a module may change and the next one would meet.

    Attributes:
        databases: Their names.
        accounts: User and host; of roles the host is empty on MariaDB.
        variables: The global ones.
    """

    databases: frozenset[str]
    accounts: frozenset[tuple[str, str]]
    variables: dict[str, str]

    @classmethod
    def read(cls, cursor: Cursor) -> Self:
        """Ask a server."""
        cursor.execute("SHOW DATABASES")
        databases = frozenset(name for (name,) in cursor.fetchall())
        cursor.execute("SELECT user, host FROM mysql.user")
        accounts = frozenset((user, host) for user, host in cursor.fetchall())
        cursor.execute("SHOW GLOBAL VARIABLES")
        variables = {name: value for name, value in cursor.fetchall() if name not in _MOVING}
        return cls(databases, accounts, variables)

    def restore(self, cursor: Cursor) -> None:
        """Take away what was made since this was read, and set global variables back."""
        after = ServerState.read(cursor)
        if after == self:
            return
        cursor.execute(f"SET lock_wait_timeout = {_LOCK_WAIT_S}, foreign_key_checks = 0")
        for name in sorted(after.databases - self.databases):
            cursor.execute(f"DROP DATABASE `{name.replace('`', '``')}`")
        for user, host in sorted(after.accounts - self.accounts):
            if host:
                cursor.execute("DROP USER %s@%s", (user, host))
            else:
                cursor.execute("DROP ROLE %s", (user,))
        for name, value in self.variables.items():
            if after.variables.get(name) != value:
                cursor.execute(
                    f"SET GLOBAL {name} = %s", (int(value) if value.isdigit() else value,)
                )


@contextmanager
def left_as_found(server: PrivateServer) -> Iterator[None]:
    """Take away what is made in the block, and set global variables back.

    Raises:
        AssertionError: If something cannot be taken away: a database that was dropped, an XA
            transaction that was prepared.
    """
    with connect(server) as connection, connection.cursor() as cursor:
        before = ServerState.read(cursor)
    yield
    with connect(server) as connection, connection.cursor() as cursor:
        cursor.execute("XA RECOVER")
        prepared = cursor.fetchall()
        # It would keep its tables locked.
        assert not prepared, f"prepared XA transactions were left on {server.name}: {prepared}"
        before.restore(cursor)
        assert ServerState.read(cursor) == before, f"{server.name} is not as it was found"
