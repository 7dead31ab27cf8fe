"""The two caches of a binlog in a session, and the times when their content becomes part of the log.

Both servers' rules of commit, rollback and savepoints (seed 004's R-rules as they are implemented) tell these
times. Other modules decide the effects of a statement on tables, and its success.

Source: MariaDB 10.11 sql/log.cc, MySQL 9.7 sql/binlog.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from binlane.log.codec.query import AnnotateRowsEvent, QueryEvent, RowsQueryEvent
from binlane.log.codec.transaction import GtidEvent
from binlane.names import TableName
from binlane.statements.policy.server import Server
from binlane.statements.session import log_events
from binlane.statements.session.log_events import Body, ChangedRows, MappedTable, ended
from binlane.statements.session.transaction import EngineChanges, Runs
from binlane.statements.sql.servers import LoggingFormat, LoggingMode

_WITHOUT_CONTENT: Final = (MappedTable, AnnotateRowsEvent)

_OF_SAVEPOINTS: Final = (b"SAVEPOINT ", b"ROLLBACK TO ")


@dataclass(slots=True)
class Cache:
    """Events that are not in the log yet.

    Attributes:
        counts_maps: MySQL logs a table map without rows; MariaDB drops it.
        events: Events in order, without those that open and close a group.
        before_statement: Number of events in the transaction cache when the current statement first used it;
            None outside.
        open_rows: Position of the last rows event of the current statement, which rows of the same kind and
            table join. None without.
        closed_rows: Position of a rows event that no rows join any more, but that MySQL has not written; it is
            written with the next event. None without.
        marks: Marks of earlier statements, in order: the end of their events, and their number. Kept only
            where a caller counts statements; see `BinlogCaches.mark`.
    """

    counts_maps: bool = True
    events: list[Body] = field(default_factory=list)
    before_statement: int | None = None
    open_rows: int | None = None
    marks: list[tuple[int, int]] = field(default_factory=list)
    closed_rows: int | None = None

    @property
    def is_empty(self) -> bool:
        """True if nothing waits that is to be logged."""
        if self.counts_maps or not self.events:
            return not self.events
        for event in self.events:  # noqa: SIM110 - a generator costs as much as all this
            if not isinstance(event, _WITHOUT_CONTENT):
                return False
        return True

    def add_rows(self, rows: ChangedRows) -> None:
        """Add rows; those of the same table and kind as the last ones are in one event."""
        if self.open_rows is not None:
            last = self.events[self.open_rows]
            if isinstance(last, ChangedRows) and last[:2] == rows[:2]:
                return
        self.open_rows = len(self.events)
        self.events.append(rows)

    def end_rows(self) -> None:
        """Mark the last rows event as the end of its statement."""
        if self.open_rows is not None:
            last = self.events[self.open_rows]
            assert isinstance(last, ChangedRows)
            self.events[self.open_rows] = ended(last)
            self.open_rows = None

    def drop_open_rows(self) -> None:
        """Drop a last rows event that is not written yet, as MySQL does when a statement fails."""
        last = self.closed_rows if self.open_rows is None else self.open_rows
        if last is not None and last == len(self.events) - 1:
            self.truncate(last)

    def truncate(self, size: int) -> None:
        """Drop the events that were added after so many events."""
        del self.events[size:]
        self.open_rows = self.closed_rows = None
        while self.marks and self.marks[-1][0] > size:
            _, number = self.marks.pop()
            if size > (self.marks[-1][0] if self.marks else 0):
                self.marks.append((size, number))

    def mark(self, number: int) -> None:
        """Note of which statement the events are that nobody noted before."""
        end = len(self.events)
        if end > (self.marks[-1][0] if self.marks else 0):
            self.marks.append((end, number))

    def copy(self) -> Cache:
        """Copy the present state."""
        return Cache(
            self.counts_maps,
            self.events.copy(),
            self.before_statement,
            self.open_rows,
            self.marks.copy(),
            self.closed_rows,
        )

    def clear(self) -> None:
        """Drop everything."""
        self.truncate(0)
        self.before_statement = None


class WriteContext(NamedTuple):
    """The circumstances in which a statement writes to a binlog.

    Attributes:
        mode: Logging mode of the binlog in this session.
        logging_format: Logging format of the statement.
        is_in_transaction: A transaction of several statements is open.
        is_direct: The session's value of binlog_direct_non_transactional_updates.
        engine_changes: Changes of the statement in engines.
        transaction: Changes of the transaction before the statement.
    """

    mode: LoggingMode
    logging_format: LoggingFormat
    is_in_transaction: bool
    is_direct: bool
    engine_changes: EngineChanges
    transaction: EngineChanges

    @property
    def changed_nontransactional(self) -> bool:
        """True if statement or transaction changed rows that cannot be rolled back."""
        return (
            self.transaction.changed_nontransactional
            or self.engine_changes.changed_nontransactional
        )


@dataclass(slots=True)
class BinlogCaches:
    """A binlog as one session writes to it.

    Attributes:
        server: Server whose rules are followed.
        written: Events that went to the log since they were last taken.
        statement_cache: Events that go to the log at the end of the statement.
        transaction_cache: Events that go to the log at the end of the transaction.
        is_registered: The binlog takes part in the transaction: it is told of its end and savepoints.
        has_unsafe_content: MySQL: the transaction cache holds changes that a rollback would not undo.
        keeps_transaction: MariaDB: a temporary table was created or dropped in the transaction, so that the
            transaction is logged even if it is rolled back.
        positions: Size of the transaction cache at each savepoint that the binlog was told of.
        held_temporary: Temporary tables whose creation the binlog holds.
        status_vars: Status variables of the session, for the event that ends a group.
        is_compressing: MySQL: value of binlog_transaction_compression, for the server's own log.
        written_marks: Marks of `written`, like those of a cache; None stands for the statement that runs.
    """

    name: str
    server: Server
    written: list[Body] = field(default_factory=list)
    statement_cache: Cache = field(default_factory=Cache)
    transaction_cache: Cache = field(default_factory=Cache)
    is_registered: bool = False
    has_unsafe_content: bool = False
    keeps_transaction: bool = False
    positions: dict[str, int] = field(default_factory=dict)
    held_temporary: set[TableName] = field(default_factory=set)
    status_vars: bytes = b""
    is_compressing: bool = False
    written_marks: list[tuple[int, int | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Tell the caches whose rules hold."""
        self.statement_cache.counts_maps = not self.server.is_mariadb
        self.transaction_cache.counts_maps = not self.server.is_mariadb

    def copy(self) -> BinlogCaches:
        """Copy the present state."""
        return BinlogCaches(
            self.name,
            self.server,
            self.written.copy(),
            self.statement_cache.copy(),
            self.transaction_cache.copy(),
            self.is_registered,
            self.has_unsafe_content,
            self.keeps_transaction,
            self.positions.copy(),
            self.held_temporary.copy(),
            self.status_vars,
            self.is_compressing,
            self.written_marks.copy(),
        )

    def mark(self, number: int) -> None:
        """Note the end of a statement: events added since the statement before are its own."""
        self.transaction_cache.mark(number)
        end, marks = len(self.written), self.written_marks
        if not end:
            return
        for place, (until, known) in enumerate(marks):
            if known is None:
                marks[place] = (until, number)
        if end > (marks[-1][0] if marks else 0):
            marks.append((end, number))

    def _take_marks_along(self, at: int) -> None:
        """Add the marks of waiting events, which are now written from a place in `written` on."""
        waiting = self.transaction_cache.marks
        if waiting:
            self.written_marks.append((at, None))
            self.written_marks.extend((at + end, number) for end, number in waiting)

    def abandon_statement(self, *, is_in_transaction: bool) -> None:
        """Forget the events of a statement that was not carried out to its end."""
        self.written.clear()
        self.written_marks.clear()
        self.statement_cache.clear()
        if not is_in_transaction:
            self._reset_transaction()
        elif self.transaction_cache.before_statement is not None:
            self.transaction_cache.truncate(self.transaction_cache.before_statement)
        self.transaction_cache.before_statement = None

    def take_written(self) -> tuple[tuple[Body, ...], Runs]:
        """The events written since the last call, and which of them are of other statements."""
        events = tuple(self.written)
        self.written.clear()
        if not self.written_marks:
            return events, ()
        runs, begin = [], 0
        for end, number in self.written_marks:
            if number is not None:
                runs.append((begin, end, number))
            begin = end
        self.written_marks.clear()
        return events, tuple(runs)

    def start(self, context: WriteContext) -> None:
        """Take part in a statement, and in its transaction if there is one."""
        if self.transaction_cache.before_statement is None:
            self.transaction_cache.before_statement = len(self.transaction_cache.events)
            self.is_registered |= context.is_in_transaction

    def is_logged_in_transaction(self, context: WriteContext, *, is_transactional: bool) -> bool:
        """True if a statement's text goes to the transaction cache.

        Args:
            context: Circumstances in which the text is logged.
            is_transactional: The statement or the rule of mixed engines asks for that cache.
        """
        if is_transactional or context.engine_changes.is_transactional:
            return True
        if self.server.is_mariadb and context.logging_format is LoggingFormat.ROW:
            return False
        return not context.is_direct and not self.transaction_cache.is_empty

    def write_statement(
        self, events: Sequence[Body], context: WriteContext, *, is_transactional: bool
    ) -> None:
        """Add a statement's text, with the values that belong to it, to the cache it belongs to."""
        in_transaction = self.is_logged_in_transaction(context, is_transactional=is_transactional)
        self.start(context)
        if not in_transaction:
            self.statement_cache.events.extend(events)
            return
        self.transaction_cache.end_rows()
        self.transaction_cache.events.extend(events)
        self.has_unsafe_content |= context.engine_changes.is_unsafe_to_roll_back

    def write_directly(
        self, events: Sequence[Body], opening: GtidEvent = log_events.STANDALONE
    ) -> None:
        """Write a statement that is a group by itself."""
        self.written.extend(log_events.standalone(events, self.server, opening))

    def cache(self, *, is_transactional: bool) -> Cache:
        """The cache for rows of tables of one kind."""
        return self.transaction_cache if is_transactional else self.statement_cache

    def end_statement(self, context: WriteContext, *, keeps_rows_open: bool = False) -> None:
        """Commit the statement; outside a transaction also its events in the other cache.

        The rows kept open are those of one statement with the rows of the next, and table maps.

        Source: 004:R-flush-SC. MariaDB makes one group of both caches if it commits in two phases.
        """
        keeps_rows_open &= context.is_in_transaction
        if self.statement_cache.events or not keeps_rows_open:
            last = self.transaction_cache.open_rows if keeps_rows_open else None
            self._end_rows()
            self.transaction_cache.closed_rows = last
        end = log_events.XID if context.engine_changes.ends_with_xid else log_events.COMMIT
        if not context.is_in_transaction and self.server.is_mariadb and end is log_events.XID:
            caches = (self.statement_cache, self.transaction_cache)
            events = [event for cache in caches if not cache.is_empty for event in cache.events]
            if not self.transaction_cache.is_empty:
                at = len(events) - len(self.transaction_cache.events)
                self._take_marks_along(len(self.written) + 1 + at)
            self.write_group(events, end)
            self._forget_maps(is_told=self._takes_part or bool(events))
            self._reset_transaction()
            return
        self._flush_statement_cache()
        if not context.is_in_transaction:
            self._forget_maps(is_told=self._takes_part)
            self._write_transaction(end, is_whole=not context.changed_nontransactional)
        elif self.transaction_cache.is_empty:
            self.transaction_cache.clear()
        self.transaction_cache.before_statement = None

    def roll_back_statement(self, context: WriteContext) -> None:
        """End a statement that failed; rows that an earlier one left open go with it.

        Source: MySQL 9.7 sql/binlog.cc `binlog_trx_cache_data::truncate`.
        """
        if self.server.is_mariadb or self._keeps_failed(context):
            self._end_rows()
        else:
            self.statement_cache.end_rows()
            self.transaction_cache.drop_open_rows()
        self._flush_statement_cache()
        if not context.is_in_transaction:
            if self._cannot_roll_back(context):
                self._write_transaction(log_events.ROLLBACK)
            self._reset_transaction()
        elif self.transaction_cache.before_statement is not None and not self._keeps_failed(
            context
        ):
            self.transaction_cache.truncate(self.transaction_cache.before_statement)
        self.transaction_cache.before_statement = None

    def commit(self, transaction: EngineChanges) -> None:
        """Commit the transaction (004:R-log-commit).

        MariaDB clears the statement cache only at commits in two phases.
        """
        self._flush_statement_cache()
        self.transaction_cache.end_rows()
        self._forget_maps(is_told=transaction.ends_with_xid)
        end = log_events.XID if transaction.ends_with_xid else log_events.COMMIT
        self._write_transaction(end, is_whole=not transaction.changed_nontransactional)

    def roll_back(self, context: WriteContext) -> None:
        """Roll back the transaction (004:R-log-rollback)."""
        self._flush_statement_cache()
        if self.is_registered and self._cannot_roll_back(context):
            self._write_transaction(log_events.ROLLBACK)
        self._reset_transaction()

    def keep_unsafe(self, context: WriteContext) -> None:
        """Log changes rolled back by XA, or to a savepoint that this binlog does not know.

        MariaDB then logs them in every format, if some change cannot be rolled back.
        """
        if self.server.is_mariadb and self.is_registered and context.changed_nontransactional:
            self._flush_statement_cache()
            self._write_transaction(log_events.ROLLBACK)

    def write_xa(self, events: Sequence[Body], transaction: EngineChanges) -> None:
        """Write an XA transaction with the events that open and end it."""
        self._take_marks_along(len(self.written) + 1)
        is_whole = not transaction.changed_nontransactional
        if is_whole and self._is_compressed(self.transaction_cache.events):
            self.written.append(log_events.PayloadStart())
        self.written.extend(events)
        self._forget_maps(is_told=True)
        self._reset_transaction()

    def set_savepoint(self, name: str, event: QueryEvent) -> None:
        """Note a savepoint, whose text stays when the transaction is rolled back to it."""
        if not self.is_registered:
            return
        self.transaction_cache.end_rows()
        self.transaction_cache.events.append(event)
        self.positions[name.lower()] = len(self.transaction_cache.events)

    def roll_back_to(self, name: str, event: QueryEvent, context: WriteContext) -> None:
        """Roll back to a savepoint (004:R-log-rollback-to-savepoint).

        A binlog that joined the transaction after the savepoint rolls it back as a whole.

        Args:
            name: Name of the savepoint, in any case.
            event: Event of the ROLLBACK TO statement.
            context: Circumstances in which the statement is logged.
        """
        if not self.is_registered:
            return
        position = self.positions.get(name.lower())
        if position is None:
            keeps_transaction = self.keeps_transaction
            self.keep_unsafe(context)
            self.roll_back(context)
            self.keeps_transaction = keeps_transaction
            return
        keeps = (
            context.changed_nontransactional or self.keeps_transaction
            if self.server.is_mariadb
            else self.has_unsafe_content
        )
        if keeps:
            self.transaction_cache.events.append(event)
            return
        self.transaction_cache.truncate(position)

    def forget_savepoint(self, name: str) -> None:
        """Forget a savepoint."""
        self.positions.pop(name.lower(), None)

    def _cannot_roll_back(self, context: WriteContext) -> bool:
        """True if a transaction that is rolled back is logged nevertheless."""
        if not self.server.is_mariadb:
            return self.has_unsafe_content
        changed = context.changed_nontransactional
        temporary = context.transaction.changed_nontransactional_temporary
        return (
            self.keeps_transaction
            or (changed and context.mode is LoggingMode.STATEMENT)
            or (temporary and context.mode is LoggingMode.MIXED)
            or (changed and not context.is_in_transaction and context.mode is LoggingMode.MIXED)
        )

    def _keeps_failed(self, context: WriteContext) -> bool:
        """True if a failed statement of a transaction stays in its cache."""
        done = context.engine_changes
        is_statement = context.mode is LoggingMode.STATEMENT
        if not self.server.is_mariadb:
            return done.changed_temporary_tables or (done.changed_nontransactional and is_statement)
        is_text = context.logging_format is LoggingFormat.STATEMENT
        return (
            (done.changed_temporary_tables and is_text)
            or (done.changed_nontransactional and is_statement)
            or (done.changed_nontransactional_temporary and context.mode is LoggingMode.MIXED)
        )

    def _end_rows(self) -> None:
        self.statement_cache.end_rows()
        self.transaction_cache.end_rows()

    def _flush_statement_cache(self) -> None:
        """Write the statement cache, if there is something in it to be logged.

        Events that MariaDB does not count as that stay until a commit, and stand before later ones.
        """
        if not self.statement_cache.is_empty:
            events = self.statement_cache.events
            is_whole = not any(isinstance(event, ChangedRows) for event in events)
            self.write_group(events, log_events.COMMIT, is_whole=is_whole)
            self.statement_cache.clear()

    @property
    def _takes_part(self) -> bool:
        """True if the current statement wrote to a cache."""
        return self.transaction_cache.before_statement is not None

    def _forget_maps(self, *, is_told: bool) -> None:
        """Drop the rest of the statement cache, at a commit of which the binlog is told."""
        if is_told:
            self.statement_cache.clear()

    def _write_transaction(self, end: Body, *, is_whole: bool = False) -> None:
        if not self.transaction_cache.is_empty:
            self._take_marks_along(len(self.written) + 1)
            self.write_group(self.transaction_cache.events, end, is_whole=is_whole)
        self._reset_transaction()

    def _is_compressed(self, events: Sequence[Body]) -> bool:
        """True if MySQL compresses a group: only rows, beside savepoints."""
        return self.is_compressing and all(
            isinstance(event, MappedTable | ChangedRows | RowsQueryEvent)
            or (isinstance(event, QueryEvent) and event.query.startswith(_OF_SAVEPOINTS))
            for event in events
        )

    def write_group(self, events: Sequence[Body], end: Body, *, is_whole: bool = False) -> None:
        """Write a transaction, or a part of one, with its opening and an end.

        Args:
            events: Events that were in a cache.
            end: Last event of the group.
            is_whole: Nothing of the transaction stands elsewhere, so that the group may be compressed.
        """
        if events and is_whole and self._is_compressed(events):
            self.written.append(log_events.PayloadStart())
        if events:
            end = log_events.with_status(end, self.status_vars)
            self.written.extend(log_events.group(events, end, self.server))

    def _reset_transaction(self) -> None:
        self.transaction_cache.clear()
        self.is_registered = False
        self.has_unsafe_content = False
        self.keeps_transaction = False
        self.positions.clear()
