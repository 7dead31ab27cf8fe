from __future__ import annotations

import zlib
from dataclasses import replace

import pytest

from binlane.errors import ChecksumError, CodecError, TruncatedError
from binlane.log.codec.event import EventHeader, decode_event, encode_event
from binlane.log.codec.registry import OpaqueEvent
from binlane.log.codec.transaction import XidEvent
from binlane.log.codec.types import ChecksumAlgorithm, HeaderFlag
from tests.build import FORMAT, PLAIN_FORMAT, TIMESTAMP, event, format_description

XID = event(XidEvent(xid=0x0102030405060708), next_position=287, server_id=77, flags=0x8000)
XID_BYTES = bytes.fromhex("00f15365104d0000001b0000001f01000000800807060504030201")


def test_an_event_is_header_body_and_checksum() -> None:
    assert encode_event(XID, PLAIN_FORMAT) == XID_BYTES
    with_checksum = XID_BYTES.replace(bytes((0x1B,)), bytes((0x1F,)), 1)
    crc = zlib.crc32(with_checksum).to_bytes(4, "little")
    assert encode_event(XID, FORMAT) == with_checksum + crc
    decoded = decode_event(with_checksum + crc, FORMAT, position=256)
    assert decoded.body == XID.body
    assert decoded.header == replace(XID.header, length=31)
    assert (decoded.position, decoded.next_position) == (256, 287)


def test_type_names_are_those_of_the_format() -> None:
    assert XID.header.type_name == "XID"
    assert replace(XID.header, type_code=200).type_name == "UNKNOWN"


def test_changed_bytes_are_told_by_the_checksum() -> None:
    data = bytearray(encode_event(XID, FORMAT))
    data[20] ^= 1
    with pytest.raises(ChecksumError, match="checksum is") as caught:
        decode_event(bytes(data), FORMAT)
    assert caught.value.offset == 27


@pytest.mark.parametrize(
    "data",
    [
        b"",
        XID_BYTES[:18],
        XID_BYTES[:-1],
        XID_BYTES + b"\0",
        # 21 bytes cannot hold a checksum.
        XID_BYTES[:9] + bytes((21, 0, 0, 0)) + XID_BYTES[13:21],
    ],
)
def test_an_event_of_another_length_than_it_says_is_truncated(data: bytes) -> None:
    with pytest.raises(TruncatedError):
        decode_event(data, FORMAT)


def test_bytes_after_a_body_are_an_error() -> None:
    longer = event(OpaqueEvent(data=bytes(9)), type_code=XID.header.type_code)
    with pytest.raises(CodecError, match="1 bytes left over") as caught:
        decode_event(encode_event(longer, PLAIN_FORMAT), PLAIN_FORMAT)
    assert caught.value.offset == 27


def test_nothing_can_be_read_before_a_format_description() -> None:
    with pytest.raises(CodecError, match="XID stands before any FORMAT_DESCRIPTION") as caught:
        decode_event(XID_BYTES, None)
    assert caught.value.hint


@pytest.mark.parametrize("checksum", [ChecksumAlgorithm.NONE, ChecksumAlgorithm.CRC32])
def test_a_format_description_has_a_checksum_whatever_the_others_have(
    checksum: ChecksumAlgorithm,
) -> None:
    body = format_description(checksum=checksum)
    data = encode_event(event(body), None)
    assert len(data) == 19 + 57 + 171 + 1 + 4
    assert data[-5] == checksum
    assert decode_event(data, None).body == body


def test_a_format_description_counts_as_not_in_use() -> None:
    idle = encode_event(event(format_description()), None)
    in_use = encode_event(event(format_description(), flags=HeaderFlag.BINLOG_IN_USE), None)
    assert idle[-4:] == in_use[-4:]
    assert decode_event(in_use, None).header.flags == HeaderFlag.BINLOG_IN_USE


def test_a_header_needs_19_bytes() -> None:
    header = EventHeader.decode(XID_BYTES[:19])
    assert header.encode() == XID_BYTES[:19]
    assert header.timestamp == TIMESTAMP
    with pytest.raises(TruncatedError, match="needs 19 bytes, 18 are left"):
        EventHeader.decode(XID_BYTES[:18])


def test_a_clock_beyond_32_bits_wraps_as_in_the_servers() -> None:
    late = replace(XID.header, timestamp=(1 << 32) + 7)
    assert EventHeader.decode(late.encode()).timestamp == 7
