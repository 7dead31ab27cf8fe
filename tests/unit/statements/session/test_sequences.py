"""Sequences whose row is written only where a new range of values is reserved."""

from __future__ import annotations

import pytest

from tests.checked import SCHEMA, log

SEQUENCE = f"{SCHEMA} CREATE SEQUENCE s ENGINE=InnoDB; SET GLOBAL binlog_format=ROW;"
INSERT = "INSERT INTO foo VALUES (NEXTVAL(s), 'x');"
ADVANCED = ["BEGIN", "map test.s", "rows", "map test.foo", "rows", "XID"]
KEPT = ["BEGIN", "map test.foo", "rows", "XID"]


def test_the_first_value_of_a_range_writes_the_sequence() -> None:
    assert log(INSERT + INSERT, schema=SEQUENCE) == [*ADVANCED, *KEPT]


@pytest.mark.parametrize("call", ["NEXTVAL(s)", "NEXT VALUE FOR s", "SETVAL(s, 50)"])
def test_no_rows_of_an_insert_of_values_says_that_the_range_lasted(call: str) -> None:
    statement = f"-- @rows 0\nINSERT INTO foo VALUES (1, {call});"
    assert log(statement, schema=SEQUENCE) == KEPT


def test_no_rows_of_an_insert_that_may_change_none_says_so() -> None:
    statement = "-- @rows 0\nINSERT IGNORE INTO foo VALUES (NEXTVAL(s), 'x');"
    assert "map test.foo" not in log(statement, schema=SEQUENCE)


def test_no_rows_of_do_writes_nothing() -> None:
    assert log("-- @rows 0\nDO NEXTVAL(s);", schema=SEQUENCE) == []
