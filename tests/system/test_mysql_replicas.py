"""A MySQL source, its scoped binlogs, and real MySQL replicas and tools on them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pymysqlreplication import BinLogStreamReader  # type: ignore[import-untyped] # has no types
from pymysqlreplication.row_event import (  # type: ignore[import-untyped] # as above
    DeleteRowsEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
)

from binlane.live.provision.private_server import PrivateServer
from binlane.positions import GtidSet
from tests.listening import HOST, ListeningPort, wait_until
from tests.servers import ServerFactory, connect, execute, mysql_program

ORDERS = "shop.orders"
REPLICA_OPTIONS = ("--server-id=20",)
BY_FILE = "SOURCE_AUTO_POSITION=0, SOURCE_LOG_FILE='orders.000001', SOURCE_LOG_POS=4"
BY_GTID = "SOURCE_AUTO_POSITION=1"
# python-mysql-replication calls PyMySQL with names that PyMySQL has replaced.
FOREIGN_WARNINGS = pytest.mark.filterwarnings("ignore:'(db|passwd)' is deprecated")


@pytest.fixture
def source(servers: ServerFactory) -> PrivateServer:
    """A source with a history that no binlog saw, and an account that may replicate."""
    server = servers.start_mysql("source")
    execute(
        server,
        "CREATE USER replica@'%' IDENTIFIED BY 'secret'",
        "GRANT REPLICATION SLAVE ON *.* TO replica@'%'",
        "CREATE DATABASE shop",
        "CREATE DATABASE crm",
        "CREATE TABLE crm.person (id INT PRIMARY KEY, name VARCHAR(20))",
        "INSERT INTO crm.person VALUES (1, 'before')",
    )
    return server


@pytest.fixture
def port(source: PrivateServer, tmp_path: Path) -> Iterator[ListeningPort]:
    """The source's port with one binlog, `orders`, of small files."""
    with ListeningPort(source, tmp_path / "data", max_binlog_size_bytes=4096) as listening:
        listening.execute("CREATE BINLOG 'orders' LOG(shop)")
        yield listening


def _change(server: PrivateServer, first: int, count: int = 12) -> None:
    """Transactions in the scope and out of it, in turn, some of them with a tag."""
    with connect(server) as connection, connection.cursor() as cursor:
        cursor.execute(
            f"CREATE TABLE IF NOT EXISTS {ORDERS} (id INT PRIMARY KEY, note VARCHAR(200), doc JSON)"
        )
        tags = ["'AUTOMATIC'"]
        cursor.execute("SELECT VERSION() >= '8.3'")
        if cursor.fetchone() == (1,):
            tags.append("'AUTOMATIC:night'")
        for number in range(first, first + count):
            cursor.execute(f"SET SESSION gtid_next = {tags[number % len(tags)]}")
            cursor.execute(
                f"INSERT INTO {ORDERS} VALUES (%s, REPEAT('x', 100), '{{\"n\": [1, 2]}}')",
                (number,),
            )
            cursor.execute("REPLACE INTO crm.person VALUES (%s, 'outside')", (number,))
        cursor.execute("SET SESSION gtid_next = 'AUTOMATIC'")
        cursor.execute(f"UPDATE {ORDERS} SET doc = JSON_SET(doc, '$.n[1]', id)")
        cursor.execute(f"DELETE FROM {ORDERS} WHERE id % 7 = 0")
        cursor.execute("REPLACE INTO crm.person VALUES (0, 'outside, last')")


def _status(replica: PrivateServer) -> dict[str, Any]:
    with connect(replica, cursorclass=pymysql.cursors.DictCursor) as connection:
        cursor = connection.cursor()
        cursor.execute("SHOW REPLICA STATUS")
        status: Any = cursor.fetchone()
        return dict(status)


