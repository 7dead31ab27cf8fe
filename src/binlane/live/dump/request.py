"""A replica's request: its dump command and the user variables that it set before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from binlane.errors import CodecError, StatementError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.format import Format
from binlane.log.codec.mysql_transaction import PreviousGtidsEvent
from binlane.log.codec.packets.commands import BinlogDump, BinlogDumpGtid
from binlane.log.codec.packets.flags import DumpFlag
from binlane.log.codec.types import ChecksumAlgorithm, Flavor
from binlane.positions import GtidPosition, GtidSet, Position

FATAL_ERRNO: Final = 1236
"""ER_MASTER_FATAL_ERROR_READING_BINLOG: replicas stop at it and show its text."""

_CAPABILITY_GTID: Final = 4
# As much as a server says in an error.
_TOLD_MAX: Final = 500
_NANOSECONDS: Final = 1_000_000_000
# A set is written alike in all of them.
_ANY_FORMAT: Final = Format(
    server_version="",
    flavor=Flavor.MYSQL,
    checksum=ChecksumAlgorithm.NONE,
    post_header_lengths=b"",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaRequest:
    """One dump as a replica wants it.

    Attributes:
        file: Base name of the file to start in; empty means the first one. By GTID it says no more
            than which binlog.
        position: Byte position in `file`. Not read by GTID.
        flags: The `DumpFlag` bits of the command.
        flavor: The flavor whose protocol the replica speaks: the source's.
        server_id: The server id of the replica itself.
        connect_state: The position that the replica has done; None where it asks by file and
            position.
        checksum: The checksum that it takes at the end of the ROTATE before the first
            FORMAT_DESCRIPTION, which then decides.
        heartbeat_period_s: The longest silence, in seconds; None for ever.
        wants_tables_info: True if it reads Query events with tables info.
    """

    file: str = ""
    position: int = 4
    flags: int = 0
    flavor: Flavor = Flavor.MARIADB
    server_id: int = 0
    connect_state: Position | None = None
    checksum: ChecksumAlgorithm = ChecksumAlgorithm.CRC32
    heartbeat_period_s: float | None = None
    wants_tables_info: bool = False

    @classmethod
    def of(
        cls,
        command: BinlogDump | BinlogDumpGtid,
        variables: Mapping[str, str | None],
        *,
        flavor: Flavor = Flavor.MARIADB,
    ) -> Self:
        """Put together the command and the session's user variables.

        Args:
            command: The COM_BINLOG_DUMP, or MySQL's by GTID.
            variables: Values by lower-case name without `@`, such as `master_heartbeat_period`.
            flavor: The flavor of the source.

        Raises:
            StatementError: With `FATAL_ERRNO`, if the replica asks for what cannot be served to it.
        """
        if flavor is Flavor.MYSQL:
            connect_state: Position | None = _gtid_set(command)
        else:
            connect_state = _connect_state(command, variables)
        period_ns = _number(variables, "source_heartbeat_period", "master_heartbeat_period")
        return cls(
            file=command.file,
            position=command.position,
            flags=command.flags,
            flavor=flavor,
            server_id=command.server_id,
            connect_state=connect_state,
            checksum=_checksum(variables),
            heartbeat_period_s=period_ns / _NANOSECONDS or None,
            wants_tables_info=_number(variables, "binlane_tables_info") == 1,
        )

    @property
    def is_non_blocking(self) -> bool:
        """True if the dump ends at the end of the binlog."""
        return bool(self.flags & DumpFlag.NON_BLOCK)

    @property
    def goes_on_anywhere(self) -> bool:
        """True if a MariaDB follows by file and position, and so comes back wherever it was cut off."""
        follows = self.server_id != 0 and not self.is_non_blocking
        by_file = self.flavor is Flavor.MARIADB and self.connect_state is None
        return follows and by_file and self.heartbeat_period_s is not None

    @property
    def keeps_gtids(self) -> bool:
        """True if the reader keeps a set of what it has done: a MySQL by GTID; no tool without id."""
        return isinstance(self.connect_state, GtidSet) and self.server_id != 0

    @property
    def wants_annotate(self) -> bool:
        """True if events with the statements that changed rows are sent: to a MySQL always."""
        return self.flavor is Flavor.MYSQL or bool(self.flags & DumpFlag.SEND_ANNOTATE_ROWS)

    @property
    def wants_heartbeat_v2(self) -> bool:
        """True if heartbeats are of MySQL's second version, which holds any position."""
        return self.flavor is Flavor.MYSQL and bool(self.flags & DumpFlag.HEARTBEAT_V2)


def refusal(text: str, *, hint: str = "") -> StatementError:
    """Return the error that ends a dump for good: error 1236."""
    return StatementError(text, errno=FATAL_ERRNO, hint=hint)


def _number(variables: Mapping[str, str | None], *names: str) -> int:
    """The first of some variables that is set; 0 for none and for what is no number."""
    text = next((value for name in names if (value := variables.get(name))), "").strip()
    return int(text) if text.isascii() and text.isdigit() else 0


def _checksum(variables: Mapping[str, str | None]) -> ChecksumAlgorithm:
    wanted = variables.get("source_binlog_checksum") or variables.get("master_binlog_checksum")
    if wanted is None:
        raise refusal(
            "Slave can not handle replication events with the checksum that master is configured "
            "to log",
            hint="set @master_binlog_checksum=@@global.binlog_checksum before the dump",
        )
    return ChecksumAlgorithm.NONE if wanted.upper() == "NONE" else ChecksumAlgorithm.CRC32


def _connect_state(
    command: BinlogDump | BinlogDumpGtid, variables: Mapping[str, str | None]
) -> GtidPosition | None:
    """A MariaDB's position, which its session gave before the dump."""
    if isinstance(command, BinlogDumpGtid):
        raise refusal("COM_BINLOG_DUMP_GTID is not served: the source's GTIDs are MariaDB's")
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
    text = variables.get("slave_connect_state")
    if text is None:
        return None
    try:
        return GtidPosition.parse(text)
    except ValueError as error:
        told = f"Could not parse GTID list: {error}"
        raise refusal(told[:_TOLD_MAX]) from None


def _gtid_set(command: BinlogDump | BinlogDumpGtid) -> GtidSet | None:
    """A MySQL's GTID set, which its command holds."""
    if isinstance(command, BinlogDump):
        return None
    reader = Reader(command.done)
    try:
        done = PreviousGtidsEvent.decode(reader, _ANY_FORMAT)
        reader.finish()
    except CodecError as error:
        raise refusal(f"the replica's GTID set cannot be read: {error.message}") from None
    return done.position
