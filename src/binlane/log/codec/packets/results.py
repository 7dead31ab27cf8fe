"""Text result sets: column definitions, rows, and the reply to a query put together.

Without DEPRECATE_EOF an EOF packet stands after the columns and after the rows, with it an OK packet
after the rows; MariaDB's extended capabilities add fields to the columns and their count.

Source: MariaDB 10.11 sql/protocol.cc, send_result_set_metadata, store_field_metadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import Final, Self

from binlane.errors import CodecError, UnsupportedError
from binlane.log.codec.buffer import Reader, encode_packed_int
from binlane.log.codec.charsets import charset_of, text_decoder
from binlane.log.codec.packets.flags import (
    NO_EXTENSIONS,
    Capability,
    ExtendedCapability,
    ServerStatus,
)
from binlane.log.codec.packets.framing import (
    FRAME_PAYLOAD_MAX,
    bytes_of,
    encode_packed_bytes,
    packed_bytes,
    text_of,
)
from binlane.log.codec.packets.replies import (
    EOF_MARK,
    EofPacket,
    ErrPacket,
    OkPacket,
    is_eof,
    is_error,
    is_ok,
)
from binlane.log.codec.types import ColumnType

NULL_MARK: Final = 0xFB
LOCAL_INFILE_MARK: Final = 0xFB
UTF8MB4_COLLATION: Final = 45
BINARY_COLLATION: Final = 63
_COLUMN_FIXED: Final = Struct("<HIBHBH")
_COLUMN_FIXED_LENGTH: Final = 0x0C
_ROW_NULL_OFFSET: Final = 2
_LONGLONG: Final = Struct("<q")
_DOUBLE: Final = Struct("<d")

Cell = bytes | str | int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDefinition:
    """Head of one column of a result set.

    Attributes:
        name: The name that the client shows.
        original_name: The name of the table's column.
        database: The table's database, empty for an expression.
        table: The table's alias in the statement.
        original_table: The table's name in the database.
        character_set: Collation id, 63 for numbers and bytes.
        length: The display width in bytes.
        type_code: The `ColumnType` of the values.
        flags: The flags of the column.
        decimals: Fraction digits, 31 for text of any length.
        catalog: The catalog, which is always `def`.
    """

    name: str
    original_name: str = ""
    database: str = ""
    table: str = ""
    original_table: str = ""
    character_set: int = UTF8MB4_COLLATION
    length: int = 1024
    type_code: int = ColumnType.VAR_STRING
    flags: int = 0
    decimals: int = 0
    catalog: str = "def"

    @classmethod
    def integer(cls, name: str) -> Self:
        """A column of whole numbers."""
        return cls(
            name=name, character_set=BINARY_COLLATION, length=20, type_code=ColumnType.LONGLONG
        )

    @classmethod
    def decode(cls, payload: bytes, extended: ExtendedCapability = NO_EXTENSIONS) -> Self:
        """Read a column definition; MariaDB's extended type information is left out."""
        reader = Reader(payload)
        catalog, database, table, original_table, name, original_name = (
            text_of(packed_bytes(reader)) for _ in range(6)
        )
        if ExtendedCapability.EXTENDED_METADATA in extended:
            packed_bytes(reader)
        fixed_length = reader.packed_int()
        if fixed_length != _COLUMN_FIXED_LENGTH:
            raise CodecError(f"a column definition says {fixed_length} where 12 is expected")
        character_set, length, type_code, flags, decimals, _ = reader.unpack(_COLUMN_FIXED)
        reader.finish()
        return cls(
            name=name,
            original_name=original_name,
            database=database,
            table=table,
            original_table=original_table,
            character_set=character_set,
            length=length,
            type_code=type_code,
            flags=flags,
            decimals=decimals,
            catalog=catalog,
        )

    def encode(self, extended: ExtendedCapability = NO_EXTENSIONS) -> bytes:
        """Return the payload."""
        names = (
            self.catalog,
            self.database,
            self.table,
            self.original_table,
            self.name,
            self.original_name,
        )
        fixed = _COLUMN_FIXED.pack(
            self.character_set, self.length, self.type_code, self.flags, self.decimals, 0
        )
        has_metadata = ExtendedCapability.EXTENDED_METADATA in extended
        return b"".join(
            (
                *(encode_packed_bytes(bytes_of(name)) for name in names),
                b"\0" if has_metadata else b"",
                encode_packed_bytes(fixed),
            )
        )


def encode_row(cells: Iterable[Cell]) -> bytes:
    """One row of a text result set."""
    return b"".join(map(_encode_cell, cells))


def _encode_cell(cell: Cell) -> bytes:
    if cell is None:
        return bytes((NULL_MARK,))
    return encode_packed_bytes(cell if isinstance(cell, bytes) else bytes_of(str(cell)))


