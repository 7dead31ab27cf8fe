"""Generated columns: what is computed, what is left out, what cannot be known."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.statements.sql.logged_objects import LoggedObjects
from binlane.statements.sql.table_definitions import TableColumn
from binlane.tables.landing.column_values import UnknownValuesError
from binlane.tables.landing.generated_columns import dependent, left_out, with_computed
from binlane.tables.landing.journal import objects_as_json, objects_of_json

ANSI, PIPES = 1 << 2, 1 << 1
TABLE = TableName("d", "t")
BASES = (
    "i INT, b BIGINT, u BIGINT UNSIGNED, z INT ZEROFILL, d DECIMAL(10,2), f FLOAT, v VARCHAR(20),"
    " j JSON, a DATE, w TIMESTAMP NULL, y YEAR, e ENUM('x'), l VARCHAR(9) CHARACTER SET latin1"
)
ROW: dict[str, Any] = {
    "i": 7,
    "b": 2**62,
    "u": Decimal(2**64 - 1),
    "z": 5,
    "d": Decimal("1.50"),
    "f": 1.5,
    "v": "abc",
    "j": "{}",
    "a": date(2020, 2, 3),
    "w": None,
    "y": 2020,
    "e": "x",
    "l": "é",
}
TYPES = [pa.int32(), pa.int64(), pa.decimal128(20, 0), pa.int64(), pa.decimal128(10, 2)]
TYPES += [pa.float32(), pa.string(), pa.string(), pa.date32(), pa.timestamp("us", tz="UTC")]
TYPES += [pa.int64(), pa.string(), pa.string()]


def columns_of(column: str, *statements: str, sql_mode: int = 0) -> dict[str, TableColumn]:
    """The columns of a table with a generated one, behind some statements."""
    catalog = LoggedObjects()
    catalog.apply("CREATE DATABASE d CHARACTER SET utf8mb4", database="")
    create = f"CREATE TABLE t ({BASES}, {column})"
    for text in (create, *statements):
        catalog.apply(text, database="d", sql_mode=sql_mode)
    return catalog.defined_columns(TABLE)


def computed(column: str, data_type: pa.DataType, sql_mode: int = 0) -> list[Any] | None:
    """The values of a column `g`; None if it is left out."""
    columns = columns_of(column, sql_mode=sql_mode)
    fields = [pa.field(name, kind) for name, kind in zip(ROW, TYPES, strict=True)]
    rows = pa.Table.from_pylist(
        [{**ROW, "g": None}], pa.schema([*fields, pa.field("g", data_type)])
    )
    found = with_computed(rows, columns, {"g"}, Flavor.MARIADB)
    return found["g"].to_pylist() if "g" in found.column_names else None


@pytest.mark.parametrize(
    "expression",
    [
        *("i / 2", "f + 1", "v = 'abc'", "v > 'a'", "v LIKE 'a%'", "v + 1", "z + 0 > v", "YEAR(w)"),
        *("JSON_VALUE(j, '$.a')", "j ->> '$.a'", "CONCAT(z)", "CONCAT(f)", "CONCAT(y)", "NOW()"),
        *("RAND()", "REVERSE(v)", "a + INTERVAL 1 DAY", "DATE_FORMAT(a, '%M')", "SUBSTRING(v, i)"),
        *(
            "LENGTH(l)",
            "MD5(l)",
            "gone + 1",
            "IF(i, i, u)",
            "CONCAT(IF(i, d, i))",
        ),
        *("IF(a, 1, 2)", "e + 1", "u + f", "(SELECT 1)", "@x", "ROUND(d, 1)", "GREATEST(v, 'a')"),
    ],
)
def test_expressions_that_are_not_exact_leave_the_column_out(expression: str) -> None:
    assert computed(f"g VARCHAR(90) AS ({expression})", pa.string()) is None


@pytest.mark.parametrize(
    ("column", "data_type", "expected"),
    [
        ("g INT AS (i + 1)", pa.int32(), 8),
        ("g TINYINT AS (i * 100)", pa.int8(), 127),
        ("g VARCHAR(9) AS (CONCAT(v, '-', d))", pa.string(), "abc-1.50"),
        ("g VARCHAR(2) AS (v)", pa.string(), "ab"),
        ("g INT AS (YEAR(a))", pa.int32(), 2020),
        ("g VARCHAR(9) AS (CONCAT_WS(',', NULL, NULL))", pa.string(), ""),
    ],
)
def test_values(column: str, data_type: pa.DataType, expected: object) -> None:
    assert computed(column, data_type) == [expected]


def test_texts_are_read_as_their_sessions_read_them() -> None:
    column = "g VARCHAR(9) AS (\"v\" || 'x')"
    assert computed(column, pa.string(), ANSI | PIPES) == ["abcx"]
    assert computed(column, pa.string()) is None


@pytest.mark.parametrize("expression", ["b + b", "b * 100", "u + 1", "i - u"])
def test_numbers_that_are_out_of_range_are_not_known(expression: str) -> None:
    with pytest.raises(UnknownValuesError, match="out of range"):
        computed(f"g BIGINT AS ({expression})", pa.int64())


def test_null_may_be_a_zero_date() -> None:
    columns = columns_of("g INT AS (YEAR(a)), n INT AS (i)")
    types: list[tuple[str, pa.DataType]] = [("i", pa.int32()), ("a", pa.date32())]
    schema = pa.schema([*types, ("g", pa.int32()), ("n", pa.int32())])
    rows = pa.table([[1], [None], [None], [None]], schema=schema)
    found = with_computed(rows, columns, {"g", "n"}, None, hides_dates=True)
    assert found.column_names == ["i", "a", "n"]


def test_mariadbs_virtual_columns_that_are_not_computed_are_never_there() -> None:
    columns = columns_of(
        "g INT AS (i / 2), s INT AS (i / 2) STORED, n INT AS (i), o INT AS (g + 1)"
    )
    schema = pa.schema([(name, pa.int32()) for name in columns])
    assert left_out(columns, schema, Flavor.MARIADB) == ["g", "o"]
    assert left_out(columns, schema, Flavor.MYSQL) == []


def test_what_hangs_on_a_column() -> None:
    columns = columns_of("o INT AS (g + 1), g INT AS (i + 1), n INT AS (b)")
    assert dependent(columns, ["i"]) == {"g", "o"}


def test_expressions_follow_renamed_columns() -> None:
    columns = columns_of(
        "g INT AS (i - `b`)",
        "ALTER TABLE t RENAME COLUMN i TO b, RENAME COLUMN b TO i",
        "ALTER TABLE t CHANGE i `x y` BIGINT",
    )
    assert columns["g"].generated == "`b` - `x y`"


def test_definitions_are_kept_with_how_they_are_read() -> None:
    catalog = LoggedObjects()
    catalog.apply('CREATE TABLE t (a INT, g INT AS ("a" + 1))', database="d", sql_mode=ANSI)
    kept = objects_of_json(objects_as_json(catalog))
    assert kept.defined_columns(TABLE) == catalog.defined_columns(TABLE)
    assert kept.defined_columns(TABLE)["g"].generated_modes == ("ansi_quotes",)
