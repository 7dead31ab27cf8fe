"""A session's prepared statements, and what they are with their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import Final

from binlane.errors import CodecError, UnsupportedError
from binlane.live.gateway.judge import ClientStatement, TextReading
from binlane.live.gateway.passing_sessions import KnownExecution, PassingStatements
from binlane.live.gateway.value_texts import LogStyle, logged
from binlane.log.codec.client_text import is_lexed_alike, read_text, written_text
from binlane.log.codec.packets.execution import (
    BYTES_TYPES,
    INTEGER_LENGTHS,
    UNSIGNED,
    Execution,
    Value,
)
from binlane.log.codec.packets.flags import Capability, Command
from binlane.log.codec.packets.framing import bytes_of, text_of
from binlane.log.codec.types import ColumnType, Flavor
from binlane.log.kernels.passing_layout import PARAMETERS_MAX
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.tokens import LONG, SqlSyntaxError, TokenKind, read_tokens

_UTF8: Final = "utf8mb4"
LAST: Final = 0xFFFFFFFF
"""The id by which MariaDB's clients mean the statement that was prepared last."""
LONG_DATA_MAX: Final = 16 << 20
"""Bytes of values that are sent before a statement is run; of more nobody keeps any."""
_ROW_COUNT_VALUES: Final = range(1 << 64)
_ROW_COUNTS: Final = frozenset(("LIMIT", "OFFSET", "FIRST", "NEXT"))


_FLAGS_AT: Final = 5
_NULLS_AT: Final = 10
_PACKED_ONE: Final = 251
"""The first byte of a string that tells no length of one byte."""
_INTEGERS: Final[dict[int, Callable[[bytes, int], tuple[int]]]] = {
    code | sign: Struct(letter.lower() if not sign else letter).unpack_from
    for code, letter in (
        *((ColumnType.TINY, "<B"), (ColumnType.SHORT, "<H")),
        *((ColumnType.LONG, "<I"), (ColumnType.LONGLONG, "<Q")),
    )
    for sign in (0, UNSIGNED)
}


@dataclass(frozen=True, slots=True, eq=False)
class KnownValues:
    """The way in which a prepared statement's values are read, as long as it is the same.

    Attributes:
        reading: The way in which the session reads its statements.
        style: Style in which the session's values are logged.
        types: Types of the values, as in `PreparedStatement`.
        told: The types as a client tells them, behind the byte that says so.
        values_at: Place in an execution of the byte that says whether types are told.
    """

    reading: TextReading
    style: LogStyle
    types: Sequence[int]
    told: bytes
    values_at: int


@dataclass(slots=True)
class PreparedStatement:
    """A prepared statement.

    Attributes:
        text: Text as it was sent, without what stands around it; empty if it was too long to be read.
        reading: The way in which the source has read the text; None if that is not known.
        parameter_count: Number of values that the statement takes.
        parts: Text before, between and behind the values; empty if that is not known.
        row_counts: Numbers of the values that count rows, behind LIMIT: a server makes whole
            numbers of them.
        types: Types of its values, as the client told them last; None before.
        long_data: Values that were sent before, by number.
        has_lost_data: True if more such values came than are kept.
        has_given: True if values were sent before the last execution that was read.
        is_own: True if binlane answers the statement; the source has another one in its place.
        unread: The way to read the text for the places of its values; None once these are known.
        known: The way in which the values of the last execution were read; None for one that is read anew.
        is_read_alike: True if every session reads the text in the same way.
    """

    text: str
    parameter_count: int
    reading: TextReading | None = None
    parts: Sequence[str] = ()
    row_counts: frozenset[int] = frozenset()
    types: Sequence[int] | None = None
    long_data: dict[int, bytearray] = field(default_factory=dict)
    has_lost_data: bool = False
    has_given: bool = False
    is_own: bool = False
    unread: TextReading | None = None
    known: KnownValues | None = None
    is_read_alike: bool = field(init=False)

    def __post_init__(self) -> None:
        """Find out whether the text hangs on the session's reading."""
        self.is_read_alike = is_lexed_alike(self.text) and '"' not in self.text


