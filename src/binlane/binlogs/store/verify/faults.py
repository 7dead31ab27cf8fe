"""Results of `verify`: faults, and figures of the files looked at."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is wrong.

    Attributes:
        file: Path of the file, as the caller named it or below the data directory.
        position: Position of the first byte of the faulty event; 0 where the file as a whole is at
            fault.
        what: Description of the fault, for people.
    """

    file: str
    position: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.position}: {self.what}"


@dataclass(slots=True)
class CheckCounts:
    """Counts of the files, events, groups and bytes that were looked at.

    Attributes:
        files: Number of binlog files read.
        events: Events in the files; those inside of a TRANSACTION_PAYLOAD do not count.
        groups: Event groups, without single events of the log itself.
        size_bytes: Bytes of whole events, not compressed.
        notes: What a binlog has beside the full log, and rightly so, a line each.
    """

    files: int = 0
    events: int = 0
    groups: int = 0
    size_bytes: int = 0
    notes: list[str] = field(default_factory=list)
