from __future__ import annotations

from dataclasses import replace

from binlane.live.web.metrics import LABELS_MAX, render_metrics
from binlane.live.web.status_values import ShownState, Status, WorkerStatus
from tests.prometheus_text import read_metrics
from tests.shown import BINLOG, INCIDENT, READER, STATUS, STOPPED, status

ODD = replace(BINLOG, name='or"de\\rs\n')


def metrics(shown: Status) -> list[str]:
    text = render_metrics(shown)
    assert text.endswith("\n")
    read_metrics(text)
    return text.splitlines()


def test_metrics_are_in_prometheus_text_format() -> None:
    lines = metrics(STATUS)
    for line in (
        'binlane_binlog_position_bytes{binlog="orders"} 4711',
        'binlane_binlog_size_bytes{binlog="orders"} 1004711',
        'binlane_binlog_files{binlog="orders"} 2',
        'binlane_event_groups_total{binlog="orders"} 12',
        'binlane_written_bytes_total{binlog="orders"} 4321',
        'binlane_incidents_total{binlog="orders"} 1',
        'binlane_incidents_unacknowledged{binlog="orders"} 0',
        "binlane_source_gaps 0",
        'binlane_omissions_total{binlog="orders",kind="annotate text"} 3',
        'binlane_rows_instead_total{binlog="orders",reason="no plan"} 2',
        'binlane_dumps{binlog="orders"} 1',
        'binlane_lag_seconds{binlog="orders"} 0.5',
        'binlane_lag_bytes{binlog="orders"} 2048',
        'binlane_binlog_state{binlog="orders",state="OPEN"} 1',
        'binlane_binlog_state{binlog="orders",state="STOPPED"} 0',
        'binlane_replica_lag_bytes{binlog="orders",replica="101"} 711',
        'binlane_replica_lag_seconds{binlog="orders",replica="101"} 3.5',
        'binlane_replica_sent_bytes_total{binlog="orders",replica="101"} 123456',
        "binlane_sessions 4",
        "binlane_sessions_max 100",
        'binlane_logins_total{outcome="refused"} 1',
        'binlane_statements_judged_total{outcome="passed"} 11',
        'binlane_statements_refused_total{errno="1227"} 1',
        "binlane_statement_faults_total 3",
        'binlane_worker_up{worker="0"} 1',
        'binlane_worker_up{worker="1"} 1',
        'binlane_worker_sessions{worker="0"} 3',
        'binlane_worker_restarts_total{worker="1"} 2',
        'binlane_worker_cpu_seconds_total{worker="0"} 61.5',
        'binlane_worker_resident_memory_bytes{worker="0"} 90000000',
        "binlane_source_silent_seconds 1.25",
        "binlane_source_position_bytes 1234567",
        "binlane_source_connected 1",
        'binlane_build_info{version="0.1.0",python="3.11.7"} 1',
        "binlane_ready 1",
        "process_resident_memory_bytes 118345728",
        "process_open_fds 31",
    ):
        assert line in lines


def test_names_of_others_are_escaped() -> None:
    text = render_metrics(status(ODD))
    assert 'binlane_lag_seconds{binlog="or\\"de\\\\rs\\n"} 0.5' in text.splitlines()
    labels = {sample.labels.get("binlog") for sample in read_metrics(text).samples}
    assert labels == {None, ODD.name}


def test_what_is_not_known_has_no_line() -> None:
    unknown = replace(READER, lag_bytes=None, lag_s=None)
    shown = status(
        replace(BINLOG, lag_s=None, lag_bytes=None, readers=[unknown]),
        problem="no source",
        source=replace(STATUS.source, silent_s=None, position_bytes=None, version=""),
        process=replace(STATUS.process, resident_bytes=None, open_descriptors=None),
    )
    text = "\n".join(metrics(shown))
    for name in (
        *("lag_seconds", "lag_bytes", "replica_lag_bytes", "replica_lag_seconds", "source_info"),
        *("source_silent_seconds", "source_position_bytes"),
    ):
        assert f"binlane_{name}" not in text
    assert "process_resident" not in text
    assert "process_open_fds" not in text


