"""Records of the journal: their contents and their encoding.

Numbers are little-endian; texts stand behind their length of 32 bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple

from binlane.binlogs.store.record_log import Place
from binlane.errors import UnsupportedError
from binlane.live.port.session_groups import Arrival, Point, Reason, Span, Statement, Stream
from binlane.log.codec.buffer import Reader
from binlane.statements.session.group_plan import GroupPlan
from binlane.statements.session.plan_bytes import decode_plans

VERSION: Final = 4
"""Version of all records, plans included: another version is for another binlane."""

SESSIONS: Final = 1
INTENT: Final = 2
ANSWER: Final = 3
LOST: Final = 4
TAKEN: Final = 5
GIVEN: Final = 6
READ: Final = 8
OPEN: Final = 9
OLDER: Final = 11
"""First in a file of groups: of which groups older files tell."""
MACHINE: Final = 10
"""First in a file of statements: `VERSION`, and what tells this run of the machine from others. What
was written may lack its end if it is not the present one."""

NO_PLAN: Final = 0xFFFFFFFF
"""Plan number of a group that goes as rows."""
NO_PLACE: Final = Place(0, 0, 0)

_U32: Final = Struct("<I")
_STATEMENT: Final = Struct("<IQ")
_INTENT: Final = Struct("<IQB")
INTENT_HEAD_BYTES: Final = _INTENT.size
"""Length of an INTENT before its plans."""
_ANSWER: Final = Struct("<IQBI")
_STATE: Final = Struct("<IBI")
_SESSIONS: Final = Struct("<QI")
_READ: Final = Struct("<BQIIIII")
_NUMBER: Final = Struct("<Q")
_ARRIVAL: Final = Struct("<IB")
_FOUND: Final = Struct("<IIQII")
_OPEN: Final = Struct("<IQBI")
_PAIR: Final = Struct("<QQ")
_COUNTED: Final = Struct("<II")

_STREAMS_KEPT: Final = 1024
_TAKEN_BIT: Final = 1
_UNTOLD_BIT: Final = 2
_ANSWERED_BIT: Final = 1
_LOST_BIT: Final = 2
_DOUBT_BIT: Final = 4
_BOUND_BIT: Final = 8
OLDER_BIT: Final = 1
SPLIT_BIT: Final = 2
ALL_BIT: Final = 4
KNOWN_BIT: Final = 1
OF_BOUND_BIT: Final = 2
"""Bits of INTENT and ANSWER records for the flags of `Intent` and `Answer`."""


class SessionHead(NamedTuple):
    """State of a session where a file begins.

    Attributes:
        thread_id: Thread of the session at the source.
        is_taken: Same as in `SessionGroups`, like `has_untold`, `told`, `start` and `run`.
    """

    thread_id: int
    is_taken: bool
    has_untold: bool
    told: Mapping[Stream, int]
    start: Mapping[Stream, int]
    run: int


class Intent(NamedTuple):
    """A statement that is about to be sent.

    Attributes:
        thread_id: Thread of the statement's session at the source.
        number: Number of the statement in its session.
        has_older: True if groups of statements before it were read that are not attributed.
        is_split: Same as in `Statement`, like `is_for_all`.
        plan_count: Number of plans of the statement's groups.
    """

    thread_id: int
    number: int
    has_older: bool
    is_split: bool
    is_for_all: bool
    plan_count: int


class Answer(NamedTuple):
    """Contents of a statement's reply.

    Attributes:
        thread_id: Thread of the statement's session at the source.
        number: Number of the statement in its session.
        is_known: True if an empty `last` means that there is no group.
        is_bound: True if `last` is up to where its groups are, and not which they are.
        plan_count: Number of plans in place of those that were intended; None if the intended ones hold.
        last: GTIDs told of the statement's groups; empty for nothing.
    """

    thread_id: int
    number: int
    is_known: bool
    is_bound: bool
    plan_count: int | None
    last: str


class FoundGroup(NamedTuple):
    """A group of which the session is known.

    Attributes:
        thread_id: Thread of the session at the source.
        place: Position in the journal of the statement's plans.
        plan: Index of the group's plan among them; `NO_PLAN` where it has none.
    """

    thread_id: int
    point: Point
    place: Place
    plan: int


class Reading(NamedTuple):
    """Progress of reading the source's log, with the findings since the record before.

    Attributes:
        epoch: Same as in the head of files of statements.
        run: Number of times that the log was seen to go on behind a start of the source.
        ends: Last read number of each stream that moved since the record before.
        arrivals: Groups that were read and are not attributed, each behind its thread; 0 where it is not
            known.
        doubts: Threads and numbers of open statements of which no group is planned.
        found: Groups that were attributed since the record before.
    """

    epoch: int
    run: int
    ends: Mapping[Stream, int]
    arrivals: Sequence[tuple[int, Arrival]]
    doubts: Sequence[tuple[int, int]]
    found: Sequence[FoundGroup]


def intent_body(thread_id: int, number: int, plans: bytes, bits: int) -> bytes:
    """Body of an INTENT record."""
    return _INTENT.pack(thread_id, number, bits) + plans


def answer_body(thread_id: int, number: int, last: str, plans: bytes, bits: int) -> bytes:
    """Body of an ANSWER record."""
    told = last.encode()
    return _ANSWER.pack(thread_id, number, bits, len(told)) + told + plans


def open_body(thread_id: int, statement: Statement, plans: bytes) -> bytes:
    """Body of an OPEN record: a statement that may still have groups to come."""
    bits = (
        statement.is_answered * _ANSWERED_BIT
        | statement.is_lost * _LOST_BIT
        | (statement.doubt is not None) * _DOUBT_BIT
        | statement.is_bound * _BOUND_BIT
    )
    pieces = [_OPEN.pack(thread_id, statement.number, bits, len(statement.last))]
    for stream, first, last in statement.last:
        pieces.append(_text(stream) + _PAIR.pack(first, last))
    return b"".join((*pieces, plans))


def thread_body(thread_id: int) -> bytes:
    """Body of a LOST or GIVEN record."""
    return _U32.pack(thread_id)


def taken_body(thread_id: int, start: Mapping[Stream, int], run: int = 0) -> bytes:
    """Body of a TAKEN record."""
    return _COUNTED.pack(thread_id, run) + _ends(start)


def sessions_body(epoch: int, heads: Sequence[SessionHead]) -> bytes:
    """Body of a SESSIONS record."""
    pieces = [_SESSIONS.pack(epoch, len(heads))]
    for head in heads:
        bits = head.is_taken * _TAKEN_BIT | head.has_untold * _UNTOLD_BIT
        pieces += (_STATE.pack(head.thread_id, bits, head.run), _ends(head.told), _ends(head.start))
    return b"".join(pieces)


def reading_body(reading: Reading) -> bytes:
    """Body of a READ record."""
    counts = len(reading.ends), len(reading.arrivals), len(reading.doubts), len(reading.found)
    pieces = [_READ.pack(VERSION, reading.epoch, reading.run, *counts)]
    pieces += [_stream(stream) + _NUMBER.pack(number) for stream, number in reading.ends.items()]
    for thread_id, arrival in reading.arrivals:
        pieces += (_ARRIVAL.pack(thread_id, arrival.is_commit), _point(arrival.point))
    pieces += [_STATEMENT.pack(thread_id, number) for thread_id, number in reading.doubts]
    for thread_id, point, place, plan in reading.found:
        pieces += (_FOUND.pack(thread_id, *place, plan), _point(point))
    return b"".join(pieces)


def older_body(ranges: Mapping[int, Mapping[Stream, tuple[int, int]]]) -> bytes:
    """Body of an OLDER record: by file and stream the first and the last group."""
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
    thread_id, number, bits = reader.unpack(_INTENT)
    has_older, is_split = bool(bits & OLDER_BIT), bool(bits & SPLIT_BIT)
    is_for_all = bool(bits & ALL_BIT)
    return Intent(thread_id, number, has_older, is_split, is_for_all, reader.u32())


def read_open(body: bytes) -> tuple[int, Statement]:
    """The inverse of `open_body`, without the plans."""
    reader = Reader(body)
    thread_id, number, bits, spans = _read_open(reader)
    statement = Statement(
        number,
        reader.u32(),
        is_answered=bool(bits & _ANSWERED_BIT),
        is_lost=bool(bits & _LOST_BIT),
        last=spans,
        is_bound=bool(bits & _BOUND_BIT),
        doubt=Reason.FORGOTTEN if bits & _DOUBT_BIT else None,
    )
    return thread_id, statement


def read_answer(body: bytes) -> Answer:
    """The inverse of `answer_body`, without the plans."""
    reader = Reader(body)
    thread_id, number, bits, length = reader.unpack(_ANSWER)
    last = reader.take(length).decode("ascii")
    count = reader.u32() if reader.remaining else None
    is_known, is_bound = bool(bits & KNOWN_BIT), bool(bits & OF_BOUND_BIT)
    return Answer(thread_id, number, is_known, is_bound, count, last)


def read_answer_and_plans(body: bytes) -> tuple[Answer, bytes]:
    """Read an ANSWER as `read_answer` does, with the plans as they stand there; empty without any."""
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


def read_thread(body: bytes) -> int:
    """The inverse of `thread_body`."""
    return Reader(body).u32()


def read_taken(body: bytes) -> tuple[int, dict[Stream, int], int]:
    """The inverse of `taken_body`."""
    reader = Reader(body)
    thread_id, run = reader.unpack(_COUNTED)
    return thread_id, _read_ends(reader, reader.u32()), run


def read_sessions(body: bytes) -> tuple[int, list[SessionHead]]:
    """The inverse of `sessions_body`."""
    reader = Reader(body)
    heads = []
    epoch, count = reader.unpack(_SESSIONS)
    for _ in range(count):
        thread_id, bits, run = reader.unpack(_STATE)
        told = _read_ends(reader, reader.u32())
        start = _read_ends(reader, reader.u32())
        heads.append(
            SessionHead(
                thread_id=thread_id,
                is_taken=bool(bits & _TAKEN_BIT),
                has_untold=bool(bits & _UNTOLD_BIT),
                told=told,
                start=start,
                run=run,
            )
        )
    return epoch, heads


def read_reading(body: bytes) -> Reading:
    """The inverse of `reading_body`."""
    reader = Reader(body)
    version, epoch, run, *counts = reader.unpack(_READ)
    if version != VERSION:
        raise UnsupportedError(f"it is of version {version}")
    end_count, arrival_count, doubt_count, found_count = counts
    ends = _read_ends(reader, end_count)
    arrivals = []
    for _ in range(arrival_count):
        thread_id, is_commit = reader.unpack(_ARRIVAL)
        arrivals.append((thread_id, Arrival(_read_point(reader), bool(is_commit))))
    doubts = [_thread_number(reader) for _ in range(doubt_count)]
    found = []
    for _ in range(found_count):
        thread_id, file, offset, checksum, plan = reader.unpack(_FOUND)
        place = Place(file, offset, checksum)
        found.append(FoundGroup(thread_id, _read_point(reader), place, plan))
    return Reading(epoch, run, ends, arrivals, doubts, found)


def _read_open(reader: Reader) -> tuple[int, int, int, tuple[Span, ...]]:
    thread_id, number, bits, count = reader.unpack(_OPEN)
    spans = []
    for _ in range(count):
        stream = _read_text(reader)
        spans.append(Span(stream, *reader.unpack(_PAIR)))
    return thread_id, number, bits, tuple(spans)


def _thread_number(reader: Reader) -> tuple[int, int]:
    thread_id, number = reader.unpack(_STATEMENT)
    return thread_id, number


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
