"""One binlog as the routing loop keeps it: what went into it, and how it fares."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from binlane.binlogs.routing.planned_route import NO_THREADS, Threads
from binlane.binlogs.store.binlog import Binlog, Published
from binlane.binlogs.store.catalog import Activity
from binlane.binlogs.store.live import LiveBinlog
from binlane.live.capture.backoff import Backoff
from binlane.positions import AnyGtid, FilePosition, Position


@dataclass(frozen=True, slots=True)
class State:
    """A binlog's state as SHOW BINLOGS says it.

    Attributes:
        activity: Progress: open, catching up, or stopped.
        reason: The reason why it takes nothing; empty while it does.
    """

    activity: Activity
    reason: str = ""

    def __str__(self) -> str:
        word = self.activity.value.upper()
        return f"{word}: {self.reason}" if self.reason else word


@dataclass(slots=True)
class Counts:
    """Counts of one binlog's contents since this process began.

    Attributes:
        event_groups: Event groups that were appended.
        events: Events in the appended event groups.
        rows_events: Row events among the appended events.
        size_bytes: Bytes by which its files grew, their first events included.
        incidents: INCIDENT events that were appended.
        omissions: Changes that were left out since they name outside objects, by kind.
        rows_instead: Statements that are there as rows although the format asks for their texts, by
            reason.
    """

    event_groups: int = 0
    events: int = 0
    rows_events: int = 0
    size_bytes: int = 0
    incidents: int = 0
    omissions: Counter[str] = field(default_factory=Counter)
    rows_instead: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Trouble:
    """A failure, be it over or not.

    Attributes:
        text: The failure's message for the user.
        at_s: The time of its beginning, as `time.time`.
    """

    text: str
    at_s: float


@dataclass(slots=True, eq=False)
class Output:
    """A binlog and how it fares; the routing loop changes it, any thread may look.

    Attributes:
        live: The part of it that its readers share.
        counts: Counts of its contents since this process began.
        is_stopped: True if STOP BINLOG was executed.
        failure: The reason why nothing can be written to it; empty while it can.
        has_lost_trust: True if what it holds in memory must be read again from its files.
        forgets_source: True if it goes on with whatever source there is.
        since_s: The time since when it has failed, as `time.time`.
        due_s: The time when it is tried again, as `time.monotonic`.
        backoff: Gives the waits between attempts.
        last_timestamp: The time of the last group that was routed, in seconds since 1970; None
            before one.
        complete_s: The time when it last held everything that the source had, as `time.time`; None
            before.
        feed_failure: Gives the reason why its feed gets nothing from the source; empty while it does.
        is_on_main: True if the main feed feeds it.
        told: The facts that its readers were last told.
        threads: Connections of the source whose temporary tables it has, or lacks.
        drops_temporary: Replicas are to drop all temporary tables before anything else.
        stopped_at: The group past the port that it stopped before; None without one.
        accepted: Groups past the port up to here it takes, although it was to stop.
        counted: The place up to which its files were counted.
        last_failure: The last `failure`, also once it is over; None before one.
    """

    live: LiveBinlog
    counts: Counts = field(default_factory=Counts)
    is_stopped: bool = False
    failure: str = ""
    has_lost_trust: bool = False
    forgets_source: bool = False
    since_s: float = 0.0
    due_s: float = 0.0
    backoff: Backoff = field(default_factory=Backoff)
    last_timestamp: int | None = None
    complete_s: float | None = None
    feed_failure: Callable[[], str] = str
    is_on_main: bool = False
    told: Published | None = None
    threads: Threads = NO_THREADS
    drops_temporary: bool = False
    stopped_at: AnyGtid | None = None
    accepted: Position | None = None
    counted: FilePosition | None = None
    last_failure: Trouble | None = None

    def count_bytes(self) -> None:
        """Count the bytes that were published since the last time."""
        published = self.live.published
        if self.counted is not None:
            self.counts.size_bytes += published.bytes_behind(self.counted) or 0
        self.counted = published.end

    def lose_threads(self, threads: frozenset[int]) -> None:
        """Note that it lacks texts on temporary tables of some connections."""
        if not threads <= self.threads.lost:
            self.threads = replace(self.threads, lost=self.threads.lost.union(threads))

    def end_threads(self, threads: frozenset[int]) -> None:
        """Note that connections are over, and nobody has dropped their temporary tables by text."""
        if not self.threads.made.isdisjoint(threads):
            # Replicas drop those of all connections, or none.
            self.drops_temporary = True
            self.lose_threads(self.threads.made)
        self.lose_threads(threads)

    def drop_temporary(self) -> None:
        """Have replicas drop all temporary tables.

        Raises:
            StoreError: As `Binlog.append`.
        """
        self.binlog.begin_anew(self.last_timestamp or int(time.time()))
        self.drops_temporary = False

    def accept(self, position: Position | None) -> None:
        """Take what stopped it although it came past the port: somebody wants it to go on."""
        stopped_at, accepted = self.stopped_at, position or self.binlog.reached
        if stopped_at is not None:
            is_in = accepted.covers(stopped_at)
            self.accepted = accepted if is_in else accepted.advance(stopped_at)
            self.stopped_at = None

    @property
    def name(self) -> str:
        """The binlog's."""
        return self.live.name

    @property
    def binlog(self) -> Binlog:
        """The binlog."""
        binlog = self.live.binlog
        assert isinstance(binlog, Binlog), "the loop made it"
        return binlog

    @property
    def state(self) -> State:
        """The state that SHOW BINLOGS shows."""
        if self.is_stopped:
            return State(Activity.STOPPED, "STOP BINLOG")
        if reason := self.failure or self.feed_failure():
            return State(Activity.STOPPED, reason)
        return State(Activity.OPEN if self.is_on_main else Activity.CATCHING_UP)
