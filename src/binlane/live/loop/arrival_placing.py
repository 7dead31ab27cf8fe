"""The rows of tables that come into a scope, placed in a binlog piece by piece.

The loop places one piece at a time and does everything else between two. Readers see the pieces: these
fill tables under names of binlane's own, and the source's statement, which brings them in, comes
behind the last piece. A placing that was disturbed is left as it is, and begins anew with other GTIDs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from binlane.binlogs.routing.arrival_groups import ArrivalGroups, ArrivedTable, without_equal_names
from binlane.binlogs.routing.routed_group import BinlogPart, RoutedGroup
from binlane.binlogs.routing.table_births import TableArrival
from binlane.binlogs.store.fills import StoreSeeds
from binlane.errors import BinlaneError, StoreError
from binlane.live.loop.outputs import Output
from binlane.log.codec.event import Event
from binlane.log.codec.rows import RowsEvent
from binlane.positions import AnyGtid, Gtid


class ArrivalPlacing:
    """The groups around one statement that brings tables in; their stretch begins at once.

    Args:
        output: The binlog that they come into.
        seeds: The seedings of the store.
        arrival: The statement that brings the tables in.
        first: GTID of the statement, and the event with it.
        tables: The tables with their rows.

    Attributes:
        arrival: The statement that brings the tables in.
        is_done: True if all rows are placed, and the statement may follow.

    Raises:
        DefinitionError: If the source uses the domain of rows itself.
        StoreError: If the disk cannot be written.
    """

    def __init__(
        self,
        output: Output,
        seeds: StoreSeeds,
        arrival: TableArrival,
        first: tuple[AnyGtid, Event],
        tables: Sequence[ArrivedTable],
    ) -> None:
        gtid, event = first
        self.arrival = arrival
        self.is_done = False
        self._output, self._seeds = output, seeds
        # Replicas that apply domains side by side come to an end with all before they go on.
        self._is_parted = isinstance(gtid, Gtid)
        self._is_lost = False
        if self._is_parted:
            output.begin_anew()
        self._binlog = binlog = output.binlog
        log_id = binlog.definition.log_id
        seeds.end_arrivals(log_id, binlog.reached)
        seeding = seeds.begin_arrival(log_id, gtid, output.taken, binlog.end.file)
        binlog.seedings = seeds.of(log_id)
        numbers = count(seeding.first)
        self._groups = ArrivalGroups(
            without_equal_names(arrival, tables),
            event,
            seeding.source.server_id,
            lambda: seeding.source.gtid(next(numbers)),
        )
        self._left = self._groups.before(tables)
        self._reached = binlog.reached

    @property
    def is_whole(self) -> bool:
        """True if the binlog stands behind the last piece that was placed, and has all pieces before."""
        binlog = self._output.binlog
        return not self._is_lost and binlog is self._binlog and binlog.reached == self._reached

    @property
    def goes_on(self) -> bool:
        """True if there is another piece to place."""
        return not (self.is_done or self._output.is_stopped) and self.is_whole

    def place_piece(self) -> None:
        """Place the next piece, to be published by the next `sync`.

        Raises:
            StoreError: If the disk cannot be written; the placing is lost.
            RuntimeError: If the rows cannot be read again; likewise.
        """
        self._is_lost = True
        try:
            group = next(self._left, None)
            if group is not None:
                self._output.take(part_of(group))
        except StoreError:
            raise
        except (BinlaneError, OSError) as error:
            raise RuntimeError(f"rows that come in cannot be read again: {error}") from error
        self.is_done = group is None
        self._reached, self._is_lost = self._binlog.reached, False

    def rest(self, part: BinlogPart) -> Iterator[BinlogPart]:
        """Give the source's statement, and what is behind it; the stretch ends with that.

        Args:
            part: What routing gives for the statement, without the tables.

        Raises:
            StoreError: If the disk cannot be written.
        """
        binlog, next_group = self._binlog, part.next_group
        if self._is_parted:
            self._output.begin_anew()
        # What is remembered of the statement must not be lost, and holds with its group alone.
        yield part_of(self._groups.statement())._replace(
            memory=part.memory, omissions=part.omissions, next_group=next_group
        )
        for own in self._groups.behind():
            if self._is_parted:
                self._output.begin_anew()
            yield part_of(own)._replace(next_group=next_group)
        binlog.sync(force=True)
        log_id = binlog.definition.log_id
        binlog.seedings = self._seeds.end_arrivals(log_id, binlog.reached)


def part_of(group: RoutedGroup) -> BinlogPart:
    """A group as a binlog takes it, with its counts."""
    return BinlogPart(
        group=group,
        groups=1,
        events=len(group.events),
        rows_events=sum(isinstance(event.body, RowsEvent) for event in group.events),
        gtid=group.gtid,
    )
