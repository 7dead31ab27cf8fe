"""Bodies that their bytes contradict, and the layouts that real files of the fixtures lack."""

from __future__ import annotations

from dataclasses import replace

import pytest

from binlane.errors import CodecError, TruncatedError
from binlane.log.codec.body import Body
from binlane.log.codec.buffer import Reader
from binlane.log.codec.control import FormatDescriptionEvent, RotateEvent
from binlane.log.codec.fragments import PartialRowDataEvent
from binlane.log.codec.group_replication import TransactionContextEvent, ViewChangeEvent
from binlane.log.codec.heartbeat import HeartbeatEvent, HeartbeatV2Event
from binlane.log.codec.rows import TableMapEvent, UpdateRowsEvent, WriteRowsEvent, WriteRowsV1Event
from binlane.log.codec.transaction import GtidListEvent
from binlane.log.codec.types import ColumnType, EventType
from binlane.positions import Gtid, GtidPosition
from tests.build import FORMAT, format_description, rows, table_map


def decoded(kind: type[Body], data: bytes) -> Body:
    reader = Reader(data)
    body = kind.decode(reader, FORMAT)
    reader.finish()
    return body


def test_a_format_description_decodes_from_a_body_with_its_checksum() -> None:
    body = format_description()
    assert decoded(FormatDescriptionEvent, body.encode() + bytes(4)) == body


def test_a_format_description_without_an_algorithm_is_damage() -> None:
    head = format_description().encode()[:57]
    for tail in (b"", bytes(4)):
        with pytest.raises(CodecError, match="has no checksum algorithm"):
            decoded(FormatDescriptionEvent, head + tail)
    with pytest.raises(CodecError, match="checksum algorithm 7 is unknown"):
        decoded(FormatDescriptionEvent, head + bytes(27) + b"\7" + bytes(4))


def test_names_in_a_table_map_end_with_nul() -> None:
    data = table_map(ColumnType.LONG).encode(FORMAT)
    with pytest.raises(CodecError, match="no NUL stands after a name"):
        decoded(TableMapEvent, data.replace(b"shop\0", b"shop!"))


def test_names_are_bytes_that_come_back_exactly() -> None:
    data = table_map(ColumnType.LONG).encode(FORMAT).replace(b"shop", b"sh\xffp")
    body = decoded(TableMapEvent, data)
    assert body.encode(FORMAT) == data
    rotate = RotateEvent(position=4, file="bin\udcff.000001")
    assert decoded(RotateEvent, rotate.encode(FORMAT)) == rotate
    assert decoded(HeartbeatEvent, b"bin\xff.000001") == HeartbeatEvent(file="bin\udcff.000001")


def test_the_first_5_1_servers_had_table_ids_of_4_bytes() -> None:
    old = format_description(lengths={EventType.TABLE_MAP: 6, EventType.WRITE_ROWS_V1: 6}).format
    for kind, body in (
        (TableMapEvent, table_map(ColumnType.LONG)),
        (WriteRowsV1Event, rows(1, b"\xff")),
    ):
        data = body.encode(FORMAT)
        short = data[:4] + data[6:]
        read = kind.decode(Reader(short), old)
        assert read.has_short_id
        assert read.encode(old) == short


def test_extra_data_of_a_rows_event_holds_its_own_length() -> None:
    data = rows(1, b"", kind=UpdateRowsEvent).encode(FORMAT)
    assert data[8:10] == b"\2\0"
    with pytest.raises(CodecError, match="extra data of 1 bytes"):
        decoded(UpdateRowsEvent, data[:8] + b"\1\0" + data[10:])


def test_a_gtid_list_has_as_many_gtids_as_it_says() -> None:
    gtids = (Gtid(0, 1, 5), Gtid(0, 2, 9), Gtid(7, 1, 1))
    body = GtidListEvent(gtids=gtids, flags=2)
    assert decoded(GtidListEvent, body.encode(FORMAT)) == body
    assert body.position == GtidPosition.parse("0-2-9,7-1-1")
    with pytest.raises(TruncatedError, match="64 bytes expected at offset 4, 48 left"):
        decoded(GtidListEvent, b"\4" + body.encode(FORMAT)[1:])


