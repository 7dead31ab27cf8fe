"""Definitions, scope history and watermarks: one SQLite file, written by the store's owner alone.

Every change is on disk when its method returns. The tables are named as seed 000 names Xpand's,
so that `system.…` can be asked in SQL.

A mark says: this binlog's files are on disk up to `end`, and they are complete up to `position`.
Nothing behind `end` is promised, so that recovery may cut a torn tail there, and must not before.

Notes on closed files save looking at each when the store is opened. The notes decide nothing: a
file without a note is looked at, and each reader of a file finds out if the note is right.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from binlane.binlogs.store.database import SqliteDatabase
from binlane.binlogs.store.fills import Fill, FillTable, Seeding
from binlane.binlogs.store.grants import GrantTable
from binlane.binlogs.store.incidents import StoredIncident, decoded, encoded
from binlane.names import TableName
from binlane.positions import FilePosition, Position, parse_position
from binlane.statements.scope.definition import Definition, is_internal
from binlane.statements.scope.scope import Scope, ScopeList
from binlane.statements.sql.servers import LoggingMode, RowImage

CATALOG_FILE: Final = "binlane.sqlite3"
_SCOPE_TABLES: Final = (
    "binlog_log_databases",
    "binlog_ignore_databases",
    "binlog_log_tables",
    "binlog_ignore_tables",
)
_TABLES_OF_A_BINLOG: Final = (
    *("binlogs", "binlog_files", "binlog_grants", "binlog_fills", "binlog_seeds"),
    *_SCOPE_TABLES,
)


class CreationState(Enum):
    """Progress of the making or unmaking of a binlog got; both are finished after a crash."""

    CREATING = "creating"
    LIVE = "live"
    DROPPING = "dropping"


class BinlogActivity(Enum):
    """State of a live binlog towards the source, also after a restart.

    One that is FILLING, which is never saved, takes nothing from the source until its tables' rows are
    in it.
    """

    OPEN = "open"
    CATCHING_UP = "catching up"
    STOPPED = "stopped"
    FILLING = "reading rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The state of a binlog that is on disk for sure.

    Attributes:
        end: Up to where the files are synced: the end of an event group.
        position: The files up to `end` hold all of the scope up to this position of the source.
        clock: The last logical timestamp in the files, where the source is MySQL.
        clock_base: The number that was added to the source's logical timestamp to get `clock`; None
            if `clock` is added to the timestamps that follow.
        prepared: The XA transactions that the files prepare and do not finish.
        memory: Routing's memory of the groups up to there, as its own text.
        is_cut: True if the bytes behind the mark were made with another memory, and must not stay.
        incidents: INCIDENT events in the files that nobody has dealt with.
        unsearched: Before this place the files may hold further INCIDENT events, which an older
            binlane wrote; None if they hold none.
    """

    end: FilePosition
    position: Position
    clock: int = 0
    clock_base: int | None = None
    prepared: frozenset[str] = frozenset()
    memory: str = ""
    is_cut: bool = False
    incidents: tuple[StoredIncident, ...] = ()
    unsearched: FilePosition | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BinlogRecord:
    """A binlog as the catalog knows it.

    Attributes:
        state: Progress of its making or unmaking.
        begin: The source's position at its creation.
        mark: The last saved mark; None until the binlog is live.
        activity: Taking, catching up, or stopped, as it is to be after a restart.
        reason: The cause of its being stopped, for people.
    """

    definition: Definition
    state: CreationState
    begin: Position
    mark: Mark | None
    activity: BinlogActivity = BinlogActivity.OPEN
    reason: str = ""

    @property
    def is_live(self) -> bool:
        """True if the binlog exists for others."""
        return self.state is CreationState.LIVE


class ClosedFile(NamedTuple):
    """The catalog's note on a file that is written no more.

    Attributes:
        number: The number in the file's name.
        size_bytes: Size of the whole file in bytes.
        begin_gtids: GTID position that was done before the file.
        ended: Seconds since 1970 of the event that closed it.
    """

    number: int
    size_bytes: int
    begin_gtids: str
    ended: int


class ScopeChange(NamedTuple):
    """One change of one definition, with the definition that held from then on.

    Attributes:
        log_id: Id of the binlog in the catalog.
        name: Name of the binlog after the change.
        change: Kind of change: `create`, `alter`, `drop`, or `rows` for a beginning with rows.
        gtids: The source's position behind which it took effect.
        changed: Time of the change, seconds since 1970.
        logging_mode: The binlog's FORMAT, as written in SQL.
        log_all_dbs: 1 where everything is logged that is not ignored.
        log_list: The LOG list as SHOW prints it.
        ignore_list: The IGNORE list as SHOW prints it.
    """

    log_id: int
    name: str
    change: str
    gtids: str
    changed: int
    logging_mode: str
    log_all_dbs: int
    log_list: str
    ignore_list: str


