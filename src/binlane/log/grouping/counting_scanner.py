"""Drives the kernel `summarise`: its tables, and the known facts of tables and statements."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from binlane.errors import CodecError
from binlane.log.codec.format import Format
from binlane.log.codec.row_count import value_widths
from binlane.log.codec.rows import TableMapEvent
from binlane.log.codec.table_metadata import table_columns
from binlane.log.codec.types import EventType
from binlane.log.grouping.scanner import Scanner
from binlane.log.grouping.window import PADDING, Bytes
from binlane.log.kernels import layout
from binlane.log.kernels import summary_layout as lay
from binlane.log.kernels.load import kernels

Numbers = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]

_BITS: Final[Mapping[int, int]] = {
    EventType.WRITE_ROWS_V1: lay.INSERTS_ROWS,
    EventType.WRITE_ROWS: lay.INSERTS_ROWS,
    EventType.DELETE_ROWS_V1: lay.DELETES_ROWS,
    EventType.DELETE_ROWS: lay.DELETES_ROWS,
    EventType.WRITE_ROWS_COMPRESSED_V1: lay.INSERTS_ROWS | lay.IS_COMPRESSED,
    EventType.UPDATE_ROWS_COMPRESSED_V1: lay.IS_COMPRESSED,
    EventType.DELETE_ROWS_COMPRESSED_V1: lay.DELETES_ROWS | lay.IS_COMPRESSED,
    EventType.WRITE_ROWS_COMPRESSED: lay.INSERTS_ROWS | lay.IS_COMPRESSED,
    EventType.UPDATE_ROWS_COMPRESSED: lay.IS_COMPRESSED,
    EventType.DELETE_ROWS_COMPRESSED: lay.DELETES_ROWS | lay.IS_COMPRESSED,
    EventType.PARTIAL_UPDATE_ROWS: lay.IS_PARTIAL,
    EventType.INTVAR: lay.IS_INTVAR,
    EventType.ROWS_QUERY: lay.IS_ROWS_QUERY,
    EventType.FORMAT_DESCRIPTION: lay.IS_FOREIGN,
    EventType.START_ENCRYPTION: lay.IS_FOREIGN,
    EventType.TRANSACTION_PAYLOAD: lay.IS_FOREIGN,
    EventType.PARTIAL_ROW_DATA: lay.IS_FOREIGN,
}
_FIRST_WORD: Final = re.compile(rb"[ \t\r\n]{0,64}([A-Za-z_]+)")


class CountingScanner(Scanner):
    """Counts the events of one file in a buffer.

    Args:
        format_: The format of the events.
        is_inner: True if they stand in a TRANSACTION_PAYLOAD.

    Attributes:
        figures: The kernel's counts, and its facts of the open group.
        counts: The kernel's tables, by their numbers in `summary_layout`.
        verbs: The kind of the statements of each verb that the kernel knows.
    """

    def __init__(self, format_: Format, *, is_inner: bool = False) -> None:
        self._widths: Small = np.zeros(1024, np.int32)
        self._widths_used = 0
        self._plain: Bytes = np.zeros(PADDING, np.uint8)
        self.verbs: list[str] = []
        self.figures: Numbers = np.zeros(lay.FIGURES_SIZE, np.int64)
        self.figures[[lay.TOLD, lay.PLAIN_LENGTH, lay.RUN_LAST]] = lay.NONE
        self.figures[[lay.LEAST_BYTES, lay.LEAST_ROWS, lay.LEAST_DURATION]] = lay.NONE
        self.counts: dict[int, Numbers] = {
            lay.TYPES: np.zeros((lay.TYPES_ROWS, 256), np.int64),
            lay.DOMAINS: np.full((lay.DOMAINS_ROWS, lay.DOMAINS_MAX), lay.NONE, np.int64),
            lay.MOMENTS: np.zeros((lay.MOMENTS_ROWS, lay.MOMENTS_MAX), np.int64),
            lay.ENDS: np.zeros((lay.ENDS_ROWS, lay.MOMENTS_MAX), np.int64),
            lay.GROUPS: np.zeros((lay.GROUPS_ROWS, lay.GROUPS_MAX), np.int64),
            lay.TABLES: np.zeros((lay.TABLES_ROWS, 64), np.int64),
            lay.VERBS: np.zeros((lay.VERBS_ROWS, lay.VERBS_MAX), np.int64),
        }
        for table in (lay.MOMENTS, lay.ENDS):
            self.counts[table][lay.TIME] = lay.NONE
        super().__init__(format_, is_inner=is_inner)
        self._classes = self._kinds.copy()
        for code, bits in _BITS.items():
            self._classes[code] |= bits

    def count(self, data: Bytes, end: int) -> int:
        """Scan and count on in a buffer; see the kernel."""
        run = kernels().summarise
        counts = self.counts
        tables = (
            self._ids,
            self._maps,
            counts[lay.TYPES],
            counts[lay.DOMAINS],
            counts[lay.MOMENTS],
            counts[lay.ENDS],
            counts[lay.GROUPS],
            counts[lay.TABLES],
            counts[lay.VERBS],
        )
        texts = (self._known, self.texts, self._plain)
        return int(
            run(data, end, self._classes, self.state, self.figures, texts, tables, self._widths)
        )

    def give_images(self, images: bytes) -> None:
        """Give the kernel the plain images of the event that it asks about."""
        length = len(images)
        if length + PADDING > self._plain.shape[0]:
            self._plain = np.zeros(2 * length + PADDING, np.uint8)
        self._plain[:length] = np.frombuffer(images, np.uint8)
        self.figures[lay.PLAIN_LENGTH] = length

    def give_verb(self, query: bytes, kind: str) -> None:
        """Let the kernel count statements that begin with this one's word, if it is short."""
        match = _FIRST_WORD.match(query)
        number = len(self.verbs)
        if match is None or number == lay.VERBS_MAX:
            return
        word = match[1].upper()
        if len(word) <= lay.VERB_LENGTH_MAX:
            self.counts[lay.VERBS][lay.VERB, number] = int.from_bytes(word, "little")
            self.verbs.append(kind)
            self.figures[lay.VERBS_KNOWN] = number + 1

    def forget_beside(self) -> None:
        """Empty the tables of times, GTIDs and large groups, which counting does not use."""
        counts = self.counts
        for table in (counts[lay.MOMENTS], counts[lay.ENDS]):
            table[:] = 0
            table[lay.TIME] = lay.NONE
        counts[lay.DOMAINS][:] = lay.NONE
        self.figures[lay.RUN_LAST] = lay.NONE
        self.figures[lay.CANDIDATES] = 0

    def pass_over(self, length: int) -> None:
        """Skip the event at OFFSET, which ends its group and is counted elsewhere."""
        self.state[layout.OFFSET] += length
        self.state[[layout.IS_OPEN, layout.IS_TRANSACTION, layout.VERDICT]] = 0

    def table_map_of(self, table_id: int) -> TableMapEvent | None:
        """The table that an id means now."""
        return dict(self.open_table_maps()).get(table_id)

    def _learn(self, table_map: TableMapEvent, data: bytes) -> None:
        before = len(self.tables)
        super()._learn(table_map, data)
        if len(self.tables) == before:
            return
        counts = self.counts[lay.TABLES]
        if before == counts.shape[1]:
            counts = np.ascontiguousarray(np.hstack([counts, np.zeros_like(counts)]))
            self.counts[lay.TABLES] = counts
        counts[lay.WIDTHS_START, before] = self._keep_widths(table_map)

    def _keep_widths(self, table_map: TableMapEvent) -> int:
        try:
            widths = value_widths(table_columns(table_map, flavor=self.format.flavor))
        except CodecError:
            return lay.NONE  # whoever counts its rows says so
        if widths is None:
            return lay.NONE
        start, end = self._widths_used, self._widths_used + len(widths)
        if end > self._widths.shape[0]:
            self._widths = np.concatenate([self._widths, np.zeros(2 * end, np.int32)])
        self._widths[start:end] = widths
        self._widths_used = end
        return start
