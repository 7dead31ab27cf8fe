"""Replies of binlane's own to a client, and those of the source to statements of binlane's own (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from binlane.errors import StatementError
from binlane.live.gateway.answers import OkAnswer, RowsAnswer
from binlane.log.codec.packets.flags import Capability, ExtendedCapability, ServerStatus
from binlane.log.codec.packets.framing import PacketSplitter, frame_count, frames
from binlane.log.codec.packets.replies import ErrPacket, OkPacket, error_packet
from binlane.log.codec.packets.results import (
    Cell,
    ColumnDefinition,
    ReplyReader,
    ResultSet,
    encode_binary_row,
    encode_end_of_rows,
    encode_heads,
    encode_row,
)


class OwnReplies:
    """Writes one reply after the other to one client.

    Args:
        to_client: List that takes the frames.
        capabilities: Capabilities that the client and the source have agreed on.
        extended: MariaDB's own capabilities among them.
    """

    def __init__(
        self, to_client: list[bytes], capabilities: Capability, extended: ExtendedCapability
    ) -> None:
        self._to_client = to_client
        self._capabilities = capabilities
        self._extended = extended
        self._number = 1
        self._is_binary = False
        self._heads: Sequence[ColumnDefinition] = ()

    def begin(self, number: int = 1, *, is_binary: bool = False) -> None:
        """Begin the reply to a command.

        Args:
            number: Number of the reply's first packet, behind those of the command.
            is_binary: True if the command executes a prepared statement.
        """
        self._number = number & 0xFF
        self._is_binary = is_binary

    def send(self, payloads: Sequence[bytes]) -> None:
        """Send packets."""
        self._to_client.append(frames(payloads, self._number))
        count = sum(frame_count(len(payload)) for payload in payloads)
        self._number = (self._number + count) & 0xFF

    def refuse(self, error: StatementError) -> None:
        """Send an error."""
        self.send([error_packet(error)])

    def answer(self, answer: OkAnswer | RowsAnswer, status: ServerStatus) -> None:
        """Send an answer.

        Args:
            answer: Values that the client gets.
            status: Server status of the session.
        """
        if isinstance(answer, RowsAnswer):
            self.begin_rows(answer.heads, status)
            self.rows(answer.rows)
            self.end_rows(status, warnings=len(answer.diagnostics))
            return
        packet = OkPacket(
            affected_rows=answer.affected_rows,
            status=status,
            warnings=answer.warnings or len(answer.diagnostics),
            info=answer.info.encode(),
        )
        self.send([packet.encode(self._capabilities)])

    def begin_rows(self, heads: Sequence[ColumnDefinition], status: ServerStatus) -> None:
        """Begin a result set."""
        self._heads = heads
        self.send(
            encode_heads(
                heads, capabilities=self._capabilities, extended=self._extended, status=status
            )
        )

    def rows(self, rows: Iterable[Sequence[Cell]]) -> None:
        """Send rows of the result set."""
        encode = partial(encode_binary_row, self._heads) if self._is_binary else encode_row
        self.send(list(map(encode, rows)))

    def end_rows(self, status: ServerStatus, *, warnings: int = 0) -> None:
        """End the result set."""
        self.send(
            [encode_end_of_rows(capabilities=self._capabilities, status=status, warnings=warnings)]
        )


class OwnExchange:
    """A statement of binlane's own that the source was sent while a question is open.

    Args:
        capabilities: Capabilities that the source takes to be agreed on.
        extended: MariaDB's own capabilities among them.

    Attributes:
        reply: Reply of the source; None until it is whole.
    """

    def __init__(self, capabilities: Capability, extended: ExtendedCapability) -> None:
        self._packets = PacketSplitter()
        self._reader = ReplyReader(capabilities, extended)
        self.reply: OkPacket | ErrPacket | ResultSet | None = None

    def feed(self, data: bytes) -> None:
        """Take bytes of the source.

        Raises:
            CodecError: If they are no reply.
        """
        for packet in self._packets.feed(data):
            self.reply = self._reader.feed(packet.payload)
