"""`binlane serve` between a real source and real clients."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pymysql
import pytest

from binlane.binlogs.store.verify import verify
from binlane.live.provision.private_server import PrivateServer
from tests.serve_process import ADMIN, PASSWORD, ServeProcess, create_account, wait_until
from tests.servers import ServerFactory, connect, execute


@pytest.fixture
def source(servers: ServerFactory) -> PrivateServer:
    server = servers.start("source")
    create_account(server)
    execute(server, "CREATE DATABASE shop", "CREATE DATABASE crm")
    return server


@pytest.fixture
def serve(source: PrivateServer, tmp_path: Path) -> Iterator[ServeProcess]:
    with ServeProcess(tmp_path / "serve", source) as process:
        yield process


class Writer(threading.Thread):
    """Commits transactions of one and two databases, until it is told to stop."""

    def __init__(self, source: PrivateServer) -> None:
        super().__init__()
        self._source = source
        self.is_stopping = threading.Event()

    def run(self) -> None:
        chance = random.Random(7)
        with connect(self._source, autocommit=False) as session, session.cursor() as cursor:
            while not self.is_stopping.is_set():
                if chance.random() < 0.8:
                    cursor.execute("INSERT INTO shop.orders (note) VALUES ('x'), ('y')")
                if chance.random() < 0.5:
                    cursor.execute("INSERT INTO crm.person (name) VALUES ('crm-secret')")
                if chance.random() < 0.3:
                    cursor.execute("UPDATE shop.orders SET note = 'z' ORDER BY id DESC LIMIT 3")
                if chance.random() < 0.1:
                    session.rollback()
                else:
                    session.commit()
                # A backlog is there after each start in any case; a longer one proves no more.
                self.is_stopping.wait(0.002)


def create_tables(source: PrivateServer) -> None:
    execute(
        source,
        "CREATE TABLE shop.orders (id INT AUTO_INCREMENT PRIMARY KEY, note TEXT)",
        "CREATE TABLE crm.person (id INT AUTO_INCREMENT PRIMARY KEY, name TEXT)",
    )


def replicate(serve: ServeProcess, replica: PrivateServer, file: str) -> None:
    execute(
        replica,
        "CREATE DATABASE shop",
        f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={serve.port}, "
        f"MASTER_USER='{ADMIN}', MASTER_PASSWORD='{PASSWORD}', MASTER_LOG_FILE='{file}', "
        "MASTER_LOG_POS=4, MASTER_CONNECT_RETRY=1",
        "START SLAVE",
    )


def state(serve: ServeProcess, name: str) -> str:
    """What SHOW BINLOGS says."""
    return str(next(row[7] for row in serve.execute("SHOW BINLOGS") if row[0] == name))


def slave_status(replica: PrivateServer) -> dict[str, object]:
    with connect(replica) as session, session.cursor(pymysql.cursors.DictCursor) as cursor:
        cursor.execute("SHOW SLAVE STATUS")
        return dict(cursor.fetchone() or {})


def checksum(server: PrivateServer, table: str) -> object:
    return execute(server, f"CHECKSUM TABLE {table}")[0][1]


@pytest.mark.rule("000:create-log-table")
@pytest.mark.rule("000:several-binlogs")
def test_kill_9_in_mid_stream_loses_and_doubles_nothing(
    source: PrivateServer, serve: ServeProcess, servers: ServerFactory
) -> None:
    serve.execute("CREATE BINLOG 'orders' LOG(shop.orders)", "CREATE BINLOG 'everything'")
    replica = servers.start("replica", ("--server-id=30",))
    create_tables(source)
    replicate(serve, replica, "orders.000001")
    writer = Writer(source)
    writer.start()
    try:
        for _ in range(4):
            time.sleep(random.uniform(0.2, 0.8))
            serve.kill()
            serve.start()
    finally:
        writer.is_stopping.set()
        writer.join()
    serve.wait_until_complete("orders")
    serve.wait_until_complete("everything")
    assert list(verify([serve.data_dir])) == []
    everything, orders = serve.gtids("everything"), serve.gtids("orders")
    first = int(everything[0].split("-")[2])
    last = int(str(execute(source, "SELECT @@gtid_binlog_pos")[0][0]).split("-")[2])
    assert everything == [f"0-1-{number}" for number in range(first, last + 1)]
    assert len(orders) == len(set(orders)) > 100
    assert set(orders) < set(everything)
    wait_until(lambda: execute(replica, "SELECT @@gtid_slave_pos")[0][0] == orders[-1])
    assert checksum(replica, "shop.orders") == checksum(source, "shop.orders")
    # Long words: shorter ones come about by chance in as many bytes.
    data = serve.binlog_bytes("orders")
    assert not any(word in data for word in (b"crm.person", b"crm-secret", b"person"))


def test_the_source_goes_away_and_comes_back(source: PrivateServer, serve: ServeProcess) -> None:
    serve.execute("CREATE BINLOG 'orders' LOG(shop.orders)")
    create_tables(source)
    execute(source, "INSERT INTO shop.orders (note) VALUES ('before')")
    serve.wait_until_complete("orders")
    source.kill()
    wait_until(lambda: "trying again" in serve.log or "next try" in serve.log)
    source.restart()
    execute(source, "INSERT INTO shop.orders (note) VALUES ('after')")
    serve.wait_until_complete("orders")
    assert len(serve.gtids("orders")) == 3
    assert serve.log.count("Traceback") == 0


def test_sigterm_ends_it_with_status_0(serve: ServeProcess) -> None:
    serve.execute("CREATE BINLOG 'b'")
    assert serve.stop() == 0
    assert list(verify([serve.data_dir])) == []
    assert "Traceback" not in serve.log


def test_a_planned_end_cuts_no_replica_off_inside_of_a_statement(
    source: PrivateServer, serve: ServeProcess, servers: ServerFactory
) -> None:
    execute(source, "CREATE TABLE shop.big (id INT AUTO_INCREMENT PRIMARY KEY, v BLOB)")
    serve.execute("CREATE BINLOG 'orders' LOG(shop)")
    replica = servers.start("replica", ("--server-id=34",))
    replicate(serve, replica, "orders.000001")
    execute(
        replica,
        "STOP SLAVE",
        "CREATE TABLE shop.big (id INT AUTO_INCREMENT PRIMARY KEY, v BLOB)",
        "START SLAVE",
    )
    is_stopping = threading.Event()

    def write() -> None:
        while not is_stopping.is_set():
            # Some hundred rows events of one statement.
            execute(
                source, "INSERT INTO shop.big (v) SELECT REPEAT('x', 5000) FROM shop.seq_1_to_300"
            )
            # Most of the time is that of such a statement; all of it would only be more bytes.
            is_stopping.wait(0.05)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(5):
            time.sleep(random.uniform(0.3, 0.8))
            assert serve.stop() == 0
            serve.start()
    finally:
        is_stopping.set()
        writer.join()
    serve.wait_until_complete("orders")
    expected = checksum(source, "shop.big")

    def is_equal() -> bool:
        status = slave_status(replica)
        assert not status["Last_SQL_Errno"], status["Last_SQL_Error"]
        # 1597: it was cut off while it introduced itself, and tries again.
        assert status["Last_IO_Errno"] in {0, 1053, 1597, 2003, 2013}, status["Last_IO_Error"]
        return checksum(replica, "shop.big") == expected

    wait_until(is_equal)
    assert "Traceback" not in serve.log


def test_without_binlogs_an_old_position_does_not_matter(
    source: PrivateServer, serve: ServeProcess
) -> None:
    create_tables(source)
    serve.execute("CREATE BINLOG 'b'")
    execute(source, "INSERT INTO shop.orders () VALUES ()")
    serve.wait_until_complete("b")
    time.sleep(1.5)  # what the source is has been noted by now
    serve.execute("DROP BINLOG 'b'")
    assert serve.stop() == 0
    execute(source, "INSERT INTO shop.orders () VALUES ()", "RESET MASTER")
    serve.start()
    serve.execute("CREATE BINLOG 'b'")
    execute(source, "INSERT INTO shop.orders () VALUES ()")
    serve.wait_until_complete("b")
    assert serve.gtids("b") == ["0-1-1"]


def test_what_the_source_refuses_stops_binlogs_until_it_does_not(
    source: PrivateServer, tmp_path: Path
) -> None:
    with ServeProcess(tmp_path / "serve", source) as serve:
        serve.execute("CREATE BINLOG 'b'")
        serve.stop()
        create_tables(source)
        (serve.directory / "secret").write_text("wrong")
        serve.start()
        wait_until(lambda: state(serve, "b").startswith("STOPPED: "))
        assert "Access denied" in state(serve, "b")
        with pytest.raises(pymysql.MySQLError, match=r"is not complete up to .*Access denied"):
            serve.execute("SHOW MASTER STATUS 'b'")
        with pytest.raises(pymysql.MySQLError, match=r"not been reached yet: .*Access denied"):
            serve.execute("CREATE BINLOG 'c'")
        (serve.directory / "secret").write_text(PASSWORD)
        serve.execute("START BINLOG 'b'")
        serve.wait_until_complete("b")
        assert state(serve, "b") == "OPEN"
        assert len(serve.gtids("b")) == 2
        assert "Traceback" not in serve.log


def test_a_second_process_does_not_get_the_data_directory(
    source: PrivateServer, serve: ServeProcess
) -> None:
    process = subprocess.run(
        [
            *(sys.executable, "-m", "binlane", "serve"),
            *("--config", str(serve.directory / "binlane.toml")),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert process.returncode == 3
    assert process.stderr.startswith("binlane: ")
    assert "hint: " in process.stderr


@pytest.mark.rule("000:table-scope-parent")
@pytest.mark.parametrize(
    ("statement", "errno", "text"),
    [
        ("CREATE BINLOG 'b' LOGG(shop)", 1064, "LOGG"),
        ("DROP BINLOG 'nope'", 1, "unknown binlog 'nope'; the binlogs are 'b'"),
        ("CREATE BINLOG 'b'", 1, "exists already"),
        ("CREATE BINLOG 'x' LOG(nowhere.t)", 1049, "nowhere"),
        ("CREATE BINLOG '../x'", 1, "name"),
        ("SHOW MASTER STATUS 'nope'", 1, "unknown binlog 'nope'"),
        ("SHOW BINLOG EVENTS IN 'x'", 1220, "Could not find target log"),
    ],
)
def test_wrong_sql_gets_an_error_that_helps(
    serve: ServeProcess, statement: str, errno: int, text: str
) -> None:
    serve.execute("CREATE BINLOG 'b'")
    with pytest.raises(pymysql.MySQLError) as raised:
        serve.execute(statement)
    assert raised.value.args[0] == errno
    assert text in raised.value.args[1]
    assert serve.execute("SHOW BINLOGS")[0][0] == "b"


@pytest.mark.rule("000:show-master-status")
def test_statements_on_binlogs(serve: ServeProcess) -> None:
    serve.execute(
        "CREATE BINLOG 'binny' LOG(`shop`, `crm`.`person`), IGNORE(`shop`.`stock`), FORMAT='ROW'",
        "CREATE BINLOG IF NOT EXISTS 'binny'",
    )
    status = serve.execute("SHOW MASTER STATUS 'binny'")
    assert status[0][0] == "binny.000001"
    assert status[0][2:] == ("crm.person, shop", "shop.stock")
    serve.execute("FLUSH BINARY LOGS 'binny'")
    assert [row[0] for row in serve.execute("SHOW BINARY LOGS FOR 'binny'")] == [
        "binny.000001",
        "binny.000002",
    ]
    serve.execute("PURGE BINARY LOGS TO 'binny.000002'", "ALTER BINLOG 'binny' DROP LOG(`shop`)")
    assert [row[0] for row in serve.execute("SHOW BINARY LOGS")] == ["binny.000002"]
    assert serve.execute("SHOW BINLOGS")[0][4:7] == ("crm.person", "shop.stock", "ROW")
    serve.execute(
        "ALTER BINLOG IF EXISTS 'nope' LOG ALL",
        "SET SESSION sql_mode = 'ANSI_QUOTES'",
        'ALTER BINLOG "binny" LOG("shop"), FORMAT="MIXED"',
    )
    assert serve.execute("SHOW BINLOGS")[0][4:7] == ("shop", "", "MIXED")
    with pytest.raises(pymysql.MySQLError, match="expected a name"):
        serve.execute('ALTER BINLOG "binny" LOG("shop")')
    serve.execute("DROP BINLOG 'binny'", "DROP BINLOG IF EXISTS 'binny'")
    assert serve.execute("SHOW BINLOGS") == ()


def test_an_account_needs_its_privileges(source: PrivateServer, serve: ServeProcess) -> None:
    execute(source, "CREATE USER plain@'%' IDENTIFIED BY 'p'")
    with serve.connect("plain", "p") as session, session.cursor() as cursor:
        cursor.execute("SELECT CURRENT_USER()")
        assert cursor.fetchall() == (("plain@%",),)
        for statement in ("CREATE BINLOG 'b'", "SHOW BINLOGS"):
            with pytest.raises(pymysql.MySQLError) as raised:
                cursor.execute(statement)
            assert raised.value.args[0] == 1227
    with pytest.raises(pymysql.MySQLError) as refused:
        serve.connect("plain", "wrong")
    assert refused.value.args[0] == 1045


def test_a_replica_stops_at_what_the_scope_cannot_express(
    source: PrivateServer, serve: ServeProcess, servers: ServerFactory
) -> None:
    serve.execute("CREATE BINLOG 'orders' LOG(shop.orders, shop.more)")
    create_tables(source)
    replica = servers.start("replica", ("--server-id=31",))
    replicate(serve, replica, "orders.000001")
    execute(source, "INSERT INTO shop.orders (note) VALUES ('a')")
    execute(source, "CREATE TABLE shop.more LIKE shop.orders")
    execute(source, "RENAME TABLE shop.orders TO crm.orders, shop.more TO shop.orders")
    wait_until(lambda: bool(slave_status(replica)["Last_SQL_Errno"]))
    status = slave_status(replica)
    assert status["Last_SQL_Errno"] == 1590
    assert "RENAME" in str(status["Last_SQL_Error"])
    assert b"crm" not in serve.binlog_bytes("orders")


def test_a_replica_goes_on_behind_an_incident_once_its_gtid_is_skipped(
    source: PrivateServer, serve: ServeProcess, servers: ServerFactory
) -> None:
    serve.execute("CREATE BINLOG 'orders' LOG(shop.orders, shop.more)")
    begin = serve.execute("SHOW BINLOGS")[0][3]
    create_tables(source)
    execute(source, "INSERT INTO shop.orders (note) VALUES ('a')")
    execute(source, "CREATE TABLE shop.more LIKE shop.orders")
    execute(source, "RENAME TABLE shop.orders TO crm.orders, shop.more TO shop.orders")
    incident = serve.wait_until_complete("orders")
    replica = servers.start("replica", ("--server-id=33", "--gtid-strict-mode=ON"))
    execute(
        replica,
        "CREATE DATABASE shop",
        f"SET GLOBAL gtid_slave_pos = '{begin}'",
        f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={serve.port}, "
        f"MASTER_USER='{ADMIN}', MASTER_PASSWORD='{PASSWORD}', MASTER_USE_GTID=slave_pos, "
        "MASTER_CONNECT_RETRY=1",
        "START SLAVE",
    )
    wait_until(lambda: slave_status(replica)["Last_SQL_Errno"] == 1590)
    assert incident in str(slave_status(replica)["Last_SQL_Error"])
    # What an operator does: repair the table, and skip the one GTID that the message names.
    execute(
        replica,
        "STOP SLAVE",
        "DROP TABLE shop.orders",
        "RENAME TABLE shop.more TO shop.orders",
        f"SET GLOBAL gtid_slave_pos = '{incident}'",
        "START SLAVE",
    )
    execute(source, "INSERT INTO shop.orders (note) VALUES ('b')")
    serve.wait_until_complete("orders")
    last = serve.gtids("orders")[-1]
    wait_until(lambda: execute(replica, "SELECT @@gtid_slave_pos")[0][0] == last)
    assert slave_status(replica)["Last_SQL_Errno"] == 0
    assert checksum(replica, "shop.orders") == checksum(source, "shop.orders")


def test_ddl_at_the_edge_of_a_scope_reaches_the_replica(
    source: PrivateServer, serve: ServeProcess, servers: ServerFactory
) -> None:
    execute(source, "CREATE TABLE shop.items (id INT PRIMARY KEY)")
    serve.execute("CREATE BINLOG 'orders' LOG(shop.orders, shop.lines)")
    create_tables(source)
    execute(
        source,
        "CREATE TABLE shop.lines (id INT PRIMARY KEY)",
        "USE crm",
        "ALTER TABLE shop.orders ADD COLUMN city VARCHAR(20)",
        "INSERT INTO shop.orders (note, city) VALUES ('a', 'b')",
        "DROP TABLE shop.lines, crm.person, shop.items",
        "CREATE VIEW shop.v AS SELECT * FROM shop.orders",
    )
    replica = servers.start("replica", ("--server-id=32",))
    replicate(serve, replica, "orders.000001")
    serve.wait_until_complete("orders")
    last = serve.gtids("orders")[-1]
    wait_until(lambda: execute(replica, "SELECT @@gtid_slave_pos")[0][0] == last)
    assert checksum(replica, "shop.orders") == checksum(source, "shop.orders")
    assert execute(replica, "SHOW TABLES FROM shop") == (("orders",),)
    data = serve.binlog_bytes("orders")
    assert b"crm" not in data
    assert b"items" not in data


def test_healthz_metrics_and_api(source: PrivateServer, tmp_path: Path) -> None:
    extra = "[http]\nport = 0\n"
    with ServeProcess(tmp_path / "http", source, extra=extra) as serve:
        serve.execute("CREATE BINLOG 'b'")
        wait_until(lambda: serve.get("/healthz") == (200, "ok\n"))
        assert 'binlane_binlog_position_bytes{binlog="b"}' in serve.get("/metrics")[1]
        assert '"name": "b"' in serve.get("/api/binlogs")[1]


@pytest.mark.rule("000:alter-log-all")
@pytest.mark.rule("000:alter-ignore-all")
@pytest.mark.rule("000:alter-log")
@pytest.mark.rule("000:alter-ignore")
@pytest.mark.rule("000:alter-add-log")
@pytest.mark.rule("000:alter-add-ignore")
@pytest.mark.rule("000:alter-drop-log")
@pytest.mark.rule("000:alter-drop-ignore")
@pytest.mark.rule("000:alter-left-to-right")
@pytest.mark.rule("000:alter-reset-then-add")
def test_alter_binlog_changes_what_is_logged_from_then_on(
    source: PrivateServer, serve: ServeProcess
) -> None:
    create_tables(source)
    serve.execute("CREATE BINLOG 'b' LOG(shop)")

    def writes_to() -> set[str]:
        """Which of two tables' rows are logged now."""
        before = len(serve.gtids("b"))
        logged = set()
        for table in ("shop.orders", "crm.person"):
            execute(source, f"INSERT INTO {table} () VALUES ()")
            serve.wait_until_complete("b")
            if len(serve.gtids("b")) > before:
                logged.add(table)
            before = len(serve.gtids("b"))
        return logged

    for statement, lists, logged in (
        ("LOG ALL", ("ALL", ""), {"shop.orders", "crm.person"}),
        ("IGNORE ALL", ("", ""), set()),
        ("LOG(`crm`)", ("crm", ""), {"crm.person"}),
        ("IGNORE(`crm`)", ("ALL", "crm"), {"shop.orders"}),
        ("DROP IGNORE(`crm`)", ("ALL", ""), {"shop.orders", "crm.person"}),
        ("LOG(`shop`.`orders`)", ("shop.orders", ""), {"shop.orders"}),
        ("ADD LOG(`crm`)", ("crm, shop.orders", ""), {"shop.orders", "crm.person"}),
        ("ADD IGNORE(`crm`.`person`)", ("crm, shop.orders", "crm.person"), {"shop.orders"}),
        (
            "DROP LOG(`shop`.`orders`), ADD LOG(`shop`)",
            ("crm, shop", "crm.person"),
            {"shop.orders"},
        ),
        (
            "IGNORE ALL, ADD LOG(`crm`, `shop`), ADD IGNORE(`shop`.`orders`)",
            ("crm, shop", "shop.orders"),
            {"crm.person"},
        ),
    ):
        serve.execute(f"ALTER BINLOG 'b' {statement}")
        assert serve.execute("SHOW BINLOGS")[0][4:6] == lists, statement
        assert writes_to() == logged, statement
    assert list(verify([serve.data_dir])) == []
