"""Settings by which binlog files are written: the servers' own of the `[binlog]` section."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from binlane.errors import ConfigError
from binlane.statements.sql.servers import LoggingMode

MAX_BINLOG_SIZE_LEAST: Final = 4096
MAX_BINLOG_SIZE_MOST: Final = 1 << 30
EXPIRE_LOGS_MOST_S: Final = (1 << 32) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """Settings of a store.

    Attributes:
        max_binlog_size_bytes: A file of this size or more gets no further event group; 4096 to
            1 GiB. Event groups are never split, so that a file can be larger.
        sync_binlog: Number of event groups after which a file is forced to disk; 1 is each of them,
            0 leaves it to the operating system, except where a watermark or a rotation relies on
            it.
        watermark_interval_s: Least time between two watermarks written to SQLite, in seconds.
        expire_logs_s: Files that ended so many seconds ago go when another begins; 0 keeps them.
        max_binlog_total_size_bytes: The oldest files go when another begins, until all files of a
            binlog have no more bytes than this; 0 keeps them.
        has_tables_info: True if Query events name the tables that their statements concern, in
            files that no stock program can read.
        binlog_format: Format with which sessions begin, and of a binlog whose definition has no
            FORMAT, unless SET GLOBAL said another; None: each session and binlog by its own, in
            rows.
    """

    max_binlog_size_bytes: int = MAX_BINLOG_SIZE_MOST
    sync_binlog: int = 1
    watermark_interval_s: float = 1.0
    expire_logs_s: float = 0
    max_binlog_total_size_bytes: int = 0
    has_tables_info: bool = False
    binlog_format: LoggingMode | None = None

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
        if not 0 <= self.expire_logs_s <= EXPIRE_LOGS_MOST_S:
            raise ConfigError(
                f"{self.expire_logs_s} is no time in seconds after which files are purged",
                key="binlog.binlog_expire_logs_seconds",
                hint=f"give 1 to {EXPIRE_LOGS_MOST_S} seconds, or 0 to keep all files",
            )
        if self.max_binlog_total_size_bytes < 0:
            raise ConfigError(
                f"{self.max_binlog_total_size_bytes} is no size for all files of a binlog",
                key="binlog.max_binlog_total_size",
                hint="give a number of bytes, or 0 for no limit",
            )
