"""The listening port in a test: capture, store, statements and gateway in one event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Final, Self

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from binlane.binlogs.store.disk import Disk, LocalDisk
from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.store import Store
from binlane.client.settings import ServerUrl
from binlane.live.answers.access import Access, BinlogAccess
from binlane.live.answers.port_answers import PortAnswers
from binlane.live.capture.settings import SourceSettings
from binlane.live.gateway.port_counts import LoginOutcome
from binlane.live.gateway.settings import GatewaySettings, TlsMode
from binlane.live.gateway.transport import Gateway
from binlane.live.loop.binlogs import Binlogs
from binlane.live.provision.certificates import port_context
from binlane.live.provision.private_server import PrivateServer

HOST: Final = "127.0.0.1"
_START_TIMEOUT_S: Final = 60.0


class ListeningPort:
    """binlane before a source, for the time of a `with` block.

    Attributes:
        port: Where it listens on 127.0.0.1.
        binlogs: What it serves; touch them by `run` only.
        statements: Who answers its sessions; as `binlogs`.
    """

    def __init__(
        self,
        source: PrivateServer,
        data_dir: Path,
        *,
        max_binlog_size_bytes: int = 1 << 30,
        is_by_socket: bool = False,
        disk: Disk | None = None,
        rule: BinlogAccess = BinlogAccess.PRIVILEGES,
        gateway: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """Prepare.

        Args:
            source: The server.
            data_dir: Where binlogs are kept.
            max_binlog_size_bytes: Of their files.
            is_by_socket: Whether the source is reached by its Unix socket.
            disk: What they are written to.
            rule: What lets sessions read.
            gateway: Further settings of the port, which has no TLS unless they say so.
        """
        self._gateway_settings = {"tls": TlsMode.OFF, **gateway}
        self._source = source
        self._source_socket = str(source.socket_path) if is_by_socket else None
        self._data_dir = data_dir
        self._rule = rule
        self._disk = disk or LocalDisk()
        self._settings = StoreSettings(max_binlog_size_bytes=max_binlog_size_bytes)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="listening port")
        self.port = 0
        self.binlogs: Binlogs
        self.statements: PortAnswers

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something in the port's event loop, and wait for it."""
        asyncio.run_coroutine_threadsafe(work, self._loop).result(_START_TIMEOUT_S)

    def connect(self, **options: Any) -> Connection[Cursor]:
        """Log in as root with autocommit, unless the options say otherwise."""
        return pymysql.connect(
            **{"host": HOST, "port": self.port, "user": "root", "autocommit": True, **options}
        )

    def execute(self, *statements: str, **options: Any) -> tuple[tuple[Any, ...], ...]:
        """Run statements in a session of their own; the rows of the last one."""
        with self.connect(**options) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return tuple(cursor.fetchall())

    def info(self, statement: str) -> str:
        """What the answer to a statement says for people."""
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            result: Any = connection._result  # type: ignore[attr-defined]  # nothing else has it
            # PyMySQL takes the length before the text for its first byte.
            return bytes(result.message or b"")[1:].decode()

    def state(self, name: str) -> str:
        """What SHOW BINLOGS says of how a binlog fares."""
        return str(next(row[7] for row in self.execute("SHOW BINLOGS") if row[0] == name))

    @property
    def logins(self) -> Mapping[LoginOutcome, int]:
        """What became of those who connected."""
        return self._gateway.counts.logins

    def file(self, name: str) -> Path:
        """Where a binlog file stands."""
        return self._data_dir / "binlogs" / name.rpartition(".")[0] / name

    def __enter__(self) -> Self:
        self._thread.start()
        self.run(self._start())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _start(self) -> None:
        self._store = Store.open(self._data_dir, self._settings, disk=self._disk, keeps_lost=True)
        source = SourceSettings(url=ServerUrl.parse(self._source.url))
        self.binlogs = Binlogs(self._store, source)
        self.binlogs.start()
        settings = GatewaySettings(
            port=0,
            source_host=self._source.host,
            source_port=self._source.port,
            source_socket=self._source_socket,
            **self._gateway_settings,
        )
        self.statements = PortAnswers(self.binlogs, access=Access(self.binlogs, self._rule))
        tls = port_context(settings, self._data_dir)
        self._gateway = Gateway(settings, self.statements, tls)
        await self._gateway.start()
        self.port = self._gateway.port

    async def _stop(self) -> None:
        self.binlogs.end_dumps()
        await self._gateway.stop()
        await self.binlogs.stop()
        self._store.close()


def wait_until(condition: Callable[[], bool], *, what: str, timeout_s: float = 60.0) -> None:
    """Poll until something is so.

    Raises:
        AssertionError: If it is not in time.
    """
    stop = threading.Event()
    for _ in range(int(timeout_s / 0.05)):
        if condition():
            return
        stop.wait(0.05)
    raise AssertionError(f"not in {timeout_s} s: {what}")
