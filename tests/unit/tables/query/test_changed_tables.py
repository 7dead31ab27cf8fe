"""Tables whose columns change over a log's life, in logs that name columns and in logs that do not."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import binlane
from tests.shop_log import ShopLog, Table

_CREATE = "CREATE TABLE orders (id INT PRIMARY KEY, {})"


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ShopLog:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return ShopLog()


def asked(log: ShopLog, folder: Path, schema: Path | None = None) -> duckdb.DuckDBPyConnection:
    file, data = log.file()
    path = folder / file
    path.write_bytes(data)
    return binlane.connect(path, schema=schema)


@pytest.mark.parametrize("names_in", ["log", "DDL"])
def test_a_column_is_there_from_its_first_row_to_its_last(
    names_in: str, log: ShopLog, tmp_path: Path
) -> None:
    def table(*columns: str) -> Table:
        return Table("orders", ("id", *columns), has_names=names_in == "log")

    log.statement(_CREATE.format("state VARCHAR(50)"))
    log.insert(table("state"), (1, "new"))
    log.statement("ALTER TABLE orders ADD COLUMN note VARCHAR(50)")
    log.insert(table("state", "note"), (2, "paid", "quick"))
    log.statement("ALTER TABLE orders DROP COLUMN state")
    log.update(table("note"), ((2, "quick"), (2, "slow")))
    connection = asked(log, tmp_path)
    rows = connection.execute(
        "SELECT _op, id, state, note, _before.note, _before.state FROM shop.orders"
    ).fetchall()
    assert rows == [
        ("insert", 1, "new", None, None, None),
        ("insert", 2, "paid", "quick", None, None),
        ("update", 2, None, "slow", "quick", None),
    ]


def test_a_column_holds_the_values_of_all_its_types(log: ShopLog, tmp_path: Path) -> None:
    log.insert(Table("orders", ("id", "customer_id")), (1, 7))
    log.statement("ALTER TABLE orders MODIFY customer_id VARCHAR(50)")
    file, data = log.file()
    (tmp_path / file).write_bytes(data)
    schema = tmp_path / "schema.sql"
    schema.write_text("CREATE DATABASE shop; USE shop; " + _CREATE.format("customer_id INT") + ";")
    connection = binlane.connect(tmp_path / file, schema=schema)
    assert connection.execute("SELECT id, customer_id FROM shop.orders").fetchall() == [(1, 7)]


def test_a_schema_names_the_columns_of_a_log_that_does_not(log: ShopLog, tmp_path: Path) -> None:
    log.insert(Table("orders", ("id", "state"), has_names=False), (1, "new"))
    connection = asked(log, tmp_path)
    assert connection.execute('SELECT "@1", "@2" FROM shop.orders').fetchall() == [(1, "new")]
    schema = tmp_path / "schema.sql"
    schema.write_text(
        "CREATE DATABASE shop; USE shop; " + _CREATE.format("state VARCHAR(50)") + ";"
    )
    connection = asked(log, tmp_path, schema=schema)
    assert connection.execute("SELECT id, state FROM shop.orders").fetchall() == [(1, "new")]


def test_rows_behind_a_rename_are_of_the_new_name(log: ShopLog, tmp_path: Path) -> None:
    log.insert(Table("orders", ("id", "state")), (1, "new"))
    log.statement("RENAME TABLE orders TO sales")
    log.insert(Table("sales", ("id", "state")), (2, "new"))
    connection = asked(log, tmp_path)
    assert connection.execute("SELECT id FROM shop.orders").fetchall() == [(1,)]
    assert connection.execute("SELECT id FROM shop.sales").fetchall() == [(2,)]


def test_a_delete_keeps_its_row_and_an_update_both(log: ShopLog, tmp_path: Path) -> None:
    orders = Table("orders", ("id", "state"))
    log.insert(orders, (1, "new"))
    log.update(orders, ((1, "new"), (2, None)))
    log.delete(orders, (2, None))
    connection = asked(log, tmp_path)
    rows = connection.execute("SELECT _op, id, state, _before FROM shop.orders").fetchall()
    assert rows == [
        ("insert", 1, "new", None),
        ("update", 2, None, {"id": 1, "state": "new"}),
        ("delete", 2, None, {"id": 2, "state": None}),
    ]
    counted = "SELECT count(*) FROM shop.orders WHERE {}"
    for condition, count in (
        ("_before.state = 'new'", 1),
        ("_before IS NULL", 1),
        ("state IS DISTINCT FROM _before.state AND _op = 'update'", 1),
        ("state = 'new' OR id IN (2, 3)", 3),
    ):
        assert connection.execute(counted.format(condition)).fetchone() == (count,)
