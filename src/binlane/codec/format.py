"""What a FORMAT_DESCRIPTION event decides for all events after it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from binlane.codec.types import ChecksumAlgorithm, EventType, Flavor

MAGIC: Final = b"\xfebin"
MAGIC_ENCRYPTED: Final = b"\xfdbin"
HEADER_LENGTH: Final = 19
CHECKSUM_LENGTH: Final = 4

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """The frozen context of decoding.

    Attributes:
        server_version: As written, such as `10.11.19-MariaDB-log`.
        flavor: Told by the version text.
        checksum: Whether events end with a CRC32.
        post_header_lengths: One byte for each event type from code 1.
    """

    server_version: str
    flavor: Flavor
    checksum: ChecksumAlgorithm
    post_header_lengths: bytes

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


def flavor_of(server_version: str) -> Flavor:
    """The flavor that a version text tells."""
    lowered = server_version.lower()
    return Flavor.MARIADB if "mariadb" in lowered or "-maria-" in lowered else Flavor.MYSQL


def knows_checksums(server_version: str) -> bool:
    """Whether a writer of this version ends its FORMAT_DESCRIPTION with algorithm and checksum.

    Source: MariaDB sql/log_event.cc; aware are MySQL >= 5.6.1 and MariaDB >= 5.3.
    """
    numbers = [int(number) for number in re.findall(r"\d+", server_version)[:3]]
    version = tuple([*numbers, 0, 0, 0][:3])
    return version >= ((5, 3, 0) if flavor_of(server_version) is Flavor.MARIADB else (5, 6, 1))
