from __future__ import annotations

import re
from pathlib import Path

import pytest

from binlane.errors import ConfigError, StoreError
from binlane.log.codec.rows import DeleteRowsV1Event, WriteRowsV1Event
from binlane.log.codec.transaction import GtidEvent, XidEvent
from binlane.log.codec.types import GtidFlag
from binlane.tables.columnar.selection import parse_tables
from binlane.tables.landing import tasks
from binlane.tables.landing.landing import land
from binlane.tables.landing.landing_settings import LandingSettings
from binlane.tables.landing.range_work import Mode
from tests import build
from tests.fixture_sets import fixture_set
from tests.landed import delta_rows
from tests.log_batches import LogLander, land_all, new_lander
from tests.shop_log import Row, ShopLog, Table

ORDERS = Table("orders", ("id", "state"))
WIDER = Table("orders", ("id", "state", "note"))


def current(into: Path, table: str = "orders") -> list[Row]:
    """The rows of a current table without what landing adds, sorted."""
    found = delta_rows(into / "current/shop" / table)
    own = [name for name in found.column_names if not name.startswith("_")]
    return sorted(tuple(row.values()) for row in found.select(own).to_pylist())


def landed(into: Path, log: ShopLog) -> LogLander:
    return land_all(into, [[log.file()]])


def test_inserts_updates_and_deletes_by_key(tmp_path: Path) -> None:
    log = ShopLog()
    log.insert(ORDERS, (1, "new"), (2, "new"), (3, None))
    log.update(ORDERS, ((1, "new"), (1, "paid")))
    log.delete(ORDERS, (2, "new"))
    landed(tmp_path, log)
    assert current(tmp_path) == [(1, "paid"), (3, None)]


def test_updates_of_the_key_in_one_event_follow_their_order(tmp_path: Path) -> None:
    log = ShopLog()
    log.insert(ORDERS, (1, "a"), (2, "b"))
    log.update(ORDERS, ((2, "b"), (3, "b")), ((1, "a"), (2, "a")))
    landed(tmp_path, log)
    assert current(tmp_path) == [(2, "a"), (3, "b")]


def test_each_micro_batch_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    logs = [ShopLog(), ShopLog()]
    logs[0].insert(ORDERS, (1, "new"), (2, "new"))
    logs[1].update(ORDERS, ((1, "new"), (1, "paid")))
    logs[1].delete(ORDERS, (2, "new"))
    logs[1].insert(ORDERS, (4, "new"))
    files = [log.file(f"shop.00000{number}") for number, log in enumerate(logs, 1)]
    lander = land_all(tmp_path, [[file] for file in files])
    assert current(tmp_path) == [(1, "paid"), (4, "new")]
    assert lander.progress.batches == 2
    assert lander.progress.rows == 6


def test_without_a_key_rows_are_counted(tmp_path: Path) -> None:
    table = Table("orders", ("id", "state"), key=())
    logs = [ShopLog(), ShopLog()]
    logs[0].insert(table, (1, "a"), (1, "a"), (1, "a"), (2, None))
    logs[1].delete(table, (1, "a"), (2, None))
    logs[1].update(table, ((1, "a"), (1, "b")))
    files = [log.file(f"shop.00000{number}") for number, log in enumerate(logs, 1)]
    land_all(tmp_path, [[file] for file in files])
    assert current(tmp_path) == [(1, "a"), (1, "b")]


def test_rows_that_the_log_never_added_are_noted(tmp_path: Path) -> None:
    log = ShopLog()
    log.delete(Table("orders", ("id", "state"), key=()), (1, "a"))
    (note,) = landed(tmp_path, log).look().notes
    assert "shop.orders: 1 rows were removed that the log had not added" in note


def test_current_tables_tell_which_change_made_a_row(tmp_path: Path) -> None:
    log = ShopLog()
    log.insert(ORDERS, (1, "new"), (2, "new"))
    log.update(ORDERS, ((1, "new"), (1, "paid")))
    landed(tmp_path, log)
    rows = {row["id"]: row for row in delta_rows(tmp_path / "current/shop/orders").to_pylist()}
    assert (rows[1]["_gtid"], rows[2]["_gtid"]) == ("0-1-2", "0-1-1")
    assert rows[1]["_seq"] > rows[2]["_seq"] >= 1 << 40


