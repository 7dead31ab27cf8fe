"""The kernel counts what `Summary.feed` counts: good files and bad ones, wherever a window ends."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, Self

import pytest

from binlane.binlogs.cat.summary import Summary
from binlane.binlogs.cat.summary.fast import WINDOW_BYTES, count_file
from binlane.binlogs.cat.summary.summary_json import summary_json
from binlane.errors import BinlaneError
from binlane.log.codec.body import Body
from binlane.log.codec.control import RotateEvent
from binlane.log.codec.event import Event
from binlane.log.codec.load_data import ExecuteLoadQueryEvent
from binlane.log.codec.mysql_transaction import MysqlGtidEvent
from binlane.log.codec.query import AnnotateRowsEvent, QueryEvent
from binlane.log.codec.rows import (
    DeleteRowsV1Event,
    PartialUpdateRowsEvent,
    RowsEvent,
    UpdateRowsV1Event,
    WriteRowsCompressedV1Event,
    WriteRowsV1Event,
)
from binlane.log.codec.transaction import GtidEvent, XidEvent
from binlane.log.codec.types import ColumnType, HeaderFlag
from binlane.log.codec.variables import IntvarEvent, RandEvent
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.walk import walk
from binlane.log.kernels import summary_layout as lay
from binlane.log.kernels.load import Build, running
from tests import build
from tests.fixture_sets import fixture_names, fixture_set

WINDOWS = (WINDOW_BYTES, 64)
LARGE_BYTES = 1_000_000
FILE = "binlog.000001"
SOURCES = ("3e11fa47-71ca-11e1-9e33-c80aa9429562", "ffffffff-ffff-ffff-ffff-ffffffffffff")


class Told(NamedTuple):
    """What is told of a log, and the error that ended it."""

    json: str
    error: str | None


class Bytes:
    """The bytes of a file."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def read_into(self, view: memoryview) -> int:
        """Give as many as fit."""
        part = self._data[self._at : self._at + len(view)]
        view[: len(part)] = part
        self._at += len(part)
        return len(part)

    def reread(self, position: int) -> Self:
        """Begin again."""
        self._at = position
        return self


def told(summary: Summary, error: str | None) -> Told:
    summary.finish()
    return Told(json.dumps(summary_json(summary)), error)


def by_feeding(files: list[tuple[str, bytes]]) -> Told:
    """The reference."""
    summary, error = Summary(), None
    try:
        for name, data in files:
            for event in expanded_all(walk([data], file=name), file=name):
                summary.feed(event, file=name)
    except BinlaneError as failure:
        error = str(failure)
    return told(summary, error)


def by_kernel(files: list[tuple[str, bytes]], window_bytes: int) -> Told:
    """What is tested."""
    summary, error = Summary(), None
    try:
        for name, data in files:
            count_file(summary, Bytes(data), path=name, name=name, window_bytes=window_bytes)
    except BinlaneError as failure:
        error = str(failure)
    return told(summary, error)


def assert_same(*logs: bytes, windows: tuple[int, ...] = WINDOWS) -> Told:
    files = [(f"binlog.{number:06}", data) for number, data in enumerate(logs, start=1)]
    expected = by_feeding(files)
    for window_bytes in windows:
        assert by_kernel(files, window_bytes) == expected
    return expected


def at(body: Body, seconds: int, *, flags: int = 0) -> Event:
    event = build.event(body, flags=flags)
    return replace(event, header=replace(event.header, timestamp=seconds))


def query(text: bytes) -> QueryEvent:
    return QueryEvent(
        thread_id=1,
        execution_time=0,
        error_code=0,
        status_vars=b"",
        database=b"shop",
        query=text,
    )


def gtid(sequence: int, *, domain: int = 0, flags: int = 0) -> GtidEvent:
    return GtidEvent(sequence=sequence, domain_id=domain, flags=flags)


