"""Status variables of a QUERY event: the context that its statement ran in.

They are a run of code and value, in no fixed order. Codes from 12 are MySQL's and those from 128
MariaDB's, so that no code means two things.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from struct import Struct
from types import MappingProxyType
from typing import Any, Final

from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.charsets import charset_of, text_decoder
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.types import UNDONE_ALTER, GtidExtraFlag

DDL_LOGGED_WITH_XID: Final = 17
"""Code of what MySQL's DDL has that is committed together with its log: its transaction's number."""
_SQL_MODE: Final = 1
_CHARSET: Final = 4
_INVOKER: Final = 11
_DATABASES_MAX: Final = 16
_TOO_MANY_DATABASES: Final = 254
GTID_FLAGS: Final = 130
_HEADS_MAX: Final = 512
_LENGTHS_MAX: Final = 8
_HEADS: Final[dict[int, dict[bytes, tuple[int, int]]]] = {}
"""SQL modes and collations by the bytes up to the last of them, by their number."""
_ALTER_END: Final = GtidExtraFlag.COMMIT_ALTER | GtidExtraFlag.ROLLBACK_ALTER


@dataclass(frozen=True, slots=True)
class StatusVar:
    """One status variable of a Query event.

    Attributes:
        code: The code of the variable as written.
        name: The name in the servers' source, without `Q_` and `_CODE`; `UNKNOWN` for a code that
            binlane does not know, which takes everything to the end.
        value: An int, a str, a tuple of several; None for more databases than are named; bytes
            for UNKNOWN.
    """

    code: int
    name: str
    value: object


def decode_status_vars(data: bytes) -> tuple[StatusVar, ...]:
    """All variables in the order written.

    Raises:
        TruncatedError: If the bytes end inside a value.
        CodecError: If a value is impossible.

    Source: MariaDB 10.11 sql/log_event.cc and MySQL 9.7 statement_events.cpp.
    """
    return tuple(_variables(Reader(data)))


def encode_status_vars(variables: Sequence[StatusVar]) -> bytes:
    """Exact inverse."""
    return b"".join(
        bytes((variable.code,)) + _LAYOUTS.get(variable.code, _UNKNOWN).encode(variable.value)
        for variable in variables
    )


def query_text(event: QueryEvent) -> str:
    """The statement, decoded with its session's character set.

    Where that fails, or none is written, it is read as UTF-8, and what is none becomes lone
    surrogates, so that nothing is lost.
    """
    collation = client_collation(event)
    client = None if collation is None else charset_of(collation)
    decode = None if client is None else text_decoder(client)
    if decode is not None:
        try:
            return decode(event.query)
        except UnicodeDecodeError:
            pass
    return event.query.decode("utf-8", "surrogateescape")


def client_collation(event: QueryEvent) -> int | None:
    """The id of the client's character set; None if not written."""
    if (head := _head(event.status_vars)) is not None:
        return head[1]
    charsets: Any = _value(event, _CHARSET)
    return None if charsets is None else int(charsets[0])


def sql_mode(event: QueryEvent) -> int | None:
    """The SQL mode's bits, whose meaning differs between flavors from bit 32; None if not written."""
    if (head := _head(event.status_vars)) is not None:
        return head[0]
    mode = _value(event, _SQL_MODE)
    return mode if isinstance(mode, int) else None


def invoker(event: QueryEvent) -> tuple[str, str] | None:
    """User and host of the account that ran the statement; None where that is not written."""
    value: Any = _value(event, _INVOKER)
    return value if isinstance(value, tuple) else None


def is_undone(event: QueryEvent) -> bool:
    """True if the statement begins a two-phase ALTER, or rolls it back: it has no effect."""
    if GTID_FLAGS not in event.status_vars:
        return False
    value: Any = _value(event, GTID_FLAGS)
    return isinstance(value, tuple) and bool(value[0] & UNDONE_ALTER)


def _head(data: bytes) -> tuple[int, int] | None:
    """The SQL mode and the client's collation, with which most contexts begin; None if not both are there.

    The beginnings are few, while what stands behind them, such as the numbers of transactions, is always another.
    """
    for length, heads in tuple(_HEADS.items()):  # other threads add to it
        found = heads.get(data[:length])
        if found is not None:
            return found
    reader, values = Reader(data), dict[int, Any]()
    try:
        for variable in _variables(reader):
            values.setdefault(variable.code, variable.value)
            if _SQL_MODE in values and _CHARSET in values:
                break
        else:
            return None
    except CodecError:
        return None  # who asks for one of them may find it before the damage
    head = int(values[_SQL_MODE]), int(values[_CHARSET][0])
    if len(_HEADS) >= _LENGTHS_MAX or sum(map(len, _HEADS.values())) >= _HEADS_MAX:
        _HEADS.clear()
    _HEADS.setdefault(reader.offset, {})[data[: reader.offset]] = head
    return head


def _value(event: QueryEvent, code: int) -> object:
    for variable in _variables(Reader(event.status_vars)):
        if variable.code == code:
            return variable.value
    return None


def _variables(reader: Reader) -> Iterator[StatusVar]:
    while reader.remaining:
        code = reader.u8()
        layout = _LAYOUTS.get(code, _UNKNOWN)
        yield StatusVar(code, layout.name, layout.decode(reader))


