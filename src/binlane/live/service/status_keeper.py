"""The snapshot that `web` shows: what the parts of the service know, put together.

All of it runs in the event loop, but for what asks the source (`source_end`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from binlane.binlogs.store.binlog_files import Published
from binlane.binlogs.store.incidents import StoredIncident, stopping_text
from binlane.live.answers.replica_dumps import ConnectedReplica, ReplicaDumps
from binlane.live.answers.session_judges import Port
from binlane.live.capture.source_facts import SourceFinding, Weight
from binlane.live.gateway.port_counts import PortCounts
from binlane.live.loop.binlogs import Binlogs
from binlane.live.loop.feeds import Feed
from binlane.live.loop.outputs import FillReport, Output, OutputFailure
from binlane.live.service.binlog_archive import Archive
from binlane.live.service.config import ServeSettings
from binlane.live.service.process import process_status
from binlane.live.service.proof_runs import ProofRuns
from binlane.live.service.source_end import SourceEnd
from binlane.live.web.rate_history import NO_RATES, SAMPLE_S, History, Written
from binlane.live.web.status_values import (
    BinlogStatus,
    CheckStatus,
    ComparingStatus,
    FillStatus,
    IncidentStatus,
    PortStatus,
    ReaderState,
    ReaderStatus,
    ShownFailure,
    ShownState,
    SourceStatus,
    Status,
    WorkerStatus,
)
from binlane.positions import FilePosition
from binlane.statements.scope.scope import ScopeList
from binlane.tables.proof.verdicts import TableVerdict

_BLOCKED_S: Final = 1.0
"""A reader whose connection takes nothing for so long is told to be blocked."""

logger = logging.getLogger(__name__)


class ListeningPort(Protocol):
    """The server of the MySQL port."""

    @property
    def port(self) -> int:
        """The TCP port that it listens on."""
        ...

    @property
    def sessions(self) -> int:
        """Clients that are logged in."""
        ...

    @property
    def sessions_max(self) -> int:
        """The number of clients that may be logged in."""
        ...

    @property
    def counts(self) -> PortCounts:
        """Counts of the clients that came, by outcome."""
        ...


class ShownParts(NamedTuple):
    """The parts of `serve` whose state is shown.

    Attributes:
        binlogs: The binlogs of the store.
        dumps: The dumps of connected replicas.
        gateway: The server of the MySQL port.
        port: The judges of the port's sessions; None where nothing is judged.
        archive: The archive of copies; None without one.
        proofs: Comparisons of tables with servers; None if there are none.
    """

    binlogs: Binlogs
    dumps: ReplicaDumps
    gateway: ListeningPort
    port: Port | None
    archive: Archive | None
    proofs: ProofRuns | None = None


class StatusKeeper:
    """Makes snapshots, and samples what they need from before.

    Args:
        settings: The settings of all parts.
        parts: The parts whose state is shown.
        problem: Says why nothing comes from the source, or nothing can be kept; empty where all is
            well.
        workers: Gives how the processes of the port do, where it has several.
    """

    def __init__(
        self,
        settings: ServeSettings,
        parts: ShownParts,
        *,
        problem: Callable[[], str],
        workers: Callable[[], Sequence[WorkerStatus]] = tuple,
    ) -> None:
        self._settings = settings
        self._binlogs, self._dumps, self._gateway, self._port, self._archive, self._proofs = parts
        self._problem = problem
        self._workers = workers
        self._history = History()
        self._source_end = SourceEnd(settings.source)
        self._sampling: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to sample."""
        self._sampling = asyncio.create_task(self._sample_for_ever())
        self._source_end.start(self._places)

    async def stop(self) -> None:
        """Sample no more, and ask the source nothing more."""
        if self._sampling is not None:
            self._sampling.cancel()
            await asyncio.gather(self._sampling, return_exceptions=True)
        self._source_end.stop()

    async def _sample_for_ever(self) -> None:
        while True:
            try:
                self._sample()
            except Exception:
                # The page then shows less, and everything else goes on.
                logger.exception("the status page's samples fail")
            await asyncio.sleep(SAMPLE_S)

    def _places(self) -> frozenset[str] | None:
        """The source's files in which feeds stand; None while it is away."""
        if not self._binlogs.main.is_streaming:
            return None
        places = [feed.file_position for feed in self._binlogs.feeds]
        return frozenset(place.file for place in places if place is not None)

    def _sample(self) -> None:
        written: dict[int, Written] = {}
        for name in self._binlogs.names:
            output = self._binlogs.output(name)
            counts = output.counts
            key = output.binlog.definition.log_id
            written[key] = Written(counts.event_groups, counts.size_bytes)
        self._history.sample(time.time(), written)

    def status(self, *, with_rates: bool = True) -> Status:
        """The state of the moment.

        Args:
            with_rates: True if the last hour is told, too.
        """
        now_s = time.time()
        readers = defaultdict(list)
        for replica in tuple(self._dumps.replicas.values()):
            readers[replica.binlog].append(replica)
        archive = self._settings.archive
        return Status(
            at_s=now_s,
            problem=self._problem() or None,
            binlogs=[
                self._binlog_status(name, readers[name], now_s, with_rates=with_rates)
                for name in self._binlogs.names
            ],
            source=self._source_status(),
            process=process_status(),
            port=self._port_status(),
            archive_uri="" if archive is None else archive.uri,
            refused=self._dumps.refused,
            checks_problem="" if self._proofs is None else self._proofs.problem,
            comparing=_comparing(self._proofs),
        )

    def _binlog_status(
        self, name: str, readers: list[ConnectedReplica], now_s: float, *, with_rates: bool
    ) -> BinlogStatus:
        output = self._binlogs.output(name)
        state = output.state
        binlog, counts, feed = output.binlog, output.counts, self._binlogs.feed(name)
        definition, published, incidents = binlog.definition, binlog.published, binlog.incidents
        archived = None if self._archive is None else self._archive.state(name)
        shadow = binlog.children
        children = None if shadow is None else shadow.facts
        shown = [_reader_status(reader, published, now_s) for reader in readers]
        return BinlogStatus(
            name=name,
            state=ShownState[state.activity.name],
            reason=state.reason,
            is_stopped_by_statement=output.is_stopped,
            file=published.end.file,
            position_bytes=published.end.position,
            files=len(published.closed) + 1,
            size_bytes=sum(file.size_bytes for file in published.files),
            gtid_complete=str(published.position),
            gtid_before=str(published.begin),
            log_all=definition.scope.log_all,
            log=definition.scope.render(ScopeList.LOG),
            ignore=definition.scope.render(ScopeList.IGNORE),
            format=definition.logging_mode.value,
            event_groups=counts.event_groups,
            events=counts.events,
            written_bytes=counts.size_bytes,
            omissions=dict(counts.omissions),
            rows_instead=dict(counts.rows_instead),
            full_images={why.value: count for why, count in dict(binlog.cutters.uncut).items()},
            incidents=counts.incidents,
            unacknowledged=sum(each.count for each in incidents),
            stopping=stopping_text(incidents),
            unreadable=_unreadable(output.live.unreadable, published),
            first_incident=_incident(incidents[:1]),
            last_incident=_incident(incidents[-1:]),
            last_failure=_last_failure(output, feed),
            readers=sorted(shown, key=_how_far_behind, reverse=True),
            lag_s=self._binlogs.lag_s(name),
            lag_bytes=self._lag_bytes(feed),
            rates=self._history.rates(definition.log_id) if with_rates else NO_RATES,
            archived_files=None if archived is None else archived.files,
            archive_pending_files=None if archived is None else archived.pending,
            archive_failure="" if archived is None else archived.failure,
            checks=self._checks(name),
            followed_rows=None if children is None else children.rows,
            followed_bytes=None if children is None else children.size_bytes,
            unfollowed={} if children is None else dict(children.reasons),
            fill=_fill_status(output.fill),
        )

    def _checks(self, name: str) -> list[CheckStatus]:
        return [] if self._proofs is None else list(map(_check, self._proofs.verdicts(name)))

    def _lag_bytes(self, feed: Feed | None) -> int | None:
        if feed is None or not feed.is_streaming or feed.file_position is None:
            return None
        return self._source_end.bytes_behind(feed.file_position)

    def _source_status(self) -> SourceStatus:
        main, end = self._binlogs.main, self._source_end
        url, facts, place = self._settings.source.url, main.facts, main.file_position
        failure = main.last_failure
        return SourceStatus(
            url=str(url),
            flavor=url.scheme if facts is None else facts.flavor.value,
            version="" if facts is None else facts.version,
            is_connected=main.gives,
            connected_at_s=main.connected_s if main.gives else None,
            gtid="" if main.position is None else str(main.position),
            file="" if place is None else place.file,
            position_bytes=None if place is None else place.position,
            silent_s=None if main.heard_s is None else time.monotonic() - main.heard_s,
            end_file="" if end.end is None else end.end.file,
            end_bytes=None if end.end is None else end.end.position,
            end_problem=end.problem,
            gaps=self._gaps(),
            warnings=[_told(one) for one in end.findings if one.weight is Weight.WARNING],
            last_failure=(
                None if failure is None else ShownFailure(text=failure.reason, at_s=failure.since_s)
            ),
        )

    def _gaps(self) -> list[str]:
        """Return the reasons why rows are or may be missing in the source's log."""
        end = self._source_end
        if not end.has_looked and self._binlogs.main.gives:
            return ["the source is being asked how it logs"]
        return [_told(one) for one in end.findings if one.weight in {Weight.GAPS, Weight.STOPS}]

    def _port_status(self) -> PortStatus:
        gateway, listen = self._gateway, self._settings.listen
        counts = gateway.counts
        return PortStatus(
            address=f"{listen.address}:{gateway.port}",
            sessions=gateway.sessions,
            sessions_max=gateway.sessions_max,
            logins={outcome.value: count for outcome, count in counts.logins.items()},
            judged={outcome.value: count for outcome, count in counts.judged.items()},
            refused=dict(counts.refused),
            faults=counts.faults,
            problem="" if self._port is None else self._port.problem,
            workers=self._workers(),
        )


