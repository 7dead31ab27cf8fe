"""The next ranges behind a position: files one after the other, up to some bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from binlane.codec.format import MAGIC
from binlane.errors import StoreError
from binlane.positions import FilePosition
from binlane.ranges.files import Log, LogRange, limit_position, slices

_WHOLE: Final = 1 << 62
"""The position behind all of a compressed file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What is landed together.

    Attributes:
        pieces: Ranges of the log, in order.
        end: The position behind them.
        bytes_behind: Bytes of log that are there, those of the batch included.
    """

    pieces: tuple[LogRange, ...]
    end: dict[str, Any]
    bytes_behind: int = 0


def next_batch(
    log: Log, position: dict[str, Any] | None, *, batch_bytes: int, task_bytes: int
) -> Batch | None:
    """The next batch; None if there is nothing new.

    Raises:
        StoreError: If the file of the position is gone.
    """
    files = log.one_log()
    first, start = 0, len(MAGIC)
    if position is not None:
        names = [file.name for file in files]
        if position["file"] not in names:
            raise StoreError(
                "is no longer there, and was not landed to its end",
                path=position["file"],
                hint="bring it back, or land into an empty target",
            )
        first, start = names.index(position["file"]), position["position"]
    pieces: list[LogRange] = []
    end = position
    left = batch_bytes
    behind = sum(file.size_bytes or 0 for file in files[first:]) - start
    for file in files[first:]:
        stop = file.size_bytes
        if start < (stop or _WHOLE):
            if stop is not None:
                stop = limit_position(file, FilePosition(file.name, start), left)
                left -= stop - start
            pieces += slices(file, start=start, stop=stop, size_bytes=task_bytes)
            end = {"file": file.name, "position": stop or _WHOLE}
            if left <= 0:
                break
        start = len(MAGIC)
    return (
        None
        if end is None or not pieces
        else Batch(pieces=tuple(pieces), end=end, bytes_behind=behind)
    )
