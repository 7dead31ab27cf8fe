"""Records of the journal: their kinds and their encoding.

Each statement writes two records, INTENT and ANSWER: these are fixed fields, a text and the plans,
little-endian. All other records are JSON; behind that of a READ stand the groups that were found out, as numbers of
64 bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from json import JSONDecoder, JSONEncoder, loads
from struct import Struct
from struct import error as StructError  # noqa: N812  # it is a class
from typing import Any, Final, NamedTuple

from binlane.errors import CodecError, UnsupportedError
from binlane.live.port.group_numbers import GroupNumber, GroupSpan, Stream
from binlane.live.port.journal.record_log import RecordPlace
from binlane.live.port.session_groups import Arrival, RowsReason, SentStatement, SessionGroups
from binlane.log.codec.buffer import Reader
from binlane.statements.session.plan_bytes import EncodedPlans, decode_plans

VERSION: Final = 6
"""Version of all records, plans included: another version is for another binlane."""

SESSIONS: Final = 1
INTENT: Final = 2
ANSWER: Final = 3
LOST: Final = 4
TAKEN: Final = 5
GIVEN: Final = 6
READ: Final = 8
OPEN: Final = 9
MACHINE: Final = 10
"""First in a file of statements: `VERSION`, and an id of this run of the machine. A file of another run may
lack its end."""
FIRST_READ: Final = 11
"""First in a file of groups: a READ that also tells which groups stand in older files."""
CHANGED: Final = 12
HEARD: Final = 13
"""Said between processes, and in no file."""

NO_PLAN: Final = 0xFFFFFFFF
"""Plan number of a group that goes as rows."""
NO_PLACE: Final = RecordPlace(0, 0, 0)

HAS_OLDER: Final = 1
"""Bit of an INTENT: groups of statements before it were read that are not attributed."""
IS_SPLIT: Final = 2
IS_FOR_ALL: Final = 4
IS_ANSWERED: Final = 8
IS_LOST: Final = 16
IS_DOUBTED: Final = 32
IS_BOUND: Final = 64
"""Bits of statements, named as in `SentStatement`."""
IS_KNOWN: Final = 128
"""Bit of an ANSWER: an empty text means that there is no group."""
IS_OUTDATED: Final = 128
"""Bit of an INTENT between processes, as of `Attributions.intend`."""

FRAME: Final = Struct("<IB")
"""Length and kind before a record's body, in a message between processes."""
_STATEMENT: Final = Struct("<IQBI")
_COUNT: Final = Struct("<I")
_FOUND: Final = Struct("<6Q")
FOUND_FIELDS: Final = 6
"""Numbers of a group that was found out: thread, number, file, offset and checksum of the place, plan."""
STATEMENT_HEAD_BYTES: Final = _STATEMENT.size
"""Length of an INTENT before its plans."""

dump_text: Final = JSONEncoder(separators=(",", ":"), check_circular=False).encode
_decode_json: Final = JSONDecoder().raw_decode


class StatementRecord(NamedTuple):
    """An INTENT, an ANSWER or an OPEN: a statement that is to be sent, was answered, or is under way.

    Attributes:
        thread_id: Thread of the statement's session at the source.
        number: Number of the statement in its session.
        bits: Flags of the statement, by the constants above.
        text: GTIDs of the statement's groups in an ANSWER, their spans as JSON in an OPEN.
        plan_count: Number of plans; None in an ANSWER if those of the INTENT hold.
        encoded: The plans in the form of `encode_plans`.
    """

    thread_id: int
    number: int
    bits: int
    text: str
    plan_count: int | None
    encoded: bytes

    def plans(self) -> EncodedPlans:
        """Give the plans, of which it is known that they can be decoded.

        Raises:
            CodecError: If the bytes are none.
        """
        reader = Reader(self.encoded)
        plans = decode_plans(reader)
        reader.finish()
        return EncodedPlans(self.encoded, len(plans))

    def statement(self) -> SentStatement:
        """Give the statement of an OPEN, without its plans."""
        bits = self.bits
        statement = SentStatement(self.number, self.plan_count or 0)
        statement.is_answered = bool(bits & IS_ANSWERED)
        statement.is_lost = bool(bits & IS_LOST)
        statement.last = tuple(GroupSpan(*span) for span in loads(self.text))
        statement.is_bound = bool(bits & IS_BOUND)
        statement.doubt = RowsReason.FORGOTTEN if bits & IS_DOUBTED else None
        return statement


class FoundGroup(NamedTuple):
    """A group of which the session is known.

    Attributes:
        thread_id: Thread of the session at the source.
        place: Position in the journal of the statement's plans.
        plan: Index of the group's plan among them; `NO_PLAN` where it has none.
    """

    thread_id: int
    point: GroupNumber
    place: RecordPlace
    plan: int


class FoundRun(NamedTuple):
    """Groups of one stream of which the sessions are known.

    Attributes:
        stream: Stream in which the groups are numbered.
        first: The least number of a group.
        last: The greatest number of a group.
        encoded: `FOUND_FIELDS` numbers of each group, of 64 bits, little-endian.
    """

    stream: Stream
    first: int
    last: int
    encoded: bytes

    @classmethod
    def each_of(cls, found: Iterable[FoundGroup]) -> list[FoundRun]:
        """Give groups as runs, one for each stream."""
        streams: dict[Stream, list[FoundGroup]] = {}
        for group in found:
            streams.setdefault(group.point.stream, []).append(group)
        return [
            cls(
                stream,
                min(group.point.number for group in groups),
                max(group.point.number for group in groups),
                b"".join(
                    [
                        _FOUND.pack(thread_id, point.number, *place, plan)
                        for thread_id, point, place, plan in groups
                    ]
                ),
            )
            for stream, groups in streams.items()
        ]

    def groups(self) -> Iterator[FoundGroup]:
        """Give the groups, in their order."""
        for thread_id, number, *place, plan in _FOUND.iter_unpack(self.encoded):
            point = GroupNumber(self.stream, number)
            yield FoundGroup(thread_id, point, RecordPlace(*place), plan)


