"""Where a dump begins: by file and position, or in the file that a GTID position leads to.

Pure: the heads of files are bytes that somebody else has read. Every GTID position of the source
from where the binlog begins to its watermark is a valid start, in strict mode too and whether or
not the binlog holds that group: what is out of scope for it is done as well.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, Self, TypeVar

from binlane.codec.control import FormatDescriptionEvent
from binlane.codec.event import Event, EventHeader, decode_event
from binlane.codec.format import HEADER_LENGTH, MAGIC, Format
from binlane.codec.transaction import GtidListEvent
from binlane.codec.types import EventType
from binlane.dump.request import refusal
from binlane.errors import CodecError
from binlane.positions import FilePosition, Gtid, GtidPosition, Position, mariadb_position

HEAD_LENGTH_MAX: Final = 1 << 20
"""Bytes that hold FORMAT_DESCRIPTION and GTID_LIST of any file with up to 65 000 domains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHead:
    """The first events of a file.

    Attributes:
        file: Base name.
        format_description: Its first event.
        done: What its GTID_LIST says was done before it; empty where it has none.
    """

    file: str
    format_description: Event
    done: GtidPosition

    @classmethod
    def decode(cls, file: str, data: bytes) -> Self:
        """Read the head.

        Args:
            file: Base name.
            data: The file's first bytes, at most `HEAD_LENGTH_MAX` are needed.

        Raises:
            CodecError: If no binlog file begins so.
        """
        try:
            first, format_ = _format_description(data)
            done = _gtid_list_at(data, first.next_position, format_)
        except CodecError as error:
            raise error.at(file, 0) from None
        return cls(file=file, format_description=first, done=done)

    @property
    def format(self) -> Format:
        """What the FORMAT_DESCRIPTION decides."""
        body = self.format_description.body
        assert isinstance(body, FormatDescriptionEvent), "decode() saw to it"
        return body.format


def check_connect_state(
    connect_state: GtidPosition, *, begin: GtidPosition, watermark: GtidPosition, name: str
) -> None:
    """See that a replica's position lies between begin and watermark of the binlog `name`.

    A domain that the source has nothing of is no obstacle: another source serves it.

    Raises:
        StatementError: With the texts of the servers.
    """
    if not connect_state.includes(begin):
        raise refusal(
            "Could not find GTID state requested by slave in any binlog files. Probably the slave "
            "state is too old and required binlog files have been purged.",
            hint=f"binlog {name} begins at {begin}: take a copy of the tables as of then",
        )
    ahead = gtid_ahead(connect_state, watermark)
    if ahead is not None:
        raise refusal(
            f"Error: connecting slave requested to start from GTID {ahead}, which is not in the "
            "master's binlog",
            hint=f"binlog {name} is complete up to {watermark}",
        )


def gtid_ahead(connect_state: GtidPosition, watermark: GtidPosition) -> Gtid | None:
    """The first GTID of `connect_state` that lies behind `watermark` in a domain it knows."""
    return next(
        (
            gtid
            for gtid in connect_state
            if watermark.last(gtid.domain_id) and not watermark.covers(gtid)
        ),
        None,
    )


class BeginningFile(Protocol):
    """A file of which is known what was done before it."""

    @property
    def begin(self) -> Position:
        """What was done before it."""
        ...


_File = TypeVar("_File", bound=BeginningFile)


def file_for(connect_state: GtidPosition, files: Sequence[_File]) -> _File:
    """The last file that begins at or before a replica's position.

    Args:
        connect_state: What the replica has done.
        files: All files, oldest first. Each begins where those before it end, so that few are
            looked at.

    Raises:
        StatementError: If even the first file begins after it.
    """
    behind = bisect_left(
        files, True, key=lambda file: not connect_state.includes(mariadb_position(file.begin))
    )
    if behind:
        return files[behind - 1]
    raise refusal(
        "Could not find GTID state requested by slave in any binlog files. Probably the slave "
        "state is too old and required binlog files have been purged."
    )


def check_position(start: FilePosition, data: bytes, *, end: int) -> None:
    """See that an event begins at a position, or that the file ends there.

    Args:
        start: The position asked for.
        data: The file's bytes from there: the whole event, where there is one.
        end: Where the file ends, in bytes.

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


def _gtid_list_at(data: bytes, position: int, format_: Format) -> GtidPosition:
    has_event = len(data) >= position + HEADER_LENGTH
    if not has_event or data[position + 4] != EventType.GTID_LIST:
        return GtidPosition()
    body = _event_at(data, position, format_).body
    assert isinstance(body, GtidListEvent), "the registry maps GTID_LIST to it"
    return body.position
