"""Which groups of one lane are of which statement: what is known, and what follows from it.

A lane is of one session at a time, and a session runs one statement after another; so the groups of
a lane come in the order of its statements. Of each statement the source tells its last group once it
is answered. All groups behind the last one of the statement before, up to that one, are of the
statement: no others. If these are as many as were foreseen, the first is the first that was, and so
on; if not, nobody says which is which, and none of them is planned.

MariaDB numbers the groups of a domain, whatever lane they are on: how many a statement made is known
when the log was read up to its last. MySQL numbers the groups of a tag, and tells all of a statement.

Pure: no files, clocks or threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import NamedTuple

from binlane.port.journal import Place
from binlane.positions import AnyGtid, Gtid, GtidPosition, GtidSet, Position
from binlane.routing.plan import GroupPlan

Stream = str
"""Within it numbers only grow: a domain of MariaDB, a source with its tag of MySQL."""


class Reason(StrEnum):
    """Why a group is of no statement that is known."""

    NO_STATEMENT = "no statement that was under way is known to have made it"
    OTHER_COUNT = "its statement made another number of groups than was foreseen"
    UNKNOWN = "what its statement would make was not known"
    NOT_ANSWERED = "its statement was not answered in time"
    LOST = "its session ended before its statement was answered"
    NOT_READ = "the source's log was not read where its statement began"
    APART = "the groups of its statement did not come together"
    FORGOTTEN = "nothing is known of it any more"
    NOT_WRITTEN = "the journal could not be written"
    CLOSED = "binlane ends"


class Unattributed(NamedTuple):
    """What is said of a group that is routed as rows.

    Attributes:
        reason: Why.
    """

    reason: Reason


class Point(NamedTuple):
    """A group of the source.

    Attributes:
        stream: In which it is numbered.
        number: Its number.
    """

    stream: Stream
    number: int


class Span(NamedTuple):
    """Groups that follow each other in a stream.

    Attributes:
        stream: In which they are numbered.
        first: Number of the first; 0 where only the last is known.
        last: Number of the last.
    """

    stream: Stream
    first: int
    last: int


class Arrival(NamedTuple):
    """A group that was read and is not attributed yet.

    Attributes:
        point: Which.
        is_commit: It ends with XID: nothing of it was rolled back, and no error stopped it halfway.
    """

    point: Point
    is_commit: bool


class Verdict(NamedTuple):
    """What became of a group.

    Attributes:
        point: Which.
        statement: Of which it is; None of none that is known.
        plan: Number of its plan among those of the statement, from 0.
        reason: Why it has none; only without a statement.
    """

    point: Point
    statement: Statement | None = None
    plan: int = 0
    reason: Reason = Reason.NO_STATEMENT


class Wait(Enum):
    """What it takes to say more."""

    REPLY = "the statement's reply"
    END = "the end of the session at the source"
    READING = "more of the source's log"


@dataclass(slots=True, eq=False)
class Statement:
    """A statement that was or is under way on a lane.

    Attributes:
        number: Which of its session.
        count: How many groups were foreseen.
        plans: Theirs; None where they have to be read from the journal.
        place: Where the journal has them; None without one.
        is_answered: Its reply came.
        is_lost: It will never come.
        last: What the reply told of its groups; empty for none.
        doubt: Why none of its groups is planned; None where they may be.
        gone: The last number in each stream of groups that were attributed to nobody while it came
            first; None for no such groups.
    """

    number: int
    count: int
    plans: Sequence[GroupPlan] | None = None
    place: Place | None = None
    is_answered: bool = False
    is_lost: bool = False
    last: tuple[Span, ...] = ()
    doubt: Reason | None = None
    gone: dict[Stream, int] | None = None


@dataclass(slots=True, eq=False)
class LaneGroups:
    """What is known of one lane.

    Attributes:
        statements: That may still have groups to come, in their order.
        arrivals: Groups that were read and not attributed, in the order of the log.
        told: The last number of each stream that the session was told.
        is_taken: It has a session.
        thread_id: Of that session at the source; 0 for an unknown one.
        needs_end: Nothing says yet that its last session's thread is gone from the source.
        end: What the source had logged when it was gone; None before.
        has_untold: A statement was answered that does not tell whether it made groups.
        has_strangers: Groups came while no statement was known that might have made them.
        start: The last number of each stream when its session got the lane: what is not behind that
            is of nobody here.
        gone: Statements that nothing more can come of, and the journal does not know it yet.
    """

    statements: deque[Statement] = field(default_factory=deque)
    arrivals: list[Arrival] = field(default_factory=list)
    told: dict[Stream, int] = field(default_factory=dict)
    is_taken: bool = False
    thread_id: int = 0
    needs_end: bool = False
    end: Position | None = None
    has_untold: bool = False
    has_strangers: bool = False
    start: dict[Stream, int] = field(default_factory=dict)
    gone: list[Statement] = field(default_factory=list)

    def add(self, statement: Statement) -> None:
        """A statement is about to be sent, or was answered that was not known before."""
        if statement.is_answered and self.has_strangers:
            statement.doubt = statement.doubt or Reason.OTHER_COUNT
        self.has_strangers = False
        self.statements.append(statement)

    def take(self, thread_id: int, start: Mapping[Stream, int]) -> None:
        """A session gets the lane, which is clear."""
        self.drop_old(0)
        self.start = dict(start)
        self.is_taken, self.thread_id = True, thread_id
        self.needs_end, self.end = False, None

    def give(self) -> None:
        """The session ended, or left the lane."""
        self.is_taken = False
        if any(not statement.is_answered for statement in self.statements):
            self.lose()

    def drop_old(self, number: int) -> None:
        """Let go of what a session before left, and of what was said before of this statement."""
        statements = self.statements
        for each in statements:
            if each.is_lost or (each.number == number and not each.is_answered):
                break
        else:
            return
        self.statements = deque(
            each
            for each in statements
            if not each.is_lost and (each.is_answered or each.number != number)
        )

    def find(self, number: int) -> Statement | None:
        """The statement of a number that has no reply yet."""
        for statement in reversed(self.statements):
            if statement.number == number and not statement.is_answered:
                return statement
        return None

    def answer(self, statement: Statement, last: tuple[Span, ...], *, is_known: bool) -> None:
        """Take in what the reply to a statement told of its groups.

        Args:
            statement: One of `statements`.
            last: What was told; what was told before, or was there before the session, counts as
                nothing.
            is_known: Nothing told means no group; else it means that nothing is known.
        """
        statement.is_answered = True
        if len(last) == 1 and not (last[0].first or self.has_untold):
            # What nearly all come to.
            stream, _, number = last[0]
            if number > self._last_before(stream):
                statement.last = last
                self.told[stream] = number
                return
        new = [span for span in last if span.last > self._last_before(span.stream)]
        if not new:
            self.has_untold |= not is_known
            return
        if self.has_untold and statement.count > 1:
            # One more group and one less give the same number.
            statement.doubt = statement.doubt or Reason.OTHER_COUNT
        self.has_untold = False
        statement.last = tuple(
            [
                span
                if not span.first or span.first > self._last_before(span.stream)
                else span._replace(first=self._last_before(span.stream) + 1)
                for span in new
            ]
        )
        for stream, _, number in new:
            self.told[stream] = number

    def _last_before(self, stream: Stream) -> int:
        """The last number of a stream that is not of a statement to come."""
        return max(self.told.get(stream, 0), self.start.get(stream, 0))

    def is_over(self, statement: Statement, read: Mapping[Stream, int]) -> bool:
        """Whether all groups of a statement were attributed, in the order that they came in."""
        if not statement.is_answered:
            return False
        return not any(
            read.get(stream, 0) < last
            or any(
                point.stream == stream and (first or last) <= point.number <= last
                for point, _ in self.arrivals
            )
            for stream, first, last in statement.last
        )

    def lose(self) -> None:
        """The session is gone; what was under way gets no reply."""
        self.needs_end = True
        for statement in self.statements:
            statement.is_lost |= not statement.is_answered

    @property
    def wait(self) -> Wait:
        """What it takes to attribute the groups that arrived."""
        assert self.statements, "there is one that they may be of"
        first = self.statements[0]
        if first.is_lost:
            return Wait.END
        return Wait.READING if first.is_answered else Wait.REPLY

    def doubt(self, reason: Reason) -> None:
        """Plan no group of the statement that comes first."""
        if self.statements:
            first = self.statements[0]
            first.doubt = first.doubt or reason

    def doubt_all(self, reason: Reason) -> None:
        """Plan no group of any statement that is known."""
        for statement in self.statements:
            statement.doubt = statement.doubt or reason

    def settle(self, read: Mapping[Stream, int], *, is_end_read: bool) -> Iterable[Verdict]:
        """Attribute what can be.

        Args:
            read: Up to where each stream was read.
            is_end_read: `end` is known, and all up to there was read.
        """
        statements, arrivals = self.statements, self.arrivals
        if len(statements) == len(arrivals) == 1:
            # What nearly all come to.
            first, point = statements[0], arrivals[0].point
            if first.count == len(first.last) == 1 and first.doubt is None:
                stream, begin, end = first.last[0]
                if point == (stream, end) and begin in {0, end}:
                    self.gone.append(statements.popleft())
                    arrivals.clear()
                    return (Verdict(point, first),)
        return self._settle(read, is_end_read=is_end_read)

    def _settle(self, read: Mapping[Stream, int], *, is_end_read: bool) -> Iterator[Verdict]:
        while self.statements:
            first = self.statements[0]
            if not first.is_answered:
                yield from self._settle_open(first, is_end_read=is_end_read)
                return
            if first.last:
                is_read = all(read.get(span.stream, 0) >= span.last for span in first.last)
                yield from self._settle_told(first, is_read=is_read)
                if not is_read:
                    return
                self.gone.append(first)
            self.statements.popleft()
        if self.arrivals:
            self.has_strangers = True
            yield from self._none(len(self.arrivals), Reason.NO_STATEMENT)

    def _settle_open(self, first: Statement, *, is_end_read: bool) -> Iterator[Verdict]:
        """Attribute what there is while the first statement has no reply."""
        if first.is_lost and is_end_read:
            yield from self._settle_lost()
        elif first.doubt is not None and self.arrivals:
            if len(self.statements) > 1:
                self.doubt_all(first.doubt)  # they may be theirs
            yield from self._none(len(self.arrivals), first.doubt, first)

    def _settle_told(self, statement: Statement, *, is_read: bool) -> Iterator[Verdict]:
        """Attribute groups to a statement of which the last is known."""
        if statement.last[0].first:
            yield from self._settle_all_told(statement, is_read=is_read)
        else:
            yield from self._settle_last_told(statement, is_read=is_read)

    def _settle_last_told(self, statement: Statement, *, is_read: bool) -> Iterator[Verdict]:
        """Likewise of MariaDB: how many there are is seen in the log."""
        ((stream, _, number),) = statement.last
        points = [arrival.point for arrival in self.arrivals]
        last = Point(stream, number)
        if last in points:
            count = points.index(last) + 1
        elif statement.gone is not None and statement.gone.get(stream, 0) >= number:
            return
        elif is_read:
            # It was given to nobody before its statement was known, or is not of this lane. What
            # came behind it is of later statements; what came before it is not understood.
            count = next(
                (
                    place
                    for place, point in enumerate(points)
                    if point.stream == stream and point.number > number
                ),
                len(points),
            )
            if count:
                self.doubt_all(Reason.OTHER_COUNT)
        elif statement.doubt is None and len(points) < statement.count:
            return
        else:
            count = len(points)
            statement.doubt = statement.doubt or Reason.OTHER_COUNT  # the last one comes on top
        yield from self._give(statement, count)

    def _settle_all_told(self, statement: Statement, *, is_read: bool) -> Iterator[Verdict]:
        """Likewise of MySQL: the reply names them all."""
        spans = statement.last
        total = sum(last - first + 1 for _, first, last in spans)
        if total != statement.count:
            statement.doubt = statement.doubt or _wrong_count(statement)
        if len(spans) > 1 and statement.doubt is None:
            if not is_read:
                return  # which comes first is seen in the log
            streams = {span.stream: span for span in spans}
            if len(streams) < len(spans) or total != sum(
                streams[point.stream].first <= point.number <= streams[point.stream].last
                for point, _ in self.arrivals
                if point.stream in streams
            ):
                statement.doubt = Reason.OTHER_COUNT
        place = 0
        while self.arrivals:
            point = self.arrivals[0].point
            span = next((span for span in spans if span.stream == point.stream), None)
            if span is None or point.number < span.first:
                yield from self._none(1, Reason.NO_STATEMENT)
                continue
            if point.number > span.last:
                return
            if statement.doubt is not None:
                yield from self._none(1, statement.doubt)
                continue
            index = point.number - span.first if len(spans) == 1 else place
            yield Verdict(point, statement, index)
            del self.arrivals[0]
            place += 1

    def _settle_lost(self) -> Iterator[Verdict]:
        """Attribute what a session left that ended with a statement under way.

        All that it made is known by now. Where that is one group of one statement that foresaw one,
        and it was committed, the statement did what was foreseen.
        """
        first = self.statements[0]
        is_one = len(self.statements) == len(self.arrivals) == first.count == 1
        is_one &= not self.has_untold
        if first.doubt is None and is_one and self.arrivals[0].is_commit:
            yield Verdict(self.arrivals[0].point, first)
            del self.arrivals[0]
        else:
            yield from self._none(len(self.arrivals), first.doubt or Reason.LOST)
        self.gone.extend(self.statements)
        self.statements.clear()

    def _give(self, statement: Statement, count: int) -> Iterator[Verdict]:
        """Attribute the first groups to a statement, if they are as many as were foreseen."""
        if count != statement.count:
            statement.doubt = statement.doubt or _wrong_count(statement)
        if statement.doubt is not None:
            yield from self._none(count, statement.doubt, statement)
            return
        gone, self.arrivals = self.arrivals[:count], self.arrivals[count:]
        for index, arrival in enumerate(gone):
            yield Verdict(arrival.point, statement, index)

    def _none(
        self, count: int, reason: Reason, first: Statement | None = None
    ) -> Iterator[Verdict]:
        """Attribute the first groups to no statement, while one comes first that may have made them."""
        gone, self.arrivals = self.arrivals[:count], self.arrivals[count:]
        if first is not None:
            first.gone = (first.gone or {}) | dict(arrival.point for arrival in gone)
        for arrival in gone:
            yield Verdict(arrival.point, reason=reason)


def _wrong_count(statement: Statement) -> Reason:
    return Reason.OTHER_COUNT if statement.count else Reason.UNKNOWN


def point_of(gtid: AnyGtid) -> Point:
    """Of a group's GTID."""
    if isinstance(gtid, Gtid):
        return Point(str(gtid.domain_id), gtid.sequence)
    return Point(f"{gtid.source_id}:{gtid.tag}", gtid.sequence)


def spans_told(text: str) -> tuple[Span, ...]:
    """What a reply told: `last_gtid` of MariaDB, or a GTID set of MySQL.

    Raises:
        ValueError: If it is neither.
    """
    if ":" not in text:
        domain, _, sequence = text.split("-")
        # As `Span` with the same, in a third of the time.
        return (tuple.__new__(Span, (domain, 0, int(sequence))),)
    return tuple(
        Span(f"{run.source_id}:{run.tag}", first, last)
        for run in GtidSet.parse(text).runs
        for first, last in run.intervals
    )


def ends_of(position: Position) -> dict[Stream, int]:
    """The last number of each stream at a position."""
    if isinstance(position, GtidPosition):
        return {str(gtid.domain_id): gtid.sequence for gtid in position}
    assert isinstance(position, GtidSet), "there are two flavors"
    return {f"{run.source_id}:{run.tag}": run.intervals[-1][1] for run in position.runs}
