"""Changes of the source's objects, and which statements were judged before they were heard of.

The log tells of DDL once the source has done it. A statement that runs behind DDL may have been judged by a process
that had not heard of it yet; so the texts of its group may not be what a replica is to run. Each process says
when it has heard of a change, on the same way as what its statements make: all that it said before may have been
judged without it.

The module is pure but for a lock: the routing thread and those who hear sessions call it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final

from binlane.live.port.group_numbers import GroupNumber
from binlane.live.port.session_groups import SentStatement

_KEPT: Final = 1024
"""Changes of the log that are kept; statements that had not heard of older ones are taken for unaware of them."""


class HearingProcess:
    """A process that judges statements.

    Attributes:
        heard: Number of the last change before which it has heard of all, and of this one.
        unheard: Numbers of changes of which it has not heard.
        lost: Numbers of the last changes by which it lost what it knew of some object.
    """

    def __init__(self, heard: int) -> None:
        self.heard = heard
        self.unheard: set[int] = set()
        self.lost: deque[int] = deque(maxlen=_KEPT)


@dataclass(slots=True)
class NumberedChange:
    """A change that the log tells of.

    Attributes:
        number: Number of the change, from 1.
        point: Group of the change; None where that is not known.
        maker: Statement of a session that has made the change; None while none is known.
    """

    number: int
    point: GroupNumber | None
    maker: SentStatement | None = None


class SourceChanges:
    """Numbers of the changes of the source's objects, and who has heard of them.

    Attributes:
        last: Number of the last change that there was.
        speaking: Process of whose sessions something is said now.

    Args:
        has_own: True if this process judges statements.
    """

    def __init__(self, *, has_own: bool = True) -> None:
        self.last = 0
        self.speaking = HearingProcess(0)
        self._lock = Lock()
        self._hearers = [self.speaking] if has_own else []
        self._logged: deque[NumberedChange] = deque()
        self._by_point: dict[GroupNumber, NumberedChange] = {}
        self._first_kept = 1
        # The last changes up to which all were known behind the last statements of sessions.
        self._before: dict[int, int] = {}

    def add(self) -> HearingProcess:
        """Give a process that is new: it asks for all that it is to know."""
        with self._lock:
            hearer = HearingProcess(self.last)
            self._hearers.append(hearer)
        return hearer

    def remove(self, hearer: HearingProcess) -> None:
        """Wait for nothing more from a process that is gone."""
        with self._lock:
            self._hearers.remove(hearer)

    def logged(self, points: Sequence[GroupNumber | None]) -> range:
        """Give the numbers of changes that the log tells of, in order; no process has heard of them yet."""
        with self._lock:
            first = self.last + 1
            for point in points:
                if len(self._logged) == _KEPT:
                    oldest = self._logged.popleft()
                    self._first_kept = oldest.number + 1
                    if oldest.point is not None:
                        self._by_point.pop(oldest.point, None)
                change = NumberedChange(self._new(), point)
                self._logged.append(change)
                if point is not None:
                    self._by_point[point] = change
            return range(first, self.last + 1)

    def made(self) -> int:
        """Give the number of a change that a session of the speaking process has made: it knows of that."""
        with self._lock:
            maker = self.speaking
            number = self._new()
            maker.lost.append(number)
            self._hear(maker, (number,))
            return number

    def _new(self) -> int:
        self.last += 1
        for hearer in self._hearers:
            hearer.unheard.add(self.last)
        return self.last

    def heard(self, numbers: Sequence[int], *, has_lost: bool) -> None:
        """The speaking process has heard of changes.

        Args:
            numbers: Numbers that `logged` or `made` gave.
            has_lost: True if it does not know some objects any more that it knew before.
        """
        with self._lock:
            if has_lost:
                self.speaking.lost.extend(numbers)
            self._hear(self.speaking, numbers)

    def _hear(self, hearer: HearingProcess, numbers: Sequence[int]) -> None:
        hearer.unheard.difference_update(numbers)
        hearer.heard = min(hearer.unheard) - 1 if hearer.unheard else self.last

    def note_taken(self, thread_id: int) -> None:
        """Note that a session is followed from now on."""
        self._before[thread_id] = self.speaking.heard

    def note_given(self, thread_id: int) -> None:
        """Note that a session is over."""
        self._before.pop(thread_id, None)

    @property
    def known(self) -> tuple[HearingProcess, int, int]:
        """The speaking process, the last change of which it has heard all, and the last one that there was."""
        speaking = self.speaking
        return speaking, speaking.heard, self.last

    def note_intended(self, threads: Iterable[int]) -> None:
        """Note that sessions of the speaking process are about to send statements."""
        heard = self.speaking.heard
        for thread_id in threads:
            self._before[thread_id] = heard

    def note_sent(
        self, thread_id: int, statement: SentStatement, *, is_outdated: bool = False
    ) -> None:
        """Note what is known to the speaking process as it sends a statement.

        Args:
            thread_id: Thread of the statement's session at the source.
            statement: The statement that is about to be sent.
            is_outdated: True if its transaction was judged before changes that were heard of since.
        """
        speaking = self.speaking
        statement.hearer, statement.heard, statement.begun = speaking, speaking.heard, self.last
        if is_outdated:
            statement.heard = statement.begun = self._before.get(thread_id, 0)
        self._before[thread_id] = speaking.heard

    def note_maker(self, point: GroupNumber, statement: SentStatement) -> None:
        """Note whose statement a group is, which may be one of a change."""
        change = self._by_point.get(point) if self._by_point else None
        if change is not None:
            change.maker = statement

    def may_have_missed(
        self,
        claimed: Callable[[GroupNumber], SentStatement | None],
        point: GroupNumber,
        statement: SentStatement,
    ) -> bool:
        """True if a statement may have been judged without a change that its group stands behind.

        A change itself is as it is in the log.

        Args:
            claimed: Gives the statement that has made a group, if only its reply says so yet.
            point: Group that the statement has made.
            statement: The statement, which its reply has answered, or not.
        """
        if statement.heard >= self.last or point in self._by_point:
            return False
        with self._lock:
            if statement.heard + 1 < self._first_kept:
                return True
            before = [one for one in self._logged if one.number > statement.heard]
            hearer = statement.hearer
            unheard = set(hearer.unheard) if isinstance(hearer, HearingProcess) else None
            lost = tuple(hearer.lost) if isinstance(hearer, HearingProcess) else ()
        lost_since = [number for number in lost if number > statement.heard]
        logged = {change.number for change in before}
        for change in before:
            if not _is_before(change.point, point):
                continue
            if change.maker is None and change.point is not None:
                change.maker = claimed(change.point)
            if change.maker is not None and _knows(statement, change.maker):
                continue
            if unheard is None or change.number in unheard:
                return True
            # What a session has made has a number of its own, too, which may be the later one.
            if any(number <= change.number or number not in logged for number in lost_since):
                return True
        return False


def _knows(statement: SentStatement, maker: SentStatement) -> bool:
    """True if a statement was judged behind another one, which has changed objects, and with that change."""
    if maker.answered is None:
        return False
    is_of_same = maker.hearer is statement.hearer and maker.answered <= statement.begun
    return is_of_same or maker.answered <= statement.heard


def _is_before(change: GroupNumber | None, point: GroupNumber) -> bool:
    """True if a change may stand before a group in the log."""
    if change is None or change.stream != point.stream:
        return True
    return change.number < point.number
