from __future__ import annotations

import pytest

from binlane.errors import CodecError
from binlane.log.codec.json_binary import JsonDocument
from binlane.log.codec.json_diff import (
    JsonDiff,
    JsonOperation,
    apply_diffs,
    decode_diffs,
    parse_path,
)

DOCUMENT = JsonDocument({"a": 1, "b": [1, 2, {"c d": None}], "long name": "x"})
REPLACE, INSERT, REMOVE = JsonOperation


def changed(operation: JsonOperation, path: str, value: object = 7) -> object:
    new = None if operation is REMOVE else JsonDocument(value)  # type: ignore[arg-type]  # plain JSON
    diff = JsonDiff(operation=operation, path=path, value=new)
    return apply_diffs(DOCUMENT, [diff]).value


@pytest.mark.parametrize(
    ("path", "legs"),
    [
        ("$", ()),
        ("$.a", ("a",)),
        ('$.b[2]."c d"', ("b", 2, "c d")),
        (r'$."\"q\" \\ é"', ('"q" \\ é',)),
        ("$[10][0]", (10, 0)),
    ],
)
def test_paths_are_read(path: str, legs: tuple[object, ...]) -> None:
    assert parse_path(path) == legs


@pytest.mark.parametrize(
    "path", ["", "a", "$.", "$[", "$[*]", "$**.a", "$.a b", '$."a', "$[-1]", r'$."\x"']
)
def test_what_is_no_path_is_damage(path: str) -> None:
    with pytest.raises(CodecError):
        parse_path(path)


def test_each_operation_changes_its_place_and_nothing_else() -> None:
    assert changed(REPLACE, "$") == 7
    assert changed(REPLACE, "$.a") == DOCUMENT.value | {"a": 7}  # type: ignore[operator]  # a dict
    assert changed(REPLACE, '$.b[2]."c d"') == {"a": 1, "b": [1, 2, {"c d": 7}], "long name": "x"}
    assert changed(INSERT, "$.b[0]")["b"] == [7, 1, 2, {"c d": None}]  # type: ignore[index]  # a dict
    assert changed(INSERT, "$.b[99]")["b"] == [1, 2, {"c d": None}, 7]  # type: ignore[index]  # a dict
    assert changed(REMOVE, "$.b[1]")["b"] == [1, {"c d": None}]  # type: ignore[index]  # a dict
    assert list(changed(REMOVE, "$.a")) == ["b", "long name"]  # type: ignore[call-overload]  # a dict
    # Members stand by length, then by bytes.
    assert list(changed(INSERT, "$.bb")) == ["a", "b", "bb", "long name"]  # type: ignore[call-overload]  # a dict
    assert DOCUMENT.value == {"a": 1, "b": [1, 2, {"c d": None}], "long name": "x"}


@pytest.mark.parametrize(
    ("operation", "path"),
    [
        (REPLACE, "$.x"),
        (REMOVE, "$.x"),
        (INSERT, "$.a"),
        (REPLACE, "$.b[3]"),
        (REMOVE, "$.b[3]"),
        (REPLACE, "$.x.y"),
        (REPLACE, "$.b[9].y"),
        (REPLACE, "$.a.y"),
        (REPLACE, "$[0]"),
        (REMOVE, "$"),
        (INSERT, "$"),
    ],
)
def test_a_place_that_is_not_there_is_damage(operation: JsonOperation, path: str) -> None:
    with pytest.raises(CodecError, match="cannot be done at") as caught:
        changed(operation, path)
    assert caught.value.hint


def test_diffs_are_read_from_their_bytes() -> None:
    one = bytes((0, 3)) + b"$.a" + bytes((3, 5, 7, 0))
    two = bytes((2, 6)) + b"$.b[1]"
    diffs = decode_diffs(one + two).diffs
    assert [(diff.operation, diff.path) for diff in diffs] == [(REPLACE, "$.a"), (REMOVE, "$.b[1]")]
    assert apply_diffs(DOCUMENT, diffs).value == {"a": 7, "b": [1, {"c d": None}], "long name": "x"}
    assert decode_diffs(b"").diffs == ()
    for broken, message in (
        (b"\x03", "operation 3"),
        (b"\x02\x01\xff", "not UTF-8"),
        (one[:4], "expected"),
    ):
        with pytest.raises(CodecError, match=message):
            decode_diffs(broken)
