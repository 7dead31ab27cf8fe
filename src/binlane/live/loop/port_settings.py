"""Settings of what sessions through the port do to binlogs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from binlane.errors import ConfigError

_WORKERS_MAX: Final = 64
_JOURNAL_LEAST_BYTES: Final = 1 << 20


class Bypass(Enum):
    """A statement binlog's treatment of changes that did not come through the port."""

    ROWS = "rows"
    MARK = "mark"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class PortSettings:
    """Services that sessions through the port may expect.

    Attributes:
        enabled: True if statements are judged before they run, and binlogs hold statements; without
            that they are relayed, and binlogs hold rows.
        workers: Processes that serve the port beside the one that routes; with 0 that one serves it.
            None has as many as the machine has cores for (`process.worker_count`).
        bypass: The treatment, by binlogs of FORMAT STATEMENT and MIXED, of rows whose statement did
            not come through the port: hold them; hold them and say so for each group; or stop.
        journal_max_bytes: The largest size of the journal of sessions' plans; what is more goes,
            the oldest first, and binlogs that lack those groups still get their rows.
    """

    enabled: bool = True
    workers: int | None = None
    bypass: Bypass = Bypass.ROWS
    journal_max_bytes: int = 1 << 30

    def __post_init__(self) -> None:
        """Refuse values that cannot be.

        Raises:
            ConfigError: If a value is none of those that there are.
        """
        if self.workers is not None and not 0 <= self.workers <= _WORKERS_MAX:
            raise ConfigError(
                f"{self.workers!r} is no number of processes",
                key="gateway.workers",
                hint=f'"auto", or 0 to {_WORKERS_MAX}: one for each core that clients shall have',
            )
        if self.journal_max_bytes < _JOURNAL_LEAST_BYTES:
            raise ConfigError(
                f"{self.journal_max_bytes} bytes is no size for the journal",
                key="gateway.journal_max_size",
                hint=f"{_JOURNAL_LEAST_BYTES} bytes or more, such as 1G",
            )
