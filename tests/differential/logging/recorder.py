"""What a real server does with each statement of a session: error, notes, events.

A second connection reads the log, so that the session's own diagnostics stay untouched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from tests.differential.logging.servers import LoggingServer
from tests.differential.logging.symbols import symbol
from tests.logged_events import Event, comparable
from tests.session_end import wait_for_end

_UNSAFE: Final = 1592
_READ_ONLY_DATABASE: Final = 3989
_LOST: Final = frozenset((0, 2006, 2013))
_POSITION: Final = {"mariadb": "show master status", "mysql": "show binary log status"}
_HAS_BLACKHOLE: Final = (
    "select 1 from information_schema.engines where engine='BLACKHOLE' and support='YES'"
)
_ACCOUNTS: Final = (
    "select user, host from mysql.user where user not in ('root', 'mysql', 'mariadb.sys', 'PUBLIC', '')"
    " and user not like 'mysql.%'"
)
_LAST_EVENT_POSITION: Final = 4
_OWN_DATABASES: Final = {"mysql", "sys", "information_schema", "performance_schema"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What a server did with one statement.

    Attributes:
        sql: The statement; empty for the end of the session.
        error: Error number; None if it succeeded.
        message: The error's text.
        reasons: Symbols of the notes 1592.
        affected: Rows changed, as the client is told.
        has_result: It gave a result set.
        events: What it appended, ids as `#`.
    """

    sql: str
    error: int | None = None
    message: str = ""
    reasons: tuple[str, ...] = ()
    affected: int = 0
    has_result: bool = False
    events: tuple[Event, ...] = ()


class Recorder:
    """Runs sessions on a server; one at a time.

    Attributes:
        server: The server.
        server_name: Its flavor and version, as `mariadb:10.11.19`.
        has_blackhole: It has that engine: MariaDB keeps it in a plugin.
    """

    def __init__(self, server: LoggingServer) -> None:
        self.server = server
        self._observer = self._connected()
        self._file, self._position = "", 0
        version = str(self._ask("select version()")[0][0]).partition("-")[0]
        self.server_name = f"{server.flavor}:{version}"
        self.has_blackhole = bool(self._ask(_HAS_BLACKHOLE))

    def begin_anew(self) -> None:
        """Read the log by another connection, behind what the one before stumbled over."""
        with suppress(pymysql.Error):
            self._observer.close()
        self._observer = self._connected()

    def _connected(self) -> Connection[Cursor]:
        connection = self.server.connect()
        connection.query("set autocommit=1, lock_wait_timeout=5, innodb_lock_wait_timeout=5")
        return connection

    def close(self) -> None:
        """End the connection that reads the log."""
        self._observer.close()

    def reset(self, schema: Sequence[str]) -> None:
        """Drop all databases and accounts but the server's own, and make the objects of a schema."""
        for *_, xid in self._ask("xa recover"):
            name = xid.decode() if isinstance(xid, bytes) else xid
            self._observer.query(f"xa rollback '{name}'")
        for (name,) in self._ask("show databases"):
            if name not in _OWN_DATABASES:
                self._drop(name)
        for user, host in self._ask(_ACCOUNTS):
            kind = "user" if host or self.server.flavor == "mysql" else "role"
            self._observer.query(f"drop {kind} `{user}`" + (f"@`{host}`" if kind == "user" else ""))
        with self.server.connect() as connection:
            connection.query("set sql_log_bin=0")
            for statement in schema:
                connection.query(statement)

    def _drop(self, database: str) -> None:
        try:
            self._observer.query(f"drop database if exists `{database}`")
        except pymysql.MySQLError as error:
            if error.args[0] != _READ_ONLY_DATABASE:
                raise
            self._observer.query(f"alter database `{database}` read only=0")
            self._observer.query(f"drop database `{database}`")

    def run(self, statements: Sequence[str], database: str = "d") -> Iterator[Recorded]:
        """Run one session, up to where the server ends it; the last value is the end of the session."""
        connection = self.server.connect(database)
        thread_id: int = _raw(connection).server_thread_id[0]
        self._skip()
        try:
            for statement in statements:
                done = self._execute(connection, statement)
                if done.error in _LOST:
                    break
                yield done
        finally:
            with suppress(pymysql.Error):
                connection.close()
            wait_for_end(self._observer, self.server.flavor, thread_id)
        yield Recorded(sql="", events=tuple(self._appended()))

    def _execute(self, connection: Connection[Cursor], statement: str) -> Recorded:
        error, message, affected, has_result = None, "", 0, False
        try:
            affected = connection.query(statement)
            has_result = _has_result(connection)
            while has_next(connection):
                connection.next_result()
        except pymysql.MySQLError as failure:
            error, message = failure.args[0], str(failure.args[-1])
        reasons = () if error is None and not _warned(connection) else self._reasons(connection)
        return Recorded(
            sql=statement,
            error=error,
            message=message,
            reasons=reasons,
            affected=affected,
            has_result=has_result,
            events=tuple(self._appended()),
        )

    def _reasons(self, connection: Connection[Cursor]) -> tuple[str, ...]:
        try:
            connection.query("show warnings")
        except pymysql.Error:  # some states of a session take few statements, and not this one
            return ()
        return tuple(
            symbol(self.server.flavor, str(text))
            for _, errno, text in _result(connection).rows or ()
            if errno == _UNSAFE
        )

    def _ask(self, statement: str) -> tuple[tuple[Any, ...], ...]:
        with self._observer.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall()

    def _skip(self) -> None:
        row = self._ask(_POSITION[self.server.flavor])[0]
        self._file, self._position = row[0], row[1]

    def _appended(self) -> list[Event]:
        rows = self._ask(f"show binlog events in '{self._file}' from {self._position}")
        events = [Event(row[2], row[5]) for row in rows]
        if rows:
            self._position = rows[-1][_LAST_EVENT_POSITION]
        if any(event.type == "Rotate" for event in events):
            self._skip()
        return comparable(events)


def _warned(connection: Connection[Cursor]) -> bool:
    # Some statements leave the warnings of the one before: the count is of the last one only.
    return bool(_result(connection).warning_count)


def has_next(connection: Connection[Cursor]) -> bool:
    """Whether a statement has a result behind the one that was read."""
    return bool(_result(connection).has_next)


def _has_result(connection: Connection[Cursor]) -> bool:
    return bool(_result(connection).field_count)


def _result(connection: Connection[Cursor]) -> Any:
    # What the last packet said; the library has no other way to its flags and counts.
    return _raw(connection)._result


def _raw(connection: Any) -> Any:
    """The connection, without the library's incomplete types."""
    return connection
