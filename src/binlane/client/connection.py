"""A blocking socket to a server, for whoever has nothing else to do than to read from it."""

from __future__ import annotations

import socket
import ssl
from typing import Final

from binlane.client.account import tls_context
from binlane.client.packet_flow import Send, StartTls
from binlane.client.remote_machine import HEARTBEAT_PERIOD_S
from binlane.client.settings import ServerUrl
from binlane.errors import PeerError

_READ_BYTES: Final = 1 << 20
_CONNECT_S: Final = 10.0
# Two heartbeats may be late on a busy machine.
_SILENT_S: Final = 2.5 * HEARTBEAT_PERIOD_S


class ServerConnection:
    """A socket whose failures are errors of the peer."""

    def __init__(self, url: ServerUrl, bind_address: str | None) -> None:
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

    def do(self, step: Send | StartTls) -> None:
        """Send bytes, or go on inside TLS."""
        if isinstance(step, StartTls):
            self._start_tls()
            return
        try:
            self._socket.sendall(step.data)
        except OSError as error:
            raise self._failure(error, "write") from None

    def close(self) -> None:
        """Go away."""
        self._socket.close()

    def _start_tls(self) -> None:
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

    def _failure(self, error: OSError, phase: str) -> PeerError:
        reason = "no answer in time" if isinstance(error, TimeoutError) else str(error.strerror)
        return PeerError(
            f"the server cannot be reached: {reason}",
            peer=str(self._url),
            phase=phase,
            hint="check --host and --port, or --socket, and whether the server runs",
        )


def _connected(url: ServerUrl, bind_address: str | None) -> socket.socket:
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
