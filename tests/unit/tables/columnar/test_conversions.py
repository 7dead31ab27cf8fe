"""Conversions of columns by kernels, against the reference decoder."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from binlane.log.codec.buffer import Reader
from binlane.log.codec.columns import Column, value_decoder
from binlane.log.codec.types import ColumnType
from binlane.log.grouping.unexpected import UnexpectedError
from binlane.log.kernels.load import Build, builds, running
from binlane.tables.columnar.arrow_types import arrow_type, converter
from binlane.tables.columnar.conversions import conversion


@pytest.fixture(autouse=True, params=[build for build in builds() if build is not Build.JIT])
def build(request: pytest.FixtureRequest) -> Iterator[None]:
    with running(request.param):
        yield


def set_column(members: tuple[str, ...]) -> Column:
    return Column(index=0, type=ColumnType.SET, metadata=0xF801, is_nullable=True, members=members)


def converted(column: Column, stored: bytes) -> list[object]:
    positions = np.arange(len(stored), dtype=np.int32)
    data = np.frombuffer(stored + bytes(64), np.uint8).copy()
    values, _ = conversion(column)(data, positions, False)
    assert isinstance(values, pa.Array)
    values.validate(full=True)
    return values.to_pylist()


# Up to seven members are listed, more are put together; a member may be the empty text.
@pytest.mark.parametrize("members", [("a",), ("", "b", "ü"), tuple("abcdefg"), ("", *"bcdefgh")])
def test_sets_are_what_the_reference_takes_for_them(members: tuple[str, ...]) -> None:
    column = set_column(members)
    stored = bytes(range(1 << len(members)))
    decode, finish = value_decoder(column), converter(arrow_type(column))
    assert finish is not None
    expected = [finish(decode(Reader(bytes((value,))))) for value in stored]
    assert converted(column, stored) == expected


@pytest.mark.parametrize("members", [("a", "b"), tuple("abcdefg")])
def test_a_set_with_members_that_the_table_lacks_is_not_guessed(members: tuple[str, ...]) -> None:
    with pytest.raises(UnexpectedError):
        converted(set_column(members), bytes((1 << len(members),)))
