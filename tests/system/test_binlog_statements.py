"""SHOW BINLOG EVENTS, PURGE BINARY LOGS and SHOW REPLICAS on the port, beside real servers."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pymysql
import pytest

from binlane.live.provision.private_server import SOURCE_OPTIONS, PrivateServer
from tests.listening import ListeningPort
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


def error_of(statement: str, *, run: Callable[[str], object]) -> tuple[int, str]:
    """Number and text of an error, without what binlane adds as a hint."""
    with pytest.raises(pymysql.MySQLError) as raised:
        run(statement)
    return raised.value.args[0], raised.value.args[1].partition(" (hint")[0]


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
    for clauses in (
        *(f"FROM {position}", f"FROM {position} LIMIT 3", "FROM 4 LIMIT 2, 3", "LIMIT 1"),
        *("LIMIT 18446744073709551615", "LIMIT 1, 18446744073709551615"),
        "LIMIT 18446744073709551615, 1",
    ):
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
        told = error_of(listing, run=serve.execute)
        assert told == error_of(listing, run=partial(execute, judge)), wrong
    serve.execute("CREATE BINLOG 'other'")
    errno, text = error_of("SHOW BINLOG EVENTS", run=serve.execute)
    assert errno == 1220
    assert text.endswith("the binlogs are 'orders', 'other'")


def test_a_position_is_told_to_who_may_see_the_file(
    source: PrivateServer, serve: ServeProcess
) -> None:
    serve.execute("CREATE BINLOG 'orders' LOG(shop)")
    execute(source, "CREATE USER nobody@'%'", "CREATE USER reader@'%'")
    execute(source, "GRANT REPLICATION SLAVE ON *.* TO reader@'%'")
    places = ("orders.000001", "none.000001")
    told = {}
    for user in ("nobody", "reader", "root"):
        with serve.connect(user, "") as connection, connection.cursor() as cursor:
            for file in places:
                cursor.execute(f"SELECT BINLOG_GTID_POS('{file}', 4)")
                told[user, file] = cursor.fetchall()[0][0]
    assert told["nobody", "orders.000001"] is None
    assert told["reader", "orders.000001"] == told["root", "orders.000001"] is not None
    assert {told[user, "none.000001"] for user in ("nobody", "reader", "root")} == {None}


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
        ("BEFORE (SELECT note FROM shop.orders)", 1970),
    ):
        assert error_of(f"PURGE BINARY LOGS {wrong}", run=serve.execute)[0] == errno, wrong
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


def test_a_mysql_source_is_answered_as_by_mysql(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers.start_mysql("source")
    execute(
        source,
        "CREATE DATABASE shop",
        "CREATE TABLE shop.orders (id INT AUTO_INCREMENT PRIMARY KEY, note JSON)",
        "CREATE USER reader@'%' IDENTIFIED WITH caching_sha2_password BY 'p'",
        "GRANT REPLICATION CLIENT ON *.* TO reader@'%'",
    )
    with ListeningPort(source, tmp_path / "data") as port:
        port.execute("CREATE BINLOG 'orders' LOG(shop)")
        execute(
            source,
            "INSERT INTO shop.orders (note) VALUES ('{}'), ('[1]')",
            "SET SESSION binlog_transaction_compression = ON",
            "INSERT INTO shop.orders (note) VALUES ('\"x\"')",
            "SET SESSION binlog_transaction_compression = OFF, binlog_rows_query_log_events = ON",
            "UPDATE shop.orders SET note = JSON_ARRAY(1) WHERE id = 1",
            "SET SESSION gtid_next = 'AUTOMATIC:night'",
            "DELETE FROM shop.orders WHERE id = 2",
            "ALTER TABLE shop.orders ADD COLUMN b INT",
        )
        ((file, position, do, ignore, executed),) = port.execute("SHOW BINARY LOG STATUS")
        assert (file, do, ignore) == ("orders.000001", "shop", "")
        assert executed == execute(source, "SELECT @@GLOBAL.gtid_executed")[0][0]
        assert port.execute("SHOW BINARY LOGS") == (("orders.000001", position, "No"),)
        assert port.execute("SELECT position, state FROM system.binlogs") == ((position, "OPEN"),)
        port.execute("FLUSH BINARY LOGS 'orders'")
        judge = servers.start_mysql("judge", "--log-bin=orders", "--server-id=77")
        judge.stop()
        for path in judge.data_directory.glob("orders.*"):
            path.unlink()
        directory = tmp_path / "data/binlogs/orders"
        shutil.copyfile(directory / "orders.000001", judge.data_directory / "orders.000001")
        (judge.data_directory / "orders.index").write_text("./orders.000001\n")
        judge.restart()
        theirs = execute(judge, "SHOW BINLOG EVENTS IN 'orders.000001'")
        assert len(theirs) > 20
        clauses = ("", f"FROM {theirs[4][1]}", "FROM 5 LIMIT 1, 2")
        for clause in (*clauses, "FROM 99999999", "FROM 9 LIMIT 4"):
            listing = f"SHOW BINLOG EVENTS IN 'orders.000001' {clause}"
            assert port.execute(listing) == execute(judge, listing), clause
        inside = f"SHOW BINLOG EVENTS IN 'orders.000001' FROM {theirs[4][1] - 2}"
        errno, text = error_of(inside, run=partial(execute, judge))
        ours = error_of(inside, run=port.execute)
        assert ours == (errno, text[: len(ours[1])])
        for wrong in ("IN 'orders.000009'", "IN ''"):
            listing = f"SHOW BINLOG EVENTS {wrong}"
            ours = error_of(listing, run=port.execute)
            assert ours == error_of(listing, run=partial(execute, judge))
        with port.connect(user="reader", password="p") as session, session.cursor() as cursor:
            cursor.execute("SHOW BINARY LOGS")
            for statement in ("SHOW BINLOG EVENTS", "SHOW REPLICAS", "CREATE BINLOG 'x'"):
                with pytest.raises(pymysql.MySQLError) as raised:
                    cursor.execute(statement)
                assert raised.value.args[0] == 1227


def test_a_source_that_does_not_tell_case_apart(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers.start("source", (*SOURCE_OPTIONS, "--lower-case-table-names=1"))
    execute(source, "CREATE DATABASE Shop", "CREATE DATABASE CRM")
    with ListeningPort(source, tmp_path / "data") as port:
        port.execute("CREATE BINLOG 'b' LOG(SHOP, Crm.Log), IGNORE(shop.Secret)")
        refused = error_of("CREATE BINLOG 'c' LOG(Shop, shop)", run=port.execute)
        assert refused == (1, "LOG(`Shop`, `shop`) names `shop` twice")
        assert port.execute("SHOW BINLOGS")[0][4:6] == ("crm.log, shop", "shop.secret")
        execute(
            source,
            "CREATE TABLE SHOP.Orders (a INT)",
            "INSERT INTO shop.ORDERS VALUES (1)",
            "CREATE TABLE Shop.SECRET (hidden_column INT)",
            "INSERT INTO SHOP.Secret VALUES (2)",
            "CREATE TABLE crm.LOG (a INT)",
            "CREATE TABLE crm.other (hidden_column INT)",
            "DROP TABLE CRM.Other, Crm.LOG, SHOP.Secret",
        )
        port.execute("SHOW MASTER STATUS")
        texts = [row[5] for row in port.execute("SHOW BINLOG EVENTS") if row[2] == "Query"]
        assert [text.partition("; ")[2] or text for text in texts if text != "COMMIT"] == [
            "CREATE TABLE SHOP.Orders (a INT)",
            "CREATE TABLE crm.LOG (a INT)",
            "DROP TABLE IF EXISTS `crm`.`log`",
        ]
        data = port.file("b.000001").read_bytes().lower()
        assert b"orders" in data
        assert b"secret" not in data
        assert b"hidden" not in data
        assert b"other" not in data
        port.execute("ALTER BINLOG 'b' DROP LOG(CRM.log), ADD IGNORE(SHOP.Orders)")
        execute(source, "INSERT INTO Shop.Orders VALUES (3)")
        port.execute("SHOW MASTER STATUS")
        count = len(port.execute("SHOW BINLOG EVENTS"))
        execute(source, "INSERT INTO Shop.Orders VALUES (4)")
        port.execute("SHOW MASTER STATUS")
        assert len(port.execute("SHOW BINLOG EVENTS")) == count
