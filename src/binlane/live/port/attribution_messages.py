"""Messages of sessions on their statements, from one process to the one that routes.

The messages are the journal's records, in their form, so that they are written as they came. A session's
message is in the other process's hands before the statement is sent: no group is read before the messages on
its statement can be heard.
"""

from __future__ import annotations

import logging
import socket
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np

from binlane.live.port.attributions import Attributions
from binlane.live.port.group_numbers import ends_of
from binlane.live.port.journal import journal_records as records
from binlane.live.port.source_changes import HearingProcess
from binlane.positions import Position
from binlane.statements.session.group_plan import GroupPlan
from binlane.statements.session.plan_bytes import EncodedPlans, encode_plans

_FRAME: Final = records.FRAME
_READ_BYTES: Final = 256 << 10
_BUFFER_BYTES: Final = 4 << 20

logger = logging.getLogger(__name__)


class AttributionReceiver(Protocol):
    """Receiver of the sessions' messages; `Attributions` hears them at once."""

    def intend(
        self,
        thread_id: int,
        number: int,
        plans: Sequence[GroupPlan],
        *,
        is_split: bool = False,
        is_for_all: bool = False,
        is_outdated: bool = False,
    ) -> None:
        """Say which groups a statement will make, before it is sent; same as in `Attributions`."""
        ...

    def done(
        self,
        thread_id: int,
        number: int,
        last: str | None,
        plans: Sequence[GroupPlan] | None = None,
        *,
        is_bound: bool = False,
    ) -> None:
        """Say which groups a statement's reply told."""
        ...

    def lost(self, thread_id: int) -> None:
        """Say that a session ended with a statement under way."""
        ...

    def taken(self, thread_id: int, position: Position | None = None) -> None:
        """Say that a session is followed from now on."""
        ...

    def given(self, thread_id: int) -> None:
        """Say that a session ended."""
        ...

    def close(self) -> None:
        """Say nothing any more."""
        ...