def test_change_tables_hold_every_image_in_order(tmp_path: Path) -> None:
    log = ShopLog()
    log.insert(ORDERS, (1, "new"))
    log.update(ORDERS, ((1, "new"), (1, "paid")))
    log.delete(ORDERS, (1, "paid"))
    landed(tmp_path, log)
    table = delta_rows(tmp_path / "changes/shop/orders")
    assert table.column_names[:7] == [
        *("_op", "_gtid", "_ts", "_file", "_pos", "_row", "_seq"),
    ]
    found = [(row["_op"], row["state"]) for row in table.sort_by("_seq").to_pylist()]
    assert found == [
        ("insert", "new"),
        ("update_before", "new"),
        ("update_after", "paid"),
        ("delete", "paid"),
    ]


@pytest.mark.parametrize(
    "alter, value",
    [
        ("ADD COLUMN note VARCHAR(50)", None),
        ("ADD COLUMN note VARCHAR(50) DEFAULT 'none'", "none"),
        ("ADD note VARCHAR(50) NOT NULL", ""),
        ("ADD COLUMN (note VARCHAR(50) NOT NULL DEFAULT 'x')", "x"),
    ],
)
def test_add_column_gives_old_rows_its_default(
    alter: str, value: str | None, tmp_path: Path
) -> None:
    log = ShopLog()
    log.insert(ORDERS, (1, "old"))
    log.statement(f"ALTER TABLE orders {alter}")
    log.insert(WIDER, (2, "new", "mine"))
    landed(tmp_path, log)
    assert current(tmp_path) == [(1, "old", value), (2, "new", "mine")]


@pytest.mark.parametrize(
    "column, value",
    [
        ("ENUM('none', 'all') DEFAULT 'NONE'", "none"),
        ("SET('a', 'b') NOT NULL DEFAULT 'b,a'", "a,b"),
        ("CHAR(5) DEFAULT 'a '", "a"),
        ("VARCHAR(9) DEFAULT 007", "7"),
        ("INT DEFAULT '1.5'", 2),
        ("YEAR NOT NULL", 0),
        ("BINARY(3) DEFAULT 'ab'", b"ab\0"),
        ("DECIMAL(40,2) NOT NULL", "0.00"),
        ("UUID NOT NULL", "00000000-0000-0000-0000-000000000000"),
        ("TIME(2) NOT NULL", "00:00:00.00"),
    ],
)
def test_a_default_is_stored_as_the_server_does(column: str, value: object, tmp_path: Path) -> None:
    log = ShopLog()
    log.insert(ORDERS, (1, "old"))
    log.statement(f"ALTER TABLE orders ADD COLUMN note {column}")
    landed(tmp_path, log)
    (row,) = delta_rows(tmp_path / "current/shop/orders").to_pylist()
    assert row["note"] == value


def test_a_dropped_column_of_a_history_makes_way_for_one_that_comes(tmp_path: Path) -> None:
    log = ShopLog()
    log.insert(ORDERS, (1, "old"), (2, "old"))
    log.statement("ALTER TABLE orders DROP COLUMN state")
    log.statement("ALTER TABLE orders ADD COLUMN state VARCHAR(50)")
    log.update(ORDERS, ((2, None), (2, "new")))
    lander = new_lander(tmp_path, modes={Mode.HISTORY})
    lander.land([log.file()])
    rows = delta_rows(tmp_path / "history/shop/orders").to_pylist()
    found = [(row["id"], row["state"], row["state_1"], row["is_current"]) for row in rows]
    assert sorted(found, key=repr) == [
        (1, None, "old", True),
        (2, "new", None, True),
        (2, None, "old", False),
    ]


