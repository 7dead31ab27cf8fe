"""Events that say something of the log itself: format, rotation, checkpoints, incidents."""

from __future__ import annotations

from dataclasses import dataclass, replace
from struct import Struct
from typing import Final, Self

from binlane.errors import CodecError, UnsupportedError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.format import (
    CHECKSUM_LENGTH,
    HEADER_LENGTH,
    Format,
    flavor_of,
    knows_checksums,
    lengths_with_tables_info,
)
from binlane.log.codec.types import ChecksumAlgorithm

_FORMAT_DESCRIPTION: Final = Struct("<H50sIB")
# The first releases with checksums knew more event types than any before them.
_TYPES_MAX_WITHOUT_CHECKSUMS: Final = 34


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatDescriptionEvent:
    """The first event of a file: it says how all others are read.

    Attributes:
        binlog_version: The version of the format: 4.
        server_version_field: The server's version in 50 bytes, NUL-padded.
        created: Server start in seconds since 1970, 0 in a file that a rotation began. Readers
            drop temporary tables when it is not 0.
        header_length: 19; more where a writer has fields of its own behind the common header.
        post_header_lengths: One byte for each type from code 1.
        checksum_algorithm: None where the writer is too old to have one.
    """

    binlog_version: int
    server_version_field: bytes
    created: int
    header_length: int
    post_header_lengths: bytes
    checksum_algorithm: int | None

    @classmethod
    def decode_whole(cls, data: memoryview | Reader) -> Self:
        """Decode a body that may still have its checksum, as the version inside it says.

        Raises:
            UnsupportedError: If the file is not of version 4, with headers of 19 bytes or more.
            CodecError: If the checksum algorithm is unknown, or the version cannot be true.
        """
        reader = data if isinstance(data, Reader) else Reader(data)
        version, server_version_field, created, header_length = reader.unpack(_FORMAT_DESCRIPTION)
        if version != 4 or header_length < HEADER_LENGTH:
            raise UnsupportedError(
                f"binlog version {version} with {header_length}-byte headers cannot be read; "
                f"version 4 with {HEADER_LENGTH}-byte headers is expected",
                offset=HEADER_LENGTH,
            )
        algorithm = None
        lengths = reader.rest()
        if knows_checksums(_text(server_version_field)):
            if len(lengths) <= CHECKSUM_LENGTH:
                raise CodecError(
                    "FORMAT_DESCRIPTION has no checksum algorithm", offset=reader.offset
                )
            algorithm = lengths[-CHECKSUM_LENGTH - 1]
            lengths = lengths[: -CHECKSUM_LENGTH - 1]
            if algorithm not in tuple(ChecksumAlgorithm):
                raise CodecError(f"checksum algorithm {algorithm} is unknown", offset=reader.offset)
        elif len(lengths) > _TYPES_MAX_WITHOUT_CHECKSUMS:
            raise CodecError(
                f"server version {_text(server_version_field)!r} knows no checksums, "
                f"but {len(lengths)} event types",
                offset=reader.offset,
            )
        return cls(
            binlog_version=version,
            server_version_field=server_version_field,
            created=created,
            header_length=header_length,
            post_header_lengths=lengths,
            checksum_algorithm=algorithm,
        )

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Decode from an event; `decode_event` takes `decode_whole`, since no format is known yet."""
        del format_
        return cls.decode_whole(reader)

    def encode(self, format_: Format | None = None) -> bytes:
        """The body without its checksum."""
        del format_
        tail = b"" if self.checksum_algorithm is None else bytes((self.checksum_algorithm,))
        fixed = _FORMAT_DESCRIPTION.pack(
            self.binlog_version, self.server_version_field, self.created, self.header_length
        )
        return fixed + self.post_header_lengths + tail

    @property
    def server_version(self) -> str:
        """The version text without its padding."""
        return _text(self.server_version_field)

    @property
    def format(self) -> Format:
        """The format that this event decides for those after it."""
        return Format(
            server_version=self.server_version,
            flavor=flavor_of(self.server_version),
            checksum=ChecksumAlgorithm(self.checksum_algorithm or 0),
            post_header_lengths=self.post_header_lengths,
            header_length=self.header_length,
        )

    def with_tables_info(self, *, has_tables_info: bool) -> FormatDescriptionEvent:
        """The same for a log whose QUERY events are extended by tables info, or are not."""
        lengths = lengths_with_tables_info(
            self.post_header_lengths, has_tables_info=has_tables_info
        )
        return replace(self, post_header_lengths=lengths)


def _text(padded: bytes) -> str:
    return padded.split(b"\0", 1)[0].decode("utf-8", "replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class RotateEvent:
    """The event that names the next file of the log.

    Attributes:
        position: The place to go on, in bytes; 4 is the beginning.
        file: Base name of the next file.
    """

    position: int
    file: str

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Read position and name."""
        del format_
        return cls(position=reader.u64(), file=_name(reader.rest()))

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        del format_
        return self.position.to_bytes(8, "little") + _name_bytes(self.file)


@dataclass(frozen=True, slots=True, kw_only=True)
class StopEvent:
    """A clean shutdown: the file ends here."""

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Read nothing: the body is empty."""
        del reader, format_
        return cls()

    def encode(self, format_: Format) -> bytes:
        """Return no bytes: the body is empty."""
        del format_
        return b""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentEvent:
    """Something that the log cannot express happened: replicas stop here.

    Attributes:
        number: The kind of incident: 1 is LOST_EVENTS.
        message: The text for people, at most 255 bytes.
        padding: The bytes behind the message; MySQL writes 4 bytes there.
    """

    number: int
    message: bytes
    padding: bytes = b""

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Read number and message."""
        del format_
        number = reader.u16()
        return cls(number=number, message=reader.take(reader.u8()), padding=reader.rest())

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        del format_
        length = bytes((len(self.message),))
        return self.number.to_bytes(2, "little") + length + self.message + self.padding


@dataclass(frozen=True, slots=True, kw_only=True)
class BinlogCheckpointEvent:
    """MariaDB: crash recovery need not look into files before this one.

    Attributes:
        file: The oldest file that recovery needs.
    """

    file: str

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Read the name behind its length."""
        del format_
        return cls(file=_name(reader.take(reader.u32())))

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        del format_
        name = _name_bytes(self.file)
        return len(name).to_bytes(4, "little") + name


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnorableEvent:
    """An event that readers leave alone.

    Attributes:
        data: The whole body as written.
    """

    data: bytes

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Keep all bytes undecoded."""
        del format_
        return cls(data=reader.rest())

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        del format_
        return self.data


# File names are bytes to the servers; surrogateescape keeps any of them exact in a str.
def _name(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _name_bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")