class AttributionSender:
    """Sends the messages to another process.

    What replies told is sent with the next message, or once the present turn is over.

    Args:
        connection: To it; blocking, so that whoever is not heard waits.
        soon: Calls something once the present turn is over; None: each message is sent at once.
    """

    def __init__(
        self,
        connection: socket.socket,
        soon: Callable[[Callable[[], None]], object] | None = None,
    ) -> None:
        self._connection = connection
        self._soon = soon
        self._held: list[bytes] = []
        self._intended: dict[int, tuple[int, Sequence[GroupPlan]]] = {}
        widen(connection)

    def intend(
        self,
        thread_id: int,
        number: int,
        plans: Sequence[GroupPlan],
        *,
        is_split: bool = False,
        is_for_all: bool = False,
        is_outdated: bool = False,
    ) -> None:
        """Send the message of `AttributionReceiver.intend`.

        Raises:
            OSError: If the other process is gone, as in all methods here.
        """
        self._intended[thread_id] = number, plans
        bits = is_split * records.IS_SPLIT | is_for_all * records.IS_FOR_ALL
        bits |= is_outdated * records.IS_OUTDATED
        body = records.statement_body(thread_id, number, bits, "", encode_plans(plans))
        self._say(records.INTENT, body)

    def done(
        self,
        thread_id: int,
        number: int,
        last: str | None,
        plans: Sequence[GroupPlan] | None = None,
        *,
        is_bound: bool = False,
    ) -> None:
        """Send the message of `AttributionReceiver.done`."""
        is_known = bool(last) or plans is None or len(plans) > 0
        encoded = b""
        if isinstance(plans, EncodedPlans):
            encoded = plans.encoded
        elif plans is not None:
            is_same = is_known and self._intended.get(thread_id) == (number, plans)
            encoded = b"" if is_same else encode_plans(plans)
        bits = is_known * records.IS_KNOWN | is_bound * records.IS_BOUND
        body = records.statement_body(thread_id, number, bits, last or "", encoded)
        if self._soon is None:
            self._say(records.ANSWER, body)
            return
        if not self._held:
            self._soon(self.send_held)
        self._held.append(_FRAME.pack(len(body), records.ANSWER) + body)

    def lost(self, thread_id: int) -> None:
        """Send the message of `AttributionReceiver.lost`."""
        self._say(records.LOST, records.dump(thread_id))

    def taken(self, thread_id: int, position: Position | None = None) -> None:
        """Send the message of `AttributionReceiver.taken`."""
        start = {} if position is None else ends_of(position)
        self._say(records.TAKEN, records.dump((thread_id, 0, start)))

    def given(self, thread_id: int) -> None:
        """Send the message of `AttributionReceiver.given`."""
        self._intended.pop(thread_id, None)
        self._say(records.GIVEN, records.dump(thread_id))

    def changed(self) -> None:
        """Send that a session's statement may have changed objects, before its reply is told."""
        self._say(records.CHANGED, b"")

    def changes_heard(self, numbers: Sequence[int], *, has_lost: bool) -> None:
        """Send which changes of objects were heard of, as of `SourceChanges.heard`."""
        self._say(records.HEARD, records.dump((list(numbers), has_lost)))

    def fileno(self) -> int:
        """Give the file number of the connection, by which a kernel sends messages, too."""
        return self._connection.fileno()

    def send_rest(self, messages: bytes) -> None:
        """Send the rest of messages of which a part was sent by `fileno`."""
        self._connection.sendall(messages)

    def close(self) -> None:
        """Send no more messages; those that were sent are heard."""
        try:
            self.send_held()
        finally:
            self._connection.close()

    def _say(self, kind: int, body: bytes) -> None:
        held, message = self._held, _FRAME.pack(len(body), kind) + body
        if held:
            held.append(message)
            self.send_held()
        else:
            self._connection.sendall(message)

    def send_held(self) -> None:
        """Send what replies told."""
        if self._held:
            messages, self._held = b"".join(self._held), []
            self._connection.sendall(messages)


@dataclass(slots=True)
class _Speaker:
    """Another process.

    Attributes:
        hearer: It, as one who hears of changes of the source's objects.
        kept: Bytes of its messages that do not make a whole record yet.
        threads: Threads of its sessions that are followed.
        made: Numbers of changes of objects that its sessions have made, and that the others are not told yet.
    """

    hearer: HearingProcess
    kept: bytearray = field(default_factory=bytearray)
    threads: set[int] = field(default_factory=set)
    made: deque[int] = field(default_factory=deque)


