"""Schemas that change over time → one that holds all of them, and batches brought into it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

Values = TypeVar("Values", "pa.Array[Any]", "pa.ChunkedArray[Any]")

_INTEGER_DIGITS: Final = {8: 3, 16: 5, 32: 10, 64: 19}
_DECIMAL_DIGITS_MAX: Final = 38


def unify_schemas(schemas: Iterable[pa.Schema]) -> pa.Schema:
    """The schema with all columns of several, in the order of the last one.

    Columns that only earlier ones have come behind. A column with several types gets one that
    holds the values of all of them, in the last resort their texts. The metadata is that of the
    last.
    """
    found: dict[str, pa.DataType] = {}
    last = pa.schema([])
    for schema in schemas:
        for field in schema:
            known = found.get(field.name, field.type)
            found[field.name] = common_type(known, field.type)
        last = schema
    names = [*last.names, *(name for name in found if name not in set(last.names))]
    return pa.schema([(name, found[name]) for name in names]).with_metadata(last.metadata)


def common_type(first: pa.DataType, second: pa.DataType) -> pa.DataType:
    """A type that holds the values of both without loss."""
    if first.equals(second):
        return first
    if pa.types.is_null(first) or pa.types.is_null(second):
        return second if pa.types.is_null(first) else first
    if pa.types.is_integer(first) and pa.types.is_integer(second):
        return max(first, second, key=lambda each: each.bit_width)
    if pa.types.is_floating(first) and pa.types.is_floating(second):
        return pa.float64()
    if _is_exact(first) and _is_exact(second):
        return _common_decimal(first, second)
    # Bytes need not be text, but all else has a text, which has bytes.
    is_bytes = pa.types.is_binary(first) or pa.types.is_binary(second)
    return pa.binary() if is_bytes else pa.string()


def _is_exact(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(data_type) or pa.types.is_decimal(data_type))


def _is_bytes(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(data_type) or pa.types.is_binary(data_type))


def _common_decimal(first: pa.DataType, second: pa.DataType) -> pa.DataType:
    def digits(data_type: pa.DataType) -> tuple[int, int]:
        if isinstance(data_type, pa.Decimal128Type):
            return data_type.precision - data_type.scale, data_type.scale
        return _INTEGER_DIGITS[data_type.bit_width], 0

    before = max(digits(first)[0], digits(second)[0])
    scale = max(digits(first)[1], digits(second)[1])
    if before + scale > _DECIMAL_DIGITS_MAX:
        return pa.string()
    return pa.decimal128(before + scale, scale)


def is_same_value(first: pa.DataType, second: pa.DataType) -> bool:
    """True if a lossless cast gives what a server calls the same value."""
    if first.equals(second) or pa.types.is_null(first):
        return True
    kinds = (_is_exact, pa.types.is_floating, _is_bytes)
    return any(is_kind(first) and is_kind(second) for is_kind in kinds)


def conform_table(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """A table with exactly the columns of a schema: cast where types differ, else NULL.

    A column may be spelled otherwise, in capitals or small letters: to the servers it is the same.

    Raises:
        pa.ArrowInvalid: If a value does not fit its new type.
    """
    names = {name.lower(): name for name in rows.column_names if name not in set(schema.names)}
    names |= {name: name for name in rows.column_names}
    found = [names.get(each.name) or names.get(each.name.lower()) for each in schema]
    columns = [
        pa.chunked_array([pa.nulls(rows.num_rows, field.type)])
        if name is None
        else cast_exactly(rows.column(name), field.type)
        for name, field in zip(found, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def cast_exactly(values: Values, data_type: pa.DataType) -> Values:
    """Cast without losing anything.

    Raises:
        pa.ArrowInvalid: If a value does not fit.
        pa.ArrowNotImplementedError: If there is no such cast.
    """
    if values.type.equals(data_type):
        return values
    kind = values.type
    if pa.types.is_binary(data_type) and (pa.types.is_primitive(kind) or pa.types.is_decimal(kind)):
        values = pc.cast(values, pa.string())
    return pc.cast(values, data_type, safe=True)


def spelled_alike(known: Sequence[str], schemas: Iterable[pa.Schema]) -> list[pa.Schema]:
    """Schemas whose names are spelled as those that are known, or as the first one that has them."""
    spelled = {name.lower(): name for name in known} | {name: name for name in known}
    return [
        pa.schema(
            [
                field.with_name(
                    spelled.get(field.name) or spelled.setdefault(field.name.lower(), field.name)
                )
                for field in schema
            ]
        )
        for schema in schemas
    ]


def in_front(known: pa.Schema, wider: pa.Schema) -> pa.Schema:
    """A schema with the columns that are known first."""
    new = [field for field in wider if field.name not in set(known.names)]
    return pa.schema([*(wider.field(name) for name in known.names), *new])
