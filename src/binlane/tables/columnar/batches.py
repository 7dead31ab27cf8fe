"""Event groups → record batches, one table a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

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
from binlane.tables.columnar.ordinals import Ordinals
from binlane.tables.columnar.prepared import Prepared, PreparedGroup, is_commit
from binlane.tables.columnar.selection import Selection
from binlane.tables.columnar.table_schema import (
    CHANGE_NAMES,
    INVALID_DATES,
    TableSchema,
    table_schema,
)
from binlane.tables.columnar.told import (
    GroupPlace,
    RowItem,
    Told,
    ToldKind,
    is_about_views,
    may_concern_tables,
    statement_of,
    tables_of,
    undecided,
)

if TYPE_CHECKING:
    from binlane.binlogs.filters.state import FilterState
    from binlane.statements.sql.logged_objects import LoggedObjects

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
        selection: The event groups and the tables whose rows are wanted.
        columns: Names of the tables' columns to keep, all if None.
        rows_max: Row images that a batch holds at most.
        new_builder: Makes the builder of one table's batches.
        catalog: Knows of columns what the log does not tell; logged DDL keeps it up to date.
        change_names: The change columns that batches begin with.
        tells: Whether statements, and events that make rows uncertain, are given too, and such rows
            left out.
        prepared: The XA transactions that are prepared; shared by those who read one log.
        as_json: Whether images are to be JSON objects, which `new_builder` must make.
        may_clash: As the argument `may_clash` of `table_schema`.
        filter_state: State of the selection's filter where reading begins; the batcher's own. None
            if there is no filter.

    Attributes:
        ordinals: Numbers of the changes and images of the transaction that is being read.
        filter_state: State of the filter where the log is read; None without one.
        is_statement_wanted: Whether the filter lets the statement through that was learned last.
    """

    def __init__(  # noqa: PLR0913 - each argument is a wish of the reader
        self,
        *,
        selection: Selection | None = None,
        columns: Collection[str] | None = None,
        rows_max: int = ROWS_MAX_DEFAULT,
        new_builder: BuilderFactory = ScalarBatchBuilder,
        catalog: LoggedObjects | None = None,
        change_names: tuple[str, ...] = CHANGE_NAMES,
        tells: bool = False,
        prepared: Prepared | None = None,
        as_json: bool = False,
        may_clash: bool = False,
        filter_state: FilterState | None = None,
    ) -> None:
        self.catalog = catalog
        self.filter_state = filter_state
        self.selection = selection or Selection()
        self.change_names = change_names
        self.tells = tells
        self.prepared = prepared or Prepared()
        self.ordinals = Ordinals()
        self.is_statement_wanted = True
        self.rows_max = rows_max
        self._columns = columns
        self._as_json = as_json
        self._may_clash = may_clash
        self._new_builder = new_builder
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
        place = GroupPlace.of(group)
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
        place: GroupPlace,
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
            yield Told(
                kind=ToldKind.STATEMENT,
                event=event,
                place=place,
                is_wanted=self.is_statement_wanted,
            )

    def is_told(self, event: Event) -> bool:
        """True if a statement is given between rows: one about tables or, with a filter, about views.

        Views have names as tables do, and a reader that goes on with the filter needs all that it
        does.
        """
        return may_concern_tables(event) or (
            self.filter_state is not None and is_about_views(event)
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
            self._follow(event, place, is_wanted=is_wanted)
            return self.catalog is not None and self.catalog.feed(event)
        except CodecError as error:
            raise error.at(place.file, place.position) from None

    def _follow(self, event: Event, place: RowsSource, *, is_wanted: bool) -> None:
        """Have the filter judge a statement, and know what it does to tables."""
        self.is_statement_wanted, body = True, statement_of(event)
        if self.filter_state is None or body is None:
            return
        from binlane.binlogs.filters.events import judged  # noqa: PLC0415 - reads SQL

        at = f"{place.file}:{place.position}" if is_wanted else None
        self.is_statement_wanted = judged(body, self.filter_state, at)

    @property
    def follows(self) -> bool:
        """True if statements change what is read: there is a catalog or a filter."""
        return self.catalog is not None or self.filter_state is not None

    def wants(self, table: TableName) -> bool:
        """True if rows of a table are wanted at the place that the reader has come to."""
        selection = self.selection
        return selection.scope.includes(table) and (
            self.filter_state is None
            or self.filter_state.includes(table)
            or table in selection.beside
        )

    def loses(self, table: TableName) -> bool:
        """True if the filter leaves out a table that its rules name, where the log is read."""
        return (
            self.filter_state is not None
            and self.selection.scope.includes(table)
            and self.filter_state.is_lost(table)
        )

    def leave_out(self, table_map: TableMapEvent, body: RowsEvent, source: RowsSource) -> None:
        """Count the rows of an event that the filter leaves out, if it `loses` its table."""
        if not self.loses(TableName(table_map.database, table_map.table)):
            return
        from binlane.binlogs.filters.events import lost_rows  # noqa: PLC0415 - reads SQL

        state, place = self.filter_state, f"{source.file}:{source.position}"
        assert state is not None, "there is a filter"
        if (note := lost_rows(body, table_map, state, place)) is not None:
            state.notes.append(note)

    @property
    def wants_version(self) -> int:
        """Changes whenever `wants` may say otherwise."""
        return 0 if self.filter_state is None else self.filter_state.version

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
                f"an XA transaction is committed here that is not prepared before: "
                f"{finished_by(event)}",
                hint="give the files before this one too, or start behind this place",
            ).at(place.file, place.position)
        yield from self.finish()
        yield Told(kind=ToldKind.XA_UNKNOWN, event=event, place=place)

    def add_prepared(
        self, group: PreparedGroup | EventGroup, commit: RowsSource
    ) -> Iterator[RowItem]:
        """Take the group that an XA COMMIT brings into effect.

        Raises:
            CodecError: With file and position, if a row cannot be decoded.
        """
        place = GroupPlace.of_commit(commit)
        if isinstance(group, EventGroup):
            yield from self.add_group(group, place)
            return
        chunks = Window(self.prepared.source(group), size_bytes=PIECE_BYTES).rest(0)
        walker = Walker(chunks, file=group.path, position=group.start, format_=group.format)
        found = next(group_events(walker.events(), file=group.path))
        yield from self.add_group(found, place, format_=group.format)

    def _undecided(self, events: Sequence[Event], place: GroupPlace) -> Iterator[RowItem]:
        """Tell of a group whose rows are uncertain."""
        found = undecided(events)
        if found is not None:
            kind, event = found
            tables = tables_of(events, file=place.file) if kind is ToldKind.ROLLED_BACK else ()
            yield from self.finish()
            yield Told(kind=kind, event=event, place=place.source(event), tables=tables)

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
        name = TableName(table_map.database, table_map.table)
        if self.filter_state is not None:
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
            yield Told(kind=ToldKind.ROWS, event=None, place=source, tables=(name,), what=what)
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
        columns = None
        if self.catalog is not None:
            columns = self.catalog.columns(table_map, flavor=self._flavor)
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
                table_map,
                flavor=self._flavor,
                wanted=self._columns,
                columns=columns,
                change_names=self.change_names,
                as_json=self._as_json,
                may_clash=self._may_clash,
                leaves_out_clashes=self.tells,
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
