"""Logins whose two halves have TLS, a Unix socket, or neither, without any connection."""

from __future__ import annotations

from dataclasses import replace

import pytest

from binlane.client.settings import SslMode
from binlane.errors import CodecError, StatementError
from binlane.live.gateway.login import LoginRules
from binlane.live.gateway.relay import Relay, TlsSide
from binlane.live.gateway.relay_questions import Entering
from binlane.live.gateway.socket_accounts import is_by_system_user
from binlane.log.codec.packets.flags import Capability, Command, ExtendedCapability, ServerStatus
from binlane.log.codec.packets.framing import Packet, PacketSplitter, frame, frames
from binlane.log.codec.packets.handshake import Greeting, HandshakeResponse, SslRequest
from binlane.log.codec.packets.replies import ErrPacket, OkPacket
from binlane.log.codec.packets.results import (
    ColumnDefinition,
)
from tests.result_sets import encode_result_set

CACHING = "caching_sha2_password"
WANTS = Capability.PROTOCOL_41 | Capability.SECURE_CONNECTION | Capability.PLUGIN_AUTH
GREETING = Greeting(
    version="9.7.4",
    thread_id=77,
    auth_data=b"12345678abcdefghijkl\0",
    capabilities=WANTS | Capability.SSL,
    character_set=45,
    status=ServerStatus.AUTOCOMMIT,
    plugin=CACHING,
)
HEAD = SslRequest(capabilities=WANTS, payload_max=1 << 24, character_set=45)
HEAD_TLS = replace(HEAD, capabilities=WANTS | Capability.SSL)
OK = OkPacket().encode(WANTS)
ERR = ErrPacket(errno=1045, message="no", sqlstate="28000").encode()
FULL = b"\x01\x04"


def seal(key: bytes, data: bytes) -> bytes:
    """What cannot be mistaken for the password."""
    if key != b"PEM":
        raise ValueError("no key")
    return b"sealed:" + bytes(a ^ b for a, b in zip(data, GREETING.scramble, strict=False))


RULES = LoginRules(offers_tls=True, seal=seal)


def login(plugin: str = CACHING, *, tls: bool) -> bytes:
    """The payload of a login."""
    head = HEAD_TLS if tls else HEAD
    return HandshakeResponse(head=head, user="app", auth_response=bytes(32), plugin=plugin).encode()


def packets(data: bytes) -> list[Packet]:
    """What stands in some bytes."""
    return PacketSplitter().feed(data)


def begun(rules: LoginRules, *, tls: bool, greeting: Greeting = GREETING) -> Relay:
    """A client has logged in; what the source was sent is still there."""
    relay = Relay(rules)
    relay.from_source(frame(greeting.encode(), 0))
    (packet,) = packets(relay.take_to_client())
    offered = Greeting.decode(packet.payload).capabilities
    assert (Capability.SSL in offered) is rules.offers_tls
    if tls:
        relay.from_client(frame(HEAD_TLS.encode(), 1) + b"\x16\x03\x01hello")
        assert relay.tls_side is TlsSide.CLIENT
        assert relay.begin_tls() == b"\x16\x03\x01hello"
        assert relay.tls_side is None
    assert relay.take_to_source() == b""
    relay.from_client(frame(login(tls=tls), 1 + tls))
    return relay


def on_source_tls(relay: Relay) -> None:
    """The source's half goes on by TLS."""
    (request,) = packets(relay.take_to_source())
    assert request == Packet(1, HEAD_TLS.encode())
    assert relay.tls_side is TlsSide.SOURCE
    assert relay.begin_tls() == b""


WITHOUT = replace(GREETING, capabilities=WANTS)


def test_both_halves_by_tls() -> None:
    relay = begun(RULES, tls=True)
    on_source_tls(relay)
    assert packets(relay.take_to_source()) == [Packet(2, login(tls=True))]
    relay.from_source(frame(FULL, 3))
    assert packets(relay.take_to_client()) == [Packet(3, FULL)]
    relay.from_client(frame(b"secret\0", 4))
    assert packets(relay.take_to_source()) == [Packet(4, b"secret\0")]
    relay.from_source(frame(OK, 5))
    assert packets(relay.take_to_client()) == [Packet(5, OK)]
    assert relay.is_logged_in


def test_client_by_tls_and_source_without() -> None:
    relay = begun(RULES, tls=True, greeting=WITHOUT)
    assert packets(relay.take_to_source()) == [Packet(1, login(tls=False))]
    relay.from_source(frame(b"\x01\x03", 2) + frame(OK, 3))
    assert packets(relay.take_to_client()) == [Packet(3, b"\x01\x03"), Packet(4, OK)]


