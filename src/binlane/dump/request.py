"""What a replica asks for: its dump command and the user variables that it set before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from binlane.codec.packets.commands import BinlogDump
from binlane.codec.packets.flags import DumpFlag
from binlane.codec.types import ChecksumAlgorithm
from binlane.errors import StatementError
from binlane.positions import GtidPosition

FATAL_ERRNO: Final = 1236
"""ER_MASTER_FATAL_ERROR_READING_BINLOG: replicas stop at it and show its text."""

_CAPABILITY_GTID: Final = 4
_NANOSECONDS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpRequest:
    """One dump as a replica wants it.

    Attributes:
        file: Base name of the file to start in; empty means the first one. Not read by GTID.
        position: Byte position in `file`. Not read by GTID.
        flags: `DumpFlag` bits.
        server_id: The replica's own id.
        connect_state: What the replica has done; None where it asks by file and position.
        checksum: What it takes at the end of the ROTATE before the first FORMAT_DESCRIPTION, which
            then decides.
        heartbeat_period_s: How long silence may last, in seconds; None for ever.
    """

    file: str = ""
    position: int = 4
    flags: int = 0
    server_id: int = 0
    connect_state: GtidPosition | None = None
    checksum: ChecksumAlgorithm = ChecksumAlgorithm.CRC32
    heartbeat_period_s: float | None = None

    @classmethod
    def of(cls, command: BinlogDump, variables: Mapping[str, str | None]) -> Self:
        """Put together the command and the session's user variables.

        Args:
            command: The COM_BINLOG_DUMP.
            variables: Values by lower-case name without `@`, such as `master_heartbeat_period`.

        Raises:
            StatementError: With `FATAL_ERRNO`, if the replica asks for what cannot be served to it.
        """
        if _number(variables, "mariadb_slave_capability") < _CAPABILITY_GTID:
            raise refusal(
                "Slave is too old to understand the GTID events of this binlog",
                hint="set @mariadb_slave_capability=4 before the dump",
            )
        if variables.get("slave_gtid_until"):
            raise refusal(
                "START SLAVE UNTIL master_gtid_pos is not served",
                hint="use START SLAVE UNTIL MASTER_LOG_FILE, MASTER_LOG_POS",
            )
        period_s = _number(variables, "master_heartbeat_period") / _NANOSECONDS
        return cls(
            file=command.file,
            position=command.position,
            flags=command.flags,
            server_id=command.server_id,
            connect_state=_connect_state(variables),
            checksum=_checksum(variables),
            heartbeat_period_s=period_s or None,
        )

    @property
    def is_non_blocking(self) -> bool:
        """Whether the dump ends at the end of the binlog."""
        return bool(self.flags & DumpFlag.NON_BLOCK)

    @property
    def wants_annotate(self) -> bool:
        """Whether ANNOTATE_ROWS events are sent."""
        return bool(self.flags & DumpFlag.SEND_ANNOTATE_ROWS)


def refusal(text: str, *, hint: str = "") -> StatementError:
    """What ends a dump for good: error 1236."""
    return StatementError(text, errno=FATAL_ERRNO, hint=hint)


def _number(variables: Mapping[str, str | None], name: str) -> int:
    text = (variables.get(name) or "").strip()
    return int(text) if text.isascii() and text.isdigit() else 0


def _checksum(variables: Mapping[str, str | None]) -> ChecksumAlgorithm:
    wanted = variables.get("master_binlog_checksum")
    if wanted is None:
        raise refusal(
            "Slave can not handle replication events with the checksum that master is configured "
            "to log",
            hint="set @master_binlog_checksum=@@global.binlog_checksum before the dump",
        )
    return ChecksumAlgorithm.NONE if wanted.upper() == "NONE" else ChecksumAlgorithm.CRC32


def _connect_state(variables: Mapping[str, str | None]) -> GtidPosition | None:
    text = variables.get("slave_connect_state")
    if text is None:
        return None
    try:
        return GtidPosition.parse(text)
    except ValueError as error:
        raise refusal(f"Could not parse GTID list: {error}") from None
