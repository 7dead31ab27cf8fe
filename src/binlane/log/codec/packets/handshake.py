"""The login: greeting, TLS request, response, change of authentication plugin.

Source: MariaDB 10.11 sql/sql_acl.cc, send_server_handshake_packet and
parse_client_handshake_packet; bytes of a MariaDB 10.11.19 and a MySQL 9.7.4 server.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from struct import Struct
from typing import Final, Self

from binlane.errors import CodecError, UnsupportedError
from binlane.log.codec.buffer import Reader, encode_packed_int
from binlane.log.codec.packets.flags import (
    NO_EXTENSIONS,
    Capability,
    ExtendedCapability,
    ServerStatus,
)
from binlane.log.codec.packets.framing import (
    bytes_of,
    encode_packed_bytes,
    nul_bytes,
    packed_bytes,
    text_of,
)

PROTOCOL_VERSION: Final = 10
SCRAMBLE_LENGTH: Final = 20
AUTH_SWITCH_MARK: Final = 0xFE
AUTH_MORE_DATA_MARK: Final = 0x01
AUTH_NEXT_FACTOR_MARK: Final = 0x02
_SCRAMBLE_HEAD: Final = 8
_SCRAMBLE_TAIL_MIN: Final = 13
_GREETING_FLAGS: Final = Struct("<HBHHB6sI")
_RESPONSE_HEAD: Final = Struct("<IIB19sI")
SSL_REQUEST_LENGTH: Final = _RESPONSE_HEAD.size
"""Bytes of the head of a login."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeting:
    """A server's first packet (Handshake v10).

    Attributes:
        version: The version as sent: MariaDB before 11.0 puts `5.5.5-` before it.
        thread_id: The connection's id, as KILL takes it.
        auth_data: The challenge with whatever ends it, mostly 20 bytes and a NUL.
        capabilities: The capabilities that the server offers.
        character_set: Low byte of its default collation.
        status: The status of the session.
        plugin: Authentication plugin that the challenge is for; empty without PLUGIN_AUTH.
        extended_capabilities: MariaDB's own; 0 from MySQL.
    """

    version: str
    thread_id: int
    auth_data: bytes
    capabilities: Capability
    character_set: int
    status: ServerStatus
    plugin: str
    extended_capabilities: ExtendedCapability = NO_EXTENSIONS
    reserved: bytes = bytes(6)

    @classmethod
    def decode(cls, payload: bytes) -> Self:
        """Read a server's greeting.

        Raises:
            UnsupportedError: If the server speaks another version of the protocol.
            CodecError: If it is no greeting.
        """
        reader = Reader(payload)
        protocol = reader.u8()
        if protocol != PROTOCOL_VERSION:
            raise UnsupportedError(
                f"the peer greets with protocol version {protocol}; {PROTOCOL_VERSION} is expected",
                hint="is a MariaDB or MySQL server listening there?",
            )
        version = text_of(nul_bytes(reader))
        thread_id = reader.u32()
        head = reader.take(_SCRAMBLE_HEAD)
        reader.u8()
        low, character_set, status, high, length, reserved, extended = reader.unpack(
            _GREETING_FLAGS
        )
        capabilities = Capability(low | high << 16)
        if Capability.LONG_PASSWORD in capabilities:
            reserved, extended = reserved + extended.to_bytes(4, "little"), 0
        tail = reader.take(max(_SCRAMBLE_TAIL_MIN, length - _SCRAMBLE_HEAD))
        plugin = nul_bytes(reader) if Capability.PLUGIN_AUTH in capabilities else b""
        reader.finish()
        return cls(
            version=version,
            thread_id=thread_id,
            auth_data=head + tail,
            capabilities=capabilities,
            character_set=character_set,
            status=ServerStatus(status),
            plugin=text_of(plugin),
            extended_capabilities=ExtendedCapability(extended),
            reserved=reserved,
        )

    def encode(self) -> bytes:
        """Return the payload."""
        has_plugin = Capability.PLUGIN_AUTH in self.capabilities
        reserved = self.reserved
        if len(reserved) == 6:
            reserved += self.extended_capabilities.to_bytes(4, "little")
        return b"".join(
            (
                bytes((PROTOCOL_VERSION,)),
                bytes_of(self.version) + b"\0",
                self.thread_id.to_bytes(4, "little"),
                self.auth_data[:_SCRAMBLE_HEAD] + b"\0",
                (self.capabilities & 0xFFFF).to_bytes(2, "little"),
                bytes((self.character_set,)),
                self.status.to_bytes(2, "little"),
                (self.capabilities >> 16).to_bytes(2, "little"),
                bytes((len(self.auth_data) if has_plugin else 0,)),
                reserved,
                self.auth_data[_SCRAMBLE_HEAD:],
                bytes_of(self.plugin) + b"\0" if has_plugin else b"",
            )
        )

    @property
    def scramble(self) -> bytes:
        """The challenge itself, 20 bytes."""
        return self.auth_data[:SCRAMBLE_LENGTH]

    @property
    def server_version(self) -> str:
        """The version without the prefix that older MariaDB puts before it for old replicas."""
        return self.version.removeprefix("5.5.5-")


