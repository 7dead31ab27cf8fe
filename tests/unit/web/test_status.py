from __future__ import annotations

from dataclasses import replace

from binlane.web.status import BinlogState, BinlogStatus, Status, render_metrics

STATUS = BinlogStatus(
    name='or"ders',
    file="orders.000002",
    position_bytes=4711,
    gtid_complete="0-1-9",
    log="shop.orders",
    ignore="",
    format="ROW",
    event_groups=12,
    events=60,
    omissions={"annotate text": 3, "view": 1},
    rows_instead={"no plan": 2},
    incidents=1,
    dumps=2,
    lag_s=0.5,
)
STOPPED = replace(STATUS, state=BinlogState.STOPPED, reason="no room:\nNo space left")


def metrics(status: Status) -> list[str]:
    text = render_metrics(status)
    assert text.endswith("\n")
    return text.splitlines()


def test_metrics_are_in_prometheus_text_format() -> None:
    lines = metrics(Status(problem=None, binlogs=[STATUS], sessions=4, heard_s=1.25))
    assert 'binlane_binlog_position_bytes{binlog="or\\"ders"} 4711' in lines
    assert 'binlane_event_groups_total{binlog="or\\"ders"} 12' in lines
    assert 'binlane_incidents_total{binlog="or\\"ders"} 1' in lines
    assert 'binlane_omissions_total{binlog="or\\"ders",kind="annotate text"} 3' in lines
    assert 'binlane_rows_instead_total{binlog="or\\"ders",reason="no plan"} 2' in lines
    assert 'binlane_dumps{binlog="or\\"ders"} 2' in lines
    assert 'binlane_lag_seconds{binlog="or\\"ders"} 0.5' in lines
    assert 'binlane_binlog_state{binlog="or\\"ders",state="OPEN"} 1' in lines
    assert 'binlane_binlog_state{binlog="or\\"ders",state="STOPPED"} 0' in lines
    assert "binlane_sessions 4" in lines
    assert "binlane_source_silent_seconds 1.25" in lines
    assert lines[-1] == "binlane_ready 1"
    names = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    assert names == {line.split("{")[0].split()[0] for line in lines if not line.startswith("#")}


def test_a_lag_that_is_not_known_is_not_told() -> None:
    lines = metrics(Status(problem="no source", binlogs=[replace(STATUS, lag_s=None)]))
    assert not [line for line in lines if line.startswith("binlane_lag_seconds{")]
    assert not [line for line in lines if line.startswith("binlane_source_silent_seconds ")]


def test_not_ready() -> None:
    assert "binlane_ready 0" in metrics(Status(problem="no source", binlogs=[]))
    assert "binlane_ready 0" in metrics(Status(problem=None, binlogs=[STATUS, STOPPED]))


def test_each_problem_is_one_line() -> None:
    status = Status(problem="no source", binlogs=[STATUS, STOPPED])
    assert status.problems == [
        "no source",
        'binlog or"ders is stopped: no room: No space left',
    ]


def test_what_somebody_stopped_is_no_problem() -> None:
    stopped = replace(STOPPED, reason="STOP BINLOG", is_stopped_by_statement=True)
    status = Status(problem=None, binlogs=[stopped, replace(STATUS, state=BinlogState.CATCHING_UP)])
    assert status.problems == []
    assert 'binlane_binlog_state{binlog="or\\"ders",state="STOPPED"} 1' in metrics(status)


def test_what_is_archived_is_told_where_there_is_an_archive() -> None:
    archived = replace(STATUS, archived_files=3, archive_pending_files=1)
    assert not any("archive" in line for line in metrics(Status(problem=None, binlogs=[STATUS])))
    lines = metrics(Status(problem=None, binlogs=[archived]))
    assert 'binlane_archived_files{binlog="or\\"ders"} 3' in lines
    assert 'binlane_archive_pending_files{binlog="or\\"ders"} 1' in lines
    assert 'binlane_archive_failing{binlog="or\\"ders"} 0' in lines
    failing = Status(problem=None, binlogs=[replace(archived, archive_failure="no\nbucket")])
    assert failing.problems == ['binlog or"ders is not archived: no bucket']
    assert 'binlane_archive_failing{binlog="or\\"ders"} 1' in metrics(failing)
