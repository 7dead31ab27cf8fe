"""AUTO_INCREMENT values: a statement stands for its rows if it makes the same ones again."""

from __future__ import annotations

from collections.abc import Sequence
from struct import pack

import numpy as np
import pytest

from binlane.binlogs.routing.generated import Chosen, chosen_ids, plainly_chosen
from binlane.log.codec.event import Event
from binlane.log.codec.rows import DeleteRowsV1Event, UpdateRowsV1Event, WriteRowsV1Event
from binlane.log.codec.status_vars import StatusVar, encode_status_vars
from binlane.log.codec.types import ColumnType, Flavor
from binlane.names import TableName
from binlane.statements.session.group_plan import Generated
from tests.build import FORMAT, event, rows, table_map

TABLE = TableName("shop", "t")
_ID = Generated(TABLE, 1)
_STEPS = encode_status_vars([StatusVar(3, "AUTO_INCREMENT", (10, 3))])


def image(number: int) -> bytes:
    """A row of two INT columns, the second of which is the id."""
    return b"\0" + pack("<II", 1, number)


def inserted(*numbers: int) -> list[Event]:
    columns = table_map(ColumnType.LONG, ColumnType.LONG)
    return [event(columns), event(rows(2, b"".join(map(image, numbers)), kind=WriteRowsV1Event))]


def found(
    events: Sequence[Event], *, first: int = 0, status_vars: bytes = b"", where: Generated = _ID
) -> int | str:
    chosen = Chosen(first=first, status_vars=status_vars)
    return chosen_ids(events, where, chosen, file="x", format_=FORMAT)


@pytest.mark.parametrize(
    ("numbers", "first", "steps", "expected"),
    [
        ((5,), 0, b"", 5),
        ((5, 6, 7), 0, b"", 5),
        ((5, 6, 7), 5, b"", 5),
        ((2, 5, 6), 5, b"", 5),
        ((3, 13, 23), 0, _STEPS, 3),
        ((0xFFFFFFFE, 0xFFFFFFFF), 0, b"", 0xFFFFFFFE),
        ((5, 7), 0, b"", "follow"),
        ((6, 5), 0, b"", "follow"),
        ((3, 4), 0, _STEPS, "follow"),
        ((5, 100, 101), 5, b"", "follow"),
        ((5, 6), 9, b"", "first"),
        ((), 0, b"", "first"),
    ],
)
def test_the_first_value_of_those_that_follow_one_another(
    numbers: tuple[int, ...], first: int, steps: bytes, expected: int | str
) -> None:
    told = found(inserted(*numbers), first=first, status_vars=steps)
    assert told == expected if isinstance(expected, int) else expected in str(told)


def test_rows_of_replace_are_new_and_others_are_not() -> None:
    columns = event(table_map(ColumnType.LONG, ColumnType.LONG))
    replaced = event(rows(2, image(1) + image(6), kind=UpdateRowsV1Event))
    changed = event(rows(2, b"\0" + pack("<II", 2, 3) + image(3), kind=UpdateRowsV1Event))
    gone = event(rows(2, image(9), kind=DeleteRowsV1Event))
    new = inserted(5)
    assert found([*new, columns, replaced]) == 5
    assert found([*new, columns, changed, columns, gone]) == 5
    assert "first" in str(found([columns, changed]))


def test_what_cannot_be_read_is_no_value() -> None:
    assert "no column" in str(found(inserted(5), where=Generated(TABLE, 9)))
    assert "first" in str(found(inserted(5), where=Generated(TableName("shop", "u"), 1)))
    columns = event(table_map(ColumnType.VARCHAR, metadata=b"\x0a\x00"))
    text = event(rows(1, b"\0\x01x", kind=WriteRowsV1Event))
    assert "whole numbers" in str(found([columns, text], where=Generated(TABLE, 0)))
    assert "cannot be read" in str(found([*inserted(5)[:1], event(rows(2, b"\0\1"))]))
    assert "cannot be read" in str(found(inserted(5), status_vars=b"\x03\x01"))


def test_a_value_beyond_the_numbers_of_kernels_is_looked_for_otherwise() -> None:
    arrays = np.zeros(64, np.uint8), np.zeros((8, 1), np.int32)
    columns = table_map(ColumnType.LONG, ColumnType.LONGLONG)
    chosen = Chosen(first=0xFFFF_FFFF_FFFF_FFF0, status_vars=b"")
    assert plainly_chosen(arrays, (0, 1), columns, _ID, chosen, flavor=Flavor.MARIADB) is None