@pytest.mark.parametrize("data", [frame(b"\0", 2), b"\xff\xff\xff\2"], ids=["broken", "large"])
def test_client_is_told_what_is_wrong_behind_its_wish_for_tls(data: bytes) -> None:
    relay = Relay(RULES)
    relay.from_source(frame(GREETING.encode(), 0))
    relay.take_to_client()
    relay.from_client(frame(HEAD_TLS.encode(), 1))
    assert relay.begin_tls() == b""
    with pytest.raises(CodecError) as caught:
        relay.from_client(data)
    relay.protest(caught.value)
    (packet,) = packets(relay.take_to_client())
    assert (packet.sequence, ErrPacket.decode(packet.payload).errno) == (3, 1835)


@pytest.mark.parametrize("tls", [True, False])
def test_com_multi_is_not_offered(*, tls: bool) -> None:
    multi = ExtendedCapability.COM_MULTI | ExtendedCapability.PROGRESS
    greeting = replace(GREETING, version="5.5.5-10.4.0-MariaDB", extended_capabilities=multi)
    relay = Relay(RULES)
    relay.from_source(frame(greeting.encode(), 0))
    (packet,) = packets(relay.take_to_client())
    offered = Greeting.decode(packet.payload).extended_capabilities
    assert offered == ExtendedCapability.PROGRESS
    if tls:
        relay.from_client(frame(HEAD_TLS.encode(), 1))
        assert relay.begin_tls() == b""
    head = replace(HEAD_TLS if tls else HEAD, extended_capabilities=multi)
    wish = HandshakeResponse(head=head, user="app", auth_response=bytes(32), plugin=CACHING)
    relay.from_client(frame(wish.encode(), 1 + tls))
    assert relay._login.extended == ExtendedCapability.PROGRESS


@pytest.mark.parametrize("key", [b"PEM", b"other"])
def test_password_in_clear_is_sealed_for_a_source_without_tls(key: bytes) -> None:
    relay = begun(RULES, tls=True, greeting=WITHOUT)
    relay.take_to_source()
    relay.from_source(frame(FULL, 2))
    assert packets(relay.take_to_client()) == [Packet(3, FULL)]
    relay.from_client(frame(b"secret\0", 4))
    assert packets(relay.take_to_source()) == [Packet(3, b"\x02")]
    relay.from_source(frame(b"\x01" + key, 4))
    assert relay.take_to_client() == b""
    (sent,) = packets(relay.take_to_source())
    if key == b"PEM":
        assert sent == Packet(5, b"sealed:secret\0")
        relay.from_source(frame(OK, 6))
        assert packets(relay.take_to_client()) == [Packet(5, OK)]
        return
    assert sent == Packet(5, b"\0")
    relay.from_source(frame(ERR, 6))
    (answer,) = packets(relay.take_to_client())
    assert "no key" in ErrPacket.decode(answer.payload).message
    assert relay.is_closed


@pytest.mark.parametrize("is_local", [False, True])
def test_client_in_clear_is_told_that_it_needs_tls(*, is_local: bool) -> None:
    rules = replace(RULES, source_is_local=is_local, source_ssl_mode=SslMode.REQUIRED)
    relay = begun(rules, tls=False)
    if not is_local:
        on_source_tls(relay)
    (sent,) = packets(relay.take_to_source())
    relay.from_source(frame(FULL, sent.sequence + 1))
    assert relay.take_to_client() == b""
    assert packets(relay.take_to_source()) == [Packet(sent.sequence + 2, b"\0")]
    relay.from_source(frame(ERR, sent.sequence + 3))
    (answer,) = packets(relay.take_to_client())
    assert answer.sequence == 2
    assert "needs a client with TLS" in ErrPacket.decode(answer.payload).message


@pytest.mark.parametrize("plugin", ["mysql_clear_password", "dialog"])
def test_password_in_clear_does_not_leave_tls(plugin: str) -> None:
    relay = begun(RULES, tls=True, greeting=WITHOUT)
    relay.take_to_source()
    relay.from_source(frame(b"\xfe" + plugin.encode() + b"\0", 2))
    assert relay.take_to_client() == b""
    assert packets(relay.take_to_source()) == [Packet(3, b"\0")]
    relay.from_source(frame(ERR, 4))
    (answer,) = packets(relay.take_to_client())
    assert plugin in ErrPacket.decode(answer.payload).message


def test_source_that_has_to_have_tls_and_has_not() -> None:
    rules = replace(RULES, source_ssl_mode=SslMode.VERIFY_CA)
    relay = begun(rules, tls=False, greeting=WITHOUT)
    (answer,) = packets(relay.take_to_client())
    assert (answer.sequence, ErrPacket.decode(answer.payload).errno) == (2, 1043)
    assert relay.is_closed
    assert relay.farewell()  # the source still waits


