"""Event groups → record batches, one table a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa

from binlane.errors import CodecError, UnsupportedError
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.rows import RowsEvent, TableMapEvent, uncompressed
from binlane.log.codec.transaction import GtidEvent
from binlane.log.codec.types import EventType, Flavor
from binlane.log.grouping.event_group import EventGroup, group_events
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.table_maps import TableMaps
from binlane.log.grouping.walk import Walker
from binlane.log.grouping.window import PIECE_BYTES, Window
from binlane.log.grouping.xa import finished_by, prepared_in
from binlane.names import TableName
from binlane.tables.columnar.builder import (
    BatchBuilder,
    BuilderFactory,
    RowsSource,
    ScalarBatchBuilder,
)
from binlane.tables.columnar.counters import Ordinals
from binlane.tables.columnar.followed_log import FollowedLog
from binlane.tables.columnar.log_notes import (
    GroupOrigin,
    LogNote,
    LogNoteKind,
    RowItem,
    is_about_views,
    may_concern_tables,
    tables_of,
    undecided,
)
from binlane.tables.columnar.prepared_transactions import (
    PreparedGroup,
    PreparedTransactions,
    is_commit,
)
from binlane.tables.columnar.table_schema import (
    INVALID_DATES,
    ReadOptions,
    TableSchema,
    table_schema,
)

STATEMENT_TYPES: Final = frozenset(
    {EventType.QUERY, EventType.QUERY_COMPRESSED, EventType.EXECUTE_LOAD_QUERY}
)
ROWS_MAX_DEFAULT: Final = 8192

BATCH_BYTES_MAX: Final = 16 << 20
"""Bytes of row images behind which a batch ends however few rows it has."""


class ChangeBatcher:
    """Collects the row changes of event groups, a batch for each table.

    The images of a table stay in log order; batches of several tables come as they fill up. A
    table whose schema changes gets a new batch. Rows of an XA transaction come at its XA COMMIT.

    Args:
        options: The reader's options; by default all rows are wanted.
        log: The log where reading begins, which the batcher follows; by default nothing is known of
            its objects, and there is no filter.
        prepared: The XA transactions that are prepared; shared by those who read one log.

    Attributes:
        ordinals: Numbers of the changes and images of the transaction that is being read.
        log: The log at the place that the reader has come to.
        tells: True if statements, and events that make rows uncertain, are given too, and such rows
            left out.
    """

    def __init__(
        self,
        options: ReadOptions | None = None,
        *,
        log: FollowedLog | None = None,
        prepared: PreparedTransactions | None = None,
    ) -> None:
        self.log = log or FollowedLog()
        self.options = options or ReadOptions()
        self.selection = self.options.selection
        self.tells = self.options.has_statements
        self.prepared = prepared or PreparedTransactions()
        self.ordinals = Ordinals()
        self.rows_max = self.options.rows_max or ROWS_MAX_DEFAULT
        self._new_builder = _builder_of(self.options)
        self._flavor = Flavor.MARIADB
        self._format: Format | None = None
        self._size_bytes: Counter[TableName] = Counter()
        self._schemas: dict[tuple[object, ...], TableSchema] = {}
        self._open: dict[TableName, tuple[TableSchema, BatchBuilder]] = {}

    def feed(self, group: EventGroup) -> Iterator[RowItem]:
        """Take the next group; give the batches that it completes, and what is told of it.

        A group that its log ends or begins anew within was rolled back: it gives nothing.

        Raises:
            CodecError: With file and position, if a row cannot be decoded.
        """
        if not group.is_complete:
            return
        is_wanted = self.selection.includes(group)
        place = GroupOrigin.of(group)
        if group.is_control:
            self._take_control(group.events[0])
            if self.tells and is_wanted:
                yield from self._undecided(group.events, place)
            return
        xid = None if self._format is None else prepared_in(group.events[-1], self._format)
        if xid is None or self._format is None:
            yield from self.add_group(group, place, is_wanted=is_wanted)
        else:
            self.prepared.prepare_group(xid, group, self._format)

    def add_group(
        self,
        group: EventGroup,
        place: GroupOrigin,
        *,
        is_wanted: bool = True,
        format_: Format | None = None,
    ) -> Iterator[RowItem]:
        """Take a complete group that has effect, at a place.

        Args:
            group: A complete group that is not rolled back.
            place: The place at which the group's rows count.
            is_wanted: Whether the group passes the selection.
            format_: The format of the group's file, if that is not the file that is being read.

        Raises:
            CodecError: With file and position, if a row cannot be decoded.
        """
        if self.tells and is_wanted:
            told = list(self._undecided(group.events, place))
            if told:
                yield from told
                return
        first = group.events[0].body
        if isinstance(first, GtidEvent) and first.is_undone:
            return
        maps = TableMaps()
        events: Iterable[Event] = group.events
        if is_wanted:
            events = expanded_all(events, file=group.file, format_=format_ or self._format)
        for event in events:
            if event.header.type_code in STATEMENT_TYPES:
                yield from self.tell(event, place.source(event), is_wanted=is_wanted)
            elif is_wanted:
                table_map = maps.feed(event, file=group.file)
                if table_map is not None and isinstance(event.body, RowsEvent):
                    yield from self.add(table_map, event.body, place.source(event))

    def tell(self, event: Event, place: RowsSource, *, is_wanted: bool) -> Iterator[RowItem]:
        """Take an event that is no row.

        Args:
            event: An event of a group that has effect.
            place: The place at which the event counts.
            is_wanted: Whether its group is selected.

        Raises:
            CodecError: With file and position, if it or an XA transaction cannot be decoded.
        """
        self.learn(event, place, is_wanted=is_wanted)
        xid = finished_by(event)
        if xid is not None:
            group = self.finished(xid, event, is_wanted=is_wanted)
            if group is not None:
                yield from self.add_prepared(group, place)
            elif is_wanted and is_commit(event):
                yield from self.unknown_xa(event, place)
        elif self.tells and is_wanted and self.is_told(event):
            yield from self.finish()
            yield LogNote(
                kind=LogNoteKind.STATEMENT,
                event=event,
                place=place,
                is_wanted=self.log.is_wanted,
            )

    def is_told(self, event: Event) -> bool:
        """True if a statement is given between rows: one about tables or, with a filter, about views.

        Views have names as tables do, and a reader that goes on with the filter needs all that it
        does.
        """
        return may_concern_tables(event) or (
            self.log.filter_state is not None and is_about_views(event)
        )

    def learn(self, event: Event, place: RowsSource, *, is_wanted: bool) -> bool:
        """Follow DDL.

        Args:
            event: Any event but a rows event.
            place: The place at which the event counts.
            is_wanted: Whether the event's group is selected.

        Returns:
            True if columns may now be known otherwise.
        """
        try:
            return self.log.feed(event, f"{place.file}:{place.position}" if is_wanted else None)
        except CodecError as error:
            raise error.at(place.file, place.position) from None

    def wants(self, table: TableName) -> bool:
        """True if rows of a table are wanted at the place that the reader has come to."""
        selection = self.selection
        return selection.scope.includes(table) and (
            self.log.wants(table) or table in selection.beside
        )

    def loses(self, table: TableName) -> bool:
        """True if the filter leaves out a table that its rules name, where the log is read."""
        state = self.log.filter_state
        return state is not None and self.selection.scope.includes(table) and state.is_lost(table)

    def leave_out(self, table_map: TableMapEvent, body: RowsEvent, source: RowsSource) -> None:
        """Count the rows of an event that the filter leaves out, if it `loses` its table."""
        if not self.loses(table_map.name):
            return
        from binlane.binlogs.filters.events import lost_rows  # noqa: PLC0415 - reads SQL

        state, place = self.log.filter_state, f"{source.file}:{source.position}"
        assert state is not None, "there is a filter"
        if (note := lost_rows(body, table_map, state, place)) is not None:
            state.notes.append(note)

    @property
    def wants_version(self) -> int:
        """Changes whenever `wants` may say otherwise."""
        state = self.log.filter_state
        return 0 if state is None else state.version

    def finished(
        self, xid: str, event: Event, *, is_wanted: bool
    ) -> PreparedGroup | EventGroup | None:
        """The group that an event commits, if it does; either way it is prepared no more."""
        if is_wanted and is_commit(event):
            return self.prepared.commit(xid)
        self.prepared.forget(xid)
        return None

    def unknown_xa(self, event: Event, place: RowsSource) -> Iterator[RowItem]:
        """Tell of an XA COMMIT whose rows nobody knows.

        Raises:
            UnsupportedError: If nothing is to be told.
        """
        if not self.tells:
            raise UnsupportedError(
                f"an XA transaction is committed here whose XA PREPARE is not in the log: "
                f"{finished_by(event)}",
                hint="give the files before this one too, or start behind this place",
            ).at(place.file, place.position)
        yield from self.finish()
        yield LogNote(kind=LogNoteKind.XA_UNKNOWN, event=event, place=place)

    def add_prepared(
        self, group: PreparedGroup | EventGroup, commit: RowsSource
    ) -> Iterator[RowItem]:
        """Take the group that an XA COMMIT brings into effect.

        Raises:
            CodecError: With file and position, if a row cannot be decoded.
        """
        place = GroupOrigin.of_commit(commit)
        if isinstance(group, EventGroup):
            yield from self.add_group(group, place)
            return
        chunks = Window(self.prepared.source(group), size_bytes=PIECE_BYTES).rest(0)
        walker = Walker(chunks, file=group.path, position=group.start, format_=group.format)
        found = next(group_events(walker.events(), file=group.path))
        yield from self.add_group(found, place, format_=group.format)

    def _undecided(self, events: Sequence[Event], place: GroupOrigin) -> Iterator[RowItem]:
        """Tell of a group whose rows are uncertain."""
        found = undecided(events)
        if found is not None:
            kind, event = found
            tables = tables_of(events, file=place.file) if kind is LogNoteKind.ROLLED_BACK else ()
            yield from self.finish()
            yield LogNote(kind=kind, event=event, place=place.source(event), tables=tables)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The batches that are not full, so that what is fed next stands in later ones."""
        for _, builder in self._open.values():
            yield from self._cut(builder)
        self._open.clear()
        self._size_bytes.clear()

    def _take_control(self, event: Event) -> None:
        if isinstance(event.body, FormatDescriptionEvent):
            self.take_format(event.body.format)

    def take_format(self, format_: Format) -> None:
        """Go on in a file of this format."""
        self._format = format_
        self._flavor = format_.flavor
        self._schemas.clear()
        self.ordinals.group = None

    def add(
        self, table_map: TableMapEvent, body: RowsEvent, source: RowsSource
    ) -> Iterator[RowItem]:
        """Take one rows event of a group that is wanted; give the batch that it completes.

        Rows that cannot be decoded although their event has a checksum are told, where anything is.

        Raises:
            CodecError: With file and position, if a row cannot be decoded otherwise.
        """
        name = table_map.name
        if self.log.filter_state is not None:
            self.leave_out(table_map, body, source)
        if not self.wants(name):
            return
        try:
            schema = self.schema(table_map)
            current = self._open.get(name)
            if current is not None and not _is_alike(current[0], schema):
                yield from self._cut(current[1])
                current = None
                self._size_bytes[name] = 0
            if current is None:
                current = self._open[name] = (schema, self._new_builder(schema))
            ordinals = self.ordinals
            ordinals.begin(source.group)
            first = ordinals.changes if source.is_xa else 0
            body = uncompressed(body)
            changes, images = current[1].append(body, source, change=first, image=ordinals.images)
            ordinals.changes += changes
            ordinals.images += images
        except CodecError as error:
            if not self.tells or self._format is None or not self._format.checksum_length:
                raise error.at(source.file, source.position) from None
            yield from self.finish()
            what = f"rows of it cannot be decoded: {error.message}"
            yield LogNote(
                kind=LogNoteKind.ROWS, event=None, place=source, tables=(name,), what=what
            )
            return
        self._size_bytes[name] += len(body.images)
        if current[1].rows >= self.rows_max or self._size_bytes[name] >= BATCH_BYTES_MAX:
            self._size_bytes[name] = 0
            yield from self._cut(current[1])

    def schema(self, table_map: TableMapEvent) -> TableSchema:
        """The schema of a table map, computed once for all maps that differ only in their id.

        Raises:
            CodecError: If the table map is malformed.
            ConfigError: If a column has the name of a change column.
        """
        objects = self.log.objects
        columns = None if objects is None else objects.columns(table_map, flavor=self._flavor)
        key = (
            table_map.database,
            table_map.table,
            table_map.column_types,
            table_map.metadata,
            table_map.null_bits,
            table_map.optional_metadata,
            columns,
        )
        if key not in self._schemas:
            self._schemas[key] = table_schema(
                table_map, flavor=self._flavor, columns=columns, options=self.options
            )
        return self._schemas[key]

    def _cut(self, builder: BatchBuilder) -> Iterator[pa.RecordBatch]:
        if builder.rows:
            batch = builder.finish()
            yield batch.slice(0, self.rows_max)
            metadata = {
                key: value for key, value in batch.schema.metadata.items() if key != INVALID_DATES
            }
            rest = batch.replace_schema_metadata(metadata)
            for offset in range(self.rows_max, batch.num_rows, self.rows_max):
                yield rest.slice(offset, self.rows_max)


