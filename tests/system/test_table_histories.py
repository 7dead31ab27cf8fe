"""The history of a table that comes in, as it is read from a source: as bytes, and where kernels are missing."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from binlane.binlogs.routing.routing_memory import TableBirth
from binlane.binlogs.routing.table_births import ComingTable, TableArrival
from binlane.binlogs.routing.table_links import NO_LINKS
from binlane.live.capture.capture import Capture
from binlane.live.loop.history_reading import HistoryReading, ScopeWithLinks
from binlane.live.loop.rows_before import HistorySource
from binlane.live.provision.private_server import PrivateServer
from binlane.log.codec.event import Event, EventHeader
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import RowsEvent
from binlane.log.codec.transaction import GtidEvent
from binlane.log.codec.types import EventType
from binlane.names import TableName
from binlane.positions import Gtid, GtidPosition
from binlane.statements.scope.scope import Scope
from tests.live_catalog import settings_of
from tests.servers import execute

_SERVER_ID = 4712
_WAIT_S = 60.0
_TABLE, _SHADOW = TableName("histories", "orders"), TableName("histories", "_orders_new")


def _position(server: PrivateServer) -> str:
    ((position,),) = execute(server, "SELECT @@gtid_binlog_pos")
    return str(position)


@pytest.mark.parametrize("uses_kernels", [True, False])
def test_a_history_is_read_in_either_form(
    mariadb_server: PrivateServer, tmp_path: Path, *, uses_kernels: bool
) -> None:
    server = mariadb_server
    execute(server, "CREATE OR REPLACE DATABASE histories")
    since = _position(server)
    execute(server, f"CREATE TABLE {_SHADOW} (id INT PRIMARY KEY)")
    born = _position(server)
    execute(
        server,
        f"ALTER TABLE {_SHADOW} ADD v INT",
        f"INSERT INTO {_SHADOW} VALUES (1, 1), (2, 2)",
        f"RENAME TABLE {_SHADOW} TO {_TABLE}",
    )
    birth = TableBirth(name=_SHADOW, gtid=born, since=since)
    arrival = TableArrival(
        tables=(ComingTable(birth=birth, new=_TABLE),),
        query=QueryEvent(
            thread_id=1,
            execution_time=0,
            error_code=0,
            status_vars=b"",
            database=b"histories",
            query=f"RENAME TABLE {_SHADOW} TO {_TABLE}".encode(),
        ),
    )
    ended = threading.Event()

    def open_log() -> Capture:
        return Capture(
            settings_of(server),
            GtidPosition.parse(since),
            spill=tmp_path / "spill",
            server_id=_SERVER_ID,
            uses_kernels=uses_kernels,
        )

    source = HistorySource(
        settings=settings_of(server), open_history=open_log, open_behind=open_log
    )
    until = Gtid.parse(_position(server))
    first = Event(
        EventHeader(
            timestamp=1,
            type_code=EventType.GTID,
            server_id=until.server_id,
            length=0,
            next_position=0,
            flags=0,
        ),
        GtidEvent(sequence=until.sequence, domain_id=0, flags=0, flags_extra=0, padding=bytes(5)),
    )
    scope = Scope(log_tables=frozenset((_TABLE,)))
    binlog = ScopeWithLinks(scope, NO_LINKS)
    folder = tmp_path / "history"
    reading = HistoryReading(arrival, (until, first), binlog, source, folder, ended.set)
    reading.start()
    assert ended.wait(_WAIT_S) or reading.is_over, "it did not end"
    assert reading.reason == ""
    (found,) = reading.found
    assert len(found.statements) == 2
    rows = [event for event in found.rows() if isinstance(event.body, RowsEvent)]
    assert len(rows) == 1
