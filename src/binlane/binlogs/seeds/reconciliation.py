"""Rows that were read at many moments, and the log's changes meanwhile → the rows at one GTID.

Each key that the log changed is taken out of what was read, and its last image, if it has one, is
put in. A table without a key was read at one place: there, copies of rows are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from binlane.binlogs.routing.cascades import NOT_CASCADED
from binlane.binlogs.seeds.changed_rows import ChangedRowsFile, KeyFilter
from binlane.binlogs.seeds.seed_groups import (
    TRANSACTION_BYTES_MAX,
    TRANSACTION_ROWS_MAX,
    SeedTransaction,
    in_transactions,
)
from binlane.binlogs.seeds.spool import SeedSpool, SpooledTable
from binlane.client.rows.logged_table import LoggedTable
from binlane.client.rows.table_rows import RowBatch
from binlane.errors import BinlaneError
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.row_cutting import keyed_images
from binlane.log.codec.rows import (
    DeleteRowsEvent,
    PartialUpdateRowsEvent,
    RowsEvent,
    TableMapEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
)
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import EventGroup
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.table_maps import TableMaps
from binlane.log.grouping.xa import finished_by, prepared_by
from binlane.names import TableName
from binlane.positions import AnyGtid
from binlane.statements.sql.logged_statements import (
    followed_statement,
    is_about_transactions,
    is_beside_tables,
)
from binlane.statements.sql.statement_kinds import StatementKind

_CHANGES: Final = "changes.db"
_ADDED_ROWS: Final = 1000
_ROLLED_BACK: Final = b"ROLLBACK"


class SeedTroubleError(BinlaneError):
    """The log has something that tables' rows cannot be reconciled with.

    Attributes:
        tables: The tables; the reading of each starts over by `SeedSpool.start_over`.
    """

    def __init__(self, message: str, tables: Iterable[TableName]) -> None:
        super().__init__(message, hint="")
        self.tables = tuple(tables)


@dataclass(slots=True)
class _Table:
    """A table, and what is asked about it for each event.

    Attributes:
        keyed: Numbers of the key's columns.
        widths: The widths of its columns in images.
        full: The bitmap of an image that has all columns.
        types: The column types that its TABLE_MAP has.
        metadata: The metadata that its TABLE_MAP has.
    """

    state: SpooledTable
    table: LoggedTable
    keyed: tuple[int, ...] = field(init=False)
    widths: tuple[int, ...] = field(init=False)
    full: bytes = field(init=False)
    types: bytes = field(init=False)
    metadata: bytes = field(init=False)

    def __post_init__(self) -> None:
        self.keyed, self.widths = self.table.key_indexes, self.table.widths
        count = len(self.table.columns)
        self.full = ((1 << count) - 1).to_bytes((count + 7) // 8, "little")
        own = self.table.table_map(0)
        self.types, self.metadata = own.column_types, own.metadata

    @property
    def number(self) -> int:
        """The table's number in the spool."""
        return self.state.number

    def has_seen(self, gtid: AnyGtid | None) -> bool:
        """True if its reading began when a group was visible."""
        assert self.state.low is not None, "it was read"
        return gtid is not None and self.state.low.covers(gtid)


_Change = tuple[_Table, RowsEvent]


