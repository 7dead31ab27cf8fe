"""How binlog files are written: the servers' own settings of the `[binlog]` section."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from binlane.errors import ConfigError

MAX_BINLOG_SIZE_LEAST: Final = 4096
MAX_BINLOG_SIZE_MOST: Final = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """Settings of a store.

    Attributes:
        max_binlog_size_bytes: A file of this size or more gets no further event group; 4096 to
            1 GiB. Event groups are never split, so that a file can be larger.
        sync_binlog: After how many event groups a file is forced to disk; 1 is each of them, 0
            leaves it to the operating system, except where a watermark or a rotation relies on it.
        watermark_interval_s: Least time between two watermarks written to SQLite, in seconds.
    """

    max_binlog_size_bytes: int = MAX_BINLOG_SIZE_MOST
    sync_binlog: int = 1
    watermark_interval_s: float = 1.0

    def __post_init__(self) -> None:
        if not MAX_BINLOG_SIZE_LEAST <= self.max_binlog_size_bytes <= MAX_BINLOG_SIZE_MOST:
            raise ConfigError(
                f"{self.max_binlog_size_bytes} bytes is no size for a binlog file",
                key="binlog.max_binlog_size",
                hint=f"give {MAX_BINLOG_SIZE_LEAST} to {MAX_BINLOG_SIZE_MOST} bytes (1G)",
            )
        if self.sync_binlog < 0:
            raise ConfigError(
                f"{self.sync_binlog} is no number of event groups",
                key="binlog.sync_binlog",
                hint="give 1 (each event group), N (every N) or 0 (never)",
            )
        if self.watermark_interval_s < 0:
            raise ConfigError(
                f"{self.watermark_interval_s} is no time in seconds",
                key="binlog.watermark_interval",
                hint="give 0 or more seconds",
            )
