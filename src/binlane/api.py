"""From Python: `read` and `scan` read binlogs, `connect` asks them by SQL, `land` lands them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from binlane.binlogs.store.byte_source import is_large
from binlane.binlogs.store.chunks import base_name, open_chunks, read_keys
from binlane.errors import ConfigError
from binlane.log.grouping.event_group import EventGroup
from binlane.positions import FilePosition, GtidPosition
from binlane.statements.scope.scope import Scope
from binlane.tables.columnar.counters import ReadCounters
from binlane.tables.columnar.followed_log import FollowedLog
from binlane.tables.columnar.prepared_transactions import PreparedTransactions
from binlane.tables.columnar.selection import Bound, Selection, parse_bound, parse_tables
from binlane.tables.columnar.table_schema import ReadOptions
from binlane.tables.ranges.decoding import are_kernels_ready
from binlane.tables.ranges.earlier import LogBefore
from binlane.tables.ranges.log_range import LogRange
from binlane.tables.ranges.read import LogState, filter_state_of, read_range

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from binlane.binlogs.filters.terms import FilterTerms
    from binlane.statements.sql.logged_objects import LoggedObjects
    from binlane.tables.landing.engine import Engine
    from binlane.tables.landing.landing_progress import LandingProgress, LandingReport
    from binlane.tables.ranges.stored_files import StoredLogFile

Path = str | PathLike[str]
Place = str | datetime | FilePosition | GtidPosition

# Numba takes about a minute for kernels that were not compiled ahead; the reference decoder reads
# as much in that time.
_JIT_BYTES_MIN: Final = 256 << 20


def read(path: Path | Iterable[Path], *, keys: Path | None = None) -> Iterator[EventGroup]:
    """The event groups of binlog files, control groups of one event included.

    Args:
        path: One file or several, as one stream in the order given; plain or compressed by gzip,
            xz or zstd; `-` is standard input. Also a directory, a pattern, or `DATA#name`, up to
            the last whole event group; a URI that `pyarrow.fs` opens (`s3://…`); or a server,
            `mariadb://USER@HOST:PORT?password-file=PATH`, whose whole log is read up to where it
            ends now; `#binlog.000003` behind it is one file of it. Without `password-file` the
            password is in `MYSQL_PWD`.
        keys: File of the keys with which a server encrypted the files.

    Raises:
        CodecError: At the first fault, with file and position, behind all groups before it.
        StoreError: If a file cannot be read.
    """
    from binlane.binlogs.store.stored_groups import read_groups  # noqa: PLC0415 - large files do without

    paths = _paths(path)
    if not all(map(_is_file, paths)):
        return _read_ranges(paths, None if keys is None else fspath(keys))
    return read_groups(paths, keys=None if keys is None else read_keys(fspath(keys)))


def _read_ranges(paths: Iterable[str], keys: str | None) -> Iterator[EventGroup]:
    from binlane.tables.ranges.stored_files import read_groups_of  # noqa: PLC0415 - paths do without

    for path in paths:
        for piece in _ranges(path, keys):
            yield from read_groups_of(piece)


def scan(  # noqa: PLR0913 - each argument narrows what is read
    path: Path | Iterable[Path],
    tables: str | Iterable[str] | None = None,
    columns: Collection[str] | None = None,
    start: Place | None = None,
    stop: Place | None = None,
    *,
    keys: Path | None = None,
    schema: Path | None = None,
    rows_max: int | None = None,
    rename: str = "follow",
    **filters: str | Iterable[str],
) -> Iterator[pa.RecordBatch]:
    """The row changes of binlog files as Arrow record batches.

    Args:
        path: One file or several, as `read` takes them.
        tables: Databases and tables: `shop`, `shop.orders`; all if None.
        columns: Names of the tables' columns to keep; all if None.
        start: The place to start from: `FILE:POSITION`, a time (UTC unless it says a zone), or a
            GTID position, behind which it starts.
        stop: The place to stop at: before a file position or time, up to and with a GTID position.
        keys: File of the keys with which a server encrypted the files.
        schema: SQL file with CREATE TABLE statements, such as `mysqldump --no-data` writes: names
            and types that the log does not tell. DDL in the log keeps it up to date.
        rows_max: Rows of a batch at most; if None as many as serve well.
        rename: The rule of a filter for renamed tables: `follow` has them stay wanted, `name` goes
            by names alone.
        filters: `do_table`, `ignore_table`, `do_db`, `ignore_db`, `wild_do_table` and
            `wild_ignore_table`: a name or several, as the options of `binlane cat`. What they leave
            out of tables that they name is a warning (`warnings`), with its place, and at the end
            how much that is, by table; so is that the log has nothing of what they name.

    Yields:
        Batches of one table each, its name in the schema's metadata as `table`. One row is one
        row image: `_op` (`insert`, `update_before`, `update_after`, `delete`), `_gtid`,
        `_timestamp`, `_file`, `_position`, `_row`, then the table's columns; NULL where the image
        lacks one. A changed schema starts a new batch.

    Raises:
        CodecError: With file and position, if the file is damaged or a row cannot be decoded;
            behind all rows before it. Of a column that is not wanted the values are not looked at.
        ConfigError: If an argument cannot be used.
        StoreError: If a file cannot be read.
    """
    selection = Selection(
        scope=Scope.everything() if tables is None else parse_tables(tables),
        start=_bound(start, "start"),
        stop=_bound(stop, "stop"),
        filter_terms=_filter_terms(filters, rename) if filters else None,
    )
    key_file = None if keys is None else fspath(keys)
    if key_file is not None:
        read_keys(key_file)  # what is wrong with it is said at once
    want = ReadOptions(
        selection=selection,
        columns=None if columns is None else frozenset(columns),
        rows_max=rows_max,
    )
    return _scan_files(_paths(path), want, key_file, None if schema is None else _catalog(schema))


def _filter_terms(filters: Mapping[str, str | Iterable[str]], rename: str) -> FilterTerms:
    """Return the terms of a filter by the arguments of `scan` and `land`.

    Raises:
        ConfigError: If there is no such list, or if a name is none.
    """
    from binlane.binlogs.filters.terms import LIST_OPTIONS, parse_terms  # noqa: PLC0415 - for filters only

    for name in filters:
        if name not in LIST_OPTIONS:
            raise ConfigError(
                f"there is no argument {name}",
                key=name,
                hint=f"lists are {', '.join(LIST_OPTIONS)}",
            )
    lists = {
        name: [given] if isinstance(given, str) else list(given) for name, given in filters.items()
    }
    return parse_terms(lists, rename=rename)


def land(  # noqa: PLR0913 - each argument is a setting
    source: Path | Iterable[Path],
    into: Path,
    *,
    mode: str | Iterable[str] = ("current", "changes"),
    table_format: str = "delta",
    tables: str | Iterable[str] = "",
    engine: Engine | None = None,
    observer: Callable[[LandingProgress], None] | None = None,
    **settings: Any,
) -> LandingReport:
    """Land the changes of a log in tables; what is landed already is not landed again.

    Args:
        source: Binlog files, a directory of them, or `DATA#name`.
        into: URI or path of the target: gets `current/<database>/<table>`, `changes/…` and so on.
        mode: The kinds of tables: `current`, `changes`, `history`.
        table_format: The tables' format: `delta`, `iceberg` or `parquet`.
        tables: The tables of the log to land: `shop.orders`, or the lists of CREATE BINLOG; all if
            empty.
        engine: The engine that runs the tasks: by default processes of this machine;
            `binlane.tables.spark.spark_engine.SparkEngine(spark)` for a cluster.
        observer: Called with the progress, often.
        settings: Others of `binlane.tables.landing.landing_settings.LandingSettings`, such as `follow_s=1.0`; and
            `do_table` and its like with `rename`, as of `scan`.

    Raises:
        CodecError: With file and position, if the log is damaged.
        ConfigError: If an argument cannot be used, or does not fit the target.
        StoreLockedError: If another driver lands there.
        StoreError: If the log or the target cannot be used.
    """
    from binlane.binlogs.filters.terms import LIST_OPTIONS  # noqa: PLC0415 - likewise
    from binlane.tables.landing.landing import land as land_log  # noqa: PLC0415 - for this function only
    from binlane.tables.landing.landing_settings import LandingSettings  # noqa: PLC0415 - likewise
    from binlane.tables.landing.range_work import FormatName, Mode  # noqa: PLC0415 - likewise

    filters: dict[str, Any] = {
        name: settings.pop(name) for name in LIST_OPTIONS if name in settings
    }
    if filters:
        settings["filter_terms"] = _filter_terms(filters, settings.pop("rename", "follow"))
    try:
        chosen = LandingSettings(
            modes=frozenset(map(Mode, mode.split(",") if isinstance(mode, str) else mode)),
            format=FormatName(table_format),
            tables=tables if isinstance(tables, str) else ", ".join(tables),
            **settings,
        )
    except (TypeError, ValueError) as error:
        raise ConfigError(
            str(error),
            key="land",
            hint="see binlane.tables.landing.landing_settings.LandingSettings",
        ) from None
    return land_log(_paths(source), fspath(into), chosen, engine=engine, observer=observer)


def connect(
    path: Path | Iterable[Path],
    tables: str | Iterable[str] | None = None,
    start: Place | None = None,
    stop: Place | None = None,
    *,
    keys: Path | None = None,
    schema: Path | None = None,
    **config: str,
) -> DuckDBPyConnection:
    """Open a DuckDB in memory that has the tables of a log; needs `pip install 'binlane[query]'`.

    A table `shop.orders` has one row a change: `_op` (`insert`, `update`, `delete`), `_timestamp`
    and `_gtid`, the table's columns behind the change (of a delete: before it), the row before it
    in the struct `_before`, then `_file`, `_pos`, `_row`, `_seq` and `_server_id`. The tables
    `events`, `groups` and `statements` have what else is in the log. Queries see the log as it was
    when the connection was made.

    Args:
        path: One file or several, a directory, `DATA#name`, a URI or a server, as of `scan`.
        tables: Databases and tables: `shop`, `shop.orders`; all if None.
        start: The place to start from, as of `scan`.
        stop: The place to stop at, as of `scan`.
        keys: File of the keys with which a server encrypted the files.
        schema: SQL file with CREATE TABLE statements: names and types that the log does not tell.
        config: Settings of DuckDB, such as `enable_external_access="false"`.

    Raises:
        CodecError: With file and position, if a file does not begin as a binlog file. Damage that
            a query meets is an error of DuckDB, with our text.
        ConfigError: If an argument cannot be used, or duckdb is not installed.
        StoreError: If a file cannot be read.
        PeerError: If a server cannot be asked.
    """
    try:
        from binlane.tables.query.log_connection import connect_log  # noqa: PLC0415 - needs duckdb
    except ModuleNotFoundError as error:
        if error.name != "duckdb":
            raise
        raise ConfigError(
            "duckdb is not installed", key="extras", hint="pip install 'binlane[query]'"
        ) from None
    from binlane.tables.query.log_tables import LogOptions, LogTables  # noqa: PLC0415 - as above

    key_file = None if keys is None else fspath(keys)
    if key_file is not None:
        read_keys(key_file)
    options = LogOptions(
        selection=Selection(
            scope=Scope.everything() if tables is None else parse_tables(tables),
            start=_bound(start, "start"),
            stop=_bound(stop, "stop"),
        ),
        keys=key_file,
        schema=None if schema is None else _catalog(schema),
    )
    connected = connect_log(LogTables(_paths(path), options), config=config)
    _warn(connected.notes)
    return connected.connection


def _is_for_kernels(path: str) -> bool:
    if "://" in path:
        return are_kernels_ready()
    if not is_large(path):
        return False
    from binlane.log.kernels.load import can_jit  # noqa: PLC0415 - small files do without

    return are_kernels_ready() or (can_jit() and is_large(path, _JIT_BYTES_MIN))


def _scan_files(
    paths: Iterable[str], want: ReadOptions, keys: str | None, catalog: LoggedObjects | None
) -> Iterator[pa.RecordBatch]:
    """Large files by kernels; the others, whose reading takes less than loading those, without."""
    pieces = [piece for path in paths for piece in _ranges(path, keys)]
    if not pieces:
        return
    with closing(LogBefore(pieces[0])) as before:
        counters = ReadCounters()
        log = FollowedLog(catalog, filter_state_of(pieces[0], want.selection))
        state = LogState(prepared=PreparedTransactions(before), log=log)
        for piece in pieces:
            is_fast = _is_for_kernels(piece.uri)
            items = read_range(piece, want, counters=counters, state=state, by_kernels=is_fast)
            for item in items:
                assert isinstance(item, pa.RecordBatch), "nothing else is wanted"
                yield item
            if log.filter_state is not None:
                _warn(log.filter_state.notes)
                log.filter_state.notes.clear()
    if log.filter_state is not None:
        is_whole = want.selection.is_unbounded
        _warn(log.filter_state.summary(is_whole=is_whole))


def _warn(notes: Iterable[str]) -> None:
    """Warn of what a filter did to tables that it names."""
    for note in notes:
        warnings.warn(note, stacklevel=3)


def _catalog(schema: Path) -> LoggedObjects:
    """Return the catalog of the objects in a schema file.

    Raises:
        StoreError: If it cannot be read.
    """
    from binlane.statements.sql.logged_objects import LoggedObjects  # noqa: PLC0415 - for this argument only

    catalog = LoggedObjects()
    data = b"".join(open_chunks(fspath(schema)))
    catalog.load(data.decode("utf-8", "surrogateescape"))
    return catalog


def _paths(path: Path | Iterable[Path]) -> list[str]:
    paths = [path] if isinstance(path, str | PathLike) else list(path)
    return [fspath(each) for each in paths]


def _ranges(path: str, keys: str | None) -> list[LogRange]:
    """Return the ranges that a path names: a file, or all files of a log.

    Raises:
        ConfigError: If it names no log.
        StoreError: If it cannot be listed.
        PeerError: If it is a server that cannot be asked.
    """
    if _is_file(path):
        name = base_name(path)
        return [LogRange(uri=path, name=name, number=0, is_plain=False, keys=keys)]
    from binlane.tables.ranges.filesystems import is_server  # noqa: PLC0415 - files do without
    from binlane.tables.ranges.known_facts import KnownFacts  # noqa: PLC0415 - likewise
    from binlane.tables.ranges.log_sources import Sources  # noqa: PLC0415 - likewise

    def end_of(file: StoredLogFile) -> int | None:
        """Return the end of the last whole group of a file that is being written; a server knows itself."""
        if not file.is_live or is_server(file.uri):
            return None
        facts = KnownFacts(keys=keys).of(file)
        return None if facts.fault else facts.end

    return [
        LogRange(
            uri=file.uri,
            name=file.name,
            number=file.number,
            stop=end_of(file),
            is_plain=file.is_plain,
            keys=keys,
        )
        for file in Sources([path]).files()
    ]


def _is_file(path: str) -> bool:
    """True if a path is to be read itself: a file, a pipe, or standard input."""
    return path == "-" or (os.path.exists(path) and not os.path.isdir(path))  # noqa: PTH110, PTH112 - any path


def _bound(place: Place | None, key: str) -> Bound | None:
    if isinstance(place, str):
        return parse_bound(place, key=key)
    if isinstance(place, datetime) and place.tzinfo is None:
        return place.replace(tzinfo=UTC)
    return place
