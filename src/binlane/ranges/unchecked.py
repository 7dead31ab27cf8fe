"""Where rows were changed on which no foreign key acts unseen; batches of rows do not tell."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Final

from binlane.codec.rows import RowsEvent
from binlane.codec.types import RowsFlag
from binlane.ranges.files import read_groups_of
from binlane.ranges.log_range import LogRange

_NOT_CASCADED: Final = RowsFlag.NO_FOREIGN_KEY_CHECKS | RowsFlag.USE_SQL_FOREIGN_KEY


def unchecked_positions(piece: LogRange) -> tuple[int, ...]:
    """The positions of rows events behind which nothing cascades that is not logged.

    They are of sessions with foreign_key_checks=0, or of MySQL since 9.6, which logs all of it.

    The range is read by the reference decoder; its rows are not decoded.

    Raises:
        CodecError: If the log is damaged.
        StoreError: If it cannot be read.
    """
    return _positions(replace(piece, catalog=None))  # which has no hash


@lru_cache(maxsize=2)
def _positions(piece: LogRange) -> tuple[int, ...]:
    return tuple(
        event.position
        for group in read_groups_of(piece)
        for event in group.events
        if isinstance(event.body, RowsEvent) and event.body.flags & _NOT_CASCADED
    )
