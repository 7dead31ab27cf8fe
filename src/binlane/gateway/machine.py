"""One session between a client and the source: bytes of both sides in, bytes for both sides out.

After the login most packets pass unread but for their first bytes. What stops is a question: a
statement that binlane may answer, a replica that registers, or a dump. While one is open, what the
client sends further on waits.

The statements of a session go to its judge. Where that is a real one, they are judged when the source
owes nothing; what the judge has let run is answered in full, and followed, before the next command is
looked at. What a judge does not say at once is a question too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import partial
from struct import Struct
from types import MappingProxyType
from typing import Final, TypeVar

from binlane.codec.format import flavor_of
from binlane.codec.packets.commands import (
    BinlogDump,
    BinlogDumpGtid,
    ChangeUser,
    RegisterSlave,
    encode_query,
)
from binlane.codec.packets.execution import FLAGS_END, opens_cursor
from binlane.codec.packets.flags import Capability, Command
from binlane.codec.packets.framing import (
    FRAME_HEADER_LENGTH,
    FRAME_PAYLOAD_MAX,
    bytes_of,
    frame,
    frame_count,
    text_of,
)
from binlane.codec.packets.replies import ErrPacket, OkPacket, error_packet, is_error, is_ok
from binlane.codec.packets.results import Cell, ColumnDefinition, ResultSet
from binlane.codec.types import Flavor
from binlane.errors import CodecError, StatementError
from binlane.gateway.answers import OkAnswer, RowsAnswer, RowsInParts
from binlane.gateway.authentication import clear_password_refusal
from binlane.gateway.client_frames import ClientFrames, NextBytes
from binlane.gateway.client_statements import (
    LONG_DATA_HEAD,
    ClientCommand,
    ClientStatements,
    Uncut,
    Unwritten,
)
from binlane.gateway.command_rules import (
    JUDGED,
    JUDGED_COMMANDS,
    QUESTIONS,
    RESETTING_COMMANDS,
    TEXT_COMMANDS,
    UNJUDGED,
    UNJUDGED_WITH_LOGINS,
    CommandRules,
    check_beginning,
)
from binlane.gateway.counts import PortCounts
from binlane.gateway.diagnostics import OwnDiagnostics
from binlane.gateway.handler import SessionAge
from binlane.gateway.judge import (
    AS_IT_IS,
    NOBODY,
    NOTHING_LEFT,
    PASS,
    ClientStatement,
    Done,
    Give,
    Judge,
    Pass,
    Refuse,
    Reply,
    Run,
    Verdict,
)
from binlane.gateway.login import Login, LoginPhase, LoginRules
from binlane.gateway.own_replies import OwnExchange, OwnReplies
from binlane.gateway.phase import TRANSITIONS, Phase, PhaseEvent
from binlane.gateway.questions import (
    Cutting,
    Entering,
    Following,
    Judging,
    Learning,
    Question,
    Starting,
    Statement,
)
from binlane.gateway.replica_statements import INSPECTED_MAX, may_concern_binlogs
from binlane.gateway.reply_follower import (
    JUDGED_QUERY,
    QUERY_THAT_PASSES,
    ReplyFollower,
    Role,
    Watcher,
)
from binlane.gateway.user_change import UserChange

# A frame's header and the first byte behind it; of a frame numbered 0 its length alone, and that.
_QUERY_HEAD: Final = Struct("<IB")
_QUERY: Final = int(Command.QUERY)
_COMMANDS_AT_ONCE: Final = 64
"""Of one client, before others get on: it may send as many as it likes in one packet of the network."""
_MALFORMED_ERRNO: Final = 1835
_FORGETTING_COMMANDS: Final = JUDGED_COMMANDS | {Command.INIT_DB}
"""Commands behind which the source has other warnings."""
_PLAIN: Final = LoginRules()
_Q = TypeVar("_Q")


Statements = tuple[ClientStatement, ...] | Uncut | Unwritten | None
"""The statements of a command, as of `ClientStatements.of`."""


class TlsSide(Enum):
    """Which connection is to go on inside of TLS."""

    CLIENT = "client"
    SOURCE = "source"


class Pause(Enum):
    """Why no further command of the client is read."""

    NEEDS_BYTES = "the client has sent no whole command"
    WAITS = "its next command waits for the source"
    TURN = "other clients have their turn"


_TLS_SIDES: Final = MappingProxyType(
    {LoginPhase.CLIENT_TLS: TlsSide.CLIENT, LoginPhase.SOURCE_TLS: TlsSide.SOURCE}
)
_DEAF: Final = frozenset({Phase.ASKING, Phase.DUMPING, Phase.CLOSED})
"""Phases in which nothing of the client is read."""
# Members of enumerations are looked up anew each time that they are named.
_LOGGED_IN: Final = LoginPhase.DONE
_COMMAND: Final = NextBytes.COMMAND
_CONTINUATION: Final = NextBytes.CONTINUATION
_DECIDED: Final = NextBytes.DECIDED
_REST: Final = NextBytes.REST
_NEEDS_BYTES: Final = Pause.NEEDS_BYTES
_TURN: Final = Pause.TURN
_WAITS: Final = Pause.WAITS
_CLOSED: Final = Phase.CLOSED
_DUMPING: Final = Phase.DUMPING
_LOGIN: Final = Phase.LOGIN
_PREPARING: Final = Phase.PREPARING
_READY: Final = Phase.READY
_RUNNING: Final = Phase.RUNNING
_JUDGED: Final = Role.JUDGED
_OWN: Final = Role.OWN
_PASSES: Final = Role.PASSES
_WATCHED: Final = Role.WATCHED
_SETTLED: Final = PhaseEvent.SETTLED
_COMMAND_SENT: Final = PhaseEvent.COMMAND_SENT
_BEHIND_COMMAND: Final = TRANSITIONS[Phase.READY][PhaseEvent.COMMAND_SENT]


class Relay:
    """The state of one session.

    Attributes:
        phase: Says who is waited for.
        question: Has to be answered before the client's next packet is read; None in any phase but
            ASKING and DUMPING.
        tls_side: The connection that is to go on inside of TLS, once what there is for it was sent;
            `begin_tls` says that it does.
        user: Account name, empty before the login.
        variables: User variables that bear on replication, by lower-case name.
        diagnostics: Given to SHOW WARNINGS where the source has none.
        replica: The COM_REGISTER_SLAVE that the client sent.
        find_judge: Called once when the client logs in: gives the judge of its statements, or None.
        judge: Judges the session's statements.
    """

    def __init__(self, rules: LoginRules = _PLAIN, *, counts: PortCounts | None = None) -> None:
        """Begin before the greeting.

        Args:
            rules: By what means client and source may be connected.
            counts: Of the port, to which its statements are added.
        """
        self._counts = PortCounts() if counts is None else counts
        self._login_rules = rules
        self._login = login = Login(rules, self._find_judge)
        self._frames = ClientFrames()
        self._to_client: list[bytes] = []
        self._to_source: list[bytes] = []
        self._own = OwnReplies(self._to_client, login.capabilities, login.extended)
        self._source = ReplyFollower(login.capabilities, login.extended)
        self._statements = ClientStatements(login.capabilities, UNJUDGED)
        self._change: UserChange | None = None
        self._exchange: OwnExchange | None = None
        self._prepared: ClientCommand | None = None
        self._follow_ups: deque[Entering | Starting | Following] = deque()
        self._pause = _NEEDS_BYTES
        self._logins = self._commands = 0
        self.phase = _LOGIN
        self.question: Question | None = None
        self.tls_side: TlsSide | None = None
        self.user = ""
        self.variables: dict[str, str | None] = {}
        self.diagnostics = OwnDiagnostics()
        self.replica: RegisterSlave | None = None
        self.find_judge: Callable[[], Judge | None] = lambda: None
        self.judge = NOBODY

    # What others may know -------------------------------------------------------------------------

    @property
    def age(self) -> SessionAge:
        """Grows with what the client has the source do."""
        return SessionAge(self._logins, self._commands)

    @property
    def thread_id(self) -> int:
        """The connection's id on the source."""
        return self._login.thread_id

    @property
    def server_version(self) -> str:
        """The source's, without the prefix for old replicas."""
        return self._login.server_version

    @property
    def capabilities(self) -> Capability:
        """What both sides have agreed on."""
        return self._login.capabilities

    @property
    def is_tls(self) -> bool:
        """Whether the client speaks TLS."""
        return self._login.privacy.of_client

    @property
    def results_charset(self) -> str:
        """The client's `character_set_results`; empty where that is not known."""
        return self._source.results_charset

    @property
    def is_judged(self) -> bool:
        """Whether the session's statements are read, and its judge is told what came of them."""
        return self.judge is not NOBODY

    @property
    def hides_gtids(self) -> bool:
        """Whether the source tells GTIDs in the session's state that the client has not asked for."""
        return self.judge.hides_gtids

    @property
    def is_refused(self) -> bool:
        """Whether the login was refused, by the source or here."""
        return self._login.phase is LoginPhase.REFUSED

    @property
    def is_logged_in(self) -> bool:
        """Whether the source has let the client in."""
        return self._login.phase is _LOGGED_IN

    @property
    def is_closed(self) -> bool:
        """Whether the session is over once what there is for the client has been sent."""
        return self.phase is _CLOSED

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way: no question, and no reply of the source."""
        return self.question is None and self._source.is_idle

    @property
    def is_followed(self) -> bool:
        """Whether a judge is still to be told what came of a command, or follows it."""
        if self._source.wants_local_data:
            return False  # the rest of the file will not come
        is_under_way = self.phase is _PREPARING or self.phase is _RUNNING
        return is_under_way or isinstance(self.question, Following)

    @property
    def has_more(self) -> bool:
        """Whether `read_on` has to be called, once others had their turn."""
        return self._pause is _TURN

    @property
    def is_waiting(self) -> bool:
        """Whether more of the client cannot be used now."""
        return self.question is not None or self._pause is not _NEEDS_BYTES

    @property
    def waiting_bytes(self) -> int:
        """Bytes of the client that wait for the answer to a question, or for a whole packet."""
        return len(self._frames.data)

    def count_fault(self) -> None:
        """Count a fault of binlane's own."""
        self._counts.faults += 1

    # Bytes in and out -----------------------------------------------------------------------------

    def take_to_client(self) -> bytes:
        """Take what the client is to be sent."""
        parts = self._to_client
        if len(parts) == 1:
            return parts.pop()
        data = b"".join(parts)
        parts.clear()
        return data

    def take_to_source(self) -> bytes:
        """Take what the source is to be sent."""
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
        if phase is _READY and not frames.data and frames.next is _COMMAND and self._reads(data):
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
        """Tell the client what is wrong with its packets, if it listens to that now; it is over."""
        if self.phase in _DEAF or not (self.phase is _LOGIN or self._source.is_idle):
            return  # the client reads a reply of the source
        number = self._login.next_number if self.phase is _LOGIN else 1
        refusal = StatementError(
            f"Malformed communication packet: {error.message}", errno=_MALFORMED_ERRNO
        )
        if number is not None:
            self._to_client.append(frame(error_packet(refusal), number))
            self._move(PhaseEvent.ENDED)

    def forget(self) -> None:
        """Let go of what both sides have sent: the session is over, whoever may still hold it."""
        self._frames.data.clear()
        self._to_client.clear()
        self._to_source.clear()
        self._exchange = self._prepared = self.question = None
        self._statements.prepared.clear()

    # The login ------------------------------------------------------------------------------------

    def farewell(self) -> bytes | None:
        """What the source is sent where the client goes before its login; None before it greets."""
        return self._login.farewell()

    def begin_tls(self) -> bytes:
        """The connection that `tls_side` names goes on inside of TLS.

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
        if self.is_judged:
            self._follow_ups.append(Starting(is_reset=False))
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
        """Go on where the session has begun, or what was to follow a command is done."""
        self._take(Starting, Following)
        self._settle()

    def hand_on(self, text: str | None = None) -> None:
        """Let the source answer the open statement, if its judge does.

        Args:
            text: What is to be run in its place; None for itself. Of one that is to be prepared it is
                prepared in its place, and binlane answers its executions.
        """
        question = self._take(Statement)
        self._commands += 1
        if not question.is_prepared:
            packet = question.packet if text is None else self._query_packet(text)
            self._take_command(ClientCommand(_QUERY, packet[FRAME_HEADER_LENGTH:], packet))
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
        """Go on where it is known how the source reads what the client says, if anybody knows."""
        command = self._take(Learning).command
        if command.number == Command.STMT_PREPARE:
            self._follow(command)
        elif self.judge.reading is not None:
            self._judge(self._find_statements(command.number, command.payload), *command)
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
        self._note_rows(self._take(Statement, Judging))
        self._read_commands()

    def answer(self, answer: OkAnswer | RowsAnswer) -> None:
        """Answer the open statement, or let the replica register."""
        question = self._take(Statement, RegisterSlave)
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
        self._forward(_QUERY, self._query_packet(statement))

    def take_reply(self) -> OkPacket | ErrPacket | ResultSet | None:
        """The reply to `ask`, once; None until it is whole."""
        exchange = self._exchange
        if exchange is None or exchange.reply is None:
            return None
        self._exchange = None
        return exchange.reply

    def _note_rows(self, question: object) -> None:
        if isinstance(question, Statement):
            self.diagnostics.give_rows(question.text, self._flavor)

    # Phases ---------------------------------------------------------------------------------------

    def _move(self, event: PhaseEvent) -> None:
        self.phase = TRANSITIONS[self.phase][event]

    def _ask(self, question: Question) -> None:
        self.question = question
        is_dump = isinstance(question, BinlogDump | BinlogDumpGtid)
        self._move(PhaseEvent.DUMP_ASKED if is_dump else PhaseEvent.ASKED)

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
        """The source owes nothing: go on with what waits for that."""
        if self.phase is not _READY:
            self._move(_SETTLED)
        if self._follow_ups and self.phase is _READY:
            self._ask(self._follow_ups.popleft())
        if self._frames.data:
            self._read_commands()

    # The client's commands ------------------------------------------------------------------------

    def _read_commands(self) -> None:
        """Read the client's frames until one has to wait."""
        frames, count = self._frames, 0
        self._pause = _NEEDS_BYTES
        while frames.data and self.phase not in _DEAF:
            if frames.next is _REST:
                self._pass_on()
                continue
            if len(frames.data) < FRAME_HEADER_LENGTH:
                return
            count += 1
            if count > _COMMANDS_AT_ONCE:
                self._pause = _TURN
                return
            length = frames.length
            if self._change is not None:
                answer = self._change.from_client(frames)
                if answer is None:
                    self._pause = _WAITS
                    return
                self._to_source.append(answer)
            elif self._passes_frame():
                self._begin_to_pass(length)
            else:
                check_beginning(frames, length)
                if not self._read_command(length):
                    return

    def _passes_frame(self) -> bool:
        """Whether the client's first frame is no command, or one of which the beginning was read."""
        frames, source = self._frames, self._source
        if source.wants_local_data or frames.next is not _COMMAND:
            return True
        # Of its answers the first is numbered 2; a packet numbered 0 is a command.
        return source.is_authenticating and bool(frames.number)

    def _begin_to_pass(self, length: int) -> None:
        frames, source = self._frames, self._source
        if source.wants_local_data:
            is_last = not length and frames.next is not _CONTINUATION
            is_judged = source.is_judged
            source.take_local_frame(frames.number, is_last=is_last)
            if is_last and is_judged:
                self.judge.local_data(b"")
        else:
            frames.check_number()
        frames.begin_to_pass(length)

    def _pass_on(self) -> None:
        part = self._frames.pass_on()
        self._to_source.append(part.to_source)
        self._to_client.append(part.to_client)
        if self._source.wants_local_data and self._source.is_judged:
            content = part.to_source[part.header :]
            if content:
                self.judge.local_data(content)

    def _reads(self, data: bytes) -> bool:
        """Read a COM_QUERY that came alone and in full, as nearly all do, without a copy of it.

        Args:
            data: What the client sent, with nothing before it that waits.

        Returns:
            False, and nothing is done, if it is something else, or more than its judge has to do
            with it.
        """
        length = len(data) - FRAME_HEADER_LENGTH
        if not 1 < length <= INSPECTED_MAX or _QUERY_HEAD.unpack_from(data) != (length, _QUERY):
            return False
        source, statements = self._source, self._statements
        if not source.is_idle or source.wants_local_data:
            return False
        if self.diagnostics.are_own or statements.has_attributes:
            return False
        query = data[FRAME_HEADER_LENGTH + 1 :]
        if may_concern_binlogs(query):
            return False
        self._commands += 1
        judge = self.judge
        found = () if judge is NOBODY else statements.of_query(query, judge)
        self._judge(found, _QUERY, data[FRAME_HEADER_LENGTH:], data)
        return True

    def _read_command(self, length: int) -> bool:
        """Read the command at the buffer's beginning; False if it has to wait."""
        frames, rules = self._frames, self._statements.rules
        if len(frames.data) <= FRAME_HEADER_LENGTH:
            return False
        number = frames.data[FRAME_HEADER_LENGTH]
        if self.phase is not _READY:
            return self._wait()
        is_too_long = length > rules.text_max and number in TEXT_COMMANDS
        if number not in rules.read or is_too_long:
            return self._pass_unread(number, length)
        if length == FRAME_PAYLOAD_MAX:
            is_held = number == _QUERY and self.judge.reads_long_texts and frames.has_whole_packet()
            if is_held is None:
                return False
            if not is_held:
                return self._read_large_command(number)
        found = frames.find_packet(length)
        if found is None:
            return False
        payload, end = found
        asks = self._asks(number, payload)
        if not self._source.is_idle and (
            asks or number in rules.lone or self._has_to_learn(number, payload)
        ):
            return self._wait()
        command = ClientCommand(number, payload, frames.take(end))
        if asks:
            self._open(command)
        else:
            self._commands += 1
            self._take_command(command)
        return True

    def _wait(self) -> bool:
        self._pause = _WAITS
        return False

    def _pass_unread(self, number: int, length: int) -> bool:
        """Let a command pass by its first bytes; False if they are not there."""
        head = self._frames.head(FLAGS_END)
        if number == Command.STMT_EXECUTE and len(head) < min(length, FLAGS_END):
            return False
        self._commands += 1
        if number in _FORGETTING_COMMANDS:
            self.diagnostics.forget()
        self._source.expect(number, opens_cursor=opens_cursor(head))
        self._begin_to_pass(length)
        return True

    def _read_large_command(self, number: int) -> bool:
        """Read a command of more than one frame before its text is known; False if it has to wait.

        Where the judge lets it run, it passes as it comes, and is never held as a whole.
        """
        statements = self._statements
        head = self._frames.head(LONG_DATA_HEAD)
        if len(head) < LONG_DATA_HEAD:
            return False
        if not self._source.is_idle:
            return self._wait()
        if number in JUDGED_COMMANDS:
            self._judge(statements.prepared.unread(number, head), number, head, b"")
            return True
        watcher = statements.follow_unread(number, head, self.judge, self._flavor)
        role = _PASSES if watcher is None else _WATCHED
        self._source.expect(number, role, watcher=watcher)
        self._begin_to_pass(FRAME_PAYLOAD_MAX)
        return True

    def _asks(self, number: int, payload: bytes) -> bool:
        """Whether a command is a question for those who know the binlogs, or about what they said."""
        if self._own_answer(number, payload) is not None:
            return True
        if number in TEXT_COMMANDS:
            text = self._statements.query(payload) if number == _QUERY else payload[1:]
            return len(payload) <= INSPECTED_MAX and may_concern_binlogs(text)
        if number == Command.STMT_EXECUTE:
            return self._statements.prepared.own(payload) is not None
        return number in QUESTIONS

    def _open(self, command: ClientCommand) -> None:
        """Answer a command, or have it answered."""
        number, payload, packet = command
        self._own.begin(is_binary=number == Command.STMT_EXECUTE)
        own = self._own_answer(number, payload)
        if own is not None:
            self._answer_own(own, number, payload)
        elif number == Command.BINLOG_DUMP:
            self._ask(BinlogDump.decode(payload))
        elif number == Command.REGISTER_SLAVE:
            self.replica = RegisterSlave.decode(payload)
            self._ask(self.replica)
        elif number == Command.BINLOG_DUMP_GTID:
            self._ask(BinlogDumpGtid.decode(payload))
        elif number == Command.STMT_PREPARE:
            self._ask(Statement(text_of(payload[1:]), packet, is_prepared=True))
        elif number == Command.STMT_EXECUTE:
            text = self._statements.prepared.own(payload) or ""
            self._ask(Statement(text, packet, is_executed=True))
        else:
            self._ask(Statement(text_of(self._statements.query(payload)), packet))

    def _own_answer(self, number: int, payload: bytes) -> RowsAnswer | str | None:
        """The answer to a statement about warnings that the source has not got; as of `diagnostics`."""
        if not self.diagnostics.are_own:
            return None
        statement = self._statements.text(number, payload)
        if not self.diagnostics.concern(statement):
            return None
        own = self.diagnostics.answer(text_of(statement), self._flavor)
        return own if number == _QUERY or isinstance(own, RowsAnswer) else None

    def _answer_own(self, answer: RowsAnswer | str, number: int, payload: bytes) -> None:
        """Give the answer that `_own_answer` has found."""
        if isinstance(answer, RowsAnswer):
            self._own.answer(answer, self._source.status)
            statement = text_of(self._statements.text(number, payload))
            self.diagnostics.give_rows(statement, self._flavor)
            return
        self._commands += 1
        packet = self._query_packet(answer)
        self._take_command(ClientCommand(_QUERY, packet[FRAME_HEADER_LENGTH:], packet))

    def _take_command(self, command: ClientCommand) -> None:
        """Take a command that is none of binlane's own."""
        number = command.number
        if number in JUDGED_COMMANDS:
            self._judge(self._find_statements(number, command.payload), *command)
        elif number in RESETTING_COMMANDS:
            self._reset(command)
        elif self._has_to_learn(number, command.payload):
            self._own.begin(frame_count(len(command.payload)))
            self._ask(Learning(command))
        else:
            self._follow(command)

    def _has_to_learn(self, number: int, payload: bytes) -> bool:
        return self.is_judged and self._statements.has_to_be_read(number, payload, self.judge)

    def _follow(self, command: ClientCommand) -> None:
        """Forward a command that says something of the statements to come."""
        if command.number == Command.INIT_DB:
            self.diagnostics.forget()
        watcher = None
        if self.is_judged:
            watcher = self._statements.follow(command, self.judge, self._flavor)
        self._forward(command.number, command.packet, watcher)

    # Changes of user ------------------------------------------------------------------------------

    @property
    def _reads_changes_of_user(self) -> bool:
        return self._login_rules.checks_account or not self._login.privacy.is_equal

    def _reset(self, command: ClientCommand) -> None:
        """Forward COM_CHANGE_USER or COM_RESET_CONNECTION, unless the user is refused here."""
        user: str | None = None
        self.diagnostics.forget()
        if command.number == Command.CHANGE_USER:
            self._logins += 1
            change = ChangeUser.decode(command.payload, self.capabilities)
            if self._login.privacy.exposes(change.plugin):
                self._own.begin()
                self._own.refuse(clear_password_refusal(change.plugin))
                self._move(PhaseEvent.ENDED)
                return
            user = change.user
            if self._reads_changes_of_user:
                number = command.packet[FRAME_HEADER_LENGTH - 1]
                authentication = self._login.new_authentication(change.plugin, number)
                self._change = UserChange(authentication)
                self._move(PhaseEvent.USER_CHANGE_SENT)
        self.variables.clear()
        self._forward(command.number, command.packet, partial(self._reset_answered, user))

    def _reset_answered(self, user: str | None, reply: bytes) -> None:
        if user is not None and not is_error(reply):
            self.user = user
        if self.is_judged:
            self._statements.prepared.clear()
            self._source.results_charset = ""
            self._follow_ups.append(Starting(is_reset=True))

    def _read_decision(self, change: UserChange, data: bytes) -> tuple[bytes, bool]:
        """Read what the source says to a change of user.

        Returns:
            What the client gets of it; and whether the source lets the user in, who is to be checked.
        """
        passed = change.from_source(data)
        self._to_source.append(passed.to_source)
        result = change.authentication.result
        if result is None:
            return passed.to_client, False
        self._login.scramble = change.authentication.scramble
        self._change = None
        self._move(PhaseEvent.USER_DECIDED)
        return passed.to_client, self._login_rules.checks_account and is_ok(result)

    # Judged commands ------------------------------------------------------------------------------

    def _find_statements(self, number: int, payload: bytes) -> Statements:
        if self.judge is not NOBODY:
            return self._statements.of(number, payload, self.judge)
        return self._statements.unread(number, payload) if self.diagnostics.are_own else ()

    def _judge(self, found: Statements, number: int, payload: bytes, packet: bytes) -> None:
        """Ask the judge of a command that runs statements, and do what it says.

        Args:
            found: The statements, as of `ClientStatements.of`.
            number: As of `ClientCommand`, like all others.
            payload: Likewise.
            packet: Likewise.
        """
        if isinstance(found, tuple):
            verdict = self.judge.judge(found)
            if number == _QUERY and packet and not self.diagnostics.are_own:
                if verdict is AS_IT_IS:
                    self._counts.verdicts[Run] += 1
                    self.phase = _BEHIND_COMMAND
                    self._source.expect_query(JUDGED_QUERY)
                    self._to_source.append(packet)
                    return
                if verdict is PASS:
                    self._counts.verdicts[Pass] += self.judge is not NOBODY
                    self._source.expect_query(QUERY_THAT_PASSES)
                    self._to_source.append(packet)
                    return
        command = ClientCommand(number, payload, packet)
        self._own.begin(frame_count(len(payload)), is_binary=number != _QUERY)
        if found is None:
            self._ask(Learning(command))
        elif not isinstance(found, tuple):
            self._ask(Cutting(found, command))
        elif verdict is None:
            self._ask(Judging(found, command))
        else:
            self._decide(verdict, found, command)

    def _decide(
        self, verdict: Verdict, statements: Sequence[ClientStatement], command: ClientCommand
    ) -> None:
        """Do what was said; a question is open behind it only if rows are to be sent in parts."""
        if self.is_judged:
            self._counts.judge(verdict)
        if isinstance(verdict, Give):
            self.diagnostics.forget()
        elif self.diagnostics.are_own and not isinstance(verdict, Refuse):
            text = statements[0].text if len(statements) == 1 else ""
            is_open = self.diagnostics.runs(text, self._flavor)
            if is_open and isinstance(verdict, Pass):
                self.diagnostics.forget()  # nobody hears what comes of it
        if isinstance(verdict, Pass):
            self._send(command, _PASSES)
        elif isinstance(verdict, Run):
            self._run(verdict, command)
        elif isinstance(verdict, Refuse):
            if command.packet:
                self._own.refuse(verdict.error)
            else:
                self._frames.pass_command(error_packet(verdict.error))
            self.diagnostics.tell(verdict.error.listed)
        elif isinstance(verdict.answer, RowsInParts):
            self._ask(Judging(statements, command, verdict.answer))
        else:
            self._own.answer(verdict.answer, self._source.status)

    def _run(self, verdict: Run, command: ClientCommand) -> None:
        if verdict.text is not None:
            packet = self._query_packet(verdict.text)
            command = ClientCommand(_QUERY, packet[FRAME_HEADER_LENGTH:], packet)
        if not verdict.before:
            self._move(_COMMAND_SENT)
            self._send(command, _JUDGED)
            return
        self._prepared = command
        self._move(PhaseEvent.OWN_SENT)
        for statement in verdict.before:
            self._source.expect(_QUERY, _OWN)
            self._to_source.append(self._query_packet(statement))

    def _send(self, command: ClientCommand, role: Role) -> None:
        number, payload, packet = command
        self._source.expect(number, role, opens_cursor=opens_cursor(payload))
        if packet:
            self._to_source.append(packet)
        else:
            self._frames.pass_command()

    def answered(self, replies: list[Reply]) -> int:
        """Be told what came of a command; by how many its count of warnings grows."""
        self.diagnostics.ran(replies)
        done = self.judge.done(replies)
        return 0 if done is NOTHING_LEFT else self._take_done(done)

    def own_answered(self, reply: Reply, payload: bytes) -> None:
        """Be told what came of a statement of binlane's own, and its last packet."""
        if self.phase is not _PREPARING:
            return  # another one has failed before
        if reply.errno:
            self._prepared = None
            self._own.send([payload])
            self._move(PhaseEvent.OWN_FAILED)
            self._take_done(self.judge.done(()))
        elif not self._source.expects_more:
            command, self._prepared = self._prepared, None
            assert command is not None, "it waits for them"
            self._move(_COMMAND_SENT)
            self._send(command, _JUDGED)

    def _take_done(self, done: Done) -> int:
        if done.then is not None:
            self._follow_ups.append(Following(done.then))
        return done.warnings

    # For both sides -------------------------------------------------------------------------------

    @property
    def _flavor(self) -> Flavor:
        return flavor_of(self.server_version)

    def _query_packet(self, text: str) -> bytes:
        return frame(encode_query(text, self.capabilities), 0)

    def _forward(self, number: int, packet: bytes, watcher: Watcher | None = None) -> None:
        role = _PASSES if watcher is None else _WATCHED
        self._source.expect(number, role, watcher=watcher)
        self._to_source.append(packet)
