"""The SQLite file below the catalog: how it is opened, its tables, its transactions, its errors."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

from binlane.binlogs.store.disk import FILE_MODE
from binlane.errors import CorruptStoreError, StoreError, StoreFullError

SCHEMA_VERSION: Final = 12
_BUSY_TIMEOUT_S: Final = 10.0

_FILES: Final = """
CREATE TABLE binlog_files (
    log_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL,
    begin_gtids TEXT NOT NULL,
    ended INTEGER NOT NULL,
    PRIMARY KEY (log_id, number)
) STRICT, WITHOUT ROWID;
"""
_IDENTITY: Final = "CREATE TABLE source_identity (identity TEXT NOT NULL) STRICT;"
_VARIABLES: Final = "CREATE TABLE variables (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;"
_GRANTS: Final = """
CREATE TABLE binlog_grants (
    log_id INTEGER NOT NULL,
    user TEXT NOT NULL,
    host TEXT NOT NULL,
    since TEXT NOT NULL,
    flavor TEXT NOT NULL,
    granted INTEGER NOT NULL,
    PRIMARY KEY (log_id, user, host)
) STRICT, WITHOUT ROWID;
CREATE TABLE accounts_known (gtids TEXT NOT NULL, flavor TEXT NOT NULL) STRICT;
"""
_FILLS: Final = """
CREATE TABLE binlog_fills (
    log_id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    statement TEXT NOT NULL,
    place TEXT,
    flavor TEXT NOT NULL,
    created INTEGER NOT NULL
) STRICT;
CREATE TABLE binlog_seeds (
    log_id INTEGER NOT NULL,
    source TEXT NOT NULL,
    server_id INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER,
    place TEXT NOT NULL,
    flavor TEXT NOT NULL,
    is_beginning INTEGER NOT NULL,
    first_file TEXT NOT NULL,
    PRIMARY KEY (log_id, first)
) STRICT, WITHOUT ROWID;
CREATE TABLE seed_source (name TEXT NOT NULL, server_id INTEGER NOT NULL) STRICT;
CREATE TABLE seed_block (first INTEGER NOT NULL) STRICT;
"""
_ARRIVALS: Final = "ALTER TABLE binlog_seeds ADD COLUMN is_arrival INTEGER NOT NULL DEFAULT 0;"
_SCHEMA: Final = f"""{_FILES} {_IDENTITY} {_VARIABLES} {_GRANTS} {_FILLS} {_ARRIVALS}
CREATE TABLE binlogs (
    log_id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL,
    logging_mode TEXT NOT NULL,
    log_all_dbs INTEGER NOT NULL,
    created INTEGER NOT NULL,
    begin_gtids TEXT NOT NULL,
    end_file TEXT,
    end_position INTEGER,
    watermark TEXT,
    flavor TEXT NOT NULL DEFAULT 'mariadb',
    clock INTEGER NOT NULL DEFAULT 0,
    prepared TEXT NOT NULL DEFAULT '',
    memory TEXT NOT NULL DEFAULT '',
    is_cut INTEGER NOT NULL DEFAULT 0,
    activity TEXT NOT NULL DEFAULT 'open',
    reason TEXT NOT NULL DEFAULT '',
    ignores_case INTEGER NOT NULL DEFAULT 0,
    incidents TEXT NOT NULL DEFAULT '',
    unsearched_file TEXT,
    unsearched_position INTEGER,
    row_image TEXT NOT NULL DEFAULT 'FULL',
    is_compressed INTEGER NOT NULL DEFAULT 0,
    follows_cascades INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE binlog_log_databases (log_id INTEGER NOT NULL, "database" TEXT NOT NULL) STRICT;
CREATE TABLE binlog_ignore_databases (log_id INTEGER NOT NULL, "database" TEXT NOT NULL) STRICT;
CREATE TABLE binlog_log_tables (
    log_id INTEGER NOT NULL, "database" TEXT NOT NULL, "table" TEXT NOT NULL
) STRICT;
CREATE TABLE binlog_ignore_tables (
    log_id INTEGER NOT NULL, "database" TEXT NOT NULL, "table" TEXT NOT NULL
) STRICT;
CREATE TABLE binlog_scope_history (
    log_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    change TEXT NOT NULL,
    gtids TEXT NOT NULL,
    changed INTEGER NOT NULL,
    logging_mode TEXT NOT NULL,
    log_all_dbs INTEGER NOT NULL,
    log_list TEXT NOT NULL,
    ignore_list TEXT NOT NULL
) STRICT;
-- Written by versions before, and read by none: it goes with the next version.
CREATE TABLE source (gtids TEXT NOT NULL, flavor TEXT NOT NULL DEFAULT 'mariadb') STRICT;
"""

_UPGRADES: Final = {
    1: """
ALTER TABLE binlogs ADD COLUMN flavor TEXT NOT NULL DEFAULT 'mariadb';
ALTER TABLE binlogs ADD COLUMN clock INTEGER NOT NULL DEFAULT 0;
ALTER TABLE source ADD COLUMN flavor TEXT NOT NULL DEFAULT 'mariadb';
""",
    2: f"{_FILES} ALTER TABLE binlogs ADD COLUMN prepared TEXT NOT NULL DEFAULT '';",
    3: f"""{_IDENTITY}
ALTER TABLE binlogs ADD COLUMN memory TEXT NOT NULL DEFAULT '';
ALTER TABLE binlogs ADD COLUMN is_cut INTEGER NOT NULL DEFAULT 0;
ALTER TABLE binlogs ADD COLUMN activity TEXT NOT NULL DEFAULT 'open';
ALTER TABLE binlogs ADD COLUMN reason TEXT NOT NULL DEFAULT '';
ALTER TABLE binlogs ADD COLUMN ignores_case INTEGER NOT NULL DEFAULT 0;
""",
    4: _VARIABLES,
    5: _GRANTS,
    6: """
ALTER TABLE binlogs ADD COLUMN incidents TEXT NOT NULL DEFAULT '';
ALTER TABLE binlogs ADD COLUMN unsearched_file TEXT;
ALTER TABLE binlogs ADD COLUMN unsearched_position INTEGER;
UPDATE binlogs SET unsearched_file = end_file, unsearched_position = end_position;
""",
    7: "ALTER TABLE binlogs ADD COLUMN row_image TEXT NOT NULL DEFAULT 'FULL';",
    8: "ALTER TABLE binlogs ADD COLUMN is_compressed INTEGER NOT NULL DEFAULT 0;",
    9: _FILLS,
    10: "ALTER TABLE binlogs ADD COLUMN follows_cascades INTEGER NOT NULL DEFAULT 0;",
    11: _ARRIVALS,
}
"""Statements that make each version the next one."""


class SqliteDatabase:
    """An open SQLite file. Every transaction is on disk when it ends; any thread may make one."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._lock = threading.Lock()
        self._connection = connection
        self._path = path

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open for writing, and make the tables in a new file.

        Raises:
            StoreError: If it cannot be used, or another version of binlane made it.
        """
        _keep_private(path)
        database = cls(_connect(f"file:{_uri(path)}", path), path)
        with database._errors():
            # A rollback journal, not a WAL: readers need no write access, and no file stays behind.
            database._connection.execute("PRAGMA journal_mode = DELETE")
            database._connection.execute("PRAGMA synchronous = EXTRA")
            version = database._version()
            if version == 0:
                database._run(_SCHEMA, SCHEMA_VERSION)
            while version in _UPGRADES:
                database._run(_UPGRADES[version], version + 1)
                version = database._version()
        database._check_version()
        return database

    @classmethod
    def open_read_only(cls, path: Path) -> Self:
        """Open for reading beside the owner.

        Raises:
            StoreError: As `open`.
        """
        database = cls(_connect(f"file:{_uri(path)}?mode=ro", path), path)
        if database._has_hot_journal():
            _roll_back(path)
        database._check_version()
        return database

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def rows(self, query: str, *arguments: object) -> list[tuple[Any, ...]]:
        """All rows of a SELECT."""
        with self._lock, self._errors():
            return self._connection.execute(query, arguments).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction that is on disk, or has not been, at the end of its `with` block."""
        with self._lock, self._errors():
            self._connection.execute("BEGIN IMMEDIATE")
            with self._connection:
                yield self._connection

    def _run(self, script: str, version: int) -> None:
        """Change the tables, at once or not at all."""
        self._connection.executescript(f"BEGIN; {script} PRAGMA user_version = {version}; COMMIT;")

    def _version(self) -> int:
        return int(self._connection.execute("PRAGMA user_version").fetchone()[0])

    def _has_hot_journal(self) -> bool:
        """True if a process that was killed left a transaction to be taken back before reading."""
        try:
            self._version()
        except sqlite3.OperationalError as error:
            return getattr(error, "sqlite_errorname", "") == "SQLITE_READONLY_ROLLBACK"
        return False

    def _check_version(self) -> None:
        with self._errors():
            version = self._version()
        if version != SCHEMA_VERSION:
            self.close()
            raise StoreError(
                f"the catalog has version {version}, this binlane reads version {SCHEMA_VERSION}",
                path=str(self._path),
                hint="use the binlane that wrote it, or a newer one",
            )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _store_error(error, self._path) from error


def _keep_private(path: Path) -> None:
    """Have a file that is as readable as binlogs are; SQLite makes its journal alike.

    Raises:
        StoreError: If it cannot be made.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        try:
            mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
            if mode & ~FILE_MODE:  # an earlier version made it
                os.fchmod(descriptor, mode & FILE_MODE)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StoreError(
            f"the catalog cannot be opened: {error.strerror}",
            path=str(path),
            hint="the directory and all in it belong to the account that runs binlane",
        ) from error


def _uri(path: Path) -> str:
    return path.resolve().as_uri().removeprefix("file:")


def _connect(uri: str, path: Path) -> sqlite3.Connection:
    try:
        # Threads take turns: see `SqliteDatabase`.
        return sqlite3.connect(
            uri,
            uri=True,
            timeout=_BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
        )
    except sqlite3.Error as error:
        raise _store_error(error, path) from error


def _roll_back(path: Path) -> None:
    """Take back what a process that was killed left half done; a live one's is not touched."""
    connection = _connect(f"file:{_uri(path)}?mode=rw", path)
    try:
        connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.Error as error:
        raise _store_error(error, path) from error
    finally:
        connection.close()


def _store_error(error: sqlite3.Error, path: Path) -> StoreError:
    name = getattr(error, "sqlite_errorname", "")
    if name == "SQLITE_FULL":
        return StoreFullError(
            "no room for definitions and watermarks", path=str(path), hint="make room on the disk"
        )
    if name in {"SQLITE_CORRUPT", "SQLITE_NOTADB"}:
        return CorruptStoreError(
            f"the catalog is damaged: {error}", path=str(path), hint="restore it from a copy"
        )
    return StoreError(
        f"the catalog cannot be used: {error}",
        path=str(path),
        hint="check the disk and who may write there",
    )
