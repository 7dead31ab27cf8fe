"""Events that carry statements: QUERY, plain or compressed, ANNOTATE_ROWS and ROWS_QUERY."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from struct import Struct
from typing import ClassVar, Final, Self

from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.compression import compress_record, decompress_record, rewritten_record
from binlane.log.codec.format import Format
from binlane.log.codec.types import EventType

_POST_HEADER: Final = Struct("<IIBHH")
_EXTENDED: Final = Struct("<HH")
POST_HEADER_LENGTH: Final = _POST_HEADER.size
EXTENDED_POST_HEADER_LENGTH: Final = POST_HEADER_LENGTH + _EXTENDED.size


def query_post_header_length(format_: Format) -> int:
    """Bytes that stand before a statement's context: 13, or 17 in the extended format.

    Raises:
        CodecError: If the format announces fewer, as no server since MySQL 5.0 does.
    """
    length = format_.post_header_length(EventType.QUERY)
    if length < POST_HEADER_LENGTH:
        raise CodecError(f"QUERY post-headers of {length} bytes are unknown; 13 and 17 are")
    return length if length == EXTENDED_POST_HEADER_LENGTH else POST_HEADER_LENGTH


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryEvent:
    """A statement with the context it ran in.

    Attributes:
        thread_id: The session's connection id; temporary tables belong to it.
        execution_time: Seconds from the start of the statement to its logging.
        error_code: 0, or the error with which a replica must fail as well.
        status_vars: The status variables as written; `codec.status_vars` tells what they say.
        query: The statement's text in the session's character set.
        tables_info: The field of WL#40's extended format (seed 003 §1); None in a plain event.
        record: MariaDB's compressed form of `query` as written; None in a plain event.
    """

    is_compressed: ClassVar[bool] = False

    thread_id: int
    execution_time: int
    error_code: int
    status_vars: bytes
    database: bytes
    query: bytes
    tables_info: bytes | None = None
    record: bytes | None = None

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Read a plain event, or an extended one where the format announces it."""
        is_extended = query_post_header_length(format_) == EXTENDED_POST_HEADER_LENGTH
        thread_id, execution_time, database_length, error_code, status_length = reader.unpack(
            _POST_HEADER
        )
        query_length, tables_length = reader.unpack(_EXTENDED) if is_extended else (0, 0)
        status_vars = reader.take(status_length)
        database = reader.take(database_length)
        if not is_extended and reader.u8() != 0:
            raise CodecError("no NUL stands after the database", offset=reader.offset - 1)
        query = reader.take(query_length) if is_extended else reader.rest()
        tables_at = reader.offset
        tables_info = reader.take(tables_length) if is_extended else None
        if tables_info:
            _check_tables(tables_info, offset=tables_at)
        return cls(
            thread_id=thread_id,
            execution_time=execution_time,
            error_code=error_code,
            status_vars=status_vars,
            database=database,
            query=decompress_record(query) if cls.is_compressed else query,
            tables_info=tables_info,
            record=query if cls.is_compressed else None,
        )

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        del format_
        query = rewritten_record(self.query, self.record) if self.is_compressed else self.query
        fixed = _POST_HEADER.pack(
            self.thread_id,
            self.execution_time,
            len(self.database),
            self.error_code,
            len(self.status_vars),
        )
        if self.tables_info is None:
            return fixed + self.status_vars + self.database + b"\0" + query
        lengths = _EXTENDED.pack(len(query), len(self.tables_info))
        return fixed + lengths + self.status_vars + self.database + query + self.tables_info

    @property
    def tables(self) -> tuple[tuple[str, str], ...]:
        """Database and table of each table that the extended format names; "" is the default one.

        Raises:
            CodecError: If they are no such list.
        """
        reader = Reader(self.tables_info or b"")
        found = []
        while reader.remaining:
            names = (reader.take(reader.u8()), reader.take(reader.u8()))
            database, table = (name.decode("utf-8", "surrogateescape") for name in names)
            found.append((database, table))
        return tuple(found)

    def in_form(self, tables_info: bytes | None) -> Self:
        """The same event extended by these tables, or, of None, in the plain form."""
        return self if tables_info == self.tables_info else replace(self, tables_info=tables_info)


def _check_tables(tables_info: bytes, *, offset: int) -> None:
    """Check that names fill the tables info exactly, and that each table has one.

    Raises:
        CodecError: If that is not so; `offset` counts from where the reader's does.
    """
    at, length = 0, len(tables_info)
    while at < length:
        table_at = at + 1 + tables_info[at]
        end = table_at + 1 + tables_info[table_at] if table_at < length else length + 1
        if end > length or end == table_at + 1:
            what = "ends inside a name" if end > length else "names a table by no name"
            raise CodecError(f"the tables info {what}", offset=offset + at)
        at = end


class QueryCompressedEvent(QueryEvent):
    """MariaDB: a QUERY whose statement is compressed."""

    __slots__ = ()
    is_compressed = True


def compressed_query(event: QueryEvent) -> QueryCompressedEvent:
    """The same statement as MariaDB's compressed event."""
    values = {field.name: getattr(event, field.name) for field in fields(event)}
    return QueryCompressedEvent(**values | {"record": compress_record(event.query)})


def compressed_text(data: bytes, at: int, end: int) -> bytes | None:
    """The text of a plain QUERY_COMPRESSED; None if the decoder must tell what is wrong with it.

    Args:
        data: The bytes that hold the event's body.
        at: Offset of the body in it.
        end: Offset behind the body in it.
    """
    if end - at <= POST_HEADER_LENGTH:
        return None
    record = at + POST_HEADER_LENGTH + data[at + 8] + (data[at + 11] | data[at + 12] << 8)
    if record >= end or data[record]:
        return None
    try:
        return decompress_record(data[record + 1 : end])
    except CodecError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotateRowsEvent:
    """MariaDB: the statement that caused the row events after it.

    Attributes:
        query: The statement's text in the session's character set.
    """

    query: bytes

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Read to the end."""
        del format_
        return cls(query=reader.rest())

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        del format_
        return self.query


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsQueryEvent:
    """MySQL: the statement that caused the row events after it.

    Attributes:
        query: The statement's text in the session's character set.
        length_byte: The byte before the text: the low byte of its length, or 255; readers ignore
            it.
    """

    query: bytes
    length_byte: int

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Read to the end."""
        del format_
        return cls(length_byte=reader.u8(), query=reader.rest())

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        del format_
        return bytes((self.length_byte,)) + self.query
