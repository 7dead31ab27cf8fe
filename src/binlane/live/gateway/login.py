"""The login, relayed: what of it is read, and the little that is changed.

Compression is not offered to the client, since it could not be relayed. TLS is binlane's own on either
side: whether the source is spoken to by TLS hangs on whether the client asked for it. Where its
statements are judged, the source is told that the client wants what the session tracker says; nothing
else is changed. Of what the client says only its capabilities and the account's name are read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from binlane.client.settings import SslMode
from binlane.errors import CodecError, StatementError
from binlane.live.gateway.client_authentication import (
    Authentication,
    Passed,
    Privacy,
    Seal,
    clear_password_refusal,
)
from binlane.log.codec.buffer import Reader
from binlane.log.codec.packets.flags import (
    NO_CAPABILITIES,
    NO_EXTENSIONS,
    Capability,
    ExtendedCapability,
)
from binlane.log.codec.packets.framing import FRAME_HEADER_LENGTH, Packet, PacketSplitter, frame
from binlane.log.codec.packets.handshake import (
    Greeting,
    HandshakeResponse,
    SslRequest,
    is_ssl_request,
)
from binlane.log.codec.packets.replies import OkPacket, error_packet, is_error, is_ok

_COMPRESSION: Final = Capability.COMPRESS | Capability.ZSTD_COMPRESSION
_NOT_OFFERED: Final = _COMPRESSION | Capability.SSL | Capability.OPTIONAL_RESULTSET_METADATA
_FAREWELL: Final = Capability.PROTOCOL_41 | Capability.SECURE_CONNECTION | Capability.LONG_PASSWORD
_UTF8: Final = 33
_CAPABILITIES_LENGTH: Final = 4
BAD_HANDSHAKE_ERRNO: Final = 1043
"""A connection that cannot be made as one side wants it. What clients call a failed TLS, 2026, is of the
numbers that they keep for themselves: from a server some take it for a malformed packet."""
# Nobody's account, and what the source's log shows of it. Short enough for MySQL.
_LEFT: Final = "client-left-before-login"
# A login with the longest connection attributes that servers take.
LOGIN_MAX: Final = 1 << 17


class LoginPhase(Enum):
    """Progress of a login."""

    GREETING = "greeting"
    LOGIN = "login"
    CLIENT_TLS = "TLS of the client is to begin"
    SOURCE_TLS = "TLS of the source is to begin"
    AUTHENTICATION = "authentication"
    DONE = "done"
    REFUSED = "refused"


def _no_seal(key: bytes, data: bytes) -> bytes:
    del key, data
    raise ValueError("nothing here encrypts")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginRules:
    """Conditions for the connections of a client and of the source.

    Attributes:
        offers_tls: True if clients are offered TLS.
        requires_tls: True if clients without TLS are refused.
        source_is_local: True if the source is at a Unix socket.
        source_ssl_mode: Conditions for TLS to the source; PREFERRED does as the client does.
        checks_account: True if the login's account is asked for before the client is let in.
        seal: Encrypts a password for the source, where that offers no TLS and the client has it.
    """

    offers_tls: bool = False
    requires_tls: bool = False
    source_is_local: bool = False
    source_ssl_mode: SslMode = SslMode.PREFERRED
    checks_account: bool = False
    seal: Seal = _no_seal

    def source_has_tls(self, *, is_offered: bool, client_has_tls: bool) -> bool:
        """True if the source is spoken to by TLS.

        Raises:
            StatementError: If TLS is required, and the source offers none.
        """
        mode = self.source_ssl_mode
        if self.source_is_local or mode is SslMode.DISABLED:
            return False
        if not mode.is_required:
            return is_offered and client_has_tls
        if not is_offered:
            raise StatementError(
                f"the source offers no TLS, and ssl-mode={mode.value} of source.url wants it",
                errno=BAD_HANDSHAKE_ERRNO,
                sqlstate="08S01",
            )
        return True


class Login:
    """The state of one login.

    Attributes:
        user: Account name, empty before it is known.
        thread_id: The connection's id on the source.
        server_version: Version of the source, without the prefix for old replicas.
        capabilities: Capabilities that the client and the source have agreed on.
        source_capabilities: Capabilities that the source takes to be agreed on.
        extended: MariaDB's own capabilities among those agreed on.
        scramble: The last challenge of the source.
    """

    def __init__(
        self, rules: LoginRules, is_judged: Callable[[str], bool] = lambda _: False
    ) -> None:
        """Begin before the greeting.

        Args:
            rules: By what means client and source may be connected.
            is_judged: Called with the account's name once that is known: whether the statements of
                the session are judged.
        """
        self._rules = rules
        self._is_judged = is_judged
        self._source_packets = PacketSplitter(payload_max=LOGIN_MAX)
        self._client_bytes = b""
        self._client_has_tls = self._source_has_tls = False
        self._greeting: Greeting | None = None
        self._response = b""
        self._authentication: Authentication | None = None
        self._last_number = 0
        self.phase = LoginPhase.GREETING
        self.user = ""
        self.thread_id = 0
        self.server_version = ""
        self.capabilities = NO_CAPABILITIES
        self.source_capabilities = NO_CAPABILITIES
        self.extended: ExtendedCapability = NO_EXTENSIONS
        self.scramble = b""

    @property
    def early(self) -> bytes:
        """Commands that the client has sent before it was let in."""
        return self._client_bytes

    @property
    def last_number(self) -> int:
        """Sequence number of the last packet between here and the client."""
        if self._authentication is not None and self._authentication.result is not None:
            return self._authentication.result_number
        return self._last_number

    def from_source(self, data: bytes) -> Passed:
        """Take bytes of the source.

        Raises:
            CodecError: If they are no login of the protocol.
        """
        passed: list[Passed] = []
        for packet in self._source_packets.feed(data):
            if self._greeting is None and self.phase is LoginPhase.GREETING:
                passed.append(Passed(to_client=self._greet(packet.payload)))
            elif self.phase is LoginPhase.AUTHENTICATION:
                passed.append(self._take_answer(packet))
            elif is_error(packet.payload):
                # A source that shuts down says so unasked.
                self.phase = LoginPhase.REFUSED
                number = (packet.sequence + self._client_has_tls) & 0xFF
                passed.append(Passed(to_client=frame(packet.payload, number)))
            else:
                raise CodecError("the source speaks before it is answered")
        return Passed(
            b"".join(each.to_client for each in passed), b"".join(each.to_source for each in passed)
        )

    def from_client(self, data: bytes) -> Passed:
        """Take bytes of the client.

        Raises:
            CodecError: If they are no login of the protocol.
        """
        if self.phase is LoginPhase.GREETING:
            raise CodecError("the client speaks before it is greeted")
        self._client_bytes += data
        if self.phase is LoginPhase.LOGIN:
            return self._take_login()
        if self.phase is LoginPhase.AUTHENTICATION:
            return Passed(to_source=self._authenticate())
        self._check_waiting()
        return Passed()

    def begin_tls(self) -> bytes:
        """TLS begins at the side that `phase` names.

        Returns:
            Of the client what it has sent of it already; for the source what is sent by it.
        """
        if self.phase is LoginPhase.CLIENT_TLS:
            self._client_has_tls, self.phase = True, LoginPhase.LOGIN
            begun, self._client_bytes = self._client_bytes, b""
            return begun
        assert self.phase is LoginPhase.SOURCE_TLS, "nobody waits for TLS"
        response, self._response = self._response, b""
        self.phase = LoginPhase.AUTHENTICATION
        return response + self._authenticate()

    def refuse(self, error: StatementError) -> bytes:
        """End the login with an error; give the bytes for the client."""
        self.phase = LoginPhase.REFUSED
        return frame(error_packet(error), (self.last_number + 1) & 0xFF)

    def new_authentication(self, plugin: str, client_number: int) -> Authentication:
        """Give the exchange for a change of user on the same connections, which has begun.

        Args:
            plugin: Name of the plugin whose answer the client has sent.
            client_number: Sequence number of the client's packet.
        """
        return self._authenticating(plugin, client_number)

    @property
    def privacy(self) -> Privacy:
        """The privacy of the two connections."""
        return Privacy(
            of_client=self._client_has_tls,
            of_source=self._source_has_tls or self._rules.source_is_local,
        )

    def farewell(self) -> bytes | None:
        """Give the bytes that end the source's part of a login with which the client does not go on.

        Servers count connections that end while they wait for a login, and lock a host out that has many of
        them (`max_connect_errors`): here all would be binlane's own. A login that a server refuses is not
        counted.

        Returns:
            A login under the name of no account; empty where the source does not wait for a login; None
            before the source has greeted.
        """
        if self.phase is LoginPhase.GREETING:
            return None
        if self._authentication is not None or self._greeting is None:
            return b""
        head = SslRequest(
            capabilities=self._greeting.capabilities & _FAREWELL,
            payload_max=LOGIN_MAX,
            character_set=_UTF8,
        )
        return frame(HandshakeResponse(head=head, user=_LEFT, auth_response=b"").encode(), 1)

    @property
    def next_number(self) -> int | None:
        """Number of the packet that the client waits for, once it was greeted; None where others decide."""
        return (self.last_number + 1) & 0xFF if self.phase is LoginPhase.LOGIN else None

    def _greet(self, payload: bytes) -> bytes:
        if is_error(payload):
            self.phase = LoginPhase.REFUSED
            return frame(payload, 0)
        greeting = Greeting.decode(payload)
        self._greeting = greeting = replace(
            greeting,
            extended_capabilities=greeting.extended_capabilities & ~ExtendedCapability.COM_MULTI,
        )
        self.scramble = greeting.scramble
        offered = greeting.capabilities & ~_NOT_OFFERED
        if self._rules.offers_tls:
            offered |= Capability.SSL
        self.thread_id, self.server_version = greeting.thread_id, greeting.server_version
        self.phase = LoginPhase.LOGIN
        return frame(replace(greeting, capabilities=offered).encode(), 0)

    def _take_login(self) -> Passed:
        """Read the client's first packet, or, if that asked for TLS, its next one."""
        packet = self._next_packet()
        if packet is None:
            return Passed()
        try:
            if is_ssl_request(packet.payload) and not self._client_has_tls:
                self._begin_client_tls()
                return Passed()
            return Passed(to_source=self._log_in(packet))
        except StatementError as error:
            return Passed(to_client=self.refuse(error))

    def _begin_client_tls(self) -> None:
        if not self._rules.offers_tls:
            raise StatementError(
                "TLS is not offered here: connect without it",
                errno=BAD_HANDSHAKE_ERRNO,
                sqlstate="08S01",
            )
        self.phase = LoginPhase.CLIENT_TLS

    def _log_in(self, packet: Packet) -> bytes:
        """Read the client's login, and give the bytes for the source."""
        response = self._read(packet.payload)
        self._authentication = self._authenticating(response.plugin or "", packet.sequence)
        head = response.head
        asked = head.capabilities & ~Capability.SSL
        if self.source_capabilities != self.capabilities:
            asked |= Capability.SESSION_TRACK
        if self._source_has_tls:
            asked |= Capability.SSL
        payload = asked.to_bytes(_CAPABILITIES_LENGTH, "little")
        payload += packet.payload[_CAPABILITIES_LENGTH:]
        if not self._source_has_tls:
            self.phase = LoginPhase.AUTHENTICATION
            return frame(payload, 1) + self._authenticate()
        self.phase = LoginPhase.SOURCE_TLS
        self._response = frame(payload, 2)
        return frame(replace(head, capabilities=asked).encode(), 1)

    def _read(self, payload: bytes) -> HandshakeResponse:
        """Read the client's answer to the greeting, and choose the next phase.

        Raises:
            StatementError: If the client may not log in like this.
        """
        wanted = SslRequest.read(Reader(payload)).capabilities
        if wanted & _COMPRESSION:
            raise StatementError(
                "compression is not offered here: connect without it",
                errno=BAD_HANDSHAKE_ERRNO,
                sqlstate="08S01",
            )
        if Capability.SSL in wanted and not self._client_has_tls:
            raise CodecError("the client announces TLS, and does not begin it")
        rules, greeting = self._rules, self._greeting
        assert greeting is not None, "it was answered"
        if rules.requires_tls and not self._client_has_tls:
            raise StatementError(
                "Connections using insecure transport are prohibited while"
                " --require_secure_transport=ON.",
                errno=3159,
                sqlstate="08004",
            )
        response = HandshakeResponse.decode(payload)
        self._source_has_tls = rules.source_has_tls(
            is_offered=Capability.SSL in greeting.capabilities, client_has_tls=self._client_has_tls
        )
        if self.privacy.exposes(response.plugin or ""):
            raise clear_password_refusal(response.plugin or "")
        self.user = response.user
        self.capabilities = response.capabilities & greeting.capabilities & ~_NOT_OFFERED
        self.extended = response.extended_capabilities & greeting.extended_capabilities
        self.source_capabilities = self.capabilities
        if Capability.SESSION_TRACK in greeting.capabilities and self._is_judged(self.user):
            self.source_capabilities |= Capability.SESSION_TRACK
        return response

    def _authenticating(self, plugin: str, client_number: int) -> Authentication:
        return Authentication(
            self.privacy,
            self._rules.seal,
            plugin=plugin,
            scramble=self.scramble,
            client_number=client_number,
        )

    def _take_answer(self, packet: Packet) -> Passed:
        authentication = self._authentication
        assert authentication is not None, "the client has logged in"
        payload = packet.payload
        if is_ok(payload):
            self.phase = LoginPhase.DONE
            if self.source_capabilities != self.capabilities:
                ok = OkPacket.decode(payload)
                packet = Packet(packet.sequence, ok.encode(self.capabilities))
        elif is_error(payload):
            self.phase = LoginPhase.REFUSED
        passed = authentication.from_source(packet)
        self.scramble = authentication.scramble
        return passed

    def _authenticate(self) -> bytes:
        """Read the client's answers, and give the bytes for the source; a packet numbered 0 is a command."""
        authentication = self._authentication
        assert authentication is not None, "the client has logged in"
        parts: list[bytes] = []
        while (
            len(self._client_bytes) >= FRAME_HEADER_LENGTH
            and self._client_bytes[FRAME_HEADER_LENGTH - 1]
        ):
            packet = self._next_packet()
            if packet is None:
                break
            parts.append(authentication.from_client(packet).to_source)
        self._check_waiting()
        return b"".join(parts)

    def _next_packet(self) -> Packet | None:
        """Take the packet at the beginning of the client's bytes; None until it is there.

        Bytes behind it are not looked at: they may be TLS.
        """
        data = self._client_bytes
        if len(data) < FRAME_HEADER_LENGTH:
            return None
        length = int.from_bytes(data[:3], "little")
        self._last_number = data[FRAME_HEADER_LENGTH - 1]
        if length > LOGIN_MAX:
            raise CodecError(f"a packet of {length} bytes belongs to no login")
        end = FRAME_HEADER_LENGTH + length
        if len(data) < end:
            return None
        self._client_bytes = data[end:]
        return Packet(self._last_number, data[FRAME_HEADER_LENGTH:end])

    def _check_waiting(self) -> None:
        if len(self._client_bytes) > LOGIN_MAX + FRAME_HEADER_LENGTH:
            raise CodecError("the client goes on before it is let in")
