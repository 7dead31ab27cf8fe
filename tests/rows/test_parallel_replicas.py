"""MariaDB replicas that apply domains side by side take the rows before the changes behind them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pymysql
import pytest

from binlane.live.provision.private_server import PrivateServer
from tests.port_replicas import replica_status
from tests.serve_process import wait_until
from tests.servers import connect, execute
from tests.with_rows import RowsStage

CREATE = "CREATE BINLOG 'orders' LOG(shop.orders, shop.items, shop.notes) WITH ROWS"
ALL = ("items", "notes", "orders", "others")
MODES = (
    pytest.param("conservative", marks=pytest.mark.slow),
    "optimistic",
    pytest.param("aggressive", marks=pytest.mark.slow),
)


@pytest.mark.parametrize("mode", MODES)
def test_a_parallel_replica_waits_for_the_rows(tmp_path: Path, mode: str) -> None:
    with RowsStage(tmp_path, "mariadb") as stage:
        stage.fill_tables(200)
        stage.serve.execute_as_root(CREATE)
        stage.wait_until_filled()
        execute(stage.source, "UPDATE shop.notes SET text = 'other'")
        execute(stage.source, "DELETE FROM shop.orders WHERE id % 2")
        stage.serve.wait_until_complete("orders")
        replica = stage.replica("--slave-parallel-threads=8", f"--slave-parallel-mode={mode}")
        with _held_up(replica, "items"):
            stage.follow(replica)
            wait_until(lambda: _waits_or_fails(replica))
        assert not stage.differences(replica)
        stage.stop(replica)
        stage.serve.execute_as_root("ALTER BINLOG 'orders' ADD LOG(shop.others) WITH ROWS")
        stage.wait_until_filled()
        execute(stage.source, "UPDATE shop.others SET name = 'all'")
        stage.serve.wait_until_complete("orders")
        with _held_up(replica, "others"):
            stage.go_on(replica)
            wait_until(lambda: _waits_or_fails(replica))
        assert not stage.differences(replica, ALL)


@contextmanager
def _held_up(replica: PrivateServer, table: str) -> Iterator[None]:
    """Keep a replica from making a table."""
    session = connect(replica)
    with session.cursor() as cursor:
        cursor.execute("SET sql_log_bin = 0")
        cursor.execute("CREATE DATABASE IF NOT EXISTS shop")
        cursor.execute("SELECT CONNECTION_ID()")
        ((number,),) = cursor.fetchall()
    making = threading.Thread(target=_make_slowly, args=(session, table))
    making.start()
    wait_until(lambda: "User sleep" in str(execute(replica, "SHOW PROCESSLIST")))
    try:
        yield
    finally:
        execute(replica, f"KILL {number}")
        making.join()


def _make_slowly(session: pymysql.Connection, table: str) -> None:
    with suppress(pymysql.MySQLError), session.cursor() as cursor:
        cursor.execute(f"CREATE TABLE shop.{table} AS SELECT SLEEP(600) AS a")


def _waits_or_fails(replica: PrivateServer) -> bool:
    waits = "Waiting for worker threads to be idle" in str(execute(replica, "SHOW PROCESSLIST"))
    return waits or bool(replica_status(replica)["Last_SQL_Error"])
