"""Result sets that come in pieces: whatever the pieces, the same cells."""

from __future__ import annotations

import pytest

from binlane.client.text_results import TextRows
from binlane.errors import CodecError
from binlane.log.codec.packets.flags import Capability
from binlane.log.codec.packets.framing import FRAME_PAYLOAD_MAX, frames
from binlane.log.codec.packets.replies import ErrPacket
from binlane.log.codec.packets.results import (
    ColumnDefinition,
    encode_heads,
)
from tests.result_sets import encode_result_set

_PROTOCOL = Capability.PROTOCOL_41
_COLUMNS = [ColumnDefinition(name="a"), ColumnDefinition(name="b")]
_ROWS: list[tuple[bytes | None, bytes | None]] = [
    (b"1", None),
    (None, b""),
    (b"x" * 250, b"y" * 251),
    (b"z" * 65_535, b"w" * 65_536),
    (b"\xfe" * 9, b"\xff"),
]


def _data(rows: list[tuple[bytes | None, bytes | None]]) -> bytes:
    return frames(encode_result_set(_COLUMNS, rows, capabilities=_PROTOCOL), 1)


@pytest.mark.parametrize("size", [1, 3, 7, 4096, 1 << 20])
def test_rows_come_whole_from_any_pieces(size: int) -> None:
    rows = TextRows()
    data = _data(_ROWS if size > 1 else _ROWS[:2])
    found: list[tuple[bytes | None, bytes | None]] = []
    for start in range(0, len(data), size):
        rows.feed(data[start : start + size])
        found += zip(*rows.take(), strict=True)
    assert rows.is_done
    assert found == (_ROWS if size > 1 else _ROWS[:2])


def test_a_row_may_be_larger_than_a_frame() -> None:
    large = [(b"a" * (FRAME_PAYLOAD_MAX + 5), b"b"), (b"c", b"d" * (FRAME_PAYLOAD_MAX - 6))]
    rows = TextRows()
    data = _data([*large, (b"1", b"2")])
    for start in range(0, len(data), 1 << 20):
        rows.feed(data[start : start + (1 << 20)])
    assert rows.is_done
    assert list(zip(*rows.take(), strict=True)) == [*large, (b"1", b"2")]


def test_a_refusal_ends_the_rows() -> None:
    refusal = ErrPacket(errno=1317, sqlstate="70100", message="interrupted").encode()
    heads = encode_heads(_COLUMNS, capabilities=_PROTOCOL)
    rows = TextRows()
    rows.feed(frames([*heads, b"\x011\x012", refusal], 1))
    assert rows.error == refusal
    assert rows.take() == [[b"1"], [b"2"]]


def test_a_row_of_another_length_is_an_error() -> None:
    heads = encode_heads(_COLUMNS, capabilities=_PROTOCOL)
    with pytest.raises(CodecError):
        TextRows().feed(frames([*heads, b"\x011\x0123"], 1))
