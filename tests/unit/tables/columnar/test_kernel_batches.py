"""The fast path gives what the reference gives, on good files and bad ones, wherever a window ends."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.log.kernels.load import Build, running
from binlane.positions import FilePosition
from binlane.tables.columnar.selection import Selection, parse_bound, parse_tables
from tests.fixture_sets import fixture_names, fixture_set
from tests.kernel_reading import assert_same, by_kernels, by_reference
from tests.shop_log import ShopLog, Table

WHOLE = {"window_bytes": 1 << 22}
TINY = {"window_bytes": 256, "held_bytes_max": 1024}
SMALL = {"window_bytes": 4096, "held_bytes_max": 16384}
LARGE_BYTES = 10_000_000
TYPES = ["md1011_types_numeric", "md1011_types_string", "md1011_types_temporal"]
ORDERS = Table("orders", ("id", "state", "note"))
ITEMS = Table("items", ("id", "orders_id", "label"))
ROW = st.tuples(
    st.none() | st.integers(-(2**31), 2**31 - 1), *[st.none() | st.text(max_size=12)] * 2
)


@pytest.mark.parametrize("name", fixture_names())
def test_every_set_is_read_as_the_reference_reads_it(name: str) -> None:
    for _, data in fixture_set(name).binlogs:
        expected = by_reference(data)
        for sizes in (WHOLE, SMALL, TINY) if len(data) < LARGE_BYTES else (WHOLE, SMALL):
            assert_same(by_kernels(data, **sizes), expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["md1011_bigrow", "my97_bigrow", "md118_bigcommit"])
def test_large_events_in_tiny_windows(name: str) -> None:
    for _, data in fixture_set(name).binlogs:
        assert_same(by_kernels(data, **TINY), by_reference(data))


@pytest.mark.parametrize("name", [*TYPES, "md1011_compressed", "corrupt_mariadb1011"])
def test_plain_python_kernels_give_the_same(name: str) -> None:
    for _, data in fixture_set(name).binlogs:
        with running(Build.PLAIN):
            found = by_kernels(data)
        assert_same(found, by_reference(data))


@pytest.mark.parametrize("name", ["md1011_txn", "md1011_compressed", "md1011_rowimage_minimal"])
def test_a_file_that_was_cut_anywhere(name: str) -> None:
    data = fixture_set(name).binlogs[0][1][:6000]
    for end in range(0, len(data), 41):
        expected = by_reference(data[:end])
        for sizes in (WHOLE, TINY):
            assert_same(by_kernels(data[:end], **sizes), expected)


@pytest.mark.parametrize("name", ["md1011_checksum_none", *TYPES, "md1011_compressed"])
def test_bytes_that_were_changed_anywhere(name: str) -> None:
    source = random.Random(name)
    _, whole = fixture_set(name).binlogs[0]
    for _ in range(50):
        data = bytearray(whole)
        data[source.randrange(4, len(data))] ^= 1 << source.randrange(8)
        sizes = source.choice([WHOLE, SMALL, TINY])
        assert_same(by_kernels(bytes(data), **sizes), by_reference(bytes(data)))


@pytest.mark.parametrize("rows_max", [1, 3, 100])
def test_batches_have_no_more_rows_than_wanted(rows_max: int) -> None:
    for _, data in fixture_set("md1011_types_temporal").binlogs:
        expected = by_reference(data, rows_max=rows_max)
        assert_same(by_kernels(data, rows_max=rows_max), expected)


@pytest.mark.parametrize(
    "name, sizes",
    [
        *[(name, sizes) for name in ("md1011_txn", "md1011_gtid") for sizes in (WHOLE, TINY)],
        ("md118_bigcommit", WHOLE),
        pytest.param("md118_bigcommit", TINY, marks=pytest.mark.slow),
    ],
)
def test_a_selection_gives_the_same(name: str, sizes: dict[str, int]) -> None:
    for _, data in fixture_set(name).binlogs:
        half = len(data) // 2
        middle = datetime.fromtimestamp(int.from_bytes(data[-40:-36], "little") % 2**31, UTC)
        for bound in (FilePosition("binlog.000001", half), middle, parse_bound("0-1-9", key="")):
            for selection in (Selection(start=bound), Selection(stop=bound)):
                found = by_kernels(data, selection=selection, **sizes)
                assert_same(found, by_reference(data, selection=selection))


def test_only_the_tables_and_columns_that_are_wanted() -> None:
    for _, data in fixture_set("md1011_metadata_full").binlogs:
        for tables in ("shop.m1", "shop", "nothing"):
            selection = Selection(scope=parse_tables(tables))
            for columns in (None, {"a", "c"}, set()):
                found = by_kernels(data, selection=selection, columns=columns)
                assert_same(found, by_reference(data, selection=selection, columns=columns))


@given(
    changes=st.lists(
        st.tuples(st.sampled_from([ORDERS, ITEMS]), st.lists(ROW, min_size=1, max_size=5)),
        max_size=8,
    ),
    window_bytes=st.integers(64, 2000),
    held_bytes_max=st.integers(0, 2000),
)
def test_any_rows_in_any_windows(
    changes: list[tuple[Table, list[tuple[int | str | None, ...]]]],
    window_bytes: int,
    held_bytes_max: int,
) -> None:
    log = ShopLog()
    for table, rows in changes:
        log.insert(table, *rows)
        log.update(table, *((row, (*row[:2], "new")) for row in rows))
    _, data = log.file()
    found = by_kernels(data, window_bytes=window_bytes, held_bytes_max=held_bytes_max)
    assert_same(found, by_reference(data))


@given(data=st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    _, head = ShopLog().file()
    for whole in (data, head + data):
        assert_same(by_kernels(whole, **TINY), by_reference(whole))


def test_a_schema_that_changes_within_a_window_keeps_the_order_of_rows() -> None:
    log = ShopLog()
    wider = Table("orders", ("id", "state", "note", "more"))
    for number in range(3):
        log.insert(ORDERS, (number, "a", "b"))
        log.insert(wider, (number, "a", "b", "c"))
    _, data = log.file()
    assert_same(by_kernels(data), by_reference(data))
