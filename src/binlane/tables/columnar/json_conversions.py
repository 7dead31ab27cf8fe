"""Columns of row images → the JSON of their values, a column at a time.

The JSON is that of `codec.json_values`. A value for which no other way is exact goes through the
reference decoder, each distinct value once.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute

from binlane.log.codec.columns import Column
from binlane.log.codec.json_text import json_text
from binlane.log.codec.json_values import json_value
from binlane.log.codec.types import ColumnType
from binlane.log.grouping.window import Bytes
from binlane.tables.columnar.conversions import (
    LISTED_MEMBERS_MAX,
    Convert,
    Converted,
    Positions,
    all_sets,
    by_value,
    conversion,
    members_of,
)

pc: Any = pyarrow.compute  # its stubs know no scalars among arrays

_STRING: Final = pa.string()
_BYTES: Final = '{"base64": '
_ESCAPED: Final = r'[\x00-\x1f"\\]'
_DATE_TIME: Final = len("2026-01-01 00:00:00")
_Finish = Callable[["pa.Array[Any]"], Any]


def json_conversion(column: Column) -> Convert:
    """Return the function that turns the values of a column into their JSON; NULL stays NULL."""
    exact = by_value(column, _STRING, lambda value: json_text(json_value(value, column.type)))
    if column.logical is not None or column.has_schema:
        return exact
    kind = column.type
    if kind is ColumnType.ENUM and column.members is not None and 1 <= column.pack_length <= 2:
        return members_of(column, [json_text(member) for member in ("", *column.members)], "enum")
    if kind is ColumnType.SET and column.members is not None:
        if len(column.members) <= LISTED_MEMBERS_MAX and column.pack_length == 1:
            sets = [text.split(",") if text else [] for text in all_sets(column.members)]
            return members_of(column, [json_text(members) for members in sets], "enum")
        return exact
    finish = _finish(column)
    return exact if finish is None else _finished(column, finish, exact)


def _finished(column: Column, finish: _Finish, exact: Convert) -> Convert:
    convert, has_dates = conversion(column), column.type in _DATES

    def run(data: Bytes, positions: Positions, has_nulls: bool) -> Converted:  # noqa: FBT001
        before = positions.copy() if has_dates else positions
        values, invalid = convert(data, positions, has_nulls)
        # Dates that are none, which the array and their positions have as NULL; bytes that are no
        # text, which cannot be told from text any more.
        if invalid or (pa.types.is_string(values.type) and _any(pc.starts_with(values, _BYTES))):
            return exact(data, before, has_nulls)
        return finish(values), 0

    return run


def _finish(column: Column) -> _Finish | None:
    """Return the function from an array of the column's Arrow type to JSON; None if it tells not enough."""
    kind = column.type
    if kind in _MOMENTS:
        length = _DATE_TIME + (1 + column.fraction_digits if column.fraction_digits else 0)
        return lambda values: _quoted(_text_of_moments(values, length))
    if kind in _STRINGS:
        # Without a character set, and in one, bytes may stand for text that is none.
        return None if column.collation_id is None else _string_or_bytes
    return _FINISHES.get(kind)


def _any(flags: pa.Array[Any]) -> bool:
    return bool(pc.any(flags).as_py())


def _numbers(values: pa.Array[Any]) -> Any:
    return pc.cast(values, _STRING)


def _doubles(values: pa.Array[Any]) -> pa.Array[Any]:
    texts = [None if value is None else float.__repr__(value) for value in values.to_pylist()]
    return pa.array(texts, _STRING)


def _decimals(values: pa.Array[Any]) -> Any:
    texts = pc.cast(values, _STRING)
    if _any(pc.match_substring(texts, "E")):  # Arrow's way to write small fractions
        plain = [None if value is None else format(value, "f") for value in values.to_pylist()]
        texts = pa.array(plain, _STRING)
    return _quoted(texts)


def _dates(values: pa.Array[Any]) -> Any:
    return _quoted(pc.cast(values, _STRING))


def _text_of_moments(values: pa.Array[Any], length: int) -> Any:
    plain = values.cast(pa.int64()).cast(pa.timestamp("us"))
    return pc.utf8_slice_codeunits(pc.cast(plain, _STRING), 0, length)


def _quoted(values: pa.Array[Any]) -> Any:
    """Text without characters that JSON escapes."""
    return pc.binary_join_element_wise('"', values, '"', "")


def _string_or_bytes(values: pa.Array[Any]) -> Any:
    if pa.types.is_binary(values.type):
        texts = [
            None if value is None else f'{{"base64": "{base64.b64encode(value).decode()}"}}'
            for value in values.to_pylist()
        ]
        return pa.array(texts, _STRING)
    escaped = pc.match_substring_regex(values, _ESCAPED)
    if not _any(escaped):
        return _quoted(values)
    texts = [
        None if value is None else json_text(value) for value in values.filter(escaped).to_pylist()
    ]
    return pc.replace_with_mask(_quoted(values), escaped.fill_null(False), pa.array(texts, _STRING))


def json_rows(names: Sequence[str], columns: Sequence[pa.Array[Any]], count: int) -> Any:
    """Row images as JSON objects.

    Args:
        names: The names of the columns, in their order.
        columns: The JSON of their values; NULL becomes `null`.
        count: The number of row images.
    """
    if not columns:
        return pa.repeat("{}", count)
    pieces: list[Any] = []
    for name, values in zip(names, columns, strict=True):
        pieces += [f"{', ' if pieces else '{'}{json_text(name)}: ", values]
    return pc.binary_join_element_wise(
        *pieces, "}", "", null_handling="replace", null_replacement="null"
    )


_MOMENTS: Final = frozenset({ColumnType.DATETIME2, ColumnType.TIMESTAMP2})
_DATES: Final = _MOMENTS | {ColumnType.DATE}
_STRINGS: Final = frozenset(
    {
        ColumnType.VARCHAR,
        ColumnType.VAR_STRING,
        ColumnType.STRING,
        ColumnType.TINY_BLOB,
        ColumnType.BLOB,
        ColumnType.MEDIUM_BLOB,
        ColumnType.LONG_BLOB,
    }
)
_FINISHES: Final[Mapping[ColumnType, _Finish]] = MappingProxyType(
    {
        ColumnType.TINY: _numbers,
        ColumnType.SHORT: _numbers,
        ColumnType.INT24: _numbers,
        ColumnType.LONG: _numbers,
        ColumnType.LONGLONG: _numbers,
        ColumnType.YEAR: _numbers,
        ColumnType.BIT: _numbers,
        ColumnType.DOUBLE: _doubles,
        ColumnType.NEWDECIMAL: _decimals,
        ColumnType.DATE: _dates,
        ColumnType.TIME2: _quoted,
    }
)
