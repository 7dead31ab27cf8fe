"""Tables that come into a scope, with their rows from the source.

A binlog at which tables come in waits, while the others go on, until they were read
(`history_reading`). They stand in the binlog by groups with GTIDs of their own, around the source's
statement. After a restart the binlog stands before that statement, and begins again: with other
GTIDs, since replicas may have some of the groups before.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator
from functools import partial, reduce
from itertools import count
from typing import Final

from binlane.binlogs.routing.arrival_groups import ArrivalGroups, ArrivedTable, without_equal_names
from binlane.binlogs.routing.dispatcher import PlanPendingError
from binlane.binlogs.routing.routed_group import BinlogPart, RoutedGroup
from binlane.binlogs.routing.table_births import TableArrival
from binlane.binlogs.store.store import Store
from binlane.errors import BinlaneError, DefinitionError, StoreError
from binlane.live.capture.settings import SourceSettings
from binlane.live.loop.feeds import OpenLog, SourceLog
from binlane.live.loop.history_reading import FoundHistory, HistoryReading, ScopeWithLinks
from binlane.live.loop.outputs import Output
from binlane.live.loop.rows_before import HistorySource
from binlane.log.codec.event import Event
from binlane.log.codec.rows import RowsEvent
from binlane.positions import AnyGtid, Gtid, Position, parse_position
from binlane.statements.scope.definition import is_internal

_SERVER_ID_BASE: Final = 0x62000000
_SERVER_ID_RANDOM: Final = 1 << 24

logger = logging.getLogger(__name__)


class TableHistories:
    """The readings of all binlogs; the loop's alone.

    Args:
        settings: The settings of the source.
        store: The store of the binlogs.
        open_log: Makes what gives the source's log.
        wake: Wakes the loop, from any thread.
    """

    def __init__(
        self,
        settings: SourceSettings,
        store: Store,
        open_log: OpenLog,
        wake: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._store = store
        self._open_log = open_log
        self._wake = wake
        self._readings: dict[str, tuple[AnyGtid, HistoryReading]] = {}
        self._number = 0

    def is_reading(self, name: str) -> bool:
        """True if a binlog waits for a history that is being read."""
        reading = self._readings.get(name)
        return reading is not None and not reading[1].is_over

    def forget(self, name: str) -> None:
        """End the reading of a binlog that asks no more."""
        reading = self._readings.pop(name, None)
        if reading is not None:
            reading[1].end()

    def end(self) -> None:
        """End all readings."""
        for name in tuple(self._readings):
            self.forget(name)

    def parts(self, output: Output, part: BinlogPart, gtid: AnyGtid | None) -> Iterator[BinlogPart]:
        """Give what stands in a binlog where tables come into its scope.

        Args:
            output: The binlog that it comes into.
            part: The INCIDENT that routing gave, with the tables.
            gtid: GTID of the statement that brings them in.

        Returns:
            The tables with their rows, or an INCIDENT with the reason why they cannot be had.

        Raises:
            PlanPendingError: If the history is being read.
        """
        arrival = part.arrival
        assert arrival is not None, "it was asked for"
        # A binlog that only keeps what changes while rows are read is to tell that it cannot.
        if gtid is None or is_internal(output.name):
            return iter((part,))
        waiting = self._readings.get(output.name)
        if waiting is None or waiting[0] != gtid:
            self.forget(output.name)
            assert part.group is not None, "it holds the INCIDENT"
            self._begin(output, arrival, (gtid, part.group.events[0]))
            raise PlanPendingError
        reading = waiting[1]
        if not reading.is_over:
            raise PlanPendingError
        reason = reading.reason
        if not reason:
            try:
                self._store.seeds.check_domain(output.taken.advance(gtid))
            except DefinitionError as error:
                reason = str(error)
        if reason:
            logger.warning(
                "binlog %s: %s came in at %s, and its rows cannot be had: %s",
                *(output.name, arrival.what, gtid, reason),
                extra={"binlog": output.name, "gtid": str(gtid)},
            )
            return self._given(output, iter((part,)))
        logger.info(
            "binlog %s: %s comes in at %s with its rows, of %d bytes",
            *(output.name, arrival.what, gtid, sum(one.size_bytes for one in reading.found)),
            extra={"binlog": output.name, "gtid": str(gtid)},
        )
        return self._given(output, self._arrived(output, part, arrival, reading.found))

    def _given(self, output: Output, parts: Iterator[BinlogPart]) -> Iterator[BinlogPart]:
        try:
            yield from parts
        except StoreError:
            raise
        except (BinlaneError, OSError) as error:
            # What was appended of it must go: the binlog is read again from its files.
            raise RuntimeError(f"the history of a table cannot be given: {error}") from error
        self.forget(output.name)
        output.coming = ""

    def _arrived(
        self,
        output: Output,
        part: BinlogPart,
        arrival: TableArrival,
        found: tuple[FoundHistory, ...],
    ) -> Iterator[BinlogPart]:
        """The groups that make and fill the tables, the source's statement, and what is behind it."""
        binlog, group, seeds = output.binlog, part.group, self._store.seeds
        gtid = None if group is None else group.gtid
        assert group is not None, "it holds the INCIDENT"
        assert gtid is not None, "it was asked for"
        log_id, first = binlog.definition.log_id, group.events[0]
        # Replicas that apply domains side by side come to an end with all before they go on.
        is_parted = isinstance(gtid, Gtid)
        if is_parted:
            output.begin_anew()
        seeds.end_arrivals(log_id, binlog.reached)
        seeding = seeds.begin_arrival(log_id, gtid, output.taken, binlog.end.file)
        binlog.seedings = seeds.of(log_id)
        numbers = count(seeding.first)
        tables = [ArrivedTable(one.table, one.statements, one.rows()) for one in found]
        groups = ArrivalGroups(
            without_equal_names(arrival, tables),
            first,
            seeding.source.server_id,
            lambda: seeding.source.gtid(next(numbers)),
        )
        for own in groups.before(tables):
            yield _part_of(own)
        if is_parted:
            output.begin_anew()
        # What is remembered of the statement must not be lost, and holds with its group alone.
        yield _part_of(groups.statement())._replace(
            memory=part.memory, omissions=part.omissions, next_group=part.next_group
        )
        for own in groups.behind():
            if is_parted:
                output.begin_anew()
            yield _part_of(own)._replace(next_group=part.next_group)
        binlog.sync(force=True)
        binlog.seedings = seeds.end_arrivals(log_id, binlog.reached)

    def _begin(self, output: Output, arrival: TableArrival, first: tuple[AnyGtid, Event]) -> None:
        # With a memory of before, a process that is killed from here on would know no birth.
        output.binlog.sync(force=True)
        reached = output.binlog.reached
        births = [one.birth.since for one in arrival.tables if one.birth.since]
        places = (parse_position(one, reached.flavor) for one in births)
        start = reduce(_both, places, reached)
        self._number += 1
        folder = self._store.spill_folder / f"history-{self._number}"

        def open_log(start: Position) -> SourceLog:
            return self._open_log(
                self._settings,
                output.of_source(start),
                spill=folder / "spill",
                server_id=_SERVER_ID_BASE + secrets.randbelow(_SERVER_ID_RANDOM),
                identity=None,
            )

        binlog = ScopeWithLinks(output.binlog.definition.scope, output.binlog.memory.links)
        source = HistorySource(
            settings=self._settings,
            open_history=partial(open_log, start),
            open_behind=partial(open_log, reached),
        )
        reading = HistoryReading(arrival, first, binlog, source, folder, self._wake)
        self._readings[output.name] = first[0], reading
        output.coming = arrival.what
        logger.info(
            "binlog %s: %s comes in at %s: its history is read from the source's log, from %s on",
            *(
                output.name,
                arrival.what,
                first[0],
                start if births else "a place that is not known",
            ),
            extra={"binlog": output.name, "gtid": str(first[0])},
        )
        reading.start()


def _both(one: Position, other: Position) -> Position:
    return one.intersection(other)


def _part_of(group: RoutedGroup) -> BinlogPart:
    return BinlogPart(
        group=group,
        groups=1,
        events=len(group.events),
        rows_events=sum(isinstance(event.body, RowsEvent) for event in group.events),
        gtid=group.gtid,
    )
