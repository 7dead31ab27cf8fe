"""A blocking socket to a server, for callers that only read from it."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
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
UNREACHED_HINT: Final = "check the address, and whether the server runs"
UNTRUSTED_HINT: Final = "name the certificate that signed it in its URL: ?ssl-ca=PATH"


class ServerConnection:
    """A socket whose failures are errors of the peer.

    Attributes:
        is_tls: True if all goes through TLS by now.

    Args:
        url: The address of the server.
        bind_address: Own address to connect from; any by default.
        connect_s: Longest wait for the connection.
        silent_s: Longest wait for the server's next bytes.
        hint: The advice where the server cannot be reached.
        ca_hint: The advice where its certificate is not trusted.
    """

    def __init__(  # whom, how long, and what to say
        self,
        url: ServerUrl,
        bind_address: str | None,
        *,
        connect_s: float = _CONNECT_S,
        silent_s: float = _SILENT_S,
        hint: str = UNREACHED_HINT,
        ca_hint: str = UNTRUSTED_HINT,
    ) -> None:
        self._url = url
        self._hint, self._ca_hint = hint, ca_hint
        try:
            self._socket = _connected(url, bind_address, connect_s)
        except OSError as error:
            raise self._failure(error, "connect") from None
        self._socket.settimeout(silent_s)
        self._pending: Callable[[], int] = _none_pending
        self.is_tls = False

    def read(self) -> bytes:
        """The server's next bytes, at least one."""
        try:
            data = self._socket.recv(_READ_BYTES)
        except OSError as error:
            raise self._failure(error, "read") from None
        if not data:
            raise self._closed()
        return data

    def do(self, step: Send | StartTls) -> None:
        """Send bytes, or start TLS on the connection."""
        if isinstance(step, StartTls):
            self._start_tls()
            return
        try:
            self._socket.sendall(step.data)
        except OSError as error:
            raise self._failure(error, "write") from None

    def fileno(self) -> int:
        """Return the socket's file descriptor, for a selector."""
        return self._socket.fileno()

    def stop_waiting(self) -> None:
        """Make `read_into` return at once, with the bytes that have arrived."""
        self._socket.setblocking(False)

    def read_into(self, view: memoryview) -> int:
        """Read the bytes that have arrived, as far as they fit; 0 if none have.

        Raises:
            PeerError: If the server is gone.
        """
        try:
            count = self._socket.recv_into(view)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return 0
        except OSError as error:
            raise self._failure(error, "read") from None
        if not count:
            raise self._closed()
        return count

    @property
    def pending(self) -> int:
        """The number of decrypted bytes inside TLS, which no selector reports."""
        return self._pending()

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def abort(self) -> None:
        """End another thread's wait for bytes: that thread finds the connection closed."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _start_tls(self) -> None:
        context = tls_context(self._url)
        try:
            wrapped = context.wrap_socket(self._socket, server_hostname=self._url.host)
        except ssl.SSLCertVerificationError as error:
            raise PeerError(
                f"the server's certificate is not trusted: {error.verify_message}",
                peer=str(self._url),
                phase="TLS",
                hint=self._ca_hint,
            ) from None
        except OSError as error:
            raise self._failure(error, "TLS") from None
        self._socket, self._pending, self.is_tls = wrapped, wrapped.pending, True

    def _closed(self) -> PeerError:
        return PeerError(
            "the server closed the connection", peer=str(self._url), phase="read", hint=self._hint
        )

    def _failure(self, error: OSError, phase: str) -> PeerError:
        reason = (
            "no answer in time" if isinstance(error, TimeoutError) else str(error.strerror or error)
        )
        return PeerError(
            f"the server cannot be reached: {reason}",
            peer=str(self._url),
            phase=phase,
            hint=self._hint,
        )


def _none_pending() -> int:
    return 0


def _connected(url: ServerUrl, bind_address: str | None, connect_s: float) -> socket.socket:
    if url.socket is None:
        source = None if bind_address is None else (bind_address, 0)
        return socket.create_connection((url.host, url.port), connect_s, source)
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(connect_s)
        connection.connect(url.socket)
    except OSError:
        connection.close()
        raise
    return connection
