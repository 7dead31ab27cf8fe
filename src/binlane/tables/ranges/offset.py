"""A place in a log that can be found again, and by which another log is told from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from binlane.log.codec.format import MAGIC
from binlane.tables.columnar.selection import file_number


@dataclass(frozen=True, slots=True, kw_only=True)
class Offset:
    """The place up to which a log is read.

    Attributes:
        file: Base name of the file.
        position: Position in that file where an event group ends, or the beginning or the end of
            the file.
        check: The last four bytes before the position as hexadecimal digits; empty if not known.
        gtids: The position that is done there, as text; None where the log does not tell at once.
        server_id: Id of the server that wrote the file; None if not known.
        server: A name that tells the server from others; None for files.
    """

    file: str
    position: int = len(MAGIC)
    fingerprint: str = ""
    check: str = ""
    gtids: str | None = None
    server_id: int | None = None
    server: str | None = None

    @property
    def number(self) -> int:
        """The number of the file."""
        return file_number(self.file)

    @property
    def place(self) -> tuple[int, int]:
        """Number of the file and position, which order the offsets of a log."""
        return self.number, self.position

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Self:
        """Read what `json` gave; what an older binlane did not know is unknown."""
        known = {name: values[name] for name in cls.__dataclass_fields__ if name in values}
        return cls(**{**known, "position": int(values["position"])})

    def json(self) -> dict[str, Any]:
        """The offset as a dictionary of plain values, without those that are not known."""
        return {name: value for name, value in asdict(self).items() if value not in (None, "")}

    def __str__(self) -> str:
        return f"{self.file}:{self.position}"