def encode_binary_row(columns: Sequence[ColumnDefinition], cells: Sequence[Cell]) -> bytes:
    """One row of the result set of a prepared statement: numbers are binary, all else is text."""
    null_bits = bytearray((len(cells) + _ROW_NULL_OFFSET + 7) // 8)
    values = []
    for index, (column, cell) in enumerate(zip(columns, cells, strict=True), _ROW_NULL_OFFSET):
        if cell is None:
            null_bits[index // 8] |= 1 << index % 8
        elif column.type_code == ColumnType.LONGLONG:
            values.append(_LONGLONG.pack(int(cell)))
        elif column.type_code == ColumnType.DOUBLE:
            values.append(_DOUBLE.pack(float(cell)))
        else:
            values.append(_encode_cell(cell))
    return b"".join((b"\0", null_bits, *values))


def decode_row(payload: bytes, column_count: int) -> tuple[bytes | None, ...]:
    """Return the cells of one row of a text result set; NULL is None."""
    reader = Reader(payload)
    cells: list[bytes | None] = []
    for _ in range(column_count):
        start = reader.offset
        if reader.u8() == NULL_MARK:
            cells.append(None)
            continue
        reader.offset = start
        cells.append(packed_bytes(reader))
    reader.finish()
    return tuple(cells)


@dataclass(frozen=True, slots=True)
class ResultSet:
    """A text result set.

    Attributes:
        columns: The names of the columns.
        rows: Cells as the server sent them, text in the character set that its head names; NULL is
            None.
        status: The status of the session after it.
        heads: The columns with their types, where a server sent them.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[bytes | None, ...], ...]
    status: ServerStatus
    heads: tuple[ColumnDefinition, ...] = field(default=(), compare=False)

    def texts(self) -> tuple[tuple[str | None, ...], ...]:
        """The rows as text."""
        return tuple(
            tuple(None if cell is None else text_of(cell) for cell in row) for row in self.rows
        )

    def cell_text(self, column: int) -> str | None:
        """Return a cell of the only row, decoded as its column's head says.

        Args:
            column: The place of the column, from 0 on.

        Raises:
            ValueError: If there is not one row with heads, or the cell is no text.
        """
        if len(self.rows) != 1 or len(self.heads) != len(self.rows[0]):
            raise ValueError(f"{len(self.rows)} rows where one was asked for")
        cell = self.rows[0][column]
        if cell is None:
            return None
        charset = charset_of(self.heads[column].character_set)
        decode = None if charset is None else text_decoder(charset)
        return digits_of(cell) if decode is None else decode(cell)


def digits_of(cell: bytes) -> str:
    """Return a number as text in any character set: its digits are ASCII's, except for NULs."""
    return cell.replace(b"\0", b"").decode("ascii")


def encode_heads(
    columns: Sequence[ColumnDefinition],
    *,
    capabilities: Capability,
    extended: ExtendedCapability = NO_EXTENSIONS,
    status: ServerStatus = ServerStatus.AUTOCOMMIT,
) -> list[bytes]:
    """The payloads before the rows of a text result set.

    Args:
        columns: The columns' heads, at least one.
        capabilities: The capabilities that the connection has agreed on.
        extended: MariaDB's own capabilities among them.
        status: The status of the session.
    """
    caches = ExtendedCapability.CACHE_METADATA in extended
    payloads = [encode_packed_int(len(columns)) + (b"\x01" if caches else b"")]
    payloads += [column.encode(extended) for column in columns]
    if Capability.DEPRECATE_EOF not in capabilities:
        payloads.append(EofPacket(status=status).encode())
    return payloads


def encode_end_of_rows(
    *,
    capabilities: Capability,
    status: ServerStatus = ServerStatus.AUTOCOMMIT,
    warnings: int = 0,
) -> bytes:
    """The payload behind the rows of a text result set; arguments as `encode_heads`."""
    if Capability.DEPRECATE_EOF in capabilities:
        return OkPacket(status=status, warnings=warnings, ends_rows=True).encode(capabilities)
    return EofPacket(status=status, warnings=warnings).encode()


class ReplyReader:
    """Puts the packets of one reply to COM_QUERY together."""

    def __init__(
        self, capabilities: Capability, extended: ExtendedCapability = NO_EXTENSIONS
    ) -> None:
        self._capabilities = capabilities
        self._extended = extended
        self._column_count = 0
        self._columns: list[ColumnDefinition] = []
        self._awaits_eof = False
        self._rows: list[tuple[bytes | None, ...]] = []

    def feed(self, payload: bytes) -> OkPacket | ErrPacket | ResultSet | None:
        """Take the next packet; give the reply once it is whole.

        Raises:
            UnsupportedError: If the server asks for a local file.
            CodecError: If the packets make no reply.
        """
        if is_error(payload):
            return ErrPacket.decode(payload)
        if not self._column_count:
            return self._head(payload)
        if len(self._columns) < self._column_count:
            self._columns.append(ColumnDefinition.decode(payload, self._extended))
            self._awaits_eof = Capability.DEPRECATE_EOF not in self._capabilities
            return None
        if self._awaits_eof:
            EofPacket.decode(payload)
            self._awaits_eof = False
            return None
        if payload[:1] == bytes((EOF_MARK,)) and self._ends_rows(payload):
            names = tuple(column.name for column in self._columns)
            return ResultSet(
                names, tuple(self._rows), self._status(payload), heads=tuple(self._columns)
            )
        self._rows.append(decode_row(payload, self._column_count))
        return None

    def _head(self, payload: bytes) -> OkPacket | None:
        if is_ok(payload):
            return OkPacket.decode(payload)
        if payload[:1] == bytes((LOCAL_INFILE_MARK,)):
            raise UnsupportedError("the server asks for a local file, which binlane never sends")
        reader = Reader(payload)
        self._column_count = reader.packed_int()
        if ExtendedCapability.CACHE_METADATA in self._extended:
            reader.u8()
        reader.finish()
        return None

    def _ends_rows(self, payload: bytes) -> bool:
        # A row may begin with 0xFE too: its first cell is then at least 16 MB long.
        if Capability.DEPRECATE_EOF in self._capabilities:
            return len(payload) < FRAME_PAYLOAD_MAX
        return is_eof(payload)

    def _status(self, payload: bytes) -> ServerStatus:
        if Capability.DEPRECATE_EOF in self._capabilities:
            return OkPacket.decode(payload).status
        return EofPacket.decode(payload).status