def test_a_column_that_is_spelled_otherwise_is_the_same(tmp_path: Path) -> None:
    log = ShopLog()
    log.insert(ORDERS, (1, "a"))
    log.statement("ALTER TABLE orders CHANGE state STATE VARCHAR(50)")
    log.insert(Table("orders", ("id", "STATE")), (2, "b"))
    landed(tmp_path, log)
    assert current(tmp_path) == [(1, "a"), (2, "b")]
    changes = delta_rows(tmp_path / "changes/shop/orders").sort_by("_seq")
    assert changes.column("state").to_pylist() == ["a", "b"]


def test_a_column_that_comes_while_no_rows_come_is_there(tmp_path: Path) -> None:
    log = ShopLog()
    log.insert(ORDERS, (1, "old"))
    log.statement("ALTER TABLE shop.orders ADD COLUMN n_id INT UNSIGNED DEFAULT 7 FIRST")
    landed(tmp_path, log)
    assert current(tmp_path) == [(7, 1, "old")]


def test_columns_are_dropped_and_renamed(tmp_path: Path) -> None:
    log = ShopLog()
    log.insert(WIDER, (1, "a", "b"))
    log.statement("ALTER TABLE orders DROP COLUMN note, CHANGE state status VARCHAR(60)")
    log.insert(Table("orders", ("id", "status")), (2, "c"))
    landed(tmp_path, log)
    assert current(tmp_path) == [(1, "a"), (2, "c")]
    assert "status" in delta_rows(tmp_path / "current/shop/orders").column_names


@pytest.mark.parametrize(
    "statement, why",
    [
        ("ALTER TABLE orders ADD n_id INT DEFAULT (rand())", "an expression"),
        ("ALTER TABLE orders ADD n_id INT AS (id + 1)", "does not tell the values"),
        ("ALTER TABLE orders ADD at DATETIME DEFAULT now()", "local time"),
        ("ALTER TABLE orders TRUNCATE PARTITION p0", "which rows TRUNCATE PARTITION changes"),
    ],
)
def test_a_table_is_given_up_rather_than_wrong(statement: str, why: str, tmp_path: Path) -> None:
    log = ShopLog()
    log.insert(ORDERS, (1, "a"))
    log.statement(statement)
    log.insert(ORDERS, (2, "b"))
    report = landed(tmp_path, log).look().tables["shop.orders"]
    assert why in report.why_not
    assert not report.is_current
    assert not (tmp_path / "current/shop/orders").exists()


def test_a_table_that_was_given_up_begins_anew_when_it_is_empty(tmp_path: Path) -> None:
    log = ShopLog()
    log.insert(ORDERS, (1, "a"))
    log.statement("ALTER TABLE orders ADD n_id INT DEFAULT (rand())")
    log.statement("TRUNCATE TABLE orders")
    log.insert(ORDERS, (2, "b"))
    landed(tmp_path, log)
    assert current(tmp_path) == [(2, "b")]


def test_truncate_and_drop(tmp_path: Path) -> None:
    other = Table("items", ("id", "state"))
    log = ShopLog()
    log.insert(ORDERS, (1, "a"))
    log.insert(other, (1, "a"))
    log.statement("TRUNCATE orders")
    log.insert(ORDERS, (2, "b"))
    log.statement("DROP TABLE `items` /* generated by server */")
    landed(tmp_path, log)
    assert current(tmp_path) == [(2, "b")]
    assert not (tmp_path / "current/shop/items").exists()
    assert (tmp_path / "changes/shop/items").exists()


@pytest.mark.parametrize("drop", ["DROP", "CREATE OR REPLACE"])
def test_drop_database_drops_its_tables_only(tmp_path: Path, drop: str) -> None:
    log = ShopLog()
    log.insert(ORDERS, (1, "a"))
    log.statement(f"{drop} DATABASE other")
    log.statement("CREATE DATABASE IF NOT EXISTS shop")
    landed(tmp_path, log)
    assert current(tmp_path) == [(1, "a")]
    log.statement(f"{drop} DATABASE shop")
    new_lander(tmp_path).land([log.file()])
    assert not (tmp_path / "current/shop/orders").exists()


