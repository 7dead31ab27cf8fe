"""Messages of sessions on their statements, as a kernel has heard them: numbers and bytes, no objects yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from binlane.live.port.group_numbers import GroupSpan, StreamNumbers
from binlane.live.port.journal import journal_records as records
from binlane.live.port.journal.record_log import RecordPlace
from binlane.live.port.session_groups import SentStatement
from binlane.statements.session.plan_bytes import EncodedPlans

_KIND: Final = 0
_THREAD: Final = 1
_NUMBER: Final = 2
_END: Final = 6
"""Fields of a message, as of `MESSAGE_FIELDS`."""


class ReportedGroups(NamedTuple):
    """The groups that the reply to a statement told.

    Attributes:
        spans: Spans of the groups, as of `SessionGroups.answer`.
        plans: Plans of the groups, where they are others than those that were intended; else None.
        place: Position of these plans in the journal; None without one.
        is_known: Same meaning as in `SessionGroups.answer`.
        is_bound: Same meaning as in `SessionGroups.answer`.
    """

    spans: tuple[GroupSpan, ...]
    plans: EncodedPlans | None
    place: RecordPlace | None
    is_known: bool
    is_bound: bool


class HeardMessage(NamedTuple):
    """A message that a statement is about to be sent, or that its reply has told one group.

    Attributes:
        thread_id: Thread of the statement's session at the source.
        number: Number of the statement in its session.
        plans: Plans of the statement's groups; None in an answer if those that were intended hold.
        place: Place of the record in the journal.
        told: The group that the reply told; None where the statement is about to be sent.
    """

    thread_id: int
    number: int
    plans: EncodedPlans | None
    place: RecordPlace
    told: GroupSpan | None


class HeardMessages:
    """Messages that were heard together, one after another.

    Attributes:
        rows: The messages, a row of `MESSAGE_FIELDS` numbers each.
        data: Bytes that hold their plans.
        file: Number of the journal's file that holds them.
        offset: Offset in the file to which the places in `rows` are to be added.
        hearer: Process that said them, as of `SourceChanges`.
        heard: Number of the last change of the source's objects of which that process had heard all.
        last: Number of the last change that there was.
        numbers: Streams by the numbers in `rows`.
        threads: Threads of the sessions that said something, also of those whose messages are not here any more.
    """

    __slots__ = ("data", "file", "heard", "hearer", "last", "numbers", "offset", "rows", "threads")

    def __init__(
        self,
        rows: Any,
        data: bytes,
        place: Sequence[int],
        changes: tuple[object, int, int],
        numbers: StreamNumbers,
    ) -> None:
        """Keep what a kernel gave.

        Args:
            rows: The messages; an array that nobody else changes.
            data: Bytes that hold their plans.
            place: Both of `file` and `offset`.
            changes: `hearer`, `heard` and `last`, as of `SourceChanges.known`.
            numbers: Streams by the numbers in `rows`.
        """
        self.rows, self.numbers = rows, numbers
        self.data = data
        self.file, self.offset = place
        self.hearer, self.heard, self.last = changes
        self.threads: frozenset[int] = frozenset(rows[:, _THREAD].tolist())

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def end(self) -> int:
        """Place behind the last message."""
        return int(self.rows[-1, _END])

    def intended(self) -> set[int]:
        """The threads of the sessions that are about to send a statement."""
        return set(self.rows[self.rows[:, _KIND] == records.INTENT, _THREAD].tolist())

    def answered(self) -> set[int]:
        """The threads of the sessions of which a statement was answered."""
        return set(self.rows[self.rows[:, _KIND] == records.ANSWER, _THREAD].tolist())

    def numbers_of(self, thread_id: int) -> list[tuple[int, bool]]:
        """Give the numbers of one session's statements, each with True if it was answered, in order."""
        if thread_id not in self.threads:
            return []
        own = self.rows[self.rows[:, _THREAD] == thread_id]
        return [(number, kind == records.ANSWER) for kind, _, number, *_ in own.tolist()]

    def take_of(self, thread_id: int) -> HeardMessages | None:
        """Take out the messages of one session; None for none."""
        if thread_id not in self.threads:
            return None
        is_own = self.rows[:, _THREAD] == thread_id
        place, changes = (self.file, self.offset), (self.hearer, self.heard, self.last)
        own = HeardMessages(self.rows[is_own], self.data, place, changes, self.numbers)
        self.rows = self.rows[~is_own]
        return own

    def messages(self) -> Iterator[HeardMessage]:
        """Give the messages one by one."""
        file, offset, data = self.file, self.offset, self.data
        for row in self.rows.tolist():
            kind, thread_id, number, at, checksum, begin, end, count, domain, sequence = row
            place = tuple.__new__(RecordPlace, (file, offset + at, checksum))
            plans = None if count < 0 else EncodedPlans(data[begin:end], count)
            told = None
            if kind == records.ANSWER:
                told = self.numbers.told(domain, sequence)
            # As the class' own call, in a third of the time.
            yield tuple.__new__(HeardMessage, (thread_id, number, plans, place, told))

    def statement(self, message: HeardMessage) -> SentStatement:
        """Give the statement of a message that it is about to be sent."""
        plans = message.plans
        statement = SentStatement(
            message.number, 0 if plans is None else len(plans), plans, message.place
        )
        statement.hearer, statement.heard, statement.begun = self.hearer, self.heard, self.last
        return statement


News = tuple[int, SentStatement, ReportedGroups | None] | HeardMessages
"""A session's thread, and its statement: about to be sent, or answered; or what a kernel heard."""
