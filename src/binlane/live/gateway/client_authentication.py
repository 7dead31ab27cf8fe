"""The exchange of client and source until the source has decided who the client is.

Packets pass as they are, each numbered for the connection that it goes to: behind a TLS request numbers are
higher by one, and only one of the two connections may have had it.

Clients send a password in clear where they see TLS, servers take one where they see TLS or a Unix
socket. Where client and source see different things neither understands the other: a password in
clear is then sealed with the source's own RSA key, as the client itself would have done without TLS;
the other way round there is none, and the client is told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from binlane.client.authentication import CACHING_SHA2_PASSWORD, obscure
from binlane.errors import StatementError
from binlane.log.codec.packets.framing import Packet, frame
from binlane.log.codec.packets.handshake import (
    AUTH_MORE_DATA_MARK,
    AUTH_NEXT_FACTOR_MARK,
    AUTH_SWITCH_MARK,
    AuthSwitch,
)
from binlane.log.codec.packets.replies import error_packet, is_error, is_ok

SHA256_PASSWORD: Final = "sha256_password"  # noqa: S105 - a plugin's name
_FULL_AUTH_WANTED: Final = bytes((AUTH_MORE_DATA_MARK, 0x04))
_KEY_REQUESTS: Final = {CACHING_SHA2_PASSWORD: b"\x02", SHA256_PASSWORD: b"\x01"}
# Their clients send the password as it is, and there is no sealed form of it.
_CLEAR_PLUGINS: Final = frozenset({"mysql_clear_password", "dialog"})
# No password that is not empty, for which these plugins ask.
_NO_PASSWORD: Final = b"\0"
_SEQUENCE_MASK: Final = 0xFF

Seal = Callable[[bytes, bytes], bytes]
"""Encrypts with a server's public key: PEM and data in, bytes out; ValueError if it cannot."""


@dataclass(frozen=True, slots=True)
class Privacy:
    """Privacy of a session's two connections, as client and source see it.

    Attributes:
        of_client: True if the client speaks TLS.
        of_source: True if the source is spoken to by TLS or a Unix socket.
    """

    of_client: bool
    of_source: bool

    @property
    def is_equal(self) -> bool:
        """True if client and source see the same privacy."""
        return self.of_client is self.of_source

    def exposes(self, plugin: str) -> bool:
        """True if a password that a plugin's client sends unasked would leave TLS in clear."""
        return (
            self.of_client
            and not self.of_source
            and (plugin in _CLEAR_PLUGINS or plugin == SHA256_PASSWORD)
        )


class Passed(NamedTuple):
    """Frames that follow from a packet.

    Attributes:
        to_client: Frames that go to the client.
        to_source: Frames that go to the source.
    """

    to_client: bytes = b""
    to_source: bytes = b""


class Authentication:
    """One login, or one change of user, from the first answer of the source to its last one.

    Attributes:
        result: The packet that ends the login, OK or ERR, once it has come; as the client gets it.
        result_number: Sequence number of the result for the client.
        scramble: The last challenge of the source.
    """

    def __init__(
        self,
        privacy: Privacy,
        seal: Seal,
        *,
        plugin: str,
        scramble: bytes,
        client_number: int,
    ) -> None:
        """Begin with the client's first answer.

        Args:
            privacy: Privacy of the two connections.
            seal: Encrypts a password for the source.
            plugin: Name of the plugin whose answer the client has sent.
            scramble: The challenge that the client answered.
            client_number: Sequence number of the client's last packet.
        """
        self._privacy = privacy
        self._seal = seal
        self._plugin = plugin
        self._to_client = client_number
        self._to_source = 0
        self._holds_next = self._awaits_key = False
        self._password = b""
        self._refusal: bytes | None = None
        self.result: bytes | None = None
        self.result_number = 0
        self.scramble = scramble

    def from_source(self, packet: Packet) -> Passed:
        """Take a packet of the source."""
        payload = packet.payload
        self._to_source = packet.next_sequence
        if is_ok(payload) or is_error(payload):
            self.result = self._refusal if self._refusal and is_error(payload) else payload
            return self._pass_to_client(self.result)
        mark = payload[:1]
        if mark in (bytes((AUTH_SWITCH_MARK,)), bytes((AUTH_NEXT_FACTOR_MARK,))):
            return self._switch(payload)
        if self._awaits_key:
            return self._send_sealed(payload[1:])
        if payload == _FULL_AUTH_WANTED and self._plugin == CACHING_SHA2_PASSWORD:
            if self._privacy.of_source and not self._privacy.of_client:
                return self._give_up(_wants_tls(self._plugin))
            self._holds_next = self._is_sealed
        return self._pass_to_client(payload)

    def from_client(self, packet: Packet) -> Passed:
        """Take a packet of the client."""
        payload = packet.payload
        self._to_client = packet.sequence
        if self._holds_next:
            self._holds_next, self._awaits_key = False, True
            self._password = payload.removesuffix(b"\0")
            return Passed(to_source=frame(_KEY_REQUESTS[self._plugin], self._to_source))
        if (
            self._plugin == SHA256_PASSWORD
            and payload == _KEY_REQUESTS[SHA256_PASSWORD]
            and not self._privacy.is_equal
        ):
            return self._give_up(_wants_tls(self._plugin))
        return Passed(to_source=frame(payload, self._to_source))

    @property
    def _is_sealed(self) -> bool:
        """True if passwords in clear have to be sealed."""
        return self._privacy.of_client and not self._privacy.of_source

    def _switch(self, payload: bytes) -> Passed:
        switch = AuthSwitch.decode(bytes((AUTH_SWITCH_MARK,)) + payload[1:])
        self._plugin, self._awaits_key = switch.plugin, False
        if switch.auth_data:
            self.scramble = switch.scramble
        if self._is_sealed and self._plugin in _CLEAR_PLUGINS:
            return self._give_up(clear_password_refusal(self._plugin))
        self._holds_next = self._is_sealed and self._plugin == SHA256_PASSWORD
        return self._pass_to_client(payload)

    def _send_sealed(self, key: bytes) -> Passed:
        self._awaits_key, password = False, self._password
        self._password = b""
        try:
            sealed = self._seal(key, obscure(password, self.scramble))
        except ValueError as error:
            return self._give_up(_refusal(f"the source's public key cannot be used: {error}"))
        return Passed(to_source=frame(sealed, self._to_source))

    def _give_up(self, error: StatementError) -> Passed:
        """Let the source refuse the login; one that breaks off counts against binlane's host."""
        self._refusal = error_packet(error)
        return Passed(to_source=frame(_NO_PASSWORD, self._to_source))

    def _pass_to_client(self, payload: bytes) -> Passed:
        self._to_client = self.result_number = (self._to_client + 1) & _SEQUENCE_MASK
        return Passed(to_client=frame(payload, self._to_client))


def clear_password_refusal(plugin: str) -> StatementError:
    """Give the error for a client whose password would leave its TLS in clear."""
    return _refusal(f"the source offers no TLS, and {plugin} would send it the password in clear")


def _wants_tls(plugin: str) -> StatementError:
    return _refusal(
        f"{plugin} needs a client with TLS here, since binlane reaches the source by TLS or a socket"
    )


def _refusal(reason: str) -> StatementError:
    return StatementError(f"Access denied: {reason}", errno=1045, sqlstate="28000")
