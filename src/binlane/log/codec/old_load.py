"""LOAD DATA before MySQL 5.0.3: one event with the statement's parts instead of its text."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Any, ClassVar, Final, Self

from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.format import Format

_HEAD: Final = Struct("<IIIBBI")
_ENDINGS: Final = 5
_NUL: Final = b"\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadEvent:
    """LOAD DATA as MySQL 3.23 and 4.0 wrote it.

    Attributes:
        thread_id: The connection id of the session.
        execution_time: Seconds from the start of the statement to its logging.
        lines_skipped: The n of IGNORE n LINES.
        endings: FIELDS TERMINATED BY, ENCLOSED BY, LINES TERMINATED BY, STARTING BY, ESCAPED BY.
        option_flags: 1 DUMPFILE, 2 OPTIONALLY ENCLOSED, 4 REPLACE, 8 IGNORE.
        empty_flags: Bits of the endings that are empty; only in the form with endings of one byte.
        field_names: Columns, each at most 255 bytes.
        table: The table's name without its database.
        file: The path of the file at the client or server.
    """

    has_long_endings: ClassVar[bool] = False

    thread_id: int
    execution_time: int
    lines_skipped: int
    endings: tuple[bytes, ...]
    option_flags: int
    empty_flags: int
    field_names: tuple[bytes, ...]
    table: bytes
    database: bytes
    file: bytes

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Read the lengths, then the parts that they count, and the file's name to the end."""
        del format_
        head = reader.unpack(_HEAD)
        return cls(**_read_parts(reader, head, has_long=cls.has_long_endings), file=reader.rest())

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        del format_
        return _head_bytes(self) + _part_bytes(self) + self.file


class NewLoadEvent(LoadEvent):
    """LOAD DATA as MySQL 4.1 wrote it, with endings of several bytes."""

    __slots__ = ()
    has_long_endings = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateFileEvent(LoadEvent):
    """LOAD DATA of MySQL 4.x with the first block of its file.

    Attributes:
        file_id: Number that EXEC_LOAD refers to.
        data: The bytes of the first block.
    """

    file_id: int
    data: bytes
    has_long_endings: ClassVar[bool] = True

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Read LOAD's head, the id, LOAD's parts with the file's name, and the block."""
        del format_
        head, file_id = reader.unpack(_HEAD), reader.u32()
        parts = _read_parts(reader, head, has_long=True)
        return cls(**parts, file=_read_terminated(reader), file_id=file_id, data=reader.rest())

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        del format_
        own = self.file_id.to_bytes(4, "little")
        return _head_bytes(self) + own + _part_bytes(self) + self.file + _NUL + self.data


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecLoadEvent:
    """Loads the file whose blocks came before (MySQL 4.x).

    Attributes:
        file_id: The number of the file.
    """

    file_id: int

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Read the id of the file."""
        del format_
        return cls(file_id=reader.u32())

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        del format_
        return self.file_id.to_bytes(4, "little")


def _read_parts(reader: Reader, head: tuple[int, ...], *, has_long: bool) -> dict[str, Any]:
    thread_id, execution_time, lines_skipped, table_length, database_length, count = head
    if has_long:
        endings = tuple(reader.take(reader.u8()) for _ in range(_ENDINGS))
    else:
        endings = tuple(reader.take(1) for _ in range(_ENDINGS))
    option_flags = reader.u8()
    empty_flags = 0 if has_long else reader.u8()
    lengths = reader.take(count)
    return {
        "thread_id": thread_id,
        "execution_time": execution_time,
        "lines_skipped": lines_skipped,
        "endings": endings,
        "option_flags": option_flags,
        "empty_flags": empty_flags,
        "field_names": tuple(_read_counted(reader, length) for length in lengths),
        "table": _read_counted(reader, table_length),
        "database": _read_counted(reader, database_length),
    }


def _read_counted(reader: Reader, length: int) -> bytes:
    data = reader.take(length)
    if reader.take(1) != _NUL:
        raise CodecError("no NUL stands after a name", offset=reader.offset - 1)
    return data


def _read_terminated(reader: Reader) -> bytes:
    start = reader.offset
    data, nul, block = reader.rest().partition(_NUL)
    if not nul:
        raise CodecError("no NUL stands after the file's name", offset=start)
    reader.offset -= len(block)
    return data


def _head_bytes(body: LoadEvent) -> bytes:
    return _HEAD.pack(
        body.thread_id,
        body.execution_time,
        body.lines_skipped,
        len(body.table),
        len(body.database),
        len(body.field_names),
    )


def _part_bytes(body: LoadEvent) -> bytes:
    flags = bytes((body.option_flags,))
    if body.has_long_endings:
        endings = b"".join(bytes((len(ending),)) + ending for ending in body.endings) + flags
    else:
        endings = b"".join(body.endings) + flags + bytes((body.empty_flags,))
    names = (*body.field_names, body.table, body.database)
    lengths = bytes(map(len, body.field_names))
    return endings + lengths + b"".join(name + _NUL for name in names)
