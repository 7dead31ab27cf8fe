"""The statements in a client's commands, as a judge is told them.

Texts stand in the client's character set: what is no UTF-8 is kept as lone surrogates.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from struct import Struct
from typing import Final, NamedTuple

from binlane.errors import CodecError
from binlane.live.gateway.command_rules import CommandRules
from binlane.live.gateway.judge import PASS, ClientStatement, Judge, TextReading
from binlane.live.gateway.prepared_statements import PreparedStatements
from binlane.live.gateway.reply_follower import Watcher
from binlane.live.gateway.value_texts import LogStyle
from binlane.log.codec.buffer import Reader
from binlane.log.codec.client_text import read_text, written_text
from binlane.log.codec.packets.commands import decode_query
from binlane.log.codec.packets.flags import Capability, Command
from binlane.log.codec.packets.framing import FRAME_PAYLOAD_MAX, bytes_of, text_of
from binlane.log.codec.packets.replies import is_error, is_ok
from binlane.log.codec.types import Flavor
from binlane.statements.sql.parser import statement_texts
from binlane.statements.sql.tokens import LONG

_AROUND: Final = " \t\n\v\f\r"
"""White space as the servers take it off a statement's ends, at the end together with `;`."""
_AT_END: Final = _AROUND + ";"


_READ_BY_MODE: Final = frozenset(b'"\\[]{}^~')
"""Bytes that stand inside or outside of strings as the sql_mode says."""
_PREPARED: Final = Struct("<BIHH")
_LONG_DATA: Final = Struct("<BIH")
LONG_DATA_HEAD: Final = _LONG_DATA.size
"""Bytes of a command that tell which statement and value a COM_STMT_SEND_LONG_DATA is for."""
_STATEMENT_ID: Final = Struct("<BI")
_OPTION: Final = Struct("<BH")
_MULTI_STATEMENTS_ON: Final = 0
# Members of enumerations are looked up anew each time that they are named.
QUERY: Final = int(Command.QUERY)

_QUERY_ATTRIBUTES: Final = int(Capability.QUERY_ATTRIBUTES)
_MULTI_STATEMENTS: Final = int(Capability.MULTI_STATEMENTS)


class ClientCommand(NamedTuple):
    """A command as the client sent it.

    Attributes:
        number: First byte of the payload: the command's number.
        payload: The whole command, with that byte.
        packet: Frames of the command; empty where they pass as they come, and `payload` is the first bytes.
    """

    number: int
    payload: bytes
    packet: bytes


@dataclass(frozen=True, slots=True)
class UncutStatements:
    """Several statements in one text; to cut them takes long where the text is long.

    Attributes:
        text: Text that holds the statements.
        reading: The way in which the session reads the text.
    """

    text: str
    reading: TextReading

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