def test_create_or_replace_begins_anew(tmp_path: Path) -> None:
    log = ShopLog()
    log.insert(ORDERS, (1, "a"))
    log.statement("CREATE OR REPLACE TABLE orders (id INT PRIMARY KEY, state VARCHAR(50))")
    log.insert(ORDERS, (2, "b"))
    landed(tmp_path, log)
    assert current(tmp_path) == [(2, "b")]


def test_a_table_without_rows_is_there(tmp_path: Path) -> None:
    log = ShopLog()
    log.statement(
        "CREATE TABLE orders (id INT, state VARCHAR(50) NOT NULL, KEY (state), PRIMARY KEY (id))"
    )
    log.statement("CREATE TABLE copies LIKE orders")
    landed(tmp_path, log)
    for name in ("orders", "copies"):
        table = delta_rows(tmp_path / "current/shop" / name)
        assert table.column_names == ["id", "state", "_gtid", "_seq"]
        assert table.num_rows == 0
    log.insert(ORDERS, (1, "a"))
    new_lander(tmp_path).land([log.file()])
    assert current(tmp_path) == [(1, "a")]


def test_create_table_names_the_columns_that_the_log_only_numbers(tmp_path: Path) -> None:
    land_all(tmp_path, [fixture_set("md1011_rowimage_full").binlogs])
    assert delta_rows(tmp_path / "current/shop/cpk").column_names == [
        *("a", "b", "c", "d", "_gtid", "_seq"),
    ]


def test_without_names_in_the_log_columns_are_told_by_their_place(tmp_path: Path) -> None:
    log = ShopLog()
    log.statement("CREATE TABLE orders (id INT, state VARCHAR(50), n_id INT)")
    log.insert(Table("orders", ("id", "state", "n_id"), key=()).unnamed(), (1, "a", 5))
    log.statement("ALTER TABLE orders MODIFY n_id INT FIRST, ADD m_id INT DEFAULT 7 AFTER n_id")
    log.insert(Table("orders", ("n_id", "m_id", "id", "state"), key=()).unnamed(), (6, 8, 2, "b"))
    landed(tmp_path, log)
    rows = delta_rows(tmp_path / "current/shop/orders").to_pylist()
    found = sorted((row["id"], row["state"], row["n_id"], row["m_id"]) for row in rows)
    assert found == [(1, "a", 5, 7), (2, "b", 6, 8)]


def test_a_renamed_table_keeps_its_rows(tmp_path: Path) -> None:
    log = ShopLog()
    log.insert(ORDERS, (1, "a"))
    log.statement("RENAME TABLE orders TO archive.`old orders`")
    log.statement("ALTER TABLE archive.`old orders` RENAME TO shop.sold, ADD COLUMN note INT")
    log.insert(Table("sold", ("id", "state", "n_id")), (2, "b", 3))
    progress = landed(tmp_path, log).look()
    assert progress.tables["shop.sold"].why_not.startswith("its columns changed")
    assert not (tmp_path / "current/shop/orders").exists()


def test_swapped_names(tmp_path: Path) -> None:
    log = ShopLog()
    log.insert(ORDERS, (1, "orders"))
    log.insert(Table("items", ("id", "state")), (2, "items"))
    log.statement("RENAME TABLE orders TO tmp, items TO orders, tmp TO items")
    landed(tmp_path, log)
    assert current(tmp_path) == [(2, "items")]
    assert current(tmp_path, "items") == [(1, "orders")]


def test_a_rename_across_the_edge_of_what_is_landed(tmp_path: Path) -> None:
    log = ShopLog()
    log.insert(ORDERS, (1, "a"))
    log.statement("RENAME TABLE orders TO outside")
    log.statement("RENAME TABLE stranger TO items")
    log.insert(Table("items", ("id", "state")), (1, "b"))
    lander = new_lander(tmp_path, scope=parse_tables(["shop.orders", "shop.items"]))
    lander.land([log.file()])
    progress = lander.look()
    assert not list((tmp_path / "current").glob("shop/*"))
    assert "shop.stranger" in progress.tables["shop.items"].why_not


