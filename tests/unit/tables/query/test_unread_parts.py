"""What a query's condition lets be left unread: never a row that it asks for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from binlane.positions import GtidPosition
from binlane.tables.columnar.selection import Selection
from binlane.tables.query.log_connection import (
    LogConnection,
    LogDataset,
    connect_log,
    quoted,
    shown_names,
)
from binlane.tables.query.log_tables import LogOptions, LogTables
from tests.fixture_sets import fixture_set

SETS = ("md1011_rotation", "md1011_xa", "my97_xa", "my97_compressed")


def connected_to(name: str, folder: Path, **options: Any) -> LogConnection:
    """A log with a cut behind every group, so that each can be left out."""
    paths = []
    for file, data in fixture_set(name).binlogs:
        paths.append(folder / file)
        paths[-1].write_bytes(data)
    settings = LogOptions(cache="", piece_bytes=1, **options)
    return connect_log(LogTables([str(path) for path in paths], settings))


def conditions(rows: list[dict[str, Any]]) -> list[str]:
    """Conditions on the places of some of the rows, of every form that is used for pruning."""
    found = ["_gtid IS NULL", "_gtid = 'no GTID'", "_op = 'delete'", "_gtid < 'a' OR _pos = 4"]
    for row in rows[len(rows) // 3 :: max(len(rows) // 2, 1)]:
        gtid, position, file, sequence = row["_gtid"], row["_pos"], row["_file"], row["_seq"]
        time = row["_timestamp"].isoformat()
        found += [
            f"_gtid = '{gtid}'",
            f"_gtid IN ('{gtid}', 'x')",
            f"NOT _gtid = '{gtid}'",
            f"_gtid = '{gtid}' OR _gtid IS NULL",
            f"_gtid <> '{gtid}' AND _timestamp >= '{time}'",
            f"_gtid >= '{gtid}'",
            f"_timestamp = '{time}'",
            f"_timestamp < '{time}'",
            f"_timestamp > '{time}' OR _pos = {position}",
            f"_timestamp BETWEEN '{time}' AND TIMESTAMPTZ '{time}' + INTERVAL 1 SECOND",
            f"_file = '{file}' AND _pos >= {position}",
            f"_file > '{file}'",
            f"_pos IN ({position}, 5)",
            f"_seq = {sequence}",
            f"_seq < {sequence}",
        ]
    return found


@pytest.mark.parametrize("name", SETS)
def test_no_row_is_left_out_that_a_condition_asks_for(name: str, tmp_path: Path) -> None:
    connected = connected_to(name, tmp_path)
    plain = duckdb.connect()
    plain.execute("SET TimeZone = 'UTC'")
    for schema, view in shown_names(connected.log.tables).values():
        table = f"{quoted(schema)}.{quoted(view)}"
        whole = connected.connection.sql(f"FROM {table}").to_arrow_table()
        plain.register("whole", whole)
        for condition in conditions(whole.to_pylist()):
            found = connected.connection.execute(f"FROM {table} WHERE {condition}").fetchall()
            wanted = plain.execute(f"FROM whole WHERE {condition}").fetchall()
            assert found == wanted, condition


@pytest.mark.parametrize("name", ["md1011_rotation", "my97_txn"])
@pytest.mark.parametrize("table", ["events", "groups", "statements"])
def test_no_event_is_left_out_that_a_condition_asks_for(
    name: str, table: str, tmp_path: Path
) -> None:
    connected = connected_to(name, tmp_path)
    plain = duckdb.connect()
    plain.execute("SET TimeZone = 'UTC'")
    whole = connected.connection.sql(f"FROM {table}").to_arrow_table()
    plain.register("whole", whole)
    rows = [row | {"_seq": 0} for row in whole.to_pylist()]
    for condition in conditions(rows):
        if "_seq" in condition or "_op" in condition:
            continue
        found = connected.connection.execute(f"FROM {table} WHERE {condition}").fetchall()
        wanted = plain.execute(f"FROM whole WHERE {condition}").fetchall()
        assert found == wanted, condition


def bytes_read(connected: LogConnection, sql: str) -> int:
    before = connected.log.counters.bytes
    connected.connection.execute(sql).fetchall()
    return connected.log.counters.bytes - before


@pytest.mark.parametrize(
    ("name", "table", "condition"),
    [
        ("md1011_rotation", "shop.r", "_file = '{_file}'"),
        ("md1011_rotation", "shop.r", "_gtid = '{_gtid}'"),
        ("md1011_rotation", "shop.r", "_seq <= {_seq}"),
        ("md1011_rotation", "shop.r", "_gtid IN ('{_gtid}', '0-1-100000000')"),
        ("my97_rotation", "shop.r", "_gtid = '{_gtid}'"),
        ("my97_rotation", "shop.r", "_pos <= {_pos} AND _file = '{_file}'"),
    ],
)
def test_what_a_condition_rules_out_is_not_read(
    name: str, table: str, condition: str, tmp_path: Path
) -> None:
    connected = connected_to(name, tmp_path)
    table = next(
        f"{quoted(schema)}.{quoted(view)}"
        for schema, view in shown_names(connected.log.tables).values()
    )
    row = connected.connection.sql(f"FROM {table} LIMIT 1").to_arrow_table().to_pylist()[0]
    whole = bytes_read(connected, f"FROM {table}")
    part = bytes_read(connected, f"FROM {table} WHERE {condition.format_map(row)}")
    assert 0 < part < whole / 2


def test_a_time_before_the_log_reads_nothing(tmp_path: Path) -> None:
    connected = connected_to("md1011_txn", tmp_path)
    assert bytes_read(connected, "FROM shop.a WHERE _timestamp < '2001-01-01'") == 0
    assert bytes_read(connected, "FROM shop.a WHERE _timestamp > now() + INTERVAL 100 YEAR") == 0


def test_only_tables_that_are_named_are_decoded(tmp_path: Path) -> None:
    connected = connected_to("md1011_txn", tmp_path)
    one = bytes_read(connected, "SELECT count(*) FROM shop.a")
    both = bytes_read(connected, "SELECT count(*) FROM shop.a, shop.b")
    assert 0 < one < both


def test_a_selection_bounds_all_queries(tmp_path: Path) -> None:
    start = GtidPosition.parse("0-1-9")
    connected = connected_to("md1011_txn", tmp_path, selection=Selection(start=start))
    for table in ("shop.a", "groups", "events", "statements"):
        (least,) = connected.connection.execute(
            f"SELECT min(split_part(_gtid, '-', 3)::INT) FROM {table}"
        ).fetchall()
        assert least[0] > 9


def test_nothing_is_read_behind_the_last_row_that_is_wanted(tmp_path: Path) -> None:
    connected = connected_to("md1011_xa", tmp_path)
    made = [0]

    def batches(*_given: Any) -> Iterator[pa.RecordBatch]:
        for _ in range(100_000):
            made[0] += 1
            yield pa.RecordBatch.from_pydict({"a": list(range(5000))})

    dataset = LogDataset(pa.schema([("a", pa.int64())]), batches, connected.log)
    connected.connection.from_arrow(dataset).create_view("long")
    for sql, wanted in (
        ("FROM long LIMIT 1", [(0,)]),
        ("SELECT a FROM long WHERE a = 4999 LIMIT 2", [(4999,), (4999,)]),
    ):
        made[0] = 0
        assert connected.connection.execute(sql).fetchall() == wanted
        assert 0 < made[0] < 1000
    made[0] = 0
    with pytest.raises(duckdb.ConversionException):
        connected.connection.execute("SELECT CAST('x' || a AS INT) FROM long").fetchall()
    assert 0 < made[0] < 1000
