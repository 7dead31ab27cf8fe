"""The range of a log that a task reads; a light module, since every process that reads knows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Self

from binlane.log.codec.format import MAGIC
from binlane.positions import file_number
from binlane.statements.scope.scope import Scope

if TYPE_CHECKING:
    from binlane.binlogs.filters.filter_state import FilterState
    from binlane.statements.sql.logged_objects import LoggedObjects


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRange:
    """Whole event groups of one file, which one task reads.

    Attributes:
        uri: URI or path of the file.
        name: The file's base name, as events have it.
        number: The number at the end of the name.
        start: Position at which an event group begins, or the file's first event does.
        stop: Position at which a group or the file ends; None for the end of the file.
        head: The file's bytes up to and with its FORMAT_DESCRIPTION; None if they are to be read.
        is_plain: Whether the file is neither compressed nor encrypted; any other is read from its
            beginning.
        keys: Path of the key file with which the file is to be decrypted.
        catalog: The tables as the log's statements before the range tell them; None if nobody
            looked.
        earlier: URIs of the log's files before this one, newest first, where it is not known which
            transactions are prepared; else none.
        prepared: The groups before the range that prepared the XA transactions that it finishes.
        filter_state: State of the reader's filter where the range begins; None if there is no
            filter, or if nobody looked.
    """

    uri: str
    name: str
    number: int
    start: int = len(MAGIC)
    stop: int | None = None
    head: bytes | None = None
    is_plain: bool = True
    keys: str | None = None
    catalog: LoggedObjects | None = None
    earlier: tuple[str, ...] = ()
    prepared: tuple[LogRange, ...] = ()
    filter_state: FilterState | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one taking, about: event groups stay whole, and at least one is taken.

    Attributes:
        size_bytes: Bytes of log at most; None without a limit.
        groups: Event groups at most; None without a limit.
        rows: Row changes at most; None without a limit.
        scope: The tables whose rows count.
    """

    size_bytes: int | None = None
    groups: int | None = None
    rows: int | None = None
    scope: Scope = field(default_factory=Scope.everything)

    @property
    def are_used_up(self) -> bool:
        """True if nothing more is to be taken."""
        return any(left is not None and left <= 0 for left in self._given())

    @property
    def are_exceeded(self) -> bool:
        """True if more bytes were taken than wanted."""
        return self.size_bytes is not None and self.size_bytes < 0

    @property
    def is_unlimited(self) -> bool:
        """True if everything in the log may be taken."""
        return all(left is None for left in self._given())

    def _given(self) -> tuple[int | None, ...]:
        return self.size_bytes, self.groups, self.rows


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
