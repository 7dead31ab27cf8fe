"""A `binlane serve` before a source that `binlane setup` prepared, and what its binlogs get.

Sessions are run one at a time, statement by statement: the answer, SHOW WARNINGS, and the events
that a binlog has got by then, as SHOW BINLOG EVENTS lists them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from binlane.live.provision.private_server import (
    PrivateServer,
)
from binlane.log.codec.packets.framing import bytes_of
from tests.differential.logging.symbols import symbol
from tests.lent_servers import LENT
from tests.logged_events import Event, comparable
from tests.serve_process import ADMIN, ServeProcess
from tests.servers import execute
from tests.session_end import wait_for_end
from tests.yardsticks.records import Warned

_UNSAFE: Final = 1592
_SHOWN_TEXT: Final = 200
_END_POSITION: Final = 4
_STATUS: Final = {"mariadb": "SHOW MASTER STATUS", "mysql": "SHOW BINARY LOG STATUS"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What a client was told of one statement, and what a binlog got by it.

    Attributes:
        sql: The statement; empty for the end of the session.
        error: Error number; None if it succeeded.
        message: The error's text.
        warnings: What SHOW WARNINGS told; of a note 1592 the symbol stands for the text.
        events: By binlog what it appended, in the form in which events are compared.
    """

    sql: str
    error: int | None = None
    message: str = ""
    warnings: tuple[Warned, ...] = ()
    events: Mapping[str, tuple[Event, ...]] = field(default_factory=dict)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Symbols of the notes 1592, in order."""
        return tuple(text for _, errno, text in self.warnings if errno == _UNSAFE)


def set_up(serve: ServeProcess) -> None:
    """Prepare the source of a `serve` that is to be started, its account included.

    Raises:
        AssertionError: If something still lacks then.
    """
    done = subprocess.run(
        [
            *(sys.executable, "-m", "binlane", "setup", serve.source.url),
            *("--create-user", ADMIN, "--create-password-file", str(serve.directory / "secret")),
        ],
        env=os.environ | {"MYSQL_PWD": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def set_up_source(source: PrivateServer) -> None:
    """Prepare a source of any `serve` that is to be started."""
    set_up(ServeProcess(source.directory / "setup", source))


@contextmanager
def judged(directory: Path, source: PrivateServer, *, extra: str = "") -> Iterator[ServeProcess]:
    """Prepare a source and run `serve` before it.

    Args:
        directory: Is made.
        source: The server.
        extra: Further sections of the configuration.
    """
    serve = ServeProcess(directory, source, extra=extra)
    set_up(serve)
    with serve:
        yield serve


@contextmanager
def judged_source(
    directory: Path, flavor: str, objects: Sequence[str], binlogs: Sequence[str]
) -> Iterator[ServeProcess]:
    """Run `serve` before a source of its own.

    Args:
        directory: Holds its data.
        flavor: `mariadb` or `mysql`.
        objects: Statements that make the source's objects.
        binlogs: Statements that make the binlogs.
    """
    with LENT.lend_source(flavor) as source:
        execute(source, *objects)
        with judged(directory / "serve", source) as process:
            process.execute_as_root(*binlogs)
            yield process


class PortRecorder:
    """Runs sessions through a port; one at a time, while nobody else writes.

    Attributes:
        serve: Whose port it is.
        flavor: `mariadb` or `mysql`.
    """

    def __init__(self, serve: ServeProcess, binlogs: Sequence[str]) -> None:
        """Begin.

        Args:
            serve: A running one.
            binlogs: Names of those whose events are read.
        """
        self.serve = serve
        self.flavor = serve.source.program.scheme
        self._observer = serve.connect("root", "")
        self._source = pymysql.connect(
            host=serve.source.host, port=serve.source.port, user="root", autocommit=True
        )
        self._places = dict.fromkeys(binlogs, ("", 0))

    def close(self) -> None:
        """End its own sessions."""
        for connection in (self._observer, self._source):
            with suppress(pymysql.MySQLError, OSError):
                connection.close()

    def run(
        self, statements: Sequence[str], *, database: str = "d", settings: Sequence[str] = ()
    ) -> Iterator[Answered]:
        """Run one session; the last value is the end of the session.

        Args:
            statements: What is recorded.
            database: The default database.
            settings: Run before, and not recorded.

        Raises:
            MySQLError: If one of the settings fails.
        """
        connection = pymysql.connect(
            host="127.0.0.1",
            port=self.serve.port,
            user="root",
            database=database,
            charset="utf8mb4",
            autocommit=None,  # as the server has it
            read_timeout=120,
            ssl_disabled=True,  # reading the machine's certificates takes longer than a session
        )
        thread_id: int = _raw(connection).server_thread_id[0]
        self.skip()
        try:
            for statement in settings:
                connection.query(statement)
            for statement in statements:
                yield self._execute(connection, statement)
        finally:
            with suppress(pymysql.Error):
                connection.close()
            wait_for_end(self._source, self.flavor, thread_id)
        yield Answered(sql="", events=self._appended())

    def skip(self) -> None:
        """Pass over what the binlogs have by now."""
        for name in self._places:
            self._skip(name)

    def _execute(self, connection: Connection[Cursor], statement: str) -> Answered:
        error, message = None, ""
        try:
            connection.query(bytes_of(statement))
            while _result(connection).has_next:
                connection.next_result()
        except pymysql.MySQLError as failure:
            error, message = failure.args[0], str(failure.args[-1])
        # Those of the statement before may be there still.
        warnings = self._warnings(connection)
        return Answered(
            sql=statement, error=error, message=message, warnings=warnings, events=self._appended()
        )

    def _warnings(self, connection: Connection[Cursor]) -> tuple[Warned, ...]:
        connection.query("show warnings")
        return tuple(
            Warned(
                level,
                errno,
                symbol(self.flavor, text) if errno == _UNSAFE else text[:_SHOWN_TEXT],
            )
            for level, errno, text in _result(connection).rows or ()
        )

    def _appended(self) -> Mapping[str, tuple[Event, ...]]:
        return {name: tuple(self._events(name)) for name in self._places}

    def _events(self, name: str) -> list[Event]:
        file, position = self._places[name]
        self._status(name)  # waits until all is there
        rows = self._ask(f"SHOW BINLOG EVENTS IN '{file}' FROM {position}")
        # MySQL's GTIDs are groups' numbers and say nothing of them.
        events = [
            Event(row[2], row[5])
            for row in rows
            if self.flavor == "mariadb" or not str(row[2]).startswith("Gtid")
        ]
        if rows:
            self._places[name] = file, rows[-1][_END_POSITION]
        if any(event.type == "Rotate" for event in events):
            self._skip(name)
        return comparable(events)

    def _skip(self, name: str) -> None:
        row = self._status(name)
        self._places[name] = str(row[0]), int(row[1])

    def _status(self, name: str) -> tuple[Any, ...]:
        return self._ask(f"{_STATUS[self.flavor]} '{name}'")[0]

    def _ask(self, statement: str) -> tuple[tuple[Any, ...], ...]:
        with self._observer.cursor() as cursor:
            cursor.execute(statement)
            return tuple(cursor.fetchall())


def _result(connection: Connection[Cursor]) -> Any:
    # What the last packet said; the library has no other way to its flags and counts.
    return _raw(connection)._result


def _raw(connection: Any) -> Any:
    """The connection, without the library's incomplete types."""
    return connection
