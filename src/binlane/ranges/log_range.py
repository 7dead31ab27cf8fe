"""What one task reads of a log; light, since it travels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from binlane.codec.format import MAGIC

if TYPE_CHECKING:
    from binlane.codec.encryption import KeyRing
    from binlane.sql.catalog import SchemaCatalog


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRange:
    """What one task reads: the event groups that begin in a range of a file.

    Attributes:
        path: Of the file.
        name: As events have it.
        number: At the end of the name.
        start: Where to begin, in bytes from the start of the file.
        stop: Where to end; None for the end of the file.
        limit: Where the range ends that this is a slice of; None for the end of the file.
        is_start_exact: Whether a group begins at `start`; else the next one behind it is meant.
            Of `stop` the same holds where it is not `limit`.
        earlier: The files of the log before this one, newest first: where the rows of an XA
            transaction may stand that commits here.
        keys: If the file may be encrypted.
        catalog: What logged DDL before `start` tells of tables; None if nobody knows.
    """

    path: str
    name: str
    number: int
    start: int = len(MAGIC)
    stop: int | None = None
    limit: int | None = None
    is_start_exact: bool = True
    earlier: tuple[str, ...] = ()
    keys: KeyRing | None = None
    catalog: SchemaCatalog | None = None