def _follow(replica: PrivateServer, port: ListeningPort, how: str) -> None:
    execute(
        replica,
        "STOP REPLICA",
        "SET sql_log_bin = 0",
        "CREATE DATABASE IF NOT EXISTS shop",
        f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='{HOST}', SOURCE_PORT={port.port}, "
        "SOURCE_USER='replica', SOURCE_PASSWORD='secret', SOURCE_SSL=0, GET_SOURCE_PUBLIC_KEY=1, "
        f"SOURCE_HEARTBEAT_PERIOD=0.5, SOURCE_CONNECT_RETRY=1, SOURCE_RETRY_COUNT=1000, {how}",
        "START REPLICA",
    )


def _wait_for_replica(replica: PrivateServer, source: PrivateServer) -> None:
    expected = execute(source, f"CHECKSUM TABLE {ORDERS}")

    def is_equal() -> bool:
        status = _status(replica)
        assert not status["Last_IO_Errno"], status["Last_IO_Error"]
        assert not status["Last_SQL_Errno"], status["Last_SQL_Error"]
        return execute(replica, f"CHECKSUM TABLE {ORDERS}") == expected

    wait_until(is_equal, what="the replica has what the source has")
    assert execute(replica, "SHOW DATABASES LIKE 'crm'") == ()


def _wait_until_all_is_done(replica: PrivateServer, source: PrivateServer) -> None:
    """Wait until the replica's set of GTIDs is the source's."""
    everything = GtidSet.parse(execute(source, "SELECT @@GLOBAL.gtid_executed")[0][0])

    def is_equal() -> bool:
        status = _status(replica)
        assert not status["Last_IO_Errno"], status["Last_IO_Error"]
        assert not status["Last_SQL_Errno"], status["Last_SQL_Error"]
        return GtidSet.parse(status["Executed_Gtid_Set"]) == everything

    wait_until(is_equal, what="the replica has done what the source has done")


def _start_replica(servers: ServerFactory, port: ListeningPort) -> PrivateServer:
    """A server that says what it need not have."""
    replica = servers.start_mysql("replica", *REPLICA_OPTIONS)
    ((purged,),) = port.execute("SELECT @@GLOBAL.gtid_purged")
    execute(replica, f"SET GLOBAL gtid_purged = '{purged}'")
    return replica


@pytest.mark.parametrize("how", [BY_FILE, BY_GTID], ids=["file", "gtid"])
def test_replica(
    servers: ServerFactory, source: PrivateServer, port: ListeningPort, how: str
) -> None:
    _change(source, 1)
    replica = _start_replica(servers, port)
    _follow(replica, port, how)
    _wait_for_replica(replica, source)
    _change(source, 100)
    _wait_for_replica(replica, source)
    execute(replica, "STOP REPLICA")
    _change(source, 200)
    execute(replica, "START REPLICA")
    _wait_for_replica(replica, source)
    # It goes over to the other way, and misses and repeats nothing.
    execute(replica, "STOP REPLICA")
    _change(source, 300)
    place = _status(replica)
    other = {
        BY_FILE: BY_GTID,
        BY_GTID: f"SOURCE_AUTO_POSITION=0, SOURCE_LOG_FILE='{place['Relay_Source_Log_File']}', "
        f"SOURCE_LOG_POS={place['Exec_Source_Log_Pos']}",
    }[how]
    _follow(replica, port, other)
    _wait_for_replica(replica, source)
    assert int(place["Relay_Source_Log_File"].rpartition(".")[2]) > 2
    # By file and position what is outside is not there; by GTID it is, but for its rows.
    if how == BY_FILE:
        _wait_until_all_is_done(replica, source)
    else:
        done = GtidSet.parse(_status(replica)["Executed_Gtid_Set"])
        everything = GtidSet.parse(execute(source, "SELECT @@GLOBAL.gtid_executed")[0][0])
        assert everything.includes(done)
        assert everything.subtract(done)