def _builder_of(options: ReadOptions) -> BuilderFactory:
    if not options.as_json:
        return ScalarBatchBuilder
    from binlane.tables.columnar.json_images import JsonBatchBuilder  # noqa: PLC0415 - few want JSON

    return JsonBatchBuilder


def _is_alike(first: TableSchema, second: TableSchema) -> bool:
    """True if rows of two schemas may stand in one batch; columns that are not wanted count, too."""
    return first.columns == second.columns and first.arrow.equals(second.arrow, check_metadata=True)


def batches(
    groups: Iterable[EventGroup], batcher: ChangeBatcher | None = None
) -> Iterator[RowItem]:
    """The row changes of event groups as record batches, one table a batch.

    Args:
        groups: In log order, control groups included.
        batcher: Takes them, with the reader's wishes; by default one that wants all rows.

    Yields:
        Batches of change columns and the table's columns; an update gives two rows, first
        `update_before`, then `update_after`. Columns that an image lacks are NULL. Between them
        what is told, if the batcher does.

    Raises:
        CodecError: With file and position, if a row cannot be decoded; behind all rows before it.
    """
    batcher = batcher or ChangeBatcher()
    try:
        for group in groups:
            yield from batcher.feed(group)
    except CodecError:
        yield from batcher.finish()
        raise
    yield from batcher.finish()