def test_temporary_tables_are_none_of_ours(tmp_path: Path) -> None:
    log = ShopLog()
    log.insert(ORDERS, (1, "a"))
    log.statement("DROP TEMPORARY TABLE IF EXISTS `orders` /* generated by server */")
    landed(tmp_path, log)
    assert current(tmp_path) == [(1, "a")]


def test_rows_changed_by_a_statement_are_the_trouble_of_its_tables(tmp_path: Path) -> None:
    items = Table("items", ("id", "state"))
    log = ShopLog()
    for name in ("orders", "items"):
        log.statement(f"CREATE TABLE {name} (id INT PRIMARY KEY, state VARCHAR(50))")
    log.insert(ORDERS, (1, "a"))
    log.insert(items, (1, "a"))
    log.statement("DELETE FROM orders")
    log.insert(ORDERS, (2, "b"))
    log.insert(items, (2, "b"))
    progress = landed(tmp_path, log).look()
    assert progress.given_up == ["shop.orders"]
    why = progress.tables["shop.orders"].why_not
    assert why.startswith("rows are changed by a statement, of which the log has no row images: ")
    assert re.search(r": DELETE FROM orders \(shop\.\d+:\d+\)$", why)
    assert current(tmp_path, "items") == [(1, "a"), (2, "b")]
    assert delta_rows(tmp_path / "changes/shop/orders").num_rows == 2


@pytest.mark.parametrize(
    "statement, why",
    [
        ("DELETE FROM a_view", "rows are changed by a statement"),  # of which table?
        ("DELETE FROM orders", "rows are changed by a statement"),  # it has a trigger
        ("INSERT INTO items SELECT shop.f(1), 'x'", "rows are changed by a statement"),
        ("ALTER TABLE items FROBNICATE 'x'", "is not understood, at"),
    ],
)
def test_what_may_be_about_any_table_is_the_trouble_of_all(
    statement: str, why: str, tmp_path: Path
) -> None:
    log = ShopLog()
    log.statement("CREATE TABLE orders (id INT PRIMARY KEY, state VARCHAR(50))")
    log.statement("CREATE TRIGGER tr AFTER DELETE ON orders FOR EACH ROW SET @x = 1")
    log.insert(ORDERS, (1, "a"))
    log.insert(Table("items", ("id", "state")), (1, "a"))
    log.statement(statement)
    progress = landed(tmp_path, log).look()
    assert progress.given_up == ["shop.items", "shop.orders"]
    assert why in progress.tables["shop.orders"].why_not


def test_a_table_whose_beginning_the_log_lacks_says_so(tmp_path: Path) -> None:
    items = Table("items", ("id", "state"))
    log = ShopLog()
    log.statement("CREATE TABLE items (id INT PRIMARY KEY, state VARCHAR(50))")
    log.insert(items, (1, "a"))
    log.update(ORDERS, ((1, "a"), (1, "b")))
    tables = landed(tmp_path, log).look().tables
    assert not tables["shop.items"].lacks
    assert tables["shop.orders"].lacks.startswith("rows from before the log's beginning")
    # It goes on to, until the table is empty once.
    log.statement("RENAME TABLE orders TO sold")
    tables = landed(tmp_path, log).look().tables
    assert tables["shop.sold"].lacks
    log.statement("TRUNCATE TABLE sold")
    assert not landed(tmp_path, log).look().tables["shop.sold"].lacks


