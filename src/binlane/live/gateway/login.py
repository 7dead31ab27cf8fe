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
from binlane.errors import CodecError, StatementError, TruncatedError
from binlane.live.gateway.client_authentication import (
    Authentication,
    Passed,
    Privacy,
    Seal,
    clear_password_refusal,
)
from binlane.live.gateway.known_logins import read_greeting, read_login
from binlane.live.gateway.ok_packets import ok_for_client, read_ok
from binlane.log.codec.packets.flags import (
    NO_CAPABILITIES,
    NO_EXTENSIONS,
    Capability,
    ExtendedCapability,
)
from binlane.log.codec.packets.framing import FRAME_HEADER_LENGTH, Packet, PacketSplitter, frame
from binlane.log.codec.packets.handshake import (
    SSL_REQUEST_LENGTH,
    Greeting,
    HandshakeResponse,
    SslRequest,
    is_ssl_request,
)
from binlane.log.codec.packets.replies import error_packet, is_error, is_ok

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


# Members of enumerations are looked up anew each time that they are named.
_GREETING: Final = LoginPhase.GREETING
_LOGIN: Final = LoginPhase.LOGIN
_AUTHENTICATION: Final = LoginPhase.AUTHENTICATION
# As integers: operations of flags are Python.
_SSL: Final = int(Capability.SSL)
_SESSION_TRACK: Final = int(Capability.SESSION_TRACK)
_OFFERED: Final = ~int(_NOT_OFFERED)
_PRIVACIES: Final = {
    (client, source): Privacy(of_client=client, of_source=source)
    for client in (False, True)
    for source in (False, True)
}


def _without_tls(greeting: Greeting) -> Greeting:
    return replace(
        greeting,
        capabilities=greeting.capabilities & ~_NOT_OFFERED,
        extended_capabilities=greeting.extended_capabilities & ~ExtendedCapability.COM_MULTI,
    )


def _with_tls(greeting: Greeting) -> Greeting:
    offered = _without_tls(greeting)
    return replace(offered, capabilities=offered.capabilities | Capability.SSL)


def _offered_extensions(wanted: ExtendedCapability, greeting: Greeting) -> ExtendedCapability:
    """Give those of MariaDB's capabilities that a client wants and is offered."""
    if not wanted:
        return NO_EXTENSIONS
    return wanted & greeting.extended_capabilities & ~ExtendedCapability.COM_MULTI


