from __future__ import annotations

import pytest

from binlane.errors import CodecError, TruncatedError, UnsupportedError
from binlane.log.codec.packets.commands import (
    BinlogDump,
    RegisterSlave,
    decode_query,
    encode_query,
)
from binlane.log.codec.packets.flags import NO_CAPABILITIES, Capability, Command, DumpFlag


@pytest.mark.parametrize("capabilities", [NO_CAPABILITIES, Capability.QUERY_ATTRIBUTES])
def test_a_query_is_decoded_back(capabilities: Capability) -> None:
    payload = encode_query("SELECT 'é'", capabilities)
    assert payload[0] == Command.QUERY
    assert decode_query(payload, capabilities) == "SELECT 'é'".encode()


def test_attributes_stand_before_the_statement() -> None:
    attributes = b"".join(
        (
            b"\x04\x01",  # four of them, one set
            b"\x02",  # the second is NULL
            b"\x01",  # types follow
            b"\xfd\x00\x05trace",
            b"\x06\x00\x04none",
            b"\x08\x80\x01n",
            b"\x0c\x00\x02at",
            b"\x03abc",
            b"\x07\0\0\0\0\0\0\0",
            b"\x04\xea\x07\x0b\x14",
        )
    )
    payload = b"\x03" + attributes + b"SELECT 1"
    assert decode_query(payload, Capability.QUERY_ATTRIBUTES) == b"SELECT 1"


def test_attributes_of_an_unknown_type_are_refused() -> None:
    payload = b"\x03\x01\x01\x00\x01\x63\x00\x01aSELECT 1"
    with pytest.raises(UnsupportedError, match="type 99"):
        decode_query(payload, Capability.QUERY_ATTRIBUTES)


def test_attributes_without_types_are_refused() -> None:
    with pytest.raises(CodecError, match="without their types"):
        decode_query(b"\x03\x01\x01\x00\x00SELECT 1", Capability.QUERY_ATTRIBUTES)


def test_registering_a_replica() -> None:
    register = RegisterSlave(server_id=20, host="r1", user="u", password="p", port=3306, rank=1)
    payload = register.encode()
    assert payload == b"\x15\x14\0\0\0\x02r1\x01u\x01p\xea\x0c\x01\0\0\0\0\0\0\0"
    assert RegisterSlave.decode(payload) == register


def test_a_replica_asks_for_a_dump() -> None:
    payload = b"\x12\x1b\x1d\0\0\x02\0\x15\0\0\0binlog.000001"
    dump = BinlogDump(
        position=7451, flags=DumpFlag.SEND_ANNOTATE_ROWS, server_id=21, file="binlog.000001"
    )
    assert BinlogDump.decode(payload) == dump
    assert dump.encode() == payload


@pytest.mark.parametrize("tail", [b"", b"\0\0\0", b"\0stray"])
def test_the_file_name_of_a_dump_ends_at_the_first_nul(tail: bytes) -> None:
    dump = BinlogDump.decode(b"\x12\x04\0\0\0\0\0\0\0\0\0" + tail)
    assert dump.file == ""


def test_commands_are_told_apart() -> None:
    with pytest.raises(CodecError, match="0x0E is no BINLOG_DUMP"):
        BinlogDump.decode(b"\x0e")
    with pytest.raises(TruncatedError):
        BinlogDump.decode(b"\x12\x04\0\0")


def test_a_position_beyond_four_bytes_is_not_asked_for() -> None:
    dump = BinlogDump(position=1 << 32, flags=DumpFlag(0), server_id=1, file="b.000001")
    with pytest.raises(CodecError, match="four bytes"):
        dump.encode()
