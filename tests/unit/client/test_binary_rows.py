"""Result sets of prepared statements, however the network cuts their bytes."""

from __future__ import annotations

import random

import pytest

from binlane.client.binary_rows import BinaryRows, RowFrames
from binlane.errors import CodecError
from binlane.log.codec.packets.framing import frame
from binlane.log.codec.packets.results import ColumnDefinition

_EOF = b"\xfe\0\0\x02\0"
_LONG = b"\0\0" + b"x" * (1 << 24)
_ROWS = (b"\0\0abc", b"\0\4", b"\0\0" + b"y" * 300)


def _result(*rows: bytes, end: bytes = _EOF) -> bytes:
    head = (b"\x01", ColumnDefinition(name="c").encode(), _EOF)
    return b"".join(frame(payload, 1) for payload in (*head, *rows, end))


def _payloads(found: list[RowFrames]) -> list[bytes]:
    rows: list[bytes] = []
    for part in found:
        start, data = 0, part.data
        if part.is_long:
            rows.append(data)
            continue
        before = len(rows)
        while start < len(data):
            stop = start + 4 + int.from_bytes(data[start : start + 3], "little")
            rows.append(data[start + 4 : stop])
            start = stop
        assert len(rows) - before == part.rows
    return rows


def test_rows_come_as_they_were_sent() -> None:
    chance = random.Random(5)
    data = _result(*_ROWS * 20)
    for _ in range(50):
        rows, found, start = BinaryRows(), [], 0
        while start < len(data):
            stop = start + chance.randrange(1, 200)
            rows.feed(data[start:stop])
            found += rows.take()
            start = stop
        assert rows.is_done
        assert [head.name for head in rows.heads] == ["c"]
        assert _payloads(found) == list(_ROWS) * 20


def test_a_row_of_several_frames_is_put_together() -> None:
    rows = BinaryRows()
    data = _result(_ROWS[0], _LONG, _ROWS[1])
    for start in range(0, len(data), 1 << 20):
        rows.feed(data[start : start + (1 << 20)])
    assert rows.is_done
    assert _payloads(rows.take()) == [_ROWS[0], _LONG, _ROWS[1]]


def test_an_error_ends_the_rows() -> None:
    rows = BinaryRows()
    rows.feed(_result(_ROWS[0], end=b"\xff\x15\x04#28000no"))
    assert rows.error == b"\xff\x15\x04#28000no"
    assert not rows.is_done


def test_a_statement_without_rows_is_refused() -> None:
    with pytest.raises(CodecError, match="gives none"):
        BinaryRows().feed(frame(b"\0\0\0\x02\0\0\0", 1))
