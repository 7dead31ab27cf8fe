from __future__ import annotations

from binlane.web.status import BinlogStatus, Status, render_metrics

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
    omissions=3,
    incidents=1,
    lag_s=0.5,
)


def test_metrics_are_in_prometheus_text_format() -> None:
    text = render_metrics(Status(problem=None, binlogs=[STATUS]))
    lines = text.splitlines()
    assert 'binlane_binlog_position_bytes{binlog="or\\"ders"} 4711' in lines
    assert 'binlane_event_groups_total{binlog="or\\"ders"} 12' in lines
    assert 'binlane_lag_seconds{binlog="or\\"ders"} 0.5' in lines
    assert lines[-1] == "binlane_ready 1"
    assert text.endswith("\n")
    names = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    assert names == {line.split("{")[0].split()[0] for line in lines if not line.startswith("#")}


def test_not_ready() -> None:
    assert "binlane_ready 0" in render_metrics(Status(problem="no source", binlogs=[]))
