"""Real replicas and binlog tools on binlogs that binlane serves from a real source."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pymysqlreplication import BinLogStreamReader  # type: ignore[import-untyped] # has no types
from pymysqlreplication.event import MariadbGtidEvent  # type: ignore[import-untyped] # as above
from pymysqlreplication.row_event import (  # type: ignore[import-untyped] # as above
    DeleteRowsEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
)

from binlane.live.provision.private_server import PrivateServer
from binlane.positions import GtidPosition
from tests.listening import HOST, ListeningPort, wait_until
from tests.servers import ServerFactory, connect, execute

REPLICA_OPTIONS = (
    "--server-id=20",
    "--log-bin=binlog",
    "--log-slave-updates",
    "--binlog-format=ROW",
)
ORDERS = "shop.orders"
# python-mysql-replication calls PyMySQL with names that PyMySQL has replaced.
FOREIGN_WARNINGS = pytest.mark.filterwarnings("ignore:'(db|passwd)' is deprecated")


@pytest.fixture
def source(servers: ServerFactory) -> PrivateServer:
    """A source with tables in and out of scope, and changes that no binlog saw."""
    server = servers.start("source")
    execute(
        server,
        "CREATE DATABASE shop",
        "CREATE DATABASE crm",
        "CREATE TABLE crm.person (id INT PRIMARY KEY, name VARCHAR(20))",
        "INSERT INTO crm.person VALUES (1, 'before')",
    )
    return server


@pytest.fixture
def port(source: PrivateServer, tmp_path: Path) -> Iterator[ListeningPort]:
    """The source's port with one binlog, `orders`, that holds what orders need."""
    with ListeningPort(source, tmp_path / "data", max_binlog_size_bytes=4096) as listening:
        listening.execute("CREATE BINLOG 'orders' LOG(shop)")
        yield listening


def _change(server: PrivateServer, first: int, count: int = 20) -> None:
    """Transactions in the scope and out of it, in turn."""
    with connect(server) as connection, connection.cursor() as cursor:
        cursor.execute(
            f"CREATE TABLE IF NOT EXISTS {ORDERS} (id INT PRIMARY KEY, note VARCHAR(200), n INT)"
        )
        for number in range(first, first + count):
            cursor.execute(f"INSERT INTO {ORDERS} VALUES (%s, REPEAT('x', 100), 0)", (number,))
            cursor.execute("REPLACE INTO crm.person VALUES (%s, 'outside')", (number,))
        cursor.execute(f"UPDATE {ORDERS} SET n = n + id")
        cursor.execute(f"DELETE FROM {ORDERS} WHERE id % 7 = 0")
        cursor.execute("REPLACE INTO crm.person VALUES (0, 'outside, last')")


def _checksum(server: PrivateServer) -> object:
    # NULL where there is no such table yet.
    return execute(server, f"CHECKSUM TABLE {ORDERS}")[0][1]


def _slave_status(replica: PrivateServer) -> dict[str, Any]:
    with connect(replica, cursorclass=pymysql.cursors.DictCursor) as connection:
        cursor = connection.cursor()
        cursor.execute("SHOW SLAVE STATUS")
        status: Any = cursor.fetchone()
        return dict(status)


def _follow(replica: PrivateServer, port: ListeningPort, how: str) -> None:
    execute(
        replica,
        "SET sql_log_bin = 0",
        "CREATE DATABASE IF NOT EXISTS shop",
        "SET sql_log_bin = 1",
        f"CHANGE MASTER TO MASTER_HOST='{HOST}', MASTER_PORT={port.port}, MASTER_USER='replica', "
        f"MASTER_PASSWORD='secret', MASTER_HEARTBEAT_PERIOD=0.5, MASTER_CONNECT_RETRY=1, {how}",
        "START SLAVE",
    )


def _wait_for_replica(replica: PrivateServer, source: PrivateServer) -> None:
    expected = _checksum(source)

    def is_equal() -> bool:
        status = _slave_status(replica)
        assert not status["Last_IO_Errno"], status["Last_IO_Error"]
        assert not status["Last_SQL_Errno"], status["Last_SQL_Error"]
        return _checksum(replica) == expected

    wait_until(is_equal, what="the replica has what the source has")
    assert execute(replica, "SHOW DATABASES LIKE 'crm'") == ()


