"""What a client must not do, and what becomes of it; any other bytes are tried by tests/fuzz."""

from __future__ import annotations

from dataclasses import replace

import pytest

from binlane.errors import CodecError
from binlane.live.gateway.relay import Relay
from binlane.live.gateway.replica_statements import INSPECTED_MAX
from binlane.log.codec.packets.commands import (
    BinlogDump,
    BinlogDumpGtid,
    RegisterSlave,
    encode_query,
)
from binlane.log.codec.packets.flags import Capability, Command, DumpFlag, ExtendedCapability
from binlane.log.codec.packets.framing import FRAME_PAYLOAD_MAX, PacketSplitter, frame
from binlane.log.codec.packets.handshake import Greeting, HandshakeResponse, SslRequest
from binlane.log.codec.packets.replies import ErrPacket, OkPacket

OFFERED = (
    Capability.PROTOCOL_41
    | Capability.SECURE_CONNECTION
    | Capability.PLUGIN_AUTH
    | Capability.MULTI_RESULTS
)
GREETING = Greeting(
    version="10.6.1-MariaDB",
    thread_id=77,
    auth_data=b"12345678abcdefghijkl\0",
    capabilities=OFFERED,
    character_set=45,
    status=OkPacket().status,
    plugin="mysql_native_password",
    extended_capabilities=ExtendedCapability.COM_MULTI | ExtendedCapability.PROGRESS,
)
LOGIN = HandshakeResponse(
    head=SslRequest(capabilities=OFFERED, payload_max=1 << 24, character_set=45),
    user="app",
    auth_response=bytes(20),
    plugin="mysql_native_password",
)
OK = OkPacket().encode(OFFERED)
QUESTION = frame(encode_query("SHOW BINLOGS"), 0)
PING = frame(bytes((Command.PING,)), 0)


def _relay() -> Relay:
    relay = Relay()
    relay.from_source(frame(GREETING.encode(), 0))
    relay.from_client(frame(LOGIN.encode(), 1))
    relay.from_source(frame(OK, 2))
    relay.take_to_client()
    relay.take_to_source()
    return relay


def _error(data: bytes) -> tuple[int, ErrPacket]:
    (packet,) = PacketSplitter().feed(data)
    return packet.sequence, ErrPacket.decode(packet.payload)


@pytest.mark.parametrize(
    "data, text",
    [
        (frame(encode_query("SELECT 1"), 5), "sends packet 5 where a command begins"),
        (frame(b"", 0), "an empty command"),
        (frame(b"\xfe\1\0\0\x0e", 0), "COM_MULTI"),
        (frame(bytes((Command.REGISTER_SLAVE,)) + bytes(9), 0), "expected"),
    ],
)
def test_a_client_is_told_what_is_wrong_with_its_packets(data: bytes, text: str) -> None:
    relay = _relay()
    with pytest.raises(CodecError, match=text) as caught:
        relay.from_client(data)
    relay.protest(caught.value)
    assert relay.is_closed
    assert relay.take_to_source() == b""
    number, error = _error(relay.take_to_client())
    assert (number, error.errno) == (1, 1835)
    assert text in error.message


def test_before_the_login_too() -> None:
    relay = Relay()
    relay.from_source(frame(GREETING.encode(), 0))
    relay.take_to_client()
    with pytest.raises(CodecError) as caught:
        relay.from_client(frame(b"\0", 1))
    relay.protest(caught.value)
    number, error = _error(relay.take_to_client())
    assert (number, error.errno) == (2, 1835)


def test_nothing_is_said_in_the_middle_of_a_reply() -> None:
    relay = _relay()
    relay.from_client(PING)
    with pytest.raises(CodecError) as caught:
        relay.from_client(frame(b"", 0))
    relay.protest(caught.value)
    assert relay.take_to_client() == b""


