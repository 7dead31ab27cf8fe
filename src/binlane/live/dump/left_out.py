"""The transactions of a MySQL source that a binlog leaves out, for replicas that keep GTIDs.

A replica by GTID has a set. What is out of a binlog's scope is not in its files, so the set would have
gaps that grow for ever, and another source would send later what this one left out. MySQL's own
replication filters leave empty transactions in such places; so does a dump: at places of which is
known what is done there, it makes those that stand in none of the bytes before, and that the replica
lacks. They are in no file, and have the position of the place.

Source: replicas of MySQL 9.7.4 (tests/system/test_mysql_replicas.py); MySQL sql/rpl_replica.cc,
`queue_event`: a PREVIOUS_GTIDS event tells a replica nothing.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from binlane.live.dump.raw_gtids import RawGtids
from binlane.log.codec.event import Event, EventHeader, encode_event
from binlane.log.codec.format import CHECKSUM_LENGTH, HEADER_LENGTH, Format
from binlane.log.codec.mysql_transaction import LOGICAL_TIMESTAMPS, MysqlGtidEvent, TaggedGtidEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.types import EventType
from binlane.log.codec.varints import write_signed_varint
from binlane.log.grouping.placing import fitted
from binlane.positions import GtidRun, GtidSet, Position

_TYPE_OFFSET: Final = 4
_SEQUENCE: Final = slice(HEADER_LENGTH + 17, HEADER_LENGTH + 25)
"""The place of the sequence in a GTID_LOG event."""
_MICROSECONDS: Final = 1_000_000
_POSITION_MASK: Final = 0xFFFFFFFF
GTIDS: Final = frozenset({EventType.GTID_LOG, EventType.GTID_TAGGED_LOG})
NOTED: Final = GTIDS | {EventType.INCIDENT}
"""The types of events that `note` is to be told of."""


class OmittedTransactions:
    """Left-out transactions of which a dump has to tell, as far as it has come.

    Args:
        has: The GTIDs that the replica has.
    """

    def __init__(self, has: GtidSet) -> None:
        self._has = has
        self._done: GtidSet | None = None
        self._held: list[GtidRun] = []
        self._gtids = RawGtids()
        self._has_gap = False

    def enter(self, done: Position, format_: Format) -> None:
        """Begin a file.

        Args:
            done: The position before the file. For the first one, the position before it, or before
                an earlier file of which the replica has all that is in between. Groups before that
                are not told of.
            format_: The format of the file's events.
        """
        self._gtids.format = format_
        if self._done is None:
            self._done = _set(done)

    def note(self, type_code: int, data: bytes | memoryview, offset: int) -> None:
        """Note an event of `NOTED` that is sent, and begins at `offset`."""
        if type_code in GTIDS:
            gtid = self._gtids.at(type_code, data, offset)
            run = ((gtid.sequence, gtid.sequence),)
            self._held.append(GtidRun(gtid.source_id, gtid.tag, run))
        else:
            self._has_gap = True

    def note_all(self, data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> None:
        """Note all events of `NOTED` in some bytes that are sent."""
        is_incident = data[offsets + _TYPE_OFFSET] == EventType.INCIDENT
        self._has_gap = self._has_gap or bool(is_incident.any())
        self._held += self._gtids.runs(data, offsets[~is_incident])

    def reach(self, done: Position) -> GtidSet:
        """Come to a place between two groups; gives what is to be made there.

        Behind an INCIDENT that is nothing: it tells that something was lost, and not what.

        Args:
            done: The position at this place, as far as the log's files have it or leave it out.
        """
        assert self._done is not None, "a file was entered"
        now = _set(done)
        if now == self._done:
            return GtidSet()
        left = now.subtract(self._done)
        if left and not self._has_gap:
            left = left.subtract(GtidSet.of(self._held)).subtract(self._has)
        elif left:
            left = GtidSet()
        self._done, self._held, self._has_gap = now.union(self._done), [], False
        if self._has:
            self._has = self._has.subtract(now)
        return left


@dataclass(frozen=True, slots=True, kw_only=True)
class OmissionPlace:
    """The place where empty transactions are made.

    Attributes:
        position: The place in the file, in bytes.
        server_id: The server id of the log.
        timestamp: The time of their commit, in seconds since 1970.
        format: The format of the file's events.
    """

    position: int
    server_id: int
    timestamp: int
    format: Format

    def event(self, body: MysqlGtidEvent | QueryEvent, type_code: EventType) -> bytes:
        """An event there; it takes no room in the file."""
        header = EventHeader(
            timestamp=self.timestamp,
            type_code=type_code,
            server_id=self.server_id,
            length=0,
            next_position=self.position & _POSITION_MASK,
            flags=0,
        )
        return encode_event(Event(header, body), self.format)


def empty_transactions(left: GtidSet, place: OmissionPlace) -> Iterator[tuple[bytes, bytes, bytes]]:
    """The events of an empty transaction for each GTID of a set, in order: GTID, BEGIN and COMMIT.

    They have no logical timestamps: replicas then wait for all before them.
    """
    begin, commit = (place.event(_query(text), EventType.QUERY) for text in (b"BEGIN", b"COMMIT"))
    for run in left.runs:
        form = _Form(run, place, len(begin) + len(commit))
        for first, last in run.intervals:
            for sequence in range(first, last + 1):
                yield form.event(sequence), begin, commit


class _Form:
    """Makes the GTID events of one source and tag, which differ in little."""

    def __init__(self, run: GtidRun, place: OmissionPlace, others: int) -> None:
        self._run, self._place = run, place
        self._others = others + HEADER_LENGTH + place.format.checksum_length
        self._bodies: dict[int, MysqlGtidEvent] = {}
        self._plain: bytes | None = None

    def event(self, sequence: int) -> bytes:
        """The event of a GTID."""
        if self._run.tag:
            return self._place.event(self._body(sequence), EventType.GTID_TAGGED_LOG)
        if self._plain is None:
            self._plain = self._place.event(self._body(sequence), EventType.GTID_LOG)
        data = bytearray(self._plain)
        data[_SEQUENCE] = sequence.to_bytes(8, "little")
        if self._place.format.checksum_length:
            checksum = zlib.crc32(memoryview(data)[:-CHECKSUM_LENGTH])
            data[-CHECKSUM_LENGTH:] = checksum.to_bytes(CHECKSUM_LENGTH, "little")
        return bytes(data)

    def _body(self, sequence: int) -> MysqlGtidEvent:
        # A tagged one has a number of as few bytes as it needs, which its length counts.
        size = len(write_signed_varint(sequence))
        known = self._bodies.get(size)
        if known is None:
            new = self._new_body(sequence)
            known = fitted(new, self._others, self._place.format, clock=0)
            self._bodies[size] = known
        return replace(known, sequence=sequence)

    def _new_body(self, sequence: int) -> MysqlGtidEvent:
        run, place = self._run, self._place
        facts: dict[str, Any] = {
            "flags": 0,
            "source_id": run.source_id,
            "sequence": sequence,
            "last_committed": 0,
            "sequence_number": 0,
            "immediate_commit_timestamp": place.timestamp * _MICROSECONDS,
            "transaction_length": 0,
            "immediate_server_version": _version_number(place.format.server_version),
        }
        if run.tag:
            return TaggedGtidEvent(tag=run.tag, **facts)
        return MysqlGtidEvent(timestamp_type=LOGICAL_TIMESTAMPS, **facts)


def _version_number(text: str) -> int:
    """80036 of `8.0.36-log`."""
    parts = [int(part) for part in re.findall(r"\d+", text)[:3]]
    major, minor, patch = (*parts, 0, 0, 0)[:3]
    return major * 10_000 + minor * 100 + patch


def _query(text: bytes) -> QueryEvent:
    return QueryEvent(
        thread_id=0, execution_time=0, error_code=0, status_vars=b"", database=b"", query=text
    )


def _set(done: Position) -> GtidSet:
    assert isinstance(done, GtidSet), f"{done} is none of MySQL's"
    return done