def test_source_whose_tls_fails() -> None:
    relay = begun(RULES, tls=True)
    on_source_tls(relay)
    relay.refuse_login(StatementError("not trusted", errno=1043))
    (answer,) = packets(relay.take_to_client())
    assert answer.sequence == 3
    assert relay.is_closed


def test_client_without_tls_where_it_is_required() -> None:
    relay = begun(replace(RULES, requires_tls=True), tls=False)
    (answer,) = packets(relay.take_to_client())
    assert ErrPacket.decode(answer.payload).errno == 3159
    assert relay.is_closed
    assert relay.take_to_source() == b""


def test_client_that_announces_tls_and_does_not_begin() -> None:
    relay = Relay(RULES)
    relay.from_source(frame(GREETING.encode(), 0))
    with pytest.raises(CodecError):
        relay.from_client(frame(login(tls=True), 1))


def test_client_that_compresses_is_told_inside_of_tls() -> None:
    relay = Relay(RULES)
    relay.from_source(frame(GREETING.encode(), 0))
    head = replace(HEAD_TLS, capabilities=HEAD_TLS.capabilities | Capability.COMPRESS)
    relay.take_to_client()
    relay.from_client(frame(head.encode(), 1))
    relay.begin_tls()
    relay.from_client(
        frame(replace(HandshakeResponse.decode(login(tls=True)), head=head).encode(), 2)
    )
    (answer,) = packets(relay.take_to_client())
    assert (answer.sequence, ErrPacket.decode(answer.payload).errno) == (3, 1043)


def test_whoever_has_logged_in_waits_until_that_is_known() -> None:
    relay = begun(replace(RULES, source_is_local=True, checks_account=True), tls=False)
    relay.take_to_source()
    relay.from_source(frame(OK, 2))
    assert isinstance(relay.question, Entering)
    assert relay.take_to_client() == b""
    ask = frame(b"\x03SELECT 1", 0)
    relay.from_client(ask)
    assert relay.take_to_source() == b""
    relay.ask("SHOW CREATE USER")
    relay.take_to_source()
    rows = encode_result_set([ColumnDefinition(name="c")], [["x"]], capabilities=WANTS)
    relay.from_source(frames(rows, 1))
    assert relay.take_reply() is not None
    assert relay.take_to_client() == b""
    relay.enter()
    assert packets(relay.take_to_client()) == [Packet(2, OK)]
    assert relay.take_to_source() == ask


@pytest.mark.parametrize("may_enter", [False, True])
def test_change_of_user_waits_too(*, may_enter: bool) -> None:
    relay = begun(replace(RULES, source_is_local=True, checks_account=True), tls=False)
    relay.from_source(frame(OK, 2))
    relay.enter()
    relay.take_to_client(), relay.take_to_source()
    change = bytes((Command.CHANGE_USER,)) + b"other\0\0\0\x2d\0" + CACHING.encode() + b"\0"
    ask = frame(b"\x03SELECT 1", 0)
    relay.from_client(frame(change, 0) + ask)
    assert packets(relay.take_to_source()) == [Packet(0, change)]
    relay.from_source(frame(b"\xfe" + CACHING.encode() + b"\0" + bytes(21), 1))
    assert [each.sequence for each in packets(relay.take_to_client())] == [1]
    relay.from_source(frame(OK, 3))
    assert relay.take_to_client() == b""
    assert relay.take_to_source() == b""
    if may_enter:
        relay.enter()
        assert packets(relay.take_to_client())[0].payload == OK
        assert relay.take_to_source() == ask
    else:
        relay.turn_away(StatementError("no", errno=1045))
        assert ErrPacket.decode(packets(relay.take_to_client())[0].payload).errno == 1045
        assert relay.is_closed
        assert relay.take_to_source() == b""


@pytest.mark.parametrize(
    "account, is_so",
    [
        ("CREATE USER `a`@`localhost` IDENTIFIED VIA unix_socket USING 'root'", True),
        ("CREATE USER `a`@`%` IDENTIFIED VIA mysql_native_password USING 'x' OR unix_socket", True),
        ("CREATE USER `a`@`localhost` IDENTIFIED WITH 'auth_socket' AS 'root' REQUIRE NONE", True),
        ("CREATE USER `unix_socket`@`%` IDENTIFIED BY PASSWORD '*AB'", False),
        ("CREATE USER `via`@`unix_socket`", False),
        ("CREATE USER `a", True),
    ],
)
def test_accounts_of_system_users(account: str, *, is_so: bool) -> None:
    assert is_by_system_user(account) is is_so
