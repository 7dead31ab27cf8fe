"""Metrics of the service for Prometheus.

Labels have few values: binlogs, their readers, reasons, error numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from binlane.live.web.prometheus import Metric, Sample, render
from binlane.live.web.status_values import (
    DIFFERENT,
    BinlogStatus,
    ProcessStatus,
    ReaderStatus,
    ShownState,
    Status,
    WorkerStatus,
)

LABELS_MAX: Final = 50
"""Most values of a label whose values are texts or numbers of others; the rest is `other`."""

_OTHER: Final = "other"
_FINDINGS: Final = ("equal", DIFFERENT, "not compared")


def render_metrics(status: Status) -> str:
    """Return the metrics in Prometheus' text format; unknown values have no line."""
    return render(_metrics(status))


def _metrics(status: Status) -> Iterator[Metric]:
    """Name, type, help and samples of all metrics."""
    yield from _binlogs(status)
    yield from _readers(status)
    yield from _checks(status)
    yield from _port(status)
    yield from _workers(status)
    yield from _source(status)
    yield (
        *("binlane_ready", "gauge", "Whether /healthz is 200"),
        [Sample(int(not status.problems))],
    )
    yield (
        *("binlane_build_info", "gauge", "1, with the versions at work"),
        [Sample(1, {"version": status.process.version, "python": status.process.python})],
    )
    yield from _process(status.process)


def _binlogs(status: Status) -> Iterator[Metric]:
    def each(value: Callable[[BinlogStatus], float | None]) -> Iterator[Sample]:
        for binlog in status.binlogs:
            if (known := value(binlog)) is not None:
                yield Sample(known, {"binlog": binlog.name})

    def counted(
        label: str, counts: Callable[[BinlogStatus], Mapping[str, int]]
    ) -> Iterator[Sample]:
        for binlog in status.binlogs:
            for text, count in _bounded(counts(binlog)).items():
                yield Sample(count, {"binlog": binlog.name, label: text})

    yield (
        *("binlane_binlog_state", "gauge", "1 for the state that a binlog is in"),
        [
            Sample(int(binlog.state is state), {"binlog": binlog.name, "state": state.value})
            for binlog in status.binlogs
            for state in ShownState
        ],
    )
    yield (
        *("binlane_binlog_stopped_by_statement", "gauge", "Whether STOP BINLOG was executed"),
        each(lambda binlog: int(binlog.is_stopped_by_statement)),
    )
    for name, kind, text, value in _OF_BINLOGS:
        yield name, kind, text, each(value)
    yield (
        *("binlane_omissions_total", "counter", "Parts left out that name outside objects"),
        counted("kind", lambda binlog: binlog.omissions),
    )
    yield (
        *("binlane_full_images_total", "counter", "Row events that ROW_IMAGE could not cut"),
        counted("reason", lambda binlog: binlog.full_images),
    )
    yield (
        *("binlane_rows_instead_total", "counter", "Statements that are there as rows"),
        counted("reason", lambda binlog: binlog.rows_instead),
    )


def _checks(status: Status) -> Iterator[Metric]:
    """Give how many tables of each binlog were found equal, and how long ago."""
    counts = {
        (binlog.name, finding): sum(check.finding == finding for check in binlog.checks)
        for binlog in status.binlogs
        if binlog.checks
        for finding in _FINDINGS
    }
    if (comparing := status.comparing) is not None:
        labels = {
            "binlog": comparing.binlog,
            "table": comparing.table,
            "server": comparing.server,
            "step": comparing.step,
        }
        yield (
            *("binlane_comparing_seconds", "gauge", "Time since the present step of a comparison"),
            [Sample(round(status.at_s - comparing.since_at_s, 3), labels)],
        )
    if not counts:
        return
    yield (
        *("binlane_checked_tables", "gauge", "Tables by the outcome of their last comparison"),
        [
            Sample(count, {"binlog": binlog, "finding": finding})
            for (binlog, finding), count in counts.items()
        ],
    )
    yield (
        *("binlane_check_age_seconds", "gauge", "Time since the oldest comparison of a table"),
        [
            Sample(
                round(status.at_s - min(check.at_s for check in binlog.checks), 3),
                {"binlog": binlog.name},
            )
            for binlog in status.binlogs
            if binlog.checks and all(check.at_s for check in binlog.checks)
        ],
    )


def _archive_failing(binlog: BinlogStatus) -> int | None:
    return None if binlog.archived_files is None else int(bool(binlog.archive_failure))


