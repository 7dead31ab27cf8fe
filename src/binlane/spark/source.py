"""The `binlog` data source: `spark.read.format("binlog")` and `spark.readStream.format("binlog")`.

Workers open the files themselves; what travels to them is a path and a range. Spark's classes ask
for names in camel case.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from binlane.codec.format import MAGIC
from binlane.columnar.selection import file_number
from binlane.errors import BinlaneError, ConfigError, StoreError
from binlane.positions import FilePosition
from binlane.ranges.files import (
    Log,
    LogFile,
    LogRange,
    limit_position,
    read_groups_of,
    rows_position,
    slices,
)
from binlane.spark.change_log import ChangeLog, change_log_schema
from binlane.spark.options import Layout, SourceOptions
from binlane.spark.typed_table import read_typed, typed_schema
from binlane.spark.versions import (
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
    arrow_schema_of,
    read_everything,
)
from binlane.store.reading import fingerprint, first_event

FORMAT_NAME = "binlog"
_BYTES_UNLIMITED = 1 << 62


@contextmanager
def hints_shown() -> Iterator[None]:
    """Add the hint of an error to its traceback, which is all of it that Spark passes on."""
    try:
        yield
    except BinlaneError as error:
        if error.hint:
            error.add_note(f"hint: {error.hint}")
        raise


class BinlogDataSource(DataSource):
    """Binlog files, a directory of them, or a binlog of a store."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        with hints_shown():
            self._options = SourceOptions.parse(dict(options))

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT_NAME

    @hints_shown()
    def schema(self) -> StructType:
        """The columns of the layout that the options ask for."""
        if self._options.layout is Layout.TABLE:
            schema = typed_schema(self._options, Log(self._options.paths).files())
        else:
            schema = change_log_schema(self._options)
        return from_arrow_schema(schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of all that there is."""
        return BinlogReader(self._options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """A reader of what there is and of what comes."""
        return BinlogStreamReader(self._options, schema)


class BinlogReader(DataSourceReader):
    """Reads a log once."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    @hints_shown()
    def partitions(self) -> list[InputPartition]:
        """Slices of all files."""
        return [
            InputPartition(piece)
            for file in Log(self._options.paths).files()
            for piece in slices(
                file,
                start=len(MAGIC),
                stop=file.size_bytes,
                size_bytes=self._options.max_partition_bytes,
            )
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The batches of one slice."""
        return read_partition(self._options, self._schema, partition)


class BinlogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a log as it grows.

    An offset is the file and the position up to which everything is read, and the file's
    fingerprint, so that another log of the same name is noticed.
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._log = Log(options.paths)
        self._target: FilePosition | None = None

    @hints_shown()
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """The beginning of the oldest file."""
        file = self._files()[0]
        return _offset(file, len(MAGIC))

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """What the options say of a micro-batch."""
        if self._options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(self._options.max_bytes_per_trigger)
        if self._options.max_rows_per_trigger is not None:
            return ReadMaxRows(self._options.max_rows_per_trigger)
        return read_everything()

    @hints_shown()
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember what there is now; the query ends there."""
        last = self._files()[-1]
        self._target = FilePosition(last.name, last.size_bytes or len(MAGIC))

    @hints_shown()
    def latestOffset(  # noqa: N802
        self, start: dict[str, Any] | None = None, limit: Any = None
    ) -> dict[str, Any]:
        """The end of the next micro-batch: always of a whole event group.

        Spark 4.1 passes nothing and gets all that there is.
        """
        files = _up_to(self._files(), self._target)
        if start is None:
            return _offset(files[-1], files[-1].size_bytes)
        files = _from(files, start)
        position = int(start["position"])
        if isinstance(limit, ReadMaxBytes):
            return self._limited(files, position, limit.max_bytes)
        if isinstance(limit, ReadMaxRows):
            file, position = rows_position(
                files, position, limit.max_rows, self._options.selection.scope
            )
            return _offset(file, position)
        return _offset(files[-1], files[-1].size_bytes)

    @hints_shown()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Slices of what lies between two offsets."""
        files = _from(self._files(), start)
        _check_present(files, end)
        found: list[InputPartition] = []
        for file in files:
            if file.number > file_number(end["file"]):
                break
            low = int(start["position"]) if file.name == start["file"] else len(MAGIC)
            high = int(end["position"]) if file.name == end["file"] else file.size_bytes
            if high is None or low < high:
                size_bytes = self._options.max_partition_bytes
                pieces = slices(file, start=low, stop=high, size_bytes=size_bytes)
                found += [InputPartition(piece) for piece in pieces]
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The batches of one slice."""
        return read_partition(self._options, self._schema, partition)

    def _files(self) -> tuple[LogFile, ...]:
        files = self._log.one_log()
        for file in files:
            if file.size_bytes is None:
                raise ConfigError(
                    f"{file.path} is compressed, so no position in it can be found again",
                    key="path",
                    hint="unpack it, or read it with spark.read",
                )
        return files

    def _limited(
        self, files: tuple[LogFile, ...], position: int, size_bytes: int
    ) -> dict[str, Any]:
        for file in files:
            assert file.size_bytes is not None, "streams take plain files only"
            left = file.size_bytes - position
            if left > size_bytes:
                end = limit_position(file, FilePosition(file.name, position), size_bytes)
                return _offset(file, end)
            size_bytes -= left
            position = len(MAGIC)
            if size_bytes <= 0:
                return _offset(file, file.size_bytes)
        return _offset(files[-1], files[-1].size_bytes)


def read_partition(
    options: SourceOptions, schema: StructType, partition: InputPartition
) -> Iterator[pa.RecordBatch]:
    """The batches of one slice, in exactly the schema that Spark was told.

    Raises:
        CodecError: With file and position, if the file is damaged.
    """
    piece: LogRange | None = getattr(partition, "value", None)
    if piece is None:  # what Spark makes of no partitions at all
        return
    with hints_shown():
        if options.layout is Layout.TABLE:
            yield from read_typed(piece, options, arrow_schema_of(schema))
            return
        renderer = ChangeLog(options)
        for group in read_groups_of(piece):
            yield from renderer.feed(group)
        yield from renderer.finish()


def _offset(file: LogFile, position: int | None) -> dict[str, Any]:
    assert position is not None, "streams take plain files only"
    return {
        "file": file.name,
        "position": position,
        "fingerprint": fingerprint(first_event(file.path)),
    }


def _up_to(files: tuple[LogFile, ...], target: FilePosition | None) -> tuple[LogFile, ...]:
    """The files as they were when a target was set."""
    if target is None:
        return files
    number = file_number(target.file)
    return tuple(
        file.up_to(target.position) if file.number == number else file
        for file in files
        if file.number <= number
    )


def _from(files: tuple[LogFile, ...], start: dict[str, Any]) -> tuple[LogFile, ...]:
    """The files from an offset on.

    Raises:
        StoreError: If the log does not hold it any more.
    """
    first = _check_present(files, start)
    found = tuple(file for file in files if file.number >= first.number)
    for before, after in pairwise(found):
        if after.number != before.number + 1:
            raise StoreError(
                f"files are missing between {before.name} and {after.name}",
                path=before.path,
                hint="bring them back, or start anew with an empty checkpoint and target",
            )
    return found


def _check_present(files: tuple[LogFile, ...], offset: dict[str, Any]) -> LogFile:
    name, position = offset["file"], int(offset["position"])
    file = next((file for file in files if file.name == name), None)
    if file is None:
        raise StoreError(
            f"the log no longer holds {name}:{position}, where this query stands; "
            f"it begins with {files[0].name}",
            path=files[0].path,
            hint="it was purged or reset: start anew with an empty checkpoint and target",
        )
    if offset["fingerprint"] != fingerprint(first_event(file.path)) or position > (
        file.size_bytes or 0
    ):
        raise StoreError(
            f"{name} is not the file any more in which this query stands at {position}",
            path=file.path,
            hint="the log was reset: start anew with an empty checkpoint and target",
        )
    return file
