"""Partitions in a scope that are exchanged with tables outside: replicas get the rows of these tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.live.provision.private_server import PrivateServer
from tests.replay import binlane
from tests.schema_changes import ORDERS, Shop, Writers, shop
from tests.serve_process import wait_until
from tests.servers import execute

_FLAVORS = pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
_HISTORY = "its history is read from the source's log"
_ROWS = "its rows, of"
_TAKEN = "a partition is exchanged with a table outside of the scope"
_PARTS = (
    "ALTER TABLE shop.orders PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (1000), "
    "PARTITION p1 VALUES LESS THAN (2000), PARTITION p2 VALUES LESS THAN MAXVALUE)"
)
_LIKE = (
    "CREATE TABLE shop.archive LIKE shop.orders",
    "ALTER TABLE shop.archive REMOVE PARTITIONING",
)
_EXCHANGE = "ALTER TABLE shop.orders EXCHANGE PARTITION p0 WITH TABLE shop.archive"


def _fill(source: PrivateServer, table: str, first: int, last: int) -> None:
    """Give a table rows of a partition, changed in more than one transaction."""
    execute(
        source,
        f"INSERT INTO {table} SELECT id, CONCAT('old ', id), 5, REPEAT('ö', id % 50) "
        f"FROM shop.orders WHERE id BETWEEN {first} AND {last}",
        f"UPDATE {table} SET n = n + id WHERE id % 3 = 0",
        f"DELETE FROM {table} WHERE id % 5 = 0",
    )


def _exchange(source: PrivateServer) -> None:
    """Exchange a partition with a table outside that was made like the table in scope."""
    execute(source, *_LIKE)
    _fill(source, "shop.archive", 1, 999)
    execute(source, _EXCHANGE)


def _verify(orders: Shop) -> None:
    """See that the binlog's files are whole, and name no table outside."""
    folder = orders.serve.data_dir / "binlogs" / "orders"
    assert binlane("verify", str(folder)) == b""
    texts = b"".join(path.read_bytes() for path in folder.glob("orders.0*"))
    assert b"binlane_coming_1" in texts
    assert b"archive" not in texts


@pytest.mark.rule("000:table-comes-in")
@_FLAVORS
def test_a_partition_comes_with_the_rows_of_the_table(tmp_path: Path, flavor: str) -> None:
    with shop(tmp_path, flavor) as orders:
        execute(orders.source, _PARTS)
        with Writers(orders.source.port):
            _exchange(orders.source)
            execute(orders.source, "DROP TABLE shop.archive", ORDERS.replace("orders", "archive"))
            # Without validation, which MySQL has, it holds rows that are none of the partition's.
            _fill(orders.source, "shop.archive", 900, 1500)
            if flavor == "mysql":
                text = "EXCHANGE PARTITION p1 WITH TABLE archive WITHOUT VALIDATION"
            else:
                execute(orders.source, "DELETE FROM shop.archive WHERE id < 1000")
                text = "EXCHANGE PARTITION p1 WITH TABLE archive"
            execute(orders.source, "USE shop", f"ALTER TABLE orders {text}")
        orders.check_equal()
        assert orders.incidents() == ()
        assert orders.serve.log.count("a partition of `shop`.`orders` comes in at") == 4
        _verify(orders)


@pytest.mark.parametrize(
    ("flavor", "words"),
    [
        ("mariadb", _HISTORY),
        ("mysql", _ROWS),
        pytest.param("mysql", _HISTORY, marks=pytest.mark.slow),
        pytest.param("mariadb", _ROWS, marks=pytest.mark.slow),
    ],
)
def test_a_partition_is_as_before_where_both_are_killed_meanwhile(
    tmp_path: Path, flavor: str, words: str
) -> None:
    with shop(tmp_path, flavor) as orders:
        execute(orders.source, _PARTS)
        with Writers(orders.source.port):
            _exchange(orders.source)
            wait_until(lambda: words in orders.serve.log)
            # First: a MariaDB that is killed between a statement of DDL and its GTID runs it again.
            orders.replica.kill()
            orders.serve.kill()
            orders.replica.restart()
            orders.serve.start()
        orders.check_equal()
        assert orders.incidents() == ()
        _verify(orders)


@_FLAVORS
def test_a_table_that_has_a_partitions_rows_is_an_incident(tmp_path: Path, flavor: str) -> None:
    with shop(tmp_path, flavor) as orders:
        execute(orders.source, _PARTS)
        _exchange(orders.source)
        orders.check_equal()
        # Its history does not tell the rows that it has by now.
        execute(orders.source, _EXCHANGE)
        wait_until(lambda: len(orders.incidents()) == 1)
        assert _TAKEN in str(orders.incidents())


def test_a_table_that_was_made_before_the_binlog_is_an_incident(tmp_path: Path) -> None:
    with shop(tmp_path, "mysql") as orders:
        execute(orders.source, _PARTS, *_LIKE)
        orders.serve.execute_as_root("CREATE BINLOG 'later' LOG(shop.orders)")
        _fill(orders.source, "shop.archive", 1, 999)
        execute(orders.source, _EXCHANGE)
        orders.check_equal()
        told = "SHOW BINLOG INCIDENTS FOR 'later'"
        wait_until(lambda: len(orders.serve.execute_as_root(told)) == 1)
        assert orders.incidents() == ()