@dataclass(frozen=True, slots=True)
class _Layout:
    """The binary form of one code's value; `encode` takes the result of `decode`."""

    name: str
    decode: Callable[[Reader], object]
    encode: Callable[[Any], bytes]


def _number(name: str, length: int) -> _Layout:
    return _Layout(
        name,
        lambda reader: int.from_bytes(reader.take(length), "little"),
        lambda value: int(value).to_bytes(length, "little"),
    )


def _numbers(name: str, layout: Struct) -> _Layout:
    return _Layout(name, lambda reader: reader.unpack(layout), lambda value: layout.pack(*value))


def _text(name: str, *, terminator: bytes = b"") -> _Layout:
    def decode(reader: Reader) -> str:
        text = _read_text(reader)
        _expect(reader, terminator)
        return text

    return _Layout(name, decode, lambda value: _write_text(value) + terminator)


def _read_text(reader: Reader) -> str:
    return reader.take(reader.u8()).decode("utf-8", "surrogateescape")


def _write_text(text: str) -> bytes:
    data = text.encode("utf-8", "surrogateescape")
    return bytes((len(data),)) + data


def _expect(reader: Reader, terminator: bytes) -> None:
    if reader.take(len(terminator)) != terminator:
        raise CodecError("no NUL stands after a text", offset=reader.offset - 1)


def _read_invoker(reader: Reader) -> tuple[str, str]:
    return _read_text(reader), _read_text(reader)


def _write_invoker(value: tuple[str, str]) -> bytes:
    return b"".join(map(_write_text, value))


def _read_databases(reader: Reader) -> tuple[str, ...] | None:
    """Names that end with NUL; None if there are more than 16, which the server does not name."""
    count = reader.u8()
    if count == _TOO_MANY_DATABASES:
        return None
    if count > _DATABASES_MAX:
        raise CodecError(f"{count} databases; {_DATABASES_MAX} have room", offset=reader.offset)
    return tuple(_read_terminated(reader) for _ in range(count))


def _read_terminated(reader: Reader) -> str:
    data = bytearray()
    while byte := reader.u8():
        data.append(byte)
    return data.decode("utf-8", "surrogateescape")


def _write_databases(value: tuple[str, ...] | None) -> bytes:
    if value is None:
        return bytes((_TOO_MANY_DATABASES,))
    names = (name.encode("utf-8", "surrogateescape") + b"\0" for name in value)
    return bytes((len(value),)) + b"".join(names)


def _read_gtid_flags(reader: Reader) -> tuple[int, ...]:
    """`GtidExtraFlag` bits, and the sequence of the START ALTER if they end one."""
    flags = reader.u8()
    return (flags, reader.u64()) if flags & _ALTER_END else (flags,)


def _write_gtid_flags(value: tuple[int, ...]) -> bytes:
    return bytes(value[:1]) + b"".join(number.to_bytes(8, "little") for number in value[1:])


def _read_collations(reader: Reader) -> tuple[tuple[int, int], ...]:
    """For each character set its compiled default collation and the chosen one."""
    return tuple((reader.u16(), reader.u16()) for _ in range(reader.u8()))


def _write_collations(value: tuple[tuple[int, int], ...]) -> bytes:
    return bytes((len(value),)) + b"".join(_PAIR.pack(*pair) for pair in value)


_PAIR: Final = Struct("<HH")
_UNKNOWN: Final = _Layout("UNKNOWN", Reader.rest, bytes)
_LAYOUTS: Final[Mapping[int, _Layout]] = MappingProxyType(
    {
        0: _number("FLAGS2", 4),
        _SQL_MODE: _number("SQL_MODE", 8),
        2: _text("CATALOG", terminator=b"\0"),
        3: _numbers("AUTO_INCREMENT", _PAIR),
        _CHARSET: _numbers("CHARSET", Struct("<HHH")),
        5: _text("TIME_ZONE"),
        6: _text("CATALOG_NZ"),
        7: _number("LC_TIME_NAMES", 2),
        8: _number("CHARSET_DATABASE", 2),
        9: _number("TABLE_MAP_FOR_UPDATE", 8),
        10: _number("MASTER_DATA_WRITTEN", 4),
        11: _Layout("INVOKER", _read_invoker, _write_invoker),
        12: _Layout("UPDATED_DB_NAMES", _read_databases, _write_databases),
        13: _number("MICROSECONDS", 3),
        14: _number("COMMIT_TS", 8),
        15: _numbers("COMMIT_TS2", Struct("<QQ")),
        16: _number("EXPLICIT_DEFAULTS_FOR_TIMESTAMP", 1),
        17: _number("DDL_LOGGED_WITH_XID", 8),
        18: _number("DEFAULT_COLLATION_FOR_UTF8MB4", 2),
        19: _number("SQL_REQUIRE_PRIMARY_KEY", 1),
        20: _number("DEFAULT_TABLE_ENCRYPTION", 1),
        21: _number("ENABLE_CASCADE_TRIGGERS", 1),
        128: _number("HRNOW", 3),
        129: _number("XID", 8),
        GTID_FLAGS: _Layout("GTID_FLAGS3", _read_gtid_flags, _write_gtid_flags),
        131: _Layout("CHARACTER_SET_COLLATIONS", _read_collations, _write_collations),
    }
)
