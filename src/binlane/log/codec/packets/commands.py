"""Commands that binlane sends or answers itself: queries and replication.

Source: MariaDB 10.11 sql/sql_parse.cc, dispatch_command, and sql/repl_failsafe.cc, register_slave;
MySQL 9.7 for query attributes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct
from types import MappingProxyType
from typing import Final, Self

from binlane.errors import CodecError, UnsupportedError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.packets.flags import NO_CAPABILITIES, Capability, Command, DumpFlag
from binlane.log.codec.packets.framing import bytes_of, nul_bytes, packed_bytes, text_of
from binlane.log.codec.types import ColumnType

_DUMP: Final = Struct("<IHI")
_POSITION_MAX: Final = (1 << 32) - 1
_DUMP_GTID: Final = Struct("<HII")
_DUMP_GTID_TAIL: Final = Struct("<QI")
_REGISTER_TAIL: Final = Struct("<HII")
_UNSIGNED: Final = 0x8000
_COLLATION_LENGTH: Final = 2
_TEXT_TYPES: Final = frozenset(
    {
        ColumnType.DECIMAL,
        ColumnType.VARCHAR,
        ColumnType.BIT,
        ColumnType.JSON,
        ColumnType.NEWDECIMAL,
        ColumnType.ENUM,
        ColumnType.SET,
        ColumnType.TINY_BLOB,
        ColumnType.MEDIUM_BLOB,
        ColumnType.LONG_BLOB,
        ColumnType.BLOB,
        ColumnType.VAR_STRING,
        ColumnType.STRING,
        ColumnType.GEOMETRY,
    }
)
_FIXED_LENGTHS: Final = MappingProxyType(
    {
        ColumnType.NULL: 0,
        ColumnType.TINY: 1,
        ColumnType.SHORT: 2,
        ColumnType.YEAR: 2,
        ColumnType.LONG: 4,
        ColumnType.INT24: 4,
        ColumnType.FLOAT: 4,
        ColumnType.LONGLONG: 8,
        ColumnType.DOUBLE: 8,
    }
)
_TEMPORAL_TYPES: Final = frozenset(
    {ColumnType.DATE, ColumnType.TIME, ColumnType.DATETIME, ColumnType.TIMESTAMP}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeUser:
    """The used parts of COM_CHANGE_USER, a login on a connection that has one.

    Attributes:
        user: The account's name without a host.
        plugin: The plugin whose answer it has; empty where none is named.
    """

    user: str
    plugin: str

    @classmethod
    def decode(cls, payload: bytes, capabilities: Capability) -> Self:
        """Read the command; parts that old clients omit at its end are empty.

        Raises:
            TruncatedError: If it ends in the middle of the answer.
        """
        reader = Reader(payload)
        _expect(reader, Command.CHANGE_USER)
        user = text_of(nul_bytes(reader))
        plugin = b""
        if reader.remaining:
            if Capability.SECURE_CONNECTION in capabilities:
                reader.take(reader.u8())
            else:
                nul_bytes(reader)
            nul_bytes(reader)
            if reader.remaining > _COLLATION_LENGTH and Capability.PLUGIN_AUTH in capabilities:
                reader.take(_COLLATION_LENGTH)
                plugin = nul_bytes(reader)
        return cls(user=user, plugin=text_of(plugin))


def encode_query(statement: str | bytes, capabilities: Capability = NO_CAPABILITIES) -> bytes:
    """Encode a COM_QUERY without attributes."""
    text = statement if isinstance(statement, bytes) else bytes_of(statement)
    attributes = b"\x00\x01" if Capability.QUERY_ATTRIBUTES in capabilities else b""
    return bytes((Command.QUERY,)) + attributes + text


def decode_query(payload: bytes, capabilities: Capability) -> bytes:
    """The statement of a COM_QUERY, in the session's character set.

    Args:
        payload: The packet with its command byte.
        capabilities: The capabilities that the connection has agreed on; with QUERY_ATTRIBUTES,
            values stand first.

    Raises:
        CodecError: If the attributes before the statement cannot be read.
    """
    reader = Reader(payload)
    _expect(reader, Command.QUERY)
    if Capability.QUERY_ATTRIBUTES in capabilities:
        _skip_attributes(reader)
    return reader.rest()


def _skip_attributes(reader: Reader) -> None:
    count = reader.packed_int()
    reader.packed_int()
    if not count:
        return
    null_bits = reader.take((count + 7) // 8)
    if not reader.u8():
        raise CodecError("query attributes come without their types", offset=reader.offset)
    types = []
    for _ in range(count):
        types.append(reader.u16() & ~_UNSIGNED)
        packed_bytes(reader)
    for index, type_code in enumerate(types):
        if not null_bits[index // 8] >> index % 8 & 1:
            _skip_value(reader, type_code)


def _skip_value(reader: Reader, type_code: int) -> None:
    if type_code in _TEXT_TYPES:
        packed_bytes(reader)
    elif type_code in _TEMPORAL_TYPES:
        reader.take(reader.u8())
    else:
        try:
            length = _FIXED_LENGTHS[ColumnType(type_code)]
        except (KeyError, ValueError):
            raise UnsupportedError(
                f"a query attribute has type {type_code}", offset=reader.offset
            ) from None
        reader.take(length)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterSlave:
    """COM_REGISTER_SLAVE: how a replica introduces itself, for SHOW SLAVE HOSTS.

    Attributes:
        server_id: The server id of the replica itself.
        host: The value of its `report_host`.
        user: The value of its `report_user`.
        password: The value of its `report_password`.
        port: The value of its `report_port`.
        rank: A number that no server uses.
        source_id: A number that no server uses.
    """

    server_id: int
    host: str = ""
    user: str = ""
    password: str = field(default="", repr=False)
    port: int = 0
    rank: int = 0
    source_id: int = 0

    @classmethod
    def decode(cls, payload: bytes) -> Self:
        """Read the command."""
        reader = Reader(payload)
        _expect(reader, Command.REGISTER_SLAVE)
        server_id = reader.u32()
        host, user, password = (text_of(reader.take(reader.u8())) for _ in range(3))
        port, rank, source_id = reader.unpack(_REGISTER_TAIL)
        reader.finish()
        return cls(
            server_id=server_id,
            host=host,
            user=user,
            password=password,
            port=port,
            rank=rank,
            source_id=source_id,
        )

    def encode(self) -> bytes:
        """Exact inverse."""
        texts = map(bytes_of, (self.host, self.user, self.password))
        return b"".join(
            (
                bytes((Command.REGISTER_SLAVE,)),
                self.server_id.to_bytes(4, "little"),
                *(bytes((len(text),)) + text for text in texts),
                _REGISTER_TAIL.pack(self.port, self.rank, self.source_id),
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BinlogDump:
    """COM_BINLOG_DUMP: send the log from here on.

    Attributes:
        position: Byte offset in the file.
        server_id: The replica's own; 0 from tools that only read.
        file: Empty for the first one, and by GTID.
    """

    position: int
    flags: DumpFlag
    server_id: int
    file: str

    @classmethod
    def decode(cls, payload: bytes) -> Self:
        """Read the command; parts that old clients omit at its end are empty."""
        reader = Reader(payload)
        _expect(reader, Command.BINLOG_DUMP)
        position, flags, server_id = reader.unpack(_DUMP)
        file, _, _ = reader.rest().partition(b"\0")
        return cls(
            position=position, flags=DumpFlag(flags), server_id=server_id, file=text_of(file)
        )

    def encode(self) -> bytes:
        """Return the payload.

        Raises:
            CodecError: If the position has more than the four bytes that there are for it.
        """
        if self.position > _POSITION_MAX:
            raise CodecError(
                f"nobody can ask a server for position {self.position}: the command that does has "
                f"four bytes for it, up to {_POSITION_MAX}",
                hint="ask by GTID, or begin at the file's beginning",
            )
        fixed = _DUMP.pack(self.position, self.flags, self.server_id)
        return bytes((Command.BINLOG_DUMP,)) + fixed + bytes_of(self.file)


@dataclass(frozen=True, slots=True, kw_only=True)
class BinlogDumpGtid:
    """COM_BINLOG_DUMP_GTID: send the log except the transactions of a GTID set (MySQL).

    Attributes:
        server_id: The replica's own; 0 from tools that only read.
        done: The set, as PREVIOUS_GTIDS holds it.
        file: The file to begin with; empty for the first one.
        position: A byte offset in that file.
    """

    flags: DumpFlag
    server_id: int
    done: bytes = field(repr=False)
    file: str = ""
    position: int = 4

    @classmethod
    def decode(cls, payload: bytes) -> Self:
        """Read the command; parts that old clients omit at its end are empty."""
        reader = Reader(payload)
        _expect(reader, Command.BINLOG_DUMP_GTID)
        flags, server_id, length = reader.unpack(_DUMP_GTID)
        file, _, _ = reader.take(length).partition(b"\0")
        position, size = reader.unpack(_DUMP_GTID_TAIL)
        done = bytes(reader.take(size))
        return cls(
            position=position,
            flags=DumpFlag(flags),
            server_id=server_id,
            file=text_of(file),
            done=done,
        )

    def encode(self) -> bytes:
        """Return the payload."""
        file = bytes_of(self.file)
        return b"".join(
            (
                bytes((Command.BINLOG_DUMP_GTID,)),
                _DUMP_GTID.pack(self.flags, self.server_id, len(file)),
                file,
                _DUMP_GTID_TAIL.pack(self.position, len(self.done)),
                self.done,
            )
        )


def _expect(reader: Reader, command: Command) -> None:
    found = reader.u8()
    if found != command:
        raise CodecError(f"command 0x{found:02X} is no {command.name}")
