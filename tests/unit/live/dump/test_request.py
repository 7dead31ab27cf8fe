"""What replicas and tools set before a dump, and what of it cannot be served."""

from __future__ import annotations

import pytest

from binlane.errors import StatementError
from binlane.live.dump.request import FATAL_ERRNO, ReplicaRequest
from binlane.log.codec.format import Format
from binlane.log.codec.mysql_transaction import PreviousGtidsEvent
from binlane.log.codec.packets.commands import BinlogDump, BinlogDumpGtid
from binlane.log.codec.packets.flags import DumpFlag
from binlane.log.codec.types import ChecksumAlgorithm, Flavor
from binlane.positions import GtidPosition, GtidSet

COMMAND = BinlogDump(
    position=325, flags=DumpFlag.SEND_ANNOTATE_ROWS, server_id=20, file="orders.000001"
)
REPLICA: dict[str, str | None] = {
    "master_heartbeat_period": "2500000000",
    "master_binlog_checksum": "CRC32",
    "mariadb_slave_capability": "4",
}

ANY_FORMAT = Format(
    server_version="",
    flavor=Flavor.MYSQL,
    checksum=ChecksumAlgorithm.CRC32,
    post_header_lengths=b"",
)


def test_replica_by_file() -> None:
    assert ReplicaRequest.of(COMMAND, REPLICA) == ReplicaRequest(
        file="orders.000001", position=325, flags=2, server_id=20, heartbeat_period_s=2.5
    )


def test_replica_by_gtid() -> None:
    request = ReplicaRequest.of(COMMAND, {**REPLICA, "slave_connect_state": "0-1-27,1-1-3"})
    assert request.connect_state == GtidPosition.parse("0-1-27,1-1-3")


def test_new_replica_by_gtid_has_done_nothing() -> None:
    request = ReplicaRequest.of(COMMAND, {**REPLICA, "slave_connect_state": ""})
    assert request.connect_state == GtidPosition()


def test_tool_without_checksums_and_heartbeats() -> None:
    variables = {"master_binlog_checksum": "NONE", "mariadb_slave_capability": "4"}
    request = ReplicaRequest.of(COMMAND, variables)
    assert request.checksum is ChecksumAlgorithm.NONE
    assert request.heartbeat_period_s is None


@pytest.mark.parametrize(
    "flags, is_non_blocking, wants_annotate",
    [(0, False, False), (1, True, False), (2, False, True), (3, True, True), (4, False, False)],
)
def test_flags(*, flags: int, is_non_blocking: bool, wants_annotate: bool) -> None:
    request = ReplicaRequest(flags=flags)
    assert (request.is_non_blocking, request.wants_annotate) == (is_non_blocking, wants_annotate)


@pytest.mark.parametrize(
    "changes, text",
    [
        ({"mariadb_slave_capability": None}, "Slave is too old"),
        ({"mariadb_slave_capability": "2"}, "Slave is too old"),
        ({"master_binlog_checksum": None}, "Slave can not handle replication events with the"),
        ({"slave_connect_state": "garbage"}, "Could not parse GTID list"),
        ({"slave_gtid_until": "0-1-5"}, "START SLAVE UNTIL master_gtid_pos"),
    ],
)
def test_refused(changes: dict[str, str | None], text: str) -> None:
    with pytest.raises(StatementError, match=text) as caught:
        ReplicaRequest.of(COMMAND, {**REPLICA, **changes})
    assert caught.value.errno == FATAL_ERRNO


MYSQL_DONE = GtidSet.parse("c32a486b-e685-11f1-925e-02fc00000001:1-3:7:backup:1")
MYSQL_REPLICA: dict[str, str | None] = {
    "master_heartbeat_period": "500000000",
    "source_heartbeat_period": "500000000",
    "source_binlog_checksum": "CRC32",
}


def _mysql_command(done: bytes) -> BinlogDumpGtid:
    return BinlogDumpGtid(flags=DumpFlag.HEARTBEAT_V2, server_id=20, done=done)


def test_mysql_replica_by_gtid_says_what_it_has() -> None:
    done = PreviousGtidsEvent.of(MYSQL_DONE).encode(ANY_FORMAT)
    command = BinlogDumpGtid.decode(_mysql_command(done).encode())
    request = ReplicaRequest.of(command, MYSQL_REPLICA, flavor=Flavor.MYSQL)
    assert request == ReplicaRequest(
        flags=2,
        flavor=Flavor.MYSQL,
        server_id=20,
        connect_state=MYSQL_DONE,
        heartbeat_period_s=0.5,
    )
    assert request.wants_annotate
    assert request.wants_heartbeat_v2


def test_mysql_replica_by_file_needs_no_capability() -> None:
    request = ReplicaRequest.of(COMMAND, MYSQL_REPLICA, flavor=Flavor.MYSQL)
    assert (request.connect_state, request.position) == (None, 325)


@pytest.mark.parametrize("done", [b"", b"\x01" + bytes(7), bytes(9)])
def test_a_set_that_cannot_be_read_is_refused(done: bytes) -> None:
    with pytest.raises(StatementError, match="GTID set cannot be read") as caught:
        ReplicaRequest.of(_mysql_command(done), MYSQL_REPLICA, flavor=Flavor.MYSQL)
    assert caught.value.errno == FATAL_ERRNO


def test_mariadb_knows_no_dump_by_a_set() -> None:
    with pytest.raises(StatementError, match="COM_BINLOG_DUMP_GTID is not served"):
        ReplicaRequest.of(_mysql_command(bytes(8)), REPLICA)