class PreparedStatements:
    """A session's prepared statements by their ids.

    Args:
        capabilities: Capabilities that the client has agreed on.

    Attributes:
        passing: Statements of which executions pass without being read.
        without_types: Statements with values whose last execution was not sent: the source was perhaps not told
            their types.
    """

    def __init__(self, capabilities: Capability) -> None:
        self._capabilities = capabilities
        self._by_id: dict[int, PreparedStatement] = {}
        self._last = LAST
        self.passing = PassingStatements()
        self.without_types: set[int] = set()

    def clear(self) -> None:
        """Forget all: the session was reset."""
        self._by_id.clear()
        self.without_types.clear()
        self._last = LAST
        self.passing.clear()

    def add(
        self,
        statement_id: int,
        text: str,
        parameter_count: int,
        reading: TextReading | None,
        flavor: Flavor,
    ) -> None:
        """Add a statement that the source has prepared.

        Args:
            statement_id: Id of the prepared statement.
            text: Text of the statement; empty if it was too long to be read.
            parameter_count: Number of values that the source wants for the statement.
            reading: The way in which the source has read the statement; None if that is not known.
            flavor: Flavor of the source server.
        """
        prepared = PreparedStatement(text, parameter_count, reading)
        self.passing.remove(statement_id)
        self.without_types.discard(statement_id)
        prepared.unread = reading or TextReading(Dialect(flavor=flavor.value), _UTF8)
        self._by_id[statement_id] = prepared
        self._last = statement_id

    def add_own(self, statement_id: int, text: str) -> None:
        """Add a statement that binlane answers, under the id by which the source knows another one."""
        self._by_id[statement_id] = PreparedStatement(text, 0, is_own=True)
        self._last = statement_id

    def add_none(self) -> None:
        """Note that preparing a statement failed."""
        self._last = LAST

    def add_long_data(self, statement_id: int, parameter: int, data: bytes) -> None:
        """Add a part of a value."""
        self.passing.remove(self._last if statement_id == LAST else statement_id)
        prepared = self._find(statement_id)
        if prepared is None or prepared.has_lost_data:
            return
        prepared.long_data.setdefault(parameter, bytearray()).extend(data)
        if sum(map(len, prepared.long_data.values())) > LONG_DATA_MAX:
            self.lose_long_data(statement_id)

    def lose_long_data(self, statement_id: int) -> None:
        """Note that a value of the next execution is too large to be kept."""
        self.passing.remove(self._last if statement_id == LAST else statement_id)
        if (prepared := self._find(statement_id)) is not None:
            prepared.long_data.clear()
            prepared.has_lost_data = True

    def unread(self, command: int, payload: bytes) -> tuple[ClientStatement, ...]:
        """Give the statements of a command that is too large to be read; none if the source has no such one.

        Args:
            command: Number of COM_QUERY, COM_STMT_EXECUTE or COM_STMT_BULK_EXECUTE.
            payload: First bytes of the command's payload.
        """
        if command == Command.QUERY:
            return (ClientStatement("", is_complete=False),)
        prepared = self._find(_statement_id(payload))
        if prepared is None:
            return ()
        # Types that come with it hold for later ones, and are not known.
        prepared.types = None
        self.passing.clear()
        prepared.long_data.clear()
        return (_unread(command, prepared),)

    def reset(self, statement_id: int) -> None:
        """Forget the values that were sent before."""
        if (prepared := self._find(statement_id)) is not None:
            prepared.long_data.clear()
            prepared.has_lost_data = False

    def close(self, statement_id: int) -> None:
        """Forget a prepared statement."""
        statement_id = self._last if statement_id == LAST else statement_id
        self._by_id.pop(statement_id, None)
        self.without_types.discard(statement_id)
        self.passing.remove(statement_id)

    def unsent(self, payload: bytes) -> bool:
        """Note that an execution was answered here: a client sends types only once, and values not again.

        Args:
            payload: First bytes of a COM_STMT_EXECUTE command.

        Returns:
            True if the source still holds values that were sent before the execution.
        """
        prepared = self._find(_statement_id(payload))
        if prepared is None:
            return False
        if prepared.parameter_count:
            statement_id = self._id_in(payload)
            prepared.known = None
            self.passing.remove(statement_id)
            self.without_types.add(statement_id)
        has_given, prepared.has_given = prepared.has_given, False
        return has_given

    def with_types(self, payload: bytes) -> bytes:
        """Give an execution with the types that its client told before, if the source may not know them.

        Args:
            payload: Payload of a COM_STMT_EXECUTE command.
        """
        statement_id = self._id_in(payload)
        prepared = self._by_id.get(statement_id)
        if prepared is None or statement_id not in self.without_types:
            return payload
        self.without_types.discard(statement_id)
        count, has_names = (
            prepared.parameter_count,
            Capability.QUERY_ATTRIBUTES in self._capabilities,
        )
        at = _NULLS_AT + has_names + (count + 7) // 8
        # Attributes are counted, too, and come with the types of all.
        is_plain = not has_names or (
            count < _PACKED_ONE and payload[_NULLS_AT : _NULLS_AT + 1] == bytes((count,))
        )
        if not is_plain or prepared.types is None or payload[at : at + 1] != b"\0":
            return payload
        name = b"\0" if has_names else b""
        told = b"".join([each.to_bytes(2, "little") + name for each in prepared.types])
        return b"".join((payload[:at], b"\1", told, payload[at + 1 :]))

    def has_values(self, command: int, payload: bytes) -> bool:
        """True if the text that `executed` gives hangs on how values are logged."""
        prepared = self._find(_statement_id(payload))
        is_bulk = command == Command.STMT_BULK_EXECUTE
        return prepared is not None and prepared.parameter_count > 0 and not is_bulk

    def without_values(self, command: int, payload: bytes) -> tuple[ClientStatement, ...]:
        """Give the statement of an execution as it was prepared; none if the source has no such one.

        Args:
            command: Number of COM_STMT_EXECUTE or COM_STMT_BULK_EXECUTE.
            payload: The whole command, with its first byte.
        """
        prepared = self._find(_statement_id(payload))
        return () if prepared is None else (_unread(command, prepared),)

    def let_pass(
        self,
        payload: bytes,
        number_of: Callable[[str, bytes, Sequence[str]], int] | None = None,
    ) -> int:
        """Let executions pass that are like one that has passed, and was given by `executed`.

        Args:
            payload: Payload of a COM_STMT_EXECUTE command.
            number_of: Gives the number of the statement among those of all sessions, by its text, the types of
                its values, and the pieces of the text around them; None where only such statements of this
                session matter.

        Returns:
            That number; below 0 for none.
        """
        statement_id = _statement_id(payload)
        prepared = self._by_id.get(statement_id)
        if prepared is None or prepared.is_own or not statement_id:
            return -1
        count, types = prepared.parameter_count, prepared.types
        if count > PARAMETERS_MAX or (count and types is None):
            self.passing.remove(statement_id)
            return -1
        told = b"".join([each.to_bytes(2, "little") for each in types or ()])
        number = -1
        if number_of is not None and prepared.text:
            pieces = prepared.parts if count else (prepared.text,)
            number = number_of(prepared.text, told, pieces)
        self.passing.add(statement_id, KnownExecution(told, number))
        return number

    def reads_again(self, payload: bytes) -> bool:
        """True if `executed_again` reads an execution whose values are like those of this one.

        Args:
            payload: Payload of a COM_STMT_EXECUTE command that was given by `executed` or `executed_again`.
        """
        prepared = self._by_id.get(_statement_id(payload))
        if prepared is None or prepared.long_data or prepared.has_lost_data:
            return False
        if not prepared.parameter_count:
            return bool(prepared.text)
        return prepared.known is not None and prepared.known.types is prepared.types

    def executed(
        self, command: int, payload: bytes, style: LogStyle | None
    ) -> tuple[ClientStatement, ...]:
        """Give the statements that a COM_STMT_EXECUTE or COM_STMT_BULK_EXECUTE runs.

        The result is empty if the source has no such statement: it was never prepared, or is gone since.

        Args:
            command: Number of one of the two.
            payload: The whole command, with its first byte.
            style: Style in which the session's values are logged; None if that is not known.
        """
        prepared = self._find(_statement_id(payload))
        if prepared is None:
            return ()
        is_bulk, before = command == Command.STMT_BULK_EXECUTE, prepared.types
        text = None if is_bulk else self._text(prepared, payload, style)
        if prepared.types != before:
            # Executions without types have these from now on.
            self.passing.remove(self._id_in(payload))
        if text is not None:
            return (ClientStatement(text, is_prepared=True),)
        return (_unread(command, prepared),)

    def know(self, payload: bytes, reading: TextReading, style: LogStyle) -> None:
        """Read the values of the next executions as those of one that was given by `executed`.

        Args:
            payload: Payload of a COM_STMT_EXECUTE command.
            reading: The way in which the session reads its statements.
            style: Style in which the session's values are logged.
        """
        prepared = self._find(_statement_id(payload))
        if prepared is None or Capability.QUERY_ATTRIBUTES in self._capabilities:
            return
        types, known = prepared.types, prepared.known
        if not types or (known is not None and known.types is types and known.reading is reading):
            return
        is_simple = all(each in _INTEGERS or each in BYTES_TYPES for each in types)
        told = b"".join(each.to_bytes(2, "little") for each in types)
        values_at = _NULLS_AT + (prepared.parameter_count + 7) // 8
        is_known = is_simple and prepared.parts and not prepared.row_counts
        prepared.known = KnownValues(reading, style, types, told, values_at) if is_known else None

    def executed_again(
        self, payload: bytes, reading: TextReading | None
    ) -> tuple[ClientStatement, ...] | None:
        """Give the statement of an execution as `executed` does, if its values are like those of the last one.

        Args:
            payload: Payload of a COM_STMT_EXECUTE command.
            reading: The way in which the session reads its statements; None if that is not known.
        """
        prepared = self._by_id.get(_statement_id(payload))
        known = None if prepared is None else prepared.known
        if prepared is None or known is None or known.reading is not reading:
            return (
                None if prepared is None else self._without_parameters(prepared, payload, reading)
            )
        if prepared.long_data or prepared.has_lost_data or known.types is not prepared.types:
            return None
        at = known.values_at
        if any(payload[_NULLS_AT:at]) or at >= len(payload):
            return None
        at += 1
        if payload[at - 1]:
            if payload[at - 1] != 1 or not payload.startswith(known.told, at):
                return None
            at += len(known.told)
        texts, style, end = prepared.parts, known.style, len(payload)
        parts = [texts[0]]
        for place, code in enumerate(known.types, 1):
            read = _INTEGERS.get(code)
            if read is None:
                length = payload[at] if at < end else _PACKED_ONE
                at += 1 + length
                literal = (
                    None if length >= _PACKED_ONE else logged(payload[at - length : at], style)
                )
                if literal is None:
                    return None
                parts += (text_of(literal), texts[place])
            else:
                size = INTEGER_LENGTHS[code & ~UNSIGNED]
                if at + size > end:
                    return None
                parts += (str(read(payload, at)[0]), texts[place])
                at += size
        # As `ClientStatement(text, is_prepared=True)`, in a third of the time.
        statement = tuple.__new__(ClientStatement, ("".join(parts), True, True, False))
        return None if at > end else (statement,)

    def _without_parameters(
        self, prepared: PreparedStatement, payload: bytes, reading: TextReading | None
    ) -> tuple[ClientStatement, ...] | None:
        """Give the statement of an execution that takes no values, as of `executed_again`."""
        if prepared.parameter_count or len(payload) != _NULLS_AT or payload[_FLAGS_AT]:
            return None
        if not (prepared.is_read_alike or (reading is not None and prepared.reading == reading)):
            return None
        if prepared.is_own or prepared.has_lost_data or prepared.long_data:
            return None
        text = prepared.text
        return (tuple.__new__(ClientStatement, (text, True, True, False)),) if text else None

    def is_read_otherwise(self, payload: bytes, reading: TextReading | None) -> bool | None:
        """True if the statement of an execution was read in another way than the session reads now.

        Args:
            payload: Payload of a COM_STMT_EXECUTE or COM_STMT_BULK_EXECUTE.
            reading: The way in which the session reads; None if that is not known.

        Returns:
            None where the session's reading would have to be known.
        """
        prepared = self._find(_statement_id(payload))
        if prepared is None or prepared.is_read_alike:
            return False
        return None if reading is None else prepared.reading != reading

    def is_long(self, payload: bytes) -> bool:
        """True if it takes long to put the values of an execution into its text."""
        prepared = self._find(_statement_id(payload))
        if prepared is None:
            return False
        given = sum(map(len, prepared.long_data.values()))
        return len(prepared.text) + len(payload) + given > LONG

    def text(self, payload: bytes) -> str:
        """Give the text of an execution's statement; empty if that is not known, or takes values.

        Args:
            payload: Payload of a COM_STMT_EXECUTE command.
        """
        prepared = self._find(_statement_id(payload))
        return "" if prepared is None or prepared.parameter_count else prepared.text

    def text_of(self, statement_id: int) -> str:
        """Give the text of a statement as it was prepared; empty if that is not known."""
        prepared = self._find(statement_id)
        return "" if prepared is None else prepared.text

    def own(self, payload: bytes) -> str | None:
        """Give the text of an execution's statement, if binlane answers it.

        Args:
            payload: Payload of a COM_STMT_EXECUTE command.
        """
        prepared = self._find(_statement_id(payload))
        return prepared.text if prepared is not None and prepared.is_own else None

    def _id_in(self, payload: bytes) -> int:
        statement_id = _statement_id(payload)
        return self._last if statement_id == LAST else statement_id

    def _find(self, statement_id: int) -> PreparedStatement | None:
        return self._by_id.get(self._last if statement_id == LAST else statement_id)

    def _text(
        self, prepared: PreparedStatement, payload: bytes, style: LogStyle | None
    ) -> str | None:
        """A statement with its values; None where that cannot be told."""
        long_data, prepared.long_data = prepared.long_data, {}
        prepared.has_given = bool(long_data) or prepared.has_lost_data
        if prepared.has_lost_data:
            prepared.has_lost_data, prepared.types = False, None
            return None
        try:
            execution = Execution.decode(
                payload,
                parameter_count=prepared.parameter_count,
                types=prepared.types,
                given=long_data.keys(),
                capabilities=self._capabilities,
            )
        except UnsupportedError:
            # Types that were told with this one hold for later ones, and are not known.
            prepared.types = None
            return None
        except CodecError:
            return None  # the source says what it thinks of it
        if not prepared.parameter_count:
            return prepared.text or None
        prepared.types = execution.types
        if prepared.unread is not None:
            reading, prepared.unread = prepared.unread, None
            _find_parameters(prepared, reading)
        if not prepared.parts or style is None:
            return None
        parts = [prepared.parts[0]]
        for index, value in enumerate(execution.values):
            given = bytes(long_data[index]) if index in long_data else value
            counts = index in prepared.row_counts
            literal = _row_count(given) if counts else logged(given, style)
            if literal is None:
                return None
            parts += (text_of(literal), prepared.parts[index + 1])
        return "".join(parts)


