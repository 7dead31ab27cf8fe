"""The log before a range: where the rows of an XA transaction stand that commits in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from typing import Final

from binlane.codec.format import MAGIC
from binlane.columnar.batches import ChangeBatcher
from binlane.columnar.counters import ReadCounters
from binlane.columnar.prepared import Prepared, PreparedGroup
from binlane.columnar.selection import Selection
from binlane.grouping.window import BoundedBytes, ByteSource
from binlane.positions import FilePosition
from binlane.ranges.decoding import are_kernels_ready, read_bounds
from binlane.ranges.log_range import LogRange
from binlane.ranges.opening import OpenBytes, bounds_of, open_range
from binlane.store.chunks import base_name

PIECE_BYTES: Final = 64 << 20
_NO_GROUP: Final = Selection(stop=FilePosition("", 0))


class LogBefore:
    """Finds and opens what stands before a range.

    It goes backwards in pieces, each read forwards, where groups can be found from any byte on.

    Args:
        piece: The range.
        piece_bytes: How much of a file is looked through at once.
    """

    def __init__(self, piece: LogRange, *, piece_bytes: int = PIECE_BYTES) -> None:
        self._piece = piece
        self._piece_bytes = piece_bytes
        self._start = 0
        self._open: tuple[str, OpenBytes] | None = None

    def search_from(self, start: int) -> None:
        """Where the range begins in its file; 0 for the beginning."""
        self._start = start

    def close(self) -> None:
        """Close the file that is open."""
        if self._open is not None:
            self._open[1].close()
            self._open = None

    def source(self, group: PreparedGroup) -> ByteSource:
        """The bytes of a group; good until the next call.

        Raises:
            StoreError: If they cannot be read.
        """
        if self._open is None or self._open[0] != group.path:
            self.close()
            self._open = group.path, open_range(self._file(group.path))
        return BoundedBytes(self._open[1].reread(group.start), group.start, group.end)

    def find(self, xid: str) -> PreparedGroup | None:
        """The last group before the range that prepares a transaction.

        Raises:
            CodecError: If the log is damaged there.
            StoreError: If it cannot be read.
        """
        own = self._piece.path, self._start
        for each, stop in (own, *((path, None) for path in self._piece.earlier)):
            if stop is None or stop > len(MAGIC):
                with closing(open_range(self._file(each))) as source:
                    found = self._find_in(xid, self._file(each), source, stop)
                if found is not None:
                    return found
        return None

    def _file(self, path: str) -> LogRange:
        """A whole file of the log."""
        name = base_name(path)
        return replace(
            self._piece,
            path=path,
            name=name,
            start=len(MAGIC),
            stop=None,
            limit=None,
            is_start_exact=True,
        )

    def _find_in(
        self, xid: str, file: LogRange, source: OpenBytes, stop: int | None
    ) -> PreparedGroup | None:
        for piece in self._pieces(file, stop):
            bounds = bounds_of(piece, source)
            if bounds is None:
                continue
            prepared = Prepared(self)
            prepared.path = file.path
            batcher = ChangeBatcher(selection=_NO_GROUP, prepared=prepared)
            for _ in read_bounds(
                piece,
                bounds,
                source,
                batcher,
                by_kernels=are_kernels_ready(),
                counters=ReadCounters(),
            ):
                pass
            found = prepared.known(xid)
            if found is not None:
                return found
        return None

    def _pieces(self, file: LogRange, stop: int | None) -> Iterator[LogRange]:
        """A file from its end to its beginning, cut at groups, where its size is known."""
        size = stop if stop is not None else size_of(file)
        if size is None:
            yield file
            return
        # The last piece is the file's beginning, which needs no search for a group.
        bounds = [*range(len(MAGIC), size, self._piece_bytes), size]
        for low, high in reversed(list(pairwise(bounds))):
            yield replace(file, start=low, stop=high, limit=size, is_start_exact=low == len(MAGIC))


def size_of(file: LogRange) -> int | None:
    """How many bytes of a file there are to read; None where only reading it tells."""
    del file
    return None
