"""INCIDENT events of a binlog, at which its replicas stop, until somebody has dealt with them.

What is known of them is part of a binlog's mark, so that it is on disk with the events themselves.
Of those behind a mark recovery tells, and of those that an older binlane wrote their files do.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Final

from binlane.log.codec.control import IncidentEvent
from binlane.log.codec.event import Event

KEPT_MAX: Final = 100
"""So many are told one by one; those behind them are counted, and the last one is told."""


@dataclass(frozen=True, slots=True)
class Incident:
    """An INCIDENT event in a binlog's file.

    Attributes:
        file: Base name.
        number: Of the file.
        position: Where the event begins in it.
        gtid: Of its group; empty where it has none.
        timestamp: Of the event, seconds since 1970.
        reason: In words.
        count: How many it tells of: with those before it, behind the one that is kept before it.
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
        """For comparing."""
        return self.number, self.position

    @property
    def place_text(self) -> str:
        """`orders.000001:4711`."""
        return f"{self.file}:{self.position}"


def incident_of(event: Event, gtid: str, file: str, *, binlog: str) -> Incident | None:
    """What an event tells, in a file of a binlog; None if it is no INCIDENT."""
    body = event.body
    if not isinstance(body, IncidentEvent):
        return None
    return Incident(
        file=file,
        number=int(file.rpartition(".")[2]),
        position=event.position,
        gtid=gtid,
        timestamp=event.header.timestamp,
        reason=_reason(body.message.decode("utf-8", "replace"), gtid, binlog),
    )


def _reason(message: str, gtid: str, binlog: str) -> str:
    """What a message says beside what is told of the event anyway."""
    text = message.removeprefix(f"{gtid}: ") if gtid else message
    return text.partition(f"; binlog {binlog}; ")[0] or "no reason is given"


def stopping_text(incidents: Sequence[Incident]) -> str:
    """What replicas stop at, for who has to deal with it; empty where there is nothing."""
    if not incidents:
        return ""
    first, count = incidents[0], sum(each.count for each in incidents)
    many = "an INCIDENT" if count == 1 else f"{count:,} INCIDENTs, the first"
    what = f"{first.gtid} at {first.place_text}" if first.gtid else f"at {first.place_text}"
    return f"replicas stop at {many}, {what}: {first.reason}"


def with_another(known: tuple[Incident, ...], incident: Incident) -> tuple[Incident, ...]:
    """With one that stands behind all others."""
    if len(known) < KEPT_MAX:
        return (*known, incident)
    return (*known[:-1], replace(incident, count=incident.count + known[-1].count))


def there(known: Iterable[Incident], files: Collection[str]) -> tuple[Incident, ...]:
    """Those that stand in files that are left."""
    return tuple(each for each in known if each.file in files)


def merged(parts: Iterable[Sequence[Incident]]) -> tuple[Incident, ...]:
    """Those of several parts of a binlog, in order."""
    found: tuple[Incident, ...] = ()
    for part in parts:
        for incident in part:
            found = with_another(found, incident)
    return found


def encoded(incidents: Sequence[Incident]) -> str:
    """As the catalog keeps them."""
    return json.dumps([astuple(incident) for incident in incidents]) if incidents else ""


def decoded(text: str) -> tuple[Incident, ...]:
    """What `encoded` made."""
    return tuple(Incident(*row) for row in json.loads(text)) if text else ()
