"""Verdicts as people read them, and as they are kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from binlane.tables.proof.kept_verdicts import KeptVerdicts
from binlane.tables.proof.verdicts import (
    MISSING_ON_SERVER,
    OTHER_VALUES,
    ComparisonOutcome,
    FirstDifference,
    TableVerdict,
)

EQUAL = TableVerdict(
    binlog="orders",
    table="shop.t",
    server="source",
    finding=ComparisonOutcome.EQUAL,
    gtid="0-1-9",
    since="0-1-2",
    rows=1200,
)
WRONG = replace(
    EQUAL,
    finding=ComparisonOutcome.DIFFERENT,
    gtid="0-1-12",
    first=FirstDifference(key="id=3", kind=OTHER_VALUES, columns=("total",), rows=1, buckets=2),
)
UNKNOWN = replace(
    EQUAL, finding=ComparisonOutcome.NOT_COMPARED, gtid="", reason="the server is away"
)


def test_texts() -> None:
    assert EQUAL.text == "equal as of GTID 0-1-9, 1,200 rows; changes since 0-1-2"
    assert replace(EQUAL, is_whole=True).text == "equal as of GTID 0-1-9, 1,200 rows"
    assert UNKNOWN.text == "not compared: the server is away"
    text = replace(WRONG, equal_gtid="0-1-9").text
    assert text == ("DIFFERENT as of GTID 0-1-12, equal as of 0-1-9; id=3: other values (total)")
    gone = replace(WRONG, first=FirstDifference(kind=MISSING_ON_SERVER, rows=1))
    assert "a row whose key no file of the binlog has: missing on the server" in gone.text


def test_a_difference_stays_until_the_table_is_equal(tmp_path: Path) -> None:
    kept = KeptVerdicts(tmp_path)
    kept.put(EQUAL)
    kept.put(WRONG)
    told = kept.put(UNKNOWN)
    assert (told.finding, told.reason) == (ComparisonOutcome.DIFFERENT, "the server is away")
    (read,) = KeptVerdicts(tmp_path)
    assert read == told
    assert read.equal_gtid == "0-1-9"
    again = kept.put(replace(EQUAL, gtid="0-1-20"))
    assert (again.finding, again.equal_gtid) == (ComparisonOutcome.EQUAL, "0-1-20")
    kept.keep_only([])
    assert not list(KeptVerdicts(tmp_path))
