"""A session of a server on a blocking socket: one question at a time.

Small answers are held whole; what a table holds comes in pieces, in bounded memory.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from types import TracebackType
from typing import Any, Final, Self, cast

from binlane.client.account import account_at
from binlane.client.binary_rows import BinaryRows, PreparedQuery, RowFrames, prepare
from binlane.client.connection import ServerConnection
from binlane.client.dialogue import Dialogue, SendCommand, ask, log_in, refusal
from binlane.client.packet_flow import PacketFlow, Send, StartTls
from binlane.client.settings import ServerUrl
from binlane.client.text_results import Cells, TextRows
from binlane.errors import CodecError, PeerError
from binlane.log.codec.packets.commands import encode_query
from binlane.log.codec.packets.results import ColumnDefinition

Texts = tuple[tuple[str | None, ...], ...]
_PIECE_BYTES: Final = 4 << 20
_ANSWER_S: Final = 3600.0


class ServerSession:
    """A session, from its login until it is closed.

    Attributes:
        url: The address of the server.
        version: The version that its greeting says, such as `10.11.19-MariaDB-log`.

    Args:
        url: The server and the account.
        password: The password of that account.
        answer_s: Longest wait for the server's next bytes.

    Raises:
        PeerError: If the server cannot be reached or refuses the account.
        ConfigError: If a file of certificates cannot be used.
    """

    def __init__(self, url: ServerUrl, password: str, *, answer_s: float = _ANSWER_S) -> None:
        self.url = url
        self._password = password
        self._peer = str(url)
        self._flow: PacketFlow[Any] = PacketFlow(log_in(account_at(url, password)), peer=self._peer)
        self._connection = ServerConnection(url, None, silent_s=answer_s)
        try:
            greeting = self._converse(())
        except BaseException:
            self.close()
            raise
        self.version: str = greeting.server_version

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the session."""
        self._connection.close()

    def another(self) -> ServerSession:
        """Open a session of the same account.

        Raises:
            PeerError: If the server cannot be reached or refuses the account.
        """
        return ServerSession(self.url, self._password)

    def abort(self) -> None:
        """End another thread's wait for an answer."""
        self._connection.abort()

    def ask(self, statement: str) -> Texts:
        """The rows of a statement as text; none of one that has none.

        Raises:
            PeerError: If the server refuses it, or goes away.
        """
        return cast("Texts", self._converse(self._flow.begin(_answer(statement, self._peer))))

    def stream(self, statement: str) -> Generator[list[Cells], None, None]:
        """The rows of a statement in pieces of some megabytes, column by column.

        Take them all before the next question, or close the session. Cells are bytes in the
        character set of the results.

        Raises:
            PeerError: If the server refuses it, or goes away.
        """
        self._connection.do(self._flow.take_step(SendCommand(encode_query(statement))))
        rows = TextRows()
        is_done = False
        while not is_done:
            try:
                rows.feed(self._connection.read())
            except CodecError as error:
                raise PeerError(error.message, peer=self._peer, phase="rows") from None
            if rows.error is not None:
                raise refusal(rows.error, peer=self._peer, phase="query")
            is_done = rows.is_done
            if rows.rows and (is_done or rows.size_bytes >= _PIECE_BYTES):
                yield rows.take()

    def stream_binary(
        self, statement: str
    ) -> Generator[tuple[tuple[ColumnDefinition, ...], list[RowFrames]], None, None]:
        """The rows of a statement in binary form, in pieces of some megabytes.

        Take them all before the next question, or close the session.

        Yields:
            The columns, and rows of theirs; at least once, also where there are no rows.

        Raises:
            PeerError: If the server refuses it, or goes away.
        """
        query = cast(
            "PreparedQuery", self._converse(self._flow.begin(prepare(statement, peer=self._peer)))
        )
        self._connection.do(self._flow.take_step(SendCommand(query.execute())))
        rows = BinaryRows()
        is_done = False
        while not is_done:
            try:
                rows.feed(self._connection.read())
            except CodecError as error:
                raise PeerError(error.message, peer=self._peer, phase="rows") from None
            if rows.error is not None:
                self._connection.do(self._flow.take_step(SendCommand(query.close())))
                raise refusal(rows.error, peer=self._peer, phase="query")
            is_done = rows.is_done
            if is_done or rows.size_bytes >= _PIECE_BYTES:
                yield rows.heads, rows.take()
        self._connection.do(self._flow.take_step(SendCommand(query.close())))

    def _converse(self, steps: Iterable[Send | StartTls]) -> Any:
        for step in steps:
            self._connection.do(step)
        while True:
            for payload in self._flow.packets(self._connection.read()):
                for step in self._flow.converse(payload):
                    self._connection.do(step)
                if self._flow.result is not None:
                    return self._flow.result


def _answer(statement: str, peer: str) -> Dialogue[Texts]:
    answer = yield from ask(statement, peer=peer)
    return () if answer is None else answer.texts()
