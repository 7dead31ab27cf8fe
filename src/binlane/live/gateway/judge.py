"""Interface through which the gateway has a session's statements judged before the source gets them.

The gateway knows packets, the judge knows statements. Before a command goes to the source its
statements are judged, all of one packet together; once the source has answered, the judge is told the reply
to each.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from binlane.errors import StatementError
from binlane.live.gateway.answers import Answer, RowsAnswer
from binlane.log.codec.packets.flags import ServerStatus
from binlane.log.codec.packets.results import ResultSet
from binlane.statements.sql.servers import Dialect


class ClientStatement(NamedTuple):
    """One statement that a client wants to have run.

    Attributes:
        text: SQL as the servers log it: without white space around it and without its `;`, but in
            a packet of several with the white space before its `;`; of a prepared statement with
            its values in the places of the `?`.
        is_prepared: True for a COM_STMT_EXECUTE or COM_STMT_BULK_EXECUTE.
        is_complete: True if the source runs this text, as one statement. If not, `text` is what was prepared,
            `?` and all, and its values cannot be told, empty if that is not known either; or it is a packet
            that may hold several statements.
        is_bulk: True for a COM_STMT_BULK_EXECUTE, for many rows of values, which is not complete. MariaDB
            refuses that with error 4033 where binlog_format is STATEMENT, and logs rows with MIXED (an INSERT
            or REPLACE as one statement, others one for each row of values).
    """

    text: str
    is_prepared: bool = False
    is_complete: bool = True
    is_bulk: bool = False


class TextReading(NamedTuple):
    """The way in which the source reads a session's statements.

    Attributes:
        dialect: SQL dialect of the statements; its flavor is told.
        character_set: Value of the session's variable `character_set_client`.
    """

    dialect: Dialect
    character_set: str


@dataclass(frozen=True, slots=True)
class Pass:
    """The verdict for a command that goes to the source as it came; the judge is told no reply."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """Does not go to the source; the client gets an error."""

    error: StatementError


@dataclass(frozen=True, slots=True)
class Give:
    """Does not go to the source; binlane answers by itself."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """The verdict for a command that goes to the source; the judge is told its replies.

    Attributes:
        before: Statements of binlane's own that go first, all in one write; their replies are kept
            from the client. The command goes once the last one has succeeded, which costs the time
            of one more way to the source. If one fails, the client gets its error, the command is
            not run, and `Judge.done` is called with no reply at all; those behind it have run.
        text: Text that the source runs in the command's place, as COM_QUERY; None for the command as it came.
            For a prepared statement it is given only where it gives no rows, since those come as text.
    """

    before: tuple[str, ...] = ()
    text: str | None = None


Verdict = Pass | Refuse | Give | RunVerdict
PASS: Final = Pass()
AS_IT_IS: Final = RunVerdict()
"""Goes to the source as it came, with nothing before it."""


OkFields = tuple[int, int, int, int, bytes, bytes, int]
"""An OK packet: affected rows, insert id, status, warnings, info and session state as of `OkPacket`, the
status as a number; and the offset of the status in the payload."""

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class StatementReply(NamedTuple):
    """The source's answer to one statement of a command; CALL and its like have several.

    Attributes:
        errno: The server's error number; 0 for none.
        message: Text of the error; empty for none.
        affected_rows: Number in the OK packet; 0 for a result set.
        insert_id: Number in the OK packet; 0 for a result set.
        status: Flags of `ServerStatus`, of the session afterwards; servers tell none with an error, so that
            the status is then the one before. The type is a number: the operators of flags take many times as
            long.
        warnings: Number of the statement's warnings.
        info: Info text in the OK packet, such as `Rows matched: 1  Changed: 0  Warnings: 0`.
        is_result_set: True if the reply had columns.
        tracked: System variables that the session tracker told, `last_gtid` among them, by name.
        gtids: GTIDs that the session tracker told (MySQL, OWN_GTID); empty for nothing.
        database: The default database if the session tracker told it; None for nothing.
    """

    errno: int = 0
    message: str = ""
    affected_rows: int = 0
    insert_id: int = 0
    status: int = int(ServerStatus.AUTOCOMMIT)
    warnings: int = 0
    info: str = ""
    is_result_set: bool = False
    tracked: Mapping[str, str] = _NOTHING
    gtids: str = ""
    database: str | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """Actions for the time once a command is answered.

    Attributes:
        warnings: Number that is added to the count of warnings in the client's last OK.
        then: Run before the client's next command is looked at; None for nothing. An error that it raises
            ends the session, but for a StatementError, behind which the judge knows less.
    """

    warnings: int = 0
    then: Callable[[], Awaitable[None]] | None = None


NOTHING_LEFT = Done()


class PlanPiece(NamedTuple):
    """The part of a statement in the plan of its transaction, as `passing_layout` describes pieces.

    Attributes:
        beginning: Beginning of the plan; empty for a statement that has nothing in plans.
        of_write: Rows and text of the write, without the pieces of a prepared statement's text.
    """

    beginning: bytes
    of_write: bytes


class SeenStatement(NamedTuple):
    """A statement that was followed, of which others like it may pass that are sent in the same place.

    Attributes:
        before: Place in which the session was before it.
        effect: Effect that all such statements have, for `Judge.repeat`; None for a read that leaves the
            session as it was, of which the judge is not told.
        needs_rows: True if the reply has to tell of changed rows, else other statements have another effect.
        tells_rows: True if the reply tells in words, too, how many rows were changed.
        turns: True if a transaction is open behind the statement, and was not before it, or the other way
            around.
        piece: Gives the piece that a statement has in the plans of transactions which this one ends, by the
            statement's effect; None where its plan has to be made by the judge. This statement is the last of
            them, with autocommit the only one. None for a statement that ends no transaction with a group.
    """

    before: object
    effect: object = None
    needs_rows: bool = False
    tells_rows: bool = False
    turns: bool = False
    piece: Callable[[object], PlanPiece | None] | None = None


class RepeatedStatement(NamedTuple):
    """A statement that has passed, and its effect.

    Attributes:
        text: Text of the statement, as in `ClientStatement`.
        effect: Effect of such statements, as in `SeenStatement`.
        insert_id: Insert id in the reply.
    """

    text: str
    effect: object
    insert_id: int = 0


class GroupMessages(Protocol):
    """Messages on groups, as `attribution_messages` has them, to the process that routes."""

    def fileno(self) -> int:
        """Give the file number of the connection."""
        ...

    def send_held(self) -> None:
        """Send what is held back."""
        ...

    def send_rest(self, messages: bytes) -> None:
        """Send the rest of what the kernel could not send."""
        ...


class UnseenEnds(NamedTuple):
    """A session outside of a transaction, whose transactions may begin and end without their judge.

    Attributes:
        messages: Takes the messages on its groups.
        thread_id: Thread of the session at the source.
        logged_thread_id: Thread with which its statements are logged.
        number: Number of its last statement.
        told: GTIDs that it was told last.
    """

    messages: GroupMessages
    thread_id: int
    logged_thread_id: int
    number: int
    told: str


class PassedEnds(NamedTuple):
    """Transactions that have passed as wholes, and of which all has been said.

    Attributes:
        number: Number of the statement that ended the last one.
        told: GTIDs that the reply to it told.
    """

    number: int
    told: str


class Unseen(NamedTuple):
    """Statements that may go to the source without their judge being asked.

    Attributes:
        is_plain: True if only executions pass that are like one that has passed, and texts without variables,
            comments and several statements that read or change rows or end transactions.
        terms: Terms that have to hold, the same for all sessions of a port; None for none.
        place: Place in which the session is. Only statements pass that are like others which were sent there
            and followed, in this session or another one; None where that does not matter.
        last: The last statement, if such may pass as it; None for none.
        ends: Terms on which whole transactions may pass; None for none.
    """

    is_plain: bool
    terms: Callable[[], bool] | None = None
    place: object = None
    last: SeenStatement | None = None
    ends: UnseenEnds | None = None


ALL_UNSEEN: Final = Unseen(is_plain=False)


class Judge(Protocol):
    """Judges the statements of one session; all of it is called in the event loop."""

    @property
    def reading(self) -> TextReading | None:
        """The way in which the source reads the next statement; None where `learn` has to find out."""
        ...

    @property
    def hides_gtids(self) -> bool:
        """True if the source tells GTIDs in the session's state that the client has not asked for."""
        ...

    @property
    def reads_long_texts(self) -> bool:
        """True if the texts of long statements are held for the judge, as far as they can be."""
        ...

    async def learn(self) -> None:
        """Find out `reading`, for a command that cannot be told without; the source may be asked.

        Where it is still None behind that, the command's statement is told as not complete.

        Raises:
            StatementError: To be told to the client.
            PeerError: If the source goes away.
        """
        ...

    async def reset(self) -> None:
        """Begin anew: COM_CHANGE_USER or COM_RESET_CONNECTION has reset the session, which may have another user.

        The client's commands wait meanwhile.

        Raises:
            BinlaneError: The session ends.
        """
        ...

    def judge(self, statements: Sequence[ClientStatement]) -> Verdict | None:
        """Give the verdict on a command, at once; None where that needs `judge_later`.

        The source owes the session nothing then, and nothing is asked of it.

        Args:
            statements: Statements of one packet, in order; one where it is no multi-statement. One may be
                nothing but comments, which gets a reply too. Empty if the source has no such prepared
                statement: the source says so itself.
        """
        ...

    async def judge_later(self, statements: Sequence[ClientStatement]) -> Verdict:
        """Give the verdict on a command; the source may be asked meanwhile.

        Raises:
            StatementError: To be told to the client.
            PeerError: If the source goes away.
        """
        ...

    async def shown(self, statement: str, result: ResultSet) -> RowsAnswer:
        """The rows of SHOW VARIABLES or SHOW STATUS with the values that the judge has otherwise.

        Args:
            statement: Text of the client's statement.
            result: Result set that the source gave.

        Raises:
            StatementError: If the client is to be told an error.
            PeerError: If the source goes away.
        """
        ...

    def unseen(self) -> Unseen | None:
        """Give the statements that may pass from now on without `judge`; None for none.

        Some of them may have passed by the time of the next call.
        """
        ...

    def repeat(
        self, statements: Sequence[RepeatedStatement], ended: PassedEnds | None = None
    ) -> None:
        """Take in statements that have passed since `unseen`, and were answered as it demands.

        Args:
            statements: Those with an effect, in order, behind the transactions that passed as wholes.
            ended: Those transactions; None for none.
        """
        ...

    def passed(self) -> None:
        """Note that statements have passed unseen, of which nothing more is told."""
        ...

    def go_on(self, text: str, effect: object = None) -> None:
        """Take over a statement that has passed as one of `unseen`; `done` follows.

        Args:
            text: Text of the statement; of one without an effect a text of others like it, or the text that was
                prepared.
            effect: Effect of such statements, as in `SeenStatement`.
        """
        ...

    def done(self, replies: Sequence[StatementReply]) -> Done:
        """Take the replies to the command that `judge` let run, once it is answered in full.

        Args:
            replies: In order; ends with an error where one of several statements failed. None at
                all where the command was not sent (`RunVerdict.before`).
        """
        ...

    def done_at_once(self, ok: OkFields) -> bool:
        """Take an OK packet that answers the command in full, if nothing is left to be done then.

        Args:
            ok: The packet, which is not the answer of a statement with rows.

        Returns:
            False, and nothing is done: `done` is to be called.
        """
        ...

    def local_data(self, data: bytes) -> None:
        """Take a part of a file that a client sends, for LOAD DATA LOCAL that `judge` let run.

        Args:
            data: Some bytes of it, in order; empty at its end.
        """
        ...

    def used(self, database: str) -> None:
        """Note a COM_INIT_DB that succeeded."""
        ...

    def stumbled(self) -> None:
        """Note that the judge raised a fault, in whichever call.

        What it knows of the session is not to be relied on any more; it does not raise here.
        """
        ...

    async def unjudged(self) -> Verdict:
        """Give the verdict on a command that the judge failed to judge, once `stumbled` was called.

        Raises:
            StatementError: To be told to the client.
            PeerError: If the source goes away.
        """
        ...

    async def ended(self) -> None:
        """Note that the session is over, whoever ended it; a command under way has no reply.

        Called once, after `start` was called.
        """
        ...


