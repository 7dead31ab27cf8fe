"""What `verify` gives: faults, and figures of what was looked at."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is wrong.

    Attributes:
        file: Path of the file, as the caller named it or below the data directory.
        position: Of the first byte of the faulty event; 0 where the file as a whole is at fault.
        what: What is wrong there.
    """

    file: str
    position: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.position}: {self.what}"


@dataclass(slots=True)
class Tally:
    """How much was looked at.

    Attributes:
        files: Binlog files.
        events: In them; those inside of a TRANSACTION_PAYLOAD do not count.
        groups: Event groups, without single events of the log itself.
        size_bytes: Of whole events, not compressed.
    """

    files: int = 0
    events: int = 0
    groups: int = 0
    size_bytes: int = 0