def test_replica_that_needs_nothing_of_purged_files(
    servers: ServerFactory, source: PrivateServer, port: ListeningPort
) -> None:
    replica = _start_replica(servers, port)
    _follow(replica, port, BY_GTID)
    _change(source, 1)
    _wait_for_replica(replica, source)
    execute(replica, "STOP REPLICA")
    late = servers.start_mysql("late", "--server-id=21")
    port.execute("FLUSH BINARY LOGS 'orders'")
    _change(source, 100, count=1)
    execute(replica, "START REPLICA")
    _wait_for_replica(replica, source)
    last = port.execute("SHOW BINARY LOGS")[-1][0]
    execute(replica, "STOP REPLICA")
    port.execute(f"PURGE BINARY LOGS FOR 'orders' TO '{last}'")
    _change(source, 200, count=1)
    execute(replica, "START REPLICA")
    _wait_for_replica(replica, source)
    _follow(late, port, BY_GTID)
    wait_until(lambda: bool(_status(late)["Last_IO_Errno"]), what="error 1236")
    assert "the source purged required binary logs" in _status(late)["Last_IO_Error"]


def test_replica_of_two_binlogs_by_gtid(
    servers: ServerFactory, source: PrivateServer, port: ListeningPort
) -> None:
    """Two channels would take away from each other what only one of them has."""
    replica = _start_replica(servers, port)
    port.execute("CREATE BINLOG 'people' LOG(crm)")
    execute(source, "CREATE USER people@'%' IDENTIFIED BY 'secret'")
    port.execute(
        "GRANT READ ON BINLOG 'orders' TO replica@'%'",
        "GRANT READ ON BINLOG 'people' TO people@'%'",
    )
    _follow(replica, port, BY_GTID)
    _change(source, 1)
    _wait_for_replica(replica, source)
    execute(
        replica,
        f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='{HOST}', SOURCE_PORT={port.port}, "
        "SOURCE_USER='people', SOURCE_PASSWORD='secret', SOURCE_SSL=0, GET_SOURCE_PUBLIC_KEY=1, "
        "SOURCE_AUTO_POSITION=1 FOR CHANNEL 'people'",
        "START REPLICA FOR CHANNEL 'people'",
    )
    query = (
        "SELECT LAST_ERROR_MESSAGE FROM performance_schema.replication_connection_status"
        " WHERE CHANNEL_NAME = 'people' AND LAST_ERROR_NUMBER <> 0"
    )
    wait_until(lambda: bool(execute(replica, query)), what="error 1236")
    assert "follows another binlog of this source by GTID" in execute(replica, query)[0][0]
    assert "'orders'" not in execute(replica, query)[0][0]


