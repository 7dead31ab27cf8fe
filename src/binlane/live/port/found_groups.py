"""Groups of a run whose statements are found by a kernel: those of which nothing but the usual was said.

What is found is what `AttributionState` would find, one by one: a statement of one group that was answered, of a session
of which nothing else is open, and whose reply has named a group that now comes. Nothing is made of it but arrays.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from binlane.live.port.group_numbers import GroupSpan, Stream, StreamNumbers
from binlane.live.port.heard_messages import HeardMessages
from binlane.live.port.journal import journal_records as records
from binlane.live.port.journal.journal_records import FOUND_FIELDS, FoundRun
from binlane.live.port.session_groups import SentStatement, SessionGroups
from binlane.log.kernels import found_layout as told
from binlane.log.kernels.load import kernels
from binlane.statements.session.plan_bytes import EncodedPlan, EncodedPlans

RunArrays = tuple[Any, Any, Any, Any]
"""Bytes, events and groups of a run, as of `RawRun`, and the thread that the log names for each group, or 0."""
_LEAST_ENTRIES: Final = 16
_UNKNOWN: Final = -1


class FoundPlans:
    """Plans of groups of one stream, whose bytes stand one behind the other.

    Attributes:
        found: The groups, as the journal has them.

    Args:
        stream: Stream in which the groups are numbered.
        rows: A row of numbers for each group, as a kernel gave it.
        plans: Bytes of the plans of all groups.
        ends: The end of each plan there.
    """

    def __init__(self, stream: Stream, rows: Any, plans: bytes, ends: Sequence[int]) -> None:
        sequences = rows[:, told.TOLD_SEQUENCE]
        encoded = rows[:, :FOUND_FIELDS].tobytes()
        self.found = FoundRun(stream, int(sequences.min()), int(sequences.max()), encoded)
        self._rows, self._plans, self._ends = rows, plans, ends
        self._places: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._ends)

    @property
    def size_bytes(self) -> int:
        """Size of the plans."""
        return len(self._plans)

    def threads(self) -> set[int]:
        """Give the threads of the sessions that made the groups."""
        return set(self._rows[:, told.TOLD_THREAD].tolist())

    def sequences(self) -> list[int]:
        """Give the numbers of the groups in their stream."""
        sequences: list[int] = self._rows[:, told.TOLD_SEQUENCE].tolist()
        return sequences

    def get(self, number: int) -> EncodedPlan | None:
        """Give the plan of a group; None for one that is not here."""
        if not self._places:
            self._places = {each: place for place, each in enumerate(self.sequences())}
        place = self._places.get(number)
        return None if place is None else self.plan(place)

    def plan(self, place: int) -> EncodedPlan:
        """Give the plan of a group by its place among these."""
        begin = self._ends[place - 1] if place else 0
        return EncodedPlan(EncodedPlans(self._plans[begin : self._ends[place]], 1), 0)

    def statements(self) -> Iterator[tuple[int, SentStatement]]:
        """Give the statements of the groups, each behind its session's thread, as if they were known one by one."""
        for place, (thread_id, point, where, _) in enumerate(self.found.groups()):
            statement = SentStatement(0, 1, self.plan(place).plans, where)
            statement.is_answered = True
            first = point.number if ":" in point.stream else 0
            statement.last = (GroupSpan(point.stream, first, point.number),)
            yield thread_id, statement


class FoundGroups:
    """The groups of a run that were found, in their order.

    Attributes:
        numbers: Numbers of the groups in the run.
        encoded: Bytes of their plans, one behind the other.
        ends: The end of each plan there.
        is_awaited: True if a statement of a session is not answered yet that may have made another group of the run.
    """

    def __init__(
        self,
        heard: Sequence[HeardMessages],
        rows: Any,
        sessions: tuple[Any, Any],
        makers: Any,
        numbers: StreamNumbers,
    ) -> None:
        """Take what a kernel found.

        Args:
            heard: The messages, those of open statements first.
            rows: A row of numbers for each group that was found.
            sessions: The sessions and their ends, behind the groups.
            makers: Rows of numbers for each group of the run, the first two of the messages on its statement, or -1.
            numbers: Gives streams by the kernel's numbers.
        """
        self._streams = numbers
        self._heard, self._rows, self._makers = heard, rows, makers
        self.numbers: list[int] = rows[:, told.TOLD_GROUP].tolist()
        places = rows[:, told.TOLD_CHUNK : told.TOLD_END + 1].tolist()
        pieces = [heard[each].data[begin:end] for each, begin, end in places]
        self.encoded = b"".join(pieces)
        lengths = rows[:, told.TOLD_END] - rows[:, told.TOLD_BEGIN]
        self.ends: list[int] = np.cumsum(lengths).tolist()
        table = sessions[0]
        is_open = (table[told.SESSION_OPEN] >= 0) & (table[told.SESSION_IS_OVER] == 0)
        self.is_awaited = makers.shape[1] > len(rows) and bool(is_open.any())
        self._sessions = sessions

    def makers(self) -> Iterator[tuple[int, int, dict[Stream, int]]]:
        """Give the threads of the groups' sessions, the number of the groups of each, and its last one by stream."""
        table, ends = self._sessions
        for place in np.flatnonzero(table[told.SESSION_FOUND]).tolist():
            thread_id, first, behind, _, _, count, _ = table[:, place].tolist()
            streams = ends[:, first:behind].T.tolist()
            told_ = {self._streams.stream(number): last for number, last in streams}
            yield thread_id, count, told_

    def plans(self) -> list[FoundPlans]:
        """Give the plans of the groups by their streams."""
        rows, domains = self._rows, self._rows[:, told.TOLD_DOMAIN]
        if (domains == domains[0]).all():
            stream = self._streams.stream(int(domains[0]))
            return [FoundPlans(stream, rows, self.encoded, self.ends)]
        begins = [0, *self.ends]
        found = []
        for domain in np.unique(domains).tolist():
            places = np.flatnonzero(domains == domain)
            pieces = [self.encoded[begins[each] : self.ends[each]] for each in places.tolist()]
            ends = np.cumsum([len(piece) for piece in pieces]).tolist()
            stream = self._streams.stream(domain)
            found.append(FoundPlans(stream, rows[places], b"".join(pieces), ends))
        return found

    def naming(self, binlog: str) -> list[int]:
        """Give the numbers of the groups whose plans name a binlog."""
        begins = [0, *self.ends]
        return [
            number
            for number, begin, end in zip(self.numbers, begins, self.ends, strict=False)
            if EncodedPlan(EncodedPlans(self.encoded[begin:end], 1), 0).names(binlog)
        ]

    def drop_messages(self) -> None:
        """Let the messages go on the statements of these groups."""
        is_left = np.ones(sum(len(each.rows) for each in self._heard), bool)
        is_left[self._makers[:2][self._makers[:2] >= 0]] = False
        begin = 0
        for each in self._heard:
            end = begin + len(each.rows)
            each.rows = each.rows[is_left[begin:end]]
            begin = end


