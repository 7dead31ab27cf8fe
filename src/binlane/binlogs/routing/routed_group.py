"""Routing's results for the store: the part of an event group that one binlog gets."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from binlane.binlogs.routing.memory import Memory
from binlane.log.codec.event import Event
from binlane.positions import AnyGtid
from binlane.statements.sql.servers import RowImage


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedGroup:
    """The in-scope part of an event group.

    Attributes:
        gtid: GTID of the source's group; a binlog keeps it, so that replicas can change between
            binlog and source. None for a group without: an INCIDENT of MariaDB, MySQL without
            GTIDs.
        events: From the GTID event to the one that ends the group. Lengths and positions in the
            headers are the source's: the writer of the events computes them anew.
        prepares: The XA transaction that it prepares, as statements name it, if the binlog is
            scoped: a later group finishes it, which the binlog gets only if it has this one.
        finishes: The XA transaction that it commits or rolls back.
        is_alone: True if no other group may be applied at the same time, whatever MySQL's clock
            says: the clock knows the rows that its source changed, not those that its statements
                read.
        image: Images to which the session that made the group wants its rows cut.
    """

    gtid: AnyGtid | None
    events: tuple[Event, ...]
    prepares: str | None = None
    finishes: str | None = None
    is_alone: bool = False
    image: RowImage = RowImage.FULL


def prepared_with(prepared: frozenset[str], group: RoutedGroup | None) -> frozenset[str]:
    """The XA transactions that are prepared and not finished behind a group."""
    if group is None:
        return prepared
    return (prepared | {group.prepares or ""}) - {group.finishes or "", ""}


class OmissionKind(Enum):
    """Why a part of an event group stays out of a scoped binlog although it bears on it."""

    ANNOTATE = "annotate text"
    TRIGGER = "trigger"
    VIEW = "view"
    ROUTINE = "routine or event"
    ADMIN = "admin statement"
    GRANT = "grant"
    COMMENT = "comment"
    STATEMENT = "change logged as a statement"


@dataclass(frozen=True, slots=True, kw_only=True)
class Omission:
    """Something that was left out since it names outside objects; counted, and noted for people.

    Attributes:
        kind: Kind of the part left out.
        reason: Cause of its being left out, naming no outside object.
    """

    kind: OmissionKind
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """The outcome for one event group and one binlog.

    Attributes:
        group: The binlog's part of the group; None where nothing of the group is in its scope.
        omissions: Parts that were left out and are worth a note.
        incident: Cause of an INCIDENT event in the place of the group; None if there is none.
        memory: Memory behind the group, if it differs from the memory before.
    """

    group: RoutedGroup | None
    omissions: tuple[Omission, ...] = ()
    incident: str | None = None
    memory: Memory | None = None
