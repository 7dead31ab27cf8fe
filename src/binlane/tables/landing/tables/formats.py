"""The interface of a table format: a table's live files, and their exchange in one commit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Protocol

import pyarrow as pa

from binlane.names import TableName
from binlane.tables.landing.range_work import DataFile, FormatName
from binlane.tables.landing.tables.bounds import LiveFile
from binlane.version import __version__


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A table at one moment.

    Attributes:
        schema: Names and types of its columns.
        applied: The `_seq` up to which the log is in the table.
        images: How many row images of the log are in the table, since it was last made or emptied;
            None if nobody counted.
        files: The live files by their paths.
        version: A number that grows with each commit.
        has_feed: Whether the table's commits tell which rows they change, where they rewrite files.
    """

    schema: pa.Schema
    applied: int = 0
    images: int | None = None
    files: Mapping[str, LiveFile] = field(default_factory=dict)
    version: int = 0
    has_feed: bool = False

    @property
    def rows(self) -> int:
        """The number of rows of the table."""
        return sum(file.rows for file in self.files.values())

    @property
    def size_bytes(self) -> int:
        """Bytes of the table's files."""
        return sum(file.size_bytes for file in self.files.values())


class What(Enum):
    """Kinds of commits, as the table's own history names them."""

    APPEND = "append"
    """Row images come."""
    MERGE = "merge"
    """Rows become what the log says."""
    TRUNCATE = "truncate"
    """All rows go."""
    RESHAPE = "reshape"
    """The columns change, or the values of some in all rows."""
    END = "end"
    """All versions end."""
    SNAPSHOT = "snapshot"
    """The rows that the server has come in place of all others."""
    COUNT = "count"
    """A note of how many row images of the log another engine's merge had."""
    COMPACT = "compact"
    """The same rows lie in fewer files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitSource:
    """The place in the log that a commit comes from: of the last change in it, or of a statement.

    Attributes:
        gtid: GTID of the event group; None if the log has none.
        file: Name of the binlog file.
        position: Where it stands in the file, in bytes.
    """

    gtid: str | None
    file: str
    position: int

    @property
    def told(self) -> dict[str, str]:
        """The place as tables keep it, by name."""
        found = {"file": self.file, "position": str(self.position)}
        return found if self.gtid is None else {"gtid": self.gtid, **found}


def note_of(source: CommitSource | None) -> str:
    """Return a note for a table's history on the origin of a commit, as JSON."""
    told = {} if source is None else source.told
    return json.dumps({"binlane": __version__, **told}, ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """The numbers of rows of a table that came, changed and went."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    def __add__(self, other: RowCounts) -> RowCounts:
        return RowCounts(
            inserted=self.inserted + other.inserted,
            updated=self.updated + other.updated,
            deleted=self.deleted + other.deleted,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCommit:
    """The change of a table that one commit makes.

    Attributes:
        what: The kind of the commit.
        add: Files that become the table's.
        remove: Paths of live files that leave the table.
        applied: The `_seq` up to which the log is in the table then; None leaves it as it is.
        images: How many row images of the log are in the table then; None leaves that as it is.
        schema: The table's columns then; None leaves them as they are. Unless columns only come
            behind the others, all live files are removed, too.
        feed: Files of the rows that the commit changes, for tables that tell them; if there are
            none, all rows of the files that come were inserted, and of those that go deleted.
        rows: The numbers of rows that change, where they were counted.
        source: The place in the log that the commit comes from, where that is known.
    """

    what: What
    add: Sequence[DataFile] = ()
    remove: Sequence[str] = ()
    applied: int | None = None
    images: int | None = None
    schema: pa.Schema | None = None
    feed: Sequence[DataFile] = ()
    rows: RowCounts | None = None
    source: CommitSource | None = None


def told_of(change: TableCommit) -> dict[str, str]:
    """Return a commit's facts by name, with the place it comes from, for formats that keep such a list."""
    told = {} if change.source is None else change.source.told
    rows = {} if change.rows is None else asdict(change.rows)
    counts = {f"rows-{name}": str(value) for name, value in rows.items()}
    return {"version": __version__, "operation": change.what.value, **told, **counts}


class TableFormat(Protocol):
    """The tables of one kind of a target, in one format. There is one writer.

    Attributes:
        may_lack_columns: Whether readers take a column for NULL that a file does not have.
    """

    format: FormatName
    may_lack_columns: bool

    def uri(self, table: TableName) -> str:
        """The directory of a table, also of one that is to be made."""

    def names(self) -> Iterator[TableName]:
        """The tables there are."""

    def load(self, table: TableName) -> Snapshot | None:
        """A table as it is now; None if there is none."""

    def create(self, table: TableName, schema: pa.Schema) -> None:
        """Make a table without rows."""

    def commit(self, table: TableName, now: Snapshot, change: TableCommit) -> Snapshot:
        """Change a table, all at once.

        Args:
            table: The name of the table.
            now: The table as it was last loaded or committed.
            change: The change to be committed.

        Returns:
            The table afterwards.

        Raises:
            StoreError: If the commit cannot be written, or if somebody else has changed the table.
        """

    def drop(self, table: TableName) -> None:
        """Remove a table with all its files, if there is one."""

    def rename(self, old: TableName, new: TableName) -> None:
        """Give a table another name, in the place of one that has it."""

    def vacuum(self, table: TableName, keep_hours: float) -> int:
        """Delete files that no version of the last hours needs; how many there were."""

    def storable(self, schema: pa.Schema) -> pa.Schema:
        """The schema that a table has that was made with another one.

        Raises:
            ConfigError: If the format cannot hold a table with such columns.
        """


def after(now: Snapshot, change: TableCommit, added: Mapping[str, LiveFile]) -> Snapshot:
    """A table after a change."""
    gone = set(change.remove)
    kept = {path: file for path, file in now.files.items() if path not in gone}
    return Snapshot(
        schema=now.schema if change.schema is None else change.schema,
        applied=now.applied if change.applied is None else change.applied,
        images=now.images if change.images is None else change.images,
        files={**kept, **added},
        version=now.version + 1,
        has_feed=now.has_feed,
    )


def reshaped(
    now: Snapshot, add: Sequence[DataFile], schema: pa.Schema, applied: int | None = None
) -> TableCommit:
    """Return the change that gives a table other files with other columns in the place of all."""
    gone = list(now.files)
    return TableCommit(what=What.RESHAPE, add=add, remove=gone, schema=schema, applied=applied)
