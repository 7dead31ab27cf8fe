from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.binlogs.cat.text.json_as_text import diffs_text, double_text, json_literal, json_text
from binlane.log.codec.json_binary import JsonDocument
from binlane.log.codec.json_diff import JsonDiff, JsonOperation


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (0.1, "0.1"),
        (100000.0, "100000.0"),
        (1e14, "100000000000000.0"),
        (1e15, "1e15"),
        (1.5e15, "1.5e15"),
        (123456789012345.67, "123456789012345.67"),
        (1234567890123456.8, "1234567890123456.8"),
        (1234567890123456.0, "1.234567890123456e15"),
        (12345678901234567.0, "1.2345678901234568e16"),
        (1e-5, "0.00001"),
        (1.2345678901234567e-15, "0.0000000000000012345678901234568"),
        (1e-15, "0.000000000000001"),
        (1.2345678901234567e-16, "1.2345678901234568e-16"),
        (-1.5e-10, "-0.00000000015"),
        (1e-300, "1e-300"),
        (1.7976931348623157e308, "1.7976931348623157e308"),
        (5e-324, "5e-324"),
    ],
)
def test_doubles_are_as_mysql_writes_them(value: float, text: str) -> None:
    assert double_text(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_reads_back(value: float) -> None:
    assert float(double_text(value)) == value


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_a_document_reads_back(value: object) -> None:
    assert json.loads(json_text(value)) == value  # type: ignore[arg-type]  # JSON by its strategy


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        (None, "'null'"),
        (True, "'true'"),
        (Decimal("1.10"), "'1.10'"),
        ("a 'b' \\ \n\t\r\b\f\0\x01\x7fé", r"'a \'b\' \\ \n\t\r\b\f\x00\x01" + "\x7fé'"),
        ({"k": "a 'b' \n"}, r"""'{"k": "a \'b\' \\n"}'"""),
    ],
)
def test_literals(value: object, literal: str) -> None:
    assert json_literal(JsonDocument(value)) == literal  # type: ignore[arg-type]  # JSON


def diff(operation: JsonOperation, path: str, *value: object) -> JsonDiff:
    document = JsonDocument(value[0]) if value else None  # type: ignore[arg-type]  # JSON
    return JsonDiff(operation=operation, path=path, value=document)


def test_diffs_are_nested_calls() -> None:
    replace, insert, remove = JsonOperation.REPLACE, JsonOperation.INSERT, JsonOperation.REMOVE
    assert diffs_text([], "@2") == "@2"
    assert diffs_text([diff(remove, "$.a")], "@2") == "JSON_REMOVE(@2, '$.a')"
    assert (
        diffs_text(
            [diff(insert, "$.z1", 1), diff(insert, "$.z2", "x"), diff(replace, "$.a", [1])], "@3"
        )
        == "JSON_REPLACE(\n"
        "###      JSON_INSERT(@3, '$.z1', 1,\n"
        "###      '$.z2', 'x'),\n"
        "###      '$.a', CAST('[1]' AS JSON))"
    )
    assert diffs_text([diff(insert, "$[12]", None)], "@1") == "JSON_ARRAY_INSERT(@1, '$[12]', null)"
