"""The settings of reading rows for binlogs that are to hold them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from binlane.binlogs.store.fills import DOMAIN
from binlane.errors import ConfigError
from binlane.positions import DOMAIN_MAX

_CHUNK_LEAST_BYTES: Final = 64 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsSettings:
    """The section `[rows]` of the configuration.

    Attributes:
        rows_per_s: The most rows a second that are read from the source; 0 sets no limit.
        gtid_domain_id: The domain of the GTIDs that rows have where the source is a MariaDB, 1 to
            2^32-1, which the source must not use itself.
        chunk_bytes: What one SELECT reads, about, in bytes.
        size_max_bytes: The most bytes of rows that one binlog is given at once; 0 sets no limit.
    """

    rows_per_s: float = 0.0
    gtid_domain_id: int = DOMAIN
    chunk_bytes: int = 4 << 20
    size_max_bytes: int = 0

    def __post_init__(self) -> None:
        if self.rows_per_s < 0:
            raise ConfigError(f"{self.rows_per_s} rows a second is no limit", key="rows.rows_per_s")
        if not 1 <= self.gtid_domain_id <= DOMAIN_MAX:
            raise ConfigError(
                f"{self.gtid_domain_id} is no domain: give 1 to {DOMAIN_MAX}",
                key="rows.gtid_domain_id",
            )
        if self.chunk_bytes < _CHUNK_LEAST_BYTES:
            raise ConfigError(
                f"{self.chunk_bytes} bytes are too few to read at once: give {_CHUNK_LEAST_BYTES}"
                " or more",
                key="rows.chunk_size",
            )
