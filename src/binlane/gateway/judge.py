"""What the gateway asks of whoever judges a session's statements before the source gets them.

The gateway knows packets, the judge knows statements. Before a command goes to the source its
statements are judged, all of one packet together; once the source has answered, the judge is told
what came of each.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from binlane.codec.packets.flags import ServerStatus
from binlane.errors import StatementError
from binlane.gateway.handler import Answer


@dataclass(frozen=True, slots=True)
class ClientStatement:
    """One statement that a client wants to have run.

    Attributes:
        text: SQL; of a prepared statement with its values in the places of the `?`, as the servers
            log it.
        is_prepared: It came as COM_STMT_EXECUTE.
    """

    text: str
    is_prepared: bool = False


@dataclass(frozen=True, slots=True)
class Pass:
    """Goes to the source as it came; the judge is not told what comes of it."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """Does not go to the source; the client gets an error."""

    error: StatementError


@dataclass(frozen=True, slots=True)
class Give:
    """Does not go to the source; binlane answers by itself."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class Run:
    """Goes to the source, and the judge is told what came of it.

    Attributes:
        before: Statements of binlane's own that go first, in the same write; their replies are
            kept from the client. If one fails, the client gets its error and nothing else is run.
        after: Likewise behind it, whatever came of it.
    """

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


Verdict = Pass | Refuse | Give | Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The source's answer to one statement of a command; CALL and its like have several.

    Attributes:
        errno: The server's error number; 0 for none.
        affected_rows: As the OK packet says; 0 for a result set.
        insert_id: Likewise.
        status: Of the session afterwards.
        warnings: How many there are.
        info: As the OK packet has it, such as `Rows matched: 1  Changed: 0  Warnings: 0`.
        is_result_set: It had columns.
        tracked: System variables that the session tracker told, `last_gtid` among them, by name.
        gtids: What it told of GTIDs (MySQL, OWN_GTID); empty for nothing.
        database: The default database if it told that; None for nothing.
    """

    errno: int = 0
    affected_rows: int = 0
    insert_id: int = 0
    status: ServerStatus = ServerStatus.AUTOCOMMIT
    warnings: int = 0
    info: str = ""
    is_result_set: bool = False
    tracked: Mapping[str, str] = field(default_factory=dict)
    gtids: str = ""
    database: str | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """What is to happen once a command is answered.

    Attributes:
        warnings: By how many the count of warnings grows that the client is told in its last OK.
        then: Run before the client's next command is looked at; None for nothing.
    """

    warnings: int = 0
    then: Callable[[], Awaitable[None]] | None = None


NOTHING_LEFT = Done()


class Judge(Protocol):
    """Judges the statements of one session; all of it is called in the event loop."""

    async def start(self) -> None:
        """Prepare the session on the source: after its login, COM_CHANGE_USER and a reset.

        The client's commands wait meanwhile.

        Raises:
            PeerError: If the source goes away.
        """
        ...

    def judge(self, statements: Sequence[ClientStatement]) -> Verdict | None:
        """Say what becomes of a command, at once; None where that needs `judge_later`.

        Args:
            statements: Of one packet, in order; one where it is no multi-statement.
        """
        ...

    async def judge_later(self, statements: Sequence[ClientStatement]) -> Verdict:
        """Say what becomes of a command; the source may be asked meanwhile.

        Raises:
            StatementError: To be told to the client.
            PeerError: If the source goes away.
        """
        ...

    def done(self, replies: Sequence[Reply]) -> Done:
        """Be told what came of the command that `judge` let run, once it is answered in full.

        Args:
            replies: In order; ends with an error where one of several statements failed.
        """
        ...

    def used(self, database: str) -> None:
        """Be told of COM_INIT_DB that succeeded."""
        ...

    async def ended(self) -> None:
        """Be told that the session is over, whoever ended it; what was under way has no reply."""
        ...
