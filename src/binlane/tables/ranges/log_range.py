"""The range of a log that a task reads; a light module, since every process that reads knows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from binlane.log.codec.format import MAGIC

if TYPE_CHECKING:
    from binlane.binlogs.filters.state import FilterState
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