@pytest.mark.parametrize(
    "payload",
    [
        BinlogDump(position=4, flags=DumpFlag(0), server_id=2, file="o.000001").encode(),
        RegisterSlave(server_id=2).encode(),
        bytes((Command.CHANGE_USER,)) + b"system\0\0",
        bytes((Command.RESET_CONNECTION,)),
    ],
)
@pytest.mark.parametrize("length", [INSPECTED_MAX + 1, FRAME_PAYLOAD_MAX])
def test_what_is_answered_here_does_not_pass_unread_by_its_length(
    payload: bytes, length: int
) -> None:
    relay = _relay()
    padded = payload + bytes(length - len(payload))
    with pytest.raises(CodecError, match="bytes"):
        relay.from_client(frame(padded, 0))
    assert relay.take_to_source() == b""


def test_a_large_set_of_gtids_is_a_question() -> None:
    relay = _relay()
    command = BinlogDumpGtid(flags=DumpFlag(0), server_id=2, done=bytes(1 << 20))
    data = frame(command.encode(), 0)
    relay.from_client(data[:1000])
    relay.from_client(data[1000:])
    assert relay.question == command
    assert relay.take_to_source() == b""


def test_com_multi_is_not_offered() -> None:
    relay = Relay()
    relay.from_source(frame(GREETING.encode(), 0))
    (packet,) = PacketSplitter().feed(relay.take_to_client())
    offered = replace(GREETING, extended_capabilities=ExtendedCapability.PROGRESS)
    assert Greeting.decode(packet.payload) == offered


def test_a_question_behind_a_statement_under_way_keeps_the_rest_waiting() -> None:
    relay = _relay()
    relay.from_client(frame(encode_query("SELECT SLEEP(100)"), 0))
    relay.from_client(QUESTION + PING * 1000)
    assert relay.is_waiting
    assert relay.waiting_bytes == len(QUESTION) + 1000 * len(PING)
    relay.from_source(frame(OK, 1))
    assert relay.question is not None


def test_commands_of_one_client_are_read_some_at_a_time() -> None:
    relay = _relay()
    relay.from_client(PING * 1000)
    turns = 0
    sent = relay.take_to_source()
    while relay.has_more:
        assert relay.is_waiting
        before = len(sent)
        relay.read_on()
        sent += relay.take_to_source()
        assert 0 < len(sent) - before <= 100 * len(PING)
        turns += 1
    assert turns > 9
    assert sent == PING * 1000
    assert not relay.is_waiting


def test_nobody_is_told_the_password_that_a_replica_reports() -> None:
    replica = RegisterSlave(server_id=2, user="repl", password="needle")
    assert "repl" in repr(replica)
    assert "needle" not in repr(replica)


def test_whoever_is_not_let_in_is_not_the_sessions_user() -> None:
    relay = _relay()
    change = frame(bytes((Command.CHANGE_USER,)) + b"admin\0\0\0", 0)
    relay.from_client(change + change.replace(b"admin", b"other") + QUESTION)
    assert relay.user == "app"
    relay.from_source(frame(ErrPacket(errno=1045, message="no", sqlstate="28000").encode(), 1))
    assert relay.user == "app"
    assert relay.question is None
    relay.from_source(frame(OK, 1))
    assert relay.question is not None
    assert relay.user == "other"


@pytest.mark.parametrize("content", [b"x" * 100, QUESTION])
def test_what_the_source_would_take_for_commands_does_not_pass_as_a_file(content: bytes) -> None:
    relay = _relay()
    relay.from_client(frame(encode_query("LOAD DATA LOCAL INFILE 'f' INTO TABLE t"), 0))
    relay.from_source(frame(b"\xfbf", 255))
    relay.take_to_source()
    relay.from_client(frame(b"first", 0) + frame(b"second", 1))
    assert relay.take_to_source() == frame(b"first", 0) + frame(b"second", 1)
    with pytest.raises(CodecError, match="packet 0, and 2 is next"):
        relay.from_client(frame(content, 0))
    assert relay.take_to_source() == b""


def test_nor_as_the_rest_of_a_command() -> None:
    relay = _relay()
    ping = bytes((Command.PING,))
    relay.from_client(frame(ping + b"x" * (FRAME_PAYLOAD_MAX - 1), 0)[:-4])
    relay.take_to_source()
    with pytest.raises(CodecError, match="packet 0, and 1 is next"):
        relay.from_client(QUESTION)
    assert relay.take_to_source() == b""
