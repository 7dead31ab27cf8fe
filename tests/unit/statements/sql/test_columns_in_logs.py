"""The columns that definitions make in the log."""

from __future__ import annotations

import pytest

from binlane.log.codec.charsets import BINARY_COLLATION
from binlane.log.codec.columns import Column
from binlane.log.codec.types import ColumnType
from binlane.statements.sql.logged_columns import logged_column
from binlane.statements.sql.reading import read
from binlane.statements.sql.servers import Dialect
from binlane.tables.landing.column_changes import AddColumn, column_changes


def column_of(definition: str) -> Column | None:
    facts = read(f"ALTER TABLE t ADD c {definition}", database="", dialect=Dialect())
    (change,) = column_changes(facts)
    assert isinstance(change, AddColumn)
    return logged_column(change.column)


@pytest.mark.parametrize(
    ("definition", "kind"),
    [
        ("MIDDLEINT", ColumnType.INT24),
        ("INTEGER(5)", ColumnType.LONG),
        ("FLOAT", ColumnType.FLOAT),
        ("FLOAT(24)", ColumnType.FLOAT),
        ("FLOAT(25)", ColumnType.DOUBLE),
        ("FLOAT(30, 2)", ColumnType.FLOAT),
        ("FLOAT8", ColumnType.DOUBLE),
        ("DOUBLE PRECISION", ColumnType.DOUBLE),
        ("NUMBER", ColumnType.DOUBLE),
        ("NUMBER(9)", ColumnType.NEWDECIMAL),
        ("DATETIME(3)", ColumnType.DATETIME2),
        ("ENUM('1', '2')", ColumnType.ENUM),
        ("NATIONAL CHARACTER VARYING(9)", ColumnType.VARCHAR),
    ],
)
def test_types(definition: str, kind: ColumnType) -> None:
    column = column_of(definition)
    assert column is not None
    assert column.type is kind


@pytest.mark.parametrize(
    ("definition", "digits"),
    [
        ("DECIMAL", (10, 0)),
        ("DEC(0)", (10, 0)),
        ("NUMERIC(12)", (12, 0)),
        ("DECIMAL(65, 30) UNSIGNED", (65, 30)),
    ],
)
def test_digits(definition: str, digits: tuple[int, int]) -> None:
    column = column_of(definition)
    assert column is not None
    assert (column.precision, column.scale) == digits


@pytest.mark.parametrize(("definition", "bits"), [("BIT", 1), ("BIT(8)", 8), ("BIT(61)", 61)])
def test_bits(definition: str, bits: int) -> None:
    column = column_of(definition)
    assert column is not None
    assert column.bits == bits


@pytest.mark.parametrize(
    ("definition", "is_bytes"),
    [
        ("VARCHAR(9)", False),
        ("TEXT COLLATE utf8mb4_bin", False),
        ("CHAR(9) CHARACTER SET binary", True),
        ("VARBINARY(9)", True),
        ("LONG VARBINARY", True),
        ("LONG", False),
        ("UUID", True),
        ("JSON", False),
    ],
)
def test_text_and_bytes(definition: str, is_bytes: bool) -> None:  # noqa: FBT001  # of a row above
    column = column_of(definition)
    assert column is not None
    assert (column.collation_id == BINARY_COLLATION) is is_bytes


def test_a_type_that_is_not_known_makes_no_column() -> None:
    assert column_of("NONESUCH(9)") is None
