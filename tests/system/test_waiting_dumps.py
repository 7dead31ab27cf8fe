"""Replicas whose account has grants wait while it is not known what it may read, and are kept alive."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pymysql
import pytest

from binlane.live.loop.binlogs import Binlogs
from binlane.live.provision.private_server import PrivateServer
from binlane.positions import Position
from tests.listening import HOST, ListeningPort, wait_until
from tests.servers import ServerFactory, connect, execute

NET_TIMEOUT_S = 3
"""After so long without a packet a replica takes its source for dead."""
WAITS_S = 2.5 * NET_TIMEOUT_S
WORDS = {
    "mariadb": {"replica": "SLAVE", "timeout": "slave_net_timeout"},
    "mysql": {"replica": "REPLICA", "timeout": "replica_net_timeout"},
}
HOWS = {
    ("mariadb", "file"): "MASTER_USE_GTID=no, MASTER_LOG_FILE='orders.000001', MASTER_LOG_POS=4",
    ("mariadb", "gtid"): "MASTER_USE_GTID=slave_pos",
    ("mysql", "file"): "SOURCE_AUTO_POSITION=0, SOURCE_LOG_FILE='orders.000001', SOURCE_LOG_POS=4",
    ("mysql", "gtid"): "SOURCE_AUTO_POSITION=1",
}


class Lag:
    """Lets capture seem to be behind while `is_there`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_there = False
        position = vars(Binlogs)["read_position"].fget

        def read_position(binlogs: Binlogs) -> Position | None:
            found: Position | None = None if self.is_there else position(binlogs)
            return found

        monkeypatch.setattr(Binlogs, "read_position", property(read_position))


def _status(replica: PrivateServer, flavor: str) -> dict[str, Any]:
    with connect(replica, cursorclass=pymysql.cursors.DictCursor) as connection:
        cursor = connection.cursor()
        cursor.execute(f"SHOW {WORDS[flavor]['replica']} STATUS")
        return dict(cursor.fetchone() or {})


def _change_source(flavor: str, port: int, how: str) -> str:
    if flavor == "mariadb":
        return (
            f"CHANGE MASTER TO MASTER_HOST='{HOST}', MASTER_PORT={port}, MASTER_USER='team', "
            "MASTER_PASSWORD='secret', MASTER_HEARTBEAT_PERIOD=0.5, MASTER_CONNECT_RETRY=1, "
            + HOWS[flavor, how]
        )
    return (
        f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='{HOST}', SOURCE_PORT={port}, "
        "SOURCE_USER='team', SOURCE_PASSWORD='secret', SOURCE_SSL=0, GET_SOURCE_PUBLIC_KEY=1, "
        "SOURCE_HEARTBEAT_PERIOD=0.5, SOURCE_CONNECT_RETRY=1, SOURCE_RETRY_COUNT=2, "
        + HOWS[flavor, how]
    )


def _see_it_wait(replica: PrivateServer, flavor: str, how: str) -> None:
    end_s = time.monotonic() + WAITS_S
    while time.monotonic() < end_s:
        status = _status(replica, flavor)
        assert not status["Last_IO_Errno"], (how, status["Last_IO_Error"])
        time.sleep(0.1)
    # By file a MariaDB asks for the position's GTID first, which waits too.
    if (flavor, how) != ("mariadb", "file"):
        assert status.get("Slave_IO_Running", status.get("Replica_IO_Running")) == "Yes", status


def _wait_for_replica(replica: PrivateServer, source: PrivateServer, flavor: str) -> None:
    expected = execute(source, "CHECKSUM TABLE shop.orders")

    def is_equal() -> bool:
        status = _status(replica, flavor)
        assert not status["Last_IO_Errno"], status["Last_IO_Error"]
        assert not status["Last_SQL_Errno"], status["Last_SQL_Error"]
        return execute(replica, "CHECKSUM TABLE shop.orders") == expected

    wait_until(is_equal, what="the replica has what the source has")


@pytest.mark.slow
@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_replicas_wait(
    servers: ServerFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flavor: str
) -> None:
    start = servers.start if flavor == "mariadb" else servers.start_mysql
    source = start("source")
    execute(
        source,
        *("CREATE DATABASE shop", "CREATE DATABASE crm"),
        "CREATE USER team@'%' IDENTIFIED BY 'secret'",
    )
    lag = Lag(monkeypatch)
    if flavor == "mysql":
        replica = servers.start_mysql("replica", "--server-id=20")
    else:
        replica = servers.start("replica", ("--server-id=20",))
    word = WORDS[flavor]["replica"]
    execute(replica, f"SET GLOBAL {WORDS[flavor]['timeout']} = {NET_TIMEOUT_S}")
    with ListeningPort(source, tmp_path / "data") as port:
        port.execute("CREATE BINLOG 'orders' LOG(shop)", "CREATE BINLOG 'people' LOG(crm)")
        port.execute("GRANT READ ON BINLOG 'orders' TO team@'%'")
        begin = str(port.binlogs.get("orders").published.begin)
        if flavor == "mysql":
            execute(replica, f"SET GLOBAL gtid_purged = '{begin}'")
        else:
            execute(replica, f"SET GLOBAL gtid_slave_pos = '{begin}'")
        execute(replica, "SET sql_log_bin = 0", "CREATE DATABASE shop")
        execute(source, "CREATE TABLE shop.orders (id INT PRIMARY KEY)")
        for number, how in enumerate(("gtid", "file", "gtid")):
            execute(replica, f"STOP {word}", _change_source(flavor, port.port, how))
            execute(source, f"INSERT INTO shop.orders VALUES ({number})")
            lag.is_there = True
            execute(replica, f"START {word}")
            _see_it_wait(replica, flavor, how)
            lag.is_there = False
            _wait_for_replica(replica, source, flavor)
        # Whoever was dropped meanwhile gets nothing of what another one of the name was granted.
        execute(replica, f"STOP {word}")
        lag.is_there = True
        execute(replica, f"START {word}")
        time.sleep(1.5)
        execute(source, "DROP USER team@'%'", "CREATE USER team@'%' IDENTIFIED BY 'other'")
        execute(source, "INSERT INTO shop.orders VALUES (100)")
        wait_until(lambda: port.binlogs.departed != {}, what="the statements are read")
        port.execute("GRANT READ ON BINLOG 'orders' TO team@'%'")
        lag.is_there = False
        wait_until(lambda: bool(_status(replica, flavor)["Last_IO_Errno"]), what="an error")
        assert execute(replica, "SELECT COUNT(*) FROM shop.orders") == ((3,),)
