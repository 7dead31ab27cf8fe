"""Streams of one table whose columns change, asked as Spark asks them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from binlane.errors import SchemaChangedError
from binlane.tables.spark.range_reader import new_planner
from binlane.tables.spark.source_options import SourceOptions
from binlane.tables.spark.spark_versions import read_everything
from binlane.tables.spark.stream import BinlogStreamReader
from binlane.tables.spark.typed_table import typed_schema
from tests.shop_log import ShopLog, Table

ORDERS = Table("orders", ("id", "state"))
WIDER = Table("orders", ("id", "state", "note"))
NARROWER = Table("orders", ("id",))
ITEMS = Table("items", ("id", "state", "note"))
ALTER = "ALTER TABLE orders ADD COLUMN note VARCHAR(50)"


def write(log: Path, made: ShopLog) -> None:
    name, data = made.file()
    (log / name).write_bytes(data)


def old_log() -> ShopLog:
    made = ShopLog()
    made.insert(ORDERS, (1, "new"))
    return made


class Query:
    """A streaming query: what it has read, and where it stands."""

    def __init__(self, log: Path, **options: str) -> None:
        self._options = {"path": str(log), "table": "shop.orders", **options}
        self.rows: list[dict[str, Any]] = []
        self.offset: dict[str, Any] | None = None
        self.start()

    def start(self) -> None:
        """Start it, anew or again."""
        options = SourceOptions.parse(self._options)
        schema = from_arrow_schema(typed_schema(options, new_planner(options)))
        self._reader = BinlogStreamReader(options, schema)
        self.offset = self.offset or self._reader.initialOffset()

    def run(self) -> None:
        """Take micro-batches until there is nothing new."""
        while True:
            assert self.offset is not None
            end = self._reader.latestOffset(self.offset, read_everything())
            if end == self.offset:
                return
            for partition in self._reader.partitions(self.offset, end):
                for batch in self._reader.read(partition):
                    self.rows += batch.to_pylist()
            self.offset = end

    @property
    def ids(self) -> list[int]:
        return [row["id"] for row in self.rows]


@pytest.mark.parametrize("policy", ["fail", "evolve"])
def test_a_stream_ends_in_front_of_the_statement_and_goes_on_when_started_again(
    policy: str, tmp_path: Path
) -> None:
    made = old_log()
    write(tmp_path, made)
    query = Query(tmp_path, schemaChange=policy)
    query.run()
    made.insert(ORDERS, (2, "new"))
    made.statement(ALTER)
    made.insert(ITEMS, (7, "other", "table"))
    made.insert(WIDER, (3, "new", "mine"))
    write(tmp_path, made)
    with pytest.raises(SchemaChangedError) as caught:
        query.run()
    assert query.ids == [1, 2], "all rows before are delivered"
    message = str(caught.value)
    assert "shop.orders" in message
    assert ALTER in message
    assert "note (string) is new" in message
    assert f"(shop.000001:{query.offset['position']})" in message  # type: ignore[index]
    assert "start the query again" in caught.value.hint
    with pytest.raises(SchemaChangedError):
        query.run()
    query.start()
    query.run()
    assert [(row["id"], row["note"]) for row in query.rows[2:]] == [(3, "mine")]


def test_a_stream_may_go_on_with_the_columns_that_it_has(tmp_path: Path) -> None:
    made = old_log()
    write(tmp_path, made)
    query = Query(tmp_path, schemaChange="ignore")
    made.statement(ALTER)
    made.insert(WIDER, (2, "new", "mine"))
    write(tmp_path, made)
    query.run()
    assert query.ids == [1, 2]
    assert "note" not in query.rows[1]


def test_a_column_that_is_not_wanted_may_come(tmp_path: Path) -> None:
    made = old_log()
    write(tmp_path, made)
    query = Query(tmp_path, columns="id,state")
    made.statement(ALTER)
    made.insert(WIDER, (2, "new", "mine"))
    write(tmp_path, made)
    query.run()
    assert query.ids == [1, 2]


def test_what_fits_goes_on(tmp_path: Path) -> None:
    made = old_log()
    write(tmp_path, made)
    query = Query(tmp_path)
    made.statement("CREATE INDEX by_state ON orders (state)")
    made.insert(ORDERS, (2, "new"))
    made.statement("ALTER TABLE orders DROP COLUMN state")
    made.insert(NARROWER, (3,))
    write(tmp_path, made)
    query.run()
    assert query.ids == [1, 2, 3]
    assert query.rows[2]["state"] is None


def test_a_log_of_many_schemas_is_read_from_its_beginning(tmp_path: Path) -> None:
    made = old_log()
    made.statement(ALTER)
    made.insert(WIDER, (2, "new", "mine"))
    made.statement("ALTER TABLE orders DROP COLUMN state, DROP COLUMN note")
    made.insert(NARROWER, (3,))
    write(tmp_path, made)
    query = Query(tmp_path)
    query.run()
    assert query.ids == [1, 2, 3]
