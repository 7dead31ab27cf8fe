"""MySQL's binary JSON of a text and types decodes to the same value."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from binlane.errors import CodecError
from binlane.log.codec.json_binary import decode_json
from binlane.log.codec.json_making import binary_json


def _types(value: Any) -> list[str | None]:
    """The types in the order in which MySQL 9.7 gave them for such a value (recorded by hand)."""
    containers: list[Any] = []

    def find(part: Any) -> None:
        if isinstance(part, dict | list):
            containers.append(part)
            for each in part.values() if isinstance(part, dict) else part:
                find(each)

    find([value])
    parts = [each for part in containers if isinstance(part, list) for each in part]
    parts += [each for part in containers if isinstance(part, dict) for each in part.values()]
    return [_type(part) for part in parts]


def _type(value: Any) -> str | None:
    if value is None:
        return None
    kinds: tuple[tuple[type, str], ...] = (
        (bool, "BOOLEAN"),
        (dict, "OBJECT"),
        (list, "ARRAY"),
        (int, "INTEGER"),
        (float, "DOUBLE"),
        (str, "STRING"),
    )
    return next(name for kind, name in kinds if isinstance(value, kind))


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        "",
        "é" * 100,
        -(2**63),
        [1, -1, 40000, 2**40, 1.5, [], {}],
        {"a": {"b": [None, False]}, "bb": "x", "c": "y" * 70000},
        {f"key {number}": [number] * 30 for number in range(2000)},
        ["x" * 65500, 1, 70000, -70000, [2]],
    ],
)
def test_a_value_is_what_it_was(value: object) -> None:
    sorted_value = json.loads(json.dumps(value))
    text = json.dumps([sorted_value, _types(_in_order(sorted_value))])
    assert decode_json(binary_json(text.encode())).value == value


def _in_order(value: Any) -> Any:
    """Members in the order that MySQL keeps: shorter names first."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: (len(name.encode()), name.encode()))
        return {name: _in_order(value[name]) for name in names}
    return [_in_order(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("-1.50", "DECIMAL", Decimal("-1.50")),
        ("7", "UNSIGNED INTEGER", 7),
        ('"2026-11-29 06:25:58.655821"', "DATETIME", "2026-11-29 06:25:58.655821"),
        ('"2026-11-29"', "DATE", "2026-11-29"),
        ('"-12:00:01.000000"', "TIME", "-12:00:01.000000"),
        ('"base64:type252:YWI="', "BLOB", "base64:type252:YWI="),
    ],
)
def test_types_tell_what_the_text_does_not(text: str, kind: str, value: object) -> None:
    assert decode_json(binary_json(f'[{text}, ["{kind}"]]'.encode())).value == value


def test_types_that_do_not_fit_are_told() -> None:
    with pytest.raises(CodecError, match="3 parts has 1 types"):
        binary_json(b'[[1, 2], ["ARRAY"]]')
    with pytest.raises(CodecError, match="unknown type NEW"):
        binary_json(b'["x", ["NEW"]]')
