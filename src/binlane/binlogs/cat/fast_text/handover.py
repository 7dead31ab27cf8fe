"""The handover of events begun and not ended, from the text kernel to `TextLines` and back.

Each of the two goes on behind the other's output as if the output were its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from binlane.binlogs.cat.fast_text.buffers import TextBuffers
from binlane.binlogs.cat.text.text_lines import TextLines
from binlane.binlogs.cat.text.text_options import Progress
from binlane.log.codec.event import Event
from binlane.log.kernels import text_layout as lay

_PARTS: Final = (lay.HEADS, lay.ENCODED, lay.ROWS)
_MYSQL_PARTS: Final = (*_PARTS, lay.NOTE)
_FACTS: Final = (
    lay.HAS_GTID,
    lay.AWAITS_BEGIN,
    lay.IN_TRANSACTION,
    lay.IN_PAYLOAD,
    lay.SERVER_VERSION,
)


class Handover:
    """Keeps the kernel and the reference in step.

    Args:
        renderer: The reference, which is slower.
        state: State array of the kernel.
        parts: Buffers that hold the rows of a statement that has not ended.
    """

    def __init__(
        self, renderer: TextLines, state: npt.NDArray[np.int64], parts: TextBuffers
    ) -> None:
        self._renderer = renderer
        self._state = state
        self._parts = parts

    @property
    def _kinds(self) -> tuple[int, ...]:
        """The parts that the reference takes; MariaDB's annotation waits in the kernel."""
        return _MYSQL_PARTS if self._state[lay.IS_MYSQL] else _PARTS

    def give(self, tables: Iterable[Event] = ()) -> None:
        """Hand the state over to the reference, which goes on behind the kernel.

        Args:
            tables: TABLE_MAPs of the statement, if the reference is to print rows.
        """
        state = self._state
        heads, bodies, comments, *values = (
            # Each part ends with a line end, which the reference adds by itself.
            [text[:-1].decode("utf-8", "surrogateescape")] if text else []
            for text in map(self._parts.taken, self._kinds)
        )
        has_gtid, awaits_begin, in_transaction, in_payload, version = state[list(_FACTS)].tolist()
        progress = Progress(
            row_heads=heads,
            row_bodies=bodies,
            row_comments=comments,
            values=values[0] if values else [],
            row_count=int(state[lay.ROW_COUNT]) if state[lay.COUNTS_ROWS] else 0,
            has_gtid=bool(has_gtid),
            awaits_begin=bool(awaits_begin),
            in_transaction=bool(in_transaction),
            in_payload=bool(in_payload),
            server_version=version,
        )
        state[lay.ROW_COUNT] = 0
        self._renderer.resume(progress, tables)

    def take(self) -> None:
        """Take the state back from the reference, so that the kernel goes on."""
        state, progress = self._state, self._renderer.progress
        texts = (progress.row_heads, progress.row_bodies, progress.row_comments, progress.values)
        for part, held in zip(_MYSQL_PARTS, texts, strict=True):
            for text in held:
                self._parts.add(part, f"{text}\n".encode("utf-8", "surrogateescape"))
        state[lay.ROW_COUNT] = progress.row_count
        state[list(_FACTS)] = (
            progress.has_gtid,
            progress.awaits_begin,
            progress.in_transaction,
            progress.in_payload,
            progress.server_version,
        )
        # The reference gets it back when it is asked next.
        self._renderer.resume(Progress())
