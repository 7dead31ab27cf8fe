"""A socket for reading a server's log: `read_remote` gives its events until its end.

Blocking, since whoever prints a log has nothing else to do; a server that is gone is an error.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Generator
from contextlib import closing
from typing import Final

from binlane.capture.dialogue import Account
from binlane.capture.packet_flow import Send, StartTls
from binlane.capture.remote_machine import (
    HEARTBEAT_PERIOD_S,
    RemoteEnd,
    RemoteEvent,
    RemoteMachine,
    RemoteRequest,
)
from binlane.capture.settings import SourceUrl
from binlane.capture.transport import seal, tls_context
from binlane.errors import PeerError

_READ_BYTES: Final = 1 << 20
_CONNECT_S: Final = 10.0
# Two heartbeats may be late on a busy machine.
_SILENT_S: Final = 2.5 * HEARTBEAT_PERIOD_S


def account_at(url: SourceUrl, password: str) -> Account:
    """Who logs in at a server."""
    return Account(
        peer=str(url),
        user=url.user,
        password=password,
        ssl_mode=url.ssl_mode,
        is_local=url.socket is not None,
        seal=seal,
    )


def read_remote(
    url: SourceUrl, request: RemoteRequest, *, bind_address: str | None = None
) -> Generator[RemoteEvent, None, None]:
    """The events of a server's log; close the iterator to close the connection.

    Args:
        url: The server.
        request: From where on, and how far.
        bind_address: Own address to connect from; any by default.

    Raises:
        PeerError: If the server cannot be reached, refuses something, or goes away.
        ConfigError: If a file of certificates cannot be used.
        CodecError: If an event is damaged, with the server's file and position.
    """
    machine = RemoteMachine(request)
    connection = ServerConnection(url, bind_address)
    with closing(connection):
        while True:
            for output in machine.receive(connection.read()):
                if isinstance(output, RemoteEvent):
                    yield output
                elif isinstance(output, RemoteEnd):
                    return
                elif isinstance(output, Send):
                    connection.write(output.data)
                elif isinstance(output, StartTls):
                    connection.start_tls()


class ServerConnection:
    """A socket whose failures are errors of the peer."""

    def __init__(self, url: SourceUrl, bind_address: str | None) -> None:
        self._url = url
        try:
            self._socket = _connected(url, bind_address)
        except OSError as error:
            raise self._failure(error, "connect") from None
        self._socket.settimeout(_SILENT_S)

    def read(self) -> bytes:
        """The bytes that came next, at least one."""
        try:
            data = self._socket.recv(_READ_BYTES)
        except OSError as error:
            raise self._failure(error, "read") from None
        if not data:
            raise PeerError("the server closed the connection", peer=str(self._url), phase="dump")
        return data

    def write(self, data: bytes) -> None:
        """Send bytes."""
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise self._failure(error, "write") from None

    def start_tls(self) -> None:
        """Go on inside TLS."""
        context = tls_context(self._url)
        try:
            self._socket = context.wrap_socket(self._socket, server_hostname=self._url.host)
        except ssl.SSLCertVerificationError as error:
            raise PeerError(
                f"the server's certificate is not trusted: {error.verify_message}",
                peer=str(self._url),
                phase="TLS",
                hint="name the certificate that signed it: --ssl-ca FILE",
            ) from None
        except OSError as error:
            raise self._failure(error, "TLS") from None

    def close(self) -> None:
        """Go away."""
        self._socket.close()

    def _failure(self, error: OSError, phase: str) -> PeerError:
        reason = "no answer in time" if isinstance(error, TimeoutError) else str(error.strerror)
        return PeerError(
            f"the server cannot be reached: {reason}",
            peer=str(self._url),
            phase=phase,
            hint="check --host and --port, or --socket, and whether the server runs",
        )


def _connected(url: SourceUrl, bind_address: str | None) -> socket.socket:
    if url.socket is None:
        source = None if bind_address is None else (bind_address, 0)
        return socket.create_connection((url.host, url.port), _CONNECT_S, source)
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(_CONNECT_S)
        connection.connect(url.socket)
    except OSError:
        connection.close()
        raise
    return connection