class ReadProgress(NamedTuple):
    """Progress of reading the source's log, with the findings since the record before.

    Attributes:
        epoch: Number of the source that the journal is about; another source has another number.
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
    found: Sequence[FoundRun]


Ranges = Mapping[int, Mapping[Stream, tuple[int, int]]]
"""The first and the last group that files tell of, by file and stream."""


def dump(value: object) -> bytes:
    """Encode the body of a record other than those of statements."""
    return dump_text(value).encode()


def load(body: bytes) -> Any:
    """Decode what `dump` gave.

    Raises:
        CodecError: If the bytes are none.
    """
    try:
        return loads(body)
    except ValueError as error:
        raise CodecError(f"a record is no JSON: {error}") from None


def statement_body(thread_id: int, number: int, bits: int, text: str, plans: bytes) -> bytes:
    """Encode the body of an INTENT, an ANSWER or an OPEN."""
    if not text:
        return _STATEMENT.pack(thread_id, number, bits, 0) + plans
    told = text.encode()
    return _STATEMENT.pack(thread_id, number, bits, len(told)) + told + plans


def open_body(thread_id: int, statement: SentStatement, plans: bytes) -> bytes:
    """Encode the body of an OPEN: a statement that may still have groups to come."""
    bits = (
        statement.is_answered * IS_ANSWERED
        | statement.is_lost * IS_LOST
        | (statement.doubt is not None) * IS_DOUBTED
        | statement.is_bound * IS_BOUND
    )
    return statement_body(thread_id, statement.number, bits, dump_text(statement.last), plans)


def read_statement(body: bytes, start: int = 0) -> StatementRecord:
    """Decode what `statement_body` gave; the plans stay encoded.

    Args:
        body: The bytes, to their end.
        start: Place of the first of them.

    Raises:
        CodecError: If the bytes are none.
    """
    try:
        thread_id, number, bits, length = _STATEMENT.unpack_from(body, start)
        start += _STATEMENT.size
        encoded = body[start + length :]
        count = _COUNT.unpack_from(encoded)[0] if encoded else None
        text = body[start : start + length].decode("ascii") if length else ""
    except (StructError, UnicodeDecodeError) as error:
        raise CodecError(f"a record is no statement: {error}") from None
    # In a third of the time of `StatementRecord(…)`.
    return tuple.__new__(StatementRecord, (thread_id, number, bits, text, count, encoded))


def sessions_body(
    epoch: int, ends: Mapping[Stream, int], sessions: Mapping[int, SessionGroups]
) -> bytes:
    """Encode the body of a SESSIONS: the state of all sessions where a file begins.

    Args:
        epoch: Number of the source that the journal is about.
        ends: Last number of each stream of which older files tell.
        sessions: Sessions by their threads at the source.
    """
    heads = [
        (thread_id, each.is_taken, each.has_untold, each.run, each.told, each.start)
        for thread_id, each in sessions.items()
    ]
    return dump((epoch, ends, heads))


def read_sessions(body: bytes) -> tuple[int, dict[Stream, int], dict[int, SessionGroups]]:
    """Decode what `sessions_body` gave."""
    epoch, ends, heads = load(body)
    sessions = {}
    for thread_id, is_taken, has_untold, run, told, start in heads:
        groups = SessionGroups(is_taken=is_taken, has_untold=has_untold, start=start, run=run)
        groups.told.update(told)
        sessions[thread_id] = groups
    return epoch, ends, sessions


def progress_body(progress: ReadProgress, older: Ranges | None) -> bytes:
    """Encode the body of a READ; of a FIRST_READ with the ranges of older files."""
    ranges = None if older is None else list(older.items())
    spans = [(run.stream, run.first, run.last, len(run.encoded)) for run in progress.found]
    head = dump((VERSION, ranges, *progress[:-1], spans))
    return b"".join([head, *(run.encoded for run in progress.found)])


def read_progress(body: bytes) -> tuple[ReadProgress, Ranges | None]:
    """Decode what `progress_body` gave.

    Raises:
        CodecError: If the bytes are none.
    """
    try:
        # JSON here is ASCII, and ends before the numbers.
        (version, older, *rest), at = _decode_json(body.decode("latin-1"))
    except ValueError as error:
        raise CodecError(f"a record is no JSON: {error}") from None
    if version != VERSION:
        raise UnsupportedError(f"it is of version {version}")
    epoch, run, ends, arrivals, doubts, spans = rest
    found = []
    for stream, first, last, length in spans:
        found.append(FoundRun(stream, first, last, body[at : at + length]))
        at += length
    return (
        ReadProgress(
            *(epoch, run, ends),
            [
                (thread_id, Arrival(GroupNumber(*point), is_commit))
                for thread_id, (point, is_commit, _) in arrivals
            ],
            [(thread_id, number) for thread_id, number in doubts],
            found,
        ),
        None if older is None else dict(older),
    )
