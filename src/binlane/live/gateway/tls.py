"""TLS of one connection, between the bytes on its wire and those that are meant.

asyncio's own upgrade of a connection loses what has already been read, and a client may send the
beginning of its TLS along with its wish for it.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

_RECORD_MAX: Final = 1 << 14
# Bytes of TLS answers that may wait for a peer that takes nothing, beside the data for it.
_ANSWERS_MAX: Final = 64 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsRole:
    """Role of one side of a connection in TLS.

    Attributes:
        context: Holds the server's certificate and key, or the certificates that a client trusts.
        is_server: True for the server's side.
        host: Name of the server that a client expects.
    """

    context: ssl.SSLContext
    is_server: bool
    host: str | None = None


class TlsError(Exception):
    """The peer breaks TLS, or is not trusted; says which."""


class TlsLayer:
    """TLS of one connection.

    OpenSSL's buffers never shrink, so data passes through them one record at a time.

    Attributes:
        is_ready: True if the two sides have agreed on keys.
        has_ended: True if the peer has said that it sends no more.

    Args:
        role: Role of this side of the connection.
    """

    def __init__(self, role: TlsRole) -> None:
        self._arrived = ssl.MemoryBIO()
        self._leaving = ssl.MemoryBIO()
        self._is_server = role.is_server
        self._object = role.context.wrap_bio(
            self._arrived,
            self._leaving,
            server_side=role.is_server,
            server_hostname=role.host,
        )
        self._waiting: list[bytes] = []
        self._answers_bytes = 0
        self.is_ready = False
        self.has_ended = False

    def begin(self) -> None:
        """Say the first word, if it is this side's."""
        if not self._is_server:
            self._agree()

    def receive(self, data: bytes) -> bytes:
        """Take bytes from the wire, and give the decrypted data.

        Raises:
            TlsError: If that is no TLS, or this side does not trust the peer; `take` has what the
                peer is to be told of it.
        """
        if len(data) <= _RECORD_MAX:
            return self._receive(data)
        view = memoryview(data)
        pieces = range(0, len(data), _RECORD_MAX)
        return b"".join([self._receive(view[at : at + _RECORD_MAX]) for at in pieces])

    def _receive(self, data: bytes | memoryview) -> bytes:
        self._arrived.write(data)
        if not self.is_ready and not self._agree():
            return b""
        before = self._leaving.pending
        meant = self._read()
        answered = self._leaving.pending - before
        if answered:
            self._answers_bytes += answered
            if self._answers_bytes > _ANSWERS_MAX:
                raise TlsError("the peer asks for new keys over and over")
        return meant

    def sent(self, data: bytes | memoryview) -> bytes:
        """Give the wire's bytes for some data; data that comes before the keys waits for them."""
        if not data:
            return self.take()
        if not self.is_ready:
            self._waiting.append(bytes(data))
        elif len(data) > _RECORD_MAX:
            return self._taken_by_record(memoryview(data))
        else:
            self._object.write(data)
        return self.take()

    def _taken_by_record(self, view: memoryview) -> bytes:
        parts = [self.take()]
        while view:
            view = view[self._object.write(view[:_RECORD_MAX]) :]
            parts.append(self.take())
        return b"".join(parts)

    def take(self) -> bytes:
        """Take the bytes that go on the wire."""
        return self._leaving.read()

    def end(self) -> bytes:
        """Give the wire's bytes that say that nothing more is sent."""
        if self.is_ready:
            with suppress(ssl.SSLError):
                self._object.unwrap()
        return self.take()

    def _agree(self) -> bool:
        """Go on with the handshake; True if it is done."""
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLCertVerificationError as error:
            raise TlsError(f"the certificate is not trusted: {error.verify_message}") from None
        except ssl.SSLError as error:
            raise TlsError(_reason(error)) from None
        self.is_ready = True
        waiting, self._waiting = self._waiting, []
        for data in waiting:
            view = memoryview(data)
            while view:
                view = view[self._object.write(view) :]
        return True

    def _read(self) -> bytes:
        read, parts = self._object.read, []
        try:
            # Asking without need costs an exception; a record that is not whole is inside already.
            while self._arrived.pending or self._object.pending():
                part = read(_RECORD_MAX)
                if not part:
                    self.has_ended = True
                    break
                parts.append(part)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.has_ended = True
        except ssl.SSLError as error:
            raise TlsError(_reason(error)) from None
        return parts[0] if len(parts) == 1 else b"".join(parts)


def _reason(error: ssl.SSLError) -> str:
    """Give OpenSSL's name of an error."""
    return (error.reason or str(error)).replace("_", " ").lower()
