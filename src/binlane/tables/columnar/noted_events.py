"""Rows events in a buffer, as kernels note them, with what their rows share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from binlane.log.codec.event import Event, decode_event
from binlane.log.codec.format import Format
from binlane.log.grouping.scanner import KnownTable
from binlane.log.grouping.window import PADDING, Bytes
from binlane.log.kernels import layout
from binlane.tables.columnar.builder import RowsSource
from binlane.tables.columnar.log_notes import GroupOrigin

Small = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedEvents:
    """Rows events in a buffer, with what their rows share.

    Attributes:
        data: The buffer, in which the images stand.
        headers: The buffer that the events stand in, mostly the same.
        events: The table of noted events, as `scan` makes it.
        groups: The number of the group that each event belongs to.
        texts: GTIDs of the groups, `GTID_TEXT_MAX` bytes each.
        lengths: Lengths of the GTIDs; 0 where there is none.
        starts: Where each group begins, as `RowsSource` has it.
        micros: Times of the groups' commits, 0 where the log does not tell; None if it never does.
        positions: The position of each event in the file.
        file: Base name of the file.
        tables: Tables by the table maps of the table of events.
        format_: The binlog format of the events.
        timestamp: Time that all rows have instead of their event's, in seconds since 1970; None for
            their event's.
    """

    data: Bytes
    headers: Bytes
    events: Small
    groups: Small
    texts: Bytes
    lengths: Small
    starts: Numbers
    micros: Numbers | None
    positions: Numbers
    file: str
    tables: Sequence[KnownTable]
    format_: Format
    timestamp: int | None = None

    @property
    def is_xa(self) -> bool:
        """True if these are the events of an XA transaction that commits."""
        return bool(self.starts[0] < 0)

    def at(self, place: GroupOrigin) -> NotedEvents:
        """Return the same events at the place of an XA COMMIT."""
        assert place.commit is not None, "other groups count where they stand"
        gtid = (place.gtid or "").encode()
        texts = np.zeros(layout.GTID_TEXT_MAX + PADDING, np.uint8)
        texts[: len(gtid)] = np.frombuffer(gtid, np.uint8)
        return replace(
            self,
            groups=np.zeros_like(self.groups),
            texts=texts,
            lengths=np.array([len(gtid)], np.int32),
            starts=np.array([place.start], np.int64),
            micros=np.array([place.micros], np.int64) if place.micros else None,
            positions=np.full_like(self.positions, place.commit.position),
            file=place.file,
            timestamp=place.commit.timestamp,
        )

    def gtid(self, index: int) -> str | None:
        """The GTID of an event's group."""
        group = int(self.groups[index])
        start, length = group * layout.GTID_TEXT_MAX, int(self.lengths[group])
        return self.texts[start : start + length].tobytes().decode() if length else None

    def event(self, index: int) -> Event:
        """Decode an event with the reference decoder.

        Raises:
            CodecError: If it is damaged.
        """
        start = int(self.events[layout.EVENT_OFFSET, index])
        end = int(self.events[layout.EVENT_END, index]) + self.format_.checksum_length
        data = self.headers[start:end].tobytes()
        return decode_event(data, self.format_, position=int(self.positions[index]))

    def source(self, index: int, event: Event) -> RowsSource:
        """Return the origin that the rows of an event share.

        Args:
            index: The number of the event.
            event: The same event in decoded form.
        """
        group = int(self.groups[index])
        timestamp = event.header.timestamp if self.timestamp is None else self.timestamp
        return RowsSource(
            gtid=self.gtid(index),
            timestamp=timestamp,
            file=self.file,
            position=int(self.positions[index]),
            group=int(self.starts[group]),
            micros=0 if self.micros is None else int(self.micros[group]),
            server_id=event.header.server_id,
        )