_OF_BINLOGS: Final[tuple[tuple[str, str, str, Callable[[BinlogStatus], float | None]], ...]] = (
    (
        *("binlane_binlog_position_bytes", "gauge", "Size of the current file"),
        lambda binlog: binlog.position_bytes,
    ),
    (
        *("binlane_binlog_size_bytes", "gauge", "Size of all files"),
        lambda binlog: binlog.size_bytes,
    ),
    (
        *(
            "binlane_rows_done",
            "gauge",
            "Rows of tables that were read or placed for a binlog so far",
        ),
        lambda binlog: None if binlog.fill is None else binlog.fill.rows,
    ),
    (
        *("binlane_rows_expected", "gauge", "Rows of these tables by the source's estimate"),
        lambda binlog: None if binlog.fill is None else binlog.fill.rows_expected,
    ),
    (
        *("binlane_rows_failing", "gauge", "Whether the rows of these tables cannot be had now"),
        lambda binlog: None if binlog.fill is None else int(bool(binlog.fill.failure)),
    ),
    (
        *("binlane_binlog_files", "gauge", "Files that are kept"),
        lambda binlog: binlog.files,
    ),
    (
        *("binlane_lag_seconds", "gauge", "Age of the last change routed while more is to come"),
        lambda binlog: binlog.lag_s,
    ),
    (
        *("binlane_lag_bytes", "gauge", "Bytes of the log of the source that are not routed yet"),
        lambda binlog: binlog.lag_bytes,
    ),
    (
        *("binlane_event_groups_total", "counter", "Event groups written"),
        lambda binlog: binlog.event_groups,
    ),
    (
        *("binlane_events_total", "counter", "Events written"),
        lambda binlog: binlog.events,
    ),
    (
        *("binlane_written_bytes_total", "counter", "Bytes written to files of binlogs"),
        lambda binlog: binlog.written_bytes,
    ),
    (
        *("binlane_incidents_total", "counter", "INCIDENT events written"),
        lambda binlog: binlog.incidents,
    ),
    (
        *("binlane_incidents_unacknowledged", "gauge", "Those that replicas of its files stop at"),
        lambda binlog: binlog.unacknowledged,
    ),
    (
        *("binlane_dumps", "gauge", "Replicas and tools that read it"),
        lambda binlog: len(binlog.readers),
    ),
    (
        *("binlane_archived_files", "gauge", "Closed files copied to the archive"),
        lambda binlog: binlog.archived_files,
    ),
    (
        *("binlane_archive_pending_files", "gauge", "Closed files not copied to the archive yet"),
        lambda binlog: binlog.archive_pending_files,
    ),
    (
        *("binlane_followed_rows", "gauge", "Rows of children kept to follow cascades"),
        lambda binlog: binlog.followed_rows,
    ),
    (
        *("binlane_followed_bytes", "gauge", "Size of these rows"),
        lambda binlog: binlog.followed_bytes,
    ),
    (
        *("binlane_archive_failing", "gauge", "Whether the last attempt to copy failed"),
        _archive_failing,
    ),
)


def _readers(status: Status) -> Iterator[Metric]:
    """Give the metrics of each reader; of one binlog's with one server id only the one furthest behind."""
    readers: dict[tuple[str, str], ReaderStatus] = {}
    for binlog in status.binlogs:
        for reader in binlog.readers:
            readers.setdefault((binlog.name, str(reader.server_id)), reader)

    def each(value: Callable[[ReaderStatus], float | None]) -> Iterator[Sample]:
        for (binlog, replica), reader in readers.items():
            if (known := value(reader)) is not None:
                yield Sample(known, {"binlog": binlog, "replica": replica})

    yield (
        *("binlane_replica_lag_bytes", "gauge", "Bytes of its binlog not sent to a replica yet"),
        each(lambda reader: reader.lag_bytes),
    )
    yield (
        *("binlane_replica_lag_seconds", "gauge", "Age of what a replica was sent last"),
        each(lambda reader: reader.lag_s),
    )
    yield (
        *("binlane_replica_sent_bytes_total", "counter", "Bytes sent to a replica in its session"),
        each(lambda reader: reader.sent_bytes),
    )
    yield (
        *("binlane_replica_blocked_seconds", "gauge", "For how long a replica takes nothing"),
        each(lambda reader: round(reader.blocked_s or 0.0, 3)),
    )