@dataclass(frozen=True, slots=True)
class Unwritten:
    """An execution of a prepared statement; to write its values into its text takes long.

    Attributes:
        prepared: Prepared statements of the session.
        command: Number of COM_STMT_EXECUTE or COM_STMT_BULK_EXECUTE, as in `PreparedStatements.executed`.
        payload: The whole command, with its first byte.
        style: Style in which the session's values are logged.
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
    """Reads the statements of one session's commands.

    Args:
        capabilities: Capabilities that the client has agreed on.
        rules: Rules that say which commands are read.

    Attributes:
        rules: Rules that say which commands are read.
        has_attributes: True if values may stand before the text of a COM_QUERY.
        has_many: True if a packet may hold several statements.
        prepared: Prepared statements of the session.
    """

    def __init__(self, capabilities: Capability, rules: CommandRules) -> None:
        self._capabilities = capabilities
        self.rules = rules
        agreed = int(capabilities)  # operations of flags are Python
        self.has_attributes = bool(agreed & _QUERY_ATTRIBUTES)
        self.has_many = bool(agreed & _MULTI_STATEMENTS)
        self.prepared = PreparedStatements(capabilities)

    def query(self, payload: bytes) -> bytes:
        """The text of a COM_QUERY.

        Raises:
            CodecError: If it is none.
        """
        return decode_query(payload, self._capabilities) if self.has_attributes else payload[1:]

    def of(
        self, command: int, payload: bytes, judge: Judge
    ) -> tuple[ClientStatement, ...] | UncutStatements | Unwritten | None:
        """Find the statements of COM_QUERY, COM_STMT_EXECUTE or COM_STMT_BULK_EXECUTE.

        Args:
            command: Number of one of these commands.
            payload: The whole command, with its first byte.
            judge: Knows how the source reads the statements, if anybody does.

        Returns:
            None where the source's reading would have to be known; empty where the source has no such
            statement.

        Raises:
            CodecError: If the payload is no such command.
        """
        if command != QUERY:
            found = self._executed(command, payload, judge.reading)
            return self._passing(command, payload, judge) if found is None else found
        return self.of_query(self.query(payload), judge)

    def of_query(
        self, query: bytes, judge: Judge
    ) -> tuple[ClientStatement, ...] | UncutStatements | None:
        """Find the statements of a COM_QUERY's text; the rest as of `of`."""
        text = query.decode("utf-8", "surrogateescape").lstrip(_AROUND).rstrip(_AT_END)
        if not self.has_many or ";" not in text:
            # As `ClientStatement(text)`, in a third of the time.
            return (tuple.__new__(ClientStatement, (text, False, True, False)),)
        reading = judge.reading
        if reading is None:
            return None
        uncut = UncutStatements(text, reading)
        return uncut if len(text) > LONG else uncut.statements()

    def unread(self, command: int, payload: bytes) -> tuple[ClientStatement, ...]:
        """Find statements where the source's reading is not known; arguments and errors as in `of`."""
        if command == Command.QUERY:
            text = bare(text_of(self.query(payload)))
            return (ClientStatement(text, is_complete=False),)
        return self.prepared.executed(command, payload, None)

    def text(self, number: int, payload: bytes) -> bytes:
        """Give the text that a command runs; empty if it runs none that is known, or takes values."""
        if number == Command.QUERY:
            return self.query(payload)
        if number == Command.STMT_EXECUTE:
            return bytes_of(self.prepared.text(payload))
        return b""

    # Commands that say something of the statements to come ----------------------------------------

    def has_to_be_read(self, number: int, payload: bytes, judge: Judge) -> bool:
        """True if the places of a statement's values depend on a mode that is not known."""
        return (
            number == Command.STMT_PREPARE
            and not (payload.isascii() and _READ_BY_MODE.isdisjoint(payload))
            and judge.reading is None
        )

    def follow(self, command: ClientCommand, judge: Judge, flavor: Flavor) -> Watcher | None:
        """Follow a command that goes to the source, and is none of `JUDGED_COMMANDS`.

        Args:
            command: The command, read as a whole.
            judge: Judge that is told of the default database.
            flavor: Flavor of the source server.

        Returns:
            Takes the reply; None where the reply says nothing of interest.
        """
        number, payload, _ = command
        if number == Command.INIT_DB:
            return partial(_database_used, judge, text_of(payload[1:]))
        if number == Command.SET_OPTION:
            return partial(self._option_set, Reader(payload).unpack(_OPTION)[1])
        if number == Command.STMT_PREPARE:
            return self.prepares(bare(text_of(payload[1:])), judge, flavor)
        if number == Command.STMT_SEND_LONG_DATA:
            reader = Reader(payload)
            _, statement_id, parameter = reader.unpack(_LONG_DATA)
            self.prepared.add_long_data(statement_id, parameter, reader.rest())
        elif number == Command.STMT_CLOSE:
            self.prepared.close(Reader(payload).unpack(_STATEMENT_ID)[1])
        elif number == Command.STMT_RESET:
            self.prepared.reset(Reader(payload).unpack(_STATEMENT_ID)[1])
        return None

    def follow_unread(
        self, number: int, head: bytes, judge: Judge, flavor: Flavor
    ) -> Watcher | None:
        """Follow a command of several frames that passes as it comes.

        Args:
            number: Number of the client's command.
            head: First `LONG_DATA_HEAD` bytes of the command.
            judge: Judge that is told of the default database.
            flavor: Flavor of the source server.

        Raises:
            CodecError: If a command of this number may not be so long.
        """
        if number == Command.STMT_SEND_LONG_DATA:
            self.prepared.lose_long_data(_LONG_DATA.unpack(head)[1])
            return None
        if number == Command.STMT_PREPARE:
            return self.prepares("", judge, flavor)
        raise CodecError(
            f"the client sends command {number} with more than {FRAME_PAYLOAD_MAX} bytes"
        )

    def prepares(self, text: str, judge: Judge, flavor: Flavor) -> Watcher:
        """Take the reply to COM_STMT_PREPARE of a text; empty if that was too long to be read."""
        return partial(self._statement_prepared, text, judge, flavor)

    def prepares_own(self, text: str) -> Watcher:
        """Take the reply to COM_STMT_PREPARE of the stand-in for a text that binlane answers."""
        return partial(self._own_prepared, text)

    def _option_set(self, option: int, reply: bytes) -> None:
        if not is_error(reply):
            self.has_many = option == _MULTI_STATEMENTS_ON

    def _statement_prepared(self, text: str, judge: Judge, flavor: Flavor, reply: bytes) -> None:
        if is_error(reply):
            self.prepared.add_none()
            return
        _, statement_id, _, parameter_count = Reader(reply).unpack(_PREPARED)
        self.prepared.add(statement_id, text, parameter_count, judge.reading, flavor)

    def _own_prepared(self, text: str, reply: bytes) -> None:
        if is_error(reply):
            self.prepared.add_none()
        else:
            self.prepared.add_own(Reader(reply).unpack(_PREPARED)[1], text)

    def _passing(
        self, command: int, payload: bytes, judge: Judge
    ) -> tuple[ClientStatement, ...] | None:
        """Find the statement of an execution that passes whatever its values are; None for others."""
        unread = self.prepared.without_values(command, payload)
        if judge.judge(unread) is not PASS:
            return None
        return self.prepared.executed(command, payload, None)

    def _executed(
        self, command: int, payload: bytes, reading: TextReading | None
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
        if self.prepared.is_long(payload):
            return execution
        found = execution.statements()
        if found and found[0].is_complete:
            self.prepared.know(payload, reading, style)
        return found


def _database_used(judge: Judge, database: str, reply: bytes) -> None:
    if is_ok(reply):
        judge.used(database)