class Reconciled:
    """The rows of a spool's tables exactly at the last of the changes.

    Attributes:
        last: The GTID of the last group; None if there was none.
        prepared: XA transactions that are prepared and not finished: their rows are not there.
    """

    def __init__(
        self,
        spool: SeedSpool,
        changed: ChangedRowsFile,
        emptied: frozenset[TableName],
        *,
        last: AnyGtid | None,
        prepared: frozenset[str],
    ) -> None:
        self._spool = spool
        self._changed = changed
        self._emptied = emptied
        self.last = last
        self.prepared = prepared

    def close(self) -> None:
        """Remove what was needed for this alone."""
        self._changed.close()

    def transactions(
        self, *, bytes_max: int = TRANSACTION_BYTES_MAX, rows_max: int = TRANSACTION_ROWS_MAX
    ) -> Iterator[SeedTransaction]:
        """All rows, table by table, in transactions of bounded size.

        The same each time: whoever was killed may leave out as many as are done.

        Args:
            bytes_max: Bytes of the images of a transaction, unless one row has more.
            rows_max: The most rows of a transaction.

        Raises:
            SeedTroubleError: If the log deletes rows of a table without a key that were not read.
            StoreError: If the spool cannot be read.
        """
        for state in self._spool.states:
            if state.table is not None and not state.refusal:
                batches = self._rows(state, state.table)
                yield from in_transactions(
                    state.table, batches, bytes_max=bytes_max, rows_max=rows_max
                )

    def rows(self, table: TableName) -> Iterator[bytes]:
        """The images of a table's rows, in the order in which they are seeded.

        Raises:
            StoreError: If the spool cannot be read.
        """
        state = self._spool.state_of(table)
        if state.table is not None and not state.refusal:
            for batch in self._rows(state, state.table):
                for _, image in batch:
                    yield image

    def _rows(self, state: SpooledTable, table: LoggedTable) -> Iterator[RowBatch]:
        keys = self._changed.filter(state.number)
        gone: Counter[bytes] = Counter()
        if state.name not in self._emptied:
            for batch in self._spool.blocks(state):
                yield batch if keys.is_empty else self._unchanged(state, table, batch, keys, gone)
        if not table.source.key and sum(gone.values()) != self._changed.gone(state.number):
            raise SeedTroubleError(
                "the log deletes rows that were not read, of a table without a key", [state.name]
            )
        pending: list[bytes] = []
        for _, image, copies in self._changed.rows(state.number):
            pending += [image] * max(copies, 1)
            if len(pending) >= _ADDED_ROWS:
                yield _batch(pending)
                pending = []
        if pending:
            yield _batch(pending)

    def _unchanged(  # what is looked up, and where
        self,
        state: SpooledTable,
        table: LoggedTable,
        batch: RowBatch,
        keys: KeyFilter,
        gone: Counter[bytes],
    ) -> RowBatch:
        """The rows of a batch that the log did not change."""
        kept: list[bytes] = []
        for key, image in batch:
            if keys.may_have(key):
                if table.source.key:
                    if self._changed.has(state.number, key):
                        continue
                elif self._changed.copies(state.number, image) + gone[image] < 0:
                    gone[image] += 1
                    continue
            kept.append(image)
        return batch if len(kept) == len(batch) else _batch(kept)


def reconcile(
    spool: SeedSpool,
    changes: Iterable[EventGroup],
    *,
    format_: Format,
    is_stopped: Callable[[], bool] = lambda: False,
    undoes: bool = False,
) -> Reconciled | None:
    """Fold the log's changes into the rows of a spool, or undo them.

    Args:
        spool: It is read to its end. It gets a file of the changed rows; calling this anew after a
            crash makes it anew.
        changes: The event groups of the tables from the beginning of the kept log on, up to one
            behind `spool.high`; groups of other tables are left alone. The last one is H.
        format_: The format of their events.
        is_stopped: Asked between groups; if it says so, None is returned.
        undoes: Give the rows before the changes instead, which are then all from that place on: a
            row that they touch has the image before its first change.

    Raises:
        SeedTroubleError: If a table was altered, renamed or dropped, rows have no full image, or
            rows may have changed unseen, by a cascade.
        CodecError: If the changes are damaged.
        StoreError: If the spool cannot be written.
    """
    changed = ChangedRowsFile(spool.folder / _CHANGES)
    folding = _Folding(spool, changed, format_, undoes=undoes)
    try:
        for group in changes:
            if is_stopped():
                changed.close()
                return None
            folding.take(group)
    except BaseException:
        changed.close()
        raise
    return Reconciled(
        spool,
        changed,
        frozenset(folding.emptied),
        last=folding.last,
        prepared=frozenset(folding.prepared),
    )


