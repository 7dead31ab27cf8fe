"""Sessions whose bytes pass without being read: the terms, and the state that comes back (pure)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from binlane.live.gateway.judge import PassedEnds, UnseenEnds

Terms = Callable[[], bool]
"""True as long as statements of a port's sessions pass that would have to be judged otherwise."""


class KnownExecution(NamedTuple):
    """A prepared statement of which executions pass.

    Attributes:
        types: Types of its values, as the client tells them.
        number: Number of the statement among those of all sessions; below 0 for none.
    """

    types: bytes
    number: int = -1


class PassingStatements:
    """Prepared statements of a session of which executions pass with values of certain types.

    Attributes:
        changes: Changes that the kernel's table does not have yet, by the statements' ids: None for a statement
            that does not pass any more; the id 0 stands for all statements.
    """

    def __init__(self) -> None:
        self.changes: dict[int, KnownExecution | None] = {}
        self._known: dict[int, KnownExecution] = {}

    def find(self, statement_id: int) -> KnownExecution | None:
        """Give a statement that passes."""
        return self._known.get(statement_id)

    def add(self, statement_id: int, known: KnownExecution) -> None:
        """Let executions of a statement pass."""
        if self._known.get(statement_id) != known:
            self.changes[statement_id] = self._known[statement_id] = known

    def remove(self, statement_id: int) -> None:
        """Let executions of a statement pass no more."""
        if self._known.pop(statement_id, None) is not None:
            self.changes[statement_id] = None

    def clear(self) -> None:
        """Let no executions pass any more."""
        if self._known:
            self._known.clear()
            self.changes = {0: None}


class Passing(NamedTuple):
    """A session that the kernel may serve.

    Attributes:
        rules: Rules of the session, as in `passing_layout`.
        status: Flags of the session as its last reply told them.
        terms: Terms that have to hold, the same for all sessions of a port; None for none.
        statements: Prepared statements of the session of which executions pass; None for none.
        place: Place of the session, from which transitions lead; 0 for none.
        ends: Terms on which whole transactions may pass; None for none.
    """

    rules: int
    status: int
    terms: Terms | None = None
    statements: PassingStatements | None = None
    place: int = 0
    ends: UnseenEnds | None = None


class RecordedCommand(NamedTuple):
    """A command that has passed, and is to be followed.

    Attributes:
        place: Number of the session's place before it.
        number: Number of its statement among those of all sessions.
        insert_id: Insert id in its reply; 0 before that.
        payload: The command, with its first byte.
    """

    place: int
    number: int
    insert_id: int
    payload: bytes


class PassedSession(NamedTuple):
    """A session as the kernel gives it back.

    Attributes:
        commands: Number of commands that have passed without a record.
        run: Number of commands that were answered, and of which there are records.
        status: Flags of the session as its last reply told them.
        step: Place of the source's next packet, as in `passing_layout`.
        packets_left: Number of column definitions that are still to come.
        bytes_left: Number of bytes of the packet at hand that are still to come.
        is_continued: True if the packet at hand goes on in the next frame.
        execution: Id of the statement if the reply is one to COM_STMT_EXECUTE, -1 - n if it is one to the known
            text n; else 0.
        held: Head of a packet of the source, as far as it came.
        records: Commands that were answered, in order.
        under_way: The command that the reply is one to, if it is recorded.
        ended: Transactions that have passed as wholes before these; None for none.
    """

    commands: int
    run: int
    status: int
    step: int
    packets_left: int
    bytes_left: int
    is_continued: bool
    execution: int
    held: bytes
    records: tuple[RecordedCommand, ...] = ()
    under_way: RecordedCommand | None = None
    ended: PassedEnds | None = None