def test_replica_that_has_more_than_the_source(
    servers: ServerFactory,
    source: PrivateServer,
    port: ListeningPort,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("binlane.live.dump.dump_sending.WATERMARK_TIMEOUT_S", 0.5)
    replica = servers.start_mysql("replica", *REPLICA_OPTIONS)
    ((source_id,),) = execute(source, "SELECT @@server_uuid")
    execute(replica, f"SET GLOBAL gtid_purged = '{source_id}:1-1000'")
    _follow(replica, port, BY_GTID)
    wait_until(lambda: bool(_status(replica)["Last_IO_Errno"]), what="error 1236")
    assert "Replica has more GTIDs than the source has" in _status(replica)["Last_IO_Error"]


def test_several_binlogs_by_gtid_are_named(
    servers: ServerFactory, source: PrivateServer, port: ListeningPort
) -> None:
    port.execute("CREATE BINLOG 'all'")
    replica = _start_replica(servers, port)
    _follow(replica, port, BY_GTID)
    wait_until(lambda: bool(_status(replica)["Last_IO_Errno"]), what="error 1236")
    error = _status(replica)["Last_IO_Error"]
    assert "the binlogs are 'all', 'orders'" in error
    assert "SOURCE_AUTO_POSITION=0" in error
    _change(source, 1)
    _follow(replica, port, BY_FILE)
    _wait_for_replica(replica, source)


def test_replica_with_the_plugin_of_semi_synchronous_replication(
    servers: ServerFactory, source: PrivateServer, port: ListeningPort
) -> None:
    execute(source, "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'")
    execute(
        source,
        "SET GLOBAL rpl_semi_sync_source_enabled = ON",
        "SET GLOBAL rpl_semi_sync_source_timeout = 100",
    )
    replica = _start_replica(servers, port)
    execute(replica, "INSTALL PLUGIN rpl_semi_sync_replica SONAME 'semisync_replica.so'")
    execute(replica, "SET GLOBAL rpl_semi_sync_replica_enabled = ON")
    _follow(replica, port, BY_GTID)
    _change(source, 1)
    _wait_for_replica(replica, source)


def test_what_clients_of_mysql_ask(source: PrivateServer, port: ListeningPort) -> None:
    begin = port.execute("SELECT @@GLOBAL.gtid_purged")[0][0]
    _change(source, 1)
    done = execute(source, "SELECT @@GLOBAL.gtid_executed")[0][0]
    (status,) = port.execute("SHOW BINARY LOG STATUS")
    assert status[0].startswith("orders.")
    assert status[4] == done.replace("\n", "")
    assert port.execute("SELECT @@GLOBAL.GTID_EXECUTED") == ((status[4],),)
    assert port.execute("SHOW GLOBAL VARIABLES LIKE 'gtid_executed'") == (
        ("gtid_executed", status[4]),
    )
    assert GtidSet.parse(done).includes(GtidSet.parse(begin))
    assert GtidSet.parse(begin)
    assert {row[2] for row in port.execute("SHOW BINARY LOGS")} == {"No"}
    with pytest.raises(pymysql.OperationalError, match="Unknown system variable"):
        port.execute("SELECT @@global.rpl_semi_sync_source_enabled")
    assert port.execute("SHOW VARIABLES LIKE 'rpl_semi_sync_source_enabled'") == ()


def test_mysqlbinlog_copies_files_byte_by_byte(
    source: PrivateServer, port: ListeningPort, tmp_path: Path
) -> None:
    folder = mysql_program().folder
    if folder is None:
        pytest.skip("mysqlbinlog is looked for where MySQL was unpacked")
    _change(source, 1)
    port.execute("SHOW BINARY LOG STATUS")
    port.execute("FLUSH BINARY LOGS 'orders'")
    names = [row[0] for row in port.execute("SHOW BINARY LOGS")]
    copies = tmp_path / "copies"
    copies.mkdir()
    subprocess.run(
        [
            *(str(folder / "exec"), "/usr/bin/mysqlbinlog", "--no-defaults", "-R", f"-h{HOST}"),
            *(f"-P{port.port}", "-uroot", "--ssl-mode=DISABLED", "--get-server-public-key"),
            *("--raw", "--to-last-log", f"-r{copies}/", names[0]),
        ],
        check=True,
        capture_output=True,
    )
    assert len(names) > 2
    assert sorted(path.name for path in copies.iterdir()) == names
    for name in names[:-1]:
        assert (copies / name).read_bytes() == port.file(name).read_bytes()


@FOREIGN_WARNINGS
@pytest.mark.parametrize("is_by_gtid", [False, True])
def test_pymysqlreplication(
    source: PrivateServer, port: ListeningPort, *, is_by_gtid: bool
) -> None:
    begin = port.execute("SELECT @@GLOBAL.gtid_purged")[0][0]
    _change(source, 1)
    port.execute("SHOW BINARY LOG STATUS")
    by_file = {"log_file": "orders.000001", "log_pos": 4}
    stream = BinLogStreamReader(
        connection_settings={"host": HOST, "port": port.port, "user": "root"},
        server_id=7501,
        blocking=False,
        only_events=[WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent],
        slave_heartbeat=1,
        **({"auto_position": begin} if is_by_gtid else by_file),
    )
    rows = [(type(event).__name__, row) for event in stream for row in event.rows]
    stream.close()
    inserts = [row["values"]["id"] for kind, row in rows if kind == "WriteRowsEvent"]
    assert inserts == list(range(1, 13))
    assert {kind for kind, _ in rows} == {"WriteRowsEvent", "UpdateRowsEvent", "DeleteRowsEvent"}