def test_an_event_group_is_passed_over_by_every_table(tmp_path: Path) -> None:
    items = Table("items", ("id", "state"))
    log = ShopLog()
    log.statement("CREATE TABLE orders (id INT PRIMARY KEY, state VARCHAR(50))")
    log.statement("CREATE TABLE items (id INT PRIMARY KEY, state VARCHAR(50))")
    log.insert(ORDERS, (1, "a"))
    log.transaction((ORDERS, WriteRowsV1Event, [(2, "b")]), (items, WriteRowsV1Event, [(2, "b")]))
    log.statement("DELETE FROM orders")
    log.insert(items, (3, "c"))
    file = tmp_path / "shop.000001"
    file.write_bytes(log.file()[1])
    settings = LandingSettings(skip=frozenset({"0-1-4", "0-1-5"}))
    report = land(str(file), str(tmp_path / "lake"), settings)
    assert current(tmp_path / "lake") == [(1, "a")]
    assert current(tmp_path / "lake", "items") == [(3, "c")]
    assert delta_rows(tmp_path / "lake/changes/shop/orders").num_rows == 1
    assert report.notes == (
        "event group 0-1-4 was passed over, as asked, with rows of shop.items, shop.orders",
        "event group 0-1-5 was passed over, as asked",
    )
    assert not report.given_up
    with pytest.raises(ConfigError, match="'0-1' is no GTID"):
        LandingSettings(skip=frozenset({"0-1"}))


@pytest.mark.parametrize("column", ["_op", "_SEQ", "_gone", "_pos"])
def test_a_column_with_a_name_of_ours_is_the_trouble_of_its_table(
    column: str, tmp_path: Path
) -> None:
    log = ShopLog()
    log.insert(ORDERS, (1, "a"))
    log.insert(Table("odd", ("id", column)), (1, "x"))
    log.insert(ORDERS, (2, "b"))
    progress = landed(tmp_path, log).look()
    assert current(tmp_path) == [(1, "a"), (2, "b")]
    assert f"its column {column} has the name" in progress.tables["shop.odd"].why_not
    assert progress.given_up == ["shop.odd"]
    assert not list(tmp_path.glob("*/shop/odd"))


def test_tables_named_like_the_files_of_a_format(tmp_path: Path) -> None:
    log = ShopLog()
    log.insert(Table("_delta_log", ("id", "state")), (1, "a"))
    log.insert(ORDERS, (1, "a"))
    lander = landed(tmp_path, log)
    names = [table.plain for table in lander.kept[Mode.CURRENT].names()]
    assert sorted(names) == ["shop._delta_log", "shop.orders"]
    assert current(tmp_path) == [(1, "a")]


def test_a_column_type_that_grows(tmp_path: Path) -> None:
    log = ShopLog()
    log.insert(Table("orders", ("id", "n_id")), (1, 5))
    log.statement("ALTER TABLE orders MODIFY n_id VARCHAR(50)")
    log.insert(Table("orders", ("id", "n")), (2, "six"))
    progress = landed(tmp_path, log).look()
    # What ZEROFILL would have made of the number is not known without its definition.
    assert "its definition before is not in the log" in progress.tables["shop.orders"].why_not
    changes = delta_rows(tmp_path / "changes/shop/orders").sort_by("_seq").to_pylist()
    assert [(row["id"], row["n_id"], row["n"]) for row in changes] == [
        (1, 5, None),
        (2, None, "six"),
    ]


def test_deletes_need_no_more_of_a_row_than_its_key(tmp_path: Path) -> None:
    log = ShopLog()
    log.insert(ORDERS, (1, "a"), (2, "b"))
    log.bodies += [
        GtidEvent(sequence=9, domain_id=0, flags=GtidFlag.TRANSACTIONAL),
        ORDERS.table_map(),
        build.rows(2, ORDERS.image((1,)), kind=DeleteRowsV1Event, present=0b01),
        XidEvent(xid=9),
    ]
    landed(tmp_path, log)
    assert current(tmp_path) == [(2, "b")]


def test_rows_that_come_behind_a_statement_that_they_precede_end_the_landing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = [ShopLog(), ShopLog()]
    logs[0].insert(ORDERS, (1, "new"))
    logs[1].insert(ORDERS, (2, "new"))
    logs[1].statement("TRUNCATE TABLE shop.orders")
    logs[1].insert(ORDERS, (3, "new"))
    files = [log.file(f"shop.00000{number}") for number, log in enumerate(logs, 1)]
    monkeypatch.setattr(tasks, "may_have_steps", lambda _: False)
    with pytest.raises(StoreError, match=r"they are not landed \(shop\.orders\)"):
        land_all(tmp_path, [[file] for file in files])
