"""The groups of a binlog's own files → the rows of its children behind them.

Whatever is not known for sure makes a table's rows unknown, with the reason.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from binlane.binlogs.routing.cascade_replay import CascadeReplay, FollowedTable, UnknownRowsError
from binlane.binlogs.routing.row_selection import table_name, whole_rows
from binlane.binlogs.store.child_rows import FilePlace, KeptChildren
from binlane.binlogs.store.chunks import open_chunks
from binlane.binlogs.store.files import BinlogFile, last_beginning, read_head
from binlane.errors import CodecError
from binlane.log.codec.control import IncidentEvent
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import GroupTracker
from binlane.log.grouping.inner import expanded
from binlane.log.grouping.table_maps import TableMaps
from binlane.log.grouping.walk import Walker
from binlane.names import TableName
from binlane.statements.scope.definition import Definition
from binlane.statements.sql.facts import StatementEffects, StatementFacts
from binlane.statements.sql.logged_statements import logged_statement
from binlane.statements.sql.statement_kinds import (
    OPEN_ENDED_KINDS,
    READING_KINDS,
    WRITING_KINDS,
    StatementKind,
)
from binlane.statements.sql.tree.definitions import AlterTable

_COMMIT_BYTES: Final = 4 << 20
_AS_STATEMENT: Final = (
    OPEN_ENDED_KINDS
    | WRITING_KINDS
    | READING_KINDS
    | {StatementKind.UNKNOWN, StatementKind.CREATE_TABLE_SELECT}
)
# Columns that follow from others change with them; rows of versioned tables do not go.
_FOLLOWING: Final = re.compile(
    r"\b(GENERATED|VIRTUAL|PERSISTENT|STORED|SYSTEM|PERIOD)\b|\bAS\s*\(", re.IGNORECASE
)
_HARMLESS_ACTIONS: Final = frozenset(
    {
        *("ADD KEY", "DROP KEY", "RENAME KEY", "ALTER KEY", "DROP FOREIGN KEY", "DROP CONSTRAINT"),
        *("ADD CHECK", "DROP CHECK", "ALTER CHECK", "ALTER CONSTRAINT", "RENAME", "ALGORITHM"),
        *("LOCK", "FORCE", "ENABLE KEYS", "DISABLE KEYS", "DROP PRIMARY KEY", "ALTER COLUMN"),
    }
)
_HARMLESS_OPTIONS: Final = frozenset({"AUTO_INCREMENT", "COMMENT", "STATS_PERSISTENT"})
_CHECKED_BYTES: Final = 256


class BinlogOfChildren(Protocol):
    """The binlog whose files are followed."""

    definition: Definition

    @property
    def source_format(self) -> Format:
        """Format of the events that it is given."""
        ...

    @property
    def size_bytes(self) -> int:
        """Position in the last file at which the next event group will begin."""
        ...

    def files(self) -> tuple[BinlogFile, ...]:
        """The files of the binlog, oldest first."""
        ...

    def write_appended(self) -> None:
        """Have all groups that were appended in the file."""
        ...


def check_of(path: Path, position: int) -> str:
    """A hash of the bytes before a position of a file."""
    with path.open("rb") as stream:
        stream.seek(max(0, position - _CHECKED_BYTES))
        return hashlib.blake2b(stream.read(min(position, _CHECKED_BYTES))).hexdigest()[:32]


class FileReading:
    """The groups of a binlog behind a place, read in order.

    Args:
        kept: What is known at that place.
        binlog: The binlog whose files are read, up to its end.
        goes_on: False once the reading is to end, where something was kept last.
    """

    def __init__(
        self,
        kept: KeptChildren,
        binlog: BinlogOfChildren,
        goes_on: Callable[[], bool] = lambda: True,
    ) -> None:
        self._kept, self._binlog, self._goes_on = kept, binlog, goes_on
        self._scope = binlog.definition.scope
        self._touched: set[TableName] = set()
        self._mapped: set[TableName] = set()
        self._maps = TableMaps()
        self._replay = self._new_replay()
        self._format: Format | None = None
        self._is_inside = False

    def _new_replay(self) -> CascadeReplay:
        flavor = self._binlog.source_format.flavor
        replay = self._kept.replay(self._kept.state.links, self._scope, flavor)
        replay.on_unknown = lambda error: self._lose(error.table, error.reason)
        return replay

    def read(self) -> bool:
        """Read up to the binlog's end, and keep what is known there.

        Returns:
            False if it ends inside of a group, of which nothing is kept, or is not to go on.
        """
        state, rows, before = self._kept.state, self._kept.rows, self._kept.state.place
        files = self._binlog.files()
        names = [file.name for file in files]
        first = names.index(state.place.file) if state.place.file else last_beginning(files)
        rows.begin()
        for number, file in enumerate(files[first:], first):
            path = file.directory / file.name
            head = read_head(path)
            self._format = head.format_description.format
            is_at = state.place.file == file.name
            position = state.place.position if is_at else head.size_bytes
            end = self._binlog.size_bytes if number == len(files) - 1 else file.size_bytes
            if position < end:
                self._read_file(path, position, end)
                if not self._goes_on():
                    return False
            elif not is_at:
                state.place = FilePlace(file.name, position, check_of(path, position))
        if self._is_inside:
            return False
        if state.place == before:
            rows.roll_back()
        else:
            rows.commit(state.encode(self._format))
        return True

    def _read_file(self, path: Path, position: int, end: int) -> None:
        state, rows, tracker = self._kept.state, self._kept.rows, GroupTracker()
        committed = done = position
        assert self._format is not None, "the head was read"
        chunks = open_chunks(path, position=position)
        walker = Walker(chunks, file=str(path), position=position, format_=self._format)
        for event in walker.events():
            if not self._goes_on():
                return
            for each in expanded(event, self._format, file=path.name):
                self._take(each, path.name)
            self._is_inside = not tracker.feed(event).ends
            if not self._is_inside:
                done = event.next_position
                self._touched.clear()
                self._mapped.clear()
            if done - committed >= _COMMIT_BYTES:
                state.place = FilePlace(path.name, done, check_of(path, done))
                rows.commit(state.encode(self._format))
                rows.begin()
                committed = done
            if event.next_position >= end:
                break
        state.place = FilePlace(path.name, done, check_of(path, done))

    def _take(self, event: Event, file: str) -> None:
        assert self._format is not None, "the head was read"
        whole = whole_rows(event, self._format)
        body = whole.body
        owner = self._maps.feed(whole, file=file)
        try:
            if isinstance(body, TableMapEvent):
                table = self._scope.key(table_name(body))
                self._mapped.add(table)
                self._replay.see_map(table, body)
            elif isinstance(body, RowsEvent) and owner is not None:
                self._touched.add(self._scope.key(table_name(owner)))
                changes = self._replay.feed(body, owner, self._mapped)
                self._touched.update(change.table for change in changes)
            else:
                self._take_other(event)
        except UnknownRowsError as error:
            self._lose(error.table, error.reason)
            if owner is not None:
                # Nobody looked at the rest of its rows.
                self._lose(self._scope.key(table_name(owner)), error.reason)
        except CodecError as error:
            self._kept.lose_all(f"an event cannot be read: {error.message}")
        if isinstance(body, RowsEvent) and body.ends_statement:
            self._mapped.clear()
            self._replay.begin_statement()

    def _take_other(self, event: Event) -> None:
        """Take an event that is no piece of a statement's rows."""
        body, type_code = event.body, event.header.type_code
        if isinstance(body, IncidentEvent):
            self._kept.lose_all("an INCIDENT is in the binlog")
        elif type_code == EventType.XA_PREPARE_LOG:
            self._lose_touched("an XA transaction was prepared")
        elif type_code == EventType.EXECUTE_LOAD_QUERY:
            self._kept.lose_all("a change was logged as a statement")
        elif isinstance(body, QueryEvent) and body.query not in (b"BEGIN", b"COMMIT"):
            self._query(body)

    def _lose(self, table: TableName, reason: str) -> None:
        """Know a table no more, nor those whose parents its rows are."""
        self._kept.lose_with_children(table, reason)

    def _lose_touched(self, reason: str) -> None:
        for table in self._touched:
            self._kept.lose(table, reason)

    def _query(self, body: QueryEvent) -> None:
        if body.query == b"ROLLBACK":
            self._lose_touched("a transaction was rolled back in part")
            return
        facts = logged_statement(body).facts()
        effects, kind = facts.effects, facts.effects.kind
        if kind is StatementKind.ROLLBACK_TO:
            self._lose_touched("a transaction was rolled back in part")
        elif effects.stopped_at is not None or kind in _AS_STATEMENT:
            self._kept.lose_all("a change was logged as a statement")
        elif not effects.is_temporary:
            self._follow(facts, effects)

    def _follow(self, facts: StatementFacts, effects: StatementEffects) -> None:
        """Follow DDL."""
        kept, scope = self._kept, self._scope
        links = kept.state.links.after(facts, effects)
        links = links.folded if scope.ignores_case else links
        dropped = set(map(scope.key, effects.drops)) | {
            table
            for table in kept.state.tables
            if any(scope.is_same(table.database, one) for one in effects.dropped_databases)
        }
        for table in dropped:
            self._forget(table)
        names = {scope.key(old): scope.key(new) for old, new in effects.net_renames}
        for table in map(scope.key, effects.writes):
            if known := kept.state.tables.get(table):
                self._follow_table(table, known, facts)
        if names:
            kept.rename(names)
        if links != kept.state.links:
            kept.state.links = links
        self._replay = self._new_replay()

    def _follow_table(self, table: TableName, known: FollowedTable, facts: StatementFacts) -> None:
        """Follow DDL on a table whose rows are kept."""
        kind = facts.effects.kind
        if kind is StatementKind.CREATE_TABLE and not facts.effects.if_exists:
            self._forget(table)
            known.is_plain = not _FOLLOWING.search(facts.text)
            known.reason = "columns of it follow from others"
            self._kept.know_empty(table)
        elif kind is StatementKind.TRUNCATE_TABLE:
            self._kept.know_empty(table)
        elif kind is StatementKind.CREATE_TABLE_LIKE:
            self._forget(table)
        elif kind in (StatementKind.ALTER_TABLE, StatementKind.RENAME_TABLE):
            self._altered(table, known, facts)
        elif kind in (StatementKind.CREATE_INDEX, StatementKind.DROP_INDEX):
            known.is_altered = True

    def _forget(self, table: TableName) -> None:
        """A table is gone, or another one."""
        self._kept.lose(table, "it was dropped")
        if known := self._kept.state.tables.get(table):
            known.is_plain, known.table_map = False, None

    def _altered(self, table: TableName, known: FollowedTable, facts: StatementFacts) -> None:
        node = facts.tree
        if not isinstance(node, AlterTable):
            return
        known.is_plain = known.is_plain and not _FOLLOWING.search(facts.text)
        is_harmless = known.is_plain and all(
            action.kind in _HARMLESS_ACTIONS
            or (
                action.kind == "OPTION"
                and action.option is not None
                and action.option.name in _HARMLESS_OPTIONS
            )
            for action in node.actions
        )
        known.is_altered = True
        if is_harmless:
            return
        is_filled = any(action.kind == "IMPORT TABLESPACE" for action in node.actions)
        if is_filled or not known.is_plain or self._kept.rows.has_rows(table):
            self._kept.lose(table, "it was altered")
        else:
            self._kept.know_empty(table)
