"""GTID events with tags: kernels read and write them as the codec does, and leave others to it."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.log.codec.buffer import Reader
from binlane.log.codec.event import Event, EventHeader
from binlane.log.codec.format import CHECKSUM_LENGTH, HEADER_LENGTH
from binlane.log.codec.mysql_transaction import MysqlGtidEvent, TaggedGtidEvent
from binlane.log.codec.types import EventType
from binlane.log.grouping.placing import fitted, place
from binlane.log.kernels import route_layout as lay
from binlane.log.kernels.copying_places import write_mysql_gtid
from binlane.log.kernels.layout import GTID_NAME_SIZE, UUID_SIZE
from binlane.log.kernels.tagged_gtids import is_known_tagged, micros_of_tagged, name_of_tagged
from tests.build import FORMAT

_NUMBERS = st.integers(0, 300) | st.integers(0, 1 << 40) | st.sampled_from([127, 128, 1 << 14])
_TIMES = st.integers(0, 1 << 55)
_BODIES = st.builds(
    TaggedGtidEvent,
    flags=st.integers(0, 1),
    source_id=st.uuids().map(str),
    sequence=st.integers(1, 1 << 59),
    tag=st.text("abcxyz0189_", max_size=32),
    last_committed=_NUMBERS,
    sequence_number=_NUMBERS,
    immediate_commit_timestamp=_TIMES,
    original_commit_timestamp=st.none() | _TIMES,
    transaction_length=_NUMBERS,
    immediate_server_version=st.integers(80300, 90700),
    original_server_version=st.none() | st.integers(80300, 90700),
    commit_group_ticket=st.none() | _NUMBERS,
)
_POSITION = 1000


def _event(body: MysqlGtidEvent) -> Event:
    header = EventHeader(
        timestamp=7,
        type_code=EventType.GTID_TAGGED_LOG,
        server_id=3,
        length=0,
        next_position=0,
        flags=0,
    )
    return Event(header, body)


def _array(data: bytes) -> npt.NDArray[np.uint8]:
    return np.frombuffer(data + bytes(64), np.uint8).copy()


@given(_BODIES, st.integers(0, 1 << 40), st.integers(0, 1 << 40), st.booleans())
def test_events_are_written_as_the_codec_writes_them(
    body: TaggedGtidEvent,
    others: int,
    clock: int,
    is_alone: bool,  # noqa: FBT001
) -> None:
    data = place(_event(body), 0, FORMAT)
    array, end = _array(data), len(data) - CHECKSUM_LENGTH
    assert is_known_tagged(array, 0, end)
    out, state = np.zeros(len(data) + 128, np.uint8), np.zeros(lay.STATE_SIZE, np.int64)
    state[lay.POSITION], state[lay.CLOCK_BASE] = _POSITION, clock
    write_mysql_gtid(array, (0, end), others, int(is_alone), out, state)
    if is_alone:
        body = replace(body, flags=body.flags | 1)
        if body.sequence_number:
            body = replace(body, last_committed=body.sequence_number - 1)
    overhead = HEADER_LENGTH + CHECKSUM_LENGTH
    wanted = place(_event(fitted(body, others + overhead, FORMAT, clock=clock)), _POSITION, FORMAT)
    assert bytes(out[: state[lay.OUT_LENGTH]]) == wanted
    assert state[lay.CLOCK] == (body.sequence_number + clock if body.sequence_number else 0)


@given(_BODIES)
def test_gtids_and_times_are_those_of_the_codec(body: TaggedGtidEvent) -> None:
    data = place(_event(body), 0, FORMAT)
    array, end = _array(data), len(data) - CHECKSUM_LENGTH
    name = np.zeros(GTID_NAME_SIZE, np.uint8)
    assert name_of_tagged(array, 0, end, name) == body.sequence
    assert bytes(name[:UUID_SIZE]).hex() == body.source_id.replace("-", "")
    assert bytes(name[UUID_SIZE + 1 :][: name[UUID_SIZE]]).decode() == body.tag
    assert micros_of_tagged(array, 0, end) == body.commit_micros


@given(_BODIES, st.randoms(use_true_random=False))
def test_what_is_known_is_what_the_codec_would_write(
    body: TaggedGtidEvent, numbers: random.Random
) -> None:
    data = bytearray(place(_event(body), 0, FORMAT))
    for _ in range(numbers.randint(1, 3)):
        data[numbers.randrange(HEADER_LENGTH, len(data) - CHECKSUM_LENGTH)] = numbers.randrange(256)
    end = len(data) - CHECKSUM_LENGTH - numbers.choice((0, 0, 0, 1, 5))
    if not is_known_tagged(_array(bytes(data)), 0, end):
        return
    read = TaggedGtidEvent.decode(Reader(bytes(data[HEADER_LENGTH:end])), FORMAT)
    assert read.encode(FORMAT) == data[HEADER_LENGTH:end]


_PLAIN = TaggedGtidEvent(
    flags=1,
    source_id="01234567-89ab-cdef-0123-456789abcdef",
    sequence=5,
    tag="t",
    last_committed=3,
    sequence_number=4,
    immediate_commit_timestamp=6,
    transaction_length=70,
    immediate_server_version=90700,
)


@pytest.mark.parametrize(
    "other",
    [
        replace(_PLAIN, transaction_length=None),
        replace(_PLAIN, last_committed=-1),
        replace(_PLAIN, sequence=1 << 62),
        replace(_PLAIN, tag="t" * 33),
        replace(_PLAIN, tag="T"),
        replace(_PLAIN, tail=b"\x18\x02"),
    ],
)
def test_others_are_left_to_the_codec(other: TaggedGtidEvent) -> None:
    for each, is_known in ((_PLAIN, True), (other, False)):
        data = place(_event(each), 0, FORMAT)
        assert is_known_tagged(_array(data), 0, len(data) - CHECKSUM_LENGTH) is is_known
