"""Checking a file event by event: every one is decoded, none is held.

This is the reference for the path by kernels, which hands over to it inside of a file where it
meets what it is not made for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from binlane.binlogs.store.verify.checks import Checks, GroupPlace
from binlane.binlogs.store.verify.faults import CheckCounts, Fault
from binlane.errors import CodecError, TruncatedError
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.rows import RowsEvent, uncompressed
from binlane.log.grouping.event_group import GroupTracker
from binlane.log.grouping.inner import expanded, has_inner
from binlane.log.grouping.table_maps import TableMaps
from binlane.positions import AnyGtid


class ReferencePath:
    """Checks the events of one file.

    Args:
        checks: State of the log's checks.
        tally: Counter of the files and events looked at.
        path: Path of the file, for messages.

    Attributes:
        end: Position behind the last whole event.
        open_group: Position of the group that has not ended yet; None if all have.
    """

    def __init__(self, checks: Checks, tally: CheckCounts, path: str) -> None:
        self._checks = checks
        self._tally = tally
        self._path = path
        self._tracker = GroupTracker()
        self._maps = TableMaps()
        self._format: Format | None = None
        self._gtid: AnyGtid | None = None
        self.end = 0
        self.open_group: int | None = None

    def resume(self, format_: Format, end: int) -> None:
        """Go on behind events that somebody else has checked."""
        self._format, self.end = format_, end

    def resume_group(
        self, start: int, gtid: AnyGtid | None, *, is_transaction: bool, table_maps: Iterable[Event]
    ) -> None:
        """Go on inside of an open group.

        Args:
            start: Position of the group's first byte.
            gtid: The group's GTID, None if it has none.
            is_transaction: True if an event has told that the group is a transaction.
            table_maps: Table maps of the statement that is being read.
        """
        self.open_group, self._gtid = start, gtid
        self._tracker.resume(gtid, is_transaction=is_transaction)
        for event in table_maps:
            self._maps.feed(event, file=self._path)

    def faults(self, events: Iterable[Event]) -> Iterator[Fault]:
        """Check events in file order.

        Raises:
            CodecError: At damage, behind all faults before it.
        """
        for event in events:
            self._check_record(event)
            self.end = event.next_position
            self._tally.events += 1
            if isinstance(event.body, FormatDescriptionEvent):
                self._format = event.body.format
            yield from self._checks.control(event)
            yield from self._checks.statement(event)
            place = self._tracker.feed(event)
            if place.begins:
                self._maps = TableMaps()  # no statement goes beyond its group
            self._check_rows(event)
            if place.begins and self.open_group is not None:
                yield from self._checks.unfinished(self.open_group)
                yield from self._finish_group(event.position)
            if place.is_control:
                continue
            if place.begins:
                self.open_group = event.position
            self._gtid = place.gtid
            if place.ends:
                yield from self._finish_group(event.next_position)

    def _finish_group(self, stop: int) -> Iterator[Fault]:
        assert self.open_group is not None, "only called of an open group"
        place = GroupPlace(self._gtid, self.open_group, stop)
        self._tally.groups += 1
        self.open_group = self._gtid = None
        yield from self._checks.group(place)

    def _check_record(self, event: Event) -> None:
        """Check that compressed row images are whole; nothing else here looks into them.

        Raises:
            CodecError: If they are not.
        """
        if isinstance(event.body, RowsEvent) and event.body.is_compressed:
            try:
                uncompressed(event.body)
            except CodecError as error:
                raise error.at(self._path, event.position) from None

    def _check_rows(self, event: Event) -> None:
        """Check that rows have their tables, inside of other events too.

        Raises:
            CodecError: If one has not, or what is inside of an event is broken.
        """
        if not has_inner(event):
            self._maps.feed(event, file=self._path)
            return
        assert self._format is not None, "a walker gives nothing else before a format"
        try:
            for inner in expanded(event, self._format, file=self._path):
                self._check_record(inner)
                self._maps.feed(inner, file=self._path)
        except TruncatedError as error:
            # The payload ends, not the file, as it may where a server still writes it.
            raise CodecError(error.message, hint=error.hint).at(
                self._path, event.position
            ) from None