def test_replicas_of_one_server_id_are_one_line() -> None:
    behind = replace(READER, lag_bytes=900)
    lines = metrics(status(replace(BINLOG, readers=[behind, READER])))
    assert [line for line in lines if line.startswith("binlane_replica_lag_bytes{")] == [
        'binlane_replica_lag_bytes{binlog="orders",replica="101"} 900'
    ]


def test_labels_have_few_values_and_counters_do_not_shrink() -> None:
    reasons = {f"reason {number}": 1 for number in range(LABELS_MAX + 10)}
    lines = metrics(status(replace(BINLOG, rows_instead=reasons)))
    found = [line for line in lines if line.startswith("binlane_rows_instead_total{")]
    assert len(found) == LABELS_MAX
    assert 'binlane_rows_instead_total{binlog="orders",reason="other"} 11' in found
    reasons["reason 59"] = 1000
    later = metrics(status(replace(BINLOG, rows_instead=reasons)))
    assert set(found) - set(later) == {
        'binlane_rows_instead_total{binlog="orders",reason="other"} 11'
    }


def test_an_empty_installation() -> None:
    lines = metrics(status())
    assert "binlane_ready 1" in lines
    assert not [line for line in lines if "binlog=" in line]


def test_not_ready() -> None:
    assert "binlane_ready 0" in metrics(status(problem="no source"))
    assert "binlane_ready 0" in metrics(status(BINLOG, STOPPED))
    lines = metrics(status(INCIDENT))
    assert {"binlane_ready 0", 'binlane_incidents_unacknowledged{binlog="orders"} 3'} <= set(lines)
    gaps = replace(STATUS.source, gaps=["the source runs with --binlog-do-db=a"])
    assert {"binlane_ready 0", "binlane_source_gaps 1"} <= set(metrics(status(source=gaps)))
    workers = (WorkerStatus(number=0, process_id=7), WorkerStatus(number=1, restarts=1))
    shown = status(port=replace(STATUS.port, workers=workers))
    assert shown.problems == ["worker 1 of the MySQL port is being started"]
    assert {"binlane_ready 0", 'binlane_worker_up{worker="1"} 0'} <= set(metrics(shown))


def test_each_problem_is_one_line() -> None:
    assert status(BINLOG, STOPPED, problem="no source").problems == [
        "no source",
        "binlog stopped is stopped: no room: No space left",
    ]


def test_what_somebody_stopped_is_no_problem() -> None:
    stopped = replace(STOPPED, reason="STOP BINLOG", is_stopped_by_statement=True)
    shown = status(stopped, replace(BINLOG, state=ShownState.CATCHING_UP))
    assert shown.problems == []
    assert shown.notes == ["binlog stopped is stopped by STOP BINLOG"]
    lines = metrics(shown)
    assert 'binlane_binlog_state{binlog="stopped",state="STOPPED"} 1' in lines
    assert 'binlane_binlog_stopped_by_statement{binlog="stopped"} 1' in lines


def test_what_is_archived_is_told_where_there_is_an_archive() -> None:
    archived = replace(BINLOG, archived_files=3, archive_pending_files=1)
    assert not any("archive" in line for line in metrics(STATUS))
    lines = metrics(status(archived))
    assert 'binlane_archived_files{binlog="orders"} 3' in lines
    assert 'binlane_archive_pending_files{binlog="orders"} 1' in lines
    assert 'binlane_archive_failing{binlog="orders"} 0' in lines
    failing = status(replace(archived, archive_failure="no\nbucket"))
    assert failing.problems == ["binlog orders is not archived: no bucket"]
    assert 'binlane_archive_failing{binlog="orders"} 1' in metrics(failing)
