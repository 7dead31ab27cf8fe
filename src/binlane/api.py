"""Reading binlogs from Python: `binlane.read` and `binlane.scan`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime
from os import PathLike, fspath

import pyarrow as pa

from binlane.columnar.batches import ROWS_MAX_DEFAULT, batches
from binlane.columnar.selection import Bound, Selection, parse_bound, parse_tables
from binlane.errors import ConfigError
from binlane.grouping.event_group import EventGroup
from binlane.positions import FilePosition, GtidPosition
from binlane.scope.scope import Scope
from binlane.store.reading import read_groups

Path = str | PathLike[str]
Place = str | datetime | FilePosition | GtidPosition


def read(path: Path | Iterable[Path]) -> Iterator[EventGroup]:
    """The event groups of binlog files, control groups of one event included.

    Args:
        path: One file or several, as one stream in the order given; plain or compressed by gzip,
            xz or zstd; `-` is standard input.

    Raises:
        CodecError: At the first fault, with file and position, behind all groups before it.
        StoreError: If a file cannot be read.
    """
    return read_groups(_paths(path))


def scan(
    path: Path | Iterable[Path],
    tables: str | Iterable[str] | None = None,
    columns: Collection[str] | None = None,
    start: Place | None = None,
    stop: Place | None = None,
    *,
    rows_max: int = ROWS_MAX_DEFAULT,
) -> Iterator[pa.RecordBatch]:
    """The row changes of binlog files as Arrow record batches.

    Args:
        path: As of `read`.
        tables: Databases and tables: `shop`, `shop.orders`; all if None.
        columns: Names of the tables' columns to keep; all if None.
        start: From here on: `FILE:POSITION`, a time (UTC unless it says a zone), or a GTID
            position, behind which it starts.
        stop: Up to here: before a file position or time, up to and with a GTID position.
        rows_max: Rows of a batch at most.

    Yields:
        Batches of one table each, its name in the schema's metadata as `table`. One row is one
        row image: `_op` (`insert`, `update_before`, `update_after`, `delete`), `_gtid`,
        `_timestamp`, `_file`, `_position`, `_row`, then the table's columns; NULL where the image
        lacks one. A changed schema starts a new batch.

    Raises:
        CodecError: With file and position, if the file is damaged or a row cannot be decoded.
        ConfigError: If an argument cannot be used.
        StoreError: If a file cannot be read.
    """
    selection = Selection(
        scope=Scope.everything() if tables is None else parse_tables(tables),
        start=_bound(start, "start"),
        stop=_bound(stop, "stop"),
    )
    return batches(read(path), selection=selection, columns=columns, rows_max=rows_max)


def _paths(path: Path | Iterable[Path]) -> list[str]:
    paths = [path] if isinstance(path, str | PathLike) else list(path)
    names = [fspath(each) for each in paths]
    for name in names:
        if name.startswith(("mysql://", "mariadb://")):
            raise ConfigError(
                f"{name}: reading from a server is not built yet",
                key="path",
                hint="read the files of `binlane serve`, or copy those of the server",
            )
    return names


def _bound(place: Place | None, key: str) -> Bound | None:
    if isinstance(place, str):
        return parse_bound(place, key=key)
    if isinstance(place, datetime) and place.tzinfo is None:
        return place.replace(tzinfo=UTC)
    return place
