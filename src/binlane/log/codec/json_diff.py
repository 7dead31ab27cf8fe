"""Partial updates of MySQL's JSON columns: the changes in a document, and their application.

A diff is an operation, a path such as `$.a[3]."b c"`, and the new value. Documents are values as
`json_binary` gives them; they are never changed, what a diff does not touch is shared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.json_binary import JsonDocument, JsonValue, decode_json

_LEG: Final = re.compile(r'\.("(?:[^"\\]|\\.)*"|[^."\[\]\s]+)|\[(\d{1,10})\]', re.DOTALL)

Leg = str | int
"""One step of a path: a member's name or a cell's number."""


class JsonOperation(IntEnum):
    """The operation of a diff at its path."""

    REPLACE = 0
    INSERT = 1
    REMOVE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonDiff:
    """One change of a document.

    Attributes:
        operation: The change; an INSERT into an array moves the cells behind it.
        path: The path of the place, as the server writes it.
        value: The new value; None with REMOVE.
    """

    operation: JsonOperation
    path: str
    value: JsonDocument | None = None


@dataclass(frozen=True, slots=True)
class JsonDiffs:
    """A partially updated value, where the log does not hold the old one; none is no change."""

    diffs: tuple[JsonDiff, ...]


def decode_diffs(data: bytes) -> JsonDiffs:
    """Decode the diffs of one value.

    Raises:
        CodecError: If the bytes are no diffs.

    Source: MySQL 9.7 sql/json_diff.cc.
    """
    reader = Reader(data)
    diffs = []
    while reader.remaining:
        start = reader.offset
        code = reader.u8()
        if code not in tuple(JsonOperation):
            raise CodecError(f"JSON diff operation {code} is unknown", offset=start)
        operation = JsonOperation(code)
        path = _text(reader.take(reader.packed_int()), start)
        has_value = operation is not JsonOperation.REMOVE
        value = decode_json(reader.take(reader.packed_int())) if has_value else None
        diffs.append(JsonDiff(operation=operation, path=path, value=value))
    return JsonDiffs(tuple(diffs))


def apply_diffs(document: JsonDocument, diffs: Iterable[JsonDiff]) -> JsonDocument:
    """Return the document after all diffs, one after the other.

    Raises:
        CodecError: If a path does not lead to where its operation can be done.
    """
    value = document.value
    for diff in diffs:
        legs = parse_path(diff.path)
        new = None if diff.value is None else diff.value.value
        if legs:
            value = _changed(value, legs, diff, new)
        elif diff.operation is JsonOperation.REPLACE:
            value = new
        else:
            raise _misplaced(diff)
    return JsonDocument(value)


def parse_path(path: str) -> tuple[Leg, ...]:
    """The legs of a path behind its `$`.

    Raises:
        CodecError: If the text is no path, or has wildcards.
    """
    legs: list[Leg] = []
    end = 1
    while path.startswith("$") and (match := _LEG.match(path, end)):
        name, cell = match.groups()
        legs.append(_name(name) if cell is None else int(cell))
        end = match.end()
    if not path.startswith("$") or end != len(path):
        raise CodecError(f"{path!r} is no path into a JSON document")
    return tuple(legs)


def _name(name: str) -> str:
    if not name.startswith('"'):
        return name
    try:
        text = json.loads(name, strict=False)
    except ValueError:
        raise CodecError(f"{name} is no name in a JSON path") from None
    return str(text)


def _text(data: bytes, offset: int) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise CodecError("a JSON path is not UTF-8", offset=offset) from None


def _changed(value: JsonValue, legs: Sequence[Leg], diff: JsonDiff, new: JsonValue) -> JsonValue:
    """A copy of `value` in which the diff is done at the end of `legs`."""
    leg, rest = legs[0], legs[1:]
    if isinstance(value, dict) and isinstance(leg, str):
        if rest:
            if leg not in value:
                raise _misplaced(diff)
            return value | {leg: _changed(value[leg], rest, diff, new)}
        return _changed_object(value, leg, diff, new)
    if isinstance(value, list) and isinstance(leg, int):
        if rest:
            if leg >= len(value):
                raise _misplaced(diff)
            return [*value[:leg], _changed(value[leg], rest, diff, new), *value[leg + 1 :]]
        return _changed_array(value, leg, diff, new)
    raise _misplaced(diff)


def _changed_object(
    value: dict[str, JsonValue], name: str, diff: JsonDiff, new: JsonValue
) -> JsonValue:
    if (name in value) == (diff.operation is JsonOperation.INSERT):
        raise _misplaced(diff)
    if diff.operation is JsonOperation.REMOVE:
        return {key: member for key, member in value.items() if key != name}
    members = value | {name: new}
    # The server keeps members by length, then by bytes.
    keys = sorted(members, key=lambda key: (len(key.encode()), key.encode()))
    return {key: members[key] for key in keys}


def _changed_array(value: list[JsonValue], index: int, diff: JsonDiff, new: JsonValue) -> JsonValue:
    if diff.operation is JsonOperation.INSERT:
        # Behind the last cell there is but one place.
        return [*value[:index], new, *value[index:]]
    if index >= len(value):
        raise _misplaced(diff)
    cell = [] if diff.operation is JsonOperation.REMOVE else [new]
    return [*value[:index], *cell, *value[index + 1 :]]


def _misplaced(diff: JsonDiff) -> CodecError:
    return CodecError(
        f"{diff.operation.name} cannot be done at {diff.path!r} of the old JSON document",
        hint="an event is missing or damaged before this one",
    )
