"""One session between a client and the source: bytes of both sides in, bytes for both sides out.

After the login, packets pass unread but for their first bytes. What stops is a question: a statement
that binlane may answer, a replica that registers, or a dump. While one is open, what the client sends
further on waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from binlane.codec.buffer import Reader
from binlane.codec.packets.commands import (
    BinlogDump,
    BinlogDumpGtid,
    RegisterSlave,
    decode_query,
    encode_query,
)
from binlane.codec.packets.flags import Capability, Command
from binlane.codec.packets.framing import (
    FRAME_HEADER_LENGTH,
    FRAME_PAYLOAD_MAX,
    PacketSplitter,
    frame,
    frame_count,
    frames,
    nul_bytes,
    text_of,
)
from binlane.codec.packets.replies import ErrPacket, OkPacket, error_packet
from binlane.codec.packets.results import (
    Cell,
    ColumnDefinition,
    ReplyReader,
    ResultSet,
    encode_end_of_rows,
    encode_heads,
    encode_result_set,
    encode_row,
)
from binlane.errors import CodecError, StatementError
from binlane.gateway.handler import OkAnswer, RowsAnswer
from binlane.gateway.login import Login, LoginPhase
from binlane.gateway.replica_statements import INSPECTED_MAX, may_concern_binlogs
from binlane.gateway.reply_tracker import ReplyTracker

# Commands whose whole packet is looked at; of all others only the first byte.
_READ_COMMANDS: Final = frozenset(
    {
        Command.QUERY,
        Command.CHANGE_USER,
        Command.RESET_CONNECTION,
        Command.REGISTER_SLAVE,
        Command.BINLOG_DUMP,
        Command.BINLOG_DUMP_GTID,
    }
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A question: does binlane answer this statement?

    Attributes:
        text: SQL as the client sent it.
        packet: Its frame, for the source.
    """

    text: str
    packet: bytes


Question = Statement | RegisterSlave | BinlogDump | BinlogDumpGtid
"""What binlane is asked: to answer a statement, to let a replica register, or to dump."""


