"""The log before a range: where the rows of an XA transaction stand that commits in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Final

from binlane.binlogs.store.chunks import base_name
from binlane.binlogs.store.decompression import SUFFIXES
from binlane.log.codec.format import MAGIC
from binlane.log.grouping.first_event import format_of
from binlane.log.grouping.resync import find_group
from binlane.log.grouping.window import ByteSource
from binlane.positions import FilePosition, file_number
from binlane.tables.columnar.batches import ChangeBatcher
from binlane.tables.columnar.counters import ReadCounters
from binlane.tables.columnar.prepared_transactions import PreparedGroup, PreparedTransactions
from binlane.tables.columnar.selection import Selection
from binlane.tables.columnar.table_schema import ReadOptions
from binlane.tables.ranges.decoding import are_kernels_ready, decoded
from binlane.tables.ranges.log_range import LogRange
from binlane.tables.ranges.storage import LogBytes, size_of
from binlane.tables.ranges.stored_files import chunks_of, description_of, open_range

PIECE_BYTES: Final = 64 << 20
_NO_GROUP: Final = Selection(stop=FilePosition("", 0))


class LogBefore:
    """Finds and opens event groups before a range.

    The search goes backwards in pieces, each read forwards, where groups can be found from any byte
    on.

    Args:
        piece: The range before which groups are sought.
        piece_bytes: Bytes of a file that are looked through at once.
    """

    def __init__(self, piece: LogRange, *, piece_bytes: int = PIECE_BYTES) -> None:
        self._piece = piece
        self._piece_bytes = piece_bytes
        self._open: LogBytes | None = None

    def close(self) -> None:
        """Close the file that is open."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def source(self, group: PreparedGroup) -> ByteSource:
        """The bytes of a group; good until the next call.

        Raises:
            StoreError: If they cannot be read.
        """
        self.close()
        piece = self._file(group.path)
        self._open = open_range(replace(piece, start=group.start, stop=group.end))
        return self._open

    def find(self, xid: str) -> PreparedGroup | None:
        """The last group before the range that prepares a transaction.

        Raises:
            CodecError: If the log is damaged there.
            StoreError: If it cannot be read.
        """
        for piece in self._pieces():
            prepared = PreparedTransactions(self)
            prepared.path = piece.uri
            batcher = ChangeBatcher(ReadOptions(selection=_NO_GROUP), prepared=prepared)
            for _ in decoded(
                piece, batcher, by_kernels=are_kernels_ready(), counters=ReadCounters()
            ):
                pass
            found = prepared.known(xid)
            if found is not None:
                return found
        return None

    def _pieces(self) -> Iterator[LogRange]:
        """The log before the range, from its end to its beginning, cut where groups begin."""
        own = self._piece
        yield from own.prepared  # what whoever planned the range knows
        if own.start > len(MAGIC):
            yield from self._cut(replace(own, start=len(MAGIC), stop=own.start))
        for uri in own.earlier:
            yield from self._cut(self._file(uri))

    def _file(self, uri: str) -> LogRange:
        """A whole file of the log."""
        if uri == self._piece.uri:
            return replace(self._piece, start=len(MAGIC), stop=None)
        name = base_name(uri)
        return LogRange(
            uri=uri,
            name=name,
            number=file_number(name),
            is_plain=self._piece.is_plain and not uri.endswith(SUFFIXES),
            keys=self._piece.keys,
        )

    def _cut(self, file: LogRange) -> Iterator[LogRange]:
        stop = file.stop if file.stop is not None or not file.is_plain else size_of(file.uri)
        if not file.is_plain or stop is None:
            yield file
            return
        while stop - len(MAGIC) > self._piece_bytes:
            start = self._group_start(file, stop - self._piece_bytes, stop)
            if start is None:
                break  # one large group, or a log in which none can be found
            yield replace(file, start=start, stop=stop)
            stop = start
        yield replace(file, stop=stop)

    def _group_start(self, file: LogRange, position: int, stop: int) -> int | None:
        format_ = format_of(description_of(file))
        with closing(open_range(file)) as source:
            return find_group(chunks_of(source.reread(position)), position, format_, stop=stop)
