"""The key of one row: as a user writes it, and where rows of a log have it.

Arrow columns are compared to leave most rows out; decoded values decide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from binlane.errors import ConfigError
from binlane.log.codec.columns import ABSENT
from binlane.tables.changes.logged_changes import ChangedRow, name_of

KeyValues = tuple[str, ...]
"""The values of a key's columns, in key order, as texts."""

_QUOTES: Final = "'\""
_HEX: Final = "0x"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowKey:
    """The key of a row.

    Attributes:
        names: Names of the key's columns in key order, in small letters; empty for the primary
            key.
        values: The values of these columns.
    """

    names: tuple[str, ...]
    values: KeyValues


def read_key(texts: Sequence[str]) -> RowKey:
    """Read `42`, `42,'a'`, or `id=42`, `shop=7` as a user writes them.

    Raises:
        ConfigError: If the forms are mixed, or a quote does not end.
    """
    parts = [part for text in texts for part in _split(text)]
    named = [_named(part) for part in parts]
    if not parts or any(name is None for name, _ in named) != all(
        name is None for name, _ in named
    ):
        raise ConfigError(
            f"{' '.join(texts)!r} is no key",
            key="key",
            hint="write 42, or 42,'a' for the primary key's columns in order, or id=42,shop=7",
        )
    names = tuple(name.lower() for name, _ in named if name is not None)
    return RowKey(names=names, values=tuple(value for _, value in named))


def _split(text: str) -> list[str]:
    """Split at commas outside of quotes."""
    parts, quote = [""], ""
    for sign in text:
        if sign in _QUOTES and quote in ("", sign):
            quote = "" if quote else sign
        if sign == "," and not quote:
            parts.append("")
        else:
            parts[-1] += sign
    if quote:
        raise ConfigError(f"{text!r} has a quote that does not end", key="key", hint="close it")
    return [part.strip() for part in parts]


def _named(part: str) -> tuple[str | None, str]:
    name, is_named, value = part.partition("=")
    if is_named and not part.startswith(tuple(_QUOTES)):
        return name.strip().strip("`"), _plain(value.strip())
    return None, _plain(part)


def _plain(value: str) -> str:
    if len(value) > 1 and value[0] in _QUOTES and value[-1] == value[0]:
        return value[1:-1].replace(value[0] * 2, value[0])
    return value


def value_of(value: object) -> str:
    """A decoded value as the text of a key."""
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, bytes):
        return f"{_HEX}{value.hex()}"
    return str(value)


def is_same(value: object, text: str) -> bool:
    """True if a decoded value is that of a key; numbers are compared as numbers."""
    if value is None or value is ABSENT:
        return False
    if isinstance(value, bytes):
        return text.lower() == value_of(value) or value.rstrip(b"\0") == text.encode()
    if isinstance(value, int | float | Decimal):
        try:
            return Decimal(text) == Decimal(str(value))
        except ArithmeticError:
            return False
    return str(value) == text


def key_of(
    change: ChangedRow, image: Sequence[object] | None, columns: Sequence[frozenset[str]]
) -> KeyValues | None:
    """The key of a row's image; None if the image lacks a column of it.

    Args:
        change: The change of the row.
        image: One of the change's images.
        columns: Names of the key's columns in small letters, all those of each column; empty for
            the primary key.
    """
    if image is None:
        return None
    indexes = change.key
    if columns:
        places = {name_of(column).lower(): column.index for column in change.columns}
        found = [[places[name] for name in names if name in places] for names in columns]
        if not all(found):
            return None
        indexes = tuple(each[0] for each in found)
    values = [image[index] for index in indexes]
    if not values or any(value is ABSENT or value is None for value in values):
        return None
    return tuple(map(value_of, values))


def rows_with(
    batch: pa.RecordBatch,
    columns: Sequence[Sequence[str]],
    keys: Mapping[KeyValues, object] | frozenset[KeyValues],
) -> pa.Array[Any]:
    """True for each row of a batch that may have one of some keys.

    Args:
        batch: Rows of one table, in any order.
        columns: Names of the key's columns, as the batch may have them: keys that the table had,
            one after the other.
        keys: Values of the keys that are looked for.
    """
    mask: pa.Array[Any] | None = None
    places = {name.lower(): index for index, name in enumerate(batch.schema.names)}
    for names in columns:
        if not all(name in places for name in names):
            continue
        for values in keys:
            if len(values) != len(names):
                continue
            one: pa.Array[Any] | None = None
            for name, text in zip(names, values, strict=True):
                found = _equal(batch.column(places[name]), text)
                if found is not None:
                    one = found if one is None else pc.and_(one, found)
            if one is None:  # nothing is left out by what Arrow compares
                return pa.array([True] * batch.num_rows)
            mask = one if mask is None else pc.or_(mask, one)
    return pa.array([False] * batch.num_rows) if mask is None else mask


def _equal(column: pa.Array[Any], text: str) -> pa.Array[Any] | None:
    """Compare a column with a text; None for types whose texts have several forms."""
    kind: pa.DataType = column.type
    wanted: Any
    try:
        if pa.types.is_integer(kind):
            number = Decimal(text)
            wanted = pa.scalar(int(number), kind) if number == int(number) else None
        elif pa.types.is_string(kind):
            wanted = pa.scalar(text, kind)
        elif pa.types.is_date(kind):
            wanted = pa.scalar(date.fromisoformat(text), kind)
        elif pa.types.is_decimal(kind):
            wanted = pa.scalar(Decimal(text), kind)
        else:
            return None
    except (ArithmeticError, OverflowError, ValueError, pa.ArrowInvalid):
        # Such a value no row of this type has, but a date may be one that Arrow has not.
        return None if pa.types.is_date(kind) else pa.array([False] * len(column))
    if wanted is None:
        return pa.array([False] * len(column))
    found: Any = pc.equal(column, wanted)
    equal: pa.Array[Any] = found.fill_null(False)
    return equal