class AttributionListener:
    """Hears the messages of the sessions of other processes, for an `Attributions`.

    Any thread may `hear`: the reader of groups does so before it says what it read, others when something
    comes.

    Args:
        attributions: Gets the messages that were heard.
    """

    def __init__(self, attributions: Attributions) -> None:
        self._attributions = attributions
        self._lock = attributions.saying
        self._speakers: dict[socket.socket, _Speaker] = {}

    def add(self, connection: socket.socket) -> None:
        """Hear another process from now on."""
        connection.setblocking(False)  # the standard library's
        widen(connection)
        with self._lock:
            self._speakers[connection] = _Speaker(self._attributions.changes.add())

    def remove(self, connection: socket.socket) -> frozenset[int]:
        """Hear the last messages of a process that is gone; give the threads of its sessions."""
        with self._lock:
            self._hear(connection)
            speaker = self._speakers.pop(connection)
            threads = frozenset(speaker.threads)
            for thread_id in threads:
                self._attributions.lost(thread_id)
                self._attributions.given(thread_id)
            self._attributions.changes.remove(speaker.hearer)
        connection.close()
        return threads

    def take_change(self, connection: socket.socket) -> int:
        """Give the number of the next change that a process has said to have made; 0 where it has said none."""
        with self._lock:
            if connection not in self._speakers:
                return 0
            self._hear(connection)
            made = self._speakers[connection].made
            return made.popleft() if made else 0

    def unheard(self, connection: socket.socket) -> list[int]:
        """Give the numbers of changes of which a process has not heard."""
        with self._lock:
            return list(self._speakers[connection].hearer.unheard)

    def close(self) -> None:
        """Hear no more messages, nor those that were sent and not heard."""
        with self._lock:
            for connection in self._speakers:
                connection.close()
            self._speakers.clear()

    def hear(self) -> None:
        """Take in all that was said up to now."""
        with self._lock:
            for connection in self._speakers:
                self._hear(connection)

    def _hear(self, connection: socket.socket) -> None:
        speaker = self._speakers[connection]
        while True:
            try:
                data = connection.recv(_READ_BYTES)
            except OSError:  # BlockingIOError is one: nothing more was said
                data = b""
            if not data:
                return
            self._take(speaker, data)
            if len(data) < _READ_BYTES:
                return  # that was all

    def _take(self, speaker: _Speaker, data: bytes) -> None:
        kept, self._attributions.changes.speaking = speaker.kept, speaker.hearer
        if kept:
            kept += data
            if len(kept) < _FRAME.size or len(kept) < _FRAME.size + _FRAME.unpack_from(kept)[0]:
                return
            data = bytes(kept)
            kept.clear()
        start, last = 0, len(data) - _FRAME.size
        by_kernel, said = self._attributions.by_kernel, None
        if by_kernel is not None:
            said = np.frombuffer(bytearray(data), np.uint8)
        while start <= last:
            if by_kernel is not None and said is not None:
                before, start = start, by_kernel.hear(data, said, start)
                if start > before:
                    continue
            length, kind = _FRAME.unpack_from(data, start)
            end = start + _FRAME.size + length
            if len(data) < end:
                break
            self._tell(speaker, kind, data[start:end])
            start = end
        kept += data[start:]

    def _tell(self, speaker: _Speaker, kind: int, message: bytes) -> None:
        attributions = self._attributions
        if kind == records.INTENT:
            self._tell_intent(message)
            return
        if kind == records.ANSWER:
            self._tell_answer(message)
            return
        body = message[_FRAME.size :]
        if kind == records.TAKEN:
            thread_id, _, start = records.load(body)
            speaker.threads.add(thread_id)
            attributions.taken_from(thread_id, start)
        elif kind == records.LOST:
            attributions.lost(records.load(body))
        elif kind == records.CHANGED:
            speaker.made.append(attributions.changes.made())
        elif kind == records.HEARD:
            numbers, has_lost = records.load(body)
            attributions.changes.heard(numbers, has_lost=has_lost)
        else:
            thread_id = records.load(body)
            speaker.threads.discard(thread_id)
            attributions.given(thread_id)

    def _tell_intent(self, message: bytes) -> None:
        intent = records.read_statement(message, _FRAME.size)
        thread_id, number, bits, _, count, encoded = intent
        plans = EncodedPlans(encoded, count or 0)
        self._attributions.intend(
            *(thread_id, number, plans),
            is_split=bool(bits & records.IS_SPLIT),
            is_for_all=bool(bits & records.IS_FOR_ALL),
            is_outdated=bool(bits & records.IS_OUTDATED),
        )

    def _tell_answer(self, message: bytes) -> None:
        attributions = self._attributions
        answer = records.read_statement(message, _FRAME.size)
        thread_id, number, bits, text, count, encoded = answer
        last, is_bound = text or None, bool(bits & records.IS_BOUND)
        try:
            plans = None if count is None else EncodedPlans(encoded, count)
            attributions.done(thread_id, number, last, plans, is_bound=is_bound)
        except ValueError as error:
            logger.warning("the GTID in a reply cannot be read: %s", error)
            attributions.done(thread_id, number, None, [])


def widen(connection: socket.socket) -> None:
    """Let much be said before anybody hears it."""
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        connection.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