def _comparing(proofs: ProofRuns | None) -> ComparingStatus | None:
    if proofs is None or (running := proofs.running) is None:
        return None
    step = running.step
    return ComparingStatus(
        binlog=step.binlog,
        table=step.table,
        server=step.server,
        step=step.doing,
        since_at_s=step.since_s,
        text=running.text,
        is_slow=running.is_slow,
    )


def _check(verdict: TableVerdict) -> CheckStatus:
    return CheckStatus(
        table=verdict.table,
        server=verdict.server,
        finding=verdict.finding.value,
        text=verdict.text,
        gtid=verdict.gtid,
        since=verdict.since,
        is_whole=verdict.is_whole,
        rows=verdict.rows,
        at_s=verdict.at_s,
        key="" if verdict.first is None else verdict.first.key,
        equal_gtid=verdict.equal_gtid,
    )


def _told(finding: SourceFinding) -> str:
    """Return a finding's reason, and its hint if there is one."""
    return f"{finding.reason} ({finding.hint})" if finding.hint else finding.reason


def _fill_status(fill: FillReport | None) -> FillStatus | None:
    if fill is None:
        return None
    return FillStatus(
        step=fill.step,
        table=fill.table,
        rows=fill.rows,
        rows_expected=fill.rows_expected,
        failure=fill.failure,
        hint=fill.hint,
        is_over=fill.is_over,
    )


