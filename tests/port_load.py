"""Random sessions at once, through a port and beside it: what replicas of binlogs must be equal to.

The statements are those of `tests.differential.logging.generator`, without what would make the
source's tables differ from what its log says (`sql_log_bin`; `CREATE … IGNORE SELECT`, with which
the InnoDB of MariaDB 10.11.19 loses rows that it has logged), or its log stop a replica (MariaDB logs
the RENAME of a temporary table whose CREATE it did not log), or sets one format for all binlogs.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from binlane.live.provision.private_server import PrivateServer
from binlane.log.codec.types import Flavor
from binlane.statements.policy.refusals import Outcome
from binlane.statements.policy.server import Server
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog
from tests.differential.logging.generator import Generator, schema
from tests.differential.logging.sessions import CONFIGURATION, VERSIONS
from tests.serve_process import ServeProcess
from tests.servers import end_lost_xa, execute

OPTIONS: Final = (
    "--log-bin-trust-function-creators=1",
    "--innodb-lock-wait-timeout=2",
    "--lock-wait-timeout=4",
    "--character-set-server=utf8mb4",
)
"""What a source needs beside rows: routines are made, and who waits for another gives up."""

_LEFT_OUT: Final = (
    *("sql_log_bin", "unlogged", "binlog_format", "performance_schema", "grant ", "flush tables"),
    *(" ignore select ", " to moved"),
)
_GONE: Final = frozenset({0, 2003, 2006, 2013, 2014, 1053, 1927, 3169})
_UNKNOWN: Final = frozenset({1054, 1146, 1305})
_ROWS_FILE: Final = "./rows.txt"
_KEYS_APART: Final = 40_000
_READ_TIMEOUT_S: Final = 60


class PortLoad:
    """Sessions that work from `with` to the end of its block, or each to the end of its script.

    Attributes:
        counts: Statements that succeeded, failed and were left out; sessions begun anew.
        errors: What was refused, by error number.
    """

    def __init__(
        self,
        serve: ServeProcess,
        *,
        seed: int,
        through: int,
        beside: int = 0,
        length: int | None = None,
        is_safe: bool = False,
        pause_s: float = 0.0,
    ) -> None:
        """Prepare.

        Args:
            serve: Whose port it is.
            seed: Of what the sessions do.
            through: Sessions through the port.
            beside: Sessions directly on the source.
            length: Statements of each; None until the block ends.
            is_safe: Those through the port leave out what is unsafe as a statement.
            pause_s: Longest wait of a session between two statements.
        """
        self.counts: Counter[str] = Counter()
        self.errors: Counter[int] = Counter()
        self.source = serve.source
        self._serve = serve
        self._length = length
        self._pause_s = pause_s
        self._has_ended = threading.Event()
        self._failures: list[BaseException] = []
        self._workers = [
            _Worker(
                self,
                number,
                seed,
                self._through if number < through else self._beside,
                is_safe=is_safe and number < through,
            )
            for number in range(through + beside)
        ]
        self._threads = [
            threading.Thread(target=worker.run, name=f"session {number}")
            for number, worker in enumerate(self._workers)
        ]

    @property
    def flavor(self) -> str:
        """`mariadb` or `mysql`."""
        return self.source.program.scheme

    def prepare(self) -> None:
        """Make the objects, in the source's log."""
        file = self.source.directory / "files" / "rows.txt"
        file.write_text("1\tone\n2\ttwo\n", encoding="utf-8")
        file.chmod(0o644)
        execute(self.source, *schema(self.flavor))

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._length is None or error is not None:
            self._has_ended.set()
        for thread in self._threads:
            thread.join()
        if error is None and self._failures:
            raise self._failures[0]
        # Those whose sessions were lost.
        end_lost_xa(self.source)

    @property
    def session_logs(self) -> Sequence[Sequence[str]]:
        """What each session did, a statement with its error a line."""
        return [worker.log for worker in self._workers]

    def has_ended(self, done: int) -> bool:
        """Whether a session that did so many statements is to end; waits a moment for it."""
        if self._length is not None and done >= self._length:
            return True
        if self._pause_s:
            self._has_ended.wait(random.uniform(0, self._pause_s))
        return self._has_ended.is_set()

    def failed(self, error: BaseException) -> None:
        """Remember what ended a session that nothing may end."""
        self._failures.append(error)
        self._has_ended.set()

    def connected(self, connect: Callable[[], Connection[Cursor]]) -> Connection[Cursor] | None:
        """A session as soon as there can be one; None if the load ends before."""
        while True:
            try:
                return connect()
            except (pymysql.MySQLError, OSError):
                if self._has_ended.wait(0.05):
                    return None

    def here(self, sql: str) -> str:
        """A statement with the place of the rows file."""
        return sql.replace(_ROWS_FILE, str(self.source.directory / "files" / "rows.txt"))

    def _through(self) -> Connection[Cursor]:
        return _connected(self._serve.port)

    def _beside(self) -> Connection[Cursor]:
        return _connected(self.source.port)