def messages_of(
    open_: Sequence[tuple[int, SentStatement]], numbers: StreamNumbers
) -> list[HeardMessages]:
    """Give what was said of statements that are open, each of one group, behind their sessions' threads."""
    files: dict[int, list[tuple[int, SentStatement]]] = {}
    for thread_id, statement in open_:
        assert statement.place is not None, "it is in the journal"
        files.setdefault(statement.place.file, []).append((thread_id, statement))
    return [_messages_in(file, statements, numbers) for file, statements in files.items()]


def _messages_in(
    file: int, statements: Sequence[tuple[int, SentStatement]], numbers: StreamNumbers
) -> HeardMessages:
    rows: list[tuple[int, ...]] = []
    pieces: list[bytes] = []
    end = 0
    for thread_id, statement in statements:
        plans, place = statement.plans, statement.place
        assert plans is not None, "it is usual"
        assert place is not None, "it is in the journal"
        begin, end = end, end + len(plans.encoded)
        pieces.append(plans.encoded)
        head = thread_id, statement.number, place.offset, place.checksum
        rows.append((records.INTENT, *head, begin, end, 1, 0, 0))
        for stream, _, sequence in statement.last:
            number = numbers.number_of(stream)
            # Nothing is found by a group that a kernel does not know.
            told_ = (_UNKNOWN, 0) if number is None else (number, sequence)
            rows.append((records.ANSWER, *head, begin, end, -1, *told_))
    never_unaware = None, sys.maxsize, 0
    made = np.array(rows, np.int64)
    return HeardMessages(made, b"".join(pieces), (file, 0), never_unaware, numbers)


def find_groups(
    run: RunArrays,
    said: tuple[Sequence[HeardMessages], Sequence[HeardMessages]],
    sessions: Mapping[int, SessionGroups],
    reading: tuple[Mapping[Stream, int], int],
    numbers: StreamNumbers,
) -> FoundGroups:
    """Find the groups of a run that sessions were told of.

    Args:
        run: Bytes and index of the run's groups.
        said: What sessions have said, in order: of the statements that are open, and what is not known yet.
        sessions: Those of the sessions of which nothing else is open, by their threads.
        reading: The number up to which each stream was read before the run, and that of the last change of the
            source's objects.
        numbers: Numbers of streams, as the kernel knows them.
    """
    read, last_change = reading
    from_start = dict.fromkeys(read, 0)
    heard, count = [*said[0], *said[1]], run[2].shape[1]
    table = np.zeros((told.SESSION_SIZE, len(sessions)), np.int64)
    ends: list[tuple[int, int]] = []
    for place, (thread_id, groups) in enumerate(sessions.items()):
        first = len(ends)
        before = groups.told_before()
        # Of streams that were not there when the session began, all groups may be its own.
        ends += numbers.pairs({**from_start, **before} if len(before) < len(read) else before)
        table[: told.SESSION_ENDS_END + 1, place] = thread_id, first, len(ends)
    table[[told.SESSION_OPEN, told.SESSION_NAMED]] = -1
    rows = [each.rows for each in heard]
    chunks = np.array(
        [(0, each.heard >= last_change, each.file, each.offset) for each in heard],
        np.int64,
    ).T.copy()
    chunks[told.CHUNK_END] = np.cumsum([len(each) for each in rows])
    known = table, _pairs(ends)
    makers = np.empty((3, count), np.int64)
    tables = _entries(count), _entries(len(sessions)), makers
    found = np.empty((count, told.TOLD_SIZE), np.int64)
    reads = _pairs(numbers.pairs(read)), numbers.sources
    messages = rows[0] if len(rows) == 1 else np.concatenate(rows)
    done = kernels().find_groups(run, reads, (messages, chunks), known, tables, found)
    return FoundGroups(heard, found[:done], known, makers, numbers)


def _pairs(pairs: Sequence[tuple[int, int]]) -> Any:
    """Give pairs of numbers as two rows."""
    return np.ascontiguousarray(np.array(pairs, np.int64).reshape(-1, 2).T)


def _entries(count: int) -> Any:
    """Give a table that is at least half empty with so many entries."""
    size = max(_LEAST_ENTRIES, 1 << (2 * count - 1).bit_length())
    return np.full(size, -1, np.int64)