def _trouble(trouble: OutputFailure | None) -> ShownFailure | None:
    return None if trouble is None else ShownFailure(text=trouble.text, at_s=trouble.at_s)


def _unreadable(found: Mapping[str, str], published: Published) -> str:
    """Return the reason why a file that is still there could not be read; empty without one."""
    names = {file.name for file in published.files}
    return next((text for file, text in found.items() if file in names), "")


def _incident(incidents: Sequence[StoredIncident]) -> IncidentStatus | None:
    for each in incidents:
        return IncidentStatus(
            text=each.reason,
            at_s=each.timestamp,
            file=each.file,
            position_bytes=each.position,
            gtid=each.gtid,
        )
    return None


def _last_failure(output: Output, feed: Feed | None) -> ShownFailure | None:
    """The last thing that kept a binlog from growing: of its own, or of a feed that is its alone."""
    found = _trouble(output.last_failure)
    failure = None if feed is None or output.is_on_main else feed.last_failure
    if failure is not None and (found is None or failure.since_s > found.at_s):
        return ShownFailure(text=failure.reason, at_s=failure.since_s)
    return found


def _reader_status(reader: ConnectedReplica, published: Published, now_s: float) -> ReaderStatus:
    progress = reader.progress
    left = None
    if progress.file:
        left = published.bytes_behind(FilePosition(progress.file, progress.position))
    since_s = progress.sending_since_s
    blocked_s = None if since_s is None else now_s - since_s
    if blocked_s is not None and blocked_s < _BLOCKED_S:
        blocked_s = None
    if not progress.file:
        state = ReaderState.STARTING
    elif blocked_s is not None:
        state = ReaderState.BLOCKED
    else:
        state = ReaderState.CAUGHT_UP if left == 0 else ReaderState.SENDING
    return ReaderStatus(
        server_id=reader.server_id,
        user=reader.user,
        peer=reader.peer,
        host=reader.host,
        port=reader.port,
        uuid=reader.uuid,
        connection_id=reader.thread_id,
        is_tls=reader.is_tls,
        since_at_s=progress.begun_s,
        state=state,
        file=progress.file,
        position_bytes=progress.position,
        sent_bytes=progress.sent_bytes,
        lag_bytes=left,
        lag_s=progress.lag_s(left, now_s),
        blocked_s=blocked_s,
    )


def _how_far_behind(reader: ReaderStatus) -> tuple[bool, int]:
    return reader.lag_bytes is None, reader.lag_bytes or 0
