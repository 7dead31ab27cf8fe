"""Plans as bytes and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader
from binlane.log.grouping.sections import RowsPiece
from binlane.names import TableName
from binlane.statements.session.group_plan import (
    EncodedEvent,
    Generated,
    GroupPlan,
    RowsPart,
    TextPart,
)
from binlane.statements.session.plan_bytes import decode_plans, encode_plans
from binlane.statements.sql.servers import RowImage

NUMBERS = st.integers(0, 2**32 - 1)
NAMES = st.text(max_size=12)
TABLES = st.builds(TableName, NAMES, NAMES)
CHANGES = st.tuples(st.sampled_from(["insert", "update", "delete"]), TABLES)
PIECES = st.builds(
    RowsPiece,
    st.lists(TABLES, max_size=3).map(tuple),
    st.lists(CHANGES, max_size=3).map(tuple),
)
EVENTS = st.builds(
    EncodedEvent, st.integers(0, 255), st.binary(max_size=40), st.integers(0, 2**16 - 1)
)
TEXTS = st.builds(
    TextPart,
    st.lists(EVENTS, max_size=3).map(tuple),
    st.none() | NUMBERS,
    st.none() | st.builds(Generated, TABLES, NUMBERS),
    NUMBERS,
    st.lists(TABLES, max_size=2).map(tuple),
    st.booleans(),
    st.booleans(),
)
PARTS = st.lists(TEXTS | NUMBERS.map(RowsPart), max_size=3).map(tuple)
PLANS = st.builds(
    GroupPlan,
    sections=st.lists(st.lists(PIECES, max_size=2).map(tuple), max_size=3).map(tuple),
    binlogs=st.dictionaries(NAMES, PARTS, max_size=3),
    bases=st.dictionaries(NAMES, NUMBERS, max_size=3),
    ends=st.dictionaries(
        NAMES, st.none() | st.builds(lambda event: TextPart((event,)), EVENTS), max_size=3
    ),
    image=st.sampled_from(RowImage),
)


@given(st.lists(PLANS, max_size=3))
def test_plans_come_back(plans: list[GroupPlan]) -> None:
    reader = Reader(encode_plans(plans))
    back = decode_plans(reader)
    reader.finish()
    assert list(back) == plans
    for plan, original in zip(back, plans, strict=True):
        assert [list(map(type, parts)) for parts in plan.binlogs.values()] == [
            list(map(type, parts)) for parts in original.binlogs.values()
        ]


@given(PLANS, st.data())
def test_bytes_that_are_cut_off_are_an_error(plan: GroupPlan, data: st.DataObject) -> None:
    encoded = encode_plans([plan])
    end = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(CodecError):
        decode_plans(Reader(encoded[:end]))


@given(st.binary(max_size=60))
def test_any_bytes_give_plans_or_an_error(data: bytes) -> None:
    try:
        plans = decode_plans(Reader(data))
    except CodecError:
        return
    assert decode_plans(Reader(encode_plans(plans))) == plans
