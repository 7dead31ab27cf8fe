"""Row images of one table → one record batch: the seam that a fast path fills.

`BatchBuilder` is what `batches` needs; `ScalarBatchBuilder` fills it value by value with the
reference decoder of the codec.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final, Protocol

import pyarrow as pa

from binlane.log.codec.columns import ABSENT, decode_rows
from binlane.log.codec.rows import RowsEvent
from binlane.positions import file_number
from binlane.tables.columnar.arrow_types import converter
from binlane.tables.columnar.table_schema import (
    CHANGE_TYPES,
    INVALID_DATES,
    SEQUENCE_FILE_BITS,
    AbsentColumns,
    TableSchema,
)

_MICROSECONDS: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsSource:
    """The origin of a rows event: facts that all of its images share.

    Attributes:
        gtid: The GTID of the event group, as text.
        timestamp: The time of the event, in seconds since 1970.
        file: Base name of the binlog file.
        position: Where the event stands in the file, in bytes.
        group: Where its transaction begins, in bytes; negative of an XA transaction that commits.
        micros: Microseconds since 1970 of the commit; 0 where the log does not have them.
    """

    gtid: str | None
    timestamp: int
    file: str
    position: int
    group: int
    micros: int
    server_id: int

    @property
    def is_xa(self) -> bool:
        """True if changes are numbered through the transaction, since all of its events have one place."""
        return self.group < 0


class BatchBuilder(Protocol):
    """Collects rows events of one table and schema."""

    @property
    def rows(self) -> int:
        """Images collected so far."""

    def append(
        self, body: RowsEvent, source: RowsSource, *, change: int, image: int
    ) -> tuple[int, int]:
        """Take all images of one event.

        Args:
            body: The rows event, as it is decoded.
            source: The origin of the event's rows.
            change: Number of its first change.
            image: Number of its first image within the transaction.

        Returns:
            The number of changes and the number of images in the event.

        Raises:
            CodecError: If an image is not what the table's columns say.
        """

    def finish(self) -> pa.RecordBatch:
        """The batch; the builder is empty afterwards."""


BuilderFactory = Callable[[TableSchema], BatchBuilder]


class ScalarBatchBuilder:
    """Builds batches from the values that the codec's reference decoder gives.

    Args:
        schema: The schema of the table's batches.
    """

    def __init__(self, schema: TableSchema) -> None:
        self._schema = schema
        fields = schema.own
        self._converters = [converter(field.type) for field in fields]
        self._names = [field.name for field in fields]
        self._clear()

    def _clear(self) -> None:
        self._values: list[list[object]] = [[] for _ in self._schema.chosen]
        self._ops: list[str] = []
        self._numbers: list[int] = []
        self._orders: list[int] = []
        self._runs: list[tuple[int, RowsSource]] = []
        self._absent: tuple[set[str], set[str]] = (set(), set())

    @property
    def rows(self) -> int:
        """Images collected so far."""
        return len(self._ops)

    def append(
        self, body: RowsEvent, source: RowsSource, *, change: int, image: int
    ) -> tuple[int, int]:
        """Take all images of one event."""
        first = self.rows
        # All of them before the first is added: a damaged event gives nothing.
        changes = list(decode_rows(body, self._schema.columns))
        for number, (before, after) in enumerate(changes, change):
            is_update = before is not None and after is not None
            if before is not None:
                self._add(before, "update_before" if is_update else "delete", number)
            if after is not None:
                self._add(after, "update_after" if is_update else "insert", number)
        images = self.rows - first
        self._orders.extend(range(image, image + images))
        self._runs.append((images, source))
        return len(changes), images

    def _add(self, image: tuple[object, ...], op: str, number: int) -> None:
        self._ops.append(op)
        self._numbers.append(number)
        for position, index in enumerate(self._schema.chosen):
            value = image[index]
            if value is ABSENT:
                self._absent[op not in {"update_before", "delete"}].add(self._names[position])
                value = None
            self._values[position].append(value)

    def finish(self) -> pa.RecordBatch:
        """The batch; the builder is empty afterwards."""
        schema = self._schema.arrow
        invalid_dates = 0
        arrays = self._change_arrays()
        fields = self._schema.own
        for field, values, convert in zip(fields, self._values, self._converters, strict=True):
            converted = values
            if convert is not None:
                converted = [None if value is None else convert(value) for value in values]
                invalid_dates += converted.count(None) - values.count(None)
            arrays.append(pa.array(converted, field.type))
        metadata = dict(schema.metadata)
        metadata |= AbsentColumns(*map(frozenset, self._absent)).metadata()
        if invalid_dates:
            metadata[INVALID_DATES] = b"%d" % invalid_dates
        self._clear()
        return pa.RecordBatch.from_arrays(arrays, schema=schema.with_metadata(metadata))

    def _change_arrays(self) -> list[pa.Array[Any]]:
        names = self._schema.change_names
        return [pa.array(self._change_values(name), CHANGE_TYPES[name]) for name in names]

    def _change_values(self, name: str) -> list[Any]:
        """The values of a change column."""
        of_images: dict[str, list[Any]] = {
            "_op": self._ops,
            "_row": self._numbers,
            "_txn_order": self._orders,
        }
        if name in of_images:
            return of_images[name]
        of_event = _OF_EVENT[name]
        return [value for count, source in self._runs for value in [of_event(source)] * count]


def _ts(source: RowsSource) -> int:
    return source.micros or source.timestamp * _MICROSECONDS


def _seq(source: RowsSource) -> int:
    return (file_number(source.file) << SEQUENCE_FILE_BITS) + source.position


_OF_EVENT: Final[Mapping[str, Callable[[RowsSource], object]]] = MappingProxyType(
    {
        "_gtid": attrgetter("gtid"),
        "_timestamp": lambda source: source.timestamp * _MICROSECONDS,
        "_ts": _ts,
        "_file": attrgetter("file"),
        "_position": attrgetter("position"),
        "_pos": attrgetter("position"),
        "_server_id": attrgetter("server_id"),
        "_seq": _seq,
    }
)
