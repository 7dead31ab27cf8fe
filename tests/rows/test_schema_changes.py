"""Online schema changes beside binlogs of single tables: the table that is renamed in comes with its rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pymysql
import pytest

from binlane.binlogs.routing.statement_verdicts import CAME_IN
from tests.replay import binlane
from tests.schema_changes import ALTERED, ORDERS, Shop, Writers, shop, swap
from tests.serve_process import wait_until
from tests.servers import execute, purge_before

_READ = "its history is read from the source's log"

_SLOW = pytest.mark.slow
# A tool beside the port leaves rows to any binlog; one that works through the port is judged.
_OF_ROWS = ["ROW", pytest.param("MIXED", marks=_SLOW), pytest.param("STATEMENT", marks=_SLOW)]
_OF_TEXTS = ["STATEMENT", pytest.param("MIXED", marks=_SLOW), pytest.param("ROW", marks=_SLOW)]


def _verify(orders: Shop) -> None:
    """See that the binlog's files are whole."""
    assert binlane("verify", str(orders.serve.data_dir / "binlogs" / "orders")) == b""


@pytest.mark.rule("000:table-comes-in")
@pytest.mark.parametrize("logging_mode", _OF_ROWS)
@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_a_table_that_is_swapped_in_comes_with_its_rows(
    tmp_path: Path, flavor: str, logging_mode: str
) -> None:
    with shop(tmp_path, flavor, logging_mode) as orders:
        with Writers(orders.source.port) as writers:
            swap(orders.source, "shop._orders_gho", "shop._orders_del")
            swap(orders.source, "shop._orders_new", "shop._orders_old", like=False)
        assert writers.done
        orders.check_equal()
        assert orders.incidents() == ()
        assert orders.serve.log.count("comes in at") == 4
        _verify(orders)


@pytest.mark.parametrize("logging_mode", _OF_TEXTS)
@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_a_swap_through_the_port_is_as_one_at_the_source(
    tmp_path: Path, flavor: str, logging_mode: str
) -> None:
    with shop(tmp_path, flavor, logging_mode) as orders:
        port = orders.serve.port
        with Writers(port, count=4) as writers:
            swap(orders.source, "shop._orders_gho", "shop._orders_del", port=port)
            swap(orders.source, "shop._orders_new", "shop._orders_old", like=False, port=port)
        assert writers.done
        assert not any("11314" in error for error in writers.errors)
        orders.check_equal()
        assert orders.incidents() == ()
        assert orders.serve.log.count("comes in at") == 4
        _verify(orders)


_TRIGGER = (
    "CREATE TRIGGER shop.pt_osc_shop_orders_upd AFTER UPDATE ON shop.orders FOR EACH ROW BEGIN "
    "DELETE IGNORE FROM shop._orders_new WHERE !(OLD.id <=> NEW.id) AND shop._orders_new.id <=> "
    "OLD.id; REPLACE INTO shop._orders_new (id, v) VALUES (NEW.id, NEW.v); END"
)


def _explained(orders: Shop, statement: str) -> tuple[Any, ...]:
    """Logged_as and Verdict of EXPLAIN BINLOG."""
    ((_, *told),) = orders.serve.execute_as_root(f"EXPLAIN BINLOG {statement}")
    return tuple(told[:2])


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_what_is_explained_of_a_tools_statements(tmp_path: Path, flavor: str) -> None:
    with shop(tmp_path, flavor, "STATEMENT") as orders:
        run = orders.serve.execute_as_root
        update = "UPDATE shop.orders SET v = 'b' WHERE id = 1"
        assert _explained(orders, update) == ("STATEMENT", "SAFE")
        run(ORDERS.replace("shop.orders", "shop._orders_new"))
        assert _explained(orders, _TRIGGER) == ("NONE", "SAFE")
        run(_TRIGGER)
        assert _explained(orders, update) == ("ROW", "SAFE")
        rename = "RENAME TABLE shop.orders TO shop._orders_old, shop._orders_new TO shop.orders"
        assert _explained(orders, rename) == ("STATEMENT", "SAFE")
        other = rename.replace("_orders_old", "elsewhere")
        assert _explained(orders, other) == ("NONE", "REFUSED")
        with pytest.raises(pymysql.Error, match="11314"):
            run(other)
        with pytest.raises(pymysql.Error, match="11314"):
            run(_TRIGGER.replace("pt_osc_shop_orders_upd", "an_ordinary_one"))
        run(update)
        orders.settle()
        assert orders.tables(orders.replica)["rows"] == orders.tables(orders.source)["rows"]


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_all_is_as_before_where_serve_is_killed_meanwhile(tmp_path: Path, flavor: str) -> None:
    with shop(tmp_path, flavor) as orders:
        for words in (_READ, "with its rows, of"):
            seen = orders.serve.log.count(words)
            with Writers(orders.source.port):
                swap(orders.source, "shop._orders_gho", "shop._orders_del", like=False)
                wait_until(lambda: orders.serve.log.count(words) > seen)  # noqa: B023
                orders.serve.kill()
                orders.serve.start()
            orders.check_equal()
        assert orders.incidents() == ()
        _verify(orders)


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_a_replica_that_is_killed_meanwhile_is_equal_afterwards(
    tmp_path: Path, flavor: str
) -> None:
    with shop(tmp_path, flavor) as orders:
        with Writers(orders.source.port):
            swap(orders.source, "shop._orders_gho", "shop._orders_del")
            wait_until(lambda: "with its rows, of" in orders.serve.log)
            orders.replica.kill()
            orders.replica.restart()
        orders.check_equal()


_UNTOLD = "its history does not tell its rows, so that they are read from the source"


