"""MySQL's events that delimit transactions: GTIDs of three kinds, and the GTIDs before a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final, Self

from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader, encode_packed_int
from binlane.log.codec.format import Format
from binlane.log.codec.varints import (
    read_signed_varint,
    read_varint,
    write_signed_varint,
    write_varint,
)
from binlane.positions import GtidRun, GtidSet, MysqlGtid, uuid_text

LOGICAL_TIMESTAMPS: Final = 2
_TIMESTAMP_LENGTH: Final = 7
_HAS_ORIGINAL_TIMESTAMP: Final = 1 << 55
_HAS_ORIGINAL_VERSION: Final = 1 << 31
_UUID_LENGTH: Final = 16
_TAGGED_FORMAT: Final = 1
_FORMAT_SHIFT: Final = 56
_COUNT_MASK: Final = (1 << 48) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MysqlGtidEvent:
    """The start of a transaction (MySQL); every field from `timestamp_type` on may be missing.

    Attributes:
        flags: 1 where statements may be logged as such.
        source_id: UUID of who first committed it.
        sequence: Number within source and tag.
        timestamp_type: 2 where the logical timestamps follow (MySQL 5.7).
        last_committed: Logical timestamp of the transaction that this one depends on.
        sequence_number: The logical timestamp of the transaction itself.
        immediate_commit_timestamp: Microseconds since 1970 of its commit on this server.
        original_commit_timestamp: The same on the first server, if that is another one.
        transaction_length: Bytes from this event to the end of the transaction.
        immediate_server_version: The version of this server, such as 80036.
        original_server_version: The same of the first server, if that is another one.
        commit_group_ticket: The ticket of a group commit in order.
        tail: The bytes at the end that binlane does not know.
    """

    flags: int
    source_id: str
    sequence: int
    timestamp_type: int | None = None
    last_committed: int | None = None
    sequence_number: int | None = None
    immediate_commit_timestamp: int | None = None
    original_commit_timestamp: int | None = None
    transaction_length: int | None = None
    immediate_server_version: int | None = None
    original_server_version: int | None = None
    commit_group_ticket: int | None = None
    tail: bytes = b""

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Read as far as the writer knew the event: 5.6 ends after the GTID.

        Source: MySQL 9.7 libs/mysql/binlog/event/control_events.cpp.
        """
        del format_
        fields: dict[str, Any] = {
            "flags": reader.u8(),
            "source_id": _read_uuid(reader),
            "sequence": _signed(reader),
        }
        if reader.remaining:
            fields["timestamp_type"] = reader.u8()
        if fields.get("timestamp_type") == LOGICAL_TIMESTAMPS:
            fields |= {"last_committed": _signed(reader), "sequence_number": _signed(reader)}
            fields |= _read_commit(reader)
        return cls(**fields, tail=reader.rest())

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        del format_
        gtid = bytes((self.flags,)) + _uuid_bytes(self.source_id) + _signed_bytes(self.sequence)
        if self.timestamp_type is None:
            return gtid + self.tail
        parts = [gtid, bytes((self.timestamp_type,))]
        if self.last_committed is not None and self.sequence_number is not None:
            parts += [_signed_bytes(self.last_committed), _signed_bytes(self.sequence_number)]
        if self.immediate_commit_timestamp is not None:
            parts.append(_timestamps(self))
        if self.transaction_length is not None:
            parts.append(encode_packed_int(self.transaction_length))
        if self.immediate_server_version is not None:
            parts.append(_versions(self))
        if self.commit_group_ticket is not None:
            parts.append(self.commit_group_ticket.to_bytes(8, "little"))
        return b"".join(parts) + self.tail

    @property
    def gtid(self) -> MysqlGtid | None:
        """The transaction's GTID."""
        return MysqlGtid(self.source_id, self.sequence)

    @property
    def commit_micros(self) -> int | None:
        """Microseconds since 1970 of the commit on the server where it was first."""
        if self.original_commit_timestamp is None:
            return self.immediate_commit_timestamp
        return self.original_commit_timestamp


class AnonymousGtidEvent(MysqlGtidEvent):
    """The start of a transaction on a server without GTIDs; its GTID's fields are zero."""

    __slots__ = ()

    @property
    def gtid(self) -> MysqlGtid | None:
        """None: the transaction is anonymous."""
        return None


def _read_uuid(reader: Reader) -> str:
    return uuid_text(reader.take(_UUID_LENGTH).hex())


def _uuid_bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("-", ""))


def _signed(reader: Reader) -> int:
    return int.from_bytes(reader.take(8), "little", signed=True)


def _signed_bytes(value: int) -> bytes:
    return value.to_bytes(8, "little", signed=True)


