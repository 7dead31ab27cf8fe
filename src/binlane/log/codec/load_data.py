"""Events of LOAD DATA in statement format: the file's bytes, and the statement that loads them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import Final, Self

from binlane.log.codec.buffer import Reader
from binlane.log.codec.format import Format
from binlane.log.codec.query import QueryEvent, query_post_header_length

_FILE: Final = Struct("<IIIB")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileBlockEvent:
    """BEGIN_LOAD_QUERY, the first block of a file, or APPEND_BLOCK, a further one.

    Attributes:
        file_id: Number that the statement refers to.
        data: The block, at most 128 KiB.
    """

    file_id: int
    data: bytes

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Read the id of the file."""
        del format_
        return cls(file_id=reader.u32(), data=reader.rest())

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        del format_
        return self.file_id.to_bytes(4, "little") + self.data


class BeginLoadQueryEvent(FileBlockEvent):
    """The first block of the file of a LOAD DATA statement."""

    __slots__ = ()


class AppendBlockEvent(FileBlockEvent):
    """A further block of the file of a LOAD DATA statement."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFileEvent:
    """A LOAD DATA that failed after its first block: the file is forgotten.

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


class DuplicateHandling(IntEnum):
    """The treatment by LOAD DATA of rows whose key is there already."""

    ERROR = 0
    IGNORE = 1
    REPLACE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecuteLoadQueryEvent:
    """The LOAD DATA statement over the blocks before it.

    Attributes:
        statement: The statement as a QUERY event holds it.
        file_id: The number of the file whose blocks it loads.
        name_start: The start of the part with the file name in the text, in bytes.
        name_end: The end of that part, behind INTO.
        duplicate_handling: The `DuplicateHandling` code as written.
    """

    statement: QueryEvent
    file_id: int
    name_start: int
    name_end: int
    duplicate_handling: int

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Read the id of the file."""
        head = reader.take(query_post_header_length(format_))
        file_id, name_start, name_end, duplicate_handling = reader.unpack(_FILE)
        inner = Reader(head + reader.rest())
        statement = QueryEvent.decode(inner, format_)
        inner.finish()
        return cls(
            statement=statement,
            file_id=file_id,
            name_start=name_start,
            name_end=name_end,
            duplicate_handling=duplicate_handling,
        )

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        query = self.statement.encode(format_)
        length = query_post_header_length(format_)
        own = _FILE.pack(self.file_id, self.name_start, self.name_end, self.duplicate_handling)
        return query[:length] + own + query[length:]

    def with_file(self, path: str) -> bytes:
        """The statement with another file, on the client's side."""
        # LOCAL means IGNORE unless REPLACE is said.
        is_replacing = self.duplicate_handling == DuplicateHandling.REPLACE
        handling = b" REPLACE" if is_replacing else b""
        name = path.replace("\\", "\\\\").replace("'", "\\'").encode()
        before = self.statement.query[: self.name_start]
        after = self.statement.query[self.name_end :]
        return before + b" LOCAL INFILE '" + name + b"'" + handling + b" INTO" + after
