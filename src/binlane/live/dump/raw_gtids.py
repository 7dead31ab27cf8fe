"""MySQL's GTIDs, read from the raw bytes of their events: a dump meets one per transaction."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final

import numpy as np
import numpy.typing as npt

from binlane.log.codec.event import decode_event
from binlane.log.codec.format import HEADER_LENGTH, Format
from binlane.log.codec.mysql_transaction import TaggedGtidEvent
from binlane.log.codec.types import EventType
from binlane.positions import GtidRun, MysqlGtid, uuid_text

_LENGTH: Final = Struct("<9xI")
_PLAIN: Final = Struct("<20x16sQ")
_TYPE_OFFSET: Final = 4
_UUID_OFFSET: Final = 20
_UUID_LENGTH: Final = 16
_SEQUENCE_OFFSET: Final = _UUID_OFFSET + _UUID_LENGTH
# The number of the field behind the sequence, as it is written; a longer tag has a longer length.
_TAG_FIELD: Final = 3 << 1
_TAG_LENGTH_MAX: Final = 32

Bytes = bytes | memoryview


class RawGtids:
    """Reads GTIDs of one log.

    Attributes:
        format: The format of the FORMAT_DESCRIPTION before the events; None before the first.
    """

    def __init__(self) -> None:
        self.format: Format | None = None
        self._uuids: dict[bytes, str] = {}
        # Bytes before the number in an event with a tag → the source and tag that they stand for.
        self._before: dict[bytes, str] = {}
        self._lengths: tuple[int, ...] = ()

    def at(self, type_code: int, data: Bytes, offset: int) -> MysqlGtid:
        """The GTID of a GTID_LOG or GTID_TAGGED_LOG event that begins at `offset`.

        Raises:
            CodecError: If the event cannot be decoded.
        """
        if type_code == EventType.GTID_TAGGED_LOG:
            return self._seen(data, offset) or self._decoded(data, offset)
        source_id, sequence = _PLAIN.unpack_from(data, offset)
        return MysqlGtid(self._uuid(source_id), sequence)

    def runs(self, data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> list[GtidRun]:
        """The GTIDs of events that begin at some offsets.

        Args:
            data: The bytes that hold the events.
            offsets: The places of GTID_LOG and GTID_TAGGED_LOG events, in order.

        Raises:
            CodecError: As `at`.
        """
        if not offsets.shape[0]:
            return []
        is_plain = data[offsets + _TYPE_OFFSET] == EventType.GTID_LOG
        plain, tagged = offsets[is_plain], self._tagged_runs(data.data, offsets[~is_plain].tolist())
        if not plain.shape[0]:
            return tagged
        bodies = data[plain[:, None] + np.arange(_UUID_OFFSET, _SEQUENCE_OFFSET + 8)]
        sequences = np.ascontiguousarray(bodies[:, _UUID_LENGTH:]).view("<i8").reshape(-1)
        # Another run begins where the source changes or a number does not follow the one before.
        is_next = np.zeros(plain.shape[0], np.bool_)
        is_next[1:] = (bodies[1:, :_UUID_LENGTH] == bodies[:-1, :_UUID_LENGTH]).all(axis=1)
        is_next[1:] &= sequences[1:] == sequences[:-1] + 1
        firsts = np.flatnonzero(~is_next)
        found = [
            GtidRun(
                self._uuid(bodies[first, :_UUID_LENGTH].tobytes()),
                "",
                ((int(sequences[first]), int(sequences[last])),),
            )
            for first, last in zip(firsts, np.append(firsts[1:], plain.shape[0]) - 1, strict=True)
        ]
        return found + tagged

    def _tagged_runs(self, data: memoryview, offsets: Iterable[int]) -> list[GtidRun]:
        gtids = (self.at(EventType.GTID_TAGGED_LOG, data, offset) for offset in offsets)
        return [GtidRun(one.source_id, one.tag, ((one.sequence, one.sequence),)) for one in gtids]

    def _uuid(self, source_id: bytes) -> str:
        text = self._uuids.get(source_id)
        if text is None:
            text = self._uuids[source_id] = uuid_text(source_id.hex())
        return text

    def _decoded(self, data: Bytes, offset: int) -> MysqlGtid:
        (length,) = _LENGTH.unpack_from(data, offset)
        body = decode_event(data[offset : offset + length], self.format).body
        assert isinstance(body, TaggedGtidEvent), "its type says so"
        gtid = body.gtid
        assert gtid is not None, "such an event has one"
        before = body.before_sequence()
        self._before[before] = gtid.source_id
        self._lengths = tuple({*self._lengths, len(before)})
        return gtid

    def _seen(self, data: Bytes, offset: int) -> MysqlGtid | None:
        """The GTID of an event that is of a source and has flags that were seen before."""
        size_at = offset + HEADER_LENGTH + 1
        start = size_at + _varint_length(data[size_at])
        for length in self._lengths:
            at = start + length
            source_id = self._before.get(bytes(data[start:at]))
            if source_id is None:
                continue
            end = at + _varint_length(data[at])
            # As `codec.varints` has it: of nine bytes the first one is nothing but the length.
            number = int.from_bytes(data[at:end], "little") >> min(end - at, 8)
            tag_at = end + 2
            tag = bytes(data[tag_at : tag_at + (data[end + 1] >> 1)])
            if data[end] == _TAG_FIELD and not number & 1 and len(tag) <= _TAG_LENGTH_MAX:
                return MysqlGtid(source_id, number >> 1, tag.decode("ascii", "replace"))
        return None


def _varint_length(first: int) -> int:
    """The number of bytes of a number, by its first byte."""
    return (~first & (first + 1)).bit_length()
