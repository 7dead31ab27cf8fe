"""A client of the protocol that says what it is told to, with any capabilities."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from types import TracebackType
from typing import Final, Self

from binlane.errors import StatementError
from binlane.live.gateway.reply_follower import ReplyFollower
from binlane.log.codec.packets.commands import encode_query
from binlane.log.codec.packets.execution import Execution, opens_cursor
from binlane.log.codec.packets.flags import (
    NO_EXTENSIONS,
    Capability,
    Command,
    ExtendedCapability,
)
from binlane.log.codec.packets.framing import Packet, PacketSplitter, frame
from binlane.log.codec.packets.handshake import Greeting, HandshakeResponse, SslRequest
from binlane.log.codec.packets.replies import ErrPacket, OkPacket, is_error, is_ok
from binlane.log.codec.packets.results import ReplyReader, ResultSet

CAPABILITIES: Final = (
    Capability.PROTOCOL_41
    | Capability.SECURE_CONNECTION
    | Capability.PLUGIN_AUTH
    | Capability.TRANSACTIONS
    | Capability.MULTI_RESULTS
    | Capability.PS_MULTI_RESULTS
)
_TIMEOUT_S: Final = 30.0
_CHUNK: Final = 1 << 16


class RawClient:
    """A session of root, who has no password.

    Attributes:
        thread_id: Its number at the source, as the greeting has it.
        capabilities: What both sides have agreed on.
        numbers: Sequence numbers of the packets of the last reply.
    """

    def __init__(
        self,
        port: int,
        capabilities: Capability = CAPABILITIES,
        extended: ExtendedCapability = NO_EXTENSIONS,
        *,
        database: str = "",
        collation: int = 45,
    ) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT_S)
        self._splitter = PacketSplitter()
        greeting = Greeting.decode(self._packets()[0].payload)
        self._plugin = greeting.plugin or ""
        self.thread_id = greeting.thread_id
        self.capabilities = capabilities & greeting.capabilities
        if database:
            self.capabilities |= Capability.CONNECT_WITH_DB
        extended &= greeting.extended_capabilities
        head = SslRequest(
            capabilities=self.capabilities,
            payload_max=1 << 30,
            character_set=collation,
            extended_capabilities=extended,
        )
        response = HandshakeResponse(
            head=head,
            user="root",
            auth_response=b"",
            database=database or None,
            plugin=greeting.plugin,
        )
        self._socket.sendall(frame(response.encode(), 1))
        reply = self._packets()[0].payload
        assert is_ok(reply), reply
        self._extended = extended
        self._tracker = ReplyFollower(self.capabilities, extended)
        self.numbers: list[int] = []

    def say(self, *payloads: bytes) -> list[bytes]:
        """Send commands in one write; the packets of their replies."""
        for payload in payloads:
            self._tracker.expect(payload[0], opens_cursor=opens_cursor(payload))
        self._socket.sendall(b"".join(frame(payload, 0) for payload in payloads))
        found: list[bytes] = []
        self.numbers = []
        while not self._tracker.is_idle:
            data = self._socket.recv(_CHUNK)
            if not data:
                raise ConnectionError("the connection is gone")
            self._tracker.feed(data)
            packets = self._splitter.feed(data)
            found += [packet.payload for packet in packets]
            self.numbers += [packet.sequence for packet in packets]
        return found

    def ok(self, payload: bytes) -> OkPacket:
        """Send a command; the last packet of its reply, which is OK.

        Raises:
            StatementError: If it is ERR.
        """
        last = self.say(payload)[-1]
        if is_error(last):
            error = ErrPacket.decode(last)
            raise StatementError(error.message, errno=error.errno, sqlstate=error.sqlstate or "")
        return OkPacket.decode(last)

    def query(self, text: str | bytes) -> OkPacket:
        """Run a statement that gives no rows; errors as of `ok`."""
        return self.ok(encode_query(text, self.capabilities))

    def rows(self, text: str) -> list[tuple[str | None, ...]]:
        """Run a statement; heads and rows of its result, nothing for one that has none.

        Raises:
            StatementError: If it is refused.
        """
        reader = ReplyReader(self.capabilities, self._extended)
        reply: OkPacket | ErrPacket | ResultSet | None = None
        for payload in self.say(encode_query(text, self.capabilities)):
            reply = reader.feed(payload)
        if isinstance(reply, ErrPacket):
            raise StatementError(reply.message, errno=reply.errno, sqlstate=reply.sqlstate or "")
        if not isinstance(reply, ResultSet):
            return []
        return [tuple(head.name for head in reply.heads), *reply.texts()]

    def dump(self, command: bytes, stray: bytes = b"") -> Iterator[bytes]:
        """Ask for a dump; the payloads of its packets, up to EOF, ERR or the connection's end.

        Args:
            command: Payload of COM_BINLOG_DUMP or COM_BINLOG_DUMP_GTID.
            stray: What is sent behind it.
        """
        self._socket.sendall(frame(command, 0) + stray)
        while data := self._socket.recv(_CHUNK):
            for packet in self._splitter.feed(data):
                yield packet.payload
                if packet.payload[0]:
                    return

    def prepare(self, text: str | bytes) -> int:
        """Prepare a statement; its id. Errors as of `ok`."""
        data = text if isinstance(text, bytes) else text.encode()
        head = self.say(bytes((Command.STMT_PREPARE,)) + data)[0]
        if is_error(head):
            error = ErrPacket.decode(head)
            raise StatementError(error.message, errno=error.errno, sqlstate=error.sqlstate or "")
        assert is_ok(head), head
        return int.from_bytes(head[1:5], "little")

    def execute(self, execution: Execution) -> OkPacket:
        """Run a prepared statement; errors as of `ok`."""
        return self.ok(execution.encode())

    def send(self, data: bytes) -> None:
        """Send any bytes."""
        self._socket.sendall(data)

    def receive(self) -> bytes:
        """Some bytes, at least one.

        Raises:
            ConnectionError: If none will come.
        """
        data = self._socket.recv(_CHUNK)
        if not data:
            raise ConnectionError("the connection is gone")
        return data

    def ends(self) -> bytes:
        """Send no more; what comes until the other side has closed, which it has to in time."""
        found = b""
        try:
            self._socket.shutdown(socket.SHUT_WR)
            while data := self._socket.recv(_CHUNK):
                found += data
        except ConnectionError:
            pass
        return found

    def reset(self) -> None:
        """Go with a TCP reset."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes((1, *bytes(7))))
        self._socket.close()

    def close(self) -> None:
        """Go without a word."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def change_user(self, user: str, database: str = "") -> bytes:
        """COM_CHANGE_USER without a password; the last packet of its reply."""
        names = (user, "", database)
        payload = bytes((Command.CHANGE_USER,)) + "\0".join(names).encode() + b"\0\x2d\0"
        answer = frame(payload + self._plugin.encode() + b"\0", 0)
        while True:
            self._socket.sendall(answer)
            packet = self._packets()[0]
            if packet.payload[0] in (0x00, 0xFF):
                return packet.payload
            answer = frame(b"", packet.next_sequence)

    def _packets(self) -> list[Packet]:
        """Packets of the login, at least one."""
        while True:
            data = self._socket.recv(_CHUNK)
            if not data:
                raise ConnectionError("the connection is gone")
            if packets := self._splitter.feed(data):
                return packets
