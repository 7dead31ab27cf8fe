"""INCIDENT events that no mark tells of, found in the files of a binlog that an older binlane wrote."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from binlane.binlogs.store.heads import read_head
from binlane.binlogs.store.incidents import Incident, incident_of, merged
from binlane.binlogs.store.reading import whole_groups
from binlane.log.codec.format import HEADER_LENGTH, MAGIC
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import GTID_TYPES, gtid_of

_READ_BYTES: Final = 1 << 20
_REST_S: Final = 0.005
_LENGTH_AT: Final = slice(9, 13)
_TYPE_AT: Final = 4


def incidents_in(path: Path, size_bytes: int) -> tuple[Incident, ...]:
    """The INCIDENTs of a file of a binlog, up to a position.

    The search reads the file from event to event, and rests in between: others need the processor
    more.

    Raises:
        CodecError: If the file is damaged.
        StoreError: If it is no file of a store.
        OSError: If it cannot be read.
    """
    head = read_head(path)
    format_, found = head.format_description.format, []
    for begin, place in _places(path, size_bytes):
        gtid = ""
        for event, is_whole in whole_groups(path, position=begin, format_=format_):
            gtid = str(gtid_of(event) or gtid)
            if event.position == place:
                incident = incident_of(event, gtid, path.name, binlog=path.parent.name)
                found += [] if incident is None else [incident]
                break
            gtid = "" if is_whole else gtid
    return merged([found])


def _places(path: Path, size_bytes: int) -> Iterator[tuple[int, int]]:
    """Give for each INCIDENT the position of the last GTID before it, else its own, and its own."""
    position, last_gtid = len(MAGIC), 0
    window, base = b"", 0
    with path.open("rb") as stream:
        while position + HEADER_LENGTH <= size_bytes:
            if not base <= position <= base + len(window) - HEADER_LENGTH:
                time.sleep(_REST_S)
                stream.seek(position)
                window, base = stream.read(_READ_BYTES), position
            header = window[position - base : position - base + HEADER_LENGTH]
            if len(header) < HEADER_LENGTH:
                return
            kind = header[_TYPE_AT]
            if kind in GTID_TYPES:
                last_gtid = position
            elif kind == EventType.INCIDENT:
                yield last_gtid or position, position
            # A length that cannot be is damage, which is told by whoever reads the file.
            position += max(int.from_bytes(header[_LENGTH_AT], "little"), HEADER_LENGTH)
