from __future__ import annotations

import pytest

from binlane.errors import CodecError, DefinitionError, PartialWriteError, StatementError
from binlane.log.codec.packets.flags import NO_CAPABILITIES, Capability, ServerStatus
from binlane.log.codec.packets.replies import (
    EofPacket,
    ErrPacket,
    OkPacket,
    error_packet,
    is_eof,
    is_error,
    is_ok,
)

# Sent by MariaDB 10.11.19.
OK_AFTER_LOGIN = bytes.fromhex("00000002000000")
SYNTAX_ERROR = bytes.fromhex("ff2804") + b"#42000You have an error in your SQL syntax"


def test_an_ok_packet() -> None:
    ok = OkPacket.decode(OK_AFTER_LOGIN)
    assert ok == OkPacket(status=ServerStatus.AUTOCOMMIT)
    assert ok.encode(NO_CAPABILITIES) == OK_AFTER_LOGIN
    assert is_ok(OK_AFTER_LOGIN)


@pytest.mark.parametrize("capabilities", [NO_CAPABILITIES, Capability.SESSION_TRACK])
@pytest.mark.parametrize("info", [b"", b"Rows matched: 1"])
@pytest.mark.parametrize("ends_rows", [False, True])
def test_ok_packets_are_encoded_back(
    capabilities: Capability, info: bytes, *, ends_rows: bool
) -> None:
    ok = OkPacket(affected_rows=300, insert_id=1 << 40, warnings=2, info=info, ends_rows=ends_rows)
    assert OkPacket.decode(ok.encode(capabilities)) == ok


def test_session_state_goes_only_to_who_asked_for_it() -> None:
    state = b"\x00\x0f\x0aautocommit\x03OFF"
    status = ServerStatus.SESSION_STATE_CHANGED | ServerStatus.IN_TRANSACTION
    ok = OkPacket(status=status, info=b"i", session_state=state)
    tracked = ok.encode(Capability.SESSION_TRACK)
    assert OkPacket.decode(tracked) == ok
    plain = OkPacket.decode(ok.encode(NO_CAPABILITIES))
    assert plain == OkPacket(status=ServerStatus.IN_TRANSACTION, info=b"i")


@pytest.mark.parametrize("before", [b"", b"\0", b"\0\0\0"])
def test_session_state_of_a_database_of_wide_characters(before: bytes) -> None:
    head = b"\0\0\0\x02\x40\0\0"
    ok = OkPacket.decode(head + b"\0" + before + b"\x05\x01\x03\x02d1")
    assert ok.session_state == b"\x01\x03\x02d1"
    assert OkPacket.decode(head).session_state == b""


def test_an_error_packet() -> None:
    error = ErrPacket.decode(SYNTAX_ERROR)
    assert (error.errno, error.sqlstate) == (1064, "42000")
    assert error.message.startswith("You have an error")
    assert error.encode() == SYNTAX_ERROR
    assert is_error(SYNTAX_ERROR)


def test_a_server_that_refuses_before_the_login_gives_no_sqlstate() -> None:
    payload = b"\xff\x10\x04Too many connections"
    error = ErrPacket.decode(payload)
    assert error == ErrPacket(errno=1040, message="Too many connections", sqlstate=None)
    assert error.encode() == payload


def test_a_statement_error_becomes_a_packet_as_it_is() -> None:
    assert ErrPacket.decode(error_packet(DefinitionError("no such binlog", errno=1))) == ErrPacket(
        errno=1, message="no such binlog", sqlstate="HY000"
    )
    unsafe = ErrPacket.decode(error_packet(PartialWriteError("x", hint="split it")))
    assert unsafe.message == (
        "[11314] This statement cannot be replicated safely: x (hint: split it)"
    )


def test_a_long_message_is_cut_between_characters() -> None:
    message = ErrPacket.decode(error_packet(DefinitionError("é" * 600))).message
    assert message == "é" * 256


def test_an_eof_packet() -> None:
    payload = bytes.fromhex("fe00000200")
    assert EofPacket.decode(payload) == EofPacket(status=ServerStatus.AUTOCOMMIT)
    assert EofPacket().encode() == payload
    assert is_eof(payload)
    assert is_eof(b"\xfe")
    assert not is_eof(b"\xfe" + bytes(8))


@pytest.mark.parametrize("decode", [ErrPacket.decode, EofPacket.decode])
def test_other_marks_are_no_such_packet(decode: object) -> None:
    assert callable(decode)
    with pytest.raises(CodecError, match="0x01 starts no"):
        decode(b"\x01")


def test_bytes_behind_an_ok_packet_are_an_error() -> None:
    with pytest.raises(CodecError, match="left over"):
        OkPacket.decode(OK_AFTER_LOGIN + b"\x01ia")


@pytest.mark.parametrize("errno", [2003, 2026, 5014])
def test_what_a_peer_numbers_as_clients_do_gets_a_servers_number(errno: int) -> None:
    packet = ErrPacket.decode(error_packet(StatementError("gone", errno=errno)))
    assert (packet.errno, packet.message) == (1105, "gone")
