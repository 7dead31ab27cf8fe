"""SHOW BINLOG EVENTS, PURGE BINARY LOGS and SHOW REPLICAS on the port, beside real servers."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pymysql
import pytest

from binlane.service.private_server import PrivateServer
from tests.serve_process import ADMIN, PASSWORD, ServeProcess, create_account, wait_until
from tests.servers import ServerFactory, execute


@pytest.fixture
def source(servers: ServerFactory) -> PrivateServer:
    server = servers.start("source")
    create_account(server)
    execute(
        server,
        "CREATE DATABASE shop",
        "CREATE TABLE shop.orders (id INT AUTO_INCREMENT PRIMARY KEY, note TEXT)",
        "CREATE DATABASE crm",
    )
    return server


@pytest.fixture
def serve(source: PrivateServer, tmp_path: Path) -> Iterator[ServeProcess]:
    with ServeProcess(tmp_path / "serve", source) as process:
        yield process


def error_of(statement: str, *, server: PrivateServer | ServeProcess) -> tuple[int, str]:
    run = server.execute if isinstance(server, ServeProcess) else partial(execute, server)
    with pytest.raises(pymysql.MySQLError) as raised:
        run(statement)
    return raised.value.args[0], raised.value.args[1]


def test_events_are_listed_as_a_server_lists_the_same_file(
    source: PrivateServer, serve: ServeProcess, servers: ServerFactory
) -> None:
    serve.execute("CREATE BINLOG 'orders' LOG(shop)")
    execute(
        source,
        "INSERT INTO shop.orders (note) VALUES ('a'), ('b')",
        "CREATE TABLE crm.t (a INT)",
        "SET SESSION foreign_key_checks = 0",
        "CREATE TABLE shop.`t``t` (a INT, b VARCHAR(9) CHARACTER SET latin1)",
        "INSERT INTO shop.`t``t` VALUES (1, 'é')",
        "SET @v = 'x', sql_mode = 'ANSI_QUOTES'",
        "UPDATE shop.orders SET note = @v",
        *("XA START 'x'", "DELETE FROM shop.orders LIMIT 1", "XA END 'x'", "XA PREPARE 'x'"),
        "XA COMMIT 'x'",
        "DROP TABLE shop.orders, crm.t",
    )
    ours = serve.execute("SHOW BINLOG EVENTS IN 'orders.000001'")
    serve.execute("FLUSH BINARY LOGS 'orders'")
    ended = serve.execute("SHOW BINLOG EVENTS IN 'orders.000001'")
    assert ended[:-1] == ours
    assert ended[-1][5] == "orders.000002;pos=4"
    judge = servers.start("judge", ("--log-bin=orders", "--server-id=77"))
    judge.stop()
    directory = serve.data_dir / "binlogs/orders"
    for path in judge.data_directory.glob("orders.*"):
        path.unlink()
    for name in ("orders.000001", "orders.index"):
        shutil.copyfile(directory / name, judge.data_directory / name)
    (judge.data_directory / "orders.index").write_text("./orders.000001\n")
    judge.restart()
    theirs = execute(judge, "SHOW BINLOG EVENTS IN 'orders.000001'")
    assert ended == theirs
    position = theirs[4][1]
    for clauses in (f"FROM {position}", f"FROM {position} LIMIT 3", "FROM 4 LIMIT 2, 3", "LIMIT 1"):
        listing = f"SHOW BINLOG EVENTS IN 'orders.000001' {clauses}"
        assert serve.execute(listing) == execute(judge, listing), clauses
    for wrong in (
        f"IN 'orders.000001' FROM {position + 1}",
        "IN 'orders.000001' FROM 99999999",
        "IN 'orders.000009'",
        "IN 'none.000001'",
        "IN ''",
    ):
        listing = f"SHOW BINLOG EVENTS {wrong}"
        errno, text = error_of(listing, server=serve)
        assert (errno, text.partition(" (hint")[0].partition("; ")[0]) == error_of(
            listing, server=judge
        ), wrong
    serve.execute("CREATE BINLOG 'other'")
    errno, text = error_of("SHOW BINLOG EVENTS", server=serve)
    assert errno == 1220
    assert "the binlogs are 'orders', 'other'" in text


def test_files_go_by_name_and_by_time(source: PrivateServer, serve: ServeProcess) -> None:
    serve.execute("CREATE BINLOG 'a' LOG(shop)", "CREATE BINLOG 'b'")
    for _ in range(3):
        execute(source, "INSERT INTO shop.orders (note) VALUES ('x')")
        serve.wait_until_complete("a")
        serve.execute("FLUSH BINARY LOGS")

    def files(name: str) -> list[str]:
        return [row[0] for row in serve.execute(f"SHOW BINARY LOGS FOR '{name}'")]

    assert [len(files(name)) for name in "ab"] == [4, 4]
    serve.execute("PURGE BINARY LOGS BEFORE NOW() - INTERVAL 3 DAY")
    serve.execute("PURGE MASTER LOGS BEFORE '2020-01-01'")
    assert [len(files(name)) for name in "ab"] == [4, 4]
    serve.execute("PURGE BINARY LOGS TO 'a.000002'")
    assert files("a")[0] == "a.000002"
    for wrong, errno in (
        ("TO 'a.000001'", 1373),
        ("FOR 'b' TO 'a.000002'", 1373),
        ("FOR 'c' BEFORE NOW()", 1),
        ("BEFORE NULL", 1292),
        ("BEFORE 'soon'", 1292),
        ("BEFORE NOW( + ", 1064),
        ("BEFORE (SELECT note FROM shop.orders)", 1242),
    ):
        assert error_of(f"PURGE BINARY LOGS {wrong}", server=serve)[0] == errno, wrong
    time.sleep(1.1)  # files end in whole seconds
    serve.execute("PURGE BINARY LOGS FOR 'a' BEFORE DATE_ADD(NOW(), INTERVAL 1 HOUR)")
    assert (files("a"), len(files("b"))) == (["a.000004"], 4)
    serve.execute("PURGE BINARY LOGS BEFORE CURRENT_TIMESTAMP")
    assert files("b") == ["b.000004"]


def test_replicas_are_shown_as_a_server_shows_them(
    serve: ServeProcess, servers: ServerFactory
) -> None:
    serve.execute("CREATE BINLOG 'orders' LOG(shop)")
    replica = servers.start(
        "replica", ("--server-id=30", "--report-host=warehouse", "--report-port=3399")
    )
    execute(
        replica,
        f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={serve.port}, "
        f"MASTER_USER='{ADMIN}', MASTER_PASSWORD='{PASSWORD}', MASTER_LOG_FILE='orders.000001', "
        "MASTER_LOG_POS=4",
        "START SLAVE",
    )
    wait_until(lambda: bool(serve.execute("SHOW REPLICAS")))
    with serve.connect() as session, session.cursor() as cursor:
        cursor.execute("SHOW SLAVE HOSTS")
        heads = [column[0] for column in cursor.description]
        assert heads == ["Server_id", "Host", "Port", "Master_id", "User", "Binlog"]
        assert cursor.fetchall() == ((30, "warehouse", 3399, 1, ADMIN, "orders"),)
        cursor.execute("SELECT server_id, host, binlog FROM system.binlog_replicas")
        assert cursor.fetchall() == ((30, "warehouse", "orders"),)
