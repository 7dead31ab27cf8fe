"""The format that a FORMAT_DESCRIPTION event decides for all events after it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from binlane.log.codec.types import ChecksumAlgorithm, EventType, Flavor

MAGIC: Final = b"\xfebin"
MAGIC_ENCRYPTED: Final = b"\xfdbin"
MAGIC_INNODB: Final = b"\xfe\xfe\x0d\x01"
HEADER_LENGTH: Final = 19
CHECKSUM_LENGTH: Final = 4
# A server writes no event larger than max_allowed_packet (1 GiB) plus its own overhead.
EVENT_LENGTH_MAX: Final = (1 << 30) + (1 << 20)

# Announced lengths are honoured; these stand in where a FORMAT_DESCRIPTION announces none for a
# type that has a post-header all the same (MySQL >= 8.4 announces 0 for V1 rows).
_DEFAULT_POST_HEADER: Final = {
    EventType.QUERY: 13,
    EventType.TABLE_MAP: 8,
    EventType.WRITE_ROWS_V1: 8,
    EventType.UPDATE_ROWS_V1: 8,
    EventType.DELETE_ROWS_V1: 8,
    EventType.WRITE_ROWS: 10,
    EventType.UPDATE_ROWS: 10,
    EventType.DELETE_ROWS: 10,
}
# Lengths of the fixed parts that binlane reads. Where a format announces more, its writer has
# fields behind them that stay as they are. TRANSACTION_PAYLOAD is not here: MySQL announces 40 for
# it where there is nothing; nor are the GTIDs, whose fixed parts grew and are read to their end.
_KNOWN_POST_HEADER: Final[Mapping[int, int]] = MappingProxyType(
    {
        EventType.QUERY: 13,
        EventType.STOP: 0,
        EventType.ROTATE: 8,
        EventType.INTVAR: 0,
        EventType.APPEND_BLOCK: 4,
        EventType.DELETE_FILE: 4,
        EventType.RAND: 0,
        EventType.USER_VAR: 0,
        EventType.XID: 0,
        EventType.BEGIN_LOAD_QUERY: 4,
        EventType.TABLE_MAP: 8,
        EventType.WRITE_ROWS_V1: 8,
        EventType.UPDATE_ROWS_V1: 8,
        EventType.DELETE_ROWS_V1: 8,
        EventType.INCIDENT: 2,
        EventType.WRITE_ROWS: 10,
        EventType.UPDATE_ROWS: 10,
        EventType.DELETE_ROWS: 10,
        EventType.VIEW_CHANGE: 52,
        EventType.TRANSACTION_CONTEXT: 18,
        EventType.PARTIAL_UPDATE_ROWS: 10,
        EventType.ANNOTATE_ROWS: 0,
        EventType.BINLOG_CHECKPOINT: 4,
        EventType.GTID_LIST: 4,
        EventType.QUERY_COMPRESSED: 13,
        EventType.WRITE_ROWS_COMPRESSED_V1: 8,
        EventType.UPDATE_ROWS_COMPRESSED_V1: 8,
        EventType.DELETE_ROWS_COMPRESSED_V1: 8,
        EventType.WRITE_ROWS_COMPRESSED: 10,
        EventType.UPDATE_ROWS_COMPRESSED: 10,
        EventType.DELETE_ROWS_COMPRESSED: 10,
    }
)
_EXTENDED_QUERY: Final = 17
_QUERIES: Final = frozenset({EventType.QUERY, EventType.QUERY_COMPRESSED})
# Events that hold a QUERY's post-header, by how long theirs is in the plain format.
_WITH_QUERY: Final[Mapping[int, int]] = MappingProxyType(
    {EventType.QUERY: 13, EventType.EXECUTE_LOAD_QUERY: 26, EventType.QUERY_COMPRESSED: 13}
)
_EXTENDED_BY: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """The frozen context of decoding.

    Attributes:
        server_version: The version as written, such as `10.11.19-MariaDB-log`.
        flavor: Told by the version text.
        checksum: The checksum with which events end, if any.
        post_header_lengths: One byte for each event type from code 1.
        header_length: The length of the common header: 19, or more where a writer has fields of its
            own there.
        foreign_lengths: The ends of the known part and of all of the fixed part, for each event
            type with a longer one than binlane knows, in bytes from the start of the body. Empty in
            the logs of all MariaDB and MySQL releases.
        has_tables_info: True if QUERY events are extended by tables info (WL#40); only this event
            says so.
    """

    server_version: str
    flavor: Flavor
    checksum: ChecksumAlgorithm
    post_header_lengths: bytes
    header_length: int = HEADER_LENGTH
    foreign_lengths: Mapping[int, tuple[int, int]] = field(init=False, compare=False, repr=False)
    has_tables_info: bool = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        lengths = enumerate(self.post_header_lengths, start=1)
        foreign = {
            code: (_KNOWN_POST_HEADER[code], announced)
            for code, announced in lengths
            if announced > _KNOWN_POST_HEADER.get(code, announced)
            and not (code in _QUERIES and announced == _EXTENDED_QUERY)
        }
        object.__setattr__(self, "foreign_lengths", foreign)
        is_extended = self.post_header_length(EventType.QUERY) == _EXTENDED_QUERY
        object.__setattr__(self, "has_tables_info", is_extended)

    @property
    def checksum_length(self) -> int:
        """Bytes after each event's body: 4 or 0."""
        return CHECKSUM_LENGTH if self.checksum is ChecksumAlgorithm.CRC32 else 0

    def post_header_length(self, event_type: EventType) -> int:
        """Length of the fixed part of a type's body, in bytes."""
        announced = (
            self.post_header_lengths[event_type - 1]
            if event_type <= len(self.post_header_lengths)
            else 0
        )
        return announced or _DEFAULT_POST_HEADER.get(event_type, 0)


def lengths_with_tables_info(post_header_lengths: bytes, *, has_tables_info: bool) -> bytes:
    """Post-header lengths that announce QUERY events with, or without, tables info.

    Args:
        post_header_lengths: The lengths as `Format` has them; unchanged where their writer has
            fields of its own in QUERY events, which no other form has room for.
        has_tables_info: True for the form with tables info.
    """
    plain = _WITH_QUERY[EventType.QUERY]
    if post_header_lengths[EventType.QUERY - 1] not in (plain, plain + _EXTENDED_BY):
        return post_header_lengths
    lengths = bytearray(post_header_lengths)
    for code, length in _WITH_QUERY.items():
        if code <= len(lengths) and lengths[code - 1] in (length, length + _EXTENDED_BY):
            lengths[code - 1] = length + (_EXTENDED_BY if has_tables_info else 0)
    return bytes(lengths)


def flavor_of(server_version: str) -> Flavor:
    """Return the flavor of a server's version text."""
    lowered = server_version.lower()
    return Flavor.MARIADB if "mariadb" in lowered or "-maria-" in lowered else Flavor.MYSQL


def knows_checksums(server_version: str) -> bool:
    """True if a writer of this version ends its FORMAT_DESCRIPTION with algorithm and checksum.

    Source: MariaDB sql/log_event.cc; aware are MySQL >= 5.6.1 and MariaDB >= 5.3.
    """
    numbers = [int(number) for number in re.findall(r"\d+", server_version)[:3]]
    version = tuple([*numbers, 0, 0, 0][:3])
    return version >= ((5, 3, 0) if flavor_of(server_version) is Flavor.MARIADB else (5, 6, 1))