def _port(status: Status) -> Iterator[Metric]:
    port = status.port
    yield "binlane_sessions", "gauge", "Clients at the MySQL port", [Sample(port.sessions)]
    if port.sessions_max is not None:
        yield (
            *("binlane_sessions_max", "gauge", "Clients that may be at the MySQL port"),
            [Sample(port.sessions_max)],
        )
    yield (
        *("binlane_logins_total", "counter", "Clients that connected, by what became of them"),
        [Sample(count, {"outcome": text}) for text, count in port.logins.items()],
    )
    yield (
        *("binlane_statements_judged_total", "counter", "Statements, by what became of them"),
        [Sample(count, {"outcome": text}) for text, count in port.judged.items()],
    )
    refused = {str(errno): count for errno, count in port.refused.items()}
    yield (
        *("binlane_statements_refused_total", "counter", "Statements refused by error number"),
        [Sample(count, {"errno": text}) for text, count in _bounded(refused).items()],
    )
    yield (
        *("binlane_statement_faults_total", "counter", "Faults of binlane at statements"),
        [Sample(port.faults)],
    )


def _workers(status: Status) -> Iterator[Metric]:
    """Give the metrics of the processes that serve the port, where there are several."""

    def each(value: Callable[[WorkerStatus], float | None]) -> list[Sample]:
        return [
            Sample(found, {"worker": str(one.number)})
            for one in status.port.workers
            if (found := value(one)) is not None
        ]

    if not status.port.workers:
        return
    yield (
        *("binlane_worker_up", "gauge", "Whether a process of the port runs"),
        each(lambda one: int(one.process_id is not None)),
    )
    yield (
        *("binlane_worker_sessions", "gauge", "Clients of a process of the port"),
        each(lambda one: one.sessions),
    )
    yield (
        *("binlane_worker_restarts_total", "counter", "Times that another took its place"),
        each(lambda one: one.restarts),
    )
    yield (
        *("binlane_worker_cpu_seconds_total", "counter", "Processor time of a process of the port"),
        each(lambda one: round(one.cpu_s, 3)),
    )
    yield (
        *("binlane_worker_resident_memory_bytes", "gauge", "Resident memory of such a process"),
        each(lambda one: one.resident_bytes),
    )


def _source(status: Status) -> Iterator[Metric]:
    source = status.source
    yield (
        *("binlane_source_connected", "gauge", "Whether the log of the source comes"),
        [Sample(int(source.is_connected))],
    )
    for name, kind, text, value in (
        (
            *(
                "binlane_source_position_bytes",
                "gauge",
                "Position in the current file that is read",
            ),
            source.position_bytes,
        ),
        (
            *("binlane_source_silent_seconds", "gauge", "Since the source last said something"),
            None if source.silent_s is None else round(source.silent_s, 3),
        ),
    ):
        if value is not None:
            yield name, kind, text, [Sample(value)]
    yield (
        *(
            "binlane_source_gaps",
            "gauge",
            "Reasons why rows may be missing in the log of the source",
        ),
        [Sample(len(source.gaps))],
    )
    if source.version:
        yield (
            *("binlane_source_info", "gauge", "1, with what the source is"),
            [Sample(1, {"flavor": source.flavor, "version": source.version})],
        )


def _process(process: ProcessStatus) -> Iterator[Metric]:
    for name, kind, text, value in (
        ("process_cpu_seconds_total", "counter", "Processor time used", round(process.cpu_s, 3)),
        (
            *("process_start_time_seconds", "gauge", "When it began since 1970"),
            round(process.started_at_s, 3),
        ),
        (
            *("process_resident_memory_bytes", "gauge", "Resident memory size"),
            process.resident_bytes,
        ),
        (
            *("process_virtual_memory_bytes", "gauge", "Virtual memory size"),
            process.virtual_bytes,
        ),
        ("process_open_fds", "gauge", "Open file descriptors", process.open_descriptors),
        ("process_max_fds", "gauge", "Most open file descriptors", process.descriptors_max),
    ):
        if value is not None:
            yield name, kind, text, [Sample(value)]


def _bounded(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts by text; beyond a limit the rest is added up."""
    items = list(counts.items())
    if len(items) <= LABELS_MAX:
        return dict(sorted(items))
    kept = dict(sorted(items[: LABELS_MAX - 1]))
    kept[_OTHER] = kept.get(_OTHER, 0) + sum(count for _, count in items[LABELS_MAX - 1 :])
    return kept