def _complete(port: ListeningPort) -> None:
    """Wait until the binlog is complete up to the source."""
    port.execute("SHOW MASTER STATUS")


@pytest.fixture
def replica_account(source: PrivateServer, port: ListeningPort) -> None:
    """An account that may replicate and nothing else."""
    del port
    execute(
        source,
        "CREATE USER replica@'%' IDENTIFIED BY 'secret'",
        "GRANT REPLICATION SLAVE ON *.* TO replica@'%'",
    )


@pytest.mark.usefixtures("replica_account")
def test_replica_by_file(
    servers: ServerFactory, source: PrivateServer, port: ListeningPort
) -> None:
    _change(source, 1)
    replica = servers.start("replica", REPLICA_OPTIONS)
    _follow(replica, port, "MASTER_LOG_FILE='orders.000001', MASTER_LOG_POS=4")
    _wait_for_replica(replica, source)
    _change(source, 100)
    _wait_for_replica(replica, source)
    execute(replica, "STOP SLAVE")
    _change(source, 200)
    execute(replica, "START SLAVE")
    _wait_for_replica(replica, source)
    assert int(_slave_status(replica)["Master_Log_File"].rpartition(".")[2]) > 2


@pytest.mark.usefixtures("replica_account")
def test_replica_by_gtid_in_strict_mode(
    servers: ServerFactory, source: PrivateServer, port: ListeningPort
) -> None:
    begin = execute(source, "SELECT @@gtid_binlog_pos")[0][0]
    replica = servers.start("replica", (*REPLICA_OPTIONS, "--gtid-strict-mode=ON"))
    start = str(port.binlogs.get("orders").published.begin)
    assert GtidPosition.parse(begin).includes(GtidPosition.parse(start))
    execute(replica, f"SET GLOBAL gtid_slave_pos = '{start}'")
    _change(source, 1)
    _follow(replica, port, "MASTER_USE_GTID=slave_pos")
    _wait_for_replica(replica, source)
    for first in (100, 200):
        execute(replica, "STOP SLAVE")
        _change(source, first)
        execute(replica, "START SLAVE")
        _wait_for_replica(replica, source)
    _complete(port)
    # The source's last group is outside: the replica starts after what it never saw.
    execute(replica, "STOP SLAVE")
    done = execute(source, "SELECT @@gtid_binlog_pos")[0][0]
    execute(replica, f"SET GLOBAL gtid_slave_pos = '{done}'", "START SLAVE")
    _change(source, 300)
    _wait_for_replica(replica, source)


@pytest.mark.usefixtures("replica_account")
def test_row_larger_than_a_packet(
    servers: ServerFactory, source: PrivateServer, port: ListeningPort
) -> None:
    execute(source, "SET GLOBAL max_allowed_packet = 67108864")
    execute(
        source,
        f"CREATE TABLE {ORDERS} (id INT PRIMARY KEY, note LONGBLOB)",
        f"INSERT INTO {ORDERS} VALUES (1, REPEAT('x', 17 * 1024 * 1024)), (2, 'y')",
    )
    replica = servers.start("replica", (*REPLICA_OPTIONS, "--max-allowed-packet=64M"))
    _follow(replica, port, "MASTER_LOG_FILE='orders.000001', MASTER_LOG_POS=4")
    _wait_for_replica(replica, source)


@pytest.mark.usefixtures("replica_account")
def test_replica_outlives_a_restart_of_the_port(
    servers: ServerFactory, source: PrivateServer, tmp_path: Path
) -> None:
    replica = servers.start("replica", REPLICA_OPTIONS)
    data = tmp_path / "again"
    with ListeningPort(source, data) as first:
        first.execute("CREATE BINLOG 'orders' LOG(shop)")
        start = str(first.binlogs.get("orders").published.begin)
        execute(replica, f"SET GLOBAL gtid_slave_pos = '{start}'")
        _follow(replica, first, "MASTER_USE_GTID=slave_pos")
        _change(source, 1)
        _wait_for_replica(replica, source)
    _change(source, 100)
    with ListeningPort(source, data) as second:
        execute(replica, "STOP SLAVE", f"CHANGE MASTER TO MASTER_PORT={second.port}", "START SLAVE")
        _change(source, 200)
        _wait_for_replica(replica, source)


