from __future__ import annotations

from decimal import Decimal

import pytest

from binlane.binlogs.cat.sql.sql_literals import (
    condition,
    exact_column,
    key_condition,
    literal,
    quoted,
)
from binlane.log.codec.columns import Column
from binlane.log.codec.json_binary import JsonDocument
from binlane.log.codec.json_diff import JsonDiff, JsonDiffs, JsonOperation
from binlane.log.codec.types import ColumnType, Flavor

BINARY, LATIN1, UTF8MB4, SJIS, UCS2 = 63, 8, 45, 13, 35


def column(
    type_: ColumnType, *, collation_id: int | None = None, metadata: int = 20, name: str = "c"
) -> Column:
    return Column(
        index=0,
        type=type_,
        metadata=metadata,
        is_nullable=True,
        name=name,
        collation_id=collation_id,
    )


@pytest.mark.parametrize(
    ("value", "of", "text"),
    [
        (None, column(ColumnType.LONG), "NULL"),
        (-5, column(ColumnType.LONG), "-5"),
        (2**64 - 1, column(ColumnType.LONGLONG), "18446744073709551615"),
        (5, column(ColumnType.BIT), "b'101'"),
        (0, column(ColumnType.BIT), "b'0'"),
        (Decimal("-1E-7"), column(ColumnType.NEWDECIMAL), "-0.0000001"),
        (0.10000000149011612, column(ColumnType.FLOAT), "0.1e0"),
        (0.1, column(ColumnType.DOUBLE), "0.1e0"),
        (1e300, column(ColumnType.DOUBLE), "1e+300"),
        ("2024-02-30 00:00:00", column(ColumnType.DATETIME2), "'2024-02-30 00:00:00'"),
        ("it's\\\n\0\x1a", column(ColumnType.VARCHAR), r"'it\'s\\\n\0\Z'"),
        ("a", column(ColumnType.ENUM), "'a'"),
        ("", column(ColumnType.ENUM), "0"),
        (3, column(ColumnType.ENUM), "3"),
        (("x", "y"), column(ColumnType.SET), "'x,y'"),
        ((), column(ColumnType.SET), "''"),
        (b"\0\xff", column(ColumnType.VARCHAR, collation_id=BINARY), "x'00ff'"),
        (b"\xff", column(ColumnType.VARCHAR, collation_id=UTF8MB4), "x'ff'"),
        (b"abc", column(ColumnType.VARCHAR, collation_id=SJIS), "'abc'"),
        (b"\x83\x5c", column(ColumnType.VARCHAR, collation_id=SJIS), "_sjis x'835c'"),
        (JsonDocument({"a": [1, None]}), column(ColumnType.JSON), "CAST('{\"a\": [1, null]}' AS JSON)"),
    ],
)  # fmt: skip
def test_literals(value: object, of: Column, text: str) -> None:
    assert literal(value, of, flavor=Flavor.MARIADB) == text


def test_geometry_says_its_reference_system() -> None:
    point = bytes.fromhex("e61000000101000000" + "00" * 16)
    of = column(ColumnType.GEOMETRY)
    wkb = point[4:].hex()
    assert literal(point, of, flavor=Flavor.MARIADB) == f"ST_GeomFromWKB(x'{wkb}', 4326)"
    assert literal(point, of, flavor=Flavor.MYSQL) == (
        f"ST_GeomFromWKB(x'{wkb}', 4326, 'axis-order=long-lat')"
    )
    assert literal(bytes(4) + point[4:], of, flavor=Flavor.MYSQL) == f"ST_GeomFromWKB(x'{wkb}', 0)"


def test_partial_json_is_applied_step_by_step() -> None:
    diffs = (
        JsonDiff(operation=JsonOperation.REPLACE, path="$.a", value=JsonDocument(1)),
        JsonDiff(operation=JsonOperation.INSERT, path="$.b[0]", value=JsonDocument("x")),
        JsonDiff(operation=JsonOperation.INSERT, path="$.c", value=JsonDocument(None)),
        JsonDiff(operation=JsonOperation.REMOVE, path="$.d"),
    )
    text = literal(JsonDiffs(diffs), column(ColumnType.JSON), flavor=Flavor.MYSQL)
    assert text == (
        "JSON_REMOVE(JSON_INSERT(JSON_ARRAY_INSERT(JSON_REPLACE(`c`, '$.a', CAST('1' AS JSON)), "
        "'$.b[0]', CAST('\"x\"' AS JSON)), '$.c', CAST('null' AS JSON)), '$.d')"
    )
    assert literal(JsonDiffs(()), column(ColumnType.JSON), flavor=Flavor.MYSQL) == "`c`"


@pytest.mark.parametrize(
    ("value", "of", "text"),
    [
        (None, column(ColumnType.LONG), "`c` IS NULL"),
        (1, column(ColumnType.LONG, name="a`b"), "`a``b` <=> 1"),
        (0.10000000149011612, column(ColumnType.FLOAT), "`c` <=> 0.10000000149011612e0"),
        ("A ", column(ColumnType.VARCHAR, collation_id=UTF8MB4), "CAST(`c` AS BINARY) <=> 'A '"),
        (
            "é",
            column(ColumnType.VARCHAR, collation_id=LATIN1),
            "CAST(`c` AS BINARY) <=> CAST(CONVERT('é' USING latin1) AS BINARY)",
        ),
        (b"\xff", column(ColumnType.BLOB, collation_id=BINARY), "CAST(`c` AS BINARY) <=> x'ff'"),
        ("::1", column(ColumnType.STRING, collation_id=BINARY), "`c` <=> '::1'"),
        ("2024-01-01", column(ColumnType.DATE), "`c` <=> '2024-01-01'"),
    ],
)
def test_conditions_are_true_of_one_value_only(value: object, of: Column, text: str) -> None:
    assert condition(value, of, flavor=Flavor.MARIADB) == text


def test_a_key_is_compared_so_that_an_index_helps() -> None:
    of = column(ColumnType.VARCHAR, collation_id=LATIN1)
    assert key_condition("é", of, flavor=Flavor.MARIADB) == "`c` = 'é'"
    assert key_condition(0.5, column(ColumnType.FLOAT), flavor=Flavor.MARIADB) == "`c` = 0.5e0"


@pytest.mark.parametrize("collation_id", [LATIN1, UTF8MB4, UCS2, BINARY, None])
def test_text_stays_text_where_its_bytes_follow_from_it(collation_id: int | None) -> None:
    of = column(ColumnType.VARCHAR, collation_id=collation_id)
    assert exact_column(of) == of


def test_east_asian_text_is_taken_as_bytes() -> None:
    char = column(ColumnType.STRING, collation_id=SJIS, metadata=0xFE14)
    exact = exact_column(char)
    assert (exact.type, exact.length_max, exact.collation_id) == (ColumnType.VARCHAR, 20, BINARY)
    text = exact_column(column(ColumnType.BLOB, collation_id=SJIS, metadata=2))
    assert (text.type, text.metadata, text.collation_id) == (ColumnType.BLOB, 2, BINARY)


def test_quoted() -> None:
    assert quoted("a'b") == "'a\\'b'"
