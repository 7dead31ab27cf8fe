"""The login, relayed: what of it is read, and the little that is changed.

Compression and TLS are not offered to the client, since neither could be relayed. Where its
statements are judged, the source is told that the client wants what the session tracker says; nothing
else is changed. Of what the client says only its capabilities and the account's name are read.
"""

from __future__ import annotations

from collections.abc import Callable
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
from binlane.codec.packets.framing import FRAME_HEADER_LENGTH, PacketSplitter, frame
from binlane.codec.packets.handshake import Greeting, HandshakeResponse, SslRequest
from binlane.codec.packets.replies import OkPacket, error_packet, is_error, is_ok
from binlane.errors import CodecError, StatementError

_REFUSED: Final = Capability.COMPRESS | Capability.ZSTD_COMPRESSION | Capability.SSL
_NOT_OFFERED: Final = _REFUSED | Capability.OPTIONAL_RESULTSET_METADATA
_FAREWELL: Final = Capability.PROTOCOL_41 | Capability.SECURE_CONNECTION | Capability.LONG_PASSWORD
_UTF8: Final = 33
_CAPABILITIES_LENGTH: Final = 4
# Of what follows the greeting and the client's answer to it.
_REPLY_NUMBER: Final = 2
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
        capabilities: What the client and the source have agreed on.
        source_capabilities: What the source takes for that.
        extended: MariaDB's own among them.
        early: Commands that the client has sent before it was let in.
    """

    def __init__(
        self, refused_users: frozenset[str], is_judged: Callable[[str], bool] = lambda _: False
    ) -> None:
        """Begin before the greeting.

        Args:
            refused_users: Accounts that may not log in here.
            is_judged: Called with the account's name once that is known: whether the statements of
                the session are judged.
        """
        self._refused_users = refused_users
        self._is_judged = is_judged
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
        self.source_capabilities = NO_CAPABILITIES
        self.extended: ExtendedCapability = NO_EXTENSIONS
        self.early = b""

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
                if self.source_capabilities != self.capabilities:
                    ok = OkPacket.decode(packet.payload, self.source_capabilities)
                    payload = ok.encode(self.capabilities)
                    return data[: -len(packet.payload) - FRAME_HEADER_LENGTH] + frame(
                        payload, packet.sequence
                    )
            elif is_error(packet.payload):
                self.phase = LoginPhase.REFUSED
        return data

    def from_client(self, data: bytes) -> tuple[bytes, bytes]:
        """Take bytes of the client; gives what the source is sent, and what the client is.

        Raises:
            CodecError: If they are no login of the protocol.
        """
        if self.phase is LoginPhase.AUTHENTICATION:
            return self._authenticate(data), b""
        if self.phase is not LoginPhase.LOGIN:
            raise CodecError("the client speaks before it is greeted")
        packets = self._client_packets.feed(data)
        if not packets:
            return b"", b""
        payload, sequence = packets[0].payload, packets[0].sequence
        try:
            payload = self._read(payload)
        except StatementError as error:
            self.phase = LoginPhase.REFUSED
            return b"", frame(error_packet(error), sequence + 1 & 0xFF)
        self.phase = LoginPhase.AUTHENTICATION
        self._is_forwarded = True
        rest = b"".join(frame(packet.payload, packet.sequence) for packet in packets[1:])
        rest += self._client_packets.pending
        return frame(payload, sequence) + self._authenticate(rest), b""

    def _authenticate(self, data: bytes) -> bytes:
        """What the source gets of a client's answers; a packet numbered 0 is a command."""
        data = self.early + data
        offset = 0
        while len(data) - offset >= FRAME_HEADER_LENGTH and data[offset + 3]:
            length = int.from_bytes(data[offset : offset + 3], "little")
            if length > _LOGIN_MAX:
                raise CodecError(f"a packet of {length} bytes belongs to no login")
            if len(data) - offset - FRAME_HEADER_LENGTH < length:
                break
            offset += FRAME_HEADER_LENGTH + length
        self.early = data[offset:]
        if len(self.early) > _LOGIN_MAX + FRAME_HEADER_LENGTH:
            raise CodecError("the client goes on before it is let in")
        return data[:offset]

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

    @property
    def next_number(self) -> int | None:
        """Of the packet that the client waits for, once it was greeted; None where others decide."""
        return _REPLY_NUMBER if self.phase is LoginPhase.LOGIN else None

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
        greeting = replace(
            greeting,
            capabilities=greeting.capabilities & ~_NOT_OFFERED,
            extended_capabilities=greeting.extended_capabilities & ~ExtendedCapability.COM_MULTI,
        )
        self._offered = greeting.capabilities
        self._offered_extended = greeting.extended_capabilities
        self.thread_id, self.server_version = greeting.thread_id, greeting.server_version
        self.phase = LoginPhase.LOGIN
        return frame(greeting.encode(), 0)

    def _read(self, payload: bytes) -> bytes:
        """Read the client's answer to the greeting; gives it as the source gets it."""
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
        self.source_capabilities = self.capabilities
        if Capability.SESSION_TRACK not in self._offered or not self._is_judged(self.user):
            return payload
        self.source_capabilities |= Capability.SESSION_TRACK
        asked = int.from_bytes(payload[:_CAPABILITIES_LENGTH], "little") | Capability.SESSION_TRACK
        return asked.to_bytes(_CAPABILITIES_LENGTH, "little") + payload[_CAPABILITIES_LENGTH:]
