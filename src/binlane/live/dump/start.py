"""The place where a dump begins: by file and position, or in the file that a GTID position leads to.

Pure: the heads of files are bytes that somebody else has read. Every GTID position of the source
from where the binlog begins to its watermark is a valid start, in strict mode too and whether or
not the binlog holds that group: what is out of scope for it is done as well.

A MySQL replica says which GTIDs it has. Those of groups that are out of scope it never gets, and so
misses them for good: whether it misses a group of a file is told by the groups that stand there.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, Self, TypeVar

from binlane.errors import CodecError
from binlane.live.dump.request import refusal
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event, EventHeader, decode_event
from binlane.log.codec.format import HEADER_LENGTH, MAGIC, Format
from binlane.log.codec.mysql_transaction import PreviousGtidsEvent
from binlane.log.codec.transaction import GtidListEvent
from binlane.log.codec.types import EventType
from binlane.positions import (
    FilePosition,
    GtidPosition,
    GtidSet,
    Position,
    mariadb_position,
    nothing_done,
)

HEAD_LENGTH_MAX: Final = 1 << 20
"""Bytes that hold FORMAT_DESCRIPTION and GTID_LIST of any file with up to 65 000 domains."""

_TYPE_OFFSET: Final = 4
_DONE_BEFORE: Final = frozenset({EventType.GTID_LIST, EventType.PREVIOUS_GTIDS_LOG})


@dataclass(frozen=True, slots=True, kw_only=True)
class FileBeginning:
    """The first events of a file.

    Attributes:
        file: The base name of the file.
        format_description: The file's first event, FORMAT_DESCRIPTION.
        done: The position before the file, by its GTID_LIST or PREVIOUS_GTIDS; empty where it has
            none.
        size_bytes: The end of these events in the file.
    """

    file: str
    format_description: Event
    done: GtidPosition | GtidSet
    size_bytes: int

    @classmethod
    def decode(cls, file: str, data: bytes) -> Self:
        """Read the head.

        Args:
            file: The base name of the file.
            data: The file's first bytes, at most `HEAD_LENGTH_MAX` are needed.

        Raises:
            CodecError: If no binlog file begins so.
        """
        try:
            first, format_ = _format_description(data)
            done, size_bytes = _done_before(data, first.next_position, format_)
        except CodecError as error:
            raise error.at(file, 0) from None
        return cls(file=file, format_description=first, done=done, size_bytes=size_bytes)

    @property
    def format(self) -> Format:
        """The format that the FORMAT_DESCRIPTION decides."""
        body = self.format_description.body
        assert isinstance(body, FormatDescriptionEvent), "decode() saw to it"
        return body.format


def check_connect_state(
    connect_state: Position, *, begin: Position, watermark: Position, name: str, source_id: str = ""
) -> None:
    """See that a replica's position lies between begin and watermark of the binlog `name`.

    A domain that the source has nothing of, or another server's GTIDs, are no obstacle: another
    source serves them.

    Args:
        connect_state: The position that the replica has done.
        begin: The position before the first file that is there.
        watermark: The position that the binlog is complete up to.
        name: The name of the binlog.
        source_id: The UUID of a MySQL source.

    Raises:
        StatementError: With the texts of the servers.
    """
    if isinstance(connect_state, GtidSet):
        _check_set(connect_state, _mysql(begin), _mysql(watermark), name, source_id)
    else:
        state, done = mariadb_position(connect_state), mariadb_position(watermark)
        _check_position(state, mariadb_position(begin), done, name)


def _check_position(
    connect_state: GtidPosition, begin: GtidPosition, watermark: GtidPosition, name: str
) -> None:
    if not connect_state.includes(begin):
        raise refusal(
            "Could not find GTID state requested by slave in any binlog files. Probably the slave "
            "state is too old and required binlog files have been purged.",
            hint=f"binlog {name} begins at {begin}: take a copy of the tables as of then",
        )
    ahead = gtids_ahead(connect_state, watermark)
    if ahead:
        raise refusal(
            f"Error: connecting slave requested to start from GTID {ahead}, which is not in the "
            "master's binlog",
            hint=f"binlog {name} is complete up to {watermark}",
        )


def _check_set(
    connect_state: GtidSet, begin: GtidSet, watermark: GtidSet, name: str, source_id: str
) -> None:
    missing = begin.subtract(connect_state)
    # A replica with something from behind this binlog's first file had all before it in scope.
    if missing and not watermark.subtract(begin).intersection(connect_state):
        raise refusal(
            "Cannot replicate because the source purged required binary logs. Replicate the missing "
            "transactions from elsewhere, or provision a new replica from backup. The GTID set sent "
            f"by the replica is '{connect_state}', and the missing transactions are '{missing}'",
            hint=f"binlog {name} begins behind these: on a replica with a copy of the tables as of "
            f"then, SET GLOBAL gtid_purged = '+{missing}'",
        )
    ahead = gtids_ahead(connect_state, watermark, source_id)
    if ahead:
        raise refusal(
            "Replica has more GTIDs than the source has, using the source's SERVER_UUID. This may "
            "indicate that the end of the binary log was truncated or that the last binary log file "
            f"was lost. The extra ones are '{ahead}'",
            hint=f"binlog {name} is complete up to {watermark}",
        )


def gtids_ahead(connect_state: Position, watermark: Position, source_id: str = "") -> Position:
    """Return the part of a replica's position, of this source, that lies behind the watermark.

    Args:
        connect_state: The position that the replica has done.
        watermark: The watermark of the binlog; of a MariaDB only the domains that it knows count.
        source_id: A MySQL source's UUID, whose GTIDs alone count.
    """
    if isinstance(connect_state, GtidSet):
        own = GtidSet.of(run for run in connect_state.runs if run.source_id == source_id)
        return own.subtract(_mysql(watermark))
    done = mariadb_position(watermark)
    ahead = mariadb_position(connect_state).subtract(done)
    return GtidPosition.of([gtid for gtid in ahead if done.last(gtid.domain_id)][:1])


def _mysql(position: Position) -> GtidSet:
    assert isinstance(position, GtidSet), f"{position} is none of MySQL's"
    return position


class BeginningFile(Protocol):
    """A file of which is known what was done before it."""

    @property
    def begin(self) -> Position:
        """The position before the file."""
        ...


_File = TypeVar("_File", bound=BeginningFile)


def file_for(connect_state: Position, files: Sequence[_File]) -> _File:
    """The last file that begins at or before a replica's position.

    Of a MySQL that misses something from before the first file it is the first one.

    Args:
        connect_state: The position that the replica has done.
        files: All files, oldest first. Each begins where those before it end, so that few are
            looked at.

    Raises:
        StatementError: If even the first file begins after it.
    """
    behind = bisect_left(files, True, key=lambda file: not connect_state.includes(file.begin))
    if behind or isinstance(connect_state, GtidSet):
        return files[max(behind - 1, 0)]
    raise refusal(
        "Could not find GTID state requested by slave in any binlog files. Probably the slave "
        "state is too old and required binlog files have been purged."
    )


def check_position(start: FilePosition, data: bytes, *, end: int) -> None:
    """See that an event begins at a position, or that the file ends there.

    Args:
        start: The position that was asked for.
        data: The file's bytes from there: the whole event, where there is one.
        end: The end of the file, in bytes.

    Raises:
        StatementError: If neither is so.
    """
    is_possible = len(MAGIC) <= start.position <= end
    if is_possible and start.position in (len(MAGIC), end):
        return
    if is_possible and len(data) >= HEADER_LENGTH:
        header = EventHeader.decode(data)
        is_position_right = header.next_position == (start.position + header.length) & 0xFFFFFFFF
        if is_position_right and header.length <= end - start.position:
            return
    raise refusal(
        "Client requested master to start replication from impossible position; "
        f"no event begins at {start}",
        hint="SHOW BINLOG EVENTS lists where events begin",
    )


def _format_description(data: bytes) -> tuple[Event, Format]:
    if data[: len(MAGIC)] != MAGIC:
        raise CodecError("no binlog file")
    event = _event_at(data, len(MAGIC), None)
    if not isinstance(event.body, FormatDescriptionEvent):
        raise CodecError(f"{event.header.type_name} stands where FORMAT_DESCRIPTION must be")
    return event, event.body.format


def _event_at(data: bytes, position: int, format_: Format | None) -> Event:
    header = EventHeader.decode(data[position : position + HEADER_LENGTH])
    return decode_event(data[position : position + header.length], format_, position=position)


def _done_before(data: bytes, position: int, format_: Format) -> tuple[GtidPosition | GtidSet, int]:
    """Return the position before a file, and where the event ends that says so."""
    has_event = len(data) >= position + HEADER_LENGTH
    if not has_event or data[position + _TYPE_OFFSET] not in _DONE_BEFORE:
        return nothing_done(format_.flavor.value), position
    event = _event_at(data, position, format_)
    body = event.body
    assert isinstance(body, GtidListEvent | PreviousGtidsEvent), "the registry maps them to it"
    return body.position, position + event.header.length
