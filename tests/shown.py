"""Statuses as `service` makes them, for tests of what is shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from binlane.live.web.rate_history import SAMPLE_S, History, Rates, Written
from binlane.live.web.status_values import (
    BinlogStatus,
    IncidentStatus,
    PortStatus,
    ProcessStatus,
    ReaderState,
    ReaderStatus,
    ShownFailure,
    ShownState,
    SourceStatus,
    Status,
    WorkerStatus,
)

NOW: Final = 1_795_426_360.0

READER: Final = ReaderStatus(
    server_id=101,
    user="replica",
    peer="10.0.0.7:51022",
    host="replica1.example.org",
    port=3306,
    connection_id=17,
    since_at_s=NOW - 4000,
    state=ReaderState.SENDING,
    file="orders.000002",
    position_bytes=4000,
    sent_bytes=123_456,
    lag_bytes=711,
    lag_s=3.5,
)
BINLOG: Final = BinlogStatus(
    name="orders",
    file="orders.000002",
    position_bytes=4711,
    files=2,
    size_bytes=1_004_711,
    gtid_complete="0-1-9",
    log="baz.bar, test",
    ignore="test.foo",
    format="ROW",
    event_groups=12,
    events=60,
    written_bytes=4321,
    omissions={"annotate text": 3, "view": 1},
    rows_instead={"no plan": 2},
    incidents=1,
    readers=[READER],
    lag_s=0.5,
    lag_bytes=2048,
)
STOPPED: Final = replace(
    BINLOG,
    name="stopped",
    state=ShownState.STOPPED,
    reason="no room:\nNo space left",
    last_failure=ShownFailure(text="no room:\nNo space left", at_s=NOW - 60),
    lag_bytes=None,
    readers=[],
)
INCIDENT: Final = replace(
    BINLOG,
    unacknowledged=3,
    stopping="replicas stop at 3 INCIDENTs, the first 0-1-5 at orders.000001:4711: rows from outside",
    first_incident=IncidentStatus(
        text="rows from outside",
        at_s=NOW - 100,
        file="orders.000001",
        position_bytes=4711,
        gtid="0-1-5",
    ),
    last_incident=IncidentStatus(
        text="the source lost events", at_s=NOW - 50, file="orders.000002", position_bytes=400
    ),
)
STATUS: Final = Status(
    at_s=NOW,
    problem=None,
    binlogs=[BINLOG],
    source=SourceStatus(
        url="mariadb://binlane@db1:3306",
        flavor="mariadb",
        version="10.11.19-MariaDB-log",
        is_connected=True,
        connected_at_s=NOW - 7200,
        gtid="0-1-9",
        file="binlog.000007",
        position_bytes=1_234_567,
        silent_s=1.25,
        end_file="binlog.000007",
        end_bytes=1_236_615,
    ),
    process=ProcessStatus(
        version="0.1.0",
        python="3.11.7",
        process_id=4242,
        started_at_s=NOW - 7201,
        cpu_s=12.5,
        resident_bytes=118_345_728,
        virtual_bytes=953_270_272,
        open_descriptors=31,
        descriptors_max=20_000,
    ),
    port=PortStatus(
        address="127.0.0.1:3307",
        sessions=4,
        sessions_max=100,
        logins={"admitted": 9, "refused": 1},
        judged={"passed": 11, "refused": 2},
        refused={1: 2, 1227: 1},
        faults=3,
        workers=(
            WorkerStatus(
                number=0, process_id=4243, sessions=3, cpu_s=61.5, resident_bytes=90_000_000
            ),
            WorkerStatus(number=1, process_id=4244, restarts=2),
        ),
    ),
)


def status(*binlogs: BinlogStatus, **changes: Any) -> Status:
    """A status of these binlogs."""
    return replace(STATUS, binlogs=list(binlogs), **changes)


def rates(*, seconds: float = 3600.0, until_s: float = NOW, pace: float = 10.0) -> Rates:
    """Rates of a binlog that grew faster and faster, and then not at all for a minute."""
    history, groups = History(), 0.0
    count = round(seconds / SAMPLE_S)
    for number in range(count + 1):
        if number < count - 6:
            groups += pace * SAMPLE_S * number / max(1, count)
        at_s = until_s - (count - number) * SAMPLE_S
        history.sample(at_s, {1: Written(round(groups), round(groups) * 250)})
    return history.rates(1)
