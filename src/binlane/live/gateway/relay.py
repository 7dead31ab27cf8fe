"""One session between a client and the source: bytes of both sides in, bytes for both sides out.

After the login most packets pass unread but for their first bytes. What stops is a question: a
statement that binlane may answer, a replica that registers, or a dump. While one is open, what the
client sends further on waits.

The statements of a session go to its judge. Where that is a real one, they are judged when the source
owes nothing; what the judge has let run is answered in full, and followed, before the next command is
looked at. What a judge does not say at once is a question too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Final, TypeVar

from binlane.errors import CodecError, StatementError
from binlane.live.gateway.answers import OkAnswer, RowsAnswer
from binlane.live.gateway.client_frames import NextBytes
from binlane.live.gateway.client_statements import (
    QUERY,
    ClientCommand,
    ClientStatements,
)
from binlane.live.gateway.command_reader import (
    COMMAND,
    NEEDS_BYTES,
    READY,
    TURN,
)
from binlane.live.gateway.command_rules import (
    JUDGED,
    UNJUDGED,
    UNJUDGED_WITH_LOGINS,
    CommandRules,
)
from binlane.live.gateway.handler import SessionAge
from binlane.live.gateway.judge import (
    NOBODY,
    ClientStatement,
    Judge,
    Verdict,
)
from binlane.live.gateway.judged_commands import BEFORE_LOGIN
from binlane.live.gateway.login import Login, LoginPhase, LoginRules, by_nobody
from binlane.live.gateway.own_replies import OwnExchange, OwnReplies
from binlane.live.gateway.passing_commands import PassingCommands
from binlane.live.gateway.phase import DEAF, Phase, PhaseEvent
from binlane.live.gateway.port_counts import PortCounts
from binlane.live.gateway.relay_questions import (
    Cutting,
    Entering,
    Following,
    Judging,
    Learning,
    Resetting,
    StatementQuestion,
)
from binlane.live.gateway.reply_follower import ReplyFollower
from binlane.log.codec.packets.commands import (
    BinlogDump,
    BinlogDumpGtid,
    RegisterSlave,
)
from binlane.log.codec.packets.flags import Command
from binlane.log.codec.packets.framing import (
    FRAME_HEADER_LENGTH,
    bytes_of,
    frame,
)
from binlane.log.codec.packets.replies import ErrPacket, OkPacket, error_packet
from binlane.log.codec.packets.results import Cell, ColumnDefinition, ResultSet

_MALFORMED_ERRNO: Final = 1835
_PLAIN: Final = LoginRules()
_Q = TypeVar("_Q")


class TlsSide(Enum):
    """A connection that is to go on inside of TLS."""

    CLIENT = "client"
    SOURCE = "source"


_TLS_SIDES: Final = MappingProxyType(
    {LoginPhase.CLIENT_TLS: TlsSide.CLIENT, LoginPhase.SOURCE_TLS: TlsSide.SOURCE}
)
# Members of enumerations are looked up anew each time that they are named.
_LOGGED_IN: Final = LoginPhase.DONE
_DECIDED: Final = NextBytes.DECIDED
_CLOSED: Final = Phase.CLOSED
_DUMPING: Final = Phase.DUMPING
_LOGIN: Final = Phase.LOGIN
_PREPARING: Final = Phase.PREPARING
_RUNNING: Final = Phase.RUNNING
_SETTLED: Final = PhaseEvent.SETTLED


class Relay(PassingCommands):
    """The state of one session.

    Attributes:
        tls_side: The connection that is to go on inside of TLS, once what there is for it was sent;
            `begin_tls` says that it does.
        find_judge: Called once when the client logs in: gives the judge of its statements, or None.
    """

    def __init__(self, rules: LoginRules = _PLAIN, *, counts: PortCounts | None = None) -> None:
        """Begin before the greeting.

        Args:
            rules: Conditions for the connections of client and source.
            counts: Counts of the port, to which the session's statements are added.
        """
        counts = PortCounts() if counts is None else counts
        super().__init__(Login(rules, self._find_judge), rules, counts)
        self._exchange: OwnExchange | None = None
        self.tls_side: TlsSide | None = None
        self.find_judge: Callable[[], Judge | None] = lambda: None

    @property
    def age(self) -> SessionAge:
        """Counts that grow with each command that the client has the source run."""
        return SessionAge(self._logins, self._commands)

    @property
    def thread_id(self) -> int:
        """The connection's id on the source."""
        return self._login.thread_id

    @property
    def is_tls(self) -> bool:
        """True if the client speaks TLS."""
        return self._login.privacy.of_client

    @property
    def results_charset(self) -> str:
        """The client's `character_set_results`; empty where that is not known."""
        return self._source.results_charset

    @property
    def is_refused(self) -> bool:
        """True if the source or binlane has refused the login."""
        return self._login.phase is LoginPhase.REFUSED

    @property
    def is_logged_in(self) -> bool:
        """True once the source has let the client in."""
        return self._login.phase is _LOGGED_IN

    @property
    def is_closed(self) -> bool:
        """True if the session is over once the client has been sent the bytes that wait for it."""
        return self.phase is _CLOSED

    @property
    def is_idle(self) -> bool:
        """True while no question is open and the source owes no reply."""
        return self.question is None and self._source.is_idle

    @property
    def is_followed(self) -> bool:
        """True while the judge waits for the replies to a command, or follows it."""
        if self._source.wants_local_data:
            return False  # the rest of the file will not come
        is_under_way = self.phase is _PREPARING or self.phase is _RUNNING
        return is_under_way or isinstance(self.question, Following)

    @property
    def has_more(self) -> bool:
        """True if `read_on` has to be called once other clients had their turn."""
        return self._pause is TURN

    @property
    def is_waiting(self) -> bool:
        """True if no further bytes of the client can be used now."""
        return self.question is not None or self._pause is not NEEDS_BYTES

    @property
    def waiting_bytes(self) -> int:
        """Bytes of the client that wait for the answer to a question, or for a whole packet."""
        return len(self._frames.data)

    # Bytes in and out -----------------------------------------------------------------------------

    def count_fault(self) -> None:
        """Count a fault of binlane's own."""
        self._counts.faults += 1

    def take_to_client(self) -> bytes:
        """Take the bytes that the client is to be sent."""
        parts = self._to_client
        if len(parts) == 1:
            return parts.pop()
        data = b"".join(parts)
        parts.clear()
        return data

    def take_to_source(self) -> bytes:
        """Take the bytes that the source is to be sent."""
        parts = self._to_source
        if len(parts) == 1:
            return parts.pop()
        data = b"".join(parts)
        parts.clear()
        return data

    def from_source(self, data: bytes) -> None:
        """Take bytes of the source.

        Raises:
            CodecError: If they are not what the protocol has at their place.
        """
        if self._login.phase is not _LOGGED_IN:
            passed, to_source = self._login.from_source(data)
            self._to_source.append(to_source)
            self._after_login(passed)
            return
        is_let_in = False
        if self._change is not None:
            data, is_let_in = self._read_decision(self._change, data)
        source, exchange = self._source, self._exchange
        passed = source.feed(data)
        if exchange is not None and exchange.reply is None:
            exchange.feed(data)
        elif is_let_in:
            self._follow_ups.appendleft(Entering(passed))
        elif self.phase is not _DUMPING:
            # Behind a dump the source has only its own end to tell, in packets numbered otherwise.
            self._to_client.append(passed)
        if source.is_idle:
            self._settle()
        elif self._frames.next is _DECIDED:
            self._read_commands()  # what goes before a command has been answered

    def from_client(self, data: bytes) -> None:
        """Take bytes of the client.

        Raises:
            CodecError: If they are not what the protocol has at their place.
        """
        phase, frames = self.phase, self._frames
        if phase is READY and not frames.data and frames.next is COMMAND and self._reads(data):
            return
        if phase is _CLOSED or phase is _DUMPING:
            return  # nothing that a client may say now
        if phase is _LOGIN:
            passed, to_source = self._login.from_client(data)
            self._to_source.append(to_source)
            self._after_login(passed)
            return
        frames.data += data
        self._read_commands()

    def read_on(self) -> None:
        """Go on with commands that had to wait for others' turn.

        Raises:
            CodecError: As of `from_client`.
        """
        if self.has_more:
            self._read_commands()

    def protest(self, error: CodecError) -> None:
        """Tell the client the error in its packets, if it listens to that now; the session is over."""
        if self.phase in DEAF or not (self.phase is _LOGIN or self._source.is_idle):
            return  # the client reads a reply of the source
        number = self._login.next_number if self.phase is _LOGIN else 1
        refusal = StatementError(
            f"Malformed communication packet: {error.message}", errno=_MALFORMED_ERRNO
        )
        if number is not None:
            self._to_client.append(frame(error_packet(refusal), number))
            self._move(PhaseEvent.ENDED)

    def forget(self) -> None:
        """Let go of the bytes of both sides, and of the judge: the session is over, whoever may still hold it.

        What holds the session itself would leave it to the garbage collector.
        """
        self._frames.data.clear()
        self._to_client.clear()
        self._to_source.clear()
        self._exchange = self._prepared = self.question = None
        self._own, self._source, self._statements = BEFORE_LOGIN
        self._follow_ups.clear()
        self._login.is_judged = by_nobody
        self.judge = NOBODY

    # The login ------------------------------------------------------------------------------------

    def farewell(self) -> bytes | None:
        """Give the source's bytes if the client goes before its login; None before the greeting."""
        return self._login.farewell()

    def begin_tls(self) -> bytes:
        """Go on inside of TLS on the connection that `tls_side` names.

        Returns:
            What the client has sent of it already; of the source nothing.
        """
        if self.tls_side is TlsSide.CLIENT:
            begun = self._login.begin_tls()
        else:
            begun = b""
            self._to_source.append(self._login.begin_tls())
        self._after_login(b"")
        return begun

    def refuse_login(self, error: StatementError) -> None:
        """End a login that the source cannot be asked for; does nothing once it has decided."""
        if self._login.phase not in (_LOGGED_IN, LoginPhase.REFUSED):
            self._after_login(self._login.refuse(error))

    def _find_judge(self, user: str) -> bool:
        self.user = user
        self.judge = self.find_judge() or NOBODY
        return self.is_judged

    def _after_login(self, to_client: bytes) -> None:
        login = self._login
        self.tls_side = _TLS_SIDES.get(login.phase)
        if login.phase is LoginPhase.REFUSED:
            self._move(PhaseEvent.ENDED)
        if login.phase is not _LOGGED_IN:
            self._to_client.append(to_client)
            return
        self._move(PhaseEvent.LOGGED_IN)
        self.user = login.user
        self._frames.data += login.early
        self._own = OwnReplies(self._to_client, login.capabilities, login.extended)
        self._source = ReplyFollower(
            login.source_capabilities, login.extended, client=login.capabilities, listener=self
        )
        self._statements = ClientStatements(login.capabilities, self._command_rules())
        if self._login_rules.checks_account:
            self._follow_ups.append(Entering(to_client))
        else:
            self._to_client.append(to_client)
        self._settle()

    def _command_rules(self) -> CommandRules:
        if self.is_judged:
            return JUDGED
        return UNJUDGED_WITH_LOGINS if self._reads_changes_of_user else UNJUDGED

    # Answers to questions -------------------------------------------------------------------------

    def enter(self) -> None:
        """Let in the account that has logged in."""
        self._to_client.append(self._take(Entering).ok)
        self._settle()

    def turn_away(self, error: StatementError) -> None:
        """Keep out the account that has logged in: the session is over."""
        ok = self._take(Entering).ok
        self._to_client.append(frame(error_packet(error), ok[FRAME_HEADER_LENGTH - 1]))
        self._move(PhaseEvent.ENDED)

    def go_on(self) -> None:
        """Go on where the session was reset, or the work behind a command is done."""
        self._take(Resetting, Following)
        self._settle()

    def hand_on(self, text: str | None = None) -> None:
        """Let the source answer the open statement, if its judge does.

        Args:
            text: Text that is to be run in the statement's place; None for the statement itself. A text for a
                statement that is to be prepared is prepared in its place, and binlane answers its executions.
        """
        question = self._take(StatementQuestion)
        self._commands += 1
        if not question.is_prepared:
            packet = question.packet if text is None else self._query_packet(text)
            self._take_command(ClientCommand(QUERY, packet[FRAME_HEADER_LENGTH:], packet))
        elif text is None:
            packet = question.packet
            payload = packet[FRAME_HEADER_LENGTH:]
            self._take_command(ClientCommand(Command.STMT_PREPARE, payload, packet))
        else:
            packet = frame(bytes((Command.STMT_PREPARE,)) + bytes_of(text), 0)
            watcher = self._statements.prepares_own(question.text)
            self._forward(Command.STMT_PREPARE, packet, watcher)
        self._read_commands()

    def learned(self) -> None:
        """Go on where the source's reading of the client's texts is known, if anybody knows it."""
        learning = self._take(Learning)
        command, judge = learning.command, self.judge
        is_prepared = command.number == Command.STMT_PREPARE
        is_known = judge.reading is not None
        found = None
        if not is_prepared and (is_known or judge.unseen() is not None):
            found = self._find_statements(command.number, command.payload)
        if found is not None:
            self._judge(found, *command)
        elif not (is_known or learning.is_again) and judge.unseen() is not None:
            self._ask(Learning(command, is_again=True))
        elif is_prepared:
            self._follow(command)
        elif is_known:
            self._judge(None, *command)
        else:
            self._judge(self._statements.unread(command.number, command.payload), *command)
        self._read_commands()

    def cut(self, statements: tuple[ClientStatement, ...]) -> None:
        """Take the statements of a long command."""
        self._judge(statements, *self._take(Cutting).command)
        self._read_commands()

    def decide(self, verdict: Verdict) -> None:
        """Take the verdict on the command that is judged."""
        question = self._take(Judging)
        self._decide(verdict, question.statements, question.command)
        self._read_commands()

    def begin_rows(self, heads: Sequence[ColumnDefinition]) -> None:
        """Begin to answer the open statement with rows; `rows` and `end_rows` or `refuse` follow."""
        self._own.begin_rows(heads, self._source.status)

    def rows(self, rows: Iterable[Sequence[Cell]]) -> None:
        """Go on with rows."""
        self._own.rows(rows)

    def end_rows(self) -> None:
        """End the rows."""
        self._own.end_rows(self._source.status)
        self._note_rows(self._take(StatementQuestion, Judging))
        self._read_commands()

    def answer(self, answer: OkAnswer | RowsAnswer) -> None:
        """Answer the open statement, or let the replica register."""
        question = self._take(StatementQuestion, RegisterSlave)
        self._own.answer(answer, self._source.status)
        if isinstance(answer, OkAnswer) or answer.diagnostics:
            self.diagnostics.tell(answer.diagnostics)
        else:
            self._note_rows(question)
        self._read_commands()

    def refuse(self, error: StatementError) -> None:
        """Answer the open question with an error."""
        question = self.question
        assert question is not None, "nobody asks for that"
        self._close()
        self._counts.refuse(error, is_judged=isinstance(question, Judging))
        self._own.refuse(error)
        if isinstance(question, Judging | Learning | Cutting):
            self._note_unsent(question.command)
        self.diagnostics.tell(error.listed)
        if isinstance(question, BinlogDump | BinlogDumpGtid):
            self._frames.data.clear()
        self._read_commands()

    def end_dump(self, last_packet: bytes) -> None:
        """End the open dump.

        Args:
            last_packet: EOF or ERR, numbered behind the packets sent before.
        """
        self._take(BinlogDump, BinlogDumpGtid)
        self._to_client.append(last_packet)
        # One client says one byte less than it sends: that byte is no command.
        self._frames.data.clear()
        self._read_commands()

    def ask(self, statement: str) -> None:
        """Send a statement of binlane's own to the source, while a question is open."""
        assert self._source.is_idle, "questions open when the source owes nothing"
        self._exchange = OwnExchange(self._login.source_capabilities, self._login.extended)
        self._forward(QUERY, self._query_packet(statement))

    def take_reply(self) -> OkPacket | ErrPacket | ResultSet | None:
        """Take the reply to `ask`; None until it is whole."""
        exchange = self._exchange
        if exchange is None or exchange.reply is None:
            return None
        self._exchange = None
        return exchange.reply

    def _note_rows(self, question: object) -> None:
        if isinstance(question, StatementQuestion):
            self.diagnostics.give_rows(question.text, self._flavor)

    def _take(self, *kinds: type[_Q]) -> _Q:
        """Take the open question, which has to be of one of some kinds."""
        question = self.question
        assert isinstance(question, kinds), "nobody asks for that"
        self._close()
        return question

    def _close(self) -> None:
        self.question = None
        self._move(PhaseEvent.ANSWERED)

    def _settle(self) -> None:
        """Go on with the work that waits until the source owes nothing."""
        if self.phase is not READY:
            self._move(_SETTLED)
        if self._follow_ups and self.phase is READY:
            self._ask(self._follow_ups.popleft())
        if self._frames.data:
            self._read_commands()
