"""Bytes in pieces of any size, read in lengths as needed."""

from __future__ import annotations

import pytest

from binlane.log.grouping.pieces import Pieces

DATA = bytes(range(200))


@pytest.mark.parametrize("size", [1, 7, 200])
def test_what_is_read_does_not_depend_on_the_pieces(size: int) -> None:
    pieces = Pieces(DATA[start : start + size] for start in range(0, len(DATA), size))
    assert pieces.fill(0) == 0
    assert pieces.peek(3, 10) == DATA[10:13]
    assert pieces.take(5) == DATA[:5]
    assert pieces.peek(4) == DATA[5:9]
    assert pieces.fill(20) >= 20
    assert pieces.take(20) == DATA[5:25]
    assert b"".join(pieces.rest()) == DATA[25:]
    assert pieces.take(1) == b""


def test_the_end_gives_fewer_bytes() -> None:
    pieces = Pieces([b"", b"abc", b""])
    assert pieces.fill(9) == 3
    assert (pieces.peek(9), pieces.peek(9, 2), pieces.peek(9, 5)) == (b"abc", b"c", b"")
    assert (pieces.take(9), pieces.take(9)) == (b"abc", b"")
    assert list(pieces.rest()) == []