def transactions(count: int) -> Iterator[Event]:
    """Each one larger than the one before it, and none in the same second."""
    for number in range(1, count + 1):
        time = build.TIMESTAMP + number * 3
        yield at(gtid(number), time)
        yield at(AnnotateRowsEvent(query=b"x" * number), time)
        yield at(build.table_map(ColumnType.LONG), time)
        yield at(build.rows(1, b"\xfe\x01\x00\x00\x00" * (number % 5)), time + number % 3)
        yield at(XidEvent(xid=number), time + number % 7)


@pytest.mark.parametrize("name", fixture_names())
def test_every_set_is_counted_as_by_feeding(name: str) -> None:
    files = [(file, data) for file, data in fixture_set(name).binlogs]
    is_large = sum(len(data) for _, data in files) > LARGE_BYTES
    expected = by_feeding(files)
    for window_bytes in WINDOWS[:1] if is_large else WINDOWS:
        assert by_kernel(files, window_bytes) == expected


@pytest.mark.parametrize("name", ["md1011_types_numeric", "md118_compressed", "my97_gtid"])
def test_plain_python_kernels_count_the_same(name: str) -> None:
    with running(Build.PLAIN):
        for _, data in fixture_set(name).binlogs:
            assert_same(data[:6000], windows=(WINDOW_BYTES,))


@pytest.mark.parametrize("name", ["md1011_txn", "md1011_compressed", "my97_gtid"])
def test_a_file_that_was_cut_anywhere(name: str) -> None:
    data = fixture_set(name).binlogs[0][1][:4000]
    for end in range(0, len(data), 97):
        assert_same(data[:end], windows=(64,))


@pytest.mark.parametrize(
    "name", ["md1011_checksum_none", "md1011_types_numeric", "md1011_compressed_minimal"]
)
def test_bytes_that_were_changed_anywhere(name: str) -> None:
    source = random.Random(name)
    _, whole = fixture_set(name).binlogs[0]
    for _ in range(25):
        data = bytearray(whole)
        data[source.randrange(4, len(data))] ^= 1 << source.randrange(8)
        assert_same(bytes(data), windows=(source.choice(WINDOWS),))


def test_more_large_transactions_than_the_kernel_keeps() -> None:
    count = lay.GROUPS_MAX + 10
    result = json.loads(assert_same(build.log(*transactions(count))).json)
    assert result["transactions"] == count
    assert result["biggest_transactions"][0]["gtid"] == "0-1-264"  # with more rows than the last


def test_seconds_and_domains_that_share_a_place() -> None:
    events = []
    for number in range(1, 40):
        time = build.TIMESTAMP + number % 3 * lay.MOMENTS_MAX
        domain = number % 2 * lay.DOMAINS_MAX
        events += [at(gtid(number, domain=domain), time), at(query(b"BEGIN"), time + 5)]
        events += [at(XidEvent(xid=number), 0 if number % 4 else time)]
    result = json.loads(assert_same(build.log(*events)).json)
    assert result["gtids"] == ["0-1-2 … 0-1-38", "64-1-1 … 64-1-39"]


def test_gtids_of_mysql_with_gaps_and_several_sources() -> None:
    events: list[Event | Body] = []
    for number in (1, 2, 3, 5, 6, 9):
        for source in SOURCES[: 1 + number % 2]:
            events += [
                MysqlGtidEvent(
                    flags=1,
                    source_id=source,
                    sequence=number,
                    timestamp_type=2,
                    last_committed=0,
                    sequence_number=1,
                ),
                query(b"BEGIN"),
                XidEvent(xid=number),
            ]
    head = build.format_description(server_version="9.7.0")
    result = json.loads(assert_same(build.log(*events, head=head)).json)
    assert result["gtids"] == [f"{SOURCES[0]}:1-3:5-6:9", f"{SOURCES[1]}:1:3:5:9"]


