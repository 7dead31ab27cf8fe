"""MySQL's GTIDs, read from the raw bytes of their events: a dump meets one per transaction."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final

import numpy as np
import numpy.typing as npt

from binlane.codec.event import decode_event
from binlane.codec.format import HEADER_LENGTH, Format
from binlane.codec.mysql_transaction import TaggedGtidEvent
from binlane.codec.types import EventType
from binlane.positions import GtidRun, MysqlGtid, uuid_text

_LENGTH: Final = Struct("<9xI")
_PLAIN: Final = Struct("<20x16sQ")
_TYPE_OFFSET: Final = 4
_UUID_OFFSET: Final = 20
_UUID_LENGTH: Final = 16
_SEQUENCE_OFFSET: Final = _UUID_OFFSET + _UUID_LENGTH

Bytes = bytes | memoryview


class RawGtids:
    """Reads GTIDs of one log.

    Attributes:
        format: Of the FORMAT_DESCRIPTION before the events; None before the first.
    """

    def __init__(self) -> None:
        self.format: Format | None = None
        self._uuids: dict[bytes, str] = {}
        # Transactions of one session, or of many with one tag, differ in nothing but the number.
        self._tagged: tuple[MysqlGtid, bytes, bytes] | None = None

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
            data: Bytes.
            offsets: Of GTID_LOG and GTID_TAGGED_LOG events, in order.

        Raises:
            CodecError: As `at`.
        """
        is_plain = data[offsets + _TYPE_OFFSET] == EventType.GTID_LOG
        plain = offsets[is_plain]
        bodies = data[plain[:, None] + np.arange(_UUID_OFFSET, _SEQUENCE_OFFSET + 8)]
        sequences = np.ascontiguousarray(bodies[:, _UUID_LENGTH:]).view("<i8").reshape(-1)
        # Where the source changes or a number does not follow the one before, another run begins.
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
        return found + self._tagged_runs(data.data, offsets[~is_plain].tolist())

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
        self._tagged = gtid, *body.around_sequence()
        return gtid

    def _seen(self, data: Bytes, offset: int) -> MysqlGtid | None:
        """The GTID of an event that is like the one decoded last but for the number."""
        if self._tagged is None:
            return None
        last, before, behind = self._tagged
        size_at = offset + HEADER_LENGTH + 1
        start = size_at + _varint_length(data[size_at])
        middle = start + len(before)
        if data[start:middle] != before:
            return None
        end = middle + _varint_length(data[middle])
        if data[end : end + len(behind)] != behind:
            return None
        # As `codec.varints` has it: of nine bytes the first one is nothing but the length.
        number = int.from_bytes(data[middle:end], "little") >> min(end - middle, 8)
        return MysqlGtid(last.source_id, number >> 1, last.tag)


def _varint_length(first: int) -> int:
    """Bytes of a number, by the first of them."""
    return (~first & (first + 1)).bit_length()
