"""The client's commands: which are answered here, which are judged, and which pass (pure).

One reader serves sessions with a judge and without: `command_rules` says what differs.
"""

from __future__ import annotations

from enum import Enum
from functools import partial
from struct import Struct
from typing import Final

from binlane.errors import CodecError
from binlane.live.gateway.answers import RowsAnswer
from binlane.live.gateway.client_authentication import (
    Authentication,
    Passed,
    clear_password_refusal,
)
from binlane.live.gateway.client_frames import ClientFrames, NextBytes
from binlane.live.gateway.client_statements import (
    LONG_DATA_HEAD,
    QUERY,
    ClientCommand,
)
from binlane.live.gateway.command_rules import (
    JUDGED_COMMANDS,
    QUESTIONS,
    RESETTING_COMMANDS,
    TEXT_COMMANDS,
    check_beginning,
)
from binlane.live.gateway.judge import (
    NOBODY,
)
from binlane.live.gateway.judged_commands import JudgedCommands
from binlane.live.gateway.login import LOGIN_MAX, Login, LoginRules
from binlane.live.gateway.phase import DEAF, Phase, PhaseEvent
from binlane.live.gateway.port_counts import PortCounts
from binlane.live.gateway.relay_questions import (
    Learning,
    Resetting,
    StatementQuestion,
)
from binlane.live.gateway.replica_statements import (
    ASKING_FIRST,
    INSPECTED_MAX,
    may_concern_binlogs,
)
from binlane.live.gateway.reply_follower import (
    Role,
)
from binlane.log.codec.packets.commands import (
    BinlogDump,
    BinlogDumpGtid,
    ChangeUser,
    RegisterSlave,
)
from binlane.log.codec.packets.execution import FLAGS_END, opens_cursor
from binlane.log.codec.packets.flags import Command
from binlane.log.codec.packets.framing import (
    FRAME_HEADER_LENGTH,
    FRAME_PAYLOAD_MAX,
    Packet,
    PacketSplitter,
    frame,
    frame_count,
    text_of,
)
from binlane.log.codec.packets.replies import is_error, is_ok


class UserChange:
    """The packets of client and source that follow a COM_CHANGE_USER.

    Args:
        authentication: The exchange at its beginning.

    Attributes:
        authentication: Exchange that has the result once the source has decided.
    """

    def __init__(self, authentication: Authentication) -> None:
        self.authentication = authentication
        self._packets = PacketSplitter(payload_max=LOGIN_MAX)

    def from_source(self, data: bytes) -> Passed:
        """Take bytes of the source.

        Raises:
            CodecError: If it goes on behind its decision.
        """
        parts: list[Passed] = []
        for packet in self._packets.feed(data):
            if self.authentication.result is not None:
                raise CodecError("the source goes on behind a change of user")
            parts.append(self.authentication.from_source(packet))
        return Passed(
            b"".join(part.to_client for part in parts), b"".join(part.to_source for part in parts)
        )

    def from_client(self, frames: ClientFrames) -> bytes | None:
        """Take the client's first frame, which may be an answer to the source.

        Returns:
            What the source gets; None where the frame is a command, or not there as a whole.

        Raises:
            CodecError: If it is too long for an answer.
        """
        length, number = frames.length, frames.number
        end = FRAME_HEADER_LENGTH + length
        if number and length > LOGIN_MAX:
            raise CodecError(f"a packet of {length} bytes belongs to no change of user")
        if not number or len(frames.data) < end:
            return None
        packet = Packet(number, frames.take(end)[FRAME_HEADER_LENGTH:])
        return self.authentication.from_client(packet).to_source


# A frame's header and the first byte behind it; of a frame numbered 0 its length alone, and that.
_QUERY_HEAD: Final = Struct("<IB")
_COMMANDS_AT_ONCE: Final = 64
"""Commands of one client that are read before other clients have their turn."""
_FORGETTING_COMMANDS: Final = JUDGED_COMMANDS | {Command.INIT_DB}
"""Commands behind which the source has other warnings."""


class Pause(Enum):
    """The reason why no further command of the client is read."""

    NEEDS_BYTES = "the client has sent no whole command"
    WAITS = "its next command waits for the source"
    TURN = "other clients have their turn"


# Members of enumerations are looked up anew each time that they are named.
COMMAND: Final = NextBytes.COMMAND
_QUIT: Final = frame(bytes((Command.QUIT,)), 0)
_EXECUTE: Final = int(Command.STMT_EXECUTE)
_CONTINUATION: Final = NextBytes.CONTINUATION
_REST: Final = NextBytes.REST
NEEDS_BYTES: Final = Pause.NEEDS_BYTES
TURN: Final = Pause.TURN
_WAITS: Final = Pause.WAITS
READY: Final = Phase.READY
_PASSES: Final = Role.PASSES
_WATCHED: Final = Role.WATCHED


