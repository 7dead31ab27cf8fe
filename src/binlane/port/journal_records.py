"""What the journal's records say.

Numbers are little-endian; texts stand behind their length of 32 bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple

from binlane.codec.buffer import Reader
from binlane.errors import UnsupportedError
from binlane.port.journal import Place
from binlane.port.lane_groups import Arrival, Point, Reason, Span, Statement, Stream
from binlane.port.plan_bytes import decode_plans
from binlane.routing.plan import GroupPlan

VERSION: Final = 1
"""Of all records, plans included: another one is for another binlane."""

LANES: Final = 1
INTENT: Final = 2
ANSWER: Final = 3
LOST: Final = 4
TAKEN: Final = 5
GIVEN: Final = 6
ENDED: Final = 7
READ: Final = 8
OPEN: Final = 9
OLDER: Final = 11
"""First in a file of groups: of which groups older files tell."""
MACHINE: Final = 10
"""First in a file of statements: `VERSION`, and what tells this run of the machine from others. What
was written may lack its end if it is not the present one."""

_U32: Final = Struct("<I")
_STATEMENT: Final = Struct("<IQ")
_INTENT: Final = Struct("<IQB")
INTENT_HEAD_BYTES: Final = _INTENT.size
"""Of an INTENT, before its plans."""
_ANSWER: Final = Struct("<IQBI")
_STATE: Final = Struct("<IBQ")
_LANES: Final = Struct("<QI")
_READ: Final = Struct("<BQBIIII")
_NUMBER: Final = Struct("<Q")
_ARRIVAL: Final = Struct("<IB")
_FOUND: Final = Struct("<IIQII")
_OPEN: Final = Struct("<IQBI")
_PAIR: Final = Struct("<QQ")
_COUNTED: Final = Struct("<II")

_STREAMS_KEPT: Final = 1024
_TAKEN_BIT: Final = 1
_NEEDS_END_BIT: Final = 2
_UNTOLD_BIT: Final = 4
_ANSWERED_BIT: Final = 1
_LOST_BIT: Final = 2
_DOUBT_BIT: Final = 4


class LaneHead(NamedTuple):
    """What is known of a lane where a file begins.

    Attributes:
        lane: Its number.
        is_taken: As `LaneGroups` has it, like the others.
        needs_end: Likewise.
        has_untold: Likewise.
        thread_id: Likewise.
        end: The position as text; empty for none.
        told: As `LaneGroups` has it.
        start: Likewise.
    """

    lane: int
    is_taken: bool
    needs_end: bool
    has_untold: bool
    thread_id: int
    end: str
    told: Mapping[Stream, int]
    start: Mapping[Stream, int]


class Intent(NamedTuple):
    """A statement that is about to be sent.

    Attributes:
        lane: On which.
        number: Which of its session.
        has_older: Groups of statements before it were read that are not attributed.
        plan_count: How many plans there are.
    """

    lane: int
    number: int
    has_older: bool
    plan_count: int


class Answer(NamedTuple):
    """What a statement's reply told.

    Attributes:
        lane: On which.
        number: Which of its session.
        is_known: Whether nothing told means that there is no group.
        plan_count: How many plans there are in place of those that were intended; None for none.
        last: What was told of its groups; empty for nothing.
    """

    lane: int
    number: int
    is_known: bool
    plan_count: int | None
    last: str


class FoundGroup(NamedTuple):
    """A group of which the statement is known.

    Attributes:
        lane: On which it came.
        point: Which.
        place: Where the plans of the statement stand.
        plan: Which of them is its plan.
    """

    lane: int
    point: Point
    place: Place
    plan: int


class Reading(NamedTuple):
    """How far the source's log was read, and what was found out.

    Attributes:
        epoch: As the head of files of statements has it.
        is_gap: Groups between what was read before and this were not read.
        ends: Up to where streams were read; those that moved since the record before.
        arrivals: By lane the groups that were read and are not attributed.
        doubts: Lanes and numbers of open statements of which no group is planned.
        found: Those that were, since the record before.
    """

    epoch: int
    is_gap: bool
    ends: Mapping[Stream, int]
    arrivals: Sequence[tuple[int, Arrival]]
    doubts: Sequence[tuple[int, int]]
    found: Sequence[FoundGroup]


def intent_body(lane: int, number: int, plans: bytes, *, has_older: bool) -> bytes:
    """Of an INTENT."""
    return _INTENT.pack(lane, number, has_older) + plans


def answer_body(lane: int, number: int, last: str, plans: bytes, *, is_known: bool) -> bytes:
    """Of an ANSWER."""
    told = last.encode()
    return _ANSWER.pack(lane, number, is_known, len(told)) + told + plans


def open_body(lane: int, statement: Statement, plans: bytes) -> bytes:
    """Of an OPEN: a statement that may still have groups to come."""
    bits = (
        statement.is_answered * _ANSWERED_BIT
        | statement.is_lost * _LOST_BIT
        | (statement.doubt is not None) * _DOUBT_BIT
    )
    pieces = [_OPEN.pack(lane, statement.number, bits, len(statement.last))]
    for stream, first, last in statement.last:
        pieces.append(_text(stream) + _PAIR.pack(first, last))
    return b"".join((*pieces, plans))


def lane_body(lane: int) -> bytes:
    """Of LOST and GIVEN."""
    return _U32.pack(lane)


def taken_body(lane: int, thread_id: int, start: Mapping[Stream, int]) -> bytes:
    """Of TAKEN."""
    return _STATEMENT.pack(lane, thread_id) + _ends(start)


def ended_body(lane: int, position: str) -> bytes:
    """Of ENDED."""
    return _U32.pack(lane) + _text(position)


def lanes_body(epoch: int, lanes: Iterable[LaneHead]) -> bytes:
    """Of LANES."""
    heads = list(lanes)
    pieces = [_LANES.pack(epoch, len(heads))]
    for head in heads:
        bits = (
            head.is_taken * _TAKEN_BIT
            | head.needs_end * _NEEDS_END_BIT
            | head.has_untold * _UNTOLD_BIT
        )
        pieces += (_STATE.pack(head.lane, bits, head.thread_id), _text(head.end))
        pieces += (_ends(head.told), _ends(head.start))
    return b"".join(pieces)


def reading_body(reading: Reading) -> bytes:
    """Of READ."""
    counts = len(reading.ends), len(reading.arrivals), len(reading.doubts), len(reading.found)
    pieces = [_READ.pack(VERSION, reading.epoch, reading.is_gap, *counts)]
    pieces += [_stream(stream) + _NUMBER.pack(number) for stream, number in reading.ends.items()]
    for lane, (point, is_commit) in reading.arrivals:
        pieces += (_ARRIVAL.pack(lane, is_commit), _point(point))
    pieces += [_STATEMENT.pack(lane, number) for lane, number in reading.doubts]
    for lane, point, place, plan in reading.found:
        pieces += (_FOUND.pack(lane, *place, plan), _point(point))
    return b"".join(pieces)


def older_body(ranges: Mapping[int, Mapping[Stream, tuple[int, int]]]) -> bytes:
    """Of OLDER: by file and stream the first and the last group."""
    pieces = [_U32.pack(len(ranges))]
    for file, streams in ranges.items():
        pieces.append(_COUNTED.pack(file, len(streams)))
        for stream, (first, last) in streams.items():
            pieces.append(_stream(stream) + _PAIR.pack(first, last))
    return b"".join(pieces)


def read_older(body: bytes) -> dict[int, dict[Stream, tuple[int, int]]]:
    """The inverse of `older_body`."""
    reader = Reader(body)
    ranges: dict[int, dict[Stream, tuple[int, int]]] = {}
    for _ in range(reader.u32()):
        file, count = reader.unpack(_COUNTED)
        streams = ranges[file] = {}
        for _ in range(count):
            stream = _read_text(reader)
            first, last = reader.unpack(_PAIR)
            streams[stream] = first, last
    return ranges


def read_intent(body: bytes) -> Intent:
    """The inverse of `intent_body`, without the plans.

    Raises:
        CodecError: If the bytes are none, as of all here.
    """
    reader = Reader(body)
    lane, number, has_older = reader.unpack(_INTENT)
    return Intent(lane, number, bool(has_older), reader.u32())


def read_open(body: bytes) -> tuple[int, Statement]:
    """The inverse of `open_body`, without the plans."""
    reader = Reader(body)
    lane, number, bits, spans = _read_open(reader)
    statement = Statement(
        number,
        reader.u32(),
        is_answered=bool(bits & _ANSWERED_BIT),
        is_lost=bool(bits & _LOST_BIT),
        last=spans,
        doubt=Reason.FORGOTTEN if bits & _DOUBT_BIT else None,
    )
    return lane, statement


def read_answer(body: bytes) -> Answer:
    """The inverse of `answer_body`, without the plans."""
    reader = Reader(body)
    lane, number, is_known, length = reader.unpack(_ANSWER)
    last = reader.take(length).decode("ascii")
    count = reader.u32() if reader.remaining else None
    return Answer(lane, number, bool(is_known), count, last)


def read_answer_and_plans(body: bytes) -> tuple[Answer, bytes]:
    """As `read_answer`, with the plans as they stand there; empty where there are none."""
    answer = read_answer(body)
    return answer, body[_ANSWER.size + len(answer.last) :]


def read_plans(kind: int, body: bytes) -> tuple[GroupPlan, ...]:
    """The plans in an INTENT or an ANSWER."""
    reader = Reader(body)
    if kind == INTENT:
        reader.unpack(_INTENT)
    elif kind == OPEN:
        _read_open(reader)
    else:
        *_, length = reader.unpack(_ANSWER)
        reader.take(length)
    plans = decode_plans(reader)
    reader.finish()
    return plans


def read_lane(body: bytes) -> int:
    """The inverse of `lane_body`."""
    return Reader(body).u32()


def read_taken(body: bytes) -> tuple[int, int, dict[Stream, int]]:
    """The inverse of `taken_body`."""
    reader = Reader(body)
    lane, thread_id = _lane_number(reader)
    return lane, thread_id, _read_ends(reader, reader.u32())


def read_ended(body: bytes) -> tuple[int, str]:
    """The inverse of `ended_body`."""
    reader = Reader(body)
    return reader.u32(), _read_text(reader)


def read_lanes(body: bytes) -> tuple[int, list[LaneHead]]:
    """The inverse of `lanes_body`."""
    reader = Reader(body)
    heads = []
    epoch, count = reader.unpack(_LANES)
    for _ in range(count):
        lane, bits, thread_id = reader.unpack(_STATE)
        end = _read_text(reader)
        told = _read_ends(reader, reader.u32())
        start = _read_ends(reader, reader.u32())
        heads.append(
            LaneHead(
                lane=lane,
                is_taken=bool(bits & _TAKEN_BIT),
                needs_end=bool(bits & _NEEDS_END_BIT),
                has_untold=bool(bits & _UNTOLD_BIT),
                thread_id=thread_id,
                end=end,
                told=told,
                start=start,
            )
        )
    return epoch, heads


def read_reading(body: bytes) -> Reading:
    """The inverse of `reading_body`."""
    reader = Reader(body)
    version, epoch, is_gap, *counts = reader.unpack(_READ)
    if version != VERSION:
        raise UnsupportedError(f"it is of version {version}")
    end_count, arrival_count, doubt_count, found_count = counts
    ends = _read_ends(reader, end_count)
    arrivals = []
    for _ in range(arrival_count):
        lane, is_commit = reader.unpack(_ARRIVAL)
        arrivals.append((lane, Arrival(_read_point(reader), bool(is_commit))))
    doubts = [_lane_number(reader) for _ in range(doubt_count)]
    found = []
    for _ in range(found_count):
        lane, file, offset, checksum, plan = reader.unpack(_FOUND)
        place = Place(file, offset, checksum)
        found.append(FoundGroup(lane, _read_point(reader), place, plan))
    return Reading(epoch, bool(is_gap), ends, arrivals, doubts, found)


def _read_open(reader: Reader) -> tuple[int, int, int, tuple[Span, ...]]:
    lane, number, bits, count = reader.unpack(_OPEN)
    spans = []
    for _ in range(count):
        stream = _read_text(reader)
        spans.append(Span(stream, *reader.unpack(_PAIR)))
    return lane, number, bits, tuple(spans)


def _lane_number(reader: Reader) -> tuple[int, int]:
    lane, number = reader.unpack(_STATEMENT)
    return lane, number


def _text(text: str) -> bytes:
    data = text.encode()
    return _U32.pack(len(data)) + data


def _read_text(reader: Reader) -> str:
    return reader.take(reader.u32()).decode("ascii")


@lru_cache(_STREAMS_KEPT)
def _stream(stream: Stream) -> bytes:
    return _text(stream)


def _point(point: Point) -> bytes:
    stream, number = point
    return _stream(stream) + _NUMBER.pack(number)


def _read_point(reader: Reader) -> Point:
    stream = _read_text(reader)
    return Point(stream, reader.u64())


def _ends(ends: Mapping[Stream, int]) -> bytes:
    pieces = [_U32.pack(len(ends))]
    pieces += [_text(stream) + _NUMBER.pack(number) for stream, number in ends.items()]
    return b"".join(pieces)


def _read_ends(reader: Reader, count: int) -> dict[Stream, int]:
    return dict(_read_point(reader) for _ in range(count))
