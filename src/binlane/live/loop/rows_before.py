"""A table as it was at a place of the source's log, of the rows that it has now and the log behind the place.

Its rows are read from the source without locks, range by range, while clients write on; then each change
that the log has behind the place is undone. That is exact for any table that is still there, and that only
rows have changed since. This module gives the groups that would make and fill the table; it does not say
where they stand in a binlog.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Final

from binlane.binlogs.routing.table_history import HistoryError
from binlane.binlogs.seeds.reconciliation import Reconciled, SeedTroubleError, reconcile
from binlane.binlogs.seeds.seed_groups import seed_group, stated
from binlane.binlogs.seeds.spool import SeedSpool
from binlane.binlogs.seeds.spool_reading import ReadingLimits, read_tables
from binlane.client.rows.settled_places import set_up
from binlane.client.session import ServerSession
from binlane.errors import StoreError
from binlane.live.capture.settings import SourceSettings
from binlane.live.loop.feeds import SourceLog
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import EventGroup, whole_group
from binlane.log.grouping.raw import Item, LargeGroup, RawRun
from binlane.names import TableName
from binlane.positions import AnyGtid, Position
from binlane.statements.sql.logged_statements import (
    followed_statement,
    is_about_rows_only,
    is_about_transactions,
    is_beside_tables,
)
from binlane.statements.sql.reading import read
from binlane.statements.sql.servers import Dialect

_LOOK_S: Final = 0.2
_FREE_BYTES_MIN: Final = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySource:
    """A source as a reading asks it.

    Attributes:
        settings: The source, for the rows that the table has.
        open_history: Opens the source's log where the table was made.
        open_behind: Opens the source's log before the statement that brings the table in.
    """

    settings: SourceSettings
    open_history: Callable[[], SourceLog]
    open_behind: Callable[[], SourceLog]


class RowsBefore:
    """The rows of one table as they were behind one group of the source's log.

    Args:
        table: The table, under the name that it has now.
        first: GTID of the group behind which its rows are wanted, and the event with it.
        source: The source, whose account may SELECT the table.
        folder: Folder for what is read; the caller removes it.
        is_ending: Asked all the time; if it says so, `HistoryError` is raised.
        size_max: The most bytes of rows.
    """

    def __init__(  # what is read, from where, and where it goes
        self,
        table: TableName,
        first: tuple[AnyGtid, Event],
        source: HistorySource,
        folder: Path,
        is_ending: Callable[[], bool],
        *,
        size_max: int,
    ) -> None:
        self._table = table
        self._until, self._first = first
        self._source = source
        self._folder = folder
        self._is_ending = is_ending
        self._size_max = size_max
        self._format: Format | None = None

    def groups(self) -> Iterator[tuple[EventGroup, Format]]:
        """The groups that make and fill the table, with the format of their events.

        Raises:
            HistoryError: If the rows cannot be had: the table is gone or was changed by more than
                rows, it cannot be read, or the log behind the place is gone.
            BinlaneError: If the source goes away.
        """
        spool = self._read()
        high = spool.high
        assert high is not None, "all is read"
        log = self._source.open_behind()
        try:
            log.connect()
            parents = self._parents(spool.definitions[self._table])
            reconciled = self._undone(spool, self._behind(log, high, parents))
        finally:
            log.close()
        format_ = self._format
        assert format_ is not None, "the log has begun"
        create = spool.definitions[self._table]
        body = stated(create, self._table.database, format_.flavor)
        header, gtid = self._first.header, self._until
        made = Event(replace(header, type_code=EventType.QUERY, flags=0), body)
        yield EventGroup(gtid=gtid, events=(self._first, made), file=""), format_
        try:
            for transaction in reconciled.transactions():
                events = seed_group(
                    transaction,
                    gtid,
                    timestamp=header.timestamp,
                    server_id=header.server_id,
                    format_=format_,
                ).events
                yield EventGroup(gtid=gtid, events=events, file=""), format_
        except SeedTroubleError as error:
            raise HistoryError(f"its rows cannot be told any more: {error.message}") from error
        finally:
            reconciled.close()

    def _undone(self, spool: SeedSpool, behind: Iterator[EventGroup]) -> Reconciled:
        begun = next(behind, None)
        assert self._format is not None, "the log has begun"
        changes = chain(() if begun is None else (begun,), behind)
        try:
            reconciled = reconcile(spool, changes, format_=self._format, undoes=True)
        except SeedTroubleError as error:
            raise HistoryError(f"its rows cannot be told any more: {error.message}") from error
        assert reconciled is not None, "nobody stops it"
        return reconciled

    def _read(self) -> SeedSpool:
        spool = SeedSpool.create(self._folder / "rows", [self._table])
        limits = ReadingLimits(size_max_bytes=self._size_max, free_least_bytes=_FREE_BYTES_MIN)
        settings = self._source.settings
        with ServerSession(settings.url, settings.secret()) as session:
            set_up(session)
            try:
                read_tables(spool, session, limits=limits, is_stopped=self._is_ending)
            except StoreError as error:
                raise HistoryError(f"its rows have no room: {error}") from error
        if self._is_ending():
            raise HistoryError("binlane ends")
        for refusal in spool.refusals.values():
            raise HistoryError(f"its rows cannot be read: {refusal}")
        return spool

    def _parents(self, create: str) -> set[TableName]:
        """The other tables that a table's foreign keys refer to, in small letters."""
        effects = read(create, database=self._table.database, dialect=Dialect()).effects
        return {_folded(one) for one in effects.reads if one != self._table}

    def _behind(
        self, log: SourceLog, high: Position, parents: set[TableName]
    ) -> Iterator[EventGroup]:
        """The groups of the log behind the place, up to all that the reading can have seen.

        Raises:
            HistoryError: If one changes the definition of a parent, from the group of the place on:
                with it the table's own may have changed.
            BinlaneError: If the log cannot be read.
        """
        has_passed = False
        while not (self._format is not None and _has_given(log, high)):
            if self._is_ending():
                raise HistoryError("binlane ends")
            if not select.select([log], [], [], _LOOK_S)[0]:
                if log.is_silent:
                    raise TimeoutError("the source was silent")
                continue
            for item in log.receive():
                for group in self._decoded(item):
                    is_last = group.gtid == self._until
                    if parents and (has_passed or is_last) and _defines(group, parents):
                        raise HistoryError(
                            "a table that its foreign keys refer to was altered or renamed since"
                        )
                    if has_passed:
                        yield group
                    has_passed = has_passed or is_last

    def _decoded(self, item: Item) -> Iterator[EventGroup]:
        if isinstance(item, RawRun):
            yield from map(item.group, range(item.count))
        elif isinstance(item, LargeGroup):
            events = tuple(whole_group(item.events()))
            yield EventGroup(gtid=item.gtid, events=events, file=item.file)
        elif isinstance(item.events[0].body, FormatDescriptionEvent):
            self._format = item.events[0].body.format
        else:
            yield item


def _folded(name: TableName) -> TableName:
    return TableName(name.database.lower(), name.table.lower())


def _defines(group: EventGroup, tables: set[TableName]) -> bool:
    """True if a group may change the definitions of tables."""
    for event in group.events:
        body = event.body
        if not isinstance(body, QueryEvent) or is_about_transactions(body.query):
            continue
        if is_about_rows_only(body.query) or is_beside_tables(body.query):
            continue
        effects = followed_statement(body).effects()
        if effects.stopped_at is not None or effects.dropped_databases:
            return True
        if not tables.isdisjoint(map(_folded, (*effects.changed_tables, *effects.drops))):
            return True
    return False


def _has_given(log: SourceLog, high: Position) -> bool:
    return log.position is not None and log.position.includes(high)
