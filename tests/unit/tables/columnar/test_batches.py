from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from binlane.errors import ConfigError, TruncatedError
from binlane.log.codec.columns import ABSENT, decode_rows
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.rows import WriteRowsV1Event
from binlane.log.codec.table_metadata import table_columns
from binlane.log.codec.types import ColumnType, Flavor
from binlane.log.grouping.event_group import EventGroup, group_events
from binlane.log.grouping.table_maps import rows_with_tables
from binlane.log.grouping.walk import walk
from binlane.names import TableName
from binlane.tables.columnar.selection import Selection, parse_tables
from binlane.tables.columnar.table_schema import (
    CHANGE_COLUMNS,
    has_full_images,
    invalid_dates_of,
    primary_key_of,
    table_of,
    table_schema,
)
from tests import build
from tests.fixture_sets import fixture_set, mariadb_sets
from tests.kernel_reading import rows_of
from tests.shop_log import ShopLog, Table

UNREADABLE = {
    "md1011_encrypted",
    "md1011_types_temporal_hires53",
    "md1011_xa",  # whose rows have the places of the commits
}
ORDERS = Table("orders", ("id", "state"))
ITEMS = Table("items", ("id", "state"))


def groups(name: str) -> Iterator[EventGroup]:
    for file, data in fixture_set(name).binlogs:
        yield from group_events(walk([data], file=file), file=file)


def groups_of(log: ShopLog) -> Iterator[EventGroup]:
    name, data = log.file()
    yield from group_events(walk([data], file=name), file=name)


def reference(name: str) -> dict[TableName, list[tuple[Any, ...]]]:
    """Every image by table: operation, file, position, number, values of the reference decoder."""
    found: dict[TableName, list[tuple[Any, ...]]] = {}
    flavor = Flavor.MARIADB
    for group in groups(name):
        for event in group.events:
            if isinstance(event.body, FormatDescriptionEvent):
                flavor = event.body.format.flavor
        for event, body, table_map in rows_with_tables(group.events, file=group.file):
            if not group.is_complete:
                continue
            columns = table_columns(table_map, flavor=flavor)
            images = found.setdefault(TableName(table_map.database, table_map.table), [])
            for number, (before, after) in enumerate(decode_rows(body, columns)):
                place = (group.file, event.position, number)
                if before is not None:
                    op = "delete" if after is None else "update_before"
                    images.append((op, *place, before))
                if after is not None:
                    op = "insert" if before is None else "update_after"
                    images.append((op, *place, after))
    return found


@pytest.mark.parametrize("name", [name for name in mariadb_sets() if name not in UNREADABLE])
def test_batches_hold_what_the_reference_decodes(name: str) -> None:
    expected = reference(name)
    found: dict[TableName, list[tuple[Any, ...]]] = {}
    for batch in rows_of(groups(name), rows_max=7):
        assert 0 < batch.num_rows <= 7
        assert batch.schema.names[: len(CHANGE_COLUMNS)] == CHANGE_COLUMNS.names
        batch.validate(full=True)
        images = found.setdefault(table_of(batch.schema), [])
        for row in batch.to_pylist():
            op, _, _, file, position, number, *values = row.values()
            images.append((op, file, position, number, tuple(values)))
    assert {table: [image[:4] for image in images] for table, images in found.items()} == {
        table: [image[:4] for image in images] for table, images in expected.items()
    }
    for table, images in found.items():
        for image, wanted in zip(images, expected[table], strict=True):
            assert len(image[4]) == len(wanted[4])
            for value, plain in zip(image[4], wanted[4], strict=True):
                check_value(value, plain)


def check_value(value: object, plain: object) -> None:
    """An Arrow value against the reference's, whatever form it takes."""
    if plain is None or plain is ABSENT:
        assert value is None
    elif isinstance(value, datetime):
        text = value.strftime("%Y-%m-%d %H:%M:%S.%f")
        assert text.startswith(str(plain))
        assert not text.removeprefix(str(plain)).strip(".0")
    elif value is None:
        with pytest.raises(ValueError, match=r"year|month|day"):
            date.fromisoformat(str(plain)[:10])
    elif isinstance(value, bytes) and isinstance(plain, str):
        assert value == plain.encode()
    elif isinstance(value, str) and isinstance(plain, bytes):
        assert json.loads(value).keys() == {"base64"}
    elif isinstance(plain, tuple):
        assert value == ",".join(plain)
    elif isinstance(value, str):
        assert value == (format(plain, "f") if isinstance(plain, Decimal) else str(plain))
    elif isinstance(plain, int | float | bytes):
        assert value == plain
    else:
        assert str(value) == str(plain)


def test_rows_before_an_error_are_given() -> None:
    log = ShopLog()
    log.insert(ORDERS, (1, "a"))
    log.insert(ORDERS, (2, "b"))
    rows = next(body for body in reversed(log.bodies) if isinstance(body, WriteRowsV1Event))
    log.bodies[log.bodies.index(rows)] = replace(rows, images=rows.images[:-1])
    found: list[pa.RecordBatch] = []
    with pytest.raises(TruncatedError) as caught:
        found.extend(rows_of(groups_of(log)))
    assert [batch.column("id").to_pylist() for batch in found] == [[1]]
    assert caught.value.file == "shop.000001"
    assert caught.value.position


