from __future__ import annotations

import json
from dataclasses import fields, replace

from binlane.live.web.application import binlogs_json, status_json
from binlane.live.web.rate_history import STEP_S, WINDOW_S
from binlane.live.web.status_values import (
    BinlogStatus,
    PortStatus,
    ProcessStatus,
    ReaderStatus,
    SourceStatus,
)
from tests.shown import BINLOG, INCIDENT, NOW, STATUS, STOPPED, rates, status


def shown(field: str) -> str:
    return field.removesuffix("_s") if field.endswith("_at_s") else field


def test_binlogs_have_all_that_the_page_shows() -> None:
    one, other = json.loads(json.dumps(binlogs_json(status(BINLOG, STOPPED))))
    assert set(one) == {shown(each.name) for each in fields(BinlogStatus)} | {"dumps", "problem"}
    assert set(one["readers"][0]) == {shown(each.name) for each in fields(ReaderStatus)}
    assert (one["state"], one["lag_s"], one["lag_bytes"], one["dumps"]) == ("OPEN", 0.5, 2048, 1)
    assert one["omissions"] == {"annotate text": 3, "view": 1}
    assert one["last_incident"] is one["problem"] is one["last_failure"] is None
    reader = one["readers"][0]
    assert (reader["since_at"], reader["state"]) == ("2026-11-23T08:26:00Z", "sending")
    assert other["lag_bytes"] is None
    assert other["problem"] == "binlog stopped is stopped: no room:\nNo space left"


def test_what_replicas_stop_at() -> None:
    (found,) = json.loads(json.dumps(binlogs_json(status(INCIDENT))))
    assert found["problem"] == f"binlog orders: {INCIDENT.stopping}"
    assert found["unacknowledged"] == 3
    assert found["first_incident"] == {
        "text": "rows from outside",
        "at": "2026-11-23T09:31:00Z",
        "file": "orders.000001",
        "position_bytes": 4711,
        "gtid": "0-1-5",
    }
    assert found["last_incident"]["at"] == "2026-11-23T09:31:50Z"


def test_rates_of_an_hour() -> None:
    (binlog,) = binlogs_json(status(replace(BINLOG, rates=rates(seconds=600))))
    found = json.loads(json.dumps(binlog["rates"]))
    assert found["since"] == "2026-11-23T09:22:40Z"
    assert found["from"] == "2026-11-23T08:32:40Z"
    assert found["until"] == "2026-11-23T09:32:40Z"
    assert found["step_s"] == STEP_S
    for key in ("event_groups_per_s", "bytes_per_s"):
        assert len(found[key]) == WINDOW_S / STEP_S
        assert found[key].count(None) == 100
    (unwatched,) = binlogs_json(status(BINLOG))
    assert unwatched["rates"]["since"] is None


def test_everything_but_the_binlogs() -> None:
    found = json.loads(json.dumps(status_json(status(BINLOG, STOPPED, problem="no source"))))
    assert found["at"] == "2026-11-23T09:32:40Z"
    assert found["ready"] is False
    assert found["problems"] == [
        "no source",
        "binlog stopped is stopped: no room: No space left",
    ]
    for key, kind in (("source", SourceStatus), ("port", PortStatus), ("process", ProcessStatus)):
        assert set(found[key]) == {shown(each.name) for each in fields(kind)}
    assert found["port"]["refused"] == {"1": 2, "1227": 1}
    assert found["archive_uri"] is None
    away = replace(STATUS.source, connected_at_s=None)
    assert status_json(status(source=away))["source"]["connected_at"] is None
    assert STATUS.at_s == NOW
