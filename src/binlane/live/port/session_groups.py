"""Attribution of one session's groups to its statements: the known facts, and what follows from them.

A session runs one statement after another; so its groups come in the order of its statements. Of each
statement the source tells its groups once it is answered: MySQL all of them, MariaDB the last one. All groups
of the session behind the last one of the statement before, up to that one, are of the statement: no others.
If these are as many as were foreseen, the groups are taken in the order of their plans; if not, nobody says
which is which, and none of them is planned.

Here are the groups that are known to be of the session: those in which the log names its thread, and those of
which it was told. The others are attributed by `attributions`.

The module is pure: no files, clocks or threads.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from operator import attrgetter
from typing import NamedTuple

from binlane.live.port.group_numbers import GroupNumber, GroupSpan, Stream, ends_of
from binlane.live.port.journal.record_log import RecordPlace
from binlane.positions import GtidSet
from binlane.statements.session.plan_bytes import EncodedPlans


class RowsReason(StrEnum):
    """The reason why a group is of no known statement."""

    STRANGER = "it did not come through the port"
    NO_STATEMENT = "no statement that was under way is known to have made it"
    OTHER_COUNT = "its statement made another number of groups than was foreseen"
    UNKNOWN = "what its statement would make was not known"
    NOT_ANSWERED = "its statement was not answered in time"
    LOST = "its session ended before its statement was answered"
    SEVERAL = "its statement made several groups, and the source does not tell which"
    MISSED = "a group of its session before it was not known to be of it"
    NOT_READ = "the source's log was not read where its statement began"
    APART = "the groups of its statement did not come together"
    FORGOTTEN = "nothing is known of it any more"
    PASSED = "the source gave it once more, behind later groups"
    CHANGED = "an object may have changed before it, and its session had not heard of that"
    NOT_WRITTEN = "the journal could not be written"
    CLOSED = "binlane ends"


class Unattributed(NamedTuple):
    """The finding on a group that is routed as rows.

    Attributes:
        reason: Reason why it has no plan.
        threads: The source's threads that may have made the group: texts of theirs may be missing from where
            they were to be. None: any thread may have made it.
    """

    reason: RowsReason
    threads: frozenset[int] | None = frozenset()


class Arrival(NamedTuple):
    """A group that was read and is not attributed yet.

    Attributes:
        is_commit: True if the group ends with XID: nothing of it was rolled back, and no error stopped it
            halfway.
        order: Place of the group among all that were read.
    """

    point: GroupNumber
    is_commit: bool
    order: int = 0


class Attribution(NamedTuple):
    """Result of a group's attribution.

    Attributes:
        statement: The statement that made the group; None if none is known.
        plan: Number of its plan among those of the statement, from 0.
        reason: Reason why the group has no plan; only without a statement.
    """

    point: GroupNumber
    statement: SentStatement | None = None
    plan: int = 0
    reason: RowsReason = RowsReason.NO_STATEMENT


class Wait(Enum):
    """The event that has to come before more can be said."""

    REPLY = "the statement's reply"
    READING = "more of the source's log"


class SentStatement:
    """A statement that was or is under way.

    Attributes:
        number: Number of the statement in its session.
        count: Number of groups that were foreseen.
        plans: Plans of the groups; None where they have to be read from the journal.
        place: Position of the plans in the journal; None without one.
        is_answered: True if the statement's reply came.
        is_lost: True if the reply will never come.
        last: Spans of the statement's groups, from its reply; empty for none.
        is_bound: True if `last` tells up to where its groups are, and not which they are.
        is_split: True if the statement's first group commits what was done before it, so that it comes for
            certain, and has not been looked for yet.
        is_for_all: True if the statement makes another thing for all binlogs than for the source, and its
            plans are not known before its reply.
        doubt: Reason why none of its groups is planned; None where they may be.
        gone: The last number in each stream of groups that were attributed to nobody while the statement was
            the first; None for no such groups.
        hearer: Process that judged the statement, as of `SourceChanges`; None for one that is gone.
        heard: Number of the last change of the source's objects up to which that process had heard of all.
        begun: Number of the last change that there was when the statement was sent.
        answered: The same when it was answered; None where it is not known what the statement makes.
    """

    # Most statements keep these.
    is_answered = False
    is_lost = False
    last: tuple[GroupSpan, ...] = ()
    is_bound = False
    is_split = False
    is_for_all = False
    doubt: RowsReason | None = None
    gone: dict[Stream, int] | None = None
    hearer: object = None
    heard = 0
    begun = 0
    answered: int | None = None

    def __init__(
        self,
        number: int,
        count: int,
        plans: EncodedPlans | None = None,
        place: RecordPlace | None = None,
    ) -> None:
        self.number = number
        self.count = count
        self.plans = plans
        self.place = place

    def told(self) -> Iterator[GroupNumber]:
        """The groups that the reply named."""
        for stream, first, last in () if self.is_bound else self.last:
            for number in range(first or last, last + 1):
                yield GroupNumber(stream, number)


@dataclass(slots=True, eq=False)
class SessionGroups:
    """State of one session, which is kept also once the session is over.

    Attributes:
        statements: Statements that may still have groups to come, in their order.
        unanswered: Statements that have no reply yet, by their numbers.
        several: Those of `statements` that were answered, and of which another number of groups than one is
            foreseen.
        arrivals: Groups that were read and not attributed, in the order of the log.
        told: The last number of each stream that belongs to no statement to come: the session was told of it,
            or `start` says it.
        is_taken: True if the session is there.
        has_untold: True if a statement was answered that does not tell whether it made groups.
        has_strangers: True if groups came while no statement was known that might have made them.
        is_missed: True if a group was told that had been taken for nobody's by then: texts that were to be in
            it are not there.
        start: The last number of each stream when following the session began: groups up to there are of
            nobody here.
        gone: Statements that can make no more groups, which the journal does not know yet.
        run: Number of times that the log was seen to go on behind a start of the source before the session.
    """

    statements: deque[SentStatement] = field(default_factory=deque)
    unanswered: dict[int, SentStatement] = field(default_factory=dict)
    several: set[SentStatement] = field(default_factory=set)
    arrivals: list[Arrival] = field(default_factory=list)
    told: dict[Stream, int] = field(init=False)
    is_taken: bool = False
    has_untold: bool = False
    has_strangers: bool = False
    is_missed: bool = False
    start: dict[Stream, int] = field(default_factory=dict)
    gone: list[SentStatement] = field(default_factory=list)
    run: int = 0

    def __post_init__(self) -> None:
        """Nothing was told yet."""
        self.told = self.start.copy()

    def is_usual(self, last_change: int) -> bool:
        """True if nothing is unusual about the session and its statements that are open, of one group each.

        Args:
            last_change: Number of the last change of the source's objects.
        """
        if self.arrivals or self.has_untold or self.is_missed:
            return False
        return all(
            one.count == 1
            and one.plans is not None
            and one.place is not None
            and one.doubt is None
            and one.heard >= last_change
            and not (one.is_lost or one.is_split or one.is_for_all or one.is_bound)
            and (
                not one.is_answered or [span.first in {0, span.last} for span in one.last] == [True]
            )
            for one in self.statements
        )

    def add(self, statement: SentStatement) -> None:
        """A statement is about to be sent, or was answered that was not known before."""
        if statement.is_answered and self.has_strangers:
            statement.doubt = statement.doubt or RowsReason.OTHER_COUNT
        if self.is_missed and statement.count:
            statement.doubt = statement.doubt or RowsReason.MISSED
            self.is_missed = False
        self.has_strangers = False
        self.statements.append(statement)
        if not statement.is_answered:
            self.unanswered[statement.number] = statement
        elif statement.count != 1:
            self.several.add(statement)

    def arrive(self, arrival: Arrival) -> None:
        """A group was read, or is known by now to be of the session."""
        arrivals = self.arrivals
        if arrivals and arrivals[-1].order > arrival.order:
            insort(arrivals, arrival, key=attrgetter("order"))
        else:
            arrivals.append(arrival)

    def give(self) -> None:
        """The session ended."""
        self.is_taken = False
        self.lose()

    def drop_old(self, number: int) -> None:
        """Let go of an unanswered older statement of a number that is said again."""
        old = self.unanswered.pop(number, None)
        if old is not None:
            old.is_lost = True
            self.statements.remove(old)

    def answer(
        self,
        statement: SentStatement,
        last: tuple[GroupSpan, ...],
        *,
        is_known: bool,
        is_bound: bool = False,
    ) -> None:
        """Take in the groups that the reply to a statement told.

        Args:
            statement: The answered one of `statements`.
            last: Told spans of groups; spans that were told before, or were there before the session, count
                as nothing.
            is_known: True if an empty `last` means no group; False if it means that nothing is known.
            is_bound: True if `last` tells up to where its groups are, and not which they are.
        """
        statement.is_answered, statement.is_bound = True, is_bound
        self.unanswered.pop(statement.number, None)
        if statement.count != 1:
            self.several.add(statement)
        elif self.several:
            self.several.discard(statement)
        told = self.told
        if len(last) == 1 and not self.has_untold:
            # The case of nearly all statements.
            stream, first, number = last[0]
            before = told.get(stream, 0)
            if number > before and (not first or first > before):
                statement.last = last
                told[stream] = number
                return
        new = [span for span in last if span.last > told.get(span.stream, 0)]
        if not new:
            self.has_untold |= not is_known
            return
        if self.has_untold and (is_bound or (statement.count > 1 and not new[0].first)):
            # One more group and one less give the same number.
            statement.doubt = statement.doubt or RowsReason.OTHER_COUNT
        self.has_untold = False
        statement.last = tuple(
            [
                span
                if not span.first or span.first > told.get(span.stream, 0)
                else span._replace(first=told.get(span.stream, 0) + 1)
                for span in new
            ]
        )
        for stream, _, number in new:
            told[stream] = max(number, told.get(stream, 0))

    def is_over(self, statement: SentStatement, read: Mapping[Stream, int]) -> bool:
        """True if all groups of a statement were attributed, in the order that they came in."""
        if not statement.is_answered:
            return False
        return not any(
            read.get(stream, 0) < last
            or any(
                arrival.point.stream == stream and (first or last) <= arrival.point.number <= last
                for arrival in self.arrivals
            )
            for stream, first, last in statement.last
        )

    def is_done_with(self, read: Mapping[Stream, int]) -> bool:
        """True if the session is over, and nothing more of it is to come."""
        is_told = any(read.get(stream, 0) < last for stream, last in self.told.items())
        return not (self.is_taken or self.arrivals or self.gone or is_told)

    def undecided(self) -> list[SentStatement]:
        """Give the statements that may have made a group of which their session was not told, in no order.

        All others were answered, and can have made no group but the one that they were told of, if any.
        """
        if not self.several:
            return list(self.unanswered.values())
        return [*self.unanswered.values(), *self.several]

    def told_before(self) -> Mapping[Stream, int]:
        """Give `told` as it was before the statements that are open."""
        before = self.told
        for one in self.statements:
            for stream, first, last in one.last:
                before = {**before, stream: min(before[stream], (first or last) - 1)}
        return before

    def end_first(self) -> SentStatement:
        """Let go of the first statement: it makes no more groups."""
        first = self.statements.popleft()
        if self.several:
            self.several.discard(first)
        return first

    def clear(self) -> None:
        """Let go of all statements and groups."""
        self.statements.clear()
        self.unanswered.clear()
        self.several.clear()
        self.arrivals.clear()
        self.told.clear()

    def lose(self) -> None:
        """Note that the session is gone; the statements under way get no reply."""
        for statement in self.unanswered.values():
            statement.is_lost = True

    @property
    def wait(self) -> Wait:
        """The event that has to come before the groups that arrived can be attributed."""
        assert self.statements, "there is one that they may be of"
        return Wait.READING if self.statements[0].is_answered else Wait.REPLY

    def doubt(self, reason: RowsReason) -> None:
        """Plan no group of the statement that comes first."""
        if self.statements:
            first = self.statements[0]
            first.doubt = first.doubt or reason

    def doubt_open(self, reason: RowsReason) -> None:
        """Plan no group of statements that have no reply."""
        for statement in self.unanswered.values():
            statement.doubt = statement.doubt or reason

    def doubt_all(self, reason: RowsReason) -> None:
        """Plan no group of any statement that is known."""
        for statement in self.statements:
            statement.doubt = statement.doubt or reason

    def settle(self, read: Mapping[Stream, int]) -> Iterator[Attribution]:
        """Attribute the groups that can be attributed.

        Args:
            read: Up to where each stream was read.
        """
        yield from self._settle_single()
        if self.arrivals or self.statements:
            yield from self._settle(read)

    def _settle_single(self) -> Iterator[Attribution]:
        """Attribute groups to statements of one group each, the case of nearly all, as far as these come first."""
        statements, several, count = self.statements, self.several, 0
        try:
            for point, _, _ in self.arrivals:
                if not statements:
                    return
                first = statements[0]
                if first.count != 1 or len(first.last) != 1 or first.doubt or first.is_bound:
                    return
                stream, begin, end = first.last[0]
                if point != (stream, end) or (begin and begin != end):
                    return
                self.gone.append(first)
                statements.popleft()  # as `end_first`
                several.discard(first)
                count += 1
                # As `Attribution(point, first)`, in a third of the time.
                yield tuple.__new__(Attribution, (point, first, 0, RowsReason.NO_STATEMENT))
        finally:
            del self.arrivals[:count]

    def _settle(self, read: Mapping[Stream, int]) -> Iterator[Attribution]:
        while self.statements:
            first = self.statements[0]
            if not first.is_answered:
                yield from self._settle_open(first)
                return
            if first.is_split:
                return
            if first.last:
                is_read = all(read.get(span.stream, 0) >= span.last for span in first.last)
                yield from self._settle_told(first, is_read=is_read)
                if not is_read:
                    return
                self.gone.append(first)
            self.end_first()
        if self.arrivals:
            self.has_strangers = True
            yield from self._none(len(self.arrivals), RowsReason.NO_STATEMENT)

    def _settle_open(self, first: SentStatement) -> Iterator[Attribution]:
        """Attribute the groups that are there while the first statement has no reply."""
        if not self.arrivals:
            return
        if first.is_lost:
            yield from self._settle_lost()
        elif first.doubt is not None:
            if len(self.statements) > 1:
                self.doubt_all(first.doubt)  # they may be theirs
            yield from self._none(len(self.arrivals), first.doubt, first)

    def _settle_told(self, statement: SentStatement, *, is_read: bool) -> Iterator[Attribution]:
        """Attribute groups to a statement of which something was told."""
        if statement.is_bound:
            if is_read:
                ends = {span.stream: span.last for span in statement.last}
                points = (arrival.point for arrival in self.arrivals)
                count = sum(point.number <= ends.get(point.stream, 0) for point in points)
                yield from self._give(statement, count)
            elif statement.doubt is not None:
                yield from self._none(len(self.arrivals), statement.doubt, statement)
        elif statement.last[0].first:
            yield from self._settle_all_told(statement, is_read=is_read)
        else:
            yield from self._settle_last_told(statement, is_read=is_read)

    def _settle_last_told(
        self, statement: SentStatement, *, is_read: bool
    ) -> Iterator[Attribution]:
        """Settle the groups of a MariaDB reply, which names the last: their number is seen in the log."""
        ((stream, _, number),) = statement.last
        points = [arrival.point for arrival in self.arrivals]
        last = GroupNumber(stream, number)
        if last in points:
            count = points.index(last) + 1
        elif statement.gone is not None and statement.gone.get(stream, 0) >= number:
            return
        elif is_read:
            # The group was given to nobody before its statement was known, or is not the session's.
            # Groups behind it are of later statements; groups before it are not understood.
            count = next(
                (
                    place
                    for place, point in enumerate(points)
                    if point.stream == stream and point.number > number
                ),
                len(points),
            )
            if count:
                self.doubt_all(RowsReason.OTHER_COUNT)
        elif statement.doubt is None and len(points) < statement.count:
            return
        else:
            count = len(points)
            statement.doubt = statement.doubt or RowsReason.OTHER_COUNT  # the last one comes on top
        yield from self._give(statement, count)

    def _settle_all_told(self, statement: SentStatement, *, is_read: bool) -> Iterator[Attribution]:
        """Settle the groups of a MySQL reply, which names them all."""
        spans = statement.last
        total = sum(last - first + 1 for _, first, last in spans)
        if total != statement.count:
            statement.doubt = statement.doubt or _wrong_count(statement)
        is_of_several = len({span.stream for span in spans}) > 1
        if is_of_several and statement.doubt is None:
            if not is_read:
                return  # which comes first is seen in the log
            if total != sum(_is_in(arrival.point, spans) for arrival in self.arrivals):
                statement.doubt = RowsReason.OTHER_COUNT
        own = [_is_in(arrival.point, spans) for arrival in self.arrivals]
        # Groups behind the last of them are of later statements.
        count = len(own) - own[::-1].index(True) if any(own) else 0
        place = 0
        for is_own in own[:count]:
            if not is_own or statement.doubt is not None:
                yield from self._none(1, statement.doubt or RowsReason.NO_STATEMENT)
                continue
            point = self.arrivals.pop(0).point
            yield Attribution(point, statement, place if is_of_several else _place_in(point, spans))
            place += 1

    def _settle_lost(self) -> Iterator[Attribution]:
        """Attribute the groups of a session that ended with a statement under way.

        Where that foresaw one group, the first that comes and was committed is that.
        """
        first, arrival = self.statements[0], self.arrivals[0]
        is_one = len(self.statements) == first.count == 1 and not self.has_untold
        if first.doubt is None and is_one and arrival.is_commit:
            yield Attribution(arrival.point, first)
            del self.arrivals[0]
        yield from self._none(len(self.arrivals), first.doubt or RowsReason.LOST)
        self.gone.extend(self.statements)
        self.statements.clear()
        self.unanswered.clear()
        self.several.clear()

    def _give(self, statement: SentStatement, count: int) -> Iterator[Attribution]:
        """Attribute the first groups to a statement, if they are as many as were foreseen."""
        if count != statement.count:
            statement.doubt = statement.doubt or _wrong_count(statement)
        if statement.doubt is not None:
            yield from self._none(count, statement.doubt, statement)
            return
        gone, self.arrivals = self.arrivals[:count], self.arrivals[count:]
        for index, arrival in enumerate(gone):
            yield Attribution(arrival.point, statement, index)

    def _none(
        self, count: int, reason: RowsReason, first: SentStatement | None = None
    ) -> Iterator[Attribution]:
        """Attribute the first groups to no statement, while one comes first that may have made them."""
        gone, self.arrivals = self.arrivals[:count], self.arrivals[count:]
        if first is not None:
            first.gone = (first.gone or {}) | {
                arrival.point.stream: arrival.point.number for arrival in gone
            }
        for arrival in gone:
            yield Attribution(arrival.point, reason=reason)


def _is_in(point: GroupNumber, spans: Sequence[GroupSpan]) -> bool:
    return any(
        span.stream == point.stream and span.first <= point.number <= span.last for span in spans
    )


def _place_in(point: GroupNumber, spans: Sequence[GroupSpan]) -> int:
    """Give a group's index among the groups of spans of one stream, from 0."""
    return sum(
        min(span.last, point.number - 1) - span.first + 1
        for span in spans
        if span.first < point.number
    )


def _wrong_count(statement: SentStatement) -> RowsReason:
    return RowsReason.OTHER_COUNT if statement.count else RowsReason.UNKNOWN


def told_of(text: str, *, is_bound: bool = False) -> tuple[GroupSpan, ...]:
    """Give the spans of groups that a text tells; none for an empty text.

    Args:
        text: `last_gtid` of MariaDB, or a GTID set of MySQL.
        is_bound: True if the set holds all groups up to where the statement's are.

    Raises:
        ValueError: If the text is neither.
    """
    if not text:
        return ()
    if is_bound:
        return tuple(
            GroupSpan(stream, 0, last) for stream, last in ends_of(GtidSet.parse(text)).items()
        )
    if ":" not in text:
        domain, _, sequence = text.split("-")
        # As `GroupSpan` with the same, in a third of the time.
        return (tuple.__new__(GroupSpan, (domain, 0, int(sequence))),)
    return tuple(
        GroupSpan(f"{run.source_id}:{run.tag}", first, last)
        for run in GtidSet.parse(text).runs
        for first, last in run.intervals
    )
