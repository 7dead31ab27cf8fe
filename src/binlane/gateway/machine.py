"""One session between a client and the source: bytes of both sides in, bytes for both sides out.

After the login, packets pass unread but for their first bytes. What stops is a question: a statement
that binlane may answer, a replica that registers, or a dump. While one is open, what the client sends
further on waits.

Where the session has a judge, its statements are read and judged when the source owes nothing; what a
judge has let run is answered in full, and followed, before the next command is looked at. What a judge
does not say at once is a question too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from struct import Struct
from types import MappingProxyType
from typing import Final, NamedTuple

from binlane.codec.buffer import Reader
from binlane.codec.format import flavor_of
from binlane.codec.packets.commands import (
    BinlogDump,
    BinlogDumpGtid,
    ChangeUser,
    RegisterSlave,
    decode_query,
    encode_query,
)
from binlane.codec.packets.execution import FLAGS_END, opens_cursor
from binlane.codec.packets.flags import Capability, Command
from binlane.codec.packets.framing import (
    FRAME_HEADER_LENGTH,
    FRAME_PAYLOAD_MAX,
    Packet,
    PacketSplitter,
    bytes_of,
    frame,
    frame_count,
    frames,
    text_of,
)
from binlane.codec.packets.replies import (
    ErrPacket,
    OkPacket,
    error_packet,
    is_error,
    is_ok,
)
from binlane.codec.packets.results import (
    Cell,
    ColumnDefinition,
    ReplyReader,
    ResultSet,
    encode_binary_row,
    encode_end_of_rows,
    encode_heads,
    encode_row,
)
from binlane.errors import CodecError, StatementError
from binlane.gateway.answers import OkAnswer, RowsAnswer, RowsInParts
from binlane.gateway.authentication import Authentication, clear_password_refusal
from binlane.gateway.client_statements import ClientStatements, Uncut, Unwritten, bare
from binlane.gateway.counts import PortCounts
from binlane.gateway.diagnostics import OwnDiagnostics
from binlane.gateway.handler import SessionAge
from binlane.gateway.judge import (
    AS_IT_IS,
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
from binlane.gateway.login import LOGIN_MAX, Login, LoginPhase, LoginRules
from binlane.gateway.replica_statements import INSPECTED_MAX, may_concern_binlogs
from binlane.gateway.reply_follower import (
    JUDGED_QUERY,
    QUERY_THAT_PASSES,
    ReplyFollower,
    Role,
    Watcher,
    wrong_number,
)

# Commands whose whole packet is looked at; of all others only the first byte.
_READ_COMMANDS: Final = frozenset(
    {
        Command.QUERY,
        Command.STMT_PREPARE,
        Command.CHANGE_USER,
        Command.RESET_CONNECTION,
        Command.REGISTER_SLAVE,
        Command.BINLOG_DUMP,
        Command.BINLOG_DUMP_GTID,
    }
)
# Those of them that may be of any length.
_TEXT_COMMANDS: Final = frozenset({Command.QUERY, Command.STMT_PREPARE})
# Commands that a judge is asked of.
_JUDGED_COMMANDS: Final = frozenset(
    {Command.QUERY, Command.STMT_EXECUTE, Command.STMT_BULK_EXECUTE}
)
# Commands whose whole packet is looked at where there is a judge.
_FOLLOWED_COMMANDS: Final = (
    _READ_COMMANDS
    | _JUDGED_COMMANDS
    | {
        Command.INIT_DB,
        Command.SET_OPTION,
        Command.STMT_PREPARE,
        Command.STMT_SEND_LONG_DATA,
        Command.STMT_CLOSE,
        Command.STMT_RESET,
    }
)
_RESETTING_COMMANDS: Final = frozenset({Command.CHANGE_USER, Command.RESET_CONNECTION})
_READ_BY_MODE: Final = frozenset(b'"\\[]{}^~')
"""Where these stand in a statement the sql_mode says what is a string."""
# Commands for which the source must owe nothing.
_LONE_COMMANDS: Final = _JUDGED_COMMANDS | _RESETTING_COMMANDS
# A frame's header and the first byte behind it; of a frame numbered 0 its length alone, and that.
_QUERY_HEAD: Final = Struct("<IB")
_QUERY: Final = int(Command.QUERY)
_PREPARED: Final = Struct("<BIHH")
_LONG_DATA: Final = Struct("<BIH")
_STATEMENT_ID: Final = Struct("<BI")
# All that a login holds, or a dump; a set of GTIDs may take as much as one frame.
_READ_MAX: Final = 1 << 18
_HELD_MAX: Final = 1 << 25
"""Bytes of a statement that is held as a whole, as its judge has to know it."""
_COMMANDS_AT_ONCE: Final = 64
"""Of one client, before others get on: it may send as many as it likes in one packet of the network."""
_MALFORMED_ERRNO: Final = 1835
# Several commands in one packet, of MariaDB 10.2 to 10.6: none of them would be looked at.
_MULTI: Final = 0xFE
_OPTION: Final = Struct("<BH")
_MULTI_STATEMENTS_ON: Final = 0


class ClientCommand(NamedTuple):
    """A command as the client sent it.

    Attributes:
        number: Its first byte.
        payload: All of it, with that byte.
        packet: Its frames.
    """

    number: int
    payload: bytes
    packet: bytes


@dataclass(frozen=True, slots=True)
class Entering:
    """A question: may the account that has just logged in be here?"""


@dataclass(frozen=True, slots=True)
class Starting:
    """A question: may the session begin?

    Attributes:
        is_reset: It was reset, and is not new.
    """

    is_reset: bool


@dataclass(frozen=True, slots=True)
class Learning:
    """A question: how does the source read what the client says?

    Attributes:
        command: That cannot be told without.
    """

    command: ClientCommand


@dataclass(frozen=True, slots=True)
class Cutting:
    """A question: which are the statements of a long command?

    Attributes:
        uncut: They.
        command: That holds them.
    """

    uncut: Uncut | Unwritten
    command: ClientCommand


@dataclass(frozen=True, slots=True)
class Judging:
    """A question: what becomes of a command?

    Attributes:
        statements: In it.
        command: It.
        answer: Whose rows are to be sent in parts; None if the verdict is not known yet.
    """

    statements: Sequence[ClientStatement]
    command: ClientCommand
    answer: RowsInParts | None = None


@dataclass(frozen=True, slots=True)
class Following:
    """A question: is done what was to follow a command?

    Attributes:
        then: Does it.
    """

    then: Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Statement:
    """A question: does binlane answer this statement?

    Attributes:
        text: SQL as the client sent it.
        packet: Its frame, for the source.
        is_prepared: It is to be prepared, and executed later.
        is_executed: It was prepared, and is executed now.
    """

    text: str
    packet: bytes
    is_prepared: bool = False
    is_executed: bool = False


Question = (
    Statement
    | RegisterSlave
    | BinlogDump
    | BinlogDumpGtid
    | Entering
    | Starting
    | Learning
    | Cutting
    | Judging
    | Following
)
"""What binlane is asked: to answer a statement, to let somebody in or register, to dump, to judge."""


class TlsSide(Enum):
    """Which connection is to go on inside of TLS."""

    CLIENT = "client"
    SOURCE = "source"


_TLS_SIDES: Final = MappingProxyType(
    {LoginPhase.CLIENT_TLS: TlsSide.CLIENT, LoginPhase.SOURCE_TLS: TlsSide.SOURCE}
)


_PLAIN: Final = LoginRules()
_DUMPS: Final = (BinlogDump, BinlogDumpGtid)
# Members of enumerations are looked up anew each time that they are named.
_DONE: Final = LoginPhase.DONE


class Relay:
    """The state of one session.

    Attributes:
        question: What has to be answered before the client's next packet is read.
        tls_side: Which connection is to go on inside of TLS, once what there is for it was sent;
            `begin_tls` says that it does.
        user: Account name, empty before the login.
        variables: User variables that bear on replication, by lower-case name.
        diagnostics: What SHOW WARNINGS tells where the source does not.
        replica: What COM_REGISTER_SLAVE said.
        has_more: Whether `read_on` has to be called, once others had their turn.
        find_judge: Called once when the client logs in: who judges its statements.
        judge: Whom that gave.
    """

    # CPython 3.11 is slow with objects of more than thirty attributes that have none.
    __slots__ = (
        *("_authentication", "_authentication_packets", "_befores_left"),
        *("_client_bytes", "_commands", "_continues", "_counts", "_followed"),
        *("_has_to_wait", "_header_left", "_heads", "_held", "_is_binary"),
        *("_is_closed", "_is_running", "_is_told", "_is_unknown", "_login", "_logins"),
        *("_next_number", "_next_start", "_passes_large", "_passing_bytes", "_pending"),
        *("_refusal", "_reply", "_reply_number", "_reply_packets", "_reply_reader", "_rules"),
        *("_statements", "_thens", "_to_client", "_to_source", "_tracker"),
        *("find_judge", "has_more", "judge", "question", "replica", "tls_side", "user"),
        *("diagnostics", "variables"),
    )

    def __init__(self, rules: LoginRules = _PLAIN, *, counts: PortCounts | None = None) -> None:
        """Begin before the greeting.

        Args:
            rules: By what means client and source may be connected.
            counts: Of the port, to which its statements are added.
        """
        self._counts = PortCounts() if counts is None else counts
        self._rules = rules
        self._login = Login(rules, self._is_judged)
        self.tls_side: TlsSide | None = None
        self._is_closed = False
        self._client_bytes = bytearray()
        self._passing_bytes = 0
        self._continues = False
        self._next_number = 0
        self._passes_large = False
        self._refusal: StatementError | None = None
        # Of a long statement that is to be there as a whole: why it is refused where it does not.
        self._tracker = ReplyFollower(self._login.capabilities, self._login.extended)
        self._to_client: list[bytes] = []
        self._to_source: list[bytes] = []
        self._reply_packets: PacketSplitter | None = None
        self._reply_reader: ReplyReader | None = None
        self._reply: OkPacket | ErrPacket | ResultSet | None = None
        self._reply_number = 1
        self.question: Question | None = None
        self.user = ""
        self.variables: dict[str, str | None] = {}
        self.diagnostics = OwnDiagnostics()
        self.replica: RegisterSlave | None = None
        self._logins = self._commands = 0
        self.has_more = False
        self.find_judge: Callable[[], Judge | None] = lambda: None
        self.judge: Judge | None = None
        self._followed: ReplyFollower | None = None
        self._statements = ClientStatements(self._login.capabilities)
        self._has_to_wait = False
        self._is_binary = False
        self._heads: Sequence[ColumnDefinition] = ()
        # Of a command that a judge has let run:
        self._is_running = False
        self._pending: ClientCommand | None = None
        self._befores_left = 0
        self._thens: deque[Callable[[], Awaitable[None]]] = deque()
        self._next_start: Starting | None = None
        # Of a change of user that is not passed on unread, and of who has logged in:
        self._authentication: Authentication | None = None
        self._authentication_packets = PacketSplitter(payload_max=LOGIN_MAX)
        self._is_unknown = False
        self._held = b""
        # Of a LOAD DATA LOCAL file:
        self._is_told = False
        self._header_left = 0

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
        """What the client has set `character_set_results` to; empty where that is not known."""
        return "" if self._followed is None else self._followed.results_charset

    @property
    def is_refused(self) -> bool:
        """Whether the login was refused, by the source or here."""
        return self._login.phase is LoginPhase.REFUSED

    @property
    def is_logged_in(self) -> bool:
        """Whether the source has let the client in."""
        return self._login.phase is LoginPhase.DONE

    def farewell(self) -> bytes | None:
        """What the source is sent where the client goes before its login; None before it greets."""
        return self._login.farewell()

    @property
    def is_closed(self) -> bool:
        """Whether the session is over once what there is for the client has been sent."""
        return self._is_closed

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way: no question, and no reply of the source."""
        return self.question is None and self._tracker.is_idle

    @property
    def is_followed(self) -> bool:
        """Whether a judge is still to be told what came of a command, or follows it."""
        if self._tracker.wants_local_data:
            return False  # the rest of the file will not come
        return self._is_running or isinstance(self.question, Following)

    @property
    def is_waiting(self) -> bool:
        """Whether more of the client cannot be used now."""
        return self.question is not None or self._has_to_wait or self.has_more

    @property
    def waiting_bytes(self) -> int:
        """Bytes of the client that wait for the answer to a question, or for a whole packet."""
        return len(self._client_bytes)

    def take_to_client(self) -> bytes:
        """What the client is to be sent."""
        taken = self._to_client
        if not taken:
            return b""
        if len(taken) == 1:
            return taken.pop()
        data = b"".join(taken)
        taken.clear()
        return data

    def take_to_source(self) -> bytes:
        """What the source is to be sent."""
        taken = self._to_source
        if not taken:
            return b""
        if len(taken) == 1:
            return taken.pop()
        data = b"".join(taken)
        taken.clear()
        return data

    def from_source(self, data: bytes) -> None:
        """Take bytes of the source.

        Raises:
            CodecError: If they are not what the protocol has at their place.
        """
        if self._login.phase is not _DONE:
            passed, to_source = self._login.from_source(data)
            self._to_source.append(to_source)
            self._after_login(passed)
            return
        if self._authentication is not None:
            data = self._read_authentication(self._authentication, data)
        tracker = self._tracker
        passed = tracker.feed(data)
        if self._reply_packets is not None:
            self._read_reply(data)
        elif self._is_unknown:
            self._held += passed
        elif self.question is None or not isinstance(self.question, _DUMPS):
            # Behind a dump the source has only its own end to tell, in packets numbered otherwise.
            self._to_client.append(passed)
        if tracker.is_idle:
            self._settle()
        elif self._passes_large:
            self._read_commands()  # what goes before a command has been answered

    def from_client(self, data: bytes) -> None:
        """Take bytes of the client.

        Raises:
            CodecError: If they are not what the protocol has at their place.
        """
        question = self.question
        if self._is_closed or (question is not None and isinstance(question, _DUMPS)):
            return  # nothing that a client may say now
        if self._login.phase is not _DONE:
            passed, to_source = self._login.from_client(data)
            self._to_source.append(to_source)
            self._after_login(passed)
            return
        if question is None and not self._client_bytes and self._takes_query(data):
            return
        self._client_bytes += data
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
        if self._is_closed or self.question is not None or self._client_number is None:
            return
        refusal = StatementError(
            f"Malformed communication packet: {error.message}", errno=_MALFORMED_ERRNO
        )
        self._to_client.append(frame(error_packet(refusal), self._client_number))
        self._is_closed = True

    @property
    def _client_number(self) -> int | None:
        """Of the packet that the client expects next; None while it reads a reply of the source."""
        if self._login.phase is not LoginPhase.DONE:
            return self._login.next_number
        return 1 if self._tracker.is_idle else None

    def forget(self) -> None:
        """Let go of what both sides have sent: the session is over, whoever may still hold it."""
        self._client_bytes.clear()
        self._to_client, self._to_source = [], []
        self._reply_packets = self._reply_reader = self._reply = None
        self.question = self._pending = None
        self._statements.prepared.clear()
        self.find_judge = lambda: None

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
        if self._login.phase not in (LoginPhase.DONE, LoginPhase.REFUSED):
            self._after_login(self._login.refuse(error))

    def enter(self) -> None:
        """The account that has logged in may be here."""
        assert isinstance(self.question, Entering), "nobody waits for it"
        self._to_client.append(self._held)
        self._held = b""
        self.question = None
        self._settle()

    def turn_away(self, error: StatementError) -> None:
        """The account that has logged in may not be here: the session is over."""
        assert isinstance(self.question, Entering), "nobody waits for it"
        number, self._held = self._held[FRAME_HEADER_LENGTH - 1], b""
        self._to_client.append(frame(error_packet(error), number))
        self.question = None
        self._is_closed = True

    def hand_on(self, text: str | None = None) -> None:
        """Let the source answer the open statement, if its judge does.

        Args:
            text: What is to be run in its place; None for itself. Of one that is to be prepared it is
                prepared in its place, and binlane answers its executions.
        """
        question = self.question
        assert isinstance(question, Statement), "a dump is not handed on"
        packet, self.question = question.packet, None
        self._commands += 1
        if self._followed is None and not question.is_prepared:
            self.diagnostics.forget()
        number = Command.STMT_PREPARE if question.is_prepared else Command.QUERY
        if text is not None:
            packet = frame(encode_query(text, self.capabilities), 0)
        if self._followed is None or self.judge is None:
            self._forward(number, packet)
        elif question.is_prepared and text is not None:
            watcher = partial(self._own_prepared, question.text)
            self._followed.expect(number, Role.WATCHED, watcher=watcher)
            self._to_source.append(frame(bytes((number,)) + bytes_of(text), 0))
        else:
            command = ClientCommand(number, packet[FRAME_HEADER_LENGTH:], packet)
            self._take_command(self._followed, self.judge, command)
        if self._get_question() is None:
            self._close_question()

    def learned(self) -> None:
        """It is known how the source reads what the client says, if anybody knows."""
        question, judge, followed = self.question, self.judge, self._followed
        assert isinstance(question, Learning), "nothing was to be learnt"
        assert judge is not None, "it has learnt"
        assert followed is not None, "there is a judge"
        self.question = None
        if question.command.number == Command.STMT_PREPARE:
            self._follow(followed, judge, question.command)
        elif judge.reading is not None:
            self._judge(judge, question.command)
        else:
            unread = self._statements.unread(question.command.number, question.command.payload)
            self._ask_judge(judge, unread, question.command)
        if self._get_question() is None:
            self._close_question()

    def cut(self, statements: tuple[ClientStatement, ...]) -> None:
        """Say which are the statements of the command."""
        question, judge = self.question, self.judge
        assert isinstance(question, Cutting), "nothing was to be cut"
        assert judge is not None, "statements are for a judge"
        self.question = None
        self._ask_judge(judge, statements, question.command)
        if self._get_question() is None:
            self._close_question()

    def decide(self, verdict: Verdict) -> None:
        """Say what becomes of the command that is judged."""
        question = self.question
        assert isinstance(question, Judging), "nothing is judged"
        self.question = None
        self._decide(verdict, question.statements, question.command)
        if self._get_question() is None:
            self._close_question()

    def go_on(self) -> None:
        """The session may begin, or what was to follow a command is done."""
        assert isinstance(self.question, Starting | Following), "nobody waits"
        self.question = None
        self._settle()

    def begin_rows(self, heads: Sequence[ColumnDefinition]) -> None:
        """Begin to answer the open statement with rows; `rows` and `end_rows` or `refuse` follow."""
        self._heads = heads
        self._reply_to_client(
            encode_heads(
                heads,
                capabilities=self.capabilities,
                extended=self._login.extended,
                status=self._tracker.status,
            )
        )

    def rows(self, rows: Iterable[Sequence[Cell]]) -> None:
        """Go on with rows."""
        encode = partial(encode_binary_row, self._heads) if self._is_binary else encode_row
        self._reply_to_client(list(map(encode, rows)))

    def end_rows(self) -> None:
        """End the rows."""
        self._end_rows()
        self._tell_rows()
        self._close_question()

    def answer(self, answer: OkAnswer | RowsAnswer) -> None:
        """Answer the open statement, or let the replica register."""
        self._answer(answer)
        if isinstance(answer, OkAnswer) or answer.diagnostics:
            self.diagnostics.tell(answer.diagnostics)
        else:
            self._tell_rows()
        self._close_question()

    def _tell_rows(self) -> None:
        if isinstance(self.question, Statement):
            self.diagnostics.give_rows(self.question.text, flavor_of(self.server_version))

    def refuse(self, error: StatementError) -> None:
        """Answer the open question with an error."""
        self._counts.refuse(error, is_judged=isinstance(self.question, Judging))
        self._reply_to_client([error_packet(error)])
        self.diagnostics.tell(error.listed)
        self._close_question()

    def count_fault(self) -> None:
        """Count a fault of binlane's own."""
        self._counts.faults += 1

    def end_dump(self, last_packet: bytes) -> None:
        """End the open dump.

        Args:
            last_packet: EOF or ERR, numbered behind the packets sent before.
        """
        assert isinstance(self.question, _DUMPS), "no dump is open"
        self._to_client.append(last_packet)
        self._close_question()

    def ask(self, statement: str) -> None:
        """Send a statement of binlane's own to the source, while a question is open."""
        assert self._tracker.is_idle, "questions open when the source owes nothing"
        self._reply_packets = PacketSplitter()
        self._reply_reader = ReplyReader(self._login.source_capabilities, self._login.extended)
        self._forward(Command.QUERY, self._own_packet(statement))

    def take_reply(self) -> OkPacket | ErrPacket | ResultSet | None:
        """The reply to `ask`, once; None until it is whole."""
        reply, self._reply = self._reply, None
        return reply

    def _read_reply(self, data: bytes) -> None:
        assert self._reply_packets is not None, "only after ask()"
        assert self._reply_reader is not None, "set with the splitter"
        for packet in self._reply_packets.feed(data):
            self._reply = self._reply_reader.feed(packet.payload)
        if self._reply is not None:
            self._reply_packets = self._reply_reader = None

    def _is_judged(self, user: str) -> bool:
        self.user = user
        self.judge = self.find_judge()
        return self.judge is not None

    def _after_login(self, to_client: bytes) -> None:
        login = self._login
        self.tls_side = _TLS_SIDES.get(login.phase)
        self._is_closed = login.phase is LoginPhase.REFUSED
        if login.phase is not LoginPhase.DONE:
            self._to_client.append(to_client)
            return
        self.user = login.user
        self._client_bytes += login.early
        if self.judge is None:
            self._tracker = ReplyFollower(login.capabilities, login.extended)
        else:
            self._tracker = self._followed = ReplyFollower(
                login.source_capabilities, login.extended, client=login.capabilities, listener=self
            )
            self._statements = ClientStatements(login.capabilities)
            self._next_start = Starting(is_reset=False)
        if self._rules.checks_account:
            self._is_unknown, self._held = True, to_client
        else:
            self._to_client.append(to_client)
        self._settle()

    def _read_commands(self) -> None:
        """Read the client's frames until one has to wait."""
        buffer = self._client_bytes
        read = self._read_command if self._followed is None else self._read_followed_command
        self._has_to_wait = self.has_more = False
        count = 0
        while buffer and self.question is None and not self._is_closed:
            if self._passing_bytes:
                self._pass(min(self._passing_bytes, len(buffer)))
                continue
            if len(buffer) < FRAME_HEADER_LENGTH:
                return
            count += 1
            if count > _COMMANDS_AT_ONCE:
                self.has_more = True
                return
            length = int.from_bytes(buffer[:3], "little")
            if self._authentication is not None:
                if not self._answer_authentication(self._authentication, length):
                    return
                continue
            if self._is_passing_frame():
                if not self._tracker.wants_local_data:
                    self._check_number()
                self._begin_to_pass(length)
                continue
            self._check_frame(length)
            if not read(length):
                return

    def _check_number(self) -> None:
        """See that a frame which passes unread is numbered as the source expects it.

        A server that finds another number in a file's content takes what comes next for commands.
        """
        number = self._client_bytes[FRAME_HEADER_LENGTH - 1]
        if self._continues:
            expected = self._next_number
        elif self._passes_large:
            expected = 0
        else:
            return  # an answer in an authentication, which ends with the first one that is wrong
        if number != expected:
            raise wrong_number(number, expected)

    def _check_frame(self, length: int) -> None:
        """See that a command begins as one does.

        What is read whole before anything is done with it has a length of its own; were a longer one
        passed on unread, the source would serve a dump or change the user by itself.
        """
        buffer = self._client_bytes
        if not length:
            raise CodecError("the client sends an empty command")
        if buffer[FRAME_HEADER_LENGTH - 1]:
            raise CodecError(f"the client sends packet {buffer[3]} where a command begins")
        if len(buffer) == FRAME_HEADER_LENGTH:
            return
        command = buffer[FRAME_HEADER_LENGTH]
        if command == _MULTI:
            raise CodecError("the client sends COM_MULTI, which is not offered")
        if command in _READ_COMMANDS and command not in _TEXT_COMMANDS:
            is_set = command == Command.BINLOG_DUMP_GTID
            longest = FRAME_PAYLOAD_MAX - 1 if is_set else _READ_MAX
            if length > longest:
                raise CodecError(f"the client sends command {command} with {length} bytes")

    def _pass(self, length: int) -> None:
        data = bytes(self._client_bytes[:length])
        del self._client_bytes[:length]
        self._passing_bytes -= length
        if self._refusal is not None:
            if not self._passing_bytes and not self._continues:
                error, self._refusal = self._refusal, None
                self._to_client.append(frame(error_packet(error), self._next_number))
            return
        self._to_source.append(data)
        if self._is_told and self.judge is not None:
            content = data[self._header_left :]
            self._header_left = max(self._header_left - length, 0)
            if content:
                self.judge.local_data(content)

    def _is_passing_frame(self) -> bool:
        tracker = self._tracker
        if self._continues or tracker.wants_local_data or self._passes_large:
            return True
        # Of its answers the first is numbered 2; a packet numbered 0 is a command.
        return tracker.is_authenticating and bool(self._client_bytes[FRAME_HEADER_LENGTH - 1])

    def _begin_to_pass(self, length: int) -> None:
        tracker = self._tracker
        if self._followed is not None:
            self._is_told = tracker.wants_local_data and self._followed.is_judged
            self._header_left = FRAME_HEADER_LENGTH
        if tracker.wants_local_data:
            is_last = not length and not self._continues
            number = self._client_bytes[FRAME_HEADER_LENGTH - 1]
            tracker.take_local_frame(number, is_last=is_last)
            if is_last and self._is_told and self.judge is not None:
                self.judge.local_data(b"")
        self._passing_bytes = FRAME_HEADER_LENGTH + length
        self._next_number = (self._client_bytes[FRAME_HEADER_LENGTH - 1] + 1) & 0xFF
        self._continues = length == FRAME_PAYLOAD_MAX
        self._passes_large = False

    def _read_command(self, length: int) -> bool:
        """Read the command at the buffer's beginning; False if it has to wait."""
        buffer = self._client_bytes
        if len(buffer) <= FRAME_HEADER_LENGTH:
            return False
        command = buffer[FRAME_HEADER_LENGTH]
        is_long = length > INSPECTED_MAX and command in _TEXT_COMMANDS
        if command not in _READ_COMMANDS or is_long:
            head = bytes(buffer[FRAME_HEADER_LENGTH : FRAME_HEADER_LENGTH + FLAGS_END])
            if command == Command.STMT_EXECUTE and len(head) < min(length, FLAGS_END):
                return False
            self._commands += 1
            if command in _JUDGED_COMMANDS or command == Command.INIT_DB:
                self.diagnostics.forget()
            self._tracker.expect(command, opens_cursor=opens_cursor(head))
            self._begin_to_pass(length)
            return True
        found = self._find_packet(length)
        if found is None:
            return False
        payload, end = found
        is_question = self._is_question(command, payload)
        is_lone = is_question or (command == Command.CHANGE_USER and self._reads_changes_of_user)
        if is_lone and not self._tracker.is_idle:
            self._has_to_wait = True
            return False
        packet = bytes(buffer[:end])
        del buffer[:end]
        if is_question:
            self._open(command, payload, packet)
        else:
            self._commands += 1
            if command == Command.QUERY:
                self.diagnostics.forget()
            self._forward_session_command(command, packet)
        return True

    def _own_answer(self, number: int, payload: bytes) -> RowsAnswer | str | None:
        """What a statement about warnings gives, where the source has not got them; as `answer` there."""
        if not self.diagnostics.are_own:
            return None
        statement = self._statement_of(number, payload)
        if not self.diagnostics.concern(statement):
            return None
        own = self.diagnostics.answer(text_of(statement), flavor_of(self.server_version))
        is_text = number == Command.QUERY
        return own if is_text or isinstance(own, RowsAnswer) else None

    def _statement_of(self, number: int, payload: bytes) -> bytes:
        """What a command runs; empty if it runs none that is known, or takes values."""
        if number == Command.QUERY:
            return decode_query(payload, self.capabilities)
        if number == Command.STMT_EXECUTE:
            return bytes_of(self._statements.prepared.text(payload))
        return b""

    def _answer_own(self, answer: RowsAnswer | str, number: int, payload: bytes) -> None:
        """Give what `_own_answer` has found."""
        if isinstance(answer, RowsAnswer):
            self._reply_number = 1
            self._is_binary = number != Command.QUERY
            self._answer(answer)
            statement = text_of(self._statement_of(number, payload))
            self.diagnostics.give_rows(statement, flavor_of(self.server_version))
            self._reply_number = 1
            self._is_binary = False
            return
        self._commands += 1
        packet = frame(encode_query(answer, self.capabilities), 0)
        if self._followed is None or self.judge is None:
            self._forward(Command.QUERY, packet)
        else:
            command = ClientCommand(Command.QUERY, packet[FRAME_HEADER_LENGTH:], packet)
            self._take_command(self._followed, self.judge, command)

    def _is_question(self, command: int, payload: bytes) -> bool:
        if self._own_answer(command, payload) is not None:
            return True
        if command == Command.QUERY:
            return may_concern_binlogs(decode_query(payload, self.capabilities))
        if command == Command.STMT_PREPARE:
            return may_concern_binlogs(payload[1:])
        return command not in (Command.CHANGE_USER, Command.RESET_CONNECTION)

    def _open(self, command: int, payload: bytes, packet: bytes) -> None:
        """Answer a command, or have it answered."""
        own = self._own_answer(command, payload)
        if own is not None:
            self._answer_own(own, command, payload)
        elif command == Command.BINLOG_DUMP:
            self.question = BinlogDump.decode(payload)
        elif command == Command.REGISTER_SLAVE:
            self.question = self.replica = RegisterSlave.decode(payload)
        elif command == Command.BINLOG_DUMP_GTID:
            self.question = BinlogDumpGtid.decode(payload)
        elif command == Command.STMT_PREPARE:
            self.question = Statement(text_of(payload[1:]), packet, is_prepared=True)
        elif command == Command.STMT_EXECUTE:
            text = self._statements.prepared.own(payload) or ""
            self.question, self._is_binary = Statement(text, packet, is_executed=True), True
        else:
            self.question = Statement(text_of(decode_query(payload, self.capabilities)), packet)

    def _forward_session_command(self, command: int, packet: bytes) -> None:
        if command in _RESETTING_COMMANDS:
            self._reset(command, packet)
        else:
            self._forward(command, packet)

    def _reset(self, command: int, packet: bytes) -> None:
        """COM_CHANGE_USER and COM_RESET_CONNECTION, unless the user is refused here."""
        user: str | None = None
        self.diagnostics.forget()
        if command == Command.CHANGE_USER:
            self._logins += 1
            change = ChangeUser.decode(packet[FRAME_HEADER_LENGTH:], self.capabilities)
            if self._login.privacy.exposes(change.plugin):
                self._reply_to_client([error_packet(clear_password_refusal(change.plugin))])
                self._is_closed = True
                return
            user = change.user
            if self._reads_changes_of_user:
                number = packet[FRAME_HEADER_LENGTH - 1]
                self._authentication = self._login.new_authentication(change.plugin, number)
        self.variables.clear()
        watcher = partial(self._reset_answered, user)
        self._tracker.expect(command, Role.WATCHED, watcher=watcher)
        self._to_source.append(packet)

    @property
    def _reads_changes_of_user(self) -> bool:
        return self._rules.checks_account or not self._login.privacy.is_equal

    def _read_authentication(self, authentication: Authentication, data: bytes) -> bytes:
        """What the client gets of what the source says to a change of user."""
        parts = []
        for packet in self._authentication_packets.feed(data):
            if authentication.result is not None:
                raise CodecError("the source goes on behind a change of user")
            passed = authentication.from_source(packet)
            parts.append(passed.to_client)
            self._to_source.append(passed.to_source)
        if authentication.result is not None:
            self._login.scramble = authentication.scramble
            self._authentication = None
            self._is_unknown = self._rules.checks_account and is_ok(authentication.result)
        return b"".join(parts)

    def _answer_authentication(self, authentication: Authentication, length: int) -> bool:
        """Read the frame at the buffer's beginning; False if it has to wait, as commands do."""
        buffer = self._client_bytes
        number = buffer[FRAME_HEADER_LENGTH - 1]
        end = FRAME_HEADER_LENGTH + length
        if number and length > LOGIN_MAX:
            raise CodecError(f"a packet of {length} bytes belongs to no change of user")
        if not number or len(buffer) < end:
            self._has_to_wait = True
            return False
        packet = Packet(number, bytes(buffer[FRAME_HEADER_LENGTH:end]))
        del buffer[:end]
        self._to_source.append(authentication.from_client(packet).to_source)
        return True

    # With a judge -----------------------------------------------------------------------------

    def _read_followed_command(self, length: int) -> bool:
        """Read the command at the buffer's beginning; False if it has to wait."""
        followed, judge = self._followed, self.judge
        assert followed is not None, "there is a judge"
        assert judge is not None, "there is a judge"
        buffer = self._client_bytes
        if len(buffer) <= FRAME_HEADER_LENGTH:
            return False
        number = buffer[FRAME_HEADER_LENGTH]
        if self._is_running:
            self._has_to_wait = True
            return False
        if number not in _FOLLOWED_COMMANDS:
            self._commands += 1
            followed.expect(number)
            self._begin_to_pass(length)
            return True
        if length == FRAME_PAYLOAD_MAX:
            is_held = number == Command.QUERY and judge.reads_long_texts and self._is_held()
            if is_held is None:
                return False
            if not is_held:
                return self._read_large_command(followed, judge, number)
        found = self._find_packet(length)
        if found is None:
            return False
        payload, end = found
        asks = self._asks(number, payload)
        if not followed.is_idle and (
            asks or number in _LONE_COMMANDS or self._has_to_learn(judge, number, payload)
        ):
            self._has_to_wait = True
            return False
        packet = bytes(buffer[:end])
        del buffer[:end]
        if asks:
            self._open(number, payload, packet)
        else:
            self._commands += 1
            self._take_command(followed, judge, ClientCommand(number, payload, packet))
        return True

    def _takes_query(self, data: bytes) -> bool:
        """Read a COM_QUERY that came alone and in full, as nearly all do; False if it is none.

        Does what `_read_followed_command` and what that calls would do, and nothing where that is
        more than to ask the judge, who knows the answer.

        Args:
            data: What the client sent, with nothing before it that waits.
        """
        followed, judge = self._followed, self.judge
        length = len(data) - FRAME_HEADER_LENGTH
        if followed is None or judge is None or not 1 < length <= INSPECTED_MAX:
            return False
        if _QUERY_HEAD.unpack_from(data) != (length, _QUERY) or not followed.is_idle:
            return False
        if self._is_running or self._passing_bytes or self._continues or self._passes_large:
            return False
        says = self._statements
        if self._authentication is not None or says.has_attributes or self.diagnostics.are_own:
            return False
        query = data[FRAME_HEADER_LENGTH + 1 :]
        statements = None if may_concern_binlogs(query) else says.only(query)
        if statements is None:
            return False
        self._commands += 1
        self._reply_number = 1
        verdict = judge.judge(statements)
        if verdict is AS_IT_IS:
            self._is_running = True
            followed.expect_query(JUDGED_QUERY)
        elif verdict is PASS:
            followed.expect_query(QUERY_THAT_PASSES)
        else:
            command = ClientCommand(_QUERY, data[FRAME_HEADER_LENGTH:], data)
            if verdict is None:
                self.question = Judging(statements, command)
            else:
                self._decide(verdict, statements, command)
            return True
        self._counts.verdicts[type(verdict)] += 1
        self._to_source.append(data)
        return True

    def _read_large_command(self, followed: ReplyFollower, judge: Judge, number: int) -> bool:
        """Read a command of more than one frame before its text is known.

        Where the judge lets it run, it passes as it comes, and is never held as a whole.
        """
        head = bytes(
            self._client_bytes[FRAME_HEADER_LENGTH : FRAME_HEADER_LENGTH + _LONG_DATA.size]
        )
        if len(head) < _LONG_DATA.size:
            return False
        if not followed.is_idle:
            self._has_to_wait = True
            return False
        prepared = self._statements.prepared
        if number in _JUDGED_COMMANDS:
            self._reply_number = 1
            statements = prepared.unread(number, head)
            self._ask_judge(judge, statements, ClientCommand(number, head, b""))
            return True
        role, watcher = Role.PASSES, None
        if number == Command.STMT_SEND_LONG_DATA:
            prepared.lose_long_data(_LONG_DATA.unpack(head)[1])
        elif number == Command.STMT_PREPARE:
            role, watcher = Role.WATCHED, partial(self._statement_prepared, "", judge)
        else:
            raise CodecError(
                f"the client sends command {number} with more than {FRAME_PAYLOAD_MAX} bytes"
            )
        followed.expect(number, role, watcher=watcher)
        self._begin_to_pass(FRAME_PAYLOAD_MAX)
        return True

    def _take_command(self, followed: ReplyFollower, judge: Judge, command: ClientCommand) -> None:
        if command.number in _JUDGED_COMMANDS:
            self._judge(judge, command)
        elif command.number in _RESETTING_COMMANDS:
            self._reset(command.number, command.packet)
        elif self._has_to_learn(judge, command.number, command.payload):
            self.question = Learning(command)
        else:
            self._follow(followed, judge, command)

    def _has_to_learn(self, judge: Judge, number: int, payload: bytes) -> bool:
        """Whether where the values of a statement stand hangs on what is not known."""
        return (
            number == Command.STMT_PREPARE
            and not (payload.isascii() and _READ_BY_MODE.isdisjoint(payload))
            and judge.reading is None
        )

    def _asks(self, number: int, payload: bytes) -> bool:
        """Whether a command is a question for those who know the binlogs, or about what they said."""
        if self._own_answer(number, payload) is not None:
            return True
        if number == Command.QUERY:
            return len(payload) <= INSPECTED_MAX and may_concern_binlogs(
                self._statements.query(payload)
            )
        if number == Command.STMT_PREPARE:
            return len(payload) <= INSPECTED_MAX and may_concern_binlogs(payload[1:])
        if number == Command.STMT_EXECUTE:
            return self._statements.prepared.own(payload) is not None
        return number in _READ_COMMANDS and number not in _RESETTING_COMMANDS

    def _find_packet(self, length: int) -> tuple[bytes, int] | None:
        """The payload of the packet at the buffer's beginning, and its end; None until it is there.

        Args:
            length: Of its first frame.
        """
        buffer = self._client_bytes
        end = FRAME_HEADER_LENGTH + length
        if len(buffer) < end:
            return None
        payload = bytes(buffer[FRAME_HEADER_LENGTH:end])
        while length == FRAME_PAYLOAD_MAX:
            start = end + FRAME_HEADER_LENGTH
            length = int.from_bytes(buffer[end : end + 3], "little")
            end = start + length
            payload += buffer[start:end]
        return payload, end

    def _is_held(self) -> bool | None:
        """Whether a statement of several frames is there as a whole.

        Returns:
            None as long as more of it may come; False if it is too long to be held.

        Raises:
            CodecError: If its frames are not numbered one behind the other.
        """
        buffer = self._client_bytes
        at, number, length = 0, 0, FRAME_PAYLOAD_MAX
        while length == FRAME_PAYLOAD_MAX:
            if at > _HELD_MAX:
                return False
            if len(buffer) < at + FRAME_HEADER_LENGTH:
                return None
            if buffer[at + FRAME_HEADER_LENGTH - 1] != number:
                raise CodecError(f"the client sends packet {buffer[at + 3]}, and {number} is next")
            length = int.from_bytes(buffer[at : at + 3], "little")
            at, number = at + FRAME_HEADER_LENGTH + length, (number + 1) & 0xFF
        return True if len(buffer) >= at else None

    def _judge(self, judge: Judge, command: ClientCommand) -> None:
        self._reply_number = frame_count(len(command.payload)) & 0xFF
        statements = self._statements.of(command.number, command.payload, judge.reading)
        if statements is None:
            self.question = Learning(command)
        elif isinstance(statements, Uncut | Unwritten):
            self.question = Cutting(statements, command)
        else:
            self._ask_judge(judge, statements, command)

    def _ask_judge(
        self, judge: Judge, statements: Sequence[ClientStatement], command: ClientCommand
    ) -> None:
        verdict = judge.judge(statements)
        if verdict is None:
            self.question = Judging(statements, command)
        else:
            self._decide(verdict, statements, command)

    def _decide(
        self, verdict: Verdict, statements: Sequence[ClientStatement], command: ClientCommand
    ) -> None:
        """Do what was said; a question is open behind it only if rows are to be sent in parts."""
        is_large = not command.packet
        self._counts.judge(verdict)
        if isinstance(verdict, Give):
            self.diagnostics.forget()
        elif self.diagnostics.are_own and not isinstance(verdict, Refuse):
            text = statements[0].text if len(statements) == 1 else ""
            is_open = self.diagnostics.runs(text, flavor_of(self.server_version))
            if is_open and isinstance(verdict, Pass):
                self.diagnostics.forget()  # nobody hears what comes of it
        if isinstance(verdict, Pass):
            self._tracker.expect(command.number, opens_cursor=opens_cursor(command.payload))
            self._to_source.append(command.packet)
            self._passes_large = is_large
        elif isinstance(verdict, Run):
            self._run(verdict, command)
            return  # its number is used if `before` fails
        elif isinstance(verdict, Refuse):
            if is_large:
                # The client has it once it has sent the rest, which goes nowhere.
                self._refusal, self._passes_large = verdict.error, True
            else:
                self._reply_to_client([error_packet(verdict.error)])
            self.diagnostics.tell(verdict.error.listed)
        else:
            self._is_binary = command.number != Command.QUERY
            if isinstance(verdict.answer, RowsInParts):
                self.question = Judging(statements, command, verdict.answer)
                return
            self._answer(verdict.answer)
        self._reply_number = 1
        self._is_binary = False

    def _run(self, verdict: Run, command: ClientCommand) -> None:
        self._is_running = True
        if verdict.text is not None:
            packet = self._own_packet(verdict.text)
            command = ClientCommand(Command.QUERY, packet[FRAME_HEADER_LENGTH:], packet)
        if verdict.before:
            self._pending = command
            self._befores_left = len(verdict.before)
            self._send_own(verdict.before)
        else:
            self._send(command)

    def _send(self, command: ClientCommand) -> None:
        assert self._followed is not None, "there is a judge"
        self._followed.expect(
            command.number, Role.JUDGED, opens_cursor=opens_cursor(command.payload)
        )
        self._to_source.append(command.packet)
        if not command.packet:
            self._passes_large = True

    def _send_own(self, statements: Iterable[str]) -> None:
        assert self._followed is not None, "there is a judge"
        for statement in statements:
            self._followed.expect(Command.QUERY, Role.OWN)
            self._to_source.append(self._own_packet(statement))

    @property
    def hides_gtids(self) -> bool:
        """Whether the source tells GTIDs in the session's state that the client has not asked for."""
        return self.judge is not None and self.judge.hides_gtids

    def answered(self, replies: list[Reply]) -> int:
        """Be told what came of a command; by how many its count of warnings grows."""
        assert self.judge is not None, "it let the command run"
        self.diagnostics.ran(replies)
        done = self.judge.done(replies)
        return 0 if done is NOTHING_LEFT else self._take(done).warnings

    def own_answered(self, reply: Reply, payload: bytes) -> None:
        """Be told what came of a statement of binlane's own, and its last packet."""
        assert self.judge is not None, "it wanted the statement"
        self._befores_left -= 1
        if self._pending is None:
            return  # another one has failed before
        if reply.errno:
            self._pending = None
            self._reply_to_client([payload])
            self._reply_number = 1
            self._take(self.judge.done(()))
        elif not self._befores_left:
            command, self._pending = self._pending, None
            self._reply_number = 1
            self._send(command)

    def _take(self, done: Done) -> Done:
        if done.then is not None:
            self._thens.append(done.then)
        return done

    def _follow(self, followed: ReplyFollower, judge: Judge, command: ClientCommand) -> None:
        """Forward a command that says something of the statements to come."""
        number, payload, packet = command
        prepared = self._statements.prepared
        watcher: Watcher | None = None
        if number == Command.INIT_DB:
            self.diagnostics.forget()
            watcher = partial(self._database_used, judge, text_of(payload[1:]))
        elif number == Command.SET_OPTION:
            watcher = partial(self._option_set, Reader(payload).unpack(_OPTION)[1])
        elif number == Command.STMT_PREPARE:
            text = bare(text_of(payload[1:]))
            watcher = partial(self._statement_prepared, text, judge)
        elif number == Command.STMT_SEND_LONG_DATA:
            reader = Reader(payload)
            _, statement_id, parameter = reader.unpack(_LONG_DATA)
            prepared.add_long_data(statement_id, parameter, reader.rest())
        elif number == Command.STMT_CLOSE:
            prepared.close(Reader(payload).unpack(_STATEMENT_ID)[1])
        else:
            prepared.reset(Reader(payload).unpack(_STATEMENT_ID)[1])
        role = Role.PASSES if watcher is None else Role.WATCHED
        followed.expect(number, role, watcher=watcher)
        self._to_source.append(packet)

    def _database_used(self, judge: Judge, database: str, reply: bytes) -> None:
        if is_ok(reply):
            judge.used(database)

    def _option_set(self, option: int, reply: bytes) -> None:
        if not is_error(reply):
            self._statements.has_many = option == _MULTI_STATEMENTS_ON

    def _statement_prepared(self, text: str, judge: Judge, reply: bytes) -> None:
        prepared = self._statements.prepared
        if is_error(reply):
            prepared.add_none()
            return
        _, statement_id, _, parameter_count = Reader(reply).unpack(_PREPARED)
        flavor = flavor_of(self.server_version)
        prepared.add(statement_id, text, parameter_count, judge.reading, flavor)

    def _own_prepared(self, text: str, reply: bytes) -> None:
        prepared = self._statements.prepared
        if is_error(reply):
            prepared.add_none()
        else:
            prepared.add_own(Reader(reply).unpack(_PREPARED)[1], text)

    def _reset_answered(self, user: str | None, reply: bytes) -> None:
        if user is not None and not is_error(reply):
            self.user = user
        if self._followed is not None:
            self._statements.prepared.clear()
            self._followed.results_charset = ""
            self._next_start = Starting(is_reset=True)

    def _settle(self) -> None:
        """The source owes nothing: go on with what waits for that."""
        if self.question is None:
            self._is_running = False
            if self._is_unknown:
                self._is_unknown = False
                self.question = Entering()
            elif self._thens:
                self.question = Following(self._thens.popleft())
            else:
                self.question, self._next_start = self._next_start, None
        if self._client_bytes:
            self._read_commands()

    # For both sides -----------------------------------------------------------------------------

    def _own_packet(self, statement: str) -> bytes:
        return frame(encode_query(statement, self._login.source_capabilities), 0)

    def _get_question(self) -> Question | None:
        # A type checker remembers what it was before a call that opened another one.
        return self.question

    def _forward(self, command: int, packet: bytes) -> None:
        self._tracker.expect(command)
        self._to_source.append(packet)

    def _reply_to_client(self, payloads: Sequence[bytes]) -> None:
        self._to_client.append(frames(payloads, self._reply_number))
        count = sum(frame_count(len(payload)) for payload in payloads)
        self._reply_number = (self._reply_number + count) & 0xFF

    def _close_question(self) -> None:
        if isinstance(self.question, _DUMPS):
            # One client says one byte less than it sends: that byte is no command.
            self._client_bytes.clear()
        self.question = None
        if not self._is_running:
            self._reply_number = 1
            self._is_binary = False
        self._read_commands()

    def _answer(self, answer: OkAnswer | RowsAnswer) -> None:
        if isinstance(answer, RowsAnswer):
            self.begin_rows(answer.heads)
            self.rows(answer.rows)
            self._end_rows(warnings=len(answer.diagnostics))
            return
        packet = OkPacket(
            affected_rows=answer.affected_rows,
            status=self._tracker.status,
            warnings=answer.warnings or len(answer.diagnostics),
            info=answer.info.encode(),
        )
        self._reply_to_client([packet.encode(self.capabilities)])

    def _end_rows(self, warnings: int = 0) -> None:
        end = encode_end_of_rows(
            capabilities=self.capabilities, status=self._tracker.status, warnings=warnings
        )
        self._reply_to_client([end])