class Relay:
    """The state of one session.

    Attributes:
        question: What has to be answered before the client's next packet is read.
        user: Account name, empty before the login.
        variables: User variables that bear on replication, by lower-case name.
        replica: What COM_REGISTER_SLAVE said.
    """

    def __init__(self, *, refused_users: frozenset[str] = frozenset()) -> None:
        """Begin before the greeting.

        Args:
            refused_users: Accounts that may not log in here.
        """
        self._login = Login(refused_users)
        self._is_closed = False
        self._client_bytes = bytearray()
        self._passing_bytes = 0
        self._continues = False
        self._tracker = ReplyTracker(self._login.capabilities, self._login.extended)
        self._to_client: list[bytes] = []
        self._to_source: list[bytes] = []
        self._reply_packets: PacketSplitter | None = None
        self._reply_reader: ReplyReader | None = None
        self._reply: OkPacket | ErrPacket | ResultSet | None = None
        self._reply_number = 1
        self.question: Question | None = None
        self.user = ""
        self.variables: dict[str, str | None] = {}
        self.replica: RegisterSlave | None = None

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
    def waiting_bytes(self) -> int:
        """Bytes of the client that wait for the answer to a question, or for a whole packet."""
        return len(self._client_bytes)

    def take_to_client(self) -> bytes:
        """What the client is to be sent."""
        data, self._to_client = b"".join(self._to_client), []
        return data

    def take_to_source(self) -> bytes:
        """What the source is to be sent."""
        data, self._to_source = b"".join(self._to_source), []
        return data

    def from_source(self, data: bytes) -> None:
        """Take bytes of the source.

        Raises:
            CodecError: If they are not what the protocol has at their place.
        """
        if self._login.phase is not LoginPhase.DONE:
            self._to_client.append(self._login.from_source(data))
            self._after_login()
            return
        self._tracker.feed(data)
        if self._reply_packets is not None:
            self._read_reply(data)
        elif not isinstance(self.question, BinlogDump | BinlogDumpGtid):
            # Behind a dump the source has only its own end to tell, in packets numbered otherwise.
            self._to_client.append(data)
        if self._tracker.is_idle:
            self._read_commands()

    def from_client(self, data: bytes) -> None:
        """Take bytes of the client.

        Raises:
            CodecError: If they are not what the protocol has at their place.
        """
        if self._is_closed or isinstance(self.question, BinlogDump | BinlogDumpGtid):
            return  # nothing that a client may say now
        if self._login.phase is not LoginPhase.DONE:
            to_source, to_client = self._login.from_client(data)
            self._to_source.append(to_source)
            self._to_client.append(to_client)
            self._after_login()
            return
        self._client_bytes += data
        self._read_commands()

    def hand_on(self) -> None:
        """Let the source answer the open statement."""
        assert isinstance(self.question, Statement), "a dump is not handed on"
        self._forward(Command.QUERY, self.question.packet)
        self._close_question()

    def begin_rows(self, heads: Sequence[ColumnDefinition]) -> None:
        """Begin to answer the open statement with rows; `rows` and `end_rows` or `refuse` follow."""
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
        self._reply_to_client(list(map(encode_row, rows)))

    def end_rows(self) -> None:
        """End the rows."""
        end = encode_end_of_rows(capabilities=self.capabilities, status=self._tracker.status)
        self._reply_to_client([end])
        self._close_question()

    def answer(self, answer: OkAnswer | RowsAnswer) -> None:
        """Answer the open statement, or let the replica register."""
        self._reply_to_client(self._payloads(answer))
        self._close_question()

    def refuse(self, error: StatementError) -> None:
        """Answer the open question with an error."""
        self._reply_to_client([error_packet(error)])
        self._close_question()

    def end_dump(self, last_packet: bytes) -> None:
        """End the open dump.

        Args:
            last_packet: EOF or ERR, numbered behind the packets sent before.
        """
        assert isinstance(self.question, BinlogDump | BinlogDumpGtid), "no dump is open"
        self._to_client.append(last_packet)
        self._close_question()

    def ask(self, statement: str) -> None:
        """Send a statement of binlane's own to the source, while a question is open."""
        assert self._tracker.is_idle, "questions open when the source owes nothing"
        self._reply_packets = PacketSplitter()
        self._reply_reader = ReplyReader(self.capabilities, self._login.extended)
        self._forward(Command.QUERY, frame(encode_query(statement, self.capabilities), 0))

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

    def _after_login(self) -> None:
        login = self._login
        self._is_closed = login.phase is LoginPhase.REFUSED
        if login.phase is LoginPhase.DONE:
            self.user = login.user
            self._tracker = ReplyTracker(login.capabilities, login.extended)

    def _read_commands(self) -> None:
        """Read the client's frames until one has to wait."""
        buffer = self._client_bytes
        while buffer and self.question is None and not self._is_closed:
            if self._passing_bytes:
                self._pass(min(self._passing_bytes, len(buffer)))
                continue
            if len(buffer) < FRAME_HEADER_LENGTH:
                return
            length = int.from_bytes(buffer[:3], "little")
            if self._is_passing_frame():
                self._begin_to_pass(length)
            elif not self._read_command(length):
                return

    def _pass(self, length: int) -> None:
        self._to_source.append(bytes(self._client_bytes[:length]))
        del self._client_bytes[:length]
        self._passing_bytes -= length

    def _is_passing_frame(self) -> bool:
        tracker = self._tracker
        return self._continues or tracker.wants_local_data or tracker.is_authenticating

    def _begin_to_pass(self, length: int) -> None:
        if self._tracker.wants_local_data and not length and not self._continues:
            self._tracker.local_data_ended()
        self._passing_bytes = FRAME_HEADER_LENGTH + length
        self._continues = length == FRAME_PAYLOAD_MAX

    def _read_command(self, length: int) -> bool:
        """Read the command at the buffer's beginning; False if it has to wait."""
        buffer = self._client_bytes
        if not length:
            raise CodecError("the client sends an empty command")
        if len(buffer) <= FRAME_HEADER_LENGTH:
            return False
        command = buffer[FRAME_HEADER_LENGTH]
        if command not in _READ_COMMANDS or length > INSPECTED_MAX:
            self._tracker.expect(command)
            self._begin_to_pass(length)
            return True
        end = FRAME_HEADER_LENGTH + length
        if len(buffer) < end:
            return False
        payload = bytes(buffer[FRAME_HEADER_LENGTH:end])
        is_question = self._is_question(command, payload)
        if is_question and not self._tracker.is_idle:
            return False
        packet = bytes(buffer[:end])
        del buffer[:end]
        if is_question:
            self._open(command, payload, packet)
        else:
            self._forward_session_command(command, payload, packet)
        return True

    def _is_question(self, command: int, payload: bytes) -> bool:
        if command == Command.QUERY:
            return may_concern_binlogs(decode_query(payload, self.capabilities))
        return command not in (Command.CHANGE_USER, Command.RESET_CONNECTION)

    def _open(self, command: int, payload: bytes, packet: bytes) -> None:
        """Answer a command, or have it answered."""
        if command == Command.BINLOG_DUMP:
            self.question = BinlogDump.decode(payload)
        elif command == Command.REGISTER_SLAVE:
            self.question = self.replica = RegisterSlave.decode(payload)
        elif command == Command.BINLOG_DUMP_GTID:
            self.question = BinlogDumpGtid.decode(payload)
        else:
            self.question = Statement(text_of(decode_query(payload, self.capabilities)), packet)

    def _forward_session_command(self, command: int, payload: bytes, packet: bytes) -> None:
        if command == Command.CHANGE_USER:
            self.user = text_of(nul_bytes(Reader(payload, 1)))
            try:
                self._login.check_user(self.user)
            except StatementError as error:
                self._reply_to_client([error_packet(error)])
                self._is_closed = True
                return
        if command != Command.QUERY:
            self.variables.clear()
        self._forward(command, packet)

    def _forward(self, command: int, packet: bytes) -> None:
        self._tracker.expect(command)
        self._to_source.append(packet)

    def _reply_to_client(self, payloads: Sequence[bytes]) -> None:
        self._to_client.append(frames(payloads, self._reply_number))
        count = sum(frame_count(len(payload)) for payload in payloads)
        self._reply_number = (self._reply_number + count) & 0xFF

    def _close_question(self) -> None:
        if isinstance(self.question, BinlogDump | BinlogDumpGtid):
            # One client says one byte less than it sends: that byte is no command.
            self._client_bytes.clear()
        self.question = None
        self._reply_number = 1
        self._read_commands()

    def _payloads(self, answer: OkAnswer | RowsAnswer) -> list[bytes]:
        status = self._tracker.status
        if isinstance(answer, OkAnswer):
            packet = OkPacket(
                affected_rows=answer.affected_rows,
                status=status,
                warnings=answer.warnings,
                info=answer.info.encode(),
            )
            return [packet.encode(self.capabilities)]
        return encode_result_set(
            answer.heads,
            answer.rows,
            capabilities=self.capabilities,
            extended=self._login.extended,
            status=status,
        )