def _read_commit(reader: Reader) -> dict[str, int]:
    """Read the transaction's commit times, its length, and the versions of its servers."""
    fields: dict[str, int] = {}
    if reader.remaining:
        immediate = int.from_bytes(reader.take(_TIMESTAMP_LENGTH), "little")
        fields["immediate_commit_timestamp"] = immediate & ~_HAS_ORIGINAL_TIMESTAMP
        if immediate & _HAS_ORIGINAL_TIMESTAMP:
            original = int.from_bytes(reader.take(_TIMESTAMP_LENGTH), "little")
            fields["original_commit_timestamp"] = original
    if reader.remaining:
        fields["transaction_length"] = reader.packed_int()
    if reader.remaining:
        version = reader.u32()
        fields["immediate_server_version"] = version & ~_HAS_ORIGINAL_VERSION
        if version & _HAS_ORIGINAL_VERSION:
            fields["original_server_version"] = reader.u32()
    if reader.remaining:
        fields["commit_group_ticket"] = reader.u64()
    return fields


def _timestamps(body: MysqlGtidEvent) -> bytes:
    immediate, original = body.immediate_commit_timestamp or 0, body.original_commit_timestamp
    if original is None:
        return immediate.to_bytes(_TIMESTAMP_LENGTH, "little")
    marked = immediate | _HAS_ORIGINAL_TIMESTAMP
    return marked.to_bytes(_TIMESTAMP_LENGTH, "little") + original.to_bytes(
        _TIMESTAMP_LENGTH, "little"
    )


def _versions(body: MysqlGtidEvent) -> bytes:
    immediate, original = body.immediate_server_version or 0, body.original_server_version
    if original is None:
        return immediate.to_bytes(4, "little")
    marked = immediate | _HAS_ORIGINAL_VERSION
    return marked.to_bytes(4, "little") + original.to_bytes(4, "little")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedGtidEvent(MysqlGtidEvent):
    """The start of a transaction whose GTID may have a tag (MySQL 8.3 and later).

    It is a message of numbered fields; a reader that does not know one leaves it alone, unless
    the message says that it must be known. `timestamp_type` is not written; `tail` holds the
    unknown fields.

    Attributes:
        tag: The tag of the GTID, empty without one.
        last_non_ignorable: Number of the last field that a reader must know.
    """

    tag: str = ""
    last_non_ignorable: int = 0

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Read version, size and fields.

        Raises:
            CodecError: If version or size are wrong, a field is missing or out of order, or one
                that must be known is not.
        """
        del format_
        start, available = reader.offset, reader.remaining
        version, size = read_varint(reader), read_varint(reader)
        if version != _SERIALIZATION_VERSION or size != available:
            raise CodecError(
                f"a message of version {version} and {size} bytes stands in {available} bytes; "
                f"version {_SERIALIZATION_VERSION} and that size are expected",
                offset=start,
            )
        last_non_ignorable = read_varint(reader)
        fields, tail = _read_message(reader, last_non_ignorable)
        missing = {"flags", "source_id", "sequence"} - fields.keys()
        if missing:
            raise CodecError(f"the GTID has no {', '.join(sorted(missing))}", offset=start)
        return cls(**fields, last_non_ignorable=last_non_ignorable, tail=tail)

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        del format_
        parts = [write_varint(self.last_non_ignorable)]
        for number, (name, _, write) in _MESSAGE_FIELDS.items():
            value = getattr(self, name)
            if value is not None:
                parts += [write_varint(number), write(value)]
        message = b"".join(parts) + self.tail
        head = write_varint(_SERIALIZATION_VERSION)
        size = len(head) + len(message) + 1
        while size != len(head) + len(write_varint(size)) + len(message):
            size += 1
        return head + write_varint(size) + message

    def before_sequence(self) -> bytes:
        """Return the bytes between the size of the message and the sequence."""
        fields = 0, self.flags, 1, *_uuid_bytes(self.source_id), 2
        return b"".join(map(write_varint, (self.last_non_ignorable, *fields)))

    @property
    def gtid(self) -> MysqlGtid | None:
        """The transaction's GTID."""
        return MysqlGtid(self.source_id, self.sequence, self.tag)


_SERIALIZATION_VERSION: Final = 1


def _read_message(reader: Reader, last_non_ignorable: int) -> tuple[dict[str, Any], bytes]:
    """The known fields by name, and the bytes from the first unknown one on."""
    fields: dict[str, Any] = {}
    last = -1
    while reader.remaining:
        start = reader.offset
        number = read_varint(reader)
        if number not in _MESSAGE_FIELDS:
            if number <= last_non_ignorable:
                raise CodecError(f"field {number} must be known and is not", offset=start)
            reader.offset = start
            break
        if number <= last:
            raise CodecError(f"field {number} stands behind field {last}", offset=start)
        last = number
        name, read, _ = _MESSAGE_FIELDS[number]
        fields[name] = read(reader)
    return fields, reader.rest()