def _unread(command: int, prepared: PreparedStatement) -> ClientStatement:
    is_bulk = command == Command.STMT_BULK_EXECUTE
    return ClientStatement(prepared.text, is_prepared=True, is_complete=False, is_bulk=is_bulk)


def _statement_id(payload: bytes) -> int:
    return int.from_bytes(payload[1:5], "little")


def _row_count(value: Value) -> bytes | None:
    """The number that a server makes of a value behind LIMIT; None where that is not known."""
    if isinstance(value, float) and not value.is_integer():
        return None
    number = int(value) if isinstance(value, int | float) else -1
    return b"%d" % number if number in _ROW_COUNT_VALUES else None


def _find_parameters(prepared: PreparedStatement, reading: TextReading) -> None:
    """Find the places of a statement's values, if there are as many as the source says."""
    charset = reading.character_set
    text = read_text(bytes_of(prepared.text), charset)
    if text is None:
        return
    try:
        tokens = read_tokens(text, reading.dialect)
    except SqlSyntaxError:
        return
    words, starts = tokens.words, tokens.starts
    places = [
        index
        for index, kind in enumerate(tokens.kinds)
        if kind is TokenKind.OPERATOR and words[index] == "?"
    ]
    if len(places) != prepared.parameter_count:
        return
    ends = [0, *(starts[place] + 1 for place in places)]
    prepared.parts = [
        text_of(written_text(text[start:end], charset) or b"")
        for start, end in zip(ends, [*(starts[place] for place in places), len(text)], strict=True)
    ]
    prepared.row_counts = frozenset(
        number for number, place in enumerate(places) if _is_row_count(words, place)
    )


def _is_row_count(words: Sequence[str], place: int) -> bool:
    """True if a value stands behind LIMIT or OFFSET, alone or as the second of two."""
    before = words[max(place - 3, 0) : place]
    return before[-1:] != [] and (
        before[-1] in _ROW_COUNTS or (before[-1] == "," and before[0] == "LIMIT")
    )
