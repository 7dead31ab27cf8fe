"""What a task reads of a log; light, since every process that reads anything knows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from binlane.log.codec.format import MAGIC

if TYPE_CHECKING:
    from binlane.binlogs.filters.state import FilterState
    from binlane.statements.sql.catalog import SchemaCatalog


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRange:
    """What one task reads: whole event groups of one file.

    Attributes:
        uri: Of the file.
        name: As events have it.
        number: At the end of the name.
        start: Where an event group begins, or the file's first event does.
        stop: Where a group or the file ends; None for the end of the file.
        head: The file's bytes up to and with its FORMAT_DESCRIPTION; None if they are to be read.
        is_plain: As of the file; one that is not is read from its beginning.
        keys: Path of the key file with which the file is to be decrypted.
        catalog: What the log's statements before the range tell of its tables; None if nobody
            looked.
        earlier: URIs of the log's files before this one, newest first, where nobody knows what is
            prepared; else none.
        prepared: The groups before the range that prepared the XA transactions that it finishes.
        filter_state: What the reader's filter lets through where the range begins; None if there is
            none, or if nobody looked.
    """

    uri: str
    name: str
    number: int
    start: int = len(MAGIC)
    stop: int | None = None
    head: bytes | None = None
    is_plain: bool = True
    keys: str | None = None
    catalog: SchemaCatalog | None = None
    earlier: tuple[str, ...] = ()
    prepared: tuple[LogRange, ...] = ()
    filter_state: FilterState | None = None
