"""Bodies that their bytes contradict, and the layouts that real files of the fixtures lack."""

from __future__ import annotations

import pytest

from binlane.codec.body import Body
from binlane.codec.buffer import Reader
from binlane.codec.control import FormatDescriptionEvent, HeartbeatEvent, RotateEvent
from binlane.codec.rows import TableMapEvent, UpdateRowsEvent, WriteRowsV1Event
from binlane.codec.transaction import GtidListEvent
from binlane.codec.types import ColumnType, EventType
from binlane.errors import CodecError, TruncatedError
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
