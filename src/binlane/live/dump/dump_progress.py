"""A dump's progress, for whoever shows it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final

_TIMESTAMP_LENGTH: Final = 4


@dataclass(slots=True, eq=False)
class DumpProgress:
    """The progress of one dump; its task changes it, any thread may look.

    Attributes:
        begun_s: The time when the dump began, as `time.time`.
        file: Base name of the file that it stands in; empty before it has found its place.
        position: The bytes up to which the connection has taken the file, or it was left out.
        sent_bytes: Bytes of packets that the connection has taken.
        sending_since_s: The time since when the connection is to take the next ones, as
            `time.time`; None while it has taken all.
        complete_s: The time when it last stood at the end of the binlog, as `time.time`; None
            before.
        last_timestamp: The time of an event among those that were sent last, in seconds since 1970;
            None before one. Events that are read at once, some hundred kilobytes, have that of the
            first.
        failure: The error that ended it for the reader; empty where none did.
    """

    begun_s: float = field(default_factory=time.time)
    file: str = ""
    position: int = 0
    sent_bytes: int = 0
    sending_since_s: float | None = None
    complete_s: float | None = None
    last_timestamp: int | None = None
    failure: str = ""

    def read(self, data: bytes) -> None:
        """Note what was sent: bytes of the file that begin with an event."""
        timestamp = int.from_bytes(data[:_TIMESTAMP_LENGTH], "little")
        if timestamp:
            self.last_timestamp = timestamp

    def lag_s(self, left_bytes: int | None, now_s: float) -> float | None:
        """Return how far the reader is behind its binlog's end, in seconds; None where it cannot be told.

        Args:
            left_bytes: The bytes between it and the end; None where that is not known.
            now_s: The present time, as `time.time`.
        """
        if left_bytes == 0:
            return 0.0
        known = [at for at in (self.complete_s, self.last_timestamp) if at is not None]
        return max(0.0, now_s - max(known)) if known else None
