"""The tables as a binlog describes them at one place: a digest of each, and why it may not count.

The state follows the binlog's event groups in order. It knows of a table's rows what INSERT, UPDATE
and DELETE say of them in full images; where something else changes a table, the state says so, and
the digest counts again from the next *baseline* on: rows that were read from a server at one place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

import numpy as np

from binlane.errors import CodecError, UnsupportedError
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.rows import (
    DeleteRowsEvent,
    PartialUpdateRowsEvent,
    RowsEvent,
    TableMapEvent,
    UpdateRowsEvent,
)
from binlane.log.codec.transaction import GtidEvent
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import EventGroup
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.table_maps import TableMaps, rows_with_tables
from binlane.log.grouping.xa import finished_by, prepared_in
from binlane.names import TableName
from binlane.positions import FilePosition
from binlane.statements.sql.facts import StatementEffects, StatementFacts
from binlane.statements.sql.logged_statements import followed_statement
from binlane.statements.sql.statement_kinds import (
    OPEN_ENDED_KINDS,
    TABLE_MAKING_KINDS,
    StatementKind,
)
from binlane.statements.sql.tree.definitions import AlterTable
from binlane.tables.columnar.log_notes import (
    LogNoteKind,
    may_concern_tables,
    statement_of,
    undecided,
)
from binlane.tables.proof.row_hashes import RowHasher, row_layout
from binlane.tables.proof.table_digest import TableDigest
from binlane.tables.proof.watched_changes import Signs, WatchedChanges

_HASHERS_MAX: Final = 512
_ROW_STATEMENTS: Final = frozenset(
    (
        StatementKind.INSERT,
        StatementKind.REPLACE,
        StatementKind.UPDATE,
        StatementKind.DELETE,
        StatementKind.LOAD_DATA,
        StatementKind.CREATE_TABLE_SELECT,
    )
)
_NO_ROWS: Final = frozenset(
    (
        *(StatementKind.CREATE_INDEX, StatementKind.DROP_INDEX, StatementKind.MAINTENANCE),
        *(StatementKind.CREATE_VIEW, StatementKind.ALTER_VIEW, StatementKind.DROP_VIEW),
        *(StatementKind.CREATE_TRIGGER, StatementKind.DROP_TRIGGER, StatementKind.CREATE_ROUTINE),
        *(StatementKind.ALTER_ROUTINE, StatementKind.DROP_ROUTINE, StatementKind.CREATE_EVENT),
        *(StatementKind.ALTER_EVENT, StatementKind.DROP_EVENT, StatementKind.CREATE_PACKAGE),
        *(StatementKind.DROP_PACKAGE, StatementKind.CREATE_LIBRARY, StatementKind.ALTER_LIBRARY),
        *(StatementKind.DROP_LIBRARY, StatementKind.CREATE_SEQUENCE, StatementKind.ALTER_SEQUENCE),
        *(StatementKind.DROP_SEQUENCE, StatementKind.CREATE_REFERENCE_SYSTEM),
        *(StatementKind.DROP_REFERENCE_SYSTEM, StatementKind.CREATE_DATABASE),
        *(StatementKind.ALTER_DATABASE, StatementKind.ACCOUNT, StatementKind.SERVER),
        *(StatementKind.TABLESPACE, StatementKind.FLUSH, StatementKind.SET, StatementKind.EMPTY),
        *(StatementKind.BEGIN, StatementKind.COMMIT, StatementKind.ROLLBACK, StatementKind.XA),
        *(StatementKind.SAVEPOINT, StatementKind.ROLLBACK_TO, StatementKind.RELEASE_SAVEPOINT),
        *(StatementKind.SESSION, StatementKind.LOCK, StatementKind.RENAME_TABLE),
        StatementKind.DROP_DATABASE,
    )
)
_SAME_ROWS: Final = frozenset(
    (
        *("ADD KEY", "DROP KEY", "RENAME KEY", "ALTER KEY", "DROP PRIMARY KEY", "ADD CHECK"),
        *("DROP CHECK", "ALTER CHECK", "DROP FOREIGN KEY", "DROP CONSTRAINT", "ALTER CONSTRAINT"),
        *("ALTER COLUMN", "RENAME COLUMN", "RENAME", "OPTION", "ORDER BY", "ENABLE KEYS", "FORCE"),
        *("DISABLE KEYS", "ALGORITHM", "LOCK", "VALIDATION", "PARTITION BY", "REMOVE PARTITIONING"),
    )
)
"""Actions of ALTER TABLE behind which all rows have the images that they had before."""


class DigestGap(Enum):
    """Reasons why a table's digest does not tell the table's rows."""

    NO_BEGINNING = "its rows from before the binlog's first change of it are not in the binlog"
    STATEMENTS = "statements changed its rows, and the binlog has only their text"
    ROW_IMAGES = "the binlog has no whole row images of it"
    ALTERED = "ALTER TABLE changed its rows or columns"
    ROLLED_BACK = "a transaction was rolled back in part, and the log does not tell which rows stay"
    PREPARED = "an XA transaction was committed that was prepared before what the binlog has"
    PURGED = "files of the binlog were purged before they were compared"
    UNKNOWN_STATEMENT = "a statement was logged whose effect on it is not known"
    UNREADABLE_ROWS = "rows of it cannot be told from each other"
    CASCADES = "foreign keys changed its rows with those of a parent, which no log has"
    SCOPE = "it was out of the binlog's scope for a time"


@dataclass(slots=True)
class DescribedTable:
    """One table as a binlog describes it.

    Attributes:
        digest: Digest of its rows; it counts only without a doubt.
        layout: Layout of its row images, as of `row_layout`; empty before the first.
        since: GTID position at which the digest began to count.
        is_whole: True if the binlog has every row of the table, False if it began with a baseline.
        doubt: Why the digest does not tell the rows; None if it does.
        doubt_gtid: GTID of the group that gave the first doubt.
        changes: Number of row images that were counted.
        base: Name of the file with the rows' hashes as they were at `base_place`; empty if none is
            kept.
        base_place: Place in the binlog at which the table had the rows of `base`.
    """

    digest: TableDigest = field(default_factory=TableDigest)
    layout: bytes = b""
    since: str = ""
    is_whole: bool = False
    doubt: DigestGap | None = None
    doubt_gtid: str = ""
    changes: int = 0
    base: str = ""
    base_place: FilePosition | None = None

    @property
    def is_new(self) -> bool:
        """True if it has had no rows since it was made or emptied."""
        return self.is_whole and self.doubt is None and not self.changes

    def distrust(self, doubt: DigestGap, gtid: str) -> None:
        """Count nothing until the next baseline; the first reason is kept."""
        if self.doubt is None:
            self.doubt, self.doubt_gtid = doubt, gtid


class _Origin(NamedTuple):
    """File, format and GTID of the group that an event is of."""

    file: str
    format_: Format
    gtid: str


@dataclass(slots=True)
class DescribedTables:
    """The tables of one binlog at one place in it.

    Attributes:
        tables: The described tables by their names.
        prepared: XA transactions that are prepared: where the groups with their rows begin.
        place: Where the next event group begins; None before the first.
        watches: Changes of tables that are kept beside the digests, by the tables' names.
    """

    tables: dict[TableName, DescribedTable] = field(default_factory=dict)
    prepared: dict[str, FilePosition] = field(default_factory=dict)
    place: FilePosition | None = None
    watches: dict[TableName, WatchedChanges] = field(default_factory=dict)
    _hashers: dict[tuple[bytes, str], RowHasher | None] = field(default_factory=dict)

    def table(self, name: TableName) -> DescribedTable:
        """Give a table, also one of which the binlog has said nothing yet."""
        known = self.tables.get(name)
        if known is None:
            known = self.tables[name] = DescribedTable(doubt=DigestGap.NO_BEGINNING)
        return known

    def distrust(self, names: Iterable[TableName], doubt: DigestGap, gtid: str) -> None:
        """Trust the digests of some tables no more."""
        for name in names:
            self.table(name).distrust(doubt, gtid)
            self._interrupt(name, doubt.value)

    def distrust_all(self, doubt: DigestGap, gtid: str) -> None:
        """Trust no digest any more."""
        self.distrust(tuple(self.tables), doubt, gtid)
        for name in self.watches:
            self._interrupt(name, doubt.value)

    # The log --------------------------------------------------------------------------------------

    def follow(self, group: EventGroup, format_: Format) -> str | None:
        """Follow the binlog by its next event group.

        Args:
            group: The group, which is complete.
            format_: Format of the group's file.

        Returns:
            The XA transaction that the group commits and whose rows now take effect: `take_rows`
            is to be called with the group that prepared it, if that is known. None otherwise.

        Raises:
            CodecError: With file and position, if the group is damaged.
        """
        if group.is_control or not group.is_complete:
            return None
        gtid = "" if group.gtid is None else str(group.gtid)
        doubted = undecided(group.events)
        is_undone = isinstance(group.events[0].body, GtidEvent) and group.events[0].body.is_undone
        xid = prepared_in(group.events[-1], format_)
        if xid is not None:
            self.prepared[xid] = FilePosition(group.file, group.position)
        is_doubted = doubted is not None and doubted[0] is LogNoteKind.ROLLED_BACK
        maps = TableMaps()
        # In their order: CREATE TABLE … SELECT is one group of a statement and rows.
        for event in expanded_all(group.events, file=group.file, format_=format_):
            table_map = maps.feed(event, file=group.file)
            if table_map is not None and is_doubted:
                self.distrust((table_map.name,), DigestGap.ROLLED_BACK, gtid)
            elif table_map is not None and xid is None:
                self._take_event(event, table_map, _Origin(group.file, format_, gtid))
            elif not is_undone:
                self._follow_statement(event, gtid)
        return next(filter(None, map(finished_by, group.events)), None)

    def take_rows(self, group: EventGroup, format_: Format, gtid: str) -> None:
        """Take the rows of a group, which take effect at a GTID.

        Args:
            group: The group with the rows.
            format_: Format of the group's file.
            gtid: The GTID at which they take effect.

        Raises:
            CodecError: With file and position, if a row is damaged.
        """
        for event, _, table_map in rows_with_tables(group.events, file=group.file, format_=format_):
            self._take_event(event, table_map, _Origin(group.file, format_, gtid))

    def _take_event(self, event: Event, table_map: TableMapEvent, origin: _Origin) -> None:
        assert isinstance(event.body, RowsEvent), "only rows have a table map"
        try:
            self._take(event.body, table_map, origin.format_, origin.gtid)
        except UnsupportedError:
            self.distrust((table_map.name,), DigestGap.UNREADABLE_ROWS, origin.gtid)
        except CodecError as error:
            raise error.at(origin.file, event.position) from None

    def _take(self, body: RowsEvent, table_map: TableMapEvent, format_: Format, gtid: str) -> None:
        name, layout = table_map.name, row_layout(table_map)
        table = self.table(name)
        watch = self.watches.get(name)
        if table.doubt is not None and watch is None:
            return
        if not table.layout:
            table.layout = layout
        if table.layout != layout:
            self.distrust((name,), DigestGap.ALTERED, gtid)
            return
        hasher = self._hasher(table_map, layout, format_)
        is_whole = not isinstance(body, PartialUpdateRowsEvent) and _has_all_columns(body)
        if hasher is None or not is_whole:
            doubt = DigestGap.UNREADABLE_ROWS if is_whole else DigestGap.ROW_IMAGES
            self.distrust((name,), doubt, gtid)
            return
        images = body.plain_images
        hashes, starts = hasher.hash(images)
        signs = _signs(body, len(hashes))
        table.changes += len(hashes)
        if table.doubt is None:
            table.digest.add(hashes[signs > 0])
            table.digest.remove(hashes[signs < 0])
        if watch is not None:
            watch.take(hashes, signs, gtid)
            if watch.wanted:
                watch.keep_wanted(hashes, starts, images, gtid)

    def _hasher(self, table_map: TableMapEvent, layout: bytes, format_: Format) -> RowHasher | None:
        key = layout, format_.flavor.value
        if key not in self._hashers:
            if len(self._hashers) >= _HASHERS_MAX:
                self._hashers.clear()
            try:
                self._hashers[key] = RowHasher(table_map, format_.flavor)
            except CodecError:
                self._hashers[key] = None
        return self._hashers[key]

    # Statements -----------------------------------------------------------------------------------

    def _follow_statement(self, event: Event, gtid: str) -> None:
        body = statement_of(event)
        if body is None or not may_concern_tables(event):
            return
        facts = followed_statement(body).facts()
        if event.header.type_code == EventType.QUERY and not body.query.strip():
            return
        self._apply(facts, gtid)

    def _apply(self, facts: StatementFacts, gtid: str) -> None:
        effects, kind = facts.effects, facts.effects.kind
        if effects.is_temporary:
            return
        self._drop_databases(effects.dropped_databases)
        self._rename(dict(effects.net_renames))
        if kind is StatementKind.ALTER_TABLE:
            self._alter(facts, effects, gtid)
        elif kind in TABLE_MAKING_KINDS and kind is not StatementKind.CREATE_TABLE_SELECT:
            self._make(effects, gtid)
        elif kind is StatementKind.DROP_TABLE:
            for name in effects.drops or effects.writes:
                self._forget(name)
        elif kind is StatementKind.TRUNCATE_TABLE:
            for name in effects.writes:
                self._begin(name, gtid)
        elif kind not in _NO_ROWS:
            self._distrust_written(facts, gtid)

    def _distrust_written(self, facts: StatementFacts, gtid: str) -> None:
        """Trust no table that a statement may have changed."""
        effects = facts.effects
        if effects.kind in OPEN_ENDED_KINDS or effects.stopped_at is not None:
            self.distrust_all(DigestGap.STATEMENTS, gtid)
        elif effects.kind in _ROW_STATEMENTS:
            self.distrust(effects.writes, DigestGap.STATEMENTS, gtid)
            self._distrust_called(facts, gtid)
        else:
            self.distrust_all(DigestGap.UNKNOWN_STATEMENT, gtid)

    def _distrust_called(self, facts: StatementFacts, gtid: str) -> None:
        """A stored function may change any table; built-in ones change none."""
        from binlane.statements.sql.evaluation.functions import is_built_in  # noqa: PLC0415 - texts are rare

        if any(use.database is not None or not is_built_in(use.name) for use in facts.functions):
            self.distrust_all(DigestGap.STATEMENTS, gtid)

    def _make(self, effects: StatementEffects, gtid: str) -> None:
        name = effects.made
        if name is None or effects.kind is StatementKind.CREATE_SEQUENCE:
            return
        if not effects.if_exists:
            self._begin(name, gtid)
        elif name not in self.tables:
            # Nobody knows if the table was there before.
            self.table(name)

    def _alter(self, facts: StatementFacts, effects: StatementEffects, gtid: str) -> None:
        node = facts.tree
        is_harmless = (
            isinstance(node, AlterTable)
            and effects.stopped_at is None
            and "IGNORE" not in node.modifiers
            and all(action.kind in _SAME_ROWS for action in node.actions)
        )
        if not is_harmless:
            renamed = dict(effects.net_renames)
            names = {renamed.get(name, name) for name in effects.writes} & self.tables.keys()
            # Of two tables one may have got the other's rows.
            is_lone = len(effects.writes) == 1
            self.distrust(
                (name for name in names if not (is_lone and self.tables[name].is_new)),
                DigestGap.ALTERED,
                gtid,
            )
            for name in names:
                self.tables[name].layout = b""

    def _begin(self, name: TableName, gtid: str) -> None:
        """A table has no rows here."""
        watch = self.watches.get(name)
        if watch is not None and watch.is_replay:
            watch.restart()
        self._interrupt(name, "it was made or emptied while it was read")
        self.tables[name] = DescribedTable(since=gtid, is_whole=True)

    def _forget(self, name: TableName) -> None:
        self._interrupt(name, "it was dropped while it was read")
        self.tables.pop(name, None)

    def _drop_databases(self, databases: Collection[str]) -> None:
        if databases:
            for name in [name for name in self.tables if name.database in databases]:
                self._forget(name)

    def _rename(self, renames: Mapping[TableName, TableName]) -> None:
        moved = {new: self.tables.pop(old) for old, new in renames.items() if old in self.tables}
        for old, new in renames.items():
            self._interrupt(old, "it was renamed while it was read")
            self._interrupt(new, "it was renamed while it was read")
        self.tables.update(moved)

    def _interrupt(self, name: TableName, why: str) -> None:
        watch = self.watches.get(name)
        if watch is not None and not watch.is_replay:
            watch.interruption = watch.interruption or why


def _signs(body: RowsEvent, count: int) -> Signs:
    signs = np.full(count, -1 if isinstance(body, DeleteRowsEvent) else 1, np.int8)
    if isinstance(body, UpdateRowsEvent):
        if count % 2:
            raise CodecError("an UPDATE has a before image without its after image")
        signs[0::2] = -1
    return signs


def _has_all_columns(body: RowsEvent) -> bool:
    return all(
        _is_full(bitmap, body.column_count)
        for bitmap in (body.columns_present, body.columns_present_after)
        if bitmap is not None
    )


def _is_full(bitmap: bytes, columns: int) -> bool:
    everything = (1 << columns) - 1
    return int.from_bytes(bitmap, "little") & everything == everything
