"""Column values → JSON, as `docs/reference/json.md` specifies for `cat --format=json`.

The result is what `codec.json_text` takes.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from decimal import Decimal
from struct import Struct
from typing import Final

from binlane.log.codec.columns import ABSENT, Column
from binlane.log.codec.json_binary import JsonDocument
from binlane.log.codec.json_diff import JsonDiff, JsonDiffs
from binlane.log.codec.types import ColumnType

_FLOAT: Final = Struct("<f")
_FLOAT_DIGITS_MIN, _FLOAT_DIGITS_MAX = 6, 9


def json_bytes(data: bytes) -> dict[str, str]:
    """Bytes that are no text."""
    return {"base64": base64.b64encode(data).decode()}


def json_row(columns: Sequence[Column], values: Sequence[object]) -> dict[str, object]:
    """One row image by column name, `@1`, `@2` … where the log has none; absent columns left out."""
    return {
        column.name if column.name is not None else f"@{column.index + 1}": json_value(
            value, column.type
        )
        for column, value in zip(columns, values, strict=True)
        if value is not ABSENT
    }


def json_value(value: object, column_type: ColumnType) -> object:
    """Return one decoded column value; `column_type` separates FLOAT from DOUBLE."""
    if isinstance(value, bytes):
        return json_bytes(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, float):
        return shortest_float(value) if column_type is ColumnType.FLOAT else value
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, JsonDocument):
        return value.value
    if isinstance(value, JsonDiffs):
        return {"json_diff": [_json_diff(diff) for diff in value.diffs]}
    return value


def _json_diff(diff: JsonDiff) -> dict[str, object]:
    value = {} if diff.value is None else {"value": diff.value.value}
    return {"op": diff.operation.name.lower(), "path": diff.path, **value}


def shortest_float(value: float) -> float:
    """The double with the fewest digits that reads back to the same 4-byte FLOAT."""
    if not math.isfinite(value):
        return value
    stored = _FLOAT.pack(value)
    for digits in range(_FLOAT_DIGITS_MIN, _FLOAT_DIGITS_MAX):
        short = float(f"{value:.{digits}g}")
        if abs(short) <= 3.4028234663852886e38 and _FLOAT.pack(short) == stored:
            return short
    return float(f"{value:.{_FLOAT_DIGITS_MAX}g}")
