"""What a source sends to a replica: recorded dumps, and a source that follows a script."""

from __future__ import annotations

import json
from collections.abc import Sequence

from binlane.log.codec.packets.flags import (
    NO_CAPABILITIES,
    Capability,
    ExtendedCapability,
    ServerStatus,
)
from binlane.log.codec.packets.handshake import Greeting
from binlane.log.codec.packets.replies import OkPacket
from binlane.log.codec.packets.results import (
    ColumnDefinition,
)
from tests.fixture_sets import fixture_set
from tests.result_sets import encode_result_set

OK = OkPacket().encode(NO_CAPABILITIES)
SCRAMBLE = bytes(range(1, 21))
VARIABLES = {
    "version": "10.11.19-MariaDB-log",
    "server_id": "1",
    "gtid_domain_id": "0",
    "log_bin": "ON",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "binlog_row_metadata": "FULL",
    "binlog_checksum": "CRC32",
    "gtid_binlog_pos": "0-1-4",
    "gtid_binlog_state": "0-1-4",
    "gtid_strict_mode": "ON",
}
MYSQL_VARIABLES = {
    "version": "9.7.4",
    "server_id": "1",
    "server_uuid": "95e573e5-e685-11f1-9e4d-02fc00000001",
    "log_bin": "ON",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "binlog_row_metadata": "FULL",
    "binlog_checksum": "CRC32",
    "log_replica_updates": "ON",
    "gtid_mode": "ON",
    "enforce_gtid_consistency": "ON",
    "gtid_executed": "95e573e5-e685-11f1-9e4d-02fc00000001:1-9:tagx:1-2",
    "gtid_purged": "95e573e5-e685-11f1-9e4d-02fc00000001:1-3",
}
GRANT = "GRANT REPLICATION SLAVE ON *.* TO `binlane`@`%`"


def dump_packets(name: str) -> list[bytes]:
    """Payloads that MariaDB 10.11.19 sent as `name` of the set `md1011_netstream`."""
    text = fixture_set("md1011_netstream").text(f"{name}.packets.jsonl")
    return [bytes.fromhex(json.loads(line)["hex"]) for line in text.splitlines()]


def greeting(plugin: str = "mysql_native_password", *, offers_tls: bool = False) -> bytes:
    """What a MariaDB server says first."""
    capabilities = Capability(0x81FFF7FE) | (Capability.SSL if offers_tls else 0)
    return Greeting(
        version="5.5.5-10.11.19-MariaDB-log",
        thread_id=7,
        auth_data=SCRAMBLE + b"\0",
        capabilities=capabilities,
        character_set=45,
        status=ServerStatus.AUTOCOMMIT,
        plugin=plugin,
        extended_capabilities=ExtendedCapability.CACHE_METADATA,
    ).encode()


def rows(*cells: Sequence[str | None]) -> list[bytes]:
    """The answer to a query."""
    columns = [ColumnDefinition(name=f"c{index}") for index in range(len(cells[0]))]
    return encode_result_set(columns, cells, capabilities=NO_CAPABILITIES)


def preparation(
    variables: dict[str, str] = VARIABLES, *answers_at_start: list[bytes]
) -> list[list[bytes]]:
    """Answers to everything between the login and the dump.

    Args:
        variables: The answer to SHOW GLOBAL VARIABLES; the account and its grants follow.
        answers_at_start: To what is asked to find the start.
    """
    facts = [rows(*variables.items()), rows(["binlane@%"]), rows([GRANT])]
    return [*facts, *answers_at_start, [OK], rows(["CRC32"]), [OK]]