def test_gtids_that_the_kernel_leaves_alone() -> None:
    events: list[Body] = [
        gtid(4),
        query(b"INSERT INTO t VALUES (1)"),
        XidEvent(xid=4),
        gtid(2**63 + 5, flags=1),
        query(b"DROP TABLE t"),
        gtid(2**63 + 6),
    ]
    result = json.loads(assert_same(build.log(*events)).json)
    assert result["gtids"] == [f"0-1-4 … 0-1-{2**63 + 6}"]
    assert (result["transactions"], result["unfinished_transactions"]) == (3, 1)


STATEMENTS = [
    b"insert into t values (1)",
    b"INSERT INTO t VALUES (2)",
    b" \n\tUpdate t SET a = 1",
    b" " * 70 + b"DELETE FROM t",
    b"/* x */ DELETE FROM t",
    b"(SELECT 1)",
    b"CREATE TABLE t (a INT)",
    b"CREATE VIEW v AS SELECT 1",
    b"SAVEPOINT a",
    b"INSERT1",
    b"_x",
    b"",
    b"BEGIN",
    b"COMMIT",
    b"XA START 'a'",
    b"ROLLBACK",
]


def test_statements_by_their_kinds() -> None:
    events: list[Event | Body] = []
    for number, text in enumerate(STATEMENTS * 2):
        events += [gtid(number + 1, flags=1), IntvarEvent(kind=2, value=number), query(text)]
    events += [RandEvent(seed1=1, seed2=2), query(b"DO 1")]
    result = json.loads(assert_same(build.log(*events)).json)
    assert result["statements"]["DELETE"] == 4
    assert result["statements"]["CREATE VIEW"] == 2


