"""Tables whose rows change with those of others: what is read for them, and what becomes of them.

`cascades` says what foreign keys do; here it is found out which do, and what is known of the tables.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from binlane.names import TableName
from binlane.statements.sql.logged_objects import LoggedObjects
from binlane.statements.sql.schema import ForeignKey
from binlane.tables.columnar.table_schema import SEQUENCE_COLUMN
from binlane.tables.landing.column_values import UnknownValuesError
from binlane.tables.landing.generated_columns import dependent, flavor_of, with_computed
from binlane.tables.landing.key_cascades import (
    IMAGE_COLUMNS,
    Cascades,
    Link,
    LinkedTable,
    Values,
    cascades,
    holding,
)
from binlane.tables.landing.landed_log import LandedLog
from binlane.tables.landing.range_work import DataFile, Rows
from binlane.tables.landing.table_files import write_file
from binlane.tables.landing.tables.parquet_files import read_columns, read_rows
from binlane.tables.landing.tables.table_store import TableStore


class StaleBatchError(Exception):
    """The tasks of a batch knew too little of its own statements; it is to be done again."""


@dataclass(slots=True)
class Linked:
    """Effects of foreign keys on linked tables in a stretch of the log.

    Attributes:
        runs: Rows that foreign keys changed, to be merged behind the tables' own runs.
        given_up: Tables whose rows cannot be known, and why.
    """

    runs: dict[TableName, Rows] = field(default_factory=dict)
    given_up: dict[TableName, str] = field(default_factory=dict)


class LinkedTables:
    """The linked tables of a landing.

    Args:
        tables: The store of the current tables.
        log: The log at the place that the landing has come to.
    """

    def __init__(self, tables: TableStore, log: LandedLog) -> None:
        self._tables = tables
        self._log = log
        self._more: set[TableName] = set()
        self._read: frozenset[TableName] = frozenset()

    def to_read(self, definitions: LoggedObjects) -> dict[TableName, frozenset[str] | None]:
        """Return the tables and columns that tasks are to read for foreign keys, as `RangeWork.links`.

        Args:
            definitions: Objects of the log at the batch's beginning.
        """
        found: dict[TableName, set[str]] = {table: set() for table in self._more}
        for key in self._keys(definitions):
            found.setdefault(key.table, set()).update(name.lower() for name in key.columns)
            parents = key.parent_columns or definitions.primary_key(key.parent)
            found.setdefault(key.parent, set()).update(name.lower() for name in parents)
        self._read = frozenset(found)
        return {
            table: None if self._log.includes(table) else frozenset(columns)
            for table, columns in found.items()
        }

    def apply(
        self,
        pending: Mapping[TableName, Sequence[Rows]],
        definitions: LoggedObjects,
        is_given_up: Callable[[TableName], bool],
    ) -> Linked:
        """Work out the effects of foreign keys in a stretch of the log.

        Args:
            pending: The rows of the stretch, by table.
            definitions: The tables' definitions in the stretch.
            is_given_up: Whether there can be no current table.

        Raises:
            StaleBatchError: If tasks have not read all tables needed; next time they do.
            UnusableTableError: If a table cannot be read; the table is then to be given up.
            StoreError: If files cannot be read or written.
        """
        keys = list(self._keys(definitions))
        parents = {key.parent for key in keys}
        unread = {each for key in keys for each in (key.table, key.parent)} - self._read
        if any(table in pending or not self._log.includes(table) for table in unread & parents):
            self._more |= unread
            raise StaleBatchError
        read = [rows for parent in parents for rows in pending.get(parent, ()) if rows.links]
        if not read:
            return Linked()
        assert read[0].links is not None, "it was looked for"
        folder = read[0].links.path.rpartition("/")[0]
        known = {
            table: self._known(table, pending.get(table, ()), definitions, is_given_up(table))
            for table in {each for key in keys for each in (key.table, key.parent)}
        }
        found = Linked()
        links = []
        for key in keys:
            link = _link(key, known, definitions)
            if link is not None:
                links.append(link)
            elif pending.get(key.parent) and known[key.table].is_kept:
                found.given_up[key.table] = (
                    f"its foreign key to {key.parent.plain} acts on its rows, and the log does not "
                    "tell of which columns it is"
                )
        made = cascades(links, known, self._find)
        _compute(made, keys, definitions)
        found.given_up |= {
            table: reason for table, reason in made.unknown.items() if self._log.includes(table)
        }
        found.runs = {
            table: _staged(table, made, known[table], folder, read[0].file)
            for table in made.versions
            if table not in made.unknown
            and self._log.includes(table)
            and _last(made.versions[table]) > self._tables.applied(table)
        }
        return found

    def order(self, tables: Sequence[TableName], definitions: LoggedObjects) -> list[TableName]:
        """Tables with children before their parents.

        A batch that is run again after a crash then finds a child's rows as they were, unless all
        that they led to is done.
        """
        found: dict[TableName, None] = {}
        open_tables: set[TableName] = set()

        def visit(table: TableName) -> None:
            if table in open_tables:
                return
            open_tables.add(table)
            for key in definitions.acting_children(table):
                visit(key.table)
            if table in tables:
                found[table] = None

        for table in tables:
            visit(table)
        return list(found)

    def _keys(self, definitions: LoggedObjects) -> Iterator[ForeignKey]:
        """The foreign keys that act on tables that are landed, or on their parents."""
        waiting = [key for key in definitions.acting_keys() if self._log.includes(key.table)]
        known = set(waiting)
        while waiting:
            key = waiting.pop()
            yield key
            above = [
                each
                for each in definitions.acting_keys()
                if each.table == key.parent and each not in known
            ]
            known |= set(above)
            waiting += above

    def _known(
        self,
        table: TableName,
        pieces: Sequence[Rows],
        definitions: LoggedObjects,
        is_given_up: bool,  # noqa: FBT001 - as asked
    ) -> LinkedTable:
        there = self._tables.snapshot(table)
        files = [rows.links for rows in pieces if rows.links is not None]
        images = None
        if files:
            parts = [read_rows(file.path) for file in files]
            images = _named(pa.concat_tables(parts, promote_options="default"), table, definitions)
        added = {*IMAGE_COLUMNS, *self._tables.added.names}
        schema = images.schema if images is not None else there.schema if there else pa.schema([])
        own = pa.schema([each for each in schema if each.name not in added])
        key = pieces[-1].key if pieces else definitions.primary_key(table)
        names = {name.lower(): name for name in own.names}
        return LinkedTable(
            key=tuple(names[name.lower()] for name in key if name.lower() in names),
            columns=own,
            images=images,
            is_kept=self._log.includes(table) and not is_given_up,
        )

    def _find(self, link: Link, values: set[Values]) -> pa.Table:
        now = self._tables.snapshot(link.child)
        if now is None:
            return pa.table({})
        folder = self._tables.uri(link.child)
        found = [now.schema.empty_table()]
        for path in now.files:
            uri = f"{folder}/{path}"
            with self._tables.faults.of(link.child):
                places = holding(read_columns(uri, link.columns), link, values)
                if len(places):
                    found.append(read_rows(uri).select(now.schema.names).take(places))
        return pa.concat_tables(found, promote_options="permissive")


def _compute(made: Cascades, keys: Sequence[ForeignKey], definitions: LoggedObjects) -> None:
    """Give rows that foreign keys changed the generated columns that hang on that."""
    for table, versions in made.versions.items():
        columns = definitions.defined_columns(table)
        changed = {name.lower() for key in keys if key.table == table for name in key.columns}
        wanted = dependent(columns, changed).intersection(map(str.lower, versions.column_names))
        flavor = flavor_of(versions.column("_gtid")[0].as_py())
        for rows in (made.versions, made.runs):
            try:
                whole = with_computed(rows[table], columns, wanted, flavor, hides_dates=True)
            except UnknownValuesError as error:
                made.unknown[table] = str(error)
                break
            if whole.num_columns < versions.num_columns:
                made.unknown[table] = "a foreign key changed what a generated column hangs on"
            rows[table] = whole


def _last(rows: pa.Table) -> int:
    seqs: Any = rows.column(SEQUENCE_COLUMN)
    return int(pc.max(seqs).as_py())


def _staged(table: TableName, made: Cascades, known: LinkedTable, folder: str, file: str) -> Rows:
    """Stage the rows that foreign keys made of a table, in the form of a task that read a binlog file."""
    versions, run = made.versions[table], made.runs[table]
    last = versions.sort_by(SEQUENCE_COLUMN).slice(versions.num_rows - 1).to_pylist()[0]
    seqs: Any = versions.column(SEQUENCE_COLUMN)
    return Rows(
        table=table,
        first_seq=pc.min(seqs).as_py(),
        last_seq=last[SEQUENCE_COLUMN],
        last_gtid=last["_gtid"],
        last_timestamp=int(last["_ts"].timestamp()),
        images=0,
        invalid_dates=0,
        key=known.key,
        is_full=True,
        columns=known.columns,
        file=file,
        run=_file(run, known, folder) if run.num_rows else None,
        versions=_file(versions, known, folder),
    )


def _file(rows: pa.Table, known: LinkedTable, folder: str) -> DataFile:
    file = write_file(rows, folder, f"{uuid.uuid4().hex}.parquet", known.key)
    return replace(file, path=f"{folder}/{file.path}")


def _named(images: pa.Table, table: TableName, definitions: LoggedObjects) -> pa.Table:
    """Images with the names that CREATE TABLE gave, where they have numbers only."""
    own = images.column_names[len(IMAGE_COLUMNS) :]
    names = [column.name for column in definitions.defined_columns(table).values()]
    if not own or own[0] != "@1" or len(own) != len(names):
        return images
    return images.rename_columns([*images.column_names[: len(IMAGE_COLUMNS)], *names])


def _link(
    key: ForeignKey, known: Mapping[TableName, LinkedTable], definitions: LoggedObjects
) -> Link | None:
    """A foreign key with the names that columns have in rows; None if it has none of them."""
    child, parent = known[key.table], known[key.parent]
    columns = _own_names(key.columns, child)
    parent_columns = _own_names(key.parent_columns or parent.key, parent)
    if not columns or len(columns) != len(parent_columns):
        return None
    defined = definitions.defined_columns(key.table)
    collations = [defined[name.lower()] for name in key.columns if name.lower() in defined]
    return Link(
        child=key.table,
        columns=columns,
        parent=key.parent,
        parent_columns=parent_columns,
        on_delete=key.on_delete,
        on_update=key.on_update,
        is_exact=all((each.collation or "").endswith(("_bin", "_cs")) for each in collations),
    )


def _own_names(names: Sequence[str], known: LinkedTable) -> tuple[str, ...]:
    own = {name.lower(): name for name in known.columns.names}
    return tuple(own[name.lower()] for name in names if name.lower() in own)