class PassingJudge:
    """The judge of a session that nobody judges: every statement goes to the source as it came."""

    reading = None
    hides_gtids = False
    reads_long_texts = False

    async def learn(self) -> None:
        """Do nothing: it never matters how statements are read."""

    async def reset(self) -> None:
        """Do nothing, like all that follows but `judge`, `judge_later`, `shown` and `unjudged`."""

    def judge(self, statements: Sequence[ClientStatement]) -> Verdict:
        """Let a command pass."""
        del statements
        return PASS

    async def judge_later(self, statements: Sequence[ClientStatement]) -> Verdict:
        """Same as in `Judge`: pass every command."""
        return self.judge(statements)

    async def shown(self, statement: str, result: ResultSet) -> RowsAnswer:
        """Give the source's rows as they are."""
        del statement
        return RowsAnswer(result.heads, result.rows)

    def unseen(self) -> Unseen:
        """Let all statements pass."""
        return ALL_UNSEEN

    def repeat(
        self, statements: Sequence[RepeatedStatement], ended: PassedEnds | None = None
    ) -> None:
        """Do nothing."""
        del statements, ended

    def passed(self) -> None:
        """Do nothing."""

    def go_on(self, text: str, effect: object = None) -> None:
        """Do nothing."""
        del text, effect

    def done(self, replies: Sequence[StatementReply]) -> Done:
        """Leave nothing to be done."""
        del replies
        return NOTHING_LEFT

    def done_at_once(self, ok: OkFields) -> bool:
        """Leave nothing to be done."""
        del ok
        return True

    def local_data(self, data: bytes) -> None:
        """Do nothing."""

    def used(self, database: str) -> None:
        """Do nothing."""

    def stumbled(self) -> None:
        """Do nothing."""

    async def unjudged(self) -> Verdict:
        """Same as in `Judge`: pass every command."""
        return PASS

    async def ended(self) -> None:
        """Do nothing."""


NOBODY: Final[Judge] = PassingJudge()
"""Judges a session where its handler names no judge: its statements are not read."""
