from __future__ import annotations

import pytest

from binlane.errors import CodecError
from binlane.log.codec.body import Body
from binlane.log.codec.event import Event, encode_event
from binlane.log.codec.format import Format
from binlane.log.codec.fragments import PartialRowDataEvent
from binlane.log.codec.transaction import XidEvent
from binlane.log.codec.types import ColumnType
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.table_maps import rows_with_tables
from binlane.log.grouping.walk import walk
from tests.build import FORMAT, PLAIN_FORMAT, event, log, rows, table_map

ROWS = rows(1, b"\0\5\0\6\0\7")
WHOLE = encode_event(event(ROWS), PLAIN_FORMAT)


def piece(
    number: int, data: bytes, *, count: int = 3, size: int | None = None
) -> PartialRowDataEvent:
    return PartialRowDataEvent(
        fragment_count=count,
        fragment_number=number,
        flags=0 if size is None else 1,
        original_size=size,
        data=data,
    )


def pieces(whole: bytes) -> list[Body]:
    return [
        piece(1, whole[:10], size=len(whole)),
        piece(2, whole[10:20]),
        piece(3, whole[20:]),
    ]


def read(*bodies: Body) -> list[Event]:
    return list(expanded_all(walk([log(*bodies)], file="f"), file="f"))


@pytest.mark.parametrize("format_", [FORMAT, PLAIN_FORMAT])
def test_the_last_piece_holds_the_rows_event(format_: Format) -> None:
    whole = encode_event(event(ROWS), format_)
    data = log(table_map(ColumnType.TINY), *pieces(whole), XidEvent(xid=1))
    events = list(walk([data], file="f"))
    *_, last, joined, xid = expanded_all(events, file="f")
    assert (joined.body, joined.inner) == (ROWS, 1)
    assert (joined.position, joined.next_position) == (last.position, xid.position)
    ((found, body, table),) = rows_with_tables(events, file="f")
    assert (found, body, table.table) == (joined, ROWS, "t")
    assert b"".join(encode_event(each, FORMAT) for each in events) == data[4:]


FIRST, SECOND, THIRD = pieces(WHOLE)


@pytest.mark.parametrize(
    ("bodies", "message"),
    [
        ((SECOND,), "piece 2 of 3 of a rows event stands where piece 1 is expected"),
        ((FIRST, THIRD), "stands where piece 2 is expected"),
        ((FIRST, piece(2, b"", count=9)), "piece 2 of 9"),
        ((FIRST, XidEvent(xid=1)), "XID stands behind 1 of 3 pieces"),
        ((piece(1, b"x", count=0),), "piece 1 of 0"),
        ((piece(1, WHOLE, size=len(WHOLE) - 1),), "long; 34 are possible"),
        ((piece(1, WHOLE, size=len(WHOLE) + 1, count=1),), "the first one announces 36"),
        ((piece(1, WHOLE + b"\0", count=1),), "a whole rows event is expected"),
        ((piece(1, encode_event(event(XidEvent(xid=1)), PLAIN_FORMAT), count=1),), "bytes of XID"),
        ((piece(1, b"short", count=1),), "an event header needs 19 bytes"),
    ],
)
def test_pieces_that_make_no_rows_event_are_damage(bodies: tuple[Body, ...], message: str) -> None:
    with pytest.raises(CodecError, match=message) as caught:
        read(*bodies)
    assert caught.value.position == 256 + sum(
        len(encode_event(event(body), FORMAT)) for body in bodies[:-1]
    )