@dataclass(frozen=True, slots=True, kw_only=True)
class SslRequest:
    """The head of a login, sent alone: TLS begins right after it.

    Attributes:
        capabilities: The capabilities that the client wants, SSL among them.
        payload_max: Longest packet that the client takes, in bytes.
        character_set: Collation id of the session.
    """

    capabilities: Capability
    payload_max: int
    character_set: int
    extended_capabilities: ExtendedCapability = NO_EXTENSIONS
    reserved: bytes = bytes(19)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Read the 32 bytes that it shares with the login."""
        capabilities, payload_max, character_set, reserved, extended = reader.unpack(_RESPONSE_HEAD)
        return cls(
            capabilities=Capability(capabilities),
            payload_max=payload_max,
            character_set=character_set,
            extended_capabilities=ExtendedCapability(extended),
            reserved=reserved,
        )

    @classmethod
    def decode(cls, payload: bytes) -> Self:
        """Read a TLS request."""
        reader = Reader(payload)
        request = cls.read(reader)
        reader.finish()
        return request

    def encode(self) -> bytes:
        """Exact inverse."""
        return _RESPONSE_HEAD.pack(
            self.capabilities,
            self.payload_max,
            self.character_set,
            self.reserved,
            self.extended_capabilities,
        )


def is_ssl_request(payload: bytes) -> bool:
    """True if a client's first packet asks for TLS instead of logging in."""
    return (
        len(payload) == _RESPONSE_HEAD.size
        and Capability.SSL in SslRequest.decode(payload).capabilities
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HandshakeResponse:
    """A login (Handshake Response 41).

    Attributes:
        head: Capabilities, packet size and character set.
        user: The account's name without a host.
        auth_response: The first answer of the plugin.
        database: Default database; None without CONNECT_WITH_DB.
        plugin: The plugin that answered; None without PLUGIN_AUTH.
        attributes: Connection attributes in the order sent; None without CONNECT_ATTRS.
        rest: The bytes at the end; MySQL clients send their zstd level.
    """

    head: SslRequest
    user: str
    auth_response: bytes
    database: str | None = None
    plugin: str | None = None
    attributes: tuple[tuple[str, str], ...] | None = None
    rest: bytes = b""

    @classmethod
    def decode(cls, payload: bytes) -> Self:
        """Read a client's login.

        Raises:
            UnsupportedError: If the client is older than MySQL 4.1.
            CodecError: If it is no login.
        """
        reader = Reader(payload)
        if not reader.u16() & Capability.PROTOCOL_41:
            raise UnsupportedError("the client is older than MySQL 4.1 and cannot log in")
        reader.offset = 0
        head = SslRequest.read(reader)
        wants = head.capabilities
        return cls(
            head=head,
            user=text_of(nul_bytes(reader)),
            auth_response=_auth_response(reader, wants),
            database=_optional(reader, is_there=Capability.CONNECT_WITH_DB in wants),
            plugin=_optional(reader, is_there=Capability.PLUGIN_AUTH in wants),
            attributes=_attributes(reader) if Capability.CONNECT_ATTRS in wants else None,
            rest=reader.rest(),
        )

    def encode(self) -> bytes:
        """Return the payload; `head.capabilities` says which fields are sent."""
        wants = self.head.capabilities
        parts = [self.head.encode(), bytes_of(self.user) + b"\0"]
        if Capability.PLUGIN_AUTH_LENENC in wants:
            parts.append(encode_packed_bytes(self.auth_response))
        elif Capability.SECURE_CONNECTION in wants:
            parts.append(bytes((len(self.auth_response),)) + self.auth_response)
        else:
            parts.append(self.auth_response + b"\0")
        if Capability.CONNECT_WITH_DB in wants and self.database is not None:
            parts.append(bytes_of(self.database) + b"\0")
        if Capability.PLUGIN_AUTH in wants and self.plugin is not None:
            parts.append(bytes_of(self.plugin) + b"\0")
        if Capability.CONNECT_ATTRS in wants and self.attributes is not None:
            parts.append(_encode_attributes(self.attributes))
        parts.append(self.rest)
        return b"".join(parts)

    @property
    def capabilities(self) -> Capability:
        """The capabilities that the client wants."""
        return self.head.capabilities

    @property
    def extended_capabilities(self) -> ExtendedCapability:
        """MariaDB's own capabilities that the client wants; none where LONG_PASSWORD is set."""
        if Capability.LONG_PASSWORD in self.capabilities:
            return NO_EXTENSIONS
        return self.head.extended_capabilities


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthSwitch:
    """The server wants another authentication plugin.

    Attributes:
        plugin: The name of the plugin; `mysql_old_password` where the packet is the mark alone.
        auth_data: The plugin's challenge with whatever ends it.
    """

    plugin: str
    auth_data: bytes

    @classmethod
    def decode(cls, payload: bytes) -> Self:
        """Read a packet that begins with 0xFE.

        Raises:
            CodecError: If it does not.
        """
        reader = Reader(payload)
        mark = reader.u8()
        if mark != AUTH_SWITCH_MARK:
            raise CodecError(f"0x{mark:02X} starts no change of authentication plugin")
        if not reader.remaining:
            return cls(plugin="mysql_old_password", auth_data=b"")
        return cls(plugin=text_of(nul_bytes(reader)), auth_data=reader.rest())

    def encode(self) -> bytes:
        """Return the payload."""
        return bytes((AUTH_SWITCH_MARK,)) + bytes_of(self.plugin) + b"\0" + self.auth_data

    @property
    def scramble(self) -> bytes:
        """The challenge itself, 20 bytes."""
        return self.auth_data[:SCRAMBLE_LENGTH]


def _auth_response(reader: Reader, wants: Capability) -> bytes:
    if Capability.PLUGIN_AUTH_LENENC in wants:
        return packed_bytes(reader)
    if Capability.SECURE_CONNECTION in wants:
        return reader.take(reader.u8())
    return nul_bytes(reader)


def _optional(reader: Reader, *, is_there: bool) -> str | None:
    return text_of(nul_bytes(reader)) if is_there and reader.remaining else None


def _attributes(reader: Reader) -> tuple[tuple[str, str], ...] | None:
    if not reader.remaining:
        return None
    inner = Reader(packed_bytes(reader))
    pairs = []
    while inner.remaining:
        key = text_of(packed_bytes(inner))
        pairs.append((key, text_of(packed_bytes(inner))))
    return tuple(pairs)


def _encode_attributes(attributes: Iterable[tuple[str, str]]) -> bytes:
    data = b"".join(encode_packed_bytes(bytes_of(text)) for pair in attributes for text in pair)
    return encode_packed_int(len(data)) + data
