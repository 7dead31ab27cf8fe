"""Checks of the events and groups of one log: names, completeness, the order of GTIDs.

Checks last from the first file of a log to the last. Each reader of a file, by whatever path, gives
the events and groups in the order of the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from binlane.binlogs.routing.query_events import statement_of
from binlane.binlogs.store.chunks import base_name
from binlane.binlogs.store.verify.faults import Fault
from binlane.binlogs.store.verify.gtid_columns import GtidColumns
from binlane.errors import CodecError
from binlane.log.codec.control import RotateEvent
from binlane.log.codec.event import Event
from binlane.log.codec.mysql_transaction import PreviousGtidsEvent
from binlane.log.codec.transaction import GtidListEvent
from binlane.positions import AnyGtid, Gtid, GtidPosition, Position, nothing_done

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class GroupPlace:
    """The place of an event group in its file.

    Attributes:
        gtid: The group's GTID; None if it has none.
        start: Position of its first byte.
        stop: Position behind its last one.
    """

    gtid: AnyGtid | None
    start: int
    stop: int


class Checks:
    """The state of one log's checks so far.

    Args:
        watermark: Position that a catalog says is done at the end of the part that is on disk for
            sure; None if no catalog knows the log.
    """

    def __init__(self, watermark: Position | None = None) -> None:
        self._watermark = watermark
        self._marked_up_to = 0
        self._position: Position | None = None
        self._following: tuple[str, str, int] | None = None
        self._path = ""

    @property
    def position(self) -> Position | None:
        """Position that is done so far; None if no event has told the flavor of the log."""
        return self._position

    def begin_file(self, path: str, *, marked_up_to: int) -> Iterator[Fault]:
        """Go on in the next file.

        Args:
            path: Path of the file, for messages.
            marked_up_to: Position up to which the watermark covers it.
        """
        self._path, self._marked_up_to = path, marked_up_to
        if self._following is not None:
            named, before, position = self._following
            if named != base_name(path):
                yield Fault(before, position, f"ROTATE names {named}; {base_name(path)} follows")
        self._following = None

    def pass_over(self) -> None:
        """Leave out the next file: what follows need not be what the one before names."""
        self._following = None

    def control(self, event: Event) -> Iterator[Fault]:
        """Take an event; those that do not belong to the log itself tell nothing."""
        body = event.body
        if isinstance(body, RotateEvent):
            self._following = (body.file, self._path, event.position)
        if not isinstance(body, GtidListEvent | PreviousGtidsEvent):
            return
        listed: Position = body.position
        before = self._position
        if before is not None and before.flavor != listed.flavor:
            what = f"{event.header.type_name} stands in a log whose GTIDs are of another kind"
            yield Fault(self._path, event.position, what)
            return
        if before is not None and not listed.includes(before):
            yield Fault(
                self._path,
                event.position,
                f"{event.header.type_name} says {listed or 'nothing'} was done before this file; "
                f"the files before it go up to {before}",
            )
        self._position = listed if before is None else before.union(listed)

    def statement(self, event: Event) -> Iterator[Fault]:
        """Take an event; one that is no statement with tables info tells nothing."""
        body = statement_of(event.body)
        if body is None or body.tables_info is None:
            return
        from binlane.statements.sql.tables_info import contradiction  # noqa: PLC0415  # parses SQL

        try:
            what = contradiction(body)
        except CodecError:
            return  # of its context, which is no matter of its tables
        if what is not None:
            yield Fault(self._path, event.position, f"the tables info contradicts the text: {what}")

    def unfinished(self, start: int) -> Iterator[Fault]:
        """Take the beginning of a group that another event cuts off."""
        yield Fault(self._path, start, "an event group begins here that does not end")

    def group(self, place: GroupPlace) -> Iterator[Fault]:
        """Take an event group."""
        gtid = place.gtid
        if gtid is None:
            return
        flavor = "mariadb" if isinstance(gtid, Gtid) else "mysql"
        position = nothing_done(flavor) if self._position is None else self._position
        if position.flavor != flavor:
            what = f"GTID {gtid} stands in a log whose GTIDs are of another kind"
            yield Fault(self._path, place.start, what)
            return
        if not position.covers(gtid):
            self._position = position.advance(gtid)
        elif isinstance(gtid, Gtid) and isinstance(position, GtidPosition):
            last = position.last(gtid.domain_id)
            what = f"GTID {gtid} is not after {last}, done before it"
            yield Fault(self._path, place.start, what)
        else:
            yield Fault(self._path, place.start, f"GTID {gtid} was done before it")
        mark = self._watermark
        if mark is not None and place.stop <= self._marked_up_to and not mark.covers(gtid):
            yield Fault(
                self._path,
                place.start,
                f"GTID {gtid} is here, but the watermark {mark} is before it",
            )

    def all_right(self, gtids: GtidColumns, stops: Numbers) -> bool:
        """Take many groups at once, if nothing is wrong with them.

        Args:
            gtids: GTIDs of the groups, in the order of the log.
            stops: Positions behind their last bytes.

        Returns:
            True if they were taken. If not, some of them are at fault, and nothing is known of any
            of them.
        """
        position = self._position
        if position is not None and position.flavor != gtids.flavor:
            return False
        after = gtids.advance(position or nothing_done(gtids.flavor))
        if after is None:
            return False
        marked = int(np.searchsorted(stops, self._marked_up_to, "right"))
        if self._watermark is not None and marked:
            done = gtids.first(marked).position()
            if done.flavor != self._watermark.flavor or not self._watermark.includes(done):
                return False
        self._position = after
        return True
