"""Tables that come into a scope with their rows: several at once, for replicas of all kinds, for readers."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pymysql
import pytest
from deltalake import DeltaTable

from tests.replay import binlane
from tests.schema_changes import ORDERS, Shop, Writers, shop, swap
from tests.serve_process import wait_until
from tests.servers import execute
from tests.with_rows import TABLES, RowsStage

_FLAVORS = pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
_PARALLEL = (
    "STOP SLAVE",
    "SET GLOBAL gtid_strict_mode = 1",
    "SET GLOBAL slave_parallel_threads = 4",
    "SET GLOBAL slave_parallel_mode = 'optimistic'",
    "START SLAVE",
)


@contextmanager
def _held_back(orders: Shop) -> Iterator[None]:
    """Have the replica read the log, and apply all of it at once at the end."""
    execute(orders.replica, "STOP SLAVE SQL_THREAD")
    yield
    ((position,),) = execute(orders.source, "SELECT @@gtid_binlog_pos")
    wait_until(lambda: position in str(orders.slave_status()["Gtid_IO_Pos"]))
    execute(orders.replica, "START SLAVE SQL_THREAD")


@pytest.mark.parametrize("logging_mode", ["ROW", pytest.param("MIXED", marks=pytest.mark.slow)])
def test_a_parallel_replica_brings_in_nothing_that_is_not_whole(
    tmp_path: Path, logging_mode: str
) -> None:
    with shop(tmp_path, "mariadb", logging_mode) as orders:
        execute(orders.replica, *_PARALLEL)
        for number in range(3):
            with _held_back(orders):
                execute(orders.source, f"ALTER TABLE shop.orders ADD x{number} INT")
                swap(orders.source, "shop._orders_gho", "shop._orders_del", altered="FORCE")
                execute(orders.source, "UPDATE shop.orders SET n = n + 1")
            orders.check_equal()


@_FLAVORS
def test_a_replica_that_has_the_statement_is_not_sent_the_rows(tmp_path: Path, flavor: str) -> None:
    with shop(tmp_path, flavor) as orders:
        execute(orders.replica, "STOP SLAVE" if flavor == "mariadb" else "STOP REPLICA")
        swap(orders.source, "shop._orders_gho", "shop._orders_del")
        orders.serve.wait_until_complete("orders")
        wait_until(lambda: "with its rows, of" in orders.serve.log)
        orders.make_anew()
        execute(orders.source, "UPDATE shop.orders SET n = 5 WHERE id < 10")
        orders.check_equal()
        if flavor == "mariadb":
            ((position,),) = execute(orders.replica, "SELECT @@gtid_binlog_pos")
            assert "620000-" not in position


@_FLAVORS
def test_one_rename_brings_in_several_tables_and_moves_others(tmp_path: Path, flavor: str) -> None:
    with shop(tmp_path, flavor, clauses="LOG(shop.orders, shop.items, shop.notes)") as orders:
        execute(orders.source, *(ORDERS.replace("orders", name) for name in ("items", "a", "b")))
        with Writers(orders.source.port):
            execute(
                orders.source,
                "INSERT INTO shop.items (v) VALUES ('before')",
                "INSERT INTO shop.a (v, n) SELECT v, id FROM shop.orders WHERE id < 700",
                "ALTER TABLE shop.b ADD y INT DEFAULT 3",
                "INSERT INTO shop.b (v, n) SELECT v, id FROM shop.orders WHERE id > 700",
                "DELETE FROM shop.b WHERE id % 7 = 0",
                "RENAME TABLE shop.items TO shop.notes, shop.a TO shop.items, shop.orders TO shop.o,"
                " shop.b TO shop.orders, shop.o TO shop.b",
                "DROP TABLE shop.b",
            )
        orders.check_equal("orders", "items", "notes")
        assert orders.incidents() == ()


def test_a_table_becomes_a_partition_of_mariadb(tmp_path: Path) -> None:
    with shop(tmp_path, "mariadb") as orders:
        execute(
            orders.source,
            "ALTER TABLE shop.orders PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (9000))",
            "CREATE TABLE shop.archive LIKE shop.orders",
            "ALTER TABLE shop.archive REMOVE PARTITIONING",
            "INSERT INTO shop.archive SELECT id + 9000, v, n, note FROM shop.orders",
            "ALTER TABLE shop.orders CONVERT TABLE shop.archive TO PARTITION p1"
            " VALUES LESS THAN (90000)",
            "UPDATE shop.orders SET n = n + 1 WHERE id > 9000",
        )
        orders.check_equal()
        assert orders.incidents() == ()


@_FLAVORS
def test_readers_of_the_log_have_the_table_as_the_source_has_it(
    tmp_path: Path, flavor: str
) -> None:
    with shop(tmp_path, flavor) as orders:
        with Writers(orders.source.port):
            swap(orders.source, "shop._orders_gho", "shop._orders_del")
        orders.check_equal()
        folder = orders.serve.data_dir / "binlogs" / "orders"
        assert binlane("verify", str(folder)) == b""
        files = sorted(map(str, folder.glob("orders.0*")))
        assert binlane("cat", *files)
        binlane("land", *files, "--into", str(tmp_path / "lake"))
        landed = DeltaTable(str(tmp_path / "lake/current/shop/orders")).to_pyarrow_table()
        rows = {
            row["id"]: (row["v"], row["n"], row["note"], row["extra"]) for row in landed.to_pylist()
        }
        there = execute(orders.source, "SELECT id, v, n, note, extra FROM shop.orders")
        assert rows == {key: tuple(values) for key, *values in there}


_NOT_COMPLETE = 1205
_BLOCK = 1 << 24
"""GTIDs of rows that one try has, as the store gives them."""


def _bring_in_large(orders: Shop) -> None:
    """Have a table come in whose 8 MB of rows are one transaction, and need several pieces."""
    columns = "(v, n, note)"
    execute(
        orders.source,
        ORDERS.replace("orders", "large"),
        f"INSERT INTO shop.large {columns} VALUES ('a', 1, REPEAT('n', 2000))",
        *[f"INSERT INTO shop.large {columns} SELECT v, n, note FROM shop.large"] * 12,
        ORDERS.replace("orders", "larger"),
        "INSERT INTO shop.larger SELECT * FROM shop.large",
        "RENAME TABLE shop.orders TO shop.gone, shop.larger TO shop.orders",
        "DROP TABLE shop.gone, shop.large",
    )


def _is_done(orders: Shop, statement: str) -> bool:
    """Run a statement; False if the binlog is behind the source for longer than it waits."""
    try:
        orders.serve.execute_as_root(statement)
    except pymysql.OperationalError as error:
        if error.args[0] != _NOT_COMPLETE:
            raise
        return False
    return True


def _tries(orders: Shop) -> set[int]:
    """Numbers of the stretches of rows in the binlog, of which some may not be whole."""
    if orders.flavor == "mysql":
        ((source,),) = execute(orders.source, "SELECT @@server_uuid")
        own = [gtid for gtid in orders.serve.gtids("orders") if not gtid.startswith(source)]
    else:
        own = [gtid for gtid in orders.serve.gtids("orders") if gtid.startswith("620000-")]
    return {(int(re.split("[-:]", gtid)[-1]) - 1) // _BLOCK for gtid in own}


@_FLAVORS
def test_rows_are_placed_in_pieces_whatever_comes_in_between(tmp_path: Path, flavor: str) -> None:
    with shop(tmp_path, flavor) as orders:
        serve, run = orders.serve, orders.serve.execute_as_root
        statements = (
            ("FLUSH BINARY LOGS 'orders'",),
            ("STOP BINLOG 'orders'", "START BINLOG 'orders'"),
            ("ALTER BINLOG 'orders' ADD LOG(shop.more)", "ALTER BINLOG 'orders' FORMAT='MIXED'"),
        )
        for number, delay_s in enumerate((0.05, 0.15, 0.3, 0.0, 0.0, 0.0)):
            seen = serve.log.count("with its rows, of")
            with Writers(orders.source.port):
                _bring_in_large(orders)
                wait_until(lambda: serve.log.count("with its rows, of") > seen)  # noqa: B023
                if delay_s:
                    time.sleep(delay_s)
                    serve.kill()
                    serve.start()
                else:
                    for each in statements[number - 3]:
                        wait_until(lambda: _is_done(orders, each))  # noqa: B023
            orders.check_equal()
        assert orders.incidents() == ()
        assert len(_tries(orders)) > 6, "no process was killed between two pieces"
        assert binlane("verify", str(serve.data_dir / "binlogs" / "orders")) == b""
        with Writers(orders.source.port):
            _bring_in_large(orders)
            run("ALTER BINLOG 'orders' COMPACT")
            wait_until(lambda: "has its tables' rows" in serve.log)
        wait_until(lambda: orders.tables(orders.replica) == orders.tables(orders.source))
        assert orders.incidents() == ()


_UNTOLD = "does not tell its rows"
_CHILD = (
    "CREATE TABLE shop.orders{} (id INT PRIMARY KEY, customer INT, v VARCHAR(40), FOREIGN KEY"
    " (customer) REFERENCES shop.customers (id) ON DELETE CASCADE ON UPDATE SET NULL)"
)


def _swap_child(orders: Shop, *meanwhile: str) -> None:
    """Change the schema of a child of `shop.customers`, with other statements in between."""
    execute(
        orders.source,
        _CHILD.format("_new").replace("v VARCHAR(40)", "v VARCHAR(400), x INT DEFAULT 5"),
        "INSERT INTO shop.orders_new (id, customer, v) SELECT id, customer, v FROM shop.orders",
        *meanwhile,
        "RENAME TABLE shop.orders TO shop.orders_old, shop.orders_new TO shop.orders",
        "DROP TABLE shop.orders_old",
        "UPDATE shop.orders SET v = CONCAT(v, '!') WHERE id = 1",
    )


@_FLAVORS
def test_a_child_of_acting_keys_comes_in_also_where_they_have_acted(
    tmp_path: Path, flavor: str
) -> None:
    with shop(tmp_path, flavor, clauses="LOG(shop.orders, shop.customers)") as orders:
        execute(
            orders.source,
            "DROP TABLE shop.orders",
            "CREATE TABLE shop.customers (id INT PRIMARY KEY, seen INT)",
            "INSERT INTO shop.customers (id) VALUES (1), (2), (3)",
            _CHILD.format(""),
            "INSERT INTO shop.orders VALUES (1, 1, 'a'), (2, 2, 'b'), (3, NULL, 'c'), (4, 2, 'd')",
        )
        others = "UPDATE shop.customers SET seen = 5", "INSERT INTO shop.customers (id) VALUES (9)"
        _swap_child(orders, *others)
        orders.check_equal("orders", "customers")
        _swap_child(orders, *others[:1], "DELETE FROM shop.customers WHERE id = 2")
        orders.check_equal("orders", "customers")
        assert orders.incidents() == ()
        # MySQL's log has what its keys have done; of MariaDB's the history does not tell it.
        told = orders.serve.log.split(_UNTOLD)
        assert ["foreign key" in text for text in told[1:]] == [True] * (flavor == "mariadb")


_KEYED = (
    "CREATE TABLE shop.{} (id INT PRIMARY KEY, customer INT, CHECK (customer > 0), FOREIGN KEY"
    " (customer) REFERENCES shop.customers (id))"
)
_PARENTS = (
    "CREATE TABLE shop.customers (id INT PRIMARY KEY)",
    "INSERT INTO shop.customers VALUES (1), (2)",
)


@_FLAVORS
def test_constraints_of_a_table_that_is_read_from_the_source_keep_their_names(
    tmp_path: Path, flavor: str
) -> None:
    with shop(tmp_path, flavor, clauses="LOG(shop.orders, shop.customers)") as orders:
        execute(
            orders.source,
            *("DROP TABLE shop.orders", *_PARENTS, _KEYED.format("orders"), _KEYED.format("a")),
            *("INSERT INTO shop.a VALUES (1, 1), (2, 2)", "ALTER TABLE shop.a ADD x INT"),
            "RENAME TABLE shop.orders TO shop.b, shop.a TO shop.orders",
            "INSERT INTO shop.customers VALUES (3)",
        )
        wait_until(lambda: "with its rows, of" in orders.serve.log)
        execute(orders.source, "INSERT INTO shop.orders VALUES (3, 3, 3)")
        orders.check_equal("orders", "customers")
        execute(orders.source, "ALTER TABLE shop.orders DROP FOREIGN KEY orders_ibfk_1")
        orders.check_equal("orders", "customers")
        assert orders.incidents() == ()
        assert _UNTOLD in orders.serve.log


_NAMED = (
    "CREATE TABLE {}.orders (id INT PRIMARY KEY, customer INT, CONSTRAINT whose FOREIGN KEY (customer)"
    " REFERENCES shop.customers (id), CONSTRAINT positive CHECK (customer > 0)) DEFAULT CHARSET=utf8mb4"
)


@_FLAVORS
def test_a_table_of_another_database_has_the_constraints_of_the_one_that_leaves(
    tmp_path: Path, flavor: str
) -> None:
    with shop(tmp_path, flavor, clauses="LOG(shop.orders, shop.customers)") as orders:
        execute(
            orders.source,
            *("DROP TABLE shop.orders", *_PARENTS, _NAMED.format("shop")),
            *("CREATE DATABASE stage", "CREATE DATABASE trash"),
        )
        changes = "", "ALTER TABLE stage.orders ADD x INT DEFAULT 5"  # the second hides the history
        for number, change in enumerate(changes):
            execute(
                orders.source,
                *(_NAMED.format("stage"), "INSERT INTO stage.orders VALUES (1, 1), (2, 2)"),
                *([change] if change else []),
                f"RENAME TABLE shop.orders TO trash.o{number}, stage.orders TO shop.orders",
                f"DROP TABLE trash.o{number}",
                "UPDATE shop.orders SET customer = 2 WHERE id = 1",
            )
            orders.check_equal("orders", "customers")
        execute(orders.source, "ALTER TABLE shop.orders DROP FOREIGN KEY whose")
        orders.check_equal("orders", "customers")
        assert orders.incidents() == ()
        assert orders.serve.log.count(_UNTOLD) == 1


@_FLAVORS
def test_a_table_that_is_read_after_its_parent_has_moved_is_an_incident(
    tmp_path: Path, flavor: str
) -> None:
    with shop(tmp_path, flavor, clauses="LOG(shop.orders, shop.customers)") as orders:
        execute(
            orders.source,
            *("DROP TABLE shop.orders", *_PARENTS, _KEYED.format("a")),
            *("INSERT INTO shop.a VALUES (1, 1), (2, 2)", "ALTER TABLE shop.a ADD x INT"),
            "RENAME TABLE shop.a TO shop.orders, shop.customers TO shop.people",
        )
        wait_until(lambda: len(orders.incidents()) == 1)
        assert _UNTOLD in orders.serve.log


def _swap_all(stage: RowsStage, number: int) -> None:
    """Change the schema of two tables online, swap both in at once, and change what nobody has had."""
    execute(
        stage.source,
        *("CREATE TABLE shop.o LIKE shop.orders", "ALTER TABLE shop.o MODIFY note LONGTEXT"),
        *("CREATE TABLE shop.i LIKE shop.items", "ALTER TABLE shop.i ADD KEY (kind)"),
        *(
            "INSERT INTO shop.o SELECT * FROM shop.orders",
            "INSERT INTO shop.i SELECT * FROM shop.items",
        ),
        "RENAME TABLE shop.orders TO shop.x, shop.o TO shop.orders, shop.items TO shop.y,"
        " shop.i TO shop.items",
        *("DROP TABLE shop.x, shop.y", f"DELETE FROM shop.orders WHERE id % 9 = {number}"),
    )


@_FLAVORS
def test_gtids_grow_beside_those_of_other_rows(tmp_path: Path, flavor: str) -> None:
    """In one binlog: rows that it begins with, tables that come in, a new beginning, and these again."""
    with RowsStage(tmp_path, flavor) as stage:
        stage.fill_tables(1500)
        tables = ", ".join(f"shop.{name}" for name in TABLES)
        stage.serve.execute_as_root(f"CREATE BINLOG 'orders' LOG({tables}) WITH ROWS")
        stage.wait_until_filled()
        first = stage.replica()
        stage.follow(first)
        _swap_all(stage, 1)
        assert stage.differences(first) == ""
        stage.stop(first)
        stage.serve.execute_as_root("ALTER BINLOG 'orders' COMPACT")
        stage.wait_until_filled()
        stage.go_on(first)
        stage.serve.kill()
        stage.serve.start()
        _swap_all(stage, 2)
        assert stage.differences(first) == ""
        stage.serve.execute_as_root("PURGE BINARY LOGS FOR 'orders' BEFORE NOW()")
        fresh = stage.replica()
        stage.serve.execute_as_root("ALTER BINLOG 'orders' COMPACT")
        stage.wait_until_filled()
        stage.follow(fresh)
        _swap_all(stage, 3)
        assert (stage.differences(first), stage.differences(fresh)) == ("", "")
        assert stage.serve.execute_as_root("SHOW BINLOG INCIDENTS FOR 'orders'") == ()
