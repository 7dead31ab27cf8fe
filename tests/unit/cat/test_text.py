from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from binlane.cat.pseudo_sql import literal
from binlane.cat.text import TextLines
from binlane.codec.event import Event, EventHeader
from binlane.codec.json_values import shortest_float
from binlane.codec.registry import OpaqueEvent
from binlane.codec.types import ColumnType, EventType
from binlane.errors import UnsupportedError
from binlane.grouping.walk import walk
from tests.fixture_sets import fixture_set


def printed(name: str, verbose: int = 0, load_directory: Path | None = None) -> list[str]:
    renderer = TextLines(verbose=verbose, load_directory=load_directory)
    return [
        line
        for file, data in fixture_set(name).binlogs
        for event in walk([data], file=file)
        for line in renderer.lines(event, file=file)
    ]


def test_verbose_adds_rows_as_comments() -> None:
    plain, verbose = printed("md1011_txn"), printed("md1011_txn", verbose=1)
    assert [line for line in verbose if not line.startswith("###")] == plain
    inserts = sum(row["op"] == "I" for row in fixture_set("md1011_txn").rows())
    assert sum(line.startswith("### INSERT INTO") for line in verbose) == inserts > 0


def test_verbose_twice_adds_types() -> None:
    assert any("/* NEWDECIMAL d */" in line for line in printed("md1011_metadata_full", verbose=2))


def test_what_has_no_text_form_stops_with_its_place() -> None:
    renderer = TextLines(verbose=0)
    header = EventHeader(
        timestamp=0,
        type_code=EventType.GTID_LOG,
        server_id=1,
        length=23,
        next_position=0,
        flags=0,
    )
    event = Event(header, OpaqueEvent(data=b"mysql"), position=4)
    with pytest.raises(UnsupportedError, match="GTID_LOG") as raised:
        list(renderer.lines(event, file="binlog.000001"))
    assert (raised.value.file, raised.value.position) == ("binlog.000001", 4)
    assert "--format=json" in raised.value.hint


def test_files_of_load_data_are_written_where_the_text_names_them(tmp_path: Path) -> None:
    lines = printed("md1011_load_data_statement", load_directory=tmp_path)
    loads = [line for line in lines if line.startswith("LOAD DATA")]
    assert len(loads) == 5
    for line in loads:
        match = re.match(r"LOAD DATA LOCAL INFILE '([^']+)' (REPLACE )?INTO TABLE `ldm?` ", line)
        assert match, line
        assert Path(match[1]).parent == tmp_path
    assert max(path.stat().st_size for path in tmp_path.iterdir()) == 131072 + 86790


def test_xa_transactions_are_statements() -> None:
    lines = printed("md1011_xa")
    assert "XA START X'73707777717131',X'',1/*!*/;" in lines
    assert "XA PREPARE X'73707777717131',X'',1" in lines
    assert "XA COMMIT X'73707777717131',X'',1" in lines


@pytest.mark.parametrize(
    ("value", "column_type", "text"),
    [
        (None, ColumnType.LONG, "NULL"),
        (5, ColumnType.BIT, "b'101'"),
        ("it's\n", ColumnType.VARCHAR, "'it\\'s\\n'"),
        (b"\x00\xff", ColumnType.BLOB, "x'00ff'"),
        (("a", "b"), ColumnType.SET, "'a,b'"),
        (0.10000000149011612, ColumnType.FLOAT, "0.1"),
        (0.1, ColumnType.DOUBLE, "0.1"),
    ],
)
def test_literal(value: object, column_type: ColumnType, text: str) -> None:
    assert literal(value, column_type) == text


@pytest.mark.parametrize(
    ("stored", "short"),
    [
        (0.10000000149011612, 0.1),
        (3.4028234663852886e38, 3.4028235e38),
        (16777216.0, 16777216.0),
        (1.401298464324817e-45, 1e-45),
    ],
)
def test_shortest_float(stored: float, short: float) -> None:
    assert shortest_float(stored) == pytest.approx(short, rel=1e-7)
    assert len(repr(shortest_float(stored))) <= len(repr(stored))


def test_statements_carry_their_context() -> None:
    lines = printed("md1011_format_statement")
    for line in (
        "SET INSERT_ID=1/*!*/;",
        "SET @`i`:=-42/*!*/;",
        "SET @`s`:=_utf8mb4 X'73747220277127205c20c3a9'/*!*/;",
        "SET @`d`:=123.456/*!*/;",
        "SET @`r`:=15000000000.0e0/*!*/;",
        "SET @`n`:=NULL/*!*/;",
        "SET @`b`:=_binary X'00ff41'/*!*/;",
        "SET @`u`:=18446744073709551615/*!*/;",
        "use `shop`/*!*/;",
    ):
        assert line in lines, line
    assert any(line.startswith("SET @@RAND_SEED1=") for line in lines)
    assert any(line.startswith("SET @@session.time_zone=") for line in lines)
    # A session variable is set only when it changes.
    modes = [line for line in lines if line.startswith("SET @@session.sql_mode=")]
    assert all(mode != following for mode, following in pairwise(modes))
