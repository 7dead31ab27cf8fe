"""The text kernel prints what `TextLines` prints: good files and bad ones, wherever a window ends."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.binlogs.cat.fast_text.printer import can_print
from binlane.binlogs.cat.text.text_options import Base64Output, TextOptions
from binlane.log.codec.body import Body
from binlane.log.codec.event import Event, encode_event
from binlane.log.codec.fragments import PartialRowDataEvent
from binlane.log.codec.query import AnnotateRowsEvent, QueryEvent
from binlane.log.codec.rows import (
    DeleteRowsV1Event,
    RowsEvent,
    UpdateRowsV1Event,
    WriteRowsCompressedV1Event,
    WriteRowsV1Event,
)
from binlane.log.codec.transaction import GtidEvent, XidEvent
from binlane.log.codec.types import ColumnType
from binlane.log.kernels.load import Build, running
from tests import build
from tests.fixture_sets import fixture_names, fixture_set
from tests.printing import (
    OPTIONS,
    TINY,
    WHOLE,
    Printed,
    assert_same,
    by_kernel,
    by_lines,
    local_zone,
)

SETS = [name for name in fixture_names() if not name.startswith("yard")]
LARGE_BYTES = 1_000_000
PRINTED: tuple[Callable[..., Printed], ...] = (by_lines, by_kernel, partial(by_kernel, sizes=TINY))


@pytest.fixture(autouse=True)
def _zone() -> Iterator[None]:
    with local_zone("UTC"):
        yield


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", SETS)
def test_every_set_is_printed_as_by_lines(name: str, options: str, tmp_path: Path) -> None:
    for _, data in fixture_set(name).binlogs:
        if len(data) < LARGE_BYTES or options == "decoded":
            texts = []
            for place, printed in enumerate(PRINTED):
                # Each has a folder of its own for LOAD DATA; the text names its files.
                folder = tmp_path / f"{place}"
                folder.mkdir(exist_ok=True)
                result = printed(data, options=replace(OPTIONS[options], load_directory=folder))
                texts.append((result.text.replace(bytes(folder), b""), result.error))
            assert texts[1] == texts[0], "whole"
            assert texts[2] == texts[0], "tiny"


@pytest.mark.parametrize(
    "name", ["md1011_types_numeric", "md1011_types_temporal", "md118_compressed", "md1011_gtid"]
)
def test_plain_python_kernels_print_the_same(name: str) -> None:
    with running(Build.PLAIN):
        for _, data in fixture_set(name).binlogs:
            assert_same(data)
            assert_same(data[:3000], options=OPTIONS["all"], sizes=(TINY,))


@pytest.mark.parametrize("name", ["md1011_txn", "md1011_compressed", "md1011_format_mixed"])
def test_a_file_that_was_cut_anywhere(name: str) -> None:
    data = fixture_set(name).binlogs[0][1][:5000]
    for end in range(0, len(data), 37):
        assert_same(data[:end], sizes=(WHOLE, TINY))


@pytest.mark.parametrize(
    "name", ["md1011_checksum_none", "md1011_types_numeric", "md1011_compressed_minimal"]
)
def test_bytes_that_were_changed_anywhere(name: str) -> None:
    source = random.Random(name)
    _, whole = fixture_set(name).binlogs[0]
    for _ in range(100):
        data = bytearray(whole)
        data[source.randrange(4, len(data))] ^= 1 << source.randrange(8)
        assert_same(bytes(data), sizes=[source.choice([WHOLE, TINY])])


FIXED = {
    ColumnType.TINY: 1,
    ColumnType.SHORT: 2,
    ColumnType.INT24: 3,
    ColumnType.LONG: 4,
    ColumnType.LONGLONG: 8,
    ColumnType.FLOAT: 4,
    ColumnType.DOUBLE: 8,
    ColumnType.YEAR: 1,
    ColumnType.DATE: 3,
    ColumnType.TIME: 3,
    ColumnType.DATETIME: 8,
    ColumnType.TIMESTAMP: 4,
}
META_BYTES = {ColumnType.FLOAT: b"\4", ColumnType.DOUBLE: b"\x08"}


class MadeColumn(NamedTuple):
    type_code: int
    metadata: bytes
    values: st.SearchStrategy[bytes]


def fixed(kind: ColumnType) -> MadeColumn:
    size = FIXED[kind]
    return MadeColumn(kind, META_BYTES.get(kind, b""), st.binary(min_size=size, max_size=size))


def counted(kind: ColumnType, metadata: bytes, size: int) -> MadeColumn:
    texts = st.text(max_size=60).map(str.encode) | st.binary(max_size=60)
    return MadeColumn(kind, metadata, texts.map(lambda d: len(d).to_bytes(size, "little") + d))


def with_fraction(kind: ColumnType, whole: int, digits: int) -> MadeColumn:
    size = whole + (digits + 1) // 2
    # Any bytes are rarely a date; those of servers begin so.
    heads = {5: b"\x99", 3: b"\x80", 4: b"\x65"}
    values = st.binary(min_size=size - 1, max_size=size - 1).map(heads[whole].__add__)
    return MadeColumn(kind, bytes((digits,)), values | st.binary(min_size=size, max_size=size))


def packed(kind: ColumnType, metadata: bytes, size: int) -> MadeColumn:
    return MadeColumn(kind, metadata, st.binary(min_size=size, max_size=size))


COLUMNS = st.one_of(
    st.sampled_from(list(FIXED)).map(fixed),
    st.sampled_from(
        [
            counted(ColumnType.VARCHAR, b"\x50\x00", 1),
            counted(ColumnType.VARCHAR, b"\x50\x01", 2),
            counted(ColumnType.STRING, b"\xfe\x50", 1),
            *(counted(ColumnType.BLOB, bytes((size,)), size) for size in (1, 2, 3, 4)),
            packed(ColumnType.STRING, b"\xf7\x01", 1),
            packed(ColumnType.STRING, b"\xf7\x02", 2),
            packed(ColumnType.STRING, b"\xf8\x03", 3),
            packed(ColumnType.BIT, b"\x03\x01", 2),
            packed(ColumnType.NEWDECIMAL, b"\x0a\x02", 5),
            packed(ColumnType.NEWDECIMAL, b"\x41\x1e", 30),
        ]
    ),
    st.builds(with_fraction, st.just(ColumnType.DATETIME2), st.just(5), st.integers(0, 6)),
    st.builds(with_fraction, st.just(ColumnType.TIME2), st.just(3), st.integers(0, 6)),
    st.builds(with_fraction, st.just(ColumnType.TIMESTAMP2), st.just(4), st.integers(0, 6)),
)


@st.composite
def row_logs(draw: st.DrawFn) -> bytes:
    """A log of one transaction, whose rows have all types and any values."""
    columns = draw(st.lists(COLUMNS, min_size=1, max_size=12))
    kinds = [WriteRowsV1Event, UpdateRowsV1Event, DeleteRowsV1Event, WriteRowsCompressedV1Event]
    kind: type[RowsEvent] = draw(st.sampled_from(kinds))
    images = b""
    for _ in range(draw(st.integers(1, 3)) * (2 if kind is UpdateRowsV1Event else 1)):
        nulls = draw(st.integers(0, (1 << len(columns)) - 1) | st.just(0))
        images += nulls.to_bytes((len(columns) + 7) // 8, "little")
        for index, column in enumerate(columns):
            images += b"" if nulls >> index & 1 else draw(column.values)
    table = build.table_map(
        *(column.type_code for column in columns),
        metadata=b"".join(column.metadata for column in columns),
    )
    note = AnnotateRowsEvent(query=draw(st.binary(min_size=1, max_size=80)))
    gtid = GtidEvent(sequence=draw(st.integers(0, 2**64 - 1)), domain_id=0, flags=4, padding=b"")
    rows = build.rows(len(columns), images, kind=kind)
    return build.log(gtid, note, table, rows, XidEvent(xid=draw(st.integers(0, 2**64 - 1))), gtid)


@given(row_logs(), st.sampled_from([WHOLE, TINY]), st.sampled_from(["decoded", "all", "default"]))
def test_rows_of_all_types_with_any_values(
    data: bytes, sizes: dict[str, int], options: str
) -> None:
    assert_same(data, options=OPTIONS[options], sizes=(sizes,))


def query(text: bytes, *, thread_id: int = 5, database: bytes = b"shop") -> QueryEvent:
    return QueryEvent(
        thread_id=thread_id,
        execution_time=0,
        error_code=0,
        status_vars=bytes.fromhex("00000000000120000000000000000603737464042d002d000800"),
        database=database,
        query=text,
    )


def test_statements_are_told_what_they_need() -> None:
    events: list[Event | Body] = [
        query(b"INSERT INTO t VALUES (1)"),
        query(b"INSERT INTO t VALUES (2)", thread_id=6),
        query(b"INSERT INTO t VALUES (3)", database=b"crm"),
        query(b"INSERT INTO t VALUES (4)", database=b"crm"),
        build.event(query(b"COMMIT"), flags=8),
        query(b"INSERT INTO t VALUES (5)", database=b"crm"),
        build.event(query(b"DROP DATABASE crm", database=b"crm"), flags=8),
        query(b"INSERT INTO t VALUES (6)", database=b"crm"),
        build.event(query(b"INSERT INTO t VALUES (7)", database=b"crm"), flags=0x8000),
        query(b"INSERT INTO t VALUES (8)", database=b"crm"),
        query(b"INSERT INTO t VALUES (9)", database=b"crm"),
    ]
    assert_same(build.log(*events), sizes=(WHOLE, TINY))


def test_rows_that_their_statement_does_not_end() -> None:
    table = build.table_map(ColumnType.LONG)
    rows = build.rows(1, b"\0\1\0\0\0")
    for event in (XidEvent(xid=1), query(b"COMMIT"), table, build.format_description()):
        for options in OPTIONS.values():
            for behind in ((), (rows,)):
                data = build.log(table, replace(rows, flags=0), event, *behind)
                assert_same(data, options=options, sizes=(WHOLE, TINY))


def test_pieces_of_a_rows_event() -> None:
    whole = encode_event(build.event(build.rows(1, b"\0\1\0\0\0" * 30)), build.FORMAT)
    pieces = [
        PartialRowDataEvent(
            fragment_count=2,
            fragment_number=number,
            flags=0 if number > 1 else 1,
            original_size=len(whole) if number == 1 else None,
            data=data,
        )
        for number, data in ((1, whole[:50]), (2, whole[50:]))
    ]
    assert_same(build.log(build.table_map(ColumnType.LONG), *pieces, XidEvent(xid=1)))


def test_more_tables_than_are_kept() -> None:
    events: list[Event | Body] = []
    for number in range(3000):
        events += [
            build.table_map(ColumnType.LONG, table=f"t{number}", table_id=number * 977),
            build.rows(1, b"\0\1\0\0\0", table_id=number * 977),
        ]
    assert_same(build.log(*events))


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "Africa/Monrovia"])
def test_local_time_is_that_of_the_system(zone: str) -> None:
    source = random.Random(zone)
    change = int(datetime(2026, 3, 29, 1, tzinfo=ZoneInfo("UTC")).timestamp())
    times = [change - 1, change, 0, 2**32 - 1, *(source.randrange(2**32) for _ in range(200))]
    events = [build.event(XidEvent(xid=number)) for number in range(len(times))]
    moved = [
        replace(event, header=replace(event.header, timestamp=when))
        for event, when in zip(events, times, strict=True)
    ]
    with local_zone(zone):
        assert_same(build.log(*moved))


@pytest.mark.parametrize(
    "options",
    [
        TextOptions(short_form=True),
        TextOptions(hexdump=True),
        TextOptions(print_table_metadata=True),
        TextOptions(rewrite_databases={"a": "b"}),
        TextOptions(base64_output=Base64Output.NEVER),
        TextOptions(print_row_event_positions=False),
    ],
)
def test_what_the_kernel_does_not_print(options: TextOptions) -> None:
    assert not can_print(options)


def test_what_the_kernel_prints() -> None:
    assert all(map(can_print, OPTIONS.values()))
