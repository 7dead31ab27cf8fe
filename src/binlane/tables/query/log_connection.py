"""A connection to DuckDB that has a log's tables.

Each table is a data set of Arrow of which DuckDB asks, when a query runs, for the columns and rows
that it needs. The names of databases are those of schemas; those that DuckDB has itself, and names
that differ only in case, get a `_` more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset

from binlane.errors import BinlaneError
from binlane.names import TableName
from binlane.tables.columnar.log_notes import storable
from binlane.tables.query.event_tables import EVENT_TABLES, read_event_table
from binlane.tables.query.log_tables import LogTable, LogTables

_OWN_SCHEMAS: Final = ("main", "information_schema", "pg_catalog", "temp", "system", "memory")
_BATCHES_AHEAD: Final = 1

Reader = Callable[[Collection[str], pc.Expression | None], Iterator[pa.RecordBatch]]
"""Gives the batches of a table with some columns; others than those that fit a condition may come."""


class _Stoppable(Iterator[pa.RecordBatch]):
    """Batches that end early once nobody wants more of them."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self.is_stopped = False

    def __next__(self) -> pa.RecordBatch:
        if self.is_stopped:
            raise StopIteration
        return next(self._batches)


class LogScanner:
    """A scanner of Arrow, as far as DuckDB uses one, that stops when its stream is dropped.

    Arrow's own reads its source to the end even then: a LIMIT, an error or an interrupt would be
    followed by a reading of the whole log.

    Args:
        scanner: The scanner of Arrow, whose source is `batches`.
        batches: The batches that end when the stream is dropped.
    """

    def __init__(self, scanner: pyarrow.dataset.Scanner, batches: _Stoppable) -> None:
        self._scanner = scanner
        self._batches = batches

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the stream."""
        reader = self._scanner.to_reader()
        return pa.RecordBatchReader.from_batches(reader.schema, self._until_dropped(reader))

    def _until_dropped(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        try:
            for batch in reader:  # noqa: UP028 - that closes it before it is told to stop
                yield batch
        finally:
            self._batches.is_stopped = True


class LogDataset(pyarrow.dataset.Dataset):
    """A table of a log as a data set: DuckDB calls `scanner` for each use of it in a query.

    Args:
        schema: The columns of the table, in order.
        reader: Gives the table's batches, anew for each use.
        log: The log, which is told of the error that ends a reading.
    """

    def __init__(self, schema: pa.Schema, reader: Reader, log: LogTables) -> None:
        self._columns = schema
        self._reader = reader
        self._log = log

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table."""
        return self._columns

    def scanner(  # type: ignore[override]  # DuckDB gives no other arguments
        self,
        columns: list[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002 - Arrow's own name
        **_others: Any,
    ) -> LogScanner:
        """Return a stream of exactly the rows and columns that are asked for.

        Args:
            columns: Names of the columns; all if None.
            filter: The condition that rows fulfil; None for all rows.
        """
        text = "" if filter is None else str(filter)
        # The text has the names of all columns of the condition, and maybe those of others.
        needed = [
            name
            for name in self._columns.names
            if columns is None or name in columns or name in text
        ]
        schema = pa.schema(
            [self._columns.field(name) for name in needed or self._columns.names[:1]]
        )
        batches = _Stoppable(self._told(self._reader(schema.names, filter)))
        scanner = pyarrow.dataset.Scanner.from_batches(
            batches,
            schema=schema,
            columns=columns,
            filter=filter,
            use_threads=False,
            batch_readahead=_BATCHES_AHEAD,
        )
        return LogScanner(scanner, batches)

    def _told(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except BinlaneError as error:
            self._log.fault = error
            raise


class LogConnection:
    """Keeps the schemas and views of a connection those of a log.

    Args:
        connection: The connection to DuckDB, which gets the views.
        log: The log whose tables it is to have.

    Attributes:
        notes: Names that are other than in the log, each with its reason.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, log: LogTables) -> None:
        self.connection = connection
        self.log = log
        self.notes: list[str] = []
        self._views: list[tuple[str, str]] = []
        for name, (columns, _) in EVENT_TABLES.items():
            self._put("main", name, columns, partial(read_event_table, log, name))
        self._views = []
        self._make_views()

    def refresh(self) -> None:
        """Take what is new in the log.

        Raises:
            StoreError: If a file cannot be read.
            PeerError: If a server cannot be asked.
            CodecError: If a file does not begin as a binlog file.
        """
        if self.log.refresh():
            for schema, view in self._views:
                self.connection.execute(f"DROP VIEW IF EXISTS {quoted(schema)}.{quoted(view)}")
            self._make_views()

    def _make_views(self) -> None:
        self._views = []
        self.notes = [
            f"changes are missing at {place}: the log has an INCIDENT event there"
            for place in self.log.incidents()
        ]
        shown = shown_names(self.log.tables)
        for schema in dict.fromkeys(schema for schema, _ in shown.values()):
            self.connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)}")
        for name, (schema, table) in shown.items():
            known = self.log.tables[name]
            self._put(schema, table, known.schema, partial(self.log.changes, known))
            self._note(name, known, schema, table)

    def _note(self, name: TableName, known: LogTable, schema: str, table: str) -> None:
        if (schema, table) != (storable(name.database), storable(name.table)):
            self.notes.append(f"{name.plain} is {schema}.{table} here: its name is taken")
        for own, shown in known.renamed.items():
            self.notes.append(f"{name.plain}: the column {own} is {shown} here: its name is taken")

    def _put(self, schema: str, view: str, columns: pa.Schema, reader: Reader) -> None:
        # DuckDB makes such a view in the schema that is in use; the view keeps its data set.
        self.connection.execute(f"USE {quoted(schema)}")
        dataset = LogDataset(columns, reader, self.log)
        self.connection.from_arrow(dataset).create_view(view)
        self._views.append((schema, view))
        self.connection.execute("USE main")


def shown_names(tables: Iterable[TableName]) -> Mapping[TableName, tuple[str, str]]:
    """The schema and name of each table, no two of them the same but for their case."""
    schemas: dict[str, str] = {}
    taken_schemas = set(_OWN_SCHEMAS)
    found: dict[TableName, tuple[str, str]] = {}
    taken_tables: set[tuple[str, str]] = set()
    for name in sorted(tables):
        if name.database not in schemas:
            schemas[name.database] = _free(storable(name.database), taken_schemas)
            taken_schemas.add(schemas[name.database].lower())
        schema = schemas[name.database]
        table = _free(storable(name.table), {each for own, each in taken_tables if own == schema})
        taken_tables.add((schema, table.lower()))
        found[name] = schema, table
    return found


def _free(name: str, taken: Collection[str]) -> str:
    while name.lower() in taken:
        name += "_"
    return name


def quoted(name: str) -> str:
    """A name as SQL has it."""
    return '"' + name.replace('"', '""').replace("\0", "\\0") + '"'


def connect_log(log: LogTables, *, config: Mapping[str, str] | None = None) -> LogConnection:
    """Open a DuckDB in memory that has a log's tables.

    Args:
        log: The log whose tables it is to have.
        config: Settings of DuckDB, as `duckdb.connect` takes them.
    """
    connection = duckdb.connect(config=dict(config or {}))
    connection.execute("SET TimeZone = 'UTC'")
    return LogConnection(connection, log)
