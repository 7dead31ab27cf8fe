"""COM_STMT_EXECUTE: a prepared statement's values in binary form.

Source: MariaDB 10.11 sql/sql_prepare.cc, insert_params; MySQL 9.7 sql/protocol_classic.cc,
parse_packet.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from struct import Struct
from types import MappingProxyType
from typing import Final, NamedTuple, Self

from binlane.errors import CodecError, UnsupportedError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.packets.flags import NO_CAPABILITIES, Capability, Command
from binlane.log.codec.packets.framing import encode_packed_bytes, packed_bytes
from binlane.log.codec.types import ColumnType

_HEAD: Final = Struct("<BIBI")
UNSIGNED: Final = 0x8000
"""Added to the type of an integer without sign."""
_HAS_COUNT: Final = 0x08
_READ_ONLY_CURSOR: Final = 0x01
"""The only flag of a cursor that servers look at."""
FLAGS_END: Final = 6
_DATE: Final = Struct("<HBB")
_CLOCK: Final = Struct("<BBB")
_TIME_HEAD: Final = Struct("<BI")
_FLOAT: Final = Struct("<f")
_DOUBLE: Final = Struct("<d")
_MICROSECONDS: Final = Struct("<I")


def opens_cursor(payload: bytes) -> bool:
    """True if a command, not empty, is a COM_STMT_EXECUTE whose rows shall be fetched.

    Its first `FLAGS_END` bytes are enough.
    """
    if payload[0] != Command.STMT_EXECUTE or len(payload) < FLAGS_END:
        return False
    return bool(payload[FLAGS_END - 1] & _READ_ONLY_CURSOR)


class DecimalValue(NamedTuple):
    """A value of type DECIMAL.

    Attributes:
        text: The number as the client wrote it.
    """

    text: bytes


class DateValue(NamedTuple):
    """A DATE, its parts in any range."""

    year: int = 0
    month: int = 0
    day: int = 0


class DatetimeValue(NamedTuple):
    """A DATETIME or TIMESTAMP, its parts in any range."""

    year: int = 0
    month: int = 0
    day: int = 0
    hour: int = 0
    minute: int = 0
    second: int = 0
    microsecond: int = 0


class TimeValue(NamedTuple):
    """A TIME, its parts in any range."""

    is_negative: bool = False
    days: int = 0
    hour: int = 0
    minute: int = 0
    second: int = 0
    microsecond: int = 0


Value = int | float | bytes | DecimalValue | DateValue | DatetimeValue | TimeValue | None
"""The value of a parameter; text and other bytes are bytes, None is NULL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """COM_STMT_EXECUTE.

    Attributes:
        statement_id: The number of the prepared statement.
        flags: The kind of cursor that is to be opened.
        types: The types of the values: `ColumnType`, with 0x8000 for unsigned integers.
        values: Values, as many as there are types, without those that were sent before (None).
        sends_types: The packet has the types; if not they are those of the execution before.
    """

    statement_id: int
    flags: int = 0
    types: Sequence[int] = ()
    values: Sequence[Value] = ()
    sends_types: bool = True

    @classmethod
    def decode(
        cls,
        payload: bytes,
        *,
        parameter_count: int,
        types: Sequence[int] | None = None,
        given: Collection[int] = (),
        capabilities: Capability = NO_CAPABILITIES,
    ) -> Self:
        """Read the command; query attributes are left out.

        Args:
            payload: The packet with its command byte.
            parameter_count: The number of the statement's parameters.
            types: The types of the execution before; None if there was none.
            given: Numbers of the parameters whose values were sent before, which are not here.
            capabilities: The capabilities that the connection has agreed on.

        Raises:
            UnsupportedError: If a value has a type that is not known.
            CodecError: If this is no such command.
        """
        reader = Reader(payload)
        number, statement_id, flags, _ = reader.unpack(_HEAD)
        if number != Command.STMT_EXECUTE:
            raise CodecError(f"command 0x{number:02X} is no STMT_EXECUTE")
        has_names = Capability.QUERY_ATTRIBUTES in capabilities
        count = parameter_count
        if has_names and (count or flags & _HAS_COUNT):
            count = reader.packed_int()
        if not count:
            return cls(statement_id=statement_id, flags=flags)
        null_bits = reader.take((count + 7) // 8)
        sends_types = bool(reader.u8())
        if sends_types:
            types = _read_types(reader, count, has_names=has_names)[:parameter_count]
        if types is None or len(types) < parameter_count:
            raise CodecError("values come without their types", offset=reader.offset)
        values: list[Value] = []
        for index, type_code in enumerate(types):
            if index in given or null_bits[index // 8] >> index % 8 & 1:
                values.append(None)
            else:
                values.append(_read_value(reader, type_code))
        return cls(
            statement_id=statement_id,
            flags=flags,
            types=types,
            values=values,
            sends_types=sends_types,
        )

    def encode(self) -> bytes:
        """The payload, without query attributes."""
        head = _HEAD.pack(Command.STMT_EXECUTE, self.statement_id, self.flags, 1)
        if not self.types:
            return head
        null_bits = bytearray((len(self.types) + 7) // 8)
        values: list[bytes] = []
        for index, (type_code, value) in enumerate(zip(self.types, self.values, strict=True)):
            if value is None:
                null_bits[index // 8] |= 1 << index % 8
            else:
                values.append(encode_value(type_code, value))
        types = b"".join(each.to_bytes(2, "little") for each in self.types)
        sent = b"\1" + types if self.sends_types else b"\0"
        return b"".join((head, null_bits, sent, *values))


def _read_types(reader: Reader, count: int, *, has_names: bool) -> list[int]:
    types = []
    for _ in range(count):
        types.append(reader.u16())
        if has_names:
            packed_bytes(reader)
    return types


def _read_value(reader: Reader, type_code: int) -> Value:
    read = _READERS.get(type_code & ~UNSIGNED)
    if read is None:
        raise UnsupportedError(f"a value has type {type_code}", offset=reader.offset)
    return read(reader, type_code)


def _read_integer(length: int) -> Callable[[Reader, int], int]:
    def read(reader: Reader, type_code: int) -> int:
        signed = not type_code & UNSIGNED
        return int.from_bytes(reader.take(length), "little", signed=signed)

    return read


def _read_bytes(reader: Reader, type_code: int) -> bytes:
    del type_code
    return packed_bytes(reader)


def _read_decimal(reader: Reader, type_code: int) -> DecimalValue:
    del type_code
    return DecimalValue(packed_bytes(reader))


def _read_float(reader: Reader, type_code: int) -> float:
    del type_code
    return float(reader.unpack(_FLOAT)[0])


def _read_double(reader: Reader, type_code: int) -> float:
    del type_code
    return float(reader.unpack(_DOUBLE)[0])


def _read_date(reader: Reader, type_code: int) -> DateValue:
    del type_code
    return DateValue(*_parts(Reader(reader.take(reader.u8())), _DATE))


def _read_datetime(reader: Reader, type_code: int) -> DatetimeValue:
    del type_code
    part = Reader(reader.take(reader.u8()))
    return DatetimeValue(*_parts(part, _DATE, _CLOCK, _MICROSECONDS))


def _read_time(reader: Reader, type_code: int) -> TimeValue:
    del type_code
    part = Reader(reader.take(reader.u8()))
    if not part.remaining:
        return TimeValue()
    is_negative, *parts = _parts(part, _TIME_HEAD, _CLOCK, _MICROSECONDS)
    return TimeValue(bool(is_negative), *parts)


def _parts(reader: Reader, *layouts: Struct) -> list[int]:
    """Yield the fields of the given layouts."""
    found: list[int] = []
    for layout in layouts:
        if not reader.remaining:
            break
        found += reader.unpack(layout)
    return found


_READERS: Final[Mapping[int, Callable[[Reader, int], Value]]] = MappingProxyType(
    {
        ColumnType.TINY: _read_integer(1),
        ColumnType.SHORT: _read_integer(2),
        ColumnType.LONG: _read_integer(4),
        ColumnType.LONGLONG: _read_integer(8),
        ColumnType.FLOAT: _read_float,
        ColumnType.DOUBLE: _read_double,
        ColumnType.DECIMAL: _read_decimal,
        ColumnType.NEWDECIMAL: _read_decimal,
        ColumnType.DATE: _read_date,
        ColumnType.DATETIME: _read_datetime,
        ColumnType.TIMESTAMP: _read_datetime,
        ColumnType.TIME: _read_time,
        ColumnType.VARCHAR: _read_bytes,
        ColumnType.VAR_STRING: _read_bytes,
        ColumnType.STRING: _read_bytes,
        ColumnType.ENUM: _read_bytes,
        ColumnType.SET: _read_bytes,
        ColumnType.JSON: _read_bytes,
        ColumnType.TINY_BLOB: _read_bytes,
        ColumnType.MEDIUM_BLOB: _read_bytes,
        ColumnType.LONG_BLOB: _read_bytes,
        ColumnType.BLOB: _read_bytes,
    }
)
"""Types whose values both servers take, or one of them while the other refuses the command."""
BYTES_TYPES: Final = frozenset(code for code, read in _READERS.items() if read is _read_bytes)
"""Types of which a value is bytes behind their number."""
INTEGER_LENGTHS: Final[Mapping[int, int]] = MappingProxyType(
    {ColumnType.TINY: 1, ColumnType.SHORT: 2, ColumnType.LONG: 4, ColumnType.LONGLONG: 8}
)


def encode_value(type_code: int, value: Value) -> bytes:
    """The binary form of a value that is not NULL."""
    assert value is not None, "NULL is a bit"
    if isinstance(value, DecimalValue):
        return encode_packed_bytes(value.text)
    if isinstance(value, bytes):
        return encode_packed_bytes(value)
    if isinstance(value, int):
        length = INTEGER_LENGTHS[ColumnType(type_code & ~UNSIGNED)]
        return value.to_bytes(length, "little", signed=not type_code & UNSIGNED)
    if isinstance(value, float):
        return (_FLOAT if type_code == ColumnType.FLOAT else _DOUBLE).pack(value)
    if isinstance(value, DateValue):
        return encode_packed_bytes(_DATE.pack(*value))
    if isinstance(value, DatetimeValue):
        head = _DATE.pack(*value[:3])
    else:
        head = _TIME_HEAD.pack(*value[:2])
    clock = _CLOCK.pack(*value[-4:-1]) + _MICROSECONDS.pack(value.microsecond)
    return encode_packed_bytes(head + clock)
