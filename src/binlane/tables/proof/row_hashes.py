"""Row images → a hash of each, by the columns of their TABLE_MAP."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from binlane.errors import CodecError
from binlane.log.codec.row_count import value_widths
from binlane.log.codec.rows import TableMapEvent
from binlane.log.codec.table_metadata import table_columns
from binlane.log.codec.types import Flavor
from binlane.log.grouping.window import padded
from binlane.log.kernels.load import kernels
from binlane.tables.proof.table_digest import Hashes

Places = npt.NDArray[np.int32]
"""Offset of the first byte of each row image."""

_ROWS_AT_FIRST: Final = 1024
_NO_ROOM: Final = -2


def row_layout(table_map: TableMapEvent) -> bytes:
    """All that decides how a table's rows are written: two layouts that are equal hash alike."""
    types, metadata = table_map.column_types, table_map.metadata
    return len(types).to_bytes(2, "little") + types + metadata


class RowHasher:
    """Hashes the row images of tables of one layout.

    Args:
        table_map: The map of such a table.
        flavor: Flavor of the server that wrote it.

    Raises:
        CodecError: If the lengths of the values cannot be told from the map.
    """

    def __init__(self, table_map: TableMapEvent, flavor: Flavor) -> None:
        widths = value_widths(table_columns(table_map, flavor=flavor))
        if widths is None:
            raise CodecError(f"the lengths of the values of {table_map.name} cannot be told")
        self._widths = np.array(widths, np.int32)
        self._hashes = np.empty((_ROWS_AT_FIRST, 2), np.uint32)
        self._starts = np.empty(_ROWS_AT_FIRST, np.int32)
        self._data = padded(1 << 14)

    def hash(self, images: bytes) -> tuple[Hashes, Places]:
        """Hash row images that have all columns, one behind the other.

        Raises:
            CodecError: If the last image ends inside a value.
        """
        length = len(images)
        if padded(0).shape[0] + length > self._data.shape[0]:
            self._data = padded(2 * length)
        self._data[:length] = np.frombuffer(images, np.uint8)
        while True:
            count = kernels().hash_images(
                self._data, length, self._widths, self._hashes, self._starts
            )
            if count != _NO_ROOM:
                break
            room = 4 * self._hashes.shape[0]
            self._hashes = np.empty((room, 2), np.uint32)
            self._starts = np.empty(room, np.int32)
        if count < 0:
            raise CodecError("the last row ends inside a value")
        return self._hashes[:count].view(np.uint64).reshape(-1).copy(), self._starts[:count].copy()