class _Folding:
    """Takes the log's groups one by one."""

    def __init__(
        self, spool: SeedSpool, changed: ChangedRowsFile, format_: Format, *, undoes: bool
    ) -> None:
        self._undoes = undoes
        self._changed = changed
        self._format = format_
        self._tables = {
            state.name: _Table(state, state.table)
            for state in spool.states
            if state.table is not None and not state.refusal
        }
        self.emptied: set[TableName] = set()
        self.last: AnyGtid | None = None
        self.prepared: dict[str, list[_Change]] = {}

    def take(self, group: EventGroup) -> None:
        """Fold a group."""
        if group.is_control or not group.is_complete:
            return
        self.last = group.gtid or self.last
        if all(self._passes(table, group.gtid) for table in self._tables.values()):
            self._note_xa(group)
            return
        changes = self._changes_of(group)
        xid = next(filter(None, map(prepared_by, group.events)), None)
        if xid is not None:
            self.prepared[xid] = changes
            return
        finished = next(filter(None, map(finished_by, group.events)), None)
        if finished is not None:
            held = self.prepared.pop(finished, None)
            if held is None and self._undoes:
                self._fail("an XA transaction was prepared before", self._tables, group)
            if held and not self._is_rollback(group):
                self._apply(held, group.gtid)
            return
        self._apply(changes, group.gtid)

    def _passes(self, table: _Table, gtid: AnyGtid | None) -> bool:
        """True if a group does not matter for a table: its reading had seen it, and undoes nothing."""
        return not self._undoes and table.has_seen(gtid)

    def _note_xa(self, group: EventGroup) -> None:
        """A group that all readings have seen: what it prepares may be finished unseen."""
        for event in group.events:
            if xid := prepared_by(event):
                self.prepared[xid] = self._changes_of(group)
            elif xid := finished_by(event):
                self.prepared.pop(xid, None)

    @staticmethod
    def _is_rollback(group: EventGroup) -> bool:
        return any(
            isinstance(event.body, QueryEvent) and event.body.query.startswith(b"XA ROLLBACK")
            for event in group.events
        )

    def _changes_of(self, group: EventGroup) -> list[_Change]:
        """The rows events of a group that concern the tables; statements are judged at once."""
        changes: list[_Change] = []
        maps = TableMaps()
        for event in expanded_all(group.events, file=group.file, format_=self._format):
            body = event.body
            table_map = maps.feed(event, file=group.file)
            if event.header.type_code == EventType.INCIDENT:
                self._fail("the log has an incident: something is missing", self._tables, group)
            if isinstance(body, QueryEvent):
                if body.query[:8].upper() == _ROLLED_BACK:
                    if len(body.query.strip()) > len(_ROLLED_BACK):
                        self._fail("a part of a transaction was rolled back", self._tables, group)
                    return []
                self._judge(body, group)
            elif isinstance(body, RowsEvent) and table_map is not None:
                self._check_cascades(body, table_map.name, group)
                table = self._tables.get(table_map.name)
                if table is not None and not _is_dummy(event):
                    self._check(table, table_map, body, group)
                    changes.append((table, body))
        return changes

    def _apply(self, changes: list[_Change], gtid: AnyGtid | None) -> None:
        for table, body in changes:
            if not self._counts(table, gtid):
                continue
            pairs = keyed_images(body.plain_images, table.widths, table.keyed)
            for number, (key, image) in enumerate(pairs):
                is_before = isinstance(body, DeleteRowsEvent) or (
                    isinstance(body, UpdateRowsEvent) and number % 2 == 0
                )
                is_gone = is_before != self._undoes
                if not table.keyed:
                    self._changed.count(table.number, image, -1 if is_gone else 1)
                elif self._undoes:
                    self._changed.put_first(table.number, key, None if is_gone else image)
                else:
                    self._changed.put(table.number, key, None if is_gone else image)

    def _counts(self, table: _Table, gtid: AnyGtid | None) -> bool:
        """True if a group's rows are to be folded, or undone."""
        if not self._undoes:
            return not table.has_seen(gtid)
        # Rows without a key were read at one place: only changes before it are in them.
        return bool(table.keyed) or table.has_seen(gtid)

    def _judge(self, body: QueryEvent, group: EventGroup) -> None:
        """A statement: what it does to the tables."""
        if is_about_transactions(body.query) or is_beside_tables(body.query):
            return
        effects = followed_statement(body).effects()
        names = set(effects.changed_tables)
        databases = {database.lower() for database in effects.dropped_databases}
        if effects.stopped_at is not None:
            names = set(self._tables)
        concerned = [
            table
            for name, table in self._tables.items()
            if (name in names or name.database.lower() in databases)
            and not self._passes(table, group.gtid)
        ]
        if not concerned:
            return
        is_truncate = effects.kind is StatementKind.TRUNCATE_TABLE and effects.stopped_at is None
        if is_truncate and not self._undoes:
            for table in concerned:
                # What was read before is void; what was read behind it, the log has.
                self._changed.forget(table.number)
                self.emptied.add(table.table.name)
            return
        text = body.query.decode("utf-8", "replace")[:60]
        self._fail(
            f"a statement changed it while it was read: {text}",
            (table.table.name for table in concerned),
            group,
        )

    def _check(
        self, table: _Table, table_map: TableMapEvent, body: RowsEvent, group: EventGroup
    ) -> None:
        if self._passes(table, group.gtid):
            return
        names = (table.table.name,)
        if (table_map.column_types, table_map.metadata) != (table.types, table.metadata):
            self._fail("its columns are others in the log than when it was read", names, group)
        if isinstance(body, PartialUpdateRowsEvent):
            self._fail(
                "the log has parts of its JSON values (binlog_row_value_options=PARTIAL_JSON)",
                names,
                group,
            )
        bitmaps = {body.columns_present, body.columns_present_after or body.columns_present}
        count = len(table.table.columns)
        mask = (1 << count) - 1
        if any(int.from_bytes(bits, "little") & mask != mask for bits in bitmaps):
            self._fail(
                "the log has rows of it without all columns (binlog_row_image is not FULL)",
                names,
                group,
            )

    def _check_cascades(self, body: RowsEvent, parent: TableName, group: EventGroup) -> None:
        """Rows of a parent changed: a foreign key may have changed rows of a child, unseen."""
        if isinstance(body, WriteRowsEvent) or body.flags & NOT_CASCADED:
            return
        children = [
            table.table.name
            for table in self._tables.values()
            if not self._passes(table, group.gtid)
            and any(key.parent == parent for key in table.table.source.cascades)
            and (isinstance(body, DeleteRowsEvent) or self._refers(table, parent, body))
        ]
        if children:
            self._fail(f"a foreign key may have changed rows of it with {parent}", children, group)

    def _refers(self, child: _Table, parent: TableName, body: RowsEvent) -> bool:
        """True if an update may have changed what a child refers to."""
        known = self._tables.get(parent)
        if known is None:
            return True
        places = {(column.name or "").lower(): column.index for column in known.table.columns}
        wanted = [
            places[name.lower()]
            for key in child.table.source.cascades
            if key.parent == parent
            for name in key.parent_columns
            if name.lower() in places
        ]
        pairs = keyed_images(body.plain_images, known.widths, wanted)
        return any(old != new for (old, _), (new, _) in zip(pairs, pairs, strict=True))

    def _fail(self, why: str, tables: Iterable[TableName], group: EventGroup) -> None:
        names = [name for name in tables if not self._passes(self._tables[name], group.gtid)]
        if names:
            raise SeedTroubleError(f"{why} ({group.gtid or group.file})", names)


def _is_dummy(event: Event) -> bool:
    body = event.body
    return isinstance(body, RowsEvent) and not body.images


def _batch(images: list[bytes]) -> RowBatch:
    whole = b"".join(images)
    ends = np.cumsum([len(image) for image in images], dtype=np.int64)
    return RowBatch(keys=whole, key_ends=ends, images=whole, image_ends=ends)
