"""One binlog as the routing loop keeps it: what went into it, and how it fares."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, Self

from binlane.binlogs.routing.planned_route import NO_THREADS, Threads
from binlane.binlogs.routing.routed_group import BinlogPart
from binlane.binlogs.store.binlog import Binlog
from binlane.binlogs.store.binlog_files import Published
from binlane.binlogs.store.catalog import BinlogActivity
from binlane.binlogs.store.fills import Fill, without_seeds
from binlane.binlogs.store.live import LiveBinlog
from binlane.live.capture.backoff import Backoff
from binlane.positions import AnyGtid, FilePosition, Position
from binlane.statements.sql.servers import LoggingMode

READING: Final = "reading rows"
"""The step of a fill in which the source is read."""


@dataclass(frozen=True, slots=True)
class State:
    """A binlog's state as SHOW BINLOGS says it.

    Attributes:
        activity: Progress: open, catching up, stopped, or reading rows.
        reason: The reason why it takes nothing; empty while it does.
        progress: How far the reading of its tables' rows is; empty where none are read.
    """

    activity: BinlogActivity
    reason: str = ""
    progress: str = ""

    def __str__(self) -> str:
        word = self.activity.value.upper()
        told = self.reason or self.progress
        return f"{word}: {told}" if told else word


@dataclass(frozen=True, slots=True, kw_only=True)
class FillReport:
    """Progress of a binlog that is being given its tables' rows.

    Attributes:
        step: What is being done, such as `reading rows`.
        table: The table that it is done with; empty between tables.
        rows: The rows that were read or placed, over all tables.
        rows_expected: The rows that the source estimates; 0 where nobody knows yet.
        failure: The reason why it does not go on; empty while it does.
        hint: What somebody can do about that.
        is_over: True if it was given up, and only its end is told.
    """

    step: str = READING
    table: str = ""
    rows: int = 0
    rows_expected: int = 0
    failure: str = ""
    hint: str = ""
    is_over: bool = False

    @property
    def share(self) -> float | None:
        """The part that is done, from 0 to 1; None where nobody can tell."""
        if not self.rows_expected or not self.rows:
            return None
        return min(self.rows / self.rows_expected, 0.99)

    @property
    def measure(self) -> str:
        """The part that is done and the table, such as `40 %, shop.items`; empty before that."""
        share = self.share
        parts = ("" if share is None else f"{share * 100:.0f} %", self.table)
        return ", ".join(filter(None, parts))

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.step, self.measure)))


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
class OutputFailure:
    """A failure of a binlog, be it over or not.

    Attributes:
        text: The failure's message for the user.
        at_s: The time of its beginning, as `time.time`.
    """

    text: str
    at_s: float


@dataclass(slots=True)
class SourceTemporaryTables:
    """The temporary tables of the source's connections, as one binlog has them.

    Attributes:
        threads: Connections whose temporary tables the binlog has, or lacks.
        drops_all: True if replicas are to drop all temporary tables before anything else.
    """

    threads: Threads = NO_THREADS
    drops_all: bool = False

    def lose(self, threads: frozenset[int]) -> None:
        """Note that texts on temporary tables of some connections are missing."""
        if not threads <= self.threads.lost:
            self.threads = replace(self.threads, lost=self.threads.lost.union(threads))

    def note_made(self, threads: frozenset[int]) -> None:
        """Note that there are texts on temporary tables of some connections."""
        if not threads <= self.threads.made:
            self.threads = replace(self.threads, made=self.threads.made.union(threads))

    def end(self, threads: frozenset[int]) -> None:
        """Note that connections are over, and nobody has dropped their temporary tables by text."""
        if not self.threads.made.isdisjoint(threads):
            # Replicas drop those of all connections, or none.
            self.drops_all = True
            self.lose(self.threads.made)
        self.lose(threads)

    def restart_source(self, *, is_complete: bool) -> None:
        """Note that the source was restarted, and counts its connections anew.

        Sessions that ended with the process before may be of behind this start, until all is read
        that was there then.

        Args:
            is_complete: True if the binlog has held everything that the source had.
        """
        self.threads = NO_THREADS if is_complete else Threads(lost=self.threads.lost)


@dataclass(slots=True, eq=False)
class Output:
    """A binlog and how it fares; the routing loop changes it, by its methods, any thread may look.

    Attributes:
        live: The part of it that its readers share.
        binlog: The binlog as its writer keeps it.
        counts: Counts of its contents since this process began.
        is_stopped: True if STOP BINLOG was executed.
        failure: The reason why nothing can be written to it; empty while it can.
        has_lost_trust: True if what it holds in memory must be read again from its files.
        forgets_source: True if it goes on with whatever source there is.
        since_s: The time since when it has failed, as `time.time`.
        due_s: The time when it is tried again, as `time.monotonic`.
        last_timestamp: The time of the last group that was routed, in seconds since 1970; None
            before one.
        complete_s: The time when it last held everything that the source had, as `time.time`; None
            before.
        feed_failure: Gives the reason why its feed gets nothing from the source; empty while it does.
        is_on_main: True if the main feed feeds it.
        temporary: The temporary tables of the source's connections.
        accepted: Groups past the port up to here it takes, although it was to stop.
        last_failure: The last `failure`, also once it is over; None before one.
        is_filling: True if it takes nothing from the source until its tables' rows are in it.
        fill: How far the reading of its tables' rows is; None without one. Whoever reads them says so.
        coming: The tables that come in, and what is done with their rows; else empty.
    """

    live: LiveBinlog
    counts: Counts = field(default_factory=Counts)
    is_stopped: bool = False
    failure: str = ""
    has_lost_trust: bool = False
    forgets_source: bool = False
    since_s: float = 0.0
    due_s: float = 0.0
    last_timestamp: int | None = None
    complete_s: float | None = None
    feed_failure: Callable[[], str] = str
    is_on_main: bool = False
    temporary: SourceTemporaryTables = field(default_factory=SourceTemporaryTables)
    accepted: Position | None = None
    last_failure: OutputFailure | None = None
    is_filling: bool = False
    fill: FillReport | None = None
    coming: str = ""
    _backoff: Backoff = field(default_factory=Backoff)
    _told: Published | None = None
    _stopped_at: AnyGtid | None = None
    _counted: FilePosition | None = None
    binlog: Binlog = field(init=False)

    def __post_init__(self) -> None:
        """Know the binlog itself, which readers do not."""
        binlog = self.live.binlog
        assert isinstance(binlog, Binlog), "the loop made it"
        self.binlog = binlog

    @classmethod
    def of(cls, binlog: Binlog, lost: frozenset[int]) -> Self:
        """Begin to keep a binlog.

        Args:
            binlog: The binlog of the store.
            lost: Connections of the source whose temporary tables no binlog has as texts.
        """
        return cls(
            LiveBinlog(binlog),
            temporary=SourceTemporaryTables(
                Threads(lost=lost),
                drops_all=bool(lost) and binlog.definition.logging_mode is not LoggingMode.ROW,
            ),
            _counted=binlog.end,
        )

    def take(self, part: BinlogPart) -> None:
        """Take a part that routing gives, and count what it has, as `Binlog.take`."""
        self.binlog.take(part)
        self.counts.event_groups += part.groups
        self.counts.events += part.events
        self.counts.rows_events += part.rows_events

    def take_news(self) -> bool:
        """True if more is published than the last time; its bytes are counted."""
        published, counted = self.binlog.published, self._counted
        if published is self._told:
            return False
        self._told = published
        last = published.last
        if counted is not None:
            if counted.file == last.name:
                self.counts.size_bytes += max(0, last.size_bytes - counted.position)
            else:
                self.counts.size_bytes += published.bytes_behind(counted) or 0
        self._counted = published.end
        return True

    def note_complete(self, now_s: float) -> None:
        """Note that it holds everything that the source has, at a time as `time.time`."""
        self.complete_s = now_s

    def attach(self, failure: Callable[[], str], *, is_main: bool) -> None:
        """Note that a feed feeds it.

        Args:
            failure: Gives the reason why the feed gets nothing from the source.
            is_main: True for the main feed.
        """
        self.is_on_main, self.feed_failure = is_main, failure
        if not is_main:
            self.forgets_source = False

    def detach(self) -> None:
        """Note that no feed feeds it."""
        self.is_on_main, self.feed_failure = False, str

    def stop(self) -> None:
        """Let it get nothing more: STOP BINLOG was executed, now or before a restart."""
        self.is_stopped, self.failure = True, ""

    def go_on(self, position: Position | None, *, forgets_source: bool) -> None:
        """Let it go on at once, by START BINLOG.

        Args:
            position: Groups up to here are taken although they came past the port; None: up to
                where the binlog stands.
            forgets_source: True if it goes on with whatever source there is.
        """
        stopped_at, accepted = self._stopped_at, position or self.binlog.reached
        if stopped_at is not None:
            is_in = accepted.covers(stopped_at)
            self.accepted = accepted if is_in else accepted.advance(stopped_at)
            self._stopped_at = None
        self.forgets_source |= forgets_source
        self.is_stopped, self.due_s = False, 0.0
        self._backoff.reset()

    def stop_before(self, gtid: AnyGtid | None) -> None:
        """Note the group past the port that it stops before."""
        self._stopped_at = gtid

    def fail(self, reason: str, *, has_lost_trust: bool) -> None:
        """Note that nothing can be written to it, and when it is tried again.

        Args:
            reason: The failure's message for the user.
            has_lost_trust: True if its memory may be wrong.
        """
        self.note_failure(reason)
        self.has_lost_trust |= has_lost_trust
        # Without chance: those whose disk fails at once go on together, by one feed.
        self.due_s = time.monotonic() + self._backoff.next_delay_s(0)

    def note_failure(self, reason: str) -> None:
        """Note why the binlog cannot be written."""
        if not self.failure:
            self.since_s = time.time()
        if self.failure != reason:
            self.last_failure = OutputFailure(reason, time.time())
        self.failure = reason

    def recover(self) -> None:
        """Note that it works again."""
        self.failure = ""
        self._backoff.reset()

    def reopen(self, binlog: Binlog) -> None:
        """Take a binlog that was read again from its files."""
        self.live.binlog = self.binlog = binlog
        self.has_lost_trust = False

    def begin_anew(self, begin: Position | None = None) -> None:
        """Begin a file as a server does that was started.

        Replicas have applied all before it then, in whatever domain, and drop all temporary tables:
        statements on those that they have as texts become rows.

        Args:
            begin: The position that the file says is done before it; None for the one that is.

        Raises:
            StoreError: As `Binlog.append`.

        Source: MariaDB 10.11 sql/rpl_parallel.cc, `rpl_parallel::do_event`.
        """
        self.temporary.lose(self.temporary.threads.made)
        self.drop_temporary(begin)

    def drop_temporary(self, begin: Position | None = None) -> None:
        """Have replicas drop all temporary tables.

        Args:
            begin: The position that the file states, as `begin_anew` takes it.

        Raises:
            StoreError: As `Binlog.append`.
        """
        self.binlog.begin_anew(self.last_timestamp or int(time.time()), begin=begin)
        self.temporary.drops_all = False

    @property
    def name(self) -> str:
        """The binlog's."""
        return self.live.name

    @property
    def taken(self) -> Position:
        """The source's position up to which it has everything, published or not."""
        return self.of_source(self.binlog.reached)

    def of_source(self, position: Position) -> Position:
        """Return the part of a position of it that is the source's."""
        return without_seeds(position, self.binlog.seedings)

    @property
    def is_reading_children(self) -> bool:
        """True if rows of its children are being read."""
        children = self.binlog.children
        return children is not None and children.is_reading

    @property
    def is_kept(self) -> bool:
        """True if it needs what comes behind its position: not before it has its tables' rows."""
        return not self.is_filling or bool(self.taken)

    @property
    def state(self) -> State:
        """The state that SHOW BINLOGS shows."""
        if self.is_stopped:
            return State(BinlogActivity.STOPPED, "STOP BINLOG")
        if reason := self.failure or self.feed_failure():
            return State(BinlogActivity.STOPPED, reason)
        fill = self.fill or FillReport()
        if self.is_filling and fill.failure:
            return State(BinlogActivity.STOPPED, f"rows cannot be read: {fill.failure}")
        if self.is_filling:
            told = fill.measure if fill.step == READING else str(fill)
            return State(BinlogActivity.FILLING, progress=told)
        activity = BinlogActivity.OPEN if self.is_on_main else BinlogActivity.CATCHING_UP
        if self.coming:
            return State(activity, progress=self.coming)
        if self.fill is None:
            children = self.binlog.children
            return State(activity, progress="" if children is None else children.progress)
        told = f"rows cannot be read: {fill.failure}" if fill.failure else str(fill)
        return State(activity, progress=told)


def know_fill(output: Output, fill: Fill | None) -> None:
    """Have a binlog know of the fill of it that is under way, if there is one."""
    output.is_filling = fill is not None and fill.holds_back
    output.fill = None if fill is None else FillReport()
