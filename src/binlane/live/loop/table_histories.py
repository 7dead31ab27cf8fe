"""Tables that come into a scope, with their rows from the source.

A binlog at which tables come in gets nothing, while the others go on, until they were read
(`history_reading`) and placed (`arrival_placing`); then it catches up. They stand in the binlog by groups with GTIDs of
their own, around the source's statement. After a restart the binlog stands before that statement, and
begins again: with other GTIDs, since replicas may have some of the groups before.
"""

from __future__ import annotations

import logging
import math
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from typing import Final

from binlane.binlogs.routing.arrival_groups import ArrivedTable
from binlane.binlogs.routing.dispatcher import PlanPendingError
from binlane.binlogs.routing.routed_group import BinlogPart
from binlane.binlogs.routing.table_births import TableArrival
from binlane.binlogs.store.store import Store
from binlane.errors import DefinitionError
from binlane.live.capture.settings import SourceSettings
from binlane.live.loop.arrival_placing import ArrivalPlacing
from binlane.live.loop.feeds import OpenLog, SourceLog
from binlane.live.loop.history_reading import HistoryReading, ScopeWithLinks
from binlane.live.loop.outputs import Output
from binlane.live.loop.rows_before import HistorySource
from binlane.log.codec.event import Event
from binlane.positions import AnyGtid, Position, parse_position
from binlane.statements.scope.definition import Definition, is_internal

_SERVER_ID_BASE: Final = 0x62000000
_SERVER_ID_RANDOM: Final = 1 << 24

logger = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class _Coming:
    """The tables that come into one binlog.

    Attributes:
        output: The binlog that they come into.
        arrival: The statement that brings them in.
        first: GTID of the statement, and the event with it.
        definition: Definition of the binlog by which it brings them in.
        reached: Position of the binlog before the statement.
        reading: The reading of their rows.
        placing: The placing of their rows; None before it has begun.
    """

    output: Output
    arrival: TableArrival
    first: tuple[AnyGtid, Event]
    definition: Definition
    reached: Position
    reading: HistoryReading
    placing: ArrivalPlacing | None = None

    @property
    def is_read(self) -> bool:
        """True if all rows were read, and the binlog still stands where they are to be placed."""
        output, binlog = self.output, self.output.binlog
        if not self.reading.found or output.is_stopped or output.failure:
            return False
        return binlog.reached == self.reached and binlog.definition == self.definition