class _Worker:
    """One session after the other."""

    def __init__(
        self,
        load: PortLoad,
        number: int,
        seed: int,
        connect: Callable[[], Connection[Cursor]],
        *,
        is_safe: bool,
    ) -> None:
        self.log: list[str] = []
        self._is_safe = is_safe
        self._load = load
        self._connect = connect
        self._xid_prefix = f"x{seed}-{number}"
        self._xids = 0
        self._generator = Generator(load.flavor, seed * 1000 + number)
        self._generator._key += number * _KEYS_APART
        self._model: Session | None = None

    def run(self) -> None:
        """Work until the load ends."""
        try:
            self._work()
        except BaseException as error:
            self._load.failed(error)
            raise

    def _work(self) -> None:
        done = 0
        while not self._load.has_ended(done):
            session = self._load.connected(self._connect)
            if session is None:
                return
            self._load.counts["sessions"] += 1
            self._model = _model(self._load.flavor) if self._is_safe else None
            thread_id: Any = getattr(session, "server_thread_id", "")  # no public name has types
            self.log.append(f"-- session {thread_id}")
            try:
                for sql in self._statements():
                    if self._load.has_ended(done):
                        break
                    done += self._execute(session, self._load.here(sql))
            except _GoneError:
                pass
            finally:
                with suppress(pymysql.MySQLError, OSError):
                    session.close()

    def _statements(self) -> Iterator[str]:
        for sql in statements(self._generator):
            if sql.startswith("xa start"):
                self._xids += 1
            # Names of XA transactions are the server's, not a session's.
            is_xa = sql.startswith("xa ")
            yield sql.replace("'x'", f"'{self._xid_prefix}-{self._xids}'") if is_xa else sql

    def _execute(self, session: Connection[Cursor], sql: str) -> int:
        model = self._model
        before = None if model is None else model.snapshot()
        if model is not None and before is not None and _is_unsafe(model, sql):
            model.restore(before)
            self._load.counts["left out"] += 1
            return 0
        number, text = 0, ""
        try:
            with session.cursor() as cursor:
                cursor.execute(sql)
                while cursor.nextset():
                    pass
        except pymysql.MySQLError as error:
            number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
            text = str(error.args[-1]) if error.args else ""
        except OSError as error:
            self.log.append(f"{_now()} {sql}  -- {error}")
            raise _GoneError from error
        self.log.append(f"{_now()} {sql}" + (f"  -- {number} {text}" if text or number else ""))
        if number in _GONE and (number or text):
            self._load.counts["lost sessions"] += 1
            raise _GoneError
        if number:
            self._load.errors[number] += 1
            if model is not None and before is not None:
                model.restore(before)
                with suppress(Exception):
                    model.execute(sql, Outcome(error=number, rows=0))
        self._load.counts["failed" if number else "done"] += 1
        return 1


def statements(generator: Generator) -> Iterator[str]:
    """What a session does, without end, but for what is left out."""
    yield from filter(_is_kept, generator._opening())
    while True:
        yield from (one.sql for one in generator._next() if _is_kept(one.sql))


class _GoneError(Exception):
    """A session is no more."""


def _is_unsafe(model: Session, sql: str) -> bool:
    """Whether a statement is unsafe as its text, or nobody can tell."""
    try:
        result = model.execute(sql)
    except Exception:  # noqa: BLE001 - whatever it is, the statement is not known to be safe
        return True
    unsafe = any(binlog.unsafe for binlog in result.binlogs.values())
    # What a session before this one has made, or another one, the model knows nothing of.
    is_unknown = result.error is not None and result.error.errno in _UNKNOWN
    return unsafe or is_unknown or bool(result.notes) or result.unanalysed is not None


def _is_kept(sql: str) -> bool:
    return not any(word in sql for word in _LEFT_OUT)


def _model(flavor: str) -> Session:
    catalog = SchemaCatalog(Flavor(flavor))
    script = "DELIMITER $$\n" + "".join(f"{statement}$$\n" for statement in schema(flavor))
    catalog.load(CONFIGURATION[flavor] + script)
    session = Session(server=Server.parse(VERSIONS[flavor]), objects=catalog, database="d")
    session.execute("set binlog_format=statement")
    return session


def _connected(port: int) -> Connection[Cursor]:
    return pymysql.connect(
        host="127.0.0.1",
        port=port,
        user="root",
        database="d",
        charset="utf8mb4",
        autocommit=None,  # as the server has it
        connect_timeout=10,
        read_timeout=_READ_TIMEOUT_S,
        ssl_disabled=True,
    )


def _now() -> str:
    return f"{time.time():.4f}"


def checksums(server: PrivateServer) -> dict[str, object]:
    """The checksum of each table that the load writes, by its quoted name."""
    found = execute(
        server,
        "SELECT CONCAT('`', TABLE_SCHEMA, '`.`', REPLACE(TABLE_NAME, '`', '``'), '`')"
        " FROM information_schema.TABLES"
        " WHERE TABLE_TYPE IN ('BASE TABLE', 'SEQUENCE', 'SYSTEM VERSIONED')"
        " AND TABLE_SCHEMA IN ('d', 'e1', 'e2', 'd2')",
    )
    return {str(name): execute(server, f"CHECKSUM TABLE {name}")[0][1] for (name,) in found}
