"""Rows that differ → their keys, and which of their columns differ, for people."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from binlane.client.rows.logged_table import LoggedTable
from binlane.errors import CodecError
from binlane.log.codec.columns import Column, RowImage, Value, decode_rows
from binlane.log.codec.rows import WriteRowsV1Event
from binlane.log.codec.table_metadata import table_columns
from binlane.tables.proof.verdicts import (
    MISSING_CHANGE,
    MISSING_IN_BINLOG,
    MISSING_ON_SERVER,
    OTHER_VALUES,
    FirstDifference,
)

_SHOWN_MAX: Final = 64


@dataclass(slots=True)
class _NamedRow:
    values: RowImage
    gtid: str


class RowNames:
    """Names rows of one table.

    Args:
        table: The table as the server has it.
    """

    def __init__(self, table: LoggedTable) -> None:
        # With the character sets, which a server's log may not have.
        self._table_map = replace(table, row_metadata="FULL").table_map(1)
        self._columns = table_columns(self._table_map, flavor=table.flavor)
        defined = [column.name for column in table.source.defined]
        self._names = tuple(defined) if len(defined) == len(self._columns) else ()
        by_name = {name.lower(): number for number, name in enumerate(self._names)}
        keys = (by_name.get(part.name.lower()) for part in table.source.key)
        self._key = tuple(number for number in keys if number is not None)

    def first(
        self,
        on_server: Mapping[int, tuple[bytes, str]],
        in_binlog: Mapping[int, tuple[bytes, str]],
        never_there: Collection[int] = (),
    ) -> FirstDifference:
        """Name the first of some rows that differ.

        Args:
            on_server: Images of rows that only the server has, with a text each, by their hashes.
            in_binlog: Images of rows that only the binlog has, with the GTID of the last group
                that has them.
            never_there: Hashes of those in `in_binlog` that the binlog takes out and never had.
        """
        gone = self._by_key({key: in_binlog[key] for key in never_there if key in in_binlog})
        server, binlog = self._by_key(on_server), self._by_key(in_binlog)
        alike = {
            key
            for key in server.keys() & binlog.keys()
            if key not in gone and not self._differing(server[key].values, binlog[key].values)
        }
        keys = sorted({*server, *binlog} - alike, key=_order)
        if not keys:
            return FirstDifference()
        key = keys[0]
        mine, other = server.get(key), binlog.get(key)
        columns: tuple[str, ...] = ()
        if key in gone:
            kind, other = MISSING_CHANGE, gone[key]
        elif mine is not None and other is not None:
            kind, columns = OTHER_VALUES, self._differing(mine.values, other.values)
        else:
            kind = MISSING_ON_SERVER if mine is None else MISSING_IN_BINLOG
        return FirstDifference(
            key=self._text(key),
            kind=kind,
            columns=columns,
            binlog_gtid="" if other is None else other.gtid,
            rows=len(keys),
        )

    def _differing(self, one: RowImage, other: RowImage) -> tuple[str, ...]:
        pairs = enumerate(zip(one, other, strict=True))
        # JSON of MySQL may be the same in other bytes.
        return tuple(
            self._name(number)
            for number, (mine, its) in pairs
            if mine != its and str(mine) != str(its)
        )

    def _by_key(self, rows: Mapping[int, tuple[bytes, str]]) -> dict[tuple[Value, ...], _NamedRow]:
        found = {}
        for image, gtid in rows.values():
            values = self._decoded(image)
            if values is not None:
                found[self._key_of(values)] = _NamedRow(values, gtid)
        return found

    def _key_of(self, values: RowImage) -> tuple[Value, ...]:
        return tuple(values[number] for number in self._key) or tuple(values)

    def _decoded(self, image: bytes) -> RowImage | None:
        count = len(self._columns)
        event = WriteRowsV1Event(
            table_id=1,
            flags=0,
            extra=None,
            column_count=count,
            columns_present=((1 << count) - 1).to_bytes((count + 7) // 8, "little"),
            columns_present_after=None,
            images=image,
        )
        try:
            return next(after for _, after in decode_rows(event, self._columns) if after)
        except (CodecError, StopIteration):
            return None

    def _name(self, number: int) -> str:
        return self._names[number] if self._names else f"@{number + 1}"

    def _text(self, key: Sequence[Value]) -> str:
        numbers = self._key or range(len(key))
        shown = [
            f"{self._name(number)}={_literal(value, self._columns[number])}"
            for number, value in zip(numbers, key, strict=True)
        ]
        return ", ".join(shown)


def _literal(value: Value, column: Column) -> str:
    """A value as people write it, cut where it is long."""
    if isinstance(value, int) and value < 0 and column.is_unsigned:
        value += 1 << 64
    if isinstance(value, bytes):
        text = f"0x{value.hex()}"
    elif isinstance(value, str):
        text = f"'{value}'"
    else:
        text = "NULL" if value is None else str(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 1]}…"


def _order(key: Sequence[Value]) -> tuple[tuple[int, float, str], ...]:
    """Numbers in their order, everything else in that of its text."""
    return tuple(
        (0, value, "") if isinstance(value, int | float) else (1, 0.0, str(value)) for value in key
    )
