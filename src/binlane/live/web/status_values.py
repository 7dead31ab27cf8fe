"""Status for operators and their tools: plain values, a snapshot that `service` makes.

Times are seconds since 1970 where a name ends with `at_s`, else durations in seconds. What is not
known is None, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from binlane.live.web.rate_history import NO_RATES, Rates

_ROWS: Final = "ROW"
_CHECKS_TOLD_MAX: Final = 3


class ShownState(Enum):
    """State of a binlog as SHOW BINLOGS shows it: OPEN takes everything from the source."""

    OPEN = "OPEN"
    CATCHING_UP = "CATCHING UP"
    FILLING = "READING ROWS"
    STOPPED = "STOPPED"


class ReaderState(Enum):
    """Present work of a replica or tool that reads a binlog."""

    STARTING = "starting"
    SENDING = "sending"
    BLOCKED = "takes nothing"
    CAUGHT_UP = "caught up"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFailure:
    """A failure, be it over or not.

    Attributes:
        text: The failure's message for the user.
        at_s: The time of its beginning, in seconds since 1970.
    """

    text: str
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentStatus:
    """An INCIDENT event, at which replicas stop.

    Attributes:
        text: The reason in words, as the event has it.
        at_s: The time when the source did what it stands for, in seconds since 1970.
        file: The base name of its file in the binlog.
        position_bytes: The event's place in that file, in bytes.
        gtid: The GTID of its group; empty where it has none.
    """

    text: str
    at_s: float
    file: str
    position_bytes: int
    gtid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderStatus:
    """A replica or tool that reads a binlog.

    Attributes:
        server_id: Given by the reader when it registers or begins to dump.
        user: Account that it logged in with.
        peer: Address and port that it comes from.
        host: The reader's `report_host`; empty if it has none.
        port: The reader's `report_port`; 0 if it has none.
        uuid: The reader's `server_uuid`; empty if it has none.
        connection_id: The thread id of its session on the source.
        is_tls: True if it is encrypted; None where that is not told.
        since_at_s: The time when its dump began, in seconds since 1970.
        file: The base name of the file that it is in; empty while it looks for its place.
        position_bytes: The reader's place in that file, in bytes.
        sent_bytes: The bytes that its connection has taken.
        lag_bytes: The bytes from there to the end of the binlog.
        lag_s: Age of what was sent last, or the time since it last had everything; 0 at the end.
        blocked_s: The time for which its connection has taken nothing, in seconds; None while it
            does.
    """

    server_id: int
    user: str
    peer: str
    host: str = ""
    port: int = 0
    uuid: str = ""
    connection_id: int = 0
    is_tls: bool | None = None
    since_at_s: float
    state: ReaderState
    file: str = ""
    position_bytes: int = 0
    sent_bytes: int = 0
    lag_bytes: int | None = None
    lag_s: float | None = None
    blocked_s: float | None = None


DIFFERENT: Final = "different"
"""The finding of a table that is not what its binlog says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparingStatus:
    """The comparison that runs at present, and the step at which it is.

    Attributes:
        binlog: Name of the binlog that is compared.
        table: The table's name as `database.table`; empty where the step is not about one.
        server: `source`, or a replica's address; empty where the step is not about one.
        step: The work or the wait in some words.
        since_at_s: The begin of the step, in seconds since 1970.
        text: All of that in one line, with the time spent waiting for a processor where it is long.
        is_slow: True if the step takes longer than a minute.
    """

    binlog: str
    table: str
    server: str
    step: str
    since_at_s: float
    text: str
    is_slow: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckStatus:
    """The last comparison of a table of a binlog with a server.

    Attributes:
        table: The table's name as `database.table`.
        server: `source`, or a replica's address.
        finding: The words `equal`, `different` or `not compared`.
        text: The outcome in one line for people.
        gtid: The position as of which the table was compared; empty if it was not.
        since: The position from which on the binlog's changes were compared.
        is_whole: True if the binlog has all rows of the table.
        rows: The number of rows on the server.
        at_s: The end of the comparison, in seconds since 1970.
        key: The key of the first row that differs, such as `id=17`; empty if there is none.
        equal_gtid: The position as of which the table was last equal; empty if it never was.
    """

    table: str
    server: str
    finding: str
    text: str
    gtid: str = ""
    since: str = ""
    is_whole: bool = False
    rows: int = 0
    at_s: float = 0.0
    key: str = ""
    equal_gtid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FillStatus:
    """The tables' rows that a binlog is being given.

    Attributes:
        step: What is being done, such as `reading rows`.
        table: The table that it is done with; empty between tables.
        rows: The rows that were read or placed, over all tables.
        rows_expected: The rows that the source estimates; 0 where nobody knows yet.
        failure: The reason why it does not go on; empty while it does.
        hint: A text on what somebody can do about that.
        is_over: True if it was given up.
    """

    step: str
    table: str = ""
    rows: int = 0
    rows_expected: int = 0
    failure: str = ""
    hint: str = ""
    is_over: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BinlogStatus:
    """One binlog as operators see it.

    Attributes:
        reason: The reason why it is not open; empty where it is.
        is_stopped_by_statement: STOP BINLOG was executed, so that it being stopped is no problem.
        file: The base name of the current file.
        position_bytes: Size of the current file up to which readers may read.
        files: The number of files of the binlog.
        size_bytes: The size of all files together.
        gtid_complete: The watermark as a text of GTIDs.
        gtid_before: The position before its first file.
        log_all: True if it logs all that it does not ignore.
        log: LOG list as SHOW prints it.
        ignore: IGNORE list as SHOW prints it.
        format: The logging mode as its keyword.
        event_groups: Written since this process began; so are the counts below.
        events: Events written since this process began.
        written_bytes: Bytes written since this process began.
        omissions: Parts left out since they name outside objects, by kind.
        rows_instead: Statements that are there as rows although the format asks for them, by reason.
        full_images: Row events that are full although ROW_IMAGE asks for less, by reason.
        incidents: INCIDENT events, at which replicas stop.
        unacknowledged: The INCIDENTs in its files that nobody has acknowledged; they are known from
            before this process, too.
        stopping: The reason at which replicas stop, in words; empty where all are acknowledged.
        unreadable: The reason why a file of it could not be read for a replica; empty where all
            could.
        first_incident: The first one that is not acknowledged.
        last_incident: The last one that is not acknowledged.
        last_failure: The last reason why nothing could be written to it or came for it, be it over
            or not.
        readers: Replicas and tools that read it now, the one that is furthest behind first.
        lag_s: Seconds between a change on the source and now, for the last change that was
            routed; 0 when nothing more is to come.
        lag_bytes: The bytes of the source's log, as far as it went some seconds ago, that are not
            routed yet.
        rates: The rates over the last hour.
        archived_files: Closed files that are copied to the archive; None without one.
        archive_pending_files: Closed files that are not copied yet; None without one.
        archive_failure: The reason why files are not copied; empty where all is well.
        checks: The last comparisons of its tables with servers, differences first.
        followed_rows: Rows of children that are kept to follow cascades; None if they are not.
        followed_bytes: Size of these rows on the disk; None if cascades are not followed.
        unfollowed: Reasons why cascades into a child are INCIDENTs all the same, by table.
        fill: The tables' rows that it is being given; None where it is given none.
    """

    name: str
    state: ShownState = ShownState.OPEN
    reason: str = ""
    is_stopped_by_statement: bool = False
    file: str
    position_bytes: int
    files: int = 1
    size_bytes: int = 0
    gtid_complete: str
    gtid_before: str = ""
    log_all: bool = False
    log: str
    ignore: str
    format: str
    event_groups: int
    events: int
    written_bytes: int = 0
    omissions: Mapping[str, int]
    rows_instead: Mapping[str, int]
    incidents: int
    unacknowledged: int = 0
    full_images: Mapping[str, int] = field(default_factory=dict)
    stopping: str = ""
    unreadable: str = ""
    first_incident: IncidentStatus | None = None
    last_incident: IncidentStatus | None = None
    last_failure: ShownFailure | None = None
    readers: Sequence[ReaderStatus] = ()
    lag_s: float | None
    lag_bytes: int | None = None
    rates: Rates = NO_RATES
    archived_files: int | None = None
    archive_pending_files: int | None = None
    archive_failure: str = ""
    checks: Sequence[CheckStatus] = ()
    followed_rows: int | None = None
    followed_bytes: int | None = None
    unfollowed: Mapping[str, str] = field(default_factory=dict)
    fill: FillStatus | None = None

    @property
    def archive_problem(self) -> str | None:
        """A text for operators if copies fail, else None."""
        if not self.archive_failure:
            return None
        return f"binlog {self.name} is not archived: {self.archive_failure}"

    @property
    def problems(self) -> list[str]:
        """Texts of problems that an operator has to solve, one each."""
        found = []
        if self.state is ShownState.STOPPED and not self.is_stopped_by_statement:
            found.append(f"binlog {self.name} is stopped: {self.reason or 'for no known reason'}")
        elif self.fill is not None and self.fill.failure:
            found.append(f"binlog {self.name}: rows cannot be read: {self.fill.failure}")
        if self.stopping:
            found.append(f"binlog {self.name}: {self.stopping}")
        if self.unreadable:
            found.append(f"binlog {self.name}: replicas stop, since {self.unreadable}")
        found += [
            f"binlog {self.name}: {check.table} ({check.server}) is {check.text}"
            for check in self.checks[:_CHECKS_TOLD_MAX]
            if check.finding == DIFFERENT
        ]
        return found

    @property
    def problem(self) -> str | None:
        """All problems in one text; None if there are none."""
        return "; ".join(self.problems) or None

    @property
    def needs_attention(self) -> bool:
        """True if an operator has to act on the binlog."""
        return self.state is not ShownState.OPEN or bool(
            self.stopping
            or self.unreadable
            or self.archive_failure
            or self.fill
            or self.has_difference
        )

    @property
    def has_difference(self) -> bool:
        """True if a table is not what the binlog says."""
        return any(check.finding == DIFFERENT for check in self.checks)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStatus:
    """Status of the captured server.

    Attributes:
        url: The source's URL without a password.
        flavor: The word `mariadb` or `mysql`.
        version: The version that the source says; empty before the first connection.
        is_connected: True while the source's log comes.
        connected_at_s: The time since when its log comes, in seconds since 1970; None while it does
            not.
        gtid: Everything up to here was taken; empty before that is known.
        file: The file in the source's log up to which everything was taken; empty before that is
            known.
        position_bytes: The end of what was taken of that file, in bytes.
        silent_s: The time since it last said something, in seconds; None before it has.
        end_file: The file where its log ended some seconds ago; empty where that is not known.
        end_bytes: The size of `end_file` at that time; None where that is not known.
        end_problem: The reason why the end is not known; empty where it is, or was not asked yet.
        gaps: The reasons why rows are or may be missing in its log, and so in all binlogs.
        warnings: Texts on other settings that are not as they should be.
        last_failure: The last reason why nothing came, be it over or not.
    """

    url: str
    flavor: str
    version: str = ""
    is_connected: bool = False
    connected_at_s: float | None = None
    gtid: str = ""
    file: str = ""
    position_bytes: int | None = None
    silent_s: float | None = None
    end_file: str = ""
    end_bytes: int | None = None
    end_problem: str = ""
    gaps: Sequence[str] = ()
    warnings: Sequence[str] = ()
    last_failure: ShownFailure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStatus:
    """Status of this process.

    Attributes:
        version: The version of binlane's package.
        python: The version of Python itself.
        started_at_s: The time when the process began, in seconds since 1970.
        cpu_s: Processor time that it has used.
        resident_bytes: Memory that it has; None where the system does not tell.
        virtual_bytes: Addresses that it has taken; None likewise.
        open_descriptors: Files and connections; None likewise.
        descriptors_max: The number of descriptors that it may open.
    """

    version: str
    python: str
    process_id: int
    started_at_s: float
    cpu_s: float
    resident_bytes: int | None = None
    virtual_bytes: int | None = None
    open_descriptors: int | None = None
    descriptors_max: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStatus:
    """One of several processes that serve the MySQL port.

    Attributes:
        number: The number of the worker, from 0.
        process_id: The number of the process; None while there is none.
        sessions: The number of its clients that are logged in.
        restarts: The number of times that another process took its place.
        cpu_s: Processor time that it used.
        resident_bytes: The process's memory; None where the system does not tell.
    """

    number: int
    process_id: int | None = None
    sessions: int = 0
    restarts: int = 0
    cpu_s: float = 0.0
    resident_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PortStatus:
    """The MySQL port; its counts begin with the process.

    Attributes:
        address: The address where it listens; empty before it does.
        sessions: Clients that are logged in.
        sessions_max: The number of clients that may be logged in; None where that is not told.
        logins: Clients that connected, by what became of them.
        judged: Statements, by what became of them.
        refused: Statements and dumps that binlane refused, by error number.
        faults: Faults of binlane's own while it judged, followed or answered statements.
        problem: The reason why statements are not judged, or binlogs hold rows alone; empty if
            neither.
        workers: The processes that serve it; none where this one does.
    """

    address: str = ""
    sessions: int = 0
    sessions_max: int | None = None
    logins: Mapping[str, int] = field(default_factory=dict)
    judged: Mapping[str, int] = field(default_factory=dict)
    refused: Mapping[int, int] = field(default_factory=dict)
    faults: int = 0
    problem: str = ""
    workers: Sequence[WorkerStatus] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Status of the whole service.

    Attributes:
        at_s: The time of the snapshot, in seconds since 1970.
        problem: The reason why nothing comes from the source, or nothing can be kept; None where
            all is well.
        binlogs: All of them, by name.
        archive_uri: The URI of the archive of copies; empty without one.
        refused: Replicas whose dumps ended with an error, and why, until they come again.
        checks_problem: The reason why the last round of comparisons failed; empty if it did not.
        comparing: The comparison that runs at present; None if none does.
    """

    at_s: float
    problem: str | None
    binlogs: Sequence[BinlogStatus]
    source: SourceStatus
    process: ProcessStatus
    port: PortStatus = field(default_factory=PortStatus)
    archive_uri: str = ""
    refused: Sequence[str] = ()
    checks_problem: str = ""
    comparing: ComparingStatus | None = None

    @property
    def problems(self) -> list[str]:
        """Problems that keep the process from being healthy, one line each."""
        found = [self.problem, *self.source.gaps]
        found += [
            f"worker {worker.number} of the MySQL port is being started"
            for worker in self.port.workers
            if worker.process_id is None
        ]
        for binlog in self.binlogs:
            found += [*binlog.problems, binlog.archive_problem]
        return [" ".join(problem.split()) for problem in found if problem]

    @property
    def notes(self) -> list[str]:
        """Notes on states that are wanted or lose no row; one line each."""
        # Binlogs of rows lack nothing where statements are not judged.
        has_statements = any(binlog.format != _ROWS for binlog in self.binlogs)
        found = [self.port.problem] if has_statements else []
        found += [
            f"binlog {binlog.name} is stopped by STOP BINLOG"
            for binlog in self.binlogs
            if binlog.is_stopped_by_statement
        ]
        found += self.refused
        if self.checks_problem:
            found.append(f"tables are not compared: {self.checks_problem}")
        if self.comparing is not None and self.comparing.is_slow:
            found.append(f"a comparison takes long: {self.comparing.text}")
        return [" ".join(note.split()) for note in found if note]
