"""Rows of children whose parents are outside of a binlog's scope, in an SQLite file of their own.

They are derived from the binlog's own files and from nothing else: at any time they are exact up to
a place in these files, which stands in the same transaction, and go on from there when they are
asked for. So a crash costs nothing but reading again. A place at which the files have other bytes
than when it was noted has them read from the first file.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from binlane.binlogs.routing.cascade_replay import CascadeReplay, FollowedTable, KeptRow
from binlane.binlogs.routing.cascade_values import KeyBytes
from binlane.binlogs.routing.table_links import NO_LINKS, TableLinks
from binlane.binlogs.store.disk import FILE_MODE
from binlane.log.codec.buffer import Reader
from binlane.log.codec.format import Format
from binlane.log.codec.rows import TableMapEvent
from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.statements.scope.scope import Scope

_LOG: Final = logging.getLogger(__name__)
_VERSION: Final = 1
_SCHEMA: Final = """
DROP TABLE IF EXISTS state; DROP TABLE IF EXISTS rows; DROP TABLE IF EXISTS keys;
CREATE TABLE state (value TEXT NOT NULL) STRICT;
CREATE TABLE rows (
    id INTEGER PRIMARY KEY,
    owner INTEGER NOT NULL,
    digest INTEGER NOT NULL,
    image BLOB NOT NULL
) STRICT;
CREATE INDEX rows_by_digest ON rows (owner, digest);
CREATE TABLE keys (
    number INTEGER NOT NULL,
    key BLOB NOT NULL,
    row INTEGER NOT NULL,
    PRIMARY KEY (number, key, row)
) STRICT, WITHOUT ROWID;
CREATE INDEX keys_by_row ON keys (row);
"""
_ODD: Final = b"odd"
"""The key of all odd values: too short to be that of another one."""


@dataclass(frozen=True, slots=True)
class FilePlace:
    """A place in a binlog's files.

    Attributes:
        file: Name of the file; empty: before the first one.
        position: Byte of the file as the protocol counts.
        check: Hash of the bytes before it.
    """

    file: str = ""
    position: int = 0
    check: str = ""


@dataclass(slots=True)
class KeptState:
    """Everything that is kept beside the rows.

    Attributes:
        place: The rows are exact up to here.
        tables: The tables whose rows are kept, by name.
        links: Foreign keys as the DDL before this place made them.
        tables_seen: Numbers of tables and indexes that were given.
    """

    place: FilePlace = field(default_factory=FilePlace)
    tables: dict[TableName, FollowedTable] = field(default_factory=dict)
    numbers: dict[TableName, int] = field(default_factory=dict)
    links: TableLinks = NO_LINKS
    given: int = 0

    def encode(self, format_: Format | None) -> str:
        """Write the state as a text."""
        tables = [
            {
                "name": [name.database, name.table],
                "number": self.numbers[name],
                "indexes": [[list(columns), number] for columns, number in table.indexes.items()],
                "reason": table.reason,
                "map": _map_text(table.table_map, format_),
                "is_altered": table.is_altered,
                "is_plain": table.is_plain,
            }
            for name, table in self.tables.items()
        ]
        place = [self.place.file, self.place.position, self.place.check]
        fields = {"tables": tables, "place": place, "links": self.links.fields()}
        return json.dumps({"v": _VERSION, "given": self.given, **fields})

    @classmethod
    def decode(cls, text: str, format_: Format) -> KeptState:
        """The state of a text.

        Raises:
            ValueError: If it is of another version, or none.
            KeyError: If something is missing.
        """
        fields = json.loads(text)
        if fields["v"] != _VERSION:
            raise ValueError(fields["v"])
        state = cls(
            place=FilePlace(*fields["place"]),
            links=TableLinks.of_fields(fields["links"]),
            given=fields["given"],
        )
        for one in fields["tables"]:
            name = TableName(*one["name"])
            state.numbers[name] = one["number"]
            state.tables[name] = FollowedTable(
                indexes={tuple(columns): number for columns, number in one["indexes"]},
                reason=one["reason"],
                table_map=_map_of(one["map"], format_),
                is_altered=one["is_altered"],
                is_plain=one["is_plain"],
            )
        return state


def _map_text(table_map: TableMapEvent | None, format_: Format | None) -> str:
    if table_map is None or format_ is None:
        return ""
    return table_map.encode(format_).hex()


def _map_of(text: str, format_: Format) -> TableMapEvent | None:
    return TableMapEvent.decode(Reader(bytes.fromhex(text)), format_) if text else None


class ChildRowsFile:
    """The SQLite file: rows of children by image and by foreign key.

    Its calls are one thread's at a time. Errors of SQLite are the caller's.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        # Rows are nobody else's; SQLite gives its other files the same mode.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, FILE_MODE))
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode = WAL")
        # What a power loss takes is read again from the binlog's files.
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.execute("PRAGMA cache_size = -16000")
        self.numbers: dict[TableName, int] = {}
        self._count: int | None = None

    def saved(self) -> str:
        """The text that was saved last; empty if there is none."""
        with suppress(sqlite3.OperationalError):
            for (text,) in self._connection.execute("SELECT value FROM state"):
                return str(text)
        return ""

    def clear(self) -> None:
        """Begin with nothing."""
        self._connection.executescript(_SCHEMA)
        self._count = None

    def begin(self) -> None:
        """Begin a transaction."""
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN")

    def commit(self, text: str) -> None:
        """Keep what has changed, with the text of the state behind it."""
        self._connection.execute("DELETE FROM state")
        self._connection.execute("INSERT INTO state VALUES (?)", (text,))
        self._connection.execute("COMMIT")

    def roll_back(self) -> None:
        """Undo what has changed since `begin`."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
            self._count = None

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def size_bytes(self) -> int:
        """Bytes that the file takes on the disk."""
        return sum(
            each.stat().st_size
            for suffix in ("", "-wal")
            if (each := self.path.with_name(self.path.name + suffix)).exists()
        )

    def count(self) -> int:
        """Number of rows of all tables."""
        if self._count is None:
            found = self._connection.execute("SELECT COUNT(*) FROM rows").fetchone()
            self._count = int(found[0])
        return self._count

    def _counted(self, more: int) -> None:
        if self._count is not None:
            self._count += more

    def remove_file(self) -> None:
        """Delete the file."""
        self.close()
        for suffix in ("", "-wal", "-shm"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    # As `cascade_replay.ChildRows` has it.

    def find(self, index: int, key: bytes) -> list[KeptRow]:
        """Rows whose foreign key has a value, in the order in which they came."""
        found = self._connection.execute(
            "SELECT rows.id, rows.image FROM keys JOIN rows ON rows.id = keys.row"
            " WHERE keys.number = ? AND keys.key = ? ORDER BY rows.id",
            (index, key),
        )
        return [KeptRow(number, image) for number, image in found]

    def has_odd(self, index: int) -> bool:
        """True if there is a row whose foreign key has an odd value."""
        return self._has("SELECT 1 FROM keys WHERE number = ? AND key = ? LIMIT 1", index, _ODD)

    def has_rows(self, table: TableName) -> bool:
        """True if a table has rows."""
        return self._has("SELECT 1 FROM rows WHERE owner = ? LIMIT 1", self.numbers[table])

    def _has(self, query: str, *arguments: object) -> bool:
        return self._connection.execute(query, arguments).fetchone() is not None

    def add(self, table: TableName, image: bytes, keys: Iterable[tuple[int, KeyBytes]]) -> None:
        """Take a row, with the values of its foreign keys by the numbers of their indexes."""
        row = self._connection.execute(
            "INSERT INTO rows (owner, digest, image) VALUES (?, ?, ?)",
            (self.numbers[table], _digest(image), image),
        ).lastrowid
        self._counted(1)
        self._connection.executemany(
            "INSERT INTO keys VALUES (?, ?, ?)",
            [(number, _ODD if key.is_odd else key.data, row) for number, key in keys],
        )

    def remove(self, table: TableName, image: bytes) -> bool:
        """Have a row no more; False if there is none of this image."""
        found = self._connection.execute(
            "SELECT id FROM rows WHERE owner = ? AND digest = ? AND image = ? ORDER BY id LIMIT 1",
            (self.numbers[table], _digest(image), image),
        ).fetchone()
        if found is None:
            return False
        self._connection.execute("DELETE FROM keys WHERE row = ?", found)
        self._connection.execute("DELETE FROM rows WHERE id = ?", found)
        self._counted(-1)
        return True

    def forget(self, table: TableName) -> None:
        """Have no row of a table any more."""
        number = self.numbers.get(table, -1)
        self._connection.execute(
            "DELETE FROM keys WHERE row IN (SELECT id FROM rows WHERE owner = ?)", (number,)
        )
        gone = self._connection.execute("DELETE FROM rows WHERE owner = ?", (number,))
        self._counted(-gone.rowcount)


def _digest(image: bytes) -> int:
    """A number by which an image is found; images with the same number are compared."""
    return int.from_bytes(hashlib.blake2b(image, digest_size=8).digest(), "little", signed=True)


class KeptChildren:
    """The tables and rows of children, and what events do to them; `ChildRowsFile` has the rows.

    Args:
        rows: The file; its transaction is the caller's.
        state: The state that belongs to the rows.
    """

    def __init__(self, rows: ChildRowsFile, state: KeptState) -> None:
        self.rows, self.state = rows, state
        rows.numbers = state.numbers

    def replay(self, links: TableLinks, scope: Scope, flavor: Flavor) -> CascadeReplay:
        """A replay by some foreign keys."""
        return CascadeReplay(self.rows, self.state.tables, links.keys, scope, flavor)

    def lose(self, table: TableName, reason: str) -> None:
        """Know the rows of a table no more."""
        known = self.state.tables.get(table)
        if known is not None and not known.reason:
            known.reason = reason
            self.rows.forget(table)
            _LOG.warning("children %s: rows are not known any more: %s", table.plain, reason)

    def lose_with_children(self, table: TableName, reason: str) -> None:
        """Know the rows of a table no more, nor of those that may change with them."""
        lost, waiting = {table}, [table]
        while waiting:
            parent = waiting.pop()
            for key in self.state.links.keys:
                if key.parent == parent and key.table not in lost:
                    lost.add(key.table)
                    waiting.append(key.table)
        for each in lost:
            self.lose(each, reason)

    def lose_all(self, reason: str) -> None:
        """Know the rows of no table any more."""
        for table in self.state.tables:
            self.lose(table, reason)

    def know_empty(self, table: TableName) -> None:
        """A table has no rows, and all that come are in the log."""
        known = self.state.tables.get(table)
        if known is not None and known.is_plain:
            self.rows.forget(table)
            known.reason, known.table_map, known.is_altered = "", None, False

    def rename(self, names: Mapping[TableName, TableName]) -> None:
        """Tables have other names, all at once."""
        tables, numbers = self.state.tables, self.state.numbers
        moved = {new: (tables.get(old), numbers.get(old)) for old, new in names.items()}
        wanted = {name: table.indexes for name, table in tables.items()}
        for name in {*names, *names.values()} & set(tables):
            if name not in names:
                self.lose(name, "a table was renamed to its name")
            tables.pop(name)
            numbers.pop(name)
        for new, (table, number) in moved.items():
            if table is not None and number is not None:
                tables[new], numbers[new] = table, number
                if not set(wanted.get(new, ())) <= set(table.indexes):
                    self.lose(new, "it got the name of a table with other foreign keys")
        self.follow((name, columns) for name, each in wanted.items() for columns in each)

    def needed(
        self, links: TableLinks, scope: Scope
    ) -> Iterator[tuple[TableName, tuple[str, ...]]]:
        """Children in scope that outside parents may change, with the columns of each key."""
        reached = {scope.key(key.table) for key in links.keys if not scope.includes(key.parent)}
        while True:
            more = {
                scope.key(key.table)
                for key in links.keys
                if scope.key(key.parent) in reached and scope.key(key.table) not in reached
            }
            if not more:
                break
            reached |= more
        for key in links.keys:
            table = scope.key(key.table)
            if table in reached and scope.includes(table):
                yield table, tuple(column.lower() for column in key.columns)

    def has(self, needed: Iterable[tuple[TableName, tuple[str, ...]]]) -> bool:
        """True if all tables are kept with the indexes of all keys."""
        return all(
            (known := self.state.tables.get(table)) is not None and columns in known.indexes
            for table, columns in needed
        )

    def follow_from_here(self, needed: Iterable[tuple[TableName, tuple[str, ...]]]) -> None:
        """Keep tables from now on; one that is kept and has another key now is not known."""
        pairs = list(needed)
        for table, columns in pairs:
            known = self.state.tables.get(table)
            if known is not None and columns not in known.indexes:
                self.lose(table, "it has another foreign key now")
        self.follow(pairs)

    def follow(self, needed: Iterable[tuple[TableName, tuple[str, ...]]]) -> None:
        """Keep tables from now on; nothing is known of their rows yet."""
        for table, columns in needed:
            known = self.state.tables.setdefault(table, FollowedTable(indexes={}))
            if table not in self.state.numbers:
                self.state.given += 1
                self.state.numbers[table] = self.state.given
            if columns not in known.indexes:
                self.state.given += 1
                known.indexes[columns] = self.state.given