def test_rows_that_no_log_has_are_read_from_the_source(tmp_path: Path) -> None:
    with shop(tmp_path, "mariadb") as orders:
        execute(orders.source, "CREATE TABLE shop.a (id INT)", "INSERT INTO shop.a VALUES (1), (1)")
        execute(orders.source, "DROP TABLE shop.orders")
        orders.serve.wait_until_complete("orders")
        execute(orders.source, "FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
        ((last, *_),) = execute(orders.source, "SHOW MASTER STATUS")
        orders.serve.kill()
        wait_until(lambda: _purged(orders, last))
        execute(
            orders.source,
            *("RENAME TABLE shop.a TO shop.orders", "INSERT INTO shop.orders VALUES (1), (2)"),
            *("DELETE FROM shop.orders WHERE id = 1 LIMIT 2", "INSERT INTO shop.orders VALUES (3)"),
        )
        orders.serve.start()
        orders.check_equal()
        assert orders.incidents() == ()
        assert _UNTOLD in orders.serve.log


def _purged(orders: Shop, last: str) -> bool:
    purge_before(orders.source, last)
    ((first, *_), *_) = execute(orders.source, "SHOW BINARY LOGS")
    return bool(first == last)


_ROWS = "id, v, n, note"


@pytest.mark.parametrize("logging_mode", _OF_ROWS)
@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_a_table_whose_history_does_not_tell_its_rows_is_read_while_it_is_written(
    tmp_path: Path, flavor: str, logging_mode: str
) -> None:
    with shop(tmp_path, flavor, logging_mode) as orders:
        with Writers(orders.source.port, count=4):
            execute(
                orders.source,
                ORDERS.replace("shop.orders", "shop._orders_new"),
                f"INSERT INTO shop._orders_new ({_ROWS}) SELECT {_ROWS} FROM shop.orders",
                f"ALTER TABLE shop._orders_new {ALTERED}",
                "RENAME TABLE shop.orders TO shop._orders_old, shop._orders_new TO shop.orders",
            )
            wait_until(lambda: "with its rows, of" in orders.serve.log)
            execute(orders.source, "DROP TABLE shop._orders_old")
        orders.check_equal()
        assert orders.incidents() == ()
        assert f"{_UNTOLD}: it was altered when it had rows already" in orders.serve.log
        _verify(orders)


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_of_several_tables_each_is_read_by_its_history_if_that_tells_its_rows(
    tmp_path: Path, flavor: str
) -> None:
    with shop(tmp_path, flavor, clauses="LOG(shop.orders, shop.items, shop.notes)") as orders:
        execute(orders.source, *(ORDERS.replace("orders", name) for name in ("a", "b", "c")))
        copy = "INSERT INTO shop.{} (v, n) SELECT v, id FROM shop.orders WHERE id > {}"
        with Writers(orders.source.port):
            execute(
                orders.source,
                *(copy.format(*one) for one in (("a", 500), ("b", 700), ("c", 900))),
                "ALTER TABLE shop.b ADD y INT DEFAULT 3",
                "RENAME TABLE shop.c TO shop.d",
                "RENAME TABLE shop.orders TO shop.o, shop.a TO shop.orders, shop.b TO shop.items,"
                " shop.d TO shop.notes",
                "DELETE FROM shop.items WHERE n % 3 = 0",
                "UPDATE shop.notes SET n = 0 WHERE n % 3 = 0",
            )
        orders.check_equal("orders", "items", "notes")
        assert orders.incidents() == ()
        assert f"`shop`.`items`: {_UNTOLD}: it was altered when it had rows" in orders.serve.log
        assert f"`shop`.`notes`: {_UNTOLD}: it is not known where it was made" in orders.serve.log
        assert orders.serve.log.count(_UNTOLD) == 2


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        ("ALTER TABLE shop.orders ADD w INT", "a statement changed it while it was read"),
        pytest.param(
            *("TRUNCATE TABLE shop.orders", "a statement changed it while it was read"),
            marks=_SLOW,
        ),
        ("DROP TABLE shop.orders", "its rows cannot be read"),
    ],
)
def test_what_cannot_be_told_any_more_is_an_incident(
    tmp_path: Path, after: str, reason: str
) -> None:
    with shop(tmp_path, "mariadb") as orders:
        orders.settle()
        orders.serve.kill()
        execute(
            orders.source,
            *("CREATE TABLE shop.a (id INT PRIMARY KEY)", "INSERT INTO shop.a VALUES (1)"),
            *("ALTER TABLE shop.a ADD v INT DEFAULT 5", "DROP TABLE shop.orders"),
            *("RENAME TABLE shop.a TO shop.orders", after),
        )
        orders.serve.start()
        wait_until(lambda: len(orders.incidents()) == 1)
        assert CAME_IN in str(orders.incidents())
        assert "it was altered when it had rows already" in orders.serve.log
        assert reason in orders.serve.log


@pytest.mark.parametrize(
    "altered",
    [
        "MODIFY n BIGINT",
        pytest.param(
            "CONVERT TO CHARACTER SET latin1, DROP PRIMARY KEY, ADD PRIMARY KEY (id, n)",
            marks=pytest.mark.slow,
        ),
    ],
)
@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_a_shadow_that_servers_copy_comes_in(tmp_path: Path, flavor: str, altered: str) -> None:
    with shop(tmp_path, flavor) as orders:
        swap(orders.source, "shop._orders_gho", "shop._orders_del", altered=altered)
        execute(orders.source, "INSERT INTO shop.orders (v) VALUES ('last')")
        orders.check_equal()
        assert orders.incidents() == ()