def by_nobody(user: str) -> bool:
    """Say that an account's statements are not judged."""
    del user
    return False


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
        is_judged: Called with the account's name once that is known, as in `__init__`.
    """

    def __init__(self, rules: LoginRules, is_judged: Callable[[str], bool] = by_nobody) -> None:
        """Begin before the greeting.

        Args:
            rules: By what means client and source may be connected.
            is_judged: Called with the account's name once that is known: whether the statements of
                the session are judged.
        """
        self._rules = rules
        self.is_judged = is_judged
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
        packets = self._source_packets
        if packets.is_empty:
            # A packet that came alone and in full, as nearly all do.
            length = len(data) - FRAME_HEADER_LENGTH
            if 0 < length <= LOGIN_MAX and int.from_bytes(data[:3], "little") == length:
                return self._take_packet(
                    Packet(data[FRAME_HEADER_LENGTH - 1], data[FRAME_HEADER_LENGTH:])
                )
        passed = [self._take_packet(packet) for packet in packets.feed(data)]
        return Passed(
            b"".join(each.to_client for each in passed), b"".join(each.to_source for each in passed)
        )

    def _take_packet(self, packet: Packet) -> Passed:
        """Take a packet of the source."""
        phase = self.phase
        if phase is _GREETING:
            return Passed(to_client=self._greet(packet.payload))
        if phase is _AUTHENTICATION:
            return self._take_answer(packet)
        if is_error(packet.payload):
            # A source that shuts down says so unasked.
            self.phase = LoginPhase.REFUSED
            number = (packet.sequence + self._client_has_tls) & 0xFF
            return Passed(to_client=frame(packet.payload, number))
        raise CodecError("the source speaks before it is answered")

    def from_client(self, data: bytes) -> Passed:
        """Take bytes of the client.

        Raises:
            CodecError: If they are no login of the protocol.
        """
        if self.phase is _GREETING:
            raise CodecError("the client speaks before it is greeted")
        self._client_bytes += data
        if self.phase is _LOGIN:
            return self._take_login()
        if self.phase is _AUTHENTICATION:
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
        of_source = self._source_has_tls or self._rules.source_is_local
        return _PRIVACIES[self._client_has_tls, of_source]

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
    def _is_tracked(self) -> bool:
        """True if the source tells the session's state, and the client did not ask for it."""
        return self.source_capabilities != self.capabilities

    @property
    def next_number(self) -> int | None:
        """Number of the packet that the client waits for, once it was greeted; None where others decide."""
        return (self.last_number + 1) & 0xFF if self.phase is LoginPhase.LOGIN else None

    def _greet(self, payload: bytes) -> bytes:
        if is_error(payload):
            self.phase = LoginPhase.REFUSED
            return frame(payload, 0)
        offers_tls = self._rules.offers_tls
        change = _with_tls if offers_tls else _without_tls
        greeting, self.thread_id, self.scramble, offered = read_greeting(
            payload, change, offers_tls=offers_tls
        )
        self._greeting = greeting
        self.server_version = greeting.server_version
        self.phase = _LOGIN
        return frame(offered, 0)

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
        payload = packet.payload
        wanted = int.from_bytes(payload[:_CAPABILITIES_LENGTH], "little")
        plugin = self._read(payload, wanted)
        self._authentication = self._authenticating(plugin, packet.sequence)
        asked = wanted & ~_SSL
        if self._is_tracked:
            asked |= _SESSION_TRACK
        if self._source_has_tls:
            asked |= _SSL
        payload = asked.to_bytes(_CAPABILITIES_LENGTH, "little") + payload[_CAPABILITIES_LENGTH:]
        if not self._source_has_tls:
            self.phase = _AUTHENTICATION
            passed = frame(payload, 1)
            return passed + self._authenticate() if self._client_bytes else passed
        self.phase = LoginPhase.SOURCE_TLS
        self._response = frame(payload, 2)
        return frame(payload[:SSL_REQUEST_LENGTH], 1)

    def _read(self, payload: bytes, wanted: int) -> str:
        """Read the client's answer to the greeting; give the plugin that it answers.

        Args:
            payload: Payload of the client's login.
            wanted: Capabilities that the login names.

        Raises:
            StatementError: If the client may not log in like this.
        """
        if len(payload) < SSL_REQUEST_LENGTH:
            raise TruncatedError(f"{len(payload)} bytes are no login", offset=0)
        if wanted & _COMPRESSION:
            raise StatementError(
                "compression is not offered here: connect without it",
                errno=BAD_HANDSHAKE_ERRNO,
                sqlstate="08S01",
            )
        if wanted & _SSL and not self._client_has_tls:
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
        login = read_login(payload)
        offered = int(greeting.capabilities)
        self._source_has_tls = rules.source_has_tls(
            is_offered=bool(offered & _SSL), client_has_tls=self._client_has_tls
        )
        if self.privacy.exposes(login.plugin):
            raise clear_password_refusal(login.plugin)
        self.user = login.user
        agreed = wanted & offered & _OFFERED
        self.capabilities = self.source_capabilities = Capability(agreed)
        self.extended = _offered_extensions(login.extended, greeting)
        if offered & _SESSION_TRACK and self.is_judged(self.user):
            self.source_capabilities = Capability(agreed | _SESSION_TRACK)
        return login.plugin

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
            if self._is_tracked:
                changed = ok_for_client(payload, read_ok(payload), 0, False, False)
                if changed is not None:
                    packet = Packet(packet.sequence, changed)
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