class _BinlogRow(NamedTuple):
    """A row of the table `binlogs`."""

    log_id: int
    name: str
    state: str
    logging_mode: str
    log_all_dbs: int
    begin_gtids: str
    end_file: str | None
    end_position: int | None
    watermark: str | None
    flavor: str
    clock: int
    prepared: str
    memory: str
    is_cut: int
    activity: str
    reason: str
    ignores_case: int
    incidents: str
    unsearched_file: str | None
    unsearched_position: int | None
    row_image: str
    is_compressed: int
    follows_cascades: int


class Catalog:
    """The store's knowledge beyond its binlog files.

    Attributes:
        grants: Grants of READ: accounts with their binlogs.
        fills: Binlogs that are given their tables' rows, and where such rows stand.
    """

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database
        self.grants = GrantTable(database)
        self.fills = FillTable(database)

    @staticmethod
    def path_in(data_dir: Path) -> Path:
        """Give the path of the catalog of a data directory."""
        return data_dir / CATALOG_FILE

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open for writing, and make the tables in a new file.

        Raises:
            StoreError: If it cannot be used, or another version of binlane made it.
        """
        return cls(SqliteDatabase.open(path))

    @classmethod
    def open_read_only(cls, path: Path) -> Self:
        """Open for reading beside the owner.

        Raises:
            StoreError: As `open`.
        """
        return cls(SqliteDatabase.open_read_only(path))

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def binlogs(self) -> list[BinlogRecord]:
        """All binlogs by name, those half made or unmade included."""
        rows = self._database.rows(
            f"SELECT {', '.join(_BinlogRow._fields)} FROM binlogs ORDER BY name"  # noqa: S608  # our own names
        )
        return [self._record(_BinlogRow(*row)) for row in rows]

    def history(self) -> list[ScopeChange]:
        """All changes of definitions, those of binlogs that are gone included, oldest first."""
        rows = self._database.rows(
            "SELECT log_id, name, change, gtids, changed, logging_mode, log_all_dbs, log_list,"
            " ignore_list FROM binlog_scope_history ORDER BY rowid"
        )
        return [ScopeChange(*row) for row in rows]

    def next_log_id(self) -> int:
        """An id that no binlog has or had."""
        ((highest,),) = self._database.rows(
            "SELECT max(log_id) FROM"
            " (SELECT log_id FROM binlogs UNION ALL SELECT log_id FROM binlog_scope_history)"
        )
        return (highest or 0) + 1

    def begin_create(self, definition: Definition, begin: Position, *, created: int) -> None:
        """Note that the files of a binlog are being made."""
        with self._database.transaction() as connection:
            connection.execute(
                "INSERT INTO binlogs (log_id, name, state, logging_mode, log_all_dbs, created,"
                " begin_gtids, flavor, ignores_case, row_image, is_compressed,"
                " follows_cascades) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    definition.log_id,
                    definition.name,
                    CreationState.CREATING.value,
                    definition.logging_mode.value,
                    definition.scope.log_all,
                    created,
                    str(begin),
                    begin.flavor,
                    definition.scope.ignores_case,
                    definition.row_image.value,
                    definition.is_compressed,
                    definition.follows_cascades,
                ),
            )
            self._set_scope(connection, definition)

    def finish_create(
        self, definition: Definition, mark: Mark, *, created: int, fill: Fill | None = None
    ) -> None:
        """Note that a binlog is live, and is to be filled if `fill` says so."""
        with self._database.transaction() as connection:
            self._set_state(connection, definition.log_id, CreationState.LIVE)
            self._set_mark(connection, definition.log_id, mark)
            self._add_history(connection, definition, "create", mark.position, created)
            if fill is not None:
                self.fills.insert(connection, fill)

    def finish_fill(self, definition: Definition, mark: Mark, seeding: Seeding) -> None:
        """Note that a binlog has its rows, and logs by its definition from here on.

        It is to catch up with the source.
        """
        with self._database.transaction() as connection:
            self.fills.finish(connection, seeding)
            self._set_definition(connection, definition)
            self._set_mark(connection, definition.log_id, mark)
            self._set_activity(connection, definition.log_id, BinlogActivity.CATCHING_UP, "")
            change = "rows" if seeding.is_beginning else "alter"
            now = int(time.time())
            self._add_history(connection, definition, change, seeding.place, now)

    def alter(self, definition: Definition, mark: Mark, *, altered: int) -> None:
        """Give a live binlog another definition, from `mark.position` on."""
        with self._database.transaction() as connection:
            self._set_definition(connection, definition)
            self._set_mark(connection, definition.log_id, mark)
            self._add_history(connection, definition, "alter", mark.position, altered)

    def _set_definition(self, connection: sqlite3.Connection, definition: Definition) -> None:
        connection.execute(
            "UPDATE binlogs SET logging_mode = ?, log_all_dbs = ?, row_image = ?,"
            " is_compressed = ?, follows_cascades = ?"
            " WHERE log_id = ?",
            (
                definition.logging_mode.value,
                definition.scope.log_all,
                definition.row_image.value,
                definition.is_compressed,
                definition.follows_cascades,
                definition.log_id,
            ),
        )
        for table in _SCOPE_TABLES:
            self._delete(connection, table, definition.log_id)
        self._set_scope(connection, definition)

    def begin_drop(self, definition: Definition, position: Position, *, dropped: int) -> None:
        """Note that a binlog is gone and its files are being removed."""
        with self._database.transaction() as connection:
            self._set_state(connection, definition.log_id, CreationState.DROPPING)
            self._add_history(connection, definition, "drop", position, dropped)

    def remove(self, log_id: int) -> None:
        """Forget a binlog whose files are gone."""
        with self._database.transaction() as connection:
            for table in _TABLES_OF_A_BINLOG:
                self._delete(connection, table, log_id)

    def save_marks(self, marks: Mapping[int, Mark], identity: str | None = None) -> None:
        """Save marks of binlogs, whose files must be on disk for sure.

        Args:
            marks: Marks by the ids of their binlogs.
            identity: Text that tells the source from another one, where that is known.
        """
        with self._database.transaction() as connection:
            for log_id, mark in marks.items():
                self._set_mark(connection, log_id, mark)
            if identity is not None:
                connection.execute("DELETE FROM source_identity")
                connection.execute("INSERT INTO source_identity VALUES (?)", (identity,))

    def source_identity(self) -> str:
        """Give the last saved identity of the source, a text; empty if none was ever saved."""
        rows = self._database.rows("SELECT identity FROM source_identity")
        return str(rows[0][0]) if rows else ""

    def set_activity(self, log_id: int, activity: BinlogActivity, reason: str) -> None:
        """Note whether a binlog takes what the source gives."""
        with self._database.transaction() as connection:
            self._set_activity(connection, log_id, activity, reason)

    @staticmethod
    def _set_activity(
        connection: sqlite3.Connection, log_id: int, activity: BinlogActivity, reason: str
    ) -> None:
        connection.execute(
            "UPDATE binlogs SET activity = ?, reason = ? WHERE log_id = ?",
            (activity.value, reason, log_id),
        )

    def variables(self) -> dict[str, str]:
        """Give the values that SET GLOBAL gave the binlogs' variables, by name."""
        return dict(self._database.rows("SELECT name, value FROM variables"))

    def set_variables(self, values: Mapping[str, str | None]) -> None:
        """Give variables values; None takes one back."""
        with self._database.transaction() as connection:
            for name, value in values.items():
                connection.execute("DELETE FROM variables WHERE name = ?", (name,))
                if value is not None:
                    connection.execute("INSERT INTO variables VALUES (?, ?)", (name, value))

    def files(self, log_id: int, *, after: int = 0) -> list[ClosedFile]:
        """Give the notes on the closed files of a binlog whose numbers are above `after`."""
        rows = self._database.rows(
            "SELECT number, size_bytes, begin_gtids, ended FROM binlog_files"
            " WHERE log_id = ? AND number > ?",
            log_id,
            after,
        )
        return [ClosedFile(*row) for row in rows]

    def save_files(self, log_id: int, files: Iterable[ClosedFile]) -> None:
        """Note what closed files are; what was noted of them before is replaced."""
        with self._database.transaction() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO binlog_files VALUES (?, ?, ?, ?, ?)",
                [(log_id, *file) for file in files],
            )

    def forget_files(self, log_id: int, *, before: int) -> None:
        """Forget the files whose numbers are below `before`: they were purged."""
        with self._database.transaction() as connection:
            connection.execute(
                "DELETE FROM binlog_files WHERE log_id = ? AND number < ?", (log_id, before)
            )

    def _record(self, row: _BinlogRow) -> BinlogRecord:
        mark = None
        if row.end_file is not None and row.end_position is not None and row.watermark is not None:
            end = FilePosition(row.end_file, row.end_position)
            mark = Mark(
                end=end,
                position=parse_position(row.watermark, row.flavor),
                clock=row.clock,
                prepared=frozenset(row.prepared.split()),
                memory=row.memory,
                is_cut=bool(row.is_cut),
                incidents=decoded(row.incidents),
                unsearched=(
                    None
                    if row.unsearched_file is None
                    else FilePosition(row.unsearched_file, row.unsearched_position or 0)
                ),
            )
        definition = Definition(
            name=row.name,
            scope=self._scope(
                row.log_id, log_all=bool(row.log_all_dbs), ignores_case=bool(row.ignores_case)
            ),
            logging_mode=LoggingMode(row.logging_mode),
            log_id=row.log_id,
            row_image=RowImage(row.row_image),
            is_compressed=bool(row.is_compressed),
            follows_cascades=bool(row.follows_cascades),
        )
        return BinlogRecord(
            definition=definition,
            state=CreationState(row.state),
            begin=parse_position(row.begin_gtids, row.flavor),
            mark=mark,
            activity=BinlogActivity(row.activity),
            reason=row.reason,
        )

    def _scope(self, log_id: int, *, log_all: bool, ignores_case: bool) -> Scope:
        log_databases, ignore_databases, log_tables, ignore_tables = (
            self._database.rows(f"SELECT * FROM {table} WHERE log_id = ?", log_id)  # noqa: S608
            for table in _SCOPE_TABLES
        )
        return Scope(
            log_all=log_all,
            log_databases=frozenset(database for _, database in log_databases),
            log_tables=frozenset(TableName(database, table) for _, database, table in log_tables),
            ignore_databases=frozenset(database for _, database in ignore_databases),
            ignore_tables=frozenset(
                TableName(database, table) for _, database, table in ignore_tables
            ),
            ignores_case=ignores_case,
        )

    @staticmethod
    def _set_scope(connection: sqlite3.Connection, definition: Definition) -> None:
        scope, log_id = definition.scope, definition.log_id
        for table, databases in (
            ("binlog_log_databases", scope.log_databases),
            ("binlog_ignore_databases", scope.ignore_databases),
        ):
            rows = [(log_id, name) for name in sorted(databases)]
            connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)  # noqa: S608
        for table, tables in (
            ("binlog_log_tables", scope.log_tables),
            ("binlog_ignore_tables", scope.ignore_tables),
        ):
            names = [(log_id, name.database, name.table) for name in sorted(tables)]
            connection.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", names)  # noqa: S608

    @staticmethod
    def _delete(connection: sqlite3.Connection, table: str, log_id: int) -> None:
        connection.execute(f"DELETE FROM {table} WHERE log_id = ?", (log_id,))  # noqa: S608

    @staticmethod
    def _set_state(connection: sqlite3.Connection, log_id: int, state: CreationState) -> None:
        connection.execute("UPDATE binlogs SET state = ? WHERE log_id = ?", (state.value, log_id))

    @staticmethod
    def _set_mark(connection: sqlite3.Connection, log_id: int, mark: Mark) -> None:
        connection.execute(
            "UPDATE binlogs SET end_file = ?, end_position = ?, watermark = ?, clock = ?,"
            " prepared = ?, memory = ?, is_cut = ?, incidents = ?, unsearched_file = ?,"
            " unsearched_position = ? WHERE log_id = ?",
            (
                mark.end.file,
                mark.end.position,
                str(mark.position),
                mark.clock,
                " ".join(sorted(mark.prepared)),
                mark.memory,
                mark.is_cut,
                encoded(mark.incidents),
                None if mark.unsearched is None else mark.unsearched.file,
                None if mark.unsearched is None else mark.unsearched.position,
                log_id,
            ),
        )

    @staticmethod
    def _add_history(
        connection: sqlite3.Connection,
        definition: Definition,
        change: str,
        position: Position,
        changed: int,
    ) -> None:
        scope = definition.scope
        if is_internal(definition.name):
            return  # it is no binlog of anybody's
        connection.execute(
            "INSERT INTO binlog_scope_history VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                definition.log_id,
                definition.name,
                change,
                str(position),
                changed,
                definition.logging_mode.value,
                scope.log_all,
                scope.render(ScopeList.LOG),
                scope.render(ScopeList.IGNORE),
            ),
        )
