"""The range of a log that a task reads; a light module, since every process that reads knows it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from binlane.log.codec.format import MAGIC
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
