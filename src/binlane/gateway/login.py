"""The login, relayed: what of it is read, and the little that is changed.

Compression and TLS are not offered to the client, since neither could be relayed; nothing else is
changed. Of what the client says only its capabilities and the account's name are read.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import Final

from binlane.codec.buffer import Reader
from binlane.codec.packets.flags import (
    NO_CAPABILITIES,
    NO_EXTENSIONS,
    Capability,
    ExtendedCapability,
)
from binlane.codec.packets.framing import PacketSplitter, frame
from binlane.codec.packets.handshake import Greeting, HandshakeResponse, SslRequest
from binlane.codec.packets.replies import error_packet, is_error, is_ok
from binlane.errors import CodecError, StatementError

_REFUSED: Final = Capability.COMPRESS | Capability.ZSTD_COMPRESSION | Capability.SSL
_NOT_OFFERED: Final = _REFUSED | Capability.OPTIONAL_RESULTSET_METADATA
_FAREWELL: Final = Capability.PROTOCOL_41 | Capability.SECURE_CONNECTION | Capability.LONG_PASSWORD
_UTF8: Final = 33
# Nobody's account, and what the source's log shows of it. Short enough for MySQL.
_LEFT: Final = "client-left-before-login"
# A login with the longest connection attributes that servers take.
_LOGIN_MAX: Final = 1 << 17


class LoginPhase(Enum):
    """How far a login is."""

    GREETING = "greeting"
    LOGIN = "login"
    AUTHENTICATION = "authentication"
    DONE = "done"
    REFUSED = "refused"


class Login:
    """The state of one login.

    Attributes:
        phase: How far it is.
        user: Account name, empty before it is known.
        thread_id: The connection's id on the source.
        server_version: The source's, without the prefix for old replicas.
        capabilities: What both sides have agreed on.
        extended: MariaDB's own among them.
    """

    def __init__(self, refused_users: frozenset[str]) -> None:
        self._refused_users = refused_users
        self._source_packets = PacketSplitter(payload_max=_LOGIN_MAX)
        self._client_packets = PacketSplitter(payload_max=_LOGIN_MAX)
        self._offered = NO_CAPABILITIES
        self._is_forwarded = False
        self._offered_extended: ExtendedCapability = NO_EXTENSIONS
        self.phase = LoginPhase.GREETING
        self.user = ""
        self.thread_id = 0
        self.server_version = ""
        self.capabilities = NO_CAPABILITIES
        self.extended: ExtendedCapability = NO_EXTENSIONS

    def from_source(self, data: bytes) -> bytes:
        """Take bytes of the source; gives what the client is sent.

        Raises:
            CodecError: If they are no login of the protocol.
        """
        packets = self._source_packets.feed(data)
        if self.phase is LoginPhase.GREETING:
            return b"".join(self._greet(packet.payload) for packet in packets)
        for packet in packets:
            if is_ok(packet.payload):
                self.phase = LoginPhase.DONE
            elif is_error(packet.payload):
                self.phase = LoginPhase.REFUSED
        return data

    def from_client(self, data: bytes) -> tuple[bytes, bytes]:
        """Take bytes of the client; gives what the source is sent, and what the client is.

        Raises:
            CodecError: If they are no login of the protocol.
        """
        if self.phase is LoginPhase.AUTHENTICATION:
            return data, b""
        if self.phase is not LoginPhase.LOGIN:
            raise CodecError("the client speaks before it is greeted")
        packets = self._client_packets.feed(data)
        if not packets:
            return b"", b""
        payload, sequence = packets[0].payload, packets[0].sequence
        try:
            self._read(payload)
        except StatementError as error:
            self.phase = LoginPhase.REFUSED
            return b"", frame(error_packet(error), sequence + 1 & 0xFF)
        self.phase = LoginPhase.AUTHENTICATION
        self._is_forwarded = True
        return frame(payload, sequence), b""

    def farewell(self) -> bytes | None:
        """What ends the source's part of a login that the client does not go on with.

        Servers count connections that end while they wait for a login, and lock a host out that
        has many of them (`max_connect_errors`): here all would be binlane's own. A login that they
        refuse is not counted.

        Returns:
            A login of nobody; nothing where the source does not wait for one; None before it has
            greeted.
        """
        if self.phase is LoginPhase.GREETING:
            return None
        if self._is_forwarded or not self._offered:
            return b""
        head = SslRequest(
            capabilities=self._offered & _FAREWELL, payload_max=_LOGIN_MAX, character_set=_UTF8
        )
        return frame(HandshakeResponse(head=head, user=_LEFT, auth_response=b"").encode(), 1)

    def check_user(self, user: str) -> None:
        """See that an account may log in here.

        Raises:
            StatementError: If it may not.
        """
        if user in self._refused_users:
            # The source would ask the operating system who binlane is, and let the client in as that.
            raise StatementError(
                f"Access denied for user '{user}': it is the system account that binlane runs as",
                errno=1045,
                sqlstate="28000",
            )

    def _greet(self, payload: bytes) -> bytes:
        if is_error(payload):
            self.phase = LoginPhase.REFUSED
            return frame(payload, 0)
        greeting = Greeting.decode(payload)
        greeting = replace(greeting, capabilities=greeting.capabilities & ~_NOT_OFFERED)
        self._offered = greeting.capabilities
        self._offered_extended = greeting.extended_capabilities
        self.thread_id, self.server_version = greeting.thread_id, greeting.server_version
        self.phase = LoginPhase.LOGIN
        return frame(greeting.encode(), 0)

    def _read(self, payload: bytes) -> None:
        if SslRequest.read(Reader(payload)).capabilities & _REFUSED:
            raise StatementError(
                "TLS and compression are not offered here: connect without them",
                errno=1043,
                sqlstate="08S01",
            )
        response = HandshakeResponse.decode(payload)
        self.user = response.user
        self.check_user(self.user)
        self.capabilities = response.capabilities & self._offered
        self.extended = response.extended_capabilities & self._offered_extended
