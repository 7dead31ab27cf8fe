"""Events of MySQL's group replication: reads and writes of a transaction, members of the group."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Final, Self

from binlane.log.codec.buffer import Reader
from binlane.log.codec.format import Format

_CONTEXT: Final = Struct("<BIBIII")
_VIEW: Final = Struct("<40sQI")


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionContextEvent:
    """The facts with which a group's members certify a transaction; seldom in a file.

    Attributes:
        server_uuid: The UUID of the member, as text.
        thread_id: The connection id of the session.
        gtid_specified: 1 if the session chose the GTID.
        snapshot: The GTID set that the transaction saw, as the server encodes it.
        write_set: Hashes of the rows written.
        read_set: Hashes of the rows read.
    """

    server_uuid: bytes
    thread_id: int
    gtid_specified: int
    snapshot: bytes
    write_set: tuple[bytes, ...]
    read_set: tuple[bytes, ...]

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Read the lengths, then the fields that they count."""
        del format_
        uuid_length, thread_id, gtid_specified, snapshot_length, writes, reads = reader.unpack(
            _CONTEXT
        )
        return cls(
            server_uuid=reader.take(uuid_length),
            thread_id=thread_id,
            gtid_specified=gtid_specified,
            snapshot=reader.take(snapshot_length),
            write_set=_read_items(reader, writes),
            read_set=_read_items(reader, reads),
        )

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        del format_
        fixed = _CONTEXT.pack(
            len(self.server_uuid),
            self.thread_id,
            self.gtid_specified,
            len(self.snapshot),
            len(self.write_set),
            len(self.read_set),
        )
        items = (
            len(item).to_bytes(2, "little") + item for item in (*self.write_set, *self.read_set)
        )
        return fixed + self.server_uuid + self.snapshot + b"".join(items)


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewChangeEvent:
    """Members have joined or left.

    Attributes:
        view_id_field: The view's id in 40 bytes, NUL-padded.
        sequence_number: The number that the certifier gave.
        certification: Row hash and the GTID set that last wrote it.
    """

    view_id_field: bytes
    sequence_number: int
    certification: tuple[tuple[bytes, bytes], ...]

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Read the fixed part and the pairs that it counts."""
        del format_
        view_id_field, sequence_number, count = reader.unpack(_VIEW)
        return cls(
            view_id_field=view_id_field,
            sequence_number=sequence_number,
            certification=tuple(
                (reader.take(reader.u16()), reader.take(reader.u32())) for _ in range(count)
            ),
        )

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        del format_
        fixed = _VIEW.pack(self.view_id_field, self.sequence_number, len(self.certification))
        pairs = (
            len(key).to_bytes(2, "little") + key + len(value).to_bytes(4, "little") + value
            for key, value in self.certification
        )
        return fixed + b"".join(pairs)

    @property
    def view_id(self) -> str:
        """The view's name without its padding."""
        return self.view_id_field.split(b"\0", 1)[0].decode("utf-8", "backslashreplace")


def _read_items(reader: Reader, count: int) -> tuple[bytes, ...]:
    return tuple(reader.take(reader.u16()) for _ in range(count))