@pytest.mark.usefixtures("replica_account")
def test_replica_with_a_position_that_is_gone(
    servers: ServerFactory, source: PrivateServer, port: ListeningPort
) -> None:
    del source
    replica = servers.start("replica", REPLICA_OPTIONS)
    _follow(replica, port, "MASTER_USE_GTID=slave_pos")
    wait_until(lambda: _slave_status(replica)["Last_IO_Errno"] == 1236, what="error 1236")
    error = _slave_status(replica)["Last_IO_Error"]
    assert "Could not find GTID state requested by slave in any binlog files" in error
    assert f"binlog orders begins at {port.binlogs.get('orders').published.begin}" in error


def test_replica_without_the_privilege(
    servers: ServerFactory, source: PrivateServer, port: ListeningPort
) -> None:
    execute(source, "CREATE USER replica@'%' IDENTIFIED BY 'secret'")
    replica = servers.start("replica", REPLICA_OPTIONS)
    _follow(replica, port, "MASTER_LOG_FILE='orders.000001', MASTER_LOG_POS=4")
    # The error is gone for a moment each time that the replica tries again.
    told = "REPLICATION SLAVE"
    wait_until(lambda: told in _slave_status(replica)["Last_IO_Error"], what="an error")


def _mariadb_binlog(port: ListeningPort, *arguments: str) -> list[str]:
    return [
        *("mariadb-binlog", "--no-defaults", "-R", f"-h{HOST}", f"-P{port.port}", "-uroot"),
        *arguments,
    ]


def test_mariadb_binlog_copies_files_byte_by_byte(
    source: PrivateServer, port: ListeningPort, tmp_path: Path
) -> None:
    _change(source, 1)
    _complete(port)
    port.execute("FLUSH BINARY LOGS 'orders'")
    names = [row[0] for row in port.execute("SHOW BINARY LOGS")]
    copies = tmp_path / "copies"
    copies.mkdir()
    subprocess.run(
        _mariadb_binlog(port, "--raw", "--to-last-log", f"-r{copies}/", names[0]),
        check=True,
        capture_output=True,
    )
    assert len(names) > 3
    assert sorted(path.name for path in copies.iterdir()) == names
    for name in names[:-1]:
        assert (copies / name).read_bytes() == port.file(name).read_bytes()


def test_mariadb_binlog_prints_several_files_in_one_session(
    source: PrivateServer, port: ListeningPort
) -> None:
    _change(source, 1)
    _complete(port)
    done = subprocess.run(
        _mariadb_binlog(port, "-v", "--verify-binlog-checksum", "orders.000001", "orders.000002"),
        check=True,
        capture_output=True,
        text=True,
    )
    assert "### INSERT INTO `shop`.`orders`" in done.stdout
    assert "end_log_pos" in done.stdout
    assert "crm" not in done.stdout


def test_mariadb_binlog_that_never_stops(
    source: PrivateServer, port: ListeningPort, tmp_path: Path
) -> None:
    _change(source, 1)
    printed = tmp_path / "printed"
    numbers = count(1000, 20)
    with (
        printed.open("wb") as stream,
        subprocess.Popen(
            _mariadb_binlog(port, "--stop-never", "orders.000001"), stdout=stream
        ) as process,
    ):

        def is_printed() -> bool:
            # The tool writes in blocks, so it takes more events until it shows the first ones.
            _change(source, next(numbers))
            return b"COMMENT" in printed.read_bytes()

        try:
            execute(source, f"ALTER TABLE {ORDERS} COMMENT 'later'")
            wait_until(is_printed, what="the tool prints what was done later")
        finally:
            process.kill()