def test_a_batch_ends_before_it_holds_too_many_bytes() -> None:
    log = ShopLog()
    for number in range(4):
        log.insert(ORDERS, (number, "x" * 40))
    sizes = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("binlane.tables.columnar.batches.BATCH_BYTES_MAX", 80)
        sizes = [batch.num_rows for batch in rows_of(groups_of(log))]
    assert sizes == [2, 2]


def test_a_batch_knows_its_table_and_key() -> None:
    (batch,) = rows_of(groups("md1011_metadata_full"), selection=only("shop.m2"))
    assert batch.schema.metadata[b"table"] == b"shop.m2"
    assert primary_key_of(batch.schema) == ["a", "d"]
    assert has_full_images(batch.schema)
    assert batch.schema.names[len(CHANGE_COLUMNS) :] == ["a", "b", "c", "d"]


def test_what_every_image_says_of_its_change() -> None:
    log = ShopLog()
    log.insert(ORDERS, (1, "a"), (2, "b"))
    log.update(ORDERS, ((1, "a"), (1, "c")))
    (batch,) = rows_of(groups_of(log))
    rows = batch.to_pylist()
    assert [(row["_op"], row["_gtid"], row["_row"]) for row in rows] == [
        ("insert", "0-1-1", 0),
        ("insert", "0-1-1", 1),
        ("update_before", "0-1-2", 0),
        ("update_after", "0-1-2", 0),
    ]
    assert {row["_file"] for row in rows} == {"shop.000001"}
    assert rows[0]["_timestamp"] == datetime.fromtimestamp(1_700_000_000, UTC)
    assert rows[0]["_position"] == rows[1]["_position"] < rows[2]["_position"]


def test_one_table_a_batch_even_where_statements_alternate() -> None:
    log = ShopLog()
    for number in range(5):
        log.insert(ORDERS, (number, "a"))
        log.insert(ITEMS, (number, "b"))
    found = [(table_of(batch.schema).table, batch.num_rows) for batch in rows_of(groups_of(log))]
    assert found == [("orders", 5), ("items", 5)]


def test_a_changed_schema_starts_a_new_batch() -> None:
    log = ShopLog()
    log.insert(ORDERS, (1, "a"))
    log.insert(Table("orders", ("id", "state", "note")), (2, "b", "c"))
    log.insert(Table("orders", ("id", "state", "note"), key=("state",)), (3, "b", "c"))
    found = [batch.column("id").to_pylist() for batch in rows_of(groups_of(log))]
    assert found == [[1], [2], [3]]


def test_names_that_are_no_text_are_escaped() -> None:
    described = build.table_map(
        ColumnType.LONG, table="t\udce4", optional_metadata=b"\x04\x03\x02n\xe4"
    )
    schema = table_schema(described, flavor=Flavor.MARIADB).arrow
    assert schema.metadata[b"table"] == rb"shop.t\xe4"
    assert schema.names[-1] == r"n\xe4"


def test_columns_without_names_are_numbered() -> None:
    log = ShopLog()
    log.insert(ORDERS.unnamed(), (1, "a"))
    (batch,) = rows_of(groups_of(log))
    assert batch.schema.names[len(CHANGE_COLUMNS) :] == ["@1", "@2"]
    assert primary_key_of(batch.schema) == []


def test_only_the_columns_that_are_wanted() -> None:
    log = ShopLog()
    log.insert(ORDERS, (1, "a"))
    (batch,) = rows_of(groups_of(log), columns={"state", "none"})
    assert batch.schema.names == [*CHANGE_COLUMNS.names, "state"]
    assert batch.column("state").to_pylist() == ["a"]


def test_a_column_named_as_one_of_ours_is_refused() -> None:
    log = ShopLog()
    log.insert(Table("orders", ("id", "_op")), (1, "a"))
    with pytest.raises(ConfigError, match="has a column _op"):
        list(rows_of(groups_of(log)))
    assert len(list(rows_of(groups_of(log), columns={"id"}))) == 1


def test_partial_images_are_told() -> None:
    found = [has_full_images(batch.schema) for batch in rows_of(groups("md1011_rowimage_minimal"))]
    assert not all(found)
    assert all(has_full_images(batch.schema) for batch in rows_of(groups("md1011_rowimage_full")))


def test_zero_dates_are_counted_once_however_batches_are_cut() -> None:
    counts = Counter(
        sum(
            invalid_dates_of(batch.schema)
            for batch in rows_of(groups("md1011_types_temporal"), rows_max=size)
        )
        for size in (1, 3, 1000)
    )
    assert len(counts) == 1
    assert min(counts) > 0


def only(*names: str) -> Selection:
    return Selection(scope=parse_tables(names))


def test_only_the_tables_that_are_wanted() -> None:
    found = rows_of(groups("md1011_metadata_full"), selection=only("shop.m1", "crm"))
    assert {table_of(batch.schema).plain for batch in found} == {"shop.m1"}
    assert not list(rows_of(groups("md1011_metadata_full"), selection=only("crm")))


def test_a_group_that_its_log_does_not_end_is_rolled_back() -> None:
    log = ShopLog()
    log.insert(ORDERS, (1, "a"))
    log.insert(ORDERS, (2, "b"))
    log.bodies.pop()  # its XID
    (batch,) = rows_of(groups_of(log))
    assert batch.column("id").to_pylist() == [1]


def test_batches_are_plain_arrow() -> None:
    table = pa.Table.from_batches(rows_of(groups("md1011_rotation"), rows_max=10))
    assert table.num_rows == 61
