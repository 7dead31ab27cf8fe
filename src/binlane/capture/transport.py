"""Sockets, time and files for the capture: connects, reads, reconnects.

A source that is gone is tried again and again, with growing delays, each failure told in one line;
what another attempt cannot mend, such as a wrong password or purged files, is raised.
"""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
import ssl
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from binlane.capture.backoff import Backoff
from binlane.capture.machine import DumpRequest, Ended, SourceMachine, Streaming
from binlane.capture.settings import SourceSettings, Start
from binlane.capture.source_facts import SourceFacts
from binlane.client.account import account_at, tls_context
from binlane.client.packet_flow import Send, StartTls
from binlane.codec.control import FormatDescriptionEvent
from binlane.errors import BinlaneError, ConfigError, PeerError
from binlane.grouping.event_group import EventGroup
from binlane.positions import FilePosition, GtidPosition

_LOG: Final = logging.getLogger(__name__)
_READ_BYTES: Final = 1 << 20
# Two heartbeats may be late on a busy machine; a source that is silent for longer is dead.
_SILENT_PERIODS: Final = 2.5
_SILENT_MIN_S: Final = 1.0
_SERVER_ID_BASE: Final = 0x62000000
_SERVER_ID_RANDOM: Final = 1 << 24
# Too many connections, shutdown, lost packets, limits, interrupted, killed: they pass.
_TRANSIENT_ERRNOS: Final = frozenset(
    {1040, 1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1203, 1226, 1317, 1927}
)