def test_an_empty_gtid_list_is_padded_as_the_server_pads_it() -> None:
    assert GtidListEvent.of(GtidPosition()).encode(FORMAT) == bytes(6)
    assert GtidListEvent.of(GtidPosition.parse("0-1-5")).padding == b""


def test_a_heartbeat_beyond_4_gib_has_its_position_before_the_name() -> None:
    body = HeartbeatEvent(file="bin.000001", position=5 << 32)
    assert body.encode(FORMAT) == bytes((0, 0, 0, 0, 5, 0, 0, 0)) + b"bin.000001"
    assert decoded(HeartbeatEvent, body.encode(FORMAT)) == body
    with pytest.raises(CodecError, match="has a zero byte"):
        decoded(HeartbeatEvent, b"bin\0")


def test_the_second_heartbeat_has_numbered_fields() -> None:
    # As MySQL 9.7.4 sends it.
    data = b"\x01\x0dbinlog.000002\x02\x03\xfc\x2a\x02\x00"
    body = HeartbeatV2Event(file="binlog.000002", position=554)
    assert decoded(HeartbeatV2Event, data) == body
    assert body.encode(FORMAT) == data
    unknown = data[:-1] + b"\x07\x01x\x00"
    read = decoded(HeartbeatV2Event, unknown)
    assert read.encode(FORMAT) == unknown
    for broken in (b"\x02\x01\x04\x00", b"\x01\x01f\x00", data[:-1], data + b"\x01"):
        with pytest.raises(CodecError):
            decoded(HeartbeatV2Event, broken)


def test_group_replications_events_count_what_they_hold() -> None:
    context = TransactionContextEvent(
        server_uuid=b"u" * 36,
        thread_id=5,
        gtid_specified=1,
        snapshot=b"gtids",
        write_set=(b"hash1", b""),
        read_set=(b"hash2",),
    )
    data = context.encode(FORMAT)
    assert data[:18].hex() == "24" + "05000000" + "01" + "05000000" + "02000000" + "01000000"
    assert decoded(TransactionContextEvent, data) == context
    view = ViewChangeEvent(
        view_id_field=b"17951:3".ljust(40, b"\0"), sequence_number=9, certification=((b"k", b"v"),)
    )
    assert decoded(ViewChangeEvent, view.encode(FORMAT)) == view
    assert view.view_id == "17951:3"
    for kind, whole, count_at in (
        (TransactionContextEvent, data, 10),
        (ViewChangeEvent, view.encode(FORMAT), 48),
    ):
        with pytest.raises(TruncatedError):
            decoded(kind, whole[:count_at] + b"\xff\xff\xff\xff" + whole[count_at + 4 :])


def test_the_first_piece_of_a_rows_event_has_its_size() -> None:
    first = bytes.fromhex("02000000" + "01000000" + "01" + "0900000000000000") + b"piece"
    body = decoded(PartialRowDataEvent, first)
    assert body == PartialRowDataEvent(
        fragment_count=2, fragment_number=1, flags=1, original_size=9, data=b"piece"
    )
    assert body.encode(FORMAT) == first
    last = bytes.fromhex("02000000" + "02000000" + "00") + b"rest"
    assert decoded(PartialRowDataEvent, last).encode(FORMAT) == last


def test_partitions_of_rows_stand_in_their_extra_data() -> None:
    for kind, extra, expected in (
        (WriteRowsEvent, b"\1\5\0", (5,)),
        (UpdateRowsEvent, b"\1\5\0\7\0", (5, 7)),
        (UpdateRowsEvent, b"\0\2\0", ()),
        (UpdateRowsEvent, b"", ()),
    ):
        body = replace(rows(1, b"", kind=kind), extra=extra)
        assert body.partition_ids == expected
    assert rows(1, b"").partition_ids == ()