def _read_packed_uuid(reader: Reader) -> str:
    """Each of the 16 bytes is a number of its own."""
    numbers = [read_varint(reader) for _ in range(_UUID_LENGTH)]
    if max(numbers) > 255:
        raise CodecError(f"{max(numbers)} is no byte of a UUID", offset=reader.offset)
    return uuid_text(bytes(numbers).hex())


def _write_packed_uuid(value: str) -> bytes:
    return b"".join(map(write_varint, _uuid_bytes(value)))


def _read_tag(reader: Reader) -> str:
    return _tag_text(reader.take(read_varint(reader)), reader.offset)


def _write_tag(tag: str) -> bytes:
    return write_varint(len(tag)) + tag.encode("ascii")


def _tag_text(data: bytes, offset: int) -> str:
    if not data.isascii():
        raise CodecError(f"the tag {data!r} is not ASCII", offset=offset)
    return data.decode("ascii")


# Field number → attribute, how it is read and how it is written.
_MESSAGE_FIELDS: Final[
    Mapping[int, tuple[str, Callable[[Reader], Any], Callable[[Any], bytes]]]
] = MappingProxyType(
    {
        0: ("flags", read_varint, write_varint),
        1: ("source_id", _read_packed_uuid, _write_packed_uuid),
        2: ("sequence", read_signed_varint, write_signed_varint),
        3: ("tag", _read_tag, _write_tag),
        4: ("last_committed", read_signed_varint, write_signed_varint),
        5: ("sequence_number", read_signed_varint, write_signed_varint),
        6: ("immediate_commit_timestamp", read_varint, write_varint),
        7: ("original_commit_timestamp", read_varint, write_varint),
        8: ("transaction_length", read_varint, write_varint),
        9: ("immediate_server_version", read_varint, write_varint),
        10: ("original_server_version", read_varint, write_varint),
        11: ("commit_group_ticket", read_varint, write_varint),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviousGtidsEvent:
    """Everything that was done before this file, at the head of each file (MySQL).

    Attributes:
        runs: The runs of GTIDs in the order written.
        has_tags: True if it is written in the form that has room for tags.
    """

    runs: tuple[GtidRun, ...]
    has_tags: bool = False

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Read the count, which shows the form, and the runs.

        Raises:
            CodecError: If the form is unknown or intervals do not grow.
        """
        del format_
        word = reader.u64()
        form = word >> _FORMAT_SHIFT
        # The tagged form says so in the lowest byte as well, where a plain count has its own.
        if form not in {0, _TAGGED_FORMAT} or (form and word & 0xFF != form):
            raise CodecError(f"GTID sets of form {form} are unknown", offset=reader.offset - 8)
        has_tags = form == _TAGGED_FORMAT
        count = word >> 8 & _COUNT_MASK if has_tags else word
        return cls(
            runs=tuple(_read_run(reader, has_tag=has_tags) for _ in range(count)),
            has_tags=has_tags,
        )

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        del format_
        count = len(self.runs)
        word = _TAGGED_FORMAT << _FORMAT_SHIFT | count << 8 | _TAGGED_FORMAT
        head = word if self.has_tags else count
        parts = [head.to_bytes(8, "little")]
        for run in self.runs:
            parts.append(_uuid_bytes(run.source_id))
            if self.has_tags:
                parts.append(_write_tag(run.tag))
            parts.append(len(run.intervals).to_bytes(8, "little"))
            parts += (
                first.to_bytes(8, "little") + (last + 1).to_bytes(8, "little")
                for first, last in run.intervals
            )
        return b"".join(parts)

    @classmethod
    def of(cls, gtid_set: GtidSet) -> Self:
        """The event for a set."""
        return cls(runs=gtid_set.runs, has_tags=any(run.tag for run in gtid_set.runs))

    @property
    def position(self) -> GtidSet:
        """The set as a position."""
        return GtidSet.of(self.runs)


def _read_run(reader: Reader, *, has_tag: bool) -> GtidRun:
    source_id = _read_uuid(reader)
    tag = _read_tag(reader) if has_tag else ""
    start = reader.offset
    intervals = tuple((reader.u64(), reader.u64() - 1) for _ in range(reader.u64()))
    if any(first < 1 or last < first for first, last in intervals) or any(
        following <= last for (_, last), (following, _) in pairwise(intervals)
    ):
        raise CodecError("the intervals of a GTID set do not grow", offset=start)
    return GtidRun(source_id, tag, intervals)