class Capture:
    """The event groups of one source, from a position on, for as long as somebody wants them.

    Attributes:
        settings: Which source, and how.
        server_id: binlane's id there.
        position: Every group up to here was given; None before the source first told it.
        file_position: Where the source's next event stands; None before the first connection.
        format_description: Of the source's current file; None before the first connection.
        facts: What the source said when the capture last connected; None before.
        is_connected: Whether event groups can come now.
        failure: Why the last attempt failed; None while connected.
        heard_at_s: When bytes last came, by `time.monotonic`; None before the first.
    """

    def __init__(self, settings: SourceSettings, start: Start | None = None) -> None:
        """Prepare; `batches` connects.

        Args:
            settings: Which source, and how.
            start: Where to begin, such as where a store ends; `settings.start` by default.
        """
        self.settings = settings
        self.server_id = settings.server_id or _random_server_id()
        self.position: GtidPosition | None = None
        self.file_position: FilePosition | None = None
        self.format_description: FormatDescriptionEvent | None = None
        self.facts: SourceFacts | None = None
        self.is_connected = False
        self.failure: BinlaneError | OSError | None = None
        self.heard_at_s: float | None = None
        self._start: Start = settings.start if start is None else start
        self._backoff = Backoff()
        self._warned: set[str] = set()

    async def batches(self) -> AsyncGenerator[list[EventGroup], None]:
        """Connect, and give what the source sends; reconnect where it goes away.

        Close the iterator (`contextlib.aclosing`) to close the connection.

        Yields:
            The groups that one read from the network completed, in log order, at least one. Control
            groups are among them: the first batch after each connection begins with the
            FORMAT_DESCRIPTION of the file that the dump starts in. Each group with a GTID comes
            once, also over reconnections. A large transaction is held in memory.

        Raises:
            PeerError: If the source refuses what another attempt would not change.
            ConfigError: If a setting is wrong, or the source's log cannot be the ground truth.
            CodecError: If an event is damaged; with the source's file and position.
        """
        while True:
            try:
                async with aclosing(self._connection()) as batches:
                    async for groups in batches:
                        yield groups
            except (OSError, PeerError) as error:
                if isinstance(error, PeerError) and error.errno not in _TRANSIENT_ERRNOS:
                    raise
                delay_s = self._failed(error)
            else:
                raise AssertionError("a connection ends by an error only")
            await asyncio.sleep(delay_s)

    async def _connection(self) -> AsyncGenerator[list[EventGroup], None]:
        """What one connection gives, until it ends by an error."""
        machine = SourceMachine(self._request())
        reader, writer = await self._connect()
        try:
            while True:
                data = await self._read(reader, machine)
                groups: list[EventGroup] = []
                failure: BinlaneError | OSError | None = None
                try:
                    failure = await self._handle(machine, data, writer, groups)
                except BinlaneError as error:
                    # What stands before the fault was read whole, and counts.
                    failure = error
                self._note(machine)
                if groups:
                    yield groups
                if failure is not None:
                    raise failure
        finally:
            self.is_connected = False
            writer.transport.abort()

    async def _handle(
        self,
        machine: SourceMachine,
        data: bytes,
        writer: asyncio.StreamWriter,
        groups: list[EventGroup],
    ) -> OSError | None:
        """Do what follows from `data`; put the groups that it completes into `groups`."""
        for output in machine.receive(data):
            if isinstance(output, EventGroup):
                if output.is_complete:
                    groups.append(output)
                else:
                    self._warn(f"group {output.gtid} at {output.file}:{output.position} has no end")
            elif isinstance(output, Send):
                writer.write(output.data)
            elif isinstance(output, StartTls):
                await self._start_tls(writer)
            elif isinstance(output, Streaming):
                self._connected(output.facts)
            elif isinstance(output, Ended):
                return ConnectionResetError("the source ended the dump")
        return None

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        url = self.settings.url
        async with asyncio.timeout(self.settings.timeout_s):
            if url.socket is not None:
                return await asyncio.open_unix_connection(url.socket, limit=_READ_BYTES)
            return await asyncio.open_connection(url.host, url.port, limit=_READ_BYTES)

    async def _start_tls(self, writer: asyncio.StreamWriter) -> None:
        url = self.settings.url
        try:
            async with asyncio.timeout(self.settings.timeout_s):
                await writer.start_tls(tls_context(url), server_hostname=url.host)
        except ssl.SSLCertVerificationError as error:
            raise PeerError(
                f"the server's certificate is not trusted: {error.verify_message}",
                peer=str(url),
                phase="TLS",
                hint="name the certificate that signed it: ?ssl-ca=PATH",
            ) from None

    async def _read(self, reader: asyncio.StreamReader, machine: SourceMachine) -> bytes:
        longest_s = self.settings.timeout_s
        if machine.stream is not None:
            longest_s = max(_SILENT_PERIODS * self.settings.heartbeat_period_s, _SILENT_MIN_S)
        try:
            async with asyncio.timeout(longest_s):
                data = await reader.read(_READ_BYTES)
        except TimeoutError:
            raise TimeoutError(f"the source was silent for {longest_s:.1f} s") from None
        if not data:
            raise ConnectionResetError("the source closed the connection")
        self.heard_at_s = time.monotonic()
        return data

    def _request(self) -> DumpRequest:
        return DumpRequest(
            account=account_at(self.settings.url, _password(self.settings)),
            start=self._start if self.position is None else self.position,
            server_id=self.server_id,
            heartbeat_period_s=self.settings.heartbeat_period_s,
        )

    def _connected(self, facts: SourceFacts) -> None:
        self.facts = facts
        self.is_connected = True
        self.failure = None
        for warning in facts.warnings():
            self._warn(warning)
        _LOG.info(
            "%s: connected to %s, server id %d, as %d",
            self.settings.url,
            facts.version,
            facts.server_id,
            self.server_id,
        )

    def _note(self, machine: SourceMachine) -> None:
        stream = machine.stream
        if stream is None:
            return
        self.position = stream.position
        self.file_position = stream.file_position
        self.format_description = stream.format_description or self.format_description
        if stream.has_progressed:
            self._backoff.reset()

    def _failed(self, error: PeerError | OSError) -> float:
        self.failure = error
        delay_s = self._backoff.next_delay_s(random.random())  # noqa: S311 - no secret
        _LOG.warning(
            "%s: %s; next try in %.1f s (attempt %d)",
            self.settings.url,
            str(error) or type(error).__name__,
            delay_s,
            self._backoff.attempts,
        )
        return delay_s

    def _warn(self, warning: str) -> None:
        if warning not in self._warned:
            self._warned.add(warning)
            _LOG.warning("%s: %s", self.settings.url, warning)


def _random_server_id() -> int:
    return _SERVER_ID_BASE + secrets.randbelow(_SERVER_ID_RANDOM)


def _password(settings: SourceSettings) -> str:
    path = settings.password_file
    if path is None:
        return settings.password
    try:
        return path.read_text(encoding="utf-8").partition("\n")[0].removesuffix("\r")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"the password file {path} cannot be read: {error}",
            key="source.password_file",
            hint="its first line is the password, in UTF-8",
        ) from None
