"""The part of event groups that one binlog gets: what routing gives, and the store writes."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple, Protocol

from binlane.binlogs.routing.cascade_replay import ChildRowsKeeper
from binlane.binlogs.routing.routing_memory import Memory
from binlane.binlogs.routing.row_images import ImageCutter
from binlane.binlogs.routing.table_births import TableArrival
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.positions import AnyGtid, Position
from binlane.statements.scope.definition import Definition
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
    FOREIGN_KEY = "foreign key"


@dataclass(frozen=True, slots=True, kw_only=True)
class Omission:
    """Something that was left out since it names outside objects; counted, and noted for people.

    Attributes:
        kind: Kind of the part left out.
        reason: Cause of its being left out, naming no outside object.
        name: Name of the object that stays out, for the operator's log; empty where none does.
    """

    kind: OmissionKind
    reason: str
    name: str = field(default="", compare=False)


TEXT_LEFT_OUT: Final = Omission(
    kind=OmissionKind.ANNOTATE, reason="its text may name objects outside of the scope"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """The outcome for one event group and one binlog.

    Attributes:
        group: The binlog's part of the group; None where nothing of the group is in its scope.
        omissions: Parts that were left out and are worth a note.
        incident: Cause of an INCIDENT event in the place of the group; None if there is none.
        memory: Memory behind the group, if it differs from the memory before.
        arrival: The table that comes in, if its history in the source's log can stand in the
            place of the INCIDENT.
    """

    group: RoutedGroup | None
    omissions: tuple[Omission, ...] = ()
    incident: str | None = None
    memory: Memory | None = None
    arrival: TableArrival | None = None


class BinlogPart(NamedTuple):
    """A piece of a binlog's part of the source's groups; the binlog takes it as a whole.

    Attributes:
        data: Bytes of whole groups, or of a piece of one, made for the place where the binlog ends;
            good until the next part is asked for.
        group: A group whose events the binlog still has to place; None where `data` is everything.
        groups: Number of groups that end in the part.
        planned: Number of these groups that are there as their plans say.
        bare: Number of these groups that hold a statement on objects without rows, and have no
            plan; nobody counts them where the log is not read again.
        events: Number of events in the part.
        rows_events: Number of rows events among these events.
        next_group: Number of the group of the run that follows the part.
        gtid: GTID of the one group that ends in the part; None for a part of several groups.
        done: Position up to which the binlog has everything with this part; None for `gtid` alone.
        memory: Memory behind the part; None if it does not change.
        prepared: The XA transactions that are prepared and not finished behind `data`; None if they
            are the same as before.
        clock: The last logical timestamp in the binlog behind `data`.
        clock_base: Number that is added to the logical timestamps of the source behind `data`; None
            if it is the same as before.
        cutter: Cutter that has cut the row images of `data`; None if the binlog cuts them.
        rotates_at: Time of the events that end the binlog's file before the part, in seconds since
            1970; None if the file goes on.
        omissions: Parts of the groups that were left out and are worth a note, with their numbers.
        incident: Cause of an INCIDENT event in the place of the group; None if there is none.
        reasons: Reasons why rows stand in the places of statements, one for each statement.
        made: Connections of the source whose temporary tables are made by texts in the part.
        lost: Connections of the source for which a text on temporary tables is missing.
        arrival: The table that comes in, if its history can stand in the place of the INCIDENT.
    """

    data: bytes | bytearray | memoryview = b""
    group: RoutedGroup | None = None
    groups: int = 0
    planned: int = 0
    bare: int = 0
    events: int = 0
    rows_events: int = 0
    next_group: int = 0
    gtid: AnyGtid | None = None
    done: Position | None = None
    memory: Memory | None = None
    prepared: frozenset[str] | None = None
    clock: int = 0
    clock_base: int | None = None
    cutter: ImageCutter | None = None
    rotates_at: int | None = None
    omissions: tuple[tuple[Omission, int], ...] = ()
    incident: str | None = None
    reasons: tuple[str, ...] = ()
    made: frozenset[int] = frozenset()
    lost: frozenset[int] = frozenset()
    arrival: TableArrival | None = None


class RoutedBinlog(Protocol):
    """The state of a binlog on which its part of a group depends."""

    definition: Definition

    @property
    def children(self) -> ChildRowsKeeper | None:
        """The rows of children whose parents are outside; None if they are not followed."""
        ...

    @property
    def memory(self) -> Memory:
        """Routing's memory of the groups before."""
        ...

    @property
    def prepared(self) -> frozenset[str]:
        """The XA transactions that were prepared in it and not finished."""
        ...

    @property
    def reached(self) -> Position:
        """Position of the source up to which everything in its scope is there."""
        ...

    @property
    def source_format(self) -> Format:
        """Format of the events that it is given."""
        ...

    @property
    def format(self) -> Format:
        """Format of the events in its last file."""
        ...

    @property
    def size_bytes(self) -> int:
        """Position in the last file at which the next group will begin."""
        ...

    @property
    def room_bytes(self) -> int:
        """Bytes that the last file may still grow before another begins."""
        ...

    @property
    def clock(self) -> int:
        """The last logical timestamp in it; 0 if there is none."""
        ...

    @property
    def clock_base(self) -> int:
        """Number that is added to the logical timestamps of a MySQL source."""
        ...

    @property
    def has_tables_info(self) -> bool:
        """True if Query events of its last file name the tables that they concern."""
        ...

    @property
    def may_have_tables_info(self) -> bool:
        """True if Query events of its last file, or of a later one, may name those tables."""
        ...


class Beside(NamedTuple):
    """Facts of a binlog before a group, beside its definition and memory.

    Attributes:
        reached: Position of the source before the group; None where it is not known, and the
            histories of tables will not be asked for.
        children: The rows of children whose parents are outside, by which their changes are
            derived; None: such a change is an INCIDENT.
    """

    reached: Position | None = None
    children: ChildRowsKeeper | None = None


NOTHING_BESIDE: Final = Beside()
"""The facts where nothing more is known."""
