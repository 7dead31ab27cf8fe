"""Events that delimit event groups: MariaDB's GTID and GTID_LIST, and XID."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Final, Self

from binlane.log.codec.buffer import Reader
from binlane.log.codec.format import Format
from binlane.log.codec.types import UNDONE_ALTER, GtidExtraFlag, GtidFlag
from binlane.positions import Gtid, GtidPosition

_GTID: Final = Struct("<QIB")
_GTID_LIST_ENTRY: Final = Struct("<IIQ")
_XID: Final = Struct("<IBB")
_XA_PREPARE: Final = Struct("<BIII")
_COUNT_BITS: Final = 28


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionXid:
    """The identifier of an XA transaction."""

    format_id: int
    global_id: bytes
    branch: bytes

    @classmethod
    def decode(cls, reader: Reader) -> Self:
        """Read lengths and both parts."""
        format_id, global_length, branch_length = reader.unpack(_XID)
        return cls(
            format_id=format_id,
            global_id=reader.take(global_length),
            branch=reader.take(branch_length),
        )

    def encode(self) -> bytes:
        """Exact inverse."""
        lengths = _XID.pack(self.format_id, len(self.global_id), len(self.branch))
        return lengths + self.global_id + self.branch

    def __str__(self) -> str:
        """The id as XA statements name it."""
        return f"X'{self.global_id.hex()}',X'{self.branch.hex()}',{self.format_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GtidEvent:
    """The start of an event group (MariaDB); the GTID's server id is the header's.

    Attributes:
        sequence: The number within the domain.
        flags: `GtidFlag` bits (`flags2` in the servers' source).
        commit_id: The number of a group commit, else None.
        xid: The id of an XA transaction, else None.
        flags_extra: `GtidExtraFlag` bits; None where the event ends before them.
        extra_engines: Engines beyond the first, with MULTI_ENGINE.
        alter_sequence: The START ALTER that a COMMIT or ROLLBACK ALTER belongs to.
        thread_id: The session's connection id, with THREAD_ID (11.8 writes it always).
        padding: Zero bytes to the end; thousands where a large transaction became a file.
    """

    sequence: int
    domain_id: int
    flags: int
    commit_id: int | None = None
    xid: TransactionXid | None = None
    flags_extra: int | None = None
    extra_engines: int | None = None
    alter_sequence: int | None = None
    thread_id: int | None = None
    padding: bytes = b""

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Read the fields that the flags announce."""
        del format_
        sequence, domain_id, flags = reader.unpack(_GTID)
        commit_id = reader.u64() if flags & GtidFlag.GROUP_COMMIT_ID else None
        has_xid = flags & (GtidFlag.PREPARED_XA | GtidFlag.COMPLETED_XA)
        xid = TransactionXid.decode(reader) if has_xid else None
        extra = reader.u8() if reader.remaining else None
        bits = extra or 0
        is_alter_end = bits & (GtidExtraFlag.COMMIT_ALTER | GtidExtraFlag.ROLLBACK_ALTER)
        return cls(
            sequence=sequence,
            domain_id=domain_id,
            flags=flags,
            commit_id=commit_id,
            xid=xid,
            flags_extra=extra,
            extra_engines=reader.u8() if bits & GtidExtraFlag.MULTI_ENGINE else None,
            alter_sequence=reader.u64() if is_alter_end else None,
            thread_id=reader.u32() if bits & GtidExtraFlag.THREAD_ID else None,
            padding=reader.rest(),
        )

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        del format_
        parts = [_GTID.pack(self.sequence, self.domain_id, self.flags)]
        if self.commit_id is not None:
            parts.append(self.commit_id.to_bytes(8, "little"))
        if self.xid is not None:
            parts.append(self.xid.encode())
        if self.flags_extra is not None:
            parts.append(bytes((self.flags_extra,)))
        if self.extra_engines is not None:
            parts.append(bytes((self.extra_engines,)))
        if self.alter_sequence is not None:
            parts.append(self.alter_sequence.to_bytes(8, "little"))
        if self.thread_id is not None:
            parts.append(self.thread_id.to_bytes(4, "little"))
        return b"".join(parts) + self.padding

    @property
    def is_standalone(self) -> bool:
        """True if exactly one event follows in the group."""
        return bool(self.flags & GtidFlag.STANDALONE)

    @property
    def is_undone(self) -> bool:
        """True if the statement of the group has no effect: it is begun here only, or rolled back."""
        return bool((self.flags_extra or 0) & UNDONE_ALTER)

    def gtid(self, server_id: int) -> Gtid:
        """The GTID, with the server id of the event's header."""
        return Gtid(self.domain_id, server_id, self.sequence)


@dataclass(frozen=True, slots=True, kw_only=True)
class GtidListEvent:
    """Everything that was done before this file, at the head of each file.

    Attributes:
        flags: The four bits above the count, only set in artificial events.
        gtids: Last GTID of each domain and server, in the order written.
        padding: Two zero bytes after an empty list.
    """

    gtids: tuple[Gtid, ...]
    flags: int = 0
    padding: bytes = b""

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Read count, entries and padding."""
        del format_
        word = reader.u32()
        count = word & ((1 << _COUNT_BITS) - 1)
        if count * _GTID_LIST_ENTRY.size > reader.remaining:
            reader.take(count * _GTID_LIST_ENTRY.size)
        gtids = tuple(Gtid(*reader.unpack(_GTID_LIST_ENTRY)) for _ in range(count))
        return cls(flags=word >> _COUNT_BITS, gtids=gtids, padding=reader.rest())

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        del format_
        word = self.flags << _COUNT_BITS | len(self.gtids)
        entries = (
            _GTID_LIST_ENTRY.pack(gtid.domain_id, gtid.server_id, gtid.sequence)
            for gtid in self.gtids
        )
        return word.to_bytes(4, "little") + b"".join(entries) + self.padding

    @classmethod
    def of(cls, position: GtidPosition) -> Self:
        """The list for a position, padded as the servers do when it is empty."""
        gtids = tuple(position)
        return cls(gtids=gtids, padding=b"" if gtids else b"\0\0")

    @property
    def position(self) -> GtidPosition:
        """The last GTID of each domain: the one with the highest sequence."""
        return GtidPosition.of(sorted(self.gtids, key=lambda gtid: gtid.sequence))


@dataclass(frozen=True, slots=True, kw_only=True)
class XidEvent:
    """The commit of a transaction in a transactional engine.

    Attributes:
        xid: An opaque number of the writer.
    """

    xid: int

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Read the transaction's number."""
        del format_
        return cls(xid=reader.u64())

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        del format_
        return self.xid.to_bytes(8, "little")


@dataclass(frozen=True, slots=True, kw_only=True)
class XaPrepareEvent:
    """The end of an XA transaction's first phase, in place of XID.

    Attributes:
        one_phase: True if it commits at once.
        xid: The transaction; its parts are longer than a GTID event allows.
    """

    one_phase: int
    xid: TransactionXid

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Read the flag, lengths and both parts."""
        del format_
        one_phase, format_id, global_length, branch_length = reader.unpack(_XA_PREPARE)
        xid = TransactionXid(
            format_id=format_id,
            global_id=reader.take(global_length),
            branch=reader.take(branch_length),
        )
        return cls(one_phase=one_phase, xid=xid)

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        del format_
        xid = self.xid
        lengths = (len(xid.global_id), len(xid.branch))
        return (
            _XA_PREPARE.pack(self.one_phase, xid.format_id, *lengths) + xid.global_id + xid.branch
        )
