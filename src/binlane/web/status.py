"""What operators and their tools ask over HTTP, answered from a snapshot that `service` gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum

from aiohttp import web

from binlane.web.prometheus import METRICS_CONTENT_TYPE, Metric, Sample, render


class BinlogState(Enum):
    """Whether a binlog takes what the source gives, as SHOW BINLOGS has it."""

    OPEN = "OPEN"
    CATCHING_UP = "CATCHING UP"
    STOPPED = "STOPPED"


@dataclass(frozen=True, slots=True, kw_only=True)
class BinlogStatus:
    """One binlog as operators see it.

    Attributes:
        name: Its name.
        state: How it fares.
        reason: Why it is not open; empty where it is.
        is_stopped_by_statement: STOP BINLOG was executed, so that it being stopped is no problem.
        file: Current file.
        position_bytes: Size of the current file up to which readers may read.
        gtid_complete: The watermark.
        log: LOG list as SHOW prints it.
        ignore: IGNORE list.
        format: Logging mode.
        event_groups: Written since this process began; so are the counts below.
        events: Likewise.
        omissions: Parts left out since they name outside objects, by kind.
        rows_instead: Statements that are there as rows although the format asks for them, by reason.
        incidents: Event groups replaced by an INCIDENT event.
        dumps: Replicas and tools that read it now.
        lag_s: Seconds between a change on the source and now, for the last change that was
            routed; 0 when nothing more is to come; None where that is not known.
        archived_files: Closed files that are copied to the archive; None without one.
        archive_pending_files: Closed files that are not copied yet; None without one.
        archive_failure: Why they are not; empty where all is well.
    """

    name: str
    state: BinlogState = BinlogState.OPEN
    reason: str = ""
    is_stopped_by_statement: bool = False
    file: str
    position_bytes: int
    gtid_complete: str
    log: str
    ignore: str
    format: str
    event_groups: int
    events: int
    omissions: Mapping[str, int]
    rows_instead: Mapping[str, int]
    incidents: int
    dumps: int
    lag_s: float | None
    archived_files: int | None = None
    archive_pending_files: int | None = None
    archive_failure: str = ""

    @property
    def archive_problem(self) -> str | None:
        """What an operator has to know of its copies; None if nothing."""
        if not self.archive_failure:
            return None
        return f"binlog {self.name} is not archived: {self.archive_failure}"

    @property
    def problem(self) -> str | None:
        """What an operator has to know of; None if nothing."""
        if self.state is not BinlogState.STOPPED or self.is_stopped_by_statement:
            return None
        return f"binlog {self.name} is stopped: {self.reason or 'for no known reason'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The whole process.

    Attributes:
        problem: Why nothing comes from the source, or nothing can be kept; None where all is well.
        binlogs: All of them, by name.
        sessions: Clients that are logged in at the MySQL port.
        heard_s: Seconds since the source last said something; None before it has.
    """

    problem: str | None
    binlogs: Sequence[BinlogStatus]
    sessions: int = 0
    heard_s: float | None = None

    @property
    def problems(self) -> list[str]:
        """What keeps the process from being healthy, one line each."""
        found = [self.problem]
        for binlog in self.binlogs:
            found += [binlog.problem, binlog.archive_problem]
        return [" ".join(problem.split()) for problem in found if problem]


def application(snapshot: Callable[[], Status]) -> web.Application:
    """The HTTP application.

    Args:
        snapshot: Gives the state of the moment; called for each request.
    """

    async def healthz(request: web.Request) -> web.Response:
        del request
        problems = snapshot().problems
        text = "\n".join([*(problems or ["ok"]), ""])
        return web.Response(text=text, status=503 if problems else 200)

    async def metrics(request: web.Request) -> web.Response:
        del request
        text = render_metrics(snapshot())
        return web.Response(body=text.encode(), headers={"Content-Type": METRICS_CONTENT_TYPE})

    async def binlogs(request: web.Request) -> web.Response:
        del request
        return web.json_response([_as_json(status) for status in snapshot().binlogs])

    app = web.Application()
    app.add_routes(
        [
            web.get("/healthz", healthz),
            web.get("/metrics", metrics),
            web.get("/api/binlogs", binlogs),
        ]
    )
    return app


def _as_json(status: BinlogStatus) -> dict[str, object]:
    return asdict(status) | {
        "state": status.state.value,
        "omissions": dict(status.omissions),
        "rows_instead": dict(status.rows_instead),
    }


def render_metrics(status: Status) -> str:
    """Prometheus' text format; what is not known has no line."""
    return render(_metrics(status))


def _metrics(status: Status) -> Iterator[Metric]:
    """Name without prefix, type, help and samples of all metrics."""

    def each(value: Callable[[BinlogStatus], float | None]) -> Iterator[Sample]:
        for binlog in status.binlogs:
            if (known := value(binlog)) is not None:
                yield Sample(known, {"binlog": binlog.name})

    yield (
        *("binlog_state", "gauge", "1 for the state that a binlog is in"),
        [
            Sample(int(binlog.state is state), {"binlog": binlog.name, "state": state.value})
            for binlog in status.binlogs
            for state in BinlogState
        ],
    )
    yield (
        *("binlog_position_bytes", "gauge", "Size of the current file"),
        each(lambda binlog: binlog.position_bytes),
    )
    yield (
        *("lag_seconds", "gauge", "Age of the last change routed while more is to come"),
        each(lambda binlog: binlog.lag_s),
    )
    yield (
        *("event_groups_total", "counter", "Event groups written"),
        each(lambda binlog: binlog.event_groups),
    )
    yield "events_total", "counter", "Events written", each(lambda binlog: binlog.events)
    yield (
        *("omissions_total", "counter", "Parts left out that name outside objects"),
        [
            Sample(count, {"binlog": binlog.name, "kind": kind})
            for binlog in status.binlogs
            for kind, count in sorted(binlog.omissions.items())
        ],
    )
    yield (
        *("rows_instead_total", "counter", "Statements that are there as rows"),
        [
            Sample(count, {"binlog": binlog.name, "reason": reason})
            for binlog in status.binlogs
            for reason, count in sorted(binlog.rows_instead.items())
        ],
    )
    yield (
        *("incidents_total", "counter", "Event groups replaced by an INCIDENT event"),
        each(lambda binlog: binlog.incidents),
    )
    if any(binlog.archived_files is not None for binlog in status.binlogs):
        yield from _archive_metrics(each)
    yield "dumps", "gauge", "Replicas and tools that read it", each(lambda binlog: binlog.dumps)
    yield "sessions", "gauge", "Clients at the MySQL port", [Sample(status.sessions)]
    if status.heard_s is not None:
        yield (
            *("source_silent_seconds", "gauge", "Since the source last said something"),
            [Sample(round(status.heard_s, 3))],
        )
    yield "ready", "gauge", "Whether /healthz is 200", [Sample(int(not status.problems))]


def _archive_metrics(
    each: Callable[[Callable[[BinlogStatus], float | None]], Iterator[Sample]],
) -> Iterator[Metric]:
    yield (
        *("archived_files", "gauge", "Closed files copied to the archive"),
        each(lambda binlog: binlog.archived_files),
    )
    yield (
        *("archive_pending_files", "gauge", "Closed files not copied to the archive yet"),
        each(lambda binlog: binlog.archive_pending_files),
    )
    yield (
        *("archive_failing", "gauge", "Whether the last attempt to copy failed"),
        each(
            lambda binlog: (
                None if binlog.archived_files is None else int(bool(binlog.archive_failure))
            )
        ),
    )
