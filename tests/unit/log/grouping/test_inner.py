from __future__ import annotations

from dataclasses import replace

import pytest
from zstandard import ZstdCompressor

from binlane.errors import CodecError
from binlane.log.codec.body import Body
from binlane.log.codec.event import Event, encode_event
from binlane.log.codec.format import EVENT_LENGTH_MAX
from binlane.log.codec.payload import PayloadCompression, TransactionPayloadEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.registry import OpaqueEvent
from binlane.log.codec.rows import RowsEvent
from binlane.log.codec.transaction import XidEvent
from binlane.log.codec.types import ColumnType
from binlane.log.grouping.inner import expanded, expanded_all
from binlane.log.grouping.table_maps import rows_with_tables
from binlane.log.grouping.walk import walk
from tests.build import FORMAT, PLAIN_FORMAT, event, format_description, log, rows, table_map

BEGIN = QueryEvent(
    thread_id=1, execution_time=0, error_code=0, status_vars=b"", database=b"", query=b"BEGIN"
)
BODIES: tuple[Body, ...] = (
    BEGIN,
    table_map(ColumnType.TINY),
    rows(1, b"\0\5\0\6"),
    XidEvent(xid=9),
)
PLAIN = b"".join(encode_event(event(body), PLAIN_FORMAT) for body in BODIES)


def payload(
    data: bytes = PLAIN, *, size: int | None = None, compression: int = PayloadCompression.ZSTD
) -> TransactionPayloadEvent:
    is_plain = compression == PayloadCompression.NONE
    return TransactionPayloadEvent(
        compression=compression,
        uncompressed_size=len(data) if size is None else size,
        payload=data if is_plain else ZstdCompressor().compress(data),
    )


def read(body: Body) -> list[Event]:
    carrier = list(walk([log(body)], file="f"))[-1]
    return list(expanded(carrier, FORMAT, file="f"))


@pytest.mark.parametrize("compression", PayloadCompression)
def test_what_is_inside_follows_its_carrier(compression: PayloadCompression) -> None:
    carrier, *inner = read(payload(compression=compression))
    assert [item.body for item in inner] == list(BODIES)
    assert [item.inner for item in inner] == [1, 2, 3, 4]
    assert {item.position for item in inner} == {carrier.position}
    assert {item.next_position for item in inner} == {carrier.next_position}


def test_other_events_stand_alone() -> None:
    events = list(walk([log(XidEvent(xid=1), BEGIN)], file="f"))
    assert list(expanded_all(events, file="f")) == events


def test_rows_inside_have_their_tables() -> None:
    data = log(payload(), payload(compression=PayloadCompression.NONE))
    found = list(rows_with_tables(walk([data], file="f"), file="f"))
    assert [(item.inner, table.table) for item, _, table in found] == [(3, "t"), (3, "t")]
    assert all(isinstance(body, RowsEvent) for _, body, _ in found)
    head, *rest = walk([data], file="f")
    assert list(rows_with_tables(rest, file="f", format_=format_description().format)) == found
    with pytest.raises(CodecError, match="before any FORMAT_DESCRIPTION"):
        list(rows_with_tables(rest, file="f"))
    assert list(rows_with_tables([head], file="f")) == []


NESTED = encode_event(event(payload()), PLAIN_FORMAT)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (payload(size=len(PLAIN) - 27), "holds more than"),
        (payload(size=len(PLAIN) + 1), "ends 19 bytes before"),
        (payload(size=1 << 40), "ends 19 bytes before"),
        (payload(PLAIN[:-3], size=len(PLAIN)), "ends 3 bytes before"),
        (payload(PLAIN[:-3]), "24 of its"),
        (payload(bytes(100)), "event 1 of the payload is a UNKNOWN of 0 bytes"),
        (payload(NESTED), "is a TRANSACTION_PAYLOAD of"),
        (payload(PLAIN + bytes(30), size=len(PLAIN)), "holds more than"),
        (replace(payload(), payload=b"no frame at all"), "the payload is broken"),
        (payload(PLAIN[:9] + b"\xff\xff\xff\x3f" + PLAIN[13:], size=1 << 30), "bytes before"),
    ],
)
def test_a_payload_that_lies_is_damage_at_its_carrier(body: Body, message: str) -> None:
    with pytest.raises(CodecError, match=message) as caught:
        read(body)
    assert (caught.value.file, caught.value.hint[:8]) == ("f", "the file")
    assert caught.value.position == list(walk([log(body)], file="f"))[-1].position


def test_an_error_without_a_file_can_be_placed_later() -> None:
    with pytest.raises(CodecError) as caught:
        list(expanded(event(payload(size=3)), FORMAT))
    assert caught.value.file is None


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("020100 0105", "is not 5 bytes long"),
        ("0103fcffff 020100 0301 0a 00", "65535 bytes, 2 are there"),
        ("010102 020101 03010a 00", "compression 1 is unknown"),
        ("010102 020100 00", "does not say its uncompressed size"),
        ("020100 03010a 00", "field 1 is missing"),
        ("010102 010102 020100 03010a 00", "field 1 stands twice"),
        ("010202 020100 03010a 00", "is not 2 bytes long"),
        ("0901", "expected"),
    ],
)
def test_fields_of_a_payload_that_cannot_be_are_damage(head: str, message: str) -> None:
    body = OpaqueEvent(data=bytes.fromhex(head) + b"xx")
    with pytest.raises(CodecError, match=message):
        list(walk([log(event(body, type_code=40))], file="f"))


def test_an_event_inside_is_no_longer_than_any_may_be() -> None:
    length = EVENT_LENGTH_MAX + 1
    header = PLAIN[:9] + length.to_bytes(4, "little") + PLAIN[13:19]
    with pytest.raises(CodecError, match=f"of {length} bytes; .* {EVENT_LENGTH_MAX} bytes at most"):
        read(payload(header, size=2 * length))