def _rows(port: ListeningPort, **options: Any) -> tuple[list[str], list[tuple[str, Any]]]:
    stream = BinLogStreamReader(
        connection_settings={"host": HOST, "port": port.port, "user": "root"},
        server_id=7501,
        is_mariadb=True,
        blocking=False,
        only_events=[MariadbGtidEvent, WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent],
        slave_heartbeat=1,
        **options,
    )
    gtids, rows = [], []
    for event in stream:
        if isinstance(event, MariadbGtidEvent):
            gtids.append(event.gtid)
        else:
            rows += [(type(event).__name__, row) for row in event.rows]
    stream.close()
    return gtids, rows


@FOREIGN_WARNINGS
@pytest.mark.parametrize("is_by_gtid", [False, True])
def test_pymysqlreplication(
    source: PrivateServer, port: ListeningPort, *, is_by_gtid: bool
) -> None:
    _change(source, 1)
    _complete(port)
    by_gtid = {"auto_position": str(port.binlogs.get("orders").published.begin)}
    by_file = {"log_file": "orders.000001", "log_pos": 4}
    gtids, rows = _rows(port, **(by_gtid if is_by_gtid else by_file))
    inserts = [row for kind, row in rows if kind == "WriteRowsEvent"]
    assert [row["values"]["id"] for row in inserts] == list(range(1, 21))
    assert {kind for kind, _ in rows} == {"WriteRowsEvent", "UpdateRowsEvent", "DeleteRowsEvent"}
    assert len(gtids) == len(set(gtids)) == 23


@FOREIGN_WARNINGS
def test_pymysqlreplication_from_a_group_out_of_scope(
    source: PrivateServer, port: ListeningPort
) -> None:
    _change(source, 1)
    outside = execute(source, "SELECT @@gtid_binlog_pos")[0][0]
    _change(source, 100, count=1)
    _complete(port)
    gtids, rows = _rows(port, auto_position=outside)
    assert [row["values"]["id"] for kind, row in rows if kind == "WriteRowsEvent"] == [100]
    assert len(gtids) == 2


def test_kill_ends_ones_own_dump(source: PrivateServer, port: ListeningPort) -> None:
    _change(source, 1)
    with subprocess.Popen(
        _mariadb_binlog(port, "--stop-never", "orders.000001"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        wait_until(lambda: bool(port.execute("SHOW SLAVE HOSTS")), what="the dump")
        idle = "SELECT id FROM information_schema.processlist WHERE command = 'Sleep'"
        ((thread_id,),) = execute(source, idle)
        port.execute(f"KILL {thread_id}")
        assert process.wait(30) != 0
    wait_until(lambda: not port.execute("SHOW SLAVE HOSTS"), what="the dump's end")


def test_dropped_binlog_ends_its_dumps(source: PrivateServer, port: ListeningPort) -> None:
    _change(source, 1)
    with subprocess.Popen(
        _mariadb_binlog(port, "--stop-never", "orders.000001"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        wait_until(lambda: bool(port.execute("SHOW SLAVE HOSTS")), what="the dump")
        port.execute("DROP BINLOG 'orders'")
        _, stderr = process.communicate(timeout=30)
    assert b"was dropped" in stderr
    assert port.execute("SHOW SLAVE HOSTS") == ()


def test_what_a_replica_asks(source: PrivateServer, port: ListeningPort) -> None:
    _change(source, 1)
    _complete(port)
    done = execute(source, "SELECT @@gtid_binlog_pos")[0][0]
    begin = str(port.binlogs.get("orders").published.begin)
    assert port.execute("SHOW GLOBAL VARIABLES LIKE 'GTID_BINLOG_POS'") == (
        ("gtid_binlog_pos", done),
    )
    assert port.execute("SELECT binlog_gtid_pos('orders.000001', 4)") == ((begin,),)
    assert port.execute("SELECT binlog_gtid_pos('orders.000001', 5)") == ((None,),)
    assert port.execute("SHOW GLOBAL VARIABLES LIKE 'BINLOG_CHECKSUM'") == (
        ("binlog_checksum", "CRC32"),
    )
    assert port.execute(
        "SET @master_binlog_checksum= @@global.binlog_checksum", "SELECT @master_binlog_checksum"
    ) == (("CRC32",),)
