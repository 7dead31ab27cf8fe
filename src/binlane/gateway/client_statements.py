"""The statements in a client's commands, as a judge is told them.

Texts stand in the client's character set: what is no UTF-8 is kept as lone surrogates.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from binlane.codec.client_text import read_text, written_text
from binlane.codec.packets.commands import decode_query
from binlane.codec.packets.flags import Capability, Command
from binlane.codec.packets.framing import bytes_of, text_of
from binlane.codec.types import Flavor
from binlane.gateway.judge import ClientStatement, Reading
from binlane.gateway.prepared import PreparedStatements
from binlane.gateway.value_texts import LogStyle
from binlane.sql.parser import statement_texts
from binlane.sql.tokens import LONG

_AROUND: Final = " \t\n\v\f\r"
"""White space as the servers take it off a statement's ends, at the end together with `;`."""
_AT_END: Final = _AROUND + ";"


class Uncut(NamedTuple):
    """Several statements; to cut them takes long where they are.

    Attributes:
        text: Theirs.
        reading: How the session reads it.
    """

    text: str
    reading: Reading

    def cut(self) -> list[str]:
        """The statements; the text as it is where the character set does not have its bytes."""
        dialect, charset = self.reading
        told = read_text(bytes_of(self.text), charset)
        if told is None:
            return [self.text]
        parts = (written_text(part, charset) for part in statement_texts(told, dialect))
        return [text_of(part or b"") for part in parts]

    def statements(self) -> tuple[ClientStatement, ...]:
        """The statements as a judge has them."""
        return tuple(map(ClientStatement, self.cut()))


class Unwritten(NamedTuple):
    """An execution of a prepared statement; to write its values into its text takes long.

    Attributes:
        prepared: The session's prepared statements.
        command: As of `PreparedStatements.executed`, like all others.
        payload: All of it.
        style: How the session's values are logged.
    """

    prepared: PreparedStatements
    command: int
    payload: bytes
    style: LogStyle

    def statements(self) -> tuple[ClientStatement, ...]:
        """The statement as a judge has it."""
        return self.prepared.executed(self.command, self.payload, self.style)


def bare(text: str) -> str:
    """A statement as a server runs and logs it."""
    return text.lstrip(_AROUND).rstrip(_AT_END)


class ClientStatements:
    """What one session's commands say.

    Args:
        capabilities: What the client has agreed on.

    Attributes:
        has_attributes: Whether values may stand before the text of a COM_QUERY.
        has_many: Whether a packet may hold several statements.
        prepared: The session's prepared statements.
    """

    def __init__(self, capabilities: Capability) -> None:
        self._capabilities = capabilities
        self.has_attributes = Capability.QUERY_ATTRIBUTES in capabilities
        self.has_many = Capability.MULTI_STATEMENTS in capabilities
        self.prepared = PreparedStatements(capabilities)

    def query(self, payload: bytes) -> bytes:
        """The text of a COM_QUERY.

        Raises:
            CodecError: If it is none.
        """
        return decode_query(payload, self._capabilities) if self.has_attributes else payload[1:]

    def of(
        self, command: int, payload: bytes, reading: Reading | None
    ) -> tuple[ClientStatement, ...] | Uncut | Unwritten | None:
        """The statements of COM_QUERY, COM_STMT_EXECUTE or COM_STMT_BULK_EXECUTE.

        Args:
            command: Which one it is.
            payload: All of it.
            reading: How the source reads it; None if that is not known.

        Returns:
            None where that would have to be known; nothing where the source has no such statement.

        Raises:
            CodecError: If it is no such command.
        """
        if command != Command.QUERY:
            return self._executed(command, payload, reading)
        text = bare(text_of(self.query(payload)))
        if not self.has_many or ";" not in text:
            return (ClientStatement(text),)
        if reading is None:
            return None
        uncut = Uncut(text, reading)
        if len(text) > LONG:
            return uncut
        return uncut.statements()

    def only(self, query: bytes) -> tuple[ClientStatement] | None:
        """The one statement of a COM_QUERY; None where there may be several.

        Args:
            query: Its text.
        """
        text = query.decode("utf-8", "surrogateescape").lstrip(_AROUND).rstrip(_AT_END)
        if self.has_many and ";" in text:
            return None
        # As `ClientStatement(text)`, in a third of the time.
        return (tuple.__new__(ClientStatement, (text, False, True, False)),)

    def unread(self, command: int, payload: bytes) -> tuple[ClientStatement, ...]:
        """The same where nobody knows how the source reads it; arguments and errors as of `of`."""
        if command == Command.QUERY:
            text = bare(text_of(self.query(payload)))
            return (ClientStatement(text, is_complete=False),)
        return self.prepared.executed(command, payload, None)

    def _executed(
        self, command: int, payload: bytes, reading: Reading | None
    ) -> tuple[ClientStatement, ...] | Unwritten | None:
        is_read_otherwise = self.prepared.is_read_otherwise(payload, reading)
        if is_read_otherwise is None:
            return None
        if is_read_otherwise:
            unread = self.prepared.executed(command, payload, None)
            return tuple(one._replace(is_complete=False) for one in unread)
        if not self.prepared.has_values(command, payload):
            return self.prepared.executed(command, payload, None)
        if reading is None:
            return None
        dialect = reading.dialect
        flavor = Flavor.MYSQL if dialect.flavor == Flavor.MYSQL.value else Flavor.MARIADB
        style = LogStyle(flavor, reading.character_set, dialect.no_backslash_escapes)
        execution = Unwritten(self.prepared, command, payload, style)
        return execution if self.prepared.is_long(payload) else execution.statements()
