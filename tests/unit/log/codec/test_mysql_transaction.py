"""MySQL's GTID events byte for byte: as real servers write them, and as old ones did."""

from __future__ import annotations

import pytest

from binlane.errors import CodecError, TruncatedError
from binlane.log.codec.body import Body
from binlane.log.codec.buffer import Reader
from binlane.log.codec.mysql_transaction import (
    AnonymousGtidEvent,
    MysqlGtidEvent,
    PreviousGtidsEvent,
    TaggedGtidEvent,
)
from binlane.positions import GtidSet, MysqlGtid
from tests.build import FORMAT

SOURCE = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
SOURCE_HEX = SOURCE.replace("-", "")
GTID_5_6 = "01" + SOURCE_HEX + "0700000000000000"
GTID_5_7 = GTID_5_6 + "02" + "0100000000000000" + "0200000000000000"
GTID_9_7 = GTID_5_7 + "e6b24892b66006" + "b8" + "50620100"
# A real one of MySQL 9.7.4, without header and checksum.
TAGGED = bytes.fromhex(
    "0278000000027c22e9038ee22903228503790266210314a50284 5502c40404060e6d78656b785f31080c0a180c7f"
    "ad594a92b6600610a90412831 20b".replace(" ", "")
)


def decoded(kind: type[Body], data: bytes) -> Body:
    reader = Reader(data)
    body = kind.decode(reader, FORMAT)
    reader.finish()
    return body


@pytest.mark.parametrize("kind", [MysqlGtidEvent, AnonymousGtidEvent])
@pytest.mark.parametrize("text", [GTID_5_6, GTID_5_7, GTID_9_7, GTID_9_7 + "05" + "00" * 7])
def test_every_age_of_the_event_is_read(kind: type[MysqlGtidEvent], text: str) -> None:
    data = bytes.fromhex(text)
    body = decoded(kind, data)
    assert isinstance(body, MysqlGtidEvent)
    assert body.encode(FORMAT) == data
    assert (body.sequence, body.source_id) == (7, SOURCE)
    assert body.gtid == (None if kind is AnonymousGtidEvent else MysqlGtid(SOURCE, 7))
    has_length = len(text) > len(GTID_5_7)
    assert body.transaction_length == (0xB8 if has_length else None)
    assert body.immediate_server_version == (90704 if has_length else None)
    assert body.last_committed == (1 if len(text) > len(GTID_5_6) else None)
    assert body.commit_group_ticket == (5 if len(text) > len(GTID_9_7) else None)


def test_a_replicas_transaction_has_times_and_versions_of_both_servers() -> None:
    data = bytes.fromhex(
        GTID_5_7 + "010000000000 80" + "02000000000000" + "b8" + "50620180 e43c0100"
    )
    body = decoded(MysqlGtidEvent, data)
    assert isinstance(body, MysqlGtidEvent)
    assert (body.immediate_commit_timestamp, body.original_commit_timestamp) == (1, 2)
    assert (body.immediate_server_version, body.original_server_version) == (90704, 81124)
    assert body.encode(FORMAT) == data


def test_a_gtid_event_that_ends_inside_a_number_is_cut() -> None:
    for length in set(range(len(GTID_9_7) // 2)) - {25, 42, 49, 50}:
        with pytest.raises(TruncatedError):
            decoded(MysqlGtidEvent, bytes.fromhex(GTID_9_7)[:length])


def test_a_tagged_gtid_is_a_message_of_numbered_fields() -> None:
    body = decoded(TaggedGtidEvent, TAGGED)
    assert body == TaggedGtidEvent(
        flags=0,
        source_id=SOURCE,
        sequence=1,
        tag="mxekx_1",
        last_committed=3,
        sequence_number=6,
        immediate_commit_timestamp=1795187114924461,
        transaction_length=298,
        immediate_server_version=90704,
    )
    assert str(body.gtid) == f"{SOURCE}:mxekx_1:1"
    assert body.encode(FORMAT) == TAGGED


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((0, "04"), "version 2"),
        ((1, "7a"), "61 bytes stands in 60"),
        ((2, "18"), "field 20 must be known"),
        ((23, "00"), "field 0 stands behind field 1"),
    ],
)
def test_a_broken_message_is_damage(change: tuple[int, str], message: str) -> None:
    data = bytearray(TAGGED)
    offset, value = change
    if offset == 2:
        data[2] = 0x28
        data += b"\x28\x00"
        data[1] += 4
    else:
        data[data.index(b"\x04\x04\x06") if offset == 23 else offset] = int(value, 16)
    with pytest.raises(CodecError, match=message):
        decoded(TaggedGtidEvent, bytes(data))


def test_a_field_that_need_not_be_known_is_kept() -> None:
    data = TAGGED[:1] + bytes((TAGGED[1] + 4,)) + TAGGED[2:] + b"\x28\x07"
    body = decoded(TaggedGtidEvent, data)
    assert isinstance(body, TaggedGtidEvent)
    assert body.tail == b"\x28\x07"
    assert body.encode(FORMAT) == data


def test_previous_gtids_are_a_set_in_either_form() -> None:
    plain = "0100000000000000" + SOURCE_HEX + "0200000000000000"
    intervals = "01000000000000000600000000000000" + "09000000000000000a00000000000000"
    tagged = "0101000000000001" + SOURCE_HEX + "06" + "616263" + "0200000000000000"
    for text, has_tags, expected in (
        (plain + intervals, False, f"{SOURCE}:1-5:9"),
        (tagged + intervals, True, f"{SOURCE}:abc:1-5:9"),
    ):
        body = decoded(PreviousGtidsEvent, bytes.fromhex(text))
        assert isinstance(body, PreviousGtidsEvent)
        assert (str(body.position), body.has_tags) == (expected, has_tags)
        assert body.encode(FORMAT).hex() == text
        assert body.position == GtidSet.parse(expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0000000000000002", "form 2 are unknown"),
        ("0200000000000001", "form 1 are unknown"),
        ("ffffffffffff0000", "16 bytes expected"),
        ("01ffffffffffff01", "16 bytes expected"),
        ("0100000000000000" + "11" * 16 + "ffffffffffffffff", "8 bytes expected"),
        ("0100000000000000" + "11" * 16 + "0100000000000000" + "00" * 16, "do not grow"),
        (
            "0100000000000000" + "11" * 16 + "0100000000000000" + "05" + "00" * 7 + "05" + "00" * 7,
            "do not grow",
        ),
    ],
)
def test_a_set_that_cannot_be_is_damage(text: str, message: str) -> None:
    with pytest.raises(CodecError, match=message):
        decoded(PreviousGtidsEvent, bytes.fromhex(text))