class CommandReader(JudgedCommands):
    """The part of a session's state that reading the client's commands needs, and the one reader.

    Args:
        login: State of the session's login.
        rules: Means by which client and source may be connected.
        counts: Counts of the port, to which the session's statements are added.

    Attributes:
        user: Account name, empty before the login.
        variables: User variables that bear on replication, by lower-case name.
        replica: The COM_REGISTER_SLAVE that the client sent.
    """

    def __init__(self, login: Login, rules: LoginRules, counts: PortCounts) -> None:
        super().__init__(login, counts)
        self._login_rules = rules
        self._change: UserChange | None = None
        self._pause = Pause.NEEDS_BYTES
        self._logins = self._commands = 0
        self.user = ""
        self.variables: dict[str, str | None] = {}
        self.replica: RegisterSlave | None = None

    def _read_commands(self) -> None:
        """Read the client's frames until one has to wait."""
        frames, count = self._frames, 0
        self._pause = NEEDS_BYTES
        while frames.data and self.phase not in DEAF:
            if frames.next is _REST:
                self._pass_on()
                continue
            if len(frames.data) < FRAME_HEADER_LENGTH:
                return
            count += 1
            if count > _COMMANDS_AT_ONCE:
                self._pause = TURN
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
        """True if the client's first frame is no command, or one whose beginning was read."""
        frames, source = self._frames, self._source
        if source.wants_local_data or frames.next is not COMMAND:
            return True
        # The first of the client's answers is numbered 2; a packet numbered 0 is a command.
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
        """Read a COM_QUERY that came alone and in full, as nearly all do, or an execution like the one before.

        Args:
            data: Bytes that the client sent, with nothing before them that waits.

        Returns:
            False, and nothing is done, for another command, or one with which others than its judge have to
            do.
        """
        length = len(data) - FRAME_HEADER_LENGTH
        if not 1 < length <= INSPECTED_MAX:
            if data != _QUIT or not self._source.is_idle:
                return False
            self._commands += 1
            self._to_source.append(data)
            return True
        told, number = _QUERY_HEAD.unpack_from(data)
        if told != length or number not in (QUERY, _EXECUTE):
            return False
        source, statements = self._source, self._statements
        if not source.is_idle or source.wants_local_data:
            return False
        if self.diagnostics.are_own or statements.has_attributes:
            return False
        if number == _EXECUTE:
            return self._reads_execution(data)
        query = data[FRAME_HEADER_LENGTH + 1 :]
        if query[0] in ASKING_FIRST and may_concern_binlogs(query):
            return False
        self._commands += 1
        judge = self.judge
        found = () if judge is NOBODY else statements.of_query(query, judge)
        self._judge(found, QUERY, data[FRAME_HEADER_LENGTH:], data)
        return True

    def _reads_execution(self, data: bytes) -> bool:
        """Read a COM_STMT_EXECUTE whose values are like those before; else as of `_reads`."""
        judge, payload = self.judge, data[FRAME_HEADER_LENGTH:]
        if judge is NOBODY:
            return False
        found = self._statements.prepared.executed_again(payload, judge.reading)
        if found is None:
            return False
        self._commands += 1
        self._judge(found, _EXECUTE, payload, data)
        return True

    def _read_command(self, length: int) -> bool:
        """Read the command at the buffer's beginning; False if it has to wait."""
        frames, rules = self._frames, self._statements.rules
        if len(frames.data) <= FRAME_HEADER_LENGTH:
            return False
        number = frames.data[FRAME_HEADER_LENGTH]
        if self.phase is not READY:
            return self._wait()
        is_too_long = length > rules.text_max and number in TEXT_COMMANDS
        if number not in rules.read or is_too_long:
            return self._pass_unread(number, length)
        if length == FRAME_PAYLOAD_MAX:
            is_held = number == QUERY and self.judge.reads_long_texts and frames.has_whole_packet()
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
        """True if binlane answers a command, or has to be asked if it does."""
        if self._own_answer(number, payload) is not None:
            return True
        if number in TEXT_COMMANDS:
            text = self._statements.query(payload) if number == QUERY else payload[1:]
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
            self._ask(StatementQuestion(text_of(payload[1:]), packet, is_prepared=True))
        elif number == Command.STMT_EXECUTE:
            text = self._statements.prepared.own(payload) or ""
            self._ask(StatementQuestion(text, packet, is_executed=True))
        else:
            self._ask(StatementQuestion(text_of(self._statements.query(payload)), packet))

    def _own_answer(self, number: int, payload: bytes) -> RowsAnswer | str | None:
        """The answer to a statement about warnings that the source has not got; as of `diagnostics`."""
        if not self.diagnostics.are_own:
            return None
        statement = self._statements.text(number, payload)
        if not self.diagnostics.concern(statement):
            return None
        own = self.diagnostics.answer(text_of(statement), self._flavor)
        return own if number == QUERY or isinstance(own, RowsAnswer) else None

    def _answer_own(self, answer: RowsAnswer | str, number: int, payload: bytes) -> None:
        """Give the answer that `_own_answer` has found."""
        if isinstance(answer, RowsAnswer):
            self._own.answer(answer, self._source.status)
            statement = text_of(self._statements.text(number, payload))
            self.diagnostics.give_rows(statement, self._flavor)
            return
        self._commands += 1
        packet = self._query_packet(answer)
        self._take_command(ClientCommand(QUERY, packet[FRAME_HEADER_LENGTH:], packet))

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
            self._follow_ups.append(Resetting())

    def _read_decision(self, change: UserChange, data: bytes) -> tuple[bytes, bool]:
        """Read the source's packets in a change of user.

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
