"""A binlog's event groups: their form (row images, tables info, compression), and the state behind them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from binlane.binlogs.routing.compressing import compressed, knows_compressed
from binlane.binlogs.routing.query_events import without_tables_info
from binlane.binlogs.routing.routing_memory import Memory
from binlane.binlogs.routing.row_images import ImageCutter, Uncut
from binlane.binlogs.store.incidents import StoredIncident
from binlane.binlogs.store.open_file import AnyBytes
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.mysql_transaction import MysqlGtidEvent
from binlane.positions import Position
from binlane.statements.sql.servers import RowImage

_LOG = logging.getLogger(__name__)


class ImageCutters:
    """Cuts the row images of one binlog.

    Attributes:
        uncut: Events with rows that stayed full although ROW_IMAGE asks for less, by reason.
    """

    def __init__(self, binlog: str) -> None:
        self.uncut: Counter[Uncut] = Counter()
        self._binlog = binlog
        self._cutters: dict[RowImage, ImageCutter] = {}

    def cutter(self, image: RowImage) -> ImageCutter | None:
        """The cutter to these row images; None for full ones."""
        if image is RowImage.FULL:
            return None
        cutter = self._cutters.get(image)
        if cutter is None:
            cutter = self._cutters[image] = ImageCutter(image)
        return cutter

    def cut(self, events: tuple[Event, ...], image: RowImage, source: Format) -> tuple[Event, ...]:
        """Events of a group with these row images.

        Args:
            events: Events of the group, in file order.
            image: Row images that are wanted.
            source: Format in which the events were decoded.
        """
        cutter = self.cutter(image)
        if cutter is None:
            return events
        cut = cutter.events(events, source)
        self.note_uncut(cutter)
        return cut

    def cut_placed(
        self, data: AnyBytes, image: RowImage, position: int, format_: Format
    ) -> AnyBytes:
        """Groups that were made for a position of a file, with these row images."""
        cutter = self.cutter(image)
        if cutter is None:
            return data
        cut = cutter.placed(data, position, format_)
        self.note_uncut(cutter)
        return cut

    def note_uncut(self, cutter: ImageCutter) -> None:
        """Count what a cutter had to leave full since it was asked last; tell the first of a kind."""
        self.count_uncut(cutter.uncut, cutter.image)
        cutter.uncut.clear()

    def count_uncut(self, uncut: Counter[Uncut], image: RowImage) -> None:
        """Count events that stayed full; tell the first of a kind."""
        for reason in uncut.keys() - self.uncut.keys():
            _LOG.warning(
                "binlog %s: row images stay full instead of %s: %s (further ones are only counted)",
                *(self._binlog, image.value, reason.value),
                extra={"binlog": self._binlog},
            )
        self.uncut += uncut


@dataclass(slots=True)
class EndState:
    """The state behind the last group of a binlog; rolled back where the disk is full.

    Attributes:
        position: Position of the source: everything up to here was appended or is out of scope.
        prepared: The XA transactions that were prepared and not finished.
        memory: Routing's memory of the groups.
        incidents: INCIDENT events that nobody has dealt with.
    """

    position: Position
    prepared: frozenset[str]
    memory: Memory
    incidents: tuple[StoredIncident, ...]

    def copy(self) -> EndState:
        """The same state, which stays while this one goes on."""
        return EndState(self.position, self.prepared, self.memory, self.incidents)


@dataclass(slots=True)
class LogicalClock:
    """The logical timestamps of a binlog whose source is MySQL.

    Attributes:
        last: The last timestamp in the binlog.
        base: The number that is added to the timestamps of the source.
    """

    last: int
    base: int

    def note(self, first: Event) -> None:
        """Note the timestamp of a group, by its first event."""
        if isinstance(first.body, MysqlGtidEvent) and first.body.sequence_number:
            self.last = max(self.last, first.body.sequence_number + self.base)

    def begin_anew(self) -> None:
        """Let the timestamps that follow, which begin at 1 again, stand behind all others."""
        self.base = self.last


def in_form(
    events: Sequence[Event], source: Format, *, has_tables_info: bool
) -> Sequence[Event] | None:
    """Events as a file has them; None where they have no room in its form.

    Args:
        events: Events of a group, in file order.
        source: Format in which these events were decoded.
        has_tables_info: True if Query events of the file name the tables that they concern.
    """
    if not has_tables_info:
        return without_tables_info(events)
    from binlane.binlogs.routing.query_tables import with_tables_info  # noqa: PLC0415  # parses SQL

    return with_tables_info(events, source)


def compressed_groups(placed: AnyBytes, position: int, format_: Format) -> AnyBytes:
    """Groups that were made for a position, compressed if the format knows compressed events."""
    return compressed(placed, position, format_) if knows_compressed(format_) else placed
