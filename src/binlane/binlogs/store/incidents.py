"""INCIDENT events of a binlog, at which its replicas stop, until somebody has dealt with them.

The facts of an INCIDENT are part of a binlog's mark, so that they are on disk with the events.
Recovery finds the INCIDENTs behind a mark; a search of the files finds those of an older binlane.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Final

from binlane.log.codec.control import IncidentEvent
from binlane.log.codec.event import Event, EventHeader
from binlane.positions import AnyGtid, FilePosition

KEPT_MAX: Final = 100
"""So many are told one by one; those behind them are counted, and the last one is told."""


@dataclass(frozen=True, slots=True)
class StoredIncident:
    """An INCIDENT event in a binlog's file.

    Attributes:
        file: Base name of the file.
        number: Number in the file's name.
        position: Position of the event in the file.
        gtid: GTID of its group; empty if the group has none.
        timestamp: Time of the event, seconds since 1970.
        reason: The cause of the INCIDENT, for people.
        count: Number of INCIDENTs that this one stands for: itself, and those behind the one kept
            before it.
    """

    file: str
    number: int
    position: int
    gtid: str
    timestamp: int
    reason: str
    count: int = 1

    @property
    def place(self) -> tuple[int, int]:
        """The place in the binlog, for comparing."""
        return self.number, self.position

    @property
    def place_text(self) -> str:
        """`orders.000001:4711`."""
        return f"{self.file}:{self.position}"


def incident_of(event: Event, gtid: str, file: str, *, binlog: str) -> StoredIncident | None:
    """Make a `StoredIncident` of an event in a file of a binlog; None if the event is no INCIDENT."""
    body = event.body
    if not isinstance(body, IncidentEvent):
        return None
    return StoredIncident(
        file=file,
        number=int(file.rpartition(".")[2]),
        position=event.position,
        gtid=gtid,
        timestamp=event.header.timestamp,
        reason=_reason(body.message.decode("utf-8", "replace"), gtid, binlog),
    )


def incidents_of(
    events: Sequence[Event],
    placed: bytes | bytearray | memoryview,
    begin: FilePosition,
    gtid: AnyGtid | None,
) -> list[StoredIncident]:
    """The INCIDENTs of a group, at which replicas will stop.

    Args:
        events: Events of the group, in file order.
        placed: Bytes of these events, one behind the other, as they stand in the file.
        begin: Place of the group in the file of a binlog.
        gtid: GTID of the group; None if it has none.
    """
    found, at = [], 0
    binlog = begin.file.rpartition(".")[0]
    for event in events:
        stored = replace(event, position=begin.position + at)
        incident = incident_of(stored, str(gtid or ""), begin.file, binlog=binlog)
        found += [] if incident is None else [incident]
        at += EventHeader.decode(memoryview(placed)[at:]).length
    return found


def _reason(message: str, gtid: str, binlog: str) -> str:
    """The reason in a message, without the facts that are told of the event anyway."""
    text = message.removeprefix(f"{gtid}: ") if gtid else message
    return text.partition(f"; binlog {binlog}; ")[0] or "no reason is given"


def stopping_text(incidents: Sequence[StoredIncident]) -> str:
    """Tell the person who must deal with INCIDENTs at which ones replicas stop; empty if there are none."""
    if not incidents:
        return ""
    first, count = incidents[0], sum(each.count for each in incidents)
    many = "an INCIDENT" if count == 1 else f"{count:,} INCIDENTs, the first"
    what = f"{first.gtid} at {first.place_text}" if first.gtid else f"at {first.place_text}"
    return f"replicas stop at {many}, {what}: {first.reason}"


def with_another(
    known: tuple[StoredIncident, ...], incident: StoredIncident
) -> tuple[StoredIncident, ...]:
    """Add an INCIDENT that stands behind all others."""
    if len(known) < KEPT_MAX:
        return (*known, incident)
    return (*known[:-1], replace(incident, count=incident.count + known[-1].count))


def there(known: Iterable[StoredIncident], files: Collection[str]) -> tuple[StoredIncident, ...]:
    """Those that stand in files that are left."""
    return tuple(each for each in known if each.file in files)


def merged(parts: Iterable[Sequence[StoredIncident]]) -> tuple[StoredIncident, ...]:
    """Those of several parts of a binlog, in order."""
    found: tuple[StoredIncident, ...] = ()
    for part in parts:
        for incident in part:
            found = with_another(found, incident)
    return found


def encoded(incidents: Sequence[StoredIncident]) -> str:
    """Write INCIDENTs as the catalog keeps them."""
    return json.dumps([astuple(incident) for incident in incidents]) if incidents else ""


def decoded(text: str) -> tuple[StoredIncident, ...]:
    """Read the text that `encoded` made."""
    return tuple(StoredIncident(*row) for row in json.loads(text)) if text else ()
