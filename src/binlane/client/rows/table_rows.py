"""Ranges of a table → the images that the server's log would have of their rows, with their keys.

One statement reads one range, at one moment of the server's; no lock and no transaction outlasts it
unless the caller has opened one. The rows come in batches, in bounded memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt

from binlane.client.binary_rows import RowFrames
from binlane.client.rows.key_bounds import Bound, between, bound_statement
from binlane.client.rows.logged_table import (
    LoggedTable,
    check_definition,
    trouble_with,
)
from binlane.client.session import ServerSession
from binlane.errors import CodecError, PeerError, UnsupportedError
from binlane.log.codec.numbers import decimal_length
from binlane.log.codec.packets.framing import FRAME_HEADER_LENGTH
from binlane.log.codec.packets.results import ColumnDefinition
from binlane.log.codec.row_making import Cell, CellForm, RowMaker
from binlane.log.codec.types import Flavor
from binlane.log.grouping.window import PADDING
from binlane.log.kernels.load import is_compiled, kernels

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBatch:
    """Rows of one table in the order in which the server sent them.

    Attributes:
        keys: The keys, one behind the other: the bytes that the key's columns have in the image, in
            the order of the key, with the lengths before them. Of a table without a key the whole
            image.
        key_ends: The end of each row's key in `keys`.
        images: The row images, one behind the other, as an INSERT has them with a full image.
        image_ends: The end of each row's image in `images`.
    """

    keys: bytes
    key_ends: Numbers
    images: bytes
    image_ends: Numbers

    def __len__(self) -> int:
        return len(self.image_ends)

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        """Key and image of each row."""
        key_start = image_start = 0
        for key_end, image_end in zip(
            self.key_ends.tolist(), self.image_ends.tolist(), strict=True
        ):
            yield self.keys[key_start:key_end], self.images[image_start:image_end]
            key_start, image_start = key_end, image_end


class TableRows:
    """Reads the rows of one table over one session.

    Args:
        session: A session that `set_up` made ready; it is the caller's.
        table: The table to read, as `read_logged_table` describes it.
    """

    def __init__(self, session: ServerSession, table: LoggedTable) -> None:
        self._session = session
        self._table = table

    def bound_behind(self, low: Bound | None, rows: int) -> Bound | None:
        """The key that ends a range of `rows` rows behind `low`; None if there are not that many.

        Raises:
            TableChangedError: If the table is no longer what it was.
            PeerError: If the server goes away.
        """
        key = self._table.source.key
        statement = bound_statement(str(self._table.name), key, low, rows)
        try:
            with closing(self._session.stream(statement)) as pieces:
                for piece in pieces:
                    return tuple(
                        part.literal(cells[0]) for part, cells in zip(key, piece, strict=True)
                    )
        except PeerError as error:
            raise trouble_with(self._table.name, error) from None
        return None

    def read(self, low: Bound | None = None, high: Bound | None = None) -> Iterator[RowBatch]:
        """The rows behind `low` up to and with `high`, some megabytes at a time.

        Take all before the next question. At the end the definition is compared once more: rows
        count only once the iterator has ended.

        Raises:
            TableChangedError: If the table is no longer what it was.
            UnsupportedError: If a value cannot be had as the log has it; it names the column.
            PeerError: If the server goes away.
        """
        table = self._table
        statement = table.select + between(table.source.key, low, high)
        maker: BatchMaker | None = None
        try:
            for heads, frames in self._session.stream_binary(statement):
                maker = maker or BatchMaker(table, heads)
                if frames:
                    yield maker.make(frames)
            check_definition(self._session, table.name, table.source.create)
        except PeerError as error:
            raise trouble_with(table.name, error) from None

    def ranges(self, rows: int) -> Iterator[tuple[Bound | None, Bound | None]]:
        """The ranges of `rows` rows each that the table is read in; (None, None) without a key.

        Raises:
            TableChangedError: If the table is no longer what it was.
            PeerError: If the server goes away.
        """
        low: Bound | None = None
        while True:
            high = self.bound_behind(low, rows) if self._table.source.key else None
            yield low, high
            if high is None:
                return
            low = high


class BatchMaker:
    """Makes batches of the rows of one result.

    Args:
        table: The table that is read.
        heads: The columns of the result.
        is_fast: False: only the reference makes the rows.

    Raises:
        TableChangedError: If the columns of the result are not those of the table.
    """

    def __init__(
        self, table: LoggedTable, heads: Sequence[ColumnDefinition], *, is_fast: bool = True
    ) -> None:
        self._table = table
        cells = table.cells(heads)
        self._maker = RowMaker(cells, table.key_indexes, flavor=table.flavor)
        self._kernel = None
        is_fast = is_fast and is_compiled(("image_making",))
        if is_fast and all(cell.form <= CellForm.BITS for cell in cells):
            self._kernel = FastRowMaker(cells, table.key_indexes, flavor=table.flavor)

    def make(self, frames: Sequence[RowFrames]) -> RowBatch:
        """The images of rows, with their keys.

        Raises:
            UnsupportedError: If a value cannot be had as the log has it; it names the column.
        """
        made = [self._made(part) for part in frames]
        return made[0] if len(made) == 1 else joined(made)

    def _made(self, frames: RowFrames) -> RowBatch:
        if self._kernel is not None and not frames.is_long:
            found = self._kernel.make(frames)
            if found is not None:
                return found
        keys, images = [], []
        for payload in _payloads(frames):
            try:
                key, image = self._maker.make(payload)
            except CodecError as error:
                raise UnsupportedError(
                    f"{self._table.name.plain}: a value cannot be had as the log has it:"
                    f" {error.message}"
                ) from None
            keys.append(key)
            images.append(image)
        whole = b"".join(images)
        image_ends = np.cumsum([len(image) for image in images], dtype=np.int64)
        if not self._table.source.key:
            return RowBatch(keys=whole, key_ends=image_ends, images=whole, image_ends=image_ends)
        key_ends = np.cumsum([len(key) for key in keys], dtype=np.int64)
        return RowBatch(keys=b"".join(keys), key_ends=key_ends, images=whole, image_ends=image_ends)


class FastRowMaker:
    """Makes batches by a kernel, of columns whose forms it knows.

    The arguments are those of `RowMaker`.
    """

    def __init__(self, cells: Sequence[Cell], key: Sequence[int], *, flavor: Flavor) -> None:
        unused = -len(cells) % 8
        is_filled = flavor is Flavor.MARIADB and bool(unused)
        self._plan = np.zeros((len(cells) + 1, 5), np.int64)
        self._plan[0, 1] = 0xFF << (8 - unused) & 0xFF if is_filled else 0
        self._plan[0, 2] = len(key)
        self._plan[1:, :4] = [(cell.form, cell.width, cell.size, cell.scale) for cell in cells]
        self._plan[1 : len(key) + 1, 4] = key
        self._has_key = bool(key)
        self._places = np.zeros((2, len(cells)), np.int64)
        # Values that take more bytes in an image than as they are sent.
        self._growth = sum(_growth(cell) for cell in cells) + 1

    def make(self, frames: RowFrames) -> RowBatch | None:
        """The batch of some frames; None if the reference must make it."""
        room = len(frames.data) + self._growth * frames.rows + PADDING
        data = np.empty(len(frames.data) + PADDING, np.uint8)
        data[: len(frames.data)] = np.frombuffer(frames.data, np.uint8)
        images = np.empty(room, np.uint8)
        keys = np.empty(room if self._has_key else 1, np.uint8)
        ends = np.empty((2, frames.rows), np.int64)
        self._plan[0, 0] = len(frames.data)
        rows = kernels().make_rows(data, self._plan, self._places, images, keys, ends)
        if rows != frames.rows:
            return None
        whole = images[: ends[0, -1]].tobytes()
        if not self._has_key:
            return RowBatch(keys=whole, key_ends=ends[0], images=whole, image_ends=ends[0])
        return RowBatch(
            keys=keys[: ends[1, -1]].tobytes(),
            key_ends=ends[1],
            images=whole,
            image_ends=ends[0],
        )


def joined(batches: Sequence[RowBatch]) -> RowBatch:
    """Several batches as one."""
    if not batches:
        none = np.empty(0, np.int64)
        return RowBatch(keys=b"", key_ends=none, images=b"", image_ends=none)
    images = b"".join(batch.images for batch in batches)
    image_ends = _ends([(batch.image_ends, len(batch.images)) for batch in batches])
    if all(batch.keys is batch.images for batch in batches):
        return RowBatch(keys=images, key_ends=image_ends, images=images, image_ends=image_ends)
    return RowBatch(
        keys=b"".join(batch.keys for batch in batches),
        key_ends=_ends([(batch.key_ends, len(batch.keys)) for batch in batches]),
        images=images,
        image_ends=image_ends,
    )


def _ends(parts: Sequence[tuple[Numbers, int]]) -> Numbers:
    """The ends in several buffers as ends in one."""
    starts = np.cumsum([0, *(size for _, size in parts)])
    return np.concatenate([ends + start for (ends, _), start in zip(parts, starts, strict=False)])


def _growth(cell: Cell) -> int:
    if cell.form is CellForm.DECIMAL:
        return decimal_length(cell.size, cell.scale)
    return _GROWTH.get(cell.form, cell.size)


_GROWTH: Final[Mapping[CellForm, int]] = MappingProxyType(
    {
        CellForm.WHOLE: 0,
        CellForm.YEAR: 0,
        CellForm.DATE: 3,
        CellForm.TIME: 6,
        CellForm.DATETIME: 8,
        CellForm.TIMESTAMP: 7,
    }
)


def _payloads(frames: RowFrames) -> Iterator[bytes]:
    if frames.is_long:
        yield frames.data
        return
    data, start = frames.data, 0
    while start < len(data):
        stop = start + FRAME_HEADER_LENGTH + int.from_bytes(data[start : start + 3], "little")
        yield data[start + FRAME_HEADER_LENGTH : stop]
        start = stop