class TableHistories:
    """The tables that come into all binlogs; the loop's alone.

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
        self._coming: dict[str, _Coming] = {}
        self._number, self._due_s = 0, 0.0

    def is_pending(self, name: str) -> bool:
        """True if a binlog waits for rows that are being read or placed."""
        coming = self._coming.get(name)
        return coming is not None and self._is_under_way(coming)

    def _is_under_way(self, coming: _Coming) -> bool:
        return not coming.reading.is_over or self._is_to_place(coming)

    def _is_to_place(self, coming: _Coming) -> bool:
        """True if there are rows to place now."""
        if coming.placing is None:
            return coming.is_read and not self._refusal(coming)
        return coming.placing.goes_on

    def has_begun_in(self, output: Output) -> bool:
        """True if a binlog has rows that come in, and is to get the statement that they belong to."""
        coming = self._coming.get(output.name)
        placing = None if coming is None else coming.placing
        is_fed = not (output.is_stopped or output.failure)
        return is_fed and placing is not None and placing.is_whole

    @property
    def due_s(self) -> float:
        """The time when the next piece of rows is due, as `time.monotonic`; infinite if there is none."""
        is_there = any(map(self._is_to_place, self._coming.values()))
        return self._due_s if is_there else math.inf

    def place_piece(
        self, publish: Callable[[list[Output]], None], on_fault: Callable[[Output, Exception], None]
    ) -> None:
        """Place a piece of rows, if one is due; another binlog comes first the next time.

        Args:
            publish: Publishes what a binlog got.
            on_fault: Told of the binlog in which something goes wrong, and of that.
        """
        begun_s, waiting = time.monotonic(), self._coming.values()
        coming = next(filter(self._is_to_place, waiting), None)
        if coming is None or begun_s < self._due_s:
            return
        output = coming.output
        self._coming[output.name] = self._coming.pop(output.name)
        try:
            if coming.placing is None:
                self._begin_placing(coming)
            else:
                coming.placing.place_piece()
        except Exception as error:  # noqa: BLE001  # whatever it is, it is this binlog's
            on_fault(output, error)
        else:
            publish([output])
        # Sessions and other binlogs have as much time as this took.
        now_s = time.monotonic()
        self._due_s = now_s + (now_s - begun_s)

    def forget(self, name: str) -> None:
        """End the reading of a binlog that asks no more."""
        coming = self._coming.pop(name, None)
        if coming is not None:
            coming.reading.end()

    def end(self) -> None:
        """End all readings."""
        for name in tuple(self._coming):
            self.forget(name)

    def parts(self, output: Output, part: BinlogPart, gtid: AnyGtid | None) -> Iterator[BinlogPart]:
        """Give what stands in a binlog where tables come into its scope.

        Args:
            output: The binlog that it comes into.
            part: The INCIDENT that routing gave, with the tables.
            gtid: GTID of the statement that brings them in.

        Returns:
            The statement behind the rows, or an INCIDENT with the reason why they cannot be had.

        Raises:
            PlanPendingError: If the rows are being read or placed.
            StoreError: If the disk cannot be written.
        """
        arrival = part.arrival
        assert arrival is not None, "it was asked for"
        # A binlog that only keeps what changes while rows are read is to tell that it cannot.
        if gtid is None or is_internal(output.name):
            return iter((part,))
        coming = self._coming.get(output.name)
        if coming is None or coming.first[0] != gtid:
            self.forget(output.name)
            assert part.group is not None, "it holds the INCIDENT"
            self._begin(output, arrival, (gtid, part.group.events[0]))
            raise PlanPendingError
        if self._is_under_way(coming):
            raise PlanPendingError
        if reason := self._refusal(coming):
            logger.warning(
                "binlog %s: %s came in at %s, and its rows cannot be had: %s",
                *(output.name, arrival.what, gtid, reason),
                extra={"binlog": output.name, "gtid": str(gtid)},
            )
            return self._given(output, iter((part,)))
        placing = coming.placing
        if placing is None or not (placing.is_whole and placing.arrival == arrival):
            coming.arrival = arrival
            self._begin_placing(coming)
            raise PlanPendingError
        return self._given(output, placing.rest(part))

    def _refusal(self, coming: _Coming) -> str:
        """The reason why the rows cannot be had; empty if they can."""
        if not coming.reading.reason:
            try:
                self._store.seeds.check_domain(coming.output.taken.advance(coming.first[0]))
            except DefinitionError as error:
                return str(error)
        return coming.reading.reason

    def _given(self, output: Output, parts: Iterator[BinlogPart]) -> Iterator[BinlogPart]:
        yield from parts
        self.forget(output.name)
        output.coming = ""

    def _begin_placing(self, coming: _Coming) -> None:
        output, arrival, found = coming.output, coming.arrival, coming.reading.found
        logger.info(
            "binlog %s: %s comes in at %s with its rows, of %d bytes",
            *(output.name, arrival.what, coming.first[0], sum(one.size_bytes for one in found)),
            extra={"binlog": output.name, "gtid": str(coming.first[0])},
        )
        tables = [ArrivedTable(one.table, one.statements, one.rows()) for one in found]
        coming.placing = ArrivalPlacing(output, self._store.seeds, arrival, coming.first, tables)
        output.coming = f"{arrival.what} comes in, its rows are placed"

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
        self._coming[output.name] = _Coming(
            output=output,
            arrival=arrival,
            first=first,
            definition=output.binlog.definition,
            reached=reached,
            reading=reading,
        )
        output.coming = f"{arrival.what} comes in, its history is read"
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