def test_more_kinds_of_words_than_the_kernel_knows() -> None:
    words = [b"W" + bytes((65 + number // 26, 65 + number % 26)) for number in range(200)]
    events = [query(word + b" 1") for word in words + words]
    result = json.loads(assert_same(build.log(*events)).json)
    assert result["statements"] == {"OTHER": 400}


def test_a_file_that_was_loaded() -> None:
    statement = query(b"LOAD DATA INFILE 'x' INTO TABLE t")
    load = ExecuteLoadQueryEvent(
        statement=statement, file_id=1, name_start=10, name_end=27, duplicate_handling=0
    )
    assert json.loads(assert_same(build.log(load)).json)["statements"] == {"LOAD": 1}


ROWS = b"\xfc\x05\x00\x00\x00\x02ab" + b"\xfe\x02cd" + b"\xfd\x06\x00\x00\x00" + b"\xff"


def test_rows_with_nulls_and_columns_that_are_missing() -> None:
    table = build.table_map(ColumnType.LONG, ColumnType.VARCHAR, metadata=b"\x50\x00")
    events: list[Body] = [gtid(1)]
    for kind in (WriteRowsV1Event, DeleteRowsV1Event, WriteRowsCompressedV1Event):
        events += [table, build.rows(2, ROWS, kind=kind)]
    pair = b"\xfe\x01\x00\x00\x00" + b"\xfe\x01x"
    update = build.rows(2, pair * 3, kind=UpdateRowsV1Event, present=1, present_after=2)
    result = json.loads(assert_same(build.log(*events, table, update, XidEvent(xid=1))).json)
    (found,) = result["tables"]
    assert (found["inserts"], found["updates"], found["deletes"]) == (6, 3, 3)
    assert result["widest_transactions"][0]["rows"] == 12


@pytest.mark.parametrize("images", [ROWS[:-1] + b"\xfc", ROWS + b"\xfc\x05\x00\x00\x00\xff"])
def test_rows_that_end_inside_a_value(images: bytes) -> None:
    table = build.table_map(ColumnType.LONG, ColumnType.VARCHAR, metadata=b"\x50\x00")
    assert_same(build.log(*transactions(3), gtid(9), table, build.rows(2, images)))


def test_rows_without_columns() -> None:
    rows = build.rows(1, b"\x00", present=0)
    assert_same(build.log(gtid(1), build.table_map(ColumnType.LONG), rows))


def test_tables_whose_rows_the_kernel_cannot_count() -> None:
    old = build.table_map(ColumnType.TIME)
    unknown = build.table_map(ColumnType.TYPED_ARRAY, table="u", table_id=8)
    events: list[Body] = []
    for number in range(3):
        events += [gtid(number + 1), old, build.rows(1, b"\xfe\x01\x00\x00" * 2)]
        events += [unknown, build.rows(1, b"\xfe\x01", table_id=8), XidEvent(xid=1)]
    result = json.loads(assert_same(build.log(*events)).json)
    assert result["uncounted_rows_events"] == 3
    assert result["tables"][0]["inserts"] + result["tables"][1]["inserts"] == 6


def test_partial_updates() -> None:
    table = build.table_map(ColumnType.LONG)
    update = build.rows(1, b"\xfe\x01\x00\x00\x00" + b"\x00\xfe\x01\x00\x00\x00")
    partial = replace_kind(update)
    head = build.format_description(server_version="9.7.0", lengths={39: 10})
    result = json.loads(assert_same(build.log(table, partial, head=head)).json)
    assert result["tables"][0]["updates"] == 1


def replace_kind(rows: RowsEvent) -> PartialUpdateRowsEvent:
    return PartialUpdateRowsEvent(
        table_id=rows.table_id,
        flags=rows.flags,
        extra=b"",
        column_count=rows.column_count,
        columns_present=rows.columns_present,
        columns_present_after=rows.columns_present,
        images=rows.images,
    )


def test_many_tables() -> None:
    events: list[Body] = []
    for number in range(300):
        table = build.table_map(ColumnType.LONG, table=f"t{number}", table_id=number % 7 + 1)
        rows = build.rows(1, b"\xfe\x01\x00\x00\x00", table_id=number % 7 + 1)
        events += [gtid(number + 1), table, rows, XidEvent(xid=1)]
    result = json.loads(assert_same(build.log(*events)).json)
    assert len(result["tables"]) == 300


def test_a_rows_event_without_its_table_map() -> None:
    table = build.table_map(ColumnType.LONG)
    rows = build.rows(1, b"\xfe\x01\x00\x00\x00")
    told_error = assert_same(build.log(gtid(1), table, rows, XidEvent(xid=1), gtid(2), rows)).error
    assert told_error is not None
    assert "which no TABLE_MAP of its statement names" in told_error


def test_a_statement_that_goes_on_where_the_kernel_stops() -> None:
    table = build.table_map(ColumnType.LONG)
    rows = build.rows(1, b"\xfe\x01\x00\x00\x00")
    first = replace(rows, flags=0)
    log = build.log(
        gtid(1), table, first, build.event(first, flags=HeaderFlag.RELAY_LOG), rows, XidEvent(xid=1)
    )
    (one,) = json.loads(assert_same(log).json)["widest_transactions"]
    assert (one["rows"], one["gtid"], one["position"]) == (3, "0-1-1", 256)


def test_a_relay_log() -> None:
    rotate = RotateEvent(position=4, file="binlog.000007")
    made = build.event(rotate, flags=HeaderFlag.ARTIFICIAL)
    log = bytearray(build.log(*transactions(2), made, *transactions(2)))
    assert_same(bytes(log))


def test_a_transaction_that_the_next_file_cuts_off() -> None:
    cut = build.log(*list(transactions(3))[:-1])
    result = json.loads(assert_same(cut, build.log(*transactions(3))).json)
    assert (result["transactions"], result["unfinished_transactions"]) == (6, 1)
    assert [file["file"] for file in result["files"]] == [FILE, "binlog.000002"]


def test_a_second_header_in_a_file() -> None:
    assert_same(build.log(*transactions(2), build.format_description(), *transactions(2)))


@pytest.mark.parametrize("data", [b"", b"\xfebin", b"no binlog", b"\xfebin" + b"\0" * 30])
def test_what_is_no_log(data: bytes) -> None:
    assert_same(data)
