"""The same log in tables of every format and kind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from binlane.tables.landing.landing import land
from binlane.tables.landing.landing_settings import LandingSettings
from binlane.tables.landing.range_work import FormatName, Mode
from binlane.tables.landing.tables.opening import open_store
from binlane.tables.landing.tables.store_settings import TableStoreSettings
from tests.landed import plain_rows
from tests.shop_log import ShopLog, Table

ORDERS = Table("orders", ("id", "state"))
WIDER = Table("orders", ("id", "state", "note"))


def story() -> list[tuple[str, bytes]]:
    """A log of two files with rows of every kind, and statements."""
    log = ShopLog()
    log.statement("CREATE TABLE orders (id INT PRIMARY KEY, state VARCHAR(50))")
    log.insert(ORDERS, (1, "a"), (2, "b"), (3, "c"))
    log.insert(Table("plain", ("id", "state"), key=()), (1, "x"), (1, "x"), (2, "y"))
    log.statement("ALTER TABLE orders ADD COLUMN note VARCHAR(50) DEFAULT 'd'")
    log.update(WIDER, ((1, "a", "d"), (1, "a", "changed")), ((2, "b", "d"), (7, "b", "d")))
    log.delete(Table("plain", ("id", "state"), key=()), (1, "x"))
    log.statement("ALTER TABLE orders DROP COLUMN state")
    log.delete(Table("orders", ("id", "note")), (3, "d"))
    log.insert(Table("doomed", ("id", "state")), (1, "z"))
    log.statement("RENAME TABLE orders TO sales")
    log.insert(Table("sales", ("id", "note")), (9, "last"))
    log.statement("TRUNCATE TABLE doomed")
    log.insert(Table("doomed", ("id", "state")), (1, "new"))
    return [log.file()]


def seen(into: Path, table_format: FormatName) -> dict[str, list[str]]:
    """All rows of all tables as texts, as a reader of the format sees them."""
    found = {}
    for mode in Mode:
        keeping = TableStoreSettings(run_id="look")
        for table in open_store(str(into), mode, table_format, "look", keeping).names():
            rows = plain_rows(into, table_format, mode, table).to_pylist()
            texts = sorted(json.dumps(row, default=str, sort_keys=True) for row in rows)
            found[f"{mode.value} {table.plain}"] = texts
    return found


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("log")
    for name, data in story():
        (folder / name).write_bytes(data)
    return sorted(str(path) for path in folder.iterdir())


@pytest.fixture(scope="module")
def expected(files: list[str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    into = tmp_path_factory.mktemp("delta")
    land(files, str(into), LandingSettings(modes=frozenset(Mode)))
    return seen(into, FormatName.DELTA)


def test_what_is_landed(expected: dict[str, list[str]]) -> None:
    rows = {name: [json.loads(text) for text in texts] for name, texts in expected.items()}
    assert set(rows) == {
        *(f"current shop.{name}" for name in ("sales", "plain", "doomed")),
        *(f"changes shop.{name}" for name in ("orders", "sales", "plain", "doomed")),
        *(f"history shop.{name}" for name in ("sales", "doomed")),
    }
    current = [(row["id"], row["note"]) for row in rows["current shop.sales"]]
    assert sorted(current) == [(1, "changed"), (7, "d"), (9, "last")]
    versions = rows["history shop.sales"]
    assert sorted((row["id"], row["note"], row["is_current"]) for row in versions) == [
        (1, "changed", True),
        (1, "d", False),
        (2, "d", False),
        (3, "d", False),
        (7, "d", True),
        (9, "last", True),
    ]
    doomed = [(row["state"], row["is_current"]) for row in rows["history shop.doomed"]]
    assert sorted(doomed) == [("new", True), ("z", False)]


@pytest.mark.parametrize("table_format", [FormatName.PARQUET, FormatName.ICEBERG])
def test_every_format_says_the_same(
    table_format: FormatName, files: list[str], expected: dict[str, list[str]], tmp_path: Path
) -> None:
    settings = LandingSettings(modes=frozenset(Mode), format=table_format, batch_bytes=300)
    for _ in range(2):  # the second time there is nothing new
        land(files, str(tmp_path), settings)
        assert seen(tmp_path, table_format) == expected
